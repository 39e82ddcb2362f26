"""Where tables are printed, and how long to take."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from bench.errors import DRAWS


@dataclass(frozen=True)
class Report:
    """Tables on the console.

    Attributes
    ----------
    quick : bool
        Fewer samples, draws and settings.
    """

    quick: bool
    console: Console = field(
        default_factory=lambda: Console(width=None if Console().is_terminal else 118)
    )

    @property
    def seconds(self) -> float:
        """For one comparison of times."""
        return 0.5 if self.quick else 4.0

    @property
    def draws(self) -> int:
        return 200 if self.quick else DRAWS

    def table(self, title: str, *columns: str, caption: str | None = None) -> Table:
        table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
        for i, column in enumerate(columns):
            table.add_column(column, justify="right" if i else "left")
        return table

    def print(self, table: Table) -> None:
        self.console.print(table)
        self.console.print()


def digits(number: float) -> str:
    """Three digits, or all those before the point."""
    return f"{number:,.0f}" if number >= 99.5 else f"{number:.3g}"


def error(mean_and_error: tuple[float, float]) -> str:
    return "{:.2f} ± {:.2f}".format(*mean_and_error)
