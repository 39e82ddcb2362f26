"""Other libraries' private quantiles and sums, each called the way its documentation shows.

They are imported when they are used; without them there is `Missing`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.columns import BOUNDS, EPSILON, levels

# opendp picks among candidates that the caller lists: this many, evenly spaced over the bounds.
CANDIDATES = 2_001


class Missing(Exception):
    """Something that is not there, and what provides it: a side that needs it is skipped."""


def require(package: str) -> None:
    """Raise `Missing` for a package of the extra `bench` that is not installed."""
    if find_spec(package) is None:
        raise Missing(f"{package} is not installed: pip install '.[bench]'")


@cache
def diffprivlib() -> Any:
    require("diffprivlib")
    with warnings.catch_warnings():  # it changes the filters
        warnings.simplefilter("ignore")
        from diffprivlib import tools
    return tools


@cache
def opendp() -> Any:
    require("opendp")
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def diffprivlib_quantile(x: NDArray, m: int) -> Callable[[], Any]:
    """A call that releases m levels, one after another; `EPSILON` in total."""
    return partial(diffprivlib().quantile, x, levels(m), epsilon=EPSILON, bounds=BOUNDS)


def opendp_quantile(x: NDArray, m: int) -> Callable[[], Any]:
    """A call that releases m levels; `EPSILON` in total, one composed measurement.

    Calibrating the measurements is left out of the call, handing over the array is part of it.
    """
    dp, q = opendp(), levels(m)
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=x.size)
    metric = dp.symmetric_distance()
    candidates = np.linspace(*BOUNDS, CANDIDATES).tolist()

    def at_scale(level: float, scale: float) -> Any:
        return dp.m.make_private_quantile(
            domain, metric, dp.max_divergence(), candidates, level, scale
        )

    # one replaced record is a symmetric distance of 2
    budget = EPSILON / m
    scale = {
        level: dp.binary_search_param(lambda s, a=level: at_scale(a, s), 2, budget)
        for level in q.tolist()
    }
    measurements = [at_scale(level, scale[level]) for level in q.tolist()]
    release = measurements[0] if m == 1 else dp.c.make_composition(measurements)
    return lambda: release(x)


def diffprivlib_sum(x: NDArray) -> Callable[[], Any]:
    """A call that releases the sum of the clamped records."""
    return partial(diffprivlib().sum, x, epsilon=EPSILON, bounds=BOUNDS)


def opendp_sum(x: NDArray) -> Callable[[], Any]:
    """A call that releases the sum of the clamped records, n public; noise calibrated before."""
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=x.size)
    metric = dp.symmetric_distance()
    total = (domain, metric) >> dp.t.then_clamp(BOUNDS) >> dp.t.then_sum()
    measurement = dp.binary_search_chain(
        lambda scale: total >> dp.m.then_laplace(scale), d_in=2, d_out=EPSILON
    )
    return lambda: measurement(x)


def diffprivlib_var(x: NDArray) -> Callable[[], Any]:
    """A call that releases the variance of the clamped records."""
    return partial(diffprivlib().var, x, epsilon=EPSILON, bounds=BOUNDS)


def diffprivlib_histogram(
    x: NDArray, edges: NDArray, epsilon: float = EPSILON
) -> Callable[[], Any]:
    """A call that releases numbers in bins, for a record that is added or removed."""
    ends = edges[0], edges[-1]
    state = np.random.RandomState(2)
    release = partial(diffprivlib().histogram, x, epsilon, edges.tolist(), ends, random_state=state)
    return lambda: release()[0]


def opendp_histogram(x: NDArray, edges: NDArray, epsilon: float = EPSILON) -> Callable[[], Any]:
    """The same with geometric noise; opendp calls bins categories."""
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    bins = list(range(1, edges.size))
    *starts, end = edges.tolist()
    counts = (
        (domain, dp.symmetric_distance())
        >> dp.t.then_find_bin([*starts, float(np.nextafter(end, np.inf))])
        >> dp.t.then_count_by_categories(bins, null_category=False, TOA=int)
    )
    measurement = dp.binary_search_chain(
        lambda scale: counts >> dp.m.then_laplace(scale), d_in=1, d_out=epsilon
    )
    return lambda: measurement(x)
