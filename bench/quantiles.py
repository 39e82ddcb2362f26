"""The other ways to quantiles, each next to what it is made of or to its published code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench import published
from bench.case import Call, Case, Maker, Side
from bench.columns import BOUNDS, DELTA, EPSILON, RHO, gaussian, levels, ordered
from bench.counts import half_normal, np_log
from bench.sides import ind_exp, joint_exp, np_quantile, np_sum, released
from dpq_fast import privacy
from dpq_fast.laws.joint.path import first_windows, prepare
from dpq_fast.mechanisms.approx_quantiles import drift
from dpq_fast.privacy.levels import splits

FINE = 1.00001  # ratio of very fine candidates


def approx_quantiles(m: int, **options: Any) -> Maker:
    return released(dpq.approx_quantiles, levels(m), **options)


def windows_of(m: int) -> Maker:
    """What `approx_quantiles` does before its first draw: count records, collect windows."""
    q = levels(m)
    rates = privacy.approx_quantiles.calibrate(q, epsilon=EPSILON).steps
    middles = q[[step.middle for step in splits(q)]]

    def select(x: NDArray) -> None:
        order = dpq.Sample.of(x, BOUNDS).order()
        guess = first_windows(order, middles, rates / 2.0)
        prepare(order, middles, guess + drift(order.n, rates))

    return lambda x: lambda: select(x)


def unbounded(q: Any = 0.5, **options: Any) -> Maker:
    return lambda x: partial(dpq.unbounded_quantile, x, q, epsilon=EPSILON, **options)


def published_unbounded(x: NDArray[np.float64]) -> Call:
    """On a list, which it goes through faster than an array; budgets like ours."""
    data, rng = x.tolist(), np.random.default_rng(0)
    budgets = 2.0 * EPSILON / 3.0, EPSILON / 3.0
    return lambda: published.unbounded_quantile(data, 0.5, *budgets, 0.0, 1.01, rng)


def csmooth(q: Any = 0.5, **options: Any) -> Maker:
    return lambda x: partial(dpq.csmooth, x, q, rho=RHO, bounds=BOUNDS, **options)


def published_csmooth(x: NDArray[np.float64]) -> Call:
    """At the median of a sorted column, with our t."""
    t, rng = privacy.csmooth.default_smoothness(1.0), np.random.default_rng(0)
    sigma, log_scale = privacy.csmooth.shape_of(t, 1.0)
    return lambda: published.csmooth(x, 0.5, t, sigma, np.exp(log_scale), BOUNDS, rng)


def reference(function: str, **budget: float) -> Maker:
    """The pure-Python reference."""

    def make(x: NDArray) -> Callable[[], Any]:
        plain = getattr(dpq.reference, function)
        return lambda: plain(x, levels(9), bounds=BOUNDS, rng=0, **budget)

    return make


CASES = (
    Case(
        "approx_quantiles/unsorted",
        "`approx_quantiles`, unsorted, n = {size}, m = 100",
        gaussian,
        approx_quantiles(100),
        (10**6,),
        1_000,
        (
            Side("selection of its windows alone", windows_of(100)),
            Side("`np.quantile`", np_quantile(100), shown=False),
            Side("`joint_exp`", joint_exp(100), shown=False),
        ),
        shown=True,
        bar="0.67 of its time for the selection",
    ),
    Case(
        "approx_quantiles/sorted",
        "`approx_quantiles`, sorted, n = {size}, m = 30",
        ordered,
        approx_quantiles(30, assume_sorted=True),
        (1_000, 10**6),
        100,
        (Side("`joint_exp`", joint_exp(30, assume_sorted=True)),),
    ),
    Case(
        "ind_exp/sorted",
        "`ind_exp`, sorted, n = {size}, m = 30",
        ordered,
        ind_exp(30, assume_sorted=True),
        (1_000, 10**6),
        100,
        (
            Side("with delta", ind_exp(30, assume_sorted=True, delta=DELTA)),
            Side("`joint_exp`", joint_exp(30, assume_sorted=True)),
        ),
    ),
    Case(
        "unbounded_quantile/large",
        "`unbounded_quantile`, unsorted, n = {size}",
        half_normal,
        unbounded(),
        (10**8,),
        1_000,
        (
            Side("`np.log`, same data", np_log),
            Side("`x.sum()`", np_sum, shown=False),
            Side("9 levels", unbounded(levels(9)), shown=False),
        ),
        shown=True,
    ),
    Case(
        "unbounded_quantile/fine",
        "`unbounded_quantile`, unsorted, n = {size}",
        half_normal,
        unbounded(),
        (10**7,),
        1_000,
        (
            Side("β = 1.00001", unbounded(beta=FINE)),
            Side("β = 1.00001, 9 levels", unbounded(levels(9), beta=FINE)),
        ),
        bar="β = 1.00001 takes 2 × as long at most",
    ),
    Case(
        "unbounded_quantile/published",
        "`unbounded_quantile`, unsorted, n = {size}",
        half_normal,
        unbounded(),
        (10**6,),
        1_000,
        (Side("published code, re-stated", published_unbounded),),
        shown=True,
        bar="100 × faster",
    ),
    Case(
        "csmooth/sorted",
        "`csmooth`, sorted, n = {size}, m = 1",
        ordered,
        csmooth(assume_sorted=True),
        (10**6,),
        1_000,
        (
            Side("published algorithm, re-stated in NumPy", published_csmooth),
            Side("30 levels", csmooth(levels(30), assume_sorted=True), shown=False),
            Side("unsorted", csmooth(), shown=False),
        ),
        shown=True,
        bar="keep 1,000 × faster; the authors' 4.9 s",
    ),
    Case(
        "csmooth/unsorted",
        "`csmooth`, unsorted, n = {size}, m = 1",
        gaussian,
        csmooth(),
        (10**8,),
        1_000,
        (
            Side("`x.sum()`", np_sum),
            Side("`np.quantile`", np_quantile(1), shown=False),
            Side("`ind_exp`", ind_exp(1), shown=False),
            Side("30 levels", csmooth(levels(30)), shown=False),
        ),
        shown=True,
    ),
    *(
        Case(
            f"{function}/reference",
            f"`{function}`, sorted, n = {{size}}, m = 9",
            ordered,
            lambda x, function=function, budget=budget: partial(
                getattr(dpq, function), x, levels(9), bounds=BOUNDS, assume_sorted=True, **budget
            ),
            (100,),
            20,
            (Side(f"`reference.{function}`", reference(function, **budget)),),
        )
        for function, budget in (
            ("joint_exp", {"epsilon": EPSILON}),
            ("ind_exp", {"epsilon": EPSILON}),
            ("approx_quantiles", {"epsilon": EPSILON}),
            ("csmooth", {"rho": RHO}),
        )
    ),
)
