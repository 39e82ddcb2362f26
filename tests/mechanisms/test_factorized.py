"""cdf by weighted sums: exact sums, what is read off them, the promise, the noise, accuracy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from conftest import SMALLEST_P, Untouchable, missing_neighbors
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.mechanisms.cdf import _noise_of_sums
from dpq_fast.mechanisms.factorized import numbers_below, weighted_sums, weights_of
from dpq_fast.noise.counts import Gaussian
from dpq_fast.reference.cdf import from_sums

FORM = dict(bounds=(0.0, 4.0), method="factorized", bins=4)


def test_weighted_sums_by_hand():
    assert weighted_sums(np.array([1, 0, 2, 0])).tolist() == [512, 256, 192 + 1024, 160 + 512]
    # exact for all records that there can be, at either end
    for bins in (2, 3, privacy.cdf.MAX_FACTORED):
        counts = np.zeros(bins, dtype=np.int64)
        counts[0] = 2**53 - 1
        counts[-1] = 1
        first, *_, last = weighted_sums(counts).tolist()
        factor = privacy.cdf.prefix_factor(bins).tolist()
        assert first == 512 * (2**53 - 1) and last == factor[-1] * (2**53 - 1) + 512


@given(st.lists(st.tuples(st.integers(0, 2**40), st.integers(-(2**40), 2**40)), min_size=2))
def test_numbers_below_equal_reference(pairs):
    counts, draws = (list(column) for column in zip(*pairs, strict=True))
    found = numbers_below(weighted_sums(np.array(counts)) + np.array(draws))
    largest = 1.0 + max(counts) + max(map(abs, draws))
    np.testing.assert_allclose(found, from_sums(counts, draws), atol=1e-9 * largest, rtol=0.0)


@pytest.mark.parametrize("bins", [2, 7, 64, privacy.cdf.MAX_FACTORED])
def test_weights_give_ones(bins):
    weights = weights_of(bins)
    assert weights[0] == 1.0 / 512.0 and (0.0 < weights).all() and (weights <= weights[0]).all()
    ones = np.convolve(privacy.cdf.prefix_factor(bins), weights)[:bins]
    np.testing.assert_allclose(ones, 1.0, rtol=1e-12)


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("nan_policy", ["omit", "raise"])
def test_factorized_without_noise_is_that_of_the_records(implementation, nan_policy, neighbors):
    x = [0.5, 0.5, 1.5, 3.5, 9.0]
    found = implementation.cdf(
        x, rho=1e15, neighbors=neighbors, nan_policy=nan_policy, resolution=0, rng=0, **FORM
    )
    for at, share in ((1.0, 0.4), (2.0, 0.6), (3.0, 0.6), (4.0, 1.0)):
        assert found.cdf(at) == pytest.approx(share, abs=1e-5)
    assert found.total == pytest.approx(5.0, abs=1e-4)
    if nan_policy == "raise" and neighbors == "swap":
        assert found.total == 5.0


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_factorized_privacy_by_enumeration(monkeypatch, neighbors, k):
    """Squared lengths of what a neighbor changes, over twice the variance: rho, and no more."""
    seen = {}

    def nothing(self, size, rng):
        seen["sigma"] = self.scale
        return np.zeros(size, dtype=np.int64)

    def kept(counts):
        seen["sums"] = weighted_sums(counts)
        return seen["sums"]

    monkeypatch.setattr(Gaussian, "draw", nothing)
    monkeypatch.setattr("dpq_fast.mechanisms.cdf.weighted_sums", kept)

    def sums(records):
        x = np.array([math.nan if point is None else point + 0.5 for point in records])
        made = dpq.cdf(x, rho=0.3, neighbors=neighbors, max_contributions=k, **FORM)
        assert made.total == pytest.approx(np.count_nonzero(~np.isnan(x)), abs=1e-9)
        return seen["sums"]

    worst = 0
    for records in ([], [0], [3, 0], [0, 1, None], [2, 2, 3, None]):
        for other in missing_neighbors(records, 4, neighbors):
            worst = max(worst, int(((sums(records) - sums(other)) ** 2).sum()))
    spent = k * k * worst / (2 * Fraction(seen["sigma"]) ** 2)
    assert float(spent) == pytest.approx(0.3, rel=1e-12) and spent <= Fraction(0.3)


@pytest.mark.parametrize("public", [True, False])
def test_factorized_noise_has_the_law_of_the_promise(public):
    """Errors of numbers below edges: their variances, and the normal law of the last one."""
    noise, bins, draws = Gaussian(Fraction(900)), 5, 4000
    errors = numbers_below(noise.draw(draws * bins, np.random.default_rng(7)).reshape(draws, bins))
    error = _noise_of_sums(noise, bins, public)
    units = error.units()
    assert units.size == bins + (not public) and units[0] == 0.0 and units[1] == 1.0
    variances = float(error.noise.scale) ** 2 * units[1:]
    for i, variance in enumerate(variances.tolist()):
        square = float((errors[:, i] ** 2).sum()) / variance
        p = min(stats.chi2.cdf(square, draws), stats.chi2.sf(square, draws))
        assert p > SMALLEST_P
        assert stats.kstest(errors[:, i] / math.sqrt(variance), "norm").pvalue > SMALLEST_P


def test_factorized_draws_the_noise_of_the_calibration(monkeypatch):
    drawn = []

    def draw(self, size, rng):
        drawn.append((self.scale, size))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(Gaussian, "draw", draw)
    dpq.cdf([1.0], rho=0.3, neighbors="add-remove", **FORM)
    squared = 512**2 + 256**2 + 192**2 + 160**2
    ((sigma, size),) = drawn
    assert size == 4 and float(sigma) == pytest.approx(math.sqrt(squared / 0.6), rel=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("nan_policy", ["omit", "raise"])
def test_factorized_accuracy_covers_all_intervals(nan_policy):
    """Its range is exceeded by the noise as rarely as it says."""
    rng, x = np.random.default_rng(12), np.arange(400) % 4 + 0.5
    missed, draws, beta = 0, 300, 0.2
    for _ in range(draws):
        released = dpq.cdf(x, rho=0.02, nan_policy=nan_policy, resolution=0, rng=rng, **FORM)
        exact = np.arange(5) * 100.0
        below = released.cdf(released.edges) * released.total
        apart = np.ptp(below - exact)
        missed += apart > released.accuracy(beta)
    assert stats.binom.sf(missed - 1, draws, beta) > SMALLEST_P
    assert missed > 0  # it is no union bound


def test_factorized_is_nearer_than_the_tree():
    """The default under swap, on ages: points are bins of both."""
    rng, errors = np.random.default_rng(5), {"auto": [], "agg_tree": []}
    for _ in range(150):
        x = np.rint(rng.normal(39.0, 13.0, 1_000).clip(17.0, 90.0))
        for method, found in errors.items():
            options = dict(bounds=(0, 100), resolution=1, nan_policy="raise", rng=rng)
            found.append(dpq.cdf(x, rho=0.5, method=method, **options).ks(x))
    assert np.mean(errors["auto"]) < 0.9 * np.mean(errors["agg_tree"])


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (dict(epsilon=1.0), ValueError, "^rho must be given for method 'factorized', got epsilon"),
        (dict(epsilon=1.0, rho=1.0), ValueError, "^exactly one of epsilon and rho"),
        (dict(rho=0.0), ValueError, "^rho must be positive"),
        (dict(rho=1.0, delta=0.1), ValueError, "^delta must be 0 for method 'factorized'"),
        (dict(rho=1.0, bins=1), ValueError, "^bins must be at least 2"),
        (dict(rho=1.0, bins=2**13 + 1), ValueError, "^bins must be at most 8192, got 8193"),
        (dict(rho=1.0, levels=3), TypeError, "^method 'factorized' must have no options but bins"),
        (dict(rho=1e-40), ValueError, "^rho must give noise of a scale of at most 2"),
    ],
)
def test_factorized_rejects_bad_input(implementation, bad, error, message):
    with pytest.raises(error, match=message):
        implementation.cdf(Untouchable(), **FORM | bad)


def test_factorized_charges_the_accountant(implementation):
    accountant = privacy.Accountant(4.0, delta=1e-6, composition="zcdp")
    rho = 0.6 * privacy.zcdp_rho(4.0, 1e-6)
    options = dict(rho=rho, accountant=accountant, rng=1, **FORM)
    implementation.cdf([0.5], **options)
    promise = dict(rho=rho, method="factorized", bins=4)
    assert accountant.history == (privacy.guarantee("cdf", **promise),)
    with pytest.raises(privacy.BudgetExceeded, match="must fit the budget"):
        implementation.cdf(Untouchable(), **options)
