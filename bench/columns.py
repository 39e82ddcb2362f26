"""What is measured: generated columns, and four real ones beside the repository; levels, budget."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BOUNDS = (-100.0, 100.0)
EPSILON = 1.0
# Of mechanisms that are not pure.
DELTA = 1e-6
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


class RealColumn(NamedTuple):
    """A public column and how it is released: whole numbers on the lattice of 1."""

    file: str
    name: str
    dtype: type
    bounds: tuple[float, float]
    resolution: float

    @property
    def path(self) -> Path:
        return DATA / self.file

    def load(self) -> NDArray:
        with self.path.open() as lines:
            header = lines.readline().strip().split(",")
        column = header.index(self.name)
        return np.loadtxt(self.path, delimiter=",", skiprows=1, usecols=column, dtype=self.dtype)


REAL = {
    column.name: column
    for column in (
        RealColumn("adult.csv", "hours_per_week", np.int64, (0, 100), 1.0),
        RealColumn("adult.csv", "age", np.int64, (0, 100), 1.0),
        RealColumn("goodreads_books.csv", "average_rating", np.float64, (0, 10), 0.01),
        RealColumn("goodreads_books.csv", "num_pages", np.int64, (0, 10_000), 1.0),
    )
}


def gaussian(n: int, seed: int = 0) -> NDArray[np.float64]:
    """n records of the paper's N(0, 5), in no order; to be released with `BOUNDS`."""
    return np.random.default_rng(seed).normal(0.0, 5.0, n)


def ordered(n: int) -> NDArray[np.float64]:
    """The same, ascending."""
    return np.sort(gaussian(n))


def levels(m: int) -> NDArray[np.float64]:
    """m evenly spaced levels j / (m + 1)."""
    return np.arange(1, m + 1) / (m + 1)
