"""Laplace log-normal noise: Rényi divergences against other quadratures, and the certificate."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from conftest import log_mixture
from scipy.special import logsumexp

from dpq_fast import privacy
from dpq_fast.privacy import log_normal
from enumeration import legendre

# epsilon of a level, t over epsilon
SHAPES = [(1e-3, 0.5), (0.1, 0.54), (0.5, 0.2), (1.0, 0.54), (2.0, 0.05), (5.0, 0.15)]


def log_density(z, sigma):
    """ln p by the trapezoidal rule over Y, with four times as many nodes as it takes."""
    y = np.arange(-14.0, 14.0 + math.log1p(np.abs(z).max()) / sigma, 0.06 / max(sigma, 1.0))
    log_weight = -0.5 * y * y - sigma * y + math.log((y[1] - y[0]) / math.sqrt(8.0 * math.pi))
    return log_mixture(log_weight, np.exp(-sigma * y), np.abs(z))


def divergences(tau, shift, sigma, orders):
    """D_alpha / alpha of e^tau Z + shift and Z: nodes that crowd at both centers."""
    most = max(orders) * abs(tau) + 12.0 * sigma + 4.0
    log_distance = np.linspace(-30.0, most, 1_200)
    far, weight = np.exp(log_distance), log_distance + math.log(np.diff(log_distance)[0])
    x, g = legendre(800)
    z = np.concatenate([shift + far, -far, (x + 1.0) * shift / 2.0])
    log_weight = np.concatenate([weight, weight, np.log(g * shift / 2.0)])
    q = log_density(z, sigma)
    p = log_density((z - shift) * math.exp(-tau), sigma) - tau
    assert logsumexp(q + log_weight) == pytest.approx(0.0, abs=1e-9)
    assert logsumexp(p + log_weight) == pytest.approx(0.0, abs=1e-9)
    return np.array(
        [
            logsumexp(alpha * p + (1.0 - alpha) * q + log_weight) / (alpha - 1.0) / alpha
            for alpha in orders
        ]
    )


@pytest.mark.parametrize("sigma", [0.05, 0.6, 1.2])
def test_density_is_that_of_the_definition(sigma):
    density = log_normal._Density(sigma, 10.0)
    for log_z in (-36.0, -3.0, 0.0, 2.0, 8.0 * sigma):
        with mpmath.workdps(30):
            z, s = mpmath.exp(mpmath.mpf(log_z)), mpmath.mpf(sigma)
            exact = mpmath.quad(
                lambda y, z=z, s=s: (
                    mpmath.npdf(y) * mpmath.exp(-s * y - z * mpmath.exp(-s * y)) / 2
                ),
                [-14, -6, -3, -1, 0, 1, 3, 6, 9, 14, 30],
            )
            exact = float(mpmath.log(exact))
        assert density(np.array([log_z]))[0] == pytest.approx(exact, abs=1e-12)


# Of small noise the finer quadrature takes its time.
@pytest.mark.parametrize(
    ("epsilon", "ratio"), [pytest.param(*SHAPES[0], marks=pytest.mark.slow), *SHAPES[1:]]
)
def test_moments_are_those_of_a_finer_quadrature(epsilon, ratio):
    t = ratio * epsilon
    sigma, log_scale = privacy.csmooth._certified_shape(t, epsilon)
    orders = np.array([1.5, 3.0, 12.0])
    most = orders[-1] * t + 9.0 * sigma + 4.0
    density = log_normal._Density(sigma, most)
    for tau, shift in ((t, math.exp(log_scale)), (-t, 0.3 * math.exp(log_scale))):
        ratios = log_normal._Quadrature(density, shift, most).log_ratios(tau)
        found = log_normal._log_moments(*ratios, orders - 1.0) / (orders - 1.0) / orders
        assert found == pytest.approx(divergences(tau, shift, sigma, orders), rel=2e-7, abs=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "ratio"), SHAPES[1:])
def test_certified_noise_is_zcdp_wherever_neighbors_may_lie(epsilon, ratio):
    """Random neighbors, not those alone that the certificate looks at; and it is nearly tight."""
    t, rho = ratio * epsilon, epsilon * epsilon / 2.0
    sigma, log_scale = privacy.csmooth._certified_shape(t, epsilon)
    s, rng = math.exp(log_scale), np.random.default_rng(3)
    pairs = [(tau, s * min(1.0, math.exp(tau))) for tau in (-t, 0.0, 0.5 * t, t)]
    pairs += [
        (tau, s * min(1.0, math.exp(tau)) * share)
        for tau, share in zip(rng.uniform(-t, t, 6), rng.uniform(0.05, 1.0, 6), strict=True)
    ]
    orders = np.array([1.05, 1.3, 2.0, 5.0, 20.0])
    worst = max(divergences(tau, shift, sigma, orders).max() for tau, shift in pairs)
    assert 0.93 * rho < worst <= rho


@pytest.mark.parametrize(("epsilon", "ratio"), SHAPES)
def test_a_larger_scale_is_not_certified(epsilon, ratio):
    t, rho = ratio * epsilon, epsilon * epsilon / 2.0
    sigma, log_scale = privacy.csmooth._certified_shape(t, epsilon)
    places, s = log_normal._worst_places(t), math.exp(log_scale)
    assert max(log_normal._rho_at(t, sigma, s, rho, places)) <= rho
    assert max(log_normal._rho_at(t, sigma, s * 1.002, rho, places)) > rho


def test_chords_bound_what_lies_between_orders():
    """A convex function that is 0 at alpha = 1, known at few orders."""
    beyond = np.geomspace(1e-3, 50.0, 12)
    fine = np.geomspace(1e-6, 50.0, 5_000)
    for curve in (
        lambda s: 0.7 * s * (1.0 + s),
        lambda s: 2.0 * (np.sqrt(1.0 + s * s) - 1.0) + 0.1 * s,
        lambda s: np.maximum(0.1 * s, 3.0 * (s - 4.0)),
    ):
        highest = log_normal._highest_chord(beyond, curve(beyond))
        between = np.interp(fine, np.append(0.0, beyond), np.append(0.0, curve(beyond)))
        assert highest >= (curve(fine) / (fine * (1.0 + fine))).max()
        assert highest == pytest.approx((between / (fine * (1.0 + fine))).max(), rel=1e-3)


def test_orders_end_where_shifts_and_scales_alone_are_enough():
    for t, sigma, s, rho in ((0.3, 0.5, 0.4, 0.5), (0.05, 0.6, 0.1, 0.005)):
        beyond = log_normal._orders(t, sigma, s, rho)
        last = 1.0 + beyond[-1]
        # fact 4 at the last order, and below rho beyond it
        assert t * t / (2 * sigma**2) + s * math.exp(1.5 * sigma**2) / last <= rho * (1 + 1e-12)
        assert beyond[0] == pytest.approx(1e-3) and (np.diff(np.log(beyond)) < 0.41).all()


def test_worst_places_leave_no_gap():
    t = 0.4
    places = log_normal._worst_places(t)
    assert places[0] == (-t, pytest.approx(math.exp(-t))) and places[1] == (0.0, 1.0)
    ends = [0.0] + [tau for tau, _ in places[2:]]
    assert ends[-1] == pytest.approx(t, rel=1e-15)
    for before, (tau, share) in zip(ends[:-1], places[2:], strict=True):
        assert share >= math.exp(tau - before) * (1.0 - 1e-12)
