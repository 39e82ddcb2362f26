"""Which order a column gets: sorted, counted by points, or looked for in passes.

That decides what releases cost, never what they are. What is returned makes the order on a lattice:
the column's, with dither or without, or none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import lattice as kernel
from dpq_fast.data.columns import as_float64, is_ready, refuse_nan
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.passes import CONVERTED, Chunks, Passes
from dpq_fast.data.queries import PointCounts
from dpq_fast.orders.atoms import AtomOrder, in_order
from dpq_fast.orders.buckets import PROBED, Buckets
from dpq_fast.orders.cells import CountedCells
from dpq_fast.orders.counted import CountedOrder
from dpq_fast.orders.likely import BEYOND, BUCKETS, Foreseen
from dpq_fast.orders.order import CoarseOrder
from dpq_fast.orders.selected import SelectedOrder
from dpq_fast.orders.sorted import SortedOrder

# Columns up to this many records are sorted where they are not in order; longer ones are gone
# through, and only windows of ranks are sorted.
SORTED_RECORDS = 2**16
# And more, of which more than this share is likely to be asked for: up to so many times as many,
# and if points are not counted, up to so many times; these, too, where many are tied and not
# dithered.
READ_SHARE, ALL_READ, MANY_SORTED = 0.5, 16, 256
# Points are counted if more than this share of the records is likely to be asked for.
COUNTED_SHARE = 2.0**-5
# A lattice is counted point by point where it has few points, or one for so many records (but with
# at most the last many counters); else its points are treated like other values.
FEW_POINTS, RECORDS_PER_POINT, MANY_POINTS = 2**10, 4, 2**22
# Up to this many points are counted in a core's own caches: nothing is faster.
NEAR_POINTS = 2**15
# Of the columns of tables, which send their counts.
FEW_TABLE_POINTS = 2**14

CoarseOf = Callable[[Lattice | None], CoarseOrder]


def of_array(
    values: NDArray[Any],
    chunks: Chunks,
    lattice: Lattice | None,
    bounds: tuple[float, float],
    nan_policy: str,
    *,
    assume_sorted: bool,
    workers: int,
    q: NDArray[np.float64] | None,
    around: Callable[[int], float] | None,
) -> CoarseOf:
    """Records of one array; levels and ranks around them that are asked for, as of `Reader`."""
    n = values.size
    few = max(FEW_POINTS, min(n // RECORDS_PER_POINT, MANY_POINTS))
    dithered = lattice if lattice is not None and lattice.bits > 0 else None
    if dithered is not None and dithered.points <= min(few, NEAR_POINTS):
        return _of_points(chunks, dithered, bounds, nan_policy)
    if assume_sorted or _ascends(values):
        return _of_sorted(values, lattice, bounds, nan_policy)
    reach = BEYOND * n if around is None else around(n)
    asked = 0.0
    if q is not None and around is not None:  # what is read, in whole buckets
        asked = q.size * (reach + 2.0 * n / BUCKETS)
    if n <= SORTED_RECORDS or (n <= ALL_READ * SORTED_RECORDS and asked > READ_SHARE * n):
        return _of_sorted(np.sort(values), lattice, bounds, nan_policy)
    much = asked > COUNTED_SHARE * n
    if much:
        few = min(n, MANY_POINTS)
    countable = dithered if dithered is not None and dithered.points <= few else None
    if countable is not None and (much or q is None):  # or for many releases
        return _of_points(chunks, countable, bounds, nan_policy)
    probe, foreseen = _probe(values), None
    if q is not None:
        foreseen = Foreseen.of(values, *bounds, probe, q, reach / n, workers, dithered)
    crowded = foreseen is not None and foreseen.crowded
    if countable is not None and crowded:
        return _of_points(chunks, countable, bounds, nan_policy)
    # paths past a tie may be anywhere; what is read again takes another pass
    again = asked > READ_SHARE * n or (crowded and dithered is None)
    if n <= MANY_SORTED * SORTED_RECORDS and again:
        return _of_sorted(np.sort(values), lattice, bounds, nan_policy)
    return _selected(chunks, lattice, bounds, nan_policy, probe, foreseen)


def of_batches(
    chunks: Chunks, lattice: Lattice | None, bounds: tuple[float, float], nan_policy: str
) -> CoarseOf:
    """Records that come in batches."""
    if lattice is not None and lattice.bits and lattice.points <= MANY_POINTS:
        return _of_points(chunks, lattice, bounds, nan_policy)
    return _selected(chunks, lattice, bounds, nan_policy, _probe(chunks.first()))


def of_table(
    passes: Passes, lattice: Lattice | None, bounds: tuple[float, float], nan_policy: str
) -> CoarseOf:
    """A column of a table; on any lattice of the bounds, but where its points are counted."""
    if lattice is not None and counts_points(lattice):
        return _of_points(passes, lattice, bounds, nan_policy)
    cells = CountedCells(passes, *bounds, lattice)
    if cells.missing:
        refuse_nan(nan_policy)
    return lambda lattice: SelectedOrder(passes, cells.on(lattice), lattice, bounds)


def counts_points(lattice: Lattice) -> bool:
    """Whether the points of a lattice are counted one by one, of a column of a table."""
    return lattice.bits > 0 and lattice.points <= FEW_TABLE_POINTS


def of_counts(
    values: NDArray[Any],
    weights: NDArray[np.int64],
    lattice: Lattice | None,
    bounds: tuple[float, float],
    nan_policy: str,
    atoms: bool,
) -> CoarseOf:
    """Records given as values and counts, or as values and weights."""
    present = weights > 0
    values, weights = as_float64(values[present]), weights[present]
    missing = np.isnan(values)
    if missing.any():
        refuse_nan(nan_policy)
        values, weights = values[~missing], weights[~missing]
    records = np.clip(values, *bounds) if lattice is None else lattice.encode(values)
    if atoms:
        records, weights = in_order(records, weights)
        return lambda lattice: AtomOrder(records, weights, lattice, bounds)
    distinct, place = np.unique(records, return_inverse=True)
    totals = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(totals, place, weights)
    return lambda lattice: CountedOrder(distinct, totals, lattice, bounds)


def _of_sorted(
    values: NDArray[Any],
    lattice: Lattice | None,
    bounds: tuple[float, float],
    nan_policy: str,
) -> CoarseOf:
    """Records of one array in order, as they are."""
    if values.size and values[-1] != values[-1]:  # NaN sorts to the end
        refuse_nan(nan_policy)
        with np.errstate(invalid="ignore"):  # NumPy would warn of a signaling NaN
            values = values[: np.searchsorted(values, np.nan)]
    return lambda lattice: SortedOrder(values, lattice, bounds)


def _selected(
    chunks: Chunks,
    lattice: Lattice | None,
    bounds: tuple[float, float],
    nan_policy: str,
    probe: NDArray[Any],
    foreseen: Foreseen | None = None,
) -> CoarseOf:
    """Records that are read in passes: the first one here."""
    buckets = Buckets(chunks, *bounds, probe, lattice, foreseen)
    if buckets.missing:
        refuse_nan(nan_policy)
    return lambda lattice: SelectedOrder(chunks, buckets, lattice, bounds)


def _of_points(
    chunks: Passes, lattice: Lattice, bounds: tuple[float, float], nan_policy: str
) -> CoarseOf:
    """Records on a lattice of few points, counted point by point."""
    total = chunks.fold(PointCounts(lattice))
    if total[-1]:
        refuse_nan(nan_policy)
    present = np.flatnonzero(total[:-1])
    counts = total[present]
    return lambda lattice: CountedOrder(present, counts, lattice, bounds)


def _ascends(values: NDArray[Any]) -> bool:
    if is_ready(values, np.float64):
        return kernel.is_sorted(values)
    with np.errstate(invalid="ignore"):  # signaling NaN
        for start in range(0, values.size - 1, CONVERTED):
            piece = values[start : start + CONVERTED + 1]
            if not (piece[:-1] <= piece[1:]).all():
                return False
    return True


def _probe(values: NDArray[Any]) -> NDArray[np.float64]:
    """Some of the values, evenly over the array."""
    return as_float64(values[:: max(1, values.size // PROBED)])
