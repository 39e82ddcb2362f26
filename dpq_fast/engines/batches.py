"""Tables that come in batches: data sets and Parquet files of pyarrow, lazy frames of polars.

And frames in memory, so that their releases can share passes, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from dpq_fast import _checks
from dpq_fast.data.persons import check_ids
from dpq_fast.data.tasks import ColumnOf, Declaring, Task

# Rows that a batch has at most: of several columns, a few megabytes.
BATCH = 2**17


def opened(source: Any, connection: Any, workers: int, progress: bool) -> Batches | None:
    """The engine of a source, if it is one of those above."""
    if connection is not None:
        return None
    if hasattr(source, "collect_batches"):
        schema = source.collect_schema()
        names, batches, declared = schema.names(), _of_polars(source), _empty_of_polars(schema)
    elif hasattr(source, "scanner") and hasattr(source, "schema"):
        names, batches = source.schema.names, of_data_set(source)
        declared = empty_of_arrow(source.schema)
    elif hasattr(source, "iter_batches") and hasattr(source, "schema_arrow"):
        names, batches = source.schema_arrow.names, _of_parquet(source)
        declared = empty_of_arrow(source.schema_arrow)
    else:
        return None
    return Batches(names, batches, workers, progress, declared)


def of_frame(source: Any, workers: int, progress: bool) -> Batches | None:
    """The engine of a frame in memory: of pandas, polars or pyarrow, or a mapping of columns."""
    if isinstance(source, Mapping):
        held = source.__getitem__
        return Batches(list(source), lambda names: [source], workers, progress, held=held)
    names = _checks.names_of(source)
    if names is None:
        return None
    held = source.__getitem__
    return Batches(list(names), _of_slices(source), workers, progress, held=held)


def empty_of_arrow(schema: Any) -> Callable[[str], Any]:
    """What gives a column of Arrow without a row, by its name."""
    pa = _checks.extra("pyarrow", "a table of Arrow", "arrow")
    return lambda name: pa.chunked_array([], schema.field(name).type)


def _empty_of_polars(schema: Any) -> Callable[[str], Any]:
    pl = _checks.extra("polars", "a lazy frame", "polars")
    return lambda name: pl.Series([], dtype=schema[name])


def _of_slices(frame: Any) -> Callable[[list[str]], Iterable[Any]]:
    starts = range(0, len(frame), BATCH)
    if hasattr(frame, "iloc"):
        return lambda names: (frame.iloc[start : start + BATCH] for start in starts)
    return lambda names: (frame.slice(start, BATCH) for start in starts)


def _of_polars(frame: Any) -> Callable[[list[str]], Iterable[Any]]:
    return lambda names: frame.select(names).collect_batches(
        chunk_size=BATCH, maintain_order=False, engine="streaming"
    )


def of_data_set(source: Any) -> Callable[[list[str]], Iterable[Any]]:
    """What gives fresh batches of some columns of a data set of pyarrow."""
    # a few batches are read ahead, not whole files: memory is theirs, and so is time
    few: dict[str, Any] = dict(batch_size=BATCH, batch_readahead=2, fragment_readahead=1)
    if getattr(getattr(source, "format", None), "default_extname", None) == "parquet":
        data_sets = _checks.extra("pyarrow.dataset", "a data set", "arrow")
        few["fragment_scan_options"] = data_sets.ParquetFragmentScanOptions(pre_buffer=False)
    return lambda names: source.to_batches(columns=names, **few)


def _of_parquet(source: Any) -> Callable[[list[str]], Iterable[Any]]:
    return lambda names: source.iter_batches(batch_size=BATCH, columns=names)


class Batches(Declaring):
    """An engine of batches, which this process reads.

    Parameters
    ----------
    names : sequence of str
    batches : callable
        Gives fresh batches of some columns.
    workers : int
        Threads, at least 1.
    progress : bool
    empty : callable, optional
        Gives a column without a row; left out where types follow from the rows.
    held : callable, optional
        Gives a whole column, where they are in memory.
    """

    def __init__(
        self,
        names: Sequence[str],
        batches: Callable[[list[str]], Iterable[Any]],
        workers: int,
        progress: bool,
        empty: Callable[[str], Any] | None = None,
        held: Callable[[str], Any] | None = None,
    ) -> None:
        self.names = names
        self._held = held
        self._empty = empty
        self._batches = batches
        self._workers = workers
        self._bar = _checks.extra("tqdm", "progress=True", "progress").tqdm if progress else None

    def declared(self, name: str) -> Any:
        return None if self._empty is None else self._empty(name)

    def check_ids(self, name: str) -> None:
        if self._held is None:
            super().check_ids(name)
        else:
            check_ids(self._held(name))

    def answer(self, tasks: Sequence[Task[Any]]) -> list[Any]:
        """As `Engine.answer`: each thread has states of its own."""
        names = list(dict.fromkeys(name for task in tasks for name in task.columns))
        batches = self._batches(names)
        if self._bar is not None:
            batches = self._bar(batches, desc="pass", unit=" batches")
        partials = [[task.start() for task in tasks] for _ in range(self._workers)]
        _step(tasks, batches, partials)
        first, *others = partials
        for other in others:
            first = [task.combine(*pair) for task, *pair in zip(tasks, first, other, strict=True)]
        return first


def _step(tasks: Sequence[Task[Any]], batches: Iterable[Any], partials: list[list[Any]]) -> None:
    """Step the states of some threads through batches as they come, one at a time for each."""

    def step(states: list[Any], batch: Any) -> None:
        rows = _rows_of(batch)
        for task, state in zip(tasks, states, strict=True):
            task.step(state, rows)

    if len(partials) == 1:  # a pool costs more than a few batches
        for batch in batches:
            step(partials[0], batch)
        return
    with ThreadPoolExecutor(len(partials)) as pool:
        running: list[Future[None]] = []
        for number, batch in enumerate(batches):
            if len(running) == len(partials):
                running.pop(0).result()  # raises what was raised; its states are free again
            running.append(pool.submit(step, partials[number % len(partials)], batch))
        for last in running:
            last.result()


def _rows_of(batch: Any) -> ColumnOf:
    """The columns of a batch of pyarrow, of a frame of polars or pandas, or of a mapping."""
    for name in ("column", "get_column"):
        if hasattr(type(batch), name):
            rows: ColumnOf = getattr(batch, name)
            return rows
    columns: ColumnOf = batch.__getitem__
    return columns
