"""Dither: each record of a lattice point moved at random inside its cell, as far as needed."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as kernel
from dpq_fast._kernels import uniform
from dpq_fast.data.order import (
    CoarseOrder,
    Cuts,
    SortedOrder,
    Stretch,
    WholeOrder,
    half_of_most,
    is_first,
    stretches,
)

# Up to this many records, every record's dither is drawn at once.
EAGER_RECORDS = 2**14
# A part of a tied block with at most this many records is drawn record by record.
WHOLE_BLOCK = 2**12
# Records outside of large blocks are dithered by stretches of 2^STRETCH_BITS places.
STRETCH_BITS = 9
# So many records are dithered at a time, so that what that takes stays in caches.
PIECE = 2**17
# Up to this many records, a block is split by counting random bits.
COUNTED_BITS = 2**17


class DitheredOrder(WholeOrder):
    """An order of dithered records: one fixed random object, drawn only as far as it is needed.

    Each record's point k becomes ``k * 2^s + U{0, ..., 2^s - 1}``, independently, and with a prior
    a fine point of its mass: a randomization of single records before the mechanism, which keeps
    neighbors neighbors.

    Parameters
    ----------
    coarse : CoarseOrder
        The records as they are, on a lattice with dither bits.
    rng : Generator
        Where the dither is drawn from.
    """

    def __init__(self, coarse: CoarseOrder, rng: np.random.Generator) -> None:
        super().__init__(coarse.n, coarse.lattice, coarse.bounds)
        self.scans = coarse.scans
        self._coarse = coarse
        assert coarse.lattice is not None  # there is no dither without one
        self._lattice = coarse.lattice
        self._dither = Dither(coarse.lattice.bits, rng)
        self._drawing = (
            threading.RLock()
        )  # threads may draw from one law, which asks for more of it

    def _points(self, windows: list[tuple[int, int]]) -> NDArray[np.int64]:
        most = self.n if self.scans else PIECE  # what takes a pass is collected at once
        with self._drawing:
            pieces = [self._dithered_piece(*piece) for piece in _pieces(windows, most)]
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate([np.empty(0, dtype=np.int64), *pieces])

    def _dithered_piece(
        self, start: NDArray[np.int64], stop: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Points of the records at places start[w], ..., stop[w] - 1, some in each window."""
        # One more record on each side shows whether tied records go on there.
        begin, end = np.maximum(start - 1, 0), np.minimum(stop + 1, self.n)
        points = self._coarse._points(list(zip(begin.tolist(), end.tolist(), strict=True)))
        offset = np.cumsum(end - begin) - end
        first, last = offset + start, offset + stop - 1
        before, after = points[offset + begin], points[offset + end - 1]
        below = (begin < start) & (before == points[first])
        above = (stop < end) & (after == points[last])
        low, high = start.copy(), stop.copy()
        if below.any() or above.any():
            cut = np.concatenate((points[first[below]], points[last[above]] + 1))
            ranks = self._coarse.ranks_of(cut)
            low[below], high[above] = np.split(ranks, [np.count_nonzero(below)])
        size = high - low
        # All windows at once, unless a block reaches from one into the next, or may be large.
        apart = (low[1:] >= high[:-1]).all()
        if apart and (size - (stop - start) <= 2 * WHOLE_BLOCK).all():
            places = _ranges(low, high)
            # A place outside of its window has the point of the nearest one inside.
            inside = np.clip(places, np.repeat(start, size), np.repeat(stop - 1, size))
            extended = points[inside + np.repeat(offset, size)]
            if not (_has_large(extended) or self._dither.has_parts):
                fine = self._dither.of_small(extended, places)
                shift = np.cumsum(size) - high
                return self._lattice.spread(fine[_ranges(start + shift, stop + shift)])
        dithered = [
            self._dither.of_window(points[f : f + b - a], a, b, lo, hi)
            for f, a, b, lo, hi in np.array([first, start, stop, low, high]).T.tolist()
        ]
        return self._lattice.spread(np.concatenate(dithered))

    def ranks_of(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        return self._coarse.ranks_of(outputs)

    def fine_ranks(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        cell = self._lattice.points_of(points)
        cells, at = np.unique(cell, return_inverse=True)
        bounds = self._coarse.ranks_of(np.append(cells, cells + 1))
        start, stop = bounds[at], bounds[at + cells.size]
        reached = self._reached(points, cell)
        with self._drawing:
            return start + self._dither.below(cell, reached, start, stop)

    def _reached(self, points: NDArray[np.int64], cell: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first offset inside each point's cell that is spread to the point or above."""
        first = cell << self._dither.bits
        if self._lattice.masses is None:
            return points - first
        # the last offset of a cell is spread to its end
        lo, hi = np.zeros_like(points), np.full_like(points, (1 << self._dither.bits) - 1)
        for _ in range(self._dither.bits):
            middle = (lo + hi) // 2
            reached = self._lattice.spread(first + middle) >= points
            lo, hi = np.where(reached, lo, middle + 1), np.where(reached, middle, hi)
        return lo

    def cuts(self, places: NDArray[np.int64], most: NDArray[np.int64]) -> Cuts:
        point, below, above = self._coarse.cuts(places, most)
        around = stretches(places, most)
        bits = self._dither.bits
        # behind the cells, before those that hold records, and inside of those that hold too many
        before, after = (point << bits) - 1, ((point + 1) << bits) - 1
        held = above > below
        parts = [Cuts(before[held], below[held], below[held]), Cuts(after, above, above)]
        crowded = np.zeros(point.size, dtype=bool)
        for stretch in around:
            crowded |= (above - below >= stretch.most) & stretch.meets(below, above)
        if crowded.any():
            with self._drawing:
                parts.append(
                    self._dither.cuts(point[crowded], below[crowded], above[crowded], around)
                )
        at, less, more = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(at, kind="stable")
        order = order[at[order] >= 0]
        fine = self._lattice.spread(at[order])
        first = np.append(0, np.flatnonzero(fine[1:] != fine[:-1]) + 1)
        return Cuts(
            fine[first],
            np.minimum.reduceat(less[order], first),
            np.maximum.reduceat(more[order], first),
        )

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        masses = self._lattice.masses
        if masses is not None:
            return kernel.log_spans(self._coarse.weighed(places, masses), -math.inf, math.inf, 1.0)
        at = self._coarse.spread(places)
        return kernel.log_spans(at, -math.inf, math.inf, 2.0**-self._dither.bits)

    def prepare(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> None:
        self._coarse.prepare(first - 1, count + 2)  # with the records around


def dithered(coarse: CoarseOrder, rng: np.random.Generator) -> WholeOrder:
    """One dither of an order on a lattice with dither bits; drawn at once if records are few."""
    if coarse.n > EAGER_RECORDS:
        return DitheredOrder(coarse, rng)
    lattice = coarse.lattice
    assert lattice is not None
    points = coarse._points([(0, coarse.n)]) << lattice.bits
    points += uniform.integers_of_bits(lattice.bits, coarse.n, rng)
    points.sort(kind="stable")  # the faster one where only records of one cell change places
    return SortedOrder(lattice.spread(points), lattice, coarse.bounds, fine=True)


class Dither:
    """The dither of a call: where each record lies inside the cell of its coarse point.

    The records of a large block are drawn by halves of the cell, keyed by its point; all others
    one by one, keyed by their place. Where a cell is cut, only their numbers in parts of it are
    drawn, until it comes to the records of one part. What is drawn is kept.

    Parameters
    ----------
    bits : int
        Each point stands for 2^bits fine ones.
    rng : Generator
        Drawn from only as far as records are asked for.
    """

    def __init__(self, bits: int, rng: np.random.Generator) -> None:
        self.bits = bits
        self._rng = rng
        self._blocks: dict[int, _Block] = {}
        self._parts = _Parts()
        self._parted = np.empty(0, dtype=np.int64)  # points whose records are there
        self._rows: dict[int, NDArray[Any]] = {}  # offsets, by stretch of places
        self._kind = np.int32 if bits < 32 else np.int64

    def of_small(self, points: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Fine points, ascending, of all records of some blocks that are not large."""
        fine = points << self.bits
        fine += self._offsets(places)
        fine.sort(kind="stable")
        return fine

    def of_window(
        self, points: NDArray[np.int64], start: int, stop: int, low: int, high: int
    ) -> NDArray[np.int64]:
        """Fine points of the records at places start, ..., stop - 1.

        Their coarse points ascend; the block of the first one begins at place `low`, that of the
        last one ends before `high`.
        """
        changes = np.flatnonzero(points[1:] != points[:-1]) + 1
        point = points[np.append(0, changes)]
        edges = np.concatenate(([low], changes + start, [high]))
        large = np.flatnonzero((np.diff(edges) > WHOLE_BLOCK) | self._are_parted(point))
        pieces, done = [], 0
        for k in [*large.tolist(), point.size]:
            a, b = int(edges[done]), int(edges[k])
            if done < k:
                blocks = np.repeat(point[done:k], np.diff(edges[done : k + 1]))
                fine = self.of_small(blocks, np.arange(a, b))
                pieces.append(fine[max(start - a, 0) : min(stop, b) - a])
            if k < point.size:
                begin, end = int(edges[k]), int(edges[k + 1])
                block = self._block(int(point[k]), end - begin)
                part = block.order(max(start - begin, 0), min(stop, end) - begin, self._rng)
                pieces.append(part + (int(point[k]) << self.bits))
            done = k + 1
        return np.concatenate(pieces)

    def below(
        self,
        point: NDArray[np.int64],
        offset: NDArray[np.int64],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """How many records of each coarse point lie below an offset inside its cell.

        The records of a point are at places start, ..., stop - 1.
        """
        size = stop - start
        counts = np.zeros_like(start)
        large = (size > WHOLE_BLOCK) | self._are_parted(point)
        small = np.flatnonzero((size > 0) & ~large)
        if small.size:
            number = size[small]
            lower = self._offsets(_ranges(start[small], stop[small])) < np.repeat(
                offset[small], number
            )
            counts[small] = np.add.reduceat(lower, np.cumsum(number) - number, dtype=np.int64)
        for i in np.flatnonzero(large).tolist():
            counts[i] = self._block(int(point[i]), int(size[i])).below(int(offset[i]), self._rng)
        return counts

    def cuts(
        self,
        point: NDArray[np.int64],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
        around: list[Stretch],
    ) -> Cuts:
        """Cuts inside the cells of some coarse points, in dithered points; see `WholeOrder.cuts`.

        Their records are at places start, ..., stop - 1. From now on they are dithered by parts.
        """
        new = ~self._are_parted(point)
        known = np.array(sorted(self._rows), dtype=np.int64)
        first, last = start >> STRETCH_BITS, (stop - 1) >> STRETCH_BITS
        drawn = np.searchsorted(known, last, side="right") - np.searchsorted(known, first) > (
            last - first
        )
        drawn |= np.isin(point, np.array(list(self._blocks), dtype=np.int64))
        for i in np.flatnonzero(new & drawn).tolist():
            self._add_drawn(int(point[i]), int(start[i]), int(stop[i]))
        new &= ~drawn
        self._parts.add(point[new] << self.bits, self.bits, (stop - start)[new], start[new])
        self._parted = np.union1d(self._parted, point)
        for stretch in reversed(around):  # the short ones are of parts that are short already
            self._parts.split(stretch, self._rng)
        return self._parts.cuts(around)

    def _add_drawn(self, point: int, start: int, stop: int) -> None:
        """Parts of the records of a point, some of which were asked for before."""
        block = self._blocks.pop(point, None)
        if block is None:
            drawn = np.sort(self._offsets(np.arange(start, stop)).astype(np.int64))
            block = _Block(stop - start, self.bits, drawn)
        self._parts.add_block(point << self.bits, start, block)

    @property
    def has_parts(self) -> bool:
        """Whether the records of some points are dithered by parts."""
        return self._parted.size > 0

    def _are_parted(self, point: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the records of some points are dithered by parts."""
        if not self._parted.size:
            return np.zeros(point.size, dtype=bool)
        at = np.minimum(np.searchsorted(self._parted, point), self._parted.size - 1)
        parted: NDArray[np.bool_] = self._parted[at] == point
        return parted

    def _block(self, point: int, count: int) -> _Block | _Cell:
        """The records of a point that are not keyed by their places."""
        if self._are_parted(np.array([point]))[0]:
            return _Cell(self._parts, point << self.bits, (point + 1) << self.bits)
        return self._blocks.setdefault(point, _Block(count, self.bits))

    def _offsets(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """Where the records at some places lie inside their cells."""
        stretch = places >> STRETCH_BITS
        first = np.append(0, np.flatnonzero(stretch[1:] != stretch[:-1]) + 1)
        wanted = stretch[first].tolist()
        new = [key for key in dict.fromkeys(wanted) if key not in self._rows]
        if new:
            drawn = uniform.integers_of_bits(self.bits, len(new) << STRETCH_BITS, self._rng)
            self._rows.update(zip(new, drawn.astype(self._kind).reshape(len(new), -1), strict=True))
        offsets = np.concatenate([self._rows[key] for key in wanted])
        shift = (np.arange(first.size) - stretch[first]) << STRETCH_BITS
        sizes = np.diff(np.append(first, places.size))
        found: NDArray[Any] = offsets.take(places + np.repeat(shift, sizes))
        return found


def _pieces(
    windows: list[tuple[int, int]], most: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Windows by pieces of at most so many records; those without a record are left out."""
    starts: list[int] = []
    stops: list[int] = []
    room = most
    for start, stop in windows:
        while start < stop:
            end = min(stop, start + room)
            starts.append(start)
            stops.append(end)
            room -= end - start
            start = end
            if not room:
                yield np.array(starts), np.array(stops)
                starts, stops, room = [], [], most
    if starts:
        yield np.array(starts), np.array(stops)


def _has_large(points: NDArray[np.int64]) -> bool:
    """Whether one of ascending points occurs more than WHOLE_BLOCK times."""
    return bool((points[WHOLE_BLOCK:] == points[: max(points.size - WHOLE_BLOCK, 0)]).any())


def _ranges(start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
    """start[0], ..., stop[0] - 1, start[1], ...."""
    size = stop - start
    ends = np.cumsum(size)
    places: NDArray[np.int64] = np.arange(ends[-1]) + np.repeat(start - ends + size, size)
    return places


class _Block:
    """The dither of tied records, drawn only as far as it was asked for.

    Of K records uniform on 2^s fine points, the number in the lower half is Binomial(K, 1/2), and
    within the halves they are uniform again: only halves that hold wanted ranks are split.
    What is drawn is kept.
    """

    __slots__ = ("_halves", "bits", "count", "drawn")

    def __init__(self, count: int, bits: int, drawn: NDArray[np.int64] | None = None) -> None:
        self.count = count
        self.bits = bits
        self.drawn = drawn  # offsets of all, ascending
        self._halves: tuple[_Block, _Block] | None = None

    def order(self, start: int, stop: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Offsets of the records start, ..., stop - 1 in ascending order."""
        if self.bits == 0:
            return np.zeros(stop - start, dtype=np.int64)
        drawn = self._records(rng)
        if drawn is not None:
            return drawn[start:stop]
        below, above = self._split(rng)
        split = below.count
        pieces = []
        if start < split:
            pieces.append(below.order(start, min(stop, split), rng))
        if stop > split:
            upper = above.order(max(start - split, 0), stop - split, rng)
            pieces.append(upper + (1 << (self.bits - 1)))
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def below(self, offset: int, rng: np.random.Generator) -> int:
        """Number of records below an offset."""
        if offset <= 0:
            return 0
        if offset >> self.bits:
            return self.count
        drawn = self._records(rng)
        if drawn is not None:
            return int(np.searchsorted(drawn, offset))
        lower, upper = self._split(rng)
        half = 1 << (self.bits - 1)
        if offset <= half:
            return lower.below(offset, rng)
        return lower.count + upper.below(offset - half, rng)

    def _records(self, rng: np.random.Generator) -> NDArray[np.int64] | None:
        """All of them, where they are few."""
        if self.drawn is None and self._halves is None and self.count <= WHOLE_BLOCK:
            self.drawn = np.sort(uniform.integers_of_bits(self.bits, self.count, rng))
        return self.drawn

    def _split(self, rng: np.random.Generator) -> tuple[_Block, _Block]:
        """Those in the lower half, and those in the upper one."""
        if self._halves is None:
            lower, bits = fair_binomial(self.count, rng), self.bits - 1
            self._halves = _Block(lower, bits), _Block(self.count - lower, bits)
        return self._halves

    @property
    def is_halved(self) -> bool:
        """Whether its halves are known."""
        return self._halves is not None

    def leaves(self, at: int, start: int) -> list[tuple[int, int, _Block]]:
        """Its parts that are not halved, and hold a record, each after where it begins.

        That is its first dithered point and the place of its first record; those of all of it are
        `at` and `start`.
        """
        if self._halves is None:
            return [(at, start, self)] if self.count else []
        below, above = self._halves
        middle = at + (1 << (self.bits - 1))
        return below.leaves(at, start) + above.leaves(middle, start + below.count)


class _Parts:
    """Parts of cells, ascending, and how many records are dithered into each.

    Of K records uniform on 2^s fine points the numbers in 2^h equal parts are those of the h
    leading bits of each, and those in one part are uniform again: only these bits are drawn, until
    the records of a part are asked for. What is drawn of them is kept.
    """

    def __init__(self) -> None:
        nothing = np.empty(0, dtype=np.int64)
        self.at = nothing  # first dithered points of the parts; where there is none, no record is
        self.start = nothing  # places of the first records
        self._bits = nothing  # each part has 2^bits dithered points
        self._count = nothing  # records in each, at least one
        self._blocks: dict[int, _Block] = {}  # of those that were asked for, by first point

    def add(
        self,
        at: NDArray[np.int64],
        bits: int | NDArray[np.int64],
        count: NDArray[np.int64],
        start: NDArray[np.int64],
    ) -> None:
        """More parts, none of which is there."""
        self.at = np.append(self.at, at)
        order = np.argsort(self.at, kind="stable")
        self.at = self.at[order]
        self.start = np.append(self.start, start)[order]
        self._bits = np.append(self._bits, np.broadcast_to(bits, at.shape))[order]
        self._count = np.append(self._count, count)[order]

    def add_block(self, at: int, start: int, block: _Block) -> None:
        """Records of which some were asked for; its first point and place."""
        leaves = block.leaves(at, start)
        self.add(*np.array([(a, leaf.bits, leaf.count, s) for a, s, leaf in leaves]).T)
        self._blocks |= {a: leaf for a, _, leaf in leaves if leaf.drawn is not None}

    def split(self, around: Stretch, rng: np.random.Generator) -> None:
        """Split parts with half of what blocks may have, or more, where cuts are asked for."""
        full = around.most // 2
        while True:
            meets = around.meets(self.start, self.start + self._count)
            crowded = meets & (self._count >= full) & (self._bits > 0)
            if not crowded.any():
                return
            own = self.at, self._bits, self._count, self.start
            self.at, self._bits, self._count, self.start = (each[~crowded] for each in own)
            at, bits, count, start = (each[crowded] for each in own)
            # what is known by halves, and then what is left
            known = [first for first, block in self._blocks.items() if block.is_halved]
            halved = np.isin(at, np.array(known, dtype=np.int64))
            for first, place in zip(at[halved].tolist(), start[halved].tolist(), strict=True):
                self.add_block(first, place, self._blocks.pop(first))
            at, bits, count, start = (each[~halved] for each in (at, bits, count, start))
            if not at.size:
                continue
            # so that parts would have half of `full`, but large ones in halves
            by = np.clip(np.ceil(np.log2(2.0 * count / full)).astype(np.int64), 1, bits)
            by[count > COUNTED_BITS] = 1
            new = []
            for h in np.unique(by).tolist():
                of = by == h
                numbers = self._numbers(at[of], bits[of] - h, h, count[of], rng)
                held = numbers > 0
                low = (bits[of] - h)[:, np.newaxis]
                below = start[of][:, np.newaxis] + np.cumsum(numbers, axis=1) - numbers
                begin = at[of][:, np.newaxis] + (np.arange(1 << h) << low)
                left = np.broadcast_to(low, held.shape)
                new.append((begin[held], left[held], numbers[held], below[held]))
            self.add(*map(np.concatenate, zip(*new, strict=True)))

    def _numbers(
        self,
        at: NDArray[np.int64],
        low: NDArray[np.int64],
        h: int,
        count: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """How many records of each part are in each of its 2^h parts of 2^low points."""
        numbers = np.empty((at.size, 1 << h), dtype=np.int64)
        large = np.flatnonzero(count > COUNTED_BITS)
        for i in large.tolist():
            lower = fair_binomial(int(count[i]), rng)
            numbers[i] = lower, count[i] - lower
        small = np.flatnonzero(count <= COUNTED_BITS)
        groups = np.cumsum(count[small]) // COUNTED_BITS  # some at a time
        for group in np.split(small, np.flatnonzero(np.diff(groups)) + 1) if small.size else ():
            value = uniform.integers_of_bits(h, int(count[group].sum()), rng)
            value += np.repeat(np.arange(group.size) << h, count[group])
            counts = np.bincount(value, minlength=group.size << h)
            numbers[group] = counts.reshape(group.size, -1)
        for i, first in enumerate(at.tolist() if self._blocks else ()):
            block = self._blocks.pop(first, None)
            if block is not None and block.drawn is not None:  # was asked for as a whole
                bits = int(low[i])
                value = block.drawn >> bits
                numbers[i] = np.bincount(value, minlength=1 << h)
                for part in np.unique(value).tolist():
                    drawn = block.drawn[value == part] - (part << bits)
                    own = _Block(drawn.size, bits, drawn)
                    self._blocks[first + (part << bits)] = own
        return numbers

    def cuts(self, around: list[Stretch]) -> Cuts:
        """Cuts before the first part of each so many ranks, and around points with as many."""
        full = half_of_most(around, self.start, self.start + self._count)
        tied = (self._bits == 0) & (self._count >= full)
        first = is_first(self.start, full) | tied
        end = self.start[tied] + self._count[tied]
        return Cuts(
            np.append(self.at[first] - 1, self.at[tied]),
            np.append(self.start[first], self.start[tied]),
            np.append(self.start[first], end),
        )

    def block(self, part: int) -> _Block:
        """The records of a part."""
        first = int(self.at[part])
        if first not in self._blocks:
            self._blocks[first] = _Block(int(self._count[part]), int(self._bits[part]))
        return self._blocks[first]


class _Cell:
    """The dither of a cell that is known by parts: what `_Block` is for one that is not."""

    __slots__ = ("_first", "_origin", "_parts", "_stop")

    def __init__(self, parts: _Parts, origin: int, end: int) -> None:
        self._parts = parts
        self._origin = origin
        self._first, self._stop = np.searchsorted(parts.at, [origin, end]).tolist()

    def below(self, offset: int, rng: np.random.Generator) -> int:
        """Number of records below an offset."""
        parts, at = self._parts, self._origin + offset
        part = int(np.searchsorted(parts.at[: self._stop], at)) - 1
        if part < self._first:
            return 0
        inside = parts.block(part).below(at - int(parts.at[part]), rng)
        return int(parts.start[part] - parts.start[self._first]) + inside

    def order(self, start: int, stop: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Offsets of the records start, ..., stop - 1 in ascending order."""
        own = self._parts.start[self._first : self._stop] - self._parts.start[self._first]
        first, last = int(np.searchsorted(own, start, side="right")) - 1, np.searchsorted(own, stop)
        pieces = []
        for part in range(first, int(last)):
            block, at = self._parts.block(self._first + part), int(own[part])
            inside = block.order(max(start - at, 0), min(stop - at, block.count), rng)
            pieces.append(inside + (int(self._parts.at[self._first + part]) - self._origin))
        return np.concatenate(pieces)


def fair_binomial(count: int, rng: np.random.Generator) -> int:
    """A draw of Binomial(count, 1/2).

    Up to COUNTED_BITS, the number of ones among `count` random bits. Beyond, in O(1), by rejection
    ([BKPPT14]): the distance from the middle is proposed in blocks of sqrt(count), block b with
    probability 2^-(b + 1), and accepted with the ratio of the probabilities. That ratio, and with
    it every probability, is right to 1e-13 relative; only the two outcomes of probability 2^-count
    are left out.
    """
    if count <= COUNTED_BITS:
        words, rest = divmod(count, 64)
        bits = rng.integers(0, 2**64, size=words + (rest > 0), dtype=np.uint64)
        if rest:
            bits[-1] >>= np.uint64(64 - rest)
        return int(np.bitwise_count(bits).sum(dtype=np.int64))
    if count % 2:
        return fair_binomial(count - 1, rng) + int(uniform.integers_below(2, 1, rng)[0])
    half, size = count // 2, math.isqrt(count)
    while True:
        block = 0
        while uniform.integers_below(2, 1, rng)[0]:
            block += 1
        distance = block * size + int(uniform.integers_below(size, 1, rng)[0])
        above = bool(uniform.integers_below(2, 1, rng)[0])
        if distance >= half or (distance == 0 and above):  # the middle is proposed only once
            continue
        # P[half + distance] <= 2^-block P[half], since distance^2 / half >= 2 block^2
        log_accept = log_fair_binomial(half, distance) + block * math.log(2.0)
        if uniform.log_uniforms(1, rng)[0] < log_accept:
            return half + distance if above else half - distance


def log_fair_binomial(half: int, distance: int) -> float:
    """ln of P[half + distance] / P[half] under Binomial(2 half, 1/2), distance < half.

    Stirling's series for the three factorials, with what cancels left out: where x = distance /
    half, (1 + x) ln(1 + x) + (1 - x) ln(1 - x) is the sum over k >= 1 of x^2k / (k (2k - 1)).
    """
    x = distance / half
    square = power = x * x
    series, k = 0.0, 1
    while power > 1e-18 * series:
        series += power / (k * (2 * k - 1))
        power *= square
        k += 1
    rest = sum(
        factor * (1.0 / (12.0 * n) - 1.0 / (360.0 * n**3))
        for factor, n in ((2.0, half), (-1.0, half + distance), (-1.0, half - distance))
    )
    return rest - half * series - 0.5 * math.log1p(-square)
