"""Counts, sums and means: the parts of a budget, scales and guarantees by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from conftest import discrete_rho, pure_rho, range_rho

from dpq_fast import privacy
from dpq_fast.privacy import (
    Guarantee,
    guarantee,
)

# Sums of epsilon 1, of which 0.2 are for the clip and 0.8 for the noise, and the clip's rho.
CLIPS = [
    (dict(method="joint_exp", lower=0.0, upper=1.0), "swap", range_rho(0.2)),
    (dict(method="ind_exp", lower=0.0, upper=1.0), "add-remove", pure_rho(0.2)),
    (dict(lower=None), "swap", pure_rho(0.2)),
    (dict(split=0.5), "swap", range_rho(1.5 * 0.2)),
    # at the level 1/4: 1/8 + 1/2 and 3/8
    (dict(split=0.5, q=0.25), "add-remove", range_rho(0.2 / 0.625)),
    (dict(split=0.5, q=0.25, lower=None, upper=0.0), "add-remove", range_rho(0.2 / 0.625)),
]


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize(("options", "neighbors", "clip"), CLIPS)
def test_guarantee_of_sums_worked_by_hand(name, options, neighbors, clip):
    made = guarantee(name, epsilon=1.0, share=0.2, neighbors=neighbors, **options)
    assert (made.epsilon, made.delta, made.bounded_range) == (1.0, 0.0, None)
    assert (made.neighbors, made.composition) == (neighbors, "basic")
    # a lattice that nobody gave has 2^10 points between the ends
    units = 1024 if neighbors == "swap" else 512
    assert made.rho == pytest.approx(discrete_rho(0.8, units) + clip, rel=1e-9)
    public = guarantee(name, epsilon=1.0, q=None, share=0.2, neighbors=neighbors)
    assert public.rho == pytest.approx(discrete_rho(1.0, units))
    assert public == Guarantee(1.0, rho=public.rho, neighbors=neighbors)


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize(
    ("options", "units"),
    [
        (dict(lower=0.0, upper=120.0, resolution=1.0), 120),
        (dict(lower=0.0, upper=120.0, resolution=1.0, neighbors="add-remove"), 60),
        (dict(lower=0.0, upper=9.5, resolution=1), 10),
        (dict(lower=0.0, upper=9.5, resolution=1, neighbors="add-remove"), 5),
        (dict(lower=0.0, upper=9.5, resolution=1, max_contributions=3), 30),
        (dict(lower=-0.25, upper=0.25, resolution=1.0), 1),
        # spacings of less than 8, and of 2^20
        (dict(lower=2.0**33 - 80.0, upper=2.0**33 - 16.0, resolution=1e-9), 8),
        (dict(lower=0.0, upper=2.0**33 - 1.0, resolution=2.0**20), 2**13),
        (dict(lower=0.0, resolution=1.0), 1),
        (dict(resolution=1.0, q=0.9), 1),
        (dict(lower=0.0, upper=120.0, resolution=1.0, q=0.9), 1),
        (dict(lower=0.0, upper=120.0), 1024),
        (dict(lower=-0.3, upper=0.3, resolution=0.1), 6),
        (dict(max_contributions=2), 2048),
    ],
    ids=str,
)
def test_rho_of_noise_knows_the_width_of_a_clip(name, options, units):
    made = privacy.aggregates.calibrate(epsilon=2.0, **{"q": None, "share": 0.25, **options})
    spent = 2.0 if made.clip is None else 1.5
    assert made.noise_rho == pytest.approx(discrete_rho(spent, units), rel=1e-9)


def test_guarantee_of_counts_worked_by_hand():
    assert guarantee("count", epsilon=1.0) == Guarantee(1.0)
    three = guarantee("count", epsilon=1.0, max_contributions=3)
    assert three.rho == pytest.approx(discrete_rho(1.0, 3))
    assert three == Guarantee(1.0, rho=three.rho)


def test_split_of_a_sum_is_as_derived():
    made = privacy.aggregates.calibrate(epsilon=10.0)
    assert made.noise_epsilon == pytest.approx(6.4)
    assert made.clip.step_epsilons == [pytest.approx((2.8, 0.8))]  # 7/9 for the threshold
    gumbel = privacy.aggregates.calibrate(epsilon=10.0, noise="gumbel")
    assert gumbel.clip.step_epsilons == [pytest.approx((1.8, 1.8))]
    few = privacy.aggregates.calibrate(epsilon=9.0, expected_n=10)  # 45 of 90
    assert few.noise_epsilon == 4.5
    assert few.clip.step_epsilons == [pytest.approx((3.5, 1.0))]
    given = privacy.aggregates.calibrate(epsilon=9.0, expected_n=10, share=0.2, split=0.4)
    assert given.noise_epsilon == pytest.approx(7.2)
    assert given.clip.step_epsilons == [pytest.approx((0.72, 1.08))]


def test_share_of_the_clip_follows_the_expected_number():
    for n, share in ((0, 0.6), (8, 0.6), (9, 5 / 9), (13, 5 / 13), (14, 0.36), (10**9, 0.36)):
        assert privacy.aggregates.share_of(9.0, n) == pytest.approx(share, rel=1e-12)
    assert privacy.aggregates.share_of(9.0) == privacy.aggregates.share_of(1e300, 10) == 0.36
    assert privacy.aggregates.share_of(5e-324, 1) == privacy.aggregates.share_of(9.0, 0, 3) == 0.6
    assert privacy.aggregates.share_of(9.0, 30, 3) == 0.5
    person = dict(epsilon=9.0, expected_n=30, max_contributions=3)
    assert privacy.aggregates.calibrate(**person).noise_epsilon == 4.5


def test_aims_known_values():
    assert privacy.aggregates.aim_of("auto", "unbounded") == (1.0, -1.0)
    for method in ("joint_exp", "ind_exp"):
        assert privacy.aggregates.aim_of("auto", method)[0] == 0.99
    for method in privacy.aggregates.METHODS:
        assert privacy.aggregates.aim_of(0.25, method) == (0.25, -0.5)
        assert privacy.aggregates.aim_of(None, method)[0] is None


@pytest.mark.parametrize("need", np.geomspace(0.1, 1.0, 9))
def test_share_of_the_clip_is_near_the_least_error_of_its_model(need):
    """1/(1 - s) + need / s, at its least and at the default."""
    share = privacy.aggregates.SHARE
    assert 1.0 / (1.0 - share) + need / share <= 1.09 * (1.0 + math.sqrt(need)) ** 2


def test_clip_epsilons_known_values():
    # at the level 0.9, of 1/2 and 1/2: .95 for a removal, .45 for an addition

    def of(neighbors, two_sided, split=0.5, k=1):
        lower = None if two_sided else 0.0
        person = dict(neighbors=neighbors, max_contributions=k)
        # half of it is for the clip
        budget = dict(epsilon=2.0, share=0.5, split=split)
        made = privacy.aggregates.calibrate(q=0.9, lower=lower, **budget, **person)
        (epsilons,) = made.clip.step_epsilons
        return epsilons

    assert of("swap", False) == (0.5, 0.5)
    assert of("swap", True) == pytest.approx((0.5 / 1.4,) * 2, rel=1e-14)
    for two_sided in (False, True):
        assert of("add-remove", two_sided) == pytest.approx((0.5 / 0.95,) * 2, rel=1e-14)
    # "gumbel" has equal epsilons
    made = privacy.aggregates.calibrate(epsilon=2.0, q=0.9, lower=None, share=0.5, noise="gumbel")
    assert made.clip.noise.name == "gumbel"
    assert made.clip.step_epsilons == [pytest.approx((0.5 / 1.4,) * 2, rel=1e-14)]
    three = of("swap", True, 0.25, 3)
    # .225 + .75 for a removal, .675 for an addition
    assert three == pytest.approx((0.25 / (3 * 1.65), 0.75 / (3 * 1.65)), rel=1e-14)


def test_scales_of_sums_and_means_known_values():
    assert privacy.aggregates.laplace_scale(0, 1.0) == 0
    assert privacy.aggregates.laplace_scale(6, 0.5) == 12
    assert privacy.aggregates.laplace_scale(6, 0.5, 3) == 36
    add_remove, swap = (
        privacy.aggregates.calibrate(
            epsilon=0.5, q=None, neighbors=neighbors, max_contributions=3
        ).mean_scales
        for neighbors in ("add-remove", "swap")
    )
    assert add_remove(10, True) == (60, 60)
    assert swap(10, True) == (120, 12)
    assert swap(10, False) == (120, 0)


def test_scales_about_another_point_known_values():
    swap = privacy.aggregates.calibrate(epsilon=0.5, q=None, max_contributions=3)
    step = privacy.aggregates.MeanStep
    assert swap.mean_scales(10, True, 5) == (120, 24)
    assert swap.mean_scales(10, True, 0, step(0.25)) == (240, 24)
    assert swap.mean_scales(10, False, 5) == (120, 0)
    # a fifth is for the number, where it has less for nothing
    blurred = step(0.5, Fraction(1, 20))
    assert swap.mean_scales(10, True, 5, blurred) == (120, 24)
    assert swap.mean_scales(10, True, 8, blurred) == (135, 30)
    assert swap.mean_scales(10, True, 10, blurred) == (150, 30)
    with pytest.raises(ValueError, match="aside must be below width"):
        swap.mean_scales(10, True, 10)


def test_pilots_are_for_many_rows_whose_number_is_private():
    swap, other = (
        privacy.aggregates.calibrate(epsilon=0.5, q=None, neighbors=name, max_contributions=2)
        for name in ("swap", "add-remove")
    )
    assert swap.mean_steps(None, True) == swap.mean_steps(3_999, True) == ((0.5, 0),)
    assert swap.mean_steps(4_000, False) == other.mean_steps(4_000, True) == ((0.5, 0),)
    pilot, rest = swap.mean_steps(4_000, True)
    assert pilot == (pytest.approx(0.02), 0)
    assert rest.blur == pytest.approx(1 / 40, abs=2**-20)
    assert Fraction(pilot.epsilon) + Fraction(rest.epsilon) <= Fraction(0.5)
    assert swap.mean_steps(32_000, True)[0].epsilon == pytest.approx(0.005)
    assert swap.mean_steps(2**53, True)[1].blur == 2**-19
    assert len(privacy.aggregates.calibrate(epsilon=1e308, q=None).mean_steps(99, True)) == 1


def test_units_of_searches_known_values():
    of = privacy.aggregates.unit_of
    assert of(0.0, None) == of(None, 1.0) == of(0.0, 1024.0) == of(-5.0, 1e300) == 1.0
    assert of(0.0, 1023.0) == 0.5
    assert of(2.0, 3.0) == 2.0**-10
    assert of(0.0, 1e-310) == 2.0**-1022
    assert of(0.0, 1.0, 0.3) == 0.25
    assert of(0.0, 1.0, 5.0) == of(0.0, 1.0, 1.0) == 1.0
    assert of(0.0, 1.0, 1e-9) == 2.0**-10
    assert of(3.0, 2.0) == of(0.0, math.nan) == 1.0  # refused later


SUM = privacy.aggregates.calibrate(epsilon=1.0, q=None)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: privacy.aggregates.laplace_scale(math.inf, 1.0),
            TypeError,
            "sensitivity must be an integer",
        ),
        (lambda: SUM.mean_scales(1e300, True), TypeError, "width must be an int"),
        (lambda: SUM.sum_scale(0, 10**400, True), ValueError, "high must be at"),
    ],
)
def test_scales_of_sums_and_means_reject(call, error, message):
    with pytest.raises(error, match=f"^{message}"):
        call()
