"""Records that share a point, laid out evenly in its cell: what `_kernels.dither` does."""

from __future__ import annotations

from bisect import bisect_right
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


class Offsets:
    """The offsets of records in cells of 2^bits of them, with a random shift.

    Record i of a cell, i = 0, 1, ..., lies at reverse(i mod 2^bits) xor shift: van der Corput's
    sequence, digitally shifted. So a record more adds an offset and moves none.

    Parameters
    ----------
    bits : int
    rng : Generator
        A word is drawn.

    Attributes
    ----------
    bits : int
    """

    def __init__(self, bits: int, rng: np.random.Generator) -> None:
        self.bits = bits
        self._shift = int(rng.integers(0, 2**64, dtype=np.uint64)) % 2**bits

    def of(self, count: int) -> list[int]:
        """Those of so many records, ascending."""
        return sorted(self._reverse(i % 2**self.bits) ^ self._shift for i in range(count))

    def _reverse(self, i: int) -> int:
        return int(f"{i:0{self.bits}b}"[::-1], 2)

    def below(self, count: NDArray[np.int64], offset: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many of the count[i] records of a cell lie below offset[i]."""
        given = zip(count.tolist(), offset.tolist(), strict=True)
        return np.array([sum(x < at for x in self.of(k)) for k, at in given], dtype=np.int64)

    def at(
        self,
        place: NDArray[np.int64],
        point: NDArray[np.int64],
        below: NDArray[np.int64],
        above: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Records at some places, ascending, each of a run of records at one point.

        Run r is at point[r], below[r] records are before it, and above[r] up to its end.
        """
        points, starts, ends = (each.tolist() for each in (point, below, above))
        of, fine = cache(self.of), []
        for i in place.tolist():
            run = bisect_right(ends, i)
            low, high = starts[run], ends[run]
            fine.append(points[run] * 2**self.bits + of(high - low)[i - low])
        return np.array(fine, dtype=np.int64)

    def points(
        self,
        point: NDArray[np.int64],
        first: NDArray[np.int64],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
        low: NDArray[np.int64],
        high: NDArray[np.int64],
        fine: NDArray[np.int64],
    ) -> None:
        """Fill in `fine` with the records at places start[w], ..., stop[w] - 1, in order.

        Their points are point[first[w]], ..., ascending. The records at the first one of these
        begin at place low[w], those at the last one end before high[w].
        """
        found: list[int] = []
        windows = zip(*(each.tolist() for each in (first, start, stop, low, high)), strict=True)
        for f, a, b, lo, hi in windows:
            inside = point[f : f + b - a]
            changes = (np.flatnonzero(np.diff(inside)) + 1 + a).tolist()
            for begin, end in pairwise([lo, *changes, hi]):
                here = int(inside[max(begin, a) - a])
                offsets = self.of(end - begin)[max(a - begin, 0) : b - begin]
                found += [here * 2**self.bits + offset for offset in offsets]
        fine[:] = found
