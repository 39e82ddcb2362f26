"""The public lattice of outputs: choose it, round records to it, read points back.

Everything here is a function of bounds, resolution, dither and prior, and of nothing about the
column: readers infer its type from the records, so that one record can change it. Points are
numbered 0, 1, ..., points - 1 from the lowest lattice point in the bounds, so that they and the
fine points that they stand for are exact integers below 2^53.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import check_bounds, check_flag, check_nonnegative, check_prior
from dpq_fast._kernels import lattice as kernel
from dpq_fast.data.columns import as_float64
from dpq_fast.data.prior import DEFAULT_POINTS, MOST_POINTS, Masses, Prior
from dpq_fast.data.shares import Shares, no_scale, scale_free

# A step beyond the bounds may be beyond float64: it is cut off here.
LARGEST = sys.float_info.max
# Interval widths are point counts held in float64 by the kernels: exact up to here.
MAX_POINTS = 2**53
# The default spacing is the power of ten nearest to 10^-DEFAULT_DIGITS of the range. Measured at
# epsilon = 1 for 10^3, 10^4 and 10^5 records (papers/run.py --only lattice): ties cost the less
# the coarser the lattice is (9 deciles of 10^4 ratings miss 11, 18, 23 and 30 ranks at 10^-5, ...,
# 10^-8 of the range), but records without ties lose where several share a point: 10^5 of N(0, 5) in
# +-100 have the errors of finer lattices down to 10^-6, twice those at 10^-5, ten times at 10^-4.
DEFAULT_DIGITS = 6
# With a prior that knows no scale, where most of the range may hold nothing.
FINE_DIGITS = 12
# Dither bits: up to 2^31 tied records have fine points of their own. Where several shared one,
# paths could not be where targets are, and what they gain by going elsewhere would ask for wide
# windows. (A prior's spread multiplies two numbers of so many bits.)
DITHER_BITS = 31


@dataclass(frozen=True, slots=True)
class Lattice:
    """The multiples of `step` inside the bounds, each split into 2^bits fine points by dithering.

    Attributes
    ----------
    low, high : float
        The bounds.
    step : float
        Spacing, in the unit of the data.
    per_unit : float
        1/step where that is (nearly) an integer, else 0. Decoding divides by it, so that a
        lattice of 0.01 gives back the decimals of the data.
    first : int
        The lowest point is ``first * step``.
    points : int
        Number of lattice points, 2 <= points <= 2^53.
    bits : int
        Dither bits s; 0 without dithering. ``points << bits`` is at most 2^53, with a prior 2^62.
    masses : Masses, optional
        Fine points of each point, by a prior. Default: 2^bits each.
    """

    low: float
    high: float
    step: float
    per_unit: float
    first: int
    points: int
    bits: int
    masses: Masses | None = None

    @classmethod
    def between(
        cls, bounds: Any, resolution: float | None, dither: bool | None, prior: Any
    ) -> tuple[tuple[float, float], Lattice | None]:
        """Bounds as they are to be used, and the lattice: of arguments that nobody checked."""
        if prior is None:
            bounds = check_bounds(bounds)
            return bounds, cls.of(bounds, resolution, dither)
        bounds, parts = check_prior(prior, bounds)
        return bounds, cls.of(bounds, resolution, dither, Prior(parts, bounds) if parts else None)

    @classmethod
    def of(
        cls,
        bounds: tuple[float, float],
        resolution: float | None,
        dither: bool | None,
        prior: Prior | None = None,
    ) -> Lattice | None:
        """The lattice for checked `bounds`; None for ``resolution=0``, the continuous mechanism.

        Parameters
        ----------
        bounds : (float, float)
            Finite low < high.
        resolution : float or None
            Spacing; 0 for no lattice; None for a power of ten, about 10^-6 of the range, or of
            `Prior.spread`; 10^-12 of the range with the scale-free prior.
        dither : bool or None
            None: on wherever there is a lattice.
        prior : Prior, optional
            Of these bounds. Default: uniform.
        """
        if resolution is not None:
            resolution = check_nonnegative("resolution", resolution)
        if dither is not None:
            dither = check_flag("dither", dither)
        return cls._of(bounds, resolution, dither, prior)

    @classmethod
    @lru_cache(maxsize=256)  # public facts only; a program asks for few lattices, again and again
    def _of(
        cls,
        bounds: tuple[float, float],
        resolution: float | None,
        dither: bool | None,
        prior: Prior | None = None,
    ) -> Lattice | None:
        """`of` with checked arguments."""
        low, high = bounds
        if dither is None:
            dither = resolution != 0.0
        # Spacing of float64 at the larger bound: finer points would not be distinct numbers.
        finest = math.ulp(max(abs(low), abs(high)))
        if resolution is None and prior is not None and prior.is_scale_free:
            step = max(default_step(high - low, FINE_DIGITS), finest)
        elif resolution is None and prior is not None:
            step = default_step(prior.spread())
            least = max(finest, 2.0 * (high - low) / DEFAULT_POINTS)
            if step < least:
                step = float(f"1e{math.ceil(math.log10(least))}")
        elif resolution is None:
            step = max(default_step(high - low), finest)
        elif resolution == 0.0:
            if prior is not None:
                raise ValueError("prior needs a lattice, got a prior with resolution=0")
            if dither:
                raise ValueError("dither needs a lattice, got dither=True with resolution=0")
            return None
        else:
            step = resolution
            if step < finest:
                raise ValueError(
                    "resolution must be at least the float64 spacing at the larger bound, "
                    f"{finest}, got {resolution}"
                )
        per_unit = points_per_unit(step)
        lattice = cls(low, high, step, per_unit, 0, 1, 0)
        first = math.ceil(lattice._position(low))
        while lattice._value(first) < low:
            first += 1
        while lattice._value(first - 1) >= low:
            first -= 1
        last = math.floor(lattice._position(high))
        while lattice._value(last) > high:
            last -= 1
        while lattice._value(last + 1) <= high:
            last += 1
        points = last - first + 1
        if points < 2:
            raise ValueError(
                "resolution must leave at least two of its multiples inside bounds, "
                f"got resolution {step} with bounds ({low}, {high})"
            )
        most = MAX_POINTS if prior is None else MOST_POINTS
        if points > most:
            raise ValueError(
                f"resolution must make at most 2^{most.bit_length() - 1} points inside bounds"
                f"{'' if prior is None else ' with a prior'}, got {points}"
            )
        lattice = cls(low, high, step, per_unit, first, points, 0)
        if prior is None:
            return dataclasses.replace(lattice, bits=lattice._bits(53) if dither else 0)
        if prior.is_scale_free:
            return lattice.weighed(lattice.scale_free, dither)
        return lattice._of_masses(prior.masses(points, lattice._borders), dither)

    @property
    def scale_free(self) -> Shares:
        """The prior of these points that knows no scale."""
        return scale_free(self.points, self.first, is_decimal(self.step))

    @property
    def no_scale(self) -> Shares:
        """The same but for round numbers."""
        return no_scale(self.points, self.first)

    def weighed(self, shares: Shares, dither: bool = True) -> Lattice:
        """The same points with a prior that is given by points."""
        return self._of_masses(shares.masses(self.points), dither)

    def _of_masses(self, masses: Masses, dither: bool) -> Lattice:
        return dataclasses.replace(self, masses=masses, bits=self._bits(62) if dither else 0)

    def _bits(self, held: int) -> int:
        """Dither bits of as many as numbers of so many bits hold."""
        return min(DITHER_BITS, held - (self.points - 1).bit_length())

    def _position(self, value: float) -> float:
        """`value` in units of the lattice, not rounded."""
        return value * self.per_unit if self.per_unit else value / self.step

    def _value(self, index: int) -> float:
        """The number ``index * step``."""
        return index / self.per_unit if self.per_unit else index * self.step

    def _borders(self, points: NDArray[np.int64]) -> NDArray[np.float64]:
        """What is halfway between each point and the one before."""
        index = (points + self.first).astype(np.float64) - 0.5
        with np.errstate(over="ignore"):  # half a step beyond the bounds may be beyond float64
            borders = index / self.per_unit if self.per_unit else index * self.step
        return np.clip(borders, -LARGEST, LARGEST)

    @property
    def _rounding(self) -> tuple[float, float, float, float, int, int]:
        """What kernels round values by."""
        return self.low, self.high, self.per_unit, self.step, self.first, self.points

    @property
    def fine_points(self) -> int:
        """How many fine points all points stand for."""
        return self.points << self.bits if self.masses is None else self.masses.total

    @property
    def refined(self) -> bool:
        """Whether points stand for several fine points."""
        return self.bits > 0 or self.masses is not None

    @property
    def undithered(self) -> Lattice:
        """The same points without dither bits."""
        return self if not self.bits else _undithered(self)

    @property
    def even(self) -> Lattice:
        """The same points without masses."""
        return self if self.masses is None else dataclasses.replace(self, masses=None)

    def starts(self, points: Any) -> Any:
        """Number of fine points below each point."""
        return points << self.bits if self.masses is None else self.masses.below(points)

    def points_of(self, fine: NDArray[np.int64]) -> NDArray[np.int64]:
        """The point that each fine point belongs to."""
        if self.masses is not None:
            return self.masses.points_of(fine)
        return fine >> self.bits if self.bits else fine

    def spread(self, dithered: NDArray[np.int64]) -> NDArray[np.int64]:
        """The fine points of points k that are dithered to k 2^bits + u; ascending in both."""
        return dithered if self.masses is None else self.masses.spread(dithered, self.bits)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Number of the lattice point nearest to each value; monotone, clamped; NaN is not allowed.

        Record by record, so that neighbors stay neighbors.
        """
        return self.encode_ready(as_float64(values))

    def encode_ready(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """`encode` of what is contiguous float64 already."""
        return kernel.encode(values, *self._rounding)

    def ranks(
        self,
        values: NDArray[Any],
        points: NDArray[np.int64],
        lo: NDArray[np.int64],
        hi: NDArray[np.int64],
    ) -> None:
        """Bisect: how many ascending values are rounded below each point, into `lo`.

        It is known to be from lo to hi, and both are overwritten. Values are as for `count`.
        """
        kernel.bisect(values, *self._rounding, np.ascontiguousarray(points), lo, hi)

    def runs(
        self,
        values: NDArray[Any],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
        size: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Points of ascending values at some places, and how many are below them and up to them.

        Places are the multiples of size[t] from start[t] on, below stop[t]. Values are as for
        `count`.
        """
        return kernel.runs(values, *self._rounding, start, stop, size)

    def ties(
        self, values: NDArray[Any], places: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """As `runs`, for each of some ascending places."""
        return kernel.ties(values, *self._rounding, places)

    def least(self, points: NDArray[np.int64]) -> NDArray[np.float64]:
        """The least number that is rounded to each point or above; inf past the last point."""
        return kernel.least(np.ascontiguousarray(points), *self._rounding)

    def count(self, total: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Add to `total`, of length points + 1, how many values are at each point; NaN last.

        Values are contiguous, of any type that kernels read.
        """
        kind, width = values.dtype.kind, values.dtype.itemsize
        # not all of int64 are float64; what bytes may be is counted first
        if self.step == 1.0 and 1 < width and (kind == "i" or (kind == "u" and width < 8)):
            kernel.count_integers(values, self.first, self.points, total)
        else:
            kernel.count(values, *self._rounding, total)

    def decode(self, points: NDArray[np.int64]) -> NDArray[np.float64]:
        """The float64 value of lattice points, given by their number.

        The only way from the lattice to an output: a function of the point alone.
        """
        return kernel.decode(points, self.per_unit, self.step, self.first)

    def locate(self, value: float) -> int | None:
        """Number of the lattice point that decodes to `value`; None if there is none."""
        if not self.low <= value <= self.high:
            return None
        index = round(self._position(value))
        if self._value(index) != value:
            return None
        return index - self.first


@lru_cache(maxsize=256)
def _undithered(lattice: Lattice) -> Lattice:
    """`Lattice.undithered`."""
    return dataclasses.replace(lattice, bits=0)


def default_step(extent: float, digits: int = DEFAULT_DIGITS) -> float:
    """The power of ten nearest (on a log scale) to 10^-digits of a range.

    The decimal number rounded once to float64, so that decimals on the lattice are given back.
    """
    return float(f"1e{round(math.log10(extent)) - digits}")


def is_decimal(step: float) -> bool:
    """Whether a step is a power of ten."""
    return step == float(f"1e{round(math.log10(step))}")


def points_per_unit(step: float) -> float:
    """1/step where that is (nearly) an integer, which multiples are divided by; else 0."""
    inverse = 1.0 / step
    if not 1.0 <= inverse < MAX_POINTS:
        return 0.0
    nearest = round(inverse)
    return float(nearest) if abs(inverse - nearest) <= 4.0 * math.ulp(inverse) else 0.0
