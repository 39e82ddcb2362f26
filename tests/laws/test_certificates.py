"""What laws by windows leave out, by all paths: at most 2^-64, and no more than they say.

A draw from outside of the windows is decided by all paths, once in 2^64 draws. So a window that is
too narrow, or a bound that is too small, changes what is drawn by far less than any sample shows:
here the weight of all paths that leave a window is added up, path by path, where nearly all the
volume that there is lies just inside or just outside of it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpq_fast._kernels import intervals as intervals_kernel
from dpq_fast._kernels.groups_release import Releases
from dpq_fast.data.lattice import Lattice
from dpq_fast.laws.depth import DepthLaw
from dpq_fast.laws.joint import few
from dpq_fast.laws.joint.coarse import CoarseLaw
from dpq_fast.laws.joint.path import PathLaw
from dpq_fast.laws.joint.plan import PLAN
from dpq_fast.laws.joint.widths import Widths
from dpq_fast.orders.sorted import SortedOrder

LEFT_OUT = -64.0 * math.log(2.0)
POINTS = 2**40


def order_with_a_run(n: int, at: int) -> SortedOrder:
    """Records at neighboring points, but for a run of nearly all points in front of rank `at`."""
    column = np.arange(n, dtype=np.int64)
    column[at:] += POINTS - n
    lattice = Lattice.of((0.0, POINTS - 1.0), 1.0, False)
    return SortedOrder(column, lattice, (0.0, POINTS - 1.0))


def log_leaving(
    order: SortedOrder, q: np.ndarray, rate: float, first: np.ndarray, last: np.ndarray
) -> tuple[float, float]:
    """ln of what paths that leave windows weigh, and of what all others do.

    A path is a rank for each level, ascending, weighed by the points in front of it; two that lie
    in front of one record are counted as if they were apart, which is at most twice too much for
    each further level.
    """
    n = order.n
    points = np.diff(np.concatenate(([-1], order._points([(0, n)]), [POINTS - 1])))
    log_width = np.where(points > 0, np.log(np.maximum(points, 1)), -np.inf)
    ranks, targets = np.arange(n + 1), np.concatenate(([0.0], q * n, [n]))
    stayed = left = None
    for j in range(q.size):
        inside = (first[j] <= ranks) & (ranks <= last[j])
        gap = targets[j + 1] - targets[j]
        if stayed is None or left is None:
            row = log_width - rate * np.abs(ranks - gap)
            stayed, left = (np.where(part, row, -np.inf) for part in (inside, ~inside))
            continue
        step = -rate * np.abs(ranks - ranks[:, None] - gap)
        step[ranks < ranks[:, None]] = -np.inf
        stays, leaves = (
            log_width + np.logaddexp.reduce(row[:, None] + step, axis=0) for row in (stayed, left)
        )
        left = np.where(inside, leaves, np.logaddexp(stays, leaves))
        stayed = np.where(inside, stays, -np.inf)
    assert stayed is not None and left is not None
    end = -rate * np.abs(n - ranks - (n - targets[-2]))
    return float(np.logaddexp.reduce(left + end)), float(np.logaddexp.reduce(stayed + end))


N, MORE = 320, 700
LEVELS = {1: np.array([0.5]), 3: np.array([0.45, 0.5, 0.55])}
# Where the run is, in ranks from the middle: near, within all windows, and beyond them.
FARTHER = range(10, 150, 10)


@pytest.mark.parametrize("m", LEVELS)
@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_paths_leave_windows_once_in_2_to_the_64(m, rate):
    q, n, nearest = LEVELS[m], MORE if m == 1 else N, -math.inf  # fewer have no windows
    for far in FARTHER:
        order = order_with_a_run(n, n // 2 + far)
        law = PathLaw(order, q, rate, plan=replace(PLAN, worth=0, spare=0.0))
        left, stayed = log_leaving(order, q, rate, *law._windows)
        left -= math.lgamma(m + 1)  # at least
        assert left - np.logaddexp(left, stayed) <= LEFT_OUT
        assert left <= law._log_bound
        assert law._log_escape <= LEFT_OUT + math.log(2.0)
        nearest = max(nearest, left - stayed)
    assert nearest > LEFT_OUT - 20.0  # there is no run that more is left out of


@pytest.mark.parametrize("m", LEVELS)
@pytest.mark.parametrize("reach", [5, 30])
def test_what_is_out_of_reach_weighs_what_is_said(m, reach):
    """A run just beyond: no smaller bound is one."""
    q, rate = LEVELS[m], 0.25
    order = order_with_a_run(N, int(q[-1] * N) + reach + 3)
    law = PathLaw(order, q, rate, reach=reach)
    left, _ = log_leaving(order, q, rate, *law._windows)
    left -= math.lgamma(m + 1)
    apart = 2.0 * rate * (3.0 + float(q[-1] - q[0]) * N)  # of levels that all lie in one run
    assert law._log_beyond - apart - 1.0 <= left <= law._log_beyond


@pytest.mark.parametrize("law_of", [PathLaw, CoarseLaw])
@pytest.mark.parametrize("q", [(0.05, 0.1), (0.9, 0.95)])
def test_a_reach_to_one_end_leaves_what_is_beyond_the_other(law_of, q):
    order, q, rate, reach = order_with_a_run(N, N // 2), np.array(q), 0.25, 100
    law = law_of(order, q, rate, reach=reach)
    assert law._log_beyond == pytest.approx(order.log_volume(2) - 2.0 * rate * reach)
    assert law_of(order, q, rate, reach=N)._log_beyond == -math.inf


def depth_weights(order: SortedOrder, rate: float, law: DepthLaw) -> tuple[float, float]:
    """ln of what points outside of a law's cells weigh, and those inside, by their depth."""
    target, points = order.n / 2.0, order._points([(0, order.n)])
    first = law._cells.start[0] + 1
    last = law._cells.start[-1] + int(law._cells.points[-1])
    before = np.diff(np.concatenate(([-1], points))) - 1  # in front of each record, without it
    ranks = np.arange(order.n)
    loss = np.concatenate((np.abs(ranks - target), np.maximum(ranks - target, target - ranks - 1)))
    with np.errstate(divide="ignore"):
        log_weight = np.log(np.concatenate((before, np.ones(order.n)))) - rate * loss
    place = np.concatenate((points - 1, points))
    inside = (first <= place) & (place <= last)
    return tuple(float(np.logaddexp.reduce(log_weight[part])) for part in (~inside, inside))


@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize("rate", [0.25, 0.5])
def test_points_are_outside_of_windows_by_depth_once_in_2_to_the_64(flip, rate):
    nearest = -math.inf
    for far in range(10, 340, 10):
        order = order_with_a_run(MORE, MORE // 2 + far)
        law = DepthLaw(order, 0.5, rate, flip)
        left, stayed = depth_weights(order, rate, law)
        # permute-and-flip accepts a point with what it weighs, in units of the best one
        accepted = left + rate * float(law._cells.loss.min())
        share = accepted if flip else left - float(np.logaddexp(left, stayed))
        assert share <= LEFT_OUT and law._log_escape <= LEFT_OUT + 1e-9
        assert share <= law._log_escape + 1e-9
        nearest = max(nearest, share)
    assert nearest > LEFT_OUT - 8.0


@pytest.mark.parametrize("flip", [True, False])
def test_what_windows_by_depth_leave_weighs_what_is_said(flip):
    rate, window = 0.25, 40
    order = order_with_a_run(MORE, MORE // 2 + window + 3)
    law = DepthLaw(order, 0.5, rate, flip, window=window)
    left, stayed = depth_weights(order, rate, law)
    assert law._log_bound - 4.0 * rate <= left <= law._log_bound
    if not flip:
        share = left - float(np.logaddexp(left, stayed))
        assert share <= law._log_escape <= share + 4.0 * rate


@pytest.mark.parametrize("m", LEVELS)
def test_what_the_kernel_of_few_records_leaves_weighs_what_is_said(monkeypatch, m):
    """Windows that leave much, so that much is decided by what they leave."""
    monkeypatch.setattr(few, "spare_of", lambda n, m: 0.5)
    q, rate, rng = LEVELS[m], 0.25, np.random.default_rng(1)
    seen = []
    for far in range(3, 150, 3):
        order = order_with_a_run(N, N // 2 + far)
        values = order._points([(0, N)]).astype(float)
        releases = Releases(q, rate, order.bounds, order.lattice)
        volume = few.public_volume(float(POINTS), m, True)
        for _ in range(40):
            left = releases.one(values, volume, 0.5, N, rng)[2]
            if left is not None:
                reach, log_bound = left
                windows = intervals_kernel.windows(q, N, reach)[:2]
                weighs, _ = log_leaving(order, q, rate, *windows)
                weighs -= math.lgamma(m + 1)
                assert weighs <= log_bound
                seen.append(log_bound - weighs)
                break
    apart = 2.0 * rate * float(q[-1] - q[0]) * N
    assert len(seen) > 5 and min(seen) < apart + 16.0 * rate


@pytest.mark.parametrize("guess", [None, 95, 110])
def test_cells_leave_out_once_in_2_to_the_64(guess):
    """All that is said to be beyond reach, by paths through all ranks."""
    q, rate, nearest = LEVELS[3], 0.5, -math.inf
    for far in FARTHER:
        order = order_with_a_run(N, N // 2 + far)
        law = CoarseLaw(order, q, rate, guess=guess, widths=Widths(1.0, 1.0))
        windows = intervals_kernel.windows(q, N, law._reach)[:2]
        left, stayed = log_leaving(order, q, rate, *windows)
        left -= math.lgamma(4)
        assert left - np.logaddexp(left, stayed) <= LEFT_OUT
        assert left <= law._log_beyond and law._log_escape <= LEFT_OUT + math.log(2.0)
        nearest = max(nearest, left - stayed)
    assert nearest > LEFT_OUT - 40.0
