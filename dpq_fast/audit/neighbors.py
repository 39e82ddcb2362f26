"""Data sets of an audit: records, their order, and all neighbors."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from numbers import Real
from typing import Any

import numpy as np

from dpq_fast import _checks
from dpq_fast.privacy.relations import Relation, relation_of

# More data sets are refused, too, and more runs: all that is drawn is kept.
MAX_DATA_SETS = 2**16
DataSet = tuple[Any, ...]


def record_of(value: Any) -> Any:
    """A record that equals all like it: every NaN is one object."""
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise ValueError(
                "a record must be a number, or a pair of a number and a key, got "
                f"{len(value)} things"
            )
        return record_of(value[0]), value[1]
    if not isinstance(value, Real):
        raise TypeError(f"a record must be a real number, got {type(value).__name__}")
    return value if value == value else math.nan


def place_of(record: Any) -> tuple[Any, ...]:
    """Where a record stands in order: by key, NaN last, by value."""
    value, key = record if isinstance(record, tuple) else (record, "")
    return repr(key), value != value, value if value == value else 0.0


def order_of(data_set: DataSet) -> tuple[Any, ...]:
    """Where a data set stands in order: by size, then record by record."""
    return len(data_set), [place_of(record) for record in data_set]


def next_neighbors(
    data_set: DataSet, values: Sequence[Any], relation: Relation, fixed_key: bool
) -> Iterator[DataSet]:
    """The neighbors of a data set by one record, as ordered tuples."""
    for removed, added in relation.changes(data_set, values):
        rest = data_set
        if removed is not None:
            rest = data_set[:removed] + data_set[removed + 1 :]
            if fixed_key and any(value[1] != data_set[removed][1] for value in added):
                continue
        for record in added:
            rest = _with(rest, record)
        yield rest


def _with(data_set: DataSet, record: Any) -> DataSet:
    """A data set with one more record, in order."""
    at = bisect_right(data_set, place_of(record), key=place_of)
    return (*data_set[:at], record, *data_set[at:])


def neighboring_pairs(
    x: Any,
    values: Sequence[Any],
    step: Callable[[DataSet], Iterator[DataSet]],
    reach: int,
    added: int,
) -> set[tuple[DataSet, DataSet]]:
    """All pairs of neighbors, each once: of one data set, or of all with up to x records.

    Neighbors are `reach` steps away, and have up to `added` records more.
    """
    most: float
    try:
        largest = _checks.check_count("x", x, 0)
    except TypeError:
        starts, most = [tuple(sorted((record_of(record) for record in x), key=place_of))], math.inf
    else:
        most = largest
        _check_data_sets(math.comb(len(values) + largest, largest))
        starts = [
            data_set
            for size in range(largest + 1)
            for data_set in combinations_with_replacement(values, size)
        ]
    _check_data_sets(math.comb(len(values) + added, added))
    pairs: set[tuple[DataSet, DataSet]] = set()
    for start in starts:
        reached = frontier = {start}
        for _ in range(reach):
            found: set[DataSet] = set()
            for one in frontier:
                found.update(step(one))
                _check_data_sets(len(reached) + len(found))
            frontier = found - reached
            if not frontier:
                break
            reached = reached | frontier
        for other in reached - {start}:
            if len(other) <= most:
                first, second = sorted((start, other), key=order_of)
                pairs.add((first, second))
    return pairs


def _check_data_sets(number: int) -> None:
    if number > MAX_DATA_SETS:
        raise ValueError(
            f"x, domain and max_contributions must make at most {MAX_DATA_SETS} data sets"
        )


def check_neighboring(one: DataSet, other: DataSet, parameters: Mapping[str, Any]) -> None:
    """Raise unless a promise under the relation is about these two data sets."""
    relation = relation_of(parameters.get("neighbors", "swap"))
    removed, added = ((Counter(a) - Counter(b)).total() for a, b in ((one, other), (other, one)))
    same_keys = not parameters.get("public_by", False) or Counter(
        record[1] for record in one
    ) == Counter(record[1] for record in other)
    allowed = parameters.get("max_contributions", 1)
    if relation.distance(removed, added) > allowed or not same_keys:
        raise ValueError(
            f"x and x_neighbor must be neighbors under {relation.name!r}, got {removed} records "
            f"removed and {added} added"
        )


def column_of(data_set: DataSet, kind: np.dtype, paired: bool) -> Any:
    """What a mechanism is given: a column, or columns of values and of keys."""
    values = [value for value, _ in data_set] if paired else data_set
    if kind.kind in "biu" and any(value != value for value in values):
        kind = np.dtype(np.float64)
    try:
        with np.errstate(all="ignore"):  # what does not fit a short type is infinite
            column = np.array(values, dtype=kind)
    except OverflowError:  # an integer beyond float64
        raise ValueError(f"records must be numbers that {np.dtype(kind)} can hold") from None
    return (column, [key for _, key in data_set]) if paired else column
