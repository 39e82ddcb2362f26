"""Keys of groups: the public ones, those of the records, and which of the former each of these is.

A key is an integer, a string, a boolean, a date, a time of day, or a period or an interval of
pandas, or a tuple of such where there are several columns; a float that is whole is an integer.
What a column declares may be refused. What it holds may not: a record whose key is of another type,
or none of the public ones, is in no group, and neither is one whose key is missing, unless None is
a public key.
"""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._kernels import groups as kernel
from dpq_fast._kernels import strings
from dpq_fast.data.columns import check_counts, is_missing
from dpq_fast.data.units import ANSWERED, EPOCH, INSTANTS, LARGEST, TICKS, Time, ticks_of

# Integer keys spread over at most this many times the groups (and this much) are looked up in a
# table, others by bisection.
TABLE_FACTOR, TABLE_FLOOR = 8, 2**16

INTEGERS, STRINGS, BOOLEANS, DATES = "integers", "strings", "booleans", "dates"
ZONED, CLOCKS, PERIODS, INTERVALS = "dates with a zone", "times of day", "periods", "intervals"
KINDS = "integers, strings, booleans, dates, times of day, periods or intervals"
# Kinds whose keys are compared as instants.
TIMED = (DATES, ZONED, CLOCKS)
# Types of pandas, by their names: it need not be there.
OF_PANDAS = {"Period": PERIODS, "Interval": INTERVALS}

# Types of keys that are there for sure.
PRESENT = frozenset({int, str, bool})
# The integer that NumPy has for no time.
NO_TIME = np.iinfo(np.int64).min
# What is no key, and not missing either, as it is compared.
NO_KEY = object()

_EPOCH_OF_ZONES = EPOCH.replace(tzinfo=datetime.timezone.utc)

# Rows handled in one call; by several steps of NumPy.
BLOCK, SHORT_BLOCK = 2**20, 2**14

# Rows of one block.
Picked = slice | NDArray[np.intp]
KeysOf = Callable[[Picked], NDArray[np.integer]]
# A `map` over the numbers of blocks, which may be in several threads.
Map = Callable[[Callable[[int], Any], range], list[Any]]

# By the names of their types.
LAYOUTS = {
    "string": strings.INT32,
    "large_string": strings.INT64,
    "string_view": strings.VIEWS,
}


class Instant(NamedTuple):
    """A date or a time of day as it is compared: that of a day is its first moment.

    Attributes
    ----------
    nanoseconds : int
        Since 1970, or since midnight.
    kind : str
        One of `TIMED`: dates in a time zone are the same everywhere.
    """

    nanoseconds: int
    kind: str


def comparable(key: Any) -> Any:
    """A key as it is compared, whatever library it comes from; None for one that is missing."""
    if isinstance(key, tuple):
        return key if isinstance(key, Instant) else tuple(map(comparable, key))
    of_arrow = hasattr(key, "as_py")
    if of_arrow and str(key.type).startswith(("time32", "time64")):  # which Python may not have
        return Instant(key.value * TICKS[key.type.unit], CLOCKS) if key.is_valid else None
    if isinstance(key, datetime.time):
        since = datetime.datetime.combine(EPOCH, key.replace(tzinfo=None)) - EPOCH
        within = since // datetime.timedelta(microseconds=1) * 1_000
        return Instant(within, CLOCKS) if key.tzinfo is None else NO_KEY
    if of_arrow or isinstance(key, (datetime.date, np.datetime64)):
        time = Time.of(key)  # None for one that is missing
        if time is not None and time.kind == INSTANTS:
            return Instant(time.nanoseconds, DATES if time.zone is None else ZONED)
        if of_arrow and time is None:
            key = key.as_py()
        elif not is_missing(key):  # a length, or of a unit that has none
            return NO_KEY
    if isinstance(key, (float, np.floating)) and math.isfinite(key) and key == int(key):
        return int(key)  # floats come from rows without a key
    return None if is_missing(key) else key


def date_of(moment: Instant) -> Any:
    """A date for a moment: a day, a time, or where it is none of Python's, NumPy's.

    One with a zone, or of a day, that Python does not have is a moment still.
    """
    days, within = divmod(moment.nanoseconds, TICKS["D"])
    zoned = moment.kind == ZONED
    if moment.kind == CLOCKS:
        if days or within % 1_000:
            return moment
        return (EPOCH + datetime.timedelta(microseconds=within // 1_000)).time()
    try:
        if within == 0 and not zoned:
            return EPOCH.date() + datetime.timedelta(days=days)
        if within % 1_000 == 0:
            start = _EPOCH_OF_ZONES if zoned else EPOCH
            return start + datetime.timedelta(days=days, microseconds=within // 1_000)
    except OverflowError:
        pass
    if zoned:
        return moment
    for unit in (*ANSWERED, "h", "m", "W"):
        ticks, rest = divmod(moment.nanoseconds, TICKS[unit])
        if rest == 0 and abs(ticks) <= LARGEST:
            return np.array(ticks, dtype=f"M8[{unit}]")[()]
    return moment


def kind_of(key: Any) -> str | None:
    """What a key is, as it is compared."""
    if isinstance(key, Instant):
        return key.kind
    if isinstance(key, (bool, np.bool_)):
        return BOOLEANS
    if isinstance(key, (int, np.integer)) and not isinstance(key, np.timedelta64):
        return INTEGERS
    return STRINGS if isinstance(key, str) else _kind_of_pandas(type(key))


def _kind_of_pandas(declared: type) -> str | None:
    """What the keys of a type are, if it is one of pandas that they may have."""
    known = declared.__module__.partition(".")[0] == "pandas"
    return OF_PANDAS.get(declared.__name__) if known else None


# Public keys


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
        items = _listed(column)
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
        if column.codes is None and self.kind != STRINGS and not _is_arrow(column.items):
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
        if _is_arrow(keys):
            return self._found_in_arrow(keys, each)
        if self.kind != STRINGS:
            return self._by_dictionary(_listed(keys))
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
            groups = list(zip(*map(_listed, columns), strict=True))
        if isinstance(groups, (str, bytes, Mapping, Set)) or not hasattr(groups, "__iter__"):
            raise TypeError(f"groups must be a sequence of {KINDS}, got {type(groups).__name__}")
        if isinstance(groups, range):
            groups = np.arange(groups.start, groups.stop, groups.step)
        if isinstance(groups, np.ndarray) and groups.ndim != 1:
            raise ValueError(f"groups must be one-dimensional, got {groups.ndim} dimensions")
        if isinstance(groups, np.ma.MaskedArray):
            groups = _listed(groups)
        of_integers = isinstance(groups, np.ndarray) and groups.dtype.kind in "iu"
        if not (of_integers or _is_of_dates(groups)):
            groups = _listed(groups)
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
        columns = _key_columns_of(by)
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


def _listed(column: Any) -> list[Any]:
    """The items of a column or sequence as Python objects."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":  # else integers, of some units
        return list(column)
    for name in ("to_pylist", "to_list", "tolist"):  # pyarrow, polars and pandas, NumPy
        if hasattr(column, name):
            items: list[Any] = getattr(column, name)()
            return items
    return list(column)


def objects(items: Iterable[Any]) -> NDArray[Any]:
    """An array of them as they are, even if they are tuples."""
    listed = list(items)
    made = np.empty(len(listed), dtype=object)
    made[:] = listed
    return made


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


def _is_arrow(keys: Any) -> bool:
    """Whether these are strings of Arrow, in chunks."""
    return hasattr(keys, "chunks")


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


# Columns


def columns_of(frame: Any) -> list[Any] | None:
    """The columns of a frame or of an index of several levels; None for anything else."""
    kind = type(frame)  # pandas has attributes for the labels of a frame, too
    if hasattr(kind, "iloc") and hasattr(kind, "columns"):  # pandas
        return [frame.iloc[:, j] for j in range(frame.shape[1])]
    if hasattr(kind, "get_columns"):  # polars
        return list(frame.get_columns())
    if hasattr(kind, "get_level_values") and frame.nlevels > 1:
        return [frame.get_level_values(j) for j in range(frame.nlevels)]
    if hasattr(kind, "column_names"):  # pyarrow
        return list(frame.columns)
    return None


def _key_columns_of(by: Any) -> list[Any] | None:
    """As `columns_of`, of a frame that has some."""
    columns = columns_of(by)
    if columns == []:
        raise ValueError("by must have at least one column, got a frame of none")
    return columns


def names_of(by: Any) -> list[Any]:
    """What the columns of keys are called, if they are those of a frame; public, as their types."""
    if columns_of(by) is None:
        return []
    return list(by.names if hasattr(type(by), "get_level_values") else _checks.names_of(by))


class Column(NamedTuple):
    """The keys of the rows in one column, checked for their form.

    Attributes
    ----------
    codes : ndarray of integers, or None
        Keys, or codes where there are `items`.
    items : list, ndarray, pandas.Series, pyarrow.ChunkedArray or None
        The keys that codes 0, 1, ... stand for, where -1 is missing; without codes, the keys.
        Those of NumPy and of pandas are objects or strings, those of Arrow strings.
    missing : ndarray of bool, or None
        Where codes stand for nothing.
    kind : str or None
        What the column's type says of its keys.
    unit : int
        Nanoseconds of one step of dates.
    others : ndarray of bool, or None
        Where a key is not missing, but codes stand for nothing, since it is none.
    """

    codes: NDArray[Any] | None
    items: Any
    missing: NDArray[np.bool_] | None
    kind: str | None
    unit: int = 1
    others: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.items if self.codes is None else self.codes)

    @property
    def without_key(self) -> NDArray[np.bool_]:
        """Which rows have no key: their key is missing, not of another type."""
        if self.items is None:
            assert self.codes is not None
            gone = np.zeros(len(self), dtype=np.bool_) if self.missing is None else self.missing
            if self.kind in TIMED:
                gone = gone | (self.codes == NO_TIME)
            return gone if self.others is None else gone & ~self.others
        if _is_arrow(self.items):
            gone = self.items.is_null().to_numpy()
        else:
            gone = np.array(list(map(_is_gone, _listed(self.items))), dtype=np.bool_)
        return gone if self.codes is None else np.append(gone, True)[self.codes]

    def encoded(self) -> Column:
        """The same with codes, where pandas or Arrow makes them."""
        if self.codes is not None:
            return self
        if _is_arrow(self.items):
            return _of_strings(self.items, self.kind)
        if hasattr(self.items, "factorize"):
            import pandas

            try:
                codes, items = pandas.factorize(self.items)
            except Exception:  # of what is not hashable: no keys, and no reason to tell
                return Column(None, _listed(self.items), None, self.kind)
            return Column(codes, _listed(items), None, self.kind)
        return self

    @classmethod
    def of(cls, by: Any) -> Column:
        """Check one column of keys: its type and dimension, nothing else."""
        kind = declared_kind(by)
        categorical = getattr(by, "cat", by)  # pandas: a Series, or the Categorical itself
        if hasattr(categorical, "codes") and hasattr(categorical, "categories"):
            # Of any type: pandas takes the categories, and their type, from the keys that occur.
            return cls(np.asarray(categorical.codes), _listed(categorical.categories), None, None)
        if not (hasattr(by, "__array__") or hasattr(by, "dtype") or hasattr(by, "type")):
            return cls(None, by if isinstance(by, list) else list(by), None, None)
        declared = _declared(by)
        if _are_floats(getattr(declared, "pyarrow_dtype", declared)):
            return _of_floats(by)
        if hasattr(declared, "pyarrow_dtype"):  # of pandas
            import pyarrow

            return _of_arrow(pyarrow.array(getattr(by, "array", by)), kind)
        if hasattr(by, "to_pylist"):
            return _of_arrow(by, kind)
        if hasattr(by, "to_physical"):
            return _of_polars(by, kind)
        if hasattr(by, "isna"):
            return _of_pandas(by, kind)
        by = np.asanyarray(by)
        return _of_numpy(by, declared_kind(by))


def _is_gone(item: Any) -> bool:
    try:
        return comparable(item) is None
    except Exception:  # no key, but something, and no reason to tell
        return False


def declared_kind(by: Any) -> str | None:
    """Check what a column of keys declares; the kind of its keys, None if it does not say.

    Reads no record. The declared type decides: what NumPy makes of other columns than its own
    depends on their nulls.
    """
    if isinstance(by, (str, bytes, Mapping, Set)) or not hasattr(by, "__iter__"):
        raise TypeError(f"by must be a column of {KINDS}, got {type(by).__name__}")
    declared = _declared(by)
    if declared is None or hasattr(getattr(by, "cat", by), "codes"):
        return None
    if getattr(by, "ndim", 1) != 1:
        raise ValueError(f"by must be one-dimensional, got {by.ndim} dimensions")
    arrow = getattr(declared, "pyarrow_dtype", declared)  # pandas
    while hasattr(arrow, "value_type") and str(arrow).startswith("dictionary<"):
        arrow = arrow.value_type
    letters = {"i": INTEGERS, "u": INTEGERS, "b": BOOLEANS, "U": STRINGS, "T": STRINGS, "M": DATES}
    kind: str | None
    if _are_floats(arrow):
        kind = ""  # integers with a missing one, or nothing but missing ones of any type
    elif isinstance(arrow, np.dtype):
        kind = "" if arrow.kind == "O" else letters.get(arrow.kind)
        if kind == DATES and np.datetime_data(arrow)[0] not in ("Y", "M", *TICKS):
            kind = None
    elif getattr(arrow, "kind", None) is not None:  # pandas
        kind = STRINGS if arrow.type is str else letters.get(arrow.kind)
        kind = _kind_of_pandas(arrow.type) or kind
        kind = "" if arrow.type is np.object_ else kind
    else:
        kind = _kind_by_name(_name_of(arrow).lower())
    if kind is None:
        raise TypeError(f"by must hold {KINDS}, got dtype {declared}")
    if kind == DATES and _zone(arrow) is not None:
        return ZONED
    return kind or None  # objects: what is no key is ignored


def _are_floats(declared: Any) -> bool:
    """Whether a type is one of floats, whatever library it is of."""
    kind = getattr(declared, "kind", None)
    if kind is not None:  # of NumPy and pandas
        return bool(kind == "f")
    return _name_of(declared).lower().startswith(("float", "double", "halffloat"))


def _name_of(declared: Any) -> str:
    """That of a type; of polars' without its parameters, which may be many categories."""
    return declared.base_type().__name__ if hasattr(declared, "base_type") else str(declared)


def _kind_by_name(name: str) -> str | None:
    """That of a type of polars ("UInt8") or of pyarrow ("uint8"); empty if it does not say."""
    if name in ("null", "object"):
        return ""
    for kind, starts in (
        (INTEGERS, ("int", "uint")),
        (STRINGS, ("string", "large_string", "categorical", "enum")),
        (BOOLEANS, ("bool",)),
        (DATES, ("date", "timestamp")),
        (CLOCKS, ("time",)),
    ):
        if name.startswith(starts):
            return kind
    return None


def _zone(declared: Any) -> Any:
    """The time zone of a type of dates: of pandas and pyarrow, or of polars."""
    return getattr(declared, "tz", None) or getattr(declared, "time_zone", None)


def _declared(by: Any) -> Any:
    """The type that a column declares, if any."""
    return getattr(by, "dtype", getattr(by, "type", None))


def _of_numpy(by: NDArray[Any], kind: str | None) -> Column:
    missing = None
    if kind in (None, STRINGS):
        as_it_is = type(by) is np.ndarray and by.dtype.kind in "OU" and by.dtype.itemsize > 0
        return Column(None, by if as_it_is else by.tolist(), None, kind)
    if isinstance(by, np.ma.MaskedArray):
        missing, by = np.ma.getmaskarray(by), np.ma.getdata(by)
    return _of_numbers(by, missing, kind)


def _of_numbers(by: NDArray[Any], missing: Any, kind: str | None) -> Column:
    """For integers, booleans and dates of NumPy."""
    unit = 1
    if by.dtype.kind == "M":
        found = ticks_of(by)
        if found is None:
            return Column(None, list(by), None, kind)
        by, unit = found
    elif by.dtype.kind == "b":
        by = by.view(np.uint8)
    return Column(by, None, missing, kind, unit)


def _of_floats(by: Any) -> Column:
    """For floats of any library: whole numbers are keys, missing and other ones are none."""
    missing = None
    if isinstance(by, np.ma.MaskedArray):
        missing, by = np.ma.getmaskarray(by), np.ma.getdata(by)
    if hasattr(by, "isna") and not isinstance(by.dtype, np.dtype):  # of pandas
        values = by.to_numpy(dtype=np.float64, na_value=np.nan)
    elif hasattr(by, "to_pylist"):  # of pyarrow
        values = np.asarray(by.to_numpy(zero_copy_only=False) if hasattr(by, "buffers") else by)
    else:
        values = np.asarray(by)
    with np.errstate(all="ignore"):  # NumPy would warn of a signaling NaN
        whole = (values == np.rint(values)) & (values >= -(2.0**63)) & (values < 2.0**64)
    others = ~whole & ~np.isnan(values)
    if missing is not None:
        whole, others = whole & ~missing, others & ~missing
    if (values[whole] >= 2.0**63).any():
        values = np.where(others, 0.5, np.where(whole, values, np.nan))
        return Column(None, list(map(comparable, values)), None, None)
    codes = np.where(whole, values, 0.0).astype(np.int64)
    return Column(codes, None, ~whole, None, others=others)


def _of_pandas(by: Any, kind: str | None) -> Column:
    if kind == STRINGS and getattr(by.dtype, "storage", None) == "pyarrow":
        import pyarrow

        return _of_arrow(pyarrow.array(getattr(by, "array", by)), kind)
    if kind in (None, STRINGS, PERIODS, INTERVALS):
        return Column(None, by, None, kind)
    if isinstance(by.dtype, np.dtype):
        return _of_numbers(np.asarray(by), None, kind)
    if kind == ZONED:
        values = by.to_numpy(dtype=f"datetime64[{by.dtype.unit}]")
        return _of_numbers(values, None, kind)
    values = by.to_numpy(dtype=by.dtype.numpy_dtype, na_value=0)
    return _of_numbers(values, np.asarray(by.isna()), kind)


def _of_polars(by: Any, kind: str | None) -> Column:
    import polars

    if kind == STRINGS:
        if isinstance(by.dtype, polars.Categorical):
            return _of_categories(by, kind)
        try:
            import pyarrow
        except ImportError:
            return Column(None, by.to_list(), None, kind)
        views = hasattr(pyarrow, "string_view") and hasattr(by, "__arrow_c_stream__")
        if by.dtype == polars.String and views:  # without a copy
            return _of_arrow(pyarrow.chunked_array(by), kind)
        return _of_arrow(by.to_arrow(), kind)
    if kind is None or "128" in _name_of(by.dtype):
        return Column(None, by.to_list(), None, kind)
    unit = 1
    if kind in TIMED:
        unit = 1 if kind == CLOCKS else TICKS[getattr(by.dtype, "time_unit", "D")]
        by = by.to_physical()
    missing = by.is_null().to_numpy() if by.null_count() else None
    if kind == BOOLEANS:
        by = by.cast(polars.Int64)
    return Column(by.fill_null(0).to_numpy(), None, missing, kind, unit)


def _of_categories(by: Any, kind: str | None) -> Column:
    """Of categories of polars: each that occurs is read once, from a row that has it."""
    import polars

    codes = by.to_physical()
    if codes.null_count():
        codes = codes.cast(polars.Int64).fill_null(-1)
    codes = codes.to_numpy()
    highest = int(codes.max()) if codes.size else -1
    row = np.zeros(highest + 2, dtype=np.int64)  # the last is for missing ones
    row[codes] = np.arange(codes.size)
    categories = by.gather(row[:-1]).cast(polars.String)
    return Column(codes, _of_polars(categories, kind).items, None, kind)


def _of_arrow(by: Any, kind: str | None) -> Column:
    import pyarrow

    types = pyarrow.types
    if kind == STRINGS and not types.is_dictionary(by.type):
        chunks = by if isinstance(by, pyarrow.ChunkedArray) else pyarrow.chunked_array([by])
        return Column(None, chunks, None, kind)
    by = _in_one_chunk(by)
    if types.is_dictionary(by.type):
        return _of_encoded(by, kind)
    if kind is None:
        return Column(None, by.to_pylist(), None, kind)
    unit = 1
    if kind == BOOLEANS:
        by = by.cast(pyarrow.uint8())
    elif kind in TIMED:
        unit = TICKS["D" if types.is_date32(by.type) else getattr(by.type, "unit", "ms")]
        by = by.cast(pyarrow.int32() if by.type.bit_width == 32 else pyarrow.int64())
    missing = by.is_null().to_numpy(zero_copy_only=False) if by.null_count else None
    values = by.fill_null(0).to_numpy(zero_copy_only=False)
    return Column(values, None, missing, kind, unit)


def _in_one_chunk(by: Any) -> Any:
    import pyarrow

    if isinstance(by, pyarrow.ChunkedArray):
        by = by.unify_dictionaries() if pyarrow.types.is_dictionary(by.type) else by
        by = by.combine_chunks()
        if isinstance(by, pyarrow.ChunkedArray):  # of no chunks
            by = pyarrow.array([], by.type)
    return by


def _of_strings(by: Any, kind: str | None) -> Column:
    """Of strings of Arrow, with codes."""
    import pyarrow

    if pyarrow.types.is_string_view(by.type):
        by = by.cast(pyarrow.large_string())
    return _of_encoded(_in_one_chunk(by.dictionary_encode()), kind)


def _of_encoded(by: Any, kind: str | None) -> Column:
    """Of a dictionary of Arrow."""
    import pyarrow

    codes, items = by.indices, by.dictionary
    if codes.null_count:
        codes = codes.cast(pyarrow.int64()).fill_null(-1)
    if str(items.type) in LAYOUTS:
        items = pyarrow.chunked_array([items])
    else:
        items = list(items) if kind in TIMED else items.to_pylist()  # Python has not all times
    return Column(codes.to_numpy(zero_copy_only=False), items, None, kind)


# Selection


class KeyCounts(NamedTuple):
    """How many records each key has.

    Attributes
    ----------
    keys : list
        Those that there are, ascending: integers before strings, those before dates and times of
        day, and periods and intervals last.
    counts : ndarray of int64
        Positive.
    """

    keys: list[Any]
    counts: NDArray[np.int64]


def split_columns(by: Any) -> list[Any]:
    """The columns of keys, where no public keys say how many; checked for what they declare.

    Those of a frame, or of a list or a tuple that holds nothing but columns.
    """
    columns = _key_columns_of(by)
    if columns is None:
        several = isinstance(by, (list, tuple)) and len(by) > 0 and all(map(_is_column, by))
        columns = list(by) if several else [by]
    for column in columns:
        declared_kind(column)
    return columns


def _is_column(item: Any) -> bool:
    return hasattr(item, "__iter__") and not isinstance(item, (str, bytes, Mapping, Set))


@dataclass(repr=False)
class KeyTotals:
    """How many records each key has, of some rows; those of several parts add up.

    Attributes
    ----------
    numbers : dict
        Positive, by keys as they are compared: tuples of one for each column.
    booleans : list of bool
        Which columns say that their keys are booleans: all else does not depend on types.
    """

    numbers: dict[tuple[Any, ...], int]
    booleans: list[bool]

    def add(self, other: KeyTotals) -> None:
        """Add those of other rows."""
        numbers = self.numbers
        for key, number in other.numbers.items():
            numbers[key] = numbers.get(key, 0) + number
        self.booleans[:] = [a or b for a, b in zip(self.booleans, other.booleans, strict=True)]

    def ordered(self) -> KeyCounts:
        """The keys as they are given back, in their order."""
        present = sorted(self.numbers.items(), key=lambda one: [_rank(key) for key in one[0]])
        shown = [tuple(map(_shown, key, self.booleans)) for key, _ in present]
        numbers = np.array([number for _, number in present], dtype=np.int64)
        single = len(self.booleans) == 1
        return KeyCounts([key[0] for key in shown] if single else list(shown), numbers)


def count_keys(by: Any, counts: Any = None) -> KeyCounts:
    """Count the records of each key; integers of other than 64 bits are none.

    What a key is does not depend on the type of the column, but for booleans, nor on the order of
    its rows.
    """
    return totals_of(split_columns(by), counts).ordered()


def totals_of(by: list[Any], counts: Any = None) -> KeyTotals:
    """Count the records of each key of some rows, given by columns; as `count_keys`."""
    for column in by:
        declared_kind(column)
    columns = [Column.of(column) for column in by]
    size = len(columns[0])
    if any(len(column) != size for column in columns):
        raise ValueError("by must have columns of one length")
    weights = None if counts is None else check_counts(counts, size, "by")
    keys, places = _coded(columns[0])
    rows: list[tuple[Any, ...]] = [(key,) for key in keys]
    for column in columns[1:]:
        keys, own = _coded(column)
        pairs = np.where((places < 0) | (own < 0), -1, places * max(len(keys), 1) + own)
        found, places = np.unique(pairs, return_inverse=True)
        places = places - int(found.size > 0 and found[0] < 0)
        parts = [divmod(pair, max(len(keys), 1)) for pair in found[found >= 0].tolist()]
        rows = [(*rows[at], keys[rest]) for at, rest in parts]
    kept = places >= 0
    sums = np.bincount(
        places[kept], None if weights is None else weights[kept], minlength=len(rows)
    ).astype(np.int64)  # of up to 2^53: exact
    present = {row: number for row, number in zip(rows, sums.tolist(), strict=True) if number}
    return KeyTotals(present, [column.kind == BOOLEANS for column in columns])


def _coded(column: Column) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct keys of a column as they are compared, and which each row has; -1 for none."""
    column = column.encoded()
    codes = column.codes
    if column.items is None:
        assert codes is not None
        values, places = np.unique(codes, return_inverse=True)
        keys: list[Any] = values.tolist()
        missing = column.missing
        if column.kind in TIMED:
            keys = [Instant(key * column.unit, column.kind) for key in keys]
            gone = codes == NO_TIME
            missing = gone if missing is None else gone | missing
        return keys, places if missing is None else np.where(missing, -1, places)
    place: dict[Any, int] = {}
    of_items = np.full(len(column.items) + 1, -1, dtype=np.int64)  # the last one for what is none
    for at, item in enumerate(_listed(column.items)):
        key = _key(item)
        if key is not None:
            of_items[at] = place.setdefault(key, len(place))
    return list(place), of_items[:-1] if codes is None else of_items[codes]


def _key(item: Any) -> Any:
    """A key as it is compared; None for what is none."""
    if type(item) is str:
        return item
    try:
        key = comparable(item)
        kind = kind_of(key)
        if kind == STRINGS:
            return str(key)
        if kind in (INTEGERS, BOOLEANS):
            key = int(key)
            return key if -(2**63) <= key < 2**64 else None
    except Exception:  # no key, and no reason to tell
        return None
    return key if kind is not None else None


def _rank(key: Any) -> tuple[int, Any]:
    """Where a key is in their order: not all of those of one kind are compared by pandas."""
    kind = kind_of(key) or INTEGERS
    if kind == PERIODS:
        key = key.freqstr, key.ordinal
    elif kind == INTERVALS:
        key = *map(_rank_of_end, (key.left, key.right)), key.closed
    return (INTEGERS, STRINGS, *TIMED, PERIODS, INTERVALS).index(kind), key


def _rank_of_end(end: Any) -> tuple[str, Any]:
    """That of an end of an interval: a number, a time or a length."""
    time = Time.of(end)
    if time is not None:
        return time.kind + ZONED * (time.zone is not None), time.nanoseconds
    of_integer = isinstance(end, (int, np.integer))
    return "", int(end) if of_integer else float(end)  # NumPy compares no huge ones


def _shown(key: Any, is_boolean: bool) -> Any:
    """A key as it is given back."""
    if isinstance(key, Instant):
        return date_of(key)
    return bool(key) if is_boolean else key


def as_array(keys: list[Any]) -> NDArray[Any]:
    """Keys as int64, or uint64 where they need it; booleans; all else, and nothing, as objects."""
    kinds = {kind_of(key) for key in keys}
    if kinds == {BOOLEANS}:
        return np.array(keys, dtype=np.bool_)
    if kinds == {INTEGERS}:
        if -(2**63) <= min(keys) and max(keys) < 2**63:
            return np.array(keys, dtype=np.int64)
        if min(keys) >= 0:
            return np.array(keys, dtype=np.uint64)
    return objects(keys)
