"""Approximate quantiles: steps and guarantees by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpq_fast import privacy
from dpq_fast.privacy import (
    Guarantee,
    approx_quantiles,
    guarantee,
)
from dpq_fast.privacy.relations import relation_of

# What the losses of the steps are by hand, for levels whose parts have the local levels 1/2, and
# then 0.1 and 0.6. Per unit of the rate of "ind_exp": 2 max(q, 1 - q) for one record more or less,
# 2 for a replacement inside the part. Per unit of epsilon1 + epsilon2 of "unbounded", with a split
# of 1/4: a removal q / 4 + 3/4, an addition the larger of 3q/4 and (1 - q)/4, a replacement 1, of
# range 7/4. By relation and budget, the divisor of each step's scale, and what the budget of the
# other kind comes to: 8 rho for an epsilon of 2, epsilon for an 8 rho of 4.
RECURSION = [0.05, 0.5, 0.8]


STEPS = {
    ("ind_exp", "swap", "epsilon"): ([2.0, 1.8 + 1.2, 1.8 + 1.2], 4.0 / 4.0 + 4.68 / 9.0),
    ("ind_exp", "add-remove", "epsilon"): ([1.0, 1.8, 1.2], 2.0),
    ("ind_exp", "swap", "rho"): (
        [2.0, math.sqrt(4.68), math.sqrt(4.68)],
        math.sqrt(2.0) * (1.0 + 3.0 / math.sqrt(4.68)),
    ),
    ("ind_exp", "add-remove", "rho"): ([1.0, 1.8, 1.2], math.sqrt(2.0) * 2.0),
    ("unbounded", "swap", "epsilon"): (
        [1.0, 0.775 + 0.45, 0.775 + 0.45],
        1.75**2 + (1.75 / 1.225) ** 2,
    ),
    ("unbounded", "add-remove", "epsilon"): (
        [0.875, 0.775, 0.9],
        (1.25 / 0.875) ** 2 + (1.35 / 0.9) ** 2,
    ),
    ("unbounded", "swap", "rho"): ([1.75] * 3, math.sqrt(2.0) * (1.0 + 1.225) / 1.75),
    ("unbounded", "add-remove", "rho"): (
        [1.25, 1.0, 1.35],
        math.sqrt(2.0) * (0.875 / 1.25 + 0.775),
    ),
}


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("base", "neighbors", "kind"), STEPS)
def test_approx_quantiles_spend_what_is_worked_by_hand(base, neighbors, kind, k):
    divisors, other = STEPS[base, neighbors, kind]
    form = dict(neighbors=neighbors, base=base, split=0.25, max_contributions=k)
    budget = dict(epsilon=2.0, rho=None) if kind == "epsilon" else dict(epsilon=None, rho=0.5)
    # two depths: half of epsilon, or of 8 rho, for each
    share = 1.0 if kind == "epsilon" else math.sqrt(2.0)
    scales = privacy.approx_quantiles.calibrate(RECURSION, **budget, **form).steps
    expected = [share / (k * divisor) for divisor in divisors]
    assert scales.tolist() == pytest.approx(expected, rel=1e-13)

    made = [guarantee("approx_quantiles", q=RECURSION, **budget, **form)]
    if base == "unbounded":
        del form["base"]
        down = [1.0 - level for level in RECURSION]
        made += [
            guarantee("unbounded_quantile", q=RECURSION, **budget, **form),
            guarantee("unbounded_quantile", q=down, lower=None, upper=0.0, **budget, **form),
        ]
    for promise in made:
        assert (promise.delta, promise.bounded_range, promise.neighbors) == (0.0, None, neighbors)
        if kind == "epsilon":
            assert (promise.epsilon, promise.composition) == (2.0, "basic")
            assert promise.rho == pytest.approx(other / 8.0, rel=1e-13)
        else:
            assert (promise.rho, promise.composition) == (0.5, "zcdp")
            assert promise.epsilon == pytest.approx(other, rel=1e-13)


def test_approx_quantiles_of_one_level_compose_nothing():
    assert guarantee("approx_quantiles", q=0.5, epsilon=2.0) == Guarantee(2.0, rho=0.5)
    assert guarantee("approx_quantiles", q=0.5, rho=0.5) == Guarantee(2.0, rho=0.5)


def test_losses_are_those_of_the_worst_record():
    parts = np.array([1.0, 3.0]), np.array([0.5, 0.25]), np.array([0.25, 0.5])
    losses = approx_quantiles._Losses(*parts, np.array([2.0, 5.0]), np.array([1.0, 0.75]))
    swap, add_remove = relation_of("swap"), relation_of("add-remove")
    assert (losses.epsilon(swap), losses.eight_rho(swap)) == (3.0, 25.0)
    assert (losses.epsilon(add_remove), losses.eight_rho(add_remove)) == (0.5, 1.0)


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_two_different_is_the_largest_of_all_pairs(size):
    rng = np.random.default_rng(size)
    for _ in range(200):
        a, b = rng.integers(0, 9, size=(2, size)).astype(float)
        pairs = itertools.permutations(range(size), 2)
        assert approx_quantiles._two_different(a, b) == max(a[u] + b[v] for u, v in pairs)
