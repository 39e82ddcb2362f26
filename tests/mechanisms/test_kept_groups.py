"""Groups that nobody listed: a selection of keys, and then releases of what is kept."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpq_fast as dpq
from dpq_fast import privacy, reference
from dpq_fast.privacy import Accountant, guarantee

FUNCTIONS = {
    "quantile_by": dict(q=0.5, bounds=(0, 9)),
    "count_by": {},
    "sum_by": dict(q=None, lower=0, upper=4),
    "mean_by": dict(q=None, lower=0, upper=4),
}
BUDGET = dict(epsilon=4.0, delta=1e-4)


def call(side, name: str, x, by, **options):
    options = FUNCTIONS[name] | dict(groups=None) | BUDGET | options
    if name == "quantile_by":
        return side.quantile_by(x, by, options.pop("q"), **options)
    return getattr(side, name)(x, by, **options)


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_keys_are_kept_with_the_share_of_the_selection(name, neighbors, implementation):
    """Keys of one record, hardly ever; of many, always; between them as the rule says."""
    number, runs = 14 if neighbors == "swap" else 8, 200 if implementation is dpq else 40
    by = ["rare"] + ["some"] * number + ["all"] * 90
    form = dict(neighbors=neighbors, selection_share=0.3)
    kept = [
        set(call(implementation, name, np.ones(len(by)), by, rng=seed, **form))
        for seed in range(runs)
    ]
    budget = dict(epsilon=0.3 * 4.0, delta=1e-4, neighbors=neighbors)
    expected = privacy.key_selection.keep_probability(number, **budget)
    assert 0.05 < expected < 0.95
    some = sum("some" in each for each in kept)
    assert stats.binomtest(some, runs, float(expected)).pvalue > 1e-6
    assert all("all" in each for each in kept) and sum("rare" in each for each in kept) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("neighbors", "scale"), [("swap", 2.0), ("add-remove", 1.0)])
def test_kept_groups_have_the_rest_of_the_budget(neighbors, scale, implementation):
    """A fourth of epsilon is for the selection, and the noise is that of what is left."""
    groups = 2_000 if implementation is dpq else 300
    by = np.repeat(np.arange(groups), 60)
    out = call(implementation, "count_by", by, by, neighbors=neighbors, rng=1)
    assert len(out) == groups and list(out) == list(range(groups))
    noise = dpq.noise.discrete_laplace(scale / 3.0, size=20_000, rng=2)
    beyond = [np.abs(each).mean() for each in (out.values - 60, noise)]
    spread = np.abs(noise).std() / np.sqrt(groups)
    assert abs(beyond[0] - beyond[1]) < 6.0 * spread


@pytest.mark.parametrize("name", FUNCTIONS)
def test_answers_are_those_of_the_kept_groups(name, implementation):
    x, towns = np.repeat([1.0, 3.0], 200), np.repeat(["a", "b"], 200)
    days = np.tile(np.array(["2020-01-01", "2020-01-02"], "M8[D]"), 200)
    out = call(implementation, name, x, towns, epsilon=400.0, rng=1)
    answers = dict(count_by=(200, 200), sum_by=(200.0, 600.0)).get(name, (1.0, 3.0))
    assert list(out) == ["a", "b"] and out.values == pytest.approx(list(answers), abs=2.0)
    pairs = call(implementation, name, x, pd.DataFrame(dict(t=towns, d=days)), rng=1)
    assert list(pairs) == [(t, date(2020, 1, d)) for t in "ab" for d in (1, 2)]
    assert pairs.names == ("t", "d")
    columns = call(implementation, name, x, [towns, days], rng=1)
    assert np.array_equal(columns.values, pairs.values)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_record_is_a_reason_to_fail(name, implementation):
    """Keys of many kinds, in a column that does not say; and none that is kept."""
    keys = [-7, 2**63 + 5, "a", date(2020, 1, 1), 2**70, None, 1.5, "b"]
    for by in ([key for key in keys for _ in range(60)], [-7, 2**63 + 5] * 60):
        out = call(implementation, name, np.ones(len(by)), by, rng=1)
        assert set(out) == {key for key in by if key not in (2**70, None, 1.5)}
    for by in (["a", "b"], [[1, 2], ["a", "b"]], pd.DataFrame(dict(a=[1, 2], b=["a", "b"]))):
        out = call(implementation, name, [1.0, 2.0], by, rng=1)
        assert len(out) == 0 and out.values.shape == (0,)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_call_is_charged_once_for_both(name, implementation):
    ledger = Accountant(4.0, 1e-4)
    call(implementation, name, [1.0], [1], accountant=ledger, rng=1)
    public = {
        key: FUNCTIONS[name][key] for key in ("q", "lower", "upper") if key in FUNCTIONS[name]
    }
    promise = guarantee(name, selection_share=0.25, **public, **BUDGET)
    assert ledger.history == (promise,)
    assert (promise.epsilon, promise.delta, promise.composition) == (4.0, 1e-4, "basic")
    with pytest.raises(ValueError, match=r"^a release must fit the budget"):
        call(implementation, name, [1.0], [1], accountant=ledger, rng=1)
    for change, message in (
        (dict(delta=0.0), r"^delta must be positive: without it no key is ever kept"),
        (dict(selection_share=1.0), r"^selection_share must lie strictly between 0 and 1"),
        (dict(groups=[1], delta=0.0, selection_share=0.5), r"^selection_share must be left out"),
        (dict(by=np.ones((2, 2), int)), r"^by must be one-dimensional"),
    ):
        with pytest.raises(ValueError, match=message):
            call(implementation, name, **dict(x=[1.0], by=[1], rng=1) | change)
    if name != "quantile_by":
        with pytest.raises(ValueError, match=r"^delta must be 0 where groups are given, got"):
            call(implementation, name, [1.0], [1], groups=[1])


def test_quantile_by_of_kept_groups_takes_one_pair_of_bounds(implementation):
    for bounds in ({"a": (0, 1)}, [(0, 1)]):
        with pytest.raises(ValueError, match=r"^bounds must be one pair, or none, where no groups"):
            call(implementation, "quantile_by", [1.0], ["a"], bounds=bounds)
    by, slow = ["a"] * 90, implementation is reference
    for method in ("approx_quantiles", "unbounded_quantile", "agg_tree")[: 3 - slow]:
        out = call(implementation, "quantile_by", np.ones(90), by, method=method, rng=1)
        assert list(out) == ["a"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parts_of_the_budget_are_no_more_than_all_of_it(name):
    for epsilon in (1e-3, 0.7, 3.0):
        form = dict(epsilon=epsilon, delta=1e-6, selection_share=0.3, max_contributions=3)
        module = privacy.quantile_by if name == "quantile_by" else privacy.aggregates_by
        made = module.calibrate if name != "count_by" else module.calibrate_count
        spent = made(**form)
        parts = (spent.selection.guarantee, spent.release.guarantee)
        whole = privacy.compose(parts, adaptive=True)
        assert whole.epsilon <= epsilon and whole.epsilon == pytest.approx(epsilon)
        assert whole.delta == 1e-6 == spent.guarantee.delta


def test_reference_keeps_the_same_keys():
    by = np.random.default_rng(0).integers(0, 40, 500).astype(str)
    for seed in range(5):
        kept = [list(call(side, "count_by", by.astype(float), by, rng=seed)) for side in
                (dpq, reference)]  # fmt: skip
        assert kept[0] == kept[1]
