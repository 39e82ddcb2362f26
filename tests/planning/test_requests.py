"""What a plan is asked for: targets, and what is refused."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import scipy.stats
from predicted import NORMAL

import dpq_fast as dpq
from dpq_fast.planning.requests import LEAST_EPSILON


@pytest.mark.slow
@pytest.mark.parametrize(
    "q, options",
    [
        (0.5, dict(n=1_000, target=20.0)),
        ([0.1, 0.5, 0.9], dict(n=1_000, target=12.0)),
        ([0.1, 0.5, 0.9], dict(n=1_000, target=25.0, over="worst")),
        ([0.1, 0.5, 0.9], dict(n=1_000, target=0.03, unit="share", level=0.5)),
        (
            [0.1, 0.5, 0.9],
            dict(n=1_000, target=1.0, unit="value", guess=NORMAL, method="joint_exp"),
        ),
        (0.5, dict(groups=[100, 1_000], target=0.05, unit="share")),
        ([0.1, 0.5, 0.9], dict(n=1_000, target=12.0, method="all", releases=100)),
    ],
)
def test_target_is_reached_by_the_smallest_epsilon(q, options):
    options = dict(bounds=(0, 120)) | options
    plan = dpq.plan(q, **options)
    target, unit, over = (options.pop(name, None) for name in ("target", "unit", "over"))

    def error(made):
        errors = made.values if unit == "value" else made.ranks
        errors = errors.worst if over == "worst" else errors.quantile
        errors = errors / made.n if unit == "share" else errors
        return errors.min() if options.get("method") == "all" else errors.max()

    assert set(plan.epsilon.tolist()) == {plan.needed}
    assert float(f"{plan.needed:.3g}") == plan.needed
    assert error(plan) <= target
    # the fewer the releases, the less it is certain
    less = plan.needed / (1.2 if "releases" in options else 1.04)
    assert error(dpq.plan(q, epsilon=less, **options)) > target
    every = "" if "guess" in options else ", for every shape"
    assert f"Smallest epsilon for the target{every}: {plan.needed:.3g}" in str(plan)


@pytest.mark.slow
def test_smaller_targets_need_more():
    needed = [
        dpq.plan([0.25, 0.5], n=2_000, bounds=(0, 120), guess=NORMAL, target=target).needed
        for target in (5.0, 20.0, 80.0)
    ]
    assert needed == sorted(needed, reverse=True)
    assert len(set(needed)) == 3


def test_target_that_any_epsilon_reaches_has_the_least_one():
    options = dict(n=100, bounds=(0, 120), guess=NORMAL, method="joint_exp", releases=100)
    assert dpq.plan(0.5, target=1e6, **options).needed == LEAST_EPSILON


GOOD = dict(n=100, bounds=(0, 10), epsilon=1.0)


BAD = [
    (dict(n=0), ValueError, "n must be at least 1, got 0"),
    (dict(n=None), TypeError, "n must be an integer, got None"),
    (dict(n=1.5), TypeError, "n must be an integer, got 1.5"),
    (dict(epsilon=0.0), ValueError, "epsilon must be positive and finite, got 0.0"),
    (dict(epsilon=[1.0, -1.0]), ValueError, "epsilon must be positive and finite, got -1.0"),
    (dict(epsilon=[]), ValueError, "epsilon must hold at least one budget, got none"),
    (dict(epsilon="1"), TypeError, "epsilon must be a real number, got '1'"),
    (dict(target=1.0), ValueError, "epsilon must be left out with a target"),
    (dict(epsilon=None, target=0), ValueError, "target must be positive and finite, got 0.0"),
    (
        dict(epsilon=None, target=1e-9, n=1_000, method="agg_tree", guess=NORMAL, bounds=(0, 120)),
        ValueError,
        "target must be an error that some epsilon up to 100 reaches, got 1e-09 where ",
    ),
    (dict(unit="people"), ValueError, "unit must be one of 'ranks', 'share', 'value'"),
    (dict(unit="value"), ValueError, "guess or prior must be given for unit='value'"),
    (dict(over="median"), ValueError, "over must be one of 'mean', 'worst'"),
    (dict(level=1.0), ValueError, "level must lie strictly between 0 and 1, got 1.0"),
    (dict(level=math.nan), ValueError, "level must lie strictly between 0 and 1, got nan"),
    (dict(releases=99), ValueError, "releases must be at least 100, got 99"),
    (dict(releases=10**7), ValueError, "releases must be at most 1,000,000, got 10000000"),
    (dict(method="csmooth"), ValueError, "method must be one of 'auto', 'all', 'joint_exp'"),
    (dict(neighbors="replace"), ValueError, "neighbors must be one of 'swap', 'add-remove'"),
    (dict(resolution=0), ValueError, "resolution must be positive for a plan, got 0.0"),
    (dict(resolution=50), ValueError, "resolution must leave at least two of its multiples"),
    (dict(dither=1), TypeError, "dither must be True or False, got 1"),
    (
        dict(dither=True, method="agg_tree"),
        ValueError,
        "dither must be left out for method 'agg_tree', got True",
    ),
    (dict(max_contributions=0), ValueError, "max_contributions must be at least 1, got 0"),
    (dict(bounds=(1, 1)), ValueError, "bounds must be finite with low < high"),
    (dict(bounds=None), ValueError, "guess must be given without bounds"),
    (
        dict(bounds=None, guess=[1.0], method="joint_exp"),
        ValueError,
        "bounds must be given for method='joint_exp'",
    ),
    (
        dict(guess=scipy.stats.uniform(20, 30)),
        ValueError,
        "guess must have mass between bounds, got none in (0.0, 10.0)",
    ),
    (dict(guess=[-1.0, 11.0]), ValueError, "guess must have mass between bounds"),
    (dict(guess=[]), ValueError, "guess must hold at least one record, got none"),
    (dict(guess=[1.0, math.nan]), ValueError, "guess must hold finite records"),
    (dict(guess=[[1.0]]), ValueError, "guess must be one-dimensional, got 2 dimensions"),
    (dict(guess="normal"), TypeError, "guess must be a distribution with ppf and cdf, or public"),
    (dict(guess=["a"]), TypeError, "guess must be real numbers, got dtype"),
    (dict(groups=[5]), ValueError, "n must be left out with groups"),
    (dict(groups=[0], n=None), ValueError, "groups must be at least 1, got 0"),
    (dict(groups=[], n=None), ValueError, "groups must hold at least one size, got none"),
    (dict(groups="ab", n=None), TypeError, "groups must be sizes, a mapping or a sequence of"),
    (
        dict(groups=[5], n=None, method="agg_tree"),
        ValueError,
        "method must be 'auto', 'joint_exp' or 'two_stage' for groups, got 'agg_tree'",
    ),
    (
        dict(groups=[5], n=None, bounds=None, guess=[1.0]),
        ValueError,
        "bounds must be given for groups",
    ),
    (dict(public_by=1), TypeError, "public_by must be True or False, got 1"),
]


@pytest.mark.parametrize(("given", "error", "message"), BAD)
def test_plan_refuses_by_the_rule(given, error, message):
    with pytest.raises(error, match="^" + re.escape(message)):
        dpq.plan(0.5, **(GOOD | given))


def test_plan_refuses_levels_by_the_rule():
    with pytest.raises(ValueError, match="q must lie in"):
        dpq.plan(1.5, **GOOD)


def test_plan_refuses_a_guess_without_numbers():
    class Nowhere:
        def ppf(self, u):
            return np.full(np.shape(u), math.nan)

        def cdf(self, x):
            return np.full(np.shape(x), 0.5) + 0.1 * (np.asarray(x) > 0.0)

    with pytest.raises(ValueError, match="guess must have a ppf that is not NaN between 0 and 1"):
        dpq.plan(0.5, guess=Nowhere(), **GOOD)


def test_plan_says_what_number_of_records_a_release_goes_by():
    options = dict(n=500, bounds=(0, 120), guess=NORMAL, epsilon=1.0, releases=100)
    assert "expected_n" not in dpq.plan([0.25, 0.5], **options).title
    hidden = dpq.plan([0.25, 0.5], neighbors="add-remove", **options)
    assert "bounds [0, 120], expected_n 10,000, guess" in hidden.title
    told = dpq.plan([0.25, 0.5], neighbors="add-remove", expected_n=500, **options)
    assert "expected_n 500" in told.title
    with pytest.raises(ValueError, match="expected_n must be at least 1, got 0"):
        dpq.plan([0.25, 0.5], expected_n=0, **options)
