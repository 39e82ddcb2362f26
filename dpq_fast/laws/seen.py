"""Where paths are likely to be, as some of them show, or bounds for all: that decides the cost."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.laws.passing import Passing
from dpq_fast.laws.widths import LIKELY

# What outputs lose counts from so many nats on.
PAID_MARGIN = 1.0


class Seen(NamedTuple):
    """Where paths are likely to be, and cells of all ranks that they might go to.

    Attributes
    ----------
    density : ndarray of float64, shape (m,)
        ln of the least volume for each nat of the cells that some paths are in.
    start : ndarray of uintp, shape (m + 1,)
        Level j has the cells start[j], ..., start[j + 1] - 1.
    least, most : ndarray of int64, shape (C,)
        Ranks of their outputs.
    densities : ndarray of float64, shape (C,)
        ln of the volume for each nat.
    lost : ndarray of float64, shape (C,), optional
        By how many nats less paths weigh that pass there than where most do.
    """

    density: NDArray[np.float64]
    start: NDArray[np.uintp]
    least: NDArray[np.int64]
    most: NDArray[np.int64]
    densities: NDArray[np.float64]
    lost: NDArray[np.float64] | None = None

    @property
    def level(self) -> NDArray[np.intp]:
        """The level of each cell."""
        return _levels_of(self.start.view(np.intp))

    def away(
        self, near: tuple[NDArray[np.int64], NDArray[np.int64]], are_empty: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """How many ranks away from paths, which are between two of each level, cells are.

        Ways past cells where no path is are no way, but for these.
        """
        level = self.level
        ranks = np.where(are_empty, 0, self.most - self.least + 1)
        end = np.cumsum(ranks)
        below, above = self._cells_between(near)
        away = np.maximum((end - ranks)[below][level] - end, (end - ranks) - end[above][level])
        of_empty = np.maximum(near[0][level] - self.most, self.least - near[1][level])
        away[are_empty] = of_empty[are_empty]
        ranks_away: NDArray[np.int64] = np.maximum(away, 0)
        return ranks_away

    def paid(self, gaps: NDArray[np.float64]) -> NDArray[np.float64]:
        """What outputs in cells lose for sure, in nats, and others do not; or less than nothing.

        Parameters
        ----------
        gaps : ndarray of float64, shape (m + 1,)
            Nats between targets, and from both ends to these.
        """
        # (not what one wide gap has for many levels)
        least = np.minimum(self.density, np.median(self.density)) - PAID_MARGIN
        paid: NDArray[np.float64] = (least - 2.0 * np.maximum(gaps[1:], gaps[:-1]))[self.level]
        paid -= self.densities
        return paid

    def _cells_between(
        self, near: tuple[NDArray[np.int64], NDArray[np.int64]]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first and the last cell of each level that have ranks between two; or at its ends."""
        found = []
        levels = pairwise(self.start.tolist())
        for (first, stop), low, high in zip(levels, *(each.tolist() for each in near), strict=True):
            below = self.most[first:stop].searchsorted(low)
            above = self.least[first:stop].searchsorted(high, side="right") - 1
            found.append((min(first + below, stop - 1), max(first + above, first)))
        below, above = np.array(found).T
        return below, above


def seen_by(bounds: Passing, first: NDArray[np.int64], last: NDArray[np.int64]) -> Seen:
    """Where paths are likely to be between two ranks of each level."""
    start, block, lost = bounds.places(first, last)
    densities, least = bounds.densities[block], block * bounds.ranks
    density, likely = np.full(first.size, math.inf), lost <= LIKELY
    np.minimum.at(density, _levels_of(start.view(np.intp))[likely], densities[likely])
    return Seen(density, start, least, least + bounds.ranks - 1, densities, lost)


def _levels_of(start: NDArray[np.intp]) -> NDArray[np.intp]:
    """The level of each number: level j has start[j], ..., start[j + 1] - 1."""
    return np.repeat(np.arange(start.size - 1), np.diff(start))
