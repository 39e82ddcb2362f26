"""`dpq-fast audit`: claimed against measured epsilon."""

import pytest
from command_line import answered, run, said

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.cli import audits
from dpq_fast.cli.audits import settings

WITH_LAW = [name for name, setting in settings(3).items() if setting.has_law]


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("mechanism", WITH_LAW)
def test_audits_find_what_is_claimed(mechanism, neighbors):
    out = answered("audit", mechanism, "--epsilon", 1, "--neighbors", neighbors, "--records", 2)
    assert out["holds"] and out["claimed"] == 1.0
    assert 0.2 < out["measured"] <= 1.0 + 1e-9


def test_audit_is_that_of_the_library():
    out = answered("audit", "joint_exp", "--q", 0.5, "--points", 4)
    form = dict(bounds=(0, 3), resolution=1, dither=False)
    found = dpq.audit.exact("joint_exp", 3, domain=range(4), q=[0.5], epsilon=1.0, **form)
    assert out["measured"] == found.epsilon
    assert f"{found.pairs} pairs of neighbors" in out["how"]
    text = " ".join(run("audit", "joint_exp", "--q", 0.5, "--points", 4).stdout.split())
    assert "claimed epsilon" in text and "holds" in text


@pytest.mark.parametrize(
    ("mechanism", "neighbors"), [("joint_exp", "swap"), ("agg_tree", "add-remove"), ("sum", "swap")]
)
def test_audits_run_the_code_that_draws(mechanism, neighbors):
    arguments = ["--trials", 400, "--seed", 3, "--epsilon", 8, "--neighbors", neighbors]
    out = answered("audit", mechanism, *arguments, "--confidence", 0.999999)
    assert out["holds"] and 0.0 < out["measured"] < out["claimed"] == 8.0


def test_what_has_no_law_is_run(monkeypatch):
    monkeypatch.setattr(audits, "TRIALS", 50)
    out = answered("audit", "agg_tree", "--epsilon", 8, "--confidence", 0.999999, "--seed", 3)
    assert out["how"].startswith("50 runs on each of two neighbors") and out["holds"]


def test_an_audit_that_finds_more_ends_with_its_own_code(monkeypatch):
    monkeypatch.setattr(privacy.joint_exp, "sensitivity", lambda *_: 0.25)
    result = run("audit", "joint_exp")
    assert result.exit_code == 4
    assert "does not hold" in result.stdout
    assert "joint_exp loses more privacy than it claims" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["count", "--q", 0.5], "--q must be left out for count"),
        (["joint_exp", "--epsilon", -1], "epsilon must be positive and finite, got -1.0"),
        (["joint_exp", "--records", 9], "9 is not in the range 1<=x<=6"),
        (["csmooth"], "'csmooth' is not one of"),
        (["joint_exp", "--trials", 1], "trials must be"),
    ],
)
def test_audits_are_refused_for_their_options(arguments, rule):
    assert rule in said("audit", *arguments)
