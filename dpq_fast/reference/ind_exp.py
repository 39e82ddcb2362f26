"""IndExp: one private selection per level [GJK21, 5.1], each on its own, then sorted.

The utility is the depth of the target at an output, and the selection the exponential mechanism or
permute-and-flip: see `privacy.ind_exp`, for [MS20] and [DKS+21], too. [GJK21] is Gillenwater,
Joseph, Kulesza, "Differentially Private Quantiles", PMLR 139.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast._checks import check_flag
from dpq_fast.privacy.ind_exp import FLIP
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels
from dpq_fast.reference._calls import Law, with_options
from dpq_fast.reference.intervals import released, undithered
from dpq_fast.reference.prior import Masses
from dpq_fast.reference.race import exponential, race
from dpq_fast.reference.sample import Intervals, decoded, reader

# Each panel of the integral of `FlipLevel` has so many nodes, and spans at most so much of s, and
# of the logarithm of the integrand: like exp(-8 x) on [0, 1], which they integrate to the last bit.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
PANEL, FALL = 1.0, 8.0
# What is left out behind the last panel is at most exp(-40) of the integral.
TAIL = 40.0


class Cell(NamedTuple):
    """Outputs of one utility that lie next to each other.

    Attributes
    ----------
    left, right : int or float
        The cell is (left, right]; the lowest value belongs to the first cell.
    below, upto : int
        Records below an output of the cell, and records that are not above it.
    """

    left: int | float
    right: int | float
    below: int
    upto: int

    @property
    def width(self) -> int | float:
        """How many points the cell has, or its length without a lattice."""
        return self.right - self.left


def cells(data: Intervals) -> list[Cell]:
    """Points that have records, each by itself, and the runs of points between, from low to high.

    Without a lattice, the intervals.
    """
    if data.lattice is None:
        columns = (data.left.tolist(), data.right.tolist(), data.rank.tolist())
        return [Cell(left, right, r, r) for left, right, r in zip(*columns, strict=True)]
    points, numbers = np.unique(data.records, return_counts=True)
    found, below = [], 0
    edges = [-1, *points.tolist(), data.lattice.fine_points]
    for (left, point), number in zip(pairwise(edges), [*numbers.tolist(), 0], strict=True):
        if point - left > 1:
            found.append(Cell(left, point - 1, below, below))
        if number:
            found.append(Cell(point - 1, point, below, below + number))
        below += number
    return found


def cut(of: list[Cell], masses: Masses) -> list[Cell]:
    """Parts of cells in which all points have one mass."""
    return [
        Cell(left, right, cell.below, cell.upto)
        for cell in of
        for left, right in pairwise(
            [
                cell.left,
                *(knot - 1 for knot in masses.knots if cell.left < knot - 1 < cell.right),
                cell.right,
            ]
        )
    ]


def losses(of: list[Cell], target: Fraction) -> NDArray[np.float64]:
    """max u - u for each cell, exact until it is rounded once."""
    top, denominator = target.as_integer_ratio()
    u = [min(top - c.below * denominator, c.upto * denominator - top) for c in of]
    best = max(u)
    return np.array([(best - mine) / denominator for mine in u])  # rounded as one division


class ExponentialLevel:
    """One level's exponential mechanism: P(o) is proportional to exp(c u(o)).

    Parameters
    ----------
    of : list of Cell
    loss : ndarray of float64, one for each cell
    rate : float
        c.
    log_mass : float or ndarray of float64
        By a prior, of a point of each cell: what is added to c u.
    """

    def __init__(
        self, of: list[Cell], loss: NDArray[np.float64], rate: float, log_mass: Any = 0.0
    ) -> None:
        self.log_p = log_mass - rate * loss
        self.log_weight = self.log_p + np.log([cell.width for cell in of])
        self.log_normalizer = float(np.logaddexp.reduce(self.log_weight))

    def log_prob(self, t: int) -> float:
        """Log-probability of one point of cell t; its log density without a lattice."""
        return float(self.log_p[t]) - self.log_normalizer

    def draw(self, rng: np.random.Generator) -> int:
        """The cell of a draw."""
        return race(self.log_weight, rng)


class FlipLevel:
    """One level's permute-and-flip; the parameters are those of `ExponentialLevel`."""

    def __init__(
        self, of: list[Cell], loss: NDArray[np.float64], rate: float, log_mass: Any = 0.0
    ) -> None:
        self.log_p = log_mass - rate * loss
        self.log_p -= self.log_p.max()
        self.p, self.rejects = np.exp(self.log_p), -np.expm1(self.log_p)  # p, 1 - p
        self.width = np.array([cell.width for cell in of], dtype=np.float64)
        self.known: dict[int, float] = {}

    def log_prob(self, t: int) -> float:
        """Log-probability of one point of cell t."""
        if t not in self.known:
            self.known[t] = float(self.log_p[t]) + self._log_integral(t)
        return self.known[t]

    def _log_integral(self, t: int) -> float:
        r"""ln of the integral over v from 0 to 1 of the product of 1 - v p_j over j != o.

        With v = 1 - exp(-s) the integrand is exp(-g(s)), and
        :math:`g' = 1 + \sum_j p_j e^{-s} / (1 - v p_j)`, a sum over all outputs but o, is above 1
        and falls, by at most a factor of e from s to s + 1. So exp(-g) is at least exp(-g'(0) s),
        and behind s less than exp(-g(s)) is left.
        """
        others = self.width.copy()
        others[t] -= 1.0

        def g(s: NDArray[np.float64]) -> NDArray[np.float64]:
            s = s[:, np.newaxis]
            small = np.expm1(-s) * self.p  # -v p; where it is not small, 1 - v p is a sum
            large = self.rejects + self.p * np.exp(-s)
            rejected = np.where(small > -0.5, np.log1p(np.maximum(small, -0.5)), np.log(large))
            total: NDArray[np.float64] = s[:, 0] - rejected @ others
            return total

        def slope(s: float) -> float:
            accepts = self.p * math.exp(-s)
            return float(1.0 + others @ (accepts / (self.rejects + accepts)))

        # ln of the integral is at least -ln g'(0)
        enough = math.log(slope(0.0)) + TAIL
        start, terms = 0.0, []
        while g(np.array([start]))[0] < enough:
            half = min(PANEL, FALL / slope(start)) / 2.0
            terms.append(math.log(half) + np.log(WEIGHTS) - g(start + half * (1.0 + NODES)))
            start += 2.0 * half
        return float(np.logaddexp.reduce(np.concatenate(terms)))

    def draw(self, rng: np.random.Generator) -> int:
        """The cell of a draw: where c u(o) + E_o is largest, [DKS+21]."""
        noisy = [
            log_p + max_of_exponentials(width, rng)
            for log_p, width in zip(self.log_p.tolist(), self.width.tolist(), strict=True)
        ]
        return int(np.argmax(noisy))


def max_of_exponentials(w: float, rng: np.random.Generator) -> float:
    """The largest of w standard exponentials, -ln(1 - V^(1/w)) for a uniform V."""
    x = exponential(rng) / w  # -ln V / w, with all its digits where V is close to 1
    return -math.log(-math.expm1(-x)) if x < math.log(2.0) else -math.log1p(-math.exp(-x))


class IndExpLaw(Law):
    """The exact law of the released, sorted tuple on one sample.

    Parameters
    ----------
    data : Intervals
        The sample, without dither.
    levels : Levels
    rates : array_like of float, shape (m,)
        epsilon_j / (2 sensitivity_j).
    selection : {"permute-and-flip", "exponential"}
        Without a lattice both are the exponential mechanism.
    masses : Masses, optional
        Of the points of a lattice, by a prior: ln of them adds to c u.

    Attributes
    ----------
    cells : list of Cell
    singles : list of ExponentialLevel or FlipLevel, length m
        The laws of the levels.
    """

    # Differs from [GJK21] 5.1, score(X, I_j) = exp(-ε |j - qn| / 2) |I_j|: the utility, which is
    # that without ties, and Δ, which is lower under add-remove; both as in `privacy.ind_exp`.

    def __init__(
        self,
        data: Intervals,
        levels: Levels,
        rates: Any,
        selection: str,
        masses: Masses | None = None,
    ) -> None:
        self.data = data
        self.levels = levels
        self.cells = cells(data)
        log_mass: Any = 0.0
        if masses is not None:
            self.cells = cut(self.cells, masses)
            log_mass = np.log([masses.of(int(cell.right)) for cell in self.cells])
        flips = selection == FLIP and data.lattice is not None
        single = FlipLevel if flips else ExponentialLevel
        rates = np.broadcast_to(np.asarray(rates, dtype=np.float64), (levels.m,)).tolist()
        self.singles = [
            single(self.cells, losses(self.cells, Fraction(q) * data.n), rate, log_mass)
            for q, rate in zip(levels.values.tolist(), rates, strict=True)
        ]

    def _cell(self, value: float) -> int | None:
        """Which cell an output is in; None if it can not be one."""
        lattice, (low, high) = self.data.lattice, self.data.bounds
        place: float | None = value if low <= value <= high else None
        if lattice is not None:
            place = lattice.locate(value)
        if place is None:
            return None
        return max(sum(cell.left < place for cell in self.cells) - 1, 0)

    def log_prob(self, o: Any) -> float:
        """Log density (continuous) or log-probability (lattice) of one output of q's shape.

        -inf for outputs that can not occur: outside the bounds, off the lattice, or decreasing.
        """
        outputs = self.levels.distinct(o)
        if outputs is None or not (outputs[1:] >= outputs[:-1]).all():
            return -math.inf
        places = [t for t in map(self._cell, outputs.tolist()) if t is not None]
        m = self.levels.m
        if len(places) < m:
            return -math.inf
        single = [[level.log_prob(t) for level in self.singles] for t in places]
        # Which level drew which of the sorted outputs.
        log_total = np.logaddexp.reduce(
            [sum(single[i][j] for i, j in enumerate(order)) for order in permutations(range(m))]
        )
        if self.data.lattice is not None:
            # Permutations among equal outputs are one and the same event. (In a density they are
            # not: where two values meet, the density of the sorted pair is the limit of both.)
            _, repeats = np.unique(outputs, return_counts=True)
            log_total -= sum(math.log(math.factorial(k)) for k in repeats.tolist())
        return float(log_total)

    def _draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """One ascending output, shape (m,)."""
        return np.sort([self._place(self.cells[level.draw(rng)], rng) for level in self.singles])

    def _place(self, cell: Cell, rng: np.random.Generator) -> float:
        """An output of a cell, each as likely as any other."""
        if self.data.lattice is None:
            value: float = cell.left + cell.width * rng.random()
            return min(value, cell.right)  # against rounding up
        point = cell.left + 1 + int(rng.integers(0, int(cell.width)))
        return float(decoded(np.array([point], dtype=np.int64), self.data.lattice)[0])


@with_options(reader)
def ind_exp_law(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    selection: str | None = None,
    **column: Any,
) -> IndExpLaw:
    """The exact output law of `ind_exp` on this sample. Not a release: for audits and tests.

    Parameters
    ----------
    x, q, epsilon, delta, rho, bounds, neighbors, resolution, dither, prior, counts, \
assume_sorted, nan_policy, max_contributions, selection
        As in `ind_exp`.

    Returns
    -------
    IndExpLaw
    """
    levels = Levels(q)
    calibration = privacy.ind_exp.calibrate(
        levels,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
        selection=selection,
    )
    read = even_reader(x, column)
    data, masses = read()
    return IndExpLaw(data, levels, calibration.rates, calibration.selection, masses)


@with_options(reader)
def ind_exp(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    selection: str | None = None,
    accountant: Any = None,
    rng: Any = None,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    expected_n: int | None = None,
    **column: Any,
) -> Any:
    """Release m quantiles, each selected by its own mechanism, and sort them.

    The law is that of `dpq_fast.ind_exp`, whose docstring has every rule in full.

    Parameters
    ----------
    x, q
        As in `joint_exp`.
    epsilon, delta : float
        Budget for the whole tuple. Public.
    rho : float, optional
        Zero-concentrated budget instead of `epsilon`.
    bounds, neighbors, resolution
        As in `joint_exp`.
    dither : bool, optional
        False or left out: ties need none here.
    prior, counts, assume_sorted, nan_policy, max_contributions
        As in `joint_exp`.
    selection : {"permute-and-flip", "exponential"}, optional
        How an output is drawn from its utilities; by default the former for a pure `epsilon`, and
        the latter with `delta` or `rho`.
    accountant, rng
        As in `joint_exp`.
    confidence, covers, interval_share, expected_n : optional
        For an interval, as in `dpq_fast.quantile`.

    Returns
    -------
    float, ndarray of float64 or Estimate
        In q's shape and the unit of `x`, inside `bounds`, non-decreasing in `q`.
    """
    levels = Levels(q)
    person = dict[str, Any](neighbors=neighbors, max_contributions=max_contributions)
    read = even_reader(x, column)

    def value_of(**budget: Any) -> Any:
        calibration = privacy.ind_exp.calibrate(levels, selection=selection, **budget, **person)

        def law_of(_: Any) -> IndExpLaw:
            data, masses = read()
            return IndExpLaw(data, levels, calibration.rates, calibration.selection, masses)

        return calibration, law_of

    return released(
        value_of,
        levels,
        Request.of(confidence, covers, interval_share),
        lambda: undithered(x, **column),
        x=x,
        counts=column.get("counts"),
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        expected_n=expected_n,
        accountant=accountant,
        rng=rng,
        **person,
    )


def even_reader(x: Any, column: dict[str, Any]) -> Callable[[], tuple[Intervals, Masses | None]]:
    """What reads a sample as it is without a prior, and the prior's masses; as `reader`."""
    read = reader(x, **(column | {"dither": no_dither(column.get("dither"))}))

    def read_even() -> tuple[Intervals, Masses | None]:
        placed = read(None)  # nothing is drawn
        masses = None if placed.lattice is None else placed.lattice.masses
        return placed.even().intervals(), masses

    return read_even


def no_dither(dither: bool | None, method: str = "ind_exp") -> bool:
    """False, which is all that `dither` may say."""
    if dither is not None and check_flag("dither", dither):
        raise ValueError(f"dither must be left out for {method}, got True")
    return False
