"""Outputs in blocks of nearly equal rank, in place of one interval for each rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.order import CutOrder, Stretch, WholeOrder


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
    """

    most: int
    first: NDArray[np.int64]
    ranks: NDArray[np.int64]


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
    _, first, count = zones[-1]
    point, below, above = _cuts(order, zones)
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


def _cuts(
    order: CutOrder, zones: Sequence[Zone]
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Cuts around all ranks of some zones; both ends of the order where they are reached."""
    around = [stretch_of(order.n, zone) for zone in zones]
    kind = np.float64 if order.lattice is None else np.int64
    before, last = np.array([order.before, order.last]).astype(kind)
    point, below, above = order.cuts(around)
    # nothing of what is cut off here has a rank in a segment; array by array, as they may be long
    if around[-1].first[0] < 0 and point[0] > before:
        point = np.append(before, point)
        below = np.append(0, below)
        above = np.append(0, above)
    if around[-1].last[-1] >= order.n and point[-1] < last:
        point = np.append(point, last)
        below = np.append(below, order.n)
        above = np.append(above, order.n)
    return point, below, above


def stretch_of(n: int, zone: Zone) -> Stretch:
    """What is to be cut around all ranks of a zone."""
    most, first, count = zone
    low = np.maximum(first // most - 2, 0)
    high = np.minimum((first + count) // most + 3, -(-n // most))
    low = np.maximum(low, np.append(0, high[:-1]))
    held = low < high
    return Stretch(most, (low[held] - 1) * most, high[held] * most)
