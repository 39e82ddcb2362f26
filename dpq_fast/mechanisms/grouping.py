"""What releases by group share: their answers, their rows put together by group, their threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from randomgen import ChaCha

from dpq_fast import _checks, privacy
from dpq_fast._kernels import groups as kernel
from dpq_fast.data.columns import as_float64
from dpq_fast.data.keys import (
    Groups,
    KeysOf,
    Picked,
    comparable,
    count_keys,
    split_columns,
)
from dpq_fast.laws.key_selection import KeysLaw
from dpq_fast.mechanisms.estimate import Estimate
from dpq_fast.noise.rng import default_rng

# Rows of the column handled in one call.
BLOCK = 2**20


class GroupAnswers:
    """Answers by group, in the order of `groups`; a mapping from key to answer."""

    groups: NDArray[Any]
    values: NDArray[Any]
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None
    confidence: float | None
    covers: str | None
    names: tuple[Any, ...]

    def __len__(self) -> int:
        """Number of groups."""
        return len(self.groups)

    def __iter__(self) -> Iterator[Any]:
        """Over the keys."""
        return iter(self.groups.tolist())

    def __contains__(self, key: Any) -> bool:
        return comparable(key) in self._place

    def __getitem__(self, key: Any) -> Any:
        """The answer of one group: a number where one was asked for, else an array."""
        place = self._place[comparable(key)]
        if self.low is None or self.high is None:
            return _plain(self.values[place])
        value, low, high = (_plain(each[place]) for each in (self.values, self.low, self.high))
        assert self.confidence is not None and self.covers is not None
        return Estimate(value, low, high, self.confidence, self.covers)

    @cached_property
    def _place(self) -> dict[Any, int]:
        return {comparable(key): place for place, key in enumerate(self.groups.tolist())}

    def _index(self) -> tuple[Any, Any]:
        """Pandas, and an index of the keys."""
        pandas = _checks.extra("pandas", "to_pandas", "pandas")
        keys = self.groups.tolist()
        if not (keys and isinstance(keys[0], tuple)):
            return pandas, pandas.Index(self.groups, name=self.names[0] if self.names else "group")
        return pandas, pandas.MultiIndex.from_tuples(keys, names=self.names or None)


def _plain(answer: Any) -> Any:
    """A number of Python for one answer; a time stays of its type."""
    one = np.ndim(answer) == 0 and getattr(answer, "dtype", np.dtype(object)).kind in "iuf"
    return answer.item() if one else answer


# Threads


class Pool:
    """``map`` over so many threads, or over none but the caller's."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[[int], Any], items: range) -> list[Any]:
        """Results in the order of `items`."""
        return list((map if self._pool is None else self._pool.map)(function, items))


# Rows


class Rows(NamedTuple):
    """Rows of one chunk of groups, or of all chunks one after the other.

    Attributes
    ----------
    values : ndarray of float64
    members : ndarray of uint16
        Number of each row's group within its chunk.
    weights : ndarray of float64, or None
        How many records each row stands for, positive and exact; None for 1 each.
    """

    values: NDArray[np.float64]
    members: NDArray[np.uint16]
    weights: NDArray[np.float64] | None

    def pick(self, rows: Any) -> Rows:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Rows(self.values[rows], self.members[rows], weights)

    def of_chunk(self, number: int, ends: NDArray[np.int64]) -> Rows:
        """Those of one chunk, of all chunks that end where `by_chunk` says."""
        return self.pick(slice(int(ends[number - 1]) if number else 0, int(ends[number])))


def by_chunk(
    column: NDArray[Any],
    counts: NDArray[np.int64] | None,
    keys: kernel.Keys,
    keys_of: KeysOf,
    nan_policy: str,
    pool: Pool,
) -> tuple[Rows, NDArray[np.int64]]:
    """Rows put together by chunk, and where each chunk's end; rows of count 0 are left out.

    One pass to count, one to scatter, over blocks of rows that are fixed by the column.
    """
    blocks = range(-(-column.size // BLOCK))

    def rows(block: int) -> Picked:
        start, stop = block * BLOCK, (block + 1) * BLOCK
        return slice(start, stop) if counts is None else start + np.flatnonzero(counts[start:stop])

    sizes = pool.map(lambda block: keys.count(keys_of(rows(block))), blocks)
    # ends[chunk, block]: where the block's rows of the chunk end
    table = np.array(sizes, dtype=np.int64).reshape(len(blocks), keys.chunks).T
    ends = np.cumsum(table, dtype=np.int64).reshape(table.shape)
    total = int(ends[-1, -1]) if ends.size else 0
    # Zeros: should the keys change under our hands, there is nothing wild in what is left out.
    values, members = np.zeros(total), np.zeros(total, dtype=np.uint16)
    weights = None if counts is None else np.zeros(total)

    def scatter(block: int) -> int:
        picked = rows(block)
        key = keys_of(picked)

        def put(entries: NDArray[np.float64], grouped: NDArray[np.float64]) -> int:
            place, end = ends[:, block] - table[:, block], ends[:, block].copy()
            return keys.scatter(key, entries, place, end, grouped, members)

        if counts is not None and weights is not None:
            put(counts[picked].astype(np.float64), weights)
        return put(as_float64(column[picked]), values)

    missing = pool.map(scatter, blocks)
    if nan_policy == "raise" and any(missing):
        raise ValueError("x must not contain NaN with nan_policy='raise'")
    last = ends[:, -1] if blocks else np.zeros(keys.chunks, dtype=np.int64)
    return Rows(values, members, weights), last


def child(seeds: bytes | None, number: int) -> np.random.Generator:
    """The generator of one chunk: the thread's own, or one keyed from the caller's.

    Differs from ``Generator.spawn``, which does not look at the key of a ChaCha generator that
    the caller brings: its children come from the operating system, in 128 bits.
    """
    if seeds is None:
        return default_rng()
    key = int.from_bytes(seeds[32 * number : 32 * (number + 1)], "little")
    return np.random.Generator(ChaCha(key=key, rounds=20))


# Groups that nobody listed


def selected(
    by: Any, counts: Any, calibration: privacy.key_selection.Calibration, rng: Any
) -> Groups:
    """The groups whose keys are kept; reads the keys, and draws."""
    kept = KeysLaw(*count_keys(by, counts), calibration).sample(rng)
    return Groups.kept(kept, len(split_columns(by)))


# Groups one by one

# The records of one group, without missing ones: values, and how many records each stands for.
Records = tuple[NDArray[np.float64], NDArray[np.float64] | None]


def records_of(rows: Rows, groups: int) -> list[Records]:
    """The records of each group of one chunk, without missing ones."""
    if rows.weights is not None:
        rows = rows.pick(~np.isnan(rows.values))
    start, values = kernel.order(rows.values, rows.members, groups)
    weights = None
    if rows.weights is not None:
        _, weights = kernel.order(rows.weights, rows.members, groups)
    return [
        (values[first:last], None if weights is None else weights[first:last])
        for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
    ]


def each_group(
    answer: Callable[[int, Records, np.random.Generator], Any],
    rows: Rows,
    ends: NDArray[np.int64],
    keys: kernel.Keys,
    rng: np.random.Generator | None,
    pool: Pool,
) -> list[Any]:
    """What is answered for each group, in their order; a generator for each chunk."""
    seeds = None if rng is None else rng.bytes(32 * keys.chunks)

    def chunk(number: int) -> list[Any]:
        first = number * kernel.CHUNK
        groups = min(kernel.CHUNK, keys.groups - first)
        own = child(seeds, number)
        return [
            answer(first + g, records, own)
            for g, records in enumerate(records_of(rows.of_chunk(number, ends), groups))
        ]

    return [one for part in pool.map(chunk, range(keys.chunks)) for one in part]
