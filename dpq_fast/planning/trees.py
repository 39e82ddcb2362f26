"""Quantiles of many trees with noise, all at once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast._kernels import fit
from dpq_fast.data.leaves import Leaves, inverses
from dpq_fast.released.tree_counts import from_below, inner_stops, likely_totals, sums

# Counts in memory at once.
MOST_COUNTS = 2**20


class Trees:
    """Trees of one shape and noise, as `AggTree` is released by default.

    Parameters
    ----------
    calibration : privacy.agg_tree.Calibration
    leaves : Leaves
    rows : int or None
        Public number of records, of which some may be missing.
    """

    def __init__(
        self, calibration: privacy.agg_tree.Calibration, leaves: Leaves, rows: int | None
    ) -> None:
        self._noise = calibration.noise
        self._height, self._branching = calibration.height, calibration.branching
        self._leaves = leaves
        self._rows = rows
        stops = inner_stops(self._height, self._branching, leaves.size)
        self._sizes = [stop.size for stop in stops]
        self._first = np.cumsum([0, *self._sizes]).astype(np.uintp)
        self._stop = np.concatenate(stops).astype(np.uintp)

    def quantiles(
        self,
        counts: NDArray[np.int64],
        draws: int,
        q: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """`AggTree.quantile` of `draws` trees of each row of exact counts of the leaves.

        Parameters
        ----------
        counts : ndarray of int64, shape (S, b^h)
        draws : int
        q : ndarray of float64, shape (m,)
        rng : Generator
            Of the noise.

        Returns
        -------
        ndarray of float64, shape (S, draws, m)
        """
        at_once = max(MOST_COUNTS // (2 * draws * counts.shape[1]), 1)
        parts = (counts[i : i + at_once] for i in range(0, len(counts), at_once))
        released = [self.read(self.noised(part, draws, rng), q) for part in parts]
        return np.concatenate(released).reshape(len(counts), draws, q.size)

    def noised(
        self, counts: NDArray[np.int64], draws: int, rng: np.random.Generator
    ) -> list[NDArray[np.int64]]:
        """Noisy counts of each level below the root, from the highest on, a row for each tree."""
        nodes: list[NDArray[np.int64]] = []
        exact = np.repeat(counts, draws, axis=0)
        for _ in range(self._height):
            noise = self._noise.draw(exact.size, rng)
            nodes.insert(0, exact + noise.reshape(exact.shape))
            exact = sums(exact, self._branching)
        return nodes

    def read(self, nodes: list[NDArray[np.int64]], q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Quantiles of noisy trees, shape (T, m)."""
        below, variances = from_below(nodes, self._branching)
        totals = below[0].sum(axis=1)
        if self._rows is not None:
            variance = self._noise.variance * self._branching * variances[0]
            totals = likely_totals(totals, self._rows, variance)
        levels = [*nodes[-2::-1], np.full((len(totals), 1), math.nan)]  # the root has no count
        inner = [level[:, :size] for level, size in zip(levels, self._sizes, strict=True)]
        counts = np.concatenate(inner, axis=1, dtype=np.float64)
        leaves = nodes[-1][:, : self._leaves.size].astype(np.float64)
        masses = [
            fit.masses(leaf, own, self._first, self._stop, total if total > 0.0 else 1.0)
            for leaf, own, total in zip(leaves, counts, totals.tolist(), strict=True)
        ]
        return inverses(self._leaves.starts, np.array(masses), self._leaves.lattice, q)
