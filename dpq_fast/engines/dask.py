"""Tables of Dask: data frames, their columns, and one-dimensional arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpq_fast.data.tasks import Declaring, Task
from dpq_fast.engines.partials import Sealed, merged, partial_of, states_of

# Partials that are merged at once, on a worker.
MERGED = 8


def opened(source: Any, connection: Any, workers: int, progress: bool) -> Parts | None:
    """The engine of a source, if it is one of those above."""
    kind = ".".join(type(source).__module__.split(".")[:2])
    if connection is not None or not hasattr(type(source), "to_delayed"):
        return None
    if kind == "dask.array":
        if source.ndim != 1:
            raise ValueError(f"source must be one-dimensional, got {source.ndim} dimensions")
        return Parts(
            ["x"],
            lambda names: source.to_delayed().tolist(),
            _of_array,
            progress,
            lambda name: source._meta,
        )
    if kind != "dask.dataframe":
        return None
    if source.ndim == 1:
        source = source.to_frame(name=source.name if isinstance(source.name, str) else "x")
    return Parts(
        list(source.columns),
        lambda names: source[names].to_delayed(),
        _of_frame,
        progress,
        lambda name: source._meta[name],
    )


def _of_array(tasks: Sealed, values: Any) -> Sealed:
    return partial_of(tasks, [lambda name: values])


def _of_frame(tasks: Sealed, frame: Any) -> Sealed:
    return partial_of(tasks, [frame.__getitem__])


class Parts(Declaring):
    """An engine of parts that Dask computes, by the scheduler that is set.

    Workers need dpq_fast, of the same version.

    Parameters
    ----------
    names : sequence of str
    parts : callable
        Gives some columns as a list of delayed parts.
    partial : callable
        What a worker makes of tasks and a part.
    progress : bool
    empty : callable
        Gives a column without a row.
    """

    def __init__(
        self,
        names: Sequence[str],
        parts: Callable[[list[str]], Sequence[Any]],
        partial: Callable[[Sealed, Any], Sealed],
        progress: bool,
        empty: Callable[[str], Any],
    ) -> None:
        self._empty = empty
        self.names = names
        self._parts = parts
        self._partial = partial
        self._progress = progress

    def declared(self, name: str) -> Any:
        return self._empty(name)

    def answer(self, tasks: Sequence[Task[Any]]) -> list[Any]:
        """As `Engine.answer`: the partials are merged as a tree."""
        from dask import delayed

        names = list(dict.fromkeys(name for task in tasks for name in task.columns))
        sealed = delayed(Sealed.of(list(tasks)), pure=False)  # sent once, under a random name
        step, merge = delayed(self._partial, pure=False), delayed(merged, pure=False)
        partials = [step(sealed, part) for part in self._parts(names)]
        while len(partials) > 1:
            partials = [
                merge(sealed, partials[first : first + MERGED])
                for first in range(0, len(partials), MERGED)
            ]
        return states_of(tasks, [_computed(partials[0], self._progress)])


def _computed(found: Any, progress: bool) -> Any:
    """What is delayed, with Dask's bar or that of a client."""
    if not progress:
        return found.compute()
    from dask.base import get_scheduler

    client = getattr(get_scheduler(collections=[found]), "__self__", None)
    if client is None:
        from dask.diagnostics import ProgressBar

        with ProgressBar():
            return found.compute()
    from distributed import progress as show

    future = client.compute(found)
    try:
        show(future, notebook=False)
        return future.result()
    finally:
        future.release()
