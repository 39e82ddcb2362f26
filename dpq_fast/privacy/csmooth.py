r"""CSmooth: Laplace log-normal noise on smooth sensitivity."""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpq_fast._checks import (
    check_count,
    check_epsilon,
    check_max_contributions,
    check_rho,
    real_array,
)
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.log_normal import largest_scale
from dpq_fast.privacy.relations import Relation, relation_of

# `default_smoothness`: its share of epsilon, and where it ends. From t = ln 2 on, where gaps are
# alike, S is one gap: (k + 1) e^-tk falls from k = 0 on.
SMOOTHNESS_SHARE, LARGEST_SMOOTHNESS = 0.54, math.log(2.0)


class Calibration(NamedTuple):
    """What a call of `csmooth` spends and guarantees.

    Attributes
    ----------
    smoothness : ndarray of float64, shape (m,)
        t of each level.
    shapes : list of (float, float)
        sigma and ln s of each level's noise, by `shape_of`.
    rho : float
        The budget, per person.
    relation : Relation
        The noise is the same for all, see `smooth_rank`.
    """

    smoothness: NDArray[np.float64]
    shapes: list[tuple[float, float]]
    rho: float
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """Releases of `epsilon_each`, whose rhos per person add up."""
        return Guarantee(None, rho=self.rho, neighbors=self.relation.name)


def calibrate(
    q: Any = None,
    *,
    rho: float,
    t: Any = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Calibration:
    """The shape and scale of each level's noise.

    Parameters
    ----------
    q : float, array_like or Levels, optional
        The levels; the guarantee is the same for all.
    rho : float
        Total zCDP budget, per person.
    t : float or array_like of float, optional
        Smoothness, of all levels or of each.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    Calibration
    """
    levels = Levels.of(0.5 if q is None else q)
    epsilon = epsilon_each(levels.m, rho, max_contributions)
    relation = relation_of(neighbors)
    smoothness = smoothness_of(t, levels, epsilon)
    shapes = [shape_of(each, epsilon) for each in smoothness.tolist()]
    return Calibration(smoothness, shapes, float(rho), relation)


def epsilon_each(m: int, rho: float, max_contributions: int = 1) -> float:
    r"""Epsilon of each of m releases with Laplace log-normal noise, each epsilon^2/2-zCDP.

    :math:`\sqrt{2 \rho / m} / k`: rho adds up over the levels ([GJK21] Lemma 9), and k records
    of one person, a chain of k neighbors, cost :math:`k^2` times the rho of one [BS16].
    """
    k = check_max_contributions(max_contributions)
    return math.sqrt(2.0 * check_rho(rho) / check_count("m", m)) / k


def default_smoothness(epsilon: float) -> float:
    """The smoothness t for an epsilon per level, where the caller gives none.

    The least expected size of the noise on synthetic standard normal data in bounds (-100, 100),
    within 1%, for 1e3, 1e4 and 1e5 records, levels from 0.1 to 0.5 and every epsilon from 0.1 to 1;
    for lower levels of few records within a factor of 2. So neither n, which may be private, nor
    the level is looked at.
    """
    return min(SMOOTHNESS_SHARE * epsilon, LARGEST_SMOOTHNESS)


def smoothness_of(t: Any, levels: Levels, epsilon: float) -> NDArray[np.float64]:
    """The smoothness of each distinct level, from what the caller gave."""
    if t is None:
        return np.full(levels.m, default_smoothness(epsilon))
    if np.ndim(t) == 0:
        return np.full(levels.m, check_epsilon(t, "t"))
    given = real_array("t", t)
    try:
        smoothness = levels.distinct(given)
    except ValueError:
        raise ValueError(f"t must be one number or of q's shape, got shape {given.shape}") from None
    if smoothness is None:
        raise ValueError("t must be the same wherever q is")
    return smoothness


def smooth_rank(q: float, n: int) -> int:
    r"""Rank j of the order statistic that smooth-sensitivity releases are centered on.

    Parameters
    ----------
    q : float
        Level in [0, 1].
    n : int
        Number of records kept, at least 0; private under "add-remove" and with omitted NaN.

    Returns
    -------
    int
        :math:`j(n) = \max(1, \lceil q n - 2^{-20} \rceil)`, exactly: the target q n lies between
        the records below :math:`x_j` and those up to it. The slack keeps 0.1 of ten records at the
        first one, though the float64 0.1 is a little more.

    Notes
    -----
    **One smooth sensitivity for both relations.** With :math:`x_i = a` for i < 1 and
    :math:`x_i = b` for i > n, let

    .. math:: A_k(x) = \max_{i=0..k+1} (x_{j+i} - x_{j+i-k-1}), \qquad
              S^t(x) = \max_{k \ge 0} e^{-tk} A_k(x)

    be as in [NRS07] Proposition 3.4, where n and j are fixed. With j = j(n) it also bounds what
    one record more or less does: for neighbors x and x' in either sense, f(x) = x_j,

    (1) :math:`|f(x) - f(x')| \le A_0(x) \le S^t(x)` and (2) :math:`A_k(x) \le A_{k+1}(x')`, so that
    :math:`S^t(x) \le e^t S^t(x')`.

    The one fact needed is :math:`j(n+1) - j(n) \in \{0, 1\}`: q n rises by q in [0, 1].

    - *A record is added.* Then :math:`x'_i \le x_i \le x'_{i+1}` for all i, and j' is j or j + 1.
      (1) :math:`x_{j-1} \le x'_j \le x_j` and :math:`x_j \le x'_{j+1} \le x_{j+1}`. (2) A window
      lo <= j <= hi of x lies inside lo, ..., hi + 1 of x': :math:`x'_{lo} \le x_{lo}`,
      :math:`x'_{hi+1} \ge x_{hi}`; that one is longer by one rank, and holds j and j + 1.
    - *A record is removed.* Then :math:`x'_{i-1} \le x_i \le x'_i`, and j' is j or j - 1. (1)
      :math:`x_j \le x'_j \le x_{j+1}` and :math:`x_{j-1} \le x'_{j-1} \le x_j`. (2) The window
      lo - 1, ..., hi of x' holds j - 1 and j.
    - *A record is replaced*, and n stays: upwards :math:`x_i \le x'_i \le x_{i+1}`, and
      lo - 1, ..., hi is the window; downwards :math:`x_{i-1} \le x'_i \le x_i`, and it is
      lo, ..., hi + 1. Both hold j.

    So records that are left out are covered under "swap", too, and no relation needs more noise.
    """
    numerator, denominator = q.as_integer_ratio()
    return max(1, -((denominator - (numerator * n << 20)) // (denominator << 20)))


# The least epsilon of a level: the rounding error of ln S is no smoothness to speak of there.
MIN_EPSILON = 1e-10
# t over epsilon: above 10 the noise is of no use (1/s is e^150 there), and sigma - t/epsilon, which
# s is made of, drowns in rounding; below 1e-100 it is S that does not change any more.
MIN_SMOOTHNESS, MAX_SMOOTHNESS = 1e-100, 10.0
# Where `largest_scale` is asked for, in at most a second: the epsilons of a level, and the most t.
CERTIFIED_EPSILON = 1e-4, 6.0
CERTIFIED_RATIO, CERTIFIED_SMOOTHNESS = 0.75, 1.0
# More than the rounding error of ln s, and than that of ln S, twice, by which t is more.
_LOG_SCALE_ERROR, _SMOOTHNESS_ERROR = 1e-12, 1e-13


def shape_of(t: float, epsilon: float) -> tuple[float, float]:
    r"""Shape and scale of Laplace log-normal noise for one release.

    Parameters
    ----------
    t : float
        Smoothness of the sensitivity; between 1e-100 and 10 times `epsilon`.
    epsilon : float
        The release is :math:`\epsilon^2/2`-zCDP.

    Returns
    -------
    sigma : float
        Shape of Z = X exp(sigma Y), X of density :math:`e^{-|x|}/2`, Y standard normal.
    log_scale : float
        ln s; the noise is :math:`S^t(x) Z / s`.

    Notes
    -----
    The shape and scale of less variance, :math:`2 S^2 e^{2\sigma^2}/s^2`, of two. For every S with
    :math:`|f(x) - f(x')| \le S(x)` and :math:`S(x) \le e^t S(x')` (see `smooth_rank`):

    - *Certified*: for a given sigma, a little more than :math:`t/\epsilon`, the largest s for which
      the Rényi divergences of all orders are known to suffice (`privacy.log_normal`). For
      :math:`10^{-4} \le \epsilon \le 6` and t up to three quarters of it, or 1; a larger
      epsilon has what 6 has.
    - [BS19] Proposition 3 ([GJK21] Lemma 14): the release is :math:`\epsilon^2/2`-zCDP for
      :math:`\epsilon = t/\sigma + e^{1.5\sigma^2} s`. With :math:`s = e^{-1.5\sigma^2} (\epsilon -
      t/\sigma)` the variance is least at the one positive root of :math:`5 (\epsilon/t) \sigma^3 -
      5 \sigma^2 - 1`. It is above :math:`t/\epsilon`, where the polynomial is -1, so s > 0. This
      squares the sum of two costs that peak at different orders, and has 2 to 5 times the noise.
    """
    epsilon = check_epsilon(epsilon)
    if epsilon < MIN_EPSILON:
        raise ValueError(
            f"rho must leave an epsilon of at least {MIN_EPSILON} for each level, got {epsilon}"
        )
    t = check_epsilon(t, "t")
    ratio = t / epsilon
    if not MIN_SMOOTHNESS <= ratio <= MAX_SMOOTHNESS:
        raise ValueError(
            f"t must lie between {MIN_SMOOTHNESS} and {MAX_SMOOTHNESS} times the epsilon of a "
            f"level, {epsilon}, so that sigma and s are found, got {t}"
        )
    wider = t + _SMOOTHNESS_ERROR
    sigma, log_share = _unit_shape(wider / epsilon)
    closed = sigma, math.log(epsilon) + log_share
    least, most = CERTIFIED_EPSILON
    budget = min(epsilon, most)
    if epsilon < least or t > min(CERTIFIED_RATIO * budget, CERTIFIED_SMOOTHNESS):
        return closed
    return min(closed, _certified_shape(wider, budget), key=lambda shape: shape[0] ** 2 - shape[1])


@lru_cache(maxsize=1024)
def _certified_shape(t: float, epsilon: float) -> tuple[float, float]:
    """sigma and ln s whose Rényi divergences are known to suffice."""
    # The tails of a larger sigma cost little where epsilon is large, and buy a larger s.
    sigma = max(1.1 * t / epsilon, 0.05, min(0.15 * epsilon, 0.8))
    return sigma, math.log(largest_scale(t, sigma, epsilon * epsilon / 2.0))


@lru_cache(maxsize=1024)
def _unit_shape(ratio: float) -> tuple[float, float]:
    """sigma and ln(s / epsilon) for a t of `ratio` times epsilon."""
    # With sigma = ratio + u: (ratio + u)^2 u = ratio / 5, so u^3 < ratio / 5.
    if sys.version_info >= (3, 11):
        most = math.cbrt(ratio / 5.0)
    else:
        most = float(np.cbrt(ratio / 5.0))

    def excess(u: float) -> float:
        return (ratio + u) ** 2 * u - ratio / 5.0

    while excess(most) < 0.0:  # the root was rounded down, and `ratio` is lost beside it
        most *= 1.0 + 2.0**-50
    above = scipy.optimize.brentq(excess, 0.0, most, xtol=1e-15 * most)
    sigma = ratio + above
    return sigma, math.log(above / sigma) - 1.5 * sigma * sigma - _LOG_SCALE_ERROR
