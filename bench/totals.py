"""Errors of means, in units of what is possible: of Laplace noise alone, and of the best clip.

Errors of variances and histograms, in units of other libraries'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench import peers
from bench.case import TotalCase
from bench.columns import EPSILON, REAL

N = 10_000
DRAWS, QUICK_DRAWS = 2_000, 2
MISSING = 0.02
BINS = 20
# A release of a histogram has as many errors, and takes other libraries longer.
DRAWS_OF_BINS = 0.1
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


Values = NDArray[np.float64]
Release = Callable[[], Any]


def absolute(release: Release, true: Any, draws: int) -> tuple[float, float]:
    """The mean absolute error of a release, and its standard error."""
    errors = np.abs(np.array([release() for _ in range(draws)]) - true).reshape(draws, -1).mean(1)
    return float(errors.mean()), float(errors.std(ddof=1) / math.sqrt(draws))


def over(ours: tuple[float, float], theirs: tuple[float, float]) -> tuple[float, float]:
    """The ratio of two mean errors, and its standard error."""
    (a, of_a), (b, of_b) = ours, theirs
    return a / b, math.hypot(of_a / b, a * of_b / b**2)


def zoo() -> Iterator[tuple[str, Values, tuple[float, float], float]]:
    """Records of the columns of `papers/first_contact.py`, their bounds, and an epsilon."""
    from papers.first_contact import EPSILONS, SIZES
    from papers.first_contact import zoo as columns

    for name, column in columns().items():
        for n in SIZES:
            x = column.draw(n, np.random.default_rng(n)).astype(np.float64)
            for epsilon in EPSILONS:
                label = f"{name}, n = {n:,}, ε = {epsilon}"
                yield label, np.clip(x, *column.bounds), column.bounds, epsilon


def with_spreads(name: str, draws: int) -> Iterator[tuple[str, tuple[float, float]]]:
    """Of `var` or `std`, over the error of diffprivlib's, of a public number of records."""
    for label, x, bounds, epsilon in zoo():
        options: dict[str, Any] = dict(epsilon=epsilon, bounds=bounds)
        ours = partial(
            getattr(dpq, name), x, nan_policy="raise", rng=np.random.default_rng(1), **options
        )
        state = np.random.RandomState(2)
        theirs = partial(getattr(peers.diffprivlib(), name), x, random_state=state, **options)
        true = float(getattr(np, name)(x))
        yield label, over(absolute(ours, true, draws), absolute(theirs, true, draws))


def with_bins(
    peer: Callable[[Values, Values, float], Release], neighbors: str, draws: int
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Of histograms, over the error of a peer's for the same guarantee."""
    draws = max(round(draws * DRAWS_OF_BINS), QUICK_DRAWS)
    for label, x, bounds, epsilon in zoo():
        edges = np.linspace(*bounds, BINS + 1)
        rng = np.random.default_rng(1)
        options: dict[str, Any] = dict(epsilon=epsilon, neighbors=neighbors, nan_policy="raise")
        ours = partial(dpq.histogram, x, edges, rng=rng, **options)
        # theirs is for records that are added or removed; one that is replaced is two of those
        theirs = peer(x, edges, epsilon / 2.0 if neighbors == "swap" else epsilon)
        true = np.histogram(x, edges)[0]
        yield (
            label,
            over(absolute(lambda: ours()[0], true, draws), absolute(theirs, true, draws)),  # noqa: B023
        )


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
    *(
        TotalCase(
            f"totals/{name}",
            f"`{name}` in bounds, n public, over the error of diffprivlib's",
            partial(with_spreads, name),
            bar="1",
        )
        for name in ("var", "std")
    ),
    *(
        TotalCase(
            f"totals/histogram_{name}_{neighbors}",
            f"`histogram`, {BINS} bins, {neighbors!r}, over the error of {name}'s",
            partial(with_bins, peer, neighbors),
            bar="1",
        )
        for name, peer in (
            ("diffprivlib", peers.diffprivlib_histogram),
            ("opendp", peers.opendp_histogram),
        )
        for neighbors in ("add-remove", "swap")
    ),
)
