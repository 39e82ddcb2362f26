"""How far `quantile(method="auto")` is from the best of our mechanisms, over a grid.

Of no paper: ours. What "auto" goes by is in `dpq_fast.privacy.choice`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench.columns import BOUNDS, REAL, gaussian, levels
from dpq_fast.mechanisms.quantile import choose_method, default_prior
from papers.pictures import picture
from papers.report import Report, digits

SIZES = (1_000, 10_000, 100_000)
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)
COUNTS = (1, 3, 9, 29, 100, 300)
RELATIONS = ("swap", "add-remove")
# Releases of one sample: those of a law share what it takes to make it.
DRAWS = 5
# Added to rank errors before their ratio is taken: ranks differ by one.
HALF_A_RECORD = 0.5
# Regret that is no more than this counts as none.
NEAR = 1.15
# Where it is left out: JointExp with fewer records times epsilon for each level than this, or with
# so many levels over epsilon among many records (it is slow there, and far off); one release per
# level beyond so many.
FEW_FOR_JOINT, SLOW_FOR_JOINT, MANY_FOR_IND = 1.0, 3_000.0, 29


class Data(NamedTuple):
    """How to draw n records, and how they are released."""

    draw: Callable[[int, np.random.Generator], NDArray]
    bounds: tuple[float, float]
    resolution: float | None = None


class Cell(NamedTuple):
    """A point of the grid."""

    relation: str
    n: int
    epsilon: float
    m: int
    column: str


def auto_rule(report: Report, out: Path) -> None:
    """Mean rank errors of all mechanisms, which of them "auto" takes, and what that costs."""
    records = datasets()
    samples = 3 if report.quick else 20
    sizes, budgets = (SIZES[:1], EPSILONS[1::2]) if report.quick else (SIZES, EPSILONS)
    regrets: dict[Cell, float] = {}
    with picture(
        out / "auto_rule.png",
        "Mean rank error times epsilon over n epsilon, swap; circles: auto",
        2,
        3,
        (15.0, 9.0),
    ) as axes:
        for relation, n, epsilon in product(RELATIONS, sizes, budgets):
            table = report.table(
                f"Mean rank error, {relation}, n = {n:,}, ε = {epsilon:g}; × for auto's choice",
                "data",
                *(f"m = {m}" for m in COUNTS),
            )
            for name, data in records.items():
                row = []
                for m in COUNTS:
                    cell = Cell(relation, n, epsilon, m, name)
                    errors = dict(_errors(cell, data, samples))
                    chosen = _chosen(cell, data)
                    best = min(errors.values()) + HALF_A_RECORD
                    regrets[cell] = (errors[chosen] + HALF_A_RECORD) / best
                    row.append(
                        " ".join(
                            f"{SHORT[each]} {digits(error)}{'×' if each == chosen else ''}"
                            for each, error in errors.items()
                        )
                    )
                    if relation == "swap" and name == next(iter(records)):
                        _draw(axes.ravel()[COUNTS.index(m)], cell, errors, chosen)
                table.add_row(name, *row)
            report.print(table)
        for m, each in zip(COUNTS, axes.ravel(), strict=True):
            each.set(xscale="log", yscale="log", title=f"N(0, 5), m = {m}", xlabel="n ε")
    summary = report.table(
        f"Regret of auto: its error over that of the best mechanism, {HALF_A_RECORD} added to both",
        "relation",
        "n",
        "geometric mean",
        f"within {NEAR}",
        "worst",
        "where",
    )
    for relation, n in product(RELATIONS, sizes):
        cells = {
            cell: each for cell, each in regrets.items() if (cell.relation, cell.n) == (relation, n)
        }
        values = np.array(list(cells.values()))
        worst = max(cells, key=cells.__getitem__)
        summary.add_row(
            relation,
            f"{n:,}",
            f"{np.exp(np.log(values).mean()):.3f}",
            f"{(values <= NEAR).mean():.0%}",
            f"{cells[worst]:.2f}",
            f"{worst.column}, ε = {worst.epsilon:g}, m = {worst.m}",
        )
    report.print(summary)


def datasets() -> dict[str, Data]:
    """Generated columns and the real ones."""
    generated = {
        "N(0, 5)": Data(gaussian, BOUNDS),
        "lognormal": Data(lambda n, rng: rng.lognormal(0.0, 1.0, n), (0.0, 100.0)),
        "Cauchy": Data(lambda n, rng: rng.standard_cauchy(n), (-1_000.0, 1_000.0)),
    }
    return generated | {
        name: Data(partial(some_of, column.load()), column.bounds, column.resolution)
        for name, column in REAL.items()
        if column.path.exists()
    }


def some_of(column: NDArray, n: int, rng: np.random.Generator) -> NDArray:
    """Records without replacement, as long as there are enough."""
    return rng.choice(column, n, replace=n > column.size)


def _chosen(cell: Cell, data: Data) -> str:
    return choose_method(
        None,
        levels(cell.m),
        epsilon=cell.epsilon,
        bounds=data.bounds,
        neighbors=cell.relation,
        resolution=data.resolution,
        expected_n=cell.n,
    )


def _errors(cell: Cell, data: Data, samples: int) -> Iterator[tuple[str, float]]:
    """The mean rank error of each mechanism that is not left out, with the prior of "auto"."""
    weight = cell.n * cell.epsilon / cell.m
    slow = cell.n >= SIZES[-1] and cell.m / cell.epsilon > SLOW_FOR_JOINT
    for name, draw in RELEASES.items():
        if name == "joint_exp" and (weight < FEW_FOR_JOINT or slow):
            continue
        if name == "ind_exp" and cell.m > MANY_FOR_IND:
            continue
        q, missed = levels(cell.m), []
        for seed in range(samples):
            x = np.sort(data.draw(cell.n, np.random.default_rng([seed, cell.n])))
            outputs = draw(
                x,
                q,
                np.random.default_rng([seed, 1]),
                epsilon=cell.epsilon,
                bounds=data.bounds,
                neighbors=cell.relation,
                resolution=data.resolution,
                prior=default_prior(None, data.bounds, data.resolution, name, cell.m),
            )
            missed.append(dpq.metrics.rank_error(x, q, outputs).mean())
        yield name, float(np.mean(missed))


def _by_law(law: Callable[..., Any], dithered: bool) -> Callable[..., NDArray]:
    """Several draws of one law."""

    def draw(x: NDArray, q: NDArray, rng: np.random.Generator, **options: Any) -> NDArray:
        dither = {"dither_rng": rng} if dithered else {}
        return law(x, q, assume_sorted=True, **dither, **options).sample(rng, size=DRAWS)

    return draw


def _trees(x: NDArray, q: NDArray, rng: np.random.Generator, **options: Any) -> NDArray:
    """Several trees, of the shape that "auto" gives them."""
    made = (dpq.agg_tree(x, q, expected_n=x.size, rng=rng, **options) for _ in range(DRAWS))
    return np.array(list(made))


def _stages(x: NDArray, q: NDArray, rng: np.random.Generator, **options: Any) -> NDArray:
    """Several releases in two stages."""
    law = dpq.two_stage_law(x, q, expected_n=x.size, dither_rng=rng, assume_sorted=True, **options)
    return np.array([law.sample(rng) for _ in range(DRAWS)])


RELEASES = {
    "joint_exp": _by_law(dpq.joint_exp_law, True),
    "ind_exp": _by_law(dpq.ind_exp_law, False),
    "approx_quantiles": _by_law(dpq.approx_quantiles_law, True),
    "agg_tree": _trees,
    "two_stage": _stages,
}
SHORT = dict(zip(RELEASES, "JIATS", strict=True))


def _draw(axes: Any, cell: Cell, errors: dict[str, float], chosen: str) -> None:
    weight = cell.n * cell.epsilon
    for color, name in enumerate(RELEASES):
        if name in errors:
            axes.plot(weight, errors[name] * cell.epsilon, f"C{color}.", label=name)
    axes.plot(weight, errors[chosen] * cell.epsilon, "ko", markersize=10, fillstyle="none")
