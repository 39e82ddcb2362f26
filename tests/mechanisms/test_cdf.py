"""Distribution functions: smoothing, the promise of each method, accuracy, distances, form."""

from __future__ import annotations

import math
import sys
import warnings
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import SMALLEST_P, Untouchable, levels_of, missing_neighbors, pure_rho
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
from dpq_fast import noise, privacy
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.leaves import Leaves
from dpq_fast.data.records import Records
from dpq_fast.mechanisms.cdf import (
    _below,
    _from_above,
    _least_squares,
    _of_counts,
    _of_tree,
    _ranges_of_halves,
    _ranges_of_tree,
    _units_above,
    standard_normal,
)
from dpq_fast.mechanisms.csmooth import gaussian_quantiles
from dpq_fast.noise.counts import COUNT_NOISES, Geometric
from dpq_fast.privacy.relations import relation_of
from dpq_fast.reference.agg_tree import AggTree as ReferenceTree
from dpq_fast.reference.agg_tree import exact_counts
from dpq_fast.reference.cdf import CDF as ReferenceCDF
from dpq_fast.reference.cdf import halved, nearest, of_counts, of_tree, smoothed
from dpq_fast.released.cdf import CDF, CumulativeNoise, _empirical

NOISELESS = {"epsilon": 1e9}
# Every way to count, on 16 bins where there is a choice.
COUNTED = {
    "binary_tree": {"method": "binary_tree", "bins": 16},
    "combined": {"method": "binary_tree", "bins": 16, "aggregate": True},
    "agg_tree": {"method": "agg_tree", "height": 2, "branching": 4},
    "histogram": {"method": "histogram", "bins": 16},
    "adaptive": {"method": "adaptive", "bins": 16, "steps": 15},
    "gaussian": {"method": "gaussian", "bins": 16, "delta": 1e-6},
}
DISCRETE = {name: options for name, options in COUNTED.items() if name != "gaussian"}
EVERY = COUNTED | {
    "quantiles": {"method": "gaussian", "delta": 1e-6},
    "smooth": {"method": "smooth_gaussian", "delta": 1e-6},
}


# What is read off


def test_cdf_known_values():
    # 0 on [0, 1], up to 0.5 at 2, a jump to 0.75 there, flat to 3, 1 at 4
    x, p = [0.0, 1.0, 2.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.5, 0.75, 0.75, 1.0]
    fast, slow = CDF(np.array(x), np.array(p), total=8.0), ReferenceCDF(x, p, 8.0)
    for at, value in (
        (-math.inf, 0.0),
        (-1, 0.0),
        (0, 0.0),
        (1.5, 0.25),
        (2.0, 0.75),
        (2.5, 0.75),
        (3.5, 0.875),
        (4, 1.0),
        (9, 1.0),
        (math.inf, 1.0),
    ):
        assert fast.cdf(at) == value == slow.cdf(at)
    for q, value in ((0, 1.0), (0.25, 1.5), (0.5, 2.0), (0.6, 2.0), (0.75, 2.0), (1, 4.0)):
        assert fast.quantile(q) == value == slow.quantile(q)
    assert fast.count(1.0, [1.0, 2.0, 2.5, 9.0]).tolist() == [0.0, 4.0, 6.0, 8.0]
    assert isinstance(fast.cdf(0.5), float) and isinstance(fast.quantile(0.5), float)
    assert fast.cdf([[0, 1]]).shape == (1, 2) and fast.quantile([[0.5], [0.1]]).shape == (2, 1)


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=12))
def test_smoothing_is_the_nearest_that_ascends(v):
    """The poster's formula, and the conditions of the least-squares projection on a cone."""
    below = np.array([0.0, *v], dtype=float)
    leaves = Leaves((0.0, len(v)), None, len(v))
    found = _of_counts(leaves, np.arange(below.size), below, False, None)
    fit = np.array(smoothed(v))
    assert (np.diff(fit) >= -1e-12).all()
    residual = np.subtract(v, fit)
    tails = np.cumsum(residual[::-1])[::-1]  # against raising the numbers from k on
    assert tails[0] == pytest.approx(0.0, abs=1e-9) and (tails <= 1e-9).all()
    assert residual @ fit == pytest.approx(0.0, abs=1e-6)
    total = max(fit[-1], 0.0)
    assert found.total == pytest.approx(total, abs=1e-9)
    if total > 1e-9:
        np.testing.assert_allclose(
            found.cdf(found.edges) * total, [0.0, *np.clip(fit, 0.0, total)], atol=1e-9
        )
    else:
        np.testing.assert_allclose(
            found.cdf(found.edges), np.linspace(0.0, 1.0, below.size), atol=1e-9
        )


@pytest.mark.parametrize("total", [None, 40])
@pytest.mark.parametrize("aggregate", [True, False])
@pytest.mark.parametrize("height, branching", [(1, 2), (1, 9), (2, 4), (4, 2), (5, 2)])
def test_cdf_of_noisy_nodes_equals_reference(height, branching, aggregate, total):
    rng = np.random.default_rng(0)
    for _ in range(8):
        exact = exact_counts(rng.integers(0, 5, branching**height), height, branching)
        nodes = {node: count + int(rng.integers(-4, 5)) for node, count in exact.items()}
        arguments = dict(total=total, aggregate=aggregate)
        slow = of_tree(ReferenceTree(nodes, (0.0, 1.0), **arguments), total is not None)
        unit = Geometric(Fraction(1))
        tree = dpq.AggTree(levels_of(nodes, height), (0.0, 1.0), unit, **arguments)
        fast = _of_tree(tree)
        np.testing.assert_allclose(fast.p, slow.p, atol=1e-9)
        np.testing.assert_array_equal(fast.edges, tree.edges)
        assert fast.total == pytest.approx(slow.total, abs=1e-9)
        np.testing.assert_allclose(_below(tree), tree.count(0.0, tree.edges), atol=1e-9)
        # the weights of all draws in the numbers below the edges
        last = np.arange(branching**height + 1.0)
        weights = []
        for node in nodes:
            one = levels_of({other: float(other == node) for other in nodes}, height)
            unit_total = None if total is None else 0
            response = dpq.AggTree(one, (0.0, 1.0), unit, **arguments | {"total": unit_total})
            weights.append(_below(response))
        assert np.abs(weights).max() <= 1.0 + 1e-9
        squares = (np.array(weights) ** 2).sum(axis=0)
        np.testing.assert_allclose(tree._units(np.zeros(last.size), last), squares, atol=1e-9)


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("nan_policy", ["omit", "raise"])
@pytest.mark.parametrize("name", COUNTED)
def test_cdf_without_noise_is_that_of_the_records(implementation, name, nan_policy, neighbors):
    x = np.random.default_rng(1).beta(0.4, 0.8, 200)
    found = implementation.cdf(
        x,
        bounds=(0.0, 1.0),
        nan_policy=nan_policy,
        neighbors=neighbors,
        resolution=0,
        **NOISELESS,
        **COUNTED[name],
    )
    edges = np.linspace(0.0, 1.0, 17)
    assert np.isin(edges, found.x).all()
    below = [(x < edge).mean() for edge in edges]
    np.testing.assert_allclose([found.cdf(edge) for edge in edges], below, atol=1e-7)
    assert found.total == pytest.approx(x.size)
    if hasattr(found, "edges"):
        np.testing.assert_array_equal(found.edges, edges)
    assert found.cdf(0.5) == pytest.approx(below[8])


@pytest.mark.parametrize("name", EVERY)
def test_cdf_rises_from_zero_to_one(implementation, name):
    rng = np.random.default_rng(2)
    for x in (rng.normal(size=50), [], [math.nan], [0.3] * 40, [9.0] * 20):
        for epsilon in (1e-3, 1.0):
            for resolution, nan_policy in product((0, 0.25), ("omit", "raise")):
                if nan_policy == "raise" and np.isnan(x).any():
                    continue
                found = implementation.cdf(
                    x,
                    bounds=(-2.0, 3.0),
                    epsilon=epsilon,
                    rng=rng,
                    nan_policy=nan_policy,
                    resolution=resolution,
                    **EVERY[name],
                )
                points, p = np.array(found.x), np.array(found.p)
                assert (
                    points[0] == -2.0 - resolution
                    and points[-1] == 3.0
                    and (np.diff(points) >= 0.0).all()
                )
                assert p[0] == 0.0 and p[-1] == 1.0 and (np.diff(p) >= 0.0).all()
                assert (
                    -2.0 <= found.quantile(0.0) <= found.quantile(0.5) <= found.quantile(1.0) <= 3.0
                )


def test_cdf_without_records_rises_evenly_over_the_points(implementation):
    found = implementation.cdf([], bounds=(0, 3), resolution=1, **NOISELESS)
    shares = [found.cdf(x) for x in (-1, 0, 1, 2, 3)]
    assert shares == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0], abs=1e-12)


def test_cdf_histogram_corrects_all_bins_by_a_public_total(monkeypatch):
    draws = np.array([0, 0, 0, 4])
    monkeypatch.setattr(Geometric, "draw", lambda self, size, rng: draws[:size])
    found = dpq.cdf(
        np.arange(4), epsilon=1.0, bounds=(0, 3), method="histogram", bins=4, nan_policy="raise"
    )
    # 1, 1, 1 and 5 of four records: one less in each
    np.testing.assert_allclose(found.cdf(found.edges), [0.0, 0.0, 0.0, 0.0, 1.0], atol=1e-12)


def test_cdf_adaptive_halves_the_largest_run():
    """Two thirds of the records in one sixteenth: that is where its points go."""
    x = np.concatenate((np.full(60, 0.3), np.linspace(0.0, 1.0, 30)))
    options = dict(bounds=(0.0, 1.0), method="adaptive", resolution=0, **NOISELESS)
    found = dpq.cdf(x, bins=64, steps=7, **options)
    expected = [0.0, 0.25, 0.28125, 0.296875, 0.3125, 0.375, 0.5, 1.0]
    assert set(expected) <= set(found.edges.tolist()) and found.edges.size == 9
    # all records in one leaf, which is not split any further
    found = dpq.cdf([0.3] * 9, bins=16, steps=15, **options)
    np.testing.assert_array_equal(found.edges, np.linspace(0.0, 1.0, 17))
    # nor is a run at the depth
    found = dpq.cdf([0.3] * 9, bins=16, steps=7, depth=3, **options)
    np.testing.assert_array_equal(found.edges, np.linspace(0.0, 1.0, 9))


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("depth", [2, 5])
def test_cdf_adaptive_equals_reference_draw_by_draw(monkeypatch, public, depth):
    rng = np.random.default_rng(3)
    for _ in range(50):
        x = rng.integers(0, 32, 40) / 32.0
        steps, bins = int(rng.integers(depth, 2**depth)), 2**depth
        draws = rng.integers(-6, 7, 2 * steps)
        monkeypatch.setattr(Geometric, "draw", lambda self, size, rng, draws=draws: draws[:size])
        found = dpq.cdf(
            x, epsilon=1.0, bounds=(0, 1), method="adaptive", bins=32, steps=steps, depth=depth,
            resolution=0, nan_policy="raise" if public else "omit",
        )  # fmt: skip
        exact = [int((x < i / bins).sum()) for i in range(bins)] + [40]
        runs, noisy_counts = halved(exact, draws.tolist())
        total = 40 if public else None
        below = [0.0, *np.cumsum(nearest(runs, noisy_counts, total)).tolist()]
        edges = [0.0, *(stop / bins for _, stop in runs)]
        expected = of_counts(edges, below, public, None)
        np.testing.assert_array_equal(found.edges, edges)
        np.testing.assert_array_equal(found.x, expected.x)
        np.testing.assert_allclose(found.p, expected.p, atol=1e-9)
        assert found.total == pytest.approx(expected.total, abs=1e-9)


def random_splits(rng, depth, steps):
    """Runs of 2^depth bins in the order of the code, each halved at random."""
    runs, split = [(0, 2**depth)], []
    for _ in range(steps):
        wide = [k for k, (a, b) in enumerate(runs) if b - a > 1 and k not in split]
        split.append(int(rng.choice(wide)))
        low, high = runs[split[-1]]
        runs += [(low, (low + high) // 2), ((low + high) // 2, high)]
    return runs, split


@pytest.mark.parametrize("public", [True, False])
def test_units_above_are_those_of_every_edge_whatever_is_split(public):
    """Weights of all draws, by unit vectors: at most 1, and the same in every tree."""
    rng, depth = np.random.default_rng(15), 5
    units, seen = _units_above(depth, public), set()
    total = 0 if public else None
    for _ in range(30):
        runs, split = random_splits(rng, depth, int(rng.integers(1, 2**depth)))
        last = sorted(set(range(len(runs))) - set(split), key=runs.__getitem__)
        weights = []
        for k in range(1, len(runs)):
            one = [int(k == other) for other in range(len(runs))]
            counts = _from_above(one, [1.0] * len(runs), split, total)
            weights.append(np.cumsum([counts[run] for run in last]))
        assert np.abs(weights).max() <= 1.0
        edges = [runs[run][1] for run in last]
        expected = units[np.array(edges) - 1]
        np.testing.assert_allclose((np.array(weights) ** 2).sum(axis=0), expected, atol=1e-12)
        seen |= set(edges)
    assert len(seen) == 2**depth


@pytest.mark.parametrize("total", [None, 40])
def test_least_squares_over_halves_is_the_projection(total):
    """Sums are kept, and no change of undivided runs that keeps the total comes nearer."""
    rng = np.random.default_rng(16)
    for _ in range(20):
        runs, split = random_splits(rng, 5, int(rng.integers(1, 32)))
        noisy = rng.integers(-9, 30, len(runs)).tolist()
        found = np.array(_least_squares(noisy, split, total))
        halves = found[1:].reshape(-1, 2).sum(axis=1)
        np.testing.assert_allclose(halves, found[split], atol=1e-9)
        if total is not None:
            assert found[0] == total
        residual = np.subtract(noisy, found)[1:]
        normal = [
            sum(
                left
                for (low, high), left in zip(runs[1:], residual, strict=True)
                if low <= start and stop <= high
            )
            for k, (start, stop) in enumerate(runs)
            if k not in split
        ]
        np.testing.assert_allclose(normal, 0.0 if total is None else normal[0], atol=1e-9)


# The promise


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("name", ["binary_tree", "agg_tree", "histogram"])
def test_cdf_counts_privacy_by_enumeration(name, neighbors):
    """Log ratios of independent noised counts add up to |difference| / scale, at most."""
    epsilon, rho, points = 0.7, 0.3, 4
    options = {
        "binary_tree": {"bins": 4},
        "agg_tree": {"height": 2, "branching": 2},
        "histogram": {"bins": 4},
    }[name]
    height, branching = {"binary_tree": (2, 2), "agg_tree": (2, 2), "histogram": (1, 4)}[name]
    shared = dict(bounds=(0.0, 4.0), method=name, neighbors=neighbors, **options)
    released = dpq.cdf([], epsilon=epsilon, **shared)
    scale = released._noise.noise.scale
    sigma = dpq.cdf([], rho=rho, **shared)._noise.noise.scale

    def counts(records):
        x = [math.nan if point is None else float(point) for point in records]
        tree = dpq.PartialTree.of(x, bounds=(0.0, 4.0), height=height, branching=branching)
        tree = tree.release(neighbors=neighbors, **NOISELESS)
        assert not tree.total_known  # of a type that can hold NaN
        return np.concatenate(tree.nodes)

    worst = worst_squared = 0.0
    for records in ([], [0], [3, 0], [0, 1, None], [2, 2, 3, None]):
        for other in missing_neighbors(records, points, neighbors):
            differences = np.abs(counts(records) - counts(other))
            worst = max(worst, float(differences.sum() / scale))
            worst_squared = max(worst_squared, float((differences**2).sum()))
    assert worst == pytest.approx(epsilon, abs=1e-9)  # reached, and no more
    assert worst_squared / (2.0 * float(sigma) ** 2) == pytest.approx(rho, rel=1e-12)


@pytest.mark.parametrize("steps, depth", [(2, 2), (3, 2), (3, 3)])
@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_cdf_adaptive_privacy_by_enumeration(neighbors, public, steps, depth):
    """Over transcripts: which runs are counted depends on the answers alone."""
    bins, epsilon = 2**depth, 0.8
    public = public and neighbors == "swap"
    scale = privacy.cdf.calibrate(
        method="adaptive", epsilon=epsilon, depth=depth, neighbors=neighbors
    ).noise.scale
    released = dpq.cdf(
        [1.0], epsilon=epsilon, bounds=(0.0, 8.0), method="adaptive", bins=8, steps=steps,
        depth=depth, neighbors=neighbors, nan_policy="raise" if public else "omit",
    )  # fmt: skip
    assert released._noise.noise.scale == scale

    def counted(answers):
        """The runs that these answers lead to, in the order of the answers."""
        return list(halved([0] * (bins + 1), answers)[1])

    def counts(records, runs):
        kept = [point for point in records if point is not None]
        return np.array([sum(low <= point < high for point in kept) for low, high in runs])

    # -1 and 9 lie beyond all counts
    outcomes = np.array(list(product((-1, 1, 9), repeat=2 * steps)))
    runs = [counted(answers) for answers in outcomes.tolist()]
    shapes = sorted(set(map(tuple, runs)))
    shape = np.array([shapes.index(tuple(counted)) for counted in runs])
    worst = 0.0
    for records in ([0], [bins - 1, 0], [0, 1, bins - 1], [2, 2, None]):
        if public and None in records:
            continue
        for other in missing_neighbors(records, bins, neighbors):
            if public and None in other:
                continue
            for k, counted_runs in enumerate(shapes):
                answers = outcomes[shape == k]
                first, second = (
                    noise.discrete_laplace_log_prob(answers - counts(data, counted_runs), scale)
                    for data in (records, other)
                )
                worst = max(worst, float(np.abs((first - second).sum(axis=1)).max()))
    assert worst <= epsilon + 1e-9
    # two paths of a swap have their first counts in common with three steps at most
    paths = 2 * depth if steps >= 2 * depth - 1 else depth + 1
    touched = depth if neighbors == "add-remove" else paths
    assert worst == pytest.approx(
        epsilon * touched / (depth * (2 if neighbors == "swap" else 1)), abs=1e-9
    )


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_cdf_adaptive_counts_a_record_once_a_depth(neighbors, depth):
    """Squared differences of neighbors along many transcripts: what rho pays for, and reached."""
    bins, rho, worst = 2**depth, 0.3, 0
    rng = np.random.default_rng(17)
    for _ in range(50):
        draws = rng.integers(-50, 51, 2 * int(rng.integers(1, bins)))
        runs = list(halved([0] * (bins + 1), draws.tolist())[1])
        inside = np.array([[low <= point < high for low, high in runs] for point in range(bins)])
        others = inside[:, None] if neighbors == "swap" else False
        worst = max(worst, int((inside ^ others).sum(axis=-1).max()))
    sigma = privacy.cdf.calibrate(
        method="adaptive", rho=rho, depth=depth, neighbors=neighbors
    ).noise.scale
    assert worst == depth * (2 if neighbors == "swap" else 1)
    assert worst / (2.0 * float(sigma) ** 2) == pytest.approx(rho, rel=1e-12)


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_cdf_gaussian_privacy_by_enumeration(neighbors):
    """L2 distances of neighbors: never more than the sigma is made for, and reached."""
    levels, points = 3, 4
    q = np.arange(1, levels + 1) / (levels + 1)
    most_quantiles = most_bins = 0.0

    def column(records):
        return [math.nan if point is None else float(point) for point in records]

    def quantiles(records):
        sample = dpq.Sample.of(column(records), (0.0, 3.0), resolution=1.0, dither=False)
        return gaussian_quantiles(sample, q, 0.0, np.random.default_rng(0))

    def bins(records):
        return dpq.Sample.of(column(records), (0.0, 3.0)).histogram(4)

    for records in ([], [0], [3, 0], [0, 0, 3, 3], [0, 1, None], [2, 2, 3, None]):
        for other in missing_neighbors(records, points, neighbors):
            difference = (quantiles(records) - quantiles(other)) / 3.0
            most_quantiles = max(most_quantiles, float((difference**2).sum()))
            most_bins = max(most_bins, float(((bins(records) - bins(other)) ** 2).sum()))
    squared, relation = privacy.cdf.gaussian_squared, relation_of(neighbors)
    assert most_quantiles == squared(levels, None, relation) == 3
    assert most_bins == squared(levels, 4, relation)
    assert squared(levels, 4, relation, 3) == 9 * most_bins
    assert squared(levels, None, relation, 3) == 3


def test_standard_normal_has_the_normal_law():
    draws = standard_normal(100_000, np.random.default_rng(12))
    assert stats.kstest(draws, "norm").pvalue > SMALLEST_P
    assert abs(stats.pearsonr(draws[:-1], draws[1:]).statistic) < 0.02


def test_gaussian_noise_has_the_law_of_the_promise():
    sigma = privacy.gaussian_sigma(2, 1.0, 1e-6)
    rng = np.random.default_rng(4)
    options = dict(bounds=(0, 1), method="gaussian", rng=rng)
    column = np.full(10_000, 0.75)
    draws = [
        dpq.cdf(column, epsilon=1.0, delta=1e-6, bins=2, **options).total - 10_000
        for _ in range(1_000)
    ]
    # the sum of two rounded draws
    assert all(draw == int(draw) for draw in draws)
    assert stats.kstest(draws + rng.random(1_000) - 0.5, "norm", (0, sigma * 2**0.5)).pvalue > 1e-6
    # quantiles: the middle of the bounds, plus the width times sigma
    sigma = privacy.gaussian_sigma(1, None, 0.0, 30.0)
    x = [
        dpq.cdf([1.0] * 9, rho=30.0, bounds=(-9, 11), method="gaussian", levels=1, rng=rng).x[1]
        for _ in range(1_000)
    ]
    cut = stats.norm(1.0, 20.0 * sigma).cdf
    grid = np.linspace(-8.0, 10.0, 37)
    gap = np.abs([np.mean(np.array(x) <= at) - cut(at) for at in grid]).max()
    assert stats.kstwo.sf(gap, len(x)) > SMALLEST_P


# A record is in two counts of each level under "swap", in one under "add-remove".
GUARANTEES = [
    ({"bins": 64, "epsilon": 1.2}, (1.2, 0.0, 12 * pure_rho(0.1))),
    ({"bins": 64, "epsilon": 1.2, "neighbors": "add-remove"}, (1.2, 0.0, 6 * pure_rho(0.2))),
    ({"method": "binary_tree", "epsilon": 1.0}, (1.0, 0.0, 20 * pure_rho(1 / 20))),
    ({"epsilon": 1.0}, (1.0, 0.0, 6 * pure_rho(1 / 6))),
    ({"epsilon": 1.0, "expected_n": 1_000}, (1.0, 0.0, 4 * pure_rho(1 / 4))),
    ({"epsilon": 1.0, "height": 4}, (1.0, 0.0, 8 * pure_rho(1 / 8))),
    (
        {"method": "histogram", "epsilon": 1.0, "max_contributions": 3},
        (1.0, 0.0, 18 * pure_rho(1 / 6)),
    ),
    ({"method": "histogram", "rho": 0.5}, (None, 0.0, 0.5)),
    ({"method": "adaptive", "epsilon": 1.0}, (1.0, 0.0, 28 * pure_rho(1 / 28))),
    ({"method": "adaptive", "epsilon": 1.0, "steps": 10}, (1.0, 0.0, 20 * pure_rho(1 / 20))),
    ({"method": "adaptive", "epsilon": 1.0, "depth": 5}, (1.0, 0.0, 10 * pure_rho(1 / 10))),
    (
        {"method": "adaptive", "epsilon": 1.0, "bins": 16, "depth": 9},
        (1.0, 0.0, 8 * pure_rho(1 / 8)),
    ),
    (
        {"method": "adaptive", "epsilon": 1.0, "depth": 5, "neighbors": "add-remove"},
        (1.0, 0.0, 5 * pure_rho(1 / 5)),
    ),
    ({"method": "adaptive", "rho": 0.5, "neighbors": "add-remove"}, (None, 0.0, 0.5)),
    ({"method": "gaussian", "rho": 0.5}, (None, 0.0, 0.5)),
    ({"method": "smooth_gaussian", "epsilon": 1.0, "delta": 1e-6}, (1.0, 1e-6, None)),
]  # fmt: skip


@pytest.mark.parametrize("options, expected", GUARANTEES, ids=str)
def test_cdf_guarantees(options, expected):
    found = privacy.guarantee("cdf", **options)
    assert (found.epsilon, found.delta) == expected[:2]
    assert found.rho == (None if expected[2] is None else pytest.approx(expected[2]))
    assert found.neighbors == options.get("neighbors", "swap")


def test_cdf_guarantee_of_gaussian_noise():
    found = privacy.guarantee("cdf", method="gaussian", levels=4, epsilon=1.0, delta=1e-6)
    assert (found.epsilon, found.delta) == (1.0, 1e-6)
    assert found.rho == pytest.approx(0.5 / privacy.gaussian_sigma(1, 1.0, 1e-6) ** 2)


# Accuracy


def law_of_one(kind, scale, reach):
    prefix = "discrete_laplace" if kind == "geometric" else "discrete_gaussian"
    return np.exp(getattr(noise, prefix + "_log_prob")(reach, scale))


@pytest.mark.parametrize("kind", ["geometric", "gaussian"])
@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(2), Fraction(40)])
def test_margin_bounds_sums_of_draws(kind, scale):
    """By convolution of the exact law: for sums, unions of them, and weights below 1."""
    reach = np.arange(-4_000, 4_001)
    one, single = COUNT_NOISES[kind](scale), law_of_one(kind, scale, reach)
    total = single
    for draws in range(1, 5):
        if draws > 1:
            total = np.convolve(total, single, mode="same")

        def missed(margin, total=total):
            return float(total[np.abs(reach) > margin].sum())

        for beta, union in product((0.5, 0.05, 1e-6), (1, 20)):
            units = np.full(union, float(draws))
            exact, chernoff = (
                CumulativeNoise(one, lambda units=units: units, plain).margin(beta)
                for plain in (True, False)
            )
            assert exact <= chernoff
            assert union * missed(exact) <= beta * (1.0 + 1e-9)
            if kind == "geometric":  # the least there is
                assert exact == 0.0 or union * missed(exact - 1.0) > beta
            else:
                assert exact == chernoff
            if scale > 1 and beta < 0.5:  # and the bound is no idle one
                assert union * missed(0.5 * chernoff) > beta
    # half of one draw, and half of another
    error = CumulativeNoise(one, lambda: np.array([0.5]), False)
    halves = np.abs(np.arange(-8_000, 8_001) / 2.0)
    assert np.convolve(single, single)[halves > error.margin(0.05)].sum() <= 0.05


def test_tail_of_sums_of_draws():
    reach = np.arange(-3_000, 3_001)
    for scale in (Fraction(3, 10), Fraction(2), Fraction(20)):
        one = CumulativeNoise(Geometric(scale), lambda: np.ones(1), True)
        single = total = law_of_one("geometric", scale, reach)
        for draws in range(1, 12):
            if draws > 1:
                total = np.convolve(total, single, mode="same")
            for least in (1, 2, 5, 40, 300):
                expected = float(total[np.abs(reach) >= least].sum())
                assert one.tail(draws, least) == pytest.approx(expected, rel=1e-9, abs=1e-13)
    # the sum of 20 Laplace variables, nearly normal, at a scale where exp(-1/scale) is almost 1
    wide = CumulativeNoise(Geometric(Fraction(10**15)), lambda: np.ones(1), True)
    assert wide.tail(1, 3 * 10**15) == pytest.approx(math.exp(-3.0), rel=1e-9)
    deviation = math.sqrt(40.0)
    assert wide.tail(20, int(deviation * 1e15)) == pytest.approx(2 * stats.norm.sf(1), rel=0.02)


def test_span_is_twice_the_margin_or_the_quantile_of_simulated_ranges():
    noise, units = Geometric(Fraction(3)), lambda: np.array([1.0, 2.0])
    of = partial(CumulativeNoise, noise, units, False)
    twice = 2.0 * of().margin(0.1)
    assert of().span(0.1) == twice and of(7.0).span(0.1) == twice + 7.0
    # of 100 ranges, more than the 99th are below the quantile with a probability of 3e-5; of 1,000
    # at most as many as that the tail is above 10^-6
    ranges = np.arange(1000) * twice / 2000.0
    assert of(0.0, lambda: ranges[:100]).span(0.1) == twice
    k = int(np.flatnonzero(stats.binom.sf(np.arange(1000), 1000, 0.9) <= 1e-6)[0])
    assert of(7.0, lambda: ranges).span(0.1) == pytest.approx(ranges[k] + 7.0)
    assert 930 < k < 960
    assert of(0.0, lambda: 9.0 * twice + ranges).span(0.1) == twice


@pytest.mark.slow
@pytest.mark.parametrize("public", [True, False])
def test_simulated_ranges_are_those_of_the_noise(public):
    """Against releases of no records: their counts before smoothing are the noise."""
    noise, rng = Geometric(Fraction(8)), np.random.default_rng(1)
    ranges = _ranges_of_tree(noise, 2, 3, 9, public, True)
    assert ranges is _ranges_of_tree(noise, 2, 3, 9, public, True) and ranges.size == 1000
    found = []
    for _ in range(1000):
        nodes = [noise.draw(3, rng), noise.draw(9, rng)]
        tree = dpq.AggTree(nodes, (0.0, 9.0), noise, total=0 if public else None)
        found.append(np.ptp(tree.count(0.0, tree.edges)))
    assert stats.ks_2samp(ranges, found).pvalue > SMALLEST_P
    halves = _ranges_of_halves(noise, 3, public)
    found = []
    for _ in range(1000):
        split = [0, 1, 2, 3, 4, 5, 6]  # all, level after level
        draws = [0, *noise.draw(14, rng).tolist()]
        counts = _from_above(draws, [1.0] * 15, split, 0 if public else None)
        found.append(np.ptp(np.cumsum([0.0, *counts[7:]])))
    assert stats.ks_2samp(halves, found).pvalue > SMALLEST_P
    assert _ranges_of_tree(noise, 20, 2, 2**20, public, True).size == 8  # not 1,000 of them


def test_cdf_accuracy_counts_what_its_numbers_are_apart(monkeypatch):
    """By hand: halves of 6 and 0, and 1 and 2 in those of the first."""
    draws = np.array([6, 0, 1, 2])
    options = dict(epsilon=1.0, bounds=(0, 1), bins=4, steps=2, depth=2, resolution=0)
    ranges = dpq.cdf([], **options)._noise.ranges()
    monkeypatch.setattr(Geometric, "draw", lambda self, size, rng: draws[:size])
    found = dpq.cdf([], **options)
    # nearest: the first half is (2 * 6 + (1 + 2)) / 3 = 5; from above, it is 6
    np.testing.assert_allclose(found.cdf(found.edges) * found.total, [0.0, 2.0, 5.0, 5.0])
    fixed = CumulativeNoise(
        found._noise.noise, lambda: _units_above(2, False), False, 0.0, lambda: ranges
    )
    # from above, numbers are 0, 2.5, 6 and 6: below them by up to 1, and never beyond
    for beta in (0.05, 0.5):
        assert found.accuracy(beta) == pytest.approx(fixed.span(beta) + 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("nan_policy", ["omit", "raise"])
@pytest.mark.parametrize("name", DISCRETE)
def test_cdf_accuracy_covers_all_intervals(name, nan_policy):
    rng = np.random.default_rng(5)
    x = np.concatenate((rng.normal(size=300), np.full(200, 1.3)))
    draws, beta = 120, 0.1
    for budget in ({"epsilon": 1.0}, {"rho": 0.05}):
        options = dict(bounds=(-3.0, 3.0), nan_policy=nan_policy, **budget, **COUNTED[name])
        failures = idle = 0
        # what does not depend on the draws
        known = dpq.cdf(x, rng=rng, **options)._noise._replace(apart=0.0).span(beta)
        for _ in range(draws):
            found = dpq.cdf(x, rng=rng, **options)
            alpha = known + found._noise.apart
            below = np.searchsorted(np.sort(x.clip(-3.0, np.nextafter(3.0, 0.0))), found.edges)
            below = below if found.lattice is None else np.array(
                [(np.rint(x.clip(-3.0, 3.0) / found.lattice.step) * found.lattice.step
                  <= edge + found.lattice.step / 2.0).sum() for edge in found.edges]
            )  # fmt: skip
            error = found.total * found.cdf(found.edges) - below
            failures += np.ptp(error) > alpha  # over all intervals
            idle += alpha > 12.0 * np.ptp(error)
        assert found.accuracy(beta) == alpha
        assert stats.binomtest(int(failures), draws, beta, "greater").pvalue >= SMALLEST_P
        assert idle < draws / 2


@pytest.mark.slow
def test_cdf_accuracy_falls_with_beta_and_the_budget():
    for options in ({}, dict(bins=16, aggregate=False)):
        found = [
            dpq.cdf([0.5], bounds=(0, 1), epsilon=epsilon, rng=1, **options).accuracy(beta)
            for epsilon, beta in ((1.0, 0.1), (1.0, 0.01), (0.1, 0.1), (1e9, 0.1))
        ]
        assert found[0] < found[1] and 4.0 * found[0] < found[2]
        assert found[3] < 1e-3
    assert found[2] == pytest.approx(10.0 * found[0], rel=0.1)  # of the same bins
    few = dpq.cdf([0.5], bounds=(0, 1), epsilon=1e-9, method="histogram", bins=2)
    assert 1e9 < few.accuracy() == few.accuracy(0.05) < 1e11


def test_cdf_accuracy_is_less_than_twice_the_union_bound():
    """By the law of the range."""
    x = np.random.default_rng(2).lognormal(0.0, 1.0, 10_000)
    for options in (dict(bins=1024, aggregate=False), dict(height=3, branching=12)):
        found = dpq.cdf(x, epsilon=1.0, bounds=(-100, 100), rng=3, nan_policy="raise", **options)
        assert found.accuracy() < 0.9 * 2.0 * found._noise.margin(0.05)


def test_cdf_default_is_near_the_records():
    """Lognormal ones in bounds that are far wider: the distance of Kolmogorov and Smirnov."""
    for n, draws, most in ((1_000, 100, 0.034), (10_000, 30, 0.0065)):
        distances = []
        for seed in range(draws):
            rng = np.random.default_rng([seed, 5])
            x = rng.lognormal(0.0, 1.0, n)
            found = dpq.cdf(x, epsilon=1.0, bounds=(-100, 100), nan_policy="raise", rng=rng)
            distances.append(found.ks(x))
        assert np.mean(distances) < most


# Distances

samples = st.lists(st.floats(-5.0, 5.0).map(lambda v: round(v, 1)), min_size=1, max_size=12)


@given(samples, samples)
def test_distances_of_samples_equal_scipy(a, b):
    left = _empirical(a)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # about p-values, which are not used
        ks = stats.ks_2samp(a, b).statistic
    for right in (b, _empirical(b)):
        assert left.ks(right) == pytest.approx(ks, abs=1e-12)
        assert left.wasserstein(right) == pytest.approx(stats.wasserstein_distance(a, b), abs=1e-9)
        assert left.energy(right) == pytest.approx(stats.energy_distance(a, b), abs=1e-7)


def test_distances_by_hand():
    uniform = CDF(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    steep = CDF(np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 1.0]))
    assert uniform.ks(steep) == 0.5
    assert uniform.wasserstein(steep) == pytest.approx(0.25)
    assert uniform.energy(steep) == pytest.approx(math.sqrt(2 * (0.5 / 12 + 0.5 / 12)))
    # the point mass in the middle: two triangles of height and width 1/2
    assert uniform.ks([0.5]) == 0.5 == _empirical([0.5]).ks(uniform)
    assert uniform.wasserstein([0.5]) == pytest.approx(0.25)
    assert uniform.energy([0.5, 0.5]) == pytest.approx(math.sqrt(2 * 2 * 0.5**3 / 3))
    # one crossing inside a piece
    other = CDF(np.array([0.25, 0.75]), np.array([0.0, 1.0]))
    assert uniform.wasserstein(other) == pytest.approx(2 * 0.5 * 0.5 * 0.25)
    assert uniform.wasserstein(uniform) == uniform.ks(uniform) == uniform.energy(uniform) == 0.0


def test_distances_from_a_jump_above_the_highest_point():
    """Where the next point would be infinite."""
    lattice = Lattice.of((0.5e308, 1.75e308), 0.8e308, False)
    huge = CDF([0.0, 0.8e308, 1.6e308], [0.0, 0.5, 1.0], lattice=lattice)
    assert huge.ks([1.7e308]) == 1.0
    assert huge.wasserstein([1.7e308]) == pytest.approx(0.5 * 0.8e308 + 0.1e308)


def test_distances_of_a_release_by_quadrature():
    rng = np.random.default_rng(6)
    x = rng.normal(size=30)
    found = dpq.cdf(x, epsilon=1.0, bounds=(-4.0, 4.0), bins=32, rng=1)
    grid = np.linspace(-5.0, 5.0, 400_001)
    gap = found.cdf(grid) - (x[:, None] <= grid[::100]).mean(axis=0).repeat(100)[: grid.size]
    step = grid[1] - grid[0]
    assert found.ks(x) == pytest.approx(np.abs(gap).max(), abs=2e-3)
    assert found.wasserstein(x) == pytest.approx(np.abs(gap).sum() * step, abs=2e-3)
    assert found.energy(x) == pytest.approx(math.sqrt(2 * (gap**2).sum() * step), abs=2e-3)


# Form


@pytest.mark.parametrize("name", EVERY)
def test_cdf_takes_counts_workers_types_and_samples(name):
    rng = np.random.default_rng(7)
    values, counts = rng.uniform(-0.2, 1.2, 50), rng.integers(0, 5, 50)
    options = dict(bounds=(0.0, 1.0), epsilon=30.0, **EVERY[name])

    def points(x, **more):
        found = dpq.cdf(x, rng=8, **options | more)
        return np.concatenate((found.x, found.p))

    np.testing.assert_array_equal(points(values, counts=counts), points(np.repeat(values, counts)))
    x = rng.random(2**18)
    x[::1000] = math.nan
    expected = points(x[~np.isnan(x)])
    sample = dpq.Sample.of(x, (0.0, 1.0))
    for found in (
        points(x),
        points(x, workers=2),
        points(x[::-1]),
        points(sample),
        points(sample, bounds=None),
        points(pd.Series(x)),
        points(pa.array(x)),
    ):
        np.testing.assert_array_equal(found, expected)
    if name in COUNTED:
        np.testing.assert_array_equal(points(Records.of(x)), expected)
    before = x.copy()
    x.flags.writeable = False
    points(x)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("name", EVERY)
def test_cdf_quantiles_lie_on_the_lattice(implementation, name):
    ages = np.random.default_rng(9).integers(0, 100, 200)
    for x, resolution, step in ((ages, 1, 1.0), (ages * 1.0, 0.25, 0.25)):
        found = implementation.cdf(
            x, bounds=(0, 100), epsilon=1.0, resolution=resolution, rng=1, **EVERY[name]
        )
        assert all(found.quantile(q) % step == 0.0 for q in (0.1, 0.33, 0.5, 0.9))


def test_cdf_without_noise_gives_the_quantiles_back(implementation):
    ages = np.random.default_rng(10).integers(0, 16, 99)
    options = dict(bounds=(0, 15), resolution=1, **NOISELESS)
    found = implementation.cdf(ages, **options)
    q = np.linspace(0.013, 0.987, 40)
    expected = np.quantile(ages, q, method="inverted_cdf")
    assert [found.quantile(level) for level in q] == expected.tolist()


def test_cdf_for_other_libraries(monkeypatch):
    found = dpq.cdf([0.5], epsilon=1.0, bounds=(0, 1), bins=4)
    frame = found.to_frame()
    np.testing.assert_array_equal(frame["x"], found.x)
    np.testing.assert_array_equal(frame["p"], found.p)
    matplotlib = pytest.importorskip("matplotlib", reason="extra 'plot' not installed")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    ax = found.plot(label="released")
    assert found.plot(ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), found.p)
    assert ax.lines[0].get_label() == "released"
    pyplot.close("all")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ImportError, match=r"plots.cdf needs matplotlib: pip install 'dpq_fast\[plot\]'"
    ):
        found.plot()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_frame needs pandas: .*dpq_fast\[pandas\]'"):
        found.to_frame()


@pytest.mark.parametrize("name", EVERY)
def test_cdf_charges_the_accountant(implementation, name):
    promise = {"epsilon": 0.6, "max_contributions": 2, **EVERY[name]}
    accountant = privacy.Accountant(1.0, delta=1e-5)
    options = {"bounds": (0.0, 1.0), "accountant": accountant, **promise}
    implementation.cdf([0.5], rng=1, **options)
    assert accountant.history == (privacy.guarantee("cdf", **promise),)
    with pytest.raises(privacy.BudgetExceeded, match="must fit the budget"):
        implementation.cdf(Untouchable(), **options)
    for bad in ({"x": np.zeros((2, 2))}, {"bounds": (1.0, 0.0)}, {"resolution": -1}):
        arguments = {"x": [0.5]} | options | {"epsilon": 0.1} | bad
        with pytest.raises((TypeError, ValueError)):
            implementation.cdf(**arguments)
    assert len(accountant.history) == 1
    with pytest.raises(TypeError):
        implementation.cdf(**options | {"epsilon": 0.1, "x": ["much"]})
    assert len(accountant.history) == 2  # it was read


# Bad input

GOOD = {"x": [0.2, 0.4], "epsilon": 1.0, "bounds": (0.0, 1.0), "bins": 16}
TREE = {"method": "agg_tree", "bins": None}
BAD = [
    ({"epsilon": 0.0}, ValueError, "epsilon must be positive and finite"),
    ({"epsilon": "1"}, TypeError, "epsilon must be a real number"),
    ({"epsilon": None}, ValueError, "exactly one of epsilon and rho must be given, got neither"),
    ({"rho": 1.0}, ValueError, "exactly one of epsilon and rho must be given, got both"),
    ({"delta": 1e-6}, ValueError, "delta must be 0 for method 'binary_tree', which takes rho"),
    ({"delta": 1.0}, ValueError, r"delta must lie in \[0, 1\)"),
    ({"method": "gaussian"}, ValueError, "delta must be positive for Gaussian noise, got 0.0"),
    ({"method": "gaussian", "bins": None}, ValueError, "delta must be positive for Gaussian"),
    (
        {"method": "gaussian", "epsilon": None, "rho": 1.0, "delta": 0.1},
        ValueError,
        "delta must be 0 with rho",
    ),
    ({"method": "ecdf"}, ValueError, "method must be one of 'auto', 'binary_tree'"),
    ({"method": None}, TypeError, "method must be one of"),
    (
        {"steps": 3, "method": "binary_tree"},
        TypeError,
        "method 'binary_tree' must have no options but bins, aggregate, got",
    ),
    ({"steps": 3, "height": 2}, TypeError, "method 'agg_tree' must have no options but height"),
    ({"method": "agg_tree"}, TypeError, "method 'agg_tree' must have no options but height"),
    ({"bins": 100}, ValueError, "bins must be a power of two, got 100"),
    ({"bins": 1}, ValueError, "bins must be at least 2, got 1"),
    ({"bins": 16.0}, TypeError, "bins must be an integer"),
    ({"bins": 2**27}, ValueError, r"at most 2\^26 = 67108864 leaves, got 2\^27"),
    ({"method": "histogram", "bins": 2**26 + 1}, ValueError, r"leaves, got 67108865\^1"),
    ({"method": "histogram", "bins": 1}, ValueError, "bins must be at least 2, got 1"),
    ({"method": "adaptive", "steps": 0}, ValueError, "steps must be at least 1, got 0"),
    ({"method": "adaptive", "steps": 16}, ValueError, "steps must be less than bins, got 16"),
    ({"method": "adaptive", "steps": 3, "bins": 12}, ValueError, "bins must be a power of two"),
    ({"method": "adaptive", "depth": 0}, ValueError, "depth must be at least 1, got 0"),
    ({"method": "adaptive", "depth": 2.0}, TypeError, "depth must be an integer"),
    (
        {"method": "adaptive", "steps": 3, "epsilon": 1e-16},
        ValueError,
        r"epsilon must give noise of a scale of at most 2\^53",
    ),
    ({"epsilon": 1e-300}, ValueError, r"epsilon must give noise of a scale of at most 2\^53"),
    ({"aggregate": 1}, TypeError, "aggregate must be True or False"),
    (
        {"bounds": (1.0, 1.0 + 2.0**-49), "resolution": 0},
        ValueError,
        "leaves must be at least as wide as",
    ),
    ({"bounds": (1.0, 0.0)}, ValueError, "bounds must be finite with low < high"),
    ({"bounds": None}, TypeError, "bounds must be two real numbers"),
    ({"neighbors": "remove"}, ValueError, "neighbors must be one of"),
    ({"method": "adaptive", "steps": 3, "neighbors": 1}, TypeError, "neighbors must be one of"),
    ({"resolution": -1.0}, ValueError, "resolution must be finite and not negative"),
    ({"max_contributions": 0}, ValueError, "max_contributions must be at least 1"),
    ({"nan_policy": "drop"}, ValueError, "nan_policy must be one of"),
    ({"x": [0.1, math.nan], "nan_policy": "raise"}, ValueError, "x must not contain NaN"),
    ({"x": [[0.1]]}, ValueError, "x must be one-dimensional"),
    ({"x": ["a"]}, TypeError, "x must hold real numbers"),
    ({"counts": [1]}, ValueError, "counts must have one entry for each value"),
    ({"accountant": 1.0}, TypeError, "accountant must be an Accountant"),
]
LEVELED = {"x": [0.2], "bounds": (0, 1), "epsilon": 1.0, "delta": 1e-6, "method": "smooth_gaussian"}
BAD_LEVELS = [
    ({"levels": 0}, ValueError, "levels must be at least 1, got 0"),
    ({"levels": 1.0}, TypeError, "levels must be an integer"),
    ({"delta": 0.0}, ValueError, "delta must be positive for Gaussian noise on smooth"),
    ({"epsilon": 99.0}, ValueError, "epsilon must be at most 4 for Gaussian noise on smooth"),
    ({"epsilon": None, "rho": 1.0, "delta": 0.0}, ValueError, "rho must be left out for method"),
    ({"epsilon": None}, TypeError, "epsilon must be a real number, got None"),
    ({"neighbors": "remove"}, ValueError, "neighbors must be one of"),
    ({"method": "gaussian", "levels": 0}, ValueError, "levels must be at least 1"),
    ({"method": "gaussian", "neighbors": "remove"}, ValueError, "neighbors must be one of"),
    (
        {"method": "gaussian", "epsilon": 1e-300, "delta": 1e-300},
        ValueError,
        r"epsilon and delta must be large enough for a sigma of at most 2\^100",
    ),
    ({"max_contributions": 0}, ValueError, "max_contributions must be at least 1"),
    ({"x": [math.nan], "nan_policy": "raise"}, ValueError, "x must not contain NaN"),
]


@pytest.mark.parametrize(
    "arguments, error, message",
    [(GOOD | bad, *rest) for bad, *rest in BAD]
    + [(LEVELED | bad, *rest) for bad, *rest in BAD_LEVELS],
    ids=[str(bad) for bad, _, _ in BAD + BAD_LEVELS],
)
def test_cdf_rejects_bad_input(implementation, arguments, error, message):
    with pytest.raises(error, match=message):
        implementation.cdf(**arguments)


def test_cdf_refuses_public_arguments_before_the_data_is_touched(implementation):
    for bad, error, message in BAD:
        if {"x", "bounds", "resolution", "nan_policy", "counts", "accountant"} & bad.keys():
            continue
        if "leaves" in message:
            continue  # of `bounds`
        with pytest.raises(error, match=message):
            implementation.cdf(**GOOD | bad | {"x": Untouchable()})


def test_cdf_rejects_bad_questions():
    found = dpq.cdf([0.5], epsilon=1.0, bounds=(0, 1), bins=4)
    with pytest.raises(ValueError, match="lo must be at most hi"):
        found.count([0.1, 0.5], 0.4)
    with pytest.raises(ValueError, match="must not be NaN"):
        found.cdf([0.1, math.nan])
    with pytest.raises(TypeError, match="x must be real numbers, got dtype"):
        found.cdf("0")
    with pytest.raises(ValueError, match=r"q must lie in \[0, 1\]"):
        found.quantile(1.5)
    for beta in (0.0, 1.0):
        with pytest.raises(ValueError, match="beta must lie strictly between 0 and 1"):
            found.accuracy(beta)
    for other in ([], [math.nan]):
        with pytest.raises(ValueError, match="other must"):
            found.ks(other)
    quantiles = dpq.cdf(
        [0.5], epsilon=1.0, delta=1e-6, bounds=(0, 1), method="smooth_gaussian", levels=1
    )
    rounded = dpq.cdf([0.5], epsilon=1.0, delta=1e-6, bounds=(0, 1), method="gaussian", bins=2)
    for without_discrete_noise in (quantiles, rounded):
        with pytest.raises(ValueError, match="accuracy must be asked of a method that counts"):
            without_discrete_noise.accuracy()
    with pytest.raises(ValueError, match="count must be asked of a method that counts"):
        quantiles.count(0, 1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(x="ab"), TypeError, "x must be real numbers, got dtype"),
        (dict(x=[0.0]), ValueError, "x must be at least two numbers in a row that ascend"),
        (dict(x=[1.0, 0.0]), ValueError, "x must be at least two numbers in a row that ascend"),
        (
            dict(x=[0.0, 2.0, 1.0]),
            ValueError,
            "x must be at least two numbers in a row that ascend",
        ),
        (dict(x=[0.0, math.nan]), ValueError, "x must not be NaN"),
        (dict(x=[0.0, 1.0, 2.0]), ValueError, "p must ascend from 0 to 1 and be as long as x"),
        (dict(p=[0.0, 0.5]), ValueError, "p must ascend from 0 to 1 and be as long as x"),
        (dict(x=[0.0, math.inf]), ValueError, "x must have finite differences where p rises"),
        (dict(x=[-1e308, 1e308]), ValueError, "x must have finite differences where p rises"),
        (dict(total=-1.0), ValueError, "total must be finite and not negative, got -1.0"),
        (dict(noise=1.0), TypeError, "noise must be a CumulativeNoise or None, got float"),
        (dict(lattice=1.0), TypeError, "lattice must be a Lattice or None, got float"),
    ],
)
def test_a_distribution_function_is_one(arguments, error, message):
    with pytest.raises(error, match=f"^{message}"):
        CDF(**dict(x=[0.0, 1.0], p=[0.0, 1.0]) | arguments)


@pytest.mark.parametrize(
    ("other", "ks"),
    [([math.inf], 1.0), ([0.5, math.inf], 0.5), ([-math.inf, 0.5, math.inf], 1 / 3)],
)
def test_distances_from_infinite_records(other, ks):
    flat = CDF([0.0, 1.0], [0.0, 1.0])
    assert flat.ks(other) == pytest.approx(ks)
    assert flat.wasserstein(other) == flat.energy(other) == math.inf


def test_distances_from_huge_records():
    flat = CDF([0.0, 1.0], [0.0, 1.0])
    assert flat.wasserstein([1e308]) == pytest.approx(1e308)
    assert flat.energy([1e308]) == pytest.approx(math.sqrt(2.0) * 1e154)
    assert flat.wasserstein([-1.7e308, 1.7e308]) == pytest.approx(1.7e308)


@pytest.mark.parametrize("method", ["gaussian", "smooth_gaussian"])
def test_more_levels_than_can_be_made_are_refused(method):
    options = dict(epsilon=1.0, delta=1e-6, bounds=(0, 1), method=method)
    with pytest.raises(ValueError, match=r"^levels must be at most 2\^20, got 1099511627776"):
        dpq.cdf(Untouchable(), levels=2**40, **options)


@pytest.mark.parametrize("budget", [dict(epsilon=1e-12, delta=1e-12), dict(rho=1e-20)])
def test_normal_noise_on_bins_too_large_to_be_rounded_is_refused(budget):
    """Float64 noise beyond 2^53 would be even, and show whether a count is."""
    options = dict(method="gaussian", bounds=(0, 2), **budget)
    message = r"^the budget must be large enough for a sigma of at most 2\^30 with bins, got"
    with pytest.raises(ValueError, match=message):
        dpq.cdf(Untouchable(), bins=2, **options)
    with pytest.raises(ValueError, match=message):
        privacy.guarantee("cdf", bins=2, method="gaussian", **budget)
    dpq.cdf([0.5], levels=2, **options)
