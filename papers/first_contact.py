"""How far off answers are for whoever knows neither the scale of records, nor ties, nor tails.

Of no paper: ours. The columns are a zoo: narrow and heavy-tailed ones, between good bounds and wide
ones, with ties and without. A third of them is left out of whatever is tuned: look at both parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench.columns import BOUNDS, REAL, levels
from papers.auto_rule import HALF_A_RECORD, RELATIONS, Cell, Data, some_of
from papers.pictures import picture
from papers.report import Report, digits

# Which columns are left out.
LEFT_OUT, SEED = 1.0 / 3.0, 59
DAY, YEAR = 86_400, 365
# Columns, levels, records, epsilons of the first table, and which of the levels is shown: the last.
TAILS = (
    ("latencies", (0.99,), 1_000, 1.0),
    ("latencies", (0.5, 0.95, 0.99), 1_000, 1.0),
    ("latencies", (0.99,), 10_000, 0.1),
    ("latencies", (0.5, 0.95, 0.99), 10_000, 0.1),
    ("latencies", (0.99,), 100_000, 0.01),
    ("latencies", (0.5, 0.95, 0.99), 100_000, 0.01),
    ("Pareto(1.5)", (0.99,), 2_000, 1.0),
)
# Of the map of regrets. A release for each level is not compared beyond `MANY_FOR_IND` levels, nor
# JointExp where it is slow: with more than `SLOW_FOR_JOINT` levels over epsilon, of most records.
SIZES, EPSILONS, COUNTS = (100, 1_000, 10_000, 100_000), (0.1, 1.0), (1, 3, 9, 29, 100)
MANY_FOR_IND, SLOW_FOR_JOINT = 9, 300.0
# Releases for each cell of the map; when it is to be quick, one cell of so many is measured: prime,
# so that every size, budget, ... is among them.
RELEASES, QUICK_STRIDE = 10, 211
MANY = 29


class Variant(NamedTuple):
    """How levels are released."""

    method: str
    prior: str | None = None

    @property
    def name(self) -> str:
        return self.method if self.prior is None else f"{self.method}, {self.prior}"

    def release(
        self, x: NDArray, data: Data, q: Any, rng: np.random.Generator, **public: Any
    ) -> Any:
        """Answers, in the shape of the levels."""
        return dpq.quantile(
            x,
            q,
            method=self.method,
            bounds=data.bounds,
            resolution=data.resolution,
            prior=self.prior,
            rng=rng,
            **public,
        )


PLAIN = [Variant(name) for name in ("joint_exp", "approx_quantiles", "agg_tree")]
SCALE_FREE = [Variant(each.method, "scale-free") for each in PLAIN]
STAGES, AUTO, SEARCH = Variant("two_stage"), Variant("auto"), Variant("unbounded_quantile")
INDEPENDENT = [Variant("ind_exp"), Variant("ind_exp", "scale-free")]


def first_contact(report: Report, out: Path) -> None:
    """Tails, many levels, the regret of "auto" over the zoo, and a median between wide bounds."""
    records = zoo()
    tails(report, records)
    many_levels(report, records)
    regrets(report, records, out)
    median_of_costs(report)


def zoo() -> dict[str, Data]:
    """Generated columns, and the real ones where they are at hand."""
    generated = {
        "N(0, 5)": Data(lambda n, rng: rng.normal(0.0, 5.0, n), BOUNDS),
        "U(0, 1)": Data(lambda n, rng: rng.random(n), (0.0, 1.0)),
        "5 Cauchy": Data(lambda n, rng: 5.0 * rng.standard_cauchy(n), (-1_000.0, 1_000.0)),
        "incomes": Data(lambda n, rng: rng.lognormal(10.5, 0.8, n), (0.0, 1e6)),
        "incomes, wide": Data(lambda n, rng: rng.lognormal(10.5, 0.8, n), (0.0, 1e9)),
        "latencies": Data(lambda n, rng: np.round(rng.lognormal(4.6, 0.8, n)), (1.0, 1e5), 1.0),
        "80% zeros": Data(_zeros, (0.0, 1_000.0), 1.0),
        "half at 10": Data(_half, BOUNDS),
        "counts": Data(lambda n, rng: rng.geometric(0.3, n) - 1.0, (0.0, 100.0), 1.0),
        "Pareto(1.5)": Data(lambda n, rng: 1.0 + rng.pareto(1.5, n), (1.0, 1e6)),
        "two clusters": Data(_clusters, (-2_000.0, 3_000.0)),
        "prices": Data(_prices, (0.0, 1_000.0), 0.01),
        "timestamps": Data(_timestamps, (0.0, (YEAR + 1.0) * DAY), 1.0),
    }
    return generated | {
        name: Data(partial(some_of, column.load()), column.bounds, column.resolution)
        for name, column in REAL.items()
        if column.path.exists()
    }


def left_out(records: dict[str, Data]) -> set[str]:
    """The names of the columns that nothing is tuned on."""
    mixed = np.random.default_rng(SEED).permutation(list(records))
    return set(mixed[: round(LEFT_OUT * mixed.size)].tolist())


def _zeros(n: int, rng: np.random.Generator) -> NDArray:
    return np.where(rng.random(n) < 0.8, 0.0, np.round(rng.lognormal(3.0, 1.0, n)))


def _half(n: int, rng: np.random.Generator) -> NDArray:
    return np.where(rng.random(n) < 0.5, 10.0, rng.normal(12.0, 5.0, n))


def _clusters(n: int, rng: np.random.Generator) -> NDArray:
    return rng.normal(0.0, 1.0, n) + 1_000.0 * rng.integers(0, 2, n)


def _prices(n: int, rng: np.random.Generator) -> NDArray:
    """A third each ends in .99, is a multiple of 5, and one of 10."""
    value, kind = rng.lognormal(3.0, 0.8, n), rng.integers(0, 3, n)
    ends_in_99 = np.maximum(np.round(value), 1.0) - 0.01
    fives, tens = 5.0 + 5.0 * np.round(value / 5.0), 10.0 + 10.0 * np.round(value / 10.0)
    return np.choose(kind, (ends_in_99, fives, tens))


def _timestamps(n: int, rng: np.random.Generator) -> NDArray:
    """Seconds of a year: around 14:00, and less on two days of a week."""
    day = rng.integers(0, YEAR, n)
    moved = (day % 7 >= 5) & (rng.random(n) < 0.6)
    hour = np.clip(rng.normal(14.0, 4.0, n), 0.0, 23.99)
    return np.where(moved, (day - 2) % YEAR, day) * float(DAY) + np.round(hour * 3_600.0)


def _around(values: NDArray) -> str:
    """A mean, and two standard errors."""
    return f"{digits(values.mean())} ± {2.0 * values.std(ddof=1) / values.size**0.5:.2g}"


def tails(report: Report, records: dict[str, Data]) -> None:
    """The last of some levels near an end: answers over the truth."""
    table = report.table(
        "The highest level, over the truth: median, and the share of answers off by 2 ×",
        "column",
        "levels",
        "n",
        "ε",
        "method",
        "median",
        "off by 2 ×, %",
        caption="± two standard errors.",
    )
    draws = 10 if report.quick else report.draws
    for name, q, n, epsilon in TAILS:
        plain = [INDEPENDENT[0], SEARCH] if len(q) == 1 else [PLAIN[0]]
        variants = [*plain, STAGES, AUTO]
        ratios = np.array(
            [
                [each[-1] / np.quantile(x, q[-1], method="inverted_cdf") for each in answers]
                for x, answers in _answers(variants, records[name], q, n, draws, epsilon=epsilon)
            ]
        )
        for each, found in zip(variants, ratios.T, strict=True):
            table.add_row(
                name,
                ", ".join(map(str, q)),
                f"{n:,}",
                f"{epsilon:g}",
                each.name,
                _median(found),
                _around(100.0 * ((found > 2.0) | (found < 0.5))),
            )
        table.add_section()
    report.print(table)


def _median(values: NDArray) -> str:
    """A median, and two standard errors: half of what lies between ranks that far from it."""
    low, high = np.quantile(values, np.clip(0.5 + np.array([-1, 1]) / values.size**0.5, 0.0, 1.0))
    return f"{np.median(values):.4g} ± {(high - low) / 2.0:.2g}"


def many_levels(report: Report, records: dict[str, Data]) -> None:
    """Mean rank errors of 29 levels for each column, by variant."""
    n, epsilon, releases = 1_000, 1.0, 2 if report.quick else 200
    others = left_out(records)
    for variants in ((*PLAIN, STAGES, AUTO), SCALE_FREE):
        table = report.table(
            f"Mean rank error of {MANY} levels, n = {n:,}, ε = {epsilon:g}, swap",
            "column",
            *(each.name for each in variants),
            caption="± two standard errors; columns with * are left out of what is tuned.",
        )
        for name, data in records.items():
            errors = _errors(variants, data, levels(MANY), n, releases, epsilon=epsilon)
            table.add_row(name + "*" * (name in others), *map(_around, errors.T))
        report.print(table)


def _errors(
    variants: Sequence[Variant], data: Data, q: Any, n: int, releases: int, **public: Any
) -> NDArray:
    """Mean rank errors, shape (releases, variants)."""
    return np.array(
        [
            [np.mean(dpq.metrics.rank_error(x, q, each)) for each in answers]
            for x, answers in _answers(variants, data, q, n, releases, **public)
        ]
    )


def _answers(
    variants: Sequence[Variant], data: Data, q: Any, n: int, releases: int, **public: Any
) -> Iterator[tuple[NDArray, list[Any]]]:
    """Samples, and what each variant answers: by the same draws, where it takes the same method."""
    for seed in range(releases):
        x = np.clip(data.draw(n, np.random.default_rng([seed, n])), *data.bounds)
        x.sort()
        yield (
            x,
            [
                each.release(x, data, q, np.random.default_rng([seed, 1]), **public)
                for each in variants
            ],
        )


def regrets(report: Report, records: dict[str, Data], out: Path) -> None:
    """The error of "auto" over that of the best variant, for tuned and left-out columns."""
    cells = [Cell(*each) for each in product(RELATIONS, SIZES, EPSILONS, COUNTS, records)]
    cells = cells[:: QUICK_STRIDE if report.quick else 1]
    found = {cell: _regret(cell, records[cell.column], report) for cell in cells}
    regret_map({cell: regret for cell, (regret, _) in found.items()}, out / "auto_regret.png")
    others = left_out(records)
    table = report.table(
        f"Error of auto over that of the best variant, {HALF_A_RECORD} added to both",
        "cells",
        "number",
        "median",
        "geometric mean",
        "worst",
        "where",
        caption="Means of few releases: the best of many variants looks better than it is.",
    )
    rows = {
        "tuned": lambda cell: cell.column not in others,
        "left out": lambda cell: cell.column in others,
        **{f"m = {m}": lambda cell, m=m: cell.m == m for m in COUNTS},
        **{f"n = {n:,}": lambda cell, n=n: cell.n == n for n in SIZES},
        **{f"ε = {each:g}": lambda cell, each=each: cell.epsilon == each for each in EPSILONS},
        **{each: lambda cell, each=each: cell.relation == each for each in RELATIONS},
        **{name: lambda cell, name=name: cell.column == name for name in records},
    }
    for name, belongs in rows.items():
        of = {cell: each for cell, each in found.items() if belongs(cell)}
        if of:
            worst = max(of, key=lambda cell: of[cell][0])
            values = [regret for regret, _ in of.values()]
            table.add_row(
                name,
                str(len(of)),
                f"{np.median(values):.2f}",
                f"{geometric_mean(values):.2f}",
                f"{found[worst][0]:.2f}",
                f"{worst.column}, {worst.relation}, n = {worst.n:,}, ε = {worst.epsilon:g}, "
                f"m = {worst.m}: {found[worst][1]}",
            )
    report.print(table)


def _regret(cell: Cell, data: Data, report: Report) -> tuple[float, str]:
    """The regret of "auto", and which variant is the best: "auto" is one of them, or several."""
    variants = [AUTO, STAGES, *PLAIN, *SCALE_FREE]
    if cell.m <= MANY_FOR_IND:
        variants += INDEPENDENT
    if cell.n == SIZES[-1] and cell.m / cell.epsilon > SLOW_FOR_JOINT:
        variants = [each for each in variants if each.method != "joint_exp"]
    made = _errors(
        variants,
        data,
        levels(cell.m),
        cell.n,
        2 if report.quick else RELEASES,
        epsilon=cell.epsilon,
        neighbors=cell.relation,
        expected_n=cell.n,
    )
    errors = made.mean(axis=0) + HALF_A_RECORD
    best = 1 + int(errors[1:].argmin())
    return float(errors[0] / errors[best]), variants[best].name


def regret_map(regrets: dict[Cell, float], path: Path) -> None:
    """Where "auto" loses: the geometric mean of its regret over columns, and the largest."""
    points = sorted({(cell.n, cell.epsilon) for cell in regrets})
    counts = sorted({cell.m for cell in regrets})
    places = {(m, *point): [i, j] for i, m in enumerate(counts) for j, point in enumerate(points)}
    title = 'Error of "auto" over that of the best mechanism, for each n, ε and number m of levels'
    with picture(path, title, 2, 2, (15.0, 6.5)) as axes:
        for (relation, (what, mean)), each in zip(
            product(RELATIONS, (("geometric mean", geometric_mean), ("largest", max))),
            axes.flat,
            strict=True,
        ):
            shown = np.full((len(counts), len(points)), np.nan)
            found: dict[tuple[int, int, float], list[float]] = {}
            for cell, regret in regrets.items():
                if cell.relation == relation:
                    found.setdefault((cell.m, cell.n, cell.epsilon), []).append(regret)
            for place, values in found.items():
                i, j = places[place]
                shown[i, j] = mean(values)
                color = "white" if shown[i, j] > 2.5 else "black"
                text = f"{shown[i, j]:.2f}"
                each.text(j, i, text, ha="center", va="center", fontsize=7, color=color)
            each.imshow(np.log(shown), aspect="auto", cmap="Reds", vmin=0.0, vmax=np.log(4.0))
            each.grid(False)
            each.set(
                title=f"{relation}, {what} over columns",
                yticks=range(len(counts)),
                yticklabels=[f"m = {m}" for m in counts],
                xticks=range(len(points)),
                xticklabels=[f"$10^{math.log10(n):.0f}$\n{epsilon:g}" for n, epsilon in points],
                xlabel="n, ε",
            )


def median_of_costs(report: Report) -> None:
    """The median of 1,000 costs in cents, between bounds that fit any."""
    n, epsilon = 1_000, 1.0
    costs = Data(lambda n, rng: np.round(rng.lognormal(3.56, 1.0, n), 2), (0.0, 1e9))
    table = report.table(
        f"Median of {n:,} costs, bounds {costs.bounds}, ε = {epsilon:g}: true {np.exp(3.56):.2f}",
        "method",
        "median of answers",
        "ranks off",
        caption="± two standard errors.",
    )
    draws = 20 if report.quick else report.draws
    variants = [*INDEPENDENT, STAGES, AUTO]
    made = list(_answers(variants, costs, 0.5, n, draws, epsilon=epsilon))
    for j, each in enumerate(variants):
        answers = np.array([found[j] for _, found in made])
        errors = [dpq.metrics.rank_error(x, 0.5, found[j]) for x, found in made]
        table.add_row(each.name, f"{np.median(answers):.2f}", _around(np.array(errors)))
    report.print(table)
