"""Tables that stay where they are, against what their engines have of their own."""

from __future__ import annotations

from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import dpq_fast as dpq
from bench import peers
from bench.case import Call, Case, Maker, Side
from bench.columns import BOUNDS, EPSILON, levels
from bench.measure import size_of
from bench.programs import parquet
from dpq_fast.engines.duckdb import opened

# Of the data base, and of what it is compared with.
THREADS = 1
LEVELS = 30


def connected(folder: TemporaryDirectory) -> tuple[Any, str]:
    """A connection of DuckDB, and a text that selects the records."""
    peers.require("duckdb")
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    return connection, f"FROM '{folder.name}/*.parquet'"


def joint_exp(folder: TemporaryDirectory) -> Call:
    connection, text = connected(folder)
    column = dpq.Table.of(text, connection)["value"]
    return partial(dpq.joint_exp, column, levels(LEVELS), epsilon=EPSILON, bounds=BOUNDS)


def of_duckdb(function: str) -> Maker:
    """A statement of DuckDB for the same quantiles, not private."""

    def make(folder: TemporaryDirectory) -> Call:
        connection, text = connected(folder)
        statement = f"SELECT {function}(value, {levels(LEVELS).tolist()}) {text}"
        return lambda: connection.execute(statement).fetchall()

    return make


def leaving(folder: TemporaryDirectory) -> str:
    """What leaves the data base for one release."""
    connection, text = connected(folder)
    engine = opened(text, connection, 1, False)
    column = dpq.Table(engine)["value"]
    dpq.joint_exp(column, levels(LEVELS), epsilon=EPSILON, bounds=BOUNDS)
    return f"{size_of(engine.fetched)} leave the data base"


CASES = (
    Case(
        "engines/duckdb",
        f"{{size}} rows of Parquet files in DuckDB, one thread, m = {LEVELS}",
        parquet,
        joint_exp,
        (10**7,),
        10**4,
        (
            Side("`approx_quantile` of DuckDB", of_duckdb("approx_quantile")),
            Side("`quantile_cont` of DuckDB", of_duckdb("quantile_cont")),
        ),
        shown=True,
        bar="faster than both",
        note=leaving,
    ),
)
