"""The five numbers of a box plot, released together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpq_fast._arguments import in_our_words
from dpq_fast.data.reprs import shown
from dpq_fast.released.estimate import in_json, plain
from dpq_fast.released.packing import Packed

# From the lowest to the highest.
FIVE = ("low", "q1", "median", "q3", "high")


@in_our_words
@dataclass(frozen=True, repr=False)
class Box(Packed, byte=9):
    """Five numbers of a column, as box plots draw them: unpacking gives them in order.

    Attributes
    ----------
    low, high : float
        Ends of the whiskers, in the unit of the column.
    q1, median, q3 : float
        The quartiles: ``low <= q1 <= median <= q3 <= high``.
    level : float
        The whiskers reach no farther than the released quantiles at this level and at 1 less it.
        Public.

    Examples
    --------
    >>> box = Box(21.0, 32.0, 40.0, 47.0, 69.0, 0.014)
    >>> low, q1, median, q3, high = box
    >>> box
    Box(low=21, q1=32, median=40, q3=47, high=69, level=0.014)
    """

    low: Any
    q1: Any
    median: Any
    q3: Any
    high: Any
    level: float

    @classmethod
    def of(cls, quantiles: Any, whisker: float, level: float) -> Box:
        """A box of quantiles at `level`, the quartiles, and 1 less `level`, ascending."""
        least, q1, median, q3, most = map(float, quantiles)
        reach = whisker * (q3 - q1)
        # of no number, of a range beyond float64, the first one stays
        low, high = max(least, q1 - reach), min(most, q3 + reach)
        return cls(low, q1, median, q3, high, level)

    @classmethod
    def _of_parts(cls, parts: dict[str, Any]) -> Box:
        found = cls(**parts)
        if not (isinstance(found.level, float) and 0.0 < found.level <= 0.5):
            raise ValueError("level must be a float in (0, 1/2]")
        if len({type(each) for each in found}) > 1 or np.ndim(found.low):
            raise ValueError("the five numbers must be of one type")
        return found

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, name) for name in FIVE)

    def __repr__(self) -> str:
        return shown(self, **self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The attributes by their names.

        Returns
        -------
        dict
            Numbers of Python; times stay of their type.
        """
        return {name: plain(getattr(self, name)) for name in (*FIVE, "level")}

    def to_json(self) -> str:
        """`to_dict` as JSON.

        Returns
        -------
        str
            An object; times are texts.
        """
        return json.dumps(in_json(self.to_dict()), allow_nan=False)
