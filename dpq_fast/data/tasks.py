"""Tasks: what is asked of all rows of a table, and the engine that answers.

Who makes the pass is an engine's business: it may run the query on each part of the rows and
combine the states, or answer it in words of its own.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.columns import AnyUnit, as_column, as_float64, check_type
from dpq_fast.data.key_columns import declared_kind
from dpq_fast.data.key_counts import KeyTotals, coded_rows, totals_of
from dpq_fast.data.passes import Query, State, scan
from dpq_fast.data.persons import check_ids, stand_ins
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


@dataclass(repr=False)
class PersonRows:
    """Rows of persons, in any order: the state of `PersonsTask`.

    Attributes
    ----------
    values : list of ndarray of float64
        Records; NaN where they are missing.
    persons : list of ndarray of unsigned integers, shape (W, rows)
        Numbers that stand for the ids of each row's person.
    places : list of ndarray of int32
        The number of the group of each row, or of its key among `keys`; -1 for none. Nothing where
        there are no keys.
    keys : dict
        As of `KeyTotals`, of no listed groups: their numbers.
    booleans : list of bool
        As of `KeyTotals`.
    """

    values: list[NDArray[np.float64]]
    persons: list[NDArray[Any]]
    places: list[NDArray[np.int32]]
    keys: dict[tuple[Any, ...], int]
    booleans: list[bool]


@dataclass(frozen=True, repr=False)
class PersonsTask(Task[PersonRows]):
    """The rows that have an id: their records, their groups, and numbers in the place of ids.

    The ids stay where they are. Numbers stand for them that a secret makes, which is drawn for each
    pass, or that a data base counts.

    Attributes
    ----------
    column : str or None
        None where rows are counted.
    unit : Unit, Presence or None
    ids : tuple of str
        Columns of ids.
    by : tuple of str
        Columns of keys, if any.
    groups : Groups or None
        None where no keys are listed.
    secret : bytes
        As of `stand_ins`.
    """

    column: str | None
    unit: AnyUnit
    ids: tuple[str, ...]
    by: tuple[str, ...] = ()
    groups: Groups | None = None
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """As `Task.columns`."""
        return (*(() if self.column is None else (self.column,)), *self.ids, *self.by)

    def start(self) -> PersonRows:
        return PersonRows([], [], [], {}, [False] * len(self.by))

    def step(self, state: PersonRows, rows: ColumnOf) -> None:
        ids = [stand_ins(column, self.secret) for column in keys_of(rows, self.ids)]
        numbers = np.concatenate([own for own, _ in ids])
        present = np.logical_and.reduce([own for _, own in ids])
        values = None if self.column is None else records(rows, self.column, self.unit)
        self.add(state, values, keys_of(rows, self.by), numbers, present)

    def add(
        self,
        state: PersonRows,
        values: NDArray[Any] | None,
        keys: list[Any],
        numbers: NDArray[Any],
        present: NDArray[np.bool_],
    ) -> None:
        """As `step`, for rows of which it is known where there is an id, and what stands for it."""
        rows = slice(None) if present.all() else present
        own = np.zeros(present.size) if values is None else as_float64(values)
        state.values.append(own[rows])
        state.persons.append(numbers[:, rows])
        if not self.by:
            return
        if self.groups is None:
            found, places, booleans = coded_rows(keys)
            state.booleans[:] = [a or b for a, b in zip(state.booleans, booleans, strict=True)]
            places = _renumbered(state.keys, found)[places]
        else:
            places = self.groups.places(keys[0] if len(keys) == 1 else keys, present.size)
        state.places.append(places[rows].astype(np.int32))

    def combine(self, one: PersonRows, other: PersonRows) -> PersonRows:
        places = other.places
        if self.groups is None:
            number = _renumbered(one.keys, other.keys)
            places = [number[own].astype(np.int32) for own in places]
        return PersonRows(
            one.values + other.values,
            one.persons + other.persons,
            one.places + places,
            one.keys,
            [a or b for a, b in zip(one.booleans, other.booleans, strict=True)],
        )


def _renumbered(keys: dict[tuple[Any, ...], int], more: Iterable[Any]) -> NDArray[np.int64]:
    """The numbers of more keys, which are added; the last entry is that of none."""
    return np.array([*(keys.setdefault(key, len(keys)) for key in more), -1], dtype=np.int64)


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

    def check_ids(self, name: str) -> None:
        """Refuse a column whose type says that it holds no ids."""
        column = self.declared(name)
        if column is not None:
            check_ids(column)

    @abstractmethod
    def declared(self, name: str) -> Any:
        """A column of the same type without a row; None where that is not known."""
