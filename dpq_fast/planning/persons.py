"""Persons of several rows: how many records of them a release is of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpq_fast import _checks
from dpq_fast.data.persons import WEIGHTS, Persons
from dpq_fast.planning.words import counted

# Persons that a distribution of numbers of rows stands for.
DRAWN = 10_000


class Kept(NamedTuple):
    """What a release keeps of a person.

    Attributes
    ----------
    most : int
        Records, at most; 1 for a weight, which is a record in parts.
    mean : float
        The same in the mean over persons.
    text : str
        What it is, in words.
    """

    most: int
    mean: float
    text: str

    @classmethod
    def of(cls, privacy_unit: Any, contributions: Any, max_contributions: int) -> Kept | None:
        """Check a guess at the number of rows of a person; None without one."""
        if privacy_unit is None:
            Persons.in_place_of(None, None, contributions)  # which has to be left out
            return None
        if max_contributions != 1:
            raise ValueError(
                f"max_contributions must be left out with a privacy_unit, got {max_contributions!r}"
            )
        rows = _rows(privacy_unit)
        if isinstance(contributions, str) and contributions == WEIGHTS:
            return cls(1, 1.0, "by weights")
        most = Persons([], contributions).most
        mean = float(np.minimum(rows, most).mean())
        return cls(most, mean, f"up to {counted(most, 'row')} each")

    def records(self, persons: int) -> int:
        """How many records a release of so many persons is of."""
        return max(round(persons * self.mean), 1)


def _rows(guess: Any) -> Any:
    """Numbers of rows of persons, as likely as each other."""
    if callable(getattr(guess, "ppf", None)):
        rows = np.asarray(guess.ppf((np.arange(DRAWN) + 0.5) / DRAWN), dtype=np.float64)
    elif isinstance(guess, (str, bytes)) or isinstance(guess, bool):
        raise TypeError(
            "privacy_unit must be a guess at the number of rows of a person for a plan: a number, "
            f"an array of them or a distribution with ppf, got {guess!r}"
        )
    else:
        rows = _checks.real_array("privacy_unit", guess)
    if rows.size == 0 or rows.ndim > 1:
        raise ValueError(
            "privacy_unit must be a number of rows or a one-dimensional array of them for a plan, "
            f"got shape {rows.shape}"
        )
    if not ((rows >= 1.0) & (rows < np.inf)).all():
        raise ValueError("privacy_unit must be at least 1 row for a plan, and finite")
    return rows
