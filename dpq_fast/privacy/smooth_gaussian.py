r"""Gaussian noise on smooth sensitivity: the exact delta of a scale.

A release is f + S Z / alpha for Z standard normal, where neighbors have
:math:`|f - f'| \le \min(S, S')` and :math:`e^{-\beta} S' \le S \le e^\beta S'`. In units of the
less noise of the two, their laws are :math:`N(D, e^{2\tau})` and N(0, 1), in either order, for some
:math:`0 \le \tau \le \beta` and :math:`0 \le D \le \alpha`. Their log ratio is a quadratic, so the
hockey-stick divergence :math:`\delta(\tau, D)` at epsilon is known exactly.

**Three facts.**

1. :math:`\delta` does not fall as D rises: it is one minus the integral of the smaller one of two
   functions, each even and falling around its center: a sum of overlaps of intervals, which fall
   with the distance of the centers.
2. :math:`\lambda X + \sqrt{1 - \lambda^2} N` leaves N(0, 1) as it is, and makes
   :math:`N(D/\lambda, e^{2\tau'})` to :math:`N(D, e^{2\tau})` for
   :math:`\lambda^2 = (e^{2\tau} - 1)/(e^{2\tau'} - 1)`. So :math:`\delta(\tau, D) \le
   \delta(\tau', D/\lambda)` for :math:`\tau \le \tau'`, by post-processing.
3. From one law to N(D, 1) and on to the other, :math:`(\epsilon_1, \delta_1)` and
   :math:`(\epsilon_2, \delta_2)` of epsilons that add up to epsilon make
   :math:`\delta_1 + e^{\epsilon_1} \delta_2`.

By 1 and 2 every :math:`\tau` of an interval is covered by its upper end, and by 3 those next to 0.
"""

from __future__ import annotations

import math
from itertools import pairwise

import scipy

# Ends of the intervals of tau, over beta.
_SHARES = (*(1.0 - i / 40.0 for i in range(36)), *(0.1 * 0.83**i for i in range(12)))
# The part of epsilon for what tau below the last of them does.
_PART = 0.02
# More than the relative error of delta, and what `largest_scale` leaves below a root.
_ERROR, _SLACK = 1e-4, 1e-6


def delta_at(tau: float, shift: float, epsilon: float, wider_first: bool) -> float:
    r"""Hockey-stick divergence of :math:`N(D, e^{2\tau})` and N(0, 1), in one order or the other.

    Parameters
    ----------
    tau, shift : float
        Not negative.
    epsilon : float
        Positive.
    wider_first : bool
        Whether the set is chosen for the wider law.

    Returns
    -------
    float
    """
    if not wider_first:  # in units of the wider law it is the other one that is narrower
        tau, shift = -tau, shift * math.exp(-tau)
    wide = math.exp(tau)
    # The log ratio is c x^2 + b x - k + epsilon: above epsilon from one root on to the other, which
    # is on the other side of 0 where c is positive, and the region the outside. Where c is
    # negative, b / -2c is between the roots, and beyond both centers: so is the second root.
    c, b = -0.5 * math.expm1(-2.0 * tau), shift / wide**2
    k = epsilon + tau + shift * b / 2.0
    square = b * b + 4.0 * c * k
    if square <= 0.0:
        return 0.0
    root = b + math.sqrt(square)
    first, second = 2.0 * k / root, -root / (2.0 * c) if c else -math.inf

    def mass(center: float, scale: float) -> float:
        beyond = float(scipy.special.ndtr((center - first) / scale))
        other = scipy.special.ndtr(abs(second - center) / -scale)
        return beyond + math.copysign(float(other), c)

    return mass(shift, wide) - math.exp(epsilon) * mass(0.0, 1.0)


def worst_delta(beta: float, alpha: float, epsilon: float) -> float:
    """The largest delta of all neighbors, from above."""
    ends = [beta * share for share in _SHARES]
    deltas = [
        delta_at(
            high, alpha * math.sqrt(math.expm1(2 * high) / math.expm1(2 * low)), epsilon, order
        )
        for high, low in pairwise(ends)
        for order in (True, False)
    ]
    part = _PART * epsilon
    shifted = delta_at(0.0, alpha, epsilon - part, True)
    deltas.append(delta_at(ends[-1], 0.0, part, True) + math.exp(part) * shifted)
    scaled = delta_at(ends[-1], 0.0, part, False)
    deltas.append(shifted + math.exp(epsilon - part) * scaled)
    return max(deltas)


def largest_scale(beta: float, epsilon: float, delta: float, start: float) -> float | None:
    """The largest alpha whose delta is at most `delta`, or nearly so.

    Parameters
    ----------
    beta : float
        Smoothness.
    epsilon, delta : float
        The budget; delta positive.
    start : float
        An alpha that is less.

    Returns
    -------
    float or None
        None if `start` is not less.
    """

    def excess(log_alpha: float) -> float:
        return worst_delta(beta, math.exp(log_alpha), epsilon) / delta - 1.0 + _ERROR

    low = high = math.log(start)
    while excess(high) < 0.0:
        low, high = high, high + 1.0
    if high == low:
        return None
    root = scipy.optimize.brentq(excess, low, high, xtol=_SLACK) - 2.0 * _SLACK
    return math.exp(root if excess(root) <= 0.0 else low)
