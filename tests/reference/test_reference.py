"""The reference against hand computation, brute force, its own draws, and the privacy promise."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from randomgen import UserBitGenerator
from scipy import stats

import enumeration
from dpq_fast import privacy
from dpq_fast.data.lattice import Lattice as FastLattice
from dpq_fast.privacy.levels import Levels
from dpq_fast.reference import ind_exp, ind_exp_law, joint_exp, joint_exp_law
from dpq_fast.reference.ind_exp import Cell, FlipLevel, IndExpLaw, cells, max_of_exponentials
from dpq_fast.reference.joint_exp import JointExpLaw
from dpq_fast.reference.lattice import Lattice
from dpq_fast.reference.race import exponential, race, uniform
from dpq_fast.reference.sample import Intervals, distances, intervals, nearest_points

RELEASES = {"joint_exp": joint_exp, "ind_exp": ind_exp}
LAWS = {"joint_exp": joint_exp_law, "ind_exp": ind_exp_law}
SELECTIONS = ["permute-and-flip", "exponential"]


def neighbors_of(x: list[int], domain: range, neighbors: str) -> Iterator[list[int]]:
    """All neighbors of a sample from which NaN is dropped.

    Under "swap" a record may become NaN, or the other way: an addition or a removal.
    """
    if neighbors == "swap":
        yield from enumeration.swap_neighbors(x, domain)
    yield from enumeration.add_remove_neighbors(x, domain)


# Records on the points 0 .. points-1: (records, points, q). Ties, both ends, m > n, levels 0 and
# 1, no records, levels closer than a rank.
CASES = [
    ([], 3, [0.5]),
    ([], 4, [0.0, 0.3, 1.0]),
    ([2], 5, [0.1, 0.5, 0.9]),
    ([0], 4, [0.25, 0.75]),
    ([3], 4, [0.25, 0.75]),
    ([1, 1, 1, 1], 3, [0.25, 0.5, 0.75]),
    ([0, 0, 0, 5, 5, 5], 6, [0.5]),
    ([0, 0, 0, 0, 0], 4, [0.2, 0.4, 0.6, 0.8]),
    ([4, 4, 4], 5, [0.0, 0.5, 1.0]),
    ([1, 2, 2, 4, 6, 7], 8, [0.1, 0.5, 0.9]),
    ([0, 2, 3, 3, 3, 7], 8, [0.49, 0.5, 0.51]),
    ([0, 1, 2, 3, 4, 5], 6, [0.1, 0.2, 0.3, 0.95]),
    ([5, 0], 6, [1.0]),
    ([5, 0], 6, [0.0]),
]
DITHER_CASES = [
    ([], 3, [0.5, 0.5001], 2),
    ([1], 3, [0.25, 0.5, 0.75], 2),
    ([0, 0, 2], 3, [0.2, 0.7], 2),
    ([1, 1, 1], 3, [0.0, 0.5, 1.0], 1),
    ([0, 1, 1, 1, 2], 3, [0.3, 0.6], 1),
    ([3, 3, 3, 3, 3, 3], 4, [0.5], 1),
    ([0, 2, 2, 2, 3, 3], 4, [0.1, 0.9], 1),
    ([1, 1, 2, 2], 4, [0.2, 0.4, 0.6, 0.8], 1),
]
RATES = [0.125, 1.0, 6.0]


def lattice_of(points: int, bits: int = 0) -> Lattice:
    """The integers 0 .. points-1, with any number of dither bits."""
    lattice = Lattice.of((0.0, points - 1.0), 1.0, False)
    return dataclasses.replace(lattice, bits=bits)


def joint_law(data: Intervals, q: list[float], rate: float) -> JointExpLaw:
    return JointExpLaw(data, Levels(q), rate)


def ind_law(
    data: Intervals, q: list[float], rate: float, selection: str = "permute-and-flip"
) -> IndExpLaw:
    return IndExpLaw(data, Levels(q), spread(rate, q), selection)


def exponential_law(data: Intervals, q: list[float], rate: float) -> IndExpLaw:
    return ind_law(data, q, rate, "exponential")


def spread(rate: float, q: list[float]) -> list[float]:
    """Unequal rates for the levels of IndExp."""
    return [rate * (1.0 + 0.5 * j) for j in range(len(q))]


def tabulate(law: JointExpLaw | IndExpLaw, points: int, m: int) -> enumeration.Law:
    """A law on the integers 0 .. points-1 as a table."""
    return {
        o: law.log_prob(np.array(o, dtype=float))
        for o in combinations_with_replacement(range(points), m)
    }


def assert_same_law(law: enumeration.Law, expected: enumeration.Law) -> None:
    assert law.keys() == expected.keys()
    assert enumeration.max_log_ratio(law, expected) <= 1e-12


def assert_draws_follow(observed: list, log_prob: dict) -> None:
    """Chi-square at p = 1e-6, categories expected less than 5 times put together."""
    expected = {o: math.exp(p) * len(observed) for o, p in log_prob.items()}
    assert set(observed) <= expected.keys()
    rare = {o for o, e in expected.items() if e < 5.0}
    counts = [sum(1 for o in observed if o == key) for key in expected if key not in rare]
    means = [e for key, e in expected.items() if key not in rare]
    rest = sum(expected[o] for o in rare)
    if rest > 0.0:
        counts.append(len(observed) - sum(counts))
        means.append(rest)
    statistic = sum((c - e) ** 2 / e for c, e in zip(counts, means, strict=True))
    assert stats.chi2.sf(statistic, len(counts) - 1) > 1e-6


def scripted(words: list[int]) -> np.random.Generator:
    """A generator whose 64-bit words are given."""
    left = iter(words)
    return np.random.Generator(UserBitGenerator(lambda state: next(left)))


# Racing


@pytest.mark.parametrize(
    "words, expected",
    [
        ([1 << 63, 0], 0.5),
        ([2**64 - 1, 2**64 - 1], 1.0 - 2.0**-53),
        ([1 << 60, 1 << 63], 1.5 * 2.0**-4),
        ([1, 0], 2.0**-64),
        ([0, 1 << 63, 0], 2.0**-65),
        ([0, 0, 1, (1 << 12) - 1], 2.0**-192),
        ([1, 1 << 12], (1.0 + 2.0**-52) * 2.0**-64),
    ],
)
def test_uniform_known_values(words, expected):
    assert uniform(scripted(words)) == expected


def test_exponential_keeps_relative_precision_near_zero():
    assert exponential(scripted([1 << 63, 0])) == math.log(2.0)
    assert exponential(scripted([0, 0, 1, 0])) == 2.0**-192


def test_race_known_values():
    # E = ln 2 for both: the larger weight wins.
    half = [1 << 63, 0]
    assert race(np.array([-1.0, 0.0]), scripted(half * 2)) == 1
    assert race(np.array([0.0, -1.0]), scripted(half * 2)) == 0
    # An E of 2^-128 beats a weight e^60 times as large; no 53-bit uniform could.
    tiny = [0, 1, 0]
    assert race(np.array([0.0, -60.0]), scripted(half + tiny)) == 1
    assert race(np.array([0.0, -100.0]), scripted(half + tiny)) == 0


def test_race_skips_impossible_without_drawing():
    assert race(np.array([-math.inf, -700.0, -math.inf]), scripted([1 << 63, 0])) == 1


def test_race_follows_weights():
    rng = np.random.default_rng(1)
    log_p = {0: math.log(0.1), 1: math.log(0.2), 2: math.log(0.7)}
    weights = np.array(list(log_p.values())) - 1000.0
    assert_draws_follow([race(weights, rng) for _ in range(5_000)], log_p)


# The sample


def test_intervals_known_values():
    data = intervals([3.0, 1.0, 1.2, np.nan, np.inf], (0.0, 4.0), 1.0, False)
    assert data.n == 4
    # Points 1 1 3 4: {0, 1}, {2, 3} and {4}; nothing lies above 4.
    assert data.rank.tolist() == [0, 2, 3]
    assert data.width.tolist() == [2, 2, 1]
    assert data.left.tolist() == [-1, 1, 3]
    assert data.right.tolist() == [1, 3, 4]


def test_intervals_continuous_known_values():
    data = intervals([5.0, 0.25, -1.0, 0.25], (0.0, 1.0), 0)
    assert data.lattice is None
    assert data.rank.tolist() == [1, 3]
    assert data.width.tolist() == [0.25, 0.75]
    assert data.left.tolist() == [0.0, 0.25]


@pytest.mark.parametrize(
    "bounds, resolution", [((0.0, 10.0), 0.01), ((-1.3, 2.6), 0.25), ((-7.0, 50.0), 3.0)]
)
def test_nearest_points_equal_encode(bounds, resolution):
    lattice = Lattice.of(bounds, resolution, False)
    values = np.random.default_rng(6).uniform(bounds[0] - 1.0, bounds[1] + 1.0, 500)
    halves = (np.arange(-8, 80) + 0.5) * resolution
    values = np.concatenate([values, halves, [-math.inf, math.inf, *bounds, -0.0]])
    points = nearest_points(values, lattice)
    assert np.array_equal(points, FastLattice.of(bounds, resolution, False).encode(values))
    inside = (values >= bounds[0] + resolution) & (values <= bounds[1] - resolution)
    errors = np.abs(lattice.decode(points) - values)[inside]
    assert (errors <= resolution / 2.0 * (1.0 + 1e-12)).all()


def test_intervals_without_records_is_one_interval():
    data = intervals([], (0.0, 4.0), 1.0, False)
    assert (data.n, data.rank.tolist(), data.width.tolist()) == (0, [0], [5])


def test_intervals_counts_equal_repeated_records():
    repeated = intervals([2.0, 2.0, 3.0], (0.0, 4.0), 1.0, True, dither_rng=5)
    counted = intervals([2.0, 1.0, 3.0], (0.0, 4.0), 1.0, True, counts=[2, 0, 1], dither_rng=5)
    assert counted.n == 3
    assert repeated.left.tolist() == counted.left.tolist()


def test_intervals_dither_stays_in_cell_and_is_independent():
    data = intervals(np.full(200, 2), (0, 4), 1, None, dither_rng=3)
    bits = data.lattice.bits
    assert bits > 0
    # One record at every right end but the last.
    assert data.rank.tolist() == list(range(201))
    assert set((data.right[:-1] >> bits).tolist()) == {2}
    offsets = data.right[:-1] - (2 << bits)
    assert stats.kstest(offsets / 2.0**bits, "uniform").pvalue > 1e-6


def test_intervals_rejects_nan_when_told():
    with pytest.raises(ValueError, match="x must not contain NaN with nan_policy='raise'"):
        intervals([1.0, np.nan], (0.0, 4.0), nan_policy="raise")


@pytest.mark.parametrize(
    "counts, error, message",
    [
        ([1], ValueError, "counts must have one entry for each value of x"),
        ([1, -1], ValueError, "counts must not be negative"),
        ([1.5, 2.0], ValueError, "counts must be integers"),
        (["1", "2"], TypeError, "counts must be integers"),
    ],
)
def test_intervals_rejects_counts(counts, error, message):
    with pytest.raises(error, match=message):
        intervals([1.0, 2.0], (0.0, 4.0), counts=counts)


def test_distances_are_exact():
    # The float64 0.1 exceeds 1/10 by 2^-55 / 5; in float64, 10 * 0.1 is 1.
    assert distances(1, Fraction(0.1) * 10) == 2.0**-54
    assert distances([[0, 3]], Fraction(1, 2)).tolist() == [[0.5, 2.5]]


def test_pieces_are_the_points_of_a_cell():
    # Fine points 0..5, records on 1, 2 and 2: ranks 0 0 1 3 3 3.
    data = Intervals.from_points([2, 1, 2], lattice_of(3, bits=1))
    assert data.pieces(0.0) == [(0, 2)]
    assert data.pieces(1.0) == [(1, 1), (3, 1)]
    assert data.pieces(2.0) == [(3, 2)]
    assert data.pieces(0.5) == data.pieces(3.0) == data.pieces(math.nan) == []


@pytest.mark.parametrize("k", [1, 2, 3])
def test_draw_is_uniform_over_multisets(k):
    data = Intervals.from_points([], lattice_of(4))
    rng = np.random.default_rng(2)
    multisets = list(combinations_with_replacement((0.0, 1.0, 2.0, 3.0), k))
    observed = [tuple(data.draw(0, k, rng).tolist()) for _ in range(3_000)]
    assert_draws_follow(observed, dict.fromkeys(multisets, -math.log(len(multisets))))


# JointExp


def test_joint_exp_known_values():
    c = 0.7
    # One record at 0 of {0, 1}, q = 0, 1: (0, 1) splits it perfectly, the others miss by 2.
    law = joint_law(Intervals.from_points([0], lattice_of(2)), [0.0, 1.0], c)
    total = 1.0 + 2.0 * math.exp(-2.0 * c)
    assert law.log_prob([0.0, 1.0]) == pytest.approx(-math.log(total), abs=1e-14)
    assert law.log_prob([0.0, 0.0]) == pytest.approx(-2.0 * c - math.log(total), abs=1e-14)
    assert law.log_prob([1.0, 1.0]) == pytest.approx(-2.0 * c - math.log(total), abs=1e-14)


def test_joint_exp_continuous_known_values():
    c = 0.7
    # [0, 0.25] and [0.25, 1]: volumes 1/32, 3/16, 9/32 for the three paths.
    law = joint_law(Intervals.from_values([0.25], (0.0, 1.0)), [0.0, 1.0], c)
    log_z = math.log(3.0 / 16.0 + 10.0 / 32.0 * math.exp(-2.0 * c))
    assert law.log_normalizer == pytest.approx(log_z, abs=1e-14)
    assert law.log_prob([0.1, 0.9]) == pytest.approx(-log_z, abs=1e-14)
    assert law.log_prob([0.5, 0.5]) == pytest.approx(-2.0 * c - log_z, abs=1e-14)
    expected = math.log(9.0 / 32.0) - 2.0 * c - log_z
    assert law.path_log_prob([1, 1]) == pytest.approx(expected, abs=1e-14)
    assert law.path_log_prob([1, 0]) == -math.inf


def test_joint_exp_dithered_known_values():
    # No records, fine points {0, 1} and {2, 3}: 3, 4 and 3 of the 10 multisets.
    law = joint_law(Intervals.from_points([], lattice_of(2, bits=1)), [0.4, 0.6], 1.0)
    assert math.exp(law.log_prob([0.0, 0.0])) == pytest.approx(0.3, abs=1e-14)
    assert math.exp(law.log_prob([0.0, 1.0])) == pytest.approx(0.4, abs=1e-14)
    assert math.exp(law.log_prob([1.0, 1.0])) == pytest.approx(0.3, abs=1e-14)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("records, points, q", CASES)
def test_joint_exp_law_equals_enumeration(records, points, q, rate):
    law = joint_law(Intervals.from_points(records, lattice_of(points)), q, rate)
    assert_same_law(tabulate(law, points, len(q)), enumeration.joint_exp(records, points, q, rate))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("records, points, q", CASES)
def test_joint_exp_path_log_probs_sum_over_outputs(records, points, q, rate):
    data = Intervals.from_points(records, lattice_of(points))
    law = joint_law(data, q, rate)
    expected: dict[tuple[int, ...], list[float]] = {}
    for o, log_p in enumeration.joint_exp(records, points, q, rate).items():
        path = tuple(int(np.searchsorted(data.right, point)) for point in o)
        expected.setdefault(path, []).append(log_p)
    for path, terms in expected.items():
        assert law.path_log_prob(path) == pytest.approx(enumeration.log_sum(terms), abs=1e-12)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("records, points, q", CASES)
def test_joint_exp_density_equals_enumeration(records, points, q, rate):
    bounds = (0.0, points - 1.0)
    law = joint_law(Intervals.from_values(records, bounds), q, rate)
    expected = enumeration.joint_exp_density(records, bounds, q, rate)
    places = np.arange(points - 1) + 0.375
    for o in combinations_with_replacement(places.tolist(), len(q)):
        assert law.log_prob(o) == pytest.approx(expected(o), abs=1e-12)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("records, points, q, bits", DITHER_CASES)
def test_joint_exp_given_dither_equals_enumeration(records, points, q, bits, rate):
    lattice = lattice_of(points, bits)
    for fine in list(enumeration.dithers(records, bits))[::7]:
        law = joint_law(Intervals.from_points(fine, lattice), q, rate)
        expected = enumeration.joint_exp(fine, points << bits, q, rate)
        assert_same_law(tabulate(law, points, len(q)), enumeration.floored(expected, bits))


@pytest.mark.parametrize("records, points, q, bits", DITHER_CASES)
def test_joint_exp_over_all_dithers_equals_enumeration(records, points, q, bits):
    lattice = lattice_of(points, bits)
    law = enumeration.mixture(
        tabulate(joint_law(Intervals.from_points(fine, lattice), q, 0.5), points, len(q))
        for fine in enumeration.dithers(records, bits)
    )
    assert_same_law(law, enumeration.joint_exp_dithered(records, points, q, 0.5, bits))


# IndExp


def test_ind_exp_known_values():
    c = 0.7
    # One record at 0 of {0, 1}. Level 0 has u = 0 at 0 and -1 at 1; level 1 has 0 at both.
    for selection, miss in (
        ("exponential", math.exp(-c) / (1.0 + math.exp(-c))),
        ("permute-and-flip", math.exp(-c) / 2.0),
    ):
        law = ind_law(Intervals.from_points([0], lattice_of(2)), [0.0, 1.0], c, selection)
        assert math.exp(law.log_prob([0.0, 0.0])) == pytest.approx((1 - miss) / 2, abs=1e-14)
        assert math.exp(law.log_prob([1.0, 1.0])) == pytest.approx(miss / 2, abs=1e-14)
        assert math.exp(law.log_prob([0.0, 1.0])) == pytest.approx(1 / 2, abs=1e-14)


def test_ind_exp_cells_known_values():
    data = Intervals.from_points([2, 3, 3, 6], lattice_of(7))
    expected = [(-1, 1, 0, 0), (1, 2, 0, 1), (2, 3, 1, 3), (3, 5, 3, 3), (5, 6, 3, 4)]
    assert cells(data) == [Cell(*cell) for cell in expected]
    assert cells(Intervals.from_points([], lattice_of(7))) == [Cell(-1, 6, 0, 0)]
    data = Intervals.from_values([1.0, 1.0, 4.0], (0.0, 4.0))
    assert cells(data) == [Cell(0.0, 1.0, 0, 0), Cell(1.0, 4.0, 2, 2)]


def flip_level(widths: list[int], losses: list[float], rate: float) -> FlipLevel:
    """Cells of those widths, side by side."""
    edges = [-1, *(np.cumsum(widths) - 1).tolist()]
    of = [Cell(left, right, 0, 0) for left, right in pairwise(edges)]
    return FlipLevel(of, np.array(losses), rate)


@pytest.mark.parametrize(
    ("widths", "losses", "rate"),
    [
        ([1, 1, 1], [0.0, 0.25, 3.0], 1.0),
        ([7, 1, 20, 3], [1.5, 0.0, 0.5, 2.5], 0.3),
        ([30, 1], [0.0, 4.0], 1.0),
        ([1, 30, 1], [3.0, 5.0, 0.0], 1.0),
        ([2, 1, 2], [1e-9, 0.0, 2e-9], 1.0),
        ([1, 3], [0.0, 0.01], 65536.0),
    ],
)
def test_ind_exp_integral_equals_that_of_the_polynomial(widths, losses, rate):
    level = flip_level(widths, losses, rate)
    p = [Fraction(number) for number in level.p.tolist()]
    for t in range(len(widths)):
        polynomial = [Fraction(1)]  # the product of 1 - v p_j, by powers of v
        for j, width in enumerate(widths):
            for _ in range(width - (j == t)):
                raised = [0, *(-p[j] * factor for factor in polynomial)]
                polynomial = [a + b for a, b in zip([*polynomial, 0], raised, strict=True)]
        exact = p[t] * sum(factor / (i + 1) for i, factor in enumerate(polynomial))
        if float(exact) > 0.0:
            assert level.log_prob(t) == pytest.approx(math.log(exact), abs=1e-13)


@pytest.mark.parametrize("rate", [1e-6, 0.1, 3.0, 65536.0])
def test_ind_exp_integrals_of_wide_cells_make_a_law(rate):
    for widths, losses in (
        ([2**53], [0.0]),
        ([1, 2**52, 1, 2**40], [0.0, 30.0, 0.5, 7.0]),
        ([2**53, 1], [0.25, 0.0]),
        ([1] * 200, [abs(i - 70.25) - 0.25 for i in range(200)]),
    ):
        level = flip_level(widths, losses, rate)
        masses = [level.log_prob(t) + math.log(width) for t, width in enumerate(widths)]
        assert enumeration.log_sum(masses) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("w", [1, 3, 10**6, 2**53])
def test_max_of_exponentials_follows_its_law(w):
    rng = np.random.default_rng(17)
    draws = [max_of_exponentials(float(w), rng) for _ in range(4_000)]
    with np.errstate(divide="ignore"):
        law = stats.kstest(draws, lambda m: np.exp(w * np.log1p(-np.exp(-np.maximum(m, 0.0)))))
    assert law.pvalue > 1e-6


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("records, points, q", CASES)
def test_ind_exp_law_equals_enumeration(records, points, q, rate, selection):
    law = ind_law(Intervals.from_points(records, lattice_of(points)), q, rate, selection)
    expected = enumeration.ind_exp(records, points, q, spread(rate, q), selection)
    assert_same_law(tabulate(law, points, len(q)), expected)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("records, points, q", CASES)
def test_ind_exp_density_equals_enumeration(records, points, q, rate):
    bounds = (0.0, points - 1.0)
    law = ind_law(Intervals.from_values(records, bounds), q, rate)
    expected = enumeration.ind_exp_density(records, bounds, q, spread(rate, q))
    rng = np.random.default_rng(0)
    for o in np.sort(rng.uniform(*bounds, size=(20, len(q)))).tolist():
        assert law.log_prob(o) == pytest.approx(expected(o), abs=1e-12)


@pytest.mark.parametrize("make", [joint_law, ind_law])
def test_density_is_continuous_from_below_and_at_ties(make):
    law = make(Intervals.from_values([0.0, 1.0, 1.0, 2.0], (0.0, 4.0)), [0.3, 0.7], 0.6)
    inside = law.log_prob([0.5, 3.0])
    assert law.log_prob([1.0, 3.0]) == law.log_prob([1.0, 4.0]) == inside
    assert law.log_prob([0.0, 3.0]) == inside  # the low bound belongs to what follows it
    assert law.log_prob([1.5, 3.0]) != inside
    assert law.log_prob([0.5, 0.5]) == law.log_prob([0.5, 0.75])


# Privacy


def released_law(
    mechanism: str, records: list[int], points: int, q: list[float], neighbors: str, bits: int
) -> enumeration.Law:
    """The law of a release at epsilon = 1, averaged over all dithers; `ind_exp` by selection."""
    lattice = lattice_of(points, bits)
    levels = Levels(q)
    if mechanism == "joint_exp":
        rate = privacy.joint_exp.calibrate(levels, epsilon=1.0, neighbors=neighbors).rate
        laws = (
            JointExpLaw(Intervals.from_points(fine, lattice), levels, rate)
            for fine in enumeration.dithers(records, bits)
        )
    else:
        made = privacy.ind_exp.calibrate(
            levels, epsilon=1.0, neighbors=neighbors, selection=mechanism
        )
        data = Intervals.from_points(records, lattice)
        laws = iter([IndExpLaw(data, levels, made.rates, made.selection)])
    return enumeration.mixture(tabulate(law, points, levels.m) for law in laws)


@pytest.mark.parametrize("q", [[0.5], [0.1, 0.6], [0.0, 0.3, 1.0], [0.0], [0.9]])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize(
    ("mechanism", "bits"),
    [("joint_exp", 0), ("joint_exp", 1), ("permute-and-flip", 0), ("exponential", 0)],
)
def test_privacy_ratio(mechanism, neighbors, q, bits):
    points = 3
    laws: dict[tuple[int, ...], enumeration.Law] = {}

    def law_of(records):
        key = tuple(sorted(records))
        if key not in laws:
            laws[key] = released_law(mechanism, list(key), points, q, neighbors, bits)
        return laws[key]

    worst = max(
        enumeration.max_log_ratio(law_of(x), law_of(y))
        for n in range(4)
        for x in combinations_with_replacement(range(points), n)
        for y in neighbors_of(list(x), range(points), neighbors)
    )
    assert worst <= 1.0 + 1e-9
    assert worst > 0.1  # the budget is used


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("mechanism", ["joint_exp", "ind_exp"])
def test_privacy_ratio_of_two_contributions(mechanism, neighbors):
    q, points = [0.2, 0.5], 4
    x = [0, 1, 1, 3]

    def law_of(records, epsilon=1.0, max_contributions=2):
        law = LAWS[mechanism](
            np.array(records, dtype=float),
            q,
            epsilon=epsilon,
            bounds=(0.0, points - 1.0),
            neighbors=neighbors,
            resolution=1.0,
            dither=False,
            max_contributions=max_contributions,
        )
        return tabulate(law, points, len(q))

    assert_same_law(law_of(x), law_of(x, epsilon=0.5, max_contributions=1))
    base = law_of(x)
    further = {
        tuple(sorted(z))
        for y in neighbors_of(x, range(points), neighbors)
        for z in neighbors_of(y, range(points), neighbors)
    }
    for z in further:
        assert enumeration.max_log_ratio(base, law_of(z)) <= 1.0 + 1e-9


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("mechanism", ["joint_exp", "ind_exp"])
def test_privacy_ratio_continuous(mechanism, neighbors):
    q, bounds = [0.2, 0.5], (0.0, 4.0)
    x = [0, 1, 1, 4]

    def law_of(records):
        law = LAWS[mechanism](
            np.array(records, dtype=float),
            q,
            epsilon=1.0,
            bounds=bounds,
            neighbors=neighbors,
            resolution=0,
        )
        places = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.5, 4.0]
        return {o: law.log_prob(o) for o in combinations_with_replacement(places, len(q))}

    base = law_of(x)
    for y in neighbors_of(x, range(5), neighbors):
        assert enumeration.max_log_ratio(base, law_of(y)) <= 1.0 + 1e-9


# Draws


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "bits"), [(joint_law, 0), (joint_law, 2), (ind_law, 0), (exponential_law, 0)]
)
def test_sample_follows_law(make, bits):
    fine = [x << bits for x in (0, 2, 2, 3)]
    law = make(Intervals.from_points(fine, lattice_of(5, bits)), [0.3, 0.5, 0.7], 0.6)
    draws = law.sample(np.random.default_rng(11), 4_000)
    assert draws.shape == (4_000, 3)
    expected = tabulate(law, 5, 3)
    assert enumeration.log_sum(expected.values()) == pytest.approx(0.0, abs=1e-12)
    assert_draws_follow([tuple(int(v) for v in o) for o in draws], expected)


@pytest.mark.parametrize("make", [joint_law, ind_law])
def test_sample_follows_law_continuous(make):
    # Cells of width 1 between integer records: within a cell the density depends on nothing but
    # which outputs share it, so cell counts and, separately, positions in the cells are checked.
    law = make(Intervals.from_values([0.0, 2.0, 2.0, 3.0], (0.0, 4.0)), [0.3, 0.7], 0.6)
    draws = law.sample(np.random.default_rng(12), 4_000)
    log_p = {
        (a, b): law.log_prob([a + 0.4, b + 0.6]) - (math.log(2.0) if a == b else 0.0)
        for a, b in combinations_with_replacement(range(4), 2)
    }
    assert enumeration.log_sum(log_p.values()) == pytest.approx(0.0, abs=1e-12)
    assert (draws[:, 1] >= draws[:, 0]).all()
    assert_draws_follow([tuple(o) for o in np.floor(draws).astype(int).tolist()], log_p)
    assert stats.kstest(np.mod(draws.ravel(), 1.0), "uniform").pvalue > 1e-6


# The public functions


@pytest.mark.parametrize("mechanism", ["joint_exp", "ind_exp"])
def test_release_answers_in_the_manner_of_q(mechanism):
    release = RELEASES[mechanism]
    x = np.arange(40) % 7
    x.flags.writeable = False
    arguments = {"epsilon": 1.0, "bounds": (0, 10), "resolution": 1, "rng": 4}
    assert isinstance(release(x, 0.5, **arguments), float)
    out = release(x, [[0.9, 0.1], [0.5, 0.9]], **arguments)
    assert out.shape == (2, 2)
    assert out[0, 1] <= out[1, 0] <= out[0, 0] == out[1, 1]
    assert np.array_equal(out, np.rint(out))
    assert ((out >= 0.0) & (out <= 10.0)).all()


@pytest.mark.parametrize("mechanism", ["joint_exp", "ind_exp"])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("x", [[], [2.0], [0.0] * 9, [4.0] * 9, [np.nan, np.inf, -np.inf]])
def test_release_takes_any_sample(mechanism, neighbors, x):
    for options in ({}, {"resolution": 0}, {"resolution": 0.5}, {"dither": False}):
        out = RELEASES[mechanism](
            x,
            [0.0, 0.25, 0.5, 1.0],
            epsilon=2.0,
            bounds=(0.0, 4.0),
            neighbors=neighbors,
            rng=9,
            **options,
        )
        assert (np.diff(out) >= 0.0).all()
        assert ((out >= 0.0) & (out <= 4.0)).all()


@pytest.mark.parametrize("mechanism", ["joint_exp", "ind_exp"])
def test_release_finds_tied_quantiles(mechanism):
    x = np.repeat([3, 7], 100)
    out = RELEASES[mechanism](x, [0.25, 0.75], epsilon=50.0, bounds=(0, 10), rng=1)
    assert out.tolist() == [3.0, 7.0]


@pytest.mark.parametrize("mechanism", ["joint_exp", "ind_exp"])
def test_release_charges_the_accountant(mechanism):
    accountant = privacy.Accountant(epsilon=1.0)
    arguments = {"epsilon": 0.75, "bounds": (0.0, 4.0), "accountant": accountant, "rng": 1}
    RELEASES[mechanism]([1.0, 2.0], [0.2, 0.5], **arguments)
    assert accountant.spent.epsilon == 0.75
    with pytest.raises(privacy.BudgetExceeded):
        RELEASES[mechanism]([1.0, 2.0], [0.2, 0.5], **arguments)


@pytest.mark.parametrize("mechanism", ["joint_exp", "ind_exp"])
def test_law_is_zero_off_the_support(mechanism):
    options = {"epsilon": 1.0, "bounds": (0.0, 4.0), "resolution": 1.0, "dither": False}
    law = LAWS[mechanism]([1.0, 2.0], [0.5, 0.2, 0.5], **options)
    assert math.isfinite(law.log_prob([2.0, 1.0, 2.0]))
    assert law.log_prob([1.0, 2.0, 1.0]) == -math.inf  # decreasing in q
    assert law.log_prob([2.0, 1.0, 3.0]) == -math.inf  # one level, two answers
    assert law.log_prob([2.0, 0.5, 2.0]) == -math.inf  # off the lattice
    assert law.log_prob([5.0, 1.0, 5.0]) == -math.inf  # outside the bounds
    with pytest.raises(ValueError, match="o must have the shape of q"):
        law.log_prob([1.0, 2.0])


def test_law_given_dither_is_reproducible():
    arguments = {"epsilon": 1.0, "bounds": (0, 4), "resolution": 1, "dither_rng": 8}
    x = np.array([1, 1, 2, 4])
    law, again = (joint_exp_law(x, 0.5, **arguments) for _ in range(2))
    assert [law.log_prob(o) for o in range(5)] == [again.log_prob(o) for o in range(5)]
    total = enumeration.log_sum(law.log_prob(o) for o in range(5))
    assert total == pytest.approx(0.0, abs=1e-12)
