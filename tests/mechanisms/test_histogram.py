"""Histograms and numbers of categories: manners, totals, privacy, law."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
from dpq_fast import privacy, reference
from dpq_fast.data.persons import WEIGHT
from dpq_fast.mechanisms import histogram as module
from dpq_fast.mechanisms.histogram import whole_numbers
from dpq_fast.noise.discrete import discrete_laplace_log_prob
from dpq_fast.reference.histogram import adding_up

RNG = np.random.default_rng(1)
X = np.append(RNG.normal(50.0, 12.0, 5_000).round(1), [20.0, 80.0, 35.0, np.inf, -np.inf])


@pytest.fixture
def silent(monkeypatch):
    """Without noise."""
    monkeypatch.setattr(module, "noisy_integers", lambda numbers, *_: numbers)


@pytest.mark.parametrize(
    ("bins", "bounds"),
    [(7, (20, 80)), (1, (20, 80)), ([20, 35, 36, 80], None), ([-np.inf, 35.0, np.inf], None)],
)
@pytest.mark.parametrize("density", [False, True])
def test_without_noise_it_is_numpy_s(silent, bins, bounds, density):
    found, edges = dpq.histogram(X, bins, bounds, density=density, epsilon=1.0)
    finite = X if bounds is None and np.isinf(bins[0]) else X[np.isfinite(X)]
    with np.errstate(invalid="ignore"):
        expected, expected_edges = np.histogram(finite, bins, bounds, density=density)
    if np.isinf(edges).any() and density:
        assert (found == 0.0).any()
        return
    assert found == pytest.approx(expected, rel=1e-12)
    assert edges.tolist() == expected_edges.tolist()
    assert found.dtype == (np.float64 if density else np.int64)


def test_columns_and_counts_and_samples(silent):
    counts = RNG.integers(0, 5, X.size)
    found, _ = dpq.histogram(X, 6, (20, 80), counts=counts, epsilon=1.0)
    finite = np.isfinite(X)
    expected = np.histogram(X[finite], 6, (20, 80), weights=counts[finite])[0]
    assert found.tolist() == expected.tolist()
    for column in (pd.Series(X), X.tolist(), pd.Series(X, dtype="Float64")):
        again = dpq.histogram(column, 6, (20, 80), epsilon=1.0)[0]
        assert again.tolist() == dpq.histogram(X, 6, (20, 80), epsilon=1.0)[0].tolist()
    clamped = dpq.histogram(dpq.Sample.of(X, (30, 60)), 6, (20, 80), epsilon=1.0)[0]
    assert clamped.tolist() == np.histogram(np.clip(X, 30, 60), 6, (20, 80))[0].tolist()


def test_edges_may_be_times(silent):
    days = np.datetime64("2020-01-01") + RNG.integers(0, 366, 3_000).astype("m8[D]")
    ends = np.datetime64("2020-01-01"), np.datetime64("2021-01-01")
    hist, edges = dpq.histogram(days, 3, ends, epsilon=1.0)
    assert edges.dtype == "M8[D]" and (edges[0], edges[-1]) == ends
    assert hist.sum() == days.size
    for cut in (
        [datetime.date(2020, 1, 1), datetime.date(2020, 3, 1), datetime.date(2021, 1, 1)],
        pd.to_datetime(["2020-01-01", "2020-03-01", "2021-01-01"]),
        np.array(["2020-01-01", "2020-03-01", "2021-01-01"], dtype="M8[D]"),
    ):
        hist, shown = dpq.histogram(days, cut, epsilon=1.0)
        before = int((days < np.datetime64("2020-03-01")).sum())
        assert hist.tolist() == [before, days.size - before]
        assert list(shown) == list(cut)
    hours = RNG.integers(1, 9, 2_000).astype("m8[h]")
    hist, _ = dpq.histogram(hours, np.arange(0, 11, 5).astype("m8[h]"), epsilon=1.0)
    assert hist.tolist() == np.histogram(hours.astype(int), [0, 5, 10])[0].tolist()


def test_edges_may_be_decimals(silent):
    cut = [Decimal("20.5"), Decimal(50), Decimal("80.25")]
    hist, edges = dpq.histogram([Decimal("20.5"), Decimal("49.9"), Decimal(80)], cut, epsilon=1.0)
    assert hist.tolist() == [2, 1] and edges.tolist() == [20.5, 50.0, 80.25]


# --- Whole numbers


@given(
    st.lists(st.integers(-1_000, 1_000) | st.integers(-(2**60), 2**60), min_size=1, max_size=12),
    st.integers(0, 3_000),
)
def test_numbers_are_whole_and_add_up(noisy, total):
    found = whole_numbers(np.array(noisy, dtype=object), total)
    assert found.min() >= 0 and found.sum() == total
    free = whole_numbers(np.array(noisy, dtype=object), None)
    assert free.tolist() == [min(max(number, 0), 2**53) for number in noisy]


@given(st.lists(st.integers(-1_000, 1_000), min_size=1, max_size=12), st.integers(0, 3_000))
def test_numbers_are_those_of_the_reference_up_to_a_unit(noisy, total):
    one, two = whole_numbers(np.array(noisy), total), np.array(adding_up(noisy, total))
    assert two.sum() == total and two.min() >= 0
    assert np.abs(one - two).max() <= 1
    assert np.square(one - noisy).sum() == pytest.approx(np.square(two - noisy).sum(), abs=1e-6)


def test_a_public_number_makes_sparse_bins_better():
    rng = np.random.Generator(np.random.PCG64(1))
    x = np.repeat([0.5, 1.5], 50)
    form = dict(epsilon=0.5, rng=rng)
    off = {policy: 0.0 for policy in ("omit", "raise")}
    for _ in range(200):
        for policy in off:
            found, _ = dpq.histogram(x, 40, (0, 40), nan_policy=policy, **form)
            off[policy] += np.abs(found - np.histogram(x, 40, (0, 40))[0]).sum()
            assert policy == "omit" or found.sum() <= 100
    assert off["raise"] < 0.8 * off["omit"]


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_where_all_is_covered_a_public_number_is_kept(neighbors):
    edges = [-np.inf, 30.0, 60.0, np.inf]
    options = dict(epsilon=0.1, nan_policy="raise", neighbors=neighbors)
    sums = {dpq.histogram(X, edges, rng=i, **options)[0].sum() for i in range(20)}
    assert (sums == {X.size}) == (neighbors == "swap")


# --- Privacy


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("k", [1, 3])
def test_a_record_costs_its_bin_and_no_more(silent, monkeypatch, neighbors, k):
    epsilon, scales, released = 0.7, [], []

    def kept(numbers, scale, rng, gaussian):
        scales.append(scale)
        released.append(numbers.copy())
        return numbers

    monkeypatch.setattr(module, "noisy_integers", kept)
    values = [-1.0, 0.5, 1.5, 9.0, math.nan]
    worst = 0.0
    for one in values:
        for two in [None] if neighbors == "add-remove" else values:
            for x in ([0.5, one], [0.5] if two is None else [0.5, two]):
                dpq.histogram(
                    x, [0, 1, 2], epsilon=epsilon, neighbors=neighbors, max_contributions=k
                )
            moved = np.abs(released[-1] - released[-2]).sum()
            worst = max(worst, moved / float(scales[-1]))
    assert set(scales) == {scales[0]}
    assert worst * k == pytest.approx(epsilon)


@pytest.mark.parametrize("budget", [1.0, 1.1])
def test_numbers_follow_their_law_and_refuse_a_tenth_more(budget):
    rng = np.random.Generator(np.random.PCG64(2))
    x = np.repeat([0.5, 1.5], 30)
    drawn = np.array(
        [dpq.histogram(x, [0, 1, 2], epsilon=0.5 * budget, rng=rng)[0] for _ in range(12_000)]
    )
    k = np.arange(-25, 26)
    chance = np.exp(discrete_laplace_log_prob(k, 4.0))
    for column in drawn.T:
        inside = np.abs(column - 30) <= 12
        found = np.bincount(column[inside] - 18, minlength=25)
        expected = chance[13:38]
        found, expected = np.append(found, (~inside).sum()), np.append(expected, 1 - expected.sum())
        p = stats.chisquare(found, expected * len(column)).pvalue
        assert (p > 1e-6) == (budget == 1.0)


def test_releases_are_those_of_the_reference():
    x = [0.5, 0.5, 1.0, 3.0, math.nan]
    for options in (
        dict(epsilon=1.0),
        dict(rho=0.4, neighbors="add-remove"),
        dict(epsilon=1.0, nan_policy="raise"),
    ):
        own = x[:-1] if "nan_policy" in options else x
        draws = []
        for side, seed in ((dpq, 1), (reference, 2)):
            rng = np.random.Generator(np.random.PCG64(seed))
            draws.append(
                [side.histogram(own, [0, 1, 2], rng=rng, **options)[0] for _ in range(800)]
            )
        one, two = (np.array(each) for each in draws)
        for place in range(2):
            table = [np.bincount(np.minimum(each[:, place], 6), minlength=7) for each in (one, two)]
            filled = np.array(table)[:, np.sum(table, axis=0) > 0]
            assert stats.chi2_contingency(filled).pvalue > 1e-6


def test_the_charge_is_that_of_counts_by_group():
    accountant = privacy.Accountant(9.0)
    dpq.histogram(X, 5, (0, 100), epsilon=0.4, accountant=accountant)
    dpq.value_counts([1, 2], categories=[1, 2], epsilon=0.4, accountant=accountant)
    first, second = accountant.history
    for entry, name in ((first, "histogram"), (second, "count_by")):
        promised = privacy.guarantee(name, epsilon=0.4)
        assert (entry.epsilon, entry.rho) == (promised.epsilon, promised.rho) == (0.4, entry.rho)


def test_persons_count_in_parts():
    ids = np.arange(X.size) // 3
    hist, _ = dpq.histogram(X, 4, (20, 80), epsilon=900.0, privacy_unit=ids)
    held = np.bincount(ids)
    inside = (X >= 20) & (X <= 80)
    weights = (WEIGHT // held[ids]) / WEIGHT
    expected = np.histogram(X[inside], 4, (20, 80), weights=weights[inside])[0]
    assert hist == pytest.approx(expected, abs=0.2)
    whole, _ = dpq.histogram(X, 4, (20, 80), epsilon=900.0, privacy_unit=ids, contributions=2)
    assert whole.dtype == np.int64 and whole.sum() < 2 * (ids.max() + 1)


# --- Categories


def test_categories_are_counts_that_are_not_negative():
    towns = ["a"] * 90 + ["b"] * 3
    rng = np.random.Generator(np.random.PCG64(1))
    for _ in range(50):
        found = dpq.value_counts(towns, categories=["a", "b", "c"], epsilon=0.5, rng=rng)
        assert found.values.dtype == np.int64 and found.values.min() >= 0
    for seed in range(5):
        one = dpq.value_counts(towns, categories=["a", "b"], epsilon=2.0, rng=seed)
        two = dpq.count_by(towns, towns, groups=["a", "b"], epsilon=2.0, rng=seed)
        assert one.values.tolist() == np.maximum(two.values, 0).tolist()
        assert one.groups.tolist() == ["a", "b"]
    kept = dpq.value_counts(towns, categories=None, epsilon=2.0, delta=1e-6, rng=1)
    assert kept.groups.tolist() == ["a"]


REFUSED = [
    (
        dict(bins=3, bounds=None),
        ValueError,
        r"^bounds must be given for a number of bins, got None",
    ),
    (
        dict(bins=[0, 1], bounds=(0, 1)),
        ValueError,
        r"^bounds must be left out where bins are edges",
    ),
    (dict(bins=[0, 2, 1]), ValueError, r"^bins must ascend, got \[0\.0, 2\.0, 1\.0\]$"),
    (dict(bins=[0, math.nan]), ValueError, r"^bins must ascend, got \[0\.0, nan\]$"),
    (dict(bins=[1]), ValueError, r"^bins must be a number, or two edges or more, got \[1\]$"),
    (dict(bins=["a", "b"]), TypeError, r"^bins must be numbers or times, got dtype <U1$"),
    (dict(bins=0, bounds=(0, 1)), ValueError, r"^bins must be at least 1, got 0$"),
    (dict(bins=2**20 + 1, bounds=(0, 1)), ValueError, r"^bins must be at most 2\^20, got 1048577$"),
    (dict(bins=[0, 1], density=2), TypeError, r"^density must be"),
    (dict(bins=[0, 1], rho=1.0), ValueError, r"^exactly one of epsilon and rho must be given"),
    (
        dict(bins=[0, 1], counts=dpq.Weights([1.0] * 2, max_weight=1)),
        ValueError,
        r"^counts must be",
    ),
]


@pytest.mark.parametrize(("given", "error", "message"), REFUSED)
def test_bad_arguments_are_refused_before_the_charge(given, error, message):
    accountant = privacy.Accountant(9.0)
    with pytest.raises(error, match=message):
        dpq.histogram([1.0, 2.0], **dict(epsilon=1.0, accountant=accountant) | given)
    assert accountant.history == ()
