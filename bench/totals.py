"""Errors of means, in units of what is possible: of Laplace noise alone, and of the best clip."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench.case import TotalCase
from bench.columns import EPSILON, REAL

N = 10_000
DRAWS, QUICK_DRAWS = 2_000, 2
MISSING = 0.02
# A column, and bounds that are known.
COLUMNS: dict[str, tuple[Callable[[np.random.Generator], NDArray], tuple[float, float]]] = {
    "uniform": (lambda rng: rng.uniform(0.0, 1.0, N), (0.0, 1.0)),
    "latencies": (lambda rng: rng.lognormal(4.6, 0.8, N), (1.0, 5_000.0)),
    "80% zeros": (
        lambda rng: np.where(rng.random(N) < 0.8, 0.0, rng.lognormal(3.0, 1.0, N)),
        (0.0, 1_000.0),
    ),
    "small shares": (lambda rng: rng.beta(2.0, 200.0, N), (0.0, 1.0)),
}


def columns() -> Iterator[tuple[str, NDArray[np.float64], tuple[float, float]]]:
    """Records and their bounds."""
    rng = np.random.default_rng(0)
    for name, (draw, bounds) in COLUMNS.items():
        yield name, np.clip(draw(rng), *bounds), bounds
    yield "ages", rng.choice(REAL["age"].load(), N).astype(np.float64), (0.0, 120.0)


def of_means(
    x: NDArray[np.float64], unit: float, draws: int, **options: object
) -> tuple[float, float]:
    """The mean absolute error of `mean` in a unit, and its standard error."""
    rng, true = np.random.default_rng(1), float(np.nanmean(x))
    found = [dpq.mean(x, epsilon=EPSILON, rng=rng, **options) for _ in range(draws)]  # type: ignore
    errors = np.abs(np.array(found) - true) / unit
    return float(errors.mean()), float(errors.std(ddof=1) / math.sqrt(draws))


def with_bounds(draws: int) -> Iterator[tuple[str, tuple[float, float]]]:
    """Over the error of Laplace noise in the same bounds if the number of records is public."""
    for name, x, bounds in columns():
        for missing in (0, round(MISSING * N)):
            kept = np.append(x[missing:], np.full(missing, np.nan))
            unit = (bounds[1] - bounds[0]) / EPSILON / (N - missing)
            label = f"{name}, {missing} missing" if missing else name
            yield label, of_means(kept, unit, draws, bounds=bounds)


def least_error(x: NDArray[np.float64]) -> float:
    """Of a mean whose clip is the best one in hindsight, with Laplace noise of all of epsilon."""
    x = np.sort(x)
    clips = np.unique(x[x > 0.0])
    above = np.append(np.cumsum(x[::-1])[::-1], 0.0)
    at = np.searchsorted(x, clips)
    lost, scale = above[at] - (x.size - at) * clips, clips / EPSILON
    # E|b + Lap(s)| = |b| + s exp(-|b| / s)
    return float((lost + scale * np.exp(-lost / scale)).min()) / x.size


def with_loose_end(draws: int) -> Iterator[tuple[str, tuple[float, float]]]:
    """Over the error of the best clip, where `upper` is ten times the largest record."""
    for name, x, _ in columns():
        yield name, of_means(x, least_error(x), draws, upper=10.0 * float(x.max()))


CASES = (
    TotalCase(
        "totals/bounds",
        "`mean` in bounds, over the error of Laplace noise with a public n",
        with_bounds,
        bar="1.05; 1.25 to 1.5 before n cost nothing",
    ),
    TotalCase(
        "totals/upper",
        "`mean`, `upper` ten times too large, over the error of the best clip in hindsight",
        with_loose_end,
        bar="1.2; 1.56 is for the share of the clip alone",
    ),
)
