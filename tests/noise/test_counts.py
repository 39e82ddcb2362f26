"""The noise of counts: how far it may be off, and its moments, against the exact laws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.special
from scipy import stats

from dpq_fast import noise
from dpq_fast.noise.counts import COUNT_NOISES, Laplace

REACH = np.arange(-2_000, 2_001)


def log_law_of(kind: str, scale: Fraction) -> np.ndarray:
    """Log probabilities of the integers of `REACH`."""
    name = {"geometric": "discrete_laplace", "gaussian": "discrete_gaussian"}[kind]
    return getattr(noise, f"{name}_log_prob")(REACH, scale)


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(3, 4), Fraction(2), Fraction(9)])
@pytest.mark.parametrize("kind", ["geometric", "gaussian"])
def test_margin_of_one_draw_holds(kind, scale):
    law = np.exp(log_law_of(kind, scale))
    # a wide discrete Gaussian is taken as a normal variable, of which an integer is a unit
    rounded = 0.5 if kind == "gaussian" and scale > 1 else 0.0
    for level in (0.5, 0.9, 0.99, 0.9999):
        margin = COUNT_NOISES[kind](scale).margin(level)
        assert law[np.abs(REACH) <= margin + rounded].sum() >= level * (1.0 - 1e-12)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99, 0.9999])
def test_margins_known_values(level):
    normal = stats.norm.isf((1.0 - level) / 2.0)
    for scale in (Fraction(1, 5), Fraction(3)):
        s, r = float(scale), math.exp(-1.0 / float(scale))
        # tails of one draw: 2 r^(t + 1) / (1 + r) beyond a whole t, and e^(-t / s)
        geometric = s * max(math.log(2.0 / ((1.0 + r) * (1.0 - level))), normal * math.sqrt(2.0))
        laplace = s * max(-math.log(1.0 - level), normal * math.sqrt(2.0))
        assert COUNT_NOISES["geometric"](scale).margin(level) == pytest.approx(geometric, rel=1e-12)
        assert COUNT_NOISES["laplace"](scale).margin(level) == pytest.approx(laplace, rel=1e-12)
    sub_gaussian = math.sqrt(2.0 * math.log(2.0 / (1.0 - level)))
    of = COUNT_NOISES["gaussian"]
    assert of(Fraction(3)).margin(level) == pytest.approx(3.0 * normal, rel=1e-12)
    assert of(Fraction(1, 5)).margin(level) == pytest.approx(0.2 * sub_gaussian, rel=1e-12)


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(2), Fraction(9)])
@pytest.mark.parametrize("kind", ["geometric", "gaussian"])
def test_log_moment_bounds_that_of_the_exact_law(kind, scale):
    log_law = log_law_of(kind, scale)
    for theta in (0.01, 0.3, 0.8):
        exact = scipy.special.logsumexp(log_law + theta / float(scale) * REACH)
        found = COUNT_NOISES[kind](scale).log_moment(theta)
        assert exact <= found * (1.0 + 1e-9)
        # the bound of the discrete Gaussian is that of the normal law
        assert found == pytest.approx(exact if kind == "geometric" else theta**2 / 2.0, rel=1e-9)


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(2), Fraction(9)])
def test_variances_are_those_of_the_laws(scale):
    exact = {
        kind: float(np.exp(log_law_of(kind, scale)) @ REACH**2.0)
        for kind in ("geometric", "gaussian")
    }
    variance = {kind: made(scale).variance for kind, made in COUNT_NOISES.items()}
    assert variance["geometric"] == pytest.approx(exact["geometric"], rel=1e-9)
    assert variance["laplace"] == pytest.approx(float(2 * scale**2))
    assert variance["gaussian"] == pytest.approx(float(scale**2))
    assert exact["gaussian"] <= variance["gaussian"] * (1.0 + 1e-9)


@pytest.mark.parametrize("kind", COUNT_NOISES)
def test_scales_are_those_of_the_budget_and_at_most_2_to_the_53(kind):
    made = COUNT_NOISES[kind].calibrated
    # sensitivity / epsilon, or the root of squared / 2 rho
    squared = 36 if kind == "gaussian" else 9
    assert made(3, squared, Fraction(1, 2)).scale == 6
    least = Fraction(1, 2**107 if kind == "gaussian" else 2**53)
    assert made(1, 1, least).scale == 2**53
    with pytest.raises(ValueError, match=r"must give noise of a scale of at most 2\^53, got"):
        made(1, 1, least * Fraction(99, 100))


def test_sigma_is_rounded_up():
    for rho in (Fraction(1), Fraction(3), Fraction(1, 7), Fraction(5, 3)):
        square = 1 / (2 * rho)
        sigma = COUNT_NOISES["gaussian"].calibrated(1, 1, rho).scale
        assert square < sigma**2 < square * (1 + Fraction(1, 2**51))


@pytest.mark.parametrize("kind", COUNT_NOISES)
def test_draws_are_as_many_as_asked_for_and_made_by_the_seed(kind):
    one, same, other = (
        COUNT_NOISES[kind](Fraction(9)).draw(50, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert one.shape == (50,) and one.dtype.kind == ("f" if kind == "laplace" else "i")
    assert one.tolist() == same.tolist() != other.tolist()


def test_log_moment_of_laplace_noise_by_quadrature():
    x = np.linspace(-200.0, 200.0, 400_001)
    for theta in (0.01, 0.3, 0.8):
        exact = math.log(np.trapezoid(stats.laplace.pdf(x) * np.exp(theta * x), x))
        assert Laplace(3.0).log_moment(theta) == pytest.approx(exact, abs=1e-6)
