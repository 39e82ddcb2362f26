"""Words of the command line as values: numbers, ends, distributions, columns with bounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import click
import numpy as np

from dpq_fast import _checks
from dpq_fast.data.persons import WEIGHTS
from dpq_fast.data.units import of_text


class Numbers(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.5
    """Numbers separated by commas."""

    name = "numbers"

    def __init__(self, what: str) -> None:
        self._what = what

    def get_metavar(self, *_: Any, **__: Any) -> str:
        letter = self._what[0].upper()
        return f"{letter}[,{letter}...]"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[float]:
        try:
            return [float(number) for number in value.split(",")]
        except ValueError:
            self.fail(
                f"{self._what} must be numbers separated by commas, got {value!r}", param, ctx
            )


class Guess(click.ParamType):  # type: ignore[type-arg]
    """A distribution: its name, and two numbers."""

    name = "guess"

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return "NAME:A,B"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        name, _, given = value.partition(":")
        try:
            first, second = map(float, given.split(","))
            return _distribution(name, first, second)
        except ValueError:
            self.fail(
                "guess must be normal:MEAN,SD, lognormal:MU,SIGMA or uniform:LOW,HIGH with a "
                f"positive SD or SIGMA, and LOW below HIGH, got {value!r}",
                param,
                ctx,
            )


def _distribution(name: str, first: float, second: float) -> Any:
    """A frozen distribution of `scipy.stats`, which is slow to load."""
    from scipy import stats

    scale = second - first if name == "uniform" else second
    if not (np.isfinite(first) and 0.0 < scale < np.inf):
        raise ValueError
    if name == "normal":
        return stats.norm(first, second)
    if name == "uniform":
        return stats.uniform(first, scale)
    if name == "lognormal":
        return stats.lognorm(second, scale=np.exp(first))
    raise ValueError


NO_END = "none"


def place_of(text: str) -> Any:
    """A number, a time or a length of time, as bounds and resolutions may be given as text."""
    found = of_text(text)
    return float(found) if isinstance(found, str) else found


class Place(click.ParamType):  # type: ignore[type-arg]
    """A number, a time, or a length of time."""

    name = "place"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return place_of(value)
        except ValueError:
            self.fail(
                f"must be a number, a time (2026-01-31) or a length (1h), got {value!r}",
                param,
                ctx,
            )


class End(Place):
    """The same, or "none" (which stays a word: None is an option that was not given)."""

    name = "end"

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return "X|none"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return value if value == NO_END else super().convert(value, param, ctx)


class Contributions(click.ParamType):  # type: ignore[type-arg]
    """What of a person's records counts: a word, or how many of them."""

    name = "contributions"

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return f"{WEIGHTS}|K"

    def convert(self, value: Any, param: Any, ctx: Any) -> str | int:
        if value == WEIGHTS:
            return WEIGHTS
        try:
            return _checks.check_count("contributions", int(value))
        except ValueError:
            self.fail(f"must be {WEIGHTS} or a number from 1 on, got {value!r}", param, ctx)


class Bounded(NamedTuple):
    """A column and what is public about it.

    Attributes
    ----------
    name : str
    bounds : (float, float), or of times
    resolution : float, length of time or None
    """

    name: str
    bounds: tuple[Any, Any]
    resolution: Any


class BoundedColumn(click.ParamType):  # type: ignore[type-arg]
    """NAME:LOW:HIGH, or NAME:LOW:HIGH:RESOLUTION."""

    name = "column"

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return "NAME:LO:HI[:G]"

    def convert(self, value: Any, param: Any, ctx: Any) -> Bounded:
        for name, rest in _cuts(value):
            bounded = _bounded(name, rest) if name else None
            if bounded is not None:
                return bounded
        self.fail(
            f"column must be NAME:LOW:HIGH or NAME:LOW:HIGH:RESOLUTION, got {value!r}", param, ctx
        )


def _cuts(text: str) -> Iterator[tuple[str, str]]:
    """A text in two, at each of its colons."""
    for at, character in enumerate(text):
        if character == ":":
            yield text[:at], text[at + 1 :]


def _bounded(name: str, rest: str) -> Bounded | None:
    """A column by what follows its name; times have colons of their own."""
    ends = [(low, high, step) for low, more in _cuts(rest) for high, step in _cuts(more)]
    for low, high, step in [*ends, *((low, high, None) for low, high in _cuts(rest))]:
        with suppress(ValueError):
            bounds = place_of(low), place_of(high)
            return Bounded(name, bounds, None if step is None else place_of(step))
    return None
