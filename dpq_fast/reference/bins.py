"""Counts of values by bin: the edges by their formulas, and one bisection per value."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

# Most thresholds of a geometric grid.
MAX_THRESHOLDS = 2**24
# Bits kept of a power: far more than float64 has.
BITS = 256


def uniform_edges(low: float, high: float, bins: int) -> list[float]:
    """The edges k * step + low, in float64, as of ``np.linspace(low, high, bins + 1)``."""
    step = (high - low) / bins
    return [min(k * step + low, high) for k in range(bins)] + [high]


def powers(base: float) -> Iterator[float]:
    """1, base, base^2, ... rounded to nearest, as far as float64 goes."""
    numerator, denominator = base.as_integer_ratio()
    shift = denominator.bit_length() - 1  # denominator = 2^shift
    mantissa, exponent = 1, 0  # the power is mantissa * 2^exponent
    while True:
        try:
            yield float(mantissa << exponent) if exponent >= 0 else mantissa / (1 << -exponent)
        except OverflowError:
            return
        mantissa, exponent = mantissa * numerator, exponent - shift
        surplus = max(mantissa.bit_length() - BITS, 0)
        mantissa, exponent = mantissa >> surplus, exponent + surplus


def geometric_thresholds(beta: float, lower: float, upper: float | None = None) -> list[float]:
    """The thresholds (beta^i - 1) + lower, in float64, up to the first not below `upper`."""
    thresholds: list[float] = []
    for power in islice(powers(beta), MAX_THRESHOLDS):
        threshold = (power - 1.0) + lower
        if threshold == math.inf:
            return thresholds
        thresholds.append(threshold)
        if upper is not None and threshold >= upper:
            return thresholds
    if upper is not None and len(thresholds) == MAX_THRESHOLDS:
        raise ValueError(f"beta must be large enough to reach upper in 2^24 thresholds, got {beta}")
    return thresholds


def edge_counts(
    values: Iterable[float],
    edges: Sequence[float],
    weights: Iterable[int] | None = None,
    *,
    out: list[int] | None = None,
) -> list[int]:
    """Entry k counts edges[k] <= v < edges[k + 1]; values outside are clamped, the end closed."""
    counts = [0] * (len(edges) - 1) if out is None else out
    column = [float(v) for v in values]
    for v, weight in zip(column, [1] * len(column) if weights is None else weights, strict=True):
        if not math.isnan(v):
            clamped = min(max(v, edges[0]), edges[-1])
            k = bisect_right(edges, clamped) - 1
            if clamped == edges[-1]:  # the last bin is closed
                k = len(edges) - 2
            counts[k] += int(weight)
    return counts


def uniform_counts(
    values: Iterable[float],
    low: float,
    high: float,
    bins: int,
    weights: Iterable[int] | None = None,
    *,
    out: list[int] | None = None,
) -> list[int]:
    """Counts between `uniform_edges`."""
    return edge_counts(values, uniform_edges(low, high, bins), weights, out=out)


def geometric_counts(
    values: Iterable[float],
    beta: float,
    lower: float,
    weights: Iterable[int] | None = None,
    *,
    upper: float | None = None,
    out: list[int] | None = None,
) -> tuple[list[float], list[int]]:
    """Thresholds t_i, and counts of t_i <= v < t_{i+1}; the last bucket has no upper edge."""
    thresholds = geometric_thresholds(beta, lower, upper)
    return thresholds, edge_counts(values, [*thresholds, math.inf], weights, out=out)
