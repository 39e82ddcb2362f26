"""Orders: the intervals of all records laid out, and a dither that is one fixed object."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from conftest import assert_draws_follow, lattice_of, order_of
from hypothesis import given
from hypothesis import strategies as st

import enumeration
from dpq_fast.data.lattice import Lattice
from dpq_fast.orders import dithered as dithered_module
from dpq_fast.orders import sorted as sorted_module
from dpq_fast.orders.blocks import Zone
from dpq_fast.orders.counted import CountedOrder
from dpq_fast.orders.dithered import DitheredOrder, dithered
from dpq_fast.orders.order import Order
from dpq_fast.orders.sorted import SortedOrder

BOUNDS = (0.0, 9.0)


def brute_force(
    order: Order, edges: list, first: list[int], last: list[int]
) -> list[tuple[int, float, float]]:
    """(rank, width, left) of the positive-width intervals, from all n records in a row."""
    edges = [order.before, *edges, order.last]
    ranks = [rank for a, b in zip(first, last, strict=True) for rank in range(a, b + 1)]
    return [
        (rank, edges[rank + 1] - edges[rank], edges[rank])
        for rank in ranks
        if edges[rank + 1] > edges[rank]
    ]


def listed(order: Order, first: list[int], last: list[int]) -> list[tuple[int, float, float]]:
    found = order.intervals(np.array(first), np.array(last) - np.array(first) + 1)
    assert found.rank.dtype == np.int64 and found.width.dtype == np.float64
    assert found.left.dtype == (np.float64 if order.lattice is None else np.int64)
    return list(zip(*(part.tolist() for part in found), strict=True))


def nearby(records: list[int]) -> np.ndarray:
    """Ascending numbers that are rounded to the records, no two equal."""
    return np.array([record + 0.01 * i - 0.1 for i, record in enumerate(records)])


def everything(order: Order) -> list[tuple[int, float, float]]:
    return listed(order, [0], [order.n])


@st.composite
def windows_of(draw: st.DrawFn, n: int) -> tuple[list[int], list[int]]:
    """Disjoint windows of ranks in 0 .. n, at least one rank apart, ascending."""
    cuts = sorted(draw(st.sets(st.integers(0, n), min_size=1, max_size=8)))
    first, last = [cuts[0]], [cuts[0]]
    for cut in cuts[1:]:
        if cut > last[-1] + 1 and draw(st.booleans()):
            first.append(cut)
            last.append(cut)
        else:
            last[-1] = cut
    return first, last


records_strategy = st.lists(st.integers(0, 9), max_size=15).map(sorted)


@given(records_strategy, st.data())
def test_intervals_of_sorted_orders_equal_brute_force(records, data):
    first, last = data.draw(windows_of(len(records)))
    lattice = lattice_of(10)
    raw = np.array(records, dtype=float)
    outside = np.where(raw == 0.0, -np.inf, np.where(raw == 9.0, 1e300, raw + 0.25))
    for values in (raw, raw.astype(np.int8), outside):
        order = SortedOrder(values, lattice, BOUNDS)
        assert listed(order, first, last) == brute_force(order, records, first, last)
    fine = order_of(records, lattice_of(5, bits=1))
    assert listed(fine, first, last) == brute_force(fine, records, first, last)
    for values in (raw, raw.astype(np.float32), outside):
        order = SortedOrder(values, None, BOUNDS)
        clamped = np.clip(values.astype(float), *BOUNDS).tolist()
        assert listed(order, first, last) == brute_force(order, clamped, first, last)


@given(records_strategy, st.data())
def test_intervals_of_runs_equal_brute_force(records, data):
    first, last = data.draw(windows_of(len(records)))
    counted = Counter(records)
    counts = np.array(list(counted.values()), dtype=np.int64)
    for lattice, dtype in ((lattice_of(10), np.int64), (None, np.float64)):
        order = CountedOrder(np.array(list(counted), dtype=dtype), counts, lattice, BOUNDS)
        assert order.n == len(records)
        assert listed(order, first, last) == brute_force(order, records, first, last)


@pytest.mark.parametrize("kind", ["runs", "sorted", "near"])
@given(records_strategy, st.data(), st.integers(0, 1000))
def test_intervals_of_a_dither_are_of_one_sample(kind, records, data, seed):
    """Small windows first, then all: the same records, in order inside of their cells."""
    windows = [data.draw(windows_of(len(records))) for _ in range(3)]
    counted = Counter(records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dithered_module, "PIECE", 3)
        patch.setattr(dithered_module, "EAGER_RECORDS", 0)
        runs = np.array([*counted.items()], dtype=np.int64).reshape(-1, 2).T
        coarse = {
            "runs": CountedOrder(*runs, lattice_of(10, bits=3), BOUNDS),
            "sorted": SortedOrder(np.array(records, dtype=float), lattice_of(10, bits=3), BOUNDS),
            "near": SortedOrder(nearby(records), lattice_of(10, bits=3), BOUNDS),
        }[kind]
        order = dithered(coarse, np.random.default_rng(seed))
        assert isinstance(order, DitheredOrder) == bool(records)
        before = [listed(order, *window) for window in windows]
        fine = np.concatenate([order.cell(point)[1] for point in range(10)]).tolist()
        assert fine == sorted(fine)
        assert [point >> 3 for point in fine] == records
        for (first, last), seen in zip(windows, before, strict=True):
            assert seen == brute_force(order, fine, first, last)
        assert everything(order) == brute_force(order, fine, [0], [len(records)])


@pytest.mark.parametrize("bits", [1, 3, 20])
@pytest.mark.parametrize("kind", ["runs", "sorted"])
def test_all_that_is_asked_of_a_dither_is_of_the_same_records(monkeypatch, bits, kind):
    """Ranks, intervals and parts; more records at a point than it has fine points, too."""
    monkeypatch.setattr(dithered_module, "PIECE", 7)
    rng, lattice = np.random.default_rng(bits), lattice_of(10, bits=bits)
    for _ in range(60):
        n = int(rng.integers(1, 60))
        records = np.sort(rng.choice([0, 1, 3, 3, 3, 3, 7, 9], n))
        coarse = SortedOrder(records, lattice, BOUNDS)
        if kind == "runs":
            coarse = CountedOrder(*np.unique(records, return_counts=True), lattice, BOUNDS)
        order = DitheredOrder(coarse, rng)
        found = []
        for what in rng.choice(["ranks", "intervals", "records", "parts"], 5):
            if what == "ranks":
                points = rng.integers(0, lattice.fine_points, 4)
                found.append((what, points, order.fine_ranks(points)))
            elif what == "intervals":
                first, last = np.sort(rng.integers(0, n + 1, 2))
                answer = order.intervals(np.array([first]), np.array([last - first + 1]))
                found.append((what, None, answer))
            elif what == "records":
                ranks = np.sort(rng.integers(0, n + 2, rng.integers(1, 200)))
                found.append((what, ranks, order.records_at(ranks)))
            else:
                most = int(rng.integers(1, 12))
                ends = np.sort(rng.integers(0, n + 1, 4))
                zones = [
                    Zone(most, ends[1:2], ends[2:3] + 1 - ends[1:2]),
                    Zone(2 * most, ends[:1], ends[3:] + 1 - ends[:1]),
                ]
                made = order.parts(zones, 3.5, 0.1)
                found.append((what, zones, made.of(made.take()[0])[1:]))
        check_answers(found, records, order)


def test_an_order_by_runs_is_of_the_same_records(monkeypatch):
    """With the same dither; where there are few records at a point, they stay as they are."""
    rng, lattice = np.random.default_rng(4), lattice_of(10, bits=5)
    records = np.sort(rng.choice([0, 1, 3, 3, 3, 3, 7, 9], 90))
    for coarse in (
        SortedOrder(records * 1.0, lattice, BOUNDS),
        SortedOrder(records, lattice, BOUNDS),
    ):
        order = DitheredOrder(coarse, rng)
        assert coarse.by_runs() is order.by_runs()._coarse is coarse
        with monkeypatch.context() as few:
            few.setattr(sorted_module, "RUNS_EACH", 9)
            by_runs = order.by_runs()
        assert isinstance(by_runs._coarse, CountedOrder) and order._coarse is coarse
        everything = [(0, order.n)]
        np.testing.assert_array_equal(by_runs._points(everything), order._points(everything))
        np.testing.assert_array_equal(
            by_runs.ranks_of(np.arange(11)), order.ranks_of(np.arange(11))
        )
    numbers = SortedOrder(records * 1.0, None, BOUNDS)
    assert numbers.by_runs() is numbers


def check_answers(found, records, order):
    """Against all records of a dither, laid out."""
    points = order._points([(0, order.n)])
    assert (np.diff(points) >= 0).all()
    assert (points >> order.lattice.bits == records).all()
    edges = np.concatenate(([order.before], points, [order.last]))
    for what, asked, answer in found:
        if what == "ranks":
            assert answer.tolist() == np.searchsorted(points, asked).tolist()
        elif what == "intervals":
            assert (edges[answer.rank] == answer.left).all()
            assert (edges[answer.rank + 1] == answer.left + answer.width).all()
        elif what == "records":
            assert (edges[asked] == answer).all()
        else:
            least, most, width, left = answer
            first, last = left + 1, left + width.astype(np.int64)
            assert (first[1:] == last[:-1] + 1).all()  # the zones are one segment
            for outputs in (first, last):
                ranks = np.searchsorted(points, outputs)
                assert ((least <= ranks) & (ranks <= most)).all()
            ranks = np.searchsorted(points, np.arange(min(order.last + 1, 10_000)))
            for zone in asked:
                low, high = int(zone.first[0]), int(zone.first[0] + zone.ranks[0] - 1)
                meets = (most >= low) & (least <= high)
                assert (most - least < zone.most)[meets].all()
                (inside,) = np.nonzero((low <= ranks) & (ranks <= high))
                assert not inside.size or (first[0] <= inside[0] and inside[-1] <= last[-1])


def test_intervals_of_windows_in_one_block_and_apart_from_it():
    """Two windows need all of one block, a third none of it: each is read as if alone."""
    records = [2] * 6 + [5] * 4
    coarse = SortedOrder(np.array(records, dtype=float), lattice_of(10, bits=24), BOUNDS)
    order = DitheredOrder(coarse, np.random.default_rng(3))
    first, last = [1, 4, 8], [2, 5, 9]
    seen = listed(order, first, last)
    fine = np.concatenate([order.cell(point)[1] for point in range(10)]).tolist()
    assert [point >> 24 for point in fine] == records
    assert seen == brute_force(order, fine, first, last)


def test_dithered_of_huge_counts_takes_a_word(monkeypatch):
    monkeypatch.setattr(dithered_module, "EAGER_RECORDS", 10)
    values, counts = np.array([1, 3, 8]), np.array([10**9, 10**9, 10**9])
    rng, same = np.random.default_rng(0), np.random.default_rng(0)
    order = dithered(CountedOrder(values, counts, lattice_of(10, bits=24), BOUNDS), rng)
    same.bit_generator.random_raw()
    assert order.n == 3 * 10**9
    assert order.rank_of(4) == 2 * 10**9 and order.cell(5)[0][0] == 2 * 10**9
    assert rng.bit_generator.state == same.bit_generator.state


def test_the_middle_of_a_huge_block_is_in_the_middle():
    """Of 10^8 offsets below 2^24 each has five or six, and the middle one is 2^23."""
    runs = CountedOrder(np.array([4]), np.array([10**8]), lattice_of(10, bits=24), BOUNDS)
    order = DitheredOrder(runs, np.random.default_rng(1))
    middle = 5 * 10**7
    found = listed(order, [middle], [middle + 100])
    lefts = [left for _, _, left in found]
    assert lefts == sorted(lefts)
    assert abs(lefts[0] - (4 << 24) - 2**23) <= 1
    wider = listed(order, [middle - 50], [middle + 150])
    assert [entry for entry in wider if middle <= entry[0] <= middle + 100] == found


@given(records_strategy, st.integers(0, 2))
def test_rank_of_counts_the_records_below(records, shift):
    lattice = lattice_of(10)
    counted = Counter(records)
    values = np.array(list(counted))
    counts = np.array(list(counted.values()), dtype=np.int64)
    fine = [(record << 2) + shift for record in records]
    orders = [
        SortedOrder(np.array(records, dtype=float), lattice, BOUNDS),
        CountedOrder(values.astype(np.int64), counts, lattice, BOUNDS),
        order_of(fine, lattice_of(10, bits=2)),
        DitheredOrder(
            CountedOrder(values.astype(np.int64), counts, lattice_of(10, bits=2), BOUNDS),
            np.random.default_rng(0),
        ),
    ]
    for point in range(10):
        expected = sum(record < point for record in records)
        assert [order.rank_of(point) for order in orders] == [expected] * 4
    continuous = [
        SortedOrder(np.array(records, dtype=float), None, BOUNDS),
        CountedOrder(values.astype(float), counts, None, BOUNDS),
    ]
    for output in (0.0, 0.5, 3.0, np.nextafter(3.0, 4.0), 9.0):
        expected = sum(record < output or record == output == 0.0 for record in records)
        assert [order.rank_of(output) for order in continuous] == [expected] * 2


@given(records_strategy)
def test_cell_gives_the_fine_points_of_a_point(records):
    fine = [(record << 2) + i % 4 for i, record in enumerate(records)]
    order = order_of(fine, lattice_of(10, bits=2))
    for point in range(10):
        below, points = order.cell(point)
        assert below[0] == sum(record < point for record in records)
        assert below.tolist() == list(range(below[0], below[0] + points.size + 1))
        assert points.tolist() == sorted(f for f in fine if f >> 2 == point)


@given(records_strategy.filter(len), st.data())
def test_log_spans_are_the_distances_of_order_statistics(records, data):
    """Exact but for a dither that is not drawn yet: there to a cell, so to 2^bits."""
    n = len(records)
    place = st.integers(0, n - 1)
    pairs = np.array(data.draw(st.lists(st.tuples(place, place), min_size=1, max_size=4))).T
    places = np.concatenate((pairs.min(axis=0), pairs.max(axis=0)))
    raw = np.array(records, dtype=float)
    expected = raw[pairs.max(axis=0)] - raw[pairs.min(axis=0)]
    counted = Counter(records)
    values = np.array(list(counted), dtype=np.int64)
    counts = np.array(list(counted.values()), dtype=np.int64)
    for order in (
        SortedOrder(raw, lattice_of(10), BOUNDS),
        SortedOrder(raw, None, BOUNDS),
        order_of(records, lattice_of(5, bits=1)),
        CountedOrder(values, counts, lattice_of(10), BOUNDS),
        CountedOrder(values.astype(float), counts, None, BOUNDS),
    ):
        np.testing.assert_allclose(np.exp(order.log_spans(places)), expected, rtol=1e-15)
    rng = np.random.default_rng(0)
    for coarse in (
        CountedOrder(values, counts, lattice_of(10, bits=2), BOUNDS),
        SortedOrder(raw, lattice_of(10, bits=2), BOUNDS),
    ):
        order = DitheredOrder(coarse, rng)
        assert (np.abs(np.exp(order.log_spans(places)) - 4.0 * expected) <= 4.0).all()


def test_spread_puts_tied_records_evenly_into_their_cell():
    """In pairs: records 0 and 3 of the four at 2, then 1 and 4, of which one is at 5."""
    lattice, places = lattice_of(10, bits=3), np.array([0, 1, 3, 4])
    runs = CountedOrder(np.array([1, 2, 5]), np.array([2, 4, 1]), lattice, BOUNDS)
    assert runs.spread(places + 2).tolist() == [2.125, 2.375, 2.875, 5.5]
    whole = SortedOrder(np.array([1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 5.0]), lattice, BOUNDS)
    assert whole.spread(places + 2).tolist() == [2.125, 2.5, 2.875, 5.5]
    assert whole.spread(np.array([1, 6])).tolist() == [1.5, 5.5]


def test_log_spans_clamp_and_take_nan_for_low():
    order = SortedOrder(np.array([np.nan, -50.0, 4.0, np.inf]), lattice_of(10), BOUNDS)
    spans = np.exp(order.log_spans(np.array([0, 1, 2, 2, 2, 3])))
    low, high = BOUNDS
    np.testing.assert_allclose(spans, [4.0 - low, 4.0 - low, high - 4.0], rtol=1e-15)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_log_volume_counts_the_outputs(m):
    order = order_of([], lattice_of(6, bits=1))
    assert order.log_volume(m) == pytest.approx(math.log(math.comb(12 + m - 1, m)), abs=1e-12)
    continuous = SortedOrder(np.empty(0), None, BOUNDS)
    expected = m * math.log(9.0) - math.lgamma(m + 1)
    assert continuous.log_volume(m) == pytest.approx(expected, abs=1e-12)


def test_log_volume_takes_huge_and_tiny_ranges():
    for bounds in ((-8e307, 8e307), (0.0, 5e-324), (1e300, 1.5e300)):
        order = SortedOrder(np.empty(0), None, bounds)
        expected = 3.0 * math.log(bounds[1] - bounds[0]) - math.log(6.0)
        assert order.log_volume(3) == pytest.approx(expected, rel=1e-13)


# Dither


@pytest.mark.parametrize("eager", [0, 100])
@pytest.mark.parametrize("bits, count", [(2, 3), (1, 70)])
def test_dithers_are_the_shifts_of_one_sequence(monkeypatch, eager, bits, count):
    """Each as likely as any other, whatever is asked first, and the same for all points."""
    monkeypatch.setattr(dithered_module, "EAGER_RECORDS", eager)
    rng = np.random.default_rng(17)
    points = [0] * count + [2] * (count + 1)
    samples = [
        tuple(tuple(sorted(fine[part])) for part in (slice(count), slice(count, None)))
        for fine in enumeration.dithers(points, bits)
    ]
    counts = np.array([count, count + 1])
    coarse = CountedOrder(np.array([0, 2]), counts, lattice_of(3, bits), BOUNDS)
    drawn = []
    for first in [0, 3, count] * 200:
        order = dithered(coarse, rng)
        order.intervals(np.array([first]), np.array([2]))
        drawn.append(tuple(tuple(order.cell(point)[1].tolist()) for point in (0, 2)))
    assert_draws_follow(drawn, {sample: -math.log(len(samples)) for sample in samples})


def test_dithered_is_a_function_of_the_seed():
    lattice = Lattice.of((0.0, 9.0), 1.0, True)
    values, counts = np.array([2, 5]), np.array([30_000, 40_000])
    assert counts.sum() > dithered_module.EAGER_RECORDS
    runs = CountedOrder(values, counts, lattice, BOUNDS)
    orders = [dithered(runs, np.random.default_rng(s)) for s in (1, 1, 2)]
    found = [listed(order, [35_000], [35_010]) for order in orders]
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", ">f8", "i8", "i2", "u1", "runs"])
@pytest.mark.parametrize("size", [1, 40, 3_000])
def test_ties_are_found_around_places(kind, size):
    """Of runs near each other and far apart, by values of all kinds."""
    rng = np.random.default_rng(size)
    records = np.repeat([0, 1, 2, 3, 5, 9], [1, 1, 1, 700, 2, 900])[rng.integers(0, 1_605, size)]
    records.sort()
    if kind == "runs":
        order = CountedOrder(*np.unique(records, return_counts=True), lattice_of(10), BOUNDS)
    else:
        order = SortedOrder(records.astype(kind), lattice_of(10), BOUNDS)
    for asked in (1, 30, 5_000):
        places = np.sort(rng.integers(0, size, asked))
        point, below, above = order.ties(places)
        run = np.searchsorted(above, places, side="right")
        assert (point[run] == records[places]).all() and (np.diff(above) >= 0).all()
        assert (below == np.searchsorted(records, point)).all()
        assert (above == np.searchsorted(records, point + 1)).all()
    assert all(each.size == 0 for each in order.ties(places[:0]))


def test_places_of_ties_are_checked():
    lattice, values = lattice_of(10), np.arange(10.0)
    for places in ([2, 1], [10], [-1]):
        with pytest.raises(ValueError, match="places must be of the values, in order"):
            lattice.ties(values, np.array(places))
