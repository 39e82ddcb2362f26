"""A Parquet data set that need not fit in memory: two passes over its batches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
from columns import BOUNDS, levels

import dpq_fast as dpq

FILES = 10
ROW_GROUP = 10**6


def streamed(n: int) -> dict[str, float]:
    """Write n records of N(0, 5) to a temporary folder, and measure them in a fresh process."""
    with TemporaryDirectory() as folder:
        rng = np.random.default_rng(1)
        for file in range(FILES):
            with pa.parquet.ParquetWriter(
                Path(folder) / f"{file}.parquet",
                pa.schema({"value": pa.float64()}),
                use_dictionary=False,
            ) as writer:
                for _ in range(n // FILES // ROW_GROUP):
                    writer.write_table(pa.table({"value": rng.normal(0.0, 5.0, ROW_GROUP)}))
        run = subprocess.run(
            [sys.executable, __file__, folder], check=True, capture_output=True, text=True
        )
        return json.loads(run.stdout)


def measure(folder: str) -> dict[str, float]:
    """Seconds to read the batches once and for a release, m = 30; peak resident bytes (Linux)."""
    dataset = pa.dataset.dataset(folder, format=pa.dataset.ParquetFileFormat(pre_buffer=False))
    start = perf_counter()
    for _ in dataset.to_batches(columns=["value"]):
        pass
    read = perf_counter() - start
    start = perf_counter()
    sample = dpq.Sample.from_batches(dataset, BOUNDS, column="value")
    dpq.joint_exp(sample, levels(30), epsilon=1.0)
    release = perf_counter() - start
    # of this process alone, unlike getrusage, which begins with its parent's peak
    status = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    return {"read": read, "release": release, "resident": peak}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
