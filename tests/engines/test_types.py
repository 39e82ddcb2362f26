"""Types of columns are public: what is none of a release is refused before the charge."""

import datetime as dt

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpq_fast as dpq

DAY = dt.date(2020, 1, 2)
ROWS = pa.table(
    {
        "text": pa.array(["a", None, "b"]),
        "nested": pa.array([[1], None, []], pa.list_(pa.int64())),
        "record": pa.array([{"a": 1}, None, None]),
        "bytes": pa.array([b"a", None, b""]),
        "clock": pa.array([1, None, 2], pa.time64("us")),
        "day": pa.array([DAY, None, DAY]),
        "zoned": pa.array([0, None, 2], pa.timestamp("us", "UTC")),
        "length": pa.array([1, None, 2], pa.duration("us")),
        "x": [1.0, None, 2.0],
    }
)
NUMBERS, TIMES = (0.0, 1.0), (DAY, DAY + dt.timedelta(days=9))
ZONED = tuple(dt.datetime(year, 1, 1, tzinfo=dt.timezone.utc) for year in (2020, 2021))
LENGTHS = dt.timedelta(0), dt.timedelta(days=9)
# What is none of numbers, of times, of times with a zone, and of durations; and of keys.
REFUSED = [
    *((name, NUMBERS) for name in ROWS.column_names if name != "x"),
    *((name, TIMES) for name in ROWS.column_names if name != "day"),
    *((name, ZONED) for name in ROWS.column_names if name != "zoned"),
    *((name, LENGTHS) for name in ROWS.column_names if name != "length"),
]
NO_KEYS = ["nested", "record", "bytes", "length"]


def refuses(table, refused=REFUSED, no_keys=NO_KEYS):
    """All releases of what is refused leave the budget as it is, and say what the rule is."""
    accountant = dpq.privacy.Accountant(epsilon=3.0)
    asked = dict(epsilon=1.0, accountant=accountant)
    for name, bounds in refused:
        place = asked | dict(bounds=bounds)
        for release in (
            lambda x, place=place: dpq.median(x, **place),
            lambda x, place=place: dpq.agg_tree(x, [0.5], **place),
            lambda x, place=place: dpq.quantile_by(x, table["x"], 0.5, groups=[1], **place),
        ):
            with pytest.raises(TypeError, match=r"^(x|by) must hold .*, got (dtype|type) "):
                release(table[name])
    for name in no_keys:
        for groups in (["a"], None):
            options = asked | (dict(delta=1e-6) if groups is None else {})
            with pytest.raises(TypeError, match=r"^by must hold .*, got (dtype|type) "):
                dpq.count_by(table["x"], table[name], groups=groups, **options)
        with pytest.raises(TypeError, match=r"^by must hold .*, got (dtype|type) "):
            dpq.select_keys(table[name], delta=1e-6, **asked)
    with pytest.raises(TypeError, match="groups must be strings as the column by is, got integers"):
        dpq.count_by(table["x"], table["text"], groups=[1], **asked)
    assert accountant.spent.epsilon == 0.0


def test_pyarrow_refuses_types_before_the_charge(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(ROWS, path)
    for source in (ds.dataset(ROWS), path, pq.ParquetFile(path)):
        refuses(dpq.Table.of(source))


def test_polars_refuses_types_before_the_charge():
    refuses(dpq.Table.of(pl.from_arrow(ROWS).lazy()))


def test_polars_refuses_bounds_of_another_kind_before_the_charge():
    frame = pl.LazyFrame({"big": pl.Series([1, None], dtype=pl.Int128)})
    refuses_times(dpq.Table.of(frame)["big"])


def refuses_times(x):
    accountant = dpq.privacy.Accountant(epsilon=3.0)
    with pytest.raises(TypeError, match="x must hold times without a zone, got dtype"):
        dpq.median(x, bounds=TIMES, epsilon=1.0, accountant=accountant)
    assert accountant.spent.epsilon == 0.0


def test_duckdb_refuses_types_before_the_charge():
    import duckdb

    connection = duckdb.connect()
    connection.register("people", ROWS)
    for source in (connection.table("people"), "from people"):
        given = () if source != "from people" else (connection,)
        refuses(dpq.Table.of(source, *given))


@pytest.mark.parametrize("engine", ["duckdb_ibis", "postgres_ibis", "sqlite_ibis"])
def test_data_bases_refuse_types_before_the_charge(engine, request):
    connection = request.getfixturevalue(engine)
    columns = {
        "text": "TEXT",
        "clock": "TIME",
        "day": "DATE",
        "bytes": "BLOB" if engine != "postgres_ibis" else "BYTEA",
        "x": "DOUBLE PRECISION",
    }
    if engine != "sqlite_ibis":
        columns |= {"nested": "INTEGER[]", "length": "INTERVAL", "zoned": "TIMESTAMPTZ"}
    declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    cursor = connection.con.cursor()
    cursor.execute("DROP TABLE IF EXISTS people")
    cursor.execute(f"CREATE TABLE people ({declared})")
    connection.con.commit()
    refused = [(name, bounds) for name, bounds in REFUSED if name in columns]
    no_keys = [name for name in NO_KEYS if name in columns]
    if engine == "sqlite_ibis":
        no_keys.append("clock")
    for table in (
        dpq.Table.of(connection.table("people")),
        dpq.Table.of("select * from people", connection),
    ):
        refuses(table, refused, no_keys)
        assert abs(dpq.count(table["text"], epsilon=1e6, rng=0)) == 0


def test_dask_refuses_types_before_the_charge(dask_synchronous):
    import dask.array
    import dask.dataframe
    import pandas as pd

    frame = ROWS.to_pandas(types_mapper=pd.ArrowDtype)
    refuses(dpq.Table.of(dask.dataframe.from_pandas(frame, npartitions=2)))
    refuses_times(dask.array.from_array(np.array([1.0, np.nan])))


def test_ray_refuses_types_before_the_charge(ray_cluster):
    import ray.data

    refuses(dpq.Table.of(ray.data.from_arrow(ROWS)))


def test_spark_refuses_types_before_the_charge(spark):
    from pyspark.sql import functions

    frame = spark.createDataFrame(
        [(1.0, "a", [1], b"a", DAY, dt.timedelta(1), {"a": 1})],
        "x double, text string, nested array<int>, bytes binary, day date, "
        "length interval day to second, map map<string, int>",
    )
    frame = frame.withColumn("zoned", functions.lit(0).cast("timestamp"))
    frame = frame.withColumn("months", functions.expr("interval '1' month"))
    frame = frame.withColumn("calendar", functions.expr("make_interval(1, 2)"))
    names = frame.columns
    refused = [(name, bounds) for name, bounds in REFUSED if name in names]
    others = ["months", "calendar", "map"]
    refused += [(name, bounds) for name in others for bounds in (NUMBERS, LENGTHS)]
    no_keys = [*others, *(name for name in NO_KEYS if name in names)]
    table = dpq.Table.of(frame)
    refuses(table, refused, no_keys)
    with pytest.raises(TypeError, match=r"x must hold .*, got type interval month$"):
        dpq.count(table["months"], epsilon=1.0)
    assert dpq.count(table["length"], epsilon=1e6, rng=0) == 1
