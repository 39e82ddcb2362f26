"""Errors of outputs: worked by hand, and against counting one by one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast import metrics

FUNCTIONS = (metrics.rank_error, metrics.missed_points, metrics.distance_error)
values = st.one_of(st.integers(0, 5).map(float), st.floats(-10.0, 10.0))


def test_rank_error_known_values():
    x = [5.0, 2.0, 1.0, 2.0, 2.0]
    # Target 2.5; #{x < o} and #{x <= o}: (0, 0), (0, 1), (1, 4), (4, 4), (5, 5).
    outputs = [0.0, 1.0, 2.0, 3.0, 9.0]
    np.testing.assert_array_equal(metrics.rank_error(x, 0.5, outputs), [2.5, 1.5, 0.0, 1.5, 2.5])
    assert metrics.rank_error(x, 0.0, 1.0) == 0.0
    assert metrics.rank_error(x, 1.0, 5.0) == 0.0
    assert metrics.rank_error(x, 1.0, 2.0) == 1.0
    np.testing.assert_array_equal(metrics.rank_error([], [0.2, 0.9], [1.0, 2.0]), [0.0, 0.0])


def test_missed_points_known_values():
    x = [4.0, 1.0, 2.0, 3.0]
    # the record of rank floor(3/2) = 1 from 0 is 2, with two records above it
    outputs = [-1.0, 1.0, 1.5, 2.0, 2.9, 3.0, 8.0]
    np.testing.assert_array_equal(metrics.missed_points(x, 0.5, outputs), [2, 1, 1, 0, 0, 1, 2])
    # a run of ties counts as a whole
    np.testing.assert_array_equal(metrics.missed_points([1, 2, 2, 2], 0.5, [1.9, 2.0]), [3, 0])
    assert metrics.missed_points([7.0], 1.0, 6.0) == 1


def test_distance_error_known_values():
    x = [4.0, 1.0, 2.0, 3.0]
    np.testing.assert_array_equal(
        metrics.distance_error(x, [0.0, 0.5, 1.0], [1, 2.25, 3.5]), [0, 0.25, 0.5]
    )
    assert metrics.distance_error(x, 0.99, 0.0) == 3.0


@given(
    st.lists(values, min_size=1, max_size=12),
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]), values), max_size=4),
)
def test_metrics_equal_counting(x, pairs):
    q, o = np.array(pairs).reshape(-1, 2).T
    ranks, missed, distances = [], [], []
    for level, output in pairs:
        target = Fraction(level) * len(x)
        below, through = sum(v < output for v in x), sum(v <= output for v in x)
        inside = below <= target <= through
        ranks.append(0.0 if inside else float(min(abs(below - target), abs(through - target))))
        true = sorted(x)[math.floor((len(x) - 1) * Fraction(level))]
        low, high = sorted([true, output])
        missed.append(sum(low < v <= high for v in x))
        distances.append(abs(true - output))
    np.testing.assert_allclose(metrics.rank_error(x, q, o), ranks, atol=1e-12)
    np.testing.assert_array_equal(metrics.missed_points(x, q, o), missed)
    np.testing.assert_array_equal(metrics.distance_error(x, q, o), distances)


@given(
    st.lists(st.floats(-10.0, 10.0), min_size=1, max_size=30, unique=True), st.floats(0, 1), values
)
def test_metrics_differ_by_at_most_one_without_ties(x, q, o):
    assert abs(metrics.rank_error(x, q, o) - metrics.missed_points(x, q, o)) <= 1.0


@pytest.mark.parametrize("function", FUNCTIONS)
def test_metrics_take_any_shape(function):
    x, q = [3.0, 1.0, 2.0], [0.2, 0.5]
    many = np.array([[1.0, 2.0], [0.0, 3.0], [2.0, 2.0]])
    errors = function(x, q, many)
    assert errors.shape == (3, 2)
    for row, outputs in zip(errors, many, strict=True):
        np.testing.assert_array_equal(row, function(x, q, outputs))
    assert isinstance(function(x, 0.5, 2.0), (int, float))
    assert x == [3.0, 1.0, 2.0]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    "x, q, o, message",
    [
        ([[1.0]], 0.5, 1.0, "x must be one-dimensional"),
        ([1.0, math.nan], 0.5, 1.0, "x must not contain NaN"),
        ([1.0], 1.5, 1.0, r"q must lie in \[0, 1\]"),
        ([1.0], math.nan, 1.0, r"q must lie in \[0, 1\]"),
        ([1.0], 0.5, math.nan, "o must not be NaN"),
    ],
)
def test_metrics_reject_bad_input(function, x, q, o, message):
    with pytest.raises(ValueError, match=message):
        function(x, q, o)


@pytest.mark.parametrize("function", FUNCTIONS[1:])
def test_metrics_of_true_quantiles_reject_no_records(function):
    with pytest.raises(ValueError, match="x must hold at least one record"):
        function([], 0.5, 1.0)


@pytest.mark.parametrize("name", ["q", "o"])
@pytest.mark.parametrize("given", ["0.5", 1j, 10**400, [None]])
@pytest.mark.parametrize(
    "metric", [metrics.rank_error, metrics.missed_points, metrics.distance_error]
)
def test_what_is_no_number_is_refused(metric, given, name):
    arguments = dict(x=[1.0, 2.0], q=0.5, o=1.0) | {name: given}
    with pytest.raises(TypeError, match=f"^{name} must be real numbers, got dtype"):
        metric(**arguments)


def test_distances_of_infinite_and_huge_numbers():
    x = [-math.inf, 1e308, math.inf]
    assert metrics.distance_error(x, [0.0, 0.5, 1.0], [-math.inf, -1.7e308, 0.0]).tolist() == [
        0.0,
        math.inf,
        math.inf,
    ]
