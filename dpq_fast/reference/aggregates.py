"""Counts, sums and means, [Dur23] 6.3: record by record, in Python's integers.

[Dur23] is Durfee, "Unbounded Differentially Private Quantile and Maximum Estimation".
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dpq_fast import _checks, privacy
from dpq_fast.mechanisms.aggregates import Clip, Clipping
from dpq_fast.noise.rng import default_rng
from dpq_fast.reference.ind_exp import ind_exp
from dpq_fast.reference.joint_exp import joint_exp
from dpq_fast.reference.noise import discrete_laplace
from dpq_fast.reference.sample import check_records, kept_records
from dpq_fast.reference.unbounded_quantile import UnboundedQuantileLaw


def count(
    x: Any,
    *,
    epsilon: float,
    neighbors: str = "swap",
    counts: Any = None,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
) -> int:
    """Release how many records there are.

    Parameters
    ----------
    x, epsilon, neighbors, counts, nan_policy, max_contributions, accountant, rng
        As in `dpq_fast.count`.

    Returns
    -------
    int
    """
    generator = default_rng(rng)
    scale = privacy.laplace_scale(1, epsilon, max_contributions)
    _checks.check_neighbors(neighbors)
    check_records(x, nan_policy)
    privacy.charge(
        accountant,
        "count",
        epsilon=epsilon,
        neighbors=neighbors,
        max_contributions=max_contributions,
    )
    return len(kept_records(x, counts, nan_policy)) + _noise(scale, generator)


def sum(x: Any, *, accountant: privacy.Accountant | None = None, **options: Any) -> float:
    """Release the sum of the records, clipped.

    Parameters
    ----------
    x : array_like of float or int, shape (N,)
        Private values in any order.
    accountant : Accountant, optional
        Charged with the release.
    **options
        As in `dpq_fast.sum`, where every rule is in full.

    Returns
    -------
    float
    """
    clipping, form, rng = _arguments(**options)
    check_records(x, form["nan_policy"])
    privacy.charge(accountant, "sum", **clipping.guaranteed)
    points, clip, missing = _points(clipping, x, form, rng)
    total = 0
    for point in points:
        total += point
    return clip.decode(total + _noise(clipping.sum_scale(clip, missing), rng))


def mean(x: Any, *, accountant: privacy.Accountant | None = None, **options: Any) -> float:
    """Release the mean of the records, clipped.

    Parameters
    ----------
    x : array_like of float or int, shape (N,)
        Private values in any order.
    accountant : Accountant, optional
        Charged with the release.
    **options
        As in `dpq_fast.mean`, where every rule is in full.

    Returns
    -------
    float
    """
    clipping, form, rng = _arguments(**options)
    check_records(x, form["nan_policy"])
    privacy.charge(accountant, "mean", **clipping.guaranteed)
    points, clip, missing = _points(clipping, x, form, rng)
    first = second = 0
    for point in points:  # the two integers of `privacy.mean_scales`
        if clipping.person["neighbors"] == "add-remove":
            first += point - clip.first
            second += clip.last - point
        else:
            first += 2 * point - clip.first - clip.last
            second += 1
    scales = clipping.mean_scales(clip, missing)
    first += _noise(scales[0], rng)
    second += _noise(scales[1], rng)
    return clipping.mean_of(first, second, clip)


def _arguments(
    *,
    epsilon: float,
    q: float | None = 0.99,
    lower: float | None = 0.0,
    upper: float | None = None,
    method: str = "unbounded",
    share: float = 0.5,
    resolution: float | None = None,
    neighbors: str = "swap",
    counts: Any = None,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    rng: Any = None,
    **options: Any,
) -> tuple[Clipping, dict[str, Any], np.random.Generator]:
    """What is public, the form of the data, and the generator."""
    clipping = Clipping(
        options,
        epsilon=epsilon,
        q=q,
        lower=lower,
        upper=upper,
        method=method,
        share=share,
        resolution=resolution,
        neighbors=neighbors,
        max_contributions=max_contributions,
    )
    return clipping, dict(counts=counts, nan_policy=nan_policy), default_rng(rng)


def _points(
    clipping: Clipping, x: Any, form: dict[str, Any], rng: np.random.Generator
) -> tuple[list[int], Clip, bool]:
    """The kept records as lattice points in the clip, the clip, and whether any may be missing."""
    records = kept_records(x, **form).tolist()
    clip = clipping.clip(_ends(clipping, x, records, form, rng))
    points = []
    for record in records:
        position = min(max(record * clip.scale, clip.first), clip.last)
        points.append(round(position))  # to the nearest integer, ties to the even one
    return points, clip, form["nan_policy"] != "raise"


def _ends(
    clipping: Clipping,
    x: Any,
    records: list[float],
    form: dict[str, Any],
    rng: np.random.Generator,
) -> list[float]:
    """What is released for the clip."""
    if clipping.method in ("joint_exp", "ind_exp"):
        release = joint_exp if clipping.method == "joint_exp" else ind_exp
        bounds = (clipping.lower, clipping.upper)
        options = dict(bounds=bounds, resolution=clipping.resolution) | clipping.quantile | form
        return [release(x, rng=rng, **options)]
    if clipping.search is None:
        return []
    sides = [records]
    if clipping.two_sided:
        sides = [[-r for r in records if r < 0.0], [r for r in records if r >= 0.0]]
    return [UnboundedQuantileLaw(clipping.search, side).sample(rng) for side in sides]


def _noise(scale: Fraction, rng: np.random.Generator) -> int:
    return discrete_laplace(scale, rng=rng) if scale else 0
