"""What is measured: generated columns, and four real ones; levels, budget."""

from __future__ import annotations

import csv
import gzip
import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BOUNDS = (-100.0, 100.0)
EPSILON = 1.0
# Of mechanisms that are not pure; the papers set rho to 1/2 for epsilon 1.
DELTA, RHO = 1e-6, 0.5
ROOT = Path(__file__).resolve().parents[1]
# Credits and origins: papers/data/README.md. Goodreads is not shipped: `papers/run.py --goodreads`
# says where it is.
FILES = {
    "adult": ROOT / "papers" / "data" / "adult.csv.gz",
    "goodreads": ROOT.parent / "shared" / "data" / "goodreads_books.csv",
}
# Of the text of `read_columns`.
SHA256 = {
    "adult": "3b3b4b3e6842b7494d710a3001d2d41ad13ceb8412b214ee561dab5ff1ec7f85",
    "goodreads": "e05b05108179f8ea43d369bee5291e14b43103f67b73ad3433d66f72cc38e315",
}


@cache
def read_columns(file: str, path: Path) -> dict[str, NDArray]:
    """Both columns of a file, whose numbers have to be the known ones: ValueError for others."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    columns = [column for column in REAL.values() if column.file == file]
    names = [name.strip() for name in header]
    if not all(column.name in names for column in columns):
        raise ValueError(f"{path} is not {file}: it has other columns")
    # Goodreads' own file has rows with a comma too many in the authors, which come before.
    texts = {
        column.name: [row[names.index(column.name) - len(names)] for row in rows]
        for column in sorted(columns, key=lambda column: names.index(column.name))
    }
    both = [",".join(texts), *map(",".join, zip(*texts.values(), strict=True)), ""]
    if hashlib.sha256("\n".join(both).encode()).hexdigest() != SHA256[file]:
        raise ValueError(f"{path} is not {file}: its numbers have another SHA-256")
    return {column.name: np.array(texts[column.name], column.dtype) for column in columns}


class RealColumn(NamedTuple):
    """A public column and how it is released: whole numbers on the lattice of 1."""

    file: str
    name: str
    dtype: type
    bounds: tuple[float, float]
    resolution: float

    @property
    def path(self) -> Path:
        return FILES[self.file]

    def load(self) -> NDArray:
        return read_columns(self.file, self.path)[self.name]


REAL = {
    column.name: column
    for column in (
        RealColumn("adult", "hours_per_week", np.int64, (0, 100), 1.0),
        RealColumn("adult", "age", np.int64, (0, 100), 1.0),
        RealColumn("goodreads", "average_rating", np.float64, (0, 10), 0.01),
        RealColumn("goodreads", "num_pages", np.int64, (0, 10_000), 1.0),
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
