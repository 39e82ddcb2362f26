"""Checks of public arguments: each returns the cleaned value or says the rule and what came.

They run in every release, and a small release takes some 15 microseconds in all: plain Python
numbers first, no NumPy calls. Messages show numbers and strings but only the type of anything
else, so that a column passed in the wrong place is not printed.
"""

from __future__ import annotations

import importlib
import itertools
import math
import operator
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from numbers import Rational, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Most leaves of a tree: 512 MB for their counts, and several times that for what is read off.
MAX_LEAVES = 2**26
# Most points of a lattice of which each is a leaf by default.
FEW_POINTS = 2**11
# Larger numbers of things are no float64 numbers.
MAX_COUNT = 2**53
# Most draws in one array: 32 GB of integers.
MAX_DRAWS = 2**32
# With a prior, an infinite bound stands for the prior's quantile of this level, or of 1 less it.
PRIOR_TAIL = 1e-9
# Least mass of a prior between the bounds, and what a cdf errs by at most.
PRIOR_MASS = 1e-9
# The prior that knows no scale.
SCALE_FREE = "scale-free"


def _shown(value: Any) -> str:
    """What came, for a message: numbers and strings as they are, else the name of the type."""
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return repr(value)
    return type(value).__name__


def _real(name: str, value: Any) -> float:
    """`value` as a float; bool and everything that is not a real number is a TypeError."""
    if type(value) is float:
        return value
    if type(value) is not int and (
        isinstance(value, (bool, np.timedelta64)) or not isinstance(value, Real)
    ):
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
    low, high = _check_ends(bounds)
    # A finite difference of low < high implies that both are finite; NaN fails.
    if 0.0 < high - low < math.inf:
        return low, high
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"bounds must be finite with low < high, got ({low}, {high})")
    raise ValueError(f"bounds must have a finite difference, got ({low}, {high})")


def check_pair(bounds: Any) -> tuple[Any, Any]:
    """The two ends of public `bounds`, of whatever kind."""
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
    return first, second


def _check_ends(bounds: Any) -> tuple[float, float]:
    """Two real numbers."""
    first, second = check_pair(bounds)
    return _real("bounds[0]", first), _real("bounds[1]", second)


class PriorPart(NamedTuple):
    """One of the distributions that a prior is a mixture of.

    Attributes
    ----------
    weight : float
        Its share, positive; those of all parts add up to 1.
    kind : {"uniform", "log", "scale-free", "cdf"}
        Uniform or log-uniform between the bounds, `dpq_fast.data.shares.scale_free`, or given by a
        function.
    source : object
        What the functions belong to; parts of one source are the same.
    cdf, ppf : callable or None
        The distribution function, of arrays, and its inverse, of numbers.
    """

    weight: float
    kind: str
    source: Any = None
    cdf: Callable[..., Any] | None = None
    ppf: Callable[..., Any] | None = None

    def values(self, x: NDArray[np.float64], bounds: tuple[float, float]) -> NDArray[np.float64]:
        """The distribution function at ascending numbers, or what is linear in it."""
        low, high = bounds
        if self.kind == "uniform":
            return x / 2.0  # a difference of numbers may be beyond float64
        if self.kind == "log":
            return np.log(np.clip(x, low, high) / low)
        assert self.cdf is not None
        with np.errstate(all="ignore"):
            found = np.asarray(self.cdf(x))
        if found.dtype.kind not in "iuf":
            raise TypeError(f"prior must have a cdf of real numbers, got dtype {found.dtype}")
        if found.shape != x.shape:
            raise ValueError(
                "prior must have a cdf that takes an array and gives one of its shape, "
                f"got shape {found.shape} for {x.shape}"
            )
        with np.errstate(all="ignore"):
            found = found.astype(np.float64)
            inside = ((found >= -PRIOR_MASS) & (found <= 1.0 + PRIOR_MASS)).all()  # no NaN
            if not (inside and (found[1:] - found[:-1] >= -PRIOR_MASS).all()):
                raise ValueError("prior must have a cdf that ascends within [0, 1]")
            return np.maximum.accumulate(np.clip(found, 0.0, 1.0))


def check_prior(prior: Any, bounds: Any) -> tuple[tuple[float, float], tuple[PriorPart, ...]]:
    """Public `bounds` and `prior`: finite bounds, and what the prior is a mixture of.

    There are no parts where the prior is uniform. With a prior that has quantiles an infinite bound
    stands for one of them; of several, for the one farthest out.
    """
    parts = tuple(_prior_parts(prior, 1.0))
    if len(parts) > 1 and any(part.kind == SCALE_FREE for part in parts):
        raise ValueError(f"prior {SCALE_FREE!r} must stand alone, got a mixture with it")
    if all(part.kind in ("uniform", SCALE_FREE) for part in parts):
        return check_bounds(bounds), parts if parts[0].kind == SCALE_FREE else ()
    low, high = _check_ends(bounds)
    if low < high and (low == -math.inf or high == math.inf):
        if any(part.ppf is None for part in parts):
            raise ValueError(
                "bounds must be finite unless each part of the prior has quantiles, "
                f"got ({low}, {high})"
            )
        if low == -math.inf:
            low = min(_quantile(part, PRIOR_TAIL) for part in parts)
        if high == math.inf:
            high = max(_quantile(part, 1.0 - PRIOR_TAIL) for part in parts)
    low, high = check_bounds((low, high))
    if low <= 0.0 and any(part.kind == "log" for part in parts):
        raise ValueError(f"bounds must be positive with prior 'log', got ({low}, {high})")
    return (low, high), parts


def _prior_parts(prior: Any, share: float) -> list[PriorPart]:
    """What a prior is a mixture of; the weights add up to `share`."""
    if prior is None or isinstance(prior, str):
        if prior in (None, "uniform", "log", SCALE_FREE):
            return [PriorPart(share, prior or "uniform")]
        raise ValueError(
            f"prior must be 'uniform', 'log' or {SCALE_FREE!r} where it is a string, got {prior!r}"
        )
    if callable(getattr(prior, "cdf", None)):
        ppf = getattr(prior, "ppf", None)
        return [PriorPart(share, "cdf", prior, prior.cdf, ppf if callable(ppf) else None)]
    pair = isinstance(prior, Sequence) and len(prior) == 2 and callable(prior[0])
    if pair and (prior[1] is None or callable(prior[1])):
        return [PriorPart(share, "cdf", prior[0], *prior)]
    if pair or not isinstance(prior, Sequence) or isinstance(prior, bytes):
        raise TypeError(
            f"prior must be None, 'uniform', 'log', {SCALE_FREE!r}, a frozen distribution, "
            f"functions (cdf, ppf), or (weight, prior) pairs, got {_shown(prior)}"
        )
    if not prior or not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in prior):
        raise ValueError("prior must be one or more (weight, prior) pairs where it is a sequence")
    weights = [_positive("a weight of the prior", pair[0]) for pair in prior]
    most = max(weights)
    total = math.fsum(weight / most for weight in weights)
    found = []
    for weight, (_, part) in zip(weights, prior, strict=True):
        found += _prior_parts(part, share * (weight / most / total))
    return found


def _quantile(part: PriorPart, level: float) -> float:
    assert part.ppf is not None
    with np.errstate(all="ignore"):
        return _real("a quantile of the prior", part.ppf(level))


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


def extra(module: str, by: str, name: str) -> Any:
    """A module of an extra, imported where it is used, or an error that names the extra."""
    package = module.partition(".")[0]
    try:
        importlib.import_module(package)
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise ImportError(f"{by} needs {package}: pip install 'dpq_fast[{name}]'") from None


def check_column(x: Any) -> None:
    """Refuse what is no column, and no frame of one column, before a record of it is read.

    Its type says nothing more for sure: that of a column of missing records may be any.
    """
    if type(x) is np.ndarray and x.ndim == 1:  # what most are
        return
    names = names_of(x)
    if names is not None:
        check_width(len(names))
    elif hasattr(type(x), "ndim") and x.ndim != 1:
        raise ValueError(f"x must be one-dimensional, got {x.ndim} dimensions")
    elif isinstance(x, (str, bytes, Mapping, Set)) or not (
        callable(x) or any(hasattr(x, name) for name in COLUMNS)
    ):
        raise TypeError(f"x must be a one-dimensional array or sequence, got {type(x).__name__}")


# How many names of columns a message lists.
MOST_NAMED = 20
# What a frame has: pyarrow, and the others.
FRAMES = ("column_names", "columns")
# What a column has, one of them.
COLUMNS = ("__array__", "__iter__", "__arrow_c_stream__", "__arrow_c_array__", "__dlpack__")


def names_of(x: Any) -> Any:
    """The names of the columns of a frame; None for what is no frame."""
    kind = type(x)  # a series may have labels or methods of any name
    if hasattr(kind, "collect_schema"):  # lazy, where `columns` would be slow
        return x.collect_schema().names()
    return next((getattr(x, name) for name in FRAMES if hasattr(kind, name)), None)


def check_named(argument: str, names: Sequence[Any], there: Any) -> None:
    """Refuse names that are not each that of one column of a frame, before a record is read."""
    listed = list(there)
    for name in names:
        number = listed.count(name)
        if number > 1:
            raise ValueError(
                f"{argument} must have names of one column each, got {name!r} for {number}"
            )
        if not number:
            raise ValueError(
                f"{argument} must be some of the frame's, got {name!r} where there are "
                f"{_named(listed)}"
            )


def listed_names(names: Any, there: Any) -> list[Any]:
    """One name of a column, which may be a tuple, or several, as a list."""
    is_one = isinstance(names, str) or not isinstance(names, Iterable)
    return [names] if is_one or (isinstance(names, tuple) and names in list(there)) else list(names)


def unit_names(unit: Any, there: Any) -> list[Any] | None:
    """The columns of a frame that a privacy unit names; None for columns of ids themselves.

    A list is one of names, or of columns. What is no name in it may be an id, and is not shown.
    """
    if _is_column(unit) and not (isinstance(unit, list) and not any(map(_is_column, unit))):
        return None
    listed = list(there)
    names = listed_names(unit, listed)
    if names == [unit]:
        check_named("privacy_unit", names, listed)
    elif not 0 < len(names) <= len(listed) or any(
        listed.count(name) != 1 or names.count(name) != 1 for name in names
    ):
        raise ValueError(
            "privacy_unit must be an array of ids, or name the frame's columns of ids, where there "
            f"are {_named(listed)}"
        )
    return names


def _is_column(item: Any) -> bool:
    return hasattr(item, "__len__") and not isinstance(item, (str, bytes, tuple))


def _named(listed: list[Any]) -> str:
    """The first names of columns, for a message."""
    return ", ".join(map(repr, listed[:MOST_NAMED])) + ", ..." * (len(listed) > MOST_NAMED)


def check_width(columns: int) -> None:
    """How many columns a frame may have that stands for a column."""
    if columns != 1:
        raise ValueError(
            f"x must be one column, got a frame of {columns}: choose one, or use describe"
        )


def aligned(first: Any, others: Sequence[tuple[str, Any]], name: str = "x") -> list[Any]:
    """The others of some columns that belong together row by row, in the order of the first one.

    What pandas gives an index goes by its labels, as in pandas itself: nothing is to be done where
    indexes are equal; where they are unique and equal as sets, rows are put in order; all else is
    refused. What has no index goes by position.

    That is a rule about the form. A label is the name of a row, and no record: columns of one frame
    have its index, whatever the records are.

    Parameters
    ----------
    first : object
        A column, which stays as it is.
    others : sequence of (str, object)
        What each argument is called, and a column of its, or None.
    name : str
        What the first one is called.

    Returns
    -------
    list
    """
    index, leader, in_order = _index_of(first), name, []
    for other, column in others:
        own = _index_of(column)
        if index is None and own is not None:  # beside what goes by position
            index, leader = own, other
        if own is not None and not own.equals(index):
            if leader != name:
                raise ValueError(
                    f"{leader} and {other} must have equal indexes where {name} has none"
                )
            places = _places_in(own, index)
            if places is None:
                raise ValueError(
                    f"{leader} and {other} must have equal indexes, or the same labels in another "
                    "order, each once"
                )
            column = _native(column).take(places)
        in_order.append(column)
    return in_order


def named_keys(columns: Sequence[Any]) -> list[tuple[str, Any]]:
    """Columns of keys, and what each is called in `aligned`."""
    several = len(columns) > 1
    return [(f"by[{j}]" if several else "by", column) for j, column in enumerate(columns)]


def _native(column: Any) -> Any:
    """A column of the library that it is of, which narwhals may stand for."""
    return column.to_native() if hasattr(type(column), "to_native") else column


def _index_of(column: Any) -> Any:
    """The index of an object of pandas; None for all else."""
    pandas = sys.modules.get("pandas")
    column = _native(column)
    if pandas is None or not hasattr(type(column), "index"):
        return None
    return column.index if isinstance(column.index, pandas.Index) else None


def _places_in(own: Any, index: Any) -> Any:
    """Where the labels of an index are in another one; None unless each of both is there once."""
    try:
        if len(own) == len(index) and own.is_unique and index.is_unique:
            places = own.get_indexer(index)
            return places if (places >= 0).all() else None
    except Exception:  # labels that pandas can not compare or hash
        pass
    return None


def check_tree(height: Any, branching: Any, points: int | None) -> tuple[int, int]:
    """Height and branching of a tree over a lattice of `points`; None without a lattice.

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
    return public_rows(x, None, n_is_public) if nan_policy == "raise" and counts is None else None


# Libraries whose objects hold records elsewhere: their length would be a pass over them.
ELSEWHERE = frozenset({"dask", "duckdb", "ibis", "pyspark", "ray"})


def public_rows(x: Any, counts: Any, n_is_public: bool) -> int | None:
    """Number of rows of a column, missing ones included, at least 1: as `public_length`.

    Of persons all that their rows can stand for, one of them at least.
    """
    if not n_is_public:
        return None
    if counts is not None:  # of what says it: of its type, since columns have what labels they like
        told = getattr(type(counts), "rows_at_most", None)
        return None if told is None else told(counts)
    if type(x).__module__.partition(".")[0] in ELSEWHERE:
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
