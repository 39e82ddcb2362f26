"""The pictures of the pages on speed and accuracy, from the tables that `bench/run.py` writes.

``python docs/_ext/pictures.py docs/front.png`` draws README's.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
# Behind what is installed: the package's modules are those that were compiled.
sys.path.append(str(ROOT))

from bench.readme import ACCURACY, LEVELS, PERFORMANCE  # noqa: E402
from bench.tables import RANKS, TIMES  # noqa: E402

# Where the tables are.
TABLES = (ROOT / PERFORMANCE, ROOT / ACCURACY)
# Legible on white and on black.
INK, OURS, THEIRS, OTHERS = "#757c87", "#2f81f7", "#d29922", "#8957e5"


def _axes(width: float, height: float) -> tuple[Figure, mpl.axes.Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.patch.set_alpha(0.0)
    axes = figure.subplots()
    axes.patch.set_alpha(0.0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(INK)
    axes.tick_params(colors=INK, which="both")
    axes.xaxis.label.set_color(INK)
    return figure, axes


def _save(figure: Figure, path: Path) -> None:
    # the same bytes every time
    with mpl.rc_context({"svg.hashsalt": "dpq_fast", "svg.fonttype": "path"}):
        figure.savefig(path, metadata={"Date": None})


def _plain(cell: str) -> str:
    """A cell without its marks of code."""
    return cell.replace("`", "")


def speed(document: str, path: Path) -> None:
    """How many times as long everything takes that ours is timed against."""
    bars: list[tuple[str, float]] = []
    work = ""
    for first, _, against, _, ratio in TIMES.rows(document):
        work = first or work
        if ratio:
            what = textwrap.fill(_plain(f"{work}, against {against}"), 70)
            bars.append((what, float(ratio.replace(",", ""))))
    # in lines of letters: each bar stands below what it is, as narrow screens have no room beside
    places = np.cumsum([label.count("\n") + 2.6 for label, _ in bars])
    figure, axes = _axes(6.4, 0.16 * places[-1] + 0.5)
    axes.spines["left"].set_visible(False)
    axes.axvline(1.0, color=INK, linewidth=0.8)
    for place, (label, ratio) in zip(places, bars, strict=True):
        axes.barh(place, ratio - 1.0, 0.9, left=1.0, color=OURS if ratio >= 1.0 else THEIRS)
        end = max(ratio, 1.0) * 1.1
        axes.text(end, place, f"{ratio:,g}", va="center", color=INK, fontsize=9)
        axes.text(1.1, place - 0.6, label, va="bottom", color=INK, fontsize=9)
    axes.set_yticks([])
    axes.set_ylim(places[-1] + 1.0, 0.0)
    axes.set_xscale("log")
    ratios = [ratio for _, ratio in bars]
    axes.set_xlim(min(0.5, 0.8 * min(ratios)), 4.0 * max(ratios))
    axes.set_xlabel("times as long as ours")
    _save(figure, path)


def errors(document: str, path: Path) -> None:
    """Mean rank errors for five levels: ours, published, and of another library."""
    rows = RANKS.rows(document)
    figure, axes = _axes(6.4, 0.9 * len(rows) + 0.7)
    for place, (_, *cells) in enumerate(reversed(rows)):
        pairs = zip((0.27, 0.0, -0.27), cells, (OURS, THEIRS, OTHERS), strict=True)
        for shift, cell, color in pairs:
            error = float(cell.split(" / ")[LEVELS])
            axes.barh(place + shift, error, 0.24, color=color)
            axes.text(error * 1.06, place + shift, f"{error:g}", va="center", color=INK, fontsize=8)
    axes.set_yticks(range(len(rows)), [_plain(row[0]) for row in reversed(rows)], fontsize=8.5)
    axes.set_xscale("log")
    axes.set_xlim(0.3, 400)
    axes.set_xlabel(
        "ranks off, of 1,000; five levels:\n"
        "ours (blue), as published (yellow), diffprivlib (violet)"
    )
    _save(figure, path)


def draw(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    times, ranks = (path.read_text("utf-8") for path in TABLES)
    speed(times, folder / "speed.svg")
    errors(ranks, folder / "errors.svg")


def front(path: Path) -> None:
    """Private deciles of the demo's payroll, with intervals, beside the true ones."""
    import dpq_fast as dpq
    from dpq_fast.cli import generated_payroll

    pay = generated_payroll()[:2_000] / 1_000
    levels = np.arange(1, 10) / 10
    settings = dict(epsilon=1.0, bounds=(0, 1_000), resolution=0.1, confidence=0.95, rng=1)
    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(levels, np.quantile(pay, levels), "_", ms=15, color="black", label="true")
    dpq.plots.quantiles(levels, dpq.quantile(pay, levels, **settings), axes, label="private")
    axes.set(xticks=levels, ylabel="salary, thousands\n(95% intervals)")
    axes.set_title("Deciles of 2,000 salaries: epsilon = 1 for all nine and their intervals")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    front(Path(sys.argv[1]))
