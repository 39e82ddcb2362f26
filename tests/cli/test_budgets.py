"""Ledgers: `--budget` of every command that reads records, and `dpq-fast budget`."""

import csv
import io
import json
from pathlib import Path

import pytest
from command_line import answered, run, said

from dpq_fast.privacy import Accountant, Guarantee

BOUNDS = ["--bounds", 0, 100]
COMMANDS = {
    "quantile": ["--column", "age", "--q", "0.5", *BOUNDS],
    "median": ["--column", "age", *BOUNDS],
    "cdf": ["--column", "age", *BOUNDS],
    "sum": ["--column", "age", *BOUNDS],
    "mean": ["--column", "age", *BOUNDS],
    "count": ["--column", "age"],
    "describe": ["--column", "age:0:100"],
}


@pytest.fixture
def budget(tmp_path: Path) -> Path:
    file = tmp_path / "people.budget"
    result = run("budget", "new", file, "--epsilon", 2, "--delta", 1e-6)
    assert result.exit_code == 0, result.output
    assert "epsilon 2, delta 1e-06, neighbors swap, composition basic" in result.stdout
    return file


def charges(file: Path) -> list[tuple[str, float | None]]:
    with Accountant.open(file) as found:
        return [(entry.what, entry.guarantee.epsilon) for entry in found.entries]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_charge_the_budget_and_say_what_for(csv_file, budget, command):
    arguments = [csv_file, *COMMANDS[command], "--budget", budget]
    result = run(command, *arguments, "--epsilon", 0.5)
    assert result.exit_code == 0, result.output
    assert "left in" in result.stdout and "epsilon 1.5" in result.stdout
    ((what, epsilon),) = charges(budget)
    assert what == f"{command} of age, people.csv"
    assert epsilon == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_beyond_the_budget_read_nothing(csv_file, budget, command, monkeypatch):
    monkeypatch.setattr("dpq_fast.cli.files.CsvFiles.read", None)
    arguments = [csv_file, *COMMANDS[command], "--epsilon", 2.5, "--budget", budget]
    message = said(command, *arguments, code=1)
    assert f"the budget in {budget}".replace(" ", "") in message.replace(" ", "")
    assert "a release must fit the budget of epsilon=2.0" in message
    assert charges(budget) == []


def test_commands_refused_for_an_option_charge_nothing(csv_file, budget):
    for options in (
        ["--epsilon", 0],
        ["--epsilon", 1, "--bounds", 1, 0],
        ["--epsilon", 1, "--q", 2],
    ):
        said("quantile", csv_file, *COMMANDS["quantile"], *options, "--budget", budget)
    assert charges(budget) == []


@pytest.mark.parametrize(
    "options",
    [
        ["--delimiter", "ab"],
        ["--decimal", "7"],
        ["--thousands", "."],
        ["--strip", "-"],
        ["--encoding", "none"],
        ["--skip-lines", -1],
        ["--skip-lines", 5_000],
        ["--workers", 0],
        ["--column", "agee"],
        ["--resolution", "1h"],
        ["--bounds", "2024-01-01", 5],
        ["--table", "people"],
        ["--rho", 1],
    ],
    ids=lambda options: " ".join(map(str, options)),
)
@pytest.mark.parametrize("more", [[], ["--with-count"]])
def test_public_facts_are_refused_before_the_charge(csv_file, budget, options, more, monkeypatch):
    monkeypatch.setattr("dpq_fast.cli.files.CsvFiles.read", None)
    arguments = [*COMMANDS["quantile"], "--epsilon", 1, *map(str, options), *more]
    assert "Traceback" not in said("quantile", csv_file, *arguments, "--budget", budget)
    assert charges(budget) == []


def test_a_failure_after_the_charge_leaves_it(csv_file, budget, monkeypatch):
    monkeypatch.setattr("dpq_fast.engines.lines.Lines.numbers", None)
    arguments = ["--epsilon", 0.5, "--budget", budget]
    said("quantile", csv_file, *COMMANDS["quantile"], *arguments, code=3)
    assert len(charges(budget)) == 1


def test_groups_and_pipes_are_noted(csv_file, budget):
    arguments = [*COMMANDS["quantile"], "--by", "name", "--groups", "a", "--epsilon", 0.1]
    answered("quantile", "-", *arguments, "--budget", budget, input=csv_file.read_bytes())
    assert charges(budget) == [("quantile of age by name, standard input", 0.1)]


def test_the_relation_is_that_of_the_budget(csv_file, tmp_path):
    file = tmp_path / "a.budget"
    assert run("budget", "new", file, "--epsilon", 1, "--neighbors", "add-remove").exit_code == 0
    arguments = [csv_file, *COMMANDS["count"], "--epsilon", 0.5, "--budget", file]
    assert answered("count", *arguments)["neighbors"] == "add-remove"
    message = said("count", *arguments, "--neighbors", "swap")
    assert "--neighbors must be that of the budget in" in message
    assert "add-remove, got swap" in message


def test_budgets_may_be_of_zcdp(csv_file, tmp_path):
    file = tmp_path / "z.budget"
    arguments = ["--epsilon", 1, "--delta", 1e-6, "--composition", "zcdp"]
    assert run("budget", "new", file, *arguments).exit_code == 0
    for _ in range(3):
        answered("count", csv_file, *COMMANDS["count"], "--epsilon", 0.1, "--budget", file)
    result = run("budget", "show", file)
    assert "composition zcdp" in " ".join(result.stdout.split()) and "rho" in result.stdout


def test_show_check_and_export(csv_file, budget, tmp_path):
    for epsilon in (0.5, 0.25):
        answered("count", csv_file, *COMMANDS["count"], "--epsilon", epsilon, "--budget", budget)
    shown = json.loads(run("budget", "show", budget, "--json").stdout)
    assert shown["budget"] == {
        "epsilon": 2.0,
        "delta": 1e-6,
        "neighbors": "swap",
        "composition": "basic",
    }
    assert (shown["spent"]["epsilon"], shown["left"]["epsilon"]) == (0.75, 1.25)
    assert [each["what"] for each in shown["charges"]] == ["count of age, people.csv"] * 2
    table = run("budget", "show", budget)
    assert table.exit_code == 0 and "left: epsilon 1.25" in " ".join(table.stdout.split())
    checked = run("budget", "check", budget)
    assert checked.exit_code == 0 and "2 charges" in checked.stdout
    files = [tmp_path / "spent.csv", tmp_path / "spent.json"]
    exported = run("budget", "export", budget, "-o", files[0], "-o", files[1])
    assert exported.exit_code == 0 and exported.stdout == ""
    rows = list(csv.DictReader(io.StringIO(files[0].read_text())))
    assert [float(row["epsilon"]) for row in rows] == [0.5, 0.25]
    assert json.loads(files[1].read_text()) == shown


def test_check_finds_a_changed_ledger(budget, monkeypatch):
    def wrong(*_: object) -> None:
        raise ValueError("entry 1 must be as it was made, got a changed one")

    with Accountant.open(budget) as found:
        monkeypatch.setattr(type(found), "check", wrong)
    message = said("budget", "check", budget, code=4)
    assert "entry 1 must be as it was made" in message


def test_budgets_are_refused_for_what_they_are(csv_file, budget, tmp_path):
    message = said("budget", "new", budget, "--epsilon", 1)
    assert "LEDGER must be a new file, got" in message
    assert "epsilon must be positive" in said("budget", "new", tmp_path / "b", "--epsilon", 0)
    other = tmp_path / "other.budget"
    other.write_text("no ledger " * 1_000)
    arguments = [csv_file, *COMMANDS["count"], "--epsilon", 1, "--budget"]
    assert "path must be a ledger" in said("count", *arguments, other)
    assert "does not exist" in said("count", *arguments, tmp_path / "none")
    assert "is a directory" in said("count", *arguments, tmp_path)
    for command in ("show", "check"):
        assert "path must be a ledger" in said("budget", command, other)
    message = said("count", *arguments, budget, "--output", tmp_path / "a.txt")
    assert "--output must end in" in message
    with Accountant.open(budget) as found:
        found.charge(Guarantee(1.0))
        assert len(found.entries) == 1


def test_a_budget_is_not_written_over(csv_file, budget, tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to(budget)
    arguments = [csv_file, *COMMANDS["count"], "--epsilon", 1, "--budget", budget]
    assert "--output must be another file" in said("count", *arguments, "--output", link)
    assert "--output must be another file" in said("budget", "export", budget, "--output", link)
