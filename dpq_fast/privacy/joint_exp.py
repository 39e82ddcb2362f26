r"""JointExp: one draw of the exponential mechanism over non-decreasing m-tuples."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from dpq_fast._checks import check_delta, check_max_contributions
from dpq_fast.privacy.budgets import MAX_RATE, check_step, resolve_epsilon
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import bounded_range_rho


class Calibration(NamedTuple):
    r"""What a call of `joint_exp` spends and guarantees.

    Attributes
    ----------
    rate : float
        c of the weights :math:`\exp(c\,u)`.
    bounded_range : float
        Of the release, given the dithers, per person.
    rho : float or None
        The budget as it was given.
    relation : Relation
    """

    rate: float
    bounded_range: float
    rho: float | None
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """One exponential mechanism: its range is an epsilon."""
        each = self.bounded_range
        rho = bounded_range_rho(each) if self.rho is None else self.rho
        return Guarantee(each, 0.0, rho, each, self.relation.name)


def sensitivity(levels: Levels | None, relation: Relation) -> float:
    r"""Sensitivity :math:`\Delta` of JointExp's utility.

    The utility is :math:`u = -\sum_{j=1}^{m+1} |n(o_{j-1}, o_j) - (q_j - q_{j-1}) n|`.

    Parameters
    ----------
    levels : Levels or None
        None for the largest that any levels have.
    relation : Relation

    Returns
    -------
    float
        2 for "swap": two of the counts change, each by at most one ([GJK21] Lemma 3). For
        "add-remove" `sensitivity_to_one`, which is never more.
    """
    replaced = relation.worst(one=0.0, same=1.0) > 0.0
    return 2.0 if replaced else sensitivity_to_one(levels)


def sensitivity_to_one(levels: Levels | None) -> float:
    r"""Sensitivity of JointExp's utility to one record more or less.

    :math:`2 (1 - \min_j (q_j - q_{j-1}))` over j = 1..m+1, with :math:`q_0 = 0`,
    :math:`q_{m+1} = 1` ([GJK21] Lemma 10): the interval of the record is
    :math:`1 - (q_j - q_{j-1})` off, the others :math:`q_j - q_{j-1}` each, in total 2(1 - gap) for
    the gap it fell into.
    """
    if levels is None:
        return 2.0
    q = levels.values.tolist()
    narrowest: float = min(q[0], 1.0 - q[-1], *map(operator.sub, q[1:], q))
    return 2.0 * (1.0 - narrowest)


def calibrate(
    q: Any = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Calibration:
    r"""The rate :math:`c = \epsilon / (2 \Delta k)` of JointExp, at most 2^16.

    Parameters
    ----------
    q : float, array_like or Levels, optional
        Left out, the rate is right for any levels.
    epsilon : float
        Total budget, per person.
    delta : float, default 0
        Allowed, not used: the release is pure.
    rho : float, optional
        Total zCDP budget instead: epsilon is the range that it buys (`rho_bounded_range`).
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    Calibration

    Notes
    -----
    The exponential mechanism of this rate has range, hence epsilon, at most `epsilon` [GJK21,
    Lemma 4], and the rho of that range (`bounded_range_rho`).
    """
    k = check_max_contributions(max_contributions)
    bounded_range = resolve_epsilon(epsilon, rho)
    check_delta(delta)
    relation = relation_of(neighbors)
    levels = None if q is None else Levels.of(q)
    rate = check_step(min(bounded_range / (2.0 * sensitivity(levels, relation) * k), MAX_RATE))
    return Calibration(rate, bounded_range, rho, relation)
