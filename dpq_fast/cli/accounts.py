"""What a release is charged to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dpq_fast.cli import failures
from dpq_fast.cli.options import Privacy
from dpq_fast.privacy import Accountant, Guarantee, compose

SWAP = "swap"


class Account(Accountant):
    """Hands a charge on to the budget, if there is one, and keeps it for the report.

    Parameters
    ----------
    path : Path or None
        The file of the budget.
    budget : Accountant or None
        That of the file.
    beside : Guarantee, optional
        What a further release promises that is charged together with this one.

    Attributes
    ----------
    guarantee : Guarantee or None
        What was charged, once it was.
    """

    def __init__(
        self, path: Path | None = None, budget: Any = None, beside: Guarantee | None = None
    ) -> None:
        if budget is None:
            super().__init__(1.0)
        else:
            super().__init__(budget.epsilon, budget.delta, budget.neighbors, budget.composition)
        self._file_name, self._ledger, self._beside = path, budget, beside
        self.guarantee: Guarantee | None = None

    def charge(self, guarantee: Guarantee) -> None:
        """Refused by the budget, or kept."""
        if self._beside is not None:
            guarantee = compose([guarantee, self._beside])
        if self._ledger is not None:
            with failures.ledger():
                self._ledger.charge(guarantee)
        self.guarantee = guarantee

    def left(self) -> str:
        """What is left of the budget, for a report; nothing where there is none."""
        if self._ledger is None:
            return ""
        with failures.ledger():
            left = self._ledger.remaining
        amount = f"rho {left.rho:g}" if left.epsilon is None else f"epsilon {left.epsilon:g}"
        if left.epsilon is not None and self._ledger.delta:
            amount += f", delta {left.delta:g}"
        return f"\nleft in {self._file_name}: {amount}"

    @contextmanager
    def releasing(self) -> Iterator[None]:
        """Say what is refused before the charge, and of what fails after it that it did."""
        with failures.refusals(str(self._file_name)):
            try:
                yield
            except (TypeError, ValueError, ImportError):
                if self.guarantee is None:
                    raise
                raise failures.Broken(
                    "the release failed; what was charged stays charged"
                ) from None


@contextmanager
def opened(
    privacy: Privacy, what: str, beside: Callable[[str], Guarantee] | None = None
) -> Iterator[tuple[Account, str]]:
    """An account for one release, and the relation that it is under.

    Parameters
    ----------
    privacy : Privacy
    what : str
        What the release is for, in public words: what the budget notes.
    beside : callable, optional
        Gives what a further release promises under a relation.
    """

    def account(neighbors: str, budget: Any = None) -> Account:
        with failures.refusals():
            more = None if beside is None else beside(neighbors)
        return Account(privacy.budget, budget, more)

    if privacy.budget is None:
        neighbors = privacy.neighbors or SWAP
        yield account(neighbors), neighbors
        return
    path = privacy.budget
    with opened_file(path) as budget:
        if privacy.neighbors not in (None, budget.neighbors):
            raise click.UsageError(
                f"--neighbors must be that of the budget in {path}, {budget.neighbors}, "
                f"got {privacy.neighbors}"
            )
        with budget.noted(what):
            yield account(budget.neighbors, budget), budget.neighbors


@contextmanager
def opened_file(path: Path) -> Iterator[Any]:
    """The accountant of a file that is there."""
    with failures.refusals(), failures.ledger():
        budget = Accountant.open(path)
    with budget:
        yield budget
