"""What a release with a confidence gives: a value and an interval around it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._arguments import in_our_words
from dpq_fast.privacy.intervals import Request
from dpq_fast.released.packing import Packed


def _shown(part: Any) -> str:
    return f"{part:g}" if isinstance(part, (float, np.floating)) else str(part)


def plain(answer: Any) -> Any:
    """Numbers of Python, and lists of them; times stay of their type."""
    if isinstance(answer, np.ndarray):
        return [plain(part) for part in answer]
    return answer.item() if getattr(answer, "dtype", np.dtype(object)).kind in "biuf" else answer


def in_json(data: Any) -> Any:
    """The same as JSON has it: null for no number and for infinite ones, text for times."""
    if isinstance(data, dict):
        return {name: in_json(each) for name, each in data.items()}
    if isinstance(data, (list, tuple)):
        return [in_json(each) for each in data]
    if data is None or isinstance(data, (str, int)):
        return data
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if data != data:  # NaT
        return None
    return data.isoformat() if hasattr(data, "isoformat") else str(data)


@in_our_words
@dataclass(frozen=True)  # with slots a new attribute is a TypeError, which others do not expect
class Estimate(Packed, byte=4):
    """A private answer and an interval around it.

    ``np.asarray(estimate)`` has value, low and high along a last axis of 3, and so does unpacking:
    ``value, low, high = estimate``. An index picks answers, and never one of the three:
    ``estimate[1]`` is the estimate of the second level. ``float(estimate)`` is one answer's value,
    and ``f"{estimate:,.0f}"`` has each of the three in this format.

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
    >>> estimate = Estimate(54.0, 52.0, 56.0, 0.95, "sample")
    >>> print(estimate)
    54 [52, 56]  (95% interval for the sample)
    >>> float(estimate), f"{estimate:.1f}"
    (54.0, '54.0 [52.0, 56.0]')
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

    @classmethod
    def _of_parts(cls, parts: dict[str, Any]) -> Estimate:
        found = cls(**parts)
        np.asarray(found)  # of one shape and kind
        if not 0.0 < found.confidence < 1.0:
            raise ValueError("confidence must lie strictly between 0 and 1")
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter((self.value, self.low, self.high))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.stack([np.asarray(part, dtype=dtype) for part in self], axis=-1)

    def __float__(self) -> float:
        if not isinstance(self.value, (int, float, np.integer, np.floating)):
            kind = (
                f"shape {shape}" if (shape := np.shape(self.value)) else type(self.value).__name__
            )
            raise TypeError(f"an estimate must be of one number to be a float, got one of {kind}")
        return float(self.value)

    def __getitem__(self, index: Any) -> Estimate:
        """The estimate of some of the answers, by an index of their array."""
        if not np.ndim(self.value):
            raise TypeError(
                "an estimate must be of several answers to be indexed, got one of one answer "
                "(value, low, high = estimate unpacks it)"
            )
        parts = (np.asarray(part)[index] for part in self)
        value, low, high = (part if np.ndim(part) else plain(part) for part in parts)
        return Estimate(value, low, high, self.confidence, self.covers)

    def __str__(self) -> str:
        about = f"{100 * self.confidence:g}% interval for the {self.covers}"
        return f"{self._rows(_shown)}  ({about})"

    def __format__(self, spec: str) -> str:
        """A line for each answer, with value, low and high in the format; `str` for none."""
        return self._rows(lambda part: format(part, spec)) if spec else str(self)

    def _rows(self, shown: Callable[[Any], str]) -> str:
        rows = [[shown(part) for part in row] for row in np.asarray(self).reshape(-1, 3)]
        return "\n".join(f"{value} [{low}, {high}]" for value, low, high in rows)

    def to_dict(self) -> dict[str, Any]:
        """The attributes by their names.

        Returns
        -------
        dict
            Numbers of Python, or lists of them for an array of answers.
        """
        parts = {name: plain(getattr(self, name)) for name in ("value", "low", "high")}
        return parts | {"confidence": self.confidence, "covers": self.covers}

    def to_json(self) -> str:
        """`to_dict` as JSON.

        Returns
        -------
        str
            An object. An end where there is no bound is null; times are texts.
        """
        return json.dumps(in_json(self.to_dict()), allow_nan=False)

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
