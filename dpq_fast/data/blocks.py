"""Outputs in blocks of nearly equal rank, in place of one interval for each rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.order import WholeOrder


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


def blocks(order: WholeOrder, zones: Sequence[Zone]) -> Blocks:
    """All outputs whose rank is in some segments of ranks, and perhaps some around them, in blocks.

    Parameters
    ----------
    order : WholeOrder
    zones : sequence of Zone
        Each holds those before it, and its blocks are longer: by a factor that is whole. Where a
        single one has a `most` of 1, outputs of a block have one rank, and records are read. Else
        counts are all that is asked of the records.
    """
    most, first, count = zones[-1]
    if most < 2 or not order.n:
        rank, width, left = order.intervals(first, count)
        return Blocks(rank, rank, width, left)
    point, below, above = _cuts(order, zones)
    wide = point[1:] > point[:-1]
    low, high, left = above[:-1][wide], below[1:][wide], point[:-1][wide]
    segment = np.searchsorted(first, high, side="right") - 1
    inside = (segment >= 0) & (low < (first + count)[segment])
    width = (point[1:] - point[:-1])[wide].astype(np.float64)
    return Blocks(low[inside], high[inside], width[inside], left[inside])


def segments(low: NDArray[np.int64], high: NDArray[np.int64], n: int) -> tuple[NDArray[Any], ...]:
    """First ranks, and numbers of ranks, of what low[j], ..., high[j] of 0, ..., n are together."""
    low, high = np.clip(low, 0, n), np.clip(high, 0, n)
    by_low = np.argsort(low, kind="stable")
    low, high = low[by_low], np.maximum.accumulate(high[by_low])
    apart = low[1:] > high[:-1] + 1
    first = low[np.append(True, apart)]
    return first, high[np.append(apart, True)] + 1 - first


def _cuts(
    order: WholeOrder, zones: Sequence[Zone]
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Cuts around all ranks of some zones; both ends of the order where they are reached."""
    kind = np.float64 if order.lattice is None else np.int64
    ends = np.array([order.before, order.last]).astype(kind)
    # every so many records, and the first and the last one; the innermost zone of each
    every = [_places(order.n, zone) for zone in zones]
    places, inner = np.unique(np.concatenate(every), return_index=True)
    most = np.repeat([zone.most for zone in zones], [part.size for part in every])[inner]
    if places[-1] + zones[-1].most >= order.n:
        kept = places < order.n - 1
        places = np.append(places[kept], order.n - 1)
        most = np.append(most[kept], zones[-1].most)
    point, below, above = order.cuts(places, most)
    # nothing of what is cut off here has a rank in a segment
    if places[0] == 0 and point[0] > ends[0]:
        point = np.append(ends[0], point)
        below, above = np.append(0, below), np.append(0, above)
    if places[-1] == order.n - 1 and point[-1] < ends[1]:
        point = np.append(point, ends[1])
        below, above = np.append(below, order.n), np.append(above, order.n)
    return point, below, above


def _places(n: int, zone: Zone) -> NDArray[np.int64]:
    """Every so many records, around all ranks of a zone."""
    most, first, count = zone
    low = np.maximum(first // most - 2, 0)
    high = np.minimum((first + count) // most + 3, -(-n // most))
    strides = [np.arange(*ends) for ends in zip(low.tolist(), high.tolist(), strict=True)]
    places: NDArray[np.int64] = np.unique(np.concatenate(strides)) * most
    return places
