"""Tables of the documentation, each between two marks, and which rows stand in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bench import costs
from bench.case import Case, CostCase, ErrorCase, LossCase
from bench.measure import count

Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table, by the name in its marks and the titles of its columns."""

    name: str
    titles: Row

    def rows(self, document: str) -> list[Row]:
        """The cells that stand in a document."""
        _, inside, _ = self._parts(document)
        lines = inside.strip().split("\n")[2:]
        return [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in lines]

    def written(self, document: str, rows: Iterable[Row]) -> str:
        """The document with these rows."""
        before, _, after = self._parts(document)
        lines = [_line(self.titles), f"|{'---|' * len(self.titles)}", *map(_line, rows)]
        return "\n".join([before, *lines, after])

    def updated(self, document: str, works: Iterable[str], measured: dict[str, list[Row]]) -> str:
        """The document with the rows of these works: those measured, and for others the old ones.

        Rows of an empty first cell go with the one above.
        """
        found: dict[str, list[Row]] = {}
        work = ""
        for row in self.rows(document):
            work = row[0] or work
            found.setdefault(work, []).append(row)
        found |= measured
        return self.written(document, [row for work in works for row in found[work]])

    def _parts(self, document: str) -> tuple[str, str, str]:
        begin, end = f"<!-- {self.name}: begin -->", f"<!-- {self.name}: end -->"
        before, rest = document.split(begin)
        inside, after = rest.split(end)
        return before + begin, inside, end + after


def _line(cells: Row) -> str:
    return f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in cells)}|"


TIMES = Table("bench table", ("work", "ours", "against", "time", "ratio"))
COSTS = Table("cost table", ("records and budget", *(f"m = {m:,}" for m in costs.LEVELS)))
RANKS = Table("error table", ("column", "`joint_exp`", "published algorithm", "diffprivlib"))
LOSSES = Table("loss table", ("one record", "`dpq_fast.median`", "diffprivlib"))


def works(case: Case | CostCase | ErrorCase | LossCase) -> list[str]:
    """The first cells that a case has in its table, one for each size."""
    if isinstance(case, LossCase):
        return [case.change]
    if isinstance(case, ErrorCase):
        return [case.column]
    if isinstance(case, CostCase):
        return [case.work]
    return [case.work.format(size=count(size)) for size in case.sizes]
