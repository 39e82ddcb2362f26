"""Checks of public arguments: each returns the cleaned value or says the rule and what came.

They run in every release, and a small release takes some 15 microseconds in all: plain Python
numbers first, no NumPy calls. Messages show numbers and strings but only the type of anything
else, so that a column passed in the wrong place is not printed.
"""

from __future__ import annotations

import itertools
import math
import operator
import os
from collections.abc import Mapping, Set
from numbers import Rational, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Most leaves of a tree: 512 MB for their counts, and several times that for what is read off.
MAX_LEAVES = 2**26
# On a lattice of at most so many points each point is a leaf by default.
FEW_POINTS = 2**11
# Larger numbers of things are no float64 numbers.
MAX_COUNT = 2**53
# Most draws in one array: 32 GB of integers.
MAX_DRAWS = 2**32


def _shown(value: Any) -> str:
    """What came, for a message: numbers and strings as they are, else the name of the type."""
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return repr(value)
    return type(value).__name__


def _real(name: str, value: Any) -> float:
    """`value` as a float; bool and everything that is not a real number is a TypeError."""
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {_shown(value)}")
    try:
        return float(value)
    except OverflowError:  # an int or a Fraction beyond float64: refused as infinite
        return -math.inf if value < 0 else math.inf


def _positive(name: str, value: Any) -> float:
    number = _real(name, value)
    if 0.0 < number < math.inf:  # NaN fails
        return number
    raise ValueError(f"{name} must be positive and finite, got {number}")


def check_epsilon(epsilon: Any, name: str = "epsilon") -> float:
    """A budget `epsilon`: a positive, finite real number."""
    return _positive(name, epsilon)


def check_rho(rho: Any) -> float:
    """A zCDP budget `rho`: a positive, finite real number."""
    return _positive("rho", rho)


def check_nonnegative(name: str, value: Any) -> float:
    """A cost that may be nothing: a finite real number, at least 0."""
    number = _real(name, value)
    if 0.0 <= number < math.inf:
        return number
    raise ValueError(f"{name} must be finite and not negative, got {number}")


def check_ratio(name: str, value: Any, positive: bool = True) -> tuple[int, int]:
    """`value` exactly, as integers in lowest terms: a float is the binary fraction that it is."""
    number = _real(name, value)
    if isinstance(value, Rational):
        ratio = int(value.numerator), int(value.denominator)
    elif math.isfinite(number):
        ratio = value.as_integer_ratio()
    else:
        ratio = -1, 0  # no number
    if ratio[0] < (1 if positive else 0):
        rule = "positive and finite" if positive else "finite and not negative"
        raise ValueError(f"{name} must be {rule}, got {number}")
    return ratio


def check_scale(name: str, value: Any, shape: tuple[int, ...] | None) -> tuple[int, int]:
    """The scale of discrete noise, exactly: positive, and at most 2^53 for arrays."""
    numerator, denominator = check_ratio(name, value)
    if shape is not None and numerator > denominator << 53:
        raise ValueError(
            f"{name} must be at most 2**53 where size is given, so that every draw fits int64, "
            f"got {_real(name, value)}"
        )
    return numerator, denominator


def check_shape(size: Any) -> tuple[int, ...] | None:
    """The shape of an array of draws: `size` is an integer or a tuple of them; None for one."""
    if size is None:
        return None
    return _lengths(size if isinstance(size, tuple) else (size,))


def _lengths(lengths: tuple[Any, ...]) -> tuple[int, ...]:
    shape = tuple(check_count("size", length, 0) for length in lengths)
    if math.prod(shape) > MAX_DRAWS:
        raise ValueError(f"size must make at most 2^32 draws, got {math.prod(shape)}")
    return shape


def check_size(size: Any) -> int:
    """How many outputs of a law are drawn: `size`, or one where it is None."""
    if size is None:
        return 1
    (rows,) = _lengths((size,))
    return rows


def check_delta(delta: Any) -> float:
    """A failure probability `delta`: a real number in [0, 1)."""
    number = _real("delta", delta)
    if 0.0 <= number < 1.0:
        return number
    raise ValueError(f"delta must lie in [0, 1), got {number}")


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Public `bounds`: finite low < high whose difference is finite too."""
    try:
        first, second = bounds
    except TypeError:
        raise TypeError(
            f"bounds must be two real numbers (low, high), got {_shown(bounds)}"
        ) from None
    except ValueError:
        raise ValueError(
            "bounds must be two real numbers (low, high), "
            f"got {type(bounds).__name__} of length {len(bounds)}"
        ) from None
    low = _real("bounds[0]", first)
    high = _real("bounds[1]", second)
    # A finite difference of low < high implies that both are finite; NaN fails.
    if 0.0 < high - low < math.inf:
        return low, high
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"bounds must be finite with low < high, got ({low}, {high})")
    raise ValueError(f"bounds must have a finite difference, got ({low}, {high})")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """`value`, one of the strings in `choices`."""
    if isinstance(value, str):
        if value in choices:
            return value
        error: type[Exception] = ValueError
    else:
        error = TypeError
    listed = ", ".join(repr(choice) for choice in choices)
    raise error(f"{name} must be one of {listed}, got {_shown(value)}")


def check_flag(name: str, value: Any) -> bool:
    """A yes or no: True or False, Python's or NumPy's, and nothing that only counts as one."""
    if value is True or value is False or type(value).__name__ == "bool":
        return bool(value)
    raise TypeError(f"{name} must be True or False, got {_shown(value)}")


def check_count(name: str, value: Any, least: int = 1) -> int:
    """A public number of things: an integer (Python's or NumPy's), from `least` to 2^53."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value}")
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {_shown(value)}") from None
    if count < least:
        raise ValueError(f"{name} must be at least {least}, got {count}")
    if count > MAX_COUNT:
        raise ValueError(f"{name} must be at most 2**53, got {count}")
    return count


def check_column(x: Any) -> None:
    """Refuse what is no one-dimensional column, before a record of it is read.

    Its type says nothing more for sure: that of a column of missing records may be any.
    """
    if getattr(x, "ndim", 1) != 1:
        raise ValueError(f"x must be one-dimensional, got {x.ndim} dimensions")
    if isinstance(x, (str, bytes, Mapping, Set)) or not (
        hasattr(x, "__array__") or hasattr(x, "__iter__")
    ):
        raise TypeError(f"x must be a one-dimensional array or sequence, got {type(x).__name__}")


def check_tree(height: Any, branching: Any, points: int | None) -> tuple[int, int]:
    """Height and branching of a tree over a lattice of so many points; None without a lattice.

    A tree that has a leaf for every point has no more levels, and then no more children, than it
    takes: each level costs noise.
    """
    height, branching = check_count("height", height), check_count("branching", branching, 2)
    if height * math.log2(branching) > 27.0 or branching**height > MAX_LEAVES:
        raise ValueError(
            f"a tree must have at most 2^26 = {MAX_LEAVES} leaves, got {branching}^{height}"
            + (f" = {branching**height}" if height <= 26 else "")
        )
    if points is not None and branching**height >= points:
        height = next(height for height in itertools.count(1) if branching**height >= points)
        branching = children_of(points, height)
    return height, branching


def children_of(points: int, height: int) -> int:
    """The least branching of a tree of that height that has a leaf for each point."""
    least: int = max(2, round(points ** (1.0 / height)) - 1)
    return next(b for b in itertools.count(least) if b**height >= points)


def public_length(x: Any, counts: Any, nan_policy: Any, n_is_public: bool) -> int | None:
    """Number of records before they are read, where it is public and `x` says it."""
    return public_rows(x, counts, n_is_public) if nan_policy == "raise" else None


def public_rows(x: Any, counts: Any, n_is_public: bool) -> int | None:
    """Number of rows of a column, missing ones included, at least 1: as `public_length`."""
    if not n_is_public or counts is not None:
        return None
    try:
        return max(len(x), 1)
    except TypeError:  # a sample, or a wrong argument: refused later
        return None


def check_leaves(bounds: tuple[float, float], leaves: int) -> None:
    """Leaves that are intervals between checked bounds, not runs of lattice points."""
    low, high = bounds
    if (high - low) / leaves < math.ulp(max(abs(low), abs(high))):
        raise ValueError(
            "leaves must be at least as wide as the float64 spacing at the larger bound, "
            f"got {leaves} in ({low}, {high})"
        )


def check_max_contributions(k: Any) -> int:
    """How many records one person may hold: an integer, at least 1."""
    return check_count("max_contributions", k)


def check_workers(workers: Any) -> int:
    """Number of threads, at least 1; a negative `workers` counts back from the CPUs (-1: all)."""
    if isinstance(workers, bool):
        raise TypeError(f"workers must be an integer, got {workers}")
    try:
        number = operator.index(workers)
    except TypeError:
        raise TypeError(f"workers must be an integer, got {_shown(workers)}") from None
    if number == 0:
        raise ValueError("workers must not be 0")
    if number < 0:
        number = max(1, (os.cpu_count() or 1) + 1 + number)
    return number


def real_array(name: str, given: Any) -> NDArray[np.float64]:
    """A public argument of any shape as float64; what does not hold real numbers is a TypeError."""
    values = np.asarray(given)
    if values.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be real numbers, got dtype {values.dtype}")
    flags = values.flags
    if values.dtype == np.float64 and flags.c_contiguous and flags.aligned:
        return values
    with np.errstate(all="ignore"):  # what does not fit becomes infinite, and is refused as such
        return np.array(values, dtype=np.float64, order="C")
