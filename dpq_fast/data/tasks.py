"""Tasks: what is asked of all rows of a table, and the engine that answers.

Who makes the pass is an engine's business: it may run the query on each part of the rows and
combine the states, or answer it in words of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.columns import AnyUnit, as_column, as_float64, check_type
from dpq_fast.data.key_columns import declared_kind
from dpq_fast.data.key_counts import KeyTotals, totals_of
from dpq_fast.data.passes import Query, State, scan
from dpq_fast.data.public_keys import Groups

# Some rows: a column of each name.
ColumnOf = Callable[[str], Any]


class Texts(Protocol):
    """A column of texts, which are numbers, times or keys as they are asked for."""

    def records(self, unit: AnyUnit) -> NDArray[Any]:
        """As numbers, or as times in a unit; what is none of them is missing."""

    def keys(self) -> Any:
        """As a column of strings."""


def records(rows: ColumnOf, name: str, unit: AnyUnit) -> NDArray[Any]:
    """The records of some rows in a column, as `as_column` has them."""
    column = rows(name)
    if hasattr(type(column), "records"):
        texts: Texts = column
        return texts.records(unit)
    return as_column(column, unit)


def keys_of(rows: ColumnOf, by: tuple[str, ...]) -> list[Any]:
    """Columns of keys of some rows."""
    columns = [rows(name) for name in by]
    return [each.keys() if hasattr(type(each), "records") else each for each in columns]


class Task(ABC, Generic[State]):
    """One thing that is asked of all rows: as a `Query`, of rows in place of records.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns that it needs.
    """

    columns: tuple[str, ...]

    @abstractmethod
    def start(self) -> State:
        """The state of no rows."""

    @abstractmethod
    def step(self, state: State, rows: ColumnOf) -> None:
        """Add some rows to a state."""

    @abstractmethod
    def combine(self, one: State, other: State) -> State:
        """The state of both."""


@dataclass(frozen=True)
class ColumnTask(Task[State]):
    """A query of the records of one column.

    Attributes
    ----------
    column : str
    unit : Unit, Presence or None
        What its records are read as.
    query : Query
    """

    column: str
    unit: AnyUnit
    query: Query[State]

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """As `Task.columns`."""
        return (self.column,)

    def start(self) -> State:
        return self.query.start()

    def step(self, state: State, rows: ColumnOf) -> None:
        scan(records(rows, self.column, self.unit), self.query, state)

    def combine(self, one: State, other: State) -> State:
        return self.query.combine(one, other)


@dataclass(frozen=True)
class GroupTask(Task[dict[int, State]]):
    """A query of the records of each group: states by the number of the group, where it has rows.

    Attributes
    ----------
    column : str
    unit : Unit, Presence or None
    query : Query
    by : tuple of str
        Columns of keys.
    groups : Groups
    """

    column: str
    unit: AnyUnit
    query: Query[State]
    by: tuple[str, ...]
    groups: Groups

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """As `Task.columns`."""
        return (self.column, *self.by)

    def start(self) -> dict[int, State]:
        return {}

    def step(self, state: dict[int, State], rows: ColumnOf) -> None:
        self.query.step_groups(state, *by_group(*members(self, rows)))

    def combine(self, one: dict[int, State], other: dict[int, State]) -> dict[int, State]:
        for group, state in other.items():
            one[group] = self.query.combine(one[group], state) if group in one else state
        return one


class OfGroups(Protocol):
    """A task that asks for the records of groups.

    Attributes
    ----------
    column, unit, by, groups
        As of `GroupTask`.
    """

    @property
    def column(self) -> str:
        """The name of the column of records."""

    @property
    def unit(self) -> AnyUnit:
        """What its records are read as."""

    @property
    def by(self) -> tuple[str, ...]:
        """Columns of keys."""

    @property
    def groups(self) -> Groups:
        """Which groups."""


def members(task: OfGroups, rows: ColumnOf) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Those of some rows that are in one of the groups: their records, and numbers of groups."""
    values = records(rows, task.column, task.unit)
    keys = keys_of(rows, task.by)
    places = task.groups.places(keys[0] if len(keys) == 1 else keys, values.size)
    inside = places >= 0
    return (values, places) if inside.all() else (values[inside], places[inside])


def by_group(
    values: NDArray[Any], places: NDArray[np.int64]
) -> tuple[list[int], NDArray[np.intp], NDArray[Any]]:
    """Records group by group, in their order: which groups, where each of them ends, the records.

    Sorted by 16 bits at a time, which NumPy does without comparisons.
    """
    order = np.argsort(places.astype(np.uint16), kind="stable")
    if places.size and places.max() >= 2**16:
        order = order[np.argsort((places[order] >> 16).astype(np.uint16), kind="stable")]
    places = places[order]
    last = np.flatnonzero(np.diff(places, append=-1))
    return places[last].tolist(), last + 1, values[order]


@dataclass(frozen=True, repr=False)
class EachGroupTask(Task[list[Any]]):
    """Queries of single groups: a state for each query. Which groups it asks for is private.

    Attributes
    ----------
    column : str
    unit : Unit, Presence or None
    by : tuple of str
    groups : Groups
    queries : tuple of (int, Query)
        Each with the number of its group.
    """

    column: str
    unit: AnyUnit
    by: tuple[str, ...]
    groups: Groups
    queries: tuple[tuple[int, Query[Any]], ...]

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """As `Task.columns`."""
        return (self.column, *self.by)

    def start(self) -> list[Any]:
        return [query.start() for _, query in self.queries]

    def step(self, state: list[Any], rows: ColumnOf) -> None:
        numbers, ends, values = by_group(*members(self, rows))
        of_group = dict(zip(numbers, np.split(values, ends[:-1]), strict=bool(numbers)))
        for (group, query), own in zip(self.queries, state, strict=True):
            if group in of_group:
                scan(of_group[group], query, own)

    def combine(self, one: list[Any], other: list[Any]) -> list[Any]:
        pairs = zip(self.queries, one, other, strict=True)
        return [query.combine(own, more) for (_, query), own, more in pairs]


@dataclass(repr=False)
class Members:
    """Records of groups, in any order: the state of `MembersTask`.

    Attributes
    ----------
    values : list of ndarray of float64
    groups : list of ndarray of int32
        The number of the group of each of them.
    """

    values: list[NDArray[np.float64]]
    groups: list[NDArray[np.int32]]


@dataclass(frozen=True, repr=False)
class MembersTask(Task[Members]):
    """The records themselves of small groups, without missing ones. Which are small is private.

    Attributes
    ----------
    column : str
    unit : Unit, Presence or None
    by : tuple of str
    groups : Groups
    """

    column: str
    unit: AnyUnit
    by: tuple[str, ...]
    groups: Groups

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """As `Task.columns`."""
        return (self.column, *self.by)

    def start(self) -> Members:
        return Members([], [])

    def step(self, state: Members, rows: ColumnOf) -> None:
        column, places = members(self, rows)
        values = as_float64(column)
        present = values == values
        if present.any():
            state.values.append(values[present])
            state.groups.append(places[present].astype(np.int32))

    def combine(self, one: Members, other: Members) -> Members:
        return Members(one.values + other.values, one.groups + other.groups)


@dataclass(frozen=True)
class KeyTask(Task[KeyTotals]):
    """How many rows each key has.

    Attributes
    ----------
    by : tuple of str
        Columns of keys.
    """

    by: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """As `Task.columns`."""
        return self.by

    def start(self) -> KeyTotals:
        return KeyTotals({}, [False] * len(self.by))

    def step(self, state: KeyTotals, rows: ColumnOf) -> None:
        self.step_counted(state, rows, None)

    def step_counted(self, state: KeyTotals, rows: ColumnOf, counts: Any) -> None:
        """As `step`, for rows that stand for so many each: those of a data base, grouped already.

        Parameters
        ----------
        state : KeyTotals
        rows : callable
        counts : array_like of int, or None
            None for 1 each.
        """
        state.add(totals_of(keys_of(rows, self.by), counts))

    def combine(self, one: KeyTotals, other: KeyTotals) -> KeyTotals:
        one.add(other)
        return one


class Engine(Protocol):
    """What holds the rows of a table.

    Attributes
    ----------
    names : sequence of str
        Of the columns. Public.
    """

    @property
    def names(self) -> Sequence[str]:
        """Of the columns. Public."""

    def answer(self, tasks: Sequence[Task[Any]]) -> list[Any]:
        """One pass: the state of each task for all rows."""


class Declaring(ABC):
    """An engine whose columns have types that are known before a row is read: they are public."""

    def check_records(self, name: str, unit: AnyUnit) -> None:
        """Refuse a column that can not be read in a unit, for its type."""
        column = self.declared(name)
        if column is not None:
            check_type(column, unit)

    def kind(self, name: str) -> str | None:
        """The kind of a column of keys, None if it does not say; other types are refused."""
        column = self.declared(name)
        return None if column is None else declared_kind(column)

    @abstractmethod
    def declared(self, name: str) -> Any:
        """A column of the same type without a row; None where that is not known."""
