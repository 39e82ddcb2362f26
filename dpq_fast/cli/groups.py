"""The groups of a release: columns of keys, and what the user lists of them."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dpq_fast.cli.files import Source
from dpq_fast.cli.options import Grouping
from dpq_fast.data.keys import BOOLEANS, CLOCKS, DATES, INTEGERS, ZONED

WORDS = {
    INTEGERS: "whole numbers",
    BOOLEANS: "true or false",
    DATES: "dates (2026-01-31)",
    ZONED: "dates with a zone (2026-01-31T00:00+00:00)",
    CLOCKS: "times of day (08:30)",
}


class Groups:
    """Checked: columns of keys, and the groups as keys of these columns.

    Parameters
    ----------
    grouping : Grouping
    source : Source
    columns : sequence of str
        Those that are released.
    delta : float

    Attributes
    ----------
    by : list of str
        Empty for a release without groups.
    keys : list or None
        None for groups that are selected.
    """

    def __init__(
        self, grouping: Grouping, source: Source, columns: Sequence[str], delta: float
    ) -> None:
        self.by = list(grouping.by)
        self.keys: list[Any] | None = None
        self.public_by = grouping.public_by
        listed = (grouping.groups, grouping.groups_file)
        if not self.by:
            if any(each is not None for each in listed) or grouping.public_by:
                raise click.UsageError("--groups, --groups-file and --public-by are for --by")
            return
        for name in self.by:
            source.check_name(name, "--by")
            if name in columns or self.by.count(name) > 1:
                raise click.UsageError(f"--by must name another column each time, got {name} twice")
        kinds = [source.kind(name) for name in self.by]
        if None not in listed:
            raise click.UsageError("--groups and --groups-file must not both be given")
        rows = _listed(*listed, len(self.by))
        if rows is None:
            if not delta > 0.0:
                raise click.UsageError(
                    "--by needs --groups or --groups-file, or a --delta (1e-6, say) for groups "
                    "that are selected privately"
                )
            return
        keys = [tuple(_key(*of) for of in zip(row, kinds, self.by, strict=True)) for row in rows]
        self.keys = [key[0] for key in keys] if len(self.by) == 1 else keys

    @property
    def name(self) -> str:
        """What is said of the keys together."""
        return ", ".join(self.by)


def _listed(groups: str | None, path: Path | None, columns: int) -> list[list[str]] | None:
    """The texts of the groups, a list for each."""
    if groups is not None:
        if columns > 1:
            raise click.UsageError("--groups-file must list the groups of several columns")
        return [[field.strip()] for field in next(csv.reader([groups]), [])]
    if path is None:
        return None
    try:
        with path.open(encoding="utf-8-sig", newline="") as content:
            rows = [[field.strip() for field in row] for row in csv.reader(content) if row]
    except (UnicodeDecodeError, csv.Error):
        raise click.UsageError(f"--groups-file must be a text in UTF-8, got {path}") from None
    for row in rows:
        if len(row) != columns:
            raise click.UsageError(
                f"--groups-file must have {columns} fields on each line, one for each --by, "
                f"got {len(row)}: {', '.join(row)}"
            )
    return rows


def _key(text: str, kind: str | None, name: str) -> Any:
    """A key of a column, from the text that was listed."""
    try:
        if kind == INTEGERS:
            return int(text)
        if kind == BOOLEANS:
            return {"true": True, "false": False}[text.lower()]
        if kind == DATES:
            return (datetime.datetime if len(text) > 10 else datetime.date).fromisoformat(text)
        if kind == ZONED:
            moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
            if moment.tzinfo is None:
                raise ValueError
            return moment
        if kind == CLOCKS:
            return datetime.time.fromisoformat(text)
    except (KeyError, ValueError):
        raise click.UsageError(
            f"groups must be {WORDS[str(kind)]}, as {name} is declared, got {text!r}"
        ) from None
    return text
