"""Time and memory of functions that are to be compared with each other."""

from __future__ import annotations

import math
import platform
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

# Calls shorter than this (seconds) are timed in a loop.
SHORTEST = 2e-3
ROUNDS = (3, 51)


class Timing(NamedTuple):
    """Seconds per call: the median and the best round, and all rounds."""

    median: float
    best: float
    rounds: list[float]

    def over(self, other: Timing) -> list[float]:
        """How many times longer than `other`: low, median and high quartile over the rounds."""
        return np.quantile(np.divide(self.rounds, other.rounds), (0.25, 0.5, 0.75)).tolist()

    def scaled(self, factor: float) -> Timing:
        """As if every call took so many times longer."""
        return Timing(self.median * factor, self.best * factor, [r * factor for r in self.rounds])


def alternately(
    sides: dict[str, Callable[[], Any]], seconds: float, least: int = ROUNDS[0]
) -> dict[str, Timing]:
    """Time functions in turn, A B C A B C ..., for some seconds, and at least some rounds."""
    loops, once = {}, {}
    for name, side in sides.items():
        once[name] = _per_call(side, 1)
        if once[name] < 1.0:  # caches, plans and generators were made just now
            once[name] = _per_call(side, 1)
        loops[name] = max(1, math.ceil(SHORTEST / once[name]))
    one_round = sum(loops[name] * once[name] for name in sides)
    rounds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(min(max(int(seconds / one_round), least), ROUNDS[1])):
        for name, side in sides.items():
            rounds[name].append(_per_call(side, loops[name]))
    return {name: Timing(float(np.median(r)), min(r), r) for name, r in rounds.items()}


def _per_call(side: Callable[[], Any], loops: int) -> float:
    start = perf_counter()
    for _ in range(loops):
        side()
    return (perf_counter() - start) / loops


def peak_memory(side: Callable[[], Any]) -> int:
    """Peak of the bytes that one call allocates, after a first call, as tracemalloc sees them.

    NumPy reports its buffers to tracemalloc, and our kernels work in NumPy's buffers alone, so
    this is all there is; memory of other native libraries is not seen.
    """
    side()
    tracemalloc.start()
    try:
        side()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def machine() -> str:
    """Processor model and versions, and nothing that names this machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        model = platform.machine()
    return f"{model}, Python {platform.python_version()}, NumPy {np.__version__}"


def duration(seconds: float) -> str:
    """Two digits and a unit."""
    if seconds >= 0.05:
        return f"{digits(seconds)} s"
    return f"{digits(seconds * 1e3)} ms" if seconds >= 1e-4 else f"{digits(seconds * 1e6)} µs"


def size_of(number: float) -> str:
    """Bytes in words."""
    return f"{digits(number / 1e9)} GB" if number >= 1e9 else f"{digits(number / 1e6)} MB"


def digits(number: float) -> str:
    """Two digits."""
    if number == 0.0:
        return "0"
    places = 1 - math.floor(math.log10(abs(number)))
    return f"{round(number, places):,.{max(places, 0)}f}"


def count(n: int) -> str:
    """1,000, but 10⁶."""
    power = len(str(n)) - 1
    if n == 10**power and power > 3:
        return "10" + str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{n:,}"
