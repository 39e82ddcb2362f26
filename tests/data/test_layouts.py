"""Columns of every type, layout and container: what is documented alike gives the same answer."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

import hostile
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from releases import BOUNDS, LEVELS, RELEASES

import dpq_fast as dpq

LOW, HIGH = BOUNDS["bounds"]
BUDGETS = dict(epsilon1=1.0, epsilon2=1.0)


def asked(law: Any) -> np.ndarray:
    return law.sample(rng=3, size=5)


def described(x: Any) -> pd.DataFrame:
    return dpq.describe({"x": x}, epsilon=1.0, bounds={"x": (LOW, HIGH)}, rng=1)


def planned(plan: Callable[..., dpq.Plan], x: np.ndarray, **options: Any) -> dpq.Plan:
    """The plan of a guess that has mass between the bounds."""
    return plan(n=9, guess=np.append(x, 1.0), epsilon=1.0, releases=100, **options)


# What takes a column, or several numbers, and is no release: private answers, laws, metrics.
ANSWERS: dict[str, Callable[[Any], Any]] = {
    "joint_exp_law": lambda x: asked(dpq.joint_exp_law(x, dither_rng=1, **LEVELS)),
    "ind_exp_law": lambda x: asked(dpq.ind_exp_law(x, **LEVELS)),
    "approx_quantiles_law": lambda x: asked(dpq.approx_quantiles_law(x, dither_rng=1, **LEVELS)),
    "two_stage_law": lambda x: dpq.two_stage_law(x, dither_rng=1, **LEVELS).sample(3),
    "unbounded_quantile_law": lambda x: asked(dpq.unbounded_quantile_law(x, 0.5, epsilon=1.0)),
    "above_threshold_law": lambda x: asked(dpq.above_threshold_law(np.asarray(x), 1.0, **BUDGETS)),
    "above_threshold, queries": lambda x: dpq.above_threshold(np.asarray(x), 1.0, rng=1, **BUDGETS),
    "sparse_vector, queries": lambda x: dpq.sparse_vector(
        np.asarray(x), 1.0, halts=3, rng=1, **BUDGETS
    ),
    "Sample": lambda x: dpq.Sample.of(x, **BOUNDS).histogram(8),
    "Sample, geometric": lambda x: dpq.Sample.of(x, **BOUNDS).geometric_counts(2.0, 0.0)[1],
    "Sample, counts": lambda x: dpq.joint_exp(
        dpq.Sample.of(x, **BOUNDS, counts=np.arange(len(x)) % 3), [0.5], epsilon=1.0, rng=1
    ),
    "Sample, batches": lambda x: dpq.Sample.from_batches(lambda: iter([x, x]), **BOUNDS).histogram(
        [-10.0, 0.0, 1.0, 10.0]
    ),
    "PartialTree": lambda x: (
        dpq.PartialTree.of(x, height=2, branching=3, **BOUNDS)
        .merge(dpq.PartialTree.of(x, height=2, branching=3, **BOUNDS))
        .release(epsilon=1.0, rng=1)
        .counts[2]
    ),
    "AggTree": lambda x: dpq.AggTree.of(x, epsilon=1.0, rng=1, **BOUNDS).quantile([0.2, 0.7]),
    "Table": lambda x: dpq.median(dpq.Table.of({"x": x})["x"], epsilon=1.0, rng=1, **BOUNDS),
    "together": lambda x: dpq.together(lambda: dpq.median(x, epsilon=1.0, rng=1, **BOUNDS)),
    "describe": lambda x: described(x).iloc[0, 1:].to_numpy(dtype=float),
    "AggTree, counts": lambda x: dpq.AggTree.of(x, epsilon=1.0, rng=1, **BOUNDS).count(-3.0, 2.0),
}
# What takes public numbers.
READINGS: dict[str, Callable[[np.ndarray], Any]] = {
    "CDF": hostile.CURVE.cdf,
    "AggTree.cdf": hostile.TREE.cdf,
    "AggTree.count": lambda x: hostile.TREE.count(-10.0, np.abs(x)),
    "CDF.count": lambda x: hostile.CURVE.count(-math.inf, x),
    "CDF.ks": lambda x: hostile.CURVE.ks(np.append(x, 0.0)),
    "plan": lambda x: planned(dpq.plan, x, q=0.5, bounds=(LOW, HIGH)).ranks.worst,
    "Plan": lambda x: planned(dpq.plan, x, q=0.5).values.expected,
    "plan_sum": lambda x: planned(dpq.plan_sum, x).values.expected,
    "plan_mean": lambda x: planned(dpq.plan_mean, x, q=None, upper=HIGH).values.expected,
    "metrics.rank_error": lambda x: dpq.metrics.rank_error(x, 0.5, x),
    "metrics.distance_error": lambda x: dpq.metrics.distance_error(np.append(x, 1.0), 0.5, 0.0),
}
KINDS = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u1")


@st.composite
def plain(draw: st.DrawFn) -> np.ndarray:
    """A contiguous native column of any numeric type, with the strangest values of it."""
    kind = np.dtype(draw(st.sampled_from(KINDS)))
    size = draw(st.integers(0, 12))
    if draw(st.booleans()) and size:  # any bits at all: subnormal, ±0, signaling NaN
        return np.frombuffer(
            draw(st.binary(min_size=size * kind.itemsize, max_size=size * kind.itemsize)), kind
        ).copy()
    if kind.kind == "f":
        info = np.finfo(kind)
        odd = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.5, LOW, HIGH]
        odd += [info.max, -info.max, info.smallest_subnormal, -info.tiny]
    else:
        info = np.iinfo(kind)
        odd = [0, 1, 3, info.min, info.max]
    return np.array(draw(st.lists(st.sampled_from(odd), min_size=size, max_size=size)), dtype=kind)


def misaligned(x: np.ndarray) -> np.ndarray:
    return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype)


def read_only(x: np.ndarray) -> np.ndarray:
    out = x.copy()
    out.flags.writeable = False
    return out


def bits_in(x: np.ndarray, shape: tuple[int, ...], place: Any, order: str = "C") -> np.ndarray:
    """The same records as a part of a larger array."""
    whole = np.zeros(shape, dtype=x.dtype, order=order)
    whole[place] = x
    return whole[place]


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "strided": lambda x: bits_in(x, (3 * x.size,), slice(None, None, 3)),
    "reversed": lambda x: x[::-1].copy()[::-1],
    "column of C": lambda x: bits_in(x, (x.size, 4), (slice(None), 2)),
    "row of Fortran": lambda x: bits_in(x, (4, x.size), 2, "F"),
    "other bytes": lambda x: x.astype(x.dtype.newbyteorder()),
    "misaligned": misaligned,
    "misaligned, other bytes": lambda x: misaligned(x.astype(x.dtype.newbyteorder())),
    "read-only": read_only,
    "of a structure": lambda x: bits_in(x, (x.size,), slice(None)).view([("x", x.dtype)])["x"],
    "subclass": lambda x: x.view(type("Column", (np.ndarray,), {})),
    "pandas": pd.Series,
}
# Columns of a declared type that may miss records; None stands for a missing one.
COLUMNS: dict[str, Callable[[list[Any], str], Any]] = {
    "pandas": lambda items, kind: pd.array(items, dtype=kind),
    "pandas, column": lambda items, kind: pd.Series(items, dtype=kind),
    "polars": lambda items, kind: pl.Series(items, dtype=getattr(pl, kind)),
    "pyarrow": lambda items, kind: pa.array(items, type=getattr(pa, kind.lower())()),
    "pyarrow, in parts": lambda items, kind: pa.chunked_array(
        [items[:2], items[2:]], type=getattr(pa, kind.lower())()
    ),
}


def quiet(view: Callable[[np.ndarray], Any], x: np.ndarray) -> Any:
    """A view of a column; what NumPy says of making it does not count."""
    with np.errstate(all="ignore"):
        return view(x)


def answer(name: str, x: Any) -> Any:
    """The answer of a call, seeded; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ANSWERS[name](x) if name in ANSWERS else RELEASES[name](x, 1)


def same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(one, other)
    assert type(one) is type(other)


CALLED = [*RELEASES, *ANSWERS]


@pytest.mark.parametrize("name", CALLED)
@settings(max_examples=12)
@given(x=plain(), layout=st.sampled_from(list(LAYOUTS)))
def test_layout_does_not_matter(name, x, layout):
    given_column = quiet(LAYOUTS[layout], x)
    before = np.asarray(given_column).tobytes()
    same(answer(name, given_column), answer(name, x))
    assert np.asarray(given_column).tobytes() == before


@pytest.mark.parametrize("name", CALLED)
@settings(max_examples=8)
@given(x=plain().filter(lambda x: x.dtype.kind == "f"), container=st.booleans())
def test_every_float_is_the_float64_that_it_equals(name, x, container):
    with np.errstate(all="ignore"):
        as_float64 = x.astype(np.float64)
    same(answer(name, as_float64.tolist() if container else x), answer(name, as_float64))


# Queries are arrays.
@pytest.mark.parametrize(
    "name", [name for name in CALLED if not name.startswith(("above_threshold", "sparse_vector"))]
)
@settings(max_examples=8)
@given(
    items=st.lists(st.one_of(st.none(), st.integers(-9, 9)), max_size=9),
    column=st.sampled_from(list(COLUMNS)),
    kind=st.sampled_from(["Float64", "Int64"]),
)
def test_columns_with_nulls_are_masked_arrays(name, items, column, kind):
    missing = [item is None for item in items]
    values = np.array([item or 0 for item in items], dtype=kind.lower())
    made = COLUMNS[column](items, kind)
    same(answer(name, made), answer(name, np.ma.array(values, mask=missing)))
    if kind == "Float64":
        same(answer(name, made), answer(name, np.where(missing, np.nan, values)))


@pytest.mark.slow
@pytest.mark.parametrize("name", READINGS)
@settings(max_examples=8)
@given(x=plain(), layout=st.sampled_from(list(LAYOUTS)))
def test_public_numbers_in_any_layout(name, x, layout):
    with np.errstate(all="ignore"):
        x = np.nan_to_num(x, copy=True)
    given_numbers = quiet(LAYOUTS[layout], x)
    found = np.asarray(READINGS[name](x))
    same(np.asarray(READINGS[name](given_numbers)), found)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("name", RELEASES)
@settings(max_examples=12)
@given(x=plain())
def test_answers_are_finite_and_in_range(name, x):
    out = answer(name, x)
    if out is None:
        assert name == "above_threshold"
        return
    flat = np.ravel(out)
    if name == "unbounded_quantile, interval":  # values, and ends where there is no bound
        assert (flat.reshape(-1, 3)[:, 1] <= flat[::3]).all()
        flat = flat[::3]
    assert np.isfinite(flat).all()
    parameters = inspect.signature(getattr(dpq, name.split(",")[0])).parameters
    if "cdf" in name:
        assert ((flat >= 0.0) & (flat <= 1.0)).all()
    elif name.startswith(("var", "std")):
        assert (flat >= 0.0).all()
    elif name.startswith("iqr"):
        assert ((flat >= 0.0) & (flat <= HIGH - LOW)).all()
    elif (
        "unbounded" not in name
        and "sum" not in name
        and ("bounds" in parameters or "options" in parameters)
    ):
        assert ((flat >= LOW) & (flat <= HIGH)).all()


def test_a_signaling_nan_of_a_short_float_is_left_out_without_a_warning():
    x = np.array([0x7F800001, 0x3F800000], dtype=np.uint32).view(np.float32)  # signaling, and 1
    for column in (x[1:], x[:1], x[::-1], x):
        kept = [1.0] * int((column == 1.0).sum())
        assert answer("ind_exp", column).tolist() == answer("ind_exp", kept).tolist()


# What is no column, and what is said of it: the same whatever it holds.
REFUSED: dict[str, tuple[Callable[[int], Any], str]] = {
    "strings": (lambda k: np.array([["a"], ["b"]][k]), "must .*real numbers, got dtype"),
    "objects": (lambda k: np.array([["a"], [None, "b"]][k], dtype=object), "real numbers, got"),
    "complex": (lambda k: np.array([1.0 + 1j * k]), "got dtype complex128"),
    "dates": (lambda k: np.array([k], dtype="datetime64[s]"), r"got dtype datetime64\[s\]"),
    "spans": (lambda k: np.array([k], dtype="timedelta64[s]"), r"got dtype timedelta64\[s\]"),
    "records": (lambda k: np.zeros(k + 1, dtype=[("a", "f8")]), "got dtype"),
    "tables": (lambda k: np.full((2, 2), float(k)), "must be one-dimensional"),
    "Fortran tables": (lambda k: np.full((2, 2), float(k), order="F"), "must be one-dimensional"),
    "one number": (lambda k: np.array(float(k)), "must be one-dimensional"),
}


HAVE_KEYS = ("quantile_by", "count_by", "sum_by", "sum_by, public", "mean_by", "mean_by, public")
HAVE_KEYS += ("min_by", "max_by", "iqr_by", "box_by", "var_by", "std_by, public")
HAVE_KEYS += ("Sample, counts", "quantile_by, two stages")


@pytest.mark.parametrize(
    "name",
    # two of the releases count records, and turn what they are given into numbers
    [name for name in CALLED if name not in ("above_threshold", "sparse_vector")],
)
def test_what_is_no_column_is_refused_by_its_form(name):
    for kind, (make, message) in REFUSED.items():
        if kind == "one number" and name.split(", prior")[0] in HAVE_KEYS:
            continue  # the keys and counts have its length
        if name.startswith(("count", "describe")):  # counts take times and text, and say so
            if kind in ("dates", "spans", "strings", "objects") and name != "describe":
                continue
            message = message.replace("real numbers", "real numbers(, times, durations or text)?")
        assert len({refusal(name, make(k), message) for k in (0, 1)}) == 1, kind


def refusal(name: str, column: np.ndarray, message: str) -> tuple[type, str]:
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        answer(name, column)
    return caught.type, str(caught.value)


def test_every_public_function_is_called():
    """Here, and among the hostile calls; modules by each of their functions."""
    modules = {name for name in dpq.__all__ if inspect.ismodule(getattr(dpq, name))}
    called = {name.split(",")[0].split(".")[0] for name in (*RELEASES, *ANSWERS, *READINGS)}
    # answers, what stands for counts, and a release of keys, which are no records
    called |= {"Box", "Estimate", "GroupBoxes", "GroupQuantiles", "GroupValues"}
    called |= {"Weights", "select_keys", "value_counts"}
    books = {"Accountant", "BudgetExceeded", "Guarantee"}  # called by their names in `privacy`
    assert set(dpq.__all__) - modules <= called | books
    public = hostile.functions()
    assert set(hostile.LEFT_OUT) <= set(public)
    assert {name for name in public if name not in hostile.CALLS} == set(hostile.LEFT_OUT)
    assert {name.split(".")[0] for name in public} == {*dpq.__all__, "diffprivlib"} - books


@pytest.mark.slow
def test_usual_calls_are_answered():
    """Else a call would be refused for that, and its other arguments never be looked at."""
    rng, x = np.random.default_rng(0), np.linspace(-3.0, 5.0, 20)
    for name, call in hostile.CALLS.items():
        if name != "privacy.Accountant.charge":  # the accountant there takes nothing
            usual = call.arguments.items()
            call.make({key: hostile.usual_value(rng, one, x, rng, 0, 4) for key, one in usual})


@pytest.mark.parametrize(
    "name", [name for name in hostile.CALLS if not name.startswith(("privacy.", "reference."))]
)
def test_every_argument_is_handed_on(name):
    """What no argument may be is refused in the place of each of them."""
    call, rng, x = hostile.CALLS[name], np.random.default_rng(0), np.linspace(-3.0, 5.0, 20)
    usual = {
        key: hostile.usual_value(rng, one, x, rng, 0, 4) for key, one in call.arguments.items()
    }
    for key, one in call.arguments.items():
        if (name, key) == ("diffprivlib.count_nonzero", "array"):
            continue  # whatever it is, it is zero or not
        if not isinstance(one, hostile.Checked):
            with pytest.raises((TypeError, ValueError)):
                call.make(usual | {key: object()})
