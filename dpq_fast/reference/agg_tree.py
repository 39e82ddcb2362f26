"""AggTree [GJK21 Section 5.1], node by node, with least squares by matrices.

A node is (level, index): the root is (0, 0), the children of (l, i) are (l + 1, b i), ...,
(l + 1, b i + b - 1). Meant for trees of up to a thousand leaves.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.optimize import brentq, nnls

from dpq_fast import privacy
from dpq_fast._checks import check_flag, check_leaves, public_length, public_rows
from dpq_fast.privacy.intervals import POPULATION, Request, sampled_range
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of
from dpq_fast.reference._calls import default_rng
from dpq_fast.reference.bins import uniform_counts, uniform_edges
from dpq_fast.reference.intervals import Estimate
from dpq_fast.reference.lattice import Lattice
from dpq_fast.reference.noise import discrete_gaussian, discrete_laplace
from dpq_fast.reference.prior import Masses
from dpq_fast.reference.sample import check_form, kept_records, nearest_points

Node = tuple[int, int]


class Leaves:
    """Leaves over lattice points, or equal intervals without a lattice.

    Attributes
    ----------
    starts : list of int or of float
        Where the leaves begin and the last one ends: numbers of points, or edges.
    line : list of int or of float
        The same in masses of a prior.
    places : list of int
        The same in units of leaves: the last point has all leaves that hold nothing.
    ends : list of float
        Up to where the numbers of records below `starts` count.
    """

    def __init__(self, bounds: tuple[float, float], lattice: Lattice | None, most: int) -> None:
        self.lattice = lattice
        self.most = most
        self.bounds = bounds
        self.starts: Sequence[float]
        if lattice is None:
            self.starts = self.line = self.ends = uniform_edges(*bounds, most)
            self.places = list(range(most + 1))
        else:
            size = min(most, lattice.points)
            points = [-(-k * lattice.points // size) for k in range(size + 1)]
            if size < lattice.points and lattice.masses is not None:
                points = starts_by_mass(lattice.masses, lattice.points, size)
            self.starts = points
            self.line = [lattice.on_line(point) for point in points]
            self.places = [*range(size), most]
            self.ends = [lattice.value(point - 1) for point in points]

    def counts(self, records: np.ndarray) -> list[int]:
        """How many records each leaf has, those that hold no point too."""
        if self.lattice is None:
            return uniform_counts(records, *self.bounds, self.most)
        counts = [0] * self.most
        for point in nearest_points(records, self.lattice).tolist():
            counts[bisect_right(self.starts, point) - 1] += 1
        return counts

    def place(self, x: float, through: bool = False) -> float:
        """What lies below x, or with `through` not above it, in units of leaves."""
        at = min(max(x, self.line[0]), self.line[-1])
        if self.lattice is not None:
            at = self.lattice.on_line(self.lattice.below(x, through))
        leaf = min(bisect_right(self.line, at), len(self.line) - 1) - 1
        left, right = self.line[leaf], self.line[leaf + 1]
        return self.places[-1] if at == self.line[-1] else leaf + (at - left) / (right - left)


def starts_by_mass(masses: Masses, points: int, leaves: int) -> list[int]:
    """First points of leaves, each next to its share of the mass; no leaf is without a point."""
    starts = [0]
    for k in range(1, leaves):
        share = -(-k * masses.total // leaves)
        point = masses.point_of(share)
        if share - masses.below(point) > masses.below(point + 1) - share:
            point += 1
        starts.append(max(point, starts[-1] + 1))
    starts.append(points)
    return [min(start, points - leaves + k) for k, start in enumerate(starts)]


def exact_counts(leaves: Sequence[int], height: int, branching: int) -> dict[Node, int]:
    """How many records each node below the root has."""
    nodes: dict[Node, int] = {}
    for index, count in enumerate(leaves):
        for level in range(height, 0, -1):
            node = (level, index // branching ** (height - level))
            nodes[node] = nodes.get(node, 0) + int(count)
    return nodes


class AggTree:
    """What is read off the noisy counts of a tree.

    Parameters
    ----------
    nodes : dict
        Noisy count of each node below the root; the noise of all has the same variance.
    bounds, total, most, aggregate, lattice
        As for `dpq_fast.AggTree`.
    deviation : float
        Standard deviation of the noise of a node; of use with `most`.

    Attributes
    ----------
    counts : dict
        Estimated count of each node and the root.
    variances : dict
        Their variances in units of the noise's.
    leaf_covariance : ndarray, shape (leaves, leaves)
        That of the leaves' estimated counts, if aggregated.
    """

    def __init__(
        self,
        nodes: dict[Node, float],
        bounds: tuple[float, float],
        *,
        total: int | None = None,
        most: int | None = None,
        deviation: float = 0.0,
        aggregate: bool = True,
        lattice: Lattice | None = None,
    ) -> None:
        self.most = most if total is None else None
        self.deviation = deviation
        self.bounds = bounds
        self.lattice = lattice
        self.height = max(level for level, _ in nodes)
        self.branching = b = sum(level == 1 for level, _ in nodes)
        self.grid = Leaves(bounds, lattice, b**self.height)
        self.nodes = nodes
        self.aggregate = check_flag("aggregate", aggregate)
        if self.aggregate:
            self.counts, self.variances = self._least_squares(nodes, total)
        else:
            below = self.children((0, 0))
            root = sum(nodes[child] for child in below) if total is None else total
            self.counts = {(0, 0): float(root), **nodes}
            self.variances = {(0, 0): float(b if total is None else 0)} | dict.fromkeys(nodes, 1.0)

    def children(self, node: Node) -> list[Node]:
        """The nodes under a node."""
        level, index = node
        first = self.branching * index
        return [(level + 1, first + i) for i in range(self.branching)]

    def leaves(self, node: Node) -> range:
        """The leaves under a node."""
        level, index = node
        width = self.branching ** (self.height - level)
        return range(index * width, (index + 1) * width)

    def _least_squares(
        self, nodes: dict[Node, float], total: int | None
    ) -> tuple[dict[Node, float], dict[Node, float]]:
        """Generalized least squares: leaves that explain all noisy counts (and the total) best."""
        size = self.branching**self.height
        order = [(0, 0), *nodes]
        sums = np.zeros((len(order), size))  # nodes as sums of leaves
        for row, node in zip(sums, order, strict=True):
            row[list(self.leaves(node))] = 1.0
        observed = sums[1:]
        normal = observed.T @ observed
        right = observed.T @ np.array(list(nodes.values()), dtype=np.float64)
        if total is not None:  # a Lagrange multiplier for the total
            ones = np.ones((size, 1))
            normal = np.block([[normal, ones], [ones.T, np.zeros((1, 1))]])
            right = np.append(right, float(total))
        inverse = np.linalg.inv(normal)
        self.leaf_covariance = inverse[:size, :size]
        estimates = sums @ (inverse @ right)[:size]
        covariance = sums @ inverse[:size, :size] @ sums.T
        if total is not None:
            estimates[0] = total  # without rounding
        return (
            dict(zip(order, estimates.tolist(), strict=True)),
            dict(zip(order, np.diag(covariance).tolist(), strict=True)),
        )

    def count(self, lo: float, hi: float) -> float:
        """Estimated number of records in [lo, hi): of whole nodes, and of parts of leaves."""
        return self.between(self.grid.place(lo), self.grid.place(hi))

    def between(self, first: float, last: float, node: Node = (0, 0)) -> float:
        """Estimated number of records between two places."""
        leaves = self.leaves(node)
        covered = min(last, leaves.stop) - max(first, leaves.start)
        if covered <= 0.0:
            return 0.0
        if covered == len(leaves):
            return self.counts[node]
        if node[0] == self.height:
            return self.counts[node] * covered
        return sum(self.between(first, last, child) for child in self.children(node))

    def covering(self, last: int, node: Node = (0, 0)) -> list[Node]:
        """The fewest nodes that the leaves before `last` are made of."""
        leaves = self.leaves(node)
        if leaves.start >= last:
            return []
        if leaves.stop <= last:
            return [node]
        return [part for child in self.children(node) for part in self.covering(last, child)]

    def variance(self, last: int, q: float) -> float:
        """That of the leaves before `last` minus q times the total, in units of the noise's."""
        if self.aggregate:
            of_leaves = np.array([float(k < last) - q for k in range(len(self.leaf_covariance))])
            return float(of_leaves @ self.leaf_covariance @ of_leaves)
        weights = dict.fromkeys(self.nodes, 0.0)
        below = self.children((0, 0))
        if self.variances[0, 0] == 0.0:  # the total is known
            return float(len([node for node in self.covering(last) if node != (0, 0)]))
        for node in self.covering(last):
            for part in below if node == (0, 0) else [node]:
                weights[part] += 1.0
        for node in below:
            weights[node] -= q
        return math.fsum(weight**2 for weight in weights.values())

    def confint(self, q: float, margin: float, sampling: float) -> tuple[float, float]:
        """From the first leaf that may end behind the quantile to the last that may begin before.

        A leaf may if the count up to there may be so many records, with the noise on both.
        """
        low, high = sampled_range(max(self.counts[0, 0], 0.0), q, sampling)
        starts, places = self.grid.starts, self.grid.places
        counts = [self.between(0, place) for place in places]
        widths = [margin * math.sqrt(max(self.variance(place, q), 0.0)) for place in places]
        behind = [k for k in range(1, len(places)) if counts[k] + widths[k] >= low]
        before = [k for k in range(len(places) - 1) if counts[k] - widths[k] <= high]
        first = behind[0] - 1 if behind else 0
        last = before[-1] + 1 if before else len(places) - 1
        begin = starts[first] if self.lattice is None else self.lattice.value(int(starts[first]))
        return begin, self.grid.ends[last]

    def masses(self) -> list[float]:
        """Non-negative masses of the leaves that hold a point."""
        return self.fitted()[0] if self.aggregate else self.descended()

    def fitted(self) -> tuple[list[float], float]:
        """Those that are nearest to all noisy counts together, and their sum."""
        held = len(self.grid.starts) - 1
        inside = [
            ([float(leaf in leaves) for leaf in range(held)], count)
            for leaves, count in ((self.leaves(node), count) for node, count in self.nodes.items())
            if leaves.start < held
        ]
        sums, counts = zip(*inside, strict=True)
        return nearest_masses(sums, counts, self.likely_total())

    def likely_total(self) -> float:
        """The estimated total, or `most` if that is no more than two standard deviations away."""
        total = self.counts[0, 0]
        if self.most is None:
            return total
        apart = 2.0 * self.deviation * math.sqrt(self.variances[0, 0])
        return float(self.most) if self.most - total <= apart else total

    def descended(self) -> list[float]:
        """Those from the root down."""
        held = len(self.grid.starts) - 1
        total = self.likely_total()
        mass = {(0, 0): total if total > 0.0 else 1.0}
        for level in range(self.height):
            for index in range(self.branching**level):
                children = [
                    child
                    for child in self.children((level, index))
                    if self.leaves(child).start < held
                ]
                if not children:
                    continue
                estimates = [self.counts[child] for child in children]
                mass |= zip(children, project(estimates, mass[level, index]), strict=True)
        return [mass[self.height, i] for i in range(held)]

    def curve(self) -> list[tuple[float, float]]:
        """Where the distribution function is known, in units of `grid.line`, and its values."""
        return spread(self.grid.starts, self.masses(), self.lattice)

    def cdf(self, x: float, monotone: bool = True) -> float:
        """Share of the records that are at most x."""
        if not monotone:
            place = self.grid.place(x, through=True)
            return self.between(0, place) / max(self.counts[0, 0], 1.0)
        at, values = zip(*self.curve(), strict=True)
        place = x
        if self.lattice is not None:
            place = self.lattice.on_line(self.lattice.below(x, True))
        return float(np.interp(place, at, values))

    def quantile(self, q: Any) -> Any:
        """The smallest x with cdf(x) >= q; where it begins to rise, for q = 0."""
        levels = Levels(q)
        at, values = zip(*self.curve(), strict=True)
        answers = []
        for level in levels.values.tolist():
            least = max(level, 5e-324)
            i = max(bisect_left(values, min(least, values[-1])), 1)
            if self.lattice is None:
                share = (least - values[i - 1]) / (values[i] - values[i - 1])
                answers.append(at[i - 1] + min(share, 1.0) * (at[i] - at[i - 1]))
            else:
                answers.append(self._least(least))
        return levels.restore(np.array(answers))

    def _least(self, least: float) -> float:
        """The lowest lattice point at which the function has at least this value."""
        lattice = self.lattice
        assert lattice is not None
        at, values = zip(*self.curve(), strict=True)

        def reached(points: int) -> float:
            return float(np.interp(lattice.on_line(points), at, values))

        return lattice.value(bisect_left(range(lattice.points), least, key=reached) - 1)


def spread(
    starts: Sequence[float], masses: Sequence[float], lattice: Lattice | None
) -> list[tuple[float, float]]:
    """Knots of a distribution function, inside leaves by the monotone cubic of their neighbors.

    Leaves begin at some points, and knots are in masses of a prior. Without any mass, leaves have
    that of their widths.
    """
    if lattice is not None:
        numbers = [right - left for left, right in pairwise(starts)]
        starts = [lattice.on_line(int(point)) for point in starts]
    width = [right - left for left, right in pairwise(starts)]
    if not any(masses):
        masses = width
    total = math.fsum(masses)
    p = [math.fsum(masses[:k]) / total for k in range(len(masses) + 1)]

    def slope(k: int) -> float:
        """At edge k; beyond the bounds the density goes on."""
        left, right = max(k - 1, 0), min(k, len(masses) - 1)
        weights = 2 * width[right] + width[left], width[right] + 2 * width[left]
        densities = [(p[leaf + 1] - p[leaf]) / width[leaf] for leaf in (left, right)]
        if 0.0 in densities:
            return 0.0
        return sum(weights) / sum(w / d for w, d in zip(weights, densities, strict=True))

    knots = [(starts[0], 0.0)]
    for k, wide in enumerate(width):
        low, high = p[k], p[k + 1]
        parts = 16 if high - low >= 2.0**-10 and (lattice is None or numbers[k] > 1) else 1
        for j in range(1, parts):
            t = j / parts
            if lattice is not None:  # where a point begins
                point = lattice.from_line(int(starts[k]) + j * int(wide) // parts)
                t = (lattice.on_line(point) - starts[k]) / wide
            value = (
                low * (1 + 2 * t) * (1 - t) ** 2
                + high * t * t * (3 - 2 * t)
                + wide * slope(k) * t * (1 - t) ** 2
                - wide * slope(k + 1) * t * t * (1 - t)
            )
            knots.append((starts[k] + t * wide, min(max(value, knots[-1][1]), high)))
        knots.append((starts[k + 1], high))
    return knots


def nearest_masses(
    inside: Sequence[Sequence[float]], counts: Sequence[float], total: float
) -> tuple[list[float], float]:
    """Masses that are not negative, add up to a total and explain counts of some of them best.

    By one more count of all masses: the larger it is, the more they add up to. Where the total is
    not positive, it is 0, and the masses are those of sum 1.
    """
    total = max(float(total), 0.0)
    asked = total or 1.0
    design = np.vstack((np.array(inside), np.ones(len(inside[0]))))
    target = np.array(counts, dtype=np.float64)

    def masses_of(price: float) -> np.ndarray:
        found: np.ndarray = nnls(design, np.append(target, asked + price))[0]
        return found

    reach = 1.0 + len(target) * (abs(target).max() + asked)
    price = brentq(lambda price: masses_of(price).sum() - asked, -reach, reach, xtol=1e-13)
    return masses_of(price).tolist(), total


def project(estimates: list[float], total: float) -> list[float]:
    """The nearest numbers that are not negative and add up to `total` >= 0."""
    kept = sorted(estimates, reverse=True)
    while True:  # the same number is taken from all that stay positive
        less = (sum(kept) - total) / len(kept)
        if kept[-1] > less or len(kept) == 1:
            return [max(estimate - less, 0.0) for estimate in estimates]
        kept.pop()


def agg_tree(
    x: Any,
    q: Any,
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
    nan_policy: str = "omit",
    expected_n: int | None = None,
    max_contributions: int = 1,
    accountant: Any = None,
    rng: Any = None,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
) -> Any:
    """Release a tree of noisy counts, and read quantiles off it.

    The law is that of `dpq_fast.agg_tree`, whose docstring has every rule in full.

    Parameters
    ----------
    x, q
        As in `joint_exp`.
    epsilon, rho : float
        Budget of the tree; `rho` for noise "gaussian". Public.
    bounds : (float, float)
        Finite low < high, chosen without looking at `x`. Public.
    height, branching : int, optional
        Levels below the root, and children of a node. Public.
    noise : {"geometric", "laplace", "gaussian"}
        The noise of every count below the root.
    aggregate : bool
        Whether to combine the counts of all levels.
    neighbors : {"swap", "add-remove"}
        What the budget protects: one value replaced, or one added or deleted.
    resolution : float, optional
        Spacing of the lattice that records and answers are on; 0 for none.
    prior, counts, nan_policy
        As in `joint_exp`.
    expected_n : int, optional
        About how many records there are, where that is not public.
    max_contributions, accountant, rng
        As in `joint_exp`.
    confidence, covers, interval_share : optional
        For an interval, as in `dpq_fast.agg_tree`.

    Returns
    -------
    float, ndarray of float64 or Estimate
        In q's shape and the unit of `x`, inside `bounds`, non-decreasing in `q`.
    """
    levels = Levels(q)
    request = Request.of(confidence, covers, interval_share)
    if interval_share is not None:
        raise ValueError(
            "interval_share must be left out for a tree, which gives values and intervals of one "
            f"budget, got {interval_share}"
        )
    bounds, lattice = check_form(x, bounds, resolution, False, nan_policy, prior, counts)
    if expected_n is None:
        n_is_public = relation_of(neighbors).n_is_public
        expected_n = public_length(x, counts, nan_policy, n_is_public)
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
    height, branching = calibration.height, calibration.branching
    if lattice is None:
        check_leaves(bounds, branching**height)
    check_flag("aggregate", aggregate)
    generator = default_rng(rng)
    privacy.charge(accountant, calibration)
    records = kept_records(x, counts, nan_policy)
    leaves = Leaves(bounds, lattice, branching**height).counts(records)
    exact = exact_counts(leaves, height, branching)
    nodes = {
        node: count + _draw(noise, calibration.noise.scale, generator)
        for node, count in exact.items()
    }
    public = calibration.relation.n_is_public and nan_policy == "raise"
    tree = AggTree(
        nodes,
        bounds,
        total=records.size if public else None,
        most=public_rows(x, counts, calibration.relation.n_is_public),
        deviation=math.sqrt(calibration.noise.variance),
        aggregate=aggregate,
        lattice=lattice,
    )
    value = tree.quantile(q)
    if request is None:
        return value
    # of what may be missed, for a population, half is for the noise and half for sampling
    sampling = request.miss / 2.0 if request.covers == POPULATION else 0.0
    margin = margin_of(noise, float(calibration.noise.scale), request.miss - sampling)
    ends = [tree.confint(level, margin, sampling / 2.0) for level in levels.values.tolist()]
    low, high = (levels.restore(np.array(each)) for each in zip(*ends, strict=True))
    low, high = np.minimum(low, value), np.maximum(high, value)
    return Estimate(value, low, high, request.confidence, request.covers)


def margin_of(noise: str, scale: float, miss: float) -> float:
    """What a noisy count is farther off with probability `miss`, and so is a normal variable."""
    normal = NormalDist().inv_cdf(1.0 - miss / 2.0)
    if noise == "gaussian":
        return scale * (normal if scale >= 1.0 else math.sqrt(2.0 * math.log(2.0 / miss)))
    factor = 1.0 if noise == "laplace" else 2.0 / (1.0 + math.exp(-1.0 / scale))
    return scale * max(math.log(factor / miss), math.sqrt(2.0) * normal)


def _draw(noise: str, scale: Any, rng: np.random.Generator) -> float:
    if noise == "laplace":
        return rng.laplace(0.0, float(scale))
    discrete = discrete_laplace if noise == "geometric" else discrete_gaussian
    drawn: int = discrete(scale, rng=rng)
    return drawn
