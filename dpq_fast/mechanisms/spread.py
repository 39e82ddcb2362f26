"""Variances in a clip: the mean of squares about a center, the public side and what noise tells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from dpq_fast._kernels.sums import ASIDE, middle_of
from dpq_fast.data.records import Records
from dpq_fast.laws import noise_tails
from dpq_fast.mechanisms.clipping import FAR, Clip, Clipping, Mean, NoisyTerm
from dpq_fast.privacy.aggregates import Calibration, MeanStep
from dpq_fast.privacy.intervals import Request
from dpq_fast.released.estimate import Estimate

# How far apart the ends of a clip may be, where integers in it are squared.
WIDEST = 2 * ASIDE
# A confidence that is rounded to 1 is no part of one.
_SUREST = 1.0 - 2.0**-53
Noisy = Callable[[list[NoisyTerm]], list[int]]


class Moments(NamedTuple):
    """Exact sums of records as integers. Private.

    Attributes
    ----------
    total, number : int
        Their sum, and how many there are.
    squares : int
        The sum of their squares about the middle of the clip, ``middle_of(first, last)``.
    """

    total: int
    number: int
    squares: int

    def about(self, clip: Clip, twice: int) -> int:
        r"""The sum of :math:`(2 x - t)^2` for t = `twice`."""
        middle = middle_of(clip.first, clip.last)
        off, beside = 2 * middle - twice, self.total - self.number * middle
        return 4 * self.squares + off * (4 * beside + self.number * off)

    def about_mean(self, clip: Clip) -> int:
        r"""The sum of :math:`(2 x - 2 m)^2` about their mean m, rounded down."""
        if not self.number:
            return 0
        beside = self.total - self.number * middle_of(clip.first, clip.last)
        return 4 * (self.number * self.squares - beside * beside) // self.number


@dataclass(frozen=True, slots=True)
class Spread:
    r"""The public side of a variance in a clip.

    With a center c, released as a mean with a part of the budget, :math:`y = (2 x - 2 c)^2` is an
    integer of each record in [0, G], G its largest at an end of the clip. The mean of y is released
    as one in a public clip, and is four variances, and four times :math:`(m - c)^2` for the mean m
    of the records. Without a center :math:`\sum (2 x - 2 m)^2` stands in the place of the sum of y:
    one record more raises it by :math:`4 (x - m)^2 n / (n + 1)`, from 0 to
    :math:`G = 4 (last - first)^2`, rounded down or not, as a record with a y in [0, G] would; and a
    replaced one is one less and one more.

    Attributes
    ----------
    calibration : Calibration
        Of what is spent on clip, center and squares.
    clip : Clip
    may_have_missing : bool
    rows : int or None
        As of `Mean`.
    parts : (float, float)
        What the center and the squares spend.
    """

    calibration: Calibration
    clip: Clip
    may_have_missing: bool
    rows: int | None
    parts: tuple[float, float]

    @classmethod
    def of(
        cls,
        clipping: Clipping,
        clip: Clip,
        may_have_missing: bool,
        rows: int | None,
        expected_n: int | None,
    ) -> Spread:
        """Of as many rows, if that is public."""
        calibration = clipping.calibration
        if not calibration.relation.n_is_public:
            rows = None
        expected = expected_n if rows is None else rows
        return cls(calibration, clip, may_have_missing, rows, calibration.spread_parts(expected))

    def center(self) -> Mean | None:
        """What the center is released as: of one step, since what is left of its error is told."""
        if not self.parts[0]:
            return None
        steps = (MeanStep(self.parts[0]),)
        about = self.clip.first + self.clip.last
        return Mean(self.calibration, self.clip, self.may_have_missing, self.rows, steps, about)

    def squares(self, moments: Moments, twice: int | None) -> tuple[Mean, int]:
        """What the squares about half of `twice` are released as, and their sum; of None, about m.

        The sum is private.
        """
        if twice is None:
            largest, total = 4 * self.clip.width**2, moments.about_mean(self.clip)
        else:
            largest = max(2 * self.clip.last - twice, twice - 2 * self.clip.first) ** 2
            total = moments.about(self.clip, twice)
        spent = self.calibration._replace(noise_epsilon=self.parts[1])
        steps = spent.mean_steps(self.rows, self.may_have_missing)
        clip = Clip(1.0, 1.0, 0, largest)
        mean = Mean(spent, clip, self.may_have_missing, self.rows, steps, largest)
        return mean, total

    def released(self, moments: Moments, noisy: Noisy) -> Found:
        """What is released of moments: all of it is public."""
        mean, twice = self.center(), None
        center: tuple[Mean, int, int] | None = None
        if mean is not None:
            first, second = noisy(mean.terms(moments.total, moments.number))
            center, twice = (mean, first, second), twice_of(mean, first, second)
        mean, total = self.squares(moments, twice)
        first, second = noisy(mean.terms(total, moments.number))
        if mean.is_pilot:
            mean = mean.after(first, second)
            first, second = noisy(mean.terms(total, moments.number))
        return Found(self, mean, first, second, center)


def twice_of(mean: Mean, first: int, second: int) -> int:
    """Twice a center, a whole number, from its two noisy integers."""
    return round(2 * mean.point(first, second))


class Found(NamedTuple):
    """What was released of a variance; all else is post-processing.

    Attributes
    ----------
    spread : Spread
    squares : Mean
        Of the squares, with its two noisy integers.
    first, second : int
    center : (Mean, int, int) or None
        The same of the center.
    """

    spread: Spread
    squares: Mean
    first: int
    second: int
    center: tuple[Mean, int, int] | None

    @property
    def number(self) -> Fraction:
        """About how many records there are."""
        if self.spread.calibration.relation.n_is_public:
            most = self.spread.rows
            return Fraction(self.second if most is None else min(self.second, most))
        return Fraction(self.first + self.second, self.squares.clip.width)

    def fourfold(self, ddof: int) -> Fraction:
        """Four variances, in points: not negative, and no more than a clip allows."""
        mean = Fraction(self.squares.point(self.first, self.second))
        width = self.spread.clip.width
        four = min(max(mean - self._beside(), Fraction(0)), Fraction(width * width))
        number = self.number
        return four * number / max(number - ddof, Fraction(1)) if number > 1 else four

    def _beside(self) -> Fraction:
        """What the noise of the center adds to the mean of the squares, on average."""
        if self.center is None:
            return Fraction(0)
        mean, first, second = self.center
        (one, other), number = mean.scales, max(self.number, Fraction(1))
        draws = 1 if self.spread.calibration.gaussian else 2  # variance, of a scale of 1
        if self.spread.calibration.relation.n_is_public:
            return draws * (one / number) ** 2
        at = min(max(Fraction(first, max(first + second, 1)), Fraction(0)), Fraction(1))
        return 4 * draws * ((1 - at) ** 2 * one**2 + at**2 * other**2) / number**2

    def value(self, ddof: int, root: bool) -> float:
        """The variance, or the standard deviation, in the unit of the records."""
        return self._decoded(float(self.fourfold(ddof)), root)

    def _decoded(self, four: float, root: bool) -> float:
        clip = self.spread.clip
        half = 0.5 / clip.per_unit if clip.per_unit else 0.5 * clip.step
        deviation = math.sqrt(max(four, 0.0)) * half
        return deviation if root else deviation * deviation

    def estimate(self, ddof: int, root: bool, request: Request) -> Estimate:
        """With an interval: of what may be missed an eighth each is for the center and n."""
        part, eighth = (
            replace(request, confidence=min(1.0 - request.miss * share, _SUREST))
            for share in (0.75, 0.125)
        )
        low, high = self.squares.interval(self.first, self.second, part)
        if self.center is not None:
            mean, first, second = self.center
            clip = self.spread.clip
            ends = mean.interval(first, second, eighth)
            twice = twice_of(*self.center)
            beside = max(abs(2.0 * end * clip.scale - twice) for end in ends)
            low = max(low - beside * beside, 0.0)
        scales, gaussian = self.squares.scales, self.spread.calibration.gaussian
        if self.spread.calibration.relation.n_is_public:
            aside = Fraction(noise_tails.margin(scales[1], eighth.miss, gaussian))
        else:
            either = noise_tails.margin(scales[0], eighth.miss / 2.0, gaussian)
            aside = Fraction(2 * either, self.squares.clip.width)
        far = Fraction(FAR)
        number, off = (float(min(max(each, -far), far)) for each in (self.number, aside))
        fewest, most = max(number - off, ddof + 1.0), max(number + off, ddof + 1.0)
        low, high = low * most / max(most - ddof, 1.0), high * fewest / max(fewest - ddof, 1.0)
        value = self.value(ddof, root)
        ends = (self._decoded(low, root), self._decoded(high, root))
        return Estimate.around(value, *ends, request)


def spread_of(
    records: Records,
    clip: Clip,
    clipping: Clipping,
    of_group: bool,
    expected_n: int | None,
    noisy: Noisy,
) -> Found:
    """What is released of records; how many rows a group has is private."""
    total, number, rows, squares = records.moments(clip.scale, clip.first, clip.last)
    spread = Spread.of(
        clipping, clip, not records.n_is_public, None if of_group else rows, expected_n
    )
    return spread.released(Moments(total, number, squares), noisy)
