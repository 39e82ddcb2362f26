"""A column of any library, record by record."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import MAX_COUNT, check_column, names_of

# Types whose items are no numbers of their own, even if they show as such: codes, and nested ones.
PACKED: tuple[str, ...] = ("run_end_encoded", "array", "struct", "map")
PACKED += ("list", "large_list", "fixed_size_list")


# Types of times and durations.
TIMES = (date, timedelta, np.datetime64, np.timedelta64)


def declared_type(x: Any) -> Any:
    """The type that a column declares, if any: `dtype`, or `type` as in pyarrow."""
    return getattr(x, "dtype", getattr(x, "type", None))


def numbers(x: Any) -> NDArray[np.float64]:
    """The records of a column as float64; what stands for no number is NaN."""
    x = only_column(x)
    declared = declared_type(x)
    if hasattr(x, "__array__") and (declared is None or isinstance(declared, np.dtype)):
        x = np.asanyarray(x)
        declared = x.dtype
        if x.ndim != 1:
            raise ValueError(f"x must be one-dimensional, got {x.ndim} dimensions")
    packed = str(declared).lower().startswith(PACKED) or getattr(declared, "kind", "") in {*"mMV"}
    with np.errstate(all="ignore"):  # no warning may depend on the data
        return np.array([number(item, packed) for item in x], dtype=np.float64)


def only_column(x: Any) -> Any:
    """A column; of a frame, the only one."""
    check_column(x)
    names = names_of(x)
    if names is None:
        return x
    return (x.collect() if hasattr(x, "collect") else x)[names[0]]


def steps(x: Any, origin: Any, step: Any) -> NDArray[np.float64]:
    """How many steps lie between a time and each record; NaN for what is no time.

    Parameters
    ----------
    x : array_like of times or durations
    origin, step : numpy.datetime64 or numpy.timedelta64
        Of any unit; of UTC, where there are zones. The step is a duration.

    Returns
    -------
    ndarray of float64
        The nearest number to each quotient.
    """
    x = only_column(x)
    if isinstance(x, np.ndarray):
        items = [x[i] for i in range(len(x))]
    else:
        items = list(x)
    length, start = nanoseconds(step), nanoseconds(origin)
    assert length is not None and start is not None
    found = [nanoseconds(item) for item in items]
    return np.array(
        [math.nan if time is None else float(Fraction(time - start, length)) for time in found]
    )


def present(x: Any) -> NDArray[np.float64]:
    """The records of a column of any type, where only their number matters."""
    items = list(only_column(x))
    if not any(isinstance(item, (*TIMES, str, bytes, time)) for item in items):
        return numbers(x)
    return np.array([math.nan if is_missing(item) else 0.0 for item in items])


def nanoseconds(item: Any) -> int | None:
    """Since the beginning of 1970 in UTC, or of a duration; None for what is missing."""
    if hasattr(item, "as_py"):  # pyarrow
        item = item.as_py()
    if is_missing(item):
        return None
    if isinstance(item, (np.datetime64, np.timedelta64)):
        finer = item.astype(f"{item.dtype.str[1:3]}[D]") if item.dtype.str[4] in "YM" else item
        tick, times = np.datetime_data(finer.dtype)
        lengths = {"D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9, "s": 10**9}
        lengths |= {"W": 7 * lengths["D"], "ms": 10**6, "us": 1_000, "ns": 1}
        return int(finer.view(np.int64)) * times * lengths[tick]
    more = getattr(item, "nanosecond", getattr(item, "nanoseconds", 0))  # of pandas
    if not isinstance(item, timedelta):
        if not isinstance(item, datetime):
            item = datetime(item.year, item.month, item.day)
        item = item - datetime(1970, 1, 1, tzinfo=item.tzinfo and timezone.utc)
    return int(item // timedelta(microseconds=1)) * 1_000 + int(more)


def number(item: Any, packed: bool = False) -> float:
    """One record: a number, true or false, or NaN for what is missing."""
    if hasattr(item, "as_py"):  # pyarrow
        item = item.as_py()
    if is_missing(item):
        return math.nan
    if packed:
        raise TypeError(f"x must hold real numbers, got {type(item).__name__}")
    if isinstance(item, (str, bytes, complex, np.complexfloating)):
        raise TypeError(f"x must hold real numbers, got {type(item).__name__}")
    if hasattr(item, "__len__"):
        raise ValueError("x must be one-dimensional, got a nested sequence")
    try:
        return float(item)
    except OverflowError:  # an integer beyond float64
        return math.inf if item > 0 else -math.inf
    except (TypeError, ValueError):
        raise TypeError(f"x must hold real numbers, got {type(item).__name__}") from None


def is_missing(item: Any) -> bool:
    """None, masked, NaN (also of `Decimal`, signaling or not), NaT, and pandas' NA."""
    if item is None or item is np.ma.masked:
        return True
    if isinstance(item, (float, np.floating)):
        return math.isnan(item)
    if isinstance(item, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(item))
    if isinstance(item, Decimal):
        return item.is_nan()
    kind = type(item)
    return kind.__name__ in ("NAType", "NaTType") and kind.__module__.startswith("pandas.")


def repeats(counts: Any, size: int, of: str = "x") -> NDArray[np.int64]:
    """How often each of `size` records of a column occurs."""
    given = np.asarray(counts)
    if given.ndim != 1 or given.size != size:
        raise ValueError(f"counts must have one entry for each value of {of}")
    if given.dtype.kind not in "iuf":
        raise TypeError(f"counts must be integers, got dtype {given.dtype}")
    weights = given.tolist()
    with np.errstate(invalid="ignore"):  # of inf, in extended precision
        whole = not any(math.isnan(weight) or weight % 1 > 0 for weight in weights)
    if not whole:
        raise ValueError("counts must be integers, got a fractional or non-finite one")
    if any(weight < 0 for weight in weights):
        raise ValueError("counts must not be negative")
    if math.inf in weights or sum(map(int, weights)) > MAX_COUNT:
        raise ValueError("counts must sum to at most 2^53")
    return np.array(weights, dtype=np.int64)
