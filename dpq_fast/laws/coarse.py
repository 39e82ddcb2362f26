r"""Exact draws of `PathLaw` from proposals by cells of ranks: short rows at any rate.

Weights are :math:`\exp(-c\,TV(r))` with :math:`TV(r) = \sum_{j=1}^{m+1} |r_j - r_{j-1} - n_j|`,
where r_j is the number of records below output j, r_0 = 0 and r_{m+1} = n. Outputs are cut into
blocks, blocks make up the leaves of a tree (`dpq_fast.laws.leaves`), and each level has cells of
this tree that are wider where paths seldom go (`csrc/coarse.h`).

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
weigh at most exp(-2cR) V, V the measure of all outputs (`dpq_fast.laws.path`). So with probability
exp(-2cR) V / (Z + exp(-2cR) V), which is below 2^-64, a proposal is uniform among all ascending
tuples, and accepted with probability exp(-c TV(r) + 2cR) if one of its outputs is beyond reach.

**Windows.** Of the paths within reach most stay far nearer, and where levels are many, rows hold
only the cells with ranks inside of windows, and there are no leaves elsewhere. All other paths
weigh at most exp(-2cR) V + U, and if that is below 2^-64 of what rows hold, windows may stay. Where
targets are close, U is a sum of bounds for what passes blocks of ranks, and windows are wherever
these are large (`dpq_fast.laws.passing`); else they are around targets (`dpq_fast.laws.strayed`).
Then a proposal is, with that share of all, a path outside of windows by its exact law, or none:
accepted in the share of cases that the bound is right in, and if it is not in the rows.

**Cost.** A step loses something only where its sign is in doubt, which is about c B of all steps
with cells of B ranks, and then about c B: all m together lose some m (c B)^2 / 12. So B is
a constant over c sqrt(m), and rows have some sqrt(m) log(...) cells each: neither n nor c matter.
Steps lose the most where a whole number of cells fits between two targets, four times as much as
where a half is left over, and targets are often evenly apart: B is chosen for that (`aligned`).
A bend in a block loses as much as the block is long, and so blocks have 1 / (c m) ranks near
targets. Where a path pays x nats to be, all m levels may lose a share of x together: blocks are
longer there, by a share of x / m nats, and their number is a multiple of m^2 log(R). Those of
dithered records are not kept: leaves are summed up without most of them, and one is drawn without a
look at the others; and leaves are wider where cells are. What is accepted is a product of
factors of one step or bend each, and none is above 1: so outputs are drawn for some levels after
others, up to where a uniform variate rules a proposal out. Rows have m^2 entries: where these are
many, only those of the last levels are kept. The others are computed once more for some proposals
together, from rows in between that are kept, too.

**Ties** that hold several targets, and are not dithered, have no outputs inside: all ways past them
deviate by as much, if only no step turns back, and so paths are anywhere. Signs of steps are hardly
in doubt then: about B / n_j of those past a gap of n_j ranks between targets. So cells are wide at
first (`wide_of`), and narrower ones take over where few proposals are accepted. A sign in doubt
loses c B t nats, if the step from cell to cell goes up by (1 - t) B: so B is chosen for gaps that
are whole numbers of cells and little more.

Wide gaps and ties draw the paths of many levels hundreds of nats away from their targets. Where
rows are long, and where few proposals are accepted, some paths are drawn first to see where they
are, and cells are the narrowest, and blocks the shortest, there. Inside of a dithered tie outputs
have so little room that no path goes there, if it would not have to come back for it at twice the
gap to the next target: cells may be wide in there, by what each output loses. But the way past a
tie costs nothing as long as targets are inside, so that its ranks do not count as distance. Where
there are bounds for what passes blocks of ranks, these say where paths are and what it costs them
to be elsewhere: by less than a tenth of what rows take. All that decides the cost and never the
law.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import coarse as kernel
from dpq_fast._kernels import intervals as intervals_kernel
from dpq_fast._kernels import uniform
from dpq_fast._kernels.scan import Scan, targets
from dpq_fast.data.blocks import Zone, segments
from dpq_fast.data.order import WholeOrder
from dpq_fast.laws import path
from dpq_fast.laws.cells import Tree, tree_of
from dpq_fast.laws.leaves import Sums, leaves_of
from dpq_fast.laws.outside import Outside
from dpq_fast.laws.passing import passing
from dpq_fast.laws.path import CERTIFICATE, MOST_LEVELS, PathLaw, gap_of
from dpq_fast.laws.rows import Forward, points_inside
from dpq_fast.laws.seen import Seen, seen_by
from dpq_fast.laws.strayed import Windows
from dpq_fast.laws.widths import (
    LEAST_RANKS,
    LOSS,
    LOSS_PASSED,
    VERY_MANY_LEVELS,
    WIDEST,
    Spans,
    Widths,
    aligned,
    growth_by,
    growth_of,
    spans_around,
    wider_at,
    wider_by,
)
from dpq_fast.laws.zones import bridge, zones_of

# What all steps lose of very many levels whose rows are long, in place of `LOSS`; and less inside
# of windows that have no more nats than that: proposals cost as much as rows there.
LOSS_ANYWHERE, LOSS_WITHIN, NATS_WITHIN = 3.0, 2.0, 2.0**19
# More than `LOSS_PASSED` is lost where there would be more cells than that for each level (and more
# by as much as levels are more than `MOST_LEVELS`): these are up to so many times as wide, as ties
# that send paths anywhere let most steps go one way, and signs are no question.
MANY_PASSED, MOST_WIDENED = 3_500.0, 1.9
# Not all cells of one width have as many ranks.
MARGIN = 1.05
# A power of two: the extent without a lattice is scaled to this.
LARGEST_VOLUME = 860
# What ln of a probability is off by, at most.
ROUNDING = 1e-6
# Proposals are drawn for so many levels or some more at a time, and cells for so many before them,
# as runs are not to be cut: most are not accepted, and that is known before all is drawn.
LEVELS_AT_ONCE, LEVELS_AHEAD = 64, 8
# Proposals at once: for each draw, and where their ranks take a pass over the records, or rows are
# computed once more for them; and at most so many outputs.
EACH, EACH_SCAN, MOST_OUTPUTS = 4, 64, 2**18
# So many proposals without an accepted one, and likely so many to come that others would cost less
# (an output costs as much as so many entries or blocks): then cells become narrower where paths are
# and grow less elsewhere, by this share, up to so many times and if rows have no more entries than
# the second of these numbers. And so many proposals, and `PathLaw` draws; where it would take the
# memory of more row entries than that, proposals go on as far as minutes.
FEW_TRIES, OUTPUT_COST, MOST_TRIES = 2**6, 4.0, 2**14
MOST_SINGLE, LAST_TRY = 2**26, 2**19
LESS_GROWTH, ROUNDS, MOST_ENTRIES, MOST_LAST = 0.5, 4, 2**23, 2**24
# With more entries than that, it is asked first where paths are: by so many of them, from cells of
# so many nats, wide ones and then narrower ones so far around, and their growth. Then cells may
# grow more elsewhere, by this factor, and by more where targets are apart: for each nat between
# them, and at most. Rows that are longer than that are so by ties that send paths anywhere.
MANY_ENTRIES, LONG_ROW, ALL = 2**19, 2**14, 2**62
VISITORS, ROUGH, ROUGH_GROWTH, ROUGH_REACH = 32, (4.0, 2.0), 0.2, 500.0
CENTERED, CENTERED_EACH, MOST_CENTERED = 2.5, 0.375, 5.0
# But no cells grow if rows have no more entries than that, or than that if leaves became narrower:
# where outputs of many levels are at one place, and cells of one level inside of those of the next,
# most proposals would not ascend.
MOST_ALIKE, MORE_ALIKE = 2**21, 3 * 2**20
# By this share of it if the narrowest are of single ranks: paths are far away from their targets.
# If levels are very many, by so much more: their cells are most of what they cost. (By 1.6 times as
# much, what cells a thousand nats away are too wide by is more than the way there costs.) Within
# windows there are few of these, and less than as much is lost where leaves are wide, too.
SINGLE_SHARE, MORE_CENTERED, CENTERED_WITHIN = 0.5, 1.2, 0.9
# And in that case no cell of several leaves has more nats.
WIDEST_SINGLE = 8.0
# A cell may have such a share of what each output there loses (`Seen.paid`).
PAID_SHARE = 0.6
# That is looked at only if so large a share of all ranks is in such cells.
EMPTY = 0.15
# The narrowest cells have so many ranks' nats where they would have less than so many.
ALONE = 0.75, 1.5
# If the cells of paths, or this share of them, cannot be narrower, as they are leaves, or if there
# would be hardly more of them, leaves become narrower by this factor.
MOSTLY_LEAVES, HARDLY_MORE, LESS_NATS = 0.9, 1.02, 0.6
# If some proposals lose so many nats for each level, it is growth that draws them away.
FEW_SEEN, INFLATED = 4, 0.8
# Of so many levels and more, rows are kept inside of windows.
WINDOWED = 128


class Inside(NamedTuple):
    """What rows are kept inside of: all within reach by default.

    Attributes
    ----------
    window : tuple of ndarray of int64, shape (m,), optional
        The first rank and the last one of each level.
    log_strayed : float
        ln of what the paths weigh at most that leave them within reach.
    are_even : bool
        Whether paths are where a walk over even gaps is.
    seen : Seen, optional
        Where paths are, by bounds for what passes some ranks.
    """

    window: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    log_strayed: float = -math.inf
    are_even: bool = False
    seen: Seen | None = None


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
    nats, growth, most : optional
        As of `Widths`, which are chosen by default.
    wide : sequence of Widths
        To be tried before those, from the widest on.
    once : bool
        Whether what is drawn by a seed may depend on what was drawn before: then rows that give way
        to narrower ones take no memory beside them.
    window : ndarray of int64, shape (m,), optional
        For tests, with `reach`: rows have the leaves within so many ranks of targets.
    """

    def __init__(
        self,
        order: WholeOrder,
        q: NDArray[np.float64],
        rate: float,
        forward: Forward = Scan.forward,
        guess: int | None = None,
        reach: int | None = None,
        nats: float | None = None,
        growth: float | None = None,
        most: int | None = None,
        wide: Sequence[Widths] = (),
        once: bool = False,
        window: NDArray[np.int64] | None = None,
    ) -> None:
        self._order = order
        self._q = q
        self._rate = rate
        self._forward = forward
        self._may_fit = nats is None
        nats = aligned(order.n, q, rate) if nats is None else nats
        growth = growth_of(order.n, q, rate) if growth is None else growth
        self._widths, *self._narrower = *wide, Widths(nats, growth, most)
        self._log_volume = order.log_volume(q.size)
        self._kind = np.float64 if order.lattice is None else np.int64
        self._once = once
        self._rounds = 0  # of narrower cells
        self._seen: Seen | None = None
        self._restrict(Inside())
        self._cells: kernel.Cells | None = None  # gone if the law gave way to a narrower one
        self._successor: CoarseLaw | None = None
        self._giving_way = threading.Lock()  # several threads may draw from a law
        # widths that are not of lattice points times a power of two: no volume is subnormal
        self._shift = 0
        if order.lattice is None:
            self._shift = LARGEST_VOLUME - math.frexp(order.extent)[1]
        self._whole, self._part = targets(q, order.n)
        self._around = self._whole, self._whole
        if reach is None:
            self._begin(path.first_window(order, q, rate) if guess is None else guess)
            return
        if window is not None:
            weights = Windows(order, q, rate, reach).weights(window)
            assert weights is not None
            ends = intervals_kernel.windows(q, order.n, window)[:2]
            self._restrict(Inside(ends, weights[0]))
        self._collect(reach)
        self._fill()

    def _begin(self, reach: int) -> None:
        """Leaves and rows, of a reach that will do, and inside of windows if these will do."""
        may_stray = True
        while True:
            are_long = self._are_long(reach)
            self._restrict(self._windows(reach) if may_stray and are_long else Inside())
            if self._may_fit and are_long:
                self._fit()
            if not self._collect(reach):
                reach = 2 * reach + 1
                continue
            self._fill()
            if self._log_strayed > self._log_total - CERTIFICATE:
                may_stray = False
                continue
            if self._log_beyond <= self._log_total - CERTIFICATE:
                return
            excess = CERTIFICATE + self._log_volume - self._log_total
            needed = math.ceil(min(excess / (2.0 * self._rate), self._order.n + 1.0))
            reach = max(needed, reach + 1)

    def _windows(self, reach: int) -> Inside:
        """Windows that will hold all but 2^-64, it seems, if there are any."""
        self._order = self._order.by_runs()  # all of it will be asked for
        order, q, rate = self._order, self._q, self._rate
        bounds = passing(order, q, rate, reach)
        if bounds is not None:
            first, last, log_strayed = bounds.windows()
            self._around = bounds.near()
            return Inside((first, last), log_strayed, seen=seen_by(bounds, first, last))
        found = Windows(order, q, rate, reach).found()
        if found is None:
            return Inside()
        window, log_strayed, are_even = found
        ends = intervals_kernel.windows(q, order.n, window)[:2]
        return Inside(ends, log_strayed, are_even)

    def _fit(self) -> None:
        """Cells that lose as much as pays where there are windows, and where there are none."""
        n, loss, seen = self._order.n, LOSS, self._seen_by_bounds
        if seen is not None:
            loss = LOSS_PASSED
            entries = self._entries_by(seen, aligned(n, self._q, self._rate, loss))
            many = MANY_PASSED * self._q.size * max(1.0, self._q.size / MOST_LEVELS)
            loss *= min(max(entries / many, 1.0), MOST_WIDENED) ** 2
        elif self._window is not None and self._nats_within <= NATS_WITHIN:
            loss = LOSS_WITHIN
        elif self._q.size >= VERY_MANY_LEVELS:
            loss = LOSS_ANYWHERE
        self._widths = self._widths._replace(nats=aligned(n, self._q, self._rate, loss))

    @property
    def _nats_within(self) -> float:
        """How many nats windows have in all."""
        assert self._window is not None
        return self._rate * int(segments(*self._window, self._order.n)[1].sum())

    def _are_long(self, reach: int) -> bool:
        """Whether rows of many levels have many entries within reach, by a guess."""
        if self._q.size < WINDOWED or self._widths.growth <= 0.0:
            return False
        nats = self._rate * np.linspace(0.0, min(reach, 0.5 * self._order.n), 1025)
        wider = wider_at(nats, self._q.size, self._widths.growth * self._as_wide)
        entries = 2.0 * self._q.size * float(np.trapezoid(1.0 / wider, nats)) / self._narrowest
        return entries > MANY_ENTRIES

    def _restrict(self, inside: Inside) -> None:
        """Keep rows inside of windows, if there are any."""
        self._window, self._log_strayed, self._are_even, self._seen_by_bounds = inside
        vars(self).pop("_outside", None)  # of other windows

    def _collect(self, reach: int) -> bool:
        """Leaves within reach; whether there are some for each target."""
        n = self._order.n
        first, last, begin, count = intervals_kernel.windows(self._q, n, reach)
        self._reach = reach
        self._log_beyond = self._log_volume - 2.0 * self._rate * reach
        if first[-1] == 0 and last[0] == n:
            self._log_beyond = -math.inf
        if self._window is not None:
            first, last = self._window
            begin, count = segments(first, last, n)
        if self._widths.most:
            zones = [Zone(self._widths.most, begin, count)]
        else:
            growth = self._widths.growth
            if self._q.size >= VERY_MANY_LEVELS:  # whose cells will be wider
                growth *= self._centered()
            zones = zones_of(self._order, *self._around, begin, count, self._rate, growth)
        self._exact, self._zoned = zones[-1].most < 2, len(zones) > 1
        ranks = max(1.0, min(self._narrowest / self._rate, 2.0**62))
        made = leaves_of(self._order, zones, ranks, self._rate, self._shift)
        if made is None:
            return False
        self._leaves, sums = made
        self._low, self._high = _within(sums.least, sums.most, first, last)
        if (self._low >= self._high).any():
            return False
        self._tree = tree_of(sums, self._rate, self._leaves.ranks)
        self._leaves.known = Sums(*self._tree[1:])
        return True

    def _fill(self) -> None:
        """Rows of cells."""
        self._has_leaves, self._grown, self._cells = True, self._widths.growth, None
        self._near, self._seen = self._tree.nearest(self._whole), None
        may_grow, m = self._widths.growth > 0.0, self._q.size
        if self._seen_by_bounds is not None:
            self._near, self._seen = self._around, self._seen_by_bounds
            self._use(self._rows(self._grown))
            return
        if self._window is not None:
            if self._are_even:
                away, near = bridge(m, self._rate, self._order.n), self._near
                below, above = self._whole - away, self._whole + away
                self._near = np.minimum(near[0], below), np.maximum(near[1], above)
            else:
                self._visit()
            self._grown = self._centered(within=True) * self._widths.growth
            self._use(self._rows(self._grown))
            return
        # how many more than `MANY_ENTRIES` there are does not matter where levels are many
        most = MOST_ENTRIES if m * LONG_ROW < MOST_ENTRIES else MANY_ENTRIES
        cells = self._rows(self._widths.growth, most if may_grow else ALL)
        are_long = m * LONG_ROW < cells.entries <= MOST_ENTRIES
        if may_grow and cells.entries > MANY_ENTRIES and not are_long:
            most_alike = MOST_ALIKE if self._rounds == 0 else MORE_ALIKE
            self._rounds = max(self._rounds, 1)
            self._grown, cells = 0.0, self._rows(0.0, most_alike)
            if cells.entries > most_alike:
                del cells  # before there are others
                self._visit()
                self._grown = self._centered() * self._widths.growth
                cells = self._rows(self._grown)
        self._use(cells)

    @property
    def _narrowest(self) -> float:
        """How many nats the narrowest cells have.

        Not one of two ranks or a little more: most would be of two that could as well be of one,
        where nothing is lost.
        """
        nats = self._widths.nats
        return min(nats, ALONE[0] * self._rate) if nats < ALONE[1] * self._rate else nats

    @property
    def _as_wide(self) -> float:
        """By how much more `_narrowest` cells grow, to be as wide far away."""
        return (self._widths.nats / self._narrowest) ** 2

    @property
    def _are_single(self) -> bool:
        """Whether the narrowest cells are of single ranks, or of two."""
        return self._widths.nats < LEAST_RANKS * self._rate

    def _centered(self, within: bool = False) -> float:
        """By how much more cells grow where it is known where paths are; less within windows."""
        gap = gap_of(self._order.n, self._q, self._rate)
        more = min(max(CENTERED, CENTERED_EACH * gap), MOST_CENTERED)
        if self._are_single:
            return more * SINGLE_SHARE
        if self._q.size < VERY_MANY_LEVELS:
            return more
        return more * (CENTERED_WITHIN if within else MORE_CENTERED)

    def _visit(self) -> None:
        """See where paths are likely to be at each level.

        That decides the cost alone, and so rows are rough: a cell counts as if it was a point,
        which bounds nothing but does not draw paths to where cells are wide.
        """
        nearest, arrival, (wide, narrow) = self._near, self._arrival(), ROUGH
        cells = self._rough_cells(nearest, (self._low, self._high), wide, arrival)
        found, start, node = [self._some_paths(cells)], cells.start, cells.nodes()
        near = self._tree.between(found[0])
        cells = self._rough_cells(near, self._around_of(near), narrow, arrival)
        if self._is_elsewhere(near):  # or so it seems, as wide cells fit better between levels
            rows = self._around_of(nearest)
            at_targets = self._rough_cells(nearest, rows, narrow, arrival)
            if at_targets.log_total > cells.log_total:
                cells, found = at_targets, []
        # where several ways cost as much, one may show what another does not
        found.append(self._some_paths(cells))
        all_near = [self._tree.between(paths) for paths in found]
        below, above = zip(*all_near, strict=True)
        self._near = np.minimum.reduce(below), np.maximum.reduce(above)
        tree, rate = self._tree, self._rate
        least, most = tree.ranks(node)
        density = np.minimum.reduce([tree.density_at(paths, rate) for paths in found])
        seen = Seen(density, start, least, most, tree.densities(node, rate))
        empty = (most - least + 1)[seen.paid(self._gaps) > 0.0].sum()
        self._seen = seen if empty >= EMPTY * (most - least + 1).sum() else None

    def _rough_cells(
        self,
        near: tuple[NDArray[np.int64], NDArray[np.int64]],
        rows: tuple[NDArray[np.intp], NDArray[np.intp]],
        nats: float,
        arrival: NDArray[np.float64],
    ) -> kernel.Cells:
        """Rows of cells that count as points, of so many nats near some ranks."""
        tree = self._tree._replace(rising=self._tree.volume, falling=self._tree.volume)
        spans = spans_around(near, nats, ROUGH_GROWTH, self._rate, self._widest)
        cells = self._cells_of(tree, rows, spans, ALL, arrival)
        cells.forward()
        return cells

    def _is_elsewhere(self, near: tuple[NDArray[np.int64], NDArray[np.int64]]) -> bool:
        """Whether paths that are between two ranks are away from the targets of most levels."""
        below, above = self._near
        return bool(np.mean((near[0] > above) | (near[1] < below)) >= 0.5)

    def _around_of(
        self, near: tuple[NDArray[np.int64], NDArray[np.int64]]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The leaves within ROUGH_REACH of ranks, for each level."""
        leaves = slice(int(self._tree.offset[1]))
        reach = math.ceil(min(ROUGH_REACH / self._rate, self._order.n + 1.0))
        low = np.searchsorted(self._tree.most[leaves], near[0] - reach)
        high = np.searchsorted(self._tree.least[leaves], near[1] + reach, side="right")
        return np.maximum(low, self._low), np.minimum(high, self._high)

    def _some_paths(self, cells: kernel.Cells) -> NDArray[np.intp]:
        """Some paths of cells, shape (VISITORS, m)."""
        return cells.paths(VISITORS, _no_release()).view(np.intp)

    @property
    def _widest(self) -> float:
        """How many nats cells of several leaves may have."""
        return WIDEST_SINGLE if self._are_single else math.inf

    def _spans(self, growth: float) -> Spans:
        """How many nats cells may have: the least where paths are near.

        And more where each output of a path would lose that much by what is not there, even if all
        levels together would not have to come back for it: a gap between targets, twice.
        """
        nats, seen = MARGIN * self._narrowest, self._seen
        growth *= self._as_wide
        if seen is None:
            return spans_around(self._near, nats, growth, self._rate, self._widest)
        paid = seen.paid(self._gaps)
        if seen.lost is None:
            nats_away = self._rate * seen.away(self._near, paid > 0.0)
            wider = wider_at(nats_away, self._q.size, growth)
        else:
            wider = self._wider_by(seen, self._as_wide)
        span = np.minimum(np.maximum(nats * wider, PAID_SHARE * paid), self._widest)
        until = seen.most.copy()
        until[seen.start[1:].view(np.intp) - 1] = np.iinfo(np.int64).max
        return Spans(seen.start, until, span)

    def _wider_by(self, seen: Seen, as_wide: float) -> NDArray[np.float64]:
        """How much wider cells may be where bounds say what paths lose."""
        assert seen.lost is not None and self._window is not None
        nats = self._rate * float(np.subtract(*self._window[::-1]).sum())
        growth = growth_by(self._order.n, self._q, self._rate, nats)
        return wider_by(seen.lost, growth * as_wide)

    def _entries_by(self, seen: Seen, nats: float) -> float:
        """About how many cells of so many nats, and wider ones, there are where paths were seen."""
        each = self._rate * (seen.most - seen.least + 1.0)
        return float((each / self._wider_by(seen, 1.0)).sum()) / nats

    @property
    def _gaps(self) -> NDArray[np.float64]:
        """Nats between targets, and from both ends to these; shape (m + 1,)."""
        ends = np.concatenate(([0.0], self._whole + self._part, [self._order.n]))
        return self._rate * np.diff(ends)

    def _rows(self, growth: float, most: int = ALL) -> kernel.Cells:
        """Rows whose cells are the narrowest where paths are near; still to be computed.

        If they have more than `most` entries, they cannot be.
        """
        return self._cells_of(self._tree, (self._low, self._high), self._spans(growth), most)

    def _cells_of(
        self,
        tree: Tree,
        rows: tuple[NDArray[np.intp], NDArray[np.intp]],
        spans: Spans,
        most: int,
        arrival: NDArray[np.float64] | None = None,
    ) -> kernel.Cells:
        return kernel.Cells(
            *tree,
            self._order.lattice is not None,
            self._whole,
            self._part,
            self._rate,
            rows[0].astype(np.uintp),
            rows[1].astype(np.uintp),
            *spans,
            most,
            arrival,
        )

    def _arrival(self) -> NDArray[np.float64]:
        """2 / B, over what steps weigh from middle to middle of cells of B nats.

        That is the sum of exp(-|k B - a|) over all k, a from target to target: more where a whole
        number of cells fits, less where it does not, and over many levels paths would go elsewhere.
        """
        heights = self._tree.offset.size - 1
        nats = np.ldexp(self._leaves.ranks * self._rate, np.arange(heights))
        steps = np.diff(self._whole + self._part, prepend=0.0) * self._rate
        past = np.fmod(steps[:, np.newaxis], nats)
        factor: NDArray[np.float64]
        with np.errstate(all="ignore"):
            factor = -2.0 * np.expm1(-nats) / nats / (np.exp(-past) + np.exp(past - nats))
        factor[0] = 1.0  # from below all outputs, which is not in a cell
        factor[:, ~(nats <= WIDEST)] = 1.0
        return np.nan_to_num(factor, copy=False, nan=1.0).ravel()

    def _use(self, cells: kernel.Cells) -> None:
        """Compute rows, to draw from them."""
        cells.forward()
        self._cells, self._entries = cells, cells.entries
        may_go_on = self._rounds < ROUNDS and cells.entries <= MOST_LAST
        self._may_narrow = bool(self._narrower) or (self._widths.growth > 0.0 and may_go_on)
        # ln of what all proposals weigh within reach
        self._log_total = cells.log_total - self._q.size * self._shift * math.log(2.0)
        self._log_left = float(np.logaddexp(self._log_beyond, self._log_strayed))
        self._log_escape = self._log_left - float(np.logaddexp(self._log_left, self._log_total))

    def _give_way(self) -> CoarseLaw:
        """The same law by narrower cells. If this one is drawn from once, its rows go before."""
        with self._giving_way:
            if self._successor is None:
                law = self._with_narrower()
                if self._once:
                    self._cells = None
                self._successor = law._with_rows()
        return self._successor

    def _with_narrower(self) -> CoarseLaw:
        """The same law by cells that are narrower where paths are seen to be, still without rows.

        Where its proposals still are not accepted, they are drawn to cells that are too wide: and
        so these become narrow, too.
        """
        law = copy(self)
        law._cells, law._successor, law._giving_way = None, None, threading.Lock()
        if self._narrower:
            law._widths, *law._narrower = self._narrower
            law._has_leaves = False
            return law
        law._rounds += 1
        assert self._cells is not None  # laws that gave way narrow nothing
        paths = self._some_paths(self._cells)
        are_leaves = paths < int(self._tree.offset[1])
        if self._leaves.ranks > 1.0 and are_leaves.mean() >= MOSTLY_LEAVES:
            law._narrow_leaves()
            return law
        law._grown = self._grown * LESS_GROWTH
        if self._rounds == 0:
            law._visit()
        elif self._lost() > INFLATED * self._q.size:
            law._grown *= LESS_GROWTH**3
        else:
            below, above = self._tree.between(paths)
            law._near = np.minimum(below, self._near[0]), np.maximum(above, self._near[1])
            if self._seen is not None:
                density = np.minimum(self._tree.density_at(paths, self._rate), self._seen.density)
                law._seen = self._seen._replace(density=density)
        return law

    def _narrow_leaves(self) -> None:
        self._widths = self._widths._replace(nats=self._widths.nats * LESS_NATS)
        self._has_leaves = self._may_fit = False

    def _lost(self) -> float:
        """What proposals lose, in nats; nothing is asked for that where it takes a pass."""
        if self._order.scans:
            return 0.0
        return -float(np.median(self._propose(_no_release(), FEW_SEEN)[1]))

    def _with_rows(self) -> CoarseLaw:
        if not self._has_leaves:
            self._begin(self._reach)
            return self
        if self._zoned:
            self._around = self._near
            self._collect(self._reach)
        cells = self._rows(self._grown)
        if self._leaves.ranks > 1.0 and cells.entries <= HARDLY_MORE * self._entries:
            self._narrow_leaves()
            return self._with_rows()
        self._use(cells)
        return self

    # Drawing

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """As `PathLaw.draw`."""
        accepted: list[NDArray[Any]] = []
        missing, m, tries, hope = size, self._q.size, 0, 0.0
        while missing:
            cells = self._cells
            if cells is None:
                accepted.append(self._give_way().draw(rng, missing))
                break
            each = EACH_SCAN if self._order.scans or cells.parts > 1 else EACH
            tried = max(missing * each, tries // 2)
            tried = min(tried, math.ceil(MOST_OUTPUTS / m))
            log_variates = uniform.log_uniforms(tried, rng)
            points, log_accept, likely, seen = self._propose(rng, tried, log_variates, cells)
            kept = points[log_variates < log_accept][:missing]
            accepted.append(kept)
            missing -= len(kept)
            tries, hope = tries + tried, hope + float(likely.sum())
            if len(kept):
                tries, hope = 0, 0.0
            # (rows inside of windows are less than what leaves take)
            has_leaves = self._zoned or self._window is not None
            others = cells.entries + (self._leaves.blocks if has_leaves else 0)
            del cells  # they may have to go
            cost = OUTPUT_COST * m / others  # of a proposal, if others cost 1
            is_hard = hope <= cost * tries
            if is_hard and cost * tries < 1.0:  # none may be accepted by chance: what do they lose?
                is_hard = math.exp(_mean_of_all(log_accept, seen)) <= cost
            if tries >= FEW_TRIES and is_hard and self._may_narrow:
                accepted.append(self._give_way().draw(rng, missing))
                break
            law = self._single if tries >= MOST_TRIES else None
            if law is not None or tries >= LAST_TRY:
                accepted.append((law or self._law).draw(rng, missing))
                break
        if not accepted:
            return np.empty((0, m), dtype=self._kind)
        return accepted[0] if len(accepted) == 1 else np.concatenate(accepted)

    def _propose(
        self,
        rng: np.random.Generator,
        size: int,
        needed: NDArray[np.float64] | None = None,
        cells: kernel.Cells | None = None,
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Proposals, ln of the probability with which each is to be accepted, and estimates of it.

        If ln of a uniform variate is what each of them `needed`, outputs are drawn, and ranks
        counted, only as long as bounds are not below that; elsewhere a bound is given, and some
        outputs are of no meaning. The estimates are without bias. The last numbers are the shares
        of levels that bounds are for.
        """
        cells = self._cells if cells is None else cells
        assert cells is not None  # laws that gave way are not asked
        paths = _Paths(self, cells, size)
        escapes = np.zeros(size, dtype=bool)
        if self._log_escape > -math.inf:
            escapes = uniform.log_uniforms(size, rng) < self._log_escape
        log_accept, seen, left = np.zeros(size), np.ones(size), np.flatnonzero(~escapes)
        while paths.first and left.size:
            levels = paths.fill(left, rng)
            # each of them is one, if not below those before
            bound = self._rate * paths.gained(left, levels)
            log_accept[left] = np.minimum(bound, log_accept[left])
            seen[left] = 1.0 - levels.start / self._q.size
            if needed is not None:
                left = left[log_accept[left] > needed[left] - ROUNDING]
        points = paths.points
        if escapes.any():
            points[escapes], log_accept[escapes] = self._escaped(int(escapes.sum()), rng)
        ascends = (points[left, 1:] >= points[left, :-1]).all(axis=1)
        log_accept[left[~ascends]], left = -math.inf, left[ascends]
        likely = np.zeros(size)
        likely[escapes] = np.exp(np.minimum(log_accept[escapes], 0.0))
        # one in k of those with a bound of 1 / k is left
        each = 1.0 if needed is None else np.exp(np.minimum(log_accept[left], 0.0))
        if not self._exact:
            ranks = self._order.fine_ranks(points[left].ravel()).reshape(-1, self._q.size)
            # a number may have been rounded to the border of its block
            ranks = np.clip(ranks, paths.least[left], paths.most[left])
            log_accept[left] = self._rate * (paths.bound[left] - self._deviations(ranks))
        likely[left] = np.exp(np.minimum(log_accept[left], 0.0)) / each
        return points, log_accept, likely, seen

    def _deviations(self, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
        """TV of paths."""
        deviations: NDArray[np.float64] = path.deviations(ranks, self._whole, self._part).sum(
            axis=1
        )
        return deviations

    def _escaped(
        self, size: int, rng: np.random.Generator
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Outputs that are not all in the rows, and ln of the acceptance of each."""
        if self._window is None:
            points = self._anywhere(size, rng)
            return points, self._log_accept_beyond(points)
        points, log_accept = np.empty((size, self._q.size), self._kind), np.zeros(size)
        for i in range(size):
            drawn = self._outside.draw(self._log_left, rng)
            log_accept[i] = -math.inf if drawn is None else 0.0
            points[i] = self._order.before if drawn is None else drawn[0][0]
        log_accept[self._within(points).all(axis=1)] = -math.inf
        return points, log_accept

    @cached_property
    def _outside(self) -> Outside:
        """The paths that leave windows."""
        assert self._window is not None
        return Outside(self._order, self._q, self._rate, *self._window, self._forward)

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
        order, q, rate, reach = self._order, self._q, self._rate, self._reach
        window = path.first_narrow(q, order.n, rate, min(reach, order.n))
        if int(np.minimum(2 * window + 1, order.n + 1).sum()) > MOST_SINGLE:
            return None
        try:
            return PathLaw(order, q, rate, self._forward, most=MOST_SINGLE)
        except path.TooWide:
            return None

    @cached_property
    def _law(self) -> PathLaw:
        """The same, however long they are."""
        return PathLaw(self._order, self._q, self._rate, self._forward)


class _Paths:
    """Proposals of a law: paths through cells, drawn some levels at a time from the last ones on.

    Parameters
    ----------
    law : CoarseLaw
    cells : Cells
        Its rows.
    size : int
        How many.

    Attributes
    ----------
    first : int
        Levels from this on are filled.
    points : ndarray, shape (size, m)
    least, most : ndarray of int64, shape (size, m)
        Ranks of the blocks that outputs are in.
    bound : ndarray of float64, shape (size,)
        What TV is compared with, once all is filled: TV(rho) + 2 sum_j b_j (beta_j - rho_j).
    """

    def __init__(self, law: CoarseLaw, cells: kernel.Cells, size: int) -> None:
        self._law, self._cells, self.first = law, cells, law._q.size
        self._draws = cells.draws(size)
        self._cell = self._draws.path.view(np.intp)
        shape = self._cell.shape
        self.points = np.empty(shape, dtype=law._kind)
        self.least, self.most, self._rho = np.empty((3, *shape), dtype=np.int64)
        self.bound, self._fewest, self._sign = np.zeros((3, size))

    def _next_levels(self, left: NDArray[np.intp], rng: np.random.Generator) -> slice:
        """About `LEVELS_AT_ONCE` levels before those that are filled; no run goes on before them.

        Paths are drawn there, and at the level before.
        """
        stop, cell = self.first, self._cell
        start = max(stop - LEVELS_AT_ONCE, 0)
        while True:
            drawn = max(start - LEVELS_AHEAD, 0)
            if drawn < self._draws.first:
                self._draws.draw_to(drawn, left.view(np.uintp), rng)
            changes = (cell[left, drawn + 1 : start + 1] != cell[left, drawn:start]).all(axis=0)
            if changes.any():
                return slice(drawn + 1 + int(changes.nonzero()[0][-1]), stop)
            start = drawn
            if not start:
                return slice(0, stop)

    def fill(self, left: NDArray[np.intp], rng: np.random.Generator) -> slice:
        """Draw the outputs of some proposals at some more levels, inside of their cells; which."""
        levels = self._next_levels(left, rng)
        tree, leaves = self._law._tree, self._law._leaves
        bends = self._draws.bends(levels.start, levels.stop, left.view(np.uintp))
        cell = np.ascontiguousarray(self._cell[left, levels])
        (low, high), paths = tree.ranks(cell), cell.view(np.uintp)
        self._bends, self._low, self._high = bends, low, high  # of these levels alone
        self._rho[left, levels] = low + (high - low) // 2
        self._alone = _are_alone(cell)
        leaf, copied = self._cells.leaves(paths, bends, rng)
        # bends of several outputs of a cell are bounded without a look at where they are
        slot, start, blocks = leaves.for_draws(leaf, np.where(self._alone, bends, 0), rng)
        at = left, levels
        self.points[at], held = self._cells.points(
            paths, bends, leaf, copied, slot, start, *blocks, leaves.longest, rng
        )
        block = held.view(np.intp)
        self.least[at], self.most[at] = blocks.least[block], blocks.most[block]
        self.first = levels.start
        return levels

    def gained(self, left: NDArray[np.intp], levels: slice) -> NDArray[np.float64]:
        """What `bound` is above TV at most, from some levels on, which are filled now.

        All steps and all bends lose something of what is accepted, or nothing. So it is never less
        than what is left in the end. What steps to the first of these levels and before lose is at
        least what they would if they had the signs that those of cells have: a multiple of where
        the output is in its block, as those add up.
        """
        start, stop, law = levels.start, levels.stop, self._law
        m, near = law._q.size, slice(start, min(stop + 1, law._q.size))
        steps = slice(1 if start else 0, None if stop == m else -1)
        targets = law._whole[near], law._part[near]
        least, most, rho = (each[left, near] for each in (self.least, self.most, self._rho))
        fewest = path.least_deviations(least, most, *targets)[:, steps]
        by_cells = path.deviations(rho, *targets)[:, steps]
        bends, rho = self._bends, self._rho[left, levels]
        bent = 2.0 * (bends * (self._beta(left, levels) - rho))
        self.bound[left] += by_cells.sum(axis=1) + bent.sum(axis=1)
        self._fewest[left] += fewest.sum(axis=1)
        gained: NDArray[np.float64] = self.bound[left] - self._fewest[left]
        if stop == m:
            self._sign[left] = np.where(rho[:, -1] <= law._whole[-1], 1, -1)
        self._sign[left] += 2 * bends.sum(axis=1)  # of the step to the first of these levels
        if start:
            sign = self._sign[left]
            nearest = np.where(sign > 0, self.least[left, start], self.most[left, start])
            gained -= sign * (nearest - rho[:, 0])
        return gained

    def _beta(self, left: NDArray[np.intp], levels: slice) -> NDArray[np.int64]:
        """The ranks that bends are counted from."""
        lowest = np.where(self._alone, self.least[left, levels], self._low)
        highest = np.where(self._alone, self.most[left, levels], self._high)
        beta: NDArray[np.int64] = np.where(self._bends > 0, lowest, highest)
        return beta


def _are_alone(cell: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which outputs of paths are the only ones in their cells."""
    again = cell[:, 1:] == cell[:, :-1]
    alone = np.ones(cell.shape, dtype=bool)
    alone[:, 1:] &= ~again
    alone[:, :-1] &= ~again
    return alone


def _mean_of_all(log_accept: NDArray[np.float64], seen: NDArray[np.float64]) -> float:
    """About the mean of `log_accept` for all levels, of bounds for the shares that were seen."""
    ascends = log_accept > -math.inf
    levels = float(seen[ascends].sum())
    return float(log_accept[ascends].sum()) / levels if levels > 0.0 else -math.inf


def _no_release() -> np.random.Generator:
    """Random numbers that decide the cost alone: no output depends on them."""
    return np.random.Generator(np.random.PCG64(0))


def _within(
    least: NDArray[Any], most: NDArray[Any], first: NDArray[np.int64], last: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Leaves low[j], ..., high[j] - 1 are those that have ranks from first[j] to last[j]."""
    return np.searchsorted(most, first), np.searchsorted(least, last, side="right")
