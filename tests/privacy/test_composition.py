"""Composition and conversion against computations that share no formula with the library.

Each check is run on the library as it is, and on mutants of it that are broken by a factor of 1.15,
which it has to catch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from mpmath import mp

from dpq_fast import privacy
from dpq_fast.privacy import Guarantee, compose, guarantee

FACTOR = 1.15


def two_outcomes(width: float, shift: float) -> list[tuple[float, float]]:
    """The probabilities of two outcomes on two data sets, whose log ratios are `shift` and
    `shift - width`: the extreme pairs of laws of that range."""
    first = -math.expm1(shift - width) / (math.exp(shift) - math.exp(shift - width))
    pairs = [(first * math.exp(shift), first)]
    return [*pairs, ((1.0 - first) * math.exp(shift - width), 1.0 - first)]


def hockey_stick(laws: list[list[tuple[float, float]]], epsilon: float) -> float:
    """The least delta of independent releases with such laws, outcome by outcome."""
    total = []
    for outcome in product(*laws):
        p, r = (math.prod(side) for side in zip(*outcome, strict=True))
        total.append(max(p - math.exp(epsilon) * r, 0.0))
    return math.fsum(total)


def alike(m: int, width: float, shift: float, epsilon: float) -> float:
    """`hockey_stick` of m releases with one law, outcomes counted."""
    (p, r), (other_p, other_r) = two_outcomes(width, shift)
    terms = (
        math.comb(m, i)
        * max(p**i * other_p ** (m - i) - math.exp(epsilon) * r**i * other_r ** (m - i), 0.0)
        for i in range(m + 1)
    )
    return math.fsum(terms)


def worst_delta(m: int, width: float, epsilon: float) -> float:
    """The largest delta over all shifts, by a search: 2^10 of them, and again near the best."""
    low, high = 0.0, width
    for _ in range(4):
        shifts = np.linspace(low, high, 1_025)[1:-1]
        found = [alike(m, width, shift, epsilon) for shift in shifts.tolist()]
        best = int(np.argmax(found))
        low, high = shifts[max(best - 1, 0)], shifts[min(best + 1, shifts.size - 1)]
    return found[best]


# Checks


BUDGETS = [(1, 0.5, 1e-3), (2, 1.0, 1e-2), (5, 1.0, 1e-6), (12, 2.0, 1e-4), (30, 0.7, 1e-6)]


def check_epsilon_each() -> None:
    """The range of each of m mechanisms spends the whole budget, and no more."""
    for m, epsilon, delta in BUDGETS:
        each = privacy.bounded_range_epsilon_each(m, epsilon, delta)
        assert delta * (1.0 - 1e-6) <= worst_delta(m, each, epsilon) <= delta * (1.0 + 1e-9)


def check_rates_of_ind_exp() -> None:
    """So do the rates that `ind_exp` draws with: twice the rate is the range under "swap"."""
    for m, epsilon, delta in BUDGETS[1:]:
        q = np.arange(1, m + 1) / (m + 1)
        rates = privacy.ind_exp.calibrate(q, epsilon=epsilon, delta=delta).rates
        (each,) = set((2.0 * rates).tolist())
        assert worst_delta(m, each, epsilon) <= delta * (1.0 + 1e-9)


def check_composed() -> None:
    """What `compose` says of releases fixed in advance is true, and tight for equal ranges."""
    for m, epsilon, delta in BUDGETS[1:]:
        total = compose([guarantee("joint_exp", epsilon=epsilon)] * m, delta=delta, adaptive=False)
        assert total.composition == "bounded-range"
        found = worst_delta(m, epsilon, total.epsilon)
        assert delta * (1.0 - 1e-6) <= found <= total.delta * (1.0 + 1e-9)


def check_unequal_shifts() -> None:
    """Mechanisms of one range whose laws differ have no larger delta."""
    for m, width, delta in ((2, 1.0, 1e-2), (3, 2.0, 1e-3)):
        epsilon = privacy.bounded_range_epsilon(m, width, delta)
        shifts = np.linspace(0.0, width, 33)[1:-1].tolist()
        laws = [two_outcomes(width, shift) for shift in shifts]
        worst = max(
            hockey_stick(list(chosen), epsilon) for chosen in combinations_with_replacement(laws, m)
        )
        assert 0.9 * delta <= worst <= delta * (1.0 + 1e-9)


def check_basic() -> None:
    """Two randomized responses show the sum of their epsilons."""
    parts = [Guarantee(0.5), Guarantee(0.75)]
    laws = [two_outcomes(2.0 * part.epsilon, part.epsilon) for part in parts]
    total = compose(parts).epsilon
    assert hockey_stick(laws, total) <= 1e-15
    assert hockey_stick(laws, total * (1.0 - 1e-6)) > 0.0


def check_optimal() -> None:
    """What `compose` says of unequal epsilons and deltas is true of the worst of releases, those
    that are randomized response or give all away, and the least that is."""
    for epsilons, deltas, delta in (
        ((0.5, 0.3, 1.1), (0.0, 1e-7, 1e-4), 1e-2),
        ((0.123, 0.0456, 0.789, 0.31, 0.99, 0.2, 0.2, 0.05), (0.0,) * 7 + (1e-6,), 1e-2),
        ((1.0,) * 9, (1e-9,) * 9, 1e-2),
    ):
        total = compose(
            [Guarantee(*pair) for pair in zip(epsilons, deltas, strict=True)], delta=delta
        )
        assert (total.composition, total.delta) == ("optimal", delta)
        laws = [two_outcomes(2.0 * epsilon, epsilon) for epsilon in epsilons]
        safe = math.prod(1.0 - own for own in deltas)
        found = 1.0 - safe * (1.0 - hockey_stick(laws, total.epsilon))
        assert delta * (1.0 - 1e-3) <= found <= delta


def renyi(laws: list[tuple[float, float]], alpha: float) -> float:
    return math.log(math.fsum(p**alpha * r ** (1.0 - alpha) for p, r in laws)) / (alpha - 1.0)


def check_rho_of_a_range() -> None:
    """The largest Renyi divergence over its order, of the extreme pairs of a range."""
    for width in (0.25, 0.5):
        found = max(
            renyi(two_outcomes(width, shift), alpha) / alpha
            for shift in np.linspace(0.0, width, 201)[1:-1].tolist()
            for alpha in (1.0001, 1.01, 1.5, 2.0, 10.0)
        )
        rho = Guarantee(width, bounded_range=width).implied_rho
        assert 0.98 * rho <= found <= rho * (1.0 + 1e-9)


def check_rho_of_epsilon() -> None:
    for epsilon in (0.1, 0.2):
        found = max(
            renyi(two_outcomes(2.0 * epsilon, epsilon), alpha) / alpha for alpha in (1.001, 2.0)
        )
        assert 0.98 * Guarantee(epsilon).implied_rho <= found <= Guarantee(epsilon).implied_rho


def normal_delta(rho: float, epsilon: float) -> float:
    """Delta of a normal release of `rho`, by integration of its privacy loss, N(rho, 2 rho)."""
    with mp.workdps(30):
        spread = mp.sqrt(2 * mp.mpf(rho))
        integral = mp.quad(
            lambda loss: mp.npdf(loss, rho, spread) * -mp.expm1(epsilon - loss),
            [epsilon, epsilon + spread, epsilon + 4 * spread, epsilon + 40 * spread],
        )
        return float(integral)


RHOS = [(0.01, 1e-6), (0.1, 1e-3), (0.5, 1e-5), (2.0, 1e-9)]


def check_zcdp_epsilon() -> None:
    """True of normal noise, and the least that the Renyi bound over a grid of orders gives."""
    for rho, delta in RHOS:
        epsilon = privacy.zcdp_epsilon(rho, delta)
        assert normal_delta(rho, epsilon) <= delta
        # E[(1 - e^(epsilon - L))+] <= c e^((alpha - 1) (D_alpha - epsilon)), with the least c of
        # (1 - 1/y)+ <= c y^(alpha - 1) over y, where D_alpha is rho alpha
        orders = 1.0 + np.geomspace(1e-3, 1e4, 20_001)
        y = orders / (orders - 1.0)
        log_c = np.log(1.0 - 1.0 / y) - (orders - 1.0) * np.log(y)
        bounds = orders * rho + (log_c - math.log(delta)) / (orders - 1.0)
        assert float(bounds.min()) * (1.0 - 1e-6) <= epsilon <= float(bounds.min()) * (1.0 + 1e-9)


def check_zcdp_rho() -> None:
    for rho, delta in RHOS:
        epsilon = privacy.zcdp_epsilon(rho, delta)
        assert privacy.zcdp_rho(epsilon, delta) == pytest.approx(rho, rel=1e-6)


def check_composed_zcdp() -> None:
    """Normal releases compose to one, whose rho is the sum."""
    rhos = [0.01, 0.05, 0.1]
    total = compose([Guarantee(None, rho=rho) for rho in rhos], delta=1e-6)
    assert total.rho == pytest.approx(0.16, rel=1e-12)
    assert normal_delta(0.16, total.epsilon) <= total.delta
    assert total.epsilon <= 0.16 + 2.0 * math.sqrt(0.16 * math.log(1e6))


def check_normal_noise() -> None:
    """The noise of k queries spends the whole delta."""
    for k, epsilon, delta in ((1, 0.5, 1e-6), (9, 1.0, 1e-4), (3, 4.0, 1e-9)):
        sigma = privacy.gaussian_sigma(float(k), epsilon, delta)
        found = normal_delta(k / (2.0 * sigma**2), epsilon)
        assert delta * (1.0 - 1e-6) <= found <= delta * (1.0 + 1e-12)


CHECKS: dict[str, Callable[[], None]] = {
    name.removeprefix("check_"): check
    for name, check in list(globals().items())
    if name.startswith("check_")
}


@pytest.mark.parametrize("name", CHECKS)
def test_composition_matches_an_independent_computation(name):
    CHECKS[name]()


# Mutants


def scaled(function: Callable[..., Any], factor: float) -> Callable[..., Any]:
    return lambda *arguments, **options: factor * function(*arguments, **options)


# Where functions of composition are used.
USERS = (privacy, privacy.ind_exp, privacy.accounting)

# The checks that have to catch it, the function that is broken, and the factor of its answer.
MUTANTS: dict[str, tuple[tuple[str, ...], str, float]] = {
    "optimal composition × 1.15": (
        ("epsilon_each", "rates_of_ind_exp"),
        "bounded_range_epsilon_each",
        FACTOR,
    ),
    "optimal composition ÷ 1.15": (("epsilon_each",), "bounded_range_epsilon_each", 1.0 / FACTOR),
    "total of optimal composition ÷ 1.15": (
        ("composed", "unequal_shifts"),
        "bounded_range_epsilon",
        1.0 / FACTOR,
    ),
    "optimal composition of unequal ones ÷ 1.15": (("optimal",), "optimal_epsilon", 1.0 / FACTOR),
    "epsilon of rho ÷ 1.15": (("zcdp_epsilon",), "zcdp_epsilon", 1.0 / FACTOR),
    "rho of epsilon × 1.15": (("zcdp_rho",), "zcdp_rho", FACTOR),
    "normal noise ÷ 1.15": (("normal_noise",), "gaussian_sigma", 1.0 / FACTOR),
    "rates of ind_exp × 1.15": (("rates_of_ind_exp",), "sensitivities", 1.0 / FACTOR),
}


def caught() -> Iterator[tuple[str, str]]:
    for mutant, (checks, _, _) in MUTANTS.items():
        for check in checks:
            yield mutant, check


@pytest.mark.parametrize(("mutant", "check"), list(caught()))
def test_broken_composition_is_caught(mutant, check, monkeypatch):
    _, name, factor = MUTANTS[mutant]
    users = [user for user in USERS if hasattr(user, name)]
    for user in users:
        monkeypatch.setattr(user, name, scaled(getattr(user, name), factor))
    assert users
    privacy.ind_exp._rates.cache_clear()
    try:
        with pytest.raises(AssertionError):
            CHECKS[check]()
    finally:
        privacy.ind_exp._rates.cache_clear()


@pytest.mark.parametrize("check", ["rho_of_a_range", "rho_of_epsilon"])
def test_broken_implied_rho_is_caught(check, monkeypatch):
    honest = Guarantee.implied_rho
    monkeypatch.setattr(Guarantee, "implied_rho", property(lambda self: honest.fget(self) / FACTOR))
    with pytest.raises(AssertionError):
        CHECKS[check]()
