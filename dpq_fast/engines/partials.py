"""States that travel: what a worker of a cluster makes of some rows, and of what others made.

Tasks and states are private: tasks hold ranges that follow the records. They travel in objects
whose text shows nothing, since clusters write arguments into logs, plans and messages. So do errors
of a worker: the cluster would wrap them, log them, and try again.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dpq_fast.data.tasks import ColumnOf, Task


class Sealed:
    """An object as bytes, whose text shows nothing of it.

    Attributes
    ----------
    data : bytes
        Compressed: most counts are zero, or small.
    """

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    @classmethod
    def of(cls, content: Any) -> Sealed:
        """Any object that can be pickled."""
        return cls(zlib.compress(pickle.dumps(content, protocol=5), 1))

    def open(self) -> Any:
        """The object: another copy at every call, which may be changed."""
        return pickle.loads(zlib.decompress(self.data))

    def as_row(self) -> Any:
        """A table of Arrow of one row, the column `partial`."""
        import pyarrow as pa

        return pa.table({"partial": pa.array([self.data], pa.binary())})

    def __repr__(self) -> str:
        return "Sealed()"


def partial_of(tasks: Sealed, parts: Iterable[ColumnOf]) -> Sealed:
    """The states of some tasks for some rows, or the error that there was; on a worker."""
    asked: list[Task[Any]] = tasks.open()
    states = [task.start() for task in asked]

    def step(rows: ColumnOf) -> None:
        for task, state in zip(asked, states, strict=True):
            task.step(state, rows)

    failure = None
    for rows in parts:  # what fails here is the cluster's own affair
        if failure is None:  # else only read: Spark ends a worker that leaves rows behind
            failure = _failure(step, rows)
    return Sealed.of(states) if failure is None else failure


def merged(tasks: Sealed, partials: Iterable[Sealed]) -> Sealed:
    """The partial of what several are of, or the first error of theirs; on a worker."""
    found: list[Any] = []
    failure = _failure(lambda: found.extend(states_of(tasks.open(), partials)))
    return Sealed.of(found) if failure is None else failure


def states_of(tasks: Sequence[Task[Any]], partials: Iterable[Sealed]) -> list[Any]:
    """The states that partials add up to; an error in one of them is raised."""
    states = [task.start() for task in tasks]
    for partial in partials:
        others = partial.open()
        if isinstance(others, Exception):
            raise others
        states = [task.combine(*pair) for task, *pair in zip(tasks, states, others, strict=True)]
    return states


def _failure(function: Callable[..., None], *arguments: Any) -> Sealed | None:
    """Call a function: the error that it raises, which is raised here if it cannot travel."""
    try:
        function(*arguments)
    except Exception as error:
        try:
            sealed = Sealed.of(error)
            sealed.open()
        except Exception:
            raise error from None
        return sealed
    return None
