"""Order statistics in windows of ranks: the one representation that all mechanisms share.

An order answers questions about a sample of n records without ever showing all of them: the
positive-width intervals inside given windows of ranks, where a rank lies roughly, how many
records lie below a point. Interval i in {0, ..., n} lies between x_i and x_{i+1}; it has rank i,
and on a lattice it holds the points in (x_i, x_{i+1}], with x_0 = -1 and x_{n+1} the last point.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as kernel
from dpq_fast._kernels import uniform
from dpq_fast.lattice import Lattice, as_float64

# Up to this many records, every record's dither is drawn at once.
EAGER_RECORDS = 2**14
# A part of a tied block with at most this many records is drawn record by record.
WHOLE_BLOCK = 2**12
# Up to this many records, a block is split by counting random bits.
COUNTED_BITS = 2**20


class Intervals(NamedTuple):
    """Positive-width intervals, ascending: the compressed sample inside some windows.

    Attributes
    ----------
    rank : ndarray of int64, shape (T,)
        Records below the interval.
    width : ndarray of float64, shape (T,)
        Number of (fine) lattice points, exact; or the length, for the continuous mechanism.
    left : ndarray of int64 or float64, shape (T,)
        x_i: the interval starts after this point.
    """

    rank: NDArray[np.int64]
    width: NDArray[np.float64]
    left: NDArray


class Order(ABC):
    """What mechanisms ask of a sample in order, or of a part of one.

    Attributes
    ----------
    n : int
        Number of records. Private under add-remove and with omitted NaN.
    lattice : Lattice or None
        None for the continuous mechanism.
    bounds : (float, float)
    before, last : int or float
        x_0 and x_{n+1}.
    extent : float
        The measure of all outputs.
    skipped : int
        Records of the whole sample that are below this part of it.
    """

    n: int
    lattice: Lattice | None
    bounds: tuple[float, float]
    before: float
    last: float
    extent: float
    skipped: int

    def log_volume(self, m: int) -> float:
        """ln of the measure of all non-decreasing m-tuples of outputs."""
        if m == 1:
            return math.log(self.extent)
        if self.lattice is None:
            return m * math.log(self.extent) - math.lgamma(m + 1)
        return sum(math.log((self.extent + i) / (i + 1.0)) for i in range(m))

    @abstractmethod
    def intervals(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> Intervals:
        """Positive-width intervals of `count[s]` ranks from `first[s]` on, s disjoint segments."""

    @abstractmethod
    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """About ln of how far records are apart, in (fine) points or units; -inf for ties.

        `places` counts records in order from 0: the lower ones of all pairs, then the upper ones.
        """

    @abstractmethod
    def rank_of(self, output: float) -> int:
        """Number of records below an output: a (coarse) lattice point, or a number.

        A number at the low bound belongs to the first interval that has a width: records at the
        bound count as below it.
        """

    @abstractmethod
    def cell(self, point: int) -> tuple[int, NDArray[np.int64]]:
        """Records below a coarse lattice point, and the fine points of the records on it."""


class WholeOrder(Order):
    """The order of a whole sample: it holds the records, or finds them."""

    skipped = 0

    def __init__(self, n: int, lattice: Lattice | None, bounds: tuple[float, float]) -> None:
        self.n = n
        self.lattice = lattice
        self.bounds = bounds
        if lattice is None:
            self.before, self.last = bounds
            self.extent = self.last - self.before
        else:
            self.before, self.last = -1, lattice.fine_points - 1
            self.extent = float(lattice.fine_points)

    def intervals(self, first: NDArray[np.int64], count: NDArray[np.int64]) -> Intervals:
        return self.intervals_of(self, first, count)

    def intervals_of(
        self, part: Order, first: NDArray[np.int64], count: NDArray[np.int64]
    ) -> Intervals:
        """`intervals` of a part of this order, or of all of it."""
        points = self._points(kernel.records(first, count, part.n, part.skipped))
        compress = kernel.compress_continuous if self.lattice is None else kernel.compress_lattice
        return Intervals(*compress(first, count, part.n, part.before, part.last, points))

    @abstractmethod
    def _points(self, windows: list[tuple[int, int]]) -> NDArray:
        """(Fine) points of the records at places start, ..., stop - 1, window after window."""


class SortedOrder(WholeOrder):
    """Order over n sorted values, which stay as they are: only windows are ever encoded.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Ascending: records of any real dtype in the unit of the bounds, or fine points (int64).
    lattice, bounds
        As for `Order`.
    fine : bool
        Whether `values` are fine points already.
    """

    def __init__(
        self,
        values: NDArray,
        lattice: Lattice | None,
        bounds: tuple[float, float],
        fine: bool = False,
    ) -> None:
        super().__init__(values.size, lattice, bounds)
        self._values = values
        self._fine = fine

    def _encode(self, values: NDArray) -> NDArray:
        if self._fine:
            return values
        if self.lattice is None:
            low, high = self.bounds
            return np.fmin(np.fmax(as_float64(values), low), high)  # a stray NaN becomes low
        return self.lattice.encode(values)

    def _points(self, windows: list[tuple[int, int]]) -> NDArray:
        pieces = [self._values[start:stop] for start, stop in windows]
        return self._encode(pieces[0] if len(pieces) == 1 else np.concatenate(pieces))

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        values = as_float64(self._values.take(places))
        if self._fine:
            return kernel.log_spans(values, self.before, self.last, 1.0)
        unit = 1.0 if self.lattice is None else self.lattice.step
        return kernel.log_spans(values, *self.bounds, unit)

    def _below(self, point: float) -> int:
        """Number of values whose encoded point is below `point`, by bisection."""
        lo, hi = 0, self.n
        while lo < hi:
            mid = (lo + hi) // 2
            if self._encode(self._values[mid : mid + 1])[0] < point:
                lo = mid + 1
            else:
                hi = mid
        return lo

    def rank_of(self, output: float) -> int:
        if self._fine:
            return self._below(int(output) << self.lattice.bits)
        if self.lattice is None and output == self.before:
            return self._below(math.nextafter(output, math.inf))
        return self._below(output)

    def cell(self, point: int) -> tuple[int, NDArray[np.int64]]:
        start = self._below(point << self.lattice.bits)
        return start, self._values[start : self._below((point + 1) << self.lattice.bits)]


class RunsOrder(WholeOrder):
    """Order over distinct values and their counts; each lattice value dithered where it is needed.

    Parameters
    ----------
    values : ndarray of int64 or float64, shape (R,)
        Distinct, ascending: coarse lattice points, or clamped numbers without a lattice.
    counts : ndarray of int64, shape (R,)
        Records at each, all positive.
    dither : Dither or None
        Needed where the lattice has dither bits.
    """

    def __init__(
        self,
        values: NDArray,
        counts: NDArray[np.int64],
        lattice: Lattice | None,
        bounds: tuple[float, float],
        dither: Dither | None = None,
    ) -> None:
        ends = np.cumsum(counts, dtype=np.int64)
        super().__init__(int(ends[-1]) if ends.size else 0, lattice, bounds)
        self._values = values
        self._counts = counts
        self._ends = ends  # records up to and with each run
        self._dither = dither

    def _start(self, run: int) -> int:
        return int(self._ends[run - 1]) if run else 0

    def _points(self, windows: list[tuple[int, int]]) -> NDArray[np.int64]:
        return np.concatenate([self._dithered(start, stop) for start, stop in windows])

    def _dithered(self, start: int, stop: int) -> NDArray[np.int64]:
        """Fine points of the records start, ..., stop - 1 in ascending order, counted from 0."""
        runs = slice(
            int(np.searchsorted(self._ends, start, side="right")),
            int(np.searchsorted(self._ends, stop - 1, side="right")) + 1,
        )
        values, counts = self._values[runs].tolist(), self._counts[runs].tolist()
        below = (self._ends[runs] - self._counts[runs]).tolist()
        return fine_points(zip(values, counts, below, strict=True), start, stop, self._dither)

    def intervals_of(
        self, part: Order, first: NDArray[np.int64], count: NDArray[np.int64]
    ) -> Intervals:
        if self._dither is not None:
            return super().intervals_of(part, first, count)
        # Only the border between two runs has width: rank ends[run - 1], from value to value.
        rank = np.concatenate(([0], self._ends)) - part.skipped
        left = np.concatenate(([self.before], self._values)).astype(self._values.dtype)
        right = np.concatenate((self._values, [self.last])).astype(self._values.dtype)
        # those that hold the ends of a part belong to it as far as the ends
        left, right = np.maximum(left, part.before), np.minimum(right, part.last)
        segment = np.searchsorted(first, rank, side="right") - 1
        inside = (segment >= 0) & (rank < first[segment] + count[segment])
        inside &= right > left
        return Intervals(rank[inside], (right - left)[inside].astype(np.float64), left[inside])

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        run = np.searchsorted(self._ends, places, side="right")
        at = self._values[run].astype(np.float64)
        if self._dither is not None:  # inside a block, where its records are to be expected
            at += (places + 1 - self._ends[run]) / self._counts[run]
            at *= 1 << self._dither.bits
        return kernel.log_spans(at, -math.inf, math.inf, 1.0)

    def rank_of(self, output: float) -> int:
        side = "right" if self.lattice is None and output == self.before else "left"
        return self._start(int(np.searchsorted(self._values, output, side=side)))

    def cell(self, point: int) -> tuple[int, NDArray[np.int64]]:
        run = int(np.searchsorted(self._values, point))
        start = self._start(run)
        if run == self._values.size or self._values[run] != point:
            return start, np.empty(0, dtype=np.int64)
        return start, self._dithered(start, int(self._ends[run]))


def dithered(
    values: NDArray[np.int64],
    counts: NDArray[np.int64],
    lattice: Lattice,
    rng: np.random.Generator,
) -> WholeOrder:
    """One dither of runs on a lattice with dither bits: one fixed random object per call.

    Each record's point k becomes ``k * 2^s + U{0, ..., 2^s - 1}``, independently: a randomization
    of single records before the mechanism, which keeps neighbors neighbors.
    """
    bounds = (lattice.low, lattice.high)
    n = int(counts.sum())
    if n > EAGER_RECORDS:
        return RunsOrder(values, counts, lattice, bounds, Dither(lattice.bits, rng))
    points = np.repeat(values << lattice.bits, counts)
    points += uniform.integers_below(1 << lattice.bits, n, rng)
    points.sort()
    return SortedOrder(points, lattice, bounds, fine=True)


class Dither:
    """The dither of a call: for each coarse point, where its records lie inside its cell.

    Parameters
    ----------
    bits : int
        Each point stands for 2^bits fine ones.
    rng : Generator
        Drawn from only as far as records are asked for; what was drawn is kept.
    """

    def __init__(self, bits: int, rng: np.random.Generator) -> None:
        self.bits = bits
        self._rng = rng
        self._blocks: dict[int, _Block] = {}

    def order(self, point: int, count: int, start: int, stop: int) -> NDArray[np.int64]:
        """Fine points of the records start, ..., stop - 1 of the `count` at a coarse point."""
        block = self._blocks.get(point)
        if block is None:
            block = self._blocks[point] = _Block(count, self.bits)
        return block.order(start, stop, self._rng) + (point << self.bits)


def fine_points(
    runs: Iterable[tuple[int, int, int]], start: int, stop: int, dither: Dither
) -> NDArray[np.int64]:
    """Fine points of the records start, ..., stop - 1 of a sample given by runs.

    A run is (coarse point, number of records, records below it); runs ascend.
    """
    pieces = [
        dither.order(point, count, max(start - below, 0), min(stop - below, count))
        for point, count, below in runs
        if below < stop and below + count > start
    ]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)


class _Block:
    """The dither of tied records, drawn only as far as it was asked for.

    Of K records uniform on 2^s fine points, the number in the lower half is Binomial(K, 1/2), and
    within the halves they are uniform again: only halves that hold wanted ranks are split.
    What is drawn is kept.
    """

    __slots__ = ("_above", "_below", "_bits", "_count", "_drawn")

    def __init__(self, count: int, bits: int) -> None:
        self._count = count
        self._bits = bits
        self._drawn: NDArray[np.int64] | None = None
        self._below: _Block | None = None
        self._above: _Block | None = None

    def order(self, start: int, stop: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Offsets of the records start, ..., stop - 1 in ascending order."""
        if self._bits == 0:
            return np.zeros(stop - start, dtype=np.int64)
        if self._drawn is None and self._below is None:
            if self._count <= WHOLE_BLOCK:
                self._drawn = np.sort(uniform.integers_below(1 << self._bits, self._count, rng))
            else:
                lower = fair_binomial(self._count, rng)
                self._below = _Block(lower, self._bits - 1)
                self._above = _Block(self._count - lower, self._bits - 1)
        if self._drawn is not None:
            return self._drawn[start:stop]
        split = self._below._count
        pieces = []
        if start < split:
            pieces.append(self._below.order(start, min(stop, split), rng))
        if stop > split:
            upper = self._above.order(max(start - split, 0), stop - split, rng)
            pieces.append(upper + (1 << (self._bits - 1)))
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


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
