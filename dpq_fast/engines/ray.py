"""Tables of Ray: its data sets."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from dpq_fast.data.tasks import Declaring, Task
from dpq_fast.engines.partials import Sealed, partial_of, states_of


def opened(source: Any, connection: Any, workers: int, progress: bool) -> DataSet | None:
    """The engine of a source, if it is one of those above."""
    if connection is not None or not hasattr(type(source), "iter_batches"):
        return None
    return DataSet(source, progress)


class DataSet(Declaring):
    """An engine of a data set: a partial of each of its blocks.

    Workers need dpq_fast, of the same version.

    Parameters
    ----------
    source : ray.data.Dataset
    progress : bool
    """

    def __init__(self, source: Any, progress: bool) -> None:
        with _shown(source, progress):  # may ask for a first row
            self.names: list[str] = source.columns() or []
            schema = source.schema()
        self._types = {} if schema is None else dict(zip(schema.names, schema.types, strict=True))
        self._source = source
        self._progress = progress

    def declared(self, name: str) -> Any:
        """Of Arrow, as blocks are; objects of Ray's own say nothing."""
        import pyarrow as pa

        declared = self._types.get(name)
        return pa.chunked_array([], declared) if isinstance(declared, pa.DataType) else None

    def answer(self, tasks: Sequence[Task[Any]]) -> list[Any]:
        """As `Engine.answer`."""
        names = list(dict.fromkeys(name for task in tasks for name in task.columns))
        sealed = Sealed.of(list(tasks))

        def count(block: Any) -> Any:  # logs show its name
            return partial_of(sealed, [block.column]).as_row()

        blocks = self._source.select_columns(names).map_batches(
            count, batch_size=None, batch_format="pyarrow"
        )
        with contextlib.closing(self._partials(blocks)) as partials:
            return states_of(tasks, partials)

    def _partials(self, blocks: Any) -> Generator[Sealed, None, None]:
        """The partials as they come."""
        with _shown(blocks, self._progress):
            found = iter(blocks.iter_batches(batch_size=None, batch_format="pyarrow"))
            with contextlib.closing(found):  # after an error, too: Ray ends what runs
                for batch in found:
                    yield from map(Sealed, batch.column("partial").to_pylist())


@contextlib.contextmanager
def _shown(source: Any, progress: bool) -> Iterator[None]:
    """Whether Ray shows its bars meanwhile, of a data set and of those that are made of it."""
    context = source.context
    before, context.enable_progress_bars = context.enable_progress_bars, progress
    try:
        yield
    finally:
        context.enable_progress_bars = before
