"""What a release from an unsorted column is likely to ask for, foreseen by some of its values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels.select import Map
from dpq_fast.data.columns import as_float64, is_plain
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.likely import DEVIATIONS, Likely, near
from dpq_fast.data.passes import MIN_PIECES, SCATTERED, Chunks
from dpq_fast.data.queries import SampledCounts

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
