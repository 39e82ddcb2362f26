"""Files with NaN, which statistics of Parquet leave out, whoever wrote and whoever reads them."""

import functools
import itertools

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpq_fast as dpq
from dpq_fast.data.queries import CellCounts, Sums
from dpq_fast.data.tasks import ColumnTask
from dpq_fast.mechanisms import grouping

ROWS, ROW_GROUP = 600, 100


def columns():
    """Records that statistics say too little of, and keys; some groups of rows have no NaN."""
    rng = np.random.default_rng(0)
    normal = rng.normal(20.0, 30.0, ROWS).round(1)
    some = np.arange(ROWS) // ROW_GROUP % 2 == 0
    nan = some & (rng.random(ROWS) < 0.3)
    null = rng.random(ROWS) < 0.2
    odd = rng.choice([0.0, -0.0, np.inf, -np.inf, 5e-324, 7.0], ROWS)
    found = {
        "normal": normal,
        "some": np.where(nan, np.nan, normal),
        "one": np.where(np.arange(ROWS) == 150, np.nan, normal),
        "same": np.where(nan, np.nan, 5.0),
        "zero": np.where(nan, np.nan, -0.0),
        "odd": np.where(nan, np.nan, odd),
        "group": np.where(some, np.nan, normal),
        "all": np.full(ROWS, np.nan),
        "null": pa.array(np.where(nan, np.nan, normal), mask=null),
        "same, null": pa.array(np.where(nan, np.nan, 5.0), mask=null),
        "single": np.where(nan, np.nan, normal).astype(np.float32),
        "town": rng.choice(["a", "b", "c"], ROWS).tolist(),
        "year": rng.integers(2000, 2003, ROWS),
        "day": np.datetime64("2020-01-01") + rng.integers(0, 3, ROWS),
        "ward": np.where(nan, np.nan, np.arange(ROWS) % 3),
    }
    return pa.table(found)


TABLE = columns()
RECORDS = [name for name in TABLE.column_names if name not in ("town", "year", "day", "ward")]
OPTIONS = dict(epsilon=2.0, bounds=(0, 1000), rng=7)
RELEASES = {
    "joint_exp": lambda x: dpq.joint_exp(x, [0.1, 0.5, 0.9], **OPTIONS),
    "quantiles": lambda x: dpq.quantile(x, np.arange(1, 30) / 30, **OPTIONS),
    "ind_exp": lambda x: dpq.ind_exp(x, [0.1, 0.5], **OPTIONS),
    "approx_quantiles": lambda x: dpq.approx_quantiles(x, [0.1, 0.5, 0.9], **OPTIONS),
    "two_stage": lambda x: dpq.two_stage(x, [0.1, 0.5, 0.9], **OPTIONS),
    "interval": lambda x: dpq.median(x, confidence=0.9, **OPTIONS),
    "few points": lambda x: dpq.median(x, resolution=0.5, **OPTIONS),
    "agg_tree": lambda x: dpq.agg_tree(x, [0.1, 0.5], **OPTIONS),
    "cdf": lambda x: dpq.cdf(x, **OPTIONS).quantile([0.2, 0.7]),
    "csmooth": lambda x: dpq.csmooth(x, 0.5, rho=0.5, bounds=(0, 1000), rng=7),
    "unbounded": lambda x: dpq.unbounded_quantile(x, [0.5, 0.9], epsilon=1.0, rng=7),
    "below": lambda x: dpq.unbounded_quantile(x, 0.01, epsilon=1.0, lower=None, rng=7),
    "mean": lambda x: dpq.mean(x, epsilon=1.0, lower=0, upper=1000, rng=7),
    "var": lambda x: dpq.var(x, epsilon=1.0, bounds=(0, 1000), rng=7),
    "sum": lambda x: dpq.sum(x, epsilon=1.0, rng=7),
    "count": lambda x: dpq.count(x, epsilon=1.0, rng=7),
}
CLIP = dict(q=None, lower=0, upper=1000, epsilon=2.0, rng=5)
BY_GROUP = {
    "count": lambda x, by, groups: dpq.count_by(x, by, groups=groups, epsilon=1.0, rng=5),
    "sum": lambda x, by, groups: dpq.sum_by(x, by, groups=groups, **CLIP),
    "mean": lambda x, by, groups: dpq.mean_by(x, by, groups=groups, **CLIP),
    "quantile": lambda x, by, groups: dpq.quantile_by(
        x, by, [0.2, 0.5], groups=groups, resolution=0.0, **OPTIONS
    ),
    "selected": lambda x, by, groups: dpq.quantile_by(
        x, by, 0.5, groups=None, delta=1e-6, **OPTIONS
    ),
}
KEYS = {
    ("town",): ["a", "c", "z"],
    ("town", "year"): [("a", 2000), ("b", 2002)],
    ("day",): np.array(["2020-01-01", "2020-01-03"], dtype="M8[D]"),
    ("ward",): [0, 2, 3],
    ("town", "ward"): [("a", 1), ("b", None)],
}

# Who writes a file, and who reads it: the fixture that it needs, if any, and a function.


def by_pyarrow(_, path, **options):
    pq.write_table(TABLE, path, row_group_size=ROW_GROUP, **options)


def by_polars(_, path, **options):
    pl.from_arrow(TABLE).write_parquet(path, row_group_size=ROW_GROUP, **options)


def by_pandas(_, path):
    """A file without null."""
    TABLE.to_pandas().to_parquet(path, row_group_size=ROW_GROUP)


def by_duckdb(_, path):
    people = TABLE
    with duckdb.connect() as connection:
        connection.register("people", people)
        connection.execute(f"COPY (FROM people) TO '{path}' (ROW_GROUP_SIZE {ROW_GROUP})")


def by_spark(spark, path):
    spark.createDataFrame(TABLE).coalesce(1).write.parquet(str(path))


WRITERS = {
    "pyarrow": (None, by_pyarrow),
    "pyarrow, page index": (None, functools.partial(by_pyarrow, write_page_index=True)),
    "pyarrow, no statistics": (None, functools.partial(by_pyarrow, write_statistics=False)),
    "polars": (None, by_polars),
    "polars, all statistics": (None, functools.partial(by_polars, statistics="full")),
    "polars, no statistics": (None, functools.partial(by_polars, statistics=False)),
    "pandas": (None, by_pandas),
    "duckdb": (None, by_duckdb),
    "spark": ("spark", by_spark),
}


def files_of(path):
    return f"{path}/*.parquet" if path.is_dir() else str(path)


def duckdb_text(_, path):
    return dpq.Table.of(f"FROM read_parquet('{files_of(path)}')", duckdb.connect())


def duckdb_relation(_, path):
    return dpq.Table.of(duckdb.connect().read_parquet(files_of(path)))


def duckdb_through_ibis(connection, path):
    return dpq.Table.of(connection.read_parquet(files_of(path)))


def dask_frame(_, path):
    import dask.dataframe

    return dpq.Table.of(dask.dataframe.read_parquet(path))


def ray_data_set(ray, path):
    import ray.data

    return dpq.Table.of(ray.data.read_parquet(str(path)))


READERS = {
    "DuckDB": (None, duckdb_text),
    "DuckDB, relation": (None, duckdb_relation),
    "path": (None, lambda _, path: dpq.Table.of(path)),
    "data set": (None, lambda _, path: dpq.Table.of(ds.dataset(path))),
    "scan": (None, lambda _, path: dpq.Table.of(pl.scan_parquet(files_of(path)))),
    "DuckDB through ibis": ("duckdb_ibis", duckdb_through_ibis),
    "polars through ibis": ("ibis_polars", duckdb_through_ibis),
    "Dask": ("dask_synchronous", dask_frame),
    "Spark": ("spark", lambda spark, path: dpq.Table.of(spark.read.parquet(str(path)))),
    "Ray": ("ray_cluster", ray_data_set),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.fixture
def file(request, folder):
    """Gives the path of the file of a writer, which is written once."""

    def written(writer):
        engine, write = WRITERS[writer]
        path = folder / f"{writer}.parquet"
        if not path.exists():
            write(request.getfixturevalue(engine) if engine else None, path)
        return path

    return written


@pytest.fixture
def reading(request, file):
    """Gives the table of a reader, of the file of a writer."""

    def table(reader, writer):
        engine, read = READERS[reader]
        return read(request.getfixturevalue(engine) if engine else None, file(writer))

    return table


@functools.cache
def expected(name, column):
    return RELEASES[name](dpq.Table.of(TABLE)[column])


PAIRS = [
    pytest.param(
        *(reader, writer, engine, other),
        id=f"{reader} of {writer}",
        marks=pytest.mark.slow if reader == "DuckDB, relation" else (),
    )
    for reader, (engine, _) in READERS.items()
    for writer, (other, _) in WRITERS.items()
]
pairs = pytest.mark.parametrize(("reader", "writer", "engine", "other"), PAIRS)
# Releases follow from the states, which are compared for all pairs; clusters take their time.
CLUSTERS = {"Dask", "Spark", "Ray"}
readers = pytest.mark.parametrize(
    ("reader", "writer", "engine", "other"),
    [pair for pair in PAIRS if pair.values[1] == "pyarrow" and pair.values[0] not in CLUSTERS],
)


QUERIES = (
    Sums(1.0, 0, 1000),
    CellCounts(0.0, 1000.0, np.array([0.0]), np.array([1000.0]), 4),
    CellCounts(0.0, 1000.0, np.array([5.0, 20.0]), np.array([5.0, 30.0]), 4),
)


@pairs
def test_nan_of_files_is_missing(reader, writer, engine, other, reading):
    """In sums and numbers of records, and in cells, of all records and of those in ranges."""
    tasks = [ColumnTask(column, None, query) for column in RECORDS for query in QUERIES]
    own = dpq.Table.of(TABLE).answer(tasks)
    for task, state, answer in zip(tasks, reading(reader, writer).answer(tasks), own, strict=True):
        if isinstance(task.query, Sums):
            assert state == answer, task
        else:
            last = len(answer.count) - (task.query.lo.size > 1)  # NaN is counted with all alone
            np.testing.assert_array_equal(state.count[:last], answer.count[:last])
            np.testing.assert_array_equal(state.least, answer.least)
            np.testing.assert_array_equal(state.most, answer.most)


@pytest.mark.slow
@readers
@pytest.mark.parametrize("name", RELEASES)
def test_releases_leave_nan_of_files_out(name, reader, writer, engine, other, reading):
    table = reading(reader, writer)
    for column in RECORDS:
        answer = RELEASES[name](table[column])
        np.testing.assert_array_equal(answer, expected(name, column), column)


@pytest.mark.parametrize("name", RELEASES)
def test_releases_in_duckdb_leave_nan_of_files_out(name, reading):
    table = reading("DuckDB", "pyarrow")
    for column in ("some", "same"):
        answer = RELEASES[name](table[column])
        np.testing.assert_array_equal(answer, expected(name, column), column)


@pytest.mark.slow
@readers
@pytest.mark.parametrize("few", [10, 2**16])
def test_groups_leave_nan_of_files_out(few, reader, writer, engine, other, reading, monkeypatch):
    """Every release of every column, by all keys in turn."""
    pairs = itertools.product(BY_GROUP, RECORDS)  # 11 columns: each release has them by all keys
    asked = [(*pair, by) for pair, by in zip(pairs, itertools.cycle(KEYS), strict=False)]
    compare_groups(few, reading(reader, writer), monkeypatch, asked)


@pytest.mark.parametrize("few", [10, 2**16])
@pytest.mark.parametrize("by", KEYS)
def test_groups_in_duckdb_leave_nan_of_files_out(by, few, reading, monkeypatch):
    asked = itertools.product(BY_GROUP, ["some"], [by])
    compare_groups(few, reading("DuckDB", "pyarrow"), monkeypatch, asked)


def compare_groups(few, table, monkeypatch, asked):
    monkeypatch.setattr(grouping, "FEW_RECORDS", few)
    for name, column, by in asked:
        found = BY_GROUP[name](table[column], table[by], KEYS[by])
        answer = expected_by_group(name, column, by, few)
        assert found.groups.tolist() == answer.groups.tolist()
        np.testing.assert_array_equal(found.values, answer.values, f"{name} of {column}")


@functools.cache
def expected_by_group(name, column, by, few):
    """By this process, which has set `few`."""
    own = dpq.Table.of(TABLE)
    return BY_GROUP[name](own[column], own[by], KEYS[by])
