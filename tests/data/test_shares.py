"""Shares of lattice points, against definitions that go point by point."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast.data.lattice import Lattice, is_decimal
from dpq_fast.data.prior import TOTAL, Masses
from dpq_fast.data.shares import (
    DECADES,
    DIGITS,
    EVEN,
    ROUND,
    Learning,
    Shares,
    learned,
    no_scale,
    round_between,
    round_numbers,
    scale_free,
)
from dpq_fast.mechanisms.two_stage import FOR_ANSWERS, FOR_TREES

HUGE = 2**50
LEARNINGS = {
    "trees": FOR_TREES,
    "answers": FOR_ANSWERS,
    "plain": Learning(0.05, 0.03, 0.2, 0.6, 2.0),
}


def by_point(shares: Shares, points: int) -> np.ndarray:
    """The share of each of a few points."""
    below = np.interp(np.arange(points + 1), shares.knots, shares.below)
    return np.diff(below)


def spread_evenly(below: dict[int, float], points: int) -> np.ndarray:
    """The share of each point, where so much lies below some of them and is even between."""
    share = np.zeros(points)
    for left, right in pairwise(sorted(below)):
        for point in range(left, right):
            share[point] = (below[right] - below[left]) / (right - left)
    return share / share.sum()


def distances(most: float, unit: float = 1.0) -> list[int]:
    """0, and the powers of the root of 2 times a unit, to whole numbers, up to `most`."""
    found, k = {0}, 0
    while True:
        found.add(round(min(unit * 2.0 ** (k / 2), most)))
        if most <= 0 or unit * 2.0 ** (k / 2) >= most:
            return sorted(found)
        k += 1


def assert_is_a_distribution(shares: Shares, first: int, end: int) -> None:
    assert shares.knots.dtype == np.int64
    assert (np.diff(shares.knots) > 0).all() and (np.diff(shares.below) >= 0.0).all()
    assert shares.below[0] == 0.0 and shares.below[-1] == 1.0
    assert first <= shares.knots[0] and shares.knots[-1] <= end


@st.composite
def ranges(draw: st.DrawFn, most: int = 40) -> tuple[int, int, int]:
    """First and end of a range of points, and one of them."""
    first = draw(st.integers(0, most))
    end = draw(st.integers(first + 1, first + most))
    return first, end, draw(st.integers(first, end - 1))


# Distributions of one kind


@given(ranges())
def test_even(drawn):
    first, end, _ = drawn
    shares = Shares.even(first, end)
    assert_is_a_distribution(shares, first, end)
    expected = [1.0 / (end - first) if first <= point else 0.0 for point in range(end)]
    np.testing.assert_allclose(by_point(shares, end), expected, rtol=1e-12, atol=1e-15)


@given(ranges())
def test_around(drawn):
    """Each has what asinh of the distance grows by, evenly between powers of the root of 2."""
    first, end, center = drawn
    shares = Shares.around(center, first, end)
    assert_is_a_distribution(shares, first, end)
    far = distances(max(end - center, center - first + 1))
    knots = {center - d for d in far} | {center + 1 + d for d in far} | {first, end}
    below = {k: math.asinh(k - center - 0.5) for k in knots if first <= k <= end}
    found = by_point(shares, end)
    np.testing.assert_allclose(found, spread_evenly(below, end), rtol=1e-9, atol=1e-15)
    # the nearer, the more
    assert (np.diff(found[center:]) <= 1e-15).all()
    assert (np.diff(found[first : center + 1]) >= -1e-15).all()


@given(
    ranges(), st.booleans(), st.sampled_from([0.3, 1.0, 2.5, 7.0, 100.0]), st.sampled_from([2, 3])
)
def test_beyond(drawn, upward, scale, power):
    first, end, _ = drawn
    edge, far = (first, end) if upward else (end, first)
    shares = Shares.beyond(edge, far, scale, float(power))
    assert_is_a_distribution(shares, first, end)
    length = end - first
    out = {d for d in distances(length, scale) if d <= length} | {length}
    beyond = {d: (1.0 + d / scale) ** -power for d in out}
    below = {(first + d if upward else end - d): (-b if upward else b) for d, b in beyond.items()}
    found = by_point(shares, end)
    np.testing.assert_allclose(found, spread_evenly(below, end), rtol=1e-9, atol=1e-15)
    falling = np.diff(found[first:]) if upward else -np.diff(found[first:])
    assert (falling <= 1e-15).all()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12, unique=True).map(sorted))
def test_at(points):
    shares = Shares.at(np.array(points))
    assert_is_a_distribution(shares, points[0], points[-1] + 1)
    expected = [1.0 / len(points) if point in points else 0.0 for point in range(31)]
    np.testing.assert_allclose(by_point(shares, 31), expected, rtol=1e-12, atol=1e-15)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.1, 1.0, 3.5]), ranges(15)), min_size=1, max_size=5
    ).filter(lambda parts: any(weight for weight, _ in parts))
)
def test_mixed(drawn):
    parts = [(weight, Shares.around(c, first, end)) for weight, (first, end, c) in drawn]
    shares = Shares.mixed(parts)
    assert_is_a_distribution(shares, 0, 30)
    total = sum(weight for weight, _ in parts)
    expected = sum(weight * by_point(each, 30) for weight, each in parts) / total
    np.testing.assert_allclose(by_point(shares, 30), expected, rtol=1e-9, atol=1e-15)


# As numbers of fine points


def assert_masses_are_those_of(shares: Shares, masses: Masses, points: int) -> None:
    """About 2^53 in all, one for each point, and the rest by shares."""
    assert masses.points == points
    assert (1.0 - 2.0**-30) * TOTAL - 2 * points <= masses.total <= TOTAL
    assert masses.each.min() >= 1
    knots = np.unique(np.concatenate(([0, points], shares.knots)))
    expected = np.interp(knots, shares.knots, shares.below) * (TOTAL - points) + knots
    np.testing.assert_allclose(masses.below(knots), expected, rtol=1e-9, atol=2.0 * points)


@given(ranges(), st.integers(0, 30))
def test_masses_are_shares_of_what_there_is(drawn, more):
    first, end, center = drawn
    points = end + more
    shares = Shares.mixed([(1, Shares.around(center, first, end)), (2, Shares.even(first, end))])
    masses = shares.masses(points)
    assert_masses_are_those_of(shares, masses, points)
    each = masses.of(np.arange(points))
    spared = Fraction(TOTAL - points)
    for point, share in enumerate(by_point(shares, points).tolist()):
        assert each[point] == pytest.approx(1 + float(Fraction(share) * spared), rel=1e-9)
    again = Shares.of_masses(masses)
    assert_is_a_distribution(again, 0, points)
    np.testing.assert_allclose(by_point(again, points), each / masses.total, rtol=1e-9, atol=1e-15)


def test_masses_may_leave_out_points_at_both_ends():
    masses = Shares.even(3, 5).masses(8)
    assert masses.of(np.arange(8)).tolist()[:3] == [1, 1, 1]
    assert masses.of(np.arange(8)).tolist()[5:] == [1, 1, 1]
    assert masses.of(np.array([3])) == masses.of(np.array([4]))


# The scale-free prior


def digits_of(number: int) -> int:
    """Significant digits of a whole number."""
    return len(str(abs(number)).strip("0"))


@pytest.mark.parametrize(
    "points, first",
    [
        (2, 0),
        (2, -1),
        (11, 0),
        (10, 1),
        (1_000, 0),
        (1_001, -500),
        (5_000, 777),
        (120_000, -20_000),
        (3, 123_456),
        (9, 10),
        (400, -1_400),
    ],
)
def test_round_numbers(points, first):
    most = max(abs(first), abs(first + points - 1))
    decades = range(max(len(str(most)) - DECADES, 0), len(str(most)))
    expected = [
        point
        for point, number in enumerate(range(first, first + points))
        if digits_of(number) <= DIGITS and (number == 0 or len(str(abs(number))) - 1 in decades)
    ]
    found = round_numbers(points, first)
    assert found.dtype == np.int64
    assert found.tolist() == expected


@pytest.mark.parametrize("points", [2, 3, 10, 101, 1_000])
@pytest.mark.parametrize("first", [-2_000, -1_000, -50, -1, 0, 1, 13, 4_321])
@pytest.mark.parametrize("decimal", [True, False])
def test_scale_free(points, first, decimal):
    """Its three parts, point by point; without round numbers, the other two."""
    center = min(max(-first, 0), points - 1)
    even = np.full(points, 1.0 / points)
    around = by_point(Shares.around(center, 0, points), points)
    found = round_numbers(points, first)
    expected = EVEN * even + (1.0 - EVEN - ROUND) * around
    assert (
        np.abs(by_point(no_scale(points, first), points) - expected / (1.0 - ROUND)).max() < 1e-12
    )
    if decimal and found.size:
        expected[found] += ROUND / found.size
    else:
        expected /= 1.0 - ROUND
    shares = scale_free(points, first, decimal)
    assert_is_a_distribution(shares, 0, points)
    np.testing.assert_allclose(by_point(shares, points), expected, rtol=1e-9, atol=1e-12)
    assert_masses_are_those_of(shares, shares.masses(points), points)


@pytest.mark.parametrize("bounds", [(0.0, 1e6), (-1e9, 1e3), (5.0, 8.0), (-3e-5, -1e-5)])
def test_lattices_of_a_scale_free_prior(bounds):
    _, lattice = Lattice.between(bounds, None, None, "scale-free")
    assert lattice is not None and lattice.masses is not None
    assert is_decimal(lattice.step)
    expected = scale_free(lattice.points, lattice.first, True)
    assert lattice.masses == expected.masses(lattice.points)
    assert lattice.weighed(lattice.scale_free) == lattice


def test_each_factor_of_two_has_as_much_as_the_next():
    points = 2**40
    shares, powers = no_scale(points, 0), 2.0 ** np.arange(6, 40)
    below = np.interp(1.0 + powers, shares.knots, shares.below)
    rest = np.diff(below) - EVEN / (1.0 - ROUND) * np.diff(powers) / points
    np.testing.assert_allclose(rest, rest[0], rtol=0.02)


@pytest.mark.parametrize("first", [-(2**49), 0, 10**9, -HUGE])
def test_scale_free_of_many_points(first):
    shares = scale_free(HUGE, first, True)
    assert_is_a_distribution(shares, 0, HUGE)
    assert shares.knots.size < 10_000
    assert_masses_are_those_of(shares, shares.masses(HUGE), HUGE)


# What a pilot's answers make


@st.composite
def pilots(draw: st.DrawFn) -> tuple[list[int], list[float], int]:
    """Ascending answers, with ties and at ends, their levels, and the number of points."""
    points = draw(st.integers(2, 60))
    q = draw(st.sampled_from([(0.25, 0.75), (0.2, 0.5, 0.8), (0.1, 0.3, 0.5, 0.7, 0.9)]))
    place = st.one_of(st.sampled_from([0, points - 1]), st.integers(0, points - 1))
    return sorted(draw(place) for _ in q), list(q), points


def learned_by_point(
    answers: list[int], q: list[float], base: np.ndarray, how: Learning
) -> np.ndarray:
    """The prior by its definition."""
    points, span = base.size, max(answers[-1] - answers[0], 1)
    distinct = sorted(set(answers))
    share = how.base * base
    for answer in distinct:
        share[answer] += how.answer
    body = 1.0 - how.base - how.answer * len(distinct)
    for (low, high), (below, upto) in zip(pairwise(answers), pairwise(q), strict=True):
        mass = body * (upto - below)
        if high - low <= 1:
            for point in {low, high}:
                share[point] += mass / len({low, high})
            continue
        share[low : high + 1] += mass * (1.0 - how.beside) / (high - low + 1)
        for center in (low, high):
            around = by_point(Shares.around(center, low, high + 1), points)
            share += mass * how.beside / 2.0 * around
    # as dense as between the two answers next to it, and by the scale of all
    first = (q[0], answers[0], 0, answers[1] - answers[0], q[1] - q[0])
    last = (1.0 - q[-1], answers[-1] + 1, points, answers[-1] - answers[-2], q[-1] - q[-2])
    for mass, edge, end, apart, within in (first, last):
        if edge == end:
            share += body * mass * base
            continue
        for scale in (max(apart * mass / within, 1.0), how.reach * span):
            beyond = by_point(Shares.beyond(edge, end, scale, how.power), points)
            share += body * mass / 2.0 * beyond
    return share


@given(pilots(), st.sampled_from(sorted(LEARNINGS)), st.booleans())
def test_learned(drawn, name, even):
    answers, q, points = drawn
    how, base = LEARNINGS[name], Shares.even(0, points) if even else no_scale(points, 0)
    shares = learned(np.array(answers), np.array(q), base, points, how)
    assert_is_a_distribution(shares, 0, points)
    expected = learned_by_point(answers, q, by_point(base, points), how)
    assert expected.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(by_point(shares, points), expected, rtol=1e-9, atol=1e-13)
    assert_masses_are_those_of(shares, shares.masses(points), points)


@given(pilots(), st.sampled_from(sorted(LEARNINGS)), st.floats(0.0, 0.3), st.data())
def test_learned_with_ties(drawn, name, tied, data):
    """A part is at some points, and what lies beside the answers and the base is less by it."""
    answers, q, points = drawn
    how, base = LEARNINGS[name], Shares.even(0, points)
    at = data.draw(st.lists(st.integers(0, points - 1), min_size=1, max_size=6, unique=True))
    ties = Shares.at(np.array(sorted(at)))
    shares = learned(np.array(answers), np.array(q), base, points, how, ties, tied)
    assert_is_a_distribution(shares, 0, points)
    plain = learned_by_point(answers, q, by_point(base, points), how)
    kept = how.base * by_point(base, points)
    for answer in set(answers):
        kept[answer] += how.answer
    expected = kept + (1.0 - tied) * (plain - kept) + tied * by_point(ties, points)
    # what is at ties is part of all, and what lies beside is that much of the body less
    expected /= expected.sum()
    np.testing.assert_allclose(by_point(shares, points), expected, rtol=1e-9, atol=1e-13)


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**6), st.integers(1, 60))
def test_round_numbers_between(low, span, most):
    """The finest of 1, 2, 5, 10, ... whose multiples are not too many."""
    found = round_between(low, low + span, most).tolist()
    units = [digit * 10**k for k in range(8) for digit in (1, 2, 5)]
    fitting = [u for u in units if (low + span) // u - -(-low // u) + 1 <= most]
    unit = fitting[0]
    assert found == [k for k in range(-(-low // unit) * unit, low + span + 1, unit)]


@given(pilots(), st.sampled_from(sorted(LEARNINGS)))
def test_between_answers_is_what_their_levels_say(drawn, name):
    """But for the parts at answers and of the base, and for answers that share a point."""
    answers, q, points = drawn
    how = LEARNINGS[name]
    base = Shares.even(0, points)
    shares = learned(np.array(answers), np.array(q), base, points, how)
    for (low, high), (below, upto) in zip(pairwise(answers), pairwise(q), strict=True):
        inside = by_point(shares, points)[low : high + 1].sum()
        least = (1.0 - how.base - how.answer * len(set(answers))) * (upto - below)
        assert inside >= least - 1e-9


@pytest.mark.parametrize("points", [2, 3, 100, HUGE])
@pytest.mark.parametrize("at", ["low", "high", "inside"])
@pytest.mark.parametrize("name", LEARNINGS)
def test_learned_of_one_number(points, at, name):
    """What is between the levels of all three is at the one answer."""
    answer = dict(low=0, high=points - 1, inside=points // 2)[at]
    q = np.array([0.2, 0.5, 0.8])
    base = no_scale(points, 0)
    shares = learned(np.full(3, answer), q, base, points, LEARNINGS[name])
    assert_is_a_distribution(shares, 0, points)
    masses = shares.masses(points)
    assert_masses_are_those_of(shares, masses, points)
    assert masses.of(np.array([answer]))[0] >= 0.5 * masses.total


@pytest.mark.parametrize(
    "answers",
    [[0, HUGE - 1], [0, 1], [HUGE - 2, HUGE - 1], [10**6, 10**6], [12, 10**14], [2**49, 2**49 + 2]],
)
@pytest.mark.parametrize("name", LEARNINGS)
def test_learned_of_many_points(answers, name):
    base = no_scale(HUGE, -(10**10))
    shares = learned(np.array(answers), np.array([0.25, 0.75]), base, HUGE, LEARNINGS[name])
    assert_is_a_distribution(shares, 0, HUGE)
    assert_masses_are_those_of(shares, shares.masses(HUGE), HUGE)


@given(pilots())
def test_learned_is_a_function_of_what_was_released(drawn: Any) -> None:
    answers, q, points = drawn
    made = [
        learned(np.array(answers), np.array(q), no_scale(points, 3), points, FOR_TREES).masses(
            points
        )
        for _ in range(2)
    ]
    assert made[0] == made[1]
