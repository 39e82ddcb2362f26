"""The way of a release: all that is public is checked, the budget charged, the records read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from dpq_fast.cli import accounts, files
from dpq_fast.cli.groups import Groups
from dpq_fast.cli.options import Form, Grouping, Intervals, Privacy
from dpq_fast.cli.output import Answer, Printer, spelled, working
from dpq_fast.data.tables import Table
from dpq_fast.mechanisms.estimate import Estimate
from dpq_fast.mechanisms.grouping import GroupAnswers
from dpq_fast.privacy import Guarantee
from dpq_fast.privacy.relations import relation_of

NO_GROUPS = Grouping((), None, None, False)


class Call(NamedTuple):
    """What a command hands to a function of the library.

    Attributes
    ----------
    table : Table
    by : TableColumns or None
    groups : list or None
    public : dict
        epsilon, neighbors, max_contributions, accountant and rng.
    rows : int or None
        Their number, where it is public and known.
    """

    table: Table
    by: Any
    groups: list[Any] | None
    public: dict[str, Any]
    rows: int | None

    def grouped(self, privacy: Privacy, public_by: bool) -> dict[str, Any]:
        """The arguments about groups."""
        return dict(by=self.by, groups=self.groups, public_by=public_by, delta=privacy.delta)


class Release:
    """One release of a file: what is public about it, checked.

    Parameters
    ----------
    what : str
        The name of the release.
    file : Path
    table : str or None
    columns : sequence of str
    privacy : Privacy
    form : Form
    grouping : Grouping, optional
    plain : str, optional
        Why there is no picture.
    may_be_times : bool, default False
        Whether columns may hold times.

    Attributes
    ----------
    source : Source
    groups : Groups
    """

    def __init__(
        self,
        what: str,
        file: Path,
        table: str | None,
        columns: Sequence[str],
        privacy: Privacy,
        form: Form,
        grouping: Grouping = NO_GROUPS,
        plain: str = "",
        may_be_times: bool = False,
    ) -> None:
        self.source = files.opened(file, table)
        self._what, self._columns, self._privacy = what, columns, privacy
        for name in columns:
            self.source.check_name(name)
            self.source.check_numbers(name, may_be_times)
        self.groups = Groups(grouping, self.source, columns, privacy.delta)
        taken = [file, privacy.budget, grouping.groups_file]
        self._printer = Printer(form, taken, plain)
        self._budget_left = ""

    def release(self, function: Callable[[Call], Any]) -> tuple[Any, Guarantee]:
        """What a function of the library releases, and what it was charged with."""
        privacy = self._privacy
        table = self.source.table(self._columns, self.groups.by)
        what = f"{self._what} of {', '.join(self._columns)}"
        what += f" by {self.groups.name}" if self.groups.by else ""
        with accounts.opened(privacy, f"{what}, {self.source.label}") as (account, neighbors):
            rows = self.source.rows() if relation_of(neighbors).n_is_public else None
            public = dict(
                epsilon=privacy.epsilon,
                neighbors=neighbors,
                max_contributions=privacy.max_contributions,
                accountant=account,
                rng=privacy.seed,
            )
            by = table[tuple(self.groups.by)] if self.groups.by else None
            call = Call(table, by, self.groups.keys, public, None if rows is None else max(rows, 1))
            with working(f"{what}, {self.source.label}"), account.releasing():
                answer = function(call)
            self._budget_left = account.left()
        assert account.guarantee is not None
        if privacy.seed is not None:
            click.echo(
                "--seed makes the noise repeatable: for experiments only, not private", err=True
            )
        return answer, account.guarantee

    def write(self, answer: Answer) -> None:
        """Print it, and write it to files."""
        self._printer.write(answer)

    def facts(self, guarantee: Guarantee, known: Sequence[str]) -> str:
        """What an answer promises, in a line."""
        k = self._privacy.max_contributions
        unit = "one record" if k == 1 else f"one person, up to {k} records"
        parts = [
            f"epsilon {spelled(guarantee.epsilon)}, delta {spelled(guarantee.delta)}, "
            f"neighbors {guarantee.neighbors} ({unit})",
            *known,
        ]
        return ", ".join(parts) + self._budget_left

    def data(self, guarantee: Guarantee) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "neighbors": guarantee.neighbors,
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "max_contributions": self._privacy.max_contributions,
        }

    def of_groups(self, keys: Sequence[Any]) -> dict[str, list[Any]]:
        """Columns of keys, as text where they are dates."""
        tuples = [key if isinstance(key, tuple) else (key,) for key in keys]
        return {
            name: [plain(key[place]) for key in tuples] for place, name in enumerate(self.groups.by)
        }


def plain(key: Any) -> Any:
    """A key or a number as JSON has them."""
    if isinstance(key, np.generic):
        key = key.item()
    return key if key is None or isinstance(key, (str, int, float)) else str(key)


def listed(groups: Mapping[str, Sequence[Any]]) -> list[Any]:
    """One key for each group, or a list of them where there are several columns."""
    if len(groups) == 1:
        return list(*groups.values())
    return [list(row) for row in zip(*groups.values(), strict=True)]


def drawn_keys(groups: Mapping[str, Sequence[Any]]) -> list[Any]:
    """The same for a picture, which takes tuples."""
    return [tuple(key) if isinstance(key, list) else key for key in listed(groups)]


def drawn_values(answer: Any) -> Any:
    """One number for each group, or one with its interval."""
    values = np.ravel(answer.values)
    if answer.low is None:
        return values
    low, high = np.ravel(answer.low), np.ravel(answer.high)
    return Estimate(values, low, high, answer.confidence, answer.covers)


def parts_of(answer: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The value of an answer, and the ends of its interval if it has one."""
    if isinstance(answer, GroupAnswers):
        if answer.low is None or answer.high is None:
            return {"value": answer.values}
        return {"value": answer.values, "low": answer.low, "high": answer.high}
    if isinstance(answer, Estimate):
        return {
            name: np.asarray(part)
            for name, part in zip(("value", "low", "high"), answer, strict=True)
        }
    return {"value": np.asarray(answer)}


def names_in_json(parts: dict[str, Any], value: str) -> dict[str, Any]:
    """The parts of an answer for JSON, the value by a name of its own."""
    return {value if name == "value" else name: part.tolist() for name, part in parts.items()}


def interval_words(intervals: Intervals) -> list[str]:
    """What is said of intervals, if there are any."""
    if intervals.confidence is None:
        return []
    return [f"{spelled(100 * intervals.confidence)}% intervals for the {intervals.covers}"]


def interval_data(intervals: Intervals) -> dict[str, Any]:
    """The same for JSON."""
    return {} if intervals.confidence is None else dict(intervals._asdict())
