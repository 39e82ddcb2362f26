"""Cuts between unsorted records: counts below chosen values, in passes, until they are fine enough.

Where to cut is a number: of a lattice point, or the key of a float64. A cut at number k has the
records below it on one side and those at it, or above, on the other; how many these are is counted
by comparison, so that it is exact. What is cut never changes what was cut before.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels.select import keys
from dpq_fast.data.histogram import Bins
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.passes import Passes
from dpq_fast.data.queries import BinCounts
from dpq_fast.orders.order import Cuts, Stretch

# What is crowded is cut into so many parts that each would have half of what it may, and into more
# where that is few for all of a pass: records may be anywhere in it.
SPARE = 2
PARTS = 2**14


class Cutter:
    """Cuts of a column that leave fewer than so many records in between, or one number.

    Parts are cut until they hold fewer than half as many, or one number. Then only the first cut of
    each half of `most` ranks is given: what is between two of these is less than that, and one part
    more.

    Parameters
    ----------
    passes : Passes
        The records.
    edges : ndarray of float64, shape (E + 1,)
        Ascending numbers; they decide the cost, never the answer.
    counts : ndarray of int64, shape (E,)
        About how many records are between two of them.
    lattice : Lattice or None
    bounds : (float, float)
    """

    def __init__(
        self,
        passes: Passes,
        edges: NDArray[np.float64],
        counts: NDArray[np.int64],
        lattice: Lattice | None,
        bounds: tuple[float, float],
    ) -> None:
        self._passes = passes
        self._lattice = lattice
        self._bounds = bounds
        if lattice is None:
            ends = keys(np.array(bounds)) + np.array([0, 1])
            numbers = keys(np.clip(edges, *bounds))
        else:
            ends = np.array([0, lattice.points])
            numbers = lattice.encode(edges)
        self._total = int(counts.sum())
        self._number, first = np.unique(np.concatenate((ends, numbers)), return_index=True)
        # about how many records are below each of them, until they are counted
        below = np.concatenate(([0, self._total], np.append(0, np.cumsum(counts))))
        self._below = np.maximum.accumulate(below[first])
        self._is_counted = False
        self._cutting = threading.Lock()

    def around(self, wanted: list[Stretch]) -> Cuts:
        """Enough cuts around some ranks, and some of the others."""
        with self._cutting:
            while True:
                new = self._crowded(wanted)
                if self._is_counted and not new.size:
                    return self._cuts(wanted)
                self._count(new)

    def _crowded(self, wanted: list[Stretch]) -> NDArray[np.int64]:
        """Where to cut next: between cuts that leave too many of these ranks between them."""
        number, below = self._number, self._below
        length, count = np.diff(number), np.diff(below)
        full = _half_of_most(wanted, below[:-1], below[1:])
        meets = np.logical_or.reduce([part.meets(below[:-1], below[1:]) for part in wanted])
        at = np.flatnonzero(meets & (count >= full) & (length != 1))
        if not at.size:
            return np.empty(0, dtype=np.int64)
        # the difference of two keys may be beyond int64
        length = length[at].view(np.uint64).astype(np.float64)
        parts = np.maximum(SPARE * (count[at] // full[at] + 1), PARTS // at.size)
        parts = np.minimum(parts, length).astype(np.int64)
        part = np.arange(int((parts - 1).sum())) - np.repeat(
            np.cumsum(parts - 1) - (parts - 1), parts - 1
        )
        step = np.repeat(length / parts, parts - 1)
        low, high = np.repeat(number[at], parts - 1), np.repeat(number[at + 1], parts - 1)
        moved = np.maximum((part + 1) * step, 1.0).astype(np.uint64).view(np.int64)
        new: NDArray[np.int64] = np.clip(low + moved, low + 1, high - 1)
        distinct: NDArray[np.int64] = new[np.append(True, new[1:] != new[:-1])]
        return distinct

    def _count(self, new: NDArray[np.int64]) -> None:
        """One pass: how many records are below new cuts; below the first ones, too."""
        wanted = new if self._is_counted else np.sort(np.concatenate((self._number, new)))
        bins = Bins.of(np.concatenate(([-np.inf], self._least(wanted), [np.inf])))
        below = np.cumsum(self._passes.fold(BinCounts(bins)))[:-1]
        if self._is_counted:
            at = np.searchsorted(self._number, new)
            wanted, below = np.insert(self._number, at, new), np.insert(self._below, at, below)
        self._number, self._below, self._is_counted = wanted, below, True

    def _least(self, number: NDArray[np.int64]) -> NDArray[np.float64]:
        """The least record that each of these has on its upper side; records are clamped."""
        if self._lattice is not None:
            return self._lattice.least(number)
        low, high = keys(np.array(self._bounds)).tolist()
        least = np.where(number > low, values_of(number), -np.inf)
        return np.where(number > high, np.inf, least)

    def _cuts(self, wanted: list[Stretch]) -> Cuts:
        # outputs up to the number before, and those from the number on
        number, above = self._number, self._below
        below = above.copy()
        next_to = np.flatnonzero(np.diff(number) == 1) + 1
        below[next_to] = above[next_to - 1]
        kept = _is_first(above, _half_of_most(wanted, above, np.append(above[1:], above[-1])))
        kept[-1] = True
        number, below, above = number[kept] - 1, below[kept], above[kept]
        if self._lattice is not None:
            return Cuts(number, below, above)
        point = np.clip(values_of(number), *self._bounds)
        first = int(point[0] == point[1])  # what is at the low bound comes before all outputs
        return Cuts(point[first:], below[first:], above[first:])


def _half_of_most(
    around: list[Stretch], start: NDArray[np.int64], stop: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Half the lowest `most` of the stretches that meet start[i], ..., stop[i]; or the highest."""
    half = np.full(start.size, around[-1].most // 2)
    for stretch in reversed(around):
        half[stretch.meets(start, stop)] = stretch.most // 2
    return half


def _is_first(rank: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether ascending ranks are the first ones of each `size`, which may change on the way."""
    block = rank // size
    found: NDArray[np.bool_] = np.append(True, (np.diff(block) > 0) | (np.diff(size) != 0))
    return found


def values_of(key: NDArray[np.int64]) -> NDArray[np.float64]:
    """The numbers that have these keys."""
    bits: NDArray[np.int64] = key ^ np.where(key < 0, np.int64(2**63 - 1), np.int64(0))
    return bits.view(np.float64)
