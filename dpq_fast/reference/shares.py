"""Shares of lattice points: which part of a distribution lies below each of some of them.

The definitions are those of `dpq_fast.data.shares`; between two knots all points have the same. A
distribution is its knots, ascending, and what lies below each of them, from 0 to 1.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import NamedTuple

from dpq_fast.reference.prior import TOTAL, Masses

# Of the scale-free prior, what is uniform, and what is at round numbers: those of so many
# significant digits, in so many of the highest powers of ten.
EVEN, ROUND = 0.35, 0.3
DIGITS, DECADES = 2, 6

Shares = dict[int, float]


class Learning(NamedTuple):
    """How a prior is made of answers: as `dpq_fast.data.shares.Learning`."""

    base: float
    answer: float
    beside: float
    reach: float
    power: float


def scaled(below: Shares) -> Shares:
    """From 0 to 1."""
    knots = sorted(below)
    low, high = below[knots[0]], below[knots[-1]]
    return {knot: (below[knot] - low) / (high - low) for knot in knots}


def at(below: Shares, point: int) -> float:
    """The share below a point."""
    knots = list(below)
    i = bisect_right(knots, point)
    if i == 0:
        return 0.0
    if i == len(knots):
        return 1.0
    left, right = knots[i - 1], knots[i]
    part = (point - left) / (right - left)
    return below[left] + part * (below[right] - below[left])


def even(first: int, end: int) -> Shares:
    """The same for each point from `first` on, before `end`."""
    return {first: 0.0, end: 1.0}


def distances(most: float, unit: float = 1.0) -> list[int]:
    """0, and a unit times powers of the root of 2, as whole numbers up to `most`."""
    found = {0}
    k = 0
    while most > 0:
        power = unit * 2.0 ** (k / 2)
        found.add(round(min(power, most)))
        if power >= most:
            break
        k += 1
    return sorted(found)


def around(center: int, first: int, end: int) -> Shares:
    """Uniform in asinh of the distance from a point."""
    far = distances(max(end - center, center - first + 1))
    knots = {center - d for d in far} | {center + 1 + d for d in far} | {first, end}
    inside = sorted(knot for knot in knots if first <= knot <= end)
    return scaled({knot: math.asinh(knot - center - 0.5) for knot in inside})


def beyond(edge: int, end: int, scale: float, power: float) -> Shares:
    """(1 + d / scale)^-power is farther than d points from an edge, towards `end`."""
    length = abs(end - edge)
    out = {d for d in distances(length, scale) if d <= length} | {length}
    lasting = {d: (1.0 + d / scale) ** -power for d in sorted(out)}
    if end >= edge:
        return scaled({edge + d: 1.0 - share for d, share in lasting.items()})
    return scaled({edge - d: lasting[d] for d in reversed(lasting)})


def only(points: list[int]) -> Shares:
    """The same for each of some points."""
    ordered = sorted(points)
    knots = sorted({knot for point in points for knot in (point, point + 1)})
    return {knot: bisect_left(ordered, knot) / len(points) for knot in knots}


def mixed(parts: list[tuple[float, Shares]]) -> Shares:
    """A mixture; weights need not add up to 1."""
    parts = [(weight, below) for weight, below in parts if weight > 0.0]
    knots = sorted({knot for _, below in parts for knot in below})
    return scaled({knot: sum(w * at(below, knot) for w, below in parts) for knot in knots})


def of_masses(masses: Masses) -> Shares:
    """What numbers of fine points say."""
    starts = zip(masses.knots, masses.starts, strict=True)
    return {knot: start / masses.total for knot, start in starts}


def masses_of(below: Shares, points: int) -> Masses:
    """Numbers of fine points: one for each point, and the rest by shares."""
    knots = sorted({0, points, *below})
    spared = (TOTAL - points) * (1.0 - 2.0**-40)
    share = [at(below, knot) for knot in knots]
    each = [
        1 + int((share[i + 1] - share[i]) * spared / (right - left))
        for i, (left, right) in enumerate(pairwise(knots))
    ]
    return Masses(knots, each)


def no_scale(points: int, first: int) -> Shares:
    """Part uniform, part uniform in asinh of the distance from the number nearest to 0."""
    center = min(max(-first, 0), points - 1)
    parts = [(EVEN, even(0, points)), (1.0 - EVEN - ROUND, around(center, 0, points))]
    return mixed(parts)


def round_numbers(points: int, first: int) -> list[int]:
    """The points of whole numbers with few significant digits."""
    most = max(abs(first), abs(first + points - 1))
    digits = len(str(most))
    found = {0}
    for decade in range(max(digits - DECADES, 0), digits):
        unit = 10 ** max(decade - DIGITS + 1, 0)
        found |= set(range(10**decade, 10 ** (decade + 1), unit))
    return sorted(
        number - first
        for number in found | {-number for number in found}
        if 0 <= number - first < points
    )


def scale_free(points: int, first: int, decimal: bool) -> Shares:
    """`no_scale`, and a part at round numbers where steps are powers of ten."""
    plain = no_scale(points, first)
    found = round_numbers(points, first) if decimal else []
    return mixed([(1.0 - ROUND, plain), (ROUND, only(found))]) if found else plain


def round_between(low: int, high: int, most: int) -> list[int]:
    """Multiples of the least of 1, 2, 5, 10, 20, ... that has at most so many between two."""
    for unit in (digit * 10**k for k in range(len(str(high - low)) + 1) for digit in (1, 2, 5)):
        first, last = -(-low // unit), high // unit
        if last - first + 1 <= most:
            return [k * unit for k in range(first, last + 1)]
    return []


def learned(
    answers: list[int],
    q: list[float],
    base: Shares,
    points: int,
    how: Learning,
    ties: Shares | None = None,
    tied: float = 0.0,
) -> Shares:
    """The prior of a pilot's answers, ascending points, to its levels; a part is at some ties."""
    distinct = sorted(set(answers))
    body = max(1.0 - how.base - how.answer * len(distinct), 0.0)
    parts = [(how.base, base), (how.answer * len(distinct), only(distinct))]
    if ties is not None:
        parts.append((tied, ties))
        body *= 1.0 - tied
    for (low, high), (below, upto) in zip(pairwise(answers), pairwise(q), strict=True):
        mass = body * (upto - below)
        if high - low < 2:
            parts.append((mass, only(sorted({low, high}))))
        else:
            parts.append((mass * (1.0 - how.beside), even(low, high + 1)))
            parts += [(mass * how.beside / 2.0, around(end, low, high + 1)) for end in (low, high)]
    scale = how.reach * max(answers[-1] - answers[0], 1)
    # beyond the ends: half by the scale of all, half as dense as between the two next to it
    lowest, highest = answers[1] - answers[0], answers[-1] - answers[-2]
    for mass, edge, end, gap, within in (
        (q[0], answers[0], 0, lowest, q[1] - q[0]),
        (1.0 - q[-1], answers[-1] + 1, points, highest, q[-1] - q[-2]),
    ):
        if edge == end:
            parts.append((body * mass, base))
        else:
            for each in (max(gap * mass / within, 1.0), scale):
                parts.append((body * mass / 2.0, beyond(edge, end, each, how.power)))
    return mixed(parts)
