"""Counts, sums and means of many groups at once: one release for each public group.

Where the clip is public, all sums are integers of one lattice, and their noise has one scale. Else
each group is released by itself, as by `sum` or `mean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._arguments import in_our_words, with_further
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data.persons import WEIGHTS, Persons, parts_of
from dpq_fast.data.public_keys import Groups
from dpq_fast.data.queries import Sums
from dpq_fast.data.units import DURATIONS, INSTANTS, Presence, Timed
from dpq_fast.data.weights import Weights, refuse_sums
from dpq_fast.laws import noise_tails
from dpq_fast.mechanisms._calls import as_called, with_options
from dpq_fast.mechanisms.aggregates import Moment, asked_of, drawn, of_sample, read_clipped
from dpq_fast.mechanisms.clipping import LARGEST, Clip, Clipping, Mean, clip_options
from dpq_fast.mechanisms.grouping import (
    NUMBERS,
    Answers,
    Gathered,
    Records,
    TableGroups,
    one_by_one,
    rows_of,
)
from dpq_fast.mechanisms.spread import WIDEST
from dpq_fast.noise.discrete import discrete_gaussian, discrete_laplace
from dpq_fast.privacy.aggregates import AUTO
from dpq_fast.privacy.intervals import Request
from dpq_fast.released.groups import GroupAnswers

# Up to this scale, noise in bulk stays far inside 64 bits: no draw is 2^11 scales from zero.
BULK = 2**50


@in_our_words
@dataclass(frozen=True, eq=False, repr=False)
class GroupValues(GroupAnswers, byte=6):
    """Private counts, sums or means by group; a mapping from key to answer.

    Attributes
    ----------
    groups : ndarray, shape (G,)
        The public keys: integers, booleans, or as objects strings, dates or tuples of keys.
    values : ndarray, shape (G,)
        The answer of each group: integers for counts, else float64.
    low, high : ndarray, or None
        Ends of the intervals around `values`, where a `confidence` was asked for.
    confidence, covers
        As in `Estimate`; None without intervals.
    names : tuple
        What the columns of keys are called, if they are those of a frame.

    Examples
    --------
    >>> import dpq_fast as dpq
    >>> made = dpq.count_by([3, 5, 9], ["a", "b", "a"], groups=["a", "b"], epsilon=1.0)
    >>> made.groups.tolist(), sorted(made.to_dict())
    (['a', 'b'], ['a', 'b'])
    >>> again = dpq.GroupValues.from_bytes(made.to_bytes())
    >>> bool((again.values == made.values).all())
    True
    """

    groups: NDArray[Any]
    values: NDArray[Any]
    low: NDArray[Any] | None = None
    high: NDArray[Any] | None = None
    confidence: float | None = None
    covers: str | None = None
    names: tuple[Any, ...] = ()

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row for each group: value, and with intervals low and high.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas, index = self._index()
        parts = {"value": self.values, "low": self.low, "high": self.high}
        given = {name: part for name, part in parts.items() if part is not None}
        return pandas.DataFrame(given, index=index)


class _Rows:
    """A column of records and one of keys, of which all that is public was checked."""

    def __init__(
        self,
        x: Any,
        by: Any,
        groups: Any,
        counts: Any,
        nan_policy: str,
        workers: int,
        name: str,
    ) -> None:
        if isinstance(counts, Weights):
            refuse_sums(counts)
        self._groups = None if groups is None else Groups(groups)
        self._name = name
        # numbers and sums are of parts of persons
        self._parts = parts_of(x, counts) if name in ("count_by", "sum_by") else 1
        threads = _checks.check_workers(workers)
        self._rows: Any = rows_of(x, by, counts, nan_policy, threads, name == "sum_by")
        self._rows.check_keys(self._groups)

    def prepared(
        self,
        calibration: Any,
        answer: Callable[[Gathered | TableGroups, np.random.Generator], Answers],
        request: Request | None,
    ) -> Prepared[GroupValues]:
        """The answers of all groups, from values and their intervals, if any."""
        selection = getattr(calibration, "selection", None)

        def draw(rng: np.random.Generator) -> GroupValues:
            groups, answers = self._rows.read(self._groups, selection, answer, rng)
            values, *ends = answers
            if self._parts > 1:
                values, *ends = (_floats(each) / self._parts for each in answers)
            asked: dict[str, Any] = {}
            if request is not None:
                low, high = ends
                asked = dict(
                    low=low, high=high, confidence=request.confidence, covers=request.covers
                )
            return GroupValues(groups.keys.copy(), values, names=self._rows.names, **asked)

        return Prepared(calibration, draw, self._name)


def noisy_integers(
    totals: NDArray[Any], scale: Fraction, rng: np.random.Generator, gaussian: bool
) -> NDArray[Any]:
    """Each integer with noise of its own."""
    if scale == 0:
        return totals
    draw = discrete_gaussian if gaussian else discrete_laplace
    if scale <= BULK:
        drawn = draw(scale, size=totals.size, rng=rng)
        noisy: NDArray[Any] = totals + drawn.astype(totals.dtype)
        return noisy
    noise = np.empty(totals.size, dtype=object)
    noise[:] = [draw(scale, rng=rng) for _ in range(totals.size)]
    return totals.astype(object) + noise


def _floats(integers: NDArray[Any]) -> NDArray[np.float64]:
    """Integers of any length as the nearest numbers."""
    if integers.dtype == object:
        integers = np.array([min(max(each, -LARGEST), LARGEST) for each in integers], dtype=object)
    return integers.astype(np.float64)


@np.errstate(over="ignore")  # a sum beyond float64 is infinite
def _decoded(clip: Clip, points: NDArray[Any]) -> NDArray[np.float64]:
    """`Clip.decode` of many."""
    numbers = _floats(points)
    with np.errstate(over="ignore"):  # as of Python's numbers
        return numbers / clip.per_unit if clip.per_unit else numbers * clip.step


@releases()
def count_by(
    x: Any,
    by: Any,
    *,
    groups: Any,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    public_by: bool = False,
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
    delta: float = 0.0,
    selection_share: float | None = None,
) -> Prepared[GroupValues]:
    r"""Release how many records each public group has, without the missing ones.

    Parameters
    ----------
    x, by : array_like, shape (n,)
        Private records, and the key of each, as in `quantile_by`; of a `Table`, both.
    groups : sequence of keys, or of tuples of them, length G
        Distinct keys, as in `quantile_by`: each gets an answer. None for keys that nobody can list:
        they are selected by `select_keys`, for a share of `epsilon` and for `delta`. Public, as all
        that follow but `counts`.
    epsilon : float
        Budget of the whole call, positive and finite.
    rho : float, optional
        Total zCDP budget instead of `epsilon`; only where groups are listed.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record, and its key; "add-remove" adds or deletes one.
    public_by : bool, default False
        The promise that the keys of all records are public, as in `quantile_by`.
    counts : array_like of int, shape (n,), optional
        How many records each row of `x` and `by` stands for.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave NaN and null out record by record, or state that the groups have none.
    privacy_unit : array_like of ids, shape (n,); or several, optional
        Whose each record is, as in `quantile`. Private. Then the guarantee is about whole persons,
        however many records they have, in however many groups.
    contributions : "weights" or int, default "weights"
        With a `privacy_unit`: "weights" for a person to count in parts that add up to 1, in each
        group by the share of the records that are in it; or at most how many records of a person
        are to count. Public.
    max_contributions : int, default 1
        Up to this many records per person, in one group or in several: the guarantee is per person.
    accountant : Accountant, optional
        Charged with ``guarantee("count_by", ...)``; refuses before `x` and `by` are touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system.
    workers : int, default 1
        Number of threads. Does not change the answer to a seed.
    confidence, covers
        As in `count`; each interval covers by itself.
    delta : float, default 0
        Allowed failure of the selection, with ``groups=None``.
    selection_share : float, optional
        As in `quantile_by`.

    Returns
    -------
    GroupValues
        ``groups`` and ``values``, in the order of `groups`; ``out[key]`` is one group's answer,
        ``out.to_pandas()`` a table. Counts are unbiased, and may be negative.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `quantile_by`.

    See Also
    --------
    sum_by, mean_by, quantile_by : Of the records themselves.

    Notes
    -----
    **Mechanism.** Each number plus discrete Laplace noise of scale `max_contributions` / `epsilon`,
    drawn exactly; under "swap" twice that, unless the keys are public: a record that moves changes
    two of the numbers.

    **Privacy.** Pure `epsilon`-DP under `neighbors`, for all groups together: see
    `privacy.aggregates_by`. Not covered: running time and memory.

    **Cost.** O(n) to put rows together by group, as in `quantile_by`, and a draw for each group; of
    a `Table` one pass, and one before it where keys are selected.

    Examples
    --------
    >>> import numpy as np
    >>> town = np.random.default_rng(0).integers(0, 3, size=3_000)
    >>> out = count_by(town, town, groups=[0, 1, 2, 7], epsilon=1.0)
    >>> out.values.shape
    (4,)
    """
    calibration: Any = privacy.aggregates_by.calibrate_count(
        epsilon=epsilon,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
        public_by=public_by,
        delta=delta,
        selection_share=privacy.kept_groups.share_of(groups, selection_share),
    )
    request = of_sample(Request.of(confidence, covers))
    rows = _Rows(Timed(x, Presence()), by, groups, counts, nan_policy, workers, "count_by")
    each = _release_of(calibration).each
    scale, gaussian = each.scale, each.gaussian

    def answer(read: Gathered | TableGroups, rng: np.random.Generator) -> Answers:
        numbers = noisy_integers(read.sums(NUMBERS)[1], scale, rng, gaussian)
        if request is None:
            return (numbers,)
        beside = noise_tails.margin(scale, request.miss, gaussian)
        zero = np.zeros_like(numbers)
        low = np.minimum(np.maximum(numbers - beside, zero), numbers)
        return numbers, low, np.maximum(numbers + beside, zero)

    return rows.prepared(calibration, answer, request)


def _release_of(calibration: Any) -> privacy.aggregates_by.Calibration:
    """What the releases spend, without a selection before them."""
    release: privacy.aggregates_by.Calibration = getattr(calibration, "release", calibration)
    return release


def _clipped(
    name: str,
    /,
    x: Any,
    by: Any,
    *,
    groups: Any,
    epsilon: float | None = None,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    q: float | str | None = AUTO,
    lower: float | None = 0.0,
    upper: float | None = None,
    method: str = "unbounded",
    share: float | None = None,
    expected_n: int | None = None,
    resolution: float | None = None,
    neighbors: str = "swap",
    public_by: bool = False,
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
    delta: float = 0.0,
    selection_share: float | None = None,
    **method_options: Any,
) -> Prepared[GroupValues]:
    """A sum or a mean of each group, by its name."""
    request = asked_of(name, Request.of(confidence, covers), max_contributions)
    q, lower, upper = privacy.aggregates.public_clip(bounds, q, lower, upper)
    clip: dict[str, Any] = dict(
        epsilon=epsilon,
        rho=rho,
        q=q,
        lower=lower,
        upper=upper,
        method=method,
        share=share,
        expected_n=expected_n,
        resolution=resolution,
        neighbors=neighbors,
        max_contributions=max_contributions,
    )
    spent = {key: method_options[key] for key in ("split", "noise") if key in method_options}
    calibration = privacy.aggregates_by.calibrate(
        public_by=public_by,
        delta=delta,
        selection_share=privacy.kept_groups.share_of(groups, selection_share),
        **clip,
        **(spent if method == "unbounded" else {}),
    )
    each = _release_of(calibration)
    own: dict[str, Any] = clip | each.own
    moment = Moment.of(name, method_options, expected_n, parts_of(x, counts))
    clipping = Clipping(method_options, widest=None if moment is None else WIDEST, **own)
    gaussian = clipping.calibration.gaussian
    rows = _Rows(x, by, groups, counts, nan_policy, workers, name)

    def apart(read: Gathered | TableGroups, rng: np.random.Generator) -> Answers:
        def answer(group: int, records: Records, rng: np.random.Generator) -> Any:
            values, weights = records
            read_one = read_clipped(clipping, values, counts=weights, nan_policy=nan_policy)
            one = drawn(name.removesuffix("_by"), clipping, request, read_one, moment, True)
            return one(rng)

        answers = one_by_one(answer, read, rng)
        return (answers,) if request is None else tuple(answers.reshape(-1, 3).T)

    def at_once(read: Gathered | TableGroups, rng: np.random.Generator) -> Answers:
        common, omits = clipping.clip([]), nan_policy != "raise" or isinstance(counts, Persons)
        totals, numbers = read.sums(Sums(common.scale, common.first, common.last))
        if name == "sum_by":
            scale = each.each.sum_scale(common.first, common.last, omits)
            points = noisy_integers(totals, scale, rng, gaussian)
            if request is None:
                return (_decoded(common, points),)
            beside = noise_tails.margin(scale, request.miss, gaussian)
            low, high = points.astype(object) - beside, points.astype(object) + beside
            return tuple(_decoded(common, part) for part in (points, low, high))
        mean = clipping.mean(common, omits, None)
        pair = mean.pair(totals, numbers)
        first, second = (
            noisy_integers(p, s, rng, gaussian) for p, s in zip(pair, mean.scales, strict=True)
        )
        values = _means(mean, first, second)
        if request is None:
            return (values,)
        ends = [
            mean.interval(int(one), int(other), request)
            for one, other in zip(first.tolist(), second.tolist(), strict=True)
        ]
        low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
        return values, np.minimum(low, values), np.maximum(high, values)

    answer = at_once if clipping.method is None and moment is None else apart
    return rows.prepared(calibration, answer, request)


@releases(DURATIONS)
@with_further(clip_options)
@as_called(_clipped)
def sum_by(*arguments: Any, **options: Any) -> Prepared[GroupValues]:
    r"""Release the sum of the records of each public group, clipped.

    Parameters
    ----------
    x, by, groups
        As in `count_by`.
    epsilon : float
        Budget of the whole call, positive and finite. Public, as all that follow but `counts`.
    rho
        As in `count_by`.
    bounds, q, lower, upper, method, share, expected_n, resolution
        As in `sum`: by default the clip of each group is a private quantile of its records.
        `bounds` are a public clip, the same for all groups: better and much faster where it is
        known within a factor of two. `expected_n` is for each group.
    neighbors, public_by, counts, nan_policy, max_contributions, accountant, rng, workers
        As in `count_by`.
    privacy_unit, contributions : optional
        Ids of persons, as in `count_by`.
    confidence, covers
        As in `sum`; each interval covers by itself.
    delta, selection_share
        As in `count_by`.
    **method_options
        As in `sum`.

    Returns
    -------
    GroupValues
        As in `count_by`.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `sum` and in `quantile_by`.

    See Also
    --------
    sum : On one sample, with all about the clip.

    Notes
    -----
    **Mechanism.** `sum` in each group.

    **Privacy.** Pure `epsilon`-DP under `neighbors`, for all groups together. Under "swap" a
    record may leave one group and enter another: each sum is one under "add-remove", for half of
    `epsilon`. If the keys are public, it is one under "swap", for all of it. Proof:
    `privacy.aggregates_by`. Not covered: running time and memory.

    **Cost.** O(n) to put rows together by group, as in `quantile_by`. With a public clip some
    nanoseconds per row and a draw for each group; else about a millisecond for each group. Of a
    `Table` one pass with a public clip, else as `quantile_by`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pay, town = rng.normal(50, 10, size=3_000), rng.integers(0, 3, size=3_000)
    >>> out = sum_by(pay, town, groups=[0, 1, 2], epsilon=1.0, bounds=(0, 100))
    >>> bool((out.values > 0).all())
    True
    """
    return _clipped("sum_by", *arguments, **options)


@releases(INSTANTS, DURATIONS)
@with_further(clip_options)
@as_called(_clipped)
def mean_by(*arguments: Any, **options: Any) -> Prepared[GroupValues]:
    r"""Release the mean of the records of each public group, clipped.

    Parameters
    ----------
    x, by, groups, epsilon, rho, bounds, q, lower, upper, method, share, expected_n, resolution
        As in `sum_by`.
    neighbors, public_by, counts, nan_policy, max_contributions, accountant, rng, workers
        As in `count_by`.
    privacy_unit, contributions : optional
        Ids of persons, as in `count_by`.
    confidence, covers
        As in `mean`; each interval covers by itself.
    delta, selection_share
        As in `count_by`.
    **method_options
        As in `sum`.

    Returns
    -------
    GroupValues
        As in `count_by`; each mean lies inside its clip.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `sum` and in `quantile_by`.

    See Also
    --------
    mean : On one sample.

    Notes
    -----
    **Mechanism.** `mean` in each group, without a pilot, and of no public number of rows: how many
    rows a group has is private where keys are.

    **Privacy.** Pure `epsilon`-DP under `neighbors`, for all groups together, as `sum_by`; proof:
    `privacy.aggregates_by`. Not covered: running time and memory.

    **Cost.** As of `sum_by`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pay, town = rng.normal(50, 10, size=3_000), rng.integers(0, 3, size=3_000)
    >>> out = mean_by(pay, town, groups=[0, 1, 2], epsilon=1.0, bounds=(0, 100))
    >>> bool((abs(out.values - 50.0) < 10.0).all())
    True
    """
    return _clipped("mean_by", *arguments, **options)


@releases()
@with_further(clip_options)
@with_options(_clipped)
def var_by(*arguments: Any, ddof: int = 0, **options: Any) -> Prepared[GroupValues]:
    r"""Release the variance of the records of each public group, clipped.

    Parameters
    ----------
    x, by, groups, epsilon, rho, bounds, q, lower, upper, method, share, expected_n, resolution
        As in `sum_by`. `expected_n`, for each group, is also what its budget is shared by.
    ddof : int, default 0
        Squares are divided by n - `ddof`, n the number of the group. Public.
    neighbors, public_by, counts, nan_policy, max_contributions, accountant, rng, workers
        As in `count_by`.
    privacy_unit, contributions : optional
        Ids of persons, as in `count_by`.
    confidence, covers
        As in `var`; each interval covers by itself.
    delta, selection_share
        As in `count_by`.
    **method_options
        As in `sum`.

    Returns
    -------
    GroupValues
        As in `count_by`; not negative.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `sum` and in `quantile_by`.

    See Also
    --------
    var : On one sample, with all about mechanism and error.

    Notes
    -----
    **Mechanism.** `var` in each group, of no public number of rows.

    **Privacy.** As `sum_by`; proof: `privacy.aggregates_by`. Not covered: running time and memory.

    **Cost.** O(n) to put rows together by group, as in `quantile_by`, and about a millisecond for
    each group; of a `Table` as `quantile_by`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pay, town = rng.normal(50, 10, size=9_000), rng.integers(0, 3, size=9_000)
    >>> out = var_by(pay, town, groups=[0, 1, 2], epsilon=1.0, bounds=(0, 100))
    >>> bool((abs(out.values - 100.0) < 50.0).all())
    True
    """
    return _clipped("var_by", *arguments, ddof=ddof, **options)


@releases(DURATIONS)
@with_further(clip_options)
@with_options(_clipped)
def std_by(*arguments: Any, ddof: int = 0, **options: Any) -> Prepared[GroupValues]:
    r"""Release the standard deviation of the records of each public group, clipped.

    Parameters
    ----------
    x, by, groups, epsilon, rho, bounds, q, lower, upper, method, share, expected_n, resolution
        As in `var_by`.
    ddof : int, default 0
        Squares are divided by n - `ddof`, n the number of the group. Public.
    neighbors, public_by, counts, nan_policy, max_contributions, accountant, rng, workers
        As in `count_by`.
    privacy_unit, contributions : optional
        Ids of persons, as in `count_by`.
    confidence, covers, delta, selection_share, **method_options
        As in `var_by`.

    Returns
    -------
    GroupValues
        As in `count_by`, in the unit of the records.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `sum` and in `quantile_by`.

    See Also
    --------
    std : On one sample.

    Notes
    -----
    **Privacy.** The roots of `var_by`: post-processing.

    **Cost.** As of `var_by`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pay, town = rng.normal(50, 10, size=9_000), rng.integers(0, 3, size=9_000)
    >>> out = std_by(pay, town, groups=[0, 1, 2], epsilon=1.0, bounds=(0, 100))
    >>> bool((abs(out.values - 10.0) < 3.0).all())
    True
    """
    return _clipped("std_by", *arguments, ddof=ddof, **options)


def _means(mean: Mean, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """`Mean.value` of many; post-processing, in floats."""
    clip = mean.clip
    if mean.calibration.relation.n_is_public:
        centered, number = _floats(first), _floats(second)
    else:
        centered, number = _floats(first - second), _floats(first + second) / clip.width
    points = mean.about / 2.0 + centered / (2.0 * np.maximum(number, 1.0))
    return _decoded(clip, np.clip(points, clip.first, clip.last))
