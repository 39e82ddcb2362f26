"""Quantiles by group: a loop over the groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast._checks import check_flag
from dpq_fast.privacy.ind_exp import FLIP
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.quantile_by import IND_EXP, JOINT_EXP
from dpq_fast.reference._calls import default_rng
from dpq_fast.reference.columns import numbers, repeats
from dpq_fast.reference.ind_exp import IndExpLaw, no_dither
from dpq_fast.reference.intervals import Column, Estimate, searched
from dpq_fast.reference.joint_exp import JointExpLaw
from dpq_fast.reference.keys import Keys, compared, frame_names, rows_of
from dpq_fast.reference.sample import check_form, kept_records, placed


@dataclass(frozen=True, eq=False)
class GroupQuantiles:
    """Quantiles by group, as `dpq_fast.GroupQuantiles`.

    Attributes
    ----------
    groups : ndarray, shape (G,)
    q : float or ndarray of float64
    values : ndarray of float64, shape (G,) + q's
    low, high : ndarray like `values`, or None
    confidence, covers
        None without intervals.
    names : tuple
        Of the columns of keys, if they are those of a frame.
    """

    groups: NDArray[Any]
    q: Any
    values: NDArray[np.float64]
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    confidence: float | None = None
    covers: str | None = None
    names: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups.tolist())

    def __contains__(self, key: Any) -> bool:
        return compared(key) in map(compared, self)

    def __getitem__(self, key: Any) -> Any:
        def of_group(part: NDArray[np.float64]) -> Any:
            answer = dict(zip(map(compared, self), part, strict=True))[compared(key)]
            return float(answer) if np.ndim(answer) == 0 else answer

        value = of_group(self.values)
        if self.low is None or self.high is None:
            return value
        assert self.confidence is not None and self.covers is not None
        low, high = of_group(self.low), of_group(self.high)
        return Estimate(value, low, high, self.confidence, self.covers)

    def to_pandas(self) -> Any:
        """A row for each group, and a column for each level; three of them with intervals."""
        import pandas

        table = {}
        for j, level in enumerate(np.ravel(self.q).tolist()):
            for part in ("value", "low", "high"):
                numbers = self.values if part == "value" else getattr(self, part)
                if numbers is not None:
                    key = level if self.low is None else (level, part)
                    table[key] = numbers.reshape(len(self), -1)[:, j]
        names = ["q"] if self.low is None else ["q", "part"]
        keys = list(self)
        if keys and isinstance(keys[0], tuple):
            index = pandas.MultiIndex.from_tuples(keys, names=self.names or None)
        else:
            index = pandas.Index(self.groups, name=(*self.names, "group")[0])
        frame = pandas.DataFrame(table, index=index)
        return frame.rename_axis(columns=names)


def quantile_by(
    x: Any,
    by: Any,
    q: Any,
    *,
    groups: Any,
    epsilon: float,
    bounds: tuple[float, float],
    neighbors: str = "swap",
    public_by: bool = False,
    method: str | None = None,
    resolution: float | None = None,
    dither: bool | None = None,
    prior: Any = None,
    counts: Any = None,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    expected_n: int | None = None,
) -> GroupQuantiles:
    """Release the quantiles of each public group by one release per group.

    The law is that of `dpq_fast.quantile_by`, whose docstring has every rule in full.

    Parameters
    ----------
    x, by : array_like, shape (n,)
        Private values, and the key of each, or columns of keys.
    q : float or array_like of float
        Levels in [0, 1]. Public.
    groups : sequence of keys, or of tuples of them
        The keys to answer. Public.
    epsilon, bounds, neighbors, public_by, method, resolution, dither, prior, counts, nan_policy, \
max_contributions, accountant, rng, confidence, covers, interval_share, expected_n
        As in `dpq_fast.quantile_by`.

    Returns
    -------
    GroupQuantiles
    """
    levels = Levels(q)
    names = Keys(groups)
    composed = isinstance(accountant, privacy.Accountant) and accountant.composition == "zcdp"
    dithered = dither is not None and check_flag("dither", dither)
    if method is None and (dithered or composed):
        method = JOINT_EXP
    calibration = privacy.quantile_by.calibrate(
        levels,
        epsilon=epsilon,
        neighbors=neighbors,
        max_contributions=max_contributions,
        public_by=public_by,
        method=method,
        confidence=confidence,
        covers=covers,
        interval_share=interval_share,
        expected_n=expected_n,
    )
    rate, by_depth = calibration.rate, calibration.method == IND_EXP
    if by_depth:
        dither = no_dither(dither)
    bounds, lattice = check_form(x, bounds, resolution, dither, nan_policy, prior)
    columns = names.check(by)
    rng = default_rng(rng)
    privacy.charge(accountant, calibration)
    values = numbers(x)
    keys = rows_of(columns, values.size)
    weights = np.ones(values.size) if counts is None else repeats(counts, values.size)
    distinct = Levels(levels.values)
    coarse = None if lattice is None else replace(lattice, bits=0)
    answers, low, high = np.empty((3, len(names.keys), levels.m))
    for group, name in enumerate(names.compared):
        inside = [i for i, key in enumerate(keys) if key == name]
        records = kept_records(values[inside], weights[inside], nan_policy)
        data = placed(records, bounds, lattice, rng)
        law: IndExpLaw | JointExpLaw = JointExpLaw(data.intervals(), distinct, rate)
        if by_depth:
            masses = None if lattice is None else lattice.masses
            law = IndExpLaw(data.even().intervals(), distinct, rate, FLIP, masses)
        answers[group] = law.sample(rng)
        if calibration.search is not None:
            column = Column.of(placed(records, bounds, coarse, None).even())
            low[group], high[group] = searched(
                answers[group].tolist(), calibration.search, column, rng
            )
    asked = float(q) if np.ndim(q) == 0 else np.array(q, dtype=np.float64)
    found = GroupQuantiles(names.array, asked, levels.restore(answers), names=frame_names(by))
    if calibration.search is None:
        return found
    ends = dict(low=levels.restore(low), high=levels.restore(high))
    return replace(found, **ends, confidence=confidence, covers=covers)
