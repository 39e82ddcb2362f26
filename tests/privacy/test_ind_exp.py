"""IndExp: its sensitivities by enumeration, its rates and guarantee by hand."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from conftest import BOTH, VALUES, neighbor_pairs, range_of, range_rho
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast import privacy
from dpq_fast.privacy import (
    Guarantee,
    guarantee,
)
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of


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
def test_ind_exp_add_remove_sensitivities_never_exceed_swap(q):
    levels = Levels(q).values
    add_remove = privacy.ind_exp.sensitivities(levels, relation_of("add-remove"))
    assert np.all(add_remove <= privacy.ind_exp.sensitivities(levels, relation_of("swap")))


def test_ind_exp_rates_known_values():
    def rates(**form):
        return privacy.ind_exp.calibrate([0.25, 0.5], **form).rates

    assert rates(epsilon=1.0).tolist() == [0.25, 0.25]
    # epsilon / 2 each; sensitivities 3/4 and 1/2
    expected = [0.5 / 1.5, 0.5 / 1.0]
    assert rates(epsilon=1.0, neighbors="add-remove") == pytest.approx(expected, rel=1e-15)
    assert rates(epsilon=1.0, max_contributions=2).tolist() == [0.125, 0.125]
    # half of rho for each, whose range is twice the rate
    assert rates(rho=2.0 * range_rho(2.0)) == pytest.approx([1.0, 1.0], rel=1e-12)


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


def test_guarantee_ind_exp():
    q = [0.5, 0.25, 0.25, 0.75]  # three distinct levels
    pure = guarantee("ind_exp", q=q, epsilon=3.0)
    assert pure == Guarantee(3.0, 0.0, pure.rho, 3.0, "swap", "basic")
    assert pure.rho == pytest.approx(3 * range_rho(1.0), rel=1e-12)
    assert guarantee("ind_exp", q=Levels(q), epsilon=3.0) == pure
    each = privacy.bounded_range_epsilon_each(3, 3.0, 1e-6)
    mixed = guarantee("ind_exp", q=q, epsilon=3.0, delta=1e-6, neighbors="add-remove")
    assert mixed == Guarantee(3.0, 1e-6, mixed.rho, 3 * each, "add-remove", "bounded-range")
    assert mixed.rho == pytest.approx(3 * range_rho(each), rel=1e-12)
    zcdp = guarantee("ind_exp", q=q, rho=1.5)
    assert zcdp == Guarantee(zcdp.epsilon, 0.0, 1.5, zcdp.epsilon, "swap", "zcdp")
    assert zcdp.epsilon == pytest.approx(3 * range_of(0.5), rel=1e-12)
    assert guarantee("ind_exp", q=0.5, epsilon=1.0).composition == ""
    single = guarantee("ind_exp", q=0.5, rho=0.5)
    assert single == guarantee("joint_exp", q=0.5, rho=0.5)


def test_range_of_ind_exp_without_delta_is_epsilon_itself():
    assert 6 * (0.9 / 6) != 0.9
    made = guarantee("ind_exp", q=np.arange(1, 7) / 7, epsilon=0.9)
    assert (made.epsilon, made.bounded_range) == (0.9, 0.9)


def test_ind_exp_takes_the_least_rate():
    q = [0.5, 1.0]  # of the sensitivities 1/2 and 1 under "add-remove"
    form = dict(neighbors="add-remove")
    assert privacy.ind_exp.calibrate(q, epsilon=4e-305, **form).rates.min() == 1e-305
    with pytest.raises(ValueError, match="must leave at least 1e-305 for each step"):
        privacy.ind_exp.calibrate(q, epsilon=3e-305, **form)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: privacy.ind_exp.calibrate([0.2, 0.5], delta=0.1, rho=1.0),
            "^delta must be 0 with rho, got 0.1$",
        ),
        (
            lambda: privacy.ind_exp.calibrate(0.5, epsilon=1.0, neighbors="both"),
            "^neighbors must be one of",
        ),
    ],
)
def test_ind_exp_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()
