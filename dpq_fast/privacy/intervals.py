r"""Intervals around released quantiles: one search for all of them, what it covers and spends.

**Search.** Values :math:`V_1 \le \dots \le V_m` of the levels :math:`q_1 < \dots < q_m` were
released, and count as public. Candidates :math:`([L_{1j}, H_{1j}], \dots, [L_{mj}, H_{mj}])` with
:math:`L_{ij} \le V_i \le H_{ij}` shrink towards the values; those of the first candidate are as
wide as the bounds. With n records and thresholds :math:`\ell_i(n) \le h_i(n)` for the numbers of
records before and up to an end,

.. math:: f_j = \max_i \max(\#\{x < L_{ij}\} - \ell_i(n),\; h_i(n) - \#\{x \le H_{ij}\}),

without the sides that have reached their bound, where nothing is left to be shown, or never leave
it. AboveThreshold [Dur23] with exponential noise halts at the first j with
:math:`f_j + c + \nu_j \ge \nu`; the candidate before is released. How many levels there are costs
nothing: a record moves the largest of their numbers as far as one of them.

**Coverage.** Let :math:`\ell_i(n) = h_i(n) = q_i n`, and :math:`x^*_i` the record of rank
:math:`\lceil q_i n \rceil` (the first for 0). A candidate without it has :math:`f_j \ge 0`: if it
lies below :math:`L_{ij}`, at least :math:`q_i n` records do, and if above :math:`H_{ij}`, at most
:math:`q_i n` are up to there. Candidates are nested, so those that lack one of the records are the
last ones; let j* be the first of them. An interval that is released lacks its record only if the
search goes past j*, which has probability at most

.. math:: P(\nu - \nu_{j^*} > c) = \frac{B}{A + B} e^{-A c}

for rates A of the threshold's noise and B of a query's, whatever the records are, whatever the
values are, and however many candidates there are: their number costs width, not coverage. All
levels are covered at once.

*Of a population.* Records drawn independently from one law with the q-quantile Q. Then
:math:`\#\{x < Q\}` is stochastically at most, and :math:`\#\{x \le Q\}` at least, binomial of n and
q. Which candidate is the first without Q follows from the records and the values, not from the
noise, so :math:`D = \nu - \nu_{j^*}` is independent of the records. With h(n) so that

.. math:: P(K + D > h(n)) \le b \quad\text{for K binomial of n and q},

the interval lies below Q with probability at most b: it does only if
:math:`D > h(n) - \#\{x \le H_{j^*}\} \ge h(n) - \#\{x < Q\}`. And :math:`\ell` is the mirror image;
so that the interval lies on either side of Q with at most 2 b, for each level by itself. Chance and
noise are added before they are bounded, and c is 0. The binomial is replaced by one that is larger,
of the bounds of Zubkov and Serov [ZS12]: for integers k

.. math:: P(\mathrm{Bin}(n, q) > k) \le \Phi\bigl(-\sqrt{2 n\,\mathrm{KL}(k/n, q)}\bigr)

above q n. Of descending probabilities :math:`p_1 > p_2 > \dots` let :math:`k_i` be the real number
where the right hand side is :math:`p_i` (it falls with k), or n: then K is stochastically at most
:math:`\min(k_i + 1, n)` with probability :math:`p_{i-1} - p_i`, and n with what is left. What is
rounded is their distance from q n alone, which grows like the root of n; q n is exact.

*Of a population of persons* who were drawn independently, each with up to k records
(`max_contributions`; parts of a record are records), which are not independent of one another. Let
:math:`t_i \le 1` be the number of records of person i, and :math:`t_i s_i` that of those below Q,
both in units of k: Q is a q-quantile of a record of the population drawn by these weights, so that
:math:`E[t_i (s_i - q)] \le 0`. For any :math:`\lambda > 0` and
:math:`G = 1 - q + q e^\lambda`, since :math:`e^{\lambda s} \le 1 + s (e^\lambda - 1)` and
:math:`y^t \le 1 + t (y - 1)` for t in [0, 1],

.. math:: E\,\frac{e^{\lambda t s}}{G^t}
    \le E\Bigl[1 + t\Bigl(\frac{1 + s (e^\lambda - 1)}{G} - 1\Bigr)\Bigr]
    = 1 + \frac{e^\lambda - 1}{G} E[t (s - q)] \le 1.

So :math:`P(\lambda \sum t_i s_i - n \ln G \ge \ln 1/b_j) \le b_j` (Markov) for the number
:math:`n = \sum t_i`, whatever it has to do with the values. That is a line in n above which the
records below Q are with probability at most :math:`b_j` (`_lines`): the lowest of several of them,
each with a part of b, is within 3% to 6% of Chernoff's bound for the n that are expected, and not
far from it for others. For t = 1 and s in {0, 1} that is the binomial, which is bounded as above;
for noise and chance b is halved, and the margins are added.

**Sensitivity.** Where neighbors move every number that f_j is the largest of by at least -v and at
most u, they move f_j by no less and no more, and by [Dur23] Definition A.1 (`one_sided_loss`) the
search costs at most :math:`u A + (u + v) B`, since no query rises by more than u, and none falls by
more than v. The reverse change costs the same with u and v exchanged (`costs`).

- A replaced record that keeps n moves each count by at most one, all in one direction. With ends
  on one side only, u is 1 and v is 0, or the other way round: A + B. With both sides u = v = 1.
- One record more moves :math:`h_i(n) - \#\{x \le H\}` by :math:`q_i` or :math:`q_i - 1`, and
  :math:`\#\{x < L\} - \ell_i(n)` by the negatives. With upper ends only
  :math:`u = \max q_i` and :math:`v = 1 - \min q_i`; with lower ones exchanged; with both
  :math:`u = v = \max_i \max(q_i, 1 - q_i)`.
- For a population the thresholds move by 0 to 1 in place of :math:`q_i`. On a curve
  :math:`n\,\mathrm{KL}(k/n, q)` = const with p = k/n > q

  .. math:: \frac{dk}{dn} = \frac{\ln\frac{1-q}{1-p}}{\ln\frac{p}{q} + \ln\frac{1-q}{1-p}}

  lies in [0, 1]; so each of the numbers that K is replaced by moves by 0 to 1, and with them h: it
  does not fall if they rise, and rises by 1 if all of them do. Likewise :math:`\ell`. So u = v = 1;
  for one level and one side, where u and v are :math:`\tau` and :math:`1 - \tau` for one number
  :math:`\tau` in [0, 1], at most A + B. The lines of persons have slopes in [0, 1] as well.

**Composition.** Values and search are released one after the other: epsilons, deltas and rhos add
up [BS16]. Which sides are searched, and the candidates, depend on public arguments and on the
values.

References
----------
- [ZS12] A. M. Zubkov, A. A. Serov, "A complete proof of universal inequalities for the
  distribution function of the binomial law", Theory Probab. Appl. 57(3), 2013.
- [Dur23], [BS16]: docs/papers.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpq_fast._checks import check_choice, check_max_contributions
from dpq_fast.privacy.above_threshold import check_fraction
from dpq_fast.privacy.accounting import Calibrated
from dpq_fast.privacy.agg_tree import DEFAULT_N, expected_records
from dpq_fast.privacy.budgets import check_steps, resolve_epsilon
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import bounded_range_rho, largest_for_rho, pure_rho

SAMPLE, POPULATION = KINDS = ("sample", "population")
# How much larger the error of a value is by default than without an interval, and the least share
# of a budget that goes into the interval. For a population chance is a part of all errors.
GROWTH, LEAST_SHARE = {SAMPLE: 2.0, POPULATION: 2.5}, 0.1
# The share where no end is searched for.
IDLE_SHARE = 2.0**-10
# Share of the threshold's noise in the epsilon of a search of two sides, and of one: the least
# expected widths on evenly spread records.
FRACTION = {2: 0.45, 1: 0.55}
# Margins of records that have to lie beyond an end, or it is not searched for.
TOLD_APART = 3.0
# Of what is missed for noise and chance together, the probabilities by which chance is replaced:
# close to one another near 1, for where there is hardly any noise, but not 1: what is missed would
# be the same from there to the next one.
_CHANCES = (16.0, 8.0, 5.0, 3.5, 2.5, 1.9, 1.5, 1.25, 1.1, 1.03, 0.97, 0.9, 0.8, 0.6, 0.4, 0.2, 0.1)
# Persons that lines are for are so many times apart, and the part of what is missed for those that
# are expected.
STEP, OWN_PART = 4.0, 0.75
# 4^17 persons of 2^20 parts are as many as there may be.
_LINES = STEP ** np.arange(18.0)
# Of a rate, for what the steps of thresholds are rounded by: less than 1e-6 records, for up to 2^53
# of them.
ROUNDING = 1e-6
# A confidence that is lost beside 1 is that.
_LEAST_COVERED = 2.0**-54
# Up to here a power series has fewer rounding errors than a logarithm; and its last power.
_SMALL, _POWERS = 0.01, 9


@dataclass(frozen=True, slots=True)
class Request:
    """What an interval is to cover, and what it may cost.

    Attributes
    ----------
    confidence : float
        Probability to cover, of each interval by itself.
    covers : {"sample", "population"}
    share : float or None
        Of the budget, so that a value is as accurate as with 1 - share of it; None for the default
        (`with_share`).
    """

    confidence: float
    covers: str
    share: float | None

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
        return cls(check_fraction(confidence, "confidence"), covers, interval_share)

    @property
    def miss(self) -> float:
        """Probability not to cover."""
        return 1.0 - self.confidence


class Search(NamedTuple):
    """One search around the values of all levels.

    Attributes
    ----------
    q : ndarray of float64, shape (m,)
        The levels, ascending.
    below, above : ndarray of bool, shape (m,)
        Whether the lower and the upper end of a level is searched; else it is the bound.
    rates : (float, float)
        A and B.
    margin : float
        c; 0 for a population.
    sampling : float
        b; 0 for the sample's quantile.
    apart : float
        Levels so far apart are about as many records apart as noise makes ends.
    most : int
        How many records of a population a person has at most: those of one are not independent.
    persons : float
        How many persons are expected.
    """

    q: NDArray[np.float64]
    below: NDArray[np.bool_]
    above: NDArray[np.bool_]
    rates: tuple[float, float]
    margin: float
    sampling: float
    apart: float
    most: int = 1
    persons: float = 0.0

    def thresholds(self, n: int) -> list[tuple[Fraction, Fraction]]:
        r""":math:`\ell(n)` and :math:`h(n)` of each level.

        Fractions: float64 numbers of n near 2^53 would move by 0 or 1 where they have to move by q.
        """
        return self._thresholds(n, _noisy_excess)

    def _expected_thresholds(self, n: int) -> list[tuple[Fraction, Fraction]]:
        """The same of a public number of records, which a release asks for several times."""
        return self._thresholds(n, _expected_excess)

    def _thresholds(
        self, n: int, excess: Callable[[int, float, float, tuple[float, float]], float]
    ) -> list[tuple[Fraction, Fraction]]:
        most, found = Fraction(n), []
        for q in self.q.tolist():
            low = high = Fraction(q) * most
            if self.sampling and self.most > 1:
                low -= Fraction(self._excess_of_persons(n, 1.0 - q))
                high += Fraction(self._excess_of_persons(n, q))
            elif self.sampling:
                low -= Fraction(excess(n, 1.0 - q, self.sampling, self.rates))
                high += Fraction(excess(n, q, self.sampling, self.rates))
            found.append((low, high))
        return found

    def _excess_of_persons(self, n: int, q: float) -> float:
        """h(n) - q n for persons of several records."""
        noise = max(_noise_above(self.sampling / 2.0, self.rates), 0.0)
        return noise + excess_of_persons(n, q, self.sampling / 2.0, self.most, self.persons)


class Calibration(NamedTuple):
    """What values and the intervals around them spend, and guarantee.

    Attributes
    ----------
    value : Calibrated
        Of the mechanism of the values.
    search : Search
    ends : float
        Epsilon of the search.
    epsilon, delta, rho
        The budget of the call, as it was given.
    relation : Relation
    """

    value: Calibrated
    search: Search
    ends: float
    epsilon: float | None
    delta: float
    rho: float | None
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """The values, and then the ends."""
        if self.epsilon is None:
            return Guarantee(None, 0.0, self.rho, None, self.relation.name, "zcdp")
        own = self.value.guarantee.implied_rho
        rho = None if own is None else own + pure_rho(self.ends)
        return Guarantee(self.epsilon, self.delta, rho, None, self.relation.name, "basic")


def share_of_ends(
    request: Request,
    epsilon: float | None,
    rho: float | None,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> float:
    r"""Share of a budget that the ends get; of rho, of its square root.

    By default as much as leaves values an error of twice that of a release without an interval, or
    two and a half times for a population. On evenly spread records the error of one level is that
    of discrete Laplace noise of rate c, :math:`1 / \sinh c`, with :math:`c = \epsilon / 2` under
    "swap" and about twice that under "add-remove": values keep a half of a small epsilon, or .4,
    and more of a larger one.
    """
    if request.share is not None:
        return request.share
    each = resolve_epsilon(epsilon, rho)
    rate = each / (relation_of(neighbors).parts * check_max_contributions(max_contributions))
    growth = GROWTH[request.covers]
    if rate < 1e-3:
        return 1.0 - 1.0 / growth
    kept = math.asinh(math.sinh(rate) / growth) if rate < 20.0 else rate - math.log(growth)
    return max(1.0 - kept / rate, LEAST_SHARE)


def with_share(
    request: Request,
    levels: Levels,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    expected_n: int | None = None,
    moves: bool = False,
) -> Request:
    """The request with a share: by default `share_of_ends`, or next to nothing.

    With so few records, or so small a budget, that no end would be searched for (`Search`), an
    interval is as wide as the bounds whatever is spent on it: then the value gets all but
    IDLE_SHARE. By public arguments alone.

    Parameters
    ----------
    request, levels, epsilon, rho, neighbors, max_contributions, expected_n
        As in `calibrate`.
    moves : bool
        Whether a replaced record may leave one group and come into another (`calibrate_groups`).

    Returns
    -------
    Request
    """
    if request.share is not None:
        return request
    budget = neighbors, max_contributions
    asked = replace(request, share=share_of_ends(request, epsilon, rho, *budget))
    _, part = split(asked, epsilon, 0.0, rho, *budget)
    ends = part if rho is None else _pure(part)
    search = _search(levels.values, ends, asked, *budget, expected_n, moves)
    idle = not (search.below.any() or search.above.any())
    return replace(request, share=IDLE_SHARE) if idle else asked


def split(
    request: Request,
    epsilon: float | None,
    delta: float,
    rho: float | None,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> tuple[dict[str, Any], float]:
    """The budget of the value, and that of the ends: epsilon or rho, whichever is given.

    The error of a value grows like 1 / sqrt(rho), so that it keeps the square of its share. All of
    delta is the value's.
    """
    resolve_epsilon(epsilon, rho)  # refuses two of them, and none
    share = share_of_ends(request, epsilon, rho, neighbors, max_contributions)
    if rho is None:
        assert epsilon is not None
        ends = share * epsilon
        return dict(epsilon=_rest_of(epsilon, ends), delta=delta, rho=None), ends
    own = (1.0 - share) ** 2 * rho
    return dict(epsilon=None, delta=delta, rho=own), _rest_of(rho, own)


def epsilon_within(
    request: Request,
    levels: Levels,
    rho: float,
    neighbors: str = "swap",
    max_contributions: int = 1,
    expected_n: int | None = None,
) -> tuple[float, float]:
    """The epsilon that values of its range and the ends may share if both together have `rho`.

    Parameters
    ----------
    request, levels, rho, neighbors, max_contributions, expected_n
        As in `calibrate`.

    Returns
    -------
    float
        The largest epsilon.
    float
        The share of it that is for the ends.
    """
    alone = resolve_epsilon(None, rho)
    asked = with_share(request, levels, alone, None, neighbors, max_contributions, expected_n)
    share = asked.share
    assert share is not None  # it has one

    def cost(epsilon: float) -> float:
        own, ends = split(asked, epsilon, 0.0, None)
        return bounded_range_rho(own["epsilon"]) + pure_rho(ends)

    return largest_for_rho(cost, rho, math.sqrt(rho)), share


def _rest_of(budget: float, part: float) -> float:
    """What is left of a budget, from below: with the part it is never more."""
    return math.nextafter(budget - part, 0.0)


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
    expected_n: int | None = None,
) -> Calibration:
    """What the ends spend beside values.

    Parameters
    ----------
    value : Calibrated
        Of the mechanism of the values, with its part of the budget (`split`).
    levels : Levels
    request : Request
    epsilon, delta, rho
        Budget of the call.
    neighbors, max_contributions
        As for the values.
    expected_n : int, optional
        About how many records there are, by what is public. Default: 10,000.

    Returns
    -------
    Calibration
    """
    relation = relation_of(neighbors)
    _, part = split(request, epsilon, delta, rho, neighbors, max_contributions)
    ends = part if rho is None else _pure(part)
    search = _search(levels.values, ends, request, neighbors, max_contributions, expected_n, False)
    return Calibration(value, search, ends, epsilon, delta, rho, relation)


def calibrate_call(
    value_of: Callable[..., Calibrated],
    request: Request,
    *,
    q: Any = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    expected_n: int | None = None,
    **parameters: Any,
) -> Calibration:
    """What a call of a mechanism with a confidence spends: its values, and the ends.

    Parameters
    ----------
    value_of : callable
        The mechanism's own `calibrate`.
    request : Request
    q, epsilon, delta, rho, **parameters
        As for `value_of`; `q` has to be given.
    expected_n
        As in `calibrate`.

    Returns
    -------
    Calibration
    """
    if q is None:
        raise ValueError("q must be given with a confidence, got None")
    known = ("neighbors", "max_contributions")
    person = {name: parameters[name] for name in known if name in parameters}
    levels = Levels.of(q)
    request = with_share(request, levels, epsilon, rho, **person, expected_n=expected_n)
    own, _ = split(request, epsilon, delta, rho, **person)
    budget = {name: given for name, given in own.items() if given}
    return calibrate(
        value_of(q, **budget, **parameters),
        levels,
        request,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        expected_n=expected_n,
        **person,
    )


def _pure(rho: float) -> float:
    """The pure epsilon that a rho buys."""
    start = math.sqrt(2.0) * math.sqrt(rho) * (1.0 - ROUNDING)  # 2 rho may be beyond float64
    return largest_for_rho(pure_rho, rho, start)


def calibrate_groups(
    levels: Levels,
    request: Request,
    *,
    epsilon: float,
    neighbors: str,
    max_contributions: int,
    public_by: bool,
    expected_n: int | None = None,
) -> Search:
    """The search in each of some groups, for a part `epsilon` of the budget of all of them.

    Parameters
    ----------
    levels, request, epsilon, neighbors, max_contributions
        As in `calibrate`.
    public_by : bool
        As in `privacy.quantile_by.calibrate`: else a replaced record may leave one group and come
        into another, which costs one record less and one more.
    expected_n : int, optional
        About how many records a group has.

    Returns
    -------
    Search
    """
    person = neighbors, max_contributions
    return _search(levels.values, epsilon, request, *person, expected_n, not public_by)


def _search(
    q: NDArray[np.float64],
    epsilon: float,
    request: Request,
    neighbors: str,
    max_contributions: int,
    expected_n: int | None,
    moves: bool,
) -> Search:
    """The search that is within an epsilon.

    An end is left at its bound where there are hardly more records beyond it than the margin: it
    would be hard to tell from the bound, and make all other ends as far.
    """
    relation = relation_of(neighbors)

    def cost_of(one: float, same: float) -> float:
        return float(relation.worst(one=one, same=same, moved=2.0 * one if moves else None))

    k = check_max_contributions(max_contributions)
    unit = epsilon * (1.0 - ROUNDING) / k
    n = expected_records(expected_n, k)
    everywhere = np.ones(q.size, dtype=np.bool_)
    both = _one_search(q, everywhere, everywhere, unit, n, k, request, cost_of)
    low, high = np.array(both._expected_thresholds(n), dtype=np.float64).T
    least = both.margin + (TOLD_APART - 1.0) * both.apart * n
    return _one_search(q, low > least, n - high > least, unit, n, k, request, cost_of)


def _one_search(
    q: NDArray[np.float64],
    below: NDArray[np.bool_],
    above: NDArray[np.bool_],
    unit: float,
    n: int,
    k: int,
    request: Request,
    cost_of: Callable[[float, float], float],
) -> Search:
    """With the sides given."""
    sides = 2 if below.any() and above.any() else 1
    first, second = FRACTION[sides], (1.0 - FRACTION[sides]) / sides
    cost = cost_of(*costs(q, below, above, (first, second), request.covers == POPULATION))
    rates = check_steps((first * unit / cost, second * unit / cost))
    if request.covers == POPULATION:
        each = request.miss / 2.0
        apart = max(_noise_above(each, rates), 0.0) / n
        return Search(q, below, above, rates, 0.0, each, apart, k, n / k)
    margin = max(_noise_above(request.miss, rates), 0.0)
    return Search(q, below, above, rates, margin, 0.0, margin / n)


def _noise_above(miss: float, rates: tuple[float, float]) -> float:
    r"""What :math:`\nu - \nu_j` exceeds with this probability."""
    first, second = rates
    positive = second / (first + second)
    if miss <= positive:
        return math.log(positive / miss) / first
    covered = max(1.0 - miss, _LEAST_COVERED)
    return math.log(covered / (1.0 - positive)) / second


@np.errstate(under="ignore")  # of noise that is next to nothing
def _noisy_excess(n: int, q: float, miss: float, rates: tuple[float, float]) -> float:
    """h(n) - q n of the module's notes.

    Parameters
    ----------
    n : int
    q : float
    miss : float
        b.
    rates : (float, float)
        A and B.
    """
    first, second = rates
    chances = [miss * each for each in _CHANCES if miss * each < 0.5]
    most = (1.0 - q) * n
    above = np.array([*(min(_excess(n, q, chance), most) for chance in chances), most])
    mass = -np.diff([1.0, *chances, 0.0])

    def missed(t: float) -> float:
        y = t - above
        up = second / (first + second) * np.exp(-first * np.maximum(y, 0.0))
        down = 1.0 - first / (first + second) * np.exp(second * np.minimum(y, 0.0))
        return float(mass @ np.where(y >= 0.0, up, down)) - miss

    beside = _noise_above(miss, rates)
    least, largest = float(above[0]) + beside, float(above[-1]) + beside
    if missed(least) <= 0.0:  # no more than rounding: all of the others are above
        return least
    while missed(largest) > 0.0:
        largest += 1.0 / first
    return float(scipy.optimize.brentq(missed, least, largest, xtol=1e-9, rtol=1e-15))


_expected_excess = lru_cache(maxsize=256)(_noisy_excess)  # of public numbers alone


def costs(
    q: NDArray[np.float64],
    below: NDArray[np.bool_],
    above: NDArray[np.bool_],
    rates: tuple[float, float],
    sampled: bool,
) -> tuple[float, float]:
    r"""Losses of a search to one record more or less, and to a replacement that keeps n.

    Parameters
    ----------
    q, below, above
        As of `Search`.
    rates : (float, float)
        A and B.
    sampled : bool
        Whether thresholds are those of a population.

    Returns
    -------
    (float, float)
        :math:`u A + (u + v) B`, where u is how far a query can rise and v how far another one can
        fall at the same time, or what is larger with u and v exchanged.
    """
    first, second = rates
    lower, upper = bool(below.any()), bool(above.any())
    same = first + (2.0 if lower and upper else 1.0) * second
    if sampled:
        alone = q.size == 1 and not (lower and upper)
        return first + (1.0 if alone else 2.0) * second, same
    if lower and upper:
        largest = float(np.maximum(q, 1.0 - q).max())
        return largest * (first + 2.0 * second), same
    most, least = (float(q.max()), float(q.min())) if upper else (1 - q.min(), 1 - q.max())
    return max(most, 1.0 - least) * first + (1.0 + most - least) * second, same


def sampled_range(n: float, q: float, miss: float, most: int = 1) -> tuple[float, float]:
    """What the records below a q-quantile of their population stay between.

    Parameters
    ----------
    n, q : float
    miss : float
        With this probability they are beyond either end; 0 for q n itself.
    most : int, default 1
        How many records a person has at most; 1 for a binomial variable.

    Returns
    -------
    (float, float)
    """
    mean = Fraction(q) * Fraction(n)
    if miss == 0.0:
        return float(mean), float(mean)

    def beyond(q: float) -> Fraction:
        if most > 1:
            return Fraction(excess_of_persons(n, q, miss, most, DEFAULT_N))
        return Fraction(_excess(n, q, miss))

    low = max(mean - beyond(1.0 - q), Fraction(0))
    high = min(mean + beyond(q), Fraction(n))
    return float(low), float(high)


def excess_of_persons(n: float, q: float, miss: float, most: int, persons: float) -> float:
    """How many more than q n of n records are below the q-quantile of a population of persons.

    Parameters
    ----------
    n : float
    q : float
    miss : float
        With this probability there are more.
    most : int
        How many records a person has at most.
    persons : float
        About how many there are, by what is public: where the bound is best.
    """
    slopes, starts = _lines(q, miss, persons)
    return float(np.min(slopes * n + starts * most, initial=(1.0 - q) * n))


@lru_cache(maxsize=256)  # of public numbers alone
def _lines(
    q: float, miss: float, persons: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lines in n, each above the records below a quantile, less q n, but for a part of `miss`."""
    if not 0.0 < q < 1.0:
        return np.zeros(1), np.zeros(1)
    away = np.arange(_LINES.size) - round(math.log(max(persons, 1.0), STEP))
    parts = np.where(away == 0, OWN_PART, (1.0 - OWN_PART) / (2.0 * _LINES.size))
    needed = np.log(1.0 / miss) - np.log(parts)
    lines = []
    for number, own in zip(np.where(away == 0, persons, _LINES), needed, strict=True):
        if own >= -math.log(q) * number:  # all of so many may be below
            continue
        d = _above(q, own / number)
        tilt = _log_ratio(d, q) - _log_ratio(-d, 1.0 - q)
        lines.append((math.log1p(q * math.expm1(tilt)) / tilt - q, own / tilt))
    slopes, starts = np.array(lines).reshape(-1, 2).T
    return slopes, starts


def _excess(n: float, q: float, miss: float) -> float:
    """k + 1 - q n of the module's notes; n or more where there is no k."""
    if n <= 0.0 or q <= 0.0:
        return 0.0
    needed = float(scipy.special.ndtri(miss)) ** 2 / (2.0 * n)
    if needed >= -math.log(q):  # KL(1, q); also for 1 - q that is rounded to 1
        return float(n)
    return n * _above(q, needed) + 1.0


def _above(q: float, needed: float) -> float:
    """d with KL(q + d, q) = `needed`, which is less than KL(1, q).

    By Newton's method: it is convex in d, and at least d^2 / 2 (q (1 - q) + d/3) (Bernstein's
    inequality): so from above, down to the last bit.
    """
    rest, third = 1.0 - q, needed / 3.0
    d = min(third + math.sqrt(third**2 + 2.0 * needed * q * rest), math.nextafter(rest, 0.0))
    while True:
        excess = _entropy(d, q) + _entropy(-d, rest) - needed
        slope = _log_ratio(d, q) - _log_ratio(-d, rest)
        nearer = d - excess / slope
        if not 0.0 < nearer < d:
            return d
        d = nearer


def _entropy(d: float, q: float) -> float:
    r""":math:`(q + d) \ln((q + d)/q) - d`, right to a few bits near 0, too."""
    x = d / q
    if abs(x) > _SMALL:
        return (q + d) * _log_ratio(d, q) - d
    # x^2/2 - x^3/6 + ... for (1 + x) ln(1 + x) - x
    series = 0.0
    for k in range(_POWERS, 1, -1):
        series = 1.0 / (k * (k - 1)) - x * series
    return q * x * x * series


def _log_ratio(d: float, q: float) -> float:
    """ln((q + d)/q), for a tiny q, too."""
    return math.log1p(d / q) if d < q else math.log(q + d) - math.log(q)
