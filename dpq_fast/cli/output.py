"""Answers as a table, JSON, CSV or a picture, on standard output and in files."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from dpq_fast import _checks
from dpq_fast.cli.failures import Broken, refusals
from dpq_fast.cli.options import Form
from dpq_fast.released.estimate import in_json

PICTURE = ".png"
SUFFIXES = (".json", ".csv", PICTURE)


@dataclass(frozen=True)
class Answer:
    """What a command prints.

    Attributes
    ----------
    title : str
    headings : sequence of str
        Of the table that is printed.
    rows : sequence of sequences
        Cells: numbers, texts, or None for none.
    notes : str
        Below the table.
    data : dict
        The same as JSON.
    columns : mapping of sequences
        The same as CSV, by name.
    draw : callable, optional
        The same as a picture, on Matplotlib axes.
    texts : int, default 0
        How many of the first columns of the table are aligned as texts.
    plain : str, optional
        What is printed in place of the table.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: str
    data: dict[str, Any]
    columns: Mapping[str, Sequence[Any]]
    draw: Callable[[Any], Any] | None = field(default=None, repr=False)
    texts: int = 0
    plain: str | None = None

    def to_json(self) -> str:
        """One object; an end that is not there is null."""
        return json.dumps(in_json(self.data), allow_nan=False)

    def to_csv(self) -> str:
        """A line of names, and one for each row."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        for row in zip(*self.columns.values(), strict=True):
            writer.writerow(["" if cell is None else spelled(cell) for cell in row])
        return text.getvalue()

    def show(self) -> None:
        """The table on standard output."""
        screen = console()
        if self.plain is not None:
            click.echo(self.plain)
            return
        table = Table()
        for place, heading in enumerate(self.headings):
            table.add_column(heading, justify="left" if place < self.texts else "right")
        for row in self.rows:
            table.add_row(*map(spelled, row))
        screen.print(self.title)
        screen.print(table)
        if self.notes:
            screen.print(self.notes)

    def picture(self, path: Path) -> None:
        """A file of the picture."""
        figure = _checks.extra("matplotlib.figure", f"a {PICTURE} file", "plot").Figure(
            layout="constrained"
        )
        assert self.draw is not None
        self.draw(figure.subplots())
        figure.savefig(path)


class Printer:
    """Where an answer goes: checked before anything is charged.

    Parameters
    ----------
    form : Form
    taken : sequence of Path
        Files that are read, or charged: no answer is written over them.
    plain : str, optional
        What it is that has no picture; empty for what has one.
    """

    def __init__(self, form: Form, taken: Sequence[Path | None] = (), plain: str = "") -> None:
        if form.as_json and form.form not in (None, "json"):
            raise click.UsageError(f"--json must be left out with --format {form.form}")
        self._format = "json" if form.as_json else form.form or "table"
        self._files = form.output
        for path in self._files:
            _check_file(path, [each for each in taken if each is not None])
        if any(path.suffix.lower() == PICTURE for path in self._files):
            if plain:
                raise click.UsageError(f"--output must be .json or .csv for {plain}")
            with refusals():
                _checks.extra("matplotlib", f"a {PICTURE} file", "plot")

    def write(self, answer: Answer) -> None:
        """Print the answer and write the files; what was paid for is not lost if one fails."""
        if self._format == "table":
            answer.show()
        else:
            text = answer.to_json() + "\n" if self._format == "json" else answer.to_csv()
            click.echo(text, nl=False)
        self.save(answer)

    def save(self, answer: Answer) -> None:
        """Write the files alone."""
        for path in self._files:
            suffix = path.suffix.lower()
            try:
                if suffix == PICTURE:
                    answer.picture(path)
                else:
                    text = answer.to_json() + "\n" if suffix == ".json" else answer.to_csv()
                    path.write_text(text, "utf-8", newline="\n")
            except Exception:
                raise Broken(f"{path} could not be written") from None


def _check_file(path: Path, taken: list[Path]) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"--output must end in {', '.join(SUFFIXES)}, got {path}")
    if not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise click.UsageError(f"--output must be a file that can be written, got {path}")
    if any(path.exists() and each.exists() and path.samefile(each) for each in taken):
        raise click.UsageError(f"--output must be another file than those read, got {path}")


def console() -> Console:
    """Standard output, plain: column names are text, never markup."""
    return Console(markup=False, emoji=False, highlight=False)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal that the command is at work; nothing about how much there is to do."""
    screen = Console(stderr=True, markup=False, emoji=False, highlight=False)
    if not sys.stderr.isatty():
        yield
        return
    with screen.status(what):
        yield


def spelled(value: Any) -> str:
    """Shortest text that reads back as `value`, without a trailing ``.0``; "none" for None."""
    if value is None:
        return "none"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
