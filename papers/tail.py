"""How long [Dur23]'s search goes on beyond the data, by split, ratio of candidates and cap.

Of no paper: it chose the default share of epsilon that the threshold gets, and the ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench.columns import REAL
from dpq_fast.laws.unbounded import BETA
from papers import printed
from papers.pictures import picture
from papers.report import Report
from papers.unbounded import EPSILONS, SPLIT, Draw, N, sum_error

LEVEL = printed.CLIP_LEVEL
SPLITS = (0.3, 0.4, 0.5, 0.6, SPLIT, 0.7, 0.8, 0.9)
CAP = 1e6
UNIT = 100.0  # of the squares
# What the picture shows.
SHOWN = (0.5, SPLIT, 0.8)
STYLES = {f"β {BETA}": "-", f"β {printed.BETA}": "--", "squares": ":"}
FARTHEST = 1e12


class Clips(NamedTuple):
    """Clips over the exact quantile, and the errors of their sums in units of quantile/epsilon."""

    ratio: NDArray[np.float64]
    error: NDArray[np.float64]
    capped_ratio: NDArray[np.float64]
    capped_error: NDArray[np.float64]


def geometric(x: NDArray, epsilon: float, split: float, beta: float) -> Callable[..., NDArray]:
    return dpq.unbounded_quantile_law(x, LEVEL, epsilon=epsilon, beta=beta, split=split).sample


def squares(x: NDArray, epsilon: float, split: float) -> Callable[..., NDArray]:
    """Candidates (i / 100)^2 up to the cap: steps of 1% at 4, ever smaller ones beyond."""
    values = (np.arange(1.0, UNIT * np.sqrt(CAP) + 1.0) / UNIT) ** 2
    law = dpq.above_threshold_law(
        np.searchsorted(np.sort(x), values),
        LEVEL * x.size,
        epsilon1=split * epsilon,
        epsilon2=(1.0 - split) * epsilon,
    )
    return lambda rng, size: values[law.sample(rng, size)]  # -1, none halted: the last one


def tail(report: Report, out: Path) -> None:
    """How long the search goes on beyond the data, by split, ratio of candidates and cap."""
    samples, draws = (5, 200) if report.quick else (20, 1_000)
    lines: dict[float, dict[tuple[str, float], NDArray[np.float64]]] = {
        epsilon: {} for epsilon in EPSILONS
    }
    table = report.table(
        f"Clip over the exact quantile, level {LEVEL}, {N:,} records of each real column",
        "ε",
        "candidates",
        "split",
        "median",
        "95%",
        "99%",
        "99.9%",
        "mean",
        f"mean, cap {CAP:g}",
        "sum: median",
        f"mean, cap {CAP:g}",
        caption=f"{len(REAL)} columns, {samples} samples each, {draws} draws of each. Squares: "
        f"candidates (i / {UNIT:g})^2 up to {CAP:g}. Sum: its error in units of "
        "quantile / ε, the noise of the exact clip.",
    )
    all_counted = {f"β {beta}": partial(geometric, beta=beta) for beta in (BETA, printed.BETA)}
    all_counted["squares"] = squares
    for epsilon in EPSILONS:
        for label, counted in all_counted.items():
            for split in SPLITS:
                clips = _clips(counted, epsilon, split, samples, draws)
                with np.errstate(over="ignore"):
                    mean = clips.ratio.mean()
                middle, high, higher, highest = np.quantile(clips.ratio, [0.5, 0.95, 0.99, 0.999])
                table.add_row(
                    f"{epsilon:g}",
                    label,
                    f"{split:.2f}",
                    f"{middle:.3f}",
                    *map(_short, (high, higher, highest, mean)),
                    _short(clips.capped_ratio.mean()),
                    f"{np.median(clips.error):.2f}",
                    _short(clips.capped_error.mean()),
                )
                if split in SHOWN:
                    lines[epsilon][label, split] = np.sort(np.minimum(clips.ratio, 2.0 * FARTHEST))
            table.add_section()
    report.print(table)
    title = f"How far a clip lies beyond the data: level {LEVEL}, {N:,} records"
    with picture(out / "tail.png", title, 1, len(EPSILONS), (14.0, 4.8)) as axes:
        for each, epsilon in zip(axes.flat, EPSILONS, strict=True):
            for (label, split), ratios in lines[epsilon].items():
                survival = 1.0 - np.arange(ratios.size) / ratios.size
                each.plot(
                    ratios,
                    survival,
                    STYLES[label],
                    color=f"C{SHOWN.index(split)}",
                    drawstyle="steps-pre",
                    label=f"{label}, split {split:.2f}",
                )
            each.set(xscale="log", yscale="log", xlim=(0.5, FARTHEST), title=f"ε = {epsilon:g}")
            each.set(xlabel="clip / exact quantile", ylabel="probability to reach it")
        axes.flat[0].legend(fontsize="small")


def _short(number: float) -> str:
    return f"{number:.2e}" if number >= 1e4 else f"{number:.2f}"


def _clips(
    counted: Callable[..., Callable[..., NDArray]],
    epsilon: float,
    split: float,
    samples: int,
    draws: int,
) -> Clips:
    """Clips of all real columns together."""
    rows = []
    for name in REAL:
        for seed in range(samples):
            x = Draw.of(name, seed).records
            exact = np.quantile(x, LEVEL)
            drawn = counted(x, epsilon, split)(np.random.default_rng([seed, 3]), size=draws)
            row = []
            # The law with an upper end is that of the smaller one: the last candidate is the cap,
            # and a search that would go on releases it.
            for clips in (drawn, np.minimum(drawn, CAP)):
                row += [clips / exact, sum_error(x, clips, epsilon) * epsilon / exact]
            rows.append(row)
    return Clips(*np.concatenate(rows, axis=1))
