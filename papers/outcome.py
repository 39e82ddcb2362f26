"""What an item of the papers came out as: rows with a verdict each, tables and curves, as JSON."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bench.columns import REAL, ROOT
from bench.measure import machine

RESULTS = ROOT / "papers" / "results"
# Standard errors between two numbers that are said to differ; and between a second run and the
# committed one before the check fails, of which there are hundreds.
APART, AGAIN = 3.0, 5.0
# Trials of the papers over those of a quick run, about.
FULL = 20.0
REPRODUCED, BETTER, WORSE, NOT_POSSIBLE = VERDICTS = (
    "reproduced",
    "better",
    "worse",
    "not possible",
)


@dataclass(frozen=True)
class Effort:
    """How many trials: those of the papers, or `times` as many as a quick run has."""

    times: float = 1.0
    full: bool = False

    def of(self, quick: int, full: int) -> int:
        return full if self.full else max(2, min(full, round(quick * self.times)))


@dataclass
class Row:
    """One comparison.

    Attributes
    ----------
    name : str
        What was measured.
    ours, se : float
        The number found, and its standard error.
    paper, paper_se : float, optional
        What it is compared with: a number of the paper, or, where `says` tells, the published way
        as it was run here.
    says : str
        The paper's words, where it prints no number.
    verdict : str
        One of `VERDICTS`; by the difference, errors being better where they are smaller, unless it
        is given.
    why : str
        The reason for a difference.
    timed : bool
        A time: another run has another one.
    """

    name: str
    ours: float | None
    se: float = 0.0
    paper: float | None = None
    paper_se: float = 0.0
    says: str = ""
    verdict: str = ""
    why: str = ""
    timed: bool = False

    def __post_init__(self) -> None:
        if self.ours is not None:
            self.ours, self.se = float(self.ours), float(self.se)
        if not self.verdict:
            distance = self.apart
            assert distance is not None, self.name
            near = abs(distance) <= APART
            self.verdict = REPRODUCED if near else BETTER if distance < 0.0 else WORSE

    @property
    def apart(self) -> float | None:
        """The difference in standard errors; infinite where neither has one."""
        if self.ours is None or self.paper is None:
            return None
        error = math.hypot(self.se, self.paper_se)
        if error == 0.0:
            same = math.isclose(self.ours, self.paper, rel_tol=1e-9)
            return 0.0 if same else math.copysign(math.inf, self.ours - self.paper)
        return (self.ours - self.paper) / error


def claim(name: str, says: str, ours: float, holds: bool, **more: Any) -> Row:
    """A row for what a paper says without a number to subtract from."""
    return Row(name, ours, says=says, verdict=REPRODUCED if holds else WORSE, **more)


@dataclass
class Outcome:
    """Rows of an item, tables beside them, and what its pictures show."""

    rows: list[Row] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    curves: dict[str, Any] = field(default_factory=dict)
    trials: str = ""
    skipped: list[str] = field(default_factory=list)

    def table(self, title: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
        self.tables.append({"title": title, "head": list(head), "rows": [list(r) for r in rows]})


def mean_of(values: ArrayLike) -> tuple[float, float]:
    """Mean and its standard error."""
    found = np.asarray(values, np.float64)
    return float(found.mean()), float(found.std(ddof=1) / math.sqrt(found.size))


def ratio_of(above: ArrayLike, below: ArrayLike) -> tuple[float, float]:
    """A ratio of means over the same trials, and its standard error."""
    a, b = np.asarray(above, np.float64), np.asarray(below, np.float64)
    ratio = float(a.mean() / b.mean())
    return ratio, float((a - ratio * b).std(ddof=1) / math.sqrt(a.size) / b.mean())


def there(names: Iterable[str], outcome: Outcome) -> list[str]:
    """Those of the real columns whose files there are; the others are skipped by name."""
    kept = []
    for name in names:
        if REAL[name].path.exists():
            kept.append(name)
        else:
            outcome.skipped.append(f"{name}: needs the file of {REAL[name].file}")
    return kept


# --- As JSON --------------------------------------------------------------------------------------


def saved(key: str, outcome: Outcome, effort: Effort, seconds: float) -> dict[str, Any]:
    """What is written for an item."""
    return {
        "item": key,
        "date": date.today().isoformat(),
        "machine": machine(),
        "commit": _commit(),
        "seeds": "all drawn by numpy's default_rng from seeds that start at 0",
        "effort": asdict(effort),
        "seconds": round(seconds, 1),
        **asdict(outcome),
    }


def _commit() -> str:
    """Short, and empty outside a clone."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return found.stdout.strip()


def write(folder: Path, key: str, data: dict[str, Any]) -> None:
    """One line for each row, table and curve."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for name, value in _rounded(data).items():
        if isinstance(value, list) and value:
            lines = ",\n  ".join(json.dumps(each, ensure_ascii=False) for each in value)
            parts.append(f'"{name}": [\n  {lines}\n ]')
        elif isinstance(value, dict) and value:
            pairs = (f'"{k}": {json.dumps(each, ensure_ascii=False)}' for k, each in value.items())
            parts.append(f'"{name}": {{\n  ' + ",\n  ".join(pairs) + "\n }")
        else:
            parts.append(f'"{name}": {json.dumps(value, ensure_ascii=False)}')
    (folder / f"{key}.json").write_text("{\n " + ",\n ".join(parts) + "\n}\n", "utf-8")


def read(folder: Path, key: str) -> dict[str, Any] | None:
    """What was written for an item, rows as such; None without a file."""
    path = folder / f"{key}.json"
    if not path.exists():
        return None
    data = json.loads(path.read_text("utf-8"))
    data["rows"] = [Row(**row) for row in data["rows"]]
    return data


def _rounded(value: Any) -> Any:
    """Numbers of six digits: files are read by people, too."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, np.generic):
        return _rounded(value.item())
    if isinstance(value, np.ndarray):
        return _rounded(value.tolist())
    if isinstance(value, dict):
        return {str(key): _rounded(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(each) for each in value]
    return value


def differences(before: dict[str, Any], rows: Iterable[Row], effort: Effort) -> list[str]:
    """Rows of a second run that are farther from the committed ones than their errors allow."""
    known = {row.name: row for row in before["rows"]}
    times = FULL if before["effort"]["full"] else before["effort"]["times"]
    fewer = max(1.0, times / effort.times)
    found = []
    for row in rows:
        old = known.get(row.name)
        if old is None or old.ours is None or row.ours is None or row.timed:
            continue
        # few trials know little of their own spread
        error = math.hypot(old.se, max(row.se, old.se * math.sqrt(fewer)))
        if abs(row.ours - old.ours) > AGAIN * error + 1e-5 * abs(old.ours) + 1e-9:
            found.append(f"{row.name}: {row.ours:.6g} ± {row.se:.2g}, was {old.ours:.6g}")
    return found


Item = Callable[[Effort], Outcome]
