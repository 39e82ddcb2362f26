"""AboveThreshold, both implementations: known values, each other, draws, and the promise."""

from __future__ import annotations

import itertools
import math
import time
import tracemalloc

import mpmath
import numpy as np
import pytest
from conftest import IMPLEMENTATIONS, assert_draws_follow, pure_rho, range_rho
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.data import passes
from dpq_fast.laws.halting import HaltingLaw
from dpq_fast.noise.threshold import NOISES as LAWS

NOISES = ("exponential", "laplace", "gumbel")
BUDGET = {"epsilon1": 1.0, "epsilon2": 1.0}


def log_probs(law, n):
    """Of halting at each of n queries, and at none."""
    return np.array([law.log_prob(k) for k in [*range(n), None]])


def steps_of(gaps, lengths):
    """Runs, written out."""
    return np.repeat(np.array(gaps, dtype=float), lengths)


# Known values


def test_above_threshold_known_values_of_gumbel(implementation):
    # Lemma 3.3 with w = 1, e, 1/e (T = 3): 1/2, then e/((2)(2 + e)), ...
    law = implementation.above_threshold_law([3, 4, 2], 3, noise="gumbel", **BUDGET)
    e, total = math.e, [1.0, 2.0, 2.0 + math.e, 2.0 + math.e + 1.0 / math.e]
    expected = [1 / (total[0] * total[1]), e / (total[1] * total[2]), 1 / e / (total[2] * total[3])]
    np.testing.assert_allclose(np.exp(log_probs(law, 3)), [*expected, 1 / total[3]], rtol=1e-14)


def test_above_threshold_known_values_of_exponential(implementation):
    # P[pass d] for d >= 0: int_d^inf e^-z (1 - e^(d-z)) dz = e^-d / 2
    # P[pass d] for d < 0: int_0^inf e^-z (1 - e^d e^-z) dz = 1 - e^d / 2
    for gap, passed in ((0.0, 0.5), (2.0, math.exp(-2.0) / 2), (-2.0, 1 - math.exp(-2.0) / 2)):
        law = implementation.above_threshold_law([gap], 0, **BUDGET)
        assert law.log_prob(None) == pytest.approx(math.log(passed), abs=1e-13)
        assert law.log_prob(0) == pytest.approx(math.log1p(-passed), abs=1e-13)
    # two queries at the threshold, rates 1 and 2: int_0^1 (1 - v^2)^2 dv
    law = implementation.above_threshold_law([0, 0], 0, epsilon1=1.0, epsilon2=2.0)
    assert math.exp(law.log_prob(None)) == pytest.approx(8.0 / 15.0, abs=1e-13)
    assert math.exp(law.log_prob(1)) == pytest.approx(2.0 / 3.0 - 8.0 / 15.0, abs=1e-13)


def test_above_threshold_known_values_of_laplace(implementation):
    # P[nu - nu_i > d], of two Laplace variates of rate 1: (1/2 + d/4) e^-d for d > 0
    for gap in (0.0, 1.0, 3.0):
        law = implementation.above_threshold_law([gap], 0, noise="laplace", **BUDGET)
        passed = (0.5 + gap / 4.0) * math.exp(-gap)
        assert law.log_prob(None) == pytest.approx(math.log(passed), abs=1e-13)


@pytest.mark.parametrize("noise", NOISES)
def test_above_threshold_takes_infinities_and_nan(implementation, noise):
    law = implementation.above_threshold_law(
        [np.nan, -np.inf, 0.0, np.inf, 5.0], 0, noise=noise, **BUDGET
    )
    found = log_probs(law, 5)
    assert (found[[0, 1, 4, 5]] == -np.inf).all()
    assert np.logaddexp(found[2], found[3]) == pytest.approx(0.0, abs=1e-14)
    for queries in ([np.nan, -np.inf, np.inf], iter([math.nan, -math.inf, math.inf])):
        assert implementation.above_threshold(queries, 1e9, noise=noise, **BUDGET) == 2
    assert implementation.above_threshold([math.nan, -1e300], 0, noise=noise, **BUDGET) is None
    assert implementation.above_threshold([1e308], -1e308, noise=noise, **BUDGET) == 0
    assert implementation.above_threshold([], 0, noise=noise, **BUDGET) is None


def test_above_threshold_law_is_zero_off_the_support(implementation):
    law = implementation.above_threshold_law([0.0, 1.0], 0, **BUDGET)
    assert law.log_prob(-1) == law.log_prob(2) == -math.inf
    empty = implementation.above_threshold_law([], 0, **BUDGET)
    assert empty.log_prob(None) == pytest.approx(0.0, abs=1e-14)
    assert empty.log_prob(0) == -math.inf


def test_above_threshold_divides_by_sensitivity(implementation):
    for noise in NOISES:
        wide = implementation.above_threshold_law(
            [1.0, 6.0], 2.0, sensitivity=4.0, noise=noise, **BUDGET
        )
        unit = implementation.above_threshold_law([0.25, 1.5], 0.5, noise=noise, **BUDGET)
        np.testing.assert_allclose(log_probs(wide, 2), log_probs(unit, 2), atol=1e-13)


# Fast equals reference

gap_lists = st.lists(
    st.one_of(st.integers(-4, 4).map(float), st.floats(-9, 9), st.just(-math.inf)),
    min_size=1,
    max_size=5,
)


@settings(max_examples=40)
@example([1e-15], 1.5, 1.0, "exponential")
@given(gap_lists, st.floats(0.2, 4.0), st.floats(0.2, 4.0), st.sampled_from(NOISES))
def test_above_threshold_law_fast_equals_reference(gaps, epsilon1, epsilon2, noise):
    budget = {"epsilon1": epsilon1, "epsilon2": epsilon1 if noise == "gumbel" else epsilon2}
    fast, reference = (
        log_probs(package.above_threshold_law(gaps, 0, noise=noise, **budget), len(gaps))
        for package in IMPLEMENTATIONS.values()
    )
    np.testing.assert_allclose(fast, reference, rtol=0, atol=1e-9)
    assert np.logaddexp.reduce(fast) == pytest.approx(0.0, abs=1e-12)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.floats(-9, 9), st.integers(0, 4)), min_size=1, max_size=6),
    st.floats(0.1, 10.0),
    st.floats(0.1, 10.0),
    st.sampled_from(NOISES),
)
def test_halting_law_of_runs_is_that_of_steps(runs, rate1, rate2, noise):
    gaps, lengths = (np.array(part) for part in zip(*runs, strict=True))
    rate2 = rate1 if noise == "gumbel" else rate2
    n = int(lengths.sum())
    law = HaltingLaw(gaps, lengths, rate1, rate2, LAWS[noise])
    written_out = HaltingLaw(
        steps_of(gaps, lengths), np.ones(n, dtype=np.int64), rate1, rate2, LAWS[noise]
    )
    np.testing.assert_allclose(
        law.log_probs(np.arange(n + 1)), written_out.log_probs(np.arange(n + 1)), atol=1e-11
    )
    assert law.log_never() == pytest.approx(written_out.log_never(), abs=1e-11)


def exact_log_prob(k, runs, noise, rate1, rate2):
    """The integral in 20 digits, in panels of 1, without those below e^-60 of the largest."""
    passed, halts = [], None
    for gap, length in runs:
        used = length if k is None else min(length, k)
        passed.append((mpmath.mpf(gap), used))
        if k is not None and k < length:
            halts = mpmath.mpf(gap)
            break
        k = None if k is None else k - length

    def log_f(x):
        if noise == "exponential":
            return mpmath.log(-mpmath.expm1(-x)) if x > 0 else -mpmath.inf
        return x - mpmath.log(2) if x < 0 else mpmath.log1p(-mpmath.exp(-x) / 2)

    def log_integrand(z):
        log_p = -rate1 * abs(z) + mpmath.log(rate1 if noise == "exponential" else rate1 / 2)
        log_p += mpmath.fsum(n * log_f(rate2 * (z - gap)) for gap, n in passed if n)
        if halts is not None:
            x = rate2 * (z - halts)
            log_p += -max(x, 0) if noise == "exponential" else log_f(-x)
        return log_p

    gaps = [0, *(gap for gap, n in passed if n)]
    low = max(gaps) if noise == "exponential" else min(gaps) - 80
    cuts = {low + mpmath.mpf(i) for i in range(int(max(gaps) + 130 - low))}
    cuts |= {mpmath.mpf(gap) for gap, _ in runs if low < gap} | {mpmath.mpf(max(0, low))}
    cuts = sorted(cuts)
    logs = [log_integrand(z) for z in cuts]
    # one mode: what counts lies between cuts that are not negligible, and next to them
    top = max(logs)
    large = [i for i, log_p in enumerate(logs) if log_p > top - 60]
    kept = cuts[max(large[0] - 1, 0) : large[-1] + 2]
    integral = mpmath.quad(
        lambda z: mpmath.exp(log_integrand(z) - top), kept, method="gauss-legendre"
    )
    return top + mpmath.log(integral)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["exponential", "laplace"])
@pytest.mark.parametrize(
    "runs",
    [
        [(-30.0, 2**53), (-36.0, 2**40)],
        [(5.0, 40), (-20.0, 10**9), (6.5, 3)],
        [(60.0, 2), (-3.0, 1)],
    ],
    ids=str,
)
def test_halting_law_is_exact_for_long_runs_and_rare_events(noise, runs):
    gaps, lengths = np.array([gap for gap, _ in runs]), np.array([n for _, n in runs])
    rate1, rate2 = 1.0, 1.25
    law = HaltingLaw(gaps, lengths, rate1, rate2, LAWS[noise])
    first = lengths[0]
    with mpmath.workdps(20):
        for k in (0, int(first // 3), int(first), int(lengths.sum()) - 1, None):
            found = law.log_never() if k is None else law.log_prob(k)
            expected = exact_log_prob(k, runs, noise, rate1, rate2)
            if expected > -700:
                assert abs(found - expected) < 1e-9, k


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rate", [1e-20, 1.0, 1e20])
def test_halting_law_of_most_equal_queries(noise, rate):
    """None of n queries halts if the threshold's noise is the largest of n + 1 alike."""
    law = HaltingLaw(np.zeros(512), np.full(512, 2**53 - 1), rate, rate, LAWS[noise])
    assert law.log_never() == pytest.approx(-math.log(512.0 * (2**53 - 1)), abs=1e-9)


@pytest.mark.parametrize("unit", [1e-18, 1.0, 1e18])
@pytest.mark.parametrize(
    "ratio, n",
    [(1e-3, 2**53), (0.125, 10**6), (1.0001, 2**53), (8, 10**6), (100, 1_000), (1_000, 200)],
)
def test_halting_law_of_equal_queries_is_a_beta_function(unit, ratio, n):
    """With rates A and B, none of n halts with probability A/B times Beta(A/B, n + 1)."""
    law = HaltingLaw(np.zeros(1), np.array([n]), ratio / unit, 1.0 / unit, LAWS["exponential"])
    with mpmath.workdps(40):
        expected = mpmath.log(ratio) + mpmath.log(mpmath.beta(ratio, n + 1))
    assert law.log_never() == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
@pytest.mark.parametrize("rate1, rate2", [(1.0, 8.0), (8.0, 1.0), (1.0, 1.0)])
@pytest.mark.parametrize("unit", [1e-18, 1e18])
def test_halting_law_does_not_depend_on_the_unit(noise, rate1, rate2, unit):
    gaps, lengths = np.array([-2.0, 3.0, 0.5, 4.0]), np.array([2**50, 3, 0, 10**6])
    steps = [0, 2**20, 2**50, 2**50 + 1, 2**50 + 3, 2**50 + 900]
    law = HaltingLaw(gaps, lengths, rate1, rate2, LAWS[noise])
    scaled = HaltingLaw(gaps * unit, lengths, rate1 / unit, rate2 / unit, LAWS[noise])
    np.testing.assert_allclose(scaled.log_probs(steps), law.log_probs(steps), rtol=0, atol=1e-9)
    assert scaled.log_never() == pytest.approx(law.log_never(), abs=1e-9)


def test_above_threshold_law_has_log_prob_of_late_queries():
    """Of n equal queries at the threshold, equal gumbel budgets: 1 / ((k + 1)(k + 2)) for k."""
    law = dpq.above_threshold_law(np.zeros(300), 0, epsilon1=1.0, epsilon2=1.0, noise="gumbel")
    for k in (0, 125, 126, 127, 299):
        assert law.log_prob(k) == pytest.approx(-math.log((k + 1.0) * (k + 2.0)), abs=1e-12)


def test_above_threshold_law_draws_the_first_query():
    law = dpq.above_threshold_law([math.inf, 0.0], 0, epsilon1=1.0, epsilon2=1.0)
    assert law.sample(1) == 0
    assert law.sample(1, size=2).tolist() == [0, 0]


@pytest.mark.parametrize("noise", NOISES)
def test_halting_law_of_two_hundred_runs_takes_no_time(noise):
    gaps = np.random.default_rng(3).normal(size=200) * 5.0
    law = HaltingLaw(gaps, np.full(200, 1000), 1.0, 1.0, LAWS[noise])
    start = time.process_time()
    probs = np.exp(law.log_probs(np.arange(0, 200_000, 1000)))
    assert time.process_time() - start < 1.0
    assert 0.0 < probs.sum() + math.exp(law.log_never()) < 1.0


# Draws

STREAMS = {
    "rising": np.arange(-6.0, 7.0),
    "falling": np.arange(3.0, -6.0, -1.0),
    "mixed": np.array([-4.0, 2.0, -9.0, -2.0, -2.0, -2.0, 0.5, -40.0, 1.0, -1.0]),
    "equal": np.full(12, -1.5),
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("stream", list(STREAMS))
def test_above_threshold_draws_follow_the_law(implementation, noise, stream):
    queries = STREAMS[stream]
    law = implementation.above_threshold_law(queries, 0, noise=noise, **BUDGET)
    size = 15_000 if implementation is dpq else 3_000
    drawn = law.sample(rng=1, size=size)
    outputs = [*range(queries.size), -1]
    expected = dict(zip(outputs, log_probs(law, queries.size), strict=True))
    assert_draws_follow(drawn.tolist(), expected)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_above_threshold_of_iterators_and_arrays_follows_the_law(implementation, noise):
    queries = [5.0, -2.0, 7, 4.0]
    rng = np.random.default_rng(2)
    law = implementation.above_threshold_law(queries, 6.5, noise=noise, **BUDGET)
    expected = dict(zip([*range(4), None], log_probs(law, 4), strict=True))
    for read in (iter, list):
        drawn = [
            implementation.above_threshold(read(queries), 6.5, noise=noise, rng=rng, **BUDGET)
            for _ in range(4_000)
        ]
        assert_draws_follow(drawn, expected)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_above_threshold_of_long_arrays_follows_the_law(noise):
    """Many queries are passed by the largest of them; each must halt as often as it should."""
    rng = np.random.default_rng(5)
    queries = np.where(rng.uniform(size=800) < 0.02, -3.0, rng.uniform(-12.0, -6.0, 800))
    law = HaltingLaw(queries, np.ones(800, dtype=np.int64), 1.0, 1.0, LAWS[noise])
    expected = dict(enumerate(law.log_probs(np.arange(800)))) | {None: law.log_never()}
    drawn = [
        dpq.above_threshold(queries, 0.0, noise=noise, rng=rng, **BUDGET) for _ in range(20_000)
    ]
    assert_draws_follow(drawn, expected)


@pytest.mark.parametrize("noise", NOISES)
def test_halting_law_draws_of_runs_follow_the_law(noise):
    gaps, lengths = np.array([-3.0, -8.0, -1.0, 2.0]), np.array([6, 5_000, 0, 3])
    law = HaltingLaw(gaps, lengths, 0.7, 0.7, LAWS[noise])
    found = law.log_probs(np.arange(5_009))
    expected = dict(zip(range(5_009), found.tolist(), strict=True)) | {-1: law.log_never()}
    assert_draws_follow(law.draw(np.random.default_rng(3), 40_000).tolist(), expected)
    assert isinstance(law.draw(np.random.default_rng(3)), int)


@pytest.mark.parametrize("read", [iter, list])
def test_sparse_vector_follows_the_law(implementation, read):
    """The second halt has the law of the queries after the first, with fresh noise."""
    queries = [1.0, -1.0, 0.0, 2.0]
    expected = {}
    first = implementation.above_threshold_law(queries, 0.0, **BUDGET)
    for k in range(4):
        rest = implementation.above_threshold_law(queries[k + 1 :], 0.0, **BUDGET)
        for j in range(3 - k):
            expected[k, k + 1 + j] = first.log_prob(k) + rest.log_prob(j)
        expected[(k,)] = first.log_prob(k) + rest.log_prob(None)
    expected[()] = first.log_prob(None)
    rng = np.random.default_rng(4)
    drawn = [
        tuple(implementation.sparse_vector(read(queries), 0.0, halts=2, rng=rng, **BUDGET).tolist())
        for _ in range(5_000)
    ]
    assert_draws_follow(drawn, expected)


def test_above_threshold_is_reproducible(implementation):
    queries = np.linspace(-5, 5, 50)
    drawn = [
        implementation.sparse_vector(queries, 0, halts=5, rng=rng, **BUDGET).tolist()
        for rng in (7, np.random.default_rng(7), 8)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    law = implementation.above_threshold_law(queries, 0, **BUDGET)
    assert law.sample(3) == law.sample(3) == law.sample(3, size=1)[0]


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32, np.float64])
def test_above_threshold_leaves_input_unchanged(implementation, dtype):
    queries = np.arange(40).astype(dtype)
    queries.flags.writeable = False
    strided = implementation.above_threshold(queries[::2], 20, rng=1, **BUDGET)
    copied = implementation.above_threshold(queries[::2].tolist(), 20, rng=1, **BUDGET)
    assert strided == copied
    np.testing.assert_array_equal(queries, np.arange(40).astype(dtype))


# Pieces of an array


@pytest.mark.parametrize("noise", NOISES)
def test_halts_do_not_depend_on_pieces(monkeypatch, noise):
    """One stream goes on from piece to piece: the same halts and state of the generator."""
    draw = np.random.default_rng(3)
    n = 3_000
    columns = [
        draw.normal(0.0, 5.0, n),
        draw.integers(-9, 9, n),
        draw.normal(0.0, 5.0, 2 * n).astype(np.float32)[::2],
        np.where(draw.random(n) < 0.5, np.nan, -0.0),
        np.repeat([0.0, -np.inf, 3.0, np.inf], n // 4),
        np.empty(0),
    ]
    for queries, threshold, halts, seed in itertools.product(
        columns, (0, 16, 60), (1, 3, 99), (1, 2)
    ):
        found = []
        for size in (256, 1024, 4096):
            monkeypatch.setattr(passes, "PLAIN", size)
            monkeypatch.setattr(passes, "CONVERTED", size)
            rng = np.random.default_rng(seed)
            drawn = dpq.sparse_vector(
                queries, threshold, halts=halts, noise=noise, rng=rng, **BUDGET
            )
            first = dpq.above_threshold(queries, threshold, noise=noise, rng=rng, **BUDGET)
            found.append((drawn.tolist(), first, rng.bit_generator.state))
        assert all(one == found[-1] for one in found)


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_an_array_is_not_copied_whole(dtype):
    queries = np.zeros(10**6, dtype=dtype)
    tracemalloc.start()
    try:
        assert dpq.above_threshold(queries, 1e6, **BUDGET) is None
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


# Iterators


def test_above_threshold_does_not_read_beyond_the_halt(implementation):
    for seed in range(20):
        queries = itertools.count()
        k = implementation.above_threshold(queries, 50, rng=seed, **BUDGET)
        assert next(queries) == k + 1
        queries = itertools.count()
        steps = implementation.sparse_vector(queries, 50, halts=3, rng=seed, **BUDGET)
        assert next(queries) == steps[-1] + 1 and steps.size == 3


def test_above_threshold_returns_at_once_for_a_threshold_out_of_reach():
    queries = np.random.default_rng(1).normal(size=10**6)
    for noise in NOISES:
        start = time.process_time()
        assert dpq.above_threshold(queries, 1e300, noise=noise, **BUDGET) is None
        assert time.process_time() - start < 1.0
    law = HaltingLaw(
        np.array([-1e300, -800.0]), np.array([2**53, 2**53]), 1.0, 1.0, LAWS["exponential"]
    )
    assert law.draw(np.random.default_rng(0)) == -1


def test_above_threshold_charges_an_iterator_before_it_is_read(implementation):
    accountant = privacy.Accountant(5.0)

    def queries():
        assert accountant.spent.epsilon == 3.0
        yield -1e9
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError, match="the source failed"):
        implementation.above_threshold(queries(), 0, accountant=accountant, **BUDGET)
    assert accountant.spent.epsilon == 3.0  # it is known that the first query did not halt
    source = iter([1.0])
    with pytest.raises(privacy.BudgetExceeded):
        implementation.above_threshold(source, 0, accountant=accountant, **BUDGET)
    assert next(source) == 1.0
    implementation.above_threshold([1.0], 0, monotonic=True, accountant=accountant, **BUDGET)
    assert accountant.spent.epsilon == 5.0


# Privacy


def pairs(values, n):
    """All query vectors, with what a neighbor adds to them, for sensitivity 1."""
    return itertools.product(
        itertools.product(values, repeat=n), itertools.product((-1, 0, 1), repeat=n)
    )


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_above_threshold_keeps_its_promise_and_no_more(noise):
    """Over neighbors: the claimed epsilon and range, and the one-sided loss of each pair."""
    epsilon1, epsilon2 = (0.5, 0.5) if noise == "gumbel" else (0.6, 0.4)
    tables = {}

    def table(queries):
        if queries not in tables:
            law = dpq.above_threshold_law(
                queries, 0, epsilon1=epsilon1, epsilon2=epsilon2, noise=noise
            )
            tables[queries] = log_probs(law, len(queries))
        return tables[queries]

    largest = {"general": 0.0, "monotonic": 0.0, "range": 0.0}
    # the last: far below the threshold and far above, where Laplace noise shows its tails
    far = (((-60, 60, 60, 60, 60, -60), (1, 1, 1, 1, 1, last)) for last in (0, -1))
    for queries, change in itertools.chain(
        pairs((-3, 0, 2), 1), pairs((-40, 0, 1), 2), pairs((-2, 0, 2), 3), far
    ):
        neighbor = tuple(a + b for a, b in zip(queries, change, strict=True))
        ratio = table(queries) - table(neighbor)
        loss = privacy.one_sided_loss(queries, neighbor, epsilon1, epsilon2)
        back = privacy.one_sided_loss(neighbor, queries, epsilon1, epsilon2)
        assert ratio.max() <= loss + 1e-9
        assert np.ptp(ratio) <= loss + back + 1e-9
        monotonic = min(change) >= 0 or max(change) <= 0
        kind = "monotonic" if monotonic else "general"
        largest[kind] = max(largest[kind], ratio.max())
        budget = dict(epsilon1=epsilon1, epsilon2=epsilon2, monotonic=monotonic)
        calibration = privacy.above_threshold.calibrate(**budget)
        assert loss <= calibration.epsilon + 1e-12
        if monotonic:
            largest["range"] = max(largest["range"], np.ptp(ratio))
            assert loss + back <= calibration.bounded_range + 1e-12
    for kind, bound in (
        ("general", epsilon1 + 2 * epsilon2),
        ("monotonic", epsilon1 + epsilon2),
        ("range", epsilon1 + 2 * epsilon2),
    ):
        assert 0.9 * bound < largest[kind] <= bound + 1e-9, kind


def test_one_sided_loss_known_values():
    loss = privacy.one_sided_loss
    # queries that fall cost epsilon2, that rise epsilon1 of what rose before
    assert loss([2, 2], [1, 1], 0.25, 1.0) == 1.0
    assert loss([1, 1], [2, 2], 0.25, 1.0) == 0.25
    assert loss([1, 1], [2, 1], 0.25, 1.0) == 1.25
    assert loss([1, 1], [2, 0], 0.25, 1.0) == 2.25
    assert loss([4, 4], [8, 0], 0.25, 1.0, sensitivity=4.0) == 2.25
    # one query that rises: to halt at none is less likely on the neighbor
    assert loss([0], [1], 0.25, 1.0) == 0.25
    assert loss([], [], 1.0, 1.0) == 0.0


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_one_sided_loss_of_counts_whose_threshold_moves(q):
    """[Dur23] Lemma B.1: counts below growing thresholds, minus q n, one record more or less."""
    epsilon1, epsilon2 = 0.7, 0.3
    largest = 0.0
    for place in range(6):  # where the new record enters
        change = (np.arange(5) >= place) - q
        for sign in (1.0, -1.0):
            loss = privacy.one_sided_loss(np.zeros(5), sign * change, epsilon1, epsilon2)
            largest = max(largest, loss)
    bound = max((1 - q) * epsilon1, q * epsilon1 + epsilon2)
    assert largest == pytest.approx(bound, abs=1e-12)


def test_one_sided_loss_rejects_what_is_no_pair():
    with pytest.raises(ValueError, match=r"f_x and f_x2 must be one-dimensional and of one length"):
        privacy.one_sided_loss([1.0], [1.0, 2.0], 1.0, 1.0)
    with pytest.raises(ValueError, match="f_x and f_x2 must be finite"):
        privacy.one_sided_loss([math.nan], [1.0], 1.0, 1.0)


def test_above_threshold_guarantees():
    general = privacy.guarantee("above_threshold", epsilon1=0.5, epsilon2=1.0)
    assert (general.epsilon, general.rho, general.bounded_range) == (2.5, None, None)
    monotonic = privacy.guarantee(
        "above_threshold", epsilon1=0.5, epsilon2=1.0, monotonic=True, neighbors="add-remove"
    )
    assert (monotonic.epsilon, monotonic.bounded_range) == (1.5, 2.5)
    assert monotonic.rho == pytest.approx(range_rho(2.5))
    assert monotonic.rho < (0.5 / 2 + 1.0) ** 2 / 2  # [Dur23] Theorem 1
    assert monotonic.neighbors == "add-remove"
    parameters = {"epsilon1": 0.5, "epsilon2": 1.0, "monotonic": True, "neighbors": "add-remove"}
    assert privacy.guarantee("sparse_vector", halts=1, **parameters) == monotonic
    several = privacy.guarantee("sparse_vector", halts=4, **parameters)
    assert (several.epsilon, several.bounded_range) == (6.0, None)
    assert several.rho == 4 * monotonic.rho and several.composition == "basic"
    several = privacy.guarantee("sparse_vector", halts=4, epsilon1=0.5, epsilon2=1.0)
    assert (several.epsilon, several.rho) == (10.0, pytest.approx(4 * pure_rho(2.5)))


# Errors

GOOD = {"queries": [1.0, 2.0], "threshold": 1.0, "epsilon1": 1.0, "epsilon2": 1.0}
BAD = [
    ({"threshold": math.nan}, ValueError, "threshold must be finite, got nan"),
    ({"threshold": math.inf}, ValueError, "threshold must be finite, got inf"),
    ({"threshold": "1"}, TypeError, "threshold must be a real number, got '1'"),
    ({"epsilon1": 0.0}, ValueError, "epsilon1 must be positive and finite, got 0.0"),
    ({"epsilon2": math.nan}, ValueError, "epsilon2 must be positive and finite, got nan"),
    ({"epsilon2": None}, TypeError, "epsilon2 must be a real number, got None"),
    ({"sensitivity": -1}, ValueError, "sensitivity must be positive and finite, got -1.0"),
    ({"sensitivity": 1e-320}, ValueError, "over sensitivity must be positive and finite"),
    ({"noise": "gauss"}, ValueError, "noise must be one of 'exponential', 'laplace', 'gumbel'"),
    (
        {"noise": "gumbel", "epsilon1": 2.0},
        ValueError,
        "epsilon1 and epsilon2 must be equal for noise 'gumbel', got 2.0 and 1.0",
    ),
    ({"queries": np.ones((1, 1))}, ValueError, "queries must be one-dimensional or an iterator"),
    ({"queries": 3.0}, ValueError, "queries must be one-dimensional or an iterator"),
    ({"queries": np.array(["a"])}, TypeError, "queries must be real numbers, got dtype"),
    ({"queries": np.array([True])}, TypeError, "queries must be real numbers, got dtype bool"),
]
BAD_RELEASE = [
    ({"monotonic": 1}, TypeError, "monotonic must be True or False, got 1"),
    ({"neighbors": "any"}, ValueError, "neighbors must be one of 'swap', 'add-remove'"),
    ({"accountant": 1.0}, TypeError, "accountant must be an Accountant, got float"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD, ids=str)
def test_above_threshold_rejects_bad_arguments(implementation, change, error, message):
    for function, more in (
        (implementation.above_threshold, {}),
        (implementation.above_threshold_law, {}),
        (implementation.sparse_vector, {"halts": 2}),
    ):
        with pytest.raises(error, match=message):
            function(**{**GOOD, **more, **change})


@pytest.mark.parametrize(("change", "error", "message"), BAD_RELEASE, ids=str)
def test_above_threshold_release_rejects_bad_arguments(implementation, change, error, message):
    with pytest.raises(error, match=message):
        implementation.above_threshold(**{**GOOD, **change})


@pytest.mark.parametrize(("item", "name"), [("secret", "str"), (True, "bool"), (None, "NoneType")])
def test_above_threshold_rejects_items_without_showing_them(implementation, item, name):
    with pytest.raises(TypeError, match=f"queries must be real numbers, got an item of {name}$"):
        implementation.above_threshold(iter([-1e9, item]), 0, **BUDGET)


def test_arrays_of_a_wrong_form_are_refused_before_the_charge():
    accountant = privacy.Accountant(9.0)
    for queries, error in ((np.zeros((2, 2)), ValueError), (np.array(["a"]), TypeError)):
        with pytest.raises(error, match="queries must be"):
            dpq.above_threshold(queries, 0, accountant=accountant, **BUDGET)
    assert accountant.history == ()


@pytest.mark.parametrize(
    "promise",
    [
        {},
        {"monotonic": True},
        {"neighbors": "add-remove"},
        {"noise": "gumbel", "monotonic": True, "neighbors": "add-remove"},
    ],
    ids=str,
)
def test_sparse_vector_charges_what_it_guarantees(implementation, promise):
    accountant = privacy.Accountant(9.0, neighbors=promise.get("neighbors", "swap"))
    implementation.sparse_vector(
        [1.0], 0, halts=2, accountant=accountant, rng=1, **BUDGET, **promise
    )
    guarantee = privacy.guarantee("sparse_vector", halts=2, **BUDGET, **promise)
    assert accountant.history == (guarantee,)


def test_sparse_vector_rejects_bad_halts(implementation):
    with pytest.raises(ValueError, match="halts must be at least 1, got 0"):
        implementation.sparse_vector(**GOOD, halts=0)
    with pytest.raises(TypeError, match=r"halts must be an integer, got 1\.5$"):
        implementation.sparse_vector(**GOOD, halts=1.5)


@pytest.mark.parametrize("k", [-1, 3, 2**63, -(2**64)])
def test_queries_that_there_are_not_have_no_probability(k):
    law = dpq.above_threshold_law([0.0, 1.0, 4.0], 2.0, epsilon1=1.0, epsilon2=1.0)
    assert law.log_prob(k) == -math.inf


def test_queries_in_a_list_are_taken_one_by_one(implementation):
    """What NumPy makes of a list depends on the largest of its integers."""
    budget = dict(epsilon1=1.0, epsilon2=1.0, rng=1)
    for large in (2**63, 2**64, 2**70, 10**400):
        for queries in ([0, large], (0.0, large), iter([0, large])):
            assert implementation.above_threshold(queries, 50, **budget) == 1
            law = implementation.above_threshold_law([-(10**6), large], 50, epsilon1=1, epsilon2=1)
            assert law.log_prob(1) == pytest.approx(0.0, abs=1e-12)
    for queries in ([[0], [1]], ["1"], [True], [None]):
        with pytest.raises(TypeError, match="queries must be real numbers, got an item of "):
            implementation.above_threshold(queries, 50, **budget)
