"""Whole jobs: groups, data sets that need not fit in memory, the start of a program."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench import peers
from bench.case import Call, Case, Maker, Side
from bench.columns import BOUNDS, EPSILON, gaussian, levels
from bench.measure import size_of

# Of the groups, which loops are timed on; of the Parquet files.
ROWS, PART, FILES = 100, 300, 10
BATCH = 10**6
# Rows whose keys are of several kinds.
KEYED = 5 * 10**6


class Groups(NamedTuple):
    """Records of N(0, 5), their keys in no order, and as many records group by group."""

    x: NDArray
    by: NDArray
    names: NDArray
    apart: NDArray


def groups(count: int, rows: int = ROWS) -> Groups:
    names = np.arange(count)
    by = np.repeat(names, rows)
    np.random.default_rng(1).shuffle(by)
    x = gaussian(by.size)
    return Groups(x, by, names, x.reshape(count, rows))


def skewed(count: int) -> Groups:
    """The k-th group has about 1 / k of the records of the first one."""
    names = np.arange(count)
    draws = np.random.default_rng(1).random(count * ROWS)
    by = np.minimum((float(count) ** draws).astype(np.int64), count) - 1
    return Groups(gaussian(by.size), by, names, np.empty((0, ROWS)))


def in_equal_groups(data: Groups) -> Call:
    return quantile_by(workers=2)(data._replace(by=np.arange(data.by.size) % data.names.size))


def by_dates(data: Groups) -> Call:
    names = np.datetime64("1970-01-01") + data.names
    return quantile_by()(data._replace(by=names[data.by], names=names))


def quantile_by(**options: Any) -> Maker:
    return lambda data: partial(
        dpq.quantile_by,
        data.x,
        data.by,
        levels(3),
        groups=data.names,
        epsilon=EPSILON,
        bounds=BOUNDS,
        **options,
    )


def keyed(count: int) -> Groups:
    """Up to so many records whose keys are drawn, and not grouped."""
    names = np.arange(count)
    by = np.random.default_rng(1).integers(count, size=min(KEYED, 5_000 * count))
    x = gaussian(by.size)
    return Groups(x, by, names, x[:0])


def by_strings(column: Callable[[Any, NDArray, list[str]], Any], library: str) -> Maker:
    """The same with keys that are strings: `column` makes theirs from Arrow's, codes and names."""

    def make(data: Groups) -> Call:
        peers.require("pyarrow")
        peers.require(library)
        import pyarrow as pa

        names = [f"group {name:07d}" for name in data.names.tolist()]
        encoded = pa.DictionaryArray.from_arrays(pa.array(data.by), pa.array(names))
        by = column(encoded.dictionary_decode(), data.by, names)
        return quantile_by()(data._replace(by=by, names=names))

    return make


def of_pandas(dtype: str) -> Maker:
    def column(strings: Any, codes: NDArray, names: list[str]) -> Any:
        import pandas as pd

        if dtype == "category":
            return pd.Series(pd.Categorical.from_codes(codes, names))
        objects = np.array(names, dtype=object)[codes]
        return pd.Series(objects if dtype == "object" else strings.to_pandas(), dtype=dtype)

    return by_strings(column, "pandas")


def of_polars(kind: str) -> Maker:
    def column(strings: Any, codes: NDArray, names: list[str]) -> Any:
        import polars as pl

        series = pl.Series(strings)
        kinds = {"String": pl.String, "Categorical": pl.Categorical, "Enum": pl.Enum(names)}
        return series.cast(kinds[kind])

    return by_strings(column, "polars")


def sum_by(data: Groups) -> Call:
    return partial(
        dpq.sum_by,
        data.x,
        data.by,
        groups=data.names,
        epsilon=EPSILON,
        q=None,
        lower=BOUNDS[0],
        upper=BOUNDS[1],
        workers=2,
    )


def grouped_sum(data: Groups) -> Call:
    peers.require("pandas")
    import pandas as pd

    return pd.Series(data.x).groupby(data.by).sum


def loop(release: Callable[[NDArray], Call]) -> Maker:
    """One call after another: the loops get their groups for free."""

    def make(data: Groups) -> Call:
        calls = [release(x) for x in data.apart]
        return lambda: [call() for call in calls]

    return make


def joint_exp(x: Any) -> Call:
    return partial(dpq.joint_exp, x, levels(3), epsilon=EPSILON, bounds=BOUNDS)


def parquet(n: int) -> TemporaryDirectory:
    """Files of n records of N(0, 5) in all, which go with the object."""
    peers.require("pyarrow")
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    folder, rng = TemporaryDirectory(), np.random.default_rng(1)
    schema = pa.schema({"value": pa.float64()})
    for file in range(FILES):
        path = Path(folder.name) / f"{file}.parquet"
        with ParquetWriter(path, schema, use_dictionary=False) as writer:
            for first in range(0, n // FILES, BATCH):
                values = rng.normal(0.0, 5.0, min(BATCH, n // FILES - first))
                writer.write_table(pa.table({"value": values}))
    return folder


def opened(folder: str) -> Any:
    from pyarrow.dataset import ParquetFileFormat, dataset

    return dataset(folder, format=ParquetFileFormat(pre_buffer=False))


def read(folder: TemporaryDirectory) -> Call:
    source = opened(folder.name)
    return lambda: [len(batch) for batch in source.to_batches(columns=["value"])]


def streamed(source: Any, **options: Any) -> NDArray:
    sample = dpq.Sample.from_batches(source, BOUNDS, **options)
    return dpq.joint_exp(sample, levels(30), epsilon=EPSILON)


RESIDENT = """
import sys
from pathlib import Path
sys.path.append(sys.argv[1])
from bench.programs import opened, streamed
streamed(opened(sys.argv[2]), column="value")
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def resident(folder: TemporaryDirectory) -> str:
    """Memory of a fresh process, with that of pyarrow."""
    if not Path("/proc/self/status").exists():
        return "resident memory is known on Linux alone"
    root = Path(__file__).parents[1]
    command = [sys.executable, "-c", RESIDENT, str(root), folder.name]
    run = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent
    )
    return f"{size_of(int(run.stdout) * 1024)} resident"


def generated(n: int) -> Callable[[], Iterator[NDArray]]:
    """A source of n records in batches, the same at each pass."""

    def source() -> Iterator[NDArray]:
        rng = np.random.default_rng(1)
        for first in range(0, n, BATCH):
            yield rng.normal(0.0, 5.0, min(BATCH, n - first))

    return source


def program(code: str) -> Maker:
    """A fresh interpreter, away from the package's sources."""
    command = [sys.executable, "-c", code]
    return lambda _: partial(subprocess.run, command, check=True, cwd=Path(__file__).parent)


CASES = (
    Case(
        "groups/sum_by",
        "{size} groups of 100 rows (`sum_by`, public clip, `workers=2`)",
        groups,
        sum_by,
        (10**6,),
        100,
        (Side("`groupby().sum()` of pandas", grouped_sum),),
    ),
    Case(
        "groups/quantile_by",
        "{size} groups of 100 rows, m = 3 (`quantile_by`, `workers=2`)",
        groups,
        quantile_by(workers=2),
        (10**6,),
        100,
        (
            Side(
                "loop over diffprivlib, scaled",
                loop(lambda x: peers.diffprivlib_quantile(x, 3)),
                part=PART,
            ),
            Side("loop over `joint_exp`, scaled", loop(joint_exp), part=PART, shown=False),
            Side(
                "loop over `np.quantile`, scaled",
                loop(lambda x: partial(np.quantile, x, levels(3))),
                part=PART,
                shown=False,
            ),
            Side("one thread", quantile_by(), shown=False),
            Side("resolution=0", quantile_by(workers=2, resolution=0), shown=False),
        ),
        shown=True,
        bar="500 × faster than diffprivlib; 1,000 ×",
    ),
    Case(
        "groups/large",
        "{size} groups of 10⁵ rows, m = 3 (`quantile_by`, `workers=2`)",
        partial(groups, rows=10**5),
        quantile_by(workers=2),
        (10**3,),
        4,
        (
            Side("one thread", quantile_by()),
            Side(
                "loop over `np.quantile`",
                loop(lambda x: partial(np.quantile, x, levels(3))),
            ),
        ),
        bar="two threads 1.85 ×",
    ),
    Case(
        "groups/skewed",
        "{size} groups of sizes like 1/k, 100 rows on average, m = 3 (`quantile_by`, `workers=2`)",
        skewed,
        quantile_by(workers=2),
        (10**5,),
        100,
        (
            Side("groups of equal size", in_equal_groups),
            Side("one thread", quantile_by()),
        ),
    ),
    Case(
        "groups/kinds_of_keys",
        "5 × 10⁶ rows, {size} groups, m = 3 (`quantile_by`)",
        keyed,
        quantile_by(),
        (10**3, 10**5),
        10,
        (
            Side("string of Arrow", by_strings(lambda strings, *_: strings, "pyarrow")),
            Side(
                "large_string",
                by_strings(lambda strings, *_: strings.cast("large_string"), "pyarrow"),
            ),
            Side(
                "string_view",
                by_strings(lambda strings, *_: strings.cast("string_view"), "pyarrow"),
            ),
            Side("dictionary", by_strings(lambda s, *_: s.dictionary_encode(), "pyarrow")),
            Side("str of pandas", of_pandas("str")),
            Side("objects of pandas", of_pandas("object")),
            Side("category of pandas", of_pandas("category")),
            Side("String of polars", of_polars("String")),
            Side("Categorical", of_polars("Categorical")),
            Side("Enum", of_polars("Enum")),
            Side(
                "strings of NumPy",
                by_strings(lambda _, codes, names: np.array(names)[codes], "numpy"),
            ),
            Side("list", by_strings(lambda strings, *_: strings.to_pylist(), "numpy")),
            Side("dates of NumPy", by_dates),
        ),
        bar="strings and categories within 1.5 × of integers",
    ),
    Case(
        "streams/parquet",
        "{size} rows of a Parquet data set, m = 30",
        parquet,
        lambda folder: partial(streamed, opened(folder.name), column="value"),
        (10**9,),
        1_000,
        (Side("reading the batches once", read),),
        bar="1 GB resident",
        note=resident,
    ),
    Case(
        "streams/generated",
        "{size} generated rows in batches, m = 30",
        generated,
        lambda source: partial(streamed, source),
        (10**9,),
        1_000,
        (Side("generating them once", lambda source: lambda: [len(batch) for batch in source()]),),
    ),
    Case(
        "programs/import",
        "`import numpy, dpq_fast`",
        lambda size: None,
        program("import numpy, dpq_fast"),
        (1,),
        1,
        (Side("`import numpy`", program("import numpy")),),
        bar="0.15 s longer",
    ),
)
