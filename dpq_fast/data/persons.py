r"""Whose the records are: a column of ids, so that a guarantee is about persons, not about rows.

**Weights.** The records of a person share one unit of weight, of :math:`M` = `WEIGHT` parts: with k
records each has :math:`\lfloor M / k \rfloor`. So a person has at most M parts, whatever they hold,
none of their records is left out up to M of them (of more than that M stay), and no bound has to be
chosen. A release sees the parts as so many records of one value (`counts`), of which a person has
at most M (`max_contributions`): what is proved there for persons of up to M records holds as it is,
in groups as well, where the parts of a person are spread over the groups that they have records in.

What is released are statistics of *a random record of a random person*.

**Rows.** With ``contributions=k`` at most k records of each person stay, each whole: of those in
order, as evenly spread as they can be. What is released are statistics of records, and those of
people with more than k count for less.

**Why which records stay costs nothing.** Weights and choice are functions of one person's records
alone. So data sets that differ in one person become data sets that differ in the parts of that
person, and no others: M of them under "add-remove", and under "swap", where one person stands in
the place of another, M that become other ones, or missing. Neither depends on the order of rows.

A record is left out where its value or its id is missing: nobody could be told whose it is.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast.data.columns import as_column, as_float64, check_counts, is_missing, refuse_nan
from dpq_fast.data.key_columns import Column, columns_of
from dpq_fast.data.keys import TIMED, Instant, comparable, items_of
from dpq_fast.data.units import untimed

# Parts of the weight of a person: so many that persons of thousands of records have nearly all of
# theirs, and so few that 2^33 persons have no more than counts may add up to.
WEIGHT = 2**20
WEIGHTS = "weights"
EPSILON = float(np.finfo(np.float64).eps)
# Ids that lie in a range of up to so many times their number are counted one by one.
DENSE = 8
KINDS = "integers, strings, bytes, UUIDs, dates or times"


class Persons:
    """The ids of the records of a column, checked for their form, in the place of `counts`.

    Attributes
    ----------
    most : int
        How many parts, or records, a person has at most. Public.
    """

    __slots__ = ("_columns", "_k", "_numbers", "_of", "_weights", "most")

    # What they are called; where a loss is not linear in parts what is asked for, and what came.
    asked = "a privacy_unit"
    whole = "contributions must be a number of records with a privacy_unit"
    shown = repr(WEIGHTS)

    def __init__(self, ids: Any, contributions: Any = WEIGHTS) -> None:
        self._columns = self._opened(ids)
        self._numbers: NDArray[np.int64] | None = None
        self._of: NDArray[Any] | None = None
        self._weights: NDArray[np.int64]
        self._k = _check_contributions(contributions)
        self.most = WEIGHT if self._k is None else self._k

    @classmethod
    def in_place_of(cls, counts: Any, ids: Any, contributions: Any = WEIGHTS) -> Any:
        """The arguments about a column as its counts."""
        if ids is None:
            if not (isinstance(contributions, str) and contributions == WEIGHTS):
                raise ValueError(
                    f"contributions must be left out without a privacy_unit, got {contributions!r}"
                )
            return counts
        if counts is not None:
            raise ValueError("counts must be left out with a privacy_unit: each row is a record")
        return cls(ids, contributions)

    @property
    def share(self) -> bool:
        """Whether the records of a person share one weight; else some of them stay."""
        return self._k is None

    @property
    def named(self) -> list[tuple[str, Any]]:
        """The columns of ids, and what each is called in `_checks.aligned`."""
        return [("privacy_unit", column) for column in self._columns]

    def of_columns(self, columns: list[Any]) -> Persons:
        """The same by ids in another order."""
        if all(map(operator.is_, columns, self._columns)):
            return self
        made = copy(self)
        made._columns, made._numbers, made._of = columns, None, None
        return made

    def beside(self, x: Any) -> Persons:
        """The same in the order of the rows of `x`, where these have labels."""
        return self.of_columns(_checks.aligned(untimed(x), self.named))

    def column(
        self,
        x: Any,
        of_each: Callable[[Persons, NDArray[Any]], NDArray[np.float64]],
        nan_policy: str,
    ) -> Callable[[], NDArray[np.float64]]:
        """A column of one record for each person, which is read when it is called."""

        def read() -> NDArray[np.float64]:
            values = as_column(x)
            refuse_missing(values, nan_policy)
            return of_each(self, values)

        return read

    def rows_at_most(self) -> int | None:
        """How many parts or records all persons have at most; public where their number is.

        None where that is not known before they are read.
        """
        codes = self._codes
        return max(int(np.count_nonzero(np.bincount(codes[codes >= 0]))), 1) * self.most

    def weights(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """How many parts each record of a column has: 0 of those that are left out.

        A release of two stages asks twice.
        """
        if self._of is not values:
            self._weights, self._of = self.weights_beside(values), values
        return self._weights

    def weights_beside(
        self, values: NDArray[Any], beside: NDArray[Any] | None = None
    ) -> NDArray[np.int64]:
        """As `weights`; which of equal records stay goes by what is beside them, then by rows."""
        if self._k is None:
            codes, gone = self._codes, self._gone(values)
            held = codes[~gone] if gone.any() else codes
            number = np.bincount(held, minlength=int(codes.max(initial=0)) + 1)
            each = (WEIGHT // np.maximum(number, 1))[codes]
            each[gone] = 0
            crowded = number > WEIGHT
            if crowded.any():  # more records than parts
                each[crowded[codes]] = self._evenly(values, WEIGHT, beside)[crowded[codes]]
            return each
        return self._evenly(values, self._k, beside)

    def _evenly(
        self, values: NDArray[Any], k: int, beside: NDArray[Any] | None
    ) -> NDArray[np.int64]:
        """1 for up to k records of each person, as evenly spread as they can be, else 0."""
        codes, present = self._present(values)
        each = np.zeros(values.size, dtype=np.int64)
        beside = None if beside is None else beside[present]
        order = _by_person(codes, as_float64(values[present]), beside)
        first, number = _runs(codes[order])
        place = np.arange(codes.size) - np.repeat(first, number)
        held = np.repeat(number, number)
        # k steps of 1 in all, the first one half a stride in; all of up to k
        steps = np.minimum(k, held)
        chosen = (place + 1) * steps + held // 2
        kept = chosen // held > (chosen - steps) // held
        each[present[order[kept]]] = 1
        return each

    def sizes(self, values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Records that add up to the same, and how many parts of the weight each has.

        All records of a person are as large, all that theirs come to, and share the weight by what
        they were: a clip of records is one of persons, whatever groups they are in.
        """
        codes, present = self._present(values)
        own = np.abs(as_float64(values[present]))
        order = _by_person(codes, own)  # sums are the same in any order of rows
        first, number = _runs(codes[order])
        large, each = np.zeros(values.size), np.zeros(values.size, dtype=np.int64)
        if not first.size:
            return large, each
        place, size = present[order], own[order]
        with np.errstate(all="ignore"):  # of sums that are no numbers
            whole = np.minimum(np.add.reduceat(size, first), np.finfo(np.float64).max)
            # less than one by more than sums are rounded
            part = np.repeat((WEIGHT - 4.0 * number * WEIGHT * EPSILON) / whole, number) * size
        # nothing has none, and neither has what is no number
        each[place] = np.where(part < WEIGHT, part, 0.0)
        large[place] = np.copysign(np.repeat(whole, number), as_float64(values[place]))
        return large, each

    def totals(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The sum of each person's values, in an order that no order of rows changes."""
        return self._added(values)[0]

    def means(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The mean of each person's values."""
        totals, number = self._added(values)
        with np.errstate(all="ignore"):  # of totals that are no numbers
            return totals / number

    def present(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """One for each person with a value, and NaN for the others."""
        number = self._added(np.where(np.isnan(as_float64(values)), np.nan, 0.0))[1]
        return np.where(number > 0, 1.0, np.nan)

    def _added(self, values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """What each person's values add up to, taken in order, and how many there are.

        NaN of persons without a value: how many persons there are is public where that of rows is.
        """
        codes, present = self._present(values)
        every = self._codes
        totals = np.full(int(every.max(initial=-1)) + 1, np.nan)
        number = np.bincount(codes, minlength=totals.size)
        own = as_float64(values[present])
        order = _by_person(codes, own)
        first, _ = _runs(codes[order])
        with np.errstate(all="ignore"):  # of sums that are no numbers
            if first.size:
                totals[codes[order[first]]] = np.add.reduceat(own[order], first)
        held = np.bincount(every[every >= 0], minlength=totals.size) > 0
        return totals[held], number[held]

    def _present(self, values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """The persons of the records that are not left out, and where these are."""
        present = np.flatnonzero(~self._gone(values))
        return self._codes[present], present

    def _gone(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which records are left out."""
        codes = self._codes
        if codes.size != values.size:
            raise ValueError("privacy_unit must have one id for each value of x")
        gone: NDArray[np.bool_] = codes < 0
        if values.dtype.kind == "f":
            gone |= np.isnan(values)
        return gone

    @property
    def _codes(self) -> NDArray[np.int64]:
        """A number for each record's person, from 0; -1 without one."""
        if self._numbers is None:
            self._numbers = self._numbered()
        return self._numbers

    def _opened(self, ids: Any) -> list[Any]:
        """The columns of ids, checked for what they declare; the ids are not read."""
        return _columns_of(ids)

    def _numbered(self) -> NDArray[np.int64]:
        first, *others = map(_codes_of, self._columns)
        for own in others:
            if own.size != first.size:
                raise ValueError("privacy_unit must have columns of one length")
            pairs = first * (int(own.max(initial=0)) + 1) + own
            first = _numbered(pairs, (first < 0) | (own < 0))
        return first


class Atoms(NamedTuple):
    """Weights of persons' records, in the place of `counts`: each record's parts stay together.

    How much they come to is private, whatever the relation: who has fewer has less.
    """

    weights: NDArray[Any]


def named(counts: Any) -> list[tuple[str, Any]]:
    """Counts or persons as columns beside others, for `_checks.aligned`."""
    if isinstance(counts, Persons):
        return counts.named
    return [] if counts is None or isinstance(counts, Atoms) else [("counts", counts)]


def in_order(counts: Any, columns: list[Any]) -> Any:
    """The same by those columns in another order."""
    if isinstance(counts, Persons):
        return counts.of_columns(columns)
    return columns[0] if columns else counts


def beside(x: Any, counts: Any) -> Any:
    """Counts or persons in the order of the rows of `x`, where these have labels."""
    return None if counts is None else in_order(counts, _checks.aligned(untimed(x), named(counts)))


def counted(
    counts: Any,
    values: NDArray[Any],
    nan_policy: str,
    by_size: bool,
    places: Callable[[], NDArray[Any] | None],
) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    """The values of a column by group, and how many records each stands for; for a sum by size.

    Which of a person's equal records stay goes by the places of their groups, or of their keys in
    order, and not by the order of rows.
    """
    if not isinstance(counts, Persons):
        return values, None if counts is None else weights_of(counts, values)
    refuse_missing(values, nan_policy)  # they are left out from here on
    if not counts.share:
        return values, counts.weights_beside(values, places())
    return counts.sizes(values) if by_size else (values, counts.weights(values))


def refuse_missing(values: NDArray[Any], nan_policy: str) -> None:
    """Refuse missing values where there are said to be none."""
    if nan_policy == "raise" and values.dtype.kind == "f" and np.isnan(values).any():
        refuse_nan(nan_policy)


def parts_of(x: Any, counts: Any) -> int:
    """How many of what is counted are one: of a column and its counts, or of a `Sample`."""
    held = counts
    if counts is None and hasattr(type(x), "persons"):  # columns have what labels they like
        held = x.persons
    return held.most if isinstance(held, Persons) and held.share else 1


def refuse_shares(x: Any, counts: Any, what: str) -> None:
    """Refuse shared weights where a loss is not linear in what of a person changes."""
    if parts_of(x, counts) > 1:
        held = counts if isinstance(counts, Persons) else x.persons
        raise ValueError(
            f"{held.whole} for {what}, whose noise goes by single records, got {held.shown}"
        )


def weights_of(counts: Any, values: NDArray[Any], of: str = "x") -> NDArray[np.int64]:
    """How many records each of the values of a column stands for, by counts or by persons."""
    if isinstance(counts, Persons):
        return counts.weights(values)
    weights = counts.weights if isinstance(counts, Atoms) else counts
    return check_counts(weights, values.size, of)


def _by_person(
    codes: NDArray[np.int64], values: NDArray[np.float64], beside: NDArray[Any] | None = None
) -> NDArray[np.intp]:
    """The order of records by person, and by value within: two sorts of single numbers.

    Equal values of a person go by what is beside them, if anything is, then stay in the order of
    their rows. (By a sort that is not stable, others' records would say which of them comes first,
    and so which one stays.)
    """
    order = np.argsort(values, kind="stable") if beside is None else np.lexsort((beside, values))
    keys = codes[order] * max(codes.size, 1) + np.arange(codes.size)
    keys.sort()
    found: NDArray[np.intp] = order[keys % max(codes.size, 1)]
    return found


def _runs(codes: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Where each run of equal numbers begins, and how long it is."""
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    return first, np.diff(first, append=codes.size)


def _check_contributions(contributions: Any) -> int | None:
    """At most how many records of a person stay; None for weights."""
    if isinstance(contributions, str):
        if contributions != WEIGHTS:
            raise ValueError(
                f"contributions must be {WEIGHTS!r} or a number of records, got {contributions!r}"
            )
        return None
    return _checks.check_count("contributions", contributions)


def _columns_of(ids: Any) -> list[Any]:
    """The columns of ids, checked for what they declare; the ids are not read."""
    columns = columns_of(ids)
    if columns is None:
        several = isinstance(ids, (list, tuple)) and len(ids) > 0 and all(map(_is_column, ids))
        columns = list(ids) if several else [ids]
    if not columns:
        raise ValueError("privacy_unit must have at least one column, got a frame of none")
    for column in columns:
        check_ids(column)
    return columns


def _is_column(item: Any) -> bool:
    return hasattr(item, "__len__") and not isinstance(item, (str, bytes, dict, set))


def check_ids(column: Any) -> None:
    """Refuse what declares that it is no column of ids."""
    if not _is_column(column):
        raise TypeError(f"privacy_unit must be a column of {KINDS}, got {type(column).__name__}")
    if getattr(column, "ndim", 1) != 1:
        raise ValueError(f"privacy_unit must be one-dimensional, got {column.ndim} dimensions")
    declared = getattr(column, "dtype", getattr(column, "type", None))
    name = str(getattr(declared, "pyarrow_dtype", declared)).lower()
    refused = ("float", "double", "halffloat", "complex", "decimal", "list", "large_list", "struct")
    if name.startswith(refused):
        raise TypeError(f"privacy_unit must hold {KINDS}, got dtype {declared}")


def _codes_of(column: Any) -> NDArray[np.int64]:
    """A number for the id of each row, from 0; -1 without one."""
    if _are_bytes(column):
        return _numbered(column, np.zeros(column.size, dtype=np.bool_))
    found = _encoded(column)
    if found.codes is None:
        return _of_items(items_of(found.items))
    if found.items is None:
        return _numbered(found.codes, found.without_key)
    own = _of_items(items_of(found.items))
    each: NDArray[np.int64] = np.append(own, -1)[found.codes]
    return each


def _are_bytes(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "SV"


def _encoded(column: Any) -> Column:
    """A column as one of keys, with codes where there are some: of other kinds, the ids alone."""
    if hasattr(column, "to_arrow"):
        column = column.to_arrow()
    if not _are_bytes(column):
        try:
            return Column.of(column).encoded()
        except TypeError:  # of kinds that are no keys, and may be ids
            pass
    return Column(None, column, None, None)


def stand_ins(column: Any, secret: bytes) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Numbers that stand for the ids of some rows wherever they are read, by a secret of theirs.

    Parameters
    ----------
    column : object
        Of any library, of any type.
    secret : bytes
        Random, 32 of them.

    Returns
    -------
    numbers : ndarray of uint64, shape (2, n)
        Of integers each has its own, and the other row is zero but beyond int64; of all else they
        are 128 bits of a hash with a key.
    present : ndarray of bool, shape (n,)
        Where there is an id.
    """
    codes, items, present = _parted(column)
    if items is None:
        numbers = np.zeros((2, codes.size), dtype=np.uint64)
        numbers[0] = _mixed(codes.astype(np.uint64), secret)
        numbers[1] = 0 if codes.dtype.kind == "i" else codes >> np.uint64(63)
        return numbers, present
    each = [_digest(item, secret) for item in items] + [bytes(16)]
    own = np.frombuffer(b"".join(each), dtype="<u8").reshape(-1, 2).T.astype(np.uint64)
    return own[:, codes], present


def _parted(column: Any) -> tuple[NDArray[Any], list[Any] | None, NDArray[np.bool_]]:
    """The ids of rows as integers, or as places among some items; and where there is one."""
    found = _encoded(column)
    if found.codes is not None and found.items is None:
        if found.kind not in TIMED:
            return found.codes, None, ~found.without_key
        ticks, places = np.unique(found.codes, return_inverse=True)
        moments = [Instant(tick * found.unit, found.kind) for tick in ticks.tolist()]
        return places, moments, ~found.without_key
    if found.codes is not None:
        items = items_of(found.items)
        if set(map(type, items)) <= {str}:
            return found.codes, items, found.codes >= 0
        known = _of_items(items) >= 0
        items = [item if is_id else None for item, is_id in zip(items, known, strict=True)]
        return found.codes, items, np.append(known, False)[found.codes]
    distinct: dict[Any, int] = {}
    codes = _of_items(items_of(found.items), distinct)
    if distinct and all(type(item) is int and -(2**63) <= item < 2**63 for item in distinct):
        return np.array(list(distinct), dtype=np.int64)[codes], None, codes >= 0
    return codes, list(distinct), codes >= 0


def _mixed(numbers: NDArray[np.uint64], secret: bytes) -> NDArray[np.uint64]:
    """Other numbers, one for each."""
    *factors, mask = np.frombuffer(secret, dtype="<u8")
    for factor in factors:
        numbers = (numbers ^ (numbers >> np.uint64(32))) * (factor | np.uint64(1))
    mixed: NDArray[np.uint64] = numbers ^ mask
    return mixed


def _digest(item: Any, secret: bytes) -> bytes:
    """16 bytes for an id, the same for ids that are equal."""
    if isinstance(item, str):
        content = b"str:" + item.encode(errors="surrogatepass")
    elif isinstance(item, bytes):
        content = b"bytes:" + item
    else:
        key = comparable(item)
        key = key.item() if isinstance(key, np.generic) else key
        if isinstance(key, int) and -(2**63) <= key < 2**64:
            number = _mixed(np.array([key % 2**64], dtype=np.uint64), secret)
            return number.astype("<u8").tobytes() + int(key >= 2**63).to_bytes(8, "little")
        content = f"{type(key).__name__}:{key!r}".encode(errors="surrogatepass")
    return hashlib.blake2b(content, digest_size=16, key=secret).digest()


def _of_items(items: list[Any], place: dict[Any, int] | None = None) -> NDArray[np.int64]:
    """As `_codes_of`, of objects; one that has no hash is no id."""
    place = {} if place is None else place
    codes = np.full(len(items), -1, dtype=np.int64)
    for at, item in enumerate(items):
        if type(item) is str:  # what most are
            codes[at] = place.setdefault(item, len(place))
            continue
        try:
            key = item if isinstance(item, (str, int, bytes)) else comparable(item)
            if not (key is None or is_missing(key)):
                codes[at] = place.setdefault(key, len(place))
        except Exception:  # no id, and no reason to tell
            continue
    return codes


def _numbered(ids: NDArray[Any], gone: NDArray[np.bool_]) -> NDArray[np.int64]:
    """As `_codes_of`, of an array of ids, some of which are none."""
    held = ids if not gone.any() else ids[~gone]
    if not held.size:
        return np.full(ids.size, -1, dtype=np.int64)
    numbers = _integers_numbered(held) if ids.dtype.kind in "iu" else _any_numbered(held)
    if held is ids:
        return numbers
    codes = np.full(ids.size, -1, dtype=np.int64)
    codes[~gone] = numbers
    return codes


def _any_numbered(ids: NDArray[Any]) -> NDArray[np.int64]:
    codes: NDArray[np.intp] = np.unique(ids, return_inverse=True)[1]
    return codes.astype(np.int64, copy=False)


def _integers_numbered(ids: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers for integers; not in a row, where they lie close together."""
    low, high = int(ids.min()), int(ids.max())
    if high - low >= 2**63:
        return _any_numbered(ids)
    wide = ids.astype(np.int64, copy=False) if ids.dtype.kind == "i" else ids
    above: NDArray[np.int64] = (wide - wide.dtype.type(low)).astype(np.int64, copy=False)
    if high - low < DENSE * ids.size:
        return above
    bits = ids.size.bit_length()
    if (high - low).bit_length() + bits >= 64:
        return _any_numbered(ids)
    keys = (above << bits) | np.arange(ids.size)  # with its row: one sort of single numbers
    keys.sort()
    row, above = keys & ((1 << bits) - 1), keys >> bits
    codes = np.empty(ids.size, dtype=np.int64)
    codes[row] = np.append(0, above[1:] != above[:-1]).cumsum()
    return codes
