"""Order statistics of unsorted values: a pass counts them, and another one collects some.

Counts are exact, and what is counted as one is collected whole or not at all: whatever decides what
to collect, the order statistics are what they are. How they are counted is for a `CountedRecords`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as kernel
from dpq_fast.data.histogram import Bins
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.passes import Passes
from dpq_fast.data.queries import BinCounts, Taken
from dpq_fast.orders.cutting import Cutter
from dpq_fast.orders.order import CoarseOrder, Cuts, Stretch, cuts_of_runs, stretches_of
from dpq_fast.orders.sorted import SortedOrder

# Up to this share of all records is collected, or so many as the way of counting says. Where a plan
# has more, cells that hold more than their part of them (and more than FULL) are counted again.
COLLECTED_SHARE = 2.0**-5
FULL = 2**10
# So many records, and this share of all, up to so many, are read to be cut; more are counted.
READ, READ_SHARE, MOST_READ = 2**19, 2.0**-3, 2**22
# The rank of a value that takes a pass.
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class CellsOfPlaces:
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


class CountedRecords(ABC):
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
    def plan(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> CellsOfPlaces:
        """What holds the places start[s], ..., stop[s] - 1; passes until nothing is too full.

        Windows ascend, do not overlap, and none is empty.
        """

    def whole(self, more: int) -> NDArray[np.float64] | None:
        """All records in order if, with so many more to be read, that is worth it."""
        return None

    def collect(self, plan: CellsOfPlaces) -> NDArray[np.float64]:
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
    counted : CountedRecords
    start, stop : ndarray of int64, shape (S,)
        Windows ascend, do not overlap, and none is empty.
    """

    def __init__(
        self, counted: CountedRecords, start: NDArray[np.int64], stop: NDArray[np.int64]
    ) -> None:
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
    counted : CountedRecords
        The same values, counted.
    lattice, bounds
        As for `WholeOrder`.
    """

    scans = True

    def __init__(
        self,
        chunks: Passes,
        counted: CountedRecords,
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
        return kernel.log_spans(self.spread(places), -math.inf, math.inf, 1.0)

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


def source_changed() -> ValueError:
    """What is raised where one pass does not fit to another."""
    return ValueError("the source of batches must give the same records at every pass")
