"""Counts, sums and means, [Dur23] 6.3: record by record, in Python's integers.

[Dur23] is Durfee, "Unbounded Differentially Private Quantile and Maximum Estimation".
"""

from __future__ import annotations

import builtins
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpq_fast import _checks, privacy
from dpq_fast.privacy.aggregates import AUTO, LEAST_WIDTH, Calibration, MeanStep, unit_of
from dpq_fast.privacy.intervals import POPULATION, SAMPLE, Request
from dpq_fast.privacy.levels import Levels
from dpq_fast.reference._calls import default_rng, with_options
from dpq_fast.reference.columns import numbers, present
from dpq_fast.reference.ind_exp import IndExpLaw
from dpq_fast.reference.intervals import Estimate
from dpq_fast.reference.joint_exp import JointExpLaw
from dpq_fast.reference.lattice import Lattice, points_per_unit
from dpq_fast.reference.noise import discrete_gaussian, discrete_laplace
from dpq_fast.reference.sample import check_records, kept_records, placed
from dpq_fast.reference.unbounded_quantile import Search, UnboundedQuantileLaw

# The ends of a clip are multiples of its spacing, within so many of zero.
REACH_BITS = 31
# How far apart they may be where they are squared.
WIDEST = 2**17
# Ratio of a clip's candidates.
BETA = 1.15
# Integers beyond are decoded as this one.
LARGEST = 2**1023


class Clip(NamedTuple):
    """The multiples first, ..., last of a spacing, which records are rounded and clamped to.

    Attributes
    ----------
    scale : float
        Multiples per unit of the records.
    step : float
        The spacing.
    first, last : int
        Of a range, rounded outwards; first < last, so that there is always noise, and farther
        apart on a lattice that nobody gave.
    """

    scale: float
    step: float
    first: int
    last: int

    @classmethod
    def of(
        cls, low: float, high: float, resolution: float | None, widest: int | None = None
    ) -> Clip:
        """The clip of a range, of so many points at the most.

        The spacing is a power of two, or a multiple of `resolution` by one: the least that reaches
        both ends, and that has a reciprocal.
        """
        exponent = math.frexp(max(abs(low), abs(high)))[1]  # of the power of two above both
        finest = 2.0 ** max(exponent - REACH_BITS, -1022)
        if widest is not None and low < high:
            apart = math.frexp(high / (widest - 2) - low / (widest - 2))[1]
            finest = max(finest, 2.0 ** max(apart, -1022))
        step = finest if resolution is None else resolution
        while step < finest:
            step *= 2.0
        scale = float(points_per_unit(step)) or 1.0 / step
        least = LEAST_WIDTH if resolution is None else 1
        first = min(math.floor(low * scale), 2**REACH_BITS - least)
        return cls(scale, step, first, max(math.ceil(high * scale), first + least))

    def point(self, record: float) -> int:
        """The nearest integer, the even one at a tie."""
        return round(min(max(record * self.scale, self.first), self.last))

    def decode(self, point: int | float) -> float:
        """The number of a multiple, of a sum of them, or of what lies between."""
        point = min(max(point, -LARGEST), LARGEST)
        return point / self.scale if points_per_unit(self.step) else point * self.step


class Clipping(NamedTuple):
    """The public side of a sum or a mean.

    Attributes
    ----------
    calibration : Calibration
    lower, upper : float or None
        The known ends.
    resolution : float or None
    level : Levels or None
        Of a clip that `joint_exp` or `ind_exp` finds.
    lattice : Lattice or None
        Of that clip.
    search : Search or None
        Of a clip that is searched for.
    """

    calibration: Calibration
    lower: float | None
    upper: float | None
    resolution: float | None
    level: Levels | None = None
    lattice: Lattice | None = None
    search: Search | None = None

    @classmethod
    def of(
        cls,
        options: dict[str, Any],
        *,
        q: float | str | None,
        lower: float | None,
        upper: float | None,
        method: str,
        resolution: float | None,
        **budget: Any,
    ) -> Clipping:
        """By the arguments of `sum`, once they are checked; `options` are those of the method."""
        level, offset = privacy.aggregates.aim_of(q, method)
        if resolution is not None and not _checks.check_nonnegative("resolution", resolution):
            raise ValueError(f"resolution must be positive, got {resolution}")
        searched = method == "unbounded"
        given = ("split", "noise") if searched else ()
        halting = {name: options[name] for name in given if name in options}
        calibration = privacy.aggregates.calibrate(
            q=q,
            lower=lower,
            upper=upper,
            method=method,
            resolution=resolution,
            **budget,
            **halting,
        )
        spent = calibration.clip
        if level is not None and isinstance(spent, privacy.unbounded_quantile.Calibration):
            candidates: dict[str, Any] = {"beta": BETA, "offset": offset}
            candidates |= {name: options[name] for name in options.keys() - halting.keys()}
            # without an end, either side of zero is searched from there
            ends = (0.0, None) if lower is None and upper is None else (lower, upper)
            levels = Levels(1.0 - level if ends[0] is None else level)
            candidates["unit"] = unit_of(lower, upper, resolution)
            search = Search.of(levels, spent, lower=ends[0], upper=ends[1], **candidates)
            return cls(calibration, lower, upper, resolution, search=search)
        what = "q=None" if level is None else f"method={method!r}"
        if lower is None or upper is None:
            raise ValueError(f"lower and upper must be given for {what}")
        lower, upper = bounds = _checks.check_bounds((lower, upper))
        for name in options:
            raise TypeError(f"{name} must be left out for {what}")
        if level is None:
            return cls(calibration, lower, upper, resolution)
        # `ind_exp` takes ties as they are
        lattice = Lattice.of(bounds, resolution, False if method == "ind_exp" else None)
        return cls(calibration, lower, upper, resolution, Levels(level), lattice)

    def clip(
        self, records: NDArray[np.float64], rng: np.random.Generator, widest: int | None = None
    ) -> Clip:
        """The clip: public, or released."""
        if self.search is not None:
            low, high = self._searched(self.search, records, rng)
        else:
            assert self.lower is not None and self.upper is not None  # else there is a search
            low, high = self.lower, self.upper
        if self.level is not None:
            data = placed(records, (low, high), self.lattice, rng).intervals()
            spent = self.calibration.clip
            if isinstance(spent, privacy.joint_exp.Calibration):
                high = JointExpLaw(data, self.level, spent.rate).sample(rng)
            elif isinstance(spent, privacy.ind_exp.Calibration):
                high = IndExpLaw(data, self.level, spent.rates, spent.selection).sample(rng)
        return Clip.of(low, high, self.resolution, widest)

    def _searched(
        self, search: Search, records: NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[float, float]:
        """The ends of the clip: the known one and the one that is found, or both found."""

        def found(values: NDArray[np.float64]) -> float:
            end: float = UnboundedQuantileLaw(search, values.tolist()).sample(rng)
            return end

        if self.lower is not None:
            return self.lower, found(records)
        if self.upper is not None:
            return found(records), self.upper
        return -found(-records[records < 0.0]), found(records[records >= 0.0])


class Mean(NamedTuple):
    """The public side of a mean in a clip.

    Attributes
    ----------
    calibration : Calibration
    clip : Clip
    may_have_missing : bool
    rows : int or None
        How many there are, missing ones included, if that is public.
    step : MeanStep
    about : int
        Twice the point that a sum is taken about, under "swap".
    """

    calibration: Calibration
    clip: Clip
    may_have_missing: bool
    rows: int | None
    step: MeanStep
    about: int

    @property
    def off(self) -> int:
        """Twice how far that is from the middle."""
        return self.about - self.clip.first - self.clip.last

    @property
    def width(self) -> int:
        """Of the clip."""
        return self.clip.last - self.clip.first

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """Of the noise of the two integers."""
        return self.calibration.mean_scales(
            self.width, self.may_have_missing, abs(self.off), self.step
        )

    def point(self, first: int, second: int) -> Fraction:
        """The mean inside the clip, from the two noisy integers of `Calibration.mean_scales`."""
        low, high = self.clip.first, self.clip.last
        if self.calibration.relation.n_is_public:
            centered, number = first, Fraction(self.at_most(second))
        else:
            centered, number = first - second, Fraction(first + second, high - low)
        middle = Fraction(self.about, 2) + centered / (2 * max(number, Fraction(1)))
        return min(max(middle, Fraction(low)), Fraction(high))

    def at_most(self, number: int) -> int:
        """A noisy number of records; no more than the rows."""
        return number if self.rows is None else min(number, self.rows)

    def noisy_pair(self, points: list[int], rng: np.random.Generator) -> tuple[int, int]:
        """The two integers, of some records."""
        return self.noisy(self.pair(builtins.sum(points), len(points)), rng)

    def pair(self, total: int, number: int) -> tuple[int, int]:
        """The two integers, of a sum and a number; under "swap" about half of `about`."""
        if self.calibration.relation.n_is_public:
            return 2 * total - number * self.about, number
        return total - number * self.clip.first, number * self.clip.last - total

    def interval(self, first: int, second: int, request: Request) -> tuple[float, float]:
        """Where between the ends of the clip the mean may be, 0 to 1."""
        n_is_public = self.calibration.relation.n_is_public
        if n_is_public:
            second = self.at_most(second)
        whose = self.scales, self.width, n_is_public
        return mean_interval(first, second, *whose, request, self.off, self.calibration.gaussian)

    def noisy(self, pair: tuple[int, int], rng: np.random.Generator) -> tuple[int, int]:
        """Two integers with their noise."""
        kind = self.calibration.gaussian
        one, other = (
            value + _noise(scale, rng, kind) for value, scale in zip(pair, self.scales, strict=True)
        )
        return one, other


class Spread(NamedTuple):
    """A variance in a clip: a center, and then the mean of squares about it.

    Attributes
    ----------
    calibration : Calibration
    clip : Clip
    may_have_missing : bool
    rows : int or None
    expected : int or None
        About how many records there are, by what is public.
    points : list of int
        The records in the clip. Private.
    ddof : int
    """

    calibration: Calibration
    clip: Clip
    may_have_missing: bool
    rows: int | None
    expected: int | None
    points: list[int]
    ddof: int

    def mean_of(
        self, low: int, high: int, step: MeanStep, about: int, epsilon: float | None = None
    ) -> Mean:
        """A mean of integers between two ends."""
        spent = self.calibration
        if epsilon is not None:
            spent = spent._replace(noise_epsilon=epsilon)
        clip = Clip(1.0, 1.0, low, high)
        return Mean(spent, clip, self.may_have_missing, self.rows, step, about)

    def answer(
        self, root: bool, request: Request | None, rng: np.random.Generator
    ) -> float | Estimate:
        """The variance, or its root."""
        low, high, points = self.clip.first, self.clip.last, self.points
        swapped, n = self.calibration.relation.n_is_public, len(self.points)
        first_part, second_part = self.calibration.spread_parts(self.expected)
        center, twice, beside = None, 0, Fraction(0)
        if first_part:
            center = self.mean_of(low, high, MeanStep(first_part), low + high)
            found = center.noisy_pair(points, rng)
            twice = round(2 * center.point(*found))
            largest = max(2 * high - twice, twice - 2 * low) ** 2
            total = builtins.sum((2 * point - twice) ** 2 for point in points)
        else:
            largest = 4 * (high - low) ** 2
            mean = Fraction(builtins.sum(points), max(n, 1))
            total = math.floor(builtins.sum(((2 * point - 2 * mean) ** 2 for point in points), 0))
        spent = self.calibration._replace(noise_epsilon=second_part)
        *pilot, last = spent.mean_steps(self.rows, self.may_have_missing)
        squares = self.mean_of(0, largest, last, largest, second_part)
        for step in pilot:
            rough = squares._replace(step=step)
            at = round(2 * rough.point(*rough.noisy(rough.pair(total, n), rng)))
            most = largest - math.ceil(2 * largest * last.blur)
            squares = squares._replace(about=min(max(at, largest - most), largest + most))
        pair = squares.noisy(squares.pair(total, n), rng)
        number = Fraction(builtins.sum(pair), largest)
        if swapped:
            number = Fraction(squares.at_most(pair[1]))
        if center is not None:
            draws, records = 1 if spent.gaussian else 2, max(number, Fraction(1))
            one, other = center.scales
            if swapped:
                beside = draws * (one / records) ** 2
            else:
                at_share = Fraction(found[0], max(builtins.sum(found), 1))
                share = min(max(at_share, Fraction(0)), Fraction(1))
                spread = (1 - share) ** 2 * one**2 + share**2 * other**2
                beside = 4 * draws * spread / records**2
        four = min(max(squares.point(*pair) - beside, Fraction(0)), Fraction((high - low) ** 2))
        if number > 1:
            four = four * number / max(number - self.ddof, Fraction(1))
        value = self.decoded(float(four), root)
        if request is None:
            return value
        inner, eighth = (
            replace(request, confidence=min(1.0 - request.miss * share, 1.0 - 2.0**-53))
            for share in (0.75, 0.125)
        )
        least, most_square = (part * largest for part in squares.interval(*pair, inner))
        if center is not None:
            ends = [low + part * (high - low) for part in center.interval(*found, eighth)]
            least = max(least - max(abs(2.0 * end - twice) for end in ends) ** 2, 0.0)
        if swapped:
            aside = Fraction(margin(squares.scales[1], eighth.miss, spent.gaussian))
        else:
            either = margin(squares.scales[0], eighth.miss / 2.0, spent.gaussian)
            aside = Fraction(2 * either, largest)
        off = float(min(aside, Fraction(2**500)))
        about = float(min(max(number, Fraction(-(2**500))), Fraction(2**500)))
        few, many = (max(about + each, self.ddof + 1.0) for each in (-off, off))
        least *= many / max(many - self.ddof, 1.0)
        most_square *= few / max(few - self.ddof, 1.0)
        ends = [self.decoded(least, root), self.decoded(most_square, root)]
        return Estimate(
            value, min(value, ends[0]), max(value, ends[1]), request.confidence, request.covers
        )

    def decoded(self, four: float, root: bool) -> float:
        """In the unit of the records, from four variances in points."""
        unit = points_per_unit(self.clip.step)
        half = 0.5 / unit if unit else 0.5 * self.clip.step
        deviation = math.sqrt(max(four, 0.0)) * half
        return deviation if root else deviation * deviation


def count(
    x: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    counts: Any = None,
    nan_policy: str = "omit",
    confidence: float | None = None,
    covers: str = "sample",
) -> int | Estimate:
    """Release how many records there are.

    Parameters
    ----------
    x, epsilon, rho, neighbors, max_contributions, accountant, rng, counts, nan_policy, \
confidence, covers
        As in `dpq_fast.count`.

    Returns
    -------
    int or Estimate
    """
    calibration = privacy.aggregates.calibrate_count(
        epsilon=epsilon, rho=rho, neighbors=neighbors, max_contributions=max_contributions
    )
    request = of_sample(Request.of(confidence, covers))
    check_records(x, nan_policy, counts)
    generator = default_rng(rng)
    privacy.charge(accountant, calibration, "count")
    records = kept_records(x, counts, nan_policy, present)
    number = len(records) + _noise(calibration.scale, generator, calibration.gaussian)
    if request is None:
        return number
    beside = margin(calibration.scale, request.miss, calibration.gaussian)
    low, high = min(max(number - beside, 0), number), max(number + beside, 0)
    return Estimate(number, low, high, request.confidence, request.covers)


def _clipped(
    name: str,
    /,
    x: Any,
    *,
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
    counts: Any = None,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    confidence: float | None = None,
    covers: str = "sample",
    **method_options: Any,
) -> float | Estimate:
    """A sum or a mean, by its name."""
    q, lower, upper = privacy.aggregates.public_clip(bounds, q, lower, upper)
    squared = name in ("var", "std")
    ddof = _checks.check_count("ddof", method_options.pop("ddof", 0), 0) if squared else 0
    clipping = Clipping.of(
        method_options,
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
    request = Request.of(confidence, covers)
    if name != "mean":
        of_sample(request)
    check_records(x, nan_policy, counts)
    generator = default_rng(rng)
    calibration = clipping.calibration
    privacy.charge(accountant, calibration, name)
    records = kept_records(x, counts, nan_policy)
    clip = clipping.clip(records, generator, WIDEST if squared else None)
    points = [clip.point(record) for record in records.tolist()]
    low, high, may_have_missing = clip.first, clip.last, nan_policy != "raise"
    if name == "sum":
        scale = calibration.sum_scale(low, high, may_have_missing)
        total = builtins.sum(points) + _noise(scale, generator, calibration.gaussian)
        if request is None:
            return clip.decode(total)
        beside = margin(scale, request.miss, calibration.gaussian)
        value, least, most = (clip.decode(at) for at in (total, total - beside, total + beside))
        return Estimate(value, least, most, request.confidence, request.covers)
    n_is_public = calibration.relation.n_is_public
    rows = len(numbers(x)) if n_is_public and counts is None else None
    if squared:
        expected = rows
        if rows is None:
            expected = expected_n
        spread = Spread(calibration, clip, may_have_missing, rows, expected, points, ddof)
        return spread.answer(name == "std", request, generator)
    *pilot, last = calibration.mean_steps(rows, may_have_missing)
    mean = Mean(calibration, clip, may_have_missing, rows, last, low + high)
    for step in pilot:
        rough = mean._replace(step=step)
        twice = round(2 * rough.point(*rough.noisy_pair(points, generator)))
        most = high - low - math.ceil(2 * (high - low) * last.blur)
        mean = mean._replace(about=min(max(twice, low + high - most), low + high + most))
    first, second = mean.noisy_pair(points, generator)
    value = clip.decode(float(mean.point(first, second)))
    if request is None:
        return value
    ends = mean.interval(first, second, request)
    least, most = (clip.decode(low + part * (high - low)) for part in ends)
    return Estimate(value, min(value, least), max(value, most), request.confidence, request.covers)


@with_options(_clipped)
def sum(x: Any, **options: Any) -> float | Estimate:
    """Release the sum of the records, clipped.

    The law is that of `dpq_fast.sum`, whose docstring has every rule in full.

    Parameters
    ----------
    x : array_like of float or int, shape (N,)
        Private values in any order.
    epsilon : float
        Budget of the call. Public.
    bounds : (float, float), optional
        A public clip.
    q : float, "auto" or None
        The level of the clip, None for a public one.
    lower, upper : float or None
        The known ends of the clip.
    method : {"unbounded", "joint_exp", "ind_exp"}
        How the clip is found.
    share : float, optional
        Of the clip in `epsilon`.
    expected_n : int, optional
        A public guess at the number of records.
    resolution : float, optional
        Spacing of the lattice that records are rounded to.
    neighbors, counts, nan_policy, max_contributions, accountant, rng
        As in `joint_exp`.
    confidence, covers : optional
        For an interval, as in `dpq_fast.sum`.
    **method_options
        For "unbounded": `beta`, `noise`, `offset`, `split`, `uniform`.

    Returns
    -------
    float or Estimate
    """
    return _clipped("sum", x, **options)


@with_options(_clipped)
def mean(x: Any, **options: Any) -> float | Estimate:
    """Release the mean of the records, clipped.

    The law is that of `dpq_fast.mean`, whose docstring has every rule in full.

    Parameters
    ----------
    x, epsilon, bounds, q, lower, upper, method, share, resolution, neighbors, counts, nan_policy, \
max_contributions, accountant, rng, **method_options
        As in `sum`.
    confidence, covers : optional
        For an interval, as in `dpq_fast.mean`.

    Returns
    -------
    float or Estimate
    """
    return _clipped("mean", x, **options)


@with_options(_clipped)
def var(x: Any, *, ddof: int = 0, **options: Any) -> float | Estimate:
    """Release the variance of the records, clipped.

    The law is that of `dpq_fast.var`, whose docstring has every rule in full.

    Parameters
    ----------
    x, epsilon, rho, bounds, q, lower, upper, method, share, resolution, neighbors, counts, \
nan_policy, max_contributions, accountant, rng, **method_options
        As in `sum`.
    ddof : int, default 0
        As in `dpq_fast.var`.
    expected_n, confidence, covers : optional
        As in `dpq_fast.var`.

    Returns
    -------
    float or Estimate
    """
    return _clipped("var", x, ddof=ddof, **options)


@with_options(_clipped)
def std(x: Any, *, ddof: int = 0, **options: Any) -> float | Estimate:
    """Release the standard deviation of the records, clipped.

    Parameters
    ----------
    x, epsilon, rho, bounds, q, lower, upper, method, share, resolution, neighbors, counts, \
nan_policy, max_contributions, accountant, rng, **method_options
        As in `sum`.
    ddof, expected_n, confidence, covers : optional
        As in `var`.

    Returns
    -------
    float or Estimate
    """
    return _clipped("std", x, ddof=ddof, **options)


def of_sample(request: Request | None) -> Request | None:
    """Refuse a population, which a count and a sum have none of."""
    if request is not None and request.covers == POPULATION:
        raise ValueError(
            f"covers must be {SAMPLE!r} for a count, a sum or a variance, got {POPULATION!r}"
        )
    return request


# Intervals


def chance(scale: Fraction, k: int) -> float:
    """P(X >= k) for discrete Laplace noise."""
    if scale == 0:
        return float(k <= 0)
    r = math.exp(-1.0 / float(scale))
    return r**k / (1.0 + r) if k > 0 else 1.0 - r ** (1 - k) / (1.0 + r)


def margin(scale: Fraction, miss: float, gaussian: bool = False) -> int:
    """The least k >= 0 with P(abs(X) > k) <= miss; of a Gaussian, from above."""
    if scale == 0:
        return 0
    if gaussian:
        deviations = float(stats.norm.isf(miss / 2.0))
        return math.ceil(float(scale) * deviations * (1.0 + 1e-12))
    r = math.exp(-float(1 / scale)) if scale > Fraction(1, 700) else 0.0
    about = Fraction(-math.log(miss * (1.0 + r) / 2.0)) * scale
    if scale > 2**40:  # where no integer is told from the next one
        return max(math.ceil(about) - 1, 0) + math.ceil(scale / 2**40)
    k = max(math.floor(about) - 2, 0)
    while 2.0 * chance(scale, k + 1) > miss:
        k += 1
    return k


def beyond(
    w: float,
    v: float,
    scales: tuple[Fraction, Fraction],
    distance: float,
    gaussian: bool = False,
) -> float:
    """P(abs(w X + v Y) >= distance), from above: see `laws.noise_tails.pair_tail`."""
    first, second = scales
    if distance <= 0.0:
        return 1.0
    if gaussian:
        apart = distance - (w if first else 0.0) - (v if second else 0.0)
        deviation = math.hypot(w * float(first), v * float(second))
        return min(1.0, 2.0 * float(stats.norm.sf(apart / deviation))) if deviation else 0.0
    if 0.0 in (w, v) or second == 0:
        scale, weight = (second, v) if w == 0.0 else (first, w)
        return 2.0 * chance(scale, math.ceil(distance / weight * (1.0 - 1e-9)))
    if second > 2**12:
        t = max(distance - w - v, 0.0)
        a, b = max(w * first, v * second), min(w * first, v * second)
        a, b = float(a), float(b)
        equal = (1.0 + t / 2.0 / a) * math.exp(-t / a)
        if b > 0.999 * a:
            return min(equal, 1.0)
        return min((a * a * math.exp(-t / a) - b * b * math.exp(-t / b)) / (a * a - b * b), 1.0)
    reach = math.ceil(40.0 * second)
    r = math.exp(-1.0 / float(second))
    of_first = cache(partial(chance, first))
    total = 0.0
    for y in range(reach + 1):
        inside = 0.0
        for edge in ((distance - v * y) / w, (distance + v * y) / w):
            k = math.floor(edge)  # X is spread evenly over the unit around it
            inside += (k + 1 - edge) * of_first(k) + (edge - k) * of_first(k + 1)
        both = 2.0 if y else 1.0  # -y is as likely, and leaves as much
        total += both * (1.0 - r) / (1.0 + r) * r**y * min(inside, 1.0)
    return min(total, 1.0)


def mean_interval(
    first: int,
    second: int,
    scales: tuple[Fraction, Fraction],
    width: int,
    n_is_public: bool,
    request: Request,
    off: int = 0,
    gaussian: bool = False,
) -> tuple[float, float]:
    """Where between the ends of the clip the mean may be, 0 to 1; see `dpq_fast.mean`.

    For a population half of what may be missed is for the noise, 3/8 for sampling, and 1/8 for the
    number of records, or with a public number, all of the rest for sampling.
    """
    population = request.covers == POPULATION
    miss = request.miss / 2.0 if population else request.miss

    def is_out(p: float) -> bool:
        if n_is_public:
            u = (2.0 * p - 1.0) * width - off
            return beyond(1.0, abs(u), scales, abs(first - u * second), gaussian) <= miss
        return beyond(1.0 - p, p, scales, abs((1.0 - p) * first - p * second), gaussian) <= miss

    number = float(second) if n_is_public else (first + second) / width
    at = 0.5
    if number:
        share = (off + first / number) / width if n_is_public else first / width / number
        at = min(max((share + 1.0) / 2.0 if n_is_public else share, 0.0), 1.0)
    low, high = edge(is_out, at, 0.0), edge(is_out, at, 1.0)
    if not population:
        return low, high
    known = n_is_public and scales[1] == 0
    apart = 0.0 if known else float(min(margin(scales[1], request.miss / 16.0, gaussian), 2**500))
    if not n_is_public:
        apart *= 2.0 / width
    for_sides = request.miss * (0.5 if known else 0.375)
    most = math.log(2.0 / for_sides) / max(number - apart, 1e-300)

    def is_far(end: float) -> Any:
        return lambda p: divergence(end, p) > most

    return edge(is_far(low), low, 0.0), edge(is_far(high), high, 1.0)


def divergence(t: float, p: float) -> float:
    """KL of coins of probabilities t and p."""
    if (t > 0.0 and p == 0.0) or (t < 1.0 and p == 1.0):
        return math.inf
    heads = t * math.log(t / p) if t > 0.0 else 0.0
    return heads + ((1.0 - t) * math.log((1.0 - t) / (1.0 - p)) if t < 1.0 else 0.0)


def edge(is_out: Any, inside: float, end: float) -> float:
    """Where, on the way to `end`, points begin to be out, by halving."""
    if not is_out(end):
        return end
    outside = end
    for _ in range(60):
        middle = (inside + outside) / 2.0
        if is_out(middle):
            outside = middle
        else:
            inside = middle
    return outside


def _noise(scale: Fraction, rng: np.random.Generator, gaussian: bool = False) -> int:
    if not scale:
        return 0
    drawn: int = (discrete_gaussian if gaussian else discrete_laplace)(scale, rng=rng)
    return drawn
