"""How long the blocks of outputs are to be, by zones around paths.

That decides what proposals cost (`dpq_fast.laws.coarse`), and never the law: a bend in a block
loses as much as the block is long, and the farther away, the more may be lost.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.blocks import Zone, segments
from dpq_fast.data.dither import DitheredOrder
from dpq_fast.data.order import WholeOrder
from dpq_fast.laws.widths import MANY_RANKS, TINY, away_at, wider_at

# What all bends may lose by blocks, in nats, and more for each nat from where paths are; a later
# pair where more blocks than that would be needed.
BENDS = ((0.5, 1.0), (1.0, 1.0), (2.0, 1.0), (4.0, 1.0), (8.0, 1.0))
MANY_BLOCKS = 2**19
# And of more records than that, where it is memory that counts: more is lost, or blocks are of a
# record or two and lose less than these nats say; and where levels are too many for that.
MOST_RANKS = 2**23
BENDS_OF_MANY, MOST_BENDS, MOST_BLOCKS = (4.0, 1.5), 16.0, 3 * 2**20
BENDS_OF_MOST, RANKS_EACH = (4.0, 0.75), 8
# Blocks of a dithered order have so many nats, the first ones that make up no more blocks than
# MANY_BLOCKS or so many for each pair of levels; to so many sqrt(m) nats around targets, or less of
# the first levels and the last ones, and more farther away. In an order that scans none has less
# than a record, which may lose so many nats.
PART_BENDS = ((0.5, 300), (1.0, 300), (2.0, 300), (4.0, 1_000), (8.0, 1_000))
SPREAD, MOST_PART_BENDS = 1.5, 8.0
# Farther away blocks may lose such a share of the way there. Where targets are more nats apart than
# that, the second number over sqrt(m), if it is less: x nats from a target bends lose half of the
# share times x - begins, and paths of a bridge have paid x^2 / m, so they would be drawn there.
PART_FARTHER, PART_FARTHER_SQRT, FAR_APART = 0.9, 14.2, 100.0
# Leaves are at most so many times as wide as the narrowest. They become wider where blocks do, and
# where cells are wider than the narrowest by that.
WIDER, WIDENED = 64.0, (2.0, 4.0, 8.0, 16.0, 32.0)
# A block has no more nats than that.
WIDEST_BLOCK = 8.0
# Shorter ones, and of many records much shorter ones, would be of a record each and cost more than
# these do, which are read where they are few, and where there would be too many blocks; rows of
# single ranks take over there if they have no more entries than `MANY_RANKS`.
LEAST_BLOCK, LEAST_OF_MANY = 4, 2


def zones_of(
    order: WholeOrder,
    below: NDArray[np.int64],
    above: NDArray[np.int64],
    first: NDArray[np.int64],
    count: NDArray[np.int64],
    rate: float,
    growth: float = 0.0,
) -> list[Zone]:
    """How long blocks are in some segments of ranks, where paths are from below[j] to above[j].

    Blocks are twice as long where twice as much may be lost, and leaves of dithered records where
    cells may be twice as wide. One zone of single ranks if these are few, or if blocks would be too
    many.
    """
    n, ranks = order.n, int(count.sum())
    each_bend = rate * below.size
    if isinstance(order, DitheredOrder):
        return _zones_of_parts(order, below, above, Zone(1, first, count), rate, growth)
    choices, least = [(*pair, MANY_BLOCKS) for pair in BENDS], LEAST_BLOCK
    if ranks > MOST_RANKS:
        least = LEAST_OF_MANY
        choices += [(*BENDS_OF_MANY, MOST_BLOCKS), (*BENDS_OF_MOST, ranks // RANKS_EACH)]
    for bends, farther, most in choices:
        size = math.floor(min(bends / each_bend, ranks + 1.0))
        if size < least and ranks <= MANY_RANKS:
            break
        if ranks > MOST_RANKS and least * each_bend <= MOST_BENDS:
            size = max(size, least)
        if size >= least:
            zones = _doubling(n, below, above, rate, Zone(size, first, count), farther)
            if _count(zones) <= most:
                return zones
    return [Zone(1, first, count)]


def _zones_of_parts(
    order: DitheredOrder,
    below: NDArray[np.int64],
    above: NDArray[np.int64],
    whole: Zone,
    rate: float,
    growth: float,
) -> list[Zone]:
    """`zones_of` a dithered order, whose blocks are not kept: there may be more of them."""
    n, m = order.n, below.size
    if order.scans and rate * m > MOST_PART_BENDS:
        return [whole]
    spread = bridge(m, rate, n)
    begins = float(spread.mean()) * rate
    below, above = below - spread, above + spread
    are_apart = rate * float(above[-1] - below[0]) > FAR_APART * (m - 1)
    farther = min(PART_FARTHER, PART_FARTHER_SQRT / math.sqrt(m)) if are_apart else PART_FARTHER
    for bends, each in PART_BENDS:
        records = max(int(order.scans), math.floor(min(bends / (rate * m), n)))
        zones = _doubling(
            n, below, above, rate, whole._replace(most=records + 1), farther, begins, growth
        )
        if _count(zones) <= max(MANY_BLOCKS, each * m**2):
            break
    return zones


def bridge(m: int, rate: float, n: int) -> NDArray[np.int64]:
    """So many ranks from its targets a path is at no cost: a bridge."""
    steps = np.arange(1.0, m + 1.0)
    away = 2.0 * SPREAD / rate * np.sqrt(steps * steps[::-1] / (m + 1.0))
    return np.ceil(np.minimum(away, n + 1.0)).astype(np.int64)


def _doubling(
    n: int,
    below: NDArray[np.int64],
    above: NDArray[np.int64],
    rate: float,
    whole: Zone,
    farther: float,
    begins: float = 0.0,
    growth: float = 0.0,
) -> list[Zone]:
    """Zones of a whole one, whose `most` is that of the innermost.

    The innermost one begins so many nats from where paths are.
    """
    zones: list[Zone] = []
    size, first, count, wider = whole
    away, ranks, m = 0, int(count.sum()), below.size
    # so far that a block may lose twice as much; and that cells may be so many times as wide
    doubled = math.ceil(size * m / farther)
    widened = np.full(len(WIDENED), math.inf)
    if growth > TINY:
        with np.errstate(over="ignore"):
            widened = np.ceil(away_at(np.array(WIDENED) ** 2 - 1.0, m, growth) / rate)
    while True:
        may_double = 2.0 * size * rate <= WIDEST_BLOCK
        others = widened[np.array(WIDENED) > wider].min(initial=n + 1)
        until = int(min(doubled if may_double else n + 1, others))
        if until > n:
            break
        inner = segments(below - until, above + until, n)
        if int(inner[1].sum()) >= ranks:
            break
        zones.append(Zone(size, inner[0], inner[1], wider))
        if may_double and until == doubled:
            size, doubled = 2 * size, until + math.ceil(2 * size * m / farther)
        away = until
        grown = min(float(wider_at(begins + away * rate, m, growth)), WIDER)
        wider = 2.0 ** math.floor(math.log2(grown))
    return [*zones, Zone(size, first, count, wider)]


def _count(zones: list[Zone]) -> int:
    """About how many blocks some zones have."""
    ranks = np.diff([float(zone.ranks.sum()) for zone in zones], prepend=0.0)
    return math.ceil(float((ranks / [zone.most for zone in zones]).sum()))
