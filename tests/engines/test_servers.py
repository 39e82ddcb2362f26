"""The engines of the tests are the real ones, and run."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest


def test_postgres_answers_and_listens_on_no_address(postgres):
    with postgres.connect() as connection:
        (version,) = connection.execute("select version()").fetchone()
        assert version.startswith("PostgreSQL ")
        assert connection.execute("show listen_addresses").fetchone() == ("",)
        assert connection.execute("select 'nan'::float8 > 'infinity'::float8").fetchone() == (True,)


@pytest.mark.parametrize("engine", ["postgres_ibis", "sqlite_ibis", "duckdb_ibis"])
def test_ibis_compiles_what_the_database_runs(engine, request):
    connection = request.getfixturevalue(engine)
    connection.raw_sql("create temporary table numbers (x double precision)")
    connection.raw_sql("insert into numbers values (1), (2), (4)")
    query = connection.compile(connection.table("numbers").x.sum())
    assert connection.raw_sql(query).fetchall() == [(7.0,)]


def test_spark_runs_python_in_two_workers(spark):
    def partial(batches):
        values = [batch.column("id").to_numpy() for batch in batches]
        total = int(np.concatenate(values).sum()) if values else 0
        yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], "total": [total]})

    partials = spark.range(100, numPartitions=2).mapInArrow(partial, "pid long, total long")
    found = partials.toArrow().to_pydict()
    assert len(set(found["pid"]) - {os.getpid()}) == 2
    assert sum(found["total"]) == 4950


def test_dask_runs_in_two_processes(dask_cluster):
    pids = dask_cluster.run(os.getpid)
    assert len(set(pids.values()) - {os.getpid()}) == 2
    assert dask_cluster.submit(sum, [1, 2]).result() == 3


def test_dask_runs_in_this_thread(dask_synchronous):
    assert dask_synchronous.delayed(os.getpid)().compute() == os.getpid()


def test_ray_maps_blocks_in_other_processes(ray_cluster):
    import ray.data

    def partial(block):
        return pa.table({"pid": [os.getpid()], "total": [block.column("id").to_numpy().sum()]})

    found = ray.data.range(100, override_num_blocks=2).map_batches(
        partial, batch_format="pyarrow", batch_size=None
    )
    rows = found.take_all()
    assert sum(row["total"] for row in rows) == 4950
    assert os.getpid() not in {row["pid"] for row in rows}
