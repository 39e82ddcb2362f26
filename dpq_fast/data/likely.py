"""Buckets that are likely to hold some levels, by counts of a sample of the records.

They decide what is collected while all records are counted: the cost, never an answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# How far a level may be from where a sample has it, in standard deviations.
DEVIATIONS = 4.0
# Nothing is collected any more if it still seems to be more than this share of all once that many
# pieces are counted.
MOST_SHARE, TRIED = 2.0**-3, 4


class Likely(NamedTuple):
    """What is to be collected, and what it is to be narrowed by.

    Attributes
    ----------
    levels : ndarray of float64, shape (m,)
        Ascending.
    beyond : float
        Records so far around the levels may be asked for, too: a share of all.
    wanted : ndarray of uint8, shape (buckets + 1,)
        1 for buckets that are likely to hold these.
    share : float
        How many of all records are in them, about.
    """

    levels: NDArray[np.float64]
    beyond: float
    wanted: NDArray[np.uint8]
    share: float


class Narrowing:
    """What is to be collected, less and less of it as more records are counted.

    Parameters
    ----------
    likely : Likely

    Attributes
    ----------
    wanted : ndarray of uint8, shape (buckets + 1,)
        As of `Likely`.
    share : float
        As of `Likely`.
    """

    def __init__(self, likely: Likely) -> None:
        self.wanted, self.share = likely.wanted.copy(), likely.share
        self._levels, self._beyond = likely.levels, likely.beyond
        self._pieces = 0
        self._before: NDArray[np.int64] | None = None
        self._noise: list[float] = []

    def narrow(self, counts: NDArray[np.int64]) -> None:
        """After a piece, by all counts so far.

        The first 2^k pieces come from everywhere, equally far apart. They are compared with those
        before them, to see whether runs of records are alike: then a sample says less.
        """
        self._pieces += 1
        if self._pieces & (self._pieces - 1):
            return
        ends = np.cumsum(counts)
        if self._before is not None and 0 < self._before[-1] < ends[-1]:
            self._noise.append(noise_of(self._before, ends, self._levels))
            noise = max(1.0, float(np.mean(self._noise)))
            self.wanted[:-1] &= near(ends, self._levels, self._beyond, noise)
            self.share = float(counts @ self.wanted[:-1] / ends[-1])
            if self.share > MOST_SHARE and self._pieces >= TRIED:
                self.give_up()
        self._before = ends

    def give_up(self) -> None:
        """Want nothing."""
        self.wanted[:] = 0


def near(
    ends: NDArray[np.int64], q: NDArray[np.float64], beyond: float, noise: float = 1.0
) -> NDArray[np.bool_]:
    """Which buckets are likely to hold levels, and what is around them, by a sample.

    The sample has `ends` records up to and with each bucket. The variance of shares of it is
    `noise` times that of independent records.
    """
    total = int(ends[-1])
    spread = DEVIATIONS * np.sqrt(noise * total * q * (1.0 - q))
    spread += DEVIATIONS**2 * noise + beyond * total
    middle = total * q
    first = ends.searchsorted(middle - spread, side="right")
    last = ends.searchsorted(middle + spread, side="right")
    inside = np.zeros(ends.size + 1, dtype=np.int64)
    np.add.at(inside, np.where(middle <= spread, 0, first), 1)
    np.add.at(inside, np.minimum(last, ends.size - 1) + 1, -1)
    found: NDArray[np.bool_] = np.cumsum(inside[:-1]) > 0
    return found


def noise_of(some: NDArray[np.int64], ends: NDArray[np.int64], q: NDArray[np.float64]) -> float:
    """How much more some records and the others differ than independent ones would.

    Of what is up to and with each bucket; by the mean square of how far apart shares are.
    """
    total, size = int(ends[-1]), int(some[-1])
    at = np.minimum(ends.searchsorted(q * total, side="right"), ends.size - 1)
    share = ends[at] / total
    variance = share * (1.0 - share) * (1.0 / size + 1.0 / (total - size))
    apart = some[at] / size - (ends[at] - some[at]) / (total - size)
    known = variance > 0.0
    return float(np.mean(apart[known] ** 2 / variance[known])) if known.any() else 1.0
