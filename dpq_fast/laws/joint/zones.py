"""How long the blocks of outputs are to be, by zones around paths.

That decides what proposals cost (`dpq_fast.laws.joint.coarse`), and never the law: a bend in a
block loses as much as the block is long, and the farther away, the more may be lost.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpq_fast.laws.joint.plan import Plan
from dpq_fast.laws.joint.widths import wider_at
from dpq_fast.orders.blocks import Zone, segments
from dpq_fast.orders.dithered import DitheredOrder
from dpq_fast.orders.order import WholeOrder


def zones_of(
    order: WholeOrder,
    below: NDArray[np.int64],
    above: NDArray[np.int64],
    first: NDArray[np.int64],
    count: NDArray[np.int64],
    rate: float,
    plan: Plan,
    growth: float = 0.0,
) -> list[Zone]:
    """How long blocks are in some segments of ranks, where paths are from below[j] to above[j].

    Blocks are twice as long where twice as much may be lost, and leaves of dithered records are
    wider there, as cells are. One zone of single ranks if blocks would be shorter than
    `plan.least_block`.
    """
    n, m, ranks = order.n, below.size, int(count.sum())
    least, most = plan.least_block, plan.most_blocks
    zones = single = [Zone(1, first, count)]
    in_parts = isinstance(order, DitheredOrder)
    if in_parts:
        if order.scans and rate * m > plan.most_scanned:
            return single
        least, most = 1 + int(order.scans), max(plan.most_blocks, plan.most_parts * m**2)
        spread = _bridge(m, rate, n, plan.spread)
        below, above = below - spread, above + spread
    for bends in plan.bends:
        size = math.floor(min(bends / (rate * m), n + 1.0))
        if in_parts:
            size = max(size + 1, least)
        elif size < least and ranks <= plan.most_read:
            break
        if size >= least:
            inner = Zone(size, first, count)
            zones = _doubling(n, below, above, rate, inner, growth if in_parts else 0.0, plan)
            if _count(zones) <= most:
                break
    return zones


def _bridge(m: int, rate: float, n: int, spread: float) -> NDArray[np.int64]:
    """So many ranks from its targets a path is at no cost."""
    steps = np.arange(1.0, m + 1.0)
    away = 2.0 * spread / rate * np.sqrt(steps * steps[::-1] / (m + 1.0))
    return np.ceil(np.minimum(away, n + 1.0)).astype(np.int64)


def _doubling(
    n: int,
    below: NDArray[np.int64],
    above: NDArray[np.int64],
    rate: float,
    whole: Zone,
    growth: float,
    plan: Plan,
) -> list[Zone]:
    """Zones of a whole one, whose `most` is that of the innermost."""
    zones: list[Zone] = []
    size, first, count, wider = whole
    m, ranks = below.size, int(count.sum())
    until = math.ceil(size * m / plan.bends_farther)
    while until <= n and 2.0 * size * rate <= plan.widest_block:
        inner = segments(below - until, above + until, n)
        if int(inner[1].sum()) >= ranks:
            break
        zones.append(Zone(size, inner[0], inner[1], wider))
        wider = 2.0 ** math.floor(math.log2(wider_at(until * rate, m, growth)))
        size, until = 2 * size, until + math.ceil(2 * size * m / plan.bends_farther)
    return [*zones, Zone(size, first, count, wider)]


def _count(zones: list[Zone]) -> int:
    """About how many blocks some zones have."""
    ranks = np.diff([float(zone.ranks.sum()) for zone in zones], prepend=0.0)
    return math.ceil(float((ranks / [zone.most for zone in zones]).sum()))
