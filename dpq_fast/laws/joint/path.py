r"""The exact law of m ordered outputs under the exponential mechanism [MT07] with rank scores.

A path is a non-decreasing sequence of intervals, one for each level. Its weight is
:math:`\exp(-c \sum_{j=1}^{m+1} |i_j - i_{j-1} - n_j|)` times the measure of the outputs inside
([GJK21] §3.2). JointExp is this law at c = rate; a single-quantile exponential mechanism is the
law with one level at half its rate, since a single path's score counts every rank twice.

**Reach.** A path that leaves ``|r - Q_j| <= R`` at any level deviates by at least 2R in total:
v_0 = v_{m+1} = 0 and the score is the total variation of v_j = i_j - Q_j. So all such paths
together weigh at most exp(-2cR) V, V the measure of all outputs. That says where records matter at
all: intervals within reach are collected.

**Windows.** Of the paths within reach most stay far nearer: v is about a random walk of steps 1/c
that returns, a bridge, and strays by some sqrt(m/2)/c. The forward pass runs inside windows
``|r - Q_j| <= W``, and what leaves them within reach weighs at most U, the sum over the same chain
of intervals in any order, in cells (`csrc/stray.h`), level by level. Of cells, the records at their
ends are all that it takes. Both bounds are to be below 2^-64 of what the windows hold: then W is
the reach or less, 1/4 of it for 30 levels and 1/25 for 1,000.

What lies outside is not lost: with B = exp(-2cR) V + U, a draw is decided by the full law with
probability B / (Z_inside + B), so outputs follow it exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as intervals_kernel
from dpq_fast._kernels import stray
from dpq_fast._kernels.scan import Scan, targets
from dpq_fast.laws.joint.outside import Outside
from dpq_fast.laws.joint.plan import PLAN, Plan
from dpq_fast.laws.joint.rows import Forward, Rows, points_inside, rows_of, scan_of
from dpq_fast.orders.order import Intervals, Order, WholeOrder

# Part of the proof, as are those that follow: ln of the certificate. What is out of reach weighs
# less than 2^-64 of what windows hold, and so does what leaves them within reach.
CERTIFICATE = 64.0 * math.log(2.0)
# Ranks by which windows are wider than they are said to be.
REST = 3
# Largest loss per rank that the bound on what leaves windows is for (`csrc/stray.h`).
STEEPEST = 8.0


class TooWide(Exception):
    """Rows of single ranks would have many more entries than it seemed."""


class PathLaw:
    """The law of m ascending outputs, given one order (and so one dither).

    Parameters
    ----------
    order : Order
        The sample in order.
    q : ndarray of float64, shape (m,)
        Distinct ascending levels.
    rate : float
        Decay rate: log-weight lost per rank, c > 0.
    forward : callable
        Computes a `Scan`'s rows: ``Scan.forward``, or the FFT's way.
    reach : int, optional
        R, for tests; by default as wide as the certificate asks.
    window : int or ndarray of int64, shape (m,), optional
        W, for tests: forced, of all levels or of each. Of all, it is the reach if none is given.
    guess : int, optional
        The first R to try; by default `first_window`.
    most : int, optional
        Give up where rows would have more ranks.
    plan : Plan
        Whatever else decides the cost.

    Attributes
    ----------
    log_normalizer : float
        ln Z over all paths.

    Raises
    ------
    TooWide
        If `most` asks for it.
    """

    def __init__(
        self,
        order: Order,
        q: NDArray[np.float64],
        rate: float,
        forward: Forward = Scan.forward,
        reach: int | None = None,
        window: int | NDArray[np.int64] | None = None,
        guess: int | None = None,
        most: int | None = None,
        plan: Plan = PLAN,
    ) -> None:
        self._order = order
        self._q = q
        self._rate = rate
        self._forward = forward
        self._most, self._plan = most, plan
        self._log_volume = order.log_volume(q.size)
        self._held: Intervals | None = None  # what windows hold, if that was read at once
        self._rows: Rows | None = None
        if reach is None and isinstance(window, int):
            reach = window
        if reach is not None:
            self._run(reach, window)
        else:
            reach = first_window(order, q, rate, plan) if guess is None else guess
            self._run(reach)
            while not self._certified(self._log_beyond):
                reach = self._wider(reach)
                self._held = self._rows = None  # before there are others
                self._run(reach)
        certified = self._certified(self._log_bound - math.log(2.0))
        self.log_normalizer = (
            self._log_inside if certified else _log_add(self._log_inside, self._outside.log_total)
        )

    # Windows

    def _certified(self, log_bound: float) -> bool:
        """Whether what windows hold is 2^64 times as much."""
        return log_bound <= self._log_inside - CERTIFICATE and self._rows is not None

    def _wider(self, reach: int) -> int:
        """A reach that will do, or a larger one that holds an interval."""
        if self._rows is None:
            return 2 * reach + 1
        needed = _window_for(self._order, self._rate, self._log_volume - self._log_inside)
        return max(needed, reach + 1)

    def _run(self, reach: int, window: int | NDArray[np.int64] | None = None) -> None:
        """Forward pass over intervals within reach; no rows if a window holds no interval."""
        n = self._order.n
        low, high, first, count = intervals_kernel.windows(self._q, n, reach)
        # what is beyond reach, or nothing where that is everything
        everything = low[-1] == 0 and high[0] == n
        self._log_beyond = -math.inf
        if not everything:
            self._log_beyond = self._log_volume - 2.0 * self._rate * reach
        m = self._q.size
        is_given = window is not None
        if window is None:
            window = first_narrow(self._q, n, self._rate, reach, self._plan)
        inside = np.full(m, window)
        self._held = None
        if m > 1:  # what single levels read was collected for all of them
            self._order.prepare(first, count)
        if m == 1 or int(count.sum()) <= self._plan.most_held:
            self._held = self._order.intervals(first, count)
        is_narrow, log_strayed = (inside < reach).any(), -math.inf
        if is_narrow and not is_given:
            log_strayed = self._run_narrow(inside, reach)
        else:
            self._run_inside(inside)
            if is_narrow:
                log_strayed = self._log_strayed(inside, reach)
        self._log_bound = _log_add(self._log_beyond, log_strayed)
        self._log_escape = self._log_bound
        if self._log_bound > -math.inf:
            self._log_escape -= _log_add(self._log_bound, self._log_inside)

    def _run_narrow(self, window: NDArray[np.int64], reach: int) -> float:
        """Forward pass inside windows that have a certificate, or else within reach.

        Windows are as guessed, or twice as wide, and twice that, up to half the reach; and as long
        as that may do: what leaves windows of W hardly weighs less by more than 2c W, twice as far.

        Returns
        -------
        float
            ln of at most what leaves the windows within reach; infinite if reach is too small.
        """
        guess = window
        self._run_inside(guess)
        if self._rows is not None:  # no tie is wider than the window
            if not self._certified(self._log_beyond):
                return math.inf
            log_strayed = self._log_strayed(window, reach)
            while not self._certified(log_strayed) and (4 * window < reach).all():
                if not self._certified(log_strayed - 2.0 * self._rate * int(window.max())):
                    break
                window = 2 * window  # which hold no less
                log_strayed = self._log_strayed(window, reach)
            if self._certified(log_strayed):
                if window is not guess:
                    self._run_inside(window)
                return log_strayed
        self._run_inside(np.full_like(window, reach))
        return -math.inf

    def _run_inside(self, window: NDArray[np.int64]) -> None:
        """Forward pass inside windows."""
        self._rows = None  # those of the guess before go first
        first, last = self._windows = intervals_kernel.windows(self._q, self._order.n, window)[:2]
        if self._most is not None and int((last - first + 1).sum()) > self._most:
            raise TooWide
        self._rows = rows_of(
            self._order, self._q, self._rate, first, last, self._forward, self._held, self._plan
        )
        self._log_inside = -math.inf if self._rows is None else self._rows.log_total

    def _log_strayed(self, window: NDArray[np.int64], reach: int) -> float:
        """ln of at most what leaves windows within reach."""
        n, m = self._order.n, self._q.size
        share = self._plan.lost_beyond
        cells = stray.cells(int(window.max()), reach + REST, self._rate, m, share)
        strayed = stray.Strayed(self._q, n, self._rate, *cells, window)
        if self._held is not None:
            strayed.add(m, *self._held)
            return strayed.log_weight
        ranks = int(intervals_kernel.windows(self._q, n, reach)[3].sum())
        are_few = 2 * cells[1].size * m < ranks
        if not (are_few and self._add_borders(strayed)):
            self._add_all(strayed, reach)
        return strayed.log_weight

    def _add_borders(self, strayed: stray.Strayed) -> bool:
        """Add all levels by the records between cells alone; False if an order would read all."""
        for _ in range(self._q.size):
            records = self._order.records_at(strayed.ranks())
            if records is None:
                return False
            strayed.add_borders(records)
        return True

    def _add_all(self, strayed: stray.Strayed, reach: int) -> None:
        """Add all levels by all that is within reach."""
        order, n = self._order, self._order.n
        for levels in self._some_at_once(reach):
            low, _, first, count = intervals_kernel.windows(self._q[levels], n, reach)
            records = order.records(first, count)
            if records is None:
                strayed.add(low.size, *order.intervals(first, count))
                continue
            # those of a segment, one more than it has ranks, with the ends where they are reached
            ends = np.array([order.before, order.last], dtype=records.dtype)
            reached = int(first[0] > 0), 2 - int(first[-1] + count[-1] <= n)
            records = np.concatenate((ends[reached[0] : 1], records, ends[1 : reached[1]]))
            start = np.append(0, np.cumsum(count + 1))
            for s in np.searchsorted(first, low, side="right") - 1:
                at = strayed.ranks() - first[s]
                strayed.add_borders(records[np.clip(at, 0, count[s], out=at) + start[s]])

    def _some_at_once(self, reach: int) -> Iterator[slice]:
        """Levels, some after another, that have about `plan.at_once` ranks within reach.

        Or more, where neighbors share what is within reach.
        """
        new = np.minimum(np.diff(self._q * self._order.n, prepend=-math.inf), 2.0 * reach)
        batch = np.cumsum(new) // max(self._plan.at_once, 4 * reach)
        edges = np.flatnonzero(np.diff(batch)) + 1
        for start, stop in pairwise([0, *edges.tolist(), self._q.size]):
            yield slice(start, stop)

    @cached_property
    def _outside(self) -> Outside:
        """The paths that leave the windows."""
        return Outside(self._order, self._q, self._rate, *self._windows, self._forward)

    # Drawing

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """`size` draws: (fine) lattice points or numbers, shape (size, m), ascending in m."""
        return self.draw_ranked(rng, size)[0]

    def draw_ranked(
        self, rng: np.random.Generator, size: int
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """`draw`, and how many records are below each of the points."""
        escaped = np.ones(size, dtype=bool)  # where windows hold no interval
        if self._rows is not None:
            paths, intervals = self._rows.draw(self._log_escape, size, rng)
            escaped = paths[:, 0] == intervals.rank.size
            if not escaped.any():
                return self._inside(paths, intervals, rng)
        shape = size, self._q.size
        points = np.empty(shape, dtype=np.float64 if self._order.lattice is None else np.int64)
        ranks = np.empty(shape, dtype=np.int64)
        if not escaped.all():
            points[~escaped], ranks[~escaped] = self._inside(paths[~escaped], intervals, rng)
        for i in np.flatnonzero(escaped):
            drawn = self._outside.draw(self._log_bound, rng) or self.draw_ranked(rng, 1)
            points[i], ranks[i] = drawn[0][0], drawn[1][0]
        return points, ranks

    def _inside(
        self, paths: NDArray[np.uintp], intervals: Intervals, rng: np.random.Generator
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Points drawn inside the paths' intervals, and the intervals' ranks."""
        places = paths.view(np.intp)  # NumPy would convert each unsigned index
        return points_inside(paths, intervals.left, intervals.width, rng), intervals.rank[places]

    # Probabilities

    def log_prob(self, outputs: NDArray[Any]) -> float:
        """ln of the probability of ascending (coarse) lattice points, or density of numbers."""
        if (outputs[1:] < outputs[:-1]).any():
            return -math.inf
        lattice = self._order.lattice
        if lattice is not None and lattice.refined:
            return self._log_prob_of_cells(outputs)
        rank = np.array([self._order.rank_of(output) for output in outputs.tolist()])
        steps = deviations(rank, *targets(self._q, self._order.n))
        return float(-self._rate * steps.sum() - self.log_normalizer)

    def _log_prob_of_cells(self, outputs: NDArray[np.int64]) -> float:
        """Sum over all fine outputs that are floored to these coarse points.

        The fine intervals are cut at the borders of the outputs' cells; level j is free among the
        pieces inside its own cell.
        """
        cells = np.unique(outputs)
        assert self._order.lattice is not None
        starts, stops = (self._order.lattice.starts(cells + shift).tolist() for shift in (0, 1))
        rank, width, ends = [], [], []
        for cell, start, stop in zip(cells.tolist(), starts, stops, strict=True):
            ranks, points = self._order.cell(cell)
            edges = np.concatenate(([start - 1], points, [stop - 1]), dtype=np.int64)
            kept = np.diff(edges) > 0
            rank.append(ranks[kept])
            width.append(np.diff(edges)[kept].astype(np.float64))
            ends.append(int(kept.sum()))
        pieces = Intervals(np.concatenate(rank), np.concatenate(width), np.empty(0))
        hi = np.cumsum(ends)
        place = np.searchsorted(cells, outputs)
        lo, hi = (each[place].astype(np.uintp) for each in (hi - ends, hi))
        part = scan_of(self._order, self._q, self._rate, pieces, lo, hi)
        self._forward(part)
        return part.log_total - self.log_normalizer


def deviations(
    ranks: NDArray[np.int64], whole: NDArray[np.int64], part: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``|r_j - r_{j-1} - n_j|`` for j = 1, ..., m + 1, of ranks of shape (..., m)."""
    return np.abs(_steps(ranks, ranks, whole, part))


def least_deviations(
    least: NDArray[np.int64],
    most: NDArray[np.int64],
    whole: NDArray[np.int64],
    part: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The lowest that `deviations` of ranks from `least` to `most` have, each by itself."""
    upward, downward = _steps(most, least, whole, part), _steps(least, most, whole, part)
    fewest: NDArray[np.float64] = np.maximum(np.maximum(upward, -downward), 0.0)
    return fewest


def _steps(
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    whole: NDArray[np.int64],
    part: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The step r_j - r_{j-1} - n_j from a rank `before` to one `after` it."""
    # steps of v_j = r_j - Q_j with v_0 = v_{m+1} = 0; differences of integers first
    ends = np.zeros((*after.shape[:-1], 1), dtype=np.int64)
    rest = np.concatenate(([0.0], part, [0.0]))
    to = np.concatenate((after - whole, ends), axis=-1)
    steps: NDArray[np.float64] = to - np.concatenate((ends, before - whole), axis=-1)
    steps = steps - (rest[1:] - rest[:-1])
    return steps


def gap_of(n: int, q: NDArray[np.float64], rate: float) -> float:
    """c n_j: the mean gap between targets, in nats."""
    return max(rate * n * float(q[-1] - q[0]) / (q.size - 1), 1e-300) if q.size > 1 else math.inf


def first_window(order: Order, q: NDArray[np.float64], rate: float, plan: Plan = PLAN) -> int:
    """A guess at W from a few order statistics; a wrong one costs a second pass, no more.

    Paths within `reach` of every target deviate by at most 2 reach per level, and weigh at least
    the product of the spans times exp(-c deviation). Where reach is about 1/c, most of them
    deviate less: by `plan.typical_saving` / c per level.
    """
    n, m = order.n, q.size
    if n == 0 or (n + 1) * m <= plan.small_entries:  # an empty sample has no spans to look at
        return n
    nearest = _nearest(n, rate)
    log_mass = float(_log_masses(order, q, rate, np.full(m, nearest)).sum())
    log_mass += m * _saving(rate, nearest, plan) - plan.guess_margin
    if n < 2 * nearest * m:
        log_mass -= math.lgamma(m + 1)  # reaches overlap: outputs have to be in order, too
    return _window_for(order, rate, order.log_volume(m) - log_mass)


def likely_reach(n: int, m: int, rate: float) -> float:
    """About how far `first_window` is at most, before any record is seen: ranks.

    As if all outputs together weigh what intervals around targets do that are as long as those of
    records spread over a 64th of what is between the bounds; and twice as far.
    """
    log_spread = math.log(max(math.e, 64.0 * n * rate / m))
    return (CERTIFICATE + m * log_spread) / rate


def likely_reaches(n: int, rates: NDArray[np.float64]) -> float:
    """`likely_reach` for the widest of laws of single levels.

    A path of one level counts its rank twice, to it and from it: half the rate.
    """
    return likely_reach(n, 1, float(rates.min()) / 2.0)


def first_narrow(q: NDArray[np.float64], n: int, rate: float, reach: int, plan: Plan) -> int:
    """A guess at W, as for records spread evenly; `reach` if that saves little.

    A walk of m + 1 steps, each of a density like ``exp(-c |v|)``, returns to 0 having been beyond W
    with a probability of about ``exp(-2 W s - m ln(1 - s^2 / c^2))`` for the best slope s.
    """
    m = q.size
    if m * (min(2 * reach, n) + 1) <= plan.worth or rate > STEEPEST:
        return reach
    # bounds do not know that paths ascend: by a factor for each level where targets are close
    gap = n * float(q[-1] - q[0]) / max(m - 1, 1)
    nats = CERTIFICATE + plan.spare - m * math.log1p(-0.5 * math.exp(-rate * gap))
    slopes = np.arange(1, 20) / 20.0  # as shares of c: one of them is nearly the best
    window = float(((nats - m * np.log1p(-slopes * slopes)) / (2.0 * slopes)).min()) / rate
    if m * (min(2 * reach, n) - 2.0 * window) <= plan.worth:
        return reach
    if (reach - window) * rate / stray.WIDEST > plan.most_strayed:  # ties by counts of their own
        return reach
    cells = stray.cells(math.ceil(window), reach + REST, rate, m, plan.lost_beyond)[1].size
    saved = min(2 * reach, n) - 2.0 * window - 2 * cells
    if m * saved <= plan.worth or cells > plan.most_strayed:
        return reach
    return min(math.ceil(window), reach)


def _nearest(n: int, rate: float) -> int:
    """The reach to begin with."""
    return max(1, math.ceil(min(1.0 / rate, n + 1.0)))


def _saving(rate: float, nearest: int, plan: Plan) -> float:
    """By how much less than 2 reach most paths deviate at one level, in nats."""
    return plan.typical_saving * min(1.0, rate * nearest)


def _log_masses(
    order: Order,
    q: NDArray[np.float64],
    rate: NDArray[np.float64] | float,
    reach: NDArray[np.int64],
) -> NDArray[np.float64]:
    """ln of about what the outputs within reach of each target weigh, at one rate for all or each.

    `reach` grows where there is no output.
    """
    while True:
        log_spans = order.log_spans(intervals_kernel.probes(q, order.n, reach))
        tied = log_spans == -math.inf
        if not tied.any():
            break
        farther = tied & (reach <= order.n)
        if not farther.any():
            log_spans[tied] = math.log(order.extent / (order.n + 2.0))
            break
        reach[farther] *= 2  # tied: look farther out, but only there
    return log_spans - 2.0 * rate * reach


def _window_for(order: Order, rate: float, log_excess: float) -> int:
    """Smallest W whose certificate holds, where the windows hold exp(-log_excess) of V."""
    return math.ceil(min((CERTIFICATE + log_excess) / (2.0 * rate), order.n + 1.0))


def first_windows(
    order: Order, q: NDArray[np.float64], rates: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Guesses at W for laws of single levels: `first_window` for each alone."""
    if order.n < PLAN.small_entries:
        return np.full(q.size, order.n)
    nearest = [_nearest(order.n, rate) for rate in rates.tolist()]
    log_masses = _log_masses(order, q, rates, np.array(nearest))
    log_volume = order.log_volume(1) + PLAN.guess_margin
    laws = zip(rates.tolist(), nearest, log_masses.tolist(), strict=True)
    return np.array(
        [
            _window_for(order, rate, log_volume - log_mass - _saving(rate, reach, PLAN))
            for rate, reach, log_mass in laws
        ]
    )


def prepare(order: WholeOrder, q: NDArray[np.float64], window: NDArray[np.int64]) -> None:
    """Collect windows of laws of single levels ahead, all in one pass, where it takes a pass."""
    if order.scans:
        order.prepare(*intervals_kernel.windows_of_each(q, order.n, window))


def _log_add(a: float, b: float) -> float:
    """ln(exp(a) + exp(b))."""
    if a == b:
        return a + math.log(2.0)
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))
