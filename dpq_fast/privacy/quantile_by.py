r"""Groups: JointExp in each group of `quantile_by`."""

from __future__ import annotations

from typing import Any, NamedTuple

from dpq_fast._checks import check_count, check_epsilon, check_flag, check_max_contributions
from dpq_fast.privacy.budgets import MAX_RATE, check_step
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.intervals import SAMPLE, Request, Search, calibrate_groups, split
from dpq_fast.privacy.joint_exp import sensitivity_to_one
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import bounded_range_rho, pure_rho


class Calibration(NamedTuple):
    """What a call of `quantile_by` spends and guarantees.

    Attributes
    ----------
    rate : float
        Of JointExp in each group.
    epsilon : float
        Range of the whole call, given the dithers, per person.
    rho : float
        Of the whole call.
    relation : Relation
    search : intervals.Search or None
        Of intervals around the quantiles of each group.
    """

    rate: float
    epsilon: float
    rho: float
    relation: Relation
    search: Search | None = None

    @property
    def guarantee(self) -> Guarantee:
        """Independent exponential mechanisms, of which one record changes one or two.

        With intervals a search in each group comes on top.
        """
        if self.search is not None:
            return Guarantee(self.epsilon, 0.0, self.rho, None, self.relation.name, "parallel")
        return Guarantee(self.epsilon, 0.0, self.rho, self.epsilon, self.relation.name, "parallel")


def calibrate(
    q: Any = None,
    *,
    epsilon: float,
    neighbors: str = "swap",
    max_contributions: int = 1,
    public_by: bool = False,
    confidence: float | None = None,
    covers: str = SAMPLE,
    interval_share: float | None = None,
    expected_n: int | None = None,
) -> Calibration:
    r"""The rate of JointExp in each group, for `epsilon` in total.

    Parameters
    ----------
    q : float, array_like or Levels, optional
        Left out, rate and rho are right for any levels.
    epsilon : float
        Total budget, per person.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person, in any groups.
    public_by : bool, default False
        Whether the keys are public, so that no change of a record changes its group.
    confidence, covers, interval_share, expected_n
        As in `quantile_by`. Intervals need `q`.

    Returns
    -------
    Calibration
        With :math:`\Delta_{\pm}` JointExp's sensitivity to one record more or less, the rate is
        :math:`\epsilon / (2 \Delta_{\pm} k)` for "add-remove"; half of that for "swap";
        :math:`\epsilon / (2 \cdot 2 k)` for "swap" with public keys.

    Notes
    -----
    Given the dithers, the groups' draws are independent, so the log ratio of the call is a sum
    over the groups that differ, and the ranges add up. One record added or removed changes one
    group: range :math:`2 c \Delta_{\pm}`. One replaced may leave a group and enter another: twice
    that. If it stays (or the keys are public), the range is :math:`2 c \cdot 2`, which is no more,
    since :math:`\Delta_{\pm} \ge 1`: of at least two gaps, one is at most 1/2. Records left out
    (NaN, keys of no group) make an addition or a removal of a replacement. k records are a chain
    of k such changes.

    **rho.** A person's records change group g by range r_g, and rho is the sum of the
    :math:`\rho(r_g)`, `bounded_range_rho` [BS16]. A record adds to the vector of the r_g: one entry
    s where it stays in its group, two entries b where it moves. The sum of k such vectors is the
    mean of k times each, and :math:`\rho` is convex, so the worst are k times the same vector:
    :math:`\max(\rho(k s), 2 \rho(k b))`. Where records can move, :math:`k b = \epsilon/2` and
    :math:`k s = \epsilon/\Delta_{\pm}`; otherwise :math:`k s = \epsilon`.
    """
    k = check_max_contributions(max_contributions)
    epsilon = check_epsilon(epsilon)
    public_by = check_flag("public_by", public_by)
    relation = relation_of(neighbors)
    levels = None if q is None else Levels.of(q)
    request = Request.of(confidence, covers, interval_share)
    if request is not None:
        if levels is None:
            raise ValueError("q must be given with a confidence, got None")
        own, ends = split(request, epsilon, 0.0, None)
        value = calibrate(
            levels,
            epsilon=own["epsilon"],
            neighbors=neighbors,
            max_contributions=k,
            public_by=public_by,
        )
        search = calibrate_groups(
            levels,
            request,
            epsilon=ends,
            neighbors=neighbors,
            max_contributions=k,
            public_by=public_by,
            expected_n=None if expected_n is None else check_count("expected_n", expected_n),
        )
        rho = value.rho + pure_rho(ends)
        return Calibration(value.rate, epsilon, rho, relation, search)
    if expected_n is not None:
        raise ValueError("expected_n must be left out without a confidence, got one")
    one = sensitivity_to_one(levels)
    moved = None if public_by else 2.0 * one
    whole = relation.worst(one=one, same=2.0, moved=moved)
    rate = check_step(min(epsilon / (2.0 * whole * k), MAX_RATE))
    rho = bounded_range_rho(epsilon)
    if levels is not None and whole == moved:
        rho = max(bounded_range_rho(epsilon / one), 2.0 * bounded_range_rho(epsilon / 2.0))
    return Calibration(rate, epsilon, rho, relation)
