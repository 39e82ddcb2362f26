"""Quantiles by group: a loop over the groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpq_fast import privacy
from dpq_fast._checks import check_epsilon
from dpq_fast.data.columns import as_column, as_float64, check_counts
from dpq_fast.mechanisms.quantile_by import GroupQuantiles, Groups, declares_strings
from dpq_fast.noise.rng import default_rng
from dpq_fast.privacy.levels import Levels
from dpq_fast.reference.joint_exp import joint_exp_law
from dpq_fast.reference.sample import check_form


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
    resolution: float | None = None,
    dither: bool | None = None,
    counts: Any = None,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: Any = None,
    rng: Any = None,
    workers: int = 1,
) -> GroupQuantiles:
    """Release the quantiles of each public group by one JointExp per group.

    The law is that of `dpq_fast.quantile_by`, whose docstring has every rule in full.

    Parameters
    ----------
    x, by : array_like, shape (n,)
        Private values, and the key of each: integers or strings.
    q : float or array_like of float
        Levels in [0, 1]. Public.
    groups : sequence of int or of str
        The keys to answer. Public.
    epsilon, bounds, neighbors, public_by, resolution, dither, counts, nan_policy, \
max_contributions, accountant, rng
        As in `dpq_fast.quantile_by`.
    workers : int
        Not used.

    Returns
    -------
    GroupQuantiles
    """
    del workers
    levels = Levels(q)
    names = Groups(groups).keys
    epsilon = check_epsilon(epsilon)
    # Each group's epsilon and relation: see privacy.quantile_by_rate.
    same_group = neighbors == "swap" and public_by
    each = epsilon / 2 if neighbors == "swap" and not public_by else epsilon
    relation = "swap" if same_group else "add-remove"
    privacy.joint_exp_rate(levels.values, each, neighbors, max_contributions)
    declares_strings(by)
    lattice = check_form(x, bounds, resolution, dither, nan_policy)
    rng = default_rng(rng)
    privacy.charge(
        accountant,
        "quantile_by",
        q=levels,
        epsilon=epsilon,
        neighbors=neighbors,
        max_contributions=max_contributions,
        public_by=public_by,
    )
    column = as_column(x)
    values = as_float64(column)
    # Missing keys need not be comparable: pandas.NA is neither equal to a name nor unequal.
    keys = [key if isinstance(key, (int, np.integer, str)) else None for key in by]
    if len(keys) != values.size:
        raise ValueError("by must have one key for each row of x")
    weights = np.ones(values.size) if counts is None else check_counts(counts, values.size)
    answers = []
    for name in names.tolist():
        inside = [i for i, key in enumerate(keys) if key == name]
        law = joint_exp_law(
            values[inside],
            levels.values,
            epsilon=each,
            bounds=bounds,
            neighbors=relation,
            resolution=0 if lattice is None else lattice.step,
            dither=lattice is not None and lattice.bits > 0,
            counts=weights[inside],
            nan_policy=nan_policy,
            max_contributions=max_contributions,
            dither_rng=rng,
        )
        answers.append(law.sample(rng))
    asked = float(q) if np.ndim(q) == 0 else np.array(q, dtype=np.float64)
    found = np.array(answers).reshape(len(names), levels.m)
    return GroupQuantiles(names, asked, levels.restore(found))
