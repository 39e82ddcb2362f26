"""Releases as methods of columns and frames: ``pay.dpq.median(...)``, ``df.dpq.describe(...)``.

Importing this module adds the name `dpq` to the series and frames of pandas and polars, lazy ones,
too, whichever of the two libraries is installed:

>>> import dpq_fast.accessors
>>> import pandas
>>> pay = pandas.Series([3_000.0, 3_100.0, 2_900.0])
>>> 0 <= pay.dpq.median(epsilon=1.0, bounds=(0, 10_000)) <= 10_000
True
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from dpq_fast import _checks
from dpq_fast._arguments import Function, in_our_words
from dpq_fast.data.tables import table_of
from dpq_fast.mechanisms.aggregates import count, mean, std, sum, var
from dpq_fast.mechanisms.aggregates_by import count_by, mean_by, std_by, sum_by, var_by
from dpq_fast.mechanisms.cdf import cdf
from dpq_fast.mechanisms.describe import describe
from dpq_fast.mechanisms.extremes import box, box_by, iqr, iqr_by, max, max_by, min, min_by
from dpq_fast.mechanisms.histogram import histogram, value_counts
from dpq_fast.mechanisms.quantile import median, percentile, quantile
from dpq_fast.mechanisms.quantile_by import quantile_by

OF_COLUMNS: tuple[Callable[..., Any], ...] = (
    *(quantile, median, percentile, min, max, iqr, box),
    *(sum, mean, var, std, count, cdf, histogram, value_counts),
)
BY_GROUPS: tuple[Callable[..., Any], ...] = (
    *(quantile_by, min_by, max_by, iqr_by, box_by),
    *(sum_by, mean_by, var_by, std_by, count_by),
)


class ColumnReleases:
    """Releases of one column: the functions of the same names, without their first argument."""

    def __init__(self, column: Any) -> None:
        self._column = column


class FrameReleases:
    """Releases of a frame. Columns and keys are given by name; ids of persons may be."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._table = table_of(frame)

    @functools.wraps(describe)
    def describe(self, **options: Any) -> Any:
        return describe(self._frame, **options)

    def _one(self, name: Any) -> Any:
        return self._some("column", [name])

    def _keys(self, by: Any) -> Any:
        there = () if self._table is not None else _checks.names_of(self._frame)
        return self._some("by", _checks.listed_names(by, there))

    def _named(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options whose privacy unit may be names of columns; a table knows its own."""
        unit = options.get("privacy_unit")
        if unit is None or self._table is not None:
            return options
        names = _checks.unit_names(unit, _checks.names_of(self._frame))
        if names is None:
            return options
        return options | {"privacy_unit": self._some("privacy_unit", names)}

    def _some(self, argument: str, names: list[Any]) -> Any:
        if self._table is not None:
            return self._table[names]
        frame = self._frame
        _checks.check_named(argument, names, _checks.names_of(frame))
        return frame.select(names) if hasattr(frame, "select") else frame[names]


def _shown(first: Sequence[str]) -> Callable[[Function], Function]:
    """Show these arguments in place of the first ones of the function that a method stands for."""

    def declare(method: Function) -> Function:
        signature = inspect.signature(method)
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        replaced = [own, *(own.replace(name=name) for name in first)]
        rest = [p for p in signature.parameters.values() if p.name not in ("x", "frame", "by")]
        method.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*replaced, *rest]
        )
        return in_our_words(method)

    return declare


def _of_column(function: Callable[..., Any]) -> Callable[..., Any]:
    @_shown([])
    @functools.wraps(function)
    def method(self: ColumnReleases, *arguments: Any, **options: Any) -> Any:
        return function(self._column, *arguments, **options)

    return method


def _of_frame(function: Callable[..., Any]) -> Callable[..., Any]:
    @_shown(["column"])
    @functools.wraps(function)
    def method(self: FrameReleases, column: Any, *arguments: Any, **options: Any) -> Any:
        return function(self._one(column), *arguments, **self._named(options))

    return method


def _by_group(function: Callable[..., Any]) -> Callable[..., Any]:
    @_shown(["column", "by"])
    @functools.wraps(function)
    def method(self: FrameReleases, column: Any, by: Any, *arguments: Any, **options: Any) -> Any:
        return function(self._one(column), self._keys(by), *arguments, **self._named(options))

    return method


for _function in OF_COLUMNS:
    setattr(ColumnReleases, _function.__name__, _of_column(_function))
    setattr(FrameReleases, _function.__name__, _of_frame(_function))
for _function in BY_GROUPS:
    setattr(FrameReleases, _function.__name__, _by_group(_function))


def _register() -> None:
    """Add the name to what is installed."""
    try:
        import pandas
    except ModuleNotFoundError:
        pass
    else:
        pandas.api.extensions.register_series_accessor("dpq")(ColumnReleases)
        pandas.api.extensions.register_dataframe_accessor("dpq")(FrameReleases)
    try:
        import polars
    except ModuleNotFoundError:
        return
    polars.api.register_series_namespace("dpq")(ColumnReleases)
    polars.api.register_dataframe_namespace("dpq")(FrameReleases)
    polars.api.register_lazyframe_namespace("dpq")(FrameReleases)


_register()
