"""Accuracy on real columns, full of ties, through the public API with its default dither."""

import csv

import numpy as np
import pytest

import dpq_fast as dpq

# file, column, bounds, resolution, and the mean rank error that must not be exceeded for
# m = 1, 5, 9 levels: 1,000 records, swap, epsilon = 1
COLUMNS = [
    ("adult", "hours_per_week", (0, 100), 1, (0.2, 1.3, 2.7)),
    ("adult", "age", (0, 100), 1, (0.3, 1.2, 1.6)),
    ("goodreads_books", "average_rating", (0, 10), 0.01, (0.5, 2.0, 3.0)),
    ("goodreads_books", "num_pages", (0, 10_000), 1, (2.2, 5.2, 6.5)),
]
SAMPLES, DRAWS = 100, 4


def rank_error(x, outputs, targets):
    """0 where the target lies between #{x < o} and #{x <= o}, else how far it is from that."""
    ordered = np.sort(x)
    below = np.searchsorted(ordered, outputs, side="left")
    up_to = np.searchsorted(ordered, outputs, side="right")
    return np.maximum(0.0, np.maximum(below - targets, targets - up_to))


@pytest.mark.slow
@pytest.mark.parametrize("name, column, bounds, resolution, bars", COLUMNS)
def test_joint_exp_is_accurate_on_real_columns(
    real_columns, name, column, bounds, resolution, bars
):
    with open(real_columns / f"{name}.csv", newline="") as lines:
        values = np.array([float(row[column]) for row in csv.DictReader(lines)])
    rng = np.random.default_rng(20_261_120)
    for m, bar in zip((1, 5, 9), bars, strict=True):
        q = np.arange(1, m + 1) / (m + 1)
        errors = []
        for _ in range(SAMPLES):
            x = rng.choice(values, 1000, replace=False)
            for _ in range(DRAWS):
                outputs = dpq.joint_exp(
                    x, q, epsilon=1.0, bounds=bounds, resolution=resolution, rng=rng
                )
                errors.append(rank_error(x, outputs, q * 1000).mean())
        assert np.mean(errors) <= bar, m
