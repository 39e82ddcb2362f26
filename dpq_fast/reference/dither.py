"""Records that lie uniformly in cells, drawn one by one: what `_kernels.dither` does."""

from __future__ import annotations

from itertools import groupby

import numpy as np
from numpy.typing import NDArray


class Offsets:
    """Offsets of the records of some places, drawn by stretches of 2^stretch_bits of them.

    Parameters
    ----------
    bits : int
        Offsets are uniform on {0, ..., 2^bits - 1}, and independent.
    rng : Generator
    stretch_bits : int
    most : int
        Blocks have no more records where they are put in order.
    """

    def __init__(self, bits: int, rng: np.random.Generator, stretch_bits: int, most: int) -> None:
        self._bits = bits
        self._rng = rng
        self._stretch_bits = stretch_bits
        self._most = most
        self._drawn: dict[int, list[int]] = {}

    def expect(self, records: int) -> None:
        """Make room for so many at once, as they will be asked for in parts."""

    def _stretches(self, start: int, stop: int) -> range:
        """The stretches that places are in."""
        return range(start >> self._stretch_bits, ((stop - 1) >> self._stretch_bits) + 1)

    def _draw(self, stretch: int) -> list[int]:
        """The offsets of a stretch; of a word the lower half for one of them, then the upper."""
        if stretch not in self._drawn:
            size = 1 << self._stretch_bits
            words = self._rng.integers(0, 2**64, (size + 1) // 2, dtype=np.uint64).tolist()
            halves = [half for word in words for half in (word, word >> 32)]
            self._drawn[stretch] = [half % 2**self._bits for half in halves[:size]]
        return self._drawn[stretch]

    def are_drawn(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Of which windows of places start[w], ..., stop[w] - 1 all offsets were drawn before."""
        windows = zip(start.tolist(), stop.tolist(), strict=True)
        return np.array(
            [all(s in self._drawn for s in self._stretches(*window)) for window in windows],
            dtype=bool,
        )

    def read(self, start: int, stop: int) -> NDArray[np.int64]:
        """Offsets of the records at places start, ..., stop - 1."""
        stretches = self._stretches(start, stop)
        offsets = [offset for stretch in stretches for offset in self._draw(stretch)]
        shift = stretches.start << self._stretch_bits
        return np.array(offsets[start - shift : stop - shift], dtype=np.int64)

    def below(
        self, start: NDArray[np.int64], stop: NDArray[np.int64], offset: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """How many of the records at places start[w], ..., stop[w] - 1 lie below offset[w]."""
        windows = zip(start.tolist(), stop.tolist(), offset.tolist(), strict=True)
        return np.array([(self.read(a, b) < at).sum() for a, b, at in windows], dtype=np.int64)

    def points(
        self,
        point: NDArray[np.int64],
        first: NDArray[np.int64],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
        low: NDArray[np.int64],
        high: NDArray[np.int64],
        fine: NDArray[np.int64],
    ) -> bool:
        """Fill in `fine` with the records at places start[w], ..., stop[w] - 1, in order.

        Their points are point[first[w]], ..., ascending. The block of the first one begins at place
        low[w], that of the last one ends before high[w]. False, and nothing is drawn, where a block
        has more than `most` records.
        """
        windows = np.array([first, start, stop, low, high]).T.tolist()
        given = [
            ([int(point[i])] * (a - lo), point[i : i + b - a].tolist(), int(point[i + b - a - 1]))
            for i, a, b, lo, hi in windows
        ]
        laid_out = [
            before + inside + [last] * (hi - b)
            for (before, inside, last), (_, _, b, _, hi) in zip(given, windows, strict=True)
        ]
        if any(len(list(run)) > self._most for each in laid_out for _, run in groupby(each)):
            return False
        found: list[int] = []
        for each, (_, a, b, lo, hi) in zip(laid_out, windows, strict=True):
            offsets = self.read(lo, hi).tolist()
            at = [p * 2**self._bits + offset for p, offset in zip(each, offsets, strict=True)]
            found += sorted(at)[a - lo : b - lo]
        fine[:] = found
        return True
