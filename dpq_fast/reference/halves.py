"""Records that lie uniformly in cells, drawn by halves: what `_kernels.halves` does, one by one."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# How many records a part at a place may have, and whether it meets a stretch.
SizeAt = Callable[[int, int], tuple[int, bool]]


@dataclass
class Part:
    """2^bits offsets of a cell from `at` on, and what is known of the records there."""

    bits: int
    at: int
    count: int
    halves: tuple[Part, Part] | None = None
    drawn: list[int] | None = None  # their offsets, ascending


class Halves:
    """All that is known of the records of some cells, which are numbered from 0 on.

    Parameters
    ----------
    bits : int
        A cell has 2^bits offsets, at which its records lie uniformly and independently.
    rng : Generator
    few : int
        Parts of at most so many records are drawn one by one where they are cut.
    counted : int
        The number in a half is that of so many random bits at most.
    whole : int, optional
        As `few`, where records or ranks are asked for; at least that.
    """

    def __init__(
        self, bits: int, rng: np.random.Generator, few: int, counted: int, whole: int = 0
    ) -> None:
        self._bits = bits
        self._few, self._whole = few, max(few, whole)
        self._words = Words(rng, counted)
        self._cells: list[Part] = []

    def add(self, count: NDArray[np.int64]) -> int:
        """More cells, of so many records each; the number of the first one."""
        self._cells += [Part(self._bits, 0, size) for size in count.tolist()]
        return len(self._cells) - count.size

    def keep(self, cell: int, offset: NDArray[np.int64]) -> None:
        """Offsets of all records of a new cell, ascending."""
        self._cells[cell].drawn = offset.tolist()

    def order(self, cell: int, start: int, stop: int) -> NDArray[np.int64]:
        """Offsets of the records start, ..., stop - 1 of a cell in ascending order."""
        return np.array(self._order(self._cells[cell], start, stop), dtype=np.int64)

    def _order(self, part: Part, start: int, stop: int) -> list[int]:
        start, stop = max(start, 0), min(stop, part.count)
        if start >= stop:
            return []
        if part.bits == 0:
            return [part.at] * (stop - start)
        self._reveal(part, self._whole)
        if part.drawn is not None:
            return part.drawn[start:stop]
        lower, upper = self._halves_of(part)
        return self._order(lower, start, stop) + self._order(
            upper, start - lower.count, stop - lower.count
        )

    def below(self, cell: NDArray[np.int64], offset: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many records of each cell lie below an offset."""
        pairs = zip(cell.tolist(), offset.tolist(), strict=True)
        return np.array([self._below(self._cells[c], at) for c, at in pairs], dtype=np.int64)

    def _below(self, part: Part, offset: int) -> int:
        if offset <= part.at or not part.count:
            return 0
        if offset >= part.at + 2**part.bits:
            return part.count
        self._reveal(part, self._whole)
        if part.drawn is not None:
            return bisect_left(part.drawn, offset)
        return sum(self._below(half, offset) for half in self._halves_of(part))

    def cuts(
        self,
        point: NDArray[np.int64],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
        cell: NDArray[np.int64],
        full: NDArray[np.int64],
        offset: NDArray[np.uintp],
        first: NDArray[np.int64],
        last: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], ...]:
        """Cuts between the cells at some points, and inside of those that are not numbered -1.

        Returns `at`, `below` and `above`. Size s, of full[s] records, is for the stretches
        offset[s], ..., offset[s + 1] - 1: a part of `count` records from place `start` on meets one
        if first <= start + count and start <= last.
        """
        stretches = [
            (size, list(zip(first[a:b].tolist(), last[a:b].tolist(), strict=True)))
            for size, a, b in zip(
                full.tolist(), offset[:-1].tolist(), offset[1:].tolist(), strict=True
            )
        ]

        def size_at(place: int, count: int) -> tuple[int, bool]:
            for size, ends in stretches:
                if any(low <= place + count and place <= high for low, high in ends):
                    return size, True
            return stretches[-1][0], False

        found: dict[int, tuple[int, int]] = {}

        def cut(at: int, less: int, more: int) -> None:
            below, above = found.get(at, (less, more))
            found[at] = min(below, less), max(above, more)

        before = (-1, -1)
        for i in range(point.size):
            origin, low, high = int(point[i]) * 2**self._bits, int(start[i]), int(stop[i])
            if high > low:
                cut(origin - 1, low, low)
            parts = []
            if cell[i] >= 0:
                parts = self._parts(self._cells[int(cell[i])], low, size_at)
            for part, place in parts:
                size, _ = size_at(place, part.count)
                tied = part.bits == 0 and part.count >= size
                if tied or (size, place // size) != before:
                    cut(origin + part.at - 1, place, place)
                if tied:
                    cut(origin + part.at, place, place + part.count)
                before = size, place // size
            cut(origin + 2**self._bits - 1, high, high)
        at = sorted(each for each in found if each >= 0)
        less, more = zip(*(found[each] for each in at), strict=True) if at else ((), ())
        return tuple(np.array(each, dtype=np.int64) for each in (at, less, more))

    def _parts(self, part: Part, place: int, size_at: SizeAt) -> list[tuple[Part, int]]:
        """Parts that are not too full, with the places of their first records."""
        if not part.count:
            return []
        size, meets = size_at(place, part.count)
        if not meets or part.count < size or part.bits == 0:
            return [(part, place)]
        self._reveal(part, self._few)
        lower, upper = self._halves_of(part)
        return self._parts(lower, place, size_at) + self._parts(upper, place + lower.count, size_at)

    def _reveal(self, part: Part, few: int) -> None:
        """Make something known of a part."""
        if part.halves is None and part.drawn is None:
            if part.count <= few:
                part.drawn = []
                for _ in range(part.count):
                    insort(part.drawn, part.at + self._words.take(part.bits))
            else:
                part.halves = self._split(part, self._words.binomial(part.count))

    def _halves_of(self, part: Part) -> tuple[Part, Part]:
        """Both halves of a part of which something is known."""
        if part.halves is not None:
            return part.halves
        assert part.drawn is not None
        below = bisect_left(part.drawn, part.at + 2 ** (part.bits - 1))
        lower, upper = self._split(part, below)
        lower.drawn, upper.drawn = part.drawn[:below], part.drawn[below:]
        return lower, upper

    def _split(self, part: Part, below: int) -> tuple[Part, Part]:
        bits = part.bits - 1
        return Part(bits, part.at, below), Part(bits, part.at + 2**bits, part.count - below)


class Words:
    """Random bits, of words of 64 of them: what does not suffice for the next number is left out.

    Parameters
    ----------
    rng : Generator
    counted : int
        As for `Halves`.
    """

    def __init__(self, rng: np.random.Generator, counted: int) -> None:
        self._rng = rng
        self._counted = counted
        self._word = 0
        self._left = 0

    def _next(self) -> int:
        return int(self._rng.bit_generator.random_raw())

    def take(self, bits: int) -> int:
        """The next bits, fewer than 64."""
        if self._left < bits:
            self._word, self._left = self._next(), 64
        taken = self._word & ((1 << bits) - 1)
        self._word >>= bits
        self._left -= bits
        return taken

    def _below(self, n: int) -> int:
        """Uniform on {0, ..., n - 1}: the last bits of a word, until they are."""
        drawn = n
        while drawn >= n:
            drawn = self._next() & ((1 << (n - 1).bit_length()) - 1) if n > 1 else 0
        return drawn

    def _log_uniform(self) -> float:
        """ln V, V uniform on (0, 1) with 53 bits from the first one that is set."""
        zeros, word = 0, self._next()
        while not word:
            zeros, word = zeros + 64, self._next()
        first = 64 - word.bit_length()
        word <<= first
        if first > 11:
            word |= self._next() >> (64 - first)
        return math.log((word >> 11) / 2.0**53) - (zeros + first) * math.log(2.0)

    def binomial(self, count: int) -> int:
        """A draw of Binomial(count, 1/2).

        Up to `counted`, the number of ones among `count` random bits. Beyond, in O(1), by rejection
        ([BKPPT14]): the distance from the middle is proposed in blocks of sqrt(count), block b with
        probability 2^-(b + 1), and accepted with the ratio of the probabilities. That ratio, and
        with it every probability, is right to 1e-13 relative where count >= 2^17; only the two
        outcomes of probability 2^-count are left out.
        """
        if count <= self._counted:
            words, rest = divmod(count, 64)
            ones = sum(bin(self._next()).count("1") for _ in range(words))
            return ones + bin(self.take(rest)).count("1") if rest else ones
        if count % 2:
            return self.take(1) + self._binomial_by_rejection(count - 1)
        return self._binomial_by_rejection(count)

    def _binomial_by_rejection(self, count: int) -> int:
        """The same for an even count."""
        half, size = count // 2, math.isqrt(count)
        while True:
            block = 0
            while self.take(1):
                block += 1
            distance = block * size + self._below(size)
            above = bool(self.take(1))
            if distance >= half or (distance == 0 and above):  # the middle is proposed only once
                continue
            # P[half + distance] <= 2^-block P[half], since distance^2 / half is some 2 block^2
            log_accept = log_fair_binomial(half, distance) + block * math.log(2.0)
            if self._log_uniform() < log_accept:
                return half + distance if above else half - distance


def log_fair_binomial(half: int, distance: int) -> float:
    """ln of P[half + distance] / P[half] under Binomial(2 half, 1/2), 0 <= distance < half.

    Stirling's series for the three factorials, with what cancels left out: where x = distance /
    half, (1 + x) ln(1 + x) + (1 - x) ln(1 - x) is the sum over k >= 1 of x^2k / (k (2k - 1)), which
    is taken where that is short.
    """
    x, left = distance / half, (half - distance) / half
    if x > 0.5:
        log_left = math.log(left)
        exponent = (1.0 + x) * math.log1p(x) + left * log_left
    else:
        log_left = math.log1p(-x)
        square = power = x * x
        exponent, k = 0.0, 1
        while power > 1e-18 * exponent:
            exponent += power / (k * (2 * k - 1))
            power *= square
            k += 1
    rest: float = sum(
        factor * (1.0 / (12.0 * n) - 1.0 / (360.0 * n**3))
        for factor, n in ((2.0, half), (-1.0, half + distance), (-1.0, half - distance))
    )
    return rest - half * exponent - 0.5 * (math.log1p(x) + log_left)
