"""Distribution functions: the figures of Sarus' note, and the table and plots of its poster.

`cdf_methods` is the note's comparison: N = 10,000 records of N(0, sigma) in ±5, delta = 1/N; each
method at its best of a few numbers of levels or bins, as there. `cdf_poster` is the poster's: ages
at epsilon = 0.01, and how many points exceed alpha.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench.columns import REAL
from dpq_fast import privacy
from dpq_fast.released.cdf import CumulativeNoise
from papers.pictures import picture
from papers.report import Report, digits

# The note

N, RANGE = 10_000, (-5.0, 5.0)
NOTE_EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SIGMAS = (1.0, 0.3, 0.1, 0.03, 0.01)
SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
METRICS = {"ks": "Kolmogorov-Smirnov", "wasserstein": "Wasserstein", "energy": "energy"}


def _spent(epsilon: float) -> dict[str, float]:
    """Gaussian noise for (epsilon, 1/N), by concentrated privacy."""
    return {"rho": privacy.zcdp_rho(epsilon, 1.0 / N)}


def _levels(method: str, size: int, epsilon: float) -> dict[str, Any]:
    return dict(method=method, levels=size - 1, epsilon=epsilon, delta=1.0 / N)


# Name, and the arguments of `cdf` for a number of intervals and an epsilon. The note's histogram
# divides its budget by the bins; "histogram" need not, since a record is in one bin.
SIDES: dict[str, Callable[[int, float], dict[str, Any]]] = {
    "gaussian": partial(_levels, "gaussian"),
    "smooth_gaussian": partial(_levels, "smooth_gaussian"),
    "adaptive": lambda size, epsilon: dict(method="adaptive", steps=size - 1, **_spent(epsilon)),
    "histogram": lambda size, epsilon: dict(method="histogram", bins=size, epsilon=epsilon),
    "binary_tree": lambda size, epsilon: dict(method="binary_tree", bins=size, epsilon=epsilon),
    "binary_tree, aggregate=False": lambda size, epsilon: dict(
        method="binary_tree", bins=size, aggregate=False, epsilon=epsilon
    ),
}


def _distances(side: str, size: int, epsilon: float, sigma: float, trials: int) -> NDArray | None:
    """Mean distances between a release and its records; None where it is refused."""
    found = []
    for seed in range(trials):  # the same records for every side
        rng = np.random.default_rng([seed, 7])
        x = rng.normal(0.0, sigma, N).clip(*RANGE)
        try:
            released = dpq.cdf(
                x, bounds=RANGE, nan_policy="raise", rng=rng, **SIDES[side](size, epsilon)
            )
        except ValueError:  # epsilon above 4 for a level
            return None
        found.append([getattr(released, metric)(x) for metric in METRICS])
    return np.mean(found, axis=0)


def cdf_methods(report: Report, out: Path) -> None:
    """The note's comparison: over epsilon, over the data's width, over the number of bins."""
    trials = 4 if report.quick else 20
    sizes = SIZES[::2] if report.quick else SIZES

    def best(side: str, epsilon: float, sigma: float) -> NDArray:
        """Of all sizes, for each distance."""
        tried = [_distances(side, size, epsilon, sigma, trials) for size in sizes]
        return np.min([distances for distances in tried if distances is not None], axis=0)

    sweeps: tuple[tuple[tuple, Callable[[str, Any], NDArray | None], str], ...] = (
        (NOTE_EPSILONS, lambda side, value: best(side, value, 1.0), "ε (σ = 1)"),
        (SIGMAS, lambda side, value: best(side, 1.0, value), "σ of the data (ε = 1)"),
        (
            SIZES,
            lambda side, value: _distances(side, value, 1.0, 0.1, trials),
            "bins, levels + 1 or steps + 1 (ε = 1, σ = 0.1)",
        ),
    )
    title = f"Distance to the records: N(0, σ) in ±5, n = {N:,}, δ = 1/n"
    with picture(out / "cdf_methods.png", title, 3, 3, (15.0, 13.0)) as axes:
        for row, (values, measure, label) in zip(axes, sweeps, strict=True):
            measured = {side: [measure(side, value) for value in values] for side in SIDES}
            table = report.table(f"KS distance over {label}", "", *[f"{v:g}" for v in values])
            for side, points in measured.items():
                kept = [(v, *d) for v, d in zip(values, points, strict=True) if d is not None]
                x, *distances = zip(*kept, strict=True)
                for axis, y in zip(row, distances, strict=True):
                    axis.plot(x, y, "o-", markersize=4, label=side)
                table.add_row(side, *["" if d is None else digits(float(d[0])) for d in points])
            for axis, metric in zip(row, METRICS.values(), strict=True):
                axis.set(xscale="log", yscale="log", xlabel=label, ylabel=metric)
            report.print(table)
        axes[0, 0].legend(fontsize="small")


# The poster

POSTER = dict(epsilon=0.01, bins=128, bounds=(0, 128), nan_policy="raise")
BETA, TRIALS = 0.05, 10


def cdf_poster(report: Report, out: Path) -> None:
    """Ages and hours per week, as they are and for a million people; points beyond alpha."""
    table = report.table(
        "The poster's table: ε = 0.01, β = 0.05, 128 points, 10 trials",
        "column",
        "n",
        "α, one count",
        "points beyond it (6.4 expected at most)",
        "α, all intervals",
        "trials beyond it",
        caption="Poster: α = 9333 for one count; 0 to 2 and 0 to 12 of 100 points beyond it.",
    )
    with picture(out / "cdf_poster.png", "Counts at ε = 0.01, β = 0.05", 2, 2, (11.0, 8.0)) as axes:
        for row, name in zip(axes, ("age", "hours_per_week"), strict=True):
            column = REAL[name].load()
            many = np.random.default_rng(0).choice(column, 10**6)
            for axis, x in zip(row, (column, many), strict=True):
                edges = np.arange(129)
                true = np.searchsorted(np.sort(x), edges, side="right")
                alphas, beyond, worst = [], [], []
                for _ in range(TRIALS):
                    released = dpq.cdf(x, **POSTER)
                    noise = released._noise.noise
                    one = CumulativeNoise(noise, lambda: np.array([7.0]), True).margin(BETA)
                    error = released.total * released.cdf(released.edges) - true
                    beyond.append(int((np.abs(error) > one).sum()))
                    worst.append(np.ptp(error) > released.accuracy(BETA))
                    alphas.append(released.accuracy(BETA))
                axis.plot(edges, true, "r", label="records")
                axis.plot(released.x, released.total * released.p, "g", label="released")
                band = alphas[0]
                ends = np.clip((true - band, true + band), 0, x.size)
                axis.fill_between(edges, *ends, color="r", alpha=0.1)
                axis.set(xlabel=name, ylabel="records up to there", title=f"n = {x.size:,}")
                axis.legend()
                table.add_row(
                    name,
                    f"{x.size:,}",
                    digits(one),
                    ", ".join(map(str, beyond)),
                    digits(alphas[0]),
                    str(sum(worst)),
                )
    report.print(table)
