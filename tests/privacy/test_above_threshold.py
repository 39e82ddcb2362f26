"""AboveThreshold: rates and losses by hand, and their ends."""

from __future__ import annotations

import functools
import math

import pytest

from dpq_fast import privacy


def test_above_threshold_loss_known_values():
    calibrate = functools.partial(privacy.above_threshold.calibrate, epsilon1=1.0, epsilon2=3.0)
    assert (calibrate().epsilon, calibrate().bounded_range) == (7.0, None)
    monotonic = calibrate(monotonic=True)
    assert (monotonic.epsilon, monotonic.bounded_range) == (4.0, 7.0)
    assert calibrate(sensitivity=0.5).rates == (2.0, 6.0)


@pytest.mark.parametrize("epsilons", [(1e-300, 1e10), (1e10, 1e-300)])
def test_above_threshold_rates_beyond_float64_are_refused(epsilons):
    for sensitivity in (1e300, 1e-300):
        with pytest.raises(
            ValueError, match=r"^epsilon1 and epsilon2 over sensitivity must be pos"
        ):
            privacy.above_threshold.calibrate(
                epsilon1=epsilons[0], epsilon2=epsilons[1], sensitivity=sensitivity
            )


def test_one_sided_loss_beyond_float64_is_infinite():
    assert privacy.one_sided_loss([0.0], [1e300], 1e300, 1.0) == math.inf


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: privacy.one_sided_loss("1", [1.0], 1.0, 1.0), TypeError, "f_x must be real"),
    ],
)
def test_one_sided_loss_rejects(call, error, message):
    with pytest.raises(error, match=f"^{message}"):
        call()
