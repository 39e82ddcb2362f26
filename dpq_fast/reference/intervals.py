"""Intervals around released quantiles: candidate by candidate, counts by loops.

What is covered and why: `privacy.intervals`. [Dur23] is Durfee, "Unbounded Differentially Private
Quantile and Maximum Estimation".
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpq_fast import privacy
from dpq_fast._checks import public_rows
from dpq_fast.privacy.accounting import Calibrated, mechanism_of
from dpq_fast.privacy.intervals import Request, Search
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of
from dpq_fast.reference._calls import default_rng, release
from dpq_fast.reference.above_threshold import AboveThresholdLaw, draw_noise
from dpq_fast.reference.lattice import Lattice
from dpq_fast.reference.sample import Placed, reader

# Ratio of one half-width to the next, and the powers of it that are above 1. Of a single level with
# bounds, of one share of the records to the next, after those that leave 2^-5 to 2^-2 of a tail.
RATIO, WIDE = 1.35, (7, 3)
# Least factor of a half-width without a lattice.
FINEST = 2.0**-52
# Without bounds: powers one by one from -89 to 8, and beyond, each so many times the one before.
POWERS, GROWTH = range(-89, 9), 1.5
# Least part of the mean scale that a level's half-widths have.
LEAST = 0.125
# Of a single level: margins that its ends are away, and least ratio of one side to the other.
AWAY, NARROW = 2.0, 0.0625
LARGEST = sys.float_info.max


class Estimate(NamedTuple):
    """An answer and an interval around it, as `dpq_fast.Estimate`."""

    value: Any
    low: Any
    high: Any
    confidence: float
    covers: str


class Column(NamedTuple):
    """The records that intervals are about.

    Attributes
    ----------
    records : list
        Coarse lattice points, or numbers.
    limits : (number, number)
        The lowest and the highest output, in the same unit.
    lattice : Lattice or None
        With the prior that a value was drawn by.
    bounded : bool
        Whether the limits are bounds, which tell a scale.
    """

    records: list[Any]
    limits: tuple[float, float]
    lattice: Lattice | None
    bounded: bool = True

    @classmethod
    def of(cls, data: Placed) -> Column:
        """Records that were placed without a dither; the lattice keeps its prior."""
        limits = data.bounds if data.lattice is None else (0, data.lattice.points - 1)
        return cls(data.even().records.tolist(), limits, data.lattice)


class Candidate(NamedTuple):
    """An interval for each level, in lattice points or numbers."""

    ends: list[tuple[float, float]]


def scales(values: Sequence[float], spent: Search, column: Column) -> list[tuple[float, float]]:
    """What half-widths below and above each value are multiples of: values' slope there."""
    q = spent.q.tolist()
    if values[0] < values[-1]:
        least = LEAST * (values[-1] - values[0]) / (q[-1] - q[0])
    elif not column.bounded:
        least = max(abs(value) for value in values) or 1.0
    elif column.lattice is None:
        least = column.limits[1] - column.limits[0]
    else:
        least = column.lattice.points
    found = []
    for i, level in enumerate(q):
        lower = max([k for k, other in enumerate(q) if other <= level - spent.apart], default=0)
        upper = min(
            [k for k, other in enumerate(q) if other >= level + spent.apart], default=len(q) - 1
        )
        slopes = [
            None if k == i else abs(values[i] - values[k]) / abs(level - q[k])
            for k in (lower, upper)
        ]
        known = [slope for slope in slopes if slope is not None]
        # a side that is not known is as the other one
        sides = [max([slope] if slope is not None else known, default=least) for slope in slopes]
        below, above = (min(max(s, least, sys.float_info.min), LARGEST) for s in sides)
        if len(q) == 1:
            if spent.above[0]:
                below *= narrow(1.0 - level, spent)
            if spent.below[0]:
                above *= narrow(level, spent)
        found.append((below, above))
    return found


def narrow(tail: float, spent: Search) -> float:
    """What a side is narrowed by, if beyond the other one lies this share of the records."""
    c = AWAY * spent.apart
    return 1.0 if c == 0.0 else max(NARROW, (tail - c) / (tail + c))


def factors(column: Column, widest: float) -> list[float]:
    """Of half-widths, from infinity down to 0."""
    if not column.bounded:
        powers = [float(POWERS[-1])]
        while powers[-1] * GROWTH < math.log(LARGEST) / math.log(RATIO):
            powers.append(powers[-1] * GROWTH)
        powers = [*reversed(powers[1:]), *reversed(POWERS)]
    else:
        least = FINEST if column.lattice is None else 1.0 / widest
        steps = max(math.ceil(-math.log(least) / math.log(RATIO)), 0) + 1
        powers = [*WIDE, *(-float(step) for step in range(steps))]
    return [math.inf, *(RATIO**power for power in powers), 0.0]


def by_shares(value: float, spent: Search, column: Column) -> list[Candidate]:
    """Around one value: ends that have equal shares of the records between them and the value."""
    first, last = column.limits
    q, lattice = float(spent.q[0]), column.lattice
    low_open, high_open = bool(spent.below[0]), bool(spent.above[0])
    tail = min([q] * low_open + [1.0 - q] * high_open, default=1.0)
    shares = [tail * (1.0 - 2.0**-k) for k in range(5, 1, -1)]
    shares += [tail * 0.5 * RATIO**-k for k in range(100)]
    if lattice is None:
        begin, start, stop, end = first, value, value, last
    else:
        start, stop = lattice.start(int(value)), lattice.start(int(value) + 1)
        begin, end = 0, lattice.fine_points

    def place(at: float, limit: float, share: float, beyond: float) -> float:
        mass = abs(limit - at) / (end - begin)
        part = 1.0
        if beyond > 0.0 and mass > 0.0:  # like the prior next to the value, and all at the limit
            inside = min(share / beyond, 1.0)
            part = -math.expm1(math.log1p(-inside) * (beyond / mass)) if inside < 1.0 else 1.0
        found = at + (limit - at) * part
        if lattice is None:
            return found
        return int(lattice.points_of(np.array([max(min(int(found), end - 1), 0)]))[0])

    found = [(first, last)]
    for share in shares:
        low, high = found[-1]
        if low_open:
            low = max(low, min(place(start, begin, share, q), value))
        if high_open:
            high = min(high, max(place(stop, end, share, 1.0 - q), value))
        found.append((low, high))
    found.append((value if low_open else first, value if high_open else last))
    return [Candidate([ends]) for k, ends in enumerate(found) if k == 0 or ends != found[k - 1]]


def candidates(values: Sequence[float], spent: Search, column: Column) -> list[Candidate]:
    """From the widest to the narrowest; values in the unit of the records."""
    if column.bounded and len(values) == 1:
        return by_shares(values[0], spent, column)
    first, last = column.limits
    sized = scales(values, spent, column)
    found = []
    for factor in factors(column, max(map(max, sized))):
        ends = []
        for value, (below, above), low_open, high_open in zip(
            values, sized, spent.below.tolist(), spent.above.tolist(), strict=True
        ):
            left, right = below * factor, above * factor
            if column.lattice is not None and factor < math.inf:
                left, right = math.floor(left), math.floor(right)
            low = max(value - left, first) if low_open else first
            high = min(value + right, last) if high_open else last
            ends.append((low, high))
        found.append(Candidate(ends))
    return found


def query(candidate: Candidate, spent: Search, column: Column) -> float:
    """By how many records some end is beyond where it may be; -inf where all are at bounds."""
    first, last = column.limits
    thresholds = spent.thresholds(len(column.records))
    beyond: list[Fraction] = []
    for (low, high), (enough, needed) in zip(candidate.ends, thresholds, strict=True):
        if low > first:
            beyond.append(sum(record < low for record in column.records) - enough)
        if high < last:
            beyond.append(needed - sum(record <= high for record in column.records))
    return float(max(beyond)) if beyond else -math.inf


def gaps(values: Sequence[float], spent: Search, column: Column) -> list[float]:
    """Queries minus threshold: where they are large, the search halts."""
    return [
        query(candidate, spent, column) + spent.margin
        for candidate in candidates(values, spent, column)
    ]


def log_probs(values: Sequence[float], spent: Search, column: Column) -> list[float]:
    """Log-probability of each candidate to be released."""
    law = AboveThresholdLaw(gaps(values, spent, column), *spent.rates, "exponential")
    halts: list[int | None] = [*range(1, len(law.gaps)), None]
    return [law.log_prob(halt) for halt in halts]


def searched(
    values: Sequence[float], spent: Search, column: Column, rng: np.random.Generator
) -> tuple[list[float], list[float]]:
    """The ends of the last candidate before AboveThreshold halts, [Dur23] Algorithm 1."""
    if column.lattice is not None:
        values = [column.lattice.nearest(value) for value in values]
    threshold = draw_noise("exponential", spent.rates[0], rng)
    released = None
    for candidate in candidates(values, spent, column):
        noisy = query(candidate, spent, column) + spent.margin
        if noisy + draw_noise("exponential", spent.rates[1], rng) >= threshold:
            break
        released = candidate
    assert released is not None  # the first one has all ends at their bounds
    low, high = zip(*released.ends, strict=True)
    if column.lattice is None:
        return list(low), list(high)
    return [column.lattice.value(point) for point in low], [
        column.lattice.value(point) for point in high
    ]


def released(
    value_of: Callable[..., tuple[Calibrated, Callable[[np.random.Generator], Any]]],
    levels: Levels,
    request: Request | None,
    column_of: Callable[[], Column],
    *,
    x: Any,
    counts: Any,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str,
    max_contributions: int,
    expected_n: int | None,
    accountant: privacy.Accountant | None,
    rng: Any,
) -> Any:
    """A value, or an estimate where one is asked for: one charge, one budget.

    Parameters
    ----------
    value_of : callable
        Takes `epsilon`, `delta` and `rho` of the value; gives its calibration, and its law.
    levels : Levels
    request : Request or None
    column_of : callable
        Reads the records.
    x, counts, epsilon, delta, rho, neighbors, max_contributions, expected_n, accountant, rng
        Of the call.

    Returns
    -------
    float, ndarray of float64 or Estimate
    """
    if request is None:
        if expected_n is not None:
            raise ValueError("confidence must be given with expected_n, got None")
        calibration, law_of = value_of(epsilon=epsilon, delta=delta, rho=rho)
        return release(law_of, calibration, accountant, rng)
    if expected_n is None:
        expected_n = public_rows(x, counts, relation_of(neighbors).n_is_public)
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
    generator = default_rng(rng)
    privacy.charge(accountant, calibration, mechanism_of(value))
    answer = law_of(generator).sample(generator)
    values = levels.distinct(answer)
    assert values is not None
    low, high = searched(values.tolist(), calibration.search, column_of(), generator)
    low, high = (levels.restore(np.array(each, dtype=np.float64)) for each in (low, high))
    return Estimate(answer, low, high, request.confidence, request.covers)


def undithered(x: Any, bounds: Any = None, resolution: Any = None, **column: Any) -> Column:
    """The records of a column with bounds; arguments as of `sample.reader`."""
    read = reader(x, bounds, resolution, **(column | {"dither": False}))
    return Column.of(read(None))
