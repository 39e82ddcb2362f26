r"""AboveThreshold and the sparse vector technique, and what they cost on counts of records."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpq_fast._arguments import names_of, with_further
from dpq_fast._checks import (
    check_choice,
    check_count,
    check_epsilon,
    check_flag,
    check_nonnegative,
    real_array,
)
from dpq_fast.noise.threshold import NOISES, ThresholdNoise
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import bounded_range_rho


class Calibration(NamedTuple):
    """What a call of `above_threshold` or `sparse_vector` spends and guarantees.

    Attributes
    ----------
    rates : (float, float)
        Of the noise of the threshold and of each query.
    noise : ThresholdNoise
    epsilon : float
        Of one halt.
    bounded_range : float or None
        Of one halt; known for monotonic queries.
    halts : int
        Most halts.
    relation : Relation
    """

    rates: tuple[float, float]
    noise: ThresholdNoise
    epsilon: float
    bounded_range: float | None
    halts: int
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """One halt after another, each of which starts where the last one was."""
        rho = None
        if self.bounded_range is not None:
            rho = bounded_range_rho(self.bounded_range)  # refuses inf
        one = Guarantee(self.epsilon, 0.0, rho, self.bounded_range, self.relation.name)
        if self.halts == 1:
            return one
        assert one.implied_rho is not None  # it is pure
        rho = self.halts * one.implied_rho
        return Guarantee(self.halts * self.epsilon, 0.0, rho, None, one.neighbors, "basic")


def calibrate(
    *,
    epsilon1: float,
    epsilon2: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    noise: str = "exponential",
    neighbors: str = "swap",
) -> Calibration:
    r"""The rates of the threshold's noise and of each query's, :math:`\epsilon_{1,2} / \Delta`.

    Parameters
    ----------
    epsilon1, epsilon2 : float
        Positive and finite, for each halt.
    sensitivity : float, default 1.0
        How much one query can differ between neighbors.
    monotonic : bool, default False
        Whether, for any two neighbors, no query is larger on the first, or none on the second.
    noise : {"exponential", "laplace", "gumbel"}
        Equal epsilons are required for "gumbel".
    neighbors : {"swap", "add-remove"}, default "swap"
        The relation for which `sensitivity` and `monotonic` hold.

    Returns
    -------
    Calibration

    Notes
    -----
    [Dur23] Algorithm 1: noise of scale :math:`\Delta/\epsilon_1` and :math:`\Delta/\epsilon_2`.
    A halt costs :math:`\epsilon_1 + 2 \epsilon_2`; :math:`\epsilon_1 + \epsilon_2` if
    monotonic, and then the former is a bound on the range ([Dur23] Lemma 3.1, Corollary 3.1,
    Lemmas 3.2 and A.3, Theorem 1).
    """
    rates, kind = _rates(epsilon1, epsilon2, sensitivity, noise)
    relation = relation_of(neighbors)
    epsilon1, epsilon2 = float(epsilon1), float(epsilon2)
    whole = epsilon1 + 2.0 * epsilon2
    if check_flag("monotonic", monotonic):
        return Calibration(rates, kind, epsilon1 + epsilon2, whole, 1, relation)
    return Calibration(rates, kind, whole, None, 1, relation)


@with_further(lambda: names_of(calibrate))
def calibrate_halts(*, halts: int, **parameters: Any) -> Calibration:
    """The same for up to `halts` halts, each of which spends the whole of both epsilons."""
    return calibrate(**parameters)._replace(halts=check_count("halts", halts))


def _rates(
    epsilon1: float, epsilon2: float, sensitivity: float, noise: str
) -> tuple[tuple[float, float], ThresholdNoise]:
    """The rates of both noises, and their kind."""
    epsilon1 = check_epsilon(epsilon1, "epsilon1")
    epsilon2 = check_epsilon(epsilon2, "epsilon2")
    sensitivity = check_epsilon(sensitivity, "sensitivity")
    kind = noise_of(noise)
    if kind.equal_rates and epsilon1 != epsilon2:
        raise ValueError(
            f"epsilon1 and epsilon2 must be equal for noise {noise!r}, got {epsilon1} and "
            f"{epsilon2}"
        )
    rate1, rate2 = epsilon1 / sensitivity, epsilon2 / sensitivity
    if not (0.0 < min(rate1, rate2) and max(rate1, rate2) < math.inf):
        raise ValueError(
            "epsilon1 and epsilon2 over sensitivity must be positive and finite, "
            f"got {rate1} and {rate2}"
        )
    return (rate1, rate2), kind


def noise_of(noise: Any) -> ThresholdNoise:
    """The noise that the argument `noise` names."""
    return NOISES[check_choice("noise", noise, tuple(NOISES))]


def check_fraction(fraction: Any, name: str = "split") -> float:
    """A share of a budget: a real number strictly between 0 and 1."""
    share = check_nonnegative(name, fraction)
    if 0.0 < share < 1.0:
        return share
    raise ValueError(f"{name} must lie strictly between 0 and 1, got {share}")


def threshold_fraction(split: float | None, noise: ThresholdNoise) -> float:
    """The share of epsilon1 in epsilon1 + epsilon2; the default depends on the noise."""
    if split is None:
        return noise.fraction
    if noise.equal_rates:
        if split != noise.fraction:
            raise ValueError(
                f"split must be {noise.fraction} for noise {noise.name!r}, got {split}"
            )
        return noise.fraction
    return check_fraction(split)


def counting_losses(q: Any, fraction: float) -> tuple[Any, Any]:
    r"""One-sided losses of AboveThreshold on :math:`f_i = \#\{x < t_i\} - q n`, ascending t_i.

    Per unit of :math:`\epsilon_1 + \epsilon_2`, with `fraction` the share of :math:`\epsilon_1`:
    the loss :math:`\epsilon(x, x')` ([Dur23] Definition A.1) where x has one record more than x',
    and where x' has one more.

    [Dur23] Lemma B.1, its proof: the queries of the larger data set are higher by 1 - q from some
    index on and lower by q before, so the two are :math:`q\epsilon_1 + \epsilon_2` and
    :math:`\max\{q\epsilon_2, (1-q)\epsilon_1\}`.
    """
    first, second = fraction, 1.0 - fraction
    return q * first + second, np.maximum(q * second, (1.0 - q) * first)


def one_sided_loss(
    f_x: Any, f_x2: Any, epsilon1: float, epsilon2: float, sensitivity: float = 1.0
) -> float:
    r"""Bound on :math:`\ln P_x(o) - \ln P_{x'}(o)` over all outputs o of AboveThreshold.

    Parameters
    ----------
    f_x, f_x2 : array_like of float, shape (n,)
        The queries on x and on its neighbor x', finite. Hypothetical data: nothing here is
        private.
    epsilon1, epsilon2, sensitivity : float
        The noise, as for `above_threshold`.

    Returns
    -------
    float

    Notes
    -----
    [Dur23] Definition A.1, with :math:`D_k = \max_{i<k} \max(0, f_i(x') - f_i(x))`:

    .. math:: \max_k \frac{\epsilon_1}{\Delta} D_k
        + \frac{\epsilon_2}{\Delta} \max(0, D_k - (f_k(x') - f_k(x)))

    It holds for all three noises, "gumbel" with equal epsilons only. Of a family of queries, the
    largest loss over all ordered pairs of neighbors is an epsilon (Corollary A.1), and the largest
    sum of the losses of a pair and of its reverse is a bound on the range (Corollary A.2).

    Differs from [Dur23]: their streams are endless. A stream of n queries has one more output, not
    to halt at all; its loss is :math:`\epsilon_1 D_{n+1} / \Delta`, as for one query more, which
    halts for sure.
    """
    (rate1, rate2), _ = _rates(epsilon1, epsilon2, sensitivity, "exponential")
    f_x, f_x2 = real_array("f_x", f_x), real_array("f_x2", f_x2)
    if f_x.ndim != 1 or f_x.shape != f_x2.shape:
        raise ValueError(
            f"f_x and f_x2 must be one-dimensional and of one length, got shapes {f_x.shape} "
            f"and {f_x2.shape}"
        )
    rise = f_x2 - f_x
    if not np.isfinite(rise).all():
        raise ValueError("f_x and f_x2 must be finite, and so must their differences")
    shift = np.maximum.accumulate(np.append(0.0, rise))  # D_k, of n + 1 queries
    drop = np.append(np.maximum(0.0, shift[:-1] - rise), 0.0)
    with np.errstate(over="ignore"):  # an infinite loss is one
        return float((rate1 * shift + rate2 * drop).max())
