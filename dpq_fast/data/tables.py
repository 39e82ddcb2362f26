"""Tables: rows that stay where they are, in files, data bases and clusters, and their columns.

Records of a table are seen by queries alone, each answered by a pass over all rows. Who makes the
pass is an engine's business: it may run the query on each part of the rows and combine the states,
or answer it in words of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._arguments import in_our_words
from dpq_fast.data import rounds
from dpq_fast.data.columns import AnyUnit, as_column, as_float64, check_type, refuse_nan
from dpq_fast.data.key_columns import declared_kind
from dpq_fast.data.key_counts import KeyCounts, KeyTotals, totals_of
from dpq_fast.data.passes import Query, State, scan
from dpq_fast.data.public_keys import Groups
from dpq_fast.data.queries import AnyMissing, Sums
from dpq_fast.data.units import Timed

# Libraries whose objects may be tables, and the module of `dpq_fast.engines` that knows which.
ENGINES = {
    "_duckdb": "duckdb",
    "dask": "dask",
    "duckdb": "duckdb",
    "ibis": "ibis",
    "polars": "batches",
    "pyarrow": "batches",
    "pyspark": "spark",
    "ray": "ray",
}

# Some rows: a column of each name.
Rows = Callable[[str], Any]


class Texts(Protocol):
    """A column of texts, which are numbers, times or keys as they are asked for."""

    def records(self, unit: AnyUnit) -> NDArray[Any]:
        """As numbers, or as times in a unit; what is none of them is missing."""

    def keys(self) -> Any:
        """As a column of strings."""


def records(rows: Rows, name: str, unit: AnyUnit) -> NDArray[Any]:
    """The records of some rows in a column, as `as_column` has them."""
    column = rows(name)
    if hasattr(type(column), "records"):
        texts: Texts = column
        return texts.records(unit)
    return as_column(column, unit)


def keys_of(rows: Rows, by: tuple[str, ...]) -> list[Any]:
    """Columns of keys of some rows."""
    columns = [rows(name) for name in by]
    return [each.keys() if hasattr(type(each), "records") else each for each in columns]


class Task(ABC, Generic[State]):
    """One thing that is asked of all rows: as a `Query`, of rows in place of records.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns that it needs.
    """

    columns: tuple[str, ...]

    @abstractmethod
    def start(self) -> State:
        """The state of no rows."""

    @abstractmethod
    def step(self, state: State, rows: Rows) -> None:
        """Add some rows to a state."""

    @abstractmethod
    def combine(self, one: State, other: State) -> State:
        """The state of both."""


@dataclass(frozen=True)
class ColumnTask(Task[State]):
    """A query of the records of one column.

    Attributes
    ----------
    column : str
    unit : Unit, Presence or None
        What its records are read as.
    query : Query
    """

    column: str
    unit: AnyUnit
    query: Query[State]

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """As `Task.columns`."""
        return (self.column,)

    def start(self) -> State:
        return self.query.start()

    def step(self, state: State, rows: Rows) -> None:
        scan(records(rows, self.column, self.unit), self.query, state)

    def combine(self, one: State, other: State) -> State:
        return self.query.combine(one, other)


@dataclass(frozen=True)
class GroupTask(Task[dict[int, State]]):
    """A query of the records of each group: states by the number of the group, where it has rows.

    Attributes
    ----------
    column : str
    unit : Unit, Presence or None
    query : Query
    by : tuple of str
        Columns of keys.
    groups : Groups
    """

    column: str
    unit: AnyUnit
    query: Query[State]
    by: tuple[str, ...]
    groups: Groups

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """As `Task.columns`."""
        return (self.column, *self.by)

    def start(self) -> dict[int, State]:
        return {}

    def step(self, state: dict[int, State], rows: Rows) -> None:
        self.query.step_groups(state, *by_group(*members(self, rows)))

    def combine(self, one: dict[int, State], other: dict[int, State]) -> dict[int, State]:
        for group, state in other.items():
            one[group] = self.query.combine(one[group], state) if group in one else state
        return one


class OfGroups(Protocol):
    """A task that asks for the records of groups.

    Attributes
    ----------
    column, unit, by, groups
        As of `GroupTask`.
    """

    @property
    def column(self) -> str:
        """The name of the column of records."""

    @property
    def unit(self) -> AnyUnit:
        """What its records are read as."""

    @property
    def by(self) -> tuple[str, ...]:
        """Columns of keys."""

    @property
    def groups(self) -> Groups:
        """Which groups."""


def members(task: OfGroups, rows: Rows) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Those of some rows that are in one of the groups: their records, and numbers of groups."""
    values = records(rows, task.column, task.unit)
    keys = keys_of(rows, task.by)
    places = task.groups.places(keys[0] if len(keys) == 1 else keys, values.size)
    inside = places >= 0
    return (values, places) if inside.all() else (values[inside], places[inside])


def by_group(
    values: NDArray[Any], places: NDArray[np.int64]
) -> tuple[list[int], NDArray[np.intp], NDArray[Any]]:
    """Records group by group, in their order: which groups, where each of them ends, the records.

    Sorted by 16 bits at a time, which NumPy does without comparisons.
    """
    order = np.argsort(places.astype(np.uint16), kind="stable")
    if places.size and places.max() >= 2**16:
        order = order[np.argsort((places[order] >> 16).astype(np.uint16), kind="stable")]
    places = places[order]
    last = np.flatnonzero(np.diff(places, append=-1))
    return places[last].tolist(), last + 1, values[order]


@dataclass(frozen=True, repr=False)
class EachGroupTask(Task[list[Any]]):
    """Queries of single groups: a state for each query. Which groups it asks for is private.

    Attributes
    ----------
    column : str
    unit : Unit, Presence or None
    by : tuple of str
    groups : Groups
    queries : tuple of (int, Query)
        Each with the number of its group.
    """

    column: str
    unit: AnyUnit
    by: tuple[str, ...]
    groups: Groups
    queries: tuple[tuple[int, Query[Any]], ...]

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """As `Task.columns`."""
        return (self.column, *self.by)

    def start(self) -> list[Any]:
        return [query.start() for _, query in self.queries]

    def step(self, state: list[Any], rows: Rows) -> None:
        numbers, ends, values = by_group(*members(self, rows))
        of_group = dict(zip(numbers, np.split(values, ends[:-1]), strict=bool(numbers)))
        for (group, query), own in zip(self.queries, state, strict=True):
            if group in of_group:
                scan(of_group[group], query, own)

    def combine(self, one: list[Any], other: list[Any]) -> list[Any]:
        pairs = zip(self.queries, one, other, strict=True)
        return [query.combine(own, more) for (_, query), own, more in pairs]


@dataclass(repr=False)
class Members:
    """Records of groups, in any order: the state of `MembersTask`.

    Attributes
    ----------
    values : list of ndarray of float64
    groups : list of ndarray of int32
        The number of the group of each of them.
    """

    values: list[NDArray[np.float64]]
    groups: list[NDArray[np.int32]]


@dataclass(frozen=True, repr=False)
class MembersTask(Task[Members]):
    """The records themselves of small groups, without missing ones. Which are small is private.

    Attributes
    ----------
    column : str
    unit : Unit, Presence or None
    by : tuple of str
    groups : Groups
    """

    column: str
    unit: AnyUnit
    by: tuple[str, ...]
    groups: Groups

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """As `Task.columns`."""
        return (self.column, *self.by)

    def start(self) -> Members:
        return Members([], [])

    def step(self, state: Members, rows: Rows) -> None:
        column, places = members(self, rows)
        values = as_float64(column)
        present = values == values
        if present.any():
            state.values.append(values[present])
            state.groups.append(places[present].astype(np.int32))

    def combine(self, one: Members, other: Members) -> Members:
        return Members(one.values + other.values, one.groups + other.groups)


@dataclass(frozen=True)
class KeyTask(Task[KeyTotals]):
    """How many rows each key has.

    Attributes
    ----------
    by : tuple of str
        Columns of keys.
    """

    by: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """As `Task.columns`."""
        return self.by

    def start(self) -> KeyTotals:
        return KeyTotals({}, [False] * len(self.by))

    def step(self, state: KeyTotals, rows: Rows) -> None:
        self.step_counted(state, rows, None)

    def step_counted(self, state: KeyTotals, rows: Rows, counts: Any) -> None:
        """As `step`, for rows that stand for so many each: those of a data base, grouped already.

        Parameters
        ----------
        state : KeyTotals
        rows : callable
        counts : array_like of int, or None
            None for 1 each.
        """
        state.add(totals_of(keys_of(rows, self.by), counts))

    def combine(self, one: KeyTotals, other: KeyTotals) -> KeyTotals:
        one.add(other)
        return one


class Engine(Protocol):
    """What holds the rows of a table.

    Attributes
    ----------
    names : sequence of str
        Of the columns. Public.
    """

    @property
    def names(self) -> Sequence[str]:
        """Of the columns. Public."""

    def answer(self, tasks: Sequence[Task[Any]]) -> list[Any]:
        """One pass: the state of each task for all rows."""


class Declaring(ABC):
    """An engine whose columns have types that are known before a row is read: they are public."""

    def check_records(self, name: str, unit: AnyUnit) -> None:
        """Refuse a column that can not be read in a unit, for its type."""
        column = self.declared(name)
        if column is not None:
            check_type(column, unit)

    def kind(self, name: str) -> str | None:
        """The kind of a column of keys, None if it does not say; other types are refused."""
        column = self.declared(name)
        return None if column is None else declared_kind(column)

    @abstractmethod
    def declared(self, name: str) -> Any:
        """A column of the same type without a row; None where that is not known."""


@in_our_words
class Table:
    """Rows of named columns that stay where they are: in files, a data base or a cluster.

    Its columns, ``table["pay"]``, are given to releases in place of arrays, and columns of keys,
    ``table["town", "year"]``, as `by`. They are private; their names are public.

    Attributes
    ----------
    names : list of str
        Of its columns. Public.

    Examples
    --------
    >>> import dpq_fast as dpq
    >>> table = dpq.Table.of({"pay": [30_000.0, 45_000.0], "team": ["hr", "it"]})
    >>> table["pay"]
    Table(pay, team)['pay']
    >>> bool(0 <= dpq.median(table["pay"], epsilon=1.0, bounds=(0, 500_000)) <= 500_000)
    True
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.names = list(engine.names)

    @classmethod
    @in_our_words
    def of(
        cls, source: Any, connection: Any = None, *, workers: int = 1, progress: bool = False
    ) -> Table:
        """A table of whatever holds its rows.

        Parameters
        ----------
        source : object
            A path of a Parquet, Feather (``.feather``, ``.arrow``) or CSV file (``.csv``, ``.tsv``,
            also ``.gz``, ``.bz2``, ``.zst`` or ``.zip``), a folder or a glob of such, or a list of
            paths; a data set or a Parquet file of pyarrow; a lazy frame of polars; a relation of
            DuckDB; a table of ibis; an array or a data frame of Dask; a data frame of Spark; a data
            set of Ray. A data frame in memory, or a mapping from names to columns. Or, with the
            `connection` that it is for, the name of a table, or a query in SQL: what it may do is
            on the page "What a query may do" of the documentation.
            Private. It must give the same rows at every pass: pin a snapshot of what is written to.
        connection : optional
            Of DuckDB or of ibis, for a name or a query. Public.
        workers : int, default 1
            Threads, for files and lazy frames; the other engines have their own.
        progress : bool, default False
            Show how far a pass is, for the curator's eyes: it is private where the number of rows
            is.

        Returns
        -------
        Table

        Raises
        ------
        TypeError
            If `source` is none of these.
        ImportError
            If a library is missing: the message names the extra that has it.

        Notes
        -----
        **Cost.** None here. A release takes two passes: one counts records by cell, the other finds
        those around the ranks that decide; a third one where many records are close together.
        Several share their passes (`together`).
        """
        if isinstance(source, Table):
            return source
        threads = _checks.check_workers(workers)
        progress = _checks.check_flag("progress", progress)
        if connection is None and are_paths(source):
            _checks.extra("pyarrow.dataset", "a table of files", "arrow")
            files = import_module("dpq_fast.engines.files")
            return cls(files.opened(source, threads, progress))
        engine = engine_of(source, connection, threads, progress)
        if engine is None and connection is None:
            frames = import_module("dpq_fast.engines.batches")
            engine = frames.of_frame(source, threads, progress)
        if engine is None:
            raise TypeError(
                "source must be a data frame, or a table of pyarrow, polars, DuckDB, ibis, Dask, "
                f"Spark or Ray, got {type(source if connection is None else connection).__name__}"
            )
        return cls(engine)

    def __getitem__(self, names: Any) -> TableColumns:
        """One column, or several of keys."""
        chosen = tuple(_checks.listed_names(names, self.names))
        for name in chosen:
            if self.names.count(name) != 1:
                raise ValueError(
                    f"name must be that of one column of the table{listed(self.names, name)}, "
                    f"got {name!r}"
                )
        return TableColumns(self, chosen)

    @property
    def columns(self) -> list[str]:
        """The names, as data frames have them."""
        return self.names

    def __repr__(self) -> str:
        return f"Table({', '.join(map(str, self.names))})"

    def check_records(self, name: str, unit: AnyUnit) -> None:
        """Refuse a column of records for its type, where the engine knows it."""
        if isinstance(self._engine, Declaring):
            self._engine.check_records(name, unit)

    def check_keys(self, by: tuple[str, ...], groups: Groups | None = None) -> None:
        """Refuse columns of keys for their types, where the engine knows them."""
        if groups is not None:
            groups.check_width(len(by))
        if not isinstance(self._engine, Declaring):
            return
        kinds = [self._engine.kind(name) for name in by]
        if groups is not None:
            for own, kind in zip(groups.columns, kinds, strict=True):
                own.check_kind(kind)

    def answer(self, tasks: Sequence[Task[Any] | GroupQuery]) -> list[Any]:
        """One pass over the rows: the state of each task. Private.

        Queries of single groups of one column are one task.
        """
        whole = [task for task in tasks if isinstance(task, Task)]
        single = [task for task in tasks if not isinstance(task, Task)]
        columns = {id(one.column): one.column for one in single}
        of_column = {own: [one for one in single if id(one.column) == own] for own in columns}
        each = [columns[own].task_of(several) for own, several in of_column.items()]
        states = iter(self._engine.answer([*whole, *each]))
        found = {id(task): next(states) for task in whole}
        for several in of_column.values():
            found |= {id(one): state for one, state in zip(several, next(states), strict=True)}
        return [found[id(task)] for task in tasks]


class TableColumns:
    """One or several columns of a table, not read.

    Attributes
    ----------
    table : Table
    columns : tuple of str
        Their names.
    """

    __slots__ = ("columns", "table")

    def __init__(self, table: Table, columns: tuple[str, ...]) -> None:
        self.table = table
        self.columns = columns

    def __repr__(self) -> str:
        return f"{self.table!r}[{', '.join(map(repr, self.columns))}]"


class TablePasses:
    """Passes over the records of one column of a table, or of one group of them.

    Parameters
    ----------
    table : Table
    task_of : callable
        The task for a query.
    unit : Unit, Presence or None
        What the records are read as.
    """

    def __init__(
        self,
        table: Table,
        task_of: Callable[[Query[Any]], Task[Any] | GroupQuery],
        unit: AnyUnit,
    ) -> None:
        self._table, self._task_of, self.unit = table, task_of, unit

    def fold(self, query: Query[State]) -> State:
        """As `Passes.fold`."""
        (state,) = rounds.ask(self._table, [self._task_of(query)])
        found: State = state
        return found


class GroupedColumn:
    """The records of a column of a table by the keys of others. Private, but for the groups.

    Parameters
    ----------
    x, by : TableColumns
        Of one table; `x` is one column.
    unit : Unit, Presence or None
        What its records are read as.
    groups : Groups
    """

    def __init__(self, x: TableColumns, by: TableColumns, unit: AnyUnit, groups: Groups) -> None:
        self._table, self._by, self._unit, self._groups = x.table, by.columns, unit, groups
        (self._column,) = x.columns

    def sums(
        self, query: Sums, nan_policy: str = "omit"
    ) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
        """The sum of each group's records, and their number, by one pass."""
        totals = np.zeros(len(self._groups), dtype=object)
        numbers = np.zeros(len(self._groups), dtype=np.int64)
        if not numbers.size:
            return totals, numbers
        column = self._column, self._unit
        tasks: list[Task[Any]] = [GroupTask(*column, query, self._by, self._groups)]
        if nan_policy == "raise":
            tasks.append(GroupTask(*column, AnyMissing(), self._by, self._groups))
        states, *missing = rounds.ask(self._table, tasks)
        if any(found.any() for each in missing for found in each.values()):
            refuse_nan(nan_policy)
        for group, (total, number) in states.items():
            totals[group], numbers[group] = total, number
        return totals, numbers

    def collect(self, groups: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """All records of some groups, by one pass, and which of these groups each one is in."""
        if not groups.size:
            return np.empty(0), np.empty(0, dtype=np.int32)
        task = MembersTask(self._column, self._unit, self._by, self._groups.pick(groups))
        (found,) = rounds.ask(self._table, [task])
        return _joined(found.values, np.float64), _joined(found.groups, np.int32)

    def passes(self, group: int) -> TablePasses:
        """Passes over the records of one group; several share theirs by `rounds.together`."""
        return TablePasses(self._table, lambda query: GroupQuery(self, group, query), None)

    def task_of(self, asked: Sequence[GroupQuery]) -> EachGroupTask:
        """One task for queries of some groups."""
        numbers, places = np.unique([each.group for each in asked], return_inverse=True)
        queries = zip(places.tolist(), (each.query for each in asked), strict=True)
        groups = self._groups.pick(numbers)
        return EachGroupTask(self._column, self._unit, self._by, groups, tuple(queries))


def _joined(parts: list[NDArray[Any]], dtype: type) -> NDArray[Any]:
    """One array of several, which are given up one by one: there is no room for all of it twice."""
    joined: NDArray[Any] = np.empty(sum(part.size for part in parts), dtype=dtype)
    end = joined.size
    while parts:
        part = parts.pop()
        joined[end - part.size : end] = part
        end -= part.size
    return joined


@dataclass(frozen=True, repr=False)
class GroupQuery:
    """A query of one group.

    Attributes
    ----------
    column : GroupedColumn
    group : int
        Its number.
    query : Query
    """

    column: GroupedColumn
    group: int
    query: Query[Any]


def are_paths(source: Any) -> bool:
    """Whether something is a path, or a list of them."""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(isinstance(each, (str, Path)) for each in source)
    return isinstance(source, (str, Path))


def engine_of(source: Any, connection: Any, workers: int, progress: bool) -> Engine | None:
    """The engine that holds the rows of a source; None for what is in memory, or no table."""
    holder = source if connection is None else connection
    name = ENGINES.get(type(holder).__module__.partition(".")[0])
    if name is None:
        return None
    adaptor = import_module(f"dpq_fast.engines.{name}")
    engine: Engine | None = adaptor.opened(source, connection, workers, progress)
    return engine


def is_name(text: Any) -> bool:
    """Whether a text may well be a name, and no record: it is neither empty nor a number."""
    with suppress(ValueError):
        float(text)
        return False
    return bool(text.strip())


def listed(names: Sequence[Any], wanted: Any) -> str:
    """The names that there are, and those next to one that is not, for a message.

    Nothing where a file of texts has no line of names, and its first record was taken for one.
    """
    if not all(is_name(each) for each in names if isinstance(each, str)):
        return ""
    close = get_close_matches(str(wanted), list(map(str, names)))
    nearest = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return f" ({', '.join(map(str, names))}{nearest})"


def table_of(x: Any, workers: int = 1) -> Table | None:
    """A table, or that of what an engine holds; None for anything else."""
    if isinstance(x, Table):
        return x
    engine = engine_of(x, None, _checks.check_workers(workers), False)
    return None if engine is None else Table(engine)


def opened(x: Any) -> Any:
    """A column that an engine holds as a column of its table; anything else as it is."""
    table = None if isinstance(x, TableColumns) else table_of(x)
    if table is None:
        return x
    _checks.check_width(len(table.names))
    return table[table.names[0]]


def passes_of(x: Any) -> TablePasses | None:
    """Passes over a column of a table, in its unit if it has one; None for any other column."""
    if type(x) is np.ndarray:  # what most are
        return None
    if isinstance(x, TablePasses):
        return x
    column, unit = (x.column, x.unit) if isinstance(x, Timed) else (x, None)
    column = opened(column)
    if not isinstance(column, TableColumns):
        return None
    _checks.check_width(len(column.columns))
    (name,) = column.columns
    column.table.check_records(name, unit)
    return TablePasses(column.table, lambda query: ColumnTask(name, unit, query), unit)


def of_one_table(x: Any, by: Any) -> tuple[TableColumns, TableColumns, AnyUnit] | None:
    """A column of records and those of its keys, where they lie in a table, and the former's unit.

    None where neither of them does.
    """
    column, unit = (x.column, x.unit) if isinstance(x, Timed) else (x, None)
    inside = [isinstance(each, TableColumns) for each in (column, by)]
    if not any(inside):
        return None
    if not all(inside) or column.table is not by.table:
        raise ValueError(
            "x and by must be columns of one table, as table['pay'] and table['town', 'year'] are"
        )
    _checks.check_width(len(column.columns))
    column.table.check_records(*column.columns, unit)
    return column, by, unit


def key_columns(by: Any) -> Any:
    """Columns of keys that lie in an engine as those of its table; anything else as it is."""
    if not isinstance(by, TableColumns):
        table = table_of(by)
        if table is None:
            return by
        by = TableColumns(table, tuple(table.names))
    by.table.check_keys(by.columns)
    return by


def count_keys(by: TableColumns) -> KeyCounts:
    """How many rows each key has, by one pass."""
    (state,) = rounds.ask(by.table, [KeyTask(by.columns)])
    totals: KeyTotals = state
    return totals.ordered()


def refuse_counts(counts: Any) -> None:
    """A row of a table is a record."""
    if counts is not None:
        raise ValueError("counts must be left out for a column of a table")
