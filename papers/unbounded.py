"""[Dur23]: quantiles without an upper bound (UQE) and with one (EMQ).

`sum_table` is Table 1, `uqe_vs_emq` Figure 3 and `pdf_bounds` Figure 1. `tail` is of no paper: it
chose the default share of epsilon that the threshold gets, and the ratio of candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench.columns import REAL, gaussian
from bench.errors import N, real_sample
from dpq_fast.laws.unbounded import BETA
from dpq_fast.mechanisms.clipping import BETA as CLIP_BETA
from dpq_fast.noise.threshold import Exponential
from dpq_fast.privacy import aggregates
from papers.pictures import picture
from papers.quantiles import SHAPES
from papers.report import Report, digits

SPLIT = Exponential.fraction  # the default
# [Dur23] §6.2: what all its experiments set, and the noise that parts ties.
PAPER = {"beta": 1.001, "split": 0.5}
PERTURBATION = {"average_rating": 0.001, "num_pages": 0.1, "age": 0.1, "hours_per_week": 0.1}
LEVEL = 0.99  # of a clip
EPSILONS = (1.0, 0.5, 0.1)
HEIGHT, BRANCHING = SHAPES[0]

sampler = cache(real_sample)  # reads its file once


class Draw(NamedTuple):
    """Records as they are, and with the paper's perturbation."""

    name: str
    records: NDArray
    perturbed: NDArray[np.float64]

    @classmethod
    def of(cls, name: str, seed: int) -> Draw:
        """1,000 records of a real column."""
        rng = np.random.default_rng([seed, 0])
        records = sampler(name)(rng)
        return cls(name, records, records + rng.normal(0.0, PERTURBATION[name], records.size))

    def outputs(self, law: Any, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Draws of a law, rounded for integer records, as in the paper."""
        drawn = law.sample(rng, size=size)
        return np.rint(drawn) if self.records.dtype.kind == "i" else drawn


def sum_error(x: NDArray, clips: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Mean absolute error of the sum of clipped records with Laplace noise clip / epsilon.

    The mean over the noise is exact: E|b + Lap(s)| = |b| + s exp(-|b| / s).
    """
    ordered = np.sort(x)
    from_there = np.append(np.cumsum(ordered[::-1])[::-1], 0)
    above = np.searchsorted(ordered, clips)
    lost = from_there[above] - (x.size - above) * clips
    with np.errstate(over="ignore"):
        scale = np.maximum(clips / epsilon, np.finfo(float).tiny)
    return lost + scale * np.exp(-lost / scale)


# Table 1

SUM_RANGE = (0.0, 10_000.0)
SUM_COLUMNS = ("average_rating", "num_pages", "age", "hours_per_week")
ITERATIONS = 100
EMQ_LEVELS = (0.95, 0.96, 0.97, 0.98, 0.99)
# Mean absolute error and its standard deviation over 100 iterations, in the order of SUM_COLUMNS.
TABLE_1 = {
    ("UQE", 1.0): ((4.78, 0.21), (4385.23, 2077.16), (103.05, 16.04), (180.48, 44.92)),
    ("UQE", 0.5): ((9.22, 0.31), (7102.34, 3093.13), (180.61, 27.03), (277.89, 77.60)),
    ("UQE", 0.1): ((44.59, 1.79), (21916.37, 6423.75), (821.77, 157.68), (981.10, 219.66)),
    ("EMQ", 1.0): ((5.73, 0.54), (4324.38, 2343.25), (187.06, 33.55), (339.06, 75.82)),
    ("EMQ", 0.5): ((6906.13, 7123.36), (7601.47, 3963.52), (678.22, 1931.11), (2131.80, 4669.11)),
    ("EMQ", 0.1): (
        (45861.79, 28366.46),
        (46552.09, 27944.18),
        (50558.32, 28843.72),
        (47185.58, 29437.22),
    ),
}


TABLE_1 |= {  # the aggregated tree
    ("AT", 1.0): ((8.75, 0.31), (4377.45, 2340.93), (293.11, 117.32), (471.98, 174.07)),
    ("AT", 0.5): ((29.01, 115.04), (7491.97, 4367.31), (473.19, 238.19), (582.58, 369.29)),
    ("AT", 0.1): (
        (11351.77, 21423.40),
        (30830.49, 20422.05),
        (14490.06, 25268.71),
        (9928.18, 20159.17),
    ),
}


class Side(NamedTuple):
    """A way to choose the clip: the paper's column it stands beside, levels, and its law.

    `share` is the clip's part of the whole budget.
    """

    paper: str
    levels: tuple[float, ...]
    law: Callable[[Draw, float, float, np.random.Generator], Any]
    share: float = 0.5


def uqe(draw: Draw, q: float, epsilon: float, rng: np.random.Generator, **options: Any) -> Any:
    return dpq.unbounded_quantile_law(draw.perturbed, q, epsilon=epsilon, **options)


def clip_of_sum(draw: Draw, q: float, epsilon: float, rng: np.random.Generator) -> Any:
    """The clip of `dpq.sum`."""
    level, offset = aggregates.aim_of("auto" if q == 1.0 else q, "unbounded")
    options = dict(beta=CLIP_BETA, split=aggregates.FRACTION, offset=offset)
    return dpq.unbounded_quantile_law(draw.perturbed, level, epsilon=epsilon, **options)


def emq(draw: Draw, q: float, epsilon: float, rng: np.random.Generator) -> Any:
    return dpq.ind_exp_law(draw.perturbed, q, epsilon=epsilon, bounds=SUM_RANGE, resolution=0)


def on_lattice(draw: Draw, q: float, epsilon: float, rng: np.random.Generator) -> Any:
    resolution = REAL[draw.name].resolution
    return dpq.ind_exp_law(
        draw.records, q, epsilon=epsilon, bounds=SUM_RANGE, resolution=resolution
    )


class Tree(NamedTuple):
    """Releases of one level of a tree, where other sides have a law; `read` reads it off."""

    counts: dpq.PartialTree
    q: float
    epsilon: float
    read: Callable[[dpq.AggTree, float], float]

    def sample(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        trees = (self.counts.release(epsilon=self.epsilon, rng=rng) for _ in range(size))
        return np.array([self.read(tree, self.q) for tree in trees])


def tree_of(
    draw: Draw,
    q: float,
    epsilon: float,
    rng: np.random.Generator,
    read: Callable[[dpq.AggTree, float], float] = dpq.AggTree.first_passage,
    **shape: int,
) -> Tree:
    # n is public, as for the other sides
    counts = dpq.PartialTree.of(draw.perturbed, bounds=SUM_RANGE, nan_policy="raise", **shape)
    return Tree(counts, q, epsilon, read)


SIDES = {
    "UQE, paper": Side("UQE", (LEVEL,), partial(uqe, **PAPER)),
    "UQE, β 1.01": Side("UQE", (LEVEL,), partial(uqe, beta=BETA, split=0.5)),
    "UQE, default": Side("UQE", (LEVEL,), uqe),
    "sum, level": Side("UQE", (LEVEL,), clip_of_sum, aggregates.SHARE),
    "sum, default": Side("UQE", (1.0,), clip_of_sum, aggregates.SHARE),
    "EMQ": Side("EMQ", EMQ_LEVELS, emq),
    "by depth": Side("EMQ", EMQ_LEVELS, on_lattice),
    "agg_tree": Side("AT", EMQ_LEVELS, partial(tree_of, read=dpq.AggTree.quantile)),
    "agg_tree, first passage": Side("AT", EMQ_LEVELS, tree_of),
    "the same, [KSS22]'s shape": Side(
        "AT", EMQ_LEVELS, partial(tree_of, height=HEIGHT, branching=BRANCHING)
    ),
}


def sum_table(report: Report, out: Path) -> None:
    """Table 1: the error of a sum whose records are clipped at a private quantile."""
    samples, draws = (40, 25) if report.quick else (400, 25)
    for epsilon in EPSILONS:
        table = report.table(
            f"[Dur23] Table 1: error of a clipped sum, {N:,} records, ε = {epsilon:g} twice",
            "side",
            "column",
            "mean of 100",
            "95% of such means",
            "std",
            "median",
            "paper",
            "std",
            "z",
            "",
            caption=f"{samples} samples, {draws} clips each; the mean over the sum's noise is "
            f"exact. UQE, paper: β {PAPER['beta']}, even split; β {BETA}: even split; default: "
            f"β {BETA}, split {SPLIT:.2f}. sum: β {CLIP_BETA}, split {aggregates.FRACTION:.2f}, "
            f"{aggregates.SHARE} of both ε for the clip. "
            "EMQ: the best of five levels in each 100 iterations; "
            "by depth: ind_exp on the lattice, agg_tree: on the range of EMQ, likewise, by its "
            "quantile or its first passage. [KSS22]'s shape for one level: height "
            f"{HEIGHT}, branching {BRANCHING}. z: "
            "difference in standard errors, std / 10 of both sides and 1% for the noise that the "
            "paper drew; * beyond 2.",
        )
        for label, side in SIDES.items():
            figures = TABLE_1[side.paper, epsilon]
            for name, (paper, paper_std) in zip(SUM_COLUMNS, figures, strict=True):
                errors = _sum_errors(side, name, epsilon, samples, draws)
                mean, std, low, high = _of_iterations(errors)
                # the paper drew the noise, 100 times in each iteration: about 1% of the mean
                variance = (std**2 + paper_std**2) / ITERATIONS + (paper / ITERATIONS) ** 2
                z = (mean - paper) / np.sqrt(variance)
                table.add_row(
                    label,
                    name,
                    digits(mean),
                    f"{digits(low)} to {digits(high)}",
                    digits(std),
                    digits(np.median(errors, axis=1).min()),
                    digits(paper),
                    digits(paper_std),
                    f"{z:+.1f}",
                    "*" if abs(z) > 2.0 else "",
                )
            table.add_section()
        report.print(table)


def _sum_errors(
    side: Side, name: str, epsilon: float, samples: int, draws: int
) -> NDArray[np.float64]:
    """Errors, shape (levels, samples * draws)."""
    errors = np.empty((len(side.levels), samples, draws))
    for seed in range(samples):
        draw = Draw.of(name, seed)
        rng = np.random.default_rng([seed, 1])
        for k, q in enumerate(side.levels):
            law = side.law(draw, q, 2.0 * side.share * epsilon, rng)
            clips = draw.outputs(law, rng, draws)
            errors[k, seed] = sum_error(draw.records, clips, 2.0 * (1.0 - side.share) * epsilon)
    return errors.reshape(len(side.levels), -1)


def _of_iterations(errors: NDArray[np.float64]) -> tuple[float, float, float, float]:
    """What 100 iterations of the best level have: typical mean and std, and 95% of the means.

    The medians over many such experiments: a mean of all errors would be ruined by a few clips.
    """
    chosen = np.random.default_rng(0).integers(0, errors.shape[1], (1_000, ITERATIONS))
    experiments = errors[:, chosen]
    means = experiments.mean(axis=2)
    best = means.argmin(axis=0)
    every = np.arange(best.size)
    stds = experiments[best, every].std(axis=1, ddof=1)
    low, mean, high = np.quantile(means[best, every], [0.025, 0.5, 0.975])
    return float(mean), float(np.median(stds)), float(low), float(high)


# Figure 3


class Population(NamedTuple):
    """A data set of [Dur23] §6.1, its tight range, and how the paper parts its ties."""

    title: str
    range: tuple[float, float]
    column: NDArray
    resolution: float | None
    perturbation: float

    @classmethod
    def real(cls, title: str, name: str) -> Population:
        column = REAL[name]
        return cls(title, column.bounds, column.load(), column.resolution, PERTURBATION[name])


def populations() -> list[Population]:
    uniform = np.random.default_rng(0).uniform(-5.0, 5.0, 10_000)
    return [
        Population("uniform on ±5", (-5.0, 5.0), uniform, None, 0.0),
        Population("normal, sd 5", (-25.0, 25.0), gaussian(10_000), None, 0.0),
        Population.real("ratings", "average_rating"),
        Population.real("pages", "num_pages"),
        Population.real("hours", "hours_per_week"),
        Population.real("ages", "age"),
    ]


def uqe_vs_emq(report: Report, out: Path) -> None:
    """Figure 3: errors of single quantiles, over that of UQE."""
    levels = np.arange(5, 96, 10 if report.quick else 1) / 100.0
    samples, draws = (20, 5) if report.quick else (100, 5)
    table = report.table(
        f"[Dur23] Figure 3: mean absolute error over that of UQE, {N:,} records, ε = 1, "
        f"{levels.size} levels from 5% to 95%",
        "data",
        "UQE itself",
        "EMQ, mean",
        "EMQ lower at",
        "by depth, mean",
        "by depth lower at",
        caption=f"{samples} samples, {draws} draws each. Means are geometric, over the levels.",
    )
    with picture(
        out / "uqe_vs_emq.png",
        f"Error over that of UQE: {N:,} records, ε = 1, {samples} samples",
        2,
        3,
        (13.0, 7.5),
    ) as axes:
        for each, population in zip(axes.flat, populations(), strict=True):
            errors = _quantile_errors(population, levels, samples, draws)
            base = errors.pop("UQE, paper")
            each.plot(levels, np.ones(levels.size), label=f"UQE, β {PAPER['beta']}, even split")
            cells = []
            for label, error in errors.items():
                # nothing of either is missed where most records are tied
                ratio = np.divide(error, base, out=np.full(base.size, np.nan), where=base > 0.0)
                each.plot(levels, ratio, label=label)
                # errors of 0 have no logarithm
                positive = ratio[ratio > 0.0]
                cells += [
                    f"{np.exp(np.log(positive).mean()):.2f}",
                    f"{np.count_nonzero(error < base)} levels",
                ]
            table.add_row(population.title, digits(base.mean()), *cells)
            each.set(title=population.title, xlabel="level", ylabel="error / error of UQE")
            each.set_yscale("log", base=2)
            each.yaxis.set_major_formatter("{x:g}")
        axes.flat[0].legend()
    report.print(table)


def _quantile_errors(
    population: Population, levels: NDArray[np.float64], samples: int, draws: int
) -> dict[str, NDArray[np.float64]]:
    """Mean absolute error of each side at each level."""
    whole = population.column.dtype.kind == "i"
    bounds = population.range
    sums: dict[str, NDArray[np.float64]] = {}
    for seed in range(samples):
        rng = np.random.default_rng([seed, 2])
        x = rng.choice(population.column, N, replace=False)
        perturbed = x + rng.normal(0.0, population.perturbation, N)
        truth = np.quantile(x, levels)
        laws = {
            "UQE, paper": partial(dpq.unbounded_quantile_law, perturbed, lower=bounds[0], **PAPER),
            "EMQ": partial(dpq.ind_exp_law, dpq.Sample.of(perturbed, bounds, resolution=0)),
            "ind_exp, by depth": partial(
                dpq.ind_exp_law, dpq.Sample.of(x, bounds, resolution=population.resolution)
            ),
        }
        for label, law in laws.items():
            drawn = np.stack([law(q, epsilon=1.0).sample(rng, size=draws) for q in levels])
            if whole:
                drawn = np.rint(drawn)
            error = np.abs(drawn - truth[:, None]).mean(axis=1)
            sums[label] = sums.get(label, 0.0) + error / samples
    return sums


# Figure 1


def pdf_bounds(report: Report, out: Path) -> None:
    """Figure 1: what a loose upper bound does to the density of a high quantile."""
    n, level, epsilon = 50, 0.9, 1.0
    x = np.random.default_rng(0).uniform(0.0, 10.0, n)
    ends = (20.0, 10.0)
    edges = np.linspace(0.0, max(ends), 1_001 if report.quick else 10_001)
    grid = (edges[1:] + edges[:-1]) / 2.0
    table = report.table(
        f"[Dur23] Figure 1: level {level:g} of {n} records from [0, 10], ε = {epsilon:g}",
        "range",
        "side",
        "P(output > 10)",
        "mean |output - 9|",
        f"mass in [0, {max(ends):g}]",
    )
    with picture(
        out / "pdf_bounds.png",
        f"Density of the output: {n} uniform records, level {level:g}, ε = {epsilon:g}",
        1,
        2,
        (12.0, 4.5),
    ) as axes:
        for each, end in zip(axes.flat, ends, strict=True):
            laws = {
                f"EMQ, range [0, {end:g}]": dpq.ind_exp_law(
                    x, level, epsilon=epsilon, bounds=(0.0, end), resolution=0
                ),
                f"UQE, β {BETA}, Gumbel noise": dpq.unbounded_quantile_law(
                    x, level, epsilon=epsilon, noise="gumbel", uniform=True
                ),
            }
            for label, law in laws.items():
                density = np.exp([law.log_prob(o) for o in grid])
                each.plot(grid, density, label=label)
                mass = density * np.diff(edges)
                table.add_row(
                    f"[0, {end:g}]",
                    label,
                    f"{mass[grid > 10.0].sum():.3f}",
                    f"{(mass * np.abs(grid - 9.0)).sum():.2f}",
                    f"{mass.sum():.3f}",
                )
            each.plot(x, np.zeros(n), "|", color="black", label="records")
            each.set(xlabel="output", ylabel="density", xlim=(0.0, max(ends)), ylim=(0.0, None))
            each.legend(loc="upper right")
    report.print(table)


# The waiting time

SPLITS = (0.3, 0.4, 0.5, 0.6, SPLIT, 0.7, 0.8, 0.9)
CAP = 1e6
UNIT = 100.0  # of the squares
# What the picture shows.
SHOWN = (0.5, SPLIT, 0.8)
STYLES = {f"β {BETA}": "-", f"β {PAPER['beta']}": "--", "squares": ":"}
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
    all_counted = {f"β {beta}": partial(geometric, beta=beta) for beta in (BETA, PAPER["beta"])}
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
