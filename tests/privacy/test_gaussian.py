"""The Gaussian mechanism: its delta against mpmath, and the least sigma."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast import privacy


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: privacy.gaussian_sigma(1.0, 1.0, 0.0, 0.5), "^exactly one of epsilon and rho"),
        (lambda: privacy.gaussian_sigma(1.0, None, 1e-6), "^exactly one of epsilon and rho"),
    ],
)
def test_gaussian_sigma_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: privacy.gaussian_sigma(10**400, 1.0, 0.1), ValueError, "squared must be positive"),
    ],
)
def test_rules_are_stated_before_anything_overflows(call, error, message):
    with pytest.raises(error, match=f"^{message}"):
        call()


def exact_delta(sigma, epsilon):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        s, e = mpmath.mpf(sigma), mpmath.mpf(epsilon)
        tilt = e * s
        return mpmath.ncdf(1 / (2 * s) - tilt) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * s) - tilt)


def normal_points() -> list[tuple[float, float]]:
    """sigma and epsilon with deltas from 1 to far below the smallest float64 number."""
    rng = np.random.default_rng(5)
    points = [(3.0, 30.0), (1.0, 0.0), (1e6, 0.0), (1e6, 1e-6), (2.0**40, 2.0**-42), (1e-3, 1e6)]
    for sigma in (10.0 ** rng.uniform(-3, 8, size=400)).tolist():
        tilt = rng.uniform(-2.0, 40.0)  # of the density that delta is a part of
        points.append((sigma, max((tilt + 0.5 / sigma) / sigma, 0.0)))
    return points


def test_gaussian_delta_is_from_above_and_tight():
    worst = 0.0
    for sigma, epsilon in normal_points():
        found, exact = privacy.gaussian_delta(sigma, epsilon), exact_delta(sigma, epsilon)
        assert 0.0 < found >= exact, (sigma, epsilon)
        if exact > 1e-300:
            worst = max(worst, float(found / exact - 1))
    assert worst < 1e-9


@pytest.mark.parametrize(
    ("sigma", "epsilon", "delta"),
    [(3.0, 30.0, 5e-324), (1e300, 1e300, 5e-324), (1e-310, 1.0, 1.0), (1e-310, 1e300, 1.0)],
)
def test_gaussian_delta_at_the_ends_of_float64(sigma, epsilon, delta):
    with np.errstate(all="raise"):
        assert privacy.gaussian_delta(sigma, epsilon) == delta


@pytest.mark.parametrize("delta", [0.5, 1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 50.0, 1e4])
def test_gaussian_sigma_is_the_least_from_above(epsilon, delta):
    sigma = privacy.gaussian_sigma(1, epsilon, delta)
    assert exact_delta(sigma, epsilon) <= delta <= exact_delta(sigma * (1.0 - 1e-8), epsilon)
    assert exact_delta(sigma, epsilon) <= privacy.gaussian_delta(sigma, epsilon)
    four = privacy.gaussian_sigma(4, epsilon, delta)
    assert 2.0 * sigma <= four <= 2.0 * sigma * (1.0 + 1e-14)


@given(st.floats(0.01, 20.0), st.floats(1e-12, 0.9))
def test_gaussian_sigma_equals_dp_accounting(epsilon, delta):
    dp_accounting = pytest.importorskip("dp_accounting", reason="extra 'accounting' not installed")
    sigma = privacy.gaussian_sigma(1, epsilon, delta)
    assert sigma == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, delta), rel=1e-5)
    loss = dp_accounting.pld.privacy_loss_mechanism.GaussianPrivacyLoss(sigma)
    assert loss.get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=1e-6)


def test_gaussian_sigma_takes_the_largest():
    # at an epsilon of next to nothing delta is 1 / (sigma sqrt(2 pi)), here of 2^99.5 and 2^100.2
    assert 2.0**99 < privacy.gaussian_sigma(1, 1e-40, 0.3989 / 2.0**99.5) < 2.0**100
    with pytest.raises(ValueError, match=r"large enough for a sigma of at most 2\^100, got 1e-40"):
        privacy.gaussian_sigma(1, 1e-40, 0.3989 / 2.0**100.2)


def test_gaussian_queries_compose_to_one():
    pld = pytest.importorskip("dp_accounting.pld", reason="extra 'accounting' not installed")
    sigma = privacy.gaussian_sigma(5, 1.0, 1e-6)
    one = pld.privacy_loss_distribution.from_gaussian_mechanism(
        sigma, value_discretization_interval=1e-3
    )
    delta = one.self_compose(5).get_delta_for_epsilon(1.0)  # pessimistic, from above
    assert delta == pytest.approx(1e-6, rel=2e-2) and delta >= 1e-6 * (1.0 - 1e-6)


def test_gaussian_sigma_of_rho():
    sigma = privacy.gaussian_sigma(3, None, rho=0.7)
    assert (
        3 / (2 * Fraction(sigma) ** 2)
        <= Fraction(0.7)
        <= 3 / (2 * Fraction(sigma) ** 2) * (1 + Fraction(1, 2**48))
    )
