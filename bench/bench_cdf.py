"""Distribution functions: a tree of a million leaves with smoothing, and every method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bench_ind_exp import DELTA
from bench_joint_exp import EPSILON
from columns import BOUNDS, gaussian
from numpy.typing import NDArray

import dpq_fast as dpq

LEAVES = 2**20
# Every method as it is by default, but for what it must be given.
METHODS: dict[str, dict[str, Any]] = {
    "binary_tree": {},
    "binary_tree, aggregate=False": {"method": "binary_tree", "aggregate": False},
    "agg_tree": {},
    "histogram": {},
    "adaptive": {},
    "gaussian": {"delta": DELTA},
    "gaussian, 100 bins": {"method": "gaussian", "delta": DELTA, "bins": 100},
    "smooth_gaussian": {"delta": DELTA},
}


def release(x: NDArray, name: str, **options: object) -> Callable[[], dpq.CDF]:
    chosen = {"method": name} | METHODS[name] | options
    return lambda: dpq.cdf(x, epsilon=EPSILON, bounds=BOUNDS, **chosen)


def large_tree(x: NDArray) -> Callable[[], dpq.CDF]:
    """All of it: pass, secure noise for 2^21 counts, prefix sums, smoothing."""
    return release(x, "binary_tree", bins=LEAVES)


class Methods:
    """Unsorted N(0, 5)."""

    params = ([1_000, 10**6], list(METHODS))
    param_names = ("n", "method")

    def setup(self, n: int, name: str) -> None:
        self.release = release(gaussian(n), name)

    def time_release(self, n: int, name: str) -> None:
        self.release()


class LargeTree:
    """A million records in a million leaves."""

    def setup(self) -> None:
        self.release = large_tree(gaussian(10**6))
        self.released = self.release()
        self.x = gaussian(10**4)

    def time_release(self) -> None:
        self.release()

    def time_accuracy(self) -> None:
        self.released.accuracy()

    def time_quantile(self) -> None:
        self.released.quantile(np.linspace(0.0, 1.0, 1_001))

    def time_energy(self) -> None:
        self.released.energy(self.x)

    def peakmem_release(self) -> None:
        self.release()
