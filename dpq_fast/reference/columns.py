"""A column of any library, record by record."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import MAX_COUNT, check_column

# Types whose items are no numbers of their own, even if they show as such: codes, and nested ones.
PACKED: tuple[str, ...] = ("category", "dictionary", "run_end_encoded", "array", "struct", "map")
PACKED += ("list", "large_list", "fixed_size_list")


def declared_type(x: Any) -> Any:
    """The type that a column declares, if any: `dtype`, or `type` as in pyarrow."""
    return getattr(x, "dtype", getattr(x, "type", None))


def numbers(x: Any) -> NDArray[np.float64]:
    """The records of a column as float64; what stands for no number is NaN."""
    check_column(x)
    declared = declared_type(x)
    if hasattr(x, "__array__") and (declared is None or isinstance(declared, np.dtype)):
        x = np.asanyarray(x)
        declared = x.dtype
        if x.ndim != 1:
            raise ValueError(f"x must be one-dimensional, got {x.ndim} dimensions")
    packed = str(declared).lower().startswith(PACKED) or getattr(declared, "kind", "") in {*"mMV"}
    with np.errstate(all="ignore"):  # no warning may depend on the data
        return np.array([number(item, packed) for item in x], dtype=np.float64)


def number(item: Any, packed: bool = False) -> float:
    """One record: a number, true or false, or NaN for what is missing."""
    if hasattr(item, "as_py"):  # pyarrow
        item = item.as_py()
    if is_missing(item):
        return math.nan
    if packed and not (isinstance(item, float) and math.isnan(item)):  # missing in a category
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
    """None, masked, pandas' NA and NaT, NumPy's NaT, and a NaN of `Decimal`, signaling or not."""
    if item is None or item is np.ma.masked:
        return True
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
