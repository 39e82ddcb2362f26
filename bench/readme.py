"""README's comparison: what it is better at, from the tables of the documentation.

Nothing is measured for it. Each figure is that of a row of a table that `bench/run.py --write`
keeps in the documentation, or a count of its audits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.tables import LOSSES, RANKS, TIMES, Row, Table

README = Path("README.md")
PERFORMANCE = Path("docs", "performance.md")
ACCURACY = Path("docs", "accuracy.md")
PEERS = Path("docs", "integrations", "peers.md")
AUDITS = Path("docs", "audits.md")

COMPARISON = Table("comparison", ("at", "dpq_fast", "others"))
# Of the numbers of levels in the table of errors, which is shown, and what it is called.
LEVELS = 1
INSIDE = re.compile(r"<!-- audit table: begin -->\n(.*)<!-- audit table: end -->", re.DOTALL)


class Timed(NamedTuple):
    """Rows of the table of times that become one.

    Attributes
    ----------
    at : str
        Column "at".
    sides : tuple of (str, str, str)
        "work" and "against" of each row, and what README calls the other side.
    """

    at: str
    sides: tuple[tuple[str, str, str], ...]


SPEED = (
    Timed(
        "30 quantiles of 10⁶ unsorted records",
        (
            ("unsorted, n = 10⁶, m = 30", "`np.quantile`", "`np.quantile`"),
            ("unsorted, n = 10⁶, m = 30, in another run", "opendp (2,001 candidates)", "opendp"),
            (
                "unsorted, n = 10⁶, m = 30, in another run",
                "diffprivlib, 30 times one level",
                "diffprivlib",
            ),
        ),
    ),
    Timed(
        "30 quantiles of 10⁸ unsorted records",
        (("unsorted, n = 10⁸, m = 30", "`np.quantile`", "`np.quantile`"),),
    ),
    Timed(
        "30 quantiles of 10⁷ rows of Parquet, in DuckDB",
        (
            (
                "10⁷ rows of Parquet files in DuckDB, one thread, m = 30",
                "`quantile_cont` of DuckDB",
                "its `quantile_cont`",
            ),
            (
                "10⁷ rows of Parquet files in DuckDB, one thread, m = 30",
                "`approx_quantile` of DuckDB",
                "its `approx_quantile`",
            ),
        ),
    ),
    Timed(
        "1 quantile of 10 records",
        (("n = 10, m = 1", "`np.quantile`", "`np.quantile`"),),
    ),
    Timed(
        "3 quantiles in each of 10⁶ groups of 100",
        (
            (
                "10⁶ groups of 100 rows, m = 3 (`quantile_by`, `workers=2`)",
                "loop over diffprivlib, scaled",
                "loop over diffprivlib",
            ),
        ),
    ),
)


def rows(root: Path) -> list[Row]:
    """The comparison that the tables below a folder give."""
    return [
        *_speed((root / PERFORMANCE).read_text("utf-8")),
        *_errors((root / ACCURACY).read_text("utf-8")),
        *_losses((root / PEERS).read_text("utf-8")),
        *_audits((root / AUDITS).read_text("utf-8")),
    ]


def write(root: Path) -> None:
    """Put the comparison into README."""
    path = root / README
    path.write_text(COMPARISON.written(path.read_text("utf-8"), rows(root)), "utf-8")


def _speed(document: str) -> Iterator[Row]:
    found: dict[tuple[str, str], tuple[str, str, str]] = {}
    work = ours = ""
    for first, time, against, theirs, ratio in TIMES.rows(document):
        work, ours = first or work, time or ours
        found[work, against] = ours, theirs, ratio
    for at, sides in SPEED:
        others = []
        for work, against, name in sides:
            _, theirs, ratio = found[work, against]
            others.append(f"{name} {theirs} (× {ratio})")
        yield at, found[sides[0][:2]][0], "; ".join(others)


def _errors(document: str) -> Iterator[Row]:
    for column, *cells in RANKS.rows(document):
        ours, *others = (cell.split(" / ")[LEVELS] for cell in cells)
        named = zip(RANKS.titles[2:], others, strict=True)
        yield f"ranks off: {column}, 5 levels", ours, "; ".join(map(" ".join, named))


def _losses(document: str) -> Iterator[Row]:
    for change, ours, *others in LOSSES.rows(document):
        named = zip(LOSSES.titles[2:], others, strict=True)
        yield f"ε found where 1 is claimed: {change}", ours, "; ".join(map(" ".join, named))


def _audits(document: str) -> Iterator[Row]:
    """Each audit's row ends with how many broken copies it has caught: "2 of 2"."""
    (inside,) = INSIDE.findall(document)
    caught = re.findall(r"\| (\d+) of (\d+) \|$", inside, re.MULTILINE)
    found, planted = (sum(map(int, column)) for column in zip(*caught, strict=True))
    audits = f"{len(caught)} audits; {found} of {planted} deliberately broken copies caught"
    yield "guarantee", audits, ""
