"""Gaussian noise on smooth sensitivity: exact deltas, and what covers all neighbors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpq_fast.privacy import cdf, smooth_gaussian

BUDGETS = [(1e-3, 1e-2), (0.1, 1e-6), (1.0, 1e-3), (1.0, 1e-6), (4.0, 1e-9)]


def hockey_stick(tau, shift, epsilon, wider_first):
    """sup_S P(S) - e^epsilon Q(S), by the trapezoidal rule."""
    p, q = (shift, math.exp(tau)), (0.0, 1.0)
    if not wider_first:
        p, q = (shift, 1.0), (0.0, math.exp(tau))
    x = np.linspace(-14.0 * math.exp(tau), 14.0 * math.exp(tau) + shift, 2_000_001)
    gain = stats.norm.pdf(x, *p) - math.exp(epsilon) * stats.norm.pdf(x, *q)
    return float(np.maximum(gain, 0.0).sum() * (x[1] - x[0]))


@pytest.mark.slow
@pytest.mark.parametrize("wider_first", [True, False])
@pytest.mark.parametrize(
    ("tau", "shift", "epsilon"),
    [(0.02, 0.15, 1.0), (0.3, 0.0, 0.2), (0.3, 0.5, 0.2), (0.0, 0.4, 0.1), (0.6, 2.0, 3.0)],
)
def test_delta_is_that_of_a_quadrature(tau, shift, epsilon, wider_first):
    found = smooth_gaussian.delta_at(tau, shift, epsilon, wider_first)
    expected = hockey_stick(tau, shift, epsilon, wider_first)
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-12)


def test_delta_of_what_never_exceeds_epsilon_is_nothing():
    # a narrower law with a loss of at most tau
    assert smooth_gaussian.delta_at(0.3, 0.0, 0.31, False) == 0.0
    assert smooth_gaussian.delta_at(0.3, 0.0, 0.29, False) > 0.0


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_certified_scale_covers_all_neighbors_and_is_nearly_tight(epsilon, delta):
    beta, log_alpha = cdf.smooth_gaussian_scale(epsilon, delta)
    alpha, rng = math.exp(log_alpha), np.random.default_rng(4)
    pairs = [(beta, alpha), (0.0, alpha), (beta, 0.0)]
    pairs += [(beta * rng.random(), alpha * rng.random() ** 0.3) for _ in range(300)]
    pairs += [(beta * share, alpha) for share in np.geomspace(1e-4, 1.0, 100)]
    found = [
        smooth_gaussian.delta_at(tau, shift, epsilon, order)
        for tau, shift in pairs
        for order in (True, False)
    ]
    assert 0.85 * delta < max(found) <= delta
    assert smooth_gaussian.worst_delta(beta, alpha, epsilon) <= delta
    assert smooth_gaussian.worst_delta(beta, 1.001 * alpha, epsilon) > delta


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_certified_noise_is_less_than_that_of_the_lemma(epsilon, delta):
    """[NRS07]: S is at most 1 / 1.5 of itself for 1.5 times the smoothness, where gaps are even."""
    beta, log_alpha = cdf.smooth_gaussian_scale(epsilon, delta)
    log_inverse = math.log(2.0 / delta)
    assert beta == pytest.approx(1.5 * epsilon / (4.0 * (1.0 + log_inverse)), rel=1e-15)
    lemma = epsilon / (5.0 * math.sqrt(2.0 * log_inverse))
    assert math.exp(log_alpha) > 2.0 * lemma


@pytest.mark.parametrize(("epsilon", "delta"), [(0.99e-3, 1e-6), (4.0, 0.99e-200), (4.0, 1e-315)])
def test_scale_of_a_tiny_budget_is_that_of_the_lemma(epsilon, delta):
    """There the normal law has too few digits for an exact delta."""
    beta, log_alpha = cdf.smooth_gaussian_scale(epsilon, delta)
    log_inverse = math.log(2.0) - math.log(delta)
    assert beta == pytest.approx(epsilon / (4.0 * (1.0 + log_inverse)), rel=1e-15)
    lemma = epsilon / (5.0 * math.sqrt(2.0 * log_inverse))
    assert math.exp(log_alpha) == pytest.approx(lemma, rel=1e-12)


def test_no_scale_is_found_from_one_that_is_too_large():
    assert smooth_gaussian.largest_scale(0.02, 1.0, 1e-6, 10.0) is None
