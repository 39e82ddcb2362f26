"""Tails of discrete Laplace noise against sums over all that two draws can be."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpq_fast.laws.noise_tails import TERMS_SCALE, margin, pair_tail, tail

SCALES = [Fraction(1, 5), Fraction(1), Fraction(7, 2), Fraction(12)]


def probabilities(scale: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """Integers that the noise is, and the probability of each: of 1 - 1e-20 in all."""
    reach = math.ceil(46 * scale) + 1
    k = np.arange(-reach, reach + 1)
    if scale == 0:
        return k, (k == 0).astype(float)
    r = math.exp(-1.0 / float(scale))
    return k, (1.0 - r) / (1.0 + r) * r ** np.abs(k).astype(float)


def exact(
    weights: tuple[float, float], scales: tuple[Fraction, Fraction], distance: float
) -> float:
    """P(abs(w X + v Y) >= distance), sums within rounding of the distance included."""
    (x, p), (y, q) = map(probabilities, scales)
    sums = np.abs(np.add.outer(weights[0] * x, weights[1] * y))
    return float(np.outer(p, q)[sums >= distance * (1.0 - 1e-12)].sum())


@pytest.mark.parametrize("scale", [Fraction(0), *SCALES])
def test_tail_and_margin_are_those_of_the_law(scale):
    k, p = probabilities(scale)
    for distance in (-1.0, 0.0, 0.5, 1.0, 1.5, 7.0, 30.0):
        expected = p[np.abs(k) >= distance].sum()
        assert tail(scale, distance) == pytest.approx(expected, rel=1e-12, abs=1e-19)
    for miss in (1e-12, 0.01, 0.05, 0.5, 0.999):
        beside = margin(scale, miss)
        assert p[np.abs(k) > beside].sum() <= miss * (1.0 + 1e-12)
        assert beside == 0 or p[np.abs(k) > beside - 1].sum() > miss


def test_margin_where_the_tail_is_just_the_miss():
    scale = Fraction(3)
    for k in range(40):
        assert margin(scale, tail(scale, k + 1)) == k


def test_tail_and_margin_of_noise_that_float64_can_not_hold():
    for scale in (Fraction(2**45), Fraction(10**30), Fraction(10**320)):
        for miss in (1e-12, 0.05, 0.5):
            beside = margin(scale, miss)
            assert tail(scale, beside + 1) <= miss
            assert beside <= Fraction(-math.log(miss) * (1.0 + 1e-9)) * scale
        assert tail(scale, 10**20) == pytest.approx(math.exp(-float(10**20 / scale)), rel=1e-9)
    assert tail(Fraction(1, 10**305), 10**10) == 0.0
    assert margin(Fraction(1, 10**305), 1e-9) == 0
    wide = Fraction(10**320), Fraction(10**320)
    assert pair_tail((1.0, 3.0), wide, 1e200) == 1.0


WEIGHTS = [(1.0, 0.0), (0.0, 1.0), (0.3, 0.7), (0.5, 0.5), (1.0, 0.01), (1.0, 6.0)]


@pytest.mark.parametrize("second", [Fraction(0), *SCALES])
@pytest.mark.parametrize("first", SCALES)
def test_pair_tail_is_above_the_law_by_less_than_half_a_step(first, second):
    for weights in WEIGHTS:
        spread = weights[0] * float(first) + weights[1] * float(second)
        for distance in spread * np.array([0.1, 0.5, 1.0, 2.5, 6.0]):
            found = pair_tail(weights, (first, second), float(distance))
            assert found >= exact(weights, (first, second), distance) * (1.0 - 1e-6)
            nearer = distance - weights[0] * (second > 0)  # spread over half a step to either side
            assert found <= exact(weights, (first, second), nearer) * (1.0 + 1e-6) + 1e-12


def test_pair_tail_of_far_distances_and_of_none():
    scales = Fraction(2), Fraction(2)
    assert pair_tail((1.0, 1.0), scales, 0.0) == pair_tail((1.0, 1.0), scales, -3.0) == 1.0
    assert 0.0 < pair_tail((1.0, 1.0), scales, 1e4) < 1e-16
    assert pair_tail((0.0, 0.0), scales, 1.0) == 0.0


def test_pair_tail_by_continuous_noise_is_above_and_near():
    """Behind `TERMS_SCALE` the sums are too many: scales just below are summed, as a check."""
    for weights in [(1.0, 1.0), (0.5, 0.5), (0.999, 1.0), (0.2, 0.8), (1.0, 0.001)]:
        few = Fraction(TERMS_SCALE), Fraction(TERMS_SCALE)
        many = few[0], few[1] + Fraction(1, 1_000)
        for share in (0.0, 0.01, 1.0, 4.0, 9.0, 20.0):
            distance = share * TERMS_SCALE * max(weights)
            summed, bound = (pair_tail(weights, scales, distance) for scales in (few, many))
            assert summed <= bound * (1.0 + 1e-9)
            assert bound <= summed * 1.01  # some of 1/4096, and what even scales are rounded by


def test_pair_tail_counts_what_is_as_far_whatever_is_rounded():
    """Of p = 0.1, 0.2, ..., sums of both draws come out a last digit above or below."""
    scales = Fraction(1, 3), Fraction(1, 3)
    for tenths in range(11):
        p = tenths / 10.0
        for x in range(-3, 4):
            for y in range(-3, 4):
                distance = abs((1.0 - p) * (70 + x) - p * y - (1.0 - p) * 70)
                exactly = abs((10 - tenths) * x - tenths * y) / 10.0
                found = pair_tail((1.0 - p, p), scales, distance)
                assert found >= exact((1.0 - p, p), scales, exactly) * (1.0 - 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("swapped", [True, False])
@pytest.mark.parametrize(
    "scales",
    [
        (Fraction(1, 2), Fraction(1, 2)),
        (Fraction(2), Fraction(2)),
        (Fraction(20), Fraction(2)),
        (Fraction(2_000), Fraction(2)),
    ],
)
def test_what_is_ruled_out_lies_beyond_what_is_not(scales, swapped):
    """The noise of a mean has one mode in the mean: so its interval is found by halving."""
    if not swapped and scales[0] != scales[1]:
        pytest.skip("both have the same noise")
    width = float(scales[0] / scales[1])
    p = np.linspace(0.0, 1.0, 101)
    for number in (-3, -1, 0, 1, 2, 5, 20, 100):
        for share in (-2.0, -0.7, 0.0, 0.3, 0.9, 1.7):
            if swapped:
                total = round(share * width * abs(number) or share * float(scales[0]))
                u = (2.0 * p - 1.0) * width
                at = 0.5 + total / (2.0 * width * number) if number else 0.5
                found = [
                    pair_tail((1.0, abs(each)), scales, abs(total - each * number))
                    for each in u.tolist()
                ]
            else:
                total = round(5.0 * share * float(scales[0]))
                at = total / (total + number) if total + number else 0.5
                found = [
                    pair_tail((1.0 - each, each), scales, abs((1.0 - each) * total - each * number))
                    for each in p.tolist()
                ]
            chances = np.array(found)
            for side in (chances[p >= min(at, 1.0)], chances[p <= max(at, 0.0)][::-1]):
                # once it has fallen, it stays below that, or below the end, which is looked at
                largest_behind = np.maximum.accumulate(side[::-1])[::-1]
                assert (largest_behind <= np.maximum(side, side[-1]) + 1e-9).all()
