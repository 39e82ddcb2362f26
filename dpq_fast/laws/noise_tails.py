"""Tails of discrete noise, and of weighted sums of two draws, for intervals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import scipy
from numpy.typing import NDArray

# Sums over the second draw are taken term by term up to this scale.
TERMS_SCALE = 2**12
# Of a distance: more than it is rounded by, so that what is as far is counted.
_TIED = 1.0 - 1e-9
# Of wider noise, integers one by one are too close for float64 to tell their tails apart.
_WIDE = 2**40
# Wider noise drowns all distances that are asked about.
_WIDEST = Fraction(2**1000)
# e^-1000 is 0.
_LEAST = Fraction(1000)
# Scales that a draw is farther from zero than with probability e^-40.
_REACH = 40.0


def tail(scale: Fraction, distance: float) -> float:
    """P(abs(X) >= distance) for discrete Laplace X; 1 for a distance of 0 or less."""
    least = math.ceil(distance)
    if least <= 0:
        return 1.0
    if scale == 0:
        return 0.0
    return 2.0 * _falls(least / scale) / (1.0 + _falls(1 / scale))


def _falls(exponent: Fraction) -> float:
    """e to its negative; 0 for what float64 can not hold."""
    return math.exp(-float(min(exponent, _LEAST)))


def margin(scale: Fraction, miss: float, gaussian: bool = False) -> int:
    """The least k >= 0 with P(abs(X) > k) <= miss; a little more for scales above 2^40.

    Of discrete Gaussian noise one more than of a normal variable: X >= k + 1 is less likely than
    that this is at least k ([CKS20] Proposition 25).
    """
    if scale == 0:
        return 0
    if gaussian:
        deviations = -scipy.special.ndtri(miss / 2.0) * (1.0 + 2.0**-40)
        return max(0, math.ceil(Fraction(deviations) * scale))
    scales = Fraction(math.log(2.0 / (1.0 + _falls(1 / scale)) / miss))
    k = max(0, math.ceil(scales * scale) - 1)
    if scale > _WIDE:
        return k + math.ceil(scale / _WIDE)
    while k > 0 and tail(scale, k) <= miss:  # one less was enough, but for rounding
        k -= 1
    while tail(scale, k + 1) > miss:
        k += 1
    return k


def pair_tail(
    weights: tuple[float, float],
    scales: tuple[Fraction, Fraction],
    distance: float,
    gaussian: bool = False,
) -> float:
    r"""P(abs(w X + v Y) >= distance), from above, for independent discrete noise X and Y.

    Parameters
    ----------
    weights : (float, float)
        w and v, not negative.
    scales : (Fraction, Fraction)
        Of X and Y; 0 for what is no noise.
    distance : float
    gaussian : bool, default False
        Discrete Gaussian noise, else discrete Laplace.

    Returns
    -------
    float

    Notes
    -----
    Where Y has few likely values, the sum over them, with X spread evenly over the unit around it:
    that is beyond a distance less w/2 whenever X is beyond the distance, and it has one mode. So
    there are no ties for rounding to break, and the bound falls where, with
    :math:`w = 1 - p, v = p` or :math:`w = 1, v = |p|`, a distance of :math:`|A - p N|` grows, as
    it has to for an interval that is found by halving: with y and 2N - y (or 2(N - A) - y) taken
    together, the terms of its derivative have one sign.

    Else by continuous Laplace variables: X can be drawn together with one of its scale that is at
    most 1 away, since
    :math:`P(|X| > t) \le e^{-(t - 1)/s}`. With :math:`a > b` for w and v times the scales, their
    sum is beyond t with probability

    .. math:: \frac{a^2 e^{-t/a} - b^2 e^{-t/b}}{a^2 - b^2},

    and :math:`(1 + t/2a)\,e^{-t/a}` for a = b, which is more than for any smaller b.

    Of Gaussian noise, X is stochastically less than a normal variable plus 1, as in `margin`.
    """
    (w, v), (first, second) = weights, (min(scale, _WIDEST) for scale in scales)
    if distance <= 0.0:
        return 1.0
    if gaussian:
        steps = (w if first else 0.0) + (v if second else 0.0)
        deviation = math.hypot(w * float(first), v * float(second))
        if deviation == 0.0:
            return 0.0
        return min(1.0, 2.0 * float(scipy.special.ndtr((steps - distance) / deviation)))
    if v == 0.0 or second == 0:
        return tail(first, distance / w * _TIED) if w > 0.0 else 0.0
    if w == 0.0 or first == 0:
        return tail(second, distance / v * _TIED)
    if second <= TERMS_SCALE:
        rate = 1.0 / float(second)
        y = np.arange(-math.ceil(_REACH / rate), math.ceil(_REACH / rate) + 1.0)
        chance = np.exp(-rate * np.abs(y)) * math.tanh(rate / 2.0)
        beyond = _at_least(first, (distance - v * y) / w) + _at_least(first, (distance + v * y) / w)
        return float(min(1.0, chance @ np.minimum(beyond, 1.0) + 2.0 * math.exp(-_REACH)))
    t = max(0.0, distance - w - v)
    a, b = sorted((w * float(first), v * float(second)), reverse=True)
    even = (1.0 + t / (2.0 * a)) * math.exp(-t / a)
    if b > (1.0 - 1e-3) * a:  # digits would be lost
        return min(1.0, even)
    ratio = (b / a) ** 2
    uneven = (math.exp(-t / a) - ratio * math.exp(-t / b)) / (1.0 - ratio)
    return min(1.0, uneven, even)


@np.errstate(over="ignore")  # of losses without end
def _at_least(scale: Fraction, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(X >= x) for integers x, and what lies on a line between; P(X + U >= x - 1/2)."""
    rate = 1.0 / float(scale)
    k = np.floor(x)
    chance = math.tanh(rate / 2.0) * np.exp(-rate * np.abs(k))  # P(X = k)
    upper = np.exp(-rate * np.abs(k)) / (1.0 + math.exp(-rate))
    # P(X >= -k) = 1 - P(X >= k + 1)
    at_least = np.where(k > 0, upper, 1.0 - upper * math.exp(-rate))
    between: NDArray[np.float64] = at_least - (x - k) * chance
    return between
