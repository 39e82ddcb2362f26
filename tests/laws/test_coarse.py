"""Draws from blocks of ranks: the law of single ranks, whatever is tied and however records lie."""

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
from dpq_fast._kernels import uniform
from dpq_fast.data import dither, order, sample
from dpq_fast.data.blocks import Blocks
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.order import SortedOrder
from dpq_fast.data.sample import Sample
from dpq_fast.laws import coarse
from dpq_fast.laws.coarse import CoarseLaw
from dpq_fast.laws.path import PathLaw

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
    monkeypatch.setattr(dither, "EAGER_RECORDS", 0 if way != "at once" else 100)
    monkeypatch.setattr(dither, "WHOLE_BLOCK", 3)
    monkeypatch.setattr(order, "FEW_RECORDS", 0)
    if way == "selected":
        monkeypatch.setattr(sample, "FEW_POINTS", 1)
        monkeypatch.setattr(sample, "MANY_POINTS", 1)
        monkeypatch.setattr(sample, "SORTED_RECORDS", 0)
        x = np.random.default_rng(len(x)).permutation(x)
    if way == "counted":
        values, counts = np.unique(x, return_counts=True)
        read = Sample.of(values, BOUNDS, counts=counts, **options)
    else:
        read = Sample.of(x, BOUNDS, **options)
    return read.order(np.random.default_rng(5))


@pytest.mark.parametrize("way", ["at once", "sorted", "counted", "selected"])
@pytest.mark.parametrize("form", FORMS)
def test_draws_follow_the_law_of_single_ranks(monkeypatch, form, way):
    rng = np.random.default_rng(1)
    for m, most, (name, records) in zip(
        (1, 2, 2, 1, 2, 2, 2), (2, 2, 3, 4, 5, 3, 4), COLUMNS.items(), strict=True
    ):
        ranks, q = orders(monkeypatch, records, form, way), np.linspace(0.0, 1.0, m + 2)[1:-1]
        drawn = CoarseLaw(ranks, q, 0.12, most).draw(rng, 3_000)
        law = PathLaw(ranks, q, 0.12)
        assert (drawn[:, 1:] >= drawn[:, :-1]).all()
        if form == "numbers":  # where no record is, the density is that of a cell's lower half
            cells = np.ceil(drawn).astype(int) - 1
            log_prob = {
                c: law.log_prob(np.array(c) + 0.5) - math.log(2.0) * (len(set(c)) < m)
                for c in combinations_with_replacement(range(POINTS - 1), m)
            }
        else:
            cells = ranks.lattice.points_of(drawn)
            log_prob = {
                c: law.log_prob(np.array(c))
                for c in combinations_with_replacement(range(POINTS), m)
            }
        assert np.logaddexp.reduce(list(log_prob.values())) == pytest.approx(0.0, abs=1e-9)
        seen = dict.fromkeys(log_prob, 0)
        for cell in cells.tolist():
            seen[tuple(cell)] += 1
        expected = 3_000 * np.exp(list(log_prob.values()))
        observed = np.array(list(seen.values()))
        often = expected >= 5.0
        expected = np.append(expected[often], expected[~often].sum())
        observed = np.append(observed[often], observed[~often].sum())
        some = expected > 0.0
        assert stats.chisquare(observed[some], expected[some]).pvalue > SMALLEST_P, name


@given(
    st.lists(st.integers(0, 40), max_size=60),
    st.integers(2, 9),
    st.lists(st.integers(0, 2**20), max_size=30),
    st.sampled_from(["lattice", "dither", "numbers"]),
    st.booleans(),
)
def test_outputs_have_ranks_near_those_of_their_blocks(records, most, outputs, form, selected):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "SORTED_RECORDS", 0 if selected else 100)
        patch.setattr(sample, "FEW_POINTS", 1)
        patch.setattr(dither, "EAGER_RECORDS", 0)
        patch.setattr(dither, "WHOLE_BLOCK", 4)
        patch.setattr(order, "FEW_RECORDS", 0)
        ranks = Sample.of(np.array(records, float), (0.0, 40.0), **FORMS[form]).order(0)
        blocks = Blocks(ranks, most)
        rank, width, left = blocks.intervals(np.array([0]), np.array([ranks.n + 1]))
        assert (np.diff(rank) >= 0).all() and (width > 0.0).all()
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
        own = rank[np.maximum(np.searchsorted(left, points) - 1, 0)]
        assert (np.abs(ranks.fine_ranks(points) - own) <= blocks.slack).all()
        # a part of the ranks shows the same blocks
        a, b = sorted((most % (ranks.n + 1), len(outputs) % (ranks.n + 1)))
        some = blocks.intervals(np.array([a]), np.array([b - a + 1]))
        kept = (rank >= a) & (rank <= b)
        for part, whole in zip(some, (rank, width, left), strict=True):
            assert part.tolist() == whole[kept].tolist()


@pytest.mark.parametrize("fault", ["slack", "rank", "log_uniforms"])
def test_wrong_bounds_ranks_and_variates_are_noticed(monkeypatch, fault):
    lattice = Lattice.of(BOUNDS, 1.0, False)
    ranks, q = SortedOrder(np.array(COLUMNS["no atom"]), lattice, BOUNDS), np.array([0.3, 0.6])
    law, most, rate = PathLaw(ranks, q, 0.3), 6, 0.3
    if fault == "rank":
        monkeypatch.setattr(SortedOrder, "fine_ranks", lambda self, points: 0 * points)
    if fault == "log_uniforms":
        monkeypatch.setattr(uniform, "log_uniforms", lambda size, rng: np.full(size, -2.0))
    drawn = CoarseLaw(ranks, q, rate, most)
    if fault == "slack":
        drawn._slack = 0
    outputs = drawn.draw(np.random.default_rng(0), 4_000)
    places = list(combinations_with_replacement(range(POINTS), 2))
    expected = 4_000 * np.exp([law.log_prob(np.array(place)) for place in places])
    observed = np.zeros(len(places))
    np.add.at(observed, [places.index(tuple(output)) for output in outputs.tolist()], 1)
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue < SMALLEST_P


def test_small_rates_are_drawn_from_blocks_and_no_release_makes_the_law():
    x = np.sort(np.random.default_rng(3).normal(0.0, 5.0, 20_000))
    q, options = np.arange(1, 10) / 10, dict(epsilon=2e-3, bounds=(-100, 100))
    law = dpq.joint_exp_law(x, q, dither=False, **options)
    assert isinstance(law._paths, CoarseLaw)
    outputs = law.sample(0, size=50)
    assert "_exact" not in vars(law._paths)
    assert outputs.shape == (50, 9) and (np.diff(outputs) >= 0.0).all()
    exact = PathLaw(law.column.order(), q, law._paths._rate)
    assert law.log_prob(outputs[0]) == exact.log_prob(law.column.locate(outputs[0]))
    assert law.sample(0, size=0).shape == (0, 9)


def test_block_sizes_bound_the_loss():
    for n, m, rate in (
        (10**6, 30, 2.5e-5),
        (10**6, 300, 2.5e-3),
        (10**9, 9, 1e-9),
        (10**6, 1, 1.0),
    ):
        for entries in ((n + 1) * m, 2**20, 2**10):
            most = coarse.block_size(n, m, rate, entries)
            if most is not None:
                assert 3 <= most <= n + 2 and most % 2 == 1
                assert rate * m * most <= coarse.MOST_LOSS
    assert coarse.block_size(10**6, 1, 1.0, 10**6) is None
    assert coarse.block_size(10**6, 1, 1e-3, coarse.FEW_ENTRIES) is None


def test_parts_that_were_asked_for_are_split_as_they_were_drawn():
    rng, parts = np.random.default_rng(0), dither._Parts()
    parts.add(np.array([64]), 6, np.array([40]), np.array([7]))
    drawn = parts.records(0, rng).tolist()
    parts.split(np.array([0]), np.array([60]), 3, rng)
    assert len(parts.at) > 5
    again = np.concatenate([parts.records(i, rng) for i in range(len(parts.at))]).tolist()
    assert again == drawn
    assert dither._Cell(parts, 64, 128).order(3, 11, rng).tolist() == [x - 64 for x in drawn[3:11]]
    assert parts.start.tolist() == [7 + np.searchsorted(drawn, at) for at in parts.at]


def test_a_large_cell_is_split_without_its_records():
    rng, parts, count = np.random.default_rng(0), dither._Parts(), 5 * dither.COUNTED_BITS + 3
    parts.add(np.array([0, 2**24]), 24, np.array([count, 7]), np.array([0, count]))
    parts.split(np.array([0]), np.array([count]), 2**14, rng)
    assert not parts._drawn
    assert parts._count.max() < 2**14 and parts._count.sum() == count + 7
    assert (parts.start == np.cumsum(parts._count) - parts._count).all()
    share = parts._count[:-1] / np.exp2(parts._bits[:-1] - 24) / count
    assert abs(share - 1.0).max() < 0.1
    cuts = parts.cuts(2**14)
    assert (np.diff(cuts.above) < 2**15).all()
