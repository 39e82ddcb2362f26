"""Trees that are read all at once, against each by itself."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.leaves import Leaves
from dpq_fast.planning.trees import Trees


@pytest.mark.parametrize("rows", [None, 300])
@pytest.mark.parametrize(
    "bounds, resolution, prior",
    [
        ((-10.0, 10.0), None, None),
        ((0.0, 120.0), 1.0, None),  # fewer points than leaves
        ((1.0, 1e9), None, "log"),
        ((0.0, 5_000.0), 1.0, scipy.stats.lognorm(1.0, scale=100.0)),
    ],
)
@pytest.mark.parametrize("shape", [(1, 5), (3, 6), (7, 2)])
@pytest.mark.parametrize("epsilon", [0.03, 2.0])
def test_trees_are_read_as_each_by_itself(epsilon, shape, bounds, resolution, prior, rows):
    height, branching = shape
    bounds, lattice = Lattice.between(bounds, resolution, False, prior)
    calibration = privacy.agg_tree.calibrate(
        epsilon=epsilon, height=height, branching=branching, points=lattice.points
    )
    height, branching = calibration.height, calibration.branching
    leaves = Leaves.of(bounds, lattice, branching**height)
    trees = Trees(calibration, leaves, rows)
    rng, q = np.random.default_rng(1), np.array([0.0, 0.01, 0.3, 0.5, 0.97, 1.0])
    counts = np.zeros((4, branching**height), dtype=np.int64)
    for own in counts[1:]:  # none in the first one
        own[: leaves.size] = rng.multinomial(300, rng.dirichlet(np.full(leaves.size, 0.1)))
    nodes = trees.noised(counts, 3, rng)
    found = trees.read(nodes, q)
    for i in range(12):
        own = [level[i] for level in nodes]
        tree = dpq.AggTree(own, bounds, calibration.noise, most=rows, lattice=lattice)
        np.testing.assert_array_equal(found[i], tree.quantile(q))


def test_noise_is_that_of_a_release():
    calibration = privacy.agg_tree.calibrate(epsilon=0.5, height=3, branching=4)
    bounds, lattice = Lattice.between((0.0, 1.0), None, False, None)
    leaves = Leaves.of(bounds, lattice, 64)
    counts = np.arange(64)[None]
    (lowest, *_), exact = trees_noise(calibration, leaves, counts), counts.reshape(4, -1).sum(1)
    assert abs((lowest - exact).mean()) < 5.0 * np.sqrt(calibration.noise.variance / lowest.size)
    assert lowest.var(axis=0).mean() == pytest.approx(calibration.noise.variance, rel=0.1)
    assert np.unique(lowest[:, 0]).size > 10  # every tree has noise of its own


def trees_noise(calibration, leaves, counts):
    return Trees(calibration, leaves, None).noised(counts, 2_000, np.random.default_rng(3))


def test_trees_are_read_in_parts(monkeypatch):
    calibration = privacy.agg_tree.calibrate(epsilon=0.5, height=2, branching=4)
    bounds, lattice = Lattice.between((0.0, 1.0), None, False, None)
    trees = Trees(calibration, Leaves.of(bounds, lattice, 16), None)
    counts = np.random.default_rng(0).integers(0, 100, (7, 16)) * 1_000_000
    monkeypatch.setattr("dpq_fast.planning.trees.MOST_COUNTS", 16 * 2 * 5 * 2)
    found = trees.quantiles(counts, 5, np.array([0.2, 0.5]), np.random.default_rng(1))
    assert found.shape == (7, 5, 2)
    # so many records that noise does not matter
    medians = np.array([np.repeat(np.arange(16), own // 1_000_000) for own in counts], dtype=object)
    exact = [(np.quantile(own, 0.5, method="inverted_cdf") + 0.5) / 16.0 for own in medians]
    assert np.abs(found[:, :, 1] - np.array(exact)[:, None]).max() < 1.0 / 16.0
