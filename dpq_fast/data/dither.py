"""Dither: each record of a lattice point moved at random inside its cell, as far as needed."""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as kernel
from dpq_fast._kernels import uniform
from dpq_fast._kernels.dither import Offsets
from dpq_fast._kernels.halves import Halves
from dpq_fast.data.order import CoarseOrder, Cuts, SortedOrder, Stretch, WholeOrder

# Up to this many records, every record's dither is drawn at once.
EAGER_RECORDS = 2**14
# Cells of more records are drawn by halves: until a part has no more than that, where records are
# asked for, or until it has few, where it is cut.
WHOLE_BLOCK, FEW = 2**12, 16
# Records outside of large blocks are dithered by stretches of 2^STRETCH_BITS places.
STRETCH_BITS = 9
# So many records are dithered at a time, so that what that takes stays in caches.
PIECE = 2**17
# Up to this many records are kept as they were laid out ahead.
MOST_KEPT = 2**20
# Up to this many records, a part is halved by counting random bits.
COUNTED_BITS = 2**17


class DitheredOrder(WholeOrder):
    """An order of dithered records: one fixed random object, drawn only as far as it is needed.

    Each record's point k becomes ``k * 2^s + U{0, ..., 2^s - 1}``, independently, and with a prior
    a fine point of its mass: a randomization of single records before the mechanism, which keeps
    neighbors neighbors.

    Parameters
    ----------
    coarse : CoarseOrder
        The records as they are, on a lattice with dither bits.
    rng : Generator
        Where the dither is drawn from.
    """

    def __init__(self, coarse: CoarseOrder, rng: np.random.Generator) -> None:
        super().__init__(coarse.n, coarse.lattice, coarse.bounds)
        self.scans = coarse.scans
        self._coarse = coarse
        assert coarse.lattice is not None  # there is no dither without one
        self._lattice = coarse.lattice
        self._dither = Dither(coarse.lattice.bits, rng)
        # places, ascending, and points of the records from each on
        self._kept: tuple[list[int], list[NDArray[np.int64]]] = [], []
        self._drawing = (
            threading.RLock()
        )  # threads may draw from one law, which asks for more of it

    def _points(self, windows: list[tuple[int, int]]) -> NDArray[np.int64]:
        pieces = self._kept_pieces(windows)
        if pieces is not None:
            return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        most = self.n if self.scans else PIECE  # what takes a pass is collected at once
        fine = np.empty(sum(stop - start for start, stop in windows), dtype=np.int64)
        done = 0
        with self._drawing:
            self._dither.expect(fine.size)
            for start, stop in _pieces(windows, most):
                size = int((stop - start).sum())
                self._dither_piece(start, stop, fine[done : done + size])
                done += size
        return self._lattice.spread(fine)

    def _kept_pieces(self, windows: list[tuple[int, int]]) -> list[NDArray[np.int64]] | None:
        """The records of all windows, if they were laid out ahead."""
        starts, points = self._kept
        pieces = []
        for start, stop in windows:
            i = bisect_right(starts, start) - 1
            if i < 0 or stop > starts[i] + points[i].size:
                return None
            pieces.append(points[i][start - starts[i] : stop - starts[i]])
        return pieces

    def _dither_piece(
        self, start: NDArray[np.int64], stop: NDArray[np.int64], fine: NDArray[np.int64]
    ) -> None:
        """Fill in the records at places start[w], ..., stop[w] - 1, some in each window."""
        # One more record on each side shows whether tied records go on there.
        begin, end = np.maximum(start - 1, 0), np.minimum(stop + 1, self.n)
        points = self._coarse._points(list(zip(begin.tolist(), end.tolist(), strict=True)))
        offset = np.cumsum(end - begin) - end
        first, last = offset + start, offset + stop - 1
        before, after = points[offset + begin], points[offset + end - 1]
        below = (begin < start) & (before == points[first])
        above = (stop < end) & (after == points[last])
        low, high = start.copy(), stop.copy()
        if below.any() or above.any():
            cut = np.concatenate((points[first[below]], points[last[above]] + 1))
            ranks = self._coarse.ranks_of(cut)
            low[below], high[above] = np.split(ranks, [np.count_nonzero(below)])
        if self._dither.of_small(points, first, start, stop, low, high, fine):
            return
        done = 0
        for f, a, b, lo, hi in np.array([first, start, stop, low, high]).T.tolist():
            part = fine[done : done + b - a]
            self._dither.of_window(points[f : f + b - a], a, b, lo, hi, part)
            done += b - a

    def ranks_of(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        return self._coarse.ranks_of(outputs)

    def fine_ranks(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        cell = self._lattice.points_of(points)
        cells, at = np.unique(cell, return_inverse=True)
        bounds = self._coarse.ranks_of(np.append(cells, cells + 1))
        start, stop = bounds[at], bounds[at + cells.size]
        reached = self._reached(points, cell)
        with self._drawing:
            return start + self._dither.below(cell, reached, start, stop)

    def _reached(self, points: NDArray[np.int64], cell: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first offset inside each point's cell that is spread to the point or above."""
        first = cell << self._dither.bits
        if self._lattice.masses is None:
            return points - first
        # the last offset of a cell is spread to its end
        lo, hi = np.zeros_like(points), np.full_like(points, (1 << self._dither.bits) - 1)
        for _ in range(self._dither.bits):
            middle = (lo + hi) // 2
            reached = self._lattice.spread(first + middle) >= points
            lo, hi = np.where(reached, lo, middle + 1), np.where(reached, middle, hi)
        return lo

    def cuts(self, around: list[Stretch]) -> Cuts:
        point, below, above = self._coarse.cuts(around)
        crowded = np.zeros(point.size, dtype=bool)
        for stretch in around:
            crowded |= (above - below >= stretch.most) & stretch.meets(below, above)
        with self._drawing:
            cuts = self._dither.cuts(point, below, above, crowded, around)
        if self._lattice.masses is None:
            return cuts
        fine = self._lattice.spread(cuts.point)
        first = np.append(0, np.flatnonzero(fine[1:] != fine[:-1]) + 1)
        return Cuts(
            fine[first],
            np.minimum.reduceat(cuts.below, first),
            np.maximum.reduceat(cuts.above, first),
        )

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        masses = self._lattice.masses
        if masses is not None:
            return kernel.log_spans(self._coarse.weighed(places, masses), -math.inf, math.inf, 1.0)
        at = self._coarse.spread(places)
        return kernel.log_spans(at, -math.inf, math.inf, 2.0**-self._dither.bits)

    def prepare(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> None:
        self._coarse.prepare(first - 1, count + 2)  # with the records around
        # what takes a pass is drawn in the order in which it is asked for, prepared or not
        if not self.scans and count.sum() <= MOST_KEPT:
            windows = sorted(kernel.records(first, count, self.n, 0))
            ends = np.cumsum([stop - start for start, stop in windows])
            self._kept = [start for start, _ in windows], np.split(self._points(windows), ends[:-1])


def dithered(coarse: CoarseOrder, rng: np.random.Generator) -> WholeOrder:
    """One dither of an order on a lattice with dither bits; drawn at once if records are few."""
    if coarse.n > EAGER_RECORDS:
        return DitheredOrder(coarse, rng)
    lattice = coarse.lattice
    assert lattice is not None
    points = coarse._points([(0, coarse.n)]) << lattice.bits
    points += uniform.integers_of_bits(lattice.bits, coarse.n, rng)
    points.sort(kind="stable")  # the faster one where only records of one cell change places
    return SortedOrder(lattice.spread(points), lattice, coarse.bounds, fine=True)


class Dither:
    """The dither of a call: where each record lies inside the cell of its coarse point.

    The records of a cell that holds many, or was cut, are drawn by halves, keyed by its point; all
    others one by one, keyed by their place. What is drawn is kept.

    Parameters
    ----------
    bits : int
        Each point stands for 2^bits fine ones.
    rng : Generator
        Drawn from only as far as records are asked for.
    """

    def __init__(self, bits: int, rng: np.random.Generator) -> None:
        self.bits = bits
        self._halves = Halves(bits, rng, FEW, COUNTED_BITS, WHOLE_BLOCK)
        self._offsets = Offsets(bits, rng, STRETCH_BITS, WHOLE_BLOCK)
        # points whose records are drawn by halves, ascending, and the numbers of their cells
        self._halved = self._cell = np.empty(0, dtype=np.int64)

    def expect(self, records: int) -> None:
        """Of how many records points will be asked for, next."""
        self._offsets.expect(records)

    def of_small(
        self,
        points: NDArray[np.int64],
        first: NDArray[np.int64],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
        low: NDArray[np.int64],
        high: NDArray[np.int64],
        fine: NDArray[np.int64],
    ) -> bool:
        """`of_window` for some windows, the points of which are from points[first[w]] on.

        If a block is large, or one was drawn by halves, nothing is done.
        """
        if self._halved.size:
            return False
        filled: bool = self._offsets.points(points, first, start, stop, low, high, fine)
        return filled

    def of_window(
        self,
        points: NDArray[np.int64],
        start: int,
        stop: int,
        low: int,
        high: int,
        fine: NDArray[np.int64],
    ) -> None:
        """Fill in the fine points of the records at places start, ..., stop - 1.

        Their coarse points ascend; the block of the first one begins at place `low`, that of the
        last one ends before `high`.
        """
        changes = np.flatnonzero(points[1:] != points[:-1]) + 1
        point = points[np.append(0, changes)]
        edges = np.concatenate(([low], changes + start, [high]))
        count = np.diff(edges)
        large = np.flatnonzero((count > WHOLE_BLOCK) | self._are_halved(point))
        cells = self._cells(point[large], count[large]).tolist()
        inside = np.clip(edges, start, stop)
        done = 0
        for k, cell in zip([*large.tolist(), point.size], [*cells, None], strict=True):
            if done < k:
                part = slice(*(inside[[done, k]] - start))
                places = np.array([0, inside[done], inside[k], edges[done], edges[k]])
                first, begin, end, lowest, highest = places.reshape(-1, 1)
                self._offsets.points(points[part], first, begin, end, lowest, highest, fine[part])
            if cell is not None:
                part = slice(*(inside[k : k + 2] - start))
                offsets = self._halves.order(cell, *(inside[k : k + 2] - edges[k]))
                fine[part] = offsets + (point[k] << self.bits)
            done = k + 1

    def below(
        self,
        point: NDArray[np.int64],
        offset: NDArray[np.int64],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """How many records of each coarse point lie below an offset inside its cell.

        The records of a point are at places start, ..., stop - 1.
        """
        size = stop - start
        counts = np.zeros_like(start)
        large = (size > WHOLE_BLOCK) | self._are_halved(point)
        small = np.flatnonzero((size > 0) & ~large)
        if small.size:
            counts[small] = self._offsets.below(start[small], stop[small], offset[small])
        if large.any():
            cells = self._cells(point[large], size[large])
            counts[large] = self._halves.below(cells, offset[large])
        return counts

    def cuts(
        self,
        point: NDArray[np.int64],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
        crowded: NDArray[np.bool_],
        around: list[Stretch],
    ) -> Cuts:
        """Cuts in dithered points, between cells and inside of those that are crowded.

        The records of a point are at places start, ..., stop - 1. See `WholeOrder.cuts`.
        """
        cell = np.full(point.size, -1)
        inside, first, end = point[crowded], start[crowded], stop[crowded]
        drawn = ~self._are_halved(inside) & self._offsets.are_drawn(first, end)
        cell[crowded] = self._cells(inside, end - first)
        for i in np.flatnonzero(drawn).tolist():
            offsets = np.sort(self._offsets.read(int(first[i]), int(end[i])))
            self._halves.keep(int(cell[crowded][i]), offsets)
        ends = np.cumsum([0] + [stretch.first.size for stretch in around])
        return Cuts(
            *self._halves.cuts(
                point,
                start,
                stop,
                cell,
                np.array([stretch.most // 2 for stretch in around]),
                ends.astype(np.uintp),
                np.concatenate([stretch.first for stretch in around]),
                np.concatenate([stretch.last for stretch in around]),
            )
        )

    def _are_halved(self, point: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the records of some points are drawn by halves."""
        if not self._halved.size:
            return np.zeros(point.size, dtype=bool)
        at = np.minimum(np.searchsorted(self._halved, point), self._halved.size - 1)
        halved: NDArray[np.bool_] = self._halved[at] == point
        return halved

    def _cells(self, point: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells of some points with so many records, drawn by halves from now on."""
        new = np.flatnonzero(~self._are_halved(point))
        if new.size:
            points, first = np.unique(point[new], return_index=True)
            cells = self._halves.add(count[new][first]) + np.arange(points.size)
            points, cells = np.append(self._halved, points), np.append(self._cell, cells)
            order = np.argsort(points, kind="stable")
            self._halved, self._cell = points[order], cells[order]
        found: NDArray[np.int64] = self._cell[np.searchsorted(self._halved, point)]
        return found


def _pieces(
    windows: list[tuple[int, int]], most: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Windows by pieces of at most so many records; those without a record are left out."""
    starts: list[int] = []
    stops: list[int] = []
    room = most
    for start, stop in windows:
        while start < stop:
            end = min(stop, start + room)
            starts.append(start)
            stops.append(end)
            room -= end - start
            start = end
            if not room:
                yield np.array(starts), np.array(stops)
                starts, stops, room = [], [], most
    if starts:
        yield np.array(starts), np.array(stops)
