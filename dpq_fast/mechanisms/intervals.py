"""Intervals around released quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._prepared import Prepared
from dpq_fast.data.histogram import Bins
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.records import Records
from dpq_fast.data.sample import Sample
from dpq_fast.laws.halting import HaltingLaw
from dpq_fast.mechanisms._calls import Drawable
from dpq_fast.noise.threshold import NOISES
from dpq_fast.orders.order import CoarseOrder
from dpq_fast.privacy.accounting import Calibrated, mechanism_of
from dpq_fast.privacy.intervals import Request, Search
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of
from dpq_fast.released.estimate import Estimate

# Each half-width over the next one, or the share of the records in it. Measured on evenly spread
# records (`papers/run.py --only intervals`): 1.2 to 1.6 are within 4%.
RATIO = 1.35
# Shares begin with all but 2^-FAR_OUT of a tail, and all but twice as much: the way to a bound may
# be long, and few records lie on it.
FAR_OUT = 5
# Factors of half-widths above 1 are few, since each candidate that is far too wide costs width:
# powers of RATIO.
_FAR = (7.0, 3.0)
# Without a lattice, half-widths go down to this part of their scale.
_FINEST = 2.0**-52
# Without bounds, nothing is known of the scale either: factors are RATIO to these powers, those
# beyond each `_GROWTH` times the one before.
_NEAR, _NEARER, _GROWTH = 8, 90, 1.5
# A level's half-widths have at least this part of the mean scale.
LEAST_SCALE = 1.0 / 8.0
# The ends of a single level are about `REACH` margins of records away, and a side is at least the
# part `NARROWEST` of the other one.
REACH, NARROWEST = 2.0, 1.0 / 16.0


class LawOfRecords(Drawable, Protocol):
    """An output law that knows the records that it is of."""

    column: Sample | Records

    @property
    def lattice(self) -> Lattice | None:
        """The points of outputs, with the prior that the law goes by; None without a lattice."""


def with_interval(
    value_of: Callable[..., tuple[Calibrated, Callable[[np.random.Generator], LawOfRecords]]],
    levels: Levels,
    request: Request | None,
    *,
    x: Any,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str,
    max_contributions: int,
    counts: Any = None,
    expected_n: int | None = None,
    limits: tuple[float, float] = (-math.inf, math.inf),
    **_others: Any,
) -> Prepared[Any]:
    """A value, or an estimate where one is asked for: one charge, one budget.

    Parameters
    ----------
    value_of : callable
        Takes `epsilon`, `delta` and `rho` of the value; gives its calibration, and what reads the
        records and gives their law.
    levels : Levels
    request : Request or None
    x, counts
        The column, for how many rows it has.
    epsilon, delta, rho, neighbors, max_contributions
        Of the call.
    expected_n : int, optional
        About how many records there are.
    limits : (float, float)
        What outputs may be, where there are no bounds.

    Returns
    -------
    Prepared
        Of a float, an ndarray of float64 or an Estimate.

    Notes
    -----
    What else is given about the column is for the value alone.
    """
    if request is None:
        if expected_n is not None:
            raise ValueError("confidence must be given with expected_n, got None")
        calibration, law_of = value_of(epsilon=epsilon, delta=delta, rho=rho)
        return Prepared(calibration, lambda rng: law_of(rng).sample(rng))
    if expected_n is None:
        expected_n = _checks.public_rows(x, counts, relation_of(neighbors).n_is_public)
    person = neighbors, max_contributions
    request = privacy.intervals.with_share(request, levels, epsilon, rho, *person, expected_n)
    own, _ = privacy.intervals.split(request, epsilon, delta, rho, *person)
    value, law_of = value_of(**own)
    calibration = privacy.intervals.calibrate(
        value,
        levels,
        request,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
        expected_n=expected_n,
    )
    asked, search = request, calibration.search

    def draw(rng: np.random.Generator) -> Estimate:
        law = law_of(rng)
        answer = law.sample(rng)
        values = levels.distinct(answer)
        assert values is not None
        low, high = searched(law, values, search, limits, rng)
        return Estimate(
            answer, levels.restore(low), levels.restore(high), asked.confidence, asked.covers
        )

    return Prepared(calibration, draw, mechanism_of(value))


def searched(
    law: LawOfRecords,
    values: NDArray[np.float64],
    spent: Search,
    limits: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ends of one search around the values of all levels."""
    records = law.column
    if isinstance(records, Records):
        return halted(nested_among(records, values, spent, limits), spent, rng)
    return halted(nested(records.coarse(), values, spent, law.lattice), spent, rng)


class Nested(NamedTuple):
    """Candidates of intervals around m values, from the widest to the narrowest.

    Attributes
    ----------
    n : int
        Number of records. Private.
    low, high : ndarray of float64, shape (m, J)
        The ends, in the unit of the records.
    before, upto : ndarray of int64, shape (m, J)
        Records below the lower end, and up to the upper one. Private.
    open_low, open_high : ndarray of bool, shape (m, J)
        Which ends are not at their bounds, so that a record may lie beyond.
    """

    n: int
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    before: NDArray[np.int64]
    upto: NDArray[np.int64]
    open_low: NDArray[np.bool_]
    open_high: NDArray[np.bool_]


def halted(
    around: Nested, spent: Search, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The last candidate before the search halts; see `privacy.intervals`."""
    halt = halting_law(around, spent).draw(rng)  # not 0: no record lies beyond the first one
    last = -1 if halt < 0 else halt - 1  # never to halt: the last of all
    return around.low[:, last], around.high[:, last]


def halting_law(around: Nested, spent: Search) -> HaltingLaw:
    """Where the search halts: it releases the candidate before."""
    enough, needed = zip(*spent.thresholds(around.n), strict=True)
    queries = np.maximum(
        np.where(around.open_low, _beyond(around.before, enough), -np.inf),
        np.where(around.open_high, -_beyond(around.upto, needed), -np.inf),
    ).max(axis=0)
    lengths = np.ones(queries.size, dtype=np.int64)
    return HaltingLaw(queries + spent.margin, lengths, *spent.rates, NOISES["exponential"])


def _beyond(counts: NDArray[np.int64], thresholds: tuple[Fraction, ...]) -> NDArray[np.float64]:
    """Counts of each level minus its threshold: differences of integers are exact."""
    whole = [math.floor(threshold) for threshold in thresholds]
    parts = [float(threshold - floor) for threshold, floor in zip(thresholds, whole, strict=True)]
    beyond: NDArray[np.float64] = (counts - np.array(whole)[:, None]) - np.array(parts)[:, None]
    return beyond


@np.errstate(under="ignore")  # of numbers next to 0
def nested(
    order: CoarseOrder, values: NDArray[np.float64], spent: Search, prior: Lattice | None
) -> Nested:
    """Candidates around values, by order statistics.

    Half-widths are multiples of how far apart several values are (`scales_of`). Around one value
    they reach over equal shares of the records, which are thought to lie where the prior says.

    Parameters
    ----------
    order : CoarseOrder
    values : ndarray of float64, shape (m,)
        Released.
    spent : Search
    prior : Lattice or None
        The points of the order, with the prior of the law; None without a lattice.
    """
    if prior is None:
        limits = order.bounds
        own = values
    else:
        limits = 0, prior.points - 1
        own = np.array([prior.locate(value) for value in values.tolist()], dtype=np.int64)
    if values.size == 1:
        lower, upper = _by_shares(own, prior, limits, spent)
    elif prior is None:
        scales = scales_of(values, spent, limits[1] - limits[0])
        lower, upper = _around(values, scales, _factors(_FINEST), limits, spent)
    else:
        scales = scales_of(own, spent, prior.points)
        factors = _factors(1.0 / max(scale.max() for scale in scales))
        lower, upper = (
            ends.astype(np.int64) for ends in _around(own, scales, factors, limits, spent, np.floor)
        )
    behind = np.nextafter(upper, np.inf) if prior is None else upper + 1
    before, upto = np.split(order.ranks_of(np.concatenate((lower, behind), axis=None)), 2)
    counts = before.reshape(lower.shape), upto.reshape(lower.shape)
    is_open = lower > limits[0], upper < limits[1]
    if prior is not None:
        lower, upper = prior.decode(lower), prior.decode(upper)
    return Nested(order.n, lower, upper, *counts, *is_open)


def _by_shares(
    own: NDArray[Any], prior: Lattice | None, limits: tuple[float, float], spent: Search
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Ends around one value, shape (1, J), that have equal shares of the records inside.

    A share q of the records is below the value and 1 - q above, wherever it is.
    """
    q = float(spent.q[0])
    if prior is None:
        (start,), (stop,), ends = own, own, limits
    else:
        (start,), (stop,), ends = prior.starts(own), prior.starts(own + 1), (0, prior.fine_points)
    searched = [tail for tail, is_open in ((q, spent.below), (1.0 - q, spent.above)) if is_open[0]]
    shares = np.concatenate(([1.0], min(searched, default=1.0) * _TAILS, [0.0]))
    total = float(ends[1] - ends[0])
    reached = np.stack(
        (
            start - (start - ends[0]) * _part(shares, q, (start - ends[0]) / total),
            stop + (ends[1] - stop) * _part(shares, 1.0 - q, (ends[1] - stop) / total),
        )
    )
    if prior is not None:
        reached = prior.points_of(np.clip(reached, 0, prior.fine_points - 1).astype(np.int64))
    lower, upper = reached
    lower[-1], upper[-1] = own[0], own[0]
    # whatever is rounded, candidates are nested, and have the value inside
    lower = np.maximum.accumulate(np.clip(lower, limits[0], own[0]))
    upper = np.minimum.accumulate(np.clip(upper, own[0], limits[1]))
    if not spent.below[0]:
        lower[:] = limits[0]
    if not spent.above[0]:
        upper[:] = limits[1]
    other = np.append(True, (np.diff(lower) > 0) | (np.diff(upper) < 0))
    return lower[np.newaxis, other], upper[np.newaxis, other]


@np.errstate(under="ignore", over="ignore")  # of numbers next to 0, and after the largest
def nested_among(
    records: Records, values: NDArray[np.float64], spent: Search, limits: tuple[float, float]
) -> Nested:
    """Candidates around values, by counting records: they may be anywhere on the line."""
    scales = scales_of(values, spent, float(np.abs(values).max()) or 1.0)
    lower, upper = _around(values, scales, _all_factors(), limits, spent)
    behind = np.nextafter(upper, np.inf)
    edges = np.unique(np.concatenate((lower, behind), axis=None))
    counts = np.cumsum(records.count(Bins.of(np.concatenate(([-np.inf], edges, [np.inf])))))
    before, upto = (counts[np.searchsorted(edges, ends)] for ends in (lower, behind))
    n = int(counts[-1])
    return Nested(n, lower, upper, before, upto, lower > limits[0], upper < limits[1])


@np.errstate(over="ignore", divide="ignore", invalid="ignore")  # of values all over float64
def scales_of(
    values: NDArray[Any], spent: Search, extent: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How far apart values are per unit of level, below each of them and above.

    Read off the released values themselves, those of levels that are so far apart that noise does
    not matter; where there are none on a side, off the other side. Of one level, which has no
    bounds, the extent, and less towards the middle of the records where both ends are searched
    (`_narrower`). Normal numbers, since 0 and infinity have no multiples.
    """
    q = spent.q
    form = np.finfo(np.float64)
    if q.size == 1:
        apart = REACH * spent.apart
        across = (1.0 - q[0], spent.above[0]), (q[0], spent.below[0])
        sides = (
            np.array([extent * (_narrower(tail, apart) if searched else 1.0)])
            for tail, searched in across
        )
        below, above = (np.clip(side, form.tiny, form.max) for side in sides)
        return below, above
    least = extent
    if values[0] < values[-1]:
        least = LEAST_SCALE * float(values[-1] - values[0]) / (q[-1] - q[0])
    i = np.arange(q.size)
    beside = []
    for far in (
        np.maximum(np.searchsorted(q, q - spent.apart, side="right") - 1, 0),
        np.minimum(np.searchsorted(q, q + spent.apart), q.size - 1),
    ):
        gaps = np.abs(q - q[far])
        beside.append(np.where(far == i, np.nan, np.abs(values - values[far]) / gaps))
    below, above = beside
    below, above = np.where(below >= 0.0, below, above), np.where(above >= 0.0, above, below)
    below, above = (np.clip(np.fmax(each, least), form.tiny, form.max) for each in (below, above))
    return below, above


def _narrower(tail: float, apart: float) -> float:
    """How wide a side is, where the other one has a share `tail` of the records.

    In a heavy tail the k-th record from its end is about 1/k out. From the t-th on, c records
    inwards are 1/t - 1/(t + c) away where c outwards are 1/(t - c) - 1/t: this part of it.
    """
    return max((tail - apart) / (tail + apart), NARROWEST) if apart > 0.0 else 1.0


@np.errstate(over="ignore", under="ignore")
def _around(
    values: NDArray[Any],
    scales: tuple[NDArray[np.float64], NDArray[np.float64]],
    factors: NDArray[np.float64],
    limits: tuple[float, float],
    spent: Search,
    rounded: Callable[[Any], Any] = np.asarray,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Ends inside limits, shape (m, J); those that are not searched for are the limits."""
    below, above = (rounded(scale[:, None] * factors) for scale in scales)
    lower = np.maximum(values[:, None] - below, limits[0])
    upper = np.minimum(values[:, None] + above, limits[1])
    lower[~spent.below] = limits[0]
    upper[~spent.above] = limits[1]
    return lower, upper


def _part(shares: NDArray[np.float64], tail: float, mass: float) -> NDArray[np.float64]:
    """What part of the mass of a tail holds shares of the records, of which the tail has so many.

    Next to a value it is what the prior says, on both sides of it, and at the end all of it.
    """
    if not (tail > 0.0 and mass > 0.0):
        return np.ones(shares.size)
    with np.errstate(divide="ignore", over="ignore"):  # all of it, and more
        beyond = np.log1p(-np.minimum(shares / tail, 1.0))
    found: NDArray[np.float64] = -np.expm1(beyond * (tail / mass))
    return found


# Shares of a tail between a value and an end.
_TAILS = np.concatenate(
    (1.0 - 2.0 ** -np.arange(FAR_OUT, 1.0, -1.0), 0.5 * RATIO ** -np.arange(100.0))
)


@lru_cache(maxsize=64)
def _factors(least: float) -> NDArray[np.float64]:
    """Of half-widths, descending: from infinity down to `least`, and 0."""
    steps = max(math.ceil(-math.log(least) / math.log(RATIO)), 0) + 1
    powers = np.concatenate((_FAR, -np.arange(float(steps))))
    return np.concatenate(([np.inf], RATIO**powers, [0.0]))


@lru_cache(maxsize=1)
def _all_factors() -> NDArray[np.float64]:
    """The same over all of float64."""
    most = math.log(np.finfo(float).max) / math.log(RATIO)
    far = [float(_NEAR)]
    while far[-1] * _GROWTH < most:
        far.append(far[-1] * _GROWTH)
    powers = np.array([*reversed(far[1:]), *range(_NEAR, -_NEARER, -1)])
    return np.concatenate(([np.inf], RATIO**powers, [0.0]))
