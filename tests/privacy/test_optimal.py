"""Optimal composition of unequal releases, against brute force and a peer."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from dpq_fast import privacy
from dpq_fast.privacy import Guarantee, compose, optimal
from dpq_fast.privacy.optimal import optimal_epsilon

Parts = list[tuple[float, float]]


def least_delta(parts: Parts, epsilon: float) -> mp.mpf:
    """The delta of the worst releases, all outcomes one by one, with 30 digits."""
    with mp.workdps(30):
        total = mp.mpf(0)
        for signs in itertools.product((1, -1), repeat=len(parts)):
            p = q = mp.mpf(1)
            for sign, (own, _) in zip(signs, parts, strict=True):
                p /= 1 + mp.exp(-sign * mp.mpf(own))
                q /= 1 + mp.exp(sign * mp.mpf(own))
            total += max(p - mp.exp(mp.mpf(epsilon)) * q, 0)
        safe = mp.fprod(1 - mp.mpf(delta) for _, delta in parts)
        return 1 - safe * (1 - total)


PARTS = st.lists(
    st.tuples(
        st.one_of(st.floats(1e-3, 3.0), st.sampled_from([0.0, 0.1, 0.5, 1.0])),
        st.sampled_from([0.0, 0.0, 1e-9, 1e-5]),
    ),
    min_size=1,
    max_size=4,
)


@given(PARTS, st.floats(1e-12, 0.5))
@settings(deadline=None, max_examples=30)
def test_optimal_epsilon_is_the_least_and_no_less(parts, delta):
    found = optimal_epsilon(parts, delta)
    own = float(least_delta(parts, math.fsum(epsilon for epsilon, _ in parts)))
    if found is None:
        assert own * (1.0 + 1e-8) >= delta
        return
    assert least_delta(parts, found) <= delta
    # the waste of the grid is a step of 2^12 for each, and that of slack in delta little more
    less = found * (1.0 - 1e-3) - 1e-6
    if less > 0.0:
        assert least_delta(parts, less) >= delta * (1.0 - 1e-7)


@pytest.mark.parametrize(
    "parts", [[(0.5, 0.0)], [(0.5, 1e-6)], [(0.1, 1e-9)] * 4, [(2.0, 0.1)] * 3]
)
@pytest.mark.parametrize("more", [2.5e-9, 1e-8, 1e-6, 1e-3, 1.0])
def test_optimal_epsilon_spends_delta_to_nine_digits(parts, more):
    """However much of it the deltas of the releases leave; equal ones waste nothing."""
    with mp.workdps(30):
        certain = 1 - mp.fprod(1 - mp.mpf(own) for _, own in parts)
    delta = float(certain * (1 + mp.mpf(more))) or more * 1e-3
    found = optimal_epsilon(parts, delta)
    assert found is not None
    left = delta - certain
    # all of it is spent but a relative 1e-9 of each of the two
    slack = 1.1e-9 * (delta + certain)
    assert least_delta(parts, found) <= delta - slack / 1.2
    assert least_delta(parts, found * (1.0 - 1e-12)) >= delta - slack - 1e-10 * left
    if certain:
        assert optimal_epsilon(parts, float(certain * (1 + 1.5e-9))) is None


@pytest.mark.parametrize("delta", [1e-15, 1e-12, 1e-6])
def test_optimal_epsilon_is_no_less_where_losses_and_epsilon_are_close(delta):
    """There the difference of the two is rounding, of which the answer takes account."""
    for parts in ([(1.0, 0.0)] * 2, [(300.0, 0.0), (1.0, 0.0)], [(1e-3, 0.0)]):
        assert least_delta(parts, optimal_epsilon(parts, delta)) <= delta


def test_optimal_epsilon_of_equal_releases_wastes_nothing():
    """Against the formula of [KOV15] for k equal ones, here at the epsilon of each i."""
    k, each = 30, 0.1
    with mp.workdps(40):
        for i in range(1, 10):
            epsilon = (k - 2 * i) * mp.mpf(each)
            delta = (
                mp.fsum(
                    mp.binomial(k, j)
                    * (mp.exp((k - j) * mp.mpf(each)) - mp.exp(epsilon + j * mp.mpf(each)))
                    for j in range(i)
                )
                / (1 + mp.exp(mp.mpf(each))) ** k
            )
            found = optimal_epsilon([(each, 0.0)] * k, float(delta))
            assert found == pytest.approx(float(epsilon), rel=1e-6)
            assert found >= epsilon


@pytest.mark.parametrize("k", [20, 100])
def test_optimal_epsilon_is_below_the_bound_of_hoeffding(k):
    """delta <= P(L > epsilon), where L is a sum of independent terms in [-epsilon_i, epsilon_i]."""
    rng = np.random.default_rng(k)
    epsilons = rng.uniform(0.01, 0.2, k)
    mean = float((epsilons * np.tanh(epsilons / 2.0)).sum())
    for delta in (1e-9, 1e-6, 1e-3):
        bound = mean + math.sqrt(2.0 * float((epsilons**2).sum()) * math.log(1.0 / delta))
        assert optimal_epsilon([(each, 0.0) for each in epsilons.tolist()], delta) < bound


@pytest.mark.parametrize("delta", [1e-8, 1e-4, 1e-2])
def test_optimal_epsilon_is_that_of_loss_distributions(delta):
    pld = pytest.importorskip("dp_accounting.pld", reason="extra 'accounting' not installed")
    parts = [(0.2, 1e-10), (0.5, 0.0), (0.05, 0.0), (0.31, 1e-10)] * 10
    whole = None
    for epsilon, own in parts:
        one = pld.privacy_loss_distribution.from_privacy_parameters(
            pld.common.DifferentialPrivacyParameters(epsilon, own),
            value_discretization_interval=1e-3,
        )
        whole = one if whole is None else whole.compose(one)
    theirs = whole.get_epsilon_for_delta(delta)
    found = optimal_epsilon(parts, delta)
    # both are rounded up, theirs by up to a step for each release
    assert theirs - 1e-3 * len(parts) <= found <= theirs * (1.0 + 1e-4)


def test_optimal_epsilon_of_nothing_is_nothing():
    assert optimal_epsilon([(0.0, 0.0)] * 3, 1e-6) == 0.0
    assert optimal_epsilon([(0.5, 0.0)], 0.9) == 0.0
    assert optimal_epsilon([(0.0, 1e-7)] * 3, 1e-6) == 0.0


@pytest.mark.parametrize(
    ("parts", "delta"),
    [
        ([(1.0, 1e-6)], 1e-6),
        ([(1.0, 0.6)] * 2, 0.8),
        ([(1.0, math.nextafter(1.0, 0.0))] * 3, math.nextafter(1.0, 0.0)),
        ([(1.0, 0.0)], 1e-300),
        ([(1.0, 0.0)] * (optimal.MAX_PARTS + 1), 1e-6),
        ([(1.0 + i / 7_000, 0.0) for i in range(optimal.MAX_PARTS)] + [(1e-6, 0.0)], 1e-6),
    ],
)
def test_optimal_epsilon_says_where_there_is_none(parts, delta):
    assert optimal_epsilon(parts, delta) is None


@given(
    st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=20),
    st.integers(1, 50),
)
@settings(deadline=None, max_examples=40)
def test_grid_rounds_up(epsilons, count):
    given_ = Counter(dict.fromkeys(epsilons, count))
    grid = optimal._grid(given_)
    assert grid is not None
    step, numbers = grid
    assert numbers.total() == given_.total()
    assert sum(numbers.elements()) <= optimal.MAX_STEPS
    # one by one: the k-th largest of the steps is at least the k-th largest epsilon
    largest = sorted(given_.elements(), reverse=True)
    for number, epsilon in zip(sorted(numbers.elements(), reverse=True), largest, strict=True):
        assert number * step >= epsilon


def test_grid_of_multiples_wastes_nothing():
    step, numbers = optimal._grid(Counter([0.1, 0.2, 0.3, 0.3, 0.5]))
    assert step == pytest.approx(0.1, rel=1e-14)
    assert numbers == {1: 1, 2: 1, 3: 2, 5: 1}
    for count in (30, optimal.MAX_PARTS):
        assert optimal._grid(Counter({0.1: count}))[1] == {1: count}  # the coarsest one


def test_compose_takes_optimal_composition_where_it_saves():
    parts = [Guarantee(0.1 + i / 100) for i in range(40)]
    total = compose(parts, delta=1e-6)
    assert (total.composition, total.delta) == ("optimal", 1e-6)
    zcdp = privacy.zcdp_epsilon(total.rho, 1e-6)
    assert total.epsilon < 0.97 * zcdp
    assert total.epsilon == optimal_epsilon([(part.epsilon, 0.0) for part in parts], 1e-6)
    # parts without a rho
    parts = [Guarantee(0.2, 1e-9)] * 60
    assert compose(parts, delta=1e-6).epsilon < 0.65 * 12.0
    # a better rho, of a range
    ranges = [privacy.guarantee("joint_exp", epsilon=0.2)] * 60
    assert compose(ranges, delta=1e-6).composition == "zcdp"
    # a gain that is not worth a delta
    assert compose([Guarantee(1.0)] * 2, delta=1e-6).composition == "basic"
    # more than the sum of the deltas is not needed: 1 - 0.4^2 = 0.84
    total = compose([Guarantee(0.5, 0.6)] * 2, delta=0.9)
    assert (total.composition, total.delta) == ("optimal", 0.9)
