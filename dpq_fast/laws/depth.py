r"""The exact law of one quantile on a lattice, drawn by how deep the target lies at each point.

With the target t = q n a point o loses max(#{x < o} - t, t - #{x <= o}) records, less than nothing
where t lies inside the run of records at o. The exponential mechanism [MT07] draws o with
probability proportional to exp(-c loss); permute-and-flip [MS20] the argmax of E_o - c loss, E_o
independent standard exponentials. Points between two records lose the same: a cell, drawn as one.

With a prior that gives a point the mass w, its log-weight -c loss gets ln w in both mechanisms: it
loses ln(w) / c less, a public number. Cells end where the mass changes.

**Windows.** Only ranks within W of t are looked at. The point that the target's record lies on
loses nothing or less, and every point outside the windows more than W. So of V points those
outside weigh at most B = V exp(-c W), where those inside weigh at least 1, and the probability that
an exponential variate of theirs reaches the best point inside is at most B. Windows are so wide
that B is below 2^-64. What lies outside is not lost: with probability B / (Z_inside + B), or that
of the largest of V variates, a draw is decided by all points, so outputs follow the law exactly.
With a prior, points outside have the largest of all masses at most, and the best one inside has at
least 1: its logarithm adds to ln V in B, and ln of the largest mass is less to reach for a variate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import depth as kernel
from dpq_fast._kernels import intervals as intervals_kernel
from dpq_fast._kernels import path, race, uniform
from dpq_fast.data.prior import Masses
from dpq_fast.laws.joint.path import CERTIFICATE
from dpq_fast.orders.order import Intervals, WholeOrder

# Log-weights that are so far apart at most are drawn as plain weights.
PLAIN_SPREAD = 600.0
# The integral of permute-and-flip: nats in all and of a panel, and the nodes of each.
REACH, NATS, NODES = 80.0, 5.0, 24
# ln of a probability p for which ln(1 - p) is -p to the last digit.
SMALL = -37.0
# A share of all weight that makes no difference to others.
LIGHT = 2.0**-60


class Cells(NamedTuple):
    """Neighboring points that lose the same, ascending.

    Attributes
    ----------
    start : ndarray of int64, shape (C,)
        The point before each cell.
    points : ndarray of float64, shape (C,)
        Number of points.
    loss : ndarray of float64, shape (C,)
    """

    start: NDArray[np.int64]
    points: NDArray[np.float64]
    loss: NDArray[np.float64]

    def log_weights(self, rate: float) -> NDArray[np.float64]:
        """Of the exponential mechanism."""
        return np.log(self.points) - rate * self.loss

    def where(self, kept: NDArray[np.bool_]) -> Cells:
        """Some of the cells."""
        return Cells(self.start[kept], self.points[kept], self.loss[kept])

    def weighed(self, masses: Masses, rate: float) -> Cells:
        """Parts in which all points have one mass; they lose the less, the more it is."""
        first = self.start + 1
        stop = first + self.points.astype(np.int64)
        knots = masses.firsts[slice(*masses.firsts.searchsorted([first[0], stop[-1]]))]
        whole = first.searchsorted(knots, side="right") - 1
        inner = (first[whole] < knots) & (knots < stop[whole])
        # two ascending rows each: a stable sort merges them
        whole = np.sort(np.concatenate((np.arange(first.size), whole[inner])), kind="stable")
        first = np.sort(np.concatenate((first, knots[inner])), kind="stable")
        stop = np.minimum(np.append(first[1:], stop[-1]), stop[whole])
        points = (stop - first).astype(np.float64)
        loss = self.loss[whole] - np.log(masses.of(first)) / rate
        return Cells(first - 1, points, loss)


class DepthLaw:
    """The law of one output on a lattice without dither.

    Parameters
    ----------
    order : WholeOrder
        The sample in order, on a lattice without dither bits.
    q : float
        The level.
    rate : float
        Log-weight lost per record, c > 0.
    flip : bool
        Whether permute-and-flip draws, or the exponential mechanism.
    window : int, optional
        W, for tests; by default as wide as the certificate asks.
    masses : Masses, optional
        Of the points, by a prior.
    """

    def __init__(
        self,
        order: WholeOrder,
        q: float,
        rate: float,
        flip: bool,
        window: int | None = None,
        masses: Masses | None = None,
    ) -> None:
        self._order = order
        self._rate = rate
        self._flip = flip
        self._masses = masses
        self._target = kernel.target(q, order.n)
        # all of them, where none is outside the window and points weigh the same
        self._intervals: Intervals | None = None
        self._log_largest = _log_largest(masses)
        reach = window_of(order, rate, masses) if window is None else window
        self._cells, complete = self._cells_within(q, reach)
        self._certified = complete or window is None
        self._best = int(self._cells.loss.argmin())
        self._log_bound = order.log_volume(1) + self._log_largest - rate * reach
        self._log_escape = -math.inf if complete else self._log_escape_beyond(reach)
        # log-probabilities of permute-and-flip by loss: each is an integral
        self._flipped: dict[float, float] = {}

    def _log_escape_beyond(self, window: int) -> float:
        """ln of the probability that all points have to decide."""
        if self._flip:
            least = float(self._cells.loss[self._best])
            height = self._rate * (window - least) - self._log_largest
            return _log_reached(self._order.extent, height)
        log_inside = np.logaddexp.reduce(self._log_weight)
        return float(self._log_bound - np.logaddexp(self._log_bound, log_inside))

    @cached_property
    def _log_weight(self) -> NDArray[np.float64]:
        """Of the cells, under the exponential mechanism."""
        return self._cells.log_weights(self._rate)

    # Cells

    def _cells_within(self, q: float, window: int) -> tuple[Cells, bool]:
        """The cells of ranks within `window` of the target, and whether there are no others."""
        order, n = self._order, self._order.n
        ends = intervals_kernel.windows(np.array([q]), n, window)
        first, last = int(ends[0][0]), int(ends[1][0])
        rank, width, left = order.intervals(*ends[2:])
        if not rank.size:
            return self._single(), False
        # How many records lie below the first point and up to the last one is known, or does not
        # matter, unless the run of one of them covers the target and reaches out of the window.
        below, through = max(first - 1, 0), min(last + 1, n)
        whole, part = self._target
        if rank[0] > 0 and (rank[0] - whole) - part > (whole - below) + part:
            below = order.rank_of(int(left[0]))
        if rank[-1] < n and (whole - rank[-1]) + part > (through - whole) - part:
            through = order.rank_of(int(left[-1] + width[-1]) + 1)
        cells = Cells(*kernel.cells(rank, width, left, n, whole, part, below, through))
        complete = first == 0 and last == n
        if complete and self._masses is None:
            self._intervals = Intervals(rank, width, left)
        return self._weighed(cells), complete

    def _weighed(self, cells: Cells) -> Cells:
        return cells if self._masses is None else cells.weighed(self._masses, self._rate)

    def _single(self) -> Cells:
        """The one point that all records within the window lie on."""
        order = self._order
        place = min(self._target[0], order.n - 1)
        (point,) = order._points([(place, place + 1)]).tolist()
        loss = self._loss(*order.ranks_of(np.array([point, point + 1])).tolist())
        return self._weighed(Cells(np.array([point - 1]), np.ones(1), np.array([loss])))

    def _loss(self, below: int, through: int) -> float:
        """Of a point with so many records below it, and up to it."""
        whole, part = self._target
        return max((below - whole) - part, part - (through - whole))

    @cached_property
    def _all(self) -> tuple[Cells, NDArray[np.bool_]]:
        """All cells, and which of them are outside."""
        n = self._order.n
        intervals = self._order.intervals(np.array([0]), np.array([n + 1]))
        cells = self._weighed(Cells(*kernel.cells(*intervals, n, *self._target, 0, n)))
        first, last = self._cells.start[[0, -1]]
        return cells, (cells.start < first) | (cells.start > last)

    # Drawing

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
        """`size` lattice points, shape (size, 1)."""
        if self._flip and self._intervals is not None:
            n, rate = self._order.n, self._rate
            drawn = kernel.points(*self._intervals, n, *self._target, rate, size, rng)
            every: NDArray[np.int64] = drawn.reshape(size, 1)
            return every
        cells = self._cells
        places = self._draw_cells(rng, size).reshape(size, 1)
        points: NDArray[np.int64] = path.points_lattice(places, cells.start, cells.points, rng)
        if self._log_escape > -math.inf:
            for i in np.flatnonzero(uniform.log_uniforms(size, rng) < self._log_escape):
                points[i] = self._draw_escaped(rng)
        return points

    def _draw_cells(self, rng: np.random.Generator, size: int) -> NDArray[np.uintp]:
        """Cells drawn as if there were no others."""
        cells = self._cells
        if self._flip:
            return kernel.flip(cells.points, cells.loss, self._rate, self._best, size, rng)
        log_weight = self._log_weight - self._log_weight.max()
        if log_weight.min() > -PLAIN_SPREAD:
            weight = np.exp(log_weight)
            drawn = [race.draw_plain(weight, rng) for _ in range(size)]
        else:
            drawn = [race.draw(log_weight, rng) for _ in range(size)]
        return np.array(drawn, dtype=np.uintp)

    def _draw_escaped(self, rng: np.random.Generator) -> int:
        """A point, given that the bound on what lies outside was reached."""
        return self._flip_escaped(rng) if self._flip else self._weigh_escaped(rng)

    def _weigh_escaped(self, rng: np.random.Generator) -> int:
        """By the exponential mechanism: a point outside, or none of them, and then start again."""
        everything, outside = self._all
        cells = everything.where(outside)
        log_weight = cells.log_weights(self._rate)
        log_share = float(np.logaddexp.reduce(log_weight)) - self._log_bound
        if uniform.log_uniforms(1, rng)[0] >= log_share:
            return int(self.draw(rng, 1)[0, 0])
        return _point_of(cells, race.draw(log_weight, rng), rng)

    def _flip_escaped(self, rng: np.random.Generator) -> int:
        """By permute-and-flip: given that the largest of V variates would do, as if outside.

        V is the number of all points; those that are not outside are nobody's.
        """
        cells, outside = self._all
        extent = self._order.extent
        log_above = uniform.log_uniforms(1, rng)[0] + self._log_escape
        largest = math.log(extent) - log_above
        if log_above > SMALL:
            largest = -math.log(-math.expm1(math.log1p(-math.exp(log_above)) / extent))
        # exp(-E), E the largest variate of each cell: below `largest` where it is outside
        above = -np.expm1(uniform.log_uniforms(cells.points.size, rng) / cells.points)
        above[outside] += (1.0 - above[outside]) * math.exp(-largest)
        variate = -np.log(above)
        held = np.cumsum(np.where(outside, cells.points, 0.0))
        owner = rng.random() * extent
        if owner < held[-1]:
            variate[np.searchsorted(held, owner, side="right")] = largest
        return _point_of(cells, int(np.argmax(variate - self._rate * cells.loss)), rng)

    # Probabilities

    def log_prob(self, outputs: NDArray[np.int64]) -> float:
        """ln of the probability of a lattice point, in an array of one."""
        below, through = self._order.ranks_of(np.append(outputs, outputs + 1)).tolist()
        loss = self._loss(below, through)
        if self._masses is not None:
            loss -= math.log(self._masses.of(outputs)[0]) / self._rate
        if not self._flip:
            return -self._rate * loss - self._log_normalizer
        if loss not in self._flipped:
            log_reduced = -self._rate * (loss - float(self._counted.loss.min()))
            self._flipped[loss] = log_reduced + self._log_integral(math.exp(log_reduced))
        return self._flipped[loss]

    def cell_probabilities(self, crowd: float = math.inf) -> tuple[Cells, NDArray[np.float64]]:
        """Cells, and how likely a point of each is drawn.

        Parameters
        ----------
        crowd : float
            Where points compete that weigh so much together, in units of the best one,
            permute-and-flip is taken to draw like the exponential mechanism: right to a relative
            error of one over it.

        Returns
        -------
        cells : Cells
            All but for those of a probability below 2^-64 together.
        probability : ndarray of float64, shape (C,)
            Their sum is 1.
        """
        cells = self._counted
        reduced = np.exp(-self._rate * (cells.loss - cells.loss.min()))
        likely = cells.points * reduced
        total = float(likely.sum())
        if self._flip and total < crowd:
            near = likely > LIGHT * total
            points, best = cells.points[near], reduced[near]
            drawn, rest = np.zeros_like(best), 0.0
            for v, weights in _panels(total - 1.0):
                others = weights * np.exp(np.log1p(-v[:, None] * best) @ points)
                drawn += others @ (1.0 / (1.0 - v[:, None] * best))
                rest += float(others.sum())
            likely[near] *= drawn
            likely[~near] *= rest
        return cells, likely / likely.sum()

    @cached_property
    def _counted(self) -> Cells:
        """The cells that make a difference."""
        return self._cells if self._certified else self._all[0]

    @cached_property
    def _log_normalizer(self) -> float:
        return float(np.logaddexp.reduce(self._counted.log_weights(self._rate)))

    @np.errstate(under="ignore")  # of points that lose much
    def _log_integral(self, own: float) -> float:
        r"""ln of :math:`\int_0^1 \prod_j (1 - v p_j) / (1 - v p_o)\,dv`, for p_o = `own`.

        The integrand is at most exp(-v (sum p - p_o)), so beyond REACH over that sum it is nothing.
        A panel is so short that the integrand falls by a factor of some e^NATS in it. It is
        entire, and at z at most exp(|z| (sum p - p_o)): a rule of 24 nodes is off by e^-80.
        """
        cells = self._counted
        reduced = np.exp(-self._rate * (cells.loss - cells.loss.min()))
        total = 0.0
        for v, weights in _panels(float(cells.points @ reduced) - own):
            logs = np.log1p(-v[:, None] * reduced) @ cells.points - np.log1p(-v * own)
            total += float(weights @ np.exp(logs))
        return math.log(total)


def _panels(fall: float) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Nodes and weights of an integral from 0 to 1 of what is at most exp(-v fall)."""
    end = REACH / fall if fall > REACH else 1.0
    panels = max(math.ceil(end * fall / NATS), 1)
    nodes, weights = _rule()
    for panel in range(panels):
        yield end * (panel + (nodes + 1.0) / 2.0) / panels, weights * (end / (2.0 * panels))


@cache
def _rule() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights from -1 to 1: for probabilities, which no release asks for."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return nodes, weights


def window_of(order: WholeOrder, rate: float, masses: Masses | None = None) -> int:
    """The least W whose certificate holds, whatever the records are."""
    return math.ceil(min(window_for(order.extent, rate, _log_largest(masses)), order.n + 1.0))


def window_for(extent: float, rate: float, log_largest: float = 0.0) -> float:
    """The same for so many points, not rounded: as wide as that, however few records there are."""
    return (CERTIFICATE + (math.log(extent) + log_largest)) / rate


def _log_largest(masses: Masses | None) -> float:
    """ln of the largest mass of a point."""
    return 0.0 if masses is None else math.log(masses.each.max())


def _log_reached(count: float, height: float) -> float:
    """ln of the probability that the largest of so many exponential variates is beyond a height."""
    if height < 2.0**-52:  # for sure, to the last digit
        return 0.0
    log_below = count * math.log1p(-math.exp(-height))
    return math.log(-math.expm1(log_below)) if log_below < 0.0 else math.log(count) - height


def _point_of(cells: Cells, cell: int, rng: np.random.Generator) -> int:
    """A point of a cell, each equally likely."""
    drawn = np.array([[cell]], dtype=np.uintp)
    return int(path.points_lattice(drawn, cells.start, cells.points, rng)[0, 0])
