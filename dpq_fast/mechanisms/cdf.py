"""Distribution functions: one release of each method, as a `CDF`.

The poster is N. Manohar, "Privately Releasing Quantiles"; the note C. Gastaud, "Estimating a
cumulative distribution function with differential privacy".
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
import scipy
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._arguments import with_further
from dpq_fast._kernels import uniform
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data.leaves import Curve, Leaves
from dpq_fast.data.persons import WEIGHTS, parts_of, refuse_shares
from dpq_fast.data.sample import Sample
from dpq_fast.data.units import DURATIONS, INSTANTS
from dpq_fast.mechanisms.agg_tree import PartialTree, noised, public_lattice
from dpq_fast.mechanisms.csmooth import gaussian_quantiles, smooth_gaussian
from dpq_fast.mechanisms.factorized import numbers_below, weighted_sums, weights_of
from dpq_fast.mechanisms.two_stage import OfTree, tree_of
from dpq_fast.noise.counts import CountNoise, Gaussian
from dpq_fast.privacy.cdf import Calibration
from dpq_fast.privacy.relations import relation_of
from dpq_fast.released.agg_tree import AggTree
from dpq_fast.released.cdf import CDF, CumulativeNoise

# How often the noise is simulated, with how many draws in all.
MOST_SIMULATED, MAX_SIMULATED = 1000, 2**24


def _of_counts(
    leaves: Leaves,
    at: NDArray[np.int64],
    below: NDArray[np.float64],
    public: bool,
    noise: CumulativeNoise | None,
    unbiased: NDArray[np.float64] | None = None,
) -> CDF:
    """From noisy numbers of records below some edges of leaves: the nearest that ascend.

    The first number is 0. The last one, the number of records, is kept where it is public. Inside
    leaves mass is spread as in `Curve.of_masses`. The noise is that of `unbiased` numbers.
    """
    smooth = scipy.optimize.isotonic_regression(below[1:-1] if public else below[1:]).x
    total = max(float(below[-1] if public else smooth[-1]), 0.0)
    numbers = np.clip(np.concatenate(([0.0], smooth, below[-1:] if public else [])), 0.0, total)
    starts, lattice = leaves.starts[at], leaves.lattice
    # without records nothing is known, but where the bounds are, and the prior
    curve = Curve.of_masses(starts, np.diff(numbers if total > 0.0 else leaves.line[at]), lattice)
    if noise is not None and unbiased is not None:
        highest = np.maximum.accumulate(unbiased)
        lowest = np.minimum.accumulate(unbiased[::-1])[::-1]
        apart = float((numbers - highest).max() + (lowest - numbers).max())
        noise = noise._replace(apart=apart)
    return CDF(curve.x, curve.p, total=total, noise=noise, lattice=lattice, edges=leaves.ends[at])


def _below(tree: AggTree) -> NDArray[np.float64]:
    """Estimated numbers of records below the edges, summed from the root down."""
    below = np.array([0.0, tree.counts[0][0]])
    for level in tree.counts[1:]:
        siblings = level.reshape(-1, tree.branching)
        inside = np.zeros(siblings.shape)
        np.cumsum(siblings[:, :-1], axis=1, out=inside[:, 1:])
        below = np.append((below[:-1, None] + inside).ravel(), below[-1])
    return below


def _simulated(draws: int, noise_of: Callable[[Any], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Ranges of noise that ``noise_of(rng)`` draws, from so many draws of one count each."""
    rng = np.random.Generator(np.random.PCG64(0))
    size = min(MOST_SIMULATED, MAX_SIMULATED // draws)
    return np.sort([np.ptp(np.append(noise_of(rng), 0.0)) for _ in range(size)])


@functools.lru_cache(maxsize=64)  # public facts only
def _ranges_of_tree(
    noise: CountNoise, height: int, branching: int, held: int, public: bool, aggregate: bool
) -> NDArray[np.float64]:
    """Of numbers below the first `held` edges of leaves of a tree, and of all of them."""
    sizes = [branching**depth for depth in range(1, height + 1)]
    total = 0 if public else None

    def noise_of(rng: np.random.Generator) -> NDArray[np.float64]:
        nodes = [noise.draw(size, rng) for size in sizes]
        tree = AggTree(nodes, (0.0, float(sizes[-1])), noise, total=total, aggregate=aggregate)
        below = _below(tree)
        return np.append(below[:held], below[-1])

    return _simulated(sum(sizes), noise_of)


@functools.lru_cache(maxsize=64)  # public facts only
def _ranges_of_halves(noise: CountNoise, depth: int, public: bool) -> NDArray[np.float64]:
    """Of numbers below all edges that can be reached, by `_from_above`."""
    return _simulated(2 << depth, lambda rng: _noise_above(depth, public, noise, rng))


@functools.lru_cache(maxsize=64)  # public facts only
def _ranges_of_sums(noise: CountNoise, bins: int, public: bool) -> NDArray[np.float64]:
    """Of numbers below the edges of bins, by `numbers_below`."""

    def noise_of(rng: np.random.Generator) -> NDArray[np.float64]:
        errors = numbers_below(noise.draw(bins, rng))
        return errors[:-1] if public else errors

    return _simulated(bins, noise_of)


def _units_below(
    noise: CountNoise, height: int, branching: int, held: int, public: bool, aggregate: bool
) -> NDArray[np.float64]:
    """Units of the same numbers, which are those of any tree of this shape."""
    nodes = [np.zeros(branching**depth) for depth in range(1, height + 1)]
    total = 0 if public else None
    tree = AggTree(nodes, (0.0, float(nodes[-1].size)), noise, total=total, aggregate=aggregate)
    places = np.append(np.arange(held, dtype=np.float64), nodes[-1].size)
    return tree._units(np.zeros(places.size), places)


def _noise_of_tree(
    noise: CountNoise, height: int, branching: int, held: int, public: bool, aggregate: bool
) -> CumulativeNoise:
    """Noise of the same numbers, by `_below`.

    Notes
    -----
    The weights of the draws in an estimate are at most 1. Without aggregation they are 1. With it,
    those of least squares have the least sum of squares, while those on the path to a leaf add up
    to 1 below x and to 0 above. Partial sums along paths then are a function on the nodes that is
    harmonic inside the tree, 0 or 1 at the leaves and 0 (or free) at the root: it stays in [0, 1],
    and a weight is the difference of two of its values.
    """
    _checks.check_tree(height, branching, None)
    if not 0 < _checks.check_count("held", held) <= branching**height:
        raise ValueError("held must be a number of leaves")
    facts = noise, height, branching, held, bool(public), bool(aggregate)
    ranges = functools.partial(_ranges_of_tree, *facts)
    units = functools.partial(_units_below, *facts)
    return CumulativeNoise(noise, units, not aggregate, 0.0, ranges, ("tree", *facts))


def _of_tree(tree: AggTree, exact_noise: bool = True) -> CDF:
    leaves = tree._leaves
    places = leaves.places
    below = _below(tree)[places.astype(np.int64)]
    noise = None
    if exact_noise:
        shape = tree.height, tree.branching, leaves.size
        noise = _noise_of_tree(tree.noise, *shape, tree.total_known, tree._aggregate)
    return _of_counts(leaves, np.arange(places.size), below, tree.total_known, noise)


def _reader(
    method: str, column: dict[str, Any], options: dict[str, Any]
) -> Callable[[], Sample] | Callable[[], PartialTree]:
    """What reads the records, in order or by leaf; all that is public is checked here."""
    bins = options.get("bins")
    if "levels" in options and bins is None:
        return Sample.reader(**column)
    if method == "binary_tree":
        shape: dict[str, Any] = dict(height=privacy.cdf.height_of(options["bins"]), branching=2)
    else:
        shape = dict(height=options.get("height", 1), branching=options.get("branching", bins))
    return PartialTree.reader(**column, **shape)


def _counted(read: Callable[[], PartialTree], calibration: Calibration, rng: Any) -> CDF:
    """A tree of noisy counts; of a histogram, a public total corrects all bins."""
    assert calibration.noise is not None
    aggregate = calibration.options.get("aggregate", True)
    return _of_tree(noised(read(), calibration.noise, calibration.relation, aggregate, rng))


def _two_stage(
    read: Callable[[Any], OfTree], calibration: Calibration, rng: np.random.Generator
) -> CDF:
    """A tree whose leaves are where a pilot found records."""
    return _of_tree(read(rng).tree(rng))


def _factorized(read: Callable[[], PartialTree], calibration: Calibration, rng: Any) -> CDF:
    """Noisy weighted sums of the counts of bins, and the numbers below edges that they give."""
    assert calibration.noise is not None
    partial, noise = read(), calibration.noise
    exact = partial._leaves
    below = np.append(0.0, numbers_below(weighted_sums(exact) + noise.draw(exact.size, rng)))
    public = partial.n_is_public(calibration.relation)
    if public:
        below[-1] = exact.sum()
    leaves = Leaves.of(partial.bounds, partial.lattice, exact.size)
    error = _noise_of_sums(noise, exact.size, public)
    return _of_counts(leaves, np.arange(below.size), below, public, error)


def _noise_of_sums(noise: CountNoise, bins: int, public: bool) -> CumulativeNoise:
    """Noise of numbers of records below the edges of bins, by `numbers_below`.

    In units of the largest weight of a draw.
    """
    one = type(noise)(noise.scale * Fraction(float(weights_of(bins)[0])))
    facts = bins, bool(public)
    units = functools.partial(_units_of_sums, *facts)
    ranges = functools.partial(_ranges_of_sums, noise, *facts)
    return CumulativeNoise(one, units, False, 0.0, ranges, ("sums", noise, *facts))


def _units_of_sums(bins: int, public: bool) -> NDArray[np.float64]:
    weights = weights_of(bins)
    squares = np.append(0.0, np.cumsum((weights / weights[0]) ** 2))
    return squares[: bins if public else bins + 1]


def _adaptive(read: Callable[[], PartialTree], calibration: Calibration, rng: Any) -> CDF:
    """The note's dichotomy, on the edges of a fine partition; both halves are counted."""
    assert calibration.noise is not None
    partial = read()
    exact = np.concatenate(([0], np.cumsum(partial._leaves)))
    public, noise = partial.n_is_public(calibration.relation), calibration.noise
    steps, depth = calibration.options["steps"], calibration.options["depth"]
    # The first run is whole, and not counted. Split j makes the runs 2 j + 1 and 2 j + 2. As
    # `bins` is at most 2^depth, a run at the depth is one bin.
    runs, noisy_counts, split = [(0, partial.branching)], [0], []
    largest = [(0, -partial.branching, 0, 0)]  # the largest first, of these the widest
    for draws in noise.draw(2 * steps, rng).reshape(steps, 2).tolist():
        *_, run = heapq.heappop(largest)
        split.append(run)
        start, stop = runs[run]
        middle = (start + stop) // 2
        for half, draw in zip(((start, middle), (middle, stop)), draws, strict=True):
            count = int(exact[half[1]] - exact[half[0]]) + draw
            if half[1] - half[0] > 1:
                heapq.heappush(largest, (-count, half[0] - half[1], half[0], len(runs)))
            runs.append(half)
            noisy_counts.append(count)
    total = int(exact[-1]) if public else None
    undivided = sorted(set(range(len(runs))) - set(split), key=runs.__getitem__)
    edges = [0, *(runs[run][1] for run in undivided)]
    below, above = (
        np.cumsum([0.0, *(counts[run] for run in undivided)])
        for counts in (
            _least_squares(noisy_counts, split, total),
            _from_above(noisy_counts, [1.0] * len(runs), split, total),
        )
    )
    error = _noise_of_halves(noise, depth, public)
    leaves = Leaves.of(partial.bounds, partial.lattice, partial.branching)
    return _of_counts(leaves, np.array(edges), below, public, error, above)


def _least_squares(noisy_counts: list[int], split: list[int], total: int | None) -> list[float]:
    """Counts of runs that add up, and to a public total, nearest to the noisy ones.

    Split j is that of run ``split[j]`` into the runs 2 j + 1 and 2 j + 2. Two passes, as in
    `AggTree`, where variances differ within a level: from below the best estimate of each run by
    its own count and those of its parts, and `_from_above` with what is known there.
    """
    below, variances = [float(count) for count in noisy_counts], [1.0] * len(noisy_counts)
    for j in reversed(range(1, len(split))):
        run, left, right = split[j], 2 * j + 1, 2 * j + 2
        variance = variances[left] + variances[right]
        below[run] += (below[left] + below[right] - below[run]) / (1.0 + variance)
        variances[run] = variance / (1.0 + variance)
    return _from_above(below, variances, split, total)


def _from_above(
    estimates: Sequence[float], variances: list[float], split: list[int], total: int | None
) -> list[float]:
    """Estimates that add up: two halves share, by their variances, what the whole has more."""
    found = [float(estimate) for estimate in estimates]
    found[0] = found[1] + found[2] if total is None else float(total)
    for j, run in enumerate(split):
        left, right = 2 * j + 1, 2 * j + 2
        missing = found[run] - found[left] - found[right]
        share = missing * variances[left] / (variances[left] + variances[right])
        found[left] += share
        found[right] += missing - share
    return found


def _units_above(depth: int, public: bool) -> NDArray[np.float64]:
    r"""Units of the numbers below all edges that can be reached, by `_from_above`.

    Notes
    -----
    With equal variances, the error of a half is half that of the whole, plus or minus
    :math:`D = (Z_1 - Z_2) / 2`, Z the noise of the two. So the error of the number in the part of
    a run up to an edge, which is below the share :math:`\varphi` of it, counted by halvings, is
    :math:`\varphi` times that of the whole, plus :math:`t D` with
    :math:`t = 1 - |2 \varphi - 1|`, plus that of the half with the edge on its own: there the share
    is :math:`2 \varphi \bmod 1`. Weights of draws are t/2, and those of the first two, if the whole
    is their sum, :math:`\varphi \pm t/2`: at most 1.

    They do not depend on what else is split. Say that every run that can be reached has its noise
    from the start, as in `privacy.cdf.depths_of`: then the number below an edge has the same
    error whenever the edge is reached, and a bound of all of them holds for any that are chosen.
    """
    share = np.arange(1, 2**depth + 1) / 2**depth
    tent = 1.0 - np.abs(2.0 * share - 1.0)
    units: NDArray[np.float64] = tent * tent / 2.0 + (0.0 if public else 2.0 * share * share)
    for _ in range(depth - 1):
        share = 2.0 * share % 1.0
        tent = 1.0 - np.abs(2.0 * share - 1.0)
        units += tent * tent / 2.0
    return units


def _noise_of_halves(noise: CountNoise, depth: int, public: bool) -> CumulativeNoise:
    """Noise of the numbers below all edges that can be reached, by `_from_above`."""
    _checks.check_tree(depth, 2, None)
    facts = depth, bool(public)
    units = functools.partial(_units_above, *facts)
    ranges = functools.partial(_ranges_of_halves, noise, *facts)
    return CumulativeNoise(noise, units, False, 0.0, ranges, ("halves", noise, *facts))


# By their names in the bytes of a `CDF`.
NOISES: dict[str, Callable[..., CumulativeNoise]] = {
    "tree": _noise_of_tree,
    "sums": _noise_of_sums,
    "halves": _noise_of_halves,
}


def _noise_above(
    depth: int, public: bool, noise: CountNoise, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Noise of the numbers below all edges that can be reached, by `_from_above`."""
    first = noise.draw(2, rng).astype(np.float64)
    whole = np.array([0.0 if public else first.sum()])
    for level in range(depth):
        halves = noise.draw(2 << level, rng) if level > 0 else first
        apart = halves[0::2] - halves[1::2]
        whole = np.column_stack(((whole + apart) / 2.0, (whole - apart) / 2.0)).ravel()
    return np.cumsum(whole)


def _gaussian(read: Callable[[], Any], calibration: Calibration, rng: Any) -> CDF:
    """Normal noise for the global sensitivity: on quantiles, or on counts."""
    assert calibration.sigma is not None
    sigma, bins = calibration.sigma, calibration.options["bins"]
    if bins is None:
        levels = calibration.options["levels"]
        return _of_quantiles(
            read, levels, lambda sample, q: gaussian_quantiles(sample, q, sigma, rng)
        )
    partial = read()
    # rounded: an integer plus normal noise, post-processed
    noisy_counts = partial._leaves + np.rint(sigma * standard_normal(bins, rng))
    public = partial.n_is_public(calibration.relation)
    tree = AggTree(
        [noisy_counts],
        partial.bounds,
        Gaussian(sigma),
        total=int(partial._leaves.sum()) if public else None,
        lattice=partial.lattice,
    )
    return _of_tree(tree, exact_noise=False)


def standard_normal(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Standard normal variates by Box and Muller, right to 1e-15, with no end to the tails."""
    radius = np.sqrt(-2.0 * uniform.log_uniforms(size, rng))
    return radius * np.cos(2.0 * np.pi * rng.random(size))


def _smooth_gaussian(read: Callable[[], Sample], calibration: Calibration, rng: Any) -> CDF:
    assert calibration.smooth is not None
    levels, smooth = calibration.options["levels"], calibration.smooth
    return _of_quantiles(read, levels, lambda sample, q: smooth_gaussian(sample, q, *smooth, rng))


def _of_quantiles(
    read: Callable[[], Sample],
    levels: int,
    release: Callable[[Sample, NDArray[np.float64]], NDArray[np.float64]],
) -> CDF:
    """From evenly spaced quantiles."""
    sample = read()
    low, high = sample.bounds
    if sample.lattice is not None:
        low, high = sample.lattice.decode(np.array([-1, sample.lattice.points - 1]))
    q = np.arange(1, levels + 1) / (levels + 1)
    x = np.concatenate(([low], release(sample, q), [high]))
    return CDF(x, np.concatenate(([0.0], q, [1.0])), lattice=sample.lattice)


_METHODS: dict[str, Callable[..., CDF]] = {
    "binary_tree": _counted,
    "agg_tree": _counted,
    "two_stage": _two_stage,
    "histogram": _counted,
    "factorized": _factorized,
    "adaptive": _adaptive,
    "gaussian": _gaussian,
    "smooth_gaussian": _smooth_gaussian,
}


@releases(INSTANTS, DURATIONS)
@with_further(privacy.cdf.all_options)
def cdf(
    x: Any,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    method: str = "auto",
    neighbors: str = "swap",
    resolution: float | None = None,
    prior: Any = None,
    counts: Any = None,
    privacy_unit: Any = None,
    contributions: Any = WEIGHTS,
    nan_policy: str = "omit",
    expected_n: int | None = None,
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    workers: int = 1,
    **method_options: Any,
) -> Prepared[CDF]:
    r"""Release a distribution function.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private sample, any order: an array, a pandas, polars or pyarrow column, a sequence, or a
        `Sample`. Clamped to `bounds`; NaN and null are left out (`nan_policy`). n >= 0.
    epsilon : float
        Budget of the whole call, positive and finite. Public. Exactly one of `epsilon` and `rho`.
    delta : float, default 0
        For "gaussian" and "smooth_gaussian" with `epsilon`, which need it; else 0. Public.
    rho : float, optional
        zCDP budget instead of `epsilon`: Gaussian noise. Not for "smooth_gaussian". Public.
    bounds : (float, float)
        Finite low < high, chosen without looking at `x`. Public. Left out only for a `Sample`.
        With a `prior` that has quantiles an end may be infinite (`Sample.of`).
    method : str, default "auto"
        "two_stage", "agg_tree", "binary_tree", "histogram", "factorized", "adaptive", "gaussian" or
        "smooth_gaussian": see Notes. "auto" without options is "two_stage", and "agg_tree" where
        the lattice has at most 2,048 points or there is none; with `rho`, under "swap",
        "factorized", unless it takes more than 2^13 bins. With options it is "agg_tree", or with
        `bins` "binary_tree", or with `steps` or `depth` "adaptive". Public.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record, n is public; "add-remove" adds or deletes one.
    resolution : float, optional
        Spacing of the lattice, in the unit of `x`: records are rounded to it one by one, the
        function steps at its points, and quantiles are points; 0 for none. Default as in
        `joint_exp`: about 10^-6 of the range. Public. With the step of your data (1 for whole
        numbers), ties stay where they are.
    prior : "uniform", "log", "scale-free", distribution, functions or mixture, optional
        A guess at the distribution of the records, made without looking at `x`, as in `joint_exp`:
        bins have equal masses, and what is inside a bin is spread in proportion to it. Public.
    counts : array_like of int, shape (n,), optional
        How many records each entry of `x` stands for. Private.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave NaN and null out record by record, or state that there are none. As in `agg_tree`,
        the number of records is used as public, under "swap", only with "raise".
    expected_n : int, optional
        About how many records there are, for the default shape of "agg_tree" and the default bins
        of "factorized", as in `agg_tree`. Public.
    privacy_unit, contributions : optional
        Ids of persons, as in `quantile`: the guarantee is about whole persons.
    max_contributions : int, default 1
        Up to this many records per person: the guarantee is per person.
    accountant : Accountant, optional
        Charged with ``guarantee("cdf", method=method, ...)``; refuses before `x` is touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system.
    workers : int, default 1
        Threads for passes over a long `x`; the answer does not depend on it.
    **method_options
        Public. "binary_tree": `bins` (default 1,024), a power of two, at most 2^26, and
        `aggregate` (True). "agg_tree": `height` and `branching`, as in `agg_tree`, and `aggregate`.
        "histogram": `bins` (100). "factorized": `bins`, at most 2^13; by default about as many as
        "agg_tree" has leaves. "adaptive": `steps` (128), `depth` (14), and `bins` (2^20), a
        power of two above `steps`: the finest partition. Depth is no more than it takes to reach
        the bins, and steps no more than a depth allows. "gaussian": `levels` (9), at most 2^20,
        or `bins`. "smooth_gaussian": `levels` (9). On a lattice there are no more bins than points,
        and no more levels, depth and steps than that takes; of at most 2,048 points, each is a bin
        by default.

    Returns
    -------
    CDF

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
    AggTree : Counts of intervals and confidence intervals from one tree.
    joint_exp : More accurate where a few levels, known beforehand, are all that is needed.

    Notes
    -----
    **Counts.** The first four methods count the records of bins, which are runs of lattice points
    as even as can be (equal intervals, without a lattice), and count coarser bins, too: a tree.
    All counts below the root have independent discrete noise, Laplace for `epsilon` and Gaussian
    for `rho`, of the scale that `privacy.agg_tree.calibrate` proves for the h levels which a record
    is in. Unbiased estimates of numbers of records up to the ends of bins are read off and
    smoothed: the nearest non-decreasing ones in least squares take their place. Inside bins the
    function is a monotone cubic, as in `agg_tree`.

    - "agg_tree": the tree of `agg_tree`, combined. h is its height. By default it has some more
      leaves than for quantiles: those that the formula of `privacy.agg_tree.shape_of` gives for
      records whose standard deviation is an 80th of the range.
    - "two_stage": the same, of bins that are where a pilot found records, as in `two_stage`: what
      is to be taken where the bounds are wide, or many records share numbers.
    - "binary_tree": the poster [1]_. Over D bins, h = log2 D; the root is not noised. With
      `aggregate` the estimates of all levels are combined, as in `agg_tree`; without it they are
      added up, as in the poster, and errors are larger.
    - "histogram": the bins alone, h = 1. Errors add up along the bins.

    **Weighted sums** [3]_ [4]_. "factorized", with `rho`: instead of counts, sums in which a record
    counts for 512 in its bin, and for less and less in the bins above, as the coefficients of
    :math:`(1-x)^{-1/2}` fall; they are integers, with discrete Gaussian noise. Weighted once more,
    they are unbiased numbers of records up to the ends of bins, and read off as for counts. One
    replaced record changes them less than the counts of a tree: against the default tree under
    "swap", the largest error of the function is 4 to 19% less for normal and lognormal records, and
    about a fifth less where bins are points. Under "add-remove" trees are about as good.

    **Adaptive** (after the note [2]_). `steps` times in all, the run of lattice points that has
    the largest noisy count is halved, and both halves are counted, with noise. The first run is
    the whole lattice; what comes from `depth` halvings is not halved again. So a record is in at
    most `depth` counts, whatever is chosen, and h is that: more steps cost no privacy, and a
    greater depth costs noise. By default the finest run is a 2,048th of the lattice: where the
    records may all be in few such runs, ask for a greater depth. Counts are combined as in
    "agg_tree".

    **Quantiles** (the note's baselines). "gaussian": normal noise on evenly spaced quantiles,
    scaled to their global sensitivity, the width of the bounds for each: (`epsilon`, `delta`) by
    the analytic Gaussian mechanism. "smooth_gaussian": scaled to the smooth sensitivity, with
    `epsilon` / m and `delta` / m for each of m levels. With `bins`, "gaussian" adds normal noise
    to the counts of bins instead, rounded to integers.

    **Ties.** A bin of several lattice points has its records spread over them. Where bins are
    points, as for whole numbers with ``resolution=1`` and bounds not too wide, the function steps
    where the records do, and only noise parts it from theirs. "adaptive" finds the points that
    many records are at, as far as its depth goes. "gaussian" and "smooth_gaussian" step where
    released quantiles are equal.

    **Privacy.** `privacy.guarantee` states it for each method (with `points`, the number of lattice
    points, for the rho that comes with `epsilon`); the proofs are in
    `privacy.agg_tree.sensitivities`, `privacy.cdf.depths_of`, `privacy.cdf.factorized_squared`,
    `privacy.cdf.gaussian_squared` and `privacy.cdf.budget_of_level`. Discrete noise is exact;
    normal noise on quantiles has 40 digits before it is rounded to the lattice, and on bins 16
    before it is rounded to integers. Smoothing is post-processing. Not covered: running time and
    memory.

    **Cost.** One pass over `x`, two for quantiles; O(bins) time and memory. "factorized": O(bins^2)
    time, some 50 ms for 2^13.

    References
    ----------
    .. [1] N. Manohar, "Privately Releasing Quantiles", poster, Privacy Tools for Sharing Research
       Data, Harvard.
    .. [2] C. Gastaud, "Estimating a cumulative distribution function with differential privacy",
       blog post, Sarus Technologies.
    .. [3] M. Henzinger, J. Upadhyay, S. Upadhyay, "A Unifying Framework for Differentially Private
       Sums under Continual Observation", SODA 2024.
    .. [4] H. Fichtenberger, M. Henzinger, J. Upadhyay, "Constant Matters: Fine-grained Error Bound
       on Differentially Private Continual Observation", ICML 2023.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=10_000)
    >>> released = cdf(x, epsilon=1.0, bounds=(-10, 10))
    >>> bool(0.4 < released.cdf(0.0) < 0.6)
    True
    >>> bool(-10 <= released.quantile(0.1) <= released.quantile(0.9) <= 10)
    True
    """
    bounds, lattice = public_lattice(x, bounds, resolution, prior, counts, nan_policy)
    # Public arguments are refused before x is touched.
    if expected_n is None:
        n_is_public = relation_of(neighbors).n_is_public
        expected_n = _checks.public_length(x, counts, nan_policy, n_is_public)
    calibration = privacy.cdf.calibrate(
        method=method,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
        points=None if lattice is None else lattice.points,
        expected_n=expected_n,
        **method_options,
    )
    column = dict(
        x=x,
        bounds=bounds,
        resolution=resolution,
        prior=prior,
        counts=counts,
        nan_policy=nan_policy,
        workers=workers,
    )
    if calibration.stages is not None:
        read: Any = tree_of(column.pop("x"), cast(Any, column), calibration.stages)
    else:
        read = _reader(calibration.method, column, calibration.options)
    release = _METHODS[calibration.method]
    if calibration.method in ("gaussian", "smooth_gaussian"):
        refuse_shares(x, counts, f"method {calibration.method!r}")
    parts = parts_of(x, counts)
    made: Prepared[CDF] = Prepared(calibration, lambda rng: release(read, calibration, rng))
    return made if parts == 1 else made.then(lambda found: found.of_parts(parts))
