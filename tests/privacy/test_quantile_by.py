"""Groups: rates and guarantees by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

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
        assert (promise.rho, promise.neighbors) == (0.5, neighbors)
    # two groups of epsilon / 2 each: 2 (epsilon / 2)^2 / 8, where that is the worst
    assert guarantee("quantile_by", q=[0.25, 0.5, 0.75], epsilon=2.0).rho == 0.25
    assert guarantee("quantile_by", q=[0.0, 0.5], epsilon=2.0).rho == 0.25
    # sensitivity 1: a replacement within a group is the worst
    assert guarantee("quantile_by", q=0.5, epsilon=2.0).rho == 0.5
    # sensitivity 1.25: 1 / 1.5625
    assert guarantee("quantile_by", q=0.375, epsilon=2.0).rho == pytest.approx(0.5 / 1.5625)
    assert guarantee("quantile_by", q=[0.25, 0.5], epsilon=2.0, public_by=True).rho == 0.5
    with pytest.raises(TypeError, match="public_by must be True or False"):
        guarantee("quantile_by", epsilon=2.0, public_by=None)
    with pytest.raises(ValueError, match="epsilon must be positive"):
        guarantee("quantile_by", epsilon=0.0)
