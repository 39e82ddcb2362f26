"""Unbounded quantiles: epsilons and guarantees by hand."""

from __future__ import annotations

import functools

import pytest
from conftest import range_of, range_rho
from scipy import optimize

from dpq_fast import privacy
from dpq_fast.privacy import (
    guarantee,
)

# The costs of one search per unit of epsilon1 + epsilon2, for a split of 1/2: epsilon, and the
# ranges of its calls. "up" at the level q: a removal costs q/2 + 1/2, an addition the larger of
# q/2 and (1 - q)/2; "down" is "up" at 1 - q; "both" makes two calls.
SEARCHES = [
    (0.2, "swap", dict(lower=0.0), 1.0, [1.5]),
    (0.2, "swap", dict(lower=None, upper=0.0), 1.0, [1.5]),
    (0.2, "swap", dict(lower=None), 1.5, [1.5, 1.5]),
    (0.2, "add-remove", dict(lower=0.0), 0.6, [0.6 + 0.4]),
    (0.9, "add-remove", dict(lower=0.0), 0.95, [0.95 + 0.45]),
    (0.2, "add-remove", dict(lower=None, upper=0.0), 0.9, [0.9 + 0.4]),
    (0.2, "add-remove", dict(lower=0.0, invert=True), 0.9, [0.9 + 0.4]),
    (0.2, "add-remove", dict(lower=None), 1.5, [0.6 + 0.4, 0.9 + 0.4]),
]


@pytest.mark.parametrize(("q", "neighbors", "way", "cost", "ranges"), SEARCHES)
@pytest.mark.parametrize("k", [1, 3])
def test_unbounded_quantile_spends_what_is_worked_by_hand(q, neighbors, way, cost, ranges, k):
    person = dict(neighbors=neighbors, max_contributions=k)
    one_call = len(ranges) == 1

    calibrate = functools.partial(
        privacy.unbounded_quantile.calibrate, q, split=0.5, **way, **person
    )
    (each,) = calibrate(epsilon=3.0).step_epsilons
    assert each == pytest.approx([1.5 / (k * cost)] * 2, rel=1e-14)
    pure = guarantee("unbounded_quantile", q=q, epsilon=3.0, split=0.5, **way, **person)
    assert (pure.epsilon, pure.delta, pure.neighbors) == (3.0, 0.0, neighbors)
    assert pure.rho == pytest.approx(sum(range_rho(r * 3.0 / cost) for r in ranges), rel=1e-12)

    (each,) = calibrate(rho=2.0).step_epsilons
    unit = 2.0 * k * each[0]
    assert each[0] == each[1]
    assert sum(range_rho(r * unit) for r in ranges) == pytest.approx(2.0, rel=1e-12)
    zcdp = guarantee("unbounded_quantile", q=q, rho=2.0, split=0.5, **way, **person)
    assert (zcdp.rho, zcdp.delta, zcdp.neighbors) == (2.0, 0.0, neighbors)
    assert zcdp.epsilon == pytest.approx(cost * unit, rel=1e-14)
    if one_call:
        assert pure.bounded_range == pytest.approx(ranges[0] * 3.0 / cost, rel=1e-14)
        assert zcdp.bounded_range == pytest.approx(range_of(2.0), rel=1e-12)
    else:
        assert pure.bounded_range is zcdp.bounded_range is None
    assert pure.composition == zcdp.composition == ""


@pytest.mark.parametrize("split", [0.25, 2.0 / 3.0])
def test_unbounded_quantile_epsilons_are_split(split):
    (found,) = privacy.unbounded_quantile.calibrate(0.5, epsilon=1.0, split=split).step_epsilons
    assert found == pytest.approx((split, 1.0 - split), rel=1e-15)
    (found,) = privacy.unbounded_quantile.calibrate(0.5, epsilon=1.0).step_epsilons
    assert found == (pytest.approx(2.0 / 3.0), pytest.approx(1.0 / 3.0))


def test_unbounded_quantile_of_two_levels_from_both_sides():
    """Two levels of half of it each, which add up."""
    ranges = [(1.0, 1.3), (1.4, 1.0)]  # at 0.2 and 0.8, and at 0.9 and 0.1
    way = dict(q=[0.2, 0.9], lower=None, split=0.5, neighbors="add-remove")
    pure = guarantee("unbounded_quantile", epsilon=3.0, **way)
    # 1.5 / 1.5 for each level
    expected = sum(range_rho(one) + range_rho(other) for one, other in ranges)
    assert pure.rho == pytest.approx(expected, rel=1e-12)
    assert (pure.epsilon, pure.bounded_range, pure.composition) == (3.0, None, "basic")
    zcdp = guarantee("unbounded_quantile", rho=2.0, **way)
    units = [
        optimize.brentq(lambda x, r=r: range_rho(x * r[0]) + range_rho(x * r[1]) - 1.0, 0.1, 9.0)
        for r in ranges
    ]
    assert zcdp.epsilon == pytest.approx(1.5 * sum(units), rel=1e-10)
    assert (zcdp.rho, zcdp.bounded_range, zcdp.composition) == (2.0, None, "zcdp")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: privacy.unbounded_quantile.calibrate(0.5, epsilon=1.0, invert=""),
            TypeError,
            "invert must be True or False, got ''",
        ),
    ],
)
def test_unbounded_quantile_rejects(call, error, message):
    with pytest.raises(error, match=f"^{message}"):
        call()


def test_both_ways_cost_less_than_two_calls() -> None:
    for neighbors in ("swap", "add-remove"):
        for split in (0.3, 0.5, 0.7):
            form = dict(epsilon=1.0, lower=None, split=split, neighbors=neighbors)
            calibration = privacy.unbounded_quantile.calibrate(0.4, **form)
            ((first, second),) = calibration.step_epsilons
            assert first + 2.0 * second == pytest.approx(1.0)
            assert first / (first + second) == pytest.approx(split)


def test_add_remove_budget_is_lemma_b_1() -> None:
    for q in (0.0, 0.3, 0.5, 0.99, 1.0):
        for split in (0.2, 0.5, 0.8):
            form = dict(epsilon=1.0, split=split, neighbors="add-remove")
            (up,) = privacy.unbounded_quantile.calibrate(q, **form).step_epsilons
            assert max((1 - q) * up[0], q * up[0] + up[1]) == pytest.approx(1.0)
            form |= dict(lower=None, upper=0.0)
            (down,) = privacy.unbounded_quantile.calibrate(q, **form).step_epsilons
            assert max(q * down[0], (1 - q) * down[0] + down[1]) == pytest.approx(1.0)
