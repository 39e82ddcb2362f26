"""Order statistics of unsorted values: a pass counts buckets and collects some of them.

Where it is known which levels are asked for, a sample tells which buckets are likely to hold them,
and these are collected while all are counted. Where it was wrong, or nothing was known, another
pass collects. Counts are exact, and a bucket is collected whole or not at all: whatever the sample
says, the order statistics are what they are.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as intervals_kernel
from dpq_fast._kernels.select import keys, value_of
from dpq_fast.data.cutting import Cutter, values_of
from dpq_fast.data.foreseen import BUCKETS, Foreseen, are_of_one_point, choose_map
from dpq_fast.data.histogram import Bins
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.order import (
    CoarseOrder,
    Cuts,
    SortedOrder,
    Stretch,
    cuts_of_runs,
    stretches_of,
)
from dpq_fast.data.passes import Chunks, Passes
from dpq_fast.data.queries import (
    BinCounts,
    BucketCounts,
    PartCounts,
    Taken,
    TakenBetween,
    TakenByKey,
)

# From this many records on, a few stretches of buckets are collected by comparing values alone.
COMPARED = 2**20
FEW_STRETCHES = 4
# Up to this many records, or this share of all, are collected. Where a plan has more, cells that
# hold more than their part of them (and more than FULL) are counted again by 2^PART_BITS parts.
COLLECTED = 2**22
COLLECTED_SHARE = 2.0**-5
FULL = 2**10
PART_BITS = 9
# So many records, and this share of all, up to so many, are read to be cut; more are counted.
READ, READ_SHARE, MOST_READ = 2**19, 2.0**-3, 2**22
# Once as many records as there are were read, and as many as these, all are sorted, unless they are
# more than so many.
REREAD, MOST_SORTED = 2**20, 2**24
# Values looked at before the first pass, to choose a map.
PROBED = 2**11
# Buckets of so many lattice points' records around a window may be asked for.
NEAR = 2.0
# The rank of a value that takes a pass.
UNKNOWN = -1


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
class Plan:
    """Cells, or whole buckets, that hold some windows of places, ascending.

    Attributes
    ----------
    start, count : ndarray of int64, shape (C,)
        Records below each, and inside.
    tied : ndarray of bool, shape (C,)
        Whether all of its records are one value, or one lattice point: none has to be collected.
    value : ndarray of float64, shape (C,)
        Where they are tied: the least of its records, or one that is rounded as they are.
    """

    start: NDArray[np.int64]
    count: NDArray[np.int64]
    tied: NDArray[np.bool_]
    value: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BucketPlan(Plan):
    """A plan of `Buckets`.

    Attributes
    ----------
    bucket : ndarray of int64, shape (C,)
    cell : ndarray of object, shape (C,)
        The `Cell`, or None for a whole bucket.
    """

    bucket: NDArray[np.int64]
    cell: NDArray[Any]


class Counted(ABC):
    """Records counted by where they lie, so that some can be found by their places."""

    # Whether a pass that collects records takes about as long as one that counts them.
    gives_records = False

    @property
    @abstractmethod
    def total(self) -> int:
        """Number of records."""

    @abstractmethod
    def around(
        self, places: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Between which values the records at some places lie, and at which share of the way."""

    @abstractmethod
    def edges(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Ascending values, and about how many records are between each and the next."""

    @abstractmethod
    def plan(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Plan:
        """What holds the places start[s], ..., stop[s] - 1; passes until nothing is too full.

        Windows ascend, do not overlap, and none is empty.
        """

    def whole(self, more: int) -> NDArray[np.float64] | None:
        """All records in order if, with so many more to be read, that is worth it."""
        return None

    def collect(self, plan: Plan) -> NDArray[np.float64]:
        """The records of the plan but for the tied ones, in order; one pass."""
        expected = int(plan.count[~plan.tied].sum())
        if not expected:
            return np.empty(0)
        passes, query = self._taker(plan, expected)
        collected = query.all_of(passes.fold(query))
        if collected is None:
            raise source_changed()
        return collected

    @abstractmethod
    def _taker(self, plan: Any, size: int) -> tuple[Passes, Taken]:
        """The passes, and what takes the records of the plan but for the tied ones, so many."""

    @abstractmethod
    def ranks_of(
        self, values: NDArray[np.float64], held: CollectedWindows | None
    ) -> NDArray[np.int64]:
        """Number of records below each finite value, or UNKNOWN: not without a pass over them."""


class Buckets(Counted):
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


def room_for(records: int, windows: int, least: int) -> tuple[int, int]:
    """How many records a plan may have, and how many a cell of it, where it has more."""
    most = max(least, int(COLLECTED_SHARE * records))
    return most, max(FULL, most // (4 * windows))


def most_read(records: int) -> int:
    """Up to how many of so many records are read rather than cut by counts, in several passes."""
    return min(READ + int(READ_SHARE * records), MOST_READ)


def are_tied(least: NDArray[Any], most: NDArray[Any], lattice: Lattice | None) -> NDArray[np.bool_]:
    """Whether records between two values are all one value, or one lattice point."""
    if lattice is not None:
        least, most = lattice.encode(least), lattice.encode(most)
    tied: NDArray[np.bool_] = least == most
    return tied


class CollectedWindows:
    """Records at the places start[s], ..., stop[s] - 1 of some windows, and what holds them.

    Asked for one window at a time, so its tables are lists.

    Parameters
    ----------
    counted : Counted
    start, stop : ndarray of int64, shape (S,)
        Windows ascend, do not overlap, and none is empty.
    """

    def __init__(self, counted: Counted, start: NDArray[np.int64], stop: NDArray[np.int64]) -> None:
        plan = counted.plan(start, stop)
        self._start, self._stop = start.tolist(), stop.tolist()
        self._part_start: list[int] = plan.start.tolist()
        self.plan = plan
        # where each part of the plan begins among the collected
        size = np.where(plan.tied, 0, plan.count)
        offset = np.cumsum(size) - size
        self.offset = offset
        # from a window's places to those of its records among the collected, if none is tied
        first = np.searchsorted(plan.start, start, side="right") - 1
        last = np.searchsorted(plan.start, stop, side="left")
        tied = np.concatenate(([0], np.cumsum(plan.tied)))
        self._whole: list[bool] = (tied[last] == tied[first]).tolist()
        self._shift: list[int] = (offset - plan.start)[first].tolist()
        self.collected = counted.collect(plan)

    def holds(self, windows: list[tuple[int, int]]) -> bool:
        """Whether all of these windows are inside."""
        for start, stop in windows:
            window = bisect_right(self._start, start) - 1
            if window < 0 or stop > self._stop[window]:
                return False
        return True

    def parts(self, start: int, stop: int) -> range:
        """The parts of the plan that these places are in."""
        first = bisect_right(self._part_start, start) - 1
        return range(first, bisect_right(self._part_start, stop - 1))

    def ranks_of(self, starts: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Records below values that are in the parts which begin at places; UNKNOWN if not held."""
        plan = self.plan
        part = np.maximum(np.searchsorted(plan.start, starts, side="right") - 1, 0)
        held = (plan.start[part] == starts) & ~plan.tied[part]
        found = np.full(values.size, UNKNOWN)
        places = np.searchsorted(self.collected, values[held])
        found[held] = starts[held] + places - self.offset[part[held]]
        return found

    def direct(self, start: int, stop: int) -> NDArray[np.float64] | None:
        """The records at these places; None if some around them are left out as tied."""
        window = bisect_right(self._start, start) - 1
        if not self._whole[window]:
            return None
        shift = self._shift[window]
        return self.collected[start + shift : stop + shift]


class SelectedOrder(CoarseOrder):
    """Order over values that stay where they are.

    Parameters
    ----------
    chunks : Passes
        The records, in the unit of the bounds.
    counted : Counted
        The same values, counted.
    lattice, bounds
        As for `WholeOrder`.
    """

    scans = True

    def __init__(
        self,
        chunks: Passes,
        counted: Counted,
        lattice: Lattice | None,
        bounds: tuple[float, float],
    ) -> None:
        super().__init__(counted.total, lattice, bounds)
        if lattice is not None:
            self.origin = lattice.first - 0.5
        self._chunks = chunks
        self._counted = counted
        self._held: CollectedWindows | None = None  # windows collected ahead
        self._latest: CollectedWindows | None = None  # windows asked for
        self._ranks: dict[float, int] = {}  # records below a value, where it was asked

    def spread(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        lower, upper, share = self._counted.around(places)
        unit = 1.0 if self.lattice is None else self.lattice.step
        return (lower + (upper - lower) * share) / unit

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        return intervals_kernel.log_spans(self.spread(places), -math.inf, math.inf, 1.0)

    def _points(self, windows: list[tuple[int, int]]) -> NDArray[Any]:
        start, stop = windows[0]
        if start == stop:  # no records
            return np.empty(0, dtype=np.float64 if self.lattice is None else np.int64)
        held = self._held
        if held is None or not held.holds(windows):
            whole = self._in_order(sum(stop - start for start, stop in windows))
            if whole is not None:
                return whole._points(windows)
            held = CollectedWindows(self._counted, *np.array(windows).T)
        self._latest = held
        records = self._records(start, stop, held)
        if len(windows) > 1:
            others = [self._records(start, stop, held) for start, stop in windows[1:]]
            records = np.concatenate([records, *others])
        return records if self.lattice is None else self.lattice.encode_ready(records)

    def prepare(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> None:
        if not self.n:
            return
        ascending = np.argsort(first, kind="stable")
        first, count = first[ascending], count[ascending]
        # one window after another, those that touch as one
        starts = np.maximum(first - 1, 0)
        stops = np.maximum.accumulate(np.minimum(first + count, self.n))
        apart = np.flatnonzero(starts[1:] > stops[:-1]) + 1
        begin = np.concatenate(([0], apart))
        end = np.concatenate((apart, [starts.size])) - 1
        start, stop = starts[begin], stops[end]
        if self._in_order(int((stop - start).sum())) is None:
            self._held = CollectedWindows(self._counted, start, stop)

    def _in_order(self, more: int = 0) -> SortedOrder | None:
        """All records in order if, with so many more to be read, that is worth it."""
        whole = self._counted.whole(more)
        return None if whole is None else SortedOrder(whole, self.lattice, self.bounds)

    def _records(self, start: int, stop: int, held: CollectedWindows) -> NDArray[np.float64]:
        """Records at places start, ..., stop - 1."""
        records = held.direct(start, stop)
        if records is not None:
            return records
        parts, plan = held.parts(start, stop), held.plan
        part = slice(parts.start, parts.stop)
        below, tied = plan.start[part], plan.tied[part]
        first = np.maximum(start - below, 0)
        size = np.minimum(stop - below, plan.count[part]) - first
        found = np.repeat(plan.value[part], size)
        # those that are not tied stand next to each other
        offset, taken = held.offset[part], ~tied
        begin = int(offset[0] + (0 if tied[0] else first[0]))
        number = int(size[taken].sum())
        found[np.repeat(taken, size)] = held.collected[begin : begin + number]
        return found

    def ranks_of(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        whole = self._in_order()
        if whole is not None:
            return whole.ranks_of(outputs)
        values = self._least(outputs)
        ranks = np.where(values == math.inf, self.n, 0)
        finite = np.isfinite(values)
        ranks[finite] = self._ranks_of(values[finite])
        return ranks

    def _ranks_of(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Number of records below each number."""
        ranks = self._counted.ranks_of(values, self._latest)
        known = ranks != UNKNOWN
        # finished ones alone: other threads may read
        self._ranks.update(zip(values[known].tolist(), ranks[known].tolist(), strict=True))
        asked = values[~known].tolist()
        unknown = sorted(value for value in set(asked) if value not in self._ranks)
        if unknown:  # a pass for all of them
            bins = Bins.of([-math.inf, *unknown, math.inf])
            counts = self._chunks.fold(BinCounts(bins))
            self._ranks.update(zip(unknown, np.cumsum(counts)[:-1].tolist(), strict=True))
        ranks[~known] = [self._ranks[value] for value in asked]
        return ranks

    def cuts(self, around: list[Stretch]) -> Cuts:
        low, high, _ = stretches_of(around, self.n)
        low, high = low[low < high], high[low < high]
        together = np.append(low[1:] <= high[:-1], False)
        start, stop = low[np.append(True, ~together[:-1])], high[~together]
        number = int((stop - start).sum())
        are_read = self._counted.gives_records and number <= most_read(self.n)
        whole = self._in_order(0 if are_read else number)  # what is read is added there
        if whole is not None:
            return whole.cuts(around)
        if are_read:
            return cuts_of_runs(self._runs_at(start, stop), around, self.n)
        return self._cutter.around(around)

    def _runs_at(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Cuts:
        """The runs of ties among the records at places start[w], ..., stop[w] - 1."""
        points = self._points(list(zip(start.tolist(), stop.tolist(), strict=True)))
        offset = np.cumsum(stop - start) - (stop - start)
        begins = np.append(True, points[1:] != points[:-1])
        begins[offset] = True
        first = np.flatnonzero(begins)
        window = np.searchsorted(offset, first, side="right") - 1
        below = start[window] + first - offset[window]
        above = np.append(below[1:], stop[-1])
        point = points[first]
        # those at the ends of windows may go on beyond
        lowest = np.searchsorted(first, offset)
        highest = np.append(lowest[1:], first.size) - 1
        past = point[highest] + 1 if self.lattice else np.nextafter(point[highest], np.inf)
        ranks = self.ranks_of(np.concatenate((point[lowest], past)))
        below[lowest], above[highest] = np.split(ranks, 2)
        once = np.append(True, point[1:] != point[:-1])
        return Cuts(point[once], below[once], above[once])

    @cached_property
    def _cutter(self) -> Cutter:
        return Cutter(self._chunks, *self._counted.edges(), self.lattice, self.bounds)

    def _least(self, outputs: NDArray[Any]) -> NDArray[np.float64]:
        """The least record that is not below each output."""
        if self.lattice is not None:
            return self.lattice.least(outputs)
        # Records are clamped: none is below the low bound, all are below what is above the high.
        low, high = self.bounds
        return np.where(outputs <= low, -np.inf, np.where(outputs > high, np.inf, outputs))


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


def source_changed() -> ValueError:
    """What is raised where one pass does not fit to another."""
    return ValueError("the source of batches must give the same records at every pass")
