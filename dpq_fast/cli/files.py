"""Files of records: what is public of them, and a table that is read when a release reads it."""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import click
import pyarrow as pa

from dpq_fast import _checks
from dpq_fast.cli.failures import reading, refusals
from dpq_fast.cli.options import Origin
from dpq_fast.data.columns import AnyUnit, takes_numbers
from dpq_fast.data.key_columns import declared_kind
from dpq_fast.data.keys import INTEGERS
from dpq_fast.data.persons import KINDS as IDS
from dpq_fast.data.persons import check_ids
from dpq_fast.data.tables import Table, listed
from dpq_fast.data.tasks import Task
from dpq_fast.data.units import DURATIONS, INSTANTS, Presence, Unit
from dpq_fast.engines.files import (
    BY_NAME,
    SUFFIXES,
    TEXT,
    Batch,
    Fields,
    TextFile,
    data_set,
    form_of,
    found,
    same_names,
)
from dpq_fast.engines.lines import Dialect

DUCKDB = (".duckdb", ".ddb")
STREAM = "standard input"


class Source(ABC):
    """A file of rows and columns, of which no record is read until a release asks for it.

    Attributes
    ----------
    label : str
        What is said of the file.
    names : list of str
        Of its columns. Public.
    """

    label: str
    names: list[str]

    def rows(self) -> int | None:
        """How many rows there are, where the file says it without being read; else None.

        It is asked for where that is public alone: under "swap".
        """
        return None

    @abstractmethod
    def check_records(self, name: str, unit: AnyUnit) -> None:
        """Refuse a column that is declared to hold no numbers, or none of the times of a unit."""

    @abstractmethod
    def check_ids(self, name: str) -> None:
        """Refuse a column that is declared to hold no ids."""

    @abstractmethod
    def kind(self, name: str) -> str | None:
        """What a column of keys declares its keys to be; None if it does not say."""

    @abstractmethod
    def table(self, units: Mapping[str, AnyUnit], keys: Sequence[str], workers: int) -> Table:
        """Some columns, not read. Whatever fails when they are is no more than said to fail.

        Parameters
        ----------
        units : mapping
            What the columns of records are read as, by name.
        keys : sequence of str
        workers : int
        """

    def check_name(self, name: str, option: str = "--column") -> None:
        """Refuse what is not the name of exactly one column."""
        if self.names.count(name) == 1:
            return
        known = listed(self.names, name) or f" of {self.label}"
        raise click.UsageError(f"{option} must name exactly one of the columns{known}; got {name}")


class Guarded:
    """An engine whose failures say no more than that there are some.

    Parameters
    ----------
    table : callable
        What opens the table when it is asked for the first time.
    names : list of str
    label : str
    """

    def __init__(self, table: Callable[[], Table], names: Sequence[str], label: str) -> None:
        self.names = names
        self._open, self._label = table, label
        self._table: Table | None = None

    def answer(self, tasks: Sequence[Task[Any]]) -> list[Any]:
        """As `Engine.answer`."""
        with reading(self._label):
            if self._table is None:
                self._table = self._open()
            return self._table.answer(tasks)


class Pipe(TextFile):
    """Texts that come by standard input, which is read once."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(Path(STREAM), dialect)

    @contextmanager
    def _content(self) -> Iterator[BinaryIO]:
        yield sys.stdin.buffer

    @contextmanager
    def _records(self) -> Iterator[BinaryIO]:
        yield sys.stdin.buffer  # it is behind the names

    def rows(self) -> int | None:
        return None


class CsvFiles(Source):
    """Files of texts, or what comes by a pipe; they are read once, into memory.

    Parameters
    ----------
    label : str
    texts : sequence of TextFile
        With the same names.
    names : list of str
    """

    def __init__(self, label: str, texts: Sequence[TextFile], names: list[str]) -> None:
        self.label, self.names = label, names
        self._texts = texts

    def rows(self) -> int | None:
        with reading(self.label):
            numbers = [each.rows() for each in self._texts]
        return None if None in numbers else sum(map(int, numbers))  # type: ignore[arg-type]

    def check_records(self, name: str, unit: AnyUnit) -> None:
        """Any column: a field that is no number, or no time, is a missing one."""
        if isinstance(unit, Unit) and unit.kind != INSTANTS:
            raise click.UsageError(f"--bounds must be numbers or times for {self.label}")

    def check_ids(self, name: str) -> None:
        """Any column: ids are texts, as they are written."""

    def kind(self, name: str) -> str | None:
        return None  # texts, as they are written

    def table(self, units: Mapping[str, AnyUnit], keys: Sequence[str], workers: int) -> Table:
        def read() -> Table:
            return Table.of(self.read(units, keys, workers), workers=workers)

        return Table(Guarded(read, [*units, *keys], self.label))

    def read(self, units: Mapping[str, AnyUnit], keys: Sequence[str], workers: int = 1) -> pa.Table:
        """Columns of numbers or times, and of keys; null for missing ones. Private."""

        def parsed(batch: Batch) -> list[pa.Array]:
            records = [_as_arrow(batch.column(name), unit) for name, unit in units.items()]
            return records + [batch.column(name).keys() for name in keys]

        types = [_type_of(unit) for unit in units.values()] + [pa.large_string() for _ in keys]
        batches = chain.from_iterable(each.batches() for each in self._texts)
        rows = list(_each(parsed, batches, workers))
        parts = zip(*rows, strict=True) if rows else [[] for _ in types]
        arrays = [pa.chunked_array(list(own), each) for own, each in zip(parts, types, strict=True)]
        return pa.table(arrays, names=[*units, *keys])


def _as_arrow(fields: Fields, unit: AnyUnit) -> pa.Array:
    if isinstance(unit, Unit):
        return pa.array(fields.times(unit.zone is not None)).cast(_type_of(unit))
    return pa.array(fields.records(unit))


def _type_of(unit: AnyUnit) -> pa.DataType:
    if isinstance(unit, Unit):
        return pa.timestamp("us", None if unit.zone is None else "UTC")
    return pa.float64()


def _each(
    function: Callable[[Batch], list[pa.Array]], batches: Iterable[Batch], workers: int
) -> Iterator[list[pa.Array]]:
    """What a function returns for each of some batches, in their order; few of them are ahead."""
    if workers == 1:
        yield from map(function, batches)
        return
    with ThreadPoolExecutor(workers) as pool:
        running: deque[Future[list[pa.Array]]] = deque()
        for batch in batches:
            if len(running) > workers:
                yield running.popleft().result()
            running.append(pool.submit(function, batch))
        for last in running:
            yield last.result()


class ColumnFiles(Source):
    """Files of columns that declare their types, which are read batch by batch, at every pass.

    Parameters
    ----------
    label : str
    paths : sequence of Path
    data_sets : sequence of Dataset
        Of these files.
    names : list of str
    """

    def __init__(
        self, label: str, paths: Sequence[Path], data_sets: Sequence[Any], names: list[str]
    ) -> None:
        self.label, self.names = label, names
        self._paths, self._data_sets = paths, data_sets

    def rows(self) -> int | None:
        with reading(self.label):
            return sum(int(each.count_rows()) for each in self._data_sets)

    def check_records(self, name: str, unit: AnyUnit) -> None:
        for each in self._data_sets:
            declared = each.schema.field(name).type
            if not _is_read(declared, unit):
                _refuse(name, str(declared), unit)

    def check_ids(self, name: str) -> None:
        for each in self._data_sets:
            with _of_ids(name):
                check_ids(each.schema.empty_table().column(name))

    def kind(self, name: str) -> str | None:
        with refusals():
            kinds = {
                # floats have keys that are whole numbers
                INTEGERS
                if pa.types.is_floating(each.schema.field(name).type)
                else declared_kind(each.schema.empty_table().column(name))
                for each in self._data_sets
            }
        kinds -= {None}  # that of a file of nothing but missing ones
        if len(kinds) > 1:
            raise click.UsageError(f"--by must be of one type in all files, got {name}")
        return kinds.pop() if kinds else None

    def table(self, units: Mapping[str, AnyUnit], keys: Sequence[str], workers: int) -> Table:
        def opened() -> Table:
            return Table.of(self._paths, workers=workers)

        return Table(Guarded(opened, self.names, self.label))


def _is_read(declared: pa.DataType, unit: AnyUnit) -> bool:
    """Whether a column of a type holds what a unit says."""
    types = pa.types
    if types.is_null(declared) or isinstance(unit, Presence):  # whose records are only counted
        return True
    numbers = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    if takes_numbers(unit) and any(is_kind(declared) for is_kind in numbers):
        return True
    if unit is None:
        return False
    if types.is_duration(declared):
        return unit.takes(DURATIONS, False)
    zoned = types.is_timestamp(declared) and declared.tz is not None
    return (zoned or types.is_timestamp(declared) or types.is_date(declared)) and unit.takes(
        INSTANTS, zoned
    )


class DuckDBFile(Source):
    """A table of a DuckDB file, which answers in SQL.

    Parameters
    ----------
    path : Path
    table : str or None
        Its name.
    workers : int or None
        Threads; None for all.
    """

    def __init__(self, path: Path, table: str | None, workers: int | None) -> None:
        with refusals():
            duckdb = _checks.extra("duckdb", "a DuckDB file", "duckdb")
        self.label = path.name
        try:
            self._connection = duckdb.connect(path, read_only=True)
            self._connection.execute("SET enable_progress_bar = false").fetchall()
            if workers is not None:
                self._connection.execute(f"SET threads = {workers}").fetchall()
            found = self._connection.execute(
                "SELECT table_schema, table_name, table_type FROM information_schema.tables "
                "WHERE table_catalog = current_database() ORDER BY ALL"
            ).fetchall()
        except duckdb.Error:
            raise click.UsageError(
                f"{path.name} must be a readable DuckDB file that nobody else writes to"
            ) from None
        named = [row for row in found if table in (row[1], f"{row[0]}.{row[1]}")]
        if len(named) != 1:
            known = ", ".join(
                name if schema == "main" else f"{schema}.{name}" for schema, name, _ in found
            )
            got = "" if table is None else f", got {table}"
            raise click.UsageError(
                f"--table must name exactly one of the tables of {path.name}: {known}{got}"
            )
        schema, name, form = named[0]
        self._is_stored = form == "BASE TABLE"
        self._source = f"{_quoted(schema)}.{_quoted(name)}"
        try:
            with refusals():
                self._table = Table.of(self._source, self._connection)
        except duckdb.Error:  # a view of what is gone
            raise click.UsageError(f"--table must be one that can be read, got {table}") from None
        self._engine: Any = self._table._engine
        self.names = self._table.names

    def rows(self) -> int | None:
        if not self._is_stored:  # a view is computed from records, and may fail for one
            return None
        with reading(self.label):
            ((count,),) = self._connection.execute(
                f"SELECT count(*) FROM {self._source}"
            ).fetchall()
        return int(count)

    def check_records(self, name: str, unit: AnyUnit) -> None:
        try:
            self._engine.value(name, unit, self._engine.constants())
        except TypeError as error:
            _refuse(name, re.split(r"[(:]", str(error).rpartition("dtype ")[2])[0], unit)

    def check_ids(self, name: str) -> None:
        with _of_ids(name):
            self._engine.check_ids(name)

    def kind(self, name: str) -> str | None:
        with refusals():
            kind: str | None = self._engine.kind(name)
        return kind or INTEGERS  # of floats

    def table(self, units: Mapping[str, AnyUnit], keys: Sequence[str], workers: int) -> Table:
        return Table(Guarded(lambda: self._table, self.names, self.label))


def _refuse(name: str, declared: str, unit: AnyUnit) -> None:
    words = "numbers" if unit is None else unit.words
    raise click.UsageError(
        f"--column must name a column of {words}, as --bounds are; got {name}, of type {declared}"
    )


@contextmanager
def _of_ids(name: str) -> Iterator[None]:
    """Refuse a column of the ids of persons by the name of the option."""
    try:
        yield
    except TypeError as error:
        declared = str(error).rpartition("dtype ")[2]
        raise click.UsageError(
            f"--privacy-unit must name a column of {IDS}; got {name}, of type {declared}"
        ) from None


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def opened(origin: Origin) -> Source:
    """A file by its suffix, and standard input for ``-``; nothing but names and types is read."""
    path, table, written = origin.file, origin.table, origin.written
    is_duckdb = path.suffix.lower() in DUCKDB
    if is_duckdb:
        threads = None if origin.workers is None else _checks.check_workers(origin.workers)
        source: Source = DuckDBFile(path, table, threads)
    else:
        source = _of_files(path, written)
        if table is not None:
            raise click.UsageError(f"--table must be left out for {source.label}, got {table}")
    if written and not isinstance(source, CsvFiles):
        names = ", ".join(f"--{name.replace('_', '-')}" for name in written)
        raise click.UsageError(f"{names} must be left out for {source.label}, which is no CSV")
    return source


def _of_files(path: Path, written: dict[str, Any]) -> Source:
    delimiter = written.get("delimiter")
    if delimiter == r"\t":
        written = written | {"delimiter": "\t"}
    with refusals():
        if delimiter == "":
            raise ValueError("delimiter must be one character, got ''")
        dialect = BY_NAME._replace(**written)
        if str(path) == "-":
            pipe = Pipe(dialect)
            return CsvFiles(STREAM, [pipe], pipe.names)
        if not path.is_dir() and path.suffix.lower() not in SUFFIXES:
            raise ValueError(
                f"FILE must end in {', '.join(SUFFIXES)} or {DUCKDB[0]}, be a folder of such "
                f"files, or - for a pipe of CSV, got {path.name}"
            )
        paths = found(path)
        form = form_of(paths)
        if form == TEXT:
            texts = [TextFile(each, dialect) for each in paths]
            return CsvFiles(path.name, texts, same_names(paths, [each.names for each in texts]))
        data_sets = [data_set(each, form) for each in paths]
        names = same_names(paths, [each.schema.names for each in data_sets])
        return ColumnFiles(path.name, paths, data_sets, names)
