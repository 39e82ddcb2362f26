"""What the noisy counts of a tree say together: estimates of its nodes, masses of its leaves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import fit

# A total is told from a greater number that is public if it is so many standard deviations below.
TOLD_APART = 2.0


def likely_totals(totals: Any, most: int, variance: float) -> Any:
    """Estimated totals, or what they are at most where noise can not tell the two apart."""
    return np.where(totals >= most - TOLD_APART * math.sqrt(variance), float(most), totals)


def inner_stops(height: int, branching: int, held: int) -> list[NDArray[np.int64]]:
    """One past the last leaf of the inner nodes of each level, from the lowest one up to the root.

    Of so many leaves that hold a point, the others are left out.
    """
    widths = [branching**above for above in range(1, height + 1)]
    return [np.minimum(np.arange(width, held + width, width), held) for width in widths]


def nearest_masses(
    leaf_counts: NDArray[Any],
    counts: list[NDArray[Any]],
    stops: list[NDArray[Any]],
    total: float,
) -> tuple[NDArray[np.float64], float]:
    """Masses of leaves, not negative, that are nearest to the counts of all nodes of a tree.

    Parameters
    ----------
    leaf_counts : ndarray, shape (N,)
    counts, stops : list of ndarray
        Of the inner nodes, level by level from the lowest one up to the root: the count, NaN where
        there is none, and one past the last leaf.
    total : float
        What the masses are to add up to.

    Returns
    -------
    masses : ndarray of float64, shape (N,)
        Some mass there must be to have quantiles: their sum is 1 where the total is not positive.
    total : float
        As given, or 0.
    """
    tree = (
        np.asarray(leaf_counts, dtype=np.float64),
        np.concatenate(counts, dtype=np.float64),
        np.cumsum([0, *map(len, stops)]).astype(np.uintp),
        np.concatenate(stops).astype(np.uintp),
    )
    total = max(float(total), 0.0)
    return fit.masses(*tree, total or 1.0), total


def sums(level: NDArray[Any], branching: int) -> NDArray[Any]:
    """Sums of siblings, along the last axis."""
    added: NDArray[Any] = level.reshape(*level.shape[:-1], -1, branching).sum(axis=-1)
    return added


def from_below(
    nodes: list[NDArray[Any]], branching: int
) -> tuple[list[NDArray[np.float64]], list[float]]:
    """Estimates from each node's subtree, and their variance by level in units of the noise's.

    Nodes of a level are along the last axis.
    """
    estimates = [nodes[-1].astype(np.float64)]
    variances = [1.0]
    for own in reversed(nodes[:-1]):
        children = sums(estimates[0], branching)
        weight = 1.0 / (1.0 + branching * variances[0])
        estimates.insert(0, own + weight * (children - own))
        variances.insert(0, branching * variances[0] * weight)
    return estimates, variances


def projected(estimates: NDArray[np.float64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest non-negative rows that add up to `totals`: less by a number, cut off at 0."""
    estimates = estimates - estimates.max(axis=1, keepdims=True)  # no total is lost in rounding
    ordered = -np.sort(-estimates, axis=1)
    excess = np.cumsum(ordered, axis=1) - totals[:, None]
    less = excess / np.arange(1, estimates.shape[1] + 1)
    kept = np.maximum(np.count_nonzero(ordered > less, axis=1), 1)
    return np.maximum(estimates - np.take_along_axis(less, kept[:, None] - 1, axis=1), 0.0)
