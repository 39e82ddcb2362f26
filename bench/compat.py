"""Interfaces of other libraries, against those libraries: the same calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import peers
from bench.case import Call, Case, Maker, Side
from bench.columns import BOUNDS, EPSILON, gaussian, levels
from dpq_fast.compat import diffprivlib

EDGES = np.linspace(*BOUNDS, 21)


def quantile(tools: Callable[[], Any], m: int) -> Maker:
    def make(x: NDArray) -> Call:
        return partial(tools().quantile, x, levels(m), epsilon=EPSILON, bounds=BOUNDS)

    return make


def var(x: NDArray) -> Call:
    return partial(diffprivlib.var, x, epsilon=EPSILON, bounds=BOUNDS)


def histogram(x: NDArray) -> Call:
    return partial(diffprivlib.histogram, x, epsilon=EPSILON, bins=EDGES)


CASES = (
    *(
        Case(
            f"compat/diffprivlib_{m}",
            f"`compat.diffprivlib.quantile`, unsorted, n = {{size}}, m = {m}",
            gaussian,
            quantile(lambda: diffprivlib, m),
            (10**6,),
            1_000,
            (Side("diffprivlib, the same call", quantile(peers.diffprivlib, m)),),
            shown=True,
            bar=bar,
        )
        for m, bar in ((1, "50 × faster"), (5, "200 × faster"))
    ),
    Case(
        "compat/diffprivlib_var",
        "`compat.diffprivlib.var`, unsorted, n = {size}",
        gaussian,
        var,
        (10**6,),
        1_000,
        (Side("diffprivlib, the same call", peers.diffprivlib_var),),
        bar="10 × faster",
    ),
    Case(
        "compat/diffprivlib_histogram",
        "`compat.diffprivlib.histogram`, 20 bins, n = {size}",
        gaussian,
        histogram,
        (10**6,),
        1_000,
        (
            Side(
                "diffprivlib, the same call",
                lambda x: peers.diffprivlib_histogram(x, EDGES),
            ),
            Side("opendp, the same bins", lambda x: peers.opendp_histogram(x, EDGES)),
        ),
        bar="10 × faster",
    ),
)
