"""A released distribution function: any quantile and any share can be read off it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpq_fast import _checks, metrics
from dpq_fast._arguments import in_our_words
from dpq_fast.data.columns import as_column
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.leaves import Curve, Side, points_below, points_on
from dpq_fast.data.reprs import placement, shown
from dpq_fast.data.units import Unit, in_unit, real_points
from dpq_fast.noise.counts import CountNoise, Geometric
from dpq_fast.privacy.levels import Levels
from dpq_fast.released.packing import Packed, check_unit

# How rarely what was simulated may mislead.
CHANCE = 1e-6
# Most points of a lattice that is compared with a function that does not step at the same points.
MAX_COMPARED = 2**24


class CumulativeNoise(NamedTuple):
    """Noise of numbers of records below some points.

    Attributes
    ----------
    noise : CountNoise
        Law of one draw, an integer; of "factorized", times a public constant.
    units : callable
        ``units()`` gives, for each point, the sum of the squared weights of the independent
        draws in its number; no weight exceeds 1.
    plain : bool
        Whether the weights are 1, so that the units are numbers of draws.
    apart : float, default 0.0
        By how much more differences of the numbers in use may be off than those of the numbers with
        this noise: seen in the release.
    ranges : callable, optional
        ``ranges()`` gives simulated ranges of the noise, from 0 at the first point, ascending.
    made_of : tuple, default ()
        What it is made of, all public: its name in `dpq_fast.mechanisms.cdf.NOISES`, and what that
        takes. Without it, it cannot become bytes.
    """

    noise: CountNoise
    units: Callable[[], NDArray[np.float64]]
    plain: bool
    apart: float = 0.0
    ranges: Callable[[], NDArray[np.float64]] | None = None
    made_of: tuple[Any, ...] = ()

    def span(self, beta: float) -> float:
        r"""No difference of two numbers in use is farther off, with probability 1 - beta or more.

        Twice the `margin`, or the quantile of what is simulated of the range of the noise (the
        largest number less the smallest one), if that is less: its law is public. The order
        statistic that is taken is below the quantile with a probability of 10^-6; the seed is
        fixed.
        """
        known = 2.0 * self.margin(beta)
        ranges = np.zeros(0) if self.ranges is None else self.ranges()
        # P[more than k of them are below the quantile]
        tails = scipy.special.bdtrc(np.arange(ranges.size), ranges.size, 1.0 - beta)
        certain = np.flatnonzero(tails <= CHANCE)
        if certain.size:
            known = min(known, float(ranges[certain[0]]))
        return known + self.apart

    def margin(self, beta: float) -> float:
        r"""No number is farther off than this, with probability at least 1 - beta.

        For sums of discrete Laplace draws by the union of their exact tails. Else by that of
        Chernoff bounds, for the best :math:`\lambda`: with K the logarithm of the noise's moment
        generating function and w the weights,
        :math:`\ln E e^{\lambda \sum w Z} = \sum K(w \lambda) \le K(\lambda) \sum w^2`, since
        :math:`K(\lambda) / \lambda^2` does not fall.
        """
        units, times = np.unique(self.units(), return_counts=True)
        units, times = units[units > 0.0], times[units > 0.0]
        scale = float(self.noise.scale)

        def bound(log_theta: float) -> float:
            theta = math.exp(log_theta)  # lambda times the scale
            exponent = scipy.special.logsumexp(
                np.log(2.0 * times) + units * self.noise.log_moment(theta)
            )
            return scale * (float(exponent) - math.log(beta)) / theta

        # for discrete Laplace noise lambda ends at 1 / scale
        discrete_laplace = isinstance(self.noise, Geometric)
        span = (-15.0, -1e-9 if discrete_laplace else 4.0)
        high = float(scipy.optimize.minimize_scalar(bound, bounds=span, method="bounded").fun)
        if not (self.plain and discrete_laplace):
            return high
        low, most = -1, math.ceil(high)
        while most - low > 1:  # the least whole number that will do
            middle = (low + most) // 2
            tails = [self.tail(int(draws), middle + 1) for draws in units.tolist()]
            low, most = (low, middle) if float(times @ tails) <= beta else (middle, most)
        return float(most)

    def tail(self, draws: int, least: int) -> float:
        r"""P[|S| >= least] for the sum S of so many discrete Laplace draws; least >= 1.

        Notes
        -----
        With :math:`r = e^{-1/scale}` and m draws, S has the generating function
        :math:`(1-r)^{2m} / ((1-rz)^m (1-r/z)^m)`. Its partial fractions at z = 1/r give
        :math:`P[S = k] = \sum_{i<m} W_i P[N_{m-i} = k]` for :math:`k \ge 0`, with :math:`N_j` a
        negative binomial variable, the sum of j geometric ones, and :math:`W_i` the coefficient
        of :math:`w^i` in :math:`((1 - (1-r) w) / (1 + r - w))^m`. All terms are positive.
        """
        rate = 1.0 / float(self.noise.scale)
        r, stop = math.exp(-rate), -math.expm1(-rate)
        one = r * r / (1.0 + r) ** np.arange(1, draws + 1)
        one[0] = 1.0 / (1.0 + r)
        weights = np.ones(1)
        for _ in range(draws):
            weights = np.convolve(weights, one)[:draws]
        return 2.0 * float(weights @ scipy.special.betaincc(draws - np.arange(draws), least, stop))


@in_our_words
class CDF(Packed, byte=3):
    r"""A released distribution function: it rises from 0 to 1.

    Made by `cdf`. It is not private any more, and can be asked as often as you like, copied,
    pickled and sent (`to_bytes`).

    On a lattice it is a step function, as that of records on lattice points is: continuous from
    the right, and constant but for steps at the points. The points above ``x[k - 1]`` and up to
    ``x[k]`` all have the same step; with a prior, steps in proportion to their masses. Without a
    lattice it is linear between ``x[k - 1]`` and ``x[k]``.

    Parameters
    ----------
    x : ndarray of float64, shape (K,)
        Where its values are known, ascending. On a lattice, points; in a release from one step
        below the lowest one, where it is 0, to the highest one. Without a lattice, in a release
        from `bounds[0]` to `bounds[1]`; at a tie it jumps.
    p : ndarray of float64, shape (K,)
        Its values there, not decreasing, from 0 to 1.
    total : float, optional
        Number of records, public or estimated.
    noise : CumulativeNoise, optional
        Noise of the numbers of records up to `edges`.
    lattice : Lattice, optional
        The points that it steps at; quantiles are points.
    edges : ndarray of float64, optional
        Those of `x` up to which records were counted; in between, mass is spread. Default: `x`.

    Attributes
    ----------
    x, p, total, lattice, edges
        As given.
    parts : int
        How many of what was counted are one in `total`, `count` and `accuracy`: 2^20 where records
        share the weights of persons, else 1.
    unit : Unit or None
        What numbers stand for where records are times or durations: then `x`, `edges` and `lattice`
        are in steps of the resolution, and so are distances. Methods take times and give them.

    Examples
    --------
    >>> import numpy as np
    >>> import dpq_fast as dpq
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> released = dpq.cdf(ages, epsilon=1.0, bounds=(0, 120), resolution=1)
    >>> released
    CDF(bounds=(0, 120), resolution=1, intervals=121)
    >>> bool(0.4 < released(49) < 0.6), bool(40 < released.quantile(0.5) < 60)
    (True, True)
    >>> bool(released.accuracy(0.05) < 500)  # records, of 10,000
    True
    """

    def __init__(
        self,
        x: NDArray[np.float64],
        p: NDArray[np.float64],
        *,
        total: float | None = None,
        noise: CumulativeNoise | None = None,
        lattice: Lattice | None = None,
        edges: NDArray[np.float64] | None = None,
    ) -> None:
        self.x = _ascending("x", x)
        self.p = _ascending("p", p)
        if self.x.shape != self.p.shape or self.p[0] != 0.0 or self.p[-1] != 1.0:
            raise ValueError("p must ascend from 0 to 1 and be as long as x")
        if not (lattice is None or isinstance(lattice, Lattice)):
            raise TypeError(f"lattice must be a Lattice or None, got {type(lattice).__name__}")
        self._curve = Curve(self.x, self.p, lattice)
        if lattice is None:
            with np.errstate(invalid="ignore", over="ignore"):  # equal infinite ones, huge ones
                apart = (self.x[:-1] < self.x[1:]) & ~np.isfinite(np.diff(self.x))
            if (self.p[:-1] < self.p[1:])[apart].any():
                raise ValueError("x must have finite differences where p rises linearly")
        else:
            knots = self._curve.knots
            with np.errstate(over="ignore"):  # a step below the lowest point
                off = lattice.decode(points_on(lattice, knots.astype(np.int64))) != self.x
            if (off | ((knots < 0.0) & (self.p > 0.0))).any():
                raise ValueError(
                    "x must be points of the lattice or, where p is 0, a step below the lowest one"
                )
        if not (noise is None or isinstance(noise, CumulativeNoise)):
            raise TypeError(f"noise must be a CumulativeNoise or None, got {type(noise).__name__}")
        self.unit: Unit | None = None
        self.parts = 1
        self.total = None if total is None else _checks.check_nonnegative("total", total)
        self.lattice = lattice
        self.edges = self.x if edges is None else _ascending("edges", edges)
        if not np.isin(self.edges, self.x).all():
            raise ValueError("edges must be some of x")
        self._noise = noise

    def _parts(self) -> dict[str, Any]:
        noise = self._noise
        if noise is not None and not noise.made_of:
            raise TypeError("noise must be that of a release to become bytes")
        return dict(
            x=self.x,
            p=self.p,
            total=self.total,
            noise=None if noise is None else (noise.apart, *noise.made_of),
            lattice=self.lattice,
            edges=None if self.edges is self.x else self.edges,
            unit=self.unit,
            parts=self.parts,
        )

    @classmethod
    def _of_parts(cls, parts: dict[str, Any]) -> CDF:
        from dpq_fast.mechanisms.cdf import NOISES  # which are known by name

        later = {name: parts.pop(name) for name in ("unit", "parts")}
        if parts["noise"] is not None:
            apart, name, *made_of = parts["noise"]
            parts["noise"] = NOISES[name](*made_of)._replace(apart=apart)
            if not (math.isfinite(apart) and isinstance(parts["noise"].noise, CountNoise)):
                raise ValueError("noise must be of counts, and finite")
        curve = cls(**parts)
        curve.unit = check_unit(later["unit"])
        curve.parts = _checks.check_count("parts", later["parts"])
        return curve

    def of_parts(self, parts: int) -> CDF:
        """The same where so many of what was counted are one: numbers are those of persons."""
        self.parts = parts
        self.total = None if self.total is None else self.total / parts
        return self

    def __repr__(self) -> str:
        lattice = self.lattice
        ends = (self.x[0], self.x[-1]) if lattice is None else (lattice.low, lattice.high)
        bounds = float(ends[0]), float(ends[1])
        intervals = None if self._noise is None else self.edges.size - 1
        public = placement(bounds, lattice, self.unit)
        public.pop("dither", None)  # of the records that it was read off
        return shown(self, **public, intervals=intervals)

    def __call__(self, x: Any) -> Any:
        """As `cdf`."""
        return self.cdf(x)

    @in_our_words
    def cdf(self, x: Any) -> Any:
        """Share of the records that are at most x; so does calling it.

        Parameters
        ----------
        x : float or array_like of float
            Any numbers.

        Returns
        -------
        float or ndarray of float64
        """
        return metrics._plain(self._curve.values(real_points("x", x, self.unit), "right"))

    @in_our_words
    def quantile(self, q: Any) -> Any:
        """The smallest x with ``cdf(x) >= q``.

        Parameters
        ----------
        q : float or array_like of float
            Levels in [0, 1], any order and shape, at least one.

        Returns
        -------
        float or ndarray of float64
            In the shape of `q`, non-decreasing in `q`, inside the bounds, on the lattice. At 0,
            where the function begins to rise.
        """
        levels = Levels(q)
        return in_unit(self.unit, levels.restore(self._curve.inverse(levels.values)))

    @in_our_words
    def count(self, lo: Any, hi: Any) -> Any:
        """Number of records in [lo, hi), where records are counted.

        Parameters
        ----------
        lo, hi : float or array_like of float
            lo <= hi.

        Returns
        -------
        float or ndarray of float64
            Not negative. On a lattice it is the points in [lo, hi) whose records are counted.
        """
        if self.total is None:
            raise ValueError("count must be asked of a method that counts records")
        first, last = real_points("lo", lo, self.unit), real_points("hi", hi, self.unit)
        if (first > last).any():
            raise ValueError("lo must be at most hi")
        below, through = (self._curve.values(end, "left") for end in (first, last))
        return metrics._plain(self.total * (through - below))

    @in_our_words
    def accuracy(self, beta: float = 0.05) -> float:
        r"""How far off the number of records of any interval between `edges` is.

        Parameters
        ----------
        beta : float, default 0.05
            Probability of failure, strictly between 0 and 1.

        Returns
        -------
        float
            alpha: with probability at least 1 - beta, ``total * (cdf(b) - cdf(a))`` is within
            alpha of the number of records in (a, b] for *all* pairs a < b of `edges`: on a
            lattice, of the records that round to points above a and up to b; without one, it is
            the records in [a, b).

        Raises
        ------
        ValueError
            If the method does not count records with discrete noise, or `beta` breaks its rule.

        Notes
        -----
        *Proof.* Let :math:`v_k = t_k + e_k` be unbiased numbers of records up to the edges, t the
        true ones and e the noise, :math:`e_0 = 0`, and R a bound of the range
        :math:`\max e - \min e` that holds with probability 1 - beta (`CumulativeNoise.span`). Then
        :math:`v + c - R \le t \le v + c` for some number c. As t ascends, it is at least
        :math:`P + c - R`, with :math:`P_k = \max_{i \le k} v_i`, and at most :math:`Q + c`, with
        :math:`Q_k = \min_{i \ge k} v_i`. For any numbers f,
        :math:`f - Q - c \le f - t \le f - P - c + R`, so that differences of f are within
        :math:`R + \max(f - P) + \max(Q - f)` of those of t. The released numbers are the
        non-decreasing ones that are nearest to v, which lie between Q and P (their first one, 0, on
        both): the maxima are 0. Cutting off at 0, and at a public total, comes no less near to t.

        "adaptive" weights counts by what else was halved, which depends on noise. There v are
        numbers with fixed weights instead (`_units_above`), and the maxima can be seen in the
        release: alpha is known with it, not beforehand.
        """
        if self._noise is None:
            raise ValueError("accuracy must be asked of a method that counts with discrete noise")
        beta = _checks.check_nonnegative("beta", beta)
        if not 0.0 < beta < 1.0:
            raise ValueError(f"beta must lie strictly between 0 and 1, got {beta}")
        return self._noise.span(beta) / self.parts

    # Distances

    @in_our_words
    def ks(self, other: Any) -> float:
        """Kolmogorov-Smirnov distance: the largest difference.

        Parameters
        ----------
        other : CDF or array_like of float
            Another distribution function, or a sample: at least one number, no NaN. A sample of
            private data makes the answer private.

        Returns
        -------
        float
        """
        _, _, left, right = self._pieces(other)
        return float(np.abs(np.concatenate((left, right))).max(initial=0.0))

    @in_our_words
    def wasserstein(self, other: Any) -> float:
        """1-Wasserstein distance: the integral of the absolute difference.

        Parameters
        ----------
        other : CDF or array_like of float
            As in `ks`.

        Returns
        -------
        float
            As `scipy.stats.wasserstein_distance` of two samples.
        """
        width, cells, left, right = self._pieces(other)
        first, last = np.abs(left), np.abs(right)
        means = (first + last) / 2.0
        crossing = left * right < 0.0
        linear = crossing & (cells == math.inf)  # two triangles
        means[linear] = (first[linear] ** 2 + last[linear] ** 2) / (first + last)[linear] / 2.0
        (steps,) = np.nonzero(crossing & (cells < math.inf))  # two sums of evenly spaced numbers
        first, last, cells = first[steps], last[steps], cells[steps]
        by = (first + last) / (cells - 1.0)
        before = np.clip(np.floor(first / by) + 1.0, 1.0, cells - 1.0)
        after = cells - before
        sums = before * (first - by * (before - 1.0) / 2.0)
        sums += after * (last - by * (after - 1.0) / 2.0)
        means[steps] = sums / cells
        with np.errstate(over="ignore"):  # infinite then
            return float((width * means).sum())

    @in_our_words
    def energy(self, other: Any) -> float:
        r"""Energy distance: :math:`\sqrt{2 \int (F - G)^2}`.

        Parameters
        ----------
        other : CDF or array_like of float
            As in `ks`.

        Returns
        -------
        float
            As `scipy.stats.energy_distance` of two samples.
        """
        width, cells, left, right = self._pieces(other)
        # The variance of c evenly spaced numbers is (right - left)^2 / 12 times (c + 1) / (c - 1).
        spread = np.ones(width.size)
        finite = cells < math.inf
        spread[finite] = (cells[finite] + 1.0) / np.maximum(cells[finite] - 1.0, 1.0)
        means = ((left + right) / 2.0) ** 2 + spread * (right - left) ** 2 / 12.0
        with np.errstate(over="ignore"):  # infinite then
            return math.sqrt(2.0) * math.sqrt(float((width * means).sum()))

    def _pieces(self, other: Any) -> tuple[NDArray[np.float64], ...]:
        """Pieces on which the difference rises or falls evenly.

        Returns
        -------
        width, cells, left, right : ndarray of float64
            Width of each piece, and the difference where it begins and where it ends. In between
            it is linear where `cells` is infinite; else it has that many values, evenly spaced,
            each on an equal part of the piece.
        """
        curve = other if isinstance(other, CDF) else _empirical(other, self.unit)
        if curve.unit != self.unit:
            raise ValueError("functions must have the same unit, and steps since the same origin")
        pair = sorted((self, curve), key=lambda curve: curve._points)
        lattices = [curve.lattice for curve in pair if curve.lattice is not None]
        if len(lattices) == 2 and _grid(lattices[0]) != _grid(lattices[1]):
            return pair[0]._jumps()._pieces(pair[1])
        if len(lattices) == 1 and not pair[0]._only_jumps:
            return pair[0]._pieces(pair[1]._jumps())
        cuts = [curve.x for curve in pair]
        for lattice in lattices:  # steps are even where masses of a prior are
            if lattice.masses is not None:
                cuts.append(lattice.decode(lattice.masses.firsts - 1))
        if len(lattices) == 1:  # a jump cuts the cell of the lattice that it is in
            below = points_below(lattices[0], pair[0].x)
            ends = np.clip(np.concatenate((below - 1, below)), -1, lattices[0].points - 1)
            cuts.append(lattices[0].decode(ends))
        grid = np.unique(np.concatenate(cuts))
        cells = np.full(grid.size - 1, 1.0 if lattices else math.inf)
        for lattice in lattices:
            inside = points_below(lattice, grid[1:]) - points_below(lattice, grid[:-1], "right")
            np.maximum(cells, inside + 1.0, out=cells)
        pieces: tuple[tuple[NDArray[np.float64], Side], ...]
        pieces = (grid[:-1], "right"), (grid[1:], "left")
        left, right = (
            pair[0]._curve.values(at, side) - pair[1]._curve.values(at, side) for at, side in pieces
        )
        with np.errstate(over="ignore"):
            return np.diff(grid), cells, left, right

    @property
    def _points(self) -> int:
        """Number of lattice points; 0 without a lattice."""
        return 0 if self.lattice is None else self.lattice.points

    @property
    def _only_jumps(self) -> bool:
        """Whether it rises at its points alone, where it is known without a lattice."""
        return not ((self.x[:-1] < self.x[1:]) & (self.p[:-1] < self.p[1:])).any()

    def _jumps(self) -> CDF:
        """The same step function without a lattice: a jump at each of its points."""
        if self._points > MAX_COMPARED:
            raise ValueError(
                "functions that do not step at the same points must have at most 2^24 of them to "
                f"be compared, got {self._points}"
            )
        assert self.lattice is not None
        points = self.lattice.decode(np.arange(self._points))
        p = np.concatenate(([0.0], self._curve.values(points, "right")))
        curve = CDF(np.repeat(points, 2), np.repeat(p, 2)[1:-1])
        curve.unit = self.unit
        return curve

    # For other libraries

    @in_our_words
    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw it, and how far off it may be: `dpq_fast.plots.cdf`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Default: those of a new figure.
        **options
            `band`, and what is for ``ax.plot``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        """
        from dpq_fast import plots  # which draws these functions

        return plots.cdf(self, ax, **options)

    def to_frame(self) -> Any:
        """Its points.

        Returns
        -------
        pandas.DataFrame
            Columns x and p.
        """
        pd = _checks.extra("pandas", "to_frame", "pandas")
        return pd.DataFrame({"x": in_unit(self.unit, self.x), "p": self.p})


def _ascending(name: str, given: Any) -> NDArray[np.float64]:
    """Points of a distribution function."""
    values = real_points(name, given, None)
    if values.ndim != 1 or values.size < 2 or not (values[:-1] <= values[1:]).all():
        raise ValueError(f"{name} must be at least two numbers in a row that ascend")
    return values


def _empirical(sample: Any, unit: Unit | None = None) -> CDF:
    """The distribution function of a sample: a jump at each value."""
    column = real_points("other", as_column(sample, unit), None)
    values, counts = np.unique(column, return_counts=True)
    if values.size == 0:
        raise ValueError("other must hold at least one number, got none")
    p = np.cumsum(np.concatenate(([0.0], counts))) / counts.sum()
    curve = CDF(np.repeat(values, 2), np.repeat(p, 2)[1:-1])
    curve.unit = unit
    return curve


def _grid(lattice: Lattice) -> tuple[float, float]:
    """What the multiples are that lattice points are some of."""
    return lattice.step, lattice.per_unit
