"""What JointExp costs beyond the reading of the records: by n, levels, epsilon and ties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench.case import Call, CostCase
from bench.columns import BOUNDS, gaussian, levels
from bench.measure import alternately, count, duration, peak_memory, size_of
from dpq_fast.data.passes import Chunks

LEVELS = (1, 30, 300)
# More records than that come in batches: of this many, the same ones again and again.
MOST_HELD, BATCH = 10**8, 10**7
# Shares of the records that have one and the same value.
TIED = (0.0, 0.5, 1.0)
SECONDS, LEAST = 1.0, 5  # the median of so many releases at least, as proposals may be few or many


def column(n: int, tied: float) -> NDArray[np.float64]:
    """In order: of an ordered column windows are all that is read."""
    x = gaussian(n)
    x[: int(n * tied)] = 0.0
    x.sort()
    return x


def release(x: NDArray[np.float64], m: int, epsilon: float) -> Call:
    return partial(dpq.joint_exp, x, levels(m), epsilon=epsilon, bounds=BOUNDS, assume_sorted=True)


@contextmanager
def _passes() -> Iterator[list[float]]:
    """The seconds of each pass over records that begins inside of this block."""
    seconds: list[float] = []
    fold = Chunks.fold

    def timed(self: Chunks, query: Any) -> Any:
        start = perf_counter()
        state = fold(self, query)
        seconds.append(perf_counter() - start)
        return state

    Chunks.fold = timed  # type: ignore[method-assign]
    try:
        yield seconds
    finally:
        Chunks.fold = fold  # type: ignore[method-assign]


def in_batches(
    batch: NDArray[np.float64], batches: int, m: int, epsilon: float
) -> tuple[float, int]:
    """Seconds of a release beyond its passes over the records, and what one allocates."""
    spent: list[float] = []

    def call() -> None:
        with _passes() as passes:
            start = perf_counter()
            sample = dpq.Sample.from_batches(lambda: (batch for _ in range(batches)), BOUNDS)
            dpq.joint_exp(sample, levels(m), epsilon=epsilon)
            spent.append(perf_counter() - start - sum(passes))

    for _ in range(LEAST):
        call()
    seconds = median(spent)
    return seconds, peak_memory(call)


def held(x: NDArray[np.float64], m: int, epsilon: float) -> tuple[float, int]:
    """The same for a column in order, of which only windows are read."""
    call = release(x, m, epsilon)
    return alternately({"": call}, SECONDS, LEAST)[""].median, peak_memory(call)


def cost_of(n: int, tied: float) -> Callable[[int, float], tuple[float, int]]:
    """One of them, of m and epsilon."""
    if n <= MOST_HELD:
        return partial(held, column(n, tied))
    batch = column(BATCH, tied)
    np.random.default_rng(1).shuffle(batch)
    return partial(in_batches, batch, n // BATCH)


def costs(case: CostCase, n: int, shares: tuple[float, ...]) -> list[str]:
    """The longest time and the most memory of all shares of ties, for each number of levels."""
    seconds = dict.fromkeys(LEVELS, 0.0)
    space = dict.fromkeys(LEVELS, 0)
    for tied in shares:
        cost = cost_of(n, tied)
        for m in LEVELS:
            spent, most = cost(m, case.epsilon)
            seconds[m] = max(seconds[m], spent)
            space[m] = max(space[m], most)
    return [f"{duration(seconds[m])}, {size_of(space[m])}" for m in LEVELS]


EPSILONS = {1e-4: "10⁻⁴", 1e-3: "10⁻³", 1e-2: "10⁻²", 0.1: "0.1", 1.0: "1", 10.0: "10"}
CASES = tuple(
    CostCase(
        f"costs/{n:.0e}-{epsilon:g}",
        f"n = {count(n)}{', in batches' if n > MOST_HELD else ''}, ε = {named}",
        n,
        epsilon,
        bar="1 s and 200 MB",
    )
    for n in (10**3, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9)
    for epsilon, named in EPSILONS.items()
)
