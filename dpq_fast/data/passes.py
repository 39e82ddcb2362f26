"""Passes over a column: piece by piece, as often as needed, with several threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._kernels.select import LINE
from dpq_fast.data.columns import as_column, as_float64, is_plain, is_ready
from dpq_fast.data.units import Unit

# Values per piece where they have to be converted: the only copy that is ever made.
CONVERTED = 2**16
# Values per piece where they need not be: an interrupt is heard in between.
PLAIN = 2**22
# Values that are worth a thread.
MIN_SHARE = 2**18
# From this many values on, pieces are scattered if a query asks for it: so many of them, or more
# of so many values, in rows of so many.
SCATTERED, MIN_PIECES, SCATTERED_PIECE, ROW = 2**22, 16, 2**21, 2**13

State = TypeVar("State")
Batches = Callable[[], Iterable[NDArray[Any]]]


class Query(ABC, Generic[State]):
    """What is asked of records in one pass: a sum that does not depend on how they are split.

    A state is stepped through pieces of the records and combined with the states of other pieces,
    in any order. A query can be pickled, so that the pass may run wherever the records lie; a data
    base may answer it in its own words, as long as the answer is the same.

    Attributes
    ----------
    any_type : bool
        Whether pieces are taken in the types that kernels read; else they are float64. They are
        contiguous.
    scattered : bool
        Whether pieces may have two axes, rows that are contiguous: those of long arrays come from
        everywhere, the first 2^k of them equally far apart.
    """

    any_type: bool = False
    scattered: bool = False

    @abstractmethod
    def start(self) -> State:
        """The state of no records."""

    @abstractmethod
    def step(self, state: State, piece: NDArray[Any]) -> None:
        """Add the records of a piece to a state."""

    def step_groups(
        self, states: dict[int, State], groups: list[int], ends: NDArray[np.intp], values: Any
    ) -> None:
        """Add the records of some groups to their states; `values` are those of `together`."""
        first = 0
        for group, last in zip(groups, ends.tolist(), strict=True):
            if group not in states:
                states[group] = self.start()
            scan(values[first:last], self, states[group])
            first = last

    def combine(self, one: State, other: State) -> State:
        """The state of both."""
        one += other  # type: ignore[operator]
        return one


class Passes(Protocol):
    """Records, wherever they lie. Who scans which part of them is not said."""

    def fold(self, query: Query[State]) -> State:
        """One pass: the state of all records."""


class Chunks:
    """A column as contiguous pieces, the same at every pass.

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

    def fold(self, query: Query[State]) -> State:
        """As `Passes.fold`: each thread has a partial of its own."""
        return reduce(query.combine, self._partials(query))

    def _partials(self, query: Query[State]) -> list[State]:
        """One pass: each thread makes a state and steps it through its share of every batch.

        There are as many states as there was work for, at least one.
        """
        states = [query.start()]
        batches = self._batches()
        if self._show is not None:
            batches, self._show = self._show(batches), None
        if self._workers == 1:  # a pool costs more than a short column
            for batch in batches:
                scan(batch, query, states[0])
            return states
        with ThreadPoolExecutor(self._workers) as pool:
            for batch in batches:
                parts = max(1, min(self._workers, batch.size // MIN_SHARE))
                states += [query.start() for _ in range(parts - len(states))]
                shares = [
                    pool.submit(scan, batch, query, state, part, parts)
                    for part, state in zip(range(1, parts), states[1:], strict=False)
                ]
                scan(batch, query, states[0], 0, parts)
                for share in shares:
                    share.result()  # raises what was raised
        return states


def scan(
    values: NDArray[Any], query: Query[State], state: State, part: int = 0, parts: int = 1
) -> None:
    """Step a state through the values of an array, or of one of several parts of it."""
    if query.scattered and is_plain(values) and values.size >= SCATTERED * parts:
        pieces = scattered_pieces(values, part, parts)
    else:
        start, stop = values.size * part // parts, values.size * (part + 1) // parts
        pieces = pieces_of(values[start:stop], query.any_type)
    for piece in pieces:
        query.step(state, piece)


def scattered_pieces(values: NDArray[Any], part: int, parts: int) -> Iterator[NDArray[Any]]:
    """Part of a plain array in pieces of rows, and at last what is left over, for the first part.

    The first 2^k pieces have rows that are equally far apart. All rows begin with lines of memory.
    """
    lead = -values.ctypes.data % LINE // values.itemsize
    rows = (values.size - lead) // ROW
    whole = values[lead : lead + rows * ROW].reshape(rows, ROW)[part::parts]
    bits = (max(MIN_PIECES, whole.size // SCATTERED_PIECE) - 1).bit_length()
    for place in range(1 << bits):
        first = int(f"{place:0{bits}b}"[::-1], 2)
        yield whole[first :: 1 << bits]
    if part == 0:
        yield from (values[:lead], values[lead + rows * ROW :])


def pieces_of(values: NDArray[Any], any_type: bool) -> Iterator[NDArray[Any]]:
    """An array in pieces that kernels take: float64, or with `any_type` what they take as it is."""
    plain = is_plain(values) if any_type else is_ready(values, np.float64)
    size = PLAIN if plain else CONVERTED
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
