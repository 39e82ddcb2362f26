"""Recursive quantiles, both implementations: known values, enumeration, each other, the promise."""

from __future__ import annotations

import csv
import math
import sys
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from cases import CASES, DITHER_CASES, EDGES, Q_EDGES
from conftest import (
    BOTH,
    IMPLEMENTATIONS,
    Untouchable,
    assert_draws_follow,
    assert_same_law,
    empty_sample,
    lattice_of,
    lattice_samples,
    level_sets,
    neighbors_of,
    order_of,
    range_of,
    range_rho,
    reference_lattice,
    tabulate,
)
from hypothesis import given
from hypothesis import strategies as st

import dpq_fast as dpq
import enumeration
from dpq_fast import privacy, reference
from dpq_fast.mechanisms.approx_quantiles import ApproxQuantilesLaw
from dpq_fast.orders import choice as choice_module
from dpq_fast.orders.selected import CountedRecords, SelectedOrder
from dpq_fast.privacy.levels import Levels, splits
from dpq_fast.reference.approx_quantiles import ApproxQuantilesLaw as ReferenceLaw

OPTIONS = {"bounds": (0.0, 4.0), "resolution": 1, "dither": False}
EVEN_7 = [j / 8 for j in range(1, 8)]


def unequal(q):
    """Rates that differ from step to step, so that no two can be mixed up."""
    return np.array([0.3 + 0.2 * k for k in range(len(q))])


def by_level(q, scales):
    """Scales of steps, in the order of levels."""
    rates = np.empty(len(q))
    rates[[step.middle for step in splits(np.array(q))]] = scales
    return rates.tolist()


def fast_law(fine, lattice, q, rates, window=None):
    return ApproxQuantilesLaw(
        empty_sample(lattice), Levels(q), order_of(fine, lattice), rates, window
    )


# Known values


def test_approx_quantiles_known_values_of_one_level(implementation):
    # Records 0, 1 on {0, 1, 2}, target 1: ranks 0, 1, 2. Delta = 1: weights exp(-eps/2), 1, same.
    law = implementation.approx_quantiles_law(
        [0.0, 1.0], 0.5, epsilon=2.0, bounds=(0.0, 2.0), resolution=1, dither=False
    )
    total = 1.0 + 2.0 * math.exp(-1.0)
    for o, weight in zip((0.0, 1.0, 2.0), (math.exp(-1.0), 1.0, math.exp(-1.0)), strict=True):
        assert law.log_prob(o) == pytest.approx(math.log(weight / total), abs=1e-14)


def test_approx_quantiles_known_values_of_two_levels(implementation):
    # Records 0, 1 on {0, 1, 2}, levels 1/4 and 1/2, two depths of epsilon 2 each, so c = 1. The
    # middle level is 1/2: ranks 0, 1, 2, target 1. At o = 1 it leaves record 0 and the points
    # {0, 1} on the left, with local level 1/2 and target 1/2: ranks 0, 1, which are equally far.
    # At o = 0 it leaves no record and one point. At o = 2 it leaves both records and all points.
    law = implementation.approx_quantiles_law(
        [0.0, 1.0], [0.25, 0.5], epsilon=4.0, bounds=(0.0, 2.0), resolution=1, dither=False
    )
    far, total = math.exp(-1.0), 1.0 + 2.0 * math.exp(-1.0)
    expected = {
        (0.0, 0.0): far / total,
        (0.0, 1.0): 0.5 / total,
        (1.0, 1.0): 0.5 / total,
        (0.0, 2.0): far * far / total**2,
        (1.0, 2.0): far / total**2,
        (2.0, 2.0): far * far / total**2,
    }
    for o, probability in expected.items():
        assert math.exp(law.log_prob(o)) == pytest.approx(probability, abs=1e-14)


def test_approx_quantiles_known_values_of_the_continuous_mechanism(implementation):
    # As above without records: q = 1/2 is uniform on (0, 1), then 1/4 on (0, o).
    law = implementation.approx_quantiles_law(
        [], [0.25, 0.5], epsilon=1.0, bounds=(0.0, 1.0), resolution=0
    )
    assert law.log_prob([0.1, 0.5]) == pytest.approx(math.log(2.0), abs=1e-14)
    assert law.log_prob([0.1, 0.2]) == pytest.approx(math.log(5.0), abs=1e-14)
    assert law.log_prob([0.0, 0.0]) == math.inf


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.2}], ids=str)
def test_approx_quantiles_divides_its_rates_among_contributions(implementation, budget):
    x, q = [0.0, 1.0, 3.0], [0.2, 0.5]
    law = implementation.approx_quantiles_law(x, q, max_contributions=3, **budget, **OPTIONS)
    if "rho" in budget:  # two depths, of one step each
        share = {"rho": 2.0 * range_rho(range_of(0.1) / 3.0)}
    else:
        share = {"epsilon": 1.0 / 3.0}
    single = implementation.approx_quantiles_law(x, q, **share, **OPTIONS)
    assert_same_law(tabulate(law, 5, 2), tabulate(single, 5, 2), 1e-13)


# Fast equals reference


@pytest.mark.slow
@given(lattice_samples(), level_sets(7), st.floats(1e-3, 30.0), st.integers(0, 4))
def test_approx_quantiles_fast_equals_reference_on_lattices(sample, q, rate, window):
    fine, size = sample
    lattice, rates = lattice_of(size), rate * unequal(q)
    law = fast_law(fine, lattice, q, rates)
    forced = fast_law(fine, lattice, q, rates, window)
    points, bounds = np.array(fine, dtype=np.int64), (lattice.low, lattice.high)
    expected = ReferenceLaw(points, bounds, reference_lattice(lattice), Levels(q), rates)
    rng = np.random.default_rng(0)
    for o in np.sort(rng.integers(0, size, size=(20, len(q)))).astype(float):
        assert law.log_prob(o) == pytest.approx(expected.log_prob(o), abs=1e-10)
        assert forced.log_prob(o) == pytest.approx(expected.log_prob(o), abs=1e-10)


@given(
    st.lists(st.one_of(st.floats(-1.0, 5.0), st.sampled_from([0.0, 1.0, 4.0])), max_size=10),
    level_sets(7),
    st.floats(1e-3, 100.0),
    st.sampled_from(["swap", "add-remove"]),
    st.lists(st.floats(0.0, 4.0, exclude_min=True), min_size=7, max_size=7).map(sorted),
)
def test_approx_quantiles_fast_equals_reference_on_continuous_data(x, q, epsilon, neighbors, o):
    options = {"epsilon": epsilon, "bounds": (0.0, 4.0), "neighbors": neighbors, "resolution": 0}
    law = dpq.approx_quantiles_law(x, q, **options)
    expected = reference.approx_quantiles_law(x, q, **options)
    for outputs in (o[: len(q)], [o[0]] * len(q)):
        assert law.log_prob(outputs) == pytest.approx(expected.log_prob(outputs), abs=1e-10)


@pytest.mark.parametrize("order", ["sorted", "selected", "counted"])
@pytest.mark.parametrize("options", [{}, {"resolution": 1}], ids=str)
def test_approx_quantiles_fast_equals_reference_whatever_the_order(monkeypatch, order, options):
    """Records that are gone through, and records with counts, have the law of sorted ones."""
    x = np.random.default_rng(1).normal(0.0, 5.0, 400).round(1)
    arguments = {"epsilon": 30.0, "bounds": (-20.0, 20.0), "dither": False, **options}
    q = EVEN_7
    expected = reference.approx_quantiles_law(x, q, **arguments)
    if order == "selected":
        monkeypatch.setattr(choice_module, "SORTED_RECORDS", 10)
    elif order == "counted":
        x, arguments["counts"] = np.unique(x, return_counts=True)
    law = dpq.approx_quantiles_law(x, q, **arguments)
    assert isinstance(law._order, SelectedOrder) == (order == "selected")
    for o in law.sample(2, 5):
        assert law.log_prob(o) == pytest.approx(expected.log_prob(o), abs=1e-10)


@pytest.mark.parametrize("m", [1, 3])
def test_approx_quantiles_of_long_columns_equal_reference(m):
    """Windows that do not hold the sample: 3,000 records, a rate of about 1."""
    x, q = np.random.default_rng(3).normal(0.0, 5.0, 3_000), np.arange(1, m + 1) / (m + 1)
    options = {"epsilon": 3.0, "bounds": (-100.0, 100.0), "dither": False}
    law = dpq.approx_quantiles_law(x, q, **options)
    expected = reference.approx_quantiles_law(x, q, **options)
    for o in [*law.sample(4, 3), np.zeros(m), np.linspace(-90.0, 90.0, m)]:
        o = np.round(o, 1) + 0.0
        assert math.isfinite(law.log_prob(o)) or expected.log_prob(o) == -math.inf
        assert law.log_prob(o) == pytest.approx(expected.log_prob(o), abs=1e-9)


# Law equals enumeration


@pytest.mark.slow
@pytest.mark.parametrize("records, points, q", [*CASES, ([0, 1, 1, 2], 3, EVEN_7)])
def test_approx_quantiles_law_equals_enumeration(records, points, q):
    for neighbors, epsilon in product(BOTH, (1e-3, 1.0, 20.0)):
        scales = privacy.approx_quantiles.calibrate(q, epsilon=epsilon, neighbors=neighbors).steps
        expected = enumeration.approx_quantiles(records, points, q, by_level(q, scales))
        for name, implementation in IMPLEMENTATIONS.items():
            law = implementation.approx_quantiles_law(
                np.array(records, dtype=int),
                q,
                epsilon=epsilon,
                bounds=(0, points - 1),
                neighbors=neighbors,
                resolution=1,
                dither=False,
            )
            table, case = tabulate(law, points, len(q)), (name, neighbors, epsilon)
            assert enumeration.log_sum(table.values()) == pytest.approx(0.0, abs=1e-12), case
            assert_same_law(table, expected, 1e-11, case)


@pytest.mark.slow
@pytest.mark.parametrize("records, points, q, bits", DITHER_CASES)
def test_approx_quantiles_draws_cut_the_dithered_sample(records, points, q, bits):
    """Ranks are those of fine points, and only the answer is floored."""
    fine = [(x << bits) + i % (1 << bits) for i, x in enumerate(records)]
    rates = unequal(q)
    law = fast_law(fine, lattice_of(points, bits), q, rates)
    expected = enumeration.floored(
        enumeration.approx_quantiles(fine, points << bits, q, by_level(q, rates)), bits
    )
    draws = law.sample(np.random.default_rng(5), 5_000)
    assert_draws_follow(map(tuple, draws.astype(int).tolist()), expected)


# Draws


@pytest.mark.slow
@pytest.mark.parametrize("q", [[0.5], [0.3, 0.7], [0.0, 0.4, 0.5, 1.0]], ids=str)
def test_approx_quantiles_sample_follows_law(implementation, q):
    law = implementation.approx_quantiles_law([0, 2.0, 2.0, 3.0], q, epsilon=4.0, **OPTIONS)
    draws = law.sample(np.random.default_rng(12), 2_500)
    assert (np.diff(draws) >= 0.0).all()
    assert_draws_follow(map(tuple, draws.astype(int).tolist()), tabulate(law, 5, len(q)))


@pytest.mark.slow
def test_approx_quantiles_sample_follows_density(implementation):
    # The middle level is uniform within its cell of one unit, the other one within what is left
    # of the cell below the middle one.
    law = implementation.approx_quantiles_law(
        [1.0, 2.0, 2.0, 3.0], [0.5], epsilon=3.0, bounds=(0.0, 4.0), resolution=0
    )
    draws = law.sample(np.random.default_rng(13), 4_000)[:, 0]
    log_p = {cell: law.log_prob([cell + 0.4]) for cell in range(4)}
    assert_draws_follow(np.floor(draws).astype(int).tolist(), log_p)
    two = implementation.approx_quantiles_law(
        [1.0, 2.0, 2.0, 3.0], [0.25, 0.5], epsilon=3.0, bounds=(0.0, 4.0), resolution=0
    )
    low, high = two.sample(np.random.default_rng(14), 6_000).T
    # given the upper one, in which third of its range the lower one is: by the density
    inside = (high > 2.0) & (high <= 3.0)
    thirds = np.minimum(np.ceil(low[inside]), 3).astype(int)
    edges = np.linspace(2.0, 3.0, 201)[1:] - 1.0 / 400.0
    share = np.zeros(3)
    for upper in edges:
        total = [
            math.exp(two.log_prob([cell - 0.5 * min(1.0, upper - cell + 1), upper]))
            * min(1.0, upper - cell + 1)
            for cell in (1, 2)
        ]
        total.append(math.exp(two.log_prob([(2.0 + upper) / 2.0, upper])) * (upper - 2.0))
        share += np.array(total) / sum(total)
    log_share = np.log(share / share.sum())
    assert_draws_follow(thirds.tolist(), dict(zip((1, 2, 3), log_share.tolist(), strict=True)))


@pytest.mark.slow
@pytest.mark.parametrize("window", [0, 1])
@pytest.mark.parametrize("selected", [False, True])
def test_approx_quantiles_draws_follow_the_law_through_the_rare_branch(
    monkeypatch, selected, window
):
    """Windows far too small, so that draws are decided by what they leave out."""
    if selected:
        monkeypatch.setattr(choice_module, "SORTED_RECORDS", 3)
    x, q = np.array([3.0, 0.0, 4.0, 2.0, 2.0, 2.0, 5.0, 1.0]), [0.25, 0.5]
    sample = dpq.Sample.of(x, (0.0, 5.0), resolution=1, dither=False)
    order, rates = sample.order(), np.array([0.1, 0.2])
    assert isinstance(order, SelectedOrder) == selected
    forced = ApproxQuantilesLaw(sample, Levels(q), order, rates, window)
    exact = enumeration.approx_quantiles(sorted(x.astype(int)), 6, q, by_level(q, rates))
    assert_same_law(tabulate(forced, 6, 2), exact, 1e-11)
    draws = forced.sample(np.random.default_rng(window), 4_000)
    assert_draws_follow(map(tuple, draws.astype(int).tolist()), exact)


def test_approx_quantiles_windows_that_are_not_held_take_a_pass(monkeypatch):
    """Whatever was collected ahead, the same draws: only the number of passes differs."""
    monkeypatch.setattr(choice_module, "SORTED_RECORDS", 1_000)
    x = np.random.default_rng(6).normal(0.0, 5.0, 20_000)
    arguments = {"epsilon": 40.0, "bounds": (-100.0, 100.0), "rng": 7}
    passes = []
    collect = CountedRecords.collect
    monkeypatch.setattr(
        CountedRecords, "collect", lambda self, *asked: passes.append(1) or collect(self, *asked)
    )
    ahead = dpq.approx_quantiles(x, EVEN_7, **arguments)
    assert len(passes) == 1
    module = sys.modules[ApproxQuantilesLaw.__module__]  # the name in the package is the function
    monkeypatch.setattr(module, "prepare", lambda order, q, window: None)
    again = dpq.approx_quantiles(x, EVEN_7, **arguments)
    assert len(passes) == 8
    np.testing.assert_array_equal(ahead, again)


@pytest.mark.parametrize("size", [0, 1, 3])
def test_approx_quantiles_sample_shapes(implementation, size):
    options = {"epsilon": 1.0, "bounds": (0.0, 4.0)}
    law = implementation.approx_quantiles_law([1.0, 2.0], 0.5, **options)
    assert isinstance(law.sample(1), float)
    assert law.sample(1, size).shape == (size,)
    law = implementation.approx_quantiles_law([1.0, 2.0], [[0.5, 0.2, 0.5]], **options)
    assert law.sample(1).shape == (1, 3)
    assert law.sample(1, size).shape == (size, 1, 3)


# Privacy

ALPHAS = (1.01, 1.5, 2.0, 4.0, 16.0, 64.0)
PRIVACY_LEVELS = [[0.5], [0.9], [0.3, 0.6], [0.25, 0.5, 0.75], [0.0, 0.2, 0.9], EVEN_7]


def worst_losses(law_of, points, most, neighbors):
    """The largest log ratio, and the largest D_alpha / alpha, of all neighbors of few records."""
    ratio = rho = 0.0
    for n in range(most + 1):
        for x in combinations_with_replacement(range(points), n):
            for y in {tuple(sorted(y)) for y in neighbors_of(list(x), points, neighbors)}:
                if len(y) <= most:
                    one, other = law_of(x), law_of(y)
                    ratio = max(ratio, enumeration.max_log_ratio(one, other))
                    for alpha in ALPHAS:
                        loss = enumeration.renyi_divergence(one, other, alpha)
                        rho = max(rho, loss / alpha)
    return ratio, rho


def tables(points, q, neighbors, budget):
    """Law of the records in a tuple, by the fast implementation, kept."""
    laws = {}

    def law_of(records):
        if records not in laws:
            law = dpq.approx_quantiles_law(
                np.array(records, dtype=int),
                q,
                bounds=(0, points - 1),
                neighbors=neighbors,
                resolution=1,
                dither=False,
                **budget,
            )
            laws[records] = tabulate(law, points, len(q))
        return laws[records]

    return law_of


@pytest.mark.slow
@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"epsilon": 10.0}, {"rho": 0.5}], ids=str)
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("q", PRIVACY_LEVELS, ids=str)
def test_approx_quantiles_privacy_ratio(q, neighbors, budget):
    """Both statements of the guarantee hold, whichever of them the rates were made for."""
    points, most = (3, 4) if len(q) < 4 else (3, 3)
    guarantee = privacy.guarantee("approx_quantiles", q=q, neighbors=neighbors, **budget)
    ratio, rho = worst_losses(tables(points, q, neighbors, budget), points, most, neighbors)
    assert 0.2 * guarantee.epsilon < ratio <= guarantee.epsilon + 1e-9
    assert 0.1 * guarantee.rho < rho <= guarantee.rho + 1e-9


@pytest.mark.parametrize("neighbors, q", [("swap", [0.5]), ("add-remove", [0.25, 0.5, 0.75])])
def test_approx_quantiles_privacy_is_spent(neighbors, q):
    """Nearly all of the claim is reached: the test above could fail."""
    ratio, _ = worst_losses(tables(3, q, neighbors, {"epsilon": 10.0}), 3, 4, neighbors)
    assert ratio > 9.0
    _, rho = worst_losses(tables(3, q, neighbors, {"rho": 0.5}), 3, 4, neighbors)
    assert rho > 0.4


@pytest.mark.parametrize("q", [[0.5], [0.2, 0.7], [0.25, 0.5, 0.75]], ids=str)
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_approx_quantiles_privacy_ratio_with_dither(q, neighbors):
    """Mixtures over all dithers of single records; outputs floored."""
    points, bits, laws = 2, 1, {}
    scales = privacy.approx_quantiles.calibrate(q, epsilon=2.0, neighbors=neighbors).steps

    def law_of(records):
        if records not in laws:
            laws[records] = enumeration.mixture(
                enumeration.floored(
                    enumeration.approx_quantiles(fine, points << bits, q, by_level(q, scales)), bits
                )
                for fine in enumeration.dithers(records, bits)
            )
        return laws[records]

    ratio, _ = worst_losses(law_of, points, 3, neighbors)
    assert 0.1 < ratio <= 2.0 + 1e-9


def test_approx_quantiles_with_fixed_targets_would_break_the_promise():
    """Targets q_j n move in every part when n changes: what the local ones are for."""
    q = [0.25, 0.5, 0.75]
    calibration = privacy.approx_quantiles.calibrate(q, epsilon=10.0, neighbors="add-remove")
    rates = by_level(q, calibration.steps)
    ratios = {}
    for fixed in (False, True):

        def law_of(records, fixed=fixed):
            return enumeration.approx_quantiles(records, 3, q, rates, fixed)

        ratios[fixed], _ = worst_losses(law_of, 3, 4, "add-remove")
    assert ratios[False] <= 10.0 + 1e-9
    assert ratios[True] > 12.0


def test_approx_quantiles_privacy_ratio_of_two_contributions():
    q, x = [0.2, 0.5, 0.8], [0, 1, 1, 2]
    for neighbors in ("swap", "add-remove"):
        law_of = tables(3, q, neighbors, {"epsilon": 4.0, "max_contributions": 2})
        further = {
            tuple(sorted(z))
            for y in neighbors_of(x, 3, neighbors)
            for z in neighbors_of(y, 3, neighbors)
        }
        worst = max(enumeration.max_log_ratio(law_of(tuple(x)), law_of(z)) for z in further)
        assert 0.2 < worst <= 4.0 + 1e-9


# Bad input and the accountant


def test_approx_quantiles_rejects_two_budgets_and_bad_rho(implementation):
    for function in (implementation.approx_quantiles, implementation.approx_quantiles_law):
        for budget in ({"epsilon": None}, {"epsilon": 1.0, "rho": 0.1}):
            with pytest.raises(ValueError, match="exactly one of epsilon and rho must be given"):
                function([1.0], 0.5, bounds=(0, 4), **budget)
        for rho in (0.0, -1.0, math.nan, math.inf):
            with pytest.raises(ValueError, match="rho must be positive and finite"):
                function([1.0], 0.5, bounds=(0, 4), rho=rho)


@pytest.mark.parametrize("base, error", [("exp", ValueError), ("", ValueError), (None, TypeError)])
def test_approx_quantiles_rejects_base(implementation, base, error):
    for function in (implementation.approx_quantiles, implementation.approx_quantiles_law):
        with pytest.raises(error, match="base must be one of 'ind_exp'"):
            function([1.0], 0.5, epsilon=1.0, bounds=(0, 4), base=base)
    with pytest.raises(error, match="base must be one of 'ind_exp'"):
        privacy.guarantee("approx_quantiles", q=0.5, epsilon=1.0, base=base)


def test_approx_quantiles_charges_the_accountant(implementation):
    accountant = privacy.Accountant(1.0)
    options = {"epsilon": 0.6, "bounds": (0.0, 4.0), "accountant": accountant}
    implementation.approx_quantiles([1.0, 2.0], [0.2, 0.5], rng=1, **options)
    expected = privacy.guarantee("approx_quantiles", q=[0.2, 0.5], epsilon=0.6)
    assert accountant.history == (expected,)
    with pytest.raises(privacy.BudgetExceeded, match="must fit the budget"):
        implementation.approx_quantiles(Untouchable(), [0.2, 0.5], **options)
    assert accountant.history == (expected,)
    with pytest.raises(AssertionError, match="touched"):
        implementation.approx_quantiles(Untouchable(), 0.5, epsilon=0.1, bounds=(0.0, 4.0))


def test_approx_quantiles_charges_rho(implementation):
    accountant = privacy.Accountant(1.0, 1e-6, "add-remove", "zcdp")
    options = {"rho": 0.01, "bounds": (0.0, 4.0), "neighbors": "add-remove"}
    implementation.approx_quantiles([1.0], [0.2, 0.5], accountant=accountant, rng=1, **options)
    assert accountant.history[0].rho == 0.01


# Edges


@pytest.mark.parametrize("x, bounds", EDGES.values(), ids=EDGES.keys())
def test_approx_quantiles_answers_at_the_edges(x, bounds):
    several = [{}, {"resolution": 0}, {"dither": False}]
    for case in product(Q_EDGES.values(), several, (1e-300, 1e-6, 1.0, 1e4), BOTH):
        q, options, epsilon, neighbors = case
        out = dpq.approx_quantiles(
            x, q, epsilon=epsilon, bounds=bounds, neighbors=neighbors, rng=9, **options
        )
        assert np.isfinite(out).all(), case
        assert (np.diff(out) >= 0.0).all(), case
        assert bounds[0] <= out[0] and out[-1] <= bounds[1], case


@pytest.mark.parametrize("x, bounds", EDGES.values(), ids=EDGES.keys())
def test_approx_quantiles_fast_equals_reference_at_the_edges(x, bounds):
    for case in product(Q_EDGES.values(), (None, 0), (1e-6, 1.0, 1e4)):
        q, resolution, epsilon = case
        options = {"epsilon": epsilon, "bounds": bounds, "resolution": resolution, "dither": False}
        law = dpq.approx_quantiles_law(x, q, **options)
        expected = reference.approx_quantiles_law(x, q, **options)
        for o in [*law.sample(3, 3), np.full(len(q), bounds[1])]:
            if resolution == 0:  # the low bound is one output of a density
                o = np.maximum(o, np.nextafter(bounds[0], np.inf))
            assert law.log_prob(o) == pytest.approx(expected.log_prob(o), abs=1e-9), case


def test_approx_quantiles_of_many_levels(implementation):
    q = np.linspace(0.0, 1.0, 200)
    x = np.random.default_rng(2).integers(0, 9, size=50)
    out = implementation.approx_quantiles(x, q, epsilon=1.0, bounds=(0, 9), rng=1)
    assert out.shape == (200,)
    assert (np.diff(out) >= 0.0).all()


def test_approx_quantiles_law_takes_no_log_prob_of_dithered_tuples(implementation):
    options = {"epsilon": 1.0, "bounds": (0.0, 4.0), "resolution": 1}
    law = implementation.approx_quantiles_law([1.0, 2.0], [0.2, 0.5], **options)
    with pytest.raises(ValueError, match="needs a sample without dither and prior: "):
        law.log_prob([1.0, 2.0])
    one = implementation.approx_quantiles_law([1.0, 2.0], 0.5, dither_rng=3, **options)
    total = enumeration.log_sum(one.log_prob(float(o)) for o in range(5))
    assert total == pytest.approx(0.0, abs=1e-12)


def test_approx_quantiles_law_of_one_dithered_level_is_that_of_joint_exp():
    arguments = ([1.0, 2.0, 2.0, 4.0], 0.3)
    options = {"epsilon": 1.0, "bounds": (0.0, 4.0), "resolution": 1, "dither_rng": 3}
    law = dpq.approx_quantiles_law(*arguments, **options)
    expected = dpq.joint_exp_law(*arguments, **options)
    for o in range(5):
        assert law.log_prob(o) == pytest.approx(expected.log_prob(o), abs=1e-13)


# Manners


@pytest.mark.parametrize("q", [0.5, [0.5], [[0.9, 0.1], [0.5, 0.9]], [0.0, 1.0], [0.5] * 5])
def test_approx_quantiles_answers_in_the_shape_of_q(implementation, q):
    out = implementation.approx_quantiles(np.arange(40) % 7, q, epsilon=1.0, bounds=(0, 10), rng=4)
    assert np.shape(out) == np.shape(q)
    assert isinstance(out, float if np.ndim(q) == 0 else np.ndarray)
    order = np.argsort(np.ravel(q), kind="stable")
    assert (np.diff(np.ravel(out)[order]) >= 0.0).all()


def test_approx_quantiles_releases_duplicates_once(implementation):
    accountant = privacy.Accountant(1.0)
    options = {"epsilon": 1.0, "bounds": (0.0, 4.0), "accountant": accountant, "rng": 1}
    out = implementation.approx_quantiles([1.0, 2.0], [0.5, 0.5, 0.5], **options)
    assert np.unique(out).size == 1
    law = implementation.approx_quantiles_law([1, 2], [0.5, 0.2, 0.5], epsilon=1.0, **OPTIONS)
    single = implementation.approx_quantiles_law([1, 2], [0.2, 0.5], epsilon=1.0, **OPTIONS)
    for a, b in combinations_with_replacement(range(5), 2):
        assert law.log_prob([b, a, b]) == pytest.approx(single.log_prob([a, b]), abs=1e-14)
    assert law.log_prob([1.0, 1.0, 2.0]) == -math.inf


def test_approx_quantiles_is_reproducible_by_seed():
    x = np.random.default_rng(0).integers(0, 50, size=300)
    outs = [
        dpq.approx_quantiles(x, [0.1, 0.5, 0.9], epsilon=0.1, bounds=(0, 50), rng=rng)
        for rng in (7, np.random.default_rng(7), np.random.PCG64(7), 8)
    ]
    assert outs[0].tolist() == outs[1].tolist() == outs[2].tolist() != outs[3].tolist()


@pytest.mark.parametrize("options", [{}, {"resolution": 1e-3}], ids=str)
def test_approx_quantiles_do_not_depend_on_workers(options):
    x = np.random.default_rng(4).normal(0.0, 5.0, 200_000)
    arguments = {"epsilon": 1.0, "bounds": (-100.0, 100.0), "rng": 5, **options}
    one, two = (dpq.approx_quantiles(x, EVEN_7, workers=workers, **arguments) for workers in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_approx_quantiles_take_samples_and_batches():
    x = np.random.default_rng(4).normal(0.0, 5.0, 3_000)
    arguments = {"epsilon": 1.0, "rng": 5}
    expected = dpq.approx_quantiles(x, EVEN_7, bounds=(-100.0, 100.0), **arguments)
    whole = dpq.Sample.of(x, (-100.0, 100.0))
    batches = dpq.Sample.from_batches(lambda: np.array_split(x, 7), (-100.0, 100.0))
    for sample in (whole, batches):
        np.testing.assert_array_equal(expected, dpq.approx_quantiles(sample, EVEN_7, **arguments))


@pytest.mark.parametrize("options", [{}, {"resolution": 1}, {"resolution": 0}], ids=str)
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_approx_quantiles_leaves_input_unchanged(implementation, dtype, options):
    x = np.random.default_rng(1).integers(0, 20, size=90).astype(dtype)
    q, counts = np.array([0.9, 0.1]), np.arange(45)
    kept = x.copy(), q.copy(), counts.copy()
    for array in (x, q, counts):
        array.flags.writeable = False
    arguments = {"epsilon": 1.0, "bounds": (0.0, 20.0), "rng": 3, "counts": counts, **options}
    strided = implementation.approx_quantiles(x[::2], q, **arguments)
    contiguous = implementation.approx_quantiles(x[::2].copy(), q, **arguments)
    np.testing.assert_array_equal(strided, contiguous)
    for array, before in zip((x, q, counts), kept, strict=True):
        np.testing.assert_array_equal(array, before)


def test_approx_quantiles_law_is_zero_off_the_support(implementation):
    law = implementation.approx_quantiles_law([1.0, 2.0], [0.5, 0.2], epsilon=1.0, **OPTIONS)
    assert math.isfinite(law.log_prob([2.0, 1.0]))
    for o in ([1.0, 2.0], [2.0, 0.5], [5.0, 1.0], [2.0, -1.0]):
        assert law.log_prob(o) == -math.inf
    with pytest.raises(ValueError, match="o must have the shape of q"):
        law.log_prob([1.0, 2.0, 3.0])


# Accuracy


def mean_rank_error(x, q, out):
    target = q * x.size
    below = np.searchsorted(x, out) - target
    above = target - np.searchsorted(x, out, side="right")
    return np.maximum(0.0, np.maximum(below, above)).mean()


@pytest.mark.parametrize("column, bounds", [("hours_per_week", (0, 100)), ("age", (0, 100))])
def test_approx_quantiles_are_accurate_on_real_columns(real_columns, column, bounds):
    """Dithering makes ties as good as distinct values: a few ranks of 1,000, not a hundred."""
    with open(real_columns / "adult.csv", newline="") as lines:
        values = np.array([int(row[column]) for row in csv.DictReader(lines)])
    rng, q = np.random.default_rng(8), np.arange(1, 10) / 10
    errors = []
    for _ in range(50):
        x = np.sort(rng.choice(values, 1_000, replace=False))
        out = dpq.approx_quantiles(x, q, epsilon=1.0, bounds=bounds, resolution=1, rng=rng)
        errors.append(mean_rank_error(x, q, out))
    assert np.mean(errors) < 8.0


def test_approx_quantiles_are_accurate_on_ties_and_without():
    rng, q = np.random.default_rng(8), np.arange(1, 10) / 10
    for make, resolution in (
        (lambda: rng.normal(0.0, 5.0, 1_000), None),
        (lambda: rng.integers(-3, 4, 1_000), 1),
    ):
        errors = []
        for _ in range(50):
            x = np.sort(make())
            out = dpq.approx_quantiles(
                x, q, epsilon=1.0, bounds=(-100, 100), resolution=resolution, rng=rng
            )
            errors.append(mean_rank_error(x, q, out))
        # 12.4 in the mean; 50 draws are more than 4.8 standard errors of 0.75 below 16
        assert np.mean(errors) < 16.0


# Searches of candidates as the base


def test_approx_quantiles_by_searches_are_unbounded_quantiles(implementation):
    x = np.random.default_rng(9).exponential(10.0, 400)
    options = {"epsilon": 20.0, "beta": 1.1, "neighbors": "add-remove", "rng": 3}
    out = implementation.approx_quantiles(
        x, [0.9, 0.2], base="unbounded", bounds=(0.0, 50.0), **options
    )
    same = implementation.unbounded_quantile(x, [0.9, 0.2], lower=0.0, upper=50.0, **options)
    np.testing.assert_array_equal(out, same)


def test_approx_quantiles_by_searches_hand_all_options_on(implementation):
    x, counts = np.random.default_rng(1).exponential(9.0, 40), np.arange(40)
    outs, accountants = [], [privacy.Accountant(9.0, neighbors="add-remove") for _ in range(2)]
    for accountant, release, named in zip(
        accountants,
        (implementation.approx_quantiles, implementation.unbounded_quantile),
        (dict(base="unbounded", bounds=(0.0, 50.0)), dict(lower=0.0, upper=50.0)),
        strict=True,
    ):
        options = dict(epsilon=2.0, max_contributions=2, neighbors="add-remove", **named)
        out = release(x, [0.9, 0.2], counts=counts, accountant=accountant, rng=3, **options)
        outs.append(out.tolist())
        with pytest.raises(ValueError, match="x must not contain NaN"):
            release([math.nan], 0.5, nan_policy="raise", **options)
    assert outs[0] == outs[1]
    assert accountants[0].history == accountants[1].history != ()
    with pytest.raises(ValueError, match="x must not contain NaN"):
        implementation.approx_quantiles_law(
            [math.nan], 0.5, epsilon=1.0, bounds=(0.0, 1.0), nan_policy="raise"
        )


def test_approx_quantiles_by_searches_have_the_law_of_unbounded_quantiles():
    x, q = [0.5, 2.0, 5.0], [0.25, 0.5, 0.75]
    options = {"epsilon": 2.0, "beta": 2.0, "noise": "gumbel"}
    law = dpq.approx_quantiles_law(x, q, base="unbounded", bounds=(0.0, 6.0), **options)
    same = dpq.unbounded_quantile_law(x, q, upper=6.0, **options)
    assert law.log_prob([1.0, 3.0, 6.0]) == same.log_prob([1.0, 3.0, 6.0]) > -math.inf


def test_approx_quantiles_refuse_what_their_base_does_not_take(implementation):
    with pytest.raises(TypeError, match="beta"):
        implementation.approx_quantiles([1.0], 0.5, epsilon=1.0, bounds=(0.0, 1.0), beta=2.0)
    with pytest.raises(TypeError, match="beta"):
        implementation.approx_quantiles_law([1.0], 0.5, epsilon=1.0, bounds=(0.0, 1.0), beta=2.0)
    with pytest.raises(ValueError, match="must be left out for an unbounded search"):
        implementation.approx_quantiles([1.0], 0.5, epsilon=1.0, base="unbounded", dither=True)
