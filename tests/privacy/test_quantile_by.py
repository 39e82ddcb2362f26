"""Groups: rates and guarantees by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from conftest import range_rho

from dpq_fast import privacy
from dpq_fast.privacy import guarantee


def test_quantile_by_rate_known_values():
    q = np.array([0.25, 0.5, 0.75])  # add-remove sensitivity 2 (1 - 1/4) = 3/2

    def rate(neighbors, **form):
        return privacy.quantile_by.calibrate(q, epsilon=3.0, neighbors=neighbors, **form).rate

    assert rate("add-remove") == 3.0 / (2 * 1.5)
    assert rate("add-remove", public_by=True) == 3.0 / (2 * 1.5)
    assert rate("swap") == 1.5 / (2 * 1.5)
    assert rate("swap", public_by=True) == 3.0 / (2 * 2)
    assert rate("swap", max_contributions=5) == pytest.approx(1.5 / (2 * 1.5 * 5), rel=1e-15)
    assert rate("swap", max_contributions=5, public_by=True) == 3.0 / (2 * 2 * 5)


def test_quantile_by_guarantee_known_values():
    for neighbors, public_by in product(("swap", "add-remove"), (False, True)):
        promise = guarantee("quantile_by", epsilon=2.0, neighbors=neighbors, public_by=public_by)
        assert (promise.epsilon, promise.delta, promise.bounded_range) == (2.0, 0.0, 2.0)
        assert (promise.rho, promise.neighbors) == (pytest.approx(range_rho(2.0)), neighbors)

    def rho(q, **options):
        return guarantee("quantile_by", q=q, epsilon=2.0, **options).rho

    # two groups of epsilon / 2 each, where that is the worst
    assert rho([0.25, 0.5, 0.75]) == rho([0.0, 0.5]) == pytest.approx(2.0 * range_rho(1.0))
    # sensitivity 1: a replacement within a group is the worst
    assert rho(0.5) == pytest.approx(range_rho(2.0))
    # sensitivity 1.25
    assert rho(0.375) == pytest.approx(range_rho(2.0 / 1.25))
    assert rho([0.25, 0.5], public_by=True) == pytest.approx(range_rho(2.0))
    with pytest.raises(TypeError, match="public_by must be True or False"):
        guarantee("quantile_by", epsilon=2.0, public_by=None)
    with pytest.raises(ValueError, match="epsilon must be positive"):
        guarantee("quantile_by", epsilon=0.0)
