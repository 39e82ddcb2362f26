"""Intervals around quantiles: thresholds against binomial laws, losses by enumeration, budgets."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from conftest import BOTH, neighbors_of, pure_rho, range_rho
from halts import log_halts
from scipy import stats

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.laws.halting import HaltingLaw
from dpq_fast.noise.threshold import NOISES
from dpq_fast.privacy import guarantee, intervals, one_sided_loss
from dpq_fast.privacy.intervals import Request, Search, sampled_range
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import RELATIONS, relation_of

LEVELS = [1e-300, 1e-9, 0.001, 0.05, 0.3, 0.5, 0.9, 0.999, 1.0 - 2.0**-53]
MISSES = [1e-12, 1e-4, 0.025, 0.3, 0.6, 0.99]


# Thresholds


@pytest.mark.parametrize("q", [0.0, *LEVELS, 1.0])
@pytest.mark.parametrize("miss", MISSES)
def test_sampled_range_is_left_as_rarely_as_it_says_and_moves_by_0_to_1(q, miss):
    before = None
    for n in range(250):
        low, high = sampled_range(n, q, miss)
        assert 0.0 <= low <= q * n <= high <= n
        assert high == sampled_range(n, q, miss)[1]
        if n:
            assert stats.binom.sf(math.floor(high), n, q) <= miss * (1.0 + 1e-9)
            assert stats.binom.cdf(math.ceil(low) - 1, n, q) <= miss * (1.0 + 1e-9)
        if before is not None:
            for last, now in zip(before, (low, high), strict=True):
                assert -1e-9 <= now - last <= 1.0 + 1e-9
        before = low, high


def law_of_persons(q: float, most: int, number: int) -> dict[tuple[int, int], float]:
    """How many records persons have, and how many are below: whoever has one has it above more
    often, and all of one person's are on one side."""
    few = 0.7 * q
    # few weigh 1 and many weigh `most`: on the average over records, a share q is below
    many = q + (q - few) / most
    one = {(1, 0): 0.5 * (1 - few), (1, 1): 0.5 * few}
    one |= {(most, 0): 0.5 * (1 - many), (most, most): 0.5 * many}
    law = {(0, 0): 1.0}
    for _ in range(number):
        more: dict[tuple[int, int], float] = {}
        for (n, k), chance in law.items():
            for (held, below), own in one.items():
                place = n + held, k + below
                more[place] = more.get(place, 0.0) + chance * own
        law = more
    return law


@pytest.mark.parametrize("q", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("most", [2, 7])
def test_persons_of_dependent_records_leave_their_range_as_rarely_as_it_says(q, most):
    for number in (3, 12, 25):
        law = law_of_persons(q, most, number)
        assert sum(law.values()) == pytest.approx(1.0)
        for miss in (0.2, 0.01):
            beyond = {1: [0.0, 0.0], most: [0.0, 0.0]}
            for (n, k), chance in law.items():
                for held, missed in beyond.items():
                    low, high = sampled_range(n, q, miss, held)
                    missed[0] += chance * (k < low)
                    missed[1] += chance * (k > high)
            assert max(beyond[most]) <= miss
    if most > 2:  # records are no persons
        assert max(beyond[1]) > 1.1 * miss


@pytest.mark.parametrize("q", [0.0, *LEVELS, 1.0])
@pytest.mark.parametrize("miss", MISSES)
def test_range_of_persons_moves_by_0_to_1_and_is_near_what_chernoff_says(q, miss):
    most, persons = 100, 1_000
    ends = [intervals.excess_of_persons(n, q, miss, most, persons) + q * n for n in range(300)]
    assert ends[0] == 0.0
    assert all(-1e-9 <= step <= 1.0 + 1e-9 for step in np.diff(ends))
    n = most * persons
    if q in (0.0, 1.0):
        assert intervals.excess_of_persons(n, q, miss, most, persons) == 0.0
        return
    near = n * intervals._above(q, min(math.log(1.0 / miss) / persons, -math.log(q) * 0.999999))
    excess = intervals.excess_of_persons(n, q, miss, most, persons)
    assert near * (1.0 - 1e-6) <= excess
    if miss <= 0.025 and q * persons > 20.0:
        assert excess <= 1.1 * near
    wide = intervals.excess_of_persons(n, q, miss, most, 64 * persons)
    assert wide <= 2.5 * max(excess, most) or miss > 0.5


@pytest.mark.parametrize("q", [0.001, 0.05, 0.5, 0.95])
@pytest.mark.parametrize("miss", [1e-12, 0.0125, 0.3])
def test_sampled_range_ends_where_the_bound_of_zubkov_and_serov_is_the_miss(q, miss):
    assert sampled_range(10, 0.5, 2.0**-12)[1] == 10.0  # 2^-10 for all of them
    for n in (50, 1_000, 30_000):
        k = sampled_range(n, q, miss)[1] - 1.0
        if k == n - 1.0:
            continue
        p = k / n
        divergence = p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
        assert stats.norm.cdf(-math.sqrt(2.0 * n * divergence)) == pytest.approx(miss, rel=1e-6)


@pytest.mark.parametrize("miss", [0.0, 1e-16, 0.0125])
@pytest.mark.parametrize("q", [1e-9, 0.05, 0.5, 0.95])
@pytest.mark.parametrize("n", [10**3, 10**9, 2**40, 2**53 - 2])
def test_thresholds_move_by_what_is_charged_for_any_number_of_records(n, q, miss):
    spent = search(q=[q], sampling=miss)
    ((low, high),), ((next_low, next_high),) = spent.thresholds(n), spent.thresholds(n + 1)
    for step in (next_low - low, next_high - high):
        if miss == 0.0:
            assert step == Fraction(q)
        else:
            assert -intervals.ROUNDING / 2.0 <= step <= 1.0 + intervals.ROUNDING / 2.0
            if n > 10**6:
                assert step == pytest.approx(q, abs=0.01)


def test_thresholds_of_a_sample_are_exact():
    (ends,) = search(q=[0.1]).thresholds(2**53)
    assert ends == (Fraction(0.1) * 2**53,) * 2
    assert sampled_range(12.5, 0.25, 0.0) == (3.125, 3.125)


# Losses


def search(**fields: Any) -> Search:
    q = np.array(fields.pop("q"))
    ends = np.ones(q.size, dtype=bool)
    usual = dict(q=q, below=ends, above=ends, rates=(1.0, 1.0), margin=0.0, sampling=0.0, apart=0.0)
    return Search(**usual | fields)


def made(q: list[float], sides: Any, neighbors: str, covers: str, unit: float = 1.0) -> Search:
    """The search of some sides, for a total of `unit`."""
    relation = relation_of(neighbors)
    below, above = (np.array(side, dtype=bool) for side in sides)
    return intervals._one_search(
        np.array(q),
        below,
        above,
        unit,
        12,
        1,
        Request.of(0.8, covers),
        lambda one, same: float(relation.worst(one=one, same=same)),
    )


POINTS = 4


def queries(
    records: tuple[int, ...], values: tuple[int, ...], spent: Search, thresholds: Any
) -> tuple[float, ...]:
    """Of half-widths in lattice points, for all records that there are."""
    found = []
    for width in range(POINTS, -1, -1):
        beyond = [-math.inf]
        for value, (enough, needed), below, above in zip(
            values, thresholds(len(records)), spent.below, spent.above, strict=True
        ):
            if below and value - width > 0:
                beyond.append(float(sum(x < value - width for x in records) - enough))
            if above and value + width < POINTS - 1:
                beyond.append(float(needed - sum(x <= value + width for x in records)))
        found.append(max(beyond))
    return tuple(found)


def log_halts_of(gaps: tuple[float, ...], rates: tuple[float, float]) -> np.ndarray:
    lengths = np.ones(len(gaps), np.int64)
    return log_halts(HaltingLaw(np.array(gaps), lengths, *rates, NOISES["exponential"]))


def pairs(most: int, neighbors: str) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for n in range(most + 1):
        for x in combinations_with_replacement(range(POINTS), n):
            for y in neighbors_of(list(x), POINTS, neighbors):
                yield x, tuple(sorted(y))


SIDES = {
    "both": ([1, 1], [1, 1]),
    "above": ([0, 0], [1, 1]),
    "below": ([1, 1], [0, 0]),
    "outer": ([0, 1], [1, 0]),
    "inner": ([1, 0], [0, 1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("covers", intervals.KINDS)
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("q", [[0.0], [0.2], [0.5], [1.0], [0.1, 0.5], [0.5, 0.9], [0.0, 1.0]])
def test_search_costs_what_it_is_given_on_all_neighbors(q, sides, neighbors, covers):
    """By [Dur23] Definition A.1, and by the exact law of the halt."""
    m = len(q)
    below, above = (side[:m] for side in SIDES[sides])
    spent = made(q, (below, above), neighbors, covers)
    thresholds = functools.cache(spent.thresholds)
    queries_on = functools.cache(functools.partial(queries, spent=spent, thresholds=thresholds))
    seen, losses, ratios = set(), [0.0], [0.0]
    for x, y in pairs(3, neighbors):
        for values in combinations_with_replacement(range(POINTS), m):
            ones, others = queries_on(x, values), queries_on(y, values)
            if (ones, others) in seen:
                continue
            seen.add((ones, others))
            asked = [i for i, one in enumerate(ones) if one > -math.inf]
            assert asked == [i for i, other in enumerate(others) if other > -math.inf]
            assert 0 not in asked  # so that nothing can halt there
            if not asked:
                continue
            pair = [[each[i] for i in asked] for each in (ones, others)]
            losses.append(one_sided_loss(*pair, *spent.rates))
            if len(x) <= 4 - m:
                gaps = [tuple(gap + spent.margin for gap in each) for each in pair]
                ratio = log_halts_of(gaps[0], spent.rates) - log_halts_of(gaps[1], spent.rates)
                ratios.append(float(ratio.max()))
    assert max(losses) <= 1.0 + 1e-9
    assert max(ratios) <= 1.0 + 1e-9
    if neighbors == "swap" and m == 1 and (below[0] or above[0]):
        assert max(losses) > 0.9  # for one level the charge is what is spent


def test_search_of_groups_pays_for_a_record_that_moves():
    levels, request = Levels([0.3]), Request.of(0.9)
    each = dict(epsilon=1.0, max_contributions=1, expected_n=1_000)

    def of(neighbors: str, public_by: bool) -> Search:
        return intervals.calibrate_groups(
            levels, request, neighbors=neighbors, public_by=public_by, **each
        )

    spent = of("swap", False)
    (q,), (a, b) = spent.q, spent.rates
    # away here, and into another group
    assert 2.0 * max(q, 1.0 - q) * (a + 2.0 * b) == pytest.approx(1.0, rel=1e-5)
    # the largest losses to one record more and to one less, by enumeration
    worst = [0.0, 0.0]
    for x, y in pairs(4, "add-remove"):
        for value in range(POINTS):
            pair = [
                [f for f in queries(each, (value,), spent, spent.thresholds) if f > -math.inf]
                for each in (x, y)
            ]
            if pair[0]:
                more = len(y) > len(x)
                worst[more] = max(worst[more], one_sided_loss(*pair, *spent.rates))
    assert 0.8 < sum(worst) <= 1.0
    assert of("swap", True).rates == pytest.approx(of("add-remove", True).rates / np.array(1 / 0.7))
    assert of("add-remove", False).rates == of("add-remove", True).rates


def test_costs_known_values():
    """u A + (u + v) B, worked by hand."""
    yes, no = np.array([True, True]), np.array([False, False])
    q, rates = np.array([0.2, 0.6]), (3.0, 10.0)
    cost = functools.partial(intervals.costs, q, rates=rates, sampled=False)
    assert cost(yes, yes) == pytest.approx((0.8 * 23.0, 23.0))
    assert cost(no, yes) == pytest.approx((0.8 * 3.0 + 1.4 * 10.0, 13.0))
    assert cost(yes, no) == pytest.approx((0.8 * 3.0 + 1.4 * 10.0, 13.0))
    one = np.array([True])
    assert intervals.costs(np.array([0.2]), ~one, one, rates, False) == pytest.approx((12.4, 13.0))
    assert intervals.costs(np.array([0.2]), ~one, one, rates, True) == (13.0, 13.0)
    assert intervals.costs(q, no, yes, rates, True) == (23.0, 13.0)
    assert intervals.costs(q, yes, yes, rates, True) == (23.0, 23.0)


def test_sides_that_are_hard_to_tell_from_bounds_are_left_out():
    def sides(n: int, q: list[float], **more: Any) -> list[tuple[bool, bool]]:
        made = intervals.calibrate(
            privacy.ind_exp.calibrate(q, epsilon=0.7),
            Levels(q),
            Request.of(0.95, **more),
            epsilon=1.0,
            expected_n=n,
        )
        return list(zip(made.search.below.tolist(), made.search.above.tolist(), strict=True))

    assert sides(10_000, [0.05, 0.5, 0.95]) == [(True, True)] * 3
    assert sides(300, [0.05, 0.5, 0.95]) == [(False, True), (True, True), (True, False)]
    assert sides(10, [0.5]) == [(False, False)]
    assert sides(10_000, [0.0, 1.0]) == [(False, True), (True, False)]
    assert sides(700, [0.05], covers="sample") == [(True, True)]
    assert sides(700, [0.05], covers="population") == [(False, True)]


# Calibration


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize(("below", "above"), [(True, True), (False, True)])
def test_margin_is_passed_as_rarely_as_it_may(neighbors, below, above):
    """Where the first candidate without the record is just so: f = 0."""
    spent = made([0.5], ([below], [above]), neighbors, "sample")
    law = HaltingLaw(
        np.array([spent.margin]), np.ones(1, np.int64), *spent.rates, NOISES["exponential"]
    )
    assert math.exp(law.log_never()) == pytest.approx(0.2, rel=1e-9)
    assert spent.sampling == 0.0
    sampled = made([0.5], ([below], [above]), neighbors, "population")
    a, b = sampled.rates
    assert (sampled.margin, sampled.sampling) == (0.0, pytest.approx(0.1, rel=1e-9))  # either side
    # no record, no chance: noise alone
    ((low, high),) = sampled.thresholds(0)
    passed = b / (a + b) * np.exp(-a * np.array([-float(low), float(high)]))
    assert passed == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("neighbors", BOTH)
def test_rates_are_those_of_the_budget_and_the_costs(neighbors, k):
    value = privacy.ind_exp.calibrate(
        [0.3, 0.6], epsilon=1.4, neighbors=neighbors, max_contributions=k
    )
    person = dict(neighbors=neighbors, max_contributions=k)
    request = Request.of(0.9, interval_share=0.3)
    spent = intervals.calibrate(value, Levels([0.3, 0.6]), request, epsilon=2.0, **person)
    assert spent.ends == pytest.approx(0.6)
    cost = 1.0 if neighbors == "swap" else 0.7
    expected = np.array([0.45, 0.275]) * 0.6 / (k * cost)
    assert spent.search.rates == pytest.approx(expected, rel=1e-5)
    assert all(np.array(spent.search.rates) < expected)
    spent = intervals.calibrate(value, Levels([0.3, 0.6]), request, rho=2.0, **person)
    assert pure_rho(spent.ends) == pytest.approx((1.0 - 0.7**2) * 2.0, rel=1e-9)


@pytest.mark.parametrize("sides", SIDES)
def test_noise_is_shared_by_sides_that_any_level_has(sides):
    a, b = made([0.2, 0.6], SIDES[sides], "swap", "sample").rates
    assert a / b == pytest.approx(0.55 / 0.45 if sides in ("above", "below") else 0.45 / 0.275)


@pytest.mark.parametrize(("n", "found"), [(10, False), (10_000, True), (None, True)])
def test_calls_search_for_ends_of_as_many_records_as_are_expected(n, found):
    request = Request.of(0.95, interval_share=0.3)
    spent = intervals.calibrate_call(
        privacy.ind_exp.calibrate, request, q=[0.5], epsilon=1.0, expected_n=n
    )
    assert (spent.search.below.tolist(), spent.search.above.tolist()) == ([found], [found])


@pytest.mark.parametrize("share", [2.0**-60, 0.1, 0.3, 1.0 / 3.0, 0.7, 1.0 - 2.0**-53])
def test_parts_of_a_budget_are_never_more_than_all(share):
    request = Request.of(0.9, interval_share=share)
    rng = np.random.default_rng(1)
    for budget in [1.0, 1.5, 0.1, *rng.lognormal(0.0, 3.0, size=500).tolist()]:
        own, ends = intervals.split(request, budget, 0.01, None)
        assert Fraction(own["epsilon"]) + Fraction(ends) <= Fraction(budget)
        assert own["epsilon"] == pytest.approx(max(budget - ends, 0.0), rel=1e-15, abs=1e-15)
        assert (own["delta"], own["rho"]) == (0.01, None)
        own, ends = intervals.split(request, None, 0.0, budget)
        assert Fraction(own["rho"]) + Fraction(ends) <= Fraction(budget)
        assert own["rho"] == pytest.approx((1.0 - share) ** 2 * budget, rel=1e-12)


@pytest.mark.parametrize("share", [None, 0.01, 0.25, 0.9])
@pytest.mark.parametrize("rho", [1e-6, 0.5, 30.0])
def test_values_of_a_range_and_ends_have_all_of_rho_and_no_more(rho, share):
    levels, budget = Levels([0.3, 0.6]), dict(neighbors="add-remove", max_contributions=2)
    request = Request.of(0.9, interval_share=share)
    epsilon, own = intervals.epsilon_within(request, levels, rho, **budget)
    asked = dict(q=levels.values, confidence=0.9, interval_share=own, **budget)
    spent = guarantee("joint_exp", epsilon=epsilon, **asked).implied_rho
    assert rho * (1.0 - 1e-9) < spent <= rho
    assert own == share or share is None
    usual = intervals.epsilon_within(request, levels, rho)
    assert usual == intervals.epsilon_within(request, levels, rho, "swap", 1)


def test_guarantee_is_that_of_values_and_search_together():
    q = [0.2, 0.6]
    pure = guarantee("joint_exp", q=q, epsilon=1.0, confidence=0.95, interval_share=0.25)
    assert (pure.epsilon, pure.delta, pure.bounded_range) == (1.0, 0.0, None)
    assert pure.composition == "basic"
    assert pure.rho == pytest.approx(range_rho(0.75) + pure_rho(0.25), rel=1e-9)
    approximate = guarantee("ind_exp", q=q, epsilon=1.0, delta=1e-6, confidence=0.95)
    assert (approximate.epsilon, approximate.delta) == (1.0, 1e-6)
    zcdp = guarantee("approx_quantiles", q=q, rho=0.5, confidence=0.95, covers="population")
    assert (zcdp.epsilon, zcdp.rho, zcdp.composition) == (None, 0.5, "zcdp")
    groups = guarantee("quantile_by", q=q, epsilon=1.0, confidence=0.95, interval_share=0.3)
    assert (groups.epsilon, groups.bounded_range, groups.composition) == (1.0, None, "parallel")
    plain = guarantee("quantile_by", q=q, epsilon=1.0)
    assert plain.bounded_range == 1.0
    assert groups.rho == pytest.approx(
        guarantee("quantile_by", q=q, epsilon=0.7).rho + pure_rho(0.3), rel=1e-9
    )
    for name in ("count", "mean", "sum", "agg_tree"):  # at no cost
        public = dict(q=0.5) if name == "agg_tree" else {}
        assert guarantee(name, epsilon=1.0, confidence=0.95, **public) == guarantee(
            name, epsilon=1.0, **public
        )


@pytest.mark.parametrize("rates", [(0.3, 0.2), (2.0, 1.0), (0.02, 0.05)])
@pytest.mark.parametrize("miss", [0.3, 0.025, 1e-6])
@pytest.mark.parametrize("q", [0.02, 0.3, 0.5, 0.95])
def test_chance_and_noise_together_pass_thresholds_as_rarely_as_they_may(q, miss, rates):
    """By the exact binomial law, and that of the difference of two exponential variables."""
    first, second = rates
    missed = []
    for n in (0, 1, 7, 60, 400, 3_000):
        ((low, high),) = search(q=[q], sampling=miss, rates=rates).thresholds(n)
        k = np.arange(n + 1)
        for beyond in (float(high) - k, k - float(low)):
            up = second / (first + second) * np.exp(-first * np.maximum(beyond, 0.0))
            down = 1.0 - first / (first + second) * np.exp(second * np.minimum(beyond, 0.0))
            passed = np.where(beyond >= 0.0, up, down)
            missed.append(float(stats.binom.pmf(k, n, q) @ passed))
    assert max(missed) <= miss * (1.0 + 1e-9)
    assert max(missed) >= 0.8 * miss


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(confidence=0.0), "confidence must lie strictly between 0 and 1, got 0.0"),
        (dict(confidence=1.0), "confidence must lie strictly between 0 and 1, got 1.0"),
        (dict(confidence=0.9, covers="both"), "covers must be"),
        (dict(confidence=0.9, interval_share=1.0), "interval_share must lie strictly between"),
        (dict(covers="population"), "confidence must be given with covers or interval_share"),
        (dict(interval_share=0.5), "confidence must be given with covers or interval_share"),
    ],
)
def test_requests_reject(given, message):
    with pytest.raises(ValueError, match=message):
        Request.of(**given)
    with pytest.raises(ValueError, match=message):
        guarantee("ind_exp", q=0.5, epsilon=1.0, **given)


def test_guarantees_reject():
    with pytest.raises(ValueError, match="q must be given with a confidence, got None"):
        guarantee("quantile_by", epsilon=1.0, confidence=0.9)
    with pytest.raises(ValueError, match="q must be given with a confidence, got None"):
        guarantee("ind_exp", epsilon=1.0, confidence=0.9)
    with pytest.raises(TypeError, match=r"^expected_n must be left out for guarantee\('ind_exp'\)"):
        guarantee("ind_exp", q=0.5, epsilon=1.0, confidence=0.9, expected_n=9)
    with pytest.raises(ValueError, match="exactly one of epsilon and rho"):
        guarantee("ind_exp", q=0.5, epsilon=1.0, rho=1.0, confidence=0.9)
    assert Request.of() is None


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(("covers", "growth"), [("sample", 2.0), ("population", 2.5)])
def test_values_are_some_times_less_accurate_than_without_intervals(
    covers, growth, epsilon, neighbors
):
    """The mean of discrete Laplace noise of rate c is 1 / sinh c."""
    share = intervals.share_of_ends(Request.of(0.9, covers), epsilon, None, neighbors, 2)
    rate = epsilon / (2.0 * RELATIONS[neighbors].parts)
    grown = math.sinh(rate) / math.sinh((1.0 - share) * rate)
    assert grown == pytest.approx(growth, rel=1e-6)
    assert intervals.share_of_ends(Request.of(0.9), 1e9, None, neighbors) == intervals.LEAST_SHARE
    assert intervals.share_of_ends(Request.of(0.9, interval_share=0.6), epsilon, None) == 0.6


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("covers", ["sample", "population"])
@pytest.mark.parametrize("budget", [dict(epsilon=0.3), dict(rho=0.005)])
def test_value_gets_all_where_no_end_is_searched_for(budget, covers, neighbors):
    levels, person = Levels([0.1, 0.5]), dict(neighbors=neighbors)
    asked = Request.of(0.9, covers)
    shares = []
    for n in (1, 10, 100, 10**3, 10**4, 10**5):
        request = intervals.with_share(asked, levels, **budget, **person, expected_n=n)
        assert (request.confidence, request.covers) == (0.9, covers)
        own, _ = intervals.split(request, budget.get("epsilon"), 0.0, budget.get("rho"), **person)
        value = privacy.ind_exp.calibrate(levels, **{k: v for k, v in own.items() if v}, **person)
        search = intervals.calibrate(
            value, levels, request, **budget, **person, expected_n=n
        ).search
        found = bool(search.below.any() or search.above.any())
        assert (request.share == intervals.IDLE_SHARE) == (not found)
        shares.append(request.share)
    default = intervals.share_of_ends(asked, budget.get("epsilon"), budget.get("rho"), neighbors)
    assert shares[:2] == [intervals.IDLE_SHARE] * 2 and shares[-1] == default
    # a share that was asked for stays, and 10,000 records are expected where nothing is known
    own = Request.of(0.9, covers, 0.4)
    assert intervals.with_share(own, levels, **budget, **person, expected_n=1) == own
    assert intervals.with_share(asked, levels, **budget, **person).share == shares[4]


def test_records_that_move_between_groups_make_ends_harder_to_find():
    levels, asked = Levels([0.9]), Request.of(0.95)
    shares = [
        [
            intervals.with_share(asked, levels, 0.5, expected_n=n, moves=moves).share
            for n in range(10, 2_000, 10)
        ]
        for moves in (False, True)
    ]
    few = [sum(share == intervals.IDLE_SHARE for share in each) for each in shares]
    assert 0 < few[0] < few[1]


@pytest.mark.parametrize("budget", [{"rho": 1e-100}, {"epsilon": 1e-100}])
def test_shares_of_a_budget_that_are_rounded_to_nothing_are_refused(budget):
    share = dict(interval_share=1e-308, confidence=0.9)
    with pytest.raises(ValueError, match="must leave at least 1e-305 for each step, got 0"):
        dpq.approx_quantiles([1.0], [0.2, 0.5], bounds=(0, 9), **budget, **share)
