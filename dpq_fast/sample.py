"""The sample: a column of records, checked for its form, clamped, put in order.

Form (dimension, type, lengths, the sign of counts) may be refused; nothing else about the data
decides whether or what is raised, and no message holds a number taken from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._kernels import lattice as kernel
from dpq_fast.lattice import MAX_POINTS, Lattice, as_float64
from dpq_fast.order import Order, RunsOrder, SortedOrder, dithered
from dpq_fast.rng import default_rng

# Lattices up to this many points, or a few per record, are counted by bin instead of sorted.
SMALL_LATTICE = 2**16


class Sample:
    """Records of one numeric column, clamped to bounds and in order, ready for any mechanism.

    A sample keeps the records (sorted, or as distinct values with counts); it is private. Make one
    with `Sample.of` and pass it to several releases in place of the column.

    Attributes
    ----------
    bounds : (float, float)
        Public.
    lattice : Lattice or None
        The public lattice of outputs; None for the continuous mechanism.
    """

    __slots__ = ("_counts", "_values", "bounds", "lattice")

    def __init__(
        self,
        values: NDArray,
        counts: NDArray[np.int64] | None,
        lattice: Lattice | None,
        bounds: tuple[float, float],
    ) -> None:
        self._values = values
        self._counts = counts
        self.lattice = lattice
        self.bounds = bounds

    @classmethod
    def of(
        cls,
        x: Any,
        bounds: tuple[float, float] | None,
        *,
        resolution: float | None = None,
        dither: bool | None = None,
        counts: Any = None,
        assume_sorted: bool = False,
        nan_policy: str = "omit",
    ) -> Sample:
        """Check, clamp and order a column.

        Parameters
        ----------
        x : array_like of real numbers, shape (n,)
            NumPy array, pandas, polars or pyarrow column, or a sequence; n >= 0. Private. With
            `counts`, the distinct values. A `Sample` is returned as it is (then the other
            arguments must be left at their defaults, or `bounds` equal to the sample's).
        bounds : (float, float)
            Finite low < high, chosen without looking at `x`. Public.
        resolution : float, optional
            Spacing of the public lattice of outputs, in the unit of `x`; 0 for none. Default: 1
            for columns of integer type, else about 2^-44 of the range. Public.
        dither : bool, optional
            Whether records are spread within their lattice cell before the mechanism. Default:
            with a given `resolution` or an integer type. Public.
        counts : array_like of int, shape (n,), optional
            How often each value occurs; non-negative, sum at most 2^53. Private.
        assume_sorted : bool, default False
            The caller's promise that `x` ascends, NaN last. If it is broken, the answer is
            meaningless and its privacy lost, but memory stays safe. Public.
        nan_policy : {"omit", "raise"}, default "omit"
            "omit" leaves NaN and null out, record by record; "raise" states that there are none.

        Returns
        -------
        Sample

        Raises
        ------
        TypeError
            If `x` or `counts` is not of a real numeric type.
        ValueError
            If a public argument breaks its rule, `x` is not one-dimensional, `counts` does not
            fit `x` or holds a negative or fractional number, or NaN is there against
            ``nan_policy="raise"``.

        Notes
        -----
        **Cost.** O(n) for sorted floats and small lattices, O(n log n) otherwise. A sorted array
        without NaN is not copied.
        """
        _checks.check_choice("nan_policy", nan_policy, ("omit", "raise"))
        assume_sorted = _checks.check_flag("assume_sorted", assume_sorted)
        if isinstance(x, Sample):
            if bounds is not None and _checks.check_bounds(bounds) != x.bounds:
                raise ValueError(
                    f"bounds must be left out or equal to the sample's {x.bounds}, got {bounds}"
                )
            given = [option is not None for option in (resolution, dither, counts)]
            if any(given) or assume_sorted or nan_policy != "omit":
                raise ValueError(
                    "resolution, dither, counts, assume_sorted and nan_policy belong to "
                    "Sample.of, and must be left out for a Sample"
                )
            return x
        bounds = _checks.check_bounds(bounds)
        values, integer_type = as_column(x)
        lattice = Lattice.of(bounds, resolution, dither, integer_type)
        weights = None if counts is None else check_counts(counts, values.size)
        if weights is None and not (lattice and lattice.bits):
            return cls(_in_order(values, assume_sorted, nan_policy), None, lattice, bounds)
        values, weights = _without_nan(values, weights, nan_policy)
        if lattice is None:
            coarse = np.clip(as_float64(values), *bounds)
        else:
            coarse = lattice.encode(values)
        return cls(*_runs(coarse, weights, lattice), lattice, bounds)

    def order(self, dither_rng: Any = None) -> Order:
        """The order statistics, with one fresh dither where the lattice has dither bits."""
        if self._counts is None:
            return SortedOrder(self._values, self.lattice, self.bounds)
        if self.lattice is not None and self.lattice.bits:
            return dithered(self._values, self._counts, self.lattice, default_rng(dither_rng))
        return RunsOrder(self._values, self._counts, self.lattice, self.bounds)

    def decode(self, points: NDArray) -> NDArray[np.float64]:
        """Outputs behind (fine) lattice points; for the continuous mechanism, clamped numbers."""
        if self.lattice is None:
            return np.clip(points, *self.bounds)
        return self.lattice.decode(points >> self.lattice.bits if self.lattice.bits else points)

    def locate(self, outputs: NDArray[np.float64]) -> NDArray | None:
        """Lattice points of outputs, or the numbers themselves; None if one cannot be released."""
        if self.lattice is None:
            low, high = self.bounds
            return outputs if ((outputs >= low) & (outputs <= high)).all() else None
        points = [self.lattice.locate(output) for output in outputs.tolist()]
        return None if None in points else np.array(points, dtype=np.int64)


def as_column(x: Any) -> tuple[NDArray, bool]:
    """A column as a one-dimensional real array, and whether its *type* is an integer type.

    An array's or column's type is public schema. Python sequences have none, so they count as
    floats even where NumPy would infer integers: ``[1, 2]`` and its neighbor ``[1, 2.5]`` must
    not fall on different lattices. Null and None become NaN.
    """
    if type(x) is np.ndarray:
        column, integer_type = x, x.dtype.kind in "iu"
    elif isinstance(x, np.ma.MaskedArray):
        integer_type = x.dtype.kind in "iu"
        column = x if x.dtype.kind not in "iuf" else np.ma.filled(x.astype(np.float64), np.nan)
    elif hasattr(x, "dtype") or hasattr(x, "type"):
        column, integer_type = _foreign_column(x)
    elif hasattr(x, "__array__"):
        column = np.asarray(x)
        integer_type = column.dtype.kind in "iu"
    else:
        column, integer_type = _sequence(x), False
    if column.ndim != 1:
        raise ValueError(f"x must be one-dimensional, got {column.ndim} dimensions")
    if column.dtype.kind not in "iuf":
        raise TypeError(f"x must hold real numbers, got dtype {column.dtype}")
    return column, integer_type


def _foreign_column(x: Any) -> tuple[NDArray, bool]:
    """A pandas, polars, pyarrow or other array-protocol column, nulls as NaN."""
    declared = getattr(x, "dtype", None)
    if declared is None:
        declared = x.type  # pyarrow
    kind = getattr(declared, "kind", None)  # NumPy and pandas, extension types included
    if kind is None:
        name = str(declared).lower()  # polars: "Int64", "UInt8"; pyarrow: "int64", "uint8"
        kind = "i" if name.startswith(("int", "uint")) else "f" if _is_float(name) else "O"
    if kind not in "iuf":
        raise TypeError(f"x must hold real numbers, got dtype {declared}")
    if isinstance(declared, np.dtype):
        return np.asarray(x), kind in "iu"
    if hasattr(x, "to_numpy") and hasattr(x, "isna"):  # pandas extension types
        return x.to_numpy(dtype=np.float64, na_value=np.nan), kind in "iu"
    return np.asarray(x), kind in "iu"


def _is_float(name: str) -> bool:
    return name.startswith("float") or name in ("double", "halffloat")


def _sequence(x: Any) -> NDArray:
    """A Python sequence of real numbers (None for null) as float64."""
    if isinstance(x, (str, bytes, Mapping, Set)) or not hasattr(x, "__iter__"):
        raise TypeError(f"x must be a one-dimensional array or sequence, got {type(x).__name__}")
    return np.array([item if type(item) is float else _real(item) for item in x], dtype=np.float64)


def _real(item: Any) -> float:
    if item is None:
        return np.nan
    if isinstance(item, (str, bytes, bool, np.bool_, complex, np.complexfloating)):
        raise TypeError(f"x must hold real numbers, got {type(item).__name__}")
    if hasattr(item, "__len__"):
        raise ValueError("x must be one-dimensional, got a nested sequence")
    try:
        return float(item)
    except OverflowError:  # an integer beyond float64 is clamped like an infinity
        return np.inf if item > 0 else -np.inf
    except (TypeError, ValueError):
        raise TypeError(f"x must hold real numbers, got {type(item).__name__}") from None


def check_counts(counts: Any, size: int) -> NDArray[np.int64]:
    """How often each of `size` values occurs: non-negative integers, int64."""
    weights = np.asarray(counts)
    if weights.ndim != 1 or weights.size != size:
        raise ValueError("counts must have one entry for each value of x")
    if weights.size == 0:
        return np.empty(0, dtype=np.int64)
    if weights.dtype.kind not in "iuf":
        raise TypeError(f"counts must be integers, got dtype {weights.dtype}")
    if weights.dtype.kind == "f" and not (weights == np.floor(weights)).all():
        raise ValueError("counts must be integers, got a fractional or non-finite one")
    if (weights < 0).any():
        raise ValueError("counts must not be negative")
    if weights.astype(np.float64).sum() > MAX_POINTS:
        raise ValueError("counts must sum to at most 2^53")
    return weights.astype(np.int64)


def _without_nan(
    values: NDArray, weights: NDArray[np.int64] | None, nan_policy: str
) -> tuple[NDArray, NDArray[np.int64] | None]:
    if values.dtype.kind == "f":
        missing = np.isnan(values)
        if missing.any():
            _refuse_nan(nan_policy)
            values = values[~missing]
            weights = None if weights is None else weights[~missing]
    return values, weights


def _refuse_nan(nan_policy: str) -> None:
    if nan_policy == "raise":
        raise ValueError("x must not contain NaN with nan_policy='raise'")


def _in_order(values: NDArray, assume_sorted: bool, nan_policy: str) -> NDArray:
    """The values ascending and without NaN; not copied where they are so already."""
    if not (assume_sorted or _ascends(values)):
        values = np.sort(values)
    if values.size and values[-1] != values[-1]:  # NaN
        _refuse_nan(nan_policy)
        values = values[: np.searchsorted(values, np.nan)]  # NaN sorts to the end
    return values


def _ascends(values: NDArray) -> bool:
    flags = values.flags
    if (
        values.dtype == np.float64
        and values.dtype.isnative
        and flags.c_contiguous
        and flags.aligned
    ):
        return kernel.is_sorted(values)
    with np.errstate(invalid="ignore"):  # signaling NaN
        return bool((values[:-1] <= values[1:]).all())


def _runs(
    values: NDArray, weights: NDArray[np.int64] | None, lattice: Lattice | None
) -> tuple[NDArray, NDArray[np.int64]]:
    """Distinct values, ascending, and how many records are at each."""
    if lattice is not None and lattice.points <= max(SMALL_LATTICE, 4 * values.size):
        if weights is None:
            totals = np.bincount(values, minlength=1)
        else:
            totals = np.zeros(lattice.points, dtype=np.int64)
            np.add.at(totals, values, weights)
        present = np.flatnonzero(totals)
        return present, totals[present].astype(np.int64, copy=False)
    if weights is None:
        return np.unique(values, return_counts=True)
    distinct, place = np.unique(values, return_inverse=True)
    totals = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(totals, place, weights)
    return distinct[totals > 0], totals[totals > 0]
