"""Outputs by leaves: parts of the outputs with ranks that are close, each of some blocks.

Blocks are listed (`dpq_fast.orders.blocks`), or, of dithered records, made when they are drawn or
asked for (`csrc/parts.h`): a leaf is known by its least rank, and by what its blocks sum up to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.laws.joint.plan import PLAN, Plan
from dpq_fast.orders.blocks import Blocks, Zone, blocks, intervals
from dpq_fast.orders.dithered import DitheredOrder
from dpq_fast.orders.order import CutOrder, WholeOrder


class Sums(NamedTuple):
    """What each leaf sums up to.

    Attributes
    ----------
    least, most : ndarray of int64, shape (K,)
        Ranks of its outputs.
    rising, volume, falling : ndarray of float64, shape (K,)
        Widths of its blocks, times exp(2c b (r - rho)) for b = 1, 0, -1: rho in the middle of the
        leaf's ranks, r the block's rank that makes it most.
    """

    least: NDArray[np.int64]
    most: NDArray[np.int64]
    rising: NDArray[np.float64]
    volume: NDArray[np.float64]
    falling: NDArray[np.float64]


class Leaves(ABC):
    """Leaves, ascending.

    Attributes
    ----------
    blocks, longest : int
        How many blocks there are, and how many in one leaf at most.
    ranks : float
        About how many ranks a leaf has.
    known : Sums
        What leaves sum up to, or longer arrays that begin with it: to be given again by who keeps
        them.
    """

    known: Sums
    blocks: int
    longest: int
    ranks: float

    @abstractmethod
    def of(self, leaf: NDArray[np.uintp]) -> tuple[NDArray[np.uintp], NDArray[np.uintp], Blocks]:
        """The blocks of some leaves, and maybe of others.

        Those of leaf[i] are start[slot[i]], ..., start[slot[i] + 1] - 1.

        Returns
        -------
        slot : ndarray of uintp
            Of the shape of `leaf`.
        start : ndarray of uintp
        blocks : Blocks
        """

    def for_draws(
        self, leaf: NDArray[np.uintp], bend: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.uintp], NDArray[np.uintp], Blocks]:
        """As `of`, where a block of each of them is to be drawn next, or is drawn already.

        A block counts by its width, and by exp(-2c b r) where `bend` is b = 1 or b = -1: r is its
        least rank or its greatest.
        """
        return self.of(leaf)


class BlockLeaves(Leaves):
    """Leaves of blocks that are all there.

    Parameters
    ----------
    given : Blocks
    segments : ndarray of int64
        The first ranks of segments; a leaf is of one.
    ranks : float
        Blocks of a leaf begin at ranks between two multiples of this.
    at_once : int
        About so many blocks are looked at, at once.
    """

    def __init__(
        self, given: Blocks, segments: NDArray[np.int64], ranks: float, at_once: int
    ) -> None:
        self._given, self.ranks, self._at_once = given, ranks, at_once
        self.blocks = given.least.size
        starts = np.ones(self.blocks + 1, dtype=bool)
        for later in _some_at_once(self.blocks - 1, at_once):
            some = slice(later.start, later.stop + 1)
            leaf = np.floor(given.least[some] / ranks)
            # a block on the border of a segment is one of it, too: nothing lies before the next
            segment = np.searchsorted(segments, given.most[some], side="right")
            starts[later.start + 1 : some.stop] = (np.diff(leaf) != 0) | (np.diff(segment) != 0)
        self._start = np.flatnonzero(starts)
        self.longest = int(np.diff(self._start).max())

    def of(self, leaf: NDArray[np.uintp]) -> tuple[NDArray[np.uintp], NDArray[np.uintp], Blocks]:
        return leaf, self._start.view(np.uintp), self._given

    def sums(self, rate: float, shift: int) -> Sums:
        """What leaves sum up to, with widths times 2^shift."""
        start, given = self._start, self._given
        leaves = start.size - 1  # some at a time, whose blocks may be many
        least, most = given.least[start[:-1]], given.most[start[1:] - 1]
        rho = least + (most - least) // 2
        sums = Sums(least, most, *(np.empty(leaves) for _ in range(3)))
        some = np.searchsorted(start, np.arange(0, start[-1], self._at_once))
        for first, last in pairwise(np.unique(np.append(some, leaves)).tolist()):
            edges = start[first : last + 1]
            piece = slice(edges[0], edges[-1])
            of = np.repeat(rho[first:last], np.diff(edges))
            width = np.ldexp(given.width[piece], shift) if shift else given.width[piece]
            rising = width * _exponentials(2.0 * rate, given.most[piece] - of)
            falling = width * _exponentials(-2.0 * rate, given.least[piece] - of)
            for volume, parts in zip(sums[2:], (rising, width, falling), strict=True):
                volume[first:last] = np.add.reduceat(parts, edges[:-1] - edges[0])
        return sums


class PartLeaves(Leaves):
    """Leaves of a dithered order: blocks are made when they are asked for.

    Parameters
    ----------
    order : DitheredOrder
    zones : sequence of Zone
    ranks : float
        As for `BlockLeaves`.
    rate : float
        Decay rate, c.
    """

    def __init__(
        self,
        order: DitheredOrder,
        zones: Sequence[Zone],
        ranks: float,
        rate: float,
        plan: Plan = PLAN,
    ) -> None:
        shortest = plan.blocks_each * zones[0].most
        while ranks >= 2 * shortest and 2 * zones[-1].ranks.sum() <= plan.most_leaves * ranks:
            ranks /= 2
        self._parts, self.ranks = order.parts(zones, ranks, rate), ranks
        self.blocks, self.longest = self._parts.parts, self._parts.longest

    def of(self, leaf: NDArray[np.uintp]) -> tuple[NDArray[np.uintp], NDArray[np.uintp], Blocks]:
        asked, slot = np.unique(leaf, return_inverse=True)
        ranks = self.known.least[asked].astype(np.int64)
        start, least, most, width, left = self._parts.of(ranks)
        blocks_of_them = Blocks(least, most, width, left)
        return slot.reshape(leaf.shape).astype(np.uintp), start, blocks_of_them

    def for_draws(
        self, leaf: NDArray[np.uintp], bend: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.uintp], NDArray[np.uintp], Blocks]:
        """One block each, which is drawn already: others are never made."""
        known, asked = self.known, leaf.ravel()
        least, most = (each[asked].astype(np.int64) for each in (known.least, known.most))
        drawn = self._parts.draw(least, most, known.volume[asked], bend.ravel(), rng)
        slot = np.arange(leaf.size + 1, dtype=np.uintp)
        return slot[:-1].reshape(leaf.shape), slot, Blocks(*drawn)

    def sums(self) -> Sums:
        """What leaves sum up to: once, as these may be many."""
        self.known = Sums(*self._parts.take())
        return self.known


def leaves_of(
    order: WholeOrder,
    zones: Sequence[Zone],
    ranks: float,
    rate: float,
    shift: int,
    plan: Plan = PLAN,
) -> tuple[Leaves, Sums] | None:
    """Leaves of all outputs whose rank is in some zones, and their sums; None if there are none.

    A single zone that has a `most` of 1 is cut at all records. See `BlockLeaves`; sums of numbers,
    which are not on a lattice, are those of widths times 2^shift.
    """
    in_parts = zones[0].most > 1 or not order.scans
    if isinstance(order, DitheredOrder) and order.n and in_parts:
        made = PartLeaves(order, zones, ranks, rate, plan)
        return (made, made.sums()) if made.blocks else None
    if zones[0].most < 2 or not order.n:
        given = intervals(order, zones[-1])
    else:
        assert isinstance(order, CutOrder)
        given = blocks(order, zones)
    if not given.least.size:
        return None
    leaves = BlockLeaves(given, zones[-1].first, ranks, plan.at_once)
    return leaves, leaves.sums(rate, shift)


def _some_at_once(size: int, most: int) -> Iterator[slice]:
    """Places 0, ..., size - 1, in runs of so many."""
    for start in range(0, size, most):
        yield slice(start, min(start + most, size))


def _exponentials(steepness: float, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """exp(steepness ranks): of a few integers, mostly, which is faster to look up."""
    least, most = int(ranks.min()), int(ranks.max())
    found: NDArray[np.float64]
    if most - least >= ranks.size:
        found = np.exp(steepness * ranks)
    else:
        found = np.exp(steepness * np.arange(least, most + 1))[ranks - least]
    return found
