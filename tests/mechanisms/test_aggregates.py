"""Counts, sums and means: exact integers, exact privacy by enumeration, sane on real columns."""

import datetime as dt
import importlib
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import assert_draws_follow, discrete_rho, pure_rho, range_rho
from hypothesis import example, given
from hypothesis import strategies as st

import dpq_fast as dpq
from dpq_fast import noise, privacy
from dpq_fast.data.records import Records
from dpq_fast.data.sample import Sample
from dpq_fast.laws.unbounded import UnboundedQuantileLaw
from dpq_fast.mechanisms.clipping import Clip, Clipping, Mean
from dpq_fast.mechanisms.unbounded_quantile import clip_search
from dpq_fast.privacy import Accountant, guarantee

NAN = math.nan
# A right mean of draws is further from its law's once in a million seeds; ours are fixed.
SIGMAS = 5.0
REACH = 2**31


def rounded(value, scale, first, last):
    """The integer that stands for one record."""
    return round(min(max(value * scale, first), last))


numbers = st.one_of(
    st.floats(),  # NaN, infinite, huge and subnormal ones
    st.floats(-100.0, 100.0),
    st.integers(-20, 20).map(lambda k: k / 2.0),  # ties
)


def module_of(implementation):
    """Where an implementation has its sums and means."""
    return importlib.import_module(implementation.sum.__module__)


@pytest.fixture
def exact(implementation, monkeypatch):
    """The implementation without noise; the scales it asks for are kept in `exact.scales`."""
    module = module_of(implementation)

    def silent(scale, *, rng):
        implementation.scales.append(scale)
        return 0

    monkeypatch.setattr(module, "discrete_laplace", silent)
    monkeypatch.setattr(implementation, "scales", [], raising=False)
    return implementation


# --- The lattice of a clip


@given(st.floats(0.0, allow_infinity=False), st.floats(0.0, 1.0))
@example(0.0, 0.0)
@example(5e-324, 1.0)
@example(1.7976931348623157e308, 0.5)
@example(1.0, 1.0)
def test_clip_is_rounded_outwards_on_a_power_of_two(high, part):
    for low in (-part * high, part * high):
        clip = Clip.of(low, high, None)
        assert math.frexp(clip.step)[0] == 0.5
        assert Fraction(clip.first) * Fraction(clip.step) <= low
        assert high <= Fraction(clip.last) * Fraction(clip.step)
        assert -REACH <= clip.first < clip.last <= REACH
        if high > 1e-290:
            assert clip.last >= REACH // 2
        assert clip.last - clip.first >= 2**10


@pytest.mark.parametrize(
    ("low", "high", "resolution", "expected"),
    [
        (0.0, 99.0, 1.0, (1.0, 0, 99)),
        (0.0, 99.3, 1.0, (1.0, 0, 100)),
        (-2.5, 0.0, 1.0, (1.0, -3, 0)),
        (0.0, 4.56, 0.01, (0.01, 0, 456)),
        (3.0, 3.0, 1.0, (1.0, 3, 4)),  # never empty
        (0.0, 2.0**31, 1.0, (2.0, 0, 2**30)),  # coarser than asked for
        (0.0, 7e9, 0.1, (6.4, 0, 1093750000)),
        # 2^10 points apart where no resolution is given
        (1.0, 1.0, None, (2.0**-30, 2**30, 2**30 + 2**10)),
        (-1.0, -1.0, None, (2.0**-30, -(2**30), -(2**30) + 2**10)),
        (2.0**31 - 1.0, 2.0**31 - 1.0, None, (1.0, 2**31 - 2**10, 2**31)),
    ],
)
def test_clip_known_values(low, high, resolution, expected):
    clip = Clip.of(low, high, resolution)
    assert (clip.step, clip.first, clip.last) == expected


def test_clip_decodes_decimals_and_never_overflows():
    assert Clip.of(0.0, 10.0, 0.01).decode(457) == 4.57
    huge = Clip.of(0.0, 1.7e308, None)
    assert huge.decode(10**400) == math.inf
    assert huge.decode(-(10**400)) == -math.inf


@given(
    st.tuples(*[st.floats(-1e12, 1e12) | st.integers(-100, 100).map(float)] * 2),
    st.sampled_from([None, 1.0, 0.01, 7.0, 0.1, 1e-9, 2.0**-30, 3e9]),
)
@example((0.0, 0.3), 0.1)
@example((2.0**31 - 8.0, 2.0**31 - 1.0), 1.0)
@example((1e12 - 1e3, 1e12), 0.01)
@example((0.0, 1e-310), 5e-324)
@example((-1e308, 5e307), 5e-324)
def test_public_clips_are_as_wide_as_their_guarantee_says(ends, resolution):
    low, high = sorted(ends)
    if low < high:
        public = dict(q=None, lower=low, upper=high, resolution=resolution)
        width = privacy.aggregates.calibrate(epsilon=1.0, **public).width
        for module in (dpq, dpq.reference):
            clip = module_of(module).Clip.of(low, high, resolution)
            assert 1 <= width <= clip.last - clip.first


# --- Whether n is public


@pytest.mark.parametrize(
    "x",
    [
        np.arange(3),
        np.ones(3, dtype=bool),
        pd.Series([1, 2, 3], dtype=np.int8),
        np.ones(3),
        [1, 2, 3],
        pd.Series([1, 2, 3], dtype="Int64"),
        pl.Series([1, 2, 3]),
        np.ma.masked_array([1, 2, 3]),
    ],
    ids=lambda x: f"{type(x).__module__} {getattr(x, 'dtype', 'list')}",
)
def test_n_is_public_by_promise_alone(x):
    """A type that holds no nulls may be inferred from records of which none is missing."""
    for policy, public in (("omit", False), ("raise", True)):
        assert Records.of(x, nan_policy=policy).n_is_public == public
        assert Records.of(x, counts=[1, 2, 3], nan_policy=policy).n_is_public == public
        assert Sample.of(x, (0, 5), nan_policy=policy).records.n_is_public == public
        assert Records.from_batches(lambda: (x,), nan_policy=policy).n_is_public == public


# --- Sums


@given(
    st.lists(numbers, max_size=20),
    st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)).filter(lambda b: b[0] != b[1]),
    st.sampled_from([None, 1.0, 0.01, 7.0]),
    st.booleans(),
)
def test_sum_without_noise_is_the_sum_of_rounded_records(values, bounds, resolution, weighted):
    low, high = sorted(bounds)
    clip = Clip.of(low, high, resolution)
    points = [(rounded(v, clip.scale, clip.first, clip.last), v) for v in values if v == v]
    clipped = math.fsum(min(max(v, low), high) for _, v in points)
    assert abs(clip.decode(sum(p for p, _ in points)) - clipped) <= 1e-9 + clip.step * len(points)
    weights = [i % 3 for i in range(len(values))] if weighted else None
    expected = sum(
        rounded(v, clip.scale, clip.first, clip.last) * (weights[i] if weighted else 1)
        for i, v in enumerate(values)
        if v == v
    )
    for implementation in (dpq, dpq.reference):
        module = module_of(implementation)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "discrete_laplace", lambda scale, rng: 0)
            out = implementation.sum(
                values,
                epsilon=1.0,
                q=None,
                lower=low,
                upper=high,
                resolution=resolution,
                counts=weights,
            )
        assert out == clip.decode(expected)


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: x,
        lambda x: x.astype(np.int8),
        lambda x: x.astype(">i4"),
        lambda x: x.astype(np.float32),
        lambda x: x.astype(">f8"),
        lambda x: np.repeat(x, 2)[::2],
        lambda x: x[::-1],
        lambda x: x.tolist(),
        lambda x: pd.Series(x),
        lambda x: pd.Series(x, dtype="Int64"),
        lambda x: pl.Series(x),
        lambda x: np.ma.masked_array(x, mask=np.zeros(x.size, dtype=bool)),
    ],
)
def test_sum_and_mean_take_any_column(exact, convert):
    x = np.random.default_rng(0).integers(-100, 100, size=300)
    options = dict(epsilon=1.0, q=None, lower=-64, upper=64)
    clipped = np.clip(x, -64, 64)
    given = convert(x)
    before = list(given)
    assert exact.sum(given, **options) == clipped.sum()
    assert exact.mean(given, **options) == pytest.approx(clipped.mean(), abs=1e-12)
    assert exact.mean(given, neighbors="add-remove", **options) == pytest.approx(
        clipped.mean(), abs=1e-12
    )
    assert exact.count(given, epsilon=1.0) == x.size
    assert list(given) == before


def test_sum_leaves_out_missing_records_and_clamps_infinite_ones(exact):
    x = [1.0, NAN, math.inf, None, -math.inf, 2.5]
    options = dict(epsilon=1.0, q=None, lower=-4, upper=8)
    assert exact.sum(x, **options) == 1.0 + 8.0 - 4.0 + 2.5
    assert exact.mean(x, **options) == 7.5 / 4
    assert exact.count(x, epsilon=1.0) == 4


@pytest.mark.parametrize("options", [{}, {"lower": None}, {"counts": True}])
def test_answers_do_not_depend_on_workers(options):
    x = np.random.default_rng(1).standard_cauchy(700_000)
    x[::1000] = NAN
    if "counts" in options:
        options = {"counts": np.arange(x.size) % 5}
    for release in (dpq.sum, dpq.mean):
        one, two = (release(x, epsilon=1.0, rng=3, workers=w, **options) for w in (1, 2))
        assert one == two
    options.pop("lower", None)
    assert dpq.count(x, epsilon=1.0, rng=3, **options) == dpq.count(
        x, epsilon=1.0, rng=3, workers=2, **options
    )


def test_a_sample_is_summed_inside_its_bounds():
    x = np.random.default_rng(2).normal(0.0, 5.0, size=1_000)
    sample = Sample.of(x, (-3.0, 4.0))
    inside = np.clip(x, -3.0, 4.0)
    for bounds in ((-10.0, 10.0), (-2.0, 10.0), (5.0, 6.0)):
        clip = Clip.of(*bounds, None)
        arguments = clip.scale, clip.first, clip.last
        assert sample.records.sums(*arguments) == Records.of(inside).sums(*arguments)
    options = dict(epsilon=1e9, q=None, lower=-10.0, upper=10.0)
    assert dpq.sum(sample, **options) == pytest.approx(inside.sum(), rel=1e-6)
    options |= dict(q=1.0, lower=-3.0, upper=4.0, method="joint_exp")
    assert dpq.sum(sample, **options) == pytest.approx(inside.sum(), rel=0.1)
    assert dpq.count(sample, epsilon=1e9) == 1_000


def test_batches_are_summed_as_one_column():
    x = np.random.default_rng(3).integers(0, 100, size=1_000)
    records = Records.from_batches(lambda: (x[:400], x[400:]))
    assert dpq.sum(records, epsilon=1e9, q=1.0, resolution=1) == x.sum()
    assert not records.n_is_public


def test_no_type_chooses_the_lattice_of_a_sum(exact):
    # a neighbor may hold a fraction
    options = dict(epsilon=1.0, q=None, lower=0, upper=4)
    for x in ([1, 2, 3], np.array([1, 2, 3]), np.array([1.0, 2.0, 3.0])):
        assert exact.sum(x, **options) == 6.0
    assert exact.sum([1, 2, 3], resolution=1, **options) == 6.0
    assert exact.scales == [2**30, 2**30, 2**30, 4]


@pytest.mark.parametrize("method", ["unbounded", "joint_exp", "ind_exp"])
def test_sum_at_a_huge_epsilon_is_the_sum(implementation, method):
    x = np.random.default_rng(4).integers(0, 50, size=60)
    out = implementation.sum(x, epsilon=1e6, q=1.0, upper=100, method=method, rng=1)
    assert out == pytest.approx(x.sum(), abs=2.0)


@pytest.mark.parametrize("method", ["joint_exp", "ind_exp"])
def test_sum_finds_its_clip_by_the_method_and_the_generator(method):
    options = dict(epsilon=1.0, upper=100.0, method=method, rng=5)
    out = dpq.sum(np.arange(60), **options)
    assert dpq.sum(np.arange(60), **options) == out
    if method == "joint_exp":
        assert dpq.sum(np.arange(60), kernel="fft", **options) == out


def test_mean_at_a_huge_epsilon_is_the_mean(implementation):
    for x in ([0.25] * 40, [0.0] * 40):
        assert implementation.mean(x, epsilon=1e9, q=1.0, rng=1) == pytest.approx(x[0], abs=0.01)


@pytest.mark.parametrize("ends", [{}, {"upper": 0.0}, {"upper": 9.0}])
def test_sum_of_negative_records(implementation, ends):
    x = -np.arange(40.0)
    out = implementation.sum(x, epsilon=1e6, q=1.0, lower=None, rng=1, **ends)
    assert out == pytest.approx(x.sum(), rel=1e-3)
    out = implementation.mean(x, epsilon=1e6, q=1.0, lower=None, rng=1, **ends)
    assert out == pytest.approx(x.mean(), rel=1e-3)


# --- Privacy, exactly


ALPHABETS = {
    # records, bounds, whether records can be missing
    "float": ([NAN, -9.0, -3.0, 0.4, 5.0, 9.0], (-3.0, 5.0), True),
    "above zero": ([NAN, 1.0, 2.0, 3.3], (2.0, 3.0), True),
    "integer": ([-9, -3, 0, 5, 9], (-3, 5), False),
    "promised": ([-9.0, -3.0, 0.4, 5.0], (-3.0, 5.0), False),
}


def columns(kind, size):
    records, _, _ = ALPHABETS[kind]
    dtype = np.int64 if kind == "integer" else np.float64
    for chosen in combinations_with_replacement(records, size):
        yield np.array(chosen, dtype=dtype)


def neighboring(kind, neighbors, size=2):
    """Pairs of columns that differ by one record, the last of the first one."""
    records, _, _ = ALPHABETS[kind]
    for x in columns(kind, size):
        if neighbors == "add-remove":
            yield x, x[1:]
        else:
            for other in records:
                changed = x.copy()
                changed[0] = other
                yield x, changed


def options_of(kind, **more):
    _, (low, high), missing = ALPHABETS[kind]
    policy = "omit" if missing else "raise"
    return dict(q=None, lower=low, upper=high, resolution=0.5, nan_policy=policy) | more, missing


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kind", ALPHABETS)
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_sum_privacy_ratio(exact, neighbors, kind, k):
    epsilon = 0.7
    options, missing = options_of(kind, epsilon=epsilon, neighbors=neighbors, max_contributions=k)
    worst = 0
    for x, other in neighboring(kind, neighbors):
        exact.scales.clear()
        one, two = (exact.sum(column, **options) for column in (x, other))
        scale, same = exact.scales
        assert scale == same  # noise that does not depend on the records
        # a discrete Laplace law, moved: P[o] / P'[o] is largest beyond both centers
        worst = max(worst, abs(Fraction(one) - Fraction(two)) / Fraction(1, 2) / scale)
    assert worst * k <= Fraction(epsilon)
    assert worst * k > 0.99 * epsilon
    low, high = (round(2 * end) for end in ALPHABETS[kind][1])
    person = dict(neighbors=neighbors, max_contributions=k)
    calibration = privacy.aggregates.calibrate(epsilon=epsilon, q=None, **person)
    assert scale == calibration.sum_scale(low, high, missing)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kind", ALPHABETS)
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_mean_privacy_ratio(exact, monkeypatch, neighbors, kind, k):
    epsilon = 0.7
    options, missing = options_of(kind, epsilon=epsilon, neighbors=neighbors, max_contributions=k)
    released = []
    owner = Mean if exact is dpq else module_of(exact).Mean
    monkeypatch.setattr(owner, "point", lambda self, *pair: released.append(pair) or 0)
    public = neighbors == "swap" and not missing
    worst = 0
    for x, other in neighboring(kind, neighbors):
        exact.scales.clear()
        released.clear()
        for column in (x, other):
            exact.mean(column, **options)
        one, two = released
        scales = exact.scales[: len(exact.scales) // 2]
        assert exact.scales == scales * 2 and len(scales) == 1 + (not public)
        if public:
            assert one[1] == two[1] == x.size
        # independent noise: the largest ratio is that of the two releases, multiplied
        loss = sum(abs(a - b) / s for a, b, s in zip(one, two, scales, strict=False))
        worst = max(worst, loss)
    assert worst * k <= Fraction(epsilon)
    assert worst * k > 0.99 * epsilon


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kind", ALPHABETS)
@pytest.mark.parametrize("blur", [Fraction(0), Fraction(1, 40), Fraction(1, 9)])
def test_mean_about_any_point_privacy_ratio(kind, k, blur):
    """What follows a pilot: of all neighbors, about each point that a pilot may have found."""
    epsilon = 0.7
    options, missing = options_of(kind, epsilon=epsilon, neighbors="swap", max_contributions=k)
    policy = dict(nan_policy=options.pop("nan_policy"))
    clipping = Clipping({}, **dict(method="unbounded", share=None, expected_n=None), **options)
    clip = clipping.clip([])
    middle, most = clip.first + clip.last, clip.width - (not blur)
    mean = replace(
        clipping.mean(clip, missing, 3), steps=(privacy.aggregates.MeanStep(epsilon, blur),)
    )
    worst: Counter[int] = Counter()
    for pair in neighboring(kind, "swap"):
        sums = [Records.of(x, **policy).sums(clip.scale, clip.first, clip.last) for x in pair]
        assert {rows for _, _, rows in sums} == {len(pair[0])}
        for about in range(middle - most, middle + most + 1):
            here = replace(mean, about=about)
            one, two = (here.terms(total, number) for total, number, _ in sums)
            moved = [(abs(a - b), s) for (a, s), (b, _) in zip(one, two, strict=True)]
            loss = sum(distance / s for distance, s in moved if s)
            worst[about] = max(worst[about], loss)
    assert len(worst) == 2 * most + 1
    assert all(0.99 * epsilon < loss * k <= Fraction(epsilon) for loss in worst.values())


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_count_privacy_ratio(exact, neighbors):
    for x, other in neighboring("float", neighbors):
        exact.scales.clear()
        one, two = (exact.count(c, epsilon=0.7, neighbors=neighbors) for c in (x, other))
        assert abs(one - two) <= 1
        assert exact.scales == [1 / Fraction(0.7)] * 2


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_count_has_the_noise_of_a_person(exact, neighbors, k):
    exact.count([1.0], epsilon=0.5, neighbors=neighbors, max_contributions=k)
    assert exact.scales == [2 * k]


def test_aggregates_have_the_defaults_of_the_docstring():
    x = np.random.default_rng(8).exponential(3.0, 100)
    shared = dict(neighbors="swap", max_contributions=1, nan_policy="omit")
    clipped = shared | dict(
        q="auto",
        lower=0.0,
        upper=None,
        method="unbounded",
        share=0.36,
        expected_n=1_250,
        resolution=None,
        beta=1.15,
        offset=-1.0,
        split=7 / 9,
    )
    for release, documented in ((dpq.count, shared), (dpq.sum, clipped), (dpq.mean, clipped)):
        plain, explicit = (
            [release(x, epsilon=0.1, rng=seed, **options) for seed in range(5)]
            for options in ({}, documented)
        )
        assert plain == explicit


def test_clips_that_are_found_take_the_place_of_upper():
    out = dpq.sum(np.ones(1_000), epsilon=10.0, upper=1e9, rng=1)
    assert out == pytest.approx(1_000.0, abs=10.0)


def test_a_public_number_of_records_has_no_noise(exact):
    options = dict(q=None, lower=0.0, upper=4.0, resolution=1.0)
    assert exact.mean([4.0], epsilon=1.0, nan_policy="raise", **options) == 4.0


def test_mean_of_the_released_pair():
    clip = Clip.of(2.0, 12.0, 1.0)

    def of(neighbors, rows=None):
        budget = dict(epsilon=1.0, share=0.5, expected_n=None, neighbors=neighbors)
        budget |= dict(max_contributions=1)
        public = dict(q=None, lower=2.0, upper=12.0, method="unbounded", resolution=None)
        return Clipping({}, **budget, **public).mean(clip, True, rows).value

    # records 3 and 10: sum of 2 x - 14 is -2; x - 2 gives 9, 12 - x gives 11
    assert of("swap")(-2, 2) == 6.5
    assert of("add-remove")(9, 11) == 6.5
    assert of("swap")(0, -5) == 7.0  # nothing is known: the middle
    assert of("add-remove")(-3, -3) == 7.0
    assert of("swap")(4, 0) == of("swap")(4, 1) == of("swap", 1)(4, 3) == 9.0  # as of one record
    assert of("swap")(1000, 2) == 12.0
    assert of("add-remove")(-50, 10**400) == of("add-remove", 1)(-50, 10**400) == 2.0


SIDES = [NAN, -3.0, -1.0, 0.0, 1.0, 6.0]


@cache
def side_tables(search, x, candidates):
    """Log-probabilities of candidates for the clips of both sides."""
    all_counted = search.sides(Records.of(x))
    laws = [UnboundedQuantileLaw(search, [counted]) for counted in all_counted]
    return [np.array([law.log_prob(c) for c in candidates]) for law in laws]


@given(st.lists(numbers, max_size=20))
@example([-3.0, -0.5, -5e-324, -0.0, 0.0, 0.0, 2.0, 2.0, NAN, math.inf, -math.inf])
def test_sides_count_as_by_comparison(x):
    clip = privacy.aggregates.calibrate(epsilon=2.0, q=0.7, lower=None).clip
    search = clip_search(0.7, clip, lower=None, upper=None, beta=2.0)
    sides = [-r for r in x if r < 0.0], [r for r in x if r >= 0.0]
    for side, counted in zip(sides, search.sides(Records.of(x)), strict=True):
        assert counted.total - counted.skipped == len(side)
        for i in range(1, 60):
            assert counted.below(i) - counted.skipped == sum(r < 2.0**i - 1.0 for r in side)


def test_sides_may_be_clipped_near_zero():
    clip = privacy.aggregates.calibrate(epsilon=2.0, q=0.7, lower=None).clip
    search = clip_search(0.7, clip, lower=None, upper=None, beta=1.25)
    for counted in search.sides(Records.of([0.1, -0.1])):
        assert [search.decode(counted, index, None) for index in (0, 1)] == [0.0, 0.25]


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("q", [0.5, 0.99])
def test_two_sided_clips_privacy_ratio(neighbors, q):
    epsilon = 1.2
    calibration = privacy.aggregates.calibrate(
        epsilon=2.0 * epsilon, q=q, lower=None, share=0.5, neighbors=neighbors
    )
    search = clip_search(q, calibration.clip, lower=None, upper=None, beta=2.0)
    candidates = tuple(2.0**i - 1.0 for i in range(1, 8))
    worst = 0.0
    for size in (1, 2, 3):
        for x in combinations_with_replacement(SIDES, size):
            for other in [x[1:]] if neighbors == "add-remove" else [(y, *x[1:]) for y in SIDES]:
                one, two = (
                    side_tables(search, tuple(sorted(y, key=str)), candidates) for y in (x, other)
                )
                moved = [a - b for a, b in zip(one, two, strict=True)]
                worst = max(worst, abs(moved[0][:, None] + moved[1]).max())
    assert 0.7 * epsilon < worst <= epsilon + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("two_sided", [False, True])
def test_clip_and_sum_together_privacy_ratio(neighbors, two_sided):
    """Over all released clips, the loss of the clip and that of the sum stay within epsilon."""
    epsilon = 1.0
    clipping = Clipping(
        dict(beta=2.0),
        epsilon=epsilon,
        q=0.9,
        lower=None if two_sided else 0.0,
        upper=None,
        method="unbounded",
        share=0.4,
        expected_n=None,
        resolution=None,
        neighbors=neighbors,
        max_contributions=1,
    )
    search = clipping.search
    assert clipping.calibration.noise_epsilon == pytest.approx(0.6)
    candidates = [2.0**i - 1.0 for i in range(1, 6)]

    def release(x):
        records = Records.of(x)
        all_counted = search.sides(records) if two_sided else search.count(records)
        tables = [
            [UnboundedQuantileLaw(search, [counted]).log_prob(c) for c in candidates]
            for counted in all_counted
        ]
        losses = {}
        for i, c in enumerate(candidates):
            for j, d in enumerate(candidates) if two_sided else [(i, c)]:
                clip = clipping.clip([c, d] if two_sided else [c])
                scale = clipping.calibration.sum_scale(clip.first, clip.last, True)
                total, *_ = records.sums(clip.scale, clip.first, clip.last)
                log_prob = tables[0][i] + tables[1][j] if two_sided else tables[0][i]
                losses[c, d] = log_prob, Fraction(total) / scale
        return losses

    worst = 0.0
    for x in combinations_with_replacement(SIDES, 2):
        for other in [x[1:]] if neighbors == "add-remove" else [(y, *x[1:]) for y in SIDES]:
            one, two = release(x), release(other)
            for key, (log_prob, center) in one.items():
                loss = abs(log_prob - two[key][0]) + float(abs(center - two[key][1]))
                worst = max(worst, loss)
    assert 0.8 * epsilon < worst <= epsilon + 1e-9


# --- Laws


def test_sum_law_is_a_moved_discrete_laplace(implementation):
    x = np.array([1, 4, 9])
    options = dict(epsilon=2.0, q=None, lower=0, upper=5, resolution=1)
    rng = np.random.default_rng(5)
    size = 1_500 if implementation is dpq.reference else 8_000
    drawn = Counter(implementation.sum(x, rng=rng, **options) for _ in range(size))
    law = {float(k): float(noise.discrete_laplace_log_prob(k - 10, 2.5)) for k in range(-200, 221)}
    assert_draws_follow(drawn.elements(), law)


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_mean_noise_is_as_derived(neighbors):
    rng = np.random.default_rng(6)
    n, draws, epsilon = 4_000, 3_000, 0.5
    x = np.random.default_rng(7).uniform(0.0, 1.0, size=n) ** 2
    # with counts no number of rows is known, nor is there a pilot
    options = dict(epsilon=epsilon, q=None, lower=0, upper=1, neighbors=neighbors)
    options["counts"] = np.ones(n, dtype=np.int64)
    errors = np.array([dpq.mean(x, rng=rng, **options) for _ in range(draws)]) - x.mean()
    p = x.mean()
    # Laplace noise of scale s has variance 2 s^2; see privacy.mean_scales
    if neighbors == "swap":
        variance = 2.0 / epsilon**2 + 2.0 * (2.0 / epsilon) ** 2 * (p - 0.5) ** 2
    else:
        variance = 2.0 / epsilon**2 * ((1.0 - p) ** 2 + p**2)
    variance /= n * n
    assert abs(errors.mean()) < SIGMAS * math.sqrt(variance / draws)
    # the fourth moment of Laplace noise is 6 times the squared variance
    assert abs(errors.var() / variance - 1.0) < SIGMAS * math.sqrt(5.0 / draws)


def test_mean_with_a_pilot_is_that_of_the_reference():
    x = np.array([0.5, 9.0, 8.5, NAN, 9.5])
    form = dict(bounds=(0, 10), resolution=0.5, epsilon=2_000.0)
    for seed in range(20):
        for rest in ({}, dict(confidence=0.9), dict(confidence=0.9, covers="population")):
            mine, other = (of.mean(x, rng=seed, **form, **rest) for of in (dpq, dpq.reference))
            if not rest:
                assert mine == other
                continue
            assert (mine.value, mine.low, mine.high) == pytest.approx(
                (other.value, other.low, other.high), abs=1e-9
            )


@pytest.mark.parametrize("missing", [0, 50])
@pytest.mark.parametrize("place", [0.5, 0.1])
def test_mean_has_nearly_the_error_of_a_public_number(place, missing):
    """Laplace noise of scale width / epsilon n has a mean of that; 1.5 times it without a pilot."""
    n, epsilon, draws = 10_000, 1.0, 3_000
    x = np.append(np.full(n - missing, place), np.full(missing, NAN))
    rng = np.random.default_rng(9)
    drawn = np.array([dpq.mean(x, epsilon=epsilon, bounds=(0, 1), rng=rng) for _ in range(draws)])
    errors = np.abs(drawn - place) * (n - missing) * epsilon
    deviation = errors.std() / math.sqrt(draws)
    assert errors.mean() < 1.05 + SIGMAS * deviation


@pytest.mark.parametrize("clip", [dict(bounds=(0, 5)), dict(upper=5)])
def test_the_rows_of_groups_are_private(monkeypatch, clip):
    """One that is replaced may be in another group: no number of rows cuts those of records."""
    seen = []
    original = Clipping.mean
    monkeypatch.setattr(Clipping, "mean", lambda *known: seen.append(known[-1]) or original(*known))
    x, by = np.array([1.0, 2.0, NAN, 4.0]), [0, 0, 1, 1]
    options = dict(groups=[0, 1], epsilon=1.0, public_by=True, rng=1, **clip)
    table = dpq.Table.of({"x": x, "by": by})
    for column, keys in ((x, by), (table["x"], table["by"])):
        dpq.mean_by(column, keys, **options)
        assert seen and not any(seen)
    seen.clear()
    dpq.mean(x, counts=[1, 1, 1, 1], epsilon=1.0, **clip)
    dpq.mean(x, neighbors="add-remove", epsilon=1.0, **clip)
    assert seen[0] is None
    for column in (x, table["x"], dpq.Sample.of(x, (0, 5))):
        seen.clear()
        dpq.mean(column, epsilon=1.0, **clip)
        assert seen == [4]


def test_clips_between_ends_are_found_in_any_unit():
    """Records that are far below 1 have a clip of their size, not the first candidate."""
    x = np.random.default_rng(10).uniform(0.0, 1.0, 5_000)
    for unit in (1.0, 2.0**-10, 2.0**-20):
        totals = [
            dpq.sum(x * unit, epsilon=1.0, upper=10 * unit, rng=seed) / unit for seed in range(200)
        ]
        assert np.abs(np.array(totals) - x.sum()).mean() < 5.0


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_count_is_unbiased(neighbors):
    rng = np.random.default_rng(8)
    x = [NAN, 1.0, 2.0]
    drawn = np.array(
        [dpq.count(x, epsilon=0.5, neighbors=neighbors, rng=rng) for _ in range(4_000)]
    )
    assert abs(drawn.mean() - 2.0) < SIGMAS * math.sqrt(8.0 / 4_000)
    assert drawn.min() < 0


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("empty", [[], [NAN], np.array([], dtype=np.int64)])
def test_empty_columns_have_an_answer(implementation, neighbors, empty):
    for seed in range(20):
        options = dict(epsilon=1.0, q=None, lower=10, upper=30, neighbors=neighbors, rng=seed)
        assert 10.0 <= implementation.mean(empty, **options) <= 30.0
        assert math.isfinite(implementation.sum(empty, **options))
        private = dict(epsilon=1.0, neighbors=neighbors, rng=seed)
        assert math.isfinite(implementation.mean(empty, beta=1.2, **private))
    assert math.isfinite(implementation.mean(empty, **private))


def test_tiny_epsilon_is_answered():
    for neighbors in ("swap", "add-remove"):
        options = dict(epsilon=1e-300, q=None, lower=0, upper=1, neighbors=neighbors)
        assert 0.0 <= dpq.mean([0.5], **options) <= 1.0
        assert isinstance(dpq.sum([0.5], **options), float)


# --- Guarantees and budgets


def test_sum_guarantee_adds_up_rho():
    clip = guarantee("unbounded_quantile", q=1.0, epsilon=0.36, split=7 / 9)
    assert guarantee("sum", epsilon=1.0).rho == pytest.approx(clip.rho + discrete_rho(0.64, 1024))
    bounded = guarantee("mean", epsilon=1.0, method="ind_exp", share=0.2, lower=0.0, upper=1.0)
    assert bounded.rho == pytest.approx(pure_rho(0.2) + discrete_rho(0.8, 1024))
    bounded = guarantee("mean", epsilon=1.0, method="joint_exp", share=0.2, lower=0.0, upper=1.0)
    assert bounded.rho == pytest.approx(range_rho(0.2) + discrete_rho(0.8, 1024))
    two_sided = guarantee("sum", epsilon=1.0, lower=None)
    assert two_sided.rho == pytest.approx(pure_rho(0.36) + discrete_rho(0.64, 1024))
    mirrored = guarantee("sum", epsilon=1.0, lower=None, upper=0.0, neighbors="add-remove")
    assert mirrored.rho == pytest.approx(guarantee("sum", epsilon=1.0, neighbors="add-remove").rho)
    public = guarantee("sum", epsilon=1.0, q=None, lower=0.0, upper=1.0)
    assert (public.epsilon, public.rho) == (1.0, pytest.approx(discrete_rho(1.0, 1024)))


@pytest.mark.parametrize("name", ["count", "sum", "mean"])
def test_accountant_is_charged_before_the_data_is_touched(implementation, name):
    release = getattr(implementation, name)
    accountant = Accountant(1.5)
    release([1.0, 2.0], epsilon=1.0, accountant=accountant, rng=1)
    assert accountant.spent.epsilon == 1.0
    with pytest.raises(privacy.BudgetExceeded):
        release(["not a number"], epsilon=1.0, accountant=accountant)
    with pytest.raises(ValueError, match="epsilon must be positive"):
        release(["not a number"], epsilon=0.0, accountant=accountant)


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize(
    ("options", "rho"),
    [
        # as an epsilon of 0.36 for all that finds two ends
        ({"lower": None}, pure_rho(0.36) + discrete_rho(0.64, 1024)),
        ({"lower": None, "upper": 9.0}, None),
        (
            {"lower": 0.0, "upper": 9.0, "method": "joint_exp"},
            range_rho(0.36) + discrete_rho(0.64, 1024),
        ),
        (
            {"lower": -3.0, "upper": 9.0, "method": "ind_exp"},
            pure_rho(0.36) + discrete_rho(0.64, 1024),
        ),
        ({"lower": -3.0, "upper": 9.0, "q": None}, discrete_rho(1.0, 1024)),
        ({"lower": -3.0, "upper": 9.0, "q": None, "resolution": 1.0}, discrete_rho(1.0, 12)),
        ({"lower": -3.0, "resolution": 1.0}, None),
        ({"share": 0.2, "neighbors": "add-remove"}, None),
        ({"split": 0.3, "max_contributions": 2}, None),
    ],
    ids=str,
)
def test_accountant_is_charged_what_the_clip_costs(implementation, name, options, rho):
    neighbors = options.get("neighbors", "swap")
    accountant = Accountant(10.0, 1e-6, neighbors=neighbors, composition="zcdp")
    getattr(implementation, name)([1.0, 2.0], epsilon=1.0, accountant=accountant, rng=1, **options)
    (spent,) = accountant.history
    assert (spent.epsilon, spent.neighbors) == (1.0, neighbors)
    if rho is None:
        rho = guarantee(name, epsilon=1.0, **options).implied_rho
    assert spent.implied_rho == pytest.approx(rho)


def test_accountant_of_rho_takes_sums(implementation):
    accountant = Accountant(1.0, 1e-6, composition="zcdp")
    implementation.sum([1.0], epsilon=0.1, accountant=accountant, rng=1)
    (spent,) = accountant.history
    assert spent.rho < spent.epsilon**2 / 2


# --- Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"q": 1.5}, r"q must lie in \[0, 1\]"),
        ({"share": 1.0}, "share must lie strictly between 0 and 1"),
        ({"expected_n": -1}, "expected_n must be at least 0"),
        ({"method": "median"}, "method must be one of"),
        ({"q": None}, "lower and upper must be given for q=None"),
        ({"method": "joint_exp"}, "lower and upper must be given for method='joint_exp'"),
        ({"method": "ind_exp", "lower": 2, "upper": 1}, "bounds must be finite with low < high"),
        ({"lower": 2.0, "upper": 1.0}, "lower must be below upper"),
        ({"lower": math.inf}, "lower must be finite or None"),
        ({"resolution": 0.0}, "resolution must be positive"),
        ({"resolution": -1.0}, "resolution must be finite and not negative"),
        ({"epsilon": -1.0}, "epsilon must be positive and finite"),
        ({"neighbors": "other"}, "neighbors must be one of"),
        ({"nan_policy": "other"}, "nan_policy must be one of"),
        ({"max_contributions": 0}, "max_contributions must be at least 1"),
        ({"beta": 1.0}, "beta must be finite and greater than 1"),
        ({"counts": [1, 2]}, "counts must have one entry for each value of x"),
    ],
)
def test_sum_and_mean_reject_bad_values(implementation, options, message):
    for release in (implementation.sum, implementation.mean):
        with pytest.raises(ValueError, match=message):
            release([1.0], **{"epsilon": 1.0, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"q": [0.5, 0.9]}, "q must be a real number"),
        ({"q": "highest"}, "q must be a real number"),
        ({"expected_n": 10.5}, "expected_n must be an integer"),
        ({"q": None, "lower": 0, "upper": 1, "beta": 2.0}, "beta must be left out for q=None"),
        # a delta would be spent beyond what the guarantee states
        (
            {"method": "ind_exp", "lower": 0, "upper": 1, "delta": 0.1},
            "'?delta'?",
        ),
        (
            {"method": "ind_exp", "lower": 0, "upper": 1, "kernel": "scan"},
            "kernel must be left out for method='ind_exp'",
        ),
        (
            {"method": "joint_exp", "lower": 0, "upper": 1, "beta": 2.0},
            "beta must be left out for method='joint_exp'",
        ),
        ({"resolution": "1"}, "resolution must be a real number"),
    ],
)
def test_sum_and_mean_reject_bad_types(implementation, options, message):
    for release in (implementation.sum, implementation.mean):
        with pytest.raises(TypeError, match=message):
            release([1.0], **{"epsilon": 1.0, **options})


def test_forms_are_rejected(implementation):
    for name in ("count", "sum", "mean"):
        release = getattr(implementation, name)
        with pytest.raises(ValueError, match="x must not contain NaN"):
            release([NAN], epsilon=1.0, nan_policy="raise")
        with pytest.raises(ValueError, match="x must be one-dimensional"):
            release(np.zeros((2, 2)), epsilon=1.0)
        with pytest.raises(TypeError, match="x must hold real numbers"):
            release(np.array([1j]), epsilon=1.0)
    with pytest.raises(ValueError, match="neighbors must be one of"):
        implementation.count([1.0], epsilon=1.0, neighbors="other")


# --- Real columns


# Mean errors of the sums of 1,000 records in [Dur23] Table 1, at epsilon 1 for each step.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "name", "dtype", "published"),
    [
        ("goodreads_books.csv", "average_rating", np.float64, 4.78),
        ("goodreads_books.csv", "num_pages", np.int64, 4385.23),
        ("adult.csv", "age", np.int64, 103.05),
        ("adult.csv", "hours_per_week", np.int64, 180.48),
    ],
)
def test_real_columns_are_summed_as_well_as_published(real_columns, file, name, dtype, published):
    with (real_columns / file).open() as rows:
        place = rows.readline().strip().split(",").index(name)
        column = np.loadtxt(rows, delimiter=",", usecols=place, dtype=dtype)
    rng = np.random.default_rng(9)
    errors = []
    for _ in range(100):
        x = rng.choice(column, 1_000, replace=False)
        errors += [abs(dpq.sum(x, epsilon=2.0, rng=rng) - x.sum()) for _ in range(10)]
        assert abs(dpq.mean(x, epsilon=2.0, rng=rng) - x.mean()) < 0.1 * x.mean()
    assert np.mean(errors) < 0.95 * published


# Two halves of the budget, a level and the steps of a quantile.
PLAIN = dict(q=0.99, share=0.5, split=2 / 3, beta=1.01, offset=0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "n", "epsilon", "options", "better"),
    [
        ("gamma", 1_000, 1.0, {}, 0.8),
        ("gamma", 1_000, 1.0, {"q": 0.99}, 0.9),
        ("lognormal", 30_000, 0.2, {}, 0.33),
        ("lognormal", 500, 0.1, {"expected_n": 500}, 0.8),
    ],
)
def test_defaults_of_sums_have_less_error(law, n, epsilon, options, better):
    rng = np.random.default_rng(11)
    errors = np.zeros(2)
    for _ in range(1_500):
        x = rng.gamma(4.0, 10.0, n) if law == "gamma" else rng.lognormal(3.0, 1.0, n)
        for side, chosen in enumerate((PLAIN, options)):
            errors[side] += abs(dpq.sum(x, epsilon=epsilon, rng=rng, **chosen) - x.sum())
    assert errors[1] < better * errors[0]


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("more", [{}, {"resolution": 0.5}, {"confidence": 0.9}])
def test_bounds_are_a_public_clip(implementation, name, more):
    x, release = np.random.default_rng(5).normal(3.0, 4.0, size=50), getattr(implementation, name)
    for seed in range(3):
        common = dict(epsilon=1.0, rng=seed) | more
        of_bounds = release(x, bounds=(-2, 8), **common)
        assert of_bounds == release(x, q=None, lower=-2, upper=8, **common)
        assert of_bounds == release(x.tolist(), bounds=[-2, 8], **common)


def test_bounds_of_a_clip_may_be_times():
    days = np.datetime64("2024-01-01", "D") + np.arange(300)
    lower, upper = days[0], days[200]
    common = dict(epsilon=1.0, rng=3)
    ends = dict(q=None, lower=lower, upper=upper)
    assert dpq.mean(days, bounds=(lower, upper), **common) == dpq.mean(days, **ends, **common)
    waits = days - lower
    ends = dict(q=None, lower=waits[0], upper=waits[200])
    common["resolution"] = np.timedelta64(1, "D")
    total = dpq.sum(waits, bounds=(waits[0], waits[200]), **common)
    assert total == dpq.sum(waits, **ends, **common)


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (dict(q=0.9), ValueError, "bounds must be left out where q, lower or upper is given"),
        (dict(q=None), ValueError, "bounds must be left out where q, lower or upper is given"),
        (dict(lower=1.0), ValueError, "bounds must be left out where q, lower or upper is given"),
        (dict(lower=None), ValueError, "bounds must be left out where q, lower or upper is given"),
        (dict(upper=8.0), ValueError, "bounds must be left out where q, lower or upper is given"),
        (dict(bounds=(8, 1)), ValueError, r"bounds must be finite with low < high, got \(8.0, 1"),
        (dict(bounds=5), TypeError, r"bounds must be two real numbers \(low, high\), got 5"),
        (dict(bounds=(1, 2, 3)), ValueError, "bounds must be two real numbers"),
        (dict(bounds=(1, np.inf)), ValueError, "bounds must be finite"),
        (dict(bounds=("a", 2)), TypeError, "must be a real number, got 'a'"),
        (dict(beta=1.1), TypeError, "beta must be left out for q=None"),
    ],
)
def test_bounds_of_a_clip_are_refused(implementation, name, options, error, message):
    accountant = privacy.Accountant(1.0)
    good = dict(epsilon=1.0, bounds=(0, 8), accountant=accountant)
    with pytest.raises(error, match=f"^{message}|{message}"):
        getattr(implementation, name)([1.0, 2.0], **good | options)
    assert not accountant.entries
    if "given" in message:
        promise = {key: value for key, value in (good | options).items() if key != "accountant"}
        with pytest.raises(error):
            guarantee(name, **promise)


def test_a_promise_of_bounds_is_that_of_a_public_clip():
    for name in ("sum", "mean", "sum_by", "mean_by"):
        ends = guarantee(name, epsilon=1.0, q=None, lower=0, upper=9)
        assert guarantee(name, epsilon=1.0, bounds=(0, 9)) == ends


TEXTS = ["a", None, "", "b"]
CLOCKS = [dt.time(10), None, dt.time(0), dt.time(23, 59)]
COUNTED = {
    "list": TEXTS,
    "bytes": [b"a", None, b"", b"b"],
    "times of day": CLOCKS,
    "NaN among strings": ["a", math.nan, "", "b"],
    "NumPy": np.array(["a", "", "b"]),
    "NumPy, bytes": np.array([b"a", b"", b"b"]),
    "objects": np.array(TEXTS, dtype=object),
    "pandas": pd.Series(TEXTS),
    "pandas, strings": pd.Series(TEXTS, dtype="string"),
    "pandas, categories": pd.Series(TEXTS, dtype="category"),
    "pandas, times of day": pd.Series(CLOCKS),
    "polars": pl.Series(TEXTS),
    "polars, categories": pl.Series(TEXTS, dtype=pl.Categorical),
    "polars, times of day": pl.Series(CLOCKS),
    "Arrow": pa.array(TEXTS),
    "Arrow, dictionary": pa.array(TEXTS).dictionary_encode(),
    "Arrow, times of day": pa.array(CLOCKS),
    "Arrow, bytes": pa.chunked_array([[b"a", None], [b"", b"b"]]),
}


@pytest.mark.parametrize("name", COUNTED)
def test_texts_and_times_of_day_are_counted(name):
    assert dpq.count(COUNTED[name], epsilon=1e6, rng=1) == 3
    keys = [1] * len(COUNTED[name])
    assert dpq.count_by(COUNTED[name], keys, groups=[1], epsilon=1e6, rng=1)[1] == 3
    if not name.startswith("Arrow"):  # whose items are its own
        assert dpq.reference.count(COUNTED[name], epsilon=1e6, rng=1) == 3
    for release in (dpq.median, dpq.mean):
        with pytest.raises(TypeError, match=r"^x must hold real numbers, got "):
            release(COUNTED[name], epsilon=1.0, bounds=(0, 1))
