"""What a guarantee about persons costs who have several rows each: ways to give it, compared.

Of no paper: ours. 2,000 persons have 1 to 50 rows, 6.7 in the mean, of values that depend on the
person. All errors are of one estimand, the quantiles of a random record of a random person: shares
of the weight between an answer and its target. By group there is a second one, the quantiles of a
random record in the group of a random person who has one there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from papers.report import Report

PERSONS, MOST_ROWS, MEAN_ROWS = 2_000, 50, 6.7
GROUPS = 10
# Microseconds, say: a person's middle is spread by a factor of 1.65, and rows around it by 1.35.
BOUNDS, RESOLUTION = (0, 10_000_000), 1
MIDDLE, OF_PERSONS, OF_ROWS, OF_GROUPS = np.log(100_000.0), 0.5, 0.3, 0.05
# Where values go by it: persons of twice as many rows have values as much larger.
OF_NUMBER = 0.2
DECILES = np.arange(1, 10) / 10
ASKED: dict[str, tuple[Any, float]] = {
    "median, ε = 0.1": ([0.5], 0.1),
    "median, ε = 1": ([0.5], 1.0),
    "deciles, ε = 0.3": (DECILES, 0.3),
}


class Rows(NamedTuple):
    """Columns of a table."""

    person: NDArray[np.int64]
    group: NDArray[np.int64]
    value: NDArray[np.float64]

    def where(self, kept: NDArray[Any]) -> Rows:
        """Some of the rows."""
        return Rows(*(column[kept] for column in self))

    def shuffled(self, rng: np.random.Generator) -> Rows:
        """The same in a random order."""
        return self.where(rng.permutation(self.value.size))


def rows(rng: np.random.Generator, of_number: float = 0.0) -> Rows:
    """A table; `of_number` is how far values go by the number of rows of their person."""
    number = np.minimum(rng.geometric(1.0 / MEAN_ROWS, PERSONS), MOST_ROWS)
    person = np.repeat(np.arange(PERSONS), number)
    group = rng.integers(0, GROUPS, person.size)
    middle = MIDDLE + OF_PERSONS * rng.normal(size=PERSONS)
    middle += of_number * np.log2(number / MEAN_ROWS)
    logs = middle[person] + OF_ROWS * rng.normal(size=person.size) + OF_GROUPS * group
    return Rows(person, group, np.rint(np.exp(logs)))


def first_of_each(keys: NDArray[np.int64]) -> NDArray[np.intp]:
    """Where each key is for the first time: of rows in a random order, a random row of each."""
    return np.unique(keys, return_index=True)[1]


def shares_off(
    values: NDArray[np.float64], weights: NDArray[np.float64], q: Any, o: Any
) -> NDArray[np.float64]:
    """The share of the weight between each output and its target; 0 inside a run of ties."""
    order = np.argsort(values)
    ordered = values[order]
    below = np.concatenate(([0.0], np.cumsum(weights[order]) / weights.sum()))
    left, right = (below[np.searchsorted(ordered, o, side)] for side in ("left", "right"))
    return np.maximum(np.maximum(left - q, q - right), 0.0)


def of_random_persons(table: Rows) -> NDArray[np.float64]:
    """The weights of a random record of a random person."""
    return 1.0 / np.bincount(table.person)[table.person]


def _weights(table: Rows, **options: Any) -> Any:
    return dpq.quantile(table.value, privacy_unit=table.person, **options)


def _one_row(table: Rows, **options: Any) -> Any:
    return dpq.quantile(table.value[first_of_each(table.person)], **options)


def _five_rows(table: Rows, **options: Any) -> Any:
    return dpq.quantile(table.value, privacy_unit=table.person, contributions=5, **options)


def _all_rows(table: Rows, **options: Any) -> Any:
    return dpq.quantile(table.value, max_contributions=MOST_ROWS, **options)


WAYS: dict[str, Callable[..., Any]] = {
    "weights": _weights,
    "one random row of each": _one_row,
    "five rows of each": _five_rows,
    "all rows, max_contributions=50": _all_rows,
}
# No way: what a release of as many persons with a row each would be off.
LONE = "persons of one row each"


def persons(report: Report, out: Path) -> None:
    """One column; then by group, against keeping so many groups of each."""
    draws = 20 if report.quick else 1_000
    for title, of_number in (
        ("values that do not go by the number of rows", 0.0),
        ("values that are larger where persons have more rows", OF_NUMBER),
    ):
        table = report.table(
            f"Shares of the weight off, of {PERSONS:,} persons, in %: {title}", "way", *ASKED
        )
        for way, release in (WAYS | {LONE: _weights}).items():
            cells = (
                _error(release, *asked, of_number, draws, way == LONE) for asked in ASKED.values()
            )
            table.add_row(way, *cells)
        report.print(table)
    _by_group(report, draws)


def _error(
    release: Callable[..., Any], q: Any, epsilon: float, of_number: float, draws: int, lone: bool
) -> str:
    """The mean error over releases of fresh tables."""
    errors = np.empty(draws)
    for seed in range(draws):
        table = rows(np.random.default_rng([seed, 0]), of_number)
        table = table.shuffled(np.random.default_rng([seed, 1]))
        if lone:
            table = table.where(first_of_each(table.person))
        answers = release(
            table,
            q=q,
            epsilon=epsilon,
            bounds=BOUNDS,
            resolution=RESOLUTION,
            rng=np.random.default_rng([seed, 2]),
        )
        errors[seed] = shares_off(table.value, of_random_persons(table), q, answers).mean()
    return _percent(errors)


def _percent(errors: NDArray[np.float64]) -> str:
    """A mean and two standard errors."""
    mean, beside = errors.mean(), 2.0 * errors.std(ddof=1) / np.sqrt(errors.size)
    return f"{100 * mean:.3f} ± {100 * beside:.3f}"


def _by_group(report: Report, draws: int) -> None:
    """Medians of ten groups: one weight for all of them, or L groups of each and ε / L."""
    ways: dict[str, Callable[..., Any]] = {"weights": _weights_by}
    ways |= {f"L = {kept}": _split_by(kept) for kept in range(1, GROUPS + 1)}
    budgets = (0.3, 1.0)
    table = report.table(
        f"Medians by {GROUPS} groups, shares of the weight of a group off, in %, add-remove; of a "
        "random record of a random person, and (in brackets) of a random person of the group",
        "way",
        *(f"ε = {epsilon}" for epsilon in budgets),
    )
    for way, release in ways.items():
        cells = []
        for epsilon in budgets:
            errors = np.empty((2, draws))
            for seed in range(draws):
                errors[:, seed] = _group_errors(release, epsilon, seed)
            cells.append(f"{_percent(errors[0])} ({_percent(errors[1])})")
        table.add_row(way, *cells)
    report.print(table)


def _group_errors(release: Callable[..., Any], epsilon: float, seed: int) -> tuple[float, float]:
    """The means over groups, by both estimands."""
    table = rows(np.random.default_rng([seed, 0])).shuffled(np.random.default_rng([seed, 1]))
    options = dict(bounds=BOUNDS, resolution=RESOLUTION, neighbors="add-remove")
    answers = release(table, epsilon, np.random.default_rng([seed, 2]), **options)
    weights, errors = of_random_persons(table), np.empty((2, GROUPS))
    for group, answer in enumerate(answers):
        own = table.group == group
        inside = table.where(own)
        for place, each in enumerate((weights[own], of_random_persons(inside))):
            errors[place, group] = shares_off(inside.value, each, 0.5, answer)
    return tuple(errors.mean(axis=1).tolist())


def _weights_by(table: Rows, epsilon: float, rng: np.random.Generator, **options: Any) -> Any:
    return dpq.quantile_by(
        table.value,
        table.group,
        0.5,
        groups=range(GROUPS),
        privacy_unit=table.person,
        epsilon=epsilon,
        rng=rng,
        **options,
    ).values


def _split_by(most: int) -> Callable[..., Any]:
    """Up to so many random groups of each person; in each the person's rows share one weight."""

    def release(table: Rows, epsilon: float, rng: np.random.Generator, **options: Any) -> Any:
        pairs = table.person * GROUPS + table.group
        first = first_of_each(pairs)
        order = np.lexsort((rng.random(first.size), table.person[first]))
        person = table.person[first][order]
        start = np.flatnonzero(np.diff(person, prepend=-1))
        place = np.arange(person.size) - np.repeat(start, np.diff(start, append=person.size))
        kept = table.where(np.isin(pairs, pairs[first][order][place < most]))
        return [
            dpq.quantile(
                own.value,
                0.5,
                privacy_unit=own.person,
                epsilon=epsilon / most,
                rng=rng,
                **options,
            )
            for own in (kept.where(kept.group == group) for group in range(GROUPS))
        ]

    return release
