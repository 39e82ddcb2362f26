"""Orders of atoms: records that stand for several, and move together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast.data.lattice import Lattice
from dpq_fast.orders import atoms
from dpq_fast.orders.atoms import AtomOrder, DitheredAtoms, in_order
from dpq_fast.orders.counted import CountedOrder

BOUNDS = (0.0, 9.0)
_, LATTICE = Lattice.between(BOUNDS, 1.0, None, None)
_, PRIOR = Lattice.between(BOUNDS, 1.0, None, [(0.9, "uniform"), (0.1, "uniform")])
records = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40)), max_size=25)


def order_of(rows, lattice=LATTICE):
    points, weights = (np.array([row[j] for row in rows], dtype=np.int64) for j in (0, 1))
    return AtomOrder(*in_order(points, weights), lattice, BOUNDS)


def dithered(rows, seed=1, lattice=LATTICE):
    return DitheredAtoms(order_of(rows, lattice), np.random.default_rng(seed))


def laid_out(order):
    """All fine points with their weights, and the order over them that knows no atoms."""
    coarse = order._coarse
    fine, ranks = order._laid_out(0, coarse._values.size)
    return fine, np.diff(ranks), CountedOrder(fine, np.diff(ranks), order.lattice, BOUNDS)


@given(records)
def test_atoms_are_put_in_order_by_point_and_weight(rows):
    points, weights = (np.array([row[j] for row in rows], dtype=np.int64) for j in (0, 1))
    found = list(zip(*(each.tolist() for each in in_order(points, weights)), strict=True))
    assert found == sorted(rows)
    # points too large to be sorted in one number with their weights
    large = in_order(points + 2**60, weights)
    assert list(zip((large[0] - 2**60).tolist(), large[1].tolist(), strict=True)) == sorted(rows)


@given(
    records, st.lists(st.tuples(st.integers(0, 500), st.integers(1, 60)), min_size=1, max_size=4)
)
@pytest.mark.parametrize("lattice", [LATTICE, PRIOR], ids=["even", "prior"])
def test_intervals_are_those_of_all_atoms_laid_out(lattice, rows, windows):
    order = dithered(rows, lattice=lattice)
    *_, whole = laid_out(order)
    assert order.n == whole.n == sum(weight for _, weight in rows)
    first, count, end = [], [], 0
    for start, size in sorted(windows):
        start = max(start, end)
        if start <= order.n:
            first.append(start)
            count.append(min(size, order.n + 1 - start))
            end = start + count[-1]
    asked = np.array(first or [0]), np.array(count or [order.n + 1])
    for found, expected in zip(order.intervals(*asked), whole.intervals(*asked), strict=True):
        assert found.tolist() == expected.tolist()


@given(records)
def test_atoms_stay_in_their_cells(rows):
    order = dithered(rows)
    fine, weights, whole = laid_out(order)
    for point in range(10):
        ranks, inside = order.cell(point)
        below = sum(weight for value, weight in rows if value < point)
        own = sum(weight for value, weight in rows if value == point)
        assert ranks[0] == order.rank_of(point) == below and ranks[-1] == below + own
        assert (LATTICE.points_of(inside) == point).all()
        assert inside.tolist() == fine[LATTICE.points_of(fine) == point].tolist()
    probes = np.unique(np.concatenate((fine, fine + 1, [0, LATTICE.fine_points - 1])))
    below = [weights[fine < probe].sum() for probe in probes.tolist()]
    assert order.fine_ranks(probes).tolist() == below
    # one by one they are as in the order that knows no atoms
    if order.n:
        assert order._points([(0, order.n)]).tolist() == whole._points([(0, order.n)]).tolist()


@given(records, st.data())
def test_an_atom_less_moves_no_other(rows, data):
    """Given the shifts: what is left is the same multiset of fine points and weights."""
    if not rows:
        return
    gone = data.draw(st.integers(0, len(rows) - 1))
    rest = rows[:gone] + rows[gone + 1 :]
    before, after = (counted(dithered(each, seed=3)) for each in (rows, rest))
    weight = rows[gone][1]
    lost = {fine: before[fine] - after.get(fine, 0) for fine in before}
    lost = {fine: change for fine, change in lost.items() if change}
    assert after.keys() <= before.keys()
    ((fine, change),) = lost.items()
    assert change == weight and LATTICE.points_of(np.array([fine]))[0] == rows[gone][0]


def counted(order):
    fine, weights, _ = laid_out(order)
    return dict(zip(fine.tolist(), weights.tolist(), strict=True))


def test_offsets_by_place_in_the_cell_would_move_others(monkeypatch):
    """The mutant that the test above is for: one sequence of offsets for all weights."""
    starts = atoms._starts
    monkeypatch.setattr(atoms, "_starts", lambda *columns: starts(columns[0]))
    before = counted(dithered([(1, 2), (1, 3), (1, 5)], seed=3))
    after = counted(dithered([(1, 3), (1, 5)], seed=3))
    assert not after.keys() <= before.keys()


def test_shifts_are_spread_over_all_offsets():
    """About as many of each eighth, for the weights that persons have."""
    weights = np.array([2**20 // k for k in range(1, 200)])
    seeds = np.random.default_rng(0).integers(0, 2**64, size=4_000, dtype=np.uint64)
    for weight in (weights[0], weights[1], weights[6], weights[-1]):
        shifts = [atoms.shifts_of(np.array([weight]), seed, 31)[0] for seed in seeds]
        assert min(shifts) >= 0 and max(shifts) < 2**31
        eighths = np.bincount(np.array(shifts) >> 28, minlength=8)
        assert (abs(eighths - 500) < 5.0 * np.sqrt(500)).all()
