"""How objects introduce themselves, and the way of README from a file to a picture."""

import ast
import copy
import datetime
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.data.prior import Prior
from dpq_fast.data.records import Records
from dpq_fast.laws.key_selection import KeysLaw
from dpq_fast.privacy.levels import Levels

PLACE = dict(bounds=(0, 120), resolution=0.5)
SWAP, ADD_REMOVE = dict(neighbors="swap"), dict(neighbors="add-remove")
RECORDS = [17.25, 33.75, 33.75, 90.5, 71.25]
DAYS = np.datetime64("2021-03-01") + np.arange(6)
DATES = (datetime.date(2021, 1, 1), datetime.date(2022, 1, 1))
SELECTION = privacy.key_selection.calibrate(epsilon=1.0, delta=1e-6)
# Each is made of a column, and what it says is here in full.
SHOWN = {
    "Sample": (
        lambda x: dpq.Sample.of(x, **PLACE),
        "Sample(bounds=(0, 120), resolution=0.5, dither=True)",
    ),
    "Sample, prior": (
        lambda x: dpq.Sample.of(x, (1, 1_000_000), prior="log", dither=False),
        "Sample(bounds=(1, 1000000), resolution=0.001, prior=True)",
    ),
    "Sample, continuous": (
        lambda x: dpq.Sample.of(x, (0.5, 2), resolution=0),
        "Sample(bounds=(0.5, 2), resolution=0)",
    ),
    "Sample, dates": (
        lambda x: dpq.Sample.of(DAYS[: len(x)], DATES),
        "Sample(bounds=(2021-01-01, 2022-01-01), resolution=1 days, dither=True)",
    ),
    "Records": (lambda x: dpq.Sample.of(x, **PLACE).records, "Records(bounds=(0, 120))"),
    "Records, no bounds": (Records.of, "Records()"),
    "PartialTree": (
        lambda x: dpq.PartialTree.of(x, height=2, branching=4, **PLACE),
        "PartialTree(bounds=(0, 120), resolution=0.5, height=2, branching=4)",
    ),
    "AggTree": (
        lambda x: dpq.AggTree.of(x, epsilon=1.0, height=2, branching=4, **PLACE, **ADD_REMOVE),
        "AggTree(bounds=(0, 120), resolution=0.5, height=2, branching=4, "
        "noise=Geometric(scale=2), aggregate=True)",
    ),
    "CDF": (
        lambda x: dpq.cdf(x, epsilon=1.0, bins=8, **PLACE, **ADD_REMOVE),
        "CDF(bounds=(0, 120), resolution=0.5, intervals=8)",
    ),
    "CDF, adaptive": (
        lambda x: dpq.cdf(x, epsilon=1.0, method="adaptive", steps=5, bins=32, **PLACE),
        "CDF(bounds=(0, 120), resolution=0.5, intervals=6)",
    ),
    "CDF, of quantiles": (
        lambda x: dpq.cdf(x, epsilon=1.0, delta=1e-6, method="gaussian", levels=3, **PLACE),
        "CDF(bounds=(0, 120), resolution=0.5)",
    ),
    "joint_exp_law": (
        lambda x: dpq.joint_exp_law(x, [0.5, 0.25], epsilon=1.0, **PLACE, **ADD_REMOVE),
        "JointExpLaw(q=[0.25, 0.5], bounds=(0, 120), resolution=0.5, dither=True)",
    ),
    "ind_exp_law": (
        lambda x: dpq.ind_exp_law(x, 0.5, epsilon=1.0, **PLACE, **ADD_REMOVE),
        "IndExpLaw(q=[0.5], bounds=(0, 120), resolution=0.5)",
    ),
    "approx_quantiles_law": (
        lambda x: dpq.approx_quantiles_law(x, 0.5, epsilon=1.0, **PLACE, **ADD_REMOVE),
        "ApproxQuantilesLaw(q=[0.5], bounds=(0, 120), resolution=0.5, dither=True)",
    ),
    "unbounded_quantile_law": (
        lambda x: dpq.unbounded_quantile_law(x, 0.5, epsilon=1.0, beta=1.1, **ADD_REMOVE),
        "UnboundedQuantileLaw(q=[0.5], lower=0, beta=1.1)",
    ),
    "above_threshold_law": (
        lambda x: dpq.above_threshold_law(x, 3, epsilon1=1.0, epsilon2=1.0),
        "AboveThresholdLaw(noise=exponential)",
    ),
    "KeysLaw": (
        lambda x: KeysLaw(list(x), np.arange(1, len(x) + 1), SELECTION),
        "KeysLaw(epsilon=1, delta=1e-06)",
    ),
    "Table": (lambda x: dpq.Table.of({"age": x, "pay": x}), "Table(age, pay)"),
    "Table, column": (lambda x: dpq.Table.of({"age": x})["age"], "Table(age)['age']"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_neighbors_look_alike(name):
    """Records changed, added, removed, or all of them: the text is that of the public arguments."""
    make, words = SHOWN[name]
    for x in (RECORDS, [*RECORDS[:-1], 3.25], RECORDS[:-1], [*RECORDS, 5.0], [1.5]):
        assert repr(make(np.array(x))) == str(make(np.array(x))) == words


def test_priors_and_levels_say_what_they_are():
    guess = stats.norm(1, 2)
    lattice = dpq.Sample.of([1.0], (0, 9), prior=guess).lattice
    assert re.search(r"masses=Masses\(points=\d+\)", repr(lattice))
    _, parts = dpq._checks.check_prior([(3, "uniform"), (1, "log")], (1, 9))
    made = Prior(parts, (1.0, 9.0))
    assert repr(made) == "Prior([(0.75, 'uniform'), (0.25, 'log')], bounds=(1.0, 9.0))"
    assert repr(Prior(parts[:1], (1.0, 9.0))) == "Prior('uniform', bounds=(1.0, 9.0))"
    assert repr(Levels([0.5, 0.1])) == "Levels([0.5 0.1])"


def test_answers_by_group_are_printed_by_group():
    place = dict(epsilon=1e6, resolution=1, bounds=(0, 9), rng=1)
    keys = ["a", "bb", "a", "bb"]
    one = dpq.quantile_by([3, 5, 3, 5], keys, 0.5, groups=["a", "bb"], **place)
    assert repr(one) == "GroupQuantiles of 2 groups, q = 0.5\na   3\nbb  5"
    several = dpq.quantile_by([3, 5, 3, 5], keys, [0, 1], groups=["bb"], confidence=0.9, **place)
    head, row = repr(several).splitlines()
    assert head == "GroupQuantiles of 1 group, q = [0.0, 1.0], 90% intervals for the sample"
    assert re.fullmatch(r"bb  \d \[\S+, \S+\]  \d \[\S+, \S+\]", row)
    counts = dpq.count_by([1.0], [0], groups=range(25), epsilon=1e6)
    lines = repr(counts).splitlines()
    assert lines[:3] == ["GroupValues of 25 groups", "0   1", "1   0"]
    assert lines[-1] == "... 5 more" and len(lines) == 22


COUNTED = np.random.default_rng(0).integers(17, 91, size=200)
BY = dict(groups=[0, 1], epsilon=1.0, confidence=0.9, rng=1)
# What is released, or public: it may be copied, and sent to other processes.
ANSWERS = {
    **{
        f"cdf, {method}": dpq.cdf(COUNTED, method=method, rng=1, **PLACE, **options)
        for method, options in {
            "agg_tree": dict(epsilon=1.0, height=2, branching=4),
            "binary_tree": dict(epsilon=1.0, bins=16),
            "histogram": dict(epsilon=1.0, bins=16),
            "adaptive": dict(epsilon=1.0, bins=16, steps=5),
            "factorized": dict(rho=0.5, bins=16),
            "gaussian": dict(epsilon=1.0, delta=1e-6, bins=16),
            "smooth_gaussian": dict(epsilon=1.0, delta=1e-6),
        }.items()
    },
    "cdf, prior": dpq.cdf(
        COUNTED,
        epsilon=1.0,
        height=2,
        branching=4,
        prior=(lambda x: np.clip(x / 120, 0, 1), lambda p: 120 * p),
        rng=1,
        **PLACE,
    ),
    "cdf, dates": dpq.cdf(DAYS, epsilon=1.0, height=2, branching=4, bounds=DATES, rng=1),
    "AggTree": dpq.AggTree.of(COUNTED, epsilon=1.0, rng=1, **PLACE),
    "PartialTree": dpq.PartialTree.of(COUNTED, **PLACE),  # private: to be merged elsewhere
    "Estimate": dpq.quantile(COUNTED, [0.2, 0.5], epsilon=1.0, confidence=0.9, rng=1, **PLACE),
    "GroupQuantiles": dpq.quantile_by(COUNTED, COUNTED % 2, [0.2, 0.5], **BY, **PLACE),
    "Box": dpq.box(COUNTED, epsilon=1.0, rng=1, **PLACE),
    "GroupBoxes": dpq.box_by(COUNTED, COUNTED % 2, groups=[0, 1], epsilon=1.0, rng=1, **PLACE),
    "GroupValues": dpq.count_by(COUNTED, COUNTED % 2, **BY),
    "Plan": dpq.plan(0.5, n=200, epsilon=[1.0, 2.0], **PLACE),
    "Guarantee": privacy.Guarantee(1.0, 1e-6, 0.5, mechanism="ind_exp"),
    "BudgetExceeded": privacy.BudgetExceeded("a release must fit the budget"),
}


def read_off(answer):
    """What an answer says of itself, as far as there is such a thing."""
    said = [repr(answer)]
    if isinstance(answer, dpq.CDF):
        said += (
            [answer(end) for end in answer.unit.restored(np.array([3, 40])).tolist()]
            if (answer.unit)
            else answer.cdf([33.0, 50.0]).tolist()
        )
        said += [answer.total, answer.ks(answer), np.asarray(answer.quantile([0.1, 0.5])).tolist()]
        said += [answer.accuracy(0.05)] if answer._noise is not None else []
    if isinstance(answer, dpq.AggTree):
        said += [answer.quantile([0.1, 0.5]).tolist(), answer.count_confint(20, 50)]
    if isinstance(answer, dpq.PartialTree):
        said.append(answer.merge(answer).release(epsilon=1.0, rng=1).quantile(0.5))
    if hasattr(answer, "to_json"):
        said.append(answer.to_json())
    return said


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda answer: pickle.loads(pickle.dumps(answer))]
)
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_copied_and_pickled(name, copied):
    again = copied(ANSWERS[name])
    assert type(again) is type(ANSWERS[name])
    assert read_off(again) == read_off(ANSWERS[name])


def test_cdf_is_callable():
    released = dpq.cdf(RECORDS, epsilon=1.0, bins=8, rng=1, **PLACE)
    points = np.linspace(-1, 121, 50)
    np.testing.assert_array_equal(released(points), released.cdf(points))
    assert released(33.75) == released.cdf(33.75)


# Guarantees of calls that choose

N = 2_000
FRONT = [
    dict(),
    dict(q=[0.1, 0.5, 0.9]),
    dict(q=[0.1, 0.5, 0.9], neighbors="add-remove", max_contributions=2),
    dict(q=np.arange(1, 100) / 100),
    dict(q=[0.2, 0.4, 0.7], epsilon=None, rho=0.5),
    dict(q=[0.2, 0.7], epsilon=None, rho=0.5, method="csmooth"),
    dict(epsilon=None, rho=0.5, method="agg_tree", noise="gaussian"),
    dict(bounds=None),
    dict(bounds=None, lower=None),
    dict(q=[0.2, 0.7], confidence=0.9),
    dict(confidence=0.9, covers="population", interval_share=0.4),
    dict(bounds=None, confidence=0.9, nan_policy="raise"),
    dict(q=[0.2, 0.7], method="joint_exp", confidence=0.9),
    dict(q=[0.2, 0.7], method="ind_exp", delta=1e-6),
    dict(q=[0.2, 0.7], method="approx_quantiles"),
    dict(method="unbounded_quantile"),
    dict(method="agg_tree", expected_n=500, confidence=0.9),
    dict(resolution=1, q=[0.2, 0.7], dither=True),
    dict(prior=stats.norm(0, 3)),
]


@pytest.mark.parametrize("nan_policy", ["omit", "raise"])
@pytest.mark.parametrize("options", FRONT)
def test_guarantee_of_quantile_is_what_it_charges(options, nan_policy):
    public = dict(q=0.5, epsilon=0.7, bounds=(-10, 10), nan_policy=nan_policy) | options
    public = {name: given for name, given in public.items() if given is not None}
    accountant = privacy.Accountant(100.0, delta=1e-3, neighbors=public.get("neighbors", "swap"))
    if "rho" in public:
        accountant = privacy.Accountant(100.0, delta=1e-3, composition="zcdp")
        public |= {"selection": "exponential"} if public.get("method") == "ind_exp" else {}
    x = np.random.default_rng(0).normal(0.0, 5.0, size=N)
    dpq.quantile(x, accountant=accountant, rng=1, **public)
    stated = privacy.guarantee("quantile", n=N, **public)
    assert accountant.history == (stated,)
    assert stated.mechanism in dpq.mechanisms.registry.MECHANISMS
    if "method" in public:
        assert stated.mechanism == public["method"]


def test_guarantee_of_median_and_percentile_say_what_is_chosen():
    place = dict(epsilon=1.0, bounds=(0, 120))
    chosen = privacy.guarantee("median", **place)
    assert chosen.mechanism == "ind_exp"
    assert chosen == privacy.guarantee("ind_exp", q=0.5, epsilon=1.0)
    assert privacy.guarantee("percentile", q=[10, 50], **place) == privacy.guarantee(
        "quantile", q=[0.1, 0.5], **place
    )
    assert privacy.guarantee("median", epsilon=1.0).mechanism == "unbounded_quantile"
    times = privacy.guarantee("median", epsilon=1.0, bounds=DATES)
    assert times == chosen
    exponential = privacy.guarantee("median", selection="exponential", **place)
    assert exponential.bounded_range == 1.0
    many = np.arange(1, 200) / 200
    assert privacy.guarantee("quantile", q=many, n=10_000, **place).mechanism == "two_stage"
    few = [0.25, 0.5]
    assert privacy.guarantee("quantile", q=few, n=10**7, **place).mechanism == "two_stage"
    assert privacy.guarantee("quantile", q=few, n=1_000, **place).mechanism == "joint_exp"
    assert privacy.guarantee("joint_exp", epsilon=1.0).mechanism == "joint_exp"


def test_guarantee_says_nothing_of_mechanisms_in_comparisons():
    named = privacy.Guarantee(1.0, mechanism="ind_exp")
    assert named == privacy.Guarantee(1.0) and hash(named) == hash(privacy.Guarantee(1.0))
    with pytest.raises(TypeError, match="mechanism must be a string, got int"):
        privacy.Guarantee(1.0, mechanism=1)


@pytest.mark.parametrize(
    "method, options, error, message",
    [
        ("median", dict(q=0.5, epsilon=1.0), TypeError, "has no argument 'q'"),
        ("quantile", dict(q=2.0, epsilon=1.0), ValueError, r"q must lie in \[0, 1\], got 2.0"),
        ("quantile", dict(q=0.5, epsilon=-1.0), ValueError, "epsilon must be positive and finite"),
        ("quantile", dict(q=0.5, epsilon=1.0, n=-1), ValueError, "n must be at least 0, got -1"),
        ("quantile", dict(q=0.5, epsilon=1.0, bounds=(1, 0)), ValueError, "low < high"),
        (
            "medain",
            {},
            ValueError,
            "'quantile', 'percentile', 'median', 'min', 'max', 'iqr', 'box', got 'medain'",
        ),
    ],
)
def test_guarantee_refuses_as_the_call_does(method, options, error, message):
    with pytest.raises(error, match=message):
        privacy.guarantee(method, **options)


# Booleans


@pytest.mark.parametrize("make", [list, np.array])
def test_booleans_are_counted_and_averaged(make):
    x = make([True] * 900 + [False] * 100)
    assert abs(dpq.count(x, epsilon=5.0, neighbors="add-remove", rng=1) - 1_000) < 10
    assert abs(dpq.mean(x, epsilon=5.0, q=None, lower=0, upper=1, rng=1) - 0.9) < 0.01
    assert abs(dpq.mean(x, epsilon=5.0, rng=1) - 0.9) < 0.05
    assert abs(dpq.sum(x, epsilon=5.0, q=None, lower=0, upper=1, rng=1) - 900) < 10
    by = [0, 1] * 500
    means = dpq.mean_by(x, by, groups=[0, 1], epsilon=5.0, q=None, lower=0, upper=1, rng=1)
    assert np.abs(means.values - 0.9).max() < 0.05


# README


def test_readme_goes_from_a_file_to_a_picture(tmp_path, monkeypatch, capsys):
    """Its intervals hold the true medians, whatever the noise."""
    matplotlib = pytest.importorskip("matplotlib", reason="extra 'plot' not installed")
    readme = (Path(__file__).resolve().parents[1] / "README.md").read_text("utf-8")
    section = readme.partition("## A Parquet file, by group, of people")[2].partition("\n## ")[0]
    file, release = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert "pip install" in section
    assert len(ast.parse(release).body) <= 4
    assert release.count("rng=1,") == 1
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    names = {"np": np, "dpq": dpq}
    exec(file, names)
    exec(release.replace("rng=1,", "rng=3,"), names)
    medians = names["medians"]
    user, town, ms = (names[name] for name in ("user", "town", "ms"))
    weights = 1.0 / np.bincount(user)[user]
    for key in ("Aston", "Barnet", "Corby"):
        value, low, high = medians[key]
        of_key = town == key
        below, up_to = (weights[of_key & own].sum() for own in (ms < low, ms <= high))
        assert below <= weights[of_key].sum() / 2.0 <= up_to
        assert low <= value <= high and high - low < 60
    assert (tmp_path / "medians.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert capsys.readouterr().out == f"{medians}\n"
    matplotlib.pyplot.close("all")
