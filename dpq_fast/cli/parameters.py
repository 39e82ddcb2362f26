"""Words of the command line as values: numbers, ends, distributions, columns with bounds."""

from __future__ import annotations

from typing import Any, NamedTuple

import click
import numpy as np


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


class End(click.ParamType):  # type: ignore[type-arg]
    """A number, or "none" (which stays a word: None is an option that was not given)."""

    name = "end"

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return "X|none"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        return value if value == "none" else click.FLOAT.convert(value, param, ctx)


class Bounded(NamedTuple):
    """A column and what is public about it.

    Attributes
    ----------
    name : str
    bounds : (float, float)
    resolution : float or None
    """

    name: str
    bounds: tuple[float, float]
    resolution: float | None


class BoundedColumn(click.ParamType):  # type: ignore[type-arg]
    """NAME:LOW:HIGH, or NAME:LOW:HIGH:RESOLUTION."""

    name = "column"

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return "NAME:LO:HI[:G]"

    def convert(self, value: Any, param: Any, ctx: Any) -> Bounded:
        parts = value.split(":")
        for numbers in (3, 2):
            name, ends = ":".join(parts[:-numbers]), parts[-numbers:]
            try:
                low, high, *resolution = map(float, ends)
            except ValueError:
                continue
            if name:
                return Bounded(name, (low, high), resolution[0] if resolution else None)
        self.fail(
            f"column must be NAME:LOW:HIGH or NAME:LOW:HIGH:RESOLUTION, got {value!r}", param, ctx
        )
