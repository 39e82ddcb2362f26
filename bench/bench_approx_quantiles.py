"""Recursive quantiles in time and memory, next to the selection of their windows alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from bench_joint_exp import EPSILON, Grid
from columns import BOUNDS, levels
from numpy.typing import NDArray

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.laws.path import first_windows, prepare
from dpq_fast.mechanisms.approx_quantiles import drift
from dpq_fast.privacy.levels import splits


def release(x: NDArray, m: int, **options: object) -> Callable[[], NDArray]:
    q = levels(m)
    return lambda: dpq.approx_quantiles(x, q, epsilon=EPSILON, bounds=BOUNDS, **options)


def selection(x: NDArray, m: int) -> Callable[[], None]:
    """What the release does before its first draw: count the records, collect the windows."""
    q = levels(m)
    rates = privacy.approx_quantiles_scales(q, EPSILON, None, "swap")
    middles = q[[step.middle for step in splits(q)]]

    def select() -> None:
        order = dpq.Sample.of(x, BOUNDS).order()
        guess = first_windows(order, middles, rates / 2.0)
        prepare(order, middles, guess + drift(order.n, rates))

    return select


class ApproxQuantiles(Grid):
    """The exponential mechanism inside, through the public API."""

    params = ([10, 1_000, 30_000, 1_000_000], [1, 9, 30, 100])

    def time_sorted(self, n: int, m: int) -> None:
        release(self.x_sorted, m, assume_sorted=True)()

    def time_unsorted(self, n: int, m: int) -> None:
        release(self.x, m)()

    def time_selection(self, n: int, m: int) -> None:
        selection(self.x, m)()

    def time_numpy_unsorted(self, n: int, m: int) -> None:
        np.quantile(self.x, self.q)

    def peakmem_sorted(self, n: int, m: int) -> None:
        release(self.x_sorted, m, assume_sorted=True)()


class Reference(Grid):
    """The pure Python twin: small samples only."""

    params = ([10, 100, 300], [1, 9])

    def time_reference(self, n: int, m: int) -> None:
        dpq.reference.approx_quantiles(
            self.x_sorted, self.q, epsilon=EPSILON, bounds=BOUNDS, rng=self.rng
        )
