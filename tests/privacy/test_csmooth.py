"""CSmooth: the ends of its noise."""

from __future__ import annotations

import math

import pytest

from dpq_fast import privacy


@pytest.mark.parametrize("t", [1e-100, 10.0])
def test_shape_of_takes_its_ends(t):
    assert math.isfinite(privacy.csmooth.shape_of(t, 1.0)[1])
