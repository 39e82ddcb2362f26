"""Records that were collected, in order at some places of all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import arrange as kernel
from dpq_fast._kernels.select import Map
from dpq_fast.data.pool import Pool

# Where there are more than so many times as many as in windows, what lies between these is left as
# it was found, and so much more of a window is put in order on each side, of its length.
MUCH, MARGIN = 4, 0.5
# Values that are worth a thread.
MIN_SHARE = 2**17


@dataclass(frozen=True)
class Arranged:
    """Records in order at the places of some windows, start[w] <= place < stop[w].

    Attributes
    ----------
    values : ndarray of float64
        As many as there are; elsewhere they lie between those of windows, or are not there.
    start, stop : ndarray of int64
        Windows ascend, do not overlap, and none is empty.
    found : list of ndarray of float64, optional
        All of them in any order, if they are not all there.
    """

    values: NDArray[np.float64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    found: list[NDArray[np.float64]] | None

    @classmethod
    def of(
        cls,
        where: Map,
        wanted: NDArray[np.uint8],
        found: list[NDArray[np.float64]],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
        workers: int = 1,
    ) -> Arranged:
        """All that was found, with windows as asked for or longer; see `arrange`."""
        size = sum(each.size for each in found)
        are_many = size > MUCH * int((stop - start).sum())
        if are_many:
            # ranks are asked for where the lattice points of the ends begin and end
            margin = ((stop - start) * MARGIN).astype(np.int64)
            start = np.maximum(start - margin, np.append(0, stop[:-1]))
            stop = np.minimum(stop + margin, np.append(start[1:], size))
        values = arrange(where, wanted, found, start, stop, not are_many, workers)
        return cls(values, start, stop, found if are_many else None)

    def below(self, value: NDArray[np.float64]) -> NDArray[np.int64]:
        """How many of the records are below each number."""
        return kernel.below(self.values, self.start, self.stop, value, self.found)


def arrange(
    where: Map,
    wanted: NDArray[np.uint8],
    found: list[NDArray[np.float64]],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    all_of_them: bool,
    workers: int = 1,
) -> NDArray[np.float64]:
    """Values in order at some places, by threads; see `kernel.Arranging`."""
    size = sum(each.size for each in found)
    arranging = kernel.Arranging(where, wanted, size, start, stop)
    shares = _shares(found, max(1, min(workers, size // MIN_SHARE)))
    parts = range(len(shares))
    with Pool(len(shares)) as pool:
        counts = pool.map(arranging.count, shares)
        pool.map(arranging.move, shares, arranging.plan(counts, all_of_them))
        pool.map(arranging.finish, parts, [len(shares)] * len(shares))
    return arranging.values


def _shares(found: list[NDArray[np.float64]], parts: int) -> list[list[NDArray[np.float64]]]:
    """About as many values each."""
    if parts == 1:
        return [found]
    split = [np.array_split(each, parts) for each in found]
    return [list(share) for share in zip(*split, strict=True)]
