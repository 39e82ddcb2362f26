r"""Groups: JointExp, or for one level permute-and-flip, in each group of `quantile_by`.

Other mechanisms, and all of them with a delta or for a rho, are released group by group, each with
a part of the budget (`privacy.parallel`).

**Two stages in each group.** A pilot of a group is drawn from its records alone, and what its
answers make, a lattice and a prior, goes into the second stage of that group and of no other. So
pilot and second stage are one release of the records of their group, which guarantees its part of
the budget by adaptive composition within the group (`privacy.two_stage`): what is split between
them is the part, not the budget of the call. And `privacy.parallel` asks for nothing but the
guarantee of each release, and that they draw independently of each other:

- *One* record more or less changes the joint law of one group, by the part.
- *Same*: a record that is replaced within a group changes that of one group, by the part under
  "swap" where keys are public; else by two steps of the part under "add-remove", which add up to
  the budget.
- *Moved*: a record that leaves a group changes pilot and second stage there by a removal, and those
  of the group that it comes into by an addition: each by its part under "add-remove", which is
  half of epsilon, or a quarter of rho. With a share s for pilots these lose
  :math:`s \epsilon / 2` in each of both groups, and the second stages
  :math:`(1 - s) \epsilon / 2`: :math:`\epsilon` in all.

How a group is split follows from its part, the levels and `expected_n`, which are public, and is
the same for all; how many records a group has decides nothing.

**The default** with an `expected_n` is what `choice.most_accurate` says of a release with the part
and the relation of a group. It goes by nothing else than this call's public arguments.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

from dpq_fast._checks import (
    check_choice,
    check_count,
    check_delta,
    check_epsilon,
    check_flag,
    check_max_contributions,
)
from dpq_fast.privacy import kept_groups
from dpq_fast.privacy.budgets import MAX_RATE, check_step, resolve_epsilon
from dpq_fast.privacy.choice import most_accurate, value_epsilon
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.ind_exp import FLIP
from dpq_fast.privacy.intervals import SAMPLE, Request, Search, calibrate_groups, split, with_share
from dpq_fast.privacy.joint_exp import sensitivity_to_one
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.parallel import Part, part_of
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import bounded_range_rho, pure_rho

IND_EXP, JOINT_EXP = METHODS = ("ind_exp", "joint_exp")
# Released with a part of the budget; and those of all that are calibrated for a rho.
IN_PARTS = ("approx_quantiles", "two_stage", "unbounded_quantile", "agg_tree", "csmooth")
FOR_RHO = (IND_EXP, *IN_PARTS)
# Those that go by about how many records there are, with intervals and without.
BY_NUMBER = ("two_stage", "agg_tree")


class Calibration(NamedTuple):
    """What a call of `quantile_by` spends and guarantees.

    Attributes
    ----------
    rate : float
        Of the mechanism in each group.
    epsilon : float
        Of the whole call, per person; of JointExp also its range, given the dithers.
    rho : float
        Of the whole call.
    method : {"ind_exp", "joint_exp"}
        The mechanism: permute-and-flip by depth, or JointExp.
    relation : Relation
    search : intervals.Search or None
        Of intervals around the quantiles of each group.
    """

    rate: float
    epsilon: float
    rho: float
    method: str
    relation: Relation
    search: Search | None = None

    @property
    def guarantee(self) -> Guarantee:
        """Independent selections, of which one record changes one or two.

        With intervals a search in each group comes on top.
        """
        if self.method == IND_EXP:
            composition = f"{FLIP} + parallel"
            return Guarantee(self.epsilon, 0.0, self.rho, None, self.relation.name, composition)
        if self.search is not None:
            return Guarantee(self.epsilon, 0.0, self.rho, None, self.relation.name, "parallel")
        return Guarantee(self.epsilon, 0.0, self.rho, self.epsilon, self.relation.name, "parallel")


class PartCalibration(NamedTuple):
    """What a call of `quantile_by` spends and guarantees, by what each release may spend.

    Attributes
    ----------
    part : Part
        Of the release in each group.
    epsilon, delta, rho
        Of the whole call, per person.
    method : str
        The mechanism.
    relation : Relation
    """

    part: Part
    epsilon: float | None
    delta: float
    rho: float | None
    method: str
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """Independent releases, of which one record changes one or two (`privacy.parallel`)."""
        name = self.relation.name
        return Guarantee(self.epsilon, self.delta, self.rho, None, name, "parallel")


def calibrate(
    q: Any = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    public_by: bool = False,
    method: str | None = None,
    confidence: float | None = None,
    covers: str = SAMPLE,
    interval_share: float | None = None,
    expected_n: int | None = None,
    points: int | None = None,
    two_sided: bool = False,
    composed: bool = False,
    selection_share: float | None = None,
) -> Calibration | PartCalibration | kept_groups.Calibration:
    r"""What the mechanism in each group may spend, for a budget in total.

    Parameters
    ----------
    q : float, array_like or Levels, optional
        Left out, rate and rho are right for any levels of a given `method`; without that, the
        guarantee holds for both.
    epsilon, delta, rho
        Total budget, per person: as in `quantile_by`.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person, in any groups.
    public_by : bool, default False
        Whether the keys are public, so that no change of a record changes its group.
    method : str, optional
        The mechanism in each group, as in `quantile_by`. Default: by the number of levels.
    confidence, covers, interval_share, expected_n
        As in `quantile_by`. Intervals need `q`.
    points, two_sided
        Of the bounds, for the default with an `expected_n`, as for `choice.most_accurate`: the most
        of the groups, and whether they are of any.
    composed : bool, default False
        Whether the default is for an accountant that composes by "zcdp", to which JointExp adds
        less than permute-and-flip.
    selection_share : float, optional
        Of the selection of keys, which takes all of `delta`. None where groups are given.

    Returns
    -------
    Calibration, PartCalibration or kept_groups.Calibration
        The last one with a selection, the second one for what has no rate of its own. With
        :math:`\Delta_{\pm}` the utility's sensitivity to one record more or less, and
        :math:`\Delta` to one replaced (1 by depth, 2 of JointExp), the rate is
        :math:`\epsilon / (2 \Delta_{\pm} k)` for "add-remove"; half of that for "swap";
        :math:`\epsilon / (2 \Delta k)` for "swap" with public keys.

    Notes
    -----
    Given the dithers, the groups' draws are independent, so the log ratio of the call is a sum
    over the groups that differ, and the epsilons of the groups add up, as ranges do. One record
    added or removed changes one group: :math:`2 c \Delta_{\pm}`, which is JointExp's range there,
    and of permute-and-flip the epsilon (`privacy.ind_exp`). One replaced may leave a group and
    enter another: twice that. If it stays (or the keys are public), it is :math:`2 c \Delta`, which
    is no more, since :math:`\Delta_{\pm} \ge \Delta / 2`: of at least two gaps, one is at most 1/2.
    Records left out (NaN, keys of no group) make an addition or a removal of a replacement. k
    records are a chain of k such changes.

    **rho.** For JointExp: a person's records change group g by range r_g, and rho is the sum of the
    :math:`\rho(r_g)`, `bounded_range_rho` [BS16]. A record adds to the vector of the r_g: one entry
    s where it stays in its group, two entries b where it moves. The sum of k such vectors is the
    mean of k times each, and :math:`\rho` is convex, so the worst are k times the same vector:
    :math:`\max(\rho(k s), 2 \rho(k b))`. Where records can move, :math:`k b = \epsilon/2` and
    :math:`k s = \epsilon \Delta / 2 \Delta_{\pm}`; otherwise :math:`k s = \epsilon`.

    Permute-and-flip has epsilons in the place of ranges, and `pure_rho` in that of the other.
    It is not convex, but rho is at most that of the whole call, and :math:`\rho(r) \le r^2 / 2`,
    which is convex: the lesser of :math:`\rho(\epsilon)` and
    :math:`\max((k s)^2, 2 (k b)^2) / 2`. For k = 1 there are no others than the worst:
    :math:`\max(\rho(s), 2 \rho(b))`.
    """
    if selection_share is not None:
        if rho is not None:
            raise ValueError(f"epsilon must be given in place of rho to select groups, got {rho}")
        return kept_groups.calibrate(
            partial(
                calibrate,
                q,
                public_by=public_by,
                method=method,
                confidence=confidence,
                covers=covers,
                interval_share=interval_share,
                expected_n=expected_n,
                points=points,
                two_sided=two_sided,
                composed=composed,
            ),
            selection_share,
            epsilon=epsilon,
            delta=delta,
            neighbors=neighbors,
            max_contributions=max_contributions,
        )
    k = check_max_contributions(max_contributions)
    public_by = check_flag("public_by", public_by)
    relation = relation_of(neighbors)
    levels = None if q is None else Levels.of(q)
    single = levels is None or levels.m == 1
    request = Request.of(confidence, covers, interval_share)
    if method is None:
        resolve_epsilon(epsilon, rho)  # refuses two of them, and none
        method = _default(
            levels,
            epsilon=epsilon,
            rho=rho,
            request=request,
            expected_n=expected_n if check_delta(delta) == 0.0 else None,
            points=points,
            two_sided=two_sided,
            composed=composed,
            neighbors=neighbors,
            max_contributions=k,
            public_by=public_by,
        )
        if request is None and method not in BY_NUMBER:
            expected_n = None  # which the choice went by
    check_choice("method", method, (*METHODS, *IN_PARTS))
    several = method == IND_EXP and not single
    if method in IN_PARTS or several or rho is not None or check_delta(delta) > 0.0:
        return _in_parts(
            method,
            epsilon,
            delta,
            rho,
            request,
            expected_n,
            neighbors=neighbors,
            max_contributions=k,
            public_by=public_by,
        )
    resolve_epsilon(epsilon, rho)  # refuses none
    epsilon = check_epsilon(epsilon)
    if request is not None:
        if levels is None:
            raise ValueError("q must be given with a confidence, got None")
        if expected_n is not None:
            expected_n = check_count("expected_n", expected_n)
        person = neighbors, k
        request = with_share(request, levels, epsilon, None, *person, expected_n, not public_by)
        own, ends = split(request, epsilon, 0.0, None, *person)
        value = calibrate(
            levels,
            epsilon=own["epsilon"],
            neighbors=neighbors,
            max_contributions=k,
            public_by=public_by,
            method=method,
        )
        assert isinstance(value, Calibration)
        search = calibrate_groups(
            levels,
            request,
            epsilon=ends,
            neighbors=neighbors,
            max_contributions=k,
            public_by=public_by,
            expected_n=expected_n,
        )
        return value._replace(epsilon=epsilon, rho=value.rho + pure_rho(ends), search=search)
    if expected_n is not None:
        raise ValueError("expected_n must be left out without a confidence, got one")
    by_depth = method == IND_EXP
    # a path of one level counts its rank twice, to it and from it
    one, same = sensitivity_to_one(levels), 2.0
    if by_depth:
        one, same = one / 2.0, 1.0
    moved = None if public_by else 2.0 * one
    whole = relation.worst(one=one, same=same, moved=moved)
    rate = check_step(min(epsilon / (2.0 * whole * k), MAX_RATE))
    rho_of = pure_rho if by_depth else bounded_range_rho
    rho = rho_of(epsilon)
    if levels is not None and whole == moved:
        stays, half = epsilon / (whole / same), epsilon / 2.0
        if by_depth and k > 1:
            rho = min(rho, math.nextafter(max(stays * stays, epsilon * half), math.inf) / 2.0)
        else:
            rho = max(rho_of(stays), 2.0 * rho_of(half))
    return Calibration(rate, epsilon, rho, method, relation)


def _default(
    levels: Levels | None,
    *,
    epsilon: float | None,
    rho: float | None,
    request: Request | None,
    expected_n: int | None,
    points: int | None,
    two_sided: bool,
    composed: bool,
    **person: Any,
) -> str:
    """The mechanism where none is named, by public facts."""
    if levels is not None and expected_n is not None:
        part = part_of(epsilon=epsilon, rho=rho, **person)
        n = check_count("expected_n", expected_n)
        own = value_epsilon(part.epsilon, request, levels, part.neighbors, 1, n)
        chosen = most_accurate(
            levels,
            relation_of(part.neighbors),
            epsilon=resolve_epsilon(own, part.rho),
            n=n,
            points=points,
            two_sided=two_sided,
            rho=rho is not None,
            in_groups=True,
        )
        if chosen in IN_PARTS:
            return chosen
    single = levels is None or levels.m == 1
    if rho is None:
        return IND_EXP if single and not composed else JOINT_EXP
    return IND_EXP if single else "approx_quantiles"


def _in_parts(
    method: str,
    epsilon: float | None,
    delta: float,
    rho: float | None,
    request: Request | None,
    expected_n: int | None,
    **person: Any,
) -> PartCalibration:
    """For mechanisms that take the budget of a group as they would that of a call."""
    resolve_epsilon(epsilon, rho)  # refuses two of them, and none
    delta = check_delta(delta)
    if rho is None and method == "csmooth":
        raise ValueError(f"rho must be given in place of epsilon for method 'csmooth', got {rho}")
    if rho is not None and method not in FOR_RHO:
        raise ValueError(f"epsilon must be given in place of rho for method {method!r}, got {rho}")
    if delta > 0.0 and (rho is not None or method != IND_EXP):
        raise ValueError(f"delta must be 0 but for method {IND_EXP!r} with epsilon, got {delta}")
    if request is not None and method == "csmooth":
        raise ValueError("confidence must be left out for method 'csmooth'")
    if expected_n is not None:
        check_count("expected_n", expected_n)
        if request is None and method not in BY_NUMBER:
            raise ValueError("expected_n must be left out without a confidence, got one")
    part = part_of(epsilon=epsilon, delta=delta, rho=rho, **person)
    budget = None if epsilon is None else check_epsilon(epsilon)
    return PartCalibration(part, budget, delta, rho, method, relation_of(person["neighbors"]))
