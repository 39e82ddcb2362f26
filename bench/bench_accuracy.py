"""Mean rank error of releases: on real columns full of ties, and on the paper's N(0, 5)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import published
from bench_ind_exp import DELTA
from columns import BOUNDS, REAL, gaussian, levels
from numpy.typing import NDArray

import dpq_fast as dpq

EPSILON = 1.0
N = 1_000
DRAWS = 1_000

# A release: sample, levels and generator to outputs.
Release = Callable[[NDArray, NDArray, np.random.Generator], NDArray]


def mean_error(
    draw: Callable[[np.random.Generator], NDArray],
    release: Release,
    m: int,
    draws: int = DRAWS,
    metric: Callable = dpq.metrics.rank_error,
) -> tuple[float, float]:
    """An error (of rank) averaged over levels and fresh samples, and its standard error."""
    q = levels(m)
    errors = np.empty(draws)
    for seed in range(draws):  # the same samples for every release
        x = draw(np.random.default_rng([seed, 0]))
        outputs = release(x, q, np.random.default_rng([seed, 1]))
        errors[seed] = metric(x, q, outputs).mean()
    return float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(draws))


def joint_exp(bounds: tuple[float, float], resolution: float | None = None) -> Release:
    return lambda x, q, rng: dpq.joint_exp(
        x, q, epsilon=EPSILON, bounds=bounds, resolution=resolution, rng=rng
    )


def ind_exp(bounds: tuple[float, float], resolution: float | None = None) -> Release:
    return lambda x, q, rng: dpq.ind_exp(
        x, q, epsilon=EPSILON, delta=DELTA, bounds=bounds, resolution=resolution, rng=rng
    )


def approx_quantiles(
    bounds: tuple[float, float], resolution: float | None = None, neighbors: str = "swap"
) -> Release:
    return lambda x, q, rng: dpq.approx_quantiles(
        x, q, epsilon=EPSILON, bounds=bounds, resolution=resolution, neighbors=neighbors, rng=rng
    )


def published_joint_exp(bounds: tuple[float, float]) -> Release:
    return lambda x, q, rng: published.joint_exp(np.sort(x), q, EPSILON, bounds, rng)


def gaussian_sample(rng: np.random.Generator) -> NDArray[np.float64]:
    return gaussian(N, rng)


def real_sample(name: str) -> Callable[[np.random.Generator], NDArray]:
    """1,000 records of a real column, drawn without replacement."""
    column = REAL[name].load()
    return lambda rng: rng.choice(column, N, replace=False)


class RealColumns:
    """The real columns, with the public API's default dither."""

    params = (list(REAL), [1, 5, 9])
    param_names = ("column", "m")
    timeout = 600
    unit = "records"

    def setup(self, name: str, m: int) -> None:
        if not REAL[name].path.exists():
            raise NotImplementedError("the column's file is not there")
        self.draw = real_sample(name)

    def track_joint_exp(self, name: str, m: int) -> float:
        column = REAL[name]
        return mean_error(self.draw, joint_exp(column.bounds, column.resolution), m)[0]

    def track_ind_exp(self, name: str, m: int) -> float:
        column = REAL[name]
        return mean_error(self.draw, ind_exp(column.bounds, column.resolution), m)[0]

    def track_approx_quantiles(self, name: str, m: int) -> float:
        column = REAL[name]
        return mean_error(self.draw, approx_quantiles(column.bounds, column.resolution), m)[0]

    def track_published(self, name: str, m: int) -> float:
        return mean_error(self.draw, published_joint_exp(REAL[name].bounds), m)[0]


class Gaussian:
    """N(0, 5) in [-100, 100], as in [GJK21] §5."""

    params = ([1, 5, 9, 29],)
    param_names = ("m",)
    timeout = 600
    unit = "records"

    def track_joint_exp(self, m: int) -> float:
        return mean_error(gaussian_sample, joint_exp(BOUNDS), m)[0]

    def track_ind_exp(self, m: int) -> float:
        return mean_error(gaussian_sample, ind_exp(BOUNDS), m)[0]

    def track_approx_quantiles(self, m: int) -> float:
        return mean_error(gaussian_sample, approx_quantiles(BOUNDS), m)[0]

    def track_published(self, m: int) -> float:
        return mean_error(gaussian_sample, published_joint_exp(BOUNDS), m)[0]
