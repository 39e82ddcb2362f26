"""Plans for releases about persons of several rows."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.stats

import dpq_fast as dpq
from dpq_fast._prepared import Prepared
from dpq_fast.data.persons import Persons

ROWS = scipy.stats.geom(1 / 4.0)
GUESS = scipy.stats.norm(50.0, np.hypot(12.0, 5.0))
PLACE = dict(bounds=(0, 100), resolution=0.001)
PERSONS = 500


def table(seed: int):
    """Ids and values of persons whose rows are near each other."""
    rng = np.random.default_rng([seed, 59])
    person = np.repeat(np.arange(PERSONS), ROWS.rvs(PERSONS, random_state=rng))
    middle = rng.normal(50.0, 12.0, PERSONS)
    return person, middle[person] + rng.normal(0.0, 5.0, person.size)


def off(values, weights, q, outputs):
    """The share of the weight between outputs and targets, in persons, in the mean."""
    order = np.argsort(values)
    below = np.append(0.0, np.cumsum(weights[order]) / weights.sum())
    at = below[np.searchsorted(values[order], outputs)]
    return PERSONS * np.abs(at - q).mean()


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("contributions", ["weights", 1, 3])
@pytest.mark.parametrize("q", [[0.5], [0.2, 0.4, 0.6, 0.8]], ids=["one", "four"])
def test_plan_predicts_releases_about_persons(q, contributions, neighbors):
    person = dict(contributions=contributions, neighbors=neighbors, epsilon=0.3, **PLACE)
    plan = dpq.plan(q, n=PERSONS, guess=GUESS, privacy_unit=ROWS, **person)
    assert plan.n.tolist() == [PERSONS]
    found = []
    for seed in range(200):
        ids, values = table(seed)
        out = dpq.quantile(values, q, privacy_unit=ids, rng=seed, **person)
        found.append(off(values, Persons(ids, contributions).weights(values), q, out))
    mean, beside = np.mean(found), np.std(found) / np.sqrt(len(found))
    # five standard errors, and a tenth for what the prediction leaves out
    assert abs(plan.ranks.expected[0] - mean) < 5.0 * beside + 0.1 * mean
    assert plan.shares.expected[0] == plan.ranks.expected[0] / PERSONS


@pytest.mark.slow
@pytest.mark.parametrize("expected_n", [None, 400])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("contributions", ["weights", 1, 3])
def test_plan_takes_the_method_of_a_release(contributions, neighbors, expected_n):
    ids, values = table(0)
    for q in (0.5, [0.001, 0.5], np.linspace(0.05, 0.95, 19)):
        for epsilon in (0.1, 20.0):
            options = dict(
                epsilon=epsilon,
                neighbors=neighbors,
                contributions=contributions,
                expected_n=expected_n,
                **PLACE,
            )
            plan = dpq.plan(q, n=PERSONS, guess=GUESS, privacy_unit=ROWS, releases=100, **options)
            made = Prepared.of(dpq.quantile, values, q, privacy_unit=ids, **options)
            assert plan.method.tolist() == [made.mechanism]


def test_a_weight_is_planned_as_a_record():
    options = dict(bounds=(0, 100), guess=GUESS, epsilon=1.0, releases=100)
    expected = dpq.plan(0.5, n=PERSONS, **options)
    for unit in (4.0, 1, [1, 2, 50], np.arange(1, 9), ROWS):
        plan = dpq.plan(0.5, n=PERSONS, privacy_unit=unit, **options)
        for own, one in zip(plan.ranks, expected.ranks, strict=True):
            np.testing.assert_array_equal(own, one)
        assert plan.title.startswith("Predicted errors of quantile: 1 level, n = 500 persons, by w")


def test_rows_that_persons_keep_are_records_of_their_own():
    options = dict(bounds=(0, 100), guess=GUESS, epsilon=1.0, releases=100)
    plan = dpq.plan(0.5, n=100, privacy_unit=[1, 2, 9], contributions=3, **options)
    one = dpq.plan(0.5, n=200, max_contributions=3, **options)
    np.testing.assert_array_equal(plan.ranks.expected, one.ranks.expected / 2)
    np.testing.assert_array_equal(plan.values.expected, one.values.expected)
    assert "n = 100 persons, up to 3 rows each, neighbors swap" in plan.title
    # persons of as many rows as in the mean
    plan = dpq.plan(0.5, n=100, privacy_unit=2, contributions=3, **options)
    np.testing.assert_array_equal(plan.ranks.expected, one.ranks.expected / 2)


def test_groups_are_of_persons():
    options = dict(bounds=(0, 100), guess=GUESS, epsilon=1.0, releases=100)
    plan = dpq.plan(0.5, groups={"a": 50, "b": 300}, privacy_unit=ROWS, **options)
    one = dpq.plan(0.5, groups={"a": 50, "b": 300}, **options)
    np.testing.assert_array_equal(plan.ranks.expected, one.ranks.expected)
    assert plan.n.tolist() == [50, 300]
    assert "n = 350 persons in 2 groups, by weights, neighbors swap" in plan.title
    fewer = dpq.plan(0.5, groups=[50, 300], privacy_unit=5, contributions=2, **options)
    assert (fewer.ranks.expected > plan.ranks.expected * 0.9).all()


@pytest.mark.slow
def test_target_is_of_persons():
    options = dict(bounds=(0, 100), guess=GUESS, releases=100)
    share = dpq.plan(0.5, n=100, target=0.05, unit="share", privacy_unit=4, **options)
    ranks = dpq.plan(0.5, n=100, target=5, privacy_unit=4, **options)
    assert share.needed == ranks.needed and ranks.ranks.quantile[0] <= 5.0


@pytest.mark.parametrize(
    "given, error, message",
    [
        (dict(privacy_unit=0.5), ValueError, "privacy_unit must be at least 1 row"),
        (
            dict(privacy_unit=[1, np.inf]),
            ValueError,
            "privacy_unit must be at least 1 row",
        ),
        (
            dict(privacy_unit=scipy.stats.poisson(0.1)),
            ValueError,
            "privacy_unit must be at least 1",
        ),
        (
            dict(privacy_unit=[]),
            ValueError,
            "privacy_unit must be a number of rows or a one",
        ),
        (dict(privacy_unit=[[1]]), ValueError, "privacy_unit must be a number of rows or a one"),
        (
            dict(privacy_unit="user"),
            TypeError,
            "privacy_unit must be a guess at",
        ),
        (dict(privacy_unit=True), TypeError, "privacy_unit must be a guess at"),
        (dict(privacy_unit=["a"]), TypeError, "privacy_unit must be"),
        (
            dict(privacy_unit=2, max_contributions=2),
            ValueError,
            "max_contributions must be left out with a privacy_unit, got 2",
        ),
        (
            dict(privacy_unit=2, contributions="rows"),
            ValueError,
            "contributions must be 'weights' or a number of records, got 'rows'",
        ),
        (
            dict(privacy_unit=2, contributions=0),
            ValueError,
            "contributions must be at least 1, got 0",
        ),
        (
            dict(contributions=2),
            ValueError,
            "contributions must be left out without a privacy_unit, got 2",
        ),
    ],
)
def test_plan_refuses_units_by_the_rule(given, error, message):
    with pytest.raises(error, match="^" + re.escape(message)):
        dpq.plan(0.5, n=10, bounds=(0, 1), epsilon=1.0, **given)


def test_plans_of_sums_are_of_what_a_person_adds():
    for made in (dpq.plan_sum, dpq.plan_mean):
        with pytest.raises(TypeError, match=r"^privacy_unit must be left out for a plan$"):
            made(n=10, bounds=(0, 1), privacy_unit=2)
