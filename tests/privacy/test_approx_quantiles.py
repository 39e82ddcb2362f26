"""Approximate quantiles: steps and guarantees by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conftest import range_of, range_rho

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
# range 7/4. By relation: the divisors of an epsilon of 1 for each depth, and the ranges of the
# worst record in each depth: those it changes together.
RECURSION = [0.05, 0.5, 0.8]
STEPS = {
    ("ind_exp", "swap"): ([2.0, 1.8 + 1.2, 1.8 + 1.2], [[2.0], [1.8, 1.2]]),
    ("ind_exp", "add-remove"): ([1.0, 1.8, 1.2], None),
    ("unbounded", "swap"): ([1.0, 0.775 + 0.45, 0.775 + 0.45], [[1.75], [1.75]]),
    ("unbounded", "add-remove"): ([0.875, 0.775, 0.9], None),
}
# Under "add-remove", the ranges of the steps; each of a depth spends all that it may.
ONE = {"ind_exp": [1.0, 1.8, 1.2], "unbounded": [1.25, 1.0, 1.35]}


def costs(base, neighbors, steps):
    """Epsilon and rho of steps, by hand."""
    divisors, worst = STEPS[base, neighbors]
    spent = [steps[0] * divisors[0], max(steps[1] * divisors[1], steps[2] * divisors[2])]
    if worst is None:
        rhos = [range_rho(step * one) for step, one in zip(steps, ONE[base], strict=True)]
        return sum(spent), rhos[0] + max(rhos[1:])
    rhos = [
        sum(range_rho(step * r) for r in ranges)
        for step, ranges in zip(steps[:2], worst, strict=True)
    ]
    return sum(spent), sum(rhos)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("base", "neighbors"), STEPS)
def test_approx_quantiles_spend_what_is_worked_by_hand(base, neighbors, k):
    divisors, worst = STEPS[base, neighbors]
    form = dict(neighbors=neighbors, base=base, split=0.25, max_contributions=k)
    # two depths: half of the budget for each
    pure = privacy.approx_quantiles.calibrate(RECURSION, epsilon=2.0, **form).steps
    assert pure.tolist() == pytest.approx([1.0 / (k * d) for d in divisors], rel=1e-13)
    zcdp = privacy.approx_quantiles.calibrate(RECURSION, rho=0.5, **form).steps
    if worst is None:
        expected = [range_of(0.25) / (k * one) for one in ONE[base]]
        assert zcdp.tolist() == pytest.approx(expected, rel=1e-12)
    for depth, step in zip(worst or (), zcdp, strict=False):
        assert sum(range_rho(k * step * r) for r in depth) == pytest.approx(0.25, rel=1e-12)
    assert worst is None or zcdp[1] == zcdp[2]

    budgets = {"basic": (dict(epsilon=2.0), pure), "zcdp": (dict(rho=0.5), zcdp)}
    for theorem, (budget, steps) in budgets.items():
        made = [guarantee("approx_quantiles", q=RECURSION, **budget, **form)]
        if base == "unbounded":
            search = {name: value for name, value in form.items() if name != "base"}
            down = [1.0 - level for level in RECURSION]
            made += [
                guarantee("unbounded_quantile", q=RECURSION, **budget, **search),
                guarantee("unbounded_quantile", q=down, lower=None, upper=0.0, **budget, **search),
            ]
        epsilon, rho = costs(base, neighbors, k * steps)
        for promise in made:
            assert (promise.delta, promise.bounded_range) == (0.0, None)
            assert (promise.neighbors, promise.composition) == (neighbors, theorem)
            assert promise.epsilon == pytest.approx(epsilon, rel=1e-12)
            assert promise.rho == pytest.approx(rho, rel=1e-12)


def test_approx_quantiles_of_one_level_compose_nothing():
    pure = guarantee("approx_quantiles", q=0.5, epsilon=2.0)
    assert pure == Guarantee(2.0, rho=pure.rho)
    assert pure.rho == pytest.approx(range_rho(2.0), rel=1e-12)
    zcdp = guarantee("approx_quantiles", q=0.5, rho=0.5)
    assert (zcdp.rho, zcdp.composition) == (0.5, "")
    assert zcdp.epsilon == pytest.approx(range_of(0.5), rel=1e-12)


def test_losses_are_those_of_the_worst_record():
    parts = np.array([1.0, 3.0]), np.array([0.5, 0.25]), np.array([0.25, 0.5])
    losses = approx_quantiles._Losses(*parts, np.array([2.0, 5.0]), np.array([1.0, 0.75]))
    swap, add_remove = relation_of("swap"), relation_of("add-remove")
    assert (losses.epsilon(swap), losses.epsilon(add_remove)) == (3.0, 0.5)
    assert losses.rho(swap) == pytest.approx(range_rho(5.0), rel=1e-12)
    assert losses.rho(add_remove) == pytest.approx(range_rho(1.0), rel=1e-12)
    assert losses.rho(add_remove, 3.0) == losses.scaled(3.0).rho(add_remove)


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_two_different_is_the_largest_of_all_pairs(size):
    rng = np.random.default_rng(size)
    for _ in range(200):
        a, b = rng.integers(0, 9, size=(2, size)).astype(float)
        pairs = itertools.permutations(range(size), 2)
        assert approx_quantiles._two_different(a, b) == max(a[u] + b[v] for u, v in pairs)
