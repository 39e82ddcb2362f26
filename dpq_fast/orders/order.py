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
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as kernel
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.prior import Masses

# Places are listed so many at a time, or some more.
PLACES = 2**15


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
    def cell(self, point: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The fine points of the records on a coarse lattice point, and how many are before each.

        The last one of these numbers is how many are below the next point.
        """


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
    uneven : bool
        Whether records stand for very many ranks each: then intervals tell what ranks do not.
    """

    skipped = 0
    scans = False
    uneven = False
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

    def cell(self, point: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        start, stop = self.ranks_of(np.array([point, point + 1])).tolist()
        return np.arange(start, stop + 1), self._points([(start, stop)])

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
