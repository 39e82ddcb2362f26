"""Thousands of calls with wrong arguments and strange columns: an answer, or a clear refusal."""

import hostile
import pyarrow.dataset  # noqa: F401 - which a path loads
import pytest


def test_hostile_calls():
    assert hostile.calls(1_500, seed=1).other == {}


@pytest.mark.slow
def test_hostile_calls_do_not_grow_the_process():
    hostile.calls(5_000, seed=2)  # caches of public facts fill
    before = hostile.resident()
    assert hostile.calls(30_000, seed=3).other == {}
    assert hostile.resident() - before < 5 * 2**20


# Laws are certified, trees tuned, samples released again and again.
SLOW = (
    *("AggTree", "CDF", "audit", "csmooth", "describe", "mean", "plan", "privacy", "quantile_by"),
    *("reference", "sum", "unbounded_quantile"),
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name.startswith(SLOW) else [])
        for name in hostile.CALLS
    ],
)
def test_extreme_arguments_are_answered_or_refused_by_a_rule(name):
    """Budgets, bounds, resolutions and numbers of things, one at a time: before any charge."""
    call, faults = hostile.CALLS[name], {}
    for shown, given in hostile.extreme_calls(name):
        if wrong := hostile.fault(call, given):
            faults[shown] = wrong
    assert faults == {}
