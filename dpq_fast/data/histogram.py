"""Counts of values by bin, in one pass over unsorted data, exact at the edges.

A bin is decided by comparing values with the stored float64 edges and by nothing else: no
logarithm, quotient or product is trusted. So what a mechanism reads off the counts, such as
#{v < edge}, is what it would get by asking the data.

Bins are public. The counts are private, exact, and not noised here.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._kernels import histogram as kernel
from dpq_fast.data.columns import as_float64, as_plain, is_plain, is_ready
from dpq_fast.data.passes import CONVERTED

# Most bins: of 8 bytes each, and as much again for the edges.
MAX_BINS = 2**28
# Most thresholds of a geometric grid.
MAX_THRESHOLDS = 2**24
# Bins up to this many (some 20 MB) are kept for the next call.
KEPT_BINS = 2**20
# Keys per edge, for edges that stand anyhow.
KEYS_PER_EDGE = 8
# Octaves from the smallest to the largest float64.
OCTAVES = 2098


class Bins:
    """Public bins over the whole line, ready to count values from any number of threads.

    With edges e_0 <= ... <= e_B, values below e_0 count as e_0 and values above e_B as e_B. Bin k
    is [e_k, e_{k+1}), and the last one [e_{B-1}, e_B]. So v is in bin #{0 < k < B : e_k <= v}, but
    for v < e_0 where e_0 is tied.

    Attributes
    ----------
    edges : ndarray of float64, read-only
        For `uniform` and `of`, all B + 1 edges. For `geometric`, the B lower edges of the buckets:
        the last one has no upper edge. With `below`, the first lower edge is -inf.
    size : int
        Number of bins B.
    """

    __slots__ = ("_table", "edges", "size")

    def __init__(self, edges: NDArray[np.float64], size: int, table: kernel.Table) -> None:
        edges.flags.writeable = False
        self.edges = edges
        self.size = size
        self._table = table

    @classmethod
    def uniform(cls, low: float, high: float, bins: int) -> Bins:
        """Bins of equal width.

        Parameters
        ----------
        low, high : float
            Finite low < high. Public.
        bins : int
            Number of bins, from 1 to 2^28. Public.

        Notes
        -----
        The edges are float64 numbers: edges[k] = k * step + low with step = (high - low) / bins,
        each operation rounded, and edges[bins] = high. That is what ``np.linspace(low, high,
        bins + 1)`` gives, unless step is subnormal; then edges are cut at `high`, so that they
        ascend.

        Examples
        --------
        >>> Bins.uniform(0.0, 1.0, 2).count([-5.0, 0.0, 0.3, 0.5, 1.0])
        array([3, 2])
        """
        low, high = _checks.check_bounds((low, high))
        bins = _checks.check_count("bins", bins)
        if bins > MAX_BINS:
            raise ValueError(f"bins must be at most 2^28, got {bins}")
        return (_kept_uniform if bins <= KEPT_BINS else _uniform)(low, high, bins)

    @classmethod
    def of(cls, edges: Any) -> Bins:
        """Bins between given edges.

        Parameters
        ----------
        edges : array_like of real numbers, shape (size + 1,)
            Ascending; ties and infinite ones are allowed. Public.

        Notes
        -----
        The bins of ``np.histogram(values, edges)``, but for values outside of all edges: they are
        clamped into the first and the last bin (data are bounded here), where NumPy leaves them
        out.

        Examples
        --------
        >>> Bins.of([0.0, 1.0, 10.0]).count([-5.0, 0.0, 1.0, 9.0, 10.0, 11.0])
        array([2, 4])
        """
        given = np.asarray(edges)
        if given.ndim != 1 or given.size < 2:
            raise ValueError(
                f"edges must be at least two numbers in a row, got shape {given.shape}"
            )
        if given.dtype.kind not in "iuf":
            raise TypeError(f"edges must be real numbers, got dtype {given.dtype}")
        if given.size - 1 > MAX_BINS:
            raise ValueError(f"edges must make at most 2^28 bins, got {given.size - 1}")
        public = as_float64(given).copy()
        wrong = np.flatnonzero(~(public[:-1] <= public[1:]))  # NaN fails
        if wrong.size:
            k = int(wrong[0])
            raise ValueError(
                "edges must ascend and not be NaN, "
                f"got edges[{k}] = {public[k]}, edges[{k + 1}] = {public[k + 1]}"
            )
        return cls(public, public.size - 1, _table(public))

    @classmethod
    def geometric(
        cls,
        beta: float,
        lower: float,
        upper: float | None = None,
        *,
        below: bool = False,
        step: int = 1,
    ) -> Bins:
        r"""Buckets whose distance from `lower` grows like the powers of `beta`.

        The thresholds :math:`t_i = (\beta^i - 1) + lower`, i = 0, ..., I, are the lower edges: the
        power rounded to nearest, then each operation. They ascend (with ties where `lower` is
        large) from t_0 = `lower`. t_I is the first threshold not below `upper`, or the last one in
        float64, or, without `upper`, t_I with I + 1 = 2^24. The last bin has no upper edge.

        Parameters
        ----------
        beta : float
            Finite, greater than 1. Public.
        lower : float
            Finite; values below it count as `lower`. Public.
        upper : float, optional
            Where to stop, finite, above `lower`, reached by 2^24 thresholds. Public. Default: the
            end of float64, or 2^24 thresholds.
        below : bool, default False
            Whether values below `lower` have a bin of their own, before the others. Public.
        step : int, default 1
            Only every step-th threshold is an edge: t_0, t_step, .... Public.

        Notes
        -----
        The queries of the unbounded quantile, f_i = #{v < t_i} with v clamped to `lower` from
        below, are ``counts[:i].sum()``, exactly, on the thresholds that it releases.

        Examples
        --------
        >>> bins = Bins.geometric(2.0, 0.0)
        >>> bins.edges[:5]
        array([ 0.,  1.,  3.,  7., 15.])
        >>> bins.count([-1.0, 0.0, 1.0, 2.9, 3.0, 8.0])[:5]
        array([2, 2, 1, 1, 0])
        """
        size = geometric_size(beta, lower, upper)
        make = _kept_geometric if size <= KEPT_BINS * step else _geometric
        return make(float(beta), float(lower), size, below, step)

    @classmethod
    def even(cls, edges: NDArray[np.float64], low: float, high: float) -> Bins:
        """Bins between ascending float64 edges; quick where these are nearly even in [low, high].

        Which bin a value is in is decided by the edges alone.
        """
        size = edges.size - 1
        return cls(edges, size, _linear(edges[1:-1], low, high, size, float(edges[0])))

    def find(self, value: float) -> int:
        """The bin of a number that is not NaN."""
        inner = self.edges[1 : self.size]
        return int(np.searchsorted(inner, max(value, self.edges[0]), side="right"))

    def zeros(self) -> NDArray[np.int64]:
        """Counts to begin with."""
        return np.zeros(self.size, dtype=np.int64)

    def count(
        self,
        values: Any,
        weights: Any = None,
        *,
        negate: bool = False,
        out: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """Count values by bin; `out`, where given, is added to.

        Parameters
        ----------
        values : array_like of real numbers, shape (n,)
            Any order, n >= 0. Compared as float64: what is not exact there is rounded first. NaN
            is in no bin. Private.
        weights : array_like of int, shape (n,), optional
            What each value counts for, in place of 1; not negative, the sum at most 2^53 (the
            caller's promise; if it is broken, counts are wrong). Private.
        negate : bool, default False
            Whether -v is counted in place of v. Public.
        out : ndarray of int64, shape (size,), optional
            Counts so far, added to in place: of other batches, or of another thread's part.

        Returns
        -------
        ndarray of int64, shape (size,)
            `out`, or fresh counts.

        Raises
        ------
        TypeError
            If an argument is not of its type.
        ValueError
            If an argument is not of its shape.
        """
        column = _column("values", values, "iuf")
        weight = None if weights is None else _column("weights", weights, "iu")
        if weight is not None and weight.size != column.size:
            raise ValueError("weights must have one entry for each value")
        counts = self.zeros() if out is None else self._checked(out)
        ready = is_plain(column) and (weight is None or is_ready(weight, np.int64))
        step = max(column.size, 1) if ready else CONVERTED
        for start in range(0, column.size, step):
            part = slice(start, start + step)
            self._table.count(
                as_plain(column[part]),
                negate,
                None if weight is None else _as_int64(weight[part]),
                counts,
            )
        return counts

    def _checked(self, out: Any) -> NDArray[np.int64]:
        if not isinstance(out, np.ndarray) or out.dtype != np.int64 or not out.dtype.isnative:
            raise TypeError("out must be an ndarray of int64")
        if out.shape != (self.size,):
            raise ValueError(f"out must have shape ({self.size},), got {out.shape}")
        flags = out.flags
        if not (flags.c_contiguous and flags.aligned and flags.writeable):
            raise ValueError("out must be contiguous, aligned and writeable")
        return out


def geometric_size(beta: float, lower: float, upper: float | None = None) -> int:
    """How many thresholds `Bins.geometric` has. Public."""
    beta = _checks._real("beta", beta)
    if not 1.0 < beta < math.inf:  # NaN fails
        raise ValueError(f"beta must be finite and greater than 1, got {beta}")
    lower = _checks._real("lower", lower)
    if not math.isfinite(lower):
        raise ValueError(f"lower must be finite, got {lower}")
    if upper is None:
        return min(_kept_reach(beta, lower, math.inf), MAX_THRESHOLDS)
    upper = _checks._real("upper", upper)
    if not lower < upper < math.inf:
        raise ValueError(f"upper must be finite and above lower, got ({lower}, {upper})")
    size = _kept_reach(beta, lower, upper)
    if size > MAX_THRESHOLDS:
        raise ValueError(f"beta must be large enough to reach upper in 2^24 thresholds, got {beta}")
    return size


def geometric_thresholds(
    beta: float, lower: float, start: int, stop: int, step: int = 1
) -> NDArray[np.float64]:
    """The thresholds t_i of `Bins.geometric`, i in a range, where finite; quickly.

    The same numbers, without making those before.
    """
    return kernel.thresholds(beta, lower, start, stop, step)


def _uniform(low: float, high: float, bins: int) -> Bins:
    edges = np.full(bins + 1, high)
    lower = np.arange(bins) * ((high - low) / bins) + low
    np.minimum(lower, high, out=edges[:-1])  # above high only where a subnormal step was rounded up
    return Bins(edges, bins, _linear(edges[1:-1], low, high, bins))


def _geometric(beta: float, lower: float, size: int, below: bool, step: int) -> Bins:
    edges = kernel.thresholds(beta, lower, 0, size, step)
    if below:
        edges = np.append(-math.inf, edges)
    # Parts of [1, 2) narrower than the first bucket hold one edge each, with room for rounding.
    bucket = math.expm1(min(step * math.log(beta), 1.0))  # more is one part, too
    bits = min(max(1 - math.frexp(0.9 * bucket)[1], 0), 52)
    table = _logarithmic(edges[1:], float(edges[0]), lower, 1.0, 52 - bits)
    return Bins(edges, edges.size, table)


def _reach(beta: float, lower: float, upper: float) -> int:
    """How many thresholds there are, at most MAX_THRESHOLDS + 1."""
    return kernel.reach(beta, lower, upper, MAX_THRESHOLDS + 1)


_kept_uniform = lru_cache(maxsize=4)(_uniform)  # public facts only
_kept_geometric = lru_cache(maxsize=4)(_geometric)
_kept_reach = lru_cache(maxsize=64)(_reach)


def _linear(
    inner: NDArray[np.float64], low: float, high: float, keys: int, clamp: float | None = None
) -> kernel.Table:
    """A table with `keys` keys of equal width between finite low < high."""
    width = high / keys - low / keys  # high - low may be infinite
    scale = min(1.0 / width, 2.0**1000) if width > 0.0 else 2.0**1000
    return kernel.Table(inner, low if clamp is None else clamp, low, scale, False, 0, keys)


def _logarithmic(
    inner: NDArray[np.float64], clamp: float, base: float, scale: float, shift: int
) -> kernel.Table:
    """A table whose keys are relative distances from ``base - scale``, base <= inner."""
    top = inner[np.searchsorted(inner, math.inf) - 1] if inner.size else base
    with np.errstate(over="ignore"):
        ends = np.array([max(top - base, 0.0) + scale, scale])
    last, first = (ends.view(np.int64) >> shift).tolist()
    return kernel.Table(inner, clamp, base, scale, True, shift, last - first + 1)


def _table(edges: NDArray[np.float64]) -> kernel.Table:
    """A table for any ascending edges: the key that tells more of them apart."""
    clamp, inner = float(edges[0]), edges[1:-1]
    finite = inner[np.isfinite(inner)]
    if finite.size == 0:
        return _linear(inner, 0.0, 1.0, 1, clamp)
    low, high = float(finite[0]), float(finite[-1])
    keys = KEYS_PER_EDGE * finite.size
    linear = _linear(inner, low, high, keys, clamp)
    if linear.most <= 1:
        return linear
    with np.errstate(over="ignore"):
        gaps = np.diff(finite)
    smallest = float(gaps[gaps > 0.0].min(initial=math.inf))
    if smallest == math.inf:
        return linear
    with np.errstate(over="ignore"):
        octaves = min(math.frexp(high / 4.0 - low / 4.0)[1] - math.frexp(smallest)[1] + 4, OCTAVES)
    bits = min(max((keys // octaves).bit_length(), 0), 52)
    logarithmic = _logarithmic(inner, clamp, low, smallest, 52 - bits)
    return min(linear, logarithmic, key=lambda table: table.most)


def _column(name: str, given: Any, kinds: str) -> NDArray[Any]:
    column = np.asarray(given)
    if column.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got {column.ndim} dimensions")
    if column.size == 0 and not isinstance(given, np.ndarray):
        return np.empty(0, dtype=np.int64)
    if column.dtype.kind not in kinds:
        rule = "hold real numbers" if "f" in kinds else "be integers"
        raise TypeError(f"{name} must {rule}, got dtype {column.dtype}")
    return column


def _as_int64(weight: NDArray[Any]) -> NDArray[np.int64]:
    return weight if is_ready(weight, np.int64) else np.array(weight, dtype=np.int64, order="C")
