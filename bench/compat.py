"""Interfaces of other libraries, against those libraries: the same calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import NDArray

from bench import peers
from bench.case import Call, Case, Maker, Side
from bench.columns import BOUNDS, EPSILON, gaussian, levels
from dpq_fast.compat import diffprivlib


def quantile(tools: Callable[[], Any], m: int) -> Maker:
    def make(x: NDArray) -> Call:
        return partial(tools().quantile, x, levels(m), epsilon=EPSILON, bounds=BOUNDS)

    return make


CASES = tuple(
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
)
