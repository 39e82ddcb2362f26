"""Orders on a lattice with a prior."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as kernel
from dpq_fast.data.lattice import Lattice
from dpq_fast.orders.order import CoarseOrder, CutOrder, Cuts, Intervals, Order, Stretch


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
        self.scans, self.uneven = coarse.scans, coarse.uneven
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

    def cell(self, point: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self._coarse.ranks_of(np.array([point])), np.empty(0, dtype=np.int64)  # none inside

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        at = self._coarse.weighed(places, self._masses)
        return kernel.log_spans(at, -math.inf, math.inf, 1.0)

    def prepare(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> None:
        self._coarse.prepare(first, count)
