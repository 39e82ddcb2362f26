"""What a type checker knows of answers, here checked when it runs, and by mypy in the gate."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from dpq_fast._arguments import names_of
from dpq_fast.mechanisms.quantile import QuantileOptions

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value: Any, kind: Any) -> None:
        kind = {NDArray[np.float64]: np.ndarray, Any: object}.get(kind, kind)
        assert isinstance(value, kind)


X = np.arange(100.0)


def test_answers_have_the_types_that_checkers_are_told() -> None:
    assert_type(dpq.median(X, epsilon=1.0, bounds=(0, 100)), float)
    assert_type(dpq.median(X, epsilon=1.0, bounds=(0, 100), confidence=0.9), dpq.Estimate)
    assert_type(dpq.median(X, epsilon=1.0), float)
    assert_type(dpq.percentile(X, 90, epsilon=1.0, bounds=(0, 100)), float)
    assert_type(dpq.percentile(X, [10, 90], epsilon=1.0, bounds=(0, 100)), NDArray[np.float64])
    assert_type(dpq.percentile(X, 90, epsilon=1.0, confidence=0.9), dpq.Estimate)
    assert_type(dpq.quantile(X, 0.9, epsilon=1.0, bounds=(0.0, 100.0), workers=2), float)
    assert_type(dpq.quantile(X, (0.5, 0.9), epsilon=1.0, noise="laplace"), NDArray[np.float64])
    assert_type(dpq.quantile(X, [0.1], epsilon=1.0, bounds=(0, 100), confidence=0.9), dpq.Estimate)
    days = np.datetime64("2020-01-01") + np.arange(50)
    ends = dt.date(2020, 1, 1), dt.date(2021, 1, 1)
    assert_type(dpq.median(days, epsilon=1.0, bounds=ends), Any)


def test_checkers_know_all_keywords() -> None:
    told = {"x", "q", "bounds", "confidence", *QuantileOptions.__annotations__}
    assert told == set(names_of(dpq.quantile))
