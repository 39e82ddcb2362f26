"""Frames of columns with names of every kind, and what frames declare, by every public function."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpq_fast as dpq
import dpq_fast.accessors

X, KEYS = np.arange(100.0), np.arange(100) % 2
PLACE = dict(epsilon=1.0, bounds=(0, 100))
# Names of a column of numbers and of one of keys.
NAMES: dict[str, tuple[Any, Any]] = {
    "strings": ("x", "g"),
    "integers": (0, 1),
    "tuples": (("a", "x"), ("a", "g")),
    "mixed": (pd.Timestamp("2024-01-01"), 1.5),
}


def framed(x: Any, g: Any) -> pd.DataFrame:
    """A frame of pandas, with names of several levels where they are tuples."""
    frame = pd.DataFrame({0: X, 1: KEYS})
    is_tuple = isinstance(x, tuple)
    frame.columns = pd.MultiIndex.from_tuples([x, g]) if is_tuple else pd.Index([x, g])
    return frame


def by(frame: Any, x: Any, g: Any) -> Any:
    # keys of a table are columns of the same one
    return dpq.quantile_by(frame[x], frame[g], 0.5, groups=[0, 1], rng=1, **PLACE).values.tolist()


ASKED: dict[str, Callable[..., Any]] = {
    "median of a frame": lambda f, x, g: dpq.median(f[[x]], rng=1, **PLACE),
    "cdf of a frame": lambda f, x, g: dpq.cdf(f[[x]], rng=1, **PLACE).quantile(0.5),
    "sum of a frame": lambda f, x, g: dpq.sum(f[[x]], rng=1, **PLACE),
    "count of a frame": lambda f, x, g: dpq.count(f[[x]], rng=1, epsilon=1.0),
    "batches": lambda f, x, g: dpq.median(
        dpq.Sample.from_batches(lambda: [f[[x]]], (0, 100)), epsilon=1.0, rng=1
    ),
    "quantile_by": lambda f, x, g: by(f, x, g),
    "quantile_by of frames": lambda f, x, g: dpq.quantile_by(
        f[[x]], f[[g]], 0.5, groups=[0, 1], rng=1, **PLACE
    ).values.tolist(),
    "describe": lambda f, x, g: (
        dpq.describe(f, epsilon=1.0, bounds={x: (0, 100)}, rng=1).iloc[:, 1:].values.tolist()
    ),
    "describe by": lambda f, x, g: (
        dpq.describe(f, epsilon=1.0, bounds={x: (0, 100)}, by=g, groups=[0, 1], rng=1)
        .iloc[:, 1:]
        .values.tolist()
    ),
    "describe by several": lambda f, x, g: (
        dpq.describe(f, epsilon=1.0, bounds={x: (0, 100)}, by=[g], groups=[0, 1], rng=1)
        .iloc[:, 1:]
        .values.tolist()
    ),
    "select_keys": lambda f, x, g: dpq.select_keys(f[[g]], epsilon=1.0, delta=1e-3).tolist(),
    "accessor": lambda f, x, g: f.dpq.median(x, rng=1, **PLACE),
    "accessor by": lambda f, x, g: f.dpq.sum_by(
        x, g, groups=[0, 1], rng=1, **PLACE
    ).values.tolist(),
    "accessor by several": lambda f, x, g: f.dpq.sum_by(
        x, [g], groups=[0, 1], rng=1, **PLACE
    ).values.tolist(),
    "accessor describe": lambda f, x, g: (
        f.dpq.describe(epsilon=1.0, bounds={x: (0, 100)}, rng=1).iloc[:, 1:].values.tolist()
    ),
    "table": lambda f, x, g: dpq.median(dpq.Table.of(f)[x], rng=1, **PLACE),
    "table by": lambda f, x, g: by(dpq.Table.of(f), x, g),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("kind", NAMES)
def test_names_of_every_kind_will_do(kind, asked):
    expected = ASKED[asked](framed("x", "g"), "x", "g")
    assert ASKED[asked](framed(*NAMES[kind]), *NAMES[kind]) == expected


TWICE = {
    "pandas": pd.DataFrame(np.c_[X, X], columns=["x", "x"]),
    "pyarrow": pa.table([pa.array(X), pa.array(X)], names=["x", "x"]),
}
FRAMES = {"pandas": framed("x", "g"), "polars": pl.DataFrame({"x": X, "g": KEYS})}


@pytest.mark.parametrize("kind", TWICE)
def test_names_that_are_there_twice_are_refused_before_the_charge(kind):
    frame, accountant = TWICE[kind], dpq.privacy.Accountant(1.0)
    message = "^columns must have names of one column each, got 'x' for 2$"
    for more in ({}, dict(by="x", groups=[1])):
        with pytest.raises(ValueError, match=message):
            dpq.describe(frame, epsilon=1.0, bounds={"x": (0, 1)}, accountant=accountant, **more)
    with pytest.raises(ValueError, match=r"^x must be one column, got a frame of 2"):
        dpq.median(frame, accountant=accountant, **PLACE)
    with pytest.raises(ValueError, match=r"^name must be that of one column"):
        dpq.Table.of(frame)["x"]
    if kind == "pandas":
        with pytest.raises(
            ValueError, match=r"^column must have names of one column each, got 'x'"
        ):
            frame.dpq.median("x", accountant=accountant, **PLACE)
    assert not accountant.entries


@pytest.mark.parametrize("kind", FRAMES)
def test_unknown_names_are_answered_with_those_there_are(kind):
    frame, accountant = FRAMES[kind], dpq.privacy.Accountant(1.0)
    there = "must be some of the frame's, got 'y' where there are 'x', 'g'"
    asked = {
        "column": lambda: frame.dpq.median("y", accountant=accountant, **PLACE),
        "by": lambda: frame.dpq.quantile_by(
            "x", "y", 0.5, groups=[1], accountant=accountant, **PLACE
        ),
        "columns": lambda: frame.dpq.describe(
            epsilon=1.0, bounds={"y": (0, 1)}, accountant=accountant
        ),
    }
    for argument, call in asked.items():
        with pytest.raises(ValueError, match=f"^{argument} {re.escape(there)}$"):
            call()
    assert not accountant.entries


# Arrays that hold neither a number nor what stands for a missing one.
NO_NUMBERS = {
    "strings": np.array(["1", "2"]),
    "bytes": np.array([b"1"]),
    "complex": np.array([1j, 2.0]),
    "fields": np.zeros(2, dtype=[("a", float)]),
}
# Columns whose type is known by their records alone.
BY_RECORDS = {
    "list": ["a"],
    "numpy": np.array(["a"], dtype=object),
    "pandas": pd.Series(["a"]),
    "category": pd.Series(["a"], dtype="category"),
    "polars": pl.Series(["a"]),
    "polars list": pl.Series([[1.0]]),
    "polars struct": pl.Series([{"a": 1.0}]),
    "polars bytes": pl.Series([b"a"]),
    "polars enum": pl.Series(["a"], dtype=pl.Enum(["a"])),
    "polars time": pl.Series([1]).cast(pl.Time),
    "polars object": pl.Series([object()], dtype=pl.Object),
    "pyarrow": pa.array(["a"]),
    "pyarrow map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "pyarrow view": pa.array(["a"], pa.string_view()),
    "period": pd.Series(pd.period_range("2024", periods=1)),
    "interval": pd.Series(pd.IntervalIndex.from_breaks([0, 1])),
}
OF_COLUMNS: dict[str, Callable[..., Any]] = {
    "quantile": lambda x, **more: dpq.quantile(x, 0.5, **PLACE, **more),
    "joint_exp": lambda x, **more: dpq.joint_exp(x, [0.2, 0.5], **PLACE, **more),
    "unbounded": lambda x, **more: dpq.quantile(x, 0.5, epsilon=1.0, **more),
    "agg_tree": lambda x, **more: dpq.agg_tree(x, 0.5, **PLACE, **more),
    "cdf": lambda x, **more: dpq.cdf(x, **PLACE, **more),
    "sum": lambda x, **more: dpq.sum(x, epsilon=1.0, **more),
    "mean": lambda x, **more: dpq.mean(x, **PLACE, **more),
    "quantile_by": lambda x, **more: dpq.quantile_by(
        x, [1] * len(x), 0.5, groups=[1], **PLACE, **more
    ),
    "sum_by": lambda x, **more: dpq.sum_by(x, [1] * len(x), groups=[1], **PLACE, **more),
}


@pytest.mark.parametrize("name", OF_COLUMNS)
@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_types_that_hold_no_number_are_refused_before_the_charge(kind, name):
    accountant = dpq.privacy.Accountant(1.0)
    with pytest.raises(TypeError, match=r"^x must hold real numbers, got dtype "):
        OF_COLUMNS[name](NO_NUMBERS[kind], accountant=accountant)
    assert not accountant.entries


@pytest.mark.parametrize("name", OF_COLUMNS)
@pytest.mark.parametrize("kind", BY_RECORDS)
def test_other_types_are_refused_in_our_words(kind, name):
    """They may be what a reader makes of missing records: so after the charge."""
    accountant = dpq.privacy.Accountant(1.0)
    with pytest.raises(TypeError, match=r"^x must hold real numbers, got ") as caught:
        OF_COLUMNS[name](BY_RECORDS[kind], accountant=accountant)
    assert len(accountant.entries) == 1
    assert caught.traceback[-1].path.parts[-3] == "dpq_fast"


def test_times_are_asked_for_by_their_words():
    bounds = np.datetime64("2024-01-01"), np.datetime64("2025-01-01")
    accountant = dpq.privacy.Accountant(1.0)
    with pytest.raises(TypeError, match=r"^x must hold times without a zone, got dtype str$"):
        dpq.median(np.array(["a"]), epsilon=1.0, bounds=bounds, accountant=accountant)
    assert not accountant.entries
