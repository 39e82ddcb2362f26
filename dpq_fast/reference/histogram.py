"""Histograms: record by record, bin by bin."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast.reference._calls import default_rng
from dpq_fast.reference.noise import discrete_gaussian, discrete_laplace
from dpq_fast.reference.sample import check_records, kept_records


def histogram(
    x: Any,
    bins: Any = 10,
    bounds: tuple[Any, Any] | None = None,
    *,
    density: bool = False,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    counts: Any = None,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Release how many records are in each bin.

    The law is that of `dpq_fast.histogram`, whose docstring has every rule in full.

    Parameters
    ----------
    x : array_like of float or int, shape (N,)
        Private values in any order.
    bins, bounds, density, epsilon, rho, neighbors, counts, nan_policy, max_contributions, \
accountant, rng
        As in `dpq_fast.histogram`.

    Returns
    -------
    hist, edges : ndarray
    """
    calibration = privacy.aggregates_by.calibrate_histogram(
        epsilon=epsilon, rho=rho, neighbors=neighbors, max_contributions=max_contributions
    )
    _checks.check_flag("density", density)
    edges = edges_of(bins, bounds)
    check_records(x, nan_policy, counts)
    generator = default_rng(rng)
    privacy.charge(accountant, calibration, "histogram")
    records = kept_records(x, counts, nan_policy).tolist()
    last = edges[-1]
    numbers = [sum(r < edges[0] for r in records)]
    for low, high in pairwise(edges):
        closed = high == last
        numbers.append(sum(low <= r < high or (closed and r == high) for r in records))
    numbers.append(sum(r > last for r in records))
    each = calibration.each
    drawn = discrete_gaussian if each.gaussian else discrete_laplace
    shown = [edges[0] > -np.inf, *[True] * (len(edges) - 1), last < np.inf]
    noisy = [
        number + drawn(each.scale, rng=generator)
        for number, is_bin in zip(numbers, shown, strict=True)
        if is_bin
    ]
    known = calibration.relation.n_is_public and nan_policy == "raise" and counts is None
    whole = adding_up(noisy, len(records)) if known else [max(number, 0) for number in noisy]
    hist = np.array(whole[int(shown[0]) : len(whole) - int(shown[-1])])
    if density:
        total = hist.sum()
        hist = hist / (np.diff(edges) * total) if total else np.zeros(hist.size)
    return hist, np.array(edges)


def edges_of(bins: Any, bounds: Any) -> list[float]:
    """The edges of the bins."""
    if not isinstance(bins, (int, np.integer)) or isinstance(bins, bool):
        if bounds is not None:
            raise ValueError("bounds must be left out where bins are edges")
        given = np.asarray(bins)
        if given.ndim != 1 or given.size < 2:
            raise ValueError(f"bins must be a number, or two edges or more, got {bins!r}")
        if given.dtype.kind not in "iuf":
            raise TypeError(f"bins must be numbers or times, got dtype {given.dtype}")
        edges = [float(edge) for edge in given]
    else:
        if bounds is None:
            raise ValueError("bounds must be given for a number of bins, got None")
        _checks.check_count("bins", bins)
        low, high = _checks.check_bounds(bounds)
        edges = [float(edge) for edge in np.linspace(low, high, int(bins) + 1)]
    if not all(low < high for low, high in pairwise(edges)):
        raise ValueError(f"bins must ascend, got {edges[:8]}")
    return edges


def adding_up(noisy: list[int], total: int) -> list[int]:
    """Whole numbers that are not negative and add up, nearest to noisy ones, by halving."""
    low, high = min(noisy) - total - 1.0, float(max(noisy))
    for _ in range(200):
        middle = (low + high) / 2.0
        if sum(max(number - middle, 0.0) for number in noisy) > total:
            low = middle
        else:
            high = middle
    near = [max(number - high, 0.0) for number in noisy]
    whole = [int(number + 1e-9) for number in near]
    order = sorted(range(len(noisy)), key=lambda i: (whole[i] - near[i], i))
    for i in range(total - sum(whole)):
        whole[order[i % len(order)]] += 1
    return whole
