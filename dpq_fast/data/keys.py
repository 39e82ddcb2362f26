"""Columns of keys: integers or strings that say which group a record is in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.columns import check_counts, declared_kind


class Column(NamedTuple):
    """The keys of the rows, checked for their form.

    Attributes
    ----------
    values : ndarray of integers or sequence
        Keys, or codes where there are `categories`.
    categories : list or None
        The keys that codes 0, 1, ... stand for; -1 is missing.
    strings : bool or None
        Whether the column's type is string or integer, where it has a type that says so.
    """

    values: Any
    categories: list[Any] | None
    strings: bool | None

    @classmethod
    def of(cls, by: Any) -> Column:
        """Check `by`: its type and dimension, nothing else."""
        strings = declares_strings(by)
        categorical = getattr(by, "cat", by)  # pandas: a Series, or the Categorical itself
        if hasattr(categorical, "codes") and hasattr(categorical, "categories"):
            # Of any type: pandas takes the categories, and their type, from the keys that occur.
            codes = np.asarray(categorical.codes)
            return cls(codes, categorical.categories.tolist(), None)
        if not (hasattr(by, "__array__") or hasattr(by, "dtype") or hasattr(by, "type")):
            return cls(by if isinstance(by, Sequence) else list(by), None, None)
        declared = _declared(by)
        if declared is None or isinstance(declared, np.dtype):
            by = np.asanyarray(by)
            strings = declares_strings(by)
        if strings is False and not _is_encoded(declared):
            array = np.asanyarray(by)
            # else there are nulls: masked, objects, or floats, which round large keys
            if array.dtype.kind in "iu" and not isinstance(array, np.ma.MaskedArray):
                return cls(array, None, strings)
        return cls(listed(by), None, strings)


def declares_strings(by: Any) -> bool | None:
    """Check what a column of keys declares; whether that is strings, None if it does not say.

    Reads no record. The declared type decides: what NumPy makes of other columns than its own
    depends on their nulls.
    """
    if isinstance(by, (str, bytes, Mapping, Set)) or not hasattr(by, "__iter__"):
        raise TypeError(f"by must be a column of integers or of strings, got {type(by).__name__}")
    declared = _declared(by)
    if declared is None or hasattr(getattr(by, "cat", by), "codes"):
        return None
    if getattr(by, "ndim", 1) != 1:
        raise ValueError(f"by must be one-dimensional, got {by.ndim} dimensions")
    arrow = getattr(declared, "pyarrow_dtype", declared)  # pandas
    kind = declared_kind(arrow.value_type if _is_encoded(declared) else arrow)
    if kind not in "iuUTO":
        raise TypeError(f"by must hold integers or strings, got dtype {declared}")
    return None if kind == "O" else kind in "UT"  # objects: what is no key is ignored


def _declared(by: Any) -> Any:
    """The type that a column declares, if any."""
    return getattr(by, "dtype", getattr(by, "type", None))


def _is_encoded(declared: Any) -> bool:
    """Whether a type is one of dictionaries of Arrow, which pandas may hold."""
    return str(getattr(declared, "pyarrow_dtype", declared)).startswith("dictionary<")


def listed(column: Any) -> list[Any]:
    """The items of a column or sequence as Python objects."""
    for name in ("to_pylist", "to_list", "tolist"):  # pyarrow, polars and pandas, NumPy
        if hasattr(column, name):
            items: list[Any] = getattr(column, name)()
            return items
    return list(column)


class KeyCounts(NamedTuple):
    """How many records each key has.

    Attributes
    ----------
    keys : list of int or of str
        Those that there are, integers before strings, ascending.
    counts : ndarray of int64
        Positive.
    """

    keys: list[Any]
    counts: NDArray[np.int64]


def count_keys(by: Any, counts: Any = None) -> KeyCounts:
    """Count the records of each key; what is no integer of 64 bits and no string is none.

    What a key is does not depend on the type of the column, nor on the order of its rows.
    """
    column = Column.of(by)
    rows, size = column.values, len(column.values)
    weights = None if counts is None else check_counts(counts, size, "by")
    found: Counter[Any] = Counter()
    if isinstance(rows, np.ndarray):  # integers, or codes
        values, places = np.unique(rows, return_inverse=True)
        # sums of up to 2^53 are exact
        sums = np.bincount(places, weights, minlength=values.size).astype(np.int64)
        names: Iterable[Any] = values.tolist()
        if column.categories is not None:
            names = (column.categories[code] if code >= 0 else None for code in values.tolist())
        for name, number in zip(names, sums.tolist(), strict=True):
            found[key_of(name)] += number
    elif weights is None:
        found.update(map(key_of, rows))
    else:
        for row, number in zip(rows, weights.tolist(), strict=True):
            found[key_of(row)] += number
    kept = [(key, number) for key, number in found.items() if key is not None and number]
    kept.sort(key=lambda one: (isinstance(one[0], str), one[0]))
    numbers = np.array([number for _, number in kept], dtype=np.int64)
    return KeyCounts([key for key, _ in kept], numbers)


def key_of(item: Any) -> int | str | None:
    """A key as it is compared: an integer of 64 bits or a string; None for anything else."""
    if type(item) is str:
        return item
    try:
        if hasattr(item, "as_py"):  # pyarrow
            item = item.as_py()
        if isinstance(item, str):
            return str(item)
        key = int(item) if isinstance(item, (int, np.integer)) else None
    except Exception:  # no key, and no reason to tell
        return None
    return key if key is not None and -(2**63) <= key < 2**64 else None


def as_array(keys: list[Any]) -> NDArray[Any]:
    """Keys as int64, or uint64 where they need it; strings, and nothing, as objects."""
    if keys and not any(isinstance(key, str) for key in keys):
        if -(2**63) <= min(keys) and max(keys) < 2**63:
            return np.array(keys, dtype=np.int64)
        if min(keys) >= 0:
            return np.array(keys, dtype=np.uint64)
    array = np.empty(len(keys), dtype=object)
    array[:] = keys
    return array
