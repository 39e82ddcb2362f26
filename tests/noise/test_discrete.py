"""Discrete noise: exact laws by enumeration, the kernel bit by bit, draws by chi-square."""

import heapq
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from randomgen import UserBitGenerator
from scipy import stats

from dpq_fast._kernels import noise as kernel
from dpq_fast.noise import discrete as noise
from dpq_fast.reference import noise as reference_noise

SMALLEST_P = 1e-6
TENTH = Fraction(3602879701896397, 2**55)
SCALES = [Fraction(1, 20), Fraction(1, 3), 1, 0.7, 10, Fraction(3) / TENTH]
HUGE = Fraction(2**45) / TENTH
# too long for the kernel: drawn by Python's integers
LONG = Fraction(10**40, 3 * 10**39 + 1)


def laplace_log_prob(k, scale):
    r = mpmath.exp(-1 / mpmath.mpf(scale))
    return mpmath.log((1 - r) / (1 + r)) - abs(k) / mpmath.mpf(scale)


def gaussian_log_prob(k, sigma):
    if sigma > 10:  # Poisson summation: the next term is exp(-2 pi^2 sigma^2)
        total = mpmath.mpf(sigma) * mpmath.sqrt(2 * mpmath.pi)
    else:
        total = mpmath.nsum(
            lambda j: mpmath.exp(-(j**2) / (2 * mpmath.mpf(sigma) ** 2)), [-200, 200]
        )
    return -(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2) - mpmath.log(total)


def chi_square(drawn, log_prob, scale):
    """p-value over single integers within 40 deviations of zero, the rare ones put together."""
    reach = math.ceil(40 * scale) + 1
    k = np.arange(-reach, reach + 1)
    means = np.exp(log_prob(k, scale)) * drawn.size
    counts = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=k.size)
    often = means >= 5
    means = np.append(means[often], max(drawn.size - means[often].sum(), 1e-300))
    counts = np.append(counts[often], counts[~often].sum())
    if means[-1] < 5:
        assert counts[-1] < 40
        means, counts = means[:-1] * (counts[:-1].sum() / means[:-1].sum()), counts[:-1]
    return stats.chisquare(counts, means).pvalue if counts.size > 1 else 1.0


# --- exact laws: every decision is a choice among n equally likely integers


class _Fork(Exception):
    """The script is at its end: the probabilities of what may come next."""


class Choices:
    """Stands in for random bits: follows a script of choices, then asks for the next."""

    def __init__(self, script):
        self._script = iter(script)

    def among(self, probabilities):
        for choice in self._script:
            return choice
        raise _Fork(probabilities)

    def below(self, n):
        return self.among([1.0 / n] * n)

    def take(self, count):
        return self.below(1 << count)

    def flip(self, p):
        return self.among([1.0 - p, p]) == 1


def enumerate_law(draw, steps):
    """Outcomes with the probability of the most likely scripts, and what is left over."""
    law, heap = {}, [(-1.0, ())]
    for _ in range(steps):
        if not heap or heap[0][0] > -1e-10:
            break
        probability, script = heapq.heappop(heap)
        try:
            outcome = draw(Choices(script))
        except _Fork as fork:
            for choice, p in enumerate(*fork.args):
                heapq.heappush(heap, (probability * p, (*script, choice)))
        else:
            law[outcome] = law.get(outcome, 0.0) - probability
    return law, -math.fsum(probability for probability, _ in heap)


def assert_law(law, left, exact, most_left):
    assert left < most_left
    for outcome, probability in law.items():
        assert probability - 1e-12 <= exact(outcome) <= probability + left + 1e-12


@pytest.fixture
def draws(request, monkeypatch):
    """The samplers as functions of choices: the reference's, and the kernel's steps in Python."""
    if request.param == "fast":
        monkeypatch.setattr(noise, "DIGIT", 1)
        return noise
    monkeypatch.setattr(reference_noise, "_below", lambda n, choices: choices.below(n))
    return reference_noise


both = pytest.mark.parametrize("draws", ["fast", "reference"], indirect=True)


@both
@pytest.mark.parametrize("gamma", [0, Fraction(1, 2), Fraction(1, 3), 1, Fraction(3, 2)], ids=str)
def test_bernoulli_exp_law_is_exact(draws, gamma):
    gamma = Fraction(gamma)
    if draws is noise:
        whole, part = divmod(gamma.numerator, gamma.denominator)
        law, left = enumerate_law(
            lambda choices: noise._bernoulli(whole, part, gamma.denominator, choices), 20_000
        )
    else:
        law, left = enumerate_law(
            lambda choices: reference_noise._bernoulli_exp(gamma, choices), 20_000
        )
    p = math.exp(-gamma)
    assert_law(law, left, lambda outcome: p if outcome else 1 - p, 1e-2)


@pytest.mark.parametrize("t", [1, 2, 3])
def test_descent_from_a_uniform_number_is_exact(monkeypatch, t):
    monkeypatch.setattr(noise, "DIGIT", 1)

    def draw(choices):
        x = noise._Cell(t, choices)
        taken = noise._descent_is_even(x, 1, t, choices)
        return (x.digit * t + x.rest, taken)

    def exact(outcome):  # the integral over the cell
        at, taken = outcome
        p = math.exp(-at / (2 * t)) - math.exp(-(at + 1) / (2 * t))
        return p if taken else 1 / (2 * t) - p

    assert_law(*enumerate_law(draw, 20_000), exact, 1e-2)


@pytest.mark.parametrize("k, part, t", [(0, 0, 2), (0, 1, 2), (0, 2, 3), (1, 1, 3), (2, 1, 2)])
def test_thinned_descent_is_exact(monkeypatch, k, part, t):
    monkeypatch.setattr(noise, "DIGIT", 1)
    x = part / t
    p = math.exp(-x * (2 * k + x) / (2 * k + 2))
    law, left = enumerate_law(lambda choices: noise._fraction(k, part, t, choices), 20_000)
    assert_law(law, left, lambda outcome: p if outcome else 1 - p, 1e-2)


def flip_cell(x, tied, t, choices):
    """The descent from a uniform x as one decision."""
    at = x.digit * t + x.rest
    return choices.flip(2 * t * (math.exp(-at / (2 * t)) - math.exp(-(at + 1) / (2 * t))))


@pytest.fixture
def decided(draws, monkeypatch):
    """The same with every Bernoulli(exp(-gamma)), tested above, as one decision."""
    if draws is noise:
        monkeypatch.setattr(noise, "_descent_is_even", flip_cell)
        monkeypatch.setattr(
            noise, "_decay", lambda part, t, choices: choices.flip(math.exp(-part / t))
        )
        monkeypatch.setattr(
            noise,
            "_fraction",
            lambda k, part, t, choices: choices.flip(
                math.exp(-(part / t) * (2 * k + part / t) / (2 * k + 2))
            ),
        )
    else:
        monkeypatch.setattr(
            reference_noise,
            "_bernoulli_exp",
            lambda gamma, choices: choices.flip(math.exp(-gamma)),
        )
    return draws


@pytest.mark.slow
@both
@pytest.mark.parametrize("scale", [1, 2, Fraction(3, 2), Fraction(1, 2)], ids=str)
def test_discrete_laplace_law_is_exact(decided, scale):
    t, s = Fraction(scale).as_integer_ratio()
    sampler = noise._laplace if decided is noise else reference_noise._discrete_laplace
    law, left = enumerate_law(lambda choices: sampler(t, s, choices), 20_000)
    assert_law(law, left, lambda k: math.exp(laplace_log_prob(k, scale)), 0.08)


def test_whole_law_is_exact(monkeypatch):
    monkeypatch.setattr(noise, "_decay", lambda part, t, choices: choices.flip(math.exp(-part / t)))
    total = sum(math.exp(-k * k / 2) for k in range(20))
    law, left = enumerate_law(noise._whole, 20_000)
    assert_law(law, left, lambda k: math.exp(-k * k / 2) / total, 0.05)


@pytest.mark.slow
@both
@pytest.mark.parametrize("sigma", [1, Fraction(1, 2), Fraction(3, 2)], ids=str)
def test_discrete_gaussian_law_is_exact(decided, sigma, monkeypatch):
    weights = np.exp(-(np.arange(8) ** 2) / 2)
    monkeypatch.setattr(
        noise, "_whole", lambda choices: choices.among((weights / weights.sum()).tolist())
    )

    def laplace(t, s, choices):
        p = np.exp(noise.discrete_laplace_log_prob(np.arange(-30, 31), t))
        return choices.among(p.tolist()) - 30

    monkeypatch.setattr(reference_noise, "_discrete_laplace", laplace)
    t, s = Fraction(sigma).as_integer_ratio()
    if decided is noise:
        law, left = enumerate_law(lambda choices: noise._gaussian(t, s, choices), 10_000)
    else:
        law, left = enumerate_law(
            lambda choices: reference_noise._discrete_gaussian(Fraction(sigma) ** 2, choices),
            10_000,
        )
    assert_law(law, left, lambda k: math.exp(gaussian_log_prob(k, sigma)), 0.1)


# --- the kernel makes the same steps as the Python integers, bit by bit


def same_draws(fill, exact, law, dtype, size=1_000):
    one, other = np.random.default_rng(7), np.random.default_rng(7)
    out = np.empty(size, dtype)
    fill(*law, out, one)
    bits = noise._Bits(other)
    assert out.tolist() == [exact(*law, bits) for _ in range(size)]
    assert one.bit_generator.state == other.bit_generator.state


@pytest.mark.parametrize(
    "law",
    [(0, 0, 1), (0, 1, 2), (0, 1, 1), (3, 2, 5), (0, 3, 2**60), (1, 2**100, 2**108 - 1)],
)
def test_bernoulli_kernel_equals_python_integers(law):
    same_draws(kernel.bernoulli, noise._bernoulli, law, np.uint8)


@pytest.mark.parametrize(
    "scale",
    [
        *((1, 1), (1, 3), (2, 1), (3, 7), (2**53, 1), HUGE.as_integer_ratio()),
        *((2**64, 2**60 + 1), (2**64 + 1, 2**50), (1, 2**108 - 1), (2**108 - 1, 2**108 - 3)),
        (2**108 - 1, 2**55),
    ],
)
def test_integer_kernels_equal_python_integers(scale):
    same_draws(kernel.laplace, noise._laplace, scale, np.int64)
    same_draws(kernel.gaussian, noise._gaussian, scale, np.int64, size=300)


@pytest.mark.parametrize("gamma", [2**64 - 1, 2**64, 2**64 + 1])
def test_bernoulli_exp_takes_exponents_beyond_a_word(gamma):
    assert noise.bernoulli_exp(gamma, rng=0) is False


def test_discrete_gaussian_log_prob_of_a_wide_fraction():
    sigma = Fraction(10**200, 3)
    expected = -0.5 * math.log(2.0 * math.pi) - 200.0 * math.log(10.0) + math.log(3.0)
    assert noise.discrete_gaussian_log_prob(0, sigma) == pytest.approx(expected, rel=1e-14)


def test_what_fits_the_kernels_is_drawn_by_them(monkeypatch):
    monkeypatch.setattr(noise, "_Bits", None)
    for value in (0.1, HUGE, Fraction(2**108 - 1, 2**55), Fraction(1, 2**108 - 1)):
        for size in (None, 3):
            noise.bernoulli_exp(value, size=size)
            noise.discrete_laplace(value, size=size)
            noise.discrete_gaussian(value, size=size)
    with pytest.raises(TypeError, match="NoneType"):
        noise.discrete_laplace(LONG)
    with pytest.raises(TypeError, match="NoneType"):
        noise.discrete_laplace(Fraction(2**108, 2**55 + 1), size=3)


@pytest.mark.parametrize("number", [-1, 2**128])
def test_kernels_reject_what_does_not_fit_their_words(number):
    with pytest.raises(OverflowError):
        kernel.laplace(number, 1, np.empty(1, np.int64), np.random.default_rng(0))


def test_kernels_are_not_held_by_a_stuck_generator():
    stuck = np.random.Generator(UserBitGenerator(lambda _: 0, 64))
    assert not noise.discrete_laplace(HUGE, size=100, rng=stuck).any()
    assert not noise.discrete_gaussian(HUGE, size=100, rng=stuck).any()
    assert not noise.bernoulli_exp(2**-60, size=100, rng=stuck).any()
    assert not noise.bernoulli_exp(50.5, size=100, rng=stuck).any()
    assert noise.bernoulli_exp(0, size=100, rng=stuck).all()
    assert noise.discrete_laplace(LONG, rng=stuck) == noise.discrete_gaussian(LONG, rng=stuck) == 0


# --- draws


def size_for(implementation, size):
    """Fewer draws of the reference, where each takes a hundred microseconds."""
    return size if implementation.noise is noise else size // 200


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_discrete_laplace_draws_follow_the_law(implementation, scale):
    drawn = implementation.noise.discrete_laplace(
        scale, size=size_for(implementation, 200_000), rng=1
    )
    assert chi_square(drawn, noise.discrete_laplace_log_prob, float(scale)) > SMALLEST_P


@pytest.mark.slow
@pytest.mark.parametrize("sigma", SCALES, ids=str)
def test_discrete_gaussian_draws_follow_the_law(implementation, sigma):
    drawn = implementation.noise.discrete_gaussian(
        sigma, size=size_for(implementation, 200_000), rng=2
    )
    assert chi_square(drawn, noise.discrete_gaussian_log_prob, float(sigma)) > SMALLEST_P


def test_long_fractions_draw_the_same_laws():
    drawn = noise.discrete_laplace(LONG, size=5_000, rng=3)
    assert chi_square(drawn, noise.discrete_laplace_log_prob, float(LONG)) > SMALLEST_P
    drawn = noise.discrete_gaussian(LONG, size=5_000, rng=3)
    assert chi_square(drawn, noise.discrete_gaussian_log_prob, float(LONG)) > SMALLEST_P


@pytest.mark.parametrize("scale", [1e6, HUGE], ids=str)
def test_wide_laws_in_quantile_bins(implementation, scale):
    # a step of the lattice is below 1e-6 of the scale: the continuous law's quantiles will do
    size = size_for(implementation, 200_000)
    for sampler, law in (
        (implementation.noise.discrete_laplace, stats.laplace),
        (implementation.noise.discrete_gaussian, stats.norm),
    ):
        drawn = sampler(scale, size=size, rng=4) / float(scale)
        counts = np.histogram(law.cdf(drawn), bins=20, range=(0, 1))[0]
        assert stats.chisquare(counts).pvalue > SMALLEST_P
        assert abs(drawn.var() / law.var() - 1) < 8 * math.sqrt(6 / size)


def test_low_bits_of_wide_draws_are_uniform():
    for sampler in (noise.discrete_laplace, noise.discrete_gaussian):
        low = sampler(HUGE, size=100_000, rng=5) & 255
        assert stats.chisquare(np.bincount(low, minlength=256)).pvalue > SMALLEST_P


@pytest.mark.parametrize("gamma", [0, 2.0**-60, 1e-3, 0.5, 1, 5, 50, 1e300, 1e-300])
def test_bernoulli_exp_draws_follow_the_law(implementation, gamma):
    size = size_for(implementation, 200_000) if 1e-20 < gamma < 1e20 else 2_000
    drawn = implementation.noise.bernoulli_exp(gamma, size=size, rng=6)
    assert stats.binomtest(int(drawn.sum()), drawn.size, math.exp(-gamma)).pvalue > SMALLEST_P


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.5, 3, 12])
def test_variance_of_the_draws(implementation, scale):
    k = np.arange(-600, 601)
    size = size_for(implementation, 200_000)
    for sampler, log_prob in (
        (implementation.noise.discrete_laplace, noise.discrete_laplace_log_prob),
        (implementation.noise.discrete_gaussian, noise.discrete_gaussian_log_prob),
    ):
        p = np.exp(log_prob(k, scale))
        variance, fourth = p @ k**2.0, p @ k**4.0
        drawn = sampler(scale, size=size, rng=8).astype(float)
        error = math.sqrt((fourth - variance**2) / size)
        assert abs((drawn**2).mean() - variance) < 5 * error


def test_floats_are_taken_exactly(implementation):
    for name in ("bernoulli_exp", "discrete_laplace", "discrete_gaussian"):
        sampler = getattr(implementation.noise, name)
        for same in (TENTH, np.float64(0.1)):
            assert sampler(0.1, size=50, rng=9).tolist() == sampler(same, size=50, rng=9).tolist()
        assert sampler(np.int64(3), rng=9) == sampler(3.0, rng=9) == sampler(Fraction(3), rng=9)
        halves = [np.float32(0.5), Fraction(1, 2)]
        assert len({str(sampler(half, size=50, rng=9)) for half in halves}) == 1


# --- the calls


@pytest.mark.parametrize(
    "name, kind, dtype",
    [
        ("bernoulli_exp", bool, np.bool_),
        ("discrete_laplace", int, np.int64),
        ("discrete_gaussian", int, np.int64),
    ],
)
def test_shapes_and_types(implementation, name, kind, dtype):
    sampler = getattr(implementation.noise, name)
    assert type(sampler(2)) is kind and type(sampler(LONG)) is kind
    for size, shape in ((0, (0,)), (3, (3,)), ((), ()), ((2, 0), (2, 0)), ((2, 3), (2, 3))):
        for value in (2, LONG):
            drawn = sampler(value, size=size)
            assert isinstance(drawn, np.ndarray)
            assert drawn.shape == shape and drawn.dtype == dtype
    assert sampler(2, size=np.int64(4)).shape == (4,)


def test_seeds_reproduce(implementation):
    for name in ("bernoulli_exp", "discrete_laplace", "discrete_gaussian"):
        sampler = getattr(implementation.noise, name)
        first = sampler(2.5, size=40, rng=10).tolist()
        assert sampler(2.5, size=40, rng=10).tolist() == first
        generator = np.random.default_rng(10)
        assert sampler(2.5, size=40, rng=generator).tolist() == first
        assert sampler(0.5, size=40, rng=generator).tolist() != sampler(0.5, size=40).tolist()


def test_arrays_are_filled_in_pieces(monkeypatch):
    monkeypatch.setattr(noise, "CHUNK", 7)
    drawn = noise.discrete_laplace(1000, size=(4, 5), rng=11)
    assert np.unique(drawn).size > 15


def test_single_draws_have_any_length(implementation):
    scale = Fraction(10**60, 3)
    for sampler in (implementation.noise.discrete_laplace, implementation.noise.discrete_gaussian):
        generator = np.random.default_rng(12)
        assert max(abs(sampler(scale, rng=generator)) for _ in range(20)) > 10**59
        assert abs(sampler(2**53 + 1, rng=generator)) > 2**40
        assert sampler(5e-324, rng=generator) == 0


NOT_POSITIVE = [0, -1, -0.5, math.inf, -math.inf, math.nan, Fraction(-1, 3), -(10**400)]


@pytest.mark.parametrize("value", NOT_POSITIVE, ids=lambda value: str(value)[:8])
def test_rejects_what_is_not_positive_and_finite(implementation, value):
    with pytest.raises(ValueError, match="scale must be positive and finite, got"):
        implementation.noise.discrete_laplace(value)
    with pytest.raises(ValueError, match="sigma must be positive and finite, got"):
        implementation.noise.discrete_gaussian(value, size=3)
    if value != 0:
        with pytest.raises(ValueError, match="gamma must be finite and not negative, got"):
            implementation.noise.bernoulli_exp(value)


@pytest.mark.parametrize("value", ["1", None, True, 1j, [1.0], np.ones(2)], ids=str)
def test_rejects_what_is_not_a_real_number(implementation, value):
    with pytest.raises(TypeError, match="scale must be a real number, got"):
        implementation.noise.discrete_laplace(value)
    with pytest.raises(TypeError, match="sigma must be a real number, got"):
        implementation.noise.discrete_gaussian(value)
    with pytest.raises(TypeError, match="gamma must be a real number, got"):
        implementation.noise.bernoulli_exp(value)


@pytest.mark.parametrize("value", [2**53 + 1, math.nextafter(2.0**53, math.inf), 10**400])
def test_rejects_arrays_that_could_leave_int64(implementation, value):
    with pytest.raises(ValueError, match=r"scale must be at most 2\*\*53 where size is given"):
        implementation.noise.discrete_laplace(value, size=1)
    with pytest.raises(ValueError, match=r"sigma must be at most 2\*\*53 where size is given"):
        implementation.noise.discrete_gaussian(value, size=())
    assert implementation.noise.discrete_laplace(2**53, size=1).shape == (1,)


@pytest.mark.parametrize(
    "size, error, message",
    [
        (-1, ValueError, "size must be at least 0, got -1"),
        ((2, -3), ValueError, "size must be at least 0, got -3"),
        (1.5, TypeError, "size must be an integer, got 1.5"),
        ("3", TypeError, "size must be an integer, got '3'"),
        (True, TypeError, "size must be an integer, got True"),
    ],
)
def test_rejects_sizes(implementation, size, error, message):
    for name in ("bernoulli_exp", "discrete_laplace", "discrete_gaussian"):
        with pytest.raises(error, match=message):
            getattr(implementation.noise, name)(1, size=size)


# --- log-probabilities


@pytest.mark.parametrize("scale", [1e-3, 0.02, 0.3, 0.398, 0.4, 1.0, 7.5, 1e3, 1e9, 1e15])
def test_log_probs_are_accurate(scale):
    outcomes = sorted({0, 1, -2, round(scale), -round(3.7 * scale), round(30 * scale)})
    with mpmath.workdps(60):
        for log_prob, exact in (
            (noise.discrete_laplace_log_prob, laplace_log_prob),
            (noise.discrete_gaussian_log_prob, gaussian_log_prob),
        ):
            for k, found in zip(outcomes, log_prob(outcomes, scale), strict=True):
                assert abs(found - exact(k, scale)) <= 1e-12 * abs(exact(k, scale)) + 1e-300
                assert found == log_prob(k, scale)
    assert isinstance(noise.discrete_laplace_log_prob(3, scale), float)


def test_log_probs_reject(implementation):
    for log_prob in (noise.discrete_laplace_log_prob, noise.discrete_gaussian_log_prob):
        with pytest.raises(TypeError, match="k must be an integer or an array of integers"):
            log_prob(0.5, 1)
        with pytest.raises(ValueError, match="must be positive and finite"):
            log_prob(1, 0)


@pytest.mark.parametrize("scale", [Fraction(1, 10**400), 5e-324, 1e-200, 1e200, 1.7e308, 10**400])
def test_log_probs_at_the_ends_of_float64(scale):
    """A narrow law is a point; a wide one is flat, and its logarithm is that of its height."""
    laplace = noise.discrete_laplace_log_prob
    gaussian = noise.discrete_gaussian_log_prob
    if scale < 1:
        for log_prob in (laplace, gaussian):
            assert log_prob(0, scale) == 0.0
            np.testing.assert_array_equal(log_prob([-1, 0, 5], scale) < -1e100, [True, False, True])
        return
    with mpmath.workdps(50):
        log_scale = mpmath.log(scale)
        flat = float(-mpmath.log(2) - log_scale), float(-mpmath.log(2 * mpmath.pi) / 2 - log_scale)
    for log_prob, expected in zip((laplace, gaussian), flat, strict=True):
        assert log_prob(0, scale) == pytest.approx(expected, rel=1e-12)
        assert log_prob([3, 2**53], scale) == pytest.approx(expected, rel=1e-12)
        assert log_prob(2 * math.ceil(scale), scale) < log_prob(0, scale) - 1.0


def test_outcomes_beyond_float64():
    for log_prob in (noise.discrete_laplace_log_prob, noise.discrete_gaussian_log_prob):
        assert log_prob(10**400, 1.0) == log_prob(-(10**400), 1.0) == -math.inf


@pytest.mark.parametrize("size", [2**40, (2**20, 2**20)])
@pytest.mark.parametrize("module", [noise, reference_noise])
def test_arrays_that_no_memory_holds_are_refused(module, size):
    for draw in (module.bernoulli_exp, module.discrete_laplace, module.discrete_gaussian):
        with pytest.raises(ValueError, match=r"^size must make at most 2\^32 draws, got 10995"):
            draw(1.0, size=size)
