"""Plans of groups."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from predicted import AGES, assert_predicted, rank_errors
from scipy import stats

import dpq_fast as dpq
from dpq_fast.planning.groups import grid_of


@pytest.mark.slow
@pytest.mark.parametrize("q", [0.25, [0.25, 0.75]])
def test_plan_of_groups_predicts_simulated_releases(q):
    sizes = {"few": 60, "many": 600}
    options = dict(epsilon=1.0 if np.size(q) == 2 else 0.2, bounds=(0, 120), resolution=1)
    plan = dpq.plan(q, groups=sizes, guess=AGES, **options)
    assert plan.group.tolist() == ["few", "many"]
    assert plan.n.tolist() == [60, 600]
    rng = np.random.default_rng(9)
    by = np.repeat([0, 1], [60, 600])
    errors = []
    for _ in range(1_000):
        x = rng.choice(AGES, 660)
        out = dpq.quantile_by(x, by, q, groups=[0, 1], rng=rng, **options)
        found = np.atleast_2d(out.values.T).T
        errors.append([rank_errors(x[by == g], np.atleast_1d(q), found[g]).mean() for g in (0, 1)])
    for row, missed in enumerate(np.array(errors).T):
        predicted = plan.ranks.expected[row], plan.ranks.quantile[row]
        assert_predicted(predicted, max(plan.uncertainty[row], 0.02), missed, slack=0.5)


def test_groups_get_the_budget_that_their_keys_leave_them():
    options = dict(groups=[500], epsilon=1.0, bounds=(0, 120))
    moved = dpq.plan([0.1, 0.9], **options)
    public = dpq.plan([0.1, 0.9], public_by=True, **options)
    assert public.ranks.expected[0] < moved.ranks.expected[0]


@pytest.mark.slow
def test_many_sizes_of_groups_are_taken_for_near_ones():
    sizes = np.arange(100, 900, 7).tolist()
    plan = dpq.plan(0.5, groups=sizes, bounds=(0, 120), epsilon=0.2, releases=100)
    assert plan.n.tolist() == sizes
    grid = grid_of(sizes)
    assert len(set(grid)) < 20
    assert (np.abs(np.log(np.array(grid) / sizes)) <= math.log(10.0) / 32.0 + 0.01).all()


def test_plan_of_groups_prints_their_names():
    text = str(dpq.plan([0.25, 0.75], groups={"north": 1_000, "south": 50}, bounds=(0, 120)))
    assert "quantile_by: 2 levels, n = 1,050 in 2 groups" in text
    assert re.search(r"0\.01 +joint_exp +south +50 ", text)


def test_plans_of_groups_go_by_what_their_sizes_are_said_to_be():
    options = dict(groups=[900, 1_100], bounds=(1, 1e5), resolution=1, epsilon=2.0, releases=100)
    options["guess"] = stats.lognorm(0.8, scale=100.0)
    told = dpq.plan(0.99, expected_n=1_000, **options)
    assert set(told.method.tolist()) == {"two_stage"}
    untold = dpq.plan(0.99, **options)
    assert set(untold.method.tolist()) == {"ind_exp"}
    assert (told.values.expected < untold.values.expected / 10.0).all()
    named = dpq.plan(0.99, method="two_stage", expected_n=1_000, **options)
    np.testing.assert_array_equal(named.values.expected, told.values.expected)
    one = dpq.plan(0.5, method="joint_exp", **options)
    assert set(one.method.tolist()) == {"joint_exp"}


@pytest.mark.slow
@pytest.mark.parametrize(("neighbors", "public_by"), [("swap", False), ("swap", True)])
def test_plan_of_groups_predicts_two_stages(neighbors, public_by):
    guess = stats.lognorm(0.8, scale=100.0)
    options = dict(epsilon=1.0, bounds=(1, 1e5), resolution=1, expected_n=1_000)
    options |= dict(neighbors=neighbors, public_by=public_by)
    plan = dpq.plan([0.5, 0.99], groups=[1_000], guess=guess, **options)
    assert plan.method.tolist() == ["two_stage"]
    rng, by = np.random.default_rng(9), np.zeros(1_000, dtype=int)
    errors = []
    for _ in range(400):
        x = guess.rvs(1_000, random_state=rng).round()
        found = dpq.quantile_by(x, by, [0.5, 0.99], groups=[0], rng=rng, **options)[0]
        errors.append(rank_errors(x, [0.5, 0.99], found).mean())
    predicted = plan.ranks.expected[0], plan.ranks.quantile[0]
    assert_predicted(predicted, max(plan.uncertainty[0], 0.05), np.array(errors), slack=0.5)
