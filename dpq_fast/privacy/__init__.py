r"""Every formula that touches epsilon: sensitivities, rates, composition, guarantees, budgets.

**Neighboring relations.** Each statement holds for one of two relations between data sets.

- ``"swap"``: one record is replaced by another; the number n of records is public. Records that
  are left out (NaN with ``nan_policy="omit"``) stay records: how many there are is private, so
  the number *kept* may change by one between neighbors.
- ``"add-remove"``: one record is added or removed; n is private.

With ``max_contributions=k`` the same relations hold for persons of up to k records, who come, go
or change all their records together.

**Bounded range.** A mechanism has range at most b if, for neighbors x and x', the log ratio
:math:`\ln P_x(o) - \ln P_{x'}(o)` over all outputs o stays in an interval of length b, that is in
[t - b, t] for some t in [0, b] [DDR20]. It is then b-DP, and :math:`b^2/8`-zCDP [CR21]. The
exponential mechanism with weights :math:`\exp(c\,u(x, o))` has range :math:`2 c \Delta`: the
utility moves by at most :math:`\Delta` up or down, and the normalization shifts all outputs
alike. Hence the rate :math:`c = \epsilon / 2\Delta`.

**Dither.** On a lattice, a release may first move each record at random inside its cell, each by
itself, and then run its mechanism: on x it has the mixture :math:`P_x = E_w P_{x,w}` of the
mechanism's laws given the dithers w. Couple the dithers of neighbors record by record: those of
the records in common are the same, so that given the dithers the data sets are neighbors again.
What is proved for the mechanism then holds for both laws of each pair that is mixed, and

- (epsilon, delta) holds for the mixtures: the hockey-stick divergence
  :math:`\sup_S P(S) - e^\epsilon P'(S)` is jointly convex, so that of the mixtures is at most the
  largest of those mixed;
- rho holds for them: so is :math:`e^{(\alpha - 1) D_\alpha} = E_{P'}[(P/P')^\alpha]`, the
  perspective of a convex function, for every :math:`\alpha > 1`;
- the range need not: one dither may raise the ratio of one output, and another dither lower that
  of another output. JointExp of epsilon 4 for the levels .2 and .8 of 0, 1, 1, 2, 3 has the range
  4.008 under "swap" with one bit of dither.

So a range is stated *given the dithers* (`Guarantee.bounded_range`). Nothing else is needed where
it is used: whatever follows from the ranges of some mechanisms and is an (epsilon, delta) or a rho
holds given the dithers of all of them, whether they share one or each has its own, and hence, by
the above, without. Ranges along a chain of neighbors add up given the dithers of all of them.

Ranges add up along a chain of neighbors, so k records of one person cost k times the range of one
record: dividing the rate by k makes every statement below a statement about persons.

**Rounding.** What is solved numerically is rounded against the caller: the formula evaluated at
the answer always satisfies the bound that was asked for.

Keys ([GJK21], [DDR20], ...) are listed in the README, "Papers"; [DDR20] Theorem 3 is quoted as
[GJK21] Lemma 12, [CKS20] is Canonne, Kamath and Steinke 2020.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpq_fast._checks import (
    FEW_POINTS,
    MOST,
    check_choice,
    check_count,
    check_delta,
    check_epsilon,
    check_flag,
    check_max_contributions,
    check_neighbors,
    check_nonnegative,
    check_ratio,
    check_rho,
    check_tree,
    real_array,
)
from dpq_fast.laws.halting import NOISES
from dpq_fast.privacy.levels import Levels, Split, splits

# Sums of float budgets: ten charges of 0.1 must fit a budget of 1.0.
SUM_TOLERANCE = 1e-12
# Rounding error of the logarithm of Lemma 12's delta, per mechanism; what is solved from it keeps
# a distance of this times m + 10^4, several times what was measured against mpmath.
_LOG_DELTA_ERROR = 1e-15
# Relative error of Mills' ratio, many times that of SciPy's erfcx; and the difference of two
# arguments below which that of their ratios is a series.
_MILLS_ERROR, _TAYLOR_STEP = 2.0**-46, 2.0**-7
# Steps of a search for a root, most of them bisections where it is near an end of a flat stretch;
# twice as many as any was seen to take.
_MOST_STEPS = 400
# Share of epsilon1: the probability of k more steps than needed falls like k^-(split/(1 - split)),
# so an even split has an error without a mean, in practice, too; see the notes of
# `unbounded_quantile`. Gumbel noise has no choice.
SPLIT, SPLIT_GUMBEL = 2.0 / 3.0, 0.5
# The least rate of a draw, and what a step of a search or of a recursion has to spend at least.
LEAST_SCALE = 1e-305
# Larger rates are held there, which costs nothing: e^-65536 for each rank already makes every
# answer but the best one impossible in practice, whatever the widths of the intervals. And a rate
# times a number of records stays so small that the kernels tell all losses apart, or the records
# would decide whether a huge epsilon works.
MOST_RATE = 2.0**16
# Epsilons whose rho, about the square of the lesser ones, is far from the ends of float64.
CONVERTIBLE = (1e-140, 1e300)
# Most mechanisms that are composed optimally: seconds, and quadratic in their number.
MOST_COMPOSED = 2**15
# Their ranges, and the sum of these: far from the ends of float64.
COMPOSABLE = (1e-290, 1e290)
# Most quantiles that a distribution function is made of.
MOST_LEVELS = 2**20
# Elements of the matrix (l, i) evaluated at once in Lemma 12: 2 MB per temporary array.
_BLOCK = 2**18


# --- Scales and rates -----------------------------------------------------------------------------


def _check_step(scale: float) -> float:
    """The scale of a step, if it is not so small that what is divided by it overflows.

    Were it not refused here, by public arguments alone, how many records there are would decide
    whether something is divided by it.
    """
    if scale < LEAST_SCALE:
        raise ValueError(
            f"epsilon or rho must leave at least {LEAST_SCALE} for each step, got {scale}"
        )
    return scale


def _check_steps(scales: Any) -> Any:
    """`_check_step` for some steps."""
    _check_step(float(np.min(scales)))
    return scales


# --- JointExp -------------------------------------------------------------------------------------


def joint_exp_sensitivity(q: NDArray[np.float64], neighbors: str) -> float:
    r"""Sensitivity of JointExp's utility.

    The utility is :math:`u = -\sum_{j=1}^{m+1} |n(o_{j-1}, o_j) - (q_j - q_{j-1}) n|`.

    Parameters
    ----------
    q : ndarray of float64, shape (m,)
        Distinct levels in [0, 1], ascending.
    neighbors : {"swap", "add-remove"}
        The neighboring relation.

    Returns
    -------
    float
        2 for "swap", :math:`2 (1 - \min_j (q_j - q_{j-1}))` over j = 1..m+1 for "add-remove",
        with :math:`q_0 = 0`, :math:`q_{m+1} = 1`.

    Notes
    -----
    Under "swap" a record that is left out may be replaced by one that is kept, or the other way
    round: for the utility an addition or a removal. The value for "add-remove" never exceeds the
    one for "swap", so the latter covers both.
    """
    if check_neighbors(neighbors) == "swap":
        return 2.0  # [GJK21] Lemma 3: two of the counts change, each by at most one
    # [GJK21] Lemma 10: the interval of the new record is 1 - (q_j - q_{j-1}) off, the others
    # q_j - q_{j-1} each, in total 2(1 - gap) for the gap the record fell into.
    levels = q.tolist()
    narrowest = min(
        upper - lower for lower, upper in zip([0.0, *levels], [*levels, 1.0], strict=True)
    )
    return 2.0 * (1.0 - narrowest)


def joint_exp_rate(
    q: NDArray[np.float64], epsilon: float, neighbors: str, max_contributions: int = 1
) -> float:
    r"""Rate c of JointExp's weights :math:`\exp(c\,u)`: :math:`\epsilon / (2 \Delta k)`.

    Parameters
    ----------
    q : ndarray of float64, shape (m,)
        Distinct levels in [0, 1], ascending.
    epsilon : float
        Range bound of the whole release, per person. See `resolve_epsilon` for a `rho`.
    neighbors : {"swap", "add-remove"}
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    float
        The rate, 2^16 at most: the release has range, hence epsilon, at most `epsilon` [GJK21,
        Lemma 4].
    """
    k = check_max_contributions(max_contributions)
    rate = check_epsilon(epsilon) / (2.0 * joint_exp_sensitivity(q, neighbors) * k)
    return _check_step(min(rate, MOST_RATE))


# --- Groups ---------------------------------------------------------------------------------------


def quantile_by_rate(
    q: NDArray[np.float64],
    epsilon: float,
    neighbors: str,
    max_contributions: int = 1,
    public_by: bool = False,
) -> float:
    r"""Rate c of JointExp in each group of `quantile_by`, for `epsilon` in total.

    Parameters
    ----------
    q : ndarray of float64, shape (m,)
        Distinct levels in [0, 1], ascending.
    epsilon : float
        Range bound of the whole call, per person.
    neighbors : {"swap", "add-remove"}
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person, in any groups.
    public_by : bool, default False
        Whether the keys are public, so that "swap" does not change them.

    Returns
    -------
    float
        With :math:`\Delta_{\pm}` the add-remove sensitivity (`joint_exp_sensitivity`):
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
    """
    if check_neighbors(neighbors) == "swap" and not public_by:
        return _check_step(joint_exp_rate(q, epsilon, "add-remove", max_contributions) / 2.0)
    return joint_exp_rate(q, epsilon, neighbors, max_contributions)


# --- IndExp ---------------------------------------------------------------------------------------


def ind_exp_sensitivity(q: NDArray[np.float64], neighbors: str) -> NDArray[np.float64]:
    r"""Sensitivities of the single-quantile utilities :math:`-|r - q_j n|`, r the rank of o.

    Parameters
    ----------
    q : ndarray of float64, shape (m,)
        Levels in [0, 1].
    neighbors : {"swap", "add-remove"}
        The neighboring relation.

    Returns
    -------
    ndarray of float64, shape (m,)
        1 for "swap": the rank moves by at most one, the target stays.
        max(q, 1-q) for "add-remove": the target moves by q, the rank by 0 or 1 in the same
        direction. Never more than 1, so "swap" covers the records that are left out (see
        `joint_exp_sensitivity`).
    """
    if check_neighbors(neighbors) == "swap":
        return np.ones(q.size)
    return np.maximum(q, 1.0 - q)


def ind_exp_epsilon_each(
    m: int, epsilon: float | None, delta: float = 0.0, rho: float | None = None
) -> float:
    r"""Range bound of each of m independent exponential mechanisms, per person.

    Parameters
    ----------
    m : int
        Number of distinct levels, at least 1.
    epsilon, delta : float
        Total budget. With ``delta=0`` basic composition, ``epsilon / m``; else the optimal
        non-adaptive composition of [DDR20], `bounded_range_epsilon_each`, which is never less.
    rho : float, optional
        Total zCDP budget instead of `epsilon`: :math:`\sqrt{8 \rho / m}`.

    Returns
    -------
    float
    """
    each = resolve_epsilon(epsilon, rho, m)
    delta = check_delta(delta)
    if delta == 0.0:
        return each
    if rho is not None:
        raise ValueError(f"delta must be 0 with rho, got {delta}")
    return bounded_range_epsilon_each(m, epsilon, delta)


def ind_exp_rates(
    q: NDArray[np.float64],
    epsilon: float | None,
    delta: float,
    neighbors: str,
    max_contributions: int = 1,
    rho: float | None = None,
) -> NDArray[np.float64]:
    r"""Rates :math:`c_j = \epsilon_{each} / (2 \Delta_j k)`, at most 2^16, of m releases.

    Parameters
    ----------
    q : ndarray of float64, shape (m,)
        Distinct levels in [0, 1].
    epsilon, delta, rho
        Total budget of the call, per person: see `ind_exp_epsilon_each`.
    neighbors : {"swap", "add-remove"}
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    ndarray of float64, shape (m,)

    Notes
    -----
    Each release has range :math:`\epsilon_{each}/k` per record, so at most
    :math:`\epsilon_{each}` per person, and Lemma 12 is applied to persons. This is never worse
    than group privacy on the result, which allows per record only :math:`(\epsilon/k, \delta')`
    with :math:`\delta' = \delta\,(e^{\epsilon/k} - 1)/(e^{\epsilon} - 1)`: the range bound is
    reached by k records along a chain, so whatever is sound for the chain passes Lemma 12.
    """
    k = check_max_contributions(max_contributions)
    each = ind_exp_epsilon_each(q.size, epsilon, delta, rho)
    rates = each / (2.0 * k * ind_exp_sensitivity(q, neighbors))
    return _check_steps(np.minimum(rates, MOST_RATE))


def resolve_epsilon(epsilon: float | None, rho: float | None, m: int = 1) -> float:
    r"""Range bound of each of m exponential mechanisms for a total of `epsilon` or of `rho`.

    Exactly one of the two must be given: :math:`\epsilon / m` by basic composition, or
    :math:`\sqrt{8 \rho / m}`, since range b is :math:`b^2/8`-zCDP [CR21] and rho adds up [BS16].
    """
    if (epsilon is None) == (rho is None):
        came = "neither" if rho is None else "both"
        raise ValueError(f"exactly one of epsilon and rho must be given, got {came}")
    m = check_count("m", m)
    if rho is None:
        return check_epsilon(epsilon) / m
    return math.sqrt(8.0 * check_rho(rho) / m)


# --- Unbounded quantiles --------------------------------------------------------------------------


def _unbounded_losses(q: Any, split: float) -> tuple[Any, Any]:
    r"""One-sided losses of AboveThreshold on :math:`f_i = \#\{x < t_i\} - q n`, ascending t_i.

    Per unit of :math:`\epsilon_1 + \epsilon_2`, with `split` the share of :math:`\epsilon_1`:
    the loss :math:`\epsilon(x, x')` ([Dur23] Definition A.1) where x has one record more than x',
    and where x' has one more.

    [Dur23] Lemma B.1, its proof: the queries of the larger data set are higher by 1 - q from some
    index on and lower by q before, so the two are :math:`q\epsilon_1 + \epsilon_2` and
    :math:`\max\{q\epsilon_2, (1-q)\epsilon_1\}`.
    """
    first, second = split, 1.0 - split
    return q * first + second, np.maximum(q * second, (1.0 - q) * first)


def _unbounded_cost(q: float, neighbors: str, search: str, split: float) -> tuple[float, float]:
    """Epsilon and 8 rho of one call, per unit of epsilon1 + epsilon2 and of its square."""
    whole = 1.0 + (1.0 - split)  # epsilon1 + 2 epsilon2
    if search == "down":
        q = 1.0 - q  # the mirrored data, and its level
    removal, addition = map(float, _unbounded_losses(q, split))
    if search == "both":
        if neighbors == "swap":
            return whole, 2.0 * whole * whole
        other = float(sum(_unbounded_losses(1.0 - q, split)))
        return whole, (removal + addition) ** 2 + other**2
    if neighbors == "swap":
        return 1.0, whole * whole
    return max(removal, addition), (removal + addition) ** 2


def check_split(split: Any, name: str = "split") -> float:
    """The share of epsilon1 in epsilon1 + epsilon2: a real number strictly between 0 and 1."""
    share = check_nonnegative(name, split)
    if 0.0 < share < 1.0:
        return share
    raise ValueError(f"{name} must lie strictly between 0 and 1, got {share}")


def choose_split(split: float | None, noise: str) -> float:
    """The share of epsilon1 in epsilon1 + epsilon2; the default depends on the noise."""
    if noise == "gumbel":
        if split is not None and split != SPLIT_GUMBEL:
            raise ValueError(f"split must be 0.5 for noise 'gumbel', got {split}")
        return SPLIT_GUMBEL
    return SPLIT if split is None else check_split(split)


def unbounded_search(lower: float | None, upper: float | None, invert: bool) -> str:
    """Which way an unbounded quantile is searched: "up" from `lower`, "down" from `upper`, "both".

    Inverted data ascend where the data descend, so `invert` turns the way round.
    """
    if lower is None and upper is None:
        if invert:
            raise ValueError("invert must be False if neither lower nor upper is given, got True")
        return "both"
    return "down" if (lower is None) != bool(invert) else "up"


def unbounded_quantile_epsilons(
    q: float,
    epsilon: float | None,
    neighbors: str,
    search: str = "up",
    split: float = SPLIT,
    max_contributions: int = 1,
    rho: float | None = None,
) -> tuple[float, float]:
    r"""The two epsilons of AboveThreshold in one call of the unbounded quantile.

    Parameters
    ----------
    q : float
        The level, in [0, 1].
    epsilon, rho : float
        Total budget of the call, per person: exactly one.
    neighbors : {"swap", "add-remove"}
        The neighboring relation.
    search : {"up", "down", "both"}
        `unbounded_search`.
    split : float, default 2/3
        :math:`\epsilon_1 / (\epsilon_1 + \epsilon_2)`.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    (float, float)
        For the noise of the threshold and of the queries, whose sensitivity is 1.

    Notes
    -----
    The threshold is q times the number of records kept, which is private: under "add-remove", and
    where a replaced record is left out or was, it moves with the data.

    - "swap", "up" or "down": with n fixed the queries are monotonic [Dur23, Lemma 4.1], and the
      call costs :math:`\epsilon_1 + \epsilon_2`, with range :math:`\epsilon_1 + 2\epsilon_2`
      [Dur23, Lemma A.3]. A record that appears or disappears costs no more (next item).
    - "add-remove": :math:`\max\{(1-q)\epsilon_1,\ q\epsilon_1 + \epsilon_2\}` for "up" [Dur23,
      Lemma B.1]; "down" is the mirrored data at level 1 - q. Range: the sum of both directions
      [Dur23, Corollary A.2].
    - "both": two calls, one of each. Differs from [Dur23], which adds up their epsilons, to
      :math:`2(\epsilon_1 + \epsilon_2)` under "swap": a record that moves up lowers the queries
      of the first call and raises those of the second, and the loss is
      :math:`\epsilon_1 + \epsilon_2` in the one and :math:`\epsilon_2` in the other [Dur23, proof
      of Lemma A.3], in sum :math:`\epsilon_1 + 2\epsilon_2`, whichever data set is the first.
      "add-remove": :math:`(q\epsilon_1 + \epsilon_2) + ((1-q)\epsilon_1 + \epsilon_2)`, the same.
    """
    k = check_max_contributions(max_contributions)
    split = check_split(split)
    check_choice("search", search, ("up", "down", "both"))
    cost, ranges = _unbounded_cost(q, check_neighbors(neighbors), search, split)
    if rho is None:
        total = resolve_epsilon(epsilon, rho) / (k * cost)
    else:
        total = resolve_epsilon(epsilon, rho) / (k * math.sqrt(ranges))
    return _check_steps((split * total, (1.0 - split) * total))


# --- Approximate quantiles ------------------------------------------------------------------------


class _SplitLosses(NamedTuple):
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

    def scaled(self, scale: NDArray[np.float64] | float) -> _SplitLosses:
        return _SplitLosses(*(loss * scale for loss in self))

    def epsilon(self, neighbors: str) -> float:
        """Loss of all steps of one depth together, for the worst record."""
        alone = float(np.maximum(self.removal, self.addition).max())
        if neighbors == "add-remove":
            return alone
        moved = _two_different(self.removal, self.addition)
        return max(alone, moved, float(self.same.max()))

    def eight_rho(self, neighbors: str) -> float:
        """Eight times their rho: the sum of the squared ranges that one record changes."""
        squares = np.square(self.one_range)
        if neighbors == "add-remove":
            return float(squares.max())
        moved = _two_different(squares, squares)
        return max(float(squares.max()), moved, float(np.square(self.same_range).max()))


def _two_different(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The largest a[u] + b[v] with u != v; 0 if there is one entry only."""
    if a.size == 1:
        return 0.0
    u, v = int(a.argmax()), int(b.argmax())
    if u != v:
        return float(a[u] + b[v])
    return float(max(a[u] + np.delete(b, u).max(), np.delete(a, u).max() + b[u]))


def _split_losses(steps: list[Split], base: str, split: float) -> list[_SplitLosses]:
    """The losses of the steps of each depth."""
    by_depth = []
    for depth in range(steps[-1].depth + 1):
        q = np.array([step.local for step in steps if step.depth == depth])
        if base == "ind_exp":  # per unit of the rate: see `ind_exp_sensitivity`
            one, same = 2.0 * np.maximum(q, 1.0 - q), np.full(q.size, 2.0)
            by_depth.append(_SplitLosses(same, one, one, same, one))
        else:  # per unit of epsilon1 + epsilon2: see `unbounded_quantile_epsilons`
            removal, addition = _unbounded_losses(q, split)
            whole = np.ones(q.size)
            ranges = _SplitLosses(
                whole, removal, addition, (2.0 - split) * whole, removal + addition
            )
            by_depth.append(ranges)
    return by_depth


def approx_quantiles_scales(
    q: NDArray[np.float64],
    epsilon: float | None,
    rho: float | None,
    neighbors: str,
    base: str = "ind_exp",
    split: float = SPLIT,
    max_contributions: int = 1,
) -> NDArray[np.float64]:
    r"""How much noise each step of the recursion has: its rate, or its epsilon1 + epsilon2.

    Parameters
    ----------
    q : ndarray of float64, shape (m,)
        Distinct levels in [0, 1], ascending.
    epsilon, rho : float
        Total budget, per person: exactly one.
    neighbors : {"swap", "add-remove"}
        The neighboring relation.
    base : {"ind_exp", "unbounded"}
        What releases the middle level of a part.
    split : float, default 2/3
        For "unbounded", the share of epsilon1.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    ndarray of float64, shape (m,)
        In the order of `levels.splits`, at most 2^16: the rate c of :math:`\exp(-c|r - T|)` for
        "ind_exp"; :math:`\epsilon_1 + \epsilon_2` for "unbounded".

    Notes
    -----
    [KSS22]: one record is in one part of each of the :math:`L = \lceil\log_2(m+1)\rceil` depths,
    whatever was released before. Each depth gets `epsilon` / L (or `rho` / L), and the scales
    within it are the largest for which the worst record costs no more:

    - "add-remove": one step changes, whose target :math:`\hat q` times the records of its part
      moves with the data (targets fixed at q_j n would move in every part).
    - "swap": a record is replaced inside a part, which changes one step with a fixed target, or
      moves from a part to another, a removal in one step and an addition in another. A record
      left out makes one of the two.

    Under "swap" two add-remove losses per depth do not cover the replacement inside a part: for an
    exponential mechanism at :math:`\hat q = 1/2` that one alone has twice the add-remove range,
    so in zCDP it costs four times one add-remove loss, more than the sum of two.
    """
    k = check_max_contributions(max_contributions)
    check_neighbors(neighbors)
    check_choice("base", base, ("ind_exp", "unbounded"))
    total = resolve_epsilon(epsilon, rho) / k  # epsilon, or the square root of 8 rho
    unit = _unit_scales(tuple(q.tolist()), rho is None, neighbors, base, check_split(split))
    return _check_steps(np.minimum(total * unit, MOST_RATE))


@lru_cache(maxsize=256)
def _unit_scales(
    q: tuple[float, ...], pure: bool, neighbors: str, base: str, split: float
) -> NDArray[np.float64]:
    """`approx_quantiles_scales` for a total of 1."""
    steps = splits(np.array(q))
    depths = steps[-1].depth + 1
    unit = 1.0 / depths if pure else math.sqrt(1.0 / depths)
    scales = []
    for losses in _split_losses(steps, base, split):
        if neighbors == "swap":
            whole = losses.epsilon("swap") if pure else math.sqrt(losses.eight_rho("swap"))
            scales.append(np.full(losses.same.size, unit / whole))
        elif pure:
            scales.append(unit / np.maximum(losses.removal, losses.addition))
        else:
            scales.append(unit / losses.one_range)
    return np.concatenate(scales)


# --- Counts, sums and means -----------------------------------------------------------------------


def laplace_scale(sensitivity: int, epsilon: float, max_contributions: int = 1) -> Fraction:
    """Scale of the discrete Laplace noise of an integer: sensitivity k / epsilon, not rounded.

    Parameters
    ----------
    sensitivity : int
        How much one record changes the integer, at most; 1 for a number of records, under both
        relations: where a record may be left out, a replacement may change that number.
    epsilon : float
        Budget of the release, per person.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    Fraction
    """
    k = check_max_contributions(max_contributions)
    sensitivity = check_count("sensitivity", sensitivity, 0)
    return Fraction(sensitivity * k) / Fraction(check_epsilon(epsilon))


def sum_epsilons(epsilon: float, share: float = 0.5) -> tuple[float, float]:
    """The parts of `epsilon` for the clip of a sum and for its noise: `share` of it, and the rest.

    The noise depends on the clip that was released: adaptive basic composition.
    """
    epsilon = check_epsilon(epsilon)
    first = check_split(share, "share") * epsilon
    return first, epsilon - first


def sum_sensitivity(low: int, high: int, neighbors: str, missing: bool) -> int:
    """Sensitivity of a sum of integers clamped to [low, high].

    Parameters
    ----------
    low, high : int
        The clip, in lattice points; 0 need not lie between them.
    neighbors : {"swap", "add-remove"}
        The neighboring relation.
    missing : bool
        Whether records may be left out, so that a replacement may be an addition or a removal.

    Returns
    -------
    int
        high - low for "swap", max(abs(low), abs(high)) for one record more or less.
    """
    low, high = (check_count(name, end, -MOST) for name, end in (("low", low), ("high", high)))
    alone = max(abs(low), abs(high))
    if check_neighbors(neighbors) == "add-remove":
        return alone
    return max(high - low, alone) if missing else high - low


def mean_scales(
    width: int, epsilon: float, neighbors: str, missing: bool, max_contributions: int = 1
) -> tuple[Fraction, Fraction]:
    r"""Scales of the noise of the two integers that a mean is computed from, for `epsilon` in all.

    The records are integers in [low, high], of which n are kept.

    Parameters
    ----------
    width : int
        W = high - low, at least 1.
    epsilon : float
        Budget of both integers together, per person.
    neighbors : {"swap", "add-remove"}
        The neighboring relation.
    missing : bool
        Whether records may be left out, so that a replacement may be an addition or a removal.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    (Fraction, Fraction)
        "add-remove": :math:`k W / \epsilon` twice, for :math:`A = \sum (x_i - low)` and
        :math:`B = \sum (high - x_i)`.
        "swap": :math:`2 k W / \epsilon` for :math:`C = \sum (2 x_i - low - high)`, and
        :math:`2 k / \epsilon` for n, 0 if n is public.

    Notes
    -----
    Independent Laplace noise of scales :math:`s_1, s_2` costs
    :math:`|\Delta_1| / s_1 + |\Delta_2| / s_2` where a record changes the integers by
    :math:`\Delta_1, \Delta_2`.

    - "add-remove": a record adds x - low to A and high - x to B, W in total, wherever it lies. So
      each of them has the noise that it would have alone. n = (A + B)/W, and C = A - B.
    - "swap": a record replaced by another changes C by at most 2 W, and n not at all. One that is
      left out or comes in changes C by at most W, at half of `epsilon`; the other half is for n.
    """
    width = check_count("width", width)
    if check_neighbors(neighbors) == "add-remove":
        scale = laplace_scale(width, epsilon, max_contributions)
        return scale, scale
    first = laplace_scale(2 * width, epsilon, max_contributions)
    return first, laplace_scale(2, epsilon, max_contributions) if missing else Fraction(0)


def clip_epsilons(
    q: float,
    epsilon: float,
    neighbors: str,
    two_sided: bool,
    split: float = SPLIT,
    max_contributions: int = 1,
) -> tuple[float, float]:
    r"""The two epsilons of AboveThreshold for the clip of a sum, for `epsilon` in total.

    Parameters
    ----------
    q : float
        The level of the clip, in [0, 1].
    epsilon : float
        For the clip, or for both clips together, per person.
    neighbors : {"swap", "add-remove"}
        The neighboring relation.
    two_sided : bool
        Whether the records below zero have a clip of their own.
    split, max_contributions
        As in `unbounded_quantile_epsilons`.

    Returns
    -------
    (float, float)

    Notes
    -----
    Two-sided, a record is on one side, so under "add-remove" the clips compose in parallel. Under
    "swap" it is replaced on its side, at :math:`\epsilon_1 + \epsilon_2`, or changes sides: a
    removal on one and an addition on the other, whose one-sided losses (`_unbounded_losses`) add
    up.
    """
    first, second = unbounded_quantile_epsilons(
        q, epsilon, neighbors, "up", split, max_contributions
    )
    if not two_sided or neighbors == "add-remove":
        return first, second
    worst = max(1.0, float(sum(_unbounded_losses(q, split))))
    return first / worst, second / worst


# --- AboveThreshold -------------------------------------------------------------------------------


def above_threshold_rates(
    epsilon1: float, epsilon2: float, sensitivity: float = 1.0, noise: str = "exponential"
) -> tuple[float, float]:
    r"""Rates of the threshold's noise and of each query's, :math:`\epsilon_{1,2} / \Delta`.

    Parameters
    ----------
    epsilon1, epsilon2 : float
        Positive and finite.
    sensitivity : float, default 1.0
        How much one query can differ between neighbors.
    noise : {"exponential", "laplace", "gumbel"}
        Equal epsilons are required for "gumbel".

    Returns
    -------
    (float, float)
        [Dur23] Algorithm 1: noise of scale :math:`\Delta/\epsilon_1` and
        :math:`\Delta/\epsilon_2`.
    """
    epsilon1 = check_epsilon(epsilon1, "epsilon1")
    epsilon2 = check_epsilon(epsilon2, "epsilon2")
    sensitivity = check_epsilon(sensitivity, "sensitivity")
    if check_choice("noise", noise, NOISES) == "gumbel" and epsilon1 != epsilon2:
        raise ValueError(
            f"epsilon1 and epsilon2 must be equal for noise 'gumbel', got {epsilon1} and {epsilon2}"
        )
    rate1, rate2 = epsilon1 / sensitivity, epsilon2 / sensitivity
    if not (0.0 < min(rate1, rate2) and max(rate1, rate2) < math.inf):
        raise ValueError(
            "epsilon1 and epsilon2 over sensitivity must be positive and finite, "
            f"got {rate1} and {rate2}"
        )
    return rate1, rate2


def above_threshold_loss(epsilon1: float, epsilon2: float, monotonic: bool = False) -> float:
    r"""Epsilon of AboveThreshold, whatever the queries.

    Parameters
    ----------
    epsilon1, epsilon2 : float
        As in `above_threshold_rates`.
    monotonic : bool, default False
        Whether, for any two neighbors, no query is larger on the first, or none on the second.

    Returns
    -------
    float
        :math:`\epsilon_1 + 2 \epsilon_2`; :math:`\epsilon_1 + \epsilon_2` if monotonic, and
        then the former is a bound on the range ([Dur23] Lemma 3.1, Corollary 3.1, Lemmas 3.2
        and A.3).
    """
    epsilon1 = check_epsilon(epsilon1, "epsilon1")
    epsilon2 = check_epsilon(epsilon2, "epsilon2")
    return epsilon1 + (1.0 if check_flag("monotonic", monotonic) else 2.0) * epsilon2


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
        As in `above_threshold_rates`: the noise.

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
    rate1, rate2 = above_threshold_rates(epsilon1, epsilon2, sensitivity)
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


# --- Optimal composition of bounded-range mechanisms ----------------------------------------------


@lru_cache(maxsize=8)
def _log_binomials(m: int) -> NDArray[np.float64]:
    """ln C(m, i) for i = 0..m, from exact integers: lgamma would lose 1e-11 at m = 10^4."""
    logs = np.empty(m + 1)
    coefficient = 1
    for i in range(m + 1):
        logs[i] = math.log(coefficient)
        coefficient = coefficient * (m - i) // (i + 1)
    logs.flags.writeable = False
    return logs


@np.errstate(under="ignore")  # of terms far below others
def _log_bounded_range_delta(each: float, m: int, epsilon: float) -> float:
    r"""Logarithm of Lemma 12's delta, -inf where it is 0.

    [GJK21] Lemma 12 = [DDR20] Theorem 3: with :math:`t_l = (\epsilon + (l+1) e)/(m+1)` clipped to
    [0, e] and :math:`p = (e^{-t} - e^{-e})/(1 - e^{-e})`,

    .. math:: \delta = \max_l \sum_i \binom{m}{i} p^{m-i} (1-p)^i \max(e^{mt - ie} - e^\epsilon, 0)

    (e is the range of each). Written with the probabilities of the other data set,
    :math:`P = p\,e^t` and :math:`1 - P = (1-p)\,e^{t-e}`, and with u = e - t, a term is
    :math:`\binom{m}{i} P^{m-i} (1-P)^i (1 - e^{-x_i})`, :math:`x_i = (l - i) e + u`: products of
    numbers in [0, 1], and sums of non-negative numbers, so nothing overflows or cancels. Terms
    are positive for i <= l; where t is clipped at e, p = 0 and the sum is empty.
    """
    # u = ((m - l) e - epsilon) / (m + 1) is the one difference. With e split into 26 + 27 bits,
    # the products with m - l < 2^26 are exact, and so is the difference where it is small.
    scaled = math.ldexp(math.frexp(each)[0], 26)
    upper = math.ldexp(math.floor(scaled), math.frexp(each)[1] - 26)
    lower = each - upper
    left = np.arange(m, -1, -1, dtype=np.float64)  # m - l
    u = ((left * upper - epsilon) + left * lower) / (m + 1.0)
    ell = np.flatnonzero(u > 0.0).astype(np.float64)
    if ell.size == 0:
        return -math.inf
    u = u[: ell.size]  # u falls with l
    t = (epsilon + (ell + 1.0) * each) / (m + 1.0)
    whole = math.expm1(-each)
    log_p = np.minimum(np.log(np.expm1(-u) / whole), 0.0)
    log_r = np.minimum(np.log(np.expm1(-t) / whole), 0.0) - u  # r = 1 - P

    # Below the mode of Bin(m, r) its probabilities fall, downwards from l, at least by the ratio f
    # per step, so the sum is at most that of a geometric series; and never more than its largest
    # factor 1 - exp(-x_0). Taking l in the order of this bound, we may stop once it is below the
    # best sum found, usually after one block.
    log_binomials = _log_binomials(m)
    f = np.minimum(ell / (m - ell + 1.0) * np.exp(np.minimum(log_p - log_r, 600.0)), 1.0)
    with np.errstate(divide="ignore"):
        geometric = (
            log_binomials[: ell.size]
            + (m - ell) * log_p
            + ell * log_r
            + np.log(-np.expm1(-u) - f * np.exp(-u) * np.expm1(-t))
            - np.log1p(-f)
            - np.log1p(-f * math.exp(-each))
        )
    largest = np.log(-np.expm1(-(ell * each + u)))
    bound = np.minimum(geometric, largest) + 1e-9  # more than its rounding error
    order = np.argsort(-bound)

    rows = max(1, _BLOCK // (m + 1))
    best = -math.inf
    for start in range(0, order.size, rows):
        if bound[order[start]] < best:
            break
        block = order[start : start + rows]
        i = np.arange(int(block.max()) + 1, dtype=np.float64)
        x = (ell[block, None] - i) * each + u[block, None]
        used = i <= ell[block, None]
        log_terms = np.where(
            used,
            log_binomials[: i.size]
            + (m - i) * log_p[block, None]
            + i * log_r[block, None]
            + np.log(-np.expm1(-np.where(used, x, 1.0))),
            -np.inf,
        )
        peak = log_terms.max(axis=1, keepdims=True)
        log_sums = peak[:, 0] + np.log(np.exp(log_terms - peak).sum(axis=1))
        best = max(best, float(log_sums.max()))
    return min(best, 0.0)


def _check_composed(m: Any) -> int:
    m = check_count("m", m)
    if m > MOST_COMPOSED:
        raise ValueError(f"m must be at most {MOST_COMPOSED} for optimal composition, got {m}")
    return m


def _check_composable(epsilon: Any, name: str = "epsilon") -> float:
    epsilon = check_epsilon(epsilon, name)
    least, most = COMPOSABLE
    if not least <= epsilon <= most:
        raise ValueError(
            f"{name} must lie between {least} and {most} for optimal composition, got {epsilon}"
        )
    return epsilon


def bounded_range_delta(epsilon_each: float, m: int, epsilon: float) -> float:
    r"""Smallest delta of m non-adaptive mechanisms of range `epsilon_each` at total `epsilon`.

    Parameters
    ----------
    epsilon_each : float
        Range bound of each mechanism (an exponential mechanism of epsilon e has range e).
    m : int
        Number of mechanisms, from 1 to 2^15, chosen before the first output is seen.
    epsilon : float
        Total epsilon, not negative.

    Returns
    -------
    float
        The delta of [GJK21] Lemma 12 ([DDR20] Theorem 3), which is attained: no smaller delta
        holds for all such mechanisms. To 1e-10 relative for m up to 10^4.

    Notes
    -----
    Not for a sequence of calls in which a later one depends on earlier outputs: the adversary
    there gains from adapting, and delta is larger [DDR20].
    """
    each = _check_composable(epsilon_each, "epsilon_each")
    m, epsilon = _check_composed(m), check_nonnegative("epsilon", epsilon)
    # The sum of all ranges is an epsilon that needs no delta.
    return math.exp(_log_bounded_range_delta(each, m, min(epsilon, 2.0 * m * each)))


def bounded_range_epsilon_each(m: int, epsilon: float, delta: float) -> float:
    """Largest range of each of m non-adaptive mechanisms that are (`epsilon`, `delta`)-DP together.

    Parameters
    ----------
    m : int
        Number of mechanisms, from 1 to 2^15.
    epsilon, delta : float
        Total budget.

    Returns
    -------
    float
        The largest ``e`` with ``bounded_range_delta(e, m, epsilon) <= delta``, to 1e-10 relative
        from below; ``epsilon / m`` rounded down for ``delta=0``.
    """
    # Differs from [GJK21], whose calculator steps through a grid of 0.01: that leaves up to 16 %
    # of the budget unused.
    return _epsilon_each(_check_composed(m), _check_composable(epsilon), check_delta(delta))


@lru_cache(maxsize=1024)
def _epsilon_each(m: int, epsilon: float, delta: float) -> float:
    basic = epsilon / m
    if _log_bounded_range_delta(basic, m, epsilon) > -math.inf:
        basic = math.nextafter(basic, 0.0)  # the quotient was rounded up
    if delta == 0.0:
        return basic
    target = math.log(delta) - _LOG_DELTA_ERROR * (m + 10_000)

    def excess(each: float) -> float:
        # Clipped, because the logarithm of a delta of 0 is no number to interpolate with.
        return max(_log_bounded_range_delta(each, m, epsilon) - target, -60.0)

    # delta rises with the range: a mechanism of range e also has every larger range.
    high = basic * 1.5
    while excess(high) <= 0.0:
        high *= 1.5
    low = max(basic, high / 2.25)  # one factor further back than needed, against rounding
    each = scipy.optimize.brentq(
        excess, low, high, xtol=1e-14 * high, rtol=1e-13, maxiter=_MOST_STEPS
    )
    step = 2.0**-44
    while each > basic and excess(each) > 0.0:
        each *= 1.0 - step
        step *= 2.0
    return max(each, basic)


def bounded_range_epsilon(m: int, epsilon_each: float, delta: float) -> float:
    """Smallest total epsilon of m non-adaptive mechanisms of range `epsilon_each` at `delta`.

    Parameters
    ----------
    m : int
        Number of mechanisms, from 1 to 2^15.
    epsilon_each : float
        Range bound of each.
    delta : float
        Total delta; 0 gives the sum, rounded up.

    Returns
    -------
    float
        The smallest ``epsilon >= 0`` with ``bounded_range_delta(epsilon_each, m, epsilon) <=
        delta``, from above; 0 if `delta` covers everything.
    """
    m = _check_composed(m)
    each = _check_composable(epsilon_each, "epsilon_each")
    return _total_epsilon(m, each, check_delta(delta))


@lru_cache(maxsize=1024)
def _total_epsilon(m: int, each: float, delta: float) -> float:
    basic = m * each
    if _log_bounded_range_delta(each, m, basic) > -math.inf:
        basic = math.nextafter(basic, math.inf)  # the product was rounded down
    if delta == 0.0:
        return basic
    target = math.log(delta) - _LOG_DELTA_ERROR * (m + 10_000)

    def excess(epsilon: float) -> float:
        return max(_log_bounded_range_delta(each, m, epsilon) - target, -60.0)

    if excess(0.0) <= 0.0:
        return 0.0
    total = scipy.optimize.brentq(
        excess, 0.0, basic, xtol=1e-15 * basic, rtol=1e-13, maxiter=_MOST_STEPS
    )
    step = 2.0**-50 * basic
    while total < basic and excess(total) > 0.0:
        total += step
        step *= 2.0
    return min(total, basic)


# --- CSmooth --------------------------------------------------------------------------------------


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


def csmooth_epsilon_each(m: int, rho: float, max_contributions: int = 1) -> float:
    r"""Epsilon of each of m releases with Laplace log-normal noise, each epsilon^2/2-zCDP.

    Parameters
    ----------
    m : int
        Number of distinct levels, at least 1.
    rho : float
        Total zCDP budget, per person.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    float
        :math:`\sqrt{2 \rho / m} / k`: rho adds up over the levels ([GJK21] Lemma 9), and k records
        of one person, a chain of k neighbors, cost :math:`k^2` times the rho of one [BS16].
    """
    k = check_max_contributions(max_contributions)
    return math.sqrt(2.0 * check_rho(rho) / check_count("m", m)) / k


# t over epsilon: above 10 the noise is of no use (1/s is e^150 there), and sigma - t/epsilon, which
# s is made of, drowns in rounding; below 1e-100 it is S that does not change any more.
LEAST_SMOOTHNESS, MOST_SMOOTHNESS = 1e-100, 10.0
# More than the rounding error of ln s.
_LOG_SCALE_ERROR = 1e-12


def csmooth_scale(t: float, epsilon: float) -> tuple[float, float]:
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
    [BS19] Proposition 3 ([GJK21] Lemma 14): the release is :math:`\epsilon^2/2`-zCDP for
    :math:`\epsilon = t/\sigma + e^{1.5\sigma^2} s`, whatever sigma > 0 and s > 0, for every S with
    :math:`|f(x) - f(x')| \le S(x)` and :math:`S(x) \le e^t S(x')`: see `smooth_rank`. With
    :math:`s = e^{-1.5\sigma^2} (\epsilon - t/\sigma)` the variance of the noise,
    :math:`2 S^2 e^{5\sigma^2} / (\epsilon - t/\sigma)^2`, is least at the one positive root of
    :math:`5 (\epsilon/t) \sigma^3 - 5 \sigma^2 - 1`. It is above :math:`t/\epsilon`, where the
    polynomial is -1, so s > 0.
    """
    epsilon = check_epsilon(epsilon)
    t = check_epsilon(t, "t")
    ratio = t / epsilon
    if not LEAST_SMOOTHNESS <= ratio <= MOST_SMOOTHNESS:
        raise ValueError(
            f"t must lie between {LEAST_SMOOTHNESS} and {MOST_SMOOTHNESS} times the epsilon of a "
            f"level, {epsilon}, so that sigma and s are found, got {t}"
        )
    sigma, log_share = _csmooth_shape(ratio)
    return sigma, math.log(epsilon) + log_share


@lru_cache(maxsize=1024)
def _csmooth_shape(ratio: float) -> tuple[float, float]:
    """sigma and ln(s / epsilon) for a t of `ratio` times epsilon."""
    # With sigma = ratio + u: (ratio + u)^2 u = ratio / 5, so u^3 < ratio / 5.
    most = math.cbrt(ratio / 5.0)
    above = scipy.optimize.brentq(
        lambda u: (ratio + u) ** 2 * u - ratio / 5.0, 0.0, most, xtol=1e-15 * most
    )
    sigma = ratio + above
    return sigma, math.log(above / sigma) - 1.5 * sigma * sigma - _LOG_SCALE_ERROR


def smooth_gaussian_scale(epsilon: float, delta: float) -> tuple[float, float]:
    r"""Smoothness and scale of Gaussian noise on smooth sensitivity, for one release.

    Parameters
    ----------
    epsilon : float
        At most 4.
    delta : float
        In (0, 1).

    Returns
    -------
    beta : float
        The smoothness t of the sensitivity S: :math:`\epsilon / (4 (1 + \ln(2/\delta)))`.
    log_alpha : float
        The noise is normal with standard deviation :math:`S/\alpha`,
        :math:`\alpha = \epsilon / (5 \sqrt{2 \ln(2/\delta)})` [NRS07].

    Notes
    -----
    With :math:`L = \ln(2/\delta)`, Z standard normal and :math:`\epsilon \le 4`:

    - From :math:`S(x)` to a larger :math:`S(x') \le e^\beta S(x)` the loss is at most
      :math:`\beta \le \epsilon/2`. To a smaller one it is at most
      :math:`z^2 (e^{2\beta} - 1)/2`, above :math:`\epsilon/2` only for
      :math:`z^2 > 2 (1 + L)/c` with :math:`c = (e^{2\beta} - 1)/(2\beta)`. As
      :math:`\beta \le 1/(1+L)`, :math:`c \le 1 + 1/L`, and the probability of that is at most
      :math:`e^{-L} = \delta/2`.
    - A shift by at most :math:`\alpha` has the loss :math:`\alpha z + \alpha^2/2`, above
      :math:`\epsilon/2` with probability at most :math:`e^{1 - 6.25 L}/2`, which is below
      :math:`e^{-\epsilon/2}\, \delta/2`.

    One after the other, :math:`(\epsilon/2, \delta/2)` and then the second, they are
    :math:`(\epsilon, \delta)`. Differs from [NRS07], which adds up two :math:`\delta/2`: the second
    counts :math:`e^{\epsilon/2}` times.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if epsilon > 4.0:
        raise ValueError(
            f"epsilon must be at most 4 for Gaussian noise on smooth sensitivity, got {epsilon}"
        )
    if delta == 0.0:
        raise ValueError("delta must be positive for Gaussian noise on smooth sensitivity, got 0.0")
    log_inverse = math.log(2.0) - math.log(delta)
    beta = _check_step(epsilon / (4.0 * (1.0 + log_inverse)))
    return beta, math.log(epsilon) - math.log(5.0 * math.sqrt(2.0 * log_inverse))


# --- Trees ----------------------------------------------------------------------------------------

TREE_NOISES = ("geometric", "laplace", "gaussian")
# Noisy counts must fit int64.
_LARGEST_SCALE = 2**53
# Normal noise on integers is rounded: so many bits are left for what is between two of them.
_LARGEST_NORMAL = 2**30


def agg_tree_sensitivity(
    height: int, neighbors: str, max_contributions: int = 1
) -> tuple[int, int]:
    r"""L1 sensitivity of all noised counts of a tree, and the square of their L2 sensitivity.

    Parameters
    ----------
    height : int
        Levels below the root, at least 1: those that are noised.
    neighbors : {"swap", "add-remove"}
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    (int, int)
        :math:`k t` and :math:`k^2 t` for t the number of counts that one record's change can
        touch: h for "add-remove", 2h for "swap".

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
    touched = check_count("height", height) * (2 if check_neighbors(neighbors) == "swap" else 1)
    return k * touched, k * k * touched


def agg_tree_scale(
    height: int,
    epsilon: float | None,
    rho: float | None,
    noise: str,
    neighbors: str,
    max_contributions: int = 1,
) -> Fraction:
    r"""Scale of the independent noise of each count of a tree, below its root.

    Parameters
    ----------
    height, neighbors, max_contributions
        As in `agg_tree_sensitivity`, which gives :math:`\Delta_1` and :math:`\Delta_2`.
    epsilon, rho : float
        Total budget, per person: `rho` for "gaussian", `epsilon` for the others.
    noise : {"geometric", "laplace", "gaussian"}
        The noise.

    Returns
    -------
    Fraction
        :math:`\Delta_1 / \epsilon` exactly; for "gaussian" the sigma
        :math:`\Delta_2 / \sqrt{2 \rho}`, rounded up.

    Notes
    -----
    *Proof.* Counts are integers. For (discrete or continuous) Laplace noise of scale s, the log
    ratio of the laws of neighbors is at most :math:`\sum_v |c_v - c'_v| / s \le \Delta_1 / s`,
    and it is that much where every output lies beyond c_v, seen from c'_v. For discrete Gaussian
    noise the release is :math:`\Delta_2^2 / (2 \sigma^2)`-zCDP [CKS20, Theorem 14].
    """
    resolve_epsilon(epsilon, rho)  # exactly one of them, and positive
    check_choice("noise", noise, TREE_NOISES)
    budget = "epsilon" if rho is None else "rho"
    if (noise == "gaussian") != (budget == "rho"):
        raise ValueError(
            f"noise must be 'gaussian' with rho, and not with epsilon, got {noise!r} with {budget}"
        )
    sensitivity, squared = agg_tree_sensitivity(height, neighbors, max_contributions)
    value = Fraction(*check_ratio(budget, epsilon if rho is None else rho))
    # The square of the scale: of sigma, it is what is known exactly.
    square = (sensitivity / value) ** 2 if rho is None else squared / (2 * value)
    if square > _LARGEST_SCALE**2:
        raise ValueError(f"{budget} must give noise of a scale of at most 2^53, got {float(value)}")
    if rho is None:
        return sensitivity / value
    sigma = math.sqrt(square)
    while Fraction(sigma) ** 2 < square:
        sigma = math.nextafter(sigma, math.inf)
    return Fraction(sigma)


# --- CDFs -----------------------------------------------------------------------------------------

# The options of each method of `cdf`, and their defaults: None is chosen by the lattice. Public.
CDF_OPTIONS: dict[str, dict[str, Any]] = {
    "binary_tree": {"bins": None, "aggregate": True},
    "agg_tree": {"height": None, "branching": None, "aggregate": True},
    "histogram": {"bins": None},
    "adaptive": {"steps": None, "bins": 2**20, "depth": None},
    "gaussian": {"levels": 9, "bins": None},
    "smooth_gaussian": {"levels": 9},
}
# "adaptive": splits by default, and how often a run is halved. Each depth costs noise; without
# them, data in a narrow part of the bounds are in a few runs (measured for 10^4 normal records in
# bounds 40 and 4,000 deviations wide: 14 is near the best for both).
_STEPS, _DEPTH = 2**7, 14


def cdf_options(method: str, given: dict[str, Any], points: int | None = None) -> dict[str, Any]:
    """All options of a method of `cdf`: those that are given, else the defaults.

    On a lattice of so many points there are no more bins, levels and steps than it takes to have
    a bin for each point. "adaptive" has no more bins and steps than its depth can reach, and no
    more depth than its steps can.
    """
    defaults = CDF_OPTIONS[check_choice("method", method, tuple(CDF_OPTIONS))]
    if not isinstance(given, dict):
        raise TypeError(f"given must be a dict of options, got {type(given).__name__}")
    for name in given:
        if name not in defaults:
            raise TypeError(
                f"method {method!r} must have no options but {', '.join(defaults)}, got {name!r}"
            )
    options = defaults | given
    if "aggregate" in options:
        check_flag("aggregate", options["aggregate"])
    few = points is not None and check_count("points", points, 2) <= FEW_POINTS
    if method == "agg_tree":
        options["height"], options["branching"] = _tree_shape(
            options["height"], options["branching"], points
        )
    elif method == "binary_tree":
        if options["bins"] is None:
            options["bins"] = 1 << (points - 1).bit_length() if few else 2**10
        options["bins"] = 1 << check_tree(cdf_height(options["bins"]), 2, points)[0]
    elif method == "histogram" and options["bins"] is None:
        options["bins"] = points if few else 100
    if options.get("bins") is not None:
        check_tree(1, check_count("bins", options["bins"], 2), None)
    if method == "adaptive":
        options = _halving_shape(points, **options)
    if points is not None and method in ("histogram", "gaussian") and options["bins"] is not None:
        options["bins"] = min(options["bins"], points)
    return options


def _tree_shape(height: Any, branching: Any, points: int | None) -> tuple[Any, Any]:
    """Height and branching of a tree on a lattice of so many points; the defaults without one."""
    if points is not None:
        return check_tree(height, branching, check_count("points", points, 2))
    return 3 if height is None else height, 10 if branching is None else branching


def _halving_shape(points: int | None, steps: Any, bins: int, depth: Any) -> dict[str, int]:
    """Splits of "adaptive", the finest partition that they can reach, and its depth."""
    most = cdf_height(bins) if points is None else min(cdf_height(bins), (points - 1).bit_length())
    depth = min(most, _DEPTH if depth is None else check_count("depth", depth))
    if steps is not None:
        if check_count("steps", steps) >= bins:
            raise ValueError(f"steps must be less than bins, got {steps}")
        depth = min(depth, steps)  # a run is halved once in a step
    bins = 2**depth
    reached = bins if points is None else min(bins, points)
    steps = min(_STEPS if steps is None else steps, reached - 1)
    return dict(steps=steps, bins=bins, depth=depth)


def cdf_height(bins: int) -> int:
    """Levels of a binary tree over `bins` leaves, a power of two."""
    bins = check_count("bins", bins, 2)
    if bins & (bins - 1):
        raise ValueError(f"bins must be a power of two, got {bins}")
    return bins.bit_length() - 1


def cdf_touched(method: str, options: dict[str, Any]) -> int:
    """Counts that one record is in: the height in `agg_tree_scale`.

    Of a tree, one of each level; of a histogram, one; of "adaptive", one of each depth.
    """
    if method == "binary_tree":
        return cdf_height(options["bins"])
    if method == "histogram":
        check_count("bins", options["bins"], 2)
        return 1
    name = "height" if method == "agg_tree" else "depth"
    return check_count(name, options[name])


def cdf_adaptive_scale(
    depth: int,
    epsilon: float | None,
    rho: float | None,
    neighbors: str,
    max_contributions: int = 1,
) -> Fraction:
    r"""Scale of the noise of each count of runs that are halved adaptively.

    Parameters
    ----------
    depth : int
        How often a run is halved at most, d.
    epsilon, rho : float
        Total budget, per person: discrete Laplace or discrete Gaussian noise.
    neighbors : {"swap", "add-remove"}
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    Fraction
        That of `agg_tree_scale` for height d, however many runs are halved:
        :math:`2dk / \epsilon` or :math:`k \sqrt{d / \rho}` under "swap".

    Notes
    -----
    *Proof.* A run is always halved at the same point, which is public. So the runs that can ever
    be counted are the nodes below the root of one binary tree of height d. Say that every one of
    them has a noisy count, with independent noise: this is the release of `agg_tree`, and has its
    guarantee at this scale. Which run is halved next depends on noisy counts of runs that have
    been counted, and on public facts, alone. So the adaptive release is a function of that tree:
    it looks at some of its counts and not at the others. It is post-processing. Drawing the noise
    of a run when it is first looked at, instead of beforehand, gives the same law, since noise is
    independent of all else and no run is looked at twice.

    For pure `epsilon` the likelihoods say the same. A transcript y fixes which runs T(y) are
    counted, and its likelihood is :math:`\prod_{v \in T(y)} p(y_v - c_v)`. The ratio for neighbors
    is at most :math:`\exp(\sum_{v \in T(y)} |c_v - c'_v| / s)`. The runs of one depth are disjoint:
    a record is in at most d of them, whatever y, and the sum is at most
    `agg_tree_sensitivity` of height d over s. It is reached where all runs are halved that hold a
    record which is added, removed or replaced.

    As in a tree, the number of records is used where it is public (the caller's proof), else it
    is the sum of the counts of the first two halves, and costs nothing.
    """
    noise = "geometric" if rho is None else "gaussian"
    return agg_tree_scale(depth, epsilon, rho, noise, neighbors, max_contributions)


def gaussian_delta(sigma: float, epsilon: float) -> float:
    r"""The delta of normal noise on a query of L2 sensitivity 1, from above.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise of each number, positive.
    epsilon : float
        At least 0.

    Returns
    -------
    float
        :math:`\Phi(1/2\sigma - \epsilon\sigma) - e^\epsilon \Phi(-1/2\sigma - \epsilon\sigma)`,
        the least delta there is [BW18, Theorem 8], plus a bound of its rounding error, which is
        below 1e-9 of it; never 0, which it is not.

    Notes
    -----
    The log ratio of the laws of two neighbors is normal, of mean :math:`d^2/2\sigma^2` and
    variance :math:`d^2/\sigma^2` for d the distance of the exact answers. k queries, chosen
    adaptively or not, each of sensitivity 1 with noise of its own, have therefore exactly the
    delta of one with :math:`\sigma/\sqrt{k}`.

    With :math:`u = \epsilon\sigma - 1/2\sigma` and :math:`h = 1/\sigma` the second argument is
    :math:`-(u + h)`, and :math:`e^\epsilon \phi(u + h) = \phi(u)`. So the two terms are
    :math:`\phi(u) R(u)` and :math:`\phi(u) R(u + h)` for :math:`R(x) = \Phi(-x)/\phi(x)`, which
    falls, and neither underflows before their difference.
    """
    sigma, epsilon = check_epsilon(sigma, "sigma"), check_nonnegative("epsilon", epsilon)
    exact = Fraction(sigma)
    u = float(min(max(Fraction(epsilon) * exact - 1 / (2 * exact), -(2**60)), 2**60))
    h = 1.0 / sigma if sigma > 1e-300 else math.inf
    log_density = -0.5 * u * u - 0.5 * math.log(2.0 * math.pi)
    if u > 0.0 and log_density < -745.0:  # R(u) is at most 1.26 there
        return math.ulp(0.0)
    with np.errstate(under="ignore"):
        if h < _TAYLOR_STEP:
            difference, lost = _mills_slope(u, h), 1.0
            log_density -= math.log(sigma)
        elif u > 0.0:
            first, second = _mills(u), _mills(u + h)
            difference, lost = first - second, first + second
        else:  # R(u) may overflow; the first term is at least 1/2
            second = math.exp(log_density) * _mills(u + h)
            return min(float(scipy.special.ndtr(-u)) - second + _MILLS_ERROR, 1.0)
    # Relative errors: of R, hence of the difference; of u, hence of the density.
    rounding = _MILLS_ERROR * lost / difference + 2.0**-50 * (1.0 + u * u)
    delta = math.exp(log_density + math.log(difference)) * (1.0 + rounding)
    return min(math.nextafter(delta, 1.0), 1.0)


def _mills(x: float) -> float:
    r"""Mills' ratio :math:`\Phi(-x)/\phi(x)`, to `_MILLS_ERROR` relative."""
    return math.sqrt(0.5 * math.pi) * float(scipy.special.erfcx(x * math.sqrt(0.5)))


def _mills_slope(x: float, h: float) -> float:
    r"""(R(x) - R(x + h)) / h for Mills' ratio R and a small h, to `_MILLS_ERROR` absolute.

    By Taylor's series: :math:`R' = x R - 1`, hence :math:`R^{(k+1)} = x R^{(k)} + k R^{(k-1)}`.
    """
    before = _mills(x)
    now = x * before - 1.0
    term, total = 1.0, -now
    for k in range(1, 10):
        before, now = now, x * now + k * before
        term *= h / (k + 1.0)
        total -= now * term
    return total


def gaussian_sigma(
    squared: float, epsilon: float | None, delta: float = 0.0, rho: float | None = None
) -> float:
    r"""Standard deviation of normal noise on numbers, from above.

    Parameters
    ----------
    squared : float
        The square of their L2 sensitivity :math:`\Delta`, per person. For m numbers of
        sensitivity 1 each, m.
    epsilon, delta : float
        Total budget; delta positive.
    rho : float, optional
        Total zCDP budget instead: :math:`\Delta / \sqrt{2\rho}` [BS16].

    Returns
    -------
    float
        :math:`\Delta` times the least sigma that has `gaussian_delta` at most `delta`: the
        analytic Gaussian mechanism [BW18].
    """
    resolve_epsilon(epsilon, rho)  # exactly one of them, and positive
    squared, delta = check_epsilon(squared, "squared"), check_delta(delta)
    if rho is not None:
        if delta > 0.0:
            raise ValueError(f"delta must be 0 with rho, got {delta}")
        return math.sqrt(squared / (2.0 * rho)) * (1.0 + 2.0**-50)
    if delta == 0.0:
        raise ValueError("delta must be positive for Gaussian noise, got 0.0")
    return math.sqrt(squared) * _unit_sigma(float(epsilon), delta) * (1.0 + 2.0**-50)


@lru_cache(maxsize=256)
def _unit_sigma(epsilon: float, delta: float) -> float:
    """The sigma of a query of sensitivity 1."""
    low = high = 1.0
    while gaussian_delta(high, epsilon) > delta:
        high *= 2.0
        if high > 2.0**100:
            raise ValueError(
                f"epsilon and delta must be large enough for a sigma of at most 2^100, got "
                f"{epsilon}, {delta}"
            )
    while gaussian_delta(low, epsilon) <= delta:
        low /= 2.0
    log_delta = math.log(delta)
    log_sigma = scipy.optimize.brentq(
        lambda s: math.log(max(gaussian_delta(math.exp(s), epsilon), 5e-324)) - log_delta,
        math.log(low),
        math.log(high),
        xtol=1e-14,
    )
    sigma, step = math.exp(log_sigma), 2.0**-50
    while gaussian_delta(sigma, epsilon) > delta:
        sigma *= 1.0 + step
        step *= 2.0
    return sigma


def cdf_gaussian_squared(
    levels: int, bins: int | None, neighbors: str, max_contributions: int = 1
) -> int:
    r"""Square of the L2 sensitivity of what the Gaussian method of `cdf` asks for.

    Parameters
    ----------
    levels, bins
        Of `cdf`: m quantiles, unless `bins` is given.
    neighbors : {"swap", "add-remove"}
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    int
        For quantiles m, in units of :math:`(b-a)^2`; for bins :math:`k^2` ("add-remove") or
        :math:`2k^2` ("swap").

    Notes
    -----
    *Quantiles.* A quantile lies in [a, b], so it changes by at most b - a, whatever the
    data sets are: by any number of records, in both relations. It does change that much where
    half of the records are at a and half at b, and with ties all m may: :math:`\sqrt{m} (b-a)`
    bounds the vector.

    *Bins.* A record is in one of them: 1 if it is added or removed; replaced, it leaves one bin
    and enters another, or is left out: :math:`\sqrt 2`. Numbers of records below B points have
    :math:`\sqrt B` in both relations, for one record that is below all of them; the sums of bins
    have less noise.
    """
    k = check_max_contributions(max_contributions)
    check_neighbors(neighbors)
    if bins is None:
        return _check_levels(levels)
    check_count("bins", bins, 2)
    return agg_tree_sensitivity(1, neighbors, k)[1]


def cdf_gaussian_sigma(
    levels: int,
    bins: int | None,
    epsilon: float | None,
    delta: float,
    rho: float | None,
    neighbors: str,
    max_contributions: int = 1,
) -> float:
    """Standard deviation of the noise of the Gaussian method of `cdf`.

    Parameters
    ----------
    levels, bins, neighbors, max_contributions
        As for `cdf_gaussian_squared`.
    epsilon, delta, rho
        As for `gaussian_sigma`.

    Returns
    -------
    float
        In units of the whole range for quantiles. For bins it is 2^30 at most: what rounding to
        integers adds to the privacy loss is about 2^-53 of it.
    """
    squared = cdf_gaussian_squared(levels, bins, neighbors, max_contributions)
    sigma = gaussian_sigma(squared, epsilon, delta, rho)
    if bins is not None and sigma > _LARGEST_NORMAL:
        raise ValueError(
            f"the budget must be large enough for a sigma of at most 2^30 with bins, got {sigma}"
        )
    return sigma


def _check_levels(levels: Any) -> int:
    m = check_count("levels", levels)
    if m > MOST_LEVELS:
        raise ValueError(f"levels must be at most 2^20, got {m}")
    return m


def cdf_smooth_gaussian_each(
    levels: int, epsilon: float, delta: float, max_contributions: int = 1
) -> tuple[float, float]:
    r"""Budget of each of m quantiles with Gaussian noise on smooth sensitivity, per record.

    Parameters
    ----------
    levels : int
        m.
    epsilon, delta : float
        Total budget, per person.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    epsilon_each, delta_each : float
        :math:`\epsilon / mk` and :math:`(\delta/m)\,(e^{\epsilon/mk} - 1)/(e^{\epsilon/m} - 1)`.

    Notes
    -----
    Basic composition gives a level :math:`(\epsilon/m, \delta/m)` per person. Along a chain of k
    neighbors each :math:`(e, d)`, :math:`P \le e^{e} P' + d` k times is
    :math:`P \le e^{ke} P' + d\,(1 + e^{e} + \dots + e^{(k-1)e})`.
    """
    k, m = check_max_contributions(max_contributions), _check_levels(levels)
    level = check_epsilon(epsilon) / m
    check_epsilon(level / k, "epsilon of a level")
    share = math.expm1(level / k) / math.expm1(level) if level < 700.0 else 0.0
    return level / k, check_delta(delta) / m * share


# --- Zero-concentrated DP -------------------------------------------------------------------------


def zcdp_epsilon(rho: float, delta: float) -> float:
    r"""Smallest epsilon that `rho`-zCDP gives at `delta`, by the Rényi conversion of [CKS20].

    Parameters
    ----------
    rho : float
        zCDP parameter, not negative.
    delta : float
        In (0, 1): zCDP gives no pure epsilon.

    Returns
    -------
    float
        The smallest ``epsilon >= 0``, from above; at most
        :math:`\rho + 2\sqrt{\rho \ln(1/\delta)}` ([BS16] Proposition 1.3).

    Notes
    -----
    [CKS20]: rho-zCDP is :math:`(\epsilon, \delta)`-DP for

    .. math:: \delta = \inf_{\alpha > 1} \frac{e^{(\alpha-1)(\alpha\rho - \epsilon)}}{\alpha - 1}
              (1 - 1/\alpha)^{\alpha}.

    Solved for epsilon, with :math:`\beta = \alpha - 1` and :math:`L = \ln(1/\delta)`,

    .. math:: \epsilon(\beta) = (1+\beta)\rho + \ln\frac{\beta}{1+\beta}
              + \frac{L - \ln(1+\beta)}{\beta},

    whose derivative has the one zero :math:`\rho\beta^2 = L - \ln(1+\beta)`. Every beta gives a
    true statement, so an error in beta costs tightness, never privacy.
    """
    rho = check_nonnegative("rho", rho)
    delta = check_delta(delta)
    if delta == 0.0:
        raise ValueError("delta must be positive to turn rho into epsilon, got 0.0")
    if rho == 0.0:
        return 0.0
    log_inverse = -math.log(delta)
    # Either of the two terms alone would be ln(1/delta) there.
    highest = min(math.sqrt(log_inverse) / math.sqrt(rho), math.expm1(min(log_inverse, 700.0)))
    beta = scipy.optimize.brentq(
        lambda b: (rho * b) * b + math.log1p(b) - log_inverse,  # b * b might underflow
        0.0,
        highest * (1.0 + 1e-12),  # the value there is positive
        xtol=1e-14 * highest,
        rtol=1e-14,
    )
    terms = (
        (1.0 + beta) * rho,
        -math.log1p(1.0 / beta),
        (log_inverse - math.log1p(beta)) / beta,
    )
    rounding = 2.0**-50 * (math.fsum(map(abs, terms)) + (log_inverse + 1.0) / beta)
    simple = rho + 2.0 * math.sqrt(rho * log_inverse)
    return max(0.0, min(math.fsum(terms) + rounding, simple))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Largest rho such that rho-zCDP is (`epsilon`, `delta`)-DP: the inverse of `zcdp_epsilon`.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        The largest rho with ``zcdp_epsilon(rho, delta) <= epsilon``, from below.
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    if delta == 0.0:
        raise ValueError("delta must be positive to turn epsilon into rho, got 0.0")
    least, most = CONVERTIBLE
    if not least <= epsilon <= most:
        raise ValueError(
            f"epsilon must lie between {least} and {most} to be turned into rho, got {epsilon}"
        )
    log_inverse = -math.log(delta)
    # Solves rho + 2 sqrt(rho L) = epsilon, which is never less than the tight conversion.
    low = (epsilon / (math.sqrt(log_inverse + epsilon) + math.sqrt(log_inverse))) ** 2
    high = 2.0 * low
    while zcdp_epsilon(high, delta) <= epsilon:
        high *= 2.0
    # In the logarithm of rho, which may be far below 1.
    rho = low * math.exp(
        scipy.optimize.brentq(
            lambda s: zcdp_epsilon(low * math.exp(s), delta) - epsilon * (1.0 - 1e-15),
            -1e-9,  # room for rounding: the simple bound may be the tight one
            math.log(high / low),
            xtol=1e-14,
            rtol=1e-14,
        )
    )
    step = 2.0**-50
    while zcdp_epsilon(rho, delta) > epsilon:
        rho *= 1.0 - step
        step *= 2.0
    return rho


# --- Guarantees -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Guarantee:
    r"""What a release promises each person. Every field that is set is a true statement by itself.

    Parameters
    ----------
    epsilon : float or None
        The release is (`epsilon`, `delta`)-DP. None if no such statement is made: a zCDP release,
        for which `compose` or `zcdp_epsilon` finds an epsilon for a chosen delta.
    delta : float, default 0.0
        In [0, 1); belongs to `epsilon` alone, and is 0 without it.
    rho : float, optional
        The release is `rho`-zCDP [BS16].
    bounded_range : float, optional
        Given the dithers of the records, which are the same for the records that two neighbors
        have in common, the log ratio of their output laws stays in an interval of this length
        [DDR20]; an exponential mechanism of epsilon has range epsilon, and is
        :math:`\epsilon^2/8`-zCDP [CR21]. Without dither the condition is empty. With it, the
        laws that are mixed over the dithers may have a larger range, but have every epsilon,
        delta and rho that follow from this one ("Dither" at the top of `dpq_fast.privacy`).
    neighbors : {"swap", "add-remove"}, default "swap"
        The relation of all statements.
    composition : str, default ""
        The theorem that gave them; empty for a single mechanism.

    Raises
    ------
    TypeError, ValueError
        If an argument breaks its rule, or nothing is promised.
    """

    epsilon: float | None
    delta: float = 0.0
    rho: float | None = None
    bounded_range: float | None = None
    neighbors: str = "swap"
    composition: str = ""

    def __post_init__(self) -> None:
        store = object.__setattr__  # frozen: keep the cleaned values
        store(self, "delta", check_delta(self.delta))
        if self.rho is not None:
            store(self, "rho", check_nonnegative("rho", self.rho))
        if self.bounded_range is not None:
            value = check_nonnegative("bounded_range", self.bounded_range)
            store(self, "bounded_range", value)
        if self.epsilon is not None:
            store(self, "epsilon", check_nonnegative("epsilon", self.epsilon))
        elif self.delta > 0.0:
            raise ValueError(f"delta must be 0 without epsilon, got {self.delta}")
        elif self.bounded_range is not None:
            # range b is b-DP, with dither, too, so there is always an epsilon to state
            raise ValueError("epsilon must be given with bounded_range, got None")
        elif self.rho is None:
            raise ValueError("a guarantee must state epsilon or rho, got neither")
        check_neighbors(self.neighbors)
        if not isinstance(self.composition, str):
            raise TypeError(f"composition must be a string, got {type(self.composition).__name__}")

    @property
    def implied_rho(self) -> float | None:
        r"""The smallest rho that the statements imply; None if (`epsilon`, `delta`) is all.

        Range b is :math:`b^2/8`-zCDP [CR21], which a mixture over dithers keeps; pure epsilon is
        :math:`\epsilon^2/2`-zCDP ([BS16] Proposition 1.4).
        """
        candidates = []
        if self.rho is not None:
            candidates.append(self.rho)
        if self.bounded_range is not None:
            candidates.append(self.bounded_range * self.bounded_range / 8.0)
        if self.epsilon is not None and self.delta == 0.0:
            candidates.append(self.epsilon * self.epsilon / 2.0)
        return min(candidates, default=None)

    def to(self, neighbors: str) -> Guarantee:
        r"""The same release under another relation, only where that follows.

        Parameters
        ----------
        neighbors : {"swap", "add-remove"}
            The relation wanted.

        Returns
        -------
        Guarantee
            From "add-remove" to "swap" by group privacy of two, since a replacement is a removal
            and an addition: epsilon and the range double, delta becomes
            :math:`\delta (1 + e^\epsilon)`, rho four times itself [BS16].

        Raises
        ------
        ValueError
            From "swap" to "add-remove", which does not follow, or if delta would reach 1 and no
            rho is left to state.
        """
        if check_neighbors(neighbors) == self.neighbors:
            return self
        if self.neighbors == "swap":
            raise ValueError(
                "neighbors must stay 'swap' for a guarantee under 'swap', which takes the number "
                "of records as public and says nothing about data sets of different size, "
                f"got {neighbors!r}"
            )
        rho = None if self.rho is None else 4.0 * self.rho
        epsilon, delta = self.epsilon, self.delta
        if epsilon is not None:
            if delta > 0.0:
                # e^epsilon beyond float64 is beyond 1/delta for every delta but the denormal ones
                delta = delta * (1.0 + math.exp(epsilon)) if epsilon < 700.0 else math.inf
            epsilon *= 2.0
        bounded_range = self.bounded_range
        if bounded_range is not None:
            bounded_range *= 2.0
        if delta >= 1.0:  # says nothing; the other statements may
            if bounded_range is not None:
                epsilon, delta = bounded_range, 0.0
            elif rho is not None:
                epsilon, delta = None, 0.0
            else:
                raise ValueError(
                    "delta (1 + exp(epsilon)) must be below 1 to convert to 'swap', "
                    f"got epsilon {self.epsilon}, delta {self.delta}"
                )
        composition = f"{self.composition} + group-privacy".removeprefix(" + ")
        return Guarantee(epsilon, delta, rho, bounded_range, neighbors, composition)

    @property
    def dp_event(self) -> Any:
        """This release for Google's `dp_accounting`.

        Returns
        -------
        dp_accounting.DpEvent
            ``ZCDpEvent`` where a rho (own or from the range) is known, since that is what composes
            best. For pure epsilon alone, under "swap" ``RandomizedResponseDpEvent`` with two
            buckets, of which every epsilon-DP mechanism is a post-processing [KOV15]; under
            "add-remove", which `dp_accounting` does not take for that event, ``ZCDpEvent`` of
            epsilon^2/2. ``UnsupportedDpEvent`` for (epsilon, delta) alone: there is no event for
            it, and an accountant then refuses rather than undercounts.

        Raises
        ------
        ImportError
            If `dp_accounting` is not installed.

        Notes
        -----
        An event holds no relation: give the accountant that of `neighbors`.
        """
        try:
            import dp_accounting
        except ImportError as error:
            raise ImportError(
                "dp_event must have dp_accounting: pip install 'dpq_fast[accounting]'"
            ) from error
        rho = self.implied_rho
        if rho is None:
            return dp_accounting.UnsupportedDpEvent()
        if self.rho is None and self.bounded_range is None and self.neighbors == "swap":
            # It answers uniformly with probability p, so P[truth]/P[lie] = (2 - p)/p = e^epsilon.
            shrunk = math.exp(-self.epsilon)
            return dp_accounting.RandomizedResponseDpEvent(2.0 * shrunk / (1.0 + shrunk), 2)
        return dp_accounting.ZCDpEvent(rho)


def _joint_exp_guarantee(
    *,
    q: Any = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Guarantee:
    """One exponential mechanism, whatever q; per person, since the rate is divided by k."""
    check_delta(delta)  # allowed, not used: the release is pure
    check_max_contributions(max_contributions)
    each = resolve_epsilon(epsilon, rho)
    if rho is None:
        rho = each * each / 8.0  # [CR21]
    return Guarantee(each, 0.0, rho, each, neighbors)


def _ind_exp_guarantee(
    *,
    q: Any = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Guarantee:
    """m independent exponential mechanisms of range `each` per person (rates divided by k)."""
    if q is None:
        raise ValueError("q must be given for method 'ind_exp', got None")
    check_max_contributions(max_contributions)
    m = q.m if isinstance(q, Levels) else Levels(q).m
    each = ind_exp_epsilon_each(m, epsilon, delta, rho)
    # Independent draws given the dither that they share: the log ratio is a sum of m, so the
    # ranges add up.
    bounded_range = m * each if epsilon is None or delta > 0.0 else epsilon
    if rho is not None:
        composition = "zcdp" if m > 1 else ""
        return Guarantee(bounded_range, 0.0, rho, bounded_range, neighbors, composition)
    composition = "bounded-range" if delta > 0.0 else "basic" if m > 1 else ""
    rho = m * each * each / 8.0  # [CR21], [BS16]
    return Guarantee(epsilon, delta, rho, bounded_range, neighbors, composition)


def _quantile_by_guarantee(
    *,
    q: Any = None,
    epsilon: float,
    neighbors: str = "swap",
    max_contributions: int = 1,
    public_by: bool = False,
) -> Guarantee:
    r"""Independent exponential mechanisms, of which one record changes one or two.

    See `quantile_by_rate` for the ranges. A person's records change group g by range r_g, and
    rho is the sum of :math:`r_g^2/8` [CR21, BS16]. A record adds to the vector of the r_g: one
    entry s where it stays in its group, two entries b where it moves. The length of a sum of k
    such vectors is at most k times that of the longest: :math:`\rho = k^2 \max(s^2, 2 b^2)/8`.
    For "swap" with private keys, :math:`k b = \epsilon/2` and
    :math:`k s = \epsilon/\Delta_{\pm}`; otherwise no record moves, and :math:`k s = \epsilon`.
    """
    check_max_contributions(max_contributions)
    epsilon = check_epsilon(epsilon)
    public_by = check_flag("public_by", public_by)
    share = 1.0
    if check_neighbors(neighbors) == "swap" and not public_by and q is not None:
        levels = q if isinstance(q, Levels) else Levels(q)
        share = max(0.5, joint_exp_sensitivity(levels.values, "add-remove") ** -2.0)
    return Guarantee(epsilon, 0.0, share * epsilon * epsilon / 8.0, epsilon, neighbors, "parallel")


def _unbounded_quantile_guarantee(
    *,
    q: Any,
    epsilon: float | None = None,
    rho: float | None = None,
    lower: float | None = 0.0,
    upper: float | None = None,
    invert: bool = False,
    split: float | None = None,
    noise: str = "exponential",
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Guarantee:
    """One search, two, or a recursion of them, by the number of levels and what is bounded."""
    levels = q if isinstance(q, Levels) else Levels(q)
    search = unbounded_search(lower, upper, invert)
    k, m = check_max_contributions(max_contributions), levels.m
    split = choose_split(split, noise)
    if m > 1 and search != "both":
        return _approx_quantiles_guarantee(
            q=levels.mirrored() if search == "down" else levels,
            epsilon=epsilon,
            rho=rho,
            base="unbounded",
            split=split,
            neighbors=neighbors,
            max_contributions=k,
        )
    each = resolve_epsilon(epsilon, rho, m)  # per level, epsilon or the square root of 8 rho
    total_epsilon, eight_rho, bounded_range = 0.0, 0.0, None
    for level in levels.values.tolist():
        cost, ranges = _unbounded_cost(level, check_neighbors(neighbors), search, split)
        unit = each / (cost if rho is None else math.sqrt(ranges))
        total_epsilon += cost * unit
        eight_rho += ranges * unit * unit
        bounded_range = math.sqrt(ranges) * unit if search != "both" else None
    if epsilon is None:
        return Guarantee(total_epsilon, 0.0, rho, bounded_range, neighbors, "zcdp" * (m > 1))
    return Guarantee(epsilon, 0.0, eight_rho / 8.0, bounded_range, neighbors, "basic" * (m > 1))


def _approx_quantiles_guarantee(
    *,
    q: Any,
    epsilon: float | None = None,
    rho: float | None = None,
    base: str = "ind_exp",
    split: float = SPLIT,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Guarantee:
    """Adaptive composition over the depths of the recursion: epsilons add up, and rhos."""
    levels = (q if isinstance(q, Levels) else Levels(q)).values
    k = check_max_contributions(max_contributions)
    scales = k * approx_quantiles_scales(levels, epsilon, rho, neighbors, base, split, k)
    by_depth = _split_losses(splits(levels), base, split)
    scaled = []
    for losses in by_depth:
        scaled.append(losses.scaled(scales[: losses.same.size]))
        scales = scales[losses.same.size :]
    if epsilon is None:
        epsilon = math.fsum(losses.epsilon(neighbors) for losses in scaled)
        theorem = "zcdp"
    else:
        rho = math.fsum(losses.eight_rho(neighbors) for losses in scaled) / 8.0
        theorem = "basic"
    return Guarantee(epsilon, 0.0, rho, None, neighbors, theorem if len(scaled) > 1 else "")


def _count_guarantee(
    *, epsilon: float, neighbors: str = "swap", max_contributions: int = 1
) -> Guarantee:
    """Laplace noise: pure, and nothing better is known of it than what that implies."""
    check_max_contributions(max_contributions)
    return Guarantee(check_epsilon(epsilon), neighbors=neighbors)


def _above_threshold_guarantee(
    *,
    epsilon1: float,
    epsilon2: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    noise: str = "exponential",
    neighbors: str = "swap",
) -> Guarantee:
    """For monotonic queries [Dur23] Theorem 1: range epsilon1 + 2 epsilon2."""
    above_threshold_rates(epsilon1, epsilon2, sensitivity, noise)  # its checks
    epsilon = above_threshold_loss(epsilon1, epsilon2, monotonic)
    if not monotonic:
        return Guarantee(epsilon, neighbors=neighbors)
    bounded_range = above_threshold_loss(epsilon1, epsilon2)
    rho = bounded_range * bounded_range / 8.0  # inf where ** would raise: `Guarantee` refuses it
    return Guarantee(epsilon, 0.0, rho, bounded_range, neighbors)


def _sparse_vector_guarantee(*, halts: int, **parameters: Any) -> Guarantee:
    """At most `halts` calls of AboveThreshold; each starts where the last one halted."""
    halts = check_count("halts", halts)
    one = _above_threshold_guarantee(**parameters)
    if halts == 1:
        return one
    rho = halts * one.implied_rho
    return Guarantee(halts * one.epsilon, 0.0, rho, None, one.neighbors, "basic")


def _csmooth_guarantee(
    *, q: Any = None, rho: float, neighbors: str = "swap", max_contributions: int = 1
) -> Guarantee:
    """Releases of `csmooth_epsilon_each`, whose rhos per person add up to `rho`."""
    check_max_contributions(max_contributions)
    return Guarantee(None, rho=check_rho(rho), neighbors=neighbors)


def _sum_guarantee(
    *,
    epsilon: float,
    q: Any = 0.99,
    lower: float | None = 0.0,
    upper: float | None = None,
    method: str = "unbounded",
    share: float = 0.5,
    split: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Guarantee:
    """A private clip, unless `q` is None, and then Laplace noise: epsilons add up, and rhos."""
    noise = _count_guarantee(
        epsilon=epsilon, neighbors=neighbors, max_contributions=max_contributions
    )
    if q is None:
        return noise
    first, rest = sum_epsilons(epsilon, share)
    two_sided = lower is None and upper is None
    if method != "unbounded":
        clip = _joint_exp_guarantee(epsilon=first)
    elif two_sided:
        clip = Guarantee(first)
    else:
        clip = _unbounded_quantile_guarantee(
            q=1.0 - q if lower is None else q,
            epsilon=first,
            lower=lower,
            upper=upper,
            split=split,
            neighbors=neighbors,
        )
    rho = clip.implied_rho + rest * rest / 2.0  # pure epsilon is epsilon^2/2-zCDP [BS16]
    return Guarantee(noise.epsilon, 0.0, rho, None, neighbors, "basic")


def _agg_tree_guarantee(
    *,
    q: Any = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    height: int | None = None,
    branching: int | None = None,
    points: int | None = None,
    noise: str = "geometric",
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Guarantee:
    r"""All counts of one tree, whatever is read off them; per person (scales times k).

    For Laplace noise of scale s, a count that changes by d is d/s-DP, hence
    :math:`d^2 / 2s^2`-zCDP ([BS16] Proposition 1.4), and these add up to
    :math:`\Delta_2^2 / 2 s^2 = \epsilon^2 \Delta_2^2 / 2 \Delta_1^2`.
    """
    check_delta(delta)  # allowed, not used
    height, _ = _tree_shape(height, branching, points)
    agg_tree_scale(height, epsilon, rho, noise, neighbors, max_contributions)
    if rho is not None:
        return Guarantee(None, 0.0, rho, None, neighbors)
    sensitivity, squared = agg_tree_sensitivity(height, neighbors, max_contributions)
    epsilon = check_epsilon(epsilon)
    rho = epsilon * epsilon * squared / (2 * sensitivity**2)
    return Guarantee(epsilon, 0.0, rho, None, neighbors)


def _cdf_guarantee(
    *,
    method: str = "binary_tree",
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    points: int | None = None,
    **options: Any,
) -> Guarantee:
    """By method: counts with discrete noise, or quantiles with Gaussian noise."""
    options = cdf_options(method, options, points)
    delta, k = check_delta(delta), max_contributions
    if method == "smooth_gaussian":
        if rho is not None:
            raise ValueError(f"rho must be left out for method 'smooth_gaussian', got {rho}")
        smooth_gaussian_scale(*cdf_smooth_gaussian_each(options["levels"], epsilon, delta, k))
        return Guarantee(epsilon, delta, None, None, neighbors, "basic")
    if method == "gaussian":
        shape = options["levels"], options["bins"]
        squared = cdf_gaussian_squared(*shape, neighbors, k)
        sigma = cdf_gaussian_sigma(*shape, epsilon, delta, rho, neighbors, k)
        # Normal noise is that much zCDP, too [BS16].
        implied = squared / (2.0 * sigma * sigma) if rho is None else rho
        return Guarantee(epsilon, delta, implied, None, neighbors)
    if delta > 0.0:
        raise ValueError(
            f"delta must be 0 for method {method!r}, which takes rho for Gaussian noise, "
            f"got {delta}"
        )
    # A depth of "adaptive" costs what a level of a tree costs: `cdf_adaptive_scale`.
    return _agg_tree_guarantee(
        epsilon=epsilon,
        rho=rho,
        height=cdf_touched(method, options),
        noise="geometric" if rho is None else "gaussian",
        neighbors=neighbors,
        max_contributions=k,
    )


# One entry per mechanism: keyword parameters of the public function -> Guarantee.
_GUARANTEES: dict[str, Callable[..., Guarantee]] = {
    "joint_exp": _joint_exp_guarantee,
    "ind_exp": _ind_exp_guarantee,
    "quantile_by": _quantile_by_guarantee,
    "agg_tree": _agg_tree_guarantee,
    "cdf": _cdf_guarantee,
    "sparse_vector": _sparse_vector_guarantee,
    "above_threshold": _above_threshold_guarantee,
    "approx_quantiles": _approx_quantiles_guarantee,
    "unbounded_quantile": _unbounded_quantile_guarantee,
    "csmooth": _csmooth_guarantee,
    "count": _count_guarantee,
    "sum": _sum_guarantee,
    "mean": _sum_guarantee,
}


def guarantee(method: str, /, **parameters: Any) -> Guarantee:
    r"""What a release by `method` with these public parameters promises; no data needed.

    Parameters
    ----------
    method : str
        Name of the mechanism's public function.
    **parameters
        As given to that function: `q` (but for "joint_exp", "quantile_by"), exactly one of
        `epsilon` and `rho`, `delta`, `neighbors`, `max_contributions`, and what else the privacy
        of that function depends on. All statements are per person of up to `max_contributions`
        records.

    Returns
    -------
    Guarantee
        "joint_exp": pure `epsilon`, which is also the range; :math:`\rho = \epsilon^2/8`. A given
        `rho` makes it :math:`\epsilon = \sqrt{8\rho}`. A `delta` is not used.
        "ind_exp": (`epsilon`, `delta`) for m distinct levels of range e each
        (`ind_exp_epsilon_each`); also :math:`\rho = m e^2/8` and range m e, which is `epsilon`
        where ``delta=0``.
        "quantile_by": pure `epsilon` for all groups together, which is also the range;
        :math:`\rho = \epsilon^2/8`, for "swap" with private keys and `q` given as little as half
        of it. Takes `public_by`, but no `rho` and no `delta`.
        "approx_quantiles": pure `epsilon` and the rho that its steps add up to, or the other way
        round (`approx_quantiles_scales`). Takes `base` and `split`.
        "unbounded_quantile": the same, by one search, two, or a recursion of them
        (`unbounded_quantile_epsilons`); with one, also the range. Takes `lower`, `upper`,
        `invert` and `split`.
        "above_threshold": pure :math:`\epsilon_1 + 2\epsilon_2`; with `monotonic`, pure
        :math:`\epsilon_1 + \epsilon_2`, range r = :math:`\epsilon_1 + 2\epsilon_2` and
        :math:`\rho = r^2/8`. Takes `epsilon1`, `epsilon2`, `sensitivity`, `monotonic`, `noise`
        and `neighbors`.
        "sparse_vector": the same, and `halts` times as much of epsilon and of rho; a range only
        for ``halts=1``.
        "csmooth": `rho` alone, which takes the place of `epsilon`.
        "agg_tree": pure `epsilon` and its :math:`\rho = \epsilon^2 / 4h` ("swap") or
        :math:`\epsilon^2 / 2h`; with noise "gaussian", `rho` alone. Takes `noise`, `height` and
        `branching`, and `points`, the number of lattice points inside the bounds: a tree has no
        more levels than it takes to give each point a leaf, and then another rho.
        "cdf": of counts, as "agg_tree" ("histogram" has h = 1, "adaptive" its depth); "gaussian"
        (`epsilon`, `delta`) and the rho of its noise, or `rho` alone; "smooth_gaussian"
        (`epsilon`, `delta`). Takes `method`, its options, and `points`, as "agg_tree".
        "count": pure `epsilon`.
        "sum", "mean": pure `epsilon`, and the rho that the clip and the noise add up to. They take
        `lower`, `upper`, `method`, `share` and `split`; ``q=None`` for a public clip.

    Raises
    ------
    TypeError, ValueError
        If `method` is unknown or a parameter breaks its rule.

    Examples
    --------
    >>> guarantee("joint_exp", epsilon=2.0).rho
    0.5
    """
    return _GUARANTEES[check_choice("method", method, tuple(_GUARANTEES))](**parameters)


# --- Composition ----------------------------------------------------------------------------------


def compose(
    guarantees: Iterable[Guarantee],
    *,
    delta: float = 0.0,
    adaptive: bool = True,
    neighbors: str | None = None,
) -> Guarantee:
    r"""Guarantee of several releases together: the best of the theorems that apply.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        One per release, at least one. Their parameters must have been fixed before the first
        release; for budgets chosen along the way use `Accountant`.
    delta : float, default 0.0
        The total delta allowed. 0: basic composition only, with the sum of the deltas.
    adaptive : bool, default True
        Whether a release may depend on the outputs of earlier ones. False is your promise that
        none did, and lets the range bounds be composed.
    neighbors : {"swap", "add-remove"}, optional
        Relation to convert to (`Guarantee.to`); needed if the relations differ.

    Returns
    -------
    Guarantee
        The smallest epsilon found; `composition` names its theorem. rho is the sum where each
        release has or implies one; the range is the sum where each has one and ``adaptive=False``
        (adaptively, the ranges of a sequence do not add up).

    Raises
    ------
    TypeError, ValueError
        If an argument breaks its rule, relations are mixed, or no theorem applies.

    Notes
    -----
    - "basic": epsilons and deltas add up. A release that states only rho is first converted by
      `zcdp_epsilon`; these share equally what `delta` leaves beyond the other deltas.
    - "zcdp": each release has or implies a rho (`Guarantee.implied_rho`); the sum [BS16] is
      converted at `delta` [CKS20].
    - "bounded-range": ``adaptive=False`` and up to 2^15 equal ranges; [DDR20] Theorem 3, solved by
      `bounded_range_epsilon`. It holds given the dithers, hence without. The deltas of the parts
      do not count here or under "zcdp": rho and range are statements of their own.

    With ``delta=0``, releases that state only rho give a guarantee that states only rho.
    """
    parts = list(guarantees)
    for part in parts:
        if not isinstance(part, Guarantee):
            raise TypeError(
                f"guarantees must hold Guarantee objects, got an item of type {type(part).__name__}"
            )
    if not parts:
        raise ValueError("guarantees must hold at least one guarantee, got none")
    delta = check_delta(delta)
    adaptive = check_flag("adaptive", adaptive)
    if neighbors is not None:
        parts = [part.to(neighbors) for part in parts]
    elif len({part.neighbors for part in parts}) > 1:
        raise ValueError(
            "neighbors must be given to compose guarantees of different relations, "
            "got 'swap' and 'add-remove'"
        )
    neighbors = parts[0].neighbors

    rhos = [part.implied_rho for part in parts]
    rho = None if None in rhos else math.fsum(rhos)
    ranges = [part.bounded_range for part in parts]
    bounded_range = None if adaptive or None in ranges else math.fsum(ranges)
    own_delta = math.fsum(part.delta for part in parts)
    unstated = sum(part.epsilon is None for part in parts)

    if delta == 0.0 and unstated:
        if rho is None:
            raise ValueError(
                "delta must be positive to state an epsilon for guarantees of rho alone, got 0.0"
            )
        return Guarantee(None, 0.0, rho, None, neighbors, "zcdp")

    candidates: list[tuple[float, float, str]] = []
    share = (delta - own_delta) / unstated if unstated else 0.0
    within = delta == 0.0 or own_delta <= delta * (1.0 + SUM_TOLERANCE)
    if within and own_delta < 1.0 and (share > 0.0 or not unstated):
        epsilon = math.fsum(
            zcdp_epsilon(part.rho, share) if part.epsilon is None else part.epsilon
            for part in parts
        )
        candidates.append((epsilon, delta if unstated else own_delta, "basic"))
    if delta > 0.0 and rho is not None:
        candidates.append((zcdp_epsilon(rho, delta), delta, "zcdp"))
    alike = len(set(ranges)) == 1 and len(parts) <= MOST_COMPOSED
    if delta > 0.0 and bounded_range and alike and COMPOSABLE[0] <= ranges[0] <= COMPOSABLE[1]:
        # Not sound for adaptive sequences: [DDR20] shows that the adversary gains by adapting.
        # Sound for ranges given the dithers, since (epsilon, delta) is kept by mixtures.
        epsilon = bounded_range_epsilon(len(parts), ranges[0], delta)
        candidates.append((epsilon, delta, "bounded-range"))
    if not candidates:
        if delta == 0.0:
            raise ValueError(f"the sum of the deltas must be below 1, got {own_delta}")
        raise ValueError(
            f"delta must be {'more than' if unstated else 'at least'} the sum of the deltas, "
            f"{own_delta}, got {delta}"
        )
    epsilon, total_delta, theorem = min(candidates)  # smallest epsilon, then smallest delta
    return Guarantee(epsilon, total_delta, rho, bounded_range, neighbors, theorem)


class BudgetExceeded(ValueError):
    """A release was refused because it would overdraw its `Accountant`; no data was touched."""


class Accountant:
    r"""A budget that refuses what would overdraw it, whatever order and size the releases have.

    Parameters
    ----------
    epsilon : float
        Total epsilon, per person.
    delta : float, default 0.0
        Total delta.
    neighbors : {"swap", "add-remove"}, default "swap"
        The relation of the budget.
    composition : {"basic", "zcdp"}, default "basic"
        "basic" adds up epsilon and delta. "zcdp" needs ``delta > 0``, keeps a budget of
        ``zcdp_rho(epsilon, delta)``, and takes releases that have or imply a rho.
    convert : bool, default False
        Whether to take guarantees of another relation by `Guarantee.to`.

    Raises
    ------
    TypeError, ValueError
        If an argument breaks its rule.

    Notes
    -----
    The analyst may choose each release *and its budget* after seeing all outputs so far. Adding
    up against a bound fixed beforehand stays sound then: it is a privacy filter, for basic
    composition by Rogers, Roth, Ullman and Vadhan 2016, for zCDP by Feldman and Zrnic 2021. The
    theorem is chosen once, here. Going on as long as *either* of two theorems allows is not a
    filter: when to stop would then depend on outputs in a way that neither proof covers. For
    releases fixed in advance, `compose` may take the best theorem.

    Sums are correctly rounded (`math.fsum`), and a total may exceed the budget by 1e-12 of it, so
    that ten charges of 0.1 fit a budget of 1.0. Thread-safe.

    Examples
    --------
    >>> accountant = Accountant(1.0)
    >>> accountant.charge(Guarantee(0.25))  # and then the release
    >>> accountant.remaining.epsilon
    0.75
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        neighbors: str = "swap",
        composition: str = "basic",
        *,
        convert: bool = False,
    ) -> None:
        self._epsilon = check_epsilon(epsilon)
        self._delta = check_delta(delta)
        self._neighbors = check_neighbors(neighbors)
        self._composition = check_choice("composition", composition, ("basic", "zcdp"))
        self._convert = check_flag("convert", convert)
        self._rho: float | None = None
        if composition == "zcdp":
            if self._delta == 0.0:
                raise ValueError("delta must be positive for composition 'zcdp', got 0.0")
            self._rho = zcdp_rho(self._epsilon, self._delta)
        self._lock = threading.Lock()
        self._history: list[Guarantee] = []

    @property
    def neighbors(self) -> str:
        """The relation of the budget."""
        return self._neighbors

    def charge(self, guarantee: Guarantee) -> None:
        """Record the cost of a release, before the release looks at the first record.

        Parameters
        ----------
        guarantee : Guarantee
            What the release promises.

        Raises
        ------
        BudgetExceeded
            If the release does not fit into what is left beside all others.
        TypeError, ValueError
            If the guarantee's relation does not match, or it lacks the statement that the
            accountant adds up.

        Notes
        -----
        There is no refund. Whether a release fails once it reads records (a NaN where there must
        be none, a source that breaks off, an interrupt, no memory) may depend on them, so a
        failure is an output, and could be asked for again and again. The library's releases check
        all that is public first: what they refuse for it is not charged.
        """
        charged = self._accepted(guarantee)
        with self._lock:
            self._refuse_overdraft(charged)
            self._history.append(charged)

    def _accepted(self, guarantee: Guarantee) -> Guarantee:
        """`guarantee` in the budget's relation, with the statement that is added up."""
        if not isinstance(guarantee, Guarantee):
            raise TypeError(f"guarantee must be a Guarantee, got {type(guarantee).__name__}")
        if guarantee.neighbors != self._neighbors:
            if not self._convert:
                raise ValueError(
                    f"the guarantee must be under {self._neighbors!r}, the accountant's relation "
                    f"(or set convert=True), got {guarantee.neighbors!r}"
                )
            guarantee = guarantee.to(self._neighbors)
        if self._rho is not None:
            if guarantee.implied_rho is None:
                raise ValueError(
                    "a release must state rho for an accountant of composition 'zcdp', "
                    f"got {_spoken(guarantee)}"
                )
        elif guarantee.epsilon is None:
            raise ValueError(
                "a release must state epsilon for an accountant of composition 'basic', "
                f"got {_spoken(guarantee)}"
            )
        return guarantee

    def _refuse_overdraft(self, charged: Guarantee) -> None:
        """Raise `BudgetExceeded` unless `charged` fits. The caller holds the lock."""
        total = self._sums(charged)
        budget = (self._rho,) if self._rho is not None else (self._epsilon, self._delta)
        if all(
            cost <= bound * (1.0 + SUM_TOLERANCE) for cost, bound in zip(total, budget, strict=True)
        ):
            return
        spent = self._sums()
        if self._rho is not None:
            raise BudgetExceeded(
                f"a release must fit the budget of rho={self._rho}, of which rho={spent[0]} is "
                f"spent, got rho={charged.implied_rho}"
            )
        raise BudgetExceeded(
            f"a release must fit the budget of epsilon={self._epsilon}, delta={self._delta}, of "
            f"which epsilon={spent[0]}, delta={spent[1]} is spent, got {_spoken(charged)}"
        )

    def _sums(self, *more: Guarantee) -> tuple[float, ...]:
        """Totals of what is recorded and `more`: (rho,) or (epsilon, delta)."""
        parts = [*self._history, *more]
        if self._rho is not None:
            return (math.fsum(part.implied_rho for part in parts),)
        return math.fsum(part.epsilon for part in parts), math.fsum(part.delta for part in parts)

    @property
    def spent(self) -> Guarantee:
        """Guarantee of all releases charged so far.

        Under "zcdp" its epsilon is that of the rho spent, at the budget's delta.
        """
        with self._lock:
            sums = self._sums()
        if self._rho is None:
            # The sum of deltas may pass a budget just below 1 by the tolerance.
            delta = min(sums[1], math.nextafter(1.0, 0.0))
            return Guarantee(sums[0], delta, neighbors=self._neighbors, composition="basic")
        (rho,) = sums
        epsilon = zcdp_epsilon(rho, self._delta)
        return Guarantee(epsilon, self._delta, rho, None, self._neighbors, "zcdp")

    @property
    def remaining(self) -> Guarantee:
        """The largest guarantee that `charge` still takes; of rho alone under "zcdp"."""
        with self._lock:
            sums = self._sums()
        if self._rho is not None:
            return Guarantee(None, rho=max(0.0, self._rho - sums[0]), neighbors=self._neighbors)
        epsilon = max(0.0, self._epsilon - sums[0])
        return Guarantee(epsilon, max(0.0, self._delta - sums[1]), neighbors=self._neighbors)

    @property
    def history(self) -> tuple[Guarantee, ...]:
        """The recorded guarantees in the order in which they were charged."""
        with self._lock:
            return tuple(self._history)


def _spoken(guarantee: Guarantee) -> str:
    """The statements that a budget is about, for a message."""
    if guarantee.epsilon is None:
        return f"rho={guarantee.rho} alone"
    return f"epsilon={guarantee.epsilon}, delta={guarantee.delta}"


def charge(accountant: Accountant | None, method: str, /, **parameters: Any) -> None:
    """``accountant.charge(guarantee(method, **parameters))``; nothing without an accountant.

    Every release calls it when all that is public has been checked, and no record been read.
    """
    if accountant is None:
        return
    if not isinstance(accountant, Accountant):
        raise TypeError(f"accountant must be an Accountant, got {type(accountant).__name__}")
    accountant.charge(guarantee(method, **parameters))
