"""IndExp: its sensitivities by enumeration, its rates and guarantee by hand."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from conftest import BOTH, VALUES, neighbor_pairs, pure_rho, range_of, range_rho
from hypothesis import given
from hypothesis import strategies as st

import enumeration
from dpq_fast import privacy
from dpq_fast.privacy import (
    Guarantee,
    guarantee,
)
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of

# Values that records have, and some between and beside them.
OUTPUTS = (-0.5, 0, 0.5, 1, 1.5, 2, 2.5)


def utility(x, q, o):
    return enumeration.depth([value for value in x if value is not None], q, o)


def single_change(relation, q, values, outputs=OUTPUTS):
    return max(
        abs(utility(x, q, o) - utility(y, q, o))
        for x, y in neighbor_pairs(relation, range(1, 6), values)
        for o in outputs
    )


@pytest.mark.slow
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
    # as much between values, where it is the distance of ranks
    assert single_change("add-remove", q, VALUES[:3], OUTPUTS[::2]) == add_remove


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


@cache
def losses(relation, k, selection):
    """ln P(o) - ln P'(o) at all points, for each two sets of records that a person sets apart."""
    q, points, epsilon = 0.25, 4, 1.5
    person = dict(neighbors=relation, max_contributions=k)
    made = privacy.ind_exp.calibrate(q, epsilon=epsilon, selection=selection, **person)
    (rate,) = made.rates
    select = getattr(enumeration, made.selection.replace("-", "_"))

    @cache
    def law(x):
        return np.array(select([rate * float(utility(x, q, o)) for o in range(points)]))

    found = []
    for n in range(k, 6):
        for x in itertools.combinations_with_replacement(range(points - 1), n):
            for theirs in set(itertools.combinations(x, k)):
                base = list(x)
                for value in theirs:
                    base.remove(value)
                others = [()]
                if relation == "swap":
                    others = itertools.combinations_with_replacement(range(points - 1), k)
                for new in others:
                    found.append(law(x) - law(tuple(sorted([*base, *new]))))
    return np.array(found), epsilon


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("k", [1, 2])
def test_ind_exp_release_has_the_range_claimed_per_person(relation, k):
    found, epsilon = losses(relation, k, "exponential")
    assert epsilon * 0.5 < np.ptp(found, axis=1).max() <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("k", [1, 2])
def test_ind_exp_permute_and_flip_has_the_epsilon_claimed_per_person(relation, k):
    found, epsilon = losses(relation, k, None)
    assert epsilon * 0.5 < np.abs(found).max() <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_range_of_permute_and_flip_is_larger_than_epsilon(epsilon):
    """Two outputs of utilities 1/2 and -1/2 that change places, at c = epsilon / 2."""
    first = np.array(enumeration.permute_and_flip([epsilon / 4, -epsilon / 4]))
    loss = first - first[::-1]
    assert np.abs(loss).max() <= epsilon
    expected = 2.0 * math.log(2.0 * math.exp(epsilon / 2.0) - 1.0)
    assert np.ptp(loss) == pytest.approx(expected, rel=1e-12)
    assert epsilon < np.ptp(loss) <= 2.0 * epsilon
    if epsilon == 0.1:
        assert np.ptp(loss) > 1.9 * epsilon


@given(
    st.lists(st.floats(-30.0, 0.0), min_size=2, max_size=6),
    st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6),
    st.floats(0.01, 5.0),
)
def test_permute_and_flip_of_any_scores_keeps_epsilon(scores, moves, epsilon):
    """Each score moves by at most half of epsilon."""
    moved = [a + epsilon / 2.0 * b for a, b in zip(scores, moves, strict=False)]
    first, other = map(np.array, map(enumeration.permute_and_flip, (scores, moved)))
    assert np.abs(first - other).max() <= epsilon * (1 + 1e-12) + 1e-12


@given(st.lists(st.floats(-30.0, 0.0), min_size=2, max_size=6))
def test_permute_and_flip_never_has_less_utility(scores):
    """[MS20], here by enumeration."""
    means = [
        math.fsum(score * math.exp(p) for score, p in zip(scores, select(scores), strict=True))
        for select in (enumeration.permute_and_flip, enumeration.exponential)
    ]
    assert means[0] >= means[1] - 1e-12


def test_guarantee_ind_exp():
    q = [0.5, 0.25, 0.25, 0.75]  # three distinct levels
    pure = guarantee("ind_exp", q=q, epsilon=3.0)
    assert pure == Guarantee(3.0, 0.0, pure.rho, None, "swap", "permute-and-flip + basic")
    assert pure.rho == pytest.approx(3 * pure_rho(1.0), rel=1e-12)
    assert guarantee("ind_exp", q=Levels(q), epsilon=3.0) == pure
    assert guarantee("ind_exp", q=q, epsilon=3.0, selection="permute-and-flip") == pure
    ranged = guarantee("ind_exp", q=q, epsilon=3.0, selection="exponential")
    assert ranged == Guarantee(3.0, 0.0, ranged.rho, 3.0, "swap", "basic")
    assert ranged.rho == pytest.approx(3 * range_rho(1.0), rel=1e-12)
    each = privacy.bounded_range_epsilon_each(3, 3.0, 1e-6)
    mixed = guarantee("ind_exp", q=q, epsilon=3.0, delta=1e-6, neighbors="add-remove")
    assert mixed == Guarantee(3.0, 1e-6, mixed.rho, 3 * each, "add-remove", "bounded-range")
    assert mixed.rho == pytest.approx(3 * range_rho(each), rel=1e-12)
    zcdp = guarantee("ind_exp", q=q, rho=1.5)
    assert zcdp == Guarantee(zcdp.epsilon, 0.0, 1.5, zcdp.epsilon, "swap", "zcdp")
    assert zcdp.epsilon == pytest.approx(3 * range_of(0.5), rel=1e-12)
    assert guarantee("ind_exp", q=0.5, epsilon=1.0).composition == "permute-and-flip"
    one = guarantee("ind_exp", q=0.5, epsilon=1.0, selection="exponential")
    assert one == guarantee("joint_exp", q=0.5, epsilon=1.0)
    for form in (dict(epsilon=3.0, delta=1e-6, neighbors="add-remove"), dict(rho=1.5)):
        given = guarantee("ind_exp", q=q, selection="exponential", **form)
        assert given == guarantee("ind_exp", q=q, **form)
    single = guarantee("ind_exp", q=0.5, rho=0.5)
    assert single == guarantee("joint_exp", q=0.5, rho=0.5)


def test_range_of_ind_exp_without_delta_is_epsilon_itself():
    assert 6 * (0.9 / 6) != 0.9
    made = guarantee("ind_exp", q=np.arange(1, 7) / 7, epsilon=0.9, selection="exponential")
    assert (made.epsilon, made.bounded_range) == (0.9, 0.9)


def test_ind_exp_selects_by_the_budget():
    calibrate, q = privacy.ind_exp.calibrate, [0.25, 0.5]
    for budget, selection in (
        (dict(epsilon=1.0), "permute-and-flip"),
        (dict(epsilon=1.0, delta=1e-9), "exponential"),
        (dict(rho=1.0), "exponential"),
    ):
        assert calibrate(q, **budget).selection == selection
    # both spend the same
    rates = [
        calibrate(q, epsilon=1.0, neighbors="add-remove", selection=selection).rates.tolist()
        for selection in privacy.ind_exp.SELECTIONS
    ]
    assert rates[0] == rates[1]


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
        (
            lambda: privacy.ind_exp.calibrate(0.5, epsilon=1.0, selection="gumbel"),
            "^selection must be one of 'permute-and-flip', 'exponential', got 'gumbel'$",
        ),
        (
            lambda: privacy.ind_exp.calibrate(0.5, rho=1.0, selection="permute-and-flip"),
            "^selection must be 'exponential' with delta or rho, got 'permute-and-flip'$",
        ),
        (
            lambda: guarantee(
                "ind_exp", q=0.5, epsilon=1.0, delta=0.1, selection="permute-and-flip"
            ),
            "^selection must be 'exponential' with delta or rho, got 'permute-and-flip'$",
        ),
    ],
)
def test_ind_exp_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()
