r"""The unbounded quantile: one search, two, or a recursion of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from dpq_fast._checks import check_flag, check_max_contributions
from dpq_fast.noise.threshold import ThresholdNoise
from dpq_fast.privacy.above_threshold import counting_losses, noise_of, threshold_fraction
from dpq_fast.privacy.approx_quantiles import calibrate as calibrate_recursion
from dpq_fast.privacy.budgets import check_steps, resolve_epsilon
from dpq_fast.privacy.guarantees import Guarantee, total
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import bounded_range_rho, largest_for_rho, rho_bounded_range


class Calibration(NamedTuple):
    """What a call of `unbounded_quantile` spends and guarantees.

    Attributes
    ----------
    way : {"up", "down", "both"}
        `way_of` the search.
    noise : ThresholdNoise
    step_epsilons : list of (float, float)
        The two epsilons of AboveThreshold for each level, or for each step of the recursion; the
        sensitivity of the queries is 1.
    promise : callable
        Makes the guarantee, which is not asked for where nobody is charged.
    """

    way: str
    noise: ThresholdNoise
    step_epsilons: list[tuple[float, float]]
    promise: Callable[[], Guarantee]

    @property
    def guarantee(self) -> Guarantee:
        """One search, two, or a recursion of them."""
        return self.promise()


def way_of(lower: float | None, upper: float | None, invert: bool) -> str:
    """Which way is searched: "up" from `lower`, "down" from `upper`, or "both".

    Inverted data ascend where the data descend, so `invert` turns the way round.
    """
    if lower is None and upper is None:
        if invert:
            raise ValueError("invert must be False if neither lower nor upper is given, got True")
        return "both"
    return "down" if (lower is None) != check_flag("invert", invert) else "up"


class _Costs(NamedTuple):
    """What one call costs, per unit of epsilon1 + epsilon2.

    Attributes
    ----------
    epsilon : float
    one, same : tuple of float
        The range of each search, where one record is added or removed, and where it is replaced.
    relation : Relation
    """

    epsilon: float
    one: tuple[float, ...]
    same: tuple[float, ...]
    relation: Relation

    @property
    def bounded_range(self) -> float:
        """Of one search."""
        return self.relation.worst(one=self.one[0], same=self.same[0])

    def rho(self, unit: float) -> float:
        """Of a call that spends `unit`: the searches have noise of their own."""
        if max(*self.one, *self.same) * unit == math.inf:
            return math.inf
        one, same = (
            sum(bounded_range_rho(each * unit) for each in ranges)
            for ranges in (self.one, self.same)
        )
        return self.relation.worst(one=one, same=same)

    def unit_for(self, rho: float) -> float:
        """What a call of `rho` may spend."""
        longest = rho_bounded_range(rho)
        if len(self.one) == 1:
            return longest / self.bounded_range
        # rho is convex: two ranges of half the length cost no more than the whole one
        return largest_for_rho(self.rho, rho, 0.5 * longest / max(*self.one, *self.same))


def costs_of(q: float, relation: Relation, way: str, fraction: float) -> _Costs:
    r"""What one call costs, per unit of epsilon1 + epsilon2.

    Parameters
    ----------
    q : float
        The level, in [0, 1].
    relation : Relation
    way : {"up", "down", "both"}
        `way_of` the search.
    fraction : float
        :math:`\epsilon_1 / (\epsilon_1 + \epsilon_2)`.

    Returns
    -------
    _Costs

    Notes
    -----
    The threshold is q times the number of records kept, which is private where a record is added
    or removed, and where a replaced record is left out or was: it moves with the data.

    - A record replaced, "up" or "down": with n fixed the queries are monotonic [Dur23, Lemma 4.1],
      and the call costs :math:`\epsilon_1 + \epsilon_2`, with range
      :math:`\epsilon_1 + 2\epsilon_2` [Dur23, Lemma A.3].
    - One record more or less: :math:`\max\{(1-q)\epsilon_1,\ q\epsilon_1 + \epsilon_2\}` for "up"
      [Dur23, Lemma B.1]; "down" is the mirrored data at level 1 - q. Range: the sum of both
      directions [Dur23, Corollary A.2]. Neither is more than those of a replacement.
    - "both": two calls, one of each. Differs from [Dur23], which adds up their epsilons, to
      :math:`2(\epsilon_1 + \epsilon_2)` for a replacement: a record that moves up lowers the
      queries of the first call and raises those of the second, and the loss is
      :math:`\epsilon_1 + \epsilon_2` in the one and :math:`\epsilon_2` in the other [Dur23, proof
      of Lemma A.3], in sum :math:`\epsilon_1 + 2\epsilon_2`, whichever data set is the first. One
      record more or less:
      :math:`(q\epsilon_1 + \epsilon_2) + ((1-q)\epsilon_1 + \epsilon_2)`, the same.
    """
    whole = 1.0 + (1.0 - fraction)  # epsilon1 + 2 epsilon2
    if way == "down":
        q = 1.0 - q  # the mirrored data, and its level
    removal, addition = map(float, counting_losses(q, fraction))
    one: tuple[float, ...] = (removal + addition,)
    if way == "both":
        other = float(sum(counting_losses(1.0 - q, fraction)))
        return _Costs(whole, (*one, other), (whole, whole), relation)
    epsilon = relation.worst(one=max(removal, addition), same=1.0)
    return _Costs(epsilon, one, (whole,), relation)


def calibrate(
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    lower: float | None = 0.0,
    upper: float | None = None,
    invert: bool = False,
    split: float | None = None,
    noise: str = "exponential",
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Calibration:
    r"""The two epsilons of AboveThreshold for each search.

    Parameters
    ----------
    q : float, array_like or Levels
        The levels. Of several, the middle one is searched first, and the parts then
        (`privacy.approx_quantiles`); "both" ways, each level by itself.
    epsilon, rho : float
        Total budget of the call, per person: exactly one.
    lower, upper, invert
        The search, see `way_of`.
    split : float, optional
        :math:`\epsilon_1 / (\epsilon_1 + \epsilon_2)`; the default is that of the noise.
    noise : {"exponential", "laplace", "gumbel"}
        The noise.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    Calibration
        Its guarantee has a range for one search only.
    """
    levels = Levels.of(q)
    kind = noise_of(noise)
    way = way_of(lower, upper, invert)
    k, m = check_max_contributions(max_contributions), levels.m
    fraction = threshold_fraction(split, kind)
    relation = relation_of(neighbors)
    if m > 1 and way != "both":
        recursion = calibrate_recursion(
            levels.mirrored() if way == "down" else levels,
            epsilon=epsilon,
            rho=rho,
            base="unbounded",
            split=fraction,
            neighbors=neighbors,
            max_contributions=k,
        )
        sums = recursion.steps.tolist()
        step_epsilons = [(fraction * one, (1.0 - fraction) * one) for one in sums]
        return Calibration(way, kind, step_epsilons, lambda: recursion.guarantee)
    each = resolve_epsilon(epsilon, rho, m)
    step_epsilons, spent = [], []
    for level in levels.values.tolist():
        costs = costs_of(level, relation, way, fraction)
        unit = each / costs.epsilon if rho is None else costs.unit_for(rho / m)
        step_epsilons.append(check_steps((fraction * unit / k, (1.0 - fraction) * unit / k)))
        spent.append((costs, unit))

    def promise() -> Guarantee:
        """Of levels by themselves."""
        costs, unit = spent[-1]
        bounded_range = total([costs.bounded_range * unit]) if way != "both" else None
        if epsilon is None:
            all_epsilon = total(costs.epsilon * unit for costs, unit in spent)
            budget, composition = (all_epsilon, 0.0, rho), "zcdp"
        else:
            all_rho = total(costs.rho(unit) for costs, unit in spent)
            budget, composition = (epsilon, 0.0, all_rho), "basic"
        theorem = composition if m > 1 else ""
        return Guarantee(*budget, bounded_range, relation.name, theorem)

    return Calibration(way, kind, step_epsilons, promise)
