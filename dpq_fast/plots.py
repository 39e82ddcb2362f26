"""Pictures of what was released, and of plans, with Matplotlib (extra `plot`).

Axes in, axes out: each function draws into `ax`, or into a new figure, and returns the axes. Labels
that the axes have already stay. No style and no global setting is changed; to show or to save the
picture is the caller's. What is drawn is public by then, so a picture costs no privacy.

Colors are those of M. Okabe and K. Ito, which people tell apart with any color vision; series
differ in line and marker, too, for a print in grey.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast.data.leaves import points_below, points_on
from dpq_fast.data.units import DURATIONS, TICKS, Time, in_unit
from dpq_fast.planning.plans import Plan, first_of
from dpq_fast.planning.words import digits
from dpq_fast.released.box import Box
from dpq_fast.released.cdf import CDF
from dpq_fast.released.estimate import Estimate
from dpq_fast.released.groups import GroupAnswers, GroupBoxes

__all__ = ["box", "cdf", "groups", "histogram", "plan", "quantiles"]

# On a light background, and on a dark one.
LIGHT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#5C5C5C")
DARK = ("#56B4E9", "#E69F00", "#2CCB9C", "#CC79A7", "#F0E442", "#BBBBBB")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P")
# The coverage of a band that is asked for by True, and how opaque bands are.
COVERAGE, SHADE = 0.95, 0.25
# Size of a dot, and of one among many.
LARGE, SMALL = 4.5, 2.5
# Most steps of a band: more cannot be seen, and take long to draw.
MOST_STEPS = 4096
# Levels up to this many are dots with bars; more are a line with a band.
FEW_LEVELS = 30
# Height of a group, and of what else a picture of groups has, and the greatest height: in inches.
GROUP_HEIGHT, FRAME_HEIGHT, TALLEST = 0.2, 1.0, 12.0
# Height of a line of text, in sizes of its letters; points of an inch.
LINE_HEIGHT, POINTS = 1.3, 72.0
# Width of a date along an axis, in sizes of its letters.
DATE_LETTERS = 4.0
# How much farther an interval without an end reaches than all that have one, as a part of that.
BEYOND = 0.1
# Units of durations, longest first.
LONG = {"days": TICKS["D"], "hours": TICKS["h"], "minutes": TICKS["m"], "seconds": TICKS["s"]}
LONG |= {"milliseconds": TICKS["ms"], "microseconds": TICKS["us"], "nanoseconds": TICKS["ns"]}


def cdf(F: CDF, ax: Any = None, *, band: Any = True, **options: Any) -> Any:
    r"""Draw a released distribution function, and how far off it may be.

    Parameters
    ----------
    F : CDF
        From `dpq_fast.cdf`. It is drawn as it is: a step at each lattice point of its own, a slope
        where points share a step.
    ax : matplotlib.axes.Axes, optional
        Default: those of a new figure.
    band : bool or float, default True
        Shade where the distribution function of the records lies, everywhere at once, with this
        probability: True stands for 0.95, where the method states an accuracy.
    **options
        For ``ax.plot``, such as `label` and `color`.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If Matplotlib is not installed.
    TypeError, ValueError
        If an argument breaks its rule, or `band` is a number and the method states no accuracy.

    Notes
    -----
    **Band.** Let alpha be ``F.accuracy(1 - band)``. Up to an edge the number of records is within
    alpha of what `F` says, and so is the number above it; then the share up to the edge is within
    alpha / ``F.total``, whether that is exact or an estimate. Between two edges the share is
    between those at both, so that the band is a staircase. It is for the records as they are
    clamped to the bounds and rounded to the lattice.

    Examples
    --------
    >>> import numpy as np
    >>> import dpq_fast as dpq
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> released = dpq.cdf(ages, epsilon=1.0, bounds=(0, 120), resolution=1)
    >>> ax = dpq.plots.cdf(released, label="ages")
    >>> ax.get_ylabel()
    'share of the records\n(95% band)'
    """
    _expect("F", F, CDF)
    coverage = _coverage(band)
    if band is True and F._noise is None:
        coverage = None
    stairs = None if coverage is None else _stairs(F, 1.0 - coverage)
    ax = _axes(ax, "plots.cdf")
    x, p = _vertices(F)
    (numbers,), unit = _on(ax.xaxis, "F", in_unit(F.unit, x))
    number = len(ax.lines)
    style = dict(color=_color(ax, number), linestyle=LINES[number % len(LINES)])
    (line,) = ax.plot(numbers, p, **_over(style, options))
    words = "share of the records"
    if stairs is not None and coverage is not None:
        at, low, high = stairs
        (numbers,), _ = _on(ax.xaxis, "F", in_unit(F.unit, at))
        ax.fill_between(numbers, low, high, color=line.get_color(), alpha=SHADE, linewidth=0.0)
        words += f"\n({_percent(coverage)} band)"
    return _named(ax, unit, words)


def quantiles(q: Any, answer: Any, ax: Any = None, **options: Any) -> Any:
    r"""Draw released quantiles against their levels, with intervals where there are any.

    Parameters
    ----------
    q : float or array_like of float
        The levels, in [0, 1], as the release was asked for them.
    answer : float, array_like or Estimate
        What the release gave: numbers, times or durations in the shape of `q`, or an `Estimate` of
        such. Up to 30 levels are dots, with bars for intervals; more are a line, with a band.
    ax : matplotlib.axes.Axes, optional
        Default: those of a new figure.
    **options
        For ``ax.errorbar``; for a line ``ax.plot``.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If Matplotlib is not installed.
    TypeError, ValueError
        If an argument breaks its rule.

    Notes
    -----
    Each interval covers by itself, as `Estimate` says. One that has no end on a side reaches to an
    arrowhead beyond all the others.

    Examples
    --------
    >>> import numpy as np
    >>> import dpq_fast as dpq
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> q = [0.1, 0.25, 0.5, 0.75, 0.9]
    >>> deciles = dpq.quantile(ages, q, epsilon=1.0, bounds=(0, 120), confidence=0.95)
    >>> ax = dpq.plots.quantiles(q, deciles)
    >>> ax.get_ylabel()
    'value\n(95% intervals for the sample)'
    """
    levels = np.atleast_1d(_checks.real_array("q", q))
    if levels.size == 0 or not ((levels >= 0.0) & (levels <= 1.0)).all():
        raise ValueError("q must be one or more levels in [0, 1]")
    given = _Answers.of(answer)
    if given.shape != np.shape(q):
        raise ValueError(f"answer must have the shape of q, {np.shape(q)}, got {given.shape}")
    ax = _axes(ax, "plots.quantiles")
    parts, unit = _on(ax.yaxis, "answer", *given.parts())
    levels = levels.ravel()
    order = np.argsort(levels, kind="stable")
    levels, parts = levels[order], [part.ravel()[order] for part in parts]
    if levels.size <= FEW_LEVELS:
        _dots(ax, levels, parts, options, across=False)
    else:
        number = len(ax.lines)
        style = dict(color=_color(ax, number), linestyle=LINES[number % len(LINES)])
        (line,) = ax.plot(levels, parts[0], **_over(style, options))
        if given.about:
            low, high, _, _ = _closed(*parts)
            ax.fill_between(levels, low, high, color=line.get_color(), alpha=SHADE, linewidth=0.0)
    return _named(ax, "level", unit + given.about)


def plan(made: Plan, ax: Any = None, **options: Any) -> Any:
    r"""Draw the predicted errors of a plan against epsilon, both on a log scale.

    Parameters
    ----------
    made : Plan
        From `dpq_fast.plan`, `plan_sum` or `plan_mean`. What a share `level` of releases stays
        below is drawn: the error in ranks, or without ranks in the unit of the data; without a
        guess the largest over all shapes of columns.
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
    TypeError
        If an argument is not of the type its rule asks for.

    Notes
    -----
    A line for each method, or for each group. Where there are several methods, a filled marker says
    that "auto" takes the method there. Of more than six groups all lines are thin and alike, and
    only those of the largest and the smallest error are named. The smallest epsilon for a target,
    where the plan has one, is a vertical line.

    Examples
    --------
    >>> import dpq_fast as dpq
    >>> made = dpq.plan(0.5, n=1_000, bounds=(0, 120), target=10)
    >>> ax = dpq.plots.plan(made)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('epsilon', 'error in ranks\n(95% of releases stay below)')
    """
    _expect("made", made, Plan)
    ax = _axes(ax, "plots.plan")
    errors = first_of(made).quantile
    by_group = made.group is not None
    names = [str(each) for each in (made.method if made.group is None else made.group)]
    rows_of = {name: np.flatnonzero(np.array(names) == name) for name in dict.fromkeys(names)}
    several = (
        len(set(zip(made.epsilon.tolist(), names, strict=True))) > np.unique(made.epsilon).size
    )
    many = len(rows_of) > len(MARKERS)
    if not several:
        rows_of = {names[0]: np.arange(len(made))}
    by_error = sorted(rows_of, key=lambda name: float(errors[rows_of[name]].max()))
    labels = dict.fromkeys(rows_of, "_") if many else {name: name for name in rows_of}
    labels |= {name: name for name in (by_error[-1], by_error[0])}
    before = len(ax.lines)
    for place, (name, rows) in enumerate(rows_of.items(), before):
        rows = rows[np.argsort(made.epsilon[rows])]
        x, y = made.epsilon[rows], errors[rows]
        if many:
            ends = (by_error[-1], by_error[0])
            place = before + (ends.index(name) + 1 if name in ends else 0)
        style: dict[str, Any] = dict(color=_color(ax, place), label=labels[name])
        style |= dict(marker=MARKERS[place % 6], linestyle=LINES[place % 6])
        style |= dict(markersize=5.0, markerfacecolor="none")
        if many and labels[name] == "_":
            style |= dict(linewidth=0.7, alpha=0.6, marker="", zorder=1.5)
        (line,) = ax.plot(x, y, **_over(style, options))
        filled = made.chosen[rows] | by_group
        if not many:
            look = dict(marker=line.get_marker(), s=line.get_markersize() ** 2, zorder=2.5)
            ax.scatter(x[filled], y[filled], color=line.get_color(), **look)
    ax.set(xscale="log", yscale="log")
    for axis, values in ((ax.xaxis, made.epsilon), (ax.yaxis, errors)):
        _decimal(axis, values)
    if made.needed is not None:
        words = f"target: {digits(made.needed)}"
        look = dict(color=ax.xaxis.label.get_color(), linestyle=":", linewidth=1.0)
        ax.axvline(made.needed, label=words, **look)
    if several or made.needed is not None:
        title = None
        if several and not by_group and not made.chosen.all():
            title = "filled: auto takes it"
        elif many:
            title = f"{len(rows_of):,} groups, among them"
        ax.legend(title=title)
    unit = "the unit of the data" if made.ranks is None else "ranks"
    return _named(
        ax, "epsilon", f"error in {unit}\n({_percent(made.level)} of releases stay below)"
    )


def groups(keys: Any, answer: Any = None, ax: Any = None, **options: Any) -> Any:
    """Draw one released value for each group: dots in their order, with intervals if any.

    Parameters
    ----------
    keys : sequence or GroupAnswers
        What the groups are called; of several columns, tuples. Or the answer itself, which knows.
    answer : array_like, Estimate or GroupAnswers
        A number, time or duration for each group, or an `Estimate` of such, or what `quantile_by`
        at one level, `count_by`, `sum_by` or `mean_by` gave.
    ax : matplotlib.axes.Axes, optional
        Default: those of a new figure, which is the taller the more groups there are.
    **options
        For ``ax.errorbar``.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If Matplotlib is not installed.
    TypeError, ValueError
        If an argument breaks its rule.

    Notes
    -----
    The largest value is at the top. Groups without a value, such as NaN, are at the bottom, without
    a dot. Where there is no room for all names every second, third, ... one is there.

    Examples
    --------
    >>> import numpy as np
    >>> import dpq_fast as dpq
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["hr", "it", "ops"], size=3_000)
    >>> pay = rng.normal(50_000, 9_000, size=3_000)
    >>> place = dict(groups=["hr", "it", "ops"], bounds=(0, 500_000), resolution=100)
    >>> released = dpq.quantile_by(pay, group, 0.5, epsilon=1.0, confidence=0.95, **place)
    >>> ax = dpq.plots.groups(released)
    >>> sorted(label.get_text() for label in ax.get_yticklabels())
    ['hr', 'it', 'ops']
    """
    if isinstance(keys, GroupAnswers) and answer is None:
        answer = keys
    if isinstance(keys, GroupAnswers):
        keys = keys.groups.tolist()
    names = [_shown(key) for key in _listed(keys)]
    given = _Answers.of(answer)
    if given.shape != (len(names),):
        raise ValueError(
            f"answer must be one value for each of {len(names)} groups, got shape {given.shape}"
        )
    if not names:
        raise ValueError("keys must be those of one or more groups, got none")
    tall = min(FRAME_HEIGHT + GROUP_HEIGHT * len(names), TALLEST)
    ax = _axes(ax, "plots.groups", height=tall)
    parts, unit = _on(ax.xaxis, "answer", *given.parts())
    order = np.argsort(np.where(np.isnan(parts[0]), -np.inf, parts[0]), kind="stable")
    places = np.arange(len(names), dtype=np.float64)
    every = _spacing(ax, len(names))
    size = LARGE if every == 1 else SMALL
    _dots(ax, places, [part[order] for part in parts], options, size, across=True)
    ax.set_ylim(-0.75, len(names) - 0.25)
    shown = places[::-1][::every]  # from the top
    ax.set_yticks(shown, [names[order[int(place)]] for place in shown])
    ax.tick_params(axis="y", length=0)
    ax.set_axisbelow(True)
    ax.grid(axis="y", linewidth=0.5, alpha=0.4)
    return _named(ax, unit + given.about, given.names)


def box(boxes: Any, ax: Any = None, labels: Any = None, **options: Any) -> Any:
    r"""Draw released boxes beside each other, in their order.

    Parameters
    ----------
    boxes : Box, sequence of Box, mapping of names to Box, or GroupBoxes
        From `dpq_fast.box` or `box_by`.
    ax : matplotlib.axes.Axes, optional
        Default: those of a new figure.
    labels : sequence, optional
        What the boxes are called, one for each. Default: the names or the groups; else nothing.
    **options
        For ``ax.bxp``, such as `widths` and `orientation`.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If Matplotlib is not installed.
    TypeError, ValueError
        If an argument breaks its rule.

    Notes
    -----
    A box reaches from the lower quartile to the upper one, with a line at the median. Beyond the
    ends of the whiskers nothing is drawn: outliers are persons. `Box` says where the ends are.

    Examples
    --------
    >>> import numpy as np
    >>> import dpq_fast as dpq
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> released = dpq.box(ages, epsilon=1.0, bounds=(0, 120), resolution=1)
    >>> ax = dpq.plots.box({"ages": released})
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['ages']
    """
    names: Any = None
    words = ""
    if isinstance(boxes, Box):
        boxes = [boxes]
    elif isinstance(boxes, GroupBoxes):
        words = ", ".join(map(str, boxes.names)) or "group"
        names, boxes = zip(*boxes.items(), strict=True) if len(boxes) else ((), ())
    elif isinstance(boxes, Mapping):
        names, boxes = boxes.keys(), boxes.values()
    elif isinstance(boxes, (str, bytes)) or not hasattr(boxes, "__iter__"):
        raise TypeError(f"boxes must be one or more boxes, got {type(boxes).__name__}")
    boxes = list(boxes)
    if not boxes:
        raise ValueError("boxes must be one or more, got none")
    for each in boxes:
        _expect("boxes", each, Box, "one or more boxes")
    if labels is not None:
        names = _listed(labels, "labels")
        if len(names) != len(boxes):
            raise ValueError(f"labels must be one for each of {len(boxes)} boxes, got {len(names)}")
    ax = _axes(ax, "plots.box")
    across = options.get("orientation") == "horizontal" or options.get("vert") is False
    axis = ax.xaxis if across else ax.yaxis
    parts, unit = _on(axis, "boxes", *(np.array([*each]) for each in boxes))
    keys = ("whislo", "q1", "med", "q3", "whishi")
    shown = [_shown(name) for name in names] if names is not None else [""] * len(boxes)
    drawn = [
        dict(zip(keys, numbers.tolist(), strict=True), label=name)
        for numbers, name in zip(parts, shown, strict=True)
    ]
    color = _color(ax, 0)
    line = dict(color=color, linewidth=1.3)
    style: dict[str, Any] = {
        f"{part}props": line for part in ("box", "whisker", "cap", "median")
    } | dict(medianprops=dict(color=_color(ax, 1), linewidth=2.0))
    ax.bxp(drawn, **style | options | dict(showfliers=False))
    return _named(ax, unit, words) if across else _named(ax, words, unit)


def histogram(hist: Any, edges: Any, ax: Any = None, **options: Any) -> Any:
    """Draw a released histogram: numbers over bins.

    Parameters
    ----------
    hist, edges : array_like, shapes (k,) and (k + 1,)
        From `dpq_fast.histogram`; edges may be times. A bin that reaches to infinity is not drawn.
    ax : matplotlib.axes.Axes, optional
        Default: those of a new figure.
    **options
        For ``ax.stairs``.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If Matplotlib is not installed.
    ValueError
        If there is not one edge more than numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import dpq_fast as dpq
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> ax = dpq.plots.histogram(*dpq.histogram(ages, 6, (15, 85), epsilon=1.0))
    >>> ax.get_ylabel()
    'records'
    """
    numbers, ends = np.asarray(hist), np.asarray(edges)
    if numbers.ndim != 1 or ends.shape != (numbers.size + 1,):
        raise ValueError(
            f"edges must be one more than hist has numbers, got {ends.shape} and {numbers.shape}"
        )
    ax = _axes(ax, "plots.histogram")
    ((places,), unit) = _on(ax.xaxis, "edges", ends)
    inside = np.isfinite(places)
    shown = inside[:-1] & inside[1:]
    style = dict(color=_color(ax, 0), fill=True, alpha=0.6)
    ax.stairs(numbers[shown], places[inside], **_over(style, options))
    return _named(ax, unit, "records" if numbers.dtype.kind == "i" else "density")


# What is to be drawn


class _Answers(NamedTuple):
    """Values, and intervals around them where there are any.

    Attributes
    ----------
    value, low, high : object
        Arrays, or single ones; None for no intervals.
    about : str
        What the intervals are, to follow the name of the axis.
    names : str
        What the keys are called.
    """

    value: Any
    low: Any = None
    high: Any = None
    about: str = ""
    names: str = "group"

    @classmethod
    def of(cls, answer: Any) -> _Answers:
        """An answer of any kind."""
        if isinstance(answer, GroupAnswers):
            names = ", ".join(map(str, answer.names)) or "group"
            value: Any = answer.values
            low: Any = answer.low
            high: Any = answer.high
            if np.ndim(value) == 2 and np.shape(value)[1] == 1:  # a list of one level
                value, low, high = (
                    None if each is None else each[:, 0] for each in (value, low, high)
                )
        elif isinstance(answer, Estimate):
            (value, low, high), names = answer, "group"
        else:
            return cls(np.asarray(answer))
        if low is None or high is None:
            return cls(value, names=names)
        about = f"\n({_percent(answer.confidence)} intervals for the {answer.covers})"
        return cls(value, low, high, about, names)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the values."""
        return np.shape(self.value)

    def parts(self) -> list[Any]:
        """The values, and the ends where there are any."""
        return [self.value] if self.low is None else [self.value, self.low, self.high]


def _vertices(F: CDF) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the lines that a distribution function is drawn by."""
    if F.lattice is None:
        return F.x, F.p
    points = points_on(F.lattice, F._curve.knots.astype(np.int64))
    (single,) = np.nonzero(np.diff(points) == 1)
    corners = F.x[single + 1], F.p[single]
    return np.insert(F.x, single + 1, corners[0]), np.insert(F.p, single + 1, corners[1])


def _stairs(F: CDF, beta: float) -> tuple[NDArray[np.float64], ...]:
    """Corners of the two staircases that the true function is between: x, low and high."""
    alpha = F.accuracy(beta)
    share = 1.0 if not F.total else alpha / F.total
    p = F._curve.values(F.edges, "right")
    low, high = np.clip(p - share, 0.0, 1.0), np.clip(p + share, 0.0, 1.0)
    above = high[1:].copy()  # between two edges
    if F.lattice is not None:
        one = np.diff(points_below(F.lattice, F.edges, "right")) == 1
        above[one] = high[:-1][one]  # there is no record in between
    below, edges = low[:-1], F.edges
    together = -(-below.size // MOST_STEPS)
    if together > 1:
        starts = np.arange(0, below.size, together)
        edges = np.append(edges[starts], edges[-1])
        below, above = below[starts], np.maximum.reduceat(above, starts)
    return np.repeat(edges, 2)[1:-1], np.repeat(below, 2), np.repeat(above, 2)


def _closed(
    value: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Intervals with an end to be drawn on either side, and where there is none: low, high."""
    known = ~np.isnan(value)
    down, up = known & ~np.isfinite(low), known & ~np.isfinite(high)
    everything = np.concatenate((value, low, high))
    everything = everything[np.isfinite(everything)]
    if everything.size:
        least, most = float(everything.min()), float(everything.max())
        beyond = BEYOND * ((most - least) or abs(most) or 1.0)
        low, high = np.where(down, least - beyond, low), np.where(up, most + beyond, high)
    return low, high, down, up


# What matplotlib is told


def _dots(
    ax: Any,
    places: NDArray[np.float64],
    parts: list[NDArray[np.float64]],
    options: dict[str, Any],
    size: float = LARGE,
    *,
    across: bool,
) -> None:
    """Dots at values, with bars for intervals; `across`: values are on the x-axis."""
    number = len(ax.containers)
    style: dict[str, Any] = dict(color=_color(ax, number), marker=MARKERS[number % len(MARKERS)])
    style |= dict(linestyle="none", markersize=size, elinewidth=1.3)
    value = parts[0]
    xy = (value, places) if across else (places, value)
    if len(parts) == 1:
        ax.errorbar(*xy, **_over(style, options))
        return
    low, high, down, up = _closed(*parts)
    with np.errstate(invalid="ignore"):
        bars = np.array([value - low, high - value])
    drawn = ax.errorbar(*xy, **{"xerr" if across else "yerr": bars}, **_over(style, options))
    color = drawn.lines[0].get_color()
    for ends, open_ended, marker in ((low, down, "<v"), (high, up, ">^")):
        if open_ended.any():
            xy = (ends, places) if across else (places, ends)
            xy = tuple(each[open_ended] for each in xy)  # type: ignore[assignment]
            look = dict(linestyle="none", marker=marker[not across], markersize=LARGE)
            ax.plot(*xy, color=color, label="_no end", **look)


def _on(axis: Any, name: str, *given: Any) -> tuple[list[NDArray[np.float64]], str]:
    """Numbers, times or durations as numbers on an axis, and what is written beside it.

    Times are the dates of Matplotlib; durations are in the unit that the axis has, or else in the
    longest one that the largest of them has one of.
    """
    arrays = [np.asarray(each) for each in given]
    if all(array.dtype.kind in "iuf" for array in arrays):
        return [array.astype(np.float64) for array in arrays], "value"
    found = [_time_of(array) for array in arrays]
    time = next((each for each in found if each is not None), None)
    if time is None:
        kinds = {str(array.dtype) for array in arrays}
        raise TypeError(
            f"{name} must hold real numbers, times or durations, got dtype {', '.join(kinds)}"
        )
    ticks = [_nanoseconds(array) for array in arrays]
    if time.kind == DURATIONS:
        words = axis.get_label_text().partition("\n")[0]
        if words not in LONG:
            longest = max(float(np.fmax.reduce(np.abs(each), None, initial=0.0)) for each in ticks)
            words = next((word for word, unit in LONG.items() if longest >= unit), "nanoseconds")
        return [each / LONG[words] for each in ticks], words
    dates = _checks.extra("matplotlib.dates", "plots", "plot")
    formatters = dates.ConciseDateFormatter, dates.AutoDateFormatter, dates.DateFormatter
    if not isinstance(axis.get_major_formatter(), formatters):
        axis.axis_date(time.zone)
        locator = dates.AutoDateLocator(tz=time.zone, minticks=3, maxticks=_room(axis))
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=time.zone))
    origin = float(dates.date2num(np.datetime64("1970-01-01")))
    words = "date" if time.tick == "D" else "time"
    zone = "" if time.zone is None else f" ({time.zone})"
    return [each / TICKS["D"] + origin for each in ticks], words + zone


def _time_of(array: NDArray[Any]) -> Time | None:
    """What kind of times an array holds; None for what holds none."""
    if array.dtype.kind in "mM":
        return Time.of(np.zeros(1, dtype=array.dtype)[0])
    return next(filter(None, map(Time.of, array.ravel().tolist())), None)


def _nanoseconds(array: NDArray[Any]) -> NDArray[np.float64]:
    """Times since 1970, or durations; NaN for what is none."""
    if array.dtype.kind not in "mM":
        times = map(Time.of, array.ravel().tolist())
        listed = [np.nan if time is None else float(time.nanoseconds) for time in times]
        return np.array(listed).reshape(array.shape)
    if np.datetime_data(array.dtype)[0] in ("Y", "M"):
        array = array.astype("M8[D]")
    unit, each = np.datetime_data(array.dtype)
    numbers = np.ascontiguousarray(array).view(np.int64) * (float(each) * TICKS[unit])
    return np.where(np.isnat(array), np.nan, numbers)


def _axes(ax: Any, by: str, height: float | None = None) -> Any:
    """The axes to draw into: those given, or new ones, in a figure of `height` inches."""
    pyplot = _checks.extra("matplotlib.pyplot", by, "plot")
    if ax is not None:
        _expect("ax", ax, _checks.extra("matplotlib.axes", by, "plot").Axes, "a Matplotlib Axes")
        return ax
    figure, ax = pyplot.subplots(layout="constrained")
    if height is not None and height > figure.get_figheight():
        figure.set_figheight(height)
    figure.draw_without_rendering()  # so that the size of the axes is known
    return ax


def _color(ax: Any, number: int) -> str:
    """The color of a series, by how many there are before it and what is behind it."""
    colors = _checks.extra("matplotlib.colors", "plots", "plot")
    behind = [ax.get_facecolor(), ax.get_figure().get_facecolor(), "white"]
    red, green, blue = next(colors.to_rgb(each) for each in behind if colors.to_rgba(each)[3] > 0.5)
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
    palette = DARK if dark else LIGHT
    return palette[number % len(palette)]


def _over(style: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Options of the caller, and a style for what they do not say, by long names or short ones."""
    cbook = _checks.extra("matplotlib.cbook", "plots", "plot")
    lines = _checks.extra("matplotlib.lines", "plots", "plot")
    named: dict[str, Any] = cbook.normalize_kwargs(options, lines.Line2D)
    return style | named


def _named(ax: Any, x: str, y: str) -> Any:
    """The axes, with names where they have none."""
    if not ax.get_xlabel():
        ax.set_xlabel(x)
    if not ax.get_ylabel():
        ax.set_ylabel(y)
    return ax


def _decimal(axis: Any, values: NDArray[np.float64]) -> None:
    """Plain numbers along a log axis: powers of ten, of few 2 and 5 times them, too."""
    ticker = _checks.extra("matplotlib.ticker", "plots", "plot")
    some = values[np.isfinite(values) & (values > 0.0)]
    wide = some.size > 0 and float(some.max()) > 100.0 * float(some.min())
    axis.set_major_locator(ticker.LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.12g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def _spacing(ax: Any, lines: int) -> int:
    """Every how many lines of text there is room for one, along the y-axis."""
    room = _length(ax.yaxis) / (LINE_HEIGHT * _font_size(ax.yaxis))
    return int(np.ceil(lines / max(room, 1.0)))


def _room(axis: Any) -> int:
    """How many dates there is room for along an axis."""
    letters = DATE_LETTERS if axis.axis_name == "x" else LINE_HEIGHT
    return max(int(_length(axis) / (letters * _font_size(axis))), 3)


def _length(axis: Any) -> float:
    """How long an axis is, in points."""
    box = axis.axes.get_window_extent()
    pixels: float = box.width if axis.axis_name == "x" else box.height
    return pixels * POINTS / float(axis.axes.figure.dpi)


def _font_size(axis: Any) -> float:
    """Size of the names of ticks, in points."""
    ticks = axis.get_major_ticks()
    return float(ticks[0].label1.get_size()) if ticks else POINTS / 7.2


# Words


def _expect(name: str, given: Any, kind: type, words: str = "") -> None:
    """Refuse what is not of a type."""
    if not isinstance(given, kind):
        words = words or f"a {kind.__name__}"
        raise TypeError(f"{name} must be {words}, got {type(given).__name__}")


def _coverage(band: Any) -> float | None:
    """The probability of a band; None for no band."""
    if isinstance(band, (bool, np.bool_)):
        return COVERAGE if band else None
    coverage = _checks.check_nonnegative("band", band)
    if not 0.0 < coverage < 1.0:
        raise ValueError(
            f"band must be True, False or a probability strictly between 0 and 1, got {coverage}"
        )
    return coverage


def _percent(share: float) -> str:
    return f"{100.0 * share:g}%"


def _listed(keys: Any, name: str = "keys") -> list[Any]:
    """The keys, one by one."""
    if isinstance(keys, (str, bytes)) or not hasattr(keys, "__iter__"):
        raise TypeError(f"{name} must be a sequence of {name}, got {type(keys).__name__}")
    return keys.tolist() if isinstance(keys, np.ndarray) else list(keys)


def _shown(key: Any) -> str:
    """A key in words."""
    return " / ".join(map(str, key)) if isinstance(key, tuple) else str(key)
