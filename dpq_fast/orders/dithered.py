r"""Dither: the records of a lattice point, laid out evenly inside its cell.

The K records of point k become the fine points :math:`k 2^s + s_0, \dots, k 2^s + s_{K - 1}`, with
one sequence of offsets :math:`s_i` below :math:`2^s` for all points: i with its s bits turned
around (van der Corput's sequence), xor a random shift. So they are spread evenly, whatever K is: of
any :math:`2^{-d}` of the cell that begins at a multiple of that they take
:math:`\lfloor K / 2^d \rfloor` or one more.

**Why it costs no privacy.** A record more at point k makes K + 1 of K: one offset more,
:math:`s_K`, and all others stay. A record less takes one away, and a record that is replaced does
both. So given the shift, which does not depend on the records, data sets that are neighbors become
multisets of fine points that are neighbors, under "swap" as under "add-remove", and a mechanism on
fine points is as private as it is on points. (Offsets that depend on K, like K equal steps, would
move all records of a point for one; `tests/audit_table.py` has them as a mutant, and the audit
finds it.) `dpq_fast.privacy` has what holds for the mixture over the shifts.

Fine points are a function of the shift and of the numbers of records at the points. So nothing has
to be drawn or kept record by record: to count the fine points below one of them, or to find one by
its place, takes O(log K) (`csrc/dither.h`), and the answers do not depend on what was asked before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels.dither import Offsets
from dpq_fast._kernels.parts import Parts
from dpq_fast.orders.atoms import AtomOrder, DitheredAtoms, spans_of
from dpq_fast.orders.blocks import Zone, stretch_of, with_ends
from dpq_fast.orders.order import CoarseOrder, Stretch, WholeOrder, innermost
from dpq_fast.orders.sorted import SortedOrder

# Up to this many records, all are laid out at once.
EAGER_RECORDS = 2**14
# So many leaves in a row are as wide as each other.
ALIKE = 16
# So many records are laid out at a time, so that what that takes stays in caches.
PIECE = 2**17


class DitheredOrder(WholeOrder):
    """An order of dithered records, which are laid out only as far as they are asked for.

    The i-th record of a point k, i = 0, 1, ..., becomes ``k * 2^s + s_i``, with one sequence s of
    offsets for all points, and with a prior a fine point of its mass (`csrc/dither.h`). A record
    more is an offset more, and moves none: neighbors stay neighbors.

    Parameters
    ----------
    coarse : CoarseOrder
        The records as they are, on a lattice with dither bits.
    rng : Generator
        Where the sequence's shift is drawn from.
    """

    def __init__(self, coarse: CoarseOrder, rng: np.random.Generator) -> None:
        super().__init__(coarse.n, coarse.lattice, coarse.bounds)
        self.scans = coarse.scans
        self._coarse = coarse
        assert coarse.lattice is not None  # there is no dither without one
        self._lattice = coarse.lattice
        self._bits = coarse.lattice.bits
        self._offsets = Offsets(self._bits, rng)

    def _points(self, windows: list[tuple[int, int]]) -> NDArray[np.int64]:
        most = self.n if self.scans else PIECE  # what takes a pass is collected at once
        fine = np.empty(sum(stop - start for start, stop in windows), dtype=np.int64)
        done = 0
        for start, stop in _pieces(windows, most):
            size = int((stop - start).sum())
            self._lay_out(start, stop, fine[done : done + size])
            done += size
        return self._lattice.spread(fine)

    def _lay_out(
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
        self._offsets.points(points, first, start, stop, low, high, fine)

    def _points_at(self, places: NDArray[np.int64]) -> NDArray[np.int64] | None:
        ties = self._coarse.ties(places)
        return None if ties is None else self._lattice.spread(self._offsets.at(places, *ties))

    def ranks_of(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        return self._coarse.ranks_of(outputs)

    def fine_ranks(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        cell = self._lattice.points_of(points)
        cells, at = np.unique(cell, return_inverse=True)
        bounds = self._coarse.ranks_of(np.append(cells, cells + 1))
        start, stop = bounds[at], bounds[at + cells.size]
        return start + self._offsets.below(stop - start, self._reached(points, cell))

    def _reached(self, points: NDArray[np.int64], cell: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first offset inside each point's cell that is spread to the point or above."""
        first = cell << self._bits
        if self._lattice.masses is None:
            return points - first
        # the last offset of a cell is spread to its end
        lo, hi = np.zeros_like(points), np.full_like(points, (1 << self._bits) - 1)
        for _ in range(self._bits):
            middle = (lo + hi) // 2
            reached = self._lattice.spread(first + middle) >= points
            lo, hi = np.where(reached, lo, middle + 1), np.where(reached, middle, hi)
        return lo

    def parts(self, zones: Sequence[Zone], ranks: float, rate: float) -> Parts:
        """Outputs in some segments of ranks, and perhaps some around them: counts are all it takes.

        Parameters
        ----------
        zones : sequence of Zone
            As for `blocks.blocks`; parts have fewer records than the `most` of these. None, where
            that is 1: not for an order that scans.
        ranks : float
            Of leaves, where zones have no wider ones.
        rate : float
            Decay rate: log-weight lost per rank, c > 0.
        """
        cuts = self._cuts([stretch_of(self.n, zone) for zone in zones])
        wanted = [Stretch(most, first, first + count) for most, first, count, _ in zones]
        start = np.unique(np.concatenate([[0, self.n + 1], *(np.append(*w[1:]) for w in wanted)]))
        begin, widths = _widths(zones, ranks, int(start[-1]))
        # about as many leaves: of so many ranks each, or of a part that has at least half of `most`
        inside = np.diff([float(zone.ranks.sum()) for zone in zones], prepend=0.0)
        by_parts = sum(inside / [max(ranks, zone.most / 2.0) for zone in zones])
        _, first, count, _ = zones[-1]
        edges = np.stack((first, first + count), axis=1).ravel()
        asked = np.interp(begin, edges, _before_and_after(count))
        by_ranks = (np.diff(asked) / widths).sum()
        edges_of_zones = sum(zone.first.size for zone in zones)
        room = int(min(by_parts, by_ranks)) + 3 * edges_of_zones + 2 * widths.size
        allowed = innermost(start, wanted) - 1
        return Parts(self._offsets, *cuts, start, allowed, begin, widths, rate, room)

    def _cuts(
        self, around: list[Stretch]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.int64], NDArray[np.int64]]:
        """Where points are cut out: their first fine points, how many these are, and records.

        Both ends of the order where they are reached, as of points without a record.
        """
        lattice = self._lattice
        cuts = self._coarse.cuts(around)
        point, below, above = with_ends(cuts, around, self.n, -1, lattice.points - 1)
        if lattice.masses is None:
            return point << self._bits, None, below, above
        first, each = lattice.masses.below(point), lattice.masses.of(point)
        if point[0] < 0:  # all that is before the first point
            first[0], each[0] = -1, 1
        return first, each, below, above

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        return spans_of(self._coarse, self._lattice, places)

    def by_runs(self) -> WholeOrder:
        order = copy(self)
        coarse = self._coarse.by_runs()
        assert isinstance(coarse, CoarseOrder)
        order._coarse = coarse
        return order

    def prepare(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> None:
        self._coarse.prepare(first - 1, count + 2)  # with the records around


def _before_and_after(count: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many there are before each of some segments, and up to its end."""
    up_to = np.cumsum(count)
    return np.stack((up_to - count, up_to), axis=1).ravel()


def _widths(
    zones: Sequence[Zone], ranks: float, end: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Where leaves are how wide, of the ranks below `end`: as zones have it, or narrower.

    Wider ones begin and end at multiples of `ALIKE` of them, and so do cells of up to so many.
    """
    begin, factor = np.array([0, end]), np.ones(1)
    for inner, zone in pairwise(zones):
        if zone.wider > inner.wider:
            each = ALIKE * zone.wider * ranks
            first = np.ceil(np.append(0, inner.first + inner.ranks) / each)
            last = np.floor(np.append(inner.first, end) / each)
            held = first < last
            low, high = (np.ceil(k[held] * each).astype(np.int64) for k in (first, last))
            edges = np.unique(np.concatenate((begin, low, high)))
            factor = factor[np.searchsorted(begin, edges[:-1], side="right") - 1]
            inside = np.searchsorted(low, edges[:-1], side="right")
            inside -= np.searchsorted(high, edges[:-1], side="right")
            begin, factor = edges, np.where(inside > 0, zone.wider, factor)
    return begin, ranks * factor


def dithered(coarse: CoarseOrder, rng: np.random.Generator) -> WholeOrder:
    """One dither of an order on a lattice with dither bits; laid out at once if records are few."""
    if isinstance(coarse, AtomOrder):
        return DitheredAtoms(coarse, rng)
    order = DitheredOrder(coarse, rng)
    if coarse.n > EAGER_RECORDS:
        return order
    points = order._points([(0, coarse.n)])
    return SortedOrder(points, coarse.lattice, coarse.bounds, fine=True)


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
