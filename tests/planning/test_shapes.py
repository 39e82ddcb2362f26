"""Plans without a guess: ranges over shapes, and what an epsilon for a target reaches."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.stats
from predicted import rank_errors

import dpq_fast as dpq
from dpq_fast.planning import quantiles
from dpq_fast.planning.guesses import Guess
from dpq_fast.planning.samples import PublicSample, public_rng
from dpq_fast.planning.shapes import SHAPES, guesses_of

U = (np.arange(2_000) + 0.5) / 2_000.0


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_distributions_between_the_bounds(name):
    low, high = -3.0, 7.0
    guess = guesses_of(None, (low, high))[0][name]
    values = guess.values(U)
    assert low <= values.min() and values.max() <= high and (np.diff(values) >= 0.0).all()
    # the share below what lies next to a value is the share that is drawn there
    between = (values[1:] + values[:-1])[values[1:] > values[:-1]] / 2.0
    below = np.array([(values < at).mean() for at in between])
    np.testing.assert_allclose(guess.below(between), below, atol=0.51 / U.size)
    np.testing.assert_allclose(guess.below(np.array([low, high + 1.0])), [0.0, 1.0], atol=1e-15)


AT = np.array([0.02, 0.11, 0.33, 0.61, 0.9, 0.97])
NORMAL = scipy.stats.norm.ppf
# Of each shape the values at AT, by what it is called.
NAMED = {
    "even": AT,
    "normal (1/8 of the bounds)": 0.5 + NORMAL(AT) / 8,
    "normal (1/40)": 0.5 + NORMAL(AT) / 40,
    "normal (1/1,000)": 0.5 + NORMAL(AT) / 1_000,
    "Cauchy (1/200)": scipy.stats.cauchy(0.5, 1 / 200).ppf(AT),
    "lognormal (1/200)": scipy.stats.lognorm(1, scale=1 / 200).ppf(AT),
    "80% at the lower bound": [0, 0, 0, 0, *scipy.stats.lognorm(1, scale=1 / 50).ppf([0.5, 0.85])],
    "half in one place": 0.5 + NORMAL([0.02, 0.11, 0.5, 0.5, 0.9, 0.97]) / 40,
    "20 round numbers": [0.025, 0.125, 0.325, 0.625, 0.925, 0.975],
    "two clusters (1/1,000)": (
        np.repeat([0.25, 0.75], 3) + NORMAL([0.04, 0.22, 0.66, 0.22, 0.8, 0.94]) / 1_000
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_what_they_are_called(name):
    guess = guesses_of(None, (-3.0, 7.0))[0][name]
    expected = -3.0 + 10.0 * np.clip(NAMED[name], 0.0, 1.0)
    np.testing.assert_allclose(guess.values(AT), expected, rtol=1e-12, atol=1e-12)


def records_of(name, n, bounds, resolution, rng):
    values = guesses_of(None, bounds)[0][name].values(rng.random(n))
    return np.sort(values if resolution is None else np.rint(values / resolution) * resolution)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("q", "options", "over"),
    [
        (0.5, dict(n=2_000, resolution=1.0, target=20.0), "mean"),
        (0.9, dict(n=1_000, target=10.0, neighbors="add-remove"), "mean"),
        ([0.25, 0.5, 0.75], dict(n=1_000, target=30.0), "mean"),
        ([0.1, 0.4], dict(n=3_000, resolution=1.0, target=25.0), "worst"),
    ],
)
def test_what_is_needed_reaches_the_target_on_every_shape(q, options, over):
    """In 95% of releases, less what as many simulated ones are off."""
    bounds, options = (0.0, 120.0), dict(options)
    plan = dpq.plan(q, bounds=bounds, over=over, **options)
    n, target = options.pop("n"), options.pop("target")
    for name in SHAPES:
        rng, near = np.random.default_rng(4), []
        for _ in range(80):
            x = records_of(name, n, bounds, options.get("resolution"), rng)
            for _ in range(5):
                out = dpq.quantile(x, q, epsilon=plan.needed, bounds=bounds, rng=rng, **options)
                missed = rank_errors(x, np.atleast_1d(q), np.atleast_1d(out))
                near.append((missed.max() if over == "worst" else missed.mean()) <= target)
        assert np.mean(near) >= 0.95 - 5.0 * np.sqrt(0.05 * 0.95 / len(near)), name


@pytest.mark.slow
def test_what_is_needed_reaches_the_target_on_the_ages_of_the_front_page():
    """32% of releases did when a plan knew one column only."""
    ages = np.random.default_rng(0).integers(17, 91, size=2_000)
    options = dict(bounds=(0, 120), resolution=1)
    needed = dpq.plan(0.5, n=2_000, target=20, **options).needed
    rng = np.random.default_rng(1)
    out = [dpq.quantile(ages, 0.5, epsilon=needed, rng=rng, **options) for _ in range(500)]
    assert np.mean(rank_errors(ages, 0.5, np.array(out)) <= 20.0) >= 0.95 - 0.05


def test_plan_without_a_guess_is_a_range_over_the_shapes(monkeypatch):
    options = dict(n=200, bounds=(0, 120), resolution=1, method="all", epsilon=1.0, releases=100)
    whole = dpq.plan([0.25, 0.5], **options)
    each = {}
    for name in SHAPES:  # the same samples, one shape after the other
        only = {name: guesses_of(None, (0.0, 120.0))[0][name]}
        with monkeypatch.context() as context:
            context.setattr(quantiles, "guesses_of", lambda *_, only=only: (only, ""))
            context.setattr("dpq_fast.planning.samples.SAMPLES", 25)
            each[name] = dpq.plan([0.25, 0.5], **options)
    for field in ("expected", "quantile", "worst"):
        found = np.array([getattr(made.ranks, field) for made in each.values()])
        np.testing.assert_array_equal(getattr(whole.ranks, field), found.max(axis=0))
        np.testing.assert_array_equal(getattr(whole.least, field), found.min(axis=0))
    for row, name in enumerate(whole.shape):
        assert each[name].ranks.quantile[row] == whole.ranks.quantile[row]
        assert each[name].uncertainty[row] == whole.uncertainty[row]
    assert whole.values is None
    assert whole.columns()["least quantile"].tolist() == whole.least.quantile.tolist()


def test_plan_without_a_guess_says_that_it_is_a_range():
    text = str(dpq.plan(0.5, n=2_000, bounds=(0, 120), resolution=1, target=20, releases=100))
    assert "guess: none (a range over shapes)" in text
    assert re.search(r"ind_exp +\S+ to \S+ +\S+ to \S+\n", text)
    assert "for every shape" in text
    words = " ".join(text.split())
    assert all(name in words for name in SHAPES)
    assert max(map(len, text.splitlines())) <= 80
    told = dpq.plan(0.5, n=2_000, bounds=(0, 120), guess=[40.0, 50.0], epsilon=1.0)
    assert told.least is None and told.shape is None
    assert " to " not in str(told)


def test_target_that_a_shape_does_not_reach_names_it():
    """Records in a thousandth of the bounds are tied on the default lattice."""
    options = dict(n=10**8, bounds=(0, 1), target=5.0, releases=100, method="ind_exp")
    with pytest.raises(ValueError, match=r"target must be .* for the shape '.*'; give a guess"):
        dpq.plan(0.5, **options)


def test_means_without_a_guess_are_a_range():
    """The noise of a count weighs nothing for records in the middle, and most at an end."""
    options = dict(n=1_000, q=None, lower=0, upper=10, neighbors="add-remove", epsilon=0.5)
    plan = dpq.plan_mean(**options)
    assert plan.least.quantile[0] < plan.values.quantile[0]
    assert plan.shape[0] in ("80% at the lower bound", "lognormal (1/200)")


@pytest.mark.parametrize("n", [200, 500])
def test_public_records_are_the_sample_where_there_are_as_many(n):
    records = np.sort(np.random.default_rng(2).integers(0, 40, size=n).astype(float))
    guess = Guess.of(records, None)

    def drawn_by_plans(size, seed):
        return PublicSample(guess, size, np.arange(1, size + 1), public_rng(0, seed)).values

    for seed in range(3):
        np.testing.assert_array_equal(drawn_by_plans(n, seed), records)
    half = [np.median(drawn_by_plans(n // 2, i)) for i in range(200)]
    drawn = [np.median(np.random.default_rng(i).choice(records, n // 2, False)) for i in range(200)]
    assert np.std(half) == pytest.approx(np.std(drawn), rel=0.3)
