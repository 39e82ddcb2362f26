"""Keep-probabilities: the published rule, its closed form, and what they cost exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpq_fast import privacy
from dpq_fast.privacy import key_selection
from dpq_fast.privacy.key_selection import LEAVING, calibrate, keep_probability
from dpq_fast.reference.key_selection import BITS, keep_probabilities

BOTH = ["swap", "add-remove"]
BUDGETS = [(1.0, 1e-6), (0.1, 0.3), (5.0, 1e-9), (0.01, 0.5), (0.3, 1e-12)]


def published(epsilon: float, delta: float, most: int) -> list[float]:
    """The recurrence of [DVGM22], for one record per person, in floats."""
    p = [0.0]
    for _ in range(most):
        up = math.exp(epsilon) * p[-1] + delta
        down = 1.0 - math.exp(-epsilon) * (1.0 - p[-1] - delta)
        p.append(min(up, down, 1.0))
    return p


def test_keep_probability_known_values():
    # e^epsilon = 3/2: three times the first term, then 1 - 2/3 (13/32 - 4/32)
    found = keep_probability(range(5), epsilon=math.log(1.5), delta=0.125, neighbors="add-remove")
    np.testing.assert_allclose(found, [0.0, 4 / 32, 10 / 32, 19 / 32, 13 / 16], rtol=1e-14)
    # "swap": e^alpha = 8, e^beta = 4, and nothing for what enters
    epsilon = 5.0 * math.log(2.0)
    found = keep_probability([1, 2, 3, 4], epsilon=epsilon, delta=1 / 64)
    np.testing.assert_allclose(
        found, [1 / 64, 9 / 64, 1 - 55 / 64 / 4, 1 - 55 / 64 / 16], rtol=1e-14
    )
    assert LEAVING == Fraction(3, 5)
    # two records per person: 1 + e^alpha = 3 of the delta of one
    twice = keep_probability(
        [1, 2], epsilon=2 * math.log(2.0), delta=0.03, neighbors="add-remove", max_contributions=2
    )
    np.testing.assert_allclose(twice, [0.01, 0.03], rtol=1e-14)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_one_record_per_person_is_the_optimum_of_the_paper(epsilon, delta):
    """What it says of 1 ... 50 records, and of more."""
    found = keep_probability(range(400), epsilon=epsilon, delta=delta, neighbors="add-remove")
    np.testing.assert_allclose(found, published(epsilon, delta, 399), rtol=1e-12)


@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_closed_form_is_the_recurrence(epsilon, delta, neighbors, k):
    """To 2^-252, against the reference, which makes one step after the other."""
    calibration = calibrate(epsilon=epsilon, delta=delta, neighbors=neighbors, max_contributions=k)
    most = 2 * calibration.change + 40
    steps = keep_probabilities(calibration, min(most, 130))
    for n, step in enumerate(steps):
        low, high = calibration.bounds(n, 256)
        assert 0 <= low <= high <= min(low + 2, 2**256)
        assert low - 16 <= step >> (BITS - 256) <= high + 16
        short_low, short_high = calibration.bounds(n, 64)
        assert short_low << 192 <= high and low <= short_high << 192
        assert calibration.probability(n) == pytest.approx(step / (1 << BITS), rel=1e-15, abs=0)


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_bounds_of_few_digits_hold_those_of_many(epsilon, delta, neighbors):
    """All that is computed is rounded outwards, however much is lost."""
    calibration = calibrate(epsilon=epsilon, delta=delta, neighbors=neighbors, max_contributions=3)
    few, many = (key_selection._curve(calibration, digits) for digits in (5, 60))
    change = calibration.change
    for n in {1, 2, 3, 7, change, change + 1, change + 9}:
        rough, fine = (curve.after(change, n) for curve in (few, many))
        assert rough.low <= fine.low <= fine.high <= rough.high
        assert rough.low < rough.high or rough.low in (0, 1)


def hockey_stick(p: list[float], q: list[float], epsilon: float) -> float:
    """Of independent coins, by all that they may show."""
    total = 0.0
    for shown in product([0, 1], repeat=len(p)):
        one, other = (
            math.prod(x if heads else 1.0 - x for x, heads in zip(coins, shown, strict=True))
            for coins in (p, q)
        )
        total += max(one - math.exp(epsilon) * other, 0.0)
    return total


def spread(k: int, keys: int) -> list[tuple[int, ...]]:
    """All ways to have up to k records in some keys."""
    return [c for c in product(range(k + 1), repeat=keys) if sum(c) <= k]


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (0.5, 0.1), (3.0, 1e-4)])
def test_delta_is_what_is_promised_and_no_less(epsilon, delta, neighbors, k):
    """All ways in which a person of k records can change three keys of a few records."""
    most = 2 if k > 1 else 4
    p = keep_probability(
        range(most + k + 1),
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
        max_contributions=k,
    ).tolist()
    worst = 0.0
    gone = spread(k, 2)
    for rest in product(range(most + 1), repeat=2):
        for leaving in gone:
            for entering in gone if neighbors == "swap" else [(0, 0)]:
                one = [p[n + c] for n, c in zip(rest, leaving, strict=True)]
                other = [p[n + c] for n, c in zip(rest, entering, strict=True)]
                # a third key, which takes what enters where two are left
                for third in range(most + 1) if k == 1 else [0]:
                    into = k if neighbors == "swap" and sum(entering) == 0 else 0
                    first = [*one, p[third]], [*other, p[third + into]]
                    for a, b in (first, first[::-1]):
                        worst = max(worst, hockey_stick(a, b, epsilon))
    assert worst == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("k", [1, 4, 10])
def test_whole_persons_have_the_optimum(k):
    """At multiples of k, but for the step where the terms change; never more."""
    epsilon, delta = 1.0, 1e-5
    options = dict(epsilon=epsilon, delta=delta, neighbors="add-remove")
    best = keep_probability(range(26), **options)
    found = keep_probability(range(0, 26 * k, k), max_contributions=k, **options)
    before = calibrate(max_contributions=k, **options).change // k
    np.testing.assert_allclose(found[: before + 1], best[: before + 1], rtol=1e-13)
    assert (found <= best * (1.0 + 1e-13)).all()
    assert (found >= 0.93 * best).all()


@pytest.mark.parametrize("delta", [1e-5, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_shares_of_swap_need_fewer_records_than_halves(epsilon, delta):
    halves = published(epsilon / 2.0, delta / 2.0, 800)
    ours = keep_probability(range(801), epsilon=epsilon, delta=delta)
    needed = {
        level: [int(np.searchsorted(p, level)) for p in (halves, ours)]
        for level in (0.5, 0.99, 0.999)
    }
    assert needed[0.5][1] <= 0.83 * needed[0.5][0]
    assert needed[0.99][1] <= 0.95 * needed[0.99][0]
    assert needed[0.999][1] <= needed[0.999][0]


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize(
    ("epsilon", "delta", "k", "n"),
    [
        (5e-324, 5e-324, 1, 2**53),
        (1e308, 5e-324, 1, 5),
        (1e308, 5e-324, 9, 5),
        (1.7e308, 0.999, 7, 2**53),
        (1e-300, 0.5, 2**53, 2**53),
        (1e308, 5e-324, 2**53, 2**52),
        (5e-324, 1.0 - 2.0**-53, 3, 3),
    ],
)
def test_extreme_budgets_have_a_law(epsilon, delta, k, n, neighbors):
    calibration = calibrate(epsilon=epsilon, delta=delta, neighbors=neighbors, max_contributions=k)
    low, high = calibration.bounds(n, 64)
    assert 0 <= low <= high <= min(low + 2, 2**64)
    assert low - 1 <= calibration.probability(n) * 2.0**64 <= high + 1
    assert calibration.bounds(0, 64)[0] == 0
    assert calibration.probability(0) == 0.0


def test_guarantee_is_the_budget():
    for neighbors in BOTH:
        found = privacy.guarantee(
            "select_keys", epsilon=1.5, delta=1e-7, neighbors=neighbors, max_contributions=3
        )
        assert (found.epsilon, found.delta, found.neighbors) == (1.5, 1e-7, neighbors)
        assert found.rho is None and found.bounded_range is None
    both = privacy.compose(
        [found, privacy.guarantee("count", epsilon=0.5, neighbors=neighbors)], delta=1e-7
    )
    assert (both.epsilon, both.delta) == (2.0, 1e-7)


def test_calibration_gives_both_sides_their_budget():
    swap = calibrate(epsilon=1.0, delta=1e-6, max_contributions=4)
    assert 4 * (swap.alpha + swap.beta) == 1
    assert (swap.delta, swap.tau) == (1e-6, 0.0)
    one = calibrate(epsilon=1.0, delta=1e-6, max_contributions=4, neighbors="add-remove")
    assert 4 * one.alpha == 4 * one.beta == 1
    assert (one.delta, one.tau) == (1e-6, 1e-6)


def test_keep_probability_has_the_shape_of_its_argument():
    options = dict(epsilon=1.0, delta=1e-3)
    one = keep_probability(7, **options)
    assert isinstance(one, float) and 0.0 < one < 1.0
    assert keep_probability([[7, 0], [1, 7]], **options).tolist() == [[one, 0.0], [0.001, one]]
    assert keep_probability(np.empty((0, 2), dtype=int), **options).shape == (0, 2)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (dict(records=-1), ValueError, r"^records must lie in \[0, 2\^53\]$"),
        (dict(records=[3, 2**60]), ValueError, r"^records must lie in \[0, 2\^53\]$"),
        (dict(records=1.5), TypeError, "^records must be integers, got dtype float64$"),
        (dict(records=True), TypeError, "^records must be integers, got dtype bool$"),
        (dict(delta=0.0), ValueError, "^delta must be positive: without it no key is ever kept"),
        (dict(delta=1.0), ValueError, r"^delta must lie in \[0, 1\), got 1.0$"),
        (dict(epsilon=0.0), ValueError, "^epsilon must be positive and finite, got 0.0$"),
        (dict(neighbors="x"), ValueError, "^neighbors must be one of"),
        (dict(max_contributions=0), ValueError, "^max_contributions must be at least 1, got 0$"),
    ],
)
def test_keep_probability_rejects(given, error, message):
    with pytest.raises(error, match=message):
        keep_probability(**dict(records=3, epsilon=1.0, delta=1e-6) | given)
