"""The public quantile levels: checked once, sorted, each released once, answered in their order."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import real_array

# Most levels of a call: rows of paths through them take some GB.
MAX_LEVELS = 2**20
# Most levels that are kept for the next call.
KEPT_LEVELS = 2**8


def check_number(name: str, levels: NDArray[Any]) -> None:
    """How many levels there may be, whatever they are."""
    if levels.size == 0:
        raise ValueError(f"{name} must hold at least one level, got none")
    if levels.size > MAX_LEVELS:
        raise ValueError(f"{name} must hold at most 2^20 levels, got {levels.size}")


class Levels:
    """Quantile levels in the caller's manner, kept as m distinct ascending values.

    Parameters
    ----------
    q : float or array_like of float
        Levels in [0, 1], any order and shape, duplicates allowed; at least one. Public.

    Attributes
    ----------
    values : ndarray of float64, shape (m,)
        The distinct levels, ascending.
    m : int
        How many distinct levels there are.

    Raises
    ------
    TypeError
        If `q` is not real-valued.
    ValueError
        If `q` is empty, or of more than 2^20 levels, or a level is NaN or outside [0, 1].
    """

    __slots__ = ("_inverse", "_shape", "m", "values")

    def __init__(self, q: Any) -> None:
        if type(q) is float and 0.0 <= q <= 1.0:  # the commonest call, at a tenth of the price
            self.values, self._inverse, self._shape, self.m = np.array([q]), None, (), 1
            return
        levels = np.asarray(q)
        check_number("q", levels)
        flat = real_array("q", levels).flatten()  # a copy: the caller's may change
        bad = ~((flat >= 0.0) & (flat <= 1.0))  # NaN fails both
        if bad.any():
            j = int(bad.argmax())
            where = f"q[{j}] = {flat[j]}" if levels.ndim else f"{flat[j]}"
            raise ValueError(f"q must lie in [0, 1], got {where}")
        self._shape = levels.shape
        if (flat[1:] > flat[:-1]).all():
            self.values, self._inverse = flat, None
        else:
            self.values, self._inverse = np.unique(flat, return_inverse=True)
        self.m = self.values.size

    def __repr__(self) -> str:
        return f"Levels({self.restore(self.values)})"

    @classmethod
    def of(cls, q: Any) -> Levels:
        """`q` as levels, which it may be already; the same object for a `q` that came before.

        Their arrays are not to be written to.
        """
        kind = type(q)
        if kind is float:
            return _of_tuple((q,), ())
        if kind is Levels:
            levels: Levels = q
            return levels
        if kind is np.ndarray and q.dtype == np.float64 and q.size <= KEPT_LEVELS:
            return _of_bytes(q.tobytes(), q.shape)
        if kind in (list, tuple) and len(q) <= KEPT_LEVELS and {float}.issuperset(map(type, q)):
            return _of_tuple(tuple(q), (len(q),))
        return cls(q)

    def restore(self, answers: NDArray[np.float64]) -> Any:
        """Answers of shape (..., m) as (...) + q's shape, in its order; a float for one scalar."""
        if self._inverse is not None:
            answers = answers[..., self._inverse]
        if not self._shape and answers.ndim == 1:  # the commonest call, as above
            return answers.item()
        out = answers.reshape(answers.shape[:-1] + self._shape)
        return float(out) if out.ndim == 0 else out

    def mirrored(self) -> Levels:
        """The levels 1 - q, ascending: those of the negated data."""
        return Levels(1.0 - self.values[::-1])

    def distinct(self, outputs: Any) -> NDArray[np.float64] | None:
        """The m distinct outputs behind one tuple of q's shape; None if duplicates disagree."""
        flat = real_array("o", outputs)
        if flat.shape != self._shape:
            raise ValueError(f"o must have the shape of q, {self._shape}, got {flat.shape}")
        flat = flat.ravel()
        if self._inverse is None:
            return flat
        kept = np.empty(self.m)
        kept[self._inverse] = flat
        return kept if np.array_equal(kept[self._inverse], flat) else None


@lru_cache(maxsize=256)  # public; a program asks for few tuples of levels, again and again
def _of_tuple(q: tuple[float, ...], shape: tuple[int, ...]) -> Levels:
    """`Levels.of` floats."""
    levels = Levels(np.array(q).reshape(shape))
    levels.values.setflags(write=False)
    return levels


@lru_cache(maxsize=256)
def _of_bytes(q: bytes, shape: tuple[int, ...]) -> Levels:
    """`Levels.of` an array's float64 numbers; the same object as for a tuple of them."""
    return _of_tuple(tuple(np.frombuffer(q).tolist()), shape)


class Split(NamedTuple):
    """One step of the recursion over ascending levels: it releases `middle` of [lower, upper).

    Attributes
    ----------
    depth : int
        Steps before it on the way from the root; one step of a depth concerns one part of the
        records, and parts of one depth share none.
    lower, middle, upper : int
        Indices of levels.
    local : float
        Which quantile of its part the middle level is: (q - q_lo) / (q_hi - q_lo), where q_lo and
        q_hi are the levels at which the part was cut off, or 0 and 1.
    """

    depth: int
    lower: int
    middle: int
    upper: int
    local: float


def splits(q: NDArray[np.float64]) -> list[Split]:
    """The steps for m distinct ascending levels, by depth: ceil(log2(m + 1)) depths."""
    return list(_splits(tuple(q.tolist())))


@lru_cache(maxsize=256)  # public; a program asks for few tuples of levels, again and again
def _splits(levels: tuple[float, ...]) -> tuple[Split, ...]:
    """`splits` as a tuple."""
    steps, ranges = [], [(0, 0, len(levels))]
    for depth, lower, upper in ranges:  # grows on the way
        if lower == upper:
            continue
        middle = (lower + upper) // 2
        cut_low = levels[lower - 1] if lower > 0 else 0.0
        cut_high = levels[upper] if upper < len(levels) else 1.0
        local = (levels[middle] - cut_low) / (cut_high - cut_low)
        steps.append(Split(depth, lower, middle, upper, local))
        ranges += [(depth + 1, lower, middle), (depth + 1, middle + 1, upper)]
    return tuple(steps)
