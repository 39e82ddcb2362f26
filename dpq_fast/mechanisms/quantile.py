"""The front door: private quantiles called like `np.quantile`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpq_fast import _checks, privacy
from dpq_fast._arguments import names_of, with_further
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.persons import WEIGHTS
from dpq_fast.data.prior import MOST_POINTS
from dpq_fast.data.sample import Sample
from dpq_fast.data.units import DURATIONS, INSTANTS
from dpq_fast.mechanisms.registry import MECHANISMS, METHODS
from dpq_fast.mechanisms.unbounded_quantile import unbounded_ends
from dpq_fast.privacy.budgets import resolve_epsilon
from dpq_fast.privacy.choice import most_accurate, value_epsilon
from dpq_fast.privacy.intervals import Request, epsilon_within
from dpq_fast.privacy.levels import Levels, check_number
from dpq_fast.privacy.relations import relation_of
from dpq_fast.released.estimate import Estimate

if TYPE_CHECKING:
    from typing_extensions import Unpack


def choose_method(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    method: str = "auto",
    neighbors: str = "swap",
    resolution: float | None = None,
    dither: bool | None = None,
    prior: Any = None,
    max_contributions: int = 1,
    expected_n: int | None = None,
) -> str:
    """The mechanism behind a `method` of `quantile`, by public facts only.

    Parameters
    ----------
    x, q, epsilon, rho, bounds, method, neighbors, resolution, dither, prior, \
max_contributions, expected_n
        As in `quantile`, but for `expected_n`, which is the caller's to work out; of `x` only the
        lattice of a `Sample` is used.

    Returns
    -------
    str
        `method`; for "auto" the one of the table of `quantile`, whose prior is `default_prior`.
    """
    if _checks.check_choice("method", method, METHODS) != "auto":
        return method
    levels, dithered = Levels.of(q), dither is True
    if not isinstance(x, Sample) and bounds is None:
        return "unbounded_quantile"
    if isinstance(x, Sample):
        bounds, lattice = x.bounds, x.lattice
    else:
        bounds, lattice = Lattice.between(bounds, resolution, dither, prior)
    k = _checks.check_max_contributions(max_contributions)
    budget = resolve_epsilon(epsilon, rho)
    return most_accurate(
        levels,
        relation_of(neighbors),
        epsilon=budget / k,
        n=expected_n,
        max_contributions=k,
        points=_weighable(lattice),
        two_sided=bounds[0] < 0.0 < bounds[1],
        dithered=dithered,
        rho=rho is not None,
    )


def default_prior(
    x: Any, bounds: tuple[float, float], resolution: float | None, method: str, m: int
) -> str | None:
    """What "auto" takes for a prior where none is given, by public facts only.

    The scale-free one, but for one level between bounds on both sides of 0: there it would draw
    answers to 0. A `Sample` has been given what it has.
    """
    if isinstance(x, Sample) or method not in ("ind_exp", "joint_exp", "approx_quantiles"):
        return None
    if m == 1 and bounds[0] < 0.0 < bounds[1]:
        return None
    _, lattice = Lattice.between(bounds, resolution, None, None)
    return None if _weighable(lattice) is None else _checks.SCALE_FREE


def _weighable(lattice: Lattice | None) -> int | None:
    """The number of points, if a prior may weigh them."""
    if lattice is None or lattice.points > MOST_POINTS:
        return None
    return lattice.points


def expected_rows(
    x: Any,
    method: str,
    expected_n: int | None,
    counts: Any,
    neighbors: str,
) -> int | None:
    """About how many records there are, as far as it is public and of use: see `quantile`."""
    if expected_n is not None:
        return _checks.check_count("expected_n", expected_n)
    if method not in ("auto", "agg_tree", "two_stage"):
        return None
    return _checks.public_rows(x, counts, relation_of(neighbors).n_is_public)


@functools.cache  # signatures do not change, and take longer to look at than a small release
def options_of(method: str) -> tuple[str, ...]:
    """The arguments of a mechanism that `quantile` has not."""
    own = names_of(quantile, further=False)
    return tuple(name for name in names_of(MECHANISMS[method].release) if name not in own)


def all_options() -> list[str]:
    """The arguments of all mechanisms that `quantile` has not."""
    return [name for method in METHODS[1:] for name in options_of(method)]


class QuantileOptions(TypedDict, total=False):
    """Further keywords of `quantile`, `percentile` and `median`, for all methods."""

    epsilon: float | None
    delta: float
    rho: float | None
    method: str
    neighbors: str
    resolution: Any
    dither: bool | None
    prior: Any
    counts: Any
    privacy_unit: Any
    contributions: Any
    assume_sorted: bool
    nan_policy: str
    max_contributions: int
    expected_n: int | None
    accountant: privacy.Accountant | None
    rng: Any
    workers: int
    covers: str
    interval_share: float | None
    aggregate: bool
    base: str
    beta: float | None
    branching: int | None
    height: int | None
    invert: bool
    kernel: str
    lower: Any
    noise: str
    offset: float
    selection: str | None
    split: float | None
    t: Any
    uniform: bool
    upper: Any


# Answers are numbers for bounds that are, and for others of a type that checkers do not know.
Numbers = tuple[float, float] | None


class OfLevels(Protocol):
    """What checkers know of `quantile` and `percentile`: answers by levels and by `confidence`."""

    __name__: str

    @overload
    def __call__(
        self,
        x: Any,
        q: float,
        *,
        bounds: Numbers = None,
        confidence: None = None,
        **options: Unpack[QuantileOptions],
    ) -> float: ...

    @overload
    def __call__(
        self,
        x: Any,
        q: ArrayLike,
        *,
        bounds: Numbers = None,
        confidence: None = None,
        **options: Unpack[QuantileOptions],
    ) -> NDArray[np.float64]: ...

    @overload
    def __call__(
        self,
        x: Any,
        q: ArrayLike,
        *,
        bounds: Any = None,
        confidence: float,
        **options: Unpack[QuantileOptions],
    ) -> Estimate: ...

    @overload
    def __call__(
        self,
        x: Any,
        q: ArrayLike,
        *,
        bounds: Any,
        confidence: None = None,
        **options: Unpack[QuantileOptions],
    ) -> Any: ...


def of_levels(function: Callable[..., Any]) -> OfLevels:
    """A function of a column and levels, for checkers."""
    return cast(OfLevels, function)


@of_levels
@releases(INSTANTS, DURATIONS)
@with_further(all_options)
def quantile(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    method: str = "auto",
    neighbors: str = "swap",
    resolution: float | None = None,
    dither: bool | None = None,
    prior: Any = None,
    counts: Any = None,
    privacy_unit: Any = None,
    contributions: Any = WEIGHTS,
    assume_sorted: bool = False,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    expected_n: int | None = None,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    workers: int = 1,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    **method_options: Any,
) -> Prepared[Any]:
    """Release private quantiles of a column of numbers, times or durations.

    Parameters
    ----------
    x : array_like of real numbers, times or durations, shape (n,)
        Private sample, any order: an array, a column of pandas, polars, pyarrow or any other
        library, a sequence, or a `Sample`; times as in `Sample.of`. Clamped to `bounds`; NaN and
        null are left out (`nan_policy`).
    q : float or array_like of float
        Levels in [0, 1], any order and shape. Public.
    epsilon : float
        Total budget of the call. Public. Exactly one of `epsilon` and `rho`.
    delta : float, default 0
        Allowed failure of the pure guarantee. "ind_exp" uses it; the others do not need it.
        Public.
    rho : float, optional
        Total zCDP budget instead of `epsilon`. "csmooth" takes nothing else; "agg_tree" takes it
        with ``noise="gaussian"``. Public.
    bounds : (float, float), optional
        Finite low < high, chosen without looking at `x`. Public. Left out for a `Sample`, which
        has its own, and for "unbounded_quantile", which can do without. With a `prior` that has
        quantiles an end may be infinite (`Sample.of`).
    method : str, default "auto"
        The mechanism: "joint_exp", "ind_exp", "approx_quantiles", "two_stage",
        "unbounded_quantile", "agg_tree", "csmooth", or "auto", which chooses by what is public (see
        Notes).
    neighbors : {"swap", "add-remove"}, default "swap"
        What the budget protects: one record replaced (n is public), or one added or deleted.
    resolution, dither, prior, counts, assume_sorted, nan_policy
        As in `joint_exp`. "agg_tree" and "unbounded_quantile" have no dither and need no order; the
        latter has a lattice only where a `resolution` is given, and takes no `prior`. "two_stage"
        has no dither. Where no `prior` is given "auto" takes the scale-free one (see Notes).
    privacy_unit : array_like of ids, shape (n,); or several, optional
        Whose each record is: integers, strings, bytes, UUIDs, dates or times, or for ids of several
        columns a data frame or a list that holds nothing but columns. Private. Then the guarantee
        is about whole persons, however many records they have: see Notes. Records without an id
        are left out. Columns of pandas go by the labels of their indexes, as `counts` do. Where `x`
        is a column of a `Table`, the name of another one, or a list of names; these are public.
    contributions : "weights" or int, default "weights"
        With a `privacy_unit`: "weights" for the records of a person to share one unit of weight,
        or at most how many of them are to count. Public.
    max_contributions : int, default 1
        Up to this many records per person: the guarantee is per person. A promise, for rows without
        ids; left out with a `privacy_unit`.
    expected_n : int, optional
        About how many records there are, with a `privacy_unit` how many persons, chosen without
        looking at `x`: for "auto", "two_stage" and "agg_tree". Default: under "swap" the number of
        rows, missing ones included, or of persons, which is public there; else 10,000, or the
        records of so many persons. Public.
    accountant : Accountant, optional
        Charged with the release; refuses before `x` is touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system.
    workers : int, default 1
        Threads for passes over a long `x`, as in `scipy.fft`; the answer does not depend on it.
    confidence : float, optional
        Give an `Estimate`: the value, and an interval around it that covers with at least this
        probability, strictly between 0 and 1; each level by itself. The budget stays that of the
        whole call. Public.
    covers : {"sample", "population"}, default "sample"
        What an interval is for: the quantile of the records at hand, or that of the distribution
        that they were drawn from, independently of each other. Public.
    interval_share : float, optional
        The share of the budget that goes into the interval, strictly between 0 and 1: more makes it
        narrower, and the value less accurate. Default: a half of a small budget, and as much less
        of a larger one that values miss about twice as many ranks as without an interval; for a
        population 0.6, and two and a half times; next to nothing where there are too few records
        for an interval inside the bounds.
        "agg_tree" needs none. Public.
    **method_options
        Further arguments of the method, such as ``kernel=`` of "joint_exp", ``lower=`` of
        "unbounded_quantile" or ``height=`` of "agg_tree".

    Returns
    -------
    float, ndarray of float64 or Estimate
        A float for a scalar `q`, else an array of its shape; non-decreasing in `q`, inside
        `bounds`, in the unit of `x`. With a `confidence`, an `Estimate` of such.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in the function of the method.

    See Also
    --------
    joint_exp, ind_exp, approx_quantiles, two_stage, unbounded_quantile, agg_tree, csmooth : The
        mechanisms, with privacy guarantee and cost.
    dpq_fast.privacy.guarantee : What a call promises.

    Notes
    -----
    **Persons.** With a `privacy_unit` neighbors differ in all records of one person: replaced by
    those of another one under "swap", where how many persons there are is public, or added or
    removed. Nothing is promised by the caller. By "weights" k records of a person have a k-th of
    one unit each: none is left out, and the quantiles are those of a random record of a random
    person. With a number of `contributions`, so many records of each person stay, those that are
    most evenly spread over the person's own; quantiles are those of records, among which people
    with more than that count for less. Errors are as for as many records as there are persons by
    weights, and so many times as large by records. `dpq_fast.data.persons` has the proof. In the
    exact laws and in audits a release by ids is one of `counts`, of which a person has up to 2^20
    (or the number of contributions) as `max_contributions`.

    **Choice of "auto"**, by public facts alone, never by the data:

    ======  =======  ===============  =====================================================
    bounds  budget   levels           method
    ======  =======  ===============  =====================================================
    none    any      any              "unbounded_quantile"
    given   any      one              "ind_exp"
    given   any      one, or several  "two_stage"
                     of which one is
                     near an end
    given   rho      several          "two_stage" for up to 9, if n epsilon is at least 2,000;
                                      else "approx_quantiles"
    given   epsilon  several          "two_stage", "joint_exp", "approx_quantiles" or
                                      "agg_tree": the one of the smallest expected error
    ======  =======  ===============  =====================================================

    A level q is *near an end* where min(q, 1 - q) n epsilon is below 15: the 99th percentile of
    1,000 records with epsilon = 1. There an exponential mechanism takes what is far out for the
    answer. "two_stage" first asks where the records are, if n epsilon is at least 100. If it is at
    least 2,000, the pilot costs next to nothing: then several levels have one in place of
    "joint_exp", where n is public or given as `expected_n`, and so has one level between bounds on
    both sides of 0. Where lattice points are so few that each can have a leaf, "agg_tree" answers
    several levels near an end, too, if its expected error is smaller. (For a rho, epsilon is the
    range that it buys.)

    The expected errors (`dpq_fast.privacy.choice.expected_errors`) are formulas in the number m of
    levels, n, epsilon, the relation, and the number of lattice points between the bounds. On a fine
    lattice and for n epsilon = 1,000 "joint_exp" is chosen up to 19 levels, or 8 under
    "add-remove", and beyond "two_stage". From 2,000 on it is "two_stage", but for 100,000 and very
    many levels, from some 500 on or 69 under "add-remove", "approx_quantiles". Where each lattice
    point can have a leaf, "agg_tree" takes the place of "two_stage" for many levels, and comes
    sooner. With ``dither=True`` only "joint_exp" and "approx_quantiles" are considered, and with
    ``resolution=0`` all but "two_stage", which needs a lattice. `delta` is not used. One level is
    drawn by the exponential mechanism, whose releases add up to less, if `accountant` composes by
    "zcdp".

    **Prior of "auto".** Where none is given, "ind_exp", "joint_exp" and "approx_quantiles" take the
    scale-free one (`Sample.of`), on a lattice of 10^-12 of the range where no `resolution` is
    given: so bounds may be wide by many orders of magnitude, and round numbers may be shared by
    many records. One level between bounds on both sides of 0 has the uniform one, since the
    scale-free prior draws answers to 0. A method that is asked for by name has the uniform one, but
    for "two_stage", and a `Sample` what it was made with.

    **Intervals** are found by one search for all levels: of candidates around the values, each 1.35
    times as wide as the next, AboveThreshold takes the last that surely has all quantiles inside.
    Half-widths follow the released values: they are wide where those are far apart. Around a single
    value they have equal shares of the records inside, by the prior that the value was drawn by.
    The quantile of n records is the one of rank q n, rounded up (the first for q = 0), of the
    records as they are clamped to the bounds and rounded to the lattice. The intervals of a call
    cover those of all its levels at once *for every data set*; for a population, each level by
    itself, for every distribution. Proofs: `privacy.intervals`. Where hardly any record can lie
    beyond an end, by what is public about n, the end is the bound. An interval reaches about 12
    ranks to either side, divided by the epsilon that it has (a median's under "add-remove" 6), and
    more with more levels. "agg_tree" reads values and ends off one tree
    (`AggTree.quantile_confint`).

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> out = quantile(ages, [0.25, 0.5, 0.75], epsilon=1.0, bounds=(0, 120))
    >>> out.shape
    (3,)
    >>> incomes = np.random.default_rng(0).lognormal(10.5, 0.8, size=200)
    >>> middle = quantile(incomes, 0.5, epsilon=1.0, bounds=(1, 1e9), prior="log")
    >>> bool(1_000 < middle < 1_000_000)
    True
    """
    delta = _checks.check_delta(delta)
    if method != "auto":
        _checks.check_choice("method", method, METHODS)
    levels = Levels.of(q)
    request = Request.of(confidence, covers, interval_share)
    given_n = expected_n
    expected_n = expected_rows(x, method, expected_n, counts, neighbors)
    chosen = method
    if method == "auto":
        chosen = choose_method(
            x,
            levels,
            epsilon=value_epsilon(
                epsilon, request, levels, neighbors, max_contributions, expected_n
            ),
            rho=rho,
            bounds=bounds,
            method=method,
            neighbors=neighbors,
            resolution=resolution,
            dither=dither,
            prior=prior,
            max_contributions=max_contributions,
            expected_n=expected_n,
        )
    row = MECHANISMS[chosen]
    if method == "auto":
        delta = 0.0
        if prior is None and bounds is not None:
            prior = default_prior(x, bounds, resolution, chosen, levels.m)
        composed = isinstance(accountant, privacy.Accountant) and accountant.composition == "zcdp"
        if chosen == "ind_exp" and composed:
            method_options.setdefault("selection", privacy.ind_exp.EXPONENTIAL)
    for name in method_options:
        if name not in options_of(chosen):
            holders = " and ".join(repr(each) for each in METHODS[1:] if name in options_of(each))
            by_itself = ", which 'auto' chose" if method == "auto" else ""
            raise TypeError(
                f"{name} must be left out for method {chosen!r}{by_itself}: it is for {holders}"
            )
    options = {
        "neighbors": neighbors,
        "counts": counts,
        "nan_policy": nan_policy,
        "max_contributions": max_contributions,
        "workers": workers,
        **row.budget(epsilon, delta, rho),
        **method_options,
    }
    if request is not None:
        if row.intervals is None:
            raise ValueError(f"confidence must be left out for method {chosen!r}, got {confidence}")
        options.update(confidence=confidence, covers=covers, interval_share=interval_share)
        if row.intervals == "ends":
            options.update(expected_n=given_n)
            if rho is not None and "rho" not in row.budgets:
                # a range, and an epsilon of the ends, which has a rho of its own
                options["epsilon"], options["interval_share"] = epsilon_within(
                    request, levels, rho, neighbors, max_contributions, expected_n
                )
    if row.reads == "records":
        options.update(unbounded_ends(bounds, resolution, dither, prior, assume_sorted))
    else:
        options.update(bounds=bounds, resolution=resolution, prior=prior)
        if row.reads == "leaves":
            _checks.check_flag("assume_sorted", assume_sorted)
            if dither is not None and _checks.check_flag("dither", dither):
                raise ValueError(f"dither must be left out for method {chosen!r}, got True")
            options.update(expected_n=expected_n)
        else:
            options.update(dither=dither, assume_sorted=assume_sorted)
        if chosen == "two_stage":
            options.update(expected_n=expected_n)
    # times have become numbers here
    made = row.prepared_of_numbers(x, levels, **options)
    made.name = chosen
    return made


@of_levels
@releases()
@with_further(lambda: names_of(quantile))
def percentile(x: Any, q: Any, **options: Any) -> Prepared[Any]:
    """Release private percentiles: `quantile` at ``q / 100``, with the same options.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private sample, as in `quantile`.
    q : float or array_like of float
        Percentages in [0, 100], any order and shape. Public.
    **options
        As in `quantile`, with the same guarantee.

    Returns
    -------
    float or ndarray of float64
        In the shape of `q`.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> percentile(ages, [25, 50, 75], epsilon=1.0, bounds=(0, 120), resolution=1).shape
    (3,)
    """
    percentages = np.asarray(q)
    check_number("q", percentages)
    if percentages.dtype.kind not in "iuf":
        raise TypeError(f"q must be real numbers, got dtype {percentages.dtype}")
    if not ((percentages >= 0) & (percentages <= 100)).all():
        raise ValueError("q must lie in [0, 100]")
    return Prepared.of(quantile, x, percentages / 100.0, **options)


@overload
def median(
    x: Any,
    *,
    bounds: Numbers = None,
    confidence: None = None,
    **options: Unpack[QuantileOptions],
) -> float: ...


@overload
def median(
    x: Any,
    *,
    bounds: Any = None,
    confidence: float,
    **options: Unpack[QuantileOptions],
) -> Estimate: ...


@overload
def median(
    x: Any,
    *,
    bounds: Any,
    confidence: None = None,
    **options: Unpack[QuantileOptions],
) -> Any: ...


@releases()
@with_further(lambda: [name for name in names_of(quantile) if name != "q"])
def median(x: Any, **options: Any) -> Prepared[Any]:
    """Release a private median: `quantile` at 0.5, with the same options.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private sample, as in `quantile`.
    **options
        As in `quantile`, with the same guarantee.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> bool(40 < median(ages, epsilon=1.0, bounds=(0, 120), resolution=1) < 60)
    True
    >>> value, low, high = median(ages, epsilon=1.0, bounds=(0, 120), confidence=0.95)
    >>> bool(low <= value <= high)
    True
    """
    return Prepared.of(quantile, x, 0.5, **options)


# The calls that choose a mechanism.
FRONT = {function.__name__: function for function in (quantile, percentile, median)}


def charged(
    front: Callable[..., Any], /, *, n: int | None = None, **public: Any
) -> privacy.Guarantee:
    """What a call of `quantile`, or of what is made of it, charges, by its public arguments.

    Of the column it takes `n`, the number of its rows, where it goes by that.
    """
    column = iter(()) if n is None else range(_checks.check_count("n", n, 0))
    made = Prepared.of(front, column, **public)
    return dataclasses.replace(made.guarantee, mechanism=made.mechanism)
