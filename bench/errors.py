"""Mean rank error of releases: on real columns full of ties, and on the paper's N(0, 5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench import peers, published
from bench.case import ErrorCase, Release
from bench.columns import BOUNDS, DELTA, EPSILON, REAL, RHO, gaussian, levels
from bench.counts import BRANCHING, HEIGHT
from dpq_fast.mechanisms.csmooth import tune_t

N = 1_000
DRAWS = 1_000


def mean_error(
    draw: Callable[[np.random.Generator], NDArray], release: Release, m: int, draws: int = DRAWS
) -> tuple[float, float]:
    """The rank error averaged over levels and fresh samples, and its standard error."""
    q = levels(m)
    errors = np.empty(draws)
    for seed in range(draws):  # the same samples for every release
        x = draw(np.random.default_rng([seed, 0]))
        outputs = release(x, q, np.random.default_rng([seed, 1]))
        errors[seed] = dpq.metrics.rank_error(x, q, outputs).mean()
    return float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(draws))


def released(function: Callable[..., NDArray], **options: Any) -> Release:
    """A public function as a release."""
    chosen = {"bounds": BOUNDS} | options
    return lambda x, q, rng: function(x, q, rng=rng, **chosen)


def joint_exp(bounds: tuple[float, float], resolution: float | None = None) -> Release:
    return released(dpq.joint_exp, epsilon=EPSILON, bounds=bounds, resolution=resolution)


def published_joint_exp(bounds: tuple[float, float]) -> Release:
    return lambda x, q, rng: published.joint_exp(np.sort(x), q, EPSILON, bounds, rng)


def diffprivlib_quantile(bounds: tuple[float, float]) -> Release:
    """One level after another; `EPSILON` in total, as its documentation says."""
    return lambda x, q, rng: np.atleast_1d(
        peers.diffprivlib().quantile(
            x, q, epsilon=EPSILON, bounds=bounds, random_state=int(rng.integers(2**31))
        )
    )


def published_tree(x: NDArray, q: NDArray, rng: np.random.Generator) -> NDArray:
    return published.tree(x, q, EPSILON, BOUNDS, HEIGHT, BRANCHING, rng)


def tuned_csmooth(x: NDArray, q: NDArray, rng: np.random.Generator) -> NDArray:
    """t tuned on N(0, 1) for this n and each level, as in [GJK21]."""
    return dpq.csmooth(x, q, rho=RHO, bounds=BOUNDS, t=_tuned(x.size, tuple(q)), rng=rng)


@cache
def _tuned(n: int, q: tuple[float, ...]) -> NDArray[np.float64]:
    return tune_t(n, np.array(q), rho=RHO)


def gaussian_sample(rng: np.random.Generator) -> NDArray[np.float64]:
    return gaussian(N, rng)


def real_sample(name: str) -> Callable[[np.random.Generator], NDArray]:
    """1,000 records of a real column, drawn without replacement."""
    if not REAL[name].path.exists():
        raise peers.Missing(f"the file of {REAL[name].file} is not there: papers/data/README.md")
    column = REAL[name].load()
    return lambda rng: rng.choice(column, N, replace=False)


def tree(**options: Any) -> Release:
    return released(dpq.agg_tree, epsilon=EPSILON, **options)


CASES = (
    *(
        ErrorCase(
            f"errors/{name}",
            column,
            lambda name=name: real_sample(name),
            {
                "`joint_exp`": joint_exp(REAL[name].bounds, REAL[name].resolution),
                "published algorithm": published_joint_exp(REAL[name].bounds),
                "diffprivlib": diffprivlib_quantile(REAL[name].bounds),
            },
            (1, 5, 9),
            shown=True,
            bar=bar,
        )
        for name, column, bar in (
            ("hours_per_week", "hours per week", "0.2 / 1.3 / 2.7; the authors' 204 / 133 / 128"),
            ("age", "age", "0.3 / 1.2 / 1.6; the authors' 5.3 / 7.8 / 8.8"),
            (
                "average_rating",
                "average rating, `resolution=0.01`",
                "0.5 / 2.0 / 3.0; the authors' 3.8 / 5.4 / 7.1",
            ),
            ("num_pages", "number of pages", "2.2 / 5.2 / 6.5; the authors' 4.6 / 6.1 / 7.1"),
        )
    ),
    ErrorCase(
        "errors/normal",
        "N(0, 5)",
        lambda: gaussian_sample,
        {
            "`joint_exp`": joint_exp(BOUNDS),
            "published algorithm": published_joint_exp(BOUNDS),
            "`ind_exp`, δ = 10⁻⁶": released(dpq.ind_exp, epsilon=EPSILON, delta=DELTA),
            "`approx_quantiles`": released(dpq.approx_quantiles, epsilon=EPSILON),
            "`approx_quantiles`, add-remove": released(
                dpq.approx_quantiles, epsilon=EPSILON, neighbors="add-remove"
            ),
            "`agg_tree`": tree(nan_policy="raise"),
            "`agg_tree`, n private": tree(),
            "`agg_tree`, aggregate=False, the published shape": tree(
                nan_policy="raise", aggregate=False, height=HEIGHT, branching=BRANCHING
            ),
            "published tree": published_tree,
            "`csmooth`, ρ = 1/2": released(dpq.csmooth, rho=RHO),
            "`csmooth`, t tuned": tuned_csmooth,
        },
        (1, 5, 9, 29),
        bar="the authors' missed points: joint_exp 2.0 / 3.9 / 6.1 / 10.4, ind_exp 2.0 / 8.0 / "
        "13.8 / 26.9, approx_quantiles 2.2 / 10.7 / 11.9 / 20.4, tree 10.4 / 13.8 / 14.0 / 13.2, "
        "csmooth 7.7 / 35 / 48 / 61",
    ),
)
