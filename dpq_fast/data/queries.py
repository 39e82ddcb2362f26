"""What is asked of records in a pass: counts, sums, and a few of the records themselves.

Which ranges are asked for follows from the records: no query that has some shows them.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import select as kernel
from dpq_fast._kernels import sums as sums_kernel
from dpq_fast.data.columns import as_float64
from dpq_fast.data.histogram import Bins
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.passes import Query

Numbers = NDArray[np.float64]
# Buckets that tell where ranges are not.
BUCKETS = 2**12


@dataclass(frozen=True)
class PointCounts(Query[NDArray[np.int64]]):
    """How many records are at each point of a lattice, and last how many are NaN."""

    lattice: Lattice
    any_type = True

    def start(self) -> NDArray[np.int64]:
        return np.zeros(self.lattice.points + 1, dtype=np.int64)

    def step(self, state: NDArray[np.int64], piece: NDArray[Any]) -> None:
        self.lattice.count(state, piece)


@dataclass(frozen=True, repr=False)
class BinCounts(Query[NDArray[np.int64]]):
    """How many records x, or -x, are in each bin.

    Attributes
    ----------
    bins : Bins
    negate : bool
    within : (ndarray of float64, ndarray of float64) or None
        Ranges lo[r] <= x <= hi[r] of the records, before they are negated. The counts of bins
        outside of them may be anything.
    """

    bins: Bins
    negate: bool = False
    within: tuple[Numbers, Numbers] | None = None
    any_type = True

    # Room for the records of a piece that are within; where they are more, they are found again.
    FOUND = 2**16

    def start(self) -> NDArray[np.int64]:
        return self.bins.zeros()

    def step(self, state: NDArray[np.int64], piece: NDArray[Any]) -> None:
        if self.within is not None:
            ranges = kernel.Map(-np.inf, np.inf, 1, base=0, shift=0)
            found, size = ranges.between(*self.within, piece, self.FOUND)
            piece = found if size <= self.FOUND else ranges.between(*self.within, piece, size)[0]
        self.bins.count(piece, negate=self.negate, out=state)


@dataclass(frozen=True)
class Sums(Query[list[int]]):
    """The exact sum of round(x * scale), clamped to first, ..., last, of how many records and rows.

    A row that is missing has no record. Where it is `squared`, also the sum of the squares of the
    integers' distances from their middle, last.
    """

    scale: float
    first: int
    last: int
    squared: bool = False
    any_type = True

    @property
    def middle(self) -> int:
        """What squares are taken about."""
        middle: int = sums_kernel.middle_of(self.first, self.last)
        return middle

    def start(self) -> list[int]:
        return [0] * (4 if self.squared else 3)

    def step(self, state: list[int], piece: NDArray[Any]) -> None:
        if self.squared:
            total, kept, squares = sums_kernel.squares(piece, self.scale, self.first, self.last)
            state[3] += squares
        else:
            total, kept = sums_kernel.plain(piece, self.scale, self.first, self.last)
        state[0] += total
        state[1] += kept
        state[2] += piece.size

    def step_groups(
        self,
        states: dict[int, list[int]],
        groups: list[int],
        ends: NDArray[np.intp],
        values: Any,
    ) -> None:
        values = as_float64(values)
        present = values == values
        start = np.append(0, np.cumsum(present))[np.append(0, ends)]
        totals, numbers = self.of_groups(values[present], start), np.diff(start)
        rows = np.diff(ends, prepend=0)
        for group, *found in zip(
            groups, totals.tolist(), numbers.tolist(), rows.tolist(), strict=True
        ):
            states[group] = self.combine(states[group], found) if group in states else found

    def of_groups(self, values: Numbers, start: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sums of groups that have the records start[g], ..., start[g + 1] - 1; no NaN."""
        with np.errstate(over="ignore"):
            points = np.rint(np.clip(values * self.scale, self.first, self.last)).astype(np.int64)
        # fewer than 2^32 integers of 32 bits: no difference wraps, whatever the sums do
        running = np.append(0, np.cumsum(points))
        return np.diff(running[start])

    def combine(self, one: list[int], other: list[int]) -> list[int]:
        return [mine + theirs for mine, theirs in zip(one, other, strict=True)]


@dataclass(frozen=True)
class AnyMissing(Query[NDArray[np.bool_]]):
    """Whether a record is NaN."""

    any_type = True

    def start(self) -> NDArray[np.bool_]:
        return np.zeros(1, dtype=bool)

    def step(self, state: NDArray[np.bool_], piece: NDArray[Any]) -> None:
        state |= np.isnan(piece).any()

    def step_groups(
        self,
        states: dict[int, NDArray[np.bool_]],
        groups: list[int],
        ends: NDArray[np.intp],
        values: Any,
    ) -> None:
        missing = np.append(0, np.cumsum(np.isnan(as_float64(values))))
        found = np.diff(missing[np.append(0, ends)]) > 0
        for group, any_missing in zip(groups, found, strict=True):
            states[group] = states.get(group, self.start()) | any_missing


class Cells:
    """Counts of records that lie between two values: the state of `CellCounts`.

    Attributes
    ----------
    count : ndarray of int64, shape (R * parts + 1,)
        Records in each part of each range, and last how many are NaN: this may be anything where
        the ranges leave something out between `low` and `high`.
    least, most : ndarray of float64, shape (R, parts)
        The least and the largest of them; infinity and -infinity where there is none.
    """

    def __init__(self, ranges: int, parts: int) -> None:
        self.count = np.zeros(ranges * parts + 1, dtype=np.int64)
        self.least = np.full((ranges, parts), np.inf)
        self.most = np.full((ranges, parts), -np.inf)

    def __iadd__(self, other: Cells) -> Cells:
        self.count += other.count
        np.minimum(self.least, other.least, out=self.least)
        np.maximum(self.most, other.most, out=self.most)
        return self


@dataclass(frozen=True, repr=False)
class CellCounts(Query[Cells]):
    """Records in parts of some ranges: their number, and the least and the largest of them.

    Attributes
    ----------
    low, high : float
        What records are clamped to first.
    lo, hi : ndarray of float64, shape (R,)
        Ranges lo[r] <= x <= hi[r], which ascend and do not overlap.
    parts : int
        About equally wide ones of each range; with 1, each range is one cell.
    """

    low: float
    high: float
    lo: Numbers
    hi: Numbers
    parts: int
    any_type = True

    @property
    def scale(self) -> Numbers:
        """Parts in a range of 2, at most the largest number."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.minimum(self.parts / (self.hi * 0.5 - self.lo * 0.5), np.finfo(float).max)

    def start(self) -> Cells:
        return Cells(self.lo.size, self.parts)

    @cached_property
    def _inside(self) -> TakenByKey:
        """What finds the records of all ranges, and NaN."""
        return TakenByKey.between(self.low, self.high, self.lo, self.hi, sys.maxsize, nan=True)

    def step(self, state: Cells, piece: NDArray[Any]) -> None:
        if self.lo.size > 1:  # few records are in several ranges
            piece, _ = self._inside.take(piece)
        kernel.cells(
            self.low,
            self.high,
            self.lo,
            self.hi,
            self.scale,
            piece,
            state.count,
            state.least,
            state.most,
        )


@dataclass(repr=False)
class Found:
    """Records that were taken: the state of `Taken`.

    Attributes
    ----------
    values : list of ndarray of float64
        Clamped, in any order; none once there are too many.
    number : int
        How many there were.
    """

    values: list[Numbers] = field(default_factory=list)
    number: int = 0


@dataclass(frozen=True, repr=False)
class Taken(Query[Found]):
    """Some of the records.

    Attributes
    ----------
    size : int
        How many there should be; of more, none is kept.
    map : Map
    wanted : ndarray of uint8, shape (buckets + 1,)
        Not 0 for the buckets that they are in.
    """

    size: int
    map: kernel.Map
    wanted: NDArray[np.uint8]
    any_type = True

    @abstractmethod
    def take(self, piece: Numbers) -> tuple[Numbers, int]:
        """Those of a piece, and how many there are: of more than `size`, only so many."""

    def start(self) -> Found:
        return Found()

    def step(self, state: Found, piece: NDArray[Any]) -> None:
        found, number = self.take(piece)
        state.number += number
        if state.number > self.size:  # of a source that has changed
            state.values = []
        elif number:
            # of a buffer that may be as long as the piece
            is_much = found.base is None or 4 * found.nbytes >= found.base.nbytes
            state.values.append(found if is_much else found.copy())

    def combine(self, one: Found, other: Found) -> Found:
        number = one.number + other.number
        return Found(one.values + other.values if number <= self.size else [], number)

    def all_of(self, found: Found) -> Numbers | None:
        """The records in order; None if there were more or fewer."""
        if found.number != self.size:
            return None
        return np.sort(np.concatenate(found.values or [np.empty(0)]))


@dataclass(frozen=True, repr=False)
class TakenByKey(Taken):
    """The records of some buckets and ranges of keys, as `Map.collect` has them; clamped."""

    key_lo: NDArray[np.int64]
    key_hi: NDArray[np.int64]

    @classmethod
    def between(
        cls, low: float, high: float, lo: Numbers, hi: Numbers, size: int, nan: bool = False
    ) -> TakenByKey:
        """Those with lo[r] <= x <= hi[r], once clamped; ranges ascend and do not overlap."""
        scale = BUCKETS / (high - low)
        if 0.0 < scale < np.inf:
            where = kernel.Map(low, high, BUCKETS, origin=low, scale=scale)
        else:
            (lowest,) = kernel.keys(np.array([low])).tolist()
            where = kernel.Map(low, high, BUCKETS, base=lowest, shift=52)
        wanted = np.zeros(BUCKETS + 1, dtype=np.uint8)
        for one, other in zip(lo.tolist(), hi.tolist(), strict=True):
            wanted[where.bucket(one) : where.bucket(other) + 1] = 2
        wanted[-1] = nan
        return cls(size, where, wanted, kernel.keys(lo), kernel.keys(hi) + 1)

    def take(self, piece: Numbers) -> tuple[Numbers, int]:
        return self.map.collect(self.wanted, self.key_lo, self.key_hi, piece, self.size)


@dataclass(frozen=True, repr=False)
class TakenBetween(Taken):
    """The records in a few ranges, as `Map.between` has them, which is fast; clamped."""

    lo: Numbers
    hi: Numbers

    def take(self, piece: Numbers) -> tuple[Numbers, int]:
        return self.map.between(self.lo, self.hi, piece, self.size)
