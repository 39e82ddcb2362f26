"""What one record can change in an answer, found by running releases: lower bounds on epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench import peers
from bench.case import LossCase
from bench.columns import EPSILON

N = 100
TRIALS, QUICK_TRIALS = 10_000, 100
CONFIDENCE = 1.0 - 1e-6
BOUNDS = (0.0, 120.0)


def lower_bound(
    release: Callable[..., Any], x: list[float], neighbor: list[float], trials: int = TRIALS
) -> float:
    """On the epsilon of a release, wrong with probability 1e-6."""
    claimed = dpq.privacy.Guarantee(EPSILON, 0.0, None, None, "swap")
    found = dpq.audit.estimate(
        release, x, neighbor, trials=trials, confidence=CONFIDENCE, guarantee=claimed, rng=1
    )
    return found.epsilon


def one_missing() -> tuple[list[float], list[float]]:
    """Ages, and the same with one of them missing."""
    ages = np.random.default_rng(0).integers(17, 91, N).astype(np.float64).tolist()
    return ages, [math.nan, *ages[1:]]


def median(x: NDArray, rng: np.random.Generator) -> Any:
    return dpq.median(x, epsilon=EPSILON, bounds=BOUNDS, rng=rng)


def diffprivlib_median(x: NDArray, rng: np.random.Generator) -> Any:
    seed = int(rng.integers(2**31))
    return peers.diffprivlib().median(x, epsilon=EPSILON, bounds=BOUNDS, random_state=seed)


CASES = (
    LossCase(
        "losses/missing",
        f"a record of {N} becomes missing",
        one_missing,
        {"`dpq_fast.median`": median, "diffprivlib": diffprivlib_median},
        shown=True,
    ),
)
