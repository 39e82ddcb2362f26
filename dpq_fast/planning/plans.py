"""What a plan is: predicted errors, as a table."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._arguments import in_our_words
from dpq_fast.planning.shapes import SHAPES
from dpq_fast.planning.words import digits
from dpq_fast.released.packing import Packed

# Rows of a table that is printed, and characters of a line below it.
MOST_PRINTED, MOST_WIDE = 60, 79


class Errors(NamedTuple):
    """Predicted errors, an entry for each row of a plan.

    Attributes
    ----------
    expected : ndarray of float64
        Mean over releases of the mean over levels.
    quantile : ndarray of float64
        What the mean over levels stays below in a share `level` of all releases.
    worst : ndarray of float64
        What the error of the worst level stays below in a share `level` of all releases.
    """

    expected: NDArray[np.float64]
    quantile: NDArray[np.float64]
    worst: NDArray[np.float64]


@in_our_words
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Plan(Packed, byte=7):
    """Predicted errors of releases: a row for each epsilon, method and group. See `plan`.

    Attributes
    ----------
    title : str
        What is predicted, in words.
    level : float
        The share of releases that `quantile` and `worst` of the errors are for.
    epsilon : ndarray of float64, shape (R,)
    method : ndarray of str, shape (R,)
        For sums and means, that of the clip; "none" for a public one.
    chosen : ndarray of bool, shape (R,)
        Whether the row's method is the one that "auto" takes there.
    group : ndarray of objects, shape (R,), or None
        Names, or places from 0.
    n : ndarray of int64, shape (R,)
        Number of records, or of persons, where the plan is about these.
    ranks : Errors or None
        In records, or persons, between an output and its target; None for sums and means. Without a
        guess the largest over all shapes of columns.
    values : Errors or None
        In the unit of the data; None for quantiles without a guess.
    uncertainty : ndarray of float64, shape (R,)
        Standard error of the first `Errors.quantile` there is, by simulation: a share of it.
    needed : float or None
        The smallest epsilon for the target; None without one.
    least : Errors or None
        Without a guess: of the first errors there are, the least over all shapes of columns
        (`dpq_fast.planning.shapes.SHAPES`), where `ranks` and `values` are the largest ones. None
        with a guess.
    shape : ndarray of str, shape (R,), or None
        Without a guess: the shape of the largest `Errors.quantile`.

    Examples
    --------
    >>> import dpq_fast as dpq
    >>> made = dpq.plan(0.5, n=1_000, bounds=(0, 120), epsilon=[0.5, 1.0])
    >>> made.epsilon.tolist(), made.method.tolist()
    ([0.5, 1.0], ['ind_exp', 'ind_exp'])
    >>> bool(made.ranks.expected[1] < made.ranks.expected[0])
    True
    """

    title: str
    level: float
    epsilon: NDArray[np.float64]
    method: NDArray[np.str_]
    chosen: NDArray[np.bool_]
    group: NDArray[Any] | None
    n: NDArray[np.int64]
    ranks: Errors | None
    values: Errors | None
    uncertainty: NDArray[np.float64]
    needed: float | None = None
    least: Errors | None = None
    shape: NDArray[np.str_] | None = None

    @classmethod
    def _of_parts(cls, parts: dict[str, Any]) -> Plan:
        errors = {
            name: None if parts[name] is None else Errors(*parts[name])
            for name in ("ranks", "values", "least")
        }
        plan = cls(**parts | errors)
        if plan.ranks is None and plan.values is None:
            raise ValueError("errors must be in ranks, or in the unit of the data")
        numbers = [plan.epsilon, plan.uncertainty, *first_of(plan)]
        numbers += [each for made in errors.values() for each in made or ()]
        columns = [*numbers, plan.method, plan.chosen, plan.n]
        columns += [column for column in (plan.group, plan.shape) if column is not None]
        if {column.shape for column in columns} != {(len(plan),)}:
            raise ValueError("columns must have an entry for each row")
        kinds = [column.dtype.kind for column in (plan.method, plan.chosen, plan.n, *numbers)]
        if kinds != [*"Ubi", *"f" * len(numbers)] or not isinstance(plan.title, str):
            raise ValueError("columns must be of the types that a plan has")
        if not (0.0 < plan.level < 1.0 and (plan.needed is None or plan.needed > 0.0)):
            raise ValueError("level must lie strictly between 0 and 1, and needed be positive")
        return plan

    def __len__(self) -> int:
        """Number of rows."""
        return self.epsilon.size

    @property
    def shares(self) -> Errors | None:
        """`ranks` as shares of the records, or of the weight of all persons."""
        return None if self.ranks is None else Errors(*(each / self.n for each in self.ranks))

    @property
    def best(self) -> NDArray[np.bool_]:
        """Whether no other method has a smaller `quantile` at the row's epsilon."""
        if self.group is not None:
            return np.ones(len(self), dtype=bool)  # of one method
        quantile = first_of(self).quantile
        least = {
            budget: quantile[self.epsilon == budget].min() for budget in set(self.epsilon.tolist())
        }
        return quantile <= np.array([least[budget] for budget in self.epsilon.tolist()])

    def columns(self) -> dict[str, NDArray[Any]]:
        """The table, by name of its columns."""
        shown: dict[str, NDArray[Any]] = {"epsilon": self.epsilon, "method": self.method}
        if self.group is not None:
            shown |= {"group": self.group}
        shown |= {"n": self.n}
        for unit, errors in (("ranks", self.ranks), ("value", self.values)):
            if errors is not None:
                shown |= {f"{name} {unit}": each for name, each in errors._asdict().items()}
        if self.least is not None and self.shape is not None:
            shown |= {f"least {name}": each for name, each in self.least._asdict().items()}
            shown |= {"shape": self.shape}
        return shown | {"uncertainty": self.uncertainty, "auto": self.chosen, "best": self.best}

    @in_our_words
    def to_frame(self) -> Any:
        """The table as a data frame.

        Returns
        -------
        pandas.DataFrame
            With a row for each row, and the names of `columns`.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = _checks.extra("pandas", "to_frame", "pandas")
        return pd.DataFrame(self.columns())

    @in_our_words
    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the errors against epsilon: `dpq_fast.plots.plan`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Default: those of a new figure.
        **options
            For ``ax.plot``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        """
        from dpq_fast import plots  # which draws plans

        return plots.plan(self, ax, **options)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        share = f"{self.level:.3g}"
        shown = min(len(self), MOST_PRINTED)
        rows = slice(shown)
        marks = ["*" if each and not self.chosen.all() else "" for each in self.chosen[rows]]
        table = [["", "epsilon", *map(digits, self.epsilon[rows])]]
        table.append(["", "method", *map("".join, zip(self.method[rows], marks, strict=True))])
        if self.group is not None:
            table.append(["", "group", *map(str, self.group[rows])])
            table.append(["", "n", *(f"{n:,}" for n in self.n[rows])])
        words = len(table) - (self.group is not None)
        worst = False
        for unit, errors in (("ranks", self.ranks), ("value", self.values)):
            if errors is None:
                continue
            least = errors if self.least is None else self.least
            found = [
                [_range(*ends) for ends in zip(low[rows], high[rows], strict=True)]
                for low, high in zip(least, errors, strict=True)
            ]
            table.append([unit, "mean", *found[0]])
            table.append(["", share, *found[1]])
            if not np.array_equal(errors.worst, errors.quantile):
                table.append(["", "worst", *found[2]])
                worst = True
        widths = [max(map(len, column)) for column in table]
        lines = [
            "  ".join(
                cell.ljust(width) if 1 <= i < words else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in zip(*table, strict=True)
        ]
        lines.insert(2, "  ".join("-" * width for width in widths))
        if len(self) > shown:
            lines.append(f"... {len(self) - shown:,} more rows")
        keys = [f"{share}: in this share of releases the error (mean over levels) is not larger."]
        if worst:
            keys.append(f"worst: in a share of {share} of releases no level has a larger error.")
        if self.values is not None:
            right = ", if the guess is right" if self.least is None else ""
            keys.append(f"value: errors in the unit of the data{right}.")
        if self.least is not None:
            shapes = f"to: from the least to the largest over these shapes: {', '.join(SHAPES)}."
            keys += textwrap.wrap(shapes, MOST_WIDE)
        if any(marks):
            keys.append("*: the method that auto takes.")
        if self.needed is not None:
            every = "" if self.least is None else ", for every shape"
            keys.append(f"Smallest epsilon for the target{every}: {digits(self.needed)}")
        return "\n".join([self.title, "", *lines, "", *keys])


def _range(least: float, largest: float) -> str:
    """Both, or one where they are the same."""
    low, high = digits(least), digits(largest)
    return low if low == high else f"{low} to {high}"


def first_of(plan: Plan) -> Errors:
    """The errors in ranks, or those in the unit of the data."""
    errors = plan.ranks or plan.values
    assert errors is not None
    return errors
