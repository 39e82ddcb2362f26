"""What plans predict, simulated: errors written once more, and how near both have to be."""

from __future__ import annotations

import math

import numpy as np
import scipy.stats

NORMAL = scipy.stats.norm(45.0, 15.0)


AGES = np.random.default_rng(3).integers(17, 91, size=400).astype(np.float64)


# Standard errors that a prediction and a simulation may be apart.
APART = 5.0


def rank_errors(x, q, outputs):
    """Written once more: 0 inside a run of ties that holds the target, else the distance to it."""
    below = (x[:, None] < outputs).sum(axis=0)
    through = (x[:, None] <= outputs).sum(axis=0)
    target = np.asarray(q) * x.size
    return np.maximum(0.0, np.maximum(below - target, target - through))


def distances(x, q, outputs):
    """From the nearest number whose rank error is 0."""
    ordered, found = np.sort(x), []
    for level, output in zip(np.atleast_1d(q), np.atleast_1d(outputs), strict=True):
        target = level * x.size
        first = ordered[max(math.ceil(target) - 1, 0)]
        last = ordered[min(math.floor(target), x.size - 1)]
        found.append(max(first - output, output - last, 0.0))
    return np.array(found)


def assert_predicted(predicted, uncertainty, errors, level=0.95, slack=0.0):
    """Mean and quantile of simulated errors are what is predicted, up to their standard errors."""
    expected, quantile = predicted
    parts = np.array_split(errors, 10)
    off = np.std([np.quantile(part, level) for part in parts], ddof=1) / math.sqrt(10.0)
    simulated = np.quantile(errors, level, method="inverted_cdf")
    margin = APART * math.hypot(off, uncertainty * quantile)
    assert abs(quantile - simulated) <= margin + slack
    of_mean = np.std([part.mean() for part in parts], ddof=1) / math.sqrt(10.0)
    margin = APART * math.hypot(of_mean, uncertainty * expected)
    assert abs(expected - errors.mean()) <= margin <= 0.5 * errors.mean()
