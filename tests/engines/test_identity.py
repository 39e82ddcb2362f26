"""The same records, wherever they lie: the same cells, windows, intervals, laws and draws.

Not similar ones: identical, bit for bit. Cells are compared after the first pass and after those
that count some of them again.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import pathlib
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpq_fast as dpq
from dpq_fast.data.tables import ENGINES
from dpq_fast.orders.cells import CountedCells
from dpq_fast.orders.selected import SelectedOrder

FEW = 20_000
MANY = 10_000_000
# Of data bases that take tens of seconds for each of many statements; more than the records that
# are collected at once, so that cells are counted again.
SLOW = {"sqlite": 1_200_000, "postgres": 1_200_000}
FILES = 8
# Megabytes of the process that asks. Some 100 are the engine's, which reads ahead as it likes; a
# column of so many records would be 80 more.
DRIVER = 250


def column(n):
    """Numbers with ties, infinities and NaN."""
    rng = np.random.default_rng(1)
    x = rng.normal(0.0, 5.0, n)
    x[::10] = np.round(x[::10])
    x[5::1_000] = np.nan
    x[7::5_000] = np.inf
    x[9::5_000] = -np.inf
    x[11::5_000] = -0.0
    return x


# Where records may lie: the fixture that it needs, if any, and how an engine gets them from files.


def dask_frame(dask, files):
    import dask.dataframe

    return dask.dataframe.read_parquet(files)


def dask_array(dask, files):
    return dask_frame(dask, files)["x"].to_dask_array()


def duckdb_relation(_, files):
    import duckdb

    return duckdb.connect().read_parquet(f"{files}/*.parquet")


def ibis_table(connection, files):
    """A table of a connection of ibis, written by its own library, which is faster."""
    own, rows = connection.con, ds.dataset(files).to_table()
    cursor = own.cursor()
    cursor.execute("DROP TABLE IF EXISTS records")
    if connection.name == "duckdb":
        own.execute(f"CREATE TABLE records AS FROM read_parquet('{files}/*.parquet')")
        return connection.table("records")
    cursor.execute("CREATE TABLE records (x DOUBLE PRECISION)")
    if connection.name == "sqlite":
        for batch in rows.to_batches(2**16):
            values = batch["x"].to_numpy().tolist()
            cursor.executemany("INSERT INTO records VALUES (?)", [(value,) for value in values])
    else:
        text = io.BytesIO()
        csv.write_csv(rows, text, csv.WriteOptions(include_header=False))
        with cursor.copy("COPY records FROM STDIN") as copy:
            copy.write(text.getvalue())
    own.commit()
    return connection.table("records")


def polars_scan(_, files):
    import polars

    return polars.scan_parquet(files)


def ray_data_set(ray, files):
    import ray.data

    return ray.data.read_parquet(str(files))


IN_MEMORY = {
    "mapping": (None, lambda _, files: {"x": ds.dataset(files).to_table()["x"].to_numpy()}),
    "pandas": (None, lambda _, files: ds.dataset(files).to_table().to_pandas()),
    "polars": (None, lambda _, files: polars_scan(_, files).collect()),
    "pyarrow": (None, lambda _, files: ds.dataset(files).to_table()),
}
PLACES = IN_MEMORY | {
    "polars-lazy": (None, polars_scan),
    "arrow": (None, lambda _, files: ds.dataset(files)),
    "parquet": (None, lambda _, files: files),
    "duckdb": (None, duckdb_relation),
    "duckdb-sql": ("duckdb_ibis", ibis_table),
    "sqlite": ("sqlite_ibis", ibis_table),
    "postgres": ("postgres_ibis", ibis_table),
    "dask-array": ("dask_synchronous", dask_array),
    "dask-frame": ("dask_synchronous", dask_frame),
    "dask-cluster": ("dask_cluster", dask_frame),
    "spark": ("spark", lambda spark, files: spark.read.parquet(str(files))),
    "ray": ("ray_cluster", ray_data_set),
}
KINDS = {"duckdb": "duckdb", "duckdb-sql": "ibis", "sqlite": "ibis", "postgres": "ibis"}


def each_place(test):
    """Parametrize a test by the engine's fixture and where the records lie."""
    cases = [
        pytest.param(engine, place, id=place)
        for place, (engine, _) in PLACES.items()
        if KINDS.get(place, "pyarrow") in ENGINES
    ]
    return pytest.mark.parametrize(("engine", "place"), cases)(test)


# What is seen


class Seen(list):
    """What the releases of one table go by, in its order."""

    def note(self, what, *arrays):
        self.append((what, *(np.array(array) for array in arrays)))

    def cells(self, what, counted):
        self.note(what, counted._count, counted._least, counted._most)


@pytest.fixture
def seen(monkeypatch):
    """Notes cells as they are counted, windows as they are asked for, and intervals."""
    notes = Seen()

    def after(owner, name, note):
        own = getattr(owner, name)

        @functools.wraps(own)
        def method(self, *arguments):
            result = own(self, *arguments)
            note(self, result, *arguments)
            return result

        monkeypatch.setattr(owner, name, method)

    after(CountedCells, "__init__", lambda self, *_: notes.cells("cells", self))
    after(CountedCells, "_refine", lambda self, *_: notes.cells("refined", self))
    after(SelectedOrder, "prepare", lambda self, _, *asked: notes.note("windows", *asked))
    after(
        SelectedOrder,
        "intervals",
        lambda self, found, *_: notes.note("intervals", found.rank, found.width, found.left),
    )
    return notes


LEVELS = [0.1, 0.25, 0.5, 0.9]
# Bounds that leave few records in each cell; and so wide ones that cells are counted again, twice.
NEAR, WIDE = (-20.0, 20.0), (-1e9, 1e9)
OUTPUTS = [-6.5, -3.25, 0.0, 6.5], [-20.0, 0.0, 0.0, 20.0]
SAMPLES = [
    dict(bounds=NEAR, resolution=0.0),
    dict(bounds=NEAR, resolution=0.25),
    dict(bounds=WIDE, resolution=0.0),
    dict(bounds=WIDE, resolution=0.01),
]
CALLS = {
    "joint_exp": lambda x: dpq.joint_exp(x, LEVELS, epsilon=1.0, bounds=NEAR, rng=7),
    "ind_exp": lambda x: dpq.ind_exp(x, LEVELS, epsilon=1.0, bounds=NEAR, rng=7),
    "approx_quantiles": lambda x: dpq.approx_quantiles(x, LEVELS, epsilon=1.0, bounds=NEAR, rng=7),
    "two_stage": lambda x: dpq.two_stage(x, 0.5, epsilon=1.0, bounds=NEAR, rng=7),
    "cdf": lambda x: dpq.cdf(x, method="agg_tree", epsilon=1.0, bounds=NEAR, rng=7).quantile(
        LEVELS
    ),
    "mean": lambda x: dpq.mean(x, epsilon=1.0, lower=-9, upper=9, rng=7),
    "var": lambda x: dpq.var(x, epsilon=1.0, bounds=(-9, 9), rng=7),
    "sum": lambda x: dpq.sum(x, epsilon=1.0, lower=-9, upper=9, rng=7),
    "count": lambda x: dpq.count(x, epsilon=1.0, rng=7),
    "unbounded_quantile": lambda x: dpq.unbounded_quantile(x, 0.9, epsilon=1.0, rng=7),
}


# Their draws go by windows, which are of other widths in memory: other draws of the same law.
WINDOWED = ("joint_exp", "ind_exp", "approx_quantiles")


def densities(x, options):
    """Of the exact law of a sample, at each of the outputs."""
    law = dpq.joint_exp_law(x, LEVELS, epsilon=1.0, dither_rng=3, **options)
    return [law.log_prob(outputs) for outputs in OUTPUTS]


CALLS |= {
    f"law {number}": functools.partial(densities, options=options)
    for number, options in enumerate(SAMPLES)
}


def calls_of(n):
    """All calls; of many records but two stages, which go over them four times."""
    return {name: call for name, call in CALLS.items() if n == FEW or name != "two_stage"}


def answers(table, seen, calls):
    """All that a table's releases go by, and what they answer."""
    found = dpq.together(*(functools.partial(call, table["x"]) for call in calls.values()))
    return [*seen, *found]


def assert_identical(one, other):
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_equal(mine, theirs)


# The records


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder of files of some records."""

    @functools.cache
    def write(n):
        folder = tmp_path_factory.mktemp("records")
        table = pa.table({"x": column(n)})
        size = -(-n // FILES)
        for part in range(FILES):
            pq.write_table(
                table.slice(part * size, size), folder / f"{part}.parquet", row_group_size=2**18
            )
        return folder

    return write


@pytest.fixture(scope="module")
def expected():
    """What is seen and answered of some records in memory."""
    return {}


def in_memory(n, expected, seen):
    if n not in expected:
        x = column(n)
        calls = calls_of(n)
        expected[n] = answers(dpq.Table.of({"x": x}), seen, calls)
        seen.clear()
        found = dict(zip(calls, expected[n][-len(calls) :], strict=True))
        for name, call in calls.items():
            if name.startswith("law"):
                np.testing.assert_allclose(found[name], call(x), rtol=0.0, atol=1e-12)
            elif name not in WINDOWED:
                np.testing.assert_equal(found[name], call(x))
        seen.clear()
    return expected[n]


def status(key):
    return int(re.search(rf"{key}:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1])


@contextlib.contextmanager
def driver_memory(most):
    """At most so many megabytes more than at the start, at any time, in this process."""
    peak = pathlib.Path("/proc/self/clear_refs")
    if not peak.exists():
        yield
        return
    gc.collect()
    pa.default_memory_pool().release_unused()
    peak.write_text("5")  # the peak begins anew
    before = status("VmRSS")
    yield
    assert (status("VmHWM") - before) / 2**10 <= most


def compare(n, place, request, written, expected, seen, most=None):
    engine, of_files = PLACES[place]
    known = in_memory(n, expected, seen)
    server = request.getfixturevalue(engine) if engine else None
    source = of_files(server, written(n))
    with contextlib.ExitStack() as stack:
        if engine == "dask_cluster":
            stack.enter_context(server.as_current())
        if most is not None:
            stack.enter_context(driver_memory(most))
        found = answers(dpq.Table.of(source), seen, calls_of(n))
    assert_identical(found, known)
    return found


@each_place
def test_few_records_are_the_same_wherever_they_lie(
    engine, place, request, written, expected, seen
):
    compare(FEW, place, request, written, expected, seen)


@pytest.mark.slow
@pytest.mark.engines
@each_place
def test_many_records_are_the_same_wherever_they_lie(
    engine, place, request, written, expected, seen
):
    n = SLOW.get(place, MANY)
    most = None if place in IN_MEMORY else DRIVER
    found = compare(n, place, request, written, expected, seen, most)
    # Cells were counted again, too.
    assert any(note[0] == "refined" for note in found if isinstance(note, tuple))
