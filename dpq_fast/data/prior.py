r"""Priors: a public guess at the distribution of the records, as masses of lattice points.

Without a prior each lattice point stands for the same number of fine points. With one, point k
stands for :math:`c_k \ge 1` of them, as many as the guess gives it: fine points are numbered from
low to high, those of point k from :math:`C_k = c_0 + \dots + c_{k-1}` on. Records are spread over
the fine points of their point, mechanisms see integers on that line, and an output is the point
that its fine point belongs to.

**Why it costs no privacy.** Let T take a column to fine points: rounding, a dither that takes
neighbors to neighbors ("Dither" in `dpq_fast.privacy`), and for each record by itself the numbers
:math:`C_k`, which are worked out from public arguments before a record is read. So columns that
differ in one record become, given the dither, columns of integers that differ in one record. A
mechanism on the integers from 0 to :math:`\sum c_k - 1` sees neighbors there, whatever T is, and
all that is proved of it holds: sensitivities, ranges, smooth sensitivities. What is released is its
law given the dither, averaged over it; the way back, from a fine point to its point, is
post-processing.

No c is 0, so that each point can be released whatever the records are. For the exponential
mechanism masses are a base measure: where no record has a dither, o is released with probability
proportional to :math:`c_o e^{\epsilon u(o) / 2 \Delta}`, and the normalizer moves by as much as
without. `ind_exp` does not need the line: it adds :math:`\ln c_o`, which is public, to the exponent
of o (`dpq_fast.privacy.ind_exp`).

The guess decides how good answers are, never how private. It is void of privacy where it was made
by a look at the records, like all that is public.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import PRIOR_MASS, SCALE_FREE, PriorPart

# Fine points of all points together: exact in float64.
TOTAL = 2**53
# Each point has one fine point for itself, whatever the prior. On so many points that makes 1/8 of
# all uniform; on so many as there are by default, 1/128.
MOST_POINTS, DEFAULT_POINTS = 2**50, 2**46
# On lattices of so many points each has a mass of its own. On others mass is even between knots: so
# many quantiles of the prior, at even steps of ln(p / (1 - p)) up to LOGIT on both sides, and so
# many points spread evenly.
FEW_POINTS, KNOTS, LOGIT = 2**12, 2**11, 36.0
# The shortest interval that holds half of the prior is looked for between so many quantiles.
HALVES = 16
# So many halvings of the bounds find a quantile: lattices are coarser.
HALVINGS = 64


class Prior:
    """A mixture of distributions, each cut off at the bounds; two of the same sources are equal.

    Parameters
    ----------
    parts : tuple of PriorPart
        At least one, by `_checks.check_prior`.
    bounds : (float, float)
        Finite.
    """

    __slots__ = ("_key", "bounds", "parts")

    def __init__(self, parts: tuple[PriorPart, ...], bounds: tuple[float, float]) -> None:
        self.parts = parts
        self.bounds = bounds
        # by identity: a source need not be hashable, and is kept as long as this is
        self._key = bounds, tuple((part.weight, part.kind, id(part.source)) for part in parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prior) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        parts = [(part.weight, part.source or part.kind) for part in self.parts]
        return f"Prior({parts if len(parts) > 1 else parts[0][1]!r}, bounds={self.bounds})"

    @property
    def is_scale_free(self) -> bool:
        """Whether it is the prior that is given by points: `dpq_fast.data.shares`."""
        return self.parts[0].kind == SCALE_FREE

    def shares(self, x: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
        """The mass below each of some ascending numbers, of all that is between two ends."""
        total = np.zeros(x.size)
        for part in self.parts:
            found = part.values(np.concatenate(([low], x, [high])), self.bounds)
            mass = float(found[-1] - found[0])
            if part.kind == "cdf" and mass < PRIOR_MASS:
                raise ValueError(
                    f"prior must have a mass of at least {PRIOR_MASS} between the bounds "
                    f"{self.bounds}, got {mass}"
                )
            total += part.weight * ((found[1:-1] - found[0]) / mass)
        return np.maximum.accumulate(np.clip(total, 0.0, 1.0))

    def spread(self) -> float:
        """Twice the width of the shortest interval that holds half of the mass.

        That of a uniform prior is the range. So it is where half of the mass is at one number.
        """
        low, high = self.bounds
        levels = np.arange(2 * HALVES + 1) / (2.0 * HALVES)
        lower, upper = np.full(levels.size, low), np.full(levels.size, high)
        for _ in range(HALVINGS):
            middle = lower + (upper - lower) / 2.0
            reached = self.shares(middle, low, high) >= levels
            lower, upper = np.where(reached, lower, middle), np.where(reached, middle, upper)
        upper[0] = low
        widths = upper[HALVES:] - upper[: HALVES + 1]
        return 2.0 * float(widths.min()) or high - low

    def masses(self, points: int, borders: Callable[[NDArray[Any]], NDArray[Any]]) -> Masses:
        """Masses of the points of a lattice; ``borders(k)`` is halfway from k - 1 to k."""
        low, high = borders(np.array([0, points])).tolist()

        def share(k: NDArray[np.int64]) -> NDArray[np.float64]:
            return self.shares(borders(k), low, high)

        if points <= FEW_POINTS:
            knots = np.arange(points + 1)
        else:
            levels = 1.0 / (1.0 + np.exp(-np.linspace(-LOGIT, LOGIT, KNOTS)))
            lower, upper = np.zeros(KNOTS, dtype=np.int64), np.full(KNOTS, points)
            for _ in range(points.bit_length()):
                middle = (lower + upper) // 2
                reached = share(middle) >= levels
                upper = np.where(reached, middle, upper)
                lower = np.where(reached, lower, np.minimum(middle + 1, upper))
            even = np.arange(KNOTS + 1) * points // KNOTS
            # the points before them, too: a point may have a large mass by itself
            knots = np.unique(np.concatenate((upper, np.maximum(upper - 1, 0), even)))
        lengths = np.diff(knots)
        # No sum of rounded shares is above 1 by more than 2^-40.
        spared = (TOTAL - points) * (1.0 - 2.0**-40)
        each = 1 + (np.diff(share(knots)) * spared / lengths).astype(np.int64)
        return Masses(knots, each)


class Masses:
    """Numbers of fine points: `each` for every point from one knot to the next.

    Parameters
    ----------
    knots : ndarray of int64, shape (J + 1,)
        Ascending points, from 0 to the number of points.
    each : ndarray of int64, shape (J,)
        At least 1; in all at most 2^53.

    Attributes
    ----------
    firsts : ndarray of int64, shape (J,)
        The first point of each segment, with those of one mass put together.
    each : ndarray of int64, shape (J,)
        Fine points of each of its points.
    starts : ndarray of int64, shape (J,)
        Fine points below the segment.
    points, total : int
        How many points there are, and fine points of them all.
    """

    __slots__ = ("_key", "each", "firsts", "points", "starts", "total")

    def __init__(self, knots: NDArray[np.int64], each: NDArray[np.int64]) -> None:
        below = np.concatenate(([0], np.cumsum(each * np.diff(knots))))
        first = np.append(True, each[1:] != each[:-1])
        self.firsts: NDArray[np.int64] = knots[:-1][first]
        self.each: NDArray[np.int64] = each[first]
        self.starts: NDArray[np.int64] = below[:-1][first]
        for kept in (self.firsts, self.each, self.starts):
            kept.flags.writeable = False
        self.points, self.total = int(knots[-1]), int(below[-1])
        self._key = self.points, self.firsts.tobytes(), self.each.tobytes()

    def __repr__(self) -> str:
        return f"Masses(points={self.points})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Masses) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def of(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """Fine points of each point."""
        found: NDArray[np.int64] = self.each[self._segment(points)]
        return found

    def below(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """Fine points below each point, and all of them for the one past the last."""
        segment = self._segment(points)
        found: NDArray[np.int64] = self.starts[segment]
        return found + (points - self.firsts[segment]) * self.each[segment]

    def points_of(self, fine: NDArray[np.int64]) -> NDArray[np.int64]:
        """The point of each fine point; -1 of -1."""
        segment = np.maximum(np.searchsorted(self.starts, fine, side="right") - 1, 0)
        found: NDArray[np.int64] = self.firsts[segment]
        return found + (fine - self.starts[segment]) // self.each[segment]

    def spread(self, dithered: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
        """The fine point of each of some dithered points k 2^bits + u, u uniform below 2^bits.

        Of the c fine points of k it is the one of number ceil((u + 1) c / 2^bits) - 1: the last one
        where there is no dither. It ascends with k and u.
        """
        points = dithered >> bits
        parts = (dithered & ((1 << bits) - 1)) + 1
        each = self.of(points)
        whole, rest = each >> bits, each & ((1 << bits) - 1)  # parts * each may overflow
        return self.below(points) + parts * whole + ((parts * rest - 1) >> bits)

    def at(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """About how many fine points lie below a place, in points from the border of the first."""
        knots = np.append(self.firsts, self.points).astype(np.float64)
        return np.interp(places, knots, np.append(self.starts, self.total).astype(np.float64))

    def _segment(self, points: NDArray[np.int64]) -> NDArray[np.intp]:
        return np.searchsorted(self.firsts, points, side="right") - 1
