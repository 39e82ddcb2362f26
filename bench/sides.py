"""Calls that several subjects time: makers, from a column to a call of a public function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench import published
from bench.case import Maker
from bench.columns import BOUNDS, EPSILON, levels


def released(function: Callable[..., Any], *q: Any, **options: Any) -> Maker:
    """A release with the default cryptographic generator; `EPSILON` and `BOUNDS` if not given."""
    chosen = {"epsilon": EPSILON, "bounds": BOUNDS} | options
    return lambda x: partial(function, x, *q, **chosen)


def joint_exp(m: int, **options: Any) -> Maker:
    return released(dpq.joint_exp, levels(m), **options)


def ind_exp(m: int, **options: Any) -> Maker:
    return released(dpq.ind_exp, levels(m), **options)


def np_quantile(m: int) -> Maker:
    return lambda x: partial(np.quantile, x, levels(m))


def np_sum(x: NDArray) -> Callable[[], Any]:
    return x.sum


def published_joint_exp(m: int) -> Maker:
    """Of a sorted column."""
    rng = np.random.default_rng(0)
    return lambda x: partial(published.joint_exp, x, levels(m), EPSILON, BOUNDS, rng)
