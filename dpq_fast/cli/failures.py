"""How the command ends: exit codes, and messages without a traceback and without records.

What the library refuses it refuses for public arguments, before the call is charged: its messages
are shown. What fails once records are read may depend on them, and so may every word about it: then
a fixed sentence is shown.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import click

import dpq_fast as dpq

ANSWERED, BUDGET, USAGE, BROKEN, FOUND, INTERRUPTED = 0, 1, 2, 3, 4, 130
CODES = {
    ANSWERED: "answered",
    BUDGET: "refused by the budget of --budget: nothing was read or charged",
    USAGE: "refused for an option, a column or a file: nothing was charged",
    BROKEN: "a file could not be read or written to its end: a charge stays",
    FOUND: "`audit` or `budget check` found what must not be",
    INTERRUPTED: "interrupted: a charge stays",
}


class Refused(click.ClickException):
    """The budget has too little left."""

    exit_code = BUDGET


class Broken(click.ClickException):
    """A file that breaks off, or that nobody can write."""

    exit_code = BROKEN


class Found(click.ClickException):
    """A check that failed."""

    exit_code = FOUND


class Interrupted(click.ClickException):
    """By the user."""

    exit_code = INTERRUPTED


@contextmanager
def refusals(budget: str | None = None) -> Iterator[None]:
    """Say what the library refuses.

    Parameters
    ----------
    budget : str, optional
        The file of the budget.
    """
    try:
        yield
    except dpq.privacy.BudgetExceeded as error:
        raise Refused(f"the budget in {budget}: {error}") from None
    except (TypeError, ValueError, ImportError) as error:
        raise click.UsageError(str(error)) from None


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Say no more than that a file of records could not be read.

    Parameters
    ----------
    name : str
        What is said of it.
    """
    try:
        yield
    except Exception:  # its words may hold a record, and its kind follow from one
        raise Broken(
            f"{name} could not be read to its end, or not as what its columns declare"
        ) from None


@contextmanager
def ledger() -> Iterator[None]:
    """Say what is wrong with the file of a budget, of which nothing is private."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise Broken(str(error)) from None
