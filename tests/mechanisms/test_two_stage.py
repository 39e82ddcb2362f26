"""Both stages of `two_stage`: their laws, what they promise together, and what a call takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import stages
from conftest import BOTH, Untouchable
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
import enumeration
from dpq_fast import privacy, reference
from dpq_fast.data import lattice as lattice_module
from dpq_fast.mechanisms import two_stage as module
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of

POINTS = 4
GRID = dict(bounds=(0, POINTS - 1), resolution=1, expected_n=4)
# Levels for each kind of second stage.
KINDS = {"ind_exp": [0.6], "joint_exp": [0.3, 0.9]}
BUDGETS = {"epsilon": dict(epsilon=3.0), "rho": dict(rho=0.8)}
# What makes a tree of the second stage.
TREE = dict(q=[k / 100 for k in range(1, 100)], expected_n=2_000)


def tuples(m: int, points: int = POINTS) -> list[tuple[int, ...]]:
    return list(combinations_with_replacement(range(points), m))


def joint_law(law: Any, m: int, points: int = POINTS) -> enumeration.Law:
    """Of the pilot's answers and of the release together, given the dithers."""
    answers = law.spent.design.levels.m
    table = {}
    for pilot in tuples(answers, points):
        log_p = law.pilot.log_prob(np.array(pilot, dtype=float))
        after = law.given(np.array(pilot, dtype=float))
        for o in tuples(m, points):
            table[(*pilot, *o)] = log_p + after.log_prob(np.array(o, dtype=float))
    return table


# Laws


@pytest.fixture
def without_dither() -> Iterator[None]:
    """No dither bits, so that laws are those of points and masses alone."""
    lattice_module.Lattice._of.cache_clear()
    with mock.patch.object(lattice_module, "DITHER_BITS", 0):
        yield
    lattice_module.Lattice._of.cache_clear()


@pytest.mark.parametrize("records", [[], [2], [0, 3], [1, 1, 2], [0, 0, 3, 3], [3, 3, 3]])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("neighbors", BOTH)
def test_laws_are_those_of_the_definitions(without_dither, records, kind, budget, neighbors):
    q, public = KINDS[kind], dict(neighbors=neighbors, **BUDGETS[budget])
    law = dpq.two_stage_law(records, q, **GRID, **public)
    assert law.spent.design.main == kind
    found = joint_law(law, len(q))
    expected = stages.joint(records, POINTS, q, expected_n=4, **public)
    assert found.keys() == expected.keys()
    assert max(abs(found[o] - expected[o]) for o in found) < 1e-9
    assert math.fsum(map(math.exp, found.values())) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(st.data())
def test_reference_and_fast_laws_are_one(kind, data):
    """Given the dithers; with priors and lattices of the pilot's answers."""
    q = KINDS[kind]
    records = data.draw(st.lists(st.floats(-2.0, 12.0), max_size=6))
    options = data.draw(
        st.sampled_from(
            [
                dict(resolution=1),
                dict(resolution=0.5),
                dict(),
                dict(resolution=1, prior="uniform"),
                dict(resolution=1, prior=stats.norm(4.0, 2.0)),
            ]
        )
    )
    options |= dict(bounds=(0, 10), neighbors=data.draw(st.sampled_from(BOTH)))
    options |= dict(expected_n=6, dither_rng=data.draw(st.integers(0, 9)), **BUDGETS["epsilon"])
    fast, slow = (of.two_stage_law(records, q, **options) for of in (dpq, reference))
    for _ in range(3):
        answers = fast.pilot.sample(1)
        assert fast.pilot.log_prob(answers) == pytest.approx(slow.pilot.log_prob(answers), abs=1e-9)
        given_fast, given_slow = fast.given(answers), slow.given(answers)
        for output in (given_fast.sample(2), given_slow.sample(3)):
            found = given_fast.log_prob(output)
            assert found > -math.inf
            assert found == pytest.approx(given_slow.log_prob(output), abs=1e-9)


# Both stages together


def data_sets(neighbors: str, most: int, points: int) -> list[tuple[int, ...]]:
    sizes = [most] if neighbors == "swap" else range(most + 1)
    return [each for n in sizes for each in tuples(n, points)]


def neighboring(neighbors: str, most: int, points: int) -> Iterator[tuple[Any, Any]]:
    of = enumeration.swap_neighbors if neighbors == "swap" else enumeration.add_remove_neighbors
    for x in data_sets(neighbors, most, points):
        for other in of(list(x), range(points)):
            if len(other) <= most:
                yield x, tuple(sorted(other))


def renyi(log_p: np.ndarray, log_r: np.ndarray, alpha: float) -> float:
    terms = alpha * log_p + (1.0 - alpha) * log_r
    return enumeration.log_sum(terms.tolist()) / (alpha - 1.0)


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("neighbors", BOTH)
def test_both_stages_keep_the_promise_together(kind, budget, neighbors, seed):
    """All small data sets, all neighbors, all answers of the pilot and all releases."""
    q, points, most = KINDS[kind], 3, 4
    public = dict(neighbors=neighbors, **BUDGETS[budget], **GRID | {"bounds": (0, points - 1)})
    laws = {}
    for x in data_sets(neighbors, most, points):
        law = dpq.two_stage_law(list(x), q, dither_rng=seed, **public)
        assert law.spent.design.main == kind
        laws[x] = np.array(list(joint_law(law, len(q), points).values()))
        assert np.exp(laws[x]).sum() == pytest.approx(1.0, abs=1e-9)
    promise = privacy.guarantee(
        "two_stage", q=q, expected_n=4, neighbors=neighbors, **BUDGETS[budget]
    )
    worst = divergence = 0.0
    for x, other in neighboring(neighbors, most, points):
        log_p, log_r = laws[x], laws[other]
        worst = max(worst, float(np.abs(log_p - log_r).max()))
        for alpha in (2.0, 10.0):
            divergence = max(divergence, renyi(log_p, log_r, alpha) / alpha)
    assert divergence <= promise.rho + 1e-9
    if budget == "epsilon":
        assert 0.4 * promise.epsilon < worst <= promise.epsilon + 1e-9
    else:
        assert divergence > 0.1 * promise.rho


# Budgets


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("n", [1, 1_000, 100_000])
@pytest.mark.parametrize("q", [[0.5], [0.1, 0.9], TREE["q"]], ids=len)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("contributions", [1, 3])
def test_parts_add_up_to_what_is_promised(neighbors, n, q, budget, contributions):
    """The second stage has what the pilot leaves, whatever it is."""
    person = dict(neighbors=neighbors, max_contributions=contributions)
    spent = privacy.two_stage.calibrate(q, expected_n=n, **BUDGETS[budget], **person)
    pilot, main = spent.pilot.guarantee, spent.main.guarantee
    assert spent.guarantee.neighbors == neighbors
    if budget == "epsilon":
        assert pilot.epsilon + main.epsilon <= 3.0
        assert pilot.epsilon + main.epsilon == pytest.approx(3.0, rel=1e-12)
        assert spent.guarantee.epsilon == 3.0 and spent.guarantee.delta == 0.0
        assert spent.guarantee.rho == pytest.approx(pilot.implied_rho + main.implied_rho)
        assert pilot.epsilon == pytest.approx(3.0 * spent.design.share)
        rest = dict(epsilon=main.epsilon)
    else:
        first, second = pilot.implied_rho, main.rho
        assert first + second <= 0.8 * (1.0 + 1e-15)
        assert first + second == pytest.approx(0.8, rel=1e-12)
        assert spent.guarantee.rho == 0.8
        rest = dict(rho=second)
    if spent.design.main == "agg_tree":
        noise = "geometric" if budget == "epsilon" else "gaussian"
        tree = privacy.agg_tree.calibrate(
            **rest, **person, noise=noise, height=spent.main.height, branching=spent.main.branching
        )
        assert spent.main.noise.scale == tree.noise.scale
    else:
        calibrate = getattr(privacy, spent.design.main).calibrate
        assert spent.main == calibrate(Levels.of(q), **rest, **person)
    own = spent.pilot.guarantee.epsilon
    assert spent.pilot == privacy.joint_exp.calibrate(spent.design.levels, epsilon=own, **person)


def test_all_kinds_of_second_stages_are_looked_at():
    kinds = {
        privacy.two_stage.design_of(Levels(q), float(n), relation_of("swap")).main
        for q in ([0.5], [0.1, 0.9], TREE["q"])
        for n in (0, 10, 1_000, 100_000)
    }
    assert kinds == {"ind_exp", "joint_exp", "agg_tree"}


@given(st.integers(1, 200), st.floats(0.0, 1e18), st.sampled_from(BOTH))
def test_a_design_is_within_its_limits(m, weight, neighbors):
    q = Levels(np.linspace(0.0, 1.0, m))
    design = privacy.two_stage.design_of(q, weight, relation_of(neighbors))
    assert privacy.two_stage.LEAST_SHARE <= design.share <= privacy.two_stage.MOST_SHARE
    assert 2 <= design.levels.m <= 5
    assert (design.main == "ind_exp") == (m == 1)


@pytest.mark.parametrize("name", ["pilot", "main"])
def test_what_is_drawn_is_of_what_is_spent(name):
    """The laws of a call have the rates of its calibration."""
    law = dpq.two_stage_law([0, 1, 2], [0.3, 0.9], epsilon=3.0, **GRID)
    spent = privacy.two_stage.calibrate([0.3, 0.9], epsilon=3.0, expected_n=4, points=POINTS)
    assert law.spent == spent
    assert getattr(law.spent, name).rate == getattr(spent, name).rate


# Trees


@pytest.mark.parametrize("rows", [500, None])
@pytest.mark.parametrize("budget", BUDGETS)
def test_a_tree_has_the_noise_of_what_the_pilot_leaves(rows, budget):
    x = np.random.default_rng(3).lognormal(3.0, 0.5, 500)
    public = dict(bounds=(0, 1e6), neighbors="swap" if rows else "add-remove", **TREE)
    law = dpq.two_stage_law(x, **public, **BUDGETS[budget])
    slow = reference.two_stage_law(x, **public, **BUDGETS[budget])
    assert law.spent.design.main == "agg_tree"
    answers = law.pilot.sample(4)
    after = law.given(answers)
    of = after.counts
    exact = slow.given(answers)
    leaves = [exact.exact[of.height, i] for i in range(of.branching**of.height)]
    assert of.lattice is not None
    assert of.lattice.step == exact.public["lattice"].step
    np.testing.assert_array_equal(of._leaves, leaves)
    drawn = []

    def noised(tree: Any, noise: Any, *arguments: Any) -> Any:
        drawn.append((tree, noise, arguments))
        return original(tree, noise, *arguments)

    original = module.noised
    with mock.patch.object(module, "noised", noised):
        output = after.sample(5)
    ((tree, noise, arguments),) = drawn
    assert tree is of and noise == law.spent.main.noise == slow.spent.main.noise
    assert arguments[-1] == rows
    assert (np.diff(output) >= 0.0).all()


# Charges


class Ledger(privacy.Accountant):
    """An accountant that takes every statement."""

    def __init__(self) -> None:
        super().__init__(1e6)
        self.promises: list[privacy.Guarantee] = []

    def charge(self, guarantee: privacy.Guarantee) -> None:
        self.promises.append(guarantee)


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("q", [0.5, [0.1, 0.9], TREE["q"]], ids=np.size)
def test_a_call_is_one_charge(implementation, neighbors, budget, q):
    n = 10_000 if np.size(q) > 2 else 300
    public = dict(q=q, neighbors=neighbors, max_contributions=2, expected_n=n, **BUDGETS[budget])
    ledger, grid = Ledger(), dict(bounds=(0, 9), resolution=1)
    implementation.two_stage([1, 2, 5], accountant=ledger, rng=1, **grid, **public)
    # of so many points the shape of a tree may go by them
    assert ledger.promises == [privacy.guarantee("two_stage", points=10, **public)]


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_call_is_refused_before_the_records_are_touched(implementation, budget):
    ledger = privacy.Accountant(0.1, delta=1e-6, neighbors="add-remove", composition="zcdp")
    public = dict(bounds=(0, 9), neighbors="add-remove", **BUDGETS[budget])
    with pytest.raises(privacy.BudgetExceeded):
        implementation.two_stage(Untouchable(), 0.5, accountant=ledger, **public)


# Bad input

GOOD = dict(q=[0.25, 0.5], epsilon=1.0, bounds=(0, 9))
BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    (dict(resolution=0), ValueError, "resolution must be positive for two_stage, got 0.0"),
    (dict(dither=True), ValueError, "dither must be left out for two_stage, got True"),
    (dict(epsilon=None), ValueError, "exactly one of epsilon and rho must be given"),
    (dict(rho=1.0), ValueError, "exactly one of epsilon and rho must be given"),
    (dict(expected_n=0), ValueError, "expected_n must be at least 1, got 0"),
    (dict(expected_n=1.5), TypeError, "expected_n must be an integer, got 1.5"),
    (dict(bounds=None), TypeError, "bounds must be two real numbers (low, high), got None"),
    (dict(q=[]), ValueError, "q must hold at least one level"),
    (dict(prior="log"), ValueError, "bounds must be positive with prior 'log'"),
    (
        dict(prior=[(1, "scale-free"), (1, "uniform")]),
        ValueError,
        "prior 'scale-free' must stand alone",
    ),
]


@pytest.mark.parametrize("given_, error, message", BAD, ids=str)
@pytest.mark.parametrize("function", ["two_stage", "two_stage_law"])
def test_bad_input_is_refused(implementation, given_, error, message, function):
    with pytest.raises(error) as raised:
        getattr(implementation, function)([1.0, 2.0], **GOOD | given_)
    assert str(raised.value).startswith(message)


def test_a_promise_needs_levels():
    with pytest.raises(ValueError, match=r"^q must be given for method 'two_stage', got None"):
        privacy.guarantee("two_stage", epsilon=1.0)


@pytest.mark.parametrize(
    "points, error, message",
    [
        (1, ValueError, "points must be at least 2, got 1"),
        ("5", TypeError, "points must be an integer, got '5'"),
        (1.5, TypeError, "points must be an integer, got 1.5"),
    ],
)
@pytest.mark.parametrize("q", [0.5, [0.25, 0.75], TREE["q"]], ids=np.size)
def test_a_promise_is_of_a_number_of_points(q, points, error, message):
    """Whatever the second stage is."""
    with pytest.raises(error, match=f"^{message}"):
        privacy.guarantee("two_stage", q=q, epsilon=1.0, points=points)


def test_a_sample_must_have_a_lattice():
    sample = dpq.Sample.of([1.0, 2.0], (0, 9), resolution=0)
    with pytest.raises(ValueError, match=r"^a Sample must have a lattice for two_stage"):
        dpq.two_stage(sample, 0.5, epsilon=1.0)


def test_a_dither_may_be_left_out_in_words():
    assert 0.0 <= dpq.two_stage([1.0, 2.0], 0.5, epsilon=1.0, bounds=(0, 9), dither=False) <= 9.0


# What a call takes

X = np.array([3.25, 1.5, 8.0, 1.5, 6.75, 4.0, 4.0, 4.0, 2.5, 9.0])
CALLS = {"one": dict(q=0.5), "few": dict(q=[0.25, 0.5, 0.9]), "tree": TREE}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("grid", [dict(), dict(resolution=0.25)], ids=["found", "given"])
def test_one_seed_has_one_answer_whatever_holds_the_records(name, grid):
    call = dict(epsilon=20.0, bounds=(0, 1_000), rng=7) | CALLS[name] | grid
    expected = dpq.two_stage(X, **call)
    values, counts = np.unique(X, return_counts=True)
    for column in (X.tolist(), pd.Series(X), np.sort(X), X.astype(np.float32)):
        np.testing.assert_array_equal(dpq.two_stage(column, **call), expected)
    for more in (dict(workers=2), dict(assume_sorted=True)):
        given_ = np.sort(X) if "assume_sorted" in more else X
        np.testing.assert_array_equal(dpq.two_stage(given_, **call | more), expected)
    call["expected_n"] = call.get("expected_n", X.size)
    found = dpq.two_stage(values, counts=counts, **call)
    np.testing.assert_array_equal(found, expected)


def test_a_sample_is_answered_on_its_lattice_with_its_prior():
    sample = dpq.Sample.of(X, (0, 1_000), resolution=0.25)
    call = dict(q=[0.25, 0.5], epsilon=20.0, expected_n=10)
    place = module.Place.of(sample.lattice, sample, None, None)
    assert place.fixed and place.given is None
    law = dpq.two_stage_law(sample, dither_rng=3, **call)
    other = dpq.two_stage_law(X, bounds=(0, 1_000), resolution=0.25, dither_rng=3, **call)
    answers = law.pilot.sample(3)
    assert law.pilot.log_prob(answers) == pytest.approx(other.pilot.log_prob(answers), abs=1e-9)
    output = law.given(answers).sample(2)
    expected = other.given(answers).log_prob(output)
    assert law.given(answers).log_prob(output) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("neighbors", BOTH)
def test_missing_records_are_left_out(neighbors):
    call = dict(bounds=(0, 100), epsilon=5.0, expected_n=10, neighbors=neighbors, dither_rng=1)
    one = dpq.two_stage_law(X, 0.5, **call)
    other = dpq.two_stage_law([*X, np.nan, np.nan], 0.5, **call)
    answers = one.pilot.sample(2)
    assert one.pilot.log_prob(answers) == other.pilot.log_prob(answers)
    o = one.given(answers).sample(1)
    assert one.given(answers).log_prob(o) == other.given(answers).log_prob(o)


@pytest.mark.parametrize(
    "bounds",
    [
        (-8.5e307, 8.5e307),
        (0.0, 1.7e308),
        (-1.7e308, 0.0),
        (0.0, 5e-323),
        (0.0, 1e-300),
        (1e300, 1.5e300),
        (1.0, 1.0 + 2.0**-50),
        (-1.0, 1e300),
    ],
)
@pytest.mark.parametrize("name", CALLS)
def test_extreme_bounds_are_answered(bounds, name):
    low, high = bounds
    middle = low / 2.0 + high / 2.0
    for x in ([], [low] * 5 + [high] * 5, [middle] * 9, [low, middle, high]):
        for neighbors in BOTH:
            for seed in range(2):
                call = dict(epsilon=1.0, bounds=bounds, rng=seed, neighbors=neighbors)
                found = dpq.two_stage(x, **call | CALLS[name])
                assert np.all((low <= np.asarray(found)) & (np.asarray(found) <= high))


def draws(release: Callable[..., Any], **options: Any) -> np.ndarray:
    rng = np.random.default_rng(11)
    return np.array([release(rng=rng, **options) for _ in range(300)])


@pytest.mark.parametrize("name", ["one", "few"])
def test_intervals_are_around_values(implementation, name):
    call = dict(epsilon=20.0, bounds=(0, 50), resolution=1, confidence=0.9, rng=4) | CALLS[name]
    found = implementation.two_stage(X, **call)
    assert np.all(np.asarray(found.low) <= found.value)
    assert np.all(np.asarray(found.high) >= found.value)


def test_a_table_is_answered_by_the_same_law():
    """By the shares of each answer, in draws of both."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT unnest([1.0, 1.0, 2.0, 3.0, 3.0, 3.0]) AS x")
    column = dpq.Table.of("SELECT * FROM t", connection)["x"]
    options = dict(q=0.5, epsilon=3.0, bounds=(0, 3), resolution=1, expected_n=6)
    memory = draws(dpq.two_stage, x=[1.0, 1.0, 2.0, 3.0, 3.0, 3.0], **options)
    stored = draws(dpq.two_stage, x=column, **options)
    rows = [np.bincount(each.astype(int), minlength=4) for each in (memory, stored)]
    kept = [row for row in np.transpose(rows) if row.sum() > 10]
    assert stats.chi2_contingency(np.transpose(kept)).pvalue > 1e-6
