"""What people would pick instead, private or not: 30 quantiles of one Parquet file of floats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench import peers
from bench.case import Call, Case, Maker, Side
from bench.columns import BOUNDS, EPSILON, gaussian, levels

LEVELS = 30
# Accuracy of the sketch, its default: ranks are off by 1.3% of the records at most, nearly always.
SKETCH = 200
# Records that the private libraries are timed on.
PART = 10**5


class Column:
    """A Parquet file, and its one column when it is asked for."""

    def __init__(self, n: int) -> None:
        peers.require("pyarrow")
        import pyarrow
        import pyarrow.parquet

        self.folder = TemporaryDirectory()
        self.path = str(Path(self.folder.name) / "column.parquet")
        table = pyarrow.table({"value": gaussian(n)})
        pyarrow.parquet.write_table(table, self.path, use_dictionary=False)

    def read(self) -> NDArray[np.float64]:
        import pyarrow.parquet

        return pyarrow.parquet.read_table(self.path)["value"].to_numpy()


def joint_exp(**options: Any) -> Maker:
    def make(column: Column) -> Call:
        return lambda: dpq.joint_exp(
            column.read(), levels(LEVELS), epsilon=EPSILON, bounds=BOUNDS, **options
        )

    return make


def np_quantile(column: Column) -> Call:
    return lambda: np.quantile(column.read(), levels(LEVELS))


def polars_quantile(column: Column) -> Call:
    peers.require("polars")
    import polars as pl

    value = pl.col("value")
    each = [value.quantile(level, "linear").alias(str(level)) for level in levels(LEVELS).tolist()]
    return lambda: pl.scan_parquet(column.path).select(each).collect()


def duckdb_quantile(function: str, threads: int) -> Maker:
    def make(column: Column) -> Call:
        peers.require("duckdb")
        import duckdb

        connection = duckdb.connect()
        connection.execute(f"SET threads = {threads}")
        statement = f"SELECT {function}(value, {levels(LEVELS).tolist()}) FROM '{column.path}'"
        return lambda: connection.execute(statement).fetchall()

    return make


def kll_sketch(column: Column) -> Call:
    peers.require("datasketches")
    import datasketches

    def answer() -> Any:
        sketch = datasketches.kll_doubles_sketch(SKETCH)
        sketch.update(np.require(column.read(), requirements="W"))
        return sketch.get_quantiles(levels(LEVELS))

    return answer


def of_records(make: Callable[[NDArray, int], Call]) -> Maker:
    """A private library's call; reading is left out, which is nothing to them."""
    return lambda column: make(np.require(column.read(), requirements="W"), LEVELS)


CASES = (
    Case(
        "alternatives/parquet",
        "30 quantiles of a Parquet file of {size} floats, reading included",
        Column,
        joint_exp(),
        (10**7,),
        10**4,
        (
            Side("the same, `workers=2`", joint_exp(workers=2)),
            Side("`np.quantile`", np_quantile),
            Side("polars, two threads", polars_quantile),
            Side("DuckDB `quantile_cont`, one thread", duckdb_quantile("quantile_cont", 1)),
            Side("DuckDB `quantile_cont`, two threads", duckdb_quantile("quantile_cont", 2)),
            Side("DuckDB `approx_quantile`, one thread", duckdb_quantile("approx_quantile", 1)),
            Side("DuckDB `approx_quantile`, two threads", duckdb_quantile("approx_quantile", 2)),
            Side("DataSketches KLL", kll_sketch),
            Side("diffprivlib, scaled", of_records(peers.diffprivlib_quantile), part=PART),
            Side("opendp (2,001 candidates), scaled", of_records(peers.opendp_quantile), part=PART),
        ),
        shown=True,
    ),
)
