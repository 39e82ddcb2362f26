"""Which mechanism is the most accurate for m levels: what ``quantile(method="auto")`` goes by.

Of no paper: ours, over relations, budgets and columns.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench.case import Release
from bench.columns import BOUNDS, DELTA, REAL, gaussian, levels
from bench.errors import N, mean_error, real_sample
from bench.measure import alternately, duration
from dpq_fast import privacy
from papers.pictures import picture
from papers.report import Report, digits

COUNTS = (1, 2, 3, 5, 9, 15, 20, 30, 50, 100)
RELATIONS = ("swap", "add-remove")
BUDGETS = {"ε = 1": {"epsilon": 1.0}, "ε = 0.1": {"epsilon": 0.1}, "ρ = 0.5": {"rho": 0.5}}
# Releases of one budget and one sample: they share a forward pass, except for recursive quantiles.
DRAWS = 20
# Added to rank errors before their ratio is taken: a column that is mostly one tie has none.
NO_ERROR = 0.01
METHODS = (dpq.joint_exp, dpq.approx_quantiles, dpq.ind_exp)


def laws(budget: dict[str, float]) -> dict[str, Callable[..., Any]]:
    """The mechanisms, each with all of the budget."""
    rho = budget.get("rho")
    epsilon = budget["epsilon"] if rho is None else privacy.rho_bounded_range(rho)
    found = {
        "joint_exp": partial(dpq.joint_exp_law, epsilon=epsilon),
        "approx_quantiles": partial(dpq.approx_quantiles_law, **budget),
        "ind_exp": partial(dpq.ind_exp_law, **budget),
    }
    if "epsilon" in budget:
        found[f"ind_exp, δ = {DELTA:g}"] = partial(dpq.ind_exp_law, delta=DELTA, **budget)
    return found


class Data(NamedTuple):
    """How to draw records, and how they are released."""

    draw: Callable[[np.random.Generator], NDArray]
    bounds: tuple[float, float]
    resolution: float | None


def datasets() -> dict[str, Data]:
    """The paper's N(0, 5) and the real columns."""
    normal = {f"N(0, 5), n = {n:,}": Data(partial(gaussian, n), BOUNDS, None) for n in (N, 10 * N)}
    return normal | {
        name: Data(real_sample(name), column.bounds, column.resolution)
        for name, column in REAL.items()
    }


def auto_rule(report: Report, out: Path) -> None:
    """Rank errors of all mechanisms by m, where they cross, and what they take."""
    counts = COUNTS[::3] if report.quick else COUNTS
    samples = 2 if report.quick else 10
    records = datasets()
    settings = [(relation, budget) for relation in RELATIONS for budget in BUDGETS]
    crossings = report.table(
        "From which m on approx_quantiles has the smaller mean rank error than joint_exp",
        "relation, budget",
        *records,
        "geometric mean",
    )
    ratios = report.table(
        "Mean rank error of approx_quantiles over that of joint_exp, geometric mean of all data",
        "relation, budget",
        *(f"m = {m}" for m in counts),
    )
    with picture(
        out / "auto_rule.png",
        "Mean rank error per level over m",
        len(settings),
        len(records),
        (20.0, 20.0),
    ) as axes:
        for row, (relation, budget) in zip(axes, settings, strict=True):
            setting = f"{relation}, {budget}"
            table = report.table(
                f"Mean rank error, {setting}, {samples} samples, {DRAWS} draws each",
                "data",
                "",
                *(f"{m}" for m in counts),
            )
            over_joint = []
            for each, (name, data) in zip(row, records.items(), strict=True):
                errors = {}
                for label, law in laws(BUDGETS[budget]).items():
                    release = _release(law, data, relation)
                    errors[label] = np.array(
                        [mean_error(data.draw, release, m, samples)[0] for m in counts]
                    )
                    table.add_row(name, label, *map(digits, errors[label]))
                    each.plot(counts, errors[label], "o-", markersize=3, label=label)
                table.add_section()
                over_joint.append(
                    (errors["approx_quantiles"] + NO_ERROR) / (errors["joint_exp"] + NO_ERROR)
                )
                each.set(xscale="log", yscale="log", title=f"{name}\n{setting}", xlabel="levels m")
            report.print(table)
            together = np.exp(np.log(over_joint).mean(axis=0))
            crossings.add_row(
                setting, *(_crossing(counts, ratio) for ratio in (*over_joint, together))
            )
            ratios.add_row(setting, *(f"{ratio:.2f}" for ratio in together))
        axes[0, 0].legend()
    report.print(crossings)
    report.print(ratios)
    _times(report, counts)


def _release(law: Callable[..., Any], data: Data, relation: str) -> Release:
    """Several releases of one sample, shape (DRAWS, m)."""
    form = dict(bounds=data.bounds, resolution=data.resolution, neighbors=relation)
    dithers = "dither_rng" in inspect.signature(law).parameters
    return lambda x, q, rng: law(x, q, **form, **(dict(dither_rng=rng) if dithers else {})).sample(
        rng, size=DRAWS
    )


def _crossing(counts: tuple[int, ...], ratio: NDArray[np.float64]) -> str:
    """The smallest m from which on all ratios are below 1."""
    worse = np.flatnonzero(ratio >= 1.0)
    first = worse[-1] + 1 if worse.size else 0
    return f"{counts[first]}" if first < len(counts) else "never"


def _times(report: Report, counts: tuple[int, ...]) -> None:
    for n in (N, 10 * N):
        table = report.table(
            f"Time per call: N(0, 5), n = {n:,}, unsorted, swap, ε = 1",
            "m",
            *(method.__name__ for method in METHODS),
        )
        x = gaussian(n)
        for m in counts:
            sides = {
                method.__name__: partial(method, x, levels(m), epsilon=1.0, bounds=BOUNDS)
                for method in METHODS
            }
            timings = alternately(sides, report.seconds / 4)
            table.add_row(f"{m}", *(duration(timing.median) for timing in timings.values()))
        report.print(table)
