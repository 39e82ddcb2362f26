"""Which rows JointExp is drawn from: of single ranks, or of cells. Both have the same law."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as kernel
from dpq_fast._kernels.scan import Scan, targets
from dpq_fast.data.order import WholeOrder
from dpq_fast.laws import path
from dpq_fast.laws.coarse import CoarseLaw
from dpq_fast.laws.path import PathLaw
from dpq_fast.laws.rows import Forward, parts_of
from dpq_fast.laws.widths import LEAST_RANKS, VERY_MANY_LEVELS, narrowest, wide_of
from dpq_fast.laws.zones import MOST_BLOCKS, zones_of

# What all levels together may lose by cells, in nats; and their extent without a lattice.
MOST_LOST, LARGEST_EXTENT = 1e11, 2.0**700
# Windows of so many ranks on each side, by a guess, are for `PathLaw` where blocks would be of a
# record each. If they have more ranks in all than that, leaves would take too much memory, and so
# wider ones are, too; and narrower ones are not, if levels are very many, whose leaves are few.
MOST_NARROW, MANY_NARROW, NARROW_OF_MANY = 8 * 2**10, 2**24, 10 * 2**10
NARROW_OF_VERY_MANY = 5 * 2**10
# Few entries are for `PathLaw`. More if rows are short: rows of cells take as long however few
# records there are.
FEW_ENTRIES = 2**17
SHORT_ROW, SHORT_ENTRIES = 2**12, 15 * 2**16
# Where cells would be of single ranks, rows of all ranks are for `PathLaw`: up to so many of these
# for each level, and so many entries.
RANKS_EACH_LEVEL, MOST_WHOLE = 40, 10 * 2**20
# Ties that are wider than the windows of `PathLaw` are for cells up to so many levels, or if there
# are wide ones.
MANY_LEVELS = 256


def law_of(
    order: WholeOrder,
    q: NDArray[np.float64],
    rate: float,
    forward: Forward = Scan.forward,
    once: bool = False,
) -> PathLaw | CoarseLaw:
    """The law of JointExp, by cells of ranks where they save most of its rows.

    If it is drawn from `once` alone, it takes less memory.
    """
    n, m = order.n, q.size
    extreme = m * rate * n > MOST_LOST or (order.lattice is None and order.extent > LARGEST_EXTENT)
    if extreme or is_short(n + 1, m):
        return PathLaw(order, q, rate, forward)
    guess = path.first_window(order, q, rate)
    if is_short(2 * guess + 1, m):
        return PathLaw(order, q, rate, forward, guess=guess)
    first, count = kernel.windows(q, n, guess)[2:]
    whole = targets(q, n)[0]
    single = narrowest(n, q, rate) < rate * LEAST_RANKS
    narrow = path.first_narrow(q, n, rate, guess)
    ranks = int(count.sum())
    if ranks > MOST_BLOCKS and zones_of(order, whole, whole, first, count, rate)[0].most == 1:
        most = NARROW_OF_MANY if ranks > MANY_NARROW else MOST_NARROW
        if m >= VERY_MANY_LEVELS:
            most = NARROW_OF_VERY_MANY
        single |= bool(narrow.mean() <= most)
    tied = (single or not order.scans) and _is_tied(order, q, narrow, guess)
    wide = wide_of(n, q, rate, m * min(2.0 * guess, n)) if tied else []
    if wide and m > MANY_LEVELS:  # no narrower ones than these
        *wide, last = wide
        return CoarseLaw(order, q, rate, forward, guess, **last._asdict(), wide=wide, once=once)
    few = n <= RANKS_EACH_LEVEL * m and m * (n + 1) <= MOST_WHOLE
    if single and not wide and (m > MANY_LEVELS or not tied) and _may_be_narrow(n, q, narrow):
        try:
            return PathLaw(order, q, rate, forward, guess=guess, narrow=not (tied or few))
        except path.TooWide:  # gaps or ties draw paths far away
            pass
    return CoarseLaw(order, q, rate, forward, guess, wide=wide, once=once)


def _may_be_narrow(n: int, q: NDArray[np.float64], window: NDArray[np.int64]) -> bool:
    """Whether rows of `PathLaw` are not too many, or there at some levels at a time."""
    first, last = kernel.windows(q, n, window)[:2]
    return int((last - first).sum()) <= path.MOST_GROWN or len(parts_of(first, last)) > 1


def is_short(ranks: int, m: int) -> bool:
    """Whether m rows of so many ranks are for `PathLaw`."""
    return m * ranks <= (SHORT_ENTRIES if ranks <= SHORT_ROW else FEW_ENTRIES)


def _is_tied(
    order: WholeOrder, q: NDArray[np.float64], window: NDArray[np.int64], reach: int
) -> bool:
    """Whether windows of `PathLaw` would have to be wider for a tie, and cells may do."""
    if (window >= reach).all():
        return False
    places = kernel.probes(q, order.n, window)
    return bool((order.log_spans(places) == -math.inf).any())
