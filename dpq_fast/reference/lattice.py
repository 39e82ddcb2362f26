"""The public lattice of outputs: the multiples of a spacing inside the bounds.

A multiple k of a step s is the number k s, exact and then rounded once to float64. Where 1/s is
an integer n but for rounding, as for 0.01, the step is taken as 1/n: multiples are decimals then.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import (
    SCALE_FREE,
    PriorPart,
    check_bounds,
    check_flag,
    check_nonnegative,
    check_prior,
)
from dpq_fast.reference.prior import DEFAULT_POINTS, MOST_POINTS, Masses, masses, spread
from dpq_fast.reference.shares import Shares, masses_of, scale_free

MAX_POINTS, LARGEST = 2**53, sys.float_info.max
# The default step is the power of ten nearest to 10^-DIGITS of the range.
DIGITS = 6
# With a prior that knows no scale.
FINE_DIGITS = 12
# Most dither bits of a record.
BITS = 31


def points_per_unit(step: float) -> int:
    """The integer n that 1/step is, within four of its last digits; 0 if there is none."""
    inverse = 1.0 / step
    if not 1.0 <= inverse < 2.0**53:
        return 0
    return round(inverse) if abs(inverse - round(inverse)) <= 4.0 * math.ulp(inverse) else 0


def exact_step(step: float) -> Fraction:
    """What multiples are multiples of."""
    per_unit = points_per_unit(step)
    return Fraction(1, per_unit) if per_unit else Fraction(step)


def multiple_value(k: float, step: float) -> float:
    """The number of a multiple; infinite beyond float64."""
    try:
        return float(Fraction(float(k)) * exact_step(step))
    except OverflowError:
        return math.copysign(math.inf, k)


def nearest_multiple(x: float, step: float) -> float:
    """The multiple nearest to a number, the even one at a tie; infinite beyond float64.

    As all do it, in float64: one rounding of the quotient, and one to an integer.
    """
    per_unit = points_per_unit(step)
    position = x * per_unit if per_unit else x / step
    return float(round(position)) if math.isfinite(position) else position


def first_multiple(low: float, step: float) -> int:
    """The least multiple whose number is not below `low`."""
    return _placed(bisect_left, low, step)


def last_multiple(high: float, step: float) -> int:
    """The largest multiple whose number is not above `high`."""
    return _placed(bisect_right, high, step) - 1


def _placed(search: Callable[..., int], end: float, step: float) -> int:
    # A multiple and its number are rounded by less than a step: these are enough to look at.
    about = math.floor(Fraction(end) / exact_step(step))
    near = range(about - 3, about + 5)
    return near.start + search(near, end, key=lambda k: multiple_value(k, step))


@dataclass(frozen=True)
class Lattice:
    """The multiples first, first + 1, ... of a step; each has 2^bits fine points, or its mass.

    Attributes
    ----------
    low, high : float
        The bounds.
    step : float
        Spacing, in the unit of the data.
    first : int
        The lowest multiple inside the bounds.
    points : int
        How many there are; numbered from 0.
    bits : int
        Dither bits; 0 without dithering.
    masses : Masses or None
        Fine points of each point by a prior.
    """

    low: float
    high: float
    step: float
    first: int
    points: int
    bits: int
    masses: Masses | None = None

    @classmethod
    def between(
        cls, bounds: Any, resolution: float | None, dither: bool | None, prior: Any
    ) -> tuple[tuple[float, float], Lattice | None]:
        """The bounds that are used, and their lattice; nothing is checked yet."""
        if prior is None:
            bounds = check_bounds(bounds)
            return bounds, cls.of(bounds, resolution, dither)
        bounds, parts = check_prior(prior, bounds)
        return bounds, cls.of(bounds, resolution, dither, parts)

    @classmethod
    def of(
        cls,
        bounds: tuple[float, float],
        resolution: float | None,
        dither: bool | None,
        parts: tuple[PriorPart, ...] = (),
    ) -> Lattice | None:
        """The lattice for checked bounds; None for ``resolution=0``. A prior has parts."""
        low, high = bounds
        if resolution is not None:
            resolution = check_nonnegative("resolution", resolution)
        if dither is not None:
            dither = check_flag("dither", dither)
        if resolution == 0.0:
            if parts:
                raise ValueError("prior needs a lattice, got a prior with resolution=0")
            if dither:
                raise ValueError("dither needs a lattice, got dither=True with resolution=0")
            return None
        finest = math.ulp(max(abs(low), abs(high)))  # finer multiples are not distinct numbers
        knows_no_scale = bool(parts) and parts[0].kind == SCALE_FREE
        if resolution is None and knows_no_scale:
            step = max(float(f"1e{round(math.log10(high - low)) - FINE_DIGITS}"), finest)
        elif resolution is None and parts:
            step = float(f"1e{round(math.log10(spread(parts, bounds))) - DIGITS}")
            least = max(finest, 2.0 * (high - low) / DEFAULT_POINTS)
            if step < least:
                step = float(f"1e{math.ceil(math.log10(least))}")
        elif resolution is None:
            step = max(float(f"1e{round(math.log10(high - low)) - DIGITS}"), finest)
        elif resolution >= finest:
            step = resolution
        else:
            raise ValueError(
                "resolution must be at least the float64 spacing at the larger bound, "
                f"{finest}, got {resolution}"
            )
        first = first_multiple(low, step)
        points = last_multiple(high, step) - first + 1
        if points < 2:
            raise ValueError(
                "resolution must leave at least two of its multiples inside bounds, "
                f"got resolution {step} with bounds ({low}, {high})"
            )
        if points > (MOST_POINTS if parts else MAX_POINTS):
            raise ValueError(
                f"resolution must make at most 2^50 points inside bounds with a prior, got {points}"
                if parts
                else f"resolution must make at most 2^53 points inside bounds, got {points}"
            )
        held = 62 if parts else 53
        bits = 0 if dither is False else min(BITS, held - (points - 1).bit_length())
        lattice = cls(low, high, step, first, points, bits)
        if not parts:
            return lattice
        if knows_no_scale:
            return lattice.weighed(lattice.scale_free, dither is not False)

        def border(point: int) -> float:
            """Half a step below a point, in float64, rounded twice."""
            multiple, per_unit = float(first + point) - 0.5, points_per_unit(step)
            number = multiple / per_unit if per_unit else multiple * step
            return min(max(number, -LARGEST), LARGEST)

        return replace(lattice, masses=masses(parts, bounds, points, border))

    @property
    def scale_free(self) -> Shares:
        """The prior of these points that knows no scale; round numbers are those of decimals."""
        decimal = self.step == float(f"1e{round(math.log10(self.step))}")
        return scale_free(self.points, self.first, decimal)

    def weighed(self, below: Shares, dither: bool = True) -> Lattice:
        """The same points with a prior that is given by points."""
        bits = min(BITS, 62 - (self.points - 1).bit_length()) if dither else 0
        return replace(self, masses=masses_of(below, self.points), bits=bits)

    @property
    def fine_points(self) -> int:
        """Number of fine points."""
        return self.points << self.bits if self.masses is None else self.masses.total

    @property
    def refined(self) -> bool:
        """Whether a point stands for several fine points."""
        return self.bits > 0 or self.masses is not None

    def weight(self, point: int) -> int:
        """Fine points of a point by the prior; 1 without one."""
        return 1 if self.masses is None else self.masses.of(point)

    def start(self, point: int) -> int:
        """Fine points below a point."""
        return point << self.bits if self.masses is None else self.masses.below(point)

    def on_line(self, points: int) -> int:
        """A number of points as the mass that a prior gives them; without one, as it is."""
        return points if self.masses is None else self.masses.below(points)

    def from_line(self, line: int) -> int:
        """The point with that part of the mass."""
        return line if self.masses is None else self.masses.point_of(line)

    def fine(self, point: int, u: int) -> int:
        """The fine point of a record at a point with dither u."""
        if self.masses is None:
            return (point << self.bits) + u
        return self.masses.spread(point, u, self.bits)

    def points_of(self, fine: NDArray[np.int64]) -> NDArray[np.int64]:
        """The points that fine points belong to."""
        if self.masses is None:
            return fine >> self.bits
        found = [self.masses.point_of(one) for one in fine.ravel().tolist()]
        return np.array(found, dtype=np.int64).reshape(fine.shape)

    def value(self, point: int) -> float:
        """The number of one point, or of a multiple beside the bounds."""
        return multiple_value(self.first + point, self.step)

    def decode(self, points: NDArray[np.int64]) -> NDArray[np.float64]:
        """The numbers of points."""
        values = [self.value(point) for point in points.ravel().tolist()]
        return np.array(values, dtype=np.float64).reshape(points.shape)

    def nearest(self, x: float) -> int:
        """The point that a record is rounded to: clamped before, and after."""
        multiple = nearest_multiple(min(max(x, self.low), self.high), self.step)
        return min(max(int(multiple) - self.first, 0), self.points - 1)

    def locate(self, x: float) -> int | None:
        """The point whose number is x; None if there is none."""
        if not self.low <= x <= self.high:
            return None
        point = int(nearest_multiple(x, self.step)) - self.first
        return point if self.value(point) == x else None

    def below(self, x: float, through: bool) -> int:
        """How many points are below x, or with `through` not above it."""
        search = bisect_right if through else bisect_left
        return search(range(self.points), x, key=self.value)
