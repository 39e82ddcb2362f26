"""The command as a whole: help, exit codes, completion, failures."""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from command_line import ARGUMENTS, run, said

from dpq_fast import cli
from dpq_fast.cli import output
from dpq_fast.cli.failures import CODES

COMMANDS = list(cli.main.commands)
BUDGETS = [("budget", name) for name in ("new", "show", "check", "export")]
READERS = ["quantile", "median", "cdf", "sum", "mean", "count", "describe"]


@pytest.mark.slow
@pytest.mark.parametrize("module", ["click", "rich", "pyarrow"])
def test_cli_without_its_extra_names_the_extra(tmp_path, module):
    code = f"import sys; sys.modules[{module!r}] = None; import dpq_fast.cli"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert result.stderr.splitlines() == [f"dpq-fast needs {module}: pip install 'dpq_fast[cli]'"]


def test_help_lists_commands_in_the_order_of_use_and_the_exit_codes():
    text = run("--help").stdout
    places = [text.index(f"\n  {name} ") for name in COMMANDS]
    assert places == sorted(places)
    for code, what in CODES.items():
        assert f"{code} " in text and what in text
    assert max(map(len, text.splitlines())) <= 80
    for listed in (text, run("budget", "--help").stdout):
        assert "..." not in listed.partition("Commands:")[2]  # each is told in a whole line


@pytest.mark.parametrize("path", [*[(name,) for name in COMMANDS], *BUDGETS], ids=" ".join)
def test_help_of_each_command_has_examples_that_work_as_they_stand(path, tmp_path, monkeypatch):
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    examples = result.stdout.partition("For example:\n")[2].partition("\n\n")[0]
    lines = [shlex.split(line) for line in examples.replace("\\\n", " ").splitlines()]
    assert lines and all(line[0] == "dpq-fast" for line in lines)
    assert any(line[1 : 1 + len(path)] == list(path) for line in lines)
    monkeypatch.chdir(tmp_path)
    people = [f"{20 + j % 50},{2_000 + 10 * j},{('Aston', 'Barnet')[j % 2]}" for j in range(200)]
    (tmp_path / "staff.csv").write_text("\n".join(["age,pay,town", *people]))
    if path in BUDGETS[1:]:
        assert run("budget", "new", "staff.budget", "--epsilon", 2).exit_code == 0
    for line in lines:
        words = [word for word in line[1:] if not word.startswith((">", "~"))]
        words = [word for word in words if not word.endswith(".fish")]
        result = run(*words)
        assert result.exit_code == 0, (line, result.output)


@pytest.mark.parametrize("command", READERS)
def test_help_of_releases_teaches_the_words_and_sorts_options(command):
    text = run(command, "--help").stdout
    headings = ["What to release:", "Privacy:", "Output:"]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)
    assert "epsilon is the privacy budget" in " ".join(text.split())
    assert "bounds are a range that surely covers" in " ".join(text.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell):
    text = run("completion", shell).stdout
    assert "_DPQ_FAST_COMPLETE" in text and "dpq-fast" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


def test_completion_completes_commands_and_options():
    words = {"COMP_WORDS": "dpq-fast quantile --bo", "COMP_CWORD": "2"}
    environment = os.environ | words | {"_DPQ_FAST_COMPLETE": "bash_complete"}
    runner = CliRunner()
    result = runner.invoke(cli.main, [], prog_name="dpq-fast", env=environment)
    assert result.stdout == "plain,--bounds\n"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted; what was charged, if anything, stays charged"),
        (MemoryError("Zebediah"), 3, "the command failed; what was charged, if anything, stays"),
        (RuntimeError("Zebediah"), 3, "the command failed; what was charged, if anything, stays"),
        (OSError(5, "Zebediah"), 3, "a file could not be read or written"),
    ],
)
def test_every_failure_is_a_message_and_a_code(csv_file, monkeypatch, error, code, words):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(output.Answer, "show", fail)
    message = said("quantile", csv_file, *ARGUMENTS, "--q", 0.5, code=code)
    assert words in message
    assert "Zebediah" not in message and "Traceback" not in message


def test_an_interrupt_while_records_are_read_is_one(csv_file, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dpq_fast.engines.lines.Lines.numbers", interrupted)
    said("quantile", csv_file, *ARGUMENTS, "--q", 0.5, code=130)


@pytest.mark.slow
def test_a_reader_that_is_gone_is_no_failure(csv_file):
    arguments = [str(each) for each in ("cdf", csv_file, *ARGUMENTS, "--format", "csv")]
    code = f"from dpq_fast.cli import main; main({arguments!r})"
    started = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=csv_file.parent,  # not where the package's source is, which may not be built
    )
    with started as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 3


def test_nothing_is_said_of_work_that_is_not_on_a_terminal(csv_file):
    result = run("quantile", csv_file, *ARGUMENTS, "--q", 0.5)
    assert result.stderr == ""


def test_work_on_a_terminal_shows_public_words_alone(csv_file, monkeypatch):
    shown = []

    class Screen:
        def __init__(self, **_: object) -> None:
            pass

        def status(self, what: str) -> object:
            shown.append(what)
            return contextlib.nullcontext()

    monkeypatch.setattr(output, "Console", Screen)
    monkeypatch.setattr(output.sys.stderr.__class__, "isatty", lambda self: True, raising=False)
    with output.working("quantile of age, people.csv"):
        pass
    assert shown == ["quantile of age, people.csv"]


def test_main_takes_no_abbreviations_of_commands():
    assert "No such command 'quant'" in said("quant")
    assert isinstance(cli.main, click.Group)
