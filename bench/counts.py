"""Passes that count, add and compare: bins, trees, distribution functions, sums, thresholds."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench import peers
from bench.case import Call, Case, Maker, Side
from bench.columns import BOUNDS, DELTA, EPSILON, gaussian, levels
from bench.sides import np_sum, released
from dpq_fast.data.histogram import Bins
from dpq_fast.data.records import Records
from dpq_fast.mechanisms.clipping import Clip

BINS = 1_000
HEIGHT, BRANCHING = 3, 10  # the paper's most frequent choice, [GJK21] Table 1
SHAPE = dict(bounds=BOUNDS, height=HEIGHT, branching=BRANCHING)
LEAVES = 2**20


def half_normal(n: int) -> NDArray[np.float64]:
    return np.abs(gaussian(n))


def clamped(n: int) -> NDArray[np.float64]:
    """Half of the records are 0."""
    return np.maximum(gaussian(n), 0.0)


def lognormal(n: int) -> NDArray[np.float64]:
    return np.random.default_rng(1).lognormal(0.0, 1.0, n)


def geometric(x: NDArray[np.float64]) -> Call:
    """The pass of the unbounded quantile."""
    bins = Bins.geometric(1.01, 0.0, below=True)
    return lambda: Records.of(x).count(bins)


def np_log(x: NDArray[np.float64]) -> Call:
    """Of the column, without the warnings where it is 0, which cost time."""
    return partial(np.log, np.maximum(x, 1e-300))


def uniform(x: NDArray[np.float64]) -> Call:
    bins = Bins.uniform(float(x.min()), float(x.max()), BINS)
    return lambda: Records.of(x).count(bins)


def tree_pass(**options: Any) -> Maker:
    """The pass over the records alone: exact counts, no noise."""
    return lambda x: partial(dpq.PartialTree.of, x, **SHAPE, **options)


def cdf(method: str, **options: Any) -> Maker:
    return released(dpq.cdf, method=method, **options)


def exact_sum(**options: Any) -> Maker:
    """The pass alone, on the lattice of the bounds."""
    clip = Clip.of(*BOUNDS, None)
    return lambda x: lambda: Records.of(x, **options).sums(clip.scale, clip.first, clip.last)


def bounded(x: NDArray) -> Call:
    """With a public clip."""
    low, high = BOUNDS
    return partial(dpq.sum, x, epsilon=EPSILON, q=None, lower=low, upper=high)


def clipped(function: Any) -> Maker:
    """With a private clip on either side of zero: two more passes, that count."""
    return lambda x: partial(function, x, epsilon=EPSILON, lower=None)


def above_threshold(threshold: float, **options: Any) -> Maker:
    """The records are the queries' values."""
    budget = dict(epsilon1=EPSILON, epsilon2=EPSILON)
    return lambda x: partial(dpq.above_threshold, x, threshold, **budget, **options)


def equal_queries(x: NDArray[np.float64]) -> Call:
    """As many queries, all of one value, far below the threshold."""
    return above_threshold(BOUNDS[1])(np.zeros(x.size))


CASES = (
    *(
        Case(
            f"counts/{name}",
            f"counts in geometric bins, {name}, unsorted, n = {{size}}",
            draw,
            geometric,
            (10**7,),
            1_000,
            (Side("`np.log`", np_log), Side("`x.sum()`", np_sum)),
            bar="1.3 × faster than np.log at n = 10⁸",
        )
        for name, draw in (
            ("half_normal", half_normal),
            ("clamped", clamped),
            ("lognormal", lognormal),
        )
    ),
    Case(
        "counts/equal_bins",
        "counts in 1,000 equal bins, unsorted, n = {size}",
        gaussian,
        uniform,
        (10**7,),
        1_000,
        (Side("`np.histogram`", lambda x: partial(np.histogram, x, BINS)),),
        bar="3.3 × faster at n = 10⁸",
    ),
    Case(
        "agg_tree/large",
        "`agg_tree`, m = 9, unsorted, n = {size}, 1,000 leaves",
        gaussian,
        released(dpq.agg_tree, levels(9), height=HEIGHT, branching=BRANCHING),
        (10**8,),
        1_000,
        (
            Side(
                "`np.histogram`, same bins",
                lambda x: partial(np.histogram, x, BRANCHING**HEIGHT, BOUNDS),
            ),
            Side("its pass alone", tree_pass(), shown=False),
            Side("its pass alone, workers=2", tree_pass(workers=2), shown=False),
        ),
        shown=True,
        bar="3.3 × faster",
    ),
    Case(
        "cdf/large_tree",
        "`cdf`, n = {size}, 2²⁰ leaves, smoothed",
        gaussian,
        cdf("binary_tree", bins=LEAVES),
        (10**6,),
        1_000,
        shown=True,
        bar="1 s",
    ),
    Case(
        "cdf/methods",
        "`cdf`, unsorted, n = {size}, method='binary_tree'",
        gaussian,
        cdf("binary_tree"),
        (1_000, 10**6),
        1_000,
        (
            Side("aggregate=False", cdf("binary_tree", aggregate=False)),
            *(Side(method, cdf(method)) for method in ("agg_tree", "histogram", "adaptive")),
            Side("gaussian", cdf("gaussian", delta=DELTA)),
            Side("gaussian, 100 bins", cdf("gaussian", delta=DELTA, bins=100)),
            Side("smooth_gaussian", cdf("smooth_gaussian", delta=DELTA)),
        ),
    ),
    Case(
        "sums/exact",
        "exact sum of integers, n = {size}",
        gaussian,
        exact_sum(),
        (10**6,),
        1_000,
        (
            Side("`x.sum()`", np_sum),
            Side("the same, workers=2", exact_sum(workers=2), shown=False),
        ),
        shown=True,
        bar="2 × x.sum()",
    ),
    Case(
        "sums/releases",
        "`sum` in ±100, n = {size}",
        gaussian,
        bounded,
        (1_000, 10**6),
        1_000,
        (
            Side("private clips", clipped(dpq.sum)),
            Side("`mean`, private clips", clipped(dpq.mean)),
            Side("`count`", lambda x: partial(dpq.count, x, epsilon=EPSILON)),
            Side("diffprivlib, in ±100", peers.diffprivlib_sum),
            Side("opendp, in ±100", peers.opendp_sum),
        ),
    ),
    Case(
        "above_threshold/large",
        "`above_threshold`, n = {size} queries, none of which halts",
        gaussian,
        above_threshold(BOUNDS[1]),
        (10**8,),
        1_000,
        (
            Side("`x.sum()`", np_sum),
            Side("gumbel", above_threshold(BOUNDS[1], noise="gumbel"), shown=False),
            Side("equal queries", equal_queries, shown=False),
            Side("the first one halts", above_threshold(BOUNDS[0]), shown=False),
        ),
        shown=True,
    ),
)
