"""Releases about persons, by ids: against what it takes to tell the ids apart at all."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench.case import Call, Case, Maker, Side
from bench.columns import EPSILON, levels

BOUNDS = (0.0, 10_000.0)
ROWS = 10  # of each person, about


class Rows(NamedTuple):
    """Records, whose they are, and what group each is in."""

    values: NDArray[np.float64]
    ids: NDArray[np.int64]
    groups: NDArray[np.int64]


def rows(n: int) -> Rows:
    rng = np.random.default_rng(1)
    persons = max(n // ROWS, 1)
    ids = 7_919 * rng.integers(0, persons, n) + 1_000_003  # not in a row
    return Rows(rng.lognormal(4.0, 1.0, n), ids, rng.integers(0, 100, n))


def apart(n: int) -> Rows:
    """One record of each."""
    rng = np.random.default_rng(1)
    return Rows(rng.lognormal(4.0, 1.0, n), rng.permutation(n), rng.integers(0, 100, n))


def about_persons(q: Any, **options: Any) -> Maker:
    def make(data: Rows) -> Call:
        given = dict(epsilon=EPSILON, bounds=BOUNDS, privacy_unit=data.ids) | options
        return partial(dpq.quantile, data.values, q, **given)

    return make


def by_group(data: Rows) -> Call:
    given = dict(epsilon=EPSILON, bounds=BOUNDS, privacy_unit=data.ids, groups=range(100))
    return partial(dpq.quantile_by, data.values, data.groups, 0.5, **given)


def about_rows(data: Rows) -> Call:
    return partial(dpq.quantile, data.values, 0.5, epsilon=EPSILON, bounds=BOUNDS)


def total(data: Rows) -> Call:
    given = dict(epsilon=EPSILON, bounds=BOUNDS, privacy_unit=data.ids)
    return partial(dpq.sum, data.values, **given)


def told_apart(data: Rows) -> Call:
    return partial(np.unique, data.ids, return_inverse=True)


TOLD_APART = Side("`np.unique(ids, return_inverse=True)`", told_apart)
SIZES = dict(sizes=(10**6, 10**7), quick=10**3)

CASES = (
    Case(
        "persons/median",
        "median of persons with 10 rows each, n = {size}",
        rows,
        about_persons(0.5),
        against=(TOLD_APART, Side("the same of rows", about_rows)),
        shown=True,
        bar="2 × np.unique",
        **SIZES,
    ),
    Case(
        "persons/deciles",
        "nine deciles of persons, n = {size}",
        rows,
        about_persons(levels(9)),
        against=(TOLD_APART,),
        bar="2 × np.unique",
        **SIZES,
    ),
    Case(
        "persons/one row each",
        "median of persons with one row each, n = {size}",
        apart,
        about_persons(0.5),
        against=(TOLD_APART, Side("the same of rows", about_rows)),
        bar="1.3 × the same of rows, ids apart",
        **SIZES,
    ),
    Case(
        "persons/three rows",
        "median of up to 3 rows of each person, n = {size}",
        rows,
        about_persons(0.5, contributions=3),
        against=(TOLD_APART,),
        **SIZES,
    ),
    Case(
        "persons/groups",
        "medians of 100 groups by persons, n = {size}",
        rows,
        by_group,
        against=(TOLD_APART,),
        bar="2 × np.unique",
        **SIZES,
    ),
    Case(
        "persons/sum",
        "sum of persons' totals, n = {size}",
        rows,
        total,
        against=(TOLD_APART,),
        **SIZES,
    ),
)
