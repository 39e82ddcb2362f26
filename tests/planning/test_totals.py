"""Plans of sums and means."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.stats
from predicted import NORMAL, assert_predicted

import dpq_fast as dpq


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, options",
    [
        ("sum", dict(epsilon=0.5)),
        ("sum", dict(epsilon=1.0, q=None, lower=0.0, upper=20.0, resolution=0.01)),
        ("sum", dict(epsilon=1.0, q=0.95, upper=50.0, method="ind_exp")),
        ("mean", dict(epsilon=0.5)),
        ("mean", dict(epsilon=1.0, q=None, lower=0.0, upper=20.0, neighbors="add-remove")),
    ],
)
def test_plans_of_totals_predict_simulated_releases(name, options):
    guess, n = scipy.stats.lognorm(1.0), 800
    plan = getattr(dpq, f"plan_{name}")(n=n, guess=guess, releases=2_500, **options)
    assert plan.ranks is None and plan.shares is None
    rng, errors = np.random.default_rng(11), []
    for _ in range(1_000):
        x = guess.rvs(n, random_state=rng)
        out = getattr(dpq, name)(x, rng=rng, **options)
        errors.append(abs(out - getattr(np, name)(x)))
    predicted = plan.values.expected[0], plan.values.quantile[0]
    assert_predicted(predicted, max(plan.uncertainty[0], 0.03), np.array(errors))
    assert plan.method[0] == (
        "none" if options.get("q", 0) is None else options.get("method", "unbounded")
    )


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_errors_of_sums_between_public_bounds_are_the_noise(neighbors):
    """A Laplace law: records between the bounds lose nothing to them."""
    asked = dict(n=1_000, guess=scipy.stats.uniform(0, 10), bounds=(0, 10), neighbors=neighbors)
    plan = dpq.plan_sum(epsilon=0.5, releases=2_000, **asked)
    assert plan.values.expected[0] == pytest.approx(10 / 0.5, rel=0.1)
    assert plan.values.quantile[0] == pytest.approx(10 / 0.5 * np.log(20), rel=0.1)
    assert plan.chosen.tolist() == [True] and plan.ranks is None
    mean = dpq.plan_mean(epsilon=0.5, releases=2_000, **(asked | dict(neighbors="swap")))
    assert mean.values.expected[0] == pytest.approx(10 / 0.5 / 1_000, rel=0.1)


@pytest.mark.slow
def test_target_of_totals():
    options = dict(n=1_000, q=None, lower=0, upper=10, guess=scipy.stats.uniform(0, 10))
    plan = dpq.plan_mean(target=0.5, **options)
    assert plan.values.quantile[0] <= 0.5
    less = dpq.plan_mean(epsilon=plan.needed / 1.05, **options)
    assert less.values.quantile[0] > 0.5


@pytest.mark.parametrize("function", [dpq.plan_sum, dpq.plan_mean])
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (dict(n=0), ValueError, "n must be at least 1, got 0"),
        (dict(guess=None), ValueError, "guess must be given unless bounds are, or q is None"),
        (dict(epsilon=-1), ValueError, "epsilon must be positive and finite, got -1.0"),
        (dict(accountant=None), TypeError, "accountant must be left out for a plan"),
        (dict(rng=1), TypeError, "rng must be left out for a plan"),
        (dict(q=2.0), ValueError, "q must lie in [0, 1]"),
        (dict(target=-1.0, epsilon=None), ValueError, "target must be positive and finite"),
        (dict(upper=-5.0), ValueError, ""),
    ],
)
def test_plans_of_totals_refuse_by_the_rule(function, given, error, message):
    options = dict(n=100, guess=NORMAL, epsilon=1.0) | given
    with pytest.raises(error, match="^" + re.escape(message)):
        function(**options)


@pytest.mark.parametrize("function", [dpq.plan_sum, dpq.plan_mean])
def test_plans_take_the_bounds_of_a_public_clip(function):
    of_bounds = function(n=100, bounds=(2, 10), epsilon=1.0, releases=100)
    of_ends = function(n=100, q=None, lower=2, upper=10, epsilon=1.0, releases=100)
    assert str(of_bounds) == str(of_ends)
    assert of_bounds.method[0] == "none"
    with pytest.raises(ValueError, match=r"^bounds must be left out where q, lower or upper is"):
        function(n=100, bounds=(2, 10), upper=10, epsilon=1.0)
