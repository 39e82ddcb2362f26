"""Print the benchmark tables: ``python bench/run.py [--quick] [--full] [--only NAME] ...``.

What is compared is timed alternately in one run (A B A B ...): times are medians over the rounds,
ratios medians over the rounds' ratios. Real releases are timed: sample, law, draw, and the default
cryptographic generator. Peak memory is what tracemalloc sees (`measure.peak_memory`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_accuracy as accuracy
import bench_agg_tree as trees
import bench_approx_quantiles as aq
import bench_cdf
import bench_csmooth as smooth
import bench_histogram as histogram
import bench_selection as select
import bench_sums
import bench_unbounded as unbound
import matplotlib
import numpy as np
import peers
import published
from bench_dataset import streamed
from bench_groups import PART, SIZE
from bench_groups import rows as group_rows
from bench_ind_exp import DELTA
from bench_joint_exp import EPSILON
from bench_selection import release
from columns import BOUNDS, REAL, gaussian, levels
from measure import Timing, alternately, machine, peak_memory
from rich.console import Console
from rich.table import Table

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast._kernels.scan import Scan
from dpq_fast.laws.fft import FftForward
from dpq_fast.laws.path import PathLaw

MEGA = 1_000_000
# What the authors' code took on a machine like ours, by (n, m): seconds.
AUTHORS = {(MEGA, 30): 51.0, (1_000, 9): 4.7e-3}
# Rank errors of the authors' JointExp, and our bars, by column, for m = 1, 5, 9.
COLUMN_FIGURES = {
    "hours_per_week": ((204, 133, 128), (0.2, 1.3, 2.7)),
    "age": ((5.3, 7.8, 8.8), (0.3, 1.2, 1.6)),
    "average_rating": ((3.8, 5.4, 7.1), (0.5, 2.0, 3.0)),
    "num_pages": ((4.6, 6.1, 7.1), (2.2, 5.2, 6.5)),
}
# Missed points on N(0, 5) of the authors' JointExp and AppIndExp, by m.
GAUSSIAN_FIGURES = {1: (2.0, 2.0), 5: (3.9, 8.0), 9: (6.1, 13.8), 29: (10.4, 26.9)}
# The same of the authors' recursive quantiles.
RECURSIVE_FIGURES = {1: 2.2, 5: 10.7, 9: 11.9, 29: 20.4}
# The same of their CSmooth, and its time for one level at n = 10^6.
CSMOOTH_FIGURES = {1: 7.7, 5: 35.0, 9: 48.0, 29: 61.0}
CSMOOTH_AUTHORS = 4.9


class Report:
    """Where tables are printed and raw numbers kept, and how long to take."""

    def __init__(self, quick: bool, full: bool) -> None:
        self.quick = quick
        self.full = full
        self.raw: dict[str, Any] = {"machine": machine()}
        self.console = Console(width=None if Console().is_terminal else 118)

    @property
    def seconds(self) -> float:
        """For one comparison."""
        return 0.5 if self.quick else 4.0

    @property
    def draws(self) -> int:
        return 200 if self.quick else accuracy.DRAWS

    def table(self, title: str, *columns: str, caption: str | None = None) -> Table:
        table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
        for i, column in enumerate(columns):
            table.add_column(column, justify="right" if i else "left")
        return table

    def print(self, table: Table) -> None:
        self.console.print(table)
        self.console.print()

    def times(
        self,
        name: str,
        title: str,
        n: int,
        sides: dict[str, Callable[[], Any]],
        bars: dict[str, str] | None = None,
        caption: str | None = None,
    ) -> dict[str, Timing]:
        """Time all sides, and print how much longer than the first one each takes."""
        timings = alternately(sides, self.seconds)
        base = next(iter(timings.values()))
        table = self.table(
            title, "", "median", "best", "ns/value", "× the first", "bar", caption=caption
        )
        for side, timing in timings.items():
            table.add_row(
                side,
                duration(timing.median),
                duration(timing.best),
                digits(timing.median / n * 1e9),
                digits(timing.over(base)),
                (bars or {}).get(side, ""),
            )
        self.print(table)
        self.raw.setdefault(name, {})[title] = {side: t.rounds for side, t in timings.items()}
        return timings


def duration(seconds: float) -> str:
    if seconds >= 1.0:
        return f"{digits(seconds)} s"
    return f"{digits(seconds * 1e3)} ms" if seconds >= 1e-3 else f"{digits(seconds * 1e6)} µs"


def digits(number: float) -> str:
    """Three digits, or all those before the point."""
    return f"{number:,.0f}" if number >= 99.5 else f"{number:.3g}"


def megabytes(size: float) -> str:
    return f"{digits(size / 1e6)} MB"


def published_release(x: np.ndarray, m: int) -> Callable[[], Any]:
    q, rng = levels(m), np.random.default_rng(0)
    return lambda: published.joint_exp(x, q, EPSILON, BOUNDS, rng)


# The tables


def large(report: Report) -> None:
    """Bars at n = 10^6, m = 30, and memory."""
    n, m = MEGA, 30
    x, q = gaussian(n), levels(m)
    x_sorted = np.sort(x)
    ours = release(x_sorted, m, assume_sorted=True)
    timings = report.times(
        "large",
        f"n = {n:,}, m = {m}: N(0, 5) in ±100, ε = 1",
        n,
        {
            "joint_exp, sorted": ours,
            "np.quantile, sorted": lambda: np.quantile(x_sorted, q),
            "joint_exp, unsorted": release(x, m),
            "np.quantile, unsorted": lambda: np.quantile(x, q),
            "np.sort, unsorted": lambda: np.sort(x),
        },
        {
            "joint_exp, sorted": "5 ms (stretch 1)",
            "joint_exp, unsorted": "0.5 × np.quantile",
        },
    )
    ratio = {
        order: timings[f"joint_exp, {order}"].over(timings[f"np.quantile, {order}"])
        for order in ("sorted", "unsorted")
    }
    report.console.print(
        f"joint_exp / np.quantile: {ratio['sorted']:.2f} both sorted, "
        f"{ratio['unsorted']:.2f} both unsorted\n"
    )
    ours_now = timings["joint_exp, sorted"].median

    sizes = [1_000, 10_000] if report.quick else [1_000, 10_000, 100_000]
    sizes += [MEGA] if report.full else []
    table = report.table(
        f"Against the published algorithm (re-stated in NumPy), sorted, m = {m}",
        "n",
        "joint_exp",
        "published",
        "ratio",
        "joint_exp peak",
        "published peak",
        caption="The re-statement is faster than the authors' code: see `published`.",
    )
    rows = []
    for size in sizes:
        part = np.sort(gaussian(size))
        sides = {
            "ours": release(part, m, assume_sorted=True),
            "published": published_release(part, m),
        }
        timing = alternately(sides, report.seconds)
        memory = {side: peak_memory(call) for side, call in sides.items()}
        rows.append((size, timing["ours"].median, timing["published"].median, memory))
        table.add_row(
            f"{size:,}",
            duration(timing["ours"].median),
            duration(timing["published"].median),
            f"{timing['published'].over(timing['ours']):,.0f}",
            megabytes(memory["ours"]),
            megabytes(memory["published"]),
        )
    if not report.full:
        power = np.log(rows[-1][2] / rows[-2][2]) / np.log(rows[-1][0] / rows[-2][0])
        guess = rows[-1][2] * (MEGA / rows[-1][0]) ** power
        space = rows[-1][3]["published"] * MEGA / rows[-1][0]
        table.add_row(
            f"{MEGA:,} *",
            duration(ours_now),
            f"≈ {duration(guess)}",
            f"≈ {guess / ours_now:,.0f}",
            megabytes(peak_memory(ours)),
            f"≈ {megabytes(space)}",
        )
        table.caption += (
            f" * Published side extrapolated: time as n^{power:.2f} (the last two sizes), memory "
            "as n; ours measured (--full measures both)."
        )
        report.raw["published_extrapolated"] = {"power": power, "seconds": guess, "bytes": space}
    table.caption += (
        f" Authors' own code, measured earlier on a machine like it: "
        f"{AUTHORS[n, m]:.0f} s at n = 10^6, which is {AUTHORS[n, m] / ours_now:,.0f} × ours now "
        "(bar 10,000 ×, stretch 50,000 ×; memory bar 20 MB)."
    )
    report.print(table)
    report.raw["published"] = rows


def full_scan(report: Report) -> None:
    """The scan without windows: every interval at every level."""
    n, m = MEGA, 30
    order = dpq.Sample.of(np.sort(gaussian(n)), BOUNDS, assume_sorted=True).order()
    q = levels(m)
    rate = privacy.joint_exp_rate(q, EPSILON, "swap")
    name = "forward pass over all intervals"
    timings = report.times(
        "full_scan",
        f"Scan without windows (forced): n = {n:,}, m = {m}",
        n,
        {name: lambda: PathLaw(order, q, rate, window=n)},
        {name: "1.5 s"},
    )
    size = peak_memory(lambda: PathLaw(order, q, rate, window=n))
    report.console.print(
        f"{digits(timings[name].median / n / m * 1e9)} ns per value and level, "
        f"peak {megabytes(size)}\n"
    )


def small(report: Report) -> None:
    """Bars on small samples, where the call itself counts."""
    for n, m, bar in ((1_000, 9, "100 µs (stretch 40)"), (10, 1, "30 µs (stretch 15)")):
        x, q = np.sort(gaussian(n)), levels(m)
        sides = {
            "joint_exp": release(x, m, assume_sorted=True),
            "joint_exp, continuous": release(x, m, assume_sorted=True, resolution=0),
            "joint_exp, unsorted": release(x, m),
            "joint_exp, integers": release(
                np.rint(x).astype(np.int64), m, assume_sorted=True, resolution=1
            ),
            "ind_exp": lambda x=x, q=q: dpq.ind_exp(
                x, q, epsilon=EPSILON, bounds=BOUNDS, assume_sorted=True
            ),
            "np.quantile": lambda x=x, q=q: np.quantile(x, q),
            "published, re-stated": published_release(x, m),
        }
        if n <= 10:
            sides["reference"] = lambda x=x, q=q: dpq.reference.joint_exp(
                x, q, epsilon=EPSILON, bounds=BOUNDS, rng=0
            )
        caption = None
        if (n, m) in AUTHORS:
            caption = f"Authors' own code, measured earlier: {duration(AUTHORS[n, m])}."
        report.times("small", f"n = {n:,}, m = {m}, sorted", n, sides, {"joint_exp": bar}, caption)


def fft(report: Report) -> None:
    """The FFT kernel: time over the scan's, and what it had to recompute."""
    table = report.table(
        "kernel='fft' against the scan, sorted, ε = 1",
        "n",
        "m",
        "rows",
        "scan",
        "fft",
        "fft/scan",
        "recomputed",
        caption="Recomputed: sums that the FFT's error bound did not certify, left to the scan.",
    )
    cases = [(1_000, 9, None), (3_000, 5, None), (3_000, 5, 3_000), (30_000, 9, 30_000)]
    cases += [(MEGA, 9, None), (MEGA, 30, None)]
    for n, m, window in cases:
        order = dpq.Sample.of(np.sort(gaussian(n)), BOUNDS, assume_sorted=True).order()
        q = levels(m)
        rate = privacy.joint_exp_rate(q, EPSILON, "swap")

        def law(kernel: Any, order=order, q=q, rate=rate, window=window) -> PathLaw:
            return PathLaw(order, q, rate, kernel, window)

        timing = alternately(
            {"scan": lambda law=law: law(Scan.forward), "fft": lambda law=law: law(FftForward())},
            report.seconds,
        )
        forward = FftForward()
        law(forward)
        table.add_row(
            f"{n:,}",
            f"{m}",
            "windows" if window is None else "all",
            duration(timing["scan"].median),
            duration(timing["fft"].median),
            digits(timing["fft"].over(timing["scan"])),
            f"{forward.recomputed:,} of {forward.entries:,}",
        )
        report.raw.setdefault("fft", []).append(
            {
                "n": n,
                "m": m,
                "window": window,
                "scan": timing["scan"].rounds,
                "fft": timing["fft"].rounds,
                "recomputed": forward.recomputed,
                "entries": forward.entries,
            }
        )
    report.print(table)


def peer_libraries(report: Report) -> None:
    """diffprivlib and opendp at n = 10^6."""
    n = 100_000 if report.quick else MEGA
    x = gaussian(n)
    table = report.table(
        f"Other libraries, unsorted, n = {n:,}, ε = 1 in total",
        "",
        "m = 1",
        "× joint_exp",
        "m = 30",
        "× joint_exp",
    )
    notes = [f"opendp picks among {peers.CANDIDATES:,} candidates, composed into one call."]
    columns: dict[str, list[Timing]] = {}
    for m in (1, 30):
        q = levels(m)
        sides = {
            "joint_exp": release(x, m),
            "ind_exp": lambda q=q: dpq.ind_exp(x, q, epsilon=EPSILON, bounds=BOUNDS),
        }
        if peers.diffprivlib is not None and m == 1:
            sides["diffprivlib"] = peers.diffprivlib_quantile(x, q, EPSILON, BOUNDS)
        if peers.opendp is not None:
            sides["opendp"] = peers.opendp_quantile(x, q, EPSILON, BOUNDS)
        timings = alternately(sides, report.seconds)
        if peers.diffprivlib is not None and m > 1:
            one = columns["diffprivlib"][0]
            timings["diffprivlib"] = Timing(
                m * one.median, m * one.best, [m * seconds for seconds in one.rounds]
            )
            notes.append(f"diffprivlib at m = {m}: {m} × its m = 1, since it repeats that m times.")
        for side, timing in timings.items():
            columns.setdefault(side, []).append(timing)
    for side, row in columns.items():
        cells = []
        for timing, base in zip(row, columns["joint_exp"], strict=True):
            cells += [duration(timing.median), digits(timing.median / base.median)]
        table.add_row(side, *cells)
    for name in ("diffprivlib", "opendp"):
        if name not in columns:
            notes.append(f"{name} is not installed.")
    table.caption = " ".join(notes)
    report.print(table)
    report.raw["peers"] = {side: [t.rounds for t in row] for side, row in columns.items()}


def real_columns(report: Report) -> None:
    """Rank errors on the real columns."""
    table = report.table(
        f"Mean rank error, {accuracy.N:,} records drawn without replacement, swap, ε = 1, "
        f"{report.draws} draws",
        "column",
        "m",
        "joint_exp",
        "bar",
        "published, re-stated",
        "authors' code",
        caption="± standard error. Public API, default dither; whole numbers on a lattice of 1.",
    )
    for name, column in REAL.items():
        if not column.path.exists():
            report.console.print(f"skipped {name}: its file is not beside the repository")
            continue
        draw = accuracy.real_sample(name)
        figures, bars = COLUMN_FIGURES[name]
        for m, figure, bar in zip((1, 5, 9), figures, bars, strict=True):
            sides = (
                accuracy.joint_exp(column.bounds, column.resolution),
                accuracy.published_joint_exp(column.bounds),
            )
            ours, theirs = (accuracy.mean_error(draw, s, m, report.draws) for s in sides)
            verdict = ""
            if ours[0] > bar:
                verdict = " missed" if ours[0] - 2.0 * ours[1] > bar else " missed, by < 2 s.e."
            table.add_row(name, f"{m}", error(ours), f"{bar}{verdict}", error(theirs), f"{figure}")
            report.raw.setdefault("real_columns", []).append([name, m, *ours, *theirs])
    if table.row_count:
        report.print(table)


def gaussian_errors(report: Report) -> None:
    """Rank errors on the paper's synthetic column."""
    table = report.table(
        f"Mean rank error, N(0, 5) in ±100, n = {accuracy.N:,}, ε = 1, {report.draws} draws",
        "m",
        "joint_exp",
        "authors' code",
        "published, re-stated",
        "ind_exp, δ = 1e-6",
        "authors' code",
        caption="± standard error; the authors count missed points, the same up to one half.",
    )
    for m, (joint, app_ind) in GAUSSIAN_FIGURES.items():
        rows = [
            accuracy.mean_error(accuracy.gaussian_sample, side, m, report.draws)
            for side in (
                accuracy.joint_exp(BOUNDS),
                accuracy.published_joint_exp(BOUNDS),
                accuracy.ind_exp(BOUNDS),
            )
        ]
        table.add_row(
            f"{m}", error(rows[0]), f"{joint}", error(rows[1]), error(rows[2]), f"{app_ind}"
        )
        report.raw.setdefault("gaussian_errors", []).append([m, *rows])
    report.print(table)


def recursive(report: Report) -> None:
    """Recursive quantiles: the mechanism next to the selection alone, and what it misses."""
    n = MEGA
    x = gaussian(n)
    x_sorted = np.sort(x)
    for m in (30, 100):
        timings = report.times(
            "recursive",
            f"Recursive quantiles: n = {n:,}, m = {m}: N(0, 5) in ±100, ε = 1",
            n,
            {
                "windows collected": aq.selection(x, m),
                "approx_quantiles, unsorted": aq.release(x, m),
                "approx_quantiles, sorted": aq.release(x_sorted, m, assume_sorted=True),
                "joint_exp, unsorted": release(x, m),
                "np.quantile, unsorted": lambda m=m: np.quantile(x, levels(m)),
            },
            {"approx_quantiles, unsorted": "1.5 ×"},
        )
        ratio = timings["np.quantile, unsorted"].over(timings["approx_quantiles, unsorted"])
        report.console.print(f"np.quantile / approx_quantiles: {ratio:.2f}\n")
    table = report.table(
        f"Mean rank error, N(0, 5) in ±100, n = {accuracy.N:,}, ε = 1, {report.draws} draws",
        "m",
        "approx_quantiles",
        "add-remove",
        "published",
        "joint_exp",
        "ind_exp, δ = 1e-6",
        caption="± standard error; swap but for the second column. Published: missed points.",
    )
    for m, bar in RECURSIVE_FIGURES.items():
        rows = [
            accuracy.mean_error(accuracy.gaussian_sample, side, m, report.draws)
            for side in (
                accuracy.approx_quantiles(BOUNDS),
                accuracy.approx_quantiles(BOUNDS, neighbors="add-remove"),
                accuracy.joint_exp(BOUNDS),
                accuracy.ind_exp(BOUNDS),
            )
        ]
        table.add_row(f"{m}", *map(error, rows[:2]), f"{bar}", *map(error, rows[2:]))
        report.raw.setdefault("recursive_errors", []).append([m, *rows])
    report.print(table)


def csmooth(report: Report) -> None:
    """Smooth sensitivity: time at n = 10^6, and missed points."""
    n = 100_000 if report.quick else MEGA
    x = gaussian(n)
    x_sorted = np.sort(x)
    timings = report.times(
        "csmooth",
        f"csmooth, n = {n:,}, m = 1: N(0, 5) in ±100, ρ = 1/2",
        n,
        {
            "csmooth, sorted": smooth.release(x_sorted, 0.5, assume_sorted=True),
            "csmooth, sorted, m = 30": smooth.release(x_sorted, levels(30), assume_sorted=True),
            "csmooth, unsorted": smooth.release(x, 0.5),
            "published, re-stated, sorted": smooth.published_release(x_sorted, 0.5),
        },
        {"csmooth, sorted": "5 ms (stretch 1)"},
        caption=f"Authors' own code, measured earlier at n = 10^6: {CSMOOTH_AUTHORS} s.",
    )
    ratio = timings["published, re-stated, sorted"].over(timings["csmooth, sorted"])
    report.console.print(f"published / csmooth: {digits(ratio)} (bar 1,000, stretch 5,000)\n")

    table = report.table(
        f"Mean rank error of csmooth, N(0, 5) in ±100, n = {accuracy.N:,}, ρ = 1/2, "
        f"{report.draws} draws",
        "m",
        "default t",
        "t tuned on N(0, 1)",
        "authors' code",
        caption="± standard error; the noise has heavy tails, so a few draws decide it.",
    )
    for m, figure in CSMOOTH_FIGURES.items():
        rows = [
            accuracy.mean_error(accuracy.gaussian_sample, side, m, report.draws)
            for side in (smooth.default(), smooth.tuned(m, accuracy.N))
        ]
        table.add_row(f"{m}", *map(error, rows), f"{figure:g}")
        report.raw.setdefault("csmooth_errors", []).append([m, *rows])
    report.print(table)


def agg_tree(report: Report) -> None:
    """The pass of a tree, and its missed points."""
    sizes = (MEGA,) if report.quick else (10 * MEGA, 100 * MEGA) if report.full else (10 * MEGA,)
    for n in sizes:
        x = gaussian(n)
        leaves = trees.BRANCHING**trees.HEIGHT
        report.times(
            "agg_tree",
            f"Tree of {leaves:,} leaves: unsorted, n = {n:,}, N(0, 5) in ±100",
            n,
            {
                "np.histogram, same bins": trees.np_histogram(x),
                "tree's pass": trees.tree_pass(x),
                "tree's pass, workers=2": trees.tree_pass(x, workers=2),
                "agg_tree, m = 9": trees.tree_release(x, 9),
            },
            {"tree's pass": "0.3 ×"},
        )
    table = report.table(
        f"Missed points, N(0, 5) in ±100, n = {accuracy.N:,}, swap, ε = 1, {report.draws} draws",
        "",
        *(f"m = {m}" for m in trees.FIGURES),
        caption="± standard error.",
    )
    table.add_row("to match or beat", *(f"{figure}" for figure in trees.FIGURES.values()))
    for side in trees.SIDES:
        missed = [trees.missed_points(side, m, report.draws) for m in trees.FIGURES]
        table.add_row(side, *map(error, missed))
        report.raw.setdefault("missed_points", {})[side] = missed
    report.print(table)


def groups(report: Report) -> None:
    """Many small groups in one call."""
    count = 20_000 if report.quick else MEGA
    rows, timings = group_rows(count, report.seconds)
    table = report.table(
        f"{count:,} groups of {SIZE} float rows in no order, m = 3, ε = 1",
        "",
        "time",
        "ns/value",
        "× the first",
        "bar",
        caption=f"* Timed on {PART} groups that are put together already, and scaled.",
    )
    bars = {
        "quantile_by, 2 threads": "5 s for 10^6 groups on 2 cores",
        "loop over diffprivlib": "200 ×",
    }
    for row in rows:
        table.add_row(
            row.side + (" *" if row.scaled else ""),
            duration(row.seconds),
            digits(row.seconds / count / SIZE * 1e9),
            digits(row.over_first),
            bars.get(row.side, ""),
        )
    report.print(table)
    report.raw["groups"] = {side: timing.rounds for side, timing in timings.items()}


def error(mean_and_error: tuple[float, float]) -> str:
    return "{:.2f} ± {:.2f}".format(*mean_and_error)


def selection(report: Report) -> None:
    """Bars for unsorted columns."""
    for n in (MEGA,) if report.quick else (MEGA, 100 * MEGA):
        x, q = gaussian(n), levels(30)
        ours = release(x, 30)
        bar, single_bar = ("0.5 ×", "") if n == MEGA else ("0.12 ×", "0.25 × at m = 1")
        timings = report.times(
            "selection",
            f"Unsorted, n = {n:,}: N(0, 5) in ±100, ε = 1",
            n,
            {
                "np.quantile, m = 30": lambda x=x, q=q: np.quantile(x, q),
                "np.quantile, m = 1": lambda x=x: np.quantile(x, 0.5),
                "joint_exp, m = 30": ours,
                "joint_exp, m = 30, workers=2": release(x, 30, workers=2),
                "ind_exp, m = 1": select.single(x),
                "x.sum()": x.sum,
            },
            {"joint_exp, m = 30": bar, "ind_exp, m = 1": single_bar},
        )
        one = timings["ind_exp, m = 1"].over(timings["np.quantile, m = 1"])
        two = timings["joint_exp, m = 30"].over(timings["joint_exp, m = 30, workers=2"])
        share = peak_memory(ours) / x.nbytes
        report.console.print(
            f"ind_exp / np.quantile at m = 1: {digits(one)} (bar 0.25 at n = 10^8); two workers: "
            f"{digits(two)} × faster (bar 1.7 at n = 10^8); extra memory {share:.1%} of x "
            "(bar 5% at n = 10^8)\n"
        )
        del x, ours
    n = MEGA if report.quick else 10 * MEGA
    columns = {
        "normal": release(gaussian(n), 30),
        "lognormal, σ = 10": release(select.lognormal(n), 30, **select.LOGNORMAL),
        "Cauchy": release(select.cauchy(n), 30, **select.CAUCHY),
    }
    report.times(
        "shapes",
        f"Other columns, unsorted, n = {n:,}, m = 30",
        n,
        columns,
        {name: "2 ×" for name in list(columns)[1:]},
    )
    n = MEGA if report.quick else 100 * MEGA
    ages, q = select.ages(n), levels(9)
    report.times(
        "ages",
        f"Integer ages, unsorted, n = {n:,}, m = 9",
        n,
        {
            "np.quantile": lambda: np.quantile(ages, q),
            "joint_exp": release(ages, 9, bounds=(0, 120)),
        },
        {"joint_exp": "0.1 ×"},
    )


def dataset(report: Report) -> None:
    """A Parquet data set, in batches."""
    n = 1_000 * MEGA if report.full else 10 * MEGA
    raw = report.raw["dataset"] = streamed(n)
    report.console.print(
        f"Parquet data set, n = {n:,}, m = 30: joint_exp {duration(raw['release'])}, reading once "
        f"{duration(raw['read'])}; {megabytes(raw['resident'])} resident (bar 1 GB)\n"
    )


def counts(report: Report) -> None:
    """Bars for counting by bin."""
    sizes = [MEGA] if report.quick else [10 * MEGA, 100 * MEGA] if report.full else [10 * MEGA]
    for n in sizes:
        for name, column in histogram.COLUMNS.items():
            x = column(n)
            timings = report.times(
                "counts",
                f"Counts by bin, unsorted, n = {n:,}: {name}",
                n,
                {
                    "np.log": histogram.log(x),
                    "geometric, β = 1.01": histogram.geometric(x),
                    "geometric, β = 1.01, of -x": histogram.geometric(x, negate=True),
                    "1000 equal bins": histogram.uniform(x),
                    "np.histogram, 1000 bins": lambda x=x: np.histogram(x, histogram.BINS),
                    "x.sum()": x.sum,
                },
                {"geometric, β = 1.01": "0.75 ×"} if n == 100 * MEGA else {},
            )
            coarse = timings["geometric, β = 1.01"]
            equal = timings["1000 equal bins"].over(timings["np.histogram, 1000 bins"])
            report.console.print(
                f"β = 1.01 / x.sum(): {digits(coarse.over(timings['x.sum()']))}; equal bins / "
                f"np.histogram: {digits(equal)} (bar 0.3 at n = 10^8)\n"
            )


def sums(report: Report) -> None:
    """Sums, means and counts."""
    for n in (1_000, MEGA) if report.quick else (1_000, MEGA, 100 * MEGA):
        x = gaussian(n)
        sides = {
            "x.sum()": x.sum,
            "exact integer sum": bench_sums.exact_sum(x),
            "the same, workers=2": bench_sums.exact_sum(x, workers=2),
            "sum in ±100": bench_sums.bounded_sum(x),
            "sum, private clips": bench_sums.clipped_sum(x),
            "mean, private clips": lambda x=x: dpq.mean(x, epsilon=EPSILON, lower=None),
            "count": lambda x=x: dpq.count(x, epsilon=EPSILON),
        }
        if n <= MEGA:
            if peers.diffprivlib is not None:
                sides["diffprivlib, in ±100"] = peers.diffprivlib_sum(x, EPSILON, BOUNDS)
            if peers.opendp is not None:
                sides["opendp, in ±100"] = peers.opendp_sum(x, EPSILON, BOUNDS)
        bars = {"exact integer sum": "2 ×"} if n > 1_000 else {}
        report.times("sums", f"Sums: N(0, 5), n = {n:,}, ε = 1", n, sides, bars)
        del x, sides


def unbounded(report: Report) -> None:
    """Bars for releases without an upper bound, of coarse and of very fine candidates."""
    sizes = [MEGA] if report.quick else [10 * MEGA, 100 * MEGA] if report.full else [10 * MEGA]
    for n in sizes:
        x = histogram.half_normal(n)
        timings = report.times(
            "unbounded",
            f"unbounded_quantile, unsorted, n = {n:,}: |N(0, 5)|, ε = {unbound.EPSILON:g}",
            n,
            {
                "np.log": histogram.log(x),
                "x.sum()": x.sum,
                "median, β = 1.01": unbound.release(x),
                "median, β = 1.00001": unbound.release(x, unbound.FINE),
                "m = 9, β = 1.01": unbound.release(x, q=levels(9)),
                "m = 9, β = 1.00001": unbound.release(x, unbound.FINE, levels(9)),
            },
        )
        ratio = timings["median, β = 1.00001"].over(timings["median, β = 1.01"])
        size = peak_memory(unbound.release(x, unbound.FINE))
        report.console.print(
            f"β = 1.00001 / β = 1.01: {digits(ratio)} (bar 2 at n = 10^7); peak {megabytes(size)}\n"
        )
    x = histogram.half_normal(MEGA)
    timings = report.times(
        "unbounded",
        f"Against the paper's code (re-stated), n = {MEGA:,}: median, β = 1.01",
        MEGA,
        {"unbounded_quantile": unbound.release(x), "published": unbound.published_release(x)},
    )
    ratio = timings["published"].over(timings["unbounded_quantile"])
    report.console.print(f"published / unbounded_quantile: {digits(ratio)} (bar 100)\n")


def cdf(report: Report) -> None:
    """Distribution functions."""
    x = gaussian(MEGA)
    tree = f"binary_tree, {bench_cdf.LEAVES:,} leaves"
    sides = {tree: bench_cdf.large_tree(x), "np.sort": lambda: np.sort(x)}
    sides |= {name: bench_cdf.release(x, name) for name in bench_cdf.METHODS}
    title = f"Distribution functions: N(0, 5) in ±100, unsorted, n = {MEGA:,}, ε = 1"
    report.times("cdf", title, MEGA, sides, {tree: "1 s"})


def imports(report: Report) -> None:
    """What the library adds to the start of a program."""
    numpy, both = "import numpy", "import numpy, dpq_fast"
    sides = {
        code: lambda code=code: subprocess.run([sys.executable, "-c", code], check=True)
        for code in (numpy, both)
    }
    timings = report.times("imports", "Fresh interpreters", 1, sides)
    beyond = timings[both].median - timings[numpy].median
    report.console.print(f"dpq_fast beyond NumPy: {duration(beyond)} (bar 0.15 s)\n")


TABLES = {
    "large": large,
    "selection": selection,
    "dataset": dataset,
    "counts": counts,
    "unbounded": unbounded,
    "full_scan": full_scan,
    "small": small,
    "fft": fft,
    "peers": peer_libraries,
    "real_columns": real_columns,
    "gaussian_errors": gaussian_errors,
    "recursive": recursive,
    "csmooth": csmooth,
    "agg_tree": agg_tree,
    "groups": groups,
    "sums": sums,
    "cdf": cdf,
    "imports": imports,
}


# Pictures


def plot(report: Report, directory: Path) -> None:
    """Save time over n, time over m and rank error over m."""
    matplotlib.use("Agg")
    directory.mkdir(parents=True, exist_ok=True)
    seconds = report.seconds / 4

    def by_n(n: int) -> dict[str, Callable[[], Any]]:
        x, q = gaussian(n), levels(30)
        x_sorted = np.sort(x)
        sides = {
            "joint_exp, sorted": release(x_sorted, 30, assume_sorted=True),
            "joint_exp, unsorted": release(x, 30),
            "np.quantile, unsorted": lambda: np.quantile(x, q),
        }
        if n <= (1_000 if report.quick else 100_000):
            sides["published, re-stated, sorted"] = published_release(x_sorted, 30)
        return sides

    def by_m(m: int) -> dict[str, Callable[[], Any]]:
        n, q = 1_000, levels(m)
        x = np.sort(gaussian(n))
        return {
            "joint_exp": release(x, m, assume_sorted=True),
            "joint_exp, kernel='fft'": release(x, m, assume_sorted=True, kernel="fft"),
            "ind_exp": lambda: dpq.ind_exp(
                x, q, epsilon=EPSILON, bounds=BOUNDS, assume_sorted=True
            ),
            "np.quantile": lambda: np.quantile(x, q),
            "published, re-stated": published_release(x, m),
        }

    sizes = [10**k for k in range(2, 6 if report.quick else 8)]
    counts = [1, 2, 5, 9, 15, 30] if report.quick else [1, 2, 3, 5, 9, 15, 20, 30, 50]
    for file, xlabel, title, values, sides_of in (
        ("time_vs_n", "records n", "Time over n: N(0, 5), m = 30, ε = 1", sizes, by_n),
        ("time_vs_m", "levels m", "Time over m: N(0, 5), n = 1,000, sorted, ε = 1", counts, by_m),
    ):
        lines: dict[str, list[tuple[float, float]]] = {}
        for value in values:
            for side, timing in alternately(sides_of(value), seconds).items():
                lines.setdefault(side, []).append((value, timing.median))
        _save(directory / f"{file}.png", lines, xlabel, "time per release (s)", title)

    lines = {}
    for m in (1, 2, 5, 9, 15, 20, 29):
        for side, make in (
            ("joint_exp", accuracy.joint_exp),
            (f"ind_exp, δ = {DELTA:g}", accuracy.ind_exp),
            ("published, re-stated", accuracy.published_joint_exp),
        ):
            missed = accuracy.mean_error(accuracy.gaussian_sample, make(BOUNDS), m, report.draws)
            lines.setdefault(side, []).append((m, *missed))
    title = f"Missed points: N(0, 5) in ±100, n = {accuracy.N:,}, ε = 1"
    _save(
        directory / "missed_points_vs_m.png",
        lines,
        "levels m",
        "mean rank error per level ± s.e. (records)",
        title,
    )


def _save(path: Path, lines: dict[str, list[tuple]], xlabel: str, ylabel: str, title: str) -> None:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for label, points in lines.items():
        x, y, *spread = zip(*points, strict=True)
        style = "--" if label.startswith("published") else "-"
        axes.errorbar(x, y, *spread, label=label, fmt=f"o{style}", markersize=4, capsize=2)
    yscale = "linear" if spread else "log"  # errors are of one order, times are not
    axes.set(xscale="log", yscale=yscale, xlabel=xlabel, ylabel=ylabel, title=title)
    if max(x) < 1_000:
        axes.set_xticks(x, [f"{value}" for value in x])
        axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="Benchmarks of dpq_fast, as tables.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, draws and sizes")
    parser.add_argument(
        "--full",
        action="store_true",
        help="also the published way at n = 10^6, a tree of 10^8 and a data set of 10^9: minutes, "
        "8 GB",
    )
    parser.add_argument("--only", choices=TABLES, action="append", metavar="NAME", help="a table")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="save pictures there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the raw numbers")
    options = parser.parse_args()
    report = Report(options.quick, options.full)
    report.console.print(report.raw["machine"] + "\n")
    for name in options.only or TABLES:
        TABLES[name](report)
    if options.plot:
        plot(report, options.plot)
    if options.json:
        options.json.write_text(json.dumps(report.raw, indent=1))


if __name__ == "__main__":
    main()
