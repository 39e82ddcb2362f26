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
    assert of(epsilon=3.0).rho == rho(3.0, 6)  # a height of 3 by default
    laplace = 6 * k * k * privacy.laplace_rho(3.0 / (6 * k))
    assert of(epsilon=3.0, noise="laplace").rho == pytest.approx(laplace, rel=1e-14)
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
