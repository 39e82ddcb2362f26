"""Checks of arguments: what they return, and what they say."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpq_fast import _checks


@pytest.mark.parametrize("value", [1, 0.5, np.float64(2.0), np.float32(0.25), np.int64(3)])
def test_check_epsilon_returns_a_python_float(value):
    cleaned = _checks.check_epsilon(value)
    assert type(cleaned) in (float, np.float64)
    assert cleaned == value


def test_check_epsilon_takes_fractions():
    assert _checks.check_epsilon(Fraction(1, 4)) == 0.25


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: _checks.check_epsilon(-1.0),
            ValueError,
            "^epsilon must be positive and finite, got -1.0$",
        ),
        (
            lambda: _checks.check_epsilon(0),
            ValueError,
            "^epsilon must be positive and finite, got 0.0$",
        ),
        (lambda: _checks.check_epsilon(math.nan), ValueError, "positive and finite, got nan$"),
        (
            lambda: _checks.check_epsilon(math.inf, "epsilon1"),
            ValueError,
            "^epsilon1 must .* got inf$",
        ),
        (lambda: _checks.check_epsilon(10**400), ValueError, "got inf$"),
        (lambda: _checks.check_epsilon(-(10**400)), ValueError, "got -inf$"),
        (
            lambda: _checks.check_epsilon(True),
            TypeError,
            "^epsilon must be a real number, got True$",
        ),
        (lambda: _checks.check_epsilon(np.True_), TypeError, "must be a real number"),
        (lambda: _checks.check_epsilon("1"), TypeError, "^epsilon must be a real number, got '1'$"),
        (lambda: _checks.check_epsilon(1j), TypeError, "must be a real number, got 1j$"),
        (lambda: _checks.check_epsilon(None), TypeError, "must be a real number, got None$"),
        (lambda: _checks.check_epsilon(np.ones(3)), TypeError, "real number, got ndarray$"),
        (lambda: _checks.check_rho(0.0), ValueError, "^rho must be positive and finite, got 0.0$"),
        (lambda: _checks.check_delta(1.0), ValueError, r"^delta must lie in \[0, 1\), got 1.0$"),
        (
            lambda: _checks.check_delta(-1e-9),
            ValueError,
            r"^delta must lie in \[0, 1\), got -1e-09$",
        ),
        (lambda: _checks.check_delta(math.nan), ValueError, "got nan$"),
        (lambda: _checks.check_delta(False), TypeError, "^delta must be a real number, got False$"),
        (
            lambda: _checks.check_nonnegative("x", -1),
            ValueError,
            "^x must be finite and not negative, got -1.0$",
        ),
        (
            lambda: _checks.check_bounds((1, 1)),
            ValueError,
            r"^bounds must be finite with low < high, got \(1.0, 1.0\)$",
        ),
        (lambda: _checks.check_bounds((2, 1)), ValueError, r"low < high, got \(2.0, 1.0\)$"),
        (
            lambda: _checks.check_bounds((0, math.inf)),
            ValueError,
            r"be finite .* got \(0.0, inf\)$",
        ),
        (
            lambda: _checks.check_bounds((math.nan, 1)),
            ValueError,
            r"be finite .* got \(nan, 1.0\)$",
        ),
        (
            lambda: _checks.check_bounds((-1e308, 1e308)),
            ValueError,
            r"^bounds must have a finite difference, got \(-1e\+308, 1e\+308\)$",
        ),
        (
            lambda: _checks.check_bounds(None),
            TypeError,
            r"^bounds must be two real numbers \(low, high\), got None$",
        ),
        (
            lambda: _checks.check_bounds((1, 2, 3)),
            ValueError,
            r"two real numbers .* got tuple of length 3$",
        ),
        (
            lambda: _checks.check_bounds(("0", 1)),
            TypeError,
            r"^bounds\[0\] must be a real number, got '0'$",
        ),
        (
            lambda: _checks.check_bounds((0, None)),
            TypeError,
            r"^bounds\[1\] must be a real number, got None$",
        ),
        (lambda: _checks.check_choice("a", 3, ("b",)), TypeError, "^a must be one of 'b', got 3$"),
        (
            lambda: _checks.check_max_contributions(0),
            ValueError,
            "^max_contributions must be at least 1, got 0$",
        ),
        (
            lambda: _checks.check_max_contributions(1.0),
            TypeError,
            "^max_contributions must be an integer, got 1.0$",
        ),
        (lambda: _checks.check_max_contributions(True), TypeError, "must be an integer, got True$"),
        (lambda: _checks.check_max_contributions(np.True_), TypeError, "must be an integer"),
    ],
)
def test_checks_reject_with_the_rule_and_what_came(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_checks_return_clean_values():
    assert _checks.check_bounds(np.array([0, 5])) == (0.0, 5.0)
    assert _checks.check_bounds([-1e308, 0]) == (-1e308, 0.0)
    assert _checks.check_delta(0) == 0.0
    count = _checks.check_max_contributions(np.int64(4))
    assert (count, type(count)) == (4, int)


def test_limits_themselves_are_taken():
    assert _checks.check_scale("scale", 2**53, (3,)) == (2**53, 1)
    assert _checks.check_scale("scale", 2**60, None) == (2**60, 1)
    with pytest.raises(ValueError, match=r"^scale must be at most 2\*\*53 where size is given"):
        _checks.check_scale("scale", Fraction(2**54 + 1, 2), (3,))
    _checks.check_leaves((1.0, 2.0), 2**51)  # as wide as the spacing at 2
    with pytest.raises(ValueError, match=r"^leaves must be at least as wide as the float64"):
        _checks.check_leaves((1.0, 2.0), 2**51 + 1)
    assert _checks.check_tree(26, 2, None) == (26, 2)
    assert _checks.check_tree(1, 2**26, None) == (1, 2**26)
    for height, branching in ((27, 2), (1, 2**26 + 1), (3, 2**9)):
        with pytest.raises(ValueError, match=r"^a tree must have at most 2\^26 = 67108864 leaves"):
            _checks.check_tree(height, branching, None)


@pytest.mark.parametrize(
    ("given", "points", "made"),
    [
        ((4, 16), 16**4 + 1, (4, 16)),  # has no leaf for each
        ((4, 16), 16**4, (4, 16)),
        ((4, 16), 5_000, (4, 9)),  # 8^4 < 5,000 <= 9^4
        ((4, 16), 16**3, (3, 16)),
        ((4, 16), 16**3 + 1, (4, 9)),
        ((20, 2), 1, (1, 2)),
    ],
)
def test_trees_have_no_more_levels_and_children_than_points_take(given, points, made):
    assert _checks.check_tree(*given, points) == made


def test_rows_are_public_where_a_length_says_them():
    class Elsewhere:
        def __len__(self) -> int:
            raise AssertionError("a pass over all records")

    assert [_checks.public_rows([1.0] * n, None, True) for n in (0, 1, 2)] == [1, 1, 2]
    assert _checks.public_rows([1.0], None, False) is None
    assert _checks.public_rows([1.0], [2], True) is None
    assert _checks.public_rows(iter([1.0]), None, True) is None
    for module in ("dask", "dask.array.core", "duckdb", "ibis.expr", "pyspark.sql"):
        Elsewhere.__module__ = module
        assert _checks.public_rows(Elsewhere(), None, True) is None


@pytest.mark.parametrize(
    ("workers", "cpus", "number"), [(3, 8, 3), (-1, 8, 8), (-2, 8, 7), (-9, 8, 1), (-1, None, 1)]
)
def test_workers_count_back_from_the_cpus(workers, cpus, number, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: cpus)
    assert _checks.check_workers(workers) == number


def test_priors_are_taken_to_the_edge_of_what_is_rounded():
    x, near = np.array([0.0, 1.0, 2.0]), _checks.PRIOR_MASS

    def values(*found: float) -> list[float]:
        (part,) = _checks.check_prior((lambda _: np.array(found), None), (0.0, 2.0))[1]
        return part.values(x, (0.0, 2.0)).tolist()

    assert values(0.0, 0.5, 1.0) == [0.0, 0.5, 1.0]
    assert values(-near, near, 1.0 + near) == [0.0, near, 1.0]
    assert values(near, 0.0, 1.0) == [near, near, 1.0]  # falls by no more than that
    for found in ((0.0, 0.5, 1.0 + 3.0 * near), (-2.0 * near, 0.5, 1.0), (0.5, 0.4, 1.0)):
        with pytest.raises(
            ValueError, match=r"^prior must have a cdf that ascends within \[0, 1\]$"
        ):
            values(*found)
    half = _checks.PriorPart(0.5, "uniform")
    assert half.values(np.array([-1.7e308, 1.7e308]), (-1.7e308, 1.7e308)).tolist() == [
        -0.85e308,
        0.85e308,
    ]


def test_a_pair_of_functions_is_known_by_the_first():
    def cdf(x: np.ndarray) -> np.ndarray:
        return x

    (part,) = _checks.check_prior((cdf, None), (0.0, 1.0))[1]
    assert part.source is part.cdf is cdf and part.ppf is None


def test_bounds_without_end_are_the_farthest_quantiles_of_a_mixture():
    def uniform(low: float, high: float) -> tuple[Any, Any]:
        return (
            lambda x: np.clip((x - low) / (high - low), 0.0, 1.0),
            lambda level: low + level * (high - low),
        )

    prior = [(1.0, uniform(-3.0, 4.0)), (2.0, uniform(-1.0, 9.0))]
    for given, expected in (
        ((-math.inf, math.inf), (-3.0 + 7e-9, 9.0 - 1e-8)),
        ((-math.inf, 2.0), (-3.0 + 7e-9, 2.0)),
        ((0.0, math.inf), (0.0, 9.0 - 1e-8)),
    ):
        bounds, parts = _checks.check_prior(prior, given)
        assert bounds == pytest.approx(expected, rel=1e-14)
        assert [part.weight for part in parts] == pytest.approx([1 / 3, 2 / 3])


def test_a_frame_is_a_column_if_it_has_one():
    """Before a record is read."""
    _checks.check_column(pd.DataFrame(dict(a=[1.0])))
    with pytest.raises(ValueError, match=r"^x must be one column, got a frame of 2: choose one"):
        _checks.check_column(pd.DataFrame(dict(a=[1.0], b=[2.0])))


def test_names_are_those_of_one_column_each():
    _checks.check_named("by", ["b", "a"], ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"^by must have names of one column each, got 'a' for 2$"):
        _checks.check_named("by", ["b", "a"], ["a", "b", "a"])
    for columns, listed in ((20, "18, 19"), (21, r"18, 19, \.\.\.")):
        with pytest.raises(ValueError, match=f"^by must be some of .* 'x' where .* {listed}$"):
            _checks.check_named("by", ["x"], range(columns))
