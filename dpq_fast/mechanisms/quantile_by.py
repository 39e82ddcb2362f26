"""Quantiles of many groups at once: one release for each public group.

Rows are put together by group in two steps, as a radix sort would: first by chunk of groups, in
one pass over the column, then by group inside each chunk, which fits into the cache. Chunks are
released independently, each from a generator of its own, so the answer does not depend on how
many threads share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._arguments import with_further
from dpq_fast._kernels import groups_scatter
from dpq_fast._kernels.groups_release import Releases
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data.keys import comparable
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.persons import WEIGHTS
from dpq_fast.data.public_keys import Groups
from dpq_fast.data.sample import Sample
from dpq_fast.data.tables import TablePasses
from dpq_fast.data.units import DURATIONS, INSTANTS
from dpq_fast.laws.depth import DepthLaw
from dpq_fast.laws.joint import few
from dpq_fast.laws.joint.path import PathLaw
from dpq_fast.mechanisms.grouping import (
    Answers,
    Gathered,
    GroupedRows,
    Records,
    TableGroups,
    one_by_one,
    rows_of,
)
from dpq_fast.mechanisms.ind_exp import no_dither
from dpq_fast.mechanisms.intervals import halted, nested
from dpq_fast.noise.rng import child, seeds_of
from dpq_fast.orders.order import CoarseOrder
from dpq_fast.orders.sorted import SortedOrder
from dpq_fast.privacy.agg_tree import expected_records
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.quantile_by import IND_EXP, JOINT_EXP, Calibration, PartCalibration
from dpq_fast.released.groups import GroupQuantiles

# Groups of more row entries, (n + 1) m, are released one by one: there, windows pay. So are all
# groups where there is a prior, which the kernel does not know.
SMALL_ENTRIES = 20_000


def _method_options() -> list[str]:
    from dpq_fast.mechanisms.quantile import all_options  # over all mechanisms, this one too

    return all_options()


@releases(INSTANTS, DURATIONS)
@with_further(_method_options)
def quantile_by(
    x: Any,
    by: Any,
    q: Any,
    *,
    groups: Any,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    bounds: Any = None,
    neighbors: str = "swap",
    public_by: bool = False,
    method: str | None = None,
    resolution: float | None = None,
    dither: bool | None = None,
    prior: Any = None,
    counts: Any = None,
    privacy_unit: Any = None,
    contributions: Any = WEIGHTS,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    workers: int = 1,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    expected_n: int | None = None,
    selection_share: float | None = None,
    **method_options: Any,
) -> Prepared[GroupQuantiles]:
    r"""Release the quantiles of each public group of a column, by one release per group.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private records in the unit of `bounds`: an array, a pandas, polars or pyarrow column, or
        a sequence. Clamped to `bounds`; NaN is left out (`nan_policy`). Or a column of a `Table`:
        see Notes.
    by : array_like of int, str, bool or date, shape (n,); or several
        The key of each record: an array, a pandas, polars or pyarrow column, also of categories or
        of a dictionary, or a sequence; periods and intervals of pandas are keys, too. For keys of
        several columns a data frame of them, or a list of columns. Private unless `public_by`. Rows
        whose key is not among `groups` are ignored, silently. Floats that are whole are integers,
        as pandas has them beside a missing one. Only the type of a column may be refused. For a
        column of a `Table` columns of the same one: ``table["town", "year"]``. Columns of pandas,
        `counts` too, go by the labels of their indexes, anything else by position: see Notes.
    q : float or array_like of float
        Levels in [0, 1], any order and shape, at least one; duplicates are released once. Public.
    groups : sequence of int, str, bool or date, or of tuples of them, length G
        Distinct keys, chosen without looking at `by`, whose set of values is private: tuples, or a
        frame, where `by` has several columns. All of one kind, in each column. A date stands for
        its first moment, and is compared with other dates of a time zone, or of none. A key that is
        None (or NaN, or what else stands for a missing one) is that of the rows whose key is
        missing, also within a tuple; they are ignored without it. Each key gets an answer; one
        without records is answered as an empty sample. Public. None in place of a sequence for keys
        that nobody can list: they are selected by `select_keys`, for a share of `epsilon` and for
        all of `delta`; a missing key is not selected.
    epsilon : float
        Budget of the whole call under `neighbors`, positive and finite; see Notes for what each
        group is released with. Public. Exactly one of `epsilon` and `rho`.
    delta : float, default 0
        Allowed failure of the pure guarantee, for "ind_exp", or for ``groups=None``. Public.
    rho : float, optional
        zCDP budget of the whole call instead of `epsilon`, for all methods but "joint_exp". Public.
    bounds : (float, float), mapping of groups to such pairs, or array_like of shape (G, 2)
        Finite low < high, the same for all groups or one pair for each, chosen without looking at
        `x`. Public. With a `prior` that has quantiles an end may be infinite (`Sample.of`). Groups
        with bounds of their own are released one by one. May be left out for
        "unbounded_quantile".
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record, their number is public; "add-remove" adds or deletes one.
    public_by : bool, default False
        The promise that the keys of all records are public, so that "swap" replaces a record's
        value and never its key. Under "add-remove" it makes no difference. Public.
    method : str, optional
        The mechanism in each group: "ind_exp", "joint_exp", "approx_quantiles", "two_stage",
        "unbounded_quantile", "agg_tree" or "csmooth". Default: "ind_exp" for one level, which is
        more accurate; "joint_exp" for several, where one is to be dithered, and if `accountant`
        composes by "zcdp", since its releases add up to less; "approx_quantiles" for several and a
        `rho`. Where `expected_n` is given, "two_stage", "approx_quantiles" or "agg_tree" instead,
        if `quantile` would take that for a group. Public.
    resolution : float, optional
        Spacing of the public lattice of outputs, in the unit of `x`; 0 for the paper's continuous
        mechanism, which is not hardened against attacks on low-order bits. Default: a power of
        ten, about 10^-6 of the range of `bounds`. Public.
    dither : bool, optional
        Spread the records of a lattice point evenly over its cell before "joint_exp", so that
        ties do no harm. Default: wherever there is a lattice. "ind_exp" needs and takes none.
        Public.
    prior : "uniform", "log", "scale-free", distribution, functions or mixture, optional
        A guess at the distribution of the records of each group, made without looking at `x`, as in
        `joint_exp`. Groups are then released one by one. Public.
    counts : array_like of int, shape (n,), optional
        How many records each row of `x` and `by` stands for; 1 each by default. Non-negative, sum
        at most 2^53; a row of count 0 is as good as absent. Neighbors differ in records, not in
        rows. Private, as `x` is.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave NaN and null out record by record, or state that the groups have none.
    privacy_unit : array_like of ids, shape (n,); or several, optional
        Whose each record is, as in `quantile`. Private. Then the guarantee is about whole persons,
        however many records they have, in however many groups: with ``contributions="weights"``
        each release may spend what it does without ids.
    contributions : "weights" or int, default "weights"
        As in `quantile`.
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
        About how many records a group has, chosen without looking at `x` and `by`: for intervals,
        "two_stage" and "agg_tree", which take 10,000 by default, and for the default of `method`.
        Public.
    selection_share : float, optional
        The share of `epsilon` that selects the keys, strictly between 0 and 1, for ``groups=None``.
        Default: 0.25 (`privacy.kept_groups`). Public.
    **method_options
        Further arguments of a method other than "ind_exp" and "joint_exp", such as ``noise=`` of
        "agg_tree".

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
        differ in length or have indexes of pandas that do not fit, `counts` breaks its rule, or a
        NaN is there against ``nan_policy="raise"``.
    BudgetExceeded
        If `accountant` has too little left.

    See Also
    --------
    joint_exp, ind_exp, two_stage : The mechanisms, on one sample.

    Notes
    -----
    **Mechanism.** For one level permute-and-flip by depth, as `ind_exp` does it, for several
    `joint_exp` [1]_, on the records of each group, all on one lattice. Other methods as on one
    sample, group by group; so are "ind_exp" for several levels, a `delta` or a `rho`. With
    "two_stage" each group has a pilot of its own, and a lattice and a prior by what it said.

    How many records a group has is private, and no public fact says it but `expected_n`. Give that
    where a level is near an end, or where levels are many (`quantile` says what that is, with the
    budget that a group has): without it the 99th percentile of a group is drawn by "ind_exp".

    **Privacy.** Pure `epsilon`-DP under `neighbors`, or (`epsilon`, `delta`)-DP, or `rho`-zCDP,
    always the total of the call.

    - "add-remove": a record is in one group, be it that of a missing key, so the releases compose
      in parallel, and each group is released with `epsilon` and the add-remove sensitivity.
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
    permute-and-flip has none. Of a `delta`, as of a `rho`, each group has the part that adds up to
    all of it either way: under "swap" a quarter of `rho`, and somewhat less than half of `delta`.
    Proof: `privacy.quantile_by` and `privacy.parallel`. Not covered: running time and memory.

    **Rows.** Columns of pandas belong together by label, as in pandas. Equal indexes need nothing,
    as those of one frame; where they are unique and equal as sets, rows are put in the order of
    `x`; all else is refused before the charge. That is a rule about the form: labels are names of
    rows, not records, and columns of one frame have one index whatever its records are. What has
    no index goes by position; where that is `x`, the indexes of all others must be equal.

    **Tables.** Where `x` and `by` are columns of a `Table`, each group has the law that it has in
    memory. One pass counts the records of each group; one more reads the groups of up to 65,536
    records, 2^21 records at a time, and these are released as in memory; the larger groups share
    two or three passes, 128 of them at a time. These numbers are private, and decide nothing but
    how records are read: the number of passes, as running time and memory, is not covered.

    **Cost.** O(n) to put rows together by group, with 10 bytes per row, 18 with `counts` (and 8
    more for the records of one chunk of 1,024 groups), then O(m n + n log² n) for a group of n
    records; groups of more than 20,000 / m records cost what the mechanism does on one sample, with
    `counts` what it costs for their rows. A group of 100 records takes less than .03 ms; with a
    `prior` some .3 ms, and by "two_stage" 2 ms. Keys that are strings are looked up among `groups`,
    with 4 more bytes per row; those of a list, or of objects of NumPy or pandas, by one thread.

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
    selection_share = privacy.kept_groups.share_of(groups, selection_share)
    names = Groups([] if groups is None else groups)
    threads = _checks.check_workers(workers)
    dither = dither if dither is None else _checks.check_flag("dither", dither)
    if groups is None and (isinstance(bounds, Mapping) or _is_table(bounds)):
        raise ValueError("bounds must be one pair, or none, where no groups are given")
    own_bounds = bounds_by_group(bounds, names)
    pairs = [bounds] if own_bounds is None else own_bounds
    place = dict[str, Any]()
    if method is None and dither:
        method = JOINT_EXP if rho is None else None
        if method and confidence is None and expected_n is not None:
            _checks.check_count("expected_n", expected_n)
            expected_n = None  # there is nothing left to choose
    elif method is None and expected_n is not None:
        place = _place(pairs, resolution, prior)
    calibration = privacy.quantile_by.calibrate(
        levels,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
        public_by=public_by,
        method=method,
        confidence=confidence,
        covers=covers,
        interval_share=interval_share,
        expected_n=expected_n,
        composed=isinstance(accountant, privacy.Accountant) and accountant.composition == "zcdp",
        selection_share=selection_share,
        **place,
    )
    spent: Any = calibration
    if isinstance(calibration, privacy.kept_groups.Calibration):
        spent, delta = calibration.release, 0.0
        epsilon = spent.epsilon
    if spent.method == IND_EXP:
        dither = no_dither(dither)
    release: _Release | _OneByOne
    if isinstance(spent, PartCalibration) or own_bounds is not None:
        part = privacy.parallel.part_of(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            neighbors=neighbors,
            max_contributions=max_contributions,
            public_by=public_by,
        )
        asked: dict[str, Any] = dict(confidence=confidence, covers=covers)
        options = dict(
            method=spent.method,
            resolution=resolution,
            dither=dither,
            prior=prior,
            nan_policy=nan_policy,
            expected_n=expected_records(expected_n, max_contributions),
            interval_share=interval_share,
            neighbors=part.neighbors,
            **part.given(),
            **asked,
            **method_options,
        )
        release = _OneByOne(levels, pairs, own_bounds is None, confidence is not None, options)
    else:
        for name in method_options:
            raise TypeError(f"{name} must be left out for method {spent.method!r}")
        bounds, lattice = Lattice.between(bounds, resolution, dither, prior)
        release = _Release(levels.values, spent, bounds, lattice, prior)
    rows: Any = rows_of(x, by, counts, nan_policy, threads)
    listed = None if groups is None else names
    rows.check_keys(listed)
    selection = getattr(calibration, "selection", None)

    def draw(rng: np.random.Generator) -> GroupQuantiles:
        names, (answers, *ends) = rows.read(listed, selection, release.all, rng)
        levels_asked = float(q) if np.ndim(q) == 0 else np.array(q, dtype=np.float64)
        values = levels.restore(release.decode(answers))
        found = GroupQuantiles(names.keys.copy(), levels_asked, values, names=rows.names)
        if confidence is None:
            return found
        low, high = map(levels.restore, ends)
        return replace(found, low=low, high=high, confidence=confidence, covers=covers)

    return Prepared(calibration, draw, "quantile_by")


# Releases


def bounds_by_group(bounds: Any, names: Groups) -> list[tuple[float, float]] | None:
    """The bounds of each group, checked; None where there is one pair, or none."""
    if isinstance(bounds, Mapping):
        given = {comparable(key): pair for key, pair in bounds.items()}
        keys = names.keys.tolist()
        pairs: list[Any] = [given.get(comparable(key)) for key in keys]
        if None in pairs:
            raise ValueError(
                f"bounds must have a pair for each group, got none for {keys[pairs.index(None)]!s}"
            )
    elif _is_table(bounds):
        pairs = [tuple(pair) for pair in np.asarray(bounds).tolist()]
        if len(pairs) != len(names):
            raise ValueError(
                f"bounds must have a pair for each of {len(names)} groups, got {len(pairs)}"
            )
    else:
        return None
    return [tuple(pair) if isinstance(pair, list) else pair for pair in pairs]


def _place(pairs: list[Any], resolution: float | None, prior: Any) -> dict[str, Any]:
    """What a choice of a mechanism goes by: points of the bounds, and whether 0 is inside."""
    places = [
        Lattice.between(pair, resolution, None, prior)
        for pair in dict.fromkeys(map(_hashable, pairs))
    ]
    points = [lattice.points for _, lattice in places if lattice is not None]
    return dict(
        points=max(points, default=None),
        two_sided=any(low < 0.0 < high for (low, high), _ in places),
    )


def _is_table(bounds: Any) -> bool:
    return isinstance(bounds, (np.ndarray, list, tuple)) and np.ndim(bounds) == 2


def _hashable(pair: Any) -> Any:
    return tuple(pair) if isinstance(pair, list) else pair


class _OneByOne:
    """A release of one sample for each group, with its part of the budget.

    The number of rows of a group may be private even where that of all records is public: with
    `counts`, no mechanism takes it for public.
    """

    def __init__(
        self,
        levels: Levels,
        pairs: list[Any],
        is_one: bool,
        with_ends: bool,
        options: dict[str, Any],
    ) -> None:
        from dpq_fast.mechanisms.quantile import quantile  # over all mechanisms, this one too

        self._levels, self._with_ends = levels, with_ends
        self._pairs, self._is_one = pairs, is_one

        def prepared(values: Any, **records: Any) -> Prepared[Any]:
            return Prepared.of(quantile, values, levels.values, **records, **options)

        self._prepared = prepared
        for pair in dict.fromkeys(map(_hashable, pairs)):  # refuses all that is public
            prepared([], bounds=pair, counts=[])

    def decode(self, answers: NDArray[np.float64]) -> NDArray[np.float64]:
        """They are in the unit of the records already."""
        return answers

    def all(
        self, groups: Gathered | TableGroups, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], ...]:
        """As `_Release.all`."""

        def answer(group: int, records: Records, rng: np.random.Generator) -> NDArray[np.float64]:
            values, weights = records
            if weights is None and isinstance(values, np.ndarray):
                weights = np.ones(values.size)
            pair = self._pairs[0 if self._is_one else group]
            found = self._prepared(values, bounds=pair, counts=weights).draw(rng)
            return np.asarray(found, dtype=np.float64)

        answers = one_by_one(answer, groups, rng)
        m = self._levels.m
        if not self._with_ends:
            return (answers.reshape(-1, m),)
        return tuple(np.moveaxis(answers.reshape(-1, m, 3), -1, 0))


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
        self._points = lattice  # with the prior
        self._masses = None
        if self._flips and lattice is not None:  # which weighs points itself
            self._masses, lattice, prior = lattice.masses, lattice.even, None
        self._bounds = bounds
        self._lattice = lattice
        self._prior = prior
        self._kernel = Releases(q, self._rate, bounds, lattice)
        prior_masses = None if lattice is None else lattice.masses
        self._weighed = self._masses is not None or prior_masses is not None
        self._largest = -1 if self._weighed else max(SMALL_ENTRIES // q.size - 1, 0)

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

    def all(self, groups: Gathered | TableGroups, rng: np.random.Generator) -> Answers:
        """Points or numbers of all groups, and the ends of their intervals, if any; (G, m) each."""
        return groups.released(self._of_several, self._of_one, rng)

    def _of_several(self, gathered: Gathered, rng: np.random.Generator) -> Answers:
        dtype = np.float64 if self._lattice is None else np.int64
        keys, m = gathered.keys, self._q.size
        answers = np.empty((keys.groups, m), dtype=dtype)
        low, high = np.empty((2, keys.groups if self._search is not None else 0, m))
        seeds = seeds_of(rng, keys.chunks)

        def chunk(number: int) -> None:
            first = number * keys.chunk
            own = slice(first, first + keys.chunk)
            rows = gathered.rows.of_chunk(number, gathered.ends)
            self._chunk(rows, answers[own], low[own], high[own], child(seeds, number))

        gathered.pool.map(chunk, range(keys.chunks))
        return (answers,) if self._search is None else (answers, low, high)

    def _of_one(self, _number: int, passes: TablePasses, rng: np.random.Generator) -> Answers:
        """Of a group whose records are in a table."""
        sample = self._sample(passes)
        answers = self._draw(sample.order(rng), rng)[np.newaxis]
        if self._search is None:
            return (answers,)
        around = nested(sample.coarse(), self.decode(answers)[0], self._search, self._points)
        low, high = halted(around, self._search, rng)
        return answers, low[np.newaxis], high[np.newaxis]

    def _chunk(
        self,
        rows: GroupedRows,
        answers: NDArray[Any],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> None:
        big: dict[int, tuple[NDArray[Any], ...]]
        if rows.weights is None:
            start, ordered = groups_scatter.order(rows.values, rows.members, len(answers))
            big = {
                group: (ordered[start[group] : start[group + 1]],)
                for group in np.flatnonzero(np.diff(start) > self._largest).tolist()
            }
        else:
            start, ordered, big = _repeated(rows, len(answers), self._largest)
        if self._flips:
            at = 0
            for stop in [*big, len(answers)]:
                self._kernel.flip(start, ordered, at, stop, answers, rng)
                at = stop + 1
        else:
            few = np.ones(len(answers), dtype=np.bool_)
            few[list(big)] = False
            # those of one size together
            by_size = np.argsort(np.diff(start), kind="stable")
            by_size = by_size[few[by_size]].astype(np.int64, copy=False)
            at, points = self._kernel.run(start, ordered, by_size, 0, answers, rng)
            while points is not None:  # what float64 rows can not hold; its dither stays
                order = SortedOrder(points, self._lattice, self._bounds, fine=True)
                answers[by_size[at]] = self._draw(order, rng)
                at, points = self._kernel.run(start, ordered, by_size, at + 1, answers, rng)
        for group, records in big.items():
            answers[group] = self._of_big(rng, *records)
        if self._search is None:
            return
        values = self.decode(answers)
        lattice = None if self._lattice is None else self._lattice.even
        coarse: CoarseOrder
        for group in range(len(answers)):
            if group in big:
                coarse = self._sample(*big[group]).coarse()
            else:
                own = np.sort(ordered[start[group] : start[group + 1]])
                coarse = SortedOrder(own, lattice, self._bounds)
            around = nested(coarse, values[group], self._search, self._points)
            low[group], high[group] = halted(around, self._search, rng)

    def _of_big(
        self, rng: np.random.Generator, values: NDArray[np.float64], weights: Any = None
    ) -> NDArray[Any]:
        """The points or numbers of a group that lanes have no room for."""
        q, rate = self._q, self._rate
        alone = weights is None and not self._weighed and not self._flips
        if alone and few.are_few_paths(values.size, q.size, rate):
            given = values, q, rate, self._bounds, self._lattice
            return few.draw_points(self._kernel, *given, rng)
        return self._draw(self._sample(values, weights).order(rng), rng)

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
    rows: GroupedRows, groups: int, largest: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], dict[int, tuple[NDArray[Any], ...]]]:
    """Records of the groups that have at most `largest`, and the rows of the other groups.

    Returns ``start`` and ``ordered`` as `groups_scatter.order` does for the records row by row, the
    other groups left empty; and for each of these, in their order, its values and weights.
    """
    rows = rows.pick(~np.isnan(rows.values))
    assert rows.weights is not None
    start, values = groups_scatter.order(rows.values, rows.members, groups)
    _, weights = groups_scatter.order(rows.weights, rows.members, groups)
    sizes = np.diff(np.cumsum(np.append(0.0, weights))[start])  # exact: at most 2^53
    few = sizes <= largest
    repeats = np.where(np.repeat(few, np.diff(start)), weights, 0.0).astype(np.int64)
    big: dict[int, tuple[NDArray[Any], ...]] = {
        group: (values[own], rows.weighted(weights[own]))
        for group in np.flatnonzero(~few).tolist()
        for own in [slice(start[group], start[group + 1])]
    }
    return np.append(0, np.cumsum(repeats))[start], np.repeat(values, repeats), big
