r"""Optimal composition of bounded-range mechanisms."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpq_fast._checks import (
    check_count,
    check_delta,
    check_epsilon,
    check_nonnegative,
)

# Rounding error of the logarithm of Lemma 12's delta, per mechanism; what is solved from it keeps
# a distance of this times m + 10^4, several times what was measured against mpmath.
_LOG_DELTA_ERROR = 1e-15
# Steps of a search for a root, most of them bisections where it is near an end of a flat stretch;
# twice as many as any was seen to take.
_MAX_STEPS = 400
# Most mechanisms that are composed optimally: seconds, and quadratic in their number.
MAX_COMPOSED = 2**15
# Their ranges, and the sum of these: far from the ends of float64.
COMPOSABLE = (1e-290, 1e290)
# Elements of the matrix (l, i) evaluated at once in Lemma 12: 2 MB per temporary array.
_BLOCK = 2**18


@lru_cache(maxsize=8)
def _log_binomials(m: int) -> NDArray[np.float64]:
    """ln C(m, i) for i = 0..m, from exact integers: lgamma would lose 1e-11 at m = 10^4."""
    logs = np.empty(m + 1)
    coefficient = 1
    for i in range(m + 1):
        logs[i] = math.log(coefficient)
        coefficient = coefficient * (m - i) // (i + 1)
    logs.flags.writeable = False
    return logs


@np.errstate(under="ignore")  # of terms far below others
def _log_bounded_range_delta(each: float, m: int, epsilon: float) -> float:
    r"""Logarithm of Lemma 12's delta, -inf where it is 0.

    [GJK21] Lemma 12 = [DDR20] Theorem 3: with :math:`t_l = (\epsilon + (l+1) e)/(m+1)` clipped to
    [0, e] and :math:`p = (e^{-t} - e^{-e})/(1 - e^{-e})`,

    .. math:: \delta = \max_l \sum_i \binom{m}{i} p^{m-i} (1-p)^i \max(e^{mt - ie} - e^\epsilon, 0)

    (e is the range of each). Written with the probabilities of the other data set,
    :math:`P = p\,e^t` and :math:`1 - P = (1-p)\,e^{t-e}`, and with u = e - t, a term is
    :math:`\binom{m}{i} P^{m-i} (1-P)^i (1 - e^{-x_i})`, :math:`x_i = (l - i) e + u`: products of
    numbers in [0, 1], and sums of non-negative numbers, so nothing overflows or cancels. Terms
    are positive for i <= l; where t is clipped at e, p = 0 and the sum is empty.
    """
    # u = ((m - l) e - epsilon) / (m + 1) is the one difference. With e split into 26 + 27 bits,
    # the products with m - l < 2^26 are exact, and so is the difference where it is small.
    scaled = math.ldexp(math.frexp(each)[0], 26)
    upper = math.ldexp(math.floor(scaled), math.frexp(each)[1] - 26)
    lower = each - upper
    left = np.arange(m, -1, -1, dtype=np.float64)  # m - l
    u = ((left * upper - epsilon) + left * lower) / (m + 1.0)
    ell = np.flatnonzero(u > 0.0).astype(np.float64)
    if ell.size == 0:
        return -math.inf
    u = u[: ell.size]  # u falls with l
    t = (epsilon + (ell + 1.0) * each) / (m + 1.0)
    whole = math.expm1(-each)
    log_p = np.minimum(np.log(np.expm1(-u) / whole), 0.0)
    log_r = np.minimum(np.log(np.expm1(-t) / whole), 0.0) - u  # r = 1 - P

    # Below the mode of Bin(m, r) its probabilities fall, downwards from l, at least by the ratio f
    # per step, so the sum is at most that of a geometric series; and never more than its largest
    # factor 1 - exp(-x_0). Taking l in the order of this bound, we may stop once it is below the
    # best sum found, usually after one block.
    log_binomials = _log_binomials(m)
    f = np.minimum(ell / (m - ell + 1.0) * np.exp(np.minimum(log_p - log_r, 600.0)), 1.0)
    with np.errstate(divide="ignore"):
        geometric = (
            log_binomials[: ell.size]
            + (m - ell) * log_p
            + ell * log_r
            + np.log(-np.expm1(-u) - f * np.exp(-u) * np.expm1(-t))
            - np.log1p(-f)
            - np.log1p(-f * math.exp(-each))
        )
    largest = np.log(-np.expm1(-(ell * each + u)))
    bound = np.minimum(geometric, largest) + 1e-9  # more than its rounding error
    order = np.argsort(-bound)

    rows = max(1, _BLOCK // (m + 1))
    best = -math.inf
    for start in range(0, order.size, rows):
        if bound[order[start]] < best:
            break
        block = order[start : start + rows]
        i = np.arange(int(block.max()) + 1, dtype=np.float64)
        x = (ell[block, None] - i) * each + u[block, None]
        used = i <= ell[block, None]
        log_terms = np.where(
            used,
            log_binomials[: i.size]
            + (m - i) * log_p[block, None]
            + i * log_r[block, None]
            + np.log(-np.expm1(-np.where(used, x, 1.0))),
            -np.inf,
        )
        peak = log_terms.max(axis=1, keepdims=True)
        log_sums = peak[:, 0] + np.log(np.exp(log_terms - peak).sum(axis=1))
        best = max(best, float(log_sums.max()))
    return min(best, 0.0)


def _check_composed(m: Any) -> int:
    number = check_count("m", m)
    if number > MAX_COMPOSED:
        raise ValueError(f"m must be at most {MAX_COMPOSED} for optimal composition, got {number}")
    return number


def _check_composable(epsilon: Any, name: str = "epsilon") -> float:
    checked = check_epsilon(epsilon, name)
    least, most = COMPOSABLE
    if not least <= checked <= most:
        raise ValueError(
            f"{name} must lie between {least} and {most} for optimal composition, got {checked}"
        )
    return checked


def bounded_range_delta(epsilon_each: float, m: int, epsilon: float) -> float:
    r"""Smallest delta of m non-adaptive mechanisms of range `epsilon_each` at total `epsilon`.

    Parameters
    ----------
    epsilon_each : float
        Range bound of each mechanism (an exponential mechanism of epsilon e has range e).
    m : int
        Number of mechanisms, from 1 to 2^15, chosen before the first output is seen.
    epsilon : float
        Total epsilon, not negative.

    Returns
    -------
    float
        The delta of [GJK21] Lemma 12 ([DDR20] Theorem 3), which is attained: no smaller delta
        holds for all such mechanisms. To 1e-10 relative for m up to 10^4.

    Notes
    -----
    Not for a sequence of calls in which a later one depends on earlier outputs: the adversary
    there gains from adapting, and delta is larger [DDR20].
    """
    each = _check_composable(epsilon_each, "epsilon_each")
    m, epsilon = _check_composed(m), check_nonnegative("epsilon", epsilon)
    # The sum of all ranges is an epsilon that needs no delta.
    return math.exp(_log_bounded_range_delta(each, m, min(epsilon, 2.0 * m * each)))


def bounded_range_epsilon_each(m: int, epsilon: float, delta: float) -> float:
    """Largest range of each of m non-adaptive mechanisms that are (`epsilon`, `delta`)-DP together.

    Parameters
    ----------
    m : int
        Number of mechanisms, from 1 to 2^15.
    epsilon, delta : float
        Total budget.

    Returns
    -------
    float
        The largest ``e`` with ``bounded_range_delta(e, m, epsilon) <= delta``, to 1e-10 relative
        from below; ``epsilon / m`` rounded down for ``delta=0``.
    """
    # Differs from [GJK21], whose calculator steps through a grid of 0.01: that leaves up to 16 %
    # of the budget unused.
    return _epsilon_each(_check_composed(m), _check_composable(epsilon), check_delta(delta))


@lru_cache(maxsize=1024)
def _epsilon_each(m: int, epsilon: float, delta: float) -> float:
    basic = epsilon / m
    if _log_bounded_range_delta(basic, m, epsilon) > -math.inf:
        basic = math.nextafter(basic, 0.0)  # the quotient was rounded up
    if delta == 0.0:
        return basic
    target = math.log(delta) - _LOG_DELTA_ERROR * (m + 10_000)

    def excess(each: float) -> float:
        # Clipped, because the logarithm of a delta of 0 is no number to interpolate with.
        return max(_log_bounded_range_delta(each, m, epsilon) - target, -60.0)

    # delta rises with the range: a mechanism of range e also has every larger range.
    high = basic * 1.5
    while excess(high) <= 0.0:
        high *= 1.5
    low = max(basic, high / 2.25)  # one factor further back than needed, against rounding
    each: float = scipy.optimize.brentq(
        excess, low, high, xtol=1e-14 * high, rtol=1e-13, maxiter=_MAX_STEPS
    )
    step = 2.0**-44
    while each > basic and excess(each) > 0.0:
        each *= 1.0 - step
        step *= 2.0
    return max(each, basic)


def bounded_range_epsilon(m: int, epsilon_each: float, delta: float) -> float:
    """Smallest total epsilon of m non-adaptive mechanisms of range `epsilon_each` at `delta`.

    Parameters
    ----------
    m : int
        Number of mechanisms, from 1 to 2^15.
    epsilon_each : float
        Range bound of each.
    delta : float
        Total delta; 0 gives the sum, rounded up.

    Returns
    -------
    float
        The smallest ``epsilon >= 0`` with ``bounded_range_delta(epsilon_each, m, epsilon) <=
        delta``, from above; 0 if `delta` covers everything.
    """
    m = _check_composed(m)
    each = _check_composable(epsilon_each, "epsilon_each")
    return _total_epsilon(m, each, check_delta(delta))


@lru_cache(maxsize=1024)
def _total_epsilon(m: int, each: float, delta: float) -> float:
    basic = m * each
    if _log_bounded_range_delta(each, m, basic) > -math.inf:
        basic = math.nextafter(basic, math.inf)  # the product was rounded down
    if delta == 0.0:
        return basic
    target = math.log(delta) - _LOG_DELTA_ERROR * (m + 10_000)

    def excess(epsilon: float) -> float:
        return max(_log_bounded_range_delta(each, m, epsilon) - target, -60.0)

    if excess(0.0) <= 0.0:
        return 0.0
    total: float = scipy.optimize.brentq(
        excess, 0.0, basic, xtol=1e-15 * basic, rtol=1e-13, maxiter=_MAX_STEPS
    )
    step = 2.0**-50 * basic
    while total < basic and excess(total) > 0.0:
        total += step
        step *= 2.0
    return min(total, basic)
