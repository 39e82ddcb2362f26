"""How far off releases will be, before any record is read: which epsilon, which method.

A plan reads the laws and noises that releases draw from, on public samples: records that are drawn
from a public guess at the data. It takes no records, spends nothing, and gives the same answer at
every call. A sample keeps the order statistics near the levels; the farther away, the more records
it has in one place. So it is small for any number of records.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.leaves import Leaves, points_below
from dpq_fast.data.order import CountedOrder
from dpq_fast.data.sample import Sample
from dpq_fast.laws.depth import DepthLaw
from dpq_fast.laws.path import PathLaw
from dpq_fast.mechanisms import aggregates
from dpq_fast.mechanisms.agg_tree import PartialTree, noised
from dpq_fast.mechanisms.approx_quantiles import ApproxQuantilesLaw
from dpq_fast.mechanisms.quantile import choose_method
from dpq_fast.mechanisms.quantile_by import method_of
from dpq_fast.mechanisms.unbounded_quantile import unbounded_ends, unbounded_quantile_law
from dpq_fast.privacy.agg_tree import SPREAD
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of

EPSILONS = (0.01, 0.03, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# Where the smallest epsilon for a target is looked for, and how close it is: a ratio.
LEAST_EPSILON, MOST_EPSILON, CLOSE = 1e-4, 100.0, 1.01
# Public samples of the guess, at least, and releases of all of them together.
SAMPLES, RELEASES, MOST_RELEASES = 100, 1_000, 1_000_000
# Of each sample at most so many releases, where samples have no more entries than this together.
DRAWS, MOST_ENTRIES = 10, 3_000_000
# A sample has each record within so many ranks of a level. Beyond, those in one place are at most
# this share of their distance from it.
NEAR, COARSE = 32, 1.0 / 32.0
# Groups of more sizes than this are taken for ones of the nearest power of this ratio.
MANY_SIZES, SIZE_RATIO = 32, 10.0 ** (1.0 / 16.0)
# Sums and means, and quantiles per so many levels, are released less often: they take longer, and
# a mean over many levels hardly varies.
SLOW, FEW_LEVELS = 2.5, 100
# An exact law counts so many points of a cell for its error in the unit of the data.
PARTS = 4
# Permute-and-flip draws like the exponential mechanism where points that weigh so much together
# compete: to a relative error of one over it.
CROWD = 100.0
# Probabilities of cells that are left out.
NEGLIGIBLE = 1e-8
# The standard error of a quantile is found from so many parts of the samples.
BATCHES = 10
# Records beyond are taken for it: so many can be added up.
LARGEST = 1e150
# Rows of a table that is printed.
MOST_PRINTED = 60
METHODS = ("auto", "all", "joint_exp", "ind_exp", "approx_quantiles", "agg_tree")
UNITS, SUMMARIES = ("ranks", "share", "value"), ("mean", "worst")


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


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Plan:
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
        Number of records.
    ranks : Errors or None
        In records between an output and its target; None for sums and means.
    values : Errors or None
        In the unit of the data; None without a guess.
    uncertainty : ndarray of float64, shape (R,)
        Standard error of the first `Errors.quantile` there is, by simulation: a share of it.
    needed : float or None
        The smallest epsilon for the target; None without one.
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

    def __len__(self) -> int:
        """Number of rows."""
        return self.epsilon.size

    @property
    def shares(self) -> Errors | None:
        """`ranks` as shares of the records."""
        return None if self.ranks is None else Errors(*(each / self.n for each in self.ranks))

    @property
    def best(self) -> NDArray[np.bool_]:
        """Whether no other method has a smaller `quantile` at the row's epsilon."""
        if self.group is not None:
            return np.ones(len(self), dtype=bool)  # of one method
        quantile = _first(self).quantile
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
        return shown | {"uncertainty": self.uncertainty, "auto": self.chosen, "best": self.best}

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

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw `quantile` of the errors against epsilon: a line for each method or group.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Default: the current axes.
        **options
            For ``ax.plot``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        pyplot = _checks.extra("matplotlib.pyplot", "plot", "plot")
        ax = pyplot.gca() if ax is None else ax
        several = len(set(zip(self.epsilon.tolist(), self._names(), strict=True))) > len(
            set(self.epsilon.tolist())
        )
        names = np.array(self._names() if several else ["error"] * len(self))
        for name in dict.fromkeys(names.tolist()):
            rows = np.flatnonzero(names == name)
            rows = rows[np.argsort(self.epsilon[rows])]
            ax.plot(self.epsilon[rows], _first(self).quantile[rows], label=name, **options)
        ax.set(xscale="log", yscale="log", xlabel="epsilon")
        ax.set_ylabel(f"error in {self._unit}, {self.level:.0%} of releases")
        if several:
            ax.legend()
        return ax

    def _names(self) -> list[str]:
        return [str(each) for each in (self.method if self.group is None else self.group)]

    @property
    def _unit(self) -> str:
        return "the unit of the data" if self.ranks is None else "ranks"

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        share = f"{self.level:.3g}"
        shown = min(len(self), MOST_PRINTED)
        rows = slice(shown)
        marks = ["*" if each and not self.chosen.all() else "" for each in self.chosen[rows]]
        table = [["", "epsilon", *map(_digits, self.epsilon[rows])]]
        table.append(["", "method", *map("".join, zip(self.method[rows], marks, strict=True))])
        if self.group is not None:
            table.append(["", "group", *map(str, self.group[rows])])
            table.append(["", "n", *(f"{n:,}" for n in self.n[rows])])
        words = len(table) - (self.group is not None)
        worst = False
        for unit, errors in (("ranks", self.ranks), ("value", self.values)):
            if errors is None:
                continue
            table.append([unit, "mean", *map(_digits, errors.expected[rows])])
            table.append(["", share, *map(_digits, errors.quantile[rows])])
            if not np.array_equal(errors.worst, errors.quantile):
                table.append(["", "worst", *map(_digits, errors.worst[rows])])
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
            keys.append("value: errors in the unit of the data, if the guess is right.")
        if any(marks):
            keys.append("*: the method that auto takes.")
        if self.needed is not None:
            keys.append(f"Smallest epsilon for the target: {_digits(self.needed)}")
        return "\n".join([self.title, "", *lines, "", *keys])


def plan(
    q: Any,
    *,
    n: int | None = None,
    bounds: tuple[float, float] | None = None,
    epsilon: Any = None,
    target: float | None = None,
    unit: str = "ranks",
    over: str = "mean",
    level: float = 0.95,
    guess: Any = None,
    method: str = "auto",
    neighbors: str = "swap",
    resolution: float | None = None,
    dither: bool | None = None,
    prior: Any = None,
    max_contributions: int = 1,
    groups: Any = None,
    public_by: bool = False,
    releases: int = RELEASES,
) -> Plan:
    r"""Predict the errors of `quantile` or `quantile_by` for each epsilon, before any data is read.

    Parameters
    ----------
    q : float or array_like of float
        Levels in [0, 1], any order and shape, as they will be asked for. Everything here is public.
    n : int
        About how many records there are, at least 1. Left out with `groups`.
    bounds : (float, float)
        As they will be given to `quantile`. None for "unbounded_quantile", with a `guess`.
    epsilon : float or array_like of float, optional
        Total budgets of a call, positive and finite. Default: nine from 0.01 to 10.
    target : float, optional
        The largest error that will do; instead of `epsilon`. The plan is for the smallest epsilon
        between 10^-4 and 100 that reaches it, to about 1%.
    unit : {"ranks", "share", "value"}, default "ranks"
        Of `target`: records, a share of them, or the unit of the data (with a `guess`).
    over : {"mean", "worst"}, default "mean"
        Whether the mean over levels is to reach the target in a share `level` of all releases, or
        all levels are. All of several groups are to reach it, and one of several methods.
    level : float, default 0.95
        That share, strictly between 0 and 1.
    guess : frozen distribution or array_like of float, optional
        How the records may be distributed: an object with ``ppf`` and ``cdf``, as the frozen
        distributions of `scipy.stats` have, or public records such as last year's published
        figures. Never the private records, nor anything fitted to them. With a `resolution`, those
        of a distribution are taken to be its multiples. Default: the `prior`, and without one
        normal records in the middle of `bounds`, with a standard deviation of 1/40 of their range;
        then no error in the unit of the data is predicted.
    method : str, default "auto"
        "auto": the method that `quantile` takes at each epsilon, given ``expected_n=n``. "all":
        those that it chooses from, to compare them. Or one of them: "joint_exp", "ind_exp",
        "approx_quantiles", "agg_tree".
    neighbors, resolution, dither, prior, max_contributions
        As they will be given to `quantile`; `resolution` is not 0.
    groups : mapping or sequence of int, optional
        Public guesses at the numbers of records of groups, at least 1, by name or in order: a plan
        for `quantile_by`, with a row for each group. All have the same guess at their records.
    public_by : bool, default False
        As it will be given to `quantile_by`.
    releases : int, default 1,000
        How many are simulated at each epsilon, from 100 to a million; fewer of more than 100
        levels.

    Returns
    -------
    Plan
        It prints as a table, has its columns as arrays, a ``plot()`` and a ``to_frame()``.

    Raises
    ------
    TypeError
        If an argument is not of the type its rule above asks for.
    ValueError
        If an argument breaks its rule, the guess has no mass between the bounds, or no epsilon up
        to 100 reaches the target.

    See Also
    --------
    plan_sum, plan_mean : The same for sums and means.
    dpq_fast.metrics.rank_error : What is predicted.

    Notes
    -----
    **Rank error** of a level: records between an output and its target rank :math:`q n`; 0 inside a
    run of ties that holds it. In the unit of the data: how far the output is from the nearest
    number whose rank error is 0, a quantile of the records. What a sample of a population is off
    comes on top.

    **Prediction.** From public samples of n records that are drawn from the guess, with a fixed
    seed: 100 of them, or a tenth of `releases`. One level by "ind_exp": its exact law on each
    sample. Else releases are drawn from the law on each sample, or for trees from the law of the
    noise. `Plan.uncertainty` is the standard error that remains: at 1,000 releases some 3% of the
    quantile, and more for records with many ties, whose errors depend on where in a run of them a
    target happens to lie.

    Errors in ranks depend little on the guess, unless the records have ties, or fill a small part
    of the bounds.

    **Cost.** Grows with the number of levels, and hardly with n.

    Examples
    --------
    >>> out = plan([0.25, 0.5, 0.75], n=1_000, bounds=(0, 120), resolution=1, epsilon=[0.1, 1])
    >>> bool(out.ranks.quantile[0] > out.ranks.quantile[1])
    True
    >>> out = plan(0.5, n=1_000, bounds=(0, 120), target=20)
    >>> bool(out.ranks.quantile[0] <= 20)
    True
    """
    levels = Levels(q)
    _checks.check_choice("method", method, (*METHODS, "unbounded_quantile"))
    request = _Request.of(epsilon, target, unit, over, level, releases)
    if resolution is not None and _checks.check_nonnegative("resolution", resolution) == 0.0:
        raise ValueError("resolution must be positive for a plan, got 0.0")
    lattice = None
    if bounds is not None:
        bounds, lattice = Lattice.between(bounds, resolution, dither, prior)
    elif prior is not None:
        raise ValueError("prior must be left out without bounds")
    relation_of(neighbors)
    if bounds is None and guess is None:
        raise ValueError("guess must be given without bounds")
    has_values = guess is not None or (lattice is not None and lattice.masses is not None)
    if request.unit == "value" and not has_values:
        raise ValueError("guess or prior must be given for unit='value'")
    if bounds is None and method not in ("auto", "unbounded_quantile"):
        raise ValueError(f"bounds must be given for method={method!r}")
    if dither is not None and _checks.check_flag("dither", dither):
        if method in ("ind_exp", "agg_tree", "unbounded_quantile"):
            raise ValueError(f"dither must be left out for method {method!r}, got True")
    if guess is None and has_values and lattice is not None:
        made = _Guess.of_prior(lattice)
    else:
        made = _Guess.of(guess, bounds)
    if lattice is not None and resolution is not None and not made.is_column:
        made = made.rounded(lattice)
    settings = _Settings(
        levels,
        bounds,
        lattice,
        resolution,
        dither,
        prior,
        neighbors,
        _checks.check_max_contributions(max_contributions),
        made,
        has_values,
        request.releases,
    )
    names, sizes = (None, [_checks.check_count("n", n)]) if groups is None else _sizes(groups, n)
    if groups is not None:
        if method not in ("auto", "joint_exp"):
            raise ValueError(f"method must be 'auto' or 'joint_exp' for groups, got {method!r}")
        if bounds is None:
            raise ValueError("bounds must be given for groups")
    public_by = _checks.check_flag("public_by", public_by)
    rounded = _grid_of(sizes)
    predictors = {size: _Quantiles(settings, size) for size in set(rounded)}

    def rows_at(budget: float) -> list[_Row]:
        if names is None:
            one = predictors[rounded[0]]
            return [one.row(budget, name, request.level) for name in one.methods(method, budget)]
        found = {
            size: one.group_row(budget, public_by, request.level)
            for size, one in predictors.items()
        }
        return [
            found[size]._replace(group=name, n=own)
            for name, size, own in zip(names, rounded, sizes, strict=True)
        ]

    records = f"n = {sum(sizes):,}" + ("" if names is None else f" in {len(names):,} groups")
    what = "quantile" if names is None else "quantile_by"
    title = (
        f"Predicted errors of {what}: {_counted(levels.m, 'level')}, {records}, neighbors "
        f"{neighbors},\n{_between(bounds)}, {made.text}"
    )
    return request.answer(title, rows_at, has_values)


def plan_sum(
    *,
    n: int,
    guess: Any = None,
    epsilon: Any = None,
    target: float | None = None,
    level: float = 0.95,
    releases: int = RELEASES,
    **options: Any,
) -> Plan:
    """Predict the errors of `sum` for each epsilon, before any data is read.

    Parameters
    ----------
    n, epsilon, level
        As in `plan`.
    guess : frozen distribution or array_like of float
        As in `plan`. Left out only for a public clip (``q=None``): then normal records in its
        middle, with a standard deviation of 1/40 of its range.
    target : float, optional
        As in `plan`: an error in the unit of the data.
    releases : int, default 1,000
        How many are simulated at each epsilon, from 100 to a million; fewer of more than 100
        levels.
    **options
        As they will be given to `sum`: `q`, `lower`, `upper`, `method`, `share`, `expected_n`,
        `resolution`, `neighbors`, `max_contributions` and those of the method.

    Returns
    -------
    Plan
        Its errors are ``values``: absolute differences from the sum of all records, which noise
        and clip make together.

    Raises
    ------
    TypeError, ValueError
        As in `plan` and `sum`.

    Notes
    -----
    Public samples of the guess are released: clips by their law, noise by its own.

    Examples
    --------
    >>> out = plan_sum(n=1_000, q=None, lower=0, upper=10, epsilon=[0.5, 1.0])
    >>> bool(out.values.expected[0] > out.values.expected[1])
    True
    """
    return _plan_total(aggregates.sum, n, guess, epsilon, target, level, releases, options)


def plan_mean(
    *,
    n: int,
    guess: Any = None,
    epsilon: Any = None,
    target: float | None = None,
    level: float = 0.95,
    releases: int = RELEASES,
    **options: Any,
) -> Plan:
    """Predict the errors of `mean` for each epsilon, before any data is read.

    Parameters
    ----------
    n, guess, epsilon, target, level, releases, **options
        As in `plan_sum`.

    Returns
    -------
    Plan
        Its errors are ``values``: absolute differences from the mean of all records.

    Raises
    ------
    TypeError, ValueError
        As in `plan_sum`.

    See Also
    --------
    plan_sum : With all about the prediction.

    Examples
    --------
    >>> out = plan_mean(n=1_000, q=None, lower=0, upper=10, epsilon=1.0)
    >>> bool(0.0 < out.values.expected[0] < 0.1)
    True
    """
    return _plan_total(aggregates.mean, n, guess, epsilon, target, level, releases, options)


def _plan_total(
    release: Callable[..., Any],
    n: int,
    guess: Any,
    epsilon: Any,
    target: float | None,
    level: float,
    releases: int,
    options: dict[str, Any],
) -> Plan:
    n = _checks.check_count("n", n)
    request = _Request.of(epsilon, target, "value", "mean", level, releases)
    for name in ("x", "counts", "accountant", "rng", "workers", "confidence", "covers"):
        if name in options:
            raise TypeError(f"{name} must be left out for a plan")
    public = "q" in options and options["q"] is None
    if guess is None and not public:
        raise ValueError("guess must be given unless q is None")
    bounds = (options.get("lower", 0.0), options.get("upper")) if public else None
    made = _Guess.of(guess, bounds)
    one = _Totals(release, n, made, options, request.releases)
    title = (
        f"Predicted errors of {release.__name__}: n = {n:,}, "
        f"neighbors {options.get('neighbors', 'swap')},\n{made.text}"
    )
    return request.answer(title, lambda budget: [one.row(budget, request.level)], True)


# What is asked for


class _Request(NamedTuple):
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
    ) -> _Request:
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

    def answer(self, title: str, rows_at: Callable[[float], list[_Row]], has_values: bool) -> Plan:
        """The plan of the rows at each epsilon, or at the smallest one for the target."""
        needed = None
        if self.target is None:
            rows = [row for budget in self.epsilons for row in rows_at(budget)]
        else:
            needed, rows = self._smallest(rows_at, self.target)
        columns = list(zip(*rows, strict=True))
        epsilons, methods, chosen, groups, sizes, ranks, values, uncertainty = columns
        return Plan(
            title,
            self.level,
            np.array(epsilons),
            np.array(methods),
            np.array(chosen),
            None if groups[0] is None else _objects(groups),
            np.array(sizes),
            None if ranks[0] is None else Errors(*np.array(ranks).T),
            Errors(*np.array(values).T) if has_values else None,
            np.array(uncertainty),
            needed,
        )

    def _smallest(
        self, rows_at: Callable[[float], list[_Row]], target: float
    ) -> tuple[float, list[_Row]]:
        """The smallest epsilon whose rows reach the target, and these."""

        def reached(budget: float) -> bool:
            return self._error(rows_at(budget)) <= target

        high = 1.0
        while not reached(high):
            if high == MOST_EPSILON:
                raise ValueError(
                    f"target must be an error that some epsilon up to {MOST_EPSILON:g} reaches, "
                    f"got {target:g} where {self._error(rows_at(high)):.3g} is the least"
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
        shown = _rounded_up(high)
        while not reached(shown) and shown < MOST_EPSILON:
            shown = _rounded_up(shown * CLOSE)
        return shown, rows_at(shown)

    def _error(self, rows: list[_Row]) -> float:
        """What the target is for: of groups the largest, of methods the smallest."""
        found = []
        for row in rows:
            errors = row.values if self.unit == "value" else row.ranks
            assert errors is not None
            error = errors.worst if self.over == "worst" else errors.quantile
            found.append(float(error) / (row.n if self.unit == "share" else 1.0))
        return min(found) if rows[0].group is None else max(found)


class _Row(NamedTuple):
    """A row of a plan, in the order of its attributes."""

    epsilon: float
    method: str
    chosen: bool
    group: Any
    n: int
    ranks: Errors | None
    values: Errors
    uncertainty: float


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


def _sizes(groups: Any, n: Any) -> tuple[list[Any], list[int]]:
    """Names and sizes of groups."""
    if n is not None:
        raise ValueError("n must be left out with groups, whose sizes it is the sum of")
    if isinstance(groups, Mapping):
        names, given = list(groups), list(groups.values())
    elif isinstance(groups, (str, bytes)) or not isinstance(groups, Iterable):
        raise TypeError(
            "groups must be sizes, a mapping or a sequence of integers, "
            f"got {type(groups).__name__}"
        )
    else:
        given = list(groups)
        names = list(range(len(given)))
    if not given:
        raise ValueError("groups must hold at least one size, got none")
    return names, [_checks.check_count("groups", size) for size in given]


def _grid_of(sizes: list[int]) -> list[int]:
    """The sizes that are predicted for."""
    if len(set(sizes)) <= MANY_SIZES:
        return sizes
    powers = np.rint(np.log(sizes) / math.log(SIZE_RATIO))
    return [int(size) for size in np.rint(SIZE_RATIO**powers)]


# Guesses and samples


class _Guess:
    """A public distribution.

    Parameters
    ----------
    ppf, cdf : callable
        Of arrays.
    text : str
        What it is, in words.

    Attributes
    ----------
    is_column : bool
        Whether it is one of public records.
    """

    def __init__(
        self,
        ppf: Callable[[NDArray[np.float64]], Any],
        cdf: Callable[[NDArray[np.float64]], Any],
        text: str,
    ) -> None:
        self._ppf = ppf
        self._cdf = cdf
        self._rounded: Lattice | None = None
        self.is_column = False
        self.text = f"guess: {text}"

    def rounded(self, lattice: Lattice) -> _Guess:
        """The same records, rounded to a lattice; those beyond the bounds stay."""
        other = copy.copy(self)
        other._rounded = lattice
        return other

    @classmethod
    def of(cls, guess: Any, bounds: Any) -> _Guess:
        """Check what is given for `guess`; there are bounds if it is nothing."""
        if guess is None:
            low, high = bounds = _checks.check_bounds(bounds)
            middle, spread = low + (high - low) / 2.0, SPREAD * (high - low)
            return cls(
                lambda u: middle + spread * scipy.special.ndtri(u),
                lambda x: scipy.special.ndtr((x - middle) / spread),
                "none (normal records in 1/40 of the bounds)",
            )
        if callable(getattr(guess, "ppf", None)) and callable(getattr(guess, "cdf", None)):
            made = cls(guess.ppf, guess.cdf, _described(guess))
        else:
            if isinstance(guess, (str, bytes)) or not np.iterable(guess):
                raise TypeError(
                    "guess must be a distribution with ppf and cdf, or public records, "
                    f"got {type(guess).__name__}"
                )
            made = cls._of_records(_checks.real_array("guess", guess))
            made.is_column = True
        if bounds is not None:
            made._check_mass(*_checks.check_bounds(bounds))
        return made

    @classmethod
    def of_prior(cls, lattice: Lattice) -> _Guess:
        """The points of a lattice, as likely as its prior says."""
        masses = lattice.masses
        assert masses is not None

        def ppf(u: NDArray[np.float64]) -> NDArray[np.float64]:
            fine = np.minimum(np.floor(u * masses.total), masses.total - 1.0)
            return lattice.decode(masses.points_of(fine.astype(np.int64)))

        def cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
            reached = points_below(lattice, x, "right")
            share: NDArray[np.float64] = masses.below(reached) / masses.total
            return share

        return cls(ppf, cdf, "the prior")

    @classmethod
    def _of_records(cls, records: NDArray[np.float64]) -> _Guess:
        if records.ndim != 1:
            raise ValueError(f"guess must be one-dimensional, got {records.ndim} dimensions")
        if records.size == 0:
            raise ValueError("guess must hold at least one record, got none")
        if not np.isfinite(records).all():
            raise ValueError("guess must hold finite records")
        ordered = np.sort(records)
        return cls(
            lambda u: ordered[np.minimum((u * ordered.size).astype(np.int64), ordered.size - 1)],
            lambda x: np.searchsorted(ordered, x, side="right") / ordered.size,
            f"{_counted(ordered.size, 'public record')}",
        )

    def _check_mass(self, low: float, high: float) -> None:
        inside = float(self._cdf(np.array([high]))[0]) - float(self.below(np.array([low]))[0])
        if not inside > 0.0:
            raise ValueError(f"guess must have mass between bounds, got none in ({low}, {high})")

    def values(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """The records at these ranks, as shares of all."""
        values = np.asarray(self._ppf(u), dtype=np.float64)
        if np.isnan(values).any():
            raise ValueError("guess must have a ppf that is not NaN between 0 and 1")
        if self._rounded is not None:
            lattice = self._rounded
            inside = (values >= lattice.low) & (values <= lattice.high)
            values = np.where(inside, lattice.decode(lattice.encode(values)), values)
        return np.clip(values, -LARGEST, LARGEST)

    def below(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the records below x."""
        return np.asarray(self._cdf(np.nextafter(x, -math.inf)), dtype=np.float64)


class _PublicSample:
    """A public sample of n records: those at some ranks, and others in lumps between them.

    Order statistics of uniform variables are partial sums of exponential ones, divided by all of
    them: so those at some ranks are drawn without the others, by gamma variables.

    Parameters
    ----------
    guess : _Guess
    n : int
    places : ndarray of int64
        The ranks, ascending from 1 to n.
    rng : Generator

    Attributes
    ----------
    values : ndarray of float64
        Ascending.
    weights : ndarray of int64
        Records in each place.
    """

    def __init__(
        self, guess: _Guess, n: int, places: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        steps = np.diff(places, prepend=0)
        sums = np.cumsum(rng.standard_gamma(steps.astype(np.float64)))
        self._u = np.clip(sums / (sums[-1] + rng.standard_exponential()), 2.0**-1000, 1 - 2.0**-53)
        self._places = places
        lumps = np.flatnonzero(steps > 1)
        middle = (self._u[lumps - 1] + self._u[lumps]) / 2.0
        self.values = guess.values(np.insert(self._u, lumps, middle))
        self.weights = np.insert(np.ones_like(places), lumps, steps[lumps] - 1)
        self.n = n

    def counts_below(self, share: NDArray[np.float64]) -> NDArray[np.int64]:
        """How many records lie below numbers that so large shares of the guess lie below."""
        at = np.searchsorted(self._u, share)
        below = np.concatenate(([0], self._places))[at]
        upper = np.append(self._u, 1.0)[at]
        lower = np.concatenate(([0.0], self._u))[at]
        lump = np.append(self._places, self.n + 1)[at] - 1 - below
        inside = (share - lower) / np.maximum(upper - lower, 1e-300)
        found: NDArray[np.int64] = below + np.rint(np.clip(inside, 0.0, 1.0) * lump).astype(
            np.int64
        )
        return found


def _places(n: int, targets: NDArray[np.float64]) -> NDArray[np.int64]:
    """The ranks that a sample has one by one."""
    growth = math.log1p(COARSE)
    far = NEAR * np.exp(growth * np.arange(1.0, 2.0 + math.log(max(n / NEAR, 1.0)) / growth))
    away = np.concatenate((np.arange(NEAR), np.minimum(np.ceil(far), n))).astype(np.int64)
    around = np.rint(targets).astype(np.int64)[:, None] + np.concatenate((-away[:0:-1], away))
    places: NDArray[np.int64] = np.unique(np.clip(around, 1, n))
    return places


def _numbers(releases: int, entries: int) -> tuple[int, int]:
    """Of samples with so many entries, and of releases of each."""
    samples = max(SAMPLES, min(releases // DRAWS, MOST_ENTRIES // entries))
    return samples, -(-releases // samples)


def _public_rng(*seed: int) -> np.random.Generator:
    """A generator for public samples and simulated noise, none of which is released."""
    return np.random.Generator(np.random.PCG64([20_261_122, *seed]))


class _Runs(NamedTuple):
    """Records in order by distinct value.

    Attributes
    ----------
    values : ndarray
        Numbers, or (fine) lattice points.
    ends : ndarray of int64
        Records up to and with each.
    """

    values: NDArray[Any]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[Any], weights: NDArray[np.int64]) -> _Runs:
        """Of ascending values."""
        last = np.append(values[1:] != values[:-1], True)
        return cls(values[last], np.cumsum(weights)[last])

    @property
    def weights(self) -> NDArray[np.int64]:
        """Records at each."""
        return np.diff(self.ends, prepend=0)

    def errors(
        self, outputs: NDArray[np.float64], targets: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rank errors of outputs, and how far they are from what has none; shape (D, m)."""
        counts = np.concatenate(([0], self.ends))
        below = counts[np.searchsorted(self.values, outputs, side="left")]
        through = counts[np.searchsorted(self.values, outputs, side="right")]
        missed = np.maximum(np.maximum(below - targets, targets - through), 0.0)
        first, last = (
            self.values[np.minimum(np.searchsorted(self.ends, targets, side), self.ends.size - 1)]
            for side in ("left", "right")
        )
        away = np.maximum(np.maximum(first - outputs, outputs - last), 0.0)
        return missed, np.where(missed > 0.0, away, 0.0)


class _Outcomes(NamedTuple):
    """Errors of releases of one sample.

    Attributes
    ----------
    mean, worst : ndarray of float64, shape (D, 2)
        Over levels: in ranks, and in the unit of the data.
    weight : ndarray of float64, shape (D,)
        Probabilities.
    """

    mean: NDArray[np.float64]
    worst: NDArray[np.float64]
    weight: NDArray[np.float64]

    @classmethod
    def of(cls, errors: tuple[NDArray[np.float64], NDArray[np.float64]]) -> _Outcomes:
        """Of releases that are as likely as each other."""
        ranks, values = errors
        mean = np.stack((ranks.mean(axis=1), values.mean(axis=1)), axis=1)
        return cls(
            mean,
            mean if ranks.shape[1] == 1 else np.stack((ranks.max(axis=1), values.max(axis=1)), 1),
            np.full(len(ranks), 1.0 / len(ranks)),
        )


def _summary(outcomes: list[_Outcomes], level: float) -> tuple[Errors, Errors, float]:
    """Errors in ranks and in the unit of the data, and the standard error of the former."""
    mean, worst, weight = (np.concatenate(each) for each in zip(*outcomes, strict=True))
    weight = weight / len(outcomes)
    single = all(each.mean is each.worst for each in outcomes)
    made = []
    for kind in (0, 1):
        expected = float(weight @ mean[:, kind])
        own = _quantile(mean[:, kind], weight, level)
        largest = own if single else _quantile(worst[:, kind], weight, level)
        made.append(Errors(expected, own, largest))  # type: ignore[arg-type]  # of one row
    return made[0], made[1], _uncertainty(outcomes, level)


def _uncertainty(outcomes: list[_Outcomes], level: float) -> float:
    """Relative standard error of the quantile of the mean rank error, from parts of the samples."""
    found = []
    for batch in range(BATCHES):
        mean, _, weight = (
            np.concatenate(each) for each in zip(*outcomes[batch::BATCHES], strict=True)
        )
        kind = 0 if mean[:, 0].any() else 1
        found.append(_quantile(mean[:, kind], weight / weight.sum(), level))
    middle = float(np.mean(found))
    return float(np.std(found, ddof=1)) / math.sqrt(BATCHES) / middle if middle > 0.0 else 0.0


def _quantile(errors: NDArray[np.float64], weight: NDArray[np.float64], level: float) -> float:
    """The least error that errors up to it have so large a share of the weight."""
    order = np.argsort(errors)
    at = int(np.searchsorted(np.cumsum(weight[order]), level * (1.0 - 1e-12)))
    return float(errors[order[min(at, order.size - 1)]])


# Quantiles


class _Settings(NamedTuple):
    """The arguments of a release of quantiles, checked."""

    levels: Levels
    bounds: tuple[float, float] | None
    lattice: Lattice | None
    resolution: float | None
    dither: bool | None
    prior: Any
    neighbors: str
    max_contributions: int
    guess: _Guess
    has_values: bool
    releases: int


class _Quantiles:
    """Predictions for one number of records.

    Parameters
    ----------
    settings : _Settings
    n : int
    """

    def __init__(self, settings: _Settings, n: int) -> None:
        self._settings = settings
        self._n = n
        self._targets = settings.levels.values * n
        self._lattice = settings.lattice
        self._places = _places(n, self._targets)
        self._count, self._draws = _numbers(settings.releases, self._places.size)
        self._drawn = math.ceil(self._draws * min(1.0, FEW_LEVELS / settings.levels.m))
        self._person: dict[str, Any] = {
            "neighbors": settings.neighbors,
            "max_contributions": settings.max_contributions,
        }

    def methods(self, method: str, epsilon: float) -> list[str]:
        """Those that are predicted at an epsilon."""
        if method == "all":
            others = [] if self._settings.dither else ["agg_tree"]
            if self._settings.levels.m == 1 and not self._settings.dither:
                others.append("ind_exp")
            return ["joint_exp", "approx_quantiles", *others]
        return [self._chosen(epsilon) if method == "auto" else method]

    def _chosen(self, epsilon: float) -> str:
        """What "auto" takes."""
        settings = self._settings
        return choose_method(
            None,
            settings.levels,
            epsilon=epsilon,
            bounds=settings.bounds,
            resolution=settings.resolution,
            dither=settings.dither,
            prior=settings.prior,
            expected_n=self._n,
            **self._person,
        )

    def row(self, epsilon: float, method: str, level: float) -> _Row:
        """The errors of one method."""
        outcomes = getattr(self, f"_by_{method}")(epsilon)
        summary = _summary(outcomes, level)
        return _Row(epsilon, method, method == self._chosen(epsilon), None, self._n, *summary)

    def group_row(self, epsilon: float, public_by: bool, level: float) -> _Row:
        """The errors in a group of `quantile_by`."""
        calibration = privacy.quantile_by.calibrate(
            self._settings.levels,
            epsilon=epsilon,
            public_by=public_by,
            method=method_of(None, self._settings.dither),
            **self._person,
        )
        assert isinstance(calibration, privacy.quantile_by.Calibration)  # of an epsilon
        if calibration.method == privacy.quantile_by.IND_EXP:
            outcomes = self._of_one(calibration.rate, True)
        else:
            outcomes = self._of_paths(calibration.rate)
        return _Row(epsilon, calibration.method, True, None, self._n, *_summary(outcomes, level))

    @cached_property
    def _samples(self) -> list[_PublicSample]:
        return [
            _PublicSample(self._settings.guess, self._n, self._places, _public_rng(0, i))
            for i in range(self._count)
        ]

    @property
    def _grid(self) -> Lattice:
        assert self._lattice is not None
        return self._lattice

    @cached_property
    def _records(self) -> list[_Runs]:
        """The samples as they are."""
        return [_Runs.of(each.values, each.weights) for each in self._samples]

    @cached_property
    def _ordered(self) -> list[CountedOrder]:
        """The samples in order, on the lattice without a prior."""
        grid = dataclasses.replace(self._grid.even, bits=0)
        runs = [_Runs.of(grid.encode(each.values), each.weights) for each in self._samples]
        return [CountedOrder(each.values, each.weights, grid, self._bounds) for each in runs]

    @cached_property
    def _dithered(self) -> list[CountedOrder]:
        """The same with a dither each: records in one place stay there."""
        grid, made = self._grid, []
        for i, sample in enumerate(self._samples):
            fine = grid.encode(sample.values) << grid.bits
            fine = fine + _public_rng(1, i).integers(0, 1 << grid.bits, fine.size)
            order = np.argsort(fine, kind="stable")
            runs = _Runs.of(grid.spread(fine[order]), sample.weights[order])
            made.append(CountedOrder(runs.values, runs.weights, grid, self._bounds))
        return made

    @property
    def _bounds(self) -> tuple[float, float]:
        return self._grid.low, self._grid.high

    def _outcomes(
        self, draw: Callable[[int, np.random.Generator], NDArray[np.float64]]
    ) -> list[_Outcomes]:
        """Errors of what ``draw(i, rng)`` releases of sample i."""
        return [
            _Outcomes.of(records.errors(draw(i, _public_rng(2, i)), self._targets))
            for i, records in enumerate(self._records)
        ]

    def _of_paths(self, rate: float) -> list[_Outcomes]:
        """JointExp."""
        q, grid = self._settings.levels.values, self._grid
        return self._outcomes(
            lambda i, rng: grid.decode(
                grid.points_of(PathLaw(self._dithered[i], q, rate).draw(rng, self._drawn))
            )
        )

    def _by_joint_exp(self, epsilon: float) -> list[_Outcomes]:
        levels = self._settings.levels
        calibration = privacy.joint_exp.calibrate(levels, epsilon=epsilon, **self._person)
        return self._of_paths(calibration.rate)

    def _by_approx_quantiles(self, epsilon: float) -> list[_Outcomes]:
        settings, levels = self._settings, Levels(self._settings.levels.values)
        calibration = privacy.approx_quantiles.calibrate(levels, epsilon=epsilon, **self._person)
        # It knows the lattice; the records are in the order.
        empty = Sample.of(
            [],
            settings.bounds,
            resolution=settings.resolution,
            dither=settings.dither,
            prior=settings.prior,
        )

        def draw(i: int, rng: np.random.Generator) -> NDArray[np.float64]:
            law = ApproxQuantilesLaw(empty, levels, self._dithered[i], calibration.steps)
            drawn: NDArray[np.float64] = law.sample(rng, self._drawn)
            return drawn

        return self._outcomes(draw)

    def _by_agg_tree(self, epsilon: float) -> list[_Outcomes]:
        settings, grid = self._settings, self._grid
        calibration = privacy.agg_tree.calibrate(
            epsilon=epsilon, points=grid.points, expected_n=self._n, **self._person
        )
        shape = calibration.height, calibration.branching
        most = shape[1] ** shape[0]
        leaves = Leaves.of(self._bounds, grid, most)
        shares = settings.guess.below(grid.least(leaves.starts[1:-1]))
        rows = self._n if calibration.relation.n_is_public else None

        def draw(i: int, rng: np.random.Generator) -> NDArray[np.float64]:
            counts = np.zeros(most, dtype=np.int64)
            below = self._samples[i].counts_below(shares)
            counts[: leaves.size] = np.diff(below, prepend=0, append=self._n)
            tree = PartialTree(counts, self._bounds, *shape, grid, False)
            released = (
                noised(tree, calibration.noise, calibration.relation, True, rng, rows)
                for _ in range(self._draws)
            )
            return np.array([one.quantile(settings.levels.values) for one in released])

        return self._outcomes(draw)

    def _by_ind_exp(self, epsilon: float) -> list[_Outcomes]:
        levels, grid = self._settings.levels, self._grid
        spent = privacy.ind_exp.calibrate(levels, epsilon=epsilon, **self._person)
        flip = spent.selection == privacy.ind_exp.FLIP
        singles = list(zip(levels.values.tolist(), spent.rates.tolist(), strict=True))
        if levels.m == 1:
            return self._of_one(spent.rates[0], flip)

        def draw(i: int, rng: np.random.Generator) -> NDArray[np.float64]:
            laws = (DepthLaw(self._ordered[i], *one, flip, masses=grid.masses) for one in singles)
            drawn = [law.draw(rng, self._drawn) for law in laws]
            return grid.decode(np.sort(np.concatenate(drawn, axis=1), axis=1))

        return self._outcomes(draw)

    def _of_one(self, rate: float, flip: bool) -> list[_Outcomes]:
        """One level, by depth."""
        level, grid = float(self._settings.levels.values[0]), self._grid
        parts = PARTS if self._settings.has_values else 1
        laws = (
            DepthLaw(order, level, float(rate), flip, masses=grid.masses) for order in self._ordered
        )
        return [
            _exactly(law, grid, records, self._targets, parts)
            for law, records in zip(laws, self._records, strict=True)
        ]

    def _by_unbounded_quantile(self, epsilon: float) -> list[_Outcomes]:
        settings = self._settings
        levels = Levels(settings.levels.values)
        ends = unbounded_ends(settings.bounds, settings.resolution, settings.dither, None, False)

        def draw(i: int, rng: np.random.Generator) -> NDArray[np.float64]:
            sample = self._samples[i]
            law = unbounded_quantile_law(
                sample.values,
                levels,
                epsilon=epsilon,
                counts=sample.weights,
                **ends,
                **self._person,
            )
            drawn: NDArray[np.float64] = law.sample(rng, self._drawn)
            return drawn

        return self._outcomes(draw)


def _exactly(
    law: DepthLaw, lattice: Lattice, records: _Runs, targets: NDArray[np.float64], parts: int
) -> _Outcomes:
    """The errors of all outputs of one level, with their probabilities."""
    cells, probability = law.cell_probabilities(CROWD)
    kept = probability > NEGLIGIBLE
    cells, probability = cells.where(kept), probability[kept] / probability[kept].sum()
    share = (np.arange(parts) + 0.5) / parts
    points = np.floor(cells.start[:, None] + 1.0 + cells.points[:, None] * share)
    outputs = lattice.decode(points.astype(np.int64).reshape(-1, 1))
    both = np.concatenate(records.errors(outputs, targets), axis=1)
    return _Outcomes(both, both, np.repeat(probability / parts, parts))


# Sums and means


class _Totals:
    """Predictions for sums or means.

    Parameters
    ----------
    release : callable
        `sum` or `mean`.
    n : int
    guess : _Guess
    options : dict
        Further arguments of the release.
    releases : int
    """

    def __init__(
        self,
        release: Callable[..., Any],
        n: int,
        guess: _Guess,
        options: dict[str, Any],
        releases: int,
    ) -> None:
        self._release = release
        self._n = n
        self._options = options
        places = _places(n, np.array([0.0, float(n)]))
        samples, draws = _numbers(releases, places.size)
        self._draws = math.ceil(draws / SLOW)
        self._samples = [_PublicSample(guess, n, places, _public_rng(0, i)) for i in range(samples)]

    def row(self, epsilon: float, level: float) -> _Row:
        """The errors at an epsilon."""
        outcomes = []
        for i, sample in enumerate(self._samples):
            rng = _public_rng(2, i)
            true = float(sample.values @ sample.weights)
            if self._release is aggregates.mean:
                true /= self._n
            column = dict(counts=sample.weights, rng=rng)
            released = [
                self._release(sample.values, epsilon=epsilon, **column, **self._options)
                for _ in range(self._draws)
            ]
            errors = np.abs(np.array(released) - true)[:, None]
            outcomes.append(_Outcomes.of((np.zeros_like(errors), errors)))
        _, values, uncertainty = _summary(outcomes, level)
        public = "q" in self._options and self._options["q"] is None
        method = "none" if public else self._options.get("method", "unbounded")
        return _Row(epsilon, method, True, None, self._n, None, values, uncertainty)


# Words


def _first(plan: Plan) -> Errors:
    errors = plan.ranks or plan.values
    assert errors is not None
    return errors


def _objects(items: Iterable[Any]) -> NDArray[Any]:
    listed = list(items)
    made = np.empty(len(listed), dtype=object)
    made[:] = listed
    return made


def _rounded_up(number: float) -> float:
    """Three digits that are not less."""
    exponent = math.floor(math.log10(number)) - 2
    return float(f"{math.ceil(number / 10.0**exponent * (1.0 - 1e-12))}e{exponent}")


def _digits(number: Any) -> str:
    """Three digits, or all those before the point; what is no number, as it is."""
    if not isinstance(number, (int, float)):
        return str(number)
    return f"{number:,.0f}" if 99.5 <= abs(number) < 1e9 else f"{number:.3g}"


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _described(distribution: Any) -> str:
    """A frozen distribution of `scipy.stats` as it was made, or the type of another one."""
    name = getattr(getattr(distribution, "dist", None), "name", None)
    if name is None:
        return type(distribution).__name__
    given = [_digits(each) for each in distribution.args]
    given += [f"{key}={_digits(each)}" for key, each in distribution.kwds.items()]
    return f"{name}({', '.join(given)})"


def _between(bounds: tuple[float, float] | None) -> str:
    return "no bounds" if bounds is None else f"bounds [{bounds[0]:g}, {bounds[1]:g}]"
