"""Orders over sorted values, which stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as kernel
from dpq_fast.data.columns import as_float64, is_plain
from dpq_fast.data.lattice import Lattice
from dpq_fast.orders.counted import CountedOrder
from dpq_fast.orders.order import CoarseOrder, Cuts, Stretch, WholeOrder, places_of, stretches_of

# More places than that are looked up one after the other, as many of them will be tied; less are
# looked up side by side, as they are not near each other in memory.
MANY_PLACES = 2**17
# Among at most this many sorted records, ranks are found by looking at all of them.
FEW_RECORDS = 2**9
# Runs of ties are listed where all lattice points would have so many records each.
RUNS_EACH = 16


class SortedOrder(CoarseOrder):
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
        values: NDArray[Any],
        lattice: Lattice | None,
        bounds: tuple[float, float],
        fine: bool = False,
    ) -> None:
        super().__init__(values.size, lattice, bounds)
        self._values = values
        self._fine = fine

    def _encode(self, values: NDArray[Any]) -> NDArray[Any]:
        if self._fine:
            return values
        if self.lattice is None:
            low, high = self.bounds
            return np.fmin(np.fmax(as_float64(values), low), high)  # a stray NaN becomes low
        return self.lattice.encode(values)

    def _points(self, windows: list[tuple[int, int]]) -> NDArray[Any]:
        pieces = [self._values[start:stop] for start, stop in windows]
        return self._encode(pieces[0] if len(pieces) == 1 else np.concatenate(pieces))

    def _points_at(self, places: NDArray[np.int64]) -> NDArray[Any] | None:
        return self._encode(self._values.take(places))

    def ties(self, places: NDArray[np.int64]) -> Cuts | None:
        if self.lattice is not None and is_plain(self._values):
            return Cuts(*self.lattice.ties(self._values, places))
        point = self._encode(self._values.take(places))
        return Cuts(point, self.ranks_of(point), self.ranks_of(point + 1))

    def log_spans(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        values = as_float64(self._values.take(places))
        if self._fine:
            return kernel.log_spans(values, self.before, self.last, 1.0)
        unit = 1.0 if self.lattice is None else self.lattice.step
        return kernel.log_spans(values, *self.bounds, unit)

    def ranks_of(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        points = outputs
        if self._fine:
            assert self.lattice is not None
            points = self.lattice.starts(outputs)
        return self.fine_ranks(points)

    def fine_ranks(self, points: NDArray[Any]) -> NDArray[np.int64]:
        if self.n <= FEW_RECORDS:
            return np.searchsorted(self._encode(self._values), points)
        lo = np.zeros(points.size, dtype=np.int64)
        return self._bisected(points, lo, np.full(points.size, self.n))

    def _bisected(
        self, points: NDArray[Any], lo: NDArray[np.int64], hi: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Records below each point, from lo to hi of them; both are overwritten."""
        lattice = self._kernels_lattice
        if lattice is not None:
            lattice.ranks(self._values, points, lo, hi)
            return lo
        at: NDArray[Any] = np.flatnonzero(lo < hi)
        while at.size:  # for all at once
            middle = (lo[at] + hi[at]) // 2
            below = self._encode(self._values.take(middle)) < points[at]
            lo[at[below]] = middle[below] + 1
            hi[at[~below]] = middle[~below]
            at = at[lo[at] < hi[at]]
        return lo

    def cuts(self, around: list[Stretch]) -> Cuts:
        low, high, size = stretches_of(around, self.n)
        lattice = self._kernels_lattice
        if lattice is not None and ((high - low) / size).sum() > MANY_PLACES:
            return Cuts(*lattice.runs(self._values, low, high, size))
        runs = []
        for places in places_of(around, self.n):
            points = self._encode(self._values.take(places))
            start, end = _runs(points)
            runs.append((points[start], places[start], places[end]))
        # what is tied may go on from some places to the next
        point, first, last = (np.concatenate(each) for each in zip(*runs, strict=True))
        start, end = _runs(point)
        point, first, last = point[start], first[start], last[end]
        # a run of ties begins after the record taken before it, and ends before the next
        past = point + 1 if self.lattice is not None else np.nextafter(point, np.inf)
        lo = np.concatenate(([0], last[:-1] + 1, last + 1))
        hi = np.concatenate((first, first[1:], [self.n]))
        return Cuts(point, *np.split(self._bisected(np.append(point, past), lo, hi), 2))

    @property
    def _kernels_lattice(self) -> Lattice | None:
        """The lattice, if kernels take the values as they stand and round them to it."""
        return None if self._fine or not is_plain(self._values) else self.lattice

    def by_runs(self) -> WholeOrder:
        lattice = self._kernels_lattice
        if lattice is None or RUNS_EACH * lattice.points > self.n:
            return self
        everything = (np.array([each]) for each in (0, self.n, 1))
        point, below, above = lattice.runs(self._values, *everything)
        return CountedOrder(point, above - below, lattice, self.bounds)

    def spread(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        points = self._encode(self._values.take(places))
        at = points + 0.5
        half = points.size // 2
        tied = np.tile(points[:half] == points[half:], 2)  # of one block: where inside
        if tied.any():
            start = self.ranks_of(points[tied])
            size = self.ranks_of(points[tied] + 1) - start
            at[tied] += (places[tied] + 0.5 - start) / size - 0.5
        return at


def _runs(points: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where runs of equal ones start, and where they end."""
    change = np.flatnonzero(points[1:] != points[:-1])
    return np.append(0, change + 1), np.append(change, points.size - 1)
