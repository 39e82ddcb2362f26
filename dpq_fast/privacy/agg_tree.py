r"""Trees: the noisy counts of a tree's nodes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from dpq_fast._checks import (
    check_choice,
    check_count,
    check_delta,
    check_max_contributions,
    check_ratio,
    check_tree,
)
from dpq_fast.noise.counts import COUNT_NOISES, CountNoise
from dpq_fast.privacy.budgets import resolve_epsilon
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import laplace_rho, pure_rho


class Calibration(NamedTuple):
    """What a tree of noisy counts spends and guarantees.

    Attributes
    ----------
    height : int
        Levels below the root: those that are noised.
    branching : int or None
        Children of a node, where it is known.
    noise : CountNoise
        Of each count below the root.
    epsilon, rho : float
        The budget as it was given.
    sensitivity, squared : int
        `sensitivities` of all counts.
    relation : Relation
    """

    height: int
    branching: int | None
    noise: CountNoise
    epsilon: float | None
    rho: float | None
    sensitivity: int
    squared: int
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        r"""All counts of one tree, whatever is read off them.

        A count that changes by d is d changes by one, so it costs :math:`d^2` times the rho of one
        [BS16], and these add up to :math:`\Delta_2^2` times that.
        """
        if self.epsilon is None:
            return Guarantee(None, 0.0, self.rho, None, self.relation.name)
        one = 1.0 / float(self.noise.scale)
        rho = self.squared * (laplace_rho if self.noise.name == "laplace" else pure_rho)(one)
        return Guarantee(self.epsilon, 0.0, rho, None, self.relation.name)


def sensitivities(height: int, relation: Relation, max_contributions: int = 1) -> tuple[int, int]:
    r"""L1 sensitivity of all noised counts of a tree, and the square of their L2 sensitivity.

    Parameters
    ----------
    height : int
        Levels below the root, at least 1: those that are noised.
    relation : Relation
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    (int, int)
        :math:`k t` and :math:`k^2 t` for t the L0 sensitivity, the number of counts that one
        record's change can reach: h for "add-remove", 2h for "swap".

    Notes
    -----
    A record is counted in one node of each level, [GJK21] Section 5.1. Added or removed, it
    changes h counts by one each. Replaced, it leaves one node of a level and enters another (or
    the same, and nothing changes): 2h counts. A record that is left out (NaN), before or after,
    makes it an addition or a removal: covered by 2h.

    k records of one person are k such vectors. They may be the same one, so the lengths add up:
    k times as much in either norm, and the square of the L2 norm grows by k^2.

    The root is not noised. It is the number of records where that is public (the caller's proof:
    "swap", and no record can be left out), else the sum of its noised children.
    """
    k = check_max_contributions(max_contributions)
    reached = check_count("height", height) * relation.parts
    return k * reached, k * k * reached


def shape_of(height: Any, branching: Any, points: int | None) -> tuple[int, int]:
    """Height and branching of a tree on a lattice of so many points; the defaults without one."""
    if points is not None:
        return check_tree(height, branching, check_count("points", points, 2))
    return 3 if height is None else height, 10 if branching is None else branching


def calibrate(
    q: Any = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    height: int | None = None,
    branching: int | None = None,
    points: int | None = None,
    noise: str = "geometric",
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Calibration:
    r"""The scale of the independent noise of each count of a tree, below its root.

    Parameters
    ----------
    q : optional
        The levels of `agg_tree`: they are read off the tree, and cost nothing.
    epsilon, rho : float
        Total budget, per person: `rho` for "gaussian", `epsilon` for the others.
    delta : float, default 0
        Allowed, not used.
    height, branching : int, optional
        The tree.
    points : int, optional
        Number of lattice points: a tree has no more levels than it takes to give each a leaf.
    noise : {"geometric", "laplace", "gaussian"}
        The noise.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    Calibration
        With a scale of :math:`\Delta_1 / \epsilon` exactly; for "gaussian" the sigma
        :math:`\Delta_2 / \sqrt{2 \rho}`, rounded up.

    Notes
    -----
    *Proof.* Counts are integers. For (discrete or continuous) Laplace noise of scale s, the log
    ratio of the laws of neighbors is at most :math:`\sum_v |c_v - c'_v| / s \le \Delta_1 / s`,
    and it is that much where every output lies beyond c_v, seen from c'_v. For discrete Gaussian
    noise the release is :math:`\Delta_2^2 / (2 \sigma^2)`-zCDP [CKS20, Theorem 14].
    """
    check_delta(delta)
    height, branching = shape_of(height, branching, points)
    resolve_epsilon(epsilon, rho)  # exactly one of them, and positive
    kind = COUNT_NOISES[check_choice("noise", noise, tuple(COUNT_NOISES))]
    budget = "epsilon" if rho is None else "rho"
    if kind.budget != budget:
        raise ValueError(
            f"noise must be 'gaussian' with rho, and not with epsilon, got {noise!r} with {budget}"
        )
    relation = relation_of(neighbors)
    sensitivity, squared = sensitivities(height, relation, max_contributions)
    value = Fraction(*check_ratio(budget, epsilon if rho is None else rho))
    one = kind.calibrated(sensitivity, squared, value)
    epsilon = None if epsilon is None else float(epsilon)
    return Calibration(height, branching, one, epsilon, rho, sensitivity, squared, relation)
