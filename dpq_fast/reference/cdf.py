"""Distribution functions, node by node and query by query; smoothing by its min-max formula.

Meant for a few dozen bins and records.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast._checks import check_leaves, public_length
from dpq_fast.privacy.cdf import Calibration
from dpq_fast.privacy.relations import relation_of
from dpq_fast.reference._calls import default_rng
from dpq_fast.reference.agg_tree import AggTree, Leaves, exact_counts, spread
from dpq_fast.reference.csmooth import log_smooth_sensitivity
from dpq_fast.reference.lattice import Lattice
from dpq_fast.reference.noise import discrete_gaussian, discrete_laplace
from dpq_fast.reference.sample import check_form, decoded, kept_records, placed


class CDF:
    """Through the points (x, p); `total` records, if they were counted.

    Linear between them; on a lattice, of that its values at the lattice points, and constant
    between these.
    """

    def __init__(
        self,
        x: Sequence[float],
        p: Sequence[float],
        total: float | None = None,
        lattice: Lattice | None = None,
    ) -> None:
        self.x = list(x)
        self.p = list(p)
        self.total = total
        self.lattice = lattice

    def cdf(self, x: float) -> float:
        """Share of the records that are at most x."""
        if self.lattice is not None:
            x = self.lattice.value(self.lattice.below(x, True) - 1)
        return self.linear(x)

    def place(self, x: float) -> float:
        """A number, or with a prior the mass up to it: what the function is linear in."""
        if self.lattice is None or self.lattice.masses is None:
            return x
        return self.lattice.on_line(self.lattice.below(x, True))

    def linear(self, x: float) -> float:
        """What is linear between the points."""
        if x < self.x[0]:
            return 0.0
        i = max(i for i, point in enumerate(self.x) if point <= x)
        if i + 1 == len(self.x):
            return 1.0
        left, right = self.place(self.x[i]), self.place(self.x[i + 1])
        share = (self.place(x) - left) / (right - left)
        return self.p[i] + share * (self.p[i + 1] - self.p[i])

    def quantile(self, q: float) -> float:
        """The smallest x with cdf(x) >= q; where it begins to rise, for q = 0."""
        lattice = self.lattice
        if lattice is not None:
            points = range(lattice.points)
            least = max(q, 5e-324)
            point = bisect_left(points, least, key=lambda k: self.linear(lattice.value(k)))
            return lattice.value(point)
        i = min(i for i, p in enumerate(self.p) if p >= q and p > 0.0)
        share = max(q - self.p[i - 1], 0.0) / (self.p[i] - self.p[i - 1])
        return self.x[i - 1] + share * (self.x[i] - self.x[i - 1])


def smoothed(v: Sequence[float]) -> list[float]:
    """The nearest non-decreasing numbers: the poster's min over j >= k, max over i <= j."""
    n = len(v)

    def mean(i: int, j: int) -> float:
        return math.fsum(v[i : j + 1]) / (j + 1 - i)

    return [min(max(mean(i, j) for i in range(j + 1)) for j in range(k, n)) for k in range(n)]


def of_counts(
    starts: Sequence[float], below: Sequence[float], public: bool, lattice: Lattice | None
) -> CDF:
    """From noisy numbers of records below leaves that begin at these points, or at these edges.

    The last number is kept where it is public.
    """
    inner = below[1:-1] if public else below[1:]
    rising = [0.0, *smoothed(inner), *([below[-1]] if public else [])]
    total = max(rising[-1], 0.0)
    numbers: Sequence[float] = [min(max(number, 0.0), total) for number in rising]
    if total == 0.0:
        numbers = starts if lattice is None else [lattice.on_line(int(at)) for at in starts]
    masses = [right - left for left, right in pairwise(numbers)]
    at, p = zip(*spread(starts, masses, lattice), strict=True)
    x: Sequence[float] = at
    if lattice is not None:
        x = [lattice.value(lattice.from_line(int(line) - 1)) for line in at]
    return CDF(x, p, total, lattice)


def of_tree(tree: AggTree, public: bool) -> CDF:
    """From the estimated numbers of records below all edges."""
    below = [tree.between(0, place) for place in tree.grid.places]
    return of_counts(tree.grid.starts, below, public, tree.lattice)


def halved(
    exact: Sequence[int], draws: Sequence[int]
) -> tuple[list[tuple[int, int]], dict[tuple[int, int], int]]:
    """The runs of bins that are not halved, from low to high, and the noisy counts of all halves.

    exact[i] records are below edge i; two draws for each split, lower half first.
    """
    runs = [(0, len(exact) - 1)]
    noisy_counts: dict[tuple[int, int], int] = {runs[0]: 0}
    rest = list(draws)
    while rest:
        start, stop = max(
            (run for run in runs if run[1] - run[0] > 1),
            key=lambda run: (noisy_counts[run], run[1] - run[0], -run[0]),
        )
        middle = (start + stop) // 2
        runs.remove((start, stop))
        for low, high in ((start, middle), (middle, stop)):
            runs.append((low, high))
            noisy_counts[low, high] = exact[high] - exact[low] + rest.pop(0)
    del noisy_counts[0, len(exact) - 1]  # the whole is not counted
    return sorted(runs), noisy_counts


def nearest(
    runs: Sequence[tuple[int, int]],
    noisy_counts: dict[tuple[int, int], int],
    total: int | None,
) -> list[float]:
    """Counts of the runs whose sums are nearest to the noisy counts, and add up to the total."""
    inside = np.array(
        [[low <= start and stop <= high for start, stop in runs] for low, high in noisy_counts],
        dtype=np.float64,
    )
    target = np.array(list(noisy_counts.values()), dtype=np.float64)
    found: list[float]
    if total is None:
        found = np.linalg.lstsq(inside, target)[0].tolist()
        return found
    # the last one is what the others leave of the total
    others, last = inside[:, :-1] - inside[:, -1:], inside[:, -1]
    found = np.linalg.lstsq(others, target - total * last)[0].tolist()
    return [*found, total - math.fsum(found)]


def shape_of(method: str, options: dict[str, Any], lattice: Lattice | None) -> tuple[int, int]:
    """Height and branching of the tree that is counted; bins without a tree are one of height 1."""
    if method == "agg_tree":
        return options["height"], options["branching"]
    bins: int = options["bins"]
    if method == "binary_tree":
        return privacy.cdf.height_of(bins), 2
    if method == "adaptive" and lattice is not None:
        bins = min(bins, lattice.points)
    return 1, bins


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
    nan_policy: str = "omit",
    expected_n: int | None = None,
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    **method_options: Any,
) -> CDF:
    """Release a distribution function.

    The law is that of `dpq_fast.cdf`, whose docstring has every rule in full.

    Parameters
    ----------
    x : array_like of float or int, shape (N,)
        Private values in any order, in the unit of `bounds`.
    epsilon, delta, rho : float
        Budget of the call. Public.
    bounds : (float, float)
        Finite low < high, chosen without looking at `x`. Public.
    method : str
        How; `method_options` are its own. Public.
    neighbors : {"swap", "add-remove"}
        What the budget protects: one value replaced, or one added or deleted.
    resolution : float, optional
        Spacing of the lattice that quantiles are rounded to; 0 for none.
    prior, counts, nan_policy
        As in `joint_exp`.
    expected_n : int, optional
        About how many records there are, where that is not public.
    max_contributions, accountant, rng
        As in `joint_exp`.
    **method_options
        As in `dpq_fast.cdf`.

    Returns
    -------
    CDF
    """
    bounds, lattice = check_form(x, bounds, resolution, False, nan_policy, prior, counts)
    if expected_n is None:
        n_is_public = relation_of(neighbors).n_is_public
        expected_n = public_length(x, counts, nan_policy, n_is_public)
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
    method, options = calibration.method, calibration.options
    by_level = "levels" in options and options.get("bins") is None
    if by_level:
        _, lattice = Lattice.between(bounds, resolution, None, prior)
    else:
        height, branching = shape_of(method, options, lattice)
        if lattice is None:
            check_leaves(bounds, branching**height)
    generator = default_rng(rng)
    privacy.charge(accountant, calibration)
    records = kept_records(x, counts, nan_policy)
    if by_level:
        return of_levels(records, bounds, lattice, calibration, generator)

    leaves = Leaves(bounds, lattice, branching**height)
    exact = leaves.counts(records)
    public = calibration.relation.n_is_public and nan_policy == "raise"

    def draw() -> int:
        if calibration.sigma is not None:
            return round(calibration.sigma * generator.standard_normal())
        assert calibration.noise is not None  # a count has one of the two
        discrete = discrete_laplace if rho is None else discrete_gaussian
        drawn: int = discrete(calibration.noise.scale, rng=generator)
        return drawn

    if method == "factorized":
        below = [0.0, *from_sums(exact, [draw() for _ in exact])]
        if public:
            below[-1] = float(records.size)
        return of_counts(leaves.starts, below, public, lattice)
    if method == "adaptive":
        draws = [draw() for _ in range(2 * options["steps"])]
        runs, noisy_counts = halved([0, *np.cumsum(exact).tolist()], draws)
        total = records.size if public else None
        below = [0.0, *np.cumsum(nearest(runs, noisy_counts, total)).tolist()]
        starts = [leaves.starts[i] for i in (0, *(stop for _, stop in runs))]
        return of_counts(starts, below, public, lattice)
    nodes = exact_counts(exact, height, branching)
    tree = AggTree(
        {node: count + draw() for node, count in nodes.items()},
        bounds,
        total=records.size if public else None,
        aggregate=options.get("aggregate", True),
        lattice=lattice,
    )
    return of_tree(tree, public)


def from_sums(counts: Sequence[int], draws: Sequence[int]) -> list[float]:
    """Noisy numbers of records up to the ends of bins: noisy weighted sums, solved for counts."""
    factor = privacy.cdf.prefix_factor(len(counts)).tolist()
    sums = [
        sum(factor[i - j] * counts[j] for j in range(i + 1)) + draw for i, draw in enumerate(draws)
    ]
    estimates: list[float] = []
    for i, noisy_sum in enumerate(sums):
        known = math.fsum(factor[i - j] * estimates[j] for j in range(i))
        estimates.append((noisy_sum - known) / factor[0])
    found: list[float] = np.cumsum(estimates).tolist()
    return found


def of_levels(
    x: NDArray[np.float64],
    bounds: tuple[float, float],
    lattice: Lattice | None,
    calibration: Calibration,
    rng: np.random.Generator,
) -> CDF:
    """From evenly spaced quantiles with normal noise, of their smooth or global sensitivity."""
    m = calibration.options["levels"]
    levels = [j / (m + 1) for j in range(1, m + 1)]
    records = np.sort(placed(x, bounds, lattice, rng).records).tolist()
    first, last = bounds if lattice is None else (0, lattice.fine_points - 1)
    outputs = []
    for level in levels:
        rank = privacy.csmooth.smooth_rank(level, len(records))
        center = records[rank - 1] if records else last
        if calibration.sigma is not None:
            size = math.log(last - first) + math.log(calibration.sigma)
        else:
            assert calibration.smooth is not None  # a quantile has one of the two
            beta, log_alpha = calibration.smooth
            size = log_smooth_sensitivity(records, rank, beta, first, last) - log_alpha
        noise = rng.standard_normal() * math.exp(min(size, 700.0))
        outputs.append(min(max(center + noise, first), last))
    outputs.sort()
    low, high = bounds
    if lattice is not None:
        points = np.array([round(output) for output in outputs], dtype=np.int64)
        outputs = decoded(points, lattice).tolist()
        low, high = lattice.value(-1), lattice.value(lattice.points - 1)
    return CDF([low, *outputs, high], [0.0, *levels, 1.0], None, lattice)
