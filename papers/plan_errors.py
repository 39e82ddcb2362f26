"""How near predictions of `dpq.plan` are to simulated releases, over the grid of `auto_rule`.

Of no paper: ours. A prediction sees the distribution that the records are drawn from, not them.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import scipy.stats
from numpy.typing import NDArray

import dpq_fast as dpq
from bench.columns import BOUNDS, REAL, levels
from dpq_fast.mechanisms.quantile import default_prior
from papers.auto_rule import COUNTS, EPSILONS, HALF_A_RECORD, RELATIONS, RELEASES, SIZES, Cell
from papers.report import Report, digits

# One cell of so many is measured: prime, so that every size, budget, ... is among them.
STRIDE, QUICK_STRIDE = 11, 101
# Releases that are simulated, five of each sample: all, or what these seconds are enough for.
FEWEST, MOST, SECONDS = 1_000, 4_000, 10.0
WITHIN, LEVEL = 0.1, 0.95
WORST = 12


class Data(NamedTuple):
    """What records are drawn from, and how they are released."""

    guess: object
    bounds: tuple[float, float]
    resolution: float | None = None

    def draw(self, n: int, rng: np.random.Generator) -> NDArray:
        if isinstance(self.guess, np.ndarray):
            return rng.choice(self.guess, n)
        return self.guess.rvs(n, random_state=rng)


class Found(NamedTuple):
    """A prediction, and what it is compared with."""

    cell: Cell
    method: str
    predicted: float
    simulated: float
    uncertainty: float
    releases: int

    def within(self, slack: float = 0.0) -> bool:
        """Whether it is right to a tenth, or to so many records."""
        return abs(self.predicted - self.simulated) <= max(WITHIN * self.simulated, slack)

    @property
    def ratio(self) -> float:
        return (self.predicted + HALF_A_RECORD) / (self.simulated + HALF_A_RECORD)


def plan_errors(report: Report, out: Path) -> None:
    """The share of cells that are predicted within a tenth, by method, and the worst of them."""
    records = datasets()
    cells = [Cell(*each) for each in product(RELATIONS, SIZES, EPSILONS, COUNTS, records)]
    found = [
        _compared(cell, records[cell.column])
        for cell in cells[:: QUICK_STRIDE if report.quick else STRIDE]
    ]
    summary = report.table(
        f"Predicted against simulated {LEVEL:.0%} quantile of the mean rank error, one cell in "
        f"{QUICK_STRIDE if report.quick else STRIDE}",
        "method of auto",
        "cells",
        f"within {WITHIN:.0%}",
        "or half a record",
        "geometric mean of the ratio",
        "error of simulation",
    )
    for method in (*RELEASES, None):
        chosen = [each for each in found if method in (None, each.method)]
        if chosen:
            ratios = np.array([each.ratio for each in chosen])
            summary.add_row(
                method or "all",
                str(len(chosen)),
                f"{np.mean([each.within() for each in chosen]):.0%}",
                f"{np.mean([each.within(HALF_A_RECORD) for each in chosen]):.0%}",
                f"{np.exp(np.log(ratios).mean()):.3f}",
                f"{np.median([each.uncertainty for each in chosen]):.1%}",
            )
    report.print(summary)
    worst = report.table(
        "The worst cells", "cell", "method", "predicted", "simulated", "its error", "releases"
    )
    for each in sorted(found, key=lambda each: -abs(np.log(each.ratio)))[:WORST]:
        relation, n, epsilon, m, column = each.cell
        worst.add_row(
            f"{column}, {relation}, n = {n:,}, ε = {epsilon:g}, m = {m}",
            each.method,
            digits(each.predicted),
            digits(each.simulated),
            f"{each.uncertainty:.1%}",
            f"{each.releases:,}",
        )
    report.print(worst)


def datasets() -> dict[str, Data]:
    """Distributions, and the real columns: records are drawn from them with replacement."""
    generated = {
        "N(0, 5)": Data(scipy.stats.norm(0.0, 5.0), BOUNDS),
        "lognormal": Data(scipy.stats.lognorm(1.0), (0.0, 100.0)),
        "Cauchy": Data(scipy.stats.cauchy(), (-1_000.0, 1_000.0)),
    }
    return generated | {
        name: Data(column.load(), column.bounds, column.resolution)
        for name, column in REAL.items()
        if column.path.exists()
    }


def _compared(cell: Cell, data: Data) -> Found:
    q = levels(cell.m)
    arguments = dict(
        epsilon=cell.epsilon,
        bounds=data.bounds,
        neighbors=cell.relation,
        resolution=data.resolution,
    )
    planned = dpq.plan(q, n=cell.n, guess=data.guess, expected_n=cell.n, **arguments)
    method = str(planned.method[0])
    prior = default_prior(None, data.bounds, data.resolution, method, cell.m)
    errors, start = [], perf_counter()
    while len(errors) < FEWEST or (len(errors) < MOST and perf_counter() - start < SECONDS):
        seed = len(errors)
        x = np.sort(data.draw(cell.n, np.random.default_rng([seed, cell.n])))
        outputs = RELEASES[method](x, q, np.random.default_rng([seed, 1]), prior=prior, **arguments)
        errors.extend(dpq.metrics.rank_error(x, q, outputs).mean(axis=1).tolist())
    simulated = float(np.quantile(errors, LEVEL, method="inverted_cdf"))
    return Found(
        cell,
        method,
        float(planned.ranks.quantile[0]),
        simulated,
        _relative_error(np.array(errors), simulated),
        len(errors),
    )


def _relative_error(errors: NDArray, simulated: float) -> float:
    """Of the simulated quantile, by those of ten parts."""
    parts = [np.quantile(part, LEVEL) for part in np.array_split(errors, 10)]
    return float(np.std(parts, ddof=1) / 10.0**0.5 / max(simulated, HALF_A_RECORD))
