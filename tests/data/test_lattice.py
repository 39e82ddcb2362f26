"""The public lattice: a function of public facts, exact in both directions."""

from __future__ import annotations

import dataclasses
import inspect
import math

import numpy as np
import pytest
from conftest import reference_lattice
from hypothesis import given, settings
from hypothesis import strategies as st

from dpq_fast.data.lattice import DITHER_BITS, MAX_POINTS, Lattice, points_per_unit
from dpq_fast.reference.lattice import Lattice as ReferenceLattice
from dpq_fast.reference.sample import nearest_points

SMALL = [
    # (bounds, resolution)
    ((0.0, 10.0), 1.0),
    ((-7.0, 9.0), 1),
    ((0.0, 10.0), 0.01),
    ((-1.0, 1.0), 0.1),
    ((-3.25, 17.8), 0.05),
    ((0.5, 3.7), 1.0),
    ((-100.0, 100.0), 2.5),
    ((0.0, 1.0), 1.0 / 3.0),
    ((-1.0, 1.0), 0.3),
    ((0.0, 1e300), 1e297),
    ((-1e300, 1e300), 3e298),
    ((0.0, 1e-300), 1e-303),
    ((-1e-300, 1e-300), 7e-303),
    ((1e15, 1e15 + 50.0), 0.125),
    ((0.0, 1e6), 1e3),
    ((0.0, 5e-324), 5e-324),
    ((0.001, 0.999), 0.001),
    ((1e8, 1e8 + 30.0), 0.01),
]
DEFAULT = [
    (0.0, 1.0),
    (-100.0, 100.0),
    (0.1, 0.3),
    (1e15, 1e15 + 50.0),
    (-1e300, 1e300),
    (1e300, 1.5e300),
    (0.0, 1e-300),
    (0.0, 5e-324),
    (1e-300, 2e-300),
    (0.0, 1.7e308),
    (-8e307, 8e307),
    (123.456, 123.457),
]
LATTICES = [Lattice.of(bounds, resolution, None) for bounds, resolution in SMALL] + [
    Lattice.of(bounds, None, None) for bounds in DEFAULT
]


def some_points(lattice: Lattice) -> np.ndarray:
    """All points of a small lattice; both ends and 5,000 in between of a large one."""
    if lattice.points <= 20_000:
        return np.arange(lattice.points)
    inner = np.random.default_rng(0).integers(0, lattice.points, size=5_000)
    ends = np.arange(500)
    return np.unique(np.concatenate((ends, inner, lattice.points - 1 - ends)))


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_encode_and_locate_invert_decode(lattice):
    points = some_points(lattice)
    values = lattice.decode(points)
    np.testing.assert_array_equal(lattice.encode(values), points)
    assert [lattice.locate(value) for value in values.tolist()] == points.tolist()


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_decode_is_strictly_increasing_inside_the_bounds(lattice):
    values = lattice.decode(some_points(lattice))
    assert (np.diff(values) > 0.0).all()
    assert values[0] >= lattice.low and values[-1] <= lattice.high


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_of_takes_every_multiple_inside_the_bounds(lattice):
    below = lattice.decode(np.array([-1]))[0]
    with np.errstate(over="ignore"):
        above = lattice.decode(np.array([lattice.points]))[0]
    assert below < lattice.low and above > lattice.high
    assert 2 <= lattice.points <= MAX_POINTS
    assert lattice.step >= math.ulp(max(abs(lattice.low), abs(lattice.high)))


@pytest.mark.parametrize(
    "resolution, low, high",
    [
        # high is next to a multiple; in units of the lattice it is rounded to that one
        (0.01, 1.0, math.nextafter(3.2, 0.0)),
        (0.7, 0.7, math.nextafter(65 * 0.7, 0.0)),
        # low likewise
        (0.01, math.nextafter(3.01, 4.0), 5.0),
        (0.3, math.nextafter(207 * 0.3, 100.0), 70.0),
        # a multiple that is rounded to more than its number, or to less
        (0.01, 2.47, 3.0),
        (0.3, 127 * 0.3, 50.0),
        (0.01, 1.0, 2.26),
        (0.3, 3.0, 233 * 0.3),
    ],
)
def test_of_compares_multiples_with_the_bounds_as_they_are(resolution, low, high):
    lattice = Lattice.of((low, high), resolution, None)
    multiples = [k / 100 if resolution == 0.01 else k * resolution for k in range(600)]
    inside = [k for k, value in enumerate(multiples) if low <= value <= high]
    assert (lattice.first, lattice.points) == (inside[0], len(inside))


def test_of_leaves_bounds_that_are_no_multiples():
    lattice = Lattice.of((0.5, 3.7), 1.0, None)
    assert lattice.decode(np.arange(lattice.points)).tolist() == [1.0, 2.0, 3.0]
    assert lattice.encode(np.array([0.5, 1.4, 1.6, 3.4, 3.7])).tolist() == [0, 0, 1, 2, 2]


def test_decode_gives_back_decimals():
    for digits, bounds in [
        (2, (0.0, 10.0)),
        (1, (-5.0, 5.0)),
        (3, (-1.0, 1.0)),
        (2, (1e6, 1e6 + 9)),
    ]:
        lattice = Lattice.of(bounds, 10.0**-digits, None)
        first = round(bounds[0] * 10**digits)
        literals = [
            float(f"{k // 10**digits}.{k % 10**digits:0{digits}d}")
            if k >= 0
            else -float(f"{-k // 10**digits}.{-k % 10**digits:0{digits}d}")
            for k in range(first, first + lattice.points)
        ]
        assert lattice.decode(np.arange(lattice.points)).tolist() == literals
        assert literals[-1] == bounds[1]


@pytest.mark.parametrize("bounds", DEFAULT)
def test_of_defaults_to_a_power_of_ten(bounds):
    lattice = Lattice.of(bounds, None, None)
    spacing = math.ulp(max(map(abs, bounds)))
    if lattice.step != spacing:  # there a power of ten would be finer than float64
        assert lattice.step > spacing
        digits = round(math.log10(lattice.step))
        assert lattice.step == float(f"1e{digits}")
        share = lattice.step / (bounds[1] - bounds[0])
        assert 10.0**-6.5 < share * (1 + 1e-12) and share < 10.0**-5.5 * (1 + 1e-12)
    assert lattice.bits == min(DITHER_BITS, 53 - (lattice.points - 1).bit_length()) > 0


def test_of_defaults_to_steps_that_people_write():
    steps = {120.0: 1e-4, 10.0: 1e-5, 1e6: 1.0, 1e8: 100.0, 300_000.0: 0.1}
    for high, step in steps.items():
        lattice = Lattice.of((0.0, high), None, None)
        assert lattice.step == step
        assert lattice.decode(lattice.encode(np.array([high / 4]))).tolist() == [high / 4]


@pytest.mark.parametrize("resolution", [None, 0.5])
def test_of_dithers_unless_turned_off(resolution):
    assert Lattice.of((0.0, 8.0), resolution, None).bits == 31
    assert Lattice.of((0.0, 8.0), resolution, True).bits == 31
    assert Lattice.of((0.0, 8.0), resolution, False).bits == 0


@pytest.mark.parametrize("resolution", [0, 0.0, -0.0])
def test_of_resolution_zero_is_no_lattice(resolution):
    assert Lattice.of((0.0, 1.0), resolution, None) is None
    assert Lattice.of((0.0, 1.0), resolution, False) is None


def test_of_sees_public_facts_only():
    parameters = set(inspect.signature(Lattice.of).parameters)
    assert parameters == {"bounds", "resolution", "dither", "prior"}
    arguments = ((0.0, 10.0), 0.01, None)
    assert Lattice.of(*arguments) == Lattice.of(*arguments)


@pytest.mark.parametrize("exponent", [1, 20, 28, 29, 30, 31, 40, 52])
@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_dither_bits_keep_fine_points_exact(exponent, extra):
    points = 2**exponent + extra
    if points < 2:
        return
    lattice = Lattice.of((0.0, float(points - 1)), 1.0, True)
    assert lattice.points == points
    assert lattice.fine_points == points << lattice.bits <= 2**53
    assert lattice.bits == DITHER_BITS or points << (lattice.bits + 1) > 2**53


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_least_is_the_least_number_of_a_point_or_above(lattice):
    points = some_points(lattice)
    found = lattice.least(points)
    assert (found[0], found.size) == (-math.inf, points.size)
    np.testing.assert_array_equal(lattice.encode(found)[1:], points[1:])
    np.testing.assert_array_equal(
        lattice.encode(np.nextafter(found[1:], -math.inf)), points[1:] - 1
    )
    assert lattice.least(np.array([-1, lattice.points])).tolist() == [-math.inf, math.inf]


def test_of_takes_as_many_points_as_are_exact():
    lattice = Lattice.of((-(2.0**52), 2.0**52 - 1.0), 1.0, None)
    assert lattice.points == MAX_POINTS == 2**53
    assert lattice.bits == 0


@pytest.mark.parametrize(
    "step, per_unit",
    [
        (1.0, 1.0),
        (0.1, 10.0),
        (1.0 / 3.0, 3.0),
        (2.0**-20, 2.0**20),
        # 1/step is an integer but for 4 spacings of float64, and for 5
        (1.0 / (1000.0 + 4.0 * math.ulp(1000.0)), 1000.0),
        (1.0 / (1000.0 + 5.0 * math.ulp(1000.0)), 0.0),
        (0.3, 0.0),
        (0.7, 0.0),
        (2.5, 0.0),
        (1e-17, 0.0),
    ],
)
def test_points_per_unit_is_the_inverse_if_that_is_whole(step, per_unit):
    assert points_per_unit(step) == per_unit


def test_encode_clamps():
    lattice = Lattice.of((-2.0, 3.0), 1.0, None)
    values = [-np.inf, -1e308, -2.5, -2.0, 3.0, 3.5, 1e308, np.inf]
    assert lattice.encode(np.array(values)).tolist() == [0, 0, 0, 0, 5, 5, 5, 5]
    assert lattice.encode(np.array([np.nan, 3.0])).tolist() == [0, 5]  # memory-safe, no wild cast
    assert lattice.encode(np.empty(0)).tolist() == []


def test_encode_rounds_to_the_nearest_multiple():
    lattice = Lattice.of((0.0, 10.0), 0.01, None)
    assert lattice.encode(np.array([0.004, 0.006, 3.14159, 9.996])).tolist() == [0, 1, 314, 1000]
    integers = Lattice.of((0.0, 10.0), 1.0, None)
    assert integers.encode(np.array([0.5, 1.5, 2.5])).tolist() == [0, 2, 2]  # ties to even


@pytest.mark.parametrize("exponent", [49, 50, 51, 52, 53])
@pytest.mark.parametrize("resolution", [1.0, 0.25, 0.1, 8.0, 2.0**-40])
@pytest.mark.parametrize("sign", [1, -1])
def test_values_far_from_zero_go_to_the_nearest_multiple(exponent, resolution, sign):
    """Of two equally near ones to the even one, on both sides of 2^51 steps, by every kernel."""
    far = 2.0**exponent * resolution
    step = max(resolution, math.ulp(far))
    low, high = sorted((sign * far, sign * (far + 32 * step)))
    lattice = Lattice.of((low, high), step, False)
    values = np.unique(np.linspace(low, high, 257))
    with_nan = np.append(values, np.nan)
    positions = [
        value * lattice.per_unit if lattice.per_unit else value / step for value in values.tolist()
    ]
    nearest = [
        min(max(round(position) - lattice.first, 0), lattice.points - 1) for position in positions
    ]
    assert lattice.encode(values).tolist() == nearest
    reference = ReferenceLattice.of((low, high), step, False)
    assert nearest_points(values, reference).tolist() == nearest
    counts = np.zeros(lattice.points + 1, dtype=np.int64)
    lattice.count(counts, with_nan)
    assert counts.tolist() == [nearest.count(point) for point in range(lattice.points)] + [1]
    points = np.arange(lattice.points)
    lo, hi = np.zeros(points.size, dtype=np.int64), np.full(points.size, values.size)
    lattice.ranks(values, points, lo, hi)
    assert lo.tolist() == np.searchsorted(nearest, points).tolist()
    assert lattice.ties(values, np.arange(values.size))[0].tolist() == nearest
    least = lattice.least(points)
    assert np.searchsorted(values, least).tolist() == lo.tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float16, np.float32, ">f8", ">i4"])
def test_encode_takes_any_dtype(dtype):
    lattice = Lattice.of((0.0, 100.0), 1.0, None)
    values = np.array([3, 50, 7, 99], dtype=dtype)
    assert lattice.encode(values).tolist() == [3, 50, 7, 99]
    assert lattice.encode(values[::-2]).tolist() == [99, 50]


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
@settings(max_examples=25)
@given(data=st.data())
def test_encode_is_monotone_and_equals_reference(lattice, data):
    inside = st.floats(lattice.low, lattice.high)
    values = data.draw(st.lists(st.one_of(inside, st.floats(allow_nan=False)), max_size=20))
    values = np.sort(np.array(values, dtype=np.float64))
    points = lattice.encode(values)
    assert (np.diff(points) >= 0).all()
    assert ((points >= 0) & (points < lattice.points)).all()
    np.testing.assert_array_equal(points, nearest_points(values, reference_lattice(lattice)))


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_encode_misses_by_at_most_half_a_step(lattice):
    values = np.random.default_rng(1).uniform(0.0, 1.0, size=1_000)
    values = lattice.low + values * (lattice.high - lattice.low)
    ends = lattice.decode(np.array([0, lattice.points - 1]))
    values = np.clip(values, *ends)
    error = np.abs(lattice.decode(lattice.encode(values)) - values)
    spacing = math.ulp(max(abs(lattice.low), abs(lattice.high)))
    assert (error <= 0.5 * lattice.step + spacing).all()


def test_locate_is_none_off_the_lattice():
    lattice = Lattice.of((0.5, 3.7), 1.0, None)
    assert [lattice.locate(v) for v in (1.0, 2.0, 3.0)] == [0, 1, 2]
    for value in (0.0, 4.0, 0.5, 3.7, 1.5, np.nextafter(2.0, 3.0), np.inf, -np.inf, np.nan):
        assert lattice.locate(value) is None


def test_lattice_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Lattice.of((0.0, 1.0), 0.5, None).step = 2.0


@pytest.mark.parametrize(
    "bounds, resolution, dither, error, message",
    [
        (
            (0.0, 1.0),
            -0.5,
            None,
            ValueError,
            "resolution must be finite and not negative, got -0.5",
        ),
        ((0.0, 1.0), np.nan, None, ValueError, "resolution must be finite and not negative"),
        ((0.0, 1.0), np.inf, None, ValueError, "resolution must be finite and not negative"),
        ((0.0, 1.0), "fine", None, TypeError, "resolution must be a real number, got 'fine'"),
        ((0.0, 1.0), [0.5, 0.5], None, TypeError, "resolution must be a real number"),
        ((0.0, 1.0), 1j, None, TypeError, "resolution must be a real number"),
        ((0.0, 1.0), 1.5, None, ValueError, "at least two of its multiples inside bounds"),
        ((0.1, 0.9), 1.0, None, ValueError, "at least two of its multiples inside bounds"),
        ((0.0, 1.0), 1e-17, None, ValueError, "at least the float64 spacing at the larger bound"),
        ((0.0, 1e17), 1.0, None, ValueError, "at least the float64 spacing at the larger bound"),
        ((0.0, 1.0), 5e-324, None, ValueError, "at least the float64 spacing"),
        ((-(2.0**53) + 1, 2.0**53 - 1), 1.0, None, ValueError, r"at most 2\^53 points"),
        ((0.0, 1.0), 0.0, True, ValueError, "dither needs a lattice"),
    ],
)
def test_of_rejects(bounds, resolution, dither, error, message):
    with pytest.raises(error, match=message):
        Lattice.of(bounds, resolution, dither)


def test_of_rejects_text_as_resolution():
    with pytest.raises(TypeError, match="resolution must be a real number"):
        Lattice.of((0.0, 1.0), "0.5", None)


# The reference has a lattice of its own


def made(lattice: type, *public: object) -> object:
    """A lattice as the reference has it, or what is said in refusing it."""
    try:
        one = lattice.of(*public)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return reference_lattice(one) if isinstance(one, Lattice) else one


ENDS = st.one_of(
    st.floats(-1e6, 1e6),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**53), 2**53).map(float),
    st.decimals(-1000, 1000, places=2).map(float),
)
STEPS = st.one_of(
    st.none(),
    st.just(0),
    st.floats(1e-9, 1e3),
    st.integers(1, 2**53).map(lambda n: 1.0 / n),
    st.sampled_from([0.1, 0.01, 0.25, 0.3, 1, 1.0 / 3.0, 5e-324, 3e298, math.inf, -1.0, "1"]),
)


@given(ENDS, ENDS, STEPS, st.sampled_from([None, True, False, 1]))
def test_reference_has_the_same_lattice_or_refuses_it_alike(a, b, step, dither):
    low, high = min(a, b), max(a, b)
    if 0.0 < high - low < math.inf:
        public = ((low, high), step, dither)
        assert made(ReferenceLattice, *public) == made(Lattice, *public)


@pytest.mark.parametrize("bounds", DEFAULT, ids=str)
def test_reference_has_the_same_default_lattice(bounds):
    assert made(ReferenceLattice, bounds, None, None) == made(Lattice, bounds, None, None)


@given(st.floats(1e-300, 1e300), st.integers(1, 2**53), st.integers(1, 20))
def test_reference_has_the_same_lattice_of_ulps(low, points, ulps):
    """Steps at the spacing of float64, where rounding decides which multiples are inside."""
    step = ulps * math.ulp(low)
    public = (low, low + min(points, 2**40) * step), step, False
    if 0.0 < public[0][1] - low < math.inf:
        assert made(ReferenceLattice, *public) == made(Lattice, *public)


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_reference_decodes_and_locates_alike(lattice):
    slow = reference_lattice(lattice)
    points = some_points(lattice)[:: max(1, lattice.points // 500)]
    values = lattice.decode(points)
    np.testing.assert_array_equal(slow.decode(points), values)
    for value in values[:100].tolist():
        for near in (value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)):
            assert slow.locate(near) == lattice.locate(near)
    assert slow.fine_points == lattice.fine_points
