r"""Shares of lattice points: distributions made of public facts and of what was released.

A prior need not be a function of numbers. Here it is given by points: which share lies below a
knot, linear between knots (`Shares`). Two such priors are made here.

**Scale-free** (`scale_free`), for whoever knows bounds and no scale. Where records fill a small
part of the bounds, a uniform base measure has next to nothing there, and where many share a number,
next to nothing at that number; the logarithm of what it has is what an exponential mechanism loses,
in ranks times epsilon. So a third is uniform, a third is uniform in
:math:`\operatorname{asinh}` of the distance, in points, from o, the number within the bounds that
is nearest to 0: each factor of two away from o has as much as the next one; and a third is at round
numbers, of up to two significant digits. In a dense place that costs next to nothing, as weights
around a target are scaled alike; elsewhere it costs the logarithm of the number of scales and of
digits.

**Learned** (`learned`), from the released answers of a pilot. Between two answers lies the mass
between their levels; beyond the outermost it falls with the distance; each answer is likely to be
a number that many share; and a small part is what the pilot began with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.prior import TOTAL, Masses

# Of the scale-free prior: the parts that are uniform and at round numbers, the most significant
# digits of these, and how many powers of ten below the largest number there are any.
EVEN, ROUND = 0.35, 0.3
DIGITS, DECADES = 2, 6
# Knots of what falls with distance, for each factor of two.
PER_OCTAVE = 2


class Shares(NamedTuple):
    """A distribution on the points 0, 1, ..., P - 1, even between knots.

    Attributes
    ----------
    knots : ndarray of int64, shape (J + 1,)
        Ascending.
    below : ndarray of float64, shape (J + 1,)
        The share of points below each knot, ascending from 0 to 1.
    """

    knots: NDArray[np.int64]
    below: NDArray[np.float64]

    @classmethod
    def even(cls, first: int, end: int) -> Shares:
        """The same for each point from `first` to before `end`."""
        return cls(np.array([first, end]), np.array([0.0, 1.0]))

    @classmethod
    def around(cls, center: int, first: int, end: int) -> Shares:
        """Uniform in asinh of the distance from a point, over the points from `first` on."""
        far = _powers(max(end - center, center - first + 1))
        knots = np.concatenate((center - far, center + 1 + far, [first, end]))
        knots = np.unique(np.clip(knots, first, end))
        return cls(knots, _rising(np.arcsinh(knots - center - 0.5)))

    @classmethod
    def beyond(cls, edge: int, end: int, scale: float, power: float) -> Shares:
        """Falling with the distance from an edge: (1 + d / scale)^-power is farther than d points.

        Over the points from `edge` up to before `end`, or down from `edge` - 1 to `end`.
        """
        length = abs(end - edge)
        out = np.append(_powers(length, scale), length)
        out = np.unique(out[out <= length])
        lasting = (1.0 + out / scale) ** -power
        if end >= edge:
            return cls(edge + out, _rising(1.0 - lasting))
        return cls(edge - out[::-1], _rising(lasting[::-1]))

    @classmethod
    def at(cls, points: NDArray[np.int64]) -> Shares:
        """The same for each of some ascending points, and nothing for others."""
        knots = np.unique(np.concatenate((points, points + 1)))
        counted = np.searchsorted(points, knots)
        return cls(knots, counted / points.size)

    @classmethod
    def mixed(cls, parts: Sequence[tuple[float, Shares]]) -> Shares:
        """The mixture of (weight, distribution) pairs; weights add up to what they like."""
        parts = [part for part in parts if part[0] > 0.0]
        knots = np.unique(np.concatenate([each.knots for _, each in parts]))
        below = np.zeros(knots.size)
        for weight, each in parts:
            below += weight * np.interp(knots, each.knots, each.below)
        return cls(knots, _rising(below))

    @classmethod
    def of_masses(cls, masses: Masses) -> Shares:
        """What numbers of fine points say."""
        knots = np.append(masses.firsts, masses.points)
        return cls(knots, np.append(masses.starts, masses.total) / masses.total)

    def masses(self, points: int) -> Masses:
        """Numbers of fine points: `Masses` for all points, of which knots may leave some out."""
        knots = np.unique(np.concatenate(([0, points], self.knots)))
        below = np.interp(knots, self.knots, self.below)
        # no sum of rounded shares is above 1 by more than 2^-40
        spared = (TOTAL - points) * (1.0 - 2.0**-40)
        each = 1 + (np.diff(below) * spared / np.diff(knots)).astype(np.int64)
        return Masses(knots, each)


def no_scale(points: int, first: int) -> Shares:
    """The scale-free prior of a lattice but for round numbers.

    Parameters
    ----------
    points : int
        Number of points.
    first : int
        What multiple of the step the lowest point is.
    """
    center = min(max(-first, 0), points - 1)
    around = Shares.around(center, 0, points)
    return Shares.mixed([(EVEN, Shares.even(0, points)), (1.0 - EVEN - ROUND, around)])


def scale_free(points: int, first: int, decimal: bool) -> Shares:
    """The scale-free prior of a lattice.

    Parameters
    ----------
    points, first : int
        As for `no_scale`.
    decimal : bool
        Whether the step is a power of ten; there are no round numbers on other lattices.
    """
    plain = no_scale(points, first)
    if not decimal or not (found := round_numbers(points, first)).size:
        return plain
    return Shares.mixed([(1.0 - ROUND, plain), (ROUND, Shares.at(found))])


def round_numbers(points: int, first: int) -> NDArray[np.int64]:
    """The points of up to `DIGITS` significant digits, in the highest `DECADES` decades."""
    most = max(abs(first), abs(first + points - 1))
    decades = len(str(most))
    found = [np.zeros(1, dtype=np.int64)]
    for decade in range(max(decades - DECADES, 0), decades):
        least = min(decade, DIGITS - 1)
        found.append(np.arange(10**least, 10 ** (least + 1)) * 10 ** (decade - least))
    above = np.concatenate(found)
    points_of = np.concatenate((-above[:0:-1], above)) - first
    inside: NDArray[np.int64] = points_of[(points_of >= 0) & (points_of < points)]
    return inside


def round_between(low: int, high: int, most: int) -> NDArray[np.int64]:
    """The multiples between two numbers of the least unit that has at most so many there.

    Units are 1, 2 and 5 times the powers of ten.
    """
    for decade in range(len(str(high - low)) + 1):
        for digit in (1, 2, 5):
            unit = digit * 10**decade
            first, last = -(-low // unit), high // unit
            if last - first < most:
                found: NDArray[np.int64] = np.arange(first, last + 1) * unit
                return found
    return np.zeros(0, dtype=np.int64)


class Learning(NamedTuple):
    """How a prior is made of a pilot's answers.

    Attributes
    ----------
    base : float
        The part that is what the pilot began with.
    answer : float
        The part at each answer.
    beside : float
        Of what lies between two answers, the part that is denser towards them.
    reach : float
        The scale of what lies beyond the outermost answers, as a part of their distance.
    power : float
        How it falls.
    """

    base: float
    answer: float
    beside: float
    reach: float
    power: float


def learned(
    answers: NDArray[np.int64],
    q: NDArray[np.float64],
    base: Shares,
    points: int,
    how: Learning,
    ties: Shares | None = None,
    tied: float = 0.0,
) -> Shares:
    """The prior that a pilot's answers make.

    Parameters
    ----------
    answers : ndarray of int64, shape (k,)
        Points, ascending. Released: what is made of them is public.
    q : ndarray of float64, shape (k,)
        Their levels, ascending.
    base : Shares
        What the pilot began with.
    points : int
        Number of points.
    how : Learning
    ties, tied : Shares, float
        Where records may be tied, beside the answers, and the part that is there.
    """
    low, high = int(answers[0]), int(answers[-1])
    shared = np.unique(answers)
    scale = how.reach * max(high - low, 1)
    body = max(1.0 - how.base - how.answer * shared.size, 0.0)
    parts = [(how.base, base), (how.answer * shared.size, Shares.at(shared))]
    if ties is not None:
        body -= tied * body
        parts.append((tied, ties))
    for first, end, mass in zip(
        answers[:-1].tolist(), answers[1:].tolist(), np.diff(q), strict=True
    ):
        if end - first < 2:  # what lies between is at the two of them
            parts.append((body * mass, Shares.at(np.unique([first, end]))))
            continue
        toward = how.beside * mass / 2.0
        parts += [
            (body * (mass - 2.0 * toward), Shares.even(first, end + 1)),
            (body * toward, Shares.around(first, first, end + 1)),
            (body * toward, Shares.around(end, first, end + 1)),
        ]
    for mass, edge, far, beside in (
        (q[0], low, 0, 0),
        (1.0 - q[-1], high + 1, points, -2),
    ):
        if edge == far:
            parts.append((body * mass, base))
            continue
        # half as if records went on as between the two answers next to it
        gap, within = int(answers[beside + 1] - answers[beside]), q[beside + 1] - q[beside]
        near = max(gap * mass / within, 1.0)
        parts += [
            (body * mass / 2.0, Shares.beyond(edge, far, near, how.power)),
            (body * mass / 2.0, Shares.beyond(edge, far, scale, how.power)),
        ]
    return Shares.mixed(parts)


def _powers(most: int, unit: float = 1.0) -> NDArray[np.int64]:
    """0, and some powers of two times a unit, up to about `most`."""
    octaves = max(math.log2(most / unit), 0.0) if most > 0 else 0.0
    powers = unit * 2.0 ** (np.arange(math.ceil(octaves * PER_OCTAVE) + 1) / PER_OCTAVE)
    rounded = np.rint(np.minimum(powers, most)).astype(np.int64)
    return np.unique(np.append(rounded, 0))


def _rising(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ascending numbers as shares, from 0 to 1."""
    rise = np.maximum.accumulate(values) - values[0]
    return rise / rise[-1] if rise[-1] > 0.0 else np.linspace(0.0, 1.0, values.size)
