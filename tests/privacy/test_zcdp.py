"""Zero-concentrated privacy: its conversions against mpmath, and their inverses."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from conftest import pair, renyi
from hypothesis import given, settings
from hypothesis import strategies as st

from dpq_fast import privacy
from dpq_fast.privacy import (
    Accountant,
    guarantee,
)

ORDERS = (1.0001, 1.01, 1.1, 1.5, 2.0, 4.0, 16.0)


@pytest.mark.parametrize("each", [0.1, 1.0, 3.0, 12.0, 40.0])
def test_rho_of_a_range_is_the_supremum_of_renyi_divergence(each):
    ratios = [
        renyi(*pair(each, t), alpha) / alpha
        for t in np.linspace(0.001, 0.999, 999) * each
        for alpha in ORDERS
        if alpha * each < 700.0
    ]
    rho = guarantee("joint_exp", epsilon=each).rho
    assert 0.999 * rho < max(ratios) <= rho


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 12.0])
def test_pure_rho_is_the_supremum_of_renyi_divergence(epsilon):
    truth, lie = 1.0 / (1.0 + math.exp(-epsilon)), 1.0 / (1.0 + math.exp(epsilon))
    p, q = np.array([truth, lie]), np.array([lie, truth])
    ratios = [renyi(p, q, alpha) / alpha for alpha in ORDERS if alpha * epsilon < 300.0]
    assert 0.999 * privacy.pure_rho(epsilon) < max(ratios) <= privacy.pure_rho(epsilon)


@pytest.mark.parametrize("steps", [1, 2, 5, 400])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 12.0])
def test_discrete_laplace_rho_is_the_supremum_of_renyi_divergence(epsilon, steps):
    """One step is pure, and many tend to continuous noise."""
    rate = epsilon / steps
    k = np.arange(-math.ceil(60.0 / rate), math.ceil(60.0 / rate) + steps + 1)
    p, q = (np.exp(-rate * np.abs(k - center)) * math.tanh(rate / 2.0) for center in (0, steps))
    ratios = [renyi(p, q, alpha) / alpha for alpha in ORDERS if alpha < 5.0]
    rho = privacy.discrete_laplace_rho(epsilon, steps)
    assert 0.999 * rho < ratios[0] == max(ratios) <= rho
    assert privacy.laplace_rho(epsilon) <= rho <= privacy.pure_rho(epsilon)
    if steps == 400:
        assert max(ratios) < 1.001 * privacy.laplace_rho(epsilon)


@pytest.mark.parametrize("x", [1e-9, 1e-4, 0.04999, 0.05, 0.19999, 0.2, 1.0, 30.0, 699.0, 701.0])
def test_exact_rhos_are_rounded_up_and_barely(x):
    with mpmath.workdps(50):
        exact = mpmath.mpf(x)
        r = exact / mpmath.expm1(exact)
        for found, value in (
            (privacy.bounded_range_rho(x), r - 1 - mpmath.log(r)),
            (privacy.pure_rho(x), exact * mpmath.tanh(exact / 2)),
            (privacy.laplace_rho(x), exact + mpmath.exp(-exact) - 1),
            *(
                (
                    privacy.discrete_laplace_rho(x, units),
                    exact + mpmath.expm1(-exact) * (exact / units) / mpmath.sinh(exact / units),
                )
                for units in (1, 2, 3, 7, 60, 10**9)
            ),
        ):
            assert value <= found * (1 + mpmath.mpf(2) ** -52) <= value * (1 + mpmath.mpf(2e-13))


@pytest.mark.parametrize("x", [5e-324, 1e-200, 1e-162, 4e-106])
def test_exact_rhos_of_next_to_nothing_are_something(x):
    for rho_of, share in (
        (privacy.bounded_range_rho, 8),
        (privacy.pure_rho, 2),
        (privacy.laplace_rho, 2),
        (lambda x: privacy.discrete_laplace_rho(x, 5), 2),
    ):
        assert rho_of(x) > 0.0 and Fraction(rho_of(x)) >= Fraction(x) ** 2 / share * (
            1 - Fraction(x)
        )


def test_the_largest_rhos_have_a_range():
    for rho in (1e307, 3e307, 1.79e308):
        assert privacy.bounded_range_rho(privacy.rho_bounded_range(rho)) <= rho
    assert privacy.rho_bounded_range(5e-324) > 0.0


def test_exact_rhos_of_nothing_are_nothing():
    for rho_of in (privacy.bounded_range_rho, privacy.pure_rho, privacy.laplace_rho):
        assert rho_of(0.0) == 0.0
    assert privacy.discrete_laplace_rho(0.0, 3) == 0.0


@given(st.floats(math.log(1e-280), math.log(1e9)))
def test_rho_bounded_range_is_the_largest(log_rho):
    rho = math.exp(log_rho)
    eta = privacy.rho_bounded_range(rho)
    assert privacy.bounded_range_rho(eta) <= rho
    assert privacy.bounded_range_rho(eta * (1 + 1e-12)) > rho
    assert eta >= math.sqrt(8.0 * rho) * (1 - 1e-12)


def test_a_rho_of_one_buys_a_range_of_nearly_three():
    assert privacy.rho_bounded_range(1.0) == pytest.approx(2.98759888, abs=1e-8)


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


@pytest.mark.parametrize("rho", [1e-9, 1e-6, 0.01, 0.5, 3.0, 8.475434976312984, 200.0, 1e6])
@pytest.mark.parametrize("delta", [1e-100, 1e-12, 1e-6, 0.01, 0.999])
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


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1.6649972667368375e-06, 0.0008058174723628893), (0.01125791762034581, 0.2337179196605086)],
)
def test_zcdp_rho_is_found_where_rounding_takes_the_search_far_back(epsilon, delta):
    rho = privacy.zcdp_rho(epsilon, delta)
    assert privacy.zcdp_epsilon(rho, delta) <= epsilon
    assert privacy.zcdp_epsilon(rho * (1 + 1e-9), delta) > epsilon


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


@pytest.mark.parametrize("beyond", [0.9e-140, 1.1e300])
def test_zcdp_rho_has_its_ends(beyond):
    with pytest.raises(ValueError, match="must lie between 1e-140"):
        privacy.zcdp_rho(beyond, 1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: privacy.zcdp_epsilon(-1.0, 0.1),
            "^rho must be finite and not negative, got -1.0$",
        ),
        (lambda: privacy.zcdp_epsilon(1.0, 0.0), "^delta must be positive to turn rho into eps"),
        (lambda: privacy.zcdp_rho(1.0, 0.0), "^delta must be positive to turn epsilon into rho"),
        (lambda: privacy.zcdp_rho(0.0, 0.1), "^epsilon must be positive"),
    ],
)
def test_zcdp_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()
