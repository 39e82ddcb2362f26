"""AggTree: counts, least squares, exact variances, the promise, and what is read off a tree."""

from __future__ import annotations

import importlib
import inspect
import math
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import SMALLEST_P, Untouchable, assert_draws_follow, missing_neighbors, pure_rho
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
from dpq_fast import noise, privacy, reference
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.records import Records
from dpq_fast.noise.counts import COUNT_NOISES, Geometric
from dpq_fast.reference.agg_tree import AggTree as ReferenceTree
from dpq_fast.reference.agg_tree import exact_counts, project
from dpq_fast.released.tree_counts import nearest_masses, projected

SHAPES = [(1, 2), (1, 7), (2, 2), (2, 5), (3, 2), (3, 3), (4, 2), (5, 2)]
UNIT = Geometric(Fraction(1))
NOISELESS = 1e9


def nodes_of(levels):
    return {
        (depth, index): float(count)
        for depth, level in enumerate(levels, start=1)
        for index, count in enumerate(level)
    }


def noisy_levels(rng, height, branching, spread=5):
    return [rng.integers(-spread, 3 * spread, branching**depth) for depth in range(1, height + 1)]


def exact_tree(x, **options):
    return dpq.AggTree.of(x, **{"epsilon": NOISELESS, "bounds": (0.0, 1.0), **options})


def linear_map(function, height, branching):
    """Coefficients of a linear function of the noisy counts, level after level."""
    columns = []
    for depth in range(height):
        for index in range(branching ** (depth + 1)):
            levels = [np.zeros(branching**d) for d in range(1, height + 1)]
            levels[depth][index] = 1.0
            columns.append(function(levels))
    return np.array(columns).T


# Counts


@pytest.mark.parametrize("height, branching", [*SHAPES, (3, 10)])
def test_agg_tree_counts_records_between_edges(height, branching):
    leaves = branching**height
    edges = np.linspace(-3.3, 7.1, leaves + 1)
    near = [np.nextafter(edges, -9.0), edges, np.nextafter(edges, 9.0)]
    x = np.concatenate([*near, [-np.inf, np.inf, -1e300, 8.0], np.repeat(edges[1], 5)])
    tree = dpq.AggTree.of(
        x,
        epsilon=NOISELESS,
        bounds=(-3.3, 7.1),
        height=height,
        branching=branching,
        resolution=0,
    )
    exact = np.histogram(np.clip(x, -3.3, 7.1), edges)[0]
    np.testing.assert_array_equal(tree.edges, edges)
    np.testing.assert_array_equal(tree.nodes[-1], exact)
    for depth, level in enumerate(tree.counts):
        np.testing.assert_array_equal(level, exact.reshape(branching**depth, -1).sum(axis=1))
    assert tree.total == x.size


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("nan_policy", ["omit", "raise"])
@pytest.mark.parametrize("aggregate", [True, False])
@pytest.mark.parametrize("height, branching", SHAPES)
def test_agg_tree_without_noise_gives_the_counts_back(
    height, branching, aggregate, nan_policy, neighbors
):
    x = np.random.default_rng(0).beta(0.3, 0.9, 1_000)
    tree = exact_tree(
        x,
        height=height,
        branching=branching,
        aggregate=aggregate,
        nan_policy=nan_policy,
        neighbors=neighbors,
        resolution=0,
    )
    edges = tree.edges
    np.testing.assert_array_equal(tree.counts[-1], np.histogram(x, edges)[0])
    below = np.array([(x < edge).sum() for edge in edges[:-1]] + [x.size])
    np.testing.assert_array_equal(tree.count(edges[0], edges), below)
    np.testing.assert_allclose(tree.cdf(edges), below / x.size, atol=1e-12)
    lower, upper = tree.count_confint(edges[0], edges)
    np.testing.assert_allclose(lower, below, atol=1e-5)
    np.testing.assert_allclose(upper, below, atol=1e-5)
    q = np.linspace(0.0, 1.0, 21)
    true = np.quantile(x, q, method="inverted_cdf")
    assert (np.abs(tree.quantile(q) - true) <= 1.0 / branching**height + 1e-9).all()
    lower, upper = tree.quantile_confint(q)
    assert (lower <= true).all() and (true <= upper).all()


@given(st.lists(st.one_of(st.floats(), st.sampled_from([0.0, 0.25, 0.5, 1.0])), max_size=20))
def test_agg_tree_counts_equal_reference(x):
    for height, branching in [(1, 3), (2, 2), (2, 4), (3, 3)]:
        tree = exact_tree(x, height=height, branching=branching, resolution=0)
        edges = reference.bins.uniform_edges(0.0, 1.0, branching**height)
        leaves = reference.bins.edge_counts(x, edges)
        assert nodes_of(tree.nodes) == exact_counts(leaves, height, branching)


@pytest.mark.slow
def test_agg_tree_takes_counts_workers_types_and_samples():
    rng = np.random.default_rng(1)
    values, counts = rng.uniform(-0.2, 1.2, 50), rng.integers(0, 5, 50)
    plain = exact_tree(np.repeat(values, counts))
    np.testing.assert_array_equal(exact_tree(values, counts=counts).nodes[-1], plain.nodes[-1])
    x = rng.random(2**19)  # two shares
    x[::1000] = math.nan
    kept = exact_tree(x[~np.isnan(x)]).nodes[-1]
    sample = dpq.Sample.of(x, (0.0, 1.0))
    for tree in (
        exact_tree(x),
        exact_tree(x, workers=2),
        exact_tree(sample),
        exact_tree(sample, bounds=None),
        exact_tree(Records.of(x)),
        exact_tree(x[::-1]),
        exact_tree(pd.Series(x)),
        exact_tree(dpq.Sample.from_batches(lambda: np.array_split(x, 7), (0.0, 1.0))),
    ):
        np.testing.assert_array_equal(tree.nodes[-1], kept)


def test_partial_trees_merge_into_the_whole():
    x = np.random.default_rng(2).normal(size=999)
    options = dict(bounds=(-2.0, 2.0), height=2, branching=5, nan_policy="raise")
    whole = dpq.PartialTree.of(x, **options)
    first, *others = [dpq.PartialTree.of(part, **options) for part in np.array_split(x, 4)]
    merged = first.merge(*others)
    for budget in ({"epsilon": NOISELESS}, {"epsilon": 1.0}, {"rho": 0.5, "noise": "gaussian"}):
        expected, found = (tree.release(rng=3, **budget) for tree in (whole, merged))
        assert nodes_of(found.nodes) == nodes_of(expected.nodes)
        assert found.total == expected.total == 999
    # with aggregate=False estimates of leaves are their noisy counts
    plain = whole.release(epsilon=1.0, aggregate=False, rng=3)
    np.testing.assert_array_equal(plain.counts[-1], plain.nodes[-1])
    # a part whose records may have been left out makes the total private
    unknown = dpq.PartialTree.of(x[:5], **options | {"nan_policy": "omit"})
    tree = merged.merge(unknown).release(epsilon=1.0, rng=3)
    assert tree.variances[0] > 0.0
    for other in (
        dpq.PartialTree.of(x, **options | {"branching": 4}),
        dpq.PartialTree.of(x, **options | {"height": 1}),
        dpq.PartialTree.of(x, **options | {"bounds": (-2.0, 3.0)}),
        dpq.PartialTree.of(x, **options, resolution=0.5),
    ):
        with pytest.raises(ValueError, match="trees must have the same bounds"):
            whole.merge(other)
    with pytest.raises(TypeError, match="others must be PartialTree objects, got int"):
        whole.merge(1)


# Least squares


@pytest.mark.parametrize("total", [None, 40])
@pytest.mark.parametrize("aggregate", [True, False])
@pytest.mark.parametrize("height, branching", SHAPES)
def test_agg_tree_estimates_equal_least_squares(height, branching, aggregate, total):
    """Estimates and variances from below and from above are those of the normal equations."""
    levels = noisy_levels(np.random.default_rng(3), height, branching)
    tree = dpq.AggTree(levels, (0.0, 1.0), UNIT, total=total, aggregate=aggregate)
    expected = ReferenceTree(nodes_of(levels), (0.0, 1.0), total=total, aggregate=aggregate)
    assert tree.total == pytest.approx(expected.counts[0, 0], abs=1e-9)
    for (depth, index), count in expected.counts.items():
        assert tree.counts[depth][index] == pytest.approx(count, abs=1e-9)
        variance = tree.variances[depth] / UNIT.variance
        assert variance == pytest.approx(expected.variances[depth, index], abs=1e-9)


@pytest.mark.parametrize("total", [None, 40])
def test_agg_tree_estimates_of_two_leaves_known_values(total):
    tree = dpq.AggTree([np.array([10, 20])], (0.0, 1.0), UNIT, total=total)
    expected = [10, 20] if total is None else [15, 25]
    np.testing.assert_allclose(tree.counts[1], expected)
    # one of two independent counts, or half of their difference
    assert tree.variances[1] == pytest.approx(UNIT.variance * (1.0 if total is None else 0.5))


@pytest.mark.parametrize("total", [None, 0])
@pytest.mark.parametrize("height, branching", SHAPES)
def test_agg_tree_variances_are_those_of_the_linear_maps(height, branching, total):
    maps = {}
    for aggregate in (True, False):

        def estimates(levels, aggregate=aggregate):
            tree = dpq.AggTree(levels, (0.0, 1.0), UNIT, total=total, aggregate=aggregate)
            return np.concatenate(tree.counts)

        units = (linear_map(estimates, height, branching) ** 2).sum(axis=1)
        tree = dpq.AggTree(
            noisy_levels(np.random.default_rng(0), height, branching),
            (0.0, 1.0),
            UNIT,
            total=total,
            aggregate=aggregate,
        )
        depth = np.repeat(np.arange(height + 1), branching ** np.arange(height + 1))
        np.testing.assert_allclose(tree.variances[depth], units * UNIT.variance, atol=1e-12)
        maps[aggregate] = tree.variances
    better = maps[True] < maps[False] * (1.0 - 1e-9)
    if total is None and height == 1:
        assert not better.any()  # there is nothing to combine
    else:
        assert better[1:].all()


@pytest.mark.parametrize("total", [None, 0])
@pytest.mark.parametrize("aggregate", [True, False])
@pytest.mark.parametrize("height, branching", SHAPES)
def test_agg_tree_variances_of_counts_are_those_of_the_linear_maps(
    height, branching, aggregate, total
):
    leaves = branching**height
    rng = np.random.default_rng(4)
    ends = np.sort(rng.uniform(0.0, leaves, (2, 40)), axis=0)
    ends[:, ::2] = np.rint(ends[:, ::2])
    ends[:, 0], ends[:, 1] = (0, leaves), (0, 0)
    first, last = ends
    tree = dpq.AggTree(
        noisy_levels(rng, height, branching), (0.0, leaves), UNIT, total=total, aggregate=aggregate
    )

    def function(levels):
        other = dpq.AggTree(levels, (0.0, leaves), UNIT, total=total, aggregate=aggregate)
        return other.count(first, last)

    units = (linear_map(function, height, branching) ** 2).sum(axis=1)
    np.testing.assert_allclose(tree._units(first, last), units, atol=1e-9)


@pytest.mark.parametrize("total", [None, 50])
@pytest.mark.parametrize("aggregate", [True, False])
@pytest.mark.parametrize("height, branching", SHAPES)
def test_agg_tree_quantile_intervals_are_those_of_the_linear_maps(
    height, branching, aggregate, total
):
    bounds, rng = (0.0, float(branching**height)), np.random.default_rng(5)
    edges = np.arange(branching**height + 1.0)

    def below_and_total(levels, total=None if total is None else 0):
        tree = dpq.AggTree(levels, bounds, UNIT, aggregate=aggregate, total=total)
        return np.append(tree.count(0.0, edges), tree.total)

    maps = linear_map(below_and_total, height, branching)
    for _ in range(5):
        levels = noisy_levels(rng, height, branching, spread=4)
        tree = dpq.AggTree(levels, bounds, UNIT, aggregate=aggregate, total=total)
        *below, n = below_and_total(levels, total)
        for q, level in product(np.linspace(0.0, 1.0, 9), (0.1, 0.9)):
            excess = below - q * max(n, 0.0)
            width = UNIT.margin(level) * np.sqrt(((maps[:-1] - q * maps[-1]) ** 2).sum(axis=1))
            lower, upper = tree.quantile_confint(q, level)
            reached = np.flatnonzero(excess[1:] + width[1:] >= -1e-9)  # none of a negative total
            assert lower == edges[reached[0] if reached.size else 0]
            assert upper == edges[np.flatnonzero(excess[:-1] - width[:-1] <= 1e-9)[-1] + 1]


def test_agg_tree_quantile_intervals_end_at_points_of_a_lattice():
    tree = exact_tree([3] * 50 + [6] * 50, bounds=(0, 8), resolution=1)
    assert [tree.quantile_confint(q) for q in (0.25, 0.75)] == [(3.0, 3.0), (6.0, 6.0)]
    # two leaves, of the points up to 3 and above
    tree = exact_tree([3] * 50, bounds=(0, 7), resolution=1, height=1, branching=2)
    assert tree.quantile_confint(0.5) == (0.0, 3.0)


@given(st.lists(st.floats(-20.0, 20.0), min_size=1, max_size=8), st.floats(0.0, 30.0))
def test_projection_is_the_nearest_point(estimates, total):
    expected = project(estimates, total)
    (found,) = projected(np.array([estimates]), np.array([total]))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert min(expected) >= 0.0 and sum(expected) == pytest.approx(total, abs=1e-9)
    # its optimality condition: moving mass between two parts never helps
    residual = np.subtract(estimates, expected)
    for mass, rest in zip(expected, residual, strict=True):
        if mass > 1e-9:
            assert rest >= residual.max() - 1e-9


def test_projection_keeps_what_needs_no_correction():
    rows = np.array([[0.0, 3.0, 4.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(projected(rows, rows.sum(axis=1)), rows)
    np.testing.assert_array_equal(projected(rows, np.zeros(3)), np.zeros((3, 3)))
    # a total that is lost in the rounding of the estimates
    np.testing.assert_array_equal(projected(np.array([[1e18, 0.0]]), np.ones(1)), [[1.0, 0.0]])


# Masses


@st.composite
def noisy_trees(draw):
    """Shape, leaves that hold a point, noisy counts of all levels, and a total."""
    height, branching = draw(st.sampled_from([*SHAPES, (2, 6), (6, 2)]))
    held = draw(st.integers(1, branching**height))
    count = draw(
        st.sampled_from(
            [
                st.integers(-2, 3),  # ties
                st.integers(-30, 60),
                st.integers(-60, -1),  # no mass at all
                st.integers(-(2**53), 2**53),
                st.floats(-1e3, 1e3),
            ]
        )
    )
    levels = [
        np.array(draw(st.lists(count, min_size=size, max_size=size)), dtype=np.float64)
        for size in (branching**depth for depth in range(1, height + 1))
    ]
    return levels, branching, held, draw(st.sampled_from([-3.0, 0.0, 1e-3, 1.0, 40.0, 1e15]))


def held_nodes(levels, branching, held):
    """Of each level, from the lowest one: counts and ends of the nodes that hold a leaf."""
    for depth in range(len(levels), 0, -1):
        width = branching ** (len(levels) - depth)
        stops = np.minimum(np.arange(width, held + width, width), held)
        yield levels[depth - 1][: stops.size], stops


@given(noisy_trees())
def test_masses_are_the_nearest_that_are_not_negative(tree):
    """The conditions of Kuhn and Tucker: residuals along the path of a leaf add up to the price of
    the total where it has mass, and to no more elsewhere."""
    levels, branching, held, total = tree
    (leaf_counts, _), *inner = held_nodes(levels, branching, held)
    root = np.array([math.nan]), np.array([held])
    masses, found = nearest_masses(leaf_counts, *zip(*inner, root, strict=True), total)
    scale = max(1.0, total, *(abs(level).max() for level in levels)) * held
    assert found == max(total, 0.0)
    assert masses.shape == (held,) and (masses >= 0.0).all()
    assert masses.sum() == pytest.approx(found or 1.0, abs=1e-13 * scale)
    pulls = leaf_counts - masses
    for counts, stops in inner:
        sums = np.diff(np.concatenate(([0.0], np.cumsum(masses)))[[0, *stops]])
        pulls += np.repeat(counts - sums, np.diff([0, *stops]))
    accuracy = 1e-13 * scale * held
    np.testing.assert_allclose(pulls[masses > accuracy], pulls.max(), atol=accuracy)


@pytest.mark.parametrize("total", [None, 25])
@pytest.mark.parametrize("height, branching", SHAPES)
def test_masses_equal_those_of_a_dense_solver(height, branching, total):
    rng = np.random.default_rng(21)
    for spread in (1, 5, 50):
        levels = noisy_levels(rng, height, branching, spread)
        tree = dpq.AggTree(levels, (0.0, 1.0), UNIT, total=total)
        expected = ReferenceTree(nodes_of(levels), (0.0, 1.0), total=total).fitted()
        found = tree._fitted()
        np.testing.assert_allclose(found[0], expected[0], atol=1e-7)
        assert found[1] == pytest.approx(expected[1], abs=1e-7)


def test_masses_known_values():
    def masses(levels, total=None):
        tree = dpq.AggTree([np.array(level) for level in levels], (0.0, 1.0), UNIT, total=total)
        return tree._fitted()

    # plain bins: less an equal share of what is too much, or more, and cut off at 0
    found, total = masses([[4, -3, 0, 2]], total=4)
    np.testing.assert_allclose(found, [3.0, 0.0, 0.0, 1.0])
    assert total == 4.0
    found, total = masses([[4, -3, 0, 2]])  # 3 by the counts
    np.testing.assert_allclose(found, [2.5, 0.0, 0.0, 0.5])
    assert total == 3.0
    # no records: what is nearest of sum 1
    found, total = masses([[-4, -3]])
    np.testing.assert_allclose(found, [0.0, 1.0])
    assert total == 0.0
    # two levels by hand: all at one leaf of the first node, where the other leaf and the other
    # node are pushed below 0
    found, total = masses([[3, -6], [2, -2, 1, 1]], total=2)
    np.testing.assert_allclose(found, [2.0, 0.0, 0.0, 0.0])
    # masses x and 6 - x of two nodes, at one leaf each:
    # (x - 3)^2 + (x - 2)^2 + (2 - x)^2 + (6 - x)^2
    found, total = masses([[3, 4], [2, -9, -9, 0]], total=6)
    np.testing.assert_allclose(found, [13.0 / 4.0, 0.0, 0.0, 11.0 / 4.0])


def test_leaves_without_points_have_no_mass():
    lattice = Lattice.of((0.0, 4.0), 1.0, False)  # 5 points, of 8 leaves
    levels = [np.array([1, 30]), np.array([1, 0, 5, 40]), np.array([0, 1, 0, 0, 5, 50, 50, 50])]
    tree = dpq.AggTree(levels, (0.0, 4.0), UNIT, lattice=lattice, total=9)
    masses, total = tree._fitted()
    assert masses.shape == (5,) and total == 9.0
    assert masses[4] == pytest.approx(9.0)  # 1 in the others is not worth its while


@pytest.mark.parametrize("height, branching", [(1, 2**20), (20, 2), (5, 16)])
def test_masses_of_large_trees(height, branching):
    """Without noise they are the counts."""
    leaves = np.random.default_rng(22).poisson(0.3, branching**height)
    levels = [leaves.reshape(branching**d, -1).sum(axis=1) for d in range(1, height + 1)]
    tree = dpq.AggTree(levels, (0.0, 1.0), UNIT)
    np.testing.assert_allclose(tree._fitted()[0], leaves, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    "budget, bounds, resolution, draw, most",
    [
        ({"epsilon": 1.0}, (-100, 100), None, lambda rng: rng.normal(0.0, 5.0, 1_000), 9.2),
        ({"epsilon": 0.1}, (-100, 100), None, lambda rng: rng.normal(0.0, 5.0, 1_000), 50.0),
        ({"epsilon": 0.1}, (0, 100), 1, lambda rng: rng.normal(39.0, 13.0, 1_000).clip(17.0), 25.0),
        ({"rho": 0.5}, (-100, 100), None, lambda rng: rng.normal(0.0, 5.0, 1_000), 4.4),
        ({"rho": 0.5}, (-100, 100), None, lambda rng: rng.lognormal(0.0, 1.0, 1_000), 5.0),
        ({"rho": 0.005}, (-100, 100), None, lambda rng: rng.lognormal(0.0, 1.0, 1_000), 60.0),
    ],
)
def test_default_shapes_have_small_errors(budget, bounds, resolution, draw, most):
    """Of nine levels, without tuning."""
    rng, errors, q = np.random.default_rng(23), [], np.arange(1, 10) / 10
    options = dict(budget, noise="gaussian" if "rho" in budget else "geometric")
    for _ in range(200):
        x = draw(rng)
        out = dpq.agg_tree(
            x, q, bounds=bounds, resolution=resolution, nan_policy="raise", rng=rng, **options
        )
        errors.append(dpq.metrics.rank_error(x, q, out))
    assert np.mean(errors) < most


def test_default_shape_follows_a_number_of_records_that_is_public():
    x = np.zeros(1_000)

    def shape(x=x, **options):
        tree = dpq.AggTree.of(x, epsilon=1.0, bounds=(-100, 100), **options)
        return tree.height, tree.branching

    of = partial(privacy.agg_tree.shape_of, None, None, None)
    public, unknown = of(1_000), of(10_000)
    assert shape(nan_policy="raise") == public != unknown
    for options in (
        {},
        dict(nan_policy="raise", counts=np.ones(1_000, dtype=int)),
        dict(x=dpq.Sample.of(x, (-100, 100), nan_policy="raise")),
    ):
        assert shape(**options) == unknown
        assert shape(**options, expected_n=1_000) == public
    # of twice the epsilon, as far as noise goes
    options = dict(nan_policy="raise", neighbors="add-remove")
    assert shape(**options) == of(20_000) and shape(**options, expected_n=500) == public
    assert shape(nan_policy="raise", expected_n=10_000) == unknown
    tree = dpq.PartialTree.of(x, bounds=(-100, 100), nan_policy="raise")
    assert (tree.height, tree.branching) == unknown
    tree = dpq.PartialTree.of(x, bounds=(-100, 100), expected_n=1_000)
    assert (tree.height, tree.branching) == public


# Noise and the promise


@pytest.mark.parametrize(
    "options, scale",
    [
        ({"epsilon": 0.1}, 6 / Fraction(0.1)),
        ({"epsilon": 2.0, "height": 5}, Fraction(5)),
        ({"epsilon": 2.0, "neighbors": "add-remove"}, Fraction(3, 2)),
        ({"epsilon": 2.0, "neighbors": "add-remove", "max_contributions": 4}, Fraction(6)),
        ({"epsilon": Fraction(1, 3), "noise": "laplace"}, Fraction(18)),
        ({"rho": 0.75, "noise": "gaussian"}, Fraction(2)),
        ({"rho": 0.75, "noise": "gaussian", "max_contributions": 3}, Fraction(6)),
        ({"rho": 0.375, "noise": "gaussian", "neighbors": "add-remove"}, Fraction(2)),
    ],
    ids=str,
)
def test_agg_tree_noise_has_the_scale_of_the_promise(options, scale):
    tree = dpq.AggTree.of([0.1, 0.2], bounds=(0, 1), branching=2, **{"height": 3} | options)
    assert tree.noise == COUNT_NOISES[options.get("noise", "geometric")](scale)


@pytest.mark.parametrize("kind", ["geometric", "gaussian"])
def test_agg_tree_nodes_follow_the_law(kind):
    x = np.array([0.1, 0.3, 0.3, 0.9])
    budget = {"rho": 1.0} if kind == "gaussian" else {"epsilon": 2.0}
    partial = dpq.PartialTree.of(x, bounds=(0.0, 1.0), height=2, branching=2)
    rng = np.random.default_rng(5)
    draws, exact = [], partial.release(epsilon=NOISELESS).nodes
    for _ in range(3_000):
        tree = partial.release(noise=kind, rng=rng, **budget)
        draws.extend(np.concatenate(tree.nodes) - np.concatenate(exact))
    law = (
        noise.discrete_gaussian_log_prob if kind == "gaussian" else noise.discrete_laplace_log_prob
    )
    reach = np.arange(-80, 81)
    table = dict(zip(reach.tolist(), law(reach, tree.noise.scale).tolist(), strict=True))
    assert_draws_follow(draws, table)


@pytest.mark.parametrize("kind", ["geometric", "laplace", "gaussian"])
def test_noise_variance_is_that_of_the_law(kind):
    for scale in (Fraction(1, 4), Fraction(3), Fraction(17, 2)):
        one = COUNT_NOISES[kind](scale)
        if kind == "laplace":
            assert one.variance == pytest.approx(2.0 * float(scale) ** 2)
            continue
        k = np.arange(-1_000, 1_001)
        law = getattr(
            noise, "discrete_" + ("laplace" if kind == "geometric" else kind) + "_log_prob"
        )
        variance = float((np.exp(law(k, scale)) * k**2).sum())
        if kind == "gaussian":
            assert variance <= one.variance * (1.0 + 1e-12)
            assert scale < 1 or one.variance == pytest.approx(variance, rel=1e-6)
        else:
            assert one.variance == pytest.approx(variance, rel=1e-9)


def released(records, points, **options):
    """The noisy counts' means: exact counts of all nodes that are noised; and the public root."""
    x = np.array([math.nan if point is None else point for point in records], dtype=float)
    tree = exact_tree(x, bounds=(0.0, float(points)), **options)
    return np.concatenate(tree.nodes), (tree.total if tree.total_known else None)


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("height, branching", [(1, 4), (2, 2), (3, 2), (2, 3)])
def test_agg_tree_privacy_by_enumeration(neighbors, height, branching):
    """The noised counts are independent: log ratios add up to |difference| / scale, at most."""
    points, epsilon, rho = branching**height, 0.7, 0.3
    shape = dict(height=height, branching=branching, neighbors=neighbors)
    scale = privacy.agg_tree.calibrate(epsilon=epsilon, **shape).noise.scale
    sigma = privacy.agg_tree.calibrate(rho=rho, noise="gaussian", **shape).noise.scale
    # One count: the log ratio over all outputs, by the exact law.
    k = np.arange(-60, 61)
    for shift in (1, 2):
        ratio = np.abs(
            noise.discrete_laplace_log_prob(k, scale)
            - noise.discrete_laplace_log_prob(k - shift, scale)
        )
        assert ratio.max() == pytest.approx(shift / float(scale), abs=1e-12)
    worst = worst_squared = 0.0
    for records in ([], [0], [points - 1, 0], [0, 1, None], [2, 2, 3, None]):
        counts, root = released(records, points, **shape)
        assert root is None  # of a type that can hold NaN
        for other in missing_neighbors(records, points, neighbors):
            differences = np.abs(counts - released(other, points, **shape)[0])
            worst = max(worst, float(differences.sum() / scale))
            worst_squared = max(worst_squared, float((differences**2).sum()))
    assert worst <= epsilon + 1e-9
    assert worst == pytest.approx(epsilon, abs=1e-9)  # and it is reached
    assert worst_squared / (2.0 * float(sigma) ** 2) == pytest.approx(rho, rel=1e-12)


@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.7])
def test_discrete_gaussian_counts_are_zcdp(sigma):
    """Rényi divergences of a count that changes by d: at most alpha d^2 / (2 sigma^2)."""
    k = np.arange(-400, 401)
    log_p = noise.discrete_gaussian_log_prob(k, sigma)
    for shift in (1, 2, 3):
        log_r = noise.discrete_gaussian_log_prob(k - shift, sigma)
        for alpha in (1.01, 1.5, 2.0, 5.0):
            terms = alpha * log_p + (1.0 - alpha) * log_r
            divergence = np.logaddexp.reduce(terms) / (alpha - 1.0)
            assert divergence <= alpha * shift**2 / (2.0 * sigma**2) + 1e-9


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_agg_tree_privacy_of_persons(neighbors, k):
    """k records of one person that move together cost epsilon and rho, no more and no less."""
    shape = dict(height=2, branching=2, neighbors=neighbors)
    mine = [0] * k
    others = {"swap": [[3] * k, [0] * (k - 1) + [3], [None] * k], "add-remove": [[]]}[neighbors]
    person = dict(shape, max_contributions=k)
    scale = privacy.agg_tree.calibrate(epsilon=1.0, **person).noise.scale
    sigma = privacy.agg_tree.calibrate(rho=1.0, noise="gaussian", **person).noise.scale
    before, _ = released([1, *mine], 4, **shape)
    losses, squares = [], []
    for other in others:
        differences = np.abs(before - released([1, *other], 4, **shape)[0])
        losses.append(float(differences.sum() / scale))
        squares.append(float((differences**2).sum() / (2 * sigma**2)))
    assert max(losses) == pytest.approx(1.0, abs=1e-12)
    assert max(squares) == pytest.approx(1.0, abs=1e-12)


def test_agg_tree_knows_the_total_only_where_it_is_public():
    floats, integers = np.array([0.2, 0.4, 0.6]), np.array([1, 2, 2])

    def known(x, **options):
        tree = dpq.AggTree.of(x, epsilon=1.0, bounds=(0, 4), height=1, branching=4, **options)
        assert tree.total == (3 if tree.total_known else tree.nodes[0].sum())
        assert tree.total_known == (tree.variances[0] == 0.0)
        return tree.total_known

    for column in (integers, pd.Series(integers), floats):
        assert known(column, nan_policy="raise") and not known(column)
    assert known(np.array([1, 2]), counts=[1, 2], nan_policy="raise")
    assert known(pa.array([1, 2, 3]), nan_policy="raise")
    assert known(dpq.Sample.of(floats, (0, 4), nan_policy="raise"))
    assert known(Records.of(floats, nan_policy="raise"))
    # No type says that none is missing.
    for x in (
        [1, 2, 3],
        pa.array([1, 2, 3]),
        pd.Series([1, 2, 3], dtype="Int64"),
        np.ma.masked_array(integers, [False] * 3),
        dpq.Sample.of(integers, (0, 4)),
        dpq.Sample.from_batches(lambda: [integers], (0, 4)),
    ):
        assert not known(x)
    for x in (integers, floats):
        assert not known(x, neighbors="add-remove", nan_policy="raise")


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_agg_tree_guarantee(neighbors):
    touched = 6 if neighbors == "swap" else 3
    for k in (1, 3):
        made = privacy.guarantee(
            "agg_tree", epsilon=2.0, height=3, neighbors=neighbors, max_contributions=k, q=0.5
        )
        assert made == privacy.Guarantee(2.0, rho=made.rho, neighbors=neighbors)
        one = pure_rho(2.0 / (k * touched))
        assert made.rho == pytest.approx(k * k * touched * one, rel=1e-12)
        made = privacy.guarantee(
            "agg_tree", rho=0.5, noise="gaussian", neighbors=neighbors, max_contributions=k
        )
        assert made == privacy.Guarantee(None, rho=0.5, neighbors=neighbors)


def test_agg_tree_rho_of_pure_noise_is_a_true_statement():
    """Rényi divergences of two discrete Laplace counts add up to no more than alpha rho."""
    epsilon, touched = 1.5, 4
    scale = privacy.agg_tree.calibrate(epsilon=epsilon, height=2).noise.scale
    rho = privacy.guarantee("agg_tree", epsilon=epsilon, height=2).rho
    k = np.arange(-400, 401)
    log_p = noise.discrete_laplace_log_prob(k, scale)
    log_r = noise.discrete_laplace_log_prob(k - 1, scale)
    for alpha in (1.001, 1.5, 2.0, 10.0):
        divergence = np.logaddexp.reduce(alpha * log_p + (1.0 - alpha) * log_r) / (alpha - 1.0)
        assert touched * divergence <= alpha * rho + 1e-12


def test_agg_tree_charges_before_it_looks(implementation):
    accountant = privacy.Accountant(1.0)
    options = {"bounds": (0.0, 1.0), "height": 1, "branching": 3, "accountant": accountant}
    implementation.agg_tree([0.5], 0.5, epsilon=0.75, **options)
    assert accountant.spent.epsilon == 0.75
    with pytest.raises(privacy.BudgetExceeded):
        implementation.agg_tree(Untouchable(), 0.5, epsilon=0.5, **options)
    with pytest.raises(ValueError, match="a release must state epsilon"):
        implementation.agg_tree(Untouchable(), 0.5, rho=0.5, noise="gaussian", **options)
    with pytest.raises(ValueError, match=r"q must lie in \[0, 1\]"):
        implementation.agg_tree(Untouchable(), 1.5, epsilon=0.25, **options)
    assert accountant.spent.epsilon == 0.75


def test_partial_tree_charges_every_release():
    accountant = privacy.Accountant(1.0)
    partial = dpq.PartialTree.of([0.5], bounds=(0.0, 1.0), branching=2)
    partial.release(epsilon=0.5, accountant=accountant)
    partial.release(epsilon=0.5, accountant=accountant)
    with pytest.raises(privacy.BudgetExceeded):
        partial.release(epsilon=0.5, accountant=accountant)


# What is read off


@pytest.mark.parametrize("total", [None, 30, 0])
@pytest.mark.parametrize("aggregate", [True, False])
@pytest.mark.parametrize("height, branching", SHAPES)
def test_agg_tree_answers_equal_reference(height, branching, aggregate, total):
    rng = np.random.default_rng(6)
    bounds = (-1.0, 3.0)
    levels = noisy_levels(rng, height, branching)
    tree = dpq.AggTree(levels, bounds, UNIT, total=total, aggregate=aggregate)
    expected = ReferenceTree(nodes_of(levels), bounds, total=total, aggregate=aggregate)
    q = np.concatenate([[0.0, 1.0], rng.random(20)])
    np.testing.assert_allclose(tree.quantile(q), expected.quantile(q), atol=1e-9)
    ends = np.sort(rng.uniform(-1.5, 3.5, (2, 30)), axis=0)
    ends[:, :10] = tree.edges[np.sort(rng.integers(0, tree.edges.size, (2, 10)), axis=0)]
    clamped = np.clip(ends, *bounds)
    np.testing.assert_allclose(
        tree.count(*ends), [expected.count(*pair) for pair in clamped.T], atol=1e-9
    )
    for monotone in (True, False):
        np.testing.assert_allclose(
            tree.cdf(ends[0], monotone=monotone),
            [expected.cdf(x, monotone) for x in clamped[0]],
            atol=1e-9,
        )


@given(
    st.integers(0, 10**6),
    st.sampled_from(SHAPES),
    st.booleans(),
    st.sampled_from([None, 0, 25]),
)
def test_agg_tree_quantiles_ascend_inside_the_bounds(seed, shape, aggregate, total):
    rng = np.random.default_rng(seed)
    tree = dpq.AggTree(
        noisy_levels(rng, *shape, spread=50), (-3.0, 5.0), UNIT, total=total, aggregate=aggregate
    )
    q = np.sort(np.concatenate([[0.0, 1.0], rng.random(50)]))
    answers = tree.quantile(q)
    assert (np.diff(answers) >= 0.0).all()
    assert answers[0] >= -3.0 and answers[-1] <= 5.0
    x = np.linspace(-4.0, 6.0, 101)
    shares = tree.cdf(x)
    assert (np.diff(shares) >= 0.0).all() and shares[0] == 0.0 and shares[-1] == 1.0
    np.testing.assert_allclose(tree.cdf(answers[1:-1]), q[1:-1], atol=1e-9)
    lower, upper = tree.quantile_confint(q)
    assert (np.diff(lower) >= 0.0).all() and (np.diff(upper) >= 0.0).all()
    assert (lower >= -3.0).all() and (lower < upper).all() and (upper <= 5.0).all()


def test_agg_tree_answers_in_the_shape_of_the_question(implementation):
    x = np.random.default_rng(7).normal(size=200)
    options = {"epsilon": 1.0, "bounds": (-4.0, 4.0), "height": 2, "branching": 4, "rng": 8}
    assert isinstance(implementation.agg_tree(x, 0.5, **options), float)
    out = implementation.agg_tree(x, [[0.9, 0.1], [0.5, 0.9]], **options)
    assert out.shape == (2, 2)
    assert out[0, 1] <= out[1, 0] <= out[0, 0] == out[1, 1]
    tree = dpq.AggTree.of(x, **options)
    assert isinstance(tree.count(0, 1), float) and isinstance(tree.cdf(0), float)
    assert tree.count([0, 1], [[2], [3]]).shape == (2, 2)
    assert all(isinstance(end, float) for end in tree.quantile_confint(0.5))
    assert tree.quantile_confint([[0.5, 0.2]])[0].shape == (1, 2)


@pytest.mark.slow
def test_agg_tree_rounds_to_the_lattice(implementation):
    options = {"epsilon": 1.0, "bounds": (0.0, 100.0), "rng": 1, "height": 2}
    q = [0.1, 0.5, 0.9]
    ages = np.random.default_rng(9).integers(0, 100, 300)
    for x, resolution, step in (
        (ages, 1, 1.0),
        (ages, 5, 5.0),
        (ages.astype(float), 0.25, 0.25),
    ):
        out = implementation.agg_tree(x, q, resolution=resolution, **options)
        np.testing.assert_array_equal(out % step, 0.0)
    assert (implementation.agg_tree(ages, q, resolution=0, **options) % 1.0 != 0.0).any()
    sample = dpq.Sample.of(ages, (0.0, 100.0), resolution=1)
    np.testing.assert_array_equal(dpq.agg_tree(sample, q, **options) % 1.0, 0.0)


def test_agg_tree_finds_ties_and_no_records(implementation):
    options = {"bounds": (0.0, 8.0), "height": 3, "branching": 2, "resolution": 0}
    out = implementation.agg_tree([3.0] * 50, [0.1, 0.5, 1.0], epsilon=NOISELESS, **options)
    # t^2 (3 - 2 t) between leaves without mass
    np.testing.assert_allclose(out, [3.1958, 3.5, 4.0], atol=2e-3)
    out = implementation.agg_tree([8.0] * 50, [0.1, 1.0], epsilon=NOISELESS, **options)
    # t^2 (2 - t): beyond the bounds the density goes on
    np.testing.assert_allclose(out, [7.2383, 8.0], atol=2e-3)
    # without records, the uniform distribution
    for x in ([], [math.nan, None]):
        out = implementation.agg_tree(x, [0.25, 0.5], epsilon=NOISELESS, **options)
        np.testing.assert_allclose(out, [2.0, 4.0])


def test_agg_tree_leaves_input_unchanged():
    x = np.random.default_rng(10).normal(size=100)
    x.flags.writeable = False
    before = x.copy()
    dpq.agg_tree(x, 0.5, epsilon=1.0, bounds=(-1.0, 1.0))
    np.testing.assert_array_equal(x, before)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["geometric", "laplace", "gaussian"])
@pytest.mark.parametrize("aggregate", [True, False])
def test_agg_tree_confidence_intervals_cover(kind, aggregate):
    rng, levels = np.random.default_rng(11), [0.5, 0.8, 0.95, 0.99]
    x = rng.normal(size=400)
    q = np.array([0.1, 0.5, 0.8])
    true = np.quantile(x, q, method="inverted_cdf")
    lo, hi = np.array([-2.0, 0.5, -0.4, -1.0, -0.3]), np.array([2.0, 1.0, -0.3, 1.1, 0.2])
    clamped = np.clip(x, -2.0, np.nextafter(2.0, 0.0))
    counts = np.array([((clamped >= a) & (clamped < b)).sum() for a, b in zip(lo, hi, strict=True)])
    for budgets, nan_policy in (((6.0, 0.3), "omit"), ((1.0, 4.0), "raise")):
        budget = {"rho": budgets[1]} if kind == "gaussian" else {"epsilon": budgets[0]}
        partial = dpq.PartialTree.of(
            x, bounds=(-2.0, 2.0), height=2, branching=6, nan_policy=nan_policy
        )
        draws, hits = 150, {level: np.zeros(lo.size + q.size, dtype=int) for level in levels}
        for _ in range(draws):
            tree = partial.release(noise=kind, aggregate=aggregate, rng=rng, **budget)
            for level in levels:
                lower, upper = tree.count_confint(lo, hi, level)
                hits[level][: lo.size] += (lower <= counts) & (counts <= upper)
                lower, upper = tree.quantile_confint(q, level)
                hits[level][lo.size :] += (lower <= true) & (true <= upper)
        for level in levels:
            for hit in hits[level].tolist():
                assert stats.binomtest(hit, draws, level, "less").pvalue >= SMALLEST_P, level


@pytest.mark.parametrize("aggregate", [True, False])
def test_agg_tree_confidence_intervals_are_not_idle(aggregate):
    x = np.random.default_rng(12).random(10_000)
    tree = dpq.AggTree.of(x, epsilon=1.0, bounds=(0, 1), aggregate=aggregate, rng=1)
    lower, upper = tree.count_confint(0.2, 0.7)
    assert 4_500 < lower < upper < 5_500
    lower, upper = tree.quantile_confint(0.5)
    assert 0.4 < lower < upper < 0.6


def test_noise_margin_holds_for_sums_of_draws():
    """For sums of equal draws, by convolution of the exact law."""
    for scale in (Fraction(1, 5), Fraction(1, 2), Fraction(2), Fraction(9)):
        one = Geometric(scale)
        reach = np.arange(-1_000, 1_001)
        law = np.exp(noise.discrete_laplace_log_prob(reach, scale))
        total = law
        for draws in range(1, 13):
            if draws > 1:
                total = np.convolve(total, law, mode="same")
            for level in (0.5, 0.8, 0.9, 0.95, 0.99, 0.999):
                inside = np.abs(reach) <= one.margin(level) * math.sqrt(draws)
                # of a sum, as the normal variable that it nearly is: integers are coarser
                allowed = 0.003 if draws > 1 else 1e-9
                assert total[inside].sum() >= level - allowed, (scale, draws, level)


def test_agg_tree_tune_looks_at_generated_data_only():
    seen = []

    def sample(rng, n):
        seen.append(n)
        return rng.normal(0.0, 5.0, n)

    options = dict(epsilon=1.0, bounds=(-100.0, 100.0), sample=sample, rng=0)
    shape = dpq.AggTree.tune(
        300, [0.25, 0.5, 0.75], heights=(1, 3), branchings=(2, 10), draws=10, **options
    )
    assert shape == (3, 10) and seen == [300] * 10
    with pytest.raises(ValueError, match="heights and branchings must have a pair"):
        dpq.AggTree.tune(10, 0.5, heights=[5], branchings=[10], **options)


def test_agg_tree_tune_tries_what_the_docstring_says(monkeypatch):
    """Of every pair of at most 2^16 leaves the best four, on 20 samples, the same for all."""
    tried, tree = [], dpq.AggTree([np.arange(2)], (0.0, 1.0), UNIT)
    expected = {}
    formula = privacy.agg_tree.expected_error

    def kept(height, branching, *rest):
        expected[height, branching] = formula(height, branching, *rest)
        return expected[height, branching]

    def of(x, *, height, branching, **options):
        tried.append((height, branching, float(x.sum())))
        return tree

    monkeypatch.setattr(privacy.agg_tree, "expected_error", kept)
    monkeypatch.setattr(dpq.AggTree, "of", of)
    dpq.AggTree.tune(5, 0.5, epsilon=1.0, bounds=(0.0, 1.0), rng=0)
    assert expected.keys() == {(h, b) for h in range(1, 7) for b in range(2, 16) if b**h <= 2**16}
    shapes = {(height, branching) for height, branching, _ in tried}
    assert shapes == set(sorted(expected, key=expected.__getitem__)[:4])
    samples = {sample for *_, sample in tried}
    assert len(samples) == 20 and len(tried) == 20 * len(shapes)
    shape = dpq.AggTree.tune(
        5, 0.5, epsilon=1.0, bounds=(0.0, 1.0), heights=[4], branchings=[16], draws=1
    )
    assert shape == (4, 16)  # 2^16 leaves


def test_first_passage_is_where_unbiased_numbers_reach_their_level():
    tree = dpq.AggTree([np.array([5, -2, 3, 9])], (0.0, 8.0), UNIT)  # of 15: 5, 3, 6, 15
    assert tree.first_passage([0.0, 1 / 3, 0.34, 0.4, 0.41, 1.0]).tolist() == [
        2.0,
        2.0,
        6.0,
        6.0,
        8.0,
        8.0,
    ]
    assert tree.first_passage(0.2) == 2.0
    empty = dpq.AggTree([np.array([-5, -2, -3, -9])], (0.0, 8.0), UNIT)
    assert empty.first_passage([0.1, 0.9]).tolist() == [8.0, 8.0]
    on_points = exact_tree([3] * 50 + [6] * 50, bounds=(0, 8), resolution=1)
    assert on_points.first_passage([0.25, 0.5, 0.75]).tolist() == [3.0, 3.0, 6.0]


def test_first_passage_loses_little_of_a_sum():
    """Less than the quantile of the same tree, on ages: what a clip is for."""
    ages = np.clip(np.random.default_rng(14).gamma(8.0, 5.0, 1_000).round(), 0, 100)
    rng, lost = np.random.default_rng(15), {"first_passage": [], "quantile": []}
    for _ in range(200):
        tree = dpq.AggTree.of(
            ages, epsilon=0.1, bounds=(0, 1000), resolution=1, nan_policy="raise", rng=rng
        )
        for name, errors in lost.items():
            clip = getattr(tree, name)(0.99)
            # the noise of a sum at the same epsilon, and what is cut off
            errors.append(clip / 0.1 + (ages - np.minimum(ages, clip)).sum())
    assert np.mean(lost["first_passage"]) < np.mean(lost["quantile"])


def test_agg_tree_unbiased_cdf_may_fall():
    tree = dpq.AggTree.of([], epsilon=0.1, bounds=(0, 1), rng=1)
    assert (np.diff(tree.cdf(tree.edges, monotone=False)) < 0.0).any()
    assert (np.diff(tree.cdf(tree.edges)) >= 0.0).all()


# The front door


def test_agg_tree_with_hardly_a_budget_answers():
    for aggregate in (True, False):
        for nan_policy in ("omit", "raise"):
            out = dpq.agg_tree(
                [0.5],
                [0.0, 0.3, 1.0],
                epsilon=1e-14,
                bounds=(0.0, 1.0),
                aggregate=aggregate,
                nan_policy=nan_policy,
                rng=1,
            )
            assert (np.diff(out) >= 0.0).all() and out[0] >= 0.0 and out[-1] <= 1.0


def test_quantile_hands_on_to_agg_tree():
    x = np.random.default_rng(13).normal(size=300)
    options = {"bounds": (-5.0, 5.0), "rng": 7, "height": 2, "branching": 5}
    for budget in ({"epsilon": 1.0}, {"rho": 0.5, "noise": "gaussian"}):
        expected = dpq.agg_tree(x, [0.2, 0.8], **budget, **options)
        found = dpq.quantile(x, [0.2, 0.8], method="agg_tree", delta=1e-6, **budget, **options)
        np.testing.assert_array_equal(found, expected)
        found = dpq.quantile(
            x, [0.2, 0.8], method="agg_tree", dither=False, assume_sorted=True, **budget, **options
        )
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="dither must be left out for method 'agg_tree'"):
        dpq.quantile(x, 0.5, method="agg_tree", epsilon=1.0, dither=True, **options)


# Bad input

GOOD = {"x": [0.2, 0.4], "q": 0.5, "epsilon": 1.0, "bounds": (0.0, 1.0), "height": 2}
GAUSSIAN = {"epsilon": None, "rho": 1.0, "noise": "gaussian"}
BAD = [
    *[
        ({"epsilon": e}, ValueError, "epsilon must be positive and finite")
        for e in (0.0, -1, math.nan)
    ],
    ({"epsilon": "1"}, TypeError, "epsilon must be a real number"),
    ({"epsilon": None}, ValueError, "exactly one of epsilon and rho must be given, got neither"),
    ({"rho": 1.0}, ValueError, "exactly one of epsilon and rho must be given, got both"),
    (
        {"epsilon": None, "rho": 1.0},
        ValueError,
        "noise must be 'gaussian' with rho, .* 'geometric'",
    ),
    ({"noise": "gaussian"}, ValueError, "noise must be 'gaussian' with rho, .* with epsilon"),
    (GAUSSIAN | {"rho": 0.0}, ValueError, "rho must be positive and finite"),
    ({"noise": "normal"}, ValueError, "noise must be one of 'geometric', 'laplace', 'gaussian'"),
    ({"noise": None}, TypeError, "noise must be one of"),
    ({"epsilon": 1e-300}, ValueError, r"epsilon must give noise of a scale of at most 2\^53"),
    (GAUSSIAN | {"rho": 5e-324}, ValueError, r"rho must give noise of a scale of at most 2\^53"),
    ({"height": 0}, ValueError, "height must be at least 1, got 0"),
    ({"height": 2.0}, TypeError, "height must be an integer"),
    ({"branching": 1}, ValueError, "branching must be at least 2, got 1"),
    ({"branching": True}, TypeError, "branching must be an integer"),
    (
        {"height": 8, "branching": 10},
        ValueError,
        r"at most 2\^26 = 67108864 leaves, got 10\^8 = 100000000",
    ),
    ({"branching": 2, "height": 27}, ValueError, r"leaves, got 2\^27"),
    ({"height": 10**9}, ValueError, r"leaves, got 2\^1000000000"),
    (
        {"bounds": (1.0, 1.0 + 2.0**-49), "resolution": 0},
        ValueError,
        "leaves must be at least as wide as",
    ),
    ({"bounds": (1.0, 0.0)}, ValueError, "bounds must be finite with low < high"),
    ({"bounds": None}, TypeError, "bounds must be two real numbers"),
    ({"aggregate": 1}, TypeError, "aggregate must be True or False"),
    ({"neighbors": "remove"}, ValueError, "neighbors must be one of"),
    ({"resolution": -1.0}, ValueError, "resolution must be finite and not negative"),
    ({"max_contributions": 0}, ValueError, "max_contributions must be at least 1"),
    ({"nan_policy": "drop"}, ValueError, "nan_policy must be one of"),
    ({"x": [0.1, math.nan], "nan_policy": "raise"}, ValueError, "x must not contain NaN"),
    ({"x": [[0.1]]}, ValueError, "x must be one-dimensional"),
    ({"x": ["a"]}, TypeError, "x must hold real numbers"),
    ({"counts": [1]}, ValueError, "counts must have one entry for each value"),
    ({"counts": [1, -1]}, ValueError, "counts must not be negative"),
    ({"q": 1.5}, ValueError, r"q must lie in \[0, 1\]"),
    ({"q": []}, ValueError, "q must hold at least one level"),
    ({"accountant": 1.0}, TypeError, "accountant must be an Accountant"),
]


@pytest.mark.parametrize("bad, error, message", BAD, ids=[str(bad) for bad, _, _ in BAD])
def test_agg_tree_rejects_bad_input(implementation, bad, error, message):
    with pytest.raises(error, match=message):
        implementation.agg_tree(**GOOD | bad)


def test_agg_tree_rejects_options_of_a_sample():
    sample = dpq.Sample.of([0.5], (0.0, 1.0))
    for options, message in (
        ({"bounds": (0.0, 2.0)}, "bounds must be left out or equal to the sample's"),
        ({"resolution": 1.0}, "must be left out for a Sample"),
        ({"counts": [1]}, "must be left out for a Sample"),
        ({"nan_policy": "raise"}, "must be left out for a Sample"),
    ):
        with pytest.raises(ValueError, match=message):
            dpq.agg_tree(sample, 0.5, epsilon=1.0, **options)


def test_agg_tree_rejects_bad_questions():
    tree = exact_tree([0.5], height=1)
    with pytest.raises(ValueError, match="lo must be at most hi"):
        tree.count([0.1, 0.5], 0.4)
    for x in (math.nan, [0.1, math.nan]):
        with pytest.raises(ValueError, match="must not be NaN"):
            tree.count(x, 1.0)
        with pytest.raises(ValueError, match="must not be NaN"):
            tree.cdf(x)
    with pytest.raises(TypeError, match="x must be real numbers, got dtype"):
        tree.cdf("0")
    with pytest.raises(TypeError, match="monotone must be True or False"):
        tree.cdf(0.5, monotone=None)
    for level in (0.0, 1.0):
        with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
            tree.count_confint(0.0, 1.0, level)
        with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
            tree.quantile_confint(0.5, level)


NODES = [np.arange(2), np.arange(4)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(nodes="ab"), TypeError, "nodes must be a list of one-dimensional arrays"),
        (dict(nodes=[]), TypeError, "nodes must be a list of one-dimensional arrays"),
        (dict(nodes=[np.arange(2), [1, 2]]), TypeError, "nodes must be a list"),
        (dict(nodes=[np.array(["a", "b"])]), TypeError, "nodes must be a list"),
        (dict(nodes=[np.arange(2), np.arange(3)]), ValueError, r"nodes must hold b, b\^2"),
        (dict(nodes=[np.arange(1)]), ValueError, r"nodes must hold b, b\^2"),
        (dict(noise=2.0), TypeError, "noise must be a CountNoise, got float"),
        (dict(lattice=0.5), TypeError, "lattice must be a Lattice or None, got float"),
        (dict(bounds=(1, 0)), ValueError, "bounds must be finite with low < high"),
        (dict(total=-1), ValueError, "total must be at least 0, got -1"),
        (dict(total=10**400), ValueError, r"total must be at most 2\*\*53"),
        (dict(aggregate=1), TypeError, "aggregate must be True or False, got 1"),
    ],
)
def test_a_tree_is_made_of_counts(arguments, error, message):
    usual = dict(nodes=NODES, bounds=(0.0, 1.0), noise=Geometric(Fraction(1)))
    with pytest.raises(error, match=f"^{message}"):
        dpq.AggTree(**usual | arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(draws=2**40), r"n times draws must be at most 268435456 records"),
        (dict(n=2**53), r"n times draws must be at most 268435456 records"),
        (dict(heights=[0]), "heights must be at least 1, got 0"),
        (dict(heights=[10**400]), r"heights must be at most 2\*\*53"),
        (dict(branchings=[1]), "branchings must be at least 2, got 1"),
    ],
)
def test_what_cannot_be_tried_is_refused(arguments, message):
    usual = dict(n=10, q=0.5, epsilon=1.0, bounds=(-1.0, 1.0), heights=[1], branchings=[2])
    with pytest.raises(ValueError, match=f"^{message}"):
        dpq.AggTree.tune(**usual | arguments)


# Partial trees are released as columns are


@pytest.mark.parametrize("function", [dpq.PartialTree.release, dpq.AggTree.of])
def test_releases_of_trees_have_the_defaults_of_agg_tree(function):
    expected = inspect.signature(dpq.agg_tree).parameters
    given = inspect.signature(function).parameters
    shared = given.keys() & expected.keys() - {"x"}
    assert shared >= {"epsilon", "rho", "noise", "aggregate", "neighbors", "max_contributions"}
    for name in shared:
        assert given[name].default == expected[name].default, name


def test_partial_tree_release_refuses_a_wrong_flag_before_the_charge():
    accountant = privacy.Accountant(1.0)
    partial = dpq.PartialTree.of([1.0, 2.0], bounds=(0, 9), height=1, branching=3)
    with pytest.raises(TypeError, match="aggregate must be True or False, got 1"):
        partial.release(epsilon=1.0, aggregate=1, accountant=accountant)
    assert accountant.history == ()
    partial.release(epsilon=1.0, accountant=accountant, rng=1)
    assert accountant.history == (
        privacy.guarantee("agg_tree", epsilon=1.0, height=1, branching=3),
    )


# A public number that the total is at most


@pytest.mark.parametrize("aggregate", [True, False])
def test_tree_is_of_most_records_unless_the_counts_say_less(aggregate):
    """The total of 4 nodes has the variance of 4: two deviations are 4 of the noise's."""
    levels, q = [np.array([10, 2, 5, 13])], [0.1, 0.35, 0.8]
    apart = 4.0 * math.sqrt(UNIT.variance)
    free = dpq.AggTree(levels, (0.0, 8.0), UNIT, aggregate=aggregate)
    assert free.total == 30.0
    for most, told_apart in (
        (25, False),
        (30 + math.floor(apart), False),
        (30 + math.ceil(apart), True),
        (1_000, True),
    ):
        tree = dpq.AggTree(levels, (0.0, 8.0), UNIT, most=most, aggregate=aggregate)
        expected = free
        if not told_apart:
            expected = dpq.AggTree(levels, (0.0, 8.0), UNIT, total=most, aggregate=aggregate)
        np.testing.assert_array_equal(tree.quantile(q), expected.quantile(q))
        assert tree.total == 30.0 and not tree.total_known
    known = dpq.AggTree(levels, (0.0, 8.0), UNIT, total=28, most=35, aggregate=aggregate)
    without = dpq.AggTree(levels, (0.0, 8.0), UNIT, total=28, aggregate=aggregate)
    np.testing.assert_array_equal(known.quantile(q), without.quantile(q))


def test_rows_are_what_a_tree_has_at_most_under_swap_alone():
    """Without a missing record the answer is that of a public total, under the same noise."""
    x = np.random.default_rng(0).normal(size=500)
    form = dict(epsilon=1.0, bounds=(-5, 5), height=2, branching=5, rng=4)
    q = [0.2, 0.5, 0.9]
    public = dpq.agg_tree(x, q, nan_policy="raise", **form)
    np.testing.assert_array_equal(dpq.agg_tree(x, q, **form), public)
    half = np.where(np.arange(500) % 2, np.nan, x)
    assert np.abs(dpq.agg_tree(half, q, **form) - np.quantile(half[::2], q)).max() < 0.5
    assert (dpq.agg_tree(x, q, counts=np.ones(500, dtype=int), **form) != public).any()
    assert (dpq.agg_tree(x, q, neighbors="add-remove", **form) != public).any()
    with pytest.raises(ValueError, match="most must be at least 0, got -1"):
        dpq.AggTree([np.arange(4)], (0.0, 1.0), UNIT, most=-1)


def test_agg_tree_without_any_mass_is_even(implementation):
    """Noise may leave no leaf a mass; that is no reason to warn of a division, or to fail."""
    form = dict(bounds=(0, 4), height=2, branching=4, neighbors="add-remove", epsilon=0.5)
    for seed in range(150):
        low, high = implementation.agg_tree([], [0.25, 0.75], rng=seed, **form)
        assert 0.0 <= low <= high <= 4.0
    leaves = importlib.import_module("dpq_fast.data.leaves")
    curve = leaves.Curve.of_masses(np.array([0.0, 1.0, 4.0]), np.zeros(2), None)
    assert np.interp(0.5, curve.p, curve.x) == pytest.approx(2.0)
    plain = importlib.import_module("dpq_fast.reference.agg_tree")
    x, p = zip(*plain.spread([0.0, 1.0, 4.0], [0.0, 0.0], None), strict=True)
    assert np.interp(0.5, p, x) == pytest.approx(2.0)
