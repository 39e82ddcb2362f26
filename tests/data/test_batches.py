"""Records come in whole, however they are cut into batches, and whatever is missing in these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow.dataset import dataset

import dpq_fast as dpq
from dpq_fast.data import passes
from dpq_fast.mechanisms import grouping

BOUNDS = (0.0, 100.0)
RECORDS = np.random.default_rng(0).normal(50.0, 20.0, 36).round(1)
NOTHING = np.full(4, np.nan)
# Pieces of four records: some are nothing but NaN, the first and the last one among them.
PIECES = [NOTHING, RECORDS[:4], NOTHING, NOTHING, *np.split(RECORDS[4:], 8), NOTHING]
WITH_NAN = np.concatenate(PIECES)
PLACE = dict(epsilon=2.0, neighbors="add-remove", rng=1)
LATTICE = dict(bounds=BOUNDS, resolution=0.1)

# All that reads a column.
RELEASES: dict[str, Callable[..., Any]] = {
    "ind_exp": lambda x, **more: dpq.ind_exp(x, 0.3, **LATTICE, **more),
    "ind_exp, no lattice": lambda x, **more: dpq.ind_exp(
        x, 0.3, bounds=BOUNDS, resolution=0, **more
    ),
    "joint_exp": lambda x, **more: dpq.joint_exp(x, [0.2, 0.7], **LATTICE, **more),
    "joint_exp, no lattice": lambda x, **more: dpq.joint_exp(
        x, [0.2, 0.7], bounds=BOUNDS, resolution=0, dither=False, **more
    ),
    "approx_quantiles": lambda x, **more: dpq.approx_quantiles(x, [0.2, 0.7], **LATTICE, **more),
    "two_stage": lambda x, **more: dpq.two_stage(x, [0.2, 0.7], bounds=BOUNDS, **more),
    "two_stage, one level": lambda x, **more: dpq.two_stage(x, 0.3, **LATTICE, **more),
    "unbounded_quantile": lambda x, **more: dpq.unbounded_quantile(x, 0.7, lower=0.0, **more),
    "agg_tree": lambda x, **more: dpq.agg_tree(x, [0.2, 0.7], **LATTICE, **more),
    "csmooth": lambda x, **more: dpq.csmooth(
        x, 0.7, **LATTICE, **{k: v for k, v in more.items() if k != "epsilon"}, rho=1.0
    ),
    "cdf": lambda x, **more: dpq.cdf(x, height=2, branching=4, **LATTICE, **more).p,
    "sum": lambda x, **more: dpq.sum(x, q=None, lower=0, upper=100, **more),
    "sum, own clip": lambda x, **more: dpq.sum(x, **more),
    "mean": lambda x, **more: dpq.mean(x, q=None, lower=0, upper=100, **more),
    "count": lambda x, **more: dpq.count(x, **more),
    "intervals": lambda x, **more: np.asarray(
        dpq.quantile(x, [0.2, 0.7], confidence=0.9, **LATTICE, **more)
    ),
}
# A column that comes in these pieces.
COLUMNS: dict[str, Callable[[], Any]] = {
    "array": lambda: WITH_NAN,
    "bytes swapped": lambda: WITH_NAN.astype(">f8"),
    "list": lambda: WITH_NAN.tolist(),
    "pandas": lambda: pd.Series(WITH_NAN),
    "polars": lambda: pl.concat([pl.Series(piece, dtype=pl.Float64) for piece in PIECES]),
    "arrow": lambda: pa.chunked_array([pa.array(piece) for piece in PIECES]),
    "arrow, null": lambda: pa.chunked_array(
        [pa.array(piece, pa.float64(), from_pandas=True) for piece in PIECES]
    ),
    "table": lambda: dpq.Table.of(
        pa.Table.from_batches([pa.record_batch({"x": pa.array(piece)}) for piece in PIECES])
    )["x"],
}


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: Any) -> None:
    """Arrays are cut into the same pieces."""
    for name in ("PLAIN", "CONVERTED"):
        monkeypatch.setattr(passes, name, 4)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("release", RELEASES)
def test_pieces_of_nothing_but_nan_change_nothing(release, column):
    """The records after them are read, and no record is made of them."""
    expected = RELEASES[release](RECORDS, **PLACE)
    assert np.array_equal(RELEASES[release](COLUMNS[column](), **PLACE), expected)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("release", RELEASES)
def test_pieces_of_nothing_but_nan_are_found_by_policy(release, column):
    """Where none of the other pieces has any."""
    with pytest.raises(ValueError, match=r"^x must not contain NaN with nan_policy='raise'$"):
        RELEASES[release](COLUMNS[column](), nan_policy="raise", **PLACE)


# Batches of a source, in what each of them may come in.
BATCHES: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda piece: piece,
    "float32": lambda piece: piece.astype("f4"),
    "list": lambda piece: [None if value != value else value for value in piece.tolist()],
    "objects": lambda piece: np.array(
        [None if value != value else value for value in piece.tolist()], dtype=object
    ),
    "pandas": pd.Series,
    "pandas Float64": lambda piece: pd.Series(piece).astype("Float64"),
    "polars": lambda piece: pl.Series(piece, nan_to_null=True),
    "polars, null": lambda piece: (
        pl.Series([None] * piece.size) if np.isnan(piece).all() else pl.Series(piece)
    ),
    "arrow": lambda piece: pa.array(piece, from_pandas=True),
    "arrow, null": lambda piece: pa.nulls(piece.size) if np.isnan(piece).all() else pa.array(piece),
    "text without any": lambda piece: (
        pa.nulls(piece.size, pa.string()) if np.isnan(piece).all() else pa.array(piece)
    ),
}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", BATCHES)
@pytest.mark.parametrize("resolution", [0.1, 0])
def test_batches_of_nothing_but_nan_change_nothing(kind, resolution, workers, monkeypatch):
    monkeypatch.setattr(passes, "MIN_SHARE", 1)
    pieces = [np.empty(0), *PIECES, np.empty(0)]
    place = dict(bounds=BOUNDS, resolution=resolution, dither=False)
    batches = [BATCHES[kind](piece) for piece in pieces if piece.size or kind == "numpy"]

    def release(sample: dpq.Sample) -> Any:
        return dpq.joint_exp(sample, [0.2, 0.7], **PLACE).tolist()

    records = RECORDS.astype("f4").astype("f8") if kind == "float32" else RECORDS
    expected = release(dpq.Sample.of(records, **place))
    sample = dpq.Sample.from_batches(lambda: iter(batches), workers=workers, **place)
    assert release(sample) == expected
    place["nan_policy"] = "raise"
    with pytest.raises(ValueError, match=r"^x must not contain NaN with nan_policy='raise'$"):
        release(dpq.Sample.from_batches(lambda: iter(batches), workers=workers, **place))


def table_of_pieces() -> pa.Table:
    """With nothing but null in some batches."""
    columns = [pa.array(piece, pa.float64(), from_pandas=True) for piece in PIECES]
    return pa.Table.from_batches([pa.record_batch({"x": column}) for column in columns])


@pytest.mark.parametrize("source", [table_of_pieces, lambda: dataset(table_of_pieces())])
def test_batches_of_arrow_of_nothing_but_null_change_nothing(source):
    place = dict(bounds=BOUNDS, resolution=0.1)
    expected = dpq.joint_exp(dpq.Sample.of(RECORDS, **place), [0.2, 0.7], **PLACE)
    sample = dpq.Sample.from_batches(source(), column="x", **place)
    assert np.array_equal(dpq.joint_exp(sample, [0.2, 0.7], **PLACE), expected)
    with pytest.raises(ValueError, match=r"^x must not contain NaN with nan_policy='raise'$"):
        refusing = dpq.Sample.from_batches(source(), column="x", nan_policy="raise", **place)
        dpq.joint_exp(refusing, [0.2, 0.7], **PLACE)


@pytest.mark.parametrize("counts", [None, 2])
@pytest.mark.parametrize("release", ["quantile_by", "sum_by", "mean_by"])
def test_blocks_of_groups_of_nothing_but_nan_change_nothing(release, counts, monkeypatch):
    monkeypatch.setattr(grouping, "BLOCK", 4)
    by = np.arange(WITH_NAN.size) // 2 % 3
    there = ~np.isnan(WITH_NAN)
    clip = dict(q=None, lower=0, upper=100)
    options = dict(groups=[0, 1, 2], **PLACE)
    options |= dict(q=0.5, **LATTICE) if release == "quantile_by" else clip

    def answers(x: Any, keys: Any, **more: Any) -> Any:
        weights = {} if counts is None else dict(counts=np.full(len(x), counts))
        return getattr(dpq, release)(x, keys, **options, **weights, **more).values.tolist()

    assert answers(WITH_NAN, by) == answers(WITH_NAN[there], by[there])
    with pytest.raises(ValueError, match=r"^x must not contain NaN with nan_policy='raise'$"):
        answers(WITH_NAN, by, nan_policy="raise")


# Weights: each of them is most of its group, so that what is lost of one shows.
WEIGHTS = [2**15 - 1, 2**15, 2**15 + 1, 2**16, 2**16 + 1, 2**24 + 1, 2**31, 2**32 + 1, 2**45 + 1]


def weighted(weight: int) -> tuple[Any, Any, Any]:
    """Rows of two groups: one of a weight and of three records above it, and a small one."""
    x = np.array([0.0, 1.0, 2.0, 3.0, 1.0])
    return x, np.array([0, 0, 0, 0, 1]), np.array([weight, 1, 1, 1, 2])


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("method", ["ind_exp", "joint_exp"])
def test_quantiles_by_group_are_those_of_all_that_rows_stand_for(method, weight):
    """The second of the three records above; fewer below it, and it were the third."""
    x, by, counts = weighted(weight)
    q = (weight + 1.5) / (weight + 3)
    options = dict(epsilon=1e9, bounds=(0, 3), resolution=1, counts=counts, rng=1)
    if method == "joint_exp":
        options["dither"] = False
    found = dpq.quantile_by(x, by, q, groups=[0, 1], method=method, **options)
    assert found[0] == 2.0


@pytest.mark.parametrize("weight", WEIGHTS)
def test_sums_by_group_are_those_of_all_that_rows_stand_for(weight):
    x, by, counts = weighted(weight)
    options = dict(groups=[0, 1], epsilon=1e9, counts=counts, rng=1)
    assert dpq.count_by(x, by, **options).values.tolist() == [weight + 3, 2]
    clip = dict(q=None, lower=0, upper=3)
    options["counts"] = counts[[1, 0, 2, 3, 4]]  # the weight is that of the record of value 1
    total = dpq.sum_by(x, by, **clip, **options).values
    assert total == pytest.approx([weight + 5, 2], rel=1e-9, abs=1e-6)
    mean = dpq.mean_by(x, by, **clip, **options).values[0]
    assert mean == pytest.approx((weight + 5) / (weight + 3), rel=1e-5)
