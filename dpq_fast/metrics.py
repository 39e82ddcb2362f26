"""How far answers are from the truth. Not private: for generated or public data, and for tests.

Every function takes records, levels and outputs, and gives one error per output; the papers
report means over levels and over many releases.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import real_array
from dpq_fast.data.columns import as_column, as_float64

__all__ = ["distance_error", "missed_points", "rank_error"]


def rank_error(x: Any, q: Any, o: Any) -> Any:
    """Records between each output and its target rank q n; 0 inside a run of ties that holds it.

    Parameters
    ----------
    x : array_like of float, shape (n,)
        Records in any order, n >= 0, without NaN.
    q : float or array_like of float
        Levels in [0, 1].
    o : float or array_like of float
        Outputs, of a shape that broadcasts with that of `q`.

    Returns
    -------
    float or ndarray of float64
        0 where q n lies between #{x < o} and #{x <= o}, else its distance to the nearer.

    Examples
    --------
    >>> rank_error([1, 2, 2, 2, 5], 0.5, [0.0, 1.0, 2.0, 3.0])
    array([2.5, 1.5, 0. , 1.5])
    """
    ordered, levels, outputs = _prepared(x, q, o)
    target = levels * ordered.size
    below = np.searchsorted(ordered, outputs, side="left")
    through = np.searchsorted(ordered, outputs, side="right")
    return _plain(np.maximum(np.maximum(below - target, target - through), 0.0))


def missed_points(x: Any, q: Any, o: Any) -> Any:
    r"""Records between each output and the true quantile [GJK21, Section 5.3].

    Parameters
    ----------
    x : array_like of float, shape (n,)
        Records in any order, n >= 1, without NaN.
    q : float or array_like of float
        Levels in [0, 1].
    o : float or array_like of float
        Outputs, of a shape that broadcasts with that of `q`.

    Returns
    -------
    int or ndarray of int64
        :math:`|\#\{x > o\} - \#\{x > o^*\}|`, where :math:`o^*` is the record of rank
        :math:`\lfloor (n-1) q \rfloor` from 0, as in the authors' code.

    Notes
    -----
    Where records are tied this counts all of a run or none: use `rank_error` there. Without ties
    the two differ by at most 1.

    Examples
    --------
    >>> missed_points([1, 2, 3, 4, 5], 0.5, [0.0, 2.5, 3.0, 9.0])
    array([3, 1, 0, 2])
    """
    ordered, levels, outputs = _prepared(x, q, o)
    through = np.searchsorted(ordered, outputs, side="right")
    true = np.searchsorted(ordered, _quantiles(ordered, levels), side="right")
    return _plain(np.abs(through - true))


def distance_error(x: Any, q: Any, o: Any) -> Any:
    r"""Distance of each output from the true quantile [GJK21, Appendix F].

    Parameters
    ----------
    x, q, o
        As in `missed_points`.

    Returns
    -------
    float or ndarray of float64
        :math:`|o - o^*|`, with :math:`o^*` as in `missed_points`.

    Examples
    --------
    >>> distance_error([1, 2, 3, 4, 5], 0.5, [2.5, 3.0])
    array([0.5, 0. ])
    """
    ordered, levels, outputs = _prepared(x, q, o)
    true = _quantiles(ordered, levels)
    with np.errstate(invalid="ignore", over="ignore"):  # of infinite ones, and of huge ones
        return _plain(np.where(outputs == true, 0.0, np.abs(outputs - true)))


def _quantiles(ordered: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    if ordered.size == 0:
        raise ValueError("x must hold at least one record, got none")
    return ordered[np.floor((ordered.size - 1) * levels).astype(np.int64)]


def _prepared(
    x: Any, q: Any, o: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Records in order, levels and outputs."""
    ordered = np.sort(as_float64(as_column(x)))
    levels, outputs = real_array("q", q), real_array("o", o)
    try:
        np.broadcast_shapes(levels.shape, outputs.shape)
    except ValueError:
        raise ValueError(
            f"o must have a shape that broadcasts with that of q, {levels.shape}, "
            f"got {outputs.shape}"
        ) from None
    if ordered.size and np.isnan(ordered[-1]):  # NaN sorts to the end
        raise ValueError("x must not contain NaN")
    if not ((levels >= 0.0) & (levels <= 1.0)).all():
        raise ValueError("q must lie in [0, 1]")
    if np.isnan(outputs).any():
        raise ValueError("o must not be NaN")
    return ordered, levels, outputs


def _plain(errors: NDArray[Any]) -> Any:
    """A number for an array without dimensions."""
    return errors.item() if np.ndim(errors) == 0 else errors
