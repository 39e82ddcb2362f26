"""The neighboring relations: in which ways one record may change.

A record can change in three ways:

- *one*: it is added or removed; also where it is replaced, and was missing or becomes missing;
- *same*: it is replaced, inside its part of the data (its interval, group, bin or side);
- *moved*: it is replaced by one of another part: a removal here, and an addition there.

A relation says which of them there are. So each sensitivity is the largest of at most three numbers
that are proved without it, and another relation is one class more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from dpq_fast._checks import check_choice

# A float, or an array of them.
Cost = TypeVar("Cost")


class Relation(ABC):
    """When two data sets are neighbors.

    Attributes
    ----------
    name : str
        What `neighbors` is given as.
    n_is_public : bool
        Whether neighbors have equally many records, missing ones included.
    parts : int
        How many disjoint parts of the data change at most.
    """

    name: str
    n_is_public: bool
    parts: int

    @abstractmethod
    def worst(
        self, *, one: Cost, same: Cost, moved: Cost | None = None, may_have_missing: bool = True
    ) -> Cost:
        """The largest cost of a change.

        Parameters
        ----------
        one, same, moved : float or ndarray
            The cost of a change of each kind; None where there is none of that kind.
        may_have_missing : bool, default True
            Whether a record may be missing.

        Returns
        -------
        float or ndarray
        """

    @abstractmethod
    def changes(
        self, records: Sequence[Any], values: Iterable[Any]
    ) -> Iterator[tuple[int | None, tuple[Any, ...]]]:
        """Every change of one record of a data set: which is taken away, and what comes instead."""

    @abstractmethod
    def distance(self, removed: int, added: int) -> float:
        """How many changes take `removed` records away and bring `added`; inf if none do."""

    def steps_to(self, other: Relation) -> int | None:
        """How many changes of this relation make up one of the other; None if none do."""
        return 1 if self is other else None


def _larger(a: Any, b: Any) -> Any:
    """The larger of two numbers, or of each two of arrays."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.maximum(a, b)
    return a if a >= b else b


class Swap(Relation):
    """One record is replaced by another; their number is public."""

    name = "swap"
    n_is_public = True
    parts = 2

    def worst(
        self, *, one: Cost, same: Cost, moved: Cost | None = None, may_have_missing: bool = True
    ) -> Cost:
        largest: Cost = same if moved is None else _larger(same, moved)
        if may_have_missing:
            largest = _larger(largest, one)
        return largest

    def changes(
        self, records: Sequence[Any], values: Iterable[Any]
    ) -> Iterator[tuple[int | None, tuple[Any, ...]]]:
        values = tuple(values)
        for i in range(len(records)):
            for value in values:
                yield i, (value,)

    def distance(self, removed: int, added: int) -> float:
        return removed if removed == added else np.inf


class AddRemove(Relation):
    """One record is added or removed; their number is private."""

    name = "add-remove"
    n_is_public = False
    parts = 1

    def worst(
        self, *, one: Cost, same: Cost, moved: Cost | None = None, may_have_missing: bool = True
    ) -> Cost:
        return one

    def changes(
        self, records: Sequence[Any], values: Iterable[Any]
    ) -> Iterator[tuple[int | None, tuple[Any, ...]]]:
        for i in range(len(records)):
            yield i, ()
        for value in values:
            yield None, (value,)

    def distance(self, removed: int, added: int) -> float:
        return removed + added

    def steps_to(self, other: Relation) -> int | None:
        """A replacement is a removal and an addition."""
        return 2 if isinstance(other, Swap) else super().steps_to(other)


RELATIONS: dict[str, Relation] = {kind.name: kind() for kind in (Swap, AddRemove)}


def relation_of(neighbors: Any) -> Relation:
    """The relation that `neighbors` names; another string or type is refused."""
    known = RELATIONS.get(neighbors) if type(neighbors) is str else None
    if known is not None:
        return known
    return RELATIONS[check_choice("neighbors", neighbors, tuple(RELATIONS))]
