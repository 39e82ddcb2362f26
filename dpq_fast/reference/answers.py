"""Answers by group: what can be done with them, as with those of `dpq_fast`."""

from __future__ import annotations

import json
import math
from collections.abc import ItemsView, Iterator, KeysView
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast.reference.intervals import Estimate
from dpq_fast.reference.keys import compared, kind_of_pandas


@dataclass(frozen=True, eq=False)
class GroupValues:
    """Counts, sums or means by group, as `dpq_fast.GroupValues`; also what `GroupQuantiles` are.

    A mapping from key to answer, in the order of `groups`, but for `values`, an array.

    Attributes
    ----------
    groups : ndarray, shape (G,)
    values : ndarray, shape (G,), or of quantiles (G,) + q's
    low, high : ndarray like `values`, or None
    confidence, covers
        None without intervals.
    names : tuple
        Of the columns of keys, if they are those of a frame.
    q : float or ndarray of float64, optional
        Of quantiles.
    """

    groups: NDArray[Any]
    values: NDArray[Any]
    low: NDArray[Any] | None = None
    high: NDArray[Any] | None = None
    confidence: float | None = None
    covers: str | None = None
    names: tuple[Any, ...] = ()
    q: Any = None

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups.tolist())

    def __contains__(self, key: Any) -> bool:
        return compared(key) in map(compared, self)

    def __getitem__(self, key: Any) -> Any:
        place = {compared(own): place for place, own in enumerate(self)}[compared(key)]
        value = plain(self.values[place])
        if self.low is None or self.high is None or self.confidence is None or self.covers is None:
            return value
        low, high = plain(self.low[place]), plain(self.high[place])
        return Estimate(value, low, high, self.confidence, self.covers)

    def keys(self) -> KeysView[Any]:
        """The keys."""
        return KeysView(self)

    def items(self) -> ItemsView[Any, Any]:
        """Pairs of a key and its answer."""
        return ItemsView(self)

    def to_dict(self) -> dict[Any, Any]:
        """The answers by key: numbers or lists of them; with intervals what they consist of."""
        found = {}
        for key, answer in self.items():
            parts = answer._asdict() if isinstance(answer, Estimate) else {"": answer}
            parts = {name: np.array(part).tolist() for name, part in parts.items()}
            found[key] = parts.get("", parts)
        if len(found) < len(self):
            raise ValueError("keys must differ as Python compares them to be those of a dictionary")
        return found

    def columns(self) -> dict[str, list[Any]]:
        """A row for each group and each level: columns of keys, of levels and of answers."""
        answers: dict[str, list[Any]] = {}
        levels = np.ravel(self.q).tolist() if self.q is not None else [None]
        if self.q is not None:
            answers["q"] = levels * len(self)
        for name, part in (("value", self.values), ("low", self.low), ("high", self.high)):
            if part is not None:
                answers[name] = part.ravel().tolist()
        rows = [key if isinstance(key, tuple) else (key,) for key in self]
        width = len(rows[0]) if rows else max(len(self.names), 1)
        names = list(map(str, self.names))
        if len({*names, *answers}) < width + len(answers):
            names = [f"group {j + 1}" for j in range(width)] if width > 1 else ["group"]
        keys = {name: [row[j] for row in rows for _ in levels] for j, name in enumerate(names)}
        return keys | answers

    def framed(self) -> dict[str, list[Any]]:
        """`columns`, with texts for keys that are of types of pandas."""
        return {
            name: [item if kind_of_pandas(item) is None else str(item) for item in column]
            for name, column in self.columns().items()
        }

    def to_json(self) -> str:
        """A record for each group and each level; null for infinite ends."""
        columns = self.framed()
        rows = zip(*(map(in_json, column) for column in columns.values()), strict=True)
        return json.dumps([dict(zip(columns, row, strict=True)) for row in rows])

    def to_polars(self) -> Any:
        """A `polars.DataFrame` with the rows of `to_json`."""
        import polars

        return polars.DataFrame(self.framed(), strict=False)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` with the rows of `to_json`."""
        import pyarrow

        return pyarrow.table(self.framed())

    def to_pandas(self) -> Any:
        """A row for each group, and a column for each level; three of them with intervals."""
        import pandas

        table: dict[Any, Any] = {}
        levels = np.ravel(self.q).tolist() if self.q is not None else [None]
        for j, level in enumerate(levels):
            for name, part in (("value", self.values), ("low", self.low), ("high", self.high)):
                if part is not None:
                    label = name if level is None else level if self.low is None else (level, name)
                    table[label] = part.reshape(len(self), len(levels))[:, j]
        keys = list(self)
        if keys and isinstance(keys[0], tuple):
            index = pandas.MultiIndex.from_tuples(keys, names=self.names or None)
        else:
            index = pandas.Index(self.groups, name=(*self.names, "group")[0])
        frame = pandas.DataFrame(table, index=index)
        if self.q is None:
            return frame
        return frame.rename_axis(columns=["q"] if self.low is None else ["q", "part"])


def plain(answer: Any) -> Any:
    """A number of Python for one answer."""
    return answer.item() if isinstance(answer, np.generic) else answer


def in_json(item: Any) -> Any:
    """As JSON has it."""
    if isinstance(item, float):
        return item if math.isfinite(item) else None
    if item is None or isinstance(item, (int, str)):
        return item
    return item.isoformat() if hasattr(item, "isoformat") else str(item)


class GroupQuantiles(GroupValues):
    """Quantiles by group, as `dpq_fast.GroupQuantiles`."""
