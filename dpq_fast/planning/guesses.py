"""Public guesses at how records are distributed."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.leaves import points_below
from dpq_fast.planning.words import counted, described

# Records beyond are taken for it, so that their sum is finite.
LARGEST = 1e150


class Guess:
    """A public distribution.

    Parameters
    ----------
    ppf, cdf : callable
        Of arrays.
    text : str
        What it is, in words.

    Attributes
    ----------
    records : int or None
        How many public records it is made of, if it is.
    """

    def __init__(
        self,
        ppf: Callable[[NDArray[np.float64]], Any],
        cdf: Callable[[NDArray[np.float64]], Any],
        text: str,
    ) -> None:
        self._ppf = ppf
        self._cdf = cdf
        self._rounded: Lattice | None = None
        self._spread: Guess | None = None
        self.records: int | None = None
        self.text = f"guess: {text}"

    def rounded(self, lattice: Lattice) -> Guess:
        """The same records, rounded to a lattice; those beyond the bounds stay.

        Public records are as they are; those between them are rounded if these are.
        """
        other = copy.copy(self)
        if self.records is None:
            other._rounded = lattice
        elif self._spread is not None:
            own = np.clip(
                self._ppf((np.arange(self.records) + 0.5) / self.records), lattice.low, lattice.high
            )
            if np.array_equal(lattice.decode(lattice.encode(own)), own):
                other._spread = copy.copy(self._spread)
                other._spread._rounded = lattice
        return other

    def of_size(self, n: int) -> Guess:
        """The guess for n records: if public ones are fewer, others lie between them, too."""
        if self._spread is None or self.records is None or n <= self.records:
            return self
        return self._spread

    @classmethod
    def of(cls, guess: Any, bounds: Any) -> Guess:
        """Check what is given for `guess`."""
        if callable(getattr(guess, "ppf", None)) and callable(getattr(guess, "cdf", None)):
            made = cls(guess.ppf, guess.cdf, described(guess))
        else:
            if isinstance(guess, (str, bytes)) or not np.iterable(guess):
                raise TypeError(
                    "guess must be a distribution with ppf and cdf, or public records, "
                    f"got {type(guess).__name__}"
                )
            made = cls._of_records(_checks.real_array("guess", guess))
        if bounds is not None:
            made._check_mass(*_checks.check_bounds(bounds))
        return made

    @classmethod
    def of_prior(cls, lattice: Lattice) -> Guess:
        """The points of a lattice, as likely as its prior says."""
        masses = lattice.masses
        assert masses is not None

        def ppf(u: NDArray[np.float64]) -> NDArray[np.float64]:
            fine = np.minimum(np.floor(u * masses.total), masses.total - 1.0)
            return lattice.decode(masses.points_of(fine.astype(np.int64)))

        def cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
            reached = points_below(lattice, x, "right")
            share: NDArray[np.float64] = masses.below(reached) / masses.total
            return share

        return cls(ppf, cdf, "the prior")

    @classmethod
    def _of_records(cls, records: NDArray[np.float64]) -> Guess:
        if records.ndim != 1:
            raise ValueError(f"guess must be one-dimensional, got {records.ndim} dimensions")
        if records.size == 0:
            raise ValueError("guess must hold at least one record, got none")
        if not np.isfinite(records).all():
            raise ValueError("guess must hold finite records")
        ordered = np.sort(records)
        made = cls(
            lambda u: ordered[np.minimum((u * ordered.size).astype(np.int64), ordered.size - 1)],
            lambda x: np.searchsorted(ordered, x, side="right") / ordered.size,
            f"{counted(ordered.size, 'public record')}",
        )
        # Each that occurs once stands for what is nearer to it than to those beside it; n records
        # would else be in as few places as there are public ones.
        distinct, first, counts = np.unique(ordered, return_index=True, return_counts=True)
        halfway = distinct[:-1] + np.diff(distinct) / 2.0
        ends = np.append(distinct[0], halfway), np.append(halfway, distinct[-1])
        places = np.stack([np.where(counts == 1, end, distinct) for end in ends], axis=1).ravel()
        shares = np.stack([first, first + counts], axis=1).ravel() / ordered.size
        made._spread = cls(
            lambda u: np.interp(u, shares, places),
            lambda x: np.interp(x, places, shares, left=0.0, right=1.0),
            made.text,
        )
        made.records = made._spread.records = ordered.size
        return made

    def _check_mass(self, low: float, high: float) -> None:
        inside = float(self._cdf(np.array([high]))[0]) - float(self.below(np.array([low]))[0])
        if not inside > 0.0:
            raise ValueError(f"guess must have mass between bounds, got none in ({low}, {high})")

    def values(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """The records at these ranks, as shares of all."""
        values = np.asarray(self._ppf(u), dtype=np.float64)
        if np.isnan(values).any():
            raise ValueError("guess must have a ppf that is not NaN between 0 and 1")
        if self._rounded is not None:
            lattice = self._rounded
            inside = (values >= lattice.low) & (values <= lattice.high)
            values = np.where(inside, lattice.decode(lattice.encode(values)), values)
        return np.clip(values, -LARGEST, LARGEST)

    def below(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the records below x."""
        return np.asarray(self._cdf(np.nextafter(x, -math.inf)), dtype=np.float64)
