r"""Trees: the noisy counts of a tree's nodes."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from dpq_fast._checks import (
    MAX_LEAVES,
    check_choice,
    check_count,
    check_delta,
    check_max_contributions,
    check_ratio,
    check_tree,
    children_of,
)
from dpq_fast.noise.counts import COUNT_NOISES, CountNoise
from dpq_fast.privacy.budgets import resolve_epsilon
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import laplace_rho, pure_rho

# How many records there are, where nothing is said about it.
DEFAULT_N = 10_000
# The standard deviation of the records is guessed to be this share of the range.
SPREAD = 1.0 / 40.0


class _Error(NamedTuple):
    """Constants of the formula of `shape_of`, and the power of h that noise grows with."""

    power: float
    height: float
    branching: float
    noise: float
    leaves: float
    decay: float
    points: float


# Fitted to simulations.
_LAPLACE = _Error(1.0, height=0.87, branching=0.65, noise=7.0, leaves=9.0, decay=1.7, points=30.0)
_GAUSSIAN = _Error(0.5, height=0.3, branching=0.85, noise=15.0, leaves=60.0, decay=1.3, points=0.0)
# More than noise can be for: a float64 number still.
_LARGEST = Fraction(2) ** 200
# Less than noise can matter.
_LEAST = 1e-200


class Calibration(NamedTuple):
    """What a tree of noisy counts spends and guarantees.

    Attributes
    ----------
    height : int
        Levels below the root: those that are noised.
    branching : int
        Children of a node.
    noise : CountNoise
        Of each count below the root.
    epsilon, rho : float
        The budget as it was given.
    sensitivity, squared : int
        `sensitivities` of all counts.
    relation : Relation
    """

    height: int
    branching: int
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


def shape_of(
    height: Any,
    branching: Any,
    points: int | None,
    expected_n: int | None = None,
    deviation: float = 2.0 * math.sqrt(2.0),
    gaussian: bool = False,
    spread: float = SPREAD,
) -> tuple[int, int]:
    r"""Height and branching of a tree: as they are given, else by what the error is expected to be.

    Parameters
    ----------
    height, branching : int or None
        Levels h below the root, and children b of a node.
    points : int or None
        Number of lattice points: a tree has no more levels than it takes to give each a leaf.
    expected_n : int, optional
        About how many records there are. Default: 10,000.
    deviation : float
        Checked. The standard deviation of the noise of a tree of height 1. Default: discrete
        Laplace noise for an epsilon of 1 under "swap".
    gaussian : bool, default False
        Checked. Whether the noise is Gaussian: its standard deviation grows with the square root of
        the height, and that of other noise with the height.
    spread : float
        Checked. A guess at the standard deviation of the records, as a share of the range. Default:
        1/40.

    Returns
    -------
    height, branching : int

    Notes
    -----
    The tree of the smallest

    .. math:: h^\alpha b^\beta \frac{\sigma_h}{C n} + (\kappa s L)^{-\gamma} + t,\quad L = b^h,

    an estimate of the rank error of a quantile as a share of all n records. The first term is
    noise: :math:`\sigma_h` is that of one node, and it grows with the nodes that hold records. The
    others are what is lost inside leaves: nothing where each of the P points is a leaf. Else
    :math:`t = 1/P` stands for ties, and s is the spread or, on few points, d points, but no
    more than that of uniform records. Branchings that leave points together in leaves are even:
    the middle of the bounds, which is 0 where they are symmetric, is an edge then.

    The numbers were fitted to simulated errors of quantiles at nine levels, by masses that are not
    negative:

    ======== ============== ============= ========= ============== ============== =========
    noise    :math:`\alpha` :math:`\beta` :math:`C` :math:`\kappa` :math:`\gamma` :math:`d`
    ======== ============== ============= ========= ============== ============== =========
    Laplace  0.87           0.65          7         9              1.7            30
    Gaussian 0.3            0.85          15        60             1.3            0
    ======== ============== ============= ========= ============== ============== =========

    Laplace noise: normal, lognormal and Cauchy records, for :math:`n \epsilon` from 30 to 10,000.
    Gaussian noise: N(0, 5) and lognormal(0, 1) in ±100, Cauchy in ±1,000 (a tenth of the weight),
    ages and hours of work (101 points), n from 1,000 to 100,000 and rho from .005 to 5, under
    "swap": the mean of the logarithm of the error over that of the best of 60 shapes, without
    more error for N(0, 5) than before. It comes out as binary trees of more levels the more
    records there are: a level costs little, and more leaves than it takes cost less than too few.

    Records in a part of the bounds that is much narrower than 1/40 need more leaves than that. No
    tree with the same noise in all nodes is good for both: where :math:`n \epsilon = 10^4`, one
    that is near the best for a share of 1/4,000 has three times the error of the best for 1/40.
    """
    if points is not None:
        check_count("points", points, 2)
    if height is not None:
        height = check_count("height", height)
    if branching is not None:
        branching = check_count("branching", branching, 2)
    n = expected_records(expected_n, 1)
    if height is None or branching is None:
        share = deviation / n
        _, height, branching = _best_shape(height, branching, points, share, gaussian, spread)
    return check_tree(height, branching, points)


def expected_records(expected_n: Any, max_contributions: int) -> int:
    """About how many records there are: those of 10,000 persons, if nobody says."""
    if expected_n is None:
        return DEFAULT_N * max_contributions
    return check_count("expected_n", expected_n)


def least_error(points: int | None, expected_n: int, deviation: float) -> tuple[float, bool]:
    """What `shape_of` expects of the shape that it chooses, with Laplace noise.

    Parameters
    ----------
    points, expected_n, deviation
        As for `shape_of`.

    Returns
    -------
    error : float
        A share of the records.
    exact : bool
        Whether each lattice point is a leaf.
    """
    share = deviation / expected_n
    error, height, branching = _best_shape(None, None, points, share, False, SPREAD)
    return error, points is not None and branching**height >= points


@lru_cache(maxsize=1024)  # public facts only
def _best_shape(
    height: int | None,
    branching: int | None,
    points: int | None,
    deviation: float,
    gaussian: bool,
    spread: float,
) -> tuple[float, int, int]:
    """The smallest expected error, and its shape; `deviation` is a share of the records."""
    of = _GAUSSIAN if gaussian else _LAPLACE
    if points is not None:
        spread = max(spread, min(of.points / points, 12.0**-0.5))
    best = math.inf, height or 1, branching or 2
    for h in range(1, 27) if height is None else (height,):
        if h * math.log2(branching or 2) > 26.0:
            break
        noise = max(deviation * h ** (of.power + of.height) / of.noise, _LEAST)
        if noise * 2.0**of.branching >= best[0]:
            break
        if branching is not None:
            tried = {branching}
        else:
            most = max(2, int(MAX_LEAVES ** (1.0 / h) + 1e-9))
            most = most if points is None else min(most, children_of(points, h))
            # where the derivative by ln b is 0
            least = of.decay * h * (of.leaves * spread) ** -of.decay / (of.branching * noise)
            even = max(2, int(least ** (1.0 / (of.branching + of.decay * h))) // 2 * 2)
            tried = {min(even, most), min(even + 2, most), most}
        for b in tried:
            best = min(best, (expected_error(h, b, points, deviation, gaussian, spread), h, b))
    return best


def expected_error(
    height: int,
    branching: int,
    points: int | None,
    deviation: float,
    gaussian: bool,
    spread: float,
) -> float:
    """The formula of `shape_of`; `deviation` is a share of the records."""
    of = _GAUSSIAN if gaussian else _LAPLACE
    noise: float = max(deviation * height ** (of.power + of.height) / of.noise, _LEAST)
    noise *= branching**of.branching
    leaves: int = branching**height
    if points is not None and leaves >= points:
        return noise
    inside: float = (of.leaves * spread * leaves) ** -of.decay
    return noise + inside + (0.0 if points is None else 1.0 / points)


def calibrate(
    q: Any = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    height: int | None = None,
    branching: int | None = None,
    points: int | None = None,
    expected_n: int | None = None,
    noise: str = "geometric",
    neighbors: str = "swap",
    max_contributions: int = 1,
    spread: float = SPREAD,
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
    expected_n : int, optional
        About how many records there are: what the shape is chosen for (`shape_of`). A release takes
        their number where that is public. Default: 10,000.
    noise : {"geometric", "laplace", "gaussian"}
        The noise.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.
    spread : float
        As in `shape_of`, checked.

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
    resolve_epsilon(epsilon, rho)  # exactly one of them, and positive
    kind = COUNT_NOISES[check_choice("noise", noise, tuple(COUNT_NOISES))]
    budget = "epsilon" if rho is None else "rho"
    if kind.budget != budget:
        raise ValueError(
            f"noise must be 'gaussian' with rho, and not with epsilon, got {noise!r} with {budget}"
        )
    relation = relation_of(neighbors)
    value = Fraction(*check_ratio(budget, epsilon if rho is None else rho))
    k = check_max_contributions(max_contributions)
    if rho is None:
        deviation = math.sqrt(2.0) * float(min(k * relation.parts / value, _LARGEST))
    else:
        deviation = k * math.sqrt(float(min(relation.parts / (2 * value), _LARGEST)))
    noise_of = deviation, rho is not None
    n = expected_records(expected_n, k)
    height, branching = shape_of(height, branching, points, n, *noise_of, spread)
    sensitivity, squared = sensitivities(height, relation, max_contributions)
    one = kind.calibrated(sensitivity, squared, value)
    epsilon = None if epsilon is None else float(epsilon)
    return Calibration(height, branching, one, epsilon, rho, sensitivity, squared, relation)
