r"""Counts, sums and means: discrete Laplace noise on integers, and a clip that is found first.

How the budget of a sum is split, and what its clip aims at, follows from a model of the error in
which records are counted in units of :math:`1/\epsilon`, so that neither their number n nor their
unit matters. Let the clip c be found for :math:`s\epsilon`, by a search whose noise is of some
:math:`1/s\epsilon` records. So :math:`\kappa/s\epsilon` of them are above c, and each loses
:math:`r c` on average. What is left is for the noise, so that the error is about

.. math:: \frac{c}{\epsilon} \Bigl(\frac{1}{1 - s} + \frac{\kappa r}{s}\Bigr), \quad
          \text{least at} \quad s = \frac{\sqrt{\kappa r}}{1 + \sqrt{\kappa r}}.

- `SHARE`, of the clip: the best one for :math:`\kappa r = 10^{-1/2}`, and within 9% of the least
  error from 0.1, where hardly anything is beyond the clip, to 1, with heavy tails.
- `OFFSET`: the search aims at :math:`1/s\epsilon` times this number of records more than those of
  its level, that is, at fewer. The noise of the threshold is never negative, with a median of
  :math:`0.9/s\epsilon`; searches that halt too early make up for about half of it.
- `AIM`: without a level, as many less than all records again, so that the model holds. Above any
  level below 1 lies a number of records that grows with n.
- `FRACTION`, f, of the threshold in what the search spends: the probability of k steps more than
  needed falls like :math:`k^{-f/(1-f)}`. A step of a clip is 15 of a quantile's, so that f has to
  be larger than for a quantile, and the exponent is 7/2.
- The noise of the queries is of :math:`1/(1-f)s\epsilon = 4.5/s\epsilon` records. Where that is
  more than n/10, a search is likely to halt on its first steps. So for an expected n the share is
  :math:`45/n\epsilon`, from `SHARE` to `MAX_SHARE`.

**A pilot** makes the noise of n harmless where n is private under "swap". A mean is
:math:`c + T / 2n` for any point c and :math:`T = \sum (2 x_i - 2c)` (`Calibration.mean_scales`), so
that an error of n moves it by as much as the mean is away from c. If c is the middle of a clip of
width W, that may be W/2, and the error half as large again as with a public n. So of a budget
:math:`\epsilon` for the noise, the part :math:`s \epsilon` is for a rough mean, and with the rest
the sum is taken about that.

- The rough mean is off by some :math:`\delta W`, with :math:`\delta = 1 / s n \epsilon`, and the
  noise of n is of some :math:`r / \epsilon` records, with r from 2 in the middle to 10 far off. In
  units of the error with a public n the whole is about :math:`1 + s + (r \delta)^2 / 2`, least at
  :math:`s = (r / n \epsilon)^{2/3}`. `PILOT` is s at :math:`n \epsilon` = `PILOT_FROM`, below which
  a pilot gains too little; s follows from the public number of rows, which n is about as large as.
- Near an end hardly anything of the budget is left for n, for nothing. So n has the part
  `LEAST` :math:`\delta` of it at least, and the sum the less, and c is not nearer to an end than
  :math:`\delta W`. Then the noise of n weighs at most a quarter or so of that of the sum.

Over the columns of ``bench/run.py --only totals``, and others, the error is 1.02 to 1.18 of that
with a public n for 1,000 records times epsilon, 1 to 1.1 for 10,000 and 1 to 1.05 for 100,000, if
none is missing: the noisy n is cut at the rows. Else it is up to 0.05 more.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from dpq_fast._checks import (
    MAX_COUNT,
    _real,
    check_bounds,
    check_choice,
    check_count,
    check_epsilon,
    check_max_contributions,
    check_nonnegative,
    check_pair,
    check_rho,
)
from dpq_fast.privacy import ind_exp, joint_exp, unbounded_quantile
from dpq_fast.privacy.above_threshold import (
    check_fraction,
    counting_losses,
    noise_of,
    threshold_fraction,
)
from dpq_fast.privacy.agg_tree import DEFAULT_N
from dpq_fast.privacy.budgets import resolve_epsilon
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import discrete_laplace_rho, largest_for_rho

if TYPE_CHECKING:
    from typing_extensions import Unpack

METHODS = ("unbounded", "joint_exp", "ind_exp")
AUTO = "auto"
SHARE, MAX_SHARE, FRACTION = 0.36, 0.6, 7.0 / 9.0
# Share times n epsilon.
ENOUGH = 45.0
OFFSET = -0.5
# Share of the pilot of a mean at so many records times epsilon; it falls like their 2/3rd power.
PILOT, PILOT_FROM = 0.04, 1_000.0
# Of its noise: the least part of the budget that n has after it.
LEAST = 4
# Of a variance, the share of its center is so much, over the square of records times epsilon, to
# the power of 1/5, from so many on.
CENTER, CENTER_FROM = 100.0, 30.0
# Between two known ends a search begins at least so many times nearer to one than the other is.
DEPTH = 2.0**10
# Level and offset without a level; and the level of methods that know no offset.
AIM = (1.0, 2.0 * OFFSET)
LEVEL = 0.99
# Least width of a clip in points of a lattice that nobody gave.
LEAST_WIDTH = 2**10
# Of that lattice, points up to a clip's larger end.
_REACH_BITS = 30
Clip = joint_exp.Calibration | ind_exp.Calibration | unbounded_quantile.Calibration


class CountCalibration(NamedTuple):
    """What a call of `count` spends and guarantees.

    Attributes
    ----------
    scale : Fraction
        Of the noise.
    epsilon : float or None
        The budget, per person.
    k : int
        Records per person.
    relation : Relation
    gaussian : bool
        Whether the noise is discrete Gaussian; else discrete Laplace.
    rho : float or None
        The budget, where that is given.
    """

    scale: Fraction
    epsilon: float | None
    k: int
    relation: Relation
    gaussian: bool = False
    rho: float | None = None

    @property
    def guarantee(self) -> Guarantee:
        """Discrete Laplace noise, of k units at most: for one, a pure epsilon says it all."""
        if self.epsilon is None:
            return Guarantee(None, 0.0, self.rho, None, self.relation.name, "zcdp")
        rho = None if self.k == 1 else discrete_laplace_rho(self.epsilon, self.k)
        return Guarantee(self.epsilon, rho=rho, neighbors=self.relation.name)


def calibrate_count(
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> CountCalibration:
    """The scale of a count's noise: k / epsilon, under both relations; or for a rho.

    Where a record may be left out, a replacement may change the number of records, too.
    """
    k, relation = check_max_contributions(max_contributions), relation_of(neighbors)
    resolve_epsilon(epsilon, rho)  # exactly one of them, and positive
    if rho is None:
        epsilon = check_epsilon(epsilon)
        return CountCalibration(laplace_scale(1, epsilon, k), epsilon, k, relation)
    rate, gaussian = noise_of_rho(rho, k)
    scale = laplace_scale(1, rate, k)
    return CountCalibration(scale, None, k, relation, gaussian, float(rho))


def noise_of_rho(rho: float, units: int) -> tuple[float, bool]:
    r"""The noise that a rho buys: the kind of less variance.

    Parameters
    ----------
    rho : float
    units : int
        How far a person moves an integer, at least, where the noise is discrete Laplace.

    Returns
    -------
    rate : float
        A sensitivity over it is the scale of the noise, from above: for Gaussian noise
        :math:`\sqrt{2 \rho}` ([CKS20] Theorem 14), else the largest epsilon whose
        `discrete_laplace_rho` is within rho.
    gaussian : bool
        Whether the noise is discrete Gaussian: up to a rho of 1.6 or so.

    Notes
    -----
    Integers with Laplace noise of scales :math:`s_i / \epsilon` are within :math:`\epsilon` where
    :math:`\sum |\Delta_i| / s_i \le 1`. Then :math:`\sum \Delta_i^2 / s_i^2 \le 1`, so that with
    Gaussian noise of the same :math:`s_i / \sqrt{2 \rho}` they are within rho.
    """
    rho = check_rho(rho)
    rate = math.sqrt(2.0) * math.sqrt(rho)
    while Fraction(rate) ** 2 > 2 * Fraction(rho):
        rate = math.nextafter(rate, 0.0)

    def cost(epsilon: float) -> float:
        return discrete_laplace_rho(epsilon, units)

    even = math.sqrt(2.0) * rate  # the epsilon of Laplace noise of the same variance
    if cost(even) > rho:
        return rate, True
    return largest_for_rho(cost, rho, even), False


class MeanStep(NamedTuple):
    """What two integers of a mean spend.

    Attributes
    ----------
    epsilon : float
    blur : Fraction
        Noise of the pilot before them, as a part of the width of the clip; 0 without one.
    """

    epsilon: float
    blur: Fraction = Fraction(0)


class Calibration(NamedTuple):
    """What a call of `sum` or `mean` spends and guarantees.

    Attributes
    ----------
    epsilon : float or None
        The whole budget, per person.
    clip : Clip or None
        What the clip spends; None if it is public.
    noise_epsilon : float
        What is left for the noise. It depends on the clip that was released: adaptive basic
        composition. Of a rho the rate of `noise_of_rho`.
    k : int
        Records per person.
    relation : Relation
    width : int
        Least number of points between the ends of the clip.
    gaussian : bool
        Whether the noise is discrete Gaussian; else discrete Laplace.
    rho : float or None
        The whole budget, where that is given.
    """

    epsilon: float | None
    clip: Clip | None
    noise_epsilon: float
    k: int
    relation: Relation
    width: int
    gaussian: bool = False
    rho: float | None = None

    def rest(self, part: float) -> float:
        """What is left of `noise_epsilon` beside a part, from below.

        Of Gaussian noise squares add up.
        """
        whole = self.noise_epsilon
        if not self.gaussian:
            return math.nextafter(whole - part, 0.0)
        return math.sqrt(whole - part) * math.sqrt(whole + part) * (1.0 - 2.0**-50)

    @property
    def noise_rho(self) -> float:
        r"""The rho of the noise of a sum, or of the two integers of a mean.

        A person moves the sum by k sensitivities at most, which costs `noise_epsilon`. The
        sensitivity to one record more or less is half of the width or more, and to a replaced one
        all of it. The two integers of a mean (`mean_scales`) cost no more together: of one scale
        the rho is convex in the distance, and 0 at 0, so that it is largest where all records of
        the person do the same. Those that are left out move n by k units and C by k widths, for
        half of the epsilon each. With :math:`y = \epsilon/2`, and
        :math:`\phi = a / \sinh a \le 1` of the scale 1/a of C, that is at most the rho of those
        that move C alone:

        .. math:: y \tanh\frac{y}{2} + y - \phi (1 - e^{-y}) \le 2y - \phi (1 - e^{-2y}),

        which is :math:`\phi (1 - e^{-2y}) \le 2y`. About another point than the middle, of the
        epsilon :math:`z + y` a part y, at most half, is for n, and z for the sum. Then the same is
        to be shown of :math:`\phi e^{-z} (1 - e^{-y}) \le 2y / (e^y + 1)`, which follows from
        :math:`z \ge y` and :math:`1 - e^{-2y} \le 2y`. A larger scale of the sum has a larger
        :math:`\phi`, and therefore less rho.

        A pilot and what follows have two parts of the epsilon, and no more than this together:
        rho / epsilon does not fall as epsilon grows, since :math:`\phi` and
        :math:`(1 - e^{-\epsilon}) / \epsilon` fall.
        """
        return discrete_laplace_rho(self.noise_epsilon, self.k * self.least_units)

    @property
    def least_units(self) -> int:
        """The least sensitivity of a sum, in points of its lattice, whatever the clip is."""
        return self.relation.worst(one=-(-self.width // 2), same=self.width)

    @property
    def guarantee(self) -> Guarantee:
        """A clip, unless it is public, and then Laplace noise: epsilons add up, and rhos."""
        if self.epsilon is None:
            return Guarantee(None, 0.0, self.rho, None, self.relation.name, "zcdp")
        if self.clip is None:
            return Guarantee(self.epsilon, rho=self.noise_rho, neighbors=self.relation.name)
        clip_rho = self.clip.guarantee.implied_rho
        assert clip_rho is not None  # it is pure
        rho = clip_rho + self.noise_rho
        return Guarantee(self.epsilon, 0.0, rho, None, self.relation.name, "basic")

    def sum_scale(self, low: int, high: int, may_have_missing: bool) -> Fraction:
        """Scale of the noise of a sum of integers clamped to [low, high].

        Parameters
        ----------
        low, high : int
            The clip, in lattice points; 0 need not lie between them.
        may_have_missing : bool
            Whether records may be left out, so that a replacement may be an addition or a removal.

        Returns
        -------
        Fraction
            For a sensitivity of high - low to a replacement, and of max(abs(low), abs(high)) to one
            record more or less.
        """
        low, high = (
            check_count(name, end, -MAX_COUNT) for name, end in (("low", low), ("high", high))
        )
        sensitivity = self.relation.worst(
            one=max(abs(low), abs(high)), same=high - low, may_have_missing=may_have_missing
        )
        return laplace_scale(sensitivity, self.noise_epsilon, self.k)

    def mean_steps(self, rows: int | None, may_have_missing: bool) -> tuple[MeanStep, ...]:
        """The parts of `noise_epsilon` for the pairs of integers of a mean, one after another.

        Parameters
        ----------
        rows : int or None
            The public number of rows, if it is known: as many records, or fewer.
        may_have_missing : bool
            As for `sum_scale`.

        Returns
        -------
        (MeanStep, MeanStep) or (MeanStep,)
            A pilot and the rest, where n is private under "swap" and `rows` many; else all of it.
        """
        whole = self.noise_epsilon
        if rows is None or not (may_have_missing and self.relation.n_is_public):
            return (MeanStep(whole),)
        records = check_count("rows", rows, 0) * whole / self.k
        if records < PILOT_FROM:
            return (MeanStep(whole),)
        share = PILOT * (PILOT_FROM / records) ** (2.0 / 3.0)
        pilot = share * whole
        if pilot == 0.0:  # of more records than there are numbers
            return (MeanStep(whole),)
        # in parts of 2^20, rounded up: at most 1/40
        blur = Fraction(max(math.ceil(2.0**20 / (share * records)), 1), 2**20)
        # rounded down: together no more than the whole
        return MeanStep(pilot), MeanStep(self.rest(pilot), blur)

    def spread_parts(self, expected_n: int | None) -> tuple[float, float]:
        r"""The parts of `noise_epsilon` for the center of a variance, and for the squares about it.

        Parameters
        ----------
        expected_n : int or None
            About how many records there are, by what is public: their number, where it is. Default:
            10,000 of `max_contributions` each.

        Returns
        -------
        (float, float)
            No center for so few that it would be anywhere.

        Notes
        -----
        In units of 1/N, for N = n :math:`\epsilon` / k, and of the squared width of the clip, the
        noise of the squares is :math:`g / (1 - s)`, g from 1/4 to 1 as the center is from the
        middle to an end, and the center is off by a variance of :math:`2 / (N s^2)`. Their sum of
        squares is least at about :math:`s = (24 / N^2 g^2)^{1/5}`; `CENTER` is :math:`24 / g^2` for
        a g of one half, and s is within a few percent of the best one for any.
        """
        whole = self.noise_epsilon
        n = DEFAULT_N * self.k if expected_n is None else max(expected_n, 0)
        records = n * whole / self.k
        if records < CENTER_FROM:
            return 0.0, whole
        center = (CENTER / (records * records)) ** 0.2 * whole
        if center == 0.0:
            return 0.0, whole
        return center, self.rest(center)

    def mean_scales(
        self, width: int, may_have_missing: bool, aside: int = 0, step: MeanStep | None = None
    ) -> tuple[Fraction, Fraction]:
        r"""Scales of the noise of two integers that a mean is computed from.

        The records are integers in [low, high], of which n are kept.

        Parameters
        ----------
        width : int
            W = high - low, at least 1.
        may_have_missing : bool
            As for `sum_scale`.
        aside : int, default 0
            a = \|2 c - low - high\|: twice how far c is from the middle, at most W. Public, or
            released before.
        step : MeanStep, optional
            One of `mean_steps`. Default: all of `noise_epsilon`, without a pilot.

        Returns
        -------
        (Fraction, Fraction)
            "add-remove": :math:`k W / \epsilon` twice, for :math:`A = \sum (x_i - low)` and
            :math:`B = \sum (high - x_i)`.
            "swap": :math:`k (W + a) / (1 - h) \epsilon` for :math:`T = \sum (2 x_i - 2 c)`, and
            :math:`k / h \epsilon` for n, where h is the larger one of :math:`(W - a) / 2 W` and
            the least part for n. If n is public, :math:`2 k W / \epsilon` and 0.

        Notes
        -----
        Independent Laplace noise of scales :math:`s_1, s_2` costs
        :math:`|\Delta_1| / s_1 + |\Delta_2| / s_2` where a record changes the integers by
        :math:`\Delta_1, \Delta_2`.

        - "add-remove": one record more or less adds x - low to A and high - x to B, or takes them
          away: W in total, wherever it lies. So each of them has the noise that it would have
          alone. n = (A + B)/W, and :math:`\sum (2 x_i - low - high) = A - B`. (With a part
          :math:`\alpha` of epsilon for that sum and the rest for n, a mean at p, from 0 to 1
          between the ends, has the variance :math:`2 (W / n \epsilon)^2` times
          :math:`1 / 4 \alpha^2 + (p - 1/2)^2 / (1 - \alpha)^2`, here
          :math:`p^2 + (1 - p)^2 \le 1`: half as much for all p where :math:`\alpha` is 1/2, and
          at most half as much for any :math:`\alpha` where p is 0 or 1.)
        - "swap", a value left out, or coming in: T changes by :math:`|2 x - 2 c| \le W + a`, at the
          farther end, and n by 1. That costs the parts :math:`1 - h` and h of
          :math:`\epsilon / k`: all of it.
        - "swap", a value replaced by a value: T changes by :math:`2 |x - x'| \le 2 W`, n not at
          all. That costs no more: :math:`1 - h \le (W + a) / 2 W`. As much, if h is
          :math:`(W - a) / 2 W`: then the noise of n takes nothing from that of T.
        - k records of a person cost k times as much.

        c is released before where it is not the middle: by a pilot, to which this adds up by
        adaptive basic composition. The least part for n follows from public numbers alone.
        """
        width = check_count("width", width)
        epsilon, blur = MeanStep(self.noise_epsilon) if step is None else step
        unit = laplace_scale(1, epsilon, self.k)
        if not self.relation.n_is_public:
            return width * unit, width * unit
        if not may_have_missing:
            return 2 * width * unit, Fraction(0)
        if check_count("aside", aside, 0) > width or (aside == width and not blur):
            raise ValueError(f"aside must be below width, got {aside} and {width}")
        for_number = max(Fraction(width - aside, 2 * width), LEAST * blur)
        return (width + aside) / (1 - for_number) * unit, unit / for_number


class _Person(TypedDict):
    """What a guarantee is about: how neighbors differ, and how many records are of one person."""

    neighbors: str
    max_contributions: int


def aim_of(q: float | str | None, method: str) -> tuple[float | None, float]:
    """The level of a clip, None for a public one, and the offset of a search for it.

    Parameters
    ----------
    q : float, "auto" or None
        As in `sum`.
    method : str
        As in `sum`.

    Returns
    -------
    (float or None, float)
        Of "auto" `AIM`, or `LEVEL` for methods that know no offset.
    """
    if isinstance(q, str) and q == AUTO:
        return AIM if method == "unbounded" else (LEVEL, OFFSET)
    return (None if q is None else float(Levels(_real("q", q)).values[0])), OFFSET


def public_clip(
    bounds: Any, q: float | str | None, lower: Any, upper: Any
) -> tuple[float | str | None, Any, Any]:
    """`q`, `lower` and `upper` of `sum`: those given, or those of a public clip to `bounds`."""
    if bounds is None:
        return q, lower, upper
    by_default = isinstance(q, str) and q == AUTO and upper is None
    if not (by_default and isinstance(lower, (int, float)) and lower == 0.0):
        raise ValueError("bounds must be left out where q, lower or upper is given")
    low, high = check_pair(bounds)
    return None, low, high


def unit_of(lower: float | None, upper: float | None, resolution: float | None = None) -> float:
    """The unit of the candidates of a search, the first of which is some 0.15 units above `lower`.

    1; with both ends less, so that clips of records that are far below 1 are found, too: the
    largest power of two that is at most 1, and at most a part of `DEPTH` of what lies between the
    ends, or `resolution` if that is more.
    """
    if lower is None or upper is None:
        return 1.0
    part = (-_real("lower", lower) + _real("upper", upper)) / DEPTH
    if resolution is not None:
        part = max(part, _real("resolution", resolution))
    if not 0.0 < part < 1.0:
        return 1.0
    return math.ldexp(0.5, max(math.frexp(part)[1], -1021))


def share_of(epsilon: float, expected_n: int | None = None, max_contributions: int = 1) -> float:
    """The part of `epsilon` that a clip has by default.

    Parameters
    ----------
    epsilon : float
        The whole budget.
    expected_n : int, optional
        A public guess at n. Without one, n is taken to be large enough for any budget.
    max_contributions : int, default 1
        Up to k records per person; the units are of k / `epsilon` records.

    Returns
    -------
    float
        From `SHARE` to `MAX_SHARE`.
    """
    if expected_n is None:
        return SHARE
    k = check_max_contributions(max_contributions)
    expected = check_count("expected_n", expected_n, 0) * check_epsilon(epsilon) / k
    return max(SHARE, ENOUGH / max(expected, ENOUGH / MAX_SHARE))


def _least_width(
    public: bool, lower: float | None, upper: float | None, resolution: float | None
) -> int:
    """How many points of its lattice a clip spans at least.

    Without `resolution` at least `LEAST_WIDTH`, else 1, unless the ends are public. Of these the
    lattice has a spacing of `resolution`, or of less than 2^-30 of the power of two above both, or
    of less than 2^-1021.
    """
    if resolution is None:
        return LEAST_WIDTH
    step = check_nonnegative("resolution", resolution)
    if not public or lower is None or upper is None or step == 0.0:
        return 1
    low, high = check_bounds((lower, upper))
    exponent = math.frexp(max(abs(low), abs(high)))[1]
    coarsest = math.ldexp(1.0, max(exponent - _REACH_BITS, -1021))
    # the ends are rounded outwards, to integers, from products with a much smaller error than this
    return max(1, math.ceil((high - low) / max(step, coarsest) - 2.0**-10))


def calibrate(
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    q: float | str | None = AUTO,
    lower: float | None = 0.0,
    upper: float | None = None,
    method: str = "unbounded",
    share: float | None = None,
    split: float | None = None,
    noise: str = "exponential",
    expected_n: int | None = None,
    resolution: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Calibration:
    """The parts of a budget for the clip and for the noise: `share` of it, and the rest.

    Parameters
    ----------
    epsilon, rho : float
        Total budget, per person: one of the two. Of a rho the clip has `share` of its root, and
        what the rho of that leaves is for the noise (`noise_of_rho`).
    bounds : (float, float), optional
        A public clip, in place of `q`, `lower` and `upper`.
    q : float, "auto" or None
        The level of the clip, away from the end that is known; None for a public clip. See
        `aim_of`.
    lower, upper : float, optional
        The known ends. Without both, the records on either side of zero have a clip each.
    method : {"unbounded", "joint_exp", "ind_exp"}
        How the clip is found.
    share : float, optional
        Of the clip. Default: see `share_of`.
    split, noise
        Of the search, as in `unbounded_quantile`; by default `FRACTION` is for the threshold,
        unless the noise asks for equal parts.
    expected_n : int, optional
        A public guess at n.
    resolution : float, optional
        Of the lattice that records are rounded to.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    Calibration
    """
    q, lower, upper = public_clip(bounds, q, lower, upper)
    check_choice("method", method, METHODS)
    k, relation = check_max_contributions(max_contributions), relation_of(neighbors)
    resolve_epsilon(epsilon, rho)  # exactly one of them, and positive
    budget = check_epsilon(epsilon) if rho is None else math.sqrt(2.0) * math.sqrt(rho)
    by_default = share_of(budget, expected_n, k)
    first = (by_default if share is None else check_fraction(share, "share")) * budget
    level, _ = aim_of(q, method)
    width = _least_width(level is None, lower, upper, resolution)

    def left(clip: Clip | None, spent: float) -> Calibration:
        """With what a clip leaves for the noise."""
        if rho is None:
            return Calibration(budget, clip, budget - spent, k, relation, width)
        of_clip = 0.0 if clip is None else clip.guarantee.implied_rho
        assert of_clip is not None  # it is pure
        made = Calibration(None, clip, budget, k, relation, width, rho=float(rho))
        rate, gaussian = noise_of_rho(rho - of_clip * (1.0 + 2.0**-50), k * made.least_units)
        return made._replace(noise_epsilon=rate, gaussian=gaussian)

    if level is None:
        return left(None, 0.0)
    person = _Person(neighbors=neighbors, max_contributions=k)
    clip: Clip
    if method == "joint_exp":
        clip = joint_exp.calibrate(level, epsilon=first, **person)
    elif method == "ind_exp":
        clip = ind_exp.calibrate(level, epsilon=first, **person)
    else:
        if split is None and not noise_of(noise).equal_rates:
            split = FRACTION
        if lower is None and upper is None:
            clip = _two_sided(level, first, split, noise, **person)
        else:
            clip = unbounded_quantile.calibrate(
                1.0 - level if lower is None else level,
                epsilon=first,
                lower=lower,
                upper=upper,
                split=split,
                noise=noise,
                **person,
            )
    return left(clip, first)


def _two_sided(
    q: float, epsilon: float, split: float | None, noise: str, **person: Unpack[_Person]
) -> unbounded_quantile.Calibration:
    r"""Two searches, of the records on either side of zero, for `epsilon` in total.

    A record is on one side, so one more or less costs one search. A replacement inside a side
    costs :math:`\epsilon_1 + \epsilon_2` there; one that changes sides is a removal on one and an
    addition on the other, whose one-sided losses (`counting_losses`) add up.
    """
    relation = relation_of(person["neighbors"])
    one = unbounded_quantile.calibrate(q, epsilon=epsilon, split=split, noise=noise, **person)
    fraction = threshold_fraction(split, one.noise)
    cost = unbounded_quantile.costs_of(q, relation, one.way, fraction).epsilon
    worst = relation.worst(one=cost, same=cost, moved=float(sum(counting_losses(q, fraction))))
    ratio = worst / cost
    epsilons = [(first / ratio, second / ratio) for first, second in one.step_epsilons]
    return one._replace(
        step_epsilons=epsilons, promise=partial(Guarantee, epsilon, neighbors=relation.name)
    )


def laplace_scale(sensitivity: int, epsilon: float, max_contributions: int = 1) -> Fraction:
    """Scale of the discrete Laplace noise of an integer: sensitivity k / epsilon, not rounded.

    Parameters
    ----------
    sensitivity : int
        How much one record changes the integer, at most.
    epsilon : float
        Budget of the release, per person.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    Fraction
    """
    k = check_max_contributions(max_contributions)
    sensitivity = check_count("sensitivity", sensitivity, 0)
    return Fraction(sensitivity * k) / Fraction(check_epsilon(epsilon))
