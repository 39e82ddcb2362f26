"""The sample as every mechanism sees it: its intervals of positive width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import aligned, check_choice, check_column, check_flag
from dpq_fast.reference._calls import default_rng
from dpq_fast.reference.columns import numbers, repeats
from dpq_fast.reference.dither import Offsets
from dpq_fast.reference.lattice import Lattice


@dataclass(frozen=True)
class Intervals:
    """The intervals of positive width between the order statistics, from low to high.

    On a lattice everything is in fine points, numbered 0 .. G-1 with G = ``lattice.fine_points``,
    and interval t holds the points ``left[t] + 1, ..., right[t]``. Without one (the paper's
    continuous mechanism) everything is in the unit of the data, and interval t is
    ``(left[t], right[t]]``; the lowest value belongs to the first interval.

    Attributes
    ----------
    n : int
        Number of records.
    rank : ndarray of int64, shape (T,)
        Records below the interval, ascending.
    width : ndarray of int64 (lattice) or float64, shape (T,)
        Number of points, or length; positive.
    left, right : ndarray like `width`, shape (T,)
        Ends of the intervals. ``right[t] == left[t + 1]``: only intervals of width zero lie
        between.
    bounds : (float, float)
        Low and high, in the unit of the data.
    lattice : Lattice or None
        None for the continuous mechanism.
    """

    n: int
    rank: NDArray[np.int64]
    width: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    bounds: tuple[float, float]
    lattice: Lattice | None

    @classmethod
    def from_points(cls, points: Any, lattice: Lattice) -> Intervals:
        """The intervals of records given as fine points in [0, G), any order, already dithered."""
        x = np.sort(np.asarray(points, dtype=np.int64))
        # The sentinels x_0 = -1 and x_{n+1} = G - 1 make (x_i, x_{i+1}] right at both ends.
        return cls.between(x, -1, lattice.fine_points - 1, (lattice.low, lattice.high), lattice)

    @classmethod
    def from_values(cls, values: Any, bounds: tuple[float, float]) -> Intervals:
        """The intervals of the continuous mechanism; `values` in any order, clamped to `bounds`."""
        x = np.sort(np.clip(np.asarray(values, dtype=np.float64), *bounds))
        return cls.between(x, *bounds, bounds, None)

    @classmethod
    def between(
        cls,
        x: NDArray[Any],
        first: float,
        last: float,
        bounds: tuple[float, float],
        lattice: Lattice | None,
    ) -> Intervals:
        """The intervals of ascending records `x` for outputs in (first, last]."""
        # [GJK21] Alg. 1 line 2: x_0 and x_{n+1} around the sorted sample.
        edges = np.concatenate(([first], x, [last]))
        width = np.diff(edges)
        (kept,) = np.nonzero(width > 0)
        return cls(x.size, kept, width[kept], edges[kept], edges[kept + 1], bounds, lattice)

    @property
    def records(self) -> NDArray[Any]:
        """The n records in order, in fine points or in the unit of the data."""
        # Interval t has rank[t] records below it, and between two intervals all records are equal.
        return np.repeat(
            np.concatenate((self.left[:1], self.right)),
            np.diff(self.rank, prepend=0, append=self.n),
        )

    def pieces(self, value: float) -> list[tuple[int, int]]:
        """What an output of `value` is made of: (rank, number of fine points) pairs.

        One pair with count 1 without dithering (in the continuous mechanism it stands for a
        density); with dithering the fine points that are floored to `value`, cut where the rank
        changes. Empty if `value` can not be an output.
        """
        if self.lattice is None:
            if not self.bounds[0] <= value <= self.bounds[1]:
                return []
            t = max(int(np.searchsorted(self.left, value, side="left")) - 1, 0)
            return [(int(self.rank[t]), 1)]
        point = self.lattice.locate(value)
        if point is None:
            return []
        lowest, highest = self.lattice.start(point), self.lattice.start(point + 1) - 1
        pieces = []
        for rank, left, right in zip(self.rank, self.left, self.right, strict=True):
            count = min(int(right), highest) - max(int(left) + 1, lowest) + 1
            if count > 0:
                pieces.append((int(rank), count))
        return pieces

    def draw(self, t: int, k: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """k outputs from interval t in ascending order, decoded."""
        return decoded(self.draw_points(t, k, rng), self.lattice)

    def draw_points(self, t: int, k: int, rng: np.random.Generator) -> NDArray[Any]:
        """k fine points (or numbers, without a lattice) from interval t in ascending order."""
        if self.lattice is None:
            u = np.sort(rng.random(k))
            values: NDArray[Any] = self.left[t] + self.width[t] * u
            return values.clip(self.left[t], self.right[t])  # against rounding up
        # Stars and bars: the k-multisets of w points are the k-subsets {a_0 < a_1 < ...} of
        # w + k - 1, with a_i - i as the points. The subset is drawn by Floyd's algorithm.
        subset: set[int] = set()
        places = int(self.width[t]) + k - 1
        for last in range(places - k, places):
            a = int(rng.integers(0, last + 1))
            subset.add(last if a in subset else a)
        offsets = np.array([a - i for i, a in enumerate(sorted(subset))], dtype=np.int64)
        points: NDArray[Any] = self.left[t] + 1 + offsets
        return points


def intervals(
    x: Any,
    bounds: Any,
    resolution: float | None = None,
    dither: bool | None = None,
    counts: Any = None,
    assume_sorted: bool = False,
    nan_policy: str = "omit",
    dither_rng: Any = None,
) -> Intervals:
    """The intervals of a sample: `reader`, and what it returns, in one step."""
    read = reader(x, bounds, resolution, dither, counts, assume_sorted, nan_policy)
    return read(dither_rng).intervals()


class Placed(NamedTuple):
    """The records as a mechanism takes them, in any order.

    Attributes
    ----------
    records : ndarray of int64 (fine points) or float64 (clamped numbers, without a lattice)
    bounds : (float, float)
    lattice : Lattice or None
    """

    records: NDArray[Any]
    bounds: tuple[float, float]
    lattice: Lattice | None

    def even(self) -> Placed:
        """The same without a prior: records that were placed without a dither are points."""
        if self.lattice is None or self.lattice.masses is None:
            return self
        points = self.lattice.points_of(self.records)
        return self._replace(records=points, lattice=replace(self.lattice, masses=None))

    def intervals(self) -> Intervals:
        """The intervals between them."""
        if self.lattice is None:
            return Intervals.from_values(self.records, self.bounds)
        return Intervals.from_points(self.records, self.lattice)


def reader(
    x: Any,
    bounds: tuple[float, float] | None = None,
    resolution: float | None = None,
    dither: bool | None = None,
    counts: Any = None,
    assume_sorted: bool = False,
    nan_policy: str = "omit",
    prior: Any = None,
) -> Callable[[Any], Placed]:
    """What reads a sample, and dithers it; all that is public is checked here.

    Parameters
    ----------
    x : array_like of float or int, shape (N,)
        Private values in any order, in the unit of `bounds`.
    bounds : (float, float)
        Finite low < high. Public.
    resolution, dither
        See `Lattice.of`.
    counts : array_like of int, shape (N,), optional
        How many records have each value; 1 each by default.
    assume_sorted : bool
        A promise about `x` that only the fast side makes use of.
    nan_policy : {"omit", "raise"}
        Whether records that are NaN are dropped, or an error.
    prior : optional
        See `dpq_fast.Sample.of`. Public.

    Returns
    -------
    callable
        ``read(dither_rng)``: the records, with a dither from there; see `default_rng`.

    Raises
    ------
    TypeError, ValueError
        If a public argument breaks its rule; when read, if the form of `x` or `counts` is wrong,
        or there is a NaN under ``nan_policy="raise"``.
    """
    check_flag("assume_sorted", assume_sorted)  # sorted here in any case
    ends, lattice = check_form(x, bounds, resolution, dither, nan_policy, prior, counts)
    return lambda dither_rng: placed(kept_records(x, counts, nan_policy), ends, lattice, dither_rng)


def check_form(
    x: Any,
    bounds: Any,
    resolution: float | None,
    dither: bool | None,
    nan_policy: str,
    prior: Any,
    counts: Any = None,
) -> tuple[tuple[float, float], Lattice | None]:
    """Bounds and lattice, once all that is public is checked; reads no record."""
    check_records(x, nan_policy, counts)
    return Lattice.between(bounds, resolution, dither, prior)


def check_records(x: Any, nan_policy: str, counts: Any = None) -> None:
    """As `check_form`, of records without bounds."""
    check_choice("nan_policy", nan_policy, ("omit", "raise"))
    check_column(x)
    aligned(x, [("counts", counts)])


def placed(
    records: NDArray[np.float64],
    bounds: tuple[float, float],
    lattice: Lattice | None,
    dither_rng: Any,
) -> Placed:
    """Records clamped, put on the lattice and dithered."""
    if lattice is None:
        return Placed(np.clip(records, *bounds), bounds, None)
    points = np.sort(nearest_points(records, lattice))
    if lattice.refined:
        offsets = [0] * points.size
        if lattice.bits:
            drawn = Offsets(lattice.bits, default_rng(dither_rng))
            counts = np.unique(points, return_counts=True)[1].tolist()
            offsets = [offset for count in counts for offset in drawn.of(count)]
        fine = [lattice.fine(k, u) for k, u in zip(points.tolist(), offsets, strict=True)]
        points = np.array(fine, dtype=np.int64)
    return Placed(points, bounds, lattice)


def decoded(points: NDArray[Any], lattice: Lattice | None) -> NDArray[np.float64]:
    """The outputs that fine points stand for; numbers, without a lattice, for themselves."""
    return points if lattice is None else lattice.decode(lattice.points_of(points))


def kept_records(
    x: Any, counts: Any, nan_policy: str, read: Callable[[Any], NDArray[np.float64]] = numbers
) -> NDArray[np.float64]:
    """The records of a column one by one, NaN left out or refused; arguments as of `reader`."""
    check_records(x, nan_policy)
    records = read(x)
    (counts,) = aligned(x, [("counts", counts)])
    if counts is not None:
        records = np.repeat(records, repeats(counts, records.size))
    missing = np.isnan(records)
    if nan_policy == "raise" and missing.any():
        raise ValueError("x must not contain NaN with nan_policy='raise'")
    return records[~missing]


def nearest_points(values: NDArray[np.float64], lattice: Lattice) -> NDArray[np.int64]:
    """The lattice point of each value."""
    return np.array([lattice.nearest(value) for value in values.tolist()], dtype=np.int64)


def distances(ranks: Any, target: Fraction) -> NDArray[np.float64]:
    """|rank - target| for an array of integers, exact until it is rounded once."""
    # Targets are the exact products q_j n: rounded to float64 they would move unevenly with n.
    numerator, denominator = target.as_integer_ratio()
    given = np.asarray(ranks)
    # True division of two Python integers is correctly rounded.
    exact = [abs(r * denominator - numerator) / denominator for r in given.ravel().tolist()]
    return np.array(exact, dtype=np.float64).reshape(given.shape)
