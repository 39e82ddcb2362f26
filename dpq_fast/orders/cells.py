"""Records that lie in an engine, counted by cells: between two of them each.

A cell is what lies in a part of a range. Where parts end is a matter of arithmetic, which engines
may do in their own ways. What a cell holds is not: all records between the least and the most of
it, by comparison. So ranks are exact, and what is between is found again.
"""

from __future__ import annotations

import threading
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.lattice import Lattice
from dpq_fast.data.passes import Passes
from dpq_fast.data.queries import CellCounts, TakenByKey
from dpq_fast.orders.selected import (
    UNKNOWN,
    CellsOfPlaces,
    CollectedWindows,
    CountedRecords,
    are_tied,
    room_for,
    source_changed,
)

# Parts of the bounds that the first pass counts, and of all cells that another one counts again: as
# few as partials that are sent should have, as many as leave few records in each.
PARTS = 2**14
# Up to this many records are sent, rather than cells counted again.
COLLECTED = 2**20
# Records of so many lattice points around a window may be asked for.
NEAR = 8


@dataclass(frozen=True, slots=True)
class CellPlan(CellsOfPlaces):
    """A plan of `CountedCells`.

    Attributes
    ----------
    cell : ndarray of int64, shape (C,)
        Numbers of the cells, as they are now.
    least, most : ndarray of float64, shape (C,)
        Where they begin and end.
    """

    least: NDArray[np.float64]
    most: NDArray[np.float64]


class CountedCells(CountedRecords):
    """Values counted by cell; those that turn out too full, by parts.

    The cells follow from the values alone, not from where they lie or who counts them.

    Parameters
    ----------
    passes : Passes
        The values.
    low, high : float
        What they are clamped to.
    lattice : Lattice or None
        What values are rounded to: those of one point need not be told apart.

    Attributes
    ----------
    missing : int
        Number of NaN.
    """

    def __init__(self, passes: Passes, low: float, high: float, lattice: Lattice | None) -> None:
        self._passes = passes
        self._lattice = lattice
        self._low, self._high = low, high
        everywhere = CellCounts(low, high, np.array([low]), np.array([high]), PARTS)
        first = passes.fold(everywhere)
        self.missing = int(first.count[-1])
        present = np.flatnonzero(first.count[:-1])
        self._count = first.count[present]
        self._least = first.least.ravel()[present]
        self._most = first.most.ravel()[present]
        self._whole = np.zeros(present.size, dtype=bool)  # which can be told apart no further
        self._index()
        self._refining = threading.Lock()  # releases in several threads may share a sample

    def on(self, lattice: Lattice | None) -> CountedCells:
        """The same cells where values are rounded to another lattice of these bounds; no pass.

        Cells are of values: of a lattice they know nothing but which need not be collected.
        """
        own = self._lattice
        if lattice is own or (lattice and own and lattice.step == own.step):
            return self
        with self._refining:
            other = copy(self)
        other._lattice, other._refining = lattice, threading.Lock()
        other._index()
        return other

    def _index(self) -> None:
        self._end = np.cumsum(self._count)
        self._start = self._end - self._count
        self._tied = are_tied(self._least, self._most, self._lattice)

    @property
    def total(self) -> int:
        return int(self._end[-1]) if self._end.size else 0

    def around(
        self, places: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        cell = np.searchsorted(self._end, places, side="right")
        share = (places + 0.5 - self._start[cell]) / self._count[cell]
        return self._least[cell], self._most[cell], share

    def edges(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        with self._refining:
            return np.append(self._least, self._most[-1:]), self._count

    def plan(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> CellPlan:
        with self._refining:
            most, full = room_for(self.total, start.size, COLLECTED)
            while True:
                cells = self._meeting(start, stop)
                plain = ~self._tied[cells]
                crowded = cells[plain & (self._count[cells] > full) & ~self._whole[cells]]
                if self._count[cells][plain].sum() <= most or not crowded.size:
                    break
                self._refine(crowded)
            return CellPlan(
                self._start[cells],
                self._count[cells],
                self._tied[cells],
                self._least[cells],
                self._least[cells],
                self._most[cells],
            )

    def _meeting(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells that some windows of places meet, with the records of their lattice points.

        Where a point's records begin is asked for, too. They are in the next cell, perhaps, if a
        window begins within so many of the border as a point has here.
        """
        first = np.searchsorted(self._end, start, side="right")
        last = np.searchsorted(self._end, stop - 1, side="right")
        if self._lattice is not None:
            lowest, highest = self._lattice.encode(self._least), self._lattice.encode(self._most)
            near = NEAR * (1.0 + self._count / np.maximum(highest - lowest, 1))
            begins = start - self._start[first] < near[first]
            ends = self._end[last] - stop < near[last]
            first = np.where(begins, np.searchsorted(highest, lowest[first]), first)
            last = np.where(ends, np.searchsorted(lowest, highest[last], side="right") - 1, last)
        inside = np.zeros(self._count.size + 1, dtype=np.int64)
        np.add.at(inside, first, 1)
        np.add.at(inside, last + 1, -1)
        return np.flatnonzero(np.cumsum(inside[:-1]) > 0)

    def _refine(self, crowded: NDArray[np.int64]) -> None:
        """Count some cells by parts, in one pass."""
        parts = max(2, PARTS // crowded.size)
        query = CellCounts(self._low, self._high, self._least[crowded], self._most[crowded], parts)
        found = self._passes.fold(query)
        counts = found.count[:-1].reshape(crowded.size, parts)
        if (counts.sum(axis=1) != self._count[crowded]).any():
            raise source_changed()
        of_cell, part = np.nonzero(counts)
        kept = np.setdiff1d(np.arange(self._count.size), crowded)
        several = np.count_nonzero(counts, axis=1) > 1
        count = np.append(self._count[kept], counts[of_cell, part])
        least = np.append(self._least[kept], found.least[of_cell, part])
        most = np.append(self._most[kept], found.most[of_cell, part])
        whole = np.append(self._whole[kept], ~several[of_cell])
        order = np.argsort(least, kind="stable")
        self._count, self._least, self._most, self._whole = (
            each[order] for each in (count, least, most, whole)
        )
        self._index()

    def _taker(self, plan: CellPlan, size: int) -> tuple[Passes, TakenByKey]:
        apart = ~plan.tied
        ends = plan.least[apart], plan.most[apart]
        return self._passes, TakenByKey.between(self._low, self._high, *ends, size)

    def ranks_of(
        self, values: NDArray[np.float64], held: CollectedWindows | None
    ) -> NDArray[np.int64]:
        cell = np.searchsorted(self._least, values, side="right") - 1
        ranks = np.zeros(values.size, dtype=np.int64)  # below all cells
        some = np.flatnonzero(cell >= 0)
        cell, values = cell[some], values[some]
        above = values > self._most[cell]
        known = np.where(above, self._end[cell], self._start[cell])
        inside = (self._least[cell] < values) & ~above
        known[inside] = UNKNOWN if held is None else held.ranks_of(known[inside], values[inside])
        ranks[some] = known
        return ranks
