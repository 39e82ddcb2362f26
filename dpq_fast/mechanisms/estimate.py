"""What a release with a confidence gives: a value and an interval around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._arguments import in_our_words
from dpq_fast.privacy.intervals import Request


def _shown(part: Any) -> str:
    return f"{part:g}" if isinstance(part, (float, np.floating)) else str(part)


@in_our_words
@dataclass(frozen=True)  # with slots a new attribute is a TypeError, which others do not expect
class Estimate:
    """A private answer and an interval around it.

    ``np.asarray(estimate)`` has value, low and high along a last axis of 3, and so does unpacking:
    ``value, low, high = estimate``.

    Attributes
    ----------
    value : float or ndarray of float64
        What the function gives without a `confidence`, with a part of the budget.
    low, high : float or ndarray of float64
        The ends, of the same shape; ``low <= value <= high``. -inf and inf where there is no
        bound.
    confidence : float
        The least probability with which each interval by itself covers what it is for.
    covers : {"sample", "population"}
        What that is: the answer for the records at hand, or for the distribution that they were
        drawn from.

    Examples
    --------
    >>> import dpq_fast as dpq
    >>> estimate = dpq.count([7.5] * 1_000, epsilon=1.0, neighbors="add-remove", confidence=0.95)
    >>> value, low, high = estimate
    >>> low <= value <= high
    True
    >>> print(Estimate(54.0, 52.0, 56.0, 0.95, "sample"))
    54 [52, 56]  (95% interval for the sample)
    """

    value: Any
    low: Any
    high: Any
    confidence: float
    covers: str

    @classmethod
    def around(cls, value: Any, low: Any, high: Any, request: Request) -> Estimate:
        """An interval, and a value that it is made to hold."""
        low, high = np.minimum(low, value), np.maximum(high, value)
        if np.ndim(value) == 0:
            low, high = float(low), float(high)
        return cls(value, low, high, request.confidence, request.covers)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.value, self.low, self.high))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.stack([np.asarray(part, dtype=dtype) for part in self], axis=-1)

    def __str__(self) -> str:
        about = f"{100 * self.confidence:g}% interval for the {self.covers}"
        rows = [[_shown(part) for part in row] for row in np.asarray(self).reshape(-1, 3)]
        return "\n".join(f"{value} [{low}, {high}]" for value, low, high in rows) + f"  ({about})"

    @in_our_words
    def to_frame(self) -> Any:
        """A row for each answer.

        Returns
        -------
        pandas.DataFrame
            Columns value, low and high.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = _checks.extra("pandas", "to_frame", "pandas")
        return pd.DataFrame(np.asarray(self).reshape(-1, 3), columns=["value", "low", "high"])
