"""What a plan is asked for: epsilons, or the smallest one for a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dpq_fast import _checks
from dpq_fast.data.keys import objects
from dpq_fast.planning.plans import Errors, Plan
from dpq_fast.planning.samples import MOST_RELEASES, SAMPLES
from dpq_fast.planning.words import rounded_up

EPSILONS = (0.01, 0.03, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# Where the smallest epsilon for a target is looked for, and how close it is: a ratio.
LEAST_EPSILON, MOST_EPSILON, CLOSE = 1e-4, 100.0, 1.01
UNITS, SUMMARIES = ("ranks", "share", "value"), ("mean", "worst")


class PlanRequest(NamedTuple):
    """The arguments that quantiles and sums share, checked.

    Attributes
    ----------
    epsilons : list of float
    target : float or None
    unit, over, level, releases
        As in `plan`.
    """

    epsilons: list[float]
    target: float | None
    unit: str
    over: str
    level: float
    releases: int

    @classmethod
    def of(
        cls, epsilon: Any, target: Any, unit: str, over: str, level: Any, releases: Any
    ) -> PlanRequest:
        """Check them."""
        _checks.check_choice("unit", unit, UNITS)
        _checks.check_choice("over", over, SUMMARIES)
        level = _checks._real("level", level)
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must lie strictly between 0 and 1, got {level}")
        releases = _checks.check_count("releases", releases, SAMPLES)
        if releases > MOST_RELEASES:
            raise ValueError(f"releases must be at most {MOST_RELEASES:,}, got {releases}")
        if target is not None:
            target = _checks._positive("target", target)
            if epsilon is not None:
                raise ValueError("epsilon must be left out with a target")
        return cls(_budgets(epsilon), target, unit, over, level, releases)

    def answer(
        self, title: str, guesses: dict[str, Callable[[float], list[Row]]], has_values: bool
    ) -> Plan:
        """The plan of the rows at each epsilon, or at the smallest one for the target.

        Of several guesses, by name, the largest errors.
        """
        needed = None
        if self.target is None:
            rows = [row for budget in self.epsilons for row in largest(guesses, budget)]
        else:
            needed, rows = self._smallest(guesses, self.target)
        columns = list(zip(*rows, strict=True))
        epsilons, methods, chosen, groups, sizes, ranks, values, uncertainty, least, shapes = (
            columns
        )
        return Plan(
            title,
            self.level,
            np.array(epsilons),
            np.array(methods),
            np.array(chosen),
            None if groups[0] is None else objects(groups),
            np.array(sizes),
            None if ranks[0] is None else Errors(*np.array(ranks).T),
            Errors(*np.array(values).T) if has_values else None,
            np.array(uncertainty),
            needed,
            None if least[0] is None else Errors(*np.array(least).T),
            None if least[0] is None else np.array(shapes),
        )

    def _smallest(
        self, guesses: dict[str, Callable[[float], list[Row]]], target: float
    ) -> tuple[float, list[Row]]:
        """The smallest epsilon whose rows reach the target, and these."""
        order = list(guesses)  # the guess that failed last is asked first

        def reached(budget: float) -> bool:
            rows: list[Row] = []
            for name in list(order):
                rows = _larger(rows, guesses[name](budget), name)
                if self._error(rows) > target:
                    order.remove(name)
                    order.insert(0, name)
                    return False
            return True

        high = 1.0
        while not reached(high):
            if high == MOST_EPSILON:
                raise ValueError(
                    f"target must be an error that some epsilon up to {MOST_EPSILON:g} reaches, "
                    f"got {target:g} where {self._error(largest(guesses, high)):.3g} is the least"
                    + ("" if len(guesses) == 1 else f" for the shape {order[0]!r}; give a guess")
                )
            high = min(4.0 * high, MOST_EPSILON)
        low = high / 4.0
        while low >= LEAST_EPSILON and reached(low):
            low, high = low / 4.0, low
        low = max(low, LEAST_EPSILON)
        if low < high and reached(low):
            high = low
        while high / low > CLOSE:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if reached(middle) else (middle, high)
        # Three digits, upwards; what they are more may be less than simulations are off.
        shown = rounded_up(high)
        while not reached(shown) and shown < MOST_EPSILON:
            shown = rounded_up(shown * CLOSE)
        return shown, largest(guesses, shown)

    def _error(self, rows: list[Row]) -> float:
        """What the target is for: of groups the largest, of methods the smallest."""
        found = []
        for row in rows:
            errors = row.values if self.unit == "value" else row.ranks
            assert errors is not None
            error = errors.worst if self.over == "worst" else errors.quantile
            found.append(float(error) / (row.n if self.unit == "share" else 1.0))
        return min(found) if rows[0].group is None else max(found)


class Row(NamedTuple):
    """A row of a plan, in the order of its attributes."""

    epsilon: float
    method: str
    chosen: bool
    group: Any
    n: int
    ranks: Errors | None
    values: Errors
    uncertainty: float
    least: Errors | None = None
    shape: str | None = None


def largest(guesses: dict[str, Callable[[float], list[Row]]], epsilon: float) -> list[Row]:
    """The largest errors over all guesses; the least ones beside them, of several guesses."""
    if len(guesses) == 1:
        (rows_at,) = guesses.values()
        return rows_at(epsilon)
    rows: list[Row] = []
    for name, rows_at in guesses.items():
        rows = _larger(rows, rows_at(epsilon), name)
    return rows


def _larger(rows: list[Row], others: list[Row], shape: str) -> list[Row]:
    """Rows with the larger errors of both; `rows` is empty or has been made here."""
    if not rows:
        return [each._replace(least=_first(each), shape=shape) for each in others]
    made = []
    for own, other in zip(rows, others, strict=True):
        assert own.least is not None
        top = other._replace(shape=shape)
        if _first(other).quantile <= _first(own).quantile:
            top = own
        made.append(
            top._replace(
                ranks=None if own.ranks is None else _each(max, own.ranks, other.ranks),
                values=_each(max, own.values, other.values),
                least=_each(min, own.least, _first(other)),
            )
        )
    return made


def _each(choose: Callable[..., Any], *errors: Any) -> Errors:
    """The largest or the least of the errors, one by one."""
    return Errors(*map(choose, *errors))


def _first(row: Row) -> Errors:
    """The errors in ranks, or those in the unit of the data."""
    return row.values if row.ranks is None else row.ranks


def _budgets(epsilon: Any) -> list[float]:
    """Checked epsilons: the default ones, one, or several."""
    if epsilon is None:
        return list(EPSILONS)
    if isinstance(epsilon, (str, bytes, Mapping)) or not np.iterable(epsilon):
        return [_checks.check_epsilon(epsilon)]
    budgets = [_checks.check_epsilon(each) for each in epsilon]
    if not budgets:
        raise ValueError("epsilon must hold at least one budget, got none")
    return budgets
