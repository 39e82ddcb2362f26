"""CSmooth, [GJK21] Appendix E: quantiles with Laplace log-normal noise on smooth sensitivity.

[GJK21] is Gillenwater, Joseph, Kulesza, "Differentially Private Quantiles", PMLR 139.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpq_fast import privacy
from dpq_fast.privacy.levels import Levels
from dpq_fast.reference._calls import default_rng, with_options
from dpq_fast.reference.sample import decoded, reader


def log_smooth_sensitivity(x: Sequence[float], j: int, t: float, low: float, high: float) -> float:
    """ln of the t-smooth sensitivity of x_j, by its definition: [GJK21] Lemma 13.

    x ascends, is counted from 1 and lies in [low, high].
    """
    n = len(x)

    def value(i: int) -> float:
        return low if i < 1 else high if i > n else x[i - 1]

    best = -math.inf
    for k in range(n + 1):
        widest = max(value(j + i) - value(j + i - k - 1) for i in range(k + 2))
        if widest > 0:
            best = max(best, math.log(widest) - t * k)
    return best


@with_options(reader)
def csmooth(
    x: Any,
    q: Any,
    *,
    rho: float,
    t: Any = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    accountant: Any = None,
    rng: Any = None,
    **column: Any,
) -> Any:
    """Release m quantiles, each with noise of its own, and sort them.

    The law is that of `dpq_fast.csmooth`, whose docstring has every rule in full.

    Parameters
    ----------
    x, q
        As in `joint_exp`.
    rho : float
        Zero-concentrated budget for the whole tuple. Public.
    bounds : (float, float)
        Finite low < high, chosen without looking at `x`. Public.
    t : float or array_like of float, optional
        Smoothness. Public.
    neighbors : {"swap", "add-remove"}
        What the budget protects: one value replaced, or one added or deleted.
    resolution : float, optional
        Spacing of the lattice of outputs, in the unit of `x`; 0 for none.
    dither : bool, optional
        Whether records on the lattice are spread over their cells, once for all levels.
    prior, counts, assume_sorted, nan_policy, max_contributions, accountant, rng
        As in `joint_exp`.

    Returns
    -------
    float or ndarray of float64
        In q's shape and the unit of `x`, inside `bounds`, non-decreasing in `q`.
    """
    levels = Levels(q)
    calibration = privacy.csmooth.calibrate(
        levels, rho=rho, t=t, neighbors=neighbors, max_contributions=max_contributions
    )
    read = reader(x, **column)
    rng = default_rng(rng)
    privacy.charge(accountant, calibration)
    data = read(rng).intervals()
    low, high = data.bounds if data.lattice is None else (0, data.lattice.fine_points - 1)
    records = data.records.tolist()
    outputs = []
    for level, each, (sigma, log_scale) in zip(
        levels.values.tolist(), calibration.smoothness.tolist(), calibration.shapes, strict=True
    ):
        j = privacy.csmooth.smooth_rank(level, len(records))
        center = records[j - 1] if records else high
        # [GJK21] Lemma 14: f(X) + S Z / s with Z = X exp(sigma Y).
        log_size = log_smooth_sensitivity(records, j, each, low, high) - log_scale
        log_size += sigma * rng.standard_normal() + math.log(rng.standard_exponential())
        noise = math.copysign(math.exp(min(log_size, 709.0)), rng.random() - 0.5)
        outputs.append(min(max(center + noise, low), high))
    outputs.sort()
    if data.lattice is None:
        return levels.restore(np.array(outputs))
    points = np.array([round(output) for output in outputs], dtype=np.int64)
    return levels.restore(decoded(points, data.lattice))
