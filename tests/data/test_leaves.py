"""Leaves of lattice points: exact counts, step functions and their inverses, distances, errors."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from conftest import pure_rho
from hypothesis import given
from hypothesis import strategies as st

import dpq_fast as dpq
from dpq_fast import privacy, reference
from dpq_fast.data import leaves as leaves_module
from dpq_fast.data.lattice import Lattice, points_per_unit
from dpq_fast.data.leaves import Leaves, points_below, rounding_edges
from dpq_fast.data.records import Records
from dpq_fast.noise.counts import Geometric
from dpq_fast.reference.agg_tree import AggTree as ReferenceTree
from dpq_fast.reference.agg_tree import Leaves as ReferenceLeaves
from dpq_fast.reference.lattice import Lattice as ReferenceLattice
from dpq_fast.released.cdf import CDF

NOISELESS = 1e9
# Bounds and resolutions: negative ones, decimals, bounds that are no multiples, a step of 1/3.
GRIDS = [
    ((0.0, 120.0), 1.0),
    ((-7.0, 5.0), 1.0),
    ((-0.5, 9.7), 1.0),
    ((0.0, 1.0), 0.01),
    ((-1.234, 2.5), 0.1),
    ((-2.0, 11.0), 1.0 / 3.0),
    ((3.0, 1000.0), 2.5),
    ((-1e6, 1e6), 0.01),
]
SMALL_GRIDS = [grid for grid in GRIDS if grid[0][1] - grid[0][0] <= 40 * grid[1]]
COUNTED = ("binary_tree", "agg_tree", "histogram", "adaptive")


def counts_column(n: int = 10_000) -> np.ndarray:
    """Counts of which 80% are 0."""
    rng = np.random.default_rng(0)
    tail = np.clip(np.rint(rng.lognormal(4.0, 1.0, n)), 1, 1000)
    return np.where(rng.random(n) < 0.8, 0.0, tail)


def values_near(lattice: Lattice, rng: np.random.Generator, size: int) -> np.ndarray:
    """Numbers on lattice points, halfway between them, one float64 number beside, and far off."""
    points = lattice.decode(rng.integers(-2, min(lattice.points, 10**6) + 2, size))
    middle = points + lattice.step / 2.0
    near = [points, middle, np.nextafter(middle, -math.inf), np.nextafter(middle, math.inf)]
    return np.concatenate([*near, rng.uniform(lattice.low, lattice.high, size), [-1e300, math.inf]])


# Leaves


@pytest.mark.parametrize("bounds, resolution", GRIDS)
@pytest.mark.parametrize("most", [2, 3, 7, 100, 1024])
def test_leaves_hold_the_records_that_round_to_their_points(bounds, resolution, most):
    lattice = Lattice.of(bounds, resolution, False)
    leaves = Leaves(bounds, lattice, most)
    x = values_near(lattice, np.random.default_rng(1), 500)
    point = lattice.encode(x)
    if lattice.points <= most:
        leaf = point
    else:  # floor(p L / P), in Python's integers
        leaf = np.array([p * most // lattice.points for p in point.tolist()])
    expected = np.bincount(leaf, minlength=leaves.size)
    np.testing.assert_array_equal(Records.of(x).count(leaves.bins()), expected)
    plain = ReferenceLeaves(bounds, ReferenceLattice.of(bounds, resolution, False), most)
    np.testing.assert_array_equal(plain.counts(x)[: leaves.size], expected)
    assert leaves.size == min(most, lattice.points) and leaves.bins().size == leaves.size


@given(
    st.integers(-(2**40), 2**40),
    st.floats(1e-9, 1e9) | st.sampled_from([0.1, 0.01, 1.0 / 3.0, 1.0]),
)
def test_rounding_edges_are_the_smallest_that_round_up(multiple, step):
    per_unit = points_per_unit(step)
    (edge,) = rounding_edges(np.array([float(multiple)]), step, per_unit)

    def rounded(value):
        return np.rint(value * per_unit if per_unit else value / step)

    assert rounded(edge) >= multiple > rounded(np.nextafter(edge, -math.inf))


@pytest.mark.parametrize("bounds, resolution", GRIDS)
def test_points_below_counts_by_comparison(bounds, resolution):
    lattice = Lattice.of(bounds, resolution, False)
    points = lattice.decode(np.arange(min(lattice.points, 3_000)))
    x = values_near(lattice, np.random.default_rng(2), 300)
    x = x[x < points[-1]]
    for side in ("left", "right"):
        np.testing.assert_array_equal(
            points_below(lattice, x, side), np.searchsorted(points, x, side)
        )


@pytest.mark.parametrize("bounds", [(0.0, 0.9), (0.3, 0.9), (-0.9, 0.02), (0.0, 1.9)])
@pytest.mark.parametrize("ulps", [1.05, 1.3, 1.57])
def test_points_below_counts_by_comparison_where_points_are_next_to_each_other(bounds, ulps):
    """Rounding may miss the nearest point by one there."""
    lattice = Lattice.of(bounds, ulps * math.ulp(np.abs(bounds).max()), False)
    points = np.random.default_rng(0).integers(1, lattice.points - 1, 2_000)
    x = lattice.decode(points)
    x = np.concatenate((x, np.nextafter(x, math.inf), np.nextafter(x, -math.inf)))
    for side, below in (("left", np.less), ("right", np.less_equal)):
        found = points_below(lattice, x, side)
        assert below(lattice.decode(found - 1), x).all()
        assert not below(lattice.decode(found), x).any()


def test_leaves_of_a_uniform_lattice_are_found_without_a_search():
    """Edges lie in the middle of the table's keys: the speed of equal bins."""
    for points, most in ((10**6 + 1, 1000), (1001, 1001), (121, 128), (10**6, 1000), (4096, 1024)):
        for first, step in ((0, 1.0), (1000, 0.25), (-70, 3.0)):
            bounds = first * step, (first + points - 1) * step
            lattice = Lattice.of(bounds, step, False)
            assert Leaves(bounds, lattice, most).bins()._table.most <= 1


def test_few_leaves_are_kept_for_the_next_call(monkeypatch):
    bounds = (0.0, 9.0)
    lattice = Lattice.of(bounds, 1.0, False)
    for kept in (4, 3):
        monkeypatch.setattr(leaves_module, "KEPT_BINS", kept)
        leaves = Leaves.of(bounds, lattice, 4)
        assert (Leaves.of(bounds, lattice, 4) is leaves) == (kept >= 4)
        assert (leaves.bins() is leaves.bins()) == (kept >= 4)


@pytest.mark.parametrize("resolution", [0, 1])
def test_leaves_are_read_only(resolution):
    leaves = Leaves((0.0, 9.0), Lattice.of((0.0, 9.0), resolution, False), 4)
    for kept in (leaves.starts, leaves.places, leaves.edges, leaves.ends):
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 1.0


@pytest.mark.parametrize(
    "bounds, resolution",
    [((-1.7e308, 0.0), 1e308), ((0.0, 1.7e308), 1e308), ((0.0, 1.0), 2.0**-52), ((0.4, 3), 1)],
)
@pytest.mark.parametrize("method", ["binary_tree", "agg_tree", "histogram", "adaptive"])
def test_lattices_at_the_ends_of_float64_are_answered(bounds, resolution, method):
    for x in ([], [0.5, 1.0, 1e308, -math.inf]):
        curve = dpq.cdf(x, epsilon=1.0, bounds=bounds, resolution=resolution, method=method, rng=0)
        low, high = curve.quantile([0.0, 1.0])
        assert bounds[0] <= low <= high <= bounds[1]
        assert curve.cdf(bounds[1]) == 1.0 and 0.0 <= curve.ks([1.0]) <= 1.0


# Shapes


@pytest.mark.parametrize("points", [2, 3, 10, 121, 1001, 2048])
def test_every_point_is_a_leaf_of_the_default_tree_on_few_points(points):
    bounds = (0.0, points - 1.0)
    tree = dpq.AggTree.of([0.0], epsilon=1.0, bounds=bounds, resolution=1, rng=0)
    np.testing.assert_array_equal(tree.edges, np.arange(points + 1.0))
    assert (tree.branching - 1) ** tree.height < points <= tree.branching**tree.height
    for method in ("binary_tree", "agg_tree", "histogram"):
        curve = dpq.cdf([0.0], epsilon=1.0, bounds=bounds, resolution=1, method=method, rng=0)
        np.testing.assert_array_equal(curve.x, np.arange(-1.0, points))


@pytest.mark.slow
def test_a_tree_has_no_more_levels_than_points_need(implementation):
    """Each level costs noise; what is charged is what is spent."""
    options = dict(bounds=(0.0, 120.0), resolution=1.0, epsilon=1.0)
    accountant = privacy.Accountant(9.0)
    implementation.agg_tree([1.0], 0.5, height=5, branching=10, accountant=accountant, **options)
    implementation.cdf([1.0], bins=1024, accountant=accountant, **options)
    implementation.cdf([1.0], method="adaptive", steps=200, accountant=accountant, **options)
    tree, binary, adaptive = accountant.history
    # a record is in two counts of each level: of 3, and of 7
    assert tree.rho == pytest.approx(6 * pure_rho(1 / 6), rel=1e-12)
    assert binary.rho == adaptive.rho == pytest.approx(14 * pure_rho(1 / 14), rel=1e-12)
    assert tree == privacy.guarantee("agg_tree", epsilon=1.0, height=5, branching=10, points=121)
    assert binary == privacy.guarantee("cdf", epsilon=1.0, bins=1024, points=121)
    assert adaptive == privacy.guarantee(
        "cdf", epsilon=1.0, method="adaptive", steps=200, points=121
    )
    made = dpq.AggTree.of([1.0], height=5, branching=10, **options)
    assert (made.height, made.branching) == (3, 5)
    assert made.noise == privacy.agg_tree.calibrate(epsilon=1.0, height=3).noise


# Known columns


@pytest.mark.slow
@pytest.mark.parametrize("method", [*COUNTED, "AggTree"])
def test_cdf_of_counts_has_its_mass_at_zero(method):
    """F(0) was 0 by every method, and the median 1 or 5."""
    x = counts_column()
    at = np.arange(1001.0)
    true = np.searchsorted(np.sort(x), at, side="right") / x.size
    medians, distances = [], []
    for seed in range(100):
        options = dict(epsilon=1.0, bounds=(0, 1000), resolution=1, rng=seed)
        if method == "AggTree":
            curve = dpq.AggTree.of(x, **options)
            assert dpq.agg_tree(x, 0.5, **options) == curve.quantile(0.5)
            distances.append(np.abs(curve.cdf(at) - true).max())
        else:
            curve = dpq.cdf(x, method=method, **options)
            distances.append(curve.ks(x))
        medians.append(curve.quantile(0.5))
    assert np.count_nonzero(np.array(medians) == 0.0) >= 99
    assert np.mean(distances) <= 0.015


@pytest.mark.parametrize("method", COUNTED)
def test_cdf_of_whole_numbers_is_near_theirs(method):
    x = np.random.default_rng(1).binomial(90, 0.4, 10_000) + 17.0  # may hold NaN: n is private
    options = dict(epsilon=1.0, bounds=(0, 120), resolution=1, method=method)
    assert np.mean([dpq.cdf(x, rng=seed, **options).ks(x) for seed in range(50)]) <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [5.0, 0.05])
@pytest.mark.parametrize("neighbors, most", [("swap", 0.0125), ("add-remove", 0.008)])
def test_cdf_adaptive_on_many_points_pays_for_its_depth(neighbors, most, deviation):
    """The noise was that of all steps: 0.0138 and, of narrow data, 0.026."""
    x = np.random.default_rng(1).normal(0.0, deviation, 10_000)
    options = dict(epsilon=1.0, bounds=(-100, 100), method="adaptive", neighbors=neighbors)
    assert np.mean([dpq.cdf(x, rng=seed, **options).ks(x) for seed in range(50)]) <= most


@pytest.mark.parametrize("bounds, resolution", SMALL_GRIDS)
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_cdf_without_noise_is_that_of_rounded_records(
    implementation, bounds, resolution, neighbors
):
    lattice = Lattice.of(bounds, resolution, False)
    x = values_near(lattice, np.random.default_rng(3), 40)
    records = lattice.decode(lattice.encode(x))
    points = lattice.decode(np.arange(lattice.points))
    at = np.concatenate((points, points + 0.3 * resolution, [-1e9, 1e9]))
    true = (records[:, None] <= at).mean(axis=0)
    q = np.linspace(0.003, 0.997, 60)
    for method in ("binary_tree", "agg_tree", "histogram"):
        curve = implementation.cdf(
            x,
            epsilon=NOISELESS,
            bounds=bounds,
            resolution=resolution,
            neighbors=neighbors,
            method=method,
        )
        np.testing.assert_allclose([curve.cdf(value) for value in at], true, atol=1e-12)
        expected = np.quantile(records, q, method="inverted_cdf")
        assert [curve.quantile(level) for level in q] == expected.tolist()
        assert curve.total == pytest.approx(x.size)
    if implementation is dpq:
        assert curve.ks(records) == pytest.approx(0.0, abs=1e-12)
        low, high = points[3], points[6]
        inside = ((records >= low) & (records < high)).sum()
        assert curve.count(low, high) == pytest.approx(inside, abs=1e-9)


# Trees of any number of points


SHAPES = [(2, 3, 5), (2, 3, 9), (1, 4, 3), (3, 2, 8), (2, 3, 100), (2, 4, 14), (3, 3, 20)]


def tree_pair(seed, shape, aggregate=True, total=None):
    height, branching, points = shape
    rng = np.random.default_rng(seed)
    levels = [rng.integers(-3, 12, branching**depth) for depth in range(1, height + 1)]
    bounds = (-2.0, points - 3.0)
    options = dict(total=total, aggregate=aggregate)
    nodes = {
        (depth, index): float(count)
        for depth, level in enumerate(levels, start=1)
        for index, count in enumerate(level)
    }
    unit = Geometric(Fraction(1))
    lattice, plain = (kind.of(bounds, 1.0, False) for kind in (Lattice, ReferenceLattice))
    return (
        dpq.AggTree(levels, bounds, unit, lattice=lattice, **options),
        ReferenceTree(nodes, bounds, lattice=plain, **options),
    )


@pytest.mark.parametrize("shape, total", list(product(SHAPES, [None, 30, 0])))
@pytest.mark.parametrize("aggregate", [True, False])
def test_agg_tree_on_a_lattice_equals_reference(shape, total, aggregate):
    tree, expected = tree_pair(1, shape, aggregate, total)
    at = np.arange(-4.0, shape[2] + 1.0, 0.5)
    for monotone in (True, False):
        np.testing.assert_allclose(
            tree.cdf(at, monotone=monotone), [expected.cdf(x, monotone) for x in at], atol=1e-9
        )
    for lo in at[::8]:
        hi = at[at >= lo]
        np.testing.assert_allclose(
            tree.count(lo, hi), [expected.count(lo, x) for x in hi], atol=1e-9
        )
    q = np.random.default_rng(2).random(30)
    np.testing.assert_array_equal(tree.quantile(q), expected.quantile(q))


@given(
    st.integers(0, 10**6),
    st.sampled_from(SHAPES),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9),
)
def test_quantiles_are_generalized_inverses(seed, shape, q):
    """The smallest lattice point p with cdf(p) >= q; right-continuous, with steps at points."""
    tree, _ = tree_pair(seed, shape)
    low, high = tree.bounds
    points = np.arange(low, high + 1.0)
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.choice(np.arange(low - 1.0, high + 1.0), 6))
    p = np.sort(rng.random(6)) * (knots >= low)
    knots, p = np.append([low - 1.0], knots), np.append([0.0], p)
    curve = CDF(np.append(knots, high), np.append(p, 1.0), lattice=tree.lattice)
    for function in (tree, curve):
        values = function.cdf(points)
        np.testing.assert_array_equal(function.cdf(points + 0.75)[:-1], values[:-1])
        assert (np.diff(values) >= 0.0).all() and values[-1] == 1.0
        assert function.cdf(low - 0.01) == 0.0
        levels = np.concatenate((q, values))
        found = function.quantile(levels)
        for level, answer in zip(levels.tolist(), found.tolist(), strict=True):
            assert answer == points[np.argmax(values >= max(level, 5e-324))]


def test_quantiles_of_very_many_points_are_generalized_inverses():
    tree = dpq.AggTree.of([0.1, 0.7], epsilon=1.0, bounds=(0.0, 1.0), resolution=2.0**-50, rng=0)
    q = np.random.default_rng(0).random(50)
    points = tree.lattice.encode(tree.quantile(q))
    assert (tree.cdf(tree.lattice.decode(points)) >= q).all()
    assert (tree.cdf(tree.lattice.decode(points - 1)) < q).all()


def test_quantiles_where_many_points_share_a_value_are_the_smallest():
    """2^50 points over which a function rises by 2^-45: by 128 float64 numbers."""
    lattice = Lattice.of((0.0, 1.0), 2.0**-50, False)
    x = lattice.decode(np.array([-1, 10, lattice.points - 5, lattice.points - 1]))
    curve = CDF(x, np.array([0.0, 0.5, 0.5 + 2.0**-45, 1.0]), lattice=lattice)
    q = 0.5 + 2.0**-45 * np.arange(1, 128) / 128
    points = lattice.encode(curve.quantile(q))
    np.testing.assert_array_equal(curve.cdf(lattice.decode(points)), q)
    assert (curve.cdf(lattice.decode(points - 1)) < q).all()


@pytest.mark.parametrize("nan_policy", ["omit", "raise"])
def test_leaves_without_a_point_have_no_mass(nan_policy):
    """11 points of 3 leaves and 3^3: the leaves beyond the points are part of the last one."""
    x = np.repeat(np.arange(9.0), 50)
    options = dict(bounds=(0, 10), resolution=1, height=3, branching=3, nan_policy=nan_policy)
    for seed in range(30):
        tree = dpq.AggTree.of(x, epsilon=1.0, rng=seed, **options)
        assert tree.edges.size == 12 and tree.counts[-1].size == 27
        assert tree.cdf(10.0) == 1.0 and tree.quantile(1.0) <= 10.0
        assert tree.count(0, 11) == pytest.approx(tree.total)
        assert tree.count(0, [10, 11, 99]).shape == (3,)
    tree = dpq.AggTree.of(x, epsilon=NOISELESS, **options)
    assert tree.count(10, 11) == 0.0 and tree.quantile(1.0) == 8.0


def test_partial_trees_on_a_lattice_merge_into_the_whole():
    x = values_near(Lattice.of((-7.0, 5.0), 0.5, False), np.random.default_rng(4), 100)
    options = dict(bounds=(-7.0, 5.0), resolution=0.5)
    first, *others = [dpq.PartialTree.of(part, **options) for part in np.array_split(x, 3)]
    merged = first.merge(*others).release(epsilon=1.0, rng=1)
    whole = dpq.PartialTree.of(x, **options).release(epsilon=1.0, rng=1)
    for found, expected in zip(merged.nodes, whole.nodes, strict=True):
        np.testing.assert_array_equal(found, expected)
    # a dithered sample has the same points
    sample = dpq.Sample.of(x, (-7.0, 5.0), resolution=0.5)
    merged = dpq.PartialTree.of(sample).merge(dpq.PartialTree.of(x, **options))
    assert merged.release(epsilon=NOISELESS).total == 2 * x.size
    with pytest.raises(ValueError, match="the same bounds, height, branching, lattice and unit"):
        first.merge(dpq.PartialTree.of(x, bounds=(-7.0, 5.0), resolution=0.25))


# Errors that are said


@pytest.mark.slow
@pytest.mark.parametrize("shape", [{}, dict(height=2, branching=4), dict(height=3, branching=4)])
def test_confidence_intervals_on_a_lattice_cover(shape):
    rng = np.random.default_rng(5)
    x = np.where(rng.random(500) < 0.6, 3.0, rng.integers(0, 40, 500))
    q = np.array([0.1, 0.5, 0.9])
    lower_true = np.quantile(x, q, method="inverted_cdf")
    lo, hi = np.array([3, 0, 10, 39]), np.array([4, 40, 21, 40])
    counts = [((x >= a) & (x < b)).sum() for a, b in zip(lo, hi, strict=True)]
    draws, hits, caught = 300, np.zeros(4), np.zeros(3)
    for seed in range(draws):
        tree = dpq.AggTree.of(x, epsilon=1.0, bounds=(0, 39), resolution=1, rng=seed, **shape)
        lower, upper = tree.count_confint(lo, hi, 0.9)
        hits += (lower <= counts) & (counts <= upper)
        lower, upper = tree.quantile_confint(q, 0.9)
        assert (lower % 1 == 0).all() and (upper % 1 == 0).all()
        assert (lower >= 0).all() and (upper <= 39).all()
        caught += (lower <= lower_true) & (lower_true <= upper)
        assert ((lower <= tree.quantile(q)) & (tree.quantile(q) <= upper)).mean() > 0.6
    assert (np.concatenate((hits, caught)) >= 0.82 * draws).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", COUNTED)
def test_accuracy_on_a_lattice_covers_all_intervals(method):
    x = counts_column(2_000)
    options = dict(epsilon=1.0, bounds=(0, 300), resolution=1, method=method)
    # what does not depend on the draws
    known = dpq.cdf(x, rng=0, **options)._noise._replace(apart=0.0).span(0.1)
    failures = 0
    for seed in range(100):
        curve = dpq.cdf(x, rng=seed, **options)
        through = np.searchsorted(np.sort(np.minimum(x, 300.0)), curve.x, side="right")
        alpha = known + curve._noise.apart
        failures += np.ptp(curve.total * curve.p - through) > alpha
    assert failures <= 30
    assert curve.accuracy(0.1) == alpha


# Distances


def expanded(curve):
    """The same function as jumps at all its points, to the brute force of the code before."""
    points = curve.lattice.decode(np.arange(curve.lattice.points))
    p = np.concatenate(([0.0], curve.cdf(points)))
    return CDF(np.repeat(points, 2), np.repeat(p, 2)[1:-1])


def random_curve(rng, bounds, resolution, knots):
    lattice = Lattice.of(bounds, resolution, False)
    x = np.sort(rng.choice(np.arange(-1, lattice.points), knots))
    p = np.sort(rng.random(knots)) * (x >= 0)
    x, p = np.concatenate(([-1], x, [lattice.points - 1])), np.concatenate(([0.0], p, [1.0]))
    return CDF(lattice.decode(x), p, lattice=lattice)


@pytest.mark.parametrize("seed", range(25))
def test_distances_on_lattices_equal_sums_over_all_points(seed):
    rng = np.random.default_rng(seed)
    one = random_curve(rng, (-5.0, 20.0), 0.5, 4)
    others = [
        random_curve(rng, (-5.0, 20.0), 0.5, 5),
        random_curve(rng, (0.0, 31.0), 0.5, 3),
        random_curve(rng, (-3.0, 12.0), 0.7, 4),
        CDF([-4.0, 3.3, 3.3, 22.0], [0.0, 0.2, 0.6, 1.0]),
        np.round(rng.uniform(-9.0, 25.0, 7) * 4.0) / 4.0,
        rng.normal(5.0, 6.0, 9),
    ]
    for other in others:
        plain = other if not isinstance(other, CDF) or other.lattice is None else expanded(other)
        for name in ("ks", "wasserstein", "energy"):
            found = getattr(one, name)(other)
            assert found == pytest.approx(getattr(expanded(one), name)(plain), abs=1e-9)
            if isinstance(other, CDF):
                assert getattr(other, name)(one) == pytest.approx(found, abs=1e-12)
    for name in ("ks", "wasserstein", "energy"):
        assert getattr(one, name)(one) == 0.0


def test_distances_do_not_go_through_all_points():
    """2^40 points in two runs; against a record at 1/2 as for the uniform distribution."""
    lattice = Lattice.of((0.0, 1.0), 2.0**-40, False)
    curve = CDF([-(2.0**-40), 0.25, 1.0], [0.0, 0.25, 1.0], lattice=lattice)
    assert curve.ks([0.5]) == pytest.approx(0.5)
    assert curve.wasserstein([0.5]) == pytest.approx(0.25)
    assert curve.energy([0.5]) == pytest.approx(math.sqrt(2 * 2 * 0.5**3 / 3))
    with pytest.raises(ValueError, match=r"at most 2\^24 of them to be compared"):
        curve.ks(CDF([0.0, 1.0], [0.0, 1.0]))


# Form


def test_cdf_plots_steps_where_points_are_known():
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="extra 'plot' not installed")
    lattice = Lattice.of((0.0, 5.0), 1.0, False)
    curve = CDF([-1.0, 0.0, 1.0, 5.0], [0.0, 0.5, 0.75, 1.0], lattice=lattice)
    (line,) = curve.plot(pyplot.figure().gca()).lines
    assert line.get_xdata().tolist() == [-1.0, 0.0, 0.0, 1.0, 1.0, 5.0]
    assert line.get_ydata().tolist() == [0.0, 0.0, 0.5, 0.5, 0.75, 1.0]
    pyplot.close("all")
    frame = curve.to_frame()
    np.testing.assert_array_equal(curve.cdf(frame["x"].to_numpy()), frame["p"])


@pytest.mark.parametrize(
    ("x", "p"),
    [([-1.0, 0.5, 5.0], [0.0, 0.5, 1.0]), ([-2.0, 5.0], [0.0, 1.0]), ([-1, -1, 5], [0, 0.5, 1])],
)
def test_cdf_on_a_lattice_is_given_at_its_points(x, p):
    lattice = Lattice.of((0.0, 5.0), 1.0, False)
    with pytest.raises(ValueError, match=r"^x must be points of the lattice or, where p is 0"):
        CDF(np.array(x, dtype=float), np.array(p, dtype=float), lattice=lattice)


def test_a_lattice_of_other_bounds_is_refused():
    with pytest.raises(ValueError, match=r"lattice must be one of bounds \(0.0, 4.0\)"):
        dpq.AggTree(
            [np.arange(2)],
            (0.0, 4.0),
            Geometric(Fraction(1)),
            lattice=Lattice.of((0.0, 5.0), 1.0, False),
        )


@pytest.mark.parametrize("method", COUNTED)
def test_cdf_on_a_lattice_fast_equals_reference_without_noise(method):
    """All answers, whatever the shape, on records at, between and beyond the points."""
    for (bounds, resolution), seed in product(SMALL_GRIDS, range(3)):
        lattice = Lattice.of(bounds, resolution, False)
        x = values_near(lattice, np.random.default_rng(seed), 30)
        options = dict(epsilon=NOISELESS, bounds=bounds, resolution=resolution, method=method)
        options |= {"bins": 8} if method in ("binary_tree", "histogram") else {}
        options |= {"bins": 16, "steps": 5} if method == "adaptive" else {}
        fast, slow = dpq.cdf(x, **options), reference.cdf(x, **options)
        np.testing.assert_allclose(fast.x, slow.x, atol=1e-12)
        np.testing.assert_allclose(fast.p, slow.p, atol=1e-12)
        at = values_near(lattice, np.random.default_rng(9), 20)
        np.testing.assert_allclose(fast.cdf(at), [slow.cdf(v) for v in at], atol=1e-12)
        q = np.random.default_rng(seed).random(20)
        assert fast.quantile(q).tolist() == [slow.quantile(level) for level in q]
