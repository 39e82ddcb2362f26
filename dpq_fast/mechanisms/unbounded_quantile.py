"""Unbounded quantiles: AboveThreshold over ever larger candidates, for data without a bound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dpq_fast import _checks, privacy
from dpq_fast._arguments import in_our_words
from dpq_fast._prepared import Prepared, about_persons, releases
from dpq_fast.data.records import Records
from dpq_fast.data.units import DURATIONS, INSTANTS
from dpq_fast.laws.unbounded import Search, UnboundedQuantileLaw
from dpq_fast.mechanisms._calls import with_options
from dpq_fast.mechanisms.intervals import with_interval
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.unbounded_quantile import Calibration

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dpq_fast.mechanisms._calls import RecordOptions


def clip_search(
    q: float,
    calibration: Calibration,
    *,
    lower: float | None,
    upper: float | None,
    **candidates: Any,
) -> Search:
    """The search for the clip of a sum, at level q away from the end that is known.

    Without `lower` and `upper` it is for either side of zero (`Search.sides`).
    """
    if lower is None and upper is None:
        return Search(Levels(q), calibration, lower=0.0, upper=None, **candidates)
    level = Levels(1.0 - q if lower is None else q)
    return Search(level, calibration, lower=lower, upper=upper, **candidates)


def unbounded_ends(
    bounds: tuple[float, float] | None,
    resolution: float | None,
    dither: bool | None,
    prior: Any,
    assume_sorted: bool,
) -> dict[str, Any]:
    """`lower`, `upper` and `resolution` for methods that are given `bounds`, if any."""
    if prior is not None:
        raise ValueError("prior must be left out for an unbounded search, which has no lattice")
    if dither is not None or assume_sorted:
        raise ValueError("dither and assume_sorted must be left out for an unbounded search")
    ends: dict[str, Any] = {} if resolution is None else {"resolution": resolution}
    if bounds is not None:
        ends |= zip(("lower", "upper"), _checks.check_bounds(bounds), strict=True)
    return ends


@releases(INSTANTS, DURATIONS)
@with_options(Records.reader)
def unbounded_quantile(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    lower: float | None = 0.0,
    upper: float | None = None,
    beta: float | None = None,
    noise: str = "exponential",
    invert: bool = False,
    uniform: bool = False,
    offset: float = 0.0,
    split: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    resolution: float | None = None,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    expected_n: int | None = None,
    **column: Unpack[RecordOptions],
) -> Prepared[Any]:
    r"""Release quantiles of data that are bounded on one side only, or not at all.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private records, any order: an array, a pandas, polars or pyarrow column, a sequence, or a
        `Sample` (then clamped to its bounds). n >= 0. NaN is left out (`nan_policy`); infinite
        records count as beyond all candidates.
    q : float or array_like of float
        Levels in [0, 1], any order and shape, at least one. Public. Several of them are released
        by recursive splits, as by `approx_quantiles`; without `lower` and `upper`, one by one.
    epsilon : float
        Total budget of the call, positive and finite. Public. Exactly one of `epsilon` and `rho`.
    rho : float, optional
        Total zCDP budget instead of `epsilon`. Public.
    lower : float or None, default 0
        Where the search begins; smaller records count as `lower`. None if only `upper` is known
        (the search is mirrored and goes down from there), or neither. Public, chosen without
        looking at `x`, as all that follow.
    upper : float, optional
        With `lower`, the search ends here, and so do the answers.
    beta : float, optional
        Ratio of two candidates' distances from ``lower - 1``; greater than 1. Default: 1.01;
        1.001 with `invert`.
    noise : {"exponential", "laplace", "gumbel"}, default "exponential"
        The noise of AboveThreshold. "exponential" is the most accurate.
    invert : bool, default False
        For low levels (high ones with `upper` alone): search the data 1 / (x - lower + 1), from
        above. Needs `lower` or `upper`.
    uniform : bool, default False
        Release a number drawn uniformly between the candidate and the one before, in place of the
        candidate.
    offset : float, default 0
        Aim at this many times 1 / (epsilon1 + epsilon2) records beyond q n; positive for a
        clip that should not fall below the largest records.
    split : float, optional
        epsilon1 / (epsilon1 + epsilon2), strictly between 0 and 1: epsilon1 is spent on the noise
        of the threshold, epsilon2 on that of the counts. Default: 2/3; for "gumbel" 1/2, nothing
        else.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record, n is public; "add-remove" adds or deletes one.
    counts : array_like of int, shape (n,), optional
        How many records each entry of `x` stands for.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave NaN and null out record by record, or state that there are none.
    privacy_unit, contributions : optional
        Ids of persons, as in `quantile`: the guarantee is about whole persons.
    max_contributions : int, default 1
        Up to this many records per person: the guarantee is per person.
    accountant : Accountant, optional
        Charged with ``guarantee("unbounded_quantile", q=q, ...)``; refuses before `x` is touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system.
    workers : int, default 1
        Threads for passes over a long `x`; the answer does not depend on it.
    resolution : float, optional
        Spacing of a public lattice, in the unit of `x`: the candidates are rounded to its points,
        the multiples of `resolution` inside `lower` and `upper`, and a record counts as the point
        that it rounds to. Not with `uniform`. Public. Default: none, as 0. With the step of your
        data (1 for whole numbers), a value that many records have is found exactly.
    confidence, covers, interval_share, expected_n : optional
        For an interval, as in `quantile`. Public.

    Returns
    -------
    float, ndarray of float64 or Estimate
        In the shape of `q`, non-decreasing in `q`, one of the public candidates (or a number drawn
        between two), inside `lower` and `upper` where given.

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
    joint_exp : More accurate where both bounds are known and not much wider than the data.
    above_threshold : The mechanism, on queries of your own.
    unbounded_quantile_law : The law that this draws from.

    Notes
    -----
    **Mechanism.** AboveThreshold [1]_ (Algorithm 2) over the counts
    :math:`f_i = \#\{x < \beta^i + \ell - 1\}`, i = 1, 2, ..., with threshold q n: release the
    candidate :math:`\beta^k + \ell - 1` at which it halts. Without `lower` and `upper`
    (Algorithm 4), up from 0 and then down from 0, each from i = 0: the first candidate other than
    0. With `invert` (B.1), down through :math:`\ell - 1 + 1 / (\beta^i - 1)`. Candidates end at
    `upper`, where float64 ends, or after 2^24 of them; a search that does not halt releases the
    last one.

    With `resolution`, the candidates are the distinct lattice points :math:`v_0 < v_1 < ...`
    nearest to these, v_0 among them, and :math:`f_i = \#\{x \text{ rounds to at most } v_{i-1}\}`
    is asked for i = 1, 2, ...: :math:`v_{k-1}` is released, the first point through which enough
    records are counted. *Proof* that it costs the same: rounding is monotone, so that
    :math:`f_i = \#\{x < t_i\}` for a public :math:`t_i`, the smallest number that rounds to more;
    these ascend, and nothing else about thresholds is used below. Both ways,
    :math:`f_0 = \#\{x \text{ rounds to less than } 0\}` is asked first.

    **Privacy.** Pure `epsilon`-DP under `neighbors`, or `rho`-zCDP, always the total of the call;
    epsilon1 and epsilon2 are solved for it. "swap": a search costs epsilon1 + epsilon2 (range
    epsilon1 + 2 epsilon2); "add-remove": max{(1-q) epsilon1, q epsilon1 + epsilon2} (Lemma B.1,
    at level 1 - q where the search goes down); both ways: epsilon1 + 2 epsilon2 under either. See
    `privacy.unbounded_quantile.costs_of` and, for several levels,
    `privacy.approx_quantiles.calibrate`. Not covered: running time and memory.

    **Error.** The search halts early by about ln(i) / epsilon2 ranks at candidate i, so a finer
    `beta` is not always better. Once all records are below the candidates, each further step
    halts with some probability that depends on the noise of the threshold; where that is large,
    the number of further steps has a tail :math:`k^{-\epsilon_1/\epsilon_2}`, and the answer
    grows by `beta` with each: whatever the split, the error has no mean. At an even split,
    epsilon = 0.1, level 0.99 and 1,000 records, one answer in a thousand is more than 100 times
    too large, and a few are beyond 10^20. The default split makes the tail :math:`k^{-2}`: one in
    a thousand is 1.3 times too large, at a median error of a clipped sum that is 2 to 13% higher.
    An `upper`, however loose, ends the tail (``papers/run.py --only tail``).

    With several levels, records of one value go to one side of a split: where many records are
    tied, `joint_exp` with its dither is far more accurate.

    **Cost.** One pass over `x`. Of more than 2^17 candidates, which is a `beta` below 1.005 or so,
    only every so many are counted by it, and others, by a cheap pass each, where the search may
    halt: most often once. Memory does not depend on the records. However long the search, it takes
    one random number for every stretch of rising counts.

    References
    ----------
    .. [1] D. Durfee, "Unbounded Differentially Private Quantile and Maximum Estimation",
       NeurIPS 2023. Sections 4 to 6, Appendix B.
    .. [2] H. Kaplan, S. Schnapp, U. Stemmer, "Differentially Private Approximate Quantiles",
       ICML 2022, for several levels.

    Examples
    --------
    >>> import numpy as np
    >>> pay = np.random.default_rng(0).lognormal(10.0, 1.0, size=10_000)
    >>> out = unbounded_quantile(pay, 0.9, epsilon=1.0)
    >>> bool(0 < out)
    True
    """
    levels = Levels.of(q)
    person = dict[str, Any](neighbors=neighbors, max_contributions=max_contributions)
    read = Records.reader(x, **column)

    def value_of(*, epsilon: float | None, rho: float | None, **_: Any) -> Any:
        search = _search(
            levels,
            dict(epsilon=epsilon, rho=rho, **person),
            lower=lower,
            upper=upper,
            beta=beta,
            noise=noise,
            invert=invert,
            uniform=uniform,
            offset=offset,
            split=split,
            resolution=resolution,
        )
        return search.calibration, lambda _: UnboundedQuantileLaw(search, search.count(read()))

    return with_interval(
        value_of,
        levels,
        Request.of(confidence, covers, interval_share),
        x=x,
        epsilon=epsilon,
        rho=rho,
        expected_n=expected_n,
        limits=(-math.inf if lower is None else lower, math.inf if upper is None else upper),
        **person,
        **column,
    )


@in_our_words
@about_persons()
@with_options(Records.reader)
def unbounded_quantile_law(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    lower: float | None = 0.0,
    upper: float | None = None,
    beta: float | None = None,
    noise: str = "exponential",
    invert: bool = False,
    uniform: bool = False,
    offset: float = 0.0,
    split: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    resolution: float | None = None,
    **column: Unpack[RecordOptions],
) -> UnboundedQuantileLaw:
    """The exact output law of `unbounded_quantile` on these records. Not a release: for audits.

    Parameters
    ----------
    x, q, epsilon, rho, lower, upper, beta, noise, invert, uniform, offset, split, neighbors, \
counts, privacy_unit, contributions, nan_policy, max_contributions, workers, resolution
        As in `unbounded_quantile`.

    Returns
    -------
    UnboundedQuantileLaw
        ``log_prob(o)`` and ``sample(rng, size)``.

    Examples
    --------
    >>> law = unbounded_quantile_law([1, 2, 2, 5], 0.5, epsilon=1.0, resolution=1)
    >>> other = unbounded_quantile_law([1, 2, 2, 9], 0.5, epsilon=1.0, resolution=1)  # a neighbor's
    >>> max(abs(law.log_prob(o) - other.log_prob(o)) for o in range(10)) <= 1.0 + 1e-9
    True
    >>> law.sample(size=5).shape
    (5,)
    """
    search = _search(
        q,
        dict(epsilon=epsilon, rho=rho, neighbors=neighbors, max_contributions=max_contributions),
        lower=lower,
        upper=upper,
        beta=beta,
        noise=noise,
        invert=invert,
        uniform=uniform,
        offset=offset,
        split=split,
        resolution=resolution,
    )
    return UnboundedQuantileLaw(search, search.count(Records.of(x, **column)))


def _search(
    q: Any,
    budget: dict[str, Any],
    *,
    lower: float | None,
    upper: float | None,
    invert: bool,
    noise: str,
    split: float | None,
    **candidates: Any,
) -> Search:
    """The search of a call, calibrated; all that is public about it is checked here."""
    levels = Levels.of(q)
    calibration = privacy.unbounded_quantile.calibrate(
        levels, lower=lower, upper=upper, invert=invert, noise=noise, split=split, **budget
    )
    return Search(levels, calibration, lower=lower, upper=upper, invert=invert, **candidates)
