"""Public samples."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from predicted import AGES, NORMAL

import dpq_fast as dpq
from dpq_fast.data.lattice import Lattice
from dpq_fast.planning import samples
from dpq_fast.planning.guesses import Guess

RANKS = (np.arange(1_000) + 0.5) / 1_000.0


def test_guesses_of_public_records_are_these_and_others_between_them():
    guess = Guess.of([5.0, 2.0, 1.0, 2.0], None)
    assert guess.values(np.array([0.1, 0.3, 0.6, 0.9])).tolist() == [1.0, 2.0, 2.0, 5.0]
    assert guess.below(np.array([1.0, 2.0, 3.0, 6.0])).tolist() == [0.0, 0.25, 0.75, 1.0]
    lattice = Lattice.between((0, 10), 1, None, None)[1]
    between = guess.rounded(lattice).of_size(1_000).values(RANKS)
    assert set(between) == {1.0, 2.0, 4.0, 5.0}  # as these, they are on the lattice
    other = Guess.of([5.0, 2.5, 1.0], None)
    assert np.unique(other.rounded(lattice).of_size(1_000).values(RANKS)).size == RANKS.size


def test_guesses_of_a_prior_are_as_likely_as_it_says():
    law = scipy.stats.norm(4.0, 1.5)
    lattice = Lattice.between((0, 10), 1, None, law)[1]
    guess, points = Guess.of_prior(lattice), np.arange(11.0)
    values = guess.values(RANKS)
    shares = (values[:, None] == points).mean(axis=0)
    np.testing.assert_allclose(shares, law.pdf(points), atol=0.01)
    np.testing.assert_allclose(guess.below(points), np.append(0.0, shares.cumsum()[:-1]), atol=1e-3)


def test_public_samples_have_the_order_statistics_of_uniform_records():
    n, places = 10_000, samples.places_of(10_000, np.array([2_500.0, 5_000.0]))
    guess = Guess.of(scipy.stats.uniform(), None)
    drawn = [samples.PublicSample(guess, n, places, samples.public_rng(0, i)) for i in range(2_000)]
    for rank in (1, 2_500, 5_017, 10_000):
        at = np.searchsorted(places, rank)
        assert places[at] == rank
        u = np.array([sample._u[at] for sample in drawn])
        law = scipy.stats.beta(rank, n + 1 - rank)
        assert scipy.stats.kstest(u, law.cdf).pvalue > 1e-6
    gaps = np.array([np.diff(sample._u)[np.searchsorted(places, 5_000)] for sample in drawn])
    assert scipy.stats.kstest(gaps, scipy.stats.beta(1, n).cdf).pvalue > 1e-6


@pytest.mark.parametrize("n", [1, 2, 63, 1_000, 10**6, 2**53])
def test_public_samples_have_all_records_once(n):
    targets = np.array([0.0, 0.1, 0.5, 1.0]) * n
    places = samples.places_of(n, targets)
    assert places[0] == 1 and places[-1] == n and (np.diff(places) > 0).all()
    guess = Guess.of(NORMAL, None)
    sample = samples.PublicSample(guess, n, places, samples.public_rng(0, 0))
    assert sample.weights.sum() == n and (sample.weights > 0).all()
    assert (np.diff(sample.values) >= 0.0).all()
    assert sample.counts_below(np.array([0.0, 1.0])).tolist() == [0, n]
    shares = np.linspace(0.0, 1.0, 101)
    below = sample.counts_below(shares)
    assert (np.diff(below) >= 0).all()
    if n <= samples.NEAR:
        u = sample._u
        assert below.tolist() == [(u < share).sum() for share in shares]
    near = np.abs(places[:, None] - np.rint(targets)).min(axis=1)
    steps = np.diff(places, prepend=0)
    assert (steps[near < samples.NEAR - 1] == 1).all()
    assert (steps <= (near + steps) * samples.COARSE * 1.1 + 2).all()


@pytest.mark.parametrize("q, method", [(0.5, "ind_exp"), ([0.2, 0.5, 0.9], "two_stage")])
def test_rank_errors_hardly_depend_on_many_records(q, method):
    guess = scipy.stats.norm(0.5, 1.0 / 40.0)
    plans = [
        dpq.plan(q, n=n, bounds=(0, 1), epsilon=0.5, resolution=2.0**-40, guess=guess)
        for n in (10**4, 10**8)
    ]
    few, many = (plan.ranks.quantile[0] for plan in plans)
    assert [plan.method[0] for plan in plans] == [method, method]
    assert few == pytest.approx(many, rel=0.25)


@pytest.mark.slow
def test_more_releases_leave_less_uncertainty():
    options = dict(n=400, bounds=(0, 120), resolution=1, guess=AGES, epsilon=0.3)
    few, many = (dpq.plan([0.25, 0.5, 0.75], releases=each, **options) for each in (1_000, 20_000))
    assert many.uncertainty[0] < few.uncertainty[0] / 2.0
    assert samples.numbers_of(1_000, 500) == (100, 10)
    assert samples.numbers_of(20_000, 500) == (2_000, 10)
    assert samples.numbers_of(20_000, 10_000) == (300, 67)
    assert samples.numbers_of(100, 10**6) == (100, 1)


def test_dithers_are_order_statistics_of_each_run():
    values, rng = np.array([1, 1, 1, 2, 5, 5]), np.random.default_rng(1)
    weights = np.array([1, 7, 1, 1, 40, 1])
    drawn = np.array([samples.ordered_shares(values, weights, rng) for _ in range(3_000)])
    assert (drawn >= 0.0).all() and (drawn < 1.0).all()
    for run in (slice(0, 3), slice(4, 6)):
        assert (np.diff(drawn[:, run]) > 0.0).all()
    for entry, rank, n in ((0, 1, 9), (2, 9, 9), (3, 1, 1), (5, 41, 41)):
        law = scipy.stats.beta(rank, n + 1 - rank)
        assert scipy.stats.kstest(drawn[:, entry], law.cdf).pvalue > 1e-6
    assert drawn[:, 1].mean() == pytest.approx(4.5 / 10.0, abs=0.01)
    assert drawn[:, 4].mean() == pytest.approx(20.0 / 42.0, abs=0.01)
    assert abs(np.corrcoef(drawn[:, 2], drawn[:, 3])[0, 1]) < 0.1  # runs are independent


def test_lumps_of_a_run_do_not_hide_what_is_near_a_target():
    """Simulated releases miss .5 +- .3 ranks; 3.7 were predicted when lumps were in no order."""
    guess = np.repeat([10.0, 20.0, 30.0, 40.0], [202, 101, 399, 298])
    options = dict(guess=guess, bounds=(0, 50), resolution=1, method="joint_exp")
    plan = dpq.plan([0.2, 0.3, 0.4, 0.6, 0.7], n=10**5, epsilon=1.0, **options)
    assert plan.ranks.expected[0] < 1.0


@pytest.mark.parametrize("resolution", [None, 1.0])
def test_fewer_public_records_than_are_planned_for_are_no_ties(resolution):
    """Each was in forty places at once: 16 ranks were predicted where releases miss two."""
    records = np.random.default_rng(1).normal(45.0, 15.0, size=500)
    if resolution is not None:
        records = np.unique(np.rint(records * 1_000.0))  # each once, and on the lattice
    bounds = (0, 120) if resolution is None else (0, 120_000)
    options = dict(n=20_000, bounds=bounds, resolution=resolution, epsilon=1.0)
    few = dpq.plan(0.5, guess=records, **options)
    scale = 1.0 if resolution is None else 1_000.0
    told = dpq.plan(0.5, guess=scipy.stats.norm(45.0 * scale, 15.0 * scale), **options)
    # how dense 500 records are at their median is theirs
    assert few.ranks.expected[0] == pytest.approx(told.ranks.expected[0], rel=0.5)
    assert few.values.expected[0] == pytest.approx(told.values.expected[0], rel=0.6)
