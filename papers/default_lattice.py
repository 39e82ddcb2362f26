"""How fine the default lattice should be: what `DEFAULT_DIGITS` goes by. Of no paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.columns import BOUNDS, REAL
from bench.errors import joint_exp, mean_error
from papers.report import Report, error

SIZES = (1_000, 10_000, 100_000)
COUNTS = (1, 9)
# Steps of the lattice, as powers of ten of the range, rounded as the default is.
DIGITS = (4, 5, 6, 7, 8)


def default_lattice(report: Report, out: Path) -> None:
    """Rank errors by column, number of records and step: ties want coarse steps, others fine."""
    del out  # a table alone
    table = report.table(
        "Mean rank error of joint_exp by the step of the lattice, swap, ε = 1",
        "column",
        "n",
        "m",
        *(f"10^-{digits} of the range" for digits in DIGITS),
        "default",
        caption="± standard error; records of real columns are drawn with replacement.",
    )
    for name, (draw, bounds) in columns().items():
        for n in SIZES:
            draws = max(report.draws * SIZES[0] // n, 20)
            for m in COUNTS:
                steps: list[float | None] = [step(bounds, digits) for digits in DIGITS]
                found = [
                    mean_error(partial(draw, n), joint_exp(bounds, resolution), m, draws)
                    for resolution in [*steps, None]
                ]
                table.add_row(name, f"{n:,}", f"{m}", *map(error, found))
        table.add_section()
    report.print(table)


def step(bounds: tuple[float, float], digits: int) -> float:
    """The power of ten nearest to 10^-digits of a range."""
    return float(f"1e{round(math.log10(bounds[1] - bounds[0])) - digits}")


def columns() -> dict[str, tuple[Callable[[int, np.random.Generator], NDArray], tuple]]:
    """How to draw n records of the paper's N(0, 5) and of the real columns, and their bounds."""
    found = {"N(0, 5)": (lambda n, rng: rng.normal(0.0, 5.0, n), BOUNDS)}
    for name, column in REAL.items():
        if column.path.exists():
            values = column.load().astype(np.float64)
            found[name] = (partial(_resampled, values), column.bounds)
    return found


def _resampled(values: NDArray, n: int, rng: np.random.Generator) -> NDArray:
    return rng.choice(values, n)
