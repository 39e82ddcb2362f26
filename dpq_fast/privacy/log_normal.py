r"""Laplace log-normal noise on smooth sensitivity: what it costs in zCDP, certified numerically.

The noise is S Z / s for Z = X exp(sigma Y), X of density :math:`e^{-|x|}/2` and Y standard normal.
A release is f + S Z / s, where neighbors have :math:`|f - f'| \le \min(S, S')` and
:math:`e^{-t} S' \le S \le e^t S'`. In units of :math:`S'/s` their laws are those of
:math:`e^\tau Z + D` and of Z, for some :math:`|\tau| \le t` and
:math:`0 \le D \le s \min(1, e^\tau)`. Let :math:`\Lambda(\tau, D)` be
:math:`(\alpha - 1) D_\alpha` of these two, with p the density of Z.

**Four facts.**

1. :math:`\Lambda` does not fall as D rises: it is the logarithm of
   :math:`\int p_\tau(u)^\alpha p(u + D)^{1 - \alpha} du`, whose first factor is even and falls on
   both sides, a mixture of intervals around 0, and whose second one is a mixture of what lies
   outside of intervals around -D: the larger D, the more of an interval around 0 lies outside.
2. :math:`\Lambda(\tau, d e^\tau)` is convex in :math:`\tau` for each d: with u = e^\tau v, it is
   the logarithm of :math:`\int p(v)^\alpha [e^\tau p(e^\tau (v + d))]^{1 - \alpha} dv`, and
   :math:`\tau \mapsto \ln(e^\tau p(e^\tau y))` is concave, as ln|Z| is the sum of ln|X| and
   :math:`\sigma Y`, both of log-concave density. So an integral of log-convex functions.
3. :math:`\Lambda` is convex in :math:`\alpha`, and 0 at :math:`\alpha = 1`: between two orders it
   is below the chord.
4. :math:`D_\alpha/\alpha \le t^2/2\sigma^2 + s e^{3\sigma^2/2}/\alpha`: shifts change ln p by at
   most :math:`e^{3\sigma^2/2} D`, since :math:`|p'/p|` is largest at 0 (p is a mixture of
   exponentials, so ln p is convex beside 0), which costs :math:`D_\alpha` as much where it is the
   second law that is shifted; and scaling by :math:`e^\tau` shifts Y by :math:`\tau/\sigma`
   ([BS19] has both).

By 1 and 2 with :math:`d = s e^{-\tau_i}`, all :math:`\tau` in :math:`[\tau_i, \tau_{i+1}]`,
:math:`\tau_i \ge 0`, are bounded by one of :math:`(\tau_i, s)` and
:math:`(\tau_{i+1}, s e^{\tau_{i+1} - \tau_i})`, and the first of these by the second one of the
interval before; and all :math:`\tau \le 0`, with d = s, by (0, s) or :math:`(-t, s e^{-t})`. By 3
and 4, finitely many orders decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray

# Steps of the trapezoidal rule, in ln|z| and in y (and sigma y): what it misses of a mass is below
# 1e-11.
_STEP, _NORMAL_STEP = 0.25, 0.2
# |z| below e^-36, and |y - its center| above 10, hold less than 1e-15 of anything.
_LEAST, _TAIL = -36.0, 10.0
# The first order above 1, and the ratio of the next ones' distances to 1.
_FIRST_ORDER, _ORDER_RATIO = 1e-3, 1.5
# Equal steps between 0 and t: the scale is less by at most e^(t / 24).
_STEPS = 24
# More than the relative error of the integrals, and what `largest_scale` leaves below a root.
_ERROR, _SLACK = 1e-6, 1e-4
_LEGENDRE = np.polynomial.legendre.leggauss(48)


class _Density:
    """ln p by the logarithm of the distance from 0; far below e^700, where exp ends."""

    def __init__(self, sigma: float, most: float) -> None:
        step = min(_STEP, _NORMAL_STEP / sigma)
        y = np.arange(-_TAIL, most / sigma + _TAIL, step)
        self._log_weight = math.log(step / math.sqrt(8.0 * math.pi)) - 0.5 * y * y - sigma * y
        self._rate = np.exp(-sigma * y)

    def __call__(self, log_z: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(under="ignore"):
            terms = self._log_weight - np.multiply.outer(np.exp(log_z), self._rate)
            largest = terms.max(axis=1)
            terms -= largest[:, None]
            total = np.exp(terms, out=terms).sum(axis=1)
        log_density: NDArray[np.float64] = largest + np.log(total)
        return log_density


class _Quadrature:
    """Nodes and weights over the law Q of Z, for a shift and all tau."""

    def __init__(self, density: _Density, shift: float, most: float) -> None:
        self._density = density
        log_z = np.arange(_LEAST, most, _STEP)
        beyond = np.logaddexp(log_z, math.log(shift))
        weight = log_z + math.log(_STEP)
        # between both centers, by the distance from either, up to the middle
        end = math.log(shift / 2.0)
        nodes = _LEAST + (end - _LEAST) * (_LEGENDRE[0] + 1.0) / 2.0
        rest = np.log(shift - np.exp(nodes))
        inside = nodes + np.log(_LEGENDRE[1] * (end - _LEAST) / 2.0)
        # ln of the distances from the center of Z, and from the other one: above both, below both,
        # and between them
        own = beyond, log_z, nodes, rest
        self._other = log_z, beyond, rest, nodes
        self._log_q = np.concatenate([density(part) for part in own])
        self._log_weight = self._log_q + np.concatenate([weight, weight, inside, inside])

    def log_ratios(self, tau: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """ln of the weights, and ln of P/Q at the nodes."""
        log_p = np.concatenate([self._density(part - tau) for part in self._other]) - tau
        return self._log_weight, log_p - self._log_q


def _log_moments(
    log_weight: NDArray[np.float64], log_ratio: NDArray[np.float64], beyond: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(alpha - 1) D_alpha for alpha = 1 + beyond.

    As P and Q have mass 1, E_Q[(P/Q)^alpha] - 1 is the mean of r^alpha - 1 - alpha (r - 1) for
    r = P/Q, in which nothing is lost where r is near 1.
    """
    alpha = 1.0 + beyond[:, None]
    power = alpha * log_ratio
    exponent = log_weight + power
    largest = exponent.max(axis=1)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        whole = largest + np.log(np.exp(exponent - largest[:, None]).sum(axis=1))
        near = np.exp(log_weight) * (np.expm1(power) - alpha * np.expm1(log_ratio))
        far = np.exp(exponent) - alpha * np.exp(log_weight + log_ratio)
        far += beyond[:, None] * np.exp(log_weight)
        found = np.log1p(np.where(np.abs(power) < 1.0, near, far).sum(axis=1))
    moments: NDArray[np.float64] = np.where(largest > 30.0, whole, found)
    return moments


def _highest_chord(beyond: NDArray[np.float64], moments: NDArray[np.float64]) -> float:
    """The supremum of D_alpha / alpha over all orders up to the last, from above."""
    x, y = np.append(0.0, beyond), np.append(0.0, moments)
    slope = np.diff(y) / np.diff(x)
    start = y[:-1] - slope * x[:-1]  # the chord at alpha = 1: not positive
    # (start + slope x) / (x (1 + x)) is stationary at one positive x
    with np.errstate(divide="ignore", invalid="ignore"):
        highest = (-start + np.sqrt(start * start - start * slope)) / slope
    places = np.stack([x[:-1], np.clip(np.nan_to_num(highest), x[:-1], x[1:]), x[1:]])
    with np.errstate(divide="ignore", invalid="ignore"):
        values = (start / places + slope) / (1.0 + places)
    values[0, 0] = values[1, 0] = slope[0]  # the first chord begins at 0
    return float(values.max())


def _orders(t: float, sigma: float, scale: float, rho: float) -> NDArray[np.float64]:
    """alpha - 1 for the orders that decide: above the last, fact 4 is enough for rho."""
    last = scale * math.exp(1.5 * sigma * sigma) / (rho - t * t / (2.0 * sigma * sigma))
    last = max(last, 1.0 + 2.0 * _FIRST_ORDER) - 1.0
    number = 1 + math.ceil(math.log(last / _FIRST_ORDER) / math.log(_ORDER_RATIO))
    return np.geomspace(_FIRST_ORDER, last, max(number, 2))


def _rho_at(
    t: float, sigma: float, scale: float, rho: float, places: Sequence[tuple[float, float]]
) -> list[float]:
    """The largest D_alpha / alpha at some (tau, D / s), of all orders that `rho` leaves open."""
    beyond = _orders(t, sigma, scale, rho)
    most = (1.0 + float(beyond[-1])) * t + 9.0 * sigma + 4.0
    density = _Density(sigma, most)
    at = cache(lambda share: _Quadrature(density, scale * share, most))
    return [
        _highest_chord(beyond, _log_moments(*at(share).log_ratios(tau), beyond))
        for tau, share in places
    ]


def _worst_places(t: float) -> list[tuple[float, float]]:
    """(tau, D / s) of which one is the worst of all."""
    rise = math.exp(t / _STEPS)
    return [(-t, math.exp(-t)), (0.0, 1.0)] + [(t * (i + 1) / _STEPS, rise) for i in range(_STEPS)]


def largest_scale(t: float, sigma: float, rho: float) -> float:
    r"""The largest s that is certified, or nearly so.

    Parameters
    ----------
    t : float
        Smoothness, less than :math:`\\sigma \\sqrt{2 \\rho}`.
    sigma : float
        Shape.
    rho : float
        zCDP budget.

    Returns
    -------
    float
    """
    places = _worst_places(t)
    likely: tuple[tuple[float, float], ...] = places[0], places[1], places[-1]

    @cache  # the ends of a bracket are asked for twice
    def excess(log_scale: float, *likely: tuple[float, float]) -> float:
        return math.log(max(_rho_at(t, sigma, math.exp(log_scale), rho, likely)) / rho)

    low = 0.5 * math.log(2.0 * rho) - 2.0
    while excess(low, *likely) > 0.0:
        low -= 2.0
    while True:
        high = low + 1.0
        while excess(high, *likely) < 0.0:
            low, high = high, high + 1.0
        root = scipy.optimize.brentq(excess, low, high, args=likely, xtol=_SLACK)
        scale = math.exp(root - 2.0 * _SLACK)
        found = _rho_at(t, sigma, scale, rho, places)
        if max(found) <= rho * (1.0 - _ERROR):
            return scale
        likely, low = (places[found.index(max(found))],), low - 1.0
