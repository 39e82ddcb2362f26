"""The records of a column, to be counted or added up by one pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._kernels import sums as kernel_sums
from dpq_fast.data.columns import (
    as_column,
    as_float64,
    check_declared,
    refuse_nan,
)
from dpq_fast.data.histogram import Bins
from dpq_fast.data.passes import Chunks, Passes, chunks_of
from dpq_fast.data.persons import WEIGHTS, Atoms, Persons, beside, weights_of
from dpq_fast.data.queries import AnyMissing, BinCounts, Sums
from dpq_fast.data.reprs import shown
from dpq_fast.data.table_persons import here, in_place_of
from dpq_fast.data.tables import passes_of, refuse_counts


class Records:
    """Records of one numeric column, without bounds or order, ready to be counted or added up.

    They stay where they are, and are private. Infinite records are allowed.

    Attributes
    ----------
    n_is_public : bool
        Whether, under "swap", the number of records counts as public: only where `nan_policy`
        states that none is missing. No type says so, since types are inferred from records.
    persons : Persons or None
        Whose the records are, where guarantees are about persons, as in `Sample`.
    """

    __slots__ = ("_bounds", "_chunks", "_weighted", "n_is_public", "persons")

    def __init__(
        self,
        chunks: Passes,
        weighted: tuple[NDArray[Any], NDArray[np.int64]] | None = None,
        bounds: tuple[float, float] | None = None,
        *,
        n_is_public: bool,
        persons: Persons | None = None,
    ) -> None:
        self._chunks = chunks  # in passes
        self._weighted = weighted  # the same values, and how often each occurs
        self._bounds = bounds  # what records are clamped to
        self.n_is_public = n_is_public
        self.persons = persons

    def __repr__(self) -> str:
        return shown(self, bounds=self._bounds)

    @classmethod
    def of(
        cls,
        x: Any,
        *,
        counts: Any = None,
        privacy_unit: Any = None,
        contributions: Any = WEIGHTS,
        nan_policy: str = "omit",
        workers: int = 1,
    ) -> Records:
        """Check the form of a column.

        Parameters
        ----------
        x, counts, privacy_unit, contributions, nan_policy, workers
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
        return cls.reader(
            x,
            counts=counts,
            privacy_unit=privacy_unit,
            contributions=contributions,
            nan_policy=nan_policy,
            workers=workers,
        )()

    @classmethod
    def reader(
        cls,
        x: Any,
        *,
        counts: Any = None,
        privacy_unit: Any = None,
        contributions: Any = WEIGHTS,
        nan_policy: str = "omit",
        workers: int = 1,
    ) -> Callable[[], Records]:
        """`of` in two steps, as `Sample.reader`."""
        _checks.check_choice("nan_policy", nan_policy, ("omit", "raise"))
        threads = _checks.check_workers(workers)
        x, counts = here(*in_place_of(x, counts, privacy_unit, contributions))
        held = x if isinstance(x, Records) else getattr(x, "records", None)  # of a `Sample`
        if isinstance(held, Records):
            if counts is not None or nan_policy != "omit":
                raise ValueError(
                    "counts and nan_policy belong to Sample.of or Records.of, and must be left "
                    f"out for a {type(x).__name__}"
                )
            return lambda: held
        passes = passes_of(x)
        if passes is not None:
            refuse_counts(counts)
            records = cls(passes, n_is_public=nan_policy == "raise")
            return lambda: records._checked(nan_policy)
        _checks.check_column(x)
        check_declared(x)
        counts = beside(x, counts)

        def read() -> Records:
            values = as_column(x)
            weighted = None if counts is None else (values, weights_of(counts, values))
            n_is_public = nan_policy == "raise" and not isinstance(counts, (Persons, Atoms))
            persons = counts if isinstance(counts, Persons) else None
            chunks = Chunks.of_array(values, threads)
            records = cls(chunks, weighted, n_is_public=n_is_public, persons=persons)
            return records._checked(nan_policy)

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
        chunks = chunks_of(source, column, workers, progress)
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
            ranges = None if within is None else self._ranges(*within, negate)
            counts = self._chunks.fold(BinCounts(bins, negate, ranges))
        if self._bounds is not None:  # bins ascend: clamped records are in those of the bounds
            low, high = self._bounds
            first, last = (bins.find(end) for end in ((-high, -low) if negate else (low, high)))
            counts[first] = counts[: first + 1].sum()
            counts[:first] = 0
            counts[last] = counts[last:].sum()
            counts[last + 1 :] = 0
        return counts

    def _ranges(
        self, lo: NDArray[np.float64], hi: NDArray[np.float64], negate: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Closed ranges of the records, for half-open ones of what is counted."""
        hi = np.nextafter(hi, -math.inf)
        if negate:
            lo, hi = -hi, -lo
        low, high = (-math.inf, math.inf) if self._bounds is None else self._bounds
        return np.where(lo <= low, -math.inf, lo), np.where(hi >= high, math.inf, hi)

    def sums(self, scale: float, first: int, last: int) -> tuple[int, int, int | None]:
        """Exact sum of the records as integers, by one pass. Private.

        Parameters
        ----------
        scale : float
            A record x becomes the integer nearest to x * scale. Positive and finite. Public.
        first, last : int
            What the integers are clamped to; first <= last, within 2^31 of zero. Public.

        Returns
        -------
        (int, int, int or None)
            The sum, how many records there are, and how many rows, with the missing ones: this is
            public under "swap". None of weighted records: who counts values may leave missing ones
            out.
        """
        total, number, rows = self._added(self._clamped(Sums(scale, first, last)))
        return total, number, rows

    def moments(self, scale: float, first: int, last: int) -> tuple[int, int, int | None, int]:
        """As `sums`, and the sum of squares about ``(first + last) // 2``, by one pass. Private.

        Parameters
        ----------
        scale : float
        first, last : int
            As in `sums`; no more than 2^17 apart.

        Returns
        -------
        (int, int, int or None, int)
        """
        asked = self._clamped(Sums(scale, first, last, squared=True))
        total, number, rows, squares = self._added(asked)
        off = asked.middle - Sums(scale, first, last).middle
        squares += off * (2 * (total - number * asked.middle) + number * off)
        return total, number, rows, squares

    def _clamped(self, asked: Sums) -> Sums:
        """The same of records that are clamped to bounds of their own first."""
        if self._bounds is None:
            return asked
        low, high = (
            round(min(max(end * asked.scale, asked.first), asked.last)) for end in self._bounds
        )
        return Sums(asked.scale, low, high, asked.squared)

    def _added(self, asked: Sums) -> Any:
        if self._weighted is None:
            return self._chunks.fold(asked)
        values, weights = as_float64(self._weighted[0]), self._weighted[1]
        add = kernel_sums.weighted_squares if asked.squared else kernel_sums.weighted
        total, number, *squares = add(values, weights, asked.scale, asked.first, asked.last)
        return total, number, None, *squares

    def _checked(self, nan_policy: str) -> Records:
        """The same; without NaN if there must be none."""
        if nan_policy == "raise" and self._chunks.fold(AnyMissing()).any():
            refuse_nan(nan_policy)
        return self
