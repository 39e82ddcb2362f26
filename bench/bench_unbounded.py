"""Quantiles without an upper bound: coarse and very fine candidates, and the paper's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import published
from bench_histogram import half_normal, log
from columns import levels
from numpy.typing import NDArray

import dpq_fast as dpq

EPSILON = 1.0
BETA, FINE = 1.01, 1.00001


def release(x: NDArray[np.float64], beta: float = BETA, q: Any = 0.5) -> Callable[[], Any]:
    """A call of the public API, with one thread."""
    return lambda: dpq.unbounded_quantile(x, q, epsilon=EPSILON, beta=beta)


def published_release(x: NDArray[np.float64], beta: float = BETA) -> Callable[[], float]:
    """The paper's code on a list, which it goes through faster than an array; budgets like ours."""
    data, rng = x.tolist(), np.random.default_rng(0)
    budgets = 2.0 * EPSILON / 3.0, EPSILON / 3.0
    return lambda: published.unbounded_quantile(data, 0.5, *budgets, 0.0, beta, rng)


class Unbounded:
    """The median of unsorted records, through the public API, with the default generator."""

    params = ([10**3, 10**6, 10**7, 10**8],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        self.x = half_normal(n)
        self.release, self.fine = release(self.x), release(self.x, FINE)
        self.several = release(self.x, FINE, levels(9))
        self.log = log(self.x)

    def time_release(self, n: int) -> None:
        self.release()

    def time_fine(self, n: int) -> None:
        self.fine()

    def time_fine_nine_levels(self, n: int) -> None:
        self.several()

    def time_np_log(self, n: int) -> None:
        self.log()

    def time_sum(self, n: int) -> None:
        self.x.sum()

    def peakmem_fine(self, n: int) -> None:
        self.fine()


class Published:
    """The paper's code, see `published`."""

    params = ([10**3, 10**6],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        self.release = published_release(half_normal(n))

    def time_release(self, n: int) -> None:
        self.release()
