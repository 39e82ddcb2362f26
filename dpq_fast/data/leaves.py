"""Leaves, the runs of lattice points that are counted together, and functions that rise over them.

Mass sits on lattice points: a record is counted at the point that it rounds to, as
`Lattice.encode` does, and a distribution function steps there and nowhere else. All of it is
computed in numbers of points, which are exact; with a prior in its masses of points, which are
integers, too. Without a lattice leaves are intervals, and functions are linear inside them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.histogram import KEPT_BINS, Bins
from dpq_fast.data.lattice import LARGEST, Lattice

# Leaves of at least so much of the mass have it spread by a curve, in so many parts.
SMALL, SPREAD = 2.0**-10, 16
# Level 0 is where a function begins to rise.
LEAST_SHARE = float(np.finfo(np.float64).tiny)
# Whether records at a point are taken to be beyond it, or not.
Side = Literal["left", "right"]


class Leaves:
    """A partition of the bounds into leaves, as even as can be.

    On a lattice of P points leaf k of L holds the points p with floor(p L / P) = k. Where P < L,
    each of the first P leaves is one point and the others hold nothing: for whoever sums over
    leaves, they are part of the last point. With a prior leaves have equal masses, as far as there
    are points for it.

    Parameters
    ----------
    bounds : (float, float)
        Checked.
    lattice : Lattice or None
        Of these bounds; None for equal intervals.
    most : int
        Number of leaves L.

    Attributes
    ----------
    size : int
        Number of leaves that can hold records.
    edges : ndarray of float64, shape (size + 1,)
        Leaf k is [edges[k], edges[k + 1]). On a lattice `edges[k]` is the lowest point of leaf k,
        and the last edge one step above the highest point.
    ends : ndarray of float64, shape (size + 1,)
        Where numbers of records are known: below ``edges[k]``, that is, up to ``ends[k]``. On a
        lattice the highest point of leaf k - 1, and first the number one step below the lowest
        point; else the edges.
    starts : ndarray, shape (size + 1,)
        `edges` as numbers of points on a lattice.
    line : ndarray, shape (size + 1,)
        `starts` in masses of a prior.
    places : ndarray of float64, shape (size + 1,)
        `edges` in units of leaves, those that hold nothing among them: 0, 1, ..., size - 1, L.
    """

    def __init__(self, bounds: tuple[float, float], lattice: Lattice | None, most: int) -> None:
        self.lattice = lattice
        self._bounds = bounds
        self._most = most
        self.size = most if lattice is None else min(most, lattice.points)
        self.starts: NDArray[Any]
        self.places = np.append(np.arange(self.size, dtype=np.float64), most)
        if lattice is None:
            self.starts = self.edges = self.ends = Bins.uniform(*bounds, most).edges
        else:
            self.starts = _starts_on(lattice, most)
            with np.errstate(over="ignore"):  # a step beyond the bounds may be beyond float64
                self.edges = lattice.decode(self.starts)
                self.ends = lattice.decode(self.starts - 1)
        self.line = on_line(lattice, self.starts)
        for kept in (self.starts, self.line, self.places, self.edges, self.ends):
            kept.flags.writeable = False

    @classmethod
    def of(cls, bounds: tuple[float, float], lattice: Lattice | None, most: int) -> Leaves:
        """The leaves of these arguments, which are kept for the next call."""
        return (_kept_leaves if most <= KEPT_BINS else cls)(bounds, lattice, most)

    def bins(self) -> Bins:
        """What counts records by leaf, in one pass."""
        if self.lattice is None:
            return Bins.uniform(*self._bounds, self.size)
        return (_kept_bins if self.size <= KEPT_BINS else _bins)(self.lattice, self._most)

    def place(self, x: NDArray[np.float64], side: Side = "left") -> NDArray[np.float64]:
        """What lies below x ("left"), or not above it ("right"), in units of leaves.

        Of a leaf that is cut, the share of its points or mass, or of its width.
        """
        at: NDArray[Any] = x
        starts = self.line
        if self.lattice is not None:
            at = on_line(self.lattice, points_below(self.lattice, x, side))
        leaf = np.searchsorted(starts[1:-1], at, side="right")
        left, right = starts[leaf], starts[leaf + 1]
        share = np.clip((at - left) / (right - left), 0.0, 1.0)
        return np.where(share == 1.0, self.places[leaf + 1], leaf + share)


class Curve:
    """A distribution function given at knots, ascending from 0 to 1.

    Without a lattice it is linear between knots, with a jump where they are tied. On a lattice it
    is constant but for steps at the points, and between two knots steps by the same at each
    point, or by what is proportional to its mass: its value is that of the linear function at the
    greatest point that is not above.

    Parameters
    ----------
    x : ndarray of float64, shape (K,)
        Knots, ascending; on a lattice they are points of it, or a step below the lowest one.
    p : ndarray of float64, shape (K,)
        Values there, ascending from 0 to 1.
    lattice : Lattice or None
    """

    def __init__(
        self, x: NDArray[np.float64], p: NDArray[np.float64], lattice: Lattice | None
    ) -> None:
        self.lattice = lattice
        self.x = x
        self.p = p
        # on a lattice, numbers of points or their last masses: -1 is a step below the lowest one
        self.knots = x
        if lattice is not None:
            self.knots = np.subtract(on_line(lattice, points_below(lattice, x, "right")), 1.0)

    @classmethod
    def of_masses(
        cls, at: NDArray[Any], masses: NDArray[np.float64], lattice: Lattice | None
    ) -> Curve:
        r"""The function of the masses between `Leaves.starts`, not negative.

        Notes
        -----
        Without any mass, leaves have that of their widths. Inside a leaf the mass is spread as its
        neighbors' masses suggest: by the monotone cubic of Fritsch and Carlson between the values
        at the edges. Its slope there is the weighted harmonic mean of the densities of the two
        leaves, 0 beside one without mass, and beyond the bounds the density goes on as it is. The
        cubic is taken at the ends of SPREAD parts of the leaf, and in each part mass is spread
        evenly, as it is in leaves of less than SMALL of all.
        """
        p = _shares(masses, at, lattice)
        rise = np.diff(p)
        (large,) = np.nonzero((rise >= SMALL) & (lattice is None or np.diff(at) > 1))
        around = rise[_beside(large, rise.size)]
        inside, values = _spread(at, large, around, p[large], p[large + 1], lattice)
        where = np.repeat(large + 1, SPREAD - 1)
        knots = np.insert(at, where, inside.ravel())
        if lattice is not None:
            with np.errstate(over="ignore"):  # a step below the lowest point
                knots = lattice.decode(knots - 1)
        return cls(knots, np.insert(p, where, values.ravel()), lattice)

    def values(self, x: NDArray[np.float64], side: Side) -> NDArray[np.float64]:
        """Values at x ("right"), or limits from the left."""
        if self.lattice is not None:
            line = on_line(self.lattice, points_below(self.lattice, x, side))
            x, side = np.subtract(line, 1.0), "right"
        i = np.searchsorted(self.knots, x, side=side)
        inner = np.clip(i, 1, self.knots.size - 1)
        values = self._piece(inner).values(x)
        return np.where(i == 0, 0.0, np.where(i == self.knots.size, 1.0, values))

    def inverse(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """The smallest x with a value of at least q; where it begins to rise, for q = 0."""
        target = np.maximum(q, LEAST_SHARE)
        return self._piece(np.searchsorted(self.p[1:-1], target) + 1).inverse(target, self.lattice)

    def _piece(self, i: NDArray[np.intp]) -> _Piece:
        """What is between the knots i - 1 and i."""
        return _Piece(self.knots[i - 1], self.knots[i], self.p[i - 1], self.p[i])


class _Piece(NamedTuple):
    """Parts of distribution functions between two knots each: the knots, and the values there."""

    left: NDArray[Any]
    right: NDArray[Any]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def values(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at x; they do not fall, whatever is rounded."""
        left, right = self.left, self.right
        with np.errstate(invalid="ignore", over="ignore"):  # outside, where it is not used
            share = (x - left) / np.where(right > left, right - left, 1.0)
            rise = self.high - self.low
            # Where it does not rise, an end may be infinite.
            values = self.low + np.where(rise > 0.0, share * rise, 0.0)
            return np.minimum(values, self.high)

    def inverse(self, target: NDArray[np.float64], lattice: Lattice | None) -> NDArray[np.float64]:
        """The smallest x with a value of at least `target`, which lies above `low`."""
        left, right = self.left, self.right
        share = (target - self.low) / (self.high - self.low)
        guess: NDArray[np.float64] = np.clip(left + share * (right - left), left, right)
        if lattice is None:
            return guess
        # By bisection on `values` as they are rounded: no point is missed by rounding. Most often
        # the points next to the guess are enough.
        low, high = (np.clip(np.rint(guess) + shift, left, right) for shift in (-2.0, 2.0))
        left = np.where(self.values(low) < target, low, left)
        right = np.where(self.values(high) >= target, high, right)
        while (right - left > 1.0).any():
            middle = np.floor((left + right) / 2.0)
            reached = self.values(middle) >= target
            left, right = np.where(reached, left, middle), np.where(reached, middle, right)
        return lattice.decode(points_on(lattice, right.astype(np.int64)))


def inverses(
    at: NDArray[Any], masses: NDArray[np.float64], lattice: Lattice | None, q: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What `Curve.inverse` of `Curve.of_masses` is, where only the leaves of quantiles are spread.

    Parameters
    ----------
    at : ndarray, shape (L + 1,)
    masses : ndarray of float64, shape (T, L)
        A row for each function.
    lattice : Lattice or None
    q : ndarray of float64, shape (m,)

    Returns
    -------
    ndarray of float64, shape (T, m)
    """
    p = _shares(masses, at, lattice)
    target = np.maximum(q, LEAST_SHARE)
    leaf = np.array([row.searchsorted(target) for row in p[:, 1:-1]])
    row = np.arange(leaf.shape[0])[:, None]
    knots = at if lattice is None else np.subtract(on_line(lattice, at), 1.0)
    left, right, low, high = knots[leaf], knots[leaf + 1], p[row, leaf], p[row, leaf + 1]
    large = high - low >= SMALL
    if lattice is not None:
        large &= at[leaf + 1] - at[leaf] > 1
    beside = _beside(leaf[large], masses.shape[1])
    rows = np.broadcast_to(row, leaf.shape)[large, None]
    around = p[rows, beside + 1] - p[rows, beside]
    inside, values = _spread(at, leaf[large], around, low[large], high[large], lattice)
    ends = left[large, None], right[large, None]
    between = inside if lattice is None else np.subtract(on_line(lattice, inside), 1.0)
    between = np.concatenate((ends[0], between, ends[1]), axis=1)
    values = np.concatenate((low[large, None], values, high[large, None]), axis=1)
    goals = np.broadcast_to(target, leaf.shape)[large, None]
    part = np.count_nonzero(values[:, 1:-1] < goals, axis=1)
    each = np.arange(part.size)
    left[large], right[large] = between[each, part], between[each, part + 1]
    low[large], high[large] = values[each, part], values[each, part + 1]
    return _Piece(left, right, low, high).inverse(target, lattice)


def _shares(
    masses: NDArray[np.float64], at: NDArray[Any], lattice: Lattice | None
) -> NDArray[np.float64]:
    """Sums of masses before each leaf and all of them, along the last axis, as shares.

    Without any mass, leaves have that of their widths.
    """
    some = masses.any(axis=-1, keepdims=True)
    if not some.all():
        masses = np.where(some, masses, np.diff(on_line(lattice, at)))
    sums = np.cumsum(masses, axis=-1)
    p = np.zeros((*sums.shape[:-1], sums.shape[-1] + 1))
    np.divide(sums, sums[..., -1:], out=p[..., 1:])
    return p


def _beside(leaf: NDArray[np.intp], leaves: int) -> NDArray[np.intp]:
    """Leaves and the two beside each, shape (R, 3); at an end it is the leaf itself."""
    beside: NDArray[np.intp] = np.clip(leaf[:, None] + np.arange(-1, 2), 0, leaves - 1)
    return beside


def _spread(
    at: NDArray[Any],
    leaf: NDArray[np.intp],
    rise: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    lattice: Lattice | None,
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Places inside leaves and the values there, shape (R, SPREAD - 1): see `Curve.of_masses`.

    `rise` has the shares of all mass of `_beside`, `low` and `high` the values at the edges.
    """
    line = on_line(lattice, at)
    start, width = line[leaf, None], np.diff(line)
    h = width[_beside(leaf, width.size)] / width[leaf, None]
    d = rise / h
    with np.errstate(divide="ignore"):  # beside a leaf without mass
        slopes = [
            3.0 * (h0 + h1) / ((2.0 * h1 + h0) / d0 + (h1 + 2.0 * h0) / d1)
            for h0, h1, d0, d1 in ((h.T[i], h.T[i + 1], d.T[i], d.T[i + 1]) for i in (0, 1))
        ]
    parts = np.arange(1, SPREAD)
    width = width[leaf, None]
    inside: NDArray[Any]
    if lattice is None:
        inside = at[leaf, None] + parts / SPREAD * width
        t = np.broadcast_to(parts / SPREAD, inside.shape)
    else:
        inside = points_on(lattice, start + parts * width // SPREAD)
        t = (on_line(lattice, inside) - start) / width
    left, right = slopes[0][:, None], slopes[1][:, None]
    step = rise[:, 1:2]
    bend = left + right - 2.0 * step
    risen = t * (left + t * (step - left - bend + t * bend))
    values = np.maximum.accumulate(low[:, None] + np.maximum(risen, 0.0), axis=1)
    return inside, np.minimum(values, high[:, None])


def on_line(lattice: Lattice | None, points: NDArray[Any]) -> NDArray[Any]:
    """Numbers of points as masses that a prior gives them; without one, as they are."""
    masses = None if lattice is None else lattice.masses
    return points if masses is None else masses.below(points)


def points_on(lattice: Lattice, line: NDArray[np.int64]) -> NDArray[np.int64]:
    """Back from `on_line`: the point that has that part of the mass."""
    return line if lattice.masses is None else lattice.masses.points_of(line)


def points_below(
    lattice: Lattice, x: NDArray[np.float64], side: Side = "left"
) -> NDArray[np.int64]:
    """Number of lattice points below x ("left"), or not above it ("right"), by comparison."""
    near = lattice.encode(x.ravel()).reshape(x.shape)
    before = np.less if side == "left" else np.less_equal
    found = near - 1  # points up to near - 2: the next three are compared
    with np.errstate(over="ignore"):
        for shift in (-1, 0, 1):
            found += before(lattice.decode(near + shift), x)
    return np.clip(found, 0, lattice.points)


@np.errstate(over="ignore")  # an edge beyond all numbers is infinite
def rounding_edges(
    multiples: NDArray[np.float64], step: float, per_unit: float
) -> NDArray[np.float64]:
    """The smallest float64 numbers that are rounded to these multiples of `step`, or to higher.

    Rounding is that of `Lattice.encode`: to the even one at a tie.
    """

    def multiple(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.rint(values * per_unit if per_unit else values / step)

    half = multiples - 0.5
    with np.errstate(over="ignore"):  # beyond float64 there is no record
        edges = half / per_unit if per_unit else half * step
    # The quotient is right to some units of the last digit: so many steps at most.
    while (low := multiple(edges) < multiples).any():
        edges[low] = np.nextafter(edges[low], math.inf)
    while (high := multiple(np.nextafter(edges, -math.inf)) >= multiples).any():
        edges[high] = np.nextafter(edges[high], -math.inf)
    return edges


def _starts(points: int, leaves: int) -> NDArray[np.int64]:
    """The first point of each leaf, and the number of points: ceil(k points / leaves), exactly."""
    whole, rest = divmod(points, leaves)
    k = np.arange(leaves + 1)
    return k * whole - (-k * rest // leaves)


def _starts_on(lattice: Lattice, most: int) -> NDArray[np.int64]:
    """`_starts` of at most so many leaves: each begins at the point next to its share of mass."""
    leaves = min(most, lattice.points)
    masses = lattice.masses
    if masses is None or leaves == lattice.points:
        return _starts(lattice.points, leaves)
    shares = _starts(masses.total, leaves)[1:-1]
    starts = masses.points_of(shares)
    starts += shares - masses.below(starts) > masses.below(starts + 1) - shares
    # A point for each leaf, where a point's mass is that of several.
    k = np.arange(leaves + 1)
    starts = np.maximum.accumulate(np.concatenate(([0], starts, [lattice.points])) - k) + k
    return np.minimum(starts, lattice.points - leaves + k)


def _bins(lattice: Lattice, most: int) -> Bins:
    starts = _starts_on(lattice, most)
    leaves = starts.size - 1
    edges = np.empty(leaves + 1)
    edges[0], edges[-1] = lattice.low, lattice.high
    inner = (starts[1:-1] + lattice.first).astype(np.float64)
    edges[1:-1] = rounding_edges(inner, lattice.step, lattice.per_unit)
    if lattice.masses is not None:
        return Bins.of(edges)
    # Half a point below the first one of each leaf is, in the mean, so far from k points / leaves.
    shift = math.gcd(lattice.points, leaves) / (2.0 * leaves)
    low = max((lattice.first - shift) * lattice.step, -LARGEST)
    return Bins.even(edges, low, min(low + lattice.points * lattice.step, LARGEST))


_kept_leaves = lru_cache(maxsize=4)(Leaves)  # public facts only
_kept_bins = lru_cache(maxsize=4)(_bins)
