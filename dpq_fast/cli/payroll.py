"""`dpq-fast demo`: a release of a generated payroll, next to the truth."""

from __future__ import annotations

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table

import dpq_fast as dpq
from dpq_fast.cli.failures import refusals
from dpq_fast.cli.options import Command
from dpq_fast.cli.output import console

# The demo's column is public: one fixed seed, the same payroll on every machine.
SEED = 20_240_131
SIZE = 20_000
BOUNDS = (0.0, 500_000.0)  # dollars a year
RESOLUTION = 100.0  # dollars: the payroll is kept in hundreds
DECILES = [j / 10 for j in range(1, 10)]
# Cells of the longest bar; with the other columns the table stays below 80.
BAR_CELLS = 30


def generated_payroll() -> NDArray[np.float64]:
    """Salaries in hundreds of dollars, full of ties: three lognormal groups, generated, public."""
    rng = np.random.default_rng(SEED)
    median = np.array([38_000.0, 62_000.0, 125_000.0])  # staff, specialists, managers
    spread = np.array([0.18, 0.25, 0.35])
    group = rng.choice(3, size=SIZE, p=[0.55, 0.35, 0.10])
    salaries = median[group] * np.exp(spread[group] * rng.standard_normal(SIZE))
    return np.round(salaries, -2)


@click.command(cls=Command)
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="Privacy budget.")
@click.option("--seed", type=int, help="Repeatable noise, for demonstrations only.")
def demo(epsilon: float, seed: int | None) -> None:
    """Private deciles of a generated payroll column, next to the true ones.

    For example:
      dpq-fast demo --epsilon 0.1
    """
    salaries = generated_payroll()
    with refusals():
        private = dpq.quantile(
            salaries,
            DECILES,
            epsilon=epsilon,
            bounds=BOUNDS,
            method="joint_exp",
            resolution=RESOLUTION,
            rng=seed,
        )
    true = np.quantile(salaries, DECILES)
    error = dpq.metrics.rank_error(salaries, DECILES, private)

    screen = console()
    low, high = BOUNDS
    screen.print(f"Deciles of a generated payroll: {salaries.size:,} salaries, dollars a year")
    screen.print(f"epsilon {epsilon:g}, delta 0, neighbors swap (one salary replaced)")
    screen.print(
        f"mechanism joint_exp, bounds [{low:,.0f}, {high:,.0f}], resolution {RESOLUTION:g}"
    )
    source = "fresh, cryptographic" if seed is None else f"repeatable, from seed {seed}"
    screen.print(f"noise: {source}")
    both, only_true, only_private = "#'." if screen.options.ascii_only else "█▀▄"
    table = Table()
    for heading in ("decile", "true", "private", "rank error"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(f"{only_true} true  {only_private} private", no_wrap=True)
    longest = max(true.max(), private.max())
    for j, level in enumerate(DECILES):
        cells = [round(BAR_CELLS * value / longest) for value in (true[j], private[j])]
        tail = only_true if cells[0] > cells[1] else only_private
        table.add_row(
            f"{level:.0%}",
            f"{true[j]:,.0f}",
            f"{private[j]:,.0f}",
            f"{error[j]:,.0f}",
            both * min(cells) + tail * (max(cells) - min(cells)),
        )
    screen.print(table)
    screen.print(
        f"Rank error: how many of the {salaries.size:,} records lie between the private value\n"
        "and its target rank. True values and rank errors are shown only because the\n"
        "column is generated; a release of real data prints neither."
    )
