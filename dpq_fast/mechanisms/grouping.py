"""What releases by group share: their rows put together by group, where they lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._kernels import groups_scatter as kernel
from dpq_fast._kernels import sums as kernel_sums
from dpq_fast.data.columns import AnyUnit, as_column, as_float64, check_declared
from dpq_fast.data.key_columns import names_of
from dpq_fast.data.key_counts import KeyTotals, coded_rows, split_columns, totals_of
from dpq_fast.data.persons import (
    Atoms,
    Persons,
    counted,
    in_order,
    named,
    weights_of,
)
from dpq_fast.data.pool import Pool
from dpq_fast.data.public_keys import BLOCK, Groups, KeysOf, Picked
from dpq_fast.data.queries import Sums
from dpq_fast.data.rounds import together
from dpq_fast.data.table_persons import TablePersons
from dpq_fast.data.tables import (
    GroupedColumn,
    TableColumns,
    TablePasses,
    of_one_table,
    refuse_counts,
)
from dpq_fast.data.tables import count_keys as keys_of_table
from dpq_fast.data.units import untimed
from dpq_fast.laws.key_selection import KeysLaw
from dpq_fast.noise.rng import child, seeds_of

# Of tables: groups of up to `FEW_RECORDS` are brought here whole, `HELD_RECORDS` at a time; of
# larger groups `LARGE_GROUPS` share their passes. More take more memory, fewer take more passes.
FEW_RECORDS, HELD_RECORDS, LARGE_GROUPS = 2**16, 2**21, 2**7

# What counts records.
NUMBERS = Sums(1.0, 0, 0)


class GroupedRows(NamedTuple):
    """Rows of one chunk of groups, or of all chunks one after the other.

    Attributes
    ----------
    values : ndarray of float64
    members : ndarray of uint16
        Number of each row's group within its chunk.
    weights : ndarray of float64, or None
        How many records each row stands for, positive and exact; None for 1 each.
    atoms : bool
        Whether these are weights of persons' records.
    """

    values: NDArray[np.float64]
    members: NDArray[np.uint16]
    weights: NDArray[np.float64] | None
    atoms: bool = False

    def pick(self, rows: Any) -> GroupedRows:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return GroupedRows(self.values[rows], self.members[rows], weights, self.atoms)

    def weighted(self, weights: NDArray[np.float64]) -> Any:
        """Weights of some of them in the place of `counts`."""
        return Atoms(weights) if self.atoms else weights

    def of_chunk(self, number: int, ends: NDArray[np.int64]) -> GroupedRows:
        """Those of one chunk, of all chunks that end where `by_chunk` says."""
        return self.pick(slice(int(ends[number - 1]) if number else 0, int(ends[number])))


def by_chunk(
    column: NDArray[Any],
    counts: NDArray[np.int64] | None,
    keys: kernel.Keys,
    keys_of: KeysOf,
    nan_policy: str,
    pool: Pool,
    atoms: bool = False,
) -> tuple[GroupedRows, NDArray[np.int64]]:
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
    return GroupedRows(values, members, weights, atoms), last


# Groups one by one

# The records of one group, without missing ones: values, and how many records each stands for, or
# its weight; or passes over them.
Records = tuple[Any, Any]
# Arrays with an entry for each group.
Answers = tuple[NDArray[Any], ...]


class Gathered(NamedTuple):
    """The rows of some groups, put together by chunk.

    Attributes
    ----------
    rows : GroupedRows
    ends : ndarray of int64
        Where those of each chunk end.
    keys : Keys
    pool : Pool
    numbers : sequence of int
        The number of each group among those of the call.
    """

    rows: GroupedRows
    ends: NDArray[np.int64]
    keys: kernel.Keys
    pool: Pool
    numbers: Sequence[int] | NDArray[np.intp]

    def sums(self, query: Sums) -> tuple[NDArray[Any], NDArray[Any]]:
        """Exact sum of each group's records as integers, and their number; see `Records.sums`.

        int64 where records stand for themselves, else integers of Python.
        """
        weighted = self.rows.weights is not None
        dtype = object if weighted else np.int64
        totals, numbers = np.zeros((2, self.keys.groups), dtype=dtype)

        def chunk(number: int) -> None:
            at = number * self.keys.chunk
            own = slice(at, at + self.keys.chunk)
            rows, size = self.rows.of_chunk(number, self.ends), totals[own].size
            if weighted:
                for g, (values, weights) in enumerate(records_of(rows, size)):
                    own_weights = weights_of(weights, values)
                    totals[at + g], numbers[at + g] = kernel_sums.weighted(
                        values, own_weights, query.scale, query.first, query.last
                    )
                return
            start, values = kernel.order(rows.values, rows.members, size)
            totals[own] = query.of_groups(values[: start[-1]], start)
            numbers[own] = np.diff(start)

        self.pool.map(chunk, range(self.keys.chunks))
        return totals, numbers

    def released(
        self,
        of_several: Callable[[Gathered, np.random.Generator], Answers],
        of_one: Callable[[int, TablePasses, np.random.Generator], Answers],
        rng: np.random.Generator,
    ) -> Answers:
        """The answers of all groups: as in `TableGroups`."""
        return of_several(self, rng)


def records_of(rows: GroupedRows, groups: int) -> list[Records]:
    """The records of each group of one chunk, without missing ones."""
    if rows.weights is not None and np.isnan(rows.values).any():
        rows = rows.pick(~np.isnan(rows.values))
    start, values = kernel.order(rows.values, rows.members, groups)
    weights = None
    if rows.weights is not None:
        _, weights = kernel.order(rows.weights, rows.members, groups)
    return [
        (values[first:last], None if weights is None else rows.weighted(weights[first:last]))
        for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
    ]


def one_by_one(
    answer: Callable[[int, Records, np.random.Generator], Any],
    groups: Gathered | TableGroups,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """What is answered for each group, in their order, given its number and its records."""

    def of_several(gathered: Gathered, rng: np.random.Generator) -> Answers:
        return (np.array(each_group(answer, gathered, rng), dtype=np.float64),)

    def of_one(number: int, passes: TablePasses, rng: np.random.Generator) -> Answers:
        return (np.array([answer(number, (passes, None), rng)], dtype=np.float64),)

    return groups.released(of_several, of_one, rng)[0]


def each_group(
    answer: Callable[[int, Records, np.random.Generator], Any],
    gathered: Gathered,
    rng: np.random.Generator,
) -> list[Any]:
    """What is answered for each group; a generator for each chunk."""
    keys, numbers = gathered.keys, gathered.numbers
    seeds = seeds_of(rng, keys.chunks)

    def chunk(number: int) -> list[Any]:
        first = number * keys.chunk
        groups = min(keys.chunk, keys.groups - first)
        own = child(seeds, number)
        rows = gathered.rows.of_chunk(number, gathered.ends)
        return [
            answer(int(numbers[first + g]), records, own)
            for g, records in enumerate(records_of(rows, groups))
        ]

    return [one for part in gathered.pool.map(chunk, range(keys.chunks)) for one in part]


# Columns of records and of keys


class HeldRows:
    """Rows in memory.

    Parameters
    ----------
    x, by, counts, nan_policy
        As in `quantile_by`; what is public about them is checked.
    threads : int
    by_size : bool
        Whether persons share their weight by the size of their records, for sums.

    Attributes
    ----------
    names : tuple
        What the columns of keys are called, if they are those of a frame.
    """

    def __init__(
        self,
        x: Any,
        by: Any,
        counts: Any,
        nan_policy: str,
        threads: int,
        by_size: bool = False,
    ) -> None:
        _checks.check_choice("nan_policy", nan_policy, ("omit", "raise"))
        _checks.check_column(untimed(x))
        check_declared(x)
        self._x, self._by, self._counts = x, by, counts
        self._nan_policy, self._threads, self._by_size = nan_policy, threads, by_size

    @property
    def names(self) -> tuple[Any, ...]:
        """What the columns of keys are called."""
        return tuple(names_of(self._by))

    def check_keys(self, groups: Groups | None) -> None:
        """Refuse columns of keys for what they declare, and rows that do not belong together."""
        columns = split_columns(self._by) if groups is None else groups.check_form(self._by)
        others = [*_checks.named_keys(columns), *named(self._counts)]
        together = _checks.aligned(untimed(self._x), others)
        self._columns = together[: len(columns)]
        self._counts = in_order(self._counts, together[len(columns) :])

    def read(
        self,
        groups: Groups | None,
        selection: privacy.key_selection.Calibration | None,
        answer: Callable[[Gathered, np.random.Generator], Answers],
        rng: np.random.Generator,
    ) -> tuple[Groups, Answers]:
        """The groups, which are selected where they were not listed, and their answers."""
        column = as_column(self._x)
        ranks = partial(self._ranks, groups, column.size)
        column, weights = counted(self._counts, column, self._nan_policy, self._by_size, ranks)
        if groups is None:
            assert selection is not None
            found = totals_of(self._columns, weights).ordered()
            groups = Groups.kept(KeysLaw(*found, selection).sample(rng), len(self._columns))
        with Pool(self._threads) as pool:
            keys, keys_of = groups.lookup(self._columns, column.size, pool.map)
            atoms = isinstance(self._counts, Persons)
            rows, ends = by_chunk(column, weights, keys, keys_of, self._nan_policy, pool, atoms)
            return groups, answer(Gathered(rows, ends, keys, pool, range(len(groups))), rng)

    def _ranks(self, groups: Groups | None, size: int) -> NDArray[Any]:
        """The place of each row's group, or of its key in the order of keys; -1 for none."""
        if groups is not None:
            keys = self._columns[0] if len(self._columns) == 1 else self._columns
            return groups.places(keys, size)
        found, places, booleans = coded_rows(self._columns)
        numbers = {key: 1 + number for number, key in enumerate(found)}
        return KeyTotals(numbers, booleans).ordered().ranks(places)


class TableRows:
    """Rows of a table: as `HeldRows`, read by rounds of queries.

    Parameters
    ----------
    x, by : TableColumns
    unit : Unit, Presence or None
        What the records are read as.
    counts, nan_policy, threads
        As of `HeldRows`.
    """

    def __init__(
        self,
        x: TableColumns,
        by: TableColumns,
        unit: AnyUnit,
        counts: Any,
        nan_policy: str,
        threads: int,
    ) -> None:
        _checks.check_choice("nan_policy", nan_policy, ("omit", "raise"))
        refuse_counts(counts)
        self.names = by.columns
        self._x, self._by, self._unit = x, by, unit
        self._nan_policy, self._threads = nan_policy, threads

    def check_keys(self, groups: Groups | None) -> None:
        """As of `HeldRows`."""
        self._by.table.check_keys(self._by.columns, groups)

    def read(
        self,
        groups: Groups | None,
        selection: privacy.key_selection.Calibration | None,
        answer: Callable[[TableGroups, np.random.Generator], Answers],
        rng: np.random.Generator,
    ) -> tuple[Groups, Answers]:
        """As of `HeldRows`."""
        sizes = None
        if groups is None:
            assert selection is not None
            found = keys_of_table(self._by)
            kept = KeysLaw(*found, selection).sample(rng)
            groups = Groups.kept(kept, len(self._by.columns))
            if self._nan_policy == "omit":  # else the missing ones are looked for in any case
                number = dict(zip(found.keys, found.counts.tolist(), strict=True))
                sizes = np.array([number[key] for key in kept], dtype=np.int64)
        column = GroupedColumn(self._x, self._by, self._unit, groups)
        read = TableGroups(column, len(groups), sizes, self._nan_policy, self._threads)
        return groups, answer(read, rng)


class PersonRows(TableRows):
    """Rows of a table whose persons' ids are there: as `TableRows`, but read by one pass.

    Parameters
    ----------
    x, by, unit, nan_policy, threads, by_size
        As of `TableRows` and `HeldRows`.
    persons : TablePersons
    """

    def __init__(
        self,
        x: TableColumns,
        by: TableColumns,
        unit: AnyUnit,
        persons: TablePersons,
        nan_policy: str,
        threads: int,
        by_size: bool,
    ) -> None:
        super().__init__(x, by, unit, None, nan_policy, threads)
        self._persons, self._by_size = persons, by_size

    def read(
        self,
        groups: Groups | None,
        selection: privacy.key_selection.Calibration | None,
        answer: Callable[[Any, np.random.Generator], Answers],
        rng: np.random.Generator,
    ) -> tuple[Groups, Answers]:
        """As of `HeldRows`."""
        (name,) = self._x.columns
        found = self._persons.rows(name, self._unit, self._by.columns, groups)
        column, weights = found.weighed(self._nan_policy, self._by_size)
        places = found.places
        if groups is None:
            assert selection is not None
            kept = KeysLaw(*found.counted(weights), selection).sample(rng)
            groups, places = Groups.kept(kept, len(self._by.columns)), found.among(kept)
        weights[places < 0] = 0
        del found  # there is no room for all of it twice
        with Pool(self._threads) as pool:
            keys = kernel.Keys(len(groups), 0, None)
            rows, ends = by_chunk(
                column,
                weights,
                keys,
                lambda picked: places[picked].astype(np.int64),
                self._nan_policy,
                pool,
                atoms=True,
            )
            del column, weights
            return groups, answer(Gathered(rows, ends, keys, pool, range(len(groups))), rng)


class TableGroups(NamedTuple):
    """The records of groups in a table.

    Attributes
    ----------
    column : GroupedColumn
    groups : int
        How many groups there are.
    sizes : ndarray of int64, or None
        About how many records each has, if that is known.
    nan_policy : str
    threads : int
    """

    column: GroupedColumn
    groups: int
    sizes: NDArray[np.int64] | None
    nan_policy: str
    threads: int

    def sums(self, query: Sums) -> tuple[NDArray[Any], NDArray[Any]]:
        """As `Gathered.sums`, by one pass."""
        return self.column.sums(query, self.nan_policy)

    def released(
        self,
        of_several: Callable[[Gathered, np.random.Generator], Answers],
        of_one: Callable[[int, TablePasses, np.random.Generator], Answers],
        rng: np.random.Generator,
    ) -> Answers:
        """The answers of all groups.

        Parameters
        ----------
        of_several : callable
            Answers groups whose rows are here.
        of_one : callable
            Answers one group, given its number and passes over its records: arrays of one entry.
        rng : Generator

        Returns
        -------
        tuple of ndarray

        Notes
        -----
        How many records a group has is private, and decides nothing but how they are read: those
        of the smaller groups are brought here, some groups at a time, and the larger ones share
        passes.
        """
        sizes = self.sizes
        if sizes is None:
            _, sizes = self.sums(NUMBERS)
        few = np.flatnonzero(sizes <= FEW_RECORDS)
        large = np.flatnonzero(sizes > FEW_RECORDS)
        slices = np.split(few, 1 + np.flatnonzero(np.diff(np.cumsum(sizes[few]) // HELD_RECORDS)))
        crowds = [large[at : at + LARGE_GROUPS] for at in range(0, large.size, LARGE_GROUPS)]

        def here(numbers: NDArray[np.intp]) -> Answers:
            values, members = self.column.collect(numbers)
            keys = kernel.Keys(numbers.size, 0, None)
            with Pool(self.threads) as pool:
                rows, ends = by_chunk(
                    values,
                    None,
                    keys,
                    lambda picked: members[picked].astype(np.int64),
                    "omit",
                    pool,
                )
                del values
                return of_several(Gathered(rows, ends, keys, pool, numbers), rng)

        releases: list[Callable[[], Answers]]
        found: list[Answers] = []
        numbers: list[NDArray[np.intp]] = []
        for several, crowd in zip_longest(slices, crowds, fillvalue=few[:0]):
            releases = [partial(here, several)] if several.size or not sizes.size else []
            releases += [
                partial(of_one, number, self.column.passes(number), rng)
                for number in crowd.tolist()
            ]
            found += together(*releases)
            numbers += [several, crowd]
        order = np.argsort(np.concatenate(numbers))
        return tuple(np.concatenate(parts)[order] for parts in zip(*found, strict=True))


def rows_of(
    x: Any, by: Any, counts: Any, nan_policy: str, threads: int, by_size: bool = False
) -> HeldRows | TableRows:
    """A column of records and those of their keys, in memory or in a table; not read."""
    inside = of_one_table(x, by)
    if inside is None:
        return HeldRows(x, by, counts, nan_policy, threads, by_size)
    if isinstance(counts, TablePersons):
        return PersonRows(*inside, counts, nan_policy, threads, by_size)
    return TableRows(*inside, counts, nan_policy, threads)
