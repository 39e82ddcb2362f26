"""Tables of ibis, and texts of SQL with its connections: DuckDB, SQLite, PostgreSQL and others.

ibis says what columns there are and what selects them. The statements are sent by the connection
that it holds, with their private numbers apart: ibis itself writes all numbers into its texts. Of
other data bases it reads the columns that are asked for, in batches, which are counted here.
"""

from __future__ import annotations

import datetime
import secrets
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.columns import AnyUnit, refuse, takes_numbers
from dpq_fast.data.keys import BOOLEANS, CLOCKS, DATES, INTEGERS, KINDS, STRINGS, TIMED, ZONED
from dpq_fast.data.persons import KINDS as IDS
from dpq_fast.data.public_keys import Groups
from dpq_fast.data.tables import listed
from dpq_fast.data.tasks import Engine
from dpq_fast.data.units import DURATIONS, EPOCH, INSTANTS, TICKS, Presence
from dpq_fast.engines import duckdb
from dpq_fast.engines.allowed import check_query, is_table_name, parts_of
from dpq_fast.engines.batches import BATCH, Batches
from dpq_fast.engines.requests import Ranges
from dpq_fast.engines.sql import FILLERS, LONG, Constants, PushedDown, encodes, times

# From here on a decimal is nearer to infinity than to a number, and up to here to zero.
TOO_LARGE, TOO_SMALL = str(2**1024 - 2**970), "2.4703282292062327e-324"

# Types of ids.
ID_TYPES = ("integer", "string", "boolean", "uuid", "binary", "date", "timestamp", "time")


def opened(source: Any, connection: Any, workers: int, progress: bool) -> Engine | None:
    """The engine of a table of ibis, or of a text of SQL and a connection."""
    backend = connection
    if connection is None and hasattr(source, "get_backend"):
        backend = source.get_backend()
    elif not isinstance(source, str) or not hasattr(connection, "compile"):
        return None
    if isinstance(source, str):
        if backend.name == "duckdb":
            return duckdb.opened(source, backend.con, workers, progress)
        source = _chosen(source.strip().rstrip(";"), backend)
    text = source if isinstance(source, str) else str(backend.compile(source)).rstrip(";")
    if backend.name == "duckdb":
        return duckdb.of_text(text, backend.con, progress)
    if backend.name == "sqlite":
        schema = (backend.sql(text) if isinstance(source, str) else source).schema()
        return SQLite(backend.con, text, dict(schema.items()), progress)
    if backend.name == "postgres":
        declared = _selected(backend, text) if isinstance(source, str) else source.schema()
        return Postgres(backend.con, text, dict(declared.items()), progress)
    table = backend.sql(text) if isinstance(source, str) else source
    return Batches(
        list(table.columns),
        lambda names: table.select(names).to_pyarrow_batches(chunk_size=BATCH),
        workers,
        progress,
    )


def _chosen(text: str, backend: Any) -> Any:
    """A table by its name, or a query, which is checked."""
    source: Any = text
    if is_table_name(text):
        (*_, name) = parts_of(text)
        known = backend.list_tables()
        if name not in known:
            raise ValueError(
                "source must be a query, or the name of one of the tables of its connection"
                f"{listed(known, name)}, got {text!r}"
            )
        source = backend.table(name)
        text = f"SELECT * FROM {text}"
    check_query(text, backend.name, lambda name: _view(name, backend))
    return source


# How a view is asked for its text, and what stands for its name.
VIEWS = {
    "sqlite": "SELECT sql FROM sqlite_master WHERE type = 'view' AND lower(name) = lower(?)",
    "postgres": (
        "SELECT view_definition FROM information_schema.views WHERE table_name = lower(%s)"
    ),
}


def _view(name: str, backend: Any) -> str | None:
    """The text of a view; None for what is none, or where it is not known."""
    if backend.name not in VIEWS:
        return None
    with closing(backend.con.cursor()) as cursor:
        cursor.execute(VIEWS[backend.name], (name,))
        found = cursor.fetchone()
    return found[0] if found else None


def _selected(backend: Any, text: str) -> dict[str, Any]:
    """The columns that a text of PostgreSQL selects, and their types of ibis; no row is read."""
    types = backend.con.adapters.types
    with backend.con.transaction(), backend.con.cursor() as cursor:
        cursor.execute(f"SELECT * FROM (\n{text}\n) AS dpq_source LIMIT 0")
        found = {
            column.name: (types.get(column.type_code), column.type_code)
            for column in cursor.description
        }
    of_name = backend.compiler.type_mapper.from_string
    return {
        name: of_name(known.name if known and known.oid == code else "unknown")  # else an array
        for name, (known, code) in found.items()
    }


class Connected(PushedDown):
    """An engine of a connection of DB-API.

    Parameters
    ----------
    connection : object
        That of the data base's own library.
    text : str
        A statement that selects the rows.
    declared : dict
        Its columns, and their types of ibis.
    progress : bool
    """

    DOUBLE: str
    # Whether a text may have NUL.
    NUL: bool

    def __init__(
        self, connection: Any, text: str, declared: dict[str, Any], progress: bool
    ) -> None:
        super().__init__(declared, progress)
        self._connection = connection
        self._declared = declared
        self.source = f"(\n{text}\n) AS dpq_source"

    def quoted(self, name: str) -> str:
        doubled = name.replace('"', '""')
        return f'"{doubled}"'

    def value(self, column: str, unit: AnyUnit, constants: Constants) -> str:
        name, declared = self.quoted(column), self._declared[column]
        if takes_numbers(unit):
            numbers = ("floating", "integer", "boolean", "decimal")
            kind = next((kind for kind in numbers if getattr(declared, f"is_{kind}")()), None)
            if kind is not None:
                return self.number(name, kind, constants)
        if declared.is_null():
            return f"CAST(NULL AS {self.DOUBLE})"
        of_times = declared.is_date() or declared.is_timestamp() or declared.is_interval()
        if of_times and unit is not None:
            kind = DURATIONS if declared.is_interval() else INSTANTS
            if unit.takes(kind, getattr(declared, "timezone", None) is not None):
                ticks, tick = self.ticks(name, declared)
                number = times(ticks, tick, unit, constants, self.DOUBLE)
                return self.finite(name, number, declared, constants)
        if isinstance(unit, Presence):
            return f"CASE WHEN {name} IS NOT NULL THEN 0.0 END"
        refuse(f"dtype {declared}", unit, of_times)

    def kind(self, name: str) -> str | None:
        declared = self._declared[name]
        if declared.is_floating():
            return None
        if declared.is_integer():
            return INTEGERS
        if declared.is_string():
            return STRINGS
        if declared.is_boolean():
            return BOOLEANS
        if declared.is_date() or (declared.is_timestamp() and self.DOUBLE != SQLite.DOUBLE):
            return DATES if getattr(declared, "timezone", None) is None else ZONED
        if declared.is_time() and self.DOUBLE != SQLite.DOUBLE:
            return CLOCKS
        raise TypeError(f"by must hold {KINDS}, got dtype {declared}")

    def check_ids(self, name: str) -> None:
        declared = self._declared[name]
        if not any(getattr(declared, f"is_{kind}")() for kind in ID_TYPES):
            raise TypeError(f"privacy_unit must hold {IDS}, got dtype {declared}")

    def among(
        self, by: tuple[str, ...], groups: Groups, constants: Constants, is_public: bool
    ) -> str:
        rows = self.rows_of(by, groups)
        if not rows:
            return " WHERE 1 = 0"
        found = ", ".join(
            f"({', '.join(self.key(item, constants) for item in row)})" for row in rows
        )
        compared = ", ".join(self.told_apart(by, groups, constants))
        return f" WHERE ({compared}) IN (VALUES {found})"

    def filler(self, name: str, constants: Constants) -> str:
        return self.key(FILLERS.get(self.kind(name), 0), constants)

    def public(self, key: Any, kind: str | None, name: str) -> Any:
        if kind is None:
            return float(key)
        if kind in TIMED:
            return self.time(key.nanoseconds, name)
        if kind == STRINGS:
            return key if (self.NUL or "\0" not in key) and encodes(key) else None
        return key if kind == BOOLEANS or key < 2**63 else None  # they have signed integers

    def fetch(
        self,
        text: str,
        constants: Constants,
        ranges: Ranges | None,
        groups: Groups | None,
        by: tuple[str, ...],
    ) -> list[Any]:
        names, rows = self.run(text, constants)
        columns: list[Any] = [list(column) for column in zip(*rows, strict=True)]
        columns = columns or [[] for _ in names]
        width = len(by)
        own = [self.keys_of(columns[i], name) for i, name in enumerate(by)]
        return own + [
            _array(column, name)
            for column, name in zip(columns[width:], names[width:], strict=True)
        ]

    @abstractmethod
    def keys_of(self, column: list[Any], name: str) -> Any:
        """Keys as the data base returns them, as `Groups.places` takes them."""

    @abstractmethod
    def number(self, name: str, kind: str, constants: Constants) -> str:
        """A column of numbers as float64."""

    @abstractmethod
    def ticks(self, name: str, declared: Any) -> tuple[str, int]:
        """Times or durations in whole ticks, and the nanoseconds of one."""

    def finite(self, name: str, number: str, declared: Any, constants: Constants) -> str:
        """The number of a time, where there are infinite ones, too."""
        return number

    @abstractmethod
    def time(self, nanoseconds: int, name: str) -> Any:
        """A public key of times, since 1970, as a column is compared with it; None as above."""

    @abstractmethod
    def key(self, key: Any, constants: Constants) -> str:
        """A public key."""

    @abstractmethod
    def run(self, text: str, constants: Any) -> tuple[list[str], Sequence[Any]]:
        """The names of what a statement returns, and its rows."""


# SQLite


class Bound(Constants):
    """Numbers and keys that are all sent apart from the text.

    Attributes
    ----------
    values : dict
        By their names.
    """

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, Any] = {}
        self._names: dict[Any, str] = {}

    def public(self, value: Any) -> str:
        found = self._names.setdefault((type(value), repr(value)), f"p{len(self.values)}")
        self.values[found] = value
        return f":{found}"

    def hidden(self, value: float) -> str:
        self.private.append(value)
        return self.public(value)

    def key(self, key: Any) -> str:
        """A key, by a name of its own: a text does not tell which of them are alike."""
        name = f"p{len(self.values)}"
        self.values[name] = key
        return f":{name}"


class SQLite(Connected):
    """An engine of SQLite, whose columns may hold anything: what is no number is missing."""

    DOUBLE = "REAL"
    NUL = True

    def __init__(
        self, connection: Any, text: str, declared: dict[str, Any], progress: bool
    ) -> None:
        super().__init__(connection, text, declared, progress)
        ((self._encoding,),) = connection.execute("PRAGMA encoding").fetchall()

    def constants(self) -> Bound:
        return Bound()

    def returned(self, name: str) -> str:
        quoted, kind = self.quoted(name), self.kind(name)
        if kind in (INTEGERS, None):  # either may be in a column of the other
            return f"CASE WHEN typeof({quoted}) IN ('integer', 'real') THEN {quoted} END"
        if kind == BOOLEANS:
            return f"CASE WHEN {quoted} IN (0, 1) THEN CAST({quoted} AS INTEGER) END"
        # what is no text in the encoding would be an error
        return f"CASE WHEN typeof({quoted}) = 'text' THEN CAST({quoted} AS BLOB) END"

    def gone(self, name: str) -> str:
        return f"{self.quoted(name)} IS NULL"  # a text among numbers is something

    def number(self, name: str, kind: str, constants: Constants) -> str:
        return f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN CAST({name} AS REAL) END"

    def ticks(self, name: str, declared: Any) -> tuple[str, int]:
        # not the time that is now, and no number of days
        digits = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*"
        text = f"CASE WHEN {name} GLOB '{digits}' THEN substr({name}, 1, 19) END"
        seconds = f"CAST(strftime('%s', {text}) AS INTEGER)"
        if declared.is_date():
            return f"({seconds} * 1000)", TICKS["ms"]
        after = f"CASE WHEN substr({name}, 20, 1) = '.' THEN substr({name}, 21, 6) ELSE '' END"
        micros = f"CAST(substr(({after}) || '000000', 1, 6) AS INTEGER)"
        return f"({seconds} * 1000000 + {micros})", TICKS["us"]

    def present(self, value: str, x: str) -> str:
        return f"CASE WHEN {x} IS NOT NULL THEN {value} END"

    def whole(self, value: str) -> str:
        return f"CAST({value} AS INTEGER)"

    def integer(self, value: str) -> str:
        return f"CAST({value} AS INTEGER)"

    def time(self, nanoseconds: int, name: str) -> str | None:
        days, within = divmod(nanoseconds, TICKS["D"])
        try:
            return None if within else (EPOCH.date() + datetime.timedelta(days)).isoformat()
        except OverflowError:  # it has the years of Python
            return None

    def public(self, key: Any, kind: str | None, name: str) -> Any:
        if kind in (INTEGERS, None):  # compared exactly, whichever a column has
            return key if key < 2**63 else float(key)
        return super().public(key, kind, name)

    def key(self, key: Any, constants: Any) -> str:
        name: str = constants.key(key)
        return name

    def keys_of(self, column: list[Any], name: str) -> list[Any]:
        kind = self.kind(name)
        if kind in (INTEGERS, BOOLEANS, None):
            return column
        texts = [_decoded(item, self._encoding) for item in column]
        return texts if kind == STRINGS else list(map(_day, texts))

    def run(self, text: str, constants: Bound) -> tuple[list[str], Sequence[Any]]:
        cursor = self._connection.execute(text, constants.values)
        try:
            return [column[0] for column in cursor.description], cursor.fetchall()
        finally:
            cursor.close()


# PostgreSQL


class Copied(Constants):
    """Public numbers as they are; private ones are copied into tables, which no log shows.

    Attributes
    ----------
    keys : list of tuple
        Private ones, too.
    types : list of str
        Those of their columns.
    """

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[tuple[Any, ...]] = []
        self.types: list[str] = []

    def public(self, value: float) -> str:
        return f"CAST('{float(value)!r}' AS DOUBLE PRECISION)"

    def hidden(self, value: float) -> str:
        self.private.append(value)
        return f"p.v[{len(self.private)}]"


class Postgres(Connected):
    """An engine of PostgreSQL, which raises where a number is too large, or too small."""

    DOUBLE = "DOUBLE PRECISION"
    NUL = False

    def __init__(
        self, connection: Any, text: str, declared: dict[str, Any], progress: bool
    ) -> None:
        super().__init__(connection, text, declared, progress)
        self._numbers, self._keys = (f"dpq_{secrets.token_hex(16)}" for _ in range(2))

    def constants(self) -> Copied:
        return Copied()

    def among(self, by: tuple[str, ...], groups: Groups, constants: Any, is_public: bool) -> str:
        if is_public:
            return super().among(by, groups, constants, is_public)
        types = {STRINGS: "TEXT", BOOLEANS: "BOOLEAN", None: self.DOUBLE}
        constants.keys = self.rows_of(by, groups)
        constants.types = [
            "INTEGER" if name is None else types.get(self.kind(name), "BIGINT")
            for name in self.key_columns(by, groups)
        ]
        names = ", ".join(f"k{i}" for i in range(len(constants.types)))
        columns = ", ".join(self.told_apart(by, groups, constants))
        return f" WHERE ({columns}) IN (SELECT {names} FROM {self._keys})"

    def compared(self, name: str) -> str:
        return self.returned(name)

    def time(self, nanoseconds: int, name: str) -> int | None:
        ticks, rest = divmod(nanoseconds, TICKS["D" if self._declared[name].is_date() else "us"])
        return ticks if rest == 0 and abs(ticks) <= LONG else None

    def beside(self, constants: Constants) -> str:
        if not constants.private:
            return ""
        return f", (SELECT array_agg(v ORDER BY i) AS v FROM {self._numbers}) AS p"

    def number(self, name: str, kind: str, constants: Constants) -> str:
        if kind == "boolean":
            return f"CAST(CAST({name} AS INTEGER) AS DOUBLE PRECISION)"
        if kind != "decimal":
            return f"CAST({name} AS DOUBLE PRECISION)"
        above, below = constants.public(np.inf), constants.public(-np.inf)
        return (
            f"CASE WHEN {name} = 'NaN' THEN NULL WHEN {name} >= {TOO_LARGE} THEN {above} "
            f"WHEN {name} <= -{TOO_LARGE} THEN {below} WHEN abs({name}) <= {TOO_SMALL} THEN 0.0 "
            f"ELSE CAST({name} AS DOUBLE PRECISION) END"
        )

    def returned(self, name: str) -> str:
        quoted, declared, kind = self.quoted(name), self._declared[name], self.kind(name)
        if kind is None:
            return f"NULLIF(CAST({quoted} AS {self.DOUBLE}), 'NaN')"
        if kind not in TIMED:
            return quoted
        if kind == CLOCKS:
            return f"CAST({self.ticks(quoted, declared)[0]} AS BIGINT)"
        if declared.is_date():
            number = f"{quoted} - DATE '1970-01-01'"
        else:
            ticks, _ = self.ticks(quoted, declared)
            number = f"CASE WHEN {ticks} <= {LONG} THEN CAST({ticks} AS BIGINT) END"
        return f"CASE WHEN isfinite({quoted}) THEN {number} END"

    def keys_of(self, column: list[Any], name: str) -> Any:
        """Times that Python has not, too, but for infinite ones."""
        kind = self.kind(name)
        if kind not in TIMED:
            return column
        import pyarrow as pa

        if self._declared[name].is_date():
            return pa.array(column, pa.date32())
        if kind == CLOCKS:
            return pa.array(column, pa.time64("us"))
        return pa.array(column, pa.timestamp("us", "UTC" if kind == ZONED else None))

    def ticks(self, name: str, declared: Any) -> tuple[str, int]:
        if declared.is_date():
            return f"(CAST({name} - DATE '1970-01-01' AS BIGINT) * 86400000)", TICKS["ms"]
        return f"(EXTRACT(EPOCH FROM {name}) * 1000000)", TICKS["us"]

    def finite(self, name: str, number: str, declared: Any, constants: Constants) -> str:
        if declared.is_interval():
            return number
        above, below = constants.public(np.inf), constants.public(-np.inf)
        return (
            f"CASE WHEN isfinite({name}) THEN {number} WHEN {name} > DATE '1970-01-01' "
            f"THEN {above} WHEN {name} < DATE '1970-01-01' THEN {below} END"
        )

    def present(self, value: str, x: str) -> str:
        return f"CASE WHEN {x} <> 'NaN' THEN {value} END"

    def whole(self, value: str) -> str:
        return f"CAST(floor({value}) AS INTEGER)"

    def integer(self, value: str) -> str:
        return f"CAST({value} AS BIGINT)"

    def key(self, key: Any, constants: Constants) -> str:
        if isinstance(key, str):
            doubled = key.replace("'", "''").replace("\\", "\\\\")
            return f"CAST(E'{doubled}' AS TEXT)"
        if isinstance(key, float):
            return constants.public(key)
        return str(key).upper()

    def run(self, text: str, constants: Copied) -> tuple[list[str], Sequence[Any]]:
        tables = []
        if constants.private:
            numbers = list(enumerate(constants.private))
            tables.append((self._numbers, "i INTEGER, v DOUBLE PRECISION", numbers))
        if constants.types:
            columns = ", ".join(f"k{i} {name}" for i, name in enumerate(constants.types))
            tables.append((self._keys, columns, constants.keys))
        with self._connection.transaction(), self._connection.cursor() as cursor:
            for name, columns, rows in tables:
                cursor.execute(f"CREATE TEMPORARY TABLE {name} ({columns}) ON COMMIT DROP")
                with cursor.copy(f"COPY {name} FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)
            cursor.execute(text)
            found = [column.name for column in cursor.description], cursor.fetchall()
            for name, _, _ in tables:
                cursor.execute(f"DROP TABLE {name}")
        return found


def _decoded(text: bytes | None, encoding: str) -> str | None:
    """A text of a data base, None if it is none."""
    try:
        return None if text is None else text.decode(encoding)
    except UnicodeError:
        return None


def _day(text: str | None) -> datetime.date | None:
    """A date as SQLite writes it, None for any other text."""
    try:
        day = None if text is None else datetime.date.fromisoformat(text)
    except ValueError:
        return None
    return day if day is not None and day.isoformat() == text else None


def _array(column: list[Any], name: str) -> NDArray[Any]:
    """Returned numbers, by what they are called in a statement: NULL is NaN, but for sums."""
    if name == "s":
        return np.array(column, dtype=object)
    return np.array(column, dtype=np.int64 if name in ("n", "m", "p") else np.float64)
