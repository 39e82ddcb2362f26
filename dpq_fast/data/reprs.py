"""What objects that hold records, or laws of them, say of themselves: their public part alone.

Never a record, nor how many there are: under "add-remove" that is private. So neighbors look alike.
"""

from __future__ import annotations

from typing import Any

from dpq_fast.data.lattice import Lattice
from dpq_fast.data.units import DURATIONS, Unit, in_unit


def shown(thing: Any, **parts: Any) -> str:
    """The type of a thing, and what is given of it: ``Kind(name=value, ...)``.

    Parameters
    ----------
    thing : object
        Only its type is looked at.
    **parts
        What is None is left out.
    """
    given = ", ".join(f"{name}={_said(part)}" for name, part in parts.items() if part is not None)
    return f"{type(thing).__name__}({given})"


def placement(
    bounds: tuple[float, float] | None, lattice: Lattice | None, unit: Unit | None = None
) -> dict[str, Any]:
    """Where records lie, for `shown`, in the type that the bounds were given in."""
    parts: dict[str, Any] = {}
    if bounds is not None:
        parts["bounds"] = tuple(in_unit(unit, end) for end in bounds)
    if lattice is None:
        return parts if bounds is None else parts | {"resolution": 0}
    step: Any = lattice.step
    if unit is not None:
        step = Unit(DURATIONS, 0, unit.step, None, "numpy", unit.tick).restored(step)
    parts["resolution"] = step
    if lattice.masses is not None:
        parts["prior"] = True
    if lattice.bits > 0:
        parts["dither"] = True
    return parts


def _said(part: Any) -> str:
    """A value in short: whole numbers without a point, times as they are printed."""
    if isinstance(part, tuple):
        return f"({', '.join(map(_said, part))})"
    if isinstance(part, float):
        return str(int(part)) if part.is_integer() and abs(part) < 1e15 else repr(float(part))
    return str(part)
