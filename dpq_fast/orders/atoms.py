r"""Atoms: records that stand for several of one value, and move together.

A person's records share one weight of very many parts (`dpq_fast.data.persons`). As single records
these would be laid out one by one, and no window of ranks would hold them. As an atom a record has
one place, and its parts are so many ranks there.

**Dither.** An atom's parts get one fine point. The i-th of all atoms of weight w at point k gets
:math:`k 2^s + (i \oplus z_w)`, with the bits of i turned around, and a random shift :math:`z_w` for
each weight. An atom more at a point is one offset more for its weight, and moves no other: given
the shifts, data sets that differ in some atoms become multisets of weighted fine points that differ
in as many of the same weights. So a mechanism on fine points is as private as it is on points, as
for records of one weight (`dpq_fast.orders.dithered`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.lattice import Lattice
from dpq_fast.orders.counted import CountedOrder


class AtomOrder(CountedOrder):
    """An order of atoms, each with its value and its weight.

    Parameters
    ----------
    values : ndarray of int64 or float64, shape (A,)
        Ascending, weights ascending where they are equal: coarse lattice points, or clamped numbers
        without a lattice.
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
        self._atoms = values, weights
        super().__init__(*summed(values, weights), lattice, bounds)

    def dithered(self, rng: np.random.Generator) -> DitheredAtoms:
        """One dither of the atoms."""
        points, weights = self._atoms
        assert self.lattice is not None
        bits = self.lattice.bits
        distinct, kind = np.unique(weights, return_inverse=True)
        shifts = rng.integers(0, 1 << bits, size=distinct.size)
        changes = (np.diff(points, prepend=-1) != 0) | (np.diff(weights, prepend=-1) != 0)
        first = np.flatnonzero(changes)
        place = np.arange(points.size) - first[np.cumsum(changes) - 1]
        fine = self.lattice.spread((points << bits) + (_turned(place, bits) ^ shifts[kind]))
        order = np.argsort(fine, kind="stable")  # nearly in order
        return DitheredAtoms(*summed(fine[order], weights[order]), self.lattice, self.bounds)


class DitheredAtoms(CountedOrder):
    """Atoms at fine points: `values` are these."""

    uneven = True

    def ranks_of(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        assert self.lattice is not None
        return self.fine_ranks(self.lattice.starts(outputs))

    def fine_ranks(self, points: NDArray[Any]) -> NDArray[np.int64]:
        return super().ranks_of(points)

    def cell(self, point: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        assert self.lattice is not None
        ends = self.lattice.starts(np.array([point, point + 1]))
        first, last = np.searchsorted(self._values, ends).tolist()
        return self._ranks[first : last + 1], self._values[first:last]


def summed(
    values: NDArray[Any], weights: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Distinct values of ascending ones, and what their weights add up to."""
    if not values.size:
        return values, weights
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    return values[first], np.add.reduceat(weights, first)


def _turned(places: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Numbers of so many bits, these turned around; higher ones are left out."""
    turned = np.zeros_like(places)
    for bit in range(min(bits, int(places.max(initial=0)).bit_length())):
        turned |= ((places >> bit) & 1) << (bits - 1 - bit)
    return turned
