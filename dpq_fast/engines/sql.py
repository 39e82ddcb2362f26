"""Tables in data bases, which answer in SQL: what the engines of all of them share.

`requests` says what a task asks of a data base; here each request becomes a statement, and what it
returns becomes rows. A data base has its own words for types, constants and private numbers.
"""

from __future__ import annotations

import math
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast.data.columns import AnyUnit
from dpq_fast.data.keys import BOOLEANS, INTEGERS, STRINGS, comparable, kind_of
from dpq_fast.data.public_keys import Groups
from dpq_fast.data.queries import (
    AnyMissing,
    BinCounts,
    CellCounts,
    PointCounts,
    Sums,
    TakenByKey,
)
from dpq_fast.data.tasks import (
    ColumnTask,
    Declaring,
    EachGroupTask,
    GroupTask,
    KeyTask,
    MembersTask,
    PersonsTask,
    Task,
)
from dpq_fast.data.units import Presence, Unit
from dpq_fast.engines.requests import (
    Asking,
    Counted,
    Grid,
    Keyed,
    Listed,
    Numbers,
    Ranges,
    Records,
    Request,
    Rows,
    added,
    any_missing,
    counted,
    least_of,
    listed,
    members,
)

# Ranges that one statement tells apart.
RANGES = 2**12
# Of integers of 64 bits.
LONG = 2**63 - 1
# What is compared in place of a key that is missing, by kind; 0 for the other ones.
FILLERS: dict[str | None, Any] = {STRINGS: "", BOOLEANS: False}
# Added and taken away again, it leaves the nearest integer, the even one of two.
ROUNDER = 1.5 * 2.0**52


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
        if isinstance(task, PersonsTask):
            return self._persons(task)
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

    def _persons(self, task: PersonsTask) -> Asking:
        """The rows of persons, by one statement."""
        _ = yield []  # one statement of its own, none of what others ask for alike
        constants = self.constants()
        state = task.start()

        def step(columns: list[Any]) -> None:
            *keys, values, numbers = columns
            self.fetched += sum(map(_bytes_of, columns))
            own = numbers.astype(np.uint32).reshape(1, -1)
            # a copy: no view of one column keeps all of a batch
            task.add(state, values.copy(), keys, own, np.ones(own.size, dtype=np.bool_))

        self.stepped(self._numbered(task, constants), constants, task.by, step)
        if task.groups is None:
            state.booleans[:] = [self.kind(name) == BOOLEANS for name in task.by]
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
            if request.sums.squared:
                aside = f"(v - ({request.sums.middle}))"
                columns += f", sum({aside} * {aside}) AS w"
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

    def _numbered(self, task: PersonsTask, constants: Constants) -> str:
        """Rows and numbers of their persons: by a join, which is faster than a window.

        No id that is missing is equal to another one.
        """
        ids = ", ".join(f"i{j}" for j in range(len(task.ids)))
        own = ", ".join(f"{self.quoted(name)} AS i{j}" for j, name in enumerate(task.ids))
        keys = "".join(f"{self.returned(name)} AS k{i}, " for i, name in enumerate(task.by))
        keys_of = "".join(f"k{i}, " for i in range(len(task.by)))
        value = "0.0" if task.column is None else self.value(task.column, task.unit, constants)
        rows = f"(SELECT {keys}{value} AS x, {own} FROM {self.source}) AS a"
        persons = f"(SELECT DISTINCT {own} FROM {self.source}) AS b"
        number = f"(SELECT {ids}, row_number() OVER () AS p FROM {persons}) AS c"
        return f"SELECT {keys_of}x, p FROM {rows} JOIN {number} USING ({ids})"

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

    @abstractmethod
    def check_ids(self, name: str) -> None:
        """As of `Declaring`, by the type that the data base declares."""

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

    def stepped(
        self,
        text: str,
        constants: Constants,
        by: tuple[str, ...],
        step: Callable[[list[Any]], None],
    ) -> None:
        """Go through what `fetch` would return, some rows at a time where that is possible."""
        step(self.fetch(text, constants, None, None, by))


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
