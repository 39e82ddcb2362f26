"""Unsorted columns: finding the order statistics is the whole price of a release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from columns import BOUNDS, gaussian, levels
from numpy.typing import NDArray

import dpq_fast as dpq

EPSILON = 1.0
# Heavy tails, with bounds that hold nearly all of them: what is clamped in large numbers is tied.
# The lognormal column spans forty orders of magnitude, more than a lattice does: continuous.
CAUCHY = {"bounds": (-1e6, 1e6)}
LOGNORMAL = {"bounds": (0.0, 1e25), "resolution": 0}


def lognormal(n: int) -> NDArray[np.float64]:
    return np.random.default_rng(1).lognormal(0.0, 10.0, n)


def cauchy(n: int) -> NDArray[np.float64]:
    return np.random.default_rng(2).standard_cauchy(n)


def ages(n: int) -> NDArray[np.int64]:
    return np.random.default_rng(3).integers(17, 91, n)


def release(x: NDArray, m: int, **options: Any) -> Callable:
    q, options = levels(m), {"bounds": BOUNDS, **options}
    return lambda: dpq.joint_exp(x, q, epsilon=EPSILON, **options)


def single(x: NDArray, **options: Any) -> Callable:
    return lambda: dpq.ind_exp(x, 0.5, epsilon=EPSILON, bounds=BOUNDS, **options)


class Unsorted:
    """joint_exp and np.quantile on N(0, 5)."""

    params = ([10**5, 10**6, 10**7, 10**8], [1, 9, 30])
    param_names = ("n", "m")

    def setup(self, n: int, m: int) -> None:
        self.x, self.q = gaussian(n), levels(m)
        self.release = release(self.x, m)

    def time_joint_exp(self, n: int, m: int) -> None:
        self.release()

    def time_np_quantile(self, n: int, m: int) -> None:
        np.quantile(self.x, self.q)

    def time_sum(self, n: int, m: int) -> None:
        self.x.sum()


class Shapes:
    """joint_exp, m = 30, on other columns."""

    params = ([10**6, 10**7], ["normal", "lognormal", "cauchy", "ages"])
    param_names = ("n", "column")

    def setup(self, n: int, column: str) -> None:
        make, options = {
            "normal": (gaussian, {}),
            "lognormal": (lognormal, LOGNORMAL),
            "cauchy": (cauchy, CAUCHY),
            "ages": (ages, {"bounds": (0, 120), "resolution": 1}),
        }[column]
        self.release = release(make(n), 30, **options)

    def time_joint_exp(self, n: int, column: str) -> None:
        self.release()


class Workers:
    """joint_exp by several threads."""

    params = ([1, 2],)
    param_names = ("workers",)

    def setup(self, workers: int) -> None:
        self.release = release(gaussian(10**8), 30, workers=workers)

    def time_joint_exp(self, workers: int) -> None:
        self.release()
