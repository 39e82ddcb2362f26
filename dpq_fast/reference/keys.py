"""Keys of groups: one record after the other."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import aligned, named_keys
from dpq_fast.reference.columns import declared_type, is_missing

KINDS = "integers, strings, booleans, dates, times of day, periods or intervals"
# Types of pandas whose items are compared as they are, and their kinds.
OF_PANDAS = {"Period": "periods", "Interval": "intervals"}
# What is no key, and not missing either, as it is compared.
NO_KEY = object()
# Units of NumPy that are no dates.
FINER = ("ps", "fs", "as", "generic")


class Keys:
    """The public keys, checked: distinct, and all of one kind in each column.

    Attributes
    ----------
    keys : list of Any
        As they are given back.
    compared : list of tuple
        As they are compared, column by column.
    kinds : list of str or None
        Of the keys of each column, but for None, which stands for rows without one.
    single : bool
        Whether keys are no tuples.
    """

    def __init__(self, groups: Any) -> None:
        columns = columns_of(groups)
        if columns is not None:
            groups = list(zip(*columns, strict=True))
        if isinstance(groups, (str, bytes, Mapping, Set)) or not hasattr(groups, "__iter__"):
            raise TypeError(f"groups must be a sequence of {KINDS}, got {type(groups).__name__}")
        if isinstance(groups, np.ndarray) and groups.ndim != 1:
            raise ValueError(f"groups must be one-dimensional, got {groups.ndim} dimensions")
        keys = list(groups)
        self.single = not any(isinstance(key, tuple) for key in keys)
        rows: list[Any] = [(key,) for key in keys] if self.single else keys
        widths = {len(row) if isinstance(row, tuple) else None for row in rows}
        if len(widths) > 1 or widths == {0}:
            raise ValueError("groups must be keys, or tuples of one length of keys")
        checked = [_checked(list(column)) for column in zip(*rows, strict=True)]
        self.kinds = [kind for _, kind in checked]
        rows = list(zip(*(column for column, _ in checked), strict=True))
        self.compared = [tuple(map(key_of, row)) for row in rows]
        self.keys: list[Any] = [row[0] for row in rows] if self.single else rows
        plain = self.kinds in (["integers"], ["strings"]) and (None,) not in self.compared
        again = [row for row, times in Counter(self.compared).items() if times > 1]
        if again:
            twice = self.keys[self.compared.index(min(again) if plain else again[0])]
            raise ValueError(f"groups must be distinct, got {twice!s} twice")

    @classmethod
    def kept(cls, rows: list[tuple[Any, ...]], width: int) -> Keys:
        """Those that were selected, of so many columns, whatever they are."""
        keys = cls([])
        keys.single = width == 1
        keys.compared = [tuple(map(key_of, row)) for row in rows]
        keys.keys = [row[0] for row in rows] if keys.single else list(rows)
        return keys

    @property
    def array(self) -> NDArray[Any]:
        """Integers and booleans as such, all else as objects."""
        first = self.keys[0] if self.keys else 0
        if isinstance(first, (bool, np.bool_)) and None not in self.keys:
            return np.array(self.keys, dtype=np.bool_)
        if all(isinstance(key, (int, np.integer)) for key in self.keys) and not (
            min(self.keys, default=0) < 0 and max(self.keys, default=0) >= 2**63
        ):
            large = max(self.keys, default=0) >= 2**63
            return np.array(self.keys, dtype=np.uint64 if large else np.int64)
        array = np.empty(len(self.keys), dtype=object)
        array[:] = self.keys
        return array

    def check(self, by: Any) -> list[Any]:
        """The columns of keys, refused where they are no such, or of another kind than the groups.

        Reads no record.
        """
        columns = columns_of(by)
        if columns is None:
            several = not self.single and isinstance(by, (list, tuple))
            columns = list(by) if several else [by]
        if self.keys and len(self.kinds) != len(columns):
            raise ValueError(
                f"groups must be {'tuples of ' if len(columns) > 1 else ''}as many keys as by has "
                f"columns, got {len(self.kinds)} and {len(columns)}"
            )
        declared = [check_column(column) for column in columns]
        for own, other in zip(self.kinds, declared, strict=bool(self.keys)):
            if other is not None and own not in (None, other):
                raise TypeError(f"groups must be {other} as the column by is, got {own}")
        return columns


def in_order(x: Any, columns: list[Any], counts: Any) -> tuple[list[Any], Any]:
    """Columns of keys, and counts, in the order of the rows of `x`, where pandas says it."""
    *columns, counts = aligned(x, [*named_keys(columns), ("counts", counts)])
    return columns, counts


def rows_of(columns: list[Any], size: int) -> list[tuple[Any, ...]]:
    """The keys of each row as they are compared."""
    keys = [[key_of(key) for key in column] for column in columns]
    if any(len(column) != size for column in keys):
        raise ValueError("by must have one key for each row of x")
    return list(zip(*keys, strict=True))


def _checked(column: list[Any]) -> tuple[list[Any], str | None]:
    """The keys of one column, without the types of their libraries, and what they are."""
    column = [key.as_py() if hasattr(key, "as_py") else key for key in column]
    column = [None if is_missing(key) else key for key in column]
    if None in column:
        others = [key for key in column if key is not None]
        others, kind = _checked(others) if others else ([], None)
        found = iter(others)
        return [None if key is None else next(found) for key in column], kind
    kinds = {kind_of(key) for key in column}
    kind = kinds.pop()
    if kinds or kind is None:
        raise TypeError(f"groups must hold {KINDS}, all of one kind")
    if kind == "integers":
        column = [int(key) for key in column]
        low, high = min(column), max(column)
        if low < -(2**63) or high >= (2**63 if low < 0 else 2**64):
            raise ValueError("groups must be integers of 64 bits")
    return [str(key) for key in column] if kind == "strings" else column, kind


def key_of(item: Any) -> Any:
    """A key as it is compared; None for one that is missing.

    Booleans are the integers that they are to Python; a date is nanoseconds, and whether it is in a
    zone, a time of day is nanoseconds and None; a period or an interval is itself.
    """
    if hasattr(item, "as_py"):  # pyarrow
        item = item.as_py()
    if is_missing(item):
        return None
    if isinstance(item, (int, np.integer, np.bool_)) and not isinstance(item, np.timedelta64):
        return int(item)
    if isinstance(item, (float, np.floating)) and math.isfinite(item) and item == int(item):
        return int(item)
    if isinstance(item, str):
        return str(item)
    if kind_of_pandas(item) is not None:
        return item
    if isinstance(item, datetime.time) and item.tzinfo is None:
        seconds = (item.hour * 60 + item.minute) * 60 + item.second
        return seconds * 10**9 + item.microsecond * 1_000, None
    if not isinstance(item, (datetime.date, np.datetime64)):
        return NO_KEY
    zoned = getattr(item, "tzinfo", None) is not None
    if hasattr(item, "to_datetime64"):
        item = item.to_datetime64()
    if isinstance(item, np.datetime64):
        if np.datetime_data(item.dtype)[0] in FINER:
            return NO_KEY
        days = item.astype("datetime64[D]")
        within = item - days
        if within.dtype == np.dtype("m8[D]"):
            within = np.timedelta64(0, "ns")
        nanoseconds = within / np.timedelta64(1, "ns")
        return int(days.astype(int)) * 86_400 * 10**9 + round(nanoseconds), zoned
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc if zoned else None)
    if not isinstance(item, datetime.datetime):
        item = datetime.datetime(item.year, item.month, item.day)
    since = item - start
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000, zoned


def shown(key: Any, kind: str | None) -> Any:
    """A key as it is given back."""
    if not isinstance(key, tuple):
        return bool(key) if kind == "booleans" else key
    nanoseconds, zoned = key
    if zoned is None:
        return (datetime.datetime.min + datetime.timedelta(microseconds=nanoseconds / 1_000)).time()
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc if zoned else None)
    try:
        date = start + datetime.timedelta(microseconds=nanoseconds // 1_000)
    except OverflowError:
        return np.datetime64(nanoseconds, "ns")
    if nanoseconds % 1_000:
        return key if zoned else np.datetime64(nanoseconds, "ns")
    return date.date() if not zoned and nanoseconds % (86_400 * 10**9) == 0 else date


def kind_of(item: Any) -> str | None:
    """What a key is; None for what is none."""
    if isinstance(item, (bool, np.bool_)):
        return "booleans"
    key = key_of(item)
    if isinstance(key, tuple):
        return {None: "times of day", False: "dates", True: "dates with a zone"}[key[1]]
    return {int: "integers", str: "strings"}.get(type(key)) or kind_of_pandas(key)


def kind_of_pandas(item: Any) -> str | None:
    """What a key is that is of a type of pandas."""
    own = type(item)
    return OF_PANDAS.get(own.__name__) if own.__module__.partition(".")[0] == "pandas" else None


def compared(key: Any) -> Any:
    """A key or a tuple of keys as it is looked up in an answer."""
    return tuple(map(key_of, key)) if isinstance(key, tuple) else key_of(key)


def frame_names(by: Any) -> tuple[Any, ...]:
    """The names of the columns of a frame."""
    if columns_of(by) is None:
        return ()
    own = {"MultiIndex": "names", "Table": "column_names", "RecordBatch": "column_names"}
    return tuple(getattr(by, own.get(type(by).__name__, "columns")))


def columns_of(frame: Any) -> list[Any] | None:
    """The columns of a frame, or of an index of several levels; None for anything else."""
    kind = type(frame)
    if kind.__name__ == "MultiIndex":
        return [frame.get_level_values(j) for j in range(frame.nlevels)]
    if kind.__name__ == "DataFrame":
        return [frame[name] for name in frame.columns]
    return list(frame.columns) if kind.__name__ in ("Table", "RecordBatch") else None


def check_column(by: Any) -> str | None:
    """Refuse what is no column of keys; what its type says of them. Reads no record."""
    if isinstance(by, (str, bytes, Mapping, Set)) or not hasattr(by, "__iter__"):
        raise TypeError(f"by must be a column of {KINDS}, got {type(by).__name__}")
    declared = declared_type(by)
    if declared is None:
        return None
    if getattr(by, "ndim", 1) != 1:
        raise ValueError(f"by must be one-dimensional, got {by.ndim} dimensions")
    name = (declared.name if isinstance(declared, np.dtype) else str(declared)).lower()
    name = name.removeprefix("dictionary<values=")  # pyarrow
    if name.startswith(("object", "null", "float", "double", "halffloat")) or name == "category":
        return None  # they say nothing
    if name.startswith(("period[", "interval")):
        return "periods" if name.startswith("period[") else "intervals"
    if name.startswith(("int", "uint")):
        return "integers"
    if name.startswith(("str", "large_str", "categorical", "enum")):
        return "strings"
    if name.startswith("bool"):
        return "booleans"
    if name.startswith(("date", "timestamp")) and not name.endswith(("[ps]", "[fs]", "[as]", "64")):
        zone = "tz=" in name or "utc" in name or "time_zone='" in name
        if name.startswith("datetime64[") and "," in name:  # pandas
            zone = True
        return "dates with a zone" if zone else "dates"
    if name.startswith(("time32", "time64")) or name == "time":
        return "times of day"
    raise TypeError(f"by must hold {KINDS}, got dtype {declared}")
