"""Counts, sums, means and variances, with noise on exact integers.

A sum is clipped to a range that is released first [Dur23, 6.3] or public. In the module itself,
`sum` is the one defined here, not Python's.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpq_fast import _checks, privacy
from dpq_fast._arguments import with_further
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data.persons import WEIGHTS, Persons, parts_of
from dpq_fast.data.records import Records
from dpq_fast.data.sample import Sample
from dpq_fast.data.units import DURATIONS, INSTANTS, Presence, Timed
from dpq_fast.laws import noise_tails
from dpq_fast.laws.unbounded import UnboundedQuantileLaw
from dpq_fast.mechanisms._calls import as_called, with_options
from dpq_fast.mechanisms.clipping import Clip, Clipping, NoisyTerm, clip_options
from dpq_fast.mechanisms.ind_exp import IndExpLaw
from dpq_fast.mechanisms.ind_exp import law_of as ind_exp_law_of
from dpq_fast.mechanisms.joint_exp import JointExpLaw
from dpq_fast.mechanisms.joint_exp import law_of as joint_exp_law_of
from dpq_fast.mechanisms.spread import WIDEST, spread_of
from dpq_fast.noise.discrete import discrete_gaussian, discrete_laplace
from dpq_fast.privacy.aggregates import AUTO
from dpq_fast.privacy.intervals import POPULATION, SAMPLE, Request
from dpq_fast.privacy.relations import relation_of
from dpq_fast.released.estimate import Estimate

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dpq_fast.mechanisms._calls import RecordOptions


def of_sample(request: Request | None) -> Request | None:
    """Refuse what a number or a sum has no population for."""
    if request is not None and request.covers == POPULATION:
        raise ValueError(
            f"covers must be {SAMPLE!r} for a count, a sum or a variance, got {POPULATION!r}"
        )
    return request


def asked_of(name: str, request: Request | None, max_contributions: int) -> Request | None:
    """Refuse what a sum or a variance has no population for, and a mean of dependent records."""
    if not name.startswith("mean"):
        return of_sample(request)
    if request is not None and request.covers == POPULATION and max_contributions != 1:
        raise ValueError(
            f"covers must be {SAMPLE!r} for a mean of several records of each person, which are "
            f"not independent, got {POPULATION!r}"
        )
    return request


class Moment(NamedTuple):
    """Of `var` and `std`: what is asked of squares.

    Attributes
    ----------
    ddof : int
        How much less than the number of records they are divided by.
    root : bool
        Whether a standard deviation is asked for.
    expected_n : int or None
    """

    ddof: int
    root: bool
    expected_n: int | None

    @classmethod
    def of(
        cls, name: str, options: dict[str, Any], expected_n: int | None, parts: int
    ) -> Moment | None:
        """Of a call, whose options they are taken from; None of a sum or a mean."""
        if not name.startswith(("var", "std")):
            return None
        ddof = _checks.check_count("ddof", options.pop("ddof", 0), 0) * parts
        return cls(ddof, name.startswith("std"), expected_n)


def read_clipped(
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


def _noisy(terms: list[NoisyTerm], rng: np.random.Generator, gaussian: bool = False) -> list[int]:
    drawn = discrete_gaussian if gaussian else discrete_laplace
    return [value + (drawn(scale, rng=rng) if scale else 0) for value, scale in terms]


def count_terms(records: Records, scale: Fraction) -> list[NoisyTerm]:
    """What the noise of a count is added to, by one pass. Private."""
    return [(records.total, scale)]


@releases(of_each=Persons.present)
@with_options(Records.reader)
def count(
    x: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
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
    rho : float, optional
        Total zCDP budget instead of `epsilon`, as in `sum`.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record, also by a missing one; "add-remove" adds or deletes one.
    counts : array_like of int, shape (n,), optional
        How many records each entry of `x` stands for.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave NaN and null out record by record, or state that there are none.
    privacy_unit : array_like of ids, shape (n,); or several, optional
        Whose each record is, as in `quantile`. Private. Then the guarantee is about whole persons,
        however many records they have, and persons with a record are counted.
    contributions : "weights" or int, default "weights"
        With a `privacy_unit`: at most how many records of a person are to count; with "weights"
        the person does, once. Public.
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
        epsilon=epsilon, rho=rho, neighbors=neighbors, max_contributions=max_contributions
    )
    request = of_sample(Request.of(confidence, covers))
    read = Records.reader(x if isinstance(x, Sample) else Timed(x, Presence()), **column)

    def draw(rng: np.random.Generator) -> int | Estimate:
        gaussian = calibration.gaussian
        (number,) = _noisy(count_terms(read(), calibration.scale), rng, gaussian)
        if request is None:
            return number
        beside = noise_tails.margin(calibration.scale, request.miss, gaussian)
        low, high = min(max(number - beside, 0), number), max(number + beside, 0)
        return Estimate(number, low, high, request.confidence, request.covers)

    return Prepared(calibration, draw, "count")


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
    privacy_unit: Any = None,
    contributions: Any = WEIGHTS,
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
    moment = Moment.of(name, method_options, expected_n, parts_of(x, counts))
    if moment is not None and expected_n is None:
        told = _checks.public_rows(x, counts, relation_of(neighbors).n_is_public)
        moment = moment._replace(expected_n=told)
    clipping = Clipping(
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
        widest=None if moment is None else WIDEST,
        neighbors=neighbors,
        max_contributions=max_contributions,
    )
    request = asked_of(name, Request.of(confidence, covers), max_contributions)
    read = read_clipped(clipping, x, counts=counts, nan_policy=nan_policy, workers=workers)
    return Prepared(clipping.calibration, drawn(name, clipping, request, read, moment), name)


def drawn(
    name: str,
    clipping: Clipping,
    request: Request | None,
    read: Callable[[np.random.Generator], tuple[Records, Clip]],
    moment: Moment | None = None,
    of_group: bool = False,
) -> Callable[[np.random.Generator], float | Estimate]:
    """What draws a sum, a mean or a moment; how many rows a group has is private."""
    noisy = partial(_noisy, gaussian=clipping.calibration.gaussian)

    def draw_sum(rng: np.random.Generator) -> float | Estimate:
        records, clip = read(rng)
        ((_, scale),) = terms = clipping.sum_terms(records, clip)
        (total,) = noisy(terms, rng)
        if request is None:
            return clip.decode(total)
        beside = noise_tails.margin(scale, request.miss, clipping.calibration.gaussian)
        value, low, high = (clip.decode(point) for point in (total, total - beside, total + beside))
        return Estimate(value, low, high, request.confidence, request.covers)

    def draw_mean(rng: np.random.Generator) -> float | Estimate:
        records, clip = read(rng)
        total, number, rows = records.sums(clip.scale, clip.first, clip.last)
        mean = clipping.mean(clip, not records.n_is_public, None if of_group else rows)
        first, second = noisy(mean.terms(total, number), rng)
        if mean.is_pilot:
            mean = mean.after(first, second)
            first, second = noisy(mean.terms(total, number), rng)
        value = mean.value(first, second)
        if request is None:
            return value
        low, high = mean.interval(first, second, request)
        return Estimate.around(value, low, high, request)

    def draw_spread(rng: np.random.Generator) -> float | Estimate:
        assert moment is not None
        one = partial(noisy, rng=rng)
        found = spread_of(*read(rng), clipping, of_group, moment.expected_n, one)
        if request is None:
            return found.value(moment.ddof, moment.root)
        return found.estimate(moment.ddof, moment.root, request)

    if moment is not None:
        return draw_spread
    return draw_sum if name == "sum" else draw_mean


@releases(DURATIONS, of_each=Persons.totals)
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
        Exactly one of `epsilon` and `rho`.
    rho : float, optional
        Total zCDP budget instead of `epsilon`: discrete Gaussian noise where that is less than
        Laplace noise, up to a `rho` of 1.6. For many releases under one `delta`.
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
    privacy_unit, contributions : optional
        Ids of persons, as in `count`. With "weights" the records are what each person's own come
        to, which are clipped; else at most so many of a person's records.
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
    The first clip that the search tries is `beta` - 1 above `lower`, with an `upper` less than
    1,024 above it some 1,024th of that, or as much as a coarser `resolution`: else choose a unit in
    which records are larger, or a smaller `beta`. If bounds are known, within a factor of two, a
    public clip to these `bounds` has the least error.

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


@releases(INSTANTS, DURATIONS, of_each=Persons.means)
@with_further(clip_options)
@as_called(_clipped)
def mean(*arguments: Any, **options: Any) -> Prepared[float | Estimate]:
    r"""Release the mean of the records, clipped at a private quantile or at public bounds.

    Parameters
    ----------
    x, epsilon, rho, bounds, q, lower, upper, method, share, expected_n, resolution, neighbors
        As in `sum`.
    counts, nan_policy, max_contributions, accountant, rng, workers, **method_options
        As in `sum`.
    privacy_unit, contributions : optional
        Ids of persons, as in `count`. With "weights" the records are the means of each person's
        own, which are clipped; else at most so many of a person's records.
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
    lattice, give the mean by :math:`p + T / 2n`, clamped to the clip, with
    :math:`T = \sum (2 x_i - 2p)` and p in the middle of the clip:

    - "swap": T, at sensitivity 2 (c - a), and n. If no record can be left out, n is public and has
      no noise; else its noise has the scale 2 / epsilon, which costs T nothing: a record that
      appears or disappears changes T by half of its sensitivity. The noisy n is cut at the public
      number of rows, but for `counts`. And from 1,000 / epsilon rows on, 4% of epsilon or less is
      for a pilot, a first mean in this way, and p is near that: then the noise of n is hardly felt.
    - "add-remove": :math:`A = \sum (x_i - a)` and :math:`B = \sum (c - x_i)`, with T = A - B and
      n = (A + B)/(c - a). A record changes A and B by c - a in sum, so each has the noise that it
      would have alone.

    **Privacy.** Pure `epsilon`-DP under `neighbors`: ``share * epsilon`` for the clip, the rest for
    the two numbers (`mean_scales`), of a pilot and then, by basic composition. All else is
    post-processing. Not covered: running time.

    **Error.** In public bounds under "swap" that of Laplace noise of scale (c - a) / n epsilon if n
    is public. Else with a pilot 2% to 20% more for 1,000 / epsilon records, up to 12% for ten times
    as many, up to 10% for a hundred times: most near an end. Without one up to a quarter more, or
    half where records are missing, as the mean is near an end. Under "add-remove" 0.75 to 1 times
    it.

    **Cost.** As of `sum`.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(17, 91, size=10_000)
    >>> 30.0 < mean(ages, epsilon=1.0) < 70.0
    True
    """
    return _clipped("mean", *arguments, **options)


@releases()
@with_further(clip_options)
@with_options(_clipped)
def var(*arguments: Any, ddof: int = 0, **options: Any) -> Prepared[float | Estimate]:
    r"""Release the variance of the records, clipped at a private quantile or at public bounds.

    Parameters
    ----------
    x, epsilon, rho, bounds, q, lower, upper, method, share, expected_n, resolution, neighbors
        As in `sum`. `expected_n` is also what the budget is shared by.
    ddof : int, default 0
        Squares are divided by n - `ddof`, as `numpy.var` does. Public.
    counts, nan_policy, max_contributions, accountant, rng, workers, **method_options
        As in `sum`.
    privacy_unit, contributions : optional
        Ids of persons, as in `quantile`. With "weights" it is the variance of a random record of a
        random person.
    confidence, covers
        As in `sum`, at no cost.

    Returns
    -------
    float or Estimate
        Not negative, and no more than records in the clip can have.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `sum`.

    See Also
    --------
    std : Its root.
    mean : With all about the noise of a mean.

    Notes
    -----
    **Mechanism.** The clip [a, b] is found as in `sum`, and the records become integers in it, up
    to 2^17 apart. Then a center c is released, a mean in the clip, for a share of the budget that
    falls with the number of records; and the mean of :math:`(x - c)^2`, as that of records in a
    public clip [0, g], g the square of the farther end's distance from c. It is the variance and
    :math:`(m - c)^2` for the mean m, whose expectation is subtracted. Of less than 30 / `epsilon`
    records the center would be anywhere: there the squares are about m itself, with
    :math:`g = (b - a)^2`.

    **Privacy.** Pure `epsilon`-DP under `neighbors`: the clip, the center, and the squares by
    adaptive basic composition, the last two as of `mean`. Without a center: one record more raises
    the sum of squares about the mean, :math:`\sum (x - m)^2`, by :math:`(x - m)^2 n / (n + 1)`,
    between 0 and g, as one raises the sum of records in [0, g]. All else is post-processing. Not
    covered: running time.

    **Error.** In public bounds under "swap" about that of Laplace noise of scale g / n epsilon on
    the variance, g a quarter of the squared width if the mean is in the middle: from 1.03 times as
    much for 10^5 records times epsilon to 1.2 for 10^3. Twice as far bounds cost four times.

    **Cost.** One pass, after those of a private clip.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(17, 91, size=10_000)
    >>> 400.0 < var(ages, epsilon=1.0, bounds=(0, 120)) < 520.0
    True
    """
    return _clipped("var", *arguments, ddof=ddof, **options)


@releases(DURATIONS)
@with_further(clip_options)
@with_options(_clipped)
def std(*arguments: Any, ddof: int = 0, **options: Any) -> Prepared[float | Estimate]:
    r"""Release the standard deviation of the records, clipped.

    Parameters
    ----------
    x, epsilon, rho, bounds, q, lower, upper, method, share, expected_n, resolution, neighbors
        As in `var`; of durations, too.
    ddof : int, default 0
        Squares are divided by n - `ddof`, as `numpy.std` does. Public.
    counts, nan_policy, max_contributions, accountant, rng, workers, **method_options
        As in `var`.
    privacy_unit, contributions, confidence, covers
        As in `var`.

    Returns
    -------
    float or Estimate
        In the unit of the records.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `sum`.

    See Also
    --------
    var : With all about mechanism, privacy and error.
    iqr : Not moved by what is far out, and with no clip to choose.

    Notes
    -----
    **Privacy.** The root of `var`: post-processing. Pure `epsilon`-DP under `neighbors`.

    **Error.** The root moves half as much as the variance, in parts of it. Of few records, or in
    far too wide bounds, 0 is likely: the noise is as large as the variance.

    **Cost.** As of `var`.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(17, 91, size=10_000)
    >>> 20.0 < std(ages, epsilon=1.0, bounds=(0, 120)) < 23.0
    True
    """
    return _clipped("std", *arguments, ddof=ddof, **options)
