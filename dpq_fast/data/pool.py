"""Threads that share work, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class Pool:
    """``map`` over so many threads, or over none but the caller's."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[..., Any], *items: Iterable[Any]) -> list[Any]:
        """Results in the order of `items`."""
        return list((map if self._pool is None else self._pool.map)(function, *items))
