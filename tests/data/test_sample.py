"""The sample: whatever kind of column comes, the same records on the same public lattice."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpq_fast as dpq
from dpq_fast import Sample
from dpq_fast.data.columns import as_column
from dpq_fast.data.histogram import Bins
from dpq_fast.data.passes import MIN_SHARE
from dpq_fast.data.queries import BinCounts
from dpq_fast.data.records import Records
from dpq_fast.orders import choice as choice_module
from dpq_fast.reference import bins as reference

BOUNDS = (0.0, 10.0)
RECORDS = [7, 2, 2, 9, 0, 3, 2]


def content(sample: Sample, seed: int = 0) -> tuple:
    """Everything a mechanism sees of a sample, at one dither."""
    order = sample.order(seed)
    found = order.intervals(np.array([0]), np.array([order.n + 1]))
    return (order.n, sample.lattice, sample.bounds, *(part.tolist() for part in found))


def read_only(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


INTEGER_COLUMNS: dict[str, Callable[[list], Any]] = {
    **{
        f"numpy {dtype}": lambda r, dtype=dtype: np.array(r, dtype=dtype)
        for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u8")
    },
    "numpy strided": lambda r: np.repeat(np.array(r, dtype=int), 3)[::3],
    "numpy read-only": lambda r: read_only(np.array(r, dtype=int)),
    "numpy subclass": lambda r: np.array(r, dtype=int).view(np.recarray),
    "numpy masked": lambda r: np.ma.array([*r, 5], mask=[*(False for _ in r), True]),
    "pandas int64": lambda r: pd.Series(r, dtype="int64"),
    "pandas index": lambda r: pd.Index(r, dtype="int64"),
    "pandas other index": lambda r: pd.Series(r, index=range(100, 100 + len(r)), dtype="int64"),
    "pandas uint8": lambda r: pd.Series(r, dtype="uint8"),
    "pandas Int64": lambda r: pd.Series(r, dtype="Int64"),
    "pandas Int64 with NA": lambda r: pd.Series([None, *r], dtype="Int64"),
    "pandas UInt8 array with NA": lambda r: pd.array([None, *r], dtype="UInt8"),
    "pandas arrow": lambda r: pd.Series(r, dtype=pd.ArrowDtype(pa.int16())),
    "pandas arrow with NA": lambda r: pd.Series([None, *r], dtype=pd.ArrowDtype(pa.uint32())),
    "polars": lambda r: pl.Series(r, dtype=pl.Int64),
    "polars with null": lambda r: pl.Series([None, *r], dtype=pl.Int64),
    "polars UInt8 with null": lambda r: pl.Series([*r, None], dtype=pl.UInt8),
    "arrow": lambda r: pa.array(r, pa.int64()),
    "arrow with null": lambda r: pa.array([*r, None], pa.int64()),
    "arrow uint8 with null": lambda r: pa.array([*r, None], pa.uint8()),
    "arrow chunked": lambda r: pa.chunked_array([r[:2], r[2:]], pa.int32()),
    "arrow chunked with null": lambda r: pa.chunked_array([r[:2], [None], r[2:]], pa.int32()),
}
FLOAT_COLUMNS: dict[str, Callable[[list], Any]] = {
    **{
        f"numpy {dtype}": lambda r, dtype=dtype: np.array(r, dtype=dtype)
        for dtype in ("f2", "f4", "f8", "longdouble", ">f8", ">f4")
    },
    "numpy strided": lambda r: np.repeat(np.array(r, dtype=float), 2)[::2],
    "numpy reversed": lambda r: np.array(r[::-1], dtype=float)[::-1],
    "numpy read-only": lambda r: read_only(np.array(r, dtype=float)),
    "numpy unaligned": lambda r: np.frombuffer(
        b"\0" + np.array(r, dtype=float).tobytes(), dtype=np.uint8
    )[1:].view(float),
    "numpy with NaN": lambda r: np.array([np.nan, *r, np.nan]),
    "numpy masked": lambda r: np.ma.array([*r, 5.0], mask=[*(False for _ in r), True]),
    "list of int": list,
    "list of float": lambda r: [float(v) for v in r],
    "list with None": lambda r: [None, *r],
    "list with NaN": lambda r: [float("nan"), *r],
    "list of NumPy scalars": lambda r: [np.int8(v) for v in r],
    "tuple": tuple,
    "generator": lambda r: (v for v in r),
    "pandas float64": lambda r: pd.Series(r, dtype="float64"),
    "pandas float64 with NaN": lambda r: pd.Series([*r, None], dtype="float64"),
    "pandas Float32 with NA": lambda r: pd.Series([*r, None], dtype="Float32"),
    "pandas arrow with NA": lambda r: pd.Series([None, *r], dtype=pd.ArrowDtype(pa.float32())),
    "polars": lambda r: pl.Series(r, dtype=pl.Float64, strict=False),
    "polars Float32 with null": lambda r: pl.Series([*r, None], dtype=pl.Float32, strict=False),
    "polars with NaN": lambda r: pl.Series([*map(float, r), float("nan")]),
    "arrow": lambda r: pa.array(r, pa.float64()),
    "arrow float with null": lambda r: pa.array([None, *r], pa.float32()),
    "arrow half with null": lambda r: pa.array([None, *map(np.float16, r)], pa.float16()),
    "arrow chunked with null": lambda r: pa.chunked_array([r, [None]], pa.float64()),
}


COLUMNS = {
    **{f"integers, {name}": make for name, make in INTEGER_COLUMNS.items()},
    **{f"floats, {name}": make for name, make in FLOAT_COLUMNS.items()},
}


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_of_takes_the_records_whatever_the_type(make):
    expected = np.array(RECORDS, dtype=float)
    assert Sample.of(make(RECORDS), BOUNDS).lattice.step == 1e-5
    for options in ({}, {"resolution": 1.0}, {"resolution": 0}, {"resolution": 0.5}):
        assert content(Sample.of(make(RECORDS), BOUNDS, **options)) == content(
            Sample.of(expected, BOUNDS, **options)
        )


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_of_an_empty_column_has_the_lattice_of_all(make):
    sample = Sample.of(make([]), BOUNDS)
    assert sample.lattice == Sample.of(make(RECORDS), BOUNDS).lattice
    assert sample.order(0).n == 0


@given(st.lists(st.one_of(st.none(), st.integers(), st.floats(), st.integers(10**300, 10**310))))
def test_of_a_list_never_chooses_its_lattice_by_its_values(x):
    sample = Sample.of(x, BOUNDS)
    assert sample.lattice == Sample.of([], BOUNDS).lattice
    kept = [v for v in x if v is not None and v == v]
    assert sample.order().n == len(kept)


class Unnamed:
    """A number that is none of Python's, NumPy's or Arrow's."""

    def __float__(self):
        return 1.0


@pytest.mark.parametrize(
    "missing",
    [
        None,
        float("nan"),
        np.float32("nan"),
        Decimal("nan"),
        Decimal("snan"),
        pd.NA,
        pd.NaT,
        np.datetime64("NaT", "ns"),
        np.timedelta64("NaT", "s"),
        np.ma.masked,
        pa.scalar(None),
        pa.scalar(None, pa.int64()),
        pa.scalar(None, pa.float32()),
    ],
    ids=lambda x: f"{type(x).__name__} {x}",
)
def test_lists_omit_whatever_is_missing(missing):
    for number in (2.0, 2, np.int8(2), np.float64(2), Decimal(2), Fraction(2), pa.scalar(2)):
        kept = Sample.of([number, number], BOUNDS)
        assert content(Sample.of([missing, number, missing, number], BOUNDS)) == content(kept)
    assert Sample.of([missing, Unnamed()], BOUNDS).order().n == 1


@pytest.mark.parametrize(
    "declared",
    [pa.int64(), pa.uint8(), pa.float16(), pa.float32(), pa.float64()],
    ids=str,
)
def test_lists_of_arrow_scalars_are_floats(declared):
    column = pa.array([*map(np.float16, RECORDS), None], pa.float16()).cast(declared)
    expected = content(Sample.of([float(v) for v in RECORDS], BOUNDS))
    assert content(Sample.of(list(column), BOUNDS)) == expected


@pytest.mark.parametrize(
    "item, declared",
    [
        ("5", pa.string()),
        (b"5", pa.binary()),
        (1, pa.timestamp("ns")),
        (1, pa.duration("ns")),
    ],
    ids=str,
)
def test_lists_of_other_arrow_scalars_are_refused_unless_they_are_null(item, declared):
    assert Sample.of([1.0, pa.scalar(None, declared)], BOUNDS).order(0).n == 1
    with pytest.raises(TypeError, match="x must hold real numbers, got"):
        Sample.of([1.0, pa.scalar(item, declared)], BOUNDS)


def test_booleans_and_decimals_are_numbers():
    expected = content(Sample.of([1.0, 0.0, 2.5], BOUNDS))
    for column in (
        [True, np.False_, Decimal("2.5")],
        [pa.scalar(True), pa.scalar(False), pa.scalar(Decimal("2.5"))],
        np.array([True, 0, 2.5], dtype=object),
        pd.Series([True, 0, 2.5], dtype=object),
        pa.array([Decimal("1.0"), Decimal("0.0"), Decimal("2.5")]),
        pl.Series(["1.0", "0.0", "2.5"]).cast(pl.Decimal(10, 1)),
    ):
        assert content(Sample.of(column, BOUNDS)) == expected


@pytest.mark.parametrize(
    "x",
    [
        ["1"],
        [1.0, "2"],
        [b"1"],
        [1j],
        [1.0, np.complex64(2)],
        [type],
        [1.0, type],
        [np.datetime64("2020-01-01")],
        [np.timedelta64(5, "s")],
        [1.0, pd.Timestamp(0)],
        [1.0, pd.Timedelta(5)],
        [1.0, type("NAType", (), {})()],
        "12",
        b"12",
        None,
        3.0,
        np.array([1j]),
        np.array(["1"]),
        np.array([b"1"]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.array([5], dtype="m8[s]"),
        np.zeros(2, dtype="i4,i4"),
        pd.Series(["1"]),
        pd.Series(["1", "2"], dtype="category"),
        pd.Series(pd.to_datetime(["2020-01-01"])),
        pl.Series(["1"]),
        pl.Series([[1, 2]]),
        pl.Series([1], dtype=pl.Date),
        pa.array(["1"]),
        pa.array([[1, 2]]),
        pa.array(["1", None]),
        pd.Series(["1", None], dtype="string"),
    ],
    ids=lambda x: f"{type(x).__module__}.{type(x).__name__} {x}"[:60],
)
def test_of_rejects_what_is_not_real(x):
    with pytest.raises(TypeError, match=r"x must (hold real numbers|be a one-dimensional array)"):
        Sample.of(x, BOUNDS)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((2, 2)),
        np.zeros((3, 1)),
        np.zeros((0, 2)),
        np.array(3.0),
        np.float64(3.0),
        [[1.0, 2.0], [3.0, 4.0]],
        [[1.0]],
        [None, [1.0]],
        [np.zeros(2), np.zeros(2)],
        np.ma.zeros((2, 2)),
    ],
    ids=lambda x: f"{type(x).__module__}.{type(x).__name__}",
)
def test_of_rejects_other_dimensions(x):
    with pytest.raises(ValueError, match="x must be one-dimensional, got"):
        Sample.of(x, BOUNDS)


def test_of_rejects_ragged_lists():
    with pytest.raises(ValueError, match="x must be one-dimensional"):
        Sample.of([[1.0], [2.0, 3.0]], BOUNDS)


@pytest.mark.parametrize(
    "x",
    [pd.DataFrame({0: [1.0, 2.0], 1: [3.0, 4.0]}), {1: 10.0, 2: 20.0}],
    ids=["DataFrame", "dict"],
)
def test_of_never_takes_names_for_records(x):
    """Iterating over a frame or a dict gives its keys, which are no data."""
    with pytest.raises((TypeError, ValueError), match="x must be"):
        Sample.of(x, BOUNDS)


def test_of_takes_the_array_protocol():
    class Column:
        def __array__(self, dtype=None, copy=None):
            return np.array(RECORDS, dtype=float)

    assert content(Sample.of(Column(), BOUNDS)) == content(Sample.of(list(RECORDS), BOUNDS))


def test_of_clamps_without_a_warning():
    inside = [0, 0, 0, 10, 10, 10, 4]
    for x in (
        [-np.inf, -1e308, -0.5, np.inf, 1e308, 10.5, 4],
        [-np.inf, -(10**400), -3, np.inf, 10**400, 2**70, 4],
        np.array([-np.inf, -1e30, -1, np.inf, 1e30, 11, 4], dtype=np.float32),
    ):
        for options in ({}, {"resolution": 1}, {"resolution": 0}):
            sample = Sample.of(x, BOUNDS, **options)
            assert content(sample) == content(Sample.of(inside, BOUNDS, **options))
    huge = np.array([2**64 - 1, 2**63, 4], dtype=np.uint64)
    assert content(Sample.of(huge, BOUNDS)) == content(Sample.of(np.array([10, 10, 4]), BOUNDS))
    low = np.array([-(2**63), 4])
    assert content(Sample.of(low, BOUNDS)) == content(Sample.of(np.array([0, 4]), BOUNDS))


@pytest.mark.parametrize("options", [{}, {"resolution": 1}, {"resolution": 0}])
def test_of_clamps_extended_precision_without_a_warning(implementation, options):
    """A long double may lie beyond float64: whether it does is data, and must not warn."""
    x = np.array([1.0, 2.0, np.finfo(np.longdouble).max])
    law = implementation.joint_exp_law(x, 0.5, epsilon=1.0, bounds=BOUNDS, **options, dither_rng=1)
    y = np.array([1.0, 2.0, np.inf])
    same = implementation.joint_exp_law(y, 0.5, epsilon=1.0, bounds=BOUNDS, **options, dither_rng=1)
    assert law.log_prob(7.0) == same.log_prob(7.0)


def test_of_takes_signaling_nan_without_a_warning(implementation):
    """What bits a NaN has is data, and must not warn."""
    x = np.array([0x3F800000, 0x7FA00000, 0x40000000], dtype=np.uint32).view(np.float32)
    arguments = dict(epsilon=1.0, bounds=BOUNDS, dither_rng=1)
    law = implementation.joint_exp_law(x, 0.5, **arguments)
    same = implementation.joint_exp_law([1.0, 2.0], 0.5, **arguments)
    assert law.log_prob(7.0) == same.log_prob(7.0)


# NaN


MISSING = {
    "float64": np.array([3.0, np.nan, 1.0]),
    "float64 sorted": np.array([1.0, 3.0, np.nan]),
    "only NaN": np.array([np.nan]),
    "float32": np.array([np.nan, 1.0, 3.0], dtype=np.float32),
    "list": [1.0, None, 3.0],
    "masked": np.ma.array([1, 7, 3], mask=[False, True, False]),
    "pandas": pd.Series([1, None, 3], dtype="Int64"),
    "polars": pl.Series([1, None, 3]),
    "arrow": pa.array([1, None, 3]),
}


@pytest.mark.parametrize("x", MISSING.values(), ids=MISSING.keys())
@pytest.mark.parametrize("options", [{}, {"resolution": 1}, {"resolution": 0}, {"dither": True}])
def test_of_raises_on_nan_only_where_told_to(x, options):
    kept = [v for v in as_column(x).tolist() if v == v]
    sample = Sample.of(x, BOUNDS, **options)
    assert sample.order(0).n == len(kept)
    with pytest.raises(ValueError, match=r"^x must not contain NaN with nan_policy='raise'$"):
        Sample.of(x, BOUNDS, nan_policy="raise", **options)
    assert Sample.of(kept, BOUNDS, nan_policy="raise", **options).order(0).n == len(kept)


def test_of_omits_nan_with_its_count():
    x = [1.0, np.nan, 3.0]
    expected = content(Sample.of([1.0, 1.0, 3.0], BOUNDS, resolution=1))
    assert content(Sample.of(x, BOUNDS, resolution=1, counts=[2, 50, 1])) == expected
    with pytest.raises(ValueError, match="x must not contain NaN"):
        Sample.of(x, BOUNDS, counts=[2, 50, 1], nan_policy="raise")
    absent = Sample.of(x, BOUNDS, resolution=1, counts=[2, 0, 1], nan_policy="raise")
    assert content(absent) == expected


# Counts


@given(
    st.lists(st.tuples(st.integers(0, 10), st.integers(0, 5)), max_size=8),
    st.sampled_from([{"resolution": 1}, {"resolution": 1, "dither": False}, {"resolution": 0}, {}]),
)
def test_counts_stand_for_repeated_values(pairs, options):
    values = np.array([float(value) for value, _ in pairs])
    counts = np.array([count for _, count in pairs], dtype=np.int64)
    expected = content(Sample.of(np.repeat(values, counts), BOUNDS, **options))
    for weights in (counts, counts.tolist(), counts.astype(float), counts.astype(np.uint8)):
        assert content(Sample.of(values, BOUNDS, counts=weights, **options)) == expected


@pytest.mark.parametrize(
    "counts, error, message",
    [
        ([1, 2], ValueError, "counts must have one entry for each value of x"),
        ([1, 2, 3, 4], ValueError, "counts must have one entry for each value of x"),
        ([[1, 2, 3]], ValueError, "counts must have one entry for each value of x"),
        (3, ValueError, "counts must have one entry for each value of x"),
        ([1, -31337, 3], ValueError, "counts must not be negative"),
        ([1, 31337.5, 3], ValueError, "counts must be integers"),
        ([1, np.nan, 3], ValueError, "counts must be integers"),
        ([2**52, 2**52, 31337], ValueError, r"counts must sum to at most 2\^53"),
        ([2**63 - 1, 2**63 - 1, 2], ValueError, r"counts must sum to at most 2\^53"),
        ([1, 1e300, 3], ValueError, r"counts must sum to at most 2\^53"),
        (["1", "31337", "3"], TypeError, "counts must be integers"),
        ([True, True, False], TypeError, "counts must be integers"),
        ([1, None, 3], TypeError, "counts must be integers"),
        ([1j, 1, 1], TypeError, "counts must be integers"),
    ],
)
def test_of_rejects_counts(counts, error, message):
    with pytest.raises(error, match=message) as raised:
        Sample.of([1.0, 2.0, 3.0], BOUNDS, counts=counts)
    assert "31337" not in str(raised.value)


@pytest.mark.parametrize("dtype", ["U1", "?", "M8[s]", "c16", object])
def test_counts_are_refused_by_their_type(dtype):
    for size in (0, 1):
        with pytest.raises(TypeError, match="counts must be integers, got dtype"):
            Sample.of(np.ones(size), BOUNDS, counts=np.zeros(size, dtype=dtype))


def test_counts_may_sum_to_2_to_the_53():
    x, many = np.array([2.0, 4.0]), np.arange(1024.0) / 128.0
    # dithers take memory for the records of some points that lie closest, in the middle of a tie
    for values, q, options in (
        (x, [0.0, 0.5, 1.0], {}),
        (many, [0.25, 0.75], {}),
        (x, [0.25, 0.75], {"resolution": 1, "dither": False}),
        (x, [0.25, 0.75], {"resolution": 0}),
    ):
        counts = np.full(values.size, 2**53 // values.size)
        sample = Sample.of(values, BOUNDS, counts=counts, **options)
        assert sample.order().n == 2**53
        out = dpq.joint_exp(sample, q, epsilon=1.0, rng=3)
        assert 0.0 <= out[0] <= out[-1] <= 10.0 and (np.diff(out) >= 0.0).all()
    for counts in ([2**52, 2**52 + 2], [2**53, 1], [1.0, 2.0**53]):
        with pytest.raises(ValueError, match="counts must sum"):
            Sample.of(x, BOUNDS, counts=counts)


def test_huge_counts_are_dithered():
    sample = Sample.of([2.0, 4.0], BOUNDS, counts=[2**28, 2**28], resolution=1)
    out = dpq.joint_exp(sample, [0.25, 0.75], epsilon=1.0, rng=3)
    assert out.tolist() == [2.0, 4.0]


# Order of the records


@given(st.lists(st.floats(-2.0, 12.0), max_size=12), st.sampled_from([None, 1.0, 0]))
def test_sorted_unsorted_and_promised_are_the_same_sample(values, resolution):
    unsorted = np.array(values)
    ascending = np.sort(unsorted)
    expected = content(Sample.of(ascending, BOUNDS, resolution=resolution))
    assert content(Sample.of(unsorted, BOUNDS, resolution=resolution)) == expected
    for promised in (ascending, np.append(ascending, np.nan), ascending[::-1].copy()[::-1]):
        sample = Sample.of(promised, BOUNDS, resolution=resolution, assume_sorted=True)
        assert content(sample) == expected


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
def test_sorted_and_unsorted_integers_are_the_same_sample(dtype):
    x = np.random.default_rng(0).integers(0, 12, size=5_000).astype(dtype)
    for options in ({}, {"resolution": 0}, {"resolution": 0.5}, {"dither": False}):
        expected = content(Sample.of(np.sort(x), BOUNDS, **options))
        assert content(Sample.of(x, BOUNDS, **options)) == expected
        assert content(Sample.of(np.sort(x), BOUNDS, assume_sorted=True, **options)) == expected


@pytest.mark.parametrize("resolution", [None, 1.0, 0])
def test_broken_promise_of_order_is_harmless_to_memory(resolution):
    rng = np.random.default_rng(8)
    for size in (1, 2, 5, 300, 5_000):
        x = rng.uniform(-1.0, 11.0, size=size)
        for values in (x, np.sort(x)[::-1], x.astype(np.float32), (x * 10).astype(int)):
            for release in (dpq.joint_exp, dpq.ind_exp):
                out = release(
                    values,
                    [0.1, 0.5, 0.9],
                    epsilon=1.0,
                    bounds=BOUNDS,
                    resolution=resolution,
                    assume_sorted=True,
                    rng=1,
                )
                assert ((out >= 0.0) & (out <= 10.0)).all()


BROKEN = """
import numpy as np
import dpq_fast as dpq

rng = np.random.default_rng(3)
samples = [[np.nan, 10.0], [np.nan, 5.0], [5.0, np.nan, 1.0], [np.nan, np.nan, 0.0]]
for size in (20, 3_000):
    x = rng.uniform(0.0, 10.0, size=size)
    x[rng.integers(0, size - 1, size=size // 3)] = np.nan
    samples.append(x)
for resolution in {resolutions}:
    for x in samples:
        for release in (dpq.joint_exp, dpq.ind_exp):
            release(
                np.array(x), [0.1, 0.9], epsilon=1.0, bounds=(0.0, 10.0), rng=1,
                resolution=resolution, assume_sorted=True,
            )
print("done")
"""


@pytest.mark.parametrize("resolutions", ["(None, 1.0)", "(0,)"], ids=["lattice", "continuous"])
def test_nan_against_a_promise_of_order_is_harmless(resolutions, tmp_path):
    """In a process of its own: memory must stay safe, and the call must come to an end."""
    code = BROKEN.format(resolutions=resolutions)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,  # not in the checkout: its dpq_fast/ has no compiled modules
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stdout == "done\n", run.stderr


# The Sample itself


@pytest.mark.parametrize("options", [{}, {"resolution": 1}, {"resolution": 0}, {"dither": True}])
def test_sample_stands_for_its_column(options):
    x = np.array([1.5, 3.5, 3.5, 8.0])
    sample = Sample.of(x, BOUNDS, **options)
    q = [0.25, 0.5]
    # of a sample "auto" knows no number of rows
    auto = partial(dpq.quantile, expected_n=1_000)
    for release in (dpq.joint_exp, auto, dpq.ind_exp):
        out = release(sample, q, epsilon=1.0, rng=5)
        again = release(sample, q, epsilon=1.0, bounds=[0, 10], rng=5)
        if release is dpq.ind_exp:  # a dither of a sample is not used, and not to be asked for
            options = {name: options[name] for name in options.keys() - {"dither"}}
        # a sample has its prior, where "auto" takes another one
        prior = {"prior": "uniform"} if release is auto else {}
        column = release(x, q, epsilon=1.0, bounds=BOUNDS, rng=5, **options, **prior)
        np.testing.assert_array_equal(out, column)
        np.testing.assert_array_equal(again, column)


def test_sample_dithers_afresh_in_each_release():
    sample = Sample.of(np.full(50, 3), BOUNDS)
    assert content(sample, 1) == content(sample, 1) != content(sample, 2)


def test_sample_rejects_other_bounds():
    sample = Sample.of([1.0], BOUNDS)
    assert Sample.of(sample, None) is sample
    assert Sample.of(sample, (0, 10)) is sample
    with pytest.raises(ValueError, match="bounds must be left out or equal to the sample's"):
        Sample.of(sample, (0.0, 11.0))


@pytest.mark.parametrize(
    "options",
    [
        {"resolution": 1.0},
        {"resolution": 0},
        {"dither": False},
        {"counts": [1, 1]},
        {"counts": np.array([1, 1])},
        {"assume_sorted": True},
    ],
    ids=str,
)
def test_sample_rejects_arguments_of_its_making(options):
    sample = Sample.of([1.0, 2.0], BOUNDS)
    with pytest.raises(ValueError, match=r"belong to Sample\.of, and must be left out"):
        Sample.of(sample, None, **options)
    with pytest.raises(ValueError, match=r"belong to Sample\.of, and must be left out"):
        dpq.joint_exp(sample, 0.5, epsilon=1.0, **options)


def test_sample_rejects_unknown_nan_policy():
    with pytest.raises(ValueError, match="nan_policy must be one of"):
        Sample.of(Sample.of([1.0], BOUNDS), None, nan_policy="propagate")


def test_decode_and_locate_translate_outputs():
    sample = Sample.of([1.0], BOUNDS, resolution=0.5)
    bits = sample.lattice.bits
    fine = np.array([0, (1 << bits) - 1, 3 << bits, (20 << bits) + 5])
    assert sample.decode(fine).tolist() == [0.0, 0.0, 1.5, 10.0]
    assert sample.locate(np.array([0.0, 1.5, 10.0])).tolist() == [0, 3, 20]
    assert sample.locate(np.array([0.0, 1.25])) is None
    continuous = Sample.of([1.0], BOUNDS, resolution=0)
    assert continuous.decode(np.array([-1e-9, 3.3, 10.1])).tolist() == [0.0, 3.3, 10.0]
    assert continuous.locate(np.array([3.3])).tolist() == [3.3]
    assert continuous.locate(np.array([3.3, 10.5])) is None


# The argument is private and the caller's


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_of_leaves_its_input_unchanged(make):
    x = make(RECORDS)
    if not hasattr(x, "__len__"):
        return  # a generator is used up
    before = copy.deepcopy(x)
    for options in ({}, {"resolution": 1}, {"resolution": 0}):
        content(Sample.of(x, BOUNDS, **options))
    assert str(x) == str(before)


def test_of_leaves_counts_unchanged():
    x, counts = read_only(np.array([3.0, 1.0, 3.0])), read_only(np.array([2, 0, 5]))
    content(Sample.of(x, BOUNDS, counts=counts))
    assert (x.tolist(), counts.tolist()) == ([3.0, 1.0, 3.0], [2, 0, 5])


def test_of_does_not_copy_sorted_floats():
    x = np.arange(1_000.0)
    order = Sample.of(x, (0.0, 1_000.0), dither=False).order()
    x[:] = 500.0  # the sample sees it: it holds no copy
    assert order.rank_of(1) == 0


@pytest.mark.parametrize(
    "x, options",
    [
        ([31337.25, "31338.5"], {}),
        ([[31337.25, 31338.5]], {}),
        (np.full((31337, 2), 31338.5), {}),
        ([[31337.25], [31338.5, 31339.5]], {}),
        ([31337.25, 31338.5j], {}),
        ([31337.25, np.nan], {"nan_policy": "raise"}),
        (np.array([31337.25, np.nan]), {"nan_policy": "raise", "resolution": 1}),
        (np.array([31337.25, "31338"], dtype=object), {}),
        (np.array(["31337"]), {}),
        (pd.Series(["31337"]), {}),
        (pl.Series(["31337"]), {}),
        (pa.array(["31337"]), {}),
        (31337.25, {}),
        ("31337", {}),
        ([31337.25, 31338.5], {"counts": [31339, -31340]}),
        ([31337.25, 31338.5], {"counts": [31339, 31340.5]}),
        ([31337.25, 31338.5], {"counts": [31339] * 31341}),
        ([31337.25, 31338.5], {"counts": [2**53, 31340]}),
    ],
)
@pytest.mark.parametrize("mechanism", ["joint_exp", "ind_exp"])
def test_errors_hold_no_number_of_the_data(implementation, mechanism, x, options):
    release = getattr(implementation, mechanism)
    if implementation is dpq.reference and options.get("counts") == [2**53, 31340]:
        pytest.skip("the reference lays all records out")
    with pytest.raises((TypeError, ValueError)) as raised:
        release(x, 0.5, epsilon=1.0, bounds=(0.0, 50_000.0), **options)
    assert not re.search(r"313\d\d", str(raised.value))


def test_columns_of_real_data_are_taken(real_columns):
    frame = pd.read_csv(real_columns / "adult.csv", nrows=2_000)
    ages = frame["age"] if "age" in frame else frame.iloc[:, 0]
    sample = Sample.of(ages, (0, 100))
    assert sample.lattice.step == 1e-4
    assert sample.order(0).n == 2_000
    median = dpq.median(ages, epsilon=1.0, bounds=(0, 100), rng=0)
    assert abs(median - float(ages.median())) <= 3.0


# --- records without bounds

MIXED = np.array([-np.inf, -7.5, -3.0, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, 3.0, 1e9, np.inf, np.nan])


def geometric_counts(records, beta, lower, upper=None, negate=False):
    """Thresholds, counts from each on, how many records are below `lower`, how many thresholds."""
    bins = Bins.geometric(beta, lower, upper, below=True)
    counts = records.count(bins, negate)
    below = int(counts[0])
    counts[bins.find(lower)] += below
    return bins.edges[1:], counts[1:], below, bins.size - 1


def assert_counted(records, values, weights=None, beta=2.0, lower=-1.0, upper=None):
    """Counted by thresholds from both sides, as the reference counts the values."""
    for negate in (False, True):
        thresholds, counts, below, size = geometric_counts(records, beta, lower, upper, negate)
        column = [-float(v) if negate else float(v) for v in values]
        weight = [1] * len(column) if weights is None else [int(w) for w in weights]
        ends, expected = reference.geometric_counts(column, beta, lower, weight, upper=upper)
        assert (thresholds.tolist(), counts.tolist(), size) == (ends, expected, len(ends))
        assert below == sum(w for v, w in zip(column, weight, strict=True) if v < lower)
        assert counts.dtype == np.int64
        bins = Bins.of([-5.0, 0.0, 1.0, 3.0, 8.0])
        assert records.count(bins, negate=negate).tolist() == reference.edge_counts(
            column, bins.edges.tolist(), weights
        )


@pytest.mark.parametrize("make", INTEGER_COLUMNS.values(), ids=INTEGER_COLUMNS)
def test_records_take_every_column(make):
    records = Records.of(make(RECORDS))
    assert records.total == len(RECORDS)
    assert_counted(records, RECORDS)


@pytest.mark.parametrize("dtype", ["f8", ">f8", "f4", ">f4", "f2"])
@pytest.mark.parametrize("upper", [None, 3.0])
def test_records_take_every_layout(dtype, upper):
    with np.errstate(over="ignore"):
        x = MIXED.astype(dtype)
    for column in (x, np.repeat(x, 3)[::3], x[::-1], read_only(x.copy())):
        before = column.copy()
        records = Records.of(column)
        assert records.total == x.size - 1
        assert_counted(records, x.tolist(), upper=upper)
        assert column.tobytes() == before.tobytes()
    assert_counted(Records.of(x.tolist()), x.tolist(), upper=upper)


def test_records_at_thresholds_from_both_sides():
    thresholds = np.array(reference.geometric_thresholds(1.01, 0.1, 50.0))
    near = [np.nextafter(thresholds, -np.inf), thresholds, np.nextafter(thresholds, np.inf)]
    x = np.concatenate([*near, *(-part for part in near)])
    assert_counted(Records.of(x), x.tolist(), beta=1.01, lower=0.1)
    assert_counted(Records.of(x), x.tolist(), beta=1.01, lower=0.1, upper=20.0)


def test_records_take_counts():
    weights = np.arange(MIXED.size)
    for counts in (weights, weights.astype(">u2"), weights.astype(float), weights.tolist()):
        records = Records.of(MIXED, counts=counts)
        assert records.total == weights[:-1].sum()
        assert_counted(records, MIXED.tolist(), weights.tolist())
    assert_counted(
        Records.of(MIXED.astype(">f4"), counts=weights), MIXED.tolist(), weights.tolist()
    )


def test_records_of_nothing():
    for records in (Records.of([]), Records.of([np.nan]), Records.from_batches(lambda: ())):
        assert records.total == 0
        assert_counted(records, [])


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_records_do_not_depend_on_workers(workers):
    x = np.random.default_rng(0).normal(0.0, 5.0, 3 * MIN_SHARE + 5)
    expected = [
        geometric_counts(Records.of(x), 1.01, 0.5, negate=negate) for negate in (False, True)
    ]
    for records in (
        Records.of(x, workers=workers),
        Records.from_batches(lambda: np.array_split(x, 2), workers=workers),
    ):
        assert records.total == x.size
        for negate in (False, True):
            found = geometric_counts(records, 1.01, 0.5, negate=negate)
            for part, known in zip(found, expected[negate], strict=True):
                np.testing.assert_array_equal(part, known)


def test_records_of_a_sample_are_clamped():
    x = [-5.0, 0.0, 2.0, 50.0, np.inf]
    clamped = [0.0, 0.0, 2.0, 10.0, 10.0]
    for options in ({}, {"counts": [1, 2, 3, 4, 5]}, {"resolution": 0.5}):
        records = Records.of(Sample.of(x, BOUNDS, **options))
        assert Records.of(records) is records
        weights = options.get("counts", [1] * len(x))
        assert records.total == sum(weights)
        for lower in (-1.0, 0.0, 1.0, 20.0):
            assert_counted(records, clamped, weights, lower=lower)
    assert_counted(Records.of(Sample.from_batches(lambda: [x], BOUNDS)), clamped)
    assert_counted(Records.of(Sample.of([], BOUNDS)), [])


edge = st.integers(-6, 6).map(float)


@given(
    x=st.lists(st.one_of(edge, st.floats(allow_nan=True)), max_size=30),
    edges=st.lists(st.tuples(edge, edge).map(sorted), min_size=1, max_size=3),
    bounds=st.none() | st.sampled_from([(-20.0, 20.0), (-2.0, 3.0), (7.0, 8.0), (-9.0, -8.0)]),
    negate=st.booleans(),
)
def test_records_within_ranges_are_all_counted(x, edges, bounds, negate):
    ranges = []
    for lo, hi in sorted(edges):  # so that they do not overlap
        ranges.append((max([lo, *(b for _, b in ranges)]), max([hi, *(b for _, b in ranges)])))
    lo, hi = np.array(ranges).T
    bins = Bins.of(np.concatenate([[-np.inf], np.sort([*lo, *hi, *(0.5 * (lo + hi))]), [np.inf]]))
    inside = [k for k in range(bins.size) if any((lo <= bins.edges[k]) & (bins.edges[k + 1] <= hi))]
    column = np.array(x, dtype=float)
    for records in (
        Records.of(column if bounds is None else Sample.of(column, bounds)),
        Records.of(column, counts=np.ones(column.size)),
        Records.from_batches(lambda: [column[:7], column[7:]], workers=2),
    ):
        counts = records.count(bins, negate, within=(lo, hi))
        assert counts[inside].tolist() == records.count(bins, negate)[inside].tolist()


@pytest.mark.parametrize("negate", [False, True])
def test_records_beyond_a_bound_are_in_a_range_that_begins_or_ends_there(negate):
    x = np.array([-np.inf, -9.0, -2.0, -1.0, 1.0, 3.0, 4.0, 5.0, np.inf])
    records = Records.of(Sample.of(x, (-2.0, 3.0)))
    above = np.nextafter(3.0, 4.0)
    for lo, hi in ((-2.0, -1.5), (2.0, above), (3.0, above), (-2.0, above)):
        edges = np.array([-np.inf, lo, hi, np.inf])
        if negate:
            lo, hi = -np.nextafter(hi, -np.inf), np.nextafter(-lo, np.inf)
            edges = np.array([-np.inf, lo, hi, np.inf])
        bins = Bins.of(edges)
        within = np.array([lo]), np.array([hi])
        assert records.count(bins, negate, within)[1] == records.count(bins, negate)[1] >= 3


def test_records_follow_nan_policy():
    for make in (
        lambda **options: Records.of([1.0, np.nan], **options),
        lambda **options: Records.of([1.0, np.nan], counts=[1, 0], **options),
        lambda **options: Records.from_batches(lambda: [[1.0], [np.nan]], **options),
    ):
        assert make().total == 1
        with pytest.raises(ValueError, match="x must not contain NaN with nan_policy='raise'"):
            make(nan_policy="raise")
        with pytest.raises(ValueError, match="nan_policy must be one of"):
            make(nan_policy="drop")
    assert Records.of([1.0, np.inf], nan_policy="raise").total == 2


def test_records_warn_of_nothing():
    signaling = np.array([0x7FF0000000000001, 0x3FF0000000000000], dtype=np.uint64).view(float)
    for column in (signaling, signaling.astype(">f8"), np.array([1e300], dtype=np.longdouble)):
        for negate in (False, True):
            records = Records.of(column)
            assert geometric_counts(records, 2.0, 0.0, None, negate)[1].sum() == records.total == 1


@pytest.mark.parametrize(
    "x, options, error, message",
    [
        (5, {}, TypeError, "x must be a one-dimensional array or sequence, got int"),
        ([[1.0]], {}, ValueError, "x must be one-dimensional, got a nested sequence"),
        (["a"], {}, TypeError, "x must hold real numbers, got str"),
        ([1.0], {"counts": [1, 2]}, ValueError, "counts must have one entry for each value of x"),
        ([1.0], {"counts": [-1]}, ValueError, "counts must not be negative"),
        ([1.0], {"workers": 0}, ValueError, "workers must"),
        (Records.of([1.0]), {"counts": [1]}, ValueError, "counts and nan_policy belong to"),
        (Records.of([1.0]), {"nan_policy": "raise"}, ValueError, "must be left out for a Records"),
        (Sample.of([1.0], BOUNDS), {"counts": [1]}, ValueError, "must be left out for a Sample"),
    ],
)
def test_records_reject(x, options, error, message):
    with pytest.raises(error, match=message):
        Records.of(x, **options)


@pytest.mark.parametrize(
    "values",
    [
        np.array([0x7F800001, 0x3F800000], dtype=np.uint32).view(np.float32),
        np.array(["1e4000", "1"], dtype=np.longdouble),
        np.array([np.inf, 1.0]),
    ],
    ids=["signaling", "beyond float64", "infinite"],
)
def test_no_value_of_a_masked_array_or_count_gives_a_warning(values):
    column = np.ma.array(values, mask=[False, True])
    assert dpq.Sample.of(column, (0.0, 1.0)).histogram(1).sum() <= 1
    with pytest.raises(ValueError, match="counts must "):
        dpq.Sample.of([0.0, 1.0], (0.0, 1.0), counts=values)


# --- what is looked for in long columns, and across pieces


@pytest.mark.parametrize(
    "make", [Sample.of, lambda x, *a, **k: Sample.from_batches(lambda: [x], *a, **k)]
)
def test_long_columns_with_nan_are_refused_by_policy(make):
    x = np.random.default_rng(0).normal(size=70_000)
    bounds = (-9.0, 9.0)
    make(x, bounds, nan_policy="raise")
    x[12_345] = np.nan
    with pytest.raises(ValueError, match="x must not contain NaN with nan_policy='raise'"):
        make(x, bounds, nan_policy="raise")
    make(x, bounds)


@pytest.mark.parametrize("dtype", ["f4", ">f8", "i2"])
def test_order_is_looked_for_across_pieces(dtype, monkeypatch):
    monkeypatch.setattr(choice_module, "CONVERTED", 4)
    options = dict(epsilon=5.0, bounds=(0, 20), resolution=1, dither=False)
    for drop in range(1, 13):
        x = np.arange(13).astype(dtype)
        x[drop:] -= np.asarray(drop).astype(dtype)  # ascends, but for one step down
        expected = dpq.joint_exp(np.sort(x), [0.2, 0.5, 0.9], rng=drop, **options)
        np.testing.assert_array_equal(
            dpq.joint_exp(x, [0.2, 0.5, 0.9], rng=drop, **options), expected
        )


@pytest.mark.parametrize("negate", [False, True])
def test_records_in_ranges_are_counted_however_many_there_are(negate, monkeypatch):
    monkeypatch.setattr(BinCounts, "FOUND", 4)
    x = np.random.default_rng(0).integers(0, 40, 500).astype(float)
    low, high = (-20.0, -10.0) if negate else (10.0, 20.0)
    bins = Bins.of(np.arange(low, high + 1.0))
    counts = Records.of(x).count(bins, negate, within=(np.array([low]), np.array([high])))
    column = -x if negate else x
    expected = [np.count_nonzero(column == value) for value in np.arange(low, high)]
    assert counts[1:9].tolist() == expected[1:9]  # the end bins hold all beyond them, too
    assert sum(expected) > 4


@pytest.mark.parametrize(
    "make",
    [
        lambda x: pd.Series(x).astype("category"),
        pd.Categorical,
        lambda x: pa.array(x).dictionary_encode(),
        lambda x: pa.chunked_array([pa.array(x[k : k + 7]).dictionary_encode() for k in (0, 7)]),
        lambda x: pd.Series(x, dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.float64()))),
    ],
)
def test_categories_and_dictionaries_of_numbers_are_numbers(make):
    x = [5.0, 1.0, None, 2.5, 9.0, 1.0, -3.0, 7.0, None, 2.0, 2.0, 8.0]
    column = make(x)
    assert np.array_equal(as_column(column), np.array(x, dtype=float), equal_nan=True)
    options = dict(q=[0.2, 0.7], epsilon=1.0, bounds=(0, 10), rng=1)
    expected = dpq.joint_exp(x, **options)
    assert np.array_equal(dpq.joint_exp(column, **options), expected)
    expected = dpq.reference.joint_exp(x, **options)
    assert np.array_equal(dpq.reference.joint_exp(column, **options), expected)
