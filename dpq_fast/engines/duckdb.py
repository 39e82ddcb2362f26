"""Tables in DuckDB: relations, and texts of SQL with a connection."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast.data.columns import AnyUnit, refuse, takes_numbers
from dpq_fast.data.keys import BOOLEANS, CLOCKS, DATES, INTEGERS, KINDS, STRINGS, TIMED, ZONED
from dpq_fast.data.persons import KINDS as IDS
from dpq_fast.data.public_keys import Groups
from dpq_fast.data.tables import listed
from dpq_fast.data.units import DURATIONS, INSTANTS, TICKS, Presence
from dpq_fast.engines.allowed import check_query, is_table_name, parts_of
from dpq_fast.engines.batches import BATCH
from dpq_fast.engines.requests import Grid, Ranges
from dpq_fast.engines.sql import FILLERS, Constants, PushedDown, encodes, times

# Declared types: those that are float64 by a cast, and those whose text is.
FLOATS = {"DOUBLE", "FLOAT"}
NUMBERS = {*FLOATS, "BOOLEAN", "NULL"}
WHOLE = {f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG")}
WHOLE |= {"INTEGER", "UINTEGER"}
LONG_WHOLE = {"HUGEINT", "UHUGEINT"}
# Digits of decimals that float64 holds.
DIGITS = 15
# The kind of times, whether they have a zone, what gives their ticks, and nanoseconds of one. What
# is asked for in other steps than a type's own is an error where it is too far away.
TIMES = {
    "DATE": (INSTANTS, False, "epoch_ms({})", TICKS["ms"]),
    "TIMESTAMP_S": (INSTANTS, False, "epoch_us({})", TICKS["us"]),
    "TIMESTAMP_MS": (INSTANTS, False, "epoch_us({})", TICKS["us"]),
    "TIMESTAMP": (INSTANTS, False, "epoch_us({})", TICKS["us"]),
    "TIMESTAMP_NS": (INSTANTS, False, "epoch_ns({})", TICKS["ns"]),
    "TIMESTAMP WITH TIME ZONE": (INSTANTS, True, "epoch_us({})", TICKS["us"]),
    "INTERVAL": (
        DURATIONS,
        False,
        "((((CAST(datepart('year', {0}) AS HUGEINT) * 12 + datepart('month', {0})) * 30 "
        "+ datepart('day', {0})) * 24 + datepart('hour', {0})) * 60 + datepart('minute', {0})) "
        "* 60000000 + datepart('microsecond', {0})",
        TICKS["us"],
    ),
}
# Types whose times are taken as `TIMESTAMP`: NULL, and so infinite, beyond 290,000 years.
FAR = {"TIMESTAMP_S", "TIMESTAMP_MS"}
# Steps of times that are keys, which are compared in their own type.
STEPS = {
    "DATE": "D",
    "TIMESTAMP_S": "s",
    "TIMESTAMP_MS": "ms",
    "TIMESTAMP": "us",
    "TIMESTAMP_NS": "ns",
    "TIMESTAMP WITH TIME ZONE": "us",
    "TIME": "us",
}
# Beginnings of types that hold no ids; lists end in a bracket.
NO_IDS = (*FLOATS, "DECIMAL", "STRUCT", "MAP", "UNION", "VARIANT")
# Parts of the grid by which records are joined with ranges, and ranges in a part that are few.
GRID, CROWDED = 2**14, 8
# Ranges that are told apart without a join, at most.
LADDER = 2**9


def opened(source: Any, connection: Any, workers: int, progress: bool) -> DuckDB | None:
    """The engine of a relation, or of a text of SQL and its connection."""
    if connection is None:
        known = hasattr(source, "query") and hasattr(source, "types")
        return DuckDB(source, None, progress=progress) if known else None
    if not isinstance(source, str) or not hasattr(connection, "sql"):
        return None
    text = source.strip().rstrip(";")
    if is_table_name(text):
        text = f"SELECT * FROM {_named(text, connection)}"
    check_query(text, "duckdb", lambda name: _view(name, connection))
    return of_text(text, connection, progress)


def of_text(text: str, connection: Any, progress: bool) -> DuckDB:
    """The engine of a query."""
    return DuckDB(connection.sql(f"SELECT * FROM (\n{text}\n)"), connection, text, progress)


def _named(name: str, connection: Any) -> str:
    """A table of the connection, in full: a variable of Python of that name is none."""
    found = connection.sql(
        "SELECT table_catalog, table_schema, table_name, table_catalog = current_database() "
        "AND table_schema = current_schema() FROM information_schema.tables ORDER BY ALL"
    ).fetchall()
    wanted = [part.lower() for part in parts_of(name)]
    matching = [row for row in found if [p.lower() for p in row[:3]][-len(wanted) :] == wanted]
    chosen = [row for row in matching if row[3]] or matching
    if len(chosen) != 1:
        known = listed([row[2] if row[3] else f"{row[1]}.{row[2]}" for row in found], name)
        raise ValueError(
            f"source must be a query, or the name of one of the tables of its connection{known}, "
            f"got {name!r}"
        )
    return ".".join('"' + part.replace('"', '""') + '"' for part in chosen[0][:3])


def _view(name: str, connection: Any) -> str | None:
    """The text of a view; None for what is none."""
    quoted = name.replace("'", "''")
    found = connection.sql(
        "SELECT sql FROM duckdb_views() WHERE NOT internal "
        f"AND lower(view_name) = lower('{quoted}')"
    ).fetchall()
    return found[0][0] if found else None


def as_table(found: Any) -> Any:
    """What a statement returns, as a table of Arrow."""
    return found.to_arrow_table()


class Literals(Constants):
    """Public numbers as they are; private ones are in a row of a table."""

    def public(self, value: float) -> str:
        return f"CAST('{float(value)!r}' AS DOUBLE)"

    def hidden(self, value: float) -> str:
        self.private.append(value)
        return f"p{len(self.private) - 1}"


class DuckDB(PushedDown):
    """An engine of a relation, which stays on its connection.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
        The rows.
    connection : duckdb.DuckDBPyConnection or None
        That of `text`, where there is one.
    text : str
        Of SQL.
    progress : bool
    """

    MOST = 2**16

    def __init__(
        self, relation: Any, connection: Any, text: str = "", progress: bool = False
    ) -> None:
        super().__init__(relation.columns, progress)
        self._relation = relation
        self._connection = connection
        self._declared = dict(zip(self.names, map(str, relation.types), strict=True))
        name = f"dpq_{secrets.token_hex(16)}"
        self.source = name if connection is None else f"(\n{text}\n) AS {name}"
        # found by these names, in a frame of Python, where there is no connection
        self._prefix = "dpq" if connection is None else name
        self._lock = threading.Lock()  # of those names

    # Words

    def constants(self) -> Literals:
        return Literals()

    def quoted(self, name: str) -> str:
        doubled = name.replace('"', '""')
        return f'"{doubled}"'

    def value(self, column: str, unit: AnyUnit, constants: Constants) -> str:
        name, declared = self.quoted(column), self._declared[column].strip('"')
        base = declared.partition("(")[0]
        if takes_numbers(unit):
            if base in FLOATS:
                return self._without_nan(name if base == "DOUBLE" else f"CAST({name} AS DOUBLE)")
            if base in NUMBERS or base in WHOLE:
                return f"CAST({name} AS DOUBLE)"
            if base in LONG_WHOLE or base == "DECIMAL":
                digits = int(declared[8:].partition(",")[0]) if base == "DECIMAL" else DIGITS + 1
                exact = name if digits <= DIGITS else f"CAST({name} AS VARCHAR)"
                return f"CAST({exact} AS DOUBLE)"
        if base == "NULL":
            return "CAST(NULL AS DOUBLE)"
        if base in TIMES and unit is not None:
            kind, zoned, ticks, tick = TIMES[base]
            if unit.takes(kind, zoned):
                moment = f"try_cast({name} AS TIMESTAMP)" if base in FAR else name
                number = times(ticks.format(moment), tick, unit, constants, "DOUBLE")
                if kind == DURATIONS:
                    return number
                below, above = (constants.public(end) for end in (-np.inf, np.inf))
                start = f"CAST('1970-01-01' AS {base})"  # else the column would be cast
                return (
                    f"CASE WHEN isfinite({moment}) THEN {number} "
                    f"WHEN {name} < {start} THEN {below} WHEN {name} > {start} THEN {above} END"
                )
        if isinstance(unit, Presence):
            return f"CASE WHEN {name} IS NOT NULL THEN 0.0 END"
        refuse(f"dtype {declared}", unit, base in TIMES)

    def _without_nan(self, x: str) -> str:
        """A number, NULL where it is NaN.

        Statistics of Parquet files leave NaN out, and DuckDB takes them for the range of all
        values: `isnan(x)` is false by them, `x <= 5` true, a row group without a value above 5 is
        not read for `x > 5`. No rule of its optimizer may decide about a sum with a number that no
        statistics know, however much it learns about functions. What is left of the column has the
        range that the statistics promise, and NULL, which they are told of.
        """
        return f"CASE WHEN NOT isnan({x} + (SELECT zero FROM {self._prefix}_numbers)) THEN {x} END"

    def present(self, value: str, x: str) -> str:
        return f"CASE WHEN {x} IS NOT NULL THEN {value} END"

    def whole(self, value: str) -> str:
        return f"try_cast(floor({value}) AS INTEGER)"  # what fails to be cast is in no message

    def integer(self, value: str) -> str:
        return f"try_cast({value} AS BIGINT)"

    def among(
        self, by: tuple[str, ...], groups: Groups, constants: Constants, is_public: bool
    ) -> str:
        columns = self.told_apart(by, groups, constants)
        names = ", ".join(f"k{i}" for i in range(len(columns)))
        return f" WHERE ({', '.join(columns)}) IN (SELECT {names} FROM {self._prefix}_keys)"

    def returned(self, name: str) -> str:
        quoted = self.quoted(name)
        if self.kind(name) is None:
            return self._without_nan(f"CAST({quoted} AS DOUBLE)")
        return quoted

    def compared(self, name: str) -> str:
        returned = self.returned(name)
        return f"CAST({returned} AS VARCHAR)" if "ENUM(" in self._declared[name] else returned

    def filler(self, name: str, constants: Constants) -> str:
        kind = self.kind(name)
        if kind in TIMED:
            first = "00:00" if kind == CLOCKS else "epoch"
            return f"CAST('{first}' AS {self._declared[name]})"
        return repr(FILLERS.get(kind, 0))  # which are the same in SQL

    def public(self, key: Any, kind: str | None, name: str) -> Any:
        if kind is None:
            return float(key)
        if kind in TIMED:
            step = STEPS[self._declared[name]]
            ticks, rest = divmod(key.nanoseconds, TICKS[step])
            return ticks if rest == 0 and abs(ticks) < (2**31 if step == "D" else 2**63) else None
        if kind == STRINGS:
            return key if encodes(key) else None
        return key

    def kind(self, name: str) -> str | None:
        declared = self._declared[name].strip('"')
        if declared in FLOATS:
            return None
        if declared in WHOLE:
            return INTEGERS
        if declared == "VARCHAR" or declared.startswith("ENUM("):
            return STRINGS
        if declared == "BOOLEAN":
            return BOOLEANS
        if declared == "TIME":
            return CLOCKS
        if declared in TIMES and TIMES[declared][0] == INSTANTS:
            return ZONED if TIMES[declared][1] else DATES
        raise TypeError(f"by must hold {KINDS}, got dtype {declared}")

    def check_ids(self, name: str) -> None:
        declared = self._declared[name].strip('"')
        if declared.startswith(NO_IDS) or declared.endswith("]"):
            raise TypeError(f"privacy_unit must hold {IDS}, got dtype {declared}")

    def beside(self, constants: Constants) -> str:
        return f", {self._prefix}_numbers" if constants.private else ""

    def located(self, rows: str, keys_of: str, ranges: Ranges, constants: Constants) -> str:
        """As of all data bases, or by a join on the part of a grid, which is faster."""
        if ranges.lo.tolist() == [-np.inf] and ranges.hi.tolist() == [np.inf]:
            return super().located(rows, keys_of, ranges, constants)
        lo, hi = (np.clip(each, ranges.low, ranges.high) for each in (ranges.lo, ranges.hi))
        grids = [Grid(ranges.low, ranges.high, GRID, wide=ranges.wide)]
        if lo.size:
            low, high, least = float(lo[0]), float(hi[-1]), float((hi - lo).min())
            grids.append(Grid(low, high, GRID, wide=ranges.wide))
            if not ranges.wide and least > 0.0 and np.isfinite(high - low + least):
                grids.append(Grid(low, high, GRID, least))
        crowds = [_crowd(grid, lo, hi) for grid in grids]
        best = next((i for i, crowd in enumerate(crowds) if crowd <= CROWDED), None)
        if best is None:
            if lo.size <= LADDER:
                return super().located(rows, keys_of, ranges, constants)
            best = int(np.argmin(crowds))
        is_public = best == 0 and ranges.is_public
        number = constants.public if is_public else constants.hidden
        place = self.part("x", grids[best], number)
        first, last = (self.part(end, grids[best], number) for end in ("lo", "hi"))
        beside = self.beside(constants)
        cell = "cell"
        if ranges.parts > 1:
            at = "x * 0.5 - g_low * 0.5" if ranges.wide else "x - g_low"
            at = f"least(greatest(({at}) * g_scale, 0.0), {ranges.parts})"
            cell = f"cell + {self.whole(at)}"
        return (
            f"SELECT {keys_of}x, {cell} AS cell "
            f"FROM (SELECT {keys_of}x, {self.present(place, 'x')} AS b FROM {rows}{beside}) "
            f"JOIN (SELECT *, unnest(range({first}, {last} + 1)) AS b "
            f"FROM {self._prefix}_ranges{beside}) USING (b) "
            # of an expression no filter is made that a plan would show
            "WHERE x + 0.0 >= lo AND x + 0.0 <= hi"
        )

    # Statements

    def fetch(
        self,
        text: str,
        constants: Constants,
        ranges: Ranges | None,
        groups: Groups | None,
        by: tuple[str, ...],
    ) -> list[Any]:
        pa = _checks.extra("pyarrow", "a table in DuckDB", "duckdb")
        numbers = {f"p{i}": [value] for i, value in enumerate(constants.private)}
        tables = {"numbers": pa.table({"zero": [0.0], **numbers})}
        if ranges is not None:
            tables["ranges"] = pa.table(_columns_of(ranges))
        if groups is not None:
            tables["keys"] = pa.table(self._keys(groups, by))
        with self._lock:
            found = self._asked(text, tables)
        columns = [found.column(i) for i in range(found.num_columns)]
        width = len(by)
        return columns[:width] + [_array(column) for column in columns[width:]]

    def stepped(
        self,
        text: str,
        constants: Constants,
        by: tuple[str, ...],
        step: Callable[[list[Any]], None],
    ) -> None:
        pa = _checks.extra("pyarrow", "a table in DuckDB", "duckdb")
        width = len(by)

        def take(found: Any) -> None:
            for batch in found.to_arrow_reader(BATCH):
                step(batch.columns[:width] + [_array(own) for own in batch.columns[width:]])

        with self._lock:
            self._asked(text, {"numbers": pa.table({"zero": [0.0]})}, take)

    def _asked(
        self, text: str, tables: dict[str, Any], take: Callable[[Any], Any] = as_table
    ) -> Any:
        """What is taken of the answer to a statement, and nothing else is there afterwards."""
        if self._connection is None:
            return _of_relation(
                self._relation,
                self.source,
                text,
                take,
                *map(tables.get, ("ranges", "numbers", "keys")),
            )
        names = [f"{self._prefix}_{name}" for name in tables]
        try:
            for name, table in zip(names, tables.values(), strict=True):
                self._connection.register(name, table)
            return take(self._connection.sql(text))
        finally:
            for name in names:
                self._connection.unregister(name)

    def _keys(self, groups: Groups, by: tuple[str, ...]) -> dict[str, Any]:
        """The keys of groups that columns of their types may have."""
        import pyarrow as pa

        rows, names = self.rows_of(by, groups), self.key_columns(by, groups)
        keys = [[row[i] for row in rows] for i in range(len(names))]
        return {
            f"k{i}": pa.array(own, pa.int64()) if name is None else self._array_of(own, name)
            for i, (own, name) in enumerate(zip(keys, names, strict=True))
        }

    def _array_of(self, keys: list[Any], name: str) -> Any:
        """Keys as an array that is compared with a column."""
        import pyarrow as pa

        kind = self.kind(name)
        if kind is None:
            return pa.array(keys, pa.float64())
        if kind in (STRINGS, BOOLEANS):
            return pa.array(keys, pa.string() if kind == STRINGS else pa.bool_())
        if kind == INTEGERS:
            return pa.array(keys, pa.int64() if max(keys, default=0) < 2**63 else pa.decimal128(20))
        step = STEPS[self._declared[name]]
        if kind == CLOCKS:
            return pa.array(keys, pa.time64(step))
        zone = "UTC" if kind == ZONED else None
        return pa.array(keys, pa.date32() if step == "D" else pa.timestamp(step, zone))


def _of_relation(
    relation: Any,
    name: str,
    text: str,
    take: Callable[[Any], Any],
    dpq_ranges: Any,
    dpq_numbers: Any,
    dpq_keys: Any,
) -> Any:
    """As `_asked`, on a relation; tables are found by the names of the arguments."""
    try:
        return take(relation.query(name, text))
    finally:  # older releases leave it
        relation.query(name, f"DROP VIEW IF EXISTS {name}")


def _columns_of(ranges: Ranges) -> dict[str, Any]:
    """Ranges as a table."""
    cells = np.arange(ranges.lo.size, dtype=np.int32) * (ranges.parts + 2)
    columns: dict[str, Any] = {"cell": cells, "lo": ranges.lo, "hi": ranges.hi}
    if ranges.parts > 1:
        for name in ("low", "scale"):
            columns[f"g_{name}"] = np.array([getattr(grid, name) for grid in ranges.grids])
    return columns


def _array(column: Any) -> NDArray[Any]:
    """A column of numbers; NULL as NaN, or as None of integers that may be long."""
    if str(column.type).startswith("decimal"):
        return np.array(column.to_pylist(), dtype=object)
    return np.asarray(column)


def _crowd(grid: Grid, lo: NDArray[np.float64], hi: NDArray[np.float64]) -> int:
    """The most ranges that meet a part of a grid."""
    meeting = np.zeros(grid.parts + 2, dtype=np.int64)
    np.add.at(meeting, grid.parts_of(lo).astype(np.int64), 1)
    np.add.at(meeting, grid.parts_of(hi).astype(np.int64) + 1, -1)
    return int(np.cumsum(meeting).max())
