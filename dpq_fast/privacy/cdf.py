r"""Distribution functions: counts with discrete noise, or quantiles with Gaussian noise."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._arguments import with_further
from dpq_fast._checks import (
    FEW_POINTS,
    check_choice,
    check_count,
    check_delta,
    check_epsilon,
    check_flag,
    check_max_contributions,
    check_ratio,
    check_tree,
)
from dpq_fast.noise.counts import CountNoise, Gaussian
from dpq_fast.privacy import two_stage
from dpq_fast.privacy.agg_tree import calibrate as calibrate_tree
from dpq_fast.privacy.agg_tree import sensitivities
from dpq_fast.privacy.budgets import check_step, resolve_epsilon
from dpq_fast.privacy.gaussian import gaussian_sigma
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.levels import MAX_LEVELS
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.smooth_gaussian import largest_scale

# Normal noise on integers is rounded: this leaves 23 bits between two of them.
_LARGEST_NORMAL = 2**30
# Where the exact delta of Gaussian noise on smooth sensitivity is asked for.
CERTIFIED_EPSILON, CERTIFIED_DELTA = 1e-3, 1e-200
# More than the rounding error of ln S, twice.
_LOG_ERROR = 1e-13
# "factorized": what a record counts for in the first weighted sum that it is in, and most bins.
# Weighted sums of 2^53 records stay below 2^62.
FACTOR_SCALE, MAX_FACTORED = 2**9, 2**13
# The options of each method of `cdf`, and their defaults: None is chosen by the lattice. Public.
OPTIONS: dict[str, dict[str, Any]] = {
    "binary_tree": {"bins": None, "aggregate": True},
    "agg_tree": {"height": None, "branching": None, "aggregate": True},
    "two_stage": {},
    "histogram": {"bins": None},
    "factorized": {"bins": None},
    "adaptive": {"steps": None, "bins": 2**20, "depth": None},
    "gaussian": {"levels": 9, "bins": None},
    "smooth_gaussian": {"levels": 9},
}
# Those that "auto" chooses from, where options are given: the first one that takes them.
AUTO = ("agg_tree", "binary_tree", "adaptive")
# "agg_tree": the standard deviation of the records is guessed to be this share of the range. It is
# less than for quantiles: the largest error is where records are closest together.
_SPREAD = 1.0 / 80.0
# "adaptive": splits by default, and how often a run is halved. Each depth costs noise; without
# them, data in a narrow part of the bounds are in a few runs (measured for 10^4 normal records in
# bounds 40 and 4,000 deviations wide: 14 is near the best for both).
_STEPS, _DEPTH = 2**7, 14


def method_of(method: str, given: dict[str, Any]) -> str:
    """The method that is used where "auto" goes by the names of options that are given."""
    check_choice("method", method, ("auto", *OPTIONS))
    if method != "auto":
        return method
    return next((name for name in AUTO if given.keys() <= OPTIONS[name].keys()), AUTO[0])


def options_of(method: str, given: dict[str, Any], points: int | None = None) -> dict[str, Any]:
    """All options of a method of `cdf`: those that are given, else the defaults.

    On a lattice of `points` points there are no more bins, levels and steps than it takes to have
    a bin for each point. "adaptive" has no more bins and steps than its depth can reach, and no
    more depth than its steps can. "agg_tree" gets what is left out by `calibrate`, since it
    depends on the budget.
    """
    defaults = OPTIONS[check_choice("method", method, tuple(OPTIONS))]
    if not isinstance(given, dict):
        raise TypeError(f"given must be a dict of options, got {type(given).__name__}")
    for name in given:
        if name not in defaults:
            raise TypeError(
                f"method {method!r} must have no options but {', '.join(defaults)}, got {name!r}"
            )
    options = defaults | given
    if "aggregate" in options:
        check_flag("aggregate", options["aggregate"])
    few = points
    if few is not None and check_count("points", few, 2) > FEW_POINTS:
        few = None
    if method == "binary_tree":
        if options["bins"] is None:
            options["bins"] = 2**10 if few is None else 1 << (few - 1).bit_length()
        options["bins"] = 1 << check_tree(height_of(options["bins"]), 2, points)[0]
    elif method == "histogram" and options["bins"] is None:
        options["bins"] = 100 if few is None else few
    if options.get("bins") is not None:
        check_tree(1, check_count("bins", options["bins"], 2), None)
    if method == "adaptive":
        options = _halving_shape(points, **options)
    if method == "factorized" and (options["bins"] or 0) > MAX_FACTORED:
        raise ValueError(f"bins must be at most {MAX_FACTORED}, got {options['bins']}")
    own = "histogram", "gaussian", "factorized"
    if points is not None and method in own and options["bins"] is not None:
        options["bins"] = min(options["bins"], points)
    return options


def _halving_shape(points: int | None, steps: Any, bins: int, depth: Any) -> dict[str, int]:
    """Splits of "adaptive", the finest partition that they can reach, and its depth."""
    most = height_of(bins) if points is None else min(height_of(bins), (points - 1).bit_length())
    depth = min(most, _DEPTH if depth is None else check_count("depth", depth))
    if steps is not None:
        if check_count("steps", steps) >= bins:
            raise ValueError(f"steps must be less than bins, got {steps}")
        depth = min(depth, steps)  # a run is halved once in a step
    bins = 2**depth
    reached = bins if points is None else min(bins, points)
    steps = min(_STEPS if steps is None else steps, reached - 1)
    return dict(steps=steps, bins=bins, depth=depth)


def height_of(bins: int) -> int:
    """Levels of a binary tree over `bins` leaves, a power of two."""
    bins = check_count("bins", bins, 2)
    if bins & (bins - 1):
        raise ValueError(f"bins must be a power of two, got {bins}")
    return bins.bit_length() - 1


class Calibration(NamedTuple):
    """What a call of `cdf` spends and guarantees.

    Attributes
    ----------
    method : str
        That is used.
    options : dict
        All options of the method, by `options_of`.
    noise : CountNoise or None
        Of each count, where the noise is discrete.
    sigma : float or None
        Of normal noise: in units of the whole range for quantiles, else of counts.
    smooth : (float, float) or None
        Smoothness and ln alpha of `smooth_gaussian_scale`, for each quantile.
    relation : Relation
    guarantee : Guarantee
    stages : two_stage.Calibration or None
        Of "two_stage".
    """

    method: str
    options: dict[str, Any]
    noise: CountNoise | None
    sigma: float | None
    smooth: tuple[float, float] | None
    relation: Relation
    guarantee: Guarantee
    stages: two_stage.Calibration | None = None


def all_options() -> list[str]:
    """The options of all methods."""
    return [name for options in OPTIONS.values() for name in options]


@with_further(all_options)
def calibrate(
    *,
    method: str = "auto",
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    points: int | None = None,
    expected_n: int | None = None,
    **options: Any,
) -> Calibration:
    """The noise of a method of `cdf`, and what it guarantees.

    Parameters
    ----------
    method : str
        One of `OPTIONS`, or "auto": `method_of`; but where no options are given "factorized" for
        `rho` and "swap", if it takes no more than 2^13 bins, and "two_stage" for `epsilon` on a
        lattice of more than 2,048 points.
    epsilon, delta, rho : float
        Total budget, per person, as the method takes it.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.
    points : int, optional
        Number of lattice points.
    expected_n : int, optional
        About how many records there are, for the default shape of "agg_tree" and "factorized".
    **options
        Of the method.

    Returns
    -------
    Calibration
    """
    if expected_n is not None:
        check_count("expected_n", expected_n)
    delta, k = check_delta(delta), check_max_contributions(max_contributions)
    relation = relation_of(neighbors)
    given, method = method, method_of(method, options)  # which refuses what is no name
    nothing_given = given == "auto" and not options
    if nothing_given and rho is not None and relation.parts == 2:
        few = _bins_by_rule(points, expected_n, rho, relation, k) <= MAX_FACTORED
        method = "factorized" if few else method
    elif nothing_given and rho is None and points is not None and points > FEW_POINTS:
        method = "two_stage"
    options = options_of(method, options, points)
    if method == "smooth_gaussian":
        if rho is not None:
            raise ValueError(f"rho must be left out for method 'smooth_gaussian', got {rho}")
        smooth = smooth_gaussian_scale(*budget_of_level(options["levels"], epsilon, delta, k))
        guarantee = Guarantee(epsilon, delta, None, None, neighbors, "basic")
        return Calibration(method, options, None, None, smooth, relation, guarantee)
    if method == "gaussian":
        squared = gaussian_squared(options["levels"], options["bins"], relation, k)
        sigma = gaussian_sigma(squared, epsilon, delta, rho)
        if options["bins"] is not None and sigma > _LARGEST_NORMAL:
            raise ValueError(
                "the budget must be large enough for a sigma of at most 2^30 with bins, "
                f"got {sigma}"
            )
        # Normal noise is that much zCDP, too [BS16].
        implied = squared / (2.0 * sigma * sigma) if rho is None else rho
        guarantee = Guarantee(epsilon, delta, implied, None, neighbors)
        return Calibration(method, options, None, sigma, None, relation, guarantee)
    if delta > 0.0:
        raise ValueError(
            f"delta must be 0 for method {method!r}, which takes rho for Gaussian noise, "
            f"got {delta}"
        )
    if method == "two_stage":
        stages = two_stage.calibrate_tree(
            epsilon=epsilon,
            rho=rho,
            neighbors=neighbors,
            max_contributions=k,
            expected_n=expected_n,
            points=points,
        )
        tree: Any = stages.main
        options |= dict(height=tree.height, branching=tree.branching)
        own = stages.guarantee
        return Calibration(method, options, tree.noise, None, None, relation, own, stages)
    if method == "factorized":
        resolve_epsilon(epsilon, rho)  # exactly one of them, and positive
        if rho is None:
            raise ValueError(f"rho must be given for method 'factorized', got epsilon {epsilon}")
        if options["bins"] is None:
            bins = _bins_by_rule(points, expected_n, rho, relation, k)
            options["bins"] = min(bins, MAX_FACTORED)
        squared = factorized_squared(options["bins"], relation, k)
        noise = Gaussian.calibrated(squared, squared, Fraction(*check_ratio("rho", rho)))
        guarantee = Guarantee(None, 0.0, rho, None, neighbors)
        return Calibration(method, options, noise, None, None, relation, guarantee)
    shape: dict[str, Any] = dict(branching=2)
    if method == "agg_tree":
        shape = dict(branching=options["branching"], points=points, expected_n=expected_n)
    tree = calibrate_tree(
        epsilon=epsilon,
        rho=rho,
        height=depths_of(method, options),
        noise="geometric" if rho is None else "gaussian",
        neighbors=neighbors,
        max_contributions=k,
        spread=_SPREAD,
        **shape,
    )
    if method == "agg_tree":
        options |= dict(height=tree.height, branching=tree.branching)
    return Calibration(method, options, tree.noise, None, None, relation, tree.guarantee)


def _bins_by_rule(
    points: int | None, expected_n: int | None, rho: float, relation: Relation, k: int
) -> int:
    """Bins of "factorized" that are left out: as many as "agg_tree" would have leaves."""
    tree = calibrate_tree(
        rho=rho,
        points=points,
        expected_n=expected_n,
        noise="gaussian",
        neighbors=relation.name,
        max_contributions=k,
        spread=_SPREAD,
    )
    leaves: int = tree.branching**tree.height
    return leaves if points is None else min(leaves, points)


@lru_cache(maxsize=16)  # public facts only
def prefix_factor(bins: int) -> NDArray[np.int64]:
    r"""The integers c of the weighted sums of "factorized": what a record counts for in them.

    Parameters
    ----------
    bins : int
        N, the number of bins, at most 2^13.

    Returns
    -------
    ndarray of int64, shape (N,)
        :math:`c_k = \operatorname{round}(2^9 \binom{2k}{k} / 4^k)`. A record of bin j counts for
        :math:`c_{i-j}` in the i-th sum, i from j on.

    Notes
    -----
    Without rounding, and over 2^9, these are the coefficients of :math:`(1-x)^{-1/2}`. Their
    convolution with themselves is that of :math:`(1-x)^{-1}`, ones: numbers of records up to the
    ends of bins are the weighted sums, weighted once more [HUU24], [FHU23]. Rounded, they are
    integers, and so are the weighted sums of records. The noisy sums are turned back by the
    inverse of these integers, so that rounding leaves no bias.
    """
    if check_count("bins", bins, 2) > MAX_FACTORED:
        raise ValueError(f"bins must be at most {MAX_FACTORED}, got {bins}")
    k = np.arange(1, bins)
    exact = np.concatenate(([1.0], np.cumprod((2.0 * k - 1.0) / (2.0 * k))))
    factor: NDArray[np.int64] = np.rint(FACTOR_SCALE * exact).astype(np.int64)
    factor.flags.writeable = False
    return factor


def factorized_squared(bins: int, relation: Relation, max_contributions: int = 1) -> int:
    r"""Square of the L2 sensitivity of the weighted sums of "factorized".

    Parameters
    ----------
    bins : int
        N, the number of bins.
    relation : Relation
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    int
        :math:`k^2` times :math:`S_N` for "add-remove", and for "swap" times the largest of
        :math:`S_N` and of :math:`S_N + S_{N-d} - 2 \sum_{i<N-d} c_i c_{i+d}` for the distances d
        from 1 to N - 1, with :math:`S_m = \sum_{i<m} c_i^2`. Exact, in integers.

    Notes
    -----
    *Proof.* A record of bin j adds the column :math:`v_j` to the vector of sums: zeros, and then
    :math:`c_0, \dots, c_{N-1-j}`. Added or removed (or, under "swap", left out as missing before
    or after), it changes the vector by :math:`v_j`, whose squared length :math:`S_{N-j}` is at
    most :math:`S_N`. Replaced, it changes the vector by :math:`v_i - v_j`, say with i < j. For
    :math:`d = j - i` and :math:`m = N - j` the squared length is

    .. math:: \sum_{l<d} c_l^2 + \sum_{l<m} (c_{l+d} - c_l)^2,

    which does not fall in m: of all pairs of a distance d, that with i = 0 is the worst, with
    m = N - d. Multiplied out it is the above. k records of one person change it by k such vectors,
    and lengths add up.

    Under "swap" this is 1.5 to 1.74 times that for "add-remove" (50 to 8,192 bins), for columns are
    alike; a record that is replaced changes twice as many counts of a tree.

    The sums are integers. With independent discrete Gaussian noise of scale :math:`\sigma` on each
    they are :math:`\Delta_2^2 / (2 \sigma^2)`-zCDP [CKS20, Theorem 14]. All else is
    post-processing. As in a tree, the number of records is used where it is public (the caller's
    proof).
    """
    k = check_max_contributions(max_contributions)
    return k * k * _worst_change(check_count("bins", bins, 2), relation.parts == 2)


@lru_cache(maxsize=16)  # public facts only
def _worst_change(bins: int, replaced: bool) -> int:
    factor = prefix_factor(bins)
    squares = np.cumsum(factor * factor)
    worst = int(squares[-1])
    if replaced:
        products = np.correlate(factor, factor, "full")[bins:]  # at distances 1, ..., N - 1
        worst = max(worst, int((squares[-1] + squares[-2::-1] - 2 * products).max()))
    return worst


def depths_of(method: str, options: dict[str, Any]) -> int | None:
    r"""Counts that one record is in: the height of the tree whose noise and guarantee they have.

    Of a tree, one of each level; of a histogram, one; of "adaptive", one of each depth. None for a
    height that is left out.

    Notes
    -----
    *Proof.* A run is always halved at the same point, which is public. So the runs that can ever
    be counted are the nodes below the root of one binary tree of height d. Say that every one of
    them has a noisy count, with independent noise: this is the release of `agg_tree`, and has its
    guarantee at this scale. Which run is halved next depends on noisy counts of runs that have
    been counted, and on public facts, alone. So the adaptive release is a function of that tree:
    it looks at some of its counts and not at the others. It is post-processing. Drawing the noise
    of a run when it is first looked at, instead of beforehand, gives the same law, since noise is
    independent of all else and no run is looked at twice.

    For pure `epsilon` the likelihoods say the same. A transcript y fixes which runs T(y) are
    counted, and its likelihood is :math:`\prod_{v \in T(y)} p(y_v - c_v)`. The ratio for neighbors
    is at most :math:`\exp(\sum_{v \in T(y)} |c_v - c'_v| / s)`. The runs of one depth are disjoint:
    a record is in at most d of them, whatever y, and the sum is at most
    `sensitivities` of height d over s. It is reached where all runs are halved that hold a
    record which is added, removed or replaced.

    As in a tree, the number of records is used where it is public (the caller's proof), else it
    is the sum of the counts of the first two halves, and costs nothing.
    """
    if method == "binary_tree":
        return height_of(options["bins"])
    if method == "histogram":
        check_count("bins", options["bins"], 2)
        return 1
    name = "height" if method == "agg_tree" else "depth"
    return None if options[name] is None else check_count(name, options[name])


def gaussian_squared(
    levels: int, bins: int | None, relation: Relation, max_contributions: int = 1
) -> int:
    r"""Square of the L2 sensitivity of what the Gaussian method of `cdf` asks for.

    Parameters
    ----------
    levels, bins
        Of `cdf`: m quantiles, unless `bins` is given.
    relation : Relation
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    int
        For quantiles m, in units of :math:`(b-a)^2`; for bins :math:`k^2` ("add-remove") or
        :math:`2k^2` ("swap").

    Notes
    -----
    *Quantiles.* A quantile lies in [a, b], so it changes by at most b - a, whatever the
    data sets are: by any number of records, in both relations. It does change that much where
    half of the records are at a and half at b, and with ties all m may: :math:`\sqrt{m} (b-a)`
    bounds the vector.

    *Bins.* A record is in one of them: 1 if it is added or removed; replaced, it leaves one bin
    and enters another, or is left out: :math:`\sqrt 2`. Numbers of records below B points have
    :math:`\sqrt B` in both relations, for one record that is below all of them; the sums of bins
    have less noise.
    """
    if bins is None:
        return _check_levels(levels)
    check_count("bins", bins, 2)
    return sensitivities(1, relation, max_contributions)[1]


def _check_levels(levels: Any) -> int:
    m = check_count("levels", levels)
    if m > MAX_LEVELS:
        raise ValueError(f"levels must be at most 2^20, got {m}")
    return m


def budget_of_level(
    levels: int, epsilon: Any, delta: float, max_contributions: int = 1
) -> tuple[float, float]:
    r"""Budget of each of m quantiles with Gaussian noise on smooth sensitivity, per record.

    Parameters
    ----------
    levels : int
        m.
    epsilon, delta : float
        Total budget, per person.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    epsilon_each, delta_each : float
        :math:`\epsilon / mk` and :math:`(\delta/m)\,(e^{\epsilon/mk} - 1)/(e^{\epsilon/m} - 1)`.

    Notes
    -----
    Basic composition gives a level :math:`(\epsilon/m, \delta/m)` per person. Along a chain of k
    neighbors each :math:`(e, d)`, :math:`P \le e^{e} P' + d` k times is
    :math:`P \le e^{ke} P' + d\,(1 + e^{e} + \dots + e^{(k-1)e})`.
    """
    k, m = check_max_contributions(max_contributions), _check_levels(levels)
    level = check_epsilon(epsilon) / m
    check_epsilon(level / k, "epsilon of a level")
    share = math.expm1(level / k) / math.expm1(level) if level < 700.0 else 0.0
    return level / k, check_delta(delta) / m * share


def smooth_gaussian_scale(epsilon: float, delta: float) -> tuple[float, float]:
    r"""Smoothness and scale of Gaussian noise on smooth sensitivity, for one release.

    Parameters
    ----------
    epsilon : float
        At most 4.
    delta : float
        In (0, 1).

    Returns
    -------
    beta : float
        The smoothness t of the sensitivity S: one and a half times
        :math:`\epsilon / (4 (1 + \ln(2/\delta)))`.
    log_alpha : float
        The noise is normal with standard deviation :math:`S/\alpha`: the largest alpha whose exact
        delta is known to suffice (`privacy.smooth_gaussian`), 3 to 9 times that of [NRS07].

    Notes
    -----
    Below an epsilon of 10^-3 or a delta of 10^-200 it is
    :math:`\beta = \epsilon / (4 (1 + \ln(2/\delta)))` and
    :math:`\alpha = \epsilon / (5 \sqrt{2 \ln(2/\delta)})` [NRS07]. With
    :math:`L = \ln(2/\delta)`, Z standard normal and :math:`\epsilon \le 4`:

    - From :math:`S(x)` to a larger :math:`S(x') \le e^\beta S(x)` the loss is at most
      :math:`\beta \le \epsilon/2`. To a smaller one it is at most
      :math:`z^2 (e^{2\beta} - 1)/2`, above :math:`\epsilon/2` only for
      :math:`z^2 > 2 (1 + L)/c` with :math:`c = (e^{2\beta} - 1)/(2\beta)`. As
      :math:`\beta \le 1/(1+L)`, :math:`c \le 1 + 1/L`, and the probability of that is at most
      :math:`e^{-L} = \delta/2`.
    - A shift by at most :math:`\alpha` has the loss :math:`\alpha z + \alpha^2/2`, above
      :math:`\epsilon/2` with probability at most :math:`e^{1 - 6.25 L}/2`, which is below
      :math:`e^{-\epsilon/2}\, \delta/2`.

    One after the other, :math:`(\epsilon/2, \delta/2)` and then the second, they are
    :math:`(\epsilon, \delta)`. Differs from [NRS07], which adds up two :math:`\delta/2`: the second
    counts :math:`e^{\epsilon/2}` times.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if epsilon > 4.0:
        raise ValueError(
            f"epsilon must be at most 4 for Gaussian noise on smooth sensitivity, got {epsilon}"
        )
    if delta == 0.0:
        raise ValueError("delta must be positive for Gaussian noise on smooth sensitivity, got 0.0")
    log_inverse = math.log(2.0) - math.log(delta)
    beta = check_step(epsilon / (4.0 * (1.0 + log_inverse)))
    log_alpha = math.log(epsilon) - math.log(5.0 * math.sqrt(2.0 * log_inverse))
    if epsilon < CERTIFIED_EPSILON or delta < CERTIFIED_DELTA:
        return beta, log_alpha
    wider = _certified_scale(1.5 * beta + _LOG_ERROR, epsilon, delta, math.exp(log_alpha))
    return (beta, log_alpha) if wider is None else (1.5 * beta, math.log(wider))


_certified_scale = lru_cache(maxsize=256)(largest_scale)
