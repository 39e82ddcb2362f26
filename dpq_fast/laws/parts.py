"""Parts of a sample between two outputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.order import Intervals, Order, WholeOrder
from dpq_fast.privacy.levels import Split


class Cut(NamedTuple):
    """Where a sample is cut in two: records below the point go left, the others right.

    Attributes
    ----------
    point : int or float
        An output: a (fine) lattice point, a number, or the index of a candidate.
    rank : int
        Records below it.
    """

    point: Any
    rank: int


def ends(order: WholeOrder) -> tuple[Cut, Cut]:
    """The cuts around a whole sample."""
    lowest = order.before + (order.lattice is not None)
    return Cut(lowest, 0), Cut(order.last, order.n)


class Part(Order):
    """The order of the records below.point <= x < above.point, for outputs from one to the other.

    Its ranks count from the cut below. Outputs of the continuous mechanism lie above `below`.
    """

    def __init__(self, order: WholeOrder, below: Cut, above: Cut) -> None:
        self.n = above.rank - below.rank
        self.lattice = order.lattice
        self.bounds = order.bounds
        self.before = below.point - (order.lattice is not None)
        self.last = above.point
        self.extent = float(self.last - self.before)
        self.skipped = below.rank
        self._order = order

    def intervals(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> Intervals:
        return self._order.intervals_of(self, first, count)

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._order.log_spans(places + self.skipped)

    def rank_of(self, output: float) -> int:
        if self.lattice is None and output == self.before:
            output = math.nextafter(output, math.inf)
        return self._order.rank_of(output) - self.skipped

    def cell(self, point: int) -> tuple[int, NDArray[np.int64]]:
        below, points = self._order.cell(point)
        return below - self.skipped, points


def recurse(
    steps: list[Split], low: Cut, high: Cut, release: Callable[[int, Cut, Cut], Cut]
) -> list[Cut]:
    """The cuts of all levels.

    ``release(k, below, above)`` makes step k: it cuts the part between two cuts made before.
    """
    cuts = [low] * (len(steps) + 1) + [high]  # cuts[j + 1] for level j
    for k, step in enumerate(steps):
        cuts[step.middle + 1] = release(k, cuts[step.lower], cuts[step.upper + 1])
    return cuts[1:-1]
