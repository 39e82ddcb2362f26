"""Parts of a sample: ranks that count from the lower cut."""

import math

import numpy as np
import pytest
from conftest import lattice_of

from dpq_fast.laws.splits import Boundary, RankRange, ends
from dpq_fast.orders.sorted import SortedOrder


def test_part_counts_records_from_its_lower_cut():
    order = SortedOrder(np.array([1.0, 1.0, 3.0, 4.0, 4.0, 6.0, 9.0]), lattice_of(10), (0.0, 9.0))
    part = RankRange(order, Boundary(3, 2), Boundary(7, 6))  # 3, 4, 4, 6, and outputs from 3 to 7
    assert (part.n, part.skipped, part.extent) == (4, 2, 5.0)
    assert [part.rank_of(output) for output in range(3, 8)] == [0, 1, 3, 3, 4]
    (below, *_), points = part.cell(4)
    assert (below, points.tolist()) == (1, [4, 4])
    spans = part.log_spans(np.array([0, 1, 1, 1, 3, 2]))
    assert spans.tolist() == pytest.approx([0.0, math.log(3.0 - 1.0), -math.inf])


def test_ends_are_around_all_records():
    order = SortedOrder(np.array([2.0, 5.0]), lattice_of(10), (0.0, 9.0))
    assert ends(order) == (Boundary(0, 0), Boundary(9, 2))
    assert ends(SortedOrder(np.array([2.0, 5.0]), None, (0.0, 9.5))) == (
        Boundary(0.0, 0),
        Boundary(9.5, 2),
    )
