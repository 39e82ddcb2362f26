"""Plans of many kinds of columns, each given as the guess, against releases of the same column."""

from __future__ import annotations

import math

import numpy as np
import pytest
from predicted import rank_errors

import dpq_fast as dpq

N = 1_000
# A prediction over what releases are off lies between these, on every column.
LEAST_RATIO, LARGEST_RATIO = 0.7, 1.4
# Releases of each column, standard errors of their mean, and parts of them below its quantile.
RELEASES, APART, BESIDE = 200, 5.0, (0.88, 0.995)
# Ranks differ by one.
HALF_A_RECORD = 0.5


def prices(rng):
    price, kind = rng.lognormal(3.0, 1.0, N), rng.integers(0, 3, N)
    whole = [np.floor(price) + 0.99, np.rint(price / 5.0) * 5.0, np.rint(price / 10.0) * 10.0]
    return np.choose(kind, whole)


def times(rng):
    week = np.tile([1.0, 1.0, 1.0, 1.0, 1.0, 0.3, 0.2], 53)[:365]
    hours = np.clip(rng.normal(13.0, 3.0, N), 0.0, 24.0)
    return 86_400.0 * rng.choice(365, N, p=week / week.sum()) + 3_600.0 * hours


COLUMNS = {
    "normal": (lambda rng: rng.normal(0.0, 5.0, N), (-100.0, 100.0), None),
    "uniform": (lambda rng: rng.random(N), (0.0, 1.0), None),
    "Cauchy": (lambda rng: 5.0 * rng.standard_cauchy(N), (-1_000.0, 1_000.0), None),
    "incomes": (lambda rng: rng.lognormal(10.5, 0.8, N), (0.0, 1e6), None),
    "incomes, wide": (lambda rng: rng.lognormal(10.5, 0.8, N), (0.0, 1e9), None),
    "latencies": (lambda rng: rng.lognormal(4.6, 0.8, N), (1.0, 1e5), None),
    "zeros": (
        lambda rng: np.where(rng.random(N) < 0.8, 0.0, np.rint(rng.lognormal(3.0, 1.0, N))),
        (0.0, 1_000.0),
        1.0,
    ),
    "half at 10": (
        lambda rng: np.where(rng.random(N) < 0.5, 10.0, rng.normal(12.0, 5.0, N)),
        (-100.0, 100.0),
        None,
    ),
    "counts": (lambda rng: rng.geometric(0.3, N).astype(float), (0.0, 100.0), 1.0),
    "Pareto": (lambda rng: 1.0 + rng.pareto(1.5, N), (1.0, 1e6), None),
    "clusters": (
        lambda rng: rng.normal(0.0, 1.0, N) + 1_000.0 * (rng.random(N) < 0.4),
        (-2_000.0, 3_000.0),
        None,
    ),
    "prices": (prices, (0.0, 1_000.0), 0.01),
    "times": (times, (0.0, 366.0 * 86_400.0), None),
}
# Files and columns beside the checkout, bounds and resolution.
REAL = {
    "hours_per_week": ("adult", (0.0, 100.0), 1.0),
    "age": ("adult", (0.0, 100.0), 1.0),
    "average_rating": ("goodreads_books", (0.0, 10.0), 0.01),
    "num_pages": ("goodreads_books", (0.0, 10_000.0), 1.0),
}
RELEASED = {
    "ind_exp": (0.5, dict(epsilon=0.3)),
    "ind_exp, levels": ([0.25, 0.5, 0.75], dict(epsilon=1.0, method="ind_exp")),
    "joint_exp": ([0.25, 0.5, 0.75], dict(epsilon=1.0, method="joint_exp")),
    "approx_quantiles": (
        [0.1, 0.3, 0.5, 0.7, 0.9],
        dict(epsilon=2.0, neighbors="add-remove", method="approx_quantiles"),
    ),
    "agg_tree": ([0.1, 0.3, 0.5, 0.7, 0.9], dict(epsilon=1.0, method="agg_tree")),
    # a release goes by 10,000 records, unless it is told
    "agg_tree, number not known": (
        [0.1, 0.3, 0.5, 0.7, 0.9],
        dict(epsilon=1.0, neighbors="add-remove", method="agg_tree"),
    ),
    "agg_tree, little epsilon": ([0.3, 0.6], dict(epsilon=0.1, method="agg_tree", expected_n=300)),
    "auto": ([0.1, 0.4, 0.9], dict(epsilon=0.3, neighbors="add-remove")),
    "unbounded_quantile": (0.7, dict(epsilon=0.5, bounds=None)),
}


@pytest.fixture(scope="module", params=[*COLUMNS, *REAL])
def column(request):
    """Records, bounds and resolution."""
    name, rng = request.param, np.random.default_rng(5)
    if name in COLUMNS:
        drawn, bounds, resolution = COLUMNS[name]
        records = drawn(rng)
    else:
        file, bounds, resolution = REAL[name]
        path = request.getfixturevalue("real_columns") / f"{file}.csv"
        with path.open() as lines:
            place = lines.readline().strip().split(",").index(name)
        whole = np.loadtxt(path, delimiter=",", skiprows=1, usecols=place)
        records = rng.choice(whole, N, replace=False)
    return np.clip(records, *bounds), bounds, resolution


def assert_as_predicted(errors, predicted, least):
    """Mean and quantile, up to what as many releases are off."""
    missed = np.array(errors)
    off = APART * missed.std(ddof=1) / math.sqrt(missed.size)
    mean, quantile = predicted.expected[0], predicted.quantile[0]
    assert mean >= LEAST_RATIO * (missed.mean() - off) - least
    assert mean <= LARGEST_RATIO * (missed.mean() + off) + least
    below, above = np.quantile(missed, BESIDE)
    assert LEAST_RATIO * below - least <= quantile <= LARGEST_RATIO * above + least


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASED)
def test_releases_of_the_guess_are_as_far_off_as_predicted(column, release):
    x, bounds, resolution = column
    q, options = RELEASED[release]
    options = dict(bounds=bounds, resolution=resolution) | options
    plan = dpq.plan(q, n=N, guess=x, **options)
    rng, x = np.random.Generator(np.random.PCG64(9)), np.sort(x)
    errors = [
        rank_errors(x, np.atleast_1d(q), np.atleast_1d(dpq.quantile(x, q, rng=rng, **options)))
        for _ in range(RELEASES)
    ]
    assert_as_predicted(np.mean(errors, axis=1), plan.ranks, HALF_A_RECORD)


@pytest.mark.slow
def test_groups_are_as_far_off_as_predicted(column):
    x, bounds, resolution = column
    options = dict(epsilon=1.0, bounds=bounds, resolution=resolution)
    plan = dpq.plan([0.25, 0.75], groups={"all": N}, guess=x, **options)
    rng, x = np.random.Generator(np.random.PCG64(9)), np.sort(x)
    errors = []
    for _ in range(RELEASES):
        out = dpq.quantile_by(
            x, np.zeros(N, dtype=int), [0.25, 0.75], groups=[0], rng=rng, **options
        )
        errors.append(rank_errors(x, np.array([0.25, 0.75]), out.values[0]).mean())
    assert_as_predicted(errors, plan.ranks, HALF_A_RECORD)


@pytest.mark.slow
@pytest.mark.parametrize("public_clip", [True, False])
@pytest.mark.parametrize("total", ["sum", "mean"])
def test_totals_are_as_far_off_as_predicted(column, total, public_clip):
    x, (low, high), _ = column
    options = dict(epsilon=1.0)
    options |= dict(q=None, lower=low, upper=high) if public_clip else dict(lower=min(low, 0.0))
    plan = getattr(dpq, f"plan_{total}")(n=N, guess=x, **options)
    rng, true = np.random.Generator(np.random.PCG64(9)), getattr(np, total)(x)
    errors = [abs(getattr(dpq, total)(x, rng=rng, **options) - true) for _ in range(RELEASES)]
    assert_as_predicted(errors, plan.values, 0.0)
