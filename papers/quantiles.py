"""[GJK21] Figures 3, 4 and 6: five mechanisms over m = 1, ..., 29.

`quantile_errors` is Figures 3 and 6, with rank errors beside; `quantile_times` is Figure 4. The
trees have the shapes of Table 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench import errors
from bench.columns import BOUNDS, DELTA, gaussian, levels
from bench.measure import alternately, duration
from papers.pictures import picture
from papers.report import Report, digits

# Table 1: height and branching by m.
FIRST_SHAPES = ((4, 4), (3, 6), (3, 6), (3, 9), (2, 14))
MORE = (10, 7, 7, 10, 10, 8, 7, 7, 12, 10, 10, 10, 10, 7, 10, 10, 7, 10, 12, 12, 12, 10, 10, 12)
SHAPES = (*FIRST_SHAPES, *((3, branching) for branching in MORE))
MAX_COUNT = len(SHAPES)


def _uniform(rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.uniform(-5.0, 5.0, errors.N)


sampler = cache(errors.real_sample)  # reads its file once


def _rating(rng: np.random.Generator) -> NDArray[np.float64]:
    return sampler("average_rating")(rng)


def _pages(rng: np.random.Generator) -> NDArray[np.float64]:
    return sampler("num_pages")(rng) / 100.0


# How to draw 1,000 records, and the spacing that is public knowledge about them.
DATA: dict[str, tuple[Callable[[np.random.Generator], NDArray], float | None]] = {
    "N(0, 5)": (errors.gaussian_sample, None),
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
    counts = range(1, MAX_COUNT + 1, 7) if report.quick else range(1, MAX_COUNT + 1)
    shown = [m for m in (1, 5, 9, 15, 22, 29) if m in counts]
    found: dict[str, dict[str, list[list[float]]]] = {}
    for name, (draw, resolution) in DATA.items():
        samples = [draw(np.random.default_rng([seed, 0])) for seed in range(trials)]
        found[name] = {
            side: [_errors(side, samples, m, resolution) for m in counts] for side in MECHANISMS
        }
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
