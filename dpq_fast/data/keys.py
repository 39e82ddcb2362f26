"""Keys of groups: which kinds there are, and how one is compared, whatever library it is of.

A key is an integer, a string, a boolean, a date, a time of day, or a period or an interval of
pandas, or a tuple of such where there are several columns; a float that is whole is an integer.
What a column declares may be refused. What it holds may not: a record whose key is of another type,
or none of the public ones, is in no group, and neither is one whose key is missing, unless None is
a public key.

`key_columns` reads the keys of records, `public_keys` finds each among the public ones, and
`key_counts` counts how many records each key has, where none are public.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.columns import is_missing
from dpq_fast.data.units import ANSWERED, EPOCH, INSTANTS, LARGEST, TICKS, Time

INTEGERS, STRINGS, BOOLEANS, DATES = "integers", "strings", "booleans", "dates"
ZONED, CLOCKS, PERIODS, INTERVALS = "dates with a zone", "times of day", "periods", "intervals"
KINDS = "integers, strings, booleans, dates, times of day, periods or intervals"
# Kinds whose keys are compared as instants.
TIMED = (DATES, ZONED, CLOCKS)
# Types of pandas, by their names: it need not be there.
OF_PANDAS = {"Period": PERIODS, "Interval": INTERVALS}

# The integer that NumPy has for no time.
NO_TIME = np.iinfo(np.int64).min
# What is no key, and not missing either, as it is compared.
NO_KEY = object()

_EPOCH_OF_ZONES = EPOCH.replace(tzinfo=datetime.timezone.utc)


class Instant(NamedTuple):
    """A date or a time of day as it is compared: that of a day is its first moment.

    Attributes
    ----------
    nanoseconds : int
        Since 1970, or since midnight.
    kind : str
        One of `TIMED`: dates in a time zone are the same everywhere.
    """

    nanoseconds: int
    kind: str


def comparable(key: Any) -> Any:
    """A key as it is compared, whatever library it comes from; None for one that is missing."""
    if isinstance(key, tuple):
        return key if isinstance(key, Instant) else tuple(map(comparable, key))
    of_arrow = hasattr(key, "as_py")
    if of_arrow and str(key.type).startswith(("time32", "time64")):  # which Python may not have
        return Instant(key.value * TICKS[key.type.unit], CLOCKS) if key.is_valid else None
    if isinstance(key, datetime.time):
        since = datetime.datetime.combine(EPOCH, key.replace(tzinfo=None)) - EPOCH
        within = since // datetime.timedelta(microseconds=1) * 1_000
        return Instant(within, CLOCKS) if key.tzinfo is None else NO_KEY
    if of_arrow or isinstance(key, (datetime.date, np.datetime64)):
        time = Time.of(key)  # None for one that is missing
        if time is not None and time.kind == INSTANTS:
            return Instant(time.nanoseconds, DATES if time.zone is None else ZONED)
        if of_arrow and time is None:
            key = key.as_py()
        elif not is_missing(key):  # a length, or of a unit that has none
            return NO_KEY
    if isinstance(key, (float, np.floating)) and math.isfinite(key) and key == int(key):
        return int(key)  # floats come from rows without a key
    return None if is_missing(key) else key


def date_of(moment: Instant) -> Any:
    """A date for a moment: a day, a time, or where it is none of Python's, NumPy's.

    One with a zone, or of a day, that Python does not have is a moment still.
    """
    days, within = divmod(moment.nanoseconds, TICKS["D"])
    zoned = moment.kind == ZONED
    if moment.kind == CLOCKS:
        if days or within % 1_000:
            return moment
        return (EPOCH + datetime.timedelta(microseconds=within // 1_000)).time()
    try:
        if within == 0 and not zoned:
            return EPOCH.date() + datetime.timedelta(days=days)
        if within % 1_000 == 0:
            start = _EPOCH_OF_ZONES if zoned else EPOCH
            return start + datetime.timedelta(days=days, microseconds=within // 1_000)
    except OverflowError:
        pass
    if zoned:
        return moment
    for unit in (*ANSWERED, "h", "m", "W"):
        ticks, rest = divmod(moment.nanoseconds, TICKS[unit])
        if rest == 0 and abs(ticks) <= LARGEST:
            return np.array(ticks, dtype=f"M8[{unit}]")[()]
    return moment


def kind_of(key: Any) -> str | None:
    """What a key is, as it is compared."""
    if isinstance(key, Instant):
        return key.kind
    if isinstance(key, (bool, np.bool_)):
        return BOOLEANS
    if isinstance(key, (int, np.integer)) and not isinstance(key, np.timedelta64):
        return INTEGERS
    return STRINGS if isinstance(key, str) else kind_of_pandas(type(key))


def kind_of_pandas(declared: type) -> str | None:
    """What the keys of a type are, if it is one of pandas that they may have."""
    known = declared.__module__.partition(".")[0] == "pandas"
    return OF_PANDAS.get(declared.__name__) if known else None


def items_of(column: Any) -> list[Any]:
    """The items of a column or sequence as Python objects."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":  # else integers, of some units
        return list(column)
    for name in ("to_pylist", "to_list", "tolist"):  # pyarrow, polars and pandas, NumPy
        if hasattr(column, name):
            items: list[Any] = getattr(column, name)()
            return items
    return list(column)


def objects(items: Iterable[Any]) -> NDArray[Any]:
    """An array of them as they are, even if they are tuples."""
    listed = list(items)
    made = np.empty(len(listed), dtype=object)
    made[:] = listed
    return made


def as_array(keys: list[Any]) -> NDArray[Any]:
    """Keys as int64, or uint64 where they need it; booleans; all else, and nothing, as objects."""
    kinds = {kind_of(key) for key in keys}
    if kinds == {BOOLEANS}:
        return np.array(keys, dtype=np.bool_)
    if kinds == {INTEGERS}:
        if -(2**63) <= min(keys) and max(keys) < 2**63:
            return np.array(keys, dtype=np.int64)
        if min(keys) >= 0:
            return np.array(keys, dtype=np.uint64)
    return objects(keys)
