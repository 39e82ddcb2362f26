"""Orders over distinct values and their counts."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as kernel
from dpq_fast.data.lattice import Lattice
from dpq_fast.orders.order import CoarseOrder, Cuts, Intervals, Order, Stretch, cuts_of_runs


class Borders(NamedTuple):
    """Between two runs of records, and at both ends: ranks, and the points around them."""

    rank: NDArray[np.int64]
    left: NDArray[Any]
    right: NDArray[Any]

    def intervals(
        self, part: Order, whole: Order, first: NDArray[np.int64], count: NDArray[np.int64]
    ) -> Intervals:
        """Those of a part of an order that are asked for, as `Order.intervals`."""
        reached = part.skipped + first[0], part.skipped + first[-1] + count[-1]
        places = slice(*np.searchsorted(self.rank, reached))
        rank, left, right = (each[places] for each in self)
        if part is not whole:
            rank = rank - part.skipped
            # those that hold the ends of a part belong to it as far as the ends
            left, right = np.maximum(left, part.before), np.minimum(right, part.last)
        inside = right > left
        if first.size > 1:
            segment = np.searchsorted(first, rank, side="right") - 1
            inside &= rank < first[segment] + count[segment]
        return Intervals(rank[inside], (right - left)[inside].astype(np.float64), left[inside])


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
    def _borders(self) -> Borders:
        # Only the border between two runs has width: rank ends[run - 1], from value to value.
        kind = self._values.dtype
        return Borders(
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
        return self._borders.intervals(part, self, first, count)

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        run = np.searchsorted(self._ends, places, side="right")
        return kernel.log_spans(self._values[run].astype(np.float64), -math.inf, math.inf, 1.0)

    def spread(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        run = np.searchsorted(self._ends, places, side="right")
        return self._values[run] + 1.0 + (places + 0.5 - self._ends[run]) / self._counts[run]
