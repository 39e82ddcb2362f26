"""Optimal composition: Lemma 12 against mpmath and enumeration, and its inverses."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from conftest import enumerated_delta
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import binom

from dpq_fast import privacy
from dpq_fast.privacy import (
    bounded_range,
)


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
@settings(max_examples=25, deadline=None)
def test_bounded_range_delta_matches_lemma_12_anywhere(each, m, share):
    epsilon = each * m * share
    expected = lemma_12(each, m, epsilon)
    if expected > 1e-300:
        assert abs(privacy.bounded_range_delta(each, m, epsilon) / expected - 1) < 1e-10


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("each", "m", "epsilon"), [(1.0, 3, 0.8068356602228131), (2.0, 5, 4.834312034716985)]
)
def test_bounded_range_delta_of_the_largest_of_two_that_are_nearly_equal(
    each, m, epsilon, monkeypatch
):
    """The sum of l = 0 is larger than that of l = 1 by 5e-10, and is its own bound."""
    monkeypatch.setattr(bounded_range, "_BLOCK", 1)
    expected = lemma_12(each, m, epsilon)
    assert abs(privacy.bounded_range_delta(each, m, epsilon) / expected - 1) < 1e-10


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


@pytest.mark.parametrize(
    ("m", "epsilon", "delta"),
    [
        (1, 1.0, 1e-2),
        (1, 5.0, 1e-2),
        (2, 0.5, 1e-3),
        (2, 2.0, 1e-2),
        (1, 0.0004617562473563591, 2.115571949337382e-46),  # the search ends far beyond
        (3, 0.5, 1e-2),
        (3, 1.0, 1e-4),
        (5, 1.0, 1e-3),
        (5, 1e-2, 1e-9),
    ],
)
def test_bounded_range_inverses_are_rounded_against_the_caller(m, epsilon, delta):
    """In 60 digits, delta is not exceeded by so much as one rounding error."""
    assert lemma_12(privacy.bounded_range_epsilon_each(m, epsilon, delta), m, epsilon) <= delta
    assert lemma_12(epsilon, m, privacy.bounded_range_epsilon(m, epsilon, delta)) <= delta


@pytest.mark.parametrize(
    ("m", "each"), [(5, 1e-9), (8, 1e-9), (3, 1e-200), (2, 1e-3), (7, 1e-3), (4, 2.0)]
)
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.06833467712261856, 0.7642959024442677])
def test_bounded_range_inverses_are_tight_at_any_size(m, each, share):
    epsilon = share * m * each
    delta = privacy.bounded_range_delta(each, m, epsilon)
    assert privacy.bounded_range_epsilon(m, each, delta) == pytest.approx(epsilon, rel=1e-10)
    assert privacy.bounded_range_epsilon_each(m, epsilon, delta) == pytest.approx(each, rel=1e-10)


def test_what_is_kept_of_binomials_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        bounded_range._log_binomials(5)[0] = 1.0


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


def test_a_large_total_needs_no_delta():
    assert privacy.bounded_range_delta(1.0, 3, 1e300) == 0.0


def test_optimal_composition_takes_its_ends():
    assert bounded_range._check_composed(2**15) == 2**15
    for end in (1e-290, 1e290):
        assert bounded_range._check_composable(end) == end
    for beyond in (0.9e-290, 1.1e290):
        with pytest.raises(ValueError, match="must lie between 1e-290"):
            bounded_range._check_composable(beyond)


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
    ],
)
def test_bounded_range_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()
