"""The compiled kernels against brute force: these tests also run under ASan and UBSan."""

import math
import struct
import sys
from itertools import chain, combinations_with_replacement, pairwise, product, repeat

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from randomgen import UserBitGenerator
from scipy import stats

from dpq_fast._kernels import (
    depth,
    fit,
    halting,
    intervals,
    lattice,
    path,
    race,
    stray,
    strings,
    sums,
    uniform,
)
from dpq_fast._kernels.scan import EACH_BLOCK, EACH_ENTRY, EACH_ROW, KINDS, Scan

SMALLEST_P = 1e-6


def scripted(words):
    """A Generator whose 64-bit words are given; running out raises."""
    remaining = iter(words)
    return np.random.Generator(UserBitGenerator(lambda _: next(remaining), 64))


def problem(rank, width, q, n, rate, on_lattice=True, lo=None, hi=None):
    size, m = len(rank), len(q)
    return Scan(
        np.array(rank, dtype=np.int64),
        np.array(width, dtype=np.float64),
        on_lattice,
        np.array(q, dtype=np.float64),
        n,
        np.array([0] * m if lo is None else lo, dtype=np.uintp),
        np.array([size] * m if hi is None else hi, dtype=np.uintp),
        rate,
    )


# --- uniform


def test_log_uniforms_known_values():
    top = 1 << 63
    words = [top, 0, top, 1, 0, (1 << 64) - 1]
    drawn = uniform.log_uniforms(4, scripted(words))
    half = math.log(0.5)
    # a leading one: V = 1/2; 64 zero bits and a leading one: 2^-65; 63 zeros, one, zeros: 2^-64
    np.testing.assert_allclose(drawn[:3], [half, 65 * half, 64 * half], rtol=1e-15)
    assert drawn[3] == math.log(1.0 - 2.0**-53)


def test_log_uniforms_fills_the_mantissa_from_a_fresh_word():
    # 12 leading zeros leave 51 bits after the one: the 52nd comes from the next word's top
    assert uniform.log_uniforms(1, scripted([1 << 51, (1 << 64) - 1]))[0] == pytest.approx(
        math.log(0.5 + (2.0**12 - 1) * 2.0**-64) - 12 * math.log(2.0), rel=1e-15
    )


def test_log_uniforms_gives_up_on_a_stuck_generator():
    drawn = uniform.log_uniforms(1, scripted([0] * 2000))
    assert math.isfinite(drawn[0]) and drawn[0] < 65_536 * math.log(0.5)


def test_log_uniforms_law_is_exponential():
    drawn = -uniform.log_uniforms(100_000, np.random.default_rng(1))
    assert stats.kstest(drawn, stats.expon.cdf).pvalue > SMALLEST_P


@pytest.mark.parametrize("n", [1, 2, 3, 5, 64, 2**53, 2**63 - 1, 2**63])
def test_integers_below_stays_below(n):
    drawn = uniform.integers_below(n, 1000, np.random.default_rng(0))
    assert drawn.min() >= 0 and int(drawn.max()) < n


def test_integers_below_rejects_what_does_not_fit():
    # n = 5: three bits; 7, 6 and 5 are rejected, 4 is taken; the upper bits do not count
    assert uniform.integers_below(5, 1, scripted([7, 6, 13, 12]))[0] == 4


def test_integers_below_one_draws_nothing():
    assert uniform.integers_below(1, 3, scripted([])).tolist() == [0, 0, 0]


def test_integers_below_is_uniform():
    counts = np.bincount(uniform.integers_below(7, 70_000, np.random.default_rng(2)), minlength=7)
    assert stats.chisquare(counts).pvalue > SMALLEST_P


@pytest.mark.parametrize(("k", "w"), [(1, 1), (3, 1), (1, 4), (2, 4), (3, 3), (4, 2)])
def test_multiset_is_uniform_over_multisets(k, w):
    rng = np.random.default_rng(3)
    cells = {cell: 0 for cell in combinations_with_replacement(range(w), k)}
    for _ in range(200 * len(cells)):
        cells[tuple(uniform.multiset(k, w, rng).tolist())] += 1
    if len(cells) > 1:
        assert stats.chisquare(list(cells.values())).pvalue > SMALLEST_P


def test_multiset_of_a_huge_set_stays_inside():
    drawn = uniform.multiset(500, 2**53, np.random.default_rng(4))
    assert (np.diff(drawn) >= 0).all() and drawn[0] >= 0 and drawn[-1] < 2**53


# --- race


def test_race_draws_an_event_of_1e_minus_20():
    # index 1 has 1e-20 of the weight: it wins where V, a random exponent and a mantissa, is below
    weights = np.array([0.0, math.log(1e-20)])
    bits = math.floor(-math.log2(1e-20))  # 66: V = 2^-67 < 1e-20 < 2^-66
    assert race.draw(weights, scripted([0, 1 << (63 - (bits - 64)), 0])) == 1
    assert race.draw(weights, scripted([0, 1 << (63 - (bits - 65)), 0])) == 0


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_race_draws_1e_minus_300_wherever_it_stands(place):
    weights = np.zeros(4)
    weights[place] = -690.0  # 1e-299.7
    sibling, half = place ^ 1, place // 2
    # the halves weigh 1 and 2 (or 2 and 1); the smaller wins the first race with V small
    small_half = [0, 1 << 62, 0]
    rare = [0] * 16 + [1]
    drawn = race.draw(weights, scripted(small_half + rare + [0] * 4))
    assert drawn == place != sibling
    assert drawn // 2 == half


def test_race_decides_at_the_exact_threshold():
    # p = 1/3 against 2/3: the smaller side wins for V < 1/3
    weights = np.log([2.0, 1.0])
    third = (1 << 64) // 3
    assert race.draw(weights, scripted([third - 4096, 0])) == 1
    assert race.draw(weights, scripted([third + 4096, 0])) == 0


@given(
    st.lists(st.floats(-50, 50) | st.just(-math.inf), min_size=1, max_size=40),
    st.integers(0, 2**32),
)
def test_race_never_draws_what_has_no_weight(weights, seed):
    weights = np.array(weights)
    if np.isneginf(weights).all():
        with pytest.raises(ValueError, match="at least one weight must be positive, got none"):
            race.draw(weights, np.random.default_rng(seed))
    else:
        assert np.isfinite(weights[race.draw(weights, np.random.default_rng(seed))])


def test_race_law_matches_weights():
    weights = np.array([-3.0, 0.0, 1.5, -np.inf, -1.0, 2.0, 0.5])
    rng = np.random.default_rng(5)
    counts = np.bincount([race.draw(weights, rng) for _ in range(50_000)], minlength=7)
    assert counts[3] == 0
    live = np.isfinite(weights)
    expected = np.exp(weights[live]) / np.exp(weights[live]).sum() * counts.sum()
    assert stats.chisquare(counts[live], expected).pvalue > SMALLEST_P


@pytest.mark.parametrize("size", [2, 5, 32, 33, 100])
def test_plain_race_law_matches_weights(size):
    rng = np.random.default_rng(size)
    weights = np.exp(-3.0 * rng.random(size)) * 2.0**-300
    weights[1::3] *= 2.0**-10  # small ones, which are drawn apart
    weights[4::7] = 0.0
    counts = np.bincount([race.draw_plain(weights, rng) for _ in range(50_000)], minlength=size)
    expected = weights / weights.sum() * counts.sum()
    rare = expected < 5.0
    cells = [np.append(x[~rare], x[rare].sum()) for x in (counts, expected)]
    drawn = cells[1] > 0.0
    assert (counts[weights == 0.0] == 0).all()
    assert stats.chisquare(cells[0][drawn], cells[1][drawn]).pvalue > SMALLEST_P


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_plain_race_draws_1e_minus_200_wherever_it_stands(place):
    weights = np.ones(4)
    weights[place] = 3.0 * 2.0**-664  # one uniform: V < 2^-664
    assert race.draw_plain(weights, scripted([0] * 10 + [1 << 38, 0])) == place  # V = 2^-666
    assert race.draw_plain(weights, scripted([0] * 10 + [1 << 40, 0])) == (place == 0)  # 2^-664


def test_plain_race_draws_among_the_small_ones():
    weights = np.array(
        [2.0**-12, 1.0, 2.0**-11, 0.0, 2.0**-12]
    )  # the small ones: 2^-10 of 1 + 2^-10
    # V below: first 0 and 1 (where 1 does not count) against 2, 3 and 4, then 2 against 3 and 4
    below = 1 << 53
    assert race.draw_plain(weights, scripted([below, 1 << 61, 0])) == 0
    assert race.draw_plain(weights, scripted([below, 1 << 63, 1 << 63])) == 2
    assert race.draw_plain(weights, scripted([below, 1 << 63, 1 << 61])) == 4
    assert race.draw_plain(weights, scripted([1 << 62])) == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_race_rejects_nan_and_infinity(bad):
    with pytest.raises(ValueError, match=r"log-weights must be finite or -inf, got NaN or \+inf"):
        race.draw(np.array([0.0, bad]), np.random.default_rng(0))


# --- lattice and intervals


@given(st.lists(st.floats(allow_nan=False), max_size=50))
def test_is_sorted_agrees_with_python(values):
    values = np.array(values, dtype=np.float64)
    assert lattice.is_sorted(values) == (values.tolist() == sorted(values.tolist()))
    assert not lattice.has_missing(values)
    assert lattice.is_sorted(np.sort(values))


@pytest.mark.parametrize("size", [4095, 4096, 4097, 4098, 8193])
def test_is_sorted_sees_a_fall_at_every_place(size):
    for place in {1, size // 2, 4095, 4096, 4097, size - 1} & set(range(1, size)):
        values = np.arange(size, dtype=np.float64)
        values[place] = -1.0
        assert not lattice.is_sorted(values)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 100])
def test_has_missing_sees_a_nan_at_every_place(size):
    values = np.full(size, np.inf)
    assert not lattice.has_missing(values)
    for place in range(size):
        missing = values.copy()
        missing[place] = np.nan
        assert lattice.has_missing(missing)


@given(st.integers(0, 2**32), st.sampled_from([1, 15, 16, 17, 300]), st.integers(0, 200))
def test_bisect_counts_what_is_encoded_below(seed, asked, n):
    rng = np.random.default_rng(seed)
    kind = rng.choice([np.float64, np.float32, np.int64, np.uint8])
    values = np.sort(rng.integers(0, 99, n).astype(kind))
    options = (3.0, 80.0, 2.0, 0.5, 6, 155)
    encoded = lattice.encode(values.astype(np.float64), *options)
    points = rng.integers(-1, 157, asked)
    expected = np.searchsorted(encoded, points)
    lo = (expected * rng.random(asked)).astype(np.int64)
    hi = expected + ((n - expected) * rng.random(asked)).astype(np.int64)
    lattice.bisect(values, *options, points, lo, hi)
    assert lo.tolist() == expected.tolist()


def test_bisect_checks_its_limits():
    options, one = (0.0, 9.0, 1.0, 1.0, 0, 10), np.array([1])
    for lo, hi in ((one, one[:0]), (one + 1, one), (one, one + 2), (one - 2, one)):
        with pytest.raises(ValueError, match="lo and hi must"):
            lattice.bisect(np.array([1.0, 2.0]), *options, one, lo.copy(), hi.copy())


def test_encode_of_a_stray_nan_is_the_lowest_point():
    values = np.array([1.0, np.nan, 3.0])
    assert lattice.encode(values, 0.0, 4.0, 1.0, 1.0, 0, 5).tolist() == [1, 0, 3]


def test_compress_keeps_positive_widths_of_every_segment():
    # segments of ranks 0..2 and 5..6 among n = 6 records; x_0 = -1 and x_7 = 12 are implied
    rank, width, left = intervals.compress_lattice(
        np.array([0, 5]), np.array([3, 2]), 6, -1, 12, np.array([2, 2, 7, 9, 9])
    )
    assert rank.tolist() == [0, 2, 6]
    assert width.tolist() == [3.0, 5.0, 3.0]
    assert left.tolist() == [-1, 2, 9]
    rank, width, left = intervals.compress_continuous(
        np.array([0]), np.array([3]), 2, 0.0, 2.0, np.array([0.5, 0.5])
    )
    assert (rank.tolist(), width.tolist(), left.tolist()) == ([0, 2], [0.5, 1.5], [0.0, 0.5])


def test_compress_of_no_records_is_the_whole_range():
    none = np.empty(0, dtype=np.int64)
    found = intervals.compress_lattice(np.array([0]), np.array([1]), 0, -1, 9, none)
    assert [part.tolist() for part in found] == [[0], [10.0], [-1]]


@pytest.mark.parametrize(
    "first, count, points",
    [([0], [2], 1), ([0], [2], 3), ([0, 3], [1], 3), ([2], [0], 1), ([-1], [2], 2), ([5], [3], 3)],
)
def test_compress_rejects_sizes_that_do_not_fit(first, count, points):
    with pytest.raises(ValueError, match="each segment must have at least one interval"):
        intervals.compress_lattice(
            np.array(first), np.array(count), 6, -1, 12, np.arange(points, dtype=np.int64)
        )


# --- scan: rows against the exact law of paths


def exact_log_weights(rank, width, q, n, rate, on_lattice):
    """ln of every path's weight, by its definition, in 60 digits."""
    targets = [mpmath.mpf(level) * n for level in q]
    weights = {}
    for chosen in combinations_with_replacement(range(len(rank)), len(q)):
        steps = [mpmath.mpf(0), *(rank[t] - Q for t, Q in zip(chosen, targets, strict=True)), 0]
        log_weight = -rate * sum(abs(b - a) for a, b in pairwise(steps))
        for t in set(chosen):
            k, w = chosen.count(t), mpmath.mpf(width[t])
            for i in range(k):
                log_weight += mpmath.log((w + i if on_lattice else w) / (i + 1))
        weights[chosen] = log_weight
    return weights


def log_rows(scan):
    """The rows as true logarithms of a and h, one array per level."""
    rows = []
    for j in range(scan.whole.size):
        at = int((scan.hi[:j] - scan.lo[:j]).sum())
        part = slice(at, at + int(scan.hi[j] - scan.lo[j]))
        with np.errstate(divide="ignore"):
            if scan.exponent is None:
                of, first, *exponents = scan.blocks
                inside = of[int(scan.lo[j]) : int(scan.hi[j])].astype(np.intp)
                scales = [each[int(first[j]) + inside - inside[0]] for each in exponents]
            else:
                scales = [scan.exponent[j]] * 2
            a, h = (
                np.log(row[part]) + scale * math.log(2.0)
                for row, scale in zip((scan.A, scan.H), scales, strict=True)
            )
        rows.append((a, h))
    return rows


def drawn_log_probs(scan, rank, width, q, n, rate, on_lattice):
    """ln of the probability with which a backward pass over the rows draws each path."""
    rows = log_rows(scan)
    m = len(q)
    targets = [mpmath.mpf(level) * n for level in q]

    def outside(u, v):
        return max(min(0, v) - u, u - max(0, v), 0)

    def stay(t, level):  # from level - 1 to level inside interval t
        return -2 * rate * outside(rank[t] - targets[level - 1], rank[t] - targets[level])

    def candidates(level, following):
        lo, hi = int(scan.lo[level]), int(scan.hi[level])
        v = 0 if following is None else rank[following] - targets[level + 1]
        return {
            s: rows[level][1][s - lo] - 2 * rate * outside(rank[s] - targets[level], v)
            for s in range(lo, hi if following is None else min(hi, following))
        }

    def copies(level, t):
        terms, factor = {}, mpmath.mpf(0)
        for k in range(1, level + 2):
            first = level - k + 1
            if not scan.lo[first] <= t < scan.hi[first]:
                break
            if k > 1:
                w = mpmath.mpf(width[t])
                factor += mpmath.log((w + k - 1 if on_lattice else w) / k) + stay(t, first + 1)
            terms[k] = rows[first][0][t - int(scan.lo[first])] + factor
        return terms

    def normalized(terms):
        largest = max(terms.values())
        total = largest + mpmath.log(mpmath.fsum(mpmath.exp(x - largest) for x in terms.values()))
        return {key: x - total for key, x in terms.items()}

    found = {}
    for chosen in combinations_with_replacement(range(len(rank)), m):
        if not all(scan.lo[j] <= t < scan.hi[j] for j, t in enumerate(chosen)):
            continue
        log_prob, j, following = mpmath.mpf(0), m - 1, None
        while j >= 0:
            t = chosen[j]
            k = sum(1 for i in range(j + 1) if chosen[i] == t)
            log_prob += normalized(candidates(j, following))[t] + normalized(copies(j, t))[k]
            j, following = j - k, t
        found[chosen] = log_prob
    return found


def assert_law_is_exact(scan, rank, width, q, n, rate, on_lattice, tolerance=1e-10):
    exact = exact_log_weights(rank, width, q, n, rate, on_lattice)
    inside = {
        chosen: weight
        for chosen, weight in exact.items()
        if all(scan.lo[j] <= t < scan.hi[j] for j, t in enumerate(chosen))
    }
    largest = max(inside.values())
    total = largest + mpmath.log(mpmath.fsum(mpmath.exp(w - largest) for w in inside.values()))
    assert abs(scan.log_total - total) < tolerance
    found = drawn_log_probs(scan, rank, width, q, n, rate, on_lattice)
    for chosen, weight in inside.items():
        if weight > largest - 700:
            assert abs(found[chosen] - (weight - total)) < tolerance, chosen


ranks = st.lists(st.integers(0, 12), min_size=1, max_size=6, unique=True).map(sorted)
levels = st.lists(st.floats(0, 1), min_size=1, max_size=4, unique=True).map(sorted)


@given(ranks, levels, st.floats(1e-7, 3.0), st.booleans(), st.data())
def test_scan_law_is_exact(rank, q, rate, on_lattice, data):
    width = data.draw(st.lists(st.integers(1, 50), min_size=len(rank), max_size=len(rank)))
    n = rank[-1] + data.draw(st.integers(0, 3))
    scan = problem(rank, width, q, n, rate, on_lattice)
    scan.forward()
    with mpmath.workdps(60):
        assert_law_is_exact(scan, rank, width, q, n, rate, on_lattice)


@given(ranks, levels, st.floats(1e-3, 300.0), st.data())
def test_scan_law_is_exact_for_adversarial_gaps(rank, q, rate, data):
    exponents = st.integers(-300, 300)
    drawn = data.draw(st.lists(exponents, min_size=len(rank), max_size=len(rank)))
    width = [10.0**e for e in drawn]
    n = rank[-1] + data.draw(st.integers(0, 3))
    scan = problem(rank, width, q, n, rate, on_lattice=False)
    scan.forward()
    with mpmath.workdps(60):
        assert_law_is_exact(scan, rank, width, q, n, rate, on_lattice=False)


def test_scan_law_is_exact_where_the_row_maximum_is_a_dead_end():
    # what dominates at level 2 sits in front of tiny widths only: 1,364 below its row's maximum
    rank, width = [0, 1, 2, 3], [1e300, 1e-290, 1e300, 1e-300]
    q, n, rate = [0.1, 0.5, 0.9], 3, 0.25
    scan = problem(rank, width, q, n, rate, on_lattice=False)
    scan.forward()
    assert scan.exponent is None  # float64 rows would not do
    with mpmath.workdps(60):
        assert_law_is_exact(scan, rank, width, q, n, rate, on_lattice=False)


@given(ranks, levels, st.floats(1e-3, 3.0), st.booleans(), st.data())
def test_scan_inside_windows_is_exact(rank, q, rate, on_lattice, data):
    size, m = len(rank), len(q)
    width = data.draw(st.lists(st.integers(1, 50), min_size=size, max_size=size))
    lo = sorted(data.draw(st.lists(st.integers(0, size - 1), min_size=m, max_size=m)))
    hi = sorted(data.draw(st.lists(st.integers(1, size), min_size=m, max_size=m)))
    if any(a >= b for a, b in zip(lo, hi, strict=True)):
        return
    scan = problem(rank, width, q, rank[-1] + 1, rate, on_lattice, lo, hi)
    scan.forward()
    with mpmath.workdps(60):
        assert_law_is_exact(scan, rank, width, q, rank[-1] + 1, rate, on_lattice)


def assert_rows_equal(one, other, tolerance):
    assert other.log_total == pytest.approx(one.log_total, abs=tolerance * one.whole.size)
    for (a, h), (other_a, other_h) in zip(log_rows(one), log_rows(other), strict=True):
        np.testing.assert_allclose(other_h, h, rtol=0, atol=tolerance)
        np.testing.assert_allclose(other_a, a, rtol=0, atol=tolerance)


def assert_rows_of_all_kinds_are_equal(*arguments, tolerance=1e-11, **windows):
    """Of the kind that is chosen, of blocks, and of an exponent for each entry."""
    narrow, *others = (problem(*arguments, **windows) for _ in KINDS)
    narrow.forward()
    for kind, other in zip(KINDS[1:], others, strict=True):
        assert other.forward_as(kind) and other.exponent is None
        assert_rows_equal(narrow, other, tolerance)
    return narrow


@given(st.integers(0, 2**32), st.integers(1, 12), st.floats(1e-6, 2.0), st.booleans())
def test_rows_of_all_kinds_are_equal(seed, m, rate, on_lattice):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 200))
    rank = np.cumsum(rng.integers(1, 4, size)) - 1
    width = rng.integers(1, 1000, size)
    q = np.unique(rng.random(m))
    assert_rows_of_all_kinds_are_equal(
        rank, width, q, int(rank[-1]), rate, on_lattice, tolerance=1e-10
    )


@given(
    st.integers(0, 2**32),
    st.integers(1, 600),
    st.integers(1, 6),
    st.floats(1e-6, 2.0),
    st.booleans(),
)
def test_sums_of_consecutive_ranks_equal_those_of_entries(seed, size, m, rate, windows):
    """Short rows have sums of their own; so have those around one gap, and long ones."""
    rng = np.random.default_rng(seed)
    rank = np.arange(size) + int(rng.integers(0, 50))
    rank[int(rng.integers(0, 3 * size)) :] += 1
    width = rng.integers(1, 1000, size)
    q = np.unique(rng.random(m))
    lo = hi = None
    if windows:
        lo = np.sort(rng.integers(0, size, q.size))
        hi = np.maximum.accumulate(rng.integers(lo + 1, size + 1))
    n = int(rank[-1]) + int(rng.integers(0, 50))
    assert_rows_of_all_kinds_are_equal(rank, width, q, n, rate, lo=lo, hi=hi, tolerance=1e-10)


@pytest.mark.parametrize("reach", [0, 1, 2, 7, 300, 511, 600])
def test_sums_of_long_rows_equal_those_of_entries(reach):
    """Rows of several tiles, with targets as far apart as vectors allow, and farther."""
    rng = np.random.default_rng(reach)
    n = 2600
    width = rng.integers(1, 1000, n + 1)
    for part in (0.0, 0.3):
        q = (np.arange(3) * (reach + part) + 1000.25) / n
        lo = np.array([0, 40, 41])
        hi = np.array([2300, 2590, 2601])
        if q[1] > q[0]:
            assert (
                assert_rows_of_all_kinds_are_equal(
                    np.arange(n + 1), width, q, n, 0.02, lo=lo, hi=hi
                ).exponent
                is not None
            )


@pytest.mark.many
@pytest.mark.parametrize("on_lattice", [False, True])
@pytest.mark.parametrize("gaps", ["even", "wide ends", "ties", "spread"])
def test_sums_over_many_outputs_in_one_interval_equal_those_of_entries(gaps, on_lattice):
    """Levels closer than records: each interval may hold tens of outputs, and some hold most."""
    rng = np.random.default_rng(5)
    rank = np.arange(200) if gaps != "ties" else np.cumsum(rng.integers(1, 30, 200))
    width = np.ceil(rng.exponential(50.0, 200))
    if gaps == "wide ends":
        width[[0, 70, 199]] = 1e6, 1e4, 1e6
    if gaps == "spread":
        width = np.ceil(np.exp(rng.uniform(0.0, 3.0, 200)))
    q = np.linspace(0.01, 0.99, 90)
    assert (
        assert_rows_of_all_kinds_are_equal(rank, width, q, int(rank[-1]), 0.3, on_lattice).exponent
        is not None
    )
    lo = np.maximum.accumulate((q * 200).astype(int) - 50).clip(0)
    for more in (50, -10):  # which end above targets, or below
        hi = np.clip((q * 200).astype(int) + more, lo + 1, 200)
        assert (
            assert_rows_of_all_kinds_are_equal(
                rank, width, q, int(rank[-1]), 0.3, on_lattice, lo=lo, hi=hi
            ).exponent
            is not None
        )


@pytest.mark.parametrize("kind", [EACH_BLOCK, EACH_ENTRY])
@pytest.mark.parametrize("huge", [[], [0], [70]])
@pytest.mark.parametrize("rate", [0.02, 0.3, 40.0, 400.0])
@pytest.mark.parametrize("right", [0, 30])
def test_rows_scale_with_widths(rate, huge, right, kind):
    """Widths that are 2^-830 times as large are too small for vectors, and change nothing else."""
    rng = np.random.default_rng(7)
    rank, width = np.arange(130), rng.exponential(3.0, 130)
    if huge:
        width *= 2.0**-190
        width[huge] = 2.0**190
    q = np.linspace(0.02, 0.98, 60)
    first = np.arange(60) // 2 + right
    windows = first, first + 70
    plain, scaled = (
        problem(rank, factor * width, q, 129, rate, False, *windows) for factor in (1.0, 2.0**-830)
    )
    done = plain.forward_as(kind), scaled.forward_as(kind)
    if kind == EACH_BLOCK and (huge or rate > 1.0) and False in done:
        return  # there is no room
    assert all(done)
    lighter = 830.0 * math.log(2.0) * np.arange(1, 61)
    assert scaled.log_total == pytest.approx(plain.log_total - lighter[-1], rel=1e-13)
    for (a, h), (scaled_a, scaled_h), less in zip(
        log_rows(plain), log_rows(scaled), lighter, strict=True
    ):
        np.testing.assert_allclose(scaled_a, a - less, rtol=1e-13)
        np.testing.assert_allclose(scaled_h, h - less, rtol=1e-13)


@given(
    st.integers(0, 2**32),
    st.integers(1, 600),
    st.integers(1, 5),
    st.floats(1e-3, 8.0),
    st.sampled_from([1, 30, 300, 900]),
    st.booleans(),
)
def test_rows_of_blocks_equal_those_of_entries_or_are_refused(seed, size, m, rate, bits, windows):
    rng = np.random.default_rng(seed)
    width = 2.0 ** rng.integers(-bits, bits, size)
    width[rng.random(size) < 0.9] = 2.0 ** int(rng.integers(-bits, bits))
    q = np.unique(rng.random(m))
    lo = hi = None
    if windows:
        lo = np.sort(rng.integers(0, size, q.size))
        hi = np.maximum.accumulate(rng.integers(lo + 1, size + 1))
    blocks, entries = (
        problem(np.arange(size), width, q, size, rate, False, lo=lo, hi=hi) for _ in range(2)
    )
    assert entries.forward_as(EACH_ENTRY)
    if blocks.forward_as(EACH_BLOCK):
        assert_rows_equal(entries, blocks, 1e-10)


@pytest.mark.parametrize("repeated", [False, True])
def test_rows_of_blocks_have_room_for_wide_gaps_and_ties(repeated):
    """Outputs crowd where widths leap: there float64 holds no row by one exponent."""
    rng = np.random.default_rng(8)
    rank, width = np.arange(1_000), np.ceil(rng.exponential(2.0**20, 1_000))
    width[300:700], width[[0, -1]] = 3, 2.0**45
    if repeated:  # pieces of one rank
        rank[400:600] = 400
    q = (np.arange(900) + 0.3) / 900
    scan, entries = (problem(rank, width, q, 999, 0.25) for _ in range(2))
    scan.forward()
    assert entries.forward_as(EACH_ENTRY) and entries.blocks[0].tolist() == list(range(1_000))
    assert_rows_equal(entries, scan, 1e-10)
    of = scan.blocks[0].astype(np.intp)
    sizes = np.bincount(of)
    assert (np.diff(of) >= 0).all() and sizes.max() == 64 and sizes.size < 60
    alone = np.flatnonzero(sizes[of] == 1)
    assert {700, 701, 702, 703, 999} <= set(alone.tolist())
    assert (np.diff(of)[np.diff(rank // 64) > 0] == 1).all()


def test_scan_allows_pieces_of_one_rank():
    # an interval cut in two: same rank, and the law of the sum is that of the whole
    q, n, rate = [0.3, 0.6, 0.7], 5, 0.4
    whole = problem([0, 2, 5], [4, 6, 3], q, n, rate)
    cut = problem([0, 2, 2, 5], [4, 1, 5, 3], q, n, rate)
    whole.forward()
    cut.forward()
    assert cut.log_total == pytest.approx(whole.log_total, abs=1e-12)


@pytest.mark.parametrize("n", [0, 1, 3, 10, 999_983, 10**9 + 7, 2**53])
def test_targets_are_exact_products(n):
    q = [1e-300, 1e-12, 0.1, 1 / 3, 0.5, 0.7, 1 - 2**-53, 1.0]
    scan = problem([0], [1], q, n, 1.0)
    with mpmath.workdps(60):
        for level, whole, part in zip(q, scan.whole.tolist(), scan.part.tolist(), strict=True):
            assert 0.0 <= part < 1.0
            assert abs(mpmath.mpf(level) * n - whole - part) < 1e-16


# --- sums


REACH = 2**31
reachable = st.integers(-REACH, REACH)
numbers = st.floats() | st.floats(-100.0, 100.0) | st.integers(-20, 20).map(lambda k: k / 2.0)


def rounded(value, scale, first, last):
    """What the kernel makes of one number."""
    return round(min(max(value * scale, first), last))


@given(st.lists(numbers, max_size=40), st.floats(2.0**-1022, 2.0**1022), reachable, reachable)
@example([0.5, 1.5, 2.5, -0.5, -1.5], 1.0, -5, 5)
@example([math.inf, -math.inf, math.nan], 1.0, -REACH, REACH)
@example([5e-324] * 3, 2.0**1022, -1, 1)
def test_kernel_sums_are_exact(values, scale, one, other):
    first, last = sorted((one, other))
    kept = [v for v in values if v == v]
    expected = sum(rounded(v, scale, first, last) for v in kept)
    assert sums.plain(np.array(values), scale, first, last) == (expected, len(kept))
    weights = [(i * 2**50) % (2**53 - 1) for i in range(len(values))]
    pairs = [(v, w) for v, w in zip(values, weights, strict=True) if v == v]
    assert sums.weighted(
        np.array(values), np.array(weights, dtype=np.int64), scale, first, last
    ) == (
        sum(w * rounded(v, scale, first, last) for v, w in pairs),
        sum(w for _, w in pairs),
    )


def test_kernel_sums_do_not_lose_a_unit_among_large_ones():
    values = np.full(2**21 + 1, float(REACH))
    values[-1] = 1.0
    assert sums.plain(values, 1.0, -REACH, REACH) == (REACH * 2**21 + 1, values.size)
    assert sums.plain(-values, 1.0, -REACH, REACH) == (-REACH * 2**21 - 1, values.size)


@pytest.mark.parametrize("end", [REACH, -REACH])
def test_kernel_weighted_sums_beyond_64_bits(end):
    one = np.array([float(end)]), np.array([2**53 - 1])
    assert sums.weighted(*one, 1.0, -REACH, REACH) == (end * (2**53 - 1), 2**53 - 1)


near = st.integers(-(2**16), 2**16)


@given(
    st.lists(numbers, max_size=40),
    st.floats(2.0**-1022, 2.0**1022),
    reachable,
    near,
    st.integers(0, 2**17),
)
@example([0.5, 1.5, 2.5, -0.5, math.nan, math.inf], 1.0, 0, -5, 10)
@example([1e300, -1e300] * 9, 1.0, REACH, 2**16, 2**17)
def test_kernel_squares_are_exact(values, scale, place, aside, width):
    first = max(min(place + aside, REACH - width), -REACH)
    last = first + width
    middle = sums.middle_of(first, last)
    assert middle == first + width // 2
    points = [rounded(v, scale, first, last) for v in values if v == v]
    expected = sum(points), len(points), sum((point - middle) ** 2 for point in points)
    assert sums.squares(np.array(values), scale, first, last) == expected
    weights = [(i * 2**50) % (2**53 - 1) for i in range(len(values))]
    kept = [w for v, w in zip(values, weights, strict=True) if v == v]
    assert sums.weighted_squares(
        np.array(values), np.array(weights, dtype=np.int64), scale, first, last
    ) == (
        sum(w * point for w, point in zip(kept, points, strict=True)),
        sum(kept),
        sum(w * (point - middle) ** 2 for w, point in zip(kept, points, strict=True)),
    )


def test_kernel_squares_are_of_narrow_ranges():
    with pytest.raises(ValueError, match=r"^last must be at most 2\^17 from first"):
        sums.squares(np.zeros(1), 1.0, 0, 2 * sums.ASIDE + 1)
    with pytest.raises(ValueError, match="scale must be positive"):
        sums.weighted_squares(np.zeros(1), np.zeros(1, dtype=np.int64), 0.0, 0, 1)
    with pytest.raises(ValueError, match="one entry for each value"):
        sums.weighted_squares(np.zeros(1), np.zeros(2, dtype=np.int64), 1.0, 0, 1)


@pytest.mark.parametrize(
    "arguments", [(0.0, 0, 1), (math.inf, 0, 1), (1.0, 1, 0), (1.0, 0, REACH + 1)]
)
def test_kernel_rejects_what_it_could_not_hold(arguments):
    with pytest.raises(ValueError, match="scale must be positive"):
        sums.plain(np.zeros(1), *arguments)
    with pytest.raises(ValueError, match="scale must be positive"):
        sums.weighted(np.zeros(1), np.zeros(1, dtype=np.int64), *arguments)
    with pytest.raises(ValueError, match="one entry for each value"):
        sums.weighted(np.zeros(1), np.zeros(2, dtype=np.int64), 1.0, 0, 1)


# --- path


def test_path_draw_law_matches_rows():
    rank, width, q, n, rate = [0, 1, 3, 4], [2, 1, 3, 1], [0.2, 0.5, 0.6], 5, 0.3
    for on_lattice, kind in (
        (True, EACH_ROW),
        (False, EACH_ROW),
        (True, EACH_BLOCK),
        (True, EACH_ENTRY),
    ):
        scan = problem(rank, width, q, n, rate, on_lattice)
        assert scan.forward_as(kind)
        drawn, _ = path.draw(scan, -math.inf, 40_000, np.random.default_rng(6))
        with mpmath.workdps(40):
            exact = exact_log_weights(rank, width, q, n, rate, on_lattice)
            expected = {key: float(mpmath.exp(w - scan.log_total)) for key, w in exact.items()}
        found = dict.fromkeys(expected, 0)
        for row in drawn.tolist():
            found[tuple(row)] += 1
        counts = np.array(list(found.values()))
        law = np.array([expected[key] for key in found]) * len(drawn)
        often = law >= 5
        observed = np.append(counts[often], counts[~often].sum())
        wanted = np.append(law[often], law[~often].sum())
        keep = wanted > 0
        assert stats.chisquare(observed[keep], wanted[keep]).pvalue > SMALLEST_P


@pytest.mark.parametrize("rate", [0.3, 0.7])
@pytest.mark.parametrize("q", [[0.5 + 2.0**-53], [0.25, 0.5 + 2.0**-53, 0.5 + 2.0**-52]])
def test_path_draw_keeps_the_digits_of_huge_losses(q, rate):
    """All paths lose about 2^52 nats: nothing but the last digits of that makes the law."""
    n = 2**53
    rank, width = [0, n], [1, 2]
    scan = problem(rank, width, q, n, rate)
    assert scan.forward_as(EACH_ENTRY)
    drawn, _ = path.draw(scan, -math.inf, 40_000, np.random.default_rng(6))
    with mpmath.workdps(60):
        exact = exact_log_weights(rank, width, q, n, rate, True)
        top = max(exact.values())
        weights = {key: float(mpmath.exp(w - top)) for key, w in exact.items()}
    total = sum(weights.values())
    for key, weight in weights.items():
        times = int((drawn == np.array(key)).all(axis=1).sum())
        assert stats.binomtest(times, len(drawn), weight / total).pvalue > SMALLEST_P


@pytest.mark.parametrize("kind", KINDS)
def test_path_draw_over_many_blocks_has_the_right_marginal(kind):
    # 500 intervals, one level: blocks of every kind, including those that underflow float64
    rank, width = np.arange(500), np.ones(500)
    scan = problem(rank, width, [0.5], 499, 0.02)
    assert scan.forward_as(kind)
    drawn = path.draw(scan, -math.inf, 10_000, np.random.default_rng(7))[0][:, 0]
    law = np.exp(-0.04 * np.abs(rank - 249.5))
    law *= drawn.size / law.sum()
    counts = np.bincount(drawn.astype(np.int64), minlength=500)
    often = law >= 5
    observed = np.append(counts[often], counts[~often].sum())
    wanted = np.append(law[often], law[~often].sum())
    assert stats.chisquare(observed, wanted).pvalue > SMALLEST_P


def test_path_draw_reaches_what_float64_cannot_hold():
    # the far interval weighs e^-1000 of the near one, and its row entry would underflow
    scan = problem([0, 1000], [1, 1], [0.0], 1000, 0.5)
    scan.forward()
    assert path.draw(scan, -math.inf, 1, scripted([1 << 63]))[0].tolist() == [[0]]
    # e^-1000 is about 2^-1442.7: it is drawn as 2^-879, and taken with probability 2^-563.7
    assert path.draw(scan, -math.inf, 1, scripted([0] * 13 + [1 << 18, 0]))[0].tolist() == [[0]]
    proposed = [0] * 13 + [1 << 14, 0]
    taken = [0] * 8 + [1 << 12, 0]
    assert path.draw(scan, -math.inf, 1, scripted(proposed + taken))[0].tolist() == [[1]]
    not_taken, near, far = [0] * 8 + [1 << 13, 0], [1 << 63], [0] * 22 + [1 << 20, 0]
    for last, drawn in ((near, 0), (far, 1)):  # then the race is run anew, in logarithms
        words = scripted(proposed + not_taken + last)
        assert path.draw(scan, -math.inf, 1, words)[0].tolist() == [[drawn]]


def test_path_draw_reaches_counts_that_it_takes_together():
    """40 outputs, the upper interval a hundredth as wide: 15 there have probability 1e-20."""
    scan = problem([0, 1], [1, 0.01], np.linspace(0.2, 0.8, 40), 1, 0.01, on_lattice=False)
    scan.forward()
    assert scan.exponent is not None
    words = chain([(1 << 64) - 1], repeat(1))  # the last output in it; then what is least likely
    drawn, _ = path.draw(scan, -math.inf, 1, scripted(words))
    assert int(drawn.sum()) == 27  # 2^-145: e^-44 is the smallest uniform of these words


def test_path_draw_leaves_escapes_to_the_caller():
    scan = problem([0, 1], [1, 1], [0.5], 1, 0.5)
    scan.forward()
    drawn, escaped = path.draw(scan, math.log(0.25), 20_000, np.random.default_rng(8))
    assert escaped == int((drawn[:, 0] == 2).sum())
    assert stats.binomtest(escaped, len(drawn), 0.25).pvalue > SMALLEST_P


def test_points_fill_each_interval_uniformly():
    paths = np.tile(np.array([0, 0, 1], dtype=np.uintp), (30_000, 1))
    rng = np.random.default_rng(9)
    points = path.points_lattice(paths, np.array([4, 7]), np.array([3.0, 2.0]), rng)
    assert set(np.unique(points[:, :2])) == {5, 6, 7} and set(np.unique(points[:, 2])) == {8, 9}
    cells = np.unique(points[:, :2], axis=0, return_counts=True)[1]
    assert cells.size == 6 and stats.chisquare(cells).pvalue > SMALLEST_P
    numbers = path.points_continuous(paths, np.array([-1.0, 2.0]), np.array([3.0, 2.0]), rng)
    assert (np.diff(numbers, axis=1) >= 0).all()
    assert stats.kstest((numbers[:, 2] - 2) / 2, stats.uniform.cdf).pvalue > SMALLEST_P
    smaller = (numbers[:, 0] + 1) / 3  # the smaller of two uniforms
    assert stats.kstest(smaller, stats.beta(1, 2).cdf).pvalue > SMALLEST_P


# --- halting


def power(exponent):
    """Words from which V = 2^-exponent is drawn."""
    zeros = exponent - 1
    rest = zeros % 64
    return [0] * (zeros // 64) + [1 << (63 - rest)] + [0] * (rest > 11)


def below_median(exponent):
    """Words of the exponential variate -ln(1 - 2^-(exponent + 1))."""
    return [0, *power(exponent)]


def above_median(exponent):
    """Words of the exponential variate (exponent + 1) ln 2."""
    return [1 << 63, *power(exponent)]


def stream(words, gaps, lengths=None, noise="exponential", rate1=1.0, rate2=1.0):
    halted = halting.Halting(noise, rate1, rate2, scripted(words)).advance(
        np.array(gaps, dtype=float), None if lengths is None else np.array(lengths, dtype=np.int64)
    )
    return halted


NEAR = below_median(1)  # exponential noise -ln(3/4) = 0.288 on the threshold


def test_halting_draws_events_of_1e_minus_20_and_less():
    # to halt at -46: hazard exp(-46.288) = 2^-66.8 = 7.8e-21, the clock is 2^-68 or 2^-66
    assert stream(NEAR + below_median(67), [-46.0]) == 0
    assert stream(NEAR + below_median(65), [-46.0]) == -1
    # to pass 40 queries at 0: hazard 40 ln 4 = 80 ln 2, the clock is 81 or 79 ln 2
    assert stream(NEAR + above_median(80), [0.0], [40]) == -1
    assert stream(NEAR + above_median(78) + above_median(1) * 9, [0.0], [40]) >= 0
    # the threshold's noise in its tail: 1001 ln 2 = 693.8, e^-693.8 = 1e-301
    assert stream(above_median(1000) + above_median(3), [693.0]) == -1
    assert stream(above_median(999) + above_median(1000), [693.5]) == 0
    # and near 0: it is 2^-1000, so to pass 0 the clock must be beyond 1000 ln 2
    assert stream(below_median(999) + above_median(1000), [0.0]) == -1
    assert stream(below_median(999) + above_median(998), [0.0]) == 0


@pytest.mark.parametrize(("noise", "sign"), [("laplace", [0]), ("gumbel", [])])
def test_halting_draws_events_of_1e_minus_20_of_other_noises(noise, sign):
    # Laplace: noise 0.288; at -46 hazard exp(-46.288)/2 = 3.9e-21 = 2^-67.8
    # Gumbel: noise -ln(0.288) = 1.246; at -46 hazard 0.288 exp(-46) = 3.0e-21 = 2^-68.2
    rare = {"laplace": 68, "gumbel": 68}[noise]
    assert stream(NEAR + sign + below_median(rare), [-46.0], noise=noise) == 0
    assert stream(NEAR + sign + below_median(rare - 2), [-46.0], noise=noise) == -1
    # far above the threshold: hazard ln 2 + 700 - 0.288, and 0.288 e^6 = 116
    gap, passes = {"laplace": (700.0, 1010), "gumbel": (6.0, 168)}[noise]
    assert stream(NEAR + sign + above_median(passes), [gap], noise=noise) == -1
    assert stream(NEAR + sign + above_median(passes - 3), [gap], noise=noise) == 0


def test_halting_keeps_rare_steps_after_likely_ones():
    # 0 is passed with a clock of 3 ln 2 > ln 4; at -60 the hazard is exp(-60.288) = 2^-87.0
    words = NEAR + above_median(2)
    assert stream(words + below_median(88), [0.0, -60.0]) == 1
    assert stream(words + below_median(85), [0.0, -60.0]) == -1


def test_halting_passes_queries_that_cannot_halt_without_a_draw():
    gaps = [-np.inf, np.nan, -1e300, -800.0, 1e300]
    assert stream(NEAR + below_median(3), gaps, [2**53, 2**53, 5, 7, 1]) == 2**54 + 12
    assert stream(NEAR + below_median(3), [1.0, np.inf], [0, 1]) == 0
    assert stream(NEAR + below_median(3), [-1e300], [2**53]) == -1


@pytest.mark.parametrize("noise", ["exponential", "laplace", "gumbel"])
@pytest.mark.parametrize("gap", [-20.0, -34.0])
def test_halting_inside_long_runs_follows_the_law(noise, gap):
    size, n = 40_000, 2**53
    drawn = halting.draw(
        noise, 1.0, 1.0, np.array([gap]), np.array([n]), size, np.random.default_rng(10)
    )
    drawn = drawn[drawn >= 0]
    # P[not halted by k], in terms of k times the hazard at noise 0: 1/(1 + w) for Gumbel,
    # int_0^1 e^(-w v) dv for exponential
    if noise != "laplace":
        w = (drawn + 0.5) * math.exp(gap)
        rest = n * math.exp(gap)

        def passed(w):
            return 1.0 / (1.0 + w) if noise == "gumbel" else -np.expm1(-w) / w

        uniform_again = (1.0 - passed(w)) / (1.0 - passed(rest))
        assert stats.kstest(uniform_again, stats.uniform.cdf).pvalue > SMALLEST_P
    # every step of a run is reached: the low bits of late ones are uniform
    late = drawn[drawn > 2**26]
    assert late.size > 10 * 64
    assert stats.chisquare(np.bincount(late % 64, minlength=64)).pvalue > SMALLEST_P


@given(
    st.lists(st.floats(-30, 3) | st.sampled_from([-np.inf, np.nan]), max_size=30),
    st.sampled_from(["exponential", "laplace", "gumbel"]),
    st.integers(0, 2**32),
)
def test_halting_one_query_at_a_time_draws_the_same(gaps, noise, seed):
    gaps = np.array(gaps, dtype=float)
    together = halting.Halting(noise, 1.0, 1.0, np.random.default_rng(seed)).advance(gaps)
    one_by_one = halting.Halting(noise, 1.0, 1.0, np.random.default_rng(seed))
    first = next((k for k, gap in enumerate(gaps) if one_by_one.halts_at(gap)), -1)
    in_runs = halting.draw(
        noise, 1.0, 1.0, gaps, np.ones(gaps.size, dtype=np.int64), 1, np.random.default_rng(seed)
    )
    assert together == first == in_runs[0]


@pytest.mark.parametrize(
    ("noise", "sign", "bound", "rare"),
    [("exponential", [], 1.0, 67), ("laplace", [0], 1.0, 68), ("gumbel", [], 0.0, 67)],
)
def test_halting_confirms_with_probabilities_of_1e_minus_20(noise, sign, bound, rare):
    # noise 0.288, for Gumbel 1.246. At the bounds p = 1, 1 - exp(-0.712)/2 = 0.755, and 1/4; at
    # -46, p = exp(-46.288), exp(-46.288)/2 and 0.288 exp(-46): ratios 2^-66.8, 2^-67.4 and 2^-66.2
    words = NEAR + sign + below_median(2)

    def halted(*more):
        found = halting.Halting(noise, 1.0, 1.0, scripted(chain(words, *more)))
        assert found.advance(np.array([-np.inf, bound])) == 1
        return found

    assert halted(power(rare)).confirm(-46.0, 1)
    assert halted(power(rare + 900)).confirm(-46.0, 1)
    for value in (-np.inf, np.nan):
        assert not halted(power(900), below_median(1)).confirm(value, 1)
    # what stands at the bound is confirmed by the largest of all V, 1 - 2^-53
    assert halted([(1 << 64) - 1]).confirm(bound, 1)
    # not confirmed: the stream goes on after the query, with a clock of 2^-70 or 2^-60
    for clock, step in ((69, 4), (59, -1)):
        stream = halted(power(rare - 1), below_median(clock), above_median(1))
        assert not stream.confirm(-46.0, 1)
        assert stream.advance(np.array([-800.0, -800.0, -46.0])) == step


@pytest.mark.parametrize("noise", ["exponential", "laplace", "gumbel"])
def test_halting_of_confirmed_bounds_is_halting(noise):
    rng = np.random.default_rng(11)
    values = rng.uniform(-3.0, 1.0, 12)
    bounds = np.array([np.maximum.accumulate(values[:k])[-1] for k in (6, 6, 6, 12, 12, 12)])
    bounds = np.maximum(np.repeat(bounds, 2), values)
    steps = []
    for _ in range(20_000):
        stream = halting.Halting(noise, 1.0, 1.0, rng)
        start, step = 0, 0
        while step >= 0:
            step = stream.advance(bounds[start:])
            if step < 0 or stream.confirm(values[step], step):
                break
            start = step + 1
        steps.append(step)
    exact = halting.draw(noise, 1.0, 1.0, values, np.ones(12, dtype=np.int64), 200_000, rng)
    found = np.bincount(np.array(steps) + 1, minlength=13)
    expected = np.bincount(exact + 1, minlength=13)
    assert stats.chi2_contingency([found, expected]).pvalue > SMALLEST_P


def assert_same_law(steps, *exact):
    """Steps of streams, against 200,000 that `draw` asks one by one."""
    steps = np.array(steps)
    drawn = halting.draw(*exact, 200_000, np.random.default_rng(16))
    edges = np.unique(np.quantile(drawn, np.linspace(0.0, 1.0, 200)))
    table = [np.bincount(np.searchsorted(edges, d), minlength=edges.size) for d in (steps, drawn)]
    assert table[0].size == edges.size  # none is beyond the last one
    assert stats.chi2_contingency(table).pvalue > SMALLEST_P


@pytest.mark.slow  # not under valgrind and an emulator
@pytest.mark.parametrize("noise", ["exponential", "laplace", "gumbel"])
def test_halting_asks_columns_by_their_largest_queries_with_the_same_law(noise):
    rng = np.random.default_rng(12)
    queries = rng.uniform(-14.0, -6.0, 900)  # blocks whose largest query is far above the others
    queries[rng.integers(0, 600, 25)] = rng.uniform(-4.0, -3.0, 25)
    queries[[3, 257, 258, 700]] = np.nan, -np.inf, np.nan, -np.inf
    queries[800:] = rng.uniform(-5.0, 1.0, 100)  # and one where each is asked
    drawn = [
        halting.Halting(noise, 0.8, 0.8, rng).ask(queries + 100.0, 100.0) for _ in range(40_000)
    ]
    assert_same_law(drawn, noise, 0.8, 0.8, queries, np.ones(900, dtype=np.int64))


@pytest.mark.slow
def test_halting_goes_on_in_the_next_column():
    """A stream that is asked by several columns has the law of the one that is asked by one."""
    rng = np.random.default_rng(13)
    queries = rng.uniform(-8.0, -2.0, 400)
    drawn = []
    for _ in range(20_000):
        stream = halting.Halting("exponential", 1.0, 1.5, rng)
        parts = ((queries[:1], 0), (queries[:90], 1), (queries[:90], 90), (queries, 90))
        steps = (stream.ask(part, 0.0, first) for part, first in parts)
        drawn.append(next((step for step in steps if step >= 0), -1))
    assert_same_law(drawn, "exponential", 1.0, 1.5, queries, np.ones(400, dtype=np.int64))


@pytest.mark.parametrize("noise", ["exponential", "laplace", "gumbel"])
@pytest.mark.parametrize("size", [1, 31, 32, 33, 255, 256, 257, 1_000])
def test_halting_asks_columns_of_every_type(noise, size):
    """What surely halts is found wherever it stands; the largest query alone may do so here."""
    numbers = np.full(size, -100)
    for kind in ("f8", "f4", "i8", "i4", "i2", "i1"):
        column = numbers.astype(kind)
        for place in {0, size // 2, size - 1}:
            column[place] = 100
            found = halting.Halting(noise, 1.0, 1.0, np.random.default_rng(14)).ask(column, 0.0)
            assert found == place
            column[place] = -100
        stream = halting.Halting(noise, 1.0, 1.0, np.random.default_rng(14))
        assert stream.ask(column, 700.0) == -1
        assert stream.ask(np.array([1e9]), 0.0) == size  # as many have passed
    unsigned = halting.Halting(noise, 1.0, 1.0, np.random.default_rng(14))
    assert unsigned.ask(np.arange(200, dtype=np.uint8), 100.0) in range(80, 120)


def test_halting_finds_what_halts_for_sure_behind_what_never_does():
    for queries in ([np.nan, -np.inf, np.inf], [np.nan] * 300 + [np.inf], [1e308]):
        threshold = -1e308 if queries == [1e308] else 0.0
        stream = halting.Halting("gumbel", 1.0, 1.0, np.random.default_rng(15))
        assert stream.ask(np.array(queries), threshold) == len(queries) - 1
    stream = halting.Halting("gumbel", 1.0, 1.0, np.random.default_rng(15))
    assert stream.ask(np.full(300, np.nan), 0.0) == -1


def test_halting_rejects_lengths_that_do_not_fit():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="there must be one length for each value"):
        halting.Halting("laplace", 1.0, 1.0, rng).advance(np.zeros(2), np.ones(1, dtype=np.int64))
    with pytest.raises(ValueError, match="there must be one length for each value"):
        halting.draw("laplace", 1.0, 1.0, np.zeros(2), np.ones(3, dtype=np.int64), 1, rng)


# --- fit


def tree_of_splits(rng, leaves, levels):
    """Ends of the nodes of a tree without a regular form, from the lowest level to the root."""
    ends = np.arange(1, leaves + 1)
    for level in range(levels):
        kept = rng.random(ends.size) < (0.0 if level == levels - 1 else 0.6)
        kept[-1] = True
        ends = ends[kept]
        yield ends


@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.integers(1, 5),
    st.floats(1e-6, 1e9),
    st.booleans(),
)
def test_fit_meets_the_conditions_of_the_least_distance(seed, leaves, levels, total, whole):
    """Counts above a leaf pull it equally hard wherever there is mass, and no harder elsewhere."""
    rng = np.random.default_rng(seed)
    stops = list(tree_of_splits(rng, leaves, levels))
    counts = [rng.normal(0.0, 10.0 ** rng.integers(-2, 6), ends.size) for ends in stops]
    own = rng.normal(0.0, 10.0 ** rng.integers(-2, 6), leaves)
    if whole:  # ties
        own, counts = np.rint(own / 3.0), [np.rint(level / 3.0) for level in counts]
    counts = [np.where(rng.random(level.size) < 0.3, math.nan, level) for level in counts]
    first = np.cumsum([0, *map(len, stops)]).astype(np.uintp)
    masses = fit.masses(
        own, np.concatenate(counts), first, np.concatenate(stops).astype(np.uintp), total
    )
    pulls = own - masses
    for level, ends in zip(counts, stops, strict=True):
        sums = np.diff(np.concatenate(([0.0], np.cumsum(masses)))[[0, *ends]])
        pulls += np.repeat(np.nan_to_num(level - sums), np.diff([0, *ends]))
    accuracy = (
        1e-12 * leaves * max(total, *np.abs(own), *(np.nanmax(np.abs([0.0, *c])) for c in counts))
    )
    assert (masses >= 0.0).all() and masses.sum() == pytest.approx(total, abs=accuracy)
    np.testing.assert_allclose(pulls[masses > accuracy], pulls.max(), atol=accuracy)


@pytest.mark.parametrize(
    "first, stop, leaves, total",
    [
        ([0, 1], [4], 4, 0.0),
        ([0, 1], [4], 4, math.nan),
        ([0, 1], [4], 0, 1.0),
        ([0], [], 4, 1.0),
        ([0, 2], [4], 4, 1.0),
        ([1, 2], [4, 4], 4, 1.0),
        ([0, 1], [3], 4, 1.0),
        ([0, 2], [2, 4], 4, 1.0),  # two roots
        ([0, 2, 3], [3, 2, 4], 4, 1.0),
        ([0, 2, 4, 5], [1, 4, 2, 4, 4], 4, 1.0),  # a node that cuts another
        ([0, 2, 1, 3], [2, 4, 4], 4, 1.0),
        ([0, 1], [2**60], 4, 1.0),
    ],
)
def test_fit_rejects_what_is_no_tree(first, stop, leaves, total):
    with pytest.raises(ValueError, match=r"^(a tree must have|nodes of a level must divide)"):
        fit.masses(
            np.zeros(leaves),
            np.zeros(len(stop)),
            np.array(first, dtype=np.uintp),
            np.array(stop, dtype=np.uintp),
            total,
        )


def test_fit_of_numbers_that_are_none_is_safe():
    nodes = np.array([2, 4, 4], dtype=np.uintp)
    first = np.array([0, 2, 3], dtype=np.uintp)
    for bad in (math.nan, math.inf, -math.inf, 1.7e308):
        for place in range(4):
            own, counts = np.ones(4), np.array([2.0, 2.0, math.nan])
            own[place] = bad
            counts[place % 2] = bad
            assert fit.masses(own, counts, first, nodes, 4.0).shape == (4,)


# --- depth


@pytest.mark.parametrize("zeros", [0, 3, 20, 30, 35, 40, 43, 64, 104, 200])
@pytest.mark.parametrize("points", [1.0, 7.0, 2.0**40])
def test_flip_keeps_the_digits_of_its_variates(zeros, points):
    """A variate of w points and V = 1.101...1 2^-(zeros + 1), met by one of 1 point just below it.

    -ln(1 - (1 - V)^(1/w)), to 60 digits; the other one, of V = 1/2, is ln 2 less what it loses.
    """
    with mpmath.workdps(60):
        v = mpmath.mpf(0b110100000000000000001) / mpmath.mpf(2) ** (21 + zeros)
        variate = -mpmath.log(-mpmath.expm1(mpmath.log1p(-v) / points))
        gap = float(variate - mpmath.log(2))
    words = [0] * (zeros // 64) + [0b110100000000000000001 << (43 - zeros % 64)]
    if zeros % 64 > 11:
        words.append(0)
    words.append(1 << 63)
    sizes = np.array([points, 1.0])
    for more, winner in ((-1e-13, 1), (1e-13, 0)):
        loss = np.array([0.0, -gap + more * max(1.0, abs(gap))])
        drawn = depth.flip(sizes, loss, 1.0, 0, 1, scripted(words))
        assert drawn[0] == winner


# --- strings

LONG = "of more than sixteen bytes, of which the last ones alone differ: "
STRINGS = st.one_of(
    st.sampled_from(
        ["", "a", "b", "ab", "a\0", "\0", "ü", "日本", "\ud800", LONG + "a", LONG + "b"]
    ),
    st.text(st.sampled_from("ab\0é日😀\ud800"), max_size=40),
)
LAYOUTS = [strings.INT32, strings.INT64, strings.VIEWS]


def places_of(keys, column):
    place = {key: at for at, key in enumerate(keys) if key is not None}
    return [-1 if key is None else place.get(key, -1) for key in column]


def encoded(keys, encoding="utf-8"):
    return [None if key is None else key.encode(encoding, "surrogatepass") for key in keys]


def buffers_of(column, layout):
    """What an array of Arrow consists of: bits (if any are 0), offsets or views, bytes."""
    rows = [key or b"" for key in encoded(column)]
    here = np.array([key is not None for key in column], dtype=bool)
    valid = None if here.all() else np.packbits(here, bitorder="little")
    if layout == strings.VIEWS:
        data, entries = [b"", b""], b""
        for number, row in enumerate(rows):
            entries += struct.pack("=i", len(row)) + row[:4].ljust(4, b"\0")
            if len(row) <= 12:
                entries += row[4:].ljust(8, b"\0")
            else:
                entries += struct.pack("=ii", number % 2, len(data[number % 2]))
                data[number % 2] += row
    else:
        ends = np.cumsum([0, *map(len, rows)])
        entries, data = ends.astype(f"i{layout}").tobytes(), [b"".join(rows)]
    return valid, np.frombuffer(entries, np.uint8), [np.frombuffer(part, np.uint8) for part in data]


def found_in_arrow(table, column, layout, first=0, rows=None):
    place = np.full(len(column) if rows is None else rows, 7, dtype=np.int32)
    valid, entries, data = buffers_of(column, layout)
    table.find_arrow(layout, first, valid, entries, data, place)
    return place.tolist()


@given(
    st.lists(STRINGS | st.none(), unique=True, max_size=30),
    st.lists(STRINGS | st.none(), min_size=1, max_size=100),
    st.sampled_from(LAYOUTS),
    st.data(),
)
def test_strings_of_arrow_are_found_as_by_a_dictionary(keys, column, layout, data):
    column += data.draw(st.lists(st.sampled_from(column), max_size=100))
    column += keys
    first = data.draw(st.integers(0, len(column)))
    rows = data.draw(st.integers(0, len(column) - first))
    found = found_in_arrow(strings.Table(encoded(keys)), column, layout, first, rows)
    assert found == places_of(keys, column[first : first + rows])


@given(st.lists(STRINGS, unique=True, max_size=30), st.lists(STRINGS, max_size=100), st.booleans())
def test_strings_of_objects_and_of_numpy_are_found_as_by_a_dictionary(keys, column, as_list):
    column += keys
    place = np.full(len(column), 7, dtype=np.int32)
    objects = column if as_list else np.array([*column, None], dtype=object)[:-1]
    strings.Table(keys).find_objects(objects, place)
    assert place.tolist() == places_of(keys, column)
    fixed = np.array(column, dtype="U45")
    strings.Table(
        encoded(keys, "utf-32-le" if sys.byteorder == "little" else "utf-32-be")
    ).find_fixed(fixed.view(np.uint32).reshape(-1, 45), place)
    assert place.tolist() == places_of(keys, fixed.tolist())


def test_strings_of_objects_leaves_what_may_be_equal_to_one():
    class Name(str):
        pass

    column = ["a", None, math.nan, Name("a"), np.str_("b"), b"a", 1, ["a"], "b"]
    place = np.zeros(len(column), dtype=np.int32)
    strings.Table(["b", "a"]).find_objects(column, place)
    assert place.tolist() == [1, -1, -1, *[strings.OTHER] * 5, 0]


@pytest.mark.many
def test_many_strings_are_found_whatever_they_have_in_common():
    keys = [f"{number:0{width}d}" for number in range(3_000) for width in (4, 8, 9, 16, 17, 40)]
    column = keys[::-1] + [key[:-1] + "x" for key in keys]
    expected = [*range(len(keys) - 1, -1, -1), *[-1] * len(keys)]
    table = strings.Table(encoded(keys))
    for layout in LAYOUTS:
        assert found_in_arrow(table, column, layout) == expected
    place = np.empty(len(column), dtype=np.int32)
    strings.Table(keys).find_objects(column, place)
    assert place.tolist() == expected


def test_strings_of_many_bytes_are_found():
    size = 2**24
    keys = ["x" * size, "x" * (size - 1), "x" * (size + 1)]
    place = np.empty(4, dtype=np.int32)
    strings.Table(keys).find_objects([*keys[::-1], "x" * (size - 2)], place)
    assert place.tolist() == [2, 1, 0, -1]


def test_strings_rejects_what_does_not_fit():
    table = strings.Table([b"a"])
    entries, place = np.zeros(12, dtype=np.uint8), np.zeros(3, dtype=np.int32)
    data = [np.zeros(1, dtype=np.uint8)]
    for arguments in (
        (strings.INT32, 0, None, entries, data, place),
        (strings.INT64, 0, None, entries, data, place[:1]),
        (strings.VIEWS, 0, None, entries, data, place[:1]),
        (strings.INT32, 2**64 - 1, None, entries, data, place[:1]),
        (strings.INT32, 0, entries[:0], entries, data, place[:2]),
        (strings.INT32, 0, None, entries, [], place[:2]),
        (5, 0, None, entries, data, place[:1]),
    ):
        with pytest.raises(ValueError, match=r"^(an array of Arrow must have buffers|layout must)"):
            table.find_arrow(*arguments)
    table.find_arrow(strings.INT32, 0, None, entries, data, place[:2])
    assert place.tolist() == [-1, -1, 0]
    with pytest.raises(ValueError, match=r"^character and place must have one length"):
        table.find_fixed(np.zeros((2, 1), dtype=np.uint32), place)
    with pytest.raises(ValueError, match=r"^items and place must have one length"):
        table.find_objects(["a"], place)
    with pytest.raises(TypeError, match=r"^items must be a list or an array of objects"):
        table.find_objects(("a",), place[:1])
    with pytest.raises(TypeError, match=r"^keys must be bytes or strings"):
        strings.Table([1])


# --- stray


def log_strayed(rank, width, left, q, n, rate, inside, start):
    strayed = stray.Strayed(q, n, rate, inside, start)
    strayed.add(len(q), rank, width, left)
    return strayed.log_weight


def log_strayed_by_definition(rank, width, q, n, rate, windows, reach):
    """ln of the sum over tuples of intervals within reach, in any order, not all in the windows."""
    steps = []
    for level, window in zip(q, windows, strict=True):
        steps.append(
            [
                (r - level * n, math.log(w), abs(r - math.floor(level * n)) <= window)
                for r, w in zip(rank, width, strict=True)
                if abs(r - math.floor(level * n)) <= reach
            ]
        )
    terms = []
    for path_of in product(*steps):
        if not all(inside for _, _, inside in path_of):
            v = [0.0, *(off for off, _, _ in path_of), 0.0]
            loss = sum(abs(b - a) for a, b in pairwise(v))
            terms.append(sum(log_width for _, log_width, _ in path_of) - rate * loss)
    return float(np.logaddexp.reduce(terms, initial=-np.inf))


@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=7),
    st.lists(st.integers(1, 9), min_size=7, max_size=7),
    st.lists(st.integers(0, 100), min_size=1, max_size=3, unique=True).map(sorted),
    st.floats(0.5, 4.0),
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
    st.booleans(),
)
def test_strayed_weight_is_the_sum_over_tuples(steps, widths, percent, rate, windows, on_lattice):
    """Inside of windows of their own."""
    rank = np.cumsum([0, *(step + 1 for step in steps[1:])])
    width = np.array(widths[: rank.size], dtype=float)
    left = np.concatenate(([-1], -1 + np.cumsum(width)[:-1])).astype(int if on_lattice else float)
    n, q, reach = int(rank[-1]), np.array(percent) / 100.0, 30
    start, windows = np.arange(reach + 2), windows[: q.size]  # a cell for each rank
    strayed = stray.Strayed(q, n, rate, max(windows) + 1, start, np.array(windows))
    strayed.add(q.size, rank, width, left)
    found = strayed.log_weight
    expected = log_strayed_by_definition(rank, width, q, n, rate, windows, reach)
    if expected > -math.inf:
        assert found == pytest.approx(expected, abs=1e-9)
    else:
        assert found < -500.0


@given(
    st.integers(0, 2**32),
    st.integers(1, 300),
    st.integers(1, 6),
    st.floats(1e-2, 2.0),
    st.integers(0, 9),
    st.integers(0, 30),
    st.booleans(),
)
def test_strayed_weight_by_records_is_that_by_intervals(seed, n, m, rate, window, more, on_lattice):
    """Ties and the ends of all records; segments of some levels, that others do not reach."""
    rng = np.random.default_rng(seed)
    record = np.sort(rng.integers(0, 9 + int(rng.integers(900)), n))
    ends, kind = (-1, 1_000), np.int64 if on_lattice else np.float64
    q, reach = np.sort(rng.random(m)), window + more
    inside, start = stray.cells(window, reach, rate, m, 0.75)
    edges = np.concatenate(([ends[0]], record, [ends[1]]))
    kept = np.flatnonzero(np.diff(edges) > 0)
    width = np.diff(edges)[kept].astype(float)
    expected = log_strayed(kept, width, edges[kept].astype(kind), q, n, rate, inside, start)
    strayed = stray.Strayed(q, n, rate, inside, start)
    for _ in range(m):
        ranks = strayed.ranks()
        assert (np.diff(ranks) >= 0).all() and ranks[0] >= 0 and ranks[-1] <= n + 1
        strayed.add_borders(edges[ranks].astype(kind))
    assert strayed.log_weight == pytest.approx(expected, rel=1e-12)


def test_borders_are_those_of_cells():
    strayed = stray.Strayed(np.array([0.5, 0.875]), 8, 1.0, 1, np.array([0, 1, 3]))
    assert strayed.ranks().tolist() == [2, 4, 5, 7]  # 2 and 3, 4, 5 and 6
    strayed.add_borders(np.array([5, 6, 9, 9]))
    assert strayed.ranks().tolist() == [5, 7, 8, 9]  # of 10 there is no record


def test_strayed_borders_are_checked():
    strayed = stray.Strayed(np.array([0.25, 0.75]), 8, 1.0, *stray.cells(2, 4, 1.0, 2, 0.75))
    record = strayed.ranks()
    with pytest.raises(ValueError, match="each end of a cell needs a record"):
        strayed.add_borders(record[1:])
    for _ in range(2):
        strayed.add_borders(record)
    with pytest.raises(ValueError, match="no more than are left"):
        strayed.add_borders(record)
    with pytest.raises(ValueError, match="no more than are left"):
        strayed.ranks()
    assert math.isfinite(strayed.log_weight)


@pytest.mark.parametrize("window", [[1], [1, -1]])
def test_strayed_windows_are_checked(window):
    q, cells = np.array([0.25, 0.75]), stray.cells(2, 4, 1.0, 2, 0.75)
    with pytest.raises(ValueError, match="each level needs a window"):
        stray.Strayed(q, 8, 1.0, *cells, np.array(window))


@given(
    st.integers(0, 2**32),
    st.integers(1, 6),
    st.floats(1e-3, 2.0),
    st.integers(0, 20),
    st.integers(0, 200),
    st.sampled_from([0.1, 0.25, 0.75]),
)
def test_wide_cells_never_weigh_less(seed, m, rate, window, more, share):
    rng = np.random.default_rng(seed)
    rank = np.cumsum(rng.geometric(0.6, size=120))
    width = np.exp2(rng.integers(0, 30, size=120)).astype(float)
    left = np.concatenate(([0], np.cumsum(width)[:-1])).astype(np.int64)
    q = np.sort(rng.random(m))
    n, reach = int(rank[-1]), window + more
    inside, start = stray.cells(window, reach, rate, m, share)
    found = log_strayed(rank, width, left, q, n, rate, inside, start)
    single = np.arange(reach + 2)
    least = log_strayed(rank, width, left, q, n, rate, window + 1, single)
    if least < -500.0:  # nothing strays
        assert found < -500.0
        return
    assert found >= least - 1e-9
    # what cells inside may cost, and those outside, whose slack is the smaller the nearer they are
    assert found <= least + 2.0 + 2.0 * rate * more + 1e-9


def test_cells_are_single_near_the_target_and_wide_far_out():
    inside, start = stray.cells(10, 10_000, 0.25, 100, 0.75)
    assert inside == 11 and start[inside] == 11 and start[-1] == 10_001
    sizes = np.diff(start)
    assert (sizes[:inside] == 1).all() and sizes[-2] > 20
    assert (np.diff(sizes[inside:-1]) >= -1).all()  # rounded down from border to border


def log_strayed_in_logarithms(log_width, q, rate, window):
    """The same of an interval for each rank, level by level in logarithms: no sum underflows."""
    n, rank = log_width.size - 1, np.arange(log_width.size)
    targets = q * n
    near = np.abs(rank - np.floor(targets)[:, np.newaxis]) <= window
    nothing = np.full(n + 1, -np.inf)

    def step(weight, gap):
        upward = np.logaddexp.accumulate(weight + rate * rank) - rate * rank
        downward = np.logaddexp.accumulate((weight - rate * rank)[::-1])[::-1] + rate * rank
        at = rank - gap
        below = np.floor(at).astype(int)
        from_below = upward[np.clip(below, 0, n)] - rate * (at - np.clip(below, 0, n))
        from_above = downward[np.clip(below + 1, 0, n)] - rate * (np.clip(below + 1, 0, n) - at)
        return log_width + np.logaddexp(
            np.where(below >= 0, from_below, -np.inf), np.where(below < n, from_above, -np.inf)
        )

    weight = log_width - rate * np.abs(rank - targets[0])
    inside, strayed = np.where(near[0], weight, nothing), np.where(near[0], nothing, weight)
    for j in range(1, q.size):
        gap = targets[j] - targets[j - 1]
        inside, strayed = step(inside, gap), step(strayed, gap)
        strayed = np.where(near[j], strayed, np.logaddexp(strayed, inside))
        inside = np.where(near[j], inside, nothing)
    return float(np.logaddexp.reduce(strayed - rate * np.abs(rank - targets[-1])))


@pytest.mark.many
@pytest.mark.parametrize("rate", [0.05, 1.0, 6.0])
@pytest.mark.parametrize("gain", [0.0, 10.0, 16.0, 19.0, 24.0, 60.0])
def test_bounds_hold_however_far_wide_gaps_draw_paths(rate, gain):
    """Hundreds and thousands of nats, where weights of float64 do not hold all there is."""
    n, m, rng = 1_000, 100, np.random.default_rng(int(gain))
    for spread, atom in ((0.0, 0), (5.0, 0), (1.0, 300)):
        log_width = rng.normal(0.0, spread, n + 1)
        log_width[[0, -1]] += min(gain / min(rate, 1.0), 600.0)
        log_width[300 : 300 + atom] -= 12.0
        width, rank = np.exp(log_width), np.arange(n + 1)
        left, q = np.cumsum(width) - width, (np.arange(m) + rng.random()) / m
        for window in (20, 300):
            exact = log_strayed_in_logarithms(log_width, q, rate, window)
            for share in (0.1, 0.75):
                cells = stray.cells(window, n, rate, m, share)
                assert log_strayed(rank, width, left, q, n, rate, *cells) >= exact - 1e-6
            single = log_strayed(rank, width, left, q, n, rate, window + 1, np.arange(n + 2))
            assert single >= exact - 1e-6


def test_gaps_that_nearly_pay_for_the_way_to_them_do_not_hide_what_strays():
    """Gaps at both ends, worth 12 nats for each output; the way there and back costs 20 a level.

    Weights of paths that go on into them are far beyond what float64 has of others.
    """
    n, m, rate = 3_000, 300, 1.0
    width = np.ones(n + 1)
    width[[0, -1]] = math.exp(12.0)
    left, rank, q = np.cumsum(width) - width, np.arange(n + 1), (np.arange(m) + 0.5) / m
    single = log_strayed(rank, width, left, q, n, rate, 301, np.arange(n + 2))
    for share in (0.1, 0.25, 0.75):
        cells = stray.cells(300, n, rate, m, share)
        assert log_strayed(rank, width, left, q, n, rate, *cells) == pytest.approx(single, abs=5.0)
    # with 17 nats, all m levels may be in gaps: single ranks know that this costs 3 nats more
    width[[0, -1]] = math.exp(17.0)
    left = np.cumsum(width) - width
    exact = log_strayed_in_logarithms(np.log(width), q, rate, 300)
    single = log_strayed(rank, width, left, q, n, rate, 301, np.arange(n + 2))
    assert single == pytest.approx(exact, abs=1e-3)
    bounds = [
        log_strayed(rank, width, left, q, n, rate, *stray.cells(300, n, rate, m, share))
        for share in (0.75, 0.25, 0.1)
    ]
    assert bounds[0] > bounds[1] > bounds[2] > exact


def test_strayed_weight_of_all_floats_is_held():
    # gaps between 1e-300 and 1e300, a rate that makes far cells vanish: the bound stays a number
    rank = np.arange(20)
    width = 10.0 ** np.linspace(-300, 300, 20)
    left = np.concatenate(([0.0], np.cumsum(width)[:-1]))
    q = np.array([0.2, 0.5, 0.8])
    for rate in (1e-6, 0.3, 8.0):
        inside, start = stray.cells(2, 60, rate, 3, 0.75)
        found = log_strayed(rank, width, left, q, 19, rate, inside, start)
        expected = log_strayed_by_definition(rank, width, q, 19, rate, [2] * 3, 60)
        assert expected - 1e-6 <= found < math.inf


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(0, 20), st.integers(0, 60))
def test_strayed_levels_need_only_the_intervals_around_their_targets(seed, m, window, more):
    rng = np.random.default_rng(seed)
    rank = np.cumsum(rng.geometric(0.6, size=200))
    left = np.cumsum(rng.integers(1, 2**20, size=200))
    width = np.append(np.diff(left), 5).astype(float)
    q, n, reach = np.sort(rng.random(m)), int(rank[-1]), window + more
    cells = stray.cells(window, reach, 0.1, m, 0.75)
    whole = log_strayed(rank, width, left, q, n, 0.1, *cells)
    strayed, done = stray.Strayed(q, n, 0.1, *cells), 0
    while done < m:
        some = int(rng.integers(1, m - done + 1))
        targets = np.floor(q[done : done + some] * n)
        kept = (np.abs(rank[:, None] - targets) <= reach + 1).any(axis=1)
        strayed.add(some, rank[kept], width[kept], left[kept])
        done += some
    assert strayed.log_weight == whole


def test_stray_rejects_arrays_that_do_not_fit():
    rank, width, left = np.array([0, 1]), np.ones(2), np.array([-1, 0])
    with pytest.raises(ValueError, match="rank, width and left must be of one length"):
        log_strayed(rank, width[:1], left, np.array([0.5]), 1, 1.0, 1, np.arange(3))
    with pytest.raises(ValueError, match="there must be levels, and some cells inside"):
        stray.Strayed(np.array([0.5]), 1, 1.0, 3, np.arange(3))
    strayed = stray.Strayed(np.array([0.2, 0.5]), 1, 1.0, 1, np.arange(3))
    for levels in (0, 3):
        with pytest.raises(ValueError, match="levels must be some, and no more than are left"):
            strayed.add(levels, rank, width, left)
    strayed.add(1, rank, width, left)
    with pytest.raises(ValueError, match="all levels are to be added first"):
        strayed.log_weight  # noqa: B018
    with pytest.raises(ValueError, match="a window must be within reach, and the rate positive"):
        stray.cells(3, 2, 1.0, 1, 0.75)
