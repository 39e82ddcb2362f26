"""What a plan is: a table."""

from __future__ import annotations

import dataclasses
import re
import sys

import numpy as np
import pytest
from predicted import NORMAL

import dpq_fast as dpq
from dpq_fast._prepared import Prepared
from dpq_fast.mechanisms.quantile import choose_method
from dpq_fast.planning.plans import MOST_PRINTED
from dpq_fast.planning.requests import EPSILONS


def test_default_plan():
    plan = dpq.plan([0.25, 0.5, 0.75], n=1_000, bounds=(0, 120))
    assert plan.epsilon.tolist() == list(EPSILONS)
    assert len(plan) == 9
    assert plan.chosen.all() and plan.best.all()
    assert plan.values is None and plan.group is None and plan.needed is None
    assert (plan.ranks.expected <= plan.ranks.quantile).all()
    assert (plan.ranks.quantile <= plan.ranks.worst).all()
    assert plan.ranks.expected[-1] < 0.1 * plan.ranks.expected[0]
    for epsilon, method in zip(plan.epsilon, plan.method, strict=True):
        asked = dict(epsilon=epsilon, bounds=(0, 120), expected_n=1_000)
        assert method == choose_method(None, [0.25, 0.5, 0.75], **asked)
    np.testing.assert_allclose(plan.shares.worst, plan.ranks.worst / 1_000)


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("n", [300, 3_000, 30_000])
def test_plan_takes_what_a_release_of_so_many_records_takes(neighbors, n):
    # a number that nobody told is no number that is known: a pilot for too many finds nothing
    options = dict(epsilon=0.3, bounds=(0.0, 120.0), neighbors=neighbors)
    plan = dpq.plan([0.1, 0.4, 0.9], n=n, guess=NORMAL, releases=100, **options)
    prepared = Prepared.of(dpq.quantile, np.zeros(n), [0.1, 0.4, 0.9], **options)
    assert plan.method.tolist() == [prepared.name]


def test_plans_are_the_same_at_every_call():
    options = dict(n=1_000, bounds=(0, 120), guess=NORMAL, method="all", epsilon=0.5, releases=100)
    first, second = (dpq.plan([0.25, 0.5], **options) for _ in range(2))
    assert str(first) == str(second)
    np.testing.assert_array_equal(first.values.worst, second.values.worst)


def test_plans_take_nothing_from_generators():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    secure = dpq.noise.rng.default_rng()
    state = repr(secure.bit_generator.state)
    dpq.plan([0.25, 0.5], n=100, bounds=(0, 120), method="all", epsilon=1.0, releases=100)
    dpq.plan_sum(n=100, guess=NORMAL, epsilon=1.0, releases=100)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    assert repr(secure.bit_generator.state) == state


@pytest.mark.slow
def test_all_methods_are_compared():
    plan = dpq.plan(0.5, n=1_000, bounds=(0, 120), method="all", epsilon=[0.3, 1.0], releases=200)
    names = ["joint_exp", "approx_quantiles", "agg_tree", "two_stage", "ind_exp"]
    assert plan.method.tolist() == names * 2
    assert plan.chosen.tolist() == [False, False, False, False, True] * 2
    for row in (slice(0, 5), slice(5, 10)):
        quantiles = plan.ranks.quantile[row]
        assert (plan.best[row] == (quantiles == quantiles.min())).all()
    assert "ind_exp*" in str(plan)
    dithered = dpq.plan(
        [0.5], n=1_000, bounds=(0, 120), method="all", epsilon=1.0, dither=True, releases=100
    )
    assert dithered.method.tolist() == ["joint_exp", "approx_quantiles"]


def test_level_is_that_of_the_quantiles():
    low, high = (
        dpq.plan(0.5, n=1_000, bounds=(0, 120), epsilon=0.1, level=level) for level in (0.5, 0.99)
    )
    assert low.ranks.expected[0] == high.ranks.expected[0]
    assert low.ranks.quantile[0] < high.ranks.quantile[0] / 3.0
    assert "0.99: in this share of releases" in str(high)


def test_plan_prints_a_table():
    text = str(dpq.plan([0.25, 0.75], n=10_000, bounds=(0, 120), guess=NORMAL))
    assert text == repr(dpq.plan([0.25, 0.75], n=10_000, bounds=(0, 120), guess=NORMAL))
    assert "2 levels, n = 10,000, neighbors swap" in text
    assert "bounds [0, 120], guess: norm(45, 15)" in text
    lines = text.splitlines()
    assert lines[4].split() == ["epsilon", "method", *["mean", "0.95", "worst"] * 2]
    assert [line.split()[0] for line in lines[6:15]] == [
        *("0.01", "0.03", "0.1", "0.2", "0.5", "1", "2", "5", "10"),
    ]
    assert max(map(len, lines)) <= 80


def test_long_tables_are_cut():
    plan = dpq.plan(
        0.5, groups=range(10, 110), bounds=(0, 1), guess=[0.5, 0.6], epsilon=1.0, releases=100
    )
    text = str(plan)
    assert "... 40 more rows" in text
    assert text.count("ind_exp") == MOST_PRINTED
    assert plan.best.all()


def test_plan_goes_to_a_frame():
    plan = dpq.plan([0.25, 0.75], groups=[100, 50], bounds=(0, 120), guess=NORMAL, epsilon=[1, 2])
    frame = plan.to_frame()
    assert frame.shape == (4, 13)
    assert frame["group"].tolist() == [0, 1, 0, 1]
    np.testing.assert_array_equal(frame["quantile ranks"], plan.ranks.quantile)
    np.testing.assert_array_equal(frame["worst value"], plan.values.worst)
    assert list(frame) == list(plan.columns())


@pytest.mark.slow
def test_plan_is_plotted():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    one = dpq.plan(0.5, n=1_000, bounds=(0, 120), releases=100)
    ax = one.plot(color="k")
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_ydata(), one.ranks.quantile)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert ax.get_legend() is None
    _, ax = pyplot.subplots()
    several = dpq.plan(0.5, n=100, bounds=(0, 1), method="all", epsilon=[2.0, 1.0], releases=100)
    assert several.plot(ax) is ax
    assert [line.get_label() for line in ax.lines] == several.method[:5].tolist()
    assert ax.lines[0].get_xdata().tolist() == [1.0, 2.0]
    pyplot.close("all")
    total = dpq.plan_sum(n=100, guess=NORMAL, epsilon=[1.0, 2.0], releases=100)
    assert "unit of the data" in total.plot().get_ylabel()
    pyplot.close("all")


@pytest.mark.parametrize(
    "method, module, extra", [("plot", "matplotlib", "plot"), ("to_frame", "pandas", "pandas")]
)
def test_missing_extras_are_named(method, module, extra, monkeypatch):
    plan = dpq.plan(0.5, n=100, bounds=(0, 1), epsilon=1.0)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=re.escape(f"pip install 'dpq_fast[{extra}]'")):
        getattr(plan, method)()


def test_plans_are_frozen():
    plan = dpq.plan(0.5, n=100, bounds=(0, 1), epsilon=1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.needed = 1.0
