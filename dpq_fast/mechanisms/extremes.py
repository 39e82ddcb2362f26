"""Min, max, interquartile range and box plots: one call of quantiles each, and what is made of it.

Levels are public, so that all of it is post-processing: it is charged as its quantiles are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpq_fast import _checks, privacy
from dpq_fast._arguments import names_of, with_further
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data.persons import WEIGHTS
from dpq_fast.data.public_keys import Groups
from dpq_fast.data.units import DURATIONS, INSTANTS
from dpq_fast.mechanisms._calls import with_options
from dpq_fast.mechanisms.aggregates_by import GroupValues
from dpq_fast.mechanisms.quantile import FRONT as OF_LEVELS
from dpq_fast.mechanisms.quantile import choose_method, quantile
from dpq_fast.mechanisms.quantile_by import bounds_by_group, quantile_by
from dpq_fast.privacy.above_threshold import check_fraction
from dpq_fast.privacy.choice import value_epsilon
from dpq_fast.privacy.extremes import (
    OUTER,
    box_levels,
    check_level,
    confidence_of_each,
    extreme_level,
)
from dpq_fast.privacy.intervals import POPULATION, SAMPLE, Request
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of
from dpq_fast.released.box import FIVE, Box
from dpq_fast.released.estimate import Estimate
from dpq_fast.released.groups import GroupBoxes, GroupQuantiles

AGG_TREE = "agg_tree"  # whose intervals cover each by itself, whatever they are for
# What asks for intervals, which a box has none of.
INTERVALS = ("confidence", "covers", "interval_share")


def _options() -> list[str]:
    return [name for name in names_of(quantile) if name != "q"]


def _options_by() -> list[str]:
    return [name for name in names_of(quantile_by) if name != "q"]


def _with_level(
    x: Any,
    levels_of: Callable[[float], Any],
    /,
    *,
    level: float | None = None,
    epsilon: float | None = None,
    rho: float | None = None,
    method: str = "auto",
    neighbors: str = "swap",
    counts: Any = None,
    privacy_unit: Any = None,
    contributions: Any = WEIGHTS,
    max_contributions: int = 1,
    expected_n: int | None = None,
    **options: Any,
) -> tuple[float, Any, dict[str, Any]]:
    """The level that stands for a min, and the levels and options that `quantile` is to have."""
    spent: dict[str, Any] = dict(epsilon=epsilon, rho=rho)
    person: dict[str, Any] = dict(neighbors=neighbors, max_contributions=max_contributions)
    n = expected_n
    if n is None:
        n = _checks.public_rows(x, counts, relation_of(neighbors).n_is_public)
    if level is None:
        level = extreme_level(n, **person, **spent, **_interval(options))
    q = levels_of(check_level(level))
    options |= dict(method=method, counts=counts, expected_n=expected_n) | person | spent
    if method == "auto":
        options |= _pilot(x, levels_of, options, n)
    return level, q, options


def _with_level_by(
    x: Any,
    levels_of: Callable[[float], Any],
    /,
    *,
    groups: Any,
    level: float | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    bounds: Any = None,
    neighbors: str = "swap",
    public_by: bool = False,
    method: str | None = None,
    counts: Any = None,
    privacy_unit: Any = None,
    contributions: Any = WEIGHTS,
    max_contributions: int = 1,
    expected_n: int | None = None,
    selection_share: float | None = None,
    **options: Any,
) -> tuple[float, Any, dict[str, Any]]:
    """As `_with_level` of `quantile_by`, by what a group has of the budget and of the records."""
    person: dict[str, Any] = dict(neighbors=neighbors, max_contributions=max_contributions)
    person |= dict(public_by=public_by)
    names = Groups([] if groups is None else groups)
    n = expected_n
    if n is None and len(names):
        rows = _checks.public_rows(x, counts, relation_of(neighbors).n_is_public)
        n = None if rows is None else rows // len(names) or 1
    selected = privacy.kept_groups.share_of(groups, selection_share)
    own = epsilon
    if selected is not None and epsilon is not None:
        own = _checks.check_epsilon(epsilon) * (1.0 - check_fraction(selected, "selection_share"))
    part = privacy.parallel.part_of(epsilon=own, rho=rho, **person)
    records = privacy.agg_tree.expected_records(n, max_contributions)
    spent: dict[str, Any] = dict(epsilon=part.epsilon, rho=part.rho)
    if level is None:
        level = extreme_level(records, neighbors=part.neighbors, **spent, **_interval(options))
    q = levels_of(check_level(level))
    options |= dict(groups=groups, counts=counts, bounds=bounds)
    options |= dict(epsilon=epsilon, delta=delta, rho=rho, method=method, **person)
    options |= dict(selection_share=selection_share)
    options |= dict(expected_n=n if method is None else expected_n)
    if method is None and (groups is None or not delta):
        pairs = bounds_by_group(bounds, names) or [bounds]
        asked = options | spent | dict(bounds=pairs[0], neighbors=part.neighbors)
        options |= _pilot([], levels_of, asked | dict(max_contributions=1), records)
    return level, q, options


def _pilot(
    x: Any, levels_of: Callable[[float], Any], asked: dict[str, Any], n: int | None
) -> dict[str, Any]:
    """The method that "auto" takes near an end, if that tells what is far out from what is not.

    The level is as near as it can be found at, but "auto" can not know that.
    """
    levels = Levels.of(levels_of(0.0))
    request = Request.of(**_interval(asked))
    person = asked["neighbors"], asked["max_contributions"]
    given = ("rho", "bounds", "neighbors", "resolution", "dither", "prior", "max_contributions")
    chosen = choose_method(
        x,
        levels,
        epsilon=value_epsilon(asked["epsilon"], request, levels, *person, n),
        expected_n=n,
        **{name: asked[name] for name in given if name in asked},
    )
    return {"method": chosen} if chosen in ("two_stage", AGG_TREE) else {}


@releases(INSTANTS, DURATIONS)
@with_further(_options)
@with_options(_with_level)
def min(x: Any, **options: Any) -> Prepared[Any]:
    r"""Release a quantile so near the lower end that it stands for the min.

    Parameters
    ----------
    x : array_like of real numbers, times or durations, shape (n,)
        Private sample, as in `quantile`.
    level : float, optional
        The share of the records beyond the answer, in (0, 1/2]. Public. Default: that of
        `privacy.extremes.extreme_level` (see Notes).
    epsilon, rho, neighbors, counts, privacy_unit, contributions, max_contributions
        As in `quantile`.
    method : str, default "auto"
        As in `quantile`; here "auto" takes all levels for near an end, however large they are.
    expected_n
        As in `quantile`. The default of `level` goes by it, too.
    **options
        As in `quantile`, with the same guarantee.

    Returns
    -------
    float or Estimate
        ``quantile(x, level)``, in the unit of `x`; the level is the one that was given, or else
        ``privacy.extremes.extreme_level(n, epsilon=epsilon)``, which takes the `confidence`, too.
        An interval is for the quantile at that level, not for the smallest record.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `quantile`; and if `level` does not lie in (0, 1/2].

    See Also
    --------
    max, box, quantile : The other end, both with the quartiles, and any level.
    min_by : By group.

    Notes
    -----
    **Level.** The smallest record is that of one person, and no private answer is near it for all
    columns. What is released is the quantile that enough records lie beyond to be found: by default
    a share 24 k / (epsilon n) of them, at most 1/4, for up to k records of a person. Here n is
    `expected_n`, else the number of rows where it is public ("swap"), else that of 10,000 persons;
    and epsilon is what the value has of it beside an interval, or the root of twice the rho. Of six
    columns of 300 to 10,000 records, epsilon = 1 and bounds that are up to 1,000 times too wide,
    one answer in 1,000 is outside of all records by more than half the interquartile range, and of
    the worst column one in 100. With 10 in place of 24 it is 18 in 100, and of the worst column 68,
    and the others are nearer to the extreme by a third (`privacy.extremes`).

    **Privacy.** That of the call of `quantile` that it is.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> bool(10 < min(ages, epsilon=1.0, bounds=(0, 120), resolution=1) < 25)
    True
    """
    _, q, options = _with_level(x, float, **options)
    return Prepared.of(quantile, x, q, **options)


@releases(INSTANTS, DURATIONS)
@with_further(_options)
@with_options(_with_level)
def max(x: Any, **options: Any) -> Prepared[Any]:
    r"""Release a quantile so near the upper end that it stands for the max.

    Parameters
    ----------
    x : array_like of real numbers, times or durations, shape (n,)
        Private sample, as in `quantile`.
    level, epsilon, rho, method, neighbors, counts, privacy_unit, contributions
        As in `min`.
    max_contributions, expected_n
        As in `min`.
    **options
        As in `quantile`, with the same guarantee.

    Returns
    -------
    float or Estimate
        ``quantile(x, 1 - level)``, in the unit of `x`; with the level of `min`.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `min`.

    See Also
    --------
    min : With the rule for the default of `level`.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> bool(70 < max(ages, epsilon=1.0, bounds=(0, 120), resolution=1) < 90)
    True
    """
    _, q, options = _with_level(x, _mirrored, **options)
    return Prepared.of(quantile, x, q, **options)


@releases(INSTANTS, DURATIONS, lengths=True)
@with_further(_options)
def iqr(x: Any, **options: Any) -> Prepared[Any]:
    r"""Release the interquartile range: the 75th percentile less the 25th, by one joint draw.

    Parameters
    ----------
    x : array_like of real numbers, times or durations, shape (n,)
        Private sample, as in `quantile`.
    **options
        As in `quantile`, with the same guarantee.

    Returns
    -------
    float or Estimate
        Never negative, in the unit of `x`; of times a duration. With a `confidence`, an `Estimate`.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `quantile`.

    See Also
    --------
    box, quantile, iqr_by

    Notes
    -----
    **Intervals** are from the difference of the inner ends of two intervals to that of the outer
    ones. Those of the records at hand cover both quartiles at once with the `confidence`. Those of
    a population, and of "agg_tree", cover each by itself, and have half of what may be missed each
    (`privacy.extremes`).

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> bool(25 < iqr(ages, epsilon=1.0, bounds=(0, 120), resolution=1) < 37)
    True
    """
    made = Prepared.of(quantile, x, OUTER, **options)
    request = Request.of(options.get("confidence"), options.get("covers", SAMPLE))
    if request is None:
        return made.then(lambda quartiles: float(_difference(quartiles)))
    if request.covers == POPULATION or made.mechanism == AGG_TREE:
        options["confidence"] = confidence_of_each(request)
        made = Prepared.of(quantile, x, OUTER, **options)

    def range_of(found: Any) -> Estimate:
        value, low, high = map(float, _differences(*found))
        return Estimate(value, low, high, request.confidence, request.covers)

    return made.then(range_of)


@releases(INSTANTS, DURATIONS)
@with_further(lambda: [name for name in _options() if name not in INTERVALS])
@with_options(_with_level)
def box(x: Any, whisker: float = 1.5, **options: Any) -> Prepared[Box]:
    r"""Release the five numbers of a box plot by one joint draw: quartiles, and ends of whiskers.

    Parameters
    ----------
    x : array_like of real numbers, times or durations, shape (n,)
        Private sample, as in `quantile`.
    whisker : float, default 1.5
        How many interquartile ranges a whisker is long at most, finite and not negative. Public.
    level, epsilon, rho, method, neighbors, counts, privacy_unit, contributions
        As in `min`. Here a level is at most 1/4.
    max_contributions, expected_n
        As in `min`.
    **options
        As in `quantile`, with the same guarantee.

    Returns
    -------
    Box
        ``low <= q1 <= median <= q3 <= high``, in the unit of `x`, and the `level`; of unpacking the
        five numbers.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `min`; and if `whisker` is negative.

    See Also
    --------
    min : With the rule for the default of `level`.
    plots.box : Draws it.
    quantile : Takes a `confidence`.
    box_by : By group.

    Notes
    -----
    **Whiskers.** Of the released quantiles Q at the levels (`level`, 1/4, 1/2, 3/4, 1 - `level`)
    with the range R between the quartiles, low is the larger of Q(level) and Q(1/4) - `whisker` R,
    and high the mirror image. There are no outliers: each would be one person.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> low, q1, median, q3, high = box(ages, epsilon=1.0, bounds=(0, 120), resolution=1)
    >>> bool(low <= q1 <= median <= q3 <= high)
    True
    """
    whisker = _checks.check_nonnegative("whisker", whisker)
    _without_intervals(options)
    level, q, options = _with_level(x, box_levels, **options)
    made = Prepared.of(quantile, x, q, **options)
    return made.then(lambda five: Box.of(five, whisker, level))


@releases(INSTANTS, DURATIONS)
@with_further(_options_by)
@with_options(_with_level_by)
def min_by(x: Any, by: Any, **options: Any) -> Prepared[GroupQuantiles]:
    r"""Release a quantile of each group so near the lower end that it stands for the min.

    Parameters
    ----------
    x, by, groups
        As in `quantile_by`.
    level : float, optional
        The share of a group's records beyond its answer, in (0, 1/2], the same for all groups.
        Public. Default: as in `min`, see Notes.
    epsilon, delta, rho, bounds, neighbors, public_by, counts, privacy_unit, contributions
        As in `quantile_by`.
    max_contributions, selection_share
        As in `quantile_by`.
    method : str, optional
        As in `quantile_by`, but the default takes all levels for near an end.
    expected_n
        As in `quantile_by`. The default of `level` goes by it, too. Default: under "swap" the
        number of rows, divided by that of the `groups`, where these are given; else 10,000.
    **options
        As in `quantile_by`, with the same guarantee.

    Returns
    -------
    GroupQuantiles
        ``q`` is the level; else as of `quantile_by` at one level.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `quantile_by`; and if `level` does not lie in (0, 1/2].

    See Also
    --------
    min, max_by, quantile_by

    Notes
    -----
    **Level.** The rule of `min` with the epsilon (or rho) that a group has, which is half (a
    quarter) of that of the call under "swap" with private keys, and with the `expected_n` of a
    group. Where sizes differ give that of the smaller groups: answers of groups with far fewer
    records than that are far out.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pay, town = rng.normal(50, 10, size=9_000), rng.integers(0, 3, size=9_000)
    >>> out = min_by(pay, town, groups=[0, 1, 2], epsilon=2.0, bounds=(0, 100))
    >>> out.values.shape
    (3,)
    """
    _, q, options = _with_level_by(x, float, **options)
    return Prepared.of(quantile_by, x, by, q, **options)


@releases(INSTANTS, DURATIONS)
@with_further(_options_by)
@with_options(_with_level_by)
def max_by(x: Any, by: Any, **options: Any) -> Prepared[GroupQuantiles]:
    r"""Release a quantile of each group so near the upper end that it stands for the max.

    Parameters
    ----------
    x, by, groups
        As in `quantile_by`.
    level, epsilon, delta, rho, bounds, neighbors, public_by, method, counts, privacy_unit
        As in `min_by`.
    contributions, max_contributions, selection_share, expected_n
        As in `min_by`.
    **options
        As in `quantile_by`, with the same guarantee.

    Returns
    -------
    GroupQuantiles
        ``q`` is 1 less the level; else as of `quantile_by` at one level.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `min_by`.

    See Also
    --------
    min_by : With the rule for the default of `level`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pay, town = rng.normal(50, 10, size=9_000), rng.integers(0, 3, size=9_000)
    >>> out = max_by(pay, town, groups=[0, 1, 2], epsilon=2.0, bounds=(0, 100), level=0.02)
    >>> out.q
    0.98
    """
    _, q, options = _with_level_by(x, _mirrored, **options)
    return Prepared.of(quantile_by, x, by, q, **options)


@releases(INSTANTS, DURATIONS, lengths=True)
@with_further(_options_by)
def iqr_by(x: Any, by: Any, *, groups: Any, **options: Any) -> Prepared[GroupValues]:
    r"""Release the interquartile range of each group.

    Parameters
    ----------
    x, by, groups
        As in `quantile_by`.
    **options
        As in `quantile_by`, with the same guarantee.

    Returns
    -------
    GroupValues
        ``groups`` and ``values``, in the order of `groups`, never negative; of times durations.
        ``out[key]`` is one group's answer, ``out.to_pandas()`` a table; with a `confidence` also
        ``low`` and ``high``, as in `iqr`.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `quantile_by`.

    See Also
    --------
    iqr, box_by, quantile_by

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pay, town = rng.normal(50, 10, size=9_000), rng.integers(0, 3, size=9_000)
    >>> out = iqr_by(pay, town, groups=[0, 1, 2], epsilon=2.0, bounds=(0, 100))
    >>> bool((out.values >= 0).all())
    True
    """
    options["groups"] = groups
    made = Prepared.of(quantile_by, x, by, OUTER, **options)
    request = Request.of(options.get("confidence"), options.get("covers", SAMPLE))
    if request is not None and (request.covers == POPULATION or _method(made) == AGG_TREE):
        options["confidence"] = confidence_of_each(request)
        made = Prepared.of(quantile_by, x, by, OUTER, **options)

    def ranges(found: GroupQuantiles) -> GroupValues:
        if request is None or found.low is None or found.high is None:
            return GroupValues(found.groups, _difference(found.values), names=found.names)
        parts = _differences(found.values, found.low, found.high)
        asked = request.confidence, request.covers
        return GroupValues(found.groups, *parts, *asked, found.names)

    return made.then(ranges)


@releases(INSTANTS, DURATIONS)
@with_further(lambda: [name for name in _options_by() if name not in INTERVALS])
@with_options(_with_level_by)
def box_by(x: Any, by: Any, whisker: float = 1.5, **options: Any) -> Prepared[GroupBoxes]:
    r"""Release the five numbers of a box plot for each group.

    Parameters
    ----------
    x, by, groups
        As in `quantile_by`.
    whisker
        As in `box`.
    level, epsilon, delta, rho, bounds, neighbors, public_by, method, counts, privacy_unit
        As in `min_by`. Here a level is at most 1/4.
    contributions, max_contributions, selection_share, expected_n
        As in `min_by`.
    **options
        As in `quantile_by`, with the same guarantee.

    Returns
    -------
    GroupBoxes
        ``groups`` and ``values``, of shape (G, 5), in the order of `groups`; ``out[key]`` is one
        group's `Box`, ``out.to_pandas()`` a table.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `min_by`; and if `whisker` is negative.

    See Also
    --------
    box : With the rule for whiskers.
    min_by : With the rule for the default of `level`.
    plots.box : Draws them.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pay, town = rng.normal(50, 10, size=9_000), rng.integers(0, 3, size=9_000)
    >>> out = box_by(pay, town, groups=[0, 1, 2], epsilon=2.0, bounds=(0, 100))
    >>> out.values.shape, len([*out[0]])
    ((3, 5), 5)
    """
    whisker = _checks.check_nonnegative("whisker", whisker)
    _without_intervals(options)
    level, q, options = _with_level_by(x, box_levels, **options)
    made = Prepared.of(quantile_by, x, by, q, **options)

    def boxes(found: GroupQuantiles) -> GroupBoxes:
        five = [[*Box.of(quantiles, whisker, level)] for quantiles in found.values]
        values = np.array(five, dtype=np.float64).reshape(-1, len(FIVE))
        return GroupBoxes(found.groups, values, level, names=found.names)

    return made.then(boxes)


@releases(INSTANTS, DURATIONS)
@with_further(_options)
@with_options(_with_level)
def with_extremes(x: Any, q: Any, **options: Any) -> Prepared[Any]:
    """Levels by one joint draw, between those of `min` and of `max`.

    Parameters
    ----------
    x, **options
        As in `min`.
    q : sequence of float
        Levels. Public.

    Returns
    -------
    ndarray of float64 or Estimate
        The min, the quantiles and the max.
    """
    _, levels, options = _with_level(x, partial(_around, q), **options)
    return Prepared.of(quantile, x, levels, **options)


@releases(INSTANTS, DURATIONS)
@with_further(_options_by)
@with_options(_with_level_by)
def with_extremes_by(x: Any, by: Any, q: Any, **options: Any) -> Prepared[GroupQuantiles]:
    """As `with_extremes`, by group.

    Parameters
    ----------
    x, by, **options
        As in `min_by`.
    q : sequence of float
        Levels. Public.

    Returns
    -------
    GroupQuantiles
        Of the min, the quantiles and the max.
    """
    _, levels, options = _with_level_by(x, partial(_around, q), **options)
    return Prepared.of(quantile_by, x, by, levels, **options)


def _around(q: Sequence[float], level: float) -> list[float]:
    """Levels with those of a min and a max around them."""
    return [level, *q, 1.0 - level]


def _interval(options: dict[str, Any]) -> dict[str, Any]:
    """What is asked for of an interval."""
    return {name: options[name] for name in INTERVALS if name in options}


def _mirrored(level: float) -> float:
    """The level of a max."""
    return 1.0 - level


def _without_intervals(options: dict[str, Any]) -> None:
    for name in INTERVALS:
        if name in options:
            raise TypeError(f"{name} must be left out for a box")  # said by its name


def _method(made: Prepared[Any]) -> str:
    """The mechanism in each group."""
    calibration: Any = made.spent
    method: str = getattr(calibration, "release", calibration).method
    return method


@np.errstate(over="ignore")  # of numbers that are beyond float64 the range is infinite
def _difference(quartiles: Any) -> Any:
    """The last of two quantiles less the first, along the last axis."""
    return quartiles[..., 1] - quartiles[..., 0]


@np.errstate(over="ignore")
def _differences(value: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """The same, and its interval."""
    least = np.maximum(low[..., 1] - high[..., 0], 0.0)
    return _difference(value), least, high[..., 1] - low[..., 0]


# The calls that choose a mechanism, of one column.
FRONT = OF_LEVELS | {function.__name__: function for function in (min, max, iqr, box)}
