"""Distribution functions: options, noise and guarantees by hand."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from conftest import BOTH, pure_rho
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpq_fast import _checks, privacy
from dpq_fast.privacy import (
    Guarantee,
    guarantee,
)
from dpq_fast.privacy.relations import relation_of


@pytest.mark.parametrize("k", [1, 3])
def test_guarantee_of_counts_worked_by_hand(k):
    """A record is in t counts, 2h under "swap" and h under "add-remove": t coins of epsilon / t."""

    def rho(t):
        return pytest.approx(k * k * t * pure_rho(3.0 / (k * t)), rel=1e-12)

    cdf = functools.partial(guarantee, "cdf", epsilon=3.0, max_contributions=k)
    sixteen = cdf(bins=16)
    assert sixteen == Guarantee(3.0, 0.0, sixteen.rho)
    assert sixteen.rho == rho(8)
    assert cdf(method="binary_tree").rho == rho(20)  # 2^10 bins by default
    for expected_n in (10**3, 10**8):
        made = privacy.cdf.calibrate(epsilon=3.0, expected_n=expected_n, max_contributions=k)
        height = made.options["height"]
        assert made.method == "agg_tree" and made.noise.scale == Fraction(2 * k * height, 3)
        assert made.guarantee == cdf(expected_n=expected_n)
        assert made.guarantee.rho == rho(2 * height)
    assert cdf(method="histogram", neighbors="add-remove").rho == rho(1)
    assert cdf(method="agg_tree", height=2, branching=4).rho == rho(4)
    assert cdf(method="adaptive", steps=9, bins=32).rho == rho(10)
    assert cdf(epsilon=None, rho=0.5, method="adaptive") == Guarantee(None, rho=0.5)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("shape", [dict(levels=4), dict(bins=8)], ids=str)
def test_guarantee_of_normal_noise_worked_by_hand(shape, neighbors, k):
    """The noise of a budget grows with the sensitivity, so that rho is the same for all."""
    of = functools.partial(
        guarantee, "cdf", method="gaussian", neighbors=neighbors, max_contributions=k, **shape
    )
    assert of(rho=0.5) == Guarantee(None, rho=0.5, neighbors=neighbors)
    made = of(epsilon=1.0, delta=1e-6)
    assert (made.epsilon, made.delta, made.bounded_range) == (1.0, 1e-6, None)
    assert (made.neighbors, made.composition) == (neighbors, "")
    sigma = privacy.gaussian_sigma(1.0, 1.0, 1e-6)
    assert made.rho == pytest.approx(1.0 / (2.0 * sigma * sigma), rel=1e-12)


def test_guarantee_of_smooth_gaussian_worked_by_hand():
    made = guarantee("cdf", method="smooth_gaussian", epsilon=1.0, delta=1e-6)
    assert made == Guarantee(1.0, 1e-6, None, None, "swap", "basic")
    # a chain of two records at 1/6 each: (delta / 3) / (1 + e^(1/6))
    each = privacy.cdf.budget_of_level(3, 1.0, 6e-6, 2)
    assert each == pytest.approx((1.0 / 6.0, 2e-6 / (1.0 + math.exp(1.0 / 6.0))), rel=1e-14)
    assert privacy.cdf.budget_of_level(3, 1.0, 6e-6) == pytest.approx((1.0 / 3.0, 2e-6))
    with pytest.raises(ValueError, match=r"^rho must be left out for method 'smooth_gaussian'"):
        guarantee("cdf", method="smooth_gaussian", epsilon=1.0, delta=1e-6, rho=0.5)
    with pytest.raises(ValueError, match=r"^delta must be 0 for method 'histogram'"):
        guarantee("cdf", method="histogram", epsilon=1.0, delta=1e-6)


def test_cdf_options_that_are_left_out():
    of = privacy.cdf.options_of
    assert of("binary_tree", {}) == dict(bins=2**10, aggregate=True)
    assert of("binary_tree", {}, 10) == dict(bins=16, aggregate=True)
    assert of("binary_tree", {}, 10**6) == dict(bins=2**10, aggregate=True)
    assert of("agg_tree", {}) == dict(height=None, branching=None, aggregate=True)
    assert of("histogram", {}) == dict(bins=100)
    assert of("histogram", {}, 10) == dict(bins=10)
    assert of("gaussian", {}) == dict(levels=9, bins=None)
    assert of("gaussian", dict(bins=64), 10) == dict(levels=9, bins=10)
    assert of("smooth_gaussian", {}, 10) == dict(levels=9)
    assert of("adaptive", {}) == dict(steps=128, bins=2**14, depth=14)
    assert of("adaptive", {}, 10) == dict(steps=9, bins=16, depth=4)
    assert of("adaptive", {}, 16) == dict(steps=15, bins=16, depth=4)
    assert of("adaptive", {}, 17) == dict(steps=16, bins=32, depth=5)
    assert of("adaptive", dict(steps=3, bins=32)) == dict(steps=3, bins=8, depth=3)
    assert of("adaptive", dict(bins=32, depth=3), 10**6) == dict(steps=7, bins=8, depth=3)


def test_options_take_their_ends_and_nothing_beyond():
    few = _checks.FEW_POINTS
    for method in ("binary_tree", "histogram"):
        for points in (2, 16, few):
            assert privacy.cdf.options_of(method, {}, points)["bins"] == points
    assert privacy.cdf.options_of("histogram", {}, few + 1) == dict(bins=100)
    assert privacy.cdf._check_levels(2**20) == 2**20
    # nothing is left of delta where e^epsilon is beyond all that matters
    assert privacy.cdf.budget_of_level(1, 800.0, 1e-6, 400) == (2.0, 0.0)


@pytest.mark.parametrize("given", [np.array([]), [], None, "bins"])
def test_cdf_options_rejects_what_is_no_dict(given):
    with pytest.raises(TypeError, match="given must be a dict of options, got"):
        privacy.cdf.options_of("binary_tree", given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: privacy.cdf.depths_of("histogram", dict(bins=1)), "^bins must be at least 2"),
        (
            lambda: privacy.cdf.gaussian_squared(4, 1, relation_of("swap")),
            "^bins must be at least 2",
        ),
        (
            lambda: privacy.cdf.calibrate(method="gaussian", rho=1.0, neighbors="x"),
            "^neighbors must be one of",
        ),
        (
            lambda: privacy.cdf.budget_of_level(1, 1e-310, 1e-6, 2**53),
            "^epsilon of a level must be positive",
        ),
    ],
)
def test_cdf_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: privacy.cdf.budget_of_level(9, 5e-324, 1e-6),
            ValueError,
            "epsilon of a level must be positive and finite, got 0.0",
        ),
    ],
)
def test_rules_are_stated_before_anything_overflows(call, error, message):
    with pytest.raises(error, match=f"^{message}"):
        call()


@given(st.integers(1, 9), st.integers(1, 5), st.floats(1e-6, 30.0), st.floats(1e-12, 0.1))
def test_smooth_gaussian_budget_is_spent_along_the_chain(m, k, epsilon, delta):
    each, small = privacy.cdf.budget_of_level(m, epsilon, delta, k)
    assert m * k * each == pytest.approx(epsilon, rel=1e-12)
    person = small * sum(math.exp(i * each) for i in range(k))
    assert m * person == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-9, 1e-4, 0.1, 0.9])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
def test_gaussian_noise_keeps_its_promise(epsilon, delta):
    """The hockey-stick divergence of the farthest neighbors at epsilon is at most delta."""
    beta, log_alpha = privacy.cdf.smooth_gaussian_scale(epsilon, delta)
    z = np.linspace(-60.0, 60.0, 240_001)
    for log_ratio in (-beta, 0.0, beta):
        shift = math.exp(log_alpha) * min(1.0, math.exp(log_ratio))
        p = stats.norm.pdf(z)
        q = stats.norm.pdf(z, shift, math.exp(log_ratio))
        for one, other in ((p, q), (q, p)):
            excess = np.maximum(one - math.exp(epsilon) * other, 0.0).sum() * (z[1] - z[0])
            assert excess <= delta


@pytest.mark.parametrize(
    "epsilon, delta, error, message",
    [
        (1.0, 0.0, ValueError, "delta must be positive"),
        (1.0, 1.0, ValueError, r"delta must lie in \[0, 1\)"),
        (4.1, 0.1, ValueError, "epsilon must be at most 4"),
        (0.0, 0.1, ValueError, "epsilon must be positive and finite"),
        ("1", 0.1, TypeError, "epsilon must be a real number"),
    ],
)
def test_smooth_gaussian_rejects(epsilon, delta, error, message):
    with pytest.raises(error, match=message):
        privacy.cdf.smooth_gaussian_scale(epsilon, delta)


def test_auto_goes_by_the_options_that_are_given():
    def used(**options):
        made = privacy.cdf.calibrate(epsilon=1.0, **options)
        return made.method, made.options

    assert used() == ("agg_tree", dict(height=3, branching=12, aggregate=True))
    assert used(expected_n=1_000)[1] == dict(height=2, branching=18, aggregate=True)
    assert used(points=101)[1] == dict(height=2, branching=11, aggregate=True)
    assert used(branching=4)[0] == used(aggregate=False)[0] == "agg_tree"
    assert used(bins=16)[0] == used(bins=16, aggregate=False)[0] == "binary_tree"
    assert used(steps=5)[0] == used(depth=5, bins=64)[0] == "adaptive"
    assert used(method="histogram")[0] == "histogram"
    with pytest.raises(TypeError, match=r"^method 'agg_tree' must have no options but height"):
        used(levels=9)


def test_factor_by_hand():
    factor = privacy.cdf.prefix_factor(6)
    assert factor.tolist() == [512, 256, 192, 160, 140, 126]  # 512 times 1, 1/2, 3/8, 5/16, ...
    assert privacy.cdf.prefix_factor(2**13)[-1] == round(512 / math.sqrt(math.pi * (2**13 - 1)))
    with pytest.raises(ValueError, match=r"^bins must be at least 2"):
        privacy.cdf.prefix_factor(1)
    with pytest.raises(ValueError, match="bins must be at most 8192, got 8193"):
        privacy.cdf.prefix_factor(2**13 + 1)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("bins", [2, 3, 4, 17, 60])
def test_factorized_sensitivity_of_all_pairs_of_columns(bins, k):
    factor = privacy.cdf.prefix_factor(bins).tolist()
    columns = np.array([[0] * j + factor[: bins - j] for j in range(bins)])
    lengths = (columns**2).sum(axis=1)
    apart = ((columns[:, None] - columns[None, :]) ** 2).sum(axis=2)
    of = functools.partial(privacy.cdf.factorized_squared, bins, max_contributions=k)
    assert of(relation_of("add-remove")) == k * k * lengths.max()
    assert of(relation_of("swap")) == k * k * max(lengths.max(), apart.max())
    # bit for bit the integers that are released: those of other numbers of bins begin alike
    assert factor == privacy.cdf.prefix_factor(2 * bins)[:bins].tolist()


def test_cdf_is_factorized_for_rho_and_swap():
    """By public arguments: as many bins as the tree would have leaves, up to 2^13."""
    of = functools.partial(privacy.cdf.calibrate, rho=0.05)
    for expected_n, bins in ((100, 128), (1_000, 512), (10_000, 4096)):
        made = of(expected_n=expected_n)
        assert made.method == "factorized" and made.options == dict(bins=bins)
        assert made.guarantee == Guarantee(None, rho=0.05)
        squared = privacy.cdf.factorized_squared(bins, relation_of("swap"))
        assert float(made.noise.scale) == pytest.approx(math.sqrt(squared / 0.1), rel=1e-15)
    assert of() == of(expected_n=10_000)
    assert of(points=101).options == dict(bins=101)
    assert of(expected_n=10**6).method == "agg_tree"
    assert of(expected_n=10**6, method="factorized").options == dict(bins=2**13)
    assert of(method="factorized", bins=30, points=10).options == dict(bins=10)
    assert of(neighbors="add-remove").method == "agg_tree"
    assert of(aggregate=True).method == "agg_tree" and of(bins=16).method == "binary_tree"
    assert privacy.cdf.calibrate(epsilon=1.0).method == "agg_tree"
    assert guarantee("cdf", rho=0.05) == Guarantee(None, rho=0.05)
