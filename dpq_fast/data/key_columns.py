"""The keys of records: columns of any library, refused by the types that they declare alone."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._kernels import strings
from dpq_fast.data.keys import (
    BOOLEANS,
    CLOCKS,
    DATES,
    INTEGERS,
    INTERVALS,
    KINDS,
    NO_TIME,
    PERIODS,
    STRINGS,
    TIMED,
    ZONED,
    comparable,
    items_of,
    kind_of_pandas,
)
from dpq_fast.data.units import TICKS, ticks_of

# By the names of their types.
LAYOUTS = {
    "string": strings.INT32,
    "large_string": strings.INT64,
    "string_view": strings.VIEWS,
}


def is_arrow(keys: Any) -> bool:
    """Whether these are strings of Arrow, in chunks."""
    return hasattr(keys, "chunks")


def columns_of(frame: Any) -> list[Any] | None:
    """The columns of a frame or of an index of several levels; None for anything else."""
    kind = type(frame)  # pandas has attributes for the labels of a frame, too
    if hasattr(kind, "iloc") and hasattr(kind, "columns"):  # pandas
        return [frame.iloc[:, j] for j in range(frame.shape[1])]
    if hasattr(kind, "get_columns"):  # polars
        return list(frame.get_columns())
    if hasattr(kind, "get_level_values") and frame.nlevels > 1:
        return [frame.get_level_values(j) for j in range(frame.nlevels)]
    if hasattr(kind, "column_names"):  # pyarrow
        return list(frame.columns)
    return None


def key_columns_of(by: Any) -> list[Any] | None:
    """As `columns_of`, of a frame that has some."""
    columns = columns_of(by)
    if columns == []:
        raise ValueError("by must have at least one column, got a frame of none")
    return columns


def names_of(by: Any) -> list[Any]:
    """What the columns of keys are called, if they are those of a frame; public, as their types."""
    if columns_of(by) is None:
        return []
    return list(by.names if hasattr(type(by), "get_level_values") else _checks.names_of(by))


class Column(NamedTuple):
    """The keys of the rows in one column, checked for their form.

    Attributes
    ----------
    codes : ndarray of integers, or None
        Keys, or codes where there are `items`.
    items : list, ndarray, pandas.Series, pyarrow.ChunkedArray or None
        The keys that codes 0, 1, ... stand for, where -1 is missing; without codes, the keys.
        Those of NumPy and of pandas are objects or strings, those of Arrow strings.
    missing : ndarray of bool, or None
        Where codes stand for nothing.
    kind : str or None
        What the column's type says of its keys.
    unit : int
        Nanoseconds of one step of dates.
    others : ndarray of bool, or None
        Where a key is not missing, but codes stand for nothing, since it is none.
    """

    codes: NDArray[Any] | None
    items: Any
    missing: NDArray[np.bool_] | None
    kind: str | None
    unit: int = 1
    others: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.items if self.codes is None else self.codes)

    @property
    def without_key(self) -> NDArray[np.bool_]:
        """Which rows have no key: their key is missing, not of another type."""
        if self.items is None:
            assert self.codes is not None
            gone = np.zeros(len(self), dtype=np.bool_) if self.missing is None else self.missing
            if self.kind in TIMED:
                gone = gone | (self.codes == NO_TIME)
            return gone if self.others is None else gone & ~self.others
        if is_arrow(self.items):
            gone = self.items.is_null().to_numpy()
        else:
            gone = np.array(list(map(_is_gone, items_of(self.items))), dtype=np.bool_)
        return gone if self.codes is None else np.append(gone, True)[self.codes]

    def encoded(self) -> Column:
        """The same with codes, where pandas or Arrow makes them."""
        if self.codes is not None:
            return self
        if is_arrow(self.items):
            return _of_strings(self.items, self.kind)
        if hasattr(self.items, "factorize"):
            import pandas

            try:
                codes, items = pandas.factorize(self.items)
            except Exception:  # of what is not hashable: no keys, and no reason to tell
                return Column(None, items_of(self.items), None, self.kind)
            return Column(codes, items_of(items), None, self.kind)
        return self

    @classmethod
    def of(cls, by: Any) -> Column:
        """Check one column of keys: its type and dimension, nothing else."""
        kind = declared_kind(by)
        categorical = getattr(by, "cat", by)  # pandas: a Series, or the Categorical itself
        if hasattr(categorical, "codes") and hasattr(categorical, "categories"):
            # Of any type: pandas takes the categories, and their type, from the keys that occur.
            return cls(np.asarray(categorical.codes), items_of(categorical.categories), None, None)
        if not (hasattr(by, "__array__") or hasattr(by, "dtype") or hasattr(by, "type")):
            return cls(None, by if isinstance(by, list) else list(by), None, None)
        declared = _declared(by)
        if _are_floats(getattr(declared, "pyarrow_dtype", declared)):
            return _of_floats(by)
        if hasattr(declared, "pyarrow_dtype"):  # of pandas
            import pyarrow

            return _of_arrow(pyarrow.array(getattr(by, "array", by)), kind)
        if hasattr(by, "to_pylist"):
            return _of_arrow(by, kind)
        if hasattr(by, "to_physical"):
            return _of_polars(by, kind)
        if hasattr(by, "isna"):
            return _of_pandas(by, kind)
        by = np.asanyarray(by)
        return _of_numpy(by, declared_kind(by))


def _is_gone(item: Any) -> bool:
    try:
        return comparable(item) is None
    except Exception:  # no key, but something, and no reason to tell
        return False


def declared_kind(by: Any) -> str | None:
    """Check what a column of keys declares; the kind of its keys, None if it does not say.

    Reads no record. The declared type decides: what NumPy makes of other columns than its own
    depends on their nulls.
    """
    if isinstance(by, (str, bytes, Mapping, Set)) or not hasattr(by, "__iter__"):
        raise TypeError(f"by must be a column of {KINDS}, got {type(by).__name__}")
    declared = _declared(by)
    if declared is None or hasattr(getattr(by, "cat", by), "codes"):
        return None
    if getattr(by, "ndim", 1) != 1:
        raise ValueError(f"by must be one-dimensional, got {by.ndim} dimensions")
    arrow = getattr(declared, "pyarrow_dtype", declared)  # pandas
    while hasattr(arrow, "value_type") and str(arrow).startswith("dictionary<"):
        arrow = arrow.value_type
    letters = {"i": INTEGERS, "u": INTEGERS, "b": BOOLEANS, "U": STRINGS, "T": STRINGS, "M": DATES}
    kind: str | None
    if _are_floats(arrow):
        kind = ""  # integers with a missing one, or nothing but missing ones of any type
    elif isinstance(arrow, np.dtype):
        kind = "" if arrow.kind == "O" else letters.get(arrow.kind)
        if kind == DATES and np.datetime_data(arrow)[0] not in ("Y", "M", *TICKS):
            kind = None
    elif getattr(arrow, "kind", None) is not None:  # pandas
        kind = STRINGS if arrow.type is str else letters.get(arrow.kind)
        kind = kind_of_pandas(arrow.type) or kind
        kind = "" if arrow.type is np.object_ else kind
    else:
        kind = _kind_by_name(_name_of(arrow).lower())
    if kind is None:
        raise TypeError(f"by must hold {KINDS}, got dtype {declared}")
    if kind == DATES and _zone(arrow) is not None:
        return ZONED
    return kind or None  # objects: what is no key is ignored


def _are_floats(declared: Any) -> bool:
    """Whether a type is one of floats, whatever library it is of."""
    kind = getattr(declared, "kind", None)
    if kind is not None:  # of NumPy and pandas
        return bool(kind == "f")
    return _name_of(declared).lower().startswith(("float", "double", "halffloat"))


def _name_of(declared: Any) -> str:
    """That of a type; of polars' without its parameters, which may be many categories."""
    return declared.base_type().__name__ if hasattr(declared, "base_type") else str(declared)


def _kind_by_name(name: str) -> str | None:
    """That of a type of polars ("UInt8") or of pyarrow ("uint8"); empty if it does not say."""
    if name in ("null", "object"):
        return ""
    for kind, starts in (
        (INTEGERS, ("int", "uint")),
        (STRINGS, ("string", "large_string", "categorical", "enum")),
        (BOOLEANS, ("bool",)),
        (DATES, ("date", "timestamp")),
        (CLOCKS, ("time",)),
    ):
        if name.startswith(starts):
            return kind
    return None


def _zone(declared: Any) -> Any:
    """The time zone of a type of dates: of pandas and pyarrow, or of polars."""
    return getattr(declared, "tz", None) or getattr(declared, "time_zone", None)


def _declared(by: Any) -> Any:
    """The type that a column declares, if any."""
    return getattr(by, "dtype", getattr(by, "type", None))


def _of_numpy(by: NDArray[Any], kind: str | None) -> Column:
    missing = None
    if kind in (None, STRINGS):
        as_it_is = type(by) is np.ndarray and by.dtype.kind in "OU" and by.dtype.itemsize > 0
        return Column(None, by if as_it_is else by.tolist(), None, kind)
    if isinstance(by, np.ma.MaskedArray):
        missing, by = np.ma.getmaskarray(by), np.ma.getdata(by)
    return _of_numbers(by, missing, kind)


def _of_numbers(by: NDArray[Any], missing: Any, kind: str | None) -> Column:
    """For integers, booleans and dates of NumPy."""
    unit = 1
    if by.dtype.kind == "M":
        found = ticks_of(by)
        if found is None:
            return Column(None, list(by), None, kind)
        by, unit = found
    elif by.dtype.kind == "b":
        by = by.view(np.uint8)
    return Column(by, None, missing, kind, unit)


def _of_floats(by: Any) -> Column:
    """For floats of any library: whole numbers are keys, missing and other ones are none."""
    missing = None
    if isinstance(by, np.ma.MaskedArray):
        missing, by = np.ma.getmaskarray(by), np.ma.getdata(by)
    if hasattr(by, "isna") and not isinstance(by.dtype, np.dtype):  # of pandas
        values = by.to_numpy(dtype=np.float64, na_value=np.nan)
    elif hasattr(by, "to_pylist"):  # of pyarrow
        values = np.asarray(by.to_numpy(zero_copy_only=False) if hasattr(by, "buffers") else by)
    else:
        values = np.asarray(by)
    with np.errstate(all="ignore"):  # NumPy would warn of a signaling NaN
        whole = (values == np.rint(values)) & (values >= -(2.0**63)) & (values < 2.0**64)
    others = ~whole & ~np.isnan(values)
    if missing is not None:
        whole, others = whole & ~missing, others & ~missing
    if (values[whole] >= 2.0**63).any():
        values = np.where(others, 0.5, np.where(whole, values, np.nan))
        return Column(None, list(map(comparable, values)), None, None)
    codes = np.where(whole, values, 0.0).astype(np.int64)
    return Column(codes, None, ~whole, None, others=others)


def _of_pandas(by: Any, kind: str | None) -> Column:
    if kind == STRINGS and getattr(by.dtype, "storage", None) == "pyarrow":
        import pyarrow

        return _of_arrow(pyarrow.array(getattr(by, "array", by)), kind)
    if kind in (None, STRINGS, PERIODS, INTERVALS):
        return Column(None, by, None, kind)
    if isinstance(by.dtype, np.dtype):
        return _of_numbers(np.asarray(by), None, kind)
    if kind == ZONED:
        values = by.to_numpy(dtype=f"datetime64[{by.dtype.unit}]")
        return _of_numbers(values, None, kind)
    values = by.to_numpy(dtype=by.dtype.numpy_dtype, na_value=0)
    return _of_numbers(values, np.asarray(by.isna()), kind)


def _of_polars(by: Any, kind: str | None) -> Column:
    import polars

    if kind == STRINGS:
        if isinstance(by.dtype, polars.Categorical):
            return _of_categories(by, kind)
        try:
            import pyarrow
        except ImportError:
            return Column(None, by.to_list(), None, kind)
        views = hasattr(pyarrow, "string_view") and hasattr(by, "__arrow_c_stream__")
        if by.dtype == polars.String and views:  # without a copy
            return _of_arrow(pyarrow.chunked_array(by), kind)
        return _of_arrow(by.to_arrow(), kind)
    if kind is None or "128" in _name_of(by.dtype):
        return Column(None, by.to_list(), None, kind)
    unit = 1
    if kind in TIMED:
        unit = 1 if kind == CLOCKS else TICKS[getattr(by.dtype, "time_unit", "D")]
        by = by.to_physical()
    missing = by.is_null().to_numpy() if by.null_count() else None
    if kind == BOOLEANS:
        by = by.cast(polars.Int64)
    return Column(by.fill_null(0).to_numpy(), None, missing, kind, unit)


def _of_categories(by: Any, kind: str | None) -> Column:
    """Of categories of polars: each that occurs is read once, from a row that has it."""
    import polars

    codes = by.to_physical()
    if codes.null_count():
        codes = codes.cast(polars.Int64).fill_null(-1)
    codes = codes.to_numpy()
    highest = int(codes.max()) if codes.size else -1
    row = np.zeros(highest + 2, dtype=np.int64)  # the last is for missing ones
    row[codes] = np.arange(codes.size)
    categories = by.gather(row[:-1]).cast(polars.String)
    return Column(codes, _of_polars(categories, kind).items, None, kind)


def _of_arrow(by: Any, kind: str | None) -> Column:
    import pyarrow

    types = pyarrow.types
    if kind == STRINGS and not types.is_dictionary(by.type):
        chunks = by if isinstance(by, pyarrow.ChunkedArray) else pyarrow.chunked_array([by])
        return Column(None, chunks, None, kind)
    by = _in_one_chunk(by)
    if types.is_dictionary(by.type):
        return _of_encoded(by, kind)
    if kind is None:
        return Column(None, by.to_pylist(), None, kind)
    unit = 1
    if kind == BOOLEANS:
        by = by.cast(pyarrow.uint8())
    elif kind in TIMED:
        unit = TICKS["D" if types.is_date32(by.type) else getattr(by.type, "unit", "ms")]
        by = by.cast(pyarrow.int32() if by.type.bit_width == 32 else pyarrow.int64())
    missing = by.is_null().to_numpy(zero_copy_only=False) if by.null_count else None
    values = by.fill_null(0).to_numpy(zero_copy_only=False)
    return Column(values, None, missing, kind, unit)


def _in_one_chunk(by: Any) -> Any:
    import pyarrow

    if isinstance(by, pyarrow.ChunkedArray):
        by = by.unify_dictionaries() if pyarrow.types.is_dictionary(by.type) else by
        by = by.combine_chunks()
        if isinstance(by, pyarrow.ChunkedArray):  # of no chunks
            by = pyarrow.array([], by.type)
    return by


def _of_strings(by: Any, kind: str | None) -> Column:
    """Of strings of Arrow, with codes."""
    import pyarrow

    if pyarrow.types.is_string_view(by.type):
        by = by.cast(pyarrow.large_string())
    return _of_encoded(_in_one_chunk(by.dictionary_encode()), kind)


def _of_encoded(by: Any, kind: str | None) -> Column:
    """Of a dictionary of Arrow."""
    import pyarrow

    codes, items = by.indices, by.dictionary
    if codes.null_count:
        codes = codes.cast(pyarrow.int64()).fill_null(-1)
    if str(items.type) in LAYOUTS:
        items = pyarrow.chunked_array([items])
    else:
        items = list(items) if kind in TIMED else items.to_pylist()  # Python has not all times
    return Column(codes.to_numpy(zero_copy_only=False), items, None, kind)
