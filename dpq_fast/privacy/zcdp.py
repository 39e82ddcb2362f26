r"""Zero-concentrated differential privacy."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import lru_cache

import scipy

from dpq_fast._checks import (
    check_count,
    check_delta,
    check_epsilon,
    check_nonnegative,
    check_rho,
)

# Epsilons whose rho, about the square of the lesser ones, is far from the ends of float64.
CONVERTIBLE = (1e-140, 1e300)
# More than the relative error of the formulas below, and what is solved from them keeps it.
_RHO_ERROR = 1e-13


def bounded_range_rho(bounded_range: float) -> float:
    r"""Smallest rho that every mechanism of a bounded range has: exact [HM26].

    Parameters
    ----------
    bounded_range : float
        :math:`\eta`, not negative.

    Returns
    -------
    float
        :math:`r - 1 - \ln r` for :math:`r = \eta / (e^\eta - 1)`, from above; at most
        :math:`\eta^2/8` [CR21] and :math:`\eta`. Convex in :math:`\eta`.

    Notes
    -----
    Let :math:`\ln P/Q` lie in an interval of length :math:`\eta` around 0.
    :math:`E_Q[(P/Q)^\alpha]` is the mean of a convex function of P/Q, whose mean is 1, so it is
    largest where P/Q takes the two ends alone: P and Q are coins, whose logits are c and
    :math:`c - \eta`. With F the logistic law, f its density (even, falling from 0 on), and
    :math:`\beta = \alpha - 1`, partial integration gives

    .. math:: \frac{D_\alpha}{\alpha} = \frac{J(\beta, c)}{1 + \beta}, \qquad
              J(\beta, c) = \int_0^\eta F(c + \beta l) - F(c - l)\,dl.

    :math:`J(0, c)` is the divergence of Kullback and Leibler, whose maximum over c is the value
    above, convex as a maximum of convex functions of :math:`\eta`. To show is that the maximum
    :math:`K(\beta)` of :math:`J(\beta, \cdot)` is at most :math:`(1 + \beta) K(0)`.

    - :math:`\beta \le 1`. At the maximum, :math:`\partial J/\partial c = 0` says that f has the
      same mean m in :math:`[c - \eta, c]` and in :math:`[c, c + \beta\eta]`; so c > 0, or f were
      smaller everywhere in the first. From c on f falls, so its mean with weights l is at most m:
      :math:`K'(\beta) = \int_0^\eta l f(c + \beta l)\,dl \le m\eta^2/2`. And weights that are
      largest at c give at least m on both sides (:math:`f(c) \ge m`, and before c it first rises
      and then falls): :math:`K(\beta) \ge (1 + \beta) m\eta^2/2`. Hence
      :math:`K/(1 + \beta)` does not rise.
    - :math:`\beta > 1`. With :math:`L_w(c) = \int_0^w F(c) - F(c - l)\,dl`, it is
      :math:`J = L_\eta(c) + L_{\beta\eta}(-c)/\beta`. The maximum of :math:`L_w/w^2` does not rise
      with w, for it is that of a mean of :math:`f(c - w T)/2`, T in [0, 1], and
      :math:`f(\lambda u) \ge f(u)` for :math:`\lambda \le 1`. So :math:`L_{\beta\eta}/\beta \le
      \beta K(0)`.
    """
    eta = check_nonnegative("bounded_range", bounded_range)
    if eta == 0.0:
        return 0.0
    simple = min(math.nextafter(eta * eta / 8.0, math.inf), eta)
    if eta > 700.0:  # where e^eta is too large, and r less than the error
        return min(simple, (eta - 1.0 - math.log(eta)) * (1.0 + _RHO_ERROR))
    if eta < 0.2:  # where the terms cancel
        square = eta * eta
        # The terms alternate; the next one is negative, and below 1e-15.
        series = 1.0 / 3240.0 + square * (-1.0 / 134400.0 + square / 5443200.0)
        series = 1.0 + square * (-1.0 / 72.0 + square * series)
        return min(simple, simple * series * (1.0 + _RHO_ERROR))
    ratio = eta / math.expm1(eta)
    return min(simple, (ratio - 1.0 - math.log(ratio)) * (1.0 + _RHO_ERROR))


def pure_rho(epsilon: float) -> float:
    r"""Smallest rho that every pure mechanism has: exact [HM26].

    Parameters
    ----------
    epsilon : float
        Not negative.

    Returns
    -------
    float
        :math:`\epsilon \tanh(\epsilon/2)`, from above; at most :math:`\epsilon^2/2` [BS16].

    Notes
    -----
    As for `bounded_range_rho` P and Q are coins, here of logits :math:`\epsilon` and
    :math:`-\epsilon`: c is :math:`\epsilon` and :math:`\eta` is :math:`2\epsilon`. The mean of f
    in :math:`[-\epsilon, \epsilon]` is that with the weights of :math:`J(0, c)`, too, since f is
    even, and f is at most that beyond :math:`\epsilon`. So :math:`J(\beta, c) \le (1 + \beta)
    J(0, c)`, and :math:`J(0, c) = \epsilon \tanh(\epsilon/2)`.
    """
    epsilon = check_nonnegative("epsilon", epsilon)
    if epsilon == 0.0:
        return 0.0
    simple = min(math.nextafter(epsilon * epsilon / 2.0, math.inf), epsilon)
    if epsilon < 1e-8:  # where the product may be nothing
        return simple
    return min(simple, epsilon * math.tanh(epsilon / 2.0) * (1.0 + _RHO_ERROR))


def laplace_rho(epsilon: float) -> float:
    r"""Smallest rho of continuous Laplace noise: exact [HM26].

    Parameters
    ----------
    epsilon : float
        The sensitivity over the scale, not negative.

    Returns
    -------
    float
        :math:`\epsilon + e^{-\epsilon} - 1`, from above; less than `pure_rho`.

    Notes
    -----
    Discrete noise of scale 1/a on integers that differ by d, :math:`\epsilon = a d`, tends to it.
    The log ratio L of the two laws is :math:`\epsilon - 2 a k` for the k from 0 to d, and so is its
    law under the geometric mean of the two, symmetric: equal masses, and
    :math:`1/(1 - b)` times as much at both ends, :math:`b = e^{-a}`. So
    :math:`g(u) = E[e^{u L}]`, :math:`w = e^{2 a u}`, times w - 1, is zero where
    :math:`w^d (w - b) = 1 - b w`, which for :math:`|w| < 1` or > 1 has sides of different size:
    all zeros u are imaginary. Being even and of order 1, g is a product of
    :math:`1 + u^2/y_k^2`, whose logarithm is concave in :math:`u^2`, hence below its tangent at
    u = 1/2. With :math:`\alpha = u + 1/2`, that says :math:`(\alpha - 1) D_\alpha \le
    \alpha (\alpha - 1) D_1`.
    """
    epsilon = check_nonnegative("epsilon", epsilon)
    if epsilon == 0.0:
        return 0.0
    if epsilon < 0.05:  # where the terms cancel; they alternate, and the next one is negative
        series = 1.0 / 360.0 - epsilon * (1.0 / 2520.0 - epsilon / 20160.0)
        series = 1.0 - epsilon * (
            1.0 / 3.0 - epsilon * (1.0 / 12.0 - epsilon * (1.0 / 60.0 - epsilon * series))
        )
        return math.nextafter(epsilon * epsilon / 2.0 * series * (1.0 + _RHO_ERROR), math.inf)
    return min(epsilon, (epsilon + math.expm1(-epsilon)) * (1.0 + _RHO_ERROR))


def discrete_laplace_rho(epsilon: float, units: int) -> float:
    r"""Smallest rho of discrete Laplace noise: exact [HM26].

    Parameters
    ----------
    epsilon : float
        The distance over the scale, not negative.
    units : int
        How far apart the two integers are, at least 1.

    Returns
    -------
    float
        :math:`\epsilon - (1 - e^{-\epsilon})\, a / \sinh a`, :math:`a = \epsilon` / `units`, from
        above. From `pure_rho`, of one unit, it falls to `laplace_rho`. Of one scale, a larger
        distance has a larger one, and it is convex in it.

    Notes
    -----
    `laplace_rho` has the proof that the divergence of Kullback and Leibler is the rho, which is the
    mean of the log ratio, :math:`\epsilon` beyond both integers on one side,
    :math:`-\epsilon` on the other, and linear between them.
    """
    epsilon = check_nonnegative("epsilon", epsilon)
    rate = epsilon / check_count("units", units)
    if epsilon == 0.0:
        return 0.0
    if rate < 0.02:  # where 1 - a / sinh(a) cancels; the terms alternate
        square = rate * rate
        series = 1.0 / 6.0 - square * (7.0 / 360.0 - square * (31.0 / 15120.0))
        missing = square * series
    else:
        missing = 1.0 - 2.0 * rate * math.exp(-rate) / -math.expm1(-2.0 * rate)
    # the room for rounding in the first, larger term is enough for both
    rho = laplace_rho(epsilon) - math.expm1(-epsilon) * missing
    return min(pure_rho(epsilon), math.nextafter(rho, math.inf))


def largest_for_rho(cost: Callable[[float], float], rho: float, start: float) -> float:
    """The largest argument of an increasing cost whose cost is at most `rho`, to the last bit.

    `start` costs at most `rho`, and the cost has no upper bound. Halving asks nothing else of the
    cost, and no release has to load `scipy.optimize` for it.
    """
    if start == 0.0:  # for a rho that is rounded to nothing; doubled, it would be 0 for ever
        return 0.0
    low, high = start, 2.0 * start
    while high < math.inf and cost(high) <= rho:
        low, high = high, 2.0 * high
    high = min(high, sys.float_info.max)
    while low < (middle := low + 0.5 * (high - low)) < high:
        if cost(middle) <= rho:
            low = middle
        else:
            high = middle
    return low


@lru_cache(maxsize=256)
def rho_bounded_range(rho: float) -> float:
    r"""Largest range that `rho` buys: the inverse of `bounded_range_rho`, from below.

    Parameters
    ----------
    rho : float
        Positive; :math:`\sqrt{8 \rho}` or more, and 2.987 for a rho of 1.

    Returns
    -------
    float
    """
    rho = check_rho(rho)
    return largest_for_rho(bounded_range_rho, rho, math.sqrt(2.0) * math.sqrt(rho))


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

    Examples
    --------
    >>> round(zcdp_epsilon(0.5, 1e-6), 2)
    5.22
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

    Examples
    --------
    >>> round(zcdp_rho(zcdp_epsilon(0.5, 1e-6), 1e-6), 6)
    0.5
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
