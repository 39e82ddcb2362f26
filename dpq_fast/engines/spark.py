"""Tables of Spark: its data frames."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dpq_fast import _checks
from dpq_fast.data.columns import AnyUnit, refuse
from dpq_fast.data.keys import KINDS
from dpq_fast.data.persons import KINDS as IDS
from dpq_fast.data.tasks import Declaring, Task
from dpq_fast.engines.partials import Sealed, merged, partial_of, states_of

# Partials that the driver gets: those of all partitions are merged by this number of workers, since
# thousands would not fit. For a few that takes no longer than to send them all.
MERGED = 2
# Seconds between two looks at how far they are.
LOOK = 0.2


def opened(source: Any, connection: Any, workers: int, progress: bool) -> Frame | None:
    """The engine of a source, if it is one of those above."""
    if connection is not None or not hasattr(type(source), "mapInArrow"):
        return None
    return Frame(source, progress)


class Frame(Declaring):
    """An engine of a data frame: a partial of each of its partitions.

    Workers need dpq_fast, of the same version.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    progress : bool
    """

    def __init__(self, frame: Any, progress: bool) -> None:
        self.names: list[str] = frame.columns
        self._frame = frame
        self._bar = _checks.extra("tqdm", "progress=True", "progress").tqdm if progress else None

    def check_records(self, name: str, unit: AnyUnit) -> None:
        if self.declared(name) is None:
            refuse(f"type {self._type(name)}", unit)
        super().check_records(name, unit)

    def kind(self, name: str) -> str | None:
        if self.declared(name) is None:
            raise TypeError(f"by must hold {KINDS}, got type {self._type(name)}")
        return super().kind(name)

    def check_ids(self, name: str) -> None:
        if self.declared(name) is None:
            raise TypeError(f"privacy_unit must hold {IDS}, got type {self._type(name)}")
        super().check_ids(name)

    def _type(self, name: str) -> str:
        """What Spark calls the type of a column."""
        declared: str = self._frame.schema[name].dataType.simpleString()
        return declared

    def declared(self, name: str) -> Any:
        """Of Arrow, as workers get it; None of what they do not get."""
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_type
        from pyspark.sql.types import TimestampType

        declared = self._frame.schema[name].dataType
        if isinstance(declared, TimestampType):  # for which some versions ask for a zone
            return pa.chunked_array([], pa.timestamp("us", "UTC"))
        try:
            return pa.chunked_array([], to_arrow_type(declared))
        except Exception:  # of Spark's own
            return None

    def answer(self, tasks: Sequence[Task[Any]]) -> list[Any]:
        """As `Engine.answer`."""
        names = list(dict.fromkeys(name for task in tasks for name in task.columns))
        sealed = Sealed.of(list(tasks))

        # Plans show the names of these functions, and of their columns.
        def count(batches: Iterable[Any]) -> Iterator[Any]:
            parts = (lambda name, batch=batch: batch.column(names.index(name)) for batch in batches)
            yield from partial_of(sealed, parts).as_row().to_batches()

        def merge(batches: Iterable[Any]) -> Iterator[Any]:
            yield from merged(sealed, _sealed(batches)).as_row().to_batches()

        quoted = [f"`{name.replace('`', '``')}`" for name in names]
        columns = [self._frame[name].alias(f"c{i}") for i, name in enumerate(quoted)]
        partials = self._frame.select(columns).mapInArrow(count, "partial binary")
        partials = partials.repartition(MERGED).mapInArrow(merge, "partial binary")
        return states_of(tasks, _sealed(self._collected(partials).to_batches()))

    def _collected(self, partials: Any) -> Any:
        """The partials as a table; an error or an interrupt ends what else runs of them."""
        session = partials.sparkSession
        tag = f"dpq_fast-{secrets.token_hex(8)}"
        session.addTag(tag)
        try:
            with self._progress(session):
                return partials.toArrow()
        except BaseException as error:
            session.interruptTag(tag)
            if _is_interrupt(error):
                raise KeyboardInterrupt from None
            raise
        finally:
            session.removeTag(tag)

    @contextlib.contextmanager
    def _progress(self, session: Any) -> Iterator[None]:
        """The tasks of the stages that run, as Spark's own bar counts them."""
        if self._bar is None:
            yield
            return
        tracker, over = session.sparkContext.statusTracker(), threading.Event()
        with self._bar(desc="pass", unit=" tasks") as bar:

            def watch() -> None:
                while not over.wait(LOOK):
                    found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                    stages = [stage for stage in found if stage is not None]
                    bar.total = sum(stage.numTasks for stage in stages)
                    bar.n = sum(stage.numCompletedTasks for stage in stages)
                    bar.refresh()

            watcher = threading.Thread(target=watch, daemon=True)
            watcher.start()
            try:
                yield
            finally:
                over.set()
                watcher.join()


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether it is one, or what Spark made of it: a job that was cancelled."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _sealed(batches: Iterable[Any]) -> Iterator[Sealed]:
    return (Sealed(data) for batch in batches for data in batch.column(0).to_pylist())
