"""One quantile by depth: the windowed law is the whole law, its rare branch included."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from conftest import SELECTIONS, assert_draws_follow
from hypothesis import assume, given
from hypothesis import strategies as st

import enumeration
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.prior import Masses
from dpq_fast.laws.depth import CERTIFICATE, Cells, DepthLaw, window_of
from dpq_fast.orders.counted import CountedOrder
from dpq_fast.orders.order import CoarseOrder
from dpq_fast.orders.sorted import SortedOrder
from dpq_fast.privacy.levels import Levels
from dpq_fast.reference.ind_exp import IndExpLaw
from dpq_fast.reference.lattice import Lattice as ReferenceLattice
from dpq_fast.reference.sample import Intervals

# How many records lie at each of some points, and how many points there are.
Runs = dict[int, int]
# Of the fraction in a target.
ROUNDING = 2.0**-53


def lattice_of(points: int) -> Lattice:
    return Lattice.of((0.0, points - 1.0), 1.0, False)


def order_of(runs: Runs, points: int, counted: bool = False) -> CoarseOrder:
    lattice = lattice_of(points)
    bounds = (lattice.low, lattice.high)
    places, counts = (np.array([*column], dtype=np.int64) for column in (runs, runs.values()))
    if counted:
        return CountedOrder(places, counts, lattice, bounds)
    return SortedOrder(np.repeat(places, counts).astype(np.float64), lattice, bounds)


def reference_of(runs: Runs, points: int, q: float, rate: float, selection: str) -> IndExpLaw:
    lattice = ReferenceLattice.of((0.0, points - 1.0), 1.0, False)
    records = np.repeat([*runs], [*runs.values()])
    return IndExpLaw(Intervals.from_points(records, lattice), Levels(q), rate, selection)


def log_prob(law: DepthLaw, point: int) -> float:
    return law.log_prob(np.array([point]))


def near(runs: Runs, points: int) -> list[int]:
    """Both ends, the points with records, and those beside them."""
    beside = {point + step for point in runs for step in (-1, 0, 1)}
    return sorted(point for point in beside | {0, points - 1} if 0 <= point < points)


@st.composite
def many_runs(draw: st.DrawFn) -> tuple[Runs, int]:
    """Runs of some records or many, next to each other or far apart, on any number of points."""
    points = draw(st.sampled_from([2, 3, 5, 40, 10**6, 2**53]))
    place = st.one_of(st.integers(0, min(points, 6) - 1), st.integers(0, points - 1))
    place = st.one_of(place, place.map(lambda point: points - 1 - point))
    runs = draw(st.dictionaries(place, st.one_of(st.just(1), st.integers(1, 40)), max_size=6))
    return dict(sorted(runs.items())), points


def level_of(runs: Runs, kind: str, where: float) -> float:
    """A level at the end of a run, inside one, or anywhere."""
    edges = np.cumsum([0, *runs.values()]).tolist()
    n = edges[-1]
    if kind == "anywhere" or n == 0:
        return where
    below, upto = list(pairwise(edges))[int(where * (len(edges) - 2))]
    return {"start": below, "end": upto, "middle": (below + upto) / 2.0}[kind] / n


KINDS = st.sampled_from(["anywhere", "start", "end", "middle"])
WHERE = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0.0, 1.0))
RATES = st.one_of(
    st.sampled_from([1e-6, 1e-3, 0.5, 30.0, 65536.0]), st.floats(-14.0, 11.0).map(math.exp)
)


# The law


@given(many_runs(), KINDS, WHERE, RATES, st.sampled_from(SELECTIONS), st.booleans())
def test_depth_law_equals_the_reference(sample, kind, where, rate, selection, counted):
    runs, points = sample
    q = level_of(runs, kind, where)
    law = DepthLaw(order_of(runs, points, counted), q, rate, selection == "permute-and-flip")
    expected = reference_of(runs, points, q, rate, selection)
    for point in near(runs, points):
        assert log_prob(law, point) == pytest.approx(
            expected.log_prob(float(point)), rel=1e-12, abs=1e-10
        )


@given(many_runs(), KINDS, WHERE, RATES, st.sampled_from(SELECTIONS), st.integers(0, 50))
def test_forced_windows_leave_the_law_unchanged(sample, kind, where, rate, selection, window):
    runs, points = sample
    q, flip = level_of(runs, kind, where), selection == "permute-and-flip"
    order = order_of(runs, points)
    law, forced = DepthLaw(order, q, rate, flip), DepthLaw(order, q, rate, flip, window=window)
    for point in near(runs, points):
        assert log_prob(forced, point) == pytest.approx(log_prob(law, point), rel=1e-12, abs=1e-10)


@given(many_runs(), KINDS, WHERE, st.integers(0, 100), st.booleans())
def test_windows_hold_what_loses_least(sample, kind, where, window, counted):
    """What is looked at has its exact loss, and all that is not loses more than the window."""
    runs, points = sample
    q = level_of(runs, kind, where)
    records = [point for point, count in runs.items() for _ in range(count)]
    law = DepthLaw(order_of(runs, points, counted), q, 1.0, True, window=window)
    covered = set()
    for start, size, loss in zip(*law._cells, strict=True):
        exact = -enumeration.depth(records, q, int(start) + 1)
        assert loss == pytest.approx(float(exact), rel=2.0**-52, abs=ROUNDING)
        last = int(start) + int(size)
        assert enumeration.depth(records, q, last) == -exact
        covered |= {point for point in near(runs, points) if start < point <= last}
    outside = set(near(runs, points)) - covered
    assert all(-enumeration.depth(records, q, point) > window - ROUNDING for point in outside)
    assert law._log_escape == -math.inf or window <= len(records)
    assert law._log_escape > -math.inf or not outside


def test_depth_law_known_values():
    # Three records at 1 of {0, 1, 2}, target 3/2: losses 3/2, -3/2, 3/2
    p = math.exp(-3.0 * 0.4)
    flip = DepthLaw(order_of({1: 3}, 3), 0.5, 0.4, True)
    side = p / 2.0 - p * p / 6.0
    assert math.exp(log_prob(flip, 0)) == pytest.approx(side, rel=1e-14)
    assert math.exp(log_prob(flip, 1)) == pytest.approx(1.0 - 2.0 * side, rel=1e-14)
    exponential = DepthLaw(order_of({1: 3}, 3), 0.5, 0.4, False)
    assert math.exp(log_prob(exponential, 2)) == pytest.approx(p / (1.0 + 2.0 * p), rel=1e-14)


@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize("points", [2, 7, 10**6, 2**53])
def test_depth_law_of_no_records_is_uniform(flip, points):
    law = DepthLaw(order_of({}, points), 0.3, 1.0, flip)
    for point in (0, points // 2, points - 1):
        assert log_prob(law, point) == pytest.approx(-math.log(points), abs=1e-12)
    draws = law.draw(np.random.default_rng(3), 4_000).ravel()
    assert_draws_follow(
        (2 * draws >= points).tolist(),
        {False: math.log((points + 1) // 2 / points), True: math.log(points // 2 / points)},
    )


@pytest.mark.parametrize(
    ("q", "depths"),
    [
        (0.0, [0.0, 0.0, -1.0]),
        (0.25, [-0.25, 0.25, -0.75]),
        (0.5, [-0.5, 0.5, -0.5]),
        (1.0, [-1.0, 0.0, 0.0]),
    ],
)
def test_depth_law_of_one_record(q, depths):
    """At 1 of {0, 1, 2}."""
    scores = [2.0 * depth for depth in depths]
    for flip, select in (
        (True, enumeration.permute_and_flip),
        (False, enumeration.exponential),
    ):
        law = DepthLaw(order_of({1: 1}, 3), q, 2.0, flip)
        assert [log_prob(law, o) for o in range(3)] == pytest.approx(select(scores), abs=1e-13)


# Draws

CASES: dict[str, tuple[Runs, int, float]] = {
    "no ties": ({1: 1, 2: 1, 4: 1, 6: 1, 7: 1, 8: 1}, 10, 0.5),
    "gaps": ({5: 1, 20: 1, 21: 1, 60: 1}, 64, 0.4),
    "a run around the target": ({1: 2, 4: 9, 7: 2}, 9, 0.5),
    "a run beyond the window": ({0: 1, 4: 30, 8: 3}, 9, 0.8),
    "one run": ({3: 12}, 6, 0.3),
    "one run at the low end": ({0: 8}, 5, 0.5),
    "one run at the high end": ({4: 8}, 5, 0.5),
    "the end of a run": ({1: 4, 5: 4}, 8, 0.5),
    "the start of a run": ({1: 2, 2: 6}, 5, 0.25),
    "level 0": ({2: 3, 3: 1, 5: 1}, 8, 0.0),
    "level 1": ({2: 3, 3: 1, 5: 1}, 8, 1.0),
    "one record": ({2: 1}, 6, 0.7),
    "no records": ({}, 6, 0.7),
    "runs side by side": ({0: 5, 1: 5, 2: 5, 3: 5}, 4, 0.6),
}


def by_cell(law: DepthLaw, runs: Runs, points: int) -> dict[int, float]:
    """The law of the runs of points between records, and of those with records, in order."""
    edges = cell_edges(runs, points)
    return {
        i: log_prob(law, right) + math.log(right - left)
        for i, (left, right) in enumerate(pairwise(edges))
    }


def cell_edges(runs: Runs, points: int) -> list[int]:
    """The point before each cell, and the last one."""
    return sorted({-1, points - 1, *runs, *(point - 1 for point in runs)})


def cells_of(draws: np.ndarray, runs: Runs, points: int) -> list[int]:
    return (np.searchsorted(cell_edges(runs, points), draws, side="left") - 1).tolist()


@pytest.mark.parametrize("flip", [True, False])
@given(sample=many_runs(), where=WHERE, rate=st.floats(1e-3, 20.0))
def test_cells_have_the_probability_of_their_points(sample, where, rate, flip):
    runs, points = sample
    law = DepthLaw(order_of(runs, points), where, rate, flip)
    cells, probability = law.cell_probabilities()
    assert probability.sum() == pytest.approx(1.0, rel=1e-12)
    for start, size, chance in zip(cells.start, cells.points, probability, strict=True):
        exact = math.exp(log_prob(law, int(start) + 1)) * size
        assert chance == pytest.approx(exact, rel=1e-6, abs=1e-15)


@given(sample=many_runs(), where=WHERE, rate=st.floats(1e-3, 20.0))
def test_crowds_are_drawn_from_like_by_the_exponential_mechanism(sample, where, rate):
    runs, points = sample
    flip, weighed = (DepthLaw(order_of(runs, points), where, rate, each) for each in (True, False))
    cells, exact = flip.cell_probabilities()
    crowd = float(np.exp(-rate * (cells.loss - cells.loss.min())) @ cells.points)
    taken = flip.cell_probabilities(0.999 * crowd)[1]
    np.testing.assert_array_equal(taken, weighed.cell_probabilities()[1])
    assert (np.abs(taken - exact) <= 2.0 / crowd * exact + 1e-15).all()


@pytest.mark.parametrize("window", [None, 0, 1, 3])
@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_depth_draws_follow_the_law(name, flip, window):
    runs, points, q = CASES[name]
    law = DepthLaw(order_of(runs, points), q, 0.4, flip, window=window)
    draws = law.draw(np.random.default_rng(21), 3_000)
    assert draws.shape == (3_000, 1)
    if points <= 10:
        assert_draws_follow(draws.ravel().tolist(), {o: log_prob(law, o) for o in range(points)})
    else:
        drawn = cells_of(draws.ravel(), runs, points)
        assert_draws_follow(drawn, by_cell(law, runs, points))
    if window == 0 and len(runs) > 1:
        assert law._log_escape > math.log(0.05)  # the rare branch is not rare here


@pytest.mark.slow
@pytest.mark.parametrize("window", [0, 2])
@pytest.mark.parametrize("flip", [True, False])
def test_depth_draws_from_outside_follow_the_law(flip, window):
    """Wide gaps, drawn from though they are outside of the window."""
    runs, points, rate = {1000: 2, 1001: 1, 3000: 3, 5000: 2}, 6000, 1.5
    law = DepthLaw(order_of(runs, points), 0.4, rate, flip, window=window)
    assert law._log_escape > math.log(0.1)
    draws = law.draw(np.random.default_rng(22), 6_000).ravel()
    assert_draws_follow(cells_of(draws, runs, points), by_cell(law, runs, points))
    inside = draws[(draws > 3000) & (draws < 5000)]
    halves = {half: math.log(0.5) for half in (False, True)}
    assert_draws_follow((inside >= 4000).tolist(), halves)


@pytest.mark.parametrize("flip", [True, False])
def test_depth_draws_between_one_deep_point_and_all_others(flip):
    """Of 2^53 points one holds the records: as likely as all others together."""
    n = 100
    runs, points, rate = {2**52: n}, 2**53, 53.0 * math.log(2.0) / n
    law = DepthLaw(order_of(runs, points), 0.5, rate, flip)
    expected = by_cell(law, runs, points)
    assert all(0.1 < math.exp(share) < 0.9 for share in expected.values())
    draws = law.draw(np.random.default_rng(23), 6_000).ravel()
    assert_draws_follow(cells_of(draws, runs, points), expected)


@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize("rate", [500.0, 2_000.0, 1e300])
def test_depth_draws_at_steep_rates_are_of_the_deepest_points(rate, flip):
    law = DepthLaw(order_of({1: 4, 5: 4}, 80), 0.5, rate, flip, window=8)
    draws = law.draw(np.random.default_rng(24), 200)
    assert set(draws.ravel().tolist()) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("flip", [True, False])
def test_depth_draws_are_made_by_the_seed(flip):
    law = DepthLaw(order_of({1: 4, 5: 4}, 80), 0.5, 0.1, flip)
    first, again, other = (law.draw(np.random.default_rng(seed), 50) for seed in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()
    assert law.draw(np.random.default_rng(1), 0).shape == (0, 1)


# Windows


@given(many_runs(), RATES)
def test_windows_are_as_wide_as_their_certificate_asks(sample, rate):
    runs, points = sample
    order = order_of(runs, points)
    window = window_of(order, rate)
    bound = math.log(points) - rate * window
    assert bound <= -CERTIFICATE + 1e-9 or window == order.n + 1
    law = DepthLaw(order, 0.5, rate, True)
    assert law._log_escape <= -CERTIFICATE + 1e-9


def test_what_escapes_is_decided_by_depth_too():
    """Permute-and-flip leaves a window less often the deeper the target lies inside of it."""
    shares = [
        DepthLaw(order_of({4: n, 1: 5, 7: 5}, 9), 0.5, 0.4, True, window=n // 2)._log_escape
        for n in (4, 8, 16)
    ]
    assert shares[0] > shares[1] > shares[2]


@given(many_runs(), KINDS, WHERE)
def test_targets_are_rounded_once(sample, kind, where):
    runs, points = sample
    q, n = level_of(runs, kind, where), sum(runs.values())
    assume(n > 0)
    whole, part = DepthLaw(order_of(runs, points), q, 1.0, True)._target
    target = Fraction(q) * n
    assert 0.0 <= part < 1.0
    assert abs(Fraction(whole) + Fraction(part) - target) <= ROUNDING


@pytest.mark.parametrize(
    "knots", [[0, 30], [0, 3, 30], [0, 5, 7, 9, 12, 30], [0, 1, 9, 10, 15, 30]]
)
def test_parts_of_cells_have_points_of_one_mass(knots):
    """Whether knots are at ends of cells, inside, or at points that are in none."""
    cells = Cells(np.array([2, 6, 11]), np.array([4.0, 3.0, 9.0]), np.array([3.0, 0.5, 7.0]))
    masses = Masses(np.array(knots), np.arange(1, len(knots)))
    found, seen = cells.weighed(masses, 0.5), {}
    assert (found.points > 0.0).all()
    for start, points, loss in zip(*map(np.ndarray.tolist, found), strict=True):
        seen |= dict.fromkeys(range(start + 1, start + 1 + int(points)), loss)
    assert list(seen) == [*range(3, 10), *range(12, 21)]
    for point, loss in seen.items():
        plain = cells.loss[np.searchsorted(cells.start, point) - 1]
        mass = int(masses.of(np.array([point]))[0])
        assert loss == pytest.approx(plain - math.log(mass) / 0.5)
