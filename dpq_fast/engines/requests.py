"""What a task asks of a data base, whatever its language, and how the answers become its state.

A data base counts records by groups, each with its least and its largest record. Its arithmetic
only chooses the groups: where they lie is found by comparison. The query itself places the least
and the largest record of a group; where both are at the same place, so are all others. A group
that is at several is counted again, by the values where the next place begins. So the states are
those of the same records in memory, whatever the data base rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels.select import keys
from dpq_fast.data.columns import AnyUnit
from dpq_fast.data.public_keys import Groups
from dpq_fast.data.queries import (
    AnyMissing,
    BinCounts,
    CellCounts,
    Cells,
    Found,
    PointCounts,
    Sums,
    TakenByKey,
)
from dpq_fast.data.tasks import Members

Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]

# Groups that a statement returns where places are not known to be as many, at most.
PARTS = 2**14
# Places of a group of a statement, for bins.
FINER = 4
LARGEST = float(np.finfo(np.float64).max)
# Places that are told apart by comparison alone.
FEW = 2**6
# Rounds of parts, before all places are told apart.
REFINED = 4


@dataclass(frozen=True)
class Records:
    """The records of a column, and their keys.

    Attributes
    ----------
    column : str
    unit : Unit, Presence or None
    negate : bool
        Whether -x is the record in place of x.
    by : tuple of str
        Columns of keys.
    groups : Groups or None
        Whose rows alone are returned.
    is_public : bool
        Whether a text may say which groups these are.
    """

    column: str
    unit: AnyUnit
    negate: bool = False
    by: tuple[str, ...] = ()
    groups: Groups | None = None
    is_public: bool = True


@dataclass(frozen=True)
class Grid:
    """Parts of a range that are about equally wide, by the arithmetic of whoever places records.

    Attributes
    ----------
    low, high : float
        Finite. Part 0 begins at `low`; `high` and above is part `parts`.
    parts : int
    unit : float
        Where it is not 0, parts are equally wide in ln(x - low + unit).
    wide : bool
        Whether there may be no number high - low; halves are taken.
    is_public : bool
        Whether its numbers may be in the text of a statement.
    """

    low: float
    high: float
    parts: int
    unit: float = 0.0
    wide: bool = False
    is_public: bool = False

    @cached_property
    def scale(self) -> float:
        """Parts in a range of 1, of the halves or the logarithms if such are taken."""
        if self.unit:
            extent = math.log(self.high - self.low + self.unit) - math.log(self.unit)
        elif self.wide:
            extent = self.high * 0.5 - self.low * 0.5
        else:
            extent = self.high - self.low
        return min(self.parts / extent, LARGEST) if extent else LARGEST

    @cached_property
    def inside(self) -> float:
        """A number in part 0: beyond it no product is too small for a number."""
        step = 0.0 if self.unit else min(0.5 / self.scale, self.high * 0.5 - self.low * 0.5)
        return self.low + step

    def parts_of(self, values: Numbers) -> Numbers:
        """The parts of some numbers, as arithmetic that rounds to nearest has them."""
        x = np.clip(values, self.low, self.high)
        if self.unit:
            at = np.log(x - self.low + self.unit) - math.log(self.unit)
        elif self.wide:
            at = x * 0.5 - self.low * 0.5
        else:
            at = x - self.low
        return np.floor(at * self.scale)


@dataclass(frozen=True)
class Ranges:
    """Ranges lo[r] <= x <= hi[r], which ascend and do not overlap. Private.

    Attributes
    ----------
    lo, hi : ndarray of float64
        They may be infinite.
    low, high : float
        Finite; what is beyond need not be told apart.
    parts : int
        Of each range.
    is_public : bool
        Whether `low` and `high` may be in the text of a statement.
    """

    lo: Numbers
    hi: Numbers
    low: float
    high: float
    parts: int = 1
    is_public: bool = False

    @property
    def wide(self) -> bool:
        """As `Grid.wide`."""
        return not math.isfinite(self.high - self.low)

    @cached_property
    def grids(self) -> list[Grid]:
        """The parts of each range."""
        lo, hi = (np.clip(each, self.low, self.high).tolist() for each in (self.lo, self.hi))
        return [
            Grid(low, high, self.parts, wide=self.wide) for low, high in zip(lo, hi, strict=True)
        ]


@dataclass(frozen=True)
class Counted:
    """Groups of records: how many they are, and the least and the largest of each.

    Attributes
    ----------
    records : Records
    where : Grid or Ranges
        All records, in parts of a grid, and those that are missing; or some, in parts of ranges.
    """

    records: Records
    where: Grid | Ranges


@dataclass(frozen=True)
class Listed:
    """The distinct values in some ranges, clamped to low and high, and how often each occurs."""

    records: Records
    ranges: Ranges
    low: float
    high: float


@dataclass(frozen=True)
class Added:
    """The exact sum of round(x * scale), clamped, how many records there are, and how many rows.

    Where it is squared, also the sum of squares.
    """

    records: Records
    sums: Sums


@dataclass(frozen=True)
class Keyed:
    """All keys of the rows, and how many rows each has."""

    records: Records


Request = Counted | Listed | Added | Keyed


@dataclass(frozen=True)
class Rows:
    """What a data base returns.

    Attributes
    ----------
    group : ndarray of int64
        The number of the group of keys of each row; 0 where there are no keys.
    columns : list of ndarray
        Of what is counted, numbers of records, least and largest: NaN for those missing. Of what
        is listed, values and how often they occur. Of what is added, sums (as objects, None where
        there is no record), numbers of records and of rows. Of keys, themselves and numbers.
    """

    group: Integers
    columns: list[Any]


# How a task becomes requests, and answers a state

Asking = Generator[Sequence[Request], list[Rows], dict[int, Any]]


def counted(query: Any, records: Records, most: int) -> Asking:
    """The states of a query that counts records by places that ascend; by the number of the group.

    Parameters
    ----------
    query : CellCounts, BinCounts or PointCounts
    records : Records
    most : int
        Ranges that one request may have.
    """
    if isinstance(query, BinCounts):
        if query.negate:
            records = replace(records, negate=True)
        own: Any = BinCounts(query.bins)
    else:
        own = query
    states: dict[int, Any] = {}
    where = _first(query)
    ends = where.low, where.high
    waiting: list[Grid | Ranges] = [where]
    refined = 0
    while waiting:
        found = yield [Counted(records, each) for each in waiting]
        group: Integers = np.concatenate([rows.group for rows in found])
        number, least, largest = (
            np.concatenate(each) for each in zip(*(rows.columns for rows in found), strict=True)
        )
        for each in np.unique(group).tolist():
            states.setdefault(each, query.start())
        missing = np.isnan(least)
        if not isinstance(query, BinCounts):
            for g, n in zip(group[missing].tolist(), number[missing].tolist(), strict=True):
                counts_of(states[g])[-1] += n
        order = np.flatnonzero(~missing)[np.argsort(least[~missing], kind="stable")]
        group, number, least, largest = group[order], number[order], least[order], largest[order]
        start, stop, block = _apart(least, largest)
        first, last = places_of(own, start), places_of(own, stop)
        (whole,) = np.nonzero((first == last)[block])
        whole = whole[np.argsort(group[whole], kind="stable")]
        for mine in np.split(whole, np.flatnonzero(np.diff(group[whole])) + 1):
            if mine.size:
                state = states[int(group[mine[0]])]
                _add(state, own, first[block[mine]], number[mine], least[mine], largest[mine])
        several = first < last
        if not several.any():
            break
        start, stop, first, last = start[several], stop[several], first[several], last[several]
        if (last - first + 1).sum() > most and refined < REFINED and 2 * start.size <= most:
            refined += 1
            parts = max(2, PARTS // start.size)
            waiting = [Ranges(start, stop, *ends, parts, where.is_public)]
        else:
            lo, hi = _split(own, start, stop, first, last)
            waiting = [
                Ranges(lo[at : at + most], hi[at : at + most], *ends, 1, where.is_public)
                for at in range(0, lo.size, most)
            ]
    return states


def _first(query: Any) -> Grid | Ranges:
    """Where the records are counted first, of all places or some."""
    if isinstance(query, CellCounts):
        if query.lo.size == 1 and query.lo[0] == query.low and query.hi[0] == query.high:
            wide = not math.isfinite(query.high - query.low)
            return Grid(query.low, query.high, query.parts, wide=wide, is_public=True)
        return ranges_of(query.lo, query.hi, query.low, query.high, query.parts)
    if isinstance(query, PointCounts):
        grid = _grid_of(query.lattice.least(np.arange(1, query.lattice.points)))
        return replace(grid, is_public=True)
    edges = query.bins.edges[1 : query.bins.size]  # they may be private
    grid = _grid_of(edges[np.isfinite(edges)])
    if query.within is not None:
        lo, hi = query.within
        if query.negate:
            lo, hi = -hi[::-1], -lo[::-1]
        return Ranges(lo, hi, grid.low, grid.high, max(1, PARTS // max(lo.size, 1)))
    if edges.size >= FEW:
        return grid
    lo = np.unique(np.append(-math.inf, edges))
    hi = np.append(np.nextafter(lo[1:], -math.inf), math.inf)
    return Ranges(lo, hi, grid.low, grid.high)


def ranges_of(lo: Numbers, hi: Numbers, low: float, high: float, parts: int = 1) -> Ranges:
    """Ranges of records that are clamped to public bounds, before they are."""
    lo, hi = np.where(lo <= low, -math.inf, lo), np.where(hi >= high, math.inf, hi)
    return Ranges(lo, hi, low, high, parts, is_public=True)


def _grid_of(edges: Numbers) -> Grid:
    """Parts that begin about where bins begin, of ascending finite edges: of those that fit best.

    They are equally wide, or their distances from the first edge grow by a factor.
    """
    if edges.size < 2 or edges[0] == edges[-1]:
        end = float(edges[0]) if edges.size else 0.0
        return Grid(end, end, 1)
    first, last, parts = float(edges[0]), float(edges[-1]), FINER * edges.size
    step = (last * 0.5 - first * 0.5) / (edges.size - 1) * 2.0
    low = max(first - step, -LARGEST)
    grids = [Grid(low, last, parts, wide=not math.isfinite(last - low))]
    gaps = np.diff(edges * 0.5) * 2.0
    least = float(gaps[gaps > 0.0].min())
    for start, unit in ((first - least, 1.0), (first, 1.0), (first, least)):
        if math.isfinite(last - start + unit) and unit < math.inf:
            grids.append(Grid(start, last, parts, unit))
    return min(grids, key=lambda grid: np.bincount(grid.parts_of(edges).astype(np.int64)).max())


def _apart(least: Numbers, most: Numbers) -> tuple[Numbers, Numbers, Integers]:
    """What groups in the order of their least values cover, and which of these each is in.

    Groups that overlap are in one: those of arithmetic that does not ascend, or of several keys.
    """
    if not least.size:
        return least, most, np.empty(0, dtype=np.int64)
    reach = np.maximum.accumulate(most)
    begins = np.append(True, least[1:] > reach[:-1])
    (at,) = np.nonzero(begins)
    return least[at], reach[np.append(at[1:], least.size) - 1], np.cumsum(begins) - 1


def places_of(query: Any, values: Numbers) -> Integers:
    """The place of each value, as an ascending number, by the query itself."""
    order = np.argsort(values, kind="stable")
    state = query.start()
    query.step(state, np.ascontiguousarray(values[order]))
    counts = counts_of(state)
    places = np.empty(values.size, dtype=np.int64)
    places[order] = np.repeat(np.arange(counts.size), counts)
    return places


def counts_of(state: Any) -> Integers:
    """The counts of a state, by place."""
    counts: Integers = state.count if isinstance(state, Cells) else state
    return counts


def _add(
    state: Any, query: Any, place: Integers, number: Integers, least: Numbers, most: Numbers
) -> None:
    """Add groups of records, each at one place."""
    np.add.at(counts_of(state), place, number)
    if isinstance(state, Cells):
        for keep, kept, found in (
            (np.minimum, state.least, least),
            (np.maximum, state.most, most),
        ):
            keep.at(kept.reshape(-1), place, np.clip(found, query.low, query.high) + 0.0)


def _split(
    query: Any, start: Numbers, stop: Numbers, first: Integers, last: Integers
) -> tuple[Numbers, Numbers]:
    """Parts of ranges start[r] <= x <= stop[r] that are at one place each, of first to last."""
    several = last - first
    owner = np.repeat(np.arange(start.size), several)
    place = first[owner] + 1 + np.arange(owner.size) - (np.cumsum(several) - several)[owner]
    edges = least_of(lambda values: places_of(query, values) >= place, start[owner], stop[owner])
    lo = np.unique(np.append(start, edges))
    owner = np.searchsorted(start, lo, side="right") - 1
    ends = np.append(owner[1:] != owner[:-1], True)
    return lo, np.where(ends, stop[owner], np.nextafter(np.append(lo[1:], math.inf), -math.inf))


def least_of(
    reached: Callable[[Numbers], NDArray[np.bool_]], least: Numbers, most: Numbers
) -> Numbers:
    """The least numbers for which something holds, as it does for `most`, but not for `least`."""
    before, at = keys(np.ascontiguousarray(least)), keys(np.ascontiguousarray(most))
    while (before < at - 1).any():
        middle = (before >> 1) + (at >> 1) + (before & at & 1)
        is_reached = reached(_values_of(middle))
        at = np.where(is_reached, middle, at)
        before = np.where(is_reached, before, middle)
    return _values_of(at)


def _values_of(key: Integers) -> Numbers:
    """The numbers that have some keys."""
    bits = key ^ ((key >> 63).view(np.uint64) >> np.uint64(1)).view(np.int64)
    values: Numbers = bits.view(np.float64)
    return values


def listed(query: TakenByKey, records: Records) -> Asking:
    """The states of a query that takes records."""
    low, high = query.map.ends
    lo, hi = _values_of(query.key_lo), _values_of(query.key_hi - 1)
    (rows,) = yield [Listed(records, ranges_of(lo, hi, low, high), low, high)]
    value, number = rows.columns
    states = {}
    for g in np.unique(rows.group).tolist():
        mine = rows.group == g
        total = int(number[mine].sum())
        taken = total <= query.size
        states[g] = Found([np.repeat(value[mine], number[mine])] if taken else [], total)
    return states


def added(query: Sums, records: Records) -> Asking:
    """The states of a sum."""
    (rows,) = yield [Added(records, query)]
    states = zip(*(column.tolist() for column in rows.columns), strict=True)
    return {
        g: [int(total or 0), number, every, *(int(squares or 0) for squares in others)]
        for g, (total, number, every, *others) in zip(rows.group.tolist(), states, strict=True)
    }


def any_missing(query: AnyMissing, records: Records) -> Asking:
    """Whether there are rows without a record."""
    (rows,) = yield [Added(records, Sums(1.0, 0, 0))]
    _, number, every = rows.columns
    return {
        g: np.array([missing > 0])
        for g, missing in zip(rows.group.tolist(), (every - number).tolist(), strict=True)
    }


def members(records: Records) -> Asking:
    """The records themselves, and their groups."""
    ends = np.array([-math.inf]), np.array([math.inf])
    everywhere = Ranges(*ends, -LARGEST, LARGEST)
    (rows,) = yield [Listed(records, everywhere, -math.inf, math.inf)]
    value, number = rows.columns
    groups = np.repeat(rows.group, number).astype(np.int32)
    return {0: Members([np.repeat(value, number)], [groups])}
