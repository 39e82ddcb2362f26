"""Parts of a sample between two outputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.levels import Split
from dpq_fast.order import Intervals, Order


class Cut(NamedTuple):
    """Where a sample is cut in two: records below the point go left, the others right.

    Attributes
    ----------
    point : int or float
        An output: a (fine) lattice point, a number, or the index of a candidate.
    rank : int
        Records below it.
    """

    point: float
    rank: int


def ends(order: Order) -> tuple[Cut, Cut]:
    """The cuts around a whole sample."""
    lowest = order.before + (order.lattice is not None)
    return Cut(lowest, 0), Cut(order.last, order.n)


class Part(Order):
    """The order of the records below.point <= x < above.point, for outputs from one to the other.

    Its ranks count from the cut below. Outputs of the continuous mechanism lie above `below`.
    """

    def __init__(self, order: Order, below: Cut, above: Cut) -> None:
        super().__init__(above.rank - below.rank, order.lattice, order.bounds)
        self.before = below.point - (order.lattice is not None)
        self.last = above.point
        self.extent = float(self.last - self.before)
        self._order = order
        self._skipped = below.rank

    def intervals(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> Intervals:
        rank, width, left = self._order.intervals(first + self._skipped, count)
        rank -= self._skipped
        # the intervals that hold the cuts belong to the part as far as the cuts
        lowest = rank.size > 0 and rank[0] == 0
        highest = rank.size > 0 and rank[-1] == self.n
        if not lowest and not highest:
            return Intervals(rank, width, left)
        if lowest:
            right = left[1] if left.size > 1 else left[0] + width[0]
            left[0] = self.before
            width[0] = right - self.before
        if highest:
            width[-1] = self.last - left[-1]
        positive = width > 0.0  # without a lattice, a cut may be rounded to a record
        return Intervals(rank[positive], width[positive], left[positive])

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._order.log_spans(places + self._skipped)

    def rank_of(self, output: float) -> int:
        if self.lattice is None and output == self.before:
            output = math.nextafter(output, math.inf)
        return self._order.rank_of(output) - self._skipped

    def cell(self, point: int) -> tuple[int, NDArray[np.int64]]:
        below, points = self._order.cell(point)
        return below - self._skipped, points


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
