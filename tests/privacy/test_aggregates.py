"""Counts, sums and means: the parts of a budget, scales and guarantees by hand."""

from __future__ import annotations

import math

import pytest
from conftest import pure_rho, range_rho

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
    assert made.rho == pytest.approx(pure_rho(0.8) + clip, rel=1e-9)
    public = guarantee(name, epsilon=1.0, q=None, share=0.2, neighbors=neighbors)
    assert public == Guarantee(1.0, neighbors=neighbors)


def test_clip_epsilons_known_values():
    # at the level 0.9, of 1/2 and 1/2: .95 for a removal, .45 for an addition

    def of(neighbors, two_sided, split=0.5, k=1):
        lower = None if two_sided else 0.0
        person = dict(neighbors=neighbors, max_contributions=k)
        # half of it is for the clip
        made = privacy.aggregates.calibrate(epsilon=2.0, q=0.9, lower=lower, split=split, **person)
        (epsilons,) = made.clip.step_epsilons
        return epsilons

    assert of("swap", False) == (0.5, 0.5)
    assert of("swap", True) == pytest.approx((0.5 / 1.4,) * 2, rel=1e-14)
    for two_sided in (False, True):
        assert of("add-remove", two_sided) == pytest.approx((0.5 / 0.95,) * 2, rel=1e-14)
    # "gumbel" has equal epsilons
    made = privacy.aggregates.calibrate(epsilon=2.0, q=0.9, lower=None, noise="gumbel")
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
