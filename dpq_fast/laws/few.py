"""The laws of a few records, drawn from by one call of a kernel: the same draws as of the laws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels.groups import Releases
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.order import SortedOrder
from dpq_fast.laws.depth import window_for
from dpq_fast.laws.path import SMALL_PROBLEM, PathLaw

# More records than that are never few.
MOST = 2**12


def most_of_paths(m: int) -> int:
    """How many records are few, for the law of m levels together: windows hold all of them."""
    return min(MOST, SMALL_PROBLEM // m - 1)


def draw_path(
    values: NDArray[np.float64],
    q: NDArray[np.float64],
    rate: float,
    bounds: tuple[float, float],
    lattice: Lattice | None,
    rng: np.random.Generator,
) -> NDArray[np.int64] | NDArray[np.float64]:
    """The m answers of `PathLaw`, its dither drawn before: (fine) points or numbers.

    `values` are in any order, without NaN, and at most `most_of_paths`.
    """
    answers: NDArray[np.int64] | NDArray[np.float64]
    answers, points = Releases(q, rate, bounds, lattice).one(values, rng)
    if points is not None:  # what float64 rows can not hold; its dither stays
        order = SortedOrder(points, lattice, bounds, fine=True)
        answers = PathLaw(order, q, rate).draw(rng, 1)[0]
    return answers


def most_of_flips(rates: NDArray[np.float64], lattice: Lattice) -> int:
    """How many records are few, for the laws of single levels: as `most_of_paths`."""
    return min(MOST, int(window_for(float(lattice.points), max(rates.tolist()))))


def draw_flips(
    values: NDArray[np.float64],
    q: NDArray[np.float64],
    rates: NDArray[np.float64],
    bounds: tuple[float, float],
    lattice: Lattice,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """The answers of `DepthLaw` at each level by permute-and-flip, as `draw_path`; not sorted."""
    answers: NDArray[np.int64] = Releases(q, 0.0, bounds, lattice).flip_one(values, rates, rng)
    return answers
