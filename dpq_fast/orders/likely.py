"""What a release from an unsorted column is likely to ask for, foreseen by some of its values.

Buckets that are likely to hold some levels are collected while all records are counted. They decide
the cost, never an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels.select import Map
from dpq_fast.data.columns import as_float64, is_plain
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.passes import MIN_PIECES, SCATTERED, Chunks, Query

# Buckets of the first pass: their counts stay in a core's first cache.
BUCKETS = 2**13
# Values looked at to foresee where levels lie: one of so many, in runs that lie next to each other,
# as far as so many.
SAMPLED_SHARE, SAMPLED_RUN, MOST_SAMPLED = 32, 16, 2**20
# Nothing is collected with the first pass if it is more than this share of the records or so many
# of them. Buckets that hold more than this share of them are not: what is tied is better counted.
FORESEEN_SHARE, FORESEEN, FORESEEN_BUCKET = 2.0**-3, 2**23, 2.0**-7
# A release may ask for the records so far around its levels, a share of all, if it does not say.
BEYOND = 2.0**-11
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


@dataclass(frozen=True, repr=False)
class SampledCounts(Query[NDArray[np.int64]]):
    """How many records of a sample are in each bucket of a map: runs of them, equally far apart.

    Attributes
    ----------
    map : Map
    buckets : int
    share, run : int
        One of so many records, in runs of so many.
    """

    map: Map
    buckets: int
    share: int
    run: int
    any_type = True

    def start(self) -> NDArray[np.int64]:
        return np.zeros(self.buckets + 1, dtype=np.int64)

    def step(self, state: NDArray[np.int64], piece: NDArray[Any]) -> None:
        self.map.sample(piece, self.run, piece.size // self.share // self.run, state)


class Foreseen(NamedTuple):
    """Buckets that are likely to hold what will be asked for. They decide the cost, not the answer.

    Attributes
    ----------
    map : Map
    likely : Likely, optional
        None where they are too many to collect, or nothing is foreseen.
    workers : int
        Threads for what is collected.
    crowded : bool
        Whether many records are close to each other where levels are asked for: tied, perhaps.
    """

    map: Map
    likely: Likely | None = None
    workers: int = 1
    crowded: bool = False

    @classmethod
    def of(
        cls,
        values: NDArray[Any],
        low: float,
        high: float,
        probe: NDArray[Any],
        q: NDArray[np.float64],
        beyond: float = BEYOND,
        workers: int = 1,
        lattice: Lattice | None = None,
    ) -> Foreseen:
        """By a sample of the values, for ascending levels, and what is around them.

        Not what is rounded to one point of a lattice: counts are all that is asked of it.
        """
        chosen = choose_map(low, high, probe)
        counts = sampled(values, chosen, workers)
        total = int(counts.sum())
        if not total:
            return cls(chosen, workers=workers)
        wanted = near(np.cumsum(counts), q, beyond)
        crowded = wanted & (counts > FORESEEN_BUCKET * total + DEVIATIONS**2)
        wanted &= ~crowded
        if lattice is not None:
            buckets = np.flatnonzero(wanted)
            wanted[buckets[are_of_one_point(chosen, lattice, buckets)[0]]] = False
        share = float(counts[wanted].sum()) / total
        taken = _to_be_taken(share, total, values.size, workers, q.size)
        if taken > min(FORESEEN_SHARE * values.size, FORESEEN):
            return cls(chosen, None, workers, bool(crowded.any()))
        flags = np.append(wanted, False).astype(np.uint8)  # not NaN
        return cls(chosen, Likely(q, beyond, flags, share), workers, bool(crowded.any()))


def _to_be_taken(share: float, seen: int, size: int, workers: int, m: int) -> float:
    """About how many records are taken, where buckets narrow down as more are counted.

    So many were `seen` to be this share, for m levels.
    """
    if size < SCATTERED * workers:
        return share * size
    taken, done = 2.0 * share / MIN_PIECES, 2.0 / MIN_PIECES
    while done < 1.0:
        narrow = share * (seen * workers / (done * size)) ** 0.5 + m / BUCKETS
        taken += done * min(share, narrow)
        done *= 2.0
    return taken * size


def sampled(values: NDArray[Any], chosen: Map, workers: int) -> NDArray[np.int64]:
    """How many values of a sample are in each bucket."""
    if not is_plain(values):  # to look at them costs more than it may save
        return np.zeros(BUCKETS, dtype=np.int64)
    share = max(SAMPLED_SHARE, -(-values.size // MOST_SAMPLED))
    asked = SampledCounts(chosen, BUCKETS, share, SAMPLED_RUN)
    return Chunks.of_array(values, workers).fold(asked)[:-1]


def are_of_one_point(
    chosen: Map, lattice: Lattice, bucket: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Whether all values of each bucket are rounded to one point, and a value in the bucket.

    Those between the first bucket and the last one that the point's values fall in: both the map
    and the rounding are monotone.
    """
    lower, upper = chosen.edges(bucket), chosen.edges(bucket + 1)
    inside = lower + (upper - lower) / 2.0
    narrow = upper - lower < lattice.step
    if not narrow.any():
        return narrow, inside
    point = lattice.encode(inside)
    first = chosen.buckets(lattice.least(point))
    last = chosen.buckets(np.nextafter(lattice.least(point + 1), -np.inf))
    return narrow & (first < bucket) & (bucket < last), inside


def choose_map(low: float, high: float, probe: NDArray[Any]) -> Map:
    """Of a map linear in the value and one linear in its key, the one that spreads more evenly."""
    held = np.clip(as_float64(probe[~np.isnan(probe)]), low, high)
    return Map.chosen(low, high, BUCKETS, np.sort(held))
