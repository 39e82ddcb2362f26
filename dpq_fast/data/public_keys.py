"""The public keys of groups, checked, and the place among them of each record's key."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import groups_scatter as kernel
from dpq_fast._kernels import strings
from dpq_fast.data.key_columns import (
    LAYOUTS,
    Column,
    columns_of,
    declared_kind,
    is_arrow,
    key_columns_of,
)
from dpq_fast.data.keys import (
    BOOLEANS,
    DATES,
    INTEGERS,
    KINDS,
    STRINGS,
    TIMED,
    Instant,
    as_array,
    comparable,
    items_of,
    kind_of,
    objects,
)
from dpq_fast.data.units import ticks_of

# Integer keys spread over at most this many times the groups (and this much) are looked up in a
# table, others by bisection.
TABLE_FACTOR, TABLE_FLOOR = 8, 2**16

# Types of keys that are there for sure.
PRESENT = frozenset({int, str, bool})

# Rows handled in one call; by several steps of NumPy.
BLOCK, SHORT_BLOCK = 2**20, 2**14

# Rows of one block.
Picked = slice | NDArray[np.intp]
KeysOf = Callable[[Picked], NDArray[np.integer]]
# A `map` over the numbers of blocks, which may be in several threads.
Map = Callable[[Callable[[int], Any], range], list[Any]]


class PublicKeys:
    """One column of public keys, checked: all of one kind.

    Attributes
    ----------
    keys : ndarray, shape (G,)
        As they are given back: int64 or uint64, bool, or objects.
    missing : ndarray of bool, shape (G,), or None
        Which of them stand for rows without a key; None where none of the call's does.
    kind : str or None
        That of all others. None where there are none, or `mixed` ones: those that were selected
        from a column that does not say.
    moments : ndarray of int64, shape (G,), or None
        Nanoseconds since 1970 of dates that came in a type of NumPy's.
    """

    def __init__(self, column: Any, mixed: bool = False) -> None:
        self.moments: NDArray[np.int64] | None = None
        self.missing: NDArray[np.bool_] | None = None
        if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
            self.kind: str | None = INTEGERS if column.size else None
            self.keys: NDArray[Any] = column.astype(
                np.uint64 if column.dtype.kind == "u" else np.int64
            )
            return
        items = items_of(column)
        if _is_of_dates(column) and items:
            self.moments = _moments(np.asarray(column))
        if self.moments is not None:
            self.kind, self.keys = DATES, objects(items)
            return
        types = set(map(type, items))
        if not types <= PRESENT:
            missing = np.array([comparable(item) is None for item in items], dtype=np.bool_)
            if missing.any():
                others = PublicKeys([items[at] for at in np.flatnonzero(~missing)])
                self.missing, self.kind = missing, others.kind
                self.keys = np.full(missing.size, None)
                self.keys[~missing] = objects(others.keys.tolist())
                return
        if any(issubclass(own, (float, np.floating)) for own in types):
            items = list(map(comparable, items))
            types = set(map(type, items))
        of_integers = all(
            issubclass(own, (int, np.integer))
            and not issubclass(own, (bool, np.bool_, np.timedelta64))
            for own in types
        )
        if of_integers and mixed and items and min(items) < 0 and max(items) >= 2**63:
            of_integers = False  # no type of 64 bits has them
        if not items or of_integers:
            self.kind = INTEGERS if items else None
            self.keys = _integers(items)
            return
        if types == {str}:  # which may be many
            kinds: set[str | None] = {STRINGS}
        else:
            kinds = {kind_of(comparable(item)) for item in items}
        self.kind = next(iter(kinds)) if len(kinds) == 1 else None
        if mixed and self.kind == INTEGERS:
            self.kind = None
        if self.kind is None and not mixed:
            raise TypeError(f"groups must hold {KINDS}, all of one kind")
        if self.kind == BOOLEANS:
            self.keys = np.array(items, dtype=np.bool_)
            return
        exact = self.kind != STRINGS or types == {str}
        self.keys = objects(items if exact else list(map(str, items)))

    def __len__(self) -> int:
        return self.keys.size

    def pick(self, places: NDArray[np.intp]) -> PublicKeys:
        """Some of the keys."""
        own = PublicKeys.__new__(PublicKeys)
        own.kind, own.keys = self.kind, self.keys[places]
        own.moments = None if self.moments is None else self.moments[places]
        own.missing = None if self.missing is None else self.missing[places]
        return own

    @property
    def are_distinct(self) -> bool:
        """Whether it is seen without a look at each that no key is there twice."""
        if self.moments is not None:
            return np.unique(self.moments).size == len(self)
        return self.kind not in (None, INTEGERS) and len(set(self.compared)) == len(self)

    @cached_property
    def compared(self) -> list[Any]:
        """The keys as they are compared."""
        if self.moments is not None:
            return [Instant(nanoseconds, DATES) for nanoseconds in self.moments.tolist()]
        keys = self.keys.tolist()
        return list(map(comparable, keys)) if self._may_be_dates else keys

    @property
    def _may_be_dates(self) -> bool:
        return self.kind in (None, *TIMED)

    @cached_property
    def _place(self) -> dict[Any, int]:
        return {key: place for place, key in enumerate(self.compared)}

    def check_kind(self, kind: str | None) -> None:
        """Refuse keys of another kind than what the type of a column, if any, says of its keys."""
        if kind is not None and self.kind is not None and kind != self.kind:
            raise TypeError(f"groups must be {kind} as the column by is, got {self.kind}")

    def lookup(self, column: Column, each: Map) -> Lookup:
        """How the place of a record's key is found."""
        if column.codes is None and self.kind != STRINGS and not is_arrow(column.items):
            column = column.encoded()
        if self.missing is not None:
            return self._lookup_with_missing(self.missing, column, each)
        codes, missing = column.codes, column.missing
        if column.items is not None:
            found = self._found(column.items, each)
            if codes is None:
                return Lookup(_picked(found), 0, None, len(self))
            return Lookup(_picked(codes), 0, found, found.size)
        assert codes is not None
        if column.kind is None and self.kind not in (None, INTEGERS, BOOLEANS):  # of floats
            return Lookup(_picked(codes), 0, np.empty(0, dtype=np.int32), 0)
        lookup = self._of_integers(codes, column.unit)
        if missing is None:
            return lookup
        places_of = lookup.places

        def of_present(rows: Picked) -> NDArray[np.int64]:
            places: NDArray[np.int64] = np.where(missing[rows], -1, places_of(rows))
            return places

        return Lookup(of_present, 0, None, len(self))

    @cached_property
    def _others(self) -> PublicKeys:
        """Those that stand for no rows without a key; each batch of rows looks keys up."""
        assert self.missing is not None
        return PublicKeys(self.keys[~self.missing].tolist())

    def _lookup_with_missing(self, missing: NDArray[np.bool_], column: Column, each: Map) -> Lookup:
        """The same, where rows without a key are a group, or another one than those here."""
        places_of = self._others.lookup(column, each).places
        others = np.append(np.flatnonzero(~missing), -1)  # for what is none of them
        place, gone = np.append(np.flatnonzero(missing), -1)[0], column.without_key

        def of_all(rows: Picked) -> NDArray[np.int64]:
            places: NDArray[np.int64] = np.where(gone[rows], place, others[places_of(rows)])
            return places

        return Lookup(of_all, 0, None, len(self))

    def _of_integers(self, codes: NDArray[Any], unit: int) -> Lookup:
        """For columns of integers, of booleans, and of dates in steps of `unit` nanoseconds."""
        keys, places = self.keys, np.arange(len(self))
        if self.moments is not None and unit < 2**63:
            steps_of, rests = np.divmod(self.moments, unit)
            (places,) = np.nonzero(rests == 0)  # others are no dates of the column
            keys = steps_of[places]
        elif self.kind in TIMED:
            steps = [divmod(key.nanoseconds, unit) for key in self.compared]
            fits = [
                (g, step) for g, (step, rest) in enumerate(steps) if rest == 0 and abs(step) < 2**63
            ]
            places, keys = np.array(fits, dtype=np.int64).reshape(-1, 2).T
        if keys.size == 0:
            return Lookup(_picked(codes), 0, np.empty(0, dtype=np.int32), 0)
        lowest, highest = int(keys.min()), int(keys.max())
        # as int64, an unsigned key of 2^63 or more is negative: then no group may be
        if highest >= 2**63 or (codes.dtype.kind == "u" and lowest < 0):
            return Lookup(_picked(self._by_dictionary(codes.tolist())), 0, None, len(self))
        if places.size == len(self) and (keys == lowest + places).all():
            return Lookup(_picked(codes), lowest, None, len(self))
        if highest - lowest < max(TABLE_FLOOR, TABLE_FACTOR * len(self)):
            table = np.full(highest - lowest + 1, -1, dtype=np.int32)
            table[keys.astype(np.int64) - lowest] = places
            return Lookup(_picked(codes), lowest, table, table.size)
        return Lookup(_bisected(_picked(codes), keys.astype(np.int64), places), 0, None, len(self))

    def _found(self, keys: Any, each: Map) -> NDArray[np.int32]:
        """Place of each key; -1 for what is none, whatever it is.

        Strings are looked up among the keys by their characters. No record makes that slower for
        another: what a search takes depends on the public keys.
        """
        if is_arrow(keys):
            return self._found_in_arrow(keys, each)
        if self.kind != STRINGS:
            return self._by_dictionary(items_of(keys))
        if isinstance(keys, np.ndarray) and keys.dtype.kind == "U":
            return self._found_in_array(keys, each)
        if not isinstance(keys, list):
            keys = np.ascontiguousarray(keys, dtype=object)
        found = np.empty(len(keys), dtype=np.int32)
        strings.Table(self.keys.tolist()).find_objects(keys, found)
        (others,) = np.nonzero(found == strings.OTHER)
        if others.size:
            found[others] = self._by_dictionary([keys[row] for row in others])
        return found

    def _found_in_arrow(self, column: Any, each: Map) -> NDArray[np.int32]:
        """That of strings of Arrow, a chunked array."""
        table = self._encoded("utf-8")
        found = np.empty(len(column), dtype=np.int32)
        parts, start = [], 0
        for chunk in column.chunks:
            for first in range(0, len(chunk), BLOCK):
                part = chunk.slice(first, BLOCK)
                parts.append((part, found[start : start + len(part)]))
                start += len(part)

        def find(number: int) -> None:
            part, places = parts[number]
            valid, entries, *data = part.buffers()
            table.find_arrow(
                LAYOUTS[str(part.type)],
                part.offset,
                None if valid is None else _bytes_of(valid),
                _bytes_of(entries),
                list(map(_bytes_of, data)),
                places,
            )

        each(find, range(len(parts)))
        return found

    def _found_in_array(self, column: NDArray[np.str_], each: Map) -> NDArray[np.int32]:
        """That of strings of NumPy, filled up with zeros."""
        table = self._encoded("utf-32-le" if sys.byteorder == "little" else "utf-32-be")
        found = np.empty(column.size, dtype=np.int32)
        width = column.dtype.itemsize // 4

        def find(block: int) -> None:
            rows = slice(block * BLOCK, (block + 1) * BLOCK)
            part = np.ascontiguousarray(column[rows], dtype=f"=U{width}")
            table.find_fixed(part.view(np.uint32).reshape(-1, width), found[rows])

        each(find, range(-(-column.size // BLOCK)))
        return found

    def _encoded(self, encoding: str) -> strings.Table:
        """The strings among the keys; with surrogates, of which no column can have any."""
        keys = self.keys.tolist()
        whole = "".join(keys) if self.kind == STRINGS else None
        if whole is not None and (encoding != "utf-8" or whole.isascii()):  # all at once
            width = 1 if encoding == "utf-8" else 4
            encoded = whole.encode(encoding, "surrogatepass")
            ends = (width * np.cumsum(list(map(len, keys)))).tolist()
            return strings.Table([encoded[start:end] for start, end in pairwise([0, *ends])])
        return strings.Table(
            [
                key.encode(encoding, "surrogatepass") if isinstance(key, str) else None
                for key in keys
            ]
        )

    def _by_dictionary(self, keys: Sequence[Any]) -> NDArray[np.int32]:
        place, dated = self._place, self._may_be_dates

        def place_of(key: Any) -> int:
            try:
                return place.get(comparable(key) if dated else key, -1)
            except Exception:  # not hashable or not comparable: not a key, and no reason to tell
                return -1

        return np.fromiter(map(place_of, keys), dtype=np.int32, count=len(keys))


class Lookup(NamedTuple):
    """The place of each row's key: an entry of a table, or the row's own number.

    Attributes
    ----------
    keys_of : callable
        Integers of some rows.
    lowest : int
        That of entry 0.
    table : ndarray of int32 or None
        Places, negative for none; None where entry g is place g.
    span : int
        Number of entries.
    """

    keys_of: KeysOf
    lowest: int
    table: NDArray[np.int32] | None
    span: int

    def places(self, rows: Picked) -> NDArray[np.int64]:
        """Places of some rows, -1 for none."""
        keys = self.keys_of(rows).astype(np.int64, copy=False)
        if self.span == 0:
            return np.full(keys.size, -1, dtype=np.int64)
        inside = (keys >= self.lowest) & (keys <= self.lowest + (self.span - 1))
        entries = np.where(inside, keys, self.lowest) - self.lowest
        if self.table is not None:
            entries = self.table[entries].astype(np.int64)
        return np.where(inside, entries, -1)


class Groups:
    """The public keys of groups, checked.

    Attributes
    ----------
    keys : ndarray, shape (G,)
        As they are given back; tuples, as objects, for keys of several columns.
    columns : list of PublicKeys
        One for each column of keys, of G entries.
    single : bool
        Whether keys are no tuples.
    """

    def __init__(self, groups: Any) -> None:
        columns = columns_of(groups)
        if columns is not None:
            groups = list(zip(*map(items_of, columns), strict=True))
        if isinstance(groups, (str, bytes, Mapping, Set)) or not hasattr(groups, "__iter__"):
            raise TypeError(f"groups must be a sequence of {KINDS}, got {type(groups).__name__}")
        if isinstance(groups, range):
            groups = np.arange(groups.start, groups.stop, groups.step)
        if isinstance(groups, np.ndarray) and groups.ndim != 1:
            raise ValueError(f"groups must be one-dimensional, got {groups.ndim} dimensions")
        if isinstance(groups, np.ma.MaskedArray):
            groups = items_of(groups)
        of_integers = isinstance(groups, np.ndarray) and groups.dtype.kind in "iu"
        if not (of_integers or _is_of_dates(groups)):
            groups = items_of(groups)
        self.single = not (
            isinstance(groups, list)
            and any(issubclass(own, tuple) for own in set(map(type, groups)) - {Instant})
        )
        if self.single:
            self.columns = [PublicKeys(groups)]
            self.keys = self.columns[0].keys
        else:
            widths = {len(key) if isinstance(key, tuple) else None for key in groups}
            if len(widths) > 1 or widths == {0}:
                raise ValueError("groups must be keys, or tuples of one length of keys")
            self.columns = [PublicKeys(list(column)) for column in zip(*groups, strict=True)]
            self.keys = objects(zip(*(own.keys.tolist() for own in self.columns), strict=True))
        self._check_distinct()

    @classmethod
    def kept(cls, keys: list[Any], width: int) -> Groups:
        """Those that were selected, of so many columns, whatever they are."""
        groups = cls([])
        groups.single = width == 1
        columns = [keys] if groups.single else [[key[j] for key in keys] for j in range(width)]
        groups.columns = [PublicKeys(column, mixed=True) for column in columns]
        groups.keys = as_array(keys)
        return groups

    def pick(self, places: NDArray[np.intp]) -> Groups:
        """Some of the groups."""
        own = Groups.__new__(Groups)
        own.single, own.keys = self.single, self.keys[places]
        own.columns = [column.pick(places) for column in self.columns]
        return own

    def _check_distinct(self) -> None:
        kind = self.columns[0].kind if self.single else "several"
        if self.single:
            are_distinct = self.columns[0].are_distinct
        else:
            are_distinct = len(set(self._compared())) == len(self)
        if are_distinct:
            return
        if kind in (None, INTEGERS, STRINGS) and self.columns[0].missing is None:
            keys = np.sort(self.keys)
            (twice,) = np.nonzero(keys[1:] == keys[:-1])
            again = [keys[place] for place in twice[:1]]
        else:
            seen: set[Any] = set()
            again = []
            for key, compared in zip(self.keys.tolist(), self._compared(), strict=True):
                if compared in seen:
                    again.append(key)
                seen.add(compared)
        if again:
            raise ValueError(f"groups must be distinct, got {again[0]!s} twice")

    def _compared(self) -> Iterator[tuple[Any, ...]]:
        return zip(*(column.compared for column in self.columns), strict=True)

    def __len__(self) -> int:
        return self.keys.size

    def check_form(self, by: Any) -> list[Any]:
        """The columns of keys, refused for what they declare alone; reads no record."""
        columns = self._split(by)
        for own, column in zip(self.columns, columns, strict=True):
            own.check_kind(declared_kind(column))
        return columns

    def _split(self, by: Any) -> list[Any]:
        columns = key_columns_of(by)
        if columns is None:
            several = not self.single and isinstance(by, (list, tuple))
            columns = list(by) if several else [by]
        self.check_width(len(columns))
        return columns

    def check_width(self, columns: int) -> None:
        """Refuse keys of more or fewer parts than `by` has columns."""
        if columns != len(self.columns) and len(self):
            raise ValueError(
                f"groups must be {'tuples of ' if columns > 1 else ''}as many keys as by has "
                f"columns, got {len(self.columns)} and {columns}"
            )
        if columns != len(self.columns):
            self.columns = [PublicKeys([]) for _ in range(columns)]

    def lookup(self, by: list[Any], size: int, each: Map) -> tuple[kernel.Keys, KeysOf]:
        """How to find the group of each of `size` rows: a table, and its entries for some rows."""
        found = self._lookup(by, size, each)
        return kernel.Keys(len(self), found.lowest, found.table), found.keys_of

    def places(self, by: Any, size: int) -> NDArray[np.int64]:
        """The group of each of `size` rows, -1 for none."""
        found = self._lookup(self._split(by), size, lambda find, blocks: list(map(find, blocks)))
        return found.places(slice(None))

    def _lookup(self, by: list[Any], size: int, each: Map) -> Lookup:
        columns = [Column.of(column) for column in by]
        if any(len(column) != size for column in columns):
            raise ValueError("by must have one key for each row of x")
        for own, column in zip(self.columns, columns, strict=True):
            own.check_kind(column.kind)
        if len(columns) == 1:
            return self.columns[0].lookup(columns[0], each)
        return self._combined(columns, each)

    def _combined(self, columns: list[Column], each: Map) -> Lookup:
        """Column by column: the place of a key among the distinct beginnings of those of groups."""
        groups = np.zeros(len(self), dtype=np.int64)
        places_of: KeysOf | None = None
        for own, column in zip(self.columns, columns, strict=True):
            distinct, codes = _distinct(own)
            place_of = distinct.lookup(column, each).places
            if places_of is None:
                groups, places_of = codes, place_of
                continue
            pairs, groups = np.unique(groups * len(distinct) + codes, return_inverse=True)
            places_of = _paired(places_of, place_of, len(distinct), pairs)
        assert places_of is not None
        found = _in_blocks(places_of, len(columns[0]), each)
        table = np.empty(len(self), dtype=np.int32)
        table[groups] = np.arange(len(self))
        return Lookup(_picked(found), 0, table, table.size)


def _in_blocks(places_of: KeysOf, size: int, each: Map) -> NDArray[np.int32]:
    """The places of all rows, by blocks that stay in the cache."""
    found = np.empty(size, dtype=np.int32)

    def find(block: int) -> None:
        rows = slice(block * SHORT_BLOCK, (block + 1) * SHORT_BLOCK)
        found[rows] = places_of(rows)

    each(find, range(-(-size // SHORT_BLOCK)))
    return found


def _distinct(column: PublicKeys) -> tuple[PublicKeys, NDArray[np.int64]]:
    """The distinct keys of a column, and which of them each key is."""
    if column.kind in (INTEGERS, BOOLEANS) and column.missing is None:
        keys, inverse = np.unique(column.keys, return_inverse=True)
        return PublicKeys(keys), inverse.astype(np.int64)
    place: dict[Any, int] = {}
    codes = [place.setdefault(key, len(place)) for key in column.compared]
    first = np.full(len(place), -1)
    for g in range(len(codes) - 1, -1, -1):
        first[codes[g]] = g
    return PublicKeys(column.keys[first]), np.array(codes, dtype=np.int64)


def _paired(first: KeysOf, second: KeysOf, number: int, pairs: NDArray[np.int64]) -> KeysOf:
    """The place among `pairs`, ascending numbers first * `number` + second; -1 for none."""
    span = int(pairs[-1]) + 1 if pairs.size else 0
    table = None
    if span <= max(TABLE_FLOOR, TABLE_FACTOR * pairs.size):
        table = np.full(span, -1, dtype=np.int64)
        table[pairs] = np.arange(pairs.size)

    def places_of(rows: Picked) -> NDArray[np.int64]:
        one, other = first(rows), second(rows)
        pair = np.where((one < 0) | (other < 0), -1, one * number + other)
        if table is None:
            return _nearest(pairs, pair, np.arange(pairs.size))
        found = np.where(pair < span, pair, -1)
        return np.where(found < 0, -1, table[found]) if span else np.full(pair.size, -1)

    return places_of


def _bisected(keys_of: KeysOf, keys: NDArray[np.int64], places: NDArray[np.int64]) -> KeysOf:
    order = np.argsort(keys)
    ordered, of_ordered = keys[order], places[order]
    return lambda rows: _nearest(ordered, keys_of(rows), of_ordered)


def _nearest(
    ordered: NDArray[np.int64], keys: NDArray[np.integer], places: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The place of each key among some in ascending order; -1 for none."""
    nearest = np.minimum(np.searchsorted(ordered, keys), ordered.size - 1)
    found: NDArray[np.int64] = np.where(ordered[nearest] == keys, places[nearest], -1)
    return found


def _picked(codes: NDArray[Any]) -> KeysOf:
    """Those of some rows, as the kernels take them: of any type but that of what int64 has not."""
    narrow = codes.dtype.isnative and codes.dtype != np.uint64
    dtype = codes.dtype if narrow else np.dtype(np.int64)
    return lambda rows: np.ascontiguousarray(codes[rows], dtype=dtype)


def _is_of_dates(column: Any) -> bool:
    """Whether it has a type of NumPy's for dates: an array, or a column or an index of pandas."""
    declared = getattr(column, "dtype", None)
    return isinstance(declared, np.dtype) and declared.kind == "M"


def _moments(column: NDArray[np.datetime64]) -> NDArray[np.int64] | None:
    """Nanoseconds since 1970; None where some are missing, or int64 does not hold them."""
    found = ticks_of(column)
    if found is None or np.isnat(column).any():
        return None
    ticks, each = found
    if max(-int(ticks.min()), int(ticks.max())) * each >= 2**63:
        return None
    moments: NDArray[np.int64] = ticks * each
    return moments


def _bytes_of(buffer: Any) -> NDArray[np.uint8]:
    """Those of a buffer of Arrow, where there is one."""
    return np.frombuffer(b"" if buffer is None else buffer, dtype=np.uint8)


def _integers(items: list[Any]) -> NDArray[Any]:
    if not items:
        return np.empty(0, dtype=np.int64)
    low, high = min(items), max(items)
    if low < -(2**63) or high >= (2**63 if low < 0 else 2**64):
        raise ValueError("groups must be integers of 64 bits")
    return np.array(items, dtype=np.uint64 if high >= 2**63 else np.int64)
