"""Outputs of a dithered column in parts of nearly equal rank: what `_kernels.parts` does."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.reference.dither import Offsets


class Part(NamedTuple):
    """Outputs left + 1, ..., left + width, whose ranks are from least to most."""

    left: int
    width: int
    least: int
    most: int


class Parts:
    """Parts in leaves.

    Parameters
    ----------
    offsets : Offsets
    first, each, below, above : ndarray of int64, shape (C,)
        Cells that are cut out: their first fine points, how many these are (None: as many as
        offsets), records below them and up to their ends. The former is not known where both are
        equal.
    start : ndarray of int64, shape (T + 1,)
    most : ndarray of int64, shape (T,)
        Parts with ranks start[t], ..., start[t + 1] - 1 have at most so many records; -1: no part
        is asked for.
    begin : ndarray of int64, shape (U + 1,)
        From start[0] to start[T].
    ranks : ndarray of float64, shape (U,)
        All parts of a leaf that begins at a rank from begin[u] on, below begin[u + 1], begin at
        such a rank, between two multiples of ranks[u]; they leave nothing out.
    rate : float
        Loss of log-weight per rank, c.
    room : int
        Not used.
    """

    def __init__(
        self,
        offsets: Offsets,
        first: NDArray[np.int64],
        each: NDArray[np.int64] | None,
        below: NDArray[np.int64],
        above: NDArray[np.int64],
        start: NDArray[np.int64],
        most: NDArray[np.int64],
        begin: NDArray[np.int64],
        ranks: NDArray[np.float64],
        rate: float,
        room: int,
    ) -> None:
        self._offsets = offsets
        self._cell: int = 2**offsets.bits  # how many offsets it has
        self._start: list[int] = start.tolist()
        self._most: list[int] = most.tolist()
        sizes = [self._cell] * first.size if each is None else each.tolist()
        cells = list(zip(first.tolist(), sizes, below.tolist(), above.tolist(), strict=True))
        leaves: list[list[Part]] = []
        end = 0
        for part in self._all(cells):
            if self._allowed(part.least, part.most) < 0:
                continue
            if not (leaves and part.least < end and part.left == sum(leaves[-1][-1][:2])):
                leaves.append([])
                u = bisect_right(begin.tolist(), part.least) - 1
                each_leaf = float(ranks[u])
                end = math.ceil((math.floor(part.least / each_leaf) + 1.0) * each_leaf)
                end = max(end, part.least + 1)  # the quotient may have been rounded down
                end = min(end, int(begin[u + 1]))
            leaves[-1].append(part)
        self._leaves, self._rate = leaves, rate
        self.leaves = len(leaves)
        self.parts = sum(len(leaf) for leaf in leaves)
        self.longest = max((len(leaf) for leaf in leaves), default=0)

    def take(
        self,
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.float64],
    ]:
        """Ranks of each leaf, and sums of its parts' widths for the bends 1, 0 and -1."""
        least = np.array([leaf[0].least for leaf in self._leaves], dtype=np.int64)
        most = np.array([leaf[-1].most for leaf in self._leaves], dtype=np.int64)
        rising, width, falling = (
            np.array([_sum(leaf, bend, self._rate) for leaf in self._leaves]) for bend in (1, 0, -1)
        )
        return least, most, rising, width, falling

    def of(
        self, rank: NDArray[np.int64]
    ) -> tuple[
        NDArray[np.uintp],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.float64],
        NDArray[np.int64],
    ]:
        """The parts of leaves of some least ranks: starts, least, most, widths, points before."""
        begins = [leaf[0].least for leaf in self._leaves]
        asked = [self._leaves[begins.index(each)] for each in rank.tolist()]
        start = np.cumsum([0, *map(len, asked)]).astype(np.uintp)
        parts = np.array([part for each in asked for part in each]).reshape(-1, 4)
        left, width, least, most = parts.T.copy()
        return start, least, most, width.astype(np.float64), left

    def _allowed(self, low: int, high: int) -> int:
        """How many records a part with such ranks may have; -1 if none of them is asked for."""
        found = [
            most
            for first, stop, most in zip(self._start, self._start[1:], self._most, strict=False)
            if first <= high and stop > low and most >= 0
        ]
        return min(found, default=-1)

    def _all(self, cells: list[tuple[int, int, int, int]]) -> Iterator[Part]:
        end = 0
        for i, (first, each, below, above) in enumerate(cells):
            last, most = (first - 1, below) if above > below else (first + each - 1, above)
            if i > 0 and last > end:
                yield Part(end, last - end, cells[i - 1][3], most)
            offsets = self._offsets.of(above - below)
            yield from self._inside(first, each, below, offsets, 0, self._cell)
            end = first + each - 1

    def _inside(
        self, first: int, each: int, below: int, offsets: list[int], low: int, high: int
    ) -> Iterator[Part]:
        """Parts of a cell between two offsets."""

        def before(offset: int) -> int:
            return first - 1 + -(-offset * each // self._cell)

        inside = [offset for offset in offsets if low <= offset < high]
        rank, size = below + sum(offset < low for offset in offsets), len(inside)
        most = self._allowed(rank, rank + size)
        left, right = before(low), before(high)
        if not offsets or most < 0 or left == right:
            return
        if high - low == 1:
            yield Part(left, right - left, rank, rank)
        elif size > max(most, 1):
            middle = (low + high) // 2
            yield from self._inside(first, each, below, offsets, low, middle)
            yield from self._inside(first, each, below, offsets, middle, high)
        elif size > most:
            record = before(inside[0] + 1)
            if record > left:
                yield Part(left, record - left, rank, rank)
            if right > record:
                yield Part(record, right - record, rank + 1, rank + 1)
        else:
            at_all_offsets = len(offsets) // self._cell
            yield Part(left, right - left, rank, rank + size - at_all_offsets)


def _sum(leaf: list[Part], bend: int, rate: float) -> float:
    rho = leaf[0].least + (leaf[-1].most - leaf[0].least) // 2
    ranks = [part.most if bend > 0 else part.least for part in leaf]
    return sum(
        part.width * math.exp(2.0 * rate * bend * (rank - rho))
        for part, rank in zip(leaf, ranks, strict=True)
    )
