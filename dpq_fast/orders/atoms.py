r"""Atoms: records that stand for several of one value, and move together.

A person's records share one weight of very many parts (`dpq_fast.data.persons`). As single records
these would be laid out one by one, and no window of ranks would hold them. As an atom a record has
one place, and its parts are so many ranks there.

**Dither.** An atom's parts get one fine point. The i-th of all atoms of weight w at point k gets
:math:`k 2^s + (i \oplus z_w)`, with the bits of i turned around, and a shift :math:`z_w` for each
weight, a random number hashed with it: what the privacy takes is that it does not depend on the
records. An atom more at a point is one offset more for its weight, and moves no other: given the
shifts, data sets that differ in some atoms become multisets of weighted fine points that differ in
as many of the same weights. So a mechanism on fine points is as private as it is on points, as for
records of one weight (`dpq_fast.orders.dithered`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as kernel
from dpq_fast.data.lattice import Lattice
from dpq_fast.orders.counted import Borders, CountedOrder
from dpq_fast.orders.order import CoarseOrder, Intervals, Order, WholeOrder


class AtomOrder(CountedOrder):
    """An order of atoms, each with its value and its weight.

    Parameters
    ----------
    values : ndarray of int64 or float64, shape (A,)
        As `in_order` has them: coarse lattice points, or clamped numbers without a lattice.
    weights : ndarray of int64, shape (A,)
        Positive.
    """

    uneven = True

    def __init__(
        self,
        values: NDArray[Any],
        weights: NDArray[np.int64],
        lattice: Lattice | None,
        bounds: tuple[float, float],
    ) -> None:
        first = _starts(values)
        super().__init__(values[first], _totals(weights, first), lattice, bounds)
        self._first = np.append(first, values.size)  # of each run, and the end
        self._points_of_atoms, self._weights = values, weights

    def atoms(self, run: int, stop: int) -> tuple[NDArray[Any], NDArray[np.int64], int]:
        """Values and weights of the atoms in some runs, and the rank of the first."""
        own = slice(*self._first[[run, stop]])
        return self._points_of_atoms[own], self._weights[own], int(self._ranks[run])

    def runs_of(self, points: NDArray[Any]) -> NDArray[np.intp]:
        """The first run at each point or above."""
        return np.searchsorted(self._values, points)

    def runs_around(self, rank: int, end: int) -> tuple[int, int]:
        """The runs that hold the ranks from one to another, and one on each side."""
        low = int(np.searchsorted(self._ends, rank)) - 1
        high = int(np.searchsorted(self._begins, end, side="right")) + 1
        return max(low, 0), min(high, self._values.size)


class DitheredAtoms(WholeOrder):
    """An order of dithered atoms, which are laid out only as far as they are asked for.

    Parameters
    ----------
    coarse : AtomOrder
        On a lattice with dither bits.
    rng : Generator
        Where the shifts are drawn from.
    """

    uneven = True

    def __init__(self, coarse: AtomOrder, rng: np.random.Generator) -> None:
        super().__init__(coarse.n, coarse.lattice, coarse.bounds)
        assert coarse.lattice is not None  # there is no dither without one
        self._coarse, self._lattice = coarse, coarse.lattice
        self._seed = rng.integers(0, 2**64, dtype=np.uint64)

    def _laid_out(self, run: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The fine points of all atoms of some runs, and the ranks between them."""
        points, weights, rank = self._coarse.atoms(run, stop)
        bits = self._lattice.bits
        first = _starts(points, weights)
        size = np.diff(np.append(first, points.size)).astype(np.int64)
        place = np.arange(points.size) - np.repeat(first, size)
        offsets = _turned(place, bits) ^ shifts_of(weights, self._seed, bits)
        fine = self._lattice.spread((points << bits) + offsets)
        order = np.argsort(fine)
        fine = fine[order]
        first = _starts(fine)
        totals = _totals(weights[order], first)
        return fine[first], rank + np.append(0, totals).cumsum()

    def intervals_of(
        self, part: Order, first: NDArray[np.int64], count: NDArray[np.int64]
    ) -> Intervals:
        begin = part.skipped + first
        asked = zip(begin.tolist(), (begin + count).tolist(), strict=True)
        runs: list[tuple[int, int]] = []
        for low, high in (self._coarse.runs_around(*each) for each in asked):
            if runs and low <= runs[-1][1]:
                low, high = runs[-1][0], max(runs.pop()[1], high)
            runs.append((low, high))
        blocks = [self._borders(*each) for each in runs]
        borders = Borders(*map(np.concatenate, zip(*blocks, strict=True)))
        return borders.intervals(part, self, first, count)

    def _borders(self, run: int, stop: int) -> Borders:
        """Those between the atoms of some runs; at the ends of all, those that are there, too."""
        fine, rank = self._laid_out(run, stop)
        begins, ends = rank[0] == 0, rank[-1] == self.n
        before, last = np.array([[self.before], [self.last]], dtype=np.int64)
        points = np.concatenate((before[: int(begins)], fine, last[: int(ends)]))
        return Borders(rank[not begins : rank.size - (not ends)], points[:-1], points[1:])

    def records(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[Any] | None:
        return None  # there are as many intervals as atoms

    def _points(self, windows: list[tuple[int, int]]) -> NDArray[np.int64]:
        found = []
        for start, stop in windows:
            fine, rank = self._laid_out(*self._coarse.runs_around(start, stop))
            held = np.diff(np.clip(rank, start, stop)).astype(np.int64)
            found.append(np.repeat(fine, held))
        return np.concatenate(found)

    def ranks_of(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        return self._coarse.ranks_of(outputs)

    def fine_ranks(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        cells = self._lattice.points_of(points)
        found = np.empty(points.size, dtype=np.int64)
        for cell in np.unique(cells).tolist():
            rank, fine = self.cell(cell)
            own = cells == cell
            found[own] = rank[np.searchsorted(fine, points[own])]
        return found

    def cell(self, point: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        run, stop = self._coarse.runs_of(np.array([point, point + 1])).tolist()
        fine, rank = self._laid_out(run, stop)
        return rank, fine

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        return spans_of(self._coarse, self._lattice, places)


def in_order(
    values: NDArray[Any], weights: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Atoms as `AtomOrder` takes them: points by weight, numbers in any order where equal."""
    if values.dtype.kind == "f":
        order = np.argsort(values)
        return values[order], weights[order]
    bits = int(weights.max(initial=1)).bit_length()
    if int(values.max(initial=0)).bit_length() + bits < 64:  # one number each: much faster
        keys = (values << bits) | weights
        keys.sort()
        return keys >> bits, keys & ((1 << bits) - 1)
    order = np.lexsort((weights, values))
    return values[order], weights[order]


def shifts_of(weights: NDArray[np.int64], seed: np.uint64, bits: int) -> NDArray[np.int64]:
    """One shift of so many bits for each weight: the same for the same one."""
    with np.errstate(over="ignore"):
        mixed = weights.astype(np.uint64) * (seed | np.uint64(1))
    shifts: NDArray[np.int64] = (mixed >> np.uint64(64 - bits)).astype(np.int64)
    return shifts


def spans_of(
    coarse: CoarseOrder, lattice: Lattice, places: NDArray[np.int64]
) -> NDArray[np.float64]:
    """`Order.log_spans` of records that are dithered, by those that are not."""
    if lattice.masses is not None:
        return kernel.log_spans(coarse.weighed(places, lattice.masses), -math.inf, math.inf, 1.0)
    return kernel.log_spans(coarse.spread(places), -math.inf, math.inf, 2.0**-lattice.bits)


def _starts(*columns: NDArray[Any]) -> NDArray[np.intp]:
    """Where runs of equal rows begin."""
    changed = np.zeros(columns[0].size, dtype=np.bool_)
    changed[:1] = True
    for each in columns:
        changed[1:] |= each[1:] != each[:-1]
    return np.flatnonzero(changed)


def _totals(weights: NDArray[np.int64], first: NDArray[np.intp]) -> NDArray[np.int64]:
    """What the weights of runs add up to."""
    totals: NDArray[np.int64] = np.add.reduceat(weights, first) if first.size else weights[:0]
    return totals


def _turned(places: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Numbers of so many bits, these turned around; higher ones are left out."""
    turned = np.zeros_like(places)
    for bit in range(min(bits, int(places.max(initial=0)).bit_length())):
        turned |= ((places >> bit) & 1) << (bits - 1 - bit)
    return turned
