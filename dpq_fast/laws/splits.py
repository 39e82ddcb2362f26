"""Rank ranges: the records between two outputs, and the recursion over them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.orders.order import Intervals, Order, WholeOrder
from dpq_fast.privacy.levels import Split


class Boundary(NamedTuple):
    """Where a sample is split in two: records below the point go left, the others right.

    Attributes
    ----------
    point : int or float
        An output: a (fine) lattice point, a number, or the index of a candidate.
    rank : int
        Records below it.
    """

    point: Any
    rank: int


def ends(order: WholeOrder) -> tuple[Boundary, Boundary]:
    """The boundaries around a whole sample."""
    lowest = order.before + (order.lattice is not None)
    return Boundary(lowest, 0), Boundary(order.last, order.n)


class RankRange(Order):
    """The order of the records below.point <= x < above.point, for outputs from one to the other.

    Its ranks count from the boundary below. Outputs of the continuous mechanism lie above `below`.
    """

    def __init__(self, order: WholeOrder, below: Boundary, above: Boundary) -> None:
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

    def prepare(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> None:
        self._order.prepare(first + self.skipped, count)

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._order.log_spans(places + self.skipped)

    def rank_of(self, output: float) -> int:
        if self.lattice is None and output == self.before:
            output = math.nextafter(output, math.inf)
        return self._order.rank_of(output) - self.skipped

    def cell(self, point: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        below, points = self._order.cell(point)
        return below - self.skipped, points


def recurse(
    steps: list[Split],
    low: Boundary,
    high: Boundary,
    release: Callable[[int, Boundary, Boundary], Boundary],
) -> list[Boundary]:
    """The boundaries at all levels.

    ``release(k, below, above)`` makes step k: it splits the range between two boundaries of before.
    """
    made = [low] * (len(steps) + 1) + [high]  # made[j + 1] for level j
    for k, step in enumerate(steps):
        made[step.middle + 1] = release(k, made[step.lower], made[step.upper + 1])
    return made[1:-1]
