"""Windows for rows of cells of ranks, wherever gaps and ties draw paths: what passes some ranks.

Ranks are cut into cells of about half a nat, the same at all levels. For each block of cells and
each level, `csrc/passing.h` has a bound for the weight of all paths that have an output there.
Windows hold the blocks that matter. Paths that leave them pass one of the others, and so they weigh
no more than these blocks' bounds together. The records at the ends of cells, and some between,
say what outputs there weigh: no others are read, and no leaves are needed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import passing as kernel
from dpq_fast._kernels.scan import targets
from dpq_fast.data.order import WholeOrder
from dpq_fast.laws.path import CERTIFICATE, gap_of

# What bounds may lose by cells, in nats, and each level of the square of a cell's nats. Cells are
# up to so many times as wide where each level would have more of them than that, or all levels.
LOST, EACH, WIDER, MOST_CELLS, MOST_IN_ALL = 48.0, 0.16, 3.0, 12 * 2**10, 2**25
# But cells of few levels have no more nats than that, nor any than this.
MOST_NATS, WIDEST = 3.0, 7.0
# A cell is looked at by so many parts of it, for bends. No more than so many parts in all.
PARTS, MOST_PARTS = 8, 2**21
# Targets are so many nats apart, and so many for each level, or outputs of many levels would be at
# one place, where rows are to be of the same cells; and at most so many cells: more have windows by
# a walk.
LEAST_APART, LEAST_EACH, MOST_APART = 1.0, 1e-3, 24
# Cells that hold so many times as much as others have a list, so many of them at most.
HEAVY, MOST_HEAVY = 4.0, 8
# Widths that are tried for where targets lie: so much narrower and wider, so many of them.
ALIGNED = 0.9, 1.1, 64
# A power of two: volumes are scaled to be no more.
LARGEST = 190
# Rows are expected to lose so many nats, and more for windows' blocks.
ROWS_LOSE = 18.0
# Rounding of targets, and of bounds.
ROUNDING = 1e-3
# Paths are between ranks that so large a share of them is beyond, on each side.
TAIL = 1.0 / 40.0


class Places(NamedTuple):
    """Blocks of ranks inside of windows, level after level.

    Attributes
    ----------
    start : ndarray of uintp, shape (m + 1,)
        Level j has the blocks start[j], ..., start[j + 1] - 1.
    block : ndarray of intp, shape (C,)
    lost : ndarray of float64, shape (C,)
        By how many nats less paths weigh that pass there than where most do.
    """

    start: NDArray[np.uintp]
    block: NDArray[np.intp]
    lost: NDArray[np.float64]


class Passing(NamedTuple):
    """What paths weigh at most that pass blocks of ranks, within reach.

    Attributes
    ----------
    log_all : float
        ln of what all paths weigh at most.
    log_passing : ndarray of float32, shape (m, B)
        ln of what those weigh at most that have output j in a block, less that.
    ranks : int
        Block b has the ranks b ranks, ..., (b + 1) ranks - 1.
    densities : ndarray of float64, shape (B,)
        ln of the volume for each nat.
    lost : float
        What bounds lose by cells, about, in nats.
    """

    log_all: float
    log_passing: NDArray[np.float32]
    ranks: int
    densities: NDArray[np.float64]
    lost: float

    def windows(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
        """Ranks first[j], ..., last[j] that hold nearly all, and ln of what leaves them at most.

        All but 2^-64 of what all paths weigh, if bounds lose as much as it seems.
        """
        m = self.log_passing.shape[0]
        spare = CERTIFICATE + self.lost + ROWS_LOSE + math.log(2.0 * m)
        weight = np.exp(np.minimum(self.log_passing.astype(np.float64) + spare, 64.0))
        first = _until_one(weight)
        last = weight.shape[1] - 1 - _until_one(weight[:, ::-1])
        block = np.arange(weight.shape[1])
        inside = (block >= first[:, np.newaxis]) & (block <= last[:, np.newaxis])
        strayed = float(weight.sum(where=~inside))
        log_strayed = -math.inf
        if strayed > 0.0:
            log_strayed = self.log_all + math.log(strayed) - spare + ROUNDING
        return first * self.ranks, np.minimum((last + 1) * self.ranks - 1, n), log_strayed

    def near(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ranks between which paths are likely to be."""
        share = np.exp(-self._lost())
        share /= TAIL * share.sum(axis=1, keepdims=True)
        first = _until_one(share)
        last = share.shape[1] - 1 - _until_one(share[:, ::-1])
        return first * self.ranks, np.minimum((last + 1) * self.ranks - 1, n)

    def places(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> Places:
        """The blocks that have ranks first[j], ..., last[j]."""
        low, high = first // self.ranks, last // self.ranks
        block = np.arange(self.log_passing.shape[1])
        inside = (block >= low[:, np.newaxis]) & (block <= high[:, np.newaxis])
        start = np.append(0, np.cumsum(high - low + 1)).astype(np.uintp)
        return Places(start, inside.nonzero()[1], self._lost()[inside])

    def _lost(self) -> NDArray[np.float64]:
        # no more than all paths: some bounds are more, where many outputs are in one cell
        bounds = np.minimum(self.log_passing, 0.0)
        lost: NDArray[np.float64] = (bounds.max(axis=1, keepdims=True) - bounds).astype(np.float64)
        return lost


def _until_one(weight: NDArray[np.float64]) -> NDArray[np.int64]:
    """The first place of each row up to which the sum is 1 or more."""
    place: NDArray[np.int64] = (weight.cumsum(axis=1) >= 1.0).argmax(axis=1)
    return place


def passing(order: WholeOrder, q: NDArray[np.float64], rate: float, reach: int) -> Passing | None:
    """Bounds for all blocks within reach; None if there would be too many, or ranks too few.

    And if an order would read all records for that.
    """
    n, m = order.n, q.size
    if gap_of(n, q, rate) < max(LEAST_APART, LEAST_EACH * m):
        return None
    whole, part = targets(q, n)
    target = whole + part
    first, end = np.maximum(target - reach, 0.0), np.minimum(target + reach, n + 1.0)
    nats = min(math.sqrt(LOST / (EACH * m)), MOST_NATS)
    widest = min(WIDER * nats, WIDEST)
    cells = min(MOST_CELLS, MOST_IN_ALL / m)
    nats = max(nats, rate * float((end - first).mean()) / cells)
    size = math.floor(best_aligned(np.diff(target), nats / rate * np.linspace(*ALIGNED)))
    if rate * float(np.diff(target).max(initial=0.0)) > MOST_APART * nats:
        return None
    if not (1 <= size and nats <= widest and (n + 1) * PARTS <= MOST_PARTS * size):
        return None
    block = kernel.BLOCK
    blocks = n // (size * block) + 1
    edges = np.arange(min(PARTS, size) + 1) * size // min(PARTS, size)
    volumes = _volumes(order, rate, size, blocks * block, edges)
    if volumes is None:
        return None
    rising, volume, falling, log_unit, point = volumes
    rows = (first // (size * block)).astype(np.uintp), (end // (size * block)).astype(np.uintp)
    log_all, log_passing = kernel.log_passing(
        target,
        rate,
        float(size),
        (size - 1) / 2.0,
        rising,
        volume,
        falling,
        point,
        rows[0] * np.uintp(block),
        np.minimum(rows[1] + np.uintp(1), np.uintp(blocks)) * np.uintp(block),
        _heavy(volume),
    )
    if not log_all < math.inf:
        return None
    with np.errstate(divide="ignore"):
        each = volume.reshape(-1, block).sum(axis=1) / (rate * size * block)
        densities = np.log(each) + log_unit
    lost = EACH * (rate * size) ** 2 * m
    return Passing(log_all + m * log_unit, log_passing, size * block, densities, lost)


def _volumes(
    order: WholeOrder, rate: float, size: int, cells: int, edges: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float, float] | None:
    """What outputs of cells measure for the bends -1, 0 and 1; ln of its unit, and a point in it.

    Each part of a cell begins at one of the edges, and bends count as if all of it was at the rank
    there where they are most.
    """
    begins = np.arange(cells)[:, np.newaxis] * size + edges[:-1]
    ranks = np.minimum(np.append(begins.ravel(), cells * size), order.n + 1)
    records = order.records_at(ranks)
    if records is None:
        return None
    parts = np.maximum(np.diff(records), 0).astype(np.float64).reshape(begins.shape)
    volume = parts.sum(axis=1)
    typical = float(np.median(volume[volume > 0.0]))
    power = max(math.frexp(typical)[1], math.frexp(float(volume.max()))[1] - LARGEST)
    middle = (size - 1) / 2.0
    rising = parts @ np.exp(2.0 * rate * (edges[1:] - 1 - middle))
    falling = parts @ np.exp(-2.0 * rate * (edges[:-1] - middle))
    scaled = [np.ldexp(each, -power) for each in (rising, volume, falling)]
    point = 0.0 if order.lattice is None else math.ldexp(1.0, -power)
    return scaled[0], scaled[1], scaled[2], power * math.log(2.0), point


def _heavy(volume: NDArray[np.float64]) -> NDArray[np.uintp]:
    """The cells that hold the most, where outputs of many levels may be at one place."""
    heavy = np.flatnonzero(volume > HEAVY * np.median(volume))
    largest = volume[heavy].argsort(kind="stable")[::-1][:MOST_HEAVY]
    return np.sort(heavy[largest]).astype(np.uintp)


def best_aligned(gaps: NDArray[np.float64], widths: NDArray[np.float64]) -> float:
    """The width of cells by which gaps are some cells and a half, if they can be.

    A step between targets that are k + t cells apart, 0 <= t < 1, loses as much as a multiple of
    (t^3 + (1 - t)^3) times their width.
    """
    part = gaps / widths[:, np.newaxis] % 1.0
    return float(widths[(part**3 + (1.0 - part) ** 3).sum(axis=1).argmin()])
