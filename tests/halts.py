"""Laws of where a stream of single queries halts, which many data sets share."""

from __future__ import annotations

from functools import cache

import numpy as np

from dpq_fast.laws.halting import HaltingLaw
from dpq_fast.noise.threshold import ThresholdNoise


def log_halts(law: HaltingLaw) -> np.ndarray:
    """Log-probabilities to halt at each query, and at none of them."""
    assert (law._lengths == 1).all()
    return _log_halts(tuple(law._gaps.tolist()), law._rate1, law._rate2, law._noise)


@cache
def _log_halts(
    gaps: tuple[float, ...], rate1: float, rate2: float, noise: ThresholdNoise
) -> np.ndarray:
    law = HaltingLaw(np.array(gaps), np.ones(len(gaps), np.int64), rate1, rate2, noise)
    return np.append(law.log_probs(np.arange(len(gaps))), law.log_never())
