"""Outputs in blocks of nearly equal rank, in place of one interval for each rank."""

from __future__ import annotations

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


def blocks(
    order: WholeOrder, first: NDArray[np.int64], count: NDArray[np.int64], most: int
) -> Blocks:
    """All outputs whose rank is in some segments of ranks, and perhaps some around them, in blocks.

    Parameters
    ----------
    order : WholeOrder
    first, count : ndarray of int64, shape (S,)
        Segment s holds the ranks first[s], ..., first[s] + count[s] - 1. They ascend, apart.
    most : int
        Outputs of a block have fewer than so many ranks, tied records apart; with 1 they have one
        rank, and records are read. Else counts are all that is asked of the records.
    """
    if most < 2 or not order.n:
        rank, width, left = order.intervals(first, count)
        return Blocks(rank, rank, width, left)
    point, below, above = _cuts(order, first, count, most)
    wide = point[1:] > point[:-1]
    low, high, left = above[:-1][wide], below[1:][wide], point[:-1][wide]
    segment = np.searchsorted(first, high, side="right") - 1
    inside = (segment >= 0) & (low < (first + count)[segment])
    width = (point[1:] - point[:-1])[wide].astype(np.float64)
    return Blocks(low[inside], high[inside], width[inside], left[inside])


def _cuts(
    order: WholeOrder, first: NDArray[np.int64], count: NDArray[np.int64], most: int
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Cuts around all ranks of some segments; both ends of the order where they are reached."""
    kind = np.float64 if order.lattice is None else np.int64
    ends = np.array([order.before, order.last]).astype(kind)
    # every so many records, and the first and the last one
    low = np.maximum(first // most - 2, 0)
    high = np.minimum((first + count) // most + 3, -(-order.n // most))
    strides = [np.arange(*ends) for ends in zip(low.tolist(), high.tolist(), strict=True)]
    places = np.unique(np.concatenate(strides)) * most
    if places[-1] + most >= order.n:
        places = np.append(places[places < order.n - 1], order.n - 1)
    point, below, above = order.cuts(places, most)
    # nothing of what is cut off here has a rank in a segment
    if places[0] == 0 and point[0] > ends[0]:
        point = np.append(ends[0], point)
        below, above = np.append(0, below), np.append(0, above)
    if places[-1] == order.n - 1 and point[-1] < ends[1]:
        point = np.append(point, ends[1])
        below, above = np.append(below, order.n), np.append(above, order.n)
    return point, below, above
