"""One lattice, one method, one scale, one guarantee: no type of a column decides any of them.

Readers infer types from the records. One empty field makes floats of integers and objects of
booleans, one record of 3.5 makes floats of all. So equal values give equal answers to one seed,
whatever the type, with and without a missing record, by every public function and front end.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from releases import BOUNDS, LEVELS, PRIOR, RELEASES

import dpq_fast as dpq
from dpq_fast.cli import main
from dpq_fast.data.columns import as_column, as_float64, check_counts
from dpq_fast.data.records import Records
from dpq_fast.reference.columns import numbers, repeats

# What a boolean column can hold, too.
VALUES = [bool(value) for value in np.random.default_rng(0).integers(0, 2, 60)]
# Columns of a list of 0, 1 and None, by type.
TYPES: dict[str, Callable[[list], Any]] = {
    "list of int": lambda v: [None if x is None else int(x) for x in v],
    "list of float": lambda v: [None if x is None else float(x) for x in v],
    "list of bool": list,
    "list of Decimal": lambda v: [None if x is None else Decimal(int(x)) for x in v],
    "pandas inferred": lambda v: pd.Series([None if x is None else int(x) for x in v]),
    "pandas inferred bool": lambda v: pd.Series(v),
    "pandas float64": lambda v: pd.Series(v, dtype="float64"),
    "pandas Int64": lambda v: pd.Series(v, dtype="Int64"),
    "pandas Float64": lambda v: pd.Series(v, dtype="Float64"),
    "pandas boolean": lambda v: pd.Series(v, dtype="boolean"),
    "pandas object": lambda v: pd.Series(v, dtype=object),
    "pandas decimal": lambda v: pd.Series(
        [None if x is None else Decimal(int(x)) for x in v],
        dtype=pd.ArrowDtype(pa.decimal128(5, 2)),
    ),
    "polars Int64": lambda v: pl.Series(v, dtype=pl.Boolean).cast(pl.Int64),
    "polars UInt8": lambda v: pl.Series(v, dtype=pl.Boolean).cast(pl.UInt8),
    "polars Int128": lambda v: pl.Series(v, dtype=pl.Boolean).cast(pl.Int128),
    "polars UInt128": lambda v: pl.Series(v, dtype=pl.Boolean).cast(pl.UInt128),
    "polars Float64": lambda v: pl.Series(v, dtype=pl.Boolean).cast(pl.Float64),
    "polars Boolean": lambda v: pl.Series(v, dtype=pl.Boolean),
    "polars Decimal": lambda v: (
        pl.Series(v, dtype=pl.Boolean).cast(pl.Int64).cast(pl.Decimal(10, 2))
    ),
    "arrow bool": lambda v: pa.array(v, pa.bool_()),
    "arrow int64": lambda v: pa.array(v, pa.bool_()).cast(pa.int64()),
    "arrow float64": lambda v: pa.array(v, pa.bool_()).cast(pa.uint8()).cast(pa.float64()),
    "arrow decimal": lambda v: pa.array([None if x is None else Decimal(int(x)) for x in v]),
    "arrow chunked": lambda v: pa.chunked_array([v[:20], v[20:]], pa.bool_()),
    "masked int64": lambda v: np.ma.array(
        [x or 0 for x in v], mask=[x is None for x in v], dtype=np.int64
    ),
    "masked bool": lambda v: np.ma.array(
        [x or False for x in v], mask=[x is None for x in v], dtype=bool
    ),
    "numpy object": lambda v: np.array(v, dtype=object),
}
# Types that have no missing value.
COMPLETE: dict[str, Callable[[list], Any]] = {
    "numpy int64": lambda v: np.array(v, dtype=np.int64),
    "numpy int8": lambda v: np.array(v, dtype=np.int8),
    "numpy bool": lambda v: np.array(v, dtype=bool),
    "pandas int64": lambda v: pd.Series(v, dtype="int64"),
}
# AboveThreshold takes queries, no column.
OF_COLUMNS = {name: run for name, run in RELEASES.items() if "threshold" not in name[:15]}
OF_COLUMNS.pop("sparse_vector")


def columns(of: list) -> list[tuple[str, Any]]:
    """The same records in every type: with a missing one, and without where that is asked for."""
    with_missing = [*of[:30], None, *of[30:]]
    made = [(f"{name}, one missing", make(with_missing)) for name, make in TYPES.items()]
    made += [(name, make(of)) for name, make in {**TYPES, **COMPLETE}.items()]
    return made


def plain(answer: Any) -> Any:
    return np.asarray(answer).tolist() if np.ndim(answer) or hasattr(answer, "low") else answer


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_answers_do_not_depend_on_the_type(name):
    run = OF_COLUMNS[name]
    # a missing record has a key, too, which moves those of the records after it; and it is a row,
    # of which a tree takes the public number for that of records
    expected = {
        missing: plain(run(np.array([*VALUES[:30], *missing, *VALUES[30:]], dtype=float), 1))
        for missing in ((), (np.nan,))
    }
    of_rows = (
        "agg_tree",
        "two_stage",
        "var",
        "std",
    )  # or whose noisy number is cut at that of rows
    if "_by" not in name and name.split(",")[0] not in of_rows and name != "mean, rho":
        assert expected[()] == expected[(np.nan,)]
    for kind, column in columns(VALUES):
        missing = (np.nan,) if "missing" in kind else ()
        assert plain(run(column, 1)) == expected[missing], kind


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_guarantees_do_not_depend_on_the_type(name):
    charged = set()
    for _, column in columns(VALUES):
        accountant = dpq.privacy.Accountant(100.0, 0.5)
        if any(word in name for word in ("rho", "csmooth", "factorized", "two_stage, prior")):
            accountant = dpq.privacy.Accountant(100.0, 0.5, composition="zcdp")
        if "add-remove" in name:
            accountant = dpq.privacy.Accountant(100.0, neighbors="add-remove")
        run_charged(name, column, accountant)
        charged.add(accountant.history)
    assert len(charged) == 1 and len(charged.pop()) == 1


def run_charged(name: str, column: Any, accountant: dpq.privacy.Accountant) -> None:
    """A release of the table with an accountant."""
    run = OF_COLUMNS[name]
    if name.startswith("quantile_by"):
        options = LEVELS | (PRIOR if "prior" in name else {})
        dpq.quantile_by(
            column, [0] * len(column), groups=[0], accountant=accountant, rng=1, **options
        )
        return
    if "_by" in name:
        run(column, 1, accountant=accountant)
        return
    release, options = run.__closure__[1].cell_contents, run.__closure__[0].cell_contents
    release(column, rng=1, **options, accountant=accountant)


@pytest.mark.parametrize("options", [{}, {"resolution": 1}, {"resolution": 0}], ids=str)
def test_samples_have_one_lattice(options):
    lattices, public = set(), set()
    for _, column in columns(VALUES):
        sample = dpq.Sample.of(column, (0.0, 10.0), **options)
        batches = dpq.Sample.from_batches(lambda column=column: [column], (0.0, 10.0), **options)
        table = pa.table({"x": pa.array([1.0])})
        lattices |= {sample.lattice, batches.lattice}
        lattices.add(dpq.Sample.from_batches(table, (0.0, 10.0), column="x", **options).lattice)
        lattices.add(dpq.PartialTree.of(column, bounds=(0.0, 10.0), **options).lattice)
        public |= {sample.records.n_is_public, Records.of(column).n_is_public}
        public.add(batches.records.n_is_public)
    assert public == {False}
    undithered = {None if one is None else (one.step, one.first, one.points) for one in lattices}
    assert len(undithered) == 1


@pytest.mark.parametrize("kind", [*TYPES, *COMPLETE])
def test_only_the_policy_makes_the_number_of_records_public(kind):
    column = {**TYPES, **COMPLETE}[kind](VALUES)
    assert Records.of(column, nan_policy="raise").n_is_public
    for sample in (
        dpq.Sample.of(column, (0, 1), nan_policy="raise"),
        dpq.Sample.from_batches(lambda: [column], (0, 1), nan_policy="raise"),
    ):
        assert sample.records.n_is_public


EMPTY = {
    "list": [],
    "list of None": [None, None],
    "numpy object": np.array([], dtype=object),
    "numpy object of None": np.array([None, np.nan], dtype=object),
    "numpy text": np.array([], dtype="U1"),
    "numpy bool": np.array([], dtype=bool),
    "numpy dates": np.array(["NaT", "NaT"], dtype="M8[s]"),
    "masked text": np.ma.array(["a", "b"], mask=True),
    "pandas inferred": pd.Series([], dtype=object),
    "pandas of None": pd.Series([None, None]),
    "pandas string": pd.Series([None, None], dtype="string"),
    "pandas category": pd.Series([None, None], dtype="category"),
    "pandas dates": pd.Series([pd.NaT, pd.NaT]),
    "pandas arrow null": pd.Series([None, None], dtype=pd.ArrowDtype(pa.null())),
    "polars Null": pl.Series([None, None]),
    "polars String": pl.Series([None, None], dtype=pl.String),
    "polars Date": pl.Series([], dtype=pl.Date),
    "polars List": pl.Series([None], dtype=pl.List(pl.Int64)),
    "arrow null": pa.nulls(2),
    "arrow string": pa.array([None, None], pa.string()),
    "arrow chunked dictionary": pa.chunked_array([], pa.dictionary(pa.int8(), pa.string())),
}


@pytest.mark.parametrize("column", EMPTY.values(), ids=EMPTY)
def test_columns_without_a_record_are_empty_samples_of_any_type(column):
    expected = dpq.joint_exp([], **LEVELS, rng=1).tolist()
    assert dpq.joint_exp(column, **LEVELS, rng=1).tolist() == expected
    sample = dpq.Sample.from_batches(lambda: [column], **BOUNDS)
    assert dpq.joint_exp(sample, LEVELS["q"], epsilon=1.0, rng=1).tolist() == expected
    assert dpq.count(column, epsilon=1.0, rng=1) == dpq.count([], epsilon=1.0, rng=1)


def test_batches_of_several_types_are_one_column():
    batches = [[True, None], np.array([1, 2]), np.array([0.5]), pd.Series(["a"][:0]), pa.nulls(3)]
    sample = dpq.Sample.from_batches(lambda: batches, **BOUNDS)
    kept = dpq.Sample.of([1.0, 1.0, 2.0, 0.5], **BOUNDS)
    assert sample.order(0).n == kept.order(0).n == 4
    arguments = dict(q=[0.5], epsilon=100.0)
    law = dpq.joint_exp_law(sample, dither_rng=1, **arguments)
    assert law.sample(2) == pytest.approx(
        dpq.joint_exp_law(kept, dither_rng=1, **arguments).sample(2), abs=0.1
    )


def test_a_missing_field_of_a_csv_column_moves_no_lattice():
    """The workflow that showed it: `pd.read_csv` infers float64 where one field is missing."""
    ages = np.random.default_rng(1).integers(18, 80, 1_000)
    columns = [pd.Series(ages), pd.Series([*ages[:-1].tolist(), None])]
    assert [str(column.dtype) for column in columns] == ["int64", "float64"]
    for options, whole in ({"resolution": 1}, True), ({}, False):
        for column in columns:
            answers = [
                dpq.ind_exp(column, 0.5, epsilon=0.1, bounds=(0, 120), rng=seed, **options)
                for seed in range(20)
            ]
            assert all(answer == int(answer) for answer in answers) == whole
            assert all(answer == round(answer, 4) for answer in answers)


@pytest.mark.parametrize("method", ["auto", "joint_exp", "agg_tree", "unbounded_quantile"])
def test_command_line_answers_do_not_depend_on_the_type(tmp_path, method):
    def answer(path: Any) -> dict[str, Any]:
        arguments = ["quantile", str(path), "--column", "x", "--q", "0.5,0.9", "--epsilon", "1"]
        arguments += ["--method", method, "--seed", "1", "--json"]
        if method != "unbounded_quantile":
            arguments += ["--bounds", "0", "10"]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        return {k: v for k, v in json.loads(result.stdout).items() if k != "file"}

    answers: dict[int, list[dict[str, Any]]] = {len(VALUES) + more: [] for more in range(3)}
    for name in ("arrow bool", "arrow int64", "arrow float64", "arrow decimal"):
        for values in (VALUES, [*VALUES[:30], None, *VALUES[30:]]):
            path = tmp_path / "column.parquet"
            pa.parquet.write_table(pa.table({"x": TYPES[name](values)}), path)
            answers[len(values)].append(answer(path))
    for text in ("{:d}", "{:.1f}", "{:.3e}"):
        for missing in ([], [""], ["NA"]):
            path = tmp_path / "column.csv"
            fields = [
                text.format(int(value)) if text == "{:d}" else text.format(float(value))
                for value in VALUES
            ]
            fields[30:30] = [f"{field},0" for field in missing]
            lines = [field if "," in field else f"{field},0" for field in fields]
            path.write_text("\n".join(["x,y", *lines]) + "\n")
            # what follows the last line feed is a record that is missing
            answers[len(lines) + 1].append(answer(path))
    for same in answers.values():
        assert len(same) > 3 and all(one == same[0] for one in same)
    if method != "agg_tree":  # which takes the public number of rows for that of records
        assert len({json.dumps(same[0]) for same in answers.values()}) == 1


# Containers and types: one table


def with_pandas(table: pa.Table, mapper: Any = None) -> Any:
    return table.to_pandas(types_mapper=mapper)["x"]


# How each container holds one column of an Arrow table, given NumPy's array and the list, too.
CONTAINERS: dict[str, Callable[[pa.Table, np.ndarray, list], Any]] = {
    "numpy": lambda table, array, items: array,
    "list": lambda table, array, items: items,
    "pandas": lambda table, array, items: with_pandas(table),
    "pandas nullable": lambda table, array, items: with_pandas(table).convert_dtypes(),
    "pandas on Arrow": lambda table, array, items: with_pandas(table, pd.ArrowDtype),
    "pandas frame": lambda table, array, items: table.to_pandas(),
    "polars": lambda table, array, items: pl.from_arrow(table)["x"],
    "polars frame": lambda table, array, items: pl.from_arrow(table),
    "polars lazy": lambda table, array, items: pl.from_arrow(table).lazy(),
    "pyarrow": lambda table, array, items: table["x"],
    "pyarrow array": lambda table, array, items: table["x"].combine_chunks(),
    "pyarrow table": lambda table, array, items: table,
    "pyarrow stream": lambda table, array, items: lambda: table.to_reader(),
    "duckdb": lambda table, array, items: duckdb.from_arrow(table),
    "capsule": lambda table, array, items: Capsule(table),
    "protocol": lambda table, array, items: Arrayed(array),
}
UTC = dt.timezone.utc
FIRST = dt.datetime(2020, 1, 1)
WHOLE = np.random.default_rng(5).integers(0, 100, 400).tolist()
# Of each type the items, the type of Arrow, and bounds and resolution.
DTYPES: dict[str, tuple[list, pa.DataType, Any, Any]] = {
    "float64": ([w / 8 for w in WHOLE], pa.float64(), (0.0, 10.0), 0.25),
    "float32": ([w / 8 for w in WHOLE], pa.float32(), (0.0, 10.0), 0.25),
    "int64": (WHOLE, pa.int64(), (0, 80), 1),
    "int8": (WHOLE, pa.int8(), (0, 80), 1),
    "uint16": (WHOLE, pa.uint16(), (0, 80), 1),
    "decimal": ([Decimal(w) / 8 for w in WHOLE], pa.decimal128(9, 3), (0.0, 10.0), 0.25),
    "bool": ([w > 40 for w in WHOLE], pa.bool_(), (0, 1), 1),
    "date": (
        [(FIRST + dt.timedelta(days=w)).date() for w in WHOLE],
        pa.date32(),
        (FIRST.date(), dt.date(2020, 3, 31)),
        dt.timedelta(days=1),
    ),
    "timestamp": (
        [FIRST + dt.timedelta(minutes=w) for w in WHOLE],
        pa.timestamp("us"),
        (FIRST, FIRST + dt.timedelta(hours=1)),
        dt.timedelta(minutes=1),
    ),
    "timestamp with zone": (
        [(FIRST + dt.timedelta(minutes=w)).replace(tzinfo=UTC) for w in WHOLE],
        pa.timestamp("ms", "Europe/Berlin"),
        (FIRST.replace(tzinfo=UTC), FIRST.replace(tzinfo=UTC) + dt.timedelta(hours=1)),
        dt.timedelta(minutes=1),
    ),
    "duration": (
        [dt.timedelta(milliseconds=w) for w in WHOLE],
        pa.duration("us"),
        (dt.timedelta(0), dt.timedelta(milliseconds=80)),
        dt.timedelta(milliseconds=1),
    ),
}


class Capsule:
    """What offers nothing but Arrow's stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table["x"].__arrow_c_stream__(requested_schema)


class Arrayed:
    """What offers nothing but ``__array__``."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self._array


@pytest.mark.parametrize("missing", [False, True], ids=["all", "missing"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_containers_and_types_have_one_law(dtype, missing):
    """The law is that of public arguments and ranks: these are the same, and so is a draw."""
    items, arrow, bounds, resolution = DTYPES[dtype]
    given_items = [*items[:7], None, *items[7:], None] if missing else items
    table = pa.table({"x": pa.chunked_array([given_items[:9], given_items[9:]], arrow)})
    numpy_type = {"float64": "f8", "float32": "f4", "int64": "i8", "int8": "i1", "uint16": "u2"}
    numpy_type |= {"bool": "?", "date": "M8[D]", "timestamp": "M8[us]", "duration": "m8[us]"}
    array = np.array(given_items, dtype=object if missing else numpy_type.get(dtype, object))
    if missing and dtype in ("date", "timestamp", "duration"):
        array = array.astype(numpy_type[dtype])
    seen = {}
    for name, make in CONTAINERS.items():
        column = make(table, array, given_items)
        sample = dpq.Sample.of(column, bounds, resolution=resolution)
        points = np.arange(sample.lattice.points + 1)
        ranks = sample.coarse().ranks_of(points)
        column = make(table, array, given_items)  # a stream is read once
        answer = dpq.joint_exp(
            column, [0.2, 0.7], epsilon=1.0, bounds=bounds, resolution=resolution, rng=1
        )
        seen[name] = sample.bounds, ranks.tolist(), np.asarray(answer).tolist()
        seen[name] += (dpq.count(make(table, array, given_items), epsilon=1.0, rng=4),)
    for name, found in seen.items():
        assert found == seen["list"], name
    assert seen["list"][1][-1] == len(items)


def test_plain_memory_is_not_copied():
    floats, integers = np.arange(1e5), np.arange(10**5)
    for array in (floats, integers):
        for column in (
            array,
            pd.Series(array),
            pd.Series(array, dtype=pd.ArrowDtype(pa.array(array).type)),
            pd.DataFrame({"x": array}),
            pl.Series(array),
            pl.DataFrame({"x": array}),
            pa.chunked_array([pa.array(array)]),
            Arrayed(array),
        ):
            read = as_column(column)
            assert read.dtype == array.dtype
            owners = [array]
            if isinstance(column, (pd.Series, pd.DataFrame)):
                owners.append(np.asarray(column))
            if isinstance(column, (pl.Series, pl.DataFrame)):
                series = column if isinstance(column, pl.Series) else column["x"]
                owners.append(series.to_numpy(allow_copy=False))
            if isinstance(column, pa.ChunkedArray):
                owners.append(column.chunk(0).to_numpy())
            if str(getattr(column, "dtype", "")).endswith("[pyarrow]"):
                owners.append(column.array._pa_array.chunk(0).to_numpy())
            assert any(np.shares_memory(read, owner) for owner in owners), type(column)


def test_frames_of_one_column_are_columns_and_others_are_refused():
    for make in (pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table):
        options = dict(epsilon=1.0, bounds=(0, 9), rng=1)
        assert dpq.median(make({"a": [1.0, 2.0]}), **options) == dpq.median([1.0, 2.0], **options)
        with pytest.raises(
            ValueError, match="x must be one column, got a frame of 2: choose one, or"
        ):
            dpq.median(make({"a": [1.0], "b": ["x"]}), **options)
        accountant = dpq.privacy.Accountant(1.0)
        with pytest.raises(ValueError, match="got a frame of 2"):
            dpq.count(make({"a": [1.0], "b": [1.0]}), epsilon=1.0, accountant=accountant)
        assert accountant.history == ()
    stream = pa.table({"a": [1.0], "b": [1.0]}).to_reader()
    with pytest.raises(ValueError, match="got a frame of 2"):
        dpq.median(stream, **options)


@pytest.mark.parametrize("arrow", [True, False], ids=["pyarrow", "without pyarrow"])
def test_without_narwhals_columns_are_read_by_their_arrays(monkeypatch, arrow):
    expected = {name: as_float64(as_column(make(VALUES))) for name, make in TYPES.items()}
    monkeypatch.setitem(sys.modules, "narwhals.stable.v2", None)
    if not arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name, make in TYPES.items():
        if not arrow and (
            name.startswith("arrow") or name == "pandas decimal"
        ):  # which are its own
            continue
        np.testing.assert_array_equal(as_float64(as_column(make(VALUES))), expected[name], name)


# The reference reads columns record by record, on its own


def outcome(read: Callable[..., Any], *column: Any) -> Any:
    """What is read, or the kind of error and its rule."""
    try:
        return np.asarray(read(*column), dtype=np.float64).tolist()
    except (TypeError, ValueError) as error:
        return type(error), str(error).split(", got")[0]


def read_alike(column: Any) -> None:
    fast = outcome(lambda x: as_float64(as_column(x)), column)
    np.testing.assert_equal(outcome(numbers, column), fast)


@pytest.mark.parametrize("kind", [*TYPES, *COMPLETE])
def test_reference_reads_every_type_alike(kind):
    for column in (TYPES | COMPLETE)[kind](VALUES), (TYPES | COMPLETE)[kind]([]):
        read_alike(column)
    if kind in TYPES:
        read_alike(TYPES[kind]([None, *VALUES[:9], None]))
        read_alike(TYPES[kind]([None, None]))


@pytest.mark.parametrize("column", EMPTY.values(), ids=EMPTY)
def test_reference_reads_empty_columns_alike(column):
    read_alike(column)


UNUSUAL = {
    "not finite": [np.inf, -np.inf, np.nan, -0.0, 5e-324],
    "beyond float64": [10**400, -(10**400), Decimal("1e400"), 2**64 - 1],
    "of every kind": [1, True, np.float32(0.1), Decimal("0.1"), None, pd.NA, pd.NaT, np.ma.masked],
    "no numbers of Decimal": [Decimal("sNaN"), Decimal("NaN"), Decimal("Infinity")],
    "arrow scalars": [pa.scalar(1), pa.scalar(None), pa.scalar(2.5)],
    "longdouble": np.array([1, 2], dtype=np.longdouble) / 3,
    "half": np.array([0.1, 65504.0], dtype=np.float16),
    "big-endian": np.array([1.5, 2.5], dtype=">f8"),
    "uint64": np.array([2**64 - 1, 2**53 + 1], dtype=np.uint64),
    "strided": np.arange(10.0)[::-3],
    "range": range(4),
    "text": ["1"],
    "text array": np.array(["1"]),
    "text in objects": np.array([1.0, "1"], dtype=object),
    "bytes": [b"1"],
    "complex": [1j],
    "complex array": np.array([1j]),
    "nested": [[1.0], [2.0, 3.0]],
    "two dimensions": np.zeros((2, 2)),
    "no dimension": np.array(1.0),
    "data frame": pd.DataFrame({"x": [1.0]}),
    "polars frame": pl.DataFrame({"x": [1.0]}),
    "records": np.zeros(2, dtype=[("x", float)]),
    "dates": np.array(["2020-01-01", "NaT"], dtype="M8[s]"),
    "dates in ns": np.array([1, 2], dtype="M8[ns]"),
    "differences in ns": np.array([1, 2], dtype="m8[ns]"),
    "pandas dates": pd.Series(pd.to_datetime(["2020-01-01", None])),
    "pandas differences": pd.Series(pd.to_timedelta([1, 2])),
    "pandas category": pd.Series([1, 2], dtype="category"),
    "pandas string": pd.Series(["1", None], dtype="string"),
    "pandas sparse": pd.Series(pd.arrays.SparseArray([0.0, 1.0, np.nan])),
    "polars categories": pl.Series(["a"], dtype=pl.Categorical),
    "polars date": pl.Series([1]).cast(pl.Date),
    "polars duration": pl.Series([1]).cast(pl.Duration("ns")),
    "polars list": pl.Series([[1], [2]]),
    "polars struct": pl.Series([{"a": 1}]),
    "polars object": pl.Series([1, None, 2.5], dtype=pl.Object),
    "arrow dictionary": pa.array([1, 2, None]).dictionary_encode(),
    "arrow duration": pa.array([1], pa.duration("ns")),
    "arrow list": pa.array([[1], None]),
    "mapping": {1: 2},
    "set": {1.0},
    "string": "12",
    "number": 3.0,
    "none": None,
}


@pytest.mark.parametrize("column", UNUSUAL.values(), ids=UNUSUAL)
def test_reference_reads_or_refuses_the_unusual_alike(column):
    read_alike(column)


@pytest.mark.parametrize(
    "counts",
    [
        [],
        [1, 0, 2],
        [1.0, 0.0, 2.0],
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([1, 2, 3], dtype=np.longdouble),
        [1, 2],
        [[1, 2, 3]],
        [1, -1, 2],
        [1, 0.5, 2],
        [1, np.nan, 2],
        [1, np.inf, 2],
        [True, False, True],
        ["1", "2", "3"],
        [None, 1, 2],
        [2**53, 0, 0],
        [2**53, 1, 0],
        [2**62, 2**62, 2**62],
        [1e300, 1.0, 1.0],
        np.array([2**64 - 1, 1, 1], dtype=np.uint64),
    ],
    ids=str,
)
def test_reference_checks_counts_alike(counts):
    assert outcome(repeats, counts, 3) == outcome(check_counts, counts, 3)


def test_decimals_are_the_nearest_float64():
    digits = np.random.default_rng(0).integers(-(10**9), 10**9, 500).tolist()
    items = [None, Decimal("28.7"), *(Decimal(n).scaleb(-6) for n in digits)]
    expected = np.array([np.nan if item is None else float(item) for item in items])
    array = pa.array(items, pa.decimal128(20, 6))
    columns = (
        *(array, pa.chunked_array([array]), pd.Series(array, dtype=pd.ArrowDtype(array.type))),
        *(pl.Series(items, dtype=pl.Decimal(20, 6)), items),
    )
    for column in columns:
        np.testing.assert_array_equal(as_column(column), expected)
