"""Hostile calls of every public function: any argument may be wrong, any column strange.

``python tests/hostile.py 1000000`` makes so many in one process, and reports what was raised and
how much the process grew. Whatever is given, a call answers, or raises TypeError or ValueError.

Functions and their arguments are found in the package itself. A new public function is called
from the day it is there; a parameter of a new name needs its usual value here (`USUAL`).
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import gc
import inspect
import math
import os
import sys
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats
from values import ODD

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.compat import diffprivlib
from dpq_fast.data.sample import Reader
from dpq_fast.noise.threshold import NOISES
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of
from dpq_fast.released.packing import Packed

NUMBERS = (
    0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 5e-324, 1e300, 1.7976931348623157e308, math.inf, -math.inf,
    math.nan, 0, 2, 7, 2**40, 2**53, 2**63, 2**64, 10**400, -(10**400), Fraction(1, 3),
    Fraction(1, 10**400), Decimal("0.5"), True, None, "1", b"1", 1j, [], (), {}, object(),
    np.float32(0.1), np.int8(-3), np.bool_(True), np.datetime64("2020-01-01"), date(2020, 1, 1),
    np.longdouble("1e4000"), np.array([0x7F800001], dtype=np.uint32).view(np.float32), [10**400],
    np.float64, len, iter([0.5]), range(3),
    2**127, -(2**127), Decimal("9" * 76), Decimal("sNaN"), Decimal("1E+999999"), "\ud800",
    "x" * 10**5, date.min, date.max, datetime.min, datetime.max.replace(tzinfo=ODD),
    timedelta.min, timedelta.max, np.datetime64(2**63 - 1, "s"), np.datetime64(-(2**63) + 1, "Y"),
    np.datetime64("NaT", "ns"), np.timedelta64(2**63 - 1, "ns"),
    pd.Timestamp.max, pd.Timestamp.min.tz_localize("UTC"), pd.Timedelta.max,
)  # fmt: skip
STRINGS = (
    "swap", "add-remove", "omit", "raise", "", "auto", "both", "\x00", "gumbel", "laplace",
    "gaussian", "geometric", "adaptive", "histogram", "unbounded", "fft", "zcdp", "ind_exp",
)  # fmt: skip
LATE = 0.3  # how often an argument is hostile


class Outcome(NamedTuple):
    """What came of the calls: answers, refusals, and all else by name."""

    answered: int
    refused: int
    other: dict[str, int]


class Call(NamedTuple):
    """A public function, the usual values of its arguments, and how often it is called."""

    function: Callable[..., Any]
    positional: tuple[str, ...]
    arguments: dict[str, Any]
    weight: float

    def make(self, arguments: dict[str, Any]) -> Any:
        """The answer; of a context manager, after its block; of a reader, what it reads."""
        first = [arguments.pop(name) for name in self.positional]
        answer = self.function(*first, **arguments)
        if isinstance(answer, contextlib.AbstractContextManager):
            with answer:
                return None
        return answer() if inspect.isfunction(answer) or isinstance(answer, Reader) else answer


# What stands for a value that is made for each call.
COLUMN, KEYS, COUNTS, NOISE = (object() for _ in range(4))


class Checked(NamedTuple):
    """An argument that the documentation wants checked already: it is never hostile."""

    value: Any


LEVELS = Checked(np.array([0.25, 0.5]))
HALF = Checked(0.5)

BOUNDS = (-10.0, 10.0)
RECORDS = np.random.default_rng(0).normal(0.0, 5.0, size=60)
PARTIAL = dpq.PartialTree.of(RECORDS, bounds=BOUNDS, height=2, branching=4)
TREE = PARTIAL.release(epsilon=1.0, rng=0)
CURVE = dpq.cdf(RECORDS, epsilon=1.0, bounds=BOUNDS, bins=16, rng=0)
BY = dict(groups=[False, True], epsilon=1.0, rng=0)
# What becomes bytes.
SENT: dict[str, Packed] = {
    "AggTree": TREE,
    "PartialTree": PARTIAL,
    "CDF": CURVE,
    "Estimate": dpq.Estimate(1.0, 0.5, 2.0, 0.9, "sample"),
    "GroupQuantiles": dpq.quantile_by(RECORDS, RECORDS > 0.0, 0.5, bounds=BOUNDS, **BY),
    "GroupValues": dpq.count_by(RECORDS, RECORDS > 0.0, **BY),
    "Box": dpq.box(RECORDS, epsilon=1.0, bounds=BOUNDS, rng=0),
    "GroupBoxes": dpq.box_by(RECORDS, RECORDS > 0.0, bounds=BOUNDS, **BY),
    "Plan": dpq.plan_mean(n=20, epsilon=1.0, bounds=BOUNDS, releases=100),
}
QUERIES = dict(threshold=2.0, epsilon1=1.0, epsilon2=1.0)
LATTICE = dict(bounds=BOUNDS, resolution=0.5, dither=False)
# Whose methods are called.
INSTANCES: dict[str, Any] = {
    "AggTree": TREE,
    "PartialTree": PARTIAL,
    "CDF": CURVE,
    "Sample": dpq.Sample.of(RECORDS, BOUNDS, resolution=0.5),
    "privacy.Guarantee": privacy.Guarantee(1.0, 1e-6, neighbors="add-remove"),
    "privacy.Accountant": privacy.Accountant(1e-3),  # takes none of the guarantees below
    "privacy.aggregates.Calibration": privacy.aggregates.calibrate(epsilon=1.0),
    "joint_exp_law": dpq.joint_exp_law(RECORDS, [0.2, 0.5], epsilon=1.0, **LATTICE),
    "ind_exp_law": dpq.ind_exp_law(RECORDS, [0.2, 0.5], epsilon=1.0, **LATTICE),
    "approx_quantiles_law": dpq.approx_quantiles_law(RECORDS, [0.2, 0.5], epsilon=1.0, **LATTICE),
    "two_stage_law": dpq.two_stage_law(
        RECORDS, [0.2, 0.5], epsilon=1.0, bounds=BOUNDS, resolution=0.5
    ),
    "unbounded_quantile_law": dpq.unbounded_quantile_law(RECORDS, 0.5, epsilon=1.0, upper=50.0),
    "above_threshold_law": dpq.above_threshold_law([0.0, 1.0, 4.0], **QUERIES),
}
# Not called, and why.
LEFT_OUT = (
    {
        "CDF.plot": "its arguments are Matplotlib's",
        "plots.cdf": "takes what is public by then",
        "plots.quantiles": "takes what is public by then",
        "plots.plan": "takes what is public by then",
        "plots.groups": "takes what is public by then",
        "plots.histogram": "takes what is public by then",
        "plots.box": "takes what is public by then",
        "CDF.to_frame": "no arguments",
        "reference.persons.counts_of": "what a reference takes: sequences of Python",
        "reference.persons.parts_of_weights": "what a reference takes: sequences of Python",
        "CDF.of_parts": "what releases share: it takes what was checked",
        "privacy.charge": "what releases share: it takes what `calibrate` made",
        "Sample": "made by its class methods",
        "PartialTree": "made by its class methods",
        "Table": "made by its class methods",
        "Table.answer": "what releases share: it takes what they ask",
        "Table.check_keys": "what releases share: types of columns",
        "Table.check_records": "what releases share: types of columns",
        "Table.check_ids": "what releases share: types of columns",
        "together": "takes releases",
        "privacy.BudgetExceeded": "an error",
        "privacy.Entry": "an answer",
        "privacy.Accountant.open": "makes files: tests/privacy/test_ledger.py",
        "privacy.Accountant.noted": "a context: tests/privacy/test_ledger.py",
        "Plan": "an answer",
        "Plan.columns": "no arguments",
        "Plan.plot": "its arguments are Matplotlib's",
        "Plan.to_frame": "no arguments",
        "Estimate": "an answer",
        "Estimate.around": "an answer",
        "Estimate.to_dict": "no arguments",
        "Estimate.to_frame": "no arguments",
        "Estimate.to_json": "no arguments",
        "GroupBoxes": "an answer",
        "GroupBoxes.to_pandas": "no arguments",
        "GroupQuantiles": "an answer",
        "GroupQuantiles.to_pandas": "no arguments",
        "GroupValues": "an answer",
        "GroupValues.to_pandas": "no arguments",
        "Box": "an answer",
        "Box.of": "an answer",
        "Box.to_dict": "no arguments",
        "Box.to_json": "no arguments",
        "privacy.kept_groups.calibrate": "what releases share: it takes what was checked",
        "privacy.parallel.Part": "an answer",
        "privacy.quantile_by.PartCalibration": "an answer",
        "privacy.parallel.Part.given": "no arguments",
        "audit.Witness": "an answer",
        "audit.ExactAudit": "an answer",
        "audit.EstimatedAudit": "an answer",
        "diffprivlib.PrivacyLeakWarning": "a warning",
        "diffprivlib.DiffprivlibCompatibilityWarning": "a warning",
        "privacy.aggregates.CountCalibration": "an answer",
        "privacy.aggregates.MeanStep": "an answer",
        "privacy.aggregates.Calibration.rest": "what releases share: it takes what was checked",
        "privacy.aggregates.Calibration.spread_parts": "what releases share: as above",
    }
    | {
        f"privacy.{name}.Calibration": "an answer"
        for name, member in vars(privacy).items()
        if hasattr(member, "Calibration")
    }
    | {f"{name}.to_bytes": "no arguments" for name in SENT}
    | {
        f"Weights.{name}": "what releases share"
        for name in ("rows_at_most", "weights_beside", "column")
    }
    | {"privacy.two_stage.Design": "an answer"}
    | {
        f"privacy.extremes.{name}": "what releases share: it takes what was checked"
        for name in ("box_levels", "check_level", "confidence_of_each")
    }
    | {
        f"privacy.two_stage.{name}": "takes what was checked"
        for name in ("design_of", "design_of_tree", "expected_error", "expected_of_joint")
    }
    | {
        f"privacy.key_selection.Calibration.{name}": "takes what was checked"
        for name in ("bounds", "probability")
    }
    | {
        f"privacy.intervals.{name}": "what releases share: it takes what was checked"
        for name in (
            *("Request", "Search", "Search.thresholds", "split", "calibrate", "calibrate_call"),
            *(
                "epsilon_within",
                "calibrate_groups",
                "costs",
                "excess_of_persons",
                "sampled_range",
                "share_of_ends",
                "with_share",
            ),
        )
    }
)
PERSONS = dict(privacy_unit=KEYS, counts=Checked(None), max_contributions=Checked(None))
USUAL: dict[str, Any] = dict(
    privacy_unit=Checked(None), contributions=Checked("weights"),
    x=COLUMN, by=KEYS, counts=COUNTS, rng=NOISE, dither_rng=NOISE,
    q=[0.2, 0.5], epsilon=1.0, rho=None, delta=0.0, neighbors="swap", max_contributions=1,
    accountant=None, nan_policy="omit", workers=1,
    bounds=BOUNDS, resolution=0.5, dither=True, assume_sorted=False, kernel="scan",
    prior=[(1.0, stats.norm(0.0, 5.0)), (1, "uniform")],
    lower=0.0, upper=50.0, beta=1.5, noise="exponential", split=None, offset=0.0, invert=False,
    uniform=False, base="ind_exp", method="auto", share=0.5, expected_n=60, units=4,
    queries=COLUMN, halts=2, sensitivity=1.0, monotonic=True, **QUERIES,
    groups=[0, 1], public_by=False,
    height=2, branching=4, aggregate=True, bins=16, steps=5, levels=3,
    n=20, sample=None, heights=[1, 2], branchings=[2, 3], draws=1,
    lo=-1.0, hi=[2.0, 3.0], level=0.9, monotone=True, other=COLUMN, o=[-1.0, 2.0],
    nodes=[np.arange(4), np.arange(16)], p=[0.0, 0.5, 1.0], total=30, most=40, lattice=None,
    source=lambda: iter([[1.0, 2.0], [3.0]]), connection=None, column=None, progress=Checked(False),
    weights=COLUMN, max_weight=3.0, points=Checked(np.arange(3)), outputs=LEVELS,
    gamma=0.5, scale=2.0, sigma=2.0, k=[0, 1], size=3,
    f_x=[0.0, 1.0], f_x2=[1.0, 1.0], m=3, epsilon_each=0.5, width=10, low=-3, high=5,
    may_have_missing=True, aside=3, step=None, rows=1_500, t=0.5, squared=2.0, given={},
    ddof=1, density=True, categories=[0, 1], extremes=True,
    fraction=0.5, relation=Checked(relation_of("swap")),
    guarantees=[privacy.Guarantee(1.0), privacy.Guarantee(0.5, 1e-6, rho=0.1)],
    guarantee=privacy.Guarantee(1.0), adaptive=True, bounded_range=1.0, composition="basic",
    selection="exponential",
    convert=True, name="split", others=PARTIAL,
    mechanism="count", domain=[0.0, 1.0], dtype=np.float64, tolerance=1e-9,
    deviation=Checked(2.0), gaussian=Checked(False), spread=Checked(0.025),
    x_neighbor=[1.0], events=None, trials=4, confidence=0.9, covers="sample", interval_share=0.5,
    selection_share=None, whisker=1.5, two_sided=Checked(False), composed=Checked(False),
    guess=RECORDS, records=[0, 3],
    array=COLUMN, quant=[0.2, 0.5], percent=50, axis=None, keepdims=False, random_state=1,
)  # fmt: skip
SEARCH = ("lower", "upper", "beta", "noise", "split", "offset")
# Of what is passed on by ``**options``.
MORE: dict[str, tuple[str, ...]] = {
    "median": ("epsilon", "bounds", "resolution", "neighbors", "counts", "rng"),
    "percentile": ("epsilon", "bounds", "resolution", "neighbors", "counts", "rng"),
    **dict.fromkeys(("min", "max", "box"), ("bounds", "resolution", "rng")),
    "iqr": ("epsilon", "bounds", "resolution", "neighbors", "counts", "rng"),
    **dict.fromkeys(("min_by", "max_by", "box_by"), ("resolution", "rng")),
    "iqr_by": ("epsilon", "bounds", "resolution", "neighbors", "counts", "rng"),
    "sum": SEARCH[2:],
    "sum_by": SEARCH[2:],
    "reference.sum": ("epsilon", "q", *SEARCH, "neighbors", "counts", "nan_policy", "rng"),
    "reference.mean": ("epsilon", "q", "lower", "upper", "resolution", "neighbors", "rng"),
    "reference.unbounded_quantile": ("epsilon", *SEARCH, "neighbors", "counts", "nan_policy"),
    "approx_quantiles, unbounded": SEARCH[2:],
    "approx_quantiles_law, unbounded": SEARCH[2:],
    "quantile, unbounded": SEARCH,
    "privacy.guarantee": ("q", "epsilon", "rho", "delta", "neighbors", "max_contributions"),
    "audit.exact": ("epsilon", "max_contributions"),
    "audit.estimate": ("epsilon", "max_contributions"),
    "AggTree.tune": ("noise", "aggregate", "neighbors"),
    "plan_sum": ("q", "lower", "upper", "neighbors"),
    "plan_mean": ("q", "lower", "upper", "neighbors", "resolution"),
    "privacy.above_threshold.calibrate_halts": (
        *("epsilon1", "epsilon2", "sensitivity", "monotonic", "noise", "neighbors"),
    ),
    "privacy.cdf.calibrate": ("bins", "aggregate"),
}
# Of diffprivlib, with what it names otherwise than we do.
HISTOGRAM: dict[str, Any] = dict(sample=COLUMN, range=BOUNDS, weights=Checked(None), density=False)
# Without an interval.
PLAIN = dict(confidence=None, interval_share=None)
# What a function has otherwise than others.
OWN: dict[str, dict[str, Any]] = {
    "describe": dict(
        frame={"a": [1.0, None, 3.0]},
        columns=["a"],
        bounds={"a": (-9, 9)},
        shares={"count": 1, "mean": 2, "quantile": 3},
        prior=None,
        by=None,
        groups=None,
        public_by=False,
    ),
    "Table.of": dict(source={"x": [1.0, None, 3.0]}),
    "Sample.from_engine": dict(source={"x": [1.0, None, 3.0]}, column="x"),
    "quantile, plain": PLAIN,
    **{key: dict(level=0.1) for key in ("min", "max", "box")},
    **{key: dict(level=0.1, method=None) for key in ("min_by", "max_by", "box_by")},
    **{
        f"{name}, plain": PLAIN | dict(expected_n=None)
        for name in ("joint_exp", "approx_quantiles", "unbounded_quantile")
    },
    "quantile_by": dict(method="joint_exp"),
    "quantile_by, plain": PLAIN | dict(expected_n=None, method="joint_exp"),
    "quantile_by, depth": dict(method="ind_exp", q=0.5, dither=None),
    **{
        f"quantile_by, {name}": PLAIN | dict(expected_n=None, method=name) | more
        for name, more in (
            ("approx_quantiles", {}),
            ("csmooth", dict(epsilon=None, rho=0.5)),
            ("unbounded_quantile", dict(resolution=None, dither=None, prior=None)),
        )
    },
    "quantile_by, two_stage": PLAIN | dict(method="two_stage", dither=None),
    "quantile_by, agg_tree": PLAIN | dict(method="agg_tree", dither=None),
    **{
        f"{name}, selected": dict(groups=None, delta=1e-3, selection_share=0.5) | more
        for name, more in (
            ("quantile_by", dict(method="joint_exp")),
            ("count_by", {}),
            ("mean_by", dict(method="unbounded", q=None, lower=-4.0, upper=8.0)),
        )
    },
    "quantile_by, bounds": dict(method=None, bounds={0: BOUNDS, 1: (0.0, 1.0)}),
    "reference.quantile_by": dict(method="joint_exp"),
    "privacy.quantile_by.calibrate": dict(method="joint_exp"),
    "ind_exp, plain": PLAIN | dict(expected_n=None, dither=False),
    "count, plain": dict(confidence=None),
    "mean, plain": dict(confidence=None, method="unbounded", q=None, lower=-4.0, upper=8.0),
    "ind_exp": dict(dither=False),
    "two_stage": dict(dither=None),
    "two_stage, plain": PLAIN | dict(dither=None, q=0.5),
    "two_stage_law": dict(dither=None),
    "reference.two_stage": dict(dither=None),
    "reference.two_stage_law": dict(dither=None),
    "ind_exp_law": dict(dither=False),
    "reference.ind_exp": dict(dither=False),
    "reference.ind_exp_law": dict(dither=False),
    "csmooth": dict(rho=0.5, t=None),
    "reference.csmooth": dict(rho=0.5, t=None),
    "quantile, unbounded": dict(
        method="unbounded_quantile", bounds=None, resolution=None, dither=None, prior=None
    ),
    "quantile, agg_tree": dict(method="agg_tree", dither=None, interval_share=None),
    "approx_quantiles, unbounded": dict(base="unbounded", resolution=None, dither=None, prior=None),
    "approx_quantiles_law, unbounded": dict(
        base="unbounded", resolution=None, dither=None, prior=None, dither_rng=Checked(None)
    ),
    "unbounded_quantile, both": dict(lower=None, upper=None, beta=1.1, q=0.5),
    "unbounded_quantile, inverted": dict(invert=True, upper=None),
    "agg_tree": dict(noise="geometric", interval_share=None),
    "agg_tree, gaussian": dict(noise="gaussian", epsilon=None, rho=0.5, interval_share=None),
    "reference.agg_tree": dict(noise="geometric", interval_share=None),
    "AggTree": dict(noise=TREE.noise, nodes=TREE.nodes),
    "AggTree.of": dict(noise="geometric"),
    "AggTree.tune": dict(noise="geometric"),
    "AggTree.cdf": dict(x=[-1.0, 2.0]),
    "PartialTree.release": dict(noise="geometric"),
    "CDF": dict(x=[-1.0, 0.0, 2.0], noise=None, edges=None),
    "CDF.cdf": dict(x=[-1.0, 2.0]),
    **{f"{name}.from_bytes": dict(data=made.to_bytes()) for name, made in SENT.items()},
    "CDF.accuracy": dict(beta=0.1),
    "cdf": dict(method="binary_tree", bins=16, aggregate=False),
    "cdf, agg_tree": dict(method="agg_tree", height=2, branching=4),
    "cdf, histogram": dict(method="histogram", bins=10),
    "cdf, adaptive": dict(method="adaptive", steps=5, bins=32, depth=3),
    "cdf, gaussian": dict(method="gaussian", delta=1e-6, levels=3),
    "cdf, smooth_gaussian": dict(method="smooth_gaussian", delta=1e-6, levels=3),
    "reference.cdf": dict(method="binary_tree", bins=16),
    **{
        name: dict(method="unbounded", q=0.9)
        for name in ("sum_by", "reference.sum_by", "privacy.aggregates_by.calibrate")
    },
    **{
        name: dict(method="unbounded", q=None, lower=-4.0, upper=8.0)
        for name in ("sum_by, public", "mean_by", "reference.mean_by")
    },
    "select_keys": dict(delta=1e-3),
    "reference.select_keys": dict(delta=1e-3),
    "privacy.key_selection.calibrate": dict(delta=1e-3),
    "privacy.key_selection.keep_probability": dict(delta=1e-3),
    "sum": dict(method="unbounded", q=0.9),
    "sum, public": dict(method="unbounded", q=None, lower=-4.0, upper=8.0),
    "mean": dict(method="unbounded", q=None, lower=-4.0, upper=8.0),
    "reference.sum": dict(method="unbounded", q=0.9),
    "reference.mean": dict(method="unbounded", q=None, lower=-4.0, upper=8.0),
    "plan": dict(groups=None, dither=None, target=None, unit="ranks", over="mean", releases=100),
    "plan, groups": dict(
        groups=[30, 40], n=None, guess=None, target=None, unit="ranks", over="mean", releases=100
    ),
    "plan_sum": dict(q=0.9, lower=0.0, guess=RECORDS, target=None, releases=100),
    "plan_mean": dict(q=None, lower=-4.0, upper=8.0, guess=None, target=None, releases=100),
    "Sample.from_batches": dict(column=None),
    "metrics.rank_error": dict(x=[1.0, 2.0]),
    "metrics.missed_points": dict(x=[1.0, 2.0]),
    "metrics.distance_error": dict(x=[1.0, 2.0]),
    "unbounded_quantile_law.log_prob": dict(o=0.5),
    "above_threshold_law.log_prob": dict(k=1),
    "privacy.joint_exp.sensitivity": dict(levels=Checked(Levels([0.25, 0.5]))),
    "privacy.joint_exp.sensitivity_to_one": dict(levels=Checked(Levels([0.25, 0.5]))),
    "privacy.ind_exp.sensitivities": dict(q=LEVELS),
    "privacy.approx_quantiles.calibrate": dict(split=0.5),
    "privacy.two_stage.calibrate": dict(points=100),
    "privacy.two_stage.calibrate_tree": dict(points=100),
    "privacy.unbounded_quantile.calibrate, both": dict(lower=None, upper=None),
    "privacy.unbounded_quantile.costs_of": dict(q=HALF, way=Checked("up"), fraction=HALF),
    "privacy.above_threshold.counting_losses": dict(q=HALF, fraction=HALF),
    "privacy.above_threshold.threshold_fraction": dict(
        split=0.5, noise=Checked(NOISES["exponential"])
    ),
    "privacy.aggregates.aim_of": dict(q=0.9, method="unbounded"),
    "privacy.aggregates.calibrate": dict(method="unbounded", q=0.9),
    "privacy.aggregates.calibrate, both": dict(method="unbounded", q=0.9, lower=None, upper=None),
    "privacy.aggregates.laplace_scale": dict(sensitivity=2),
    "privacy.aggregates.noise_of_rho": dict(rho=0.5),
    "value_counts": dict(x=KEYS),
    "value_counts, selected": dict(x=KEYS, categories=None, delta=1e-3, selection_share=0.5),
    "histogram, edges": dict(bins=[-2.0, 0.0, 3.0], bounds=None),
    **{f"{name}, rho": dict(epsilon=None, rho=0.5) for name in ("count", "histogram", "count_by")},
    **{
        f"{name}, rho": dict(epsilon=None, rho=0.5, method="unbounded", q=0.9)
        for name in ("sum", "mean", "var")
    },
    **{
        f"{side}{name}": dict(method="unbounded", q=0.9)
        for name in ("var", "std", "var_by", "std_by")
        for side in ("", "reference.")
    },
    **{
        f"{name}, public": dict(method="unbounded", q=None, lower=-4.0, upper=8.0)
        for name in ("var", "std", "var_by")
    },
    "privacy.agg_tree.shape_of": dict(points=100),
    "privacy.agg_tree.least_error": dict(points=Checked(100), expected_n=Checked(30)),
    "privacy.agg_tree.expected_error": dict(
        height=Checked(2), branching=Checked(4), points=Checked(100)
    ),
    "privacy.agg_tree.calibrate": dict(noise="geometric", points=100),
    "privacy.csmooth.calibrate": dict(rho=0.5, t=None),
    "privacy.csmooth.epsilon_each": dict(rho=0.5),
    "privacy.csmooth.default_smoothness": dict(epsilon=HALF),
    "privacy.csmooth.smoothness_of": dict(levels=Checked(Levels([0.25, 0.5])), epsilon=HALF),
    "privacy.csmooth.smooth_rank": dict(q=HALF, n=Checked(10)),
    "privacy.bounded_range_epsilon_each": dict(delta=1e-6),
    "privacy.bounded_range_epsilon": dict(delta=1e-6),
    "privacy.gaussian_sigma": dict(delta=1e-6),
    "privacy.zcdp_epsilon": dict(rho=0.5, delta=1e-6),
    "privacy.zcdp_rho": dict(delta=1e-6),
    "privacy.rho_bounded_range": dict(rho=0.5),
    "privacy.cdf.options_of": dict(method="histogram", points=100),
    "privacy.cdf.method_of": dict(given=Checked({})),
    "privacy.cdf.depths_of": dict(method=Checked("histogram"), options=Checked({"bins": 4})),
    "privacy.cdf.calibrate": dict(method="binary_tree", points=100),
    "privacy.cdf.calibrate, adaptive": dict(method="adaptive", steps=5, depth=3, points=None),
    "privacy.cdf.calibrate, gaussian": dict(method="gaussian", levels=3, delta=1e-6, points=100),
    "privacy.cdf.calibrate, factorized": dict(
        method="factorized", rho=0.5, epsilon=None, points=100
    ),
    "privacy.cdf.factorized_squared": dict(bins=4),
    "privacy.cdf.prefix_factor": dict(bins=4),
    "privacy.cdf.calibrate, smooth_gaussian": dict(
        method="smooth_gaussian", levels=3, delta=1e-6, points=100
    ),
    "privacy.cdf.budget_of_level": dict(delta=1e-6),
    "privacy.cdf.smooth_gaussian_scale": dict(delta=1e-6),
    "privacy.guarantee": dict(method="ind_exp"),
    "privacy.guarantee, cdf": dict(method="cdf", epsilon=1.0, bins=16),
    "privacy.compose": dict(delta=1e-5),
    "privacy.Guarantee": dict(rho=0.5),
    "privacy.Accountant": dict(delta=1e-6),
    "diffprivlib.mean": dict(dtype=None),
    "diffprivlib.nanmean": dict(dtype=np.float32),
    "diffprivlib.sum": dict(dtype=int),
    "diffprivlib.nansum": dict(dtype=None),
    "diffprivlib.var": dict(dtype=None),
    "diffprivlib.nanvar": dict(dtype=np.float32),
    "diffprivlib.std": dict(dtype=int),
    "diffprivlib.nanstd": dict(dtype=None),
    "diffprivlib.histogram": HISTOGRAM,
    "diffprivlib.histogram, edges": HISTOGRAM | dict(bins=[0.0, 1.0, 5.0], range=Checked(None)),
    "diffprivlib.median, no bounds": dict(bounds=None, resolution=None),
    "diffprivlib.mean, no bounds": dict(bounds=None, resolution=None, dtype=None),
    "diffprivlib.var, no bounds": dict(bounds=None, resolution=None, dtype=None),
    "diffprivlib.histogram, no range": HISTOGRAM | dict(range=None),
    "audit.exact": dict(x=1, outputs=None, guarantee=None),
    "audit.estimate": dict(x=[0.0], guarantee=None),
}
# About persons: those that take ids.
OWN |= {
    f"{name}, persons": OWN.get(name, {}) | PERSONS
    for name in (
        *("quantile", "joint_exp", "cdf", "count", "mean", "sum", "std", "histogram"),
        *("quantile_by", "count_by", "sum_by", "mean_by", "select_keys"),
    )
}
OWN["describe, of persons"] = OWN["describe"] | dict(
    privacy_unit=np.array([1, 2, 1]), max_contributions=Checked(1)
)
OWN["plan, of persons"] = OWN["plan"] | dict(privacy_unit=3.5, max_contributions=Checked(1))
OWN["Sample.of, persons"] = dict(privacy_unit=KEYS, counts=Checked(None))
# How often those are called that take long; the others have weight 1.
WEIGHTS = {
    "CDF.accuracy": 0.1,
    "AggTree.tune": 0.2,
    "Sample.from_batches": 0.5,
    "audit.exact": 0.2,
    "audit.estimate": 0.2,
    "plan": 0.2,
    "plan_sum": 0.2,
    "plan_mean": 0.2,
    "reference.agg_tree": 0.2,
    "reference.cdf": 0.2,
    "reference.csmooth": 0.2,
    "reference.joint_exp": 0.2,
    "reference.joint_exp_law": 0.2,
    "reference.quantile_by": 0.2,
    "reference.sum_by": 0.2,
    "reference.mean_by": 0.2,
    "reference.noise.discrete_gaussian": 0.2,
    "reference.noise.discrete_laplace": 0.2,
}


def public(name: str, value: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """All that can be called in a public module, class or function, by name."""
    if inspect.ismodule(value):
        listed = getattr(value, "__all__", None)
        for key, member in vars(value).items():
            here = getattr(member, "__module__", None) == value.__name__
            if key in listed if listed is not None else here and not key.startswith("_"):
                yield from public(f"{name}.{key}", member)
    elif inspect.isclass(value):
        yield name, value
        owner = INSTANCES.get(name, value)
        sent = vars(Packed) if issubclass(value, Packed) else ()
        for key in dict.fromkeys((*vars(value), *sent)):
            if not key.startswith("_") and callable(getattr(value, key)):
                yield f"{name}.{key}", getattr(owner, key)
    elif callable(value):
        yield name, value


def functions() -> dict[str, Callable[..., Any]]:
    """All that is public, and the laws' methods."""
    found = {}
    for name in dpq.__all__:
        if getattr(privacy, name, None) is not getattr(dpq, name):  # else called by that name
            found |= dict(public(name, getattr(dpq, name)))
        if name.endswith("_law"):
            law = INSTANCES[name]
            keys = [key for key in ("log_prob", "sample") if hasattr(law, key)]
            found |= {f"{name}.{key}": getattr(law, key) for key in keys}
    for name, function in public("diffprivlib", diffprivlib):
        found[name] = function if inspect.isclass(function) else of_diffprivlib(function)
    return found


def of_diffprivlib(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that warns of bounds that are left out, as it should."""

    @functools.wraps(function)
    def quietly(*arguments: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", diffprivlib.PrivacyLeakWarning)
            return function(*arguments, **options)

    return quietly


def call_of(name: str, function: Callable[..., Any]) -> Call:
    """A function with the usual values of its arguments."""
    kinds = {key: one.kind for key, one in inspect.signature(function).parameters.items()}
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    positional = tuple(key for key, kind in kinds.items() if kind in by_place)
    names = [key for key, kind in kinds.items() if kind is not inspect.Parameter.VAR_KEYWORD]
    own = OWN.get(name, {})
    if {"bounds", "lower"} <= {*names}:  # of a clip: its ends say the same
        own = {"bounds": None} | own
    usual = {key: USUAL[key] for key in (*names, *MORE.get(name, ())) if key not in own}
    return Call(function, positional, usual | own, WEIGHTS.get(name, 1.0))


def table() -> dict[str, Call]:
    """All calls: every function, and those settings of it that have a name of their own."""
    found = functions()
    names = [name for name in found if name not in LEFT_OUT]
    names += [name for name in (*OWN, *MORE) if "," in name]
    return {name: call_of(name, found[name.split(",")[0]]) for name in dict.fromkeys(names)}


CALLS = table()


def column(rng: np.random.Generator) -> Any:
    """A column, of any type and form."""
    size = int(rng.integers(0, 60))
    plain = rng.normal(0.0, 10.0, size=size)
    integers = rng.integers(-5, 5, size=size)
    strange = rng.choice(
        np.array([math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 1.0]), size
    )
    read_only = plain.copy()
    read_only.flags.writeable = False
    kinds = (
        lambda: plain,
        lambda: strange,
        lambda: np.where(rng.random(size) < 0.5, plain, strange),
        lambda: integers,
        lambda: rng.integers(-(2**63), 2**63 - 1, size=size),
        lambda: rng.integers(0, 2**64 - 1, size=size, dtype=np.uint64),
        lambda: integers.astype(">i2"),
        lambda: plain.astype(np.float16),
        lambda: strange.astype(np.longdouble) * np.longdouble("1e100"),
        lambda: plain.astype(">f8"),
        lambda: np.repeat(plain, 3)[::3],
        lambda: plain[::-1],
        lambda: read_only,
        lambda: np.frombuffer(b"\0" + plain.tobytes(), dtype=np.uint8)[1:].view(np.float64),
        lambda: np.zeros(size, dtype=[("pad", "u1"), ("x", "f8")])["x"],
        lambda: plain.tolist(),
        lambda: [None, *plain.tolist(), 10**400],
        lambda: [*plain.tolist(), "x"],
        lambda: [Fraction(1, 3), Decimal("0.5"), 10**400, np.float32(2.0)],
        lambda: plain.reshape(1, -1),
        lambda: np.array(plain, ndmin=2, order="F").T,
        lambda: np.array(1.0),
        lambda: np.array(["a"] * size),
        lambda: np.array([1.0, None, object()], dtype=object),
        lambda: plain > 0.0,
        lambda: plain + 1j,
        lambda: integers.astype("datetime64[s]"),
        lambda: integers.astype("timedelta64[s]"),
        lambda: np.zeros(size, dtype=[("a", "f8")]),
        lambda: np.ma.masked_invalid(strange),
        lambda: np.ma.masked_less(integers, 0),
        lambda: np.frombuffer(rng.bytes(8 * size), dtype=np.float64),  # any bits, signaling NaN
        lambda: np.frombuffer(rng.bytes(4 * size), dtype=np.float32),
        lambda: pd.Series(plain),
        lambda: pd.array([*integers.tolist(), None], dtype="Int64"),
        lambda: pl.Series([*plain.tolist(), None], dtype=pl.Float64),
        lambda: pl.Series(["a"] * size),
        lambda: pa.array([*integers.tolist(), None], type=pa.int64()),
        lambda: iter(plain.tolist()),
        lambda: {1.0: 2.0},
        lambda: {1.0, 2.0},
        lambda: range(size),
        lambda: NUMBERS[rng.integers(len(NUMBERS))],
    )
    return kinds[rng.integers(len(kinds))]()


def argument(rng: np.random.Generator, usual: Any) -> Any:
    """A hostile argument in place of the usual one."""
    if isinstance(usual, bytes) and rng.random() < 0.7:
        return changed(rng, usual)
    kinds = (
        lambda: NUMBERS[rng.integers(len(NUMBERS))],
        lambda: NUMBERS[rng.integers(len(NUMBERS))],
        lambda: STRINGS[rng.integers(len(STRINGS))],
        lambda: float(np.exp(rng.normal(0.0, 30.0))),
        lambda: -usual if isinstance(usual, (int, float)) else (usual, usual),
        lambda: rng.random(int(rng.integers(0, 4))),
        lambda: (float(rng.normal()), float(rng.normal())),
        lambda: column(rng),
    )
    return kinds[rng.integers(len(kinds))]()


def changed(rng: np.random.Generator, usual: bytes) -> bytes:
    """Bytes that are cut off, or with others in a few places; most with a checksum that fits."""
    data = bytearray(usual[: int(rng.integers(len(usual) + 1)) if rng.random() < 0.2 else None])
    for at in rng.integers(len(data), size=int(rng.integers(4)) if data else 0).tolist():
        data[at] = int(rng.integers(256))
    if rng.random() < 0.8:
        data[-4:] = zlib.crc32(data[:-4]).to_bytes(4, "little")
    return bytes(data)


def usual_value(
    rng: np.random.Generator, usual: Any, x: Any, noise: Any, least: int, most: int
) -> Any:
    """What an argument usually is, made now where it belongs to the column."""
    if isinstance(usual, Checked):
        return usual.value
    if usual is COLUMN:
        return x
    if usual is NOISE:
        return noise
    if usual is KEYS:
        return rng.integers(0, 3, size=length(x))
    if usual is COUNTS:
        given = rng.random() < 0.1
        return rng.integers(least, most, size=length(x)) if given else None
    return usual


LARGEST = sys.float_info.max
BUDGETS = (5e-324, 1e-308, 1e-200, 1e-153, 1e-100, 1e-17, 1e17, 1e100, 1e154, 1e308, LARGEST)
SHARES = (5e-324, 1e-308, 1e-100, 1e-17, 1.0 - 2.0**-53)
POSITIVE = (5e-324, 1e-308, 1e-154, 1e-17, 1e17, 1e154, LARGEST)
ANYWHERE = (0.0, 5e-324, -5e-324, 1e-300, 1e17, -1e17, LARGEST, -LARGEST)
SIZES = (1, 2, 2**20, 2**26 + 1, 2**53)
# What is in its type and beyond all reason, by argument.
EXTREMES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("epsilon", "rho", "epsilon1", "epsilon2", "epsilon_each"), BUDGETS),
    **dict.fromkeys(("delta", "confidence", "share", "interval_share", "selection_share"), SHARES),
    **dict.fromkeys(("level", "gamma", "split", "fraction"), SHARES),
    **dict.fromkeys(("sensitivity", "scale", "sigma", "squared", "beta", "t"), POSITIVE),
    **dict.fromkeys(("target", "tolerance", "width", "whisker"), POSITIVE),
    **dict.fromkeys(("lower", "upper", "offset", "threshold", "lo", "hi", "k", "o"), ANYWHERE),
    **dict.fromkeys(("low", "high"), ANYWHERE),
    **dict.fromkeys(("max_contributions", "expected_n", "n", "height", "branching"), SIZES),
    **dict.fromkeys(("bins", "steps", "depth", "halts", "m", "most", "units"), SIZES),
    # of these, time is as long as asked for
    **dict.fromkeys(("levels", "heights", "branchings", "releases", "draws"), (1, 2, 2**53)),
    **dict.fromkeys(("trials", "total"), (1, 2, 2**53)),
    "bounds": (
        (-LARGEST, LARGEST),
        (-0.499 * LARGEST, 0.499 * LARGEST),
        (0.0, LARGEST),
        (0.5 * LARGEST, 0.9 * LARGEST),
        (-1e17, 1e17),
        (0.0, 1e-300),
        (0.0, 5e-324),
        (-5e-324, 5e-324),
        (1.0, 1.0 + 2.0**-52),
        (1e300, math.nextafter(1e300, math.inf)),
        (2.0**53, 2.0**53 + 2.0),
        (-math.inf, math.inf),
    ),
    "resolution": (5e-324, 1e-300, 1e-17, 1e-15, 1e-9, 19.0, 20.0, 21.0, 1e300, LARGEST, 0.0),
    "q": (
        0.0,
        5e-324,
        1.0 - 2.0**-53,
        1.0,
        [5e-324, 1.0 - 2.0**-53],
        [0.5, 0.5 + 2.0**-53],
        np.broadcast_to(0.5, 10**9),
    ),
}


# Bounds that are taken from the records, with a warning, decide which resolutions there are. Others
# make as much of something as they are asked for.
EXEMPT = {
    ("diffprivlib.median, no bounds", "resolution"),
    ("AggTree.tune", "n"),
    ("Sample.histogram", "bins"),
    *((f"metrics.{name}", "q") for name in ("rank_error", "missed_points", "distance_error")),
}


def extremes_of(name: str) -> dict[str, tuple[Any, ...]]:
    """The extremes of the arguments of a function."""
    usual = CALLS[name].arguments
    return {
        argument: extremes
        for argument, extremes in EXTREMES.items()
        if argument in usual
        and not isinstance(usual[argument], Checked)
        and (name, argument) not in EXEMPT
    }


def extreme_call(name: str, given: dict[str, Any], x: NDArray[np.float64]) -> dict[str, Any]:
    """The arguments of the usual call of a function, but for some that are given."""
    rng, noise = np.random.default_rng(1), np.random.default_rng(0)
    usual = CALLS[name].arguments
    made = {
        key: None if value is COUNTS else usual_value(rng, value, x, noise, 0, 1)
        for key, value in usual.items()
    }
    if "accountant" in made:
        made["accountant"] = privacy.Accountant(LARGEST, SHARES[-1])
    if "rho" in given and made["rho"] is None and "epsilon" in made:
        made["epsilon"] = None
    return made | given


def extreme_calls(name: str) -> Iterator[dict[str, Any]]:
    """One extreme argument of a function at a time."""
    for argument, extremes in extremes_of(name).items():
        for extreme in extremes:
            yield {argument: extreme}


def extreme_columns() -> list[NDArray[np.float64]]:
    """No records, one, all at a bound, most of them, long ones, numbers of any size."""
    rng = np.random.default_rng(1)
    long = rng.normal(0.0, 5.0, size=20_000)
    tied = np.where(np.arange(3_000) < 2_400, -10.0, long[:3_000])
    strange = np.array([1e308, -1e308, 5e-324, math.nan, math.inf])
    return [np.empty(0), np.array([3.0]), np.full(50, 10.0), tied, long, strange]


def fault(call: Call, given: dict[str, Any]) -> str:
    """What is wrong with what comes of a call; nothing, for an answer or a refusal by a rule.

    A refusal is an error that our own code raises, before anything is charged. A warning is an
    error of nobody's.
    """
    accountant = given.get("accountant")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call.make(dict(given))
    except (TypeError, ValueError) as error:
        raised = traceback.extract_tb(error.__traceback__)[-1]
        if not (raised.line or "").startswith("raise ") or "dpq_fast" not in raised.filename:
            return f"somebody else's words: {error!r}"
        if accountant is not None and accountant.entries:
            return f"too late: {error!r}"
    except Exception as error:
        return repr(error)
    return ""


def length(x: Any) -> int:
    """How many records a column has, if it has a length."""
    try:
        return len(x)
    except TypeError:
        return 2


def arguments(
    rng: np.random.Generator, noise: np.random.Generator, usual: dict[str, Any], most: int
) -> dict[str, Any]:
    """The arguments of one call, of which in every other call some are hostile.

    Records occur less often than `most`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what making the arguments says does not count
        x = column(rng)
        hostile = bool(rng.random() < 0.5)
        return {
            key: argument(rng, value)
            if hostile and not isinstance(value, Checked) and rng.random() < LATE
            else usual_value(rng, value, x, noise, -1 if hostile else 0, most)
            for key, value in usual.items()
        }


def calls(number: int, seed: int) -> Outcome:
    """So many hostile calls; a warning counts as an error."""
    rng = np.random.default_rng(seed)
    noise = np.random.default_rng(seed)
    names = list(CALLS)
    weights = np.array([one.weight for one in CALLS.values()])
    answered = refused = 0
    other: collections.Counter[str] = collections.Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for chosen in rng.choice(len(names), size=number, p=weights / weights.sum()).tolist():
            name = names[chosen]
            # The plain implementations are for few records.
            most = 4 if name.startswith("reference") else 2**10
            given = arguments(rng, noise, CALLS[name].arguments, most)
            try:
                CALLS[name].make(given)
                answered += 1
            except (TypeError, ValueError, FileNotFoundError):  # a text is a path to a table
                refused += 1
            except BaseException as error:
                if isinstance(error, (KeyboardInterrupt, SystemExit)):
                    raise
                other[f"{name}: {type(error).__name__}: {error}"[:160]] += 1
    return Outcome(answered, refused, dict(other))


def resident() -> int:
    """Bytes of memory that the process holds, but for what its allocator could give back."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
        if trim is not None:
            trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print("warming up:", calls(20_000, seed=0))
    before, start, part = resident(), time.perf_counter(), 100_000
    for done in range(0, number, part):
        outcome = calls(min(part, number - done), seed=1 + done)
        grown = (resident() - before) / 2**20
        print(
            f"{done + part:>9} calls, {time.perf_counter() - start:6.1f} s, {grown:+.2f} MiB",
            outcome,
        )


if __name__ == "__main__":
    main()
