"""Cells: some leaves in a row each, in a tree that doubles them (`csrc/coarse.h`)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import coarse as kernel
from dpq_fast.laws.joint.leaves import Sums


class Tree(NamedTuple):
    """Cells of 1, 2, 4, ... leaves, those of each size ascending.

    Attributes
    ----------
    offset : ndarray of uintp, shape (H + 1,)
        Where each size starts.
    least, most : ndarray of int32 or int64, shape (C,)
        Ranks of their outputs.
    rising, volume, falling : ndarray of float64, shape (C,)
        Volumes for the bends -1, 0 and 1; infinite where a cell is not to be used.
    """

    offset: NDArray[np.uintp]
    least: NDArray[Any]
    most: NDArray[Any]
    rising: NDArray[np.float64]
    volume: NDArray[np.float64]
    falling: NDArray[np.float64]

    def ranks(self, cells: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The least and the greatest of some cells."""
        return self.least[cells].astype(np.int64), self.most[cells].astype(np.int64)

    def nearest(self, targets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The nearest ranks that outputs have, around each target."""
        leaves = slice(int(self.offset[1]))
        least, greatest = self.least[leaves], self.most[leaves]
        at = np.maximum(np.searchsorted(least, targets, side="right") - 1, 0)
        below = np.minimum(greatest[at], targets)
        at = np.minimum(np.searchsorted(greatest, targets), least.size - 1)
        return below, np.maximum(least[at], targets)

    def between(self, paths: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ranks between which some paths are at each level; a path is the cells of all levels."""
        least, most = self.ranks(paths)
        return least.min(axis=0), most.max(axis=0)


def tree_of(leaves: Sums, rate: float, nats: float) -> Tree:
    """A tree that some leaves grow into.

    Those that hold more than all within some nats around them stay alone: paths stay in them at
    many levels, and bends lose what a cell has around them.
    """
    return Tree(*kernel.tree(*leaves, rate, math.ceil(min(nats / rate, 2.0**61))))
