"""`dpq-fast plan` and `dpq-fast compare`."""

import json
import math
import types

import numpy as np
import pytest
import scipy.stats
from click.testing import Result
from command_line import run, said

import dpq_fast as dpq
from dpq_fast.cli import forecasts, parameters
from dpq_fast.planning.samples import public_rng

PLAN = ["--q", "0.25,0.5,0.75", "--n", 1_000, "--bounds", 0, 120]


def planned(*arguments: object) -> Result:
    result = run("plan", *PLAN, *arguments)
    assert result.exit_code == 0, result.output
    return result


def test_plan_prints_what_the_library_does():
    expected = dpq.plan([0.25, 0.5, 0.75], n=1_000, bounds=(0, 120), epsilon=[0.1, 1])
    assert planned("--epsilon", "0.1,1").stdout == f"{expected}\n"


def test_plan_json_holds_the_table():
    arguments = ["--guess", "normal:45,15", "--neighbors", "add-remove", "--resolution", 1]
    arguments += ["--max-contributions", 2, "--level", 0.9, "--method", "all", "--json"]
    arguments += ["--expected-n", 700]
    out = json.loads(planned("--epsilon", 2, *arguments).stdout)
    expected = dpq.plan(
        [0.25, 0.5, 0.75],
        n=1_000,
        bounds=(0, 120),
        epsilon=2.0,
        guess=scipy.stats.norm(45, 15),
        neighbors="add-remove",
        resolution=1,
        max_contributions=2,
        expected_n=700,
        level=0.9,
        method="all",
    )
    assert out["q"] == [0.25, 0.5, 0.75]
    assert out["level"] == 0.9
    assert out["needed"] is None
    assert [row["method"] for row in out["rows"]] == expected.method.tolist()
    assert [row["worst value"] for row in out["rows"]] == expected.values.worst.tolist()


def test_plan_finds_the_epsilon_for_a_target():
    options = ["--target", 0.5, "--unit", "value", "--over", "worst", "--method", "joint_exp"]
    text = planned(*options, "--guess", "uniform:0,100").stdout
    expected = dpq.plan(
        [0.25, 0.5, 0.75],
        n=1_000,
        bounds=(0, 120),
        target=0.5,
        unit="value",
        over="worst",
        method="joint_exp",
        guess=scipy.stats.uniform(0, 100),
    )
    assert f"Smallest epsilon for the target: {expected.needed:.3g}" in text


def test_plan_takes_lognormal_guesses():
    distribution = parameters.Guess().convert("lognormal:10.5,0.8", None, None)
    assert distribution.median() == pytest.approx(math.exp(10.5))
    assert distribution.std() == pytest.approx(scipy.stats.lognorm(0.8, scale=math.exp(10.5)).std())


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--n", 0], "n must be at least 1, got 0"),
        (["--epsilon", "0"], "epsilon must be positive and finite, got 0.0"),
        (["--epsilon", "a"], "epsilon must be numbers separated by commas, got 'a'"),
        (["--epsilon", "1", "--target", 1], "epsilon must be left out with a target"),
        (
            ["--target", 1e-9, "--method", "agg_tree", "--guess", "uniform:0,100"],
            "target must be an error that some epsilon up to",
        ),
        (["--target", 1, "--unit", "value"], "guess or prior must be given for unit='value'"),
        (["--guess", "normal:500,1"], "guess must have mass between bounds"),
        (["--bounds", 1, 1], "bounds must be finite with low < high"),
        *(
            (["--guess", guess], f"with a positive SD or SIGMA, and LOW below HIGH, got '{guess}'")
            for guess in (
                "normal",
                "normal:1",
                "normal:1,0",
                "gamma:1,2",
                "uniform:2,1",
                "normal:a,b",
            )
        ),
    ],
)
def test_plan_rejects_by_the_library_message(arguments, rule):
    result = run("plan", *PLAN, *arguments)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert rule in " ".join(result.stderr.split())


@pytest.mark.parametrize("option", ["--q", "--n", "--bounds"])
def test_plan_requires_its_options(option):
    given = {"--q": [0.5], "--n": [10], "--bounds": [0, 1]}
    rest = [part for name, values in given.items() if name != option for part in (name, *values)]
    result = run("plan", *rest)
    assert result.exit_code == 2
    assert f"Missing option '{option}'" in result.stderr


# compare

COMPARE = ["--q", "0.25,0.5", "--n", 400, "--bounds", 0, 100, "--releases", 20]


def test_compare_is_repeatable_and_ranks_the_methods():
    out = json.loads(run("compare", *COMPARE, "--json").stdout)
    assert out == json.loads(run("compare", *COMPARE, "--json").stdout)
    methods = [row["method"] for row in out["rows"]]
    assert methods[0] == "auto" and {"joint_exp", "agg_tree"} <= set(methods)
    assert min(row["of the best"] for row in out["rows"]) == 1.0
    assert all(0.0 < row["two standard errors"] < row["mean rank error"] for row in out["rows"])


def test_compare_measures_the_error_of_releases():
    """Against the same releases made by hand."""
    options = ["--guess", "normal:50,10", "--method", "joint_exp", "--seed", 4, "--epsilon", 0.5]
    options += ["--resolution", 2, "--neighbors", "add-remove", "--max-contributions", 3]
    out = json.loads(run("compare", *COMPARE, *options, "--json").stdout)
    person = dict(neighbors="add-remove", max_contributions=3)
    rng = public_rng(4)
    x = np.sort(2.0 * np.round(scipy.stats.norm(50, 10).ppf(rng.random(400)) / 2.0))
    place = dict(epsilon=0.5, bounds=(0, 100), resolution=2, method="joint_exp", rng=rng, **person)
    errors = [
        np.mean(dpq.metrics.rank_error(x, [0.25, 0.5], dpq.quantile(x, [0.25, 0.5], **place)))
        for _ in range(20)
    ]
    assert {name: out[name] for name in (*person, "seed")} == {**person, "seed": 4}
    (row,) = out["rows"]
    assert row["mean rank error"] == pytest.approx(np.mean(errors))
    assert row["two standard errors"] == pytest.approx(2 * scipy.stats.sem(errors))


def test_compare_shows_its_progress_beside_the_answer(monkeypatch):
    terminal = types.SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(forecasts, "sys", types.SimpleNamespace(stderr=terminal))
    result = run("compare", *COMPARE, "--method", "ind_exp", "--json")
    assert json.loads(result.stdout)["releases"] == 20
    assert "ind_exp" in result.stderr


def test_compare_prints_a_table():
    text = run("compare", *COMPARE, "--method", "ind_exp", "--epsilon", 2).stdout
    assert "ind_exp" in text and "±" in text
    assert "400 made-up records, 20 releases of each method" in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--n", 0], "n must be at least 1, got 0"),
        (["--releases", 1], "releases must be at least 2, got 1"),
        (["--n", 10**9], "n must be at most 100,000,000, got 1000000000"),
        (["--bounds", 1, 1], "bounds must be finite with low < high"),
        (["--epsilon", 0], "epsilon must be positive and finite, got 0.0"),
        (["--resolution", -1], "resolution must be finite and not negative, got -1.0"),
        (["--seed", -1], "seed must be at least 0, got -1"),
        (["--method", "csmooth"], "'csmooth' is not one of"),
    ],
)
def test_compare_rejects_by_the_library_message(arguments, rule):
    assert rule in said("compare", *COMPARE, *arguments)
