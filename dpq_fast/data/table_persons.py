"""Persons of the rows of a table: ids that stay where they are, beside columns that are read here.

How much each record weighs is known once all rows of its person are: so a release about persons
reads its column here, as one of an array, with a number in the place of each id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast.data import rounds
from dpq_fast.data.columns import AnyUnit
from dpq_fast.data.key_counts import KeyCounts, KeyTotals
from dpq_fast.data.persons import WEIGHTS, Persons, counted
from dpq_fast.data.public_keys import Groups
from dpq_fast.data.tables import Table, TableColumns, joined, named_columns, table_of
from dpq_fast.data.tasks import PersonRows, PersonsTask
from dpq_fast.data.units import Timed


class TablePersons(Persons):
    """The ids of the rows of a table, checked for their types; none of them is read here.

    Attributes
    ----------
    ids : TableColumns
    """

    __slots__ = ("_here", "ids")

    def _opened(self, ids: TableColumns) -> list[Any]:
        ids.table.check_ids(ids.columns)
        self.ids = ids
        self._here: dict[Any, ReadPersons] = {}
        return []

    def rows_at_most(self) -> None:
        """Nobody has counted them."""

    def column(
        self,
        x: Any,
        of_each: Callable[[Persons, NDArray[Any]], NDArray[np.float64]],
        nan_policy: str,
    ) -> Callable[[], NDArray[np.float64]]:
        values, own = self.here(x)
        return own.column(values, of_each, nan_policy)

    def here(self, x: Any) -> tuple[Callable[[], NDArray[np.float64]], ReadPersons]:
        """A column of the table and its persons, which are read when they are asked for, once."""
        column, unit = (x.column, x.unit) if isinstance(x, Timed) else (x, None)
        _checks.check_width(len(column.columns))
        (name,) = column.columns
        column.table.check_records(name, unit)
        asked = name, unit
        if asked not in self._here:
            self._here[asked] = ReadPersons(self, lambda: self.rows(*asked))
        own = self._here[asked]
        return own.values, own

    def rows(
        self,
        column: str | None,
        unit: AnyUnit,
        by: tuple[str, ...] = (),
        groups: Groups | None = None,
    ) -> ReadRows:
        """The rows that have an id, by one pass; groups and keys as of `PersonsTask`."""
        task = PersonsTask(column, unit, self.ids.columns, by, groups)
        (found,) = rounds.ask(self.ids.table, [task])
        return ReadRows.of(found, self)


class ReadPersons(Persons):
    """The persons of one column of a table, which is read with them.

    Parameters
    ----------
    persons : TablePersons
    read : callable
        Gives the rows.
    """

    __slots__ = ("_read", "_rows")

    def __init__(self, persons: Persons, read: Callable[[], ReadRows]) -> None:
        self._columns, self._numbers, self._of = [], None, None
        self._k, self.most = persons._k, persons.most
        self._read = read
        self._rows: ReadRows | None = None

    def rows_at_most(self) -> None:
        """As of `TablePersons`."""

    def values(self) -> NDArray[np.float64]:
        """The column."""
        return self._found.values

    @property
    def _found(self) -> ReadRows:
        if self._rows is None:
            self._rows = self._read()
        return self._rows

    def _numbered(self) -> NDArray[np.int64]:
        return self._found.persons._codes


class ReadRows(NamedTuple):
    """Rows of persons that were read.

    Attributes
    ----------
    values : ndarray of float64
    persons : Persons
        By numbers in place of ids.
    places : ndarray of int32
        The group of each row, or its key among `keys`; -1 for none.
    keys : KeyCounts
        In their order, each with the number by which `places` has it, and 1 more.
    """

    values: NDArray[np.float64]
    persons: Persons
    places: NDArray[np.int32]
    keys: KeyCounts

    @classmethod
    def of(cls, found: PersonRows, persons: Persons) -> ReadRows:
        """All rows of a table."""
        words = range(max((len(own) for own in found.persons), default=1))
        used = [word for word in words if any(own[word].any() for own in found.persons)] or [0]
        kind = found.persons[0].dtype.type if found.persons else np.uint64
        columns = [joined([own[word] for own in found.persons], kind) for word in used]
        found.persons.clear()
        keys = {key: 1 + number for key, number in found.keys.items()}
        contributions = WEIGHTS if persons.share else persons.most
        return cls(
            joined(found.values, np.float64),
            Persons(columns, contributions),
            joined(found.places, np.int32),
            KeyTotals(keys, found.booleans).ordered(),
        )

    def weighed(
        self, nan_policy: str = "omit", by_size: bool = False
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """As `counted`."""
        values, weights = counted(self.persons, self.values, nan_policy, by_size, self._ranks)
        assert weights is not None
        return values, weights

    def _ranks(self) -> NDArray[Any] | None:
        """The place of each row's group, or of its key in the order of keys; None without any."""
        if self.keys.keys:
            return self.keys.ranks(self.places)
        return self.places if self.places.size else None

    def counted(self, weights: NDArray[np.int64]) -> KeyCounts:
        """How many records, or parts of them, each key has."""
        own = self.places >= 0
        sums = np.bincount(self.places[own], weights[own], minlength=self.keys.counts.size)
        numbers = sums.astype(np.int64)[self.keys.counts - 1]  # of up to 2^53: exact
        keys = [key for key, number in zip(self.keys.keys, numbers, strict=True) if number]
        return KeyCounts(keys, numbers[numbers > 0])

    def among(self, kept: list[Any]) -> NDArray[np.int32]:
        """The place of each row's key among those that were kept, -1 for none."""
        number = dict(zip(self.keys.keys, self.keys.counts.tolist(), strict=True))
        place = np.full(len(number) + 1, -1, dtype=np.int32)
        place[[number[key] - 1 for key in kept]] = np.arange(len(kept))
        among: NDArray[np.int32] = place[self.places]
        return among


def in_place_of(x: Any, counts: Any, ids: Any, contributions: Any = WEIGHTS) -> tuple[Any, Any]:
    """A column, and the arguments about it as its counts, where either may lie in a table."""
    column = x.column if isinstance(x, Timed) else x
    table: Table | None = None
    if ids is not None:
        table = column.table if isinstance(column, TableColumns) else table_of(column)
    if table is None:
        if isinstance(ids, TableColumns):
            raise ValueError(f"privacy_unit must be a column beside x, got {ids!r}")
        return x, Persons.in_place_of(counts, ids, contributions)
    own = _ids_of(table, ids)
    if not isinstance(column, TableColumns):  # all else is the column, or those of keys
        others = tuple(name for name in table.names if name not in own.columns)
        if not others:
            raise ValueError("x must have a column beside those of privacy_unit")
        x = TableColumns(table, others)
    return x, TablePersons.in_place_of(counts, own, contributions)


def _ids_of(table: Table, ids: Any) -> TableColumns:
    """Columns of ids of a table, by their names, or as such."""
    if isinstance(ids, TableColumns):
        if ids.table is table:
            return ids
        raise ValueError(f"privacy_unit must be of the table that x is of, got {ids!r}")
    several = isinstance(ids, (list, tuple)) and bool(ids)
    if not all(isinstance(name, str) for name in (ids if several else [ids])):
        raise ValueError(
            "privacy_unit must name columns of the table that x is of, as 'user_id' does, "
            f"got {type(ids).__name__}"
        )
    return named_columns(table, "privacy_unit", ids)


def here(x: Any, counts: Any) -> tuple[Any, Any]:
    """A column of a table of persons, and these, as they are read here; all else as it is."""
    return counts.here(x) if isinstance(counts, TablePersons) else (x, counts)


def count_keys(by: TableColumns, persons: TablePersons) -> KeyCounts:
    """How many records each key has, by one pass."""
    found = persons.rows(None, None, by.columns)
    return found.counted(found.weighed()[1])
