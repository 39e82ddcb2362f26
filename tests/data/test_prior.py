"""Priors: integer masses of lattice points, and the line of fine points that they make."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
from dpq_fast import _checks
from dpq_fast.data.lattice import DITHER_BITS, Lattice, default_step
from dpq_fast.data.prior import (
    DEFAULT_POINTS,
    FEW_POINTS,
    HALVES,
    MOST_POINTS,
    TOTAL,
    Masses,
    Prior,
)
from dpq_fast.reference.lattice import Lattice as ReferenceLattice
from dpq_fast.reference.prior import Masses as ReferenceMasses

NORMAL = stats.norm(3.0, 2.0)
SKEWED = stats.lognorm(0.8, scale=30.0)
FUNCTIONS = (lambda x: np.clip((x + 10.0) / 200.0, 0.0, 1.0) ** 2, None)
MIXTURE = [(3, SKEWED), (1.0, "log"), (0.5, [(1, NORMAL), (1, None)])]
# Bounds, a resolution, and a prior.
CASES: dict[str, tuple[tuple[float, float], float | None, Any]] = {
    "log": ((1.0, 100.0), 1.0, "log"),
    "log, fine": ((0.25, 1e9), None, "log"),
    "normal": ((-5.0, 20.0), 0.5, NORMAL),
    "normal, fine": ((-5.0, 20.0), None, NORMAL),
    "skewed": ((0.0, 1e6), 0.01, SKEWED),
    "counts": ((0.0, 50.0), 1.0, stats.poisson(7.0)),
    "counts, fine": ((0.0, 50_000.0), 1.0, stats.poisson(7.0)),
    "functions": ((-10.0, 190.0), 0.25, FUNCTIONS),
    "mixture": ((0.5, 1e5), None, MIXTURE),
    "heavy": ((-math.inf, math.inf), None, stats.cauchy(0.0, 2.0)),
    "one end": ((0.0, math.inf), None, stats.lognorm(2.0, scale=100.0)),
    "no mass at the ends": ((-1e6, 1e6), 1.0, stats.norm(0.0, 1.0)),
}
SMALL = ["log", "normal", "counts", "functions"]


def lattice_of(name: str, dither: bool = True) -> Lattice:
    bounds, resolution, prior = CASES[name]
    _, lattice = Lattice.between(bounds, resolution, dither, prior)
    assert lattice is not None and lattice.masses is not None
    return lattice


def masses_of(name: str) -> Masses:
    masses = lattice_of(name).masses
    assert masses is not None
    return masses


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Knots and masses, from small ones to as large as there are."""
    lengths = draw(st.lists(st.sampled_from([1, 1, 2, 3, 50, 2**40]), min_size=1, max_size=8))
    knots = np.cumsum([0, *lengths]).tolist()
    most = [(TOTAL - knots[-1]) // (len(lengths) * length) + 1 for length in lengths]
    each = [draw(st.one_of(st.integers(1, 3), st.integers(1, top)).map(int)) for top in most]
    return knots, [min(one, top) for one, top in zip(each, most, strict=True)]


# The line


@given(tables(), st.data())
def test_cells_follow_each_other_on_the_line(table, data):
    """Each point has its own fine points, in order, and every fine point is one's."""
    knots, each = table
    masses = Masses(np.array(knots), np.array(each))
    assert masses.points == knots[-1]
    assert masses.total == sum(
        w * (b - a) for w, a, b in zip(each, knots[:-1], knots[1:], strict=True)
    )
    some = [data.draw(st.integers(0, masses.points - 1)) for _ in range(20)]
    points = np.unique([*some, 0, masses.points - 1, *(k for k in knots[:-1])])
    below, after = masses.below(points), masses.below(points + 1)
    np.testing.assert_array_equal(after - below, masses.of(points))
    assert (masses.of(points) >= 1).all()
    assert below[0] == 0 and after[-1] == masses.total <= TOTAL
    for fine in (below, after - 1, below + (after - 1 - below) // 2):
        np.testing.assert_array_equal(masses.points_of(fine), points)
    assert masses.points_of(np.array([-1, masses.total])).tolist() == [-1, masses.points]


@given(tables(), st.integers(0, DITHER_BITS), st.data())
def test_dithered_points_are_spread_over_their_cells(table, bits, data):
    """Exactly as the formula says, in order, and never out of the cell."""
    knots, each = table
    bits = min(bits, 62 - knots[-1].bit_length())
    masses, plain = Masses(np.array(knots), np.array(each)), ReferenceMasses(knots, each)
    pairs = [
        (data.draw(st.integers(0, masses.points - 1)), data.draw(st.integers(0, 2**bits - 1)))
        for _ in range(20)
    ]
    pairs += [(k, u) for k in (0, masses.points - 1) for u in (0, 2**bits - 1)]
    pairs.sort()
    fine = masses.spread(np.array([(k << bits) + u for k, u in pairs]), bits)
    assert (np.diff(fine) >= 0).all()
    for (k, u), found in zip(pairs, fine.tolist(), strict=True):
        own = int(masses.of(np.array([k]))[0])
        assert found == plain.below(k) + math.ceil(Fraction((u + 1) * own, 2**bits)) - 1
        assert found == plain.spread(k, u, bits)
        assert plain.point_of(found) == k
        if u == 2**bits - 1:
            assert found == plain.below(k + 1) - 1


@pytest.mark.parametrize("mass", [1, 2, 3, 5, 8, 100])
def test_spread_is_as_even_as_can_be(mass):
    masses = Masses(np.array([0, 1]), np.array([mass]))
    counts = np.bincount(masses.spread(np.arange(2**4), 4), minlength=mass)
    assert counts.max() - counts.min() <= 1 and counts.sum() == 16
    assert masses.spread(np.array([0]), 0).tolist() == [mass - 1]


@given(tables())
def test_positions_are_those_of_points(table):
    masses = Masses(*map(np.array, table))
    points = np.unique([*table[0][:-1], masses.points - 1])
    at = masses.at(np.append(points, masses.points).astype(np.float64))
    exact = np.append(masses.below(points), masses.total)
    np.testing.assert_allclose(at, exact.astype(np.float64), rtol=1e-12, atol=1.0)
    assert masses.at(np.array([-5.0, 1e300])).tolist() == [0.0, float(masses.total)]


def test_masses_are_equal_by_value_and_put_together():
    one = Masses(np.array([0, 2, 5, 6]), np.array([4, 4, 1]))
    other = Masses(np.array([0, 5, 6]), np.array([4, 1]))
    assert one == other and hash(one) == hash(other)
    assert one != Masses(np.array([0, 5, 6]), np.array([4, 2]))
    assert one.firsts.tolist() == [0, 5] and one.starts.tolist() == [0, 20]
    assert (one.points, one.total) == (6, 21) and one != 21


# Masses of a prior


@pytest.mark.parametrize("name", CASES)
def test_masses_are_positive_and_add_up(name):
    lattice, masses = lattice_of(name), masses_of(name)
    assert masses.points == lattice.points <= MOST_POINTS
    assert masses.each.min() >= 1
    ends = np.append(masses.firsts, masses.points)
    assert int((masses.each.astype(object) * np.diff(ends)).sum()) == masses.total
    assert TOTAL * (1.0 - 2.0**-20) - lattice.points <= masses.total <= TOTAL == 2**53
    assert lattice.fine_points == masses.total
    assert lattice.points << lattice.bits <= 2**62


def expected_share(name: str, x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Of all mass between two ends, what is below some numbers."""
    bounds, _, prior = CASES[name]

    def share(prior: Any) -> np.ndarray:
        if prior is None:
            return (x - low) / (high - low)
        if prior == "log":
            return np.log(np.clip(x, *bounds) / bounds[0]) / math.log(bounds[1] / bounds[0])
        if isinstance(prior, list):
            total = sum(weight for weight, _ in prior)
            return sum(weight / total * share(part) for weight, part in prior)
        cdf = prior[0] if isinstance(prior, tuple) else prior.cdf
        first, last = cdf(np.array([low, high]))
        return (cdf(x) - first) / (last - first)

    return share(prior)


@pytest.mark.parametrize("name", CASES)
def test_masses_are_those_of_the_distribution(name):
    """Between the cells of any two points, up to what one mass for several points makes of it."""
    lattice, masses = lattice_of(name), masses_of(name)
    points = np.unique(np.linspace(0, lattice.points, 500).astype(np.int64))
    points = np.unique(np.concatenate((points, masses.firsts)))
    per = lattice.step / 2.0
    borders = lattice.decode(points) - per
    low, high = lattice.decode(np.array([0, lattice.points])) - per
    even = lattice.points / TOTAL  # one fine point for each point
    expected = (1.0 - even) * expected_share(name, borders, low, high) + points / TOTAL
    found = masses.below(points) / masses.total
    inside = 1e-9 if lattice.points <= FEW_POINTS else 2e-3
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=inside + even)
    # at knots there is nothing in between
    knots = np.isin(points, masses.firsts)
    np.testing.assert_allclose(found[knots], expected[knots], rtol=0.0, atol=1e-7 + even)


def test_density_inside_segments_is_nearly_even():
    """Of a fine lattice, for the log prior."""
    lattice, masses = lattice_of("log, fine"), masses_of("log, fine")
    points = np.unique(np.geomspace(2_000, lattice.points - 2, 10_000).astype(np.int64))
    density = masses.of(points) / masses.total
    expected = lattice.step / lattice.decode(points) / math.log(1e9 / 0.25)
    assert np.abs(density / expected - 1.0).max() < 0.11


def test_a_point_with_much_mass_is_alone():
    masses = masses_of("counts, fine")
    exact = stats.poisson(7.0).pmf(np.arange(15))
    np.testing.assert_allclose(masses.of(np.arange(15)) / masses.total, exact, atol=1e-9)


@pytest.mark.parametrize("name", SMALL)
def test_masses_equal_the_reference(name):
    bounds, resolution, prior = CASES[name]
    _, plain = ReferenceLattice.between(bounds, resolution, True, prior)
    fast, masses = lattice_of(name), masses_of(name)
    assert (plain.points, plain.first, plain.bits) == (fast.points, fast.first, fast.bits)
    points = np.arange(fast.points)
    of_reference = [plain.masses.of(k) for k in points.tolist()]
    # a function of arrays and one of numbers may differ in the last digit
    np.testing.assert_allclose(masses.of(points), of_reference, rtol=1e-9, atol=8)
    assert plain.fine_points == pytest.approx(masses.total, rel=1e-12)


@pytest.mark.slow
def test_segments_equal_the_reference_on_a_fine_lattice():
    prior, bounds = (lambda x: np.clip(x / 1e6, 0.0, 1.0) ** 0.5, None), (0.0, 1e6)
    _, plain = ReferenceLattice.between(bounds, 10.0, True, prior)
    _, fast = Lattice.between(bounds, 10.0, True, prior)
    points = np.unique(np.geomspace(1, fast.points - 1, 300).astype(np.int64))
    of_reference = [plain.masses.of(k) for k in points.tolist()]
    np.testing.assert_allclose(fast.masses.of(points), of_reference, rtol=1e-6)


# What is uniform


@pytest.mark.parametrize("prior", [None, "uniform", [(2.0, "uniform"), (1, None)]])
@pytest.mark.parametrize("resolution", [None, 0.5, 0.0])
def test_a_uniform_prior_is_none(prior, resolution):
    for dither in (None, False):
        expected = Lattice.of((-10.0, 90.0), resolution, dither)
        assert Lattice.between((-10, 90), resolution, dither, prior) == ((-10.0, 90.0), expected)


@pytest.mark.parametrize("name", ["joint_exp", "ind_exp", "approx_quantiles", "agg_tree", "cdf"])
def test_answers_of_a_uniform_prior_are_those_without(name):
    x = np.random.default_rng(3).normal(20.0, 9.0, size=300)
    options = dict(epsilon=1.0, bounds=(-10.0, 90.0), rng=4)
    if name != "cdf":
        options["q"] = [0.2, 0.5, 0.9]
    if name == "cdf":
        options["method"] = "agg_tree"  # two stages begin with another one
    release = getattr(dpq, name)
    one, other = release(x, **options), release(x, prior="uniform", **options)
    if name == "cdf":
        one, other = one.p, other.p
    np.testing.assert_array_equal(one, other)


def test_spread_of_a_flat_prior_is_the_range():
    _, parts = _checks.check_prior(FUNCTIONS, (0.0, 1.0))
    flat = parts[0]._replace(cdf=lambda x: (x + 7.0) / 20.0)
    assert Prior((flat,), (-7.0, 13.0)).spread() == pytest.approx(20.0, rel=1e-9)
    _, parts = _checks.check_prior("log", (1.0, 1e8))
    # half of it lies up to 10^4: between quantiles of steps of 1/32, nothing shorter
    assert Prior(parts, (1.0, 1e8)).spread() == pytest.approx(2.0 * (1e4 - 1.0), rel=1e-6)
    # more than half at one number
    atom = parts[0]._replace(kind="cdf", cdf=lambda x: np.where(x < 2.0, 0.1, 0.9))
    assert 0.0 < Prior((atom,), (0.0, 4.0)).spread() <= 4.0
    assert HALVES == 16


def test_default_resolution_is_fine_where_the_prior_is():
    for name, expected in {"normal, fine": 1e-5, "log, fine": 0.01, "heavy": 1e-4}.items():
        assert lattice_of(name).step == expected
    spread = Prior(_checks.check_prior(NORMAL, (-5.0, 20.0))[1], (-5.0, 20.0)).spread()
    assert lattice_of("normal, fine").step == default_step(spread)


def test_default_resolution_leaves_few_enough_points():
    for bounds, prior in (
        ((1.0, math.inf), stats.pareto(0.5)),
        ((-1e15, 1e15), NORMAL),
    ):
        _, lattice = Lattice.between(bounds, None, None, prior)
        assert DEFAULT_POINTS / 20 <= lattice.points <= DEFAULT_POINTS


@pytest.mark.parametrize("bounds", [(0.0, 1.79e308), (-8.9e307, 8.9e307)])
@pytest.mark.parametrize("prior", [[(1, None), (1, stats.norm(0.0, 1e307))], FUNCTIONS])
def test_bounds_at_the_ends_of_float64_have_masses(bounds, prior):
    with np.errstate(all="raise"):
        for module in (Lattice, ReferenceLattice):
            _, lattice = module.between(bounds, bounds[1] / 1_000, None, prior)
            points = np.arange(lattice.points)
            np.testing.assert_array_equal(
                lattice.points_of(np.array([lattice.masses.below(k) for k in points])), points
            )


def test_infinite_bounds_are_quantiles_of_the_prior():
    cauchy, normal = stats.cauchy(0.0, 2.0), stats.norm(0.0, 1.0)
    bounds, _ = Lattice.between((-math.inf, math.inf), None, None, cauchy)
    assert bounds == tuple(cauchy.ppf([1e-9, 1.0 - 1e-9]))
    bounds, _ = Lattice.between((-3, math.inf), None, None, [(1, normal), (9, cauchy)])
    assert bounds == (-3.0, cauchy.ppf(1.0 - 1e-9))
    functions = (cauchy.cdf, lambda q: cauchy.ppf(q))
    assert Lattice.between((-math.inf, 5), None, None, functions)[0] == (cauchy.ppf(1e-9), 5.0)


def test_lattices_of_a_prior_are_kept():
    """By what the prior is made of: the same objects, weights and bounds."""
    first = Lattice.between((1, 1e6), None, None, [(1, NORMAL), (2, "log")])[1]
    again = Lattice.between((1, 1e6), None, None, ((0.5, NORMAL), (1.0, "log")))[1]
    other = Lattice.between((1, 1e6), None, None, [(1, stats.norm(3.0, 2.1)), (2, "log")])[1]
    assert first is again and first != other
    assert first.even.masses is None and first.even.even == first.even


# Bad input

BAD: list[tuple[Any, type[Exception], str]] = [
    (
        "normal",
        ValueError,
        "prior must be 'uniform', 'log' or 'scale-free' where it is a string, g",
    ),
    (7, TypeError, "prior must be None, 'uniform', 'log', 'scale-free', a frozen distributio"),
    ({"log": 1.0}, TypeError, "prior must be None"),
    (np.array([[1.0, 2.0]]), TypeError, "prior must be None"),
    (b"log", TypeError, "prior must be None"),
    ([], ValueError, r"prior must be one or more \(weight, prior\) pairs"),
    (["log", "log", "log"], ValueError, r"prior must be one or more \(weight, prior\) pairs"),
    ([(1.0, "log"), 3], ValueError, r"prior must be one or more \(weight, prior\) pairs"),
    ([(0.0, "log"), (1.0, None)], ValueError, "a weight of the prior must be positive and finite"),
    ([(-1.0, NORMAL)], ValueError, "a weight of the prior must be positive and finite, got -1.0"),
    ([(math.nan, NORMAL)], ValueError, "a weight of the prior must be positive"),
    ([("1", NORMAL)], TypeError, "a weight of the prior must be a real number, got '1'"),
    ([(1.0, "normal")], ValueError, "prior must be 'uniform', 'log' or 'scale-free'"),
    (stats.norm(1e4, 1.0), ValueError, "prior must have a mass of at least 1e-09 between the bo"),
    ([(1, "log"), (1, stats.norm(-50.0, 1.0))], ValueError, "prior must have a mass of at least"),
    ((lambda x: x * np.nan, None), ValueError, r"prior must have a cdf that ascends within \[0, 1"),
    ((lambda x: -x / 100.0 + 1.0, None), ValueError, "prior must have a cdf that ascends"),
    ((lambda x: x * 7.0, None), ValueError, "prior must have a cdf that ascends"),
    ((lambda x: 0.5, None), ValueError, "prior must have a cdf that takes an array"),
    ((lambda x: x[:1], None), ValueError, "prior must have a cdf that takes an array"),
    (
        (lambda x: x.astype(str), None),
        TypeError,
        "prior must have a cdf of real numbers, got dtype",
    ),
    ((lambda x: x, 5), TypeError, "prior must be None"),
]


@pytest.mark.parametrize(("prior", "error", "message"), BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("module", ["fast", "reference"])
def test_a_bad_prior_is_refused_before_the_charge(prior, error, message, module):
    front = dpq if module == "fast" else dpq.reference
    accountant = dpq.privacy.Accountant(10.0)
    for name in ("joint_exp", "ind_exp", "approx_quantiles", "agg_tree"):
        with pytest.raises(error, match=message):
            getattr(front, name)(
                object.__new__(Unread),
                0.5,
                epsilon=1.0,
                bounds=(1.0, 100.0),
                resolution=1.0,
                prior=prior,
                accountant=accountant,
            )
    assert accountant.history == ()


class Unread:
    """A column that must not be read."""

    ndim = 1

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a record was read")

    __iter__ = __len__ = __array__


TOGETHER: list[tuple[dict[str, Any], str]] = [
    (dict(prior="log", bounds=(0.0, 9.0)), "bounds must be positive with prior 'log'"),
    (dict(prior="log", bounds=(-1.0, 9.0)), "bounds must be positive with prior 'log'"),
    (dict(prior=[(1, None), (1, "log")], bounds=(0.0, 9.0)), "bounds must be positive with prior"),
    (dict(prior="log", bounds=(1.0, math.inf)), "bounds must be finite unless each part"),
    (dict(prior=[(1, NORMAL), (1, None)], bounds=(1.0, math.inf)), "bounds must be finite unless"),
    (dict(prior=FUNCTIONS, bounds=(1.0, math.inf)), "bounds must be finite unless each part"),
    (dict(prior=NORMAL, bounds=(math.inf, math.inf)), "bounds must be finite with low < high"),
    (dict(prior=NORMAL, bounds=(math.nan, 1.0)), "bounds must be finite with low < high"),
    (dict(prior=None, bounds=(0.0, math.inf)), "bounds must be finite with low < high"),
    (dict(prior="uniform", bounds=(0.0, math.inf)), "bounds must be finite with low < high"),
    (dict(prior=NORMAL, bounds=(0.0, 9.0), resolution=0), "prior needs a lattice, got a prior"),
    (
        dict(prior=NORMAL, bounds=(0.0, 9.0), resolution=4e-15),
        r"resolution must make at most 2\^50 points inside bounds with a prior",
    ),
]


@pytest.mark.parametrize(("options", "message"), TOGETHER)
@pytest.mark.parametrize("module", ["fast", "reference"])
def test_what_a_prior_needs_is_asked_for_before_the_charge(options, message, module):
    front = dpq if module == "fast" else dpq.reference
    for name in ("joint_exp", "ind_exp", "approx_quantiles", "agg_tree"):
        with pytest.raises(ValueError, match=message):
            getattr(front, name)(object.__new__(Unread), 0.5, epsilon=1.0, **options)


def test_searches_without_a_lattice_take_no_prior():
    for call in (
        lambda: dpq.quantile([1.0], 0.5, epsilon=1.0, prior="log"),
        lambda: dpq.quantile([1.0], 0.5, epsilon=1.0, method="unbounded_quantile", prior=NORMAL),
        lambda: dpq.approx_quantiles([1.0], 0.5, epsilon=1.0, base="unbounded", prior="log"),
        lambda: dpq.reference.approx_quantiles(
            [1.0], 0.5, epsilon=1.0, base="unbounded", prior="log"
        ),
    ):
        with pytest.raises(ValueError, match="prior must be left out for an unbounded search"):
            call()


def test_a_sample_has_its_own_prior():
    sample = dpq.Sample.of([1.0, 2.0, 3.0], (1.0, 100.0), prior="log")
    for name in ("joint_exp", "ind_exp", "approx_quantiles", "agg_tree"):
        with pytest.raises(ValueError, match="prior, counts, assume_sorted and nan_policy belong"):
            getattr(dpq, name)(sample, 0.5, epsilon=1.0, prior="log")


def test_a_cdf_that_errs_in_its_last_digits_is_taken():
    """SciPy's are not exactly monotone."""
    noise = np.random.default_rng(0)

    def rough(x: np.ndarray) -> np.ndarray:
        return NORMAL.cdf(x) + 1e-13 * noise.standard_normal(x.size)

    _, lattice = Lattice.between((-5.0, 20.0), 0.5, None, (rough, None))
    masses = masses_of("normal")
    np.testing.assert_allclose(lattice.masses.of(np.arange(51)), masses.of(np.arange(51)), atol=1e5)


@settings(max_examples=50)
@given(
    st.floats(-50.0, 50.0), st.floats(0.01, 100.0), st.integers(2, 200), st.sampled_from([0.1, 1])
)
def test_any_normal_prior_makes_a_line(middle, deviation, size, step):
    prior = [(1, stats.norm(middle, deviation)), (1e-6, None)]
    bounds = (-size * step, size * step)
    try:
        _, lattice = Lattice.between(bounds, step, None, prior)
    except ValueError as error:
        assert str(error).startswith("prior must have a mass of at least")
        return
    points = np.arange(lattice.points)
    of = lattice.masses.of(points)
    assert of.min() >= 1 and of.sum() == lattice.masses.total <= TOTAL
    np.testing.assert_array_equal(lattice.points_of(lattice.starts(points)), points)
    np.testing.assert_array_equal(lattice.points_of(lattice.starts(points + 1) - 1), points)
