"""Variances and standard deviations: exact moments, privacy by enumeration, errors, intervals."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
from dpq_fast import privacy, reference
from dpq_fast.data.persons import WEIGHT
from dpq_fast.data.records import Records
from dpq_fast.mechanisms import aggregates, spread
from dpq_fast.mechanisms.clipping import Clip, Clipping
from dpq_fast.mechanisms.spread import WIDEST, Moments, Spread
from dpq_fast.noise.discrete import discrete_laplace_log_prob

NAN = math.nan
PUBLIC = dict(method="unbounded", share=None, expected_n=None, q=None)


def clipping_of(low, high, **budget):
    return Clipping({}, **PUBLIC | dict(lower=low, upper=high, resolution=1.0) | budget)


# --- Exact moments


@given(
    st.lists(st.floats(-60.0, 60.0) | st.just(NAN), max_size=30),
    st.sampled_from([None, (-7.0, 11.0)]),
    st.booleans(),
)
def test_moments_are_exact_sums_of_squares(values, bounds, weighted):
    values = np.array(values)
    counts = np.arange(values.size) * 2**40 % (2**41 - 1) if weighted else None
    if bounds is None:
        records = Records.of(values, counts=counts)
    else:
        records = dpq.Sample.of(values, bounds, counts=counts).records
    total, number, _, squares = records.moments(4.0, -200, 180)
    kept = [
        (round(min(max(x, *(bounds or (-50.0, 45.0))[:1]), (bounds or (0, 45.0))[1]) * 4.0), times)
        for x, times in zip(
            values.tolist(), [1] * values.size if counts is None else counts.tolist(), strict=True
        )
        if x == x
    ]
    assert number == sum(times for _, times in kept)
    assert total == sum(point * times for point, times in kept)
    assert squares == sum((point + 10) ** 2 * times for point, times in kept)
    clip, moments = Clip(0.25, 4.0, -200, 180), Moments(total, number, squares)
    for twice in (-400, -3, 0, 17, 360):
        expected = sum((2 * point - twice) ** 2 * times for point, times in kept)
        assert moments.about(clip, twice) == expected
    if number:
        mean = Fraction(total, number)
        about_mean = sum((2 * point - 2 * mean) ** 2 * times for point, times in kept)
        assert moments.about_mean(clip) == math.floor(about_mean)


@given(
    st.floats(-1e300, 1e300), st.floats(0.0, 1e300), st.sampled_from([None, 1e-9, 0.1, 1.0, 7.0])
)
def test_a_clip_whose_integers_are_squared_is_no_wider(low, width, resolution):
    clip = Clip.of(low, low + width, resolution, WIDEST)
    assert 0 < clip.width <= WIDEST
    assert abs(clip.first) <= 2**31 and abs(clip.last) <= 2**31
    narrow = Clip.of(low, low + width, resolution)
    assert clip.step >= narrow.step
    if resolution is None and clip.step > narrow.step > 2.0**-1022:  # as fine as may be
        assert clip.width >= WIDEST // 8


# --- Privacy: independent noise on two integers, of which a record changes the worst pair


def loss(one, two, scales):
    return sum(abs(a - b) / s for a, b, s in zip(one, two, scales, strict=True) if s)


def moments_of(points):
    kept = [point for point in points if point is not None]
    middle = 1  # of 0 and 3
    squares = sum((point - middle) ** 2 for point in kept)
    return Moments(sum(kept), len(kept), squares)


def neighbors_of(relation, points, size=4):
    for chosen in combinations_with_replacement(points, size):
        if relation == "add-remove":
            yield chosen, chosen[1:]
        else:
            for other in points:
                yield chosen, (other, *chosen[1:])


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("relation", ["swap", "add-remove"])
@pytest.mark.parametrize("few", [True, False])
def test_center_and_squares_cost_their_parts(relation, missing, few):
    epsilon, clip = 0.7, Clip(1.0, 1.0, 0, 3)
    clipping = clipping_of(0, 3, epsilon=epsilon, neighbors=relation, max_contributions=1)
    made = Spread.of(clipping, clip, missing, 4, 10_000)
    assert sum(made.parts) <= epsilon < sum(made.parts) * (1.0 + 1e-12)
    assert 0.0 < made.parts[0] < 0.1 * epsilon or relation == "swap"
    if few:
        made = replace(made, parts=(0.0, epsilon))
    points = [0, 1, 2, 3, *([None] if missing else [])]
    worst: Counter[str] = Counter()
    for one, two in neighbors_of(relation, points, 3):
        both = moments_of(one), moments_of(two)
        if not few:
            center = replace(made, parts=(0.3, 0.4)).center()
            pairs = [[value for value, _ in center.terms(m.total, m.number)] for m in both]
            worst["center"] = max(worst["center"], loss(*pairs, center.scales))
        for twice in [None] if few else range(7):
            found = [replace(made, parts=(0.3, 0.4)).squares(m, twice) for m in both]
            for steps in {found[0][0].steps[:1], found[0][0].steps[1:] or found[0][0].steps[:1]}:
                mean = replace(found[0][0], steps=steps)
                pairs = [
                    [value for value, _ in replace(own, steps=steps).terms(total, m.number)]
                    for (own, total), m in zip(found, both, strict=True)
                ]
                share = steps[0].epsilon / 0.4
                worst["squares"] = max(worst["squares"], loss(*pairs, mean.scales) / share)
    assert worst["squares"] <= Fraction(0.4) * (1 + Fraction(1, 10**12))
    # about the mean of three records no one is as far as the clip is wide
    assert worst["squares"] >= 0.4 * (0.66 if few else 0.999)
    if not few:
        assert 0.999 * 0.3 <= worst["center"] <= Fraction(0.3)


@pytest.mark.parametrize("relation", ["swap", "add-remove"])
def test_gaussian_noise_is_within_rho(relation):
    """Squares of distances over scales add up to the part of the budget, and no more."""
    clip, rho = Clip(1.0, 1.0, 0, 3), 0.08
    clipping = clipping_of(0, 3, rho=rho, neighbors=relation, max_contributions=1)
    spent = clipping.calibration
    assert spent.gaussian and spent.guarantee.rho == rho
    made = Spread.of(clipping, clip, True, 4, 10_000)
    assert sum(part**2 for part in made.parts) / 2 <= rho
    assert sum(part**2 for part in made.parts) / 2 > rho * (1.0 - 1e-12)
    worst = 0
    for one, two in neighbors_of(relation, [0, 1, 2, 3, None]):
        for twice in range(7):
            (mean, a), (_, b) = (made.squares(moments_of(each), twice) for each in (one, two))
            pairs = [mean.terms(t, moments_of(x).number) for t, x in ((a, one), (b, two))]
            squared = sum((x - y) ** 2 / s**2 for (x, s), (y, _) in zip(*pairs, strict=True) if s)
            worst = max(worst, squared / 2)
    part = made.parts[1] ** 2 / 2
    assert 0.99 * part <= worst <= part * (1 + 1e-12)


@pytest.mark.parametrize("name", ["count", "sum", "mean", "var", "std"])
def test_a_large_rho_buys_laplace_noise(name):
    guarantee = privacy.guarantee(name, rho=9.0)
    assert guarantee.rho == 9.0 and guarantee.epsilon is None
    made = privacy.aggregates.calibrate_count(rho=9.0)
    assert not made.gaussian and made.scale < Fraction(1, 8)
    small = privacy.aggregates.calibrate_count(rho=0.5)
    assert small.gaussian and small.scale == 1


# --- Law of the release


def law_of_direct(x, epsilon, nan_policy):
    """Of a variance of few records, of a public number: one integer with discrete Laplace noise."""
    n, width = len(x), 3
    total = math.floor(sum((2 * v - 2 * Fraction(sum(x), n)) ** 2 for v in x))
    largest = 4 * width**2
    scale = Fraction(2 * largest) / Fraction(epsilon)
    centered = 2 * total - n * largest
    k = np.arange(-6_000, 6_001)
    chance = np.exp(discrete_laplace_log_prob(k, scale))
    mean = np.clip(largest / 2 + (centered + k) / (2 * n), 0.0, largest)
    value = np.minimum(mean, width**2) / 4.0
    return value, chance


@pytest.mark.parametrize("budget", [1.0, 1.1])
def test_small_variances_follow_their_law_and_refuse_a_tenth_more(budget):
    x, n_draws = [0.0, 1.0, 3.0], 12_000
    rng = np.random.Generator(np.random.PCG64(2))
    form = dict(bounds=(0, 3), resolution=1, nan_policy="raise", rng=rng)
    drawn = np.array([dpq.var(x, epsilon=8.0 * budget, **form) for _ in range(n_draws)])
    value, chance = law_of_direct([0, 1, 3], 8.0, "raise")
    edges = np.array([-1.0, 0.0, 0.4, 0.8, 1.2, 1.55, 1.8, 2.1, 2.249, 9.0])
    expected = np.array([chance[(value > a) & (value <= b)].sum() for a, b in pairwise(edges)])
    found = np.histogram(drawn, np.nextafter(edges, 9.0))[0]
    p = stats.chisquare(found, expected / expected.sum() * n_draws).pvalue
    assert (p > 1e-6) == (budget == 1.0)


CALLS = {
    "few": dict(x=[0.0, 1.0, 5.0], bounds=(0, 6), resolution=1),
    "center": dict(x=[0.0, 1.0, 5.0, 5.0], bounds=(0, 6), resolution=1, epsilon=40.0, ddof=1),
    "add-remove": dict(x=[0.0, 1.0, 5.0], bounds=(0, 6), resolution=1, neighbors="add-remove"),
    "clip": dict(x=[float(k) for k in range(40)], resolution=1),
    "rho": dict(x=[0.0, 1.0, 5.0] * 9, bounds=(0, 6), resolution=1, epsilon=None, rho=0.5),
    "pilot": dict(x=[0.0, 1.0, 2.0, 6.0], bounds=(0, 6), resolution=1, epsilon=900.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_releases_are_those_of_the_reference(name):
    options = dict(epsilon=2.0) | CALLS[name]
    x = options.pop("x")
    draws = []
    for side, seed in ((dpq, 3), (reference, 4)):
        rng = np.random.Generator(np.random.PCG64(seed))
        draws.append(
            [side.var(x, rng=rng, **options) for _ in range(200 if name == "clip" else 400)]
        )
    assert stats.ks_2samp(*draws, method="asymp").pvalue > 1e-6


@pytest.mark.parametrize("name", ["few", "center", "add-remove", "rho", "pilot"])
def test_intervals_are_those_of_the_reference(name, monkeypatch):
    """Around the same noise, which is none."""
    for module in (aggregates, reference.aggregates):
        for drawn in ("discrete_laplace", "discrete_gaussian"):
            monkeypatch.setattr(module, drawn, lambda scale, rng: 0)
    options = dict(epsilon=2.0, confidence=0.8) | CALLS[name]
    x = options.pop("x")
    one, two = (side.std(x, rng=1, **options) for side in (dpq, reference))
    assert one.low <= one.value < one.high
    for part in ("value", "low", "high"):
        assert getattr(one, part) == pytest.approx(getattr(two, part), rel=1e-9)


# --- Answers


def test_a_variance_without_noise_is_that_of_numpy(monkeypatch):
    monkeypatch.setattr(aggregates, "discrete_laplace", lambda scale, rng: 0)
    monkeypatch.setattr(spread.Found, "_beside", lambda self: Fraction(0))
    rng = np.random.default_rng(1)
    x = rng.gamma(2.0, 3.0, 2_000)
    clipped = np.clip(x, 1, 12)
    for relation, ddof in product(["swap", "add-remove"], [0, 1, 5]):
        options = dict(epsilon=1.0, bounds=(1, 12), ddof=ddof, neighbors=relation)
        assert dpq.var(x, **options) == pytest.approx(clipped.var(ddof=ddof), rel=1e-3)
        assert dpq.std(x, **options) == pytest.approx(clipped.std(ddof=ddof), rel=1e-3)
        few = dpq.var(x[:7], **options)
        assert few == pytest.approx(clipped[:7].var(ddof=ddof), rel=1e-3)


@pytest.mark.parametrize("relation", ["swap", "add-remove"])
@pytest.mark.parametrize("middle", [0.5, 0.1])
def test_error_is_that_of_the_farther_end(relation, middle):
    rng = np.random.Generator(np.random.PCG64(5))
    x = np.clip(rng.normal(middle, 0.05, 5_000), 0.0, 1.0)
    options = dict(epsilon=2.0, bounds=(0, 1), neighbors=relation, expected_n=5_000)
    found = np.array([dpq.var(x, rng=rng, **options) for _ in range(400)])
    farther = max(middle, 1.0 - middle) ** 2
    assert np.sqrt(np.mean((found - x.var()) ** 2)) < 1.25 * math.sqrt(2.0) * farther / 10_000
    assert abs(found.mean() - x.var()) < 5.0 * found.std() / 20.0


@pytest.mark.parametrize("relation", ["swap", "add-remove"])
@pytest.mark.parametrize("n", [12, 400])
def test_intervals_cover(relation, n):
    rng = np.random.Generator(np.random.PCG64(6))
    options = dict(epsilon=1.0, bounds=(0, 10), neighbors=relation, rng=rng, ddof=1)
    missed = 0
    for _ in range(150):
        x = np.clip(rng.normal(6.0, 2.0, n), 0, 10)
        found = dpq.std(x, confidence=0.8, expected_n=n, **options)
        missed += not found.low <= x.std(ddof=1) <= found.high
    assert missed <= 60  # 1e-6 for a fifth of 150 is 55
    assert dpq.std(x, confidence=0.8, expected_n=n, **options).covers == "sample"


def test_a_rho_of_many_sums_beats_its_pure_epsilon():
    """A hundred sums at a total rho of .5: as theory says, standard deviations 3.8 times less."""
    epsilon = privacy.zcdp_epsilon(0.5, 1e-6)
    pure = privacy.aggregates.calibrate(epsilon=epsilon / 100, bounds=(0, 1))
    zcdp = privacy.aggregates.calibrate(rho=0.5 / 100, bounds=(0, 1))
    laplace = math.sqrt(2.0) * float(pure.sum_scale(0, 1000, True))
    assert laplace / float(zcdp.sum_scale(0, 1000, True)) == pytest.approx(2.71, abs=0.01)


def test_persons_samples_and_groups():
    rng = np.random.default_rng(3)
    held = rng.integers(1, 9, 3_000)
    ids = np.repeat(np.arange(held.size), held)
    x = np.clip(rng.normal(5.0, 1.0, held.size)[ids] + rng.normal(0.0, 1.0, ids.size), 0, 10)
    weights = (WEIGHT // held)[ids]
    options = dict(epsilon=50.0, bounds=(0, 10), rng=1)
    true = math.sqrt(np.cov(x, aweights=weights / WEIGHT, ddof=0))
    found = dpq.std(x, privacy_unit=ids, expected_n=3_000, **options)
    assert found == pytest.approx(true, rel=0.01)
    by_parts = dict(counts=weights, max_contributions=WEIGHT, expected_n=3_000 * WEIGHT)
    assert found == dpq.std(x, **options, **by_parts)
    by = ids % 3
    groups = dpq.std_by(x, by, groups=[0, 1, 2, 7], privacy_unit=ids, **options)
    assert np.abs(groups.values[:3] - true).max() < 0.1
    own = dpq.var_by(x, by, groups=[0, 1, 2], ddof=1, confidence=0.9, **options)
    for group in range(3):
        assert own[group].value == pytest.approx(x[by == group].var(ddof=1), rel=0.02)
        assert 0.0 <= own[group].low <= own[group].value <= own[group].high
    sample = dpq.Sample.of(x, (0, 10))
    assert dpq.var(sample, **options) == pytest.approx(x.var(), rel=0.01)


@pytest.mark.parametrize("empty", [[], [NAN], [3.0]])
@pytest.mark.parametrize("relation", ["swap", "add-remove"])
def test_next_to_nothing_has_an_answer(empty, relation, implementation):
    for ddof in (0, 1):
        found = implementation.std(
            empty, epsilon=1.0, bounds=(0, 4), ddof=ddof, neighbors=relation, rng=1, confidence=0.5
        )
        assert 0.0 <= found.low <= found.value <= found.high < 1e6


def test_durations_have_a_standard_deviation_and_no_variance():
    hours = np.random.default_rng(4).integers(1, 9, 4_000).astype("m8[h]")
    options = dict(epsilon=5.0, rng=1, bounds=(np.timedelta64(0, "h"), np.timedelta64(10, "h")))
    found = dpq.std(hours, **options)
    assert abs(found / np.timedelta64(1, "s") - hours.astype(float).std() * 3600) < 200
    with pytest.raises(TypeError, match=r"must be a real number, got timedelta64$"):
        dpq.var(hours, **options)


REFUSED = [
    (dict(ddof=-1), ValueError, r"^ddof must be at least 0, got -1$"),
    (dict(ddof=0.5), TypeError, r"^ddof must be an integer, got 0\.5$"),
    (dict(confidence=0.9, covers="population"), ValueError, r"^covers must be 'sample' for a cou"),
    (dict(rho=0.5), ValueError, r"^exactly one of epsilon and rho must be given, got both$"),
    (dict(epsilon=None), ValueError, r"^exactly one of epsilon and rho must be given, got neither"),
    (dict(dof=1), TypeError, r"^(var\(\) has no argument|dof must be left out)"),
]


@pytest.mark.parametrize(("given", "error", "message"), REFUSED)
def test_bad_arguments_are_refused_before_the_charge(given, error, message):
    accountant = privacy.Accountant(9.0)
    with pytest.raises(error, match=message):
        dpq.var([1.0, 2.0], **dict(epsilon=1.0, bounds=(0, 3), accountant=accountant) | given)
    assert accountant.history == ()


def test_groups_may_be_selected():
    x, by = np.tile([1.0, 3.0], 2_000), np.repeat(["a", "b"], 2_000)
    found = dpq.std_by(x, by, groups=None, epsilon=20.0, delta=1e-6, bounds=(0, 4), rng=1)
    assert found.groups.tolist() == ["a", "b"]
    assert found.values == pytest.approx([1.0, 1.0], abs=0.05)


def test_no_rho_where_groups_are_selected():
    with pytest.raises(ValueError, match=r"^rho must be left out where groups are selected, got"):
        dpq.count_by([1.0], ["a"], groups=None, rho=0.5, delta=1e-6)
