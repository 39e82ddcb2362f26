"""`dpq-fast budget`: files that say what may be spent on a data set, and what was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpq_fast.cli import options
from dpq_fast.cli.accounts import opened_file
from dpq_fast.cli.failures import Found, ledger, refusals
from dpq_fast.cli.options import Form
from dpq_fast.cli.output import Answer, Printer, spelled
from dpq_fast.privacy import Accountant
from dpq_fast.privacy.relations import RELATIONS

FILE = click.argument("file", metavar="LEDGER", type=options.EXISTING)


@click.group(cls=options.Group)
def budget() -> None:
    r"""What may be spent on a data set, and what was: a ledger file.

    For example:
      dpq-fast budget new staff.budget --epsilon 2
      dpq-fast quantile staff.csv --column age --q 0.5 --epsilon 0.5 \
        --bounds 0 120 --budget staff.budget
      dpq-fast budget show staff.budget

    Every command that reads records takes --budget LEDGER. It is charged before a record is read;
    what does not fit is refused with exit code 1. Several processes may charge one ledger. A
    charge is never given back: whether a release fails may depend on the records.
    """


@budget.command(cls=options.Command, short_help="Make a ledger.")
@click.argument("file", metavar="LEDGER", type=click.Path(dir_okay=False, path_type=Path))
@options.option(
    options.PRIVACY, "--epsilon", type=float, required=True, help="Of all releases together."
)
@options.option(
    options.PRIVACY,
    "--delta",
    type=float,
    default=0.0,
    show_default=True,
    help="Allowed failure of the guarantee, of all releases together.",
)
@options.option(
    options.PRIVACY,
    "--neighbors",
    type=click.Choice(list(RELATIONS)),
    default="swap",
    show_default=True,
    help="What one person can change: replace a record, or add or remove one.",
)
@options.option(
    options.PRIVACY,
    "--composition",
    type=click.Choice(["basic", "zcdp"]),
    default="basic",
    show_default=True,
    help="How charges add up; zcdp needs a delta, and lasts for more small releases.",
)
def new(file: Path, epsilon: float, delta: float, neighbors: str, composition: str) -> None:
    """Make a LEDGER with a budget.

    For example:
      dpq-fast budget new staff.budget --epsilon 2
    """
    if file.exists():
        raise click.UsageError(f"LEDGER must be a new file, got {file}, which is there")
    with refusals(), ledger():
        Accountant.open(
            file, epsilon=epsilon, delta=delta, neighbors=neighbors, composition=composition
        ).close()
    click.echo(
        f"{file}: epsilon {spelled(epsilon)}, delta {spelled(delta)}, neighbors {neighbors}, "
        f"composition {composition}"
    )


@budget.command(
    cls=options.Command, short_help="Print the budget, what is left of it, and every charge."
)
@FILE
@options.with_output
def show(file: Path, form: Form) -> None:
    """Print the budget of a LEDGER, what is left of it, and every charge.

    For example:
      dpq-fast budget show staff.budget
    """
    printer = Printer(form, [file], plain="a budget")
    with opened_file(file) as found, refusals(), ledger():
        answer = _entries(file, found)
    printer.write(answer)


@budget.command(cls=options.Command, short_help="Check a ledger from its first entry to its last.")
@FILE
def check(file: Path) -> None:
    """Check a LEDGER from its first entry to its last: exit code 4 if something is wrong.

    For example:
      dpq-fast budget check staff.budget
    """
    with opened_file(file) as found, ledger():
        try:
            found.check()
            number = len(found.entries)
        except ValueError as error:
            raise Found(str(error)) from None
    click.echo(f"{file}: {number} charges, all within the budget, none missing or changed")


@budget.command(cls=options.Command, short_help="Write every charge to a file.")
@FILE
@options.option(
    options.OUTPUT,
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    multiple=True,
    metavar="FILE",
    help="Where to: .json or .csv. May be repeated.",
)
def export(file: Path, output: tuple[Path, ...]) -> None:
    """Write every charge of a LEDGER to a file.

    For example:
      dpq-fast budget export staff.budget --output spent.csv
    """
    printer = Printer(Form(output, None, False), [file], plain="a budget")
    with opened_file(file) as found, refusals(), ledger():
        answer = _entries(file, found)
    printer.save(answer)


def _entries(file: Path, found: Any) -> Answer:
    """The charges as a table."""
    entries = found.entries
    columns: dict[str, list[Any]] = {
        "number": [entry.number for entry in entries],
        "when": [entry.when.isoformat(timespec="seconds") for entry in entries],
        "what": [entry.what for entry in entries],
        "epsilon": [entry.guarantee.epsilon for entry in entries],
        "delta": [entry.guarantee.delta for entry in entries],
        "rho": [entry.guarantee.implied_rho for entry in entries],
        "neighbors": [entry.guarantee.neighbors for entry in entries],
    }
    rows = list(zip(*columns.values(), strict=True))
    left, spent = found.remaining, found.spent
    total = {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "neighbors": found.neighbors,
        "composition": found.composition,
    }
    facts = [
        f"{name} {'none' if each.epsilon is None else f'epsilon {each.epsilon:g}'}, "
        f"delta {each.delta:g}" + ("" if each.rho is None else f", rho {each.rho:g}")
        for name, each in (("spent:", spent), ("left:", left))
    ]
    shown = ("number", "when", "what", "epsilon", "delta")
    return Answer(
        title=f"Budget of {file}: epsilon {spelled(found.epsilon)}, delta {spelled(found.delta)}, "
        f"neighbors {found.neighbors}, composition {found.composition}",
        headings=list(shown),
        rows=[row[: len(shown)] for row in rows],
        notes="\n".join(facts),
        data={
            "budget": total,
            "spent": _stated(spent),
            "left": _stated(left),
            "charges": [dict(zip(columns, row, strict=True)) for row in rows],
        },
        columns=columns,
        texts=3,
    )


def _stated(guarantee: Any) -> dict[str, Any]:
    return {name: getattr(guarantee, name) for name in ("epsilon", "delta", "rho")}
