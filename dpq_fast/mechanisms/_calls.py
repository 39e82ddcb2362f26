"""What the calls of all mechanisms share: the arguments about the column, and what draws."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import check_size
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.reprs import placement, shown
from dpq_fast.data.sample import Sample
from dpq_fast.noise.rng import default_rng
from dpq_fast.privacy.levels import Levels

Function = TypeVar("Function", bound=Callable[..., Any])
Answer = TypeVar("Answer")
P = ParamSpec("P")


class RecordOptions(TypedDict, total=False):
    """Arguments about a column whose records are counted or added up; see `Records.reader`."""

    counts: Any
    privacy_unit: Any
    contributions: Any
    nan_policy: str
    workers: int


class ColumnOptions(RecordOptions, total=False):
    """Arguments about a column whose records are put in order; see `Sample.reader`."""

    bounds: tuple[float, float] | None
    resolution: float | None
    dither: bool | None
    prior: Any
    assume_sorted: bool


def with_options(taker: Callable[..., Any]) -> Callable[[Function], Function]:
    """Show, in place of ``*arguments`` and ``**options``, what the function takes that gets them.

    So each of them has one declaration, with its default, and `help` and `inspect.signature` know
    it all the same. What is handed over by position alone is no argument of the caller's.
    """
    taken = inspect.signature(taker).parameters.values()

    def declare(function: Function) -> Function:
        signature = inspect.signature(function)
        before, after = list[inspect.Parameter](), list[inspect.Parameter]()
        by_place = False
        for p in signature.parameters.values():
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                by_place = by_place or p.kind is p.VAR_POSITIONAL
            else:
                (after if by_place else before).append(p)
        own = {p.name for p in (*before, *after)}
        shown = [
            p if by_place or p.kind is p.VAR_KEYWORD else p.replace(kind=p.KEYWORD_ONLY)
            for p in taken
            if p.kind is not p.POSITIONAL_ONLY and p.name not in own
        ]
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=sorted([*before, *shown, *after], key=lambda p: p.kind)
        )
        return function

    return declare


def as_called(
    taker: Callable[Concatenate[Any, P], Any],
) -> Callable[[Callable[..., Answer]], Callable[P, Answer]]:
    """As `with_options`, of all arguments but the first one, for type checkers as well."""
    declare: Any = with_options(taker)
    return cast("Callable[[Callable[..., Answer]], Callable[P, Answer]]", declare)


class Drawable(Protocol):
    """An output law."""

    def sample(self, rng: Any = None) -> Any:
        """Draw an output."""


class SampleLaw(ABC):
    """The exact output law of quantiles on one sample, drawn as its (fine) points."""

    column: Sample
    _levels: Levels

    def __repr__(self) -> str:
        sample = self.column
        public = placement(sample.bounds, sample.lattice, sample.unit)
        return shown(self, q=self._levels.values.tolist(), **public)

    @property
    def lattice(self) -> Lattice | None:
        """The points of outputs, with the prior that the law goes by."""
        return self.column.lattice

    @abstractmethod
    def _draw(self, rng: np.random.Generator, rows: int) -> NDArray[Any]:
        """Ascending outputs, shape (rows, m)."""

    def sample(self, rng: Any = None, size: int | None = None) -> Any:
        """Draw outputs, independent given the sample and its dither, if it has one.

        Parameters
        ----------
        rng : None, int, SeedSequence, BitGenerator or Generator, optional
            As for a release.
        size : int, optional
            Number of outputs.

        Returns
        -------
        float or ndarray of float64
            One output of q's shape; with `size`, an array of shape (size,) + q's.
        """
        draws = self._draw(default_rng(rng), check_size(size))
        return self._levels.restore(self.column.decode(draws[0] if size is None else draws))


class OneRelease:
    """In place of a law: what makes the one draw of a release by itself.

    Parameters
    ----------
    levels : Levels
    draw : callable
        Gives the m numbers of an output, ascending.
    """

    __slots__ = ("_draw", "_levels")

    def __init__(
        self, levels: Levels, draw: Callable[[np.random.Generator], NDArray[np.float64]]
    ) -> None:
        self._levels = levels
        self._draw = draw

    def sample(self, rng: np.random.Generator) -> Any:
        """The output."""
        return self._levels.restore(self._draw(rng))
