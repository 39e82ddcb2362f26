"""The rows of a forward pass over windows of ranks: all of them, or some levels at a time.

Rows of many levels take memory, 16 bytes an entry and 24 an interval, and a draw looks at each row
once, from the last to the first. So where they are many, levels are cut into parts. The forward
pass goes through one part after another and keeps of each only what the next one goes on from; to
draw, each part is computed once more, the last one first.

A part begins with the last level of the part before, and with all levels before it that may have an
interval in common with that one: their rows are given. So every step to a level of the part, and
every run of outputs in one interval that ends there, is among its rows, and paths have the same law
however they are parted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as intervals_kernel
from dpq_fast._kernels import path as path_kernel
from dpq_fast._kernels import uniform
from dpq_fast._kernels.scan import KINDS, Scan
from dpq_fast.laws.joint.plan import PLAN, Plan
from dpq_fast.orders.blocks import segments
from dpq_fast.orders.order import Intervals, Order

Forward = Callable[[Scan], None]


class NoInterval(Exception):
    """A window holds no interval of positive width."""


class Rows(Protocol):
    """What is drawn from."""

    @property
    def log_total(self) -> float:
        """ln of the weight of all paths inside of the windows."""

    def draw(
        self, log_escape: float, size: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.uintp], Intervals]:
        """`size` paths, shape (size, m), through intervals, and these T intervals.

        With probability exp(log_escape) a path escapes: it has T everywhere, which is no interval.
        """


class _Whole(NamedTuple):
    """All rows."""

    scan: Scan
    intervals: Intervals

    @property
    def log_total(self) -> float:
        """As of `Rows`."""
        total: float = self.scan.log_total
        return total

    def draw(
        self, log_escape: float, size: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.uintp], Intervals]:
        """As of `Rows`."""
        paths: NDArray[np.uintp] = path_kernel.draw(self.scan, log_escape, size, rng)[0]
        return paths, self.intervals


class _Parted:
    """Some levels at a time.

    Parameters
    ----------
    order, q, rate, first, last
        As for `rows_of`.
    parts : list of slice
        Levels of each part, those that are given included.
    """

    def __init__(
        self,
        order: Order,
        q: NDArray[np.float64],
        rate: float,
        first: NDArray[np.int64],
        last: NDArray[np.int64],
        parts: list[slice],
    ) -> None:
        self._order = order
        self._q = q
        self._rate = rate
        self._ends = first, last
        self._parts = parts
        for self._kind in KINDS:
            self._given: list[Any] = [None]
            if self._forward():
                break

    def _forward(self) -> bool:
        """The whole pass; whether its numbers would do."""
        for i, part in enumerate(self._parts):
            rows = self._rows(i)
            if not rows.scan.go_on(self._given[i], part.stop == self._q.size, self._kind):
                return False
            if part.stop < self._q.size:
                self._given.append(rows.scan.rows_from(self._parts[i + 1].start - part.start))
        self._last = rows
        self.log_total: float = rows.log_total
        return True

    def _rows(self, i: int) -> _Whole:
        """Those of a part, still to be computed."""
        levels = self._parts[i]
        first, last = (each[levels] for each in self._ends)
        rows = _uncomputed(self._order, self._q[levels], self._rate, first, last)
        if rows is None:
            raise NoInterval
        return rows

    def _computed(self, i: int) -> _Whole:
        """Those of a part, once more."""
        if i + 1 == len(self._parts):
            return self._last
        rows = self._rows(i)
        rows.scan.go_on(self._given[i], False, self._kind)
        return rows

    def draw(
        self, log_escape: float, size: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.uintp], Intervals]:
        """As of `Rows`."""
        m = self._q.size
        escaped = np.zeros(size, dtype=bool)
        if log_escape > -np.inf:
            escaped = uniform.log_uniforms(size, rng) < log_escape
        left = np.where(escaped, 0, m)
        kinds = np.int64, np.float64, np.float64 if self._order.lattice is None else np.int64
        drawn = Intervals._make(np.zeros((size, m), dtype=kind) for kind in kinds)
        for i in reversed(range(len(self._parts))):
            left = self._draw_part(i, left, drawn, rng)
        return _distinct(drawn, escaped)

    def _draw_part(
        self, i: int, left: NDArray[np.intp], drawn: Intervals, rng: np.random.Generator
    ) -> NDArray[np.intp]:
        """Draw the levels of a part that are left, into `drawn`; how many are left then.

        The last level of the part before is drawn, too, and no other one of it but by runs.
        """
        part = self._parts[i]
        stop = self._parts[i - 1].stop - 1 if i else 0
        scan, intervals = self._computed(i)
        # what is drawn already, among these intervals
        paths = np.searchsorted(intervals.rank, drawn.rank[:, part]).astype(np.uintp)
        levels = np.maximum(left - part.start, 0).astype(np.uintp)
        path_kernel.go_on(scan, stop - part.start, levels, paths, rng)
        now = np.where(left > stop, part.start + levels.view(np.intp), left)
        level = np.arange(part.start, part.stop)
        new = (level >= now[:, None]) & (level < left[:, None])
        places = paths[new].view(np.intp)
        for each, known in zip(drawn, intervals, strict=True):
            each[:, part][new] = known[places]
        return now


def _distinct(drawn: Intervals, escaped: NDArray[np.bool_]) -> tuple[NDArray[np.uintp], Intervals]:
    """Paths through the intervals that were drawn, each of which has a rank of its own."""
    inside = Intervals._make(each[~escaped].ravel() for each in drawn)
    _, first, place = np.unique(inside.rank, return_index=True, return_inverse=True)
    paths = np.full(drawn.rank.shape, first.size, dtype=np.uintp)
    paths[~escaped] = place.reshape(-1, drawn.rank.shape[1])
    return paths, Intervals._make(each[first] for each in inside)


def scan_of(
    order: Order,
    q: NDArray[np.float64],
    rate: float,
    intervals: Intervals,
    lo: NDArray[np.uintp],
    hi: NDArray[np.uintp],
) -> Scan:
    """Rows with level j inside intervals lo[j], ..., hi[j] - 1; still to be computed."""
    rank, width, _ = intervals
    return Scan(rank, width, order.lattice is not None, q, order.n, lo, hi, rate)


def points_inside(
    paths: NDArray[np.uintp],
    left: NDArray[Any],
    width: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[Any]:
    """Points drawn inside the intervals of paths, ascending: on a lattice, or numbers."""
    lattice = left.dtype == np.int64
    points = path_kernel.points_lattice if lattice else path_kernel.points_continuous
    return points(paths, left, width, rng)


def _uncomputed(
    order: Order,
    q: NDArray[np.float64],
    rate: float,
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    held: Intervals | None = None,
) -> _Whole | None:
    """Rows of levels q inside of windows, still to be computed; None if one holds no interval."""
    intervals = held
    if intervals is None:
        intervals = order.intervals(*segments(first, last, order.n))
    ranges = intervals_kernel.ranges(first, last, intervals.rank)
    if ranges is None:
        return None
    return _Whole(scan_of(order, q, rate, intervals, *ranges), intervals)


def rows_of(
    order: Order,
    q: NDArray[np.float64],
    rate: float,
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    forward: Forward,
    held: Intervals | None = None,
    plan: Plan = PLAN,
) -> Rows | None:
    """The rows of levels q, each inside its window; None if one holds no interval.

    Parameters
    ----------
    order : Order
    q : ndarray of float64, shape (m,)
        Distinct ascending levels.
    rate : float
        Loss of log-weight per rank.
    first, last : ndarray of int64, shape (m,)
        Ranks first[j], ..., last[j] are those of level j; both ascend.
    forward : callable
        Computes a scan's rows; if it is not ``Scan.forward``, all at once.
    held : Intervals, optional
        If they are held already; rows that are computed by parts read theirs again.
    plan : Plan
        How many entries are held, and computed, at once.
    """
    if forward is Scan.forward and q.size > 1:
        parts = parts_of(first, last, plan)
        if len(parts) > 1:
            try:
                return _Parted(order, q, rate, first, last, parts)
            except NoInterval:
                return None
    rows = _uncomputed(order, q, rate, first, last, held)
    if rows is not None:
        forward(rows.scan)
    return rows


def parts_of(first: NDArray[np.int64], last: NDArray[np.int64], plan: Plan = PLAN) -> list[slice]:
    """Levels of each part, those that are given included; of ranks first[j], ..., last[j].

    A part has at least as many new entries as are given. A single one where rows are few, or where
    two parts, as there are at once while drawing, would hold half of them.
    """
    m = first.size
    ends = np.append(0, np.cumsum(last - first + 1))  # entries up to each level
    parts, start, stop, given = [], 0, 0, 0
    while ends[-1] > plan.most_held and stop < m:
        new = max(plan.at_once, given)
        stop = min(int(np.searchsorted(ends, ends[start] + given + new)), m)
        if 4 * (ends[stop] - ends[start]) > ends[-1]:
            return [slice(0, m)]
        parts.append(slice(start, stop))
        start = int(np.searchsorted(last, first[stop - 1]))
        given = int(ends[stop] - ends[start])
    return parts or [slice(0, m)]
