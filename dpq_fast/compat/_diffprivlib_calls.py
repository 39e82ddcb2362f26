"""A call of the drop-in for diffprivlib: its arguments, its cells, one charge, and the draws."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._prepared import Prepared
from dpq_fast.data.columns import as_column, as_float64, of_any_time
from dpq_fast.noise.rng import default_rng

# Twice as much has a float64.
LARGEST_END = 2.0**1022


def generator_of(random_state: Any) -> np.random.Generator | None:
    """What a call draws from: None for the cryptographic generator."""
    if any(random_state is secure for secure in (None, np.random, np.random.mtrand._rand)):
        return None
    if isinstance(random_state, numbers.Integral):
        random_state = np.random.RandomState(int(random_state))
    if not isinstance(random_state, np.random.RandomState):
        raise ValueError(
            "random_state must be None, an integer or a RandomState: "
            f"{type(random_state).__name__} cannot be used to seed a numpy.random.RandomState "
            "instance"
        )
    return default_rng(random_state.randint(2**32, size=8, dtype=np.uint64).tolist())


def epsilon_of(epsilon: Any) -> float:
    """A budget, with what diffprivlib says of others."""
    if not isinstance(epsilon, numbers.Real):
        raise TypeError(f"Epsilon and delta must be numeric, got {type(epsilon).__name__}")
    if epsilon < 0:
        raise ValueError("Epsilon must be non-negative")
    if epsilon == 0:
        raise ValueError("Epsilon and Delta cannot both be zero")
    return _checks.check_epsilon(epsilon)


def payer_of(accountant: Any) -> Any:
    """Who is charged: what was given, or diffprivlib's default where it was imported, or nobody."""
    if accountant is None:
        theirs = getattr(sys.modules.get("diffprivlib.accountant"), "BudgetAccountant", None)
        return None if theirs is None else theirs.load_default(None)
    spends = all(callable(getattr(accountant, name, None)) for name in ("check", "spend"))
    if spends or isinstance(accountant, privacy.Accountant):
        return accountant
    raise TypeError(f"Accountant must be of type BudgetAccountant, got {type(accountant)}")


class Ends(NamedTuple):
    """Lower and upper bounds: one of each, or one for each entry of the output."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @classmethod
    def of(cls, bounds: Any) -> Ends:
        """Bounds as they were given; that they are finite is checked by the release."""
        if not isinstance(bounds, tuple):
            raise TypeError(
                f"Bounds must be specified as a tuple of (min, max), got {type(bounds)}."
            )
        given_lower, given_upper = bounds
        try:
            lower = np.asarray(given_lower, dtype=np.float64)
            upper = np.asarray(given_upper, dtype=np.float64)
        except OverflowError:
            raise ValueError("bounds must be finite, got an integer beyond float64") from None
        if lower.size == 1 or upper.size == 1:
            lower, upper = lower.ravel(), upper.ravel()
        if lower.shape != upper.shape:
            raise ValueError("lower and upper bounds must be the same shape array")
        if lower.ndim > 1:
            raise ValueError("lower and upper bounds must be scalar or a 1-dimensional array")
        if (lower > upper).any():
            where = f"({lower[0]}, {upper[0]})" if lower.size == 1 else "others"
            raise ValueError(
                f"For each bound, lower bound must be smaller than upper bound, got {where}"
            )
        return cls(lower, upper)

    def over(self, cells: Cells) -> list[tuple[float, float]]:
        """The bounds of each entry of the output."""
        most = cells.entries if len(cells.shape) == 1 else 1
        if self.lower.size not in (1, most):
            raise ValueError(
                f"lower and upper bounds must have {most} element(s), got {self.lower.size}."
            )
        pairs = list(zip(self.lower.tolist(), self.upper.tolist(), strict=True))
        return pairs if len(pairs) == cells.entries else pairs * cells.entries


def apart(ends: tuple[float, float], least: float) -> tuple[float, float]:
    """Ends that are as far from each other as diffprivlib has them, and not equal."""
    low, high = ends
    if high - low < least:
        middle = low + (high - low) / 2.0
        low, high = min(low, middle - least / 2.0), max(high, middle + least / 2.0)
    return low, math.nextafter(high, math.inf) if low == high else high


def extremes(column: NDArray[Any]) -> tuple[float, float]:
    """The least and the greatest finite number of a column. Private."""
    values = as_float64(as_column(column))
    values = values[np.isfinite(values)]
    low, high = (values.min(), values.max()) if values.size else (0.0, 0.0)
    return max(float(low), -LARGEST_END), min(float(high), LARGEST_END)


class Cells(NamedTuple):
    """An array, and which parts of it each entry of an output is of.

    Attributes
    ----------
    values : ndarray
        Private.
    order : tuple of int
        Its axes: those that are kept, then those that are reduced.
    shape : tuple of int
        Of the output.
    entries : int
        How many it has.
    size : int
        Number of records of each.
    """

    values: NDArray[Any]
    order: tuple[int, ...]
    shape: tuple[int, ...]
    entries: int
    size: int

    @classmethod
    def of(cls, array: Any, axis: Any, keepdims: Any) -> Cells:
        """What `numpy.sum` would reduce, and how; of the records their shape alone is asked for."""
        values = array if isinstance(array, np.ma.MaskedArray) else np.asarray(of_any_time(array))
        try:  # what NumPy refuses is refused in its words
            np.zeros((1,) * values.ndim).sum(axis=axis, keepdims=keepdims)
        except OverflowError:
            raise ValueError("axis and keepdims must be within the integers of C") from None
        every = tuple(range(values.ndim))
        reduced = every if axis is None else normalize_axis_tuple(axis, values.ndim)
        kept = tuple(i for i in every if i not in reduced)
        lengths = values.shape
        entries = math.prod(lengths[i] for i in kept)
        if entries == 0:
            raise ValueError(
                f"the output must have an entry, got an array of shape {lengths} and axis {axis}"
            )
        shape = tuple(lengths[i] if i in kept else 1 for i in every if i in kept or bool(keepdims))
        size = math.prod(lengths[i] for i in reduced)
        return cls(values, kept + reduced, shape, entries, size)

    def rows(self) -> NDArray[Any]:
        """The records of each entry. Private."""
        rows: NDArray[Any] = self.values.transpose(self.order).reshape(self.entries, self.size)
        return rows


class Total(NamedTuple):
    """What a call guarantees, as what calibrates a mechanism says it."""

    guarantee: privacy.Guarantee


def charge(accountant: Any, epsilon: float, guarantees: list[privacy.Guarantee]) -> None:
    """Charge all releases of a call at once."""
    if isinstance(accountant, privacy.Accountant):
        one = len(guarantees) == 1
        privacy.charge(accountant, Total(guarantees[0] if one else privacy.compose(guarantees)))
    elif accountant is not None:
        accountant.check(epsilon, 0)
        accountant.spend(epsilon, 0)


def released(
    of_records: Callable[..., Prepared[Any]],
    array: Any,
    *,
    epsilon: Any,
    bounds: Any,
    axis: Any,
    keepdims: Any,
    random_state: Any,
    accountant: Any,
    least: float = 0.0,
    prepared: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
) -> NDArray[np.float64]:
    """Release every entry of an output: check, charge all of them, and then read the records.

    Returns
    -------
    ndarray of float64
        The answers; levels first, if there are several.
    """
    generator = default_rng(generator_of(random_state))
    given = None if bounds is None else Ends.of(bounds)
    epsilon = epsilon_of(epsilon)
    payer = payer_of(accountant)
    cells = Cells.of(array, axis, keepdims)
    if given is None and cells.size == 0:
        raise ValueError("zero-size array to reduction operation minimum which has no identity")
    # rounded down, so that no sum of the parts is more than the whole
    part = epsilon if cells.entries == 1 else math.nextafter(epsilon / cells.entries, 0.0)
    # which a release may choose by the composition of
    composing = payer if isinstance(payer, privacy.Accountant) else None
    options: dict[str, Any] = dict(epsilon=part, accountant=composing)
    ends = [(0.0, 1.0)] * cells.entries if given is None else given.over(cells)  # or any others
    ends = [apart(pair, least) for pair in ends]
    guarantees = {
        pair: of_records(np.empty(0), pair, cells.size, **options).guarantee
        for pair in dict.fromkeys(ends)
    }
    charge(payer, epsilon, [guarantees[pair] for pair in ends])
    rows = cells.rows() if prepared is None else prepared(cells.rows())
    if given is None:
        ends = [apart(extremes(rows.reshape(-1)), least)] * cells.entries
    answers = [
        of_records(row, pair, cells.size, **options).draw(generator)
        for row, pair in zip(rows, ends, strict=True)
    ]
    found = np.moveaxis(np.array(answers, dtype=np.float64), 0, -1)
    return found.reshape(found.shape[:-1] + cells.shape)
