"""What paths weigh at most that pass some ranks: against rows of all ranks, and in laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast._kernels import intervals as intervals_kernel
from dpq_fast._kernels import passing as kernel
from dpq_fast._kernels.scan import Scan
from dpq_fast.data.sample import Sample
from dpq_fast.laws import coarse, passing
from dpq_fast.laws.coarse import CoarseLaw
from dpq_fast.laws.outside import Outside
from dpq_fast.laws.path import CERTIFICATE, PathLaw
from dpq_fast.laws.rows import scan_of

from .test_coarse import FORMS, SMALLEST_P, misfit, orders

FEW = [0, 0, 1, 2, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6, 6]


def small(monkeypatch, nats):
    """Bounds of cells of so many nats, however few ranks and levels there are."""
    monkeypatch.setattr(passing, "MOST_NATS", nats)
    monkeypatch.setattr(passing, "WIDER", math.inf)
    monkeypatch.setattr(passing, "LEAST_APART", 0.0)


def log_through(order, q, rate, level, first, last):
    """ln of what the paths weigh whose rank at one level is between two."""
    within = order.intervals(np.array([0]), np.array([order.n + 1]))
    begin, end = np.zeros(q.size, dtype=np.int64), np.full(q.size, order.n)
    begin[level], end[level] = first, min(last, order.n)
    ranges = intervals_kernel.ranges(begin, end, within.rank)
    if ranges is None:
        return -math.inf
    part = scan_of(order, q, rate, within, *ranges)
    Scan.forward(part)
    return part.log_total


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=60),
    st.lists(st.integers(1, 99), min_size=1, max_size=7, unique=True),
    st.floats(0.02, 2.0),
    st.sampled_from(list(FORMS)),
    st.sampled_from(["sorted", "counted"]),
    st.sampled_from([0.1, 0.7, 3.0]),
    st.sampled_from([0, 3]),
)
def test_nothing_that_passes_a_block_weighs_more(records, levels, rate, form, way, nats, heavy):
    with pytest.MonkeyPatch.context() as monkeypatch:
        ranks = orders(monkeypatch, records, form, way)
        small(monkeypatch, nats)
        monkeypatch.setattr(passing, "MOST_HEAVY", heavy)
        monkeypatch.setattr(passing, "HEAVY", 0.0)
        q = np.array(sorted(levels)) / 100.0
        bounds = passing.passing(ranks, q, rate, ranks.n)
        if bounds is None:  # a cell would be less than a rank
            assert nats < 1.2 * rate
            return
        assert bounds.log_beyond == -math.inf
        assert_bounds(bounds, ranks, q, rate)


def assert_bounds(bounds, ranks, q, rate):
    """Against all paths that pass each block, by rows of single ranks."""
    exact = PathLaw(ranks, q, rate).log_normalizer
    assert np.logaddexp(bounds.log_all, bounds.log_beyond) >= exact - 1e-9
    blocks = ranks.n // bounds.ranks + 1
    for level, row in enumerate(bounds.log_passing):
        log_passing = np.full(blocks + row.size, -math.inf)  # none within rows elsewhere
        first = bounds.first_block[level]
        log_passing[first : first + row.size] = row
        for block, bound in enumerate(log_passing[:blocks].tolist()):
            first = block * bounds.ranks
            passes = log_through(ranks, q, rate, level, first, first + bounds.ranks - 1)
            assert passes <= np.logaddexp(bounds.log_all + bound, bounds.log_beyond) + 1e-6
    first, last, log_strayed = bounds.windows()
    assert Outside(ranks, q, rate, first, last).log_total <= log_strayed + 1e-9


@pytest.mark.parametrize("certificate", [2.0, 10.0])
@pytest.mark.parametrize("tied", [0, 200])
@pytest.mark.parametrize("resolution", [None, 0, 1.0])
def test_wide_cells_say_what_is_beyond_the_rows_of_others(
    monkeypatch, resolution, tied, certificate
):
    """What they leave is not little, and counts."""
    rng = np.random.default_rng(5)
    x = rng.uniform(0.0, 1e4, 400)
    x[:tied] = 3e3
    read = Sample.of(np.sort(x), (0.0, 1e4), resolution=resolution)
    ranks, q, rate = read.order(rng), np.arange(1, 6) / 6, 0.5
    small(monkeypatch, 1.0)
    whole = passing.passing(ranks, q, rate, ranks.n)
    monkeypatch.setattr(passing, "MANY", 0)
    monkeypatch.setattr(passing, "WIDE", 2.0)
    monkeypatch.setattr(passing, "CERTIFICATE", certificate)
    monkeypatch.setattr(passing, "ROWS_LOSE", 0.0)
    bounds = passing.passing(ranks, q, rate, ranks.n)
    assert bounds.log_all - 4.0 * certificate - 10.0 < bounds.log_beyond < bounds.log_all
    assert bounds.log_passing.shape[1] < whole.log_passing.shape[1]
    assert_bounds(bounds, ranks, q, rate)


@pytest.mark.parametrize("tied", [0.0, 0.5])
def test_bounds_lose_little(tied):
    """As much as they say, about; and blocks where paths are not weigh much less."""
    x = np.random.default_rng(3).normal(0.0, 5.0, 20_000)
    x[: int(tied * x.size)] = 0.0
    order = Sample.of(np.sort(x), (-100.0, 100.0)).order(np.random.default_rng(4))
    q, rate = np.arange(1, 61) / 61, 0.02
    bounds = passing.passing(order, q, rate, order.n)
    exact = PathLaw(order, q, rate).log_normalizer
    assert exact <= bounds.log_all <= exact + 1.5 * bounds.lost
    near, (first, last, log_strayed) = bounds.near(), bounds.windows()
    assert (first <= near[0]).all() and (near[1] <= last).all()
    assert log_strayed <= exact - CERTIFICATE
    assert float((last - first).mean()) < (0.9 if tied else 0.6) * order.n


def test_lists_are_for_cells_that_hold_very_many_outputs(monkeypatch):
    """All records are tied: outputs are between these and the bounds, many in one cell."""
    ranks = Sample.of(np.zeros(4_000), (-1.0, 1e6), resolution=0).order(np.random.default_rng(1))
    q, rate = np.arange(1, 101) / 101, 0.05
    exact = PathLaw(ranks, q, rate).log_normalizer
    listed = passing.passing(ranks, q, rate, ranks.n)
    monkeypatch.setattr(passing, "MOST_HEAVY", 0)
    others = passing.passing(ranks, q, rate, ranks.n)
    assert exact <= listed.log_all < exact + 10.0 < others.log_all - 30.0


@pytest.mark.parametrize("form", ["lattice", "dither", "numbers"])
@pytest.mark.parametrize("way", ["sorted", "counted"])
def test_draws_follow_the_law_where_paths_leave_windows_by_bounds(monkeypatch, form, way):
    law, ranks, rng = narrow(monkeypatch, form, way)
    assert law._log_escape > math.log(0.02)
    assert misfit(law, ranks, 3, form, rng) > SMALLEST_P


@pytest.mark.parametrize("fault", ["bound", "windows"])
def test_wrong_bounds_are_noticed(monkeypatch, fault):
    found = passing.Passing.windows

    def wrong(bounds):
        first, last, log_strayed = found(bounds)
        if fault == "bound":  # paths outside are as if they were none
            return first, last, log_strayed - 100.0
        return first + 2, last, log_strayed - 100.0

    monkeypatch.setattr(passing.Passing, "windows", wrong)
    law, ranks, rng = narrow(monkeypatch, "lattice", "sorted")
    assert misfit(law, ranks, 3, "lattice", rng, 20_000) < SMALLEST_P


def narrow(monkeypatch, form, way):
    """A law whose windows by bounds leave out what is not little."""
    ranks = orders(monkeypatch, [*FEW, *FEW, *FEW], form, way)
    small(monkeypatch, 0.5)
    monkeypatch.setattr(passing, "ROWS_LOSE", -0.6)
    for module in (passing, coarse):
        monkeypatch.setattr(module, "CERTIFICATE", -1.0)
    monkeypatch.setattr(coarse, "WINDOWED", 1)
    monkeypatch.setattr(coarse, "MANY_ENTRIES", 0)
    q = np.array([0.2, 0.5, 0.55])
    law = CoarseLaw(ranks, q, 0.4, nats=0.3, growth=1.0, most=2, guess=60)
    assert law._window is not None and law._seen_by_bounds is not None
    return law, ranks, np.random.default_rng(4)


def test_there_are_no_bounds_where_an_order_would_read_all_records(monkeypatch):
    small(monkeypatch, 0.5)
    ranks = orders(monkeypatch, FEW, "dither", "selected")
    assert passing.passing(ranks, np.array([0.3, 0.6]), 0.1, 15) is None


def test_bounds_are_for_targets_that_are_some_nats_apart_but_not_many():
    rng = np.random.default_rng(1)
    ranks = Sample.of(np.arange(2_000.0), (0.0, 2e3)).order(rng)
    q = np.arange(1, 51) / 51
    assert passing.passing(ranks, q, 0.02, 2_000) is None
    assert passing.passing(ranks, q, 0.1, 2_000) is not None
    assert passing.passing(ranks, q, 5.0, 2_000) is None
    # as many nats for very many levels
    many, ranks = np.arange(1, 1_201) / 1_201, Sample.of(np.arange(2e4), (0.0, 2e4)).order(rng)
    assert passing.passing(ranks, many, 0.059, 20_000) is None
    assert passing.passing(ranks, many, 0.061, 20_000) is not None


def test_rows_are_short_where_ties_send_paths_far_away(monkeypatch):
    """Windows of a walk would not do, and cells that grow from targets on draw paths elsewhere."""
    x = np.random.default_rng(7).normal(0.0, 5.0, 10**6)
    x[: x.size // 2] = 0.0
    order = Sample.of(np.sort(x), (-100.0, 100.0)).order(np.random.default_rng(1))
    q, rate = np.arange(1, 401) / 401, 0.003
    law = CoarseLaw(order, q, rate)
    assert law._window is not None and law._log_escape < -CERTIFICATE
    away = law._rate * np.maximum(law._near[0] - law._whole, law._whole - law._near[1])
    assert away.max() > 300.0  # and that is where cells are the narrowest
    monkeypatch.setattr(coarse, "passing", lambda *asked: None)
    other = CoarseLaw(order, q, rate)
    assert other._window is None and law._log_total < other._log_total
    points, log_accept = law._propose(np.random.default_rng(2), 200)[:2]
    assert (points[:, 1:] >= points[:, :-1]).mean() > 0.99
    assert np.exp(np.minimum(log_accept, 0.0)).mean() > 0.01


def test_rows_are_as_without_bounds_where_windows_do_not_do(monkeypatch):
    x = np.sort(np.random.default_rng(7).normal(0.0, 5.0, 10**6))
    order = Sample.of(x, (-100.0, 100.0)).order(np.random.default_rng(1))
    q, rate = np.arange(1, 401) / 401, 0.003
    assert CoarseLaw(order, q, rate)._window is not None
    monkeypatch.setattr(passing, "ROWS_LOSE", -60.0)  # too narrow, as it turns out
    law = CoarseLaw(order, q, rate)
    monkeypatch.setattr(coarse, "passing", lambda *asked: None)
    other = CoarseLaw(order, q, rate)
    assert law._window is None and law._log_strayed == -math.inf
    assert law._widths == other._widths and law._seen_by_bounds is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(target=np.empty(0)), "levels must be some, each with a row"),
        (dict(volume=np.ones(12)), "cells must be some whole blocks"),
        (dict(rising=np.ones(24)), "cells must be some whole blocks"),
        (dict(rate=3.0), "cells have a rank or more, and 8 nats or less"),
        (dict(rate=0.0), "cells have a rank or more, and 8 nats or less"),
        (dict(end=np.array([16, 12], dtype=np.uintp)), "rows are some whole blocks"),
        (dict(first=np.array([16, 16], dtype=np.uintp)), "rows are some whole blocks"),
        (dict(target=np.array([9.0, 9.0])), "targets and rows ascend"),
        (dict(target=np.array([9.0, 1_290.0])), "targets and rows ascend"),
        (dict(heavy=np.array([3, 3], dtype=np.uintp)), "heavy cells ascend"),
        (dict(heavy=np.array([16], dtype=np.uintp)), "heavy cells ascend"),
    ],
)
def test_bad_arrays_are_refused(change, message):
    given_arrays = dict(
        target=np.array([9.0, 20.0]),
        rate=0.1,
        ranks=3.0,
        rest=1.0,
        rising=np.ones(16),
        volume=np.ones(16),
        falling=np.ones(16),
        point=0.0,
        first=np.zeros(2, dtype=np.uintp),
        end=np.full(2, 16, dtype=np.uintp),
        heavy=np.empty(0, dtype=np.uintp),
    )
    assert math.isfinite(kernel.log_passing(**given_arrays)[0])
    with pytest.raises(ValueError, match=message):
        kernel.log_passing(**(given_arrays | change))
