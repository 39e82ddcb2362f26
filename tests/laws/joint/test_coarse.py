"""Draws by cells of ranks: the law of single ranks, whatever is tied and however records lie."""

import math
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
from dpq_fast._kernels import coarse as kernel
from dpq_fast._kernels import uniform
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.sample import Sample
from dpq_fast.laws.joint import cells as cells_law
from dpq_fast.laws.joint import choice, coarse, path
from dpq_fast.laws.joint import zones as zones_law
from dpq_fast.laws.joint.coarse import CoarseLaw
from dpq_fast.laws.joint.leaves import BlockLeaves, PartLeaves, leaves_of
from dpq_fast.laws.joint.path import PathLaw, TooWide
from dpq_fast.laws.joint.plan import PLAN
from dpq_fast.laws.joint.widths import Widths, spans_around, wide_of, widths_of
from dpq_fast.orders import choice as choice_module
from dpq_fast.orders import dithered as dithered_module
from dpq_fast.orders import selected as selected_module
from dpq_fast.orders import sorted as sorted_module
from dpq_fast.orders.blocks import Zone, segments
from dpq_fast.orders.counted import CountedOrder
from dpq_fast.orders.sorted import SortedOrder

SMALLEST_P = 1e-6
POINTS = 7
BOUNDS = (0.0, POINTS - 1.0)
COLUMNS = {
    "none": [],
    "one": [3],
    "both ends": [0, 6],
    "an atom below": [0] * 9 + [2],
    "an atom above": [6] * 9,
    "an atom inside": [1, 2] + [3] * 12 + [4],
    "no atom": [0, 0, 1, 2, 2, 3, 4, 5, 5, 6, 6],
}
WEIGHTS = (lambda x: np.interp(x, [-0.5, 1.5, 2.5, 6.5], [0.0, 0.2, 0.8, 1.0]), None)
FORMS = {
    "lattice": dict(resolution=1, dither=False),
    "dither": dict(resolution=1),
    "prior": dict(resolution=1, dither=False, prior=WEIGHTS),
    "prior and dither": dict(resolution=1, prior=WEIGHTS),
    "numbers": dict(resolution=0),
}


def orders(monkeypatch, records, form, way):
    """An order of the records by one of the ways to it."""
    x, options = np.array(records, dtype=np.float64), FORMS[form]
    monkeypatch.setattr(dithered_module, "EAGER_RECORDS", 0 if way != "at once" else 100)
    monkeypatch.setattr(sorted_module, "FEW_RECORDS", 0)
    if way in ("selected", "cut by counts"):
        monkeypatch.setattr(selected_module, "READ", 0 if way != "selected" else 100)
        monkeypatch.setattr(selected_module, "READ_SHARE", 0.0)
        monkeypatch.setattr(choice_module, "FEW_POINTS", 1)
        monkeypatch.setattr(choice_module, "MANY_POINTS", 1)
        monkeypatch.setattr(choice_module, "SORTED_RECORDS", 0)
        x = np.random.default_rng(len(x)).permutation(x)
    if way == "counted":
        values, counts = np.unique(x, return_counts=True)
        read = Sample.of(values, BOUNDS, counts=counts, **options)
    else:
        read = Sample.of(x, BOUNDS, **options)
    return read.order(np.random.default_rng(5))


class Straight:
    """Cells that know no bends."""

    def __init__(self, cells):
        self.leaves, self.points, self.paths = cells.leaves, cells.points, cells.paths
        self.entries, self.parts = cells.entries, cells.parts
        self._bends = cells.bends

    def bends(self, path):
        return np.zeros_like(self._bends(path))


def blocks_of(made, first=0, last=None):
    """Blocks of some leaves, or of all of them, in order."""
    if last is None:
        last = made._parts.leaves if isinstance(made, PartLeaves) else made._start.size - 1
    slot, start, given = made.of(np.arange(first, last, dtype=np.uintp))
    first, stop = start[slot[0]], start[slot[-1] + 1]
    return [each[first:stop] for each in given]


def cut(ranks, zones):
    """Blocks in some zones of an order."""
    made = leaves_of(ranks, zones, 2.5, 0.1, 0)
    return blocks_of(made[0]) if made else [np.empty(0, dtype=np.int64)] * 4


def lopsided(*leaves, tree=cells_law.tree_of):
    """The cells' tree, with other volumes for bends downwards."""
    grown = tree(*leaves)
    return grown._replace(falling=grown.falling * np.linspace(1.0, 3.0, grown.falling.size))


def without_descents(law, *asked):
    """Proposals as if they ascended."""
    points, log_accept, likely = CoarseLaw._propose(law, *asked)
    log_accept[(points[:, 1:] < points[:, :-1]).any(axis=1)] = 0.0
    return np.sort(points, axis=1), log_accept, likely


def misfit(law, ranks, m, form, rng, size=3_000, mend=lambda: None):
    """The p-value of draws against the law of single ranks; a density is that of a lower half."""
    drawn = law.draw(rng, size)
    mend()
    exact = PathLaw(ranks, law._q, law._rate)
    assert (drawn[:, 1:] >= drawn[:, :-1]).all()
    if form == "numbers":
        cells = np.ceil(drawn).astype(int) - 1
        log_prob = {
            c: exact.log_prob(np.array(c) + 0.5) - math.log(2.0) * (len(set(c)) < m)
            for c in combinations_with_replacement(range(POINTS - 1), m)
        }
        if m > 2:  # several in one unit: 1 / k! each
            for c in log_prob:
                counts = np.unique(c, return_counts=True)[1]
                log_prob[c] = exact.log_prob(np.array(c) + 0.5) - sum(
                    math.lgamma(k + 1) for k in counts
                )
    else:
        cells = ranks.lattice.points_of(drawn)
        log_prob = {
            c: exact.log_prob(np.array(c)) for c in combinations_with_replacement(range(POINTS), m)
        }
    assert np.logaddexp.reduce(list(log_prob.values())) == pytest.approx(0.0, abs=1e-9)
    seen = dict.fromkeys(log_prob, 0)
    for cell in cells.tolist():
        seen[tuple(cell)] += 1
    expected = size * np.exp(list(log_prob.values()))
    observed = np.array(list(seen.values()))
    often = expected >= 5.0
    expected = np.append(expected[often], expected[~often].sum())
    observed = np.append(observed[often], observed[~often].sum())
    some = expected > 0.0
    return stats.chisquare(observed[some], expected[some]).pvalue


@pytest.mark.slow
@pytest.mark.parametrize("way", ["at once", "sorted", "counted", "selected", "cut by counts"])
@pytest.mark.parametrize("form", FORMS)
def test_draws_follow_the_law_of_single_ranks(monkeypatch, form, way):
    rng = np.random.default_rng(1)
    for m, most, nats, (name, records) in zip(
        (1, 2, 2, 1, 2, 3, 3),
        (1, 2, 1, 4, 5, 1, 4),
        (0.1, 0.4, 0.8, 0.8, 0.3, 0.2, 0.5),
        COLUMNS.items(),
        strict=True,
    ):
        ranks, q = orders(monkeypatch, records, form, way), np.linspace(0.0, 1.0, m + 2)[1:-1]
        law = CoarseLaw(ranks, q, 0.12, widths=Widths(nats, 4.0, most))
        assert misfit(law, ranks, m, form, rng) > SMALLEST_P, name


@pytest.mark.parametrize("form", ["lattice", "numbers"])
@pytest.mark.parametrize("rate", [0.02, 0.3, 2.0])
def test_draws_follow_the_law_in_cells_within_cells_and_beyond_reach(monkeypatch, form, rate):
    rng, q = np.random.default_rng(2), np.array([0.2, 0.5, 0.55])
    records = [0, 0, 1, 2, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6, 6]
    ranks = orders(monkeypatch, records, form, "at once")
    for reach, nats, growth in ((16, rate, 50.0), (1, 3.0 * rate, 0.0), (4, rate, 9.0)):
        law = CoarseLaw(ranks, q, rate, reach=reach, widths=Widths(nats, growth))
        assert (law._log_escape > -math.inf) == (reach < 16)
        assert misfit(law, ranks, 3, form, rng) > SMALLEST_P, reach


def test_steep_rates_and_wide_ties_leave_no_number_behind(monkeypatch):
    """A thousand nats between one way and another: floats alone would lose the rarer one's rows."""
    rng, q = np.random.default_rng(3), np.array([0.3, 0.5, 0.6])
    ranks = orders(monkeypatch, [2] * 400 + [3] * 500, "lattice", "sorted")
    law = CoarseLaw(ranks, q, 3.0, widths=Widths(1.0, 1.0))
    exact = PathLaw(ranks, q, 3.0)
    assert law._log_total >= exact.log_normalizer - 1e-6
    assert misfit(law, ranks, 3, "lattice", rng) > SMALLEST_P


def test_proposals_go_on_where_single_ranks_would_take_too_much_memory(monkeypatch):
    records, q = [0, 1, 1] + [2] * 14 + [3] * 20 + [4, 5, 5, 6], np.array([0.2, 0.5, 0.7])
    ranks = orders(monkeypatch, records, "lattice", "at once")
    plan, size = replace(PLAN, most_tries=1, each=1, rounds=0), len(records)
    law = CoarseLaw(ranks, q, 0.1, reach=size, widths=Widths(3.0, 0.0, 8), plan=plan)
    law.draw(np.random.default_rng(1), 200)
    assert law._single is not None
    plan = replace(plan, most_single=3 * size)  # there is a rank more
    law = CoarseLaw(ranks, q, 0.1, reach=size, widths=Widths(3.0, 0.0, 8), plan=plan)
    assert misfit(law, ranks, 3, "lattice", np.random.default_rng(2)) > SMALLEST_P
    assert vars(law)["_single"] is None and "_law" not in vars(law)


def test_proposals_go_on_where_ties_make_rows_of_single_ranks_too_long(monkeypatch):
    """By a guess they would fit."""
    monkeypatch.setattr(path, "first_narrow", lambda q, n, rate, reach, plan: 5)
    records, q = [0, 1, 1] + [2] * 14 + [3] * 20 + [4, 5, 5, 6], np.array([0.2, 0.5, 0.7])
    ranks = orders(monkeypatch, records, "lattice", "at once")
    size, laws = len(records), []
    for most in (3 * size, 3 * (size + 1)):
        plan = replace(PLAN, most_tries=1, each=1, rounds=0, most_single=most)
        widths = Widths(3.0, 0.0, 8)
        laws.append(CoarseLaw(ranks, q, 0.1, reach=size, widths=widths, plan=plan))
    assert misfit(laws[0], ranks, 3, "lattice", np.random.default_rng(2)) > SMALLEST_P
    assert vars(laws[0])["_single"] is None and "_law" not in vars(laws[0])
    assert laws[1]._single is not None


@pytest.mark.parametrize("way", ["_narrower", "_single", "_law"])
def test_other_ways_take_over_where_too_few_proposals_are_accepted(monkeypatch, way):
    rng, q = np.random.default_rng(4), np.array([0.3, 0.6])
    ranks = orders(monkeypatch, COLUMNS["no atom"], "lattice", "at once")
    plan = replace(PLAN, spent=0.0, output_cost=math.inf, each=1)
    if way != "_narrower":
        plan = replace(plan, rounds=0, **{"_single": dict(most_tries=1)}.get(way, dict(last_try=1)))
    drawn, changed = [], 0
    for _ in range(40):
        law = CoarseLaw(ranks, q, 0.4, widths=Widths(2.5, 3.0), plan=plan)
        drawn.append(law.draw(rng, 50))
        changed += vars(law).get(way) is not None
    assert changed > 20
    merged = CoarseLaw(ranks, q, 0.4)
    monkeypatch.setattr(merged, "draw", lambda rng, size: np.concatenate(drawn))
    assert misfit(merged, ranks, 2, "lattice", rng, 2_000) > SMALLEST_P


def test_rows_have_their_cells_where_there_was_no_room_for_their_segments_at_first(monkeypatch):
    x = np.random.default_rng(6).uniform(0.0, 6.0, 900)
    ranks, q = orders(monkeypatch, x, "numbers", "at once"), np.array([0.1, 0.5, 0.52])
    laws = []
    for room in (kernel.SEGMENTS, 0):
        monkeypatch.setattr(kernel, "SEGMENTS", room)
        laws.append(CoarseLaw(ranks, q, 0.05, widths=Widths(0.3, 9.0, 2)))
    assert laws[0]._cells.entries == laws[1]._cells.entries >= 100
    assert laws[0]._log_total == laws[1]._log_total


@pytest.mark.parametrize("form", ["lattice", "numbers", "dither"])
def test_narrower_cells_around_where_paths_are_draw_the_same_law(monkeypatch, form):
    rng, q = np.random.default_rng(8), np.array([0.1, 0.15, 0.8])
    ranks = orders(monkeypatch, [0, 1, 1] + [5] * 14, form, "at once")
    law = CoarseLaw(ranks, q, 0.3, widths=Widths(0.7, 9.0), plan=replace(PLAN, visitors=2))
    laws = [law]
    while laws[-1]._narrower is not None:
        wider, narrow = laws[-1], laws[-1]._narrower
        assert narrow._widths[:2] == (0.6 * wider._widths.nats, 0.25 * wider._widths.growth)
        assert (narrow._near[0] <= wider._near[0]).all()
        assert (narrow._near[1] >= wider._near[1]).all()
        assert narrow._log_total <= wider._log_total + 1e-9
        laws.append(narrow)
    assert len(laws) == PLAN.rounds + 1
    for some in (*laws[:3], laws[-1]):
        assert misfit(some, ranks, 3, form, rng) > SMALLEST_P
    long = CoarseLaw(ranks, q, 0.3, plan=replace(PLAN, most_entries=1))
    assert long._narrower is None


def test_no_release_depends_on_what_shows_where_paths_are():
    """Laws that saw other paths accept the same outputs with the same probability."""
    q, rate = np.arange(1, 13) / 13, 0.4 * 12 / 2_000
    x = np.random.default_rng(9).normal(0.0, 5.0, 2_000)
    x = np.sort(np.where(np.arange(2_000) % 2, 0.0, x))
    ranks = Sample.of(x, (-100.0, 100.0)).order(np.random.default_rng(7))
    law = CoarseLaw(ranks, q, rate, widths=Widths(0.25, 0.02), plan=replace(PLAN, visitors=1))
    closer, rng = law._narrower, np.random.default_rng(8)
    assert (closer._near[0] < law._near[0]).any()
    drawn, expected = (each.draw(rng, 1_500) for each in (closer, PathLaw(ranks, q, rate)))
    for level in range(12):
        assert stats.ks_2samp(drawn[:, level], expected[:, level]).pvalue > SMALLEST_P


def test_cells_are_narrow_where_a_gap_draws_paths_far_from_their_targets():
    """Few of the first proposals would be accepted: paths are hundreds of nats away."""
    n, m, rng = 200_000, 200, np.random.default_rng(9)
    x = np.sort(np.where(np.arange(n) % 2, 0.0, rng.normal(0.0, 5.0, n)))
    ranks = SortedOrder(x, None, (-100.0, 100.0))
    law = choice.law_of(
        ranks, np.linspace(0.0, 1.0, m + 2)[1:-1], 0.0125, plan=replace(PLAN, loss=4.0)
    )
    first, closer = (part._propose(rng, 400)[1] for part in (law, law._narrower))
    share = np.exp(np.minimum(closer, 0.0)).mean()
    assert share > 10.0 * np.exp(np.minimum(first, 0.0)).mean()


def test_cells_of_one_rank_weigh_what_they_hold_across_wide_ties():
    """Thousands of ranks apart, where decays come from two tables."""
    records = np.repeat([1, 2, 3, 5], [9_000, 30_000, 4_000, 17_000])
    ranks = SortedOrder(records, Lattice.of((0.0, 6.0), 1.0, False), (0.0, 6.0))
    q = np.array([0.1, 0.11, 0.6, 0.75])
    for rate in (1e-5, 3e-4, 2e-3, 5e-2):
        law = CoarseLaw(ranks, q, rate, reach=ranks.n, widths=Widths(1e-9, 0.0, 1))
        exact = PathLaw(ranks, q, rate, reach=ranks.n)
        assert law._log_total == pytest.approx(exact.log_normalizer, abs=1e-9)


def test_cells_thousands_of_ranks_from_all_targets_weigh_what_they_hold(fill_memory):
    """Farther than leaves are from each other: no table has decays from there to the targets."""
    fill_memory(0x55)
    tied = np.where(np.arange(12_000) < 8_000, 0.0, np.arange(12_000) / 12.0)
    ranks = Sample.of(tied, (0.0, 1000.0), resolution=0).order()
    q = np.array([0.1, 0.2, 0.3])
    for rate in (1e-4, 2e-2):
        law = CoarseLaw(ranks, q, rate, reach=ranks.n, widths=Widths(1e-9, 0.0, 1))
        exact = PathLaw(ranks, q, rate, reach=ranks.n)
        assert law._log_total == pytest.approx(exact.log_normalizer, abs=1e-9)


def ten_records():
    lattice = Lattice.of((0.0, 9.0), 1.0, False)
    return CoarseLaw(SortedOrder(np.arange(10), lattice, (0.0, 9.0)), np.array([0.5]), 0.1)


def test_paths_are_not_drawn_from_rows_that_are_still_to_be_computed():
    with pytest.raises(ValueError, match="rows are to be computed before paths are drawn"):
        law = ten_records()
        law._rows(law._tree).paths(1, np.random.default_rng(0))


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_blocks_looked_at_some_at_a_time_make_the_same_tree(monkeypatch, at_once):
    q, options = np.array([0.2, 0.7]), dict(reach=100, widths=Widths(2.0, 0.2, 3))
    records = [0, 1, 1] + [2] * 14 + [3] * 20 + [4, 5, 5, 6]
    ranks = orders(monkeypatch, records, "dither", "at once")
    whole = CoarseLaw(ranks, q, 0.3, **options)
    assert isinstance(whole._leaves, BlockLeaves)
    assert whole._leaves._start.size > 5 and whole._leaves.longest > 1
    parts = CoarseLaw(ranks, q, 0.3, **options, plan=replace(PLAN, at_once=at_once))
    np.testing.assert_array_equal(parts._leaves._start, whole._leaves._start)
    for part, each in zip(parts._tree, whole._tree, strict=True):
        np.testing.assert_array_equal(part, each)


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=60),
    st.lists(st.integers(1, 99), min_size=1, max_size=6, unique=True),
    st.floats(0.01, 2.0),
    st.floats(0.05, 64.0),
    st.sampled_from([0.0, 0.3, 20.0]),
    st.integers(1, 7),
    st.booleans(),
)
def test_no_proposal_weighs_less_than_what_it_stands_for(
    records, levels, rate, nats, growth, most, lattice
):
    x = np.sort(np.array(records, float))
    bounds = (0.0, 40.0)
    order_of = SortedOrder(
        x.astype(np.int64) if lattice else x,
        Lattice.of(bounds, 1.0, False) if lattice else None,
        bounds,
    )
    q = np.sort(np.array(levels)) / 100
    law = CoarseLaw(order_of, q, rate, widths=Widths(nats, growth, most))
    log_accept = law._propose(np.random.default_rng(0), 40)[1]
    assert (log_accept <= 1e-9).all()
    assert law._log_total >= PathLaw(order_of, q, rate).log_normalizer - 1e-9


@given(
    st.lists(st.integers(0, 40), max_size=60),
    st.integers(1, 9),
    st.lists(st.integers(0, 2**20), max_size=30),
    st.sampled_from(["lattice", "dither", "numbers"]),
    st.sampled_from(["sorted", "selected", "cut by counts"]),
)
def test_outputs_have_ranks_near_those_of_their_blocks(records, most, outputs, form, way):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice_module, "SORTED_RECORDS", 100 if way == "sorted" else 0)
        patch.setattr(selected_module, "READ", 100 if way == "selected" else 0)
        patch.setattr(choice_module, "FEW_POINTS", 1)
        patch.setattr(dithered_module, "EAGER_RECORDS", 0)
        patch.setattr(sorted_module, "FEW_RECORDS", 0)
        ranks = Sample.of(np.array(records, float), (0.0, 40.0), **FORMS[form]).order(0)
        everywhere = Zone(most, np.array([0]), np.array([ranks.n + 1]))
        low, high, width, left = cut(ranks, [everywhere])
        assert (low <= high).all() and (low[1:] >= high[:-1]).all() and (width > 0.0).all()
        assert (high - low < most).all()
        assert left[0] == ranks.before and left[-1] + width[-1] == ranks.last
        assert (left[1:] == left[:-1] + width[:-1]).all()
        first = left if form == "numbers" else left + 1
        last = left + width
        share = np.array([*outputs, 0], dtype=float) / 2**20
        inside = np.floor(ranks.before + 1.0 + (ranks.last - ranks.before - 1.0) * share)
        points = np.concatenate(
            (np.nextafter(first, 99.0) if form == "numbers" else first, last, inside)
        )
        points = points.astype(first.dtype)
        own = np.maximum(np.searchsorted(left, points) - 1, 0)
        found = ranks.fine_ranks(points)
        assert ((low[own] <= found) & (found <= high[own])).all()
        # a part of the ranks shows the same blocks, all that hold any of them
        a, b = sorted((most % (ranks.n + 1), len(outputs) % (ranks.n + 1)))
        some = cut(ranks, [Zone(most, np.array([a]), np.array([b - a + 1]))])
        kept = np.isin(left, some[3])
        assert kept[(high >= a) & (low <= b)].all()
        for part, whole in zip(some, (low, high, width, left), strict=True):
            assert part.tolist() == whole[kept].tolist()


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=80),
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 9)), min_size=1, max_size=3),
    st.integers(1, 4),
    st.sampled_from(["lattice", "dither", "numbers"]),
    st.sampled_from(["sorted", "selected", "cut by counts"]),
)
def test_blocks_are_as_long_as_their_zones_ask_for(records, inner, most, form, way):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice_module, "SORTED_RECORDS", 100 if way == "sorted" else 0)
        patch.setattr(selected_module, "READ", 100 if way == "selected" else 0)
        patch.setattr(selected_module, "READ_SHARE", 0.0)
        patch.setattr(choice_module, "FEW_POINTS", 1)
        patch.setattr(dithered_module, "EAGER_RECORDS", 0)
        ranks = Sample.of(np.array(records, float), (0.0, 40.0), **FORMS[form]).order(0)
        middle, away = np.array(inner).T
        zones = [
            Zone(2 * most * factor, *segments(middle - farther, middle + farther, ranks.n))
            for factor, farther in ((1, away), (2, away + 5), (4, away + 15))
        ]
        low, high, width, left = cut(ranks, zones)
    assert (low <= high).all() and (low[1:] >= high[:-1]).all() and (width > 0.0).all()
    for zone in zones:
        for start, count in zip(zone.first.tolist(), zone.ranks.tolist(), strict=True):
            meets = (high >= start) & (low < start + count)
            assert (high - low < zone.most)[meets].all()
            of_it = np.flatnonzero(meets)
            assert (np.diff(of_it) == 1).all()
            assert (left[of_it][1:] == (left + width)[of_it][:-1]).all()
            assert of_it.size or ranks.intervals(*np.array([[start], [count]])).rank.size == 0
    last = left + width
    first = np.nextafter(left, 99.0) if form == "numbers" else left + 1
    for points in (first, last):
        found = ranks.fine_ranks(points.astype(left.dtype))
        assert ((low <= found) & (found <= high)).all()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["at once", "sorted", "counted", "selected", "cut by counts"])
@pytest.mark.parametrize("form", ["lattice", "dither", "numbers"])
def test_draws_from_blocks_that_are_longer_far_away_follow_the_law(monkeypatch, form, way):
    """As chosen at first, and around where paths were seen."""
    rng, q = np.random.default_rng(10), np.array([0.2, 0.3])
    records = [0, 1] + [2] * 4 + [3] * 3 + [4] * 9 + [5, 5, 6] * 3
    ranks, zoned, zones_of = orders(monkeypatch, records, form, way), [], coarse.zones_of
    plan = replace(
        PLAN, bends=(0.9,), bends_farther=3.0, least_block=2, most_read=0, spread=0.0, visitors=3
    )
    monkeypatch.setattr(coarse, "zones_of", lambda *of: zoned.append(zones_of(*of)) or zoned[-1])
    law = CoarseLaw(ranks, q, 0.15, widths=Widths(0.5, 4.0), plan=plan)
    assert len(zoned[-1]) > 1 and not law._exact
    for some in (law, law._narrower):
        assert misfit(some, ranks, 2, form, rng, 2_000) > SMALLEST_P


@pytest.mark.parametrize("way", ["sorted", "counted"])
def test_draws_from_leaves_that_are_wider_far_away_follow_the_law(monkeypatch, way):
    q, found, made = np.array([0.2, 0.3]), [], dithered_module._widths
    monkeypatch.setattr(zones_law, "wider_at", lambda nats, *_: 2.0 if nats < 2.0 else 4.0)
    monkeypatch.setattr(dithered_module, "ALIKE", 1)
    monkeypatch.setattr(
        dithered_module, "_widths", lambda *of: found.append(made(*of)[1]) or made(*of)
    )
    records = [0, 1] + [2] * 4 + [3] * 3 + [4] * 9 + [5, 5, 6] * 3
    ranks = orders(monkeypatch, records, "dither", way)
    plan = replace(PLAN, bends=(0.3,), spread=0.0)
    law = CoarseLaw(ranks, q, 0.15, widths=Widths(0.3, 2.0), plan=plan)
    assert set(found[-1] / found[-1].min()) >= {1.0, 2.0}
    assert misfit(law, ranks, 2, "dither", np.random.default_rng(11), 2_000) > SMALLEST_P


def test_tables_of_other_levels_are_refused():
    law = CoarseLaw(SortedOrder(np.arange(40.0), None, (0.0, 50.0)), np.array([0.3, 0.6]), 0.1)
    rng = np.random.default_rng(0)
    path = law._cells.paths(3, rng)
    bend = law._cells.bends(path)
    with pytest.raises(ValueError, match="paths must have a cell at each level"):
        law._cells.bends(np.ascontiguousarray(path[:, 1:]))
    with pytest.raises(ValueError, match="tables must be of one shape"):
        law._cells.leaves(path, np.ascontiguousarray(bend[:, 1:]), rng)
    leaf, copied = law._cells.leaves(path, bend, rng)
    tables = path, bend, leaf, copied
    slot, start, blocks = law._leaves.of(leaf)
    rest = start, *blocks, law._leaves.longest, rng
    law._cells.points(*tables, slot, *rest)
    for i in range(1, 5):
        given = [*tables, slot]
        given[i] = np.ascontiguousarray(given[i][:, 1:])
        with pytest.raises(ValueError, match="tables must be of one shape"):
            law._cells.points(*given, *rest)


def test_wider_leaves_are_where_zones_have_them():
    """They begin and end where as many narrow ones do as cells of several have."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        end, ranks, middle = 6_000, float(rng.uniform(1.0, 9.0)), np.sort(rng.integers(0, 6_000, 3))
        wider = np.cumprod(rng.choice([1.0, 2.0, 4.0], 4))
        zones = [
            Zone(most, *segments(middle - away, middle + away, end - 1), each / wider[0])
            for most, away, each in zip((2, 4, 8, 16), (9, 99, 300, 6_000), wider, strict=True)
        ]
        begin, widths = dithered_module._widths(zones, ranks, end)
        assert begin[0] == 0 and begin[-1] == end and (np.diff(begin) > 0).all()
        held = np.full(end, zones[-1].wider)
        for zone in zones[::-1]:
            for first, count in zip(zone.first, zone.ranks, strict=True):
                held[first : first + count] = zone.wider
        found = np.repeat(widths / ranks, np.diff(begin))
        assert (found <= held).all() and found.max() <= zones[-1].wider
        for start, stop, width in zip(begin, begin[1:], widths, strict=False):
            if width > ranks:
                each = dithered_module.ALIKE * width
                assert start == math.ceil(round(start / each) * each)
                assert stop == math.ceil(round(stop / each) * each)
        # and there is no other place that is wide enough for them
        for width in set(wider / wider[0]) - {1.0}:
            each = dithered_module.ALIKE * width * ranks
            for k in range(int(end / each)):
                block = slice(math.floor(k * each), math.ceil((k + 1) * each))
                narrow = (held[block] < width).any()
                assert narrow or (found[math.ceil(k * each) : block.stop] >= width).all()


def test_ranks_are_counted_only_of_proposals_that_may_be_accepted(monkeypatch):
    ranks = SortedOrder(np.arange(300) / 50.0, None, BOUNDS)
    law = CoarseLaw(ranks, np.array([0.3, 0.6, 0.8]), 0.1, widths=Widths(2.0, 9.0, 16))
    counted = []
    monkeypatch.setattr(
        SortedOrder,
        "fine_ranks",
        lambda self, points, count=SortedOrder.fine_ranks: (
            counted.append(points.size) or count(self, points)
        ),
    )
    size = 3_000
    points, exact, likely = law._propose(np.random.default_rng(0), size)
    needed = uniform.log_uniforms(size, np.random.default_rng(1))
    again, bound, estimated = law._propose(np.random.default_rng(0), size, needed)
    assert counted[1] < 0.8 * counted[0]
    assert (again == points).all() and (bound >= exact - 1e-9).all()
    assert ((needed < bound) == (needed < exact)).all()
    assert (bound > exact + 1e-9).any()
    # what is likely to be accepted is known of all, or estimated from those that were counted
    assert likely == pytest.approx(np.exp(np.minimum(exact, 0.0)))
    error = estimated.std() / math.sqrt(size)
    assert abs(estimated.mean() - likely.mean()) < 5.0 * error
    assert (estimated[bound > exact + 1e-9] == 0.0).all()


@pytest.mark.parametrize(("likely", "gives_way"), [(0.01, False), (1e-6, True)])
def test_cells_give_way_where_few_proposals_are_likely(monkeypatch, likely, gives_way):
    """One in a hundred that is accepted is not given up for not being among the first ones."""
    ranks = SortedOrder(np.arange(300) / 50.0, None, BOUNDS)
    law = CoarseLaw(ranks, np.array([0.2, 0.4, 0.6, 0.8]), 0.1)
    cost = PLAN.output_cost * 1e-3 / law._cost  # others cost as much as a thousand proposals
    plan = replace(PLAN, output_cost=cost, most_tries=2**10)
    law = CoarseLaw(ranks, np.array([0.2, 0.4, 0.6, 0.8]), 0.1, plan=plan)
    propose = law._propose

    def hardly_any(rng, size, needed):
        return propose(rng, size, needed)[0], np.full(size, -30.0), np.full(size, likely)

    monkeypatch.setattr(law, "_propose", hardly_any)
    monkeypatch.setattr(uniform, "log_uniforms", lambda size, rng: np.zeros(size))
    with monkeypatch.context() as patch:
        patch.setattr(PathLaw, "draw", lambda *of: np.zeros((1, 4)))
        patch.setattr(coarse.CoarseLaw, "_narrower", law._law)
        patch.setattr(coarse.CoarseLaw, "_single", None)
        patch.setattr(coarse.CoarseLaw, "_law", property(lambda law: pytest.fail("too late")))
        patch.setattr(law, "_plan", replace(plan, last_try=2**12))
        if gives_way:
            law.draw(np.random.default_rng(1), 1)
        else:
            with pytest.raises(pytest.fail.Exception, match="too late"):
                law.draw(np.random.default_rng(1), 1)


@pytest.mark.parametrize("form", ["lattice", "numbers"])
def test_one_proposal_at_a_time_follows_the_law(form, monkeypatch):
    ranks = orders(monkeypatch, COLUMNS["no atom"] * 3, form, "sorted")
    q, rng = np.array([0.2, 0.4, 0.8]), np.random.default_rng(4)
    plan = replace(PLAN, most_outputs=1)
    law = CoarseLaw(ranks, q, 0.5, widths=Widths(2.0, 1.0, 4), plan=plan)
    assert misfit(law, ranks, 3, form, rng, 1_000) > SMALLEST_P


@pytest.mark.parametrize(
    "fault", ["bends", "rank", "log_uniforms", "descents", "volumes", "beyond"]
)
def test_wrong_bounds_ranks_and_variates_are_noticed(monkeypatch, fault):
    ranks, q = (
        orders(monkeypatch, COLUMNS["no atom"] * 2, "lattice", "at once"),
        np.array([0.3, 0.6]),
    )
    rng, rate = np.random.default_rng(0), 0.3
    law = CoarseLaw(ranks, q, rate, widths=Widths(2.0, 9.0, 4))
    if fault == "bends":
        law._cells = Straight(law._cells)
    if fault == "rank":
        monkeypatch.setattr(SortedOrder, "fine_ranks", lambda self, points: 0 * points)
    if fault == "log_uniforms":
        monkeypatch.setattr(uniform, "log_uniforms", lambda size, rng: np.full(size, -0.7))
    size = 4_000
    if fault == "descents":  # of three proposals in a hundred
        records, q, size = (
            [0, 0, 1, 2, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6, 6],
            np.array([0.05, 0.5]),
            60_000,
        )
        ranks = orders(monkeypatch, records, "lattice", "at once")
        law = CoarseLaw(ranks, q, 0.1, widths=Widths(0.101, 50.0))
        monkeypatch.setattr(law, "_propose", partial(without_descents, law))
    if fault == "volumes":
        monkeypatch.setattr(coarse, "tree_of", lopsided)
        law = CoarseLaw(ranks, q, rate, widths=Widths(2.0, 9.0, 4))
    if fault == "beyond":
        law = CoarseLaw(ranks, q, rate, reach=2, widths=Widths(0.3, 0.2))
        law._log_escape = -1e-3
    law._plan = replace(PLAN, most_tries=2**30, rounds=0)
    assert misfit(law, ranks, 2, "lattice", rng, size, monkeypatch.undo) < SMALLEST_P


def test_small_rates_are_drawn_from_blocks_and_no_release_makes_the_law():
    x = np.sort(np.random.default_rng(3).normal(0.0, 5.0, 20_000))
    q, options = np.arange(1, 10) / 10, dict(epsilon=2e-3, bounds=(-100, 100))
    law = dpq.joint_exp_law(x, q, dither=False, **options)
    assert isinstance(law._paths, CoarseLaw)
    outputs = law.sample(0, size=50)
    assert "_law" not in vars(law._paths)
    assert outputs.shape == (50, 9) and (np.diff(outputs) >= 0.0).all()
    exact = PathLaw(law.column.order(), q, law._paths._rate)
    assert law.log_prob(outputs[0]) == exact.log_prob(law.column.locate(outputs[0]))
    assert law.sample(0, size=0).shape == (0, 9)


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=60),
    st.lists(st.integers(1, 99), min_size=2, max_size=6, unique=True),
    st.integers(1, 12),
    st.integers(1, 7),
    st.floats(0.05, 3.0),
)
def test_no_output_within_reach_is_between_leaves(records, levels, reach, most, nats):
    """Also where the blocks of two targets meet."""
    order_of = SortedOrder(
        np.sort(np.array(records)), Lattice.of((0.0, 40.0), 1.0, False), (0.0, 40.0)
    )
    law = CoarseLaw(
        order_of, np.sort(np.array(levels)) / 100, 0.3, reach=10**6, widths=Widths(nats, 0.2, most)
    )
    if not law._collect(reach):
        return
    law._fill()
    for low, high in zip(law._low, law._high, strict=True):
        _, _, width, left = blocks_of(law._leaves, low, high)
        assert (left[1:] == (left + width)[:-1]).all()


def test_blocks_of_two_targets_that_meet_leave_nothing_out():
    n, q = 200_000, [0.3, 0.85]
    law = dpq.joint_exp_law(
        np.arange(float(n)), q, epsilon=2e-3, bounds=(0, n - 1), resolution=1, dither=False
    )
    for low, high in zip(law._paths._low, law._paths._high, strict=True):
        _, _, width, left = blocks_of(law._paths._leaves, low, high)
        assert (left[1:] == (left + width)[:-1]).all()


def test_extreme_rates_bounds_and_counts_are_drawn_as_others():
    rng, q = np.random.default_rng(6), np.arange(1, 10) / 10
    x = rng.normal(0.0, 5.0, 20_000)
    for neighbors, size in (("swap", 20_000), ("add-remove", 14_562), ("add-remove", 14_563)):
        options = dict(bounds=(-100, 100), neighbors=neighbors, rng=0)
        for epsilon in (1e-40, 1e-300, 1e7):
            out = dpq.joint_exp(x[:size], q, epsilon=epsilon, **options)
            assert (np.diff(out) >= 0.0).all()
    out = dpq.joint_exp(np.tile(x, 15), q, epsilon=1e-200, bounds=(-100, 100), rng=0)
    assert (np.diff(out) >= 0.0).all()  # so small that zones of blocks have no end
    for high, scale in ((8.9e307, 1e307), (8.9e307, 5.0), (1e-300, 1e-301), (4e-320, 1e-320)):
        y = np.clip(rng.normal(0.0, 1.0, 20_000) * scale, -high, high)
        out = dpq.joint_exp(y, q, epsilon=4e-3, bounds=(-high, high), resolution=0, rng=0)
        assert (np.diff(out) >= 0.0).all() and (abs(out) <= high).all()
    counts = dict(bounds=(0, 6), resolution=1, dither=False, counts=np.full(4, 2**50))
    law = dpq.joint_exp_law([1.0, 2.0, 4.0, 5.0], q, epsilon=1.0, **counts)
    assert isinstance(law._paths, PathLaw)  # a loss that exponents of cells do not hold


def test_threads_that_draw_from_one_law_see_one_dither():
    x = np.sort(np.random.default_rng(7).normal(0.0, 5.0, 200_000))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for lazy in range(6):
            law = dpq.joint_exp_law(
                x, np.arange(1, 10) / 10, epsilon=1e-3, bounds=(-100, 100), dither_rng=lazy
            )
            assert isinstance(law._paths, CoarseLaw) and not law._paths._exact
            with ThreadPoolExecutor(6) as threads:
                drawn = list(threads.map(partial(law.sample, size=20), range(12)))
            for seed, outputs in enumerate(drawn):
                assert (law.sample(seed, size=20) == outputs).all()
    finally:
        sys.setswitchinterval(before)


def test_draws_by_seed_stay_where_others_made_cells_narrower(monkeypatch):
    """Of one law, in threads, too: what is drawn does not depend on what was drawn before."""
    plan, q = replace(PLAN, spent=0.0, output_cost=math.inf, each=1), np.array([0.3, 0.6])
    ranks = orders(monkeypatch, COLUMNS["no atom"], "lattice", "at once")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            law = CoarseLaw(ranks, q, 0.4, widths=Widths(2.5, 3.0), plan=plan)
            with ThreadPoolExecutor(4) as threads:
                drawn = list(threads.map(partial(drawn_by, law), range(12)))
            assert "_narrower" in vars(law)
            for seed, outputs in enumerate(drawn):
                assert (drawn_by(law, seed) == outputs).all()
    finally:
        sys.setswitchinterval(before)


def drawn_by(law, seed):
    return law.draw(np.random.default_rng(seed), 20)


def test_cells_lose_little_and_blocks_less():
    for n, m, rate in (
        (10**6, 30, 2.5e-5),
        (10**6, 300, 2.5e-3),
        (10**9, 9, 1e-9),
        (10**6, 1, 1.0),
    ):
        q = np.linspace(0.0, 1.0, m + 2)[1:-1]
        nats = widths_of(n, q, rate, PLAN).nats
        most = PLAN.loss * max(1.0, m / PLAN.few_levels) * PLAN.aligned[1] ** 2
        assert m * nats**2 * PLAN.apart <= most * (1 + 1e-12)
        zones = zones_around(n, q, rate)
        assert zones[0].most == 1 or (zones[0].most - 1) * rate * m <= PLAN.bends[-1]
    assert zones_around(10**6, np.array([0.5]), 1.0)[0].most == 1
    many = np.linspace(0.0, 1.0, 1002)[1:-1]
    assert zones_around(10**6, many, 1e-3)[0].most == 1  # records, not two at a time
    assert zones_around(10**9, many, 2.5e-7)[0].most > 10**3
    assert zones_around(10**8, many, 1.0)[0].most == 1


def test_cells_fit_between_targets_that_are_evenly_apart():
    """Some and a half of them, where steps lose least."""
    for m, rate in ((29, 0.05), (100, 0.025), (300, 0.025)):
        q = np.arange(1, m + 1) / (m + 1)
        cells = rate * 10**6 / (m + 1) / widths_of(10**6, q, rate, PLAN).nats
        assert abs(cells % 1.0 - 0.5) < 0.25


def zones_around(n, q, rate):
    """Zones of all ranks, for paths at their targets."""
    whole = np.floor(n * q).astype(np.int64)
    records = CountedOrder(np.array([0]), np.array([n]), Lattice.of(BOUNDS, 1, False), BOUNDS)
    return zones_law.zones_of(records, whole, whole, np.array([0]), np.array([n + 1]), rate, PLAN)


def test_blocks_are_longer_where_paths_pay_to_be():
    n, q, rate = 10**8, np.arange(1, 31) / 31, 2.5e-4
    zones = zones_around(n, q, rate)
    assert len(zones) > 5 and zones[0].most >= PLAN.least_block
    assert zones[0].most in [math.floor(nats / rate / 30) for nats in PLAN.bends]
    for inner, outer in pairwise(zones):
        assert outer.most == 2 * inner.most
        assert inner.ranks.sum() < outer.ranks.sum()
        # what a block outside may lose more than one at a target, at all levels, is a share of what
        # a path pays to be there
        away = (int(inner.ranks[0]) - 1) // 2
        more = (outer.most - zones[0].most) * q.size * rate
        assert more <= PLAN.bends_farther * away * rate * (1 + 1e-9)
    assert zones[-1].most * rate <= PLAN.widest_block
    assert zones_law._count(zones) < PLAN.most_blocks
    assert zones_law._count([Zone(zones[0].most, *zones[-1][1:])]) > 20 * zones_law._count(zones)


def test_wide_ties_are_for_cells_and_long_rows_of_single_ranks_are_not():
    """The choice decides the cost alone; both draw from one law."""
    rng, q = np.random.default_rng(5), np.linspace(0.0, 1.0, 22)[1:-1]
    x = np.sort(rng.normal(0.0, 5.0, 60_000))
    tied = np.sort(np.where(np.arange(60_000) < 30_000, 0.0, x))
    many = replace(PLAN, most_records=1, most_blocks=1, most_read=2**23, most_narrow=2**20)
    for column, rate, kind in ((x, 0.25, PathLaw), (tied, 0.25, CoarseLaw), (x, 1e-4, CoarseLaw)):
        ranks = SortedOrder(column, None, (-100.0, 100.0))
        law = choice.law_of(ranks, q, rate)
        assert type(law) is kind
        assert law.draw(rng, 3).shape == (3, 20)
        blocks_of_records = replace(many, least_block=2**20)
        chosen = type(choice.law_of(ranks, q, rate, plan=blocks_of_records))
        assert chosen is (CoarseLaw if column is tied else PathLaw)


@pytest.mark.parametrize("form", ["lattice", "prior", "numbers"])
def test_wide_cells_and_the_narrower_ones_after_them_draw_the_law(monkeypatch, form):
    plan = replace(PLAN, spent=0.0, output_cost=math.inf)  # any rows are worth others
    q, rng = np.array([0.3, 0.55, 0.7]), np.random.default_rng(8)
    ranks = orders(monkeypatch, COLUMNS["an atom inside"], form, "at once")
    law = CoarseLaw(ranks, q, 0.4, widths=Widths(64.0, 0.0, 1), plan=plan)
    assert misfit(law, ranks, 3, form, rng) > SMALLEST_P
    last = law._narrower
    assert "_narrower" in vars(law) and last._widths == widths_of(ranks.n, q, 0.4, plan)
    assert last._narrower._widths.nats == plan.less_nats * last._widths.nats
    assert misfit(last, ranks, 3, form, rng) > SMALLEST_P


def test_wide_cells_fit_between_targets_and_lose_little():
    m, n, rate = 100, 10**6, 0.25
    q, gap = np.arange(1, m + 1) / (m + 1), rate * n / (m + 1)

    def wide(n, q):
        return wide_of(n, q, rate, widths_of(n, q, rate, PLAN), PLAN)

    nats, growth, most = wide(n, q)
    assert nats > 30.0 and 2.0 * rate <= gap % nats <= 2.0 and (growth, most) == (0.0, 1)
    some = np.sort(np.random.default_rng(0).random(m))  # of which no cells are whole parts
    assert wide(n, some) is None
    assert wide(10**9, q) is None  # too many blocks
    assert wide(n, np.array([0.5])) is None


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 1e-312, 1e205])
def test_ties_are_drawn_from_wide_cells_as_from_narrow_ones(scale):
    rng, q, rate = np.random.default_rng(5), np.arange(1, 31) / 31, 0.25
    x = np.clip(rng.normal(0.0, 0.05, 100_000), -1.0, 1.0)
    ranks = SortedOrder(
        np.sort(np.where(rng.random(x.size) < 0.5, 0.01, x)) * scale, None, (-scale, scale)
    )
    law = choice.law_of(ranks, q, rate)
    assert law._widths.nats > 20.0 and law._cells.entries < 20_000
    drawn, expected = law.draw(rng, 400), CoarseLaw(ranks, q, rate).draw(rng, 400)
    assert "_narrower" not in vars(law)  # wide ones did
    for level in (0, 3, 10, 15, 22, 29):
        assert stats.ks_2samp(drawn[:, level], expected[:, level]).pvalue > SMALLEST_P


@pytest.mark.slow
def test_rows_of_single_ranks_give_way_where_gaps_draw_paths_far_away():
    """No window that is much narrower than all ranks would do; both draw from one law.

    Rows of all ranks do where they are few.
    """
    rng, q, rate = np.random.default_rng(5), np.linspace(0.0, 1.0, 402)[1:-1], 0.5
    x = np.sort(rng.normal(0.0, 5.0, 3_000))
    ranks = SortedOrder(x, None, (-100.0, 100.0))
    whole = choice.law_of(ranks, q, rate)
    assert type(whole) is PathLaw and (whole._windows[1] - whole._windows[0]).max() == ranks.n
    plan = replace(PLAN, most_held=q.size * ranks.n // 3)
    law, exact = choice.law_of(ranks, q, rate, plan=plan), PathLaw(ranks, q, rate)
    assert type(law) is CoarseLaw
    with pytest.raises(TooWide):
        PathLaw(ranks, q, rate, most=plan.most_held)
    even = SortedOrder(np.linspace(-99.0, 99.0, 3_000), None, (-100.0, 100.0))
    assert type(choice.law_of(even, q, rate, plan=plan)) is PathLaw
    drawn, expected = law.draw(rng, 400), exact.draw(rng, 400)
    for level in (0, 50, 200, 320, 399):
        assert stats.ks_2samp(drawn[:, level], expected[:, level]).pvalue > SMALLEST_P


def test_short_rows_are_for_paths_at_any_rate_and_long_ones_for_cells():
    """Rows of cells take as long however few records there are."""
    rng, q = np.random.default_rng(5), np.linspace(0.0, 1.0, 302)[1:-1]
    for n, kind in ((1_000, PathLaw), (20_000, CoarseLaw)):
        ranks = SortedOrder(np.sort(rng.normal(0.0, 5.0, n)), None, (-100.0, 100.0))
        for rate in (1e-320, 1e-6, 0.03):
            law = choice.law_of(ranks, q, rate)
            assert type(law) is kind
            drawn = law.draw(rng, 2)
            assert drawn.shape == (2, 300) and (np.diff(drawn) >= 0.0).all()


def test_unsorted_records_are_released_where_no_proposal_is_beyond_reach(monkeypatch):
    """Ranks of no outputs at all are asked for then."""
    monkeypatch.setattr(choice_module, "ALL_READ", 1)  # else it is sorted, or counted
    monkeypatch.setattr(choice_module, "MANY_SORTED", 0)
    monkeypatch.setattr(choice_module, "MANY_POINTS", 0)
    x, q = np.random.default_rng(5).normal(0.0, 5.0, 300_000), np.arange(1, 10) / 10
    law = dpq.joint_exp_law(x, q, epsilon=0.01, bounds=(-100, 100), dither_rng=0)
    assert isinstance(law._paths, CoarseLaw) and -math.inf < law._paths._log_escape < -40.0
    assert law._paths._order.scans
    assert law._paths._order.fine_ranks(np.empty(0, dtype=np.int64)).dtype == np.int64
    assert (np.diff(law.sample(0, size=5)) >= 0.0).all()


def test_ranks_inside_of_huge_blocks_are_counted_without_their_records():
    """2^53 records on eight points: the blocks of a small budget hold 10^10 of them."""
    counts = dict(bounds=(0, 10), resolution=1, counts=np.full(8, 2**50))
    for m, epsilon in ((2, 1e-12), (9, 1e-40)):
        q = np.arange(1, m + 1) / (m + 1)
        out = dpq.joint_exp(np.arange(8.0), q, epsilon=epsilon, rng=0, **counts)
        assert out.shape == (m,) and (np.diff(out) >= 0.0).all()


def test_windows_are_for_single_ranks_where_blocks_would_be_but_not_wide_ones(monkeypatch):
    """Not rows of 50 million single ranks, where cells take a fifth of the time."""
    # no block of two records is short enough
    monkeypatch.setattr(choice, "zones_of", lambda *of: [Zone(1, of[3], of[4])])
    x = np.sort(np.random.default_rng(3).normal(0.0, 5.0, 60_000))
    ranks = Sample.of(x, (-100.0, 100.0)).order(np.random.default_rng(4))
    q = np.arange(1, 101) / 101
    for rate in (0.02, 0.1):
        guess = path.first_window(ranks, q, rate)
        half = path.first_narrow(q, ranks.n, rate, guess, PLAN)
        for most, law in ((half, PathLaw), (half - 1.0, CoarseLaw)):
            plan = replace(PLAN, most_records=0, most_scanned=0.0, most_narrow=most)
            assert type(choice.law_of(ranks, q, rate, plan=plan)) is law


@pytest.mark.parametrize("growth", [0.0, 1e-3, 0.5, 40.0])
def test_spans_are_as_wide_as_paths_pay_for(growth):
    m, rate, plan = 3, 0.01, replace(PLAN, widest=1e6)
    near = np.array([100, 2_000, 2_500]), np.array([120, 2_000, 9_000])
    stretch, until, span = spans_around(near, Widths(0.25, growth), rate, plan)
    stretch, nats = stretch.view(np.intp), plan.margin * 0.25
    for j in range(m):
        last = until[stretch[j] : stretch[j + 1]]
        assert (np.diff(last) >= 0).all() and last[-1] == np.iinfo(np.int64).max
        ranks = np.arange(0, 200_000, 7)
        found = span[stretch[j] + np.searchsorted(last, ranks)]
        away = rate * np.maximum(np.maximum(near[0][j] - ranks, ranks - near[1][j]), 0)
        exact = nats * np.sqrt(1.0 + growth * away**2 / (m + away))
        assert (found[away == 0.0] == nats).all()
        assert (np.abs(np.log2(found / exact)) < 1.0 / 8.0).all()
    widest = spans_around(near, Widths(0.25, growth), rate, replace(PLAN, widest=8.0)).span.max()
    assert widest <= 8.0 * 2 ** (1.5 / 8.0)


def many_tied(records, m):
    """Records of one value, at m levels."""
    read = Sample.of(np.zeros(1), (-100.0, 100.0), counts=np.array([records]))
    return read.order(np.random.default_rng(6)), np.arange(1, m + 1) / (m + 1)


def test_a_billion_tied_records_have_fine_points_of_their_own():
    """Where they share some, what paths gain elsewhere asks for all that is within reach."""
    ranks, q = many_tied(10**9, 60)
    law = choice.law_of(ranks, q, 2.5)
    assert isinstance(law, PathLaw) and law._log_escape <= -path.CERTIFICATE
    guess = path.first_narrow(q, ranks.n, 2.5, path.first_window(ranks, q, 2.5), PLAN)
    assert (np.subtract(*law._windows[::-1]) <= 2.2 * guess).all()


@pytest.mark.slow
@pytest.mark.parametrize("tied, rate", [(10**8, 0.0025), (10**9, 0.00025), (10**9, 0.0025)])
def test_long_parts_of_ties_draw_no_paths_away(tied, rate):
    """Hundreds of nats away a bridge has paid less than all its bends lose there."""
    law = choice.law_of(*many_tied(tied, 1_000), rate)
    assert isinstance(law, CoarseLaw)
    assert np.median(law._propose(np.random.default_rng(7), 32)[1]) > -7.0


@pytest.mark.slow
def test_leaves_between_ties_are_no_parts_of_cells():
    """What a cell holds is at one rank there, mostly; a bend would count from the cell's end."""
    values = np.arange(-100, 101) / 4.0
    counts = np.rint(4.4e6 * 0.05 * stats.norm.pdf(values, scale=5.0) / 0.2).astype(np.int64)
    order = Sample.of(values, (-100.0, 100.0), counts=counts).order(np.random.default_rng(6))
    for rate in (0.0006455, 0.000134):
        law = CoarseLaw(order, np.arange(1, 1_001) / 1_001, rate)
        assert np.median(law._propose(np.random.default_rng(7), 64)[1]) > -4.0


def test_ranks_take_half_the_memory_where_they_fit():
    """Of cells: as int32, which makes no difference, up to 2^31 records."""
    ranks, q = many_tied(10**5, 40)
    law = CoarseLaw(ranks, q, 0.01)
    tree = law._tree
    assert tree.least.dtype == tree.most.dtype == np.int32
    wide = tree._replace(least=tree.least.astype(np.int64), most=tree.most.astype(np.int64))
    found = []
    for each in (tree, wide):
        cells = law._rows(each)
        cells.forward()
        found.append((cells.log_total, cells.entries, cells.paths(20, np.random.default_rng(1))))
    for narrow, same in zip(*found, strict=True):
        np.testing.assert_array_equal(narrow, same)
    for n, kind in ((2**31 - 1, np.int32), (2**31, np.int64)):
        lattice = Lattice.of(BOUNDS, 1, False)
        records = CountedOrder(np.array([3]), np.array([n]), lattice, BOUNDS)
        tied = CoarseLaw(records, np.array([0.25, 0.75]), 1e-9, reach=n)
        assert tied._tree.most.dtype == kind and tied._tree.most.max() == n
        assert np.isfinite(tied._log_total)


PARTED = {
    "spread": (lambda: np.sort(np.random.default_rng(1).normal(0.0, 5.0, 2000)), 40, 0.1),
    "crowded": (lambda: np.sort(np.random.default_rng(1).normal(0.0, 5.0, 150)), 70, 0.02),
    "tied": (lambda: np.repeat([0.0, 1.0, 50.0], [900, 1000, 100]), 40, 0.02),
}


def parted(name):
    """Cells whose rows can be computed in parts, and all that they hold in one."""
    column, m, rate = PARTED[name]
    read = Sample.of(column(), (-100.0, 100.0), resolution=0.25)
    ranks = read.order(np.random.default_rng(5))
    law = CoarseLaw(ranks, np.arange(1, m + 1) / (m + 1), rate)
    return law, law._cells


@pytest.mark.parametrize("before", [0, 1, 3, 32])
@pytest.mark.parametrize("name", PARTED)
def test_rows_in_parts_are_those_that_are_kept(monkeypatch, name, before):
    """And so are paths, however many levels of a part are drawn by the one before."""
    monkeypatch.setattr(kernel, "BEFORE", before)
    monkeypatch.setattr(kernel, "GIVEN", 0.0)
    cells = parted(name)[1]
    whole = [cells.paths(1, np.random.default_rng(seed)) for seed in range(20)]
    log_total, rows = cells.log_total, np.diff(cells.start.view(np.intp)).max()
    assert cells.parts == 1
    for kept, each in ((0, 1), (3 * rows, 1), (0, 5 * rows)):
        cells.forward(0, kept, each)
        assert cells.parts > 2 and cells.log_total == log_total
        draw = partial(cells.paths, 1)
        with ThreadPoolExecutor(2) as threads:
            drawn = list(threads.map(draw, map(np.random.default_rng, range(20))))
        np.testing.assert_array_equal(drawn, whole)
    cells.forward()
    assert cells.parts == 1


@pytest.mark.parametrize("name", PARTED)
def test_many_paths_by_parts_follow_the_same_law(monkeypatch, name):
    """They are drawn in another order, where runs of some go on before what is held."""
    monkeypatch.setattr(kernel, "BEFORE", 0)
    monkeypatch.setattr(kernel, "GIVEN", 0.0)
    law, cells = parted(name)
    whole = law._tree.ranks(cells.paths(1500, np.random.default_rng(1)).view(np.intp))[0]
    cells.forward(0, 0, 1)
    ranks = law._tree.ranks(cells.paths(1500, np.random.default_rng(2)).view(np.intp))[0]
    p = stats.ks_2samp(whole, ranks, axis=0, method="asymp").pvalue
    assert p.min() >= SMALLEST_P


@pytest.mark.parametrize("form", ["lattice", "numbers"])
@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_draws_by_rows_in_parts_follow_the_law(monkeypatch, form, rate):
    """Where outputs share cells, and each row is a part."""
    monkeypatch.setattr(kernel, "BEFORE", 0)
    monkeypatch.setattr(kernel, "GIVEN", 0.0)
    rng, q = np.random.default_rng(2), np.array([0.2, 0.5, 0.55])
    records = [0, 0, 1, 2, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6, 6]
    ranks = orders(monkeypatch, records, form, "at once")
    law = CoarseLaw(ranks, q, rate, reach=16, widths=Widths(3.0 * rate, 9.0))
    law._cells.forward(0, 0, 1)
    assert law._cells.parts == 3
    assert misfit(law, ranks, 3, form, rng) > SMALLEST_P


@pytest.mark.slow
def test_rows_in_parts_take_less_memory():
    x = np.sort(np.random.default_rng(0).normal(0.0, 5.0, 10**6))
    ranks = Sample.of(x, (-100.0, 100.0)).order(np.random.default_rng(6))
    cells = choice.law_of(ranks, np.arange(1, 401) / 401, 0.01)._cells
    cells.forward(0, 0)  # what was kept goes
    tracemalloc.start()
    cells.forward(0, 0, 2**17)
    paths = cells.paths(4, np.random.default_rng(1))
    in_parts = tracemalloc.get_traced_memory()[1]
    cells.forward()
    whole = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert cells.entries > 2**20 and in_parts < whole / 3
    assert paths.shape == (4, 400)
