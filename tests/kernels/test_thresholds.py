"""Where the words of a generator change what a kernel draws, against probabilities in 60 digits.

A draw that is off by 10^-6 takes 10^13 draws to be seen. But what a kernel draws changes at few
words, and halving finds each to the last bit: how many words lie on either side is its probability.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain, combinations_with_replacement, product, repeat

import mpmath
import numpy as np
import pytest
from randomgen import UserBitGenerator

from dpq_fast._kernels import depth, halting, race, uniform
from dpq_fast._kernels import noise as noise_kernel
from dpq_fast._kernels.scan import EACH_ROW, KINDS, Scan
from dpq_fast.noise import discrete as noise

WORDS = 1 << 64
LAST = WORDS - 1
# What float64 sums and logarithms may move a probability by, of its own size.
ROUNDING = mpmath.mpf(2) ** -46


def scripted(*words):
    """A generator of these words, and of zeros then."""
    given = chain(words, repeat(0))
    return np.random.Generator(UserBitGenerator(lambda _: next(given), 64))


def whole(word):
    """A uniform number's words: of one with fewer than 53 bits another word gives the last ones."""
    return [word] if word >> 52 else [word, 0]


def first_word(holds, low=1, high=LAST):
    """The first word from `low` on for which it holds, as it does for all from there to `high`."""
    assert holds(high)
    if holds(low):
        return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def assert_share(words, probability, rounding=ROUNDING):
    """So many words are of that probability; the last bit is rounded, and so are small shares."""
    found = mpmath.mpf(words) / WORDS
    assert abs(found - probability) <= rounding * probability + mpmath.mpf(2) ** -63


# --- uniform numbers


@pytest.mark.parametrize("zeros", range(130))
def test_log_uniforms_have_the_word_for_digits(zeros):
    """For each number of leading zeros: the bits behind them, however many words they take."""
    for tail in (0, 1 << 52, (1 << 53) - 1, (1 << 53) // 3):
        bits = (1 << 53 | tail) << (256 - 54 - zeros)
        words = [bits >> shift & LAST for shift in (192, 128, 64, 0)]
        if zeros % 64 <= 11 and zeros < 64:
            words = words[:1]
        found = uniform.log_uniforms(1, scripted(*words))[0]
        with mpmath.workdps(40):
            exact = mpmath.log(mpmath.mpf((1 << 53 | tail) >> 1) / 2**53) - zeros * mpmath.log(2)
            assert abs(found - exact) <= 4e-16 * abs(exact) + 2e-16


@pytest.mark.parametrize("n", [*range(2, 35), 64, 65, 127, 128, 129])
def test_integers_below_take_each_word_once(n):
    """Of all words that differ in the bits that are looked at, each integer has one."""
    size = 1 << (n - 1).bit_length()
    for high in (0, 1 << 63, LAST - size + 1):
        drawn = [uniform.integers_below(n, 1, scripted(high | low))[0] for low in range(size)]
        # what is refused is followed by a word of zeros, and so is 0
        assert drawn == [*range(n), *[0] * (size - n)]


@pytest.mark.parametrize("n", [2**20 + 1, 2**32 - 1, 2**53, 2**62 + 1, 2**63])
def test_integers_below_end_where_they_should(n):
    mask = (1 << (n - 1).bit_length()) - 1
    for word in (n - 1, n - 2, n // 2):
        assert uniform.integers_below(n, 1, scripted(word))[0] == word
    for word in {n, n + 1, mask} - {n, n + 1} | {word for word in (n, n + 1) if word <= mask}:
        taken = uniform.integers_below(n, 1, scripted(word, 1))[0]
        assert taken == (word if word < n else 1)


@pytest.mark.parametrize(("k", "w"), [(1, 3), (2, 4), (3, 3), (4, 2), (3, 5), (5, 3)])
def test_multisets_are_equally_many(k, w):
    """Each multiset for as many of all the choices that there are."""
    choices = product(*(range(w + i) for i in range(k)))
    found = Counter(tuple(uniform.multiset(k, w, scripted(*words)).tolist()) for words in choices)
    times = math.prod(range(w, w + k)) // math.comb(w + k - 1, k)
    assert found == dict.fromkeys(combinations_with_replacement(range(w), k), times)


# --- races


def assert_halving(drawn, weights, least):
    """Each halving of some weights by its own word, down to `least` of them."""

    def parts(low, high, words):
        if high - low <= least:
            return
        middle = low + (high - low) // 2
        left, right = sum(weights[low:middle]), sum(weights[middle:high])
        if left and right:
            smaller, both = min(left, right), left + right
            ends = [drawn(*words, *whole(word)) < middle for word in (1, LAST)]
            assert ends == ([True, False] if left < right else [False, True])
            first = first_word(
                lambda word: (drawn(*words, *whole(word)) < middle) == (left >= right)
            )
            assert_share(first, mpmath.mpf(smaller) / both)
            inside = [whole(1), [LAST]] if left < right else [[LAST], whole(1)]
        else:
            inside = [[], []]
        for (a, b), more in zip(((low, middle), (middle, high)), inside, strict=True):
            if sum(weights[a:b]):
                parts(a, b, (*words, *more))

    parts(0, len(weights), ())


@pytest.mark.parametrize("size", [2, 3, 7, 16, 33])
def test_each_half_of_a_race_wins_as_often_as_it_weighs(size):
    rng = np.random.default_rng(size)
    weights = rng.integers(1, 1000, size)
    weights[rng.random(size) < 0.2] = 0
    weights[0], weights[-1] = 1, 10**9
    with np.errstate(divide="ignore"):
        logs = np.log(weights.astype(float))
    assert_halving(lambda *words: race.draw(logs, scripted(*words)), weights.tolist(), 1)


@pytest.mark.parametrize("size", [2, 3, 8, 31, 32])
def test_plain_races_end_where_weights_do(size):
    """By running sums of the large weights, and behind these by halves of the small ones."""
    rng = np.random.default_rng(size)
    weights = rng.integers(1000, 2000, size).astype(float)
    large = list(range(size))
    if size > 3:  # small ones are less than 2^-9 of all
        weights[1::3] = rng.integers(1, 2, weights[1::3].size)
        large = [k for k in range(size) if k % 3 != 1]
    small = sorted(set(range(size)) - set(large))
    total, light = int(weights.sum()), int(weights[small].sum())

    def drawn(word):
        found = race.draw_plain(weights, scripted(*whole(word)))
        return -1 if found in small else large.index(found)

    if small:
        assert drawn(1) == -1
    reached = light
    for place, k in enumerate(large):
        first = first_word(lambda word, place=place: drawn(word) >= place)
        assert_share(first, mpmath.mpf(reached) / total)
        reached += int(weights[k])
    if len(small) > 1:
        light = [int(weight) if k in small else 0 for k, weight in enumerate(weights)]
        assert_halving(lambda *words: race.draw_plain(weights, scripted(1, 0, *words)), light, 1)


def test_plain_races_of_many_are_halved_first():
    weights = np.random.default_rng(0).integers(1, 100, 256).astype(float)
    exact = weights.astype(int).tolist()
    assert_halving(lambda *words: race.draw_plain(weights, scripted(*words)), exact, 32)


# --- streams that halt

HALF = 1 << 63  # a word that says: beyond the median


def passes(noise_name, gap):
    """P[noise of a query < gap], in 60 digits."""
    gap = mpmath.mpf(gap)
    if noise_name == "exponential":
        return -mpmath.expm1(-gap) if gap > 0 else mpmath.mpf(0)
    if noise_name == "laplace":
        return mpmath.exp(gap) / 2 if gap < 0 else 1 - mpmath.exp(-gap) / 2
    return mpmath.exp(-mpmath.exp(-gap))


# Noise of the threshold: V is a half, below the median, -ln(1 - 1/4).
NEAR = [0, HALF]
THRESHOLD = -mpmath.log(mpmath.mpf(3) / 4)


@pytest.mark.parametrize("name", ["exponential", "laplace", "gumbel"])
@pytest.mark.parametrize("value", [-30.0, -3.0, -1.0, -0.5, 0.0, 0.2, 0.28])
def test_streams_halt_as_often_as_their_noise_says(name, value):
    """A clock below the median, and one beyond it: each query is passed with its probability."""
    threshold = -mpmath.log(THRESHOLD) if name == "gumbel" else THRESHOLD
    start = [*NEAR, *([0] if name == "laplace" else [])]
    queries = np.array([value, value - 1.0, value])

    def halts(*clock):
        return int(halting.Halting(name, 1.0, 1.0, scripted(*start, *clock)).advance(queries))

    with mpmath.workdps(60):
        left = mpmath.mpf(1)
        for step, query in enumerate(queries.tolist()):
            left *= passes(name, threshold - query)
            # the clock is at most the sum of hazards up to here with probability 1 - left
            if left >= 0.5:
                word = first_word(lambda w, step=step: not 0 <= halts(0, *whole(w)) <= step)
                found, exact = mpmath.mpf(word) / WORDS / 2, 1 - left
            else:
                word = first_word(lambda w, step=step: 0 <= halts(HALF, *whole(w)) <= step)
                found, exact = mpmath.mpf(word) / WORDS / 2, left
            assert abs(found - exact) <= ROUNDING * exact + mpmath.mpf(2) ** -62


@pytest.mark.parametrize("name", ["exponential", "gumbel"])
def test_thresholds_have_the_law_of_their_noise(name):
    """By queries that halt for sure if they are above the threshold, or if it is low enough."""
    clock = [HALF, 0] if name == "exponential" else [0, HALF]

    def halts(query, *words):
        stream = halting.Halting(name, 1.0, 1.0, scripted(*words, *clock))
        return bool(stream.halts_at(query))

    for query in (0.05, 0.3, 0.6, 0.8, 2.0, 5.0):
        with mpmath.workdps(60):
            if name == "exponential":  # the noise is at most the query
                below = -mpmath.expm1(-mpmath.mpf(query))
            else:  # it is e^-gumbel, times e^query at least the clock
                below = mpmath.exp(-THRESHOLD * mpmath.exp(-mpmath.mpf(query)))
            if name == "exponential" and below <= 0.5:
                word = first_word(lambda w, query=query: not halts(query, 0, *whole(w)))
                assert_share(word, 2 * below)
            elif name == "exponential":
                word = first_word(lambda w, query=query: halts(query, HALF, *whole(w)))
                assert_share(word, 2 * (1 - below))
            elif below >= 0.5:  # a small variate is a large noise of the threshold
                word = first_word(lambda w, query=query: halts(query, 0, *whole(w)))
                assert_share(word, 2 * (1 - below))
            else:
                word = first_word(lambda w, query=query: not halts(query, HALF, *whole(w)))
                assert_share(word, 2 * below)


@pytest.mark.parametrize(
    ("value", "length"), [(-1.5, 2), (-3.0, 2), (-3.0, 5), (-5.0, 40), (-12.0, 40)]
)
def test_steps_of_a_run_are_geometric(value, length):
    """Which one of a run halts, given that one does: each by its own stretch of words."""
    with mpmath.workdps(60):
        passed = passes("exponential", THRESHOLD - mpmath.mpf(value))
        all_halt = 1 - passed**length
    at_once = 0, 1  # the clock is next to 0

    def step(word):
        rng = scripted(*NEAR, *at_once, 0, *whole(word))
        stream = halting.Halting("exponential", 1.0, 1.0, rng)
        return int(stream.advance(np.array([value]), np.array([length])))

    for after in range(1, length):
        word = first_word(lambda w, after=after: step(w) >= after)
        with mpmath.workdps(60):
            assert_share(word, (1 - passed**after) / all_halt, mpmath.mpf(2) ** -44)


@pytest.mark.parametrize(("first", "loss"), [(HALF, 0.3), (1 << 55, 2.0), (LAST, 0.0), (3, 40.0)])
@pytest.mark.parametrize("points", [1.0, 3.0, 1000.0, 2.0**40])
def test_a_cell_is_drawn_as_often_as_one_of_its_points_is_highest(first, loss, points):
    """The best cell has one point, whose variate its word says; the other one may be above it."""
    sizes, losses = np.array([1.0, points]), np.array([0.0, loss])

    def drawn(word):
        rng = scripted(*whole(first), *whole(word))
        return int(depth.flip(sizes, losses, 1.0, 0, 1, rng)[0])

    with mpmath.workdps(60):
        best = -mpmath.log(mpmath.mpf(first) / WORDS if first < LAST else 1 - mpmath.mpf(2) ** -53)
        # P[the largest of so many is above]
        above = -mpmath.expm1(points * mpmath.log1p(-mpmath.exp(-(best + loss))))
        if 1 - above < mpmath.mpf(2) ** -53:
            assert drawn(LAST) == 1
        else:
            assert_share(first_word(lambda word: drawn(word) == 0), above, mpmath.mpf(2) ** -40)


# --- tables


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1e-9, 3e-7, 1e-3, 0.37])
def test_each_entry_of_the_tables_of_decays_is_exact(rate):
    """The total of one interval: at ranks up to 2048, multiples of it, and of 2048 times 512."""
    table, far = 2048, 512
    rank = np.unique(
        np.concatenate(
            (
                np.arange(table + 64),
                np.arange(far + 2) * table + np.arange(far + 2),
                np.arange(1100) * table * far + 3 * table + np.arange(1100),
            )
        )
    ).astype(np.int64)
    width, q = np.ones(rank.size), np.array([0.0])
    for at, away in enumerate(rank.tolist()):
        own = [np.array([place], dtype=np.uintp) for place in (at, at + 1)]
        for kind in KINDS:
            rows = Scan(rank, width, True, q, int(rank[-1]), *own, rate)
            exact = -2.0 * rate * away  # a single level counts its deviation twice
            if rows.forward_as(kind):  # where float64 holds it
                assert abs(rows.log_total - exact) <= 3e-14 + 4e-16 * abs(exact)
            else:
                assert kind == EACH_ROW and exact < -540.0


# --- discrete noise: words in which rare decisions are frequent


class Biased:
    """Words of few digits, so that cells are shared, descents long, and rests equal."""

    def __init__(self, seed, digits):
        self._rng, self._digits = np.random.default_rng(seed), digits

    def __call__(self, _):
        chosen = self._rng.choice(self._digits, 8)
        return int.from_bytes(bytes(chosen.tolist()), "little")


RATIOS = [(1, 1), (2, 1), (7, 3), (255, 256), (257, 256), (2**20 - 1, 2**10), (2**64 + 1, 2**50)]


@pytest.mark.parametrize("digits", [[0, 255], [0, 1, 2], [254, 255, 0], [128, 127], list(range(8))])
@pytest.mark.parametrize("ratio", RATIOS)
def test_noise_makes_every_rare_decision_as_python_integers_do(ratio, digits):
    rests = (0, ratio[0] % ratio[1], ratio[1])
    for draw, exact, law, dtype in (
        (noise_kernel.bernoulli, noise._bernoulli, rests, np.uint8),
        (noise_kernel.laplace, noise._laplace, ratio, np.int64),
        (noise_kernel.gaussian, noise._gaussian, ratio, np.int64),
    ):
        one, other = (
            np.random.Generator(UserBitGenerator(Biased(5, digits), 64)) for _ in range(2)
        )
        out = np.empty(60, dtype)
        draw(*law, out, one)
        bits = noise._Bits(other)
        assert out.tolist() == [exact(*law, bits) for _ in range(60)]


@pytest.mark.parametrize("refused", [0, 1, 2, 40, 1022, 1023])
def test_noise_goes_on_as_long_as_it_is_refused(refused):
    """An exponential variate, refused so often: each time by two numbers that descend once."""
    digits = [200, 100, 255] * refused + [200, 255, 0]  # and then none that does; a positive sign
    digits += [0] * (-len(digits) % 8)
    words = [
        int.from_bytes(bytes(digits[at : at + 8]), "little") for at in range(0, len(digits), 8)
    ]
    out = np.empty(1, np.int64)
    noise_kernel.laplace(2**8, 1, out, scripted(*words))
    assert out[0] == 2**8 * refused + 200
