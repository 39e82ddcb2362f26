"""Mechanisms with a prior: laws by enumeration and reference, leaves of equal mass, accuracy."""

from __future__ import annotations

import importlib
import math
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
import enumeration
from dpq_fast import privacy, reference
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.leaves import Leaves
from dpq_fast.data.records import Records
from dpq_fast.laws.depth import DepthLaw, window_of
from dpq_fast.laws.joint.path import PathLaw
from dpq_fast.noise.counts import Geometric
from dpq_fast.orders.sorted import SortedOrder
from dpq_fast.orders.weighed import WeighedOrder
from dpq_fast.reference.agg_tree import AggTree as ReferenceTree
from dpq_fast.reference.agg_tree import Leaves as ReferenceLeaves
from dpq_fast.reference.lattice import Lattice as ReferenceLattice
from dpq_fast.released.cdf import CDF

dithered_module = importlib.import_module("dpq_fast.orders.dithered")
# On the points 1, ..., 6.
PLACE = dict(bounds=(1.0, 6.0), resolution=1.0)
POINTS = 6
PRIORS: dict[str, Any] = {
    "log": "log",
    "normal": stats.norm(3.0, 1.0),
    "counts": [(0.7, stats.poisson(2.0)), (0.3, None)],
    "steep": (lambda x: np.clip(x / 6.5, 0.0, 1.0) ** 8, None),
}
COLUMNS: list[list[float]] = [
    [],
    [2.0],
    [1.0, 1.0, 6.0],
    [2.0, 2.0, 2.0, 5.0],
    [6.0, 3.0, 1.0, 4.0],
]
# Far too little noise to move an answer.
NOISELESS = 1e9


def shares_of(prior: Any) -> np.ndarray:
    """The prior's mass of each point."""
    lattice = Lattice.between((1.0, 6.0), 1.0, True, prior)[1]
    assert lattice is not None and lattice.masses is not None
    return lattice.masses.of(np.arange(POINTS)) / lattice.masses.total


def log_probs(law: Any, m: int) -> dict[tuple[int, ...], float]:
    return {
        o: law.log_prob([point + 1.0 for point in o])
        for o in combinations_with_replacement(range(POINTS), m)
    }


def assert_equal_laws(found: dict, expected: dict) -> None:
    assert found.keys() == expected.keys()
    for o in expected:
        assert found[o] == pytest.approx(expected[o], abs=1e-9), o
    assert math.fsum(map(math.exp, found.values())) == pytest.approx(1.0, abs=1e-12)


# Laws


@pytest.mark.parametrize("records", COLUMNS, ids=str)
@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_single_quantiles_are_the_mechanism_with_masses_for_a_base_measure(
    implementation, records, name, neighbors
):
    """By direct enumeration: mass times exp(c u), or permute-and-flip of c u + ln mass."""
    prior, q, epsilon = PRIORS[name], 0.3, 1.5
    shares = shares_of(prior).tolist()
    points = [int(value) - 1 for value in records]
    options = dict(epsilon=epsilon, prior=prior, neighbors=neighbors, **PLACE)
    most = 1.0 if neighbors == "swap" else 0.7
    for selection in ("permute-and-flip", "exponential"):
        law = implementation.ind_exp_law(records, [q], selection=selection, **options)
        rate = epsilon / (2.0 * most)
        expected = enumeration.ind_exp(points, POINTS, [q], [rate], selection, shares)
        assert_equal_laws(log_probs(law, 1), expected)
    # ties are left of what lies right of them
    for law_of in (implementation.joint_exp_law, implementation.approx_quantiles_law):
        law = law_of(records, [q], dither=False, **options)
        weights = {
            (o,): -epsilon / (2.0 * most) * abs(sum(x < o for x in points) - q * len(points))
            + math.log(shares[o])
            for o in range(POINTS)
        }
        assert_equal_laws(log_probs(law, 1), enumeration.normalized(weights))


@pytest.mark.slow
@pytest.mark.parametrize("records", COLUMNS, ids=str)
@pytest.mark.parametrize("name", PRIORS)
def test_laws_equal_the_reference(records, name):
    options = dict(epsilon=2.0, prior=PRIORS[name], **PLACE)
    for q in ([0.25, 0.75], [0.1, 0.5, 0.9]):
        for dithered in (True, False):
            laws = [
                module.joint_exp_law(records, q, dither=dithered, dither_rng=3, **options)
                for module in (dpq, reference)
            ]
            assert_equal_laws(*(log_probs(law, len(q)) for law in laws))
        laws = [module.ind_exp_law(records, q, **options) for module in (dpq, reference)]
        assert_equal_laws(*(log_probs(law, len(q)) for law in laws))
    laws = [
        module.approx_quantiles_law(records, [0.4], dither_rng=3, **options)
        for module in (dpq, reference)
    ]
    assert_equal_laws(*(log_probs(law, 1) for law in laws))


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_neighbors_are_told_apart_no_better_than_epsilon_says(name, neighbors):
    epsilon, domain = 1.2, range(1, POINTS + 1)
    each = {"swap": enumeration.swap_neighbors, "add-remove": enumeration.add_remove_neighbors}
    options = dict(epsilon=epsilon, prior=PRIORS[name], neighbors=neighbors, **PLACE)
    for law_of, more in (
        (dpq.joint_exp_law, dict(dither=False)),
        (dpq.ind_exp_law, {}),
        (dpq.ind_exp_law, dict(selection="exponential")),
    ):
        x = [1, 4, 4]
        one = log_probs(law_of(np.array(x, dtype=float), [0.3, 0.6], **options, **more), 2)
        for other in each[neighbors](x, domain):
            column = np.array(other, dtype=float)
            far = log_probs(law_of(column, [0.3, 0.6], **options, **more), 2)
            ratio = enumeration.max_log_ratio(one, far)
            assert ratio <= epsilon * (1.0 + 1e-9)


def test_every_point_can_be_released():
    """However little mass it has: the normal distribution of 0 mass there, to float64."""
    law = dpq.joint_exp_law(
        [0.0] * 3, 0.5, epsilon=1.0, bounds=(-1e6, 1e6), resolution=1.0, prior=stats.norm(0.0, 1.0)
    )
    for output in (-1e6, 1e6, 123_456.0):
        assert -60.0 < law.log_prob(output) < -30.0


# Orders


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 6), max_size=12),
    st.sampled_from(sorted(PRIORS)),
    st.booleans(),
    st.data(),
)
def test_intervals_are_those_of_the_records_on_the_line(records, name, dithered, data):
    """Windows of the whole, and of a part of it, from each kind of order."""
    _, lattice = Lattice.between((1.0, 6.0), 1.0, dithered, PRIORS[name])
    column = np.sort(np.array(records, dtype=np.float64))
    sample = dpq.Sample.of(column, (1.0, 6.0), resolution=1.0, dither=dithered, prior=PRIORS[name])
    order = sample.order(np.random.default_rng(1))
    n, last = column.size, lattice.fine_points - 1
    if dithered:
        assert isinstance(order, SortedOrder)
        line = order._points([(0, n)])
        coarse = SortedOrder(column, lattice, (1.0, 6.0))
        asked = dithered_module.DitheredOrder(coarse, np.random.default_rng(1))
        assert (lattice.points_of(asked._points([(0, n)])) == lattice.encode(column)).all()
    else:
        assert isinstance(order, WeighedOrder)
        line = lattice.starts(lattice.encode(column) + 1) - 1
    assert (lattice.points_of(line) == lattice.encode(column)).all()
    edges = np.concatenate(([-1], line, [last]))
    first = data.draw(st.integers(0, n))
    count = data.draw(st.integers(1, n + 1 - first))
    found = order.intervals(np.array([first]), np.array([count]))
    ranks = np.arange(first, first + count)
    ranks = ranks[edges[ranks + 1] > edges[ranks]]
    assert found.rank.tolist() == ranks.tolist()
    assert found.left.tolist() == edges[ranks].tolist()
    assert found.width.tolist() == (edges[ranks + 1] - edges[ranks]).tolist()
    for point in range(POINTS):
        below, inside = order.cell(point)
        assert below[0] == order.rank_of(point) == int((lattice.encode(column) < point).sum())
        if dithered:
            assert (lattice.points_of(inside) == point).all()


@pytest.mark.parametrize("size", [100, 30_000, 100_000])
@pytest.mark.parametrize("dithered", [True, False])
def test_columns_of_any_length_and_kind_have_one_law(size, dithered):
    """Sorted, selected and counted orders with a prior; windows found by other guesses."""
    x = np.round(np.random.default_rng(5).lognormal(3.0, 1.0, size), 2)
    options = dict(resolution=0.01, dither=dithered, prior=[(1, stats.lognorm(2.0)), (1, "log")])
    values, counts = np.unique(x, return_counts=True)
    samples = [
        dpq.Sample.of(x, (0.5, 1e5), **options),
        dpq.Sample.of(np.sort(x), (0.5, 1e5), assume_sorted=True, **options),
        dpq.Sample.of(values, (0.5, 1e5), counts=counts, **options),
        dpq.Sample.from_batches(
            lambda: iter([x[: size // 3], x[size // 3 :]]), (0.5, 1e5), **options
        ),
    ]
    q = [0.3, 0.5]
    laws = [dpq.joint_exp_law(sample, q, epsilon=1.0, dither_rng=2) for sample in samples]
    middle = np.quantile(np.round(x, 2), q, method="inverted_cdf")
    outputs = [np.round(middle + shift, 2) for shift in (-0.03, 0.0, 0.4)]
    for output in outputs:
        found = [law.log_prob(output) for law in laws]
        # of so many records a dither moves the law a little
        assert found == pytest.approx([found[0]] * 4, abs=1e-9 if not dithered else 2.0)
    singles = [dpq.ind_exp_law(sample, 0.5, epsilon=1.0) for sample in samples]
    for output in outputs:
        found = [law.log_prob(output[1]) for law in singles]
        assert found == pytest.approx([found[0]] * 4, abs=1e-9)


@pytest.mark.parametrize("flip", [True, False])
@settings(max_examples=30)
@given(st.lists(st.integers(0, 39), max_size=12), st.floats(0.0, 1.0), st.integers(0, 12))
def test_windows_leave_the_law_by_depth_unchanged(flip, records, q, window):
    _, lattice = Lattice.between((0.0, 39.0), 1.0, False, [(1, stats.norm(30.0, 3.0)), (1, None)])
    order = SortedOrder(np.sort(np.array(records, dtype=float)), lattice.even, (0.0, 39.0))
    for rate in (0.01, 1.0, 20.0):
        law = DepthLaw(order, q, rate, flip, masses=lattice.masses)
        forced = DepthLaw(order, q, rate, flip, window, lattice.masses)
        found = [law.log_prob(np.array([point])) for point in range(40)]
        assert found == pytest.approx(
            [forced.log_prob(np.array([point])) for point in range(40)], abs=1e-9
        )
        assert math.fsum(map(math.exp, found)) == pytest.approx(1.0, abs=1e-9)
        assert window_of(order, rate, lattice.masses) >= window_of(order, rate)


def test_dither_is_asked_for_as_it_is_drawn_at_once(monkeypatch):
    """The law on a long column, whose dither is drawn where it is asked for, in the mean."""
    x = np.round(np.random.default_rng(5).lognormal(3.0, 1.0, 20_000), 1)
    sample = dpq.Sample.of(x, (0.1, 1e5), resolution=0.1, prior="log")
    output = float(np.round(np.median(x), 1))

    def probabilities() -> np.ndarray:
        laws = [dpq.joint_exp_law(sample, 0.5, epsilon=0.1, dither_rng=k) for k in range(40)]
        near = [round(output + shift, 1) for shift in (-0.2, -0.1, 0.0, 0.1, 0.2)]
        return np.array([[math.exp(law.log_prob(value)) for value in near] for law in laws])

    asked = probabilities()
    monkeypatch.setattr(dithered_module, "EAGER_RECORDS", 2**20)
    at_once = probabilities()
    error = 5.0 * np.hypot(asked.std(axis=0), at_once.std(axis=0)) / math.sqrt(40.0)
    assert (np.abs(asked.mean(axis=0) - at_once.mean(axis=0)) < error).all()
    assert (error < 0.3 * at_once.mean(axis=0)).all()


def test_log_prob_of_several_levels_is_refused():
    for module in (dpq, reference):
        law = module.approx_quantiles_law(
            [1.0, 2.0], [0.3, 0.6], epsilon=1.0, dither=False, prior="log", **PLACE
        )
        with pytest.raises(ValueError, match="without dither and prior"):
            law.log_prob([1.0, 2.0])


# Releases


@pytest.mark.slow
@pytest.mark.parametrize("name", ["joint_exp", "ind_exp"])
def test_releases_equal_the_reference_up_to_what_is_drawn(name):
    """Both make the same draws of the dither: means of many answers are near."""
    x = np.random.default_rng(1).normal(3.0, 1.0, 40)
    options = dict(epsilon=1.0, prior=PRIORS["normal"], **PLACE)
    fast, slow = (
        np.array([getattr(module, name)(x, [0.2, 0.7], rng=seed, **options) for seed in range(400)])
        for module in (dpq, reference)
    )
    error = 5.0 * np.hypot(fast.std(axis=0), slow.std(axis=0)) / 20.0
    assert (np.abs(fast.mean(axis=0) - slow.mean(axis=0)) <= error + 1e-9).all()


def test_a_sample_with_a_prior_is_used_again_and_again():
    x = np.random.default_rng(2).lognormal(3.0, 1.0, 500)
    sample = dpq.Sample.of(x, (1.0, 1e6), prior="log")
    options = dict(bounds=(1.0, 1e6), prior="log")
    for name, spent in (
        ("joint_exp", dict(epsilon=1.0)),
        ("ind_exp", dict(epsilon=1.0)),
        ("approx_quantiles", dict(rho=0.5)),
        ("agg_tree", dict(epsilon=1.0, neighbors="add-remove")),
        ("csmooth", dict(rho=0.5)),
    ):
        release = getattr(dpq, name)
        expected = release(x, [0.2, 0.7], rng=3, **spent, **options)
        for _ in range(2):
            found = release(sample, [0.2, 0.7], rng=3, **spent)
            np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        dpq.cdf(sample, epsilon=1.0, rng=3).p, dpq.cdf(x, epsilon=1.0, rng=3, **options).p
    )


def test_bounds_without_end_are_those_of_the_prior():
    x = np.random.default_rng(3).normal(0.0, 2.0, 300)
    prior = stats.t(3, scale=2.0)
    low, high = prior.ppf([1e-9, 1.0 - 1e-9])
    for name in ("joint_exp", "ind_exp", "approx_quantiles", "agg_tree", "quantile"):
        release = getattr(dpq, name)
        found = release(
            x, [0.2, 0.5], epsilon=1.0, bounds=(-math.inf, math.inf), prior=prior, rng=1
        )
        expected = release(x, [0.2, 0.5], epsilon=1.0, bounds=(low, high), prior=prior, rng=1)
        np.testing.assert_array_equal(found, expected)
        assert (np.abs(found - np.quantile(x, [0.2, 0.5])) < 1.5).all()


def test_groups_have_the_answers_of_their_samples():
    rng = np.random.default_rng(4)
    x, by = rng.lognormal(3.0, 1.0, 900), rng.integers(0, 3, 900)
    options = dict(bounds=(1.0, 1e6), prior="log")
    found = dpq.quantile_by(x, by, [0.25, 0.5], groups=[0, 1, 2, 7], epsilon=60.0, rng=1, **options)
    for key in (0, 1, 2):
        true = np.quantile(x[by == key], [0.25, 0.5])
        np.testing.assert_allclose(found[key], true, rtol=0.05)
    values, counts = np.unique(np.round(x), return_counts=True)
    keys = np.zeros(values.size, dtype=int)
    one = dpq.quantile_by(
        values, keys, 0.5, groups=[0], epsilon=60.0, counts=counts, resolution=1.0, **options
    )
    assert one[0] == pytest.approx(np.median(np.round(x)), rel=0.05)


# Leaves of equal mass


GRIDS = [((1.0, 100.0), 1.0, "log"), ((-5.0, 20.0), 0.25, stats.norm(3.0, 2.0))]
GRIDS += [((0.0, 5e4), 1.0, stats.poisson(7.0)), ((1.0, 1e9), None, "log")]


@pytest.mark.parametrize(("bounds", "resolution", "prior"), GRIDS)
@pytest.mark.parametrize("most", [2, 7, 64, 1000])
def test_leaves_have_equal_mass_and_hold_what_rounds_to_them(bounds, resolution, prior, most):
    _, lattice = Lattice.between(bounds, resolution, False, prior)
    leaves = Leaves(bounds, lattice, most)
    assert leaves.size == min(most, lattice.points) == leaves.bins().size
    starts = leaves.starts
    assert starts[0] == 0 and starts[-1] == lattice.points and (np.diff(starts) >= 1).all()
    np.testing.assert_array_equal(leaves.line, lattice.masses.below(starts))
    if leaves.size < lattice.points:
        # off by no more than half a point's mass, but where a point has that of several leaves
        share = lattice.masses.total / leaves.size
        largest = lattice.masses.of(np.unique(np.concatenate((starts[1:-1], starts[1:-1] - 1))))
        if largest.max() < share:
            even = np.arange(leaves.size + 1) * share
            assert np.abs(leaves.line - even).max() <= largest.max() / 2.0 + 1.0
    x = np.random.default_rng(1).uniform(*bounds, 3_000)
    x = np.concatenate((x, lattice.decode(starts[:-1]), lattice.decode(starts[1:] - 1), [-1e300]))
    leaf = np.searchsorted(starts, lattice.encode(x), side="right") - 1
    counts = np.bincount(leaf, minlength=leaves.size)
    np.testing.assert_array_equal(Records.of(x).count(leaves.bins()), counts)
    if lattice.points < 2**20 and resolution is not None and lattice.points <= 4096:
        plain = ReferenceLattice.between(bounds, resolution, False, prior)[1]
        assert ReferenceLeaves(bounds, plain, most).starts == starts.tolist()


SHAPES = [(2, 3, 6), (2, 3, 9), (1, 4, 3), (3, 2, 8), (2, 3, 100), (2, 4, 14), (3, 3, 20)]


@pytest.mark.parametrize(("shape", "total"), list(product(SHAPES, [None, 30, 0])))
@pytest.mark.parametrize("aggregate", [True, False])
@pytest.mark.parametrize("name", ["log", "normal", "counts"])
def test_trees_equal_the_reference(shape, total, aggregate, name):
    height, branching, points = shape
    rng = np.random.default_rng(1)
    levels = [rng.integers(-3, 12, branching**depth) for depth in range(1, height + 1)]
    bounds = (1.0, float(points))
    nodes = {
        (depth, index): float(count)
        for depth, level in enumerate(levels, start=1)
        for index, count in enumerate(level)
    }
    options = dict(total=total, aggregate=aggregate)
    lattice, plain = (
        kind.between(bounds, 1.0, False, PRIORS[name])[1] for kind in (Lattice, ReferenceLattice)
    )
    tree = dpq.AggTree(levels, bounds, Geometric(Fraction(1)), lattice=lattice, **options)
    expected = ReferenceTree(nodes, bounds, lattice=plain, **options)
    at = np.arange(-1.0, points + 2.0, 0.5)
    for monotone in (True, False):
        np.testing.assert_allclose(
            tree.cdf(at, monotone=monotone), [expected.cdf(x, monotone) for x in at], atol=1e-9
        )
    np.testing.assert_allclose(
        tree.count(-5.0, at), [expected.count(-5.0, x) for x in at], atol=1e-9
    )
    q = rng.random(30)
    np.testing.assert_array_equal(tree.quantile(q), expected.quantile(q))
    # generalized inverses, on every point
    grid = np.arange(1.0, points + 1.0)
    values = tree.cdf(grid)
    assert (np.diff(values) >= 0.0).all() and values[-1] == 1.0
    for level, answer in zip(values.tolist(), tree.quantile(values).tolist(), strict=True):
        assert answer == grid[np.argmax(values >= max(level, 5e-324))]


@pytest.mark.parametrize("method", ["binary_tree", "agg_tree", "histogram", "adaptive"])
@pytest.mark.parametrize("name", ["log", "normal"])
def test_curves_equal_the_reference_without_noise(method, name):
    rng = np.random.default_rng(7)
    x = rng.normal(12.0, 9.0, 40)
    options = dict(epsilon=NOISELESS, bounds=(1.0, 40.0), resolution=0.5, method=method)
    options |= {"bins": 8} if method in ("binary_tree", "histogram") else {}
    options |= {"bins": 16, "steps": 5} if method == "adaptive" else {}
    prior = "log" if name == "log" else stats.norm(10.0, 8.0)
    fast, slow = (module.cdf(x, prior=prior, **options) for module in (dpq, reference))
    np.testing.assert_allclose(fast.x, slow.x, atol=1e-12)
    np.testing.assert_allclose(fast.p, slow.p, atol=1e-9)
    at = rng.uniform(-1.0, 42.0, 30)
    np.testing.assert_allclose(fast.cdf(at), [slow.cdf(v) for v in at], atol=1e-9)
    q = rng.random(20)
    assert fast.quantile(q).tolist() == [slow.quantile(level) for level in q]


def test_without_records_a_curve_is_the_prior():
    prior = stats.norm(10.0, 2.0)
    place = dict(bounds=(0.0, 20.0), resolution=0.5, prior=prior)
    curve = dpq.cdf([], epsilon=NOISELESS, bins=8, **place)
    at = np.arange(0.0, 20.5, 0.5)
    np.testing.assert_allclose(curve.cdf(at), prior.cdf(at + 0.25), atol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_distances_equal_sums_over_all_points(seed):
    rng = np.random.default_rng(seed)

    def curve_on(bounds: tuple[float, float], prior: Any, knots: int) -> CDF:
        _, lattice = Lattice.between(bounds, 0.5, False, prior)
        x = np.sort(rng.choice(np.arange(-1, lattice.points), knots))
        p = np.sort(rng.random(knots)) * (x >= 0)
        x, p = np.concatenate(([-1], x, [lattice.points - 1])), np.concatenate(([0.0], p, [1.0]))
        return CDF(lattice.decode(x), p, lattice=lattice)

    def expanded(curve: CDF) -> CDF:
        points = curve.lattice.decode(np.arange(curve.lattice.points))
        p = np.concatenate(([0.0], curve.cdf(points)))
        return CDF(np.repeat(points, 2), np.repeat(p, 2)[1:-1])

    one = curve_on((1.0, 20.0), "log", 4)
    others = [
        curve_on((1.0, 20.0), "log", 5),
        curve_on((0.0, 31.0), stats.norm(9.0, 4.0), 3),
        curve_on((-5.0, 20.0), None, 4),
        rng.normal(5.0, 6.0, 9),
    ]
    for other in others:
        plain = expanded(other) if isinstance(other, CDF) else other
        for name in ("ks", "wasserstein", "energy"):
            found = getattr(one, name)(other)
            assert found == pytest.approx(getattr(expanded(one), name)(plain), abs=1e-9)
    assert one.ks(one) == one.wasserstein(one) == one.energy(one) == 0.0


def test_partial_trees_of_one_prior_merge():
    x = np.random.default_rng(5).lognormal(3.0, 1.0, 400)
    options = dict(bounds=(1.0, 1e6), prior="log", height=2, branching=4)
    whole = dpq.PartialTree.of(x, **options)
    parts = [dpq.PartialTree.of(part, **options) for part in (x[:100], x[100:])]
    np.testing.assert_array_equal(parts[0].merge(parts[1])._leaves, whole._leaves)
    with pytest.raises(ValueError, match="trees must have the same bounds"):
        whole.merge(dpq.PartialTree.of(x, **options | {"prior": [(1, "log"), (1, None)]}))


def test_a_tree_is_tuned_on_the_line_of_its_prior():
    options = dict(epsilon=1.0, bounds=(1.0, 1e9), prior="log", draws=2, rng=0)

    def sample(rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.lognormal(10.5, 0.8, n)

    height, branching = dpq.AggTree.tune(2_000, 0.5, sample=sample, **options)
    assert 2 <= branching**height <= 2**16


def test_curves_plot_steps_at_single_points():
    _, lattice = Lattice.between((0.0, 5.0), 1.0, False, stats.norm(2.0, 1.0))
    curve = CDF([-1.0, 0.0, 1.0, 5.0], [0.0, 0.5, 0.75, 1.0], lattice=lattice)
    (line,) = curve.plot(band=False).lines
    assert line.get_xdata().tolist() == [-1.0, 0.0, 0.0, 1.0, 1.0, 5.0]


# What it gains


def missed_by_thrice(n: int, epsilon: float, prior: Any, draws: int, **options: Any) -> float:
    """Share of private medians of incomes that are wrong by more than a factor of 3."""
    rng = np.random.default_rng(8)
    wrong = 0
    for _ in range(draws):
        incomes = rng.lognormal(10.5, 0.8, n)
        found = dpq.median(incomes, epsilon=epsilon, prior=prior, rng=rng, **options)
        wrong += not 1 / 3 <= found / math.exp(10.5) <= 3
    return wrong / draws


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon", "most"), [(30, 1.0, 0.065), (100, 0.3, 0.065)])
def test_few_incomes_between_wide_bounds_have_a_median(n, epsilon, most):
    """Log-uniform: 0.043 and 0.040, where a uniform prior has 0.98. Five standard errors more."""
    place = dict(bounds=(1.0, 1e9))
    assert missed_by_thrice(n, epsilon, "log", 2_000, **place) <= most
    assert missed_by_thrice(n, epsilon, stats.lognorm(2.0, scale=2e4), 1_000, **place) <= 0.03
    assert missed_by_thrice(n, epsilon, "uniform", 200, **place) >= 0.9
    # the scale-free one, which "auto" takes: 0.045 and 0.065
    assert missed_by_thrice(n, epsilon, None, 1_000, **place) <= 0.11


@pytest.mark.slow
def test_many_records_outweigh_a_prior():
    """Mean rank errors at one resolution, for a prior that fits and for one that does not."""
    rng = np.random.default_rng(9)
    options = dict(epsilon=1.0, bounds=(1.0, 1e9), resolution=1.0)
    errors: dict[str, list[float]] = {"none": [], "log": [], "wrong": []}
    wrong = [(0.9, stats.norm(1e8, 1e7)), (0.1, "log")]
    for seed in range(1_500):
        x = rng.lognormal(10.5, 0.8, 300)
        for name, prior in (("none", None), ("log", "log"), ("wrong", wrong)):
            found = dpq.median(x, prior=prior, rng=seed, **options)
            errors[name].append(abs(float((x < found).sum()) - 150.0))
    none, log, wrong = (np.mean(errors[name]) for name in errors)
    assert log <= 1.05 * none + 0.15  # two standard errors
    assert wrong <= 1.3 * none


def test_a_prior_does_not_change_what_is_promised():
    sample = dpq.Sample.of([1.0, 2.0], (1.0, 100.0), prior="log")
    for name in ("joint_exp", "ind_exp", "approx_quantiles"):
        with_prior, without = privacy.Accountant(2.0), privacy.Accountant(2.0)
        getattr(dpq, name)(sample, 0.5, epsilon=1.0, accountant=with_prior)
        getattr(dpq, name)([1.0], 0.5, epsilon=1.0, bounds=(1, 2), accountant=without)
        assert with_prior.history == without.history


def test_paths_and_depths_draw_what_they_say():
    """Points drawn from the two kinds of law, by their frequencies."""
    _, lattice = Lattice.between((1.0, 6.0), 1.0, False, PRIORS["steep"])
    column = np.array([2.0, 2.0, 3.0, 5.0])
    plain = SortedOrder(column, lattice.even, (1.0, 6.0))
    laws = [
        PathLaw(WeighedOrder(plain, lattice), np.array([0.4]), 0.3),
        DepthLaw(plain, 0.4, 0.6, True, masses=lattice.masses),
        DepthLaw(plain, 0.4, 0.6, False, masses=lattice.masses),
    ]
    for law in laws:
        drawn = law.draw(np.random.default_rng(1), 20_000)[:, 0]
        if isinstance(law, PathLaw):
            drawn = lattice.points_of(drawn)
        expected = [math.exp(law.log_prob(np.array([point]))) for point in range(POINTS)]
        counts = np.bincount(drawn, minlength=POINTS)
        kept = np.array(expected) * 20_000 > 5.0
        statistic = ((counts - 20_000 * np.array(expected)) ** 2 / (20_000 * np.array(expected)))[
            kept
        ]
        assert stats.chi2.sf(statistic.sum(), kept.sum() - 1) > 1e-6
