"""Accuracy on real columns, full of ties, through the public API with its defaults."""

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


def read(folder, name, column):
    with open(folder / f"{name}.csv", newline="") as lines:
        return np.array([float(row[column]) for row in csv.DictReader(lines)])


@pytest.mark.slow
@pytest.mark.parametrize("name, column, bounds, resolution, bars", COLUMNS)
def test_joint_exp_is_accurate_on_real_columns(
    real_columns, name, column, bounds, resolution, bars
):
    values = read(real_columns, name, column)
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, column, bounds, resolution, q, epsilon, bar",
    [
        ("adult", "age", (0, 100), 1, 0.5, 1.0, 0.10),
        ("goodreads_books", "average_rating", (0, 10), 0.01, 0.5, 1.0, 0.20),
        # its target is close to the end of a run of almost half of the records
        ("adult", "hours_per_week", (0, 100), 1, 0.68, 0.1, 8.0),
    ],
)
def test_ind_exp_is_accurate_on_real_columns(
    real_columns, name, column, bounds, resolution, q, epsilon, bar
):
    values = read(real_columns, name, column)
    rng = np.random.default_rng(20_261_122)
    errors = []
    for _ in range(10 * SAMPLES):
        x = rng.choice(values, 1000, replace=False)
        output = dpq.ind_exp(x, q, epsilon=epsilon, bounds=bounds, resolution=resolution, rng=rng)
        errors.append(rank_error(x, output, q * 1000))
    assert np.mean(errors) <= bar
