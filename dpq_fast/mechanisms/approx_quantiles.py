"""Recursive quantiles: release the middle level, cut the sample there, go on in both parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._arguments import in_our_words, names_of, with_further
from dpq_fast._prepared import Prepared, about_persons, releases
from dpq_fast.data.persons import WEIGHTS
from dpq_fast.data.sample import Sample
from dpq_fast.data.units import DURATIONS, INSTANTS
from dpq_fast.laws.joint.path import PathLaw, first_windows, likely_reaches, prepare
from dpq_fast.laws.splits import Boundary, RankRange, ends, recurse
from dpq_fast.laws.unbounded import UnboundedQuantileLaw
from dpq_fast.mechanisms._calls import SampleLaw
from dpq_fast.mechanisms.intervals import with_interval
from dpq_fast.mechanisms.unbounded_quantile import (
    unbounded_ends,
    unbounded_quantile,
    unbounded_quantile_law,
)
from dpq_fast.orders.order import WholeOrder
from dpq_fast.privacy.approx_quantiles import BASES, Calibration
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels, splits

# How far the target of a part may drift from that of the whole sample, by the errors of the
# outputs around it, before its window takes a pass of its own: in units of 1 / rate.
DRIFT = 4.0


class ApproxQuantilesLaw(SampleLaw):
    """The exact output law of `approx_quantiles` on one sample: see `approx_quantiles_law`."""

    def __init__(
        self,
        sample: Sample,
        levels: Levels,
        order: WholeOrder,
        rates: NDArray[np.float64],
        window: int | None = None,
    ) -> None:
        self.column = sample
        self._levels = levels
        self._steps = splits(levels.values)
        self._order = order
        # A path of one level counts its rank twice, to it and from it: half the rate.
        self._half = (rates / 2.0).tolist()
        self._window = window  # for tests, as in `PathLaw`
        self._locals = np.array([[step.local] for step in self._steps])
        middles = levels.values[[step.middle for step in self._steps]]
        guess = first_windows(order, middles, rates / 2.0)
        self._guess = guess.tolist()
        prepare(order, middles, guess + drift(order.n, rates))

    def _step(self, k: int, below: Boundary, above: Boundary) -> PathLaw:
        """The law of the middle level of one part."""
        part = RankRange(self._order, below, above)
        # Around a target as many records are to be expected as in the whole sample, but less
        # room for other outputs: the certificate asks for a smaller window.
        spared = math.log(self._order.extent / part.extent) / (2.0 * self._half[k])
        return PathLaw(
            part,
            self._locals[k],
            self._half[k],
            window=self._window,
            guess=int(max(self._guess[k] - spared, 0.0)),
        )

    def log_prob(self, o: Any) -> float:
        """Log-probability of one released tuple; its log density without a lattice.

        Parameters
        ----------
        o : array_like of float, shape of q
            An output, in the unit of the sample.

        Returns
        -------
        float
            -inf for what is never released: off the lattice, outside the bounds, or decreasing.
            The density is inf where two outputs meet.

        Raises
        ------
        ValueError
            For several levels of a sample with dither or a prior: which part a record is in, and
            how much of it is left for outputs, depends on more than `o` then.

        Notes
        -----
        An output that is more than 700 nats less likely than the likeliest one loses digits where
        there are 2^40 records or more.
        """
        lattice = self.column.lattice
        if self._levels.m > 1 and lattice is not None and lattice.refined:
            raise ValueError(
                "log_prob of several levels needs a sample without dither and prior: "
                "pass dither=False"
            )
        outputs = self._levels.distinct(o)
        points = None if outputs is None else self.column.locate(outputs)
        if points is None or (points[1:] < points[:-1]).any():
            return -math.inf
        order = self._order
        low, high = ends(order)
        cuts = [low, *(Boundary(point, order.rank_of(point)) for point in points.tolist()), high]
        total = 0.0
        for k, step in enumerate(self._steps):
            below, above = cuts[step.lower], cuts[step.upper + 1]
            if order.lattice is None and below.point == above.point:
                return math.inf
            total += self._step(k, below, above).log_prob(points[step.middle : step.middle + 1])
        return total

    def _draw(self, rng: np.random.Generator, rows: int) -> NDArray[Any]:
        points = [self._draw_one(rng) for _ in range(rows)]
        kind = np.float64 if self.column.lattice is None else np.int64
        return np.array(points, dtype=kind).reshape(rows, self._levels.m)

    def _draw_one(self, rng: np.random.Generator) -> NDArray[Any]:
        """One ascending tuple of (fine) points."""

        def release(k: int, below: Boundary, above: Boundary) -> Boundary:
            if self.column.lattice is None and below.point == above.point:
                return above  # no number lies between them
            points, ranks = self._step(k, below, above).draw_ranked(rng, 1)
            return Boundary(points.item(), below.rank + ranks.item())

        cuts = recurse(self._steps, *ends(self._order), release)
        return np.array([cut.point for cut in cuts])


def drift(n: int, rates: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many ranks to collect ahead on both sides of the windows around levels of all records."""
    return np.ceil(np.minimum(DRIFT / rates, n)).astype(np.int64)


@releases(INSTANTS, DURATIONS)
@with_further(lambda: names_of(unbounded_quantile))
def approx_quantiles(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    base: str = "ind_exp",
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
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    workers: int = 1,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    expected_n: int | None = None,
    **base_options: Any,
) -> Prepared[Any]:
    r"""Release quantiles one after the other: the middle one, then those of the parts it makes.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private sample, as in `joint_exp`.
    q : float or array_like of float
        Levels in [0, 1], any order and shape, at least one; duplicates are released once. Public.
    epsilon : float
        Total budget of all levels, positive and finite. Public. Exactly one of `epsilon` and
        `rho`.
    rho : float, optional
        Total zCDP budget instead of `epsilon`. Public.
    bounds : (float, float)
        Finite low < high, chosen without looking at `x`. Records beyond are clamped. Public.
    base : {"ind_exp", "unbounded"}, default "ind_exp"
        What releases the middle level of a part: the exponential mechanism, or the search of
        `unbounded_quantile`, which does without `bounds`. Public.
    neighbors, resolution, dither, prior, counts, assume_sorted, nan_policy
        As in `joint_exp`. "unbounded" has no dither and no prior, needs no order, and has a lattice
        only where a `resolution` is given.
    privacy_unit, contributions : optional
        Ids of persons, as in `quantile`: the guarantee is about whole persons.
    max_contributions : int, default 1
        Up to this many records per person: the guarantee is per person.
    accountant : Accountant, optional
        Charged with ``guarantee("approx_quantiles", q=q, ...)``; refuses before `x` is touched.
    rng, workers
        As in `joint_exp`.
    confidence, covers, interval_share, expected_n : optional
        For an interval, as in `quantile`. Public.
    **base_options
        For "unbounded": `lower`, `upper`, `beta`, `noise`, `split` and what else
        `unbounded_quantile` takes; `bounds` stands for `lower` and `upper`.

    Returns
    -------
    float, ndarray of float64 or Estimate
        In the shape of `q`, non-decreasing in `q`, on the lattice inside `bounds`, in the unit of
        `x`; one of the candidates of `unbounded_quantile` with that base.

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
    joint_exp : All levels in one draw; more accurate for a few levels.
    approx_quantiles_law : The law that this draws from.

    Notes
    -----
    **Mechanism.** The middle level of the ascending q_1, ..., q_m is drawn first, then the middle
    one of those below it from the records below it, and so on [1]_. Where a part's records x lie
    between outputs a and b released before, a <= x < b, or the bounds, its level draws o in [a, b]
    with probability proportional to

    .. math:: \exp(-c\,|r(o) - \hat q\, n'|),

    where r(o) counts the part's records below o, n' all of them, and :math:`\hat q` is the level
    within the part, (q - q_a) / (q_b - q_a). Records below o go left, the others right, so that
    ties stay together. All levels see one dither, and cut the dithered sample.

    **Privacy.** `epsilon`-DP or `rho`-zCDP under `neighbors`, by adaptive composition over the
    :math:`L = \lceil\log_2(m + 1)\rceil` depths of the recursion. A record is in one part of each
    depth: under "add-remove" one step of each depth changes, with
    :math:`c = \epsilon / (2 L \max(\hat q, 1 - \hat q))`; under "swap" a step whose record is
    replaced, or two where a record moves from a part to another, and c is about
    :math:`\epsilon / 2 L` (`privacy.approx_quantiles.calibrate`, also for "unbounded"). Weights are
    right to 1e-10 relative, none is rounded to zero. Not covered: running time and memory.

    **Cost.** Two passes over `x`, none if it is sorted, then O(W) per level for windows of W
    ranks, W about 4 (44 + ln n) L / epsilon. Rarely another pass, where an output falls far from
    its level.

    References
    ----------
    .. [1] H. Kaplan, S. Schnapp, U. Stemmer, "Differentially Private Approximate Quantiles",
       ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=1_000)
    >>> out = approx_quantiles(x, [0.25, 0.5, 0.75], epsilon=1.0, bounds=(-10, 10))
    >>> out.shape
    (3,)
    >>> bool((out[1:] >= out[:-1]).all())
    True
    """
    levels = Levels.of(q)
    person = dict[str, Any](neighbors=neighbors, max_contributions=max_contributions)
    estimate = dict[str, Any](
        confidence=confidence, covers=covers, interval_share=interval_share, expected_n=expected_n
    )
    records = dict[str, Any](counts=counts, nan_policy=nan_policy, workers=workers)
    place = dict[str, Any](
        bounds=bounds,
        resolution=resolution,
        dither=dither,
        prior=prior,
        assume_sorted=assume_sorted,
    )
    if _checks.check_choice("base", base, BASES) == "unbounded":
        limits = unbounded_ends(**place)
        return Prepared.of(
            unbounded_quantile,
            x,
            levels,
            epsilon=epsilon,
            rho=rho,
            **person,
            **records,
            **limits,
            **estimate,
            **base_options,
        )
    _refuse(base_options)

    def value_of(*, epsilon: float | None, rho: float | None, **_: Any) -> Any:
        budget = dict[str, Any](epsilon=epsilon, rho=rho, **person)
        return _reader(x, levels, budget, records | place)

    return with_interval(
        value_of,
        levels,
        Request.of(confidence, covers, interval_share),
        x=x,
        epsilon=epsilon,
        rho=rho,
        expected_n=expected_n,
        **person,
        **records,
        **place,
    )


@in_our_words
@about_persons()
@with_further(lambda: names_of(unbounded_quantile_law))
def approx_quantiles_law(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    base: str = "ind_exp",
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
    workers: int = 1,
    dither_rng: Any = None,
    **base_options: Any,
) -> ApproxQuantilesLaw | UnboundedQuantileLaw:
    """The exact output law of `approx_quantiles` on this sample. Not a release: for audits.

    Everything but `dither_rng` is as in `approx_quantiles`.

    Parameters
    ----------
    dither_rng : None, int, SeedSequence, BitGenerator or Generator, optional
        Source of the one dither that the law is conditional on.

    Returns
    -------
    ApproxQuantilesLaw or UnboundedQuantileLaw
        ``log_prob(o)`` (of several levels only without a dither) and ``sample(rng, size)``.

    Examples
    --------
    >>> arguments = dict(epsilon=1.0, bounds=(0, 9), resolution=1, dither=False)
    >>> law = approx_quantiles_law([1, 2, 2, 5], 0.5, **arguments)
    >>> other = approx_quantiles_law([1, 2, 2, 9], 0.5, **arguments)  # of a neighbor
    >>> max(abs(law.log_prob(o) - other.log_prob(o)) for o in range(10)) <= 1.0 + 1e-9
    True
    >>> law.sample(size=5).shape
    (5,)
    """
    levels = Levels.of(q)
    budget = dict[str, Any](
        epsilon=epsilon, rho=rho, neighbors=neighbors, max_contributions=max_contributions
    )
    records = dict[str, Any](counts=counts, nan_policy=nan_policy, workers=workers)
    place = dict[str, Any](
        bounds=bounds,
        resolution=resolution,
        dither=dither,
        prior=prior,
        assume_sorted=assume_sorted,
    )
    if _checks.check_choice("base", base, BASES) == "unbounded":
        limits = unbounded_ends(**place)
        return unbounded_quantile_law(x, levels, **budget, **records, **limits, **base_options)
    _refuse(base_options)
    _, law_of = _reader(x, levels, budget, records | place)
    return law_of(dither_rng)


def _reader(
    x: Any, levels: Levels, budget: dict[str, Any], column: dict[str, Any]
) -> tuple[Calibration, Callable[[Any], ApproxQuantilesLaw]]:
    """What is spent, and what reads the records and gives the law, by dither.

    All that is public is checked here.
    """
    calibration = privacy.approx_quantiles.calibrate(levels, **budget)
    read = Sample.reader(x, **column)

    def law_of(dither_rng: Any) -> ApproxQuantilesLaw:
        sample = read(levels.values, lambda n: likely_reaches(n, calibration.steps))
        return ApproxQuantilesLaw(sample, levels, sample.order(dither_rng), calibration.steps)

    return calibration, law_of


def _refuse(base_options: dict[str, Any]) -> None:
    for name in base_options:
        raise TypeError(f"approx_quantiles with base 'ind_exp' takes no argument {name!r}")
