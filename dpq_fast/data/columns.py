"""A column of any library as one array of numbers, whatever its type says."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import MAX_COUNT, check_column, check_width, extra
from dpq_fast.data.units import DURATIONS, INSTANTS, Presence, Time, Timed, Unit


def is_ready(values: NDArray[Any], dtype: Any) -> bool:
    """Whether a kernel takes the array as it stands."""
    flags = values.flags
    return values.dtype == dtype and values.dtype.isnative and flags.c_contiguous and flags.aligned


def is_plain(values: NDArray[Any]) -> bool:
    """Whether a kernel that takes a column of any type takes the array as it stands."""
    kind, width = values.dtype.kind, values.dtype.itemsize
    known = kind in "iu" or (kind == "f" and width in (4, 8))
    return known and is_ready(values, values.dtype)


def as_plain(values: NDArray[Any]) -> NDArray[Any]:
    """Values in their own type where a kernel takes them so, else as float64."""
    return values if is_plain(values) else as_float64(values)


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


# What NumPy's letters for times stand for.
KINDS = {"m": DURATIONS, "M": INSTANTS}


# None for numbers.
AnyUnit = Unit | Presence | None


def as_column(x: Any, unit: AnyUnit = None) -> NDArray[Any]:
    """A column as a one-dimensional array of integers or floats; null and None become NaN.

    Taken by what it offers, not by the library that it is of: NumPy's arrays as they are, whatever
    narwhals knows through it, then Arrow's capsules, DLPack, ``__array__``, and any sequence.
    Memory is not copied where it is plain.

    Only what a column holds matters, not its type, which readers infer from the records: one
    record makes floats of integers, and a column of nothing but missing ones may have any type.
    Booleans count as 0 and 1, times and durations as steps of their `unit`.
    """
    if isinstance(x, Timed):
        x, unit = x.column, x.unit
    check_column(x)
    if type(x) is np.ndarray:
        return _of_numpy(x, unit)
    column = _array(x() if callable(x) else x, unit)
    if column.ndim != 1:
        raise ValueError(f"x must be one-dimensional, got {column.ndim} dimensions")
    return column


# Types of NumPy's arrays that hold neither numbers nor times nor what stands for a missing one:
# bytes, complex numbers, strings and records of fields.
NO_NUMBERS = frozenset("ScUV")


def check_declared(x: Any) -> None:
    """Refuse, before a record is read, an array of a type that has no number and no missing one.

    That is said of any record, by the type alone. Of other types it is not: strings may be what a
    reader makes of a column of nothing but missing records. These are refused once they are read.
    """
    unit: AnyUnit = None
    if isinstance(x, Timed):
        x, unit = x.column, x.unit
    if type(x) is np.ndarray and x.dtype.kind in NO_NUMBERS and x.size:
        if not isinstance(unit, Presence):
            refuse(f"dtype {_name_of(x.dtype)}", unit)


def _array(x: Any, unit: AnyUnit) -> NDArray[Any]:
    if isinstance(x, np.ma.MaskedArray):
        missing, x = np.ma.getmaskarray(x), np.ma.getdata(x)
        column = np.full(x.shape, np.nan) if missing.all() else _of_numpy(x, unit)
        return np.where(missing, np.nan, as_float64(column)) if missing.any() else column
    if isinstance(x, np.ndarray) or isinstance(getattr(x, "dtype", None), np.dtype):
        return _of_numpy(np.asarray(x), unit)
    if isinstance(x, Sequence):
        return _sequence(x, unit)
    known = _known(x)
    if known is None and str(getattr(x, "dtype", "")).endswith("Int128"):  # of polars
        import polars

        x = x.cast(polars.Float64)  # neither Arrow nor NumPy has them
    if known is None and any(hasattr(x, capsule) for capsule in CAPSULES):
        try:
            x = _of_capsule(x)
        except ImportError:  # an array will do, but is slower
            if not hasattr(x, "__array__"):
                raise
        known = _known(x)
    if known is not None:
        return _of_series(known, unit)
    if hasattr(x, "__array__"):
        return _of_numpy(np.asarray(x), unit)
    if hasattr(x, "__dlpack__"):
        return _of_numpy(np.from_dlpack(x), unit)
    return _sequence(x, unit)


# Arrow's C data interface.
CAPSULES = ("__arrow_c_stream__", "__arrow_c_array__")


def _known(x: Any) -> Any:
    """A column, or a frame of one column, as a series of narwhals; None where it knows it not."""
    try:
        import narwhals.stable.v2 as narwhals
    except ModuleNotFoundError:  # all else that a column offers will do, but is slower
        return None
    known = narwhals.from_native(x, pass_through=True, allow_series=True)
    if known is x:
        return None
    if isinstance(known, narwhals.LazyFrame):
        known = known.collect()
    if isinstance(known, narwhals.DataFrame):
        known = known[:, 0]  # of one column: `check_column`; by place, as names may be numbers
    return known


def _of_capsule(x: Any) -> Any:
    """A column, or the one column of a table, that is handed over by Arrow's C interface."""
    pa = extra("pyarrow", "a column by Arrow's C interface", "arrow")
    if hasattr(x, "__arrow_c_array__"):
        column = pa.chunked_array([pa.array(x)])
    else:
        column = pa.chunked_array(x)
    if pa.types.is_struct(column.type):  # rows of a table
        check_width(column.type.num_fields)
        return column.flatten()[0]
    return column


def _of_numpy(x: NDArray[Any], unit: AnyUnit) -> NDArray[Any]:
    """Numbers of an array of any shape."""
    kind = x.dtype.kind
    if kind == "O" and x.ndim == 1:
        return _sequence(x, unit)
    if kind in "iufb" and takes_numbers(unit):
        return x.view(np.uint8) if kind == "b" else x
    if kind in "mM" and unit is not None and unit.takes(KINDS[kind], False):
        return unit.numbers_of(x)
    missing = np.isnat(x) if kind in "mM" else np.isnan(x) if kind == "f" else np.zeros(x.shape)
    if isinstance(unit, Presence) and kind in "SU":
        return missing
    if x.size and not missing.all():
        refuse(f"dtype {_name_of(x.dtype)}", unit, kind in "mM")
    return np.full(x.shape, np.nan)


def _name_of(dtype: np.dtype[Any]) -> str:
    """What a type is called, but for how long the longest of its items is."""
    return dtype.type.__name__.strip("_") if dtype.kind in "SUV" else str(dtype)


def takes_numbers(unit: AnyUnit) -> bool:
    """Whether numbers are read as what the unit says."""
    return unit is None or isinstance(unit, Presence)


def refuse(got: Any, unit: AnyUnit, times: bool = False) -> NoReturn:
    """What is said of a column of another kind than that of the public arguments."""
    rule = "real numbers" if unit is None else unit.words
    hint = ": bounds must be of its kind" if times and unit is None else ""
    raise TypeError(f"x must hold {rule}, got {got}{hint}")


def _of_series(series: Any, unit: AnyUnit) -> NDArray[Any]:
    """A series of narwhals."""
    import narwhals.stable.v2 as narwhals

    dtype = series.dtype
    if takes_numbers(unit) and dtype.is_numeric() and not dtype.is_decimal():
        if str(dtype).endswith("Int128"):  # which NumPy has not
            series = series.cast(narwhals.Float64)
        return np.asarray(series.to_numpy())
    if takes_numbers(unit) and (dtype.is_decimal() or dtype == narwhals.Boolean):
        if dtype.is_decimal():  # by their digits: pyarrow's quotients are off by a unit
            series = series.cast(narwhals.String)
        return np.asarray(series.cast(narwhals.Float64).to_numpy())
    if unit is not None and dtype.is_temporal():
        zone = getattr(dtype, "time_zone", None)
        kind = DURATIONS if dtype == narwhals.Duration else INSTANTS
        if unit.takes(kind, zone is not None) and dtype != narwhals.Time:
            return unit.numbers_of(_in_numpy(series))
    if dtype == narwhals.Unknown and str(_declared(series)).startswith("date64"):
        return _of_series(series.cast(narwhals.Datetime("ms")), unit)  # which Python may not have
    mapped = str(_declared(series)).startswith("map<")  # which older versions do not know
    # sparse ones of pandas, Arrow's intervals
    if dtype in (narwhals.Object, narwhals.Unknown) and not mapped:
        return _sequence(series.to_list(), unit)
    if dtype.is_float():
        return _of_numpy(np.asarray(series.to_numpy()), unit)
    if series.null_count() != len(series):
        decoded = _decoded(series.to_native())
        if decoded is not None:
            items, codes = decoded
            numbers: NDArray[np.float64] = np.append(as_float64(_array(items, unit)), np.nan)
            return np.take(numbers, codes, mode="wrap")
        if isinstance(unit, Presence):
            return np.where(np.asarray(series.is_null().to_numpy()), np.nan, 0.0)
        refuse(f"dtype {_declared(series)}", unit, dtype.is_temporal())
    return np.full(len(series), np.nan)


def _declared(series: Any) -> Any:
    """The type of a series of narwhals, as its own library calls it."""
    native = series.to_native()
    return native.type if hasattr(native, "type") else native.dtype  # of pyarrow: `type`


def check_type(column: Any, unit: AnyUnit) -> None:
    """Refuse a column of no records for the type that it declares; one of objects says nothing."""
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        _of_numpy(np.zeros(1, column.dtype), unit)
    series = _known(column)
    if series is None or isinstance(unit, Presence) or str(_declared(series)) == "object":
        return
    dtype, name = series.dtype, type(series.dtype).__name__
    if dtype.is_temporal() and name != "Time":
        kind = DURATIONS if name == "Duration" else INSTANTS
        taken = unit is not None and unit.takes(kind, getattr(dtype, "time_zone", None) is not None)
    else:
        taken = unit is None and (dtype.is_numeric() or name == "Boolean")
    if not (taken or name in ("Object", "Unknown", "Categorical", "Enum")):
        refuse(f"dtype {_declared(series)}", unit, dtype.is_temporal())


def _in_numpy(series: Any) -> NDArray[Any]:
    """Times or durations of a series of narwhals as those of NumPy; of zones, as UTC."""
    import narwhals.stable.v2 as narwhals

    if getattr(series.dtype, "time_zone", None) is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    elif series.dtype == narwhals.Date:
        series = series.cast(narwhals.Datetime("ms"))
    return np.asarray(series.to_numpy())


def of_any_time(x: Any) -> Any:
    """A series of times or durations as an array of NumPy, which has all of them; others as is.

    Times of day are refused by their type: Python does not have those of nanoseconds.
    """
    series = None if isinstance(x, np.ndarray) else _known(x)
    # narwhals knows no single array of Arrow
    declared = str(getattr(x, "type", None) if series is None else _declared(series))
    if declared == "Time" or re.search(r"\btime(32|64)\[", declared):  # of polars; of Arrow
        refuse(f"dtype {declared}", None)
    return x if series is None or not series.dtype.is_temporal() else _in_numpy(series)


def _decoded(column: Any) -> tuple[Any, NDArray[np.integer]] | None:
    """Numbers or times, and the place of each record among them, -1 for a missing one.

    Of categories of pandas and dictionaries of Arrow; None for all else.
    """
    if hasattr(type(column), "iloc") and hasattr(column.dtype, "categories"):
        items, codes = column.cat.categories, column.cat.codes.to_numpy()
        return (items, codes) if getattr(items.dtype, "kind", "O") in "iufbmM" else None
    declared: Any = getattr(column, "type", None)
    if declared is None:
        declared = getattr(column.dtype, "pyarrow_dtype", None)
    if not str(declared).startswith("dictionary<"):
        return None
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_temporal, pa.types.is_boolean)
    if not any(is_kind(declared.value_type) for is_kind in kinds):
        return None
    encoded = column if isinstance(column, pa.ChunkedArray) else pa.array(column.array)
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # of one chunk, in some versions
        encoded = encoded.chunk(0)
    return encoded.dictionary, encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy()


def _sequence(x: Any, unit: AnyUnit) -> NDArray[Any]:
    """A sequence of real numbers or of times (None or the like for a missing one) as float64."""
    if unit is not None:
        return np.array([_time(item, unit) for item in x], dtype=np.float64)
    return np.array([item if type(item) is float else _real(item) for item in x], dtype=np.float64)


# Items that are counted, though they are neither numbers nor times.
OTHERS = (str, bytes, datetime.time)


def _time(item: Any, unit: Unit | Presence) -> float:
    time = Time.of(item)
    if time is None and hasattr(item, "as_py"):  # pyarrow
        item = item.as_py()
    if time is None and is_missing(item):
        return np.nan
    if time is None and isinstance(unit, Presence):
        return 0.0 if isinstance(item, OTHERS) else _real(item)
    if time is None or not unit.takes(time.kind, time.zone is not None):
        refuse(type(item).__name__, unit)
    return unit.number_of(time)


def _real(item: Any) -> float:
    if type(item) not in PLAIN:
        if hasattr(item, "as_py"):  # pyarrow
            if Time.of(item) is not None:  # which Python may not have
                refuse(type(item).__name__, None, True)
            item = item.as_py()
        if is_missing(item):
            return np.nan
        if isinstance(item, (str, bytes, complex, np.complexfloating, np.timedelta64)):
            refuse(type(item).__name__, None, isinstance(item, np.timedelta64))
        if hasattr(item, "__len__"):
            raise ValueError("x must be one-dimensional, got a nested sequence")
    try:
        return float(item)
    except OverflowError:  # an integer beyond float64 is clamped like an infinity
        return np.inf if item > 0 else -np.inf
    except (TypeError, ValueError):
        refuse(type(item).__name__, None, Time.of(item) is not None)


def is_missing(item: Any) -> bool:
    """Whether an item stands for none, in whatever library's way.

    Which of them is there is data: none may be refused where another one is not.
    """
    if item is None or item is np.ma.masked:
        return True
    if isinstance(item, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(item))
    if isinstance(item, (float, np.floating)):
        return math.isnan(item)
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
