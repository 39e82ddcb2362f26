r"""IndExp: one exponential mechanism for each of m levels, all of one range."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import check_delta, check_max_contributions
from dpq_fast.privacy.bounded_range import bounded_range_epsilon_each
from dpq_fast.privacy.budgets import MAX_RATE, check_steps, resolve_epsilon
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import bounded_range_rho


class Calibration(NamedTuple):
    r"""What a call of `ind_exp` spends and guarantees.

    Attributes
    ----------
    rates : ndarray of float64, shape (m,)
        c of each level's weights :math:`\exp(-c\,|r - q n|)`.
    each : float
        Range of each release, per person.
    epsilon, delta, rho
        The budget as it was given.
    relation : Relation
    """

    rates: NDArray[np.float64]
    each: float
    epsilon: float | None
    delta: float
    rho: float | None
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """m independent exponential mechanisms, given the dither that they share."""
        m, each, neighbors = self.rates.size, self.each, self.relation.name
        if self.epsilon is None:
            # the log ratio is a sum of m, so the ranges add up
            composition = "zcdp" if m > 1 else ""
            return Guarantee(m * each, 0.0, self.rho, m * each, neighbors, composition)
        composition = "bounded-range" if self.delta > 0.0 else "basic" if m > 1 else ""
        bounded_range = m * each if self.delta > 0.0 else self.epsilon
        rho = m * bounded_range_rho(each)
        return Guarantee(self.epsilon, self.delta, rho, bounded_range, neighbors, composition)


def sensitivities(q: NDArray[np.float64], relation: Relation) -> NDArray[np.float64]:
    r"""Sensitivities of the single-quantile utilities :math:`-|r - q_j n|`, r the rank of o.

    Parameters
    ----------
    q : ndarray of float64, shape (m,)
        Levels in [0, 1].
    relation : Relation

    Returns
    -------
    ndarray of float64, shape (m,)
        1 for "swap": the rank moves by at most one, the target stays.
        max(q, 1-q) for "add-remove": the target moves by q, the rank by 0 or 1 in the same
        direction.
    """
    return relation.worst(one=np.maximum(q, 1.0 - q), same=np.ones(q.size))


def calibrate(
    q: Any = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Calibration:
    r"""The rates :math:`c_j = e / (2 \Delta_j k)`, at most 2^16, of m releases of range e.

    Parameters
    ----------
    q : float, array_like or Levels
        The levels.
    epsilon, delta : float
        Total budget, per person. With ``delta=0``, e is `epsilon` / m by basic composition; else
        that of the optimal non-adaptive composition of [DDR20], which is never less.
    rho : float, optional
        Total zCDP budget instead: e is the range that rho / m buys.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    Calibration

    Notes
    -----
    Each release has range e/k per record, so at most e per person, and Lemma 12 is applied to
    persons. This is never worse than group privacy on the result, which allows per record only
    :math:`(\epsilon/k, \delta')` with
    :math:`\delta' = \delta\,(e^{\epsilon/k} - 1)/(e^{\epsilon} - 1)`: the range bound is reached
    by k records along a chain, so whatever is sound for the chain passes Lemma 12.
    """
    if q is None:
        raise ValueError("q must be given for method 'ind_exp', got None")
    levels = Levels.of(q)
    k = check_max_contributions(max_contributions)
    each = resolve_epsilon(epsilon, rho, levels.m)
    delta = check_delta(delta)
    if delta > 0.0:
        if epsilon is None:
            raise ValueError(f"delta must be 0 with rho, got {delta}")
        each = bounded_range_epsilon_each(levels.m, epsilon, delta)
    relation = relation_of(neighbors)
    rates = each / (2.0 * k * sensitivities(levels.values, relation))
    rates = check_steps(np.minimum(rates, MAX_RATE))
    return Calibration(rates, each, epsilon, delta, rho, relation)
