"""Windows for rows of cells of ranks, wherever gaps and ties draw paths: what passes some ranks.

Ranks are cut into cells of about half a nat, the same at all levels. For each block of cells and
each level, `csrc/passing.h` has a bound for the weight of all paths that have an output there.
Windows hold the blocks that matter. Paths that leave them pass one of the others, and so they weigh
no more than these blocks' bounds together. The records at the ends of cells, and some between,
say what outputs there weigh: no others are read, and no leaves are needed.

Where rows would be long, cells of some nats come first. Paths leave the windows by these, which
their bounds are for, or are inside; and there bounds by narrow cells say which of them leave the
windows by those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as intervals_kernel
from dpq_fast._kernels import passing as kernel
from dpq_fast._kernels.scan import targets
from dpq_fast.data.order import WholeOrder
from dpq_fast.laws.path import CERTIFICATE, gap_of

# What bounds may lose by cells, in nats, and each level of the second power of a cell's nats. Cells
# are up to so many times as wide where each level would have more than that, or all levels.
LOST, EACH, POWER, WIDER, MOST_CELLS, MOST_IN_ALL = 55.0, 0.15, 1.5, 3.0, 12 * 2**10, 2**25
# But cells of few levels have no more nats than that, nor any than this.
MOST_NATS, WIDEST = 3.0, 7.0
# Where rows have more cells than that, wide ones come first: what they leave is no matter of the
# others. They have so many times the nats, but no more than that, nor than such a share of what
# targets are apart, and at least twice as many.
MANY, WIDE, MOST_WIDE, WIDE_APART, LEAST_WIDE = 3_000, 4.0, 2.5, 0.7, 2.0
# A cell is looked at by so many parts of it, for bends. No more than so many parts in all.
PARTS, MOST_PARTS = 8, 2**21
# Targets are so many nats apart, or outputs of many levels would be at one place, where rows are to
# be of the same cells; and `kernel.APART` at most: more have windows by a walk.
LEAST_APART = 1.0
# If windows by these turn out to be too narrow, they are made so many nats wider than they lack.
AGAIN = 2.0
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


@dataclass(frozen=True)
class Passing:
    """What paths weigh at most that pass blocks of ranks, within reach.

    Attributes
    ----------
    n : int
        The last rank.
    log_all : float
        ln of what all paths in rows weigh at most.
    log_beyond : float
        ln of what those weigh at most that are not in these blocks' rows, but within reach.
    first_block : ndarray of int64, shape (m,)
        Of each row.
    log_passing : ndarray of float32, shape (m, B)
        ln of what those weigh at most, less that, that have output j in a block from this one on.
    ranks : int
        Block b has the ranks b ranks, ..., (b + 1) ranks - 1.
    densities : ndarray of float64, shape (n // ranks + 1,)
        ln of the volume for each nat.
    lost : float
        What bounds lose by cells, about, in nats.
    """

    n: int
    log_all: float
    log_beyond: float
    first_block: NDArray[np.int64]
    log_passing: NDArray[np.float32]
    ranks: int
    densities: NDArray[np.float64]
    lost: float

    def windows(self, more: float = 0.0) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
        """Ranks first[j], ..., last[j] that hold nearly all, and ln of what leaves them at most.

        All but 2^-64 of what all paths weigh, if bounds lose as much as it seems, or so many nats
        `more`.
        """
        m = self.log_passing.shape[0]
        spare = self._nats_less + more + math.log(2.0 * m)
        weight = np.exp(np.minimum(self.log_passing.astype(np.float64) + spare, 64.0))
        first, last = self._between(weight)
        strayed = float(weight.sum(where=~self._are_inside(first, last)))
        log_strayed = self.log_beyond
        if strayed > 0.0:
            log_left = self.log_all + math.log(strayed) - spare + ROUNDING
            log_strayed = float(np.logaddexp(log_strayed, log_left))
        return first, last, log_strayed

    @property
    def lacking(self) -> float:
        """By how many nats too much is not in these blocks' rows; less than 0 if it is not."""
        return self.log_beyond + self._nats_less - self.log_all

    @property
    def _nats_less(self) -> float:
        """By so much all that leaves rows has to be less than `log_all`, as it seems."""
        return CERTIFICATE + self.lost + ROWS_LOSE

    def near(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ranks between which paths are likely to be."""
        share = np.exp(-self._lost)
        share /= TAIL * share.sum(axis=1, keepdims=True)
        return self._between(share)

    def places(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> Places:
        """The blocks that have ranks first[j], ..., last[j]."""
        inside = self._are_inside(first, last)
        start = np.append(0, inside.sum(axis=1).cumsum()).astype(np.uintp)
        level, block = inside.nonzero()
        return Places(start, self.first_block[level] + block, self._lost[inside])

    def _between(self, weight: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The ranks of blocks between which all is but less than 1 on each side."""
        first = self.first_block + _until_one(weight)
        beyond = self.first_block + weight.shape[1] - _until_one(weight[:, ::-1])
        return first * self.ranks, np.minimum(beyond * self.ranks - 1, self.n)

    def _are_inside(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which blocks of each level have ranks between two."""
        block = self.first_block[:, np.newaxis] + np.arange(self.log_passing.shape[1])
        low, high = (each[:, np.newaxis] // self.ranks for each in (first, last))
        are_inside: NDArray[np.bool_] = (block >= low) & (block <= high)
        return are_inside

    @cached_property
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
    gap = gap_of(n, q, rate)
    if gap < LEAST_APART:
        return None
    whole, part = targets(q, n)
    target = whole + part
    if rate * float(np.diff(target).max(initial=0.0)) > kernel.APART:
        return None
    rows = intervals_kernel.windows(q, n, reach)[:2]
    nats = min((LOST / (EACH * m)) ** (1.0 / POWER), MOST_NATS)
    wide_nats = min(WIDE * nats, MOST_WIDE, WIDE_APART * gap)
    if rate * _mean_of(*rows) > MANY * nats and wide_nats >= LEAST_WIDE * nats:
        wide = _bounds(order, target, rate, wide_nats, rows, -math.inf)
        if wide is None:
            return None
        found = _bounds_inside(wide, order, target, rate, nats, 0.0)
        if found is not None and found.lacking > 0.0:  # wide cells lose more than it seemed
            found = _bounds_inside(wide, order, target, rate, nats, found.lacking + AGAIN)
        return found
    return _bounds(order, target, rate, nats, rows, -math.inf)


def _bounds_inside(
    wide: Passing,
    order: WholeOrder,
    target: NDArray[np.float64],
    rate: float,
    nats: float,
    more: float,
) -> Passing | None:
    """Bounds for what is inside of the windows by wide cells, which lose so many nats more."""
    first, last, log_beyond = wide.windows(more)
    rows = np.minimum.accumulate(first[::-1])[::-1], np.maximum.accumulate(last)
    return _bounds(order, target, rate, nats, rows, log_beyond)


def _mean_of(first: NDArray[np.int64], last: NDArray[np.int64]) -> float:
    """How many ranks some rows have."""
    return float((last - first + 1).mean())


def _bounds(
    order: WholeOrder,
    target: NDArray[np.float64],
    rate: float,
    nats: float,
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
    log_beyond: float,
) -> Passing | None:
    """Bounds for some rows by cells of so many nats, or of more where there would be too many."""
    n, m, (first, last) = order.n, target.size, rows
    widest = min(WIDER * nats, WIDEST)
    nats = max(nats, rate * _mean_of(first, last) / min(MOST_CELLS, MOST_IN_ALL / m))
    size = math.floor(best_aligned(np.diff(target), nats / rate * np.linspace(*ALIGNED)))
    if nats > widest or (n + 1) * PARTS > MOST_PARTS * size or size < 1:
        return None
    ranks = size * kernel.BLOCK
    volumes = _volumes(order, rate, size, (n // ranks + 1) * kernel.BLOCK)
    if volumes is None:
        return None
    rising, volume, falling, log_unit, point = volumes
    first_block = first // ranks
    log_all, log_passing = kernel.log_passing(
        target,
        rate,
        float(size),
        (size - 1) / 2.0,
        rising,
        volume,
        falling,
        point,
        first_block.astype(np.uintp) * kernel.BLOCK,
        (last // ranks + 1).astype(np.uintp) * kernel.BLOCK,
        _heavy(volume),
    )
    if not math.isfinite(log_all):
        return None
    with np.errstate(divide="ignore"):
        each = volume.reshape(-1, kernel.BLOCK).sum(axis=1) / (rate * ranks)
        densities = np.log(each) + log_unit
    return Passing(
        n=n,
        log_all=log_all + m * log_unit,
        log_beyond=log_beyond,
        first_block=first_block,
        log_passing=log_passing,
        ranks=ranks,
        densities=densities,
        lost=EACH * (rate * size) ** POWER * m,
    )


def _volumes(
    order: WholeOrder, rate: float, size: int, cells: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float, float] | None:
    """What outputs of cells measure for the bends -1, 0 and 1; ln of its unit, and a point in it.

    Bends count as if all of each part of a cell was at the rank there where they are most.
    """
    parts_each = min(PARTS, size)
    edges = np.arange(parts_each + 1) * size // parts_each
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
