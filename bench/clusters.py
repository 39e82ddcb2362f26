"""Passes over clusters of one and of two workers: ``python bench/clusters.py [--rows N]``.

For each of Dask, Spark and Ray: seconds of a pass that counts all records by cell, the least and
the median of several, and what a release of three quantiles brings to the driver, in bytes and in
memory of its process (on Linux). Each cluster is started in a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

# Behind what is installed: what is measured need not be the package beside this folder.
sys.path.append(str(Path(__file__).parents[1]))

import numpy as np

import dpq_fast as dpq
from dpq_fast.data.queries import CellCounts
from dpq_fast.data.tasks import ColumnTask
from dpq_fast.engines.partials import Sealed
from dpq_fast.orders.cells import PARTS

FILES = 8
BOUNDS = (-20.0, 20.0)


def write(folder: Path, rows: int) -> None:
    """Files of a column `x`, with ties."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    for number in range(FILES):
        x = rng.normal(0.0, 5.0, rows // FILES)
        x[::10] = np.round(x[::10])
        pq.write_table(pa.table({"x": x}), folder / f"{number}.parquet", row_group_size=2**18)


@contextlib.contextmanager
def dask(files: Path, workers: int) -> Iterator[Any]:
    """A data frame on a cluster of processes of one thread each."""
    import dask.dataframe
    import distributed

    cluster = distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    )
    with cluster, distributed.Client(cluster):
        yield dask.dataframe.read_parquet(files)


@contextlib.contextmanager
def spark(files: Path, workers: int) -> Iterator[Any]:
    """A data frame of a session of so many threads."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    session = SparkSession.builder.master(f"local[{workers}]").config(map=options).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session.read.parquet(str(files))
    session.stop()


@contextlib.contextmanager
def ray(files: Path, workers: int) -> Iterator[Any]:
    """A data set on so many cores."""
    import ray
    import ray.data

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield ray.data.read_parquet(str(files))
    ray.shutdown()


CLUSTERS = {"dask": dask, "spark": spark, "ray": ray}


def status(key: str) -> float:
    """Megabytes of this process."""
    found = re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) / 2**10 if found else np.nan


@contextlib.contextmanager
def received() -> Iterator[list[int]]:
    """The sizes of the partials that are opened here."""
    sizes, own = [], Sealed.open

    def opened(self: Sealed) -> Any:
        sizes.append(len(self.data))
        return own(self)

    Sealed.open = opened  # type: ignore[method-assign]
    try:
        yield sizes
    finally:
        Sealed.open = own  # type: ignore[method-assign]


def measure(name: str, workers: int, files: Path, repeats: int) -> None:
    """Print a line for a cluster."""
    low, high = (np.array([bound]) for bound in BOUNDS)
    tasks = [ColumnTask("x", None, CellCounts(*BOUNDS, low, high, PARTS))]
    with CLUSTERS[name](files, workers) as source:
        table = dpq.Table.of(source)
        times = []
        for _ in range(repeats + 2):
            start = time.perf_counter()
            table.answer(tasks)
            times.append(time.perf_counter() - start)
        gc.collect()
        linux = Path("/proc/self/clear_refs")
        if linux.exists():
            linux.write_text("5")  # the peak begins anew
        before = status("VmRSS") if linux.exists() else np.nan
        with received() as sizes:
            dpq.joint_exp(table["x"], [0.25, 0.5, 0.75], epsilon=1.0, bounds=BOUNDS)
        memory = status("VmHWM") - before if linux.exists() else np.nan
    passes = times[2:]  # the first ones start workers
    print(
        f"{name}, workers {workers}: pass {min(passes):.2f} s (median {median(passes):.2f}); "
        f"a release brings {sum(sizes):,} bytes, {memory:.0f} MB of memory; "
        f"load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def main() -> None:
    """Measure each cluster, or one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs=2, metavar=("NAME", "WORKERS"))
    parser.add_argument("--files", type=Path)
    asked = parser.parse_args()
    if asked.only:
        measure(asked.only[0], int(asked.only[1]), asked.files, asked.repeats)
        return
    # workers look for the package, too
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), sys.path[-1]]))
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), asked.rows)
        for name in CLUSTERS:
            for workers in ("1", "2"):
                again = [__file__, "--only", name, workers, "--files", folder]
                again += ["--repeats", str(asked.repeats)]
                command = [sys.executable, "-W", "ignore", *again]
                subprocess.run(command, check=False, env=os.environ | {"PYTHONPATH": path})


if __name__ == "__main__":
    main()
