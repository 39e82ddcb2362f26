"""Figures of distribution functions (Sarus' note, the poster) and of [GJK21]: errors and times.

The note: N = 10,000 records of N(0, sigma) in ±5, delta = 1/N; each method at its best of a few
numbers of levels or bins, as there. The poster: ages at epsilon = 0.01, and how many points exceed
alpha. [GJK21] Figures 3, 4 and 6: five mechanisms over m = 1, ..., 29.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import bench_accuracy as accuracy
import numpy as np
from bench_ind_exp import DELTA
from columns import BOUNDS, REAL, gaussian, levels
from measure import alternately
from numpy.typing import NDArray
from pictures import picture
from run import Report, digits, duration

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.mechanisms.cdf import CountNoise

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

    sweeps: dict[str, tuple[tuple, Callable[[str, Any], NDArray | None], str]] = {
        "epsilon": (NOTE_EPSILONS, lambda side, value: best(side, value, 1.0), "ε (σ = 1)"),
        "sigma": (SIGMAS, lambda side, value: best(side, 1.0, value), "σ of the data (ε = 1)"),
        "bins": (
            SIZES,
            lambda side, value: _distances(side, value, 1.0, 0.1, trials),
            "bins, levels + 1 or steps + 1 (ε = 1, σ = 0.1)",
        ),
    }
    title = f"Distance to the records: N(0, σ) in ±5, n = {N:,}, δ = 1/n"
    with picture(out / "cdf_methods.png", title, 3, 3, (15.0, 13.0)) as axes:
        for row, (name, (values, measure, label)) in zip(axes, sweeps.items(), strict=True):
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
            report.raw.setdefault("cdf_methods", {})[name] = {
                side: [None if d is None else d.tolist() for d in points]
                for side, points in measured.items()
            }
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
                true = np.searchsorted(np.sort(x), edges)
                alphas, beyond, worst = [], [], []
                for _ in range(TRIALS):
                    released = dpq.cdf(x, **POSTER)
                    noise = released._noise.noise
                    one = CountNoise(noise, lambda: np.array([7.0]), True).margin(BETA)
                    error = released.total * released.p - true
                    beyond.append(int((np.abs(error) > one).sum()))
                    worst.append(np.ptp(error) > released.accuracy(BETA))
                    alphas.append(released.accuracy(BETA))
                axis.plot(edges, true, "r", label="records")
                axis.plot(released.x, released.total * released.p, "g", label="released")
                band = alphas[0] / 2.0
                ends = np.clip((true - band, true + band), 0, x.size)
                axis.fill_between(edges, *ends, color="r", alpha=0.1)
                axis.set(xlabel=name, ylabel="records below", title=f"n = {x.size:,}")
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


# [GJK21] Figures 3, 4 and 6

# Table 1: height and branching by m.
FIRST_SHAPES = ((4, 4), (3, 6), (3, 6), (3, 9), (2, 14))
MORE = (10, 7, 7, 10, 10, 8, 7, 7, 12, 10, 10, 10, 10, 7, 10, 10, 7, 10, 12, 12, 12, 10, 10, 12)
SHAPES = (*FIRST_SHAPES, *((3, branching) for branching in MORE))
MOST = len(SHAPES)


def _uniform(rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.uniform(-5.0, 5.0, accuracy.N)


sampler = cache(accuracy.real_sample)  # reads its file once


def _rating(rng: np.random.Generator) -> NDArray[np.float64]:
    return sampler("average_rating")(rng)


def _pages(rng: np.random.Generator) -> NDArray[np.float64]:
    return sampler("num_pages")(rng) / 100.0


# How to draw 1,000 records, and the spacing that is public knowledge about them.
DATA: dict[str, tuple[Callable[[np.random.Generator], NDArray], float | None]] = {
    "N(0, 5)": (accuracy.gaussian_sample, None),
    "U(-5, 5)": (_uniform, None),
    "average rating": (_rating, 0.01),
    "number of pages / 100": (_pages, 0.01),
}
# One budget: epsilon = 1, which is 1/2-zCDP.
MECHANISMS: dict[str, Callable[..., NDArray]] = {
    "joint_exp": partial(dpq.joint_exp, epsilon=1.0),
    f"ind_exp, δ = {DELTA:g}": partial(dpq.ind_exp, epsilon=1.0, delta=DELTA),
    "csmooth, ρ = 1/2": partial(dpq.csmooth, rho=0.5),
    "agg_tree": partial(dpq.agg_tree, epsilon=1.0, nan_policy="raise"),
    "approx_quantiles": partial(dpq.approx_quantiles, epsilon=1.0),
}


def _release(side: str, x: NDArray, m: int, **options: Any) -> NDArray:
    shape = dict(zip(("height", "branching"), SHAPES[m - 1], strict=True))
    tree = shape if side == "agg_tree" else {}
    return MECHANISMS[side](x, levels(m), bounds=BOUNDS, **tree, **options)


# Of the figures, and by rank, which is fair to ties.
ERRORS = {
    "missed_points": "missed points",
    "rank_error": "rank error",
    "distance_error": "distance",
}


def _errors(side: str, samples: list[NDArray], m: int, resolution: float | None) -> list[float]:
    """Each error, averaged over levels and samples."""
    q, rows = levels(m), []
    for seed, x in enumerate(samples):
        rng = np.random.default_rng([seed, 1])
        outputs = _release(side, x, m, resolution=resolution, rng=rng)
        rows.append([getattr(dpq.metrics, error)(x, q, outputs).mean() for error in ERRORS])
    return np.mean(rows, axis=0).tolist()


def quantile_errors(report: Report, out: Path) -> None:
    """Figures 3 and 6: missed points and distance over m."""
    trials = 5 if report.quick else 50
    counts = range(1, MOST + 1, 7) if report.quick else range(1, MOST + 1)
    shown = [m for m in (1, 5, 9, 15, 22, 29) if m in counts]
    found: dict[str, dict[str, list[list[float]]]] = {}
    for name, (draw, resolution) in DATA.items():
        samples = [draw(np.random.default_rng([seed, 0])) for seed in range(trials)]
        found[name] = {
            side: [_errors(side, samples, m, resolution) for m in counts] for side in MECHANISMS
        }
    report.raw["quantile_errors"] = found
    for place, (error, label) in enumerate(ERRORS.items()):
        title = f"{label.capitalize()} per quantile, n = 1,000, ε = 1, {trials} samples"
        with picture(out / f"{error}.png", title, 2, 2, (11.0, 8.0)) as axes:
            for axis, (name, sides) in zip(axes.flat, found.items(), strict=True):
                table = report.table(f"{label}, {name}", "m", *map(str, shown))
                for side, rows in sides.items():
                    values = [row[place] for row in rows]
                    axis.plot(counts, values, label=side)
                    table.add_row(side, *[digits(values[counts.index(m)]) for m in shown])
                axis.set_yscale("log", nonpositive="mask")  # errors may be 0
                axis.set(xlabel="levels m", ylabel=label, title=name)
                report.print(table)
            axes[0, 0].legend(fontsize="small")


def quantile_times(report: Report, out: Path) -> None:
    """Figure 4: time over m, for a thousand and a million records."""
    counts = (1, 9, 29) if report.quick else (1, 3, 5, 9, 15, 22, 29)
    sizes = (1_000,) if report.quick else (1_000, 10**6)
    title = "Time per release, N(0, 5), ε = 1"
    with picture(out / "quantile_times.png", title, 1, len(sizes), (6.0 * len(sizes), 4.5)) as axes:
        for axis, n in zip(axes.flat, sizes, strict=True):
            x = gaussian(n)
            lines: dict[str, list[float]] = {}
            for m in counts:
                sides = {side: partial(_release, side, x, m) for side in MECHANISMS}
                for side, timing in alternately(sides, report.seconds / 2).items():
                    lines.setdefault(side, []).append(timing.median)
            table = report.table(f"Time, n = {n:,}", "m", *map(str, counts))
            for side, seconds in lines.items():
                axis.plot(counts, seconds, "o-", markersize=4, label=side)
                table.add_row(side, *map(duration, seconds))
            report.print(table)
            axis.set(yscale="log", xlabel="levels m", ylabel="seconds", title=f"n = {n:,}")
            axis.legend(fontsize="small")
