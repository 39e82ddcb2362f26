"""Formulas of `privacy` against brute force and mpmath; guarantees, composition, budgets."""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import itertools
import math
import pkgutil
import threading
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import binom

import dpq_fast as dpq
from dpq_fast import _checks, privacy
from dpq_fast.privacy import (
    Accountant,
    BudgetExceeded,
    Guarantee,
    accounting,
    approx_quantiles,
    bounded_range,
    charge,
    compose,
    guarantee,
)
from dpq_fast.privacy.budgets import resolve_epsilon
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of

BOTH = ["swap", "add-remove"]


# --- checks of arguments --------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1, 0.5, np.float64(2.0), np.float32(0.25), np.int64(3)])
def test_check_epsilon_returns_a_python_float(value):
    cleaned = _checks.check_epsilon(value)
    assert type(cleaned) in (float, np.float64)
    assert cleaned == value


def test_check_epsilon_takes_fractions():
    assert _checks.check_epsilon(Fraction(1, 4)) == 0.25


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: _checks.check_epsilon(-1.0),
            ValueError,
            "^epsilon must be positive and finite, got -1.0$",
        ),
        (
            lambda: _checks.check_epsilon(0),
            ValueError,
            "^epsilon must be positive and finite, got 0.0$",
        ),
        (lambda: _checks.check_epsilon(math.nan), ValueError, "positive and finite, got nan$"),
        (
            lambda: _checks.check_epsilon(math.inf, "epsilon1"),
            ValueError,
            "^epsilon1 must .* got inf$",
        ),
        (lambda: _checks.check_epsilon(10**400), ValueError, "got inf$"),
        (lambda: _checks.check_epsilon(-(10**400)), ValueError, "got -inf$"),
        (
            lambda: _checks.check_epsilon(True),
            TypeError,
            "^epsilon must be a real number, got True$",
        ),
        (lambda: _checks.check_epsilon(np.True_), TypeError, "must be a real number"),
        (lambda: _checks.check_epsilon("1"), TypeError, "^epsilon must be a real number, got '1'$"),
        (lambda: _checks.check_epsilon(1j), TypeError, "must be a real number, got 1j$"),
        (lambda: _checks.check_epsilon(None), TypeError, "must be a real number, got None$"),
        (lambda: _checks.check_epsilon(np.ones(3)), TypeError, "real number, got ndarray$"),
        (lambda: _checks.check_rho(0.0), ValueError, "^rho must be positive and finite, got 0.0$"),
        (lambda: _checks.check_delta(1.0), ValueError, r"^delta must lie in \[0, 1\), got 1.0$"),
        (
            lambda: _checks.check_delta(-1e-9),
            ValueError,
            r"^delta must lie in \[0, 1\), got -1e-09$",
        ),
        (lambda: _checks.check_delta(math.nan), ValueError, "got nan$"),
        (lambda: _checks.check_delta(False), TypeError, "^delta must be a real number, got False$"),
        (
            lambda: _checks.check_nonnegative("x", -1),
            ValueError,
            "^x must be finite and not negative, got -1.0$",
        ),
        (
            lambda: _checks.check_bounds((1, 1)),
            ValueError,
            r"^bounds must be finite with low < high, got \(1.0, 1.0\)$",
        ),
        (lambda: _checks.check_bounds((2, 1)), ValueError, r"low < high, got \(2.0, 1.0\)$"),
        (
            lambda: _checks.check_bounds((0, math.inf)),
            ValueError,
            r"be finite .* got \(0.0, inf\)$",
        ),
        (
            lambda: _checks.check_bounds((math.nan, 1)),
            ValueError,
            r"be finite .* got \(nan, 1.0\)$",
        ),
        (
            lambda: _checks.check_bounds((-1e308, 1e308)),
            ValueError,
            r"^bounds must have a finite difference, got \(-1e\+308, 1e\+308\)$",
        ),
        (
            lambda: _checks.check_bounds(None),
            TypeError,
            r"^bounds must be two real numbers \(low, high\), got None$",
        ),
        (
            lambda: _checks.check_bounds((1, 2, 3)),
            ValueError,
            r"two real numbers .* got tuple of length 3$",
        ),
        (
            lambda: _checks.check_bounds(("0", 1)),
            TypeError,
            r"^bounds\[0\] must be a real number, got '0'$",
        ),
        (
            lambda: _checks.check_bounds((0, None)),
            TypeError,
            r"^bounds\[1\] must be a real number, got None$",
        ),
        (
            lambda: relation_of("replace"),
            ValueError,
            "^neighbors must be one of 'swap', 'add-remove', got 'replace'$",
        ),
        (
            lambda: relation_of(None),
            TypeError,
            "one of 'swap', 'add-remove', got None$",
        ),
        (lambda: _checks.check_choice("a", 3, ("b",)), TypeError, "^a must be one of 'b', got 3$"),
        (
            lambda: _checks.check_max_contributions(0),
            ValueError,
            "^max_contributions must be at least 1, got 0$",
        ),
        (
            lambda: _checks.check_max_contributions(1.0),
            TypeError,
            "^max_contributions must be an integer, got 1.0$",
        ),
        (lambda: _checks.check_max_contributions(True), TypeError, "must be an integer, got True$"),
        (lambda: _checks.check_max_contributions(np.True_), TypeError, "must be an integer"),
    ],
)
def test_checks_reject_with_the_rule_and_what_came(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_checks_return_clean_values():
    assert _checks.check_bounds(np.array([0, 5])) == (0.0, 5.0)
    assert _checks.check_bounds([-1e308, 0]) == (-1e308, 0.0)
    assert _checks.check_delta(0) == 0.0
    count = _checks.check_max_contributions(np.int64(4))
    assert (count, type(count)) == (4, int)


# --- sensitivities --------------------------------------------------------------------------------

VALUES = (0, 1, 2, None)  # None: a record that is left out, as NaN is


def neighbor_pairs(relation, sizes, values):
    """All pairs of neighboring data sets (tuples of records) of the sizes given."""
    for n in sizes:
        for x in itertools.combinations_with_replacement(range(len(values)), n):
            if relation == "add-remove":
                for extra in range(len(values)):
                    yield [values[i] for i in x], [values[i] for i in (*x, extra)]
            else:
                for i, new in itertools.product(range(n), range(len(values))):
                    y = (*x[:i], new, *x[i + 1 :])
                    yield [values[i] for i in x], [values[i] for i in y]


def joint_utility(x, outputs, q):
    """-sum_j |n(o_{j-1}, o_j) - (q_j - q_{j-1}) n| in exact arithmetic."""
    kept = [value for value in x if value is not None]
    ranks = [0, *(sum(value < o for value in kept) for o in outputs), len(kept)]
    levels = [0, *q, 1]
    return -sum(
        abs(ranks[j] - ranks[j - 1] - (levels[j] - levels[j - 1]) * len(kept))
        for j in range(1, len(levels))
    )


def largest_change(relation, q, values):
    cuts = [0, 0.5, 1.5, 2.5]
    tuples = list(itertools.combinations_with_replacement(cuts, len(q)))
    return max(
        abs(joint_utility(x, o, q) - joint_utility(y, o, q))
        for x, y in neighbor_pairs(relation, range(1, 6), values)
        for o in tuples
    )


JOINT_LEVELS = [
    [Fraction(1, 2)],
    [Fraction(1, 4)],
    [Fraction(1, 4), Fraction(1, 2)],
    [Fraction(1, 8), Fraction(3, 4)],
    [Fraction(0), Fraction(1, 2)],
]


@pytest.mark.parametrize("q", JOINT_LEVELS, ids=str)
def test_joint_exp_sensitivity_add_remove_is_attained(q):
    formula = privacy.joint_exp.sensitivity(
        Levels([float(level) for level in q]), relation_of("add-remove")
    )
    assert largest_change("add-remove", q, VALUES[:3]) == formula


@pytest.mark.parametrize("q", JOINT_LEVELS, ids=str)
def test_joint_exp_sensitivity_swap_covers_left_out_records(q):
    formula = privacy.joint_exp.sensitivity(
        Levels([float(level) for level in q]), relation_of("swap")
    )
    assert formula == 2.0
    assert largest_change("swap", q, VALUES) <= formula


def test_joint_exp_sensitivity_swap_is_attained():
    assert largest_change("swap", [Fraction(1, 4), Fraction(1, 2)], VALUES[:3]) == 2


def single_change(relation, q, values):
    def utility(x, o):
        kept = [value for value in x if value is not None]
        return -abs(sum(value < o for value in kept) - q * len(kept))

    return max(
        abs(utility(x, o) - utility(y, o))
        for x, y in neighbor_pairs(relation, range(1, 6), values)
        for o in (0, 0.5, 1.5, 2.5)
    )


@pytest.mark.parametrize(
    "q", [Fraction(1, 2), Fraction(1, 8), Fraction(3, 4), Fraction(1)], ids=str
)
def test_ind_exp_sensitivity_is_attained(q):
    level = np.array([float(q)])
    add_remove = privacy.ind_exp.sensitivities(level, relation_of("add-remove"))[0]
    assert single_change("add-remove", q, VALUES[:3]) == add_remove
    swap = privacy.ind_exp.sensitivities(level, relation_of("swap"))[0]
    assert single_change("swap", q, VALUES[:3]) == swap == 1.0
    assert single_change("swap", q, VALUES) <= swap  # with records left out


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_add_remove_sensitivities_never_exceed_swap(q):
    levels = Levels(q)
    add_remove, swap = relation_of("add-remove"), relation_of("swap")
    for sensitivity, given_levels in (
        (privacy.joint_exp.sensitivity, levels),
        (privacy.ind_exp.sensitivities, levels.values),
    ):
        assert np.all(sensitivity(given_levels, add_remove) <= sensitivity(given_levels, swap))


# --- rates ----------------------------------------------------------------------------------------


def test_joint_exp_rate_known_values():
    def rate(**form):
        return privacy.joint_exp.calibrate([0.25, 0.5], **form).rate

    assert rate(epsilon=2.0) == 2.0 / (2 * 2)
    # the narrowest of the gaps 1/4, 1/4, 1/2 gives 2 (1 - 1/4) = 3/2
    assert rate(epsilon=3.0, neighbors="add-remove") == 3.0 / (2 * 1.5)
    five = rate(epsilon=3.0, neighbors="add-remove", max_contributions=5)
    assert five == 3.0 / (2 * 1.5 * 5)


def test_ind_exp_rates_known_values():
    def rates(**form):
        return privacy.ind_exp.calibrate([0.25, 0.5], **form).rates

    assert rates(epsilon=1.0).tolist() == [0.25, 0.25]
    # epsilon / 2 each; sensitivities 3/4 and 1/2
    expected = [0.5 / 1.5, 0.5 / 1.0]
    assert rates(epsilon=1.0, neighbors="add-remove") == pytest.approx(expected, rel=1e-15)
    assert rates(epsilon=1.0, max_contributions=2).tolist() == [0.125, 0.125]
    # rho = m e^2 / 8 = 2 * 4 / 8 at e = 2
    assert rates(rho=1.0).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("k", [1, 2, 5])
def test_ind_exp_rates_with_delta_spend_the_optimal_range(k):
    q = np.array([0.1, 0.5, 0.9])
    rates = privacy.ind_exp.calibrate(q, epsilon=1.0, delta=1e-6, max_contributions=k).rates
    each = privacy.bounded_range_epsilon_each(3, 1.0, 1e-6)
    assert rates == pytest.approx(each / (2 * k), rel=1e-15)
    # Group privacy on the result: (epsilon/k, delta') per record gives (epsilon, delta) to k.
    shrunk = 1e-6 * math.expm1(1.0 / k) / math.expm1(1.0)
    by_group = privacy.bounded_range_epsilon_each(3, 1.0 / k, shrunk)
    assert rates[0] >= by_group / 2.0 * (1 - 1e-9)
    assert math.isclose(rates[0], by_group / 2.0, rel_tol=1e-9) == (k == 1)


def exact_law(x, q, rate, cuts):
    """IndExp's law on unit-width cells between `cuts`: weight exp(-rate |r - q n|)."""
    weights = np.array([math.exp(-rate * abs(sum(v < o for v in x) - q * len(x))) for o in cuts])
    return weights / weights.sum()


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("k", [1, 2])
def test_ind_exp_release_has_the_range_claimed_per_person(relation, k):
    q, epsilon = 0.25, 1.5
    person = dict(neighbors=relation, max_contributions=k)
    (rate,) = privacy.ind_exp.calibrate(q, epsilon=epsilon, **person).rates
    cuts = [0, 0.5, 1.5, 2.5]
    worst = 0.0
    for n in range(k, 6):
        for x in itertools.product(range(3), repeat=n):
            base = list(x[:-k])
            if relation == "add-remove":
                others = [base]
            else:
                others = [base + list(new) for new in itertools.product(range(3), repeat=k)]
            for y in others:
                loss = np.log(exact_law(x, q, rate, cuts) / exact_law(y, q, rate, cuts))
                worst = max(worst, np.ptp(loss))
    assert epsilon * 0.5 < worst <= epsilon * (1 + 1e-12)


# --- bounded range: Lemma 12 ----------------------------------------------------------------------


def lemma_12(each, m, epsilon):
    """The formula as printed, in 60 digits (each and epsilon taken as exact float64 numbers)."""
    with mpmath.workdps(60):
        each, epsilon = mpmath.mpf(each), mpmath.mpf(epsilon)
        best = mpmath.mpf(0)
        for ell in range(m + 1):
            t = min(max((epsilon + (ell + 1) * each) / (m + 1), mpmath.mpf(0)), each)
            p = (mpmath.exp(-t) - mpmath.exp(-each)) / (1 - mpmath.exp(-each))
            best = max(
                best,
                mpmath.fsum(
                    mpmath.binomial(m, i)
                    * p ** (m - i)
                    * (1 - p) ** i
                    * max(mpmath.exp(m * t - i * each) - mpmath.exp(epsilon), 0)
                    for i in range(m + 1)
                ),
            )
        return best


@pytest.mark.parametrize(
    ("each", "m", "epsilon"),
    [
        (1.0, 1, 0.5),
        (1.0, 1, 0.0),
        (0.3, 5, 1.0),
        (0.2, 30, 1.0),
        (0.05, 120, 1.0),
        (1e-6, 10, 1e-6),
        (1e-9, 40, 1e-12),
        (1.0, 10, 9.999999),  # u = ((m - l) e - epsilon)/(m + 1) cancels to 9e-8
        (0.1, 10, 1.0 - 2**-50),  # ... and to a few roundings
        (200.0, 3, 50.0),
        (300.0, 12, 3000.0),
        (1e4, 2, 1e4),
        (5.0, 4, 1e-9),
    ],
)
def test_bounded_range_delta_matches_lemma_12(each, m, epsilon):
    expected = lemma_12(each, m, epsilon)
    if expected > 1e-300:
        assert abs(privacy.bounded_range_delta(each, m, epsilon) / expected - 1) < 1e-10
    else:
        assert privacy.bounded_range_delta(each, m, epsilon) <= 1e-299


@given(each=st.floats(1e-6, 20), m=st.integers(1, 25), share=st.floats(0, 0.999))
@settings(max_examples=60, deadline=None)
def test_bounded_range_delta_matches_lemma_12_anywhere(each, m, share):
    epsilon = each * m * share
    expected = lemma_12(each, m, epsilon)
    if expected > 1e-300:
        assert abs(privacy.bounded_range_delta(each, m, epsilon) / expected - 1) < 1e-10


def pair(each, t):
    """The extreme pair of range `each`: log ratios t and t - each, in that order."""
    p = (math.exp(-t) - math.exp(-each)) / -math.expm1(-each)
    return np.array([p * math.exp(t), (1 - p) * math.exp(t - each)]), np.array([p, 1 - p])


def enumerated_delta(each, ts, epsilon):
    """sum over all outputs of max(P - e^epsilon Q, 0) for the product of the pairs."""
    first, second = np.ones(1), np.ones(1)
    for t in ts:
        p, q = pair(each, t)
        first, second = np.outer(first, p).ravel(), np.outer(second, q).ravel()
    assert first.sum() == pytest.approx(1) and second.sum() == pytest.approx(1)
    return np.maximum(first - math.exp(epsilon) * second, 0).sum()


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize(("each", "epsilon"), [(1.0, 0.5), (1.0, 0.9), (0.4, 0.3), (2.0, 0.1)])
def test_bounded_range_delta_is_attained_and_never_exceeded(m, each, epsilon):
    delta = privacy.bounded_range_delta(each, m, epsilon)
    grid = np.linspace(0, each, 25)
    for ts in itertools.combinations_with_replacement(grid, m):  # t may differ between mechanisms
        assert enumerated_delta(each, ts, epsilon) <= delta * (1 + 1e-12)
    candidates = [(epsilon + (ell + 1) * each) / (m + 1) for ell in range(m + 1)]
    attained = max(enumerated_delta(each, [min(t, each)] * m, epsilon) for t in candidates)
    assert attained == pytest.approx(delta, rel=1e-12)


def test_bounded_range_delta_of_one_mechanism_in_closed_form():
    # m = 1, l = 0: u = (e - epsilon)/2, and P (1 - exp(-u)) with P = (1 - exp(-u))/(1 - exp(-e))
    u = (3.0 - 0.5) / 2
    expected = (1 - math.exp(-u)) ** 2 / (1 - math.exp(-3.0))
    assert privacy.bounded_range_delta(3.0, 1, 0.5) == pytest.approx(expected, rel=1e-14)
    assert privacy.bounded_range_delta(0.5, 1, 0.5) == 0.0
    assert privacy.bounded_range_delta(0.5, 1, 3.0) == 0.0


@pytest.mark.parametrize(
    ("each", "m", "epsilon"), [(1e4, 10_000, 1e4), (1.0, 10_000, 1e4), (0.01, 10_000, 1.0)]
)
def test_bounded_range_delta_stays_finite_at_extremes(each, m, epsilon):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        delta = privacy.bounded_range_delta(each, m, epsilon)
    assert 0.0 <= delta <= 1.0


def test_bounded_range_delta_blocks_agree_with_one_block(monkeypatch):
    whole = privacy.bounded_range_delta(0.05, 300, 1.0)
    monkeypatch.setattr(bounded_range, "_BLOCK", 1)  # one l at a time, in the order of the bound
    assert privacy.bounded_range_delta(0.05, 300, 1.0) == pytest.approx(whole, rel=1e-13)


@pytest.mark.parametrize("each", [0.003, 0.05, 0.5, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 5.0])
def test_bounded_range_delta_search_skips_no_maximum(each, epsilon, monkeypatch):
    m = 40
    monkeypatch.setattr(bounded_range, "_BLOCK", 1)  # so that the bound decides at every l
    expected = lemma_12(each, m, epsilon)
    if expected:
        assert abs(privacy.bounded_range_delta(each, m, epsilon) / expected - 1) < 1e-10
    else:
        assert privacy.bounded_range_delta(each, m, epsilon) == 0.0


@given(
    m=st.integers(1, 60),
    epsilon=st.floats(1e-3, 50),
    log_delta=st.floats(math.log(1e-200), math.log(0.5)),
)
@settings(max_examples=60, deadline=None)
def test_bounded_range_epsilon_each_is_the_largest(m, epsilon, log_delta):
    delta = math.exp(log_delta)
    each = privacy.bounded_range_epsilon_each(m, epsilon, delta)
    assert each >= math.nextafter(epsilon / m, 0.0)
    assert privacy.bounded_range_delta(each, m, epsilon) <= delta
    assert privacy.bounded_range_delta(each * (1 + 1e-9), m, epsilon) > delta


@given(
    m=st.integers(1, 60),
    each=st.floats(1e-3, 10),
    log_delta=st.floats(math.log(1e-200), math.log(0.5)),
)
@settings(max_examples=60, deadline=None)
def test_bounded_range_epsilon_is_the_smallest(m, each, log_delta):
    delta = math.exp(log_delta)
    epsilon = privacy.bounded_range_epsilon(m, each, delta)
    assert 0.0 <= epsilon <= math.nextafter(m * each, math.inf)
    assert privacy.bounded_range_delta(each, m, epsilon) <= delta
    if epsilon > 0.0:
        below = max(0.0, epsilon - 1e-8 * m * each)
        assert privacy.bounded_range_delta(each, m, below) > delta


def test_bounded_range_inverses_at_delta_zero_are_basic():
    assert privacy.bounded_range_epsilon_each(4, 1.0, 0.0) == 0.25
    assert privacy.bounded_range_epsilon(4, 0.25, 0.0) == 1.0


def test_bounded_range_inverses_where_delta_buys_nothing():
    # For m = 1 delta falls like (e - epsilon)^2: 5e-324 buys about 1e-162, less than rounding.
    assert privacy.bounded_range_epsilon_each(1, 1.0, 5e-324) == pytest.approx(1.0, rel=1e-15)
    assert privacy.bounded_range_epsilon(1, 1.0, 5e-324) == pytest.approx(1.0, rel=1e-15)
    # Three times this number is not a float64, and the product is rounded down.
    each = 6.092758432721345
    assert (
        Fraction(3 * each)
        < 3 * Fraction(each)
        <= Fraction(privacy.bounded_range_epsilon(3, each, 0.0))
    )
    # One fiftieth is rounded up.
    assert Fraction(1 / 50) > Fraction(1, 50)
    assert Fraction(privacy.bounded_range_epsilon_each(50, 1.0, 0.0)) <= Fraction(1, 50)


def test_bounded_range_epsilon_is_zero_where_delta_covers_all():
    tv = privacy.bounded_range_delta(0.1, 1, 0.0)  # the total variation distance, tanh(e/4)
    assert tv == pytest.approx(math.tanh(0.1 / 4), rel=1e-13)
    assert privacy.bounded_range_epsilon(1, 0.1, tv * 1.01) == 0.0
    assert privacy.bounded_range_epsilon(1, 0.1, tv * 0.99) > 0.0


def naive_delta(each, m, epsilon):
    """Lemma 12 in plain float64, as a calculator on a grid would evaluate it."""
    i = np.arange(m + 1)
    best = 0.0
    for ell in i:
        t = min(max((epsilon + (ell + 1) * each) / (m + 1), 0.0), each)
        p = (math.exp(-t) - math.exp(-each)) / (1 - math.exp(-each))
        gain = np.maximum(np.exp(m * t - i * each) - math.exp(epsilon), 0.0)
        best = max(best, float((binom(m, i) * p ** (m - i) * (1 - p) ** i * gain).sum()))
    return best


@pytest.mark.parametrize("m", [2, 5, 9, 29])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_bounded_range_epsilon_each_agrees_with_a_grid_of_one_hundredth(m, epsilon):
    each = privacy.bounded_range_epsilon_each(m, epsilon, 1e-6)
    on_grid = [
        value
        for value in np.arange(epsilon / m - 0.01, epsilon, 0.01)
        if value > 0 and naive_delta(value, m, epsilon) <= 1e-6
    ]
    assert max(on_grid) <= each < max(on_grid) + 0.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: privacy.bounded_range_delta(0.0, 1, 1.0), "^epsilon_each must be positive"),
        (lambda: privacy.bounded_range_delta(1.0, 0, 1.0), "^m must be at least 1, got 0$"),
        (lambda: privacy.bounded_range_delta(1.0, 1, -1.0), "^epsilon must be finite and not neg"),
        (lambda: privacy.bounded_range_epsilon_each(1, 0.0, 0.1), "^epsilon must be positive"),
        (lambda: privacy.bounded_range_epsilon_each(1, 1.0, 1.0), "^delta must lie in"),
        (lambda: privacy.bounded_range_epsilon(0, 1.0, 0.1), "^m must be at least 1"),
        (lambda: privacy.bounded_range_epsilon(1, math.inf, 0.1), "^epsilon_each must be positive"),
        (
            lambda: privacy.zcdp_epsilon(-1.0, 0.1),
            "^rho must be finite and not negative, got -1.0$",
        ),
        (lambda: privacy.zcdp_epsilon(1.0, 0.0), "^delta must be positive to turn rho into eps"),
        (lambda: privacy.zcdp_rho(1.0, 0.0), "^delta must be positive to turn epsilon into rho"),
        (lambda: privacy.zcdp_rho(0.0, 0.1), "^epsilon must be positive"),
        (
            lambda: resolve_epsilon(None, None),
            "^exactly one of epsilon and rho .* got neither$",
        ),
        (lambda: resolve_epsilon(1.0, 1.0), "^exactly one of epsilon and rho .* got both$"),
        (
            lambda: privacy.ind_exp.calibrate([0.2, 0.5], delta=0.1, rho=1.0),
            "^delta must be 0 with rho, got 0.1$",
        ),
        (
            lambda: privacy.joint_exp.calibrate(0.5, epsilon=1.0, max_contributions=0),
            "^max_contributions must",
        ),
        (
            lambda: privacy.joint_exp.calibrate(0.5, epsilon=1.0, neighbors="both"),
            "^neighbors must be one of",
        ),
        (
            lambda: privacy.ind_exp.calibrate(0.5, epsilon=1.0, neighbors="both"),
            "^neighbors must be one of",
        ),
    ],
)
def test_formulas_reject(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- zCDP -----------------------------------------------------------------------------------------


def renyi(p, q, alpha):
    return math.log(np.sum(p**alpha * q ** (1 - alpha))) / (alpha - 1)


@pytest.mark.parametrize("each", [0.1, 1.0, 3.0])
def test_range_squared_over_eight_bounds_renyi_divergence(each):
    ratios = [
        renyi(*pair(each, t), alpha) / alpha
        for t in np.linspace(0.01, 0.99, 99) * each
        for alpha in (1.001, 1.1, 1.5, 2.0, 4.0, 16.0)
    ]
    rho = guarantee("joint_exp", epsilon=each).rho
    assert max(ratios) <= rho
    if each == 0.1:  # asymptotically exact for small ranges
        assert max(ratios) > 0.99 * rho


def grid_epsilon(rho, delta):
    """inf over a fine grid of alpha of the conversion of [CKS20], solved for epsilon, 40 digits."""
    with mpmath.workdps(40):
        rho, delta = mpmath.mpf(rho), mpmath.mpf(delta)

        def at(beta):  # delta = exp(beta (alpha rho - eps)) / beta * (1 - 1/alpha)^alpha
            alpha = 1 + beta
            return alpha * rho - mpmath.log(delta * beta * (1 - 1 / alpha) ** -alpha) / beta

        centre = mpmath.sqrt(-mpmath.log(delta) / rho)
        return min(at(centre * mpmath.mpf(10) ** (k / mpmath.mpf(500))) for k in range(-1000, 501))


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.125, 0.5, 3.0, 200.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_zcdp_epsilon_matches_a_fine_grid_of_orders(rho, delta):
    expected = grid_epsilon(rho, delta)
    epsilon = privacy.zcdp_epsilon(rho, delta)
    if expected <= 0:
        assert epsilon == 0.0
    else:
        assert epsilon <= expected * (1 + mpmath.mpf(1e-12))  # no grid point is better
        assert abs(epsilon / expected - 1) < 2e-5  # and the grid comes that close
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


@pytest.mark.parametrize("rho", [1e-9, 1e-6, 0.01, 0.5, 3.0, 200.0, 1e6])
@pytest.mark.parametrize("delta", [1e-100, 1e-12, 1e-6, 0.01])
def test_zcdp_epsilon_is_rounded_up_and_barely(rho, delta):
    """The least over all orders, to 60 digits: where rho beta^2 = ln(1/delta) - ln(1 + beta)."""
    with mpmath.workdps(60):
        exact, log_inverse = mpmath.mpf(rho), -mpmath.log(mpmath.mpf(delta))
        beta = mpmath.findroot(
            lambda b: exact * b * b + mpmath.log1p(b) - log_inverse,
            (0, mpmath.sqrt(log_inverse / exact)),
            solver="anderson",
        )
        terms = [(1 + beta) * exact, -mpmath.log1p(1 / beta)]
        terms.append((log_inverse - mpmath.log1p(beta)) / beta)
        least = mpmath.fsum(terms)
        epsilon = mpmath.mpf(privacy.zcdp_epsilon(rho, delta))
        assert max(least, 0) <= epsilon
        assert epsilon <= max(least + mpmath.fsum(map(abs, terms)) * 1e-13, 0)


def test_zcdp_epsilon_of_nothing_is_nothing():
    assert privacy.zcdp_epsilon(0.0, 1e-6) == 0.0
    assert privacy.zcdp_epsilon(0.001, 0.5) == 0.0


@given(epsilon=st.floats(1e-4, 1e3), log_delta=st.floats(math.log(1e-200), math.log(0.9)))
@settings(deadline=None)
def test_zcdp_rho_is_the_largest(epsilon, log_delta):
    delta = math.exp(log_delta)
    rho = privacy.zcdp_rho(epsilon, delta)
    assert privacy.zcdp_epsilon(rho, delta) <= epsilon
    assert privacy.zcdp_epsilon(rho * (1 + 1e-9), delta) > epsilon


# --- Guarantee ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": -1.0}, ValueError, "^epsilon must be finite and not negative, got -1.0$"),
        ({"epsilon": math.inf}, ValueError, "^epsilon must be finite"),
        ({"epsilon": "1"}, TypeError, "^epsilon must be a real number"),
        ({"epsilon": 1.0, "delta": 1.0}, ValueError, "^delta must lie in"),
        ({"epsilon": 1.0, "rho": -1.0}, ValueError, "^rho must be finite and not negative"),
        ({"epsilon": 1.0, "bounded_range": math.nan}, ValueError, "^bounded_range must be finite"),
        ({"epsilon": 1.0, "neighbors": "x"}, ValueError, "^neighbors must be one of"),
        (
            {"epsilon": 1.0, "composition": None},
            TypeError,
            "^composition must be a string, got None",
        ),
        ({"epsilon": None}, ValueError, "^a guarantee must state epsilon or rho, got neither$"),
        (
            {"epsilon": None, "rho": 1.0, "delta": 0.1},
            ValueError,
            "^delta must be 0 without epsilon, got 0.1$",
        ),
        (
            {"epsilon": None, "rho": 1.0, "bounded_range": 1.0},
            ValueError,
            "^epsilon must be given with bounded_range",
        ),
    ],
)
def test_guarantee_class_rejects(arguments, error, message):
    with pytest.raises(error, match=message):
        Guarantee(**arguments)


def test_guarantee_is_frozen_and_clean():
    made = Guarantee(1, rho=2)
    assert made == Guarantee(1.0, 0.0, 2.0, None, "swap", "")
    assert type(made.epsilon) is float
    with pytest.raises(AttributeError):
        made.epsilon = 0.1


@pytest.mark.parametrize(
    ("arguments", "rho"),
    [
        ({"epsilon": 2.0}, 2.0),  # epsilon^2 / 2
        ({"epsilon": 2.0, "bounded_range": 2.0}, 0.5),  # b^2 / 8
        ({"epsilon": 2.0, "bounded_range": 2.0, "rho": 0.25}, 0.25),
        ({"epsilon": 2.0, "delta": 0.1}, None),
        ({"epsilon": None, "rho": 3.0}, 3.0),
    ],
)
def test_implied_rho_is_the_smallest(arguments, rho):
    assert Guarantee(**arguments).implied_rho == rho


def test_to_swap_is_group_privacy_of_two():
    start = Guarantee(0.5, 1e-6, 0.25, 2.0, "add-remove", "basic")
    end = start.to("swap")
    # two steps: P <= e^eps (e^eps R + delta) + delta
    expected = Guarantee(1.0, 1e-6 * (1 + math.exp(0.5)), 1.0, 4.0, "swap", "basic + group-privacy")
    assert end == expected
    assert start.to("add-remove") is start
    assert Guarantee(None, rho=1.0, neighbors="add-remove").to("swap").rho == 4.0
    assert Guarantee(1.0, neighbors="add-remove").to("swap").composition == "group-privacy"


@pytest.mark.parametrize("rate", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.5])
def test_to_swap_holds_for_an_enumerated_path(rate, epsilon):
    # Data sets x + a, x, x + b: each next one is an addition or a removal away, the ends a swap.
    weights = [np.exp(-rate * np.abs(np.arange(4) - centre)) for centre in (0.5, 1.2, 2.0)]
    laws = [w / w.sum() for w in weights]
    orders = np.array([1.01, 1.5, 2.0, 5.0, 20.0])

    def statements(pairs, at):
        both = [*pairs, *((q, p) for p, q in pairs)]
        delta = max(np.maximum(p - math.exp(at) * q, 0).sum() for p, q in both)
        rho = max(renyi(p, q, alpha) / alpha for p, q in both for alpha in orders)
        return delta, rho, max(np.ptp(np.log(p / q)) for p, q in both)

    delta, rho, span = statements([laws[:2], laws[1:]], epsilon)
    swap = Guarantee(epsilon, delta, rho, neighbors="add-remove").to("swap")
    span = Guarantee(span, bounded_range=span, neighbors="add-remove").to("swap").bounded_range
    whole = statements([(laws[0], laws[2])], swap.epsilon or 0.0)
    assert whole[1] <= swap.rho
    assert whole[2] <= span * (1 + 1e-12)
    if swap.epsilon is not None:  # else delta (1 + exp(epsilon)) reached 1
        assert whole[0] <= swap.delta


def test_to_swap_drops_a_delta_that_says_nothing():
    assert Guarantee(800.0, 0.1, 1.0, neighbors="add-remove").to("swap").epsilon is None
    kept = Guarantee(5.0, 0.5, 1.0, 6.0, "add-remove").to("swap")
    assert (kept.epsilon, kept.delta) == (12.0, 0.0)  # twice the range, which is pure
    with pytest.raises(ValueError, match=r"^delta \(1 \+ exp.* must be below 1"):
        Guarantee(1.0, 0.5, neighbors="add-remove").to("swap")


def test_to_add_remove_is_refused():
    with pytest.raises(ValueError, match=r"takes the number of records as public"):
        Guarantee(1.0).to("add-remove")
    with pytest.raises(ValueError, match=r"^neighbors must be one of"):
        Guarantee(1.0).to("both")


def test_dp_event_classes():
    dp_accounting = pytest.importorskip("dp_accounting", reason="extra 'accounting' not installed")
    assert guarantee("joint_exp", epsilon=2.0).dp_event == dp_accounting.ZCDpEvent(0.5)
    assert Guarantee(None, rho=0.25).dp_event == dp_accounting.ZCDpEvent(0.25)
    pure = Guarantee(1.5).dp_event
    assert isinstance(pure, dp_accounting.RandomizedResponseDpEvent)
    assert pure.num_buckets == 2
    p = pure.noise_parameter
    assert (1 - p + p / 2) / (p / 2) == pytest.approx(math.exp(1.5), rel=1e-14)
    moved = Guarantee(2.0, neighbors="add-remove").dp_event
    assert moved == dp_accounting.ZCDpEvent(2.0)
    assert isinstance(Guarantee(1.0, 1e-6).dp_event, dp_accounting.UnsupportedDpEvent)


def test_dp_event_composes_to_our_zcdp_conversion():
    rdp = pytest.importorskip("dp_accounting.rdp", reason="extra 'accounting' not installed")
    import dp_accounting

    accountant = rdp.RdpAccountant(
        orders=list(np.linspace(1.5, 40, 2000)),
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE,
    )
    accountant.compose(guarantee("joint_exp", epsilon=1.0).dp_event, 10)
    ours = privacy.zcdp_epsilon(10 / 8, 1e-6)
    assert accountant.get_epsilon(1e-6) == pytest.approx(ours, rel=1e-4)


def test_dp_event_names_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "dp_accounting":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'dpq_fast\[accounting\]'"):
        _ = Guarantee(1.0).dp_event


# --- guarantee() ----------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("k", [1, 3])
def test_guarantee_joint_exp(relation, k):
    made = guarantee("joint_exp", epsilon=2.0, delta=1e-6, neighbors=relation, max_contributions=k)
    assert made == Guarantee(2.0, 0.0, 0.5, 2.0, relation, "")
    # sqrt(8 rho) = 2 at rho = 1/2: the same release
    assert guarantee("joint_exp", rho=0.5, neighbors=relation) == made


def test_guarantee_ind_exp():
    q = [0.5, 0.25, 0.25, 0.75]  # three distinct levels
    pure = guarantee("ind_exp", q=q, epsilon=3.0)
    assert pure == Guarantee(3.0, 0.0, 3 * 1.0 / 8, 3.0, "swap", "basic")
    assert guarantee("ind_exp", q=Levels(q), epsilon=3.0) == pure
    each = privacy.bounded_range_epsilon_each(3, 3.0, 1e-6)
    mixed = guarantee("ind_exp", q=q, epsilon=3.0, delta=1e-6, neighbors="add-remove")
    assert mixed == Guarantee(
        3.0, 1e-6, 3 * each * each / 8, 3 * each, "add-remove", "bounded-range"
    )
    # each = sqrt(8 rho / 3) = 2 at rho = 3/2
    zcdp = guarantee("ind_exp", q=q, rho=1.5)
    assert zcdp == Guarantee(6.0, 0.0, 1.5, 6.0, "swap", "zcdp")
    assert guarantee("ind_exp", q=0.5, epsilon=1.0).composition == ""
    assert guarantee("ind_exp", q=0.5, rho=0.5) == Guarantee(2.0, 0.0, 0.5, 2.0)


@pytest.mark.parametrize(
    ("method", "parameters", "message"),
    [
        ("nope", {}, "^method must be one of 'joint_exp', 'ind_exp'.*, got 'nope'$"),
        ("joint_exp", {}, "^exactly one of epsilon and rho must be given, got neither$"),
        ("joint_exp", {"epsilon": 1.0, "rho": 1.0}, "got both$"),
        ("joint_exp", {"epsilon": 1.0, "delta": 2.0}, "^delta must lie in"),
        ("joint_exp", {"epsilon": 1.0, "max_contributions": 0}, "^max_contributions must be at"),
        ("joint_exp", {"rho": -1.0}, "^rho must be positive"),
        ("ind_exp", {"epsilon": 1.0}, "^q must be given for method 'ind_exp', got None$"),
        ("ind_exp", {"epsilon": 1.0, "q": 2.0}, "^q must lie in"),
        ("ind_exp", {"rho": 1.0, "delta": 0.1, "q": 0.5}, "^delta must be 0 with rho"),
        ("ind_exp", {"epsilon": 1.0, "q": 0.5, "neighbors": "x"}, "^neighbors must be one of"),
        ("ind_exp", {"epsilon": 1.0, "q": 0.5, "max_contributions": 0}, "^max_contributions"),
    ],
)
def test_guarantee_rejects(method, parameters, message):
    with pytest.raises(ValueError, match=message):
        guarantee(method, **parameters)


# One call for each method, and what its guarantee takes.
CALLS = {
    "joint_exp": dict(epsilon=1.0),
    "ind_exp": dict(epsilon=1.0, q=0.5),
    "quantile_by": dict(epsilon=1.0),
    "unbounded_quantile": dict(epsilon=1.0, q=0.5),
    "approx_quantiles": dict(epsilon=1.0, q=0.5),
    "agg_tree": dict(epsilon=1.0, height=2, branching=4),
    "cdf": dict(epsilon=1.0, bins=4),
    "csmooth": dict(rho=1.0),
    "count": dict(epsilon=1.0),
    "sum": dict(epsilon=1.0),
    "mean": dict(epsilon=1.0),
}


@pytest.mark.parametrize(
    ("method", "wrong", "message"),
    [
        *((name, dict(max_contributions=0), "^max_contributions must be at") for name in CALLS),
        *((name, dict(neighbors="x"), "^neighbors must be one of") for name in CALLS),
        *((name, dict(delta=1.0), "^delta must lie in") for name in ("joint_exp", "agg_tree")),
        *(
            (name, dict(epsilon=0.0), "^epsilon must be positive")
            for name in CALLS
            if name != "csmooth"
        ),
        ("sum", dict(epsilon=0.0, q=None), "^epsilon must be positive"),
        ("count", dict(epsilon=math.inf), "^epsilon must be positive"),
        ("csmooth", dict(rho=0.0), "^rho must be positive"),
    ],
)
def test_guarantee_checks_what_it_does_not_need(method, wrong, message):
    assert guarantee(method, **CALLS[method]).neighbors == "swap"
    with pytest.raises(ValueError, match=message):
        guarantee(method, **CALLS[method] | wrong)


SUM = privacy.aggregates.calibrate(epsilon=1.0, q=None)

# The costs of one search per unit of epsilon1 + epsilon2, for a split of 1/2: epsilon, and the
# ranges of its calls. "up" at the level q: a removal costs q/2 + 1/2, an addition the larger of
# q/2 and (1 - q)/2; "down" is "up" at 1 - q; "both" makes two calls.
SEARCHES = [
    (0.2, "swap", dict(lower=0.0), 1.0, [1.5]),
    (0.2, "swap", dict(lower=None, upper=0.0), 1.0, [1.5]),
    (0.2, "swap", dict(lower=None), 1.5, [1.5, 1.5]),
    (0.2, "add-remove", dict(lower=0.0), 0.6, [0.6 + 0.4]),
    (0.9, "add-remove", dict(lower=0.0), 0.95, [0.95 + 0.45]),
    (0.2, "add-remove", dict(lower=None, upper=0.0), 0.9, [0.9 + 0.4]),
    (0.2, "add-remove", dict(lower=0.0, invert=True), 0.9, [0.9 + 0.4]),
    (0.2, "add-remove", dict(lower=None), 1.5, [0.6 + 0.4, 0.9 + 0.4]),
]


@pytest.mark.parametrize(("q", "neighbors", "way", "cost", "ranges"), SEARCHES)
@pytest.mark.parametrize("k", [1, 3])
def test_unbounded_quantile_spends_what_is_worked_by_hand(q, neighbors, way, cost, ranges, k):
    length = math.hypot(*ranges)
    person = dict(neighbors=neighbors, max_contributions=k)
    one_call = len(ranges) == 1

    calibrate = functools.partial(
        privacy.unbounded_quantile.calibrate, q, split=0.5, **way, **person
    )
    (each,) = calibrate(epsilon=3.0).step_epsilons
    assert each == pytest.approx([1.5 / (k * cost)] * 2, rel=1e-14)
    pure = guarantee("unbounded_quantile", q=q, epsilon=3.0, split=0.5, **way, **person)
    assert (pure.epsilon, pure.delta, pure.neighbors) == (3.0, 0.0, neighbors)
    assert pure.rho == pytest.approx((length * 3.0 / cost) ** 2 / 8.0, rel=1e-14)

    (each,) = calibrate(rho=2.0).step_epsilons
    assert each == pytest.approx([2.0 / (k * length)] * 2, rel=1e-14)  # sqrt(8 rho) = 4
    zcdp = guarantee("unbounded_quantile", q=q, rho=2.0, split=0.5, **way, **person)
    assert (zcdp.rho, zcdp.delta, zcdp.neighbors) == (2.0, 0.0, neighbors)
    assert zcdp.epsilon == pytest.approx(cost * 4.0 / length, rel=1e-14)
    if one_call:
        assert pure.bounded_range == pytest.approx(length * 3.0 / cost, rel=1e-14)
        assert zcdp.bounded_range == pytest.approx(4.0, rel=1e-14)
    else:
        assert pure.bounded_range is zcdp.bounded_range is None
    assert pure.composition == zcdp.composition == ""


@pytest.mark.parametrize("split", [0.25, 2.0 / 3.0])
def test_unbounded_quantile_epsilons_are_split(split):
    (found,) = privacy.unbounded_quantile.calibrate(0.5, epsilon=1.0, split=split).step_epsilons
    assert found == pytest.approx((split, 1.0 - split), rel=1e-15)
    (found,) = privacy.unbounded_quantile.calibrate(0.5, epsilon=1.0).step_epsilons
    assert found == (pytest.approx(2.0 / 3.0), pytest.approx(1.0 / 3.0))


def test_unbounded_quantile_of_two_levels_from_both_sides():
    """Two levels of half of it each, which add up."""
    squares = [1.0**2 + 1.3**2, 1.4**2 + 1.0**2]  # ranges at 0.2 and 0.8, and at 0.9 and 0.1
    way = dict(q=[0.2, 0.9], lower=None, split=0.5, neighbors="add-remove")
    pure = guarantee("unbounded_quantile", epsilon=3.0, **way)
    assert pure.rho == pytest.approx(sum(squares) / 8.0, rel=1e-14)  # 1.5 / 1.5 for each level
    assert (pure.epsilon, pure.bounded_range, pure.composition) == (3.0, None, "basic")
    zcdp = guarantee("unbounded_quantile", rho=2.0, **way)
    assert zcdp.epsilon == pytest.approx(
        sum(1.5 * math.sqrt(8.0 / square) for square in squares), rel=1e-14
    )
    assert (zcdp.rho, zcdp.bounded_range, zcdp.composition) == (2.0, None, "zcdp")


# Sums of epsilon 1, of which 0.2 are for the clip and 0.8 for the noise: rho of 0.8^2 / 2 + ...
CLIPS = [
    (dict(method="joint_exp", lower=0.0, upper=1.0), "swap", 0.2**2 / 8.0),
    (dict(method="ind_exp", lower=0.0, upper=1.0), "add-remove", 0.2**2 / 8.0),
    (dict(lower=None), "swap", 0.2**2 / 2.0),
    (dict(split=0.5), "swap", (1.5 * 0.2) ** 2 / 8.0),
    # at the level 1/4: 1/8 + 1/2 and 3/8
    (dict(split=0.5, q=0.25), "add-remove", (0.2 / 0.625) ** 2 / 8.0),
    (dict(split=0.5, q=0.25, lower=None, upper=0.0), "add-remove", (0.2 / 0.625) ** 2 / 8.0),
]


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize(("options", "neighbors", "clip"), CLIPS)
def test_guarantee_of_sums_worked_by_hand(name, options, neighbors, clip):
    made = guarantee(name, epsilon=1.0, share=0.2, neighbors=neighbors, **options)
    assert (made.epsilon, made.delta, made.bounded_range) == (1.0, 0.0, None)
    assert (made.neighbors, made.composition) == (neighbors, "basic")
    assert made.rho == pytest.approx(0.8**2 / 2.0 + clip, rel=1e-14)
    public = guarantee(name, epsilon=1.0, q=None, share=0.2, neighbors=neighbors)
    assert public == Guarantee(1.0, neighbors=neighbors)


@pytest.mark.parametrize("k", [1, 3])
def test_guarantee_of_trees_worked_by_hand(k):
    """rho is epsilon^2 / 2 t for a record in t counts: 2h under "swap", h under "add-remove"."""
    of = functools.partial(guarantee, "agg_tree", max_contributions=k)
    two = of(epsilon=3.0, height=2, branching=4)
    assert two == Guarantee(3.0, 0.0, 9.0 / 8.0, None, "swap", "")
    two = of(epsilon=3.0, height=2, branching=4, neighbors="add-remove")
    assert two == Guarantee(3.0, 0.0, 9.0 / 4.0, None, "add-remove", "")
    assert of(epsilon=3.0).rho == 9.0 / 12.0  # a height of 3 by default
    gaussian = of(rho=0.5, noise="gaussian", neighbors="add-remove")
    assert gaussian == Guarantee(None, 0.0, 0.5, None, "add-remove", "")
    cdf = functools.partial(guarantee, "cdf", max_contributions=k)
    assert cdf(epsilon=3.0, bins=16) == Guarantee(3.0, 0.0, 9.0 / 16.0)
    assert cdf(epsilon=3.0).rho == 9.0 / 40.0  # 2^10 bins by default
    assert cdf(epsilon=3.0, method="histogram", neighbors="add-remove").rho == 9.0 / 2.0
    assert cdf(epsilon=3.0, method="agg_tree", height=2, branching=4).rho == 9.0 / 8.0
    assert cdf(epsilon=3.0, method="adaptive", steps=9, bins=32).rho == 9.0 / 20.0
    assert cdf(rho=0.5, method="adaptive") == Guarantee(None, rho=0.5)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("shape", [dict(levels=4), dict(bins=8)], ids=str)
def test_guarantee_of_normal_noise_worked_by_hand(shape, neighbors, k):
    """The noise of a budget grows with the sensitivity, so that rho is the same for all."""
    of = functools.partial(
        guarantee, "cdf", method="gaussian", neighbors=neighbors, max_contributions=k, **shape
    )
    assert of(rho=0.5) == Guarantee(None, rho=0.5, neighbors=neighbors)
    made = of(epsilon=1.0, delta=1e-6)
    assert (made.epsilon, made.delta, made.bounded_range) == (1.0, 1e-6, None)
    assert (made.neighbors, made.composition) == (neighbors, "")
    sigma = privacy.gaussian_sigma(1.0, 1.0, 1e-6)
    assert made.rho == pytest.approx(1.0 / (2.0 * sigma * sigma), rel=1e-12)


def test_guarantee_of_smooth_gaussian_worked_by_hand():
    made = guarantee("cdf", method="smooth_gaussian", epsilon=1.0, delta=1e-6)
    assert made == Guarantee(1.0, 1e-6, None, None, "swap", "basic")
    # a chain of two records at 1/6 each: (delta / 3) / (1 + e^(1/6))
    each = privacy.cdf.budget_of_level(3, 1.0, 6e-6, 2)
    assert each == pytest.approx((1.0 / 6.0, 2e-6 / (1.0 + math.exp(1.0 / 6.0))), rel=1e-14)
    assert privacy.cdf.budget_of_level(3, 1.0, 6e-6) == pytest.approx((1.0 / 3.0, 2e-6))
    with pytest.raises(ValueError, match=r"^rho must be left out for method 'smooth_gaussian'"):
        guarantee("cdf", method="smooth_gaussian", epsilon=1.0, delta=1e-6, rho=0.5)
    with pytest.raises(ValueError, match=r"^delta must be 0 for method 'histogram'"):
        guarantee("cdf", method="histogram", epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("value", [1, np.float64(0.5), Fraction(1, 2)])
def test_guarantee_class_stores_floats(value):
    small = value / 4
    made = Guarantee(value, small, value, value)
    stored = (made.epsilon, made.delta, made.rho, made.bounded_range)
    assert {type(field) for field in stored} <= {float, np.float64}
    assert stored == (value, small, value, value)


def test_to_swap_at_the_ends():
    pure = Guarantee(800.0, neighbors="add-remove")
    assert pure.to("swap") == Guarantee(1600.0, composition="group-privacy")
    # twice a delta of 1/2 is 1, which says nothing
    nothing = Guarantee(0.0, 0.5, 1.0, neighbors="add-remove").to("swap")
    assert (nothing.epsilon, nothing.delta, nothing.rho) == (None, 0.0, 4.0)
    # exp(699) is still a float64
    kept = Guarantee(699.0, 1e-310, neighbors="add-remove").to("swap")
    assert kept.delta == pytest.approx(1e-310 * math.exp(699.0), rel=1e-9)


# What the losses of the steps are by hand, for levels whose parts have the local levels 1/2, and
# then 0.1 and 0.6. Per unit of the rate of "ind_exp": 2 max(q, 1 - q) for one record more or less,
# 2 for a replacement inside the part. Per unit of epsilon1 + epsilon2 of "unbounded", with a split
# of 1/4: a removal q / 4 + 3/4, an addition the larger of 3q/4 and (1 - q)/4, a replacement 1, of
# range 7/4. By relation and budget, the divisor of each step's scale, and what the budget of the
# other kind comes to: 8 rho for an epsilon of 2, epsilon for an 8 rho of 4.
RECURSION = [0.05, 0.5, 0.8]
STEPS = {
    ("ind_exp", "swap", "epsilon"): ([2.0, 1.8 + 1.2, 1.8 + 1.2], 4.0 / 4.0 + 4.68 / 9.0),
    ("ind_exp", "add-remove", "epsilon"): ([1.0, 1.8, 1.2], 2.0),
    ("ind_exp", "swap", "rho"): (
        [2.0, math.sqrt(4.68), math.sqrt(4.68)],
        math.sqrt(2.0) * (1.0 + 3.0 / math.sqrt(4.68)),
    ),
    ("ind_exp", "add-remove", "rho"): ([1.0, 1.8, 1.2], math.sqrt(2.0) * 2.0),
    ("unbounded", "swap", "epsilon"): (
        [1.0, 0.775 + 0.45, 0.775 + 0.45],
        1.75**2 + (1.75 / 1.225) ** 2,
    ),
    ("unbounded", "add-remove", "epsilon"): (
        [0.875, 0.775, 0.9],
        (1.25 / 0.875) ** 2 + (1.35 / 0.9) ** 2,
    ),
    ("unbounded", "swap", "rho"): ([1.75] * 3, math.sqrt(2.0) * (1.0 + 1.225) / 1.75),
    ("unbounded", "add-remove", "rho"): (
        [1.25, 1.0, 1.35],
        math.sqrt(2.0) * (0.875 / 1.25 + 0.775),
    ),
}


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("base", "neighbors", "kind"), STEPS)
def test_approx_quantiles_spend_what_is_worked_by_hand(base, neighbors, kind, k):
    divisors, other = STEPS[base, neighbors, kind]
    form = dict(neighbors=neighbors, base=base, split=0.25, max_contributions=k)
    budget = dict(epsilon=2.0, rho=None) if kind == "epsilon" else dict(epsilon=None, rho=0.5)
    # two depths: half of epsilon, or of 8 rho, for each
    share = 1.0 if kind == "epsilon" else math.sqrt(2.0)
    scales = privacy.approx_quantiles.calibrate(RECURSION, **budget, **form).steps
    expected = [share / (k * divisor) for divisor in divisors]
    assert scales.tolist() == pytest.approx(expected, rel=1e-13)

    made = [guarantee("approx_quantiles", q=RECURSION, **budget, **form)]
    if base == "unbounded":
        del form["base"]
        down = [1.0 - level for level in RECURSION]
        made += [
            guarantee("unbounded_quantile", q=RECURSION, **budget, **form),
            guarantee("unbounded_quantile", q=down, lower=None, upper=0.0, **budget, **form),
        ]
    for promise in made:
        assert (promise.delta, promise.bounded_range, promise.neighbors) == (0.0, None, neighbors)
        if kind == "epsilon":
            assert (promise.epsilon, promise.composition) == (2.0, "basic")
            assert promise.rho == pytest.approx(other / 8.0, rel=1e-13)
        else:
            assert (promise.rho, promise.composition) == (0.5, "zcdp")
            assert promise.epsilon == pytest.approx(other, rel=1e-13)


def test_approx_quantiles_of_one_level_compose_nothing():
    assert guarantee("approx_quantiles", q=0.5, epsilon=2.0) == Guarantee(2.0, rho=0.5)
    assert guarantee("approx_quantiles", q=0.5, rho=0.5) == Guarantee(2.0, rho=0.5)


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_two_different_is_the_largest_of_all_pairs(size):
    rng = np.random.default_rng(size)
    for _ in range(200):
        a, b = rng.integers(0, 9, size=(2, size)).astype(float)
        pairs = itertools.permutations(range(size), 2)
        assert approx_quantiles._two_different(a, b) == max(a[u] + b[v] for u, v in pairs)


def test_clip_epsilons_known_values():
    # at the level 0.9, of 1/2 and 1/2: .95 for a removal, .45 for an addition

    def of(neighbors, two_sided, split=0.5, k=1):
        lower = None if two_sided else 0.0
        person = dict(neighbors=neighbors, max_contributions=k)
        # half of it is for the clip
        made = privacy.aggregates.calibrate(epsilon=2.0, q=0.9, lower=lower, split=split, **person)
        (epsilons,) = made.clip.step_epsilons
        return epsilons

    assert of("swap", False) == (0.5, 0.5)
    assert of("swap", True) == pytest.approx((0.5 / 1.4,) * 2, rel=1e-14)
    for two_sided in (False, True):
        assert of("add-remove", two_sided) == pytest.approx((0.5 / 0.95,) * 2, rel=1e-14)
    three = of("swap", True, 0.25, 3)
    # .225 + .75 for a removal, .675 for an addition
    assert three == pytest.approx((0.25 / (3 * 1.65), 0.75 / (3 * 1.65)), rel=1e-14)


def test_scales_of_sums_and_means_known_values():
    assert privacy.aggregates.laplace_scale(0, 1.0) == 0
    assert privacy.aggregates.laplace_scale(6, 0.5, 3) == 36
    add_remove, swap = (
        privacy.aggregates.calibrate(
            epsilon=0.5, q=None, neighbors=neighbors, max_contributions=3
        ).mean_scales
        for neighbors in ("add-remove", "swap")
    )
    assert add_remove(10, True) == (60, 60)
    assert swap(10, True) == (120, 12)
    assert swap(10, False) == (120, 0)


def test_above_threshold_loss_known_values():
    calibrate = functools.partial(privacy.above_threshold.calibrate, epsilon1=1.0, epsilon2=3.0)
    assert (calibrate().epsilon, calibrate().bounded_range) == (7.0, None)
    monotonic = calibrate(monotonic=True)
    assert (monotonic.epsilon, monotonic.bounded_range) == (4.0, 7.0)
    assert calibrate(sensitivity=0.5).rates == (2.0, 6.0)


@pytest.mark.parametrize("epsilons", [(1e-300, 1e10), (1e10, 1e-300)])
def test_above_threshold_rates_beyond_float64_are_refused(epsilons):
    for sensitivity in (1e300, 1e-300):
        with pytest.raises(
            ValueError, match=r"^epsilon1 and epsilon2 over sensitivity must be pos"
        ):
            privacy.above_threshold.calibrate(
                epsilon1=epsilons[0], epsilon2=epsilons[1], sensitivity=sensitivity
            )


def test_least_rates_and_most_mechanisms_are_taken():
    q = np.array([0.5, 1.0])  # of the sensitivities 1/2 and 1 under "add-remove"
    assert privacy.joint_exp.calibrate(q, epsilon=4e-305).rate == 1e-305
    with pytest.raises(ValueError, match="must leave at least 1e-305 for each step"):
        privacy.joint_exp.calibrate(q, epsilon=3.9e-305)
    with pytest.raises(ValueError, match="must leave at least 1e-305 for each step"):
        privacy.ind_exp.calibrate(q, epsilon=3e-305, neighbors="add-remove")
    assert bounded_range._check_composed(2**15) == 2**15
    assert privacy.cdf._check_levels(2**20) == 2**20
    for end in (1e-290, 1e290):
        assert bounded_range._check_composable(end) == end
    for beyond in (0.9e-290, 1.1e290):
        with pytest.raises(ValueError, match="must lie between 1e-290"):
            bounded_range._check_composable(beyond)
    for beyond in (0.9e-140, 1.1e300):
        with pytest.raises(ValueError, match="must lie between 1e-140"):
            privacy.zcdp_rho(beyond, 1e-6)


def test_range_of_ind_exp_without_delta_is_epsilon_itself():
    assert 6 * (0.9 / 6) != 0.9
    made = guarantee("ind_exp", q=np.arange(1, 7) / 7, epsilon=0.9)
    assert (made.epsilon, made.bounded_range) == (0.9, 0.9)


# What is left out of a call, wherever it may be.
DEFAULTS = dict(
    max_contributions=(1,),
    delta=(0.0,),
    neighbors=("swap", None),
    sensitivity=(1.0,),
    share=(0.5,),
    split=(2.0 / 3.0, None),
    monotonic=(False,),
    public_by=(False,),
    invert=(False,),
    lower=(0.0,),
    adaptive=(True,),
    convert=(False,),
)


def test_defaults_of_all_formulas():
    modules = [
        importlib.import_module(f"{privacy.__name__}.{module.name}")
        for module in pkgutil.iter_modules(privacy.__path__)
    ]
    functions = [
        function
        for owner in (*modules, Accountant, Guarantee, privacy.aggregates.Calibration)
        for function in vars(owner).values()
        if inspect.isfunction(function) and function.__module__.startswith(privacy.__name__)
    ]
    seen = set()
    for function in functions:
        for argument in inspect.signature(function).parameters.values():
            if argument.name in DEFAULTS and argument.default is not argument.empty:
                assert argument.default in DEFAULTS[argument.name], (function, argument)
                seen.add(argument.name)
    assert seen == DEFAULTS.keys()


def test_cdf_options_that_are_left_out():
    of = privacy.cdf.options_of
    assert of("binary_tree", {}) == dict(bins=2**10, aggregate=True)
    assert of("binary_tree", {}, 10) == dict(bins=16, aggregate=True)
    assert of("binary_tree", {}, 10**6) == dict(bins=2**10, aggregate=True)
    assert of("agg_tree", {}) == dict(height=3, branching=10, aggregate=True)
    assert of("histogram", {}) == dict(bins=100)
    assert of("histogram", {}, 10) == dict(bins=10)
    assert of("gaussian", {}) == dict(levels=9, bins=None)
    assert of("gaussian", dict(bins=64), 10) == dict(levels=9, bins=10)
    assert of("smooth_gaussian", {}, 10) == dict(levels=9)
    assert of("adaptive", {}) == dict(steps=128, bins=2**14, depth=14)
    assert of("adaptive", {}, 10) == dict(steps=9, bins=16, depth=4)
    assert of("adaptive", dict(steps=3, bins=32)) == dict(steps=3, bins=8, depth=3)
    assert of("adaptive", dict(bins=32, depth=3), 10**6) == dict(steps=7, bins=8, depth=3)


def test_formulas_take_their_ends_and_nothing_beyond():
    for t in (1e-100, 10.0):
        assert math.isfinite(privacy.csmooth.shape_of(t, 1.0)[1])
    one = dict(height=1, noise="laplace", neighbors="add-remove")
    assert privacy.agg_tree.calibrate(epsilon=2.0**-53, **one).noise.scale == 2**53
    with pytest.raises(ValueError, match="of a scale of at most 2"):
        privacy.agg_tree.calibrate(epsilon=0.99 * 2.0**-53, **one)
    few = _checks.FEW_POINTS
    for method in ("binary_tree", "histogram"):
        for points in (2, 16, few):
            assert privacy.cdf.options_of(method, {}, points)["bins"] == points
    assert privacy.cdf.options_of("histogram", {}, few + 1) == dict(bins=100)
    assert privacy.cdf.options_of("agg_tree", {}, 2)["height"] == 1
    # nothing is left of delta where e^epsilon is beyond all that matters
    assert privacy.cdf.budget_of_level(1, 800.0, 1e-6, 400) == (2.0, 0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: privacy.cdf.depths_of("histogram", dict(bins=1)), "^bins must be at least 2"),
        (
            lambda: privacy.cdf.gaussian_squared(4, 1, relation_of("swap")),
            "^bins must be at least 2",
        ),
        (
            lambda: privacy.cdf.calibrate(method="gaussian", rho=1.0, neighbors="x"),
            "^neighbors must be one of",
        ),
        (lambda: privacy.gaussian_sigma(1.0, 1.0, 0.0, 0.5), "^exactly one of epsilon and rho"),
        (lambda: privacy.gaussian_sigma(1.0, None, 1e-6), "^exactly one of epsilon and rho"),
        (
            lambda: privacy.cdf.budget_of_level(1, 1e-310, 1e-6, 2**53),
            "^epsilon of a level must be positive",
        ),
    ],
)
def test_formulas_of_noise_reject(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- compose --------------------------------------------------------------------------------------


def test_compose_basic_sums():
    total = compose([Guarantee(0.1, 1e-7)] * 10)
    assert (total.epsilon, total.delta) == (1.0, 1e-6)
    assert (total.composition, total.rho) == ("basic", None)
    assert compose([Guarantee(1.0), Guarantee(2.0)]).rho == 0.5 + 2.0  # epsilon^2 / 2


def test_compose_takes_the_best_theorem():
    many = [guarantee("joint_exp", epsilon=0.1)] * 100
    basic = compose(many)
    assert basic.composition == "basic"
    assert basic.epsilon == pytest.approx(10.0, rel=1e-15)
    adaptive = compose(many, delta=1e-6)
    assert (adaptive.composition, adaptive.delta) == ("zcdp", 1e-6)
    assert adaptive.epsilon == privacy.zcdp_epsilon(adaptive.rho, 1e-6)
    assert adaptive.rho == pytest.approx(100 * 0.01 / 8, rel=1e-14)
    assert adaptive.bounded_range is None
    fixed = compose(many, delta=1e-6, adaptive=False)
    assert fixed.composition == "bounded-range"
    assert fixed.epsilon == privacy.bounded_range_epsilon(100, 0.1, 1e-6)
    assert fixed.epsilon < adaptive.epsilon < basic.epsilon
    assert fixed.bounded_range == pytest.approx(10.0)


def test_compose_prefers_basic_where_it_is_better():
    total = compose([Guarantee(0.5, rho=0.1), Guarantee(0.5, rho=0.1)], delta=1e-9)
    assert (total.epsilon, total.delta, total.composition) == (1.0, 0.0, "basic")
    assert total.rho == 0.2


def test_compose_bounded_range_needs_equal_ranges_and_the_promise():
    parts = [guarantee("joint_exp", epsilon=e) for e in [0.1] * 60 + [0.2]]
    assert compose(parts, delta=1e-6, adaptive=False).composition == "zcdp"
    assert compose(parts[:60], delta=1e-6).composition == "zcdp"
    assert compose(parts[:60], delta=0.0, adaptive=False).composition == "basic"


def test_compose_own_deltas():
    parts = [Guarantee(1.0, 1e-6), Guarantee(1.0, 2e-6)]
    assert compose(parts, delta=1e-3).delta == pytest.approx(3e-6)
    with pytest.raises(ValueError, match=r"^delta must be at least the sum .* got 1e-06$"):
        compose(parts, delta=1e-6)
    # their rho needs none of the deltas
    parts = [Guarantee(1.0, 1e-6, rho=0.01), Guarantee(1.0, 2e-6, rho=0.01)]
    assert compose(parts, delta=1e-7).composition == "zcdp"


def test_compose_rho_alone():
    parts = [Guarantee(None, rho=0.1), Guarantee(None, rho=0.2)]
    total = compose(parts)
    assert (total.epsilon, total.delta, total.composition) == (None, 0.0, "zcdp")
    assert total.rho == math.fsum([0.1, 0.2])
    converted = compose(parts, delta=1e-6)
    assert converted.epsilon == privacy.zcdp_epsilon(total.rho, 1e-6)


def test_compose_rho_alone_with_a_release_that_has_none():
    parts = [Guarantee(1.0, 4e-7), Guarantee(None, rho=0.1), Guarantee(None, rho=0.2)]
    total = compose(parts, delta=1e-6)
    share = (1e-6 - 4e-7) / 2
    expected = 1.0 + privacy.zcdp_epsilon(0.1, share) + privacy.zcdp_epsilon(0.2, share)
    assert total.epsilon == pytest.approx(expected, rel=1e-15)
    assert (total.delta, total.composition, total.rho) == (1e-6, "basic", None)
    with pytest.raises(ValueError, match=r"^delta must be positive to state an epsilon"):
        compose(parts)
    with pytest.raises(ValueError, match=r"^delta must be more than the sum of the deltas"):
        compose(parts, delta=4e-7)


def test_compose_relations():
    mixed = [Guarantee(1.0), Guarantee(1.0, neighbors="add-remove")]
    with pytest.raises(ValueError, match=r"^neighbors must be given to compose .* different rel"):
        compose(mixed)
    total = compose(mixed, neighbors="swap")
    assert (total.epsilon, total.neighbors) == (3.0, "swap")
    with pytest.raises(ValueError, match=r"takes the number of records as public"):
        compose(mixed, neighbors="add-remove")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: compose([]),
            ValueError,
            "^guarantees must hold at least one guarantee, got none$",
        ),
        (
            lambda: compose([1.0]),
            TypeError,
            "^guarantees must hold Guarantee objects, .* type float$",
        ),
        (lambda: compose([Guarantee(1.0)], delta=1.0), ValueError, "^delta must lie in"),
        (
            lambda: compose([Guarantee(1.0, 0.6)] * 2),
            ValueError,
            "^the sum of the deltas must be below 1, got 1.2$",
        ),
    ],
)
def test_compose_rejects(call, error, message):
    with pytest.raises(error, match=message):
        call()


@given(
    st.lists(st.sampled_from([0.01, 0.1, 0.5, 2.0]), min_size=1, max_size=8),
    st.sampled_from([1e-12, 1e-6, 1e-2]),
    st.booleans(),
)
@settings(deadline=None)
def test_compose_is_never_worse_than_basic(epsilons, delta, adaptive):
    parts = [guarantee("joint_exp", epsilon=epsilon) for epsilon in epsilons]
    best = compose(parts, delta=delta, adaptive=adaptive)
    assert best.epsilon <= math.fsum(epsilons)
    assert best.delta <= delta


@pytest.mark.parametrize("epsilon", [0.3, 0.8])
def test_compose_non_adaptive_holds_for_enumerated_pairs(epsilon):
    total = compose([guarantee("joint_exp", epsilon=epsilon)] * 3, delta=0.01, adaptive=False)
    for ts in itertools.product(np.linspace(0, epsilon, 9), repeat=3):
        assert enumerated_delta(epsilon, ts, total.epsilon) <= total.delta


def test_compose_at_the_ends(monkeypatch):
    with pytest.raises(ValueError, match=r"^the sum of the deltas must be below 1, got 1.0$"):
        compose([Guarantee(1.0, 0.5)] * 2)
    # all of delta may be spent
    parts = [Guarantee(1.0, 1e-6), Guarantee(1.0, 2e-6)]
    assert compose(parts, delta=3e-6).epsilon == 2.0
    one = guarantee("joint_exp", epsilon=0.1)
    assert compose([one], delta=1e-6, adaptive=False).bounded_range == 0.1
    monkeypatch.setattr(accounting, "MOST_COMPOSED", 60)
    monkeypatch.setattr(accounting, "COMPOSABLE", (0.1, 0.1))
    assert compose([one] * 60, delta=1e-6, adaptive=False).composition == "bounded-range"
    assert compose([one] * 61, delta=1e-6, adaptive=False).composition == "zcdp"


def test_accountant_of_a_delta_just_below_one():
    """Within the tolerance the sum may be 1, which is no delta."""
    most = math.nextafter(1.0, 0.0)
    accountant = Accountant(10.0, most)
    for _ in range(2):
        accountant.charge(Guarantee(1.0, 0.5))
    assert (accountant.spent.epsilon, accountant.spent.delta) == (2.0, most)
    assert (accountant.remaining.epsilon, accountant.remaining.delta) == (8.0, 0.0)


# --- Accountant -----------------------------------------------------------------------------------


def test_accountant_takes_ten_tenths_and_no_more():
    accountant = Accountant(1.0)
    for _ in range(10):
        accountant.charge(Guarantee(0.1))
    assert accountant.spent == Guarantee(1.0, composition="basic")
    assert accountant.remaining == Guarantee(0.0)
    assert accountant.history == (Guarantee(0.1),) * 10
    with pytest.raises(BudgetExceeded, match="fit the budget") as refused:
        accountant.charge(Guarantee(0.001))
    assert str(refused.value) == (
        "a release must fit the budget of epsilon=1.0, delta=0.0, "
        "of which epsilon=1.0, delta=0.0 is spent, got epsilon=0.001, delta=0.0"
    )
    assert len(accountant.history) == 10


def test_accountant_tolerance_is_relative_1e_12():
    for excess, fits in [(0.5e-12, True), (2e-12, False)]:
        accountant = Accountant(1e-3, 1e-6)
        request = Guarantee(1e-3 * (1 + excess), 1e-6)
        if fits:
            accountant.charge(request)
        else:
            with pytest.raises(BudgetExceeded):
                accountant.charge(request)


def test_accountant_counts_delta():
    accountant = Accountant(10.0, 1e-6)
    accountant.charge(Guarantee(1.0, 1e-6))
    with pytest.raises(BudgetExceeded):
        accountant.charge(Guarantee(1.0, 1e-12))
    accountant.charge(Guarantee(1.0))
    assert (accountant.spent.epsilon, accountant.spent.delta) == (2.0, 1e-6)


def test_accountant_zcdp_keeps_rho():
    accountant = Accountant(2.0, 1e-6, composition="zcdp")
    budget = privacy.zcdp_rho(2.0, 1e-6)
    assert accountant.spent.epsilon == 0.0
    assert accountant.remaining == Guarantee(None, rho=budget)
    release = guarantee("joint_exp", epsilon=0.1)  # 0.1^2/8 each
    count = 0
    while accountant.remaining.rho >= release.rho:
        accountant.charge(release)
        count += 1
    assert count == int(budget / release.rho)
    assert count * 0.1 > 2.0  # more than the basic sum would allow
    assert accountant.spent.epsilon <= 2.0
    assert accountant.spent.rho == pytest.approx(count * release.rho)
    with pytest.raises(BudgetExceeded, match=r"^a release must fit the budget of rho="):
        accountant.charge(release)
    with pytest.raises(ValueError, match=r"^a release must state rho .* delta=1e-09$"):
        accountant.charge(Guarantee(1.0, 1e-9))


def test_accountant_basic_needs_epsilon():
    with pytest.raises(ValueError, match=r"^a release must state epsilon .* got rho=0.1 alone$"):
        Accountant(1.0).charge(Guarantee(None, rho=0.1))


def test_accountant_relations():
    other = Guarantee(0.5, neighbors="add-remove")
    with pytest.raises(
        ValueError, match=r"^the guarantee must be under 'swap'.* got 'add-remove'$"
    ):
        Accountant(1.0).charge(other)
    accountant = Accountant(1.0, convert=True)
    accountant.charge(other)
    assert accountant.spent.epsilon == 1.0
    assert accountant.neighbors == accountant.history[0].neighbors == "swap"
    with pytest.raises(ValueError, match=r"takes the number of records as public"):
        Accountant(1.0, neighbors="add-remove", convert=True).charge(Guarantee(0.5))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Accountant(0.0), ValueError, "^epsilon must be positive"),
        (lambda: Accountant(1.0, -0.1), ValueError, "^delta must lie in"),
        (lambda: Accountant(1.0, neighbors="x"), ValueError, "^neighbors must be one of"),
        (
            lambda: Accountant(1.0, composition="best"),
            ValueError,
            "^composition must be one of 'basic', 'zcdp', got 'best'$",
        ),
        (
            lambda: Accountant(1.0, composition="zcdp"),
            ValueError,
            "^delta must be positive for composition 'zcdp', got 0.0$",
        ),
        (
            lambda: Accountant(1.0).charge(1.0),
            TypeError,
            "^guarantee must be a Guarantee, got float$",
        ),
        (
            lambda: charge(1.0, privacy.joint_exp.calibrate(epsilon=1.0)),
            TypeError,
            "^accountant must be an Accountant, got float$",
        ),
    ],
)
def test_accountant_rejects(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_accountant_under_eight_racing_threads_spends_exactly_its_budget():
    accountant = Accountant(10.0)
    start = threading.Barrier(8)
    taken = [0] * 8

    def race(thread):
        start.wait()
        for _ in range(50):
            try:
                accountant.charge(Guarantee(0.1))
            except BudgetExceeded:
                continue
            taken[thread] += 1

    threads = [threading.Thread(target=race, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == len(accountant.history) == 100
    assert accountant.remaining.epsilon == 0.0


def test_charge_without_an_accountant_does_nothing():
    charge(None, privacy.joint_exp.calibrate(epsilon=1e9))


def test_charge_charges_the_guarantee():
    accountant = Accountant(1.0)
    charge(accountant, privacy.joint_exp.calibrate(epsilon=0.25))
    assert accountant.remaining.epsilon == 0.75


@pytest.mark.parametrize("name", ["approx_quantiles", "unbounded_quantile", "sum", "mean"])
def test_budgets_that_would_overflow_are_refused(name):
    options = dict(epsilon=1e-310)
    if name in ("approx_quantiles", "unbounded_quantile"):
        options |= dict(q=[0.2, 0.5])
    if name == "approx_quantiles":
        options |= dict(bounds=(0, 9))
    with pytest.raises(ValueError, match="epsilon or rho must leave at least 1e-305"):
        getattr(dpq, name)([1.0, 2.0], **options)


TINY = [
    dict(epsilon=5e-324),
    dict(epsilon=1e-320, max_contributions=2**53),
    dict(epsilon=1e-290, max_contributions=2**53),
    dict(epsilon=1e-305),
]
LEAST_RELEASES = {
    "median": lambda x, **budget: dpq.median(x, bounds=(0, 1000), **budget),
    "joint_exp": lambda x, **budget: dpq.joint_exp(x, [0.2, 0.5], bounds=(0, 1000), **budget),
    "ind_exp": lambda x, **budget: dpq.ind_exp(x, [0.2, 0.5], bounds=(0, 1000), **budget),
    "quantile_by": lambda x, **budget: dpq.quantile_by(
        x, np.zeros(x.size, dtype=int), 0.5, groups=[0], bounds=(0, 1000), **budget
    ),
    "cdf": lambda x, **budget: dpq.cdf(
        x, bounds=(0, 1000), method="smooth_gaussian", delta=1e-6, **budget
    ),
    "sum": lambda x, **budget: dpq.sum(x, upper=1000, method="joint_exp", **budget),
    "mean": lambda x, **budget: dpq.mean(x, upper=1000, method="ind_exp", **budget),
}


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("budget", TINY, ids=str)
@pytest.mark.parametrize("release", LEAST_RELEASES.values(), ids=LEAST_RELEASES.keys())
def test_rates_that_underflow_are_refused_for_any_number_of_records(release, budget, neighbors):
    messages = set()
    for n in (0, 1, 511, 512, 5000):
        with pytest.raises(ValueError, match="epsilon") as refused:
            release(np.arange(n) * 1.0, neighbors=neighbors, **budget)
        messages.add(str(refused.value))
    assert len(messages) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kernel", ["scan", "fft"])
@pytest.mark.parametrize("resolution", [None, 0, 1.0])
def test_the_least_rates_are_enough_for_any_number_of_records(resolution, kernel):
    options = dict(bounds=(0, 1000), resolution=resolution)
    for n in (0, 1, 511, 512, 5000):
        for x in (np.arange(n) * 1.0, np.zeros(n)):
            for q in ([0.5], [0.1, 0.2, 0.9]):
                law = dpq.joint_exp_law(x, q, epsilon=4.1e-305, kernel=kernel, **options)
                assert math.isfinite(law.log_prob(law.sample()))
                law = dpq.ind_exp_law(x, q, epsilon=8.1e-305, **options)
                assert math.isfinite(law.log_prob(law.sample()))


@pytest.mark.parametrize("name", ["max_contributions", "halts"])
def test_numbers_beyond_float64_are_refused(name):
    options = (
        {"epsilon": 1.0} if name == "max_contributions" else {"epsilon1": 1.0, "epsilon2": 1.0}
    )
    method = "joint_exp" if name == "max_contributions" else "sparse_vector"
    with pytest.raises(ValueError, match=f"{name} must be at most 2\\*\\*53, got 1000"):
        privacy.guarantee(method, **options, **{name: 10**400})


def test_a_range_whose_square_overflows_is_refused():
    with pytest.raises(ValueError, match="rho must be finite"):
        privacy.guarantee("above_threshold", epsilon1=1e300, epsilon2=1.0, monotonic=True)


# --- The ends of float64 --------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [5e-324, 1e-6, 0.5, math.nextafter(1.0, 0.0)])
@pytest.mark.parametrize("rho", [5e-324, 1e-300, 1e-150, 1e150, 1e300, 1.79e308])
def test_zcdp_epsilon_at_the_ends_of_float64(rho, delta):
    epsilon = privacy.zcdp_epsilon(rho, delta)
    assert 0.0 <= epsilon <= (rho + 2.0 * math.sqrt(rho) * math.sqrt(-math.log(delta))) * 1.000001
    assert epsilon >= (rho * 0.999999 if rho > 1.0 else 0.0)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e301])
def test_budgets_without_a_rho_are_refused(epsilon):
    message = "^epsilon must lie between 1e-140 and 1e\\+300 to be turned into rho, got"
    with pytest.raises(ValueError, match=message):
        privacy.zcdp_rho(epsilon, 1e-6)
    with pytest.raises(ValueError, match=message):
        Accountant(epsilon, 1e-6, composition="zcdp")


@pytest.mark.parametrize("epsilon", [1e-140, 1e300])
def test_the_least_and_the_largest_budget_with_a_rho(epsilon):
    assert privacy.zcdp_epsilon(privacy.zcdp_rho(epsilon, 1e-6), 1e-6) <= epsilon


@pytest.mark.parametrize(
    "composed",
    [
        lambda m, each: privacy.bounded_range_delta(each, m, 1.0),
        lambda m, each: privacy.bounded_range_epsilon(m, each, 1e-6),
        lambda m, each: privacy.bounded_range_epsilon_each(m, each, 1e-6),
        lambda m, each: privacy.ind_exp.calibrate(
            np.arange(min(m, 2**16)) / 2**16, epsilon=each, delta=1e-6
        ),
    ],
)
def test_optimal_composition_has_its_ends(composed):
    with pytest.raises(ValueError, match=r"^m must be at most 32768 for optimal composition, got"):
        composed(2**40, 1.0)
    for each in (5e-324, 1.7e308):
        with pytest.raises(ValueError, match=r"must lie between 1e-290 and 1e\+290 for optimal"):
            composed(3, each)


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("module", [dpq, dpq.reference], ids=["fast", "reference"])
@pytest.mark.parametrize(
    "x", [[], [math.nan], np.arange(40.0) - 20.0, [0.0] * 100], ids=["none", "nan", "40", "tied"]
)
def test_huge_budgets_release_the_best_whatever_the_records(x, module, neighbors):
    """No error, and nothing that would be next to impossible at an epsilon of 10^4."""
    form = dict(q=[0.3, 0.6], bounds=(-10, 10), resolution=0.5, dither=False, neighbors=neighbors)
    for name in ("joint_exp", "ind_exp", "approx_quantiles"):
        law = getattr(dpq, f"{name}_law")(x, epsilon=1e4, **form)
        for epsilon in (1e6, 1e16, 1e20, 1.79e308):
            out = getattr(module, name)(x, epsilon=epsilon, rng=1, **form)
            assert law.log_prob(out) > -100.0
    law = dpq.joint_exp_law(x, epsilon=1e4, **form)
    for epsilon in (1e6, 1.79e308):
        out = module.quantile_by(x, [0] * len(x), groups=[0], epsilon=epsilon, rng=1, **form)
        assert law.log_prob(out.values[0]) > -100.0


def test_a_large_total_needs_no_delta():
    assert privacy.bounded_range_delta(1.0, 3, 1e300) == 0.0


def test_compose_leaves_out_the_theorem_that_does_not_apply():
    """Where ranges are too many, or too near the ends, for optimal composition."""
    tiny = [Guarantee(1e-300, bounded_range=1e-300)] * 2
    many = [Guarantee(1e-3, bounded_range=1e-3)] * (2**15 + 1)
    for parts in (tiny, many):
        assert compose(parts, delta=1e-6, adaptive=False).composition in ("basic", "zcdp")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: privacy.aggregates.laplace_scale(math.inf, 1.0),
            TypeError,
            "sensitivity must be an integer",
        ),
        (lambda: SUM.mean_scales(1e300, True), TypeError, "width must be an int"),
        (lambda: SUM.sum_scale(0, 10**400, True), ValueError, "high must be at"),
        (lambda: privacy.gaussian_sigma(10**400, 1.0, 0.1), ValueError, "squared must be positive"),
        (
            lambda: privacy.unbounded_quantile.calibrate(0.5, epsilon=1.0, invert=""),
            TypeError,
            "invert must be True or False, got ''",
        ),
        (
            lambda: privacy.cdf.budget_of_level(9, 5e-324, 1e-6),
            ValueError,
            "epsilon of a level must be positive and finite, got 0.0",
        ),
        (
            lambda: guarantee("cdf", epsilon=1e300, bins=16),
            ValueError,
            "rho must be finite and not negative, got inf",
        ),
        (lambda: compose([Guarantee(1.0)], adaptive="no"), TypeError, "adaptive must be True or"),
        (lambda: Accountant(1.0, convert="no"), TypeError, "convert must be True or False"),
        (lambda: privacy.one_sided_loss("1", [1.0], 1.0, 1.0), TypeError, "f_x must be real"),
    ],
)
def test_rules_are_stated_before_anything_overflows(call, error, message):
    with pytest.raises(error, match=f"^{message}"):
        call()


def test_one_sided_loss_beyond_float64_is_infinite():
    assert privacy.one_sided_loss([0.0], [1e300], 1e300, 1.0) == math.inf


@pytest.mark.parametrize("given", [np.array([]), [], None, "bins"])
def test_cdf_options_rejects_what_is_no_dict(given):
    with pytest.raises(TypeError, match="given must be a dict of options, got"):
        privacy.cdf.options_of("binary_tree", given)
