"""The way of a release: all that is public is checked, the budget charged, the records read."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import click
import numpy as np

import dpq_fast as dpq
from dpq_fast import _checks
from dpq_fast.cli import accounts, failures, files, options
from dpq_fast.cli.groups import Groups
from dpq_fast.cli.options import Form, Grouping, Intervals, Origin, Privacy
from dpq_fast.cli.output import Answer, Printer, spelled, working
from dpq_fast.data.columns import AnyUnit
from dpq_fast.data.tables import Table
from dpq_fast.data.units import Presence, unit_of
from dpq_fast.privacy import Guarantee, guarantee
from dpq_fast.privacy.relations import relation_of
from dpq_fast.released.estimate import Estimate
from dpq_fast.released.groups import GroupAnswers

NO_GROUPS = Grouping((), None, None, False)


# The part of a budget that a count beside an answer has.
COUNT_SHARE = Fraction(1, 10)


class Call(NamedTuple):
    """What a command hands to a function of the library.

    Attributes
    ----------
    table : Table
    by : TableColumns or None
    groups : list or None
    public : dict
        epsilon, neighbors, whose records there are, accountant and rng.
    budget : dict
        epsilon and rho, for functions that take both.
    rows : int or None
        Their number, where it is public and known.
    """

    table: Table
    by: Any
    groups: list[Any] | None
    public: dict[str, Any]
    budget: dict[str, Any]
    rows: int | None

    def grouped(self, privacy: Privacy, public_by: bool) -> dict[str, Any]:
        """The arguments about groups."""
        return dict(by=self.by, groups=self.groups, public_by=public_by, delta=privacy.delta)


class Budget(NamedTuple):
    """What an answer spends, and a count beside it.

    Attributes
    ----------
    epsilon, rho : float or None
        Of the answer: one of them.
    counted : float or None
        The epsilon of the count; None for no count.
    """

    epsilon: float | None
    rho: float | None
    counted: float | None

    @classmethod
    def of(cls, privacy: Privacy, with_count: bool, takes_rho: bool) -> Budget:
        """The parts of a budget, of which exactly one of epsilon and rho is given."""
        epsilon, rho = privacy.epsilon, privacy.rho
        if (epsilon is None) == (rho is None):
            came = "neither" if rho is None else "both"
            raise click.UsageError(f"exactly one of --epsilon and --rho must be given, got {came}")
        if rho is not None and not takes_rho:
            raise click.UsageError(f"--rho is for quantile, median and cdf, got {spelled(rho)}")
        if not with_count:
            return cls(epsilon, rho, None)
        if rho is None:
            whole = Fraction(*_checks.check_ratio("epsilon", epsilon))
            first = _down(COUNT_SHARE * whole)
            return cls(_down(whole - Fraction(first)), None, first)
        whole = Fraction(*_checks.check_ratio("rho", rho))
        first = _down(COUNT_SHARE * whole)
        # epsilon^2 / 2 is no less than the rho of a pure epsilon
        return cls(None, _down(whole - Fraction(first)), math.sqrt(2.0 * first))


def _down(exact: Fraction) -> float:
    """The nearest number that is not above."""
    part = float(exact)
    return part if Fraction(part) <= exact else math.nextafter(part, 0.0)


class Release:
    """One release of a file: what is public about it, checked.

    Parameters
    ----------
    what : str
        The name of the release.
    origin : Origin
    places : mapping
        Of columns: their bounds, resolution and the like, by which they are read as numbers or
        times; None for what is only counted.
    privacy : Privacy
    form : Form
    grouping : Grouping, optional
    plain : str, optional
        Why there is no picture.
    with_count : bool, default False
        Whether there is a count beside the answer.
    takes_rho : bool, default False

    Attributes
    ----------
    source : Source
    groups : Groups
    count : object
        What was counted beside the answer, once it was; None without.
    """

    def __init__(
        self,
        what: str,
        origin: Origin,
        places: Mapping[str, Mapping[str, Any] | None],
        privacy: Privacy,
        form: Form,
        grouping: Grouping = NO_GROUPS,
        plain: str = "",
        with_count: bool = False,
        takes_rho: bool = False,
    ) -> None:
        options.check_person(
            bool(privacy.privacy_unit), privacy.contributions, privacy.max_contributions
        )
        with failures.refusals():
            self._units: dict[str, AnyUnit] = {
                name: Presence() if place is None else unit_of(place)
                for name, place in places.items()
            }
            self._workers = _checks.check_workers(1 if origin.workers is None else origin.workers)
            self._budget = Budget.of(privacy, with_count, takes_rho)
        self.source = files.opened(origin)
        self._what, self._columns, self._privacy = what, list(places), privacy
        for name in places:
            self.source.check_name(name)
            self.source.check_records(name, self._units[name])
        self.groups = Groups(grouping, self.source, self._columns, privacy.delta)
        self._check_ids()
        taken = [origin.file, privacy.budget, grouping.groups_file]
        self._printer = Printer(form, taken, plain)
        self._budget_left = ""
        self.count: Any = None

    def _check_ids(self) -> None:
        """Refuse columns of ids that are none, or are something else."""
        ids = self._privacy.privacy_unit
        for name in ids:
            self.source.check_name(name, "--privacy-unit")
            if name in (*self._columns, *self.groups.by) or ids.count(name) > 1:
                raise click.UsageError(
                    f"--privacy-unit must name another column each time, got {name} twice"
                )
            self.source.check_ids(name)

    def release(self, function: Callable[[Call], Any]) -> tuple[Any, Guarantee]:
        """What a function of the library releases, and what it was charged with."""
        privacy = self._privacy
        keys = [*self.groups.by, *privacy.privacy_unit]
        table = self.source.table(self._units, keys, self._workers)
        what = f"{self._what} of {', '.join(self._columns)}"
        what += f" by {self.groups.name}" if self.groups.by else ""
        beside = None if self._budget.counted is None else self._count_guarantee
        with accounts.opened(privacy, f"{what}, {self.source.label}", beside) as (
            account,
            relation,
        ):
            # that of persons is public, and not known before they are read
            known = relation_of(relation).n_is_public and not privacy.privacy_unit
            rows = self.source.rows() if known else None
            public = dict(
                epsilon=self._budget.epsilon,
                neighbors=relation,
                **privacy.person,
                accountant=account,
                rng=privacy.seed,
            )
            budget = {"epsilon": self._budget.epsilon, "rho": self._budget.rho}
            by = table[tuple(self.groups.by)] if self.groups.by else None
            call = Call(
                *(table, by, self.groups.keys, public, budget),
                None if rows is None else max(rows, 1),
            )
            with working(f"{what}, {self.source.label}"), account.releasing():
                answer = function(call)
                if self._budget.counted is not None:
                    self.count = self._counted(call, answer)
            self._budget_left = account.left()
        assert account.guarantee is not None
        if privacy.seed is not None:
            click.echo(
                "--seed makes the noise repeatable: for experiments only, not private", err=True
            )
        return answer, account.guarantee

    def _count_guarantee(self, neighbors: str) -> Guarantee:
        public = dict[str, Any](epsilon=self._budget.counted, neighbors=neighbors)
        most = self._privacy.most
        if self.groups.by:
            public["public_by"] = self.groups.public_by
            return guarantee("count_by", max_contributions=most, **public)
        # of persons there is one record each
        return guarantee("count", max_contributions=1 if self._privacy.shares else most, **public)

    def _counted(self, call: Call, answer: Any) -> Any:
        """How many records the answer is of, with noise; it was charged with the answer."""
        (name,) = self._columns
        column, seed = call.table[name], self._privacy.seed
        public = call.public | dict(
            epsilon=self._budget.counted,
            accountant=None,
            # other noise than that of the answer
            rng=None if seed is None else np.random.default_rng([seed, 1]),
        )
        if call.by is None:
            return dpq.count(column, **public)
        groups = answer.groups.tolist()
        public_by = self.groups.public_by
        return dpq.count_by(column, call.by, groups=groups, public_by=public_by, **public).values

    def write(self, answer: Answer) -> None:
        """Print it, and write it to files."""
        self._printer.write(answer)

    def facts(self, guarantee: Guarantee, known: Sequence[str]) -> str:
        """What an answer promises, in a line."""
        unit = self._about()
        spent = [f"epsilon {spelled(guarantee.epsilon)}, delta {spelled(guarantee.delta)}"]
        if self._privacy.rho is not None:
            spent = [f"rho {spelled(guarantee.implied_rho)}"]
        facts = ", ".join([*spent, f"neighbors {guarantee.neighbors} ({unit})", *known])
        if self.count is not None and not self.groups.by:
            counted = "persons" if self._privacy.shares else "records"
            facts += f"\nabout {self.count} {counted} that count (a tenth of the budget)"
        return facts + self._budget_left

    def _about(self) -> str:
        """What the guarantee is about."""
        privacy = self._privacy
        if privacy.privacy_unit:
            names = ", ".join(privacy.privacy_unit)
            what = "by weights" if privacy.shares else f"up to {privacy.most} records"
            return f"one person of {names}, {what}"
        return "one record" if privacy.most == 1 else f"one person, up to {privacy.most} records"

    def data(self, guarantee: Guarantee) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "neighbors": guarantee.neighbors,
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            **({} if self._privacy.rho is None else {"rho": guarantee.implied_rho}),
            **self._privacy.person,
            **({} if self.count is None else {"count": plain(self.count)}),
        }

    def counts(self, rows: int) -> dict[str, list[Any]]:
        """The count beside an answer as a column of `rows` rows; nothing without one."""
        if self.count is None:
            return {}
        counted = np.ravel(self.count)
        return {"count": np.repeat(counted, rows // max(counted.size, 1)).tolist()}

    def of_groups(self, keys: Sequence[Any]) -> dict[str, list[Any]]:
        """Columns of keys, as text where they are dates."""
        tuples = [key if isinstance(key, tuple) else (key,) for key in keys]
        return {
            name: [plain(key[place]) for key in tuples] for place, name in enumerate(self.groups.by)
        }


def plain(key: Any) -> Any:
    """A key, a number, or several of them as JSON has them; times as text, None for none."""
    if isinstance(key, (np.ndarray, tuple)) and np.ndim(key):
        return [plain(each) for each in key]
    key = key[()] if isinstance(key, np.ndarray) else key
    if isinstance(key, np.timedelta64):
        return f"{int(key.view(np.int64))}{np.datetime_data(key.dtype)[0]}"
    if isinstance(key, np.datetime64):
        return None if np.isnat(key) else str(key)
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, datetime.date):
        return key.isoformat()
    return key if key is None or isinstance(key, (str, int, float)) else str(key)


def shown(value: Any) -> str:
    """A public number or time as it is shown."""
    return spelled(plain(value))


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


def cells(part: Any) -> list[Any]:
    """The numbers or times of a part of an answer, as they are shown."""
    return [plain(each) for each in np.ravel(part)]


def names_in_json(parts: dict[str, Any], value: str) -> dict[str, Any]:
    """The parts of an answer for JSON, the value by a name of its own."""
    return {value if name == "value" else name: plain(part) for name, part in parts.items()}


def interval_words(intervals: Intervals) -> list[str]:
    """What is said of intervals, if there are any."""
    if intervals.confidence is None:
        return []
    return [f"{spelled(100 * intervals.confidence)}% intervals for the {intervals.covers}"]


def interval_data(intervals: Intervals) -> dict[str, Any]:
    """The same for JSON."""
    return {} if intervals.confidence is None else dict(intervals._asdict())
