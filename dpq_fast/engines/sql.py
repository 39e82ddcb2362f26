"""Tables in data bases, which answer in SQL: what the engines of all of them share.

A data base counts records by groups, each with its least and its largest record. Its arithmetic
only chooses the groups: where they lie is found by comparison. The query itself places the least
and the largest record of a group; where both are at the same place, so are all others. A group
that is at several is counted again, by the values where the next place begins. So the states are
those of the same records in memory, whatever the data base rounds.
"""

from __future__ import annotations

import math
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._kernels.select import keys
from dpq_fast.data.columns import AnyUnit
from dpq_fast.data.keys import BOOLEANS, INTEGERS, STRINGS, comparable, kind_of
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
from dpq_fast.data.tables import (
    ColumnTask,
    Declaring,
    EachGroupTask,
    GroupTask,
    KeyTask,
    Members,
    MembersTask,
    Task,
)
from dpq_fast.data.units import Presence, Unit

Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]

# Groups that a statement returns where places are not known to be as many, at most.
PARTS = 2**14
# Places of a group of a statement, for bins.
FINER = 4
# Ranges that one statement tells apart.
RANGES = 2**12
LARGEST = float(np.finfo(np.float64).max)
# Places that are told apart by comparison alone.
FEW = 2**6
# Rounds of parts, before all places are told apart.
REFINED = 4
# Of integers of 64 bits.
LONG = 2**63 - 1
# What is compared in place of a key that is missing, by kind; 0 for the other ones.
FILLERS: dict[str | None, Any] = {STRINGS: "", BOOLEANS: False}
# Added and taken away again, it leaves the nearest integer, the even one of two.
ROUNDER = 1.5 * 2.0**52


# What is asked of a data base


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
    """The exact sum of round(x * scale), clamped, how many records there are, and how many rows."""

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
    totals, number, _ = rows.columns
    return {
        g: [int(total or 0), n]
        for g, total, n in zip(rows.group.tolist(), totals.tolist(), number.tolist(), strict=True)
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


# Text


class Constants(ABC):
    """The numbers of one statement, as its text has them.

    Attributes
    ----------
    private : list of float
        Those that no text may hold.
    """

    def __init__(self) -> None:
        self.private: list[float] = []

    @abstractmethod
    def public(self, value: float) -> str:
        """A number that anybody may know."""

    @abstractmethod
    def hidden(self, value: float) -> str:
        """A number that follows from records."""


class PushedDown(Declaring):
    """An engine that answers in SQL.

    Attributes
    ----------
    names : list of str
        Of the columns.
    fetched : int
        Bytes of what was returned so far: numbers of records, values and keys.
    """

    # Ranges that one statement may tell apart.
    MOST = RANGES

    def __init__(self, names: Iterable[str], progress: bool) -> None:
        self.names = list(names)
        self.fetched = 0
        self._bar = _checks.extra("tqdm", "progress=True", "progress").tqdm if progress else None

    def answer(self, tasks: Sequence[Task[Any]]) -> list[Any]:
        """As `Engine.answer`: a statement for each task, and more for records at several places.

        What several tasks ask for alike is asked for once.
        """
        if self._bar is None:
            return self._answered(tasks, lambda: None)
        with self._bar(desc="pass", unit=" statements") as bar:
            return self._answered(tasks, bar.update)

    def _answered(self, tasks: Sequence[Task[Any]], each: Callable[[], Any]) -> list[Any]:
        """The same; `each` is called before every statement."""
        running = [self._started(task) for task in tasks]
        states: list[Any] = [None] * len(running)
        found: list[Any] = [None] * len(running)
        going = list(range(len(running)))
        while going:
            known: dict[Any, Rows] = {}
            for i in list(going):
                try:
                    requests = running[i].send(found[i])
                except StopIteration as end:
                    states[i] = end.value
                    going.remove(i)
                    continue
                found[i] = [self._rows(request, known, each) for request in requests]
        return [
            state if isinstance(task, GroupTask) else state.get(0, task.start())
            for task, state in zip(tasks, states, strict=True)
        ]

    def _started(self, task: Task[Any]) -> Asking:
        """How a task is answered."""
        if isinstance(task, ColumnTask):
            return self._way(task.query, Records(task.column, task.unit))
        if isinstance(task, KeyTask):
            return self._keyed(task)
        if not isinstance(task, (GroupTask, EachGroupTask, MembersTask)):
            raise TypeError(f"no SQL answers a {type(task).__name__}")
        records = Records(task.column, task.unit, by=task.by, groups=task.groups)
        if isinstance(task, GroupTask):
            return self._way(task.query, records)
        records = replace(records, is_public=False)
        return members(records) if isinstance(task, MembersTask) else self._each(task, records)

    def _way(self, query: Any, records: Records) -> Asking:
        """How a query is answered."""
        if isinstance(query, (CellCounts, BinCounts, PointCounts)):
            return counted(query, records, self.MOST)
        ways: dict[type, Callable[[Any, Records], Asking]] = {
            TakenByKey: listed,
            Sums: added,
            AnyMissing: any_missing,
        }
        return ways[type(query)](query, records)

    def _each(self, task: EachGroupTask, records: Records) -> Asking:
        """The states of queries of single groups; what several groups are asked is asked once."""
        alike: dict[bytes, list[int]] = {}
        for place, (_, query) in enumerate(task.queries):
            alike.setdefault(pickle.dumps(query), []).append(place)
        states = task.start()
        for places in alike.values():
            query = task.queries[places[0]][1]
            numbers, own = np.unique([task.queries[i][0] for i in places], return_inverse=True)
            some = replace(records, groups=task.groups.pick(numbers))
            found = yield from self._way(query, some)
            for place, group in zip(places, own.tolist(), strict=True):
                states[place] = found.get(group, states[place])
        return {0: states}

    def _keyed(self, task: KeyTask) -> Asking:
        """How many rows each key has."""
        kinds = [self.kind(name) for name in task.by]
        (rows,) = yield [Keyed(Records("", None, by=task.by))]
        *columns, number = rows.columns
        state = task.start()
        task.step_counted(state, dict(zip(task.by, columns, strict=True)).__getitem__, number)
        state.booleans[:] = [kind == BOOLEANS for kind in kinds]
        return {0: state}

    def _rows(self, request: Request, known: dict[Any, Rows], each: Callable[[], Any]) -> Rows:
        """The answer to a request, which may be known."""
        constants = self.constants()
        text, ranges = self._statement(request, constants)
        same = (text, id(request.records.groups), *constants.private)  # of groups in use
        if ranges is not None:
            same += (ranges.lo.tobytes(), ranges.hi.tobytes())
        if same not in known:
            records = request.records
            each()
            columns = self.fetch(text, constants, ranges, records.groups, records.by)
            self.fetched += sum(map(_bytes_of, columns))
            if isinstance(request, Keyed):
                known[same] = Rows(np.empty(0, dtype=np.int64), columns)
            else:
                known[same] = self._grouped(columns, records)
        return known[same]

    def _grouped(self, columns: list[Any], records: Records) -> Rows:
        """Rows with the numbers of their groups in place of keys; other rows are left out."""
        width = len(records.by)
        numbers = [np.asarray(column) for column in columns[width:]]
        if records.groups is None:
            return Rows(np.zeros(numbers[0].size, dtype=np.int64), numbers)
        by = columns[0] if width == 1 else columns[:width]
        places = records.groups.places(by, numbers[0].size)
        kept = places >= 0
        return Rows(places[kept], [column[kept] for column in numbers])

    def _statement(self, request: Request, constants: Constants) -> tuple[str, Ranges | None]:
        """The text of a request, and the ranges that it tells apart."""
        keys_of = "".join(f"k{i}, " for i in range(len(request.records.by)))
        if isinstance(request, Keyed):
            named = [f"{self.returned(name)} AS k{i}" for i, name in enumerate(request.records.by)]
            inner = f"(SELECT {', '.join(named)} FROM {self.source}) AS a"
            by = keys_of.removesuffix(", ")
            return f"SELECT {keys_of}count(*) AS n FROM {inner} GROUP BY {by}", None
        rows = self._inner(request.records, constants)
        ranges: Ranges | None = None
        if isinstance(request, Counted):
            if isinstance(request.where, Grid):
                number = constants.public if request.where.is_public else constants.hidden
                part = self.part("x", request.where, number, below=True)
                cell = f"{self.present(part, 'x')} AS cell"
                rows = f"SELECT {keys_of}x, {cell} FROM {rows}{self.beside(constants)}"
            else:
                ranges = request.where
                rows = self.located(rows, keys_of, ranges, constants)
            columns, grouped = "count(*) AS n, min(x) AS a, max(x) AS b", "cell"
        elif isinstance(request, Listed):
            ranges = request.ranges
            rows = self.located(rows, keys_of, ranges, constants)
            low, high = constants.public(request.low), constants.public(request.high)
            value = f"CASE WHEN x < {low} THEN {low} WHEN x > {high} THEN {high} ELSE x END"
            rows = f"SELECT {keys_of}{value} AS v FROM ({rows}) AS c"
            columns, grouped = "v, count(*) AS n", "v"
        else:
            value = self.present(self._rounded(request.sums, constants), "x")
            rows = f"SELECT {keys_of}{value} AS v FROM {rows}"
            columns, grouped = "sum(v) AS s, count(v) AS n, count(*) AS m", ""
        by = f"{keys_of}{grouped}".removesuffix(", ")
        text = f"SELECT {keys_of}{columns} FROM ({rows}) AS d" + (f" GROUP BY {by}" if by else "")
        return text, ranges

    def _inner(self, records: Records, constants: Constants) -> str:
        """The records as x, and their keys as k0, k1, ...."""
        named = [f"{self.returned(name)} AS k{i}" for i, name in enumerate(records.by)]
        sign = "-" if records.negate else ""
        named.append(f"{sign}({self.value(records.column, records.unit, constants)}) AS x")
        of_groups = ""
        if records.groups is not None:
            of_groups = self.among(records.by, records.groups, constants, records.is_public)
        return f"(SELECT {', '.join(named)} FROM {self.source}{of_groups}) AS a"

    def part(self, x: str, grid: Grid, number: Callable[[float], str], below: bool = False) -> str:
        """The part of a grid that a number is in; one more than all of them if it is below."""
        ends = {name: number(getattr(grid, name)) for name in ("low", "high", "inside", "scale")}
        unit = number(grid.unit) if grid.unit else None
        return self.part_between(x, ends, unit, grid.parts, grid.wide, below)

    def part_between(
        self,
        x: str,
        ends: Mapping[str, str],
        unit: str | None,
        parts: int,
        wide: bool,
        below: bool = False,
    ) -> str:
        """The same, where low, high, inside and scale are texts."""
        low, high = ends["low"], ends["high"]
        if unit is not None:
            at = f"ln(({x} - {low}) + {unit}) - ln({unit})"
        elif wide:  # what is near zero is zero: no product is too small for a number
            near = f"CASE WHEN {x} > -1.0 AND {x} < 1.0 THEN 0.0 ELSE {x} * 0.5 END"
            at = f"({near}) - {low} * 0.5"
        else:
            at = f"{x} - {low}"
        first = f"WHEN {x} < {low} THEN {parts + 1} " if below else ""
        whole = self.whole(f"({at}) * {ends['scale']}")
        return (
            f"CASE {first}WHEN {x} <= {ends['inside']} THEN 0 WHEN {x} >= {high} THEN {parts} "
            f"ELSE {whole} END"
        )

    def _rounded(self, sums: Sums, constants: Constants) -> str:
        """An integer of a record, as the kernel rounds it; no product is beyond all numbers."""
        scale, first, last = sums.scale, sums.first, sums.last
        if first == last:
            return str(first)
        targets = np.array(
            [first + 1, last, min(max(0, first + 1), last), min(max(1, first + 1), last)]
        )

        def reached(values: Numbers) -> NDArray[np.bool_]:
            with np.errstate(over="ignore", under="ignore"):
                return np.rint(np.clip(values * scale, first, last)) >= targets

        ends = np.full(4, math.inf)
        lowest, highest, zero, one = map(constants.public, least_of(reached, -ends, ends).tolist())
        near = f"WHEN x >= {zero} AND x < {one} THEN 0 " if first < 0 < last else ""
        far = constants.public(ROUNDER)
        return (
            f"CASE WHEN x < {lowest} THEN {first} WHEN x >= {highest} THEN {last} {near}"
            f"ELSE {self.integer(f'(x * {constants.public(scale)} + {far}) - {far}')} END"
        )

    def located(self, rows: str, keys_of: str, ranges: Ranges, constants: Constants) -> str:
        """The records in some ranges, and the cell of each: by comparison, from the middle on."""
        lo, hi = ranges.lo.tolist(), ranges.hi.tolist()

        def leaf(r: int) -> str:
            cell = str(r * (ranges.parts + 2))
            if ranges.parts > 1:
                cell += f" + ({self.part('x', ranges.grids[r], constants.hidden)})"
            ends = f"x >= {constants.hidden(lo[r])} AND x <= {constants.hidden(hi[r])}"
            return f"CASE WHEN {ends} THEN {cell} END"

        def ladder(first: int, stop: int) -> str:
            if stop - first == 1:
                return leaf(first)
            middle = (first + stop) // 2
            end = constants.hidden(lo[middle])
            below, above = ladder(first, middle), ladder(middle, stop)
            return f"CASE WHEN x < {end} THEN {below} ELSE {above} END"

        cell = ladder(0, len(lo)) if lo else "NULL"
        inner = f"SELECT {keys_of}x, {cell} AS cell FROM {rows}{self.beside(constants)}"
        return f"SELECT {keys_of}x, cell FROM ({inner}) AS b WHERE cell IS NOT NULL"

    def check_records(self, name: str, unit: AnyUnit) -> None:
        self.value(name, unit, self.constants())

    def declared(self, name: str) -> None:
        """Types of data bases have names of their own."""

    # Keys

    def told_apart(self, by: tuple[str, ...], groups: Groups, constants: Constants) -> list[str]:
        """What public keys are compared with, as `rows_of` has them.

        A column of keys, and before it whether one is missing, where this is a group.
        """
        compared = []
        for own, name in zip(groups.columns, by, strict=True):
            key = self.compared(name)
            if own.missing is not None:
                gone = self.gone(name)
                compared.append(f"CASE WHEN {gone} THEN 1 ELSE 0 END")
                key = f"CASE WHEN {gone} THEN {self.filler(name, constants)} ELSE {key} END"
            compared.append(key)
        return compared

    def key_columns(self, by: tuple[str, ...], groups: Groups) -> list[str | None]:
        """Names of what `told_apart` compares; None for whether the next one is missing."""
        return [
            column
            for own, name in zip(groups.columns, by, strict=True)
            for column in ([name] if own.missing is None else [None, name])
        ]

    def rows_of(self, by: tuple[str, ...], groups: Groups) -> list[tuple[Any, ...]]:
        """The public keys that columns of their types may have."""
        columns: list[list[Any]] = []
        for own, name in zip(groups.columns, by, strict=True):
            kind = self.kind(name)
            own.check_kind(kind)
            if own.missing is not None:
                columns.append(own.missing.astype(int).tolist())
            columns.append(
                [self._given(key, kind, name) for key in map(comparable, own.keys.tolist())]
            )
        return [row for row in zip(*columns, strict=True) if None not in row]

    def _given(self, key: Any, kind: str | None, name: str) -> Any:
        """A public key as `public` has it, or what is compared in place of one that is missing."""
        if key is None:
            return FILLERS.get(kind, 0)
        if kind is None and kind_of(key) not in (INTEGERS, BOOLEANS):  # no float
            return None
        return self.public(key, kind, name)

    # What data bases have their own words for

    source: str
    """What the rows are selected from."""

    @abstractmethod
    def constants(self) -> Constants:
        """Those of a new statement."""

    @abstractmethod
    def quoted(self, name: str) -> str:
        """The name of a column."""

    def returned(self, name: str) -> str:
        """A column of keys as statements return it: none of its values may end one."""
        return self.quoted(name)

    @abstractmethod
    def value(self, column: str, unit: AnyUnit, constants: Constants) -> str:
        """The records of a column as float64; NULL or NaN where they are missing.

        Raises
        ------
        TypeError
            If the declared type is none of the unit's, as `as_column` does.
        """

    @abstractmethod
    def present(self, value: str, x: str) -> str:
        """A value where x is not missing, NULL where it is."""

    @abstractmethod
    def whole(self, value: str) -> str:
        """The largest integer up to a value that is not negative."""

    @abstractmethod
    def integer(self, value: str) -> str:
        """A value that is an integer, as one of 64 bits."""

    @abstractmethod
    def kind(self, name: str) -> str | None:
        """The kind of a column of keys, by its declared type; other types are refused.

        None for floats, of which whole ones are keys: a statement may return others, too.
        """

    def compared(self, name: str) -> str:
        """What public keys are compared with."""
        return self.quoted(name)

    def gone(self, name: str) -> str:
        """Whether a key is missing: NaN is, an infinite time is not."""
        key = self.returned(name) if self.kind(name) is None else self.quoted(name)
        return f"{key} IS NULL"

    @abstractmethod
    def public(self, key: Any, kind: str | None, name: str) -> Any:
        """A public key as a column of its type may have it, or near it; None if it can not."""

    @abstractmethod
    def filler(self, name: str, constants: Constants) -> str:
        """That of `FILLERS` for a column of keys, in its type."""

    @abstractmethod
    def among(
        self, by: tuple[str, ...], groups: Groups, constants: Constants, is_public: bool
    ) -> str:
        """A condition of the rows: keys are some of the groups', or may be.

        Which groups these are is in the text at most if it is public.
        """

    def beside(self, constants: Constants) -> str:
        """What is joined to the records, for the private numbers of a statement."""
        return ""

    @abstractmethod
    def fetch(
        self,
        text: str,
        constants: Constants,
        ranges: Ranges | None,
        groups: Groups | None,
        by: tuple[str, ...],
    ) -> list[Any]:
        """The columns that a statement returns, as arrays; keys as `Groups.places` takes them."""


def _bytes_of(column: Any) -> int:
    """Bytes of numbers, or of the texts of keys."""
    if hasattr(column, "nbytes"):
        return int(column.nbytes)
    return sum(len(str(item)) for item in column)


def times(ticks: str, tick: int, unit: Unit | Presence, constants: Constants, double: str) -> str:
    """Times in whole ticks since 1970, or durations, as float64, as `Unit.numbers_of` has them.

    Parameters
    ----------
    ticks : str
        An integer of 64 bits.
    tick : int
        Nanoseconds.
    unit : Unit or Presence
    constants : Constants
    double : str
        The type of float64.
    """
    if isinstance(unit, Presence):
        return f"CASE WHEN {ticks} IS NOT NULL THEN 0.0 END"
    whole, part = divmod(unit.origin, tick)
    below, above = constants.public(-math.inf), constants.public(math.inf)
    least, most = max(-LONG, whole - LONG), min(LONG, whole + LONG)
    if least > most:  # beyond all that the type has
        return f"CASE WHEN {ticks} IS NOT NULL THEN {below if whole > 0 else above} END"
    number = f"CAST({ticks} - ({whole}) AS {double})"

    def constant(value: int) -> str:
        return constants.public(float(value))

    if part:
        number = f"({number} * {constant(tick)} - {constant(part)}) / {constant(unit.step)}"
    elif unit.step % tick == 0:
        number = f"{number} / {constant(unit.step // tick)}"
    else:
        number = f"{number} * {constant(tick)} / {constant(unit.step)}"
    return (
        f"CASE WHEN {ticks} < {least} THEN {below} WHEN {ticks} > {most} THEN {above} "
        f"ELSE {number} END"
    )


def encodes(text: str) -> bool:
    """Whether there is a text of UTF-8."""
    try:
        text.encode()
    except UnicodeError:
        return False
    return True
