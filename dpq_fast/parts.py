"""Parts of a sample between two released outputs, over windows of ranks collected in one go."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.order import Intervals, Order, joined
from dpq_fast.path_law import windows_around

# How far the target of a part may drift from that of the whole sample, by the errors of the
# outputs around it, before its window has to be collected anew: in units of 1 / rate.
DRIFT = 4.0


class Cut(NamedTuple):
    """Where a sample is cut in two: records below the point go left, the others right.

    Attributes
    ----------
    point : int or float
        An output: a (fine) lattice point, or a number.
    rank : int
        Records below it.
    """

    point: float
    rank: int


class Windows:
    """An order's intervals around some levels, collected ahead; others where they are asked for.

    Parameters
    ----------
    order : Order
        The whole sample.
    q : ndarray of float64, shape (m,)
        Ascending levels.
    rates : ndarray of float64, shape (m,)
        Loss of log-weight per rank, for each level.
    """

    def __init__(self, order: Order, q: NDArray[np.float64], rates: NDArray[np.float64]) -> None:
        self.order = order
        drift = math.ceil(min(DRIFT / float(rates.min()), order.n))
        first, stop = joined(*windows_around(order, q, rates / 2.0, drift))
        self._first, self._stop = first.tolist(), stop.tolist()
        self._held = order.intervals(first, stop - first)

    def ends(self) -> tuple[Cut, Cut]:
        """The cuts around the whole sample."""
        lowest = self.order.before + (self.order.lattice is not None)
        return Cut(lowest, 0), Cut(self.order.last, self.order.n)

    def intervals(self, first: int, count: int) -> Intervals:
        """Positive-width intervals of `count` ranks from `first` on; a pass if they are not held."""
        segment = bisect_right(self._first, first) - 1
        if segment < 0 or first + count > self._stop[segment]:
            return self.order.intervals(np.array([first]), np.array([count]))
        rank, width, left = self._held
        lo, hi = rank.searchsorted((first, first + count))
        return Intervals(rank[lo:hi], width[lo:hi], left[lo:hi])


class Part(Order):
    """The order of the records below.point <= x < above.point, for outputs from one to the other.

    Its ranks count from the cut below. Outputs of the continuous mechanism lie above `below`.
    """

    def __init__(self, windows: Windows, below: Cut, above: Cut) -> None:
        order = windows.order
        super().__init__(above.rank - below.rank, order.lattice, order.bounds)
        self.before = below.point - (order.lattice is not None)
        self.last = above.point
        self.extent = float(self.last - self.before)
        self._windows = windows
        self._skipped = below.rank

    def intervals(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> Intervals:
        # one level has one window
        start, stop = int(first[0]), int(first[0] + count[0])
        held = self._windows.intervals(start + self._skipped, stop - start)
        rank, width, left = held.rank - self._skipped, held.width.copy(), held.left.copy()
        # the intervals that hold the cuts belong to the part as far as the cuts
        if start == 0 and rank.size and rank[0] == 0:
            right = left[1] if left.size > 1 else left[0] + width[0]
            left[0] = self.before
            width[0] = right - self.before
        if stop == self.n + 1 and rank.size and rank[-1] == self.n:
            width[-1] = self.last - left[-1]
        positive = width > 0.0  # without a lattice, a cut may be rounded to a record
        return Intervals(rank[positive], width[positive], left[positive])

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._windows.order.log_spans(places + self._skipped)

    def rank_of(self, output: float) -> int:
        return self._windows.order.rank_of(output) - self._skipped

    def cell(self, point: int) -> tuple[int, NDArray[np.int64]]:
        below, points = self._windows.order.cell(point)
        return below - self._skipped, points
