"""Composition and budgets."""

from __future__ import annotations

import copy
import itertools
import math
import os
import pickle
import threading

import numpy as np
import pytest
from conftest import enumerated_delta, pure_rho, range_rho
from hypothesis import given, settings
from hypothesis import strategies as st

from dpq_fast import privacy
from dpq_fast.privacy import (
    Accountant,
    BudgetExceeded,
    Guarantee,
    accounting,
    charge,
    compose,
    guarantee,
)


def test_compose_basic_sums():
    total = compose([Guarantee(0.1, 1e-7)] * 10)
    assert (total.epsilon, total.delta) == (1.0, 1e-6)
    assert (total.composition, total.rho) == ("basic", None)
    two = compose([Guarantee(1.0), Guarantee(2.0)])
    assert two.rho == pytest.approx(pure_rho(1.0) + pure_rho(2.0), rel=1e-12)


def test_compose_takes_the_best_theorem():
    many = [guarantee("joint_exp", epsilon=0.1)] * 100
    basic = compose(many)
    assert basic.composition == "basic"
    assert basic.epsilon == pytest.approx(10.0, rel=1e-15)
    adaptive = compose(many, delta=1e-6)
    assert (adaptive.composition, adaptive.delta) == ("zcdp", 1e-6)
    assert adaptive.epsilon == privacy.zcdp_epsilon(adaptive.rho, 1e-6)
    assert adaptive.rho == pytest.approx(100 * range_rho(0.1), rel=1e-9)
    assert adaptive.bounded_range is None
    fixed = compose(many, delta=1e-6, adaptive=False)
    assert fixed.composition == "bounded-range"
    assert fixed.epsilon == privacy.bounded_range_epsilon(100, 0.1, 1e-6)
    assert fixed.epsilon < adaptive.epsilon < basic.epsilon
    assert fixed.bounded_range == pytest.approx(10.0)


def test_compose_prefers_basic_where_it_is_better():
    total = compose([Guarantee(0.5, rho=0.1), Guarantee(0.5, rho=0.1)], delta=1e-9)
    assert (total.epsilon, total.delta, total.composition) == (1.0, 0.0, "basic")
    assert total.rho == 0.2


def test_compose_bounded_range_needs_equal_ranges_and_the_promise():
    parts = [guarantee("joint_exp", epsilon=e) for e in [0.1] * 60 + [0.2]]
    assert compose(parts, delta=1e-6, adaptive=False).composition == "zcdp"
    assert compose(parts[:60], delta=1e-6).composition == "zcdp"
    assert compose(parts[:60], delta=0.0, adaptive=False).composition == "basic"


def test_compose_own_deltas():
    parts = [Guarantee(1.0, 1e-6), Guarantee(1.0, 2e-6)]
    assert compose(parts, delta=1e-3).delta == pytest.approx(3e-6)
    with pytest.raises(ValueError, match=r"^delta must be at least the sum .* got 1e-06$"):
        compose(parts, delta=1e-6)
    # their rho needs none of the deltas
    parts = [Guarantee(1.0, 1e-6, rho=0.01), Guarantee(1.0, 2e-6, rho=0.01)]
    assert compose(parts, delta=1e-7).composition == "zcdp"


def test_compose_rho_alone():
    parts = [Guarantee(None, rho=0.1), Guarantee(None, rho=0.2)]
    total = compose(parts)
    assert (total.epsilon, total.delta, total.composition) == (None, 0.0, "zcdp")
    assert total.rho == math.fsum([0.1, 0.2])
    converted = compose(parts, delta=1e-6)
    assert converted.epsilon == privacy.zcdp_epsilon(total.rho, 1e-6)


def test_compose_rho_alone_with_a_release_that_has_none():
    parts = [Guarantee(1.0, 4e-7), Guarantee(None, rho=0.1), Guarantee(None, rho=0.2)]
    total = compose(parts, delta=1e-6)
    share = (1e-6 - 4e-7) / 2
    expected = 1.0 + privacy.zcdp_epsilon(0.1, share) + privacy.zcdp_epsilon(0.2, share)
    assert total.epsilon == pytest.approx(expected, rel=1e-15)
    assert (total.delta, total.composition, total.rho) == (1e-6, "basic", None)
    with pytest.raises(ValueError, match=r"^delta must be positive to state an epsilon"):
        compose(parts)
    with pytest.raises(ValueError, match=r"^delta must be more than the sum of the deltas"):
        compose(parts, delta=4e-7)


def test_compose_relations():
    mixed = [Guarantee(1.0), Guarantee(1.0, neighbors="add-remove")]
    with pytest.raises(ValueError, match=r"different relations, got 'swap' and 'add-remove'$"):
        compose(mixed)
    total = compose(mixed, neighbors="swap")
    assert (total.epsilon, total.neighbors) == (3.0, "swap")
    with pytest.raises(ValueError, match=r"takes the number of records as public"):
        compose(mixed, neighbors="add-remove")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: compose([]),
            ValueError,
            "^guarantees must hold at least one guarantee, got none$",
        ),
        (
            lambda: compose([1.0]),
            TypeError,
            "^guarantees must hold Guarantee objects, .* type float$",
        ),
        (lambda: compose([Guarantee(1.0)], delta=1.0), ValueError, "^delta must lie in"),
        (
            lambda: compose([Guarantee(1.0, 0.6)] * 2),
            ValueError,
            "^the sum of the deltas must be below 1, got 1.2$",
        ),
    ],
)
def test_compose_rejects(call, error, message):
    with pytest.raises(error, match=message):
        call()


@given(
    st.lists(st.sampled_from([0.01, 0.1, 0.5, 2.0]), min_size=1, max_size=8),
    st.sampled_from([1e-12, 1e-6, 1e-2]),
    st.booleans(),
)
@settings(deadline=None)
def test_compose_is_never_worse_than_basic(epsilons, delta, adaptive):
    parts = [guarantee("joint_exp", epsilon=epsilon) for epsilon in epsilons]
    best = compose(parts, delta=delta, adaptive=adaptive)
    assert best.epsilon <= math.fsum(epsilons)
    assert best.delta <= delta


@pytest.mark.parametrize("epsilon", [0.3, 0.8])
def test_compose_non_adaptive_holds_for_enumerated_pairs(epsilon):
    total = compose([guarantee("joint_exp", epsilon=epsilon)] * 3, delta=0.01, adaptive=False)
    for ts in itertools.product(np.linspace(0, epsilon, 9), repeat=3):
        assert enumerated_delta(epsilon, ts, total.epsilon) <= total.delta


def test_compose_at_the_ends(monkeypatch):
    with pytest.raises(ValueError, match=r"^the sum of the deltas must be below 1, got 1.0$"):
        compose([Guarantee(1.0, 0.5)] * 2)
    # all of delta may be spent
    parts = [Guarantee(1.0, 1e-6), Guarantee(1.0, 2e-6)]
    assert compose(parts, delta=3e-6).epsilon == 2.0
    one = guarantee("joint_exp", epsilon=0.1)
    assert compose([one], delta=1e-6, adaptive=False).bounded_range == 0.1
    monkeypatch.setattr(accounting, "MAX_COMPOSED", 60)
    monkeypatch.setattr(accounting, "COMPOSABLE", (0.1, 0.1))
    assert compose([one] * 60, delta=1e-6, adaptive=False).composition == "bounded-range"
    assert compose([one] * 61, delta=1e-6, adaptive=False).composition == "zcdp"


def test_compose_leaves_out_the_theorem_that_does_not_apply():
    """Where ranges are too many, or too near the ends, for optimal composition."""
    tiny = [Guarantee(1e-300, bounded_range=1e-300)] * 2
    many = [Guarantee(1e-3, bounded_range=1e-3)] * (2**15 + 1)
    for parts in (tiny, many):
        assert compose(parts, delta=1e-6, adaptive=False).composition in ("basic", "zcdp")


def test_accountant_of_a_delta_just_below_one():
    """Within the tolerance the sum may be 1, which is no delta."""
    most = math.nextafter(1.0, 0.0)
    accountant = Accountant(10.0, most)
    for _ in range(2):
        accountant.charge(Guarantee(1.0, 0.5))
    assert (accountant.spent.epsilon, accountant.spent.delta) == (2.0, most)
    assert (accountant.remaining.epsilon, accountant.remaining.delta) == (8.0, 0.0)


def test_accountant_takes_ten_tenths_and_no_more():
    accountant = Accountant(1.0)
    for _ in range(10):
        accountant.charge(Guarantee(0.1))
    assert accountant.spent == Guarantee(1.0, composition="basic")
    assert accountant.remaining == Guarantee(0.0)
    assert accountant.history == (Guarantee(0.1),) * 10
    with pytest.raises(BudgetExceeded, match="fit the budget") as refused:
        accountant.charge(Guarantee(0.001))
    assert str(refused.value) == (
        "a release must fit the budget of epsilon=1.0, delta=0.0, "
        "of which epsilon=1.0, delta=0.0 is spent, got epsilon=0.001, delta=0.0"
    )
    assert len(accountant.history) == 10


@pytest.mark.parametrize("kept", ["memory", "file"])
@pytest.mark.parametrize("statement", ["epsilon", "delta", "rho"])
@pytest.mark.parametrize("parts", [1, 3])
def test_accountant_tolerance_is_relative_1e_12(kept, statement, parts, tmp_path):
    """In each statement that is added up, of one charge and of several."""
    composition = "zcdp" if statement == "rho" else "basic"
    budget = dict(epsilon=1e-3, delta=1e-6)
    made = budget | dict(composition=composition)
    for excess, fits in [(0.5e-12, True), (2e-12, False)]:
        accountant = (
            Accountant(**made)
            if kept == "memory"
            else Accountant.open(tmp_path / f"{excess}.budget", **made)
        )
        whole = budget if statement != "rho" else dict(epsilon=None, rho=accountant.remaining.rho)
        whole |= {statement: whole[statement] * (1.0 + excess)}
        request = Guarantee(**{name: value and value / parts for name, value in whole.items()})
        for _ in range(parts - 1):
            accountant.charge(request)
        if fits:
            accountant.charge(request)
        else:
            with pytest.raises(BudgetExceeded):
                accountant.charge(request)


@pytest.mark.parametrize(("excess", "fits"), [(0.5e-12, True), (2e-12, False)])
def test_compose_takes_deltas_up_to_its_tolerance(excess, fits):
    allowed = 1e-6 * (1.0 - excess)
    if fits:
        assert compose([Guarantee(1.0, 1e-6)], delta=allowed).composition == "basic"
    else:
        with pytest.raises(ValueError, match=r"^delta must be at least the sum of the deltas"):
            compose([Guarantee(1.0, 1e-6)], delta=allowed)


def test_accountant_counts_delta():
    accountant = Accountant(10.0, 1e-6)
    accountant.charge(Guarantee(1.0, 1e-6))
    with pytest.raises(BudgetExceeded):
        accountant.charge(Guarantee(1.0, 1e-12))
    accountant.charge(Guarantee(1.0))
    assert (accountant.spent.epsilon, accountant.spent.delta) == (2.0, 1e-6)


def test_accountant_zcdp_keeps_rho():
    accountant = Accountant(2.0, 1e-6, composition="zcdp")
    budget = privacy.zcdp_rho(2.0, 1e-6)
    assert accountant.spent.epsilon == 0.0
    assert accountant.remaining == Guarantee(None, rho=budget)
    release = guarantee("joint_exp", epsilon=0.1)
    count = 0
    while accountant.remaining.rho >= release.rho:
        accountant.charge(release)
        count += 1
    assert count == int(budget / release.rho)
    assert count * 0.1 > 2.0  # more than the basic sum would allow
    spent = accountant.spent
    assert spent.rho == pytest.approx(count * release.rho)
    assert spent.epsilon == privacy.zcdp_epsilon(spent.rho, 1e-6) <= 2.0
    with pytest.raises(BudgetExceeded, match=r"^a release must fit the budget of rho="):
        accountant.charge(release)
    with pytest.raises(ValueError, match=r"^a release must state rho .* delta=1e-09$"):
        accountant.charge(Guarantee(1.0, 1e-9))


def test_accountant_basic_needs_epsilon():
    with pytest.raises(ValueError, match=r"^a release must state epsilon .* got rho=0.1 alone$"):
        Accountant(1.0).charge(Guarantee(None, rho=0.1))


def test_accountant_relations():
    other = Guarantee(0.5, neighbors="add-remove")
    with pytest.raises(
        ValueError, match=r"^the guarantee must be under 'swap'.* got 'add-remove'$"
    ):
        Accountant(1.0).charge(other)
    accountant = Accountant(1.0, convert=True)
    accountant.charge(other)
    assert accountant.spent.epsilon == 1.0
    assert accountant.neighbors == accountant.history[0].neighbors == "swap"
    with pytest.raises(ValueError, match=r"takes the number of records as public"):
        Accountant(1.0, neighbors="add-remove", convert=True).charge(Guarantee(0.5))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Accountant(0.0), ValueError, "^epsilon must be positive"),
        (lambda: Accountant(1.0, -0.1), ValueError, "^delta must lie in"),
        (lambda: Accountant(1.0, neighbors="x"), ValueError, "^neighbors must be one of"),
        (
            lambda: Accountant(1.0, composition="best"),
            ValueError,
            "^composition must be one of 'basic', 'zcdp', got 'best'$",
        ),
        (
            lambda: Accountant(1.0, composition="zcdp"),
            ValueError,
            "^delta must be positive for composition 'zcdp', got 0.0$",
        ),
        (
            lambda: Accountant(1.0).charge(1.0),
            TypeError,
            "^guarantee must be a Guarantee, got float$",
        ),
        (
            lambda: charge(1.0, privacy.joint_exp.calibrate(epsilon=1.0)),
            TypeError,
            "^accountant must be an Accountant, got float$",
        ),
    ],
)
def test_accountant_rejects(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_accountant_under_eight_racing_threads_spends_exactly_its_budget():
    accountant = Accountant(10.0)
    start = threading.Barrier(8)
    taken = [0] * 8

    def race(thread):
        start.wait()
        for _ in range(50):
            try:
                accountant.charge(Guarantee(0.1))
            except BudgetExceeded:
                continue
            taken[thread] += 1

    threads = [threading.Thread(target=race, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == len(accountant.history) == 100
    assert accountant.remaining.epsilon == 0.0


class Arriving:
    """A lock that says when somebody is about to take it, of whom it may have to wait."""

    def __init__(self, lock, arrived):
        self._lock, self._arrived = lock, arrived

    def __enter__(self):
        self._arrived.set()
        self._lock.acquire()

    def __exit__(self, *exception):
        self._lock.release()


@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_accountant_lets_nobody_charge_between_the_sum_and_the_entry(composition, monkeypatch):
    """Another thread charges once the first has found that it fits: it waits, or overdraws."""
    accountant = Accountant(1.0, 1e-6, composition=composition)
    request = Guarantee(0.75, rho=0.6 * privacy.zcdp_rho(1.0, 1e-6))
    turn = threading.Event()
    refused = []

    def second():
        try:
            accountant.charge(request)
        except BudgetExceeded as error:
            refused.append(error)
        finally:
            turn.set()

    fitting, threads = Accountant._fitting, [threading.Thread(target=second)]

    def found(self, *arguments):
        totals = fitting(self, *arguments)
        if not threads[0].ident:
            monkeypatch.setattr(accountant, "_lock", Arriving(accountant._lock, turn))
            threads[0].start()
            turn.wait()  # it has to wait for the lock, or has charged
        return totals

    monkeypatch.setattr(Accountant, "_fitting", found)
    accountant.charge(request)
    threads[0].join()
    assert len(refused) == 1
    assert len(accountant.entries) == 1
    assert accountant.spent == accountant._spent(accountant._with(accountant._nothing(), request))


COPIED = [copy.copy, copy.deepcopy, pickle.dumps, lambda one: copy.deepcopy({"budget": [one]})]


@pytest.mark.parametrize("copied", COPIED)
def test_accountant_is_not_copied(copied):
    """A copy would have the whole budget a second time."""
    accountant = Accountant(1.0)
    with pytest.raises(
        TypeError,
        match=r"^an accountant must not be copied or pickled, since each copy would have the whole "
        r"budget \(Accountant.open keeps one that processes share\), got Accountant$",
    ):
        copied(accountant)
    accountant.charge(Guarantee(1.0))
    with pytest.raises(BudgetExceeded):
        accountant.charge(Guarantee(1e-3))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork on this platform")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_accountant_is_not_charged_by_a_forked_child():
    """Even if another thread held its lock in the moment of the fork."""
    accountant = Accountant(1.0)
    accountant.charge(Guarantee(0.5))
    with accountant._lock:
        child = os.fork()
        if child == 0:
            try:
                accountant.charge(Guarantee(0.5))
            except RuntimeError as error:
                told = "an accountant must be charged by the process that made it, since each copy"
                os._exit(0 if str(error).startswith(told) else 1)
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    accountant.charge(Guarantee(0.5))


def test_charge_without_an_accountant_does_nothing():
    charge(None, privacy.joint_exp.calibrate(epsilon=1e9))


def test_charge_charges_the_guarantee():
    accountant = Accountant(1.0)
    charge(accountant, privacy.joint_exp.calibrate(epsilon=0.25))
    assert accountant.remaining.epsilon == 0.75


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: compose([Guarantee(1.0)], adaptive="no"), TypeError, "adaptive must be True or"),
        (lambda: Accountant(1.0, convert="no"), TypeError, "convert must be True or False"),
    ],
)
def test_composition_rejects(call, error, message):
    with pytest.raises(error, match=f"^{message}"):
        call()


def test_sums_beyond_float64_are_refused_or_left_out():
    most = Guarantee(1e308, rho=1e308)
    with pytest.raises(ValueError, match="the sum of the epsilons must be finite, got inf"):
        compose([most, most])
    assert compose([most, Guarantee(1.0, 1e-9, rho=1e308)]).rho is None
