"""Every public release as a function of a column and of a generator, for tests about all of them.

Each has its own public arguments, the same whatever the column is; more of them may be given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

import dpq_fast as dpq

Q = [0.25, 0.5, 0.9]
BOUNDS = dict(bounds=(-10.0, 10.0))
LEVELS = dict(q=Q, epsilon=1.0) | BOUNDS
GRID = dict(resolution=0.25)
PRIOR = dict(prior=[(0.9, stats.norm(1.0, 2.0)), (0.1, "uniform")])
INTERVAL = dict(confidence=0.9, expected_n=100_000)


def grouped(x: Any, rng: Any, **more: Any) -> Any:
    keys = np.arange(len(x)) % 3
    return dpq.quantile_by(x, keys, rng=rng, **dict(groups=[0, 1, 7]) | LEVELS | more).values


def grouped_values(release: Callable[..., Any], **options: Any) -> Callable[[Any, Any], Any]:
    """Counts, sums or means of three groups."""

    def released(x: Any, rng: Any, **more: Any) -> Any:
        keys, public = np.arange(len(x)) % 3, dict(groups=[0, 1, 7], epsilon=1.0)
        return release(x, keys, rng=rng, **public | options | more).values

    return released


def queries(x: Any) -> np.ndarray:
    """How many records are below each of a few points; missing ones are below none."""
    with np.errstate(invalid="ignore"):  # signaling NaN of float32
        column = np.asarray(x, dtype=np.float64)
    return np.array([np.count_nonzero(column < point) for point in range(-5, 6)])


def of_queries(release: Callable[..., Any], **options: Any) -> Callable[[Any, Any], Any]:
    public = dict(threshold=3, epsilon1=1.0, epsilon2=1.0, monotonic=True) | options
    return lambda x, rng, **more: release(queries(x), rng=rng, **public | more)


def curve(x: Any, rng: Any, **options: Any) -> np.ndarray:
    """A released distribution function at public points."""
    return dpq.cdf(x, rng=rng, **options).cdf(np.linspace(-11.0, 11.0, 23))


def of_column(release: Callable[..., Any], **options: Any) -> Callable[[Any, Any], Any]:
    return lambda x, rng, **more: release(x, rng=rng, **options | more)


def boxed(x: Any, **options: Any) -> np.ndarray:
    """The five numbers of a box."""
    return np.array([*dpq.box(x, **options)])


def numbers(x: Any, **options: Any) -> Any:
    """Those of a histogram, without its edges."""
    return dpq.histogram(x, **options)[0]


RELEASES: dict[str, Callable[[Any, Any], Any]] = {
    "joint_exp": of_column(dpq.joint_exp, **LEVELS),
    "joint_exp, dither": of_column(dpq.joint_exp, **LEVELS, **GRID),
    "joint_exp, fft": of_column(dpq.joint_exp, kernel="fft", **LEVELS, **GRID),
    "ind_exp": of_column(dpq.ind_exp, delta=1e-6, **LEVELS),
    "ind_exp, permute-and-flip": of_column(dpq.ind_exp, **LEVELS),
    "approx_quantiles": of_column(dpq.approx_quantiles, **LEVELS),
    "approx_quantiles, dither": of_column(dpq.approx_quantiles, **LEVELS, **GRID),
    "approx_quantiles, unbounded": of_column(
        dpq.approx_quantiles, base="unbounded", beta=1.1, **LEVELS
    ),
    "csmooth": of_column(dpq.csmooth, q=Q, rho=0.5, **BOUNDS),
    "csmooth, dither": of_column(dpq.csmooth, q=Q, rho=0.5, **BOUNDS, **GRID),
    "joint_exp, prior": of_column(dpq.joint_exp, **LEVELS, **PRIOR),
    "joint_exp, prior, no dither": of_column(
        dpq.joint_exp, dither=False, **LEVELS, **GRID, **PRIOR
    ),
    "ind_exp, prior": of_column(dpq.ind_exp, **LEVELS, **PRIOR),
    "approx_quantiles, prior": of_column(dpq.approx_quantiles, **LEVELS, **GRID, **PRIOR),
    "csmooth, prior": of_column(dpq.csmooth, q=Q, rho=0.5, **BOUNDS, **PRIOR),
    "quantile, prior": of_column(dpq.quantile, **LEVELS, **PRIOR),
    "quantile_by, prior": lambda x, rng, **more: grouped(x, rng, **PRIOR | more),
    "quantile_by, two stages": lambda x, rng, **more: grouped(
        x, rng, **dict(method="two_stage", expected_n=100) | more
    ),
    "agg_tree, prior": of_column(dpq.agg_tree, height=2, branching=4, **LEVELS, **PRIOR),
    "cdf, prior": of_column(curve, epsilon=1.0, bins=16, **BOUNDS, **PRIOR),
    "cdf, adaptive, prior": of_column(
        curve, epsilon=1.0, method="adaptive", steps=5, bins=32, **BOUNDS, **PRIOR
    ),
    "two_stage": of_column(dpq.two_stage, expected_n=100, **LEVELS),
    "two_stage, one level": of_column(dpq.two_stage, q=0.5, epsilon=1.0, **BOUNDS),
    "two_stage, tree": of_column(
        dpq.two_stage, q=np.arange(1, 20) / 20, expected_n=100, epsilon=1.0, **BOUNDS
    ),
    "two_stage, prior": of_column(dpq.two_stage, rho=0.5, q=Q, **BOUNDS, **PRIOR),
    "two_stage, interval": of_column(dpq.two_stage, **INTERVAL, **LEVELS),
    "joint_exp, prior, scale-free": of_column(dpq.joint_exp, prior="scale-free", **LEVELS),
    "quantile": of_column(dpq.quantile, **LEVELS),
    "median": of_column(dpq.median, epsilon=1.0, **BOUNDS),
    "percentile": of_column(dpq.percentile, q=50.0, epsilon=1.0, **BOUNDS),
    "min": of_column(dpq.min, epsilon=1.0, **BOUNDS),
    "max": of_column(dpq.max, epsilon=1.0, **BOUNDS),
    "iqr": of_column(dpq.iqr, epsilon=1.0, **BOUNDS),
    "iqr, interval": of_column(dpq.iqr, epsilon=1.0, **BOUNDS, **INTERVAL),
    "box": of_column(boxed, epsilon=1.0, **BOUNDS),
    "min_by": grouped_values(dpq.min_by, **BOUNDS),
    "max_by": grouped_values(dpq.max_by, **BOUNDS),
    "iqr_by": grouped_values(dpq.iqr_by, **BOUNDS),
    "box_by": grouped_values(dpq.box_by, **BOUNDS),
    "quantile_by": grouped,
    "count_by": grouped_values(dpq.count_by),
    "sum_by": grouped_values(dpq.sum_by, resolution=0.5),
    "sum_by, public": grouped_values(dpq.sum_by, q=None, lower=-4, upper=8, resolution=0.5),
    "mean_by": grouped_values(dpq.mean_by),
    "mean_by, public": grouped_values(dpq.mean_by, q=None, lower=-4, upper=8),
    "var_by": grouped_values(dpq.var_by),
    "std_by, public": grouped_values(dpq.std_by, q=None, lower=-4, upper=8, expected_n=100),
    "unbounded_quantile": of_column(dpq.unbounded_quantile, q=0.9, epsilon=1.0),
    "unbounded_quantile, both": of_column(
        dpq.unbounded_quantile, q=Q, epsilon=1.0, lower=None, beta=1.1
    ),
    "unbounded_quantile, invert": of_column(
        dpq.unbounded_quantile, q=0.1, epsilon=1.0, invert=True
    ),
    "joint_exp, interval": of_column(dpq.joint_exp, **INTERVAL, **LEVELS),
    "ind_exp, interval": of_column(dpq.ind_exp, covers="population", **INTERVAL, **LEVELS),
    "unbounded_quantile, interval": of_column(
        dpq.unbounded_quantile, q=Q, epsilon=1.0, lower=None, **INTERVAL
    ),
    "agg_tree": of_column(dpq.agg_tree, height=2, branching=4, **LEVELS),
    "agg_tree, rho": of_column(
        dpq.agg_tree, q=Q, rho=0.5, noise="gaussian", height=2, branching=4, **BOUNDS
    ),
    "cdf": of_column(curve, epsilon=1.0, bins=16, **BOUNDS),
    "cdf, rho": of_column(curve, rho=0.5, bins=16, **BOUNDS),
    "cdf, agg_tree": of_column(
        curve, epsilon=1.0, method="agg_tree", height=2, branching=4, **BOUNDS
    ),
    "cdf, histogram": of_column(curve, epsilon=1.0, method="histogram", bins=10, **BOUNDS),
    "cdf, factorized": of_column(curve, rho=0.5, method="factorized", bins=16, **BOUNDS),
    "cdf, adaptive": of_column(curve, epsilon=1.0, method="adaptive", steps=5, bins=32, **BOUNDS),
    "cdf, gaussian": of_column(
        curve, epsilon=1.0, delta=1e-6, method="gaussian", levels=3, **BOUNDS
    ),
    "cdf, gaussian, bins": of_column(
        curve, epsilon=1.0, delta=1e-6, method="gaussian", bins=8, **BOUNDS
    ),
    "cdf, smooth_gaussian": of_column(
        curve, epsilon=1.0, delta=1e-6, method="smooth_gaussian", levels=3, **BOUNDS
    ),
    "above_threshold": of_queries(dpq.above_threshold),
    "sparse_vector": of_queries(dpq.sparse_vector, halts=3),
    "count": of_column(dpq.count, epsilon=1.0),
    "count, interval": of_column(dpq.count, epsilon=1.0, confidence=0.9),
    "mean, interval": of_column(dpq.mean, epsilon=1.0, confidence=0.9, covers="population"),
    "sum": of_column(dpq.sum, epsilon=1.0, resolution=0.5),
    "sum, two sides": of_column(dpq.sum, epsilon=1.0, lower=None),
    "sum, public": of_column(dpq.sum, epsilon=1.0, q=None, lower=-4, upper=8, resolution=0.5),
    "mean": of_column(dpq.mean, epsilon=1.0),
    "histogram": of_column(numbers, bins=8, epsilon=1.0, **BOUNDS),
    "histogram, rho, edges": of_column(
        numbers, bins=[-np.inf, 0.0, 1.5, 4.0], rho=0.5, density=True
    ),
    "mean, rho": of_column(dpq.mean, rho=0.5, bounds=(-4, 8)),
    "sum, rho": of_column(dpq.sum, rho=0.5),
    "count, rho": of_column(dpq.count, rho=0.5, confidence=0.9),
    "var": of_column(dpq.var, epsilon=1.0),
    "var, public": of_column(dpq.var, epsilon=1.0, bounds=(-4, 8), expected_n=100),
    "std, add-remove": of_column(
        dpq.std, epsilon=1.0, bounds=(-4, 8), confidence=0.9, neighbors="add-remove"
    ),
    "mean, add-remove": of_column(
        dpq.mean, epsilon=1.0, q=None, lower=-4, upper=8, neighbors="add-remove"
    ),
}

# Public arguments of each mechanism that its guarantee depends on.
PUBLIC: dict[str, dict[str, Any]] = dict(
    joint_exp=dict(q=[0.2, 0.6], epsilon=0.7),
    ind_exp=dict(q=[0.2, 0.6], epsilon=0.7, delta=1e-6),
    approx_quantiles=dict(q=[0.2, 0.6, 0.9], rho=0.3),
    two_stage=dict(q=[0.2, 0.6], epsilon=0.7, expected_n=3),
    unbounded_quantile=dict(q=[0.2, 0.6], epsilon=0.7),
    agg_tree=dict(q=0.5, epsilon=0.7, height=2, branching=4),
    csmooth=dict(q=0.5, rho=0.3),
    quantile_by=dict(q=[0.2, 0.6], epsilon=0.7),
    **{name: dict(epsilon=0.7) for name in ("count_by", "sum_by", "mean_by", "var_by", "std_by")},
    select_keys=dict(epsilon=0.7, delta=1e-6),
    cdf=dict(epsilon=0.7, bins=8),
    count=dict(epsilon=0.7),
    sum=dict(epsilon=0.7),
    mean=dict(epsilon=0.7),
    var=dict(epsilon=0.7),
    std=dict(rho=0.3),
    histogram=dict(epsilon=0.7),
    above_threshold=dict(epsilon1=0.3, epsilon2=0.7, monotonic=True),
    sparse_vector=dict(epsilon1=0.3, epsilon2=0.7, halts=2),
)
# What a release of three records, or of three queries, needs beside them.
NEEDED: dict[str, dict[str, Any]] = dict(
    above_threshold=dict(threshold=1.0),
    sparse_vector=dict(threshold=1.0),
    quantile_by=dict(by=[0, 0, 1], groups=[0, 1], **BOUNDS),
    **{
        name: dict(by=[0, 0, 1], groups=[0, 1])
        for name in ("count_by", "sum_by", "mean_by", "var_by", "std_by")
    },
    approx_quantiles=BOUNDS,
    histogram=dict(bins=[0.0, 1.0, 2.0]),
    **{
        name: BOUNDS for name in ("joint_exp", "ind_exp", "two_stage", "csmooth", "agg_tree", "cdf")
    },
)
