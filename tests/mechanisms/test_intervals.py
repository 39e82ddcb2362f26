"""Intervals around releases: exact coverage, draws against laws, what is charged and refused."""

from __future__ import annotations

import functools
import importlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from conftest import BOTH, Untouchable, assert_draws_follow
from halts import log_halts
from hypothesis import given
from hypothesis import strategies as st

import dpq_fast as dpq
from dpq_fast import privacy, reference
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.records import Records
from dpq_fast.mechanisms import intervals
from dpq_fast.noise.counts import Geometric
from dpq_fast.orders.sorted import SortedOrder
from dpq_fast.privacy import Accountant, BudgetExceeded, guarantee
from dpq_fast.privacy.intervals import Request, Search
from dpq_fast.privacy.levels import Levels
from dpq_fast.reference import aggregates as plain_aggregates
from dpq_fast.reference import intervals as plain
from dpq_fast.reference.agg_tree import AggTree as PlainTree
from dpq_fast.reference.agg_tree import margin_of
from dpq_fast.reference.lattice import Lattice as PlainLattice

aggregates = importlib.import_module("dpq_fast.mechanisms.aggregates")

POINTS = 5
GRID = dict(bounds=(0, POINTS - 1), resolution=1, dither=False)
# Of a known number of records, so that all ends are searched for.
MANY = 10**6


@functools.cache
def spent_of(
    q: tuple[float, ...],
    covers: str = "sample",
    confidence: float = 0.8,
    neighbors: str = "swap",
    epsilon: float = 4.0,
) -> Search:
    """A search for all of `epsilon`, of both ends of all levels."""
    return privacy.intervals.calibrate_groups(
        Levels(q),
        Request.of(confidence, covers),
        epsilon=epsilon,
        neighbors=neighbors,
        max_contributions=1,
        public_by=True,
        expected_n=MANY,
    )


def ordered(records: Any, points: int = POINTS) -> SortedOrder:
    lattice = Lattice.of((0.0, points - 1.0), 1.0, False)
    return SortedOrder(np.sort(np.array(records, dtype=float)), lattice, (0.0, points - 1.0))


def chances(around: intervals.Nested, spent: Search) -> np.ndarray:
    """Of each candidate, to be released."""
    return np.exp(log_halts(intervals.halting_law(around, spent))[1:])


def ranked(records: Any, level: float) -> float:
    """The record of rank q n, rounded up, and at least 1."""
    rank = max(math.ceil(Fraction(level) * len(records)), 1)
    return float(sorted(records)[rank - 1])


def covered(around: intervals.Nested, spent: Search, truth: Any) -> float:
    """The probability that all intervals hold their number."""
    truth = np.array(truth)[:, None]
    inside = ((around.low <= truth) & (truth <= around.high)).all(axis=0)
    return float(chances(around, spent) @ inside)


# Coverage


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("q", [(0.0,), (0.3,), (0.5,), (1.0,), (0.2, 0.5), (0.0, 0.5, 1.0)])
def test_search_covers_all_records_at_once_for_every_data_set_and_every_value(q, neighbors):
    spent = spent_of(q, neighbors=neighbors, epsilon=2.0)
    points = POINTS if len(q) < 3 else 4
    least = 1.0
    for n in range(1, 5 if len(q) == 1 else 4):
        for records in combinations_with_replacement(range(points), n):
            order = ordered(records, points)
            truth = [ranked(records, level) for level in q]
            for values in combinations_with_replacement(range(points), len(q)):
                around = intervals.nested(
                    order, np.array(values, dtype=float), spent, order.lattice
                )
                assert chances(around, spent).sum() == pytest.approx(1.0, abs=1e-9)
                least = min(least, covered(around, spent, truth))
    assert 0.8 - 1e-9 <= least
    assert least < 0.95  # some data come near


TIED = {
    "half tied": [7.0] * 50 + list(range(50)),
    "all tied": [7.0] * 100,
    "tied at a bound": [0.0] * 100,
    "one": [13.0],
    "two ends": [0.0] * 50 + [999.0] * 50,
    "a gap": list(range(40)) + [900.0 + i for i in range(60)],
    "even": list(range(0, 1_000, 10)),
    "beyond": [-5.0, 2_000.0] * 50,
}


@pytest.mark.slow
@pytest.mark.parametrize("covers", ["sample"])
@pytest.mark.parametrize("lattice", [1.0, 0.0])
@pytest.mark.parametrize("name", TIED)
def test_search_covers_adversarial_data_from_any_value(name, lattice, covers):
    bounds = (0.0, 999.0)
    records = np.clip(TIED[name], *bounds)
    order = SortedOrder(np.sort(records), Lattice.of(bounds, lattice, False), bounds)
    for q in [(0.05,), (0.5,), (0.95,), (0.25, 0.5, 0.75)]:
        spent = spent_of(q, covers, 0.95)
        truth = [ranked(records, level) for level in q]
        for value in (0.0, 6.0, 7.0, 8.0, 13.0, 450.0, 900.0, 998.0, 999.0):
            for values in (np.full(len(q), value), np.linspace(value, 999.0, len(q)).round()):
                around = intervals.nested(order, values, spent, order.lattice)
                assert covered(around, spent, truth) >= 0.95 - 1e-9
                assert (around.low <= values[:, None]).all()
                assert (around.high >= values[:, None]).all()
                assert (np.diff(around.low) >= 0.0).all()
                assert (np.diff(around.high) <= 0.0).all()


def test_search_without_bounds_covers_records_anywhere():
    for records in ([0.0] * 30, [1e-300] * 20 + [1e300] * 20, [-3.0, 5.0] * 20, [5e-324], [2.5]):
        column = Records.of(np.array(records))
        for q in [(0.5,), (0.1, 0.9)]:
            spent = spent_of(q, confidence=0.95)
            truth = [ranked(records, level) for level in q]
            for value in (0.0, 5e-324, 1e-300, 1.0, 2.5, -4.0, 1.7e308):
                for values in (
                    np.full(len(q), value),
                    np.array([-abs(value), abs(value)])[: len(q)],
                ):
                    for limits in [(-math.inf, math.inf), (min(-1.7e308, 0.0), math.inf)]:
                        around = intervals.nested_among(column, values, spent, limits)
                        assert not np.isnan(around.low).any() and not np.isnan(around.high).any()
                        assert chances(around, spent).sum() == pytest.approx(1.0, abs=1e-9)
                        assert covered(around, spent, truth) >= 0.95 - 1e-9


def multisets(law: list[float], n: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """All data sets of n independent draws, and their probabilities."""
    for records in combinations_with_replacement(range(len(law)), n):
        counts = np.bincount(records, minlength=len(law))
        ways = math.factorial(n) / math.prod(math.factorial(int(c)) for c in counts)
        yield records, ways * math.prod(p**c for p, c in zip(law, counts.tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("q", [(0.5,), (0.2, 0.7)])
@pytest.mark.parametrize(
    "law", [[0.1, 0.4, 0.3, 0.2], [0.5, 0.0, 0.5, 0.0], [0.21, 0.5, 0.0, 0.29]]
)
def test_search_covers_a_population_whatever_the_values_are(law, q):
    """Of data sets in proportion to their probabilities, each from the value that it covers least.

    With the sides that are searched: of ends at bounds there is nothing to be shown.
    """
    spent = spent_of(q, "population", 0.8, epsilon=40.0)
    assert spent.below.all() and spent.above.all()
    shares = np.cumsum(law)
    truth = [int(np.searchsorted(shares, level - 1e-12)) for level in q]
    for n in (1, 3, 7):
        missed = np.zeros(len(q))
        for records, chance in multisets(law, n):
            worst = np.zeros(len(q))
            order = ordered(records, len(law))
            for values in combinations_with_replacement(range(len(law)), len(q)):
                around = intervals.nested(
                    order, np.array(values, dtype=float), spent, order.lattice
                )
                inside = (around.low <= np.array(truth)[:, None]) & (
                    around.high >= np.array(truth)[:, None]
                )
                worst = np.maximum(worst, (~inside) @ chances(around, spent))
            missed += chance * worst
        assert (missed <= 0.2 + 1e-9).all()


def test_sides_towards_the_middle_are_narrower_where_both_are_searched():
    def sides(q, n, epsilon):
        levels, request = Levels(q), privacy.intervals.Request.of(0.95, interval_share=0.3)
        value = privacy.ind_exp.calibrate(levels, epsilon=0.7 * epsilon)
        spent = privacy.intervals.calibrate(value, levels, request, epsilon=epsilon, expected_n=n)
        below, above = intervals.scales_of(np.array([5.0]), spent.search, 100.0)
        return float(below[0]), float(above[0]), spent.search

    below, above, spent = sides(0.95, 1_000, 1.0)
    assert spent.below.all() and spent.above.all()
    apart = 2.0 * spent.margin / 1_000
    assert below == pytest.approx(100.0 * (0.05 - apart) / (0.05 + apart))
    assert above == pytest.approx(100.0 * (0.95 - apart) / (0.95 + apart))
    mirrored = sides(0.05, 1_000, 1.0)
    assert (mirrored[1], mirrored[0]) == pytest.approx((below, above))
    assert len(set(sides(0.5, 1_000, 1.0)[:2])) == 1
    assert sides(0.95, 10**7, 1.0)[:2] == pytest.approx((100.0, 100.0), rel=1e-3)
    few = sides(0.95, 1_000, 0.1)  # too few above to be told: nothing to balance
    assert few[0] == 100.0 and not few[2].above.any()
    assert intervals._narrower(0.0, 0.1) == intervals.NARROWEST
    assert intervals._narrower(0.0, 0.0) == 1.0


@pytest.mark.parametrize("least", [4.0, 1.0, 0.99, 2.0**-9])
def test_widths_end_at_one_point(least):
    """The last before none is one, or just what is not above the least."""
    *_, last, none = intervals._factors(least)
    assert none == 0.0
    assert min(least, 1.0) / intervals.RATIO < last <= min(least, 1.0)


# Against the reference


def searches(
    q: tuple[float, ...], resolution: float, covers: str, prior: Any = None
) -> Iterator[tuple[Any, ...]]:
    """Candidates around some values, and what the reference has them of."""
    bounds = (0.0, 8.0)
    records = [0.0, 1.0, 1.0, 2.5, 3.0, 3.0, 3.0, 7.25, 9.0]
    spent = spent_of(q, covers)
    _, lattice = Lattice.between(bounds, resolution, False, prior)
    other = PlainLattice.of(bounds, resolution, False)
    order = SortedOrder(np.sort(records), lattice and lattice.even, bounds)
    column = plain.undithered(records, bounds, resolution, prior=prior)
    for values in ([3.0] * len(q), [1.0, 1.0, 7.0][: len(q)]):
        points = values if other is None else [other.locate(value) for value in values]
        yield intervals.nested(order, np.array(values), spent, lattice), (points, spent, column)


@pytest.mark.parametrize("covers", privacy.intervals.KINDS)
@pytest.mark.parametrize(
    ("resolution", "prior"),
    [(1.0, None), (0.25, None), (0.0, None), (0.25, "scale-free"), (1e-6, "scale-free")],
)
@pytest.mark.parametrize("q", [(0.4,), (0.97,), (0.1, 0.5, 0.9)])
def test_search_is_that_of_the_reference(q, resolution, prior, covers):
    for around, asked in searches(q, resolution, covers, prior):
        ends = np.array([each.ends for each in plain.candidates(*asked)])
        lattice = asked[2].lattice
        if lattice is not None:
            ends = lattice.decode(ends.astype(np.int64))
        assert around.low == pytest.approx(ends[..., 0].T, rel=1e-12, abs=1e-12)
        assert around.high == pytest.approx(ends[..., 1].T, rel=1e-12, abs=1e-12)
        queries = intervals.halting_law(around, asked[1])._gaps
        assert queries == pytest.approx(plain.gaps(*asked), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("covers", privacy.intervals.KINDS)
@pytest.mark.parametrize("resolution", [1.0, 0.25, 0.0])
@pytest.mark.parametrize("q", [(0.4,), (0.1, 0.5, 0.9)])
def test_chances_of_a_search_are_those_of_the_reference(q, resolution, covers):
    found = list(searches(q, resolution, covers))
    if resolution == 0.0:
        del found[1:]  # very many candidates: their law is that of the gaps
    for around, asked in found:
        log_p = plain.log_probs(*asked)
        assert chances(around, asked[1]) == pytest.approx(np.exp(log_p), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("limits", [(-math.inf, math.inf), (0.0, math.inf), (-10.0, 10.0)])
@pytest.mark.parametrize("q", [(0.4,), (0.1, 0.5, 0.9)])
def test_search_without_bounds_is_that_of_the_reference(q, limits):
    records = [-1e200, 0.0, 1.0, 1.0, 2.5, 3.0, 3.0, 3.0, 7.25, 9.0]
    spent = spent_of(q)
    column = plain.Column(records, limits, None, bounded=False)
    for values in ([0.0] * len(q), [3.0] * len(q), np.linspace(0.5, 6.0, len(q)).tolist()):
        around = intervals.nested_among(
            Records.of(np.array(records)), np.array(values), spent, limits
        )
        ends = np.array([each.ends for each in plain.candidates(values, spent, column)])
        assert around.low == pytest.approx(ends[..., 0].T, rel=1e-12)
        assert around.high == pytest.approx(ends[..., 1].T, rel=1e-12)
        gaps = plain.gaps(values, spent, column)
        queries = intervals.halting_law(around, spent)._gaps
        assert queries == pytest.approx(gaps, rel=1e-12)


PUBLIC: dict[str, dict[str, Any]] = dict(
    joint_exp=GRID,
    ind_exp=GRID,
    approx_quantiles=GRID,
    unbounded_quantile=dict(lower=0.0, upper=4.0, beta=2.0),
)


@pytest.mark.slow
@pytest.mark.parametrize("side", [dpq, reference])
@pytest.mark.parametrize("name", PUBLIC)
def test_draws_follow_the_law_of_the_value_times_that_of_the_halt(name, side):
    x, q, budget = [1, 0, 3, 1, 1, 4, 2, 2], [0.3, 0.7], dict(epsilon=6.0)
    asked = dict(confidence=0.6, interval_share=0.4, expected_n=MANY)
    law = getattr(dpq, f"{name}_law")(x, q, epsilon=3.6, **PUBLIC[name])
    call = privacy.intervals.calibrate_call(
        getattr(privacy, name).calibrate,
        Request.of(0.6, interval_share=0.4),
        q=q,
        expected_n=MANY,
        **budget,
        **{key: PUBLIC[name][key] for key in ("lower", "upper") if key in PUBLIC[name]},
    )
    candidates = sorted(
        {*np.ravel(law.sample(1, 4_000)).tolist()} if name == "unbounded_quantile" else range(5)
    )
    expected: dict[Any, float] = {}
    for pair in combinations_with_replacement(map(float, candidates), 2):
        log_p = law.log_prob(np.array(pair))
        if log_p < -60.0:
            continue
        if name == "unbounded_quantile":
            column = Records.of(np.array(x, dtype=float))
            around = intervals.nested_among(column, np.array(pair), call.search, (0.0, 4.0))
        else:
            order = ordered(x)
            around = intervals.nested(order, np.array(pair), call.search, order.lattice)
        for j, chance in enumerate(chances(around, call.search).tolist()):
            key = (*pair, *around.low[:, j].tolist(), *around.high[:, j].tolist())
            expected[key] = expected.get(key, 0.0) + math.exp(log_p) * chance
    assert sum(expected.values()) == pytest.approx(1.0, abs=1e-6)
    rng = np.random.default_rng(5)
    size = 1_000 if side is dpq else 200
    drawn = []
    for _ in range(size):
        found = getattr(side, name)(x, q, rng=rng, **budget, **asked, **PUBLIC[name])
        drawn.append(tuple(np.ravel([found.value, found.low, found.high]).tolist()))
    total = sum(expected.values())
    assert_draws_follow(drawn, {key: math.log(p / total) for key, p in expected.items() if p > 0.0})


@pytest.mark.slow
@pytest.mark.parametrize("method", privacy.quantile_by.METHODS)
@pytest.mark.parametrize("side", [dpq, reference])
def test_draws_of_groups_follow_their_laws(side, method):
    x = [1, 0, 3, 1, 1, 4, 2, 2, 0, 4, 4]
    by = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 5]
    counts = [1, 2, 1, 0, 1, 1, 3, 1, 1, 1, 9]
    options = dict(groups=[1, 0, 7], bounds=(0, 4), resolution=1, dither=False, counts=counts)
    request = dict(epsilon=20.0, method=method, confidence=0.6, expected_n=MANY)
    call = privacy.quantile_by.calibrate(0.5, **request)
    assert call.search is not None
    rng = np.random.default_rng(8)
    drawn: dict[int, list[Any]] = {0: [], 1: [], 7: []}
    for _ in range(600 if side is dpq else 150):
        answers = side.quantile_by(x, by, 0.5, rng=rng, **options, **request)
        for group in drawn:
            drawn[group].append(tuple(map(float, tuple(answers[group])[:3])))
    for group, outputs in drawn.items():
        records = np.repeat(x, np.where(np.array(by) == group, counts, 0))
        law: Any = dpq.ind_exp_law(records, 0.5, epsilon=2.0 * call.rate, **GRID)
        if method == "joint_exp":
            law = dpq.joint_exp_law(records, 0.5, epsilon=2.0 * 2.0 * call.rate, **GRID)
        expected: dict[Any, float] = {}
        for value in range(POINTS):
            order, at = ordered(records), np.array([float(value)])
            around = intervals.nested(order, at, call.search, order.lattice)
            for j, chance in enumerate(chances(around, call.search).tolist()):
                key = (float(value), float(around.low[0, j]), float(around.high[0, j]))
                expected[key] = expected.get(key, 0.0) + math.exp(law.log_prob(value)) * chance
        assert_draws_follow(outputs, {key: math.log(p) for key, p in expected.items() if p > 0.0})


@pytest.mark.parametrize("covers", privacy.intervals.KINDS)
@pytest.mark.parametrize("resolution", [1.0, 0.0])
@pytest.mark.parametrize("aggregate", [True, False])
@pytest.mark.parametrize("total", [None, 40])
def test_intervals_of_trees_are_those_of_the_reference(total, aggregate, resolution, covers):
    rng = np.random.default_rng(4)
    bounds, noise = (0.0, 10.0), Geometric(Fraction(3, 2))
    lattices = [each.of(bounds, resolution, False) for each in (Lattice, PlainLattice)]
    for _ in range(5):
        nodes = [rng.integers(0, 30, size=4), rng.integers(-2, 9, size=16)]
        tree = dpq.AggTree(
            nodes, bounds, noise, total=total, aggregate=aggregate, lattice=lattices[0]
        )
        flat = {(1 + d, i): float(c) for d, level in enumerate(nodes) for i, c in enumerate(level)}
        other = PlainTree(flat, bounds, total=total, aggregate=aggregate, lattice=lattices[1])
        sampling = 0.05 if covers == "population" else 0.0
        margin = margin_of("geometric", 1.5, 0.1 - sampling)
        low, high = tree.quantile_confint([0.1, 0.5, 0.9], 0.9, covers)
        ends = [other.confint(q, margin, sampling / 2.0) for q in (0.1, 0.5, 0.9)]
        assert low == pytest.approx([each[0] for each in ends])
        assert high == pytest.approx([each[1] for each in ends])


# Means, sums and counts

MEANS = [
    dict(neighbors="swap", nan_policy="omit"),
    dict(neighbors="swap", nan_policy="raise"),
    dict(neighbors="add-remove", nan_policy="omit"),
]
# Of a sum about twice the middle, and about what a pilot may have found; without and with rows.
ABOUT = [(2, None), (1, None), (2, 0), (1, 0), (3, 1)]


def noisy_integers(
    x: Any, form: dict[str, str], epsilon: float, about: int = 2, missing: int | None = None
) -> tuple[Any, ...]:
    """A mean between 0 and 2, its two integers, and the scales of their noise."""
    clipping = aggregates.Clipping(
        {},
        epsilon=epsilon,
        q=None,
        lower=0.0,
        upper=2.0,
        method="unbounded",
        share=None,
        expected_n=None,
        resolution=1.0,
        neighbors=form["neighbors"],
        max_contributions=1,
    )
    records = Records.reader(np.array(x, dtype=float), nan_policy=form["nan_policy"])()
    clip = clipping.clip([])
    total, number, rows = records.sums(clip.scale, clip.first, clip.last)
    assert rows == len(x)
    rows = None if missing is None else rows + missing
    mean = clipping.mean(clip, not records.n_is_public, rows)
    if form["neighbors"] == "swap":
        mean = replace(mean, about=about)
    (first, one), (second, other) = mean.terms(total, number)
    return mean, (first, second), (one, other)


def chance_of(scale: Fraction, k: int) -> float:
    if scale == 0:
        return float(k == 0)
    r = math.exp(-1.0 / float(scale))
    return (1.0 - r) / (1.0 + r) * r ** abs(k)


@pytest.mark.slow
@pytest.mark.parametrize("form", MEANS)
@pytest.mark.parametrize("x", [[0, 1, 2, 2, 2, 1, 1, 0, 2, 2], [0] * 5, [2] * 5, [0, 1]])
@pytest.mark.parametrize(("about", "missing"), ABOUT)
def test_means_are_covered_whatever_the_records_are(x, form, about, missing):
    """All noise that is not rarer than 1e-4 is looked at."""
    mean, (first, second), scales = noisy_integers(x, form, 4.0, about, missing)
    request = Request.of(0.7)
    found, seen = 0.0, 0.0
    reach = [0 if scale == 0 else math.ceil(5 * scale) for scale in scales]
    for noise in product(*(range(-far, far + 1) for far in reach)):
        chance = math.prod(map(chance_of, scales, noise))
        if chance < 1e-3:
            continue
        ends = mean.interval(first + noise[0], second + noise[1], request)
        seen += chance
        found += chance * (ends[0] <= np.mean(x) <= ends[1])
    assert found >= 0.7 * seen
    assert seen > 0.9


@pytest.mark.parametrize("form", MEANS)
@pytest.mark.parametrize("covers", privacy.intervals.KINDS)
@pytest.mark.parametrize(("about", "missing"), ABOUT)
def test_means_have_the_intervals_of_the_reference(form, covers, about, missing):
    made = noisy_integers([0, 1, 2, 2, 2, 1, 1], form, 1.5, about, missing)
    mean, (first, second), scales = made
    request = Request.of(0.9, covers)
    public = form["neighbors"] == "swap"
    for noise in [(0, 0), (3, -1), (-5, 2), (2, 40), (-30, 1)]:
        noisy = first + noise[0], second + (noise[1] if scales[1] else 0)
        ends = mean.interval(*noisy, request)
        if mean.rows is not None:
            noisy = noisy[0], min(noisy[1], mean.rows)
        other = plain_aggregates.mean_interval(
            *noisy, scales, mean.clip.width, public, request, about - 2
        )
        assert ends == pytest.approx([2.0 * end for end in other], abs=1e-6)


@pytest.mark.parametrize("name", ["count", "sum", "mean"])
def test_aggregates_give_the_values_that_they_give_without_an_interval(name):
    x = np.arange(50) % 7
    clip = {} if name == "count" else dict(q=None, lower=0, upper=7)
    release = getattr(dpq, name)
    for neighbors in BOTH:
        options = dict(epsilon=0.7, neighbors=neighbors, rng=3, **clip)
        value, low, high = release(x, confidence=0.9, **options)
        assert value == release(x, **options)
        assert low <= value <= high
        wide = release(x, confidence=0.99, **options)
        assert wide.low < low and high < wide.high
    if name != "mean":
        scale = Fraction(10, 7) if name == "count" else Fraction(7 * 10, 7)
        found = (
            release(x, epsilon=0.7, confidence=0.9, rng=3, **clip | dict(resolution=1))
            if (name == "sum")
            else release(x, epsilon=0.7, confidence=0.9, rng=3)
        )
        beside = (found.high - found.low) / 2.0
        missed = 2.0 * sum(chance_of(scale, k) for k in range(int(beside) + 1, 600))
        more = 2.0 * sum(chance_of(scale, k) for k in range(int(beside), 600))
        assert missed <= 0.1 < more


# The calls

X = np.random.default_rng(0).normal(3.0, 1.0, size=400).round(1)
CALLS: dict[str, Callable[..., Any]] = {
    "quantile": functools.partial(dpq.quantile, q=[0.2, 0.7], bounds=(0, 10)),
    "median": functools.partial(dpq.median, bounds=(0, 10)),
    "percentile": functools.partial(dpq.percentile, q=[20, 70], bounds=(0, 10)),
    "joint_exp": functools.partial(dpq.joint_exp, q=[0.2, 0.7], bounds=(0, 10)),
    "ind_exp": functools.partial(dpq.ind_exp, q=0.4, bounds=(0, 10)),
    "approx_quantiles": functools.partial(dpq.approx_quantiles, q=[0.2, 0.7], bounds=(0, 10)),
    "approx_quantiles, unbounded": functools.partial(
        dpq.approx_quantiles, q=[0.2, 0.7], base="unbounded"
    ),
    "two_stage": functools.partial(dpq.two_stage, q=[0.2, 0.7], bounds=(0, 10)),
    "unbounded_quantile": functools.partial(dpq.unbounded_quantile, q=[0.2, 0.7]),
    "agg_tree": functools.partial(dpq.agg_tree, q=[0.2, 0.7], bounds=(0, 10)),
    "count": dpq.count,
    "sum": dpq.sum,
    "mean": dpq.mean,
}
WITH_BUDGET = [name for name in CALLS if name not in ("agg_tree", "count", "sum", "mean")]


@pytest.mark.parametrize("name", CALLS)
def test_calls_with_a_confidence_give_an_estimate_and_the_same_for_a_seed(name):
    found = CALLS[name](X, epsilon=1.0, confidence=0.9, rng=7)
    again = CALLS[name](X, epsilon=1.0, confidence=0.9, rng=7)
    assert isinstance(found, dpq.Estimate)
    assert np.array_equal(np.asarray(found), np.asarray(again))
    assert np.shape(found.value) == np.shape(found.low) == np.shape(found.high)
    assert (np.asarray(found.low) <= found.value).all()
    assert (np.asarray(found.value) <= found.high).all()
    assert (found.confidence, found.covers) == (0.9, "sample")
    plain_answer = CALLS[name](X, epsilon=1.0, rng=7)
    assert np.shape(plain_answer) == np.shape(found.value)
    if np.ndim(plain_answer) == 0 and name != "count":
        assert type(found.value) is type(found.low) is type(found.high) is float


@pytest.mark.parametrize("name", WITH_BUDGET)
def test_values_have_the_seed_s_draws_of_their_part_of_the_budget(name):
    """The search is drawn behind the value."""
    found = CALLS[name](X, epsilon=2.0, confidence=0.9, interval_share=0.25, rng=7)
    alone = CALLS[name](X, epsilon=math.nextafter(1.5, 0.0), rng=7)
    assert np.array_equal(found.value, alone)


@pytest.mark.parametrize("k", [1, 3])
def test_ends_have_the_noise_of_all_records_of_a_person(k, monkeypatch):
    seen, searched = [], intervals.searched
    monkeypatch.setattr(
        intervals, "searched", lambda *asked: seen.append(asked[2]) or searched(*asked)
    )
    options = dict(epsilon=2.0, confidence=0.9, interval_share=0.3, max_contributions=k, rng=1)
    dpq.ind_exp(np.arange(300.0), [0.3, 0.6], bounds=(0, 300), **options)
    (spent,) = seen
    # of a replaced record of each, with both ends: A + 2 B
    assert spent.rates == pytest.approx(np.array([0.45, 0.275]) * 0.6 / k, rel=1e-5)


@pytest.mark.parametrize("name", CALLS)
def test_one_charge_for_value_and_ends(name):
    accountant = Accountant(epsilon=1.5, neighbors="add-remove")
    public = dict(epsilon=1.0, confidence=0.9, neighbors="add-remove", accountant=accountant)
    CALLS[name](X, rng=1, **public)
    assert accountant.spent.epsilon == 1.0
    with pytest.raises(BudgetExceeded):
        CALLS[name](Untouchable(), rng=1, **public)
    assert accountant.spent.epsilon == 1.0


def test_charges_are_guarantees():
    for name, budget in [
        ("joint_exp", dict(epsilon=1.0)),
        ("ind_exp", dict(epsilon=1.0, delta=1e-6)),
        ("ind_exp", dict(rho=0.1)),
        ("approx_quantiles", dict(rho=0.1)),
    ]:
        public = dict(q=[0.2, 0.7], neighbors="add-remove", max_contributions=2)
        asked = dict(confidence=0.9, covers="population", interval_share=0.5)
        log: list[Any] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                privacy, "charge", lambda _, made, *__, log=log: log.append(made.guarantee)
            )
            getattr(dpq, name)(X, bounds=(0, 10), rng=1, **public, **budget, **asked)
        assert log == [guarantee(name, **public, **budget, **asked)]


@pytest.mark.parametrize("share", [None, 0.9])
@pytest.mark.parametrize("method", ["joint_exp", "ind_exp", "approx_quantiles"])
def test_a_call_spends_its_rho(method, share):
    accountant = Accountant(epsilon=50.0, delta=1e-6, composition="zcdp")
    asked = dict(confidence=0.9, interval_share=share, method=method, bounds=(0, 10))
    dpq.quantile(X, [0.2, 0.7], rho=0.5, accountant=accountant, rng=1, **asked)
    assert accountant.spent.rho == pytest.approx(0.5, rel=1e-9)


def test_intervals_are_the_same_for_every_form_of_the_records():
    values, counts = np.unique(X, return_counts=True)
    bounds = (0, 10)
    public = dict(epsilon=4.0, confidence=0.9, rng=3, expected_n=400)
    for resolution in (0.1, 0.0):
        shape = dict(bounds=bounds, resolution=resolution)
        first = dpq.ind_exp(X, [0.2, 0.7], **shape, **public)
        with_nan = np.append(X, [np.nan] * 5)
        batches = dpq.Sample.from_batches(lambda: iter(np.array_split(X, 7)), **shape)
        for other in (
            dpq.ind_exp(values, [0.2, 0.7], counts=counts, **shape, **public),
            dpq.ind_exp(dpq.Sample.of(X, **shape), [0.2, 0.7], **public),
            dpq.ind_exp(np.sort(X), [0.2, 0.7], assume_sorted=True, **shape, **public),
            dpq.ind_exp(with_nan, [0.2, 0.7], **shape, **public),
            dpq.ind_exp(batches, [0.2, 0.7], **public),
            dpq.ind_exp(X, [[0.7], [0.2]], **shape, **public),
        ):
            assert np.array_equal(np.sort(np.ravel(other.value)), first.value)
            assert np.array_equal(np.sort(np.ravel(other.low)), np.sort(first.low))
            assert np.array_equal(np.sort(np.ravel(other.high)), np.sort(first.high))


@given(
    x=st.lists(st.floats(), max_size=8),
    q=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4),
    resolution=st.sampled_from([None, 0.0, 1.0]),
    covers=st.sampled_from(privacy.intervals.KINDS),
    seed=st.integers(0, 9),
)
def test_values_are_inside_for_any_records(x, q, resolution, covers, seed):
    options = dict(epsilon=30.0, confidence=0.5, covers=covers, expected_n=1_000, rng=seed)
    bounded = dpq.ind_exp(x, q, bounds=(-3.0, 40.0), resolution=resolution, **options)
    free = dpq.unbounded_quantile(x, q, lower=None, **options)
    for value, low, high in (bounded, free):
        assert (low <= value).all() and (value <= high).all()
    assert -3.0 <= bounded.low.min() and bounded.high.max() <= 40.0


def test_more_of_the_budget_makes_intervals_shorter():
    widths = []
    for share in (0.1, 0.5):
        found = [
            dpq.ind_exp(
                np.arange(1_000), 0.5, epsilon=1.0, bounds=(0, 999), confidence=0.9,
                interval_share=share, rng=seed,
            )
            for seed in range(60)
        ]  # fmt: skip
        widths.append(np.mean([each.high - each.low for each in found]))
    assert widths[0] > 1.5 * widths[1]


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        *((name, dict(confidence=2.0), "confidence must lie strictly between") for name in CALLS),
        *(
            (name, dict(covers="population"), "confidence must be given with covers")
            for name in CALLS
        ),
        *(
            (name, dict(confidence=0.9, interval_share=0.0), "interval_share must lie strictly")
            for name in WITH_BUDGET
        ),
        *(
            (name, dict(expected_n=10), "confidence must be given with expected_n, got None")
            for name in WITH_BUDGET
            if name not in ("quantile", "median", "percentile", "two_stage")
        ),
        *(
            (name, dict(confidence=0.9, expected_n=0), "expected_n must be at least 1, got 0")
            for name in WITH_BUDGET
        ),
        (
            "agg_tree",
            dict(confidence=0.9, interval_share=0.5),
            "interval_share must be left out for a tree",
        ),
        ("count", dict(confidence=0.9, covers="population"), "covers must be 'sample' for a count"),
        ("sum", dict(confidence=0.9, covers="population"), "covers must be 'sample' for a count"),
        (
            "quantile",
            dict(confidence=0.9, method="csmooth", rho=0.1, epsilon=None),
            "confidence must be left out for method 'csmooth', got 0.9",
        ),
    ],
)
def test_calls_reject_without_a_charge(name, given, message):
    accountant = Accountant(epsilon=10.0, delta=0.1)
    with pytest.raises(ValueError, match=message):
        CALLS[name](
            Untouchable(),
            accountant=accountant,
            **dict(epsilon=1.0, neighbors="add-remove") | given,
        )
    assert accountant.spent.epsilon == 0.0


def test_groups_reject():
    form = dict(q=0.5, groups=[0, 1], epsilon=1.0, bounds=(0, 1))
    for side in (dpq, reference):
        with pytest.raises(ValueError, match="expected_n must be left out without a confidence"):
            side.quantile_by([0.5], [0], method="ind_exp", expected_n=5, **form)
        with pytest.raises(ValueError, match="confidence must lie strictly between"):
            side.quantile_by([0.5], [0], confidence=1, **form)


# Estimates


def test_estimate_of_one_number():
    found = dpq.Estimate(2.0, 1.0, 4.5, 0.95, "sample")
    assert tuple(found) == (2.0, 1.0, 4.5)
    assert np.asarray(found).tolist() == [2.0, 1.0, 4.5]
    assert np.asarray(found, dtype=int).dtype == np.dtype(int)
    assert str(found) == "2 [1, 4.5]  (95% interval for the sample)"
    frame = found.to_frame()
    assert frame.columns.tolist() == ["value", "low", "high"]
    assert frame.to_numpy().tolist() == [[2.0, 1.0, 4.5]]


def test_estimate_of_an_array():
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    found = dpq.Estimate(values, values - 1.0, values + [[1.0, math.inf]] * 2, 0.9, "population")
    value, low, high = found
    assert value is values and np.array_equal(low, values - 1.0)
    assert np.asarray(found).shape == (2, 2, 3)
    assert np.array_equal(np.asarray(found)[..., 2], high)
    assert str(found).split("\n")[1] == "2 [1, inf]"
    assert str(found).endswith("4 [3, inf]  (90% interval for the population)")
    assert found.to_frame().shape == (4, 3)
    with pytest.raises(AttributeError):
        found.value = 3.0


def test_estimate_is_a_float_in_any_format_and_json():
    found = dpq.Estimate(1234.5, -math.inf, 1300.0, 0.95, "sample")
    assert float(found) == 1234.5
    assert f"{found:,.0f}" == "1,234 [-inf, 1,300]"
    assert f"{found}" == str(found)
    assert found.to_dict() == {
        "value": 1234.5,
        "low": -math.inf,
        "high": 1300.0,
        "confidence": 0.95,
        "covers": "sample",
    }
    assert json.loads(found.to_json()) == found.to_dict() | {"low": None}
    counted = dpq.count(X, epsilon=1.0, neighbors="add-remove", confidence=0.9, rng=1)
    assert float(counted) == counted.value == json.loads(counted.to_json())["value"]
    assert type(counted.to_dict()["value"]) is int
    with pytest.raises(TypeError, match=r"^an estimate must be of several answers to be indexed"):
        found[0]


def test_estimate_of_an_array_is_indexed_by_answers():
    """Unpacking gives the three parts all the same."""
    values = np.array([[1.0, 2.0, 7.0], [3.0, 4.0, 9.0]])
    found = dpq.Estimate(values, values - 1.0, values + 2.0, 0.9, "population")
    value, low, high = found
    assert value is found.value and low is found.low and high is found.high
    for index in (1, -1, slice(1), (0, 2), (slice(None), 1), values > 3.0, [1, 0, 1]):
        part = found[index]
        assert np.array_equal(np.asarray(part), np.asarray(found)[index])
        assert (part.confidence, part.covers) == (0.9, "population")
    assert type(found[0, 2].value) is float and float(found[0, 2]) == 7.0
    assert f"{found[0]:.2f}" == "1.00 [0.00, 3.00]\n2.00 [1.00, 4.00]\n7.00 [6.00, 9.00]"
    assert json.loads(found.to_json())["high"] == (values + 2.0).tolist()
    with pytest.raises(TypeError, match=r"one number to be a float, got one of shape \(2, 3\)$"):
        float(found)
    with pytest.raises(IndexError):
        found[2]


def test_estimate_of_times_goes_to_json():
    days = np.array(["2020-01-31", "NaT"], dtype="M8[D]")
    found = dpq.Estimate(days, days, days, 0.9, "sample")
    assert json.loads(found.to_json())["value"] == ["2020-01-31", None]
    assert found[0].to_dict()["value"] == days[0]
    with pytest.raises(TypeError, match=r"one number to be a float, got one of datetime64$"):
        float(found[0])
    noon = datetime(2020, 1, 31, 12, tzinfo=timezone.utc)
    one = dpq.Estimate(noon, noon, noon, 0.9, "sample")
    assert json.loads(one.to_json())["low"] == "2020-01-31T12:00:00+00:00"
    assert f"{one:%Y}" == "2020 [2020, 2020]"


def test_groups_show_their_intervals():
    by = np.arange(400) % 2
    form = dict(groups=[1, 0], epsilon=10.0, bounds=(0, 10), rng=3)
    found = dpq.quantile_by(X, by, [0.2, 0.7], confidence=0.9, covers="population", **form)
    assert found.low is not None and found.high is not None
    assert (found.low <= found.values).all() and (found.values <= found.high).all()
    one = found[0]
    assert isinstance(one, dpq.Estimate) and one.covers == "population"
    assert np.array_equal(one.low, found.low[1])
    frame = found.to_pandas()
    assert frame.columns.names == ["q", "part"]
    assert np.array_equal(frame[0.7, "high"], found.high[:, 1])
    without = dpq.quantile_by(X, by, [0.2, 0.7], **form)
    assert without.low is None and without.confidence is None
    assert isinstance(without[0], np.ndarray)
    for workers in (1, 2):
        again = dpq.quantile_by(
            X, by, [0.2, 0.7], confidence=0.9, covers="population", workers=workers, **form
        )
        assert np.array_equal(again.low, found.low) and np.array_equal(again.high, found.high)


# Widths


@pytest.mark.parametrize("q", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("name", ["latencies", "costs", "cauchy"])
def test_intervals_are_as_wide_as_a_few_times_the_noise_wherever_bounds_are(name, q):
    draw, bounds, resolution = {
        "latencies": (lambda rng: rng.lognormal(4.6, 0.8, 1_000).round(), (1.0, 1e5), 1.0),
        "costs": (lambda rng: rng.lognormal(10.5, 0.8, 1_000), (0.0, 1e9), None),
        "cauchy": (lambda rng: 5.0 * rng.standard_cauchy(1_000), (-1e3, 1e3), None),
    }[name]
    x = draw(np.random.default_rng(0))
    rng = np.random.default_rng(1)
    released = [
        dpq.quantile(
            x, q, epsilon=1.0, bounds=bounds, resolution=resolution, confidence=0.95, rng=rng
        )
        for _ in range(100)
    ]
    value, low, high = np.array([[each.value, each.low, each.high] for each in released]).T
    noise = np.quantile(np.abs(value - np.sort(x)[math.ceil(1_000 * q) - 1]), 0.95)
    assert np.median(high - low) / 2.0 <= 5.0 * noise


def test_intervals_of_a_population_tell_few_records_from_the_bounds():
    rng = np.random.default_rng(0)
    median, options = math.exp(9.0), dict(bounds=(0, 50_000), confidence=0.95, covers="population")
    half, covered = [], []
    for _ in range(200):
        made = dpq.median(rng.lognormal(9.0, 0.9, 137), epsilon=1.0, rng=rng, **options)
        half.append((made.high - made.low) / 2.0)
        covered.append(made.low <= median <= made.high)
    assert np.mean(half) <= 5_500.0
    assert np.mean(covered) >= 0.95
