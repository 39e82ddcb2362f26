"""Numbers and guesses in words."""

from __future__ import annotations

import math
from typing import Any


def rounded_up(number: float) -> float:
    """Three digits that are not less."""
    exponent = math.floor(math.log10(number)) - 2
    return float(f"{math.ceil(number / 10.0**exponent * (1.0 - 1e-12))}e{exponent}")


def digits(number: Any) -> str:
    """Three digits, or all those before the point; what is no number, as it is."""
    if not isinstance(number, (int, float)):
        return str(number)
    return f"{number:,.0f}" if 99.5 <= abs(number) < 1e9 else f"{number:.3g}"


def counted(number: int, thing: str) -> str:
    """A number and what it counts, as in "2 levels"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def described(distribution: Any) -> str:
    """A frozen distribution of `scipy.stats` as it was made, or the type of another one."""
    name = getattr(getattr(distribution, "dist", None), "name", None)
    if name is None:
        return type(distribution).__name__
    given = [digits(each) for each in distribution.args]
    given += [f"{key}={digits(each)}" for key, each in distribution.kwds.items()]
    return f"{name}({', '.join(given)})"


def between(bounds: tuple[float, float] | None) -> str:
    """The bounds."""
    return "no bounds" if bounds is None else f"bounds [{bounds[0]:g}, {bounds[1]:g}]"
