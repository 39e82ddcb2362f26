"""`dpq-fast plan` and `dpq-fast compare`: errors before any file is read, of public arguments."""

from __future__ import annotations

import math
import sys
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import Progress

import dpq_fast as dpq
from dpq_fast import _checks
from dpq_fast.cli import options
from dpq_fast.cli.failures import refusals
from dpq_fast.cli.options import Form
from dpq_fast.cli.output import Answer, Printer, spelled, working
from dpq_fast.cli.parameters import Guess, Numbers
from dpq_fast.planning import METHODS as PLANNED
from dpq_fast.planning import SUMMARIES, UNITS
from dpq_fast.planning.samples import public_rng
from dpq_fast.privacy.relations import RELATIONS

# Methods that save a sort if they are told that there is nothing to sort.
TAKE_SORTED = ("joint_exp", "ind_exp", "approx_quantiles", "two_stage")
# Records and releases of a comparison.
MOST_RECORDS, MOST_RELEASES = 10**8, 10**6

N = options.option(
    options.RELEASE, "--n", type=int, required=True, help="About how many records there are."
)
NEIGHBORS = options.option(
    options.PRIVACY,
    "--neighbors",
    type=click.Choice(list(RELATIONS)),
    default="swap",
    show_default=True,
    help="What one person can change: replace a record, or add or remove one.",
)


@click.command(cls=options.Command, epilog=options.TERMS)
@options.LEVELS
@N
@options.BOUNDS(required=True, type=float, help="Range of the answers, as for the release.")
@options.GUESS
@options.RESOLUTION(type=float, help=options.LATTICE.format(""))
@options.option(
    options.PRIVACY,
    "--epsilon",
    type=Numbers("epsilon"),
    help="Budgets.  [default: nine from 0.01 to 10]",
)
@options.option(
    options.PRIVACY,
    "--target",
    type=float,
    metavar="ERROR",
    help="Instead of --epsilon: the error that the smallest epsilon is looked for.",
)
@options.option(
    options.PRIVACY,
    "--unit",
    type=click.Choice(UNITS),
    default="ranks",
    show_default=True,
    help="Of the target: records, a share of them, or the unit of the data.",
)
@options.option(
    options.PRIVACY,
    "--over",
    type=click.Choice(SUMMARIES),
    default="mean",
    show_default=True,
    help="Whether the mean over levels or the worst of them is to reach the target.",
)
@options.option(
    options.PRIVACY,
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    help="The share of releases whose error is predicted.",
)
@NEIGHBORS
@options.CONTRIBUTIONS
@options.option(
    options.PRIVACY,
    "--privacy-unit",
    type=float,
    metavar="ROWS",
    help="A public guess at how many records a person has, for a release by --privacy-unit: then "
    "--n and ranks are numbers of persons.",
)
@options.SHARED
@options.EXPECTED_N
@options.option(
    options.MECHANISM,
    "--method",
    type=click.Choice(PLANNED),
    default="auto",
    show_default=True,
    help="all compares them.",
)
@options.with_output
def plan(
    levels: tuple[list[float], ...],
    epsilon: list[float] | None,
    privacy_unit: float | None,
    max_contributions: int,
    contributions: str | int | None,
    form: Form,
    **arguments: Any,
) -> None:
    r"""How far off private quantiles will be, before any file is read.

    For example:
      dpq-fast plan --q 0.25,0.5,0.75 --n 10000 --bounds 0 120 \
        --guess normal:45,15 --epsilon 1
      dpq-fast plan --q 0.5 --n 10000 --bounds 0 120 --target 10

    The errors are predicted from public facts: the number of records, the bounds, and a guess at
    the data. Without one they are a range over shapes of columns, and the epsilon for a target
    is enough for every shape.
    """
    q = options.flat(levels)
    printer = Printer(form)
    options.check_person(privacy_unit is not None, contributions, max_contributions)
    if contributions is not None:
        arguments["contributions"] = contributions
    arguments |= dict(privacy_unit=privacy_unit, max_contributions=max_contributions)
    with refusals(), working("planning"):
        made = dpq.plan(q, epsilon=epsilon, **arguments)
    columns = {name: column.tolist() for name, column in made.columns().items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    printer.write(
        Answer(
            title=made.title,
            headings=list(columns),
            rows=list(zip(*columns.values(), strict=True)),
            notes="",
            data={"q": q, "level": made.level, "needed": made.needed, "rows": rows},
            columns=columns,
            draw=lambda ax: dpq.plots.plan(made, ax),
            plain=str(made),
        )
    )


@click.command(cls=options.Command, epilog=options.TERMS)
@options.LEVELS
@N
@options.BOUNDS(required=True, type=float, help="Range of the answers, as for the release.")
@options.option(
    options.RELEASE,
    "--guess",
    type=Guess(),
    help="What the made-up records are drawn from: normal:MEAN,SD, lognormal:MU,SIGMA or "
    "uniform:LOW,HIGH.  [default: uniform between the bounds]",
)
@options.RESOLUTION(type=float, help=options.LATTICE.format(""))
@options.option(
    options.PRIVACY,
    "--epsilon",
    type=float,
    default=1.0,
    show_default=True,
    help="Budget of each release.",
)
@NEIGHBORS
@options.CONTRIBUTIONS
@options.option(
    options.MECHANISM,
    "--method",
    "methods",
    type=click.Choice(options.OFFERED),
    metavar="NAME",
    multiple=True,
    help=f"One of {', '.join(options.OFFERED)}. May be repeated.  [default: all]",
)
@options.option(
    options.MECHANISM,
    "--releases",
    type=int,
    default=100,
    show_default=True,
    help="Of each method.",
)
@options.option(
    options.MECHANISM,
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Of the records and of the noise.",
)
@options.with_output
def compare(
    levels: tuple[list[float], ...],
    n: int,
    bounds: tuple[float, float],
    guess: Any,
    resolution: float | None,
    epsilon: float,
    neighbors: str,
    max_contributions: int,
    methods: tuple[str, ...],
    releases: int,
    seed: int,
    form: Form,
) -> None:
    r"""Errors of the methods on made-up records, by running them.

    For example:
      dpq-fast compare --q 0.25,0.5,0.75 --n 2000 --bounds 0 500000 \
        --guess lognormal:10.8,0.5 --epsilon 1

    Each release has its own noise, the records are the same. The error of a release is the mean
    over levels of the records between an answer and its target rank; shown is its mean over
    releases, with two standard errors. No file is read: records follow from these options.
    """
    q = options.flat(levels)
    printer = Printer(form, plain="a comparison")
    with refusals():
        low, high = _checks.check_bounds(bounds)
        _at_most("n", n, 1, MOST_RECORDS)
        _at_most("releases", releases, 2, MOST_RELEASES)
        _at_most("seed", seed, 0, 2**63)
    rng = public_rng(seed)
    u = rng.random(n)
    x = low + (high - low) * u if guess is None else np.asarray(guess.ppf(u))
    x = np.sort(x if resolution is None or resolution <= 0.0 else _rounded(x, resolution))
    chosen = list(dict.fromkeys(methods)) or options.OFFERED
    place: dict[str, Any] = dict(bounds=bounds, resolution=resolution, neighbors=neighbors)
    rows = []
    screen = Console(stderr=True, highlight=False)
    with refusals(), Progress(console=screen, disable=not sys.stderr.isatty()) as progress:
        for method in chosen:
            errors = np.empty(releases)
            for j in progress.track(range(releases), description=method):
                out = dpq.quantile(
                    x,
                    q,
                    epsilon=epsilon,
                    method=method,
                    max_contributions=max_contributions,
                    assume_sorted=method in TAKE_SORTED,
                    rng=rng,
                    **place,
                )
                errors[j] = np.mean(dpq.metrics.rank_error(x, q, out))
            beside = 2.0 * float(errors.std(ddof=1)) / math.sqrt(releases)
            rows.append((method, float(errors.mean()), beside))
    best = min(error for _, error, _ in rows)
    columns: dict[str, list[Any]] = {
        name: list(cells)
        for name, cells in zip(
            ("method", "mean rank error", "two standard errors"),
            zip(*rows, strict=True),
            strict=True,
        )
    }
    columns["of the best"] = [error / best if best else None for _, error, _ in rows]
    known = f"{n:,} made-up records, {releases:,} releases of each method"
    public = dict(
        q=q,
        n=n,
        bounds=list(bounds),
        resolution=resolution,
        epsilon=epsilon,
        neighbors=neighbors,
        max_contributions=max_contributions,
        releases=releases,
        seed=seed,
    )
    printer.write(
        Answer(
            title=f"Mean rank errors: {known}",
            headings=list(columns),
            rows=[
                (method, f"{error:.3g}", f"± {beside:.2g}", f"{error / best:.2f}" if best else "")
                for method, error, beside in rows
            ],
            notes=f"epsilon {spelled(epsilon)}, neighbors {neighbors}, bounds "
            f"[{spelled(bounds[0])}, {spelled(bounds[1])}], seed {seed}",
            data=public
            | {
                "rows": [
                    dict(zip(columns, row, strict=True))
                    for row in zip(*columns.values(), strict=True)
                ]
            },
            columns=columns,
            texts=1,
        )
    )


def _rounded(x: Any, resolution: float) -> Any:
    """Made-up records on the lattice that answers are on, as those of whole numbers are."""
    return np.round(x / resolution) * resolution


def _at_most(name: str, value: int, least: int, most: int) -> None:
    if _checks.check_count(name, value, least) > most:
        raise ValueError(f"{name} must be at most {most:,}, got {value}")
