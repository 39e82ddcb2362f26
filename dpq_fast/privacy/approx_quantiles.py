r"""Approximate quantiles: the middle level of each part of the records, depth by depth."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import check_choice, check_max_contributions
from dpq_fast.privacy.above_threshold import check_fraction, counting_losses
from dpq_fast.privacy.budgets import MAX_RATE, check_steps, resolve_epsilon
from dpq_fast.privacy.guarantees import Guarantee, total
from dpq_fast.privacy.levels import Levels, splits
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import bounded_range_rho, largest_for_rho, rho_bounded_range

BASES = ("ind_exp", "unbounded")


class Calibration(NamedTuple):
    r"""What a call of `approx_quantiles` spends and guarantees.

    Attributes
    ----------
    steps : ndarray of float64, shape (m,)
        In the order of `levels.splits`, at most 2^16: the rate c of :math:`e^{-c|r - T|}` for base
        "ind_exp"; :math:`\epsilon_1 + \epsilon_2` for "unbounded".
    losses : list
        Of each depth, per unit of its steps.
    k : int
        Records per person.
    epsilon, rho : float
        The budget as it was given.
    relation : Relation
    """

    steps: NDArray[np.float64]
    losses: list[_Losses]
    k: int
    epsilon: float | None
    rho: float | None
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """Adaptive composition over the depths of the recursion: epsilons add up, and rhos."""
        spent, scaled = self.k * self.steps, []
        for losses in self.losses:
            scaled.append(losses.scaled(spent[: losses.same.size]))
            spent = spent[losses.same.size :]
        epsilon, rho = self.epsilon, self.rho
        if epsilon is None:
            epsilon = total(losses.epsilon(self.relation) for losses in scaled)
            theorem = "zcdp"
        else:
            rho = total(losses.rho(self.relation) for losses in scaled)
            theorem = "basic"
        theorem = theorem if len(scaled) > 1 else ""
        return Guarantee(epsilon, 0.0, rho, None, self.relation.name, theorem)


class _Losses(NamedTuple):
    """What the steps of a recursion cost, per unit of their scales; arrays over some steps.

    Attributes
    ----------
    same : ndarray
        Epsilon where one record of the step's part is replaced inside it.
    removal, addition : ndarray
        One-sided epsilon where its part has one record more, or one less, than the neighbor's.
    same_range, one_range : ndarray
        Ranges of the two cases.
    """

    same: NDArray[np.float64]
    removal: NDArray[np.float64]
    addition: NDArray[np.float64]
    same_range: NDArray[np.float64]
    one_range: NDArray[np.float64]

    def scaled(self, scale: NDArray[np.float64] | float) -> _Losses:
        """The losses of steps that spend `scale` times as much."""
        return _Losses(*(loss * scale for loss in self))

    def epsilon(self, relation: Relation) -> float:
        """Loss of all steps of one depth together, for the worst record."""
        return relation.worst(
            one=float(np.maximum(self.removal, self.addition).max()),
            same=float(self.same.max()),
            moved=_two_different(self.removal, self.addition),
        )

    def rho(self, relation: Relation, scale: float = 1.0) -> float:
        """Their rho: the sum of those of the ranges that the worst record changes."""
        rhos = np.array([bounded_range_rho(scale * each) for each in self.one_range.tolist()])
        return relation.worst(
            one=float(rhos.max()),
            same=bounded_range_rho(scale * float(self.same_range.max())),
            moved=_two_different(rhos, rhos),
        )


def _two_different(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The largest a[u] + b[v] with u != v; 0 if there is one entry only."""
    if a.size == 1:
        return 0.0
    u, v = int(a.argmax()), int(b.argmax())
    if u != v:
        return float(a[u] + b[v])
    return float(max(a[u] + np.delete(b, u).max(), np.delete(a, u).max() + b[u]))


@lru_cache(maxsize=256)  # of public levels: a program asks for few, again and again
def _losses_by_depth(q: tuple[float, ...], base: str, fraction: float) -> list[_Losses]:
    """The losses of the steps of each depth, per unit of what they spend."""
    steps, by_depth = splits(np.array(q)), []
    for depth in range(steps[-1].depth + 1):
        local = np.array([step.local for step in steps if step.depth == depth])
        if base == "ind_exp":  # per unit of the rate: see `privacy.ind_exp`
            one, same = 2.0 * np.maximum(local, 1.0 - local), np.full(local.size, 2.0)
            by_depth.append(_Losses(same, one, one, same, one))
        else:  # per unit of epsilon1 + epsilon2: see `privacy.unbounded_quantile`
            removal, addition = counting_losses(local, fraction)
            whole = np.ones(local.size)
            ranges = _Losses(whole, removal, addition, (2.0 - fraction) * whole, removal + addition)
            by_depth.append(ranges)
    return by_depth


def calibrate(
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    base: str = "ind_exp",
    split: float = 2.0 / 3.0,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Calibration:
    r"""What each step of the recursion spends: its rate, or its epsilon1 + epsilon2.

    Parameters
    ----------
    q : float, array_like or Levels
        The levels.
    epsilon, rho : float
        Total budget, per person: exactly one.
    base : {"ind_exp", "unbounded"}
        What releases the middle level of a part.
    split : float, default 2/3
        For "unbounded", the share of epsilon1.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    Calibration

    Notes
    -----
    [KSS22]: one record is in one part of each of the :math:`L = \lceil\log_2(m+1)\rceil` depths,
    whatever was released before. Each depth gets `epsilon` / L (or `rho` / L), and the steps
    within it spend the most for which the worst record costs no more:

    - "add-remove": one step changes, whose target :math:`\hat q` times the records of its part
      moves with the data (targets fixed at q_j n would move in every part).
    - "swap": a record is replaced inside a part, which changes one step with a fixed target, or
      moves from a part to another, a removal in one step and an addition in another. A record
      left out makes one of the two.

    Under "swap" two add-remove losses per depth do not cover the replacement inside a part: for an
    exponential mechanism at :math:`\hat q = 1/2` that one alone has twice the add-remove range,
    so in zCDP it costs up to four times one add-remove loss, more than the sum of two.

    k records of one person are k such changes. Their ranges are the mean of k times those of each,
    and rho is convex in the ranges: the worst are k times those of one record. The rho of a depth
    holds whatever was released before, so that they add up [BS16].
    """
    levels = Levels.of(q)
    k = check_max_contributions(max_contributions)
    relation = relation_of(neighbors)
    check_choice("base", base, BASES)
    recursion = tuple(levels.values.tolist()), base, check_fraction(split)
    by_depth = _losses_by_depth(*recursion)
    whole = resolve_epsilon(epsilon, rho, len(by_depth))
    if rho is None:
        spent = whole * _unit_steps(*recursion, relation)
    else:
        spent = _steps_for_rho(*recursion, relation, float(rho) / len(by_depth))
    steps = check_steps(np.minimum(spent / k, MAX_RATE))
    return Calibration(steps, by_depth, k, epsilon, rho, relation)


@lru_cache(maxsize=256)
def _unit_steps(
    q: tuple[float, ...], base: str, fraction: float, relation: Relation
) -> NDArray[np.float64]:
    """What the steps spend for an epsilon of 1 in each depth."""
    steps = []
    for losses in _losses_by_depth(q, base, fraction):
        if relation.parts > 1:
            steps.append(np.full(losses.same.size, 1.0 / losses.epsilon(relation)))
        else:
            steps.append(1.0 / np.maximum(losses.removal, losses.addition))
    return np.concatenate(steps)


@lru_cache(maxsize=256)
def _steps_for_rho(
    q: tuple[float, ...], base: str, fraction: float, relation: Relation, rho: float
) -> NDArray[np.float64]:
    """What the steps spend for `rho` in each depth."""
    steps, longest = [], rho_bounded_range(rho)
    for losses in _losses_by_depth(q, base, fraction):
        if relation.parts > 1:
            # rho is convex: two ranges of half the length cost no more than the whole one
            widest = float(max(losses.same_range.max(), losses.one_range.max()))
            scale = largest_for_rho(partial(losses.rho, relation), rho, 0.5 * longest / widest)
            steps.append(np.full(losses.same.size, scale))
        else:
            steps.append(longest / losses.one_range)
    return np.concatenate(steps)
