"""Trees: scales and guarantees by hand."""

from __future__ import annotations

import functools
from fractions import Fraction

import pytest
from conftest import pure_rho
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast import privacy
from dpq_fast.privacy import (
    Guarantee,
    guarantee,
)
from dpq_fast.privacy.relations import relation_of


@pytest.mark.parametrize("k", [1, 3])
def test_guarantee_of_trees_worked_by_hand(k):
    """A record is in t counts, 2h under "swap" and h under "add-remove": t coins of epsilon / t."""

    def rho(epsilon, t):
        return pytest.approx(k * k * t * pure_rho(epsilon / (k * t)), rel=1e-12)

    of = functools.partial(guarantee, "agg_tree", max_contributions=k)
    two = of(epsilon=3.0, height=2, branching=4)
    assert two == Guarantee(3.0, 0.0, two.rho, None, "swap", "")
    assert two.rho == rho(3.0, 4)
    two = of(epsilon=3.0, height=2, branching=4, neighbors="add-remove")
    assert two == Guarantee(3.0, 0.0, two.rho, None, "add-remove", "")
    assert two.rho == rho(3.0, 2)
    laplace = 6 * k * k * privacy.laplace_rho(3.0 / (6 * k))
    of_laplace = of(epsilon=3.0, height=3, noise="laplace")
    assert of_laplace.rho == pytest.approx(laplace, rel=1e-14)
    for height in (1, 2, 3, 4):  # whatever is chosen is what is charged
        for expected_n in (100, 10**4, 10**6, 10**9):
            made = privacy.agg_tree.calibrate(
                epsilon=3.0, expected_n=expected_n, height=height, max_contributions=k
            )
            assert made.height == height
            assert made.guarantee.rho == rho(3.0, 2 * height)
        made = privacy.agg_tree.calibrate(epsilon=3.0, expected_n=10**height, max_contributions=k)
        assert made.noise.scale == Fraction(2 * k * made.height, 3)
        assert made.guarantee == of(epsilon=3.0, expected_n=10**height)
        assert made.guarantee.rho == rho(3.0, 2 * made.height)
    gaussian = of(rho=0.5, noise="gaussian", neighbors="add-remove")
    assert gaussian == Guarantee(None, 0.0, 0.5, None, "add-remove", "")


def test_agg_tree_sensitivities_known_values():
    """A record is in h counts, a replacement changes twice as many; k records are k times it."""
    of = privacy.agg_tree.sensitivities
    swap, add_remove = relation_of("swap"), relation_of("add-remove")
    assert (of(3, add_remove), of(3, swap)) == ((3, 3), (6, 6))
    assert (of(3, add_remove, 2), of(3, swap, 2)) == ((6, 12), (12, 24))


def test_agg_tree_takes_the_largest_scale():
    one = dict(height=1, noise="laplace", neighbors="add-remove")
    assert privacy.agg_tree.calibrate(epsilon=2.0**-53, **one).noise.scale == 2**53
    with pytest.raises(ValueError, match="of a scale of at most 2"):
        privacy.agg_tree.calibrate(epsilon=0.99 * 2.0**-53, **one)
    one["noise"] = "gaussian"  # of variance 1 / 2 rho
    assert privacy.agg_tree.calibrate(rho=2.0**-107, **one).noise.scale == 2**53
    with pytest.raises(ValueError, match="of a scale of at most 2"):
        privacy.agg_tree.calibrate(rho=0.99 * 2.0**-107, **one)


@given(st.integers(1, 20), st.integers(1, 5), st.floats(1e-9, 1e6))
def test_agg_tree_sigma_is_rounded_up_and_no_further(height, k, rho):
    form = dict(height=height, noise="gaussian", max_contributions=k)
    sigma = privacy.agg_tree.calibrate(rho=rho, **form).noise.scale
    variance = Fraction(2 * height * k * k) / (2 * Fraction(rho))
    assert variance <= sigma**2 <= variance * (1 + Fraction(1, 2**50))


def test_default_shapes_known_values():
    """By hand from the formula, at its corners: bins, the least tree, a leaf for each point."""
    of = privacy.agg_tree.shape_of
    assert [of(None, None, None, n) for n in (30, 100, 1_000, 10_000, 10**5)] == [
        (1, 28),
        (1, 46),
        (2, 14),
        (2, 24),
        (3, 14),
    ]
    assert of(None, None, None) == of(None, None, 10**6) == of(None, None, None, 10_000)
    # ages: few bins where there is much noise, else a leaf for each point
    assert [of(None, None, 101, n) for n in (30, 100, 300, 1_000, 10**9)] == [
        (1, 4),
        (1, 8),
        (1, 12),
        (2, 11),
        (2, 11),
    ]
    assert of(None, None, 2) == (1, 2)
    # what is given stays, but for levels and children that no point needs
    assert of(4, 9, None) == (4, 9) and of(5, 10, 121) == (3, 5)
    assert of(3, None, None)[0] == 3 and of(None, 2, None)[1] == 2
    assert of(26, None, None) == (26, 2) and of(1, None, None, 10**30 // 10**15)[0] == 1
    assert of(None, 2**26, None) == (1, 2**26)


def test_default_shapes_of_gaussian_noise_known_values():
    """By hand: binary trees, the higher the more records there are, down to the points."""

    def of(points, n, rho, **options):
        tree = privacy.agg_tree.calibrate(
            rho=rho, noise="gaussian", points=points, expected_n=n, **options
        )
        return tree.height, tree.branching

    assert [of(None, 1_000, rho) for rho in (0.005, 0.05, 0.5, 5.0)] == [
        (7, 2),
        (8, 2),
        (10, 2),
        (11, 2),
    ]
    assert [of(None, n, 0.05) for n in (30, 10_000, 10**5, 10**6)] == [
        (4, 2),
        (11, 2),
        (14, 2),
        (16, 2),
    ]
    # of noise and number of records alone
    assert of(None, 1_000, 0.05) == of(None, 100, 5.0) == of(None, 4_000, 0.05, max_contributions=4)
    assert of(None, 1_000, 0.05) == of(None, 1_000, 0.025, neighbors="add-remove")
    # ages: few bins where there is much noise, else a leaf for each point
    assert [of(101, n, 0.005) for n in (10, 100, 300, 10**6)] == [(2, 2), (4, 2), (7, 2), (7, 2)]
    assert of(10_001, 30_000, 0.005) == (9, 3) and of(2, 30, 0.05) == (1, 2)
    assert of(None, 1_000, 0.05, height=3) == (3, 6)
    assert of(None, 1_000, 0.05, branching=10) == (3, 10)


@given(
    st.integers(1, 10**12),
    st.sampled_from([None, 2, 3, 10, 101, 2048, 10**4, 10**6, 2**52]),
    st.floats(1e-300, 1e300),
    st.booleans(),
    st.sampled_from([1 / 40, 1 / 80]),
)
def test_default_shapes_have_the_smallest_expected_error(n, points, deviation, gaussian, spread):
    """Against the formula, for every shape of a grid."""
    shape = privacy.agg_tree.shape_of(None, None, points, n, deviation, gaussian, spread)
    assert shape[1] ** shape[0] <= 2**26
    if points is not None and not gaussian:
        spread = max(spread, min(30.0 / points, 12.0**-0.5))

    def error(h, b):
        if gaussian:
            noise = deviation / n * h**0.8 / 15.0 * b**0.85
            inside = (60.0 * spread * b**h) ** -1.3
        else:
            noise = deviation / n * h**1.87 / 7.0 * b**0.65
            inside = (9.0 * spread * b**h) ** -1.7
        if points is not None and b**h >= points:
            return noise
        return noise + inside + (0.0 if points is None else 1.0 / points)

    for h in range(1, 9):
        for b in (2, 4, 6, 8, 12, 16, 24, 46, 100, 1_000, 10**6, 2**26):
            if b**h <= 2**26 and (points is None or b**h < points or b == 2):
                assert error(*shape) <= error(h, b) * (1.0 + 1e-9)


@pytest.mark.parametrize("bad", [0, -1])
def test_expected_n_is_at_least_one(bad):
    with pytest.raises(ValueError, match="expected_n must be at least 1"):
        privacy.agg_tree.calibrate(epsilon=1.0, expected_n=bad)
    with pytest.raises(TypeError, match="expected_n must be an integer"):
        privacy.agg_tree.calibrate(epsilon=1.0, expected_n=1.5)
