"""Quantiles of many groups at once: one release for each public group.

Rows are put together by group in two steps, as a radix sort would: first by chunk of groups, in
one pass over the column, then by group inside each chunk, which fits into the cache. Chunks are
released independently, each from a generator of its own, so the answer does not depend on how
many threads share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from randomgen import ChaCha

from dpq_fast import _checks, privacy
from dpq_fast._kernels import groups as kernel
from dpq_fast.data.columns import as_column, as_float64, check_counts
from dpq_fast.data.keys import Column, declares_strings, listed
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.order import CoarseOrder, SortedOrder
from dpq_fast.data.sample import Sample
from dpq_fast.laws.depth import DepthLaw
from dpq_fast.laws.path import PathLaw
from dpq_fast.mechanisms.estimate import Estimate
from dpq_fast.mechanisms.ind_exp import no_dither
from dpq_fast.mechanisms.intervals import halted, nested
from dpq_fast.noise.rng import default_rng
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.quantile_by import IND_EXP, JOINT_EXP, Calibration

# Rows of the column handled in one call.
BLOCK = 2**20
# Groups of more row entries, (n + 1) m, are released one by one: there, windows pay. So are all
# groups where there is a prior, which the kernel does not know.
SMALL_ENTRIES = 20_000
# Integer keys spread over at most this many times the groups (and this much) are looked up in a
# table, others by bisection.
TABLE_FACTOR, TABLE_FLOOR = 8, 2**16

# Rows of one block.
Picked = slice | NDArray[np.intp]
KeysOf = Callable[[Picked], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class GroupQuantiles:
    """Private quantiles by group, in the order of `groups`; a mapping from key to answer.

    Attributes
    ----------
    groups : ndarray, shape (G,)
        The public keys: integers, or strings as objects.
    q : float or ndarray of float64
        The levels as they were asked for.
    values : ndarray of float64, shape (G,) + q's
        The answer of each group.
    low, high : ndarray of float64, or None
        Ends of the intervals around `values`, of the same shape, where a `confidence` was asked
        for.
    confidence, covers
        As in `Estimate`; None without intervals.
    """

    groups: NDArray[Any]
    q: Any
    values: NDArray[np.float64]
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    confidence: float | None = None
    covers: str | None = None

    def __len__(self) -> int:
        """Number of groups."""
        return len(self.groups)

    def __iter__(self) -> Iterator[Any]:
        """Over the keys."""
        return iter(self.groups.tolist())

    def __contains__(self, key: Any) -> bool:
        return key in self._place

    def __getitem__(self, key: Any) -> Any:
        """The answer of one group: a float for a scalar `q`, else an array of q's shape."""
        place = self._place[key]
        if self.low is None or self.high is None:
            return _plain(self.values[place])
        value, low, high = (_plain(each[place]) for each in (self.values, self.low, self.high))
        assert self.confidence is not None and self.covers is not None
        return Estimate(value, low, high, self.confidence, self.covers)

    @cached_property
    def _place(self) -> dict[Any, int]:
        return {key: place for place, key in enumerate(self.groups.tolist())}

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row for each group and a column for each level.

        With intervals, three columns for each level: value, low and high.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "to_pandas must have pandas: pip install 'dpq_fast[pandas]'"
            ) from error
        shape = len(self), np.size(self.q)
        index = pandas.Index(self.groups, name="group")
        columns = pandas.Index(np.ravel(self.q), name="q")
        if self.low is None or self.high is None:
            return pandas.DataFrame(self.values.reshape(shape), index=index, columns=columns)
        parts = np.stack(
            [each.reshape(shape) for each in (self.values, self.low, self.high)], axis=-1
        )
        names = pandas.MultiIndex.from_product(
            [columns, ["value", "low", "high"]], names=["q", "part"]
        )
        return pandas.DataFrame(parts.reshape(len(self), -1), index=index, columns=names)


def _plain(answer: Any) -> Any:
    """A float for one level."""
    return float(answer) if np.ndim(answer) == 0 else answer


def quantile_by(
    x: Any,
    by: Any,
    q: Any,
    *,
    groups: Any,
    epsilon: float,
    bounds: tuple[float, float],
    neighbors: str = "swap",
    public_by: bool = False,
    method: str | None = None,
    resolution: float | None = None,
    dither: bool | None = None,
    prior: Any = None,
    counts: Any = None,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    workers: int = 1,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    expected_n: int | None = None,
) -> GroupQuantiles:
    r"""Release the quantiles of each public group of a column, by one release per group.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private records in the unit of `bounds`: an array, a pandas, polars or pyarrow column, or
        a sequence. Clamped to `bounds`; NaN is left out (`nan_policy`).
    by : array_like of int or str, shape (n,)
        The key of each record: integers, strings, a pandas categorical, a polars or pyarrow
        column, or a sequence. Private unless `public_by`. Rows whose key is missing or not among
        `groups` are ignored, silently. Only the type of a column may be refused: declare it
        ("Int64") where pandas would make floats of integers with a missing one.
    q : float or array_like of float
        Levels in [0, 1], any order and shape, at least one; duplicates are released once. Public.
    groups : sequence of int or of str, length G
        Distinct keys, chosen without looking at `by`, whose set of values is private. Each gets
        an answer; a key without records is answered as an empty sample. Public.
    epsilon : float
        Budget of the whole call under `neighbors`, positive and finite; see Notes for what each
        group is released with. Public.
    bounds : (float, float)
        Finite low < high, the same for all groups, chosen without looking at `x`. Public. With a
        `prior` that has quantiles an end may be infinite (`Sample.of`).
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record, their number is public; "add-remove" adds or deletes one.
    public_by : bool, default False
        The promise that the keys of all records are public, so that "swap" replaces a record's
        value and never its key. Under "add-remove" it makes no difference. Public.
    method : {"ind_exp", "joint_exp"}, optional
        The mechanism in each group; the former is for one level. Default: "ind_exp" for one level,
        which is more accurate, "joint_exp" for several, where one is to be dithered, and if
        `accountant` composes by "zcdp", since its releases add up to less. Public.
    resolution : float, optional
        Spacing of the public lattice of outputs, in the unit of `x`; 0 for the paper's continuous
        mechanism, which is not hardened against attacks on low-order bits. Default: a power of
        ten, about 10^-6 of the range of `bounds`. Public.
    dither : bool, optional
        Spread the records of a lattice point evenly over its cell before "joint_exp", so that
        ties do no harm. Default: wherever there is a lattice. "ind_exp" needs and takes none.
        Public.
    prior : "uniform", "log", distribution, pair of functions or sequence of pairs, optional
        A guess at the distribution of the records of each group, made without looking at `x`, as in
        `joint_exp`. Groups are then released one by one. Public.
    counts : array_like of int, shape (n,), optional
        How many records each row of `x` and `by` stands for; 1 each by default. Non-negative, sum
        at most 2^53; a row of count 0 is as good as absent. Neighbors differ in records, not in
        rows. Private, as `x` is.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave NaN and null out record by record, or state that the groups have none.
    max_contributions : int, default 1
        Up to this many records per person, in one group or in several: the guarantee is per person.
    accountant : Accountant, optional
        Charged with ``guarantee("quantile_by", ...)``; refuses before `x` and `by` are touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator in each thread, keyed by the operating
        system. Anything else is given to `numpy.random.default_rng`, and a ChaCha generator is
        keyed from it for each chunk of groups: one seed gives one answer.
    workers : int, default 1
        Number of threads; negative ones count from ``os.cpu_count() + 1`` down, as in
        `scipy.fft`. Does not change the law, nor the answer to a seed.
    confidence, covers, interval_share : optional
        For intervals, as in `quantile`; each covers by itself. Public.
    expected_n : int, optional
        About how many records a group has, for intervals. Default: 10,000. Public.

    Returns
    -------
    GroupQuantiles
        ``groups``, ``q`` and ``values``, of shape (G,) + q's, in the order of `groups`;
        ``out[key]`` is one group's answer, ``out.to_pandas()`` a table. With a `confidence` also
        ``low`` and ``high``, and ``out[key]`` is an `Estimate`.

    Raises
    ------
    TypeError
        If `x`, `by`, `counts`, `groups` or an argument is not of the type its rule above asks for.
    ValueError
        If a public argument breaks its rule, `x` or `by` is not one-dimensional, they or `counts`
        differ in length, `counts` breaks its rule, or a NaN is there against
        ``nan_policy="raise"``.
    BudgetExceeded
        If `accountant` has too little left.

    See Also
    --------
    joint_exp, ind_exp : The mechanisms, on one sample.

    Notes
    -----
    **Mechanism.** For one level permute-and-flip by depth, as `ind_exp` does it, for several
    `joint_exp` [1]_, on the records of each group, all on one lattice.

    **Privacy.** Pure `epsilon`-DP under `neighbors`, always the total of the call.

    - "add-remove": a record is in one group, so the releases compose in parallel, and each group
      is released with `epsilon` and the add-remove sensitivity.
    - "swap": a replaced record may change its key. Then two groups change, one by a removal, one
      by an addition, and their sizes are private. So each group is released with the add-remove
      sensitivity and `epsilon` / 2; the call is also `epsilon` / 2-DP under "add-remove". A
      record that stays in its group costs no more: a removal and an addition there.
    - "swap" with `public_by`: only one group changes, by a replacement, and each group is
      released with `epsilon` and the swap sensitivity. A value that becomes NaN, or was, is an
      addition or a removal, which that sensitivity covers.

    With ``max_contributions=k`` the rate is divided by k: a person's records change one after the
    other, in whatever groups they are, and the ranges of the log ratio add up along the way.
    `privacy.guarantee` also states rho, and for "joint_exp" the range given the dither;
    permute-and-flip has none. Proof: `privacy.quantile_by`. Not covered: running time and memory.

    **Cost.** O(n) to put rows together by group, with 10 bytes per row, 18 with `counts` (and 8
    more for the records of one chunk of 512 groups), then O(m n + n log n) for a group of n
    records; groups of more than 20,000 / m records cost what the mechanism does on one sample, with
    `counts` what it costs for their rows. String keys take a dictionary lookup each; integers and
    categoricals do not.

    References
    ----------
    .. [1] J. Gillenwater, M. Joseph, A. Kulesza, "Differentially Private Quantiles", ICML 2021,
       PMLR 139:3713-3722. Section 3, Lemmas 3 and 10, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pay, town = rng.normal(50, 10, size=3_000), rng.integers(0, 3, size=3_000)
    >>> out = quantile_by(
    ...     pay, town, [0.25, 0.5, 0.75], groups=[0, 1, 2, 7], epsilon=1.0, bounds=(0, 100)
    ... )
    >>> out.values.shape
    (4, 3)
    >>> bool((np.diff(out[2]) >= 0).all())
    True
    """
    levels = Levels(q)
    names = Groups(groups)
    threads = _checks.check_workers(workers)
    dither = dither if dither is None else _checks.check_flag("dither", dither)
    calibration = privacy.quantile_by.calibrate(
        levels,
        epsilon=epsilon,
        neighbors=neighbors,
        max_contributions=max_contributions,
        public_by=public_by,
        method=method_of(method, dither, accountant),
        confidence=confidence,
        covers=covers,
        interval_share=interval_share,
        expected_n=expected_n,
    )
    if calibration.method == IND_EXP:
        dither = no_dither(dither)
    bounds, lattice = Lattice.between(bounds, resolution, dither, prior)
    _checks.check_choice("nan_policy", nan_policy, ("omit", "raise"))
    _checks.check_column(x)
    release = _Release(levels.values, calibration, bounds, lattice, prior)
    names.check_kind(declares_strings(by))
    generator = None if rng is None else default_rng(rng)
    privacy.charge(accountant, calibration)
    column = as_column(x)
    keys, keys_of = names.lookup(by, column.size)
    weights = None if counts is None else check_counts(counts, column.size)
    with _Pool(threads) as pool:
        rows, ends = _by_chunk(column, weights, keys, keys_of, nan_policy, pool)
        answers, low, high = release.all(rows, ends, keys, generator, pool)
    levels_asked = float(q) if np.ndim(q) == 0 else np.array(q, dtype=np.float64)
    values = levels.restore(release.decode(answers))
    if confidence is None:
        return GroupQuantiles(names.keys.copy(), levels_asked, values)
    low, high = levels.restore(low), levels.restore(high)
    return GroupQuantiles(names.keys.copy(), levels_asked, values, low, high, confidence, covers)


def method_of(method: str | None, dither: bool | None, accountant: Any = None) -> str | None:
    """The mechanism, by public arguments; None if the number of levels decides."""
    composed = isinstance(accountant, privacy.Accountant) and accountant.composition == "zcdp"
    return JOINT_EXP if method is None and (dither or composed) else method


# Threads


class _Pool:
    """``map`` over so many threads, or over none but the caller's."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[[int], Any], items: range) -> list[Any]:
        """Results in the order of `items`."""
        return list((map if self._pool is None else self._pool.map)(function, items))


# Keys


class Groups:
    """The public keys, checked.

    Attributes
    ----------
    keys : ndarray, shape (G,)
        int64 or uint64, or strings as objects.
    strings : bool
        Which of the two.
    """

    def __init__(self, groups: Any) -> None:
        if isinstance(groups, (str, bytes, Mapping, Set)) or not hasattr(groups, "__iter__"):
            raise TypeError(
                f"groups must be a sequence of integers or of strings, got {type(groups).__name__}"
            )
        if isinstance(groups, range):
            groups = np.arange(groups.start, groups.stop, groups.step)
        if isinstance(groups, np.ndarray) and groups.ndim != 1:
            raise ValueError(f"groups must be one-dimensional, got {groups.ndim} dimensions")
        if isinstance(groups, np.ndarray) and groups.dtype.kind in "iu":
            self.strings = False
            self.keys = groups.astype(np.uint64 if groups.dtype.kind == "u" else np.int64)
        else:
            items = listed(groups)
            self.strings = bool(items) and all(isinstance(item, str) for item in items)
            if self.strings:
                self.keys = np.empty(len(items), dtype=object)
                self.keys[:] = [str(item) for item in items]
            else:
                self.keys = _integers(items)
        self._check_distinct()

    def _check_distinct(self) -> None:
        keys = np.sort(self.keys)
        (twice,) = np.nonzero(keys[1:] == keys[:-1])
        if twice.size:
            raise ValueError(f"groups must be distinct, got {keys[twice[0]]!s} twice")

    def __len__(self) -> int:
        return self.keys.size

    @cached_property
    def _place(self) -> dict[Any, int]:
        return {key: place for place, key in enumerate(self.keys.tolist())}

    def check_kind(self, strings: bool | None) -> None:
        """Refuse keys of another kind than what the type of a column, if any, says of its keys."""
        if strings is not None and len(self) and strings != self.strings:
            kinds = ("integers", "strings") if strings else ("strings", "integers")
            raise TypeError(f"groups must be {kinds[1]} as the column by is, got {kinds[0]}")

    def lookup(self, by: Any, size: int) -> tuple[kernel.Keys, KeysOf]:
        """How to find the group of each of `size` rows: a table, and its entries for some rows."""
        column = Column.of(by)
        if len(column.values) != size:
            raise ValueError("by must have one key for each row of x")
        self.check_kind(column.strings)
        codes = column.values
        if column.categories is not None:
            table = self._found(column.categories)
            return kernel.Keys(len(self), 0, table), _int64_of(codes)
        if isinstance(codes, np.ndarray) and not self.strings and len(self):
            lowest, highest = int(self.keys.min()), int(self.keys.max())
            # as int64, an unsigned key of 2^63 or more is negative: then no group may be
            fits = highest < 2**63 and (codes.dtype.kind == "i" or lowest >= 0)
            if fits and (self.keys == lowest + np.arange(len(self))).all():
                return kernel.Keys(len(self), lowest, None), _int64_of(codes)
            if fits and highest - lowest < max(TABLE_FLOOR, TABLE_FACTOR * len(self)):
                table = np.full(highest - lowest + 1, -1, dtype=np.int32)
                table[self.keys.astype(np.int64) - lowest] = np.arange(len(self))
                return kernel.Keys(len(self), lowest, table), _int64_of(codes)
            if fits:
                return kernel.Keys(len(self), 0, None), self._bisected(_int64_of(codes))
            codes = codes.tolist()
        return kernel.Keys(len(self), 0, None), _int64_of(self._found(codes))

    def _bisected(self, keys_of: KeysOf) -> KeysOf:
        places = np.argsort(self.keys)
        ordered = self.keys.astype(np.int64)[places]

        def places_of(rows: Picked) -> NDArray[Any]:
            keys = keys_of(rows)
            nearest = np.minimum(np.searchsorted(ordered, keys), ordered.size - 1)
            return np.where(ordered[nearest] == keys, places[nearest], -1).astype(np.int64)

        return places_of

    def _found(self, keys: Sequence[Any]) -> NDArray[np.int32]:
        """Place of each key by dictionary; -1 for what is none, whatever it is."""
        place = self._place

        def place_of(key: Any) -> int:
            try:
                return place.get(key, -1)
            except Exception:  # not hashable or not comparable: not a key, and no reason to tell
                return -1

        return np.fromiter(map(place_of, keys), dtype=np.int32, count=len(keys))


def _integers(items: list[Any]) -> NDArray[Any]:
    if any(
        isinstance(item, (bool, np.bool_)) or not isinstance(item, (int, np.integer))
        for item in items
    ):
        raise TypeError("groups must hold integers or strings, all of one kind")
    if not items:
        return np.empty(0, dtype=np.int64)
    low, high = min(items), max(items)
    if low < -(2**63) or high >= (2**63 if low < 0 else 2**64):
        raise ValueError("groups must be integers of 64 bits")
    return np.array(items, dtype=np.uint64 if high >= 2**63 else np.int64)


def _int64_of(codes: NDArray[Any]) -> KeysOf:
    return lambda rows: np.ascontiguousarray(codes[rows]).astype(np.int64, copy=False)


# Rows


class _Rows(NamedTuple):
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

    def pick(self, rows: Any) -> _Rows:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return _Rows(self.values[rows], self.members[rows], weights)


def _by_chunk(
    column: NDArray[Any],
    counts: NDArray[np.int64] | None,
    keys: kernel.Keys,
    keys_of: KeysOf,
    nan_policy: str,
    pool: _Pool,
) -> tuple[_Rows, NDArray[np.int64]]:
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
    return _Rows(values, members, weights), last


# Releases


class _Release:
    """One law for all groups, and the ways to draw from it."""

    def __init__(
        self,
        q: NDArray[np.float64],
        spent: Calibration,
        bounds: tuple[float, float],
        lattice: Lattice | None,
        prior: Any,
    ) -> None:
        self._q = q
        by_depth = spent.method == IND_EXP
        self._flips = by_depth and lattice is not None
        # a path of one level counts its rank twice, to it and from it
        self._rate = spent.rate / 2.0 if by_depth and lattice is None else spent.rate
        self._search = spent.search
        self._masses = None
        if self._flips and lattice is not None:  # which weighs points itself
            self._masses, lattice, prior = lattice.masses, lattice.even, None
        self._bounds = bounds
        self._lattice = lattice
        self._prior = prior
        self._kernel = kernel.Releases(q, self._rate, bounds, lattice)
        weighed = self._masses is not None or (lattice is not None and lattice.masses is not None)
        self._largest = -1 if weighed else max(SMALL_ENTRIES // q.size - 1, 0)

    def _sample(self, values: Any, weights: Any = None) -> Sample:
        """A sample on the column's lattice, whatever the type of `values`."""
        lattice = self._lattice
        return Sample.of(
            values,
            self._bounds,
            resolution=0.0 if lattice is None else lattice.step,
            dither=lattice is not None and lattice.bits > 0,
            prior=self._prior,
            counts=weights,
        )

    def decode(self, answers: NDArray[Any]) -> NDArray[np.float64]:
        """Outputs behind points: on the lattice, inside the bounds."""
        return self._sample([]).decode(answers)

    def all(
        self,
        rows: _Rows,
        ends: NDArray[np.int64],
        keys: kernel.Keys,
        rng: np.random.Generator | None,
        pool: _Pool,
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
        """Points or numbers of all groups, and the ends of their intervals, shape (G, m).

        Without intervals, the ends have no groups.
        """
        dtype = np.float64 if self._lattice is None else np.int64
        answers = np.empty((keys.groups, self._q.size), dtype=dtype)
        low, high = np.empty((2, keys.groups if self._search is not None else 0, self._q.size))
        seeds = None if rng is None else rng.bytes(32 * keys.chunks)

        def chunk(number: int) -> None:
            first = number * kernel.CHUNK
            part = slice(int(ends[number - 1]) if number else 0, int(ends[number]))
            own = slice(first, first + kernel.CHUNK)
            self._chunk(rows.pick(part), answers[own], low[own], high[own], _child(seeds, number))

        pool.map(chunk, range(keys.chunks))
        return answers, low, high

    def _chunk(
        self,
        rows: _Rows,
        answers: NDArray[Any],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> None:
        big: dict[int, tuple[NDArray[Any], ...]]
        if rows.weights is None:
            start, ordered = kernel.order(rows.values, rows.members, len(answers))
            big = {
                group: (ordered[start[group] : start[group + 1]],)
                for group in np.flatnonzero(np.diff(start) > self._largest).tolist()
            }
        else:
            start, ordered, big = _repeated(rows, len(answers), self._largest)
        at = 0
        for stop in [*big, len(answers)]:
            if self._flips:
                self._kernel.flip(start, ordered, at, stop, answers, rng)
                at = stop
            while at < stop:
                at, points = self._kernel.run(start, ordered, at, stop, answers, rng)
                if points is not None:  # what float64 rows can not hold; its dither stays
                    order = SortedOrder(points, self._lattice, self._bounds, fine=True)
                    answers[at] = self._draw(order, rng)
                    at += 1
            if stop in big:
                answers[stop] = self._draw(self._sample(*big[stop]).order(rng), rng)
                at = stop + 1
        if self._search is None:
            return
        values = self.decode(answers)
        lattice = None if self._lattice is None else self._lattice.even
        records: CoarseOrder
        for group in range(len(answers)):
            if group in big:
                records = self._sample(*big[group]).coarse()
            else:
                own = np.sort(ordered[start[group] : start[group + 1]])
                records = SortedOrder(own, lattice, self._bounds)
            around = nested(records, values[group], self._search)
            low[group], high[group] = halted(around, self._search, rng)

    def _draw(self, order: Any, rng: np.random.Generator) -> NDArray[Any]:
        law: DepthLaw | PathLaw
        if self._flips:
            level = float(self._q[0])
            law = DepthLaw(order, level, self._rate, flip=True, masses=self._masses)
        else:
            law = PathLaw(order, self._q, self._rate)
        drawn: NDArray[Any] = law.draw(rng, 1)[0]
        return drawn


def _repeated(
    rows: _Rows, groups: int, largest: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], dict[int, tuple[NDArray[Any], ...]]]:
    """Records of the groups that have at most `largest`, and the rows of the other groups.

    Returns ``start`` and ``ordered`` as `kernel.order` does for the records row by row, the other
    groups left empty; and for each of these, in their order, its values and weights.
    """
    rows = rows.pick(~np.isnan(rows.values))
    assert rows.weights is not None
    start, values = kernel.order(rows.values, rows.members, groups)
    _, weights = kernel.order(rows.weights, rows.members, groups)
    sizes = np.diff(np.cumsum(np.append(0.0, weights))[start])  # exact: at most 2^53
    few = sizes <= largest
    repeats = np.where(np.repeat(few, np.diff(start)), weights, 0.0).astype(np.int64)
    big: dict[int, tuple[NDArray[Any], ...]] = {
        group: (values[start[group] : start[group + 1]], weights[start[group] : start[group + 1]])
        for group in np.flatnonzero(~few).tolist()
    }
    return np.append(0, np.cumsum(repeats))[start], np.repeat(values, repeats), big


def _child(seeds: bytes | None, number: int) -> np.random.Generator:
    """The generator of one chunk: the thread's own, or one keyed from the caller's.

    Differs from ``Generator.spawn``, which does not look at the key of a ChaCha generator that
    the caller brings: its children come from the operating system, in 128 bits.
    """
    if seeds is None:
        return default_rng()
    key = int.from_bytes(seeds[32 * number : 32 * (number + 1)], "little")
    return np.random.Generator(ChaCha(key=key, rounds=20))
