"""How many records each key has: what is selected from where no keys are public."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.key_columns import Column, declared_kind, key_columns_of
from dpq_fast.data.keys import (
    BOOLEANS,
    INTEGERS,
    INTERVALS,
    NO_TIME,
    PERIODS,
    STRINGS,
    TIMED,
    ZONED,
    Instant,
    comparable,
    date_of,
    items_of,
    kind_of,
)
from dpq_fast.data.persons import weights_of
from dpq_fast.data.units import Time


class KeyCounts(NamedTuple):
    """How many records each key has.

    Attributes
    ----------
    keys : list
        Those that there are, ascending: integers before strings, those before dates and times of
        day, and periods and intervals last.
    counts : ndarray of int64
        Positive.
    """

    keys: list[Any]
    counts: NDArray[np.int64]

    def ranks(self, places: NDArray[Any]) -> NDArray[np.int64]:
        """The place of each row's key in their order, where `counts` are 1 more than `places`.

        -1 stays what it is, a row without a key.
        """
        place = np.full(len(self.keys) + 1, -1)
        place[self.counts - 1] = np.arange(len(self.keys))
        ranks: NDArray[np.int64] = place[places]
        return ranks


def split_columns(by: Any) -> list[Any]:
    """The columns of keys, where no public keys say how many; checked for what they declare.

    Those of a frame, or of a list or a tuple that holds nothing but columns.
    """
    columns = key_columns_of(by)
    if columns is None:
        several = isinstance(by, (list, tuple)) and len(by) > 0 and all(map(_is_column, by))
        columns = list(by) if several else [by]
    for column in columns:
        declared_kind(column)
    return columns


def _is_column(item: Any) -> bool:
    return hasattr(item, "__iter__") and not isinstance(item, (str, bytes, Mapping, Set))


@dataclass(repr=False)
class KeyTotals:
    """How many records each key has, of some rows; those of several parts add up.

    Attributes
    ----------
    numbers : dict
        Positive, by keys as they are compared: tuples of one for each column.
    booleans : list of bool
        Which columns say that their keys are booleans: all else does not depend on types.
    """

    numbers: dict[tuple[Any, ...], int]
    booleans: list[bool]

    def add(self, other: KeyTotals) -> None:
        """Add those of other rows."""
        numbers = self.numbers
        for key, number in other.numbers.items():
            numbers[key] = numbers.get(key, 0) + number
        self.booleans[:] = [a or b for a, b in zip(self.booleans, other.booleans, strict=True)]

    def ordered(self) -> KeyCounts:
        """The keys as they are given back, in their order."""
        present = sorted(self.numbers.items(), key=lambda one: [_rank(key) for key in one[0]])
        shown = [tuple(map(_shown, key, self.booleans)) for key, _ in present]
        numbers = np.array([number for _, number in present], dtype=np.int64)
        single = len(self.booleans) == 1
        return KeyCounts([key[0] for key in shown] if single else list(shown), numbers)


def count_keys(by: Any, counts: Any = None) -> KeyCounts:
    """Count the records of each key; integers of other than 64 bits are none.

    What a key is does not depend on the type of the column, but for booleans, nor on the order of
    its rows.
    """
    return totals_of(split_columns(by), counts).ordered()


def totals_of(by: list[Any], counts: Any = None) -> KeyTotals:
    """Count the records of each key of some rows, given by columns; as `count_keys`."""
    rows, places, booleans = coded_rows(by)
    weights = None if counts is None else weights_of(counts, np.zeros(places.size), "by")
    kept = places >= 0
    sums = np.bincount(
        places[kept], None if weights is None else weights[kept], minlength=len(rows)
    ).astype(np.int64)  # of up to 2^53: exact
    present = {row: number for row, number in zip(rows, sums.tolist(), strict=True) if number}
    return KeyTotals(present, booleans)


def coded_rows(
    by: list[Any],
) -> tuple[list[tuple[Any, ...]], NDArray[np.int64], list[bool]]:
    """The distinct keys of some rows, given by columns, as `KeyTotals` has them.

    Then which of them each row has, -1 for none, and which columns say that they are booleans.
    """
    for column in by:
        declared_kind(column)
    columns = [Column.of(column) for column in by]
    size = len(columns[0])
    if any(len(column) != size for column in columns):
        raise ValueError("by must have columns of one length")
    keys, places = _coded(columns[0])
    rows: list[tuple[Any, ...]] = [(key,) for key in keys]
    for column in columns[1:]:
        keys, own = _coded(column)
        pairs = np.where((places < 0) | (own < 0), -1, places * max(len(keys), 1) + own)
        found, places = np.unique(pairs, return_inverse=True)
        places = places - int(found.size > 0 and found[0] < 0)
        parts = [divmod(pair, max(len(keys), 1)) for pair in found[found >= 0].tolist()]
        rows = [(*rows[at], keys[rest]) for at, rest in parts]
    return rows, places, [column.kind == BOOLEANS for column in columns]


def _coded(column: Column) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct keys of a column as they are compared, and which each row has; -1 for none."""
    column = column.encoded()
    codes = column.codes
    if column.items is None:
        assert codes is not None
        values, places = np.unique(codes, return_inverse=True)
        keys: list[Any] = values.tolist()
        missing = column.missing
        if column.kind in TIMED:
            keys = [Instant(key * column.unit, column.kind) for key in keys]
            gone = codes == NO_TIME
            missing = gone if missing is None else gone | missing
        return keys, places if missing is None else np.where(missing, -1, places)
    place: dict[Any, int] = {}
    of_items = np.full(len(column.items) + 1, -1, dtype=np.int64)  # the last one for what is none
    for at, item in enumerate(items_of(column.items)):
        key = _key(item)
        if key is not None:
            of_items[at] = place.setdefault(key, len(place))
    return list(place), of_items[:-1] if codes is None else of_items[codes]


def _key(item: Any) -> Any:
    """A key as it is compared; None for what is none."""
    if type(item) is str:
        return item
    try:
        key = comparable(item)
        kind = kind_of(key)
        if kind == STRINGS:
            return str(key)
        if kind in (INTEGERS, BOOLEANS):
            key = int(key)
            return key if -(2**63) <= key < 2**64 else None
    except Exception:  # no key, and no reason to tell
        return None
    return key if kind is not None else None


def _rank(key: Any) -> tuple[int, Any]:
    """Where a key is in their order: not all of those of one kind are compared by pandas."""
    kind = kind_of(key) or INTEGERS
    if kind == PERIODS:
        key = key.freqstr, key.ordinal
    elif kind == INTERVALS:
        key = *map(_rank_of_end, (key.left, key.right)), key.closed
    return (INTEGERS, STRINGS, *TIMED, PERIODS, INTERVALS).index(kind), key


def _rank_of_end(end: Any) -> tuple[str, Any]:
    """That of an end of an interval: a number, a time or a length."""
    time = Time.of(end)
    if time is not None:
        return time.kind + ZONED * (time.zone is not None), time.nanoseconds
    of_integer = isinstance(end, (int, np.integer))
    return "", int(end) if of_integer else float(end)  # NumPy compares no huge ones


def _shown(key: Any, is_boolean: bool) -> Any:
    """A key as it is given back."""
    if isinstance(key, Instant):
        return date_of(key)
    return bool(key) if is_boolean else key
