"""Files of records: what is public of them, and a table that is read when a release reads it."""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO

import click
import pyarrow as pa
import pyarrow.parquet

from dpq_fast import _checks
from dpq_fast.cli import lines
from dpq_fast.cli.failures import reading, refusals
from dpq_fast.data.keys import INTEGERS, declared_kind
from dpq_fast.data.tables import Table, Task
from dpq_fast.data.units import Presence

CSV, PARQUET, DUCKDB = (".csv",), (".parquet", ".pq"), (".duckdb", ".ddb")
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
    def check_numbers(self, name: str, may_be_times: bool = False) -> None:
        """Refuse a column that is declared to hold no numbers (nor times)."""

    @abstractmethod
    def kind(self, name: str) -> str | None:
        """What a column of keys declares its keys to be; None if it does not say."""

    @abstractmethod
    def table(self, numbers: Sequence[str], keys: Sequence[str]) -> Table:
        """These columns, not read. Whatever fails when they are is no more than said to fail."""

    def check_name(self, name: str, option: str = "--column") -> None:
        """Refuse what is not the name of exactly one column."""
        if self.names.count(name) == 1:
            return
        listed = f"of {self.label}"
        if all(_is_name(each) for each in self.names):  # else the first line may be a record
            listed = ", ".join(self.names)
        raise click.UsageError(
            f"{option} must name exactly one of the columns {listed}; got {name}"
        )


def _is_name(text: str) -> bool:
    """Whether a text may well be a name: it is neither empty nor a number."""
    with suppress(ValueError):
        float(text)
        return False
    return bool(text.strip())


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


class CsvFile(Source):
    """A CSV file, or what comes by a pipe; it is read once, into memory.

    Parameters
    ----------
    path : Path or None
        None for standard input, which is read once.
    """

    def __init__(self, path: Path | None) -> None:
        self.label = STREAM if path is None else path.name
        self._path = path
        if path is not None and not path.is_file():
            raise click.UsageError(f"FILE must be a file, or - for a pipe, got {path}")
        with self._opened() as content:
            self.names, self._more = lines.header(content)
            self._start = 0 if path is None else content.tell()
        if not self.names:
            raise click.UsageError(
                f"{self.label} must begin with a line of column names in UTF-8, ended by \\n or "
                "\\r\\n"
            )

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        """The content; of a pipe, what is left of it."""
        if self._path is None:
            return nullcontext(sys.stdin.buffer)
        return self._path.open("rb")

    def rows(self) -> int | None:
        if self._path is None:
            return None
        if not self._more:
            return 0
        with reading(self.label), self._opened() as content:
            content.seek(self._start)
            return lines.line_feeds(content) + 1

    def check_numbers(self, name: str, may_be_times: bool = False) -> None:
        """Any column: a field that is no number is a missing one."""

    def kind(self, name: str) -> str | None:
        return None  # texts, as they are written

    def table(self, numbers: Sequence[str], keys: Sequence[str]) -> Table:
        names = [*numbers, *keys]
        return Table(Guarded(lambda: Table.of(self.read(numbers, keys)), names, self.label))

    def read(self, numbers: Sequence[str], keys: Sequence[str]) -> pa.Table:
        """Columns of numbers, NaN for missing ones, and of keys, null for missing ones. Private."""
        columns: dict[str, list[Any]] = {name: [] for name in [*numbers, *keys]}
        with self._opened() as content:
            if self._path is not None:
                content.seek(self._start)
            for block in lines.blocks(content) if self._more else ():
                found = lines.Lines(block, len(self.names))
                for name in numbers:
                    columns[name].append(pa.array(found.numbers(self.names.index(name))))
                for name in keys:
                    columns[name].append(found.texts(self.names.index(name)))
        types = [pa.float64() for _ in numbers] + [pa.large_string() for _ in keys]
        arrays = [
            pa.chunked_array(parts, each)
            for parts, each in zip(columns.values(), types, strict=True)
        ]
        return pa.table(arrays, names=list(columns))


class ParquetFile(Source):
    """A Parquet file, which is read batch by batch, at every pass.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.label = path.name
        self._path = path
        try:
            with pa.parquet.ParquetFile(path) as parquet:
                self._schema, self._rows = parquet.schema_arrow, parquet.metadata.num_rows
        except (pa.ArrowException, OSError):
            raise click.UsageError(f"{path.name} must be a readable Parquet file") from None
        self.names = self._schema.names

    def rows(self) -> int | None:
        count: int = self._rows
        return count

    def check_numbers(self, name: str, may_be_times: bool = False) -> None:
        declared, types = self._schema.field(name).type, pa.types
        known = [types.is_integer, types.is_floating, types.is_decimal, types.is_boolean]
        known.append(types.is_null)
        if may_be_times:
            known += [types.is_timestamp, types.is_date, types.is_duration]
        if not any(is_kind(declared) for is_kind in known):
            _refuse(name, str(declared))

    def kind(self, name: str) -> str | None:
        with refusals():
            kind = declared_kind(self._schema.empty_table().column(name))
            floats = pa.types.is_floating(self._schema.field(name).type)
            return INTEGERS if floats else kind  # whose keys are whole numbers

    def table(self, numbers: Sequence[str], keys: Sequence[str]) -> Table:
        return Table(Guarded(lambda: Table.of(self._path), self.names, self.label))


class DuckDBFile(Source):
    """A table of a DuckDB file, which answers in SQL.

    Parameters
    ----------
    path : Path
    table : str or None
        Its name.
    """

    def __init__(self, path: Path, table: str | None) -> None:
        with refusals():
            duckdb = _checks.extra("duckdb", "a DuckDB file", "duckdb")
        self.label = path.name
        try:
            self._connection = duckdb.connect(path, read_only=True)
            self._connection.execute("SET enable_progress_bar = false").fetchall()
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
            self._table = Table.of(f"SELECT * FROM {self._source}", self._connection)
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

    def check_numbers(self, name: str, may_be_times: bool = False) -> None:
        try:
            self._engine.value(name, Presence() if may_be_times else None, self._engine.constants())
        except TypeError as error:
            _refuse(name, re.split(r"[(:]", str(error).rpartition("dtype ")[2])[0])

    def kind(self, name: str) -> str | None:
        with refusals():
            kind: str = self._engine.kind(name)
        return kind

    def table(self, numbers: Sequence[str], keys: Sequence[str]) -> Table:
        return Table(Guarded(lambda: self._table, self.names, self.label))


def _refuse(name: str, declared: str) -> None:
    raise click.UsageError(
        f"--column must name a column of numbers; got {name}, of type {declared}"
    )


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def opened(path: Path, table: str | None = None) -> Source:
    """A file by its suffix, and standard input for ``-``; nothing but names and types is read."""
    if str(path) == "-":
        source: Source = CsvFile(None)
    else:
        suffix = path.suffix.lower()
        if suffix in DUCKDB:
            return DuckDBFile(path, table)
        if suffix not in CSV + PARQUET:
            raise click.UsageError(
                f"FILE must end in .csv, .parquet, .pq or .duckdb, or be - for a pipe, "
                f"got {path.name}"
            )
        source = CsvFile(path) if suffix in CSV else ParquetFile(path)
    if table is not None:
        raise click.UsageError(f"--table must be left out for {source.label}, got {table}")
    return source
