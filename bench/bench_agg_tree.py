"""Trees of counts: the pass over an unsorted column, and missed points on the paper's N(0, 5)."""

from __future__ import annotations

from collections.abc import Callable

import bench_accuracy as accuracy
import numpy as np
import published
from columns import BOUNDS, gaussian, levels
from numpy.typing import NDArray

import dpq_fast as dpq

HEIGHT, BRANCHING = 3, 10  # the paper's most frequent choice, [GJK21] Table 1
# Missed points of a least-squares tree of this shape, by m: to match or beat.
FIGURES = {1: 10.4, 5: 13.8, 9: 14.0, 29: 13.2}


def tree_pass(x: NDArray, workers: int = 1) -> Callable:
    """The pass over the records alone: exact counts, no noise."""
    shape = dict(bounds=BOUNDS, height=HEIGHT, branching=BRANCHING)
    return lambda: dpq.PartialTree.of(x, workers=workers, **shape)


def tree_release(x: NDArray, m: int) -> Callable:
    """All of it: pass, secure noise, least squares, m quantiles."""
    q = levels(m)
    return lambda: dpq.agg_tree(x, q, epsilon=accuracy.EPSILON, bounds=BOUNDS)


def np_histogram(x: NDArray) -> Callable:
    return lambda: np.histogram(x, BRANCHING**HEIGHT, BOUNDS)


def agg_tree(**options: object) -> accuracy.Release:
    return lambda x, q, rng: dpq.agg_tree(
        x,
        q,
        epsilon=accuracy.EPSILON,
        bounds=BOUNDS,
        height=HEIGHT,
        branching=BRANCHING,
        rng=rng,
        **options,
    )


# What is compared: number of records public or not, combined levels or not.
SIDES = {
    "agg_tree": agg_tree(nan_policy="raise"),
    "agg_tree, n private": agg_tree(),
    "agg_tree, aggregate=False": agg_tree(nan_policy="raise", aggregate=False),
    "published tree, re-stated": lambda x, q, rng: published.tree(
        x, q, accuracy.EPSILON, BOUNDS, HEIGHT, BRANCHING, rng
    ),
}


def missed_points(side: str, m: int, draws: int = accuracy.DRAWS) -> tuple[float, float]:
    """Mean of missed points over levels and samples, and its standard error."""
    return accuracy.mean_error(
        accuracy.gaussian_sample, SIDES[side], m, draws, dpq.metrics.missed_points
    )


class Pass:
    """One pass over unsorted N(0, 5), and np.histogram with the same bins."""

    params = ([10**6, 10**7],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        x = gaussian(n)
        self.tree, self.release, self.histogram = tree_pass(x), tree_release(x, 9), np_histogram(x)

    def time_tree_pass(self, n: int) -> None:
        self.tree()

    def time_agg_tree(self, n: int) -> None:
        self.release()

    def time_np_histogram(self, n: int) -> None:
        self.histogram()


class MissedPoints:
    """N(0, 5) in [-100, 100], as in [GJK21] §5."""

    params = (list(SIDES), list(FIGURES))
    param_names = ("side", "m")
    timeout = 600
    unit = "records"

    def track_missed_points(self, side: str, m: int) -> float:
        return missed_points(side, m)[0]
