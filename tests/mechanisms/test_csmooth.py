"""CSmooth: the sensitivity against its definition, the noise against its law, and the promise."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from cases import EDGES, Q_EDGES
from conftest import (
    SMALLEST_P,
    Untouchable,
    assert_draws_follow,
    lattice_of,
    log_mixture,
    neighbors_of,
    order_of,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast._kernels import smooth as kernel
from dpq_fast.data.sample import Sample
from dpq_fast.mechanisms.csmooth import (
    laplace_log_normal,
    smooth_gaussian,
    smooth_sensitivity,
    tune_t,
)
from dpq_fast.orders.counted import CountedOrder
from dpq_fast.orders.sorted import SortedOrder
from dpq_fast.privacy.csmooth import default_smoothness
from dpq_fast.reference.csmooth import log_smooth_sensitivity
from dpq_fast.reference.sample import intervals
from enumeration import legendre

SMOOTHNESS = [1e-9, 1e-3, 0.1, 0.7, 3.0, 1e3, 1e9]
LEVELS = [0.0, 0.1, 0.5, 0.77, 1.0]


def assert_same_log(found: float, expected: float) -> None:
    assert found == pytest.approx(expected, abs=1e-12 * max(1.0, abs(expected)))


# The sensitivity


def test_log_smooth_known_values():
    # 0 | 1 3 4 | 10, j = 2. Windows of one rank: 2; of two: 3; of three: 7 (3..10 is two: 7).
    order = SortedOrder(np.array([1.0, 3.0, 4.0]), None, (0.0, 10.0))
    for t, expected in (
        (10.0, math.log(2.0)),  # k = 0: x_2 - x_1
        (0.6, math.log(7.0) - 0.6),  # k = 1: x_4 - x_2
        (1e-3, math.log(10.0) - 3e-3),  # k = 3: x_4 - x_0
    ):
        center, log_smooth = smooth_sensitivity(order, 0.5, np.array([t]))
        assert center == 3.0
        assert_same_log(log_smooth[0], expected)
        assert_same_log(log_smooth_sensitivity([1.0, 3.0, 4.0], 2, t, 0.0, 10.0), expected)


@given(
    st.lists(st.one_of(st.sampled_from([0.0, 1.0, 1.5, 4.0]), st.floats(0.0, 4.0)), max_size=12),
    st.sampled_from(LEVELS),
    st.lists(st.sampled_from(SMOOTHNESS), min_size=1, max_size=3),
    st.integers(1, 14),
)
def test_smooth_sensitivity_equals_its_definition_on_numbers(x, q, t, reach):
    x, bounds = sorted(x), (0.0, 4.0)
    rank = privacy.csmooth.smooth_rank(q, len(x))
    expected = [log_smooth_sensitivity(x, rank, each, *bounds) for each in t]
    values, counts = np.unique(np.array(x), return_counts=True)
    for order in (
        SortedOrder(np.array(x), None, bounds),
        CountedOrder(values, counts, None, bounds),
    ):
        for first in (None, reach):
            center, log_smooth = smooth_sensitivity(order, q, np.array(t), first)
            assert center == (x[rank - 1] if x else 4.0)
            for found, one in zip(log_smooth.tolist(), expected, strict=True):
                assert_same_log(found, one)


@given(
    st.lists(st.integers(0, 30), max_size=20),
    st.sampled_from(LEVELS),
    st.sampled_from(SMOOTHNESS),
    st.integers(1, 22),
)
def test_smooth_sensitivity_equals_its_definition_on_a_lattice(x, q, t, reach):
    order = order_of(x, lattice_of(31))
    rank = privacy.csmooth.smooth_rank(q, len(x))
    center, log_smooth = smooth_sensitivity(order, q, np.array([t]), reach)
    assert center == (sorted(x)[rank - 1] if x else 30)
    assert_same_log(log_smooth[0], log_smooth_sensitivity(sorted(x), rank, t, 0, 30))


@pytest.mark.parametrize("t", [1e-12, 3e-3, 0.05, 1.0, 30.0])
@pytest.mark.parametrize("q", LEVELS)
@pytest.mark.parametrize("shape", ["normal", "Cauchy", "tied", "two ends"])
def test_smooth_sensitivity_equals_its_definition_on_hundreds(shape, q, t):
    rng = np.random.default_rng(3)
    x = {
        "normal": rng.normal(size=300),
        "Cauchy": rng.standard_cauchy(300),
        "tied": np.rint(rng.normal(0.0, 3.0, 300)),
        "two ends": rng.choice([-50.0, 50.0], 300) + rng.normal(size=300) * 1e-9,
    }[shape]
    x, bounds = np.sort(x.clip(-100.0, 100.0)), (-100.0, 100.0)
    values = [-100.0, *x.tolist(), 100.0]
    j = privacy.csmooth.smooth_rank(q, x.size)
    pairs = np.subtract.outer(np.array(values[j:]), np.array(values[: j + 1]))
    ranks = np.subtract.outer(np.arange(j, 302), np.arange(j + 1)) - 1.0
    with np.errstate(divide="ignore"):
        expected = float((np.log(pairs) - t * ranks).max())
    for reach in (None, 1, 7, 1_000):
        found = smooth_sensitivity(SortedOrder(x, None, bounds), q, np.array([t]), reach)
        assert_same_log(found.log_smooth[0], expected)


def test_smooth_sensitivity_of_several_t_is_that_of_each():
    x = np.sort(np.random.default_rng(1).normal(size=5_000))
    order, t = SortedOrder(x, None, (-9.0, 9.0)), np.array(SMOOTHNESS)
    together = smooth_sensitivity(order, 0.3, t).log_smooth
    single = [smooth_sensitivity(order, 0.3, t[i : i + 1]).log_smooth[0] for i in range(t.size)]
    for one, other in zip(together.tolist(), single, strict=True):
        assert_same_log(one, other)
    assert (np.diff(together) <= 0.0).all()


@pytest.mark.parametrize("at", [0.0, 8.0])
@pytest.mark.parametrize("t", [1e-3, 0.2, 100.0])
def test_smooth_sensitivity_of_a_million_records_at_one_bound_is_not_zero(at, t):
    """S itself, down to e^-(5e7) here, is 0 in float64."""
    n = 1_000_000
    needed = n // 2 - 1 if at == 8.0 else n - n // 2  # records that must move to the other end
    expected = math.log(8.0) - t * needed
    for order in (
        SortedOrder(np.full(n, at), None, (0.0, 8.0)),
        CountedOrder(np.array([at]), np.array([n]), None, (0.0, 8.0)),
    ):
        center, log_smooth = smooth_sensitivity(order, 0.5, np.array([t]))
        assert center == at
        assert_same_log(log_smooth[0], expected)


class Counting(SortedOrder):
    """Counts the order statistics that are looked at."""

    looked_at = 0

    def intervals(self, first, count):
        self.looked_at += int(count.sum())
        return super().intervals(first, count)


@pytest.mark.parametrize("q", [0.01, 0.5, 0.9])
def test_smooth_sensitivity_looks_at_few_records(q):
    order = Counting(np.sort(np.random.default_rng(0).normal(size=10**6)), None, (-100.0, 100.0))
    _, log_smooth = smooth_sensitivity(order, q, np.array([0.2]))
    certified = (math.log(200.0) - log_smooth[0]) / 0.2
    assert certified < 200
    assert order.looked_at <= 2.0 * (certified + 30.0)  # on both sides, in one look


@pytest.mark.parametrize("reach", [1, 10, 1_000, 10**6])
def test_smooth_sensitivity_grows_what_is_too_small(reach):
    x = np.sort(np.random.default_rng(0).normal(size=10**5))
    x[40_000:60_000] = x[50_000]  # the windows have to reach beyond
    order = Counting(x, None, (-100.0, 100.0))
    expected = smooth_sensitivity(order, 0.5, np.array([0.01])).log_smooth[0]
    order.looked_at = 0
    found = smooth_sensitivity(order, 0.5, np.array([0.01]), reach).log_smooth[0]
    assert_same_log(found, expected)
    assert order.looked_at <= 10 * x.size


@pytest.mark.parametrize(
    "rank, value, target", [([], [], 1), ([1], [0.0, 1.0], 1), ([1, 3], [0.0, 1.0], 4)]
)
def test_log_smooth_rejects_what_does_not_fit(rank, value, target):
    with pytest.raises(ValueError, match="must be of one length, and reach the target"):
        kernel.log_smooth(np.array(rank, dtype=np.int64), np.array(value), target, np.ones(1))


def test_log_smooth_of_values_that_do_not_ascend_ends():
    rng = np.random.default_rng(0)
    rank = np.arange(1, 1_001)
    for _ in range(20):
        assert kernel.log_smooth(rank, rng.normal(size=1_000), 500, np.array([0.01])).shape == (1,)
    assert kernel.log_smooth(rank, np.zeros(1_000), 500, np.array([0.01]))[0] == -math.inf


# What makes it private


@pytest.mark.parametrize("t", [0.01, 0.4, 3.0])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_smooth_sensitivity_is_smooth_and_covers_both_relations(q, t):
    """|f(x) - f(x')| <= S(x) <= e^t S(x'), whether a record is replaced, left out or comes."""
    points, known = 4, {}

    def of(x):
        key = tuple(sorted(x))
        if key not in known:
            known[key] = smooth_sensitivity(order_of(key, lattice_of(points)), q, np.array([t]))
        return known[key]

    worst = 0.0
    for n in range(6):
        for x in combinations_with_replacement(range(points), n):
            center, log_smooth = of(x)
            for y in neighbors_of(list(x), points, "swap"):
                other, other_log = of(y)
                assert abs(center - other) <= math.exp(log_smooth[0]) * (1.0 + 1e-12)
                assert log_smooth[0] <= t + other_log[0] + 1e-12
                worst = max(worst, abs(center - other) / math.exp(log_smooth[0]))
    assert worst > 0.9  # not for want of cases


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=14),
    st.sampled_from([0.0, 0.2, 0.45, 2 / 3, 1.0]),
    st.floats(1e-3, 2.0),
    st.data(),
)
def test_smooth_sensitivity_of_longer_neighbors(x, q, t, data):
    place, put = data.draw(st.integers(0, len(x) - 1)), data.draw(st.integers(0, 12))
    rest = x[:place] + x[place + 1 :]
    found = [
        smooth_sensitivity(order_of(records, lattice_of(13)), q, np.array([t]))
        for records in (x, rest, [*rest, put])
    ]
    for one, other in product(found, repeat=2):
        assert abs(one.center - other.center) <= math.exp(one.log_smooth[0]) * (1.0 + 1e-12)
        assert one.log_smooth[0] <= t + other.log_smooth[0] + 1e-12


def log_density(z: np.ndarray, sigma: float) -> np.ndarray:
    """ln of the density of X exp(sigma Y), by the trapezoidal rule over Y."""
    y = np.arange(-14.0, 14.0 + math.log1p(np.abs(z).max()) / sigma, 0.1)
    log_weight = stats.norm.logpdf(y) + math.log(y[1] - y[0]) - math.log(2.0) - sigma * y
    return log_mixture(log_weight, np.exp(-sigma * y), np.abs(z))


def cdf(z: np.ndarray, sigma: float) -> np.ndarray:
    y = np.linspace(-10.0, 10.0, 401)
    weight = stats.norm.pdf(y) * (y[1] - y[0])
    tail = 0.5 * np.exp(-np.abs(z)[:, None] * np.exp(-sigma * y)) @ weight
    return np.where(z > 0.0, 1.0 - tail, tail)


@pytest.mark.slow
@pytest.mark.parametrize(
    "epsilon, ratio", [(0.2, 0.2), (1.0, 0.02), (1.0, 0.2), (1.0, 0.8), (4.0, 0.2)]
)
def test_laplace_log_normal_noise_is_zcdp(epsilon, ratio):
    """Rényi divergence of the farthest neighbors at most alpha epsilon^2 / 2."""
    t = ratio * epsilon
    sigma, log_scale = privacy.csmooth.shape_of(t, epsilon)
    s = math.exp(log_scale)
    most = 33.0 * t + 12.0 * sigma + 3.0 - math.log(1e-3)  # where Z^33 has its mass, and beyond
    u = np.linspace(-most, most, 6_001)
    far, log_step = 1e-3 * np.sinh(u), math.log(1e-3 * (u[1] - u[0])) + np.log(np.cosh(u))
    x, weight = legendre(600)
    shares = []
    for log_ratio, shift in ((-t, 0.0), (-t, 1.0), (0.0, 1.0), (t, 0.0), (t, 1.0)):
        # both S(x) and S(x') cover the shift; nodes crowd at both centers
        center = shift * s * min(1.0, math.exp(log_ratio))
        between = (x + 1.0) * center / 2.0
        z = np.concatenate([far[u < 0.0], between, center + far[u > 0.0]])
        inner = np.log(weight * center / 2.0) if shift else np.full(x.size, -np.inf)
        log_weight = np.concatenate([log_step[u < 0.0], inner, log_step[u > 0.0]])
        mine = log_density(z, sigma)
        other = log_density((z - center) * math.exp(-log_ratio), sigma) - log_ratio
        assert logsumexp(mine + log_weight) == pytest.approx(0.0, abs=2e-5)
        for p, q in ((mine, other), (other, mine)):
            for alpha in (1.01, 1.5, 2.0, 8.0, 32.0):
                log_sum = logsumexp(alpha * p + (1.0 - alpha) * q + log_weight)
                shares.append(log_sum / (alpha - 1.0) / (alpha * epsilon**2 / 2.0))
    assert 0.1 < max(shares) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("epsilon, t", [(0.5, 0.1), (2.0, 0.4), (2.0, 6.0)])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 1.0])
def test_csmooth_laws_of_neighbors_are_zcdp(q, epsilon, t):
    """The whole release on a lattice, for all small data sets and both relations."""
    points, laws = 4, {}
    sigma, log_scale = privacy.csmooth.shape_of(t, epsilon)

    def law_of(x):
        key = tuple(sorted(x))
        if key not in laws:
            found = smooth_sensitivity(order_of(key, lattice_of(points)), q, np.array([t]))
            edges = (np.arange(points - 1) + 0.5 - found.center) * math.exp(
                log_scale - found.log_smooth[0]
            )
            tails = cdf(-np.abs(edges), sigma)  # differences of tails keep their precision
            inner = np.where(edges[1:] * edges[:-1] < 0.0, 1.0 - tails[1:] - tails[:-1], 0.0)
            inner = np.where(inner > 0.0, inner, np.abs(np.diff(tails)))
            first = tails[0] if edges[0] < 0.0 else 1.0 - tails[0]
            last = tails[-1] if edges[-1] > 0.0 else 1.0 - tails[-1]
            laws[key] = np.log(np.array([first, *inner, last]))
        return laws[key]

    worst, alpha = 0.0, np.array([[1.01], [2.0], [10.0], [50.0]])
    for n in range(5):
        for x in combinations_with_replacement(range(points), n):
            p = law_of(x)
            for y in {tuple(sorted(y)) for y in neighbors_of(list(x), points, "swap")}:
                log_sums = logsumexp(alpha * p + (1.0 - alpha) * law_of(y), axis=1, keepdims=True)
                shares = log_sums / (alpha - 1.0) / (alpha * epsilon**2 / 2.0)
                worst = max(worst, float(shares.max()))
    assert 0.01 < worst <= 1.0


# The noise


def assert_ks(u: np.ndarray, inside: np.ndarray) -> None:
    """Kolmogorov-Smirnov test of uniform u, looked at only where `inside`."""
    order = np.argsort(u)
    u, inside, n = u[order], inside[order], u.size
    gap = np.maximum(np.arange(1, n + 1) / n - u, u - np.arange(n) / n)[inside].max()
    assert stats.kstwo.sf(gap, n) >= SMALLEST_P


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [1e-3, 0.4, 1.3])
def test_laplace_log_normal_follows_its_law(sigma):
    rng, log_scale = np.random.default_rng(5), 3.0
    noise = [laplace_log_normal(sigma, log_scale, rng) for _ in range(4_000)]
    z = np.array([float(one.variate) * math.exp(one.log_factor + 3) for one in noise])
    assert_ks(cdf(z, sigma), np.ones(z.size, dtype=bool))


@pytest.mark.slow
def test_csmooth_follows_its_law_on_numbers(implementation):
    x, bounds, t, rho = [0.0, 1.0, 1.5, 2.5, 3.0], (-5.0, 8.0), 0.2, 0.5
    sigma, log_scale = privacy.csmooth.shape_of(t, 1.0)
    size = math.exp(log_smooth_sensitivity(x, 3, t, *bounds) - log_scale)
    rng = np.random.default_rng(11)
    options = {"rho": rho, "t": t, "bounds": bounds, "resolution": 0, "rng": rng}
    draws = np.array([implementation.csmooth(x, 0.5, **options) for _ in range(2_000)])
    assert_ks(cdf((draws - 1.5) / size, sigma), (draws > -5.0) & (draws < 8.0))


@pytest.mark.slow
@pytest.mark.parametrize("q", [[0.5], [0.2, 0.8]])
def test_csmooth_follows_its_law_on_a_lattice(implementation, q):
    x, t, rho = [1, 2, 2, 4, 5], 0.3, 2.0
    epsilon = math.sqrt(2.0 * rho / len(q))
    sigma, log_scale = privacy.csmooth.shape_of(t, epsilon)
    edges, single = np.arange(8) + 0.5, []
    for level in q:
        j = privacy.csmooth.smooth_rank(level, 5)
        size = math.exp(log_smooth_sensitivity(x, j, t, 0, 8) - log_scale)
        below = cdf((edges - x[j - 1]) / size, sigma)
        single.append(np.diff(below, prepend=0.0, append=1.0))
    log_prob = {}
    for o in product(range(9), repeat=len(q)):
        key = tuple(sorted(o))
        p = math.prod(law[i] for law, i in zip(single, o, strict=True))
        log_prob[key] = np.logaddexp(log_prob.get(key, -np.inf), math.log(p))
    options = {"rho": rho, "t": t, "bounds": (0, 8), "resolution": 1, "dither": False}
    rng = np.random.default_rng(2)
    # 686 of them tell the law at 1.3 times epsilon
    draws = [implementation.csmooth(x, q, rng=rng, **options) for _ in range(800)]
    assert_draws_follow((tuple(draw.astype(int).tolist()) for draw in draws), log_prob)


def test_csmooth_dithers_ties(implementation):
    """On ages the dither keeps the noise at the width of a few records."""
    ages = np.random.default_rng(0).integers(30, 34, size=200)
    rng = np.random.default_rng(4)
    draws = [
        implementation.csmooth(ages, 0.5, rho=2.0, bounds=(0, 120), resolution=1, rng=rng)
        for _ in range(50)
    ]
    assert np.isin(draws, np.arange(121)).all()
    assert np.median(np.abs(np.array(draws) - np.median(ages))) <= 1.0


@pytest.mark.slow
def test_smooth_gaussian_follows_its_law():
    x, bounds = [0.0, 1.0, 1.5, 2.5, 3.0], (-50.0, 80.0)
    beta, log_alpha = privacy.cdf.smooth_gaussian_scale(2.0, 1e-3)
    deviation = math.exp(log_smooth_sensitivity(x, 3, beta, *bounds) - log_alpha)
    sample, rng = Sample.of(x, bounds, resolution=0), np.random.default_rng(0)
    draws = np.array(
        [smooth_gaussian(sample, np.array([0.5]), beta, log_alpha, rng)[0] for _ in range(4_000)]
    )
    inside = (draws > -50.0) & (draws < 80.0)
    assert_ks(stats.norm.cdf(draws, 1.5, deviation), inside)


# The budget


def test_csmooth_splits_its_budget():
    assert privacy.csmooth.epsilon_each(1, 0.5) == 1.0
    assert privacy.csmooth.epsilon_each(4, 0.5) == 0.5
    assert privacy.csmooth.epsilon_each(1, 0.5, 3) == pytest.approx(1.0 / 3.0)
    x, options = [0.0, 1.0, 3.0], {"bounds": (0.0, 4.0), "rng": 3}
    one = dpq.csmooth(x, 0.5, rho=0.5, t=0.1, **options)
    assert one == dpq.csmooth(x, 0.5, rho=4.5, t=0.1, max_contributions=3, **options)
    assert one == dpq.csmooth(x, 0.5, rho=0.5, t=0.1, neighbors="add-remove", **options)


def test_csmooth_charges_the_accountant(implementation):
    accountant = privacy.Accountant(5.0, 1e-6, composition="zcdp")
    options = {"rho": 0.2, "bounds": (0.0, 4.0), "accountant": accountant}
    implementation.csmooth([1.0, 2.0], [0.2, 0.5], rng=1, **options)
    expected = privacy.guarantee("csmooth", q=[0.2, 0.5], rho=0.2)
    assert expected == privacy.Guarantee(None, rho=0.2)
    assert accountant.history == (expected,)
    with pytest.raises(privacy.BudgetExceeded, match="must fit the budget"):
        implementation.csmooth(Untouchable(), [0.2, 0.5], **options | {"rho": 1.0})
    with pytest.raises(ValueError, match="must be under 'swap'"):
        implementation.csmooth(Untouchable(), 0.5, neighbors="add-remove", **options)
    with pytest.raises(ValueError, match="must state epsilon"):
        implementation.csmooth(
            Untouchable(), 0.5, **options | {"accountant": privacy.Accountant(9.0)}
        )
    assert accountant.history == (expected,)


# Bad input

GOOD = {"x": [1.0, 2.0], "q": [0.5], "rho": 0.5, "bounds": (0.0, 4.0)}
WRONG = [({"t": t}, ValueError, "t must be positive and finite") for t in (0.0, -1.0, math.inf)]
WRONG += [
    ({"t": t}, ValueError, "t must lie between 1e-100 and 10.0 times the epsilon of a level, 1.0")
    for t in (10.1, 1e300, 1e-101, [11])
]
WRONG += [
    ({"t": "1"}, TypeError, "t must be a real number"),
    ({"t": [[True]]}, TypeError, "t must be real numbers"),
    ({"t": [math.nan]}, ValueError, "t must be positive and finite"),
    ({"t": [0.1, 0.2]}, ValueError, r"t must be one number or of q's shape, got shape \(2,\)"),
    ({"t": [0.1, 0.2], "q": [0.5, 0.5]}, ValueError, "t must be the same wherever q is"),
]


@pytest.mark.parametrize("bad, error, message", WRONG, ids=[str(bad) for bad, _, _ in WRONG])
def test_csmooth_rejects_bad_input(implementation, bad, error, message):
    arguments = GOOD | bad
    with pytest.raises(error, match=message):
        implementation.csmooth(arguments.pop("x"), **arguments)


# Manners


@pytest.mark.parametrize("x, bounds", EDGES.values(), ids=EDGES.keys())
def test_csmooth_answers_at_the_edges(implementation, x, bounds):
    several = [{}, {"resolution": 0}, {"dither": False}]
    for case in product(Q_EDGES.values(), several, (1e-12, 0.5, 1e6)):
        q, options, rho = case
        out = implementation.csmooth(x, q, rho=rho, bounds=bounds, rng=9, **options)
        assert np.isfinite(out).all(), case
        assert (np.diff(out) >= 0.0).all(), case
        assert bounds[0] <= out[0] and out[-1] <= bounds[1], case


@pytest.mark.parametrize("q", [0.5, [0.5], [[0.9, 0.1], [0.5, 0.9]], [0.0, 1.0], [0.5] * 5])
def test_csmooth_answers_in_the_shape_of_q(implementation, q):
    out = implementation.csmooth(np.arange(40) % 7, q, rho=0.5, bounds=(0, 10), rng=4)
    assert np.shape(out) == np.shape(q)
    assert isinstance(out, float if np.ndim(q) == 0 else np.ndarray)
    order = np.argsort(np.ravel(q), kind="stable")
    assert (np.diff(np.ravel(out)[order]) >= 0.0).all()


def test_csmooth_takes_a_t_for_each_level():
    x, options = np.arange(100.0), {"rho": 0.5, "bounds": (0.0, 100.0), "rng": 1}
    out = dpq.csmooth(x, [0.9, 0.1, 0.9], t=[0.3, 0.1, 0.3], **options)
    np.testing.assert_array_equal(
        out, dpq.csmooth(x, [0.1, 0.9], t=[0.1, 0.3], **options)[[1, 0, 1]]
    )
    same = default_smoothness(math.sqrt(0.5))
    np.testing.assert_array_equal(
        dpq.csmooth(x, [0.1, 0.9], **options), dpq.csmooth(x, [0.1, 0.9], t=same, **options)
    )


def test_csmooth_does_not_depend_on_the_form_of_the_data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=100_000).round(4)  # long enough to be gone through
    values, counts = np.unique(x, return_counts=True)
    options = {"rho": 0.5, "bounds": (-6.0, 6.0)}
    for q in (0.5, [0.01, 0.4, 0.5, 0.97]):
        for resolution in (None, 0):
            lattice = {"resolution": resolution, "dither": False}
            given = options | lattice | {"q": q, "rng": 8}
            expected = dpq.csmooth(np.sort(x), assume_sorted=True, **given)
            for column, more in (
                (x, {}),
                (x, {"workers": 2}),
                (values, {"counts": counts}),
                (np.insert(x, [5, 70], np.nan), {}),
                (Sample.of(x, (-6.0, 6.0), **lattice), {"resolution": None, "dither": None}),
            ):
                np.testing.assert_array_equal(dpq.csmooth(column, **given | more), expected)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_csmooth_leaves_input_unchanged(implementation, dtype):
    x = np.random.default_rng(1).integers(0, 20, size=90).astype(dtype)
    q, t = np.array([0.9, 0.1]), np.array([0.1, 0.2])
    kept = x.copy(), q.copy(), t.copy()
    for array in (x, q, t):
        array.flags.writeable = False
    arguments = {"t": t, "rho": 0.5, "bounds": (0.0, 20.0), "rng": 3}
    strided = implementation.csmooth(x[::2], q, **arguments)
    np.testing.assert_array_equal(strided, implementation.csmooth(x[::2].copy(), q, **arguments))
    for array, before in zip((x, q, t), kept, strict=True):
        np.testing.assert_array_equal(array, before)


def test_records_of_intervals_are_the_records():
    x = [3.0, 0.0, 0.0, 2.0, 4.0, 4.0, 9.0]
    for options in ({"resolution": 0}, {"resolution": 1, "dither": False}):
        data = intervals(x, (0.0, 4.0), **options)
        assert data.records.tolist() == [0, 0, 2, 3, 4, 4, 4]
        assert intervals([], (0.0, 4.0), **options).records.size == 0


def test_tune_t_is_reached_by_attributes():
    assert dpq.mechanisms.csmooth.tune_t is tune_t


@pytest.mark.slow
def test_tune_t_is_near_the_default_and_repeats():
    # of the epsilon of the test below: shapes are kept
    t = tune_t(2_000, [[0.5], [0.2]], rho=4.0)
    assert t.shape == (2, 1)
    np.testing.assert_array_equal(t, tune_t(2_000, [[0.5], [0.2]], rho=4.0))
    assert (np.abs(np.log(t / default_smoothness(2.0))) < 0.7).all()
    assert isinstance(tune_t(100, 0.5, rho=2.0, trials=1, rng=3), float)
    with pytest.raises(ValueError, match="n must be at least 1"):
        tune_t(0, 0.5, rho=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "epsilon", "own"),
    [(60, 2.0, {}), (12, 0.8, {"bounds": (-3.0, 60.0), "trials": 2, "rng": 7})],
)
@pytest.mark.parametrize("q", [0.02, 0.5, 0.9])
def test_tune_t_has_the_least_deviation_of_its_grid(q, n, epsilon, own):
    form = dict(bounds=(-100.0, 100.0), trials=5, rng=0) | own
    generator = np.random.default_rng(form["rng"])
    samples = [np.sort(generator.standard_normal(n)).tolist() for _ in range(form["trials"])]
    rank = privacy.csmooth.smooth_rank(q, n)

    def log_deviation(t):
        sigma, log_scale = privacy.csmooth.shape_of(t, epsilon)
        sizes = [log_smooth_sensitivity(x, rank, t, *form["bounds"]) for x in samples]
        return sigma * sigma - log_scale + np.mean(sizes)

    most = min(0.75 * epsilon, 1.0)
    grid = np.geomspace(most / 15.0, most, 12)
    best = min(grid, key=log_deviation)
    assert tune_t(n, q, rho=epsilon * epsilon / 2.0, **own) == pytest.approx(best, rel=1e-12)


def test_normal_noise_of_quantiles_is_measured_by_the_width_of_the_bounds():
    x, form = [1000.0, 1000.5, 1001.0], dict(method="gaussian", levels=1, rho=1e4, rng=3)
    found = dpq.cdf(x, bounds=(1000.0, 1001.0), resolution=0, **form).quantile(0.5)
    assert abs(found - 1000.5) < 0.1
