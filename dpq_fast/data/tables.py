"""Tables: rows that stay where they are, in files, data bases and clusters, and their columns.

Records of a table are seen by queries alone, each answered by a pass over all rows: by the tasks
that its engine answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._arguments import in_our_words
from dpq_fast.data import rounds
from dpq_fast.data.columns import AnyUnit, refuse_nan
from dpq_fast.data.key_counts import KeyCounts, KeyTotals
from dpq_fast.data.passes import Query, State
from dpq_fast.data.public_keys import Groups
from dpq_fast.data.queries import AnyMissing, Sums
from dpq_fast.data.tasks import (
    ColumnTask,
    Declaring,
    EachGroupTask,
    Engine,
    GroupTask,
    KeyTask,
    MembersTask,
    Task,
)
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

        **Persons.** With a `privacy_unit` that names columns of ids, ``median(table["pay"],
        privacy_unit="user", ...)``, a release takes one pass, which brings the rows that have an id
        here: the record of each, the key or number of its group, and a number that stands for the
        person; never an id. Data bases count persons by a join; all else makes the numbers where
        the rows are read, by a key that is drawn for each pass: of integers others of 64 bits, one
        for each, of all else 128 bits of a hash. Memory is that of an array of the column: some 30
        bytes for each row, twice that while groups are put together.
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
        return named_columns(self, "name", names)

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

    def check_ids(self, names: tuple[str, ...]) -> None:
        """Refuse columns of ids for their types, where the engine knows them."""
        if isinstance(self._engine, Declaring):
            for name in names:
                self._engine.check_ids(name)

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


def named_columns(table: Table, argument: str, names: Any) -> TableColumns:
    """Columns of a table, by what their names are called in a message."""
    chosen = tuple(_checks.listed_names(names, table.names))
    for name in chosen:
        if table.names.count(name) != 1:
            raise ValueError(
                f"{argument} must be that of one column of the table"
                f"{listed(table.names, name)}, got {name!r}"
            )
    return TableColumns(table, chosen)


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
        for group, (total, number, _) in states.items():
            totals[group], numbers[group] = total, number
        return totals, numbers

    def collect(self, groups: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """All records of some groups, by one pass, and which of these groups each one is in."""
        if not groups.size:
            return np.empty(0), np.empty(0, dtype=np.int32)
        task = MembersTask(self._column, self._unit, self._by, self._groups.pick(groups))
        (found,) = rounds.ask(self._table, [task])
        return joined(found.values, np.float64), joined(found.groups, np.int32)

    def passes(self, group: int) -> TablePasses:
        """Passes over the records of one group; several share theirs by `rounds.together`."""
        return TablePasses(self._table, lambda query: GroupQuery(self, group, query), None)

    def task_of(self, asked: Sequence[GroupQuery]) -> EachGroupTask:
        """One task for queries of some groups."""
        numbers, places = np.unique([each.group for each in asked], return_inverse=True)
        queries = zip(places.tolist(), (each.query for each in asked), strict=True)
        groups = self._groups.pick(numbers)
        return EachGroupTask(self._column, self._unit, self._by, groups, tuple(queries))


def joined(parts: list[NDArray[Any]], dtype: type) -> NDArray[Any]:
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
