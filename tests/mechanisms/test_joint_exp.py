"""JointExp, both implementations: known values, enumeration, each other, and the promise."""

from __future__ import annotations

import math
from functools import cache
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
    fast_joint_law,
    lattice_of,
    lattice_samples,
    level_sets,
    neighbors_of,
    reference_lattice,
    tabulate,
)
from hypothesis import given
from hypothesis import strategies as st

import dpq_fast as dpq
import enumeration
from dpq_fast import privacy, reference
from dpq_fast._kernels import scan
from dpq_fast._kernels.scan import EACH_BLOCK, EACH_ENTRY, Scan
from dpq_fast.laws.joint import fft as toeplitz
from dpq_fast.privacy.levels import Levels
from dpq_fast.reference.joint_exp import JointExpLaw as ReferenceLaw
from dpq_fast.reference.sample import Intervals

EPSILONS = [1e-3, 1.0, 20.0]


# Known values


def test_joint_exp_known_values_of_one_level(implementation):
    # Records 0, 1 on {0, 1, 2}, target 1: ranks #{x < o} are 0, 1, 2. Delta = 2, so c = eps / 4,
    # and each rank counts twice: weights exp(-2c), 1, exp(-2c).
    law = implementation.joint_exp_law(
        [0.0, 1.0], 0.5, epsilon=2.0, bounds=(0.0, 2.0), resolution=1, dither=False
    )
    total = 1.0 + 2.0 * math.exp(-1.0)
    for o, weight in zip((0.0, 1.0, 2.0), (math.exp(-1.0), 1.0, math.exp(-1.0)), strict=True):
        assert law.log_prob(o) == pytest.approx(math.log(weight / total), abs=1e-14)


def test_joint_exp_known_values_of_two_levels(implementation):
    # One record 0 on {0, 1}; ranks 0 and 1; q = 0, 1 ask for ranks 0 and 1.
    # Deviations: (0,0): |0-0| + |0-1| + |1-0| = 2; (0,1): 0; (1,1): 1 + |0-1| + 0 = 2.
    law = implementation.joint_exp_law(
        [0.0], [0.0, 1.0], epsilon=1.0, bounds=(0.0, 1.0), resolution=1, dither=False
    )
    total = 1.0 + 2.0 * math.exp(-0.5)
    assert law.log_prob([0.0, 1.0]) == pytest.approx(-math.log(total), abs=1e-14)
    assert law.log_prob([0.0, 0.0]) == pytest.approx(-0.5 - math.log(total), abs=1e-14)
    assert law.log_prob([1.0, 1.0]) == pytest.approx(-0.5 - math.log(total), abs=1e-14)


def test_joint_exp_known_values_of_add_remove(implementation):
    # q = 0.5: gaps 0.5 and 0.5, Delta = 1, so c = eps / 2. One record 1 on {0, 1, 2}, target 0.5:
    # each output deviates by 0.5 twice.
    law = implementation.joint_exp_law(
        [1.0],
        0.5,
        epsilon=1.0,
        bounds=(0.0, 2.0),
        resolution=1,
        dither=False,
        neighbors="add-remove",
    )
    for o in (0.0, 1.0, 2.0):
        assert law.log_prob(o) == pytest.approx(-math.log(3.0), abs=1e-14)
    # q = 0.25 of the same: Delta = 2 (1 - 0.25) = 1.5, c = 1/3; deviations 0.5 and 1.5.
    law = implementation.joint_exp_law(
        [1.0],
        0.25,
        epsilon=1.0,
        bounds=(0.0, 2.0),
        resolution=1,
        dither=False,
        neighbors="add-remove",
    )
    far = math.exp(-1.0 / 3.0)
    assert law.log_prob(1.0) == pytest.approx(-math.log(2.0 + far), abs=1e-14)
    assert law.log_prob(2.0) == pytest.approx(math.log(far / (2.0 + far)), abs=1e-14)


def test_joint_exp_known_values_of_the_continuous_mechanism(implementation):
    # One record 0.25 in [0, 1]: widths 1/4 at rank 0 and 3/4 at rank 1, target 1: deviations 2, 0.
    law = implementation.joint_exp_law([0.25], 1.0, epsilon=2.0, bounds=(0.0, 1.0), resolution=0)
    log_z = math.log(0.75 + 0.25 * math.exp(-1.0))
    assert law.log_prob(0.6) == pytest.approx(-log_z, abs=1e-14)
    assert law.log_prob(0.1) == pytest.approx(-1.0 - log_z, abs=1e-14)
    # Two outputs in one interval: volumes 1/32, 3/16, 9/32 of the three paths.
    law = implementation.joint_exp_law(
        [0.25], [0.0, 1.0], epsilon=2.0, bounds=(0.0, 1.0), resolution=0
    )
    log_z = math.log(3.0 / 16.0 + 10.0 / 32.0 * math.exp(-1.0))
    assert law.log_prob([0.1, 0.9]) == pytest.approx(-log_z, abs=1e-14)
    assert law.log_prob([0.5, 0.5]) == pytest.approx(-1.0 - log_z, abs=1e-14)


def test_joint_exp_divides_its_rate_among_contributions(implementation):
    options = {"bounds": (0.0, 4.0), "resolution": 1, "dither": False}
    law = implementation.joint_exp_law(
        [0.0, 1.0, 3.0], [0.2, 0.5], epsilon=3.0, max_contributions=3, **options
    )
    single = implementation.joint_exp_law([0.0, 1.0, 3.0], [0.2, 0.5], epsilon=1.0, **options)
    assert_same_law(tabulate(law, 5, 2), tabulate(single, 5, 2), 1e-13)


# Fast equals reference


@given(lattice_samples(), level_sets(), st.floats(1e-3, 30.0), st.integers(0, 2))
def test_joint_exp_fast_equals_reference_on_lattices(sample, q, rate, bits):
    fine, size = sample
    size += size % 2  # whole cells, whatever the bits
    points = max(-(-size // (1 << bits)), 2)
    lattice = lattice_of(points, bits)
    law = fast_joint_law(fine, lattice, q, rate)
    data = Intervals.from_points(fine, reference_lattice(lattice))
    expected = ReferenceLaw(data, Levels(q), rate)
    assert_same_law(tabulate(law, points, len(q)), tabulate(expected, points, len(q)), 1e-10)


@given(
    st.lists(st.one_of(st.floats(-1.0, 5.0), st.sampled_from([0.0, 1.0, 4.0])), max_size=10),
    level_sets(),
    st.floats(1e-3, 100.0),
    st.sampled_from(["swap", "add-remove"]),
    st.lists(st.floats(0.0, 4.0, exclude_min=True), min_size=3, max_size=3).map(sorted),
)
def test_joint_exp_fast_equals_reference_on_continuous_data(x, q, epsilon, neighbors, o):
    options = {"epsilon": epsilon, "bounds": (0.0, 4.0), "neighbors": neighbors, "resolution": 0}
    law = dpq.joint_exp_law(x, q, **options)
    expected = reference.joint_exp_law(x, q, **options)
    outputs = o[: len(q)]
    assert law.log_prob(outputs) == pytest.approx(expected.log_prob(outputs), abs=1e-10)
    same = [outputs[0]] * len(q)
    assert law.log_prob(same) == pytest.approx(expected.log_prob(same), abs=1e-10)


def test_joint_exp_density_at_the_low_bound_equals_reference():
    """The low bound belongs to what follows it, records on it included."""
    for x, counts in (([0.0, 0.0, 3.0], None), ([0.0, 3.0], [2, 1])):
        options = {"epsilon": 1.0, "bounds": (0.0, 4.0), "resolution": 0, "counts": counts}
        law = dpq.joint_exp_law(x, [0.5], **options)
        expected = reference.joint_exp_law(x, [0.5], **options)
        assert law.log_prob([0.0]) == pytest.approx(expected.log_prob([0.0]), abs=1e-12)


@given(
    st.lists(st.floats(-1.0, 5.0), max_size=8),
    level_sets(),
    st.floats(1e-2, 10.0),
    st.data(),
)
def test_joint_exp_fast_equals_reference_on_the_default_lattice(x, q, epsilon, data):
    options = {"epsilon": epsilon, "bounds": (0.0, 4.0), "dither_rng": 7}
    law = dpq.joint_exp_law(x, q, **options)
    expected = reference.joint_exp_law(x, q, **options)
    point = st.integers(0, 400_000)  # in steps of 10^-5
    points = data.draw(st.lists(point, min_size=len(q), max_size=len(q)).map(sorted))
    outputs = np.array(points) / 1e5
    assert math.isfinite(law.log_prob(outputs))
    assert law.log_prob(outputs) == pytest.approx(expected.log_prob(outputs), abs=1e-10)


@pytest.mark.parametrize("kernel", ["scan", "fft"])
def test_joint_exp_kernels_have_one_law(kernel):
    x = np.random.default_rng(2).normal(size=200)
    q = [0.1, 0.4, 0.5, 0.9]
    options = {"epsilon": 1.0, "bounds": (-4.0, 4.0), "resolution": 0.01, "dither": False}
    law = dpq.joint_exp_law(x, q, kernel=kernel, **options)
    expected = reference.joint_exp_law(x[:60], q, **options)
    small = dpq.joint_exp_law(x[:60], q, kernel=kernel, **options)
    plain = dpq.joint_exp_law(x, q, **options)
    for o in ([-1.28, -0.25, 0.0, 1.28], [-4.0, -4.0, -4.0, -4.0], [-4.0, 4.0, 4.0, 4.0]):
        assert small.log_prob(o) == pytest.approx(expected.log_prob(o), abs=1e-8)
        assert law.log_prob(o) == pytest.approx(plain.log_prob(o), abs=1e-8)


# Law equals enumeration


@pytest.mark.parametrize("records, points, q", CASES)
def test_joint_exp_law_equals_enumeration(records, points, q):
    for neighbors, epsilon in product(BOTH, EPSILONS):
        rate = privacy.joint_exp.calibrate(q, epsilon=epsilon, neighbors=neighbors).rate
        expected = enumeration.joint_exp(records, points, q, rate)
        for name, implementation in IMPLEMENTATIONS.items():
            law = implementation.joint_exp_law(
                np.array(records, dtype=int),
                q,
                epsilon=epsilon,
                bounds=(0, points - 1),
                neighbors=neighbors,
                resolution=1,
                dither=False,
            )
            case = (name, neighbors, epsilon)
            assert_same_law(tabulate(law, points, len(q)), expected, 1e-12, case)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("records, points, q", CASES)
def test_joint_exp_density_equals_enumeration(implementation, records, points, q, epsilon):
    bounds = (0.0, points - 1.0)
    law = implementation.joint_exp_law(records, q, epsilon=epsilon, bounds=bounds, resolution=0)
    expected = enumeration.joint_exp_density(records, bounds, q, epsilon / 4.0)
    places = np.arange(points - 1) + 0.375
    for o in combinations_with_replacement(places.tolist(), len(q)):
        assert law.log_prob(o) == pytest.approx(expected(o), abs=1e-12)


@pytest.mark.parametrize("rate", [0.125, 1.0, 6.0])
@pytest.mark.parametrize("records, points, q, bits", DITHER_CASES)
def test_joint_exp_law_given_a_dither_equals_enumeration(records, points, q, bits, rate):
    lattice = lattice_of(points, bits)
    for fine in list(enumeration.dithers(records, bits))[::7]:
        expected = enumeration.floored(enumeration.joint_exp(fine, points << bits, q, rate), bits)
        law = fast_joint_law(fine, lattice, q, rate)
        assert_same_law(tabulate(law, points, len(q)), expected, 1e-12)


@pytest.mark.parametrize("records, points, q, bits", DITHER_CASES)
def test_joint_exp_law_over_all_dithers_equals_enumeration(records, points, q, bits):
    lattice = lattice_of(points, bits)
    law = enumeration.mixture(
        tabulate(fast_joint_law(fine, lattice, q, 0.5), points, len(q))
        for fine in enumeration.dithers(records, bits)
    )
    expected = enumeration.joint_exp_dithered(records, points, q, 0.5, bits)
    assert_same_law(law, expected, 1e-12)


# Draws


@pytest.mark.parametrize("kernel", ["scan", "fft"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_joint_exp_sample_follows_law(kernel, epsilon):
    law = dpq.joint_exp_law(
        [0, 2.0, 2.0, 3.0],
        [0.3, 0.5, 0.7],
        epsilon=epsilon,
        bounds=(0, 4),
        resolution=1,
        dither=False,
        kernel=kernel,
    )
    draws = law.sample(np.random.default_rng(11), 20_000)
    assert draws.shape == (20_000, 3)
    assert_draws_follow(map(tuple, draws.astype(int).tolist()), tabulate(law, 5, 3))


@pytest.mark.parametrize("kind", [EACH_BLOCK, EACH_ENTRY])
@pytest.mark.parametrize("records", [[0, 2, 2, 3], [0, 2, 3, 3]])
def test_joint_exp_sample_of_rows_with_more_exponents_follows_law(monkeypatch, kind, records):
    monkeypatch.setattr(scan, "KINDS", (kind,))
    q, rate = [0.3, 0.5, 0.7], 0.5
    law = dpq.joint_exp_law(
        records, q, epsilon=4.0 * rate, bounds=(0, 4), resolution=1, dither=False
    )
    expected = enumeration.joint_exp(records, 5, q, rate)
    assert_same_law(tabulate(law, 5, 3), expected, 1e-12)
    draws = law.sample(np.random.default_rng(15), 20_000)
    assert_draws_follow(map(tuple, draws.astype(int).tolist()), expected)


def test_joint_exp_sample_follows_dithered_law():
    law = dpq.joint_exp_law(
        [0, 2, 2, 3], [0.3, 0.5, 0.7], epsilon=2.0, bounds=(0, 4), resolution=1, dither_rng=5
    )
    draws = law.sample(np.random.default_rng(12), 20_000)
    assert_draws_follow(map(tuple, draws.astype(int).tolist()), tabulate(law, 5, 3))


def test_joint_exp_sample_follows_density():
    law = dpq.joint_exp_law(
        [0.0, 2.0, 2.0, 3.0], [0.3, 0.7], epsilon=2.0, bounds=(0.0, 4.0), resolution=0
    )
    draws = law.sample(np.random.default_rng(13), 20_000)
    # A unit cell holds one density; two outputs in one cell have half its square.
    log_p = {
        (a, b): law.log_prob([a + 0.4, b + 0.6]) - (math.log(2.0) if a == b else 0.0)
        for a, b in combinations_with_replacement(range(4), 2)
    }
    assert_draws_follow(map(tuple, np.floor(draws).astype(int).tolist()), log_p)
    assert (np.diff(draws) >= 0.0).all()


@pytest.mark.slow
def test_joint_exp_release_follows_the_law_over_all_dithers():
    """The whole call, with a fresh dither each time, against an average of 2,000 laws."""
    records, points, q = [0, 1, 1, 2], 3, [0.3, 0.6]
    options = {"epsilon": 2.0, "bounds": (0, 2), "resolution": 1}
    rng = np.random.default_rng(14)
    laws = [
        tabulate(dpq.joint_exp_law(records, q, dither_rng=rng, **options), points, 2)
        for _ in range(2_000)
    ]
    draws = [
        tuple(dpq.joint_exp(records, q, rng=rng, **options).astype(int).tolist())
        for _ in range(4_000)
    ]
    assert_draws_follow(draws, enumeration.mixture(laws))


@pytest.mark.parametrize("size", [0, 1, 3])
def test_joint_exp_sample_shapes(implementation, size):
    options = {"epsilon": 1.0, "bounds": (0.0, 4.0)}
    law = implementation.joint_exp_law([1.0, 2.0], 0.5, **options)
    assert isinstance(law.sample(1), float)
    assert law.sample(1, size).shape == (size,)
    law = implementation.joint_exp_law([1.0, 2.0], [[0.5, 0.2, 0.5]], **options)
    assert law.sample(1).shape == (1, 3)
    draws = law.sample(1, size)
    assert draws.shape == (size, 1, 3)
    assert (draws[:, 0, 0] == draws[:, 0, 2]).all() and (draws[:, 0, 1] <= draws[:, 0, 0]).all()


# Privacy


@pytest.mark.parametrize("q", [[0.5], [0.1, 0.6], [0.0, 0.3, 1.0], [0.0], [0.9]])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_joint_exp_privacy_ratio(neighbors, q):
    points, laws = 4, {}

    def law_of(records):
        key = tuple(sorted(records))
        if key not in laws:
            law = dpq.joint_exp_law(
                np.array(key, dtype=int),
                q,
                epsilon=1.0,
                bounds=(0, points - 1),
                neighbors=neighbors,
                resolution=1,
                dither=False,
            )
            laws[key] = tabulate(law, points, len(q))
        return laws[key]

    worst = max(
        enumeration.max_log_ratio(law_of(x), law_of(y))
        for n in range(5)
        for x in combinations_with_replacement(range(points), n)
        for y in neighbors_of(list(x), points, neighbors)
    )
    assert 0.1 < worst <= 1.0 + 1e-9


@pytest.mark.parametrize("q", [[0.5], [0.1, 0.6], [0.0, 0.3, 1.0]])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_joint_exp_privacy_ratio_over_all_dithers(neighbors, q):
    points = 3
    lattice = lattice_of(points, bits=1)
    rate = privacy.joint_exp.calibrate(q, epsilon=1.0, neighbors=neighbors).rate

    @cache
    def law_given(fine):
        return tabulate(fast_joint_law(fine, lattice, q, rate), points, len(q))

    @cache
    def law_of(records):
        return enumeration.mixture(
            law_given(tuple(sorted(fine))) for fine in enumeration.dithers(records, 1)
        )

    worst = max(
        enumeration.max_log_ratio(law_of(x), law_of(y))
        for n in range(4)
        for x in combinations_with_replacement(range(points), n)
        for y in {tuple(sorted(y)) for y in neighbors_of(list(x), points, neighbors)}
    )
    assert 0.1 < worst <= 1.0 + 1e-9


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_joint_exp_privacy_ratio_of_two_contributions(neighbors):
    q, points, x = [0.2, 0.5], 4, [0, 1, 1, 3]

    def law_of(records):
        law = dpq.joint_exp_law(
            np.array(records),
            q,
            epsilon=1.0,
            bounds=(0, points - 1),
            neighbors=neighbors,
            resolution=1,
            dither=False,
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
    assert 0.1 < worst <= 1.0 + 1e-9


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_joint_exp_privacy_ratio_of_the_density(neighbors):
    q, x = [0.2, 0.5], [0, 1, 1, 4]
    places = [0.5, 1.0, 1.5, 2.0, 2.5, 3.5, 4.0]

    def law_of(records):
        law = dpq.joint_exp_law(
            records, q, epsilon=1.0, bounds=(0.0, 4.0), neighbors=neighbors, resolution=0
        )
        return {o: law.log_prob(o) for o in combinations_with_replacement(places, 2)}

    base = law_of(x)
    worst = max(enumeration.max_log_ratio(base, law_of(y)) for y in neighbors_of(x, 5, neighbors))
    assert 0.1 < worst <= 1.0 + 1e-9


# Bad input

GOOD = {"x": [1.0, 2.0], "q": [0.5], "epsilon": 1.0, "bounds": (0.0, 4.0)}


@pytest.mark.parametrize("kernel, products", [("scan", 0), ("fft", 1)])
def test_joint_exp_law_computes_by_the_kernel_that_is_asked_for(monkeypatch, kernel, products):
    made = []
    monkeypatch.setattr(toeplitz, "FftForward", lambda: made.append(1) or Scan.forward)
    dpq.joint_exp_law([1.0, 2.0], [0.2, 0.5], epsilon=1.0, bounds=(0, 4), kernel=kernel)
    assert len(made) == products


def test_joint_exp_rejects_unknown_kernel():
    for kernel, error in (("FFT", ValueError), ("", ValueError), (None, TypeError)):
        with pytest.raises(error, match="kernel must be one of 'scan', 'fft', got"):
            dpq.joint_exp([1.0], 0.5, epsilon=1.0, bounds=(0, 4), kernel=kernel)


def test_joint_exp_rejects_other_accountants(implementation):
    with pytest.raises(TypeError, match="accountant must be an Accountant, got float"):
        implementation.joint_exp([1.0], 0.5, epsilon=1.0, bounds=(0, 4), accountant=1.0)


def test_joint_exp_rejects_positional_budget(implementation):
    with pytest.raises(TypeError, match="position"):
        implementation.joint_exp([1.0], 0.5, 1.0, (0, 4))


# The accountant


def test_joint_exp_charges_the_accountant(implementation):
    accountant = privacy.Accountant(1.0)
    options = {"epsilon": 0.6, "bounds": (0.0, 4.0), "accountant": accountant}
    implementation.joint_exp([1.0, 2.0], [0.2, 0.5], rng=1, **options)
    assert accountant.spent.epsilon == 0.6
    with pytest.raises(privacy.BudgetExceeded, match="must fit the budget"):
        implementation.joint_exp(Untouchable(), [0.2, 0.5], **options)
    assert accountant.spent.epsilon == 0.6
    with pytest.raises(AssertionError, match="touched"):
        implementation.joint_exp(Untouchable(), 0.5, epsilon=0.1, bounds=(0.0, 4.0))


def test_joint_exp_charges_a_refused_call_only_if_it_read_a_record(implementation):
    accountant = privacy.Accountant(1.0)

    def refused(**bad):
        arguments = GOOD | {"accountant": accountant} | bad
        with pytest.raises((TypeError, ValueError)):
            implementation.joint_exp(arguments.pop("x"), **arguments)

    for bad in ({"x": np.zeros((2, 2))}, {"bounds": (4.0, 0.0)}, {"resolution": -1}):
        refused(**bad)
    assert accountant.spent.epsilon == 0.0 and accountant.history == ()
    refused(x=["much"])
    assert len(accountant.history) == 1


def test_joint_exp_charges_what_guarantee_says(implementation):
    accountant = privacy.Accountant(3.0, neighbors="add-remove")
    options = {"epsilon": 0.5, "neighbors": "add-remove", "max_contributions": 2}
    implementation.joint_exp([1.0], 0.5, bounds=(0, 4), accountant=accountant, rng=1, **options)
    assert accountant.history == (privacy.guarantee("joint_exp", **options),)


# Edges


@pytest.mark.slow
@pytest.mark.parametrize("x, bounds", EDGES.values(), ids=EDGES.keys())
def test_joint_exp_answers_at_the_edges(x, bounds):
    several = [{}, {"resolution": 0}, {"dither": False}]
    for case in product(Q_EDGES.values(), several, (1e-6, 1e4), ("scan", "fft"), BOTH):
        q, options, epsilon, kernel, neighbors = case
        out = dpq.joint_exp(
            x,
            q,
            epsilon=epsilon,
            bounds=bounds,
            neighbors=neighbors,
            kernel=kernel,
            rng=9,
            **options,
        )
        assert np.isfinite(out).all(), case
        assert (np.diff(out) >= 0.0).all(), case
        assert bounds[0] <= out[0] and out[-1] <= bounds[1], case


@pytest.mark.parametrize("x, bounds", EDGES.values(), ids=EDGES.keys())
def test_joint_exp_fast_equals_reference_at_the_edges(x, bounds):
    several = ["one", "1e-12 apart", "ends", "one ulp apart"]
    for case in product(several, (None, 0), (1e-6, 1.0, 1e4)):
        q, resolution, epsilon = case
        levels = Q_EDGES[q]
        options = {"epsilon": epsilon, "bounds": bounds, "resolution": resolution, "dither_rng": 4}
        law = dpq.joint_exp_law(x, levels, **options)
        expected = reference.joint_exp_law(x, levels, **options)
        # not at the low bound of a density, which has a test of its own
        for o in [*law.sample(3, 3), np.full(len(levels), bounds[1])]:
            if resolution == 0:
                o = np.maximum(o, np.nextafter(bounds[0], np.inf))
            assert law.log_prob(o) == pytest.approx(expected.log_prob(o), abs=1e-10), case


@pytest.mark.parametrize("m", [1, 2, 4])
def test_joint_exp_law_of_no_records_is_uniform(implementation, m):
    q = np.linspace(0.1, 0.9, m)
    for x in ([], [np.nan, np.nan]):
        law = implementation.joint_exp_law(
            x, q, epsilon=1.0, bounds=(0.0, 5.0), resolution=1, dither=False
        )
        for o in combinations_with_replacement(range(6), m):
            expected = -math.log(math.comb(6 + m - 1, m))
            assert law.log_prob(np.array(o, dtype=float)) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("n", [1_000, 200_000])
@pytest.mark.parametrize("value", [0, 3, 10])
def test_joint_exp_finds_the_value_of_constant_data(n, value):
    out = dpq.joint_exp(np.full(n, value), [0.1, 0.5, 0.9], epsilon=1.0, bounds=(0, 10), rng=2)
    assert out.tolist() == [value] * 3


# Manners


@pytest.mark.parametrize("q", [0.5, [0.5], [[0.9, 0.1], [0.5, 0.9]], [0.0, 1.0], [0.5] * 5])
def test_joint_exp_answers_in_the_shape_of_q(implementation, q):
    out = implementation.joint_exp(np.arange(40) % 7, q, epsilon=1.0, bounds=(0, 10), rng=4)
    assert np.shape(out) == np.shape(q)
    assert isinstance(out, float if np.ndim(q) == 0 else np.ndarray)
    order = np.argsort(np.ravel(q), kind="stable")
    assert (np.diff(np.ravel(out)[order]) >= 0.0).all()
    for level in np.unique(q):
        assert np.unique(np.asarray(out)[np.asarray(q) == level]).size == 1


def test_joint_exp_releases_duplicates_once(implementation):
    x = np.arange(30) % 7
    options = {"epsilon": 1.0, "bounds": (0, 10), "rng": 6}
    once = implementation.joint_exp(x, [0.2, 0.7], **options)
    twice = implementation.joint_exp(x, [0.7, 0.2, 0.7, 0.2], **options)
    assert twice.tolist() == [once[1], once[0], once[1], once[0]]


@pytest.mark.parametrize("kernel", ["scan", "fft"])
def test_joint_exp_is_reproducible_by_seed(kernel):
    x = np.random.default_rng(0).integers(0, 50, size=300)
    options = {"epsilon": 0.1, "bounds": (0, 50), "kernel": kernel}
    q = [0.1, 0.5, 0.9]
    outs = [
        dpq.joint_exp(x, q, rng=rng, **options)
        for rng in (7, np.random.default_rng(7), np.random.PCG64(7), np.random.SeedSequence(7), 8)
    ]
    for out in outs[1:4]:
        np.testing.assert_array_equal(out, outs[0])
    assert not np.array_equal(outs[4], outs[0])
    fresh = [tuple(dpq.joint_exp(x, q, **options)) for _ in range(5)]
    assert len(set(fresh)) > 1


def test_joint_exp_draws_one_after_the_other_from_a_generator(implementation):
    rng = np.random.default_rng(7)
    x = np.arange(20.0)
    first, second = (
        implementation.joint_exp(x, 0.5, epsilon=1.0, bounds=(0, 20), rng=rng) for _ in range(2)
    )
    assert first != second


@pytest.mark.parametrize("options", [{}, {"resolution": 1}, {"resolution": 0}], ids=str)
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_joint_exp_leaves_input_unchanged(implementation, dtype, options):
    x = (np.random.default_rng(1).integers(0, 20, size=90)).astype(dtype)
    q, counts = np.array([0.9, 0.1]), np.arange(45) % 6
    kept = x.copy(), q.copy(), counts.copy()
    arguments = {"epsilon": 1.0, "bounds": (0.0, 20.0), "rng": 3, **options}
    strided = implementation.joint_exp(x[::2], q, counts=counts, **arguments)
    contiguous = implementation.joint_exp(x[::2].copy(), q, counts=counts, **arguments)
    np.testing.assert_array_equal(strided, contiguous)
    for array in (x, q, counts):
        array.flags.writeable = False
    again = implementation.joint_exp(x[::2], q, counts=counts, **arguments)
    np.testing.assert_array_equal(again, strided)
    for array, before in zip((x, q, counts), kept, strict=True):
        np.testing.assert_array_equal(array, before)


def test_joint_exp_law_is_zero_off_the_support(implementation):
    law = implementation.joint_exp_law(
        [1.0, 2.0], [0.5, 0.2, 0.5], epsilon=1.0, bounds=(0.0, 4.0), resolution=1, dither_rng=0
    )
    assert math.isfinite(law.log_prob([2.0, 1.0, 2.0]))
    for o in (
        [1.0, 2.0, 1.0],  # decreasing in q
        [2.0, 1.0, 3.0],  # one level, two answers
        [2.0, 0.5, 2.0],  # off the lattice
        [5.0, 1.0, 5.0],  # outside the bounds
        [2.0, math.nan, 2.0],
        [math.inf, 1.0, math.inf],
    ):
        assert law.log_prob(o) == -math.inf
    for o in (1.0, [1.0, 2.0], [[2.0, 1.0, 2.0]]):
        with pytest.raises(ValueError, match="o must have the shape of q"):
            law.log_prob(o)


def test_joint_exp_law_is_conditional_on_its_dither():
    options = {"epsilon": 1.0, "bounds": (0, 4), "resolution": 1}
    laws = [
        tabulate(dpq.joint_exp_law([1, 1, 2, 4], [0.5], dither_rng=seed, **options), 5, 1)
        for seed in (8, 8, 9)
    ]
    assert laws[0] == laws[1] != laws[2]
    for law in laws:
        assert enumeration.log_sum(law.values()) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("law_of", [dpq.joint_exp_law, dpq.ind_exp_law, dpq.approx_quantiles_law])
def test_more_outputs_than_memory_holds_are_refused(law_of):
    law = law_of([1.0, 2.0], 0.5, epsilon=1.0, bounds=(0, 10))
    with pytest.raises(ValueError, match=r"^size must make at most 2\^32 draws, got 10995"):
        law.sample(size=2**40)
