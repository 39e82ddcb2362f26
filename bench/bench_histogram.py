"""Counting by bin: the pass of the unbounded quantile, and equal bins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from columns import gaussian
from numpy.typing import NDArray

from dpq_fast.data.histogram import Bins
from dpq_fast.data.records import Records

BETA = 1.01
BINS = 1000


def half_normal(n: int) -> NDArray[np.float64]:
    return np.abs(gaussian(n))


def clamped(n: int) -> NDArray[np.float64]:
    """Half of the records are 0."""
    return np.maximum(gaussian(n), 0.0)


def lognormal(n: int) -> NDArray[np.float64]:
    return np.random.default_rng(1).lognormal(0.0, 1.0, n)


COLUMNS = {"|N(0, 5)|": half_normal, "max(N(0, 5), 0)": clamped, "lognormal": lognormal}


def geometric(x: NDArray[np.float64], negate: bool = False) -> Callable:
    bins = Bins.geometric(BETA, 0.0, below=True)
    return lambda: Records.of(x).count(bins, negate)


def log(x: NDArray[np.float64]) -> Callable:
    """np.log of the column, without its warnings where it is 0 (which cost time)."""
    positive = np.maximum(x, 1e-300)
    return lambda: np.log(positive)


def uniform(x: NDArray[np.float64]) -> Callable:
    bins = Bins.uniform(float(x.min()), float(x.max()), BINS)
    return lambda: Records.of(x).count(bins)


class Histogram:
    """Counts of unsorted records, against np.log, x.sum() and np.histogram."""

    params = ([10**6, 10**7, 10**8], list(COLUMNS))
    param_names = ("n", "column")

    def setup(self, n: int, column: str) -> None:
        self.x = COLUMNS[column](n)
        self.geometric, self.uniform = geometric(self.x), uniform(self.x)
        self.log = log(self.x)

    def time_geometric(self, n: int, column: str) -> None:
        self.geometric()

    def time_uniform(self, n: int, column: str) -> None:
        self.uniform()

    def time_np_log(self, n: int, column: str) -> None:
        self.log()

    def time_np_histogram(self, n: int, column: str) -> None:
        np.histogram(self.x, BINS)

    def time_sum(self, n: int, column: str) -> None:
        self.x.sum()
