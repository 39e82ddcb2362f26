"""A column of any library as one array of numbers, whatever its type says."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import MAX_COUNT, check_column


def is_ready(values: NDArray[Any], dtype: type) -> bool:
    """Whether a kernel takes the array as it stands."""
    flags = values.flags
    return values.dtype == dtype and values.dtype.isnative and flags.c_contiguous and flags.aligned


def as_float64(values: NDArray[Any]) -> NDArray[np.float64]:
    """Values as float64 that a kernel takes; what does not fit becomes infinite, without a warning.

    NumPy would warn of overflow and of signaling NaN: a warning that depends on the data.
    """
    if is_ready(values, np.float64):
        return values
    with np.errstate(all="ignore"):
        return np.array(values, dtype=np.float64, order="C")


# Numbers in a sequence that need no further look.
PLAIN = {bool, int, np.bool_}.union(
    np.dtype(code).type for code in np.typecodes["AllInteger"] + np.typecodes["Float"]
)


def as_column(x: Any) -> NDArray[Any]:
    """A column as a one-dimensional array of integers or floats; null and None become NaN.

    Only what a column holds matters, not its type, which readers infer from the records: one
    record makes floats of integers, and a column of nothing but missing ones may have any type.
    Booleans count as 0 and 1.
    """
    check_column(x)
    if isinstance(x, np.ma.MaskedArray):
        missing, x = np.ma.getmaskarray(x), np.ma.getdata(x)
        column = np.full(x.shape, np.nan) if missing.all() else _of_numpy(x)
        column = np.where(missing, np.nan, as_float64(column)) if missing.any() else column
    elif isinstance(x, np.ndarray):
        column = _of_numpy(x)
    elif hasattr(x, "dtype") or hasattr(x, "type"):
        column = _foreign_column(x)
    elif hasattr(x, "__array__"):
        column = _of_numpy(np.asarray(x))
    else:
        column = _sequence(x)
    if column.ndim != 1:
        raise ValueError(f"x must be one-dimensional, got {column.ndim} dimensions")
    return column


def _of_numpy(x: NDArray[Any]) -> NDArray[Any]:
    """Real numbers of an array of any shape."""
    kind = x.dtype.kind
    if kind in "iuf":
        return x
    if kind == "b":
        return x.astype(np.float64)
    if kind == "O" and x.ndim == 1:
        return _sequence(x)
    if x.size and not (kind in "mM" and np.isnat(x).all()):
        raise TypeError(f"x must hold real numbers, got dtype {x.dtype}")
    return np.full(x.shape, np.nan)


def _foreign_column(x: Any) -> NDArray[Any]:
    """A pandas, polars, pyarrow or other array-protocol column, nulls as NaN."""
    declared = x.type if getattr(x, "dtype", None) is None else x.dtype  # pyarrow has `type`
    kind = declared_kind(declared)
    if isinstance(declared, np.dtype):
        return _of_numpy(np.asarray(x))
    if kind in "iufbd":
        if hasattr(x, "to_numpy") and hasattr(x, "isna"):  # pandas extension types
            values: NDArray[np.float64] = x.to_numpy(dtype=np.float64, na_value=np.nan)
            return values
        if kind in "bd":
            return np.asarray(_as_doubles(x))
        return np.asarray(x)
    if kind == "O" and hasattr(x, "__iter__"):
        return _sequence(x)
    missing = x.isna().all() if hasattr(x, "isna") else _null_count(x) == len(x)
    if not missing:
        raise TypeError(f"x must hold real numbers, got dtype {declared}")
    return np.full(len(x), np.nan)


def _as_doubles(x: Any) -> Any:
    """A polars or pyarrow column of booleans or decimals as one of float64."""
    if hasattr(x, "null_count") and callable(x.null_count):
        import polars

        return x.cast(polars.Float64)
    import pyarrow

    if pyarrow.types.is_boolean(x.type):
        x = x.cast(pyarrow.uint8())
    return x.cast(pyarrow.float64())


def _null_count(x: Any) -> int:
    """Number of nulls of a polars or pyarrow column; -1 for what does not tell."""
    count = getattr(x, "null_count", -1)
    return count() if callable(count) else count


def declared_kind(declared: Any) -> str:
    """NumPy's letter for the type a column declares; "V" where it has none.

    "U" stands for strings of every kind, "d" for decimals, and "O" for objects and for a column
    of nulls.
    """
    if isinstance(declared, np.dtype):
        return declared.kind
    kind = getattr(declared, "kind", None)
    if kind is not None:  # pandas, where "O" is all that NumPy does not know
        letters = {str: "U", np.object_: "O", Decimal: "d"}
        return letters.get(declared.type, "V" if kind == "O" else kind)
    name = str(declared).lower()  # polars: "Int64", "UInt8"; pyarrow: "int64", "uint8"
    if name.startswith(("int", "uint")):
        return "i"
    if name.startswith("float") or name in ("double", "halffloat"):
        return "f"
    if name.startswith("bool"):
        return "b"
    if name.startswith("decimal"):
        return "d"
    if name.startswith(("string", "large_string", "categorical", "enum")):
        return "U"
    return "O" if name in ("null", "object") else "V"


def _sequence(x: Any) -> NDArray[Any]:
    """A sequence of real numbers (None or the like for null) as float64."""
    return np.array([item if type(item) is float else _real(item) for item in x], dtype=np.float64)


def _real(item: Any) -> float:
    if type(item) not in PLAIN:
        if hasattr(item, "as_py"):  # pyarrow
            item = item.as_py()
        if _is_missing(item):
            return np.nan
        if isinstance(item, (str, bytes, complex, np.complexfloating)):
            raise TypeError(f"x must hold real numbers, got {type(item).__name__}")
        if hasattr(item, "__len__"):
            raise ValueError("x must be one-dimensional, got a nested sequence")
    try:
        return float(item)
    except OverflowError:  # an integer beyond float64 is clamped like an infinity
        return np.inf if item > 0 else -np.inf
    except (TypeError, ValueError):
        raise TypeError(f"x must hold real numbers, got {type(item).__name__}") from None


def _is_missing(item: Any) -> bool:
    """Whether an item stands for no number, in whatever library's way.

    Which of them is there is data: none may be refused where another one is not.
    """
    if item is None or item is np.ma.masked:
        return True
    if isinstance(item, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(item))
    if isinstance(item, Decimal):  # a signaling NaN has no float
        return item.is_nan()
    kind = type(item)
    return kind.__name__ in ("NAType", "NaTType") and kind.__module__.startswith("pandas.")


def check_counts(counts: Any, size: int, of: str = "x") -> NDArray[np.int64]:
    """How often each of `size` values of a column occurs: non-negative integers, int64."""
    weights = np.asarray(counts)
    if weights.ndim != 1 or weights.size != size:
        raise ValueError(f"counts must have one entry for each value of {of}")
    if weights.dtype.kind not in "iuf":
        raise TypeError(f"counts must be integers, got dtype {weights.dtype}")
    with np.errstate(all="ignore"):  # NumPy would warn of some that are not finite, and of sums
        if weights.dtype.kind == "f" and not (weights == np.floor(weights)).all():
            raise ValueError("counts must be integers, got a fractional or non-finite one")
        if (weights < 0).any():
            raise ValueError("counts must not be negative")
        # rounded, then exactly where that can not wrap
        rounded, exact = weights.astype(np.float64), weights.astype(np.int64)
        if rounded.sum() > MAX_COUNT or exact.sum() > MAX_COUNT:
            raise ValueError("counts must sum to at most 2^53")
    return exact


def refuse_nan(nan_policy: str) -> None:
    """What is said where NaN is found against the policy."""
    if nan_policy == "raise":
        raise ValueError("x must not contain NaN with nan_policy='raise'")
