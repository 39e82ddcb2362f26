"""Priors: how many fine points each lattice point stands for, one point after the other.

The rule is that of `dpq_fast.data.prior`. Shares of the prior are floats; the numbers that are made
of them are exact integers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

import numpy as np

from dpq_fast._checks import PRIOR_MASS, PriorPart

TOTAL, MOST_POINTS, DEFAULT_POINTS = 2**53, 2**50, 2**46
# Each point has a number of its own up to so many points; else points between knots share one.
FEW_POINTS, KNOTS, LOGIT = 2**12, 2**11, 36.0
HALVES, HALVINGS = 16, 64


def shares(
    parts: tuple[PriorPart, ...], bounds: tuple[float, float], x: list[float]
) -> list[float]:
    """The mass below each of ascending numbers, as a share of that from the first to the last."""
    total = [0.0] * len(x)
    for part in parts:
        values = part.values(np.array(x), bounds).tolist()
        mass = values[-1] - values[0]
        if part.kind == "cdf" and mass < PRIOR_MASS:
            raise ValueError(
                f"prior must have a mass of at least {PRIOR_MASS} between the bounds {bounds}, "
                f"got {mass}"
            )
        for i, value in enumerate(values):
            total[i] += part.weight * ((value - values[0]) / mass)
    return list(accumulate((min(max(share, 0.0), 1.0) for share in total), max))


def spread(parts: tuple[PriorPart, ...], bounds: tuple[float, float]) -> float:
    """Twice the width of the shortest interval with half of the mass, between some quantiles."""
    low, high = bounds
    quantiles = [low]
    for i in range(1, 2 * HALVES + 1):
        lower, upper = low, high
        for _ in range(HALVINGS):
            middle = lower + (upper - lower) / 2.0
            if shares(parts, bounds, [low, middle, high])[1] >= i / (2.0 * HALVES):
                upper = middle
            else:
                lower = middle
        quantiles.append(upper)
    shortest = min(quantiles[i + HALVES] - quantiles[i] for i in range(HALVES + 1))
    return 2.0 * shortest or high - low


class Masses:
    """Fine points of lattice points: the same number for all points from a knot to the next.

    Parameters
    ----------
    knots : list of int
        From 0 to the number of points, ascending.
    each : list of int
        For all but the last knot.
    """

    def __init__(self, knots: list[int], each: list[int]) -> None:
        self.knots = knots
        self.each = each
        self.starts = [0]
        for i, number in enumerate(each):
            self.starts.append(self.starts[-1] + number * (knots[i + 1] - knots[i]))
        self.total = self.starts[-1]

    def of(self, point: int) -> int:
        """Fine points of a point."""
        return self.each[bisect_right(self.knots, point) - 1]

    def below(self, point: int) -> int:
        """Fine points below it."""
        if point == self.knots[-1]:
            return self.total
        i = bisect_right(self.knots, point) - 1
        return self.starts[i] + (point - self.knots[i]) * self.each[i]

    def point_of(self, fine: int) -> int:
        """The point that a fine point belongs to; -1 of -1."""
        if fine < 0:
            return -1
        i = bisect_right(self.starts, fine) - 1
        return self.knots[i] + (fine - self.starts[i]) // self.each[i]

    def spread(self, point: int, u: int, bits: int) -> int:
        """Where a record of a point lies by its dither u, one of 0, ..., 2^bits - 1."""
        # ceil((u + 1) c / 2^bits) - 1
        return self.below(point) - (-(u + 1) * self.of(point) // (1 << bits)) - 1


def masses(
    parts: tuple[PriorPart, ...],
    bounds: tuple[float, float],
    points: int,
    border: Callable[[int], float],
) -> Masses:
    """Masses of the points of a lattice; ``border(k)`` is halfway from point k - 1 to k."""
    ends = border(0), border(points)

    def share(k: int) -> float:
        return shares(parts, bounds, [ends[0], border(k), ends[1]])[1]

    if points <= FEW_POINTS:
        knots = list(range(points + 1))
    else:
        chosen = {k * points // KNOTS for k in range(KNOTS + 1)}
        for s in np.linspace(-LOGIT, LOGIT, KNOTS).tolist():
            level = 1.0 / (1.0 + math.exp(-s))
            lower, upper = 0, points
            while lower < upper:
                middle = (lower + upper) // 2
                lower, upper = (lower, middle) if share(middle) >= level else (middle + 1, upper)
            chosen |= {upper, max(upper - 1, 0)}
        knots = sorted(chosen)
    below = shares(parts, bounds, [border(k) for k in knots])
    spared = (TOTAL - points) * (1.0 - 2.0**-40)
    each = [
        1 + int((below[i + 1] - below[i]) * spared / (knots[i + 1] - knots[i]))
        for i in range(len(knots) - 1)
    ]
    return Masses(knots, each)
