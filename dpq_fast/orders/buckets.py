"""Unsorted values in memory, counted by bucket; some are collected meanwhile.

Where it is known which levels are asked for, a sample tells which buckets are likely to hold them,
and these are collected while all are counted. Where it was wrong, or nothing was known, another
pass collects. Counts are exact, and a bucket is collected whole or not at all: whatever the sample
says, the order statistics are what they are.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels.select import Map, keys, value_of
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.passes import Chunks, Passes, Query
from dpq_fast.data.queries import Taken, TakenBetween, TakenByKey
from dpq_fast.orders.cutting import values_of
from dpq_fast.orders.likely import (
    BUCKETS,
    Foreseen,
    Likely,
    Narrowing,
    are_of_one_point,
    choose_map,
)
from dpq_fast.orders.selected import (
    UNKNOWN,
    CellsOfPlaces,
    CollectedWindows,
    CountedRecords,
    are_tied,
    room_for,
    source_changed,
)

# Room for records that are taken while others are counted: at least so much at a time, so much more
# than it seems, and for so many more.
LEAST_ROOM, ROOM_SLACK, SPARE_ROOM = 2**21, 1.25, 2**13
# From this many records on, a few stretches of buckets are collected by comparing values alone.
COMPARED = 2**20
FEW_STRETCHES = 4
# Up to this many records are collected, whatever their share. Cells that are too full are counted
# again by 2^PART_BITS parts.
COLLECTED = 2**22
PART_BITS = 9
# Once as many records as there are were read, and as many as these, all are sorted, unless they are
# more than so many.
REREAD, MOST_SORTED = 2**20, 2**24
# Values looked at before the first pass, to choose a map.
PROBED = 2**11
# Buckets of so many lattice points' records around a window may be asked for.
NEAR = 2.0


class Tally:
    """Counts of buckets, and the records of some: the state of `BucketCounts`.

    Attributes
    ----------
    count : ndarray of int64, shape (buckets + 1,)
        Records in each bucket, and last how many are NaN.
    values : list of ndarray of float64
        Those that were taken, clamped, in any order.
    narrowing : Narrowing or None
        Which are all taken.
    """

    def __init__(self, buckets: int, likely: Likely | None) -> None:
        self.count = np.zeros(buckets + 1, dtype=np.int64)
        self.narrowing = None if likely is None else Narrowing(likely)
        self._rooms: list[NDArray[np.float64]] = []
        self._filled: list[int] = []

    def __getstate__(self) -> dict[str, Any]:
        # room that is left may hold anything, which is not for other processes
        return vars(self) | {"_rooms": self.values}

    @property
    def values(self) -> list[NDArray[np.float64]]:
        """What was taken, a part for each room."""
        return [room[:end] for room, end in zip(self._rooms, self._filled, strict=True)]

    def fill(self, size: int, take: Callable[[NDArray[np.float64]], int]) -> None:
        """Add what is taken of a piece that was counted, if there is room for all of it."""
        narrowing = self.narrowing
        assert narrowing is not None  # else nothing is taken
        likely = int(ROOM_SLACK * narrowing.share * size)
        if not self._rooms or self._rooms[-1].size - self._filled[-1] < likely + SPARE_ROOM:
            self._rooms.append(np.empty(max(likely, LEAST_ROOM) + SPARE_ROOM))
            self._filled.append(0)
        room = self._rooms[-1][self._filled[-1] :]
        number = take(room)
        self._filled[-1] += number
        if number > room.size:
            narrowing.give_up()
        narrowing.narrow(self.count[:-1])
        self._settle()

    def _settle(self) -> None:
        """Keep nothing of what was taken if nothing is wanted any more."""
        if self.narrowing is not None and not self.narrowing.wanted.any():
            self._rooms, self._filled = [], []

    def __iadd__(self, other: Tally) -> Tally:
        self.count += other.count
        if self.narrowing is not None and other.narrowing is not None:
            self.narrowing.wanted &= other.narrowing.wanted
        self._rooms += other._rooms
        self._filled += other._filled
        self._settle()
        return self


@dataclass(frozen=True, repr=False)
class BucketCounts(Query[Tally]):
    """How many records are in each bucket of a map, and the records of some buckets.

    Attributes
    ----------
    map : Map
    buckets : int
    likely : Likely, optional
        Whose records are to be taken.
    """

    map: Map
    buckets: int
    likely: Likely | None = None
    any_type = True

    @property
    def scattered(self) -> bool:  # type: ignore[override]
        """Where some are taken, so that it is seen soon which."""
        return self.likely is not None

    def start(self) -> Tally:
        return Tally(self.buckets, self.likely)

    def step(self, state: Tally, piece: NDArray[Any]) -> None:
        narrowing = state.narrowing
        if narrowing is None or not narrowing.wanted.any():
            self.map.count(piece, state.count)
            return
        wanted = narrowing.wanted
        state.fill(piece.size, lambda room: self.map.count(piece, state.count, wanted, room))


@dataclass(frozen=True, repr=False)
class PartCounts(Query[NDArray[np.int64]]):
    """How many records of some buckets are in each part of their keys, as `Map.refine` has them."""

    map: Map
    parts: int
    cell: NDArray[np.int32]
    key_lo: NDArray[np.int64]
    key_hi: NDArray[np.int64]
    shift: NDArray[np.int32]
    pivot: NDArray[np.int64]
    any_type = True

    def start(self) -> NDArray[np.int64]:
        return np.zeros((self.key_lo.size, self.parts), dtype=np.int64)

    def step(self, state: NDArray[np.int64], piece: NDArray[Any]) -> None:
        keys = self.key_lo, self.key_hi, self.shift, self.pivot
        self.map.refine(self.cell, *keys, piece, state)


@dataclass(frozen=True, slots=True)
class Cell:
    """The records of one bucket with key_lo <= key < key_hi.

    Attributes
    ----------
    bucket, key_lo, key_hi : int
    start, count : int
        Records below, and inside.
    tied : bool
        Whether all of its records are one value, or one lattice point: none has to be collected.
    """

    bucket: int
    key_lo: int
    key_hi: int
    start: int
    count: int
    tied: bool


@dataclass(frozen=True, slots=True)
class BucketPlan(CellsOfPlaces):
    """A plan of `Buckets`.

    Attributes
    ----------
    bucket : ndarray of int64, shape (C,)
    cell : ndarray of object, shape (C,)
        The `Cell`, or None for a whole bucket.
    """

    bucket: NDArray[np.int64]
    cell: NDArray[Any]


class Buckets(CountedRecords):
    """Values counted by bucket; those that turn out too full, by parts.

    Parameters
    ----------
    chunks : Passes
        The values.
    low, high : float
        What they are clamped to.
    probe : ndarray of float64
        Some of them, maybe none. It decides the cost, never the answer.
    lattice : Lattice or None
        What values are rounded to: those of one point need not be told apart.
    foreseen : Foreseen, optional
        What to collect in the first pass.

    Attributes
    ----------
    count, ends : ndarray of int64, shape (BUCKETS,)
        Records in each bucket, and up to and with it.
    missing : int
        Number of NaN.
    """

    gives_records = True

    def __init__(
        self,
        chunks: Passes,
        low: float,
        high: float,
        probe: NDArray[Any],
        lattice: Lattice | None = None,
        foreseen: Foreseen | None = None,
    ) -> None:
        self._chunks = chunks
        self._lattice = lattice
        self._low, self._high = low, high
        if foreseen is None:
            foreseen = Foreseen(choose_map(low, high, probe))
        self._map = foreseen.map
        total = chunks.fold(BucketCounts(self._map, BUCKETS, foreseen.likely))
        self.count, self.missing = total.count[:-1], int(total.count[-1])
        self._taken = Chunks(lambda: total.values, foreseen.workers)  # all of the wanted buckets
        self._wanted = None if total.narrowing is None else total.narrowing.wanted
        self.ends = np.cumsum(self.count)
        self._cells: dict[int, list[Cell]] = {}  # of the buckets that were counted by parts
        self._refining = threading.Lock()  # releases in several threads may share a sample
        self._probe = probe
        self._read = 0
        self._sorted: NDArray[np.float64] | None = None

    def _passes_over(self, buckets: Any) -> Passes:
        """What has all records of some buckets."""
        if self._wanted is not None and self._wanted[buckets].all():
            return self._taken
        return self._chunks

    def _first_key(self, bucket: int) -> int:
        """Lowest key in the bucket or above it, by bisection."""
        lo, hi = (int(key) for key in keys(np.array([self._low, self._high])))
        hi += 1
        while lo < hi:
            middle = (lo + hi) // 2
            if self._map.bucket(value_of(middle)) < bucket:
                lo = middle + 1
            else:
                hi = middle
        return lo

    @property
    def total(self) -> int:
        return int(self.ends[-1])

    def around(
        self, places: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        bucket = np.searchsorted(self.ends, places, side="right")
        count = self.count[bucket]
        share = (places + 0.5 - (self.ends[bucket] - count)) / count
        return self._map.edges(bucket), self._map.edges(bucket + 1), share

    def edges(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        inner = self._map.edges(np.arange(1, BUCKETS))
        return np.concatenate(([self._low], inner, [self._high])), self.count

    def whole(self, more: int) -> NDArray[np.float64] | None:
        with self._refining:
            self._read += more
            much = max(self.total, REREAD) <= self._read and self.total <= MOST_SORTED
            if much and self._sorted is None:
                every = np.ones(BUCKETS + 1, dtype=np.uint8)
                every[-1] = 0  # not NaN
                none = np.empty(0, dtype=np.int64)
                found = self._chunks.fold(TakenByKey(self.total, self._map, every, none, none))
                if found.number != self.total:
                    raise source_changed()
                self._sorted = np.concatenate(found.values)
                self._sorted.sort()
            return self._sorted

    def plan(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> BucketPlan:
        with self._refining:
            return self._plan(start, stop)

    def _plan(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> BucketPlan:
        """`plan`, by one thread at a time."""
        most, full = room_for(self.total, start.size, COLLECTED)
        first, last = self._meeting(start, stop)
        inside = np.zeros(BUCKETS + 1, dtype=np.int64)
        np.add.at(inside, first, 1)
        np.add.at(inside, last + 1, -1)
        buckets = np.flatnonzero((np.cumsum(inside[:-1]) > 0) & (self.count > 0))
        one_value = self._one_values(buckets)
        while True:
            parts = [
                cell
                for bucket in buckets.tolist()
                if bucket in self._cells
                for cell in _meeting_cells(self._cells[bucket], start, stop)
            ]
            whole = [bucket for bucket in buckets.tolist() if bucket not in self._cells]
            taken = [bucket for bucket in whole if bucket not in one_value]
            total = int(self.count[taken].sum()) + sum(c.count for c in parts if not c.tied)
            if total <= most:
                break
            crowded = {c.bucket: c for c in parts if c.count > full and not c.tied}
            for bucket in taken:
                if self.count[bucket] > full:
                    crowded[bucket] = self._whole(bucket)
            if not crowded:
                break
            known = {cell.bucket: [cell] for cell in crowded.values() if cell.tied}
            self._cells.update(known)
            if not known:
                self._refine(list(crowded.values()))
        cell = np.array([None] * len(whole) + parts, dtype=object)
        count = np.append(self.count[whole], [c.count for c in parts]).astype(np.int64)
        begin = np.append(self.ends[whole] - self.count[whole], [c.start for c in parts])
        bucket = np.array(whole + [c.bucket for c in parts], dtype=np.int64)
        tied = np.array([b in one_value for b in whole] + [c.tied for c in parts], dtype=bool)
        value = [one_value.get(b, 0.0) for b in whole]
        value += [value_of(c.key_lo) if c.tied else 0.0 for c in parts]
        order = np.argsort(begin, kind="stable")
        return BucketPlan(
            begin[order].astype(np.int64),
            count[order],
            tied[order],
            np.array(value, dtype=np.float64)[order],
            bucket[order],
            cell[order],
        )

    def _one_values(self, buckets: NDArray[np.int64]) -> dict[int, float]:
        """The buckets all of whose records are rounded to one point, and a value that is, too."""
        if self._lattice is None:
            return {}
        are_one, value = are_of_one_point(self._map, self._lattice, buckets)
        return dict(zip(buckets[are_one].tolist(), value[are_one].tolist(), strict=True))

    def _meeting(
        self, start: NDArray[np.int64], stop: NDArray[np.int64]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first and the last bucket of each window, with those of the ends' lattice points.

        Where a point's records begin is asked for, too. They are in the bucket before, perhaps, if
        a window begins within so many of the border as a point has here.
        """
        first = np.searchsorted(self.ends, start, side="right")
        last = np.searchsorted(self.ends, stop - 1, side="right")
        lattice = self._lattice
        if lattice is None:
            return first, last
        edges = self._map.edges
        below = self.ends[first] - self.count[first]
        for ends, shift, within in (
            (first, 0, start - below),
            (last, 1, self.ends[last] - stop),
        ):
            points = (edges(ends + 1) - edges(ends)) / lattice.step
            near = np.flatnonzero(within < NEAR * (1.0 + self.count[ends] / np.maximum(points, 1)))
            border = lattice.encode(edges(ends[near] + shift)) + shift
            for place, value in zip(near.tolist(), lattice.least(border).tolist(), strict=True):
                bucket = self._map.bucket(value)
                ends[place] = max(ends[place], bucket) if shift else min(ends[place], bucket)
        return first, last

    def _whole(self, bucket: int) -> Cell:
        lowest, end = (np.array([self._first_key(bucket + side)]) for side in (0, 1))
        count = self.count[[bucket]]
        return self._cells_of(bucket, lowest, end, int(self.ends[bucket] - count[0]), count)[0]

    def _cells_of(
        self,
        bucket: int,
        lowest: NDArray[np.int64],
        end: NDArray[np.int64],
        start: int,
        count: NDArray[np.int64],
    ) -> list[Cell]:
        """Cells of a bucket between some keys, with so many records from place `start` on."""
        tied = are_tied(values_of(lowest), values_of(end - 1), self._lattice)
        starts = start + np.cumsum(count) - count
        each = (lowest, end, starts, count, tied)
        return [Cell(bucket, *cell) for cell in zip(*(part.tolist() for part in each), strict=True)]

    def ranks_of(
        self, values: NDArray[np.float64], held: CollectedWindows | None
    ) -> NDArray[np.int64]:
        bucket = self._map.buckets(values).astype(np.int64)
        end = self.ends[bucket]
        start = end - self.count[bucket]
        found = np.where(start == end, end, UNKNOWN)
        refined = np.isin(bucket, list(self._cells))
        whole = (start < end) & ~refined
        if held is not None:
            found[whole] = held.ranks_of(start[whole], values[whole])
        for place in np.flatnonzero(refined).tolist():
            cells = self._cells[int(bucket[place])]
            found[place] = _rank_in(cells, float(values[place]), held)
        return found

    @cached_property
    def _probe_keys(self) -> NDArray[np.int64]:
        probe = self._probe
        return np.sort(keys(np.clip(probe[~np.isnan(probe)], self._low, self._high)))

    def _tied_key(self, cell: Cell) -> int | None:
        """The commonest key of the probe in a cell, if it is there twice."""
        a, b = np.searchsorted(self._probe_keys, (cell.key_lo, cell.key_hi)).tolist()
        found, counts = np.unique(self._probe_keys[a:b], return_counts=True)
        if not found.size or counts.max() < 2:
            return None
        return int(found[np.argmax(counts)])

    def _refine(self, cells: list[Cell]) -> None:
        """Count one cell of each of some buckets by parts of its keys, in one pass.

        Where values are seen to be tied, those below, at and above them.
        """
        pivots = [self._tied_key(cell) for cell in cells]
        shift = np.array(
            [
                max(0, (c.key_hi - c.key_lo - 1).bit_length() - PART_BITS) if pivot is None else -1
                for c, pivot in zip(cells, pivots, strict=True)
            ],
            dtype=np.int32,
        )
        pivot = np.array([0 if key is None else key for key in pivots], dtype=np.int64)
        key_lo = np.array([c.key_lo for c in cells], dtype=np.int64)
        key_hi = np.array([c.key_hi for c in cells], dtype=np.int64)
        number = np.full(BUCKETS + 1, -1, dtype=np.int32)
        number[[c.bucket for c in cells]] = np.arange(len(cells))
        total = self._passes_over([c.bucket for c in cells]).fold(
            PartCounts(self._map, 1 << PART_BITS, number, key_lo, key_hi, shift, pivot)
        )
        for cell, by, middle, counts in zip(cells, shift.tolist(), pivots, total, strict=True):
            if int(counts.sum()) != cell.count:
                raise source_changed()
            part = np.flatnonzero(counts)
            if middle is None:
                lowest = cell.key_lo + (part << by)
                # the difference of two keys may be beyond int64
                rest = (cell.key_hi - lowest).view(np.uint64)
                end = lowest + np.minimum(rest, np.uint64(1 << by)).view(np.int64)
            else:
                borders = np.array([cell.key_lo, middle, middle + 1, cell.key_hi])
                lowest, end = borders[part], borders[part + 1]
            parts = self._cells_of(cell.bucket, lowest, end, cell.start, counts[part])
            before = self._cells.get(cell.bucket, [cell])
            place = before.index(cell)
            self._cells[cell.bucket] = before[:place] + parts + before[place + 1 :]

    def _taker(self, plan: BucketPlan, size: int) -> tuple[Passes, Taken]:
        passes = self._passes_over(plan.bucket[~plan.tied])
        parts = [cell for cell in plan.cell if cell is not None]
        wanted = np.zeros(BUCKETS + 1, dtype=np.uint8)
        whole = np.array([cell is None for cell in plan.cell])
        taken = plan.bucket[whole & ~plan.tied]
        wanted[taken] = 1
        wanted[[cell.bucket for cell in parts if not cell.tied]] = 2
        gaps = np.flatnonzero(np.diff(taken) != 1) + 1
        if not parts and gaps.size < FEW_STRETCHES and self.ends[-1] >= COMPARED:
            first = taken[np.append(0, gaps)].tolist()
            last = taken[np.append(gaps - 1, taken.size - 1)].tolist()
            lowest, highest = (int(key) for key in keys(np.array([self._low, self._high])))
            lo_keys = [self._first_key(bucket) for bucket in first]
            hi_keys = [self._first_key(bucket + 1) - 1 for bucket in last]
            # what is beyond the bounds counts as they do
            lo = np.array([-np.inf if key <= lowest else value_of(key) for key in lo_keys])
            hi = np.array([np.inf if key >= highest else value_of(key) for key in hi_keys])
            return passes, TakenBetween(size, self._map, wanted, lo, hi)
        ranges = [(cell.key_lo, cell.key_hi) for cell in parts if not cell.tied]
        keys_of = np.array(ranges, dtype=np.int64).reshape(-1, 2).T.copy()
        return passes, TakenByKey(size, self._map, wanted, keys_of[0], keys_of[1])


def _rank_in(cells: list[Cell], value: float, held: CollectedWindows | None) -> int:
    """Number of records below a value in the bucket of some cells, or UNKNOWN."""
    (key,) = keys(np.array([value])).tolist()
    place = bisect_right(cells, key, key=lambda cell: cell.key_lo) - 1
    if place < 0:
        return cells[0].start
    cell = cells[place]
    if key == cell.key_lo:
        return cell.start
    if key >= cell.key_hi:
        return cell.start + cell.count
    if held is None:
        return UNKNOWN
    return int(held.ranks_of(np.array([cell.start]), np.array([value]))[0])


def _meeting_cells(
    cells: list[Cell], start: NDArray[np.int64], stop: NDArray[np.int64]
) -> list[Cell]:
    """Those that one of the places start[s], ..., stop[s] - 1 is inside of."""
    begin = np.array([cell.start for cell in cells])
    end = begin + np.array([cell.count for cell in cells])
    window = np.searchsorted(stop, begin, side="right")
    meets = window < start.size
    meets[meets] = start[window[meets]] < end[meets]
    return [cells[i] for i in np.flatnonzero(meets).tolist()]
