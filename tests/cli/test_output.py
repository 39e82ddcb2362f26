"""Answers in files: JSON, CSV and pictures."""

import csv
import io
import json

import pytest
from command_line import ARGUMENTS, answered, run, said

COMMANDS = {
    "quantile": [*ARGUMENTS, "--q", "0.25,0.5", "--confidence", 0.9],
    "cdf": ARGUMENTS,
    "sum": ["--column", "age", "--epsilon", 1],
    "mean": ["--column", "age", "--epsilon", 1, "--bounds", 0, 100],
    "count": ["--column", "age", "--epsilon", 1],
    "describe": ["--column", "age:0:100:1", "--epsilon", 1],
}
COLUMNS = {
    "quantile": ["q", "value", "low", "high"],
    "cdf": ["x", "p"],
    "sum": ["value"],
    "mean": ["value"],
    "count": ["value"],
    "describe": ["column", "count", "mean", "25%", "50%", "75%"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_files_hold_what_is_printed(csv_file, tmp_path, name):
    files = [tmp_path / "out.json", tmp_path / "out.CSV"]
    arguments = [csv_file, *COMMANDS[name], "--seed", 1]
    result = run(name, *arguments, "--output", files[0], "-o", files[1], "--format", "csv")
    assert result.exit_code == 0, result.output
    assert files[1].read_text() == result.stdout
    assert files[0].read_text() == run(name, *arguments, "--json").stdout
    table = run(name, *arguments)
    assert table.exit_code == 0 and "epsilon 1, delta 0" in table.stdout
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert rows[0] == COLUMNS[name]
    data = json.loads(files[0].read_text())
    if name == "quantile":
        assert [float(row[1]) for row in rows[1:]] == data["values"]
    if name == "cdf":
        assert [float(row[1]) for row in rows[1:]] == data["p"]


def test_ends_that_are_not_there_are_null_in_json(csv_file):
    arguments = ["--column", "age", "--epsilon", 0.01, "--q", 1, "--confidence", 0.99]
    out = answered("quantile", csv_file, *arguments)
    assert out["high"] == [None]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["--output", "{tmp}/a.txt"], "--output must end in .json, .csv, .png, got"),
        (["--output", "{tmp}/none/a.csv"], "--output must be a file that can be written, got"),
        (["--output", "{file}"], "--output must be another file than those read, got"),
        (["--json", "--format", "csv"], "--json must be left out with --format csv"),
        (["--format", "xml"], "'xml' is not one of 'table', 'json', 'csv'"),
    ],
)
def test_output_is_refused_before_anything_is_read(csv_file, tmp_path, options, rule, monkeypatch):
    monkeypatch.setattr("dpq_fast.engines.lines.Lines.__init__", None)
    given = [option.format(tmp=tmp_path, file=csv_file) for option in options]
    assert rule in said("quantile", csv_file, *COMMANDS["quantile"], *given)


@pytest.mark.parametrize(
    ("name", "more", "what"),
    [
        ("sum", [], "one number without groups"),
        ("describe", [], "a description"),
        ("quantile", ["--by", "name", "--groups", "a"], "groups and several levels"),
    ],
)
def test_pictures_are_refused_where_there_are_none(csv_file, tmp_path, name, more, what):
    arguments = [*COMMANDS[name], *more, "--output", tmp_path / "a.png"]
    assert f"--output must be .json or .csv for {what}" in said(name, csv_file, *arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("quantile", COMMANDS["quantile"]),
        (
            "quantile",
            [*ARGUMENTS, "--q", 0.5, "--by", "id", "--groups", "1,2", "--confidence", 0.9],
        ),
        ("quantile", [*ARGUMENTS, "--q", 0.5, "--by", "id", "--groups", "1,2"]),
        ("cdf", ARGUMENTS),
        ("count", [*COMMANDS["count"], "--by", "id", "--groups", "1,2"]),
        ("mean", [*COMMANDS["mean"], "--by", "id", "--groups", "1,2", "--confidence", 0.9]),
    ],
)
def test_pictures_are_drawn(csv_file, tmp_path, name, arguments):
    file = tmp_path / "a.png"
    result = run(name, csv_file, *arguments, "--output", file)
    assert result.exit_code == 0, result.output
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_plans_are_drawn(tmp_path):
    file = tmp_path / "plan.png"
    result = run("plan", "--q", 0.5, "--n", 1_000, "--bounds", 0, 100, "-o", file)
    assert result.exit_code == 0, result.output
    assert file.read_bytes().startswith(b"\x89PNG")


def test_an_answer_is_printed_before_a_file_fails(csv_file, tmp_path, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.write_text", broken)
    file = tmp_path / "a.csv"
    result = run("count", csv_file, *COMMANDS["count"], "--output", file, "--json")
    assert result.exit_code == 3
    assert "value" in json.loads(result.stdout)
    assert "a.csv could not be written" in " ".join(result.stderr.split())
