"""Predictions by method against simulated releases and enumerated laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from predicted import AGES, NORMAL, assert_predicted, distances, rank_errors

import dpq_fast as dpq
import enumeration

CASES = {
    "ind_exp": (0.3, dict(n=500, bounds=(-50, 150), epsilon=0.5), NORMAL),
    "ind_exp, ties": (0.5, dict(n=500, bounds=(0, 120), resolution=1, epsilon=0.05), AGES),
    "ind_exp, levels": (
        [0.2, 0.5],
        dict(n=300, bounds=(-50, 150), epsilon=1.0, method="ind_exp"),
        NORMAL,
    ),
    "joint_exp": ([0.1, 0.5, 0.8], dict(n=1_000, bounds=(-50, 150), epsilon=0.3), NORMAL),
    "joint_exp, ties": (
        [0.25, 0.5, 0.75],
        dict(n=400, bounds=(0, 120), resolution=1, epsilon=0.3, method="joint_exp"),
        AGES,
    ),
    "joint_exp, no dither": (
        [0.25, 0.75],
        dict(n=400, bounds=(0, 120), resolution=1, epsilon=0.3, dither=False, method="joint_exp"),
        AGES,
    ),
    "approx_quantiles": (
        [0.1, 0.3, 0.5, 0.7, 0.9],
        dict(n=1_000, bounds=(-50, 150), epsilon=1.0, method="approx_quantiles"),
        NORMAL,
    ),
    "agg_tree": (
        [0.1, 0.3, 0.5, 0.7, 0.9],
        dict(n=1_000, bounds=(-50, 150), epsilon=0.3, method="agg_tree"),
        NORMAL,
    ),
    "agg_tree, ties": (
        [0.25, 0.5],
        dict(n=1_000, bounds=(0, 120), resolution=1, epsilon=0.1, neighbors="add-remove"),
        AGES,
    ),
    "unbounded_quantile": (
        0.6,
        dict(n=500, bounds=None, epsilon=0.5, method="unbounded_quantile"),
        scipy.stats.lognorm(1.0),
    ),
    "ind_exp, prior": (
        0.5,
        dict(n=60, bounds=(1, 1e9), epsilon=0.5, prior="log"),
        scipy.stats.lognorm(0.8, scale=math.exp(10.5)),
    ),
    "joint_exp, prior": (
        [0.25, 0.75],
        dict(n=300, bounds=(1, 1e9), epsilon=0.5, prior="log", method="joint_exp"),
        scipy.stats.lognorm(0.8, scale=math.exp(10.5)),
    ),
    "agg_tree, prior": (
        [0.1, 0.3, 0.5, 0.7, 0.9],
        dict(n=500, bounds=(1, 1e9), epsilon=1.0, prior="log", method="agg_tree"),
        scipy.stats.lognorm(0.8, scale=math.exp(10.5)),
    ),
    "several records of a person": (
        0.5,
        dict(n=500, bounds=(-50, 150), epsilon=2.0, max_contributions=3),
        NORMAL,
    ),
}


def records_of(guess, n, rng):
    if isinstance(guess, np.ndarray):
        return rng.choice(guess, n)
    return guess.rvs(n, random_state=rng)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_plan_predicts_simulated_releases(name):
    q, options, guess = CASES[name]
    plan = dpq.plan(q, guess=guess, expected_n=options["n"], **options)
    assert plan.chosen[0] or options.get("method", "auto") != "auto"
    call = dict(options)
    n = call.pop("n")
    rng, ranks, values, worst = np.random.default_rng(7), [], [], []
    for _ in range(1_000):
        x = records_of(guess, n, rng)
        if call.get("resolution") and not isinstance(guess, np.ndarray):
            x = np.round(x)
        out = np.atleast_1d(dpq.quantile(x, q, expected_n=n, rng=rng, **call))
        missed = rank_errors(x, np.atleast_1d(q), out)
        ranks.append(missed.mean())
        worst.append(missed.max())
        values.append(distances(x, q, out).mean())
    (uncertainty,) = plan.uncertainty
    uncertainty = max(uncertainty, 0.02)
    # a quantile of discrete errors is one of them
    slack = 1.0 if np.size(q) == 1 or options.get("resolution") else 0.5
    assert_predicted(
        (plan.ranks.expected[0], plan.ranks.quantile[0]), uncertainty, np.array(ranks), slack=slack
    )
    off = abs(plan.ranks.worst[0] - np.quantile(worst, 0.95, method="inverted_cdf"))
    assert off <= 0.2 * plan.ranks.worst[0] + slack
    assert plan.values.expected[0] == pytest.approx(np.mean(values), rel=0.15)


@pytest.mark.parametrize("selection", ["swap", "add-remove"])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 1.0])
def test_one_level_is_predicted_by_its_exact_law(q, selection):
    """All samples of a guess at one record are the same."""
    n, points, record, epsilon = 4, 6, 2, 1.5
    plan = dpq.plan(
        q,
        n=n,
        guess=[float(record)],
        bounds=(0, points - 1),
        resolution=1,
        epsilon=epsilon,
        neighbors=selection,
        method="ind_exp",
    )
    sensitivity = 1.0 if selection == "swap" else max(q, 1.0 - q)
    records = [record] * n
    rate = epsilon / (2.0 * sensitivity)
    scores = [rate * float(enumeration.depth(records, q, o)) for o in range(points)]
    law = np.exp(enumeration.permute_and_flip(scores))
    missed = rank_errors(np.array(records), q, np.arange(points))
    assert plan.ranks.expected[0] == pytest.approx(law @ missed, rel=1e-6)
    away = np.abs(np.arange(points) - record) * (missed > 0.0)
    assert plan.values.expected[0] == pytest.approx(law @ away, rel=1e-6)
    reached = np.cumsum(law[np.argsort(missed)])
    assert plan.ranks.quantile[0] == np.sort(missed)[np.searchsorted(reached, 0.95)]
    assert plan.uncertainty[0] < 1e-12


def test_records_are_as_the_prior_says_where_there_is_no_guess():
    prior = scipy.stats.norm(40.0, 10.0)
    options = dict(n=500, bounds=(0, 120), resolution=1, epsilon=0.3, prior=prior)
    own, told = dpq.plan(0.5, **options), dpq.plan(0.5, guess=prior, **options)
    assert own.values.expected[0] == pytest.approx(told.values.expected[0], rel=0.1)
    assert own.title.endswith("guess: the prior")


def test_no_bounds_is_a_search():
    plan = dpq.plan(0.5, n=500, guess=NORMAL, epsilon=1.0)
    assert plan.method.tolist() == ["unbounded_quantile"]
    assert "no bounds" in str(plan)


def test_resolution_rounds_records_of_a_distribution():
    options = dict(n=10_000, bounds=(0, 120), guess=NORMAL, epsilon=1.0)
    assert dpq.plan(0.5, resolution=1, **options).ranks.quantile[0] == 0.0
    assert dpq.plan(0.5, **options).ranks.quantile[0] > 0.0
    # public records are as they are
    options["guess"] = np.linspace(0.3, 80.3, 500)
    assert dpq.plan(0.5, resolution=1, **options).ranks.quantile[0] > 0.0


def test_discrete_distributions_are_guesses():
    plan = dpq.plan(
        [0.25, 0.5],
        n=1_000,
        bounds=(0, 50),
        resolution=1,
        guess=scipy.stats.poisson(9),
        method="all",
        epsilon=2.0,
        releases=100,
    )
    assert (plan.ranks.expected < 2.0).all()
