r"""Intervals around released quantiles: a search for a width, or a tree; what each of them spends.

**Search.** A value V was released, and counts as public. Candidates of intervals
:math:`[L_j, H_j]` with :math:`L_j \le V \le H_j` shrink towards V; the first is as wide as the
bounds. With n records and thresholds :math:`\ell(n) \le h(n)` for the numbers of records before
and up to an end,

.. math:: f_j = \max(\#\{x < L_j\} - \ell(n),\; h(n) - \#\{x \le H_j\}),

without the side that has reached its bound, where nothing is left to be shown. AboveThreshold
[Dur23] with exponential noise halts at the first j with :math:`f_j + c + \nu_j \ge \nu`; the
candidate before is released.

**Coverage.** Let :math:`\ell(n) = h(n) = q n`, and x* the record of rank :math:`\lceil q n \rceil`.
A candidate without x* has :math:`f_j \ge 0`: if x* < L_j, at least q n records are below L_j, and
if x* > H_j, fewer than q n are up to H_j. The candidates are nested, so the ones without x* are
the last ones; let j* be the first of them. The interval released lacks x* only if the search goes
past j*, which has probability at most

.. math:: P(\nu - \nu_{j*} > c) = \frac{B}{A + B} e^{-A c}

for rates A of the threshold's noise and B of a query's, whatever the records are, whatever V is,
and however many candidates there are: their number costs width, not coverage.

*Of a population.* Records drawn independently from one law with the q-quantile Q. Then
:math:`\#\{x < Q\}` is stochastically at most, and :math:`\#\{x \le Q\}` at least, binomial of n and
q. With :math:`h(n)` so that the binomial is larger with probability at most b, and :math:`\ell(n)`
so that it is smaller with probability at most b, the interval lies beside Q on one given side with
probability at most b plus that of the noise; on two sides with at most twice that. Both are bounds
of Zubkov and Serov [ZS12]: for an integer k > q n

.. math:: P(\mathrm{Bin}(n, q) > k) \le \Phi\bigl(-\sqrt{2 n\,\mathrm{KL}(k/n, q)}\bigr).

The right hand side falls with k. So :math:`h(n) = \min(k + 1, n)` will do for the real number k
where it is b (n if there is none), and :math:`\ell` is the mirror image.

**Sensitivity.** Let a replaced record keep n. Each count moves by at most one, all in one
direction: with one side only the queries are monotonic; with two, one side may rise while the
other falls, each by at most one. One record more moves :math:`\#\{x < L\} - \ell(n)` and
:math:`h(n) - \#\{x \le H\}` by at most :math:`\kappa = \max(q, 1 - q)` in either direction, or by
:math:`\kappa = 1` for a population: there :math:`dk/dn` on a curve
:math:`n\,\mathrm{KL}(k/n, q)` = const is

.. math:: \frac{\ln\frac{1-q}{1-p}}{\ln\frac{p}{q} + \ln\frac{1-q}{1-p}} \in [0, 1],\quad p = k/n,

(with all signs turned for p < q), so that thresholds move by 0 to 1. By [Dur23] Definition A.1
(`one_sided_loss`) a search costs, with D the largest rise so far:

- two sides, same n: :math:`A + 2B`, since :math:`D \le 1` and a query falls by at most 1;
- two sides, one record more or less: :math:`\kappa (A + 2B)`, by the same;
- one side, same n: :math:`A + B`;
- one side, one record more or less, with the threshold moving by :math:`\tau \in [0, 1]`: as H
  shrinks past the record, :math:`h - \#\{x \le H\}` moves by :math:`\tau - 1` first, then by
  :math:`\tau`, which costs :math:`\max(\tau A, (1 - \tau) B)`; the other way round it moves by
  :math:`1 - \tau`, then by :math:`-\tau`, which costs :math:`(1 - \tau) A + B`. The lower end is
  the mirror image. With :math:`\tau = q`, or any :math:`\tau` for a population: at most
  :math:`A + B`.

**Composition.** Value and search, or value and tree, are released one after the other: epsilons,
deltas and rhos add up [BS16]. Which sides are searched, the candidates, and the shape of the tree
depend on public arguments and on V.

References
----------
- [ZS12] A. M. Zubkov, A. A. Serov, "A complete proof of universal inequalities for the
  distribution function of the binomial law", Theory Probab. Appl. 57(3), 2013.
- [Dur23], [BS16]: README, "Papers".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from scipy import special

from dpq_fast._checks import check_choice, check_max_contributions
from dpq_fast.privacy import agg_tree
from dpq_fast.privacy.above_threshold import check_fraction
from dpq_fast.privacy.accounting import Calibrated
from dpq_fast.privacy.budgets import check_steps, resolve_epsilon
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import largest_for_rho, pure_rho

SAMPLE, POPULATION = KINDS = ("sample", "population")
# Of the budget, for the interval: a value's error grows by 1 / (1 - share).
SHARE = 0.3
# A search of so many levels is shorter than a tree's intervals.
SEARCHED_LEVELS = 2
# Share of the threshold's noise in the epsilon of a search of two sides, and of one: the least
# expected widths on evenly spread records.
FRACTION = {2: 0.45, 1: 0.55}
# An end is searched for where there are so many margins of records beyond it.
TOLD_APART = 3.0
# Candidates of the share of sampling in what an interval may miss.
_SHARES = tuple(share / 32.0 for share in range(1, 32))
# Of a rate, for what thresholds are rounded by: less than 1e-6 records, for up to 2^53 of them.
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Request:
    """What an interval is to cover, and what it may cost.

    Attributes
    ----------
    confidence : float
        Probability to cover, of each interval by itself.
    covers : {"sample", "population"}
    share : float
        Of the budget, so that a value is as accurate as with 1 - share of it.
    """

    confidence: float
    covers: str
    share: float

    @classmethod
    def of(
        cls, confidence: Any = None, covers: Any = SAMPLE, interval_share: Any = None
    ) -> Request | None:
        """Checked; None without a `confidence`, and then there is nothing to be said about it."""
        covers = check_choice("covers", covers, KINDS)
        if interval_share is not None:
            interval_share = check_fraction(interval_share, "interval_share")
        if confidence is None:
            if covers != SAMPLE or interval_share is not None:
                raise ValueError("confidence must be given with covers or interval_share, got None")
            return None
        share = SHARE if interval_share is None else interval_share
        return cls(check_fraction(confidence, "confidence"), covers, share)

    @property
    def miss(self) -> float:
        """Probability not to cover."""
        return 1.0 - self.confidence

    @property
    def rest(self) -> float:
        """Share of the budget for the value."""
        return 1.0 - self.share


class Search(NamedTuple):
    """The search around one level.

    Attributes
    ----------
    q : float
    below, above : bool
        Whether the lower and the upper end are searched; else they are the bounds.
    rates : (float, float)
        A and B.
    margin : float
        c.
    sampling : float
        b of the binomial bounds; 0 for the sample's quantile.
    """

    q: float
    below: bool
    above: bool
    rates: tuple[float, float]
    margin: float
    sampling: float

    def thresholds(self, n: int) -> tuple[float, float]:
        r""":math:`\ell(n)` and :math:`h(n)`."""
        return binomial_range(n, self.q, self.sampling)


class Calibration(NamedTuple):
    """What a value and the intervals around it spend, and guarantee.

    Attributes
    ----------
    value : Calibrated
        Of the mechanism of the value.
    searches : tuple of Search
        Of each level; none where a tree gives the ends.
    tree : agg_tree.Calibration or None
    each : float
        Epsilon of each search.
    epsilon, delta, rho
        The budget of the call, as it was given.
    relation : Relation
    """

    value: Calibrated
    searches: tuple[Search, ...]
    tree: agg_tree.Calibration | None
    each: float
    epsilon: float | None
    delta: float
    rho: float | None
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """The value, and then the ends."""
        if self.epsilon is None:
            return Guarantee(None, 0.0, self.rho, None, self.relation.name, "zcdp")
        ends = [Guarantee(self.each, neighbors=self.relation.name)] * len(self.searches)
        if self.tree is not None:
            ends = [self.tree.guarantee]
        rhos = [part.implied_rho for part in (self.value.guarantee, *ends)]
        rho = math.fsum(rho for rho in rhos if rho is not None) if None not in rhos else None
        return Guarantee(self.epsilon, self.delta, rho, None, self.relation.name, "basic")


def split(
    request: Request, epsilon: float | None, delta: float, rho: float | None
) -> tuple[dict[str, Any], float]:
    """The budget of the value, and that of the ends: epsilon or rho, whichever is given.

    The error of a value grows like 1 / sqrt(rho), so that it keeps the square of the rest. All of
    delta is the value's.
    """
    resolve_epsilon(epsilon, rho)  # refuses two of them, and none
    if rho is None:
        assert epsilon is not None
        ends = request.share * epsilon
        return dict(epsilon=epsilon - ends, delta=delta, rho=None), ends
    own = request.rest**2 * rho
    return dict(epsilon=None, delta=delta, rho=own), rho - own


def calibrate(
    value: Calibrated,
    levels: Levels,
    request: Request,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    points: int | None = None,
    bounded: bool = True,
    expected_n: int | None = None,
) -> Calibration:
    """What the ends spend beside a value.

    Parameters
    ----------
    value : Calibrated
        Of the mechanism of the value, with its part of the budget (`split`).
    levels : Levels
    request : Request
    epsilon, delta, rho
        Budget of the call.
    neighbors, max_contributions
        As for the value.
    points : int or None
        Number of lattice points between the bounds, for the shape of a tree.
    bounded : bool, default True
        Whether there are bounds: without, there is no tree.
    expected_n : int, optional
        About how many records there are, by what is public. Default: 10,000.

    Returns
    -------
    Calibration
        Of up to two levels, and without bounds, searches; else of a tree.
    """
    relation = relation_of(neighbors)
    ends = split(request, epsilon, delta, rho)[1]
    n = expected_n or agg_tree.DEFAULT_N
    searches: tuple[Search, ...] = ()
    tree, each = None, 0.0
    if bounded and levels.m > SEARCHED_LEVELS:
        tree = agg_tree.calibrate(
            epsilon=ends if rho is None else None,
            rho=None if rho is None else ends,
            points=points,
            expected_n=n,
            noise="geometric" if rho is None else "gaussian",
            neighbors=neighbors,
            max_contributions=max_contributions,
        )
    else:
        each = ends / levels.m if rho is None else _pure(ends / levels.m)
        unit = each * (1.0 - ROUNDING) / check_max_contributions(max_contributions)
        searches = _searches(
            levels, unit, n, request, lambda one: relation.worst(one=one, same=1.0)
        )
    return Calibration(value, searches, tree, each, epsilon, delta, rho, relation)


def calibrate_call(
    value_of: Callable[..., Calibrated],
    request: Request,
    *,
    q: Any = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    points: int | None = None,
    expected_n: int | None = None,
    **parameters: Any,
) -> Calibration:
    """What a call of a mechanism with a confidence spends: its value, and the ends.

    Parameters
    ----------
    value_of : callable
        The mechanism's own `calibrate`.
    request : Request
    q, epsilon, delta, rho, neighbors, max_contributions, **parameters
        As for `value_of`; `q` has to be given.
    points, expected_n
        As in `calibrate`.
    """
    if q is None:
        raise ValueError("q must be given with a confidence, got None")
    person = dict[str, Any](neighbors=neighbors, max_contributions=max_contributions)
    own, _ = split(request, epsilon, delta, rho)
    budget = {name: given for name, given in own.items() if given}
    return calibrate(
        value_of(q, **budget, **person, **parameters),
        Levels.of(q),
        request,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        points=points,
        bounded=not {"lower", "upper"} & parameters.keys(),
        expected_n=expected_n,
        **person,
    )


def _pure(rho: float) -> float:
    """The pure epsilon that a rho buys."""
    return largest_for_rho(pure_rho, rho, math.sqrt(2.0 * rho) * (1.0 - ROUNDING))


def calibrate_groups(
    levels: Levels,
    request: Request,
    *,
    epsilon: float,
    neighbors: str,
    max_contributions: int,
    public_by: bool,
    expected_n: int | None = None,
) -> tuple[Search, ...]:
    """The searches of each of some groups, for a part `epsilon` of the budget of all of them.

    Parameters
    ----------
    levels, request, epsilon, neighbors, max_contributions
        As in `calibrate`.
    public_by : bool
        As in `privacy.quantile_by.calibrate`: else a replaced record may leave one group and come
        into another, which costs one record less and one more.
    expected_n : int, optional
        About how many records a group has.
    """
    relation = relation_of(neighbors)

    def cost_of(one: float) -> float:
        moved = None if public_by else 2.0 * one
        return float(relation.worst(one=one, same=1.0, moved=moved))

    unit = epsilon / levels.m * (1.0 - ROUNDING) / max_contributions
    return _searches(levels, unit, expected_n or agg_tree.DEFAULT_N, request, cost_of)


def _searches(
    levels: Levels, unit: float, n: int, request: Request, cost_of: Callable[[float], float]
) -> tuple[Search, ...]:
    """Of each level, for `unit` per record and n records."""
    return tuple(_search(q, unit, n, request, cost_of) for q in levels.values.tolist())


def _search(
    q: float, unit: float, n: int, request: Request, cost_of: Callable[[float], float]
) -> Search:
    """Of one level: with both ends, unless one of them is hard to tell from its bound.

    That is where there are hardly more records beyond it than the margin, and looking for it would
    make the other end as far.
    """
    both = _one_search(q, True, True, unit, n, request, cost_of)
    low, high = both.thresholds(n)
    least = TOLD_APART * both.margin
    below, above = low > least, n - high > least
    if below and above:
        return both
    return _one_search(q, below, above, unit, n, request, cost_of)


def _one_search(
    q: float,
    below: bool,
    above: bool,
    unit: float,
    n: int,
    request: Request,
    cost_of: Callable[[float], float],
) -> Search:
    """With the sides given.

    `cost_of` is the largest of what a change of a record costs, from that of one record more or
    less, relative to that of a replacement in place.
    """
    sides = below + above
    fraction = FRACTION[max(sides, 1)]
    sampled = request.covers == POPULATION
    if sides == 2:
        first, second = fraction, (1.0 - fraction) / 2.0
        one = max(q, 1.0 - q)
    else:
        first, second = fraction, 1.0 - fraction
        tau = 1.0 - q if below else q
        one = max(tau * first, (1.0 - tau) * second, (1.0 - tau) * first + second)
    cost = cost_of(1.0 if sampled else one)
    rates = check_steps((first * unit / cost, second * unit / cost))

    def margin(miss: float) -> float:
        return float(max(0.0, math.log(rates[1] / (rates[0] + rates[1]) / miss) / rates[0]))

    if not sampled:
        return Search(q, below, above, rates, margin(request.miss), 0.0)
    miss = request.miss / max(sides, 1)
    level = q if above else 1.0 - q

    def width(share: float) -> float:
        return margin((1.0 - share) * miss) + binomial_above(n, level, share * miss)

    share = min(_SHARES, key=width)
    return Search(q, below, above, rates, margin((1.0 - share) * miss), share * miss)


def binomial_range(n: float, q: float, miss: float) -> tuple[float, float]:
    """What a binomial variable stays between, but for `miss` at either end; q n for no miss."""
    if miss == 0.0:
        return q * n, q * n
    return n - binomial_above(n, 1.0 - q, miss), binomial_above(n, q, miss)


def binomial_above(n: float, q: float, miss: float) -> float:
    """A number that a binomial variable of n and q exceeds with probability at most `miss`."""
    if n <= 0.0 or q <= 0.0:
        return 0.0
    if q >= 1.0:
        return float(n)
    needed = float(special.ndtri(miss)) ** 2 / (2.0 * n)
    if needed >= -math.log(q):  # KL(1, q)
        return float(n)

    def missing(p: float) -> float:
        return float(special.rel_entr(p, q) + special.rel_entr(1.0 - p, 1.0 - q)) - needed

    from scipy import optimize  # which is slow to load

    share = optimize.brentq(missing, q, 1.0, xtol=1e-15, rtol=8.9e-16)
    return min(n * float(share) + 1.0, float(n))
