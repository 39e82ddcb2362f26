"""The sample: a column of records, checked for its form, clamped, put in order.

Form (dimension, type, lengths, the sign of counts) may be refused; nothing else about the data
decides whether or what is raised, and no message holds a number taken from it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._arguments import in_our_words
from dpq_fast._kernels import lattice as kernel
from dpq_fast.data.columns import (
    as_column,
    as_float64,
    check_declared,
    refuse_nan,
)
from dpq_fast.data.histogram import Bins
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.passes import Chunks, chunks_of
from dpq_fast.data.persons import WEIGHTS, Atoms, Persons, beside, weights_of
from dpq_fast.data.records import Records
from dpq_fast.data.reprs import placement, shown
from dpq_fast.data.table_persons import here, in_place_of
from dpq_fast.data.tables import Table, TablePasses, passes_of, refuse_counts
from dpq_fast.data.units import (
    Timed,
    Unit,
    in_numbers,
    of_texts,
    placed,
    unit_of,
)
from dpq_fast.noise.rng import default_rng
from dpq_fast.orders import choice
from dpq_fast.orders.choice import CoarseOf
from dpq_fast.orders.dithered import dithered
from dpq_fast.orders.order import CoarseOrder, WholeOrder
from dpq_fast.orders.weighed import WeighedOrder


@in_our_words
class Sample:
    """Records of one numeric column, clamped to bounds and in order, ready for any mechanism.

    A sample keeps the records, or what it takes to scan them again; it is private. Make one
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
    unit : Unit or None
        What numbers stand for where records are times or durations: then `bounds` and `lattice`
        are in steps of the resolution. Public.
    persons : Persons or None
        Whose the records are, where guarantees are about persons; private.

    Examples
    --------
    >>> import numpy as np
    >>> import dpq_fast as dpq
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> sample = dpq.Sample.of(ages, (0, 120), resolution=1)
    >>> sample
    Sample(bounds=(0, 120), resolution=1, dither=True)
    >>> bool(40 < dpq.median(sample, epsilon=1.0) < 60)
    True
    >>> dpq.quantile(sample, [0.1, 0.9], epsilon=1.0).shape
    (2,)
    """

    __slots__ = ("_coarse", "bounds", "lattice", "persons", "records", "unit")

    def __init__(
        self,
        coarse: CoarseOf,
        records: Records,
        lattice: Lattice | None,
        bounds: tuple[float, float],
        unit: Unit | None = None,
        persons: Persons | None = None,
    ) -> None:
        self._coarse = coarse
        self.records = records
        self.lattice = lattice
        self.bounds = bounds
        self.unit = unit
        self.persons = persons

    def __repr__(self) -> str:
        return shown(self, **placement(self.bounds, self.lattice, self.unit))

    @classmethod
    @in_our_words
    def of(
        cls,
        x: Any,
        bounds: tuple[float, float] | None,
        *,
        resolution: float | None = None,
        dither: bool | None = None,
        prior: Any = None,
        counts: Any = None,
        privacy_unit: Any = None,
        contributions: Any = WEIGHTS,
        assume_sorted: bool = False,
        nan_policy: str = "omit",
        workers: int = 1,
    ) -> Sample:
        """Check, clamp and order a column.

        Parameters
        ----------
        x : array_like of real numbers, times or durations, shape (n,)
            Any column: see Notes; n >= 0. Private. With `counts`, the distinct values. A `Sample`
            is returned as it is (then the other arguments must be left at their defaults, or
            `bounds` equal to the sample's).
        bounds : (float, float)
            Finite low < high, chosen without looking at `x`. With a `prior` that has quantiles an
            end may be infinite: it stands for the quantile of 10^-9, or of 1 less that. Public.
        resolution : float, optional
            Spacing of the public lattice of outputs, in the unit of `x`; 0 for none. Default: a
            power of ten, about 10^-6 of the range, whatever the type of `x`; with a `prior`, about
            10^-6 of twice the shortest interval that holds half of it ("scale-free": 10^-12 of
            the range). Public.
        dither : bool, optional
            Whether records are spread within their lattice cell before the mechanism. Default:
            wherever there is a lattice. Public.
        prior : "uniform", "log", "scale-free", distribution, functions or mixture, optional
            A guess at the distribution of the records, made without looking at `x`, for bounds that
            are wide. "log": log-uniform between positive bounds. "scale-free": a third uniform, a
            third alike for all orders of magnitude away from 0 (or the bound that is nearest to
            it), a third at numbers of up to two significant digits. A frozen distribution of
            `scipy.stats`, or whatever else has a `cdf` of arrays (and a `ppf`), or the two
            functions (cdf, ppf), ppf None where there is none. Or a mixture of these but for
            "scale-free": (weight, prior) pairs.
            Each is cut off at the bounds, where it has to have a mass of at least 10^-9. Functions
            are called with ascending arrays, before a record is read. It costs no privacy: see
            Notes. Default: uniform. Public.
        counts : array_like of int, shape (n,), optional
            How often each value occurs; non-negative, sum at most 2^53. Private. Where `x` and
            `counts` are columns of pandas, they go by the labels of their indexes, as rows of
            `quantile_by` do.
        privacy_unit, contributions : optional
            Ids of persons, as in `quantile`: releases of the sample are about persons.
        assume_sorted : bool, default False
            The caller's promise that `x` ascends, NaN last. If it is broken, the answer is
            meaningless and its privacy lost, but memory stays safe. Public.
        nan_policy : {"omit", "raise"}, default "omit"
            "omit" leaves NaN and null out, record by record; "raise" states that there are none.
        workers : int, default 1
            Number of threads for passes over long columns; negative numbers count back from
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
        **Prior.** Lattice points stand for integer masses of the prior, each at least 1; records
        are spread over the mass of their point, mechanisms count mass where they would count
        points, and leaves of trees have equal mass. So few records, or little budget, leave an
        answer where the prior has its mass; many records outweigh it. The proof that this is as
        private as without is in `dpq_fast.data.prior`.

        **Columns.** A NumPy array; a series, or a frame of one column, of whatever narwhals knows
        (pandas, polars, lazy frames, too, pyarrow, DuckDB); what offers Arrow's C interface,
        DLPack or ``__array__``; a sequence; or a function of no arguments that gives one of these,
        for streams that can be read once. Booleans are 0 and 1.

        **Times.** Where `bounds` are dates, times or durations, of NumPy, Python or pandas, `x`
        holds such, and `resolution` is a duration. Both may be given as text: ISO 8601, such as
        "2024-12-31" or "2024-12-31T18:00+01:00", for times, which become those of NumPy, or with a
        zone those of Python; "15min", "1h", "7D" or "PT15M" for durations. Records are numbers of
        steps of the resolution since the lower bound, or of a duration; default steps are those of
        a clock, about 10^-6 of the range, and no shorter than a day for dates. Releases answer in
        the type of the bounds, and in their zone, to the tick. Times without a zone and those with
        one are kept apart. The map from times to numbers is public and increasing, so that
        neighbors stay neighbors.

        **Cost.** O(n), without a copy of `x` (but for times): one pass here, and another in each
        release; none but the windows of a release if `x` is sorted. A release that is given the
        column itself mostly does with one pass where it is long: it knows which levels to collect.
        Integers and float32 are read in their own type. `x` must not change while the
        sample is in use. Masses of a prior take some tens of milliseconds, once for each object
        that it is made of: make it once, and give the same one to all calls.

        **No release.** A sample is made without an accountant: that a NaN is there against
        ``nan_policy="raise"`` is told without a charge. A release that is given the column itself
        is charged for it.
        """
        x, _, place = placed(x, bounds=bounds, resolution=resolution, prior=prior)
        return cls.reader(
            x,
            **place,
            dither=dither,
            counts=counts,
            privacy_unit=privacy_unit,
            contributions=contributions,
            assume_sorted=assume_sorted,
            nan_policy=nan_policy,
            workers=workers,
        )()

    @classmethod
    def reader(
        cls,
        x: Any,
        bounds: tuple[float, float] | None = None,
        *,
        resolution: float | None = None,
        dither: bool | None = None,
        prior: Any = None,
        counts: Any = None,
        privacy_unit: Any = None,
        contributions: Any = WEIGHTS,
        assume_sorted: bool = False,
        nan_policy: str = "omit",
        workers: int = 1,
    ) -> Reader:
        """`of` in two steps: what is public is checked here; what is returned reads the records.

        A release is charged between the two. The reader may be told the levels that are asked for,
        ascending: then one pass is likely to do for long columns.
        """
        _checks.check_choice("nan_policy", nan_policy, ("omit", "raise"))
        assume_sorted = _checks.check_flag("assume_sorted", assume_sorted)
        threads = _checks.check_workers(workers)
        unit = x.unit if isinstance(x, Timed) and isinstance(x.unit, Unit) else None
        x, counts = here(*in_place_of(x, counts, privacy_unit, contributions))
        if isinstance(x, Sample):
            if bounds is not None and _checks.check_bounds(bounds) != x.bounds:
                raise ValueError(
                    f"bounds must be left out or equal to the sample's {x.bounds}, got {bounds}"
                )
            given = [option is not None for option in (resolution, dither, prior, counts)]
            if any(given) or assume_sorted or nan_policy != "omit":
                raise ValueError(
                    "resolution, dither, prior, counts, assume_sorted and nan_policy belong to "
                    "Sample.of, and must be left out for a Sample"
                )
            return Reader(x, x.bounds, x.lattice)
        bounds, lattice = Lattice.between(bounds, resolution, dither, prior)
        passes = passes_of(x)
        if passes is not None:
            refuse_counts(counts)
            if assume_sorted:
                raise ValueError("assume_sorted must be left out for a column of a table")
            return Reader(passes, bounds, lattice, nan_policy)
        _checks.check_column(x)
        check_declared(x)
        counts = beside(x, counts)
        return Reader(x, bounds, lattice, nan_policy, counts, assume_sorted, threads, unit)

    @classmethod
    def _of_passes(
        cls,
        passes: TablePasses,
        coarse: CoarseOf,
        lattice: Lattice | None,
        bounds: tuple[float, float],
        nan_policy: str,
    ) -> Sample:
        """A column of a table."""
        unit = passes.unit if isinstance(passes.unit, Unit) else None
        records = Records(passes, bounds=bounds, n_is_public=nan_policy == "raise")
        return cls(coarse, records, lattice, bounds, unit)

    @classmethod
    @in_our_words
    def from_engine(
        cls,
        source: Any,
        bounds: tuple[float, float],
        *,
        column: str | None = None,
        connection: Any = None,
        resolution: float | None = None,
        dither: bool | None = None,
        prior: Any = None,
        privacy_unit: Any = None,
        contributions: Any = WEIGHTS,
        nan_policy: str = "omit",
        workers: int = 1,
        progress: bool = False,
    ) -> Sample:
        """A sample of records that stay in files, a data base or a cluster.

        Parameters
        ----------
        source, connection, workers, progress
            As in `Table.of`.
        bounds, resolution, dither, prior, nan_policy
            As in `Sample.of`.
        column : str, optional
            Its name. Default: the only one that there is. Public.
        privacy_unit : str, or list of str, optional
            The name of the column of ids, or of several that make one: releases of the sample are
            about persons, and its records are held here, each with its weight: see `Table.of`.
            Public.
        contributions : optional
            As in `Sample.of`.

        Returns
        -------
        Sample

        Raises
        ------
        TypeError, ValueError, ImportError
            As in `Table.of` and `Sample.of`; or if `source` turns out to give other records at a
            later pass.

        Notes
        -----
        **Cost.** One pass here, one or two for the quantiles of a release, one for a sum or a tree.
        The laws are those of the same records in memory.
        """
        table = Table.of(source, connection, workers=workers, progress=progress)
        chosen: Any = table if column is None else table[column]
        if column is None and privacy_unit is None:
            _checks.check_width(len(table.names))
            chosen = table[table.names[0]]
        return cls.of(
            chosen,
            bounds,
            resolution=resolution,
            dither=dither,
            prior=prior,
            privacy_unit=privacy_unit,
            contributions=contributions,
            nan_policy=nan_policy,
        )

    @classmethod
    @in_our_words
    def from_batches(
        cls,
        source: Any,
        bounds: tuple[float, float],
        *,
        column: str | None = None,
        resolution: float | None = None,
        dither: bool | None = None,
        prior: Any = None,
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
        bounds, resolution, dither, prior, nan_policy, workers
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
        place = dict(bounds=bounds, resolution=resolution, prior=prior)
        place = of_texts(place)
        unit = unit_of(place)
        if unit is not None:
            place = in_numbers(unit, place)
        bounds, lattice = Lattice.between(**place, dither=dither)
        chunks = chunks_of(source, column, workers, progress, unit)
        coarse = choice.of_batches(chunks, lattice, bounds, nan_policy)
        records = Records(chunks, bounds=bounds, n_is_public=nan_policy == "raise")
        return cls(coarse, records, lattice, bounds, unit)

    def order(self, dither_rng: Any = None) -> WholeOrder:
        """The order statistics, with one fresh dither where the lattice has dither bits."""
        lattice = self.lattice
        if lattice is not None and lattice.bits:
            return dithered(self._coarse(lattice), default_rng(dither_rng))
        if lattice is None or lattice.masses is None:
            return self._coarse(lattice)
        return WeighedOrder(self.coarse(), lattice)

    def coarse(self) -> CoarseOrder:
        """The order statistics without dither and prior, for counts below lattice points."""
        return self._coarse(None if self.lattice is None else self.lattice.even)

    def undithered(self) -> Sample:
        """The same records without a dither, for mechanisms that know what to do with ties."""
        if self.lattice is None or not self.lattice.bits:
            return self
        return self.on(self.lattice.undithered)

    def even(self) -> Sample:
        """The same records without a prior, for mechanisms that weigh points themselves."""
        if self.lattice is None or self.lattice.masses is None:
            return self
        return self.on(self.lattice.even)

    def in_steps(self) -> Sample:
        """The same records as numbers, for what knows nothing of units."""
        return Sample(self._coarse, self.records, self.lattice, self.bounds, persons=self.persons)

    def on(self, lattice: Lattice | None) -> Sample:
        """The same records with another prior or dither on the same points, or on none."""
        if not (lattice is None or isinstance(lattice, Lattice)):
            raise TypeError(f"lattice must be a Lattice or None, got {type(lattice).__name__}")
        return Sample(self._coarse, self.records, lattice, self.bounds, self.unit, self.persons)

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
        below = isinstance(lower, Real) and lower < high  # anything else is refused
        chosen = Bins.geometric(beta, lower, high if below else None)
        return chosen.edges, self.records.count(chosen)

    def decode(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """Outputs behind (fine) lattice points; for the continuous mechanism, clamped numbers."""
        return outputs_of(points, self.lattice, self.bounds)

    def locate(self, outputs: NDArray[np.float64]) -> NDArray[Any] | None:
        """Lattice points of outputs, or the numbers themselves; None if one cannot be released."""
        if self.lattice is None:
            low, high = self.bounds
            return outputs if ((outputs >= low) & (outputs <= high)).all() else None
        points = [self.lattice.locate(output) for output in outputs.tolist()]
        return None if None in points else np.array(points, dtype=np.int64)


def outputs_of(
    points: NDArray[Any], lattice: Lattice | None, bounds: tuple[float, float]
) -> NDArray[np.float64]:
    """Outputs behind (fine) lattice points; for the continuous mechanism, clamped numbers."""
    if lattice is None:
        clamped: NDArray[np.float64] = np.clip(points, *bounds)
        return clamped
    return lattice.decode(lattice.points_of(points))


class Reader:
    """What reads the records of a column: everything public about it has been checked.

    Attributes
    ----------
    bounds : (float, float)
    lattice : Lattice or None
    """

    __slots__ = (
        "_assume_sorted",
        "_cells",
        "_counts",
        "_nan_policy",
        "_threads",
        "_unit",
        "_values",
        "_x",
        "bounds",
        "lattice",
    )

    def __init__(
        self,
        x: Any,
        bounds: tuple[float, float],
        lattice: Lattice | None,
        nan_policy: str = "omit",
        counts: Any = None,
        assume_sorted: bool = False,
        threads: int = 1,
        unit: Unit | None = None,
    ) -> None:
        self._x = x
        self._unit = unit
        self.bounds = bounds
        self.lattice = lattice
        self._nan_policy = nan_policy
        self._counts = counts
        self._assume_sorted = assume_sorted
        self._threads = threads
        # what may be read once is read once
        self._values: NDArray[Any] | None = None
        self._cells: CoarseOf | None = None

    def on(self, lattice: Lattice) -> Reader:
        """What reads the same records on another lattice of these bounds."""
        other = copy(self)
        other.lattice = lattice
        return other

    def _column(self) -> NDArray[Any]:
        if self._values is None:
            self._values = as_column(self._x)
        return self._values

    def _of_table(self, passes: TablePasses) -> CoarseOf:
        """The order of a column of a table, whose cells are counted once for all lattices."""
        lattice = self.lattice
        if lattice is not None and choice.counts_points(lattice):
            return choice.of_table(passes, lattice, self.bounds, self._nan_policy)
        if self._cells is None:
            self._cells = choice.of_table(passes, lattice, self.bounds, self._nan_policy)
        return self._cells

    def few(self, are_few: Callable[[int], bool]) -> NDArray[np.float64] | None:
        """The records in any order, NaN left out, if they are an array of few values.

        None for others, for those that stand for several, and where there is a prior.
        """
        weighed = self.lattice is not None and self.lattice.masses is not None
        if weighed or self._counts is not None or isinstance(self._x, (Sample, TablePasses)):
            return None
        values = self._column()
        if not are_few(values.size):
            return None
        values = as_float64(values)
        if kernel.has_missing(values):
            refuse_nan(self._nan_policy)
            values = values[~np.isnan(values)]
        return values

    def __call__(
        self,
        q: NDArray[np.float64] | None = None,
        around: Callable[[int], float] | None = None,
    ) -> Sample:
        """The sample; levels that are asked for, ascending, make one pass likely to do.

        And so does how many ranks on each side of them may be asked for, of so many records.
        """
        x, bounds, lattice, nan_policy = self._x, self.bounds, self.lattice, self._nan_policy
        if isinstance(x, Sample):
            return x
        if isinstance(x, TablePasses):
            return Sample._of_passes(x, self._of_table(x), lattice, bounds, nan_policy)
        n_is_public = nan_policy == "raise"
        values = self._column()
        unit = self._unit
        chunks = Chunks.of_array(values, self._threads)
        if self._counts is not None:
            weights = weights_of(self._counts, values)
            persons = self._counts if isinstance(self._counts, Persons) else None
            atoms = isinstance(self._counts, Atoms) or (persons is not None and persons.share)
            # who has no record, or more of them, stands for another number
            coarse = choice.of_counts(values, weights, lattice, bounds, nan_policy, atoms)
            n_is_public = n_is_public and not isinstance(self._counts, (Persons, Atoms))
            records = Records(
                chunks, (values, weights), bounds, n_is_public=n_is_public, persons=persons
            )
            return Sample(coarse, records, lattice, bounds, unit, persons)
        coarse = choice.of_array(
            values,
            chunks,
            lattice,
            bounds,
            nan_policy,
            assume_sorted=self._assume_sorted,
            workers=self._threads,
            q=q,
            around=around,
        )
        records = Records(chunks, bounds=bounds, n_is_public=n_is_public)
        return Sample(coarse, records, lattice, bounds, unit)
