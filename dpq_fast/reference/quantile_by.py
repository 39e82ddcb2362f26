"""Quantiles by group: a loop over the groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast._checks import check_count, check_flag
from dpq_fast.privacy.agg_tree import expected_records
from dpq_fast.privacy.ind_exp import FLIP
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.quantile_by import (
    BY_NUMBER,
    IND_EXP,
    JOINT_EXP,
    Calibration,
    PartCalibration,
)
from dpq_fast.reference._calls import default_rng
from dpq_fast.reference.agg_tree import agg_tree
from dpq_fast.reference.answers import GroupQuantiles
from dpq_fast.reference.approx_quantiles import approx_quantiles
from dpq_fast.reference.columns import numbers, repeats
from dpq_fast.reference.csmooth import csmooth
from dpq_fast.reference.ind_exp import IndExpLaw, ind_exp, no_dither
from dpq_fast.reference.intervals import Column, Estimate, searched
from dpq_fast.reference.joint_exp import JointExpLaw, joint_exp
from dpq_fast.reference.key_selection import kept_keys, split
from dpq_fast.reference.keys import Keys, compared, frame_names, in_order, rows_of
from dpq_fast.reference.lattice import Lattice
from dpq_fast.reference.sample import check_form, check_records, kept_records, placed
from dpq_fast.reference.two_stage import two_stage
from dpq_fast.reference.unbounded_quantile import unbounded_quantile

RELEASES: dict[str, Callable[..., Any]] = dict(
    joint_exp=joint_exp,
    ind_exp=ind_exp,
    approx_quantiles=approx_quantiles,
    two_stage=two_stage,
    unbounded_quantile=unbounded_quantile,
    agg_tree=agg_tree,
    csmooth=csmooth,
)


def quantile_by(
    x: Any,
    by: Any,
    q: Any,
    *,
    groups: Any,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    bounds: Any = None,
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
    selection_share: float | None = None,
    **method_options: Any,
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
    epsilon, delta, rho, bounds, neighbors, public_by, method, resolution, dither, prior, counts, \
nan_policy, max_contributions, accountant, rng, confidence, covers, interval_share, expected_n, \
selection_share, **method_options
        As in `dpq_fast.quantile_by`.

    Returns
    -------
    GroupQuantiles
    """
    levels = Levels(q)
    selection_share = privacy.kept_groups.share_of(groups, selection_share)
    names = Keys([] if groups is None else groups)
    by_group = isinstance(bounds, Mapping) or np.ndim(bounds) == 2
    if by_group and groups is None:
        raise ValueError("bounds must be one pair, or none, where no groups are given")
    pairs = bounds_of(bounds, names) if by_group else [bounds]
    dithered = dither is not None and check_flag("dither", dither)
    places = []
    if method is None and dithered:
        method = JOINT_EXP if rho is None else None
        if method and confidence is None and expected_n is not None:
            check_count("expected_n", expected_n)
            expected_n = None
    elif method is None and expected_n is not None:
        places = [Lattice.between(pair, resolution, None, prior) for pair in pairs]
    calibration = privacy.quantile_by.calibrate(
        levels,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
        public_by=public_by,
        method=method,
        confidence=confidence,
        covers=covers,
        interval_share=interval_share,
        expected_n=expected_n,
        points=max((each.points for _, each in places if each is not None), default=None),
        two_sided=any(low < 0.0 < high for (low, high), _ in places),
        composed=isinstance(accountant, privacy.Accountant) and accountant.composition == "zcdp",
        selection_share=selection_share,
    )
    spent: Any = calibration
    if isinstance(calibration, privacy.kept_groups.Calibration):
        spent, delta = calibration.release, 0.0
        epsilon = spent.epsilon
    check_records(x, nan_policy)
    columns, counts = in_order(x, split(by) if groups is None else names.check(by), counts)
    release: Callable[..., Any]
    if isinstance(spent, PartCalibration) or by_group:
        part = privacy.parallel.part_of(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            neighbors=neighbors,
            max_contributions=max_contributions,
            public_by=public_by,
        )
        options = dict(neighbors=part.neighbors, nan_policy=nan_policy, **part.given())
        options |= arguments_of(spent.method, resolution, dither, prior) | method_options
        n = expected_records(expected_n, max_contributions)
        if confidence is not None:
            options |= dict(confidence=confidence, covers=covers, interval_share=interval_share)
        if confidence is not None or spent.method in BY_NUMBER:
            options |= dict(expected_n=n)
        release = partial(one_sample, spent.method, levels, options)
        for pair in set(pairs):  # refuses all that is public
            release(pair, np.empty(0), np.empty(0), default_rng(0))
    else:
        for name in method_options:
            raise TypeError(f"{name} must be left out for method {spent.method!r}")
        if spent.method == IND_EXP:
            dither = no_dither(dither)
        pair, lattice = check_form(x, bounds, resolution, dither, nan_policy, prior)
        pairs = [pair]
        release = partial(at_rate, spent, Levels(levels.values), lattice, nan_policy)
    rng = default_rng(rng)
    privacy.charge(accountant, calibration, "quantile_by")
    values = numbers(x)
    if isinstance(calibration, privacy.kept_groups.Calibration):
        names = Keys.kept(kept_keys(columns, counts, calibration.selection, rng), len(columns))
    keys = rows_of(columns, values.size)
    weights = np.ones(values.size) if counts is None else repeats(counts, values.size)
    answers, low, high = np.empty((3, len(names.keys), levels.m))
    for group, key in enumerate(names.compared):
        inside = [i for i, own in enumerate(keys) if own == key]
        found = release(pairs[group if by_group else 0], values[inside], weights[inside], rng)
        answers[group], low[group], high[group] = found
    asked = float(q) if np.ndim(q) == 0 else np.array(q, dtype=np.float64)
    out = GroupQuantiles(names.array, levels.restore(answers), names=frame_names(by), q=asked)
    if confidence is None:
        return out
    ends = dict(low=levels.restore(low), high=levels.restore(high))
    return replace(out, **ends, confidence=confidence, covers=covers)


def at_rate(
    calibration: Calibration,
    levels: Levels,
    lattice: Lattice | None,
    nan_policy: str,
    bounds: tuple[float, float],
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[Any, Any, Any]:
    """Values of one group and their ends: JointExp, or permute-and-flip by depth."""
    records = kept_records(values, weights, nan_policy)
    data = placed(records, bounds, lattice, rng)
    law: IndExpLaw | JointExpLaw = JointExpLaw(data.intervals(), levels, calibration.rate)
    if calibration.method == IND_EXP:
        masses = None if lattice is None else lattice.masses
        law = IndExpLaw(data.even().intervals(), levels, calibration.rate, FLIP, masses)
    answers = law.sample(rng)
    if calibration.search is None:
        return answers, np.nan, np.nan
    coarse = None if lattice is None else replace(lattice, bits=0)
    column = Column.of(placed(records, bounds, coarse, None))
    return answers, *searched(answers.tolist(), calibration.search, column, rng)


def one_sample(
    method: str,
    levels: Levels,
    options: dict[str, Any],
    bounds: tuple[float, float] | None,
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[Any, Any, Any]:
    """Values of one group and their ends: by the mechanism, as on one sample."""
    given: dict[str, Any] = dict(bounds=bounds)
    if method == "unbounded_quantile":
        given = {} if bounds is None else dict(zip(("lower", "upper"), bounds, strict=True))
    answer = RELEASES[method](values, levels.values, counts=weights, rng=rng, **given, **options)
    if isinstance(answer, Estimate):
        return answer.value, answer.low, answer.high
    return answer, np.nan, np.nan


def arguments_of(method: str, resolution: Any, dither: Any, prior: Any) -> dict[str, Any]:
    """Those about places that a mechanism takes."""
    if method == "unbounded_quantile":
        if prior is not None:
            raise ValueError("prior must be left out for an unbounded search, which has no lattice")
        if dither is not None:
            raise ValueError("dither and assume_sorted must be left out for an unbounded search")
        return {} if resolution is None else dict(resolution=resolution)
    given = dict(resolution=resolution, prior=prior)
    if method == "agg_tree":
        if dither is not None and check_flag("dither", dither):
            raise ValueError("dither must be left out for method 'agg_tree', got True")
        return given
    return given | dict(dither=no_dither(dither) if method == IND_EXP else dither)


def bounds_of(bounds: Any, names: Keys) -> list[Any]:
    """The bounds of each group."""
    if isinstance(bounds, Mapping):
        given = {compared(key): pair for key, pair in bounds.items()}
        for key in names.keys:
            if compared(key) not in given:
                raise ValueError(f"bounds must have a pair for each group, got none for {key!s}")
        return [tuple(given[compared(key)]) for key in names.keys]
    if len(bounds) != len(names.keys):
        raise ValueError(
            f"bounds must have a pair for each of {len(names.keys)} groups, got {len(bounds)}"
        )
    return [tuple(map(float, pair)) for pair in bounds]
