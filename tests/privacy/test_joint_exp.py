"""JointExp: its sensitivity by enumeration, its rate and guarantee by hand."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction

import pytest
from conftest import BOTH, VALUES, neighbor_pairs, range_rho
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast import privacy
from dpq_fast.privacy import (
    Guarantee,
    guarantee,
)
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of


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

    @functools.cache
    def utilities(records):
        return [joint_utility(records, o, q) for o in tuples]

    return max(
        abs(one - other)
        for x, y in neighbor_pairs(relation, range(1, 6), values)
        for one, other in zip(utilities(tuple(x)), utilities(tuple(y)), strict=True)
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


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_joint_exp_add_remove_sensitivity_never_exceeds_swap(q):
    levels = Levels(q)
    add_remove = privacy.joint_exp.sensitivity(levels, relation_of("add-remove"))
    assert add_remove <= privacy.joint_exp.sensitivity(levels, relation_of("swap"))


def test_joint_exp_rate_known_values():
    def rate(**form):
        return privacy.joint_exp.calibrate([0.25, 0.5], **form).rate

    assert rate(epsilon=2.0) == 2.0 / (2 * 2)
    # the narrowest of the gaps 1/4, 1/4, 1/2 gives 2 (1 - 1/4) = 3/2
    assert rate(epsilon=3.0, neighbors="add-remove") == 3.0 / (2 * 1.5)
    # and of 1/4, 1/8, 3/8, 1/4 the second
    narrow = privacy.joint_exp.calibrate([0.25, 0.375, 0.75], epsilon=3.5, neighbors="add-remove")
    assert narrow.rate == 3.5 / (2 * 1.75)
    five = rate(epsilon=3.0, neighbors="add-remove", max_contributions=5)
    assert five == 3.0 / (2 * 1.5 * 5)


@pytest.mark.parametrize("neighbors", BOTH)
def test_joint_exp_rate_without_levels_is_right_for_any(neighbors):
    made = privacy.joint_exp.calibrate(epsilon=2.0, neighbors=neighbors)
    assert made.rate == 2.0 / (2 * 2)


def test_joint_exp_takes_the_least_rate():
    assert privacy.joint_exp.calibrate([0.5, 1.0], epsilon=4e-305).rate == 1e-305
    with pytest.raises(ValueError, match="must leave at least 1e-305 for each step"):
        privacy.joint_exp.calibrate([0.5, 1.0], epsilon=3.9e-305)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("k", [1, 3])
def test_guarantee_joint_exp(relation, k):
    made = guarantee("joint_exp", epsilon=2.0, delta=1e-6, neighbors=relation, max_contributions=k)
    assert made == Guarantee(2.0, 0.0, made.rho, 2.0, relation, "")
    assert made.rho == pytest.approx(range_rho(2.0), rel=1e-12)
    by_rho = guarantee("joint_exp", rho=made.rho, neighbors=relation)
    assert (by_rho.rho, by_rho.bounded_range) == (made.rho, pytest.approx(2.0, rel=1e-12))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: privacy.joint_exp.calibrate(0.5, epsilon=1.0, max_contributions=0),
            "^max_contributions must",
        ),
        (
            lambda: privacy.joint_exp.calibrate(0.5, epsilon=1.0, neighbors="both"),
            "^neighbors must be one of",
        ),
    ],
)
def test_joint_exp_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()
