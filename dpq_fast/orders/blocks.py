"""Outputs in blocks of nearly equal rank, in place of one interval for each rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.orders.order import CutOrder, Cuts, Stretch, WholeOrder


class Blocks(NamedTuple):
    """Blocks of outputs, ascending, each of positive width.

    Attributes
    ----------
    least, most : ndarray of int64, shape (T,)
        Ranks of the outputs inside.
    width : ndarray of float64, shape (T,)
        As of `Intervals`.
    left : ndarray of int64 or float64, shape (T,)
        The block starts after this point.
    """

    least: NDArray[np.int64]
    most: NDArray[np.int64]
    width: NDArray[np.float64]
    left: NDArray[Any]


class Zone(NamedTuple):
    """Segments of ranks, and how short blocks are inside of them.

    Attributes
    ----------
    most : int
        Outputs of a block have fewer than so many ranks, tied records apart.
    first, ranks : ndarray of int64, shape (S,)
        Segment s holds the ranks first[s], ..., first[s] + ranks[s] - 1. They ascend, apart.
    wider : float
        So many times as many ranks may be told apart no further, of dithered records.
    """

    most: int
    first: NDArray[np.int64]
    ranks: NDArray[np.int64]
    wider: float = 1.0


def intervals(order: WholeOrder, zone: Zone) -> Blocks:
    """All outputs whose rank is in some segments, in blocks of one rank: records are read."""
    rank, width, left = order.intervals(zone.first, zone.ranks)
    return Blocks(rank, rank, width, left)


def blocks(order: CutOrder, zones: Sequence[Zone]) -> Blocks:
    """All outputs whose rank is in some segments of ranks, and perhaps some around them, in blocks.

    Counts are all that is asked of the records.

    Parameters
    ----------
    order : CutOrder
        Of at least one record.
    zones : sequence of Zone
        Each holds those before it, and its blocks are longer: by a factor that is whole. Each has a
        `most` of at least 2.
    """
    _, first, count, _ = zones[-1]
    around = [stretch_of(order.n, zone) for zone in zones]
    cuts = with_ends(order.cuts(around), around, order.n, order.before, order.last)
    point, below, above = cuts
    least, greatest, left = above[:-1], below[1:], point[:-1]
    width = np.subtract(point[1:], left, dtype=np.float64)
    inside = np.zeros(width.size, dtype=bool)  # what has a rank in a segment
    start, stop = np.searchsorted(greatest, first), np.searchsorted(least, first + count)
    for run in map(slice, start.tolist(), stop.tolist()):
        inside[run] = True
    inside &= width > 0.0  # but between two zeros of both signs
    if not inside.all():
        least, greatest = least[inside], greatest[inside]
        width, left = width[inside], left[inside]
    return Blocks(least, greatest, width, left)


def segments(low: NDArray[np.int64], high: NDArray[np.int64], n: int) -> tuple[NDArray[Any], ...]:
    """First ranks, and numbers of ranks, of what low[j], ..., high[j] of 0, ..., n are together."""
    low, high = np.clip(low, 0, n), np.clip(high, 0, n)
    by_low = np.argsort(low, kind="stable")
    low, high = low[by_low], np.maximum.accumulate(high[by_low])
    apart = low[1:] > high[:-1] + 1
    first = low[np.append(True, apart)]
    return first, high[np.append(apart, True)] + 1 - first


def with_ends(cuts: Cuts, around: Sequence[Stretch], n: int, before: float, last: float) -> Cuts:
    """Cuts, and those at both ends of an order of n records where they are reached.

    Nothing of what is cut off there has a rank in a segment.
    """
    point, below, above = cuts  # array by array, as they may be long
    if around[-1].first[0] < 0 and point[0] > before:
        point = np.append(point.dtype.type(before), point)
        below = np.append(0, below)
        above = np.append(0, above)
    if around[-1].last[-1] >= n and point[-1] < last:
        point = np.append(point, point.dtype.type(last))
        below = np.append(below, n)
        above = np.append(above, n)
    return Cuts(point, below, above)


def stretch_of(n: int, zone: Zone) -> Stretch:
    """What is to be cut around all ranks of a zone."""
    most, first, count, _ = zone
    low = np.maximum(first // most - 2, 0)
    high = np.minimum((first + count) // most + 3, -(-n // most))
    low = np.maximum(low, np.append(0, high[:-1]))
    held = low < high
    return Stretch(most, (low[held] - 1) * most, high[held] * most)
