"""The command `dpq-fast` as tests call it."""

import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result

from dpq_fast import cli
from dpq_fast.cli import files
from dpq_fast.engines.files import TextFile

BOUNDS = (0.0, 100.0)
ARGUMENTS = ["--column", "age", "--epsilon", "1", "--bounds", "0", "100"]


def run(*arguments: object, input: bytes | None = None) -> Result:
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments], input=input)


def said(*arguments: object, code: int = 2, **given: bytes) -> str:
    """What a command prints that fails, on one line: no traceback, nothing released."""
    result = run(*arguments, **given)
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    return " ".join(result.stderr.split())


def refused(*arguments: object) -> str:
    """What a refused quantile prints."""
    return said("quantile", *arguments)


def answered(*arguments: object, **given: bytes) -> dict:
    """The JSON object of a command that succeeds."""
    result = run(*arguments, "--json", **given)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def released(*arguments: object) -> dict:
    """The JSON object of a quantile."""
    return answered("quantile", *arguments)


def read_column(path: Path, name: str) -> np.ndarray:
    """The records of a column of a CSV file."""
    return (
        files.CsvFiles(path.name, [TextFile(path)], [name]).read({name: None}, [])[name].to_numpy()
    )
