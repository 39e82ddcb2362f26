"""Passes over a column: which pieces they give, and to how many threads."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from dpq_fast._kernels import sums
from dpq_fast._kernels.select import Map
from dpq_fast.data import passes
from dpq_fast.data.histogram import Bins
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.passes import Chunks, Query
from dpq_fast.data.queries import Found, Taken


class Asked(Query):
    """A query by a function of a list and a piece."""

    def __init__(self, step, any_type=False):
        self.step = step
        self.any_type = any_type

    def start(self):
        return []

    def step(self, state, piece):
        raise NotImplementedError


def pieces_of(values, any_type=False):
    """What one pass gives."""
    query = Asked(lambda pieces, piece: pieces.append(piece), any_type)
    return Chunks.of_array(values, 1).fold(query)


def test_pieces_are_small_where_they_are_converted(monkeypatch):
    monkeypatch.setattr(passes, "CONVERTED", 4)
    monkeypatch.setattr(passes, "PLAIN", 10)
    x = np.arange(25.0)
    for column, size in ((x, 10), (x.astype("f4"), 4), (x.astype(">f8"), 4), (x.astype("i8"), 4)):
        pieces = pieces_of(column)
        assert all(piece.dtype == np.float64 and piece.flags.c_contiguous for piece in pieces)
        assert [piece.size for piece in pieces] == [size] * (25 // size) + [25 % size]
        np.testing.assert_array_equal(np.concatenate(pieces), x)
    assert all(np.shares_memory(piece, x) for piece in pieces_of(x))


def test_pieces_stay_as_they_are_where_that_is_asked(monkeypatch):
    monkeypatch.setattr(passes, "PLAIN", 10)
    x = 2**53 + np.arange(25)  # not all are float64 numbers
    pieces = pieces_of(x, any_type=True)
    assert all(piece.dtype == np.int64 and np.shares_memory(piece, x) for piece in pieces)
    assert np.concatenate(pieces).tolist() == x.tolist()
    assert all(piece.dtype == np.float64 for piece in pieces_of(x))
    for dtype in ("f4", "i4", "i2", "i1", "u8", "u4", "u2", "u1"):
        column = (x % 100).astype(dtype)
        assert all(np.shares_memory(piece, column) for piece in pieces_of(column, any_type=True))
    for dtype in ("f2", ">f8", ">i4", np.longdouble):
        column = (x % 100).astype(dtype)
        assert all(piece.dtype == np.float64 for piece in pieces_of(column, any_type=True))
    assert all(piece.dtype == np.float64 for piece in pieces_of((x % 100)[::2], any_type=True))


@pytest.mark.parametrize(
    "workers, size, shares",
    [(1, 100, [100]), (4, 0, [0]), (4, 19, [19]), (4, 20, [10, 10]), (3, 99, [33, 33, 33])],
)
def test_threads_have_equal_shares_of_what_is_worth_them(workers, size, shares, monkeypatch):
    monkeypatch.setattr(passes, "MIN_SHARE", 10)
    x = np.arange(float(size))
    states = Chunks(lambda: (x, x), workers)._partials(
        Asked(lambda state, piece: state.extend(piece))
    )
    assert [len(state) for state in states] == [2 * share for share in shares]
    assert sorted(value for state in states for value in state) == np.repeat(x, 2).tolist()


@pytest.mark.parametrize("place", [0, 50, 99])
def test_an_error_in_any_thread_is_raised(place, monkeypatch):
    monkeypatch.setattr(passes, "MIN_SHARE", 10)

    def step(state, piece):
        if place in piece:
            raise OSError("the disk is gone")

    for workers in (1, 4):
        with pytest.raises(OSError, match="the disk is gone"):
            Chunks.of_array(np.arange(100.0), workers).fold(Asked(step))


def test_first_batch_that_is_not_empty():
    assert Chunks(lambda: [], 1).first().size == 0
    assert Chunks(lambda: [np.empty(0)], 1).first().size == 0
    assert Chunks(lambda: [np.empty(0), np.ones(2), np.ones(3)], 1).first().tolist() == [1.0, 1.0]


@dataclass(frozen=True)
class All(Taken):
    """All records, or those that are odd."""

    map: Map = field(default_factory=lambda: Map(0.0, 16.0, 4, origin=0.0, scale=0.25))
    wanted: NDArray[np.uint8] = field(default_factory=lambda: np.ones(5, dtype=np.uint8))
    odd: bool = False

    def take(self, piece):
        found = piece[piece % 2.0 == 1.0] if self.odd else piece
        return found[: self.size], found.size


@pytest.mark.parametrize("workers", [1, 2])
def test_nothing_is_kept_once_too_much_is_taken(workers):
    """A source that changed may give ever more: no more is kept than was counted."""
    chunks = Chunks(lambda: (np.ones(10) for _ in range(100)), workers)
    for size in (35, 999):
        found = chunks.fold(All(size))
        assert found.number == 1_000 and found.values == []
        assert All(size).all_of(found) is None
    assert All(1_001).all_of(chunks.fold(All(1_001))) is None
    kept = All(1_000).all_of(chunks.fold(All(1_000)))
    np.testing.assert_array_equal(kept, np.ones(1_000))


def test_collected_values_are_float64_and_ascend():
    x = np.arange(10)[::-1]
    for size, expected in ((5, [1.0, 3.0, 5.0, 7.0, 9.0]), (6, None)):
        query = All(size, odd=True)
        collected = query.all_of(Chunks.of_array(x, 1).fold(query))
        assert (None if collected is None else collected.tolist()) == expected
    query = All(0, odd=True)
    collected = query.all_of(Chunks.of_array(np.zeros(1, dtype=int), 1).fold(query))
    assert collected.dtype == np.float64 and collected.tolist() == []


def test_partials_of_taken_values_are_combined_up_to_their_size():
    one, other = Found([np.ones(2)], 2), Found([np.zeros(1)], 1)
    assert All(3).all_of(All(3).combine(one, other)).tolist() == [0.0, 1.0, 1.0]
    assert All(2).combine(one, other).values == []


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"])
def test_columns_may_begin_anywhere_in_a_line_of_memory(dtype):
    """The first block that is read is as long as what is left of the line."""
    width = np.dtype(dtype).itemsize
    whole = np.random.default_rng(4).integers(0, 100, 200_000).astype(dtype)
    whole[50_000:] = 7  # more of one value than near counters hold
    where = Map(0.0, 100.0, 100, origin=0.0, scale=1.0)
    lattice, bins = Lattice.of((0.0, 100.0), 1.0, False), Bins.uniform(0.0, 100.0, 20)
    wanted = (np.arange(101) == 3).astype(np.uint8)
    for first in {0, 1, 64 // width - 1, 64 // width}:
        column = whole[first:]
        expected = np.bincount(column.astype(np.int64), minlength=101)
        counts, points = np.zeros(101, dtype=np.int64), np.zeros(102, dtype=np.int64)
        histogram, room = bins.zeros(), np.empty(expected[3] + 1)
        assert where.count(column, counts, wanted, room) == expected[3]
        assert (room[:-1] == 3.0).all()
        np.testing.assert_array_equal(counts[:100], expected[:100])
        lattice.count(points, column)
        np.testing.assert_array_equal(points[:101], expected)
        bins.count(column, negate=False, out=histogram)
        np.testing.assert_array_equal(histogram, expected[:100].reshape(20, 5).sum(axis=1))
        assert sums.plain(column, 1.0, 0, 100) == (int(column.sum(dtype=np.int64)), column.size)
        if dtype[0] != "u":
            below = np.zeros(122, dtype=np.int64)
            Lattice.of((-60.0, 60.0), 1.0, False).count(below, column - np.array(50, dtype))
            np.testing.assert_array_equal(below[10:111], expected)
        none = np.empty(0, dtype=np.int64)
        assert where.collect(wanted, none, none, column, column.size)[1] == expected[3]
        ends = np.array([3.0]), np.array([4.0])
        assert where.between(*ends, column, column.size)[1] == expected[3:5].sum()


@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("pattern", ["none", "all", "runs", "run at each end", "several runs"])
def test_values_of_wanted_buckets_are_collected_wherever_these_are(pattern, missing):
    """By other instructions where no more than one run of each 64 buckets are wanted."""
    rng = np.random.default_rng(6)
    bucket = np.arange(8192)
    wanted = np.append(
        {
            "none": bucket < 0,
            "all": bucket >= 0,
            "runs": bucket % 150 < rng.integers(1, 90, 55)[bucket // 150],
            "run at each end": bucket % 64 == 63 * (bucket // 64 % 2),
            "several runs": rng.random(8192) < 0.3,
        }[pattern],
        missing,
    ).astype(np.uint8)
    where = Map(0.0, 8192.0, 8192, origin=0.0, scale=1.0)
    column = rng.uniform(-9.0, 8200.0, 30_001)
    column[rng.random(30_001) < 0.01] = np.nan
    held = np.clip(column, 0.0, 8191.5)
    chosen = np.where(np.isnan(column), missing == 1, wanted[np.nan_to_num(held).astype(int)] > 0)
    expected = np.clip(column[chosen], 0.0, 8192.0)
    counts, room, none = np.zeros(8193, dtype=np.int64), np.empty(30_001), np.empty(0, np.int64)
    assert where.count(column, counts, wanted, room) == expected.size
    np.testing.assert_array_equal(room[: expected.size], expected)
    found, number = where.collect(wanted, none, none, column, column.size)
    assert number == expected.size
    np.testing.assert_array_equal(found, expected)
