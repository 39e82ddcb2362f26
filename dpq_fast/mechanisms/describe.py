"""A frame at a glance: counts, means and quantiles of many columns under one budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from dpq_fast import _checks, privacy
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data.persons import WEIGHTS, Persons
from dpq_fast.data.public_keys import Groups
from dpq_fast.data.rounds import together
from dpq_fast.data.tables import Table, TableColumns, table_of
from dpq_fast.data.units import INSTANTS, unit_of
from dpq_fast.mechanisms.aggregates import count, mean, std
from dpq_fast.mechanisms.aggregates_by import count_by, mean_by, std_by
from dpq_fast.mechanisms.extremes import with_extremes, with_extremes_by
from dpq_fast.mechanisms.quantile import quantile
from dpq_fast.mechanisms.quantile_by import quantile_by
from dpq_fast.mechanisms.select_keys import select_keys
from dpq_fast.privacy import kept_groups
from dpq_fast.privacy.accounting import Accountant
from dpq_fast.privacy.budgets import resolve_epsilon
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.levels import Levels
from dpq_fast.released.estimate import Estimate

# Parts of a column's budget, in proportion: a count is right to a few records with little of it.
SHARES = {"count": 1.0, "mean": 4.0, "quantile": 5.0}
# All that may have a part, in the order of the answer.
STATISTICS = ("count", "mean", "std", "quantile")


class Statistic(NamedTuple):
    """One release of a description.

    Attributes
    ----------
    column : str, or what else pandas takes for a name
    statistic : str
    prepared : callable or None
        Takes a column, and of groups their keys. None for what the column has none of.
    """

    column: str
    statistic: str
    prepared: Callable[..., Prepared[Any]] | None


class Spent(NamedTuple):
    """What a description spends: the sum of its parts."""

    guarantee: Guarantee


@releases()
def describe(
    frame: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    bounds: Mapping[str, tuple[Any, Any]],
    columns: Sequence[str] | None = None,
    resolution: Any = None,
    q: Any = (0.25, 0.5, 0.75),
    extremes: bool = False,
    by: Any = None,
    groups: Any = None,
    delta: float = 0.0,
    prior: Any = None,
    neighbors: str = "swap",
    public_by: bool = False,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    privacy_unit: Any = None,
    contributions: Any = WEIGHTS,
    shares: Mapping[str, float] | None = None,
    confidence: float | None = None,
    covers: str = "sample",
    expected_n: int | None = None,
    accountant: Accountant | None = None,
    rng: Any = None,
    workers: int = 1,
) -> Prepared[Any]:
    r"""Release count, mean, spread and quantiles of several columns of a frame, under one budget.

    Parameters
    ----------
    frame : data frame or mapping of columns, with n rows
        Private. Of pandas, polars, pyarrow or whatever narwhals knows; a mapping from names to
        columns; a `Table`, or what an engine holds (`Table.of`): then all parts share their passes.
        A row is a record: it has a value, or none, in each column. Names of
        columns are public, and distinct: strings, and of pandas whatever it takes.
    epsilon : float
        Budget of the whole call, positive and finite. Public, as all that follow. Exactly one of
        `epsilon` and `rho`.
    rho : float, optional
        Total zCDP budget instead of `epsilon`: of many columns each part has much less noise. Not
        where groups are selected.
    bounds : mapping of names to (low, high)
        Of each column, chosen without looking at the records; times or durations where it holds
        these, 0 and 1 for booleans.
    columns : sequence of names, optional
        Which columns, in which order. Default: those that `bounds` has.
    resolution : optional
        As in `quantile`, one for all columns or a mapping from names.
    q : float or array_like of float, default (0.25, 0.5, 0.75)
        Levels of the quantiles, in one dimension.
    extremes : bool, default False
        Whether there are a "min" and a "max", drawn with the quantiles: of the level that `min` has
        for their budget.
    by : name or sequence of names, optional
        Columns of keys: a description of each group.
    groups : sequence of keys, or of tuples of them, optional
        The groups, as in `quantile_by`. Default: those that a private selection keeps
        (`select_keys`), which has a quarter of `epsilon`, and `delta`.
    delta : float, default 0
        Allowed failure of the selection, where there is one.
    prior : optional
        As in `quantile`, one for all columns or a mapping from names.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one row; "add-remove" adds or deletes one.
    public_by : bool, default False
        The promise that all keys are public, as in `quantile_by`.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave missing values out, column by column, or state that there are none.
    max_contributions : int, default 1
        Up to this many rows per person: the guarantee is per person.
    privacy_unit : name, list of names, or column of ids of shape (n,), optional
        Whose each row is: columns of the frame, which are not described, or one beside it. Every
        part is about persons. Not with `max_contributions`.
    contributions : "weights" or int, default "weights"
        Beside a `privacy_unit`: the records of a person share one weight, or up to so many of each
        count, in every part.
    shares : mapping of str to float, optional
        Parts of a column's budget for "count", "mean", "std" and "quantile", in proportion; what
        has none is left out. Default: 1, 4 and 5 for "count", "mean" and "quantile"; for all that
        `pandas.DataFrame.describe` has, say 1, 3, 3 and 3, and `extremes`. Of points in time there
        is no "std".
    confidence : float, optional
        Give the ends of intervals, too, which cover each by itself with this probability.
    covers : {"sample", "population"}, default "sample"
        As in `quantile`; counts and deviations cover the rows at hand.
    expected_n : int, optional
        About how many rows there are, as in `quantile`; or each group has, as in `quantile_by`.
        With a `privacy_unit` how many persons.
    accountant : Accountant, optional
        Charged once, with the sum of the parts; refuses before a record is read.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system.
    workers : int, default 1
        Threads for passes over long columns.

    Returns
    -------
    data frame
        Of the library of `frame`; of pandas for a mapping, a `Table` or an engine other than
        polars, or of pyarrow for the latter two where pandas is missing. A row for each column, or
        for each column and group; columns "column", those of the keys, "count", "mean", "std" and
        one for each level, such as "25%", between "min" and "max"; with a `confidence` also "mean
        low", "mean high" and so on. Mean and deviation are those of the records clamped to the
        bounds. Where some columns are times and others are not, cells of libraries other than
        pandas are strings.

    Raises
    ------
    TypeError, ValueError
        If a public argument breaks its rule, or a column is not of the kind of its bounds.
    BudgetExceeded
        If `accountant` has too little left.

    See Also
    --------
    quantile, mean, std, count : The parts.
    quantile_by, mean_by, std_by, count_by, select_keys : The parts of a description by group.

    Notes
    -----
    **Privacy.** Pure `epsilon`-DP under `neighbors`, or `rho`-zCDP: a row is in every column, so
    the parts compose one after the other (basic composition): each column has an equal part of the
    budget, and its statistics have `shares` of it. By groups each part is one for all groups, in
    parallel (`privacy.parallel`), and a selection of keys is one more part: then it is
    (`epsilon`, `delta`)-DP. The rho is what those of the parts add up to, less than that of
    `epsilon`. Not covered: running time and memory.

    **Cost.** About four passes over each column. Of a table two for all columns; by groups three,
    and one more for a selection (`quantile_by` says where there are more).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> staff = {"age": rng.integers(18, 70, 1_000), "pay": rng.normal(3e3, 500, 1_000)}
    >>> out = describe(staff, epsilon=2.0, bounds={"age": (0, 100), "pay": (0, 1e4)})
    >>> list(out.columns)
    ['column', 'count', 'mean', '25%', '50%', '75%']
    """
    levels = Levels(q)
    if np.ndim(q) > 1:
        raise ValueError(f"q must have at most one dimension, got {np.ndim(q)}")
    given, frame = frame, table_of(frame, workers) or frame
    there = _names(frame)
    named = None if privacy_unit is None else _named(privacy_unit, there)
    names = _described(there, bounds, columns, named or [])
    keys = _keys(there, by, groups, delta, public_by)
    library = _library(given)  # once names are known to be distinct
    column_of = _reader(frame)
    of_keys = _keys_of(frame, column_of, keys)
    ids = privacy_unit
    if named is not None and not isinstance(frame, Table):  # which knows its own
        ids = [column_of(name) for name in named]
    person = _person(ids, contributions, max_contributions) | dict(neighbors=neighbors)
    own = dict[str, Any](nan_policy=nan_policy, workers=workers, confidence=confidence, **person)
    resolve_epsilon(epsilon, rho)  # exactly one of them, and positive
    kind, amount = ("epsilon", epsilon) if rho is None else ("rho", rho)
    budget = Fraction(*_checks.check_ratio(kind, amount))
    selection: Prepared[Any] | None = None
    if keys and groups is None:
        if rho is not None:
            raise ValueError(f"rho must be left out where groups are selected, got {rho}")
        first = _down(Fraction(kept_groups.SHARE) * budget)
        spend = dict(epsilon=first, delta=_checks.check_delta(delta))
        selection = Prepared.of(select_keys, of_keys, **spend, **person)
        budget -= Fraction(first)
    functions: dict[str, Callable[..., Any]] = dict(count=count, mean=mean, std=std)
    functions["quantile"] = quantile
    if keys:
        functions = dict(count=count_by, mean=mean_by, std=std_by, quantile=quantile_by)
        own["public_by"] = public_by
    ratios = _ratios(shares)
    labels = [f"{label}%" for label in _percentages(levels.values.tolist())]
    if _checks.check_flag("extremes", extremes):
        labels = ["min", *labels, "max"]
        functions["quantile"] = with_extremes_by if keys else with_extremes
    guess = {} if expected_n is None else {"expected_n": expected_n}
    parts: list[Statistic] = []
    for name in names:
        ends = bounds[name]
        place = dict(bounds=ends, resolution=_of(resolution, name), prior=_of(prior, name))
        clip = dict(lower=ends[0], upper=ends[1], q=None)
        options: dict[str, dict[str, Any]] = {
            "count": {},
            "mean": dict(covers=covers, **clip),
            "std": clip | guess,
            "quantile": dict(q=levels.values, covers=covers, **place, **guess),
        }
        unit = unit_of(dict(bounds=ends))
        left_out = {"std"} if unit is not None and unit.kind == INSTANTS else set()
        for statistic, part in _split(budget, ratios, left_out, len(names)):
            if part is None:
                parts.append(Statistic(name, statistic, None))
                continue
            spent_on: dict[str, Any] = {kind: part} | own | options[statistic]
            parts.append(
                Statistic(name, statistic, partial(Prepared.of, functions[statistic], **spent_on))
            )

    def prepared(groups: Any) -> list[Prepared[Any]]:
        given = dict(by=of_keys, groups=groups) if keys else {}
        asked = ((each.prepared, each.column) for each in parts)
        return [make(column_of(name), **given) for make, name in asked if make is not None]

    if isinstance(frame, Mapping):  # whose columns may be of several frames
        beside = _checks.named_keys([frame[key] for key in keys])
        if ids is not None:
            beside += Persons(ids).named
        for name in names:
            _checks.aligned(frame[name], beside, name)
    # what is public is refused before a record is read
    known = prepared([] if groups is None else groups)
    spent = [each.guarantee for each in known]
    if selection is not None:
        spent.append(selection.guarantee)

    def draw(rng: np.random.Generator) -> Any:
        kept, made = groups, known
        if selection is not None:
            kept = selection.draw(rng)
            made = prepared(kept)
        listed: list[tuple[Any, ...]] = [()]
        if keys:
            public = Groups(kept)
            listed = [(key,) if public.single else key for key in public.keys.tolist()]
        cells: dict[str, list[Any]] = {"column": [name for name in names for _ in listed]}
        for at, key in enumerate(keys):
            cells[key] = [row[at] for _ in names for row in listed]
        draws = [partial(each.draw, rng) for each in made]
        answers = iter(together(*draws) if isinstance(frame, Table) else (each() for each in draws))
        for each in parts:
            if each.prepared is None:
                for end in [""] if confidence is None else ["", " low", " high"]:
                    missing = [None] * len(listed)
                    cells.setdefault(f"{each.statistic}{end}", []).extend(missing)
                continue
            answer = next(answers)
            for label, found in _labelled(each.statistic, answer, labels, bool(keys)):
                cells.setdefault(label, []).extend(found)
        return _framed(library, cells)

    whole = privacy.compose(spent, delta=delta if selection else 0.0)
    return Prepared(Spent(whole), draw, "describe")


def _names(frame: Any) -> list[Any]:
    """The public names of the columns of a frame, which are strings but for pandas."""
    if isinstance(frame, Table):
        return frame.names
    there: Any = frame.keys() if isinstance(frame, Mapping) else _checks.names_of(frame)
    if there is None:
        raise TypeError(
            f"frame must be a data frame or a mapping of columns, got {type(frame).__name__}"
        )
    names = list(there)
    _checks.check_named("columns", names, names)
    return names


def _described(there: list[Any], bounds: Any, columns: Any, ids: list[Any]) -> list[Any]:
    """The columns to describe: public names that the frame has, and bounds; no ids."""
    if not isinstance(bounds, Mapping):
        raise TypeError(
            f"bounds must be a mapping from columns to (low, high), got {type(bounds).__name__}"
        )
    if isinstance(columns, str):
        raise TypeError(f"columns must be a sequence of names, got {columns!r}")
    names = list(bounds if columns is None else columns)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"columns must be one or more distinct names, got {names}")
    _checks.check_named("columns", names, there)
    for name in names:
        if name in ids:
            raise ValueError(f"columns must leave out those of the privacy_unit, got {name!r}")
        if name not in bounds:
            raise ValueError(f"bounds must have each of the columns, got none for {name!r}")
        if not isinstance(bounds[name], Sequence) or len(bounds[name]) != 2:
            raise ValueError(f"bounds must be two ends (low, high) for {name!r}")
    return names


def _of(option: Any, name: str) -> Any:
    """An option that may be a mapping from columns."""
    return option.get(name) if isinstance(option, Mapping) else option


def _keys(there: list[Any], by: Any, groups: Any, delta: Any, public_by: bool) -> list[Any]:
    """The columns of keys, if any."""
    if by is None:
        if groups is not None or delta or public_by:
            raise ValueError("groups, delta and public_by must be left out without by")
        return []
    keys = _checks.listed_names(by, there)
    for key in keys:
        if key not in there or key in ("column", *STATISTICS):
            raise ValueError(
                f"by must be some of the frame's columns, named unlike the answer's, got {key!r}"
            )
    if not keys or len(set(keys)) < len(keys):
        raise ValueError(f"by must be one or more distinct names, got {keys}")
    if groups is not None and delta:
        raise ValueError("delta must be left out where groups are given")
    return keys


def _ratios(shares: Mapping[str, float] | None) -> dict[str, Fraction]:
    """The parts of the statistics, in proportion."""
    given = SHARES if shares is None else shares
    if not isinstance(given, Mapping) or not given.keys() <= set(STATISTICS) or not given:
        known = ", ".join(STATISTICS)
        raise ValueError(f"shares must be a mapping from some of {known}, got {given!r}")
    return {
        name: Fraction(*_checks.check_ratio(f"the share of {name}", given[name]))
        for name in STATISTICS
        if name in given
    }


def _split(
    budget: Fraction, ratios: dict[str, Fraction], left_out: set[str], columns: int
) -> Iterator[tuple[str, float | None]]:
    """The budgets of the statistics of one of `columns` columns, rounded down; None without one."""
    whole = sum(ratio for name, ratio in ratios.items() if name not in left_out)
    if not whole:
        raise ValueError("shares must have more than std for columns of points in time")
    for name, ratio in ratios.items():
        yield name, None if name in left_out else _down(budget * ratio / whole / columns)


def _down(exact: Fraction) -> float:
    """The nearest number that is not above."""
    part = float(exact)
    return part if Fraction(part) <= exact else math.nextafter(part, 0.0)


def _reader(frame: Any) -> Callable[[Any], Any]:
    """What gives a column of a frame, not read yet where it is lazy."""
    if isinstance(frame, (Mapping, Table)):
        return frame.__getitem__
    narwhals = _checks.extra("narwhals.stable.v2", "describe", "frames")
    known = narwhals.from_native(frame)
    if isinstance(known, narwhals.LazyFrame):
        return lambda name: known.select(name).to_native()
    there = list(_checks.names_of(known))  # by place: names of pandas may be numbers, or tuples
    return lambda name: known[:, there.index(name)].to_native()


def _person(ids: Any, contributions: Any, max_contributions: int) -> dict[str, Any]:
    """The arguments of each part about whose the rows are."""
    if ids is None:
        Persons.in_place_of(None, None, contributions)  # which has to be left out
        return dict(max_contributions=max_contributions)
    if max_contributions != 1:
        raise ValueError(
            f"max_contributions must be left out with a privacy_unit, got {max_contributions!r}"
        )
    return dict(privacy_unit=ids, contributions=contributions)


def _named(unit: Any, there: list[Any]) -> list[Any] | None:
    """The columns of ids, by name; None for ids beside the frame."""
    return list(unit.columns) if isinstance(unit, TableColumns) else _checks.unit_names(unit, there)


def _keys_of(frame: Any, column_of: Callable[[Any], Any], keys: list[Any]) -> Any:
    """The columns of keys, as a release by group takes them."""
    if isinstance(frame, Table) and keys:
        return frame[keys]
    of_keys = [column_of(key) for key in keys]
    return of_keys[0] if len(of_keys) == 1 else of_keys


def _labelled(
    statistic: str, answer: Any, labels: list[str], grouped: bool
) -> Iterator[tuple[str, list[Any]]]:
    """Cells below each other, one for each group, with the names of their columns."""
    parts = {"": answer}
    if grouped:
        ends = {"": answer.values, " low": answer.low, " high": answer.high}
        parts = {end: part for end, part in ends.items() if part is not None}
    elif isinstance(answer, Estimate):
        parts = {"": answer.value, " low": answer.low, " high": answer.high}
    if not grouped:
        parts = {end: [part] for end, part in parts.items()}
    if statistic != "quantile":
        for end, part in parts.items():
            yield f"{statistic}{end}", list(part)
        return
    for place, label in enumerate(labels):
        for end, part in parts.items():
            yield f"{label}{end}", [row[place] for row in part]


def _percentages(levels: list[float]) -> list[str]:
    """The names of distinct levels: with six digits, or all of them if some would be alike."""
    short = [f"{100 * level:g}" for level in levels]
    if len(set(short)) == len(short):
        return short
    return [f"{(100 * Decimal(repr(level))).normalize():f}" for level in levels]


def _library(frame: Any) -> str:
    """The library of the answer: that of a frame which has one, else pandas, or else pyarrow."""
    if not isinstance(frame, (Mapping, Table)):
        narwhals = _checks.extra("narwhals.stable.v2", "describe", "frames")
        known = narwhals.from_native(frame, pass_through=True)
        if isinstance(known, (narwhals.DataFrame, narwhals.LazyFrame)):
            name: str = narwhals.get_native_namespace(known).__name__
            if name == "polars" or isinstance(known, narwhals.DataFrame):
                return name
    return "pyarrow" if isinstance(frame, Table) and find_spec("pandas") is None else "pandas"


def _framed(library: str, cells: dict[str, list[Any]]) -> Any:
    """A data frame of a library."""
    if library == "pandas":
        return _checks.extra("pandas", "describe", "pandas").DataFrame(cells)
    narwhals = _checks.extra("narwhals.stable.v2", "describe", "frames")
    typed = {label: _typed(column) for label, column in cells.items()}
    return narwhals.from_dict(typed, backend=library).to_native()


def _typed(column: list[Any]) -> Any:
    """Cells of one type, and missing ones: as they are, or as strings."""
    kinds = {type(cell) for cell in column} - {type(None)}
    if len(kinds) != 1:
        return [None if cell is None else str(cell) for cell in column]
    return np.array(column) if issubclass(kinds.pop(), np.generic) else column
