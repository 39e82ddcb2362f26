"""Counts, sums and means, with noise on exact integers.

A sum is clipped to a range that is released first [Dur23, 6.3] or public. In the module itself,
`sum` is the one defined here, not Python's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from dpq_fast import _checks, privacy
from dpq_fast._arguments import with_further
from dpq_fast._kernels.sums import REACH
from dpq_fast.data.lattice import points_per_unit
from dpq_fast.data.records import Records
from dpq_fast.data.sample import Sample
from dpq_fast.data.units import DURATIONS, INSTANTS, Presence, Timed
from dpq_fast.laws import laplace_sums
from dpq_fast.laws.unbounded import UnboundedQuantileLaw
from dpq_fast.mechanisms._calls import as_called, with_options
from dpq_fast.mechanisms._prepared import Prepared, releases
from dpq_fast.mechanisms.ind_exp import IndExpLaw
from dpq_fast.mechanisms.ind_exp import law_of as ind_exp_law_of
from dpq_fast.mechanisms.joint_exp import JointExpLaw, check_kernel
from dpq_fast.mechanisms.joint_exp import law_of as joint_exp_law_of
from dpq_fast.mechanisms.unbounded_quantile import clip_search
from dpq_fast.noise.discrete import discrete_laplace
from dpq_fast.privacy.aggregates import AUTO, LEAST_WIDTH
from dpq_fast.privacy.intervals import POPULATION, SAMPLE, Request
from dpq_fast.privacy.levels import Levels
from dpq_fast.released.estimate import Estimate

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dpq_fast.mechanisms._calls import RecordOptions

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
    def of(cls, low: float, high: float, resolution: float | None) -> Clip:
        """The clip for finite low <= high.

        The spacing is `resolution`, doubled until the ends are within 2^31 points of zero. Without
        one, it is the smallest power of two for which they are.
        """
        exponent = math.frexp(max(abs(low), abs(high)))[1]  # both below 2^exponent
        # the reciprocal of anything smaller could overflow
        finest = 2.0 ** max(exponent - (REACH.bit_length() - 1), -1022)
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
        **budget: Any,
    ) -> None:
        level, offset = privacy.aggregates.aim_of(q, method)
        self.lower, self.upper = lower, upper
        self.resolution = resolution
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
        return Clip.of(low, high, self.resolution)

    def sum_terms(self, records: Records, clip: Clip) -> list[NoisyTerm]:
        """What the noise of a sum is added to, by one pass. Private."""
        total, _ = records.sums(clip.scale, clip.first, clip.last)
        scale = self.calibration.sum_scale(clip.first, clip.last, not records.n_is_public)
        return [(total, scale)]

    def mean_terms(self, records: Records, clip: Clip) -> list[NoisyTerm]:
        """What the noise of a mean is added to (`mean_scales`), by one pass. Private."""
        total, number = records.sums(clip.scale, clip.first, clip.last)
        pair = self.mean_pair(total, number, clip)
        scales = self.calibration.mean_scales(clip.width, not records.n_is_public)
        return list(zip(pair, scales, strict=True))

    def mean_pair(self, total: Any, number: Any, clip: Clip) -> tuple[Any, Any]:
        """The two integers of `mean_scales`, or those of many groups. Private."""
        if not self.calibration.relation.n_is_public:
            return total - number * clip.first, number * clip.last - total
        return 2 * total - number * (clip.first + clip.last), number

    def mean_of(self, first: int, second: int, clip: Clip) -> float:
        """The mean inside the clip, from the two noisy integers of `mean_scales`."""
        if not self.calibration.relation.n_is_public:
            centered, number = first - second, Fraction(first + second, clip.width)
        else:
            centered, number = first, Fraction(second)
        point: Fraction | int = Fraction(clip.first + clip.last, 2) + centered / (
            2 * max(number, Fraction(1))
        )
        return clip.decode(float(min(max(point, clip.first), clip.last)))

    def mean_interval(
        self,
        first: int,
        second: int,
        scales: tuple[Fraction, Fraction],
        clip: Clip,
        request: Request,
    ) -> tuple[float, float]:
        r"""Means that the noise does not rule out, from the two noisy integers; post-processing.

        Notes
        -----
        If p is where the mean lies between the ends of the clip, 0 to 1, then
        :math:`(1 - p) A - p B = 0` under "add-remove", and
        :math:`C - (2p - 1) W n = 0` under "swap". So the same numbers with noise are noise, of a
        known law, and the interval holds all p under which as much of it has a probability of more
        than what may be missed: the inversion of an exact test [3]_.

        For a population: the mean m of n independent draws from a law in the clip has, by
        Hoeffding's inequality, :math:`P(m \ge t) \le e^{-n\,\mathrm{KL}(t, p)}` for t > p, and
        the mirror image. What may be missed is shared by the noise (half), the two sides, and the
        number of records where that is noisy (an eighth).
        """
        sampled = request.covers == POPULATION
        miss = request.miss / 2.0 if sampled else request.miss
        swapped = self.calibration.relation.n_is_public

        one, other = (float(min(max(each, -FAR), FAR)) for each in (first, second))

        def ruled_out(p: float) -> bool:
            if swapped:
                weights = 1.0, abs(2.0 * p - 1.0) * clip.width
                distance = abs(one - (2.0 * p - 1.0) * clip.width * other)
            else:
                weights = 1.0 - p, p
                distance = abs((1.0 - p) * one - p * other)
            return laplace_sums.pair_tail(weights, scales, distance) <= miss

        if swapped:
            number = other
            at = 0.5 + one / (2.0 * clip.width * number) if number else 0.5
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
                beside = min(laplace_sums.margin(noise, request.miss / 16.0), FAR)
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


def of_sample(request: Request | None) -> Request | None:
    """Refuse what a number or a sum has no population for."""
    if request is not None and request.covers == POPULATION:
        raise ValueError(
            f"covers must be {SAMPLE!r} for a count or a sum, which no law of single records has, "
            f"got {POPULATION!r}"
        )
    return request


def _reader(
    clipping: Clipping, x: Any, **form: Any
) -> Callable[[np.random.Generator], tuple[Records, Clip]]:
    """What reads the records, and releases a clip for them; all that is public is checked here."""
    spent = clipping.calibration.clip
    if isinstance(spent, (privacy.joint_exp.Calibration, privacy.ind_exp.Calibration)):
        read_sample = Sample.reader(x, clipping.bounds, resolution=clipping.resolution, **form)

        def read_order(rng: np.random.Generator) -> tuple[Records, Clip]:
            levels = clipping.levels
            sample = read_sample(levels.values)
            law: JointExpLaw | IndExpLaw
            if isinstance(spent, privacy.joint_exp.Calibration):
                law = joint_exp_law_of(sample, levels, spent.rate, clipping.kernel, rng)
            else:
                law = ind_exp_law_of(sample, levels, spent)
            return sample.records, clipping.clip([law.sample(rng)])

        return read_order
    read_records, search = Records.reader(x, **form), clipping.search

    def read(rng: np.random.Generator) -> tuple[Records, Clip]:
        records, ends = read_records(), []
        if search is not None:
            find = search.sides if clipping.two_sided else search.count
            ends = [UnboundedQuantileLaw(search, [one]).sample(rng) for one in find(records)]
        return records, clipping.clip(ends)

    return read


def _noisy(terms: list[NoisyTerm], rng: np.random.Generator) -> list[int]:
    return [value + (discrete_laplace(scale, rng=rng) if scale else 0) for value, scale in terms]


def count_terms(records: Records, scale: Fraction) -> list[NoisyTerm]:
    """What the noise of a count is added to, by one pass. Private."""
    return [(records.total, scale)]


@releases()
@with_options(Records.reader)
def count(
    x: Any,
    *,
    epsilon: float,
    neighbors: str = "swap",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    confidence: float | None = None,
    covers: str = "sample",
    **column: Unpack[RecordOptions],
) -> Prepared[int | Estimate]:
    r"""Release how many records there are, without the missing ones.

    Parameters
    ----------
    x : array_like of real numbers, times, durations or text, shape (n,)
        Private records: an array, a pandas, polars or pyarrow column, a sequence, or a `Sample`.
    epsilon : float
        Budget, positive and finite. Public, as all that follow but `counts`.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record, also by a missing one; "add-remove" adds or deletes one.
    counts : array_like of int, shape (n,), optional
        How many records each entry of `x` stands for.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave NaN and null out record by record, or state that there are none.
    max_contributions : int, default 1
        Up to this many records per person: the guarantee is per person.
    accountant : Accountant, optional
        Charged with ``guarantee("count", ...)``; refuses before `x` is touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system.
    workers : int, default 1
        Threads for passes over a long `x`; the answer does not depend on it.
    confidence : float, optional
        Give an `Estimate` with an interval that covers the number of records with at least this
        probability: the law of the noise is known, so that it costs nothing. Public.
    covers : {"sample"}, default "sample"
        Here always the records at hand. Public.

    Returns
    -------
    int or Estimate
        Unbiased, and therefore not clamped: it may be negative. The ends of an interval are not,
        unless the number is.

    Raises
    ------
    TypeError
        If `x` or an argument is not of the type its rule above asks for.
    ValueError
        If a public argument breaks its rule, or `x` or `counts` its form (`Sample.of`).
    BudgetExceeded
        If `accountant` has too little left.

    See Also
    --------
    sum, mean : Of the records themselves.

    Notes
    -----
    **Mechanism.** The number plus discrete Laplace noise of scale `max_contributions` / `epsilon`,
    drawn exactly (`noise.discrete_laplace`). Standard deviation about 1.4 scales.

    **Privacy.** Pure `epsilon`-DP under `neighbors`. One record changes the number by at most 1,
    under "swap" too, where a record may become a missing one. Not covered: running time.

    **Cost.** One pass over `x`.

    Examples
    --------
    >>> import numpy as np
    >>> isinstance(count(np.arange(1_000), epsilon=1.0), int)
    True
    """
    calibration = privacy.aggregates.calibrate_count(
        epsilon=epsilon, neighbors=neighbors, max_contributions=max_contributions
    )
    request = of_sample(Request.of(confidence, covers))
    read = Records.reader(x if isinstance(x, Sample) else Timed(x, Presence()), **column)

    def draw(rng: np.random.Generator) -> int | Estimate:
        (number,) = _noisy(count_terms(read(), calibration.scale), rng)
        if request is None:
            return number
        beside = laplace_sums.margin(calibration.scale, request.miss)
        low, high = min(max(number - beside, 0), number), max(number + beside, 0)
        return Estimate(number, low, high, request.confidence, request.covers)

    return Prepared(calibration, draw, "count")


def _clipped(
    name: str,
    /,
    x: Any,
    *,
    epsilon: float,
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
    workers: int = 1,
    confidence: float | None = None,
    covers: str = "sample",
    **method_options: Any,
) -> Prepared[float | Estimate]:
    """A sum or a mean, by its name."""
    q, lower, upper = privacy.aggregates.public_clip(bounds, q, lower, upper)
    clipping = Clipping(
        method_options,
        epsilon=epsilon,
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
    if name == "sum":
        of_sample(request)
    read = _reader(clipping, x, counts=counts, nan_policy=nan_policy, workers=workers)

    def draw_sum(rng: np.random.Generator) -> float | Estimate:
        records, clip = read(rng)
        ((_, scale),) = terms = clipping.sum_terms(records, clip)
        (total,) = _noisy(terms, rng)
        if request is None:
            return clip.decode(total)
        beside = laplace_sums.margin(scale, request.miss)
        value, low, high = (clip.decode(point) for point in (total, total - beside, total + beside))
        return Estimate(value, low, high, request.confidence, request.covers)

    def draw_mean(rng: np.random.Generator) -> float | Estimate:
        records, clip = read(rng)
        terms = clipping.mean_terms(records, clip)
        first, second = _noisy(terms, rng)
        value = clipping.mean_of(first, second, clip)
        if request is None:
            return value
        scales = terms[0][1], terms[1][1]
        low, high = clipping.mean_interval(first, second, scales, clip, request)
        return Estimate.around(value, low, high, request)

    return Prepared(clipping.calibration, draw_sum if name == "sum" else draw_mean, name)


@releases(DURATIONS)
@with_further(clip_options)
@as_called(_clipped)
def sum(*arguments: Any, **options: Any) -> Prepared[float | Estimate]:
    r"""Release the sum of the records, clipped at a private quantile or at public bounds.

    Parameters
    ----------
    x : array_like of real numbers or durations, shape (n,)
        Private records, any order: an array, a pandas, polars or pyarrow column, a sequence, or a
        `Sample` (then clamped to its bounds). n >= 0. NaN is left out (`nan_policy`). Of durations
        where `upper`, `lower` or `resolution` is one; means of times, too (`Sample.of`).
    epsilon : float
        Total budget of the call, positive and finite. Public, as all that follow but `counts`.
    bounds : (low, high), optional
        A public clip, chosen without looking at `x`: the records are clamped to it, none is
        searched for, and all of `epsilon` goes to the sum. In place of `q`, `lower` and `upper`.
    q : float, "auto" or None, default "auto"
        The level that the records are clipped at. "auto": so high that about
        1 / (`share` * `epsilon`) records lie above the clip, however many there are; 0.99 for the
        other methods. None: a public clip to [`lower`, `upper`], as by
        `bounds`.
    lower : float or None, default 0
        The lower end of the clip; smaller records count as `lower`. None if only `upper` is known,
        and the lower end is found, at level 1 - q; or neither, and the records below zero and the
        others have a clip of their own, each at level q away from zero.
    upper : float, optional
        The upper end of the range that is searched for a clip.
    method : {"unbounded", "joint_exp", "ind_exp"}, default "unbounded"
        The mechanism that finds the clip: `unbounded_quantile`, or one of those that need both
        `lower` and `upper`.
    share : float, optional
        The part of `epsilon` that is spent on the clip, strictly between 0 and 1. Default: 0.36;
        up to 0.6 for an `expected_n` below 125 / `epsilon`.
    expected_n : int, optional
        A public guess at the number of records, for the default of `share`. Worth giving below
        125 / `epsilon`: else the search for the clip of so few is likely to halt too early.
    resolution : float, optional
        Spacing of the lattice that records are rounded to. Default: a power of two, 2^-31 to
        2^-30 of the clip. Doubled as often as it takes for the clip to lie within 2^31 of its
        multiples.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record; "add-remove" adds or deletes one.
    counts, nan_policy, max_contributions, accountant, rng, workers
        As in `count`.
    confidence, covers
        As in `count`: the interval covers the sum of the records as they are clipped.
    **method_options
        For "unbounded", with defaults of their own: `beta` (1.15), `noise`, `offset` (-1 from
        level 1 for "auto", else -0.5), `split` (7/9, or 1/2 for noise "gumbel"), `uniform`. For
        "joint_exp": `kernel`.

    Returns
    -------
    float or Estimate
        A multiple of the spacing.

    Raises
    ------
    TypeError
        If `x` or an argument is not of the type its rule above asks for.
    ValueError
        If a public argument breaks its rule, or `x` or `counts` its form (`Sample.of`).
    BudgetExceeded
        If `accountant` has too little left.

    See Also
    --------
    mean : The same divided by the number of records, which it releases, too, where it is private.
    unbounded_quantile : The clip on its own.

    Notes
    -----
    **Mechanism.** [1]_ 6.3, in two steps. A private quantile c of the records. Then their sum,
    clamped to [`lower`, c], plus Laplace noise. Each record is rounded, by half the spacing at
    most, to a lattice that depends on c and not on the records; the clip is rounded outwards, the
    sum is exact, and so is the discrete noise.

    **Privacy.** Pure `epsilon`-DP under `neighbors`: ``share * epsilon`` for the clip and the rest
    for the sum, by basic composition; see `privacy.aggregates` for two sides. With a clip
    [a, c], one record more or less changes the sum by at most max(\|a\|, \|c\|), and a replaced one
    by c - a. "swap" takes the larger of the two, or c - a where no record can be left out: with
    ``nan_policy="raise"``. All this in integers: a sum of floats would have a larger sensitivity
    [2]_. Not covered: running time.

    **Error.** The noise has a standard deviation of 1.4 sensitivities by the rest of `epsilon`.
    What is clipped is lost: by "auto" about as much again, for every n and `epsilon`; by a level
    about 1 - q of the records, which for many records is by far the larger error if they have
    heavy tails. See `privacy.aggregates` for how `share`, `split` and `offset` follow from that.
    The first clip that the search tries is `beta` - 1 above `lower`: choose a unit in which
    records are larger, or a smaller `beta`. If bounds are known, within a factor of two, a public
    clip to these `bounds` has the least error.

    **Cost.** A pass for the clip, one for each side, and one for the sum, which takes about as
    long as ``x.sum()``.

    References
    ----------
    .. [1] D. Durfee, "Unbounded Differentially Private Quantile and Maximum Estimation",
       NeurIPS 2023. Section 6.3.
    .. [2] S. Casacuberta, M. Shoemate, S. Vadhan, C. Wagaman, "Widespread Underestimation of
       Sensitivity in Differentially Private Libraries and How to Fix It", CCS 2022.

    Examples
    --------
    >>> import numpy as np
    >>> pay = np.random.default_rng(0).integers(1_000, 9_000, size=10_000)
    >>> out = sum(pay, epsilon=1.0, resolution=1)
    >>> out == round(out)
    True
    """
    return _clipped("sum", *arguments, **options)


@releases(INSTANTS, DURATIONS)
@with_further(clip_options)
@as_called(_clipped)
def mean(*arguments: Any, **options: Any) -> Prepared[float | Estimate]:
    r"""Release the mean of the records, clipped at a private quantile or at public bounds.

    Parameters
    ----------
    x, epsilon, bounds, q, lower, upper, method, share, expected_n, resolution, neighbors
        As in `sum`.
    counts, nan_policy, max_contributions, accountant, rng, workers, **method_options
        As in `sum`.
    confidence : float, optional
        Give an `Estimate` with an interval that covers with at least this probability, at no cost.
        Public.
    covers : {"sample", "population"}, default "sample"
        The mean of the records as they are clipped, or that of the law that they were drawn from
        independently, clipped; for a clip that is private as if it had been chosen beforehand.
        Public.

    Returns
    -------
    float or Estimate
        Inside the clip; for an empty `x`, most likely near its middle or one of its ends.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `sum`.

    See Also
    --------
    sum : With all about the clip.

    Notes
    -----
    **Mechanism.** The clip [a, c] is found as in `sum`. Then two noisy numbers, on the same
    lattice, give the mean by :math:`(a + c)/2 + C / 2n`, clamped to the clip, with
    :math:`C = \sum (2 x_i - a - c)`:

    - "swap": C, at sensitivity 2 (c - a), and n. If no record can be left out, n is public and has
      no noise; else its noise has the scale 2 / epsilon, which costs C nothing: a record that
      appears or disappears changes C by half of its sensitivity.
    - "add-remove": :math:`A = \sum (x_i - a)` and :math:`B = \sum (c - x_i)`, with C = A - B and
      n = (A + B)/(c - a). A record changes A and B by c - a in sum, so each has the noise that it
      would have alone.

    **Privacy.** Pure `epsilon`-DP under `neighbors`: ``share * epsilon`` for the clip, the rest for
    the two numbers (`mean_scales`). All else is post-processing. Not covered: running time.

    **Cost.** As of `sum`.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(17, 91, size=10_000)
    >>> 30.0 < mean(ages, epsilon=1.0) < 70.0
    True
    """
    return _clipped("mean", *arguments, **options)
