"""Released answers by group, as mappings from the public keys."""

from __future__ import annotations

import json
from collections.abc import ItemsView, Iterator, KeysView
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._arguments import in_our_words
from dpq_fast.data.keys import INTERVALS, PERIODS, comparable, kind_of
from dpq_fast.released.box import FIVE, Box
from dpq_fast.released.estimate import Estimate, in_json, plain
from dpq_fast.released.packing import Packed

# Groups whose answers are printed.
MOST_PRINTED = 20


class GroupAnswers(Packed):
    """Answers by group, in the order of `groups`; a mapping from key to answer.

    But for `values`, which is the array of the answers.
    """

    groups: NDArray[Any]
    values: NDArray[Any]
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None
    confidence: float | None
    covers: str | None
    names: tuple[Any, ...]

    @classmethod
    def _of_parts(cls, parts: dict[str, Any]) -> Any:
        found = super()._of_parts(parts)
        each = (len(FIVE),) if isinstance(found, GroupBoxes) else np.shape(getattr(found, "q", 0.0))
        shape = (found.groups.size, *each)
        answers = [found.values, *(end for end in (found.low, found.high) if end is not None)]
        asked = {end is None for end in (found.low, found.high, found.confidence, found.covers)}
        if found.groups.ndim != 1 or len(asked) > 1 or {each.shape for each in answers} != {shape}:
            raise ValueError("groups must have an answer each, all with an interval or none")
        if found.confidence is not None and not 0.0 < found.confidence < 1.0:
            raise ValueError("confidence must lie strictly between 0 and 1")
        if not (isinstance(found.names, tuple) and len(found._place) <= len(found)):
            raise ValueError("names must be a tuple, and groups what can be looked up")
        if isinstance(found, GroupBoxes) and not isinstance(found.level, float):
            raise ValueError("level must be a float")
        return found

    def __len__(self) -> int:
        """Number of groups."""
        return len(self.groups)

    def __iter__(self) -> Iterator[Any]:
        """Over the keys."""
        return iter(self.groups.tolist())

    def __repr__(self) -> str:
        number = len(self)
        about = f"{type(self).__name__} of {number:,} group{'' if number == 1 else 's'}"
        if hasattr(self, "q"):
            about += f", q = {np.asarray(self.q).tolist()}"
        if isinstance(self, GroupBoxes):
            about += f": {', '.join(FIVE)}"
        if self.confidence is not None:
            about += f", {100 * self.confidence:g}% intervals for the {self.covers}"
        keys = self.groups[:MOST_PRINTED].tolist()
        width = max((len(str(key)) for key in keys), default=0)
        rows = [f"{str(key).ljust(width)}  {_in_words(self[key])}" for key in keys]
        if number > MOST_PRINTED:
            rows.append(f"... {number - MOST_PRINTED:,} more")
        return "\n".join([about, *rows])

    def __contains__(self, key: Any) -> bool:
        return comparable(key) in self._place

    def __getitem__(self, key: Any) -> Any:
        """The answer of one group: a number where one was asked for, else an array."""
        place = self._place[comparable(key)]
        if self.low is None or self.high is None:
            return _plain(self.values[place])
        value, low, high = (_plain(each[place]) for each in (self.values, self.low, self.high))
        assert self.confidence is not None and self.covers is not None
        return Estimate(value, low, high, self.confidence, self.covers)

    def keys(self) -> KeysView[Any]:
        """The keys, in the order of `groups`."""
        return KeysView(self)

    def items(self) -> ItemsView[Any, Any]:
        """Pairs of a key and its answer."""
        return ItemsView(self)

    def to_dict(self) -> dict[Any, Any]:
        """The answers by key.

        Returns
        -------
        dict
            From each key to a number of Python or, for several levels, a list of them; with
            intervals, and of boxes, to what `Estimate.to_dict` and `Box.to_dict` give.

        Raises
        ------
        ValueError
            If Python takes two keys for one: two hours of one name, when clocks are put back.
        """
        answers = {
            key: answer.to_dict() if isinstance(answer, (Estimate, Box)) else plain(answer)
            for key, answer in self.items()
        }
        if len(answers) < len(self):
            raise ValueError(
                "keys must differ as Python compares them to be those of a dictionary, got hours "
                "of one name: `items`, `to_json` and frames have all of them"
            )
        return answers

    def to_json(self) -> str:
        """A record for each group, and each level of quantiles, as JSON.

        Returns
        -------
        str
            An array of objects: the key by the names of its columns ("group" where they have none),
            q, value, and with intervals low and high; of boxes their five numbers. An end where
            there is no bound is null; times are texts.
        """
        columns = {name: in_json(plain(column)) for name, column in self._columns().items()}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return json.dumps(rows, allow_nan=False)

    def to_polars(self) -> Any:
        """A `polars.DataFrame` with the rows of `to_json`.

        Raises
        ------
        ImportError
            If polars is not installed.
        """
        polars = _checks.extra("polars", "to_polars", "polars")
        return polars.DataFrame(self._framed())

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` with the rows of `to_json`.

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        """
        pyarrow = _checks.extra("pyarrow", "to_arrow", "arrow")
        return pyarrow.table(self._framed())

    def _framed(self) -> dict[str, Any]:
        """`_columns`, in types that frames have."""
        return {name: _framed(part) for name, part in self._columns().items()}

    def _columns(self) -> dict[str, NDArray[Any] | list[Any]]:
        """A row for each group and each level: columns of keys, of levels and of answers."""
        answers = self._answers()
        times = next(iter(answers.values())).size // len(self) if len(self) else 0
        keys = self.groups.tolist()
        rows = keys if keys and isinstance(keys[0], tuple) else [(key,) for key in keys]
        width = len(rows[0]) if rows else max(len(self.names), 1)
        names = [str(name) for name in self.names]
        if len({*names, *answers}) < width + len(answers):  # none, or some that are taken
            names = [f"group {place}" for place in range(1, width + 1)] if width > 1 else ["group"]
        each = {
            name: [row[at] for row in rows for _ in range(times)] for at, name in enumerate(names)
        }
        return each | answers

    def _answers(self) -> dict[str, NDArray[Any]]:
        """Columns of answers alone."""
        parts = {"value": self.values, "low": self.low, "high": self.high}
        answers = {name: part.ravel() for name, part in parts.items() if part is not None}
        if hasattr(self, "q"):
            answers = {"q": np.tile(np.ravel(self.q), len(self))} | answers
        return answers

    @cached_property
    def _place(self) -> dict[Any, int]:
        return {comparable(key): place for place, key in enumerate(self.groups.tolist())}

    def _index(self) -> tuple[Any, Any]:
        """Pandas, and an index of the keys."""
        pandas = _checks.extra("pandas", "to_pandas", "pandas")
        keys = self.groups.tolist()
        if not (keys and isinstance(keys[0], tuple)):
            return pandas, pandas.Index(self.groups, name=self.names[0] if self.names else "group")
        return pandas, pandas.MultiIndex.from_tuples(keys, names=self.names or None)


@in_our_words
@dataclass(frozen=True, eq=False, repr=False)
class GroupQuantiles(GroupAnswers, byte=5):
    """Private quantiles by group, in the order of `groups`; a mapping from key to answer.

    Attributes
    ----------
    groups : ndarray, shape (G,)
        The public keys: integers, booleans, or as objects strings, dates or tuples of keys.
    q : float or ndarray of float64
        The levels as they were asked for.
    values : ndarray of float64, shape (G,) + q's
        The answer of each group.
    low, high : ndarray of float64, or None
        Ends of the intervals around `values`, of the same shape, where a `confidence` was asked
        for.
    confidence, covers
        As in `Estimate`; None without intervals.
    names : tuple
        What the columns of keys are called, if they are those of a frame.

    Examples
    --------
    >>> import dpq_fast as dpq
    >>> place = dict(groups=["a", "b"], epsilon=1.0, bounds=(0, 9))
    >>> made = dpq.quantile_by([3, 5, 9], ["a", "b", "a"], 0.5, **place)
    >>> made.groups.tolist(), sorted(made.to_dict())
    (['a', 'b'], ['a', 'b'])
    >>> again = dpq.GroupQuantiles.from_bytes(made.to_bytes())
    >>> bool((again.values == made.values).all())
    True
    """

    groups: NDArray[Any]
    q: Any
    values: NDArray[np.float64]
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    confidence: float | None = None
    covers: str | None = None
    names: tuple[Any, ...] = ()

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row for each group and a column for each level.

        With intervals, three columns for each level: value, low and high.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas, index = self._index()
        shape = len(self), np.size(self.q)
        columns = pandas.Index(np.ravel(self.q), name="q")
        if self.low is None or self.high is None:
            return pandas.DataFrame(self.values.reshape(shape), index=index, columns=columns)
        parts = np.stack(
            [each.reshape(shape) for each in (self.values, self.low, self.high)], axis=-1
        )
        names = pandas.MultiIndex.from_product(
            [columns, ["value", "low", "high"]], names=["q", "part"]
        )
        return pandas.DataFrame(parts.reshape(len(self), -1), index=index, columns=names)


@in_our_words
@dataclass(frozen=True, eq=False, repr=False)
class GroupBoxes(GroupAnswers, byte=10):
    """Boxes by group, in the order of `groups`; a mapping from key to `Box`.

    Attributes
    ----------
    groups : ndarray, shape (G,)
        The public keys: integers, booleans, or as objects strings, dates or tuples of keys.
    values : ndarray of float64, shape (G, 5)
        Low, q1, median, q3 and high of each group.
    level : float
        As in `Box`, for all groups.
    low, high, confidence, covers
        None: there are no intervals.
    names : tuple
        What the columns of keys are called, if they are those of a frame.

    Examples
    --------
    >>> import dpq_fast as dpq
    >>> place = dict(groups=["hr", "it"], epsilon=1.0, bounds=(0, 9))
    >>> made = dpq.box_by([5.0, 3.0, 4.0], ["it", "hr", "it"], **place)
    >>> low, q1, median, q3, high = made["it"]
    >>> bool(low <= median <= high)
    True
    """

    groups: NDArray[Any]
    values: NDArray[np.float64]
    level: float
    low: None = None
    high: None = None
    confidence: None = None
    covers: None = None
    names: tuple[Any, ...] = ()

    def __getitem__(self, key: Any) -> Box:
        """The box of one group."""
        low, q1, median, q3, high = map(plain, super().__getitem__(key))
        return Box(low, q1, median, q3, high, self.level)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row for each group: low, q1, median, q3 and high.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas, index = self._index()
        return pandas.DataFrame(self._answers(), index=index)

    def _answers(self) -> dict[str, NDArray[Any]]:
        return {name: self.values[:, at] for at, name in enumerate(FIVE)}


def _plain(answer: Any) -> Any:
    """A number of Python for one answer; a time stays of its type."""
    return answer if isinstance(answer, np.ndarray) else plain(answer)


def _framed(column: NDArray[Any] | list[Any]) -> Any:
    """A column in types that frames have.

    Seconds, integers beyond 64 bits, and periods and intervals of pandas are none.
    """
    if isinstance(column, list):
        return [str(key) if kind_of(key) in (PERIODS, INTERVALS) else key for key in column]
    if column.dtype.kind in "mM" and np.datetime_data(column.dtype)[0] == "s":
        return column.astype(f"{column.dtype.kind}8[ms]")
    if column.dtype != object:
        return column
    cells = column.tolist()
    if all(isinstance(cell, int) for cell in cells):
        fit = all(-(2**63) <= cell < 2**63 for cell in cells)
        return np.array(cells, dtype=np.int64 if fit else np.float64)
    return [None if cell != cell else cell for cell in cells]  # NaT


def _in_words(answer: Any) -> str:
    """The answer of one group, as it is printed."""
    parts = answer if isinstance(answer, Estimate) else (answer,)
    if isinstance(answer, Box):
        parts = ([*answer],)
    rows = zip(*(np.ravel(np.asarray(part)).tolist() for part in parts), strict=True)
    shown = ([f"{n:.10g}" if isinstance(n, float) else str(n) for n in row] for row in rows)
    return "  ".join(value + (f" [{', '.join(ends)}]" if ends else "") for value, *ends in shown)
