"""Several releases at once, whose passes over tables are made together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

from dpq_fast._arguments import in_our_words

# Who answers the table of the release that runs: None where it has its passes to itself.
_release: ContextVar[_Release | None] = ContextVar("_release", default=None)


@in_our_words
def together(*releases: Callable[[], Any]) -> tuple[Any, ...]:
    """Make several releases whose passes over tables are shared.

    Parameters
    ----------
    *releases : callable
        Functions of no arguments, such as ``lambda: median(table["pay"], epsilon=1.0, ...)``. They
        take turns in their order, one at a time, up to the next pass that they need, so that one
        generator may serve them all.

    Returns
    -------
    tuple
        What each of them returns.

    Raises
    ------
    Exception
        What the first of those that failed has raised, once all others have ended. What was charged
        stays charged.

    Notes
    -----
    **Privacy.** That of the releases, one after the other: their laws are those that they have
    alone. Each charges its own `accountant`.

    **Cost.** As many rounds over a `Table` as the longest of them takes: two for any number of
    quantiles, counts and means. Each release has a thread of its own.

    Examples
    --------
    >>> from dpq_fast import count, median
    >>> middle, number = together(
    ...     lambda: median([1, 2, 3], epsilon=1e3, bounds=(0, 10), resolution=1, rng=0),
    ...     lambda: count([1, 2, 3], epsilon=1e3, rng=0),
    ... )
    >>> middle, number
    (2.0, 3)
    """
    for each in releases:
        if not callable(each):
            raise TypeError(f"releases must be functions of no arguments, got {each!r}")
    turns = [_Release(each) for each in releases]
    try:
        while waiting := [turn for turn in turns if not turn.is_over]:
            for turn in waiting:
                turn.go_on()
            _answer([turn for turn in waiting if not turn.is_over])
    finally:  # an interrupt
        for turn in turns:
            turn.stop()
    for turn in turns:
        if turn.failure is not None:
            raise turn.failure
    return tuple(turn.result for turn in turns)


def _answer(asking: list[_Release]) -> None:
    """One round: what releases ask for, by one pass over each table."""
    for table in {id(turn.table): turn.table for turn in asking}.values():
        own = [turn for turn in asking if turn.table is table]
        try:
            answers = ask(table, [task for turn in own for task in turn.tasks])
        except BaseException as error:
            for turn in own:
                turn.error = error
            continue
        for turn in own:
            turn.answers, answers = answers[: len(turn.tasks)], answers[len(turn.tasks) :]


def ask(table: Any, tasks: list[Any]) -> list[Any]:
    """The answers of a table: by a pass of its own, or by one that other releases take part in."""
    release = _release.get()
    return table.answer(tasks) if release is None else release.ask(table, tasks)


class _Release:
    """One of the releases: it runs only between `go_on` and the next pass that it asks for."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.is_over = False
        self.result: Any = None
        self.failure: BaseException | None = None
        self.table: Any = None
        self.tasks: list[Any] = []
        self.answers: list[Any] = []
        self.error: BaseException | None = None
        self._stopped = False
        self._function = function
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        context = copy_context()
        threading.Thread(target=lambda: context.run(self._run), daemon=True).start()

    def _run(self) -> None:
        _release.set(self)
        self._turn.acquire()
        try:
            if not self._stopped:
                self.result = self._function()
        except BaseException as error:
            self.failure = error
        finally:
            self.is_over = True
            self._back.release()

    def go_on(self) -> None:
        """Let it run until it asks for a pass or is over."""
        self._turn.release()
        self._back.acquire()

    def stop(self) -> None:
        """Let it end at once, wherever it waits; nobody waits for it any more."""
        self._stopped = True
        self._turn.release()

    def ask(self, table: Any, tasks: list[Any]) -> list[Any]:
        """Wait for a pass; called by the release itself."""
        self.table, self.tasks, self.error = table, tasks, None
        self._back.release()
        self._turn.acquire()
        if self._stopped:
            raise KeyboardInterrupt
        if self.error is not None:
            raise self.error
        answers, self.answers = self.answers, []  # which may be large: its caller's alone
        return answers
