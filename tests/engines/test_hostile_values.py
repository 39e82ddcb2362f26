"""Values that are far away or odd, as records and as keys: none of them ends a release."""

import datetime as dt
import math
from decimal import Decimal
from functools import partial

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import dpq_fast as dpq

USUAL = 30
LARGEST = float(np.finfo(float).max)
ZONE = dt.timezone.utc
DAYS = dt.datetime(2000, 1, 1), dt.datetime(2030, 1, 1)
BOUNDS = {
    "numbers": (0, 100),
    "times": DAYS,
    "zoned": tuple(day.replace(tzinfo=ZONE) for day in DAYS),
    "durations": (dt.timedelta(0), dt.timedelta(days=9)),
}
SAME = dict(epsilon=1.0, rng=1)
RELEASES = {
    "count": lambda x, bounds: dpq.count(x, **SAME),
    "quantile": lambda x, bounds: dpq.joint_exp(x, [0.1, 0.5], bounds=bounds, **SAME),
    "ind_exp": lambda x, bounds: dpq.ind_exp(x, 0.5, bounds=bounds, **SAME),
    "approx_quantiles": lambda x, bounds: dpq.approx_quantiles(
        x, [0.1, 0.5], bounds=bounds, **SAME
    ),
    "two_stage": lambda x, bounds: dpq.two_stage(x, [0.1, 0.5], bounds=bounds, **SAME),
    "interval": lambda x, bounds: dpq.median(x, bounds=bounds, confidence=0.9, **SAME),
    "agg_tree": lambda x, bounds: dpq.agg_tree(x, [0.5], bounds=bounds, **SAME),
    "csmooth": lambda x, bounds: dpq.csmooth(x, 0.5, rho=0.5, bounds=bounds, rng=1),
}
OF_NUMBERS = {
    "cdf": lambda x, bounds: dpq.cdf(x, bounds=bounds, **SAME),
    "prior": lambda x, bounds: dpq.median(x, bounds=bounds, prior="uniform", **SAME),
    "unbounded": lambda x, bounds: dpq.unbounded_quantile(x, [0.2, 0.9], **SAME),
    "below": lambda x, bounds: dpq.unbounded_quantile(x, 0.1, lower=None, **SAME),
    "mean": lambda x, bounds: dpq.mean(x, lower=-5, upper=5, **SAME),
    "sum": lambda x, bounds: dpq.sum(x, **SAME),
}
MANY = dict(epsilon=50.0, delta=0.1, rng=1)
BY_KEY = {
    "count": lambda y, by, keys: dpq.count_by(y, by, groups=keys, **SAME),
    "sum": lambda y, by, keys: dpq.sum_by(y, by, groups=keys, **SAME),
    "mean": lambda y, by, keys: dpq.mean_by(y, by, groups=keys, lower=0, upper=5, q=None, **SAME),
    "quantile": lambda y, by, keys: dpq.quantile_by(y, by, 0.5, groups=keys, bounds=(0, 5), **SAME),
}
SELECTED = {
    "count": lambda y, by: dpq.count_by(y, by, groups=None, **MANY),
    "quantile": lambda y, by: dpq.quantile_by(y, by, 0.5, groups=None, bounds=(0, 5), **MANY),
    "keys": lambda y, by: dpq.select_keys(by, **MANY),
}

# What a column declares: what its records are, if they may be records, a usual value and its key,
# if it may be one, and odd values. All as the data base writes them.
INFINITE = ["'infinity'", "'-infinity'"]
LONG = ["'-0.0'", "9007199254740994", "9223372036854775808", "-9223372036854775808", "1e300"]
FLOATS_OF_SQL = {"FLOAT", "DOUBLE", "REAL", "DOUBLE PRECISION"}
DAY = "'2020-01-02'"
DUCKDB = {
    "BOOLEAN": ("numbers", "true", True, ["false"]),
    "TINYINT": ("numbers", "1", 1, ["-128", "127"]),
    "UTINYINT": ("numbers", "1", 1, ["255"]),
    "INTEGER": ("numbers", "1", 1, ["-2147483648", "2147483647"]),
    "BIGINT": ("numbers", "1", 1, ["-9223372036854775808", "9223372036854775807"]),
    "UBIGINT": ("numbers", "1", 1, ["18446744073709551615", "9223372036854775808"]),
    "HUGEINT": ("numbers", "1", None, [f"{-(2**127)}", f"{2**127 - 1}"]),
    "UHUGEINT": ("numbers", "1", None, [f"{2**128 - 1}"]),
    "FLOAT": ("numbers", "1", 1, ["'nan'", *INFINITE, "1e-45", "-3.4028235e38", "'-0.0'"]),
    "DOUBLE": ("numbers", "1", 1, ["'nan'", *INFINITE, "5e-324", "-5e-324", f"{LARGEST}", *LONG]),
    "DECIMAL(4,1)": ("numbers", "1", None, ["999.9", "-999.9"]),
    "DECIMAL(18,18)": ("numbers", "0.1", None, [f"0.{'9' * 18}", f"-0.{'0' * 17}1"]),
    "DECIMAL(38,0)": ("numbers", "1", None, ["9" * 38, f"-{'9' * 38}"]),
    "DECIMAL(38,38)": ("numbers", "0.1", None, [f"'0.{'9' * 38}'", f"'-0.{'0' * 37}1'"]),
    "DATE": (
        *("times", DAY, dt.date(2020, 1, 2)),
        [*INFINITE, "'5881580-07-10'", "'5877642-06-25 (BC)'", "'9999-12-31'", "'10000-01-01'"],
    ),
    "TIMESTAMP_S": (
        *("times", DAY, dt.date(2020, 1, 2)),
        [*INFINITE, "'9999-12-31'", "'1677-01-01'", "'290000-01-01 (BC)'", "'294247-01-10'"],
    ),
    "TIMESTAMP_MS": (
        *("times", DAY, dt.date(2020, 1, 2)),
        [*INFINITE, "'9999-12-31'", "'1677-01-01'", "'290000-01-01 (BC)'", "'294247-01-10'"],
    ),
    "TIMESTAMP": (
        *("times", DAY, dt.date(2020, 1, 2)),
        [*INFINITE, "'9999-12-31'", "'294247-01-10 04:00:54.775806'", "'290309-12-22 (BC)'"],
    ),
    "TIMESTAMP_NS": (
        *("times", DAY, dt.date(2020, 1, 2)),
        [*INFINITE, "'2262-04-11 23:47:16.854775806'", "'1677-09-22'"],
    ),
    "TIMESTAMPTZ": (
        *("zoned", "'2020-01-02 00:00:00+00'", dt.datetime(2020, 1, 2, tzinfo=ZONE)),
        [
            *(*INFINITE, "'294247-01-10 04:00:54.775806+00'", "'290309-12-22 (BC) 00:00:00+00'"),
            "'9999-12-31 00:00:00+15:59:59'",
        ],
    ),
    "TIME": (None, "'08:00'", dt.time(8), ["'00:00'", "'24:00'", "'23:59:59.999999'"]),
    "INTERVAL": (
        *("durations", "'1 day'", None),
        [
            *("'178956970 years'", "'2147483647 months -2147483648 days'", "'-2147483648 months'"),
            "'2147483647 months 2147483647 days 9223372036854775807 microseconds'",
        ],
    ),
    "VARCHAR": (
        *(None, "'a'", "a"),
        ["''", "chr(0) || 'a'", "'a' || chr(0)", "repeat('ä', 1000000)", "chr(1114111)", "'nan'"],
    ),
    "ENUM('a', 'nan', '')": (None, "'a'", "a", ["'nan'", "''"]),
}
POSTGRES = {
    "BOOLEAN": ("numbers", "true", True, ["false"]),
    "SMALLINT": ("numbers", "1", 1, ["-32768", "32767"]),
    "BIGINT": ("numbers", "1", 1, ["-9223372036854775808", "9223372036854775807"]),
    "REAL": ("numbers", "1", 1, ["'nan'", *INFINITE, "'1e-45'", "'-0.0'"]),
    "DOUBLE PRECISION": (
        *("numbers", "1", 1),
        ["'nan'", *INFINITE, "'5e-324'", f"'{LARGEST}'", *LONG],
    ),
    "NUMERIC": (
        *("numbers", "1", None),
        ["'nan'", *INFINITE, "1e400", "-1e400", "1e-400", "3e-324", "-2e-324", "9" * 76],
    ),
    "NUMERIC(76, 38)": ("numbers", "1", None, [f"{'9' * 38}.{'9' * 38}", f"-0.{'0' * 37}1"]),
    "DATE": (
        *("times", DAY, dt.date(2020, 1, 2)),
        [*INFINITE, "'4714-11-24 BC'", "'5874897-12-31'", "'9999-12-31'", "'10000-01-01'"],
    ),
    "TIMESTAMP": (
        *("times", DAY, dt.date(2020, 1, 2)),
        [*INFINITE, "'4714-11-24 BC'", "'294276-12-31 23:59:59.999999'", "'10000-01-01'"],
    ),
    "TIMESTAMPTZ": (
        *("zoned", "'2020-01-02 00:00:00+00'", dt.datetime(2020, 1, 2, tzinfo=ZONE)),
        [
            *(*INFINITE, "'4714-11-24 00:00:00+00 BC'", "'294276-12-31 23:59:59.999999+00'"),
            *("'9999-12-31 23:00:00-15:59:59'", "'0001-01-01 00:00:00+15:59:59'"),
        ],
    ),
    "TIME": (None, "'08:00'", dt.time(8), ["'00:00'", "'24:00'", "'23:59:59.999999'"]),
    "INTERVAL": (
        *("durations", "'1 day'", None),
        ["'178000000 years'", "'-178000000 years'", "'2147483647 months -2147483648 days'"],
    ),
    "TEXT": (None, "'a'", "a", ["''", "repeat('ä', 1000000)", "chr(1114111)", "'nan'"]),
}
# A column may hold anything there.
ANYTHING = ["'nan'", "'now'", "''", "x'ff00'", "cast(x'ff00' as text)", "9e999", "-9e999", "1e308"]
ANYTHING += ["9223372036854775807", "-9223372036854775808", "2", "0.5", "5e-324", "'9999-12-31'"]
ANYTHING += ["'10000-01-01'", "'-0044-03-15'", "'2020-02-31'", "'20200102'", "char(0) || 'a'"]
SQLITE = {
    "BOOLEAN": ("numbers", "1", True, ANYTHING),
    "INTEGER": ("numbers", "1", 1, ANYTHING),
    "REAL": ("numbers", "1.0", 1, ANYTHING),
    "DECIMAL(38, 10)": ("numbers", "1.0", None, ANYTHING),
    "DATE": ("times", DAY, dt.date(2020, 1, 2), ANYTHING),
    "TIMESTAMP": ("times", "'2020-01-02 00:00:00.5'", None, ANYTHING),
    "TEXT": (None, "'a'", "a", [*ANYTHING, "replace(hex(zeroblob(500000)), '0', 'ä')"]),
}


def table_in(connection, declared, usual, odd):
    """A table of some usual rows, two of each odd value, and one without a value."""
    rows = [*[usual] * USUAL, *odd * 2, "null"]
    cast = "{}" if connection.name == "sqlite" else "cast({} as " + declared + ")"
    values = ", ".join(f"({cast.format(value)}, 'a', 1.0)" for value in rows)
    cursor = connection.con.cursor()
    cursor.execute("drop table if exists odd")
    cursor.execute(f"create table odd (x {declared}, town text, y double precision)")
    cursor.execute(f"insert into odd values {values}")
    connection.con.commit()
    return dpq.Table.of(connection.table("odd"))


class InDuckDB:
    """A connection of DuckDB, as ibis holds one."""

    name = "duckdb"

    def __init__(self):
        self.con = duckdb.connect()

    def table(self, name):
        return self.con.table(name)


# Of those that ended releases once; the gate runs all.
QUICK = {"DATE", "TIMESTAMP_S", "INTERVAL", "date32", "date64"}


def slow_unless_quick(*values, quick, **more):
    return pytest.param(*values, marks=() if quick in QUICK else pytest.mark.slow, **more)


@pytest.mark.parametrize("declared", [slow_unless_quick(name, quick=name) for name in DUCKDB])
def test_no_value_in_duckdb_ends_a_release(declared):
    released(InDuckDB(), declared, DUCKDB[declared])


@pytest.mark.parametrize("declared", DUCKDB)
def test_no_value_in_duckdb_through_ibis_ends_a_release(declared, duckdb_ibis):
    released(duckdb_ibis, declared, DUCKDB[declared])


@pytest.mark.parametrize("declared", POSTGRES)
def test_no_value_in_postgres_ends_a_release(declared, postgres_ibis):
    released(postgres_ibis, declared, POSTGRES[declared])


@pytest.mark.parametrize("declared", SQLITE)
def test_no_value_in_sqlite_ends_a_release(declared, sqlite_ibis):
    released(sqlite_ibis, declared, SQLITE[declared])


def released(connection, declared, what):
    """All releases of a column of usual and odd values."""
    records, usual, key, odd = what
    table = table_in(connection, declared, usual, odd)
    if records is not None:
        bounds = BOUNDS[records]
        for release in (RELEASES | (OF_NUMBERS if records == "numbers" else {})).values():
            release(table["x"], bounds)
        found = dpq.quantile_by(table["x"], table["town"], 0.5, groups=["a"], bounds=bounds, **SAME)
        assert len(found) == 1
        assert USUAL <= dpq.count(table["x"], epsilon=1e6, rng=0) <= USUAL + 2 * len(odd)
    if key is not None:
        for release in BY_KEY.values():
            release(table["y"], table["x"], [key])
        for select in SELECTED.values():
            select(table["y"], table["x"])
        number = dpq.count_by(table["y"], table["x"], groups=[key, None], epsilon=1e6, rng=0)
        nan = connection.name != "sqlite" and declared in FLOATS_OF_SQL and "'nan'" in odd
        assert (number[key], number[None]) == (USUAL, 1 + 2 * nan)


# Types of Arrow, for engines that make a pass over its batches: a usual value, and odd ones; times
# in steps.
ENDS = [-(2**63), 2**63 - 1, -(2**63) + 1, 2**62, -(2**62), 253_402_214_400, 253_402_300_800]
FLOATS = [math.nan, math.inf, -math.inf, -0.0]
ARROW = {
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [1, -128, 127]),
    "int64": (pa.int64(), [1, -(2**63), 2**63 - 1]),
    "uint64": (pa.uint64(), [1, 2**64 - 1, 2**63]),
    "half": (pa.float16(), [1.0, 65504.0, 6e-8, *FLOATS]),
    "float": (pa.float32(), [1.0, 3.4028234663852886e38, 1e-45, *FLOATS]),
    "double": (pa.float64(), [1.0, LARGEST, -LARGEST, 5e-324, *FLOATS]),
    "decimal32": (pa.decimal32(9, 2), [Decimal("1.00"), Decimal("9999999.99")]),
    "decimal128": (pa.decimal128(38, 0), [Decimal(1), Decimal("9" * 38), Decimal(f"-{'9' * 38}")]),
    "decimal256": (pa.decimal256(76, 0), [Decimal(1), Decimal("9" * 76), Decimal(f"-{'9' * 76}")]),
    "small decimal256": (pa.decimal256(76, 76), [Decimal("0.5"), Decimal("1e-76")]),
    "date32": (pa.date32(), [18_263, -(2**31), 2**31 - 1, 2_932_897, -719_163]),
    "date64": (pa.date64(), [day * 86_400_000 for day in (18_263, 10**11, -(10**11), -719_163)]),
    **{
        f"{make.__name__} {step}": (make(step), [1_577_923_200 * 10**place, *ENDS])
        for make in (pa.timestamp, pa.duration)
        for place, step in ((0, "s"), (3, "ms"), (6, "us"), (9, "ns"))
    },
    "zoned": (pa.timestamp("us", "UTC"), [1_577_923_200 * 10**6, *ENDS]),
    "odd zone": (pa.timestamp("us", "+15:59"), [1_577_923_200 * 10**6, *ENDS]),
    "string": (pa.string(), ["a", "", "\0a", "a\0", "ä" * 10**6, "\U0010ffff", "nan"]),
    "large_string": (pa.large_string(), ["a", "", "\0a", "ä" * 10**6]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "", "\0a", "ä" * 10**6]),
    "binary": (pa.binary(), [b"a", b"", b"\xff\0"]),
    "list": (pa.list_(pa.int64()), [[1], [], [2**63 - 1]]),
    "time": (pa.time64("ns"), [0, 86_399_999_999_999]),
    "null": (pa.null(), [None]),
}


def arrow(declared, items):
    """An array of Arrow, of times from their steps."""
    if pa.types.is_temporal(declared):
        whole = pa.int32() if pa.types.is_date32(declared) else pa.int64()
        return pa.array(items, whole).cast(declared)
    if pa.types.is_dictionary(declared):
        return pa.array(items, declared.value_type).dictionary_encode().cast(declared)
    if pa.types.is_float16(declared):
        items = [None if item is None else np.float16(item) for item in items]
    return pa.array(items, declared)


def bounds_of(declared):
    if pa.types.is_duration(declared):
        return BOUNDS["durations"]
    if pa.types.is_timestamp(declared) and declared.tz is not None:
        return BOUNDS["zoned"]
    return BOUNDS["times" if pa.types.is_temporal(declared) else "numbers"]


# Of clusters.
FEW = ["count", "quantile"]


def ended(call):
    """What ends a call, if anything does."""
    try:
        call()
    except Exception as error:
        return type(error)
    return None


def ends(table, declared, few):
    """What ends the releases of a table's columns x and y by each other, or a few of them."""
    bounds = bounds_of(declared)
    everything = RELEASES | OF_NUMBERS
    calls = [
        *(partial(everything[one], table["x"], bounds) for one in (FEW if few else everything)),
        partial(
            *(dpq.quantile_by, table["x"], table["town"], 0.5),
            **SAME | dict(groups=["a"], bounds=bounds),
        ),
        *(
            partial(BY_KEY[one], table["y"], table["x"], [key])
            for one in (FEW if few else BY_KEY)
            for key in ("a", 1, True, dt.date(2020, 1, 2), BOUNDS["zoned"][0])
        ),
        *(partial(SELECTED[one], table["y"], table["x"]) for one in (FEW if few else SELECTED)),
    ]
    return list(map(ended, calls))


def in_arrow(declared, items):
    rows = [*items[:1] * USUAL, *items[1:] * 2, None]
    return pa.table({"x": arrow(declared, rows), "town": ["a"] * len(rows), "y": [1.0] * len(rows)})


def dask_frame(_, table):
    import dask.dataframe
    import pandas as pd

    return dask.dataframe.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=2)


# Types that Spark takes as they are: others it converts itself, and may refuse a value.
OF_SPARK = {"bool", "int8", "int64", "float", "double", "decimal32", "decimal128", "date32"}
OF_SPARK |= {"timestamp us", "duration us", "zoned", "odd zone", "string", "large_string"}
# Where rows lie, the fixture that it needs, and the types that it has not.
PLACES = {
    "data set": (None, set(), lambda _, table: ds.dataset(table)),
    "lazy frame": (
        *(None, {"decimal256", "small decimal256", "odd zone"}),
        lambda _, table: pl.from_arrow(table).lazy(),
    ),
    "Dask": ("dask_synchronous", set(), dask_frame),
    "Ray": ("ray_cluster", set(), lambda ray, table: ray.data.from_arrow(table)),
    "Spark": (
        *("spark", ARROW.keys() - OF_SPARK),
        lambda spark, table: spark.createDataFrame(table),
    ),
}


@pytest.mark.parametrize(
    ("name", "place", "engine"),
    [
        slow_unless_quick(name, place, engine, id=f"{name} in {place}", quick=name)
        for place, (engine, lacking, _) in PLACES.items()
        for name in ARROW
        if name not in lacking
    ],
)
def test_no_value_of_arrow_ends_a_release(name, place, engine, request):
    """Nothing but the type of a column says whether a release of it ends with an error.

    What workers of clusters do with a column is what this process does: a few releases tell.
    """
    declared, items = ARROW[name]
    server = request.getfixturevalue(engine) if engine else None
    usual, odd = (
        ends(
            dpq.Table.of(PLACES[place][-1](server, in_arrow(declared, some))),
            declared,
            bool(engine),
        )
        for some in (items[:1], items)
    )
    assert usual == odd
