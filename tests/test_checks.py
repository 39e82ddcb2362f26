"""Checks of arguments: what they return, and what they say."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
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
