r"""Exact draws of `PathLaw` from proposals by cells of ranks: short rows at any rate.

Weights are :math:`\exp(-c\,TV(r))` with :math:`TV(r) = \sum_{j=1}^{m+1} |r_j - r_{j-1} - n_j|`,
where r_j is the number of records below output j, r_0 = 0 and r_{m+1} = n. Outputs are cut into
blocks, blocks make up the leaves of a tree (`dpq_fast.laws.joint.leaves`), and each level has cells
of this tree that are wider where paths seldom go (`csrc/coarse.h`).

**Proposals** put output j into a cell C_j with rank rho_j, and there into a block. With the signs
s_j of the cells' steps, :math:`|y| \ge s_j y` bounds the weight of all that is in these cells by

.. math::

    \exp(-c\,TV(\rho)) \prod_j \exp(-2 c b_j (\beta_j - \rho_j)), \quad b_j = (s_j - s_{j+1}) / 2,

where beta_j is the block's least rank for b_j = 1 and its greatest one for b_j = -1 (the cell's,
where a cell holds outputs at several levels in a row). Proposals have densities proportional to
this. Their ranks r_j are then counted, and a proposal is **accepted** with probability

    exp(-c (TV(r) - TV(rho)) + 2 c sum_j b_j (beta_j - rho_j)),

if its outputs ascend; else never. That is a probability, and accepted tuples have density
proportional to :math:`\exp(-c\,TV(r))`: the exact law, given the order (and so one dither).
Proposals are independent of each other, so it does not matter how many are drawn at a time, nor
that another way to draw takes over after some that were not accepted, whatever they were.

**Reach.** Only cells within reach R of a target are in its row. Paths that have an output beyond
weigh at most exp(-2cR) V, V the measure of all outputs (`dpq_fast.laws.joint.path`). So with
probability exp(-2cR) V / (Z + exp(-2cR) V), which is below 2^-64, a proposal is uniform among all
ascending tuples, and accepted with probability exp(-c TV(r) + 2cR) if one of its outputs is beyond
reach.

**Cost.** A step loses something only where its sign is in doubt, which is about c B of all steps
with cells of B ranks, and then about c B: all m together lose some m (c B)^2 / 12. So B is a
constant over c sqrt(m), and rows have some sqrt(m) log(...) cells each: neither n nor c matter.
Steps lose the most where a whole number of cells fits between two targets, four times as much as
where a half is left over, and targets are often evenly apart: B is chosen for that
(`dpq_fast.laws.joint.widths`). A bend in a block loses as much as the block is long, and so blocks
have 1 / (c m) ranks near targets. Where a path pays x nats to be, all m levels may lose a share of
x together: blocks are longer there (`dpq_fast.laws.joint.zones`). Those of dithered records are not
kept: leaves are summed up without most of them, and one is drawn without a look at the others.

Rows have m^2 entries: where these are many, only those of the last levels are kept. The others are
computed once more for some proposals together, from rows in between that are kept, too.

Ties that are not dithered have no outputs inside: paths are anywhere, and cells wide at first
(`widths.wide_of`). Other ties, and gaps, draw paths away from their targets, to where cells are
wide, and few proposals are accepted there. Then some paths are drawn to see where they are, and
cells become narrower around these, and everywhere: again and again, until proposals do or rows are
long. `dpq_fast.laws.joint.plan` has all the choices; they decide the cost and never the law.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import coarse as kernel
from dpq_fast._kernels import intervals as intervals_kernel
from dpq_fast._kernels import uniform
from dpq_fast._kernels.scan import Scan, targets
from dpq_fast.laws.joint import path
from dpq_fast.laws.joint.cells import Tree, tree_of
from dpq_fast.laws.joint.leaves import Sums, leaves_of
from dpq_fast.laws.joint.path import CERTIFICATE, PathLaw
from dpq_fast.laws.joint.plan import PLAN, Plan
from dpq_fast.laws.joint.rows import Forward, points_inside
from dpq_fast.laws.joint.widths import Widths, spans_around, widths_of
from dpq_fast.laws.joint.zones import zones_of
from dpq_fast.orders.blocks import Zone
from dpq_fast.orders.order import WholeOrder

# What float64 can hold: the extent without a lattice is scaled to this power of two.
LARGEST_VOLUME = 860
# Part of the proof: what ln of a probability is off by, at most.
ROUNDING = 1e-6


class CoarseLaw:
    """The law of m ascending outputs, drawn from cells of ranks.

    Parameters
    ----------
    order : WholeOrder
        The sample in order, of at least one record.
    q : ndarray of float64, shape (m,)
        Distinct ascending levels.
    rate : float
        Decay rate: log-weight lost per rank, c > 0.
    forward : callable
        As for `PathLaw`, which takes over if need be.
    guess : int, optional
        The first reach to try; by default `path.first_window`.
    reach : int, optional
        R, for tests: forced.
    widths : Widths, optional
        How wide cells and blocks are; by default, `widths_of` these levels.
    near : tuple of ndarray of int64, shape (m,), optional
        Ranks between which paths are at each level; by default, around targets.
    rounds : int
        How often cells have become narrower.
    plan : Plan
        Whatever else decides the cost.
    """

    def __init__(
        self,
        order: WholeOrder,
        q: NDArray[np.float64],
        rate: float,
        forward: Forward = Scan.forward,
        guess: int | None = None,
        reach: int | None = None,
        widths: Widths | None = None,
        near: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
        rounds: int = 0,
        plan: Plan = PLAN,
    ) -> None:
        self._order = order
        self._q = q
        self._rate = rate
        self._forward = forward
        self._plan = plan
        self._widths = widths_of(order.n, q, rate, plan) if widths is None else widths
        self._rounds = rounds
        self._log_volume = order.log_volume(q.size)
        self._kind = np.float64 if order.lattice is None else np.int64
        # widths that are not of lattice points times a power of two: no volume is subnormal
        self._shift = 0
        if order.lattice is None:
            self._shift = LARGEST_VOLUME - math.frexp(order.extent)[1]
        self._whole, self._part = targets(q, order.n)
        self._near = near
        if reach is not None:
            self._collect(reach)
            self._fill()
            return
        reach = path.first_window(order, q, rate, plan) if guess is None else guess
        while not (self._collect(reach) and self._fill()):
            reach = self._wider(reach)

    def _wider(self, reach: int) -> int:
        """A reach that will do, or a larger one that holds an output."""
        if self._cells is None:
            return 8 * reach + 1
        excess = CERTIFICATE + self._log_volume - self._log_total
        needed = math.ceil(min(excess / (2.0 * self._rate), self._order.n + 1.0))
        return max(needed, reach + 1)

    def _collect(self, reach: int) -> bool:
        """Leaves within reach; whether there are some for each target."""
        n, rate, widths = self._order.n, self._rate, self._widths
        first, last, begin, count = intervals_kernel.windows(self._q, n, reach)
        self._reach = reach
        self._cells: kernel.Cells | None = None
        self._log_beyond = self._log_volume - 2.0 * rate * reach
        if first[-1] == 0 and last[0] == n:
            self._log_beyond = -math.inf
        if widths.most is not None:
            zones = [Zone(widths.most, begin, count)]
        else:
            around = (self._whole, self._whole) if self._near is None else self._near
            zones = zones_of(self._order, *around, begin, count, rate, self._plan, widths.growth)
        self._exact = zones[-1].most < 2
        ranks = max(1.0, min(widths.nats / rate, 2.0**62))
        made = leaves_of(self._order, zones, ranks, rate, self._shift, self._plan)
        if made is None:
            return False
        self._leaves, sums = made
        self._low, self._high = _within(sums.least, sums.most, first, last)
        if (self._low >= self._high).any():
            return False
        self._tree = tree_of(sums, rate, self._plan.around)
        self._leaves.known = Sums(*self._tree[1:])
        return True

    def _fill(self) -> bool:
        """Rows of cells; whether they hold all but 2^-64."""
        if self._near is None:
            self._near = self._tree.nearest(self._whole)
        self._cells = self._rows(self._tree)
        self._cells.forward()
        # ln of what all proposals weigh within reach
        self._log_total = self._cells.log_total - self._q.size * self._shift * math.log(2.0)
        self._log_escape = self._log_beyond - float(np.logaddexp(self._log_beyond, self._log_total))
        return self._log_beyond <= self._log_total - CERTIFICATE

    def _rows(self, tree: Tree) -> kernel.Cells:
        """Rows of cells of a tree, still to be computed."""
        assert self._near is not None
        return kernel.Cells(
            *tree,
            self._order.lattice is not None,
            self._whole,
            self._part,
            self._rate,
            self._low.astype(np.uintp),
            self._high.astype(np.uintp),
            *spans_around(self._near, self._widths, self._rate, self._plan),
        )

    @cached_property
    def _next_widths(self) -> Widths:
        """Those of narrower cells: after wide ones for ties, those of all other columns."""
        nats, growth, most = self._widths
        widths = widths_of(self._order.n, self._q, self._rate, self._plan)
        if nats <= widths.nats:
            widths = Widths(self._plan.less_nats * nats, self._plan.less_growth * growth, most)
        return widths

    @cached_property
    def _narrower(self) -> CoarseLaw | None:
        """The same law by narrower cells; None if rows are long.

        Where proposals are not accepted, they are drawn to cells that are too wide, and so these
        become narrow, too.
        """
        assert self._cells is not None and self._near is not None
        plan = self._plan
        if self._rounds == plan.rounds or self._cells.entries > plan.most_entries:
            return None
        paths = self._cells.paths(plan.visitors, _no_release()).view(np.intp)
        below, above = self._tree.between(paths)
        near = np.minimum(below, self._near[0]), np.maximum(above, self._near[1])
        return CoarseLaw(
            self._order,
            self._q,
            self._rate,
            self._forward,
            guess=self._reach,
            widths=self._next_widths,
            near=near,
            rounds=self._rounds + 1,
            plan=plan,
        )

    @cached_property
    def _cost(self) -> float:
        """What a proposal costs, if rows of narrower cells cost 1."""
        assert self._cells is not None
        entries = self._cells.entries * self._widths.nats / self._next_widths.nats
        return self._plan.output_cost * self._q.size / (entries + self._leaves.blocks)

    # Drawing

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """As `PathLaw.draw`."""
        cells, m, plan = self._cells, self._q.size, self._plan
        assert cells is not None
        accepted: list[NDArray[Any]] = [np.empty((0, m), dtype=self._kind)]
        missing, tries, hope = size, 0, 0.0
        each = plan.each_scan if self._order.scans or cells.parts > 1 else plan.each
        while missing:
            tried = min(max(missing * each, tries // 2), math.ceil(plan.most_outputs / m))
            log_variates = uniform.log_uniforms(tried, rng)
            points, log_accept, likely = self._propose(rng, tried, log_variates)
            kept = points[log_variates < log_accept][:missing]
            accepted.append(kept)
            missing -= len(kept)
            tries, hope = tries + tried, hope + float(likely.sum())
            if len(kept):
                tries, hope = 0, 0.0
            others: CoarseLaw | PathLaw | None = None
            if tries and max(plan.spent, hope) <= self._cost * tries:
                others = self._narrower
            if others is None and tries >= plan.most_tries:
                others = self._single
            if others is None and tries >= plan.last_try:
                others = self._law
            if others is not None:
                accepted.append(others.draw(rng, missing))
                break
        return np.concatenate(accepted)

    def _propose(
        self, rng: np.random.Generator, size: int, needed: NDArray[np.float64] | None = None
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
        """Proposals, ln of the probability with which each is to be accepted, and estimates of it.

        If ln of a uniform variate is what each of them `needed`, ranks are counted only where a
        bound is not below that; elsewhere the bound is given. The estimates are without bias.
        """
        assert self._cells is not None
        paths = self._cells.paths(size, rng)
        bends, cell = self._cells.bends(paths), paths.view(np.intp)
        leaf, copied = self._cells.leaves(paths, bends, rng)
        # bends of several outputs of a cell are bounded without a look at where they are
        alone = _are_alone(cell)
        slot, start, blocks = self._leaves.for_draws(leaf, np.where(alone, bends, 0), rng)
        points, held = self._cells.points(
            paths, bends, leaf, copied, slot, start, *blocks, self._leaves.longest, rng
        )
        least, most = (each[held.view(np.intp)] for each in (blocks.least, blocks.most))
        low, high = self._tree.ranks(cell)
        rho = low + (high - low) // 2
        beta = np.where(bends > 0, np.where(alone, least, low), np.where(alone, most, high))
        # TV(rho) + 2 sum_j b_j (beta_j - rho_j): what TV is compared with
        bound = self._deviations(rho) + 2.0 * (bends * (beta - rho)).sum(axis=1)
        fewest = path.least_deviations(least, most, self._whole, self._part).sum(axis=1)
        log_accept = np.minimum(self._rate * (bound - fewest), 0.0)
        log_accept[~(points[:, 1:] >= points[:, :-1]).all(axis=1)] = -math.inf
        escapes = np.zeros(size, dtype=bool)
        if self._log_escape > -math.inf:
            escapes = uniform.log_uniforms(size, rng) < self._log_escape
        if escapes.any():
            points[escapes] = self._anywhere(int(escapes.sum()), rng)
            log_accept[escapes] = self._log_accept_beyond(points[escapes])
        likely = np.exp(np.minimum(log_accept, 0.0))
        counted = ~escapes & (log_accept > -math.inf)
        if needed is not None:
            counted &= log_accept > needed - ROUNDING
        if not self._exact and counted.any():
            ranks = self._order.fine_ranks(points[counted].ravel()).reshape(-1, self._q.size)
            # a number may have been rounded to the border of its block
            ranks = np.clip(ranks, least[counted], most[counted])
            log_accept[counted] = self._rate * (bound[counted] - self._deviations(ranks))
            # one in k of those with a bound of 1 / k is counted
            shares = 1.0 if needed is None else likely[counted]
            likely[~counted & ~escapes] = 0.0
            likely[counted] = np.exp(np.minimum(log_accept[counted], 0.0)) / shares
        return points, log_accept, likely

    def _deviations(self, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
        """TV of paths."""
        deviations = path.deviations(ranks, self._whole, self._part)
        total: NDArray[np.float64] = deviations.sum(axis=1)
        return total

    def _anywhere(self, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Ascending outputs, uniform among all."""
        order = self._order
        left = np.array([order.before], dtype=self._kind)
        everywhere = np.zeros((size, self._q.size), dtype=np.uintp)
        return points_inside(everywhere, left, np.array([float(order.extent)]), rng)

    def _log_accept_beyond(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """ln of the acceptance of outputs from anywhere: never if they are all within reach."""
        within = self._within(points)
        ranks = self._order.fine_ranks(points.ravel()).reshape(points.shape)
        log_accept: NDArray[np.float64] = -self._rate * (
            self._deviations(ranks) - 2.0 * self._reach
        )
        log_accept[within.all(axis=1)] = -math.inf
        return log_accept

    def _within(self, points: NDArray[Any]) -> NDArray[np.bool_]:
        """Which outputs are in the rows of their levels."""
        ends = np.stack((self._low, self._high - 1)).astype(np.uintp)
        slot, start, some = self._leaves.of(ends)
        first, last = start[slot[0]].view(np.intp), start[slot[1] + 1].view(np.intp) - 1
        end = some.left[last] + some.width[last]
        within: NDArray[np.bool_] = (points > some.left[first]) & (points <= end)
        return within

    def log_prob(self, outputs: NDArray[Any]) -> float:
        """As `PathLaw.log_prob`."""
        return self._law.log_prob(outputs)

    @cached_property
    def _single(self) -> PathLaw | None:
        """By rows of single ranks, if these fit in memory: ties may make them far longer."""
        order, q, rate, plan = self._order, self._q, self._rate, self._plan
        window = path.first_narrow(q, order.n, rate, min(self._reach, order.n), plan)
        if q.size * min(2 * window + 1, order.n + 1) > plan.most_single:
            return None
        try:
            return PathLaw(order, q, rate, self._forward, most=plan.most_single, plan=plan)
        except path.TooWide:
            return None

    @cached_property
    def _law(self) -> PathLaw:
        """The same, however long they are."""
        return PathLaw(self._order, self._q, self._rate, self._forward, plan=self._plan)


def _are_alone(cell: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which outputs of paths are the only ones in their cells."""
    again = cell[:, 1:] == cell[:, :-1]
    alone = np.ones(cell.shape, dtype=bool)
    alone[:, 1:] &= ~again
    alone[:, :-1] &= ~again
    return alone


def _no_release() -> np.random.Generator:
    """Random numbers that decide the cost alone: no output depends on them."""
    return np.random.Generator(np.random.PCG64(0))


def _within(
    least: NDArray[Any], most: NDArray[Any], first: NDArray[np.int64], last: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Leaves low[j], ..., high[j] - 1 are those that have ranks from first[j] to last[j]."""
    return np.searchsorted(most, first), np.searchsorted(least, last, side="right")
