"""A released tree of noisy counts, from which any number of answers can be read off.

Everything here but `AggTree.of` and `AggTree.tune` is computed from `AggTree.nodes` and from public
facts, so it costs no privacy and hides nothing in its bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, metrics, privacy
from dpq_fast._arguments import in_our_words, names_of, with_further
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.leaves import Curve, Leaves, inverses, on_line
from dpq_fast.data.persons import WEIGHTS, parts_of
from dpq_fast.data.reprs import placement, shown
from dpq_fast.data.units import DURATIONS, INSTANTS, Unit, in_unit, real_points
from dpq_fast.noise.counts import CountNoise
from dpq_fast.noise.rng import default_rng
from dpq_fast.privacy.intervals import KINDS, POPULATION, sampled_range
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of
from dpq_fast.released.packing import Packed, check_unit
from dpq_fast.released.tree_counts import (
    from_below,
    inner_stops,
    likely_totals,
    nearest_masses,
    projected,
    sums,
)

# Most records that `AggTree.tune` generates, and most shapes that it tries on them.
MAX_GENERATED, MOST_TRIED = 2**28, 4


@in_our_words
class AggTree(Packed, byte=1):
    r"""A released tree: noisy counts of equal bins at several scales, with known noise.

    Make one with `AggTree.of` or `PartialTree.release`. It is not private any more, and can be
    asked as often as you like.

    Parameters
    ----------
    nodes : list of ndarray
        Noisy counts of levels 1, ..., h below the root; level l has b^l nodes, from low to high.
    bounds : (float, float)
        Finite low < high.
    noise : CountNoise
        The noise that each node has, independently.
    total : int, optional
        Number of records where it is public; the root. Default: the sum of its children.
    most : int, optional
        A public number that there are no more records than, such as that of rows, of which some
        may be missing. The distribution function is that of so many records, unless the estimated
        total is two standard deviations less.
    aggregate : bool, default True
        Whether to combine the counts of all levels.
    lattice : Lattice, optional
        The points that mass sits on, numbered from 0 to P - 1: leaf k holds the points p with
        floor(p b^h / P) = k, or, where there are fewer points than leaves, the point k; with a
        prior, runs of points of equal masses. Default: leaves are equal intervals, and mass is
        spread evenly inside them.

    Attributes
    ----------
    nodes, bounds, noise, lattice
        As given.
    height, branching : int
        h and b.
    edges : ndarray of float64, shape (b^h + 1,)
        Edges of the leaves: leaf k is [edges[k], edges[k + 1]). On a lattice `edges[k]` is the
        lowest point of leaf k, and the last edge lies one step above the highest point; it has no
        edges of leaves that hold no point.
    unit : Unit or None
        What numbers stand for where records are times or durations: then `bounds`, `lattice` and
        `edges` are in steps of the resolution. Methods take times and give them.
    parts : int
        How many of what nodes count are one: 2^20 where records share the weights of persons, whose
        number `total`, `count` and `count_confint` give; else 1.
    total_known : bool
        Whether `total` is the public number of records, not an estimate.
    counts : list of ndarray of float64
        Unbiased estimates of the counts of levels 0, ..., h; they may be negative.
    variances : ndarray of float64, shape (h + 1,)
        Variance of an estimate of each level.

    Notes
    -----
    **Aggregation.** Each noisy count has the same variance, so the estimate of smallest variance
    among the linear unbiased ones is that of least squares over all counts that add up (and to
    `total` where it is public). It combines the estimate of a node from below (its own count and
    those of its descendants) with the one from above (its parent's estimate without its
    siblings), weighted by their variances [1]_; all nodes of a level have the same weights, and
    two passes over the levels do it [2]_. With :math:`v_l` the variance from below in units of
    the noise's, :math:`v_h = 1` and :math:`1/v_l = 1 + 1/(b\,v_{l+1})`.

    References
    ----------
    .. [1] J. Honaker, "Efficient Use of Differentially Private Binary Trees", TPDP 2015.
    .. [2] M. Hay, V. Rastogi, G. Miklau, D. Suciu, "Boosting the Accuracy of Differentially
       Private Histograms Through Consistency", VLDB 2010.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> tree = AggTree.of(ages, epsilon=1.0, bounds=(0, 120), resolution=1, height=2, branching=11)
    >>> tree.noise.scale  # twice the height, over epsilon
    Fraction(4, 1)
    >>> bool(7_500 < tree.count(18, 70) < 9_500)
    True
    >>> low, high = tree.quantile_confint(0.5)
    >>> bool(40 < low <= high < 60)
    True
    """

    def __init__(
        self,
        nodes: list[NDArray[Any]],
        bounds: tuple[float, float],
        noise: CountNoise,
        *,
        total: int | None = None,
        most: int | None = None,
        aggregate: bool = True,
        lattice: Lattice | None = None,
    ) -> None:
        if not isinstance(noise, CountNoise):
            raise TypeError(f"noise must be a CountNoise, got {type(noise).__name__}")
        if not (lattice is None or isinstance(lattice, Lattice)):
            raise TypeError(f"lattice must be a Lattice or None, got {type(lattice).__name__}")
        self.unit: Unit | None = None
        self.parts = self.most = 1
        self.nodes = nodes
        self.bounds = _checks.check_bounds(bounds)
        self.noise = noise
        self.lattice = lattice
        self.height = len(nodes)
        self.branching = b = _branching(nodes)
        if lattice is not None and (lattice.low, lattice.high) != self.bounds:
            raise ValueError(
                f"lattice must be one of bounds {self.bounds}, got {(lattice.low, lattice.high)}"
            )
        self._leaves = Leaves.of(self.bounds, lattice, nodes[-1].size)
        self.edges = self._leaves.edges
        self._aggregate = _checks.check_flag("aggregate", aggregate)
        self.total_known = total is not None
        if self._aggregate:
            below, self._below = from_below(nodes, b)
        else:
            below, self._below = [own.astype(np.float64) for own in nodes], [1.0] * self.height
        root = below[0].sum() if total is None else _checks.check_count("total", total, 0)
        self.counts = [np.array([root], dtype=np.float64)]
        # Variance of the root in units of the noise's, then of each level.
        self._root = 0.0 if self.total_known else b * self._below[0]
        units = [self._root]
        for own, variance in zip(below, self._below, strict=True):
            if self._aggregate:
                # The children share what the parent has more than they, equally.
                missing = (self.counts[-1] - sums(own, b)) / b
                own = own + np.repeat(missing, b)
                variance = units[-1] / b**2 + variance * (1.0 - 1.0 / b)
            self.counts.append(own)
            units.append(variance)
        self.variances = noise.variance * np.array(units)
        self._most = None if most is None else _checks.check_count("most", most, 0)

    def __repr__(self) -> str:
        shape = dict(height=self.height, branching=self.branching)
        noise = f"{type(self.noise).__name__}(scale={float(self.noise.scale):.6g})"
        public = placement(self.bounds, self.lattice, self.unit)
        return shown(self, **public, **shape, noise=noise, aggregate=self._aggregate)

    def _parts(self) -> dict[str, Any]:
        return dict(
            nodes=self.nodes,
            bounds=self.bounds,
            noise=self.noise,
            total=int(self._counted) if self.total_known else None,
            most=self._most,
            aggregate=self._aggregate,
            lattice=self.lattice,
            unit=self.unit,
            parts=self.parts,
            max_contributions=self.most,
        )

    @classmethod
    def _of_parts(cls, parts: dict[str, Any]) -> AggTree:
        later = {name: parts.pop(name) for name in ("unit", "parts", "max_contributions")}
        tree = cls(**parts)
        if not all(np.isfinite(level).all() for level in tree.nodes):
            raise ValueError("nodes must be finite")
        tree.unit = check_unit(later["unit"])
        tree.parts = _checks.check_count("parts", later["parts"])
        tree.most = _checks.check_max_contributions(later["max_contributions"])
        return tree

    @staticmethod
    @releases(INSTANTS, DURATIONS)
    def of(
        x: Any,
        *,
        epsilon: float | None = None,
        rho: float | None = None,
        bounds: tuple[float, float] | None = None,
        height: int | None = None,
        branching: int | None = None,
        noise: str = "geometric",
        aggregate: bool = True,
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
    ) -> Prepared[AggTree]:
        """Release the tree of a column.

        Parameters
        ----------
        x, epsilon, rho, bounds, height, branching, noise, aggregate, neighbors, resolution, \
prior, counts, privacy_unit, contributions, nan_policy, expected_n, max_contributions, accountant, \
rng, workers
            As in `agg_tree`.

        Returns
        -------
        AggTree
        """
        from dpq_fast.mechanisms.agg_tree import PartialTree, noised, public_lattice

        # Public arguments are refused before x is touched.
        place = dict[str, Any](bounds=bounds, resolution=resolution, prior=prior)
        _, lattice = public_lattice(x, **place, counts=counts, nan_policy=nan_policy)
        if expected_n is None:
            n_is_public = relation_of(neighbors).n_is_public
            expected_n = _checks.public_length(x, counts, nan_policy, n_is_public)
        calibration = privacy.agg_tree.calibrate(
            epsilon=epsilon,
            rho=rho,
            height=height,
            branching=branching,
            points=None if lattice is None else lattice.points,
            expected_n=expected_n,
            noise=noise,
            neighbors=neighbors,
            max_contributions=max_contributions,
        )
        _checks.check_flag("aggregate", aggregate)
        read = PartialTree.reader(
            x,
            **place,
            height=calibration.height,
            branching=calibration.branching,
            counts=counts,
            nan_policy=nan_policy,
            workers=workers,
        )
        relation = calibration.relation

        def draw(rng: np.random.Generator) -> AggTree:
            most = _checks.public_rows(x, counts, relation.n_is_public)
            tree = noised(read(), calibration.noise, relation, aggregate, rng, most)
            tree.parts, tree.most = parts_of(x, counts), max_contributions
            return tree

        return Prepared(calibration, draw)

    @staticmethod
    @in_our_words
    @with_further(lambda: names_of(AggTree.of))
    def tune(
        n: int,
        q: Any,
        *,
        epsilon: float | None = None,
        rho: float | None = None,
        bounds: tuple[float, float],
        sample: Callable[[np.random.Generator, int], NDArray[Any]] | None = None,
        heights: Iterable[int] = range(1, 7),
        branchings: Iterable[int] = range(2, 16),
        draws: int = 20,
        rng: Any = None,
        **options: Any,
    ) -> tuple[int, int]:
        """Choose height and branching on generated data; the private data are not looked at.

        By default the shape is chosen without: see `agg_tree`. This is for whoever knows more about
        the records than their number and bounds.

        Parameters
        ----------
        n : int
            Number of records to generate: a public guess of how many there are.
        q : float or array_like of float
            Levels in [0, 1].
        epsilon, rho, bounds
            As they will be given to `agg_tree`.
        sample : callable, optional
            ``sample(generator, n)`` gives n public records that resemble the private ones by what
            is known in public, not by a look at them. Default: N(0, 1), as in the paper.
        heights, branchings : iterable of int
            What to try; pairs with more than 2^16 leaves are left out.
        draws : int, default 20
            Samples that each pair is tried on, the same for all; of at most 2^28 records in all.
        rng : None, int, SeedSequence, BitGenerator or Generator, optional
            Source of the samples and the noise.
        **options
            Further arguments of `AggTree.of`.

        Returns
        -------
        height, branching : int
            The pair of the smallest mean rank error, among the four of the smallest expected
            error: by the formula for the default shape (`privacy.agg_tree.shape_of`), with the
            spread that the first sample has.

        Examples
        --------
        >>> options = dict(epsilon=1.0, bounds=(-100, 100), draws=2, rng=0)
        >>> height, branching = AggTree.tune(500, 0.5, **options)
        >>> branching**height <= 2**16
        True
        """
        from dpq_fast.mechanisms.agg_tree import public_lattice

        n = _checks.check_count("n", n)
        draws = _checks.check_count("draws", draws)
        if n * draws > MAX_GENERATED:
            raise ValueError(
                f"n times draws must be at most {MAX_GENERATED} records, got {n * draws}"
            )
        for name, given in (("heights", heights), ("branchings", branchings)):
            if not isinstance(given, Iterable):
                raise TypeError(f"{name} must be an iterable of integers, got {given!r}")
        generator = default_rng(rng)
        if sample is None:
            samples = [generator.standard_normal(n) for _ in range(draws)]
        else:
            samples = [sample(generator, n) for _ in range(draws)]
        shared = {"noise", "neighbors", "max_contributions"} & options.keys()
        one = privacy.agg_tree.calibrate(
            epsilon=epsilon,
            rho=rho,
            height=1,
            branching=2,
            **{name: options[name] for name in shared},
        )
        place = options.get("resolution"), options.get("prior")
        (low, high), lattice = public_lattice([], bounds, *place, None, "omit")
        first = np.asarray(samples[0], dtype=np.float64).clip(low, high)
        # half of a normal sample is within 0.674 standard deviations
        quartiles = np.quantile(first, (0.25, 0.75)) if first.size else np.array([low, high])
        extent = high - low
        if lattice is not None and lattice.masses is not None:  # in its masses
            quartiles = on_line(lattice, lattice.encode(quartiles))
            extent = lattice.masses.total
        spread = max(float(np.diff(quartiles)[0]) / 1.349 / extent, 1e-9)
        noise = math.sqrt(one.noise.variance) / n, rho is not None
        branchings = list(branchings)
        expected = {
            (height, branching): privacy.agg_tree.expected_error(
                height, branching, None, *noise, spread
            )
            for height in heights
            for branching in branchings
            if _checks.check_count("heights", height)
            * math.log2(_checks.check_count("branchings", branching, 2))
            <= 16.0
        }
        if not expected:
            raise ValueError("heights and branchings must have a pair of at most 2^16 leaves")

        def error(pair: tuple[int, int]) -> float:
            shape: dict[str, Any] = dict(height=pair[0], branching=pair[1], bounds=bounds)
            trees = (
                AggTree.of(x, epsilon=epsilon, rho=rho, rng=generator, **shape, **options)
                for x in samples
            )
            errors = [
                metrics.rank_error(x, q, tree.quantile(q))
                for x, tree in zip(samples, trees, strict=True)
            ]
            return float(np.mean(errors))

        return min(sorted(expected, key=lambda pair: expected[pair])[:MOST_TRIED], key=error)

    @property
    def total(self) -> float:
        """Number of records, or of persons: exact where it is public, else an estimate."""
        return self._counted / self.parts

    @property
    def _counted(self) -> float:
        """The same of what nodes count."""
        return float(self.counts[0][0])

    # Counts of intervals

    @in_our_words
    def count(self, lo: Any, hi: Any) -> Any:
        """Unbiased estimate of the number of records in [lo, hi).

        Parameters
        ----------
        lo, hi : float or array_like of float
            lo <= hi. On a lattice it is the points in [lo, hi) whose records are counted. Without
            one records are clamped to the bounds, and the last leaf holds the upper one.

        Returns
        -------
        float or ndarray of float64
            May be negative. Summed over the fewest nodes; of a leaf that is cut, the share of its
            points, or of its width.
        """
        first, last = self._places(lo, hi)
        return metrics._plain(self._count(first, last) / self.parts)

    @in_our_words
    def count_confint(self, lo: Any, hi: Any, level: float = 0.95) -> tuple[Any, Any]:
        """Confidence interval of the number of records in [lo, hi).

        Parameters
        ----------
        lo, hi : float or array_like of float
            As in `count`.
        level : float, default 0.95
            Confidence level of each interval, strictly between 0 and 1.

        Returns
        -------
        lower, upper : float or ndarray of float64
            Not negative; at most `total` where that is public.

        Notes
        -----
        The variance of the estimate is exact; its law is approximated, by the normal law or by
        that of a single draw of the noise, whichever is wider (`Noise.margin`). The interval
        holds whatever the records of a cut leaf are: one end is that of the whole leaves inside
        [lo, hi), the other that of all leaves that it cuts.
        """
        margin = self.noise.margin(_check_level(level))
        first, last = self._places(lo, hi)
        inner = np.ceil(first), np.maximum(np.floor(last), np.ceil(first))
        outer = np.floor(first), np.ceil(last)
        most = self.total if self.total_known else math.inf
        lower = (self._count(*inner) - margin * np.sqrt(self._units(*inner))) / self.parts
        upper = (self._count(*outer) + margin * np.sqrt(self._units(*outer))) / self.parts
        return metrics._plain(np.clip(lower, 0.0, most)), metrics._plain(np.clip(upper, 0.0, most))

    def _places(self, lo: Any, hi: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ends of intervals in units of leaves: whole numbers at their edges."""
        ends = (real_points(name, x, self.unit) for name, x in (("lo", lo), ("hi", hi)))
        places = (self._leaves.place(end) for end in ends)
        first, last = np.broadcast_arrays(*places)
        if (first > last).any():
            raise ValueError("lo must be at most hi")
        return first, last

    def _covers(
        self, first: NDArray[np.float64], last: NDArray[np.float64]
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]]:
        """Level by level, which nodes lie in intervals of leaves, and how much of those beside.

        Nodes start, ..., stop - 1 do, and left and right say how much of the nodes at floor(first)
        and floor(last) does.
        """
        for depth in range(self.height + 1):
            leaves = self.branching ** (self.height - depth)
            lo, hi = first / leaves, last / leaves
            start = np.ceil(lo).astype(np.int64)
            stop = np.maximum(np.floor(hi).astype(np.int64), start)
            same = np.floor(lo) == np.floor(hi)
            left = np.where(same, hi - lo, start - lo)
            right = np.where(same, 0.0, hi - np.floor(hi))
            yield start, stop, left, right

    def _count(self, first: NDArray[np.float64], last: NDArray[np.float64]) -> NDArray[np.float64]:
        b = self.branching
        found = np.zeros(first.shape)
        start = stop = np.zeros(first.shape, dtype=np.int64)
        for before, cover in zip(self._sums, self._covers(first, last), strict=True):
            begin, end, left, right = cover  # less what lies in nodes that are counted already
            found += before[end] - before[begin] - (before[b * stop] - before[b * start])
            start, stop = begin, end
        leaves = np.append(self.counts[-1], 0.0)  # right of the last one nothing is counted
        found += left * leaves[np.floor(first).astype(np.int64)]
        counted: NDArray[np.float64] = found + right * leaves[np.floor(last).astype(np.int64)]
        return counted

    @cached_property
    def _sums(self) -> list[NDArray[np.float64]]:
        """Of each level, sums of the estimates before each node."""
        return [np.concatenate(([0.0], np.cumsum(level))) for level in self.counts]

    def _units(self, first: NDArray[np.float64], last: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Variance of the estimated count of an interval, in units of the noise's.

        Aggregated: with w_v the share of node v that is covered and T_l the sum of w_v^2 over
        level l, it is :math:`f_0 w_{root}^2 + \sum_l v_l (T_l - b T_{l-1})`, with :math:`f_0` the
        root's variance. For siblings deviate from their mean independently of all other
        estimates, and the mean of their shares is that of their parent. Plain: the number of
        nodes that are summed, and the squared shares of cut leaves.
        """
        b = self.branching
        units = np.zeros(first.shape)
        if self._aggregate:
            units += self._root * ((last - first) / self.counts[-1].size) ** 2
        outer = units
        for depth, (start, stop, left, right) in enumerate(self._covers(first, last)):
            squares = (stop - start).astype(np.float64)
            if self._aggregate or depth == self.height:
                squares += left**2 + right**2
            if depth > 0:
                units += self._below[depth - 1] * (squares - b * outer)
            elif not (self._aggregate or self.total_known):
                # the root is the sum of its children, and these are summed
                squares = np.zeros(first.shape)
            outer = squares
        return np.maximum(units, 0.0)  # against rounding

    # The distribution

    @in_our_words
    def cdf(self, x: Any, monotone: bool = True) -> Any:
        """Share of the records that are at most x.

        Parameters
        ----------
        x : float or array_like of float
            Any numbers.
        monotone : bool, default True
            Whether to read it off the non-negative distribution that `quantile` inverts, which
            rises from 0 to 1. Else the unbiased estimate of the count, over `total` (or 1 if that
            is less): it may fall, and leave [0, 1].

        Returns
        -------
        float or ndarray of float64
            On a lattice it steps at the points, by the same at each point of a leaf; without one
            it is linear inside leaves.
        """
        values = real_points("x", x, self.unit)
        if not _checks.check_flag("monotone", monotone):
            place = self._leaves.place(values, "right")
            return metrics._plain(
                self._count(np.zeros(place.shape), place) / max(self._counted, 1.0)
            )
        return metrics._plain(self._curve.values(values, "right"))

    @in_our_words
    def quantile(self, q: Any) -> Any:
        """The smallest x with ``cdf(x) >= q``.

        Parameters
        ----------
        q : float or array_like of float
            Levels in [0, 1], any order and shape, at least one.

        Returns
        -------
        float or ndarray of float64
            In the shape of `q`, non-decreasing in `q`, inside the bounds, on the lattice. At 0,
            where the function begins to rise.
        """
        levels = Levels.of(q)
        leaves = self._leaves.starts
        found = inverses(leaves, self._masses[None], self.lattice, levels.values)[0]
        return in_unit(self.unit, levels.restore(found))

    @in_our_words
    def first_passage(self, q: Any) -> Any:
        """The first edge of a leaf that about a share q of the records is below: a clip.

        Parameters
        ----------
        q : float or array_like of float
            Levels in [0, 1], any order and shape, at least one.

        Returns
        -------
        float or ndarray of float64
            In the shape of `q`, non-decreasing in `q`. On a lattice, the highest point of a leaf.
            Where none is reached, the upper bound.

        Notes
        -----
        The end of the first leaf up to which the *unbiased* estimate of the number of records is q
        times the estimated total, or more. Of clips for a sum it matters how many records are above
        them, and by how much: the noise of numbers of records up to an edge does not grow where
        leaves are empty and estimates are near each other. Of medians `quantile` is closer.

        Post-processing: it is read off the noisy counts alone.
        """
        levels = Levels.of(q)
        last = self._leaves.places[1:]
        reached = np.maximum.accumulate(self._count(np.zeros(last.size), last))
        at = np.searchsorted(reached, levels.values * max(self._counted, 0.0))
        ends = self._leaves.ends[1:][np.minimum(at, last.size - 1)]
        return in_unit(self.unit, levels.restore(ends))

    @in_our_words
    def quantile_confint(
        self, q: Any, level: float = 0.95, covers: str = "sample"
    ) -> tuple[Any, Any]:
        """Confidence interval of the quantiles of the records, or of what they were drawn from.

        Parameters
        ----------
        q : float or array_like of float
            As in `quantile`.
        level : float, default 0.95
            Confidence level of each interval, strictly between 0 and 1.
        covers : {"sample", "population"}, default "sample"
            The quantiles of the records, or those of the law that they were drawn from
            independently.

        Returns
        -------
        lower, upper : float or ndarray of float64
            Edges of leaves; on a lattice, the lowest and the highest point of leaves. Every x
            between #{records < x} <= q n <= #{records <= x} lies in [lower, upper] with about that
            probability.

        Notes
        -----
        From the first leaf whose end may have at least q n records before it to the last one
        whose beginning may have at most so many, by intervals as in `count_confint`: one noisy
        edge far off can make it long. For a population q n is replaced by what a binomial variable
        stays between, or the records of persons (`privacy.intervals.sampled_range`), and half of
        what may be missed is for that.
        """
        levels = Levels.of(q)
        miss, sampling = 1.0 - _check_level(level), 0.0
        if _checks.check_choice("covers", covers, KINDS) == POPULATION:
            sampling = miss / 2.0  # as much as noise, of which either end has half
        margin = self.noise.margin(1.0 - (miss - sampling))
        last = self._leaves.places
        first = np.zeros(last.size)
        below, units = self._count(first, last), self._units(first, last)
        # Covariance of a count with the total: their common share of the root, or of the nodes
        # that the root is the sum of.
        most = self.counts[-1].size
        top = self.branching if not self._aggregate else most
        common = self._root * np.floor(last * top / most) / top
        ends = []
        n = max(self._counted, 0.0)
        for target in levels.values.tolist():
            low, high = sampled_range(n, target, sampling / 2.0, self.most)
            variance = units - 2.0 * target * common + target**2 * self._root
            width = margin * np.sqrt(np.maximum(variance, 0.0))
            begin = int(np.argmax(below[1:] + width[1:] >= low))
            end = last.size - 1 - int(np.argmax((below - width)[-2::-1] <= high))
            upper = self.edges if self.lattice is None else self._leaves.ends
            ends.append((self.edges[begin], upper[end]))
        lower, upper = np.array(ends).T
        return in_unit(self.unit, levels.restore(lower)), in_unit(self.unit, levels.restore(upper))

    @cached_property
    def _curve(self) -> Curve:
        """The distribution function of the masses of the leaves that hold a point."""
        return Curve.of_masses(self._leaves.starts, self._masses, self.lattice)

    @cached_property
    def _masses(self) -> NDArray[np.float64]:
        """Of the leaves that hold a point, not negative."""
        return self._fitted()[0] if self._aggregate else self._descended()

    def _fitted(self) -> tuple[NDArray[np.float64], float]:
        """Masses that are not negative, nearest to all noisy counts together, and their sum.

        That is the estimated total where it is not public: with a sum of their own, masses would
        keep what noise there is above 0 in empty regions, and lose what is below.
        """
        held = self._leaves.size
        stops = inner_stops(self.height, self.branching, held)
        inner = [*self.nodes[-2::-1], np.full(1, math.nan)]  # the root has no count
        counts = [own[: stop.size] for own, stop in zip(inner, stops, strict=True)]
        return nearest_masses(self.nodes[-1][:held], counts, stops, self._likely_total())

    def _likely_total(self) -> float:
        """The total, or what it is at most where noise can not tell the two apart."""
        if self.total_known or self._most is None:
            return self._counted
        return float(likely_totals(self._counted, self._most, float(self.variances[0])))

    def _descended(self) -> NDArray[np.float64]:
        """Masses from the root down: nearest to the siblings' counts, with their parent's sum.

        Nodes without a point have no mass.
        """
        # Some mass there must be to have quantiles.
        total = self._likely_total()
        masses = np.array([total if total > 0.0 else 1.0])
        for depth, level in enumerate(self.counts[1:], start=1):
            leaves = self.branching ** (self.height - depth)
            siblings = level.reshape(-1, self.branching)[: masses.size].copy()
            held = -(-self._leaves.size // leaves)  # nodes that hold a point
            siblings.ravel()[held:] = -math.inf
            masses = projected(siblings, masses).ravel()[:held]
        return masses


def _branching(nodes: Any) -> int:
    """Children of a node, from the noisy counts of all levels."""
    if not (isinstance(nodes, list) and nodes and all(map(_holds_counts, nodes))):
        raise TypeError("nodes must be a list of one-dimensional arrays of real numbers")
    branching: int = nodes[0].size
    if branching < 2 or any(
        level.size != branching**depth for depth, level in enumerate(nodes, start=1)
    ):
        raise ValueError("nodes must hold b, b^2, b^3, ... counts for some b from 2 on")
    return branching


def _holds_counts(level: Any) -> bool:
    return isinstance(level, np.ndarray) and level.ndim == 1 and level.dtype.kind in "iuf"


def _check_level(level: Any) -> float:
    number = _checks.check_nonnegative("level", level)
    if 0.0 < number < 1.0:
        return number
    raise ValueError(f"level must lie strictly between 0 and 1, got {number}")
