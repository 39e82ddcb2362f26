"""Thousands of calls with wrong arguments and strange columns: an answer, or a clear refusal."""

import hostile
import numpy as np
import pyarrow.dataset  # noqa: F401 - which a path loads
import pytest


@pytest.mark.slow
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
    *("sum", "unbounded_quantile"),
)
# Not for many calls: those, and trees of as many leaves as a budget is for, up to 2^26.
VERY_SLOW = (
    *("AggTree.tune", "audit", "metrics", "plan", "reference"),
    *("quantile, agg_tree", "quantile_by, agg_tree"),
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name.startswith(SLOW) else [])
        for name in hostile.CALLS
        if not name.startswith("reference")  # which take as long as plain loops do
    ],
)
def test_extreme_arguments_are_answered_or_refused_by_a_rule(name):
    """Budgets, bounds, resolutions and numbers of things, one at a time: before any charge."""
    call, faults = hostile.CALLS[name], {}
    for given in hostile.extreme_calls(name):
        if wrong := hostile.fault(call, hostile.extreme_call(name, given, hostile.RECORDS)):
            faults[repr(given)] = wrong
    assert faults == {}


@pytest.mark.slow
def test_extreme_arguments_together_are_answered_or_refused_by_a_rule():
    """Two or three of them at once, and columns that are extremes, too."""
    rng, faults = np.random.default_rng(4), {}
    names = [name for name in hostile.CALLS if not name.startswith(VERY_SLOW)]
    columns = hostile.extreme_columns()
    for _ in range(1_500):
        name = names[rng.integers(len(names))]
        extremes = list(hostile.extremes_of(name).items())
        chosen = rng.permutation(len(extremes))[: rng.integers(2, 4)]
        given = {}
        for argument, values in (extremes[at] for at in chosen):
            given[argument] = values[rng.integers(len(values))]
        x = columns[rng.integers(len(columns))]
        wrong = hostile.fault(hostile.CALLS[name], hostile.extreme_call(name, given, x))
        if wrong:
            faults[f"{name}: {given}, {x.size} records"] = wrong
    assert faults == {}
