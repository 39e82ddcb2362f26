r"""The Gaussian mechanism."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import scipy

from dpq_fast._checks import (
    check_delta,
    check_epsilon,
    check_nonnegative,
)
from dpq_fast.privacy.budgets import resolve_epsilon

# Relative error of Mills' ratio, many times that of SciPy's erfcx; and the difference of two
# arguments below which that of their ratios is a series.
_MILLS_ERROR, _TAYLOR_STEP = 2.0**-46, 2.0**-7


def gaussian_delta(sigma: float, epsilon: float) -> float:
    r"""The delta of normal noise on a query of L2 sensitivity 1, from above.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise of each number, positive.
    epsilon : float
        At least 0.

    Returns
    -------
    float
        :math:`\Phi(1/2\sigma - \epsilon\sigma) - e^\epsilon \Phi(-1/2\sigma - \epsilon\sigma)`,
        the least delta there is [BW18, Theorem 8], plus a bound of its rounding error, which is
        below 1e-9 of it; never 0, which it is not.

    Notes
    -----
    The log ratio of the laws of two neighbors is normal, of mean :math:`d^2/2\sigma^2` and
    variance :math:`d^2/\sigma^2` for d the distance of the exact answers. k queries, chosen
    adaptively or not, each of sensitivity 1 with noise of its own, have therefore exactly the
    delta of one with :math:`\sigma/\sqrt{k}`.

    With :math:`u = \epsilon\sigma - 1/2\sigma` and :math:`h = 1/\sigma` the second argument is
    :math:`-(u + h)`, and :math:`e^\epsilon \phi(u + h) = \phi(u)`. So the two terms are
    :math:`\phi(u) R(u)` and :math:`\phi(u) R(u + h)` for :math:`R(x) = \Phi(-x)/\phi(x)`, which
    falls, and neither underflows before their difference.
    """
    sigma, epsilon = check_epsilon(sigma, "sigma"), check_nonnegative("epsilon", epsilon)
    exact = Fraction(sigma)
    exact_u: Fraction | int = Fraction(epsilon) * exact - 1 / (2 * exact)
    u = float(min(max(exact_u, -(2**60)), 2**60))
    h = 1.0 / sigma if sigma > 1e-300 else math.inf
    log_density = -0.5 * u * u - 0.5 * math.log(2.0 * math.pi)
    if u > 0.0 and log_density < -745.0:  # R(u) is at most 1.26 there
        return math.ulp(0.0)
    with np.errstate(under="ignore"):
        if h < _TAYLOR_STEP:
            difference, lost = _mills_slope(u, h), 1.0
            log_density -= math.log(sigma)
        elif u > 0.0:
            first, second = _mills(u), _mills(u + h)
            difference, lost = first - second, first + second
        else:  # R(u) may overflow; the first term is at least 1/2
            second = math.exp(log_density) * _mills(u + h)
            return min(float(scipy.special.ndtr(-u)) - second + _MILLS_ERROR, 1.0)
    # Relative errors: of R, hence of the difference; of u, hence of the density.
    rounding = _MILLS_ERROR * lost / difference + 2.0**-50 * (1.0 + u * u)
    delta = math.exp(log_density + math.log(difference)) * (1.0 + rounding)
    return math.nextafter(delta, 1.0)


def _mills(x: float) -> float:
    r"""Mills' ratio :math:`\Phi(-x)/\phi(x)`, to `_MILLS_ERROR` relative."""
    return math.sqrt(0.5 * math.pi) * float(scipy.special.erfcx(x * math.sqrt(0.5)))


def _mills_slope(x: float, h: float) -> float:
    r"""(R(x) - R(x + h)) / h for Mills' ratio R and a small h, to `_MILLS_ERROR` absolute.

    By Taylor's series: :math:`R' = x R - 1`, hence :math:`R^{(k+1)} = x R^{(k)} + k R^{(k-1)}`.
    """
    before = _mills(x)
    now = x * before - 1.0
    term, total = 1.0, -now
    for k in range(1, 10):
        before, now = now, x * now + k * before
        term *= h / (k + 1.0)
        total -= now * term
    return total


def gaussian_sigma(
    squared: float, epsilon: float | None, delta: float = 0.0, rho: float | None = None
) -> float:
    r"""Standard deviation of normal noise on numbers, from above.

    Parameters
    ----------
    squared : float
        The square of their L2 sensitivity :math:`\Delta`, per person. For m numbers of
        sensitivity 1 each, m.
    epsilon, delta : float
        Total budget; delta positive.
    rho : float, optional
        Total zCDP budget instead: :math:`\Delta / \sqrt{2\rho}` [BS16].

    Returns
    -------
    float
        :math:`\Delta` times the least sigma that has `gaussian_delta` at most `delta`: the
        analytic Gaussian mechanism [BW18].
    """
    resolve_epsilon(epsilon, rho)  # exactly one of them, and positive
    squared, delta = check_epsilon(squared, "squared"), check_delta(delta)
    if rho is not None:
        if delta > 0.0:
            raise ValueError(f"delta must be 0 with rho, got {delta}")
        return math.sqrt(squared / (2.0 * rho)) * (1.0 + 2.0**-50)
    if delta == 0.0:
        raise ValueError("delta must be positive for Gaussian noise, got 0.0")
    assert epsilon is not None
    return math.sqrt(squared) * _unit_sigma(float(epsilon), delta) * (1.0 + 2.0**-50)


@lru_cache(maxsize=256)
def _unit_sigma(epsilon: float, delta: float) -> float:
    """The sigma of a query of sensitivity 1."""
    low = high = 1.0
    while gaussian_delta(high, epsilon) > delta:
        high *= 2.0
        if high > 2.0**100:
            raise ValueError(
                f"epsilon and delta must be large enough for a sigma of at most 2^100, got "
                f"{epsilon}, {delta}"
            )
    while gaussian_delta(low, epsilon) <= delta:
        low /= 2.0
    log_delta = math.log(delta)
    log_sigma = scipy.optimize.brentq(
        lambda s: math.log(gaussian_delta(math.exp(s), epsilon)) - log_delta,  # of no 0
        math.log(low),
        math.log(high),
        xtol=1e-14,
    )
    sigma, step = math.exp(log_sigma), 2.0**-50
    while gaussian_delta(sigma, epsilon) > delta:
        sigma *= 1.0 + step
        step *= 2.0
    return sigma
