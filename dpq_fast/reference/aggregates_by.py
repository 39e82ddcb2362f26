"""Counts, sums and means by group: a loop over the groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast.privacy.aggregates import AUTO
from dpq_fast.privacy.intervals import Request
from dpq_fast.reference import aggregates
from dpq_fast.reference._calls import default_rng, with_options
from dpq_fast.reference.answers import GroupValues
from dpq_fast.reference.columns import numbers, present, repeats
from dpq_fast.reference.key_selection import kept_keys, split
from dpq_fast.reference.keys import Keys, frame_names, in_order, rows_of
from dpq_fast.reference.sample import check_records


def by_group(
    release: Callable[..., Any],
    calibration: Any,
    x: Any,
    by: Any,
    groups: Any,
    request: Request | None,
    *,
    counts: Any,
    nan_policy: str,
    accountant: privacy.Accountant | None,
    rng: Any,
    read: Callable[[Any], NDArray[np.float64]] = numbers,
    **options: Any,
) -> GroupValues:
    """One release for the records of each group."""
    check_records(x, nan_policy)
    names = Keys([] if groups is None else groups)
    columns, counts = in_order(x, split(by) if groups is None else names.check(by), counts)
    generator = default_rng(rng)
    if request is not None:
        options |= dict(confidence=request.confidence, covers=request.covers)
    # all that is public is refused here, by a release without records
    options |= dict(nan_policy=nan_policy, **getattr(calibration, "release", calibration).own)
    release([], rng=0, **options)
    privacy.charge(accountant, calibration, f"{release.__name__}_by")
    values = read(x)
    if groups is None:
        names = Keys.kept(
            kept_keys(columns, counts, calibration.selection, generator), len(columns)
        )
    rows = rows_of(columns, values.size)
    weights = np.ones(values.size) if counts is None else repeats(counts, values.size)
    answers = []
    for name in names.compared:
        inside = [i for i, row in enumerate(rows) if row == name]
        answers.append(release(values[inside], counts=weights[inside], rng=generator, **options))
    parts: Any = [np.array(answers)]
    if request is not None:
        ends = [(answer.value, answer.low, answer.high) for answer in answers]
        parts = np.array(ends).reshape(-1, 3).T
    found = replace(GroupValues(names.array, *parts), names=frame_names(by))
    if request is None:
        return found
    return replace(found, confidence=request.confidence, covers=request.covers)


def count_by(
    x: Any,
    by: Any,
    *,
    groups: Any,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    public_by: bool = False,
    counts: Any = None,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    confidence: float | None = None,
    covers: str = "sample",
    delta: float = 0.0,
    selection_share: float | None = None,
) -> GroupValues:
    """Release how many records each public group has.

    Parameters
    ----------
    x, by, groups, epsilon, rho, neighbors, public_by, counts, nan_policy, max_contributions, \
accountant, rng, confidence, covers, delta, selection_share
        As in `dpq_fast.count_by`.

    Returns
    -------
    GroupValues
    """
    calibration = privacy.aggregates_by.calibrate_count(
        epsilon=epsilon,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
        public_by=public_by,
        delta=delta,
        selection_share=privacy.kept_groups.share_of(groups, selection_share),
    )
    return by_group(
        aggregates.count,
        calibration,
        x,
        by,
        groups,
        aggregates.of_sample(Request.of(confidence, covers)),
        counts=counts,
        nan_policy=nan_policy,
        accountant=accountant,
        rng=rng,
        read=present,
    )


def _clipped(
    release: Callable[..., Any],
    /,
    x: Any,
    by: Any,
    *,
    groups: Any,
    epsilon: float | None = None,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    q: float | str | None = AUTO,
    lower: float | None = 0.0,
    upper: float | None = None,
    method: str = "unbounded",
    share: float | None = None,
    expected_n: int | None = None,
    resolution: float | None = None,
    neighbors: str = "swap",
    public_by: bool = False,
    counts: Any = None,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    confidence: float | None = None,
    covers: str = "sample",
    delta: float = 0.0,
    selection_share: float | None = None,
    **method_options: Any,
) -> GroupValues:
    """A sum or a mean of each group, by the release of one."""
    clip: dict[str, Any] = dict(
        bounds=bounds,
        q=q,
        lower=lower,
        upper=upper,
        method=method,
        share=share,
        expected_n=expected_n,
        resolution=resolution,
    )
    given = ("split", "noise") if method == "unbounded" else ()
    calibration = privacy.aggregates_by.calibrate(
        epsilon=epsilon,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
        public_by=public_by,
        delta=delta,
        selection_share=privacy.kept_groups.share_of(groups, selection_share),
        **clip,
        **{name: method_options[name] for name in given if name in method_options},
    )
    request = Request.of(confidence, covers)
    return by_group(
        release,
        calibration,
        x,
        by,
        groups,
        request if release is aggregates.mean else aggregates.of_sample(request),
        counts=counts,
        nan_policy=nan_policy,
        accountant=accountant,
        rng=rng,
        **clip,
        **method_options,
    )


@with_options(_clipped)
def sum_by(x: Any, by: Any, **options: Any) -> GroupValues:
    """Release the sum of the records of each public group, clipped.

    Parameters
    ----------
    x, by, groups, epsilon, rho, bounds, q, lower, upper, method, share, expected_n, resolution, \
neighbors, public_by, counts, nan_policy, max_contributions, accountant, rng, confidence, covers, \
delta, selection_share, **method_options
        As in `dpq_fast.sum_by`.

    Returns
    -------
    GroupValues
    """
    return _clipped(aggregates.sum, x, by, **options)


@with_options(_clipped)
def mean_by(x: Any, by: Any, **options: Any) -> GroupValues:
    """Release the mean of the records of each public group, clipped.

    Parameters
    ----------
    x, by, groups, epsilon, rho, bounds, q, lower, upper, method, share, expected_n, resolution, \
neighbors, public_by, counts, nan_policy, max_contributions, accountant, rng, confidence, covers, \
delta, selection_share, **method_options
        As in `dpq_fast.mean_by`.

    Returns
    -------
    GroupValues
    """
    return _clipped(aggregates.mean, x, by, **options)


@with_options(_clipped)
def var_by(x: Any, by: Any, *, ddof: int = 0, **options: Any) -> GroupValues:
    """Release the variance of the records of each public group, clipped.

    Parameters
    ----------
    x, by, groups, epsilon, rho, bounds, q, lower, upper, method, share, expected_n, resolution, \
ddof, neighbors, public_by, counts, nan_policy, max_contributions, accountant, rng, confidence, \
covers, delta, selection_share, **method_options
        As in `dpq_fast.var_by`.

    Returns
    -------
    GroupValues
    """
    return _clipped(aggregates.var, x, by, ddof=ddof, **options)


@with_options(_clipped)
def std_by(x: Any, by: Any, *, ddof: int = 0, **options: Any) -> GroupValues:
    """Release the standard deviation of the records of each public group, clipped.

    Parameters
    ----------
    x, by, groups, epsilon, rho, bounds, q, lower, upper, method, share, expected_n, resolution, \
ddof, neighbors, public_by, counts, nan_policy, max_contributions, accountant, rng, confidence, \
covers, delta, selection_share, **method_options
        As in `dpq_fast.std_by`.

    Returns
    -------
    GroupValues
    """
    return _clipped(aggregates.std, x, by, ddof=ddof, **options)
