"""Intervals around released quantiles."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast.data.histogram import Bins
from dpq_fast.data.order import CoarseOrder
from dpq_fast.data.records import Records
from dpq_fast.data.sample import Sample
from dpq_fast.laws.halting import HaltingLaw
from dpq_fast.mechanisms._calls import release
from dpq_fast.mechanisms.agg_tree import PartialTree, noised, public_lattice
from dpq_fast.mechanisms.estimate import Estimate
from dpq_fast.noise.rng import default_rng
from dpq_fast.noise.threshold import NOISES
from dpq_fast.privacy.accounting import Calibrated
from dpq_fast.privacy.intervals import Calibration, Request
from dpq_fast.privacy.intervals import Search as Spent
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of

# Each half-width is so many times the next one. Measured on evenly spread records (`papers/run.py
# --only intervals`): 1.2 to 1.6 are within 4%.
RATIO = 1.35
# Without a lattice, half-widths go down to this part of the bounds' width.
_FINEST = 2.0**-52
# Without bounds, they are powers of RATIO times the value: all from the -90th (10^-12) to the 8th,
# and few beyond.
_NEAR, _NEARER = 8, 90


class Counted(Protocol):
    """An output law that knows the records that it is of."""

    column: Sample | Records

    def sample(self, rng: Any = None, size: int | None = None) -> Any:
        """Draw outputs."""


class Nested(NamedTuple):
    """Candidates of an interval around a value, from the widest to the narrowest.

    Attributes
    ----------
    low, high : ndarray of float64, shape (J,)
        The ends, in the unit of the records.
    before, upto : ndarray of int64, shape (J,)
        Records below the lower end, and up to the upper one. Private.
    open_low, open_high : ndarray of bool, shape (J,)
        Which ends are not at their bounds, so that a record may lie beyond.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    before: NDArray[np.int64]
    upto: NDArray[np.int64]
    open_low: NDArray[np.bool_]
    open_high: NDArray[np.bool_]


class Ends:
    """What gives the ends of a call: all that is public about them, before a record is read.

    Parameters
    ----------
    calibration : privacy.intervals.Calibration
    levels : Levels
    request : Request
    read_tree : callable, optional
        Reads the records by leaf, where a tree gives the ends.
    most : int, optional
        As for `AggTree`.
    limits : (float, float)
        What outputs may be; infinite without bounds.
    """

    def __init__(
        self,
        calibration: Calibration,
        levels: Levels,
        request: Request,
        read_tree: Callable[[], PartialTree] | None,
        most: int | None,
        limits: tuple[float, float],
    ) -> None:
        self.calibration = calibration
        self._levels = levels
        self._request = request
        self._read_tree = read_tree
        self._most = most
        self._limits = limits

    def around(self, value: Any, law: Counted, rng: np.random.Generator) -> Estimate:
        """The estimate of a value that was drawn from `law`."""
        request, levels = self._request, self._levels
        if self._read_tree is None:
            outputs = levels.distinct(value)
            assert outputs is not None
            ends = [
                _searched(law.column, output, spent, self._limits, rng)
                for output, spent in zip(outputs.tolist(), self.calibration.searches, strict=True)
            ]
            low, high = (levels.restore(each) for each in np.array(ends).T)
        else:
            spent = self.calibration.tree
            assert spent is not None
            tree = noised(self._read_tree(), spent.noise, spent.relation, True, rng, self._most)
            asked = levels.restore(levels.values)
            low, high = tree.quantile_confint(asked, request.confidence, request.covers)
        return Estimate.around(value, low, high, request)


def released(
    value_of: Callable[..., tuple[Calibrated, Callable[[np.random.Generator], Any]]],
    levels: Levels,
    request: Request | None,
    *,
    x: Any,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str,
    max_contributions: int,
    accountant: privacy.Accountant | None,
    rng: Any,
    bounds: tuple[float, float] | None = None,
    resolution: float | None = None,
    counts: Any = None,
    nan_policy: str = "omit",
    workers: int = 1,
    dither: bool | None = None,
    assume_sorted: bool = False,
    expected_n: int | None = None,
    limits: tuple[float, float] | None = None,
) -> Any:
    """A value, or an estimate where one is asked for: one charge, one budget.

    Parameters
    ----------
    value_of : callable
        Takes `epsilon`, `delta` and `rho` of the value; gives its calibration, and what reads the
        records and gives their law.
    levels : Levels
    request : Request or None
    x, bounds, resolution, counts, nan_policy, workers, dither, assume_sorted
        The column, as the value reads it; ends need no dither and no order.
    epsilon, delta, rho, neighbors, max_contributions, accountant, rng
        Of the call.
    expected_n : int, optional
        About how many records there are.
    limits : (float, float), optional
        What outputs may be, where there are no bounds: then each level has a search.

    Returns
    -------
    float, ndarray of float64 or Estimate
    """
    if request is None:
        calibration, law_of = value_of(epsilon=epsilon, delta=delta, rho=rho)
        return release(law_of, calibration, accountant, rng)
    own, _ = privacy.intervals.split(request, epsilon, delta, rho)
    value, law_of = value_of(**own)
    relation = relation_of(neighbors)
    rows = _checks.public_rows(x, counts, relation.n_is_public)
    if expected_n is not None:
        expected_n = _checks.check_count("expected_n", expected_n)
    read_tree, lattice = None, None
    if limits is None:
        limits, lattice = public_lattice(x, bounds, resolution, counts, nan_policy)
        bounded = True
    else:
        bounded = False
    calibration = privacy.intervals.calibrate(
        value,
        levels,
        request,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
        points=None if lattice is None else lattice.points,
        bounded=bounded,
        expected_n=expected_n or rows,
    )
    if calibration.tree is not None:
        read_tree = PartialTree.reader(
            x,
            bounds=limits,
            height=calibration.tree.height,
            branching=calibration.tree.branching,
            resolution=resolution,
            counts=counts,
            nan_policy=nan_policy,
            workers=workers,
        )
    ends = Ends(calibration, levels, request, read_tree, rows, limits)
    generator = default_rng(rng)
    privacy.charge(accountant, calibration)
    law = law_of(generator)
    return ends.around(law.sample(generator), law, generator)


def _searched(
    records: Sample | Records,
    value: float,
    spent: Spent,
    limits: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[float, float]:
    """The interval of one search around a value."""
    if isinstance(records, Records):
        return halted(*_nested_of_records(records, value, spent, limits), spent, rng)
    return halted(*nested(records.coarse(), value, spent), spent, rng)


def halted(n: int, around: Nested, spent: Spent, rng: np.random.Generator) -> tuple[float, float]:
    """The last candidate before the search halts; see `privacy.intervals`."""
    enough, needed = spent.thresholds(n)
    queries = np.maximum(
        np.where(around.open_low, around.before - enough, -np.inf),
        np.where(around.open_high, needed - around.upto, -np.inf),
    )
    lengths = np.ones(queries.size, dtype=np.int64)
    law = HaltingLaw(queries + spent.margin, lengths, *spent.rates, NOISES["exponential"])
    halt = law.draw(rng)  # not at the first one, where no record may lie beyond
    last = halt - 1 if halt >= 0 else queries.size - 1
    return float(around.low[last]), float(around.high[last])


@lru_cache(maxsize=64)
def half_widths(points: int) -> NDArray[np.int64]:
    """Half-widths in lattice points, descending to 0."""
    steps = math.ceil(math.log(points) / math.log(RATIO)) + 1
    widths = np.unique([0, *(math.ceil(RATIO**step) for step in range(steps))])[::-1]
    widths = widths[widths < points]
    return np.concatenate(([points], widths)).astype(np.int64)


def nested(order: CoarseOrder, value: float, spent: Spent) -> tuple[int, Nested]:
    """Number of records, and candidates around a value, by order statistics."""
    low, high = order.bounds
    widths: NDArray[Any]
    if order.lattice is None:
        widths = np.concatenate(([np.inf], (high - low) * _parts(), [0.0]))
        lower, upper = np.maximum(value - widths, low), np.minimum(value + widths, high)
        first, last, behind = low, high, np.nextafter(upper, np.inf)
    else:
        point = order.lattice.locate(value)
        assert point is not None  # values are decoded from points
        first, last = 0, order.lattice.points - 1
        widths = half_widths(order.lattice.points)
        lower, upper = np.maximum(point - widths, first), np.minimum(point + widths, last)
        behind = upper + 1
    if not spent.below:
        lower = np.full_like(lower, first)
    if not spent.above:
        upper, behind = np.full_like(upper, last), np.full_like(behind, behind[0])
    ranks = order.ranks_of(np.concatenate((lower, behind)))
    before, upto = np.split(ranks, 2)
    open_low, open_high = lower > first, upper < last
    if order.lattice is not None:
        lower, upper = order.lattice.decode(lower), order.lattice.decode(upper)
    return order.n, Nested(lower, upper, before, upto, open_low, open_high)


@lru_cache(maxsize=1)
def _parts() -> NDArray[np.float64]:
    """Half-widths as parts of a width."""
    steps = math.ceil(-math.log(_FINEST) / math.log(RATIO))
    return RATIO ** -np.arange(float(steps))


@lru_cache(maxsize=1)
def _exponents() -> NDArray[np.float64]:
    """Of RATIO, descending: steps of 1 around 0, and then of ever more, over all of float64.

    Where nothing is known of the scale, each candidate that is far too wide costs width.
    """
    most = math.log(np.finfo(float).max) / math.log(RATIO)
    far = [float(_NEAR)]
    while far[-1] * 1.5 < most:
        far.append(far[-1] * 1.5)
    return np.array([*reversed(far[1:]), *range(_NEAR, -_NEARER, -1)])


def _nested_of_records(
    records: Records, value: float, spent: Spent, limits: tuple[float, float]
) -> tuple[int, Nested]:
    """Candidates around a value, by counting records: they may be anywhere on the line."""
    low, high = limits
    # The scale is that of the value: public.
    scale = max(abs(value), sys.float_info.min)
    with np.errstate(over="ignore"):
        widths = np.concatenate(([np.inf], scale * RATIO ** _exponents(), [0.0]))
        lower = np.maximum(value - widths, low) if spent.below else np.full(widths.size, low)
        upper = np.minimum(value + widths, high) if spent.above else np.full(widths.size, high)
    edges = np.unique(np.concatenate((lower, np.nextafter(upper, np.inf))))
    counts = np.cumsum(records.count(Bins.of(np.concatenate(([-np.inf], edges, [np.inf])))))
    before = counts[np.searchsorted(edges, lower)]
    upto = counts[np.searchsorted(edges, np.nextafter(upper, np.inf))]
    return int(counts[-1]), Nested(lower, upper, before, upto, lower > low, upper < high)
