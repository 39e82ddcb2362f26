"""Going through a column piece by piece, as often as needed, with several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpq_fast.lattice import as_float64, is_ready

# Values per piece where they have to be converted: the only copy that is ever made.
CONVERTED = 2**16
# Values per piece where they need not be: an interrupt is heard in between.
PLAIN = 2**22
# Values that are worth a thread.
LEAST_SHARE = 2**18

State = TypeVar("State")
Batches = Callable[[], Iterable[NDArray]]


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
        show: Callable[[Iterable], Iterable] | None = None,
    ) -> None:
        self._batches = batches
        self._workers = workers
        self._show = show

    @classmethod
    def of_array(cls, values: NDArray, workers: int) -> Chunks:
        """The pieces of one array, of any real dtype, strides and byte order; not copied."""
        return cls(lambda: (values,), workers)

    def first(self) -> NDArray:
        """The first batch that is not empty: a filter gives empty ones, which show no values."""
        return next((batch for batch in self._batches() if batch.size), np.empty(0))

    def fold(
        self,
        start: Callable[[], State],
        step: Callable[[State, NDArray], Any],
        integers: bool = False,
    ) -> list[State]:
        """One pass: each worker makes a state and steps it through its share of every batch.

        Pieces are contiguous float64; with `integers`, int64 ones stay as they are. There are as
        many states as there was work for, at least one.
        """
        states = [start()]
        batches = self._batches()
        if self._show is not None:
            batches, self._show = self._show(batches), None
        if self._workers == 1:  # a pool costs more than a short column
            for batch in batches:
                _go_through(batch, integers, step, states[0])
            return states
        with ThreadPoolExecutor(self._workers) as pool:
            for batch in batches:
                parts = max(1, min(self._workers, batch.size // LEAST_SHARE))
                states += [start() for _ in range(parts - len(states))]
                ends = [batch.size * i // parts for i in range(parts + 1)]
                shares = [
                    pool.submit(_go_through, batch[a:b], integers, step, state)
                    for a, b, state in zip(ends[1:-1], ends[2:], states[1:], strict=False)
                ]
                _go_through(batch[: ends[1]], integers, step, states[0])
                for share in shares:
                    share.result()  # raises what was raised
        return states


def _go_through(
    values: NDArray, integers: bool, step: Callable[[State, NDArray], Any], state: State
) -> None:
    for piece in _pieces(values, PLAIN, integers):
        step(state, piece)


def _pieces(values: NDArray, size: int, integers: bool) -> Iterator[NDArray]:
    """Pieces of at most `size` values, of at most CONVERTED if they have to be converted."""
    plain = is_ready(values, np.float64) or (integers and is_ready(values, np.int64))
    if not plain:
        size = min(size, CONVERTED)
    for start in range(0, values.size, size):
        piece = values[start : start + size]
        yield piece if plain else as_float64(piece)
