"""The Gaussian mechanism: its delta against mpmath, and the least sigma."""

from __future__ import annotations

import pytest

from dpq_fast import privacy


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: privacy.gaussian_sigma(1.0, 1.0, 0.0, 0.5), "^exactly one of epsilon and rho"),
        (lambda: privacy.gaussian_sigma(1.0, None, 1e-6), "^exactly one of epsilon and rho"),
    ],
)
def test_gaussian_sigma_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: privacy.gaussian_sigma(10**400, 1.0, 0.1), ValueError, "squared must be positive"),
    ],
)
def test_rules_are_stated_before_anything_overflows(call, error, message):
    with pytest.raises(error, match=f"^{message}"):
        call()
