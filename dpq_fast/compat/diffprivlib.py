r"""The tools of diffprivlib 0.6.6 that we have mechanisms for, argument for argument.

In a program that says ``from diffprivlib.tools import quantile`` this takes its place:

>>> from dpq_fast.compat.diffprivlib import quantile

diffprivlib need not be installed, and is never imported. Where a program has imported it, its
default accountant is charged, and its classes of warnings catch ours.

**What is here**: `quantile`, `percentile`, `median`, `mean`, `nanmean`, `var`, `nanvar`, `std`,
`nanstd`, `sum`, `nansum`, `count_nonzero`, `histogram`, `PrivacyLeakWarning` and
`DiffprivlibCompatibilityWarning`.

**What is not**: `histogram2d`, `histogramdd` (a histogram of pairs is `dpq_fast.count_by` of two
columns of bins), models, and `BudgetAccountant` itself (that of diffprivlib is charged;
`dpq_fast.privacy.Accountant` is ours).

**Guarantee.** diffprivlib names no neighboring relation. Its sensitivities, (upper - lower) / n of
a mean and upper - lower of a sum, are those to one record among n that is replaced, n public; that
of a histogram, 1, is for one that is added or removed. Every call here is purely `epsilon`-DP
under the first relation, "swap", for the whole output, a histogram's as well: with
``neighbors="add-remove"`` it has diffprivlib's noise, half as much. For one level, `quantile` reads
nothing off n, and a missing record is no record, so that the same holds where a record is added or
removed, as of diffprivlib's. For several levels n chooses the mechanism: ``neighbors="add-remove"``
is for records whose number is private.

Along an `axis` each entry of the output is released from its own slice of the array, with an equal
part of `epsilon`, as diffprivlib does: by basic composition the guarantee is for a person who has a
record in every slice (one in each column, say). All levels of `quantile` are released at once from
that part, where diffprivlib divides it by their number once more.

**What is documented, and what happens here**:

========================  ==============================================================
diffprivlib               here
========================  ==============================================================
`quant`, `percent`        A number, or an array that is flattened; one level gives a
                          number, several an array whose first axis they are. The same.
                          Several levels never cross.
`epsilon`                 For the entire output. The same. It must be finite.
`bounds`                  A tuple of two numbers, or of two arrays with an entry for each
                          entry of a one-dimensional output. The same. They must be finite.
                          Those of quantiles are moved to be 10^-5 apart.
``bounds=None``           `PrivacyLeakWarning`, and the array's own least and greatest
                          number: no guarantee is left. The same, of the finite numbers
                          (0 where there are none).
`axis`, `keepdims`        As of `numpy.sum`. The same. Outputs are floats for arrays of
                          integers, too, where diffprivlib cuts off their fractions.
`dtype`                   Of the answer: with one of integers, whole numbers.
                          Without one, float64.
`mean`, `sum`             Within the bounds, or what so many records between them can add
                          up to. The same, but that a record may be missing.
`var`, `std`              From 0 to a quarter of the squared distance of the bounds, or the
                          root of that. The same.
`nanvar`, `nanstd`        Of nothing but NaN: NaN and a warning. Here a number, as of `var`.
`count_nonzero`           A whole number, at most that of the records. The same. Empty
                          strings, None and what is masked do not count, NaN does.
`random_state`            None, `numpy.random` or its global state: a cryptographic
                          generator. An integer or a RandomState: answers can be repeated,
                          and hence predicted. For tests: they are not private.
`accountant`              A BudgetAccountant, or what else has `check` and `spend`; None
                          for the default one, if diffprivlib was imported. Or ours. It is
                          charged once for the call, before a record is read, and there is
                          no refund. (diffprivlib makes an entry for each output and level,
                          after it. A joint release of several levels is one mechanism.)
unknown keywords          `DiffprivlibCompatibilityWarning`. The same.
NaN                       Left out, one by one, by all functions; so is what is null or
                          masked. diffprivlib answers NaN, or leaves them out of
                          `nanmean` and `nansum` with a sensitivity that is too small.
                          `sum` and `mean` hide whether a record is missing, which costs
                          noise where 0 is not between the bounds; ``nan_policy="raise"``
                          states that none is.
`histogram`               Whole numbers, not negative, and the edges, as of
                          `numpy.histogram`; with `density` floats. The same. With
                          ``nan_policy="raise"`` they add up to n with what is outside.
`bins`                    A number, or edges. The same; edges ascend, and need no `range`: no
                          warning. A name of a rule for edges, which are then read off the
                          records, is refused.
`range`                   The outermost edges; equal ones are moved to be 1 apart. None:
                          `PrivacyLeakWarning`, and the least and greatest record.
`weights`                 Added up, cut to whole numbers, with noise for weights of at most 1.
                          Refused: `dpq_fast.histogram` has `counts`.
`histogram2d`,            Are not here: give `dpq_fast.count_by` the pairs of bins that
`histogramdd`             records are in, and all such pairs for `groups`.
ties                      Cost nothing: 10^5 equal records have their value as quantile.
                          diffprivlib ends with a RuntimeError, or at a neighboring value.
answers                   Lie on a public lattice (`resolution`), within the bounds.
========================  ==============================================================
"""

from __future__ import annotations

import math
import operator
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._arguments import in_our_words
from dpq_fast._docs import spell_out
from dpq_fast._prepared import Prepared
from dpq_fast.compat._diffprivlib_calls import (
    Cells,
    Ends,
    apart,
    charge,
    epsilon_of,
    extremes,
    generator_of,
    payer_of,
    released,
)
from dpq_fast.mechanisms import aggregates
from dpq_fast.mechanisms._calls import with_options
from dpq_fast.mechanisms.histogram import histogram as private_histogram
from dpq_fast.mechanisms.quantile import quantile as private_quantile
from dpq_fast.noise.rng import default_rng
from dpq_fast.privacy.levels import check_number

__all__ = [
    "DiffprivlibCompatibilityWarning",
    "PrivacyLeakWarning",
    "count_nonzero",
    "histogram",
    "mean",
    "median",
    "nanmean",
    "nanstd",
    "nansum",
    "nanvar",
    "percentile",
    "quantile",
    "std",
    "sum",
    "var",
]

# diffprivlib's least distance between the bounds of a quantile.
LEAST_DISTANCE = 1e-5
# The largest number that an integer of 64 bits and a float64 both hold.
LARGEST_INTEGER = 2**63 - 2**10
# What is not here, and what to use.
INSTEAD = {
    **dict.fromkeys(("histogram2d", "histogramdd"), "use dpq_fast.count_by of columns of bins"),
    "BudgetAccountant": "use diffprivlib's, or dpq_fast.privacy.Accountant",
}
# What diffprivlib says of private numbers that are used as if they were public.
NO_BOUNDS = (
    "Bounds have not been specified and will be calculated on the data provided. This will "
    "result in additional privacy leakage. To ensure differential privacy and no "
    "additional privacy leakage, specify bounds for each dimension."
)
NO_RANGE = (
    "Range parameter has not been specified. Falling back to taking range from the data.\n"
    "To ensure differential privacy, and no additional privacy leakage, the range must be "
    "specified independently of the data (i.e., using domain knowledge)."
)


def __getattr__(name: str) -> Any:
    hint = f": {INSTEAD[name]}" if name in INSTEAD else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


class PrivacyLeakWarning(RuntimeWarning):
    """Private numbers are used as if they were public, since public ones were not given."""


class DiffprivlibCompatibilityWarning(RuntimeWarning):
    """An argument that has no meaning here was given."""


def _category(kind: type[Warning]) -> type[Warning]:
    """What is warned with: where diffprivlib was imported, its own class, too."""
    theirs = getattr(sys.modules.get("diffprivlib.utils"), kind.__name__, None)
    if theirs is None:
        return kind
    return type(kind.__name__, (kind, theirs), {"__module__": __name__, "__doc__": kind.__doc__})


def _warn(leak: str | None, unused: dict[str, Any], stacklevel: int = 5) -> None:
    """What is said of the arguments of a call; the caller of the public function is blamed."""
    for name in unused:
        warnings.warn(
            f"Parameter '{name}' is not functional in diffprivlib.  Remove this parameter to "
            "suppress this warning.",
            _category(DiffprivlibCompatibilityWarning),
            stacklevel=stacklevel,
        )
    if leak is not None:
        warnings.warn(leak, _category(PrivacyLeakWarning), stacklevel=stacklevel)


def _expected(size: int, neighbors: str) -> int | None:
    """The number of records, where it is public."""
    return max(size, 1) if neighbors == "swap" else None


def _quantiles(
    array: Any,
    asked: tuple[str, Any, float, str],
    /,
    epsilon: float = 1.0,
    bounds: Any = None,
    axis: Any = None,
    keepdims: bool = False,
    random_state: Any = None,
    accountant: Any = None,
    *,
    resolution: float | None = None,
    neighbors: str = "swap",
    **unused_args: Any,
) -> Any:
    """`quantile` of what `_levels` is asked for."""
    _warn(NO_BOUNDS if bounds is None else None, unused_args)
    levels = _levels(*asked)
    q = levels.item() if levels.size == 1 else levels

    def of_records(x: Any, ends: tuple[float, float], size: int, **options: Any) -> Prepared[Any]:
        return Prepared.of(
            private_quantile,
            x,
            q,
            bounds=ends,
            resolution=resolution,
            neighbors=neighbors,
            expected_n=_expected(size, neighbors),
            **options,
        )

    answers = released(
        of_records,
        array,
        epsilon=epsilon,
        bounds=bounds,
        axis=axis,
        keepdims=keepdims,
        random_state=random_state,
        accountant=accountant,
        least=LEAST_DISTANCE,
    )
    return answers[()]


def _levels(name: str, given: Any, most: float, rule: str) -> NDArray[np.float64]:
    """Levels in [0, 1], of numbers up to `most`."""
    given = np.asarray(given)
    check_number(name, given)
    values = np.ravel(given)
    if values.dtype.kind == "b":
        values = values.astype(np.float64)
    values = _checks.real_array(name, values)
    if not ((values >= 0.0) & (values <= most)).all():  # NaN fails
        raise ValueError(rule)
    return values / most


@in_our_words
@with_options(_quantiles)
def quantile(array: Any, quant: Any, *arguments: Any, **options: Any) -> Any:
    """Release private quantiles of an array, called as ``diffprivlib.tools.quantile``.

    Parameters
    ----------
    array : array_like of real numbers
        Private records, of any shape. NaN and null are left out.
    quant : float or array_like of float
        Levels in [0, 1]; those of an array are flattened. Public, as all that follow.
    epsilon : float, default 1.0
        Budget of the whole output, positive and finite.
    bounds : (float, float) or (array_like, array_like), optional
        Lower and upper bound, a tuple, finite; arrays have one for each entry of a one-dimensional
        output. None: the least and the greatest record, with a `PrivacyLeakWarning`, and without a
        guarantee.
    axis : int or tuple of int, optional
        What is reduced, as by `numpy.sum`; default: all. What is left shares `epsilon` evenly.
    keepdims : bool, default False
        Whether axes that are reduced stay, of length 1.
    random_state : int or RandomState, optional
        Makes the answer predictable: for tests, not private. None: a cryptographic generator.
    accountant : BudgetAccountant or Accountant, optional
        Charged once, before a record is read. Default: diffprivlib's, if it was imported.
    resolution : float, optional
        Spacing of the public lattice of answers; 1 for whole numbers. Default: a power of ten,
        about 10^-6 of the range. Not an argument of diffprivlib's.
    neighbors : {"swap", "add-remove"}, default "swap"
        What `epsilon` protects: one record replaced, or one added or removed. Not an argument of
        diffprivlib's.
    **unused_args
        Warned of by name, with `DiffprivlibCompatibilityWarning`.

    Returns
    -------
    float64 or ndarray of float64
        A number, or an array: of the levels, if there are several, and then of what `axis` leaves.

    Raises
    ------
    TypeError
        If an argument is not of the type its rule asks for, or the array not of real numbers.
    ValueError
        If a public argument breaks its rule.
    BudgetError, BudgetExceeded
        If the accountant has too little left.

    See Also
    --------
    dpq_fast.quantile : With priors, intervals, columns of all kinds, and a choice of mechanisms.

    Notes
    -----
    **Privacy.** Pure `epsilon`-DP under `neighbors`, for a person who has one record in each slice
    along `axis`; for one level under both relations, whatever `neighbors` is. See the module.

    **Mechanism.** That of `dpq_fast.quantile` with ``method="auto"``: one level by permute-and-flip
    on the lattice, several in one joint draw or by a tree. Under "swap" "auto" goes by the number
    of records.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(17, 91, size=10_000)
    >>> quantile(ages, [0.25, 0.5], epsilon=1.0, bounds=(0, 120), resolution=1).shape
    (2,)
    """
    asked = "quant", quant, 1.0, "Quantiles must be in the unit interval [0, 1]."
    return _quantiles(array, asked, *arguments, **options)


@in_our_words
@with_options(_quantiles)
def percentile(array: Any, percent: Any, *arguments: Any, **options: Any) -> Any:
    """Release private percentiles: `quantile` at ``percent / 100``, with the same guarantee.

    Parameters
    ----------
    array, epsilon, bounds, axis, keepdims, random_state, accountant
        As in `quantile`.
    percent : float or array_like of float
        Percentages in [0, 100]. Public.
    resolution, neighbors, **unused_args
        As in `quantile`.

    Returns
    -------
    float64 or ndarray of float64
        As of `quantile`.
    """
    asked = "percent", percent, 100.0, "Percentiles must be between 0 and 100 inclusive"
    return _quantiles(array, asked, *arguments, **options)


@in_our_words
@with_options(_quantiles)
def median(array: Any, *arguments: Any, **options: Any) -> Any:
    """Release private medians: `quantile` at 0.5, with the same guarantee.

    Parameters
    ----------
    array, epsilon, bounds, axis, keepdims, random_state, accountant
        As in `quantile`.
    resolution, neighbors, **unused_args
        As in `quantile`.

    Returns
    -------
    float64 or ndarray of float64
        As of `quantile` for one level.
    """
    return _quantiles(array, ("quant", 0.5, 1.0, ""), *arguments, **options)


def _dtype(dtype: Any) -> np.dtype[Any] | None:
    """The type of an answer: integers or floats, or None."""
    if dtype is None:
        return None
    checked: np.dtype[Any] = np.dtype(dtype)
    if checked.kind not in "iuf":
        raise TypeError(f"dtype must be one of integers or floats, got {checked}")
    return checked


def _typed(values: NDArray[np.float64], dtype: np.dtype[Any] | None) -> Any:
    """Answers in their type; one whole number as an int."""
    if dtype is None:
        return values[()]
    with np.errstate(all="ignore"):  # what does not fit becomes infinite, or the last integer
        if dtype.kind == "f":
            return values.astype(dtype)[()]
        low, high = np.iinfo(dtype).min, min(np.iinfo(dtype).max, LARGEST_INTEGER)
        whole = np.clip(np.rint(values), low, high).astype(dtype)
    return whole if whole.ndim else int(whole)


def _in_numbers(
    name: str,
    nan_policy: str,
    prepared: Callable[[NDArray[Any]], NDArray[Any]] | None,
    /,
    array: Any,
    epsilon: float = 1.0,
    bounds: Any = None,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    random_state: Any = None,
    accountant: Any = None,
    *,
    resolution: float | None = None,
    neighbors: str = "swap",
    **unused_args: Any,
) -> Any:
    """A sum, a mean, a variance or its root, by its name, of what records are prepared to.

    With integers for a `dtype` bounds are cut to whole numbers, as diffprivlib does, and records
    rounded.
    """
    _warn(NO_BOUNDS if bounds is None else None, unused_args)
    release = getattr(aggregates, name)
    kind = _dtype(dtype)
    if kind is not None and kind.kind in "iu":
        resolution = 1 if resolution is None else resolution
        if bounds is not None:
            bounds = tuple(np.trunc(end) for end in Ends.of(bounds))

    def limits(low: float, high: float, size: int) -> tuple[float, float]:
        """Of an answer: the bounds, or what records can come to, if their number is public."""
        if name == "mean":
            return low, high
        if name in ("var", "std"):
            most = (high - low) / 2.0
            return 0.0, most if name == "std" else most * most
        if nan_policy == "omit":
            low, high = min(low, 0.0), max(high, 0.0)
        if neighbors == "swap":
            return low * size, high * size
        return (0.0 if low >= 0.0 else -math.inf), (0.0 if high <= 0.0 else math.inf)

    def of_records(x: Any, ends: tuple[float, float], size: int, **options: Any) -> Prepared[float]:
        low, high = limits(*ends, size)
        answer: Prepared[Any] = Prepared.of(
            release,
            x,
            q=None,
            lower=ends[0],
            upper=ends[1],
            resolution=resolution,
            neighbors=neighbors,
            nan_policy=nan_policy,
            **options,
        )
        return answer.then(lambda number: float(min(max(number, low), high)))

    answers = released(
        of_records,
        array,
        epsilon=epsilon,
        bounds=bounds,
        axis=axis,
        keepdims=keepdims,
        random_state=random_state,
        accountant=accountant,
        prepared=prepared,
    )
    return _typed(answers, kind)


@in_our_words
@with_options(_in_numbers)
def mean(*arguments: Any, nan_policy: str = "omit", **options: Any) -> Any:
    """Release private means of an array, called as ``diffprivlib.tools.mean``.

    Parameters
    ----------
    array, epsilon, bounds, axis, keepdims, random_state, accountant
        As in `quantile`. NaN is left out, where diffprivlib answers NaN.
    dtype : data-type, optional
        Of the answer: floats, or integers, for which records are rounded to whole numbers. Default:
        float64. Public.
    resolution : float, optional
        Spacing of the lattice that records are rounded to. Default: at most 2^-30 of the larger
        bound, 1 for integers. Public.
    neighbors : {"swap", "add-remove"}, default "swap"
        As in `quantile`.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave NaN out, and hide how many there are; or state that there are none, for less noise:
        then one is an error. Public. Not an argument of diffprivlib's.
    **unused_args
        As in `quantile`.

    Returns
    -------
    float64, int or ndarray
        Within the bounds.

    Raises
    ------
    TypeError, ValueError, BudgetError, BudgetExceeded
        As in `quantile`.

    See Also
    --------
    dpq_fast.mean : Where no bounds are known, with an interval, and of columns of all kinds.

    Notes
    -----
    **Privacy.** Pure `epsilon`-DP under `neighbors`, for a person who has one record in each slice
    along `axis`. Noise is discrete, and added to exact integers.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(17, 91, size=10_000)
    >>> bool(50 < mean(ages, epsilon=1.0, bounds=(0, 120)) < 57)
    True
    """
    return _in_numbers("mean", nan_policy, None, *arguments, **options)


@in_our_words
@with_options(_in_numbers)
def nanmean(*arguments: Any, **options: Any) -> Any:
    """Release private means without NaN: `mean`, which leaves them out, too.

    Parameters
    ----------
    array, epsilon, bounds, axis, dtype, keepdims, random_state, accountant
        As in `mean`.
    resolution, neighbors, **unused_args
        As in `mean`.

    Returns
    -------
    float64, int or ndarray
        As of `mean`. Of nothing but NaN a number within the bounds, and no warning: whether there
        are records is private.
    """
    return _in_numbers("mean", "omit", None, *arguments, **options)


@in_our_words
@with_options(_in_numbers)
def var(*arguments: Any, nan_policy: str = "omit", **options: Any) -> Any:
    """Release private variances of an array, called as ``diffprivlib.tools.var``.

    Parameters
    ----------
    array, epsilon, bounds, axis, keepdims, random_state, accountant
        As in `quantile`. NaN is left out, where diffprivlib answers NaN.
    dtype : data-type, optional
        As in `mean`.
    resolution : float, optional
        Spacing of the lattice that records are rounded to, at least 2^-17 of the distance of the
        bounds. Default: a power of two near that, 1 for integers. Public.
    neighbors, nan_policy
        As in `mean`.
    **unused_args
        As in `quantile`.

    Returns
    -------
    float64, int or ndarray
        From 0 to a quarter of the squared distance of the bounds.

    Raises
    ------
    TypeError, ValueError, BudgetError, BudgetExceeded
        As in `quantile`.

    See Also
    --------
    dpq_fast.var : With `ddof`, where no bounds are known, with an interval, and of many columns.

    Notes
    -----
    **Privacy.** As of `mean`.

    **Mechanism.** That of `dpq_fast.var`: squares about a center that is released, too, for a small
    part of `epsilon`. If the mean is in the middle of the bounds, their noise is a quarter of that
    for the largest change of a variance, which diffprivlib adds.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(17, 91, size=10_000)
    >>> bool(400 < var(ages, epsilon=1.0, bounds=(0, 120)) < 520)
    True
    """
    return _in_numbers("var", nan_policy, None, *arguments, **options)


@in_our_words
@with_options(_in_numbers)
def nanvar(*arguments: Any, **options: Any) -> Any:
    """Release private variances without NaN: `var`, which leaves them out, too.

    Parameters
    ----------
    array, epsilon, bounds, axis, dtype, keepdims, random_state, accountant
        As in `var`.
    resolution, neighbors, **unused_args
        As in `var`.

    Returns
    -------
    float64, int or ndarray
        As of `var`. Of nothing but NaN a number, and no warning: whether there are records is
        private.
    """
    return _in_numbers("var", "omit", None, *arguments, **options)


@in_our_words
@with_options(_in_numbers)
def std(*arguments: Any, nan_policy: str = "omit", **options: Any) -> Any:
    """Release private standard deviations of an array, the roots of `var`.

    Parameters
    ----------
    array, epsilon, bounds, axis, dtype, keepdims, random_state, accountant
        As in `var`.
    resolution, neighbors, nan_policy, **unused_args
        As in `var`.

    Returns
    -------
    float64, int or ndarray
        From 0 to half of the distance of the bounds.
    """
    return _in_numbers("std", nan_policy, None, *arguments, **options)


@in_our_words
@with_options(_in_numbers)
def nanstd(*arguments: Any, **options: Any) -> Any:
    """Release private standard deviations without NaN: `std`, which leaves them out, too.

    Parameters
    ----------
    array, epsilon, bounds, axis, dtype, keepdims, random_state, accountant
        As in `var`.
    resolution, neighbors, **unused_args
        As in `var`.

    Returns
    -------
    float64, int or ndarray
        As of `std`. Of nothing but NaN a number, as of `nanvar`.
    """
    return _in_numbers("std", "omit", None, *arguments, **options)


@in_our_words
@with_options(_in_numbers)
def sum(*arguments: Any, nan_policy: str = "omit", **options: Any) -> Any:
    """Release private sums of an array, called as ``diffprivlib.tools.sum``.

    Parameters
    ----------
    array, epsilon, bounds, axis, keepdims, random_state, accountant
        As in `quantile`. NaN is left out, where diffprivlib answers NaN.
    dtype, resolution, neighbors
        As in `mean`.
    nan_policy : {"omit", "raise"}, default "omit"
        As in `mean`. It matters where 0 is not between the bounds: "omit" takes a sensitivity of
        the larger of their absolute values, "raise" under "swap" that of their difference.
    **unused_args
        As in `quantile`.

    Returns
    -------
    float64, int or ndarray
        Within what so many records between the bounds can add up to.

    Raises
    ------
    TypeError, ValueError, BudgetError, BudgetExceeded
        As in `quantile`.

    See Also
    --------
    dpq_fast.sum : Where no bounds are known, with an interval, and of columns of all kinds.

    Notes
    -----
    **Privacy.** As of `mean`.

    Examples
    --------
    >>> import numpy as np
    >>> sum(np.ones(1_000), epsilon=1.0, bounds=(0, 1), dtype=int) > 900
    True
    """
    return _in_numbers("sum", nan_policy, None, *arguments, **options)


@in_our_words
@with_options(_in_numbers)
def nansum(*arguments: Any, **options: Any) -> Any:
    """Release private sums without NaN: `sum`, which leaves them out, too.

    Parameters
    ----------
    array, epsilon, bounds, axis, dtype, keepdims, random_state, accountant
        As in `sum`.
    resolution, neighbors, **unused_args
        As in `sum`.

    Returns
    -------
    float64, int or ndarray
        As of `sum`.
    """
    return _in_numbers("sum", "omit", None, *arguments, **options)


def _truth(item: Any) -> bool:
    """Whether an object counts; what has no truth value, as NA of pandas, does not."""
    try:
        return bool(item)
    except Exception:  # of whatever library
        return False


def _nonzero(records: NDArray[Any]) -> NDArray[Any]:
    """Whether each record counts; no string does that is empty."""
    kind = records.dtype.kind
    if kind in "US":
        some: NDArray[Any] = records != records.dtype.type()
        return some
    if kind == "O":
        counted = np.frompyfunc(_truth, 1, 1)(np.ma.filled(records, False))
        return np.asarray(counted, dtype=np.bool_)
    with np.errstate(all="ignore"):  # NumPy would warn of signaling NaN
        return records.astype(np.bool_)


@in_our_words
def count_nonzero(
    array: Any,
    epsilon: float = 1.0,
    axis: Any = None,
    keepdims: bool = False,
    random_state: Any = None,
    accountant: Any = None,
    *,
    neighbors: str = "swap",
) -> Any:
    """Release how many records are not zero, called as ``diffprivlib.tools.count_nonzero``.

    Parameters
    ----------
    array : array_like
        Private records, of any shape and type. False, zero, None and empty strings do not count,
        nor does what is masked; NaN does.
    epsilon, axis, keepdims, random_state, accountant
        As in `quantile`.
    neighbors : {"swap", "add-remove"}, default "swap"
        As in `quantile`.

    Returns
    -------
    int or ndarray of int
        At least 0, and at most the number of records, where that is public ("swap").

    Raises
    ------
    TypeError, ValueError, BudgetError, BudgetExceeded
        As in `quantile`.

    See Also
    --------
    dpq_fast.count : Of the records of a column that are not missing.

    Notes
    -----
    **Privacy.** Pure `epsilon`-DP under `neighbors`, for a person who has one record in each slice
    along `axis`.

    Examples
    --------
    >>> import numpy as np
    >>> count_nonzero(np.arange(1_000) >= 500, epsilon=1.0) > 400
    True
    """
    return _in_numbers(
        "sum",
        "omit",
        _nonzero,
        array,
        epsilon,
        (0.0, 1.0),
        axis,
        np.intp,
        keepdims,
        random_state,
        accountant,
        resolution=1,
        neighbors=neighbors,
    )


def _bins(bins: Any) -> Any:
    """A number of bins, or edges as they were given; not the name of a rule."""
    if isinstance(bins, str):
        raise ValueError(
            f"bins must be a number or edges: by the rule {bins!r} they are read off the records"
        )
    return bins if np.ndim(bins) else int(operator.index(bins))


def _outermost(ends: Any) -> tuple[float, float]:
    """The edges that are given as a range; as NumPy has them, if they are equal."""
    lower, upper = Ends.of(tuple(ends))
    low, high = lower.item(), upper.item()
    return apart((low, high), float(low == high))


@in_our_words
def histogram(
    sample: Any,
    epsilon: float = 1.0,
    bins: Any = 10,
    range: Any = None,
    weights: None = None,
    density: bool | None = None,
    random_state: Any = None,
    accountant: Any = None,
    *,
    neighbors: str = "swap",
    nan_policy: str = "omit",
    **unused_args: Any,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Release a private histogram of an array, called as ``diffprivlib.tools.histogram``.

    Parameters
    ----------
    sample : array_like of real numbers
        Private records, of any shape: the array is flattened. NaN and null are left out.
    epsilon, random_state, accountant
        As in `quantile`.
    bins : int or sequence, default 10
        A number of bins of one width in `range`, or their edges, which ascend. Public, as all that
        follow.
    range : (float, float), optional
        The outermost edges of a number of bins; records beyond are in none. None: the least and the
        greatest record, with a `PrivacyLeakWarning`, and without a guarantee.
    weights : None
        Not taken: see `counts` of `dpq_fast.histogram`.
    density : bool, optional
        Give shares of what was counted per unit of width.
    neighbors : {"swap", "add-remove"}, default "swap"
        What `epsilon` protects: one record replaced; or one added or removed, which the noise of
        diffprivlib is for, half as much. Not an argument of diffprivlib's.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave NaN out, and hide how many there are; or state that there are none: then one is an
        error, and under "swap" numbers add up to that of the records. Not an argument of
        diffprivlib's.
    **unused_args
        As in `quantile`.

    Returns
    -------
    hist : ndarray of int64 or float64, shape (k,)
        Whole numbers that are not negative, or a density.
    bin_edges : ndarray, shape (k + 1,)
        As of `numpy.histogram`.

    Raises
    ------
    TypeError, ValueError, BudgetError, BudgetExceeded
        As in `quantile`.

    See Also
    --------
    dpq_fast.histogram : Also of times, of persons, and with `rho`.

    Notes
    -----
    **Privacy.** Pure `epsilon`-DP under `neighbors`, for all bins at once.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(17, 91, size=10_000)
    >>> hist, edges = histogram(ages, epsilon=1.0, bins=3, range=(0, 90))
    >>> edges.tolist(), bool(abs(hist.sum() - 9_870) < 200)
    ([0.0, 30.0, 60.0, 90.0], True)
    """
    bins = _bins(bins)
    of_data = range is None and isinstance(bins, int)
    _warn(NO_RANGE if of_data else None, unused_args, 4)
    if weights is not None:
        raise ValueError("weights must be None: dpq_fast.histogram takes counts")
    generator = default_rng(generator_of(random_state))
    epsilon = epsilon_of(epsilon)
    payer = payer_of(accountant)

    def of_records(x: Any, ends: tuple[float, float]) -> Prepared[Any]:
        return Prepared.of(
            private_histogram,
            x,
            bins,
            bounds=ends if isinstance(bins, int) else None,
            density=False if density is None else density,
            epsilon=epsilon,
            neighbors=neighbors,
            nan_policy=nan_policy,
        )

    ends = (0.0, 1.0) if range is None else _outermost(range)  # or any others
    charge(payer, epsilon, [of_records(np.empty(0), ends).guarantee])
    (records,) = Cells.of(sample, None, False).rows()
    if of_data:
        low, high = extremes(records)
        least = 4 * bins * np.spacing(max(-low, high))  # else edges would be equal
        ends = apart((low, high), max(float(low == high), float(least)))
    found: tuple[NDArray[Any], NDArray[Any]] = of_records(records, ends).draw(generator)
    return found


spell_out({name: globals()[name] for name in __all__})
