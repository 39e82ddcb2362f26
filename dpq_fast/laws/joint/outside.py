"""Paths that leave windows: what a law by windows draws from once in 2^64 draws."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as intervals_kernel
from dpq_fast._kernels import path as path_kernel
from dpq_fast._kernels import race, uniform
from dpq_fast._kernels.scan import Scan
from dpq_fast.laws.joint.rows import Forward, points_inside, scan_of
from dpq_fast.orders.order import Order


class Outside:
    """The paths of a law that leave windows at some level, by rows of all ranks.

    They are split by where they last do: a part holds the paths that are inside at all levels after
    j, below (or above) the window at level j, and anywhere before. Parts do not overlap, so their
    weights add up without a subtraction.

    Parameters
    ----------
    order, q, rate, forward
        As of `PathLaw`.
    first, last : ndarray of int64, shape (m,)
        Windows hold the ranks first[j], ..., last[j] at level j.
    """

    def __init__(
        self,
        order: Order,
        q: NDArray[np.float64],
        rate: float,
        first: NDArray[np.int64],
        last: NDArray[np.int64],
        forward: Forward = Scan.forward,
    ) -> None:
        n = order.n
        self._intervals = order.intervals(np.array([0]), np.array([n + 1]))
        self._parts: list[Scan] = []
        for j in range(q.size):
            for low, high in ((0, int(first[j]) - 1), (int(last[j]) + 1, n)):
                begin, end = first.copy(), last.copy()
                begin[:j], end[:j] = 0, n
                begin[j], end[j] = low, high
                ranges = intervals_kernel.ranges(begin, end, self._intervals.rank)
                if ranges is not None:
                    part = scan_of(order, q, rate, self._intervals, *ranges)
                    forward(part)
                    self._parts.append(part)

    @cached_property
    def log_total(self) -> float:
        """ln of what all of them weigh."""
        totals = [part.log_total for part in self._parts]
        return float(np.logaddexp.reduce(totals, initial=-np.inf))

    def draw(
        self, log_bound: float, rng: np.random.Generator
    ) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
        """One of them, and the ranks of its outputs; shape (1, m).

        None in that share of cases that exp(log_bound) is more than they weigh.
        """
        if uniform.log_uniforms(1, rng)[0] >= self.log_total - log_bound:
            return None
        part = self._parts[race.draw(np.array([each.log_total for each in self._parts]), rng)]
        paths = path_kernel.draw(part, -np.inf, 1, rng)[0]
        rank, width, left = self._intervals
        return points_inside(paths, left, width, rng), rank[paths.view(np.intp)]
