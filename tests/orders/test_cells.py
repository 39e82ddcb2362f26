"""Records that are found again by cells: kernel, refinement, places and ranks, against sorting."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpq_fast._kernels import select as kernel
from dpq_fast.data.histogram import Bins
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.passes import Chunks
from dpq_fast.data.queries import (
    AnyMissing,
    BinCounts,
    CellCounts,
    PointCounts,
    Sums,
    TakenBetween,
    TakenByKey,
)
from dpq_fast.orders import cells as cells_module
from dpq_fast.orders import selected as selected_module
from dpq_fast.orders.buckets import BucketCounts, Tally
from dpq_fast.orders.cells import CountedCells
from dpq_fast.orders.likely import Likely
from dpq_fast.orders.selected import SelectedOrder
from dpq_fast.orders.sorted import SortedOrder

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
# no place that has to be in order


def expected_cells(query, values):
    """Of a query, one value after another."""
    state = query.start()
    scale = query.scale
    for value in np.clip(values, query.low, query.high) + 0.0:
        if math.isnan(value):
            state.count[-1] += 1
        for r, (lo, hi) in enumerate(zip(query.lo, query.hi, strict=True)):
            if lo <= value <= hi:
                place = (value * 0.5 - lo * 0.5) * scale[r]
                part = int(min(max(place, 0.0), query.parts - 1.0))
                state.count[r * query.parts + part] += 1
                state.least[r, part] = min(state.least[r, part], value)
                state.most[r, part] = max(state.most[r, part], value)
    return state


def assert_same(one, other):
    for name in ("count", "least", "most"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@given(
    st.lists(NUMBERS, max_size=50),
    st.lists(FINITE, min_size=2, max_size=8, unique_by=lambda x: x + 0.0).map(sorted),
    st.tuples(FINITE, FINITE).map(sorted).filter(lambda ends: ends[0] < ends[1]),
    st.sampled_from([1, 2, 3, 64]),
)
@example([0.0, -0.0, 5e-324, -5e-324], [-5e-324, 5e-324], [-1.0, 1.0], 4)
@example([1.7e308, -1.7e308, math.inf, -math.inf], [-1.7e308, 1.7e308], [-1.7e308, 1.7e308], 64)
def test_cells_hold_what_is_between_their_ends(values, ends, bounds, parts):
    ends = ends[: len(ends) // 2 * 2]
    query = CellCounts(*bounds, np.array(ends[::2]), np.array(ends[1::2]), parts)
    values = np.array(values, dtype=np.float64)
    state = query.start()
    with np.errstate(over="ignore"):
        query.step(state, values)
        assert_same(state, expected_cells(query, values))
        split = query.start()
        query.step(split, values[1::2].copy())
        other = query.start()
        query.step(other, values[::2].copy())
        assert_same(query.combine(other, split), state)


def test_cells_refuse_buffers_that_do_not_fit():
    one, count = np.zeros(1), np.zeros(5, dtype=np.int64)
    least, most = np.zeros((1, 4)), np.zeros((1, 4))
    kernel.cells(0.0, 1.0, one, one, one, one, count, least, most)
    with pytest.raises(ValueError, match="one entry for each range"):
        kernel.cells(0.0, 1.0, one, np.zeros(2), one, one, count, least, most)
    with pytest.raises(ValueError, match="one entry for each range"):
        kernel.cells(0.0, 1.0, one, one, one, one, count, np.zeros((2, 4)), most)
    with pytest.raises(ValueError, match="one entry for each cell, and one more"):
        kernel.cells(0.0, 1.0, one, one, one, one, count[:4], least, most)
    with pytest.raises(ValueError, match="one entry for each cell, and one more"):
        kernel.cells(0.0, 1.0, one, one, one, one, count, least, np.zeros((1, 3)))


COLUMNS = {
    "empty": np.empty(0),
    "one": np.array([3.0]),
    "tied": np.full(500, 2.5),
    "normal": np.random.default_rng(0).normal(0, 5, 3_000),
    "ties": np.round(np.random.default_rng(1).normal(0, 5, 3_000)),
    "far": np.append(np.random.default_rng(2).normal(0, 1e-9, 2_000), [90.0, -1e300, math.inf]),
    "ends": np.append(np.full(700, -100.0), np.full(600, 100.0)),
    "missing": np.where(np.arange(2_000) % 3 == 0, np.nan, np.arange(2_000) * 0.01),
    "huge": np.random.default_rng(3).standard_cauchy(2_000) * 1e200,
}
BOUNDS = [(-100.0, 100.0), (-1e9, 1e9), (-1.7e308, 1.7e308)]


@pytest.fixture(params=["plain", "crowded"])
def crowding(request, monkeypatch):
    if request.param == "crowded":  # so that cells are refined, more than once
        monkeypatch.setattr(cells_module, "COLLECTED", 20)
        monkeypatch.setattr(selected_module, "FULL", 3)
        monkeypatch.setattr(cells_module, "PARTS", 16)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("resolution", [0.0, 1.0])
def test_order_over_cells_is_that_of_sorted_records(name, bounds, resolution, crowding):
    if resolution and bounds[1] > 1e300:
        resolution = 1e300
    column = COLUMNS[name]
    lattice = Lattice.of(bounds, resolution, False)
    passes = Chunks.of_array(column, 1)
    cells = CountedCells(passes, *bounds, lattice)
    assert cells.missing == np.isnan(column).sum()
    ordered = np.sort(column[~np.isnan(column)])
    order = SelectedOrder(passes, cells, lattice, bounds)
    expected = SortedOrder(ordered, lattice, bounds)
    assert order.n == expected.n
    if not order.n:
        return
    for first, count in (([0], [1]), ([order.n // 2], [3]), ([0, order.n // 2], [5, 9])):
        first, count = np.array(first), np.array(count)
        count = np.minimum(count, order.n + 1 - first)
        order.prepare(first, count)
        for one, other in zip(
            order.intervals(first, count), expected.intervals(first, count), strict=True
        ):
            np.testing.assert_array_equal(one, other)
    outputs = np.array([-50.0, 0.0, 0.5, 100.0]) if lattice is None else np.array([0, 7, 110])
    outputs = outputs.clip(*(bounds if lattice is None else (0, lattice.points - 1)))
    np.testing.assert_array_equal(order.ranks_of(outputs), expected.ranks_of(outputs))


def test_places_lie_between_the_ends_of_their_cells():
    column = COLUMNS["normal"]
    order = SelectedOrder(
        Chunks.of_array(column, 1),
        CountedCells(Chunks.of_array(column, 1), -100.0, 100.0, None),
        None,
        (-100.0, 100.0),
    )
    places = np.arange(column.size)
    share = order._counted.around(places)[2]
    assert ((0.0 < share) & (share < 1.0)).all()
    width = 200.0 / cells_module.PARTS
    assert (np.abs(order.spread(places) - np.sort(column)) < width).all()


def test_only_cells_that_meet_a_window_are_asked_for():
    passes = Chunks.of_array(COLUMNS["normal"], 1)
    cells = CountedCells(passes, -100.0, 100.0, None)
    plan = cells.plan(np.array([100, 2_000]), np.array([120, 2_001]))
    begin, count = (np.array(each) for each in (plan.start, plan.count))
    near = ((begin < 120) & (begin + count > 100)) | ((begin <= 2_000) & (begin + count > 2_000))
    assert near.all() and 0 < count.sum() < 200


def test_cells_follow_from_the_values_alone(monkeypatch):
    """Not from their order, nor from how they are split."""
    monkeypatch.setattr(cells_module, "COLLECTED", 50)
    monkeypatch.setattr(selected_module, "FULL", 5)
    column = COLUMNS["far"]
    windows = np.array([100, 1_000]), np.array([120, 1_050])
    found = []
    for seed in range(3):
        values = np.random.default_rng(seed).permutation(column)
        passes = Chunks(lambda values=values, seed=seed: np.array_split(values, seed + 1), 1)
        cells = CountedCells(passes, -1e9, 1e9, None)
        plan = cells.plan(*windows)
        found.append([*map(np.ndarray.tolist, (plan.start, plan.count, plan.least, plan.most))])
        assert cells.collect(plan).size == plan.count[~plan.tied].sum()
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) > 2  # told apart


@pytest.mark.parametrize("late", [1, 2])
def test_records_that_change_between_passes_are_refused(late, monkeypatch):
    monkeypatch.setattr(cells_module, "COLLECTED", 20)
    monkeypatch.setattr(selected_module, "FULL", 10)
    monkeypatch.setattr(cells_module, "PARTS", 16)
    calls = []

    def batches():
        calls.append(0)
        return [np.linspace(0.0, 0.01, 100 + (len(calls) > late))]

    cells = CountedCells(Chunks(batches, 1), 0.0, 100.0, None)
    with pytest.raises(ValueError, match="must give the same records at every pass"):
        cells.collect(cells.plan(np.array([10]), np.array([12])))


def test_ranges_too_narrow_for_parts_are_collected_whole(monkeypatch):
    monkeypatch.setattr(cells_module, "COLLECTED", 2)
    monkeypatch.setattr(selected_module, "FULL", 1)
    column = np.repeat([0.0, 5e-324, 1e-323], 4)
    cells = CountedCells(Chunks.of_array(column, 1), -1.0, 1.0, None)
    plan = cells.plan(np.array([0]), np.array([12]))
    np.testing.assert_array_equal(cells.collect(plan), column)


def queries():
    where = kernel.Map(-10.0, 10.0, 64, origin=-10.0, scale=3.2)
    lattice = Lattice.of((-10.0, 10.0), 0.5, True)
    wanted = np.zeros(65, dtype=np.uint8)
    wanted[10:20] = 2
    lo, hi = np.array([-8.0, 0.0]), np.array([-7.5, 9.0])
    yield PointCounts(lattice)
    yield BinCounts(Bins.uniform(-10.0, 10.0, 7))
    yield BinCounts(Bins.geometric(1.5, 0.0, 50.0, below=True), negate=True)
    yield BinCounts(Bins.of([-5.0, -5.0, 0.0, 3.5, math.inf]))
    yield Sums(10.0, -50, 50)
    yield AnyMissing()
    yield BucketCounts(where, 64)
    yield BucketCounts(where, 64, Likely(np.array([0.2, 0.5]), 0.0, (wanted > 0).view("u1"), 0.2))
    yield CellCounts(-10.0, 10.0, lo, hi, 5)
    yield TakenByKey(3_000, where, wanted, kernel.keys(lo[:1]), kernel.keys(hi[:1]))
    yield TakenBetween(3_000, where, wanted, lo, hi)


@pytest.mark.parametrize("query", [*queries()], ids=lambda query: type(query).__name__)
def test_a_query_is_the_same_wherever_it_is_sent(query):
    x = np.append(np.random.default_rng(0).normal(0, 5, 2_000), [math.nan, math.inf])
    sent = pickle.loads(pickle.dumps(query))
    here, there = query.start(), sent.start()
    query.step(here, x)
    sent.step(there, x)
    here, there = (pickle.loads(pickle.dumps(state)) for state in (here, there))
    for one, other in zip(flat(here), flat(there), strict=True):
        np.testing.assert_array_equal(one, other)


def test_queries_do_not_show_their_ranges():
    for query in queries():
        shown = repr(query) + str(query)
        if not isinstance(query, (Sums, PointCounts)):  # of public arguments
            assert "-7.5" not in shown and "9.0" not in shown and "array" not in shown


def flat(state):
    if hasattr(state, "__dict__"):
        state = [*vars(state).values()]
    return [part for each in state for part in flat(each)] if isinstance(state, list) else [state]


def test_a_state_takes_no_room_along_that_was_not_filled():
    tally = Tally(4, Likely(np.array([0.5]), 0.0, np.ones(5, dtype=np.uint8), 0.2))

    def take(room):
        room[:3] = 7.0
        return 3

    tally.fill(1_000, take)
    sent = pickle.loads(pickle.dumps(tally))
    assert [room.tolist() for room in sent._rooms] == [[7.0, 7.0, 7.0]]
    assert len(pickle.dumps(tally)) < 1_000


@given(
    st.lists(st.integers(-12, 112).map(lambda k: k / 8.0), max_size=40),
    st.sampled_from([2, 5, 64]),
    st.sampled_from([0.125, 0.25, 0.5, 2.0]),
)
def test_cells_serve_other_lattices_of_their_bounds(values, parts, step):
    """Also values that the first lattice takes for one point, and the other one for two."""
    bounds, values = (0.0, 12.0), np.array(values, dtype=np.float64)
    fine, other = (Lattice.of(bounds, each, False) for each in (1.0, step))
    chunks = Chunks.of_array(values, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells_module, "PARTS", parts)
        patch.setattr(cells_module, "COLLECTED", 4)
        patch.setattr(selected_module, "FULL", 1)
        cells = CountedCells(chunks, *bounds, fine)
        first = SelectedOrder(chunks, cells, fine, bounds)
        assert cells.on(fine) is cells
        assert cells.on(Lattice.of(bounds, 1.0, None)) is cells
        n = values.size
        if n:  # what is asked for on one lattice may count cells again
            first.prepare(np.array([n // 2]), np.array([2]))
        second = SelectedOrder(chunks, cells.on(other), other, bounds)
        expected = SortedOrder(np.sort(values), other, bounds)
        windows = [(0, n)] if n < 4 else [(0, n // 3), (n // 2, n)]
        np.testing.assert_array_equal(second._points(windows), expected._points(windows))
        points = np.arange(-1, other.points + 2)
        np.testing.assert_array_equal(second.ranks_of(points), expected.ranks_of(points))
        np.testing.assert_array_equal(
            first.ranks_of(points), SortedOrder(np.sort(values), fine, bounds).ranks_of(points)
        )
