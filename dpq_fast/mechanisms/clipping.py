"""How the records of sums and means are clipped: the public side, and what noisy sums tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import scipy

from dpq_fast import _checks, privacy
from dpq_fast._kernels.sums import REACH
from dpq_fast.data.lattice import points_per_unit
from dpq_fast.data.records import Records
from dpq_fast.laws import noise_tails
from dpq_fast.mechanisms.joint_exp import check_kernel
from dpq_fast.mechanisms.unbounded_quantile import clip_search
from dpq_fast.privacy.aggregates import LEAST_WIDTH, Calibration, MeanStep
from dpq_fast.privacy.intervals import POPULATION, Request
from dpq_fast.privacy.levels import Levels

# Integers beyond are decoded as this one: noise for an epsilon below 1e-290 is larger.
LARGEST = 2**1023
# Beyond, noise has drowned all: for intervals of means as good as any number.
FAR = 2**500

# Ratio of a clip's candidates: a step too far costs a seventh more noise, and each step is a chance
# to halt too early.
BETA = 1.15

# What finding a clip takes, by method, beside what a sum has.
CLIP_OPTIONS = {
    "unbounded": ("beta", "noise", "offset", "split", "uniform"),
    "joint_exp": ("kernel",),
    "ind_exp": (),
}


def clip_options() -> list[str]:
    """The further arguments of all methods."""
    return [name for names in CLIP_OPTIONS.values() for name in names]


# An integer that is released with discrete Laplace noise, and the scale of the noise; 0 for none.
NoisyTerm = tuple[int, Fraction]


@dataclass(frozen=True, slots=True)
class Clip:
    """A released or public range, as multiples first, ..., last of a spacing.

    Everything here is a function of the range and of what else is public, not of the records.

    Attributes
    ----------
    step : float
        The spacing.
    per_unit : float
        1/step where that is (nearly) an integer, else 0; see `Lattice`.
    first, last : int
        The ends of the range, rounded outwards; first < last, within 2^31 of zero. Without a
        `resolution` they are `privacy.aggregates.LEAST_WIDTH` apart, or more.
    """

    step: float
    per_unit: float
    first: int
    last: int

    @classmethod
    def of(
        cls, low: float, high: float, resolution: float | None, widest: int | None = None
    ) -> Clip:
        """The clip for finite low <= high.

        The spacing is `resolution`, doubled until the ends are within 2^31 points of zero, and no
        more than `widest` apart. Without one, it is the smallest power of two for which they are.
        """
        exponent = math.frexp(max(abs(low), abs(high)))[1]  # both below 2^exponent
        # the reciprocal of anything smaller could overflow
        finest = 2.0 ** max(exponent - (REACH.bit_length() - 1), -1022)
        if widest is not None and low < high:  # two points are for rounding outwards
            apart = math.frexp(high / (widest - 2) - low / (widest - 2))[1]
            finest = max(finest, math.ldexp(1.0, max(apart, -1022)))
        step = finest if resolution is None else resolution
        while step < finest:
            step *= 2.0
        per_unit = points_per_unit(step)
        clip = cls(step, per_unit, 0, 0)
        # never empty, so that there is always noise
        least = LEAST_WIDTH if resolution is None else 1
        first = min(math.floor(low * clip.scale), REACH - least)
        last = max(math.ceil(high * clip.scale), first + least)
        return cls(step, per_unit, first, last)

    @property
    def scale(self) -> float:
        """Points per unit of the records."""
        return self.per_unit or 1.0 / self.step

    @property
    def width(self) -> int:
        """Number of points between the ends."""
        return self.last - self.first

    def decode(self, point: int | float) -> float:
        """The value of a point, of a sum of points, or of a number between points."""
        point = min(max(point, -LARGEST), LARGEST)
        return point / self.per_unit if self.per_unit else point * self.step


class Clipping:
    """The public side of a sum or a mean: its clip, or how it is found, and what is spent.

    Parameters
    ----------
    options : dict
        Further arguments of the method.
    q, lower, upper, method, resolution, **budget
        As in `sum`.
    widest : int, optional
        How many points apart the ends of a clip may be.

    Attributes
    ----------
    method : str or None
        How the clip is found; None if it is public.
    calibration : Calibration
        Of `privacy.aggregates`.
    search : Search or None
        For method "unbounded".
    bounds : (float, float)
        For the other methods, and for a public clip: both ends.
    levels : Levels
        For the other methods: the level of the clip.
    kernel : str
        For method "joint_exp".
    """

    def __init__(
        self,
        options: dict[str, Any],
        *,
        q: float | str | None,
        lower: float | None,
        upper: float | None,
        method: str,
        resolution: float | None,
        widest: int | None = None,
        **budget: Any,
    ) -> None:
        level, offset = privacy.aggregates.aim_of(q, method)
        self.lower, self.upper = lower, upper
        self.resolution, self.widest = resolution, widest
        if resolution is not None and not _checks.check_nonnegative("resolution", resolution):
            raise ValueError(f"resolution must be positive, got {resolution}")
        spent = {name: options[name] for name in ("split", "noise") if name in options}
        self.calibration = privacy.aggregates.calibrate(
            q=q,
            lower=lower,
            upper=upper,
            method=method,
            resolution=resolution,
            **budget,
            **(spent if method == "unbounded" else {}),
        )
        self.method = method if level is not None else None
        self.search = None
        what = "q=None" if level is None else f"method={method!r}"
        for name in options:
            if level is None or name not in CLIP_OPTIONS[method]:
                raise TypeError(f"{name} must be left out for {what}")
        clip = self.calibration.clip
        if level is not None and isinstance(clip, privacy.unbounded_quantile.Calibration):
            candidates: dict[str, Any] = dict(beta=BETA, offset=offset)
            candidates |= {name: options[name] for name in options.keys() - spent.keys()}
            candidates["unit"] = privacy.aggregates.unit_of(lower, upper, resolution)
            self.search = clip_search(level, clip, lower=lower, upper=upper, **candidates)
            return
        if lower is None or upper is None:
            raise ValueError(f"lower and upper must be given for {what}")
        self.bounds = self.lower, self.upper = _checks.check_bounds((lower, upper))
        self.kernel = check_kernel(options.get("kernel", "scan"))
        self.levels = Levels(0.0 if level is None else level)

    @property
    def two_sided(self) -> bool:
        """Whether the clip has two ends to be found, on either side of zero."""
        return self.lower is None and self.upper is None

    def clip(self, ends: Sequence[float]) -> Clip:
        """The clip, given what was found: nothing, the missing end, or its distances from zero."""
        low, high = self.lower, self.upper
        if low is None:
            low, high = (-ends[0], ends[1]) if high is None else (ends[0], high)
        elif high is None or ends:
            high = ends[0]
        return Clip.of(low, high, self.resolution, self.widest)

    def sum_terms(self, records: Records, clip: Clip) -> list[NoisyTerm]:
        """What the noise of a sum is added to, by one pass. Private."""
        total, _, _ = records.sums(clip.scale, clip.first, clip.last)
        scale = self.calibration.sum_scale(clip.first, clip.last, not records.n_is_public)
        return [(total, scale)]

    def mean(self, clip: Clip, may_have_missing: bool, rows: int | None) -> Mean:
        """The public side of a mean in a clip, of as many rows, if that is public."""
        calibration, about = self.calibration, clip.first + clip.last
        if not calibration.relation.n_is_public:
            rows = None
        steps = calibration.mean_steps(rows, may_have_missing)
        return Mean(calibration, clip, may_have_missing, rows, steps, about)


@dataclass(frozen=True, slots=True)
class Mean:
    """The public side of a mean in a clip: two noisy integers (`mean_scales`), and what they tell.

    Attributes
    ----------
    calibration : Calibration
    clip : Clip
    may_have_missing : bool
    rows : int or None
        How many there are, missing ones included, where that is known and public.
    steps : tuple of MeanStep
        The one at hand, and what follows it.
    about : int
        Under "swap", twice the point that the sum is taken about.
    """

    calibration: Calibration
    clip: Clip
    may_have_missing: bool
    rows: int | None
    steps: tuple[MeanStep, ...]
    about: int

    @property
    def is_pilot(self) -> bool:
        """Whether what is at hand only tells the point for what follows."""
        return len(self.steps) > 1

    @property
    def off(self) -> int:
        """Twice how far that point is from the middle of the clip."""
        return self.about - self.clip.first - self.clip.last

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """Of the noise of the two integers."""
        width, step = self.clip.width, self.steps[0]
        return self.calibration.mean_scales(width, self.may_have_missing, abs(self.off), step)

    def pair(self, total: Any, number: Any) -> tuple[Any, Any]:
        """The two integers, of a sum of records and their number; or of many groups. Private."""
        if self.calibration.relation.n_is_public:
            return 2 * total - number * self.about, number
        return total - number * self.clip.first, number * self.clip.last - total

    def terms(self, total: int, number: int) -> list[NoisyTerm]:
        """What noise is added to. Private."""
        return list(zip(self.pair(total, number), self.scales, strict=True))

    def point(self, first: int, second: int) -> Fraction | int:
        """The mean in points, inside the clip, from the two noisy integers."""
        if self.calibration.relation.n_is_public:
            centered, number = first, Fraction(self._at_most(second))
        else:
            centered, number = first - second, Fraction(first + second, self.clip.width)
        point: Fraction | int = Fraction(self.about, 2) + centered / (2 * max(number, Fraction(1)))
        return min(max(point, self.clip.first), self.clip.last)

    def value(self, first: int, second: int) -> float:
        """The same in the unit of the records."""
        return self.clip.decode(float(self.point(first, second)))

    def after(self, first: int, second: int) -> Mean:
        """What follows a pilot with these noisy integers."""
        middle, width, steps = self.clip.first + self.clip.last, self.clip.width, self.steps[1:]
        most = width - math.ceil(2 * width * steps[0].blur)
        about = min(max(round(2 * self.point(first, second)), middle - most), middle + most)
        return replace(self, steps=steps, about=about)

    def _at_most(self, number: int) -> int:
        """A noisy number of records, which are no more than the rows."""
        return number if self.rows is None else min(number, self.rows)

    def interval(self, first: int, second: int, request: Request) -> tuple[float, float]:
        r"""Means that the noise does not rule out, from the two noisy integers; post-processing.

        Notes
        -----
        If p is where the mean m lies between the ends of the clip, 0 to 1, then
        :math:`(1 - p) A - p B = 0` under "add-remove", and :math:`T - 2 (m - c) n = 0` under
        "swap". So the same numbers with noise are noise, of a known law (given what a pilot
        released), and the interval holds all p under which as much of it has a probability of more
        than what may be missed: the inversion of an exact test [3]_. A noisy n that is cut at the
        number of rows is nearer to n, and the tails of the sum are no heavier for it: those of
        :math:`|X + a|` grow with :math:`|a|`.

        For a population: the mean m of n independent draws from a law in the clip has, by
        Hoeffding's inequality, :math:`P(m \ge t) \le e^{-n\,\mathrm{KL}(t, p)}` for t > p, and
        the mirror image. What may be missed is shared by the noise (half), the two sides, and the
        number of records where that is noisy (an eighth).
        """
        sampled = request.covers == POPULATION
        miss = request.miss / 2.0 if sampled else request.miss
        swapped = self.calibration.relation.n_is_public

        if swapped:
            second = self._at_most(second)
        one, other = (float(min(max(each, -FAR), FAR)) for each in (first, second))
        scales, clip, off = self.scales, self.clip, self.off
        gaussian = self.calibration.gaussian

        def ruled_out(p: float) -> bool:
            if swapped:
                aside = (2.0 * p - 1.0) * clip.width - off
                weights = 1.0, abs(aside)
                distance = abs(one - aside * other)
            else:
                weights = 1.0 - p, p
                distance = abs((1.0 - p) * one - p * other)
            return noise_tails.pair_tail(weights, scales, distance, gaussian) <= miss

        if swapped:
            number = other
            at = 0.5 + (off + one / number) / (2.0 * clip.width) if number else 0.5
            noise, unit = scales[1], 1.0
        else:
            number = (one + other) / clip.width
            at = one / (one + other) if number else 0.5
            noise, unit = scales[0], 2.0 / clip.width
        at = min(max(at, 0.0), 1.0)
        low, high = (_boundary(ruled_out, at, end) for end in (0.0, 1.0))
        if sampled:
            known = swapped and noise == 0
            beside = 0
            if not known:
                beside = min(noise_tails.margin(noise, request.miss / 16.0, gaussian), FAR)
            sides = request.miss / 2.0 if known else request.miss * 3.0 / 8.0
            least = max(number - unit * beside, 1e-300)
            longest = math.log(2.0 / sides)
            low = _boundary(partial(_far, low, longest / least), low, 0.0)
            high = _boundary(partial(_far, high, longest / least), high, 1.0)
        low, high = (clip.decode(clip.first + p * clip.width) for p in (low, high))
        return low, high


def _boundary(ruled_out: Callable[[float], bool], start: float, end: float) -> float:
    """The last point on the way from one that is not ruled out to `end` that is not, either."""
    if not ruled_out(end):
        return end
    inside, outside = start, end
    for _ in range(60):
        middle = (inside + outside) / 2.0
        if ruled_out(middle):
            outside = middle
        else:
            inside = middle
    return outside


def _far(t: float, most: float, p: float) -> bool:
    """Whether the divergence of coins of probabilities t and p is more than `most`."""
    return bool(scipy.special.rel_entr(t, p) + scipy.special.rel_entr(1.0 - t, 1.0 - p) > most)
