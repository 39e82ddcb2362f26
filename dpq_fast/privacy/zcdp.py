r"""Zero-concentrated differential privacy."""

from __future__ import annotations

import math

import scipy

from dpq_fast._checks import (
    check_delta,
    check_epsilon,
    check_nonnegative,
)

# Epsilons whose rho, about the square of the lesser ones, is far from the ends of float64.
CONVERTIBLE = (1e-140, 1e300)


def zcdp_epsilon(rho: float, delta: float) -> float:
    r"""Smallest epsilon that `rho`-zCDP gives at `delta`, by the Rényi conversion of [CKS20].

    Parameters
    ----------
    rho : float
        zCDP parameter, not negative.
    delta : float
        In (0, 1): zCDP gives no pure epsilon.

    Returns
    -------
    float
        The smallest ``epsilon >= 0``, from above; at most
        :math:`\rho + 2\sqrt{\rho \ln(1/\delta)}` ([BS16] Proposition 1.3).

    Notes
    -----
    [CKS20]: rho-zCDP is :math:`(\epsilon, \delta)`-DP for

    .. math:: \delta = \inf_{\alpha > 1} \frac{e^{(\alpha-1)(\alpha\rho - \epsilon)}}{\alpha - 1}
              (1 - 1/\alpha)^{\alpha}.

    Solved for epsilon, with :math:`\beta = \alpha - 1` and :math:`L = \ln(1/\delta)`,

    .. math:: \epsilon(\beta) = (1+\beta)\rho + \ln\frac{\beta}{1+\beta}
              + \frac{L - \ln(1+\beta)}{\beta},

    whose derivative has the one zero :math:`\rho\beta^2 = L - \ln(1+\beta)`. Every beta gives a
    true statement, so an error in beta costs tightness, never privacy.
    """
    rho = check_nonnegative("rho", rho)
    delta = check_delta(delta)
    if delta == 0.0:
        raise ValueError("delta must be positive to turn rho into epsilon, got 0.0")
    if rho == 0.0:
        return 0.0
    log_inverse = -math.log(delta)
    # Either of the two terms alone would be ln(1/delta) there.
    highest = min(math.sqrt(log_inverse) / math.sqrt(rho), math.expm1(min(log_inverse, 700.0)))
    beta: float = scipy.optimize.brentq(
        lambda b: (rho * b) * b + math.log1p(b) - log_inverse,  # b * b might underflow
        0.0,
        highest * (1.0 + 1e-12),  # the value there is positive
        xtol=1e-14 * highest,
        rtol=1e-14,
    )
    terms = (
        (1.0 + beta) * rho,
        -math.log1p(1.0 / beta),
        (log_inverse - math.log1p(beta)) / beta,
    )
    rounding = 2.0**-50 * (math.fsum(map(abs, terms)) + (log_inverse + 1.0) / beta)
    simple = rho + 2.0 * math.sqrt(rho * log_inverse)
    return max(0.0, min(math.fsum(terms) + rounding, simple))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Largest rho such that rho-zCDP is (`epsilon`, `delta`)-DP: the inverse of `zcdp_epsilon`.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        The largest rho with ``zcdp_epsilon(rho, delta) <= epsilon``, from below.
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    if delta == 0.0:
        raise ValueError("delta must be positive to turn epsilon into rho, got 0.0")
    least, most = CONVERTIBLE
    if not least <= epsilon <= most:
        raise ValueError(
            f"epsilon must lie between {least} and {most} to be turned into rho, got {epsilon}"
        )
    log_inverse = -math.log(delta)
    # Solves rho + 2 sqrt(rho L) = epsilon, which is never less than the tight conversion.
    low = (epsilon / (math.sqrt(log_inverse + epsilon) + math.sqrt(log_inverse))) ** 2
    high = 2.0 * low
    while zcdp_epsilon(high, delta) <= epsilon:
        high *= 2.0
    # In the logarithm of rho, which may be far below 1.
    rho = low * math.exp(
        scipy.optimize.brentq(
            lambda s: zcdp_epsilon(low * math.exp(s), delta) - epsilon * (1.0 - 1e-15),
            -1e-9,  # room for rounding: the simple bound may be the tight one
            math.log(high / low),
            xtol=1e-14,
            rtol=1e-14,
        )
    )
    step = 2.0**-50
    while zcdp_epsilon(rho, delta) > epsilon:
        rho *= 1.0 - step
        step *= 2.0
    return rho
