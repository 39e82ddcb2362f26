"""What JointExp costs beyond the reading of the records: by n, levels, epsilon and ties."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench.case import Call, CostCase
from bench.columns import BOUNDS, gaussian, levels
from bench.measure import alternately, count, duration, peak_memory, size_of

LEVELS = (1, 30, 300, 1_000)
# The most levels of so many records that are measured: more take minutes.
MOST_LEVELS = {10**8: 300}
# Shares of the records that have one and the same value.
TIED = (0.0, 0.5, 1.0)
SECONDS = 1.0


def column(n: int, tied: float) -> NDArray[np.float64]:
    """In order: of an ordered column windows are all that is read."""
    x = gaussian(n)
    x[: int(n * tied)] = 0.0
    x.sort()
    return x


def release(x: NDArray[np.float64], m: int, epsilon: float) -> Call:
    return partial(dpq.joint_exp, x, levels(m), epsilon=epsilon, bounds=BOUNDS, assume_sorted=True)


def costs(case: CostCase, n: int, shares: tuple[float, ...]) -> list[str]:
    """The longest time and the most memory of all shares of ties, for each number of levels."""
    measured = [m for m in LEVELS if m <= MOST_LEVELS.get(n, m)]
    seconds = dict.fromkeys(measured, 0.0)
    space = dict.fromkeys(measured, 0)
    for tied in shares:
        x = column(n, tied)
        for m in measured:
            call = release(x, m, case.epsilon)
            seconds[m] = max(seconds[m], alternately({"": call}, SECONDS, 1)[""].median)
            space[m] = max(space[m], peak_memory(call))
    cells = {m: f"{duration(seconds[m])}, {size_of(space[m])}" for m in measured}
    return [cells.get(m, "–") for m in LEVELS]


EPSILONS = {1e-4: "10⁻⁴", 1e-3: "10⁻³", 1e-2: "10⁻²", 0.1: "0.1", 1.0: "1", 10.0: "10"}
CASES = tuple(
    CostCase(
        f"costs/{n:.0e}-{epsilon:g}",
        f"n = {count(n)}, ε = {named}",
        n,
        epsilon,
        bar="1 s and 200 MB",
    )
    for n in (10**3, 10**6, 10**7, 10**8)
    for epsilon, named in EPSILONS.items()
)
