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

# Records beyond are taken for it: so many can be added up.
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
        self.records: int | None = None
        self.text = f"guess: {text}"

    def rounded(self, lattice: Lattice) -> Guess:
        """The same records, rounded to a lattice; those beyond the bounds stay."""
        other = copy.copy(self)
        other._rounded = lattice
        return other

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
        made.records = ordered.size
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
