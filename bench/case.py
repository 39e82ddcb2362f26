"""What a benchmark is: one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from numpy.random import Generator
from numpy.typing import NDArray

Call = Callable[[], Any]
# Makes the call to be timed from what a case's `setup` made. Nothing in here is timed.
Maker = Callable[[Any], Call]


@dataclass(frozen=True)
class Side:
    """Something that ours is timed against.

    Attributes
    ----------
    label : str
        Column "against" of the table. It says so where `part` or `repeats` scale the figure.
    make : Maker
    part : int, optional
        Measured at this size, and scaled in proportion to the case's.
    repeats : int, default 1
        How often the call would have to be made for what ours does at once.
    shown : bool, default True
        Whether the table of `docs/performance.md` shows it, if it shows the case.
    """

    label: str
    make: Maker
    part: int | None = None
    repeats: int = 1
    shown: bool = True


@dataclass(frozen=True)
class Case:
    """One comparison, timed at each size.

    Attributes
    ----------
    name : str
        For ``--only``: subject/what.
    work : str
        Column "work" of the table; ``{size}`` stands for the size.
    setup : callable
        Makes the data of a size.
    ours : Maker
    sizes : tuple of int
    quick : int
        The size for ``--quick``.
    against : tuple of Side
    shown : bool, default False
        Whether the table of `docs/performance.md` shows it.
    bar : str, optional
        What we aim at. The runner prints it; no table shows it.
    note : callable, optional
        More about the data that `setup` made, to be printed.
    """

    name: str
    work: str
    setup: Callable[[int], Any]
    ours: Maker
    sizes: tuple[int, ...]
    quick: int
    against: tuple[Side, ...] = ()
    shown: bool = False
    bar: str | None = None
    note: Callable[[Any], str] | None = None


# Sample, levels and generator to outputs.
Release = Callable[[NDArray, NDArray, Generator], NDArray]


@dataclass(frozen=True)
class ErrorCase:
    """One column, and the mean rank errors of releases from it.

    Attributes
    ----------
    name : str
        For ``--only``: errors/what.
    column : str
        Column "column" of the table.
    setup : callable
        Makes a function that draws a fresh sample with a generator.
    sides : dict of str to Release
    levels : tuple of int
        Numbers of levels.
    shown : bool, default False
        Whether the table of `docs/accuracy.md` shows it.
    bar : str, optional
        As for `Case`.
    """

    name: str
    column: str
    setup: Callable[[], Callable[[Generator], NDArray]]
    sides: dict[str, Release]
    levels: tuple[int, ...]
    shown: bool = False
    bar: str | None = None


@dataclass(frozen=True)
class LossCase:
    """What releases tell about one record: lower bounds on epsilon, found by running them.

    Attributes
    ----------
    name : str
        For ``--only``: losses/what.
    change : str
        Column "one record" of the table.
    pair : callable
        Makes the two data sets, which differ in that record.
    sides : dict of str to callable
        Releases of `EPSILON`, of a column and a generator ``rng``.
    shown : bool, default False
        Whether the table of `docs/integrations/peers.md` shows it.
    bar : str, optional
        As for `Case`.
    """

    name: str
    change: str
    pair: Callable[[], tuple[list[float], list[float]]]
    sides: dict[str, Callable[..., Any]]
    shown: bool = False
    bar: str | None = None


@dataclass(frozen=True)
class TotalCase:
    """Mean errors of totals, in units of one that is possible, or a peer's. No table shows them.

    Attributes
    ----------
    name : str
        For ``--only``: totals/what.
    work : str
        What is measured, in which unit.
    errors : callable
        For a number of draws, labels with a mean and its standard error.
    bar : str, optional
        As for `Case`.
    shown : bool, default False
    """

    name: str
    work: str
    errors: Callable[[int], Iterable[tuple[str, tuple[float, float]]]]
    bar: str | None = None
    shown: bool = False


@dataclass(frozen=True)
class CostCase:
    """Time and memory of JointExp on columns of one length, for several numbers of levels.

    Attributes
    ----------
    name : str
        For ``--only``: costs/what.
    work : str
        First cell of the table's row.
    n : int
    epsilon : float
    shown : bool, default True
        As for `Case`.
    bar : str, optional
        As for `Case`.
    """

    name: str
    work: str
    n: int
    epsilon: float
    shown: bool = True
    bar: str | None = None
