"""Outputs in blocks of nearly equal rank, in place of one interval for each rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.order import Intervals, Order, WholeOrder


class Blocks(Order):
    """An order whose intervals are blocks of outputs, each with one rank near those in it.

    A block is what lies between two cuts of the order, tied records apart: an output that is in it
    has one of fewer than `most` ranks. So the block's own rank, in the middle, is off by at most
    `slack`, whatever the records are.

    Parameters
    ----------
    order : WholeOrder
    most : int
        At least 2.

    Attributes
    ----------
    slack : int
        Most by which a block's rank differs from that of an output in it.
    """

    skipped = 0

    def __init__(self, order: WholeOrder, most: int) -> None:
        self.n, self.lattice, self.bounds = order.n, order.lattice, order.bounds
        self.before, self.last, self.extent = order.before, order.last, order.extent
        self.slack = most // 2
        self._order = order
        self._most = most

    def intervals(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> Intervals:
        point, below, above = self._cuts(first, count)
        wide = point[1:] > point[:-1]
        left = point[:-1][wide]
        least, most = above[:-1][wide], below[1:][wide]
        rank = (least + most) // 2
        segment = np.searchsorted(first, rank, side="right") - 1
        inside = (segment >= 0) & (rank < first[segment] + count[segment])
        width = (point[1:] - point[:-1])[wide].astype(np.float64)
        return Intervals(rank[inside], width[inside], left[inside])

    def _cuts(
        self, first: NDArray[np.int64], count: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
        """Cuts around all ranks of some segments; both ends of the order where they are reached."""
        kind = np.float64 if self.lattice is None else np.int64
        ends = np.array([self.before, self.last]).astype(kind)
        if not self.n:
            return ends, np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
        # every so many records, and the first and the last one
        low = np.maximum(first // self._most - 2, 0)
        high = np.minimum((first + count) // self._most + 3, -(-self.n // self._most))
        strides = [np.arange(*ends) for ends in zip(low.tolist(), high.tolist(), strict=True)]
        places = np.unique(np.concatenate(strides)) * self._most
        if places[-1] + self._most >= self.n:
            places = np.append(places[places < self.n - 1], self.n - 1)
        point, below, above = self._order.cuts(places, self._most)
        # nothing of what is cut off here has a rank in a segment
        if places[0] == 0 and point[0] > ends[0]:
            point = np.append(ends[0], point)
            below, above = np.append(0, below), np.append(0, above)
        if places[-1] == self.n - 1 and point[-1] < ends[1]:
            point = np.append(point, ends[1])
            below, above = np.append(below, self.n), np.append(above, self.n)
        return point, below, above

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._order.log_spans(places)

    def rank_of(self, output: float) -> int:
        return self._order.rank_of(output)

    def cell(self, point: int) -> tuple[int, NDArray[np.int64]]:
        return self._order.cell(point)
