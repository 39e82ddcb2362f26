"""Counts by bin: equal to one bisection per value, at and around every edge."""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast._kernels import histogram as kernel
from dpq_fast.data import histogram as fast
from dpq_fast.data.histogram import Bins
from dpq_fast.reference import bins as reference

SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 1e-310, 1e300, -1e300]
BETAS = [1.001, 1.01, 1.5, 2.0]
LOWERS = [0.0, 1.0, -1000.0, 0.1, 1e-20, 1e17, -1e17, 1e300, -1.7e308, 1.7e308]
DTYPES = ["f8", ">f8", "f4", ">f4", "f2", "g", "i1", "u1", "i2", "u2", "i4", ">i4", "u4", "i8"]
DTYPES += [">i8", "u8"]

finite = st.floats(allow_nan=False, allow_infinity=False)


def around(edges):
    """Every edge and its two neighbors in float64, and numbers that are special anyhow."""
    edges = np.asarray(edges)
    with np.errstate(all="ignore"):
        near = [np.nextafter(edges, -math.inf), edges, np.nextafter(edges, math.inf)]
    return np.concatenate([*near, SPECIAL])


def assert_same(counts, expected):
    assert counts.dtype == np.int64
    assert counts.tolist() == list(expected)


# --- Bins.uniform


def test_uniform_bins_known_values():
    values = [-1.0, 0.0, 0.25, 0.49, 0.5, 0.99, 1.0, 7.0, math.nan, math.inf, -math.inf]
    assert_same(Bins.uniform(0.0, 1.0, 2).count(values), [5, 5])
    assert_same(Bins.uniform(0.0, 1.0, 1).count(values), [10])
    assert_same(Bins.uniform(0.0, 1.0, 3).count([]), [0, 0, 0])
    # 0.7 / 0.1 is below 7, and 0.3 / 0.1 below 3: the stored edges decide
    edges = np.linspace(0.0, 1.0, 11)
    assert_same(Bins.uniform(0.0, 1.0, 10).count(edges[:-1]), [1] * 10)


@given(finite, finite, st.integers(1, 300), st.lists(st.floats(), max_size=20))
def test_uniform_bins_equal_reference(a, b, bins, values):
    low, high = min(a, b), max(a, b)
    if not 0.0 < high - low < math.inf:
        return
    edges = reference.uniform_edges(low, high, bins)
    values = np.concatenate([around(edges), values])
    expected = reference.uniform_counts(values.tolist(), low, high, bins)
    assert_same(Bins.uniform(low, high, bins).count(values), expected)
    assert Bins.uniform(low, high, bins).edges.tolist() == edges


@pytest.mark.parametrize("low, high", [(0.0, 1.0), (-3.3, 7.1), (1e9, 1e9 + 1.0), (-1e300, 1e307)])
@pytest.mark.parametrize("bins", [1, 7, 10, 100, 1000, 99_991])
def test_uniform_bins_are_exact_at_the_edges_of_linspace(low, high, bins):
    edges = np.linspace(low, high, bins + 1)
    assert Bins.uniform(low, high, bins).edges.tolist() == edges.tolist()
    values = around(edges)
    expected = reference.edge_counts(values.tolist(), edges.tolist())
    assert_same(Bins.uniform(low, high, bins).count(values), expected)


def test_uniform_bins_with_bins_finer_than_float64():
    low, high = 1.0, 1.0 + 2.0**-50
    values = around([low, 1.0 + 2.0**-51, high])
    expected = reference.uniform_counts(values.tolist(), low, high, 1000)
    assert_same(Bins.uniform(low, high, 1000).count(values), expected)
    expected = reference.uniform_counts(values.tolist(), 0.0, 2.5e-323, 8)
    assert_same(Bins.uniform(0.0, 2.5e-323, 8).count(values), expected)


@pytest.mark.parametrize("low, high", [(-3.3, 7.1), (0.0, 1e-6), (1e300, 1e301), (0.0, 1e-290)])
@pytest.mark.parametrize("bins", [1, 10, 1000])
def test_uniform_bins_are_found_without_search(bins, low, high):
    assert Bins.uniform(low, high, bins)._table.most <= 1


# --- Bins.of


def test_bins_of_edges_known_values():
    assert_same(Bins.of([0, 1, 10]).count([-5.0, 0.0, 1.0, 9.0, 10.0, 11.0]), [2, 4])
    assert_same(Bins.of([0.0, 1.0, 1.0]).count([0.0, 1.0, 2.0]), [1, 2])
    assert_same(Bins.of([0.0, 0.0, 1.0]).count([-1.0, 0.0, 1.0]), [0, 3])
    assert_same(Bins.of([-math.inf, 0.0, math.inf]).count([-math.inf, 0.0, math.inf]), [1, 2])
    assert_same(Bins.of([-math.inf, math.inf]).count([-math.inf, 0.0, math.inf]), [3])


@given(
    st.lists(st.floats(allow_nan=False), min_size=2, max_size=40).map(sorted),
    st.lists(st.floats(), max_size=20),
)
def test_bins_of_edges_equal_reference(edges, values):
    values = np.concatenate([around(edges), values])
    assert_same(Bins.of(edges).count(values), reference.edge_counts(values.tolist(), edges))


@given(st.integers(0, 2**32), st.sampled_from(["normal", "cauchy", "lognormal", "ties", "float"]))
def test_bins_of_edges_equal_reference_for_many_edges(seed, shape):
    rng = np.random.default_rng(seed)
    edges = {
        "normal": lambda: rng.normal(size=300),
        "cauchy": lambda: rng.standard_cauchy(300),
        "lognormal": lambda: rng.lognormal(0.0, 20.0, 300),
        "ties": lambda: rng.integers(0, 50, 300).astype(float),
        "float": lambda: rng.integers(-(2**62), 2**62, 300).view(float),
    }[shape]()
    edges = np.sort(edges[~np.isnan(edges)])
    values = np.concatenate([around(edges), rng.choice(edges, 50) * rng.normal(size=50)])
    expected = reference.edge_counts(values.tolist(), edges.tolist())
    assert_same(Bins.of(edges).count(values), expected)


@given(
    st.lists(st.integers(-20, 20), min_size=2, max_size=10).map(sorted),
    st.lists(st.integers(-30, 30)),
)
def test_bins_of_edges_equal_numpy_inside(edges, values):
    inside = np.clip(np.array(values, dtype=float), edges[0], edges[-1])
    expected, _ = np.histogram(inside, edges)
    assert_same(Bins.of(edges).count(values), expected)


# How many edges one key leaves to a search. Of those that no key tells apart, it is many.
SEARCHED = {
    "nearly even": (lambda rng: np.arange(1000.0) + rng.uniform(-0.3, 0.3, 1000), 1),
    "normal": (lambda rng: rng.normal(size=1000), 4),
    "lognormal": (lambda rng: rng.lognormal(0.0, 20.0, 1000), 3),
    "lognormal and ties": (lambda rng: np.repeat(rng.lognormal(0.0, 20.0, 300), 2), 6),
    "powers": (lambda rng: 1.1 ** np.arange(-300.0, 300.0), 1),
    "powers from afar": (lambda rng: 2.0**48 + 1.1 ** np.arange(300.0), 2),
    "powers to the end": (lambda rng: 2.0 ** np.arange(-1000.0, 1024.0), 2),
    "few powers": (lambda rng: np.array([0.0, 1.0, 2.0, 1e9, 1e18, 1e27, 1e36]), 1),
    "close pair": (lambda rng: np.array([0.0, 50.0, 51.0, 150.0, 200.0]), 1),
    "close pair far below": (lambda rng: np.array([-501.0, -500.0, -492.0, 500.0, 501.0]), 1),
    "close pair of positive": (lambda rng: np.array([0.0, 100.0, 108.0, 1600.0, 1700.0]), 1),
    "close pair of negative": (lambda rng: np.array([-1700.0, -1600.0, -1592.0, -100.0, 0.0]), 1),
}


@pytest.mark.parametrize("shape", SEARCHED)
def test_bins_of_edges_are_found_without_much_of_a_search(shape):
    make, most = SEARCHED[shape]
    assert Bins.of(np.sort(make(np.random.default_rng(0))))._table.most <= most


# --- Bins.geometric


def test_geometric_bins_known_values():
    values = [-math.inf, -3.0, 0.0, 0.5, 1.0, 2.9, 3.0, 8.0, 1e308, math.inf, math.nan]
    bins = Bins.geometric(2.0, 0.0)
    counts = bins.count(values)
    assert bins.edges.tolist() == [2.0**i - 1.0 for i in range(1024)]
    assert counts[:5].tolist() == [4, 2, 1, 1, 0]
    assert counts[1023] == 2 and counts.sum() == 10
    bins = Bins.geometric(2.0, 0.0, upper=3.0)
    assert bins.edges.tolist() == [0.0, 1.0, 3.0]
    assert bins.count(values).tolist() == [4, 2, 4]
    assert Bins.geometric(2.0, 0.0, upper=2.5).edges.tolist() == [0.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("beta", "lower"),
    # many thresholds take their time
    [
        (beta, lower)
        for beta, lower in itertools.product(BETAS, LOWERS)
        if beta > 1.001 or lower in (0.0, -1000.0, 1e17)
    ],
)
def test_geometric_bins_are_exact_at_every_threshold(beta, lower):
    expected = np.array(reference.geometric_thresholds(beta, lower))
    bins = Bins.geometric(beta, lower)
    assert np.array_equal(bins.edges, expected)
    assert bins.edges[0] == lower and (np.diff(bins.edges) >= 0.0).all()
    values = around(expected)
    counts = bins.count(values)
    # f_i = #{v < t_i}, what the mechanism asks, v clamped to lower
    known = np.sort(np.maximum(values[~np.isnan(values)], lower))
    below = np.searchsorted(known, expected)
    assert np.array_equal(np.cumsum(counts)[:-1], below[1:])
    assert below[0] == 0 and counts.sum() == known.size


@given(
    st.floats(1.01, 1e3),
    st.one_of(st.sampled_from(LOWERS), st.floats(-1e6, 1e6)),
    st.one_of(st.none(), st.floats(1e-3, 1e30)),
    st.lists(st.floats(), max_size=30),
)
def test_geometric_bins_equal_reference(beta, lower, above, values):
    upper = None if above is None or lower + above == lower else lower + above
    thresholds = reference.geometric_thresholds(beta, lower, upper)
    values = np.concatenate([around(thresholds[:200]), around(thresholds[-3:]), values])
    bins = Bins.geometric(beta, lower, upper)
    expected = reference.geometric_counts(values.tolist(), beta, lower, upper=upper)
    assert bins.edges.tolist() == expected[0]
    assert_same(bins.count(values), expected[1])


@pytest.mark.parametrize("beta", BETAS)
def test_reference_powers_are_powers_rounded_to_nearest(beta):
    powers = list(reference.powers(beta))
    with mpmath.workprec(1200):
        for i in [*range(0, len(powers), max(len(powers) // 300, 1)), len(powers) - 1]:
            assert powers[i] == float(mpmath.mpf(beta) ** i)
        assert mpmath.mpf(beta) ** len(powers) > mpmath.mpf(1.7976931348623157e308)


def test_geometric_bins_where_floating_logarithms_fail():
    # [Dur23] Appendix C: math.log(x, b) // 1 puts up to 45% of exact edges one bin off
    edges = np.fromiter(
        reference.powers(1.01), float, 3000
    )  # up to 1e13: the thresholds (y - 1) + 1 are these
    wrong = sum(math.log(y, 1.01) // 1 != i for i, y in enumerate(edges.tolist()))
    assert wrong > 500
    bins = Bins.geometric(1.01, 1.0)
    counts = bins.count(edges)
    assert np.array_equal(bins.edges[:3000], edges)
    assert (counts[:3000] == 1).all() and counts[3000:].sum() == 0


@pytest.mark.parametrize("lower", [0.0, 1.0, 0.1, -1000.0])
@pytest.mark.parametrize("beta", [*BETAS, 1.05, 10.0, 1e300])
def test_geometric_buckets_are_found_without_search(beta, lower):
    assert Bins.geometric(beta, lower)._table.most <= 1


@pytest.mark.parametrize("lower, upper", [(-1000.0, 0.0), (-1000.0, -900.0), (0.1, 1e6)])
def test_geometric_buckets_up_to_a_bound_are_found_without_search(lower, upper):
    assert Bins.geometric(1.05, lower, upper)._table.most <= 1


@pytest.mark.parametrize("lower", [0.0, 1.0])
def test_geometric_bins_of_the_smallest_ratio(lower):
    beta, upper = 1.0 + 2.0**-52, lower + 2.0**-45
    values = around(reference.geometric_thresholds(beta, lower, upper))
    bins = Bins.geometric(beta, lower, upper)
    edges, counts = reference.geometric_counts(values.tolist(), beta, lower, upper=upper)
    assert bins.size == 129 and bins.edges.tolist() == edges
    assert_same(bins.count(values), counts)


# --- all of them

BINS = {
    "uniform": lambda: Bins.uniform(-3.0, 100.0, 17),
    "edges": lambda: Bins.of([-7.5, 0.0, 0.25, 3.0, 60.0, 61.0, 110.0]),
    "ties": lambda: Bins.of([0.0, 0.0, 3.0, 3.0, 3.0, 60.0, 60.0]),
    "geometric": lambda: Bins.geometric(1.3, -2.0),
}


@pytest.fixture(params=list(BINS))
def bins(request):
    return BINS[request.param]()


def expected_counts(bins, values, weights=None):
    edges = bins.edges.tolist()
    if len(edges) == bins.size:
        edges.append(math.inf)
    return reference.edge_counts(values, edges, weights)


@pytest.mark.parametrize("dtype", DTYPES)
def test_count_takes_every_dtype_and_layout(bins, dtype, monkeypatch):
    rng = np.random.default_rng(3)
    with np.errstate(all="ignore"):
        base = np.concatenate([rng.normal(50.0, 40.0, 500), [0, 3, 60, 61, 100, 110, 120]])
        values = (np.clip(base, 0, 120) if "i1" in dtype or "u" in dtype else base).astype(dtype)
    if values.dtype.kind == "f":
        values[:6] = [math.nan, math.inf, -math.inf, -0.0, 0.0, np.finfo(values.dtype).tiny]
    expected = expected_counts(bins, [float(v) for v in values])
    layouts = {
        "contiguous": values,
        "strided": np.repeat(values, 3)[::3],
        "backwards": values[::-1],
        "unaligned": np.frombuffer(b"." + values.tobytes(), dtype=np.uint8)[1:].view(dtype),
    }
    for chunk in (fast.CONVERTED, 64):
        monkeypatch.setattr(fast, "CONVERTED", chunk)
        for array in layouts.values():
            array.flags.writeable = False
            before = array.copy()
            assert_same(bins.count(array), expected)
            assert array.tobytes() == before.tobytes()


@pytest.mark.parametrize("dtype", ["i8", ">i8", "i4", "u8", "u1"])
def test_count_takes_weights(bins, dtype, monkeypatch):
    monkeypatch.setattr(fast, "CONVERTED", 64)
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.normal(50.0, 40.0, 300), SPECIAL, [0.0, 3.0, 60.0]])
    weights = rng.integers(0, 200, values.size).astype(dtype)
    for size in (0, 1, values.size):
        v, w = values[:size], weights[:size]
        expected = expected_counts(bins, v.tolist(), w.tolist())
        assert_same(bins.count(v, w), expected)
        assert_same(bins.count(np.repeat(v, 2)[::2], np.repeat(w, 2)[::2]), expected)
    assert_same(bins.count([], []), [0] * bins.size)
    assert bins.count([5.0, 5.0], [2**52, 2**52]).sum() == 2**53


def test_what_has_to_be_converted_is_converted_in_pieces(bins, monkeypatch):
    monkeypatch.setattr(fast, "CONVERTED", 64)
    sizes, as_plain = [], fast.as_plain
    monkeypatch.setattr(
        fast, "as_plain", lambda values: (sizes.append(values.size), as_plain(values))[1]
    )
    x, weights = np.arange(150.0), np.ones(150, dtype=np.int64)
    for values in (x, x.astype("f4"), x.astype("u1"), x.astype("f2"), x.astype(">i4")):
        for weight in (None, weights, weights.astype("i4")):
            sizes.clear()
            bins.count(values, weight)
            plain = values.dtype in ("f8", "f4", "u1") and (weight is None or weight is weights)
            assert sizes == ([150] if plain else [64, 64, 22])


def test_count_adds_to_out_over_chunks_and_threads(bins):
    values = np.random.default_rng(5).normal(50.0, 40.0, 10_000)
    expected = bins.count(values)
    counts = bins.zeros()
    for start in range(0, values.size, 999):
        assert bins.count(values[start : start + 999], out=counts) is counts
    assert_same(counts, expected)
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(bins.count, np.array_split(values, 16)))
    assert_same(np.sum(parts, axis=0), expected)


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("extra", [1, 2, 1023, 1024, 1025, 2048, 5000])
def test_count_by_key_equals_count_by_bin(bins, extra, negate):
    # as many values as keys or more are counted by key, few ones directly
    keys = 1000  # more than these bins have; the geometric ones have fewer than 5000
    rng = np.random.default_rng(extra)
    values = rng.choice([-60.0, 0.0, 3.0, 61.0, math.nan, math.inf, 1e300], keys + extra)
    values[::3] = rng.normal(50.0, 40.0, values[::3].size)
    counts = bins.zeros()
    for start in range(0, values.size, 7):
        bins.count(values[start : start + 7], negate=negate, out=counts)
    assert_same(bins.count(values, negate=negate), counts)
    nothing = np.full(keys + extra, math.nan)
    assert_same(bins.count(nothing, negate=negate), [0] * bins.size)


def test_count_adds_weights_to_out():
    counts = np.zeros(2, dtype=np.int64)
    assert Bins.uniform(0.0, 1.0, 2).count([0.0], [3], out=counts) is counts
    assert Bins.of([0.0, 0.5, 1.0]).count([1.0], [4], out=counts) is counts
    assert Bins.geometric(2.0, 0.0, upper=1.0).count([9.0], [5], out=counts) is counts
    assert_same(counts, [3, 9])


def test_bins_are_read_only(bins):
    with pytest.raises(ValueError, match="read-only"):
        bins.edges[0] = 1.0


def test_bins_keep_their_own_edges():
    edges = np.array([0.0, 1.0, 2.0])
    bins = Bins.of(edges)
    edges[1] = 0.0
    assert_same(bins.count([0.5]), [1, 0])


def test_count_warns_of_nothing():
    for value in (1e308, 2.0**-140, math.nan):
        values = np.array([value], dtype=np.longdouble)
        assert Bins.uniform(0.0, 1.0, 1).count(values).size == 1
    signaling = np.array([0x7F800001], dtype=np.uint32).view(np.float32)
    assert_same(Bins.uniform(0.0, 1.0, 1).count(signaling), [0])


@pytest.mark.parametrize(
    "error, message, arguments",
    [
        (ValueError, "bins must be at least 1, got 0", (0.0, 1.0, 0)),
        (ValueError, r"bins must be at most 2\^28", (0.0, 1.0, 2**28 + 1)),
        (TypeError, "bins must be an integer, got 2.0", (0.0, 1.0, 2.0)),
        (ValueError, "bounds must be finite with low < high", (1.0, 1.0, 2)),
        (ValueError, "bounds must be finite with low < high", (math.nan, 1.0, 2)),
        (ValueError, "bounds must have a finite difference", (-1.7e308, 1.7e308, 2)),
    ],
)
def test_uniform_bins_rejects_bad_bins(error, message, arguments):
    with pytest.raises(error, match=message):
        Bins.uniform(*arguments)


@pytest.mark.parametrize(
    "error, message, edges",
    [
        (ValueError, "edges must be at least two numbers in a row", [1.0]),
        (ValueError, "edges must be at least two numbers in a row", [[1.0, 2.0]]),
        (ValueError, r"edges must ascend .* edges\[1\] = 2.0, edges\[2\] = 1.0", [0.0, 2.0, 1.0]),
        (ValueError, "edges must ascend and not be NaN", [0.0, math.nan]),
        (ValueError, "edges must ascend and not be NaN", [math.nan, 0.0, 1.0]),
        (TypeError, "edges must be real numbers", ["a", "b"]),
    ],
)
def test_bins_of_edges_rejects_bad_edges(error, message, edges):
    with pytest.raises(error, match=message):
        Bins.of(edges)


@pytest.mark.parametrize(
    "error, message, arguments",
    [
        (ValueError, "beta must be finite and greater than 1, got 1.0", (1.0, 0.0)),
        (ValueError, "beta must be finite and greater than 1, got inf", (math.inf, 0.0)),
        (ValueError, "beta must be finite and greater than 1, got nan", (math.nan, 0.0)),
        (ValueError, "lower must be finite, got -inf", (1.01, -math.inf)),
        (ValueError, "lower must be finite, got nan", (1.01, math.nan)),
        (TypeError, "beta must be a real number", ("1.01", 0.0)),
    ],
)
def test_geometric_bins_rejects_bad_grids(error, message, arguments):
    with pytest.raises(error, match=message):
        Bins.geometric(*arguments)
    for upper in (0.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="upper must be finite and above lower"):
            Bins.geometric(1.01, 0.0, upper)


def test_thresholds_end_at_2_24():
    assert fast.geometric_size(1.00001, 0.0) == 2**24
    assert fast.geometric_size(1.0001, 0.0) < 2**24
    assert fast.geometric_size(1.00001, 0.0, 1.0) == 69317
    (last,) = fast.geometric_thresholds(1.00001, 0.0, 2**24 - 1, 2**24).tolist()
    with mpmath.workprec(300):
        assert last == float(float(mpmath.mpf(1.00001) ** (2**24 - 1)) - 1.0)
    assert fast.geometric_size(1.00001, 0.0, last) == 2**24
    with pytest.raises(ValueError, match=r"beta must be large enough to reach upper in 2\^24"):
        fast.geometric_size(1.00001, 0.0, math.nextafter(last, math.inf))


@pytest.mark.parametrize("lower", [0.0, 0.1, -1e17])
@pytest.mark.parametrize("beta", [1.00001, 1.0 + 2.0**-52, 1.5])
def test_thresholds_of_fine_beta_equal_reference(beta, lower):
    expected = list(itertools.islice(reference.powers(beta), 30_000))
    expected = [(power - 1.0) + lower for power in expected]
    assert kernel.thresholds(beta, lower, 0, len(expected)).tolist() == expected
    for i in (0, 1, len(expected) - 1):
        assert fast.geometric_thresholds(beta, lower, i, i + 1).tolist() == expected[i : i + 1]
        assert kernel.thresholds(beta, lower, i, len(expected)).tolist() == expected[i:]
        for step in (2, 63, 64, 65, 256, 10**6):
            found = kernel.thresholds(beta, lower, i, len(expected), step)
            assert found.tolist() == expected[i::step]
    for upper in (expected[0], expected[63], expected[64], expected[65], expected[777]):
        assert kernel.reach(beta, lower, upper, len(expected)) == expected.index(upper) + 1


@pytest.mark.parametrize(
    ("step", "beta"),
    [
        *itertools.product([2, 4], [1.001, 1.01, 1e100]),  # of more thresholds, there are millions
        *itertools.product([256, 2**20], [1.0001, 1.01, 1e100]),
    ],
)
def test_bins_of_every_few_thresholds(beta, step):
    whole = Bins.geometric(beta, -3.0)
    part = Bins.geometric(beta, -3.0, step=step)
    assert np.array_equal(part.edges, whole.edges[::step])
    values = around(part.edges)
    starts = np.arange(0, whole.size, step)
    assert_same(part.count(values), np.add.reduceat(whole.count(values), starts))
    assert part._table.most <= 1


@pytest.mark.parametrize("lower", LOWERS)
def test_bins_below_lower_are_apart(lower):
    whole, apart = (Bins.geometric(1.01, lower, below=b) for b in (False, True))
    values = around(whole.edges)
    counts, split = whole.count(values), apart.count(values)
    assert split[0] == np.count_nonzero(values < lower) > 0
    split[apart.find(lower)] += split[0]
    assert np.array_equal(split[1:], counts)
    assert apart._table.most <= 1 or apart._table.most <= whole._table.most + 1


def test_count_of_negated_values(bins):
    values = around(np.append(bins.edges, -bins.edges))
    assert_same(bins.count(values, negate=True), bins.count(-values))
    weights = np.arange(values.size)
    assert_same(bins.count(values, weights, negate=True), bins.count(-values, weights))


def test_find_is_the_bin_of_a_number(bins):
    for value in around(bins.edges):
        if not math.isnan(value):
            assert bins.count([value])[bins.find(value)] == 1


def test_count_rejects_the_wrong_form():
    bins = Bins.uniform(0.0, 1.0, 2)
    with pytest.raises(ValueError, match="values must be one-dimensional, got 2 dimensions"):
        bins.count(np.zeros((2, 2)))
    with pytest.raises(TypeError, match="values must hold real numbers, got dtype bool"):
        bins.count(np.zeros(2, dtype=bool))
    with pytest.raises(TypeError, match="weights must be integers, got dtype float64"):
        bins.count([0.5], [1.0])
    with pytest.raises(ValueError, match="weights must have one entry for each value"):
        bins.count([0.5], [1, 2])
    for out in (np.zeros(2), [0, 0], np.zeros(2, dtype=">i8")):
        with pytest.raises(TypeError, match="out must be an ndarray of int64"):
            bins.count([0.5], out=out)
    with pytest.raises(ValueError, match=r"out must have shape \(2,\), got \(3,\)"):
        bins.count([0.5], out=np.zeros(3, dtype=np.int64))
    frozen = np.zeros(2, dtype=np.int64)
    frozen.flags.writeable = False
    for out in (frozen, np.zeros(4, dtype=np.int64)[::2]):
        with pytest.raises(ValueError, match="out must be contiguous, aligned and writeable"):
            bins.count([0.5], out=out)


def test_kernel_refuses_what_would_not_be_safe():
    edge = np.array([0.0, 1.0])
    good = [edge, 0.0, 0.0, 1.0, False, 0, 10]
    for place, bad in [(0, edge[::-1].copy()), (0, np.array([math.nan])), (1, math.nan)]:
        with pytest.raises(ValueError, match="must"):
            kernel.Table(*good[:place], bad, *good[place + 1 :])
    for place, bad in [(2, math.inf), (3, 0.0), (3, math.nan), (5, 53), (6, -1), (6, 2**31)]:
        with pytest.raises(ValueError, match="must"):
            kernel.Table(*good[:place], bad, *good[place + 1 :])
    table = kernel.Table(*good)
    with pytest.raises(ValueError, match="count must have one entry for each bin"):
        table.count(np.zeros(1), False, None, np.zeros(2, dtype=np.int64))
    with pytest.raises(ValueError, match="weight must have one entry for each value"):
        table.count(np.zeros(1), False, np.zeros(2, dtype=np.int64), np.zeros(3, dtype=np.int64))
