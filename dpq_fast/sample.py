"""The sample: a column of records, checked for its form, clamped, put in order.

Form (dimension, type, lengths, the sign of counts) may be refused; nothing else about the data
decides whether or what is raised, and no message holds a number taken from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Set
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._kernels import lattice as kernel
from dpq_fast._kernels import select
from dpq_fast._kernels import sums as kernel_sums
from dpq_fast.chunks import CONVERTED, Chunks
from dpq_fast.histogram import Bins
from dpq_fast.lattice import MAX_POINTS, Lattice, as_float64, is_ready
from dpq_fast.order import CoarseOrder, RunsOrder, SortedOrder, WholeOrder, dithered
from dpq_fast.rng import default_rng
from dpq_fast.selection import PROBED, Buckets, SelectedOrder

# Columns up to this many records are sorted where they are not in order; longer ones are gone
# through, and only windows of ranks are sorted.
SORTED_RECORDS = 2**16
# A lattice is counted point by point where it has few points, or one for so many records (but with
# at most the last many counters); else its points are treated like other values.
FEW_POINTS, RECORDS_PER_POINT, MANY_POINTS = 2**10, 4, 2**22
# Where Arrow sources have their schema: tables and data sets, Parquet files, fragments.
SCHEMAS = ("schema", "schema_arrow", "physical_schema")
# Numbers in a sequence that need no further look.
CODES = "?" + np.typecodes["AllInteger"] + np.typecodes["Float"]
PLAIN = {bool, int, *(np.dtype(code).type for code in CODES)}
# Room for the records of a piece that are in a range; where they are more, they are found again.
FOUND = 2**16


class Sample:
    """Records of one numeric column, clamped to bounds and in order, ready for any mechanism.

    A sample keeps the records, or what it takes to go through them again; it is private. Make one
    with `Sample.of` or `Sample.from_batches` and pass it to several releases in place of the
    column.

    Attributes
    ----------
    bounds : (float, float)
        Public.
    lattice : Lattice or None
        The public lattice of outputs; None for the continuous mechanism.
    records : Records
        The records, clamped to the bounds, to be counted.
    """

    __slots__ = ("_coarse", "bounds", "lattice", "records")

    def __init__(
        self,
        coarse: Callable[[], CoarseOrder],
        records: Records,
        lattice: Lattice | None,
        bounds: tuple[float, float],
    ) -> None:
        self._coarse = coarse
        self.records = records
        self.lattice = lattice
        self.bounds = bounds

    @classmethod
    def of(
        cls,
        x: Any,
        bounds: tuple[float, float] | None,
        *,
        resolution: float | None = None,
        dither: bool | None = None,
        counts: Any = None,
        assume_sorted: bool = False,
        nan_policy: str = "omit",
        workers: int = 1,
    ) -> Sample:
        """Check, clamp and order a column.

        Parameters
        ----------
        x : array_like of real numbers, shape (n,)
            NumPy array, pandas, polars or pyarrow column, or a sequence; n >= 0. Private. With
            `counts`, the distinct values. A `Sample` is returned as it is (then the other
            arguments must be left at their defaults, or `bounds` equal to the sample's).
        bounds : (float, float)
            Finite low < high, chosen without looking at `x`. Public.
        resolution : float, optional
            Spacing of the public lattice of outputs, in the unit of `x`; 0 for none. Default: a
            power of ten, about 10^-6 of the range, whatever the type of `x`. Public.
        dither : bool, optional
            Whether records are spread within their lattice cell before the mechanism. Default:
            wherever there is a lattice. Public.
        counts : array_like of int, shape (n,), optional
            How often each value occurs; non-negative, sum at most 2^53. Private.
        assume_sorted : bool, default False
            The caller's promise that `x` ascends, NaN last. If it is broken, the answer is
            meaningless and its privacy lost, but memory stays safe. Public.
        nan_policy : {"omit", "raise"}, default "omit"
            "omit" leaves NaN and null out, record by record; "raise" states that there are none.
        workers : int, default 1
            Number of threads for going through long columns; negative numbers count back from
            the number of CPUs. The sample does not depend on it.

        Returns
        -------
        Sample

        Raises
        ------
        TypeError
            If `x` or `counts` is not of a real numeric type.
        ValueError
            If a public argument breaks its rule, `x` is not one-dimensional, `counts` does not
            fit `x` or holds a negative or fractional number, or NaN is there against
            ``nan_policy="raise"``.

        Notes
        -----
        **Cost.** O(n), without a copy of `x`: one pass here, and another in each release; none
        but the windows of a release if `x` is sorted. `x` must not change while the sample is in
        use.

        **No release.** A sample is made without an accountant: that a NaN is there against
        ``nan_policy="raise"`` is told without a charge. A release that is given the column itself
        is charged for it.
        """
        return cls._reader(
            x,
            bounds,
            resolution=resolution,
            dither=dither,
            counts=counts,
            assume_sorted=assume_sorted,
            nan_policy=nan_policy,
            workers=workers,
        )()

    @classmethod
    def _reader(
        cls,
        x: Any,
        bounds: tuple[float, float] | None,
        *,
        resolution: float | None = None,
        dither: bool | None = None,
        counts: Any = None,
        assume_sorted: bool = False,
        nan_policy: str = "omit",
        workers: int = 1,
    ) -> Callable[[], Sample]:
        """`of` in two steps: what is public is checked here; what is returned reads the records.

        A release is charged between the two.
        """
        _checks.check_choice("nan_policy", nan_policy, ("omit", "raise"))
        assume_sorted = _checks.check_flag("assume_sorted", assume_sorted)
        threads = _checks.check_workers(workers)
        if isinstance(x, Sample):
            if bounds is not None and _checks.check_bounds(bounds) != x.bounds:
                raise ValueError(
                    f"bounds must be left out or equal to the sample's {x.bounds}, got {bounds}"
                )
            given = [option is not None for option in (resolution, dither, counts)]
            if any(given) or assume_sorted or nan_policy != "omit":
                raise ValueError(
                    "resolution, dither, counts, assume_sorted and nan_policy belong to "
                    "Sample.of, and must be left out for a Sample"
                )
            return lambda: x
        bounds = _checks.check_bounds(bounds)
        check_column(x)
        lattice = Lattice.of(bounds, resolution, dither)
        n_is_public = nan_policy == "raise"

        def read() -> Sample:
            values = as_column(x)
            chunks = Chunks.of_array(values, threads)
            if counts is not None:
                weights = check_counts(counts, values.size)
                coarse = _of_counts(values, weights, lattice, bounds, nan_policy)
                records = Records(chunks, (values, weights), bounds, n_is_public=n_is_public)
                return cls(coarse, records, lattice, bounds)
            few = max(FEW_POINTS, min(values.size // RECORDS_PER_POINT, MANY_POINTS))
            if lattice is not None and lattice.bits and lattice.points <= few:
                coarse = _of_points(chunks, lattice, bounds, nan_policy)
            else:
                coarse = _of_array(values, chunks, lattice, bounds, assume_sorted, nan_policy)
            records = Records(chunks, bounds=bounds, n_is_public=n_is_public)
            return cls(coarse, records, lattice, bounds)

        return read

    @classmethod
    def from_batches(
        cls,
        source: Any,
        bounds: tuple[float, float],
        *,
        column: str | None = None,
        resolution: float | None = None,
        dither: bool | None = None,
        nan_policy: str = "omit",
        workers: int = 1,
        progress: bool = False,
    ) -> Sample:
        """A sample of records that come in batches, and need not fit in memory.

        Parameters
        ----------
        source : callable or Arrow dataset, table or Parquet file
            ``source()`` gives a fresh iterator of batches at every call: one-dimensional columns
            as for `Sample.of`, always the same records. Or an object with ``to_batches`` or
            ``iter_batches``, as `pyarrow.dataset.Dataset`, `pyarrow.Table` and
            `pyarrow.parquet.ParquetFile` have, with `column`.
        bounds, resolution, dither, nan_policy, workers
            As in `Sample.of`.
        column : str, optional
            Name of the column of an Arrow source.
        progress : bool, default False
            Show a progress bar (tqdm) during the first pass, for the curator's eyes: it counts
            the batches, and is private where the number of records is.

        Returns
        -------
        Sample

        Raises
        ------
        TypeError
            If `source` is none of these, or a batch is not of a real numeric type.
        ValueError
            If a public argument breaks its rule, `column` does not name exactly one column of the
            source, NaN is there against ``nan_policy="raise"``, or (here or in a release) the
            source turns out to give other records at a later pass.
        ImportError
            If `progress` is asked for without tqdm.

        Notes
        -----
        **Cost.** One pass here and about one in each release, of O(records); memory for one batch
        and the windows of ranks. The first batch that is not empty is asked for once more.

        **Memory of the source** comes on top. By default pyarrow holds the column of a whole
        Parquet file, or of several for a data set; opened with ``pre_buffer=False`` it holds a few
        row groups: ``ParquetFile(path, pre_buffer=False)``, or ``dataset(path, format=form)`` with
        ``form = ParquetFileFormat(pre_buffer=False)``. Where row groups are large, a callable over
        ``dataset.to_batches(columns=[name], batch_readahead=1, fragment_readahead=0)`` has fewer
        of them read ahead.
        """
        _checks.check_choice("nan_policy", nan_policy, ("omit", "raise"))
        bounds = _checks.check_bounds(bounds)
        lattice = Lattice.of(bounds, resolution, dither)
        chunks = _chunks_of(source, column, workers, progress)
        if lattice is not None and lattice.bits and lattice.points <= MANY_POINTS:
            coarse = _of_points(chunks, lattice, bounds, nan_policy)
        else:
            coarse = _selected(chunks, lattice, bounds, nan_policy, _probe(chunks.first()))
        records = Records(chunks, bounds=bounds, n_is_public=nan_policy == "raise")
        return cls(coarse, records, lattice, bounds)

    def order(self, dither_rng: Any = None) -> WholeOrder:
        """The order statistics, with one fresh dither where the lattice has dither bits."""
        coarse = self._coarse()
        if self.lattice is None or not self.lattice.bits:
            return coarse
        return dithered(coarse, default_rng(dither_rng))

    def histogram(self, bins: Any) -> NDArray[np.int64]:
        """Exact counts by bin, by one pass. Private: a part of mechanisms, not a release.

        Parameters
        ----------
        bins : int or array_like of float
            A number of equal bins between the bounds, or ascending edges. Public. Bin k is
            [e_k, e_{k+1}), the last one closed; records are clamped to the bounds and counted in
            the end bins where they are beyond the edges.

        Returns
        -------
        ndarray of int64, shape (B,)
        """
        chosen = Bins.uniform(*self.bounds, bins) if np.ndim(bins) == 0 else Bins.of(bins)
        return self.records.count(chosen)

    def geometric_counts(
        self, beta: float, lower: float
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Exact counts between the thresholds beta^i + lower - 1, by one pass. Private.

        Parameters
        ----------
        beta : float
            Ratio of one threshold to the one before, above 1. Public.
        lower : float
            Records below count as it. Public.

        Returns
        -------
        thresholds : ndarray of float64, shape (I + 1,)
            From `lower` on, as far as float64 reaches or the upper bound asks.
        counts : ndarray of int64, shape (I + 1,)
            Records with thresholds[i] <= x < thresholds[i + 1]; the last count has no end.
        """
        high = self.bounds[1]
        upper = high if high > lower else None
        chosen = Bins.geometric(beta, lower, upper)
        return chosen.edges, self.records.count(chosen)

    def decode(self, points: NDArray) -> NDArray[np.float64]:
        """Outputs behind (fine) lattice points; for the continuous mechanism, clamped numbers."""
        if self.lattice is None:
            return np.clip(points, *self.bounds)
        return self.lattice.decode(points >> self.lattice.bits if self.lattice.bits else points)

    def locate(self, outputs: NDArray[np.float64]) -> NDArray | None:
        """Lattice points of outputs, or the numbers themselves; None if one cannot be released."""
        if self.lattice is None:
            low, high = self.bounds
            return outputs if ((outputs >= low) & (outputs <= high)).all() else None
        points = [self.lattice.locate(output) for output in outputs.tolist()]
        return None if None in points else np.array(points, dtype=np.int64)


class Records:
    """Records of one numeric column, without bounds or order, ready to be counted or added up.

    They stay where they are, and are private. Infinite records are allowed.

    Attributes
    ----------
    n_is_public : bool
        Whether, under "swap", the number of records counts as public: only where `nan_policy`
        states that none is missing. No type says so, since types are inferred from records.
    """

    __slots__ = ("_bounds", "_chunks", "_weighted", "n_is_public")

    def __init__(
        self,
        chunks: Chunks,
        weighted: tuple[NDArray, NDArray[np.int64]] | None = None,
        bounds: tuple[float, float] | None = None,
        *,
        n_is_public: bool,
    ) -> None:
        self._chunks = chunks  # what is gone through
        self._weighted = weighted  # the same values, and how often each occurs
        self._bounds = bounds  # what records are clamped to
        self.n_is_public = n_is_public

    @classmethod
    def of(
        cls, x: Any, *, counts: Any = None, nan_policy: str = "omit", workers: int = 1
    ) -> Records:
        """Check the form of a column.

        Parameters
        ----------
        x, counts, nan_policy, workers
            As in `Sample.of`. A `Sample` gives its records, clamped to its bounds; these and
            `Records` are returned as they are (then the other arguments must be left at their
            defaults).

        Returns
        -------
        Records

        Raises
        ------
        TypeError, ValueError
            As in `Sample.of`.

        Notes
        -----
        **Cost.** None, but O(n) for `counts` and for ``nan_policy="raise"``; no copy of `x`, which
        must not change while the records are in use.
        """
        return cls._reader(x, counts=counts, nan_policy=nan_policy, workers=workers)()

    @classmethod
    def _reader(
        cls, x: Any, *, counts: Any = None, nan_policy: str = "omit", workers: int = 1
    ) -> Callable[[], Records]:
        """`of` in two steps, as `Sample._reader`."""
        _checks.check_choice("nan_policy", nan_policy, ("omit", "raise"))
        threads = _checks.check_workers(workers)
        if isinstance(x, (Records, Sample)):
            if counts is not None or nan_policy != "omit":
                raise ValueError(
                    "counts and nan_policy belong to Sample.of or Records.of, and must be left "
                    f"out for a {type(x).__name__}"
                )
            return lambda: x.records if isinstance(x, Sample) else x
        check_column(x)

        def read() -> Records:
            values = as_column(x)
            weighted = None if counts is None else (values, check_counts(counts, values.size))
            return cls(
                Chunks.of_array(values, threads), weighted, n_is_public=nan_policy == "raise"
            )._checked(nan_policy)

        return read

    @classmethod
    def from_batches(
        cls,
        source: Any,
        *,
        column: str | None = None,
        nan_policy: str = "omit",
        workers: int = 1,
        progress: bool = False,
    ) -> Records:
        """Records that come in batches, and need not fit in memory; see `Sample.from_batches`.

        The source is called once for every pass; here, once if `nan_policy` is "raise". The bar
        that `progress` shows counts the batches: it is for the curator's eyes.
        """
        _checks.check_choice("nan_policy", nan_policy, ("omit", "raise"))
        chunks = _chunks_of(source, column, workers, progress)
        return cls(chunks, n_is_public=nan_policy == "raise")._checked(nan_policy)

    @property
    def total(self) -> int:
        """Number of records, without NaN; by one pass."""
        return self.sums(1.0, 0, 0)[1]

    def count(
        self,
        bins: Bins,
        negate: bool = False,
        within: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> NDArray[np.int64]:
        """Exact counts of the records x, or of -x, by one pass. Private.

        Parameters
        ----------
        bins : Bins
            Public.
        negate : bool, default False
            Whether -x is counted in place of x. Public.
        within : (ndarray of float64, ndarray of float64), optional
            Ranges lo[r] <= x < hi[r] (of -x, with `negate`) that do not overlap. The counts of
            bins outside of them may be anything. Much faster if few records are inside.

        Returns
        -------
        ndarray of int64, shape (bins.size,)
        """
        if self._weighted is not None:
            counts = bins.count(*self._weighted, negate=negate)
        else:
            chosen = _all if within is None else self._between(*within, negate)
            totals = self._chunks.fold(
                bins.zeros, lambda total, piece: bins.count(chosen(piece), negate=negate, out=total)
            )
            counts = totals[0] if len(totals) == 1 else np.sum(totals, axis=0)
        if self._bounds is not None:  # bins ascend: clamped records are in those of the bounds
            low, high = self._bounds
            first, last = (bins.find(end) for end in ((-high, -low) if negate else (low, high)))
            counts[first] = counts[: first + 1].sum()
            counts[:first] = 0
            counts[last] = counts[last:].sum()
            counts[last + 1 :] = 0
        return counts

    def _between(
        self, lo: NDArray[np.float64], hi: NDArray[np.float64], negate: bool
    ) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
        """What finds, in a piece, the records in some ranges after they are clamped."""
        hi = np.nextafter(hi, -math.inf)
        if negate:
            lo, hi = -hi, -lo
        low, high = (-math.inf, math.inf) if self._bounds is None else self._bounds
        lo = np.where(lo <= low, -math.inf, lo)
        hi = np.where(hi >= high, math.inf, hi)
        ranges = select.Map(low, high, 1, base=0, shift=0)

        def between(piece: NDArray[np.float64]) -> NDArray[np.float64]:
            found, size = ranges.between(lo, hi, piece, FOUND)
            return found if size <= FOUND else ranges.between(lo, hi, piece, size)[0]

        return between

    def sums(self, scale: float, first: int, last: int) -> tuple[int, int]:
        """Exact sum of the records as integers, and how many there are, by one pass. Private.

        Parameters
        ----------
        scale : float
            A record x becomes the integer nearest to x * scale. Positive and finite. Public.
        first, last : int
            What the integers are clamped to; first <= last, within 2^31 of zero. Public.

        Returns
        -------
        (int, int)
        """
        if self._bounds is not None:  # clamped twice
            first, last = (round(min(max(end * scale, first), last)) for end in self._bounds)
        if self._weighted is not None:
            values, weights = self._weighted
            return kernel_sums.weighted(as_float64(values), weights, scale, first, last)

        def step(sums: list[int], piece: NDArray[np.float64]) -> None:
            total, kept = kernel_sums.plain(piece, scale, first, last)
            sums[0] += total
            sums[1] += kept

        totals, sizes = zip(*self._chunks.fold(lambda: [0, 0], step), strict=True)
        return sum(totals), sum(sizes)

    def _checked(self, nan_policy: str) -> Records:
        """The same; without NaN if there must be none."""
        if nan_policy == "raise":

            def step(missing: NDArray[np.bool_], piece: NDArray[np.float64]) -> None:
                missing |= np.isnan(piece).any()

            if np.any(self._chunks.fold(lambda: np.zeros(1, dtype=bool), step)):
                _refuse_nan(nan_policy)
        return self


def _all(piece: NDArray[np.float64]) -> NDArray[np.float64]:
    return piece


def check_column(x: Any) -> None:
    """Refuse what is no one-dimensional column, before a record of it is read.

    Its type says nothing more for sure: that of a column of missing records may be any.
    """
    if getattr(x, "ndim", 1) != 1:
        raise ValueError(f"x must be one-dimensional, got {x.ndim} dimensions")
    if isinstance(x, (str, bytes, Mapping, Set)) or not (
        hasattr(x, "__array__") or hasattr(x, "__iter__")
    ):
        raise TypeError(f"x must be a one-dimensional array or sequence, got {type(x).__name__}")


def as_column(x: Any) -> NDArray:
    """A column as a one-dimensional array of integers or floats; null and None become NaN.

    Only what a column holds matters, not its type, which readers infer from the records: one
    record makes floats of integers, and a column of nothing but missing ones may have any type.
    Booleans count as 0 and 1.
    """
    check_column(x)
    if isinstance(x, np.ma.MaskedArray):
        missing, x = np.ma.getmaskarray(x), np.ma.getdata(x)
        column = np.full(x.shape, np.nan) if missing.all() else _of_numpy(x)
        column = np.where(missing, np.nan, as_float64(column)) if missing.any() else column
    elif isinstance(x, np.ndarray):
        column = _of_numpy(x)
    elif hasattr(x, "dtype") or hasattr(x, "type"):
        column = _foreign_column(x)
    elif hasattr(x, "__array__"):
        column = _of_numpy(np.asarray(x))
    else:
        column = _sequence(x)
    if column.ndim != 1:
        raise ValueError(f"x must be one-dimensional, got {column.ndim} dimensions")
    return column


def _of_numpy(x: NDArray) -> NDArray:
    """Real numbers of an array of any shape."""
    kind = x.dtype.kind
    if kind in "iuf":
        return x
    if kind == "b":
        return x.astype(np.float64)
    if kind == "O" and x.ndim == 1:
        return _sequence(x)
    if x.size and not (kind in "mM" and np.isnat(x).all()):
        raise TypeError(f"x must hold real numbers, got dtype {x.dtype}")
    return np.full(x.shape, np.nan)


def _foreign_column(x: Any) -> NDArray:
    """A pandas, polars, pyarrow or other array-protocol column, nulls as NaN."""
    declared = x.type if getattr(x, "dtype", None) is None else x.dtype  # pyarrow has `type`
    kind = declared_kind(declared)
    if isinstance(declared, np.dtype):
        return _of_numpy(np.asarray(x))
    if kind in "iufbd":
        if hasattr(x, "to_numpy") and hasattr(x, "isna"):  # pandas extension types
            return x.to_numpy(dtype=np.float64, na_value=np.nan)
        if kind in "bd":
            return np.asarray(_as_doubles(x))
        return np.asarray(x)
    if kind == "O" and hasattr(x, "__iter__"):
        return _sequence(x)
    missing = x.isna().all() if hasattr(x, "isna") else _null_count(x) == len(x)
    if not missing:
        raise TypeError(f"x must hold real numbers, got dtype {declared}")
    return np.full(len(x), np.nan)


def _as_doubles(x: Any) -> Any:
    """A polars or pyarrow column of booleans or decimals as one of float64."""
    if hasattr(x, "null_count") and callable(x.null_count):
        import polars

        return x.cast(polars.Float64)
    import pyarrow

    if pyarrow.types.is_boolean(x.type):
        x = x.cast(pyarrow.uint8())
    return x.cast(pyarrow.float64())


def _null_count(x: Any) -> int:
    """Number of nulls of a polars or pyarrow column; -1 for what does not tell."""
    count = getattr(x, "null_count", -1)
    return count() if callable(count) else count


def declared_kind(declared: Any) -> str:
    """NumPy's letter for the type a column declares; "V" where it has none.

    "U" stands for strings of every kind, "d" for decimals, and "O" for objects and for a column
    of nulls.
    """
    if isinstance(declared, np.dtype):
        return declared.kind
    kind = getattr(declared, "kind", None)
    if kind is not None:  # pandas, where "O" is all that NumPy does not know
        letters = {str: "U", np.object_: "O", Decimal: "d"}
        return letters.get(declared.type, "V" if kind == "O" else kind)
    name = str(declared).lower()  # polars: "Int64", "UInt8"; pyarrow: "int64", "uint8"
    if name.startswith(("int", "uint")):
        return "i"
    if name.startswith("float") or name in ("double", "halffloat"):
        return "f"
    if name.startswith("bool"):
        return "b"
    if name.startswith("decimal"):
        return "d"
    if name.startswith(("string", "large_string", "categorical", "enum")):
        return "U"
    return "O" if name in ("null", "object") else "V"


def _sequence(x: Any) -> NDArray:
    """A sequence of real numbers (None or the like for null) as float64."""
    return np.array([item if type(item) is float else _real(item) for item in x], dtype=np.float64)


def _real(item: Any) -> float:
    if type(item) not in PLAIN:
        if hasattr(item, "as_py"):  # pyarrow
            item = item.as_py()
        if _is_missing(item):
            return np.nan
        if isinstance(item, (str, bytes, complex, np.complexfloating)):
            raise TypeError(f"x must hold real numbers, got {type(item).__name__}")
        if hasattr(item, "__len__"):
            raise ValueError("x must be one-dimensional, got a nested sequence")
    try:
        return float(item)
    except OverflowError:  # an integer beyond float64 is clamped like an infinity
        return np.inf if item > 0 else -np.inf
    except (TypeError, ValueError):
        raise TypeError(f"x must hold real numbers, got {type(item).__name__}") from None


def _is_missing(item: Any) -> bool:
    """Whether an item stands for no number, in whatever library's way.

    Which of them is there is data: none may be refused where another one is not.
    """
    if item is None or item is np.ma.masked:
        return True
    if isinstance(item, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(item))
    if isinstance(item, Decimal):  # a signaling NaN has no float
        return item.is_nan()
    kind = type(item)
    return kind.__name__ in ("NAType", "NaTType") and kind.__module__.startswith("pandas.")


def check_counts(counts: Any, size: int) -> NDArray[np.int64]:
    """How often each of `size` values occurs: non-negative integers, int64."""
    weights = np.asarray(counts)
    if weights.ndim != 1 or weights.size != size:
        raise ValueError("counts must have one entry for each value of x")
    if weights.dtype.kind not in "iuf":
        raise TypeError(f"counts must be integers, got dtype {weights.dtype}")
    with np.errstate(all="ignore"):  # NumPy would warn of some that are not finite, and of sums
        if weights.dtype.kind == "f" and not (weights == np.floor(weights)).all():
            raise ValueError("counts must be integers, got a fractional or non-finite one")
        if (weights < 0).any():
            raise ValueError("counts must not be negative")
        # rounded, then exactly where that can not wrap
        rounded, exact = weights.astype(np.float64), weights.astype(np.int64)
        if rounded.sum() > MAX_POINTS or exact.sum() > MAX_POINTS:
            raise ValueError("counts must sum to at most 2^53")
    return exact


def _of_array(
    values: NDArray,
    chunks: Chunks,
    lattice: Lattice | None,
    bounds: tuple[float, float],
    assume_sorted: bool,
    nan_policy: str,
) -> Callable[[], CoarseOrder]:
    """Records of one array, as they are; sorted only if there are few."""
    if not (assume_sorted or _ascends(values)):
        if values.size > SORTED_RECORDS:
            return _selected(chunks, lattice, bounds, nan_policy, _probe(values))
        values = np.sort(values)
    if values.size and values[-1] != values[-1]:  # NaN sorts to the end
        _refuse_nan(nan_policy)
        values = values[: np.searchsorted(values, np.nan)]
    return lambda: SortedOrder(values, lattice, bounds)


def _selected(
    chunks: Chunks,
    lattice: Lattice | None,
    bounds: tuple[float, float],
    nan_policy: str,
    probe: NDArray,
) -> Callable[[], CoarseOrder]:
    """Records that are gone through: a first pass here."""
    buckets = Buckets(chunks, *bounds, probe, lattice)
    if buckets.missing:
        _refuse_nan(nan_policy)
    return lambda: SelectedOrder(chunks, buckets, lattice, bounds)


def _of_points(
    chunks: Chunks, lattice: Lattice, bounds: tuple[float, float], nan_policy: str
) -> Callable[[], CoarseOrder]:
    """Records on a lattice of few points, counted point by point."""
    totals = chunks.fold(
        lambda: np.zeros(lattice.points + 1, dtype=np.int64), lattice.count, lattice.step == 1.0
    )
    total = np.sum(totals, axis=0)
    if total[-1]:
        _refuse_nan(nan_policy)
    present = np.flatnonzero(total[:-1])
    counts = total[present]
    return lambda: RunsOrder(present, counts, lattice, bounds)


def _of_counts(
    values: NDArray,
    weights: NDArray[np.int64],
    lattice: Lattice | None,
    bounds: tuple[float, float],
    nan_policy: str,
) -> Callable[[], CoarseOrder]:
    """Records given as values and counts."""
    present = weights > 0
    values, weights = as_float64(values[present]), weights[present]
    missing = np.isnan(values)
    if missing.any():
        _refuse_nan(nan_policy)
        values, weights = values[~missing], weights[~missing]
    records = np.clip(values, *bounds) if lattice is None else lattice.encode(values)
    distinct, place = np.unique(records, return_inverse=True)
    totals = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(totals, place, weights)
    return lambda: RunsOrder(distinct, totals, lattice, bounds)


def _refuse_nan(nan_policy: str) -> None:
    if nan_policy == "raise":
        raise ValueError("x must not contain NaN with nan_policy='raise'")


def _ascends(values: NDArray) -> bool:
    if is_ready(values, np.float64):
        return kernel.is_sorted(values)
    with np.errstate(invalid="ignore"):  # signaling NaN
        for start in range(0, values.size - 1, CONVERTED):
            piece = values[start : start + CONVERTED + 1]
            if not (piece[:-1] <= piece[1:]).all():
                return False
    return True


def _probe(values: NDArray) -> NDArray[np.float64]:
    """Some of the values, evenly over the array."""
    return as_float64(values[:: max(1, values.size // PROBED)])


def _chunks_of(source: Any, column: str | None, workers: int, progress: bool) -> Chunks:
    """Records that come in batches."""
    threads = _checks.check_workers(workers)
    batches = _batches_of(source, column)
    return Chunks(lambda: map(as_column, batches()), threads, _bar() if progress else None)


def _batches_of(source: Any, column: str | None) -> Callable[[], Iterable[Any]]:
    """A factory of batches: the source itself, or the column of an Arrow source."""
    method = next((name for name in ("to_batches", "iter_batches") if hasattr(source, name)), None)
    if method is not None:
        if not isinstance(column, str):
            raise TypeError(f"column must name a column of the source, got {column!r}")
        _check_name(source, column)
        give = getattr(source, method)
        # a table gives all its columns, which costs it nothing; the others can choose
        chosen = {} if hasattr(source, "select") else {"columns": [column]}
        return lambda: (batch.column(column) for batch in give(**chosen))
    if not callable(source):
        raise TypeError(
            "source must be callable, or have to_batches or iter_batches, "
            f"got {type(source).__name__}"
        )
    if column is not None:
        raise ValueError("column must be left out for a callable source")
    return source


def _check_name(source: Any, column: str) -> None:
    """Whether a column is there, by the schema of its source, if any."""
    for name in SCHEMAS:
        schema = getattr(source, name, None)
        if hasattr(schema, "field") and schema.names.count(column) != 1:
            raise ValueError(f"column must name exactly one column of the source, got {column!r}")


def _bar() -> Callable[[Iterable], Iterable]:
    """A progress bar over batches."""
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        raise ImportError("progress=True needs tqdm: pip install 'dpq_fast[progress]'") from None
    return lambda batches: tqdm(batches, desc="first pass", unit=" batches")
