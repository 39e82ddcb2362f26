"""Errors of releases of public samples, and what is said of them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.planning.plans import Errors

# Parts of the samples that the standard error of a quantile is found from.
BATCHES = 10


class Runs(NamedTuple):
    """Records in order by distinct value.

    Attributes
    ----------
    values : ndarray
        Numbers, or (fine) lattice points.
    ends : ndarray of int64
        Records up to and with each.
    """

    values: NDArray[Any]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[Any], weights: NDArray[np.int64]) -> Runs:
        """Of ascending values."""
        last = np.append(values[1:] != values[:-1], True)
        return cls(values[last], np.cumsum(weights)[last])

    @property
    def weights(self) -> NDArray[np.int64]:
        """Records at each."""
        return np.diff(self.ends, prepend=0)


class Missed:
    """What releases of one sample miss.

    Parameters
    ----------
    runs : Runs
        The sample.
    targets : ndarray of float64, shape (m,)
        Ranks.
    """

    def __init__(self, runs: Runs, targets: NDArray[np.float64]) -> None:
        self._values = runs.values
        self._counts = np.concatenate(([0], runs.ends))
        self._targets = targets
        most = runs.ends.size - 1
        # what has no error is between these
        self._first, self._last = (
            runs.values[np.minimum(runs.ends.searchsorted(targets, side), most)]
            for side in ("left", "right")
        )

    def by(self, outputs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rank errors of outputs, and how far they are from what has none; shape (D, m)."""
        below = self._counts[self._values.searchsorted(outputs, "left")]
        through = self._counts[self._values.searchsorted(outputs, "right")]
        missed = np.maximum(np.maximum(below - self._targets, self._targets - through), 0.0)
        away = np.maximum(np.maximum(self._first - outputs, outputs - self._last), 0.0)
        return missed, np.where(missed > 0.0, away, 0.0)


class Outcomes(NamedTuple):
    """Errors of releases of one sample.

    Attributes
    ----------
    mean, worst : ndarray of float64, shape (D, 2)
        Over levels: in ranks, and in the unit of the data.
    weight : ndarray of float64, shape (D,)
        Probabilities.
    """

    mean: NDArray[np.float64]
    worst: NDArray[np.float64]
    weight: NDArray[np.float64]

    @classmethod
    def of_each(
        cls, errors: list[tuple[NDArray[np.float64], NDArray[np.float64]]]
    ) -> list[Outcomes]:
        """Of as many releases of each sample, as likely as each other: shape (D, m)."""
        both = np.stack([np.stack(each, axis=1) for each in errors])
        mean = both.mean(axis=-1)
        worst = mean if both.shape[-1] == 1 else both.max(axis=-1)
        weight = np.full(both.shape[1], 1.0 / both.shape[1])
        return [cls(*each, weight) for each in zip(mean, worst, strict=True)]


def summary(outcomes: list[Outcomes], level: float) -> tuple[Errors, Errors, float]:
    """Errors in ranks and in the unit of the data, and the standard error of the former."""
    mean, worst, weight = (np.concatenate(each) for each in zip(*outcomes, strict=True))
    weight = weight / len(outcomes)
    single = np.array_equal(mean, worst)
    made = []
    for kind in (0, 1):
        expected = float(weight @ mean[:, kind])
        own = _quantile(mean[:, kind], weight, level)
        largest = own if single else _quantile(worst[:, kind], weight, level)
        made.append(Errors(expected, own, largest))  # type: ignore[arg-type]  # of one row
    return made[0], made[1], _uncertainty(outcomes, level)


def _uncertainty(outcomes: list[Outcomes], level: float) -> float:
    """Relative standard error of the quantile of the mean rank error, from parts of the samples."""
    found = []
    for batch in range(BATCHES):
        mean, _, weight = (
            np.concatenate(each) for each in zip(*outcomes[batch::BATCHES], strict=True)
        )
        kind = 0 if mean[:, 0].any() else 1
        found.append(_quantile(mean[:, kind], weight / weight.sum(), level))
    largest = max(found)
    if not 0.0 < largest < math.inf:
        return 0.0
    shares = np.array(found) / largest  # squares of errors may be beyond float64
    return float(np.std(shares, ddof=1)) / math.sqrt(BATCHES) / float(np.mean(shares))


def _quantile(errors: NDArray[np.float64], weight: NDArray[np.float64], level: float) -> float:
    """Weighted quantile: the least error with the share `level` of the weight up to it."""
    order = np.argsort(errors)
    at = int(np.searchsorted(np.cumsum(weight[order]), level * (1.0 - 1e-12)))
    return float(errors[order[min(at, order.size - 1)]])
