"""Records drawn by halves: the kernel against its reference, and both against their laws."""

import math

import mpmath
import numpy as np
import pytest
from conftest import SMALLEST_P, assert_draws_follow
from hypothesis import given
from hypothesis import strategies as st
from randomgen import UserBitGenerator
from scipy import stats

from dpq_fast._kernels import halves as kernel
from dpq_fast.reference import halves as reference

# Cells, and what is asked of them, in the order in which it is.
COUNTS = st.lists(st.integers(0, 60) | st.sampled_from([1_000, 10**6]), min_size=1, max_size=4)
ASKED = st.lists(
    st.tuples(st.sampled_from(["order", "below", "cuts"]), st.integers(0, 2**32)),
    min_size=1,
    max_size=6,
)


def answers(made, bits, counts, asked):
    """What cells of so many records say, after each other."""
    first = made.add(np.array(counts[:1]))
    assert first == 0 and made.add(np.array(counts[1:], dtype=np.int64)) == 1
    starts = np.cumsum([0, *counts])
    for what, seed in asked:
        rng = np.random.default_rng(seed)
        cell = int(rng.integers(len(counts)))
        if what == "order":
            start = int(rng.integers(counts[cell] + 1))
            yield made.order(cell, start, min(start + int(rng.integers(9)), counts[cell]))
        elif what == "below":
            cells = rng.integers(0, len(counts), 5)
            yield made.below(cells, rng.integers(-1, 2**bits + 2, 5))
        else:
            yield from made.cuts(*cuts_of(rng, starts))


def cuts_of(rng, starts):
    """Arguments for cuts of cells at points 0, 2, ...: of two sizes, around some places."""
    inside = np.where(rng.random(starts.size - 1) < 0.8, np.arange(starts.size - 1), -1)
    n, least = int(starts[-1]), 2 if starts[-1] < 300 else int(starts[-1]) // 60
    full = np.sort(rng.integers(least, 12 * least, 2))
    edges = [np.sort(rng.choice(n + 5, size, replace=False)) for size in (2, 4)]
    first, last = (np.concatenate([edge[k::2] for edge in edges]) for k in (0, 1))
    points = 2 * np.arange(inside.size)
    return points, starts[:-1], starts[1:], inside, full, np.array([0, 1, 3], "uintp"), first, last


@given(st.integers(1, 32), COUNTS, ASKED, st.integers(1, 20), st.sampled_from([0, 10, 70, 2**17]))
def test_the_kernel_draws_what_the_reference_does(bits, counts, asked, few, counted):
    """Any question after any other, and all of the records at the end."""
    asked = [*asked, ("cuts", 1), ("below", 2), ("order", 3)]
    found = [
        list(answers(module.Halves(bits, np.random.default_rng(7), few, counted, 3 * few), *what))
        for module, what in ((each, (bits, counts, asked)) for each in (kernel, reference))
    ]
    assert len(found[0]) == len(found[1])
    for ours, theirs in zip(*found, strict=True):
        assert ours.tolist() == theirs.tolist()


@given(st.lists(st.integers(0, 255), min_size=1, max_size=40), ASKED, st.integers(1, 3))
def test_offsets_that_are_kept_are_all_there_is(offsets, asked, few):
    offsets = np.sort(np.array(offsets))
    for module in (kernel, reference):
        made = module.Halves(8, np.random.default_rng(0), few, 100)
        made.add(np.array([offsets.size]))
        made.keep(0, offsets)
        assert made.order(0, 0, offsets.size).tolist() == offsets.tolist()
        for _, seed in asked:
            rng = np.random.default_rng(seed)
            at = rng.integers(-1, 258, 5)
            found = made.below(np.zeros(5, dtype=np.int64), at)
            assert found.tolist() == np.searchsorted(offsets, at).tolist()
            at, below, above = made.cuts(*cuts_of(rng, np.array([0, offsets.size])))
            assert (np.diff(at) > 0).all()
            assert (np.searchsorted(offsets, at) <= below).all()
            assert (np.searchsorted(offsets, at + 1) >= above).all()


@pytest.mark.parametrize("few", [1, 2, 100])
def test_records_are_uniform_and_independent(few):
    rng, drawn = np.random.default_rng(few), []
    for _ in range(4_000):
        made = kernel.Halves(2, rng, few, 100)
        made.add(np.array([4]))
        made.below(np.array([0]), np.array([1]))
        drawn.append(tuple(made.order(0, 0, 4).tolist()))
    law = {}
    for outcome in set(drawn):
        ways = math.factorial(4)
        for offset in set(outcome):
            ways //= math.factorial(outcome.count(offset))
        law[outcome] = math.log(ways) - 4 * math.log(4.0)
    assert len(law) == 35
    assert_draws_follow(drawn, law)


def test_the_middle_of_the_largest_cell_is_found_in_few_steps():
    """Of 2^53 uniform offsets the middle one is 2^31 +- 2^32 / 2^27.5, to 10 deviations."""
    made, count = kernel.Halves(32, np.random.default_rng(0), 16, 2**17), 2**53
    made.add(np.array([count]))
    (middle,) = made.order(0, count // 2, count // 2 + 1).tolist()
    assert abs(middle - 2**31) < 10 * 2**4
    below, through = made.below(np.array([0, 0]), np.array([middle, middle + 1])).tolist()
    assert below <= count // 2 < through
    assert abs((through - below) * 2.0**32 / count - 1.0) < 10 * 2.0**-10


def test_parts_have_as_many_records_as_asked_for():
    counts = np.array([5 * 2**17 + 3, 7])
    made = kernel.Halves(24, np.random.default_rng(0), 16, 2**17)
    made.add(counts)
    stop = np.cumsum(counts)
    around = np.array([2**14]), np.array([0, 1], "uintp"), np.array([0]), stop[-1:]
    at, below, above = made.cuts(np.array([0, 1]), stop - counts, stop, np.array([0, 1]), *around)
    assert (np.diff(above) < 2**15).all() and (below == above).all()
    share = np.diff(below[:-2]) / np.diff(at[:-2]) * 2**24 / counts[0]
    assert abs(share - 1.0).max() < 0.1
    # and what is known of them holds
    assert (made.below(np.zeros(at.size - 2, dtype=np.int64), at[:-2] + 1) == below[:-2]).all()


def test_cells_and_records_that_are_not_there_are_refused():
    made = kernel.Halves(4, np.random.default_rng(0), 2, 10)
    none, one = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    with pytest.raises(IndexError, match="a cell must be among those added"):
        made.order(0, 0, 0)
    with pytest.raises(IndexError, match="a cell must be among those added"):
        made.below(one, one)
    made.add(np.array([3]))
    with pytest.raises(IndexError, match="records must be among those of the cell"):
        made.order(0, 2, 4)
    with pytest.raises(ValueError, match="cells and offsets must be of one length"):
        made.below(one, none)
    with pytest.raises(ValueError, match="offsets must be of all records of a cell"):
        made.keep(0, np.array([1, 2]))
    made.keep(0, np.array([1, 2, 3]))
    with pytest.raises(ValueError, match="offsets must be of all records of a cell"):
        made.keep(0, np.array([1, 2, 3]))
    offset = np.array([0, 1], "uintp")
    with pytest.raises(ValueError, match="arrays of cells, and of stretches"):
        made.cuts(one, one, one, none, one + 1, offset, one, one)
    with pytest.raises(ValueError, match="sizes must be positive"):
        made.cuts(one, one, one + 3, one, one, offset, one, one)
    with pytest.raises(IndexError, match="a cell must be among those added"):
        made.cuts(one, one, one + 3, one + 1, one + 1, offset, one, one)
    for bits, few in ((0, 1), (33, 1), (1, 0)):
        with pytest.raises(ValueError, match="a cell has 1 to 32 bits"):
            kernel.Halves(bits, np.random.default_rng(0), few, 10)


# Binomials


def scripted(words: list[int]) -> np.random.Generator:
    """A generator whose 64-bit words are given."""
    left = iter(words)
    return np.random.Generator(UserBitGenerator(lambda state: next(left)))


def test_fair_binomial_counts_each_random_bit_once():
    words = [0xF0F0F0F0F0F0F0F0, 2**64 - 1, 0, 0xAAAAAAAAAAAAAAAA, 1 << 63, 0b10110]
    for count, script, ones in (
        (0, [], 0),
        (64, words[:1], 32),
        (128, words[:2], 96),
        (5 * 64, words[:5], 32 + 64 + 0 + 32 + 1),
        (3 * 64 + 5, [*words[:3], words[5]], 96 + 3),
        (3, [words[5]], 2),  # 110 of 10110
        # the bits that are not used do not count
        (3, [2**64 - 8], 0),
        (63, [2**63], 0),
    ):
        assert kernel.fair_binomial(count, scripted(script), 2**17) == ones
        assert reference.Words(scripted(script), 2**17).binomial(count) == ones


@pytest.mark.parametrize("count, counted", [(1, 99), (7, 99), (64, 99), (100, 100), (1000, 1000)])
def test_fair_binomial_follows_the_binomial_law(count, counted):
    rng = np.random.default_rng(count)
    drawn = [kernel.fair_binomial(count, rng, counted) for _ in range(8_000)]
    law = {k: float(stats.binom.logpmf(k, count, 0.5)) for k in range(count + 1)}
    assert_draws_follow(drawn, law)


@pytest.mark.parametrize("count", [99, 100, 1001])
def test_fair_binomial_by_rejection_follows_the_binomial_law(count):
    rng = np.random.default_rng(count)
    drawn = [kernel.fair_binomial(count, rng, 10) for _ in range(8_000)]
    law = {k: float(stats.binom.logpmf(k, count, 0.5)) for k in range(count + 1)}
    assert_draws_follow(drawn, law)


@pytest.mark.parametrize(
    "half, distance",
    [(50, 0), (50, 1), (50, 30), (5000, 200), (10**4, 9_000), (10**6, 5000)],
)
def test_log_fair_binomial_matches_factorials(half, distance):
    def log_choose(k):
        return mpmath.log(mpmath.binomial(2 * half, k))

    with mpmath.workdps(40):
        exact = float(log_choose(half + distance) - log_choose(half))
    # Stirling's rest is 1/(1260 n^5): what matters is n >= 2^16
    tolerance = 1e-13 if half > 1000 else 1e-9
    for module in (kernel, reference):
        found = module.log_fair_binomial(half, distance)
        assert found == pytest.approx(exact, abs=tolerance, rel=1e-14)


def test_log_fair_binomial_far_from_the_middle_is_short():
    """The last of 2^52 outcomes on one side; a series would have some 2^50 terms."""
    half = 2**52
    for module in (kernel, reference):
        found = module.log_fair_binomial(half, half - 1)
        assert found == pytest.approx(-2.0 * math.log(2.0) * half, rel=1e-12)


def test_fair_binomial_of_the_largest_count_is_near_the_middle():
    rng = np.random.default_rng(0)
    drawn = np.array([kernel.fair_binomial(2**53 - 1, rng, 2**17) for _ in range(2_000)])
    z = (drawn - 2.0**52) / (2.0**53 / 4) ** 0.5
    assert stats.kstest(z, stats.norm.cdf).pvalue > SMALLEST_P


def test_fair_binomial_refuses_what_is_no_number_of_records():
    with pytest.raises(ValueError, match="a number of records must not be negative"):
        kernel.fair_binomial(-1, np.random.default_rng(0), 10)
    for half, distance in ((5, 5), (5, -1)):
        with pytest.raises(ValueError, match="a distance must be less than half of all"):
            kernel.log_fair_binomial(half, distance)
