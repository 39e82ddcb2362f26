"""CSmooth: order statistics with noise scaled to their smooth sensitivity."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._kernels import smooth as kernel
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data.persons import refuse_shares
from dpq_fast.data.sample import Sample
from dpq_fast.data.units import DURATIONS, INSTANTS
from dpq_fast.mechanisms._calls import with_options
from dpq_fast.noise import continuous
from dpq_fast.orders.order import Order, WholeOrder
from dpq_fast.orders.sorted import SortedOrder
from dpq_fast.privacy.levels import Levels

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dpq_fast.mechanisms._calls import ColumnOptions


# A window that turns out too small grows at most by this factor at once: what it finds then may
# ask for less than what it has found so far.
GROWTH = 8
# How much smaller S may be than the first guess from a few records, in nats, at no second look.
GUESS_MARGIN = 3.0

# A smoothness for which a few ranks are enough, where the order statistics alone are asked for.
STEEP = 64.0


class SmoothSensitivity(NamedTuple):
    """An order statistic, and how far it may move.

    Attributes
    ----------
    center : float
        x_j, in (fine) points, or in the unit of the bounds without a lattice.
    log_smooth : ndarray of float64, shape of t
        ln of its t-smooth sensitivities, in the same unit; finite.
    """

    center: float
    log_smooth: NDArray[np.float64]


def smooth_sensitivity(
    order: Order, q: float, t: NDArray[np.float64], reach: int | None = None
) -> SmoothSensitivity:
    """The order statistic nearest to a level, and its smooth sensitivity for each of some t.

    Parameters
    ----------
    order : Order
        The sample in order.
    q : float
        Level in [0, 1]; the rank is `privacy.smooth_rank`.
    t : ndarray of float64
        Smoothnesses, all positive. Public.
    reach : int, optional
        Ranks on each side to look at first, for tests; the result does not depend on it.

    Returns
    -------
    SmoothSensitivity

    Notes
    -----
    A pair of order statistics that are k + 1 ranks apart counts at most e^{-tk} (b - a). Once that
    is less than what was found for all pairs that are not in the window, the rest of the sample
    does not matter.
    """
    low, high = _ends(order)
    log_range = math.log(high - low)
    rank = privacy.csmooth.smooth_rank(q, order.n)
    if reach is None:
        reach = _first_reach(order, rank, float(t.min()), log_range)
    while True:
        first, stop = max(rank - reach, 0), min(rank + reach, order.n + 1)
        found = order.intervals(np.array([first]), np.array([stop - first]))
        # Where an interval has width, a run of equal order statistics ends on its left; x_0 = a.
        ranks, values = found.rank, np.maximum(found.left, low).astype(np.float64)
        apart = math.inf  # least distance in ranks of pairs that have not been looked at
        if stop > order.n:
            ranks, values = np.append(ranks, order.n + 1), np.append(values, high)
        elif ranks.size:
            apart = int(ranks[-1]) + 1 - rank  # the run after the last one begins there
        if first > 0:
            apart = min(apart, rank - first + 1)
        if ranks.size and ranks[-1] >= rank:
            log_smooth = kernel.log_smooth(ranks, values, rank, t)
            needed = float(((log_range - log_smooth) / t).max()) + 1.0
            if needed <= apart:
                return SmoothSensitivity(float(values[ranks.searchsorted(rank)]), log_smooth)
        else:
            needed = math.inf
        reach = math.ceil(min(max(needed, 2 * reach), GROWTH * reach, order.n + 1.0))


def _ends(order: Order) -> tuple[float, float]:
    """The bounds in the unit of the order: its first and last (fine) points on a lattice."""
    if order.lattice is None:
        return order.bounds
    return 0.0, float(order.last)


def _first_reach(order: Order, rank: int, t: float, log_range: float) -> int:
    """A guess at the window that certifies; a wrong one costs a second look, no more.

    The best k is about 1/t: a guess at S is the distance of records that many ranks apart.
    """
    n = order.n
    half = min(math.ceil(0.5 / t), n + 1)
    if n <= half:
        return n + 1
    places = np.clip(np.array([rank - 1 - half, rank - 1 + half]), 0, n - 1)
    log_guess = float(order.log_spans(places)[0])
    if log_guess == -math.inf:  # tied: look farther out
        return min(GROWTH * half, n + 1)
    return math.ceil(min(max((log_range - log_guess + GUESS_MARGIN) / t, 1.0), n + 1.0))


def _prepare(order: WholeOrder, q: NDArray[np.float64], t: NDArray[np.float64]) -> None:
    """Collect the first windows of all levels in one pass, where records are read in passes."""
    if q.size == 1 or not order.scans:
        return
    log_range = math.log(np.subtract(*_ends(order)[::-1]))
    ranks = np.array([privacy.csmooth.smooth_rank(level, order.n) for level in q.tolist()])
    reach = np.array(
        [
            _first_reach(order, *pair, log_range)
            for pair in zip(ranks.tolist(), t.tolist(), strict=True)
        ]
    )
    first = np.maximum(ranks - reach, 0)
    order.prepare(first, np.minimum(ranks + reach, order.n + 1) - first)


class _Noise(NamedTuple):
    """The noise of one level: its variate times exp(log_factor) times S."""

    variate: Decimal
    log_factor: Decimal


def _released(
    sample: Sample,
    q: NDArray[np.float64],
    t: NDArray[np.float64],
    noise: list[_Noise],
    dither_rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Order statistics plus S^t times noise, clamped, on the lattice, ascending."""
    order = sample.order(dither_rng)
    _prepare(order, q, t)
    found = [smooth_sensitivity(order, level, t[j : j + 1]) for j, level in enumerate(q.tolist())]
    with continuous.digits():
        shifts = [
            one.variate * continuous.exp(one.log_factor + Decimal(float(sensitivity.log_smooth[0])))
            for one, sensitivity in zip(noise, found, strict=True)
        ]
        return _shifted(sample, order, [one.center for one in found], shifts)


def _shifted(
    sample: Sample, order: Order, centers: list[float], shifts: list[Decimal]
) -> NDArray[np.float64]:
    """Order statistics plus noise in their unit, clamped, ascending, on the lattice."""
    low, high = map(Decimal, _ends(order))
    outputs = [
        min(max(Decimal(center) + shift, low), high)
        for center, shift in zip(centers, shifts, strict=True)
    ]
    made = float if order.lattice is None else continuous.nearest
    return sample.decode(np.array(sorted(map(made, outputs))))


def gaussian_quantiles(
    sample: Sample, q: NDArray[np.float64], sigma: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Order statistics plus normal noise, all with one dither.

    Parameters
    ----------
    sample : Sample
    q : ndarray of float64, shape (m,)
        Distinct levels in [0, 1], ascending.
    sigma : float
        Standard deviation of each level's noise, in units of the whole range.
    rng : Generator

    Returns
    -------
    ndarray of float64, shape (m,)
        Ascending, on the lattice inside the bounds.
    """
    with continuous.digits():
        noise = [Decimal(sigma) * continuous.normal(rng) for _ in range(q.size)]
    order = sample.order(rng)
    low, high = map(Decimal, _ends(order))
    steep = np.full(q.size, STEEP)
    _prepare(order, q, steep)
    centers = [
        smooth_sensitivity(order, level, steep[j : j + 1]).center
        for j, level in enumerate(q.tolist())
    ]
    with continuous.digits():
        return _shifted(sample, order, centers, [one * (high - low) for one in noise])


def laplace_log_normal(sigma: float, log_scale: float, rng: np.random.Generator) -> _Noise:
    """Z / s, Z = X exp(sigma Y), X Laplace(1) and Y standard normal; log_scale is ln s."""
    with continuous.digits():
        variate = continuous.laplace(rng)
        return _Noise(variate, Decimal(sigma) * continuous.normal(rng) - Decimal(log_scale))


def tune_t(
    n: int,
    q: Any,
    *,
    rho: float,
    bounds: tuple[float, float] = (-100.0, 100.0),
    max_contributions: int = 1,
    trials: int = 5,
    rng: Any = 0,
) -> Any:
    """A smoothness t for `csmooth`, tuned on synthetic data only: never give it a private n.

    Parameters
    ----------
    n : int
        Number of records to expect, at least 1. Public.
    q : float or array_like of float
        Levels, as for `csmooth`.
    rho : float
        Total zCDP budget, as for `csmooth`.
    bounds : (float, float), default (-100, 100)
        Bounds in the unit of the standard deviation to expect: the synthetic data is N(0, 1).
    max_contributions : int, default 1
        As for `csmooth`.
    trials : int, default 5
        Number of synthetic samples.
    rng : None, int, SeedSequence, BitGenerator or Generator, default 0
        For the synthetic samples; given to `numpy.random.default_rng`.

    Returns
    -------
    float or ndarray of float64
        In the shape of `q`: what `csmooth` takes as `t`.

    Notes
    -----
    The t of 12 from 0.05 to 0.75 times the epsilon of a level, at most 1, that has the least
    standard deviation of the noise, as a geometric mean over the trials.

    Examples
    --------
    >>> t = tune_t(1_000, [0.1, 0.5], rho=0.5)
    >>> t.shape
    (2,)
    """
    levels = Levels.of(q)
    n, trials = _checks.check_count("n", n), _checks.check_count("trials", trials)
    bounds = _checks.check_bounds(bounds)
    epsilon = privacy.csmooth.epsilon_each(levels.m, rho, max_contributions)
    rules = privacy.csmooth
    most = min(rules.CERTIFIED_RATIO * epsilon, rules.CERTIFIED_SMOOTHNESS)
    grid = np.geomspace(0.05 / rules.CERTIFIED_RATIO * most, most, 12)
    sigma, log_scale = np.array([privacy.csmooth.shape_of(t, epsilon) for t in grid.tolist()]).T
    generator = np.random.default_rng(rng)
    # ln of the standard deviation: that of Z is sqrt(2) exp(sigma^2)
    log_deviation = np.zeros((levels.m, grid.size)) + sigma * sigma - log_scale
    for _ in range(trials):
        synthetic = SortedOrder(np.sort(generator.standard_normal(n)), None, bounds)
        for j, level in enumerate(levels.values.tolist()):
            log_deviation[j] += smooth_sensitivity(synthetic, level, grid).log_smooth / trials
    return levels.restore(grid[log_deviation.argmin(axis=1)])


@releases(INSTANTS, DURATIONS)
@with_options(Sample.reader)
def csmooth(
    x: Any,
    q: Any,
    *,
    rho: float,
    t: Any = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    **column: Unpack[ColumnOptions],
) -> Prepared[Any]:
    r"""Release quantiles with noise scaled to their smooth sensitivity.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private sample, as in `joint_exp`.
    q : float or array_like of float
        Levels in [0, 1], any order and shape, at least one; duplicates are released once. Public.
    rho : float
        Total zCDP budget of all levels, positive and finite. Public. There is no `epsilon`: the
        release is not pure. The paper's "epsilon" is :math:`\rho = \epsilon^2/2`.
    bounds : (float, float)
        As in `joint_exp`.
    t : float or array_like of float, optional
        Smoothness, one for all levels or of q's shape, from 1e-100 to 10 times the epsilon of a
        level. It decides the size of the noise, never the privacy, provided that it is chosen
        without looking at `x`. Default: `default_smoothness`. Public.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record, "add-remove" adds or deletes one; the noise is the same.
    resolution, dither, prior, counts, assume_sorted, nan_policy
        As in `joint_exp`.
    privacy_unit, contributions : optional
        Ids of persons, and at most how many records of each are to count, as in `quantile`. Not
        "weights": noise goes by single records here.
    max_contributions : int, default 1
        Up to this many records per person: the guarantee is per person.
    accountant : Accountant, optional
        Charged with ``guarantee("csmooth", rho=rho, ...)``; refuses before `x` is touched.
    rng, workers
        As in `joint_exp`.

    Returns
    -------
    float or ndarray of float64
        In the shape of `q`, non-decreasing in `q`, on the lattice inside `bounds`, in the unit of
        `x`.

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
    joint_exp : More accurate, and pure.
    dpq_fast.mechanisms.csmooth.tune_t : A t for data like yours, from synthetic data.

    Notes
    -----
    **Mechanism.** Level j releases :math:`x_{(r)} + S^t(x)\, X e^{\sigma Y} / s` for the rank
    :math:`r = \lceil q_j n \rceil`, at least 1: X is Laplace(1), Y standard normal, and

    .. math:: S^t(x) = \max_{k \ge 0} e^{-tk} \max_{i=0..k+1} (x_{(r+i)} - x_{(r+i-k-1)})

    with :math:`x_{(i)}` the low bound for i < 1 and the high one for i > n [2]_. Each of m levels
    has :math:`\epsilon = \sqrt{2\rho/m}`, a sigma a little more than :math:`t/\epsilon`, and the
    largest s whose Rényi divergences of all orders are certified (`privacy.log_normal`): 2 to 5
    times less noise than that of [3]_. With a `prior` all distances are in its mass. All levels see
    one dither. Clamping, rounding to the lattice and sorting are post-processing.

    **Privacy.** `rho`-zCDP under either relation, with records left out or not
    (`privacy.smooth_rank` has the proof), up to rounding: ln S is right to about 1e-14, and the
    noise has 40 digits before it is rounded to the lattice (`continuous`). Not covered: running
    time and memory.

    **Cost.** Two passes over `x`, none if it is sorted, then O(W log W) per level for windows of W
    ranks, :math:`W = \ln((b - a)/S)/t`. The first call with a budget and a `t` takes a tenth of a
    second or two to find s.

    References
    ----------
    .. [1] J. Gillenwater, M. Joseph, A. Kulesza, "Differentially Private Quantiles", ICML 2021,
       PMLR 139:3713-3722. Section 5.1, Appendix E, Lemmas 13 and 14.
    .. [2] K. Nissim, S. Raskhodnikova, A. Smith, "Smooth Sensitivity and Sampling in Private Data
       Analysis", STOC 2007.
    .. [3] M. Bun, T. Steinke, "Average-Case Averages: Private Algorithms for Smooth Sensitivity and
       Mean Estimation", NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=1_000)
    >>> low, high = csmooth(x, [0.1, 0.9], rho=0.5, bounds=(-10, 10))
    >>> bool(-10 <= low <= high <= 10)
    True
    """
    levels = Levels.of(q)
    calibration = privacy.csmooth.calibrate(
        levels, rho=rho, t=t, neighbors=neighbors, max_contributions=max_contributions
    )
    refuse_shares(x, column.get("counts"), "method 'csmooth'")
    read = Sample.reader(x, **column)

    def draw(rng: np.random.Generator) -> Any:
        sample = read(levels.values)
        noise = [laplace_log_normal(*shape, rng) for shape in calibration.shapes]
        return levels.restore(_released(sample, levels.values, calibration.smoothness, noise, rng))

    return Prepared(calibration, draw)


def smooth_gaussian(
    sample: Sample,
    q: NDArray[np.float64],
    smoothness: float,
    log_alpha: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Quantiles with Gaussian noise scaled to their smooth sensitivity, all with one dither.

    Parameters
    ----------
    sample : Sample
    q : ndarray of float64, shape (m,)
        Distinct levels in [0, 1], ascending.
    smoothness, log_alpha : float
        Of each level, by `privacy.cdf.smooth_gaussian_scale`. The caller composes.
    rng : Generator

    Returns
    -------
    ndarray of float64, shape (m,)
        Ascending, on the lattice inside the bounds.
    """
    with continuous.digits():
        noise = [_Noise(continuous.normal(rng), Decimal(-log_alpha)) for _ in range(q.size)]
    return _released(sample, q, np.full(q.size, smoothness), noise, rng)
