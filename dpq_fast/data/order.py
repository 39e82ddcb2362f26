"""Order statistics in windows of ranks: the one representation that all mechanisms share.

An order answers questions about a sample of n records without ever showing all of them: the
positive-width intervals inside given windows of ranks, where a rank lies roughly, how many
records lie below a point. Interval i in {0, ..., n} lies between x_i and x_{i+1}; it has rank i,
and on a lattice it holds the points in (x_i, x_{i+1}], with x_0 = -1 and x_{n+1} the last point.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as kernel
from dpq_fast.data.columns import as_float64, is_plain
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.prior import Masses

# Places are listed so many at a time, or some more.
PLACES = 2**15
# More places than that are looked up one after the other, as many of them will be tied; less are
# looked up side by side, as they are not near each other in memory.
MANY_PLACES = 2**17
# Among at most this many sorted records, ranks are found by looking at all of them.
FEW_RECORDS = 2**9
# Runs of ties are listed where all lattice points would have so many records each.
RUNS_EACH = 16


class Intervals(NamedTuple):
    """Positive-width intervals, ascending: the compressed sample inside some windows.

    Attributes
    ----------
    rank : ndarray of int64, shape (T,)
        Records below the interval.
    width : ndarray of float64, shape (T,)
        Number of (fine) lattice points, exact; or the length, for the continuous mechanism.
    left : ndarray of int64 or float64, shape (T,)
        x_i: the interval starts after this point.
    """

    rank: NDArray[np.int64]
    width: NDArray[np.float64]
    left: NDArray[Any]


class Cuts(NamedTuple):
    """Where outputs are cut into blocks, ascending and distinct.

    Attributes
    ----------
    point : ndarray of int64 or float64, shape (C,)
        Outputs up to and with it are on one side. A (fine) lattice point, or a number.
    below : ndarray of int64, shape (C,)
        No output on that side has more records below it.
    above : ndarray of int64, shape (C,)
        No output on the other side has fewer. Where many records are tied it is far more.
    """

    point: NDArray[Any]
    below: NDArray[np.int64]
    above: NDArray[np.int64]


class Stretch(NamedTuple):
    """Ranks that outputs are to be told apart by, as far as blocks of so many.

    Attributes
    ----------
    most : int
        Outputs between two cuts have fewer ranks, tied records apart.
    first, last : ndarray of int64, shape (S,)
        Ranks first[s], ..., last[s], in ascending order; -most or a multiple of it.
    """

    most: int
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def meets(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether some of these ranks are among start[i], ..., stop[i], which ascend."""
        return np.searchsorted(self.last, start) < np.searchsorted(self.first, stop, side="right")


def innermost(edges: NDArray[np.int64], around: list[Stretch]) -> NDArray[np.int64]:
    """`most` of the first stretch that goes from each edge to the next, or 0.

    Stretches begin and end at some of the edges.
    """
    most = np.zeros(edges.size - 1, dtype=np.int64)
    for stretch in reversed(around):
        start = np.searchsorted(edges, stretch.first).tolist()
        stop = np.searchsorted(edges, stretch.last).tolist()
        for run in map(slice, start, stop):
            most[run] = stretch.most
    return most


def stretches_of(
    around: list[Stretch], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """What is asked for of n records: multiples of size[t] from low[t] on, below high[t].

    The last record is asked for, too, where stretches reach the end.
    """
    edges = np.unique(np.concatenate([part for _, *ends in around for part in ends]))
    most = innermost(edges, around)
    held = np.flatnonzero(most)
    low, high, size = edges[held], edges[held + 1], most[held]
    reaches_end = bool(around[-1].last[-1] >= n)
    low = np.clip(low, 0, n - reaches_end)
    high = np.clip(high, low, n - reaches_end)
    if reaches_end:
        low, high, size = np.append(low, n - 1), np.append(high, n), np.append(size, 1)
    return low, high, size


def places_of(around: list[Stretch], n: int) -> Iterator[NDArray[np.int64]]:
    """The records that are asked for, in parts."""
    ready: list[NDArray[np.int64]] = []
    listed = 0
    for low, high, size in np.array(stretches_of(around, n)).T.tolist():
        ready.append(np.arange(-(-low // size) * size, high, size))
        listed += ready[-1].size
        if listed >= PLACES:
            yield np.concatenate(ready)
            ready, listed = [], 0
    if ready:
        yield np.concatenate(ready)


class Order(ABC):
    """What mechanisms ask of a sample in order, or of a part of one.

    Attributes
    ----------
    n : int
        Number of records. Private under add-remove and with omitted NaN.
    lattice : Lattice or None
        None for the continuous mechanism.
    bounds : (float, float)
    before, last : int or float
        x_0 and x_{n+1}.
    extent : float
        The measure of all outputs.
    skipped : int
        Records of the whole sample that are below this part of it.
    """

    n: int
    lattice: Lattice | None
    bounds: tuple[float, float]
    before: float
    last: float
    extent: float
    skipped: int

    def log_volume(self, m: int) -> float:
        """ln of the measure of all non-decreasing m-tuples of outputs."""
        return log_volume(self.extent, m, self.lattice is not None)

    @abstractmethod
    def intervals(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> Intervals:
        """Positive-width intervals of `count[s]` ranks from `first[s]` on, s disjoint segments."""

    @abstractmethod
    def prepare(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> None:
        """Collect ahead what intervals of `count[s]` ranks from `first[s]` on will need."""

    def records(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[Any] | None:
        """The records that these `intervals` begin and end at, in order, segment after segment.

        They are the same, in less time and space; None where `intervals` take less.
        """
        return None

    def records_at(self, ranks: NDArray[np.int64]) -> NDArray[Any] | None:
        """x_r for some r from 0 to n + 1, ascending; None where that takes all that lie between."""
        return None

    @abstractmethod
    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """About ln of how far records are apart, in (fine) points or units; -inf for ties.

        `places` counts records in order from 0: the lower ones of all pairs, then the upper ones.
        """

    @abstractmethod
    def rank_of(self, output: float) -> int:
        """Number of records below an output: a (coarse) lattice point, or a number.

        A number at the low bound belongs to the first interval that has a width: records at the
        bound count as below it.
        """

    @abstractmethod
    def cell(self, point: int) -> tuple[int, NDArray[np.int64]]:
        """Records below a coarse lattice point, and the fine points of the records on it."""


def log_volume(extent: float, m: int, lattice: bool) -> float:
    """`Order.log_volume` of outputs that have this measure."""
    if m == 1:
        return math.log(extent)
    if not lattice:
        return m * math.log(extent) - math.lgamma(m + 1)
    return sum(math.log((extent + i) / (i + 1.0)) for i in range(m))


public_volume = lru_cache(maxsize=256)(log_volume)


class WholeOrder(Order):
    """The order of a whole sample: it holds the records, or finds them.

    Attributes
    ----------
    scans : bool
        Whether windows are collected by passes over the records: then `prepare` saves passes.
    """

    skipped = 0
    scans = False
    _compress: Callable[..., tuple[NDArray[np.int64], NDArray[np.float64], NDArray[Any]]]

    def __init__(self, n: int, lattice: Lattice | None, bounds: tuple[float, float]) -> None:
        self.n = n
        self.lattice = lattice
        self.bounds = bounds
        if lattice is None:
            self.before, self.last = bounds
            self.extent = self.last - self.before
            self._compress = kernel.compress_continuous
        else:
            self.before, self.last = -1, lattice.fine_points - 1
            self.extent = float(lattice.fine_points)
            self._compress = kernel.compress_lattice

    def log_volume(self, m: int) -> float:
        return public_volume(self.extent, m, self.lattice is not None)

    def intervals(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> Intervals:
        return self.intervals_of(self, first, count)

    def records(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[Any] | None:
        return self._points(kernel.records(first, count, self.n, 0))

    def records_at(self, ranks: NDArray[np.int64]) -> NDArray[Any] | None:
        points = self._points_at(np.clip(ranks - 1, 0, self.n - 1)) if self.n else None
        if points is not None:
            points[: np.searchsorted(ranks, 1)] = self.before
            points[np.searchsorted(ranks, self.n + 1) :] = self.last
        return points

    def _points_at(self, places: NDArray[np.int64]) -> NDArray[Any] | None:
        """(Fine) points of the records at some places, ascending; see `records_at`."""
        return None

    def intervals_of(
        self, part: Order, first: NDArray[np.int64], count: NDArray[np.int64]
    ) -> Intervals:
        """`intervals` of a part of this order, or of all of it."""
        points = self._points(kernel.records(first, count, part.n, part.skipped))
        return Intervals(*self._compress(first, count, part.n, part.before, part.last, points))

    @abstractmethod
    def _points(self, windows: list[tuple[int, int]]) -> NDArray[Any]:
        """(Fine) points of the records at places start, ..., stop - 1, window after window."""

    @abstractmethod
    def ranks_of(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        """Number of records below each (coarse) lattice point, or number."""

    def fine_ranks(self, points: NDArray[Any]) -> NDArray[np.int64]:
        """Number of records below each (fine) lattice point, or number."""
        return self.ranks_of(points)

    def rank_of(self, output: float) -> int:
        if self.lattice is None and output == self.before:
            output = math.nextafter(output, math.inf)
        return int(self.ranks_of(np.array([output]))[0])

    def cell(self, point: int) -> tuple[int, NDArray[np.int64]]:
        start, stop = self.ranks_of(np.array([point, point + 1])).tolist()
        return start, self._points([(start, stop)])

    def prepare(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> None:
        pass  # there are no passes to save

    def by_runs(self) -> WholeOrder:
        """The same by runs of ties, if these are far fewer than records: for who asks for most."""
        return self


class CutOrder(WholeOrder):
    """An order whose outputs are cut between its records."""

    @abstractmethod
    def cuts(self, around: list[Stretch]) -> Cuts:
        """Cuts between the ranks of some stretches, and perhaps others: ascending, at least one.

        By ascending `most`; ranks of several stretches are cut as the first of these asks for. If
        there is only one kind, blocks do not depend on what other ranks are asked for. What the
        first cut has `below` it and the last one `above` may be anything that fits.
        """


class CoarseOrder(CutOrder):
    """An order of records that may be dithered on top.

    Attributes
    ----------
    origin : float
        What `spread` gives for the border of the first point.
    """

    origin = 0.0

    @abstractmethod
    def spread(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """About where records will lie once they are dithered, in coarse points.

        `places` as for `log_spans`.
        """

    def ties(self, places: NDArray[np.int64]) -> Cuts | None:
        """Runs of ties, ascending, that hold the records at some ascending places.

        Their points, and the records below each and up to it. There may be others between, and one
        again for each place. None where that takes all records that lie between.
        """
        return None

    def weighed(self, places: NDArray[np.int64], masses: Masses) -> NDArray[np.float64]:
        """`spread` in fine points of a prior."""
        return masses.at(self.spread(places) - self.origin)


class SortedOrder(CoarseOrder):
    """Order over n sorted values, which stay as they are: only windows are ever encoded.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Ascending: records of any real dtype in the unit of the bounds, or fine points (int64).
    lattice, bounds
        As for `Order`.
    fine : bool
        Whether `values` are fine points already.
    """

    def __init__(
        self,
        values: NDArray[Any],
        lattice: Lattice | None,
        bounds: tuple[float, float],
        fine: bool = False,
    ) -> None:
        super().__init__(values.size, lattice, bounds)
        self._values = values
        self._fine = fine

    def _encode(self, values: NDArray[Any]) -> NDArray[Any]:
        if self._fine:
            return values
        if self.lattice is None:
            low, high = self.bounds
            return np.fmin(np.fmax(as_float64(values), low), high)  # a stray NaN becomes low
        return self.lattice.encode(values)

    def _points(self, windows: list[tuple[int, int]]) -> NDArray[Any]:
        pieces = [self._values[start:stop] for start, stop in windows]
        return self._encode(pieces[0] if len(pieces) == 1 else np.concatenate(pieces))

    def _points_at(self, places: NDArray[np.int64]) -> NDArray[Any] | None:
        return self._encode(self._values.take(places))

    def ties(self, places: NDArray[np.int64]) -> Cuts | None:
        if self.lattice is not None and is_plain(self._values):
            return Cuts(*self.lattice.ties(self._values, places))
        point = self._encode(self._values.take(places))
        return Cuts(point, self.ranks_of(point), self.ranks_of(point + 1))

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        values = as_float64(self._values.take(places))
        if self._fine:
            return kernel.log_spans(values, self.before, self.last, 1.0)
        unit = 1.0 if self.lattice is None else self.lattice.step
        return kernel.log_spans(values, *self.bounds, unit)

    def ranks_of(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        points = outputs
        if self._fine:
            assert self.lattice is not None
            points = self.lattice.starts(outputs)
        return self.fine_ranks(points)

    def fine_ranks(self, points: NDArray[Any]) -> NDArray[np.int64]:
        if self.n <= FEW_RECORDS:
            return np.searchsorted(self._encode(self._values), points)
        lo = np.zeros(points.size, dtype=np.int64)
        return self._bisected(points, lo, np.full(points.size, self.n))

    def _bisected(
        self, points: NDArray[Any], lo: NDArray[np.int64], hi: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Records below each point, from lo to hi of them; both are overwritten."""
        lattice = self._kernels_lattice
        if lattice is not None:
            lattice.ranks(self._values, points, lo, hi)
            return lo
        at: NDArray[Any] = np.flatnonzero(lo < hi)
        while at.size:  # for all at once
            middle = (lo[at] + hi[at]) // 2
            below = self._encode(self._values.take(middle)) < points[at]
            lo[at[below]] = middle[below] + 1
            hi[at[~below]] = middle[~below]
            at = at[lo[at] < hi[at]]
        return lo

    def cuts(self, around: list[Stretch]) -> Cuts:
        low, high, size = stretches_of(around, self.n)
        lattice = self._kernels_lattice
        if lattice is not None and ((high - low) / size).sum() > MANY_PLACES:
            return Cuts(*lattice.runs(self._values, low, high, size))
        runs = []
        for places in places_of(around, self.n):
            points = self._encode(self._values.take(places))
            start, end = _runs(points)
            runs.append((points[start], places[start], places[end]))
        # what is tied may go on from some places to the next
        point, first, last = (np.concatenate(each) for each in zip(*runs, strict=True))
        start, end = _runs(point)
        point, first, last = point[start], first[start], last[end]
        # a run of ties begins after the record taken before it, and ends before the next
        past = point + 1 if self.lattice is not None else np.nextafter(point, np.inf)
        lo = np.concatenate(([0], last[:-1] + 1, last + 1))
        hi = np.concatenate((first, first[1:], [self.n]))
        return Cuts(point, *np.split(self._bisected(np.append(point, past), lo, hi), 2))

    @property
    def _kernels_lattice(self) -> Lattice | None:
        """The lattice, if kernels take the values as they stand and round them to it."""
        return None if self._fine or not is_plain(self._values) else self.lattice

    def by_runs(self) -> WholeOrder:
        lattice = self._kernels_lattice
        if lattice is None or RUNS_EACH * lattice.points > self.n:
            return self
        everything = (np.array([each]) for each in (0, self.n, 1))
        point, below, above = lattice.runs(self._values, *everything)
        return CountedOrder(point, above - below, lattice, self.bounds)

    def spread(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        points = self._encode(self._values.take(places))
        at = points + 0.5
        half = points.size // 2
        tied = np.tile(points[:half] == points[half:], 2)  # of one block: where inside
        if tied.any():
            start = self.ranks_of(points[tied])
            size = self.ranks_of(points[tied] + 1) - start
            at[tied] += (places[tied] + 0.5 - start) / size - 0.5
        return at


def cuts_of_runs(runs: Cuts, around: list[Stretch], n: int) -> Cuts:
    """Those of ascending runs of ties that some stretches ask for; there are all between these."""
    low, high, size = stretches_of(around, n)
    point, start, end = runs
    first = np.searchsorted(end, low, side="right")
    met = np.maximum(np.searchsorted(start, high) - first, 0)
    stretch = np.repeat(np.arange(low.size), met)
    run = np.arange(stretch.size) - np.repeat(np.cumsum(met) - met - first, met)
    # the last place that is asked for and below the end of both must not be before both begin
    size, last = size[stretch], np.minimum(end[run], high[stretch]) - 1
    held = last // size * size >= np.maximum(start[run], low[stretch])
    run = run[held]  # ascending
    run = run[np.append(True, run[1:] > run[:-1])] if run.size else run
    return Cuts(point[run], start[run], end[run])


def _runs(points: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where runs of equal ones start, and where they end."""
    change = np.flatnonzero(points[1:] != points[:-1])
    return np.append(0, change + 1), np.append(change, points.size - 1)


class _Borders(NamedTuple):
    """Between two runs of records, and at both ends: ranks, and the points around them."""

    rank: NDArray[np.int64]
    left: NDArray[Any]
    right: NDArray[Any]


class CountedOrder(CoarseOrder):
    """Order over distinct values and their counts.

    Parameters
    ----------
    values : ndarray of int64 or float64, shape (R,)
        Distinct, ascending: coarse lattice points, or clamped numbers without a lattice.
    counts : ndarray of int64, shape (R,)
        Records at each, all positive.
    """

    def __init__(
        self,
        values: NDArray[Any],
        counts: NDArray[np.int64],
        lattice: Lattice | None,
        bounds: tuple[float, float],
    ) -> None:
        # how many records are before each run, and at the end
        self._ranks: NDArray[np.int64] = np.append(0, counts).cumsum(dtype=np.int64)
        super().__init__(int(self._ranks[-1]), lattice, bounds)
        self._values = values
        self._counts = counts
        self._begins, self._ends = self._ranks[:-1], self._ranks[1:]  # of each run

    @cached_property
    def _borders(self) -> _Borders:
        # Only the border between two runs has width: rank ends[run - 1], from value to value.
        kind = self._values.dtype
        return _Borders(
            self._ranks,
            np.concatenate(([self.before], self._values)).astype(kind),
            np.concatenate((self._values, [self.last])).astype(kind),
        )

    def ranks_of(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        return self._ranks[np.searchsorted(self._values, outputs)]

    def cuts(self, around: list[Stretch]) -> Cuts:
        return cuts_of_runs(Cuts(self._values, self._begins, self._ends), around, self.n)

    def ties(self, places: NDArray[np.int64]) -> Cuts | None:
        first, last = places[[0, -1]].tolist() if places.size else (0, -1)
        low = np.searchsorted(self._ends, first, side="right")
        high = np.searchsorted(self._begins, last, side="right")
        return Cuts(*(each[low:high] for each in (self._values, self._begins, self._ends)))

    def _points_at(self, places: NDArray[np.int64]) -> NDArray[Any] | None:
        return self._values[np.searchsorted(self._ends, places, side="right")]

    def _points(self, windows: list[tuple[int, int]]) -> NDArray[np.int64]:
        pieces = []
        for start, stop in windows:
            first = int(np.searchsorted(self._ends, start, side="right"))
            last = int(np.searchsorted(self._ends, stop - 1, side="right")) + 1
            ends = np.clip(self._ends[first:last], start, stop)
            pieces.append(np.repeat(self._values[first:last], np.diff(ends, prepend=start)))
        return np.concatenate(pieces)

    def records(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[Any] | None:
        return None  # there are as many intervals as runs

    def intervals_of(
        self, part: Order, first: NDArray[np.int64], count: NDArray[np.int64]
    ) -> Intervals:
        reached = part.skipped + first[0], part.skipped + first[-1] + count[-1]
        places = slice(*np.searchsorted(self._borders.rank, reached))
        rank, left, right = (each[places] for each in self._borders)
        if part is not self:
            rank = rank - part.skipped
            # those that hold the ends of a part belong to it as far as the ends
            left, right = np.maximum(left, part.before), np.minimum(right, part.last)
        inside = right > left
        if first.size > 1:
            segment = np.searchsorted(first, rank, side="right") - 1
            inside &= rank < first[segment] + count[segment]
        return Intervals(rank[inside], (right - left)[inside].astype(np.float64), left[inside])

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        run = np.searchsorted(self._ends, places, side="right")
        return kernel.log_spans(self._values[run].astype(np.float64), -math.inf, math.inf, 1.0)

    def spread(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        run = np.searchsorted(self._ends, places, side="right")
        return self._values[run] + 1.0 + (places + 0.5 - self._ends[run]) / self._counts[run]


class WeighedOrder(CutOrder):
    """An order without dither on a lattice with a prior: records lie at the ends of their cells.

    Parameters
    ----------
    coarse : CoarseOrder
        The records on the same lattice without a prior.
    lattice : Lattice
        Without dither bits.
    """

    def __init__(self, coarse: CoarseOrder, lattice: Lattice) -> None:
        super().__init__(coarse.n, lattice, coarse.bounds)
        assert lattice.masses is not None
        self.scans = coarse.scans
        self._coarse = coarse
        self._masses = lattice.masses

    def records(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[Any] | None:
        return None  # many records are tied

    def intervals_of(
        self, part: Order, first: NDArray[np.int64], count: NDArray[np.int64]
    ) -> Intervals:
        # the intervals of the whole, as far as they are inside of the part
        rank, width, left = self._coarse.intervals(first + part.skipped, count)
        right = self._masses.below(left + width.astype(np.int64) + 1) - 1
        left = np.maximum(self._masses.below(left + 1) - 1, part.before).astype(np.int64)
        right = np.minimum(right, part.last).astype(np.int64)
        inside = right > left
        return Intervals(
            rank[inside] - part.skipped, (right - left)[inside].astype(np.float64), left[inside]
        )

    def _points(self, windows: list[tuple[int, int]]) -> NDArray[np.int64]:
        return self._masses.spread(self._coarse._points(windows), 0)

    def _points_at(self, places: NDArray[np.int64]) -> NDArray[Any] | None:
        points = self._coarse._points_at(places)
        return None if points is None else self._masses.spread(points, 0)

    def ranks_of(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        return self._coarse.ranks_of(outputs)

    def fine_ranks(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._coarse.ranks_of(self._masses.points_of(points))  # none inside of a cell

    def cuts(self, around: list[Stretch]) -> Cuts:
        point, below, above = self._coarse.cuts(around)
        return Cuts(self._masses.below(point + 1) - 1, below, above)

    def cell(self, point: int) -> tuple[int, NDArray[np.int64]]:
        return self._coarse.rank_of(point), np.empty(0, dtype=np.int64)  # none inside

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        at = self._coarse.weighed(places, self._masses)
        return kernel.log_spans(at, -math.inf, math.inf, 1.0)

    def prepare(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> None:
        self._coarse.prepare(first, count)
