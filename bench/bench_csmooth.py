"""CSmooth in time and memory, and in missed points on the paper's N(0, 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import published
from bench_accuracy import Release, gaussian_sample, mean_error
from bench_joint_exp import Grid
from columns import BOUNDS

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.mechanisms.csmooth import default_smoothness, smooth_sensitivity, tune_t

# The paper's epsilon 1.
RHO = 0.5


def release(x: np.ndarray, q: Any, **options: Any) -> Callable[[], Any]:
    """A call of the public API."""
    return lambda: dpq.csmooth(x, q, rho=RHO, bounds=BOUNDS, **options)


def published_release(x: np.ndarray, q: float) -> Callable[[], Any]:
    """The published way on sorted data, at one level, with our t."""
    t, rng = default_smoothness(1.0), np.random.default_rng(0)
    sigma, log_scale = privacy.csmooth_scale(t, 1.0)
    return lambda: published.csmooth(x, q, t, sigma, np.exp(log_scale), BOUNDS, rng)


def default() -> Release:
    """For missed points: t from the default table."""
    return lambda x, q, rng: dpq.csmooth(x, q, rho=RHO, bounds=BOUNDS, rng=rng)


def tuned(m: int, n: int) -> Release:
    """For missed points: t tuned on N(0, 1) for this n and each level, as in [GJK21]."""
    t = tune_t(n, np.arange(1, m + 1) / (m + 1), rho=RHO)
    return lambda x, q, rng: dpq.csmooth(x, q, rho=RHO, bounds=BOUNDS, t=t, rng=rng)


class CSmooth(Grid):
    """Through the public API, with the default generator."""

    def time_sorted(self, n: int, m: int) -> None:
        release(self.x_sorted, self.q, assume_sorted=True)()

    def time_unsorted(self, n: int, m: int) -> None:
        release(self.x, self.q)()

    def peakmem_sorted(self, n: int, m: int) -> None:
        release(self.x_sorted, self.q, assume_sorted=True)()


class Sensitivity(Grid):
    """The smooth sensitivity alone, for many t at once, in windows and over all records."""

    params = ([1_000, 1_000_000], [1])
    grid = np.geomspace(0.01, 1.0, 50)

    def setup(self, n: int, m: int) -> None:
        super().setup(n, m)
        self.order = dpq.Sample.of(self.x_sorted, BOUNDS, assume_sorted=True).order()

    def time_fifty_t(self, n: int, m: int) -> None:
        smooth_sensitivity(self.order, 0.5, self.grid)

    def time_no_windows(self, n: int, m: int) -> None:
        smooth_sensitivity(self.order, 0.5, self.grid[:1], reach=n)


class Published(Grid):
    """O(n log n) in NumPy, see `published`."""

    params = ([1_000, 30_000, 1_000_000], [1])

    def time_sorted(self, n: int, m: int) -> None:
        published_release(self.x_sorted, 0.5)()


class Reference(Grid):
    """The pure Python twin, O(n^2)."""

    params = ([10, 100, 300], [1])

    def time_reference(self, n: int, m: int) -> None:
        dpq.reference.csmooth(self.x_sorted, self.q, rho=RHO, bounds=BOUNDS, rng=self.rng)


class MissedPoints:
    """N(0, 5) in [-100, 100], n = 1,000, as in [GJK21] §5."""

    params = ([1, 5, 9, 29],)
    param_names = ("m",)
    timeout = 600
    unit = "records"

    def track_default(self, m: int) -> float:
        return mean_error(gaussian_sample, default(), m)[0]

    def track_tuned(self, m: int) -> float:
        return mean_error(gaussian_sample, tuned(m, 1_000), m)[0]
