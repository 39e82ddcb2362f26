"""Columns that belong together row by row: those of pandas go by the labels of their indexes.

All public functions that take two of them are found in the table of `tests/hostile.py`.
"""

from __future__ import annotations

import re
from typing import Any

import hostile
import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpq_fast as dpq
import dpq_fast.accessors
from dpq_fast import privacy

PAIRED = [name for name, call in hostile.CALLS.items() if {"by", "counts"} & call.arguments.keys()]
PAIRED = [name for name in PAIRED if not name.startswith("describe")]  # takes names: below
PERSONS = [name for name in PAIRED if name.endswith(", persons")]  # have ids in place of counts
PAIRED = [name for name in PAIRED if name not in PERSONS]

X = np.array([np.nan, 1.0, 2.0, 9.0, np.nan, 3.0, 8.0, 7.0])
BY = np.array([0, 0, 0, 1, 1, 0, 1, 1])
COUNTS = np.array([9, 30, 4, 1, 0, 3, 1, 2])
LABELS = ["p", "q", "r", "s", "t", "u", "v", "w"]
# Of each column other than the first: another order of the rows.
ORDER = np.array([3, 7, 6, 1, 0, 2, 5, 4])

INTERVALS = ("confidence", "interval_share", "expected_n")
RULE = r"^(x|by|by\[0\]) and (by|by\[1\]|counts) must have equal indexes, or the same labels in "
RULE += r"another order, each once$"


def call(name: str, rng: Any, /, **given: Any) -> Any:
    """What a public function answers, as something that can be compared."""
    usual = hostile.CALLS[name]
    arguments = {
        key: value.value if isinstance(value, hostile.Checked) else value
        for key, value in usual.arguments.items()
        if not (value is hostile.NOISE or value is hostile.COUNTS)
    }
    arguments |= {key: column for key, column in given.items() if key in usual.arguments}
    arguments |= {key: rng for key in ("rng", "dither_rng") if key in usual.arguments}
    if "confidence" in arguments:  # no intervals, which take their time
        arguments |= {key: None for key in INTERVALS if key in arguments}
    if arguments.get("epsilon") is not None:
        arguments["epsilon"] = 3.0
    if arguments.get("groups", 0) is None or ("groups" not in arguments and "by" in arguments):
        arguments["delta"] = 0.5  # few records are enough for a key
    answer = usual.make(arguments)
    if isinstance(answer, tuple):  # of a histogram, with its edges
        answer = answer[0]
    if isinstance(answer, dpq.Sample):
        answer = dpq.quantile(answer, [0.1, 0.5, 0.9], epsilon=1.0, method="joint_exp", rng=rng)
    if hasattr(answer, "log_prob") or hasattr(answer, "pilot"):
        answer = answer.sample(rng=rng)
    if isinstance(answer, dpq.PartialTree):
        answer = answer.release(epsilon=1.0, rng=rng)
    if hasattr(answer, "quantile"):
        answer = [answer.quantile(level) for level in (0.1, 0.5, 0.9)]
    if hasattr(answer, "groups"):
        parts = (answer.groups, answer.values, answer.low, answer.high)
        answer = [None if part is None else part.tolist() for part in parts]
    return np.asarray(answer, dtype=object).tolist()


def columns(order: Any = slice(None), index: Any = LABELS) -> dict[str, pd.Series]:
    """The three columns; all but the first one in another order of the rows."""
    made = {"x": X, "by": BY, "counts": COUNTS}
    given = {key: pd.Series(values, index=index) for key, values in made.items()}
    return {
        key: column if key == "x" else column.iloc[order]  # `select_keys` has no x
        for key, column in given.items()
    }


@pytest.mark.parametrize("name", PAIRED)
def test_columns_of_pandas_belong_together_by_label(name):
    shuffled = columns(ORDER)
    if "x" not in hostile.CALLS[name].arguments:
        shuffled["by"] = columns()["by"]
    by_position = {key: column.to_numpy() for key, column in shuffled.items()}
    differ = False
    for seed in range(20):
        expected = call(name, seed, x=X, by=BY, counts=COUNTS)
        assert call(name, seed, **columns()) == expected
        assert call(name, seed, **shuffled) == expected
        differ = differ or call(name, seed, **by_position) != expected
        if differ:  # or how could it be seen
            break
    assert differ or name == "unbounded_quantile, inverted"  # which stops at its first candidate


def test_every_function_of_two_columns_is_called():
    by_group = {"quantile_by", "sum_by", "mean_by", "count_by", "select_keys", "var_by", "std_by"}
    assert by_group | {f"reference.{name}" for name in by_group} < set(PAIRED)
    assert {"count", "median", "cdf", "AggTree.of", "PartialTree.of", "Sample.of"} < set(PAIRED)


UNLIKE = {
    "other labels": [*LABELS[:-1], "z"],
    "a label twice": [*LABELS[:-1], "p"],
    "of another type": range(8),
    "times": pd.date_range("2020-01-01", periods=8),
    "several levels": pd.MultiIndex.from_arrays([LABELS, LABELS]),
    "no label can be hashed": pd.Index(pd.Series([[label] for label in LABELS])),
}


@pytest.mark.parametrize("name", PAIRED)
def test_columns_of_other_indexes_are_refused_before_the_charge(name):
    accountant = privacy.Accountant(100.0, 0.5)
    first = "x" if "x" in hostile.CALLS[name].arguments else "by"
    for index in UNLIKE.values():
        given = columns(index=index)
        given[first] = columns()[first]
        if "counts" not in hostile.CALLS[name].arguments:
            del given["counts"]
        with pytest.raises(ValueError, match=RULE):
            call(name, 1, accountant=accountant, **given)
    shorter = columns()
    shorter = {key: column if key == first else column[:-1] for key, column in shorter.items()}
    with pytest.raises(ValueError, match=RULE):
        call(name, 1, accountant=accountant, **shorter)
    assert accountant.history == ()


@pytest.mark.parametrize("name", PERSONS)
def test_ids_belong_to_records_by_label(name):
    ids = np.array([5, 5, 7, 7, 7, 9, 9, 5])
    expected = call(name, 1, x=X, by=BY, privacy_unit=ids)
    x, by = (pd.Series(column, index=LABELS) for column in (X, BY))
    shuffled = pd.Series(ids, index=LABELS).iloc[ORDER]
    assert call(name, 1, x=x, by=by, privacy_unit=shuffled) == expected
    with pytest.raises(ValueError, match=r"privacy_unit must have equal indexes"):
        call(name, 1, x=x, by=by, privacy_unit=shuffled.iloc[:-1])


@pytest.mark.parametrize("labels", [["p"] * 8, [np.nan] * 8, LABELS, None])
def test_equal_indexes_need_not_be_unique(labels):
    """As they stand, they say what belongs together: so do columns of one frame."""
    frame = pd.DataFrame({"x": X, "by": BY, "counts": COUNTS}, index=labels)
    expected = call("quantile_by", 1, x=X, by=BY, counts=COUNTS)
    assert call("quantile_by", 1, x=frame["x"], by=frame["by"], counts=frame["counts"]) == expected
    assert call("quantile_by", 1, x=frame[["x"]], by=frame[["by"]], counts=COUNTS) == expected
    copied = frame.copy()
    copied.index = pd.Index([*frame.index])
    assert call("quantile_by", 1, x=X, by=frame["by"], counts=copied["counts"]) == expected


@pytest.mark.parametrize("index", [
    [5, 3, 1, 0, 2, 4, 6, 7],
    [5.5, 3.0, np.nan, 0.0, 2.0, 4.0, 6.0, 7.0],
    pd.date_range("2020-01-01", periods=8, tz="Europe/Zurich"),
    pd.MultiIndex.from_product([["a", "b"], range(4)]),
    pd.CategoricalIndex(LABELS),
    pd.IntervalIndex.from_breaks(range(9)),
    pd.Index(["a", 1, None, (2, 3), b"x", 2.5, False, "b"], dtype=object),
    pd.RangeIndex(8, 0, -1),
], ids=lambda index: type(index).__name__)  # fmt: skip
def test_labels_of_any_type(index):
    expected = call("quantile_by", 1, x=X, by=BY, counts=COUNTS)
    assert call("quantile_by", 1, **columns(ORDER, index)) == expected
    assert call("quantile_by", 1, **columns(slice(None, None, -1), index)) == expected


def test_what_has_no_index_goes_by_position():
    """As in pandas; an index has none of its own, nor has a categorical."""
    expected = call("quantile_by", 1, x=X, by=BY, counts=COUNTS)
    x, by, counts = columns().values()
    reverse = columns(slice(None, None, -1))["counts"]
    for plain in (BY, BY.tolist(), pl.Series(BY), pd.Index(BY), pd.Categorical(BY)):
        assert call("quantile_by", 1, x=x, by=plain, counts=reverse) == expected
        assert call("quantile_by", 1, x=X, by=plain, counts=counts) == expected
    with pytest.raises(ValueError, match=r"^by and counts must have equal indexes where x has non"):
        call("quantile_by", 1, x=X, by=by, counts=reverse)


def test_several_columns_of_keys_belong_together():
    x, by, _ = columns().values()
    other = pd.Series(["m", "n"] * 4, index=LABELS)
    usual = dict(q=0.5, groups=[(0, "m"), (0, "n"), (1, "n")], epsilon=1.0, bounds=(-10, 10), rng=1)
    modules = (dpq, dpq.reference)
    expected = [made.quantile_by(X, [BY, other.to_numpy()], **usual).values for made in modules]
    frame = pd.DataFrame({"by": by, "other": other})
    for keys in ([by, other[::-1]], (by.iloc[ORDER], other), frame[::-1], [BY, other[::-1]]):
        for module, values in zip(modules, expected, strict=True):
            assert (module.quantile_by(x, keys, **usual).values == values).all()
        made = dpq.describe(
            {"x": x, "by": by[::-1], "other": other.iloc[ORDER]},
            by=["by", "other"], bounds={"x": (-10, 10)}, groups=usual["groups"], epsilon=9.0, rng=1,
        )  # fmt: skip
        assert made.equals(
            dpq.describe(
                {"x": X, "by": BY, "other": other.to_numpy()},
                by=["by", "other"], bounds={"x": (-10, 10)}, groups=usual["groups"], epsilon=9.0,
                rng=1,
            )
        )  # fmt: skip
    repeated = other.set_axis(["p"] * 8)
    selected = dict(epsilon=1.0, delta=1e-3, rng=1)
    for module in modules:
        kept = module.select_keys([by, other[::-1]], **selected)
        assert kept.tolist() == module.select_keys([BY, other.to_numpy()], **selected).tolist()
        with pytest.raises(ValueError, match=RULE):
            module.select_keys([by, repeated], **selected)
        with pytest.raises(ValueError, match=r"^by\[0\] and by\[1\] must have equal indexes where"):
            module.quantile_by(X, [by, other[::-1]], **usual)


def test_describe_refuses_columns_of_other_frames_before_its_charge():
    accountant = privacy.Accountant(9.0)
    frame = {"x": columns()["x"], "g": pd.Series(BY, index=["p"] * 8)}
    with pytest.raises(ValueError, match=re.escape("x and by must have equal indexes, or the sam")):
        dpq.describe(
            frame, by="g", groups=[0], bounds={"x": (0, 1)}, epsilon=1.0, accountant=accountant
        )
    assert accountant.history == ()


def test_methods_of_pandas_go_by_label():
    x, _, counts = columns(ORDER).values()
    options = dict(epsilon=1.0, bounds=(-10, 10), rng=1)
    assert dpq_fast.accessors  # registered
    assert x.dpq.median(counts=counts, **options) == dpq.median(X, counts=COUNTS, **options)


def test_a_series_that_narwhals_stands_for_has_its_index():
    narwhals = pytest.importorskip("narwhals.stable.v2")
    x, _, counts = columns(ORDER).values()
    options = dict(epsilon=1.0, bounds=(-10, 10), rng=1)
    wrapped = narwhals.from_native(x, series_only=True)
    assert dpq.median(wrapped, counts=counts, **options) == dpq.median(X, counts=COUNTS, **options)


def test_a_frame_without_columns_has_no_keys():
    empty = pd.DataFrame(index=LABELS)
    rule = r"^by must have at least one column, got a frame of none$"
    for groups, delta in (([], 0.0), ([0], 0.0), (None, 1e-3)):
        with pytest.raises(ValueError, match=rule):
            dpq.count_by(X, empty, groups=groups, epsilon=1.0, delta=delta)
    with pytest.raises(ValueError, match=rule):
        dpq.select_keys(empty, epsilon=1.0, delta=1e-3)
