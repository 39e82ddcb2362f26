"""A release before its charge: every public function runs what it prepares, and nothing else."""

from __future__ import annotations

import datetime as dt
import pickle
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast._prepared import Prepared
from dpq_fast.noise.rng import default_rng

RNG = np.random.default_rng(0)
X = RNG.normal(50.0, 10.0, size=500).round(1)
KEYS = RNG.integers(0, 3, size=500)
BOUNDS = dict(bounds=(0, 100))
LEVELS = dict(q=[0.2, 0.7], epsilon=1.0, **BOUNDS)
GROUPS = dict(by=KEYS, groups=[0, 1, 2], epsilon=1.0)
FRAME = pd.DataFrame({"x": X, "key": KEYS})
RELEASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "joint_exp": (dpq.joint_exp, LEVELS),
    "joint_exp, interval": (dpq.joint_exp, LEVELS | dict(confidence=0.9)),
    "ind_exp": (dpq.ind_exp, LEVELS | dict(delta=1e-6)),
    "approx_quantiles": (dpq.approx_quantiles, LEVELS),
    "approx_quantiles, unbounded": (dpq.approx_quantiles, LEVELS | dict(base="unbounded")),
    "two_stage": (dpq.two_stage, LEVELS),
    "two_stage, interval": (dpq.two_stage, LEVELS | dict(confidence=0.9)),
    "unbounded_quantile": (dpq.unbounded_quantile, dict(q=0.5, epsilon=1.0)),
    "csmooth": (dpq.csmooth, dict(q=[0.2, 0.7], rho=0.5, **BOUNDS)),
    "agg_tree": (dpq.agg_tree, LEVELS),
    "agg_tree, interval": (dpq.agg_tree, LEVELS | dict(confidence=0.9)),
    "quantile": (dpq.quantile, LEVELS),
    "quantile, rho": (dpq.quantile, dict(q=[0.2, 0.7], rho=0.5, **BOUNDS)),
    "percentile": (dpq.percentile, LEVELS | dict(q=[20, 70])),
    "median": (dpq.median, dict(epsilon=1.0, **BOUNDS)),
    "min": (dpq.min, dict(epsilon=1.0, **BOUNDS)),
    "iqr, interval": (dpq.iqr, dict(epsilon=1.0, confidence=0.9, covers="population", **BOUNDS)),
    "box": (dpq.box, dict(epsilon=1.0, **BOUNDS)),
    "box_by": (dpq.box_by, GROUPS | BOUNDS),
    "iqr_by": (dpq.iqr_by, GROUPS | BOUNDS),
    "cdf": (dpq.cdf, dict(epsilon=1.0, **BOUNDS)),
    "count": (dpq.count, dict(epsilon=1.0)),
    "sum": (dpq.sum, dict(epsilon=1.0)),
    "mean, public clip": (dpq.mean, dict(epsilon=1.0, **BOUNDS)),
    "std, public clip": (dpq.std, dict(epsilon=1.0, **BOUNDS)),
    "sum, rho": (dpq.sum, dict(rho=0.5)),
    "quantile_by": (dpq.quantile_by, GROUPS | LEVELS),
    "quantile_by, two stages": (
        dpq.quantile_by,
        GROUPS | LEVELS | dict(method="two_stage", expected_n=50),
    ),
    "quantile_by, trees": (dpq.quantile_by, GROUPS | LEVELS | dict(method="agg_tree")),
    "count_by": (dpq.count_by, GROUPS),
    "sum_by": (dpq.sum_by, GROUPS),
    "mean_by, public clip": (dpq.mean_by, GROUPS | BOUNDS),
    "var_by": (dpq.var_by, GROUPS | BOUNDS),
    "selected groups": (
        dpq.count_by,
        dict(by=KEYS, groups=None, epsilon=1.0, delta=1e-6),
    ),
    "describe": (
        lambda x, **options: dpq.describe({"x": x}, **options),
        dict(epsilon=1.0, bounds={"x": (0, 100)}),
    ),
}


def accountant(zcdp: bool) -> privacy.Accountant:
    return privacy.Accountant(100.0, 0.5, composition="zcdp" if zcdp else "basic")


@pytest.mark.parametrize("name", RELEASES)
def test_a_public_function_runs_what_it_prepares(name):
    release, options = RELEASES[name]
    zcdp = "rho" in options
    spent, again = accountant(zcdp), accountant(zcdp)
    answer = release(X, **options, accountant=spent, rng=7)
    if name == "describe":
        prepared = Prepared.of(dpq.describe, {"x": X}, **options)
    else:
        prepared = Prepared.of(release, X, **options)
    assert not again.history
    drawn = prepared.draw(default_rng(7))  # of which nothing is charged
    assert pickle.dumps(drawn) == pickle.dumps(answer)
    assert prepared.run(again, 7) is not None
    assert spent.history == again.history and len(again.history) == 1
    assert again.history[0] == prepared.guarantee


@pytest.mark.parametrize("name", RELEASES)
def test_what_is_public_is_refused_before_anything_is_prepared(name):
    release, options = RELEASES[name]
    if name == "describe":
        release = dpq.describe
    budget = "rho" if "rho" in options else "epsilon"
    column = {"x": X} if name == "describe" else X
    for bad in (options | {budget: -1.0}, options | {"neighbors": "both"}):
        with pytest.raises(ValueError, match=f"{budget}|neighbors"):
            Prepared.of(release, column, **bad)
    with pytest.raises(TypeError, match=re.escape(f"{release.__name__}() has no argument 'foo'")):
        Prepared.of(release, column, **options, foo=1)


def test_post_processing_changes_answers_and_not_what_is_spent():
    prepared = Prepared.of(dpq.median, X, epsilon=1.0, **BOUNDS)
    doubled = prepared.then(lambda value: 2.0 * value)
    assert doubled.draw(default_rng(3)) == 2.0 * prepared.draw(default_rng(3))
    assert (doubled.guarantee, doubled.mechanism) == (prepared.guarantee, "ind_exp")


def test_times_become_numbers_before_and_times_after():
    days = np.datetime64("2020-01-01") + RNG.integers(0, 300, 400)
    bounds = dt.date(2020, 1, 1), dt.date(2021, 1, 1)
    prepared = Prepared.of(dpq.median, days, epsilon=5.0, bounds=bounds)
    assert prepared.draw(default_rng(1)) == dpq.median(days, epsilon=5.0, bounds=bounds, rng=1)
    with pytest.raises(TypeError, match="sum must be of numbers or durations, got"):
        Prepared.of(dpq.sum, days, epsilon=1.0, bounds=bounds)


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("selected", [None, False, True])
def test_a_description_spends_what_its_parts_do(selected, neighbors):
    """The rho, too, which is less than that of the whole epsilon."""
    by = {} if selected is None else dict(by="key")
    by |= {False: dict(groups=[0, 1, 2]), True: dict(delta=1e-6), None: {}}[selected]
    part = dict(neighbors=neighbors)
    asked = dict(epsilon=2.0, bounds={"x": (0, 100)}, shares={"count": 1, "mean": 3}, **part)
    whole = Prepared.of(dpq.describe, FRAME, **asked, **by).guarantee
    budget, guarantees = 2.0, []
    if selected:
        budget *= 0.75
        guarantees.append(privacy.guarantee("select_keys", epsilon=0.5, delta=1e-6, **part))
    grouped = {} if selected is None else dict(by=FRAME.key, groups=[0, 1, 2])
    count, mean = (dpq.count, dpq.mean) if selected is None else (dpq.count_by, dpq.mean_by)
    for release, share, more in ((count, 0.25, {}), (mean, 0.75, BOUNDS)):
        spent = privacy.Accountant(100.0, neighbors=neighbors)
        release(FRAME.x, epsilon=share * budget, accountant=spent, rng=0, **grouped, **more, **part)
        guarantees += spent.history
    expected = privacy.compose(guarantees, delta=1e-6 if selected else 0.0)
    assert whole == expected
    if not selected:
        assert whole.rho < privacy.pure_rho(2.0)
