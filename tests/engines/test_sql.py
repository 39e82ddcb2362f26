"""Tables in data bases: what they answer in SQL, against the same records in memory."""

import datetime as dt
import math
import re
import threading
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpq_fast as dpq
from dpq_fast.data.histogram import Bins
from dpq_fast.data.lattice import Lattice
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
from dpq_fast.data.tasks import ColumnTask, EachGroupTask, GroupTask, KeyTask, MembersTask
from dpq_fast.engines import duckdb as duckdb_module
from dpq_fast.engines import requests
from dpq_fast.engines.duckdb import DuckDB
from dpq_fast.mechanisms import grouping

LARGEST = np.finfo(float).max
BOUNDS = (
    *((-10.0, 10.0), (0.0, 1.0), (-50.0, 1e4), (-8e307, 8e307), (-1.0, 1.79e308), (0.0, 5e-324)),
    *((0.0, 1e-300), (1.0, np.nextafter(1.0, 2.0))),
)
EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, LARGEST, -LARGEST, np.inf, -np.inf, 1.0]


def normal(rng, n):
    return rng.normal(0, 5, n)


COLUMNS = {
    "normal": normal,
    "whole": lambda rng, n: rng.integers(-20, 20, n).astype(float),
    "wide": lambda rng, n: np.exp(rng.normal(0, 100, n)) * rng.choice([-1.0, 1.0], n),
    "extreme": lambda rng, n: rng.choice([*EXTREMES, np.nextafter(1.0, 2.0)], n),
    "decimals": lambda rng, n: rng.random(n).round(2) * 10,
    "missing": lambda rng, n: np.full(n, np.nan),
    "none": lambda rng, n: np.empty(0),
}


def records(kind, seed, n=700):
    """A column with some NaN and some null: as Arrow has it, and as float64."""
    rng = np.random.default_rng(seed)
    values = COLUMNS[kind](rng, n)
    values[rng.random(values.size) < 0.05] = np.nan
    null = rng.random(values.size) < 0.05
    return pa.array(values, mask=null), np.where(null, np.nan, values)


def some_ranges(rng, values, low, high):
    """Ranges between records, as they are once clamped."""
    found = np.unique(np.clip(values[~np.isnan(values)], low, high) + 0.0)
    if not found.size:
        return np.array([low]), np.array([low])
    at = np.sort(rng.choice(found.size, min(found.size, 2 * rng.integers(1, 6)), replace=False))
    at = np.append(at, at[-1]) if at.size % 2 else at
    return found[at[::2]], found[at[1::2]]


def some_queries(rng, values):
    """Queries of all kinds."""
    low, high = BOUNDS[rng.integers(len(BOUNDS))]
    lo, hi = some_ranges(rng, values, low, high)
    yield CellCounts(low, high, np.array([low]), np.array([high]), 4096)
    yield CellCounts(low, high, lo, hi, int(rng.choice([1, 2, 100, 2000])))
    scale = float(rng.choice([1.0, 1e-300, 1e300, 0.1, 37.0, 5e-324]))
    yield Sums(scale, *sorted(rng.integers(-(2**31), 2**31, 2).tolist()))
    yield Sums(1.0, 0, 0)
    yield Sums(1.0, -100, 100)
    yield AnyMissing()
    for size in (10**6, 3):
        yield TakenByKey.between(low, high, lo, hi, size)
    ends = [np.inf, -np.inf, 5.0][: rng.integers(0, 4)]
    present = np.append(values[~np.isnan(values)], [0.0, 1.0])
    makers = [
        lambda: Bins.uniform(low, high, int(rng.integers(1, 300))),
        lambda: Bins.of(np.sort(np.append(rng.normal(0, 3, rng.choice([2, 30, 100])), ends))),
        lambda: Bins.of(np.sort(rng.choice(present, rng.choice([2, 200])))),
        lambda: Bins.geometric(1.1, 0.0),
        lambda: Bins.geometric(1.01, -5.0, 1e6, below=True),
        lambda: Bins.geometric(2.0, 0.0, below=True, step=3),
    ]
    bins = makers[rng.integers(len(makers))]()
    inside = np.where(lo <= low, -np.inf, lo), np.where(hi >= high, np.inf, hi)
    for negate in (False, True):
        yield BinCounts(bins, negate)
    yield BinCounts(bins, bool(rng.integers(2)), inside)
    step = float(rng.choice([0.01, 0.1, 0.5, 1.0]))
    yield PointCounts(Lattice.of((-10.0, 10.0), step, True))


def assert_same(query, state, expected):
    if isinstance(expected, Cells):
        whole = query.lo.size == 1 and (query.lo[0], query.hi[0]) == (query.low, query.high)
        counts = slice(None) if whole else slice(-1)  # NaN is counted with all records alone
        np.testing.assert_array_equal(state.count[counts], expected.count[counts])
        for one, other in ((state.least, expected.least), (state.most, expected.most)):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(np.signbit(one), np.signbit(other))
    elif isinstance(expected, Found):
        assert state.number == expected.number
        one, other = (np.sort(np.concatenate([[], *each.values])) for each in (state, expected))
        np.testing.assert_array_equal(one, other)
    else:
        np.testing.assert_array_equal(state, expected)


# Engines: of a table of Arrow, what holds the same rows


def of_text(table):
    connection = duckdb.connect()
    connection.register("people", table)
    return dpq.Table.of("select * from people;", connection)._engine


SHARED = duckdb.connect()  # which relations of some releases do not hold


def of_relation(table):
    return dpq.Table.of(SHARED.from_arrow(table))._engine


class Single(DuckDB):
    """Parts by arithmetic of single precision."""

    def whole(self, value):
        return f"try_cast(floor(CAST({value} AS FLOAT)) AS INTEGER)"


class Shifted(DuckDB):
    """Parts that begin a little late."""

    def whole(self, value):
        return super().whole(f"greatest(({value}) * 0.9999999 - 0.25, 0.0)")


class Random(DuckDB):
    """Parts that do not ascend, and are others at every pass."""

    def part_between(self, x, ends, unit, parts, wide, below=False):
        part = super().part_between(x, ends, unit, parts, wide, below)
        return f"({part}) + CAST(floor(random() * 3) AS INTEGER)" if below else part


def wrong(kind):
    return lambda table: kind(SHARED.from_arrow(table), None)


ENGINES = {
    "text": of_text,
    "relation": of_relation,
    "single": wrong(Single),
    "shifted": wrong(Shifted),
    "random": wrong(Random),
}


# Through ibis: what its fixture is called, and a type for each of Arrow.
SQLITE = {"double": "REAL", "int64": "INTEGER", "bool": "BOOLEAN", "date32[day]": "DATE"}
POSTGRES = {
    "double": "DOUBLE PRECISION",
    "int64": "BIGINT",
    "bool": "BOOLEAN",
    "date32[day]": "DATE",
    "time64[us]": "TIME",
    "timestamp[us, tz=UTC]": "TIMESTAMPTZ",
}
IBIS = {"sqlite_ibis": SQLITE, "duckdb_ibis": POSTGRES, "postgres_ibis": POSTGRES}


def through_ibis(backend, types):
    """An engine of a table that a connection of ibis is given."""

    def engine_of(table):
        names = table.column_names
        declared = (types.get(str(field.type), "TEXT") for field in table.schema)
        columns = [f'"{name}" {kind}' for name, kind in zip(names, declared, strict=True)]
        holes = ", ".join("%s" if backend.name == "postgres" else "?" for _ in names)
        rows = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
        if backend.name == "sqlite":  # which has text for times
            rows = [tuple(map(text_of, row)) for row in rows]
        cursor = backend.con.cursor()
        cursor.execute("DROP TABLE IF EXISTS people")
        cursor.execute(f"CREATE TABLE people ({', '.join(columns)})")
        if rows:
            cursor.executemany(f"INSERT INTO people VALUES ({holes})", rows)
        backend.con.commit()
        return dpq.Table.of(backend.table("people"))._engine

    return engine_of


def text_of(item):
    return str(item) if isinstance(item, (dt.date, dt.time)) else item


def shifted(engine_of):
    """The same, with parts that are wider than they should be, and begin later and later."""

    def changed(table):
        engine = engine_of(table)
        whole = engine.whole
        engine.whole = lambda value: whole(f"({value}) * 0.97")
        return engine

    return changed


def of_file(path):
    """An engine of a file of Parquet, whose statistics leave NaN out."""

    def engine_of(table):
        pq.write_table(table, path, row_group_size=100)
        # pyarrow 19 says in a file that times of day are those of UTC, as what has a zone
        zoned = "shift" in table.column_names
        text = "SELECT * REPLACE (CAST(shift AS TIME) AS shift) " if zoned else ""
        return dpq.Table.of(f"{text}FROM '{path}'", duckdb.connect())._engine

    return engine_of


@pytest.fixture(params=[*ENGINES, "file", *IBIS, "shifted sqlite_ibis", "shifted postgres_ibis"])
def engine_of(request, tmp_path):
    if request.param in ENGINES:
        return ENGINES[request.param]
    if request.param == "file":
        return of_file(tmp_path / "rows.parquet")
    *how, backend = request.param.split()
    through = through_ibis(request.getfixturevalue(backend), IBIS[backend])
    return shifted(through) if how else through


@pytest.mark.slow
@pytest.mark.parametrize("kind", COLUMNS)
def test_states_are_those_of_the_records_in_memory(kind, engine_of):
    column, values = records(kind, 0)
    queries = list(some_queries(np.random.default_rng(0), values))
    engine = engine_of(pa.table({"a column": column}))
    states = engine.answer([ColumnTask("a column", None, query) for query in queries])
    for query, state in zip(queries, states, strict=True):
        expected = query.start()
        query.step(expected, values)
        assert_same(query, state, expected)


KEYS = {
    "strings": (("town",), ["a", "ü", "nowhere"]),
    "odd strings": (("town",), ["a", "\ud800"]),
    "integers": (("year",), [2001, 1999, 2002]),
    "long integers": (("year",), np.array([2001, 2**63 + 5], dtype=np.uint64)),
    "booleans": (("flag",), [True]),
    "dates": (("day",), [dt.date(2020, 1, 2), dt.date(2021, 1, 1), dt.datetime(2020, 1, 1, 12)]),
    "zoned": (("when",), [dt.datetime(2020, 1, 2, tzinfo=dt.timezone.utc)]),
    "floats": (("ward",), [1, 0, 2**53 + 1, -(2**53), 7]),
    "long floats": (("ward",), np.array([1, 2**63, 2**64 - 1], dtype=np.uint64)),
    "booleans of floats": (("ward",), [True]),
    "strings of floats": (("ward",), ["1"]),
    "times of day": (("shift",), [dt.time(8), dt.time(0, 0, 0, 7), dt.time(9)]),
    "pairs": (("town", "year"), [("a", 2001), ("b", 2002), ("nowhere", 2000)]),
    "mixed pairs": (("flag", "day"), [(True, dt.date(2020, 1, 1)), (False, dt.date(2020, 1, 2))]),
    "missing strings": (("town",), ["a", None]),
    "nothing but missing": (("town",), [None]),
    "missing integers": (("born",), [None, 0, 2001]),
    "missing floats": (("ward",), [2**53, None, 1]),
    "missing booleans": (("left",), [True, None]),
    "missing dates": (("last",), [dt.date(2020, 1, 2), None, dt.date(1970, 1, 1)]),
    "missing times of day": (("shift",), [None, dt.time(8), dt.time(0)]),
    "missing zoned": (("seen",), [None, dt.datetime(2020, 1, 2, tzinfo=dt.timezone.utc)]),
    "missing in pairs": (
        ("town", "born"),
        [("a", None), (None, 2001), (None, None), ("b", 2000), ("nowhere", None)],
    ),
    "missing in pairs of floats": (("ward", "year"), [(None, 2001), (1, 2000), (None, 2002)]),
    "missing in one of two": (("year", "last"), [(2001, None), (2000, dt.date(2020, 1, 1))]),
}


# Some are integers, some are none.
WARDS = [0.0, -0.0, 1.0, 1.0, 2.0**53, -(2.0**53), 2.0**63, np.nan, 0.5, -1e300, np.inf, 5e-324]


SHIFTS = [dt.time(8), dt.time(0), None, dt.time(0, 0, 0, 7), dt.time.max, dt.time(8)]


def rows_of_groups(n=900):
    rng = np.random.default_rng(2)
    column, _ = records("normal", 3, n)
    towns = rng.choice(np.array(["a", "b", "c", "ü", None], dtype=object), n)
    days = np.datetime64("2020-01-01") + rng.integers(0, 4, n)
    gaps = np.random.default_rng(4).random((4, n)) < 0.2
    wards = np.random.default_rng(5).choice(WARDS, n)
    return pa.table(
        {
            "x": column,
            "town": pa.array(towns, pa.string()),
            "year": rng.integers(2000, 2003, n),
            "day": pa.array(days, pa.date32()),
            "when": pa.array(days.astype("M8[us]")).cast(pa.timestamp("us", "UTC")),
            "flag": rng.random(n) < 0.5,
            "born": pa.array(np.where(gaps[3], 0, 2000 + gaps[1]), mask=gaps[0]),
            "left": pa.array(gaps[0], mask=gaps[1]),
            "last": pa.array(days, pa.date32(), mask=gaps[2]),
            "ward": pa.array(wards, mask=gaps[2]),
            "shift": pa.array((SHIFTS * n)[:n], pa.time64("us")),
            "seen": pa.array(days.astype("M8[us]"), mask=gaps[3]).cast(pa.timestamp("us", "UTC")),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("engine_of", ["text", "relation", "file", "random", *IBIS], indirect=True)
@pytest.mark.parametrize("name", KEYS)
def test_states_of_groups_are_those_of_the_records_in_memory(name, engine_of, request):
    by, given = KEYS[name]
    table = rows_of_groups()
    known_to(request, by)
    groups = Groups(given)
    values = table.column("x").to_numpy()
    queries = list(some_queries(np.random.default_rng(len(name)), values))
    tasks = [GroupTask("x", None, query, by, groups) for query in queries]
    for task, states in zip(tasks, engine_of(table).answer(tasks), strict=True):
        expected = task.start()
        task.step(expected, table.column)
        assert states.keys() <= expected.keys()
        for group, state in expected.items():
            assert_same(task.query, states.get(group, task.query.start()), state)


@pytest.mark.parametrize("engine_of", ["text", "relation", *IBIS], indirect=True)
def test_groups_asked_for_together_are_told_apart(engine_of):
    table = rows_of_groups()
    given = [["a", "c"], ["c", "b"], ["c", "b"]]
    tasks = [GroupTask("x", None, Sums(1.0, -9, 9), ("town",), Groups(keys)) for keys in given]
    for task, states in zip(tasks, engine_of(table).answer(tasks), strict=True):
        expected = task.start()
        task.step(expected, table.column)
        assert states == expected


N = 3_000
MIXED = np.round(np.random.default_rng(0).normal(0, 5, N), 1)
MIXED[::50] = np.nan
MIXED[7:9] = np.inf, -np.inf
FRAME = pa.table({"x": MIXED, "normal": np.random.default_rng(1).normal(0, 5, N)})
OPTIONS = dict(epsilon=1.0, bounds=(-100, 100), rng=7)
RELEASES = {
    "joint_exp": lambda x: dpq.joint_exp(x, [0.1, 0.5, 0.9], **OPTIONS),
    "quantiles": lambda x: dpq.quantile(x, np.arange(1, 30) / 30, **OPTIONS),
    "interval": lambda x: dpq.median(x, confidence=0.9, **OPTIONS),
    "few points": lambda x: dpq.median(x, resolution=0.5, **OPTIONS),
    "agg_tree": lambda x: dpq.agg_tree(x, [0.1, 0.5], **OPTIONS),
    "prior": lambda x: dpq.agg_tree(x, [0.1, 0.5], prior=([(1.0, "uniform")]), **OPTIONS),
    "cdf": lambda x: dpq.cdf(x, **OPTIONS).quantile([0.2, 0.7]),
    "unbounded": lambda x: dpq.unbounded_quantile(x, [0.5, 0.9], epsilon=1.0, rng=7),
    "below": lambda x: dpq.unbounded_quantile(x, 0.01, epsilon=1.0, lower=None, rng=7),
    "mean": lambda x: dpq.mean(x, epsilon=1.0, lower=-20, upper=20, rng=7),
    "var": lambda x: dpq.var(x, epsilon=1.0, bounds=(-20, 20), rng=7),
    "histogram": lambda x: dpq.histogram(x, [-9.0, -1.0, 0.5, 4.0, 30.0], rho=0.5, rng=7)[0],
    "clipped": lambda x: dpq.sum(x, epsilon=1.0, rng=7),
    "count": lambda x: dpq.count(x, epsilon=1.0, rng=7),
}


@pytest.mark.parametrize("engine_of", ["text", "single", "random", *IBIS], indirect=True)
@pytest.mark.parametrize("name", RELEASES)
def test_releases_are_those_of_the_same_records_in_memory(name, engine_of):
    engine = engine_of(FRAME)
    for column in ("x", "normal"):
        expected = RELEASES[name](dpq.Table.of(FRAME)[column])
        released = RELEASES[name](dpq.Table(engine)[column])
        np.testing.assert_array_equal(released, expected)


def test_releases_together_ask_for_the_same_once(monkeypatch):
    table = dpq.Table(of_text(FRAME))
    asked = []
    monkeypatch.setattr(
        DuckDB, "fetch", lambda *args, own=DuckDB.fetch: asked.append(args) or own(*args)
    )
    dpq.together(*(lambda: dpq.ind_exp(table["normal"], 0.5, **OPTIONS) for _ in range(4)))
    assert len(asked) == 2


@pytest.mark.slow
def test_the_number_of_statements_follows_the_records_where_it_is_said(monkeypatch):
    """`SECURITY.md`, "Engines": not of counts, nor of sums and means between public clips."""
    rng = np.random.default_rng(0)
    columns = {
        "normal": rng.normal(0, 5, N),
        "wide": np.exp(rng.normal(0, 30, N)),
        "one value": np.full(N, 5.0),
        "missing": np.full(N, np.nan),
        "none": np.empty(0),
    }
    clip = dict(lower=-20, upper=20, epsilon=1.0)
    keys = dict(groups=["a", "b"], **clip)
    same = {
        "count": lambda t: dpq.count(t["x"], epsilon=1.0),
        "sum": lambda t: dpq.sum(t["x"], q=None, **clip),
        "mean": lambda t: dpq.mean(t["x"], q=None, **clip),
        "interval": lambda t: dpq.mean(t["x"], q=None, confidence=0.9, **clip),
        "count_by": lambda t: dpq.count_by(t["x"], t["k"], groups=["a"], epsilon=1.0),
        "sum_by": lambda t: dpq.sum_by(t["x"], t["k"], q=None, **keys),
        "mean_by": lambda t: dpq.mean_by(t["x"], t["k"], q=None, **keys),
    }
    other = {
        "quantile": lambda t: dpq.joint_exp(t["x"], [0.1, 0.5, 0.9], **OPTIONS),
        "search": lambda t: dpq.sum(t["x"], epsilon=1.0, rng=1),
        "quantile_by": lambda t: dpq.quantile_by(t["x"], t["k"], 0.5, groups=["a"], **OPTIONS),
    }
    asked = []
    monkeypatch.setattr(
        DuckDB, "fetch", lambda *args, own=DuckDB.fetch: asked.append(args) or own(*args)
    )
    monkeypatch.setattr(grouping, "FEW_RECORDS", 10)
    numbers = {name: set() for name in (*same, *other)}
    for column in columns.values():
        town = pa.array(["a"] * len(column), pa.string())
        table = dpq.Table(of_text(pa.table({"x": column, "k": town})))
        for name, release in (same | other).items():
            asked.clear()
            release(table)
            numbers[name].add(len(asked))
    assert [name for name, found in numbers.items() if len(found) > 1] == list(other)


# Types of columns

DAY = dt.date(2026, 1, 1)
UNITS = {
    "days": dict(bounds=(dt.date(2020, 1, 1), dt.date(2030, 1, 1))),
    "seconds": dict(bounds=(dt.datetime(2020, 1, 1, 3, 4, 5, 7), dt.datetime(2030, 1, 1))),
    "odd steps": dict(
        bounds=(np.datetime64("2020-01-01T00:00:00.000000001"), np.datetime64("2030-01-01", "ns")),
        resolution=np.timedelta64(37, "us"),
    ),
}
TIMES = {
    "DATE": pa.date32(),
    "TIMESTAMP_S": pa.timestamp("s"),
    "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_NS": pa.timestamp("ns"),
}


@pytest.mark.parametrize("declared", TIMES)
@pytest.mark.parametrize("unit", UNITS)
def test_times_are_numbers_of_steps(declared, unit):
    days = np.datetime64("2018-01-01") + np.random.default_rng(0).integers(0, 5000, 200)
    ticks = days.astype("M8[us]") + np.random.default_rng(1).integers(0, 10**11, 200)
    column = pa.array(ticks).cast(TIMES[declared], safe=False)
    table = pa.table({"at": pa.array([*column.to_pylist(), None], TIMES[declared])})
    options = dict(UNITS[unit], epsilon=1.0, rng=3)
    relation = SHARED.from_arrow(table)
    assert list(map(str, relation.types)) == [declared]
    expected = dpq.joint_exp(dpq.Table.of(table)["at"], [0.3, 0.6], **options)
    released = dpq.joint_exp(dpq.Table.of(relation)["at"], [0.3, 0.6], **options)
    np.testing.assert_array_equal(released, expected)
    assert dpq.count(dpq.Table.of(relation)["at"], epsilon=1e3, rng=0) == 200


def test_zones_durations_and_infinite_times():
    connection = duckdb.connect()
    zone = dt.timezone.utc
    bounds = dt.datetime(2020, 1, 1, tzinfo=zone), dt.datetime(2021, 1, 1, tzinfo=zone)
    connection.execute(
        "create table people as select "
        "unnest([timestamptz '2020-07-01 00:00:00+00', 'infinity', '-infinity', null]) t, "
        "unnest([interval 1 hour, interval 2 hours, interval 3 hours, null]) d"
    )
    table = dpq.Table.of("people", connection)
    median = dpq.median(table["t"], epsilon=1e4, bounds=bounds, rng=0)
    assert abs(median - dt.datetime(2020, 7, 1, tzinfo=zone)) < dt.timedelta(minutes=5)
    middle = dpq.median(
        table["d"], epsilon=1e4, bounds=(dt.timedelta(0), dt.timedelta(days=1)), rng=0
    )
    assert abs(middle - dt.timedelta(hours=2)) < dt.timedelta(seconds=1)
    assert dpq.count(table["t"], epsilon=1e4, rng=0) == 3


NUMBERS = {
    "BOOLEAN": [True, False, None, True],
    "UTINYINT": [0, 255, None, 7],
    "BIGINT": [-(2**63), 2**63 - 1, 2**53 + 1, None, 12],
    "UBIGINT": [2**64 - 1, 2**53 + 1, None, 12],
    "HUGEINT": [2**100 + 1, -(2**120) - 3, None, 2**64 - 1],
    "FLOAT": [0.1, math.nan, None, -1e30],
    "DECIMAL(4,1)": [Decimal("28.7"), Decimal("-0.1"), None],
    "DECIMAL(18,3)": [Decimal("791399673666.721"), Decimal("190815347986.985"), None],
    "DECIMAL(38,3)": [Decimal("79139967366612345678901234567890.721"), Decimal("0.001")],
    "INTEGER": [None, None],
}


@pytest.mark.parametrize("declared", NUMBERS)
def test_numbers_are_the_nearest_float64(declared):
    given = NUMBERS[declared]
    connection = duckdb.connect()
    connection.execute(f'create table t ("a ""b" {declared})')
    connection.executemany("insert into t values (?)", [[item] for item in given])
    table = dpq.Table.of("select * from t", connection)
    values = np.array([np.nan if item is None else float(item) for item in given])
    if declared == "FLOAT":
        values = values.astype(np.float32).astype(float)
    everything = TakenByKey.between(-8e307, 8e307, np.array([-8e307]), np.array([8e307]), 10)
    (found,) = table.answer([ColumnTask('a "b', None, everything)])
    np.testing.assert_array_equal(
        np.sort(np.concatenate([[], *found.values])), np.sort(values[~np.isnan(values)])
    )


@pytest.mark.parametrize(
    ("text", "bounds", "message"),
    [
        ("'a'", (0, 1), "x must hold real numbers, got dtype VARCHAR$"),
        ("date '2020-01-01'", (0, 1), "real numbers, got dtype DATE: bounds must be of its kind"),
        ("1", (DAY, DAY + dt.timedelta(9)), "times without a zone, got dtype INTEGER$"),
        (
            "timestamptz '2020-01-01'",
            (DAY, DAY + dt.timedelta(9)),
            "times without a zone, got dtype TIMESTAMP WITH",
        ),
        ("time '10:00'", (DAY, DAY + dt.timedelta(9)), "times without a zone, got dtype TIME$"),
        ("[1]", (0, 1), r"real numbers, got dtype INTEGER\[\]$"),
    ],
)
def test_types_are_refused_as_declared(text, bounds, message):
    table = dpq.Table.of(f"select {text} x", duckdb.connect())
    accountant = dpq.privacy.Accountant(epsilon=3.0)
    with pytest.raises(TypeError, match=message):
        dpq.median(table["x"], epsilon=1.0, bounds=bounds, accountant=accountant)
    assert accountant.spent.epsilon == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "'a'",
        "time '10:00'",
        "uuid '00000000-0000-0000-0000-000000000001'",
        "[1]",
        "{'a': 1}",
        "blob 'a'",
    ],
)
def test_records_of_all_types_are_counted(text):
    table = dpq.Table.of(f"select if(i < 5, {text}, null) x from range(9) t(i)", duckdb.connect())
    assert dpq.count(table["x"], epsilon=1e6, rng=0) == 5


def test_columns_without_a_type_are_missing():
    table = dpq.Table.of("select null x from range(3)", duckdb.connect())
    assert dpq.count(table["x"], epsilon=1e3, rng=0) == 0
    assert 0 <= dpq.median(table["x"], epsilon=1.0, bounds=(0, 1), rng=0) <= 1


@pytest.mark.parametrize(
    ("by", "given", "message"),
    [
        ("part", [1], r"by must hold .* or intervals, got dtype DECIMAL\(1,1\)"),
        ("town", [1], "groups must be strings as the column by is, got integers"),
    ],
)
def test_keys_are_refused_as_declared(by, given, message):
    task = GroupTask("x", None, Sums(1.0, 0, 0), (by,), Groups(given))
    rows = rows_of_groups(1).append_column("part", pa.array([Decimal("0.5")]))
    with pytest.raises(TypeError, match=message):
        of_text(rows).answer([task])


def test_what_no_table_holds_is_refused():
    connection = duckdb.connect()
    with pytest.raises(duckdb.Error):
        dpq.Table.of("select * from nothing", connection)
    with pytest.raises(TypeError, match="source must be a data frame, or a table"):
        dpq.Table.of(7, connection)
    with pytest.raises(TypeError, match="source must be a data frame, or a table"):
        dpq.Table.of(connection)


# What is left behind, and what is shown


def left(connection):
    """Whatever a connection has of its own."""
    found = connection.execute(
        "select 'view', view_name from duckdb_views() where not internal "
        "union all select 'table', table_name from duckdb_tables()"
    )
    return found.fetchall()


def test_nothing_stays_behind():
    connection = duckdb.connect()
    connection.execute("create table people as select (range % 97)::double x from range(5000)")
    relation = connection.table("people")
    before = left(connection)
    constants = duckdb_module.Literals()
    constants.hidden(1.5)
    ranges = requests.Ranges(np.array([1.0]), np.array([2.0]), 0.0, 5.0)
    for table in (dpq.Table.of("from people", connection), dpq.Table.of(relation)):
        RELEASES["joint_exp"](table["x"])
        RELEASES["unbounded"](table["x"])
        assert left(connection) == before
        with pytest.raises(duckdb.Error):  # of this release's own statement
            table._engine.fetch("select error from", constants, ranges, None, ())
        assert left(connection) == before


def test_an_error_of_the_data_base_is_raised_and_the_charge_stays():
    connection = duckdb.connect()
    connection.execute("create table people as select 1.0 x")
    table = dpq.Table.of("select * from people", connection)
    connection.execute("drop table people")
    accountant = dpq.privacy.Accountant(epsilon=3.0)
    with pytest.raises(duckdb.CatalogException):
        dpq.median(table["x"], accountant=accountant, **OPTIONS)
    assert accountant.spent.epsilon == 1.0


def test_an_interrupt_ends_the_pass():
    connection = duckdb.connect()
    table = dpq.Table.of("select (range % 1009)::double x from range(100000000000)", connection)
    timer = threading.Timer(0.3, connection.interrupt)
    timer.start()
    with pytest.raises(duckdb.InterruptException):
        RELEASES["joint_exp"](table["x"])
    timer.join()
    assert left(connection) == []
    assert connection.execute("select 1").fetchall() == [(1,)]


def test_a_transaction_of_the_user_goes_on():
    connection = duckdb.connect()
    connection.execute("create temp table people as select 1.0 x")
    connection.execute("begin")
    connection.execute("insert into people values (2.0)")
    table = dpq.Table.of("select * from people", connection)
    assert dpq.count(table["x"], epsilon=1e3, rng=0) == 2
    connection.execute("rollback")
    assert dpq.count(table["x"], epsilon=1e3, rng=0) == 1


def test_read_only_data_bases_are_read(tmp_path):
    path = tmp_path / "people.db"
    with duckdb.connect(path) as connection:
        connection.execute("create table people as select (range % 97)::double x from range(5000)")
    with duckdb.connect(path, read_only=True) as connection:
        expected = RELEASES["joint_exp"](dpq.Table.of({"x": np.arange(5000.0) % 97})["x"])
        table = dpq.Table.of("from people", connection)
        np.testing.assert_array_equal(RELEASES["joint_exp"](table["x"]), expected)


SECRETS = 1234.0625 + np.arange(4000) / 1024.0


@pytest.mark.parametrize("source", ["table", "Parquet"])
def test_logs_and_plans_hold_no_record(source, tmp_path, monkeypatch):
    path, log = tmp_path / "rows.parquet", tmp_path / "log"
    pq.write_table(pa.table({"x": SECRETS, "town": ["a", "b"] * 2000}), path)
    connection = duckdb.connect()
    connection.execute(f"create table people as from '{path}'")
    connection.execute(f"set log_query_path='{log}'")
    text = "from people" if source == "table" else f"from '{path}'"
    table = dpq.Table.of(text, connection)
    shown = []

    def fetch(engine, *args, own=DuckDB._asked):
        statement = args[0]
        profiled = own(engine, f"explain analyze {statement}", args[1])
        shown.extend(map(str, profiled.to_pydict().values()))
        return own(engine, *args)

    monkeypatch.setattr(DuckDB, "_asked", fetch)
    monkeypatch.setattr(requests, "FEW", 2)
    asked_about_secrets(table._engine)
    monkeypatch.setattr(duckdb_module, "CROWDED", 0)  # by comparisons alone
    asked_about_secrets(table._engine)
    assert len(shown) > 10
    for text in (*shown, log.read_text()):
        assert not re.search(r"123[4-7]\.", text)


def test_ranges_that_crowd_are_told_apart(monkeypatch):
    values = np.exp(np.random.default_rng(0).normal(0, 50, 2_000))
    ends = np.sort(values)[np.arange(0, 2_000, 20)]
    query = CellCounts(0.0, 1e300, ends[::2].copy(), ends[1::2].copy(), 7)
    expected = query.start()
    query.step(expected, values)
    for crowded in (0, 8):
        monkeypatch.setattr(duckdb_module, "CROWDED", crowded)
        for ladder in (0, 2**9):
            monkeypatch.setattr(duckdb_module, "LADDER", ladder)
            (state,) = of_text(pa.table({"x": values})).answer([ColumnTask("x", None, query)])
            assert_same(query, state, expected)


@pytest.mark.slow
@pytest.mark.parametrize("most", [2, 64])
def test_many_places_are_told_apart_in_several_statements(most, monkeypatch):
    monkeypatch.setattr(requests, "PARTS", 8)
    monkeypatch.setattr(DuckDB, "MOST", most)
    values = np.exp(np.random.default_rng(0).normal(0, 9, 500))
    for bins in (Bins.of(np.sort(values)[::2]), Bins.uniform(0.0, 1e3, 300)):
        query = BinCounts(bins)
        engine = wrong(Shifted)(pa.table({"x": values}))
        (state,) = engine.answer([ColumnTask("x", None, query)])
        np.testing.assert_array_equal(state, bins.count(values))


def test_what_leaves_is_counted():
    values = np.random.default_rng(0).normal(0, 5, 10**5)
    table = dpq.Table(of_text(pa.table({"x": values})))
    RELEASES["count"](table["x"])
    assert table._engine.fetched == 24
    RELEASES["joint_exp"](table["x"])
    assert table._engine.fetched < 8 * values.size


# Through ibis

EVERYTHING = TakenByKey.between(-8e307, 8e307, np.array([-8e307]), np.array([8e307]), 100)


def found_in(table, column):
    (found,) = table.answer([ColumnTask(column, None, EVERYTHING)])
    return np.sort(np.concatenate([[], *found.values]))


def executed(backend, *statements):
    cursor = backend.con.cursor()
    for statement in statements:
        cursor.execute(statement)
    backend.con.commit()


def test_postgres_numbers_are_the_nearest_float64(postgres_ibis):
    given = {
        "numeric": ["28.7", "1e400", "-1e400", "1e-400", "-1e-400", "'NaN'", "9007199254740993"],
        "numeric(10, 2)": ["28.71", "null"],
        "real": ["0.1", "'infinity'", "'nan'"],
        "double precision": ["5e-324", "-5e-324", "1.7e308", "'-infinity'", "'nan'", "-0.0"],
        "bigint": ["9223372036854775807", "9007199254740993", "null"],
        "boolean": ["true", "false", "null"],
    }
    expected = {
        "numeric": [-8e307, 0, 0, 28.7, 2**53, 8e307],
        "numeric(10, 2)": [28.71],
        "real": [float(np.float32(0.1)), 8e307],
        "double precision": [-8e307, -5e-324, 0, 5e-324, 8e307],
        "bigint": [2**53, 2**63],
        "boolean": [0, 1],
    }
    for declared, items in given.items():
        rows = ", ".join(f"(cast({item} as {declared}))" for item in items)
        executed(
            postgres_ibis,
            "drop table if exists people",
            f'create table people ("a ""b" {declared})',
            f"insert into people values {rows}",
        )
        table = dpq.Table.of("select * from people where 'a' not like '%s%'", postgres_ibis)
        np.testing.assert_array_equal(found_in(table, 'a "b'), expected[declared])
        sums = [Sums(scale, -(2**31), 2**31) for scale in (1e-320, 1.0, 1e308)]
        for state in table.answer([ColumnTask('a "b', None, query) for query in sums]):
            assert state[1] == len(expected[declared])


@pytest.mark.parametrize("backend", ["postgres_ibis", "sqlite_ibis"])
def test_times_through_ibis_are_numbers_of_steps(backend, request):
    connection = request.getfixturevalue(backend)
    ticks = np.datetime64("2020-02-03T04:05:06.000007") + np.arange(0, 10**15, 10**13)
    days = ticks.astype("M8[D]")
    frame = pa.table({"at": pa.array(ticks), "day": pa.array(days)})
    rows = ", ".join(f"('{str(at).replace('T', ' ')}', '{at.item():%Y-%m-%d}')" for at in ticks)
    executed(
        connection,
        "drop table if exists people",
        'create table people ("at" timestamp, "day" date)',
        f"insert into people values {rows}, (null, null)",
    )
    table = dpq.Table.of(connection.table("people"))
    for column in ("at", "day"):
        for unit in UNITS.values():
            options = dict(unit, epsilon=1.0, rng=3)
            expected = dpq.joint_exp(dpq.Table.of(frame)[column], [0.3, 0.6], **options)
            released = dpq.joint_exp(table[column], [0.3, 0.6], **options)
            np.testing.assert_array_equal(released, expected)
        assert dpq.count(table[column], epsilon=1e3, rng=0) == ticks.size


def test_postgres_times_may_be_infinite_or_zoned(postgres_ibis):
    zone = dt.timezone.utc
    executed(
        postgres_ibis,
        "drop table if exists people",
        "create table people (t timestamptz, d date, i interval)",
        "insert into people values ('2020-07-01 00:00:00+00', '2020-07-01', '1 hour'), "
        "('infinity', 'infinity', '2 hours'), ('-infinity', '-infinity', '3 hours'), "
        "(null, null, null)",
    )
    table = dpq.Table.of("select * from people;", postgres_ibis)
    bounds = dt.datetime(2020, 1, 1, tzinfo=zone), dt.datetime(2021, 1, 1, tzinfo=zone)
    median = dpq.median(table["t"], epsilon=1e4, bounds=bounds, rng=0)
    assert abs(median - dt.datetime(2020, 7, 1, tzinfo=zone)) < dt.timedelta(minutes=5)
    day = dpq.median(table["d"], epsilon=1e4, bounds=(DAY.replace(2020), DAY), rng=0)
    assert day == dt.date(2020, 7, 1)
    lengths = dt.timedelta(0), dt.timedelta(days=1)
    middle = dpq.median(table["i"], epsilon=1e4, bounds=lengths, rng=0)
    assert abs(middle - dt.timedelta(hours=2)) < dt.timedelta(seconds=1)


def test_what_is_no_number_is_missing_in_sqlite(sqlite_ibis):
    executed(
        sqlite_ibis,
        "create table people (x real)",
        "insert into people values (1.5), ('none'), (x'00'), (null), ('2.5'), (9e999)",
    )
    table = dpq.Table.of(sqlite_ibis.table("people"))
    np.testing.assert_array_equal(found_in(table, "x"), [1.5, 2.5, 8e307])
    assert dpq.count(table["x"], epsilon=1e3, rng=0) == 3


@pytest.mark.parametrize("declared", ["", "integer", "real"])
def test_numbers_of_sqlite_are_keys_whatever_a_column_holds(declared, sqlite_ibis):
    """One without a type holds both; only what is whole is a key, only NULL is missing."""
    values = ["1", "1.0", "2.0", "2.5", "9007199254740993", "9.3e18", "1e300", "9e999", "'1'"]
    values = ", ".join(f"({value})" for value in [*values, "'a'", "x'31'", "null"])
    executed(
        sqlite_ibis,
        f"create table people (k {declared})",
        f"insert into people values {values}",
    )
    table = dpq.Table.of("select k, 1.0 as x from people", sqlite_ibis)
    exact = 2**53 + (declared != "real")
    numbers = {1: 2 + (declared != ""), 2: 1, exact: 1, int(9.3e18): 1, None: 1}
    for groups in (list(numbers), [exact, 1], [None, 1]):
        found = dpq.count_by(table["x"], table["k"], groups=groups, epsilon=1e6, rng=0)
        assert {key: found[key] for key in groups} == {key: numbers[key] for key in groups}
    (state,) = table.answer([KeyTask(("k",))])
    del numbers[None]
    assert state.numbers == {(key,): number for key, number in numbers.items()}


def test_other_types_are_refused(sqlite_ibis):
    executed(sqlite_ibis, "create table people (name text, at timestamp)")
    people = sqlite_ibis.table("people")
    table = dpq.Table.of(people)
    with pytest.raises(TypeError, match=r"x must hold real numbers, got dtype string$"):
        dpq.median(table["name"], epsilon=1.0, bounds=(0, 1))
    with pytest.raises(TypeError, match=r"got dtype timestamp.*: bounds must be of its kind"):
        dpq.median(table["at"], epsilon=1.0, bounds=(0, 1))
    task = GroupTask("name", None, Sums(1.0, 0, 0), ("at",), Groups([DAY]))
    with pytest.raises(TypeError):
        table.answer([task])


def test_other_data_bases_are_read_in_batches(ibis_polars):
    ibis_polars.create_table("people", FRAME)
    for column in (
        dpq.Table.of(ibis_polars.table("people"))["x"],
        dpq.Table.of("select * from people", ibis_polars)["x"],
    ):
        for release in (RELEASES["quantiles"], RELEASES["mean"]):
            expected = release(dpq.Table.of(FRAME)["x"])
            np.testing.assert_array_equal(release(column), expected)


def test_progress_is_shown_on_request(capsys):
    connection = duckdb.connect()
    connection.register("people", FRAME)
    for progress, shown in ((False, ""), (True, "statements")):
        table = dpq.Table.of("from people", connection, progress=progress)
        dpq.count(table["x"], epsilon=1.0)
        assert shown in (found := capsys.readouterr().err) and bool(found) == progress


@pytest.mark.parametrize("backend", IBIS)
def test_loggers_hold_no_record(backend, request, caplog):
    caplog.set_level(0)
    engine = through_ibis(request.getfixturevalue(backend), IBIS[backend])
    asked_about_secrets(engine(pa.table({"x": SECRETS, "town": ["a", "b"] * 2000})))
    assert not re.search(r"123[4-7]\.", caplog.text)


def asked_about_secrets(engine):
    """Releases and tasks whose ranges follow from SECRETS."""
    table = dpq.Table(engine)
    dpq.joint_exp(table["x"], [0.2, 0.7], epsilon=1.0, bounds=(0.0, 1e6), rng=7)
    dpq.unbounded_quantile(table["x"], 0.9, epsilon=1.0, rng=7)
    low, high = np.array([1234.5]), np.array([1235.25])
    queries = [
        BinCounts(Bins.of([-np.inf, 1234.5, 1236.25, np.inf])),
        BinCounts(Bins.of(1234.0625 + np.arange(99) / 64.0)),
        BinCounts(Bins.of(1234.0625 + np.arange(99) / 64.0), False, (low, high)),
        CellCounts(0.0, 1e6, low, high, 50),
        TakenByKey.between(0.0, 1e6, low, high, 10**6),
    ]
    groups = Groups(["a"])
    table.answer([ColumnTask("x", None, query) for query in queries])
    table.answer([GroupTask("x", None, query, ("town",), groups) for query in queries])


def test_logs_of_postgres_hold_no_record_and_no_table_stays(postgres, postgres_ibis):
    engine = through_ibis(postgres_ibis, POSTGRES)
    engine = engine(pa.table({"x": SECRETS, "town": ["a", "b"] * 2000}))
    before = len(postgres.log.read_text())
    connection = postgres_ibis.con
    for setting in ("log_statement = 'all'", "log_min_duration_statement = 0"):
        connection.execute(f"set {setting}")
    if connection.execute(
        "select 1 from pg_ls_dir((select setting from pg_config where name = 'PKGLIBDIR')) f "
        "where f like 'auto_explain%'"
    ).fetchall():
        connection.execute("load 'auto_explain'")
        connection.execute("set auto_explain.log_min_duration = 0")
    connection.commit()
    asked_about_secrets(engine)
    log = postgres.log.read_text()[before:]
    assert "SELECT count(*)" in log and "COPY" in log
    assert not re.search(r"123[4-7]\.", log)
    left = "select relname from pg_class where relname like 'dpq%'"
    assert connection.execute(left).fetchall() == []
    connection.commit()
    constants = engine.constants()
    constants.hidden(1.5)
    with pytest.raises(Exception, match="syntax error"):
        engine.run("select error from from", constants)
    assert connection.execute(left).fetchall() == []


# Releases by group


def known_to(request, by):
    """Skip what a data base has no type for."""
    if {"when", "seen", "shift"} & set(by) and "sqlite" in request.node.name:
        pytest.skip("SQLite has no times with a zone, and none of the day")


# Keys that are missing, or floats, differ by type alone: one of them does, the gate runs all.
SOME_FAST = [
    pytest.param(name, marks=pytest.mark.slow)
    if ("missing" in name or "floats" in name) and name not in ("missing in pairs", "floats")
    else name
    for name in KEYS
]
# Parts of another arithmetic are those of whole columns: `test_states_are_those_of_the_records`.
BY_GROUP = [
    "text",
    "relation",
    "file",
    "random",
    *IBIS,
    "shifted sqlite_ibis",
    "shifted postgres_ibis",
]


@pytest.mark.parametrize("engine_of", BY_GROUP, indirect=True)
@pytest.mark.parametrize("name", SOME_FAST)
def test_members_and_single_groups_are_those_in_memory(name, engine_of, request):
    by, given = KEYS[name]
    known_to(request, by)
    table, groups = rows_of_groups(), Groups(given)
    queries = list(some_queries(np.random.default_rng(3), table.column("x").to_numpy()))
    asked = tuple((i % len(groups), query) for i, query in enumerate(queries * 2))
    tasks = [MembersTask("x", None, by, groups), EachGroupTask("x", None, by, groups, asked)]
    found, states = engine_of(table).answer(tasks)
    expected = [task.start() for task in tasks]
    for task, state in zip(tasks, expected, strict=True):
        task.step(state, table.column)
    for (_, query), state, own in zip(asked, states, expected[1], strict=True):
        assert_same(query, state, own)
    one, other = (
        sorted(
            zip(np.concatenate([[], *all.groups]), np.concatenate([[], *all.values]), strict=True)
        )
        for all in (found, expected[0])
    )
    assert one == other


@pytest.mark.parametrize(
    "by",
    [
        ("town",),
        ("flag",),
        ("year",),
        ("day",),
        ("when",),
        ("ward",),
        ("shift",),
        ("town", "flag"),
        ("day", "year"),
    ],
)
def test_keys_are_counted_as_in_memory(by, engine_of, request):
    known_to(request, by)
    table = rows_of_groups()
    task = KeyTask(by)
    (state,) = engine_of(table).answer([task])
    expected = task.start()
    task.step(expected, table.column)
    assert state.numbers == expected.numbers
    assert state.ordered().keys == expected.ordered().keys


@pytest.mark.parametrize("engine_of", BY_GROUP, indirect=True)
@pytest.mark.parametrize("few", [10, 2**16])
def test_releases_by_group_are_those_of_the_same_rows_elsewhere(few, engine_of, monkeypatch):
    """Where no dither is drawn, the order of rows makes no difference."""
    monkeypatch.setattr(grouping, "FEW_RECORDS", few)
    rows = rows_of_groups()
    tables = dpq.Table.of(rows), dpq.Table(engine_of(rows))
    asked = dict(epsilon=2.0, bounds=(-50, 50), rng=5)
    releases = [
        lambda t: dpq.quantile_by(t["x"], t["town"], 0.5, groups=["a", "ü", "z"], **asked),
        lambda t: dpq.quantile_by(t["x"], t["town", "year"], 0.5, groups=[("a", 2001)], **asked),
        lambda t: dpq.quantile_by(
            t["x"], t["year"], [0.2, 0.7], groups=[2000, 2002], resolution=0.0, **asked
        ),
        lambda t: dpq.quantile_by(t["x"], t["town"], 0.5, groups=None, delta=1e-6, **asked),
        lambda t: dpq.count_by(t["x"], t["flag"], groups=[True, False], epsilon=1.0, rng=1),
        lambda t: dpq.mean_by(
            t["x"], t["day"], groups=None, epsilon=2.0, delta=1e-6, upper=20, q=None, rng=1
        ),
    ]
    for release in releases:
        one, other = map(release, tables)
        assert one.groups.tolist() == other.groups.tolist() and len(one)
        np.testing.assert_array_equal(one.values, other.values)
    one, other = (
        dpq.describe(t, epsilon=9.0, bounds={"x": (-50, 50)}, by="town", groups=["a"], rng=3, q=0.5)
        for t in tables
    )
    assert one.values.tolist() == other.values.tolist()


@pytest.mark.parametrize("engine_of", ["text", *IBIS], indirect=True)
def test_statements_do_not_tell_which_groups_are_small(engine_of, monkeypatch):
    """With and without the group of a missing key, of those of a call."""
    engine, texts = engine_of(rows_of_groups()), []
    statement = engine._statement

    def noted(*arguments):
        text, ranges = statement(*arguments)
        texts.append(text)
        return text, ranges

    monkeypatch.setattr(engine, "_statement", noted)
    groups = Groups([None, 2000, 2001])
    for some in ([0, 1], [1, 2]):
        task = MembersTask("x", None, ("born",), groups.pick(np.array(some)))
        (found,) = engine.answer([task])
        expected = task.start()
        task.step(expected, rows_of_groups().column)
        assert np.concatenate(found.values).size == np.concatenate(expected.values).size > 0
    assert texts[0] == texts[1]


def test_which_groups_are_small_is_in_no_log_of_postgres(postgres, postgres_ibis):
    rows = pa.table({"x": np.arange(3.0), "town": ["hidden", "secret", "secret"]})
    engine = through_ibis(postgres_ibis, IBIS["postgres_ibis"])(rows)
    cursor = postgres_ibis.con.cursor()
    cursor.execute("SET log_statement = 'all'")
    postgres_ibis.con.commit()
    begin = postgres.log.stat().st_size
    groups = Groups(["hidden", "secret"]).pick(np.array([1]))
    (found,) = engine.answer([MembersTask("x", None, ("town",), groups)])
    assert sorted(np.concatenate(found.values)) == [1.0, 2.0]
    written = postgres.log.read_text()[begin:]
    assert "COPY" in written and "secret" not in written and "hidden" not in written
    cursor.execute("RESET log_statement")
    postgres_ibis.con.commit()
