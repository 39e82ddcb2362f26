"""CSmooth: the ends of its noise."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from dpq_fast import privacy


@pytest.mark.parametrize("t", [1e-100, 10.0])
def test_shape_of_takes_its_ends(t):
    assert math.isfinite(privacy.csmooth.shape_of(t, 1.0)[1])


def noise(shape):
    """ln of the standard deviation, but for a constant."""
    return shape[0] ** 2 - shape[1]


@pytest.mark.parametrize("epsilon", [1e-5, 1e-4, 0.3, 1.0, 6.0, 7.0, 500.0])
@pytest.mark.parametrize("ratio", [1e-50, 0.01, 0.15, 0.54, 0.75, 0.76, 3.0])
def test_shape_of_is_the_better_of_two(ratio, epsilon):
    t = ratio * epsilon
    closed = privacy.csmooth._unit_shape((t + 1e-13) / epsilon)
    closed = closed[0], closed[1] + math.log(epsilon)
    found = privacy.csmooth.shape_of(t, epsilon)
    if epsilon < 1e-4 or t > min(0.75 * min(epsilon, 6.0), 1.0):
        assert found == closed
    else:
        certified = privacy.csmooth._certified_shape(t + 1e-13, min(epsilon, 6.0))
        assert found == min(closed, certified, key=noise)
        if epsilon <= 6.0 and ratio > 0.1:
            assert noise(found) < noise(closed) - math.log(2.0 if ratio < 0.5 else 4.0)


def test_an_epsilon_that_rounding_would_spend_is_refused():
    assert math.isfinite(privacy.csmooth.shape_of(1e-10, 1e-10)[1])
    with pytest.raises(ValueError, match=r"^rho must leave an epsilon of at least 1e-10 for each"):
        privacy.csmooth.shape_of(1e-11, 0.99e-10)


def test_default_smoothness_known_values():
    smoothness = privacy.csmooth.default_smoothness
    assert (smoothness(0.5), smoothness(5.0)) == (0.27, math.log(2.0))


@given(st.floats(0.0, 1.0), st.one_of(st.integers(0, 50), st.integers(0, 2**53)))
def test_smooth_rank_moves_by_at_most_one(q, n):
    rank = privacy.csmooth.smooth_rank(q, n)
    assert rank == max(1, math.ceil(Fraction(q) * n - Fraction(1, 2**20)))
    assert privacy.csmooth.smooth_rank(q, n + 1) - rank in (0, 1)
    assert 1 <= rank <= max(n, 1)


def test_smooth_rank_known_values():
    assert [privacy.csmooth.smooth_rank(0.1, n) for n in (0, 1, 10, 11, 20)] == [1, 1, 1, 2, 2]
    assert [privacy.csmooth.smooth_rank(0.5, n) for n in (1, 2, 3, 4)] == [1, 1, 2, 2]
    assert (privacy.csmooth.smooth_rank(0.0, 9), privacy.csmooth.smooth_rank(1.0, 9)) == (1, 9)


@pytest.mark.parametrize("epsilon", [1e-8, 0.3, 1.0, 50.0])
@pytest.mark.parametrize("ratio", [1e-99, 1e-20, 1e-3, 0.2, 1.0, 9.99])
def test_csmooth_scale_solves_its_equations(ratio, epsilon):
    t = ratio * epsilon
    sigma, log_share = privacy.csmooth._unit_shape(t / epsilon)
    log_scale = math.log(epsilon) + log_share
    with mp.workdps(250):
        sigma, s, r = mp.mpf(sigma), mp.exp(mp.mpf(log_scale)), mp.mpf(epsilon) / mp.mpf(t)
        spent = mp.mpf(t) / sigma + mp.exp(1.5 * sigma**2) * s
        assert spent <= epsilon
        # all of it is used, but for rounding
        assert s >= mp.exp(-1.5 * sigma**2) * (epsilon - mp.mpf(t) / sigma) * (1 - 1e-11)
        residual = 5 * r * sigma**3 - 5 * sigma**2 - 1
        assert abs(residual) <= 1e-11 * (5 * r * sigma**3)

        def log_deviation(shape):
            return 2.5 * shape**2 - mp.log(epsilon - mp.mpf(t) / shape)

        assert log_deviation(sigma) <= min(
            log_deviation(sigma * (1 + step))
            for step in (-1e-4, 1e-4)
            if sigma * (1 + step) > 1 / r
        )
