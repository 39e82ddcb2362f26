"""Plans: what they predict against simulated releases and enumerated laws, and what they refuse."""

from __future__ import annotations

import dataclasses
import math
import re
import sys

import numpy as np
import pytest
import scipy.stats

import dpq_fast as dpq
import enumeration
from dpq_fast import planning
from dpq_fast.mechanisms.quantile import choose_method

NORMAL = scipy.stats.norm(45.0, 15.0)
AGES = np.random.default_rng(3).integers(17, 91, size=400).astype(np.float64)
# Standard errors that a prediction and a simulation may be apart.
APART = 5.0


def rank_errors(x, q, outputs):
    """Written once more: 0 inside a run of ties that holds the target, else the distance to it."""
    below = (x[:, None] < outputs).sum(axis=0)
    through = (x[:, None] <= outputs).sum(axis=0)
    target = np.asarray(q) * x.size
    return np.maximum(0.0, np.maximum(below - target, target - through))


def distances(x, q, outputs):
    """From the nearest number whose rank error is 0."""
    ordered, found = np.sort(x), []
    for level, output in zip(np.atleast_1d(q), np.atleast_1d(outputs), strict=True):
        target = level * x.size
        first = ordered[max(math.ceil(target) - 1, 0)]
        last = ordered[min(math.floor(target), x.size - 1)]
        found.append(max(first - output, output - last, 0.0))
    return np.array(found)


def assert_predicted(predicted, uncertainty, errors, level=0.95, slack=0.0):
    """Mean and quantile of simulated errors are what is predicted, up to their standard errors."""
    expected, quantile = predicted
    parts = np.array_split(errors, 10)
    off = np.std([np.quantile(part, level) for part in parts], ddof=1) / math.sqrt(10.0)
    simulated = np.quantile(errors, level, method="inverted_cdf")
    margin = APART * math.hypot(off, uncertainty * quantile)
    assert abs(quantile - simulated) <= margin + slack
    of_mean = np.std([part.mean() for part in parts], ddof=1) / math.sqrt(10.0)
    margin = APART * math.hypot(of_mean, uncertainty * expected)
    assert abs(expected - errors.mean()) <= margin <= 0.5 * errors.mean()


CASES = {
    "ind_exp": (0.3, dict(n=500, bounds=(-50, 150), epsilon=0.5), NORMAL),
    "ind_exp, ties": (0.5, dict(n=500, bounds=(0, 120), resolution=1, epsilon=0.05), AGES),
    "ind_exp, levels": (
        [0.2, 0.5],
        dict(n=300, bounds=(-50, 150), epsilon=1.0, method="ind_exp"),
        NORMAL,
    ),
    "joint_exp": ([0.1, 0.5, 0.8], dict(n=1_000, bounds=(-50, 150), epsilon=0.3), NORMAL),
    "joint_exp, ties": (
        [0.25, 0.5, 0.75],
        dict(n=400, bounds=(0, 120), resolution=1, epsilon=0.3, method="joint_exp"),
        AGES,
    ),
    "joint_exp, no dither": (
        [0.25, 0.75],
        dict(n=400, bounds=(0, 120), resolution=1, epsilon=0.3, dither=False, method="joint_exp"),
        AGES,
    ),
    "approx_quantiles": (
        [0.1, 0.3, 0.5, 0.7, 0.9],
        dict(n=1_000, bounds=(-50, 150), epsilon=1.0, method="approx_quantiles"),
        NORMAL,
    ),
    "agg_tree": (
        [0.1, 0.3, 0.5, 0.7, 0.9],
        dict(n=1_000, bounds=(-50, 150), epsilon=0.3, method="agg_tree"),
        NORMAL,
    ),
    "agg_tree, ties": (
        [0.25, 0.5],
        dict(n=1_000, bounds=(0, 120), resolution=1, epsilon=0.1, neighbors="add-remove"),
        AGES,
    ),
    "unbounded_quantile": (
        0.6,
        dict(n=500, bounds=None, epsilon=0.5, method="unbounded_quantile"),
        scipy.stats.lognorm(1.0),
    ),
    "ind_exp, prior": (
        0.5,
        dict(n=60, bounds=(1, 1e9), epsilon=0.5, prior="log"),
        scipy.stats.lognorm(0.8, scale=math.exp(10.5)),
    ),
    "joint_exp, prior": (
        [0.25, 0.75],
        dict(n=300, bounds=(1, 1e9), epsilon=0.5, prior="log", method="joint_exp"),
        scipy.stats.lognorm(0.8, scale=math.exp(10.5)),
    ),
    "agg_tree, prior": (
        [0.1, 0.3, 0.5, 0.7, 0.9],
        dict(n=500, bounds=(1, 1e9), epsilon=1.0, prior="log", method="agg_tree"),
        scipy.stats.lognorm(0.8, scale=math.exp(10.5)),
    ),
    "several records of a person": (
        0.5,
        dict(n=500, bounds=(-50, 150), epsilon=2.0, max_contributions=3),
        NORMAL,
    ),
}


def records_of(guess, n, rng):
    if isinstance(guess, np.ndarray):
        return rng.choice(guess, n)
    return guess.rvs(n, random_state=rng)


@pytest.mark.parametrize("name", CASES)
def test_plan_predicts_simulated_releases(name):
    q, options, guess = CASES[name]
    plan = dpq.plan(q, guess=guess, **options)
    assert plan.chosen[0] or options.get("method", "auto") != "auto"
    call = dict(options)
    n = call.pop("n")
    rng, ranks, values, worst = np.random.default_rng(7), [], [], []
    for _ in range(1_000):
        x = records_of(guess, n, rng)
        if call.get("resolution") and not isinstance(guess, np.ndarray):
            x = np.round(x)
        out = np.atleast_1d(dpq.quantile(x, q, expected_n=n, rng=rng, **call))
        missed = rank_errors(x, np.atleast_1d(q), out)
        ranks.append(missed.mean())
        worst.append(missed.max())
        values.append(distances(x, q, out).mean())
    (uncertainty,) = plan.uncertainty
    uncertainty = max(uncertainty, 0.02)
    # a quantile of discrete errors is one of them
    slack = 1.0 if np.size(q) == 1 or options.get("resolution") else 0.5
    assert_predicted(
        (plan.ranks.expected[0], plan.ranks.quantile[0]), uncertainty, np.array(ranks), slack=slack
    )
    off = abs(plan.ranks.worst[0] - np.quantile(worst, 0.95, method="inverted_cdf"))
    assert off <= 0.2 * plan.ranks.worst[0] + slack
    assert plan.values.expected[0] == pytest.approx(np.mean(values), rel=0.15)


@pytest.mark.parametrize("q", [0.25, [0.25, 0.75]])
def test_plan_of_groups_predicts_simulated_releases(q):
    sizes = {"few": 60, "many": 600}
    options = dict(epsilon=1.0 if np.size(q) == 2 else 0.2, bounds=(0, 120), resolution=1)
    plan = dpq.plan(q, groups=sizes, guess=AGES, **options)
    assert plan.group.tolist() == ["few", "many"]
    assert plan.n.tolist() == [60, 600]
    rng = np.random.default_rng(9)
    by = np.repeat([0, 1], [60, 600])
    errors = []
    for _ in range(1_000):
        x = rng.choice(AGES, 660)
        out = dpq.quantile_by(x, by, q, groups=[0, 1], rng=rng, **options)
        found = np.atleast_2d(out.values.T).T
        errors.append([rank_errors(x[by == g], np.atleast_1d(q), found[g]).mean() for g in (0, 1)])
    for row, missed in enumerate(np.array(errors).T):
        predicted = plan.ranks.expected[row], plan.ranks.quantile[row]
        assert_predicted(predicted, max(plan.uncertainty[row], 0.02), missed, slack=0.5)


def test_groups_get_the_budget_that_their_keys_leave_them():
    options = dict(groups=[500], epsilon=1.0, bounds=(0, 120))
    moved = dpq.plan([0.1, 0.9], **options)
    public = dpq.plan([0.1, 0.9], public_by=True, **options)
    assert public.ranks.expected[0] < moved.ranks.expected[0]


def test_records_are_as_the_prior_says_where_there_is_no_guess():
    prior = scipy.stats.norm(40.0, 10.0)
    options = dict(n=500, bounds=(0, 120), resolution=1, epsilon=0.3, prior=prior)
    own, told = dpq.plan(0.5, **options), dpq.plan(0.5, guess=prior, **options)
    assert own.values.expected[0] == pytest.approx(told.values.expected[0], rel=0.1)
    assert own.title.endswith("guess: the prior")


def test_many_sizes_of_groups_are_taken_for_near_ones():
    sizes = np.arange(100, 900, 7).tolist()
    plan = dpq.plan(0.5, groups=sizes, bounds=(0, 120), epsilon=0.2, releases=100)
    assert plan.n.tolist() == sizes
    grid = planning._grid_of(sizes)
    assert len(set(grid)) < 20
    assert (np.abs(np.log(np.array(grid) / sizes)) <= math.log(10.0) / 32.0 + 0.01).all()


@pytest.mark.parametrize(
    "name, options",
    [
        ("sum", dict(epsilon=0.5)),
        ("sum", dict(epsilon=1.0, q=None, lower=0.0, upper=20.0, resolution=0.01)),
        ("sum", dict(epsilon=1.0, q=0.95, upper=50.0, method="ind_exp")),
        ("mean", dict(epsilon=0.5)),
        ("mean", dict(epsilon=1.0, q=None, lower=0.0, upper=20.0, neighbors="add-remove")),
    ],
)
def test_plans_of_totals_predict_simulated_releases(name, options):
    guess, n = scipy.stats.lognorm(1.0), 800
    plan = getattr(dpq, f"plan_{name}")(n=n, guess=guess, releases=2_500, **options)
    assert plan.ranks is None and plan.shares is None
    rng, errors = np.random.default_rng(11), []
    for _ in range(1_000):
        x = guess.rvs(n, random_state=rng)
        out = getattr(dpq, name)(x, rng=rng, **options)
        errors.append(abs(out - getattr(np, name)(x)))
    predicted = plan.values.expected[0], plan.values.quantile[0]
    assert_predicted(predicted, max(plan.uncertainty[0], 0.03), np.array(errors))
    assert plan.method[0] == (
        "none" if options.get("q", 0) is None else options.get("method", "unbounded")
    )


@pytest.mark.parametrize("selection", ["swap", "add-remove"])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 1.0])
def test_one_level_is_predicted_by_its_exact_law(q, selection):
    """All samples of a guess at one record are the same."""
    n, points, record, epsilon = 4, 6, 2, 1.5
    plan = dpq.plan(
        q,
        n=n,
        guess=[float(record)],
        bounds=(0, points - 1),
        resolution=1,
        epsilon=epsilon,
        neighbors=selection,
    )
    sensitivity = 1.0 if selection == "swap" else max(q, 1.0 - q)
    records = [record] * n
    rate = epsilon / (2.0 * sensitivity)
    scores = [rate * float(enumeration.depth(records, q, o)) for o in range(points)]
    law = np.exp(enumeration.permute_and_flip(scores))
    missed = rank_errors(np.array(records), q, np.arange(points))
    assert plan.ranks.expected[0] == pytest.approx(law @ missed, rel=1e-6)
    away = np.abs(np.arange(points) - record) * (missed > 0.0)
    assert plan.values.expected[0] == pytest.approx(law @ away, rel=1e-6)
    reached = np.cumsum(law[np.argsort(missed)])
    assert plan.ranks.quantile[0] == np.sort(missed)[np.searchsorted(reached, 0.95)]
    assert plan.uncertainty[0] < 1e-12


# Samples


def test_public_samples_have_the_order_statistics_of_uniform_records():
    n, places = 10_000, planning._places(10_000, np.array([2_500.0, 5_000.0]))
    guess = planning._Guess.of(scipy.stats.uniform(), None)
    samples = [
        planning._PublicSample(guess, n, places, planning._public_rng(0, i)) for i in range(2_000)
    ]
    for rank in (1, 2_500, 5_017, 10_000):
        at = np.searchsorted(places, rank)
        assert places[at] == rank
        u = np.array([sample._u[at] for sample in samples])
        law = scipy.stats.beta(rank, n + 1 - rank)
        assert scipy.stats.kstest(u, law.cdf).pvalue > 1e-6
    gaps = np.array([np.diff(sample._u)[np.searchsorted(places, 5_000)] for sample in samples])
    assert scipy.stats.kstest(gaps, scipy.stats.beta(1, n).cdf).pvalue > 1e-6


@pytest.mark.parametrize("n", [1, 2, 63, 1_000, 10**6, 2**53])
def test_public_samples_have_all_records_once(n):
    targets = np.array([0.0, 0.1, 0.5, 1.0]) * n
    places = planning._places(n, targets)
    assert places[0] == 1 and places[-1] == n and (np.diff(places) > 0).all()
    guess = planning._Guess.of(NORMAL, None)
    sample = planning._PublicSample(guess, n, places, planning._public_rng(0, 0))
    assert sample.weights.sum() == n and (sample.weights > 0).all()
    assert (np.diff(sample.values) >= 0.0).all()
    assert sample.counts_below(np.array([0.0, 1.0])).tolist() == [0, n]
    shares = np.linspace(0.0, 1.0, 101)
    below = sample.counts_below(shares)
    assert (np.diff(below) >= 0).all()
    if n <= planning.NEAR:
        u = sample._u
        assert below.tolist() == [(u < share).sum() for share in shares]
    near = np.abs(places[:, None] - np.rint(targets)).min(axis=1)
    steps = np.diff(places, prepend=0)
    assert (steps[near < planning.NEAR - 1] == 1).all()
    assert (steps <= (near + steps) * planning.COARSE * 1.1 + 2).all()


@pytest.mark.parametrize("q, method", [(0.5, "ind_exp"), ([0.2, 0.5, 0.9], "joint_exp")])
def test_rank_errors_hardly_depend_on_many_records(q, method):
    plans = [
        dpq.plan(q, n=n, bounds=(0, 1), epsilon=0.5, resolution=2.0**-40) for n in (10**4, 10**8)
    ]
    few, many = (plan.ranks.quantile[0] for plan in plans)
    assert [plan.method[0] for plan in plans] == [method, method]
    assert few == pytest.approx(many, rel=0.25)


def test_more_releases_leave_less_uncertainty():
    options = dict(n=400, bounds=(0, 120), resolution=1, guess=AGES, epsilon=0.3)
    few, many = (dpq.plan([0.25, 0.5, 0.75], releases=each, **options) for each in (1_000, 20_000))
    assert many.uncertainty[0] < few.uncertainty[0] / 2.0
    assert planning._numbers(1_000, 500) == (100, 10)
    assert planning._numbers(20_000, 500) == (2_000, 10)
    assert planning._numbers(20_000, 10_000) == (300, 67)
    assert planning._numbers(100, 10**6) == (100, 1)


# Targets


@pytest.mark.parametrize(
    "q, options",
    [
        (0.5, dict(n=1_000, target=20.0)),
        ([0.1, 0.5, 0.9], dict(n=1_000, target=12.0)),
        ([0.1, 0.5, 0.9], dict(n=1_000, target=25.0, over="worst")),
        ([0.1, 0.5, 0.9], dict(n=1_000, target=0.03, unit="share", level=0.5)),
        ([0.1, 0.5, 0.9], dict(n=1_000, target=1.0, unit="value", guess=NORMAL)),
        (0.5, dict(groups=[100, 1_000], target=0.05, unit="share")),
        ([0.1, 0.5, 0.9], dict(n=1_000, target=12.0, method="all", releases=100)),
    ],
)
def test_target_is_reached_by_the_smallest_epsilon(q, options):
    options = dict(bounds=(0, 120)) | options
    plan = dpq.plan(q, **options)
    target, unit, over = (options.pop(name, None) for name in ("target", "unit", "over"))

    def error(made):
        errors = made.values if unit == "value" else made.ranks
        errors = errors.worst if over == "worst" else errors.quantile
        errors = errors / made.n if unit == "share" else errors
        return errors.min() if options.get("method") == "all" else errors.max()

    assert set(plan.epsilon.tolist()) == {plan.needed}
    assert float(f"{plan.needed:.3g}") == plan.needed
    assert error(plan) <= target
    # the fewer the releases, the less it is certain
    less = plan.needed / (1.2 if "releases" in options else 1.04)
    assert error(dpq.plan(q, epsilon=less, **options)) > target
    assert f"Smallest epsilon for the target: {plan.needed:.3g}" in str(plan)


def test_target_of_totals():
    plan = dpq.plan_mean(n=1_000, q=None, lower=0, upper=10, target=0.5)
    assert plan.values.quantile[0] <= 0.5
    less = dpq.plan_mean(n=1_000, q=None, lower=0, upper=10, epsilon=plan.needed / 1.05)
    assert less.values.quantile[0] > 0.5


def test_smaller_targets_need_more():
    needed = [
        dpq.plan([0.25, 0.5], n=2_000, bounds=(0, 120), target=target).needed
        for target in (5.0, 20.0, 80.0)
    ]
    assert needed == sorted(needed, reverse=True)
    assert len(set(needed)) == 3


def test_target_that_any_epsilon_reaches_has_the_least_one():
    assert dpq.plan(0.5, n=100, bounds=(0, 1), target=1e6).needed == planning.LEAST_EPSILON


# What a plan is


def test_default_plan():
    plan = dpq.plan([0.25, 0.5, 0.75], n=1_000, bounds=(0, 120))
    assert plan.epsilon.tolist() == list(planning.EPSILONS)
    assert len(plan) == 9
    assert plan.chosen.all() and plan.best.all()
    assert plan.values is None and plan.group is None and plan.needed is None
    assert (plan.ranks.expected <= plan.ranks.quantile).all()
    assert (plan.ranks.quantile <= plan.ranks.worst).all()
    assert (np.diff(plan.ranks.quantile) < 0.0).all()
    for epsilon, method in zip(plan.epsilon, plan.method, strict=True):
        asked = dict(epsilon=epsilon, bounds=(0, 120), expected_n=1_000)
        assert method == choose_method(None, [0.25, 0.5, 0.75], **asked)
    np.testing.assert_allclose(plan.shares.worst, plan.ranks.worst / 1_000)


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


def test_all_methods_are_compared():
    plan = dpq.plan(0.5, n=1_000, bounds=(0, 120), method="all", epsilon=[0.3, 1.0], releases=200)
    names = ["joint_exp", "approx_quantiles", "agg_tree", "ind_exp"]
    assert plan.method.tolist() == names * 2
    assert plan.chosen.tolist() == [False, False, False, True] * 2
    for row in (slice(0, 4), slice(4, 8)):
        quantiles = plan.ranks.quantile[row]
        assert (plan.best[row] == (quantiles == quantiles.min())).all()
    assert "ind_exp*" in str(plan)
    dithered = dpq.plan(
        [0.5], n=1_000, bounds=(0, 120), method="all", epsilon=1.0, dither=True, releases=100
    )
    assert dithered.method.tolist() == ["joint_exp", "approx_quantiles"]


def test_no_bounds_is_a_search():
    plan = dpq.plan(0.5, n=500, guess=NORMAL, epsilon=1.0)
    assert plan.method.tolist() == ["unbounded_quantile"]
    assert "no bounds" in str(plan)


def test_level_is_that_of_the_quantiles():
    low, high = (
        dpq.plan(0.5, n=1_000, bounds=(0, 120), epsilon=0.1, level=level) for level in (0.5, 0.99)
    )
    assert low.ranks.expected[0] == high.ranks.expected[0]
    assert low.ranks.quantile[0] < high.ranks.quantile[0] / 3.0
    assert "0.99: in this share of releases" in str(high)


def test_resolution_rounds_records_of_a_distribution():
    options = dict(n=10_000, bounds=(0, 120), guess=NORMAL, epsilon=1.0)
    assert dpq.plan(0.5, resolution=1, **options).ranks.quantile[0] == 0.0
    assert dpq.plan(0.5, **options).ranks.quantile[0] > 0.0
    # public records are as they are
    options["guess"] = np.linspace(0.3, 80.3, 500)
    assert dpq.plan(0.5, resolution=1, **options).ranks.quantile[0] > 0.0


def test_discrete_distributions_are_guesses():
    plan = dpq.plan(
        [0.25, 0.5],
        n=1_000,
        bounds=(0, 50),
        resolution=1,
        guess=scipy.stats.poisson(9),
        method="all",
        epsilon=2.0,
        releases=100,
    )
    assert (plan.ranks.expected < 2.0).all()


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


def test_plan_of_groups_prints_their_names():
    text = str(dpq.plan([0.25, 0.75], groups={"north": 1_000, "south": 50}, bounds=(0, 120)))
    assert "quantile_by: 2 levels, n = 1,050 in 2 groups" in text
    assert re.search(r"0\.01 +joint_exp +south +50 ", text)


def test_long_tables_are_cut():
    plan = dpq.plan(0.5, groups=range(10, 110), bounds=(0, 1), epsilon=1.0, releases=100)
    text = str(plan)
    assert "... 40 more rows" in text
    assert text.count("ind_exp") == planning.MOST_PRINTED
    assert plan.best.all()


def test_plan_goes_to_a_frame():
    plan = dpq.plan([0.25, 0.75], groups=[100, 50], bounds=(0, 120), guess=NORMAL, epsilon=[1, 2])
    frame = plan.to_frame()
    assert frame.shape == (4, 13)
    assert frame["group"].tolist() == [0, 1, 0, 1]
    np.testing.assert_array_equal(frame["quantile ranks"], plan.ranks.quantile)
    np.testing.assert_array_equal(frame["worst value"], plan.values.worst)
    assert list(frame) == list(plan.columns())


def test_plan_is_plotted():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    one = dpq.plan(0.5, n=1_000, bounds=(0, 120))
    ax = one.plot(color="k")
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_ydata(), one.ranks.quantile)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert ax.get_legend() is None
    _, ax = pyplot.subplots()
    several = dpq.plan(0.5, n=100, bounds=(0, 1), method="all", epsilon=[2.0, 1.0], releases=100)
    assert several.plot(ax) is ax
    assert [line.get_label() for line in ax.lines] == several.method[:4].tolist()
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


# What is refused

GOOD = dict(n=100, bounds=(0, 10), epsilon=1.0)
BAD = [
    (dict(n=0), ValueError, "n must be at least 1, got 0"),
    (dict(n=None), TypeError, "n must be an integer, got None"),
    (dict(n=1.5), TypeError, "n must be an integer, got 1.5"),
    (dict(epsilon=0.0), ValueError, "epsilon must be positive and finite, got 0.0"),
    (dict(epsilon=[1.0, -1.0]), ValueError, "epsilon must be positive and finite, got -1.0"),
    (dict(epsilon=[]), ValueError, "epsilon must hold at least one budget, got none"),
    (dict(epsilon="1"), TypeError, "epsilon must be a real number, got '1'"),
    (dict(target=1.0), ValueError, "epsilon must be left out with a target"),
    (dict(epsilon=None, target=0), ValueError, "target must be positive and finite, got 0.0"),
    (
        dict(epsilon=None, target=1e-9, n=1_000, level=0.999),
        ValueError,
        "target must be an error that some epsilon up to 100 reaches, got 1e-09 where ",
    ),
    (dict(unit="people"), ValueError, "unit must be one of 'ranks', 'share', 'value'"),
    (dict(unit="value"), ValueError, "guess or prior must be given for unit='value'"),
    (dict(over="median"), ValueError, "over must be one of 'mean', 'worst'"),
    (dict(level=1.0), ValueError, "level must lie strictly between 0 and 1, got 1.0"),
    (dict(level=math.nan), ValueError, "level must lie strictly between 0 and 1, got nan"),
    (dict(releases=99), ValueError, "releases must be at least 100, got 99"),
    (dict(releases=10**7), ValueError, "releases must be at most 1,000,000, got 10000000"),
    (dict(method="csmooth"), ValueError, "method must be one of 'auto', 'all', 'joint_exp'"),
    (dict(neighbors="replace"), ValueError, "neighbors must be one of 'swap', 'add-remove'"),
    (dict(resolution=0), ValueError, "resolution must be positive for a plan, got 0.0"),
    (dict(resolution=50), ValueError, "resolution must leave at least two of its multiples"),
    (dict(dither=1), TypeError, "dither must be True or False, got 1"),
    (
        dict(dither=True, method="agg_tree"),
        ValueError,
        "dither must be left out for method 'agg_tree', got True",
    ),
    (dict(max_contributions=0), ValueError, "max_contributions must be at least 1, got 0"),
    (dict(bounds=(1, 1)), ValueError, "bounds must be finite with low < high"),
    (dict(bounds=None), ValueError, "guess must be given without bounds"),
    (
        dict(bounds=None, guess=[1.0], method="joint_exp"),
        ValueError,
        "bounds must be given for method='joint_exp'",
    ),
    (
        dict(guess=scipy.stats.uniform(20, 30)),
        ValueError,
        "guess must have mass between bounds, got none in (0.0, 10.0)",
    ),
    (dict(guess=[-1.0, 11.0]), ValueError, "guess must have mass between bounds"),
    (dict(guess=[]), ValueError, "guess must hold at least one record, got none"),
    (dict(guess=[1.0, math.nan]), ValueError, "guess must hold finite records"),
    (dict(guess=[[1.0]]), ValueError, "guess must be one-dimensional, got 2 dimensions"),
    (dict(guess="normal"), TypeError, "guess must be a distribution with ppf and cdf, or public"),
    (dict(guess=["a"]), TypeError, "guess must be real numbers, got dtype"),
    (dict(groups=[5]), ValueError, "n must be left out with groups"),
    (dict(groups=[0], n=None), ValueError, "groups must be at least 1, got 0"),
    (dict(groups=[], n=None), ValueError, "groups must hold at least one size, got none"),
    (dict(groups="ab", n=None), TypeError, "groups must be sizes, a mapping or a sequence of"),
    (
        dict(groups=[5], n=None, method="agg_tree"),
        ValueError,
        "method must be 'auto' or 'joint_exp' for groups, got 'agg_tree'",
    ),
    (
        dict(groups=[5], n=None, bounds=None, guess=[1.0]),
        ValueError,
        "bounds must be given for groups",
    ),
    (dict(public_by=1), TypeError, "public_by must be True or False, got 1"),
]


@pytest.mark.parametrize(("given", "error", "message"), BAD)
def test_plan_refuses_by_the_rule(given, error, message):
    with pytest.raises(error, match="^" + re.escape(message)):
        dpq.plan(0.5, **(GOOD | given))


def test_plan_refuses_levels_by_the_rule():
    with pytest.raises(ValueError, match="q must lie in"):
        dpq.plan(1.5, **GOOD)


def test_plan_refuses_a_guess_without_numbers():
    class Nowhere:
        def ppf(self, u):
            return np.full(np.shape(u), math.nan)

        def cdf(self, x):
            return np.full(np.shape(x), 0.5) + 0.1 * (np.asarray(x) > 0.0)

    with pytest.raises(ValueError, match="guess must have a ppf that is not NaN between 0 and 1"):
        dpq.plan(0.5, guess=Nowhere(), **GOOD)


@pytest.mark.parametrize("function", [dpq.plan_sum, dpq.plan_mean])
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (dict(n=0), ValueError, "n must be at least 1, got 0"),
        (dict(guess=None), ValueError, "guess must be given unless q is None"),
        (dict(epsilon=-1), ValueError, "epsilon must be positive and finite, got -1.0"),
        (dict(accountant=None), TypeError, "accountant must be left out for a plan"),
        (dict(rng=1), TypeError, "rng must be left out for a plan"),
        (dict(q=2.0), ValueError, "q must lie in [0, 1]"),
        (dict(target=-1.0, epsilon=None), ValueError, "target must be positive and finite"),
        (dict(upper=-5.0), ValueError, ""),
    ],
)
def test_plans_of_totals_refuse_by_the_rule(function, given, error, message):
    options = dict(n=100, guess=NORMAL, epsilon=1.0) | given
    with pytest.raises(error, match="^" + re.escape(message)):
        function(**options)
