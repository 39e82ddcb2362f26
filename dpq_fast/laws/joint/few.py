"""The laws of a few records, drawn from by one call of a kernel.

Where there are so few row entries that rows hold all of them, these are the same draws as of the
laws.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as intervals_kernel
from dpq_fast._kernels.groups_release import Releases
from dpq_fast._kernels.lattice import is_sorted
from dpq_fast.data.lattice import Lattice
from dpq_fast.laws.depth import window_for
from dpq_fast.laws.joint.outside import Outside
from dpq_fast.laws.joint.path import CERTIFICATE, PathLaw
from dpq_fast.laws.joint.plan import PLAN
from dpq_fast.orders.order import public_volume
from dpq_fast.orders.sorted import SortedOrder


def are_few_paths(n: int, m: int, rate: float) -> bool:
    """Whether so many records are few, for the law of m levels together."""
    if n > PLAN.most_few or m * (n + 1) > PLAN.few_room:
        return False
    return m * min(n + 1, 2 * held_of(n, m, rate) + 1) <= PLAN.most_few


def held_of(n: int, m: int, rate: float) -> int:
    """How far from targets intervals are laid out: about as far as windows; n for all of them."""
    if n < PLAN.least_held:
        return n
    held = (spare_of(n, m) + m * (math.log1p(n * rate) + PLAN.held_farther)) / (2.0 * rate)
    return math.ceil(min(held, float(n)))


def spare_of(n: int, m: int) -> float:
    """By how many nats what is outside of windows weighs less; inf where they have all ranks."""
    entries = (n + 1) * m
    if entries <= PLAN.small_entries:
        return math.inf
    return PLAN.light_spare if entries <= PLAN.light_entries else CERTIFICATE


def draw_path(
    values: NDArray[np.float64],
    q: NDArray[np.float64],
    rate: float,
    bounds: tuple[float, float],
    lattice: Lattice | None,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """The m outputs of `PathLaw`, its dither drawn before.

    `values` are in any order, without NaN, and few (`are_few_paths`).
    """
    releases = Releases(q, rate, bounds, lattice)
    return releases.outputs(draw_points(releases, values, q, rate, bounds, lattice, rng))


def draw_points(
    releases: Releases,
    values: NDArray[np.float64],
    q: NDArray[np.float64],
    rate: float,
    bounds: tuple[float, float],
    lattice: Lattice | None,
    rng: np.random.Generator,
) -> NDArray[Any]:
    """The same, as (fine) points of the lattice, or numbers; `releases` are of these arguments."""
    n, m = values.size, q.size
    extent = bounds[1] - bounds[0] if lattice is None else float(lattice.fine_points)
    log_volume = public_volume(extent, m, lattice is not None)
    held = held_of(n, m, rate)
    drawn, points, left = releases.one(_sorted(values), log_volume, spare_of(n, m), held, rng)
    if points is None:
        return drawn
    # what float64 rows can not hold, or is decided outside of windows; its dither stays
    order = SortedOrder(points, lattice, bounds, fine=True)
    if left is not None:
        reach, log_bound = left
        windows = intervals_kernel.windows(q, n, reach)[:2]
        escaped = Outside(order, q, rate, *windows).draw(log_bound, rng)
        if escaped is not None:
            outputs: NDArray[Any] = escaped[0][0]
            return outputs
    again: NDArray[Any] = PathLaw(order, q, rate).draw(rng, 1)[0]
    return again


def most_of_flips(rates: NDArray[np.float64], lattice: Lattice) -> int:
    """How many records are few, for the laws of single levels: their windows hold all of them."""
    window = window_for(float(lattice.points), max(rates.tolist()))
    return min(PLAN.most_few, int(window))


def draw_flips(
    values: NDArray[np.float64],
    q: NDArray[np.float64],
    rates: NDArray[np.float64],
    bounds: tuple[float, float],
    lattice: Lattice,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """The outputs of `DepthLaw` at each level by permute-and-flip, as `draw_path`; not sorted."""
    return Releases(q, 0.0, bounds, lattice).flip_one(_sorted(values), rates, rng)


def _sorted(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values in order."""
    return values if is_sorted(values) else np.sort(values)
