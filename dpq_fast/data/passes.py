"""Passes over a column: piece by piece, as often as needed, with several threads."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast.data.columns import as_column, as_float64, is_ready
from dpq_fast.data.units import Unit

# Values per piece where they have to be converted: the only copy that is ever made.
CONVERTED = 2**16
# Values per piece where they need not be: an interrupt is heard in between.
PLAIN = 2**22
# Values that are worth a thread.
MIN_SHARE = 2**18

State = TypeVar("State")
Batches = Callable[[], Iterable[NDArray[Any]]]
# Finds some values of a piece: those it found, and how many there were.
Take = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], int]]


class Passes(Protocol):
    """Records, wherever they lie, and the two ways in which they are scanned.

    Both are commutative sums: what is made of one part of the records is combined with what is made
    of the others, in any order. Who scans which part, and where it lies, is not said.
    """

    def fold(
        self,
        start: Callable[[], State],
        step: Callable[[State, NDArray[Any]], Any],
        combine: Callable[[State, State], State] = operator.add,
        integers: bool = False,
    ) -> State:
        """One pass: partials, made by `start` and filled by `step`, combined.

        Pieces are contiguous float64; with `integers`, int64 ones stay as they are.
        """

    def collect(self, take: Take, size: int) -> NDArray[np.float64] | None:
        """One pass: the values that are taken, in any order; None if they are not `size`."""


class Chunks:
    """A column as pieces of contiguous float64, the same at every pass.

    Parameters
    ----------
    batches : callable
        Gives a fresh iterator of one-dimensional real arrays at every call.
    workers : int
        Number of threads, at least 1.
    show : callable, optional
        Wraps the first pass's batches, to show progress. Later passes are not shown: how many
        there are depends on the data.
    """

    def __init__(
        self,
        batches: Batches,
        workers: int,
        show: Callable[[Iterable[Any]], Iterable[Any]] | None = None,
    ) -> None:
        self._batches = batches
        self._workers = workers
        self._show = show

    @classmethod
    def of_array(cls, values: NDArray[Any], workers: int) -> Chunks:
        """The pieces of one array, of any real dtype, strides and byte order; not copied."""
        return cls(lambda: (values,), workers)

    def first(self) -> NDArray[Any]:
        """The first batch that is not empty: a filter gives empty ones, which show no values."""
        return next((batch for batch in self._batches() if batch.size), np.empty(0))

    def fold(
        self,
        start: Callable[[], State],
        step: Callable[[State, NDArray[Any]], Any],
        combine: Callable[[State, State], State] = operator.add,
        integers: bool = False,
    ) -> State:
        """As `Passes.fold`: each thread has a partial of its own."""
        return reduce(combine, self._partials(start, step, integers))

    def collect(self, take: Take, size: int) -> NDArray[np.float64] | None:
        """As `Passes.collect`: each thread keeps what it takes."""

        def step(taken: _Taken, piece: NDArray[np.float64]) -> None:
            values, number = take(piece)
            taken.number += number
            if taken.number > size:
                raise _TooMany
            if number:
                taken.values.append(values.copy())  # of a buffer as long as the piece

        try:
            partials = self._partials(_Taken, step, False)
        except _TooMany:
            return None
        found = [values for taken in partials for values in taken.values]
        if sum(values.size for values in found) != size:
            return None
        return np.concatenate(found) if found else np.empty(0)

    def _partials(
        self, start: Callable[[], State], step: Callable[[State, NDArray[Any]], Any], integers: bool
    ) -> list[State]:
        """One pass: each thread makes a state and steps it through its share of every batch.

        There are as many states as there was work for, at least one.
        """
        states = [start()]
        batches = self._batches()
        if self._show is not None:
            batches, self._show = self._show(batches), None
        if self._workers == 1:  # a pool costs more than a short column
            for batch in batches:
                _scan(batch, integers, step, states[0])
            return states
        with ThreadPoolExecutor(self._workers) as pool:
            for batch in batches:
                parts = max(1, min(self._workers, batch.size // MIN_SHARE))
                states += [start() for _ in range(parts - len(states))]
                ends = [batch.size * i // parts for i in range(parts + 1)]
                shares = [
                    pool.submit(_scan, batch[a:b], integers, step, state)
                    for a, b, state in zip(ends[1:-1], ends[2:], states[1:], strict=False)
                ]
                _scan(batch[: ends[1]], integers, step, states[0])
                for share in shares:
                    share.result()  # raises what was raised
        return states


class _Taken:
    """What one thread has taken, and how much that is."""

    def __init__(self) -> None:
        self.values: list[NDArray[np.float64]] = []
        self.number = 0


class _TooMany(Exception):
    """A thread takes more values than there are to be in all."""


def _scan(
    values: NDArray[Any], integers: bool, step: Callable[[State, NDArray[Any]], Any], state: State
) -> None:
    for piece in _pieces(values, PLAIN, integers):
        step(state, piece)


def _pieces(values: NDArray[Any], size: int, integers: bool) -> Iterator[NDArray[Any]]:
    """Pieces of at most `size` values, of at most CONVERTED if they have to be converted."""
    plain = is_ready(values, np.float64) or (integers and is_ready(values, np.int64))
    if not plain:
        size = min(size, CONVERTED)
    for start in range(0, values.size, size):
        piece = values[start : start + size]
        yield piece if plain else as_float64(piece)


# Where Arrow sources have their schema: tables and data sets, Parquet files, fragments.
SCHEMAS = ("schema", "schema_arrow", "physical_schema")


def chunks_of(
    source: Any, column: str | None, workers: int, progress: bool, unit: Unit | None = None
) -> Chunks:
    """Records that come in batches."""
    threads = _checks.check_workers(workers)
    batches = _batches_of(source, column)
    return Chunks(
        lambda: (as_column(batch, unit) for batch in batches()),
        threads,
        _bar() if progress else None,
    )


def _batches_of(source: Any, column: str | None) -> Callable[[], Iterable[Any]]:
    """A factory of batches: the source itself, or the column of an Arrow source."""
    method = next((name for name in ("to_batches", "iter_batches") if hasattr(source, name)), None)
    if method is not None:
        if not isinstance(column, str):
            raise TypeError(f"column must name a column of the source, got {column!r}")
        _check_name(source, column)
        batches = getattr(source, method)
        # a table gives all its columns, which costs it nothing; the others can choose
        chosen = {} if hasattr(source, "select") else {"columns": [column]}
        return lambda: (batch.column(column) for batch in batches(**chosen))
    if not callable(source):
        raise TypeError(
            "source must be callable, or have to_batches or iter_batches, "
            f"got {type(source).__name__}"
        )
    if column is not None:
        raise ValueError("column must be left out for a callable source")
    give: Callable[[], Iterable[Any]] = source
    return give


def _check_name(source: Any, column: str) -> None:
    """Whether a column is there, by the schema of its source, if any."""
    for name in SCHEMAS:
        schema: Any = getattr(source, name, None)
        if hasattr(schema, "field") and schema.names.count(column) != 1:
            raise ValueError(f"column must name exactly one column of the source, got {column!r}")


def _bar() -> Callable[[Iterable[Any]], Iterable[Any]]:
    """A progress bar over batches."""
    tqdm = _checks.extra("tqdm", "progress=True", "progress")
    return lambda batches: tqdm.tqdm(batches, desc="first pass", unit=" batches")
