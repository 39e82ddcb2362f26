"""IndExp, both implementations: known values, enumeration, each other, and the promise."""

from __future__ import annotations

import math
import operator
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from cases import CASES, EDGES, Q_EDGES
from conftest import (
    BOTH,
    IMPLEMENTATIONS,
    SELECTIONS,
    Untouchable,
    assert_draws_follow,
    assert_same_law,
    fast_ind_law,
    lattice_of,
    lattice_samples,
    level_sets,
    neighbors_of,
    range_rho,
    reference_lattice,
    tabulate,
)
from hypothesis import given
from hypothesis import strategies as st

import dpq_fast as dpq
import enumeration
from dpq_fast import privacy, reference
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of
from dpq_fast.reference.ind_exp import IndExpLaw as ReferenceLaw
from dpq_fast.reference.sample import Intervals


def unequal(rate: float, q: list[float]) -> list[float]:
    return [rate * (1.0 + 0.5 * j) for j in range(len(q))]


# Known values

GRID = {"resolution": 1, "bounds": (0.0, 2.0)}


def assert_shares(law: Any, shares: list[float]) -> None:
    """The probabilities of the points 0, 1, ..."""
    assert [math.exp(law.log_prob(float(o))) for o in range(len(shares))] == pytest.approx(
        shares, rel=1e-13
    )


def test_ind_exp_known_values_of_one_level(implementation):
    # Records 0, 1 on {0, 1, 2}, target 1: utilities 0, 0, -1. Delta = 1: c = 1.
    p = math.exp(-1.0)
    law = implementation.ind_exp_law([0.0, 1.0], 0.5, epsilon=2.0, **GRID)
    assert_shares(law, [(1.0 - p / 3.0) / 2.0, (1.0 - p / 3.0) / 2.0, p / 3.0])
    options = {"selection": "exponential", **GRID}
    law = implementation.ind_exp_law([0.0, 1.0], 0.5, epsilon=2.0, **options)
    assert_shares(law, [1.0 / (2.0 + p), 1.0 / (2.0 + p), p / (2.0 + p)])


def test_ind_exp_known_values_of_ties(implementation):
    # Three records at 1, target 3/2: utilities -3/2, 3/2, -3/2. c = 1/2.
    p = math.exp(-1.5)
    side = p / 2.0 - p * p / 6.0  # the integral of p (1 - v) (1 - v p)
    law = implementation.ind_exp_law([1.0] * 3, 0.5, epsilon=1.0, **GRID)
    assert_shares(law, [side, 1.0 - 2.0 * side, side])
    options = {"selection": "exponential", **GRID}
    law = implementation.ind_exp_law([1.0] * 3, 0.5, epsilon=1.0, **options)
    total = 1.0 + 2.0 * p
    assert_shares(law, [p / total, 1.0 / total, p / total])


def test_ind_exp_known_values_of_two_levels(implementation):
    # One record at 0 of {0, 1}: level 0 has the utilities 0 and -1, level 1 has 0 twice; each
    # with epsilon 1.
    options = {"epsilon": 2.0, "bounds": (0.0, 1.0), "resolution": 1}
    far = math.exp(-0.5)
    for selection, miss in ((None, far / 2.0), ("exponential", far / (1.0 + far))):
        law = implementation.ind_exp_law([0.0], [0.0, 1.0], selection=selection, **options)
        assert math.exp(law.log_prob([0.0, 0.0])) == pytest.approx((1.0 - miss) / 2.0, abs=1e-14)
        assert math.exp(law.log_prob([1.0, 1.0])) == pytest.approx(miss / 2.0, abs=1e-14)
        assert math.exp(law.log_prob([0.0, 1.0])) == pytest.approx(0.5, abs=1e-14)


def test_ind_exp_known_values_of_add_remove(implementation):
    # Level 1/4: Delta = 3/4, c = 3/2 / (2 * 3/4) = 1. Records 0, 0, 1 on {0, 1, 2}, target 3/4:
    # utilities 3/4, -5/4, -9/4.
    p, r = math.exp(-2.0), math.exp(-3.0)
    one, two = p * (1.0 / 2.0 - r / 6.0), r * (1.0 / 2.0 - p / 6.0)
    options = {"epsilon": 1.5, "neighbors": "add-remove", **GRID}
    law = implementation.ind_exp_law([0.0, 0.0, 1.0], 0.25, **options)
    assert_shares(law, [1.0 - one - two, one, two])
    options["selection"] = "exponential"
    law = implementation.ind_exp_law([0.0, 0.0, 1.0], 0.25, **options)
    total = 1.0 + p + r
    assert_shares(law, [1.0 / total, p / total, r / total])


@pytest.mark.parametrize("selection", [None, *SELECTIONS])
def test_ind_exp_known_values_of_the_continuous_mechanism(implementation, selection):
    options = {"bounds": (0.0, 1.0), "resolution": 0, "selection": selection}
    law = implementation.ind_exp_law([0.25], 1.0, epsilon=2.0, **options)
    log_z = math.log(0.75 + 0.25 * math.exp(-1.0))
    assert law.log_prob(0.6) == pytest.approx(-log_z, abs=1e-14)
    assert law.log_prob(0.1) == pytest.approx(-1.0 - log_z, abs=1e-14)


OPTIONS = {"bounds": (0.0, 4.0), "resolution": 1}


def test_ind_exp_divides_its_rate_among_contributions(implementation):
    x, q = [0.0, 1.0, 3.0], [0.2, 0.5]
    law = implementation.ind_exp_law(x, q, epsilon=3.0, max_contributions=3, **OPTIONS)
    single = implementation.ind_exp_law(x, q, epsilon=1.0, **OPTIONS)
    assert_same_law(tabulate(law, 5, 2), tabulate(single, 5, 2), 1e-13)


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_ind_exp_takes_delta(implementation, neighbors):
    """Each level gets the range that the optimal composition allows, more than epsilon / m."""
    x, q = [0, 1, 1, 3], [0.2, 0.5, 0.7]
    each = privacy.bounded_range_epsilon_each(3, 1.0, 1e-3)
    assert each > 1.0 / 3.0
    law = implementation.ind_exp_law(x, q, epsilon=1.0, delta=1e-3, neighbors=neighbors, **OPTIONS)
    rates = each / (2.0 * privacy.ind_exp.sensitivities(np.array(q), relation_of(neighbors)))
    expected = enumeration.ind_exp(x, 5, q, rates, "exponential")
    assert_same_law(tabulate(law, 5, 3), expected, 1e-12)


def test_ind_exp_takes_rho(implementation):
    x, q = [0, 1, 1, 3], [0.2, 0.5]
    law = implementation.ind_exp_law(x, q, rho=2.0 * range_rho(1.0), **OPTIONS)
    # two levels of half of it each
    expected = enumeration.ind_exp(x, 5, q, [0.5, 0.5], "exponential")
    assert_same_law(tabulate(law, 5, 2), expected, 1e-12)
    out = implementation.ind_exp(x, q, rho=0.25, rng=1, **OPTIONS)
    assert out[0] <= out[1]


@pytest.mark.parametrize(
    ("budget", "default"),
    [
        ({"epsilon": 2.0}, "permute-and-flip"),
        ({"epsilon": 2.0, "delta": 0.0}, "permute-and-flip"),
        ({"epsilon": 2.0, "delta": 1e-6}, "exponential"),
        ({"rho": 0.5}, "exponential"),
    ],
    ids=str,
)
def test_ind_exp_selects_by_the_budget(implementation, budget, default):
    x, q = [0, 1, 1, 3], [0.2, 0.5]
    laws = {
        selection: tabulate(
            implementation.ind_exp_law(x, q, selection=selection, **budget, **OPTIONS), 5, 2
        )
        for selection in {None, default}
    }
    assert laws[None] == laws[default]
    if default == "permute-and-flip":
        options = OPTIONS | {"selection": "exponential"}
        other = tabulate(implementation.ind_exp_law(x, q, **budget, **options), 5, 2)
        assert enumeration.max_log_ratio(laws[None], other) > 0.1


@pytest.mark.parametrize("q", [0.5, [0.1, 0.5, 0.9]], ids=str)
def test_ind_exp_without_a_lattice_is_the_exponential_mechanism(implementation, q):
    """No single number has any weight: all selections have one law."""
    x = [0.0, 1.0, 1.0, 2.5, 3.0]
    options = {"epsilon": 3.0, "bounds": (0.0, 4.0), "resolution": 0}
    laws = [
        implementation.ind_exp_law(x, q, selection=selection, **options)
        for selection in (None, *SELECTIONS)
    ]
    for o in np.sort(np.random.default_rng(3).uniform(0.0, 4.0, size=(20, *np.shape(q)))):
        assert len({law.log_prob(o) for law in laws}) == 1
    answers = [
        np.array(implementation.ind_exp(x, q, selection=selection, rng=5, **options)).tolist()
        for selection in (None, *SELECTIONS)
    ]
    assert answers[0] == answers[1] == answers[2]


# Arguments

FUNCTIONS = ("ind_exp", "ind_exp_law")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("budget", [{"rho": 0.5}, {"epsilon": 1.0, "delta": 1e-6}], ids=str)
def test_ind_exp_rejects_permute_and_flip_with_delta_or_rho(implementation, name, budget):
    message = "^selection must be 'exponential' with delta or rho, got 'permute-and-flip'$"
    with pytest.raises(ValueError, match=message):
        getattr(implementation, name)(
            Untouchable(), 0.5, selection="permute-and-flip", **budget, **OPTIONS
        )


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("selection", "error"),
    [("gumbel", ValueError), ("", ValueError), (True, TypeError), (["exponential"], TypeError)],
)
def test_ind_exp_rejects_selections(implementation, name, selection, error):
    message = "^selection must be one of 'permute-and-flip', 'exponential', got "
    with pytest.raises(error, match=message):
        getattr(implementation, name)(
            Untouchable(), 0.5, epsilon=1.0, selection=selection, **OPTIONS
        )


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("more", [{}, {"resolution": 0}], ids=str)
def test_ind_exp_rejects_dither(implementation, name, more):
    function = getattr(implementation, name)
    for dither in (True, np.True_):
        with pytest.raises(ValueError, match=r"^dither must be left out for ind_exp, got True$"):
            function(Untouchable(), 0.5, epsilon=1.0, dither=dither, **OPTIONS | more)
    with pytest.raises(TypeError, match=r"^dither must be True or False, got 1$"):
        function(Untouchable(), 0.5, epsilon=1.0, dither=1, **OPTIONS | more)
    x = [0.0, 1.0, 1.0, 3.0]
    plain, off = (
        implementation.ind_exp_law(x, 0.5, epsilon=1.0, dither=dither, **OPTIONS | more)
        for dither in (None, False)
    )
    assert [plain.log_prob(o) for o in range(5)] == [off.log_prob(o) for o in range(5)]


def test_ind_exp_law_takes_no_dither_rng(implementation):
    with pytest.raises(TypeError, match="dither_rng"):
        implementation.ind_exp_law([1.0], 0.5, epsilon=1.0, dither_rng=1, **OPTIONS)


@pytest.mark.parametrize("dither", [None, True, False])
@pytest.mark.parametrize("resolution", [None, 1])
def test_ind_exp_leaves_the_dither_of_a_sample_unused(dither, resolution):
    x, q = np.array([0.0, 1.0, 1.0, 1.0, 3.0]), [0.25, 0.5]
    form = {"bounds": (0.0, 4.0), "resolution": resolution}
    sample = dpq.Sample.of(x, dither=dither, **form)
    law = dpq.ind_exp_law(sample, q, epsilon=2.0)
    plain = dpq.ind_exp_law(x, q, epsilon=2.0, dither=False, **form)
    for o in combinations_with_replacement((0.0, 1.0, 2.0, 3.0, 4.0), 2):
        assert law.log_prob(o) == plain.log_prob(o)
    seeds = range(20)
    of_sample = [dpq.ind_exp(sample, q, epsilon=2.0, rng=seed).tolist() for seed in seeds]
    of_column = [dpq.ind_exp(x, q, epsilon=2.0, rng=seed, **form).tolist() for seed in seeds]
    assert of_sample == of_column


def test_ind_exp_rejects_two_budgets_or_none():
    for function in (dpq.ind_exp, dpq.ind_exp_law):
        for budget in ({"epsilon": None}, {"epsilon": 1.0, "rho": 0.1}):
            with pytest.raises(ValueError, match="exactly one of epsilon and rho must be given"):
                function([1.0], 0.5, bounds=(0, 4), **budget)
        with pytest.raises(ValueError, match="delta must be 0 with rho"):
            function([1.0], 0.5, bounds=(0, 4), rho=0.1, delta=1e-6)
        for rho in (0.0, -1.0, math.nan, math.inf):
            with pytest.raises(ValueError, match="rho must be positive and finite"):
                function([1.0], 0.5, bounds=(0, 4), rho=rho)


# Fast equals reference


@given(lattice_samples(), level_sets(), st.floats(1e-3, 30.0), st.sampled_from(SELECTIONS))
def test_ind_exp_fast_equals_reference_on_lattices(sample, q, rate, selection):
    records, points = sample
    lattice = lattice_of(points)
    rates = unequal(rate, q)
    law = fast_ind_law(records, lattice, q, rates, selection)
    data = Intervals.from_points(records, reference_lattice(lattice))
    expected = ReferenceLaw(data, Levels(q), rates, selection)
    assert_same_law(tabulate(law, points, len(q)), tabulate(expected, points, len(q)), 1e-10)


@given(
    st.lists(st.one_of(st.floats(-1.0, 5.0), st.sampled_from([0.0, 1.0, 4.0])), max_size=10),
    level_sets(),
    st.floats(1e-3, 100.0),
    st.sampled_from([0.0, 1e-6]),
    st.sampled_from(["swap", "add-remove"]),
    st.lists(st.floats(0.0, 4.0, exclude_min=True), min_size=3, max_size=3).map(sorted),
)
def test_ind_exp_fast_equals_reference_on_continuous_data(x, q, epsilon, delta, neighbors, o):
    options = {
        "epsilon": epsilon,
        "delta": delta,
        "bounds": (0.0, 4.0),
        "neighbors": neighbors,
        "resolution": 0,
    }
    law = dpq.ind_exp_law(x, q, **options)
    expected = reference.ind_exp_law(x, q, **options)
    for outputs in (o[: len(q)], [o[0]] * len(q)):
        assert law.log_prob(outputs) == pytest.approx(expected.log_prob(outputs), abs=1e-10)


# Law equals enumeration


@pytest.mark.parametrize("records, points, q", CASES)
@pytest.mark.parametrize("selection", SELECTIONS)
def test_ind_exp_law_equals_enumeration(records, points, q, selection):
    for neighbors, epsilon in product(BOTH, (1e-3, 1.0, 20.0)):
        rates = privacy.ind_exp.calibrate(q, epsilon=epsilon, neighbors=neighbors).rates
        expected = enumeration.ind_exp(records, points, q, rates, selection)
        for name, implementation in IMPLEMENTATIONS.items():
            law = implementation.ind_exp_law(
                np.array(records, dtype=int),
                q,
                epsilon=epsilon,
                bounds=(0, points - 1),
                neighbors=neighbors,
                resolution=1,
                selection=selection,
            )
            case = (name, neighbors, epsilon)
            assert_same_law(tabulate(law, points, len(q)), expected, 1e-12, case)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0])
@pytest.mark.parametrize("records, points, q", CASES)
def test_ind_exp_density_equals_enumeration(implementation, records, points, q, epsilon):
    bounds = (0.0, points - 1.0)
    law = implementation.ind_exp_law(records, q, epsilon=epsilon, bounds=bounds, resolution=0)
    rates = [epsilon / len(q) / 2.0] * len(q)
    expected = enumeration.ind_exp_density(records, bounds, q, rates)
    rng = np.random.default_rng(0)
    for o in np.sort(rng.uniform(*bounds, size=(10, len(q)))).tolist():
        assert law.log_prob(o) == pytest.approx(expected(o), abs=1e-12)


# Draws


@pytest.mark.slow
@pytest.mark.parametrize("selection", SELECTIONS)
def test_ind_exp_sample_follows_law(implementation, selection):
    options = {"epsilon": 2.0, "selection": selection, **OPTIONS}
    law = implementation.ind_exp_law([0, 2, 2, 3], [0.3, 0.5, 0.7], **options)
    draws = law.sample(np.random.default_rng(12), 20_000 if implementation is dpq else 4_000)
    assert (np.diff(draws) >= 0.0).all()
    assert_draws_follow(map(tuple, draws.astype(int).tolist()), tabulate(law, 5, 3))


@pytest.mark.slow
@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("x", [[1] * 7, [0, 1, 1, 1, 2, 4], []], ids=str)
def test_ind_exp_releases_follow_the_law(implementation, x, selection):
    """Each of them with the records read anew, and runs of equal ones around the target."""
    options = {"epsilon": 1.5, "selection": selection, **OPTIONS}
    expected = tabulate(implementation.ind_exp_law(x, [0.4], **options), 5, 1)
    rng, x = np.random.default_rng(14), np.array(x, dtype=float)
    draws = [implementation.ind_exp(x, 0.4, rng=rng, **options) for _ in range(1_500)]
    assert_draws_follow([(int(o),) for o in draws], expected)


def test_ind_exp_sample_follows_density():
    law = dpq.ind_exp_law(
        [0.0, 2.0, 2.0, 3.0], [0.3, 0.7], epsilon=2.0, bounds=(0.0, 4.0), resolution=0
    )
    draws = law.sample(np.random.default_rng(13), 20_000)
    log_p = {
        (a, b): law.log_prob([a + 0.4, b + 0.6]) - (math.log(2.0) if a == b else 0.0)
        for a, b in combinations_with_replacement(range(4), 2)
    }
    assert_draws_follow(map(tuple, np.floor(draws).astype(int).tolist()), log_p)


@pytest.mark.parametrize("size", [0, 1, 3])
def test_ind_exp_sample_shapes(implementation, size):
    options = {"epsilon": 1.0, "bounds": (0.0, 4.0)}
    law = implementation.ind_exp_law([1.0, 2.0], 0.5, **options)
    assert isinstance(law.sample(1), float)
    assert law.sample(1, size).shape == (size,)
    law = implementation.ind_exp_law([1.0, 2.0], [[0.5, 0.2, 0.5]], **options)
    assert law.sample(1).shape == (1, 3)
    assert law.sample(1, size).shape == (size, 1, 3)


# Privacy


@pytest.mark.slow
@pytest.mark.parametrize(
    "q, most, seen",
    [([0.5], 3, 0.5), ([0.1, 0.6], 3, 0.5), ([0.9], 4, 0.5), ([0.0, 1.0], 4, 0.2)],
    ids=str,
)
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_ind_exp_privacy_ratio(implementation, selection, neighbors, q, most, seen):
    points, epsilon = 4, 2.0
    options = {"epsilon": epsilon, "neighbors": neighbors, "selection": selection}

    @cache
    def law_of(records):
        x = np.array(records, dtype=int)
        law = implementation.ind_exp_law(x, q, bounds=(0, points - 1), resolution=1, **options)
        return tabulate(law, points, len(q))

    worst = max(
        enumeration.max_log_ratio(law_of(x), law_of(y))
        for n in range(most + 1)
        for x in combinations_with_replacement(range(points), n)
        for y in {tuple(sorted(y)) for y in neighbors_of(list(x), points, neighbors)}
    )
    assert seen * epsilon < worst <= epsilon * (1.0 + 1e-9)


@given(lattice_samples(points=8), st.floats(0.0, 1.0), st.floats(1e-3, 30.0))
def test_ind_exp_permute_and_flip_has_never_less_utility(sample, q, rate):
    records, points = sample
    depths = [float(enumeration.depth(records, q, o)) for o in range(points)]
    scores = [rate * depth for depth in depths]
    lattice = lattice_of(points)
    means = []
    for selection, exact in (
        ("permute-and-flip", enumeration.permute_and_flip(scores)),
        ("exponential", enumeration.exponential(scores)),
    ):
        law = fast_ind_law(records, lattice, [q], [rate], selection)
        shares = [math.exp(law.log_prob([float(o)])) for o in range(points)]
        assert shares == pytest.approx(list(map(math.exp, exact)), rel=1e-9, abs=1e-300)
        means.append(math.fsum(map(operator.mul, shares, depths)))
    assert means[0] >= means[1] - 1e-9 * max(map(abs, depths))


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_ind_exp_privacy_ratio_of_two_contributions(neighbors):
    q, points, x = [0.2, 0.5], 4, [0, 1, 1, 3]

    def law_of(records):
        law = dpq.ind_exp_law(
            np.array(records),
            q,
            epsilon=1.0,
            bounds=(0, points - 1),
            neighbors=neighbors,
            resolution=1,
            max_contributions=2,
        )
        return tabulate(law, points, len(q))

    base = law_of(x)
    further = {
        tuple(sorted(z))
        for y in neighbors_of(x, points, neighbors)
        for z in neighbors_of(y, points, neighbors)
    }
    worst = max(enumeration.max_log_ratio(base, law_of(z)) for z in further)
    assert 0.05 < worst <= 1.0 + 1e-9


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_ind_exp_with_delta_keeps_its_promise(neighbors):
    """The hockey-stick divergence of neighbors at epsilon is at most delta."""
    q, points, delta = [0.2, 0.5, 0.8], 4, 0.05

    def law_of(records):
        law = dpq.ind_exp_law(
            np.array(records, dtype=int),
            q,
            epsilon=0.5,
            delta=delta,
            bounds=(0, points - 1),
            neighbors=neighbors,
            resolution=1,
        )
        return tabulate(law, points, len(q))

    for x in ([0, 0, 0], [0, 1, 3], [1, 1, 2]):
        base = law_of(x)
        for y in neighbors_of(x, points, neighbors):
            other = law_of(y)
            for first, second in ((base, other), (other, base)):
                excess = math.fsum(
                    max(math.exp(first[o]) - math.exp(0.5 + second[o]), 0.0) for o in first
                )
                assert excess <= delta + 1e-12


# Bad input and the accountant


@pytest.mark.parametrize(
    "delta, error",
    [(-0.1, ValueError), (1.0, ValueError), (math.nan, ValueError), ("0", TypeError)],
)
def test_ind_exp_rejects_delta(implementation, delta, error):
    with pytest.raises(error, match="delta must"):
        implementation.ind_exp([1.0], 0.5, epsilon=1.0, delta=delta, bounds=(0, 4))


def test_ind_exp_has_no_kernel(implementation):
    with pytest.raises(TypeError, match="kernel"):
        implementation.ind_exp([1.0], 0.5, epsilon=1.0, bounds=(0, 4), kernel="scan")


def test_ind_exp_charges_the_accountant(implementation):
    accountant = privacy.Accountant(1.0, 1e-5)
    options = {"epsilon": 0.6, "delta": 1e-6, "bounds": (0.0, 4.0), "accountant": accountant}
    implementation.ind_exp([1.0, 2.0], [0.2, 0.5], rng=1, **options)
    expected = privacy.guarantee("ind_exp", q=[0.2, 0.5], epsilon=0.6, delta=1e-6)
    assert accountant.history == (expected,)
    with pytest.raises(privacy.BudgetExceeded, match="must fit the budget"):
        implementation.ind_exp(Untouchable(), [0.2, 0.5], **options)
    assert accountant.history == (expected,)
    with pytest.raises(AssertionError, match="touched"):
        implementation.ind_exp(Untouchable(), 0.5, epsilon=0.1, bounds=(0.0, 4.0))


def test_ind_exp_charges_distinct_levels_only(implementation):
    accountant = privacy.Accountant(1.0)
    options = {"epsilon": 1.0, "bounds": (0.0, 4.0), "accountant": accountant, "rng": 1}
    out = implementation.ind_exp([1.0, 2.0], [0.5, 0.5, 0.5], **options)
    assert np.unique(out).size == 1
    law = implementation.ind_exp_law([1, 2], [0.5, 0.5], epsilon=1.0, **OPTIONS)
    single = implementation.ind_exp_law([1, 2], 0.5, epsilon=1.0, **OPTIONS)
    for o in range(5):
        assert law.log_prob([o, o]) == pytest.approx(single.log_prob(o), abs=1e-14)


# Edges


@pytest.mark.parametrize("x, bounds", EDGES.values(), ids=EDGES.keys())
def test_ind_exp_answers_at_the_edges(x, bounds):
    several = [{}, {"resolution": 0}, {"selection": "exponential"}]
    for case in product(Q_EDGES.values(), several, (1e-6, 1.0, 1e4), BOTH):
        q, options, epsilon, neighbors = case
        out = dpq.ind_exp(
            x, q, epsilon=epsilon, bounds=bounds, neighbors=neighbors, rng=9, **options
        )
        assert np.isfinite(out).all(), case
        assert (np.diff(out) >= 0.0).all(), case
        assert bounds[0] <= out[0] and out[-1] <= bounds[1], case


@pytest.mark.parametrize("x, bounds", EDGES.values(), ids=EDGES.keys())
@pytest.mark.parametrize("selection", SELECTIONS)
def test_ind_exp_fast_equals_reference_at_the_edges(x, bounds, selection):
    several = ["one", "1e-12 apart", "ends", "one ulp apart"]
    for case in product(several, (None, 0), (1e-6, 1.0, 1e4)):
        q, resolution, epsilon = case
        levels = Q_EDGES[q]
        options = {"epsilon": epsilon, "bounds": bounds, "resolution": resolution}
        options["selection"] = selection
        law = dpq.ind_exp_law(x, levels, **options)
        expected = reference.ind_exp_law(x, levels, **options)
        for o in [*law.sample(3, 3), np.full(len(levels), bounds[1])]:
            if resolution == 0:  # the low bound is one output of a density
                o = np.maximum(o, np.nextafter(bounds[0], np.inf))
            assert law.log_prob(o) == pytest.approx(expected.log_prob(o), abs=1e-10), case


def test_ind_exp_law_of_no_records_is_that_of_sorted_uniforms(implementation):
    law = implementation.ind_exp_law([], [0.2, 0.5], epsilon=1.0, **OPTIONS)
    for a, b in combinations_with_replacement(range(5), 2):
        expected = math.log((1.0 if a == b else 2.0) / 25.0)
        assert law.log_prob([a, b]) == pytest.approx(expected, abs=1e-13)


def test_ind_exp_law_has_log_prob_up_to_16_levels():
    """No records: each output is uniform on two points, and 16! / (10! 6!) ways make the tuple."""
    q = np.linspace(0.0, 1.0, 16)
    law = dpq.ind_exp_law([], q, epsilon=1.0, bounds=(0, 1), resolution=1)
    expected = math.log(math.comb(16, 6)) - 16.0 * math.log(2.0)
    assert law.log_prob([0.0] * 10 + [1.0] * 6) == pytest.approx(expected, abs=1e-12)


def test_ind_exp_law_refuses_log_prob_of_many_levels():
    q = np.linspace(0.0, 1.0, 17)
    law = dpq.ind_exp_law([1.0, 2.0], q, epsilon=1.0, bounds=(0.0, 4.0))
    with pytest.raises(ValueError, match="log_prob takes at most 16 distinct levels, got 17"):
        law.log_prob(np.zeros(17))
    assert law.sample(1).shape == (17,)


# Manners


@pytest.mark.parametrize("q", [0.5, [0.5], [[0.9, 0.1], [0.5, 0.9]], [0.0, 1.0], [0.5] * 5])
def test_ind_exp_answers_in_the_shape_of_q(implementation, q):
    out = implementation.ind_exp(np.arange(40) % 7, q, epsilon=1.0, bounds=(0, 10), rng=4)
    assert np.shape(out) == np.shape(q)
    assert isinstance(out, float if np.ndim(q) == 0 else np.ndarray)
    order = np.argsort(np.ravel(q), kind="stable")
    assert (np.diff(np.ravel(out)[order]) >= 0.0).all()


def test_ind_exp_is_reproducible_by_seed():
    x = np.random.default_rng(0).integers(0, 50, size=300)
    outs = [
        dpq.ind_exp(x, [0.1, 0.5, 0.9], epsilon=0.1, bounds=(0, 50), rng=rng)
        for rng in (7, np.random.default_rng(7), np.random.PCG64(7), 8)
    ]
    assert outs[0].tolist() == outs[1].tolist() == outs[2].tolist() != outs[3].tolist()


@pytest.mark.parametrize("options", [{}, {"resolution": 1}, {"resolution": 0}], ids=str)
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_ind_exp_leaves_input_unchanged(implementation, dtype, options):
    x = np.random.default_rng(1).integers(0, 20, size=90).astype(dtype)
    q, counts = np.array([0.9, 0.1]), np.arange(45)
    kept = x.copy(), q.copy(), counts.copy()
    for array in (x, q, counts):
        array.flags.writeable = False
    arguments = {"epsilon": 1.0, "bounds": (0.0, 20.0), "rng": 3, "counts": counts, **options}
    strided = implementation.ind_exp(x[::2], q, **arguments)
    contiguous = implementation.ind_exp(x[::2].copy(), q, **arguments)
    np.testing.assert_array_equal(strided, contiguous)
    for array, before in zip((x, q, counts), kept, strict=True):
        np.testing.assert_array_equal(array, before)


def test_ind_exp_law_is_zero_off_the_support(implementation):
    law = implementation.ind_exp_law([1.0, 2.0], [0.5, 0.2, 0.5], epsilon=1.0, **OPTIONS)
    assert math.isfinite(law.log_prob([2.0, 1.0, 2.0]))
    for o in ([1.0, 2.0, 1.0], [2.0, 1.0, 3.0], [2.0, 0.5, 2.0], [5.0, 1.0, 5.0]):
        assert law.log_prob(o) == -math.inf
    with pytest.raises(ValueError, match="o must have the shape of q"):
        law.log_prob([1.0, 2.0])
