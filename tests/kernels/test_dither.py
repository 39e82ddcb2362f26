"""Records laid out in their cells: the kernel against its reference, and what neighbors share."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from conftest import SMALLEST_P
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpq_fast._kernels import dither as kernel
from dpq_fast.reference import dither as reference

# Records at each point.
SIZES = st.lists(
    st.integers(1, 9) | st.sampled_from([30, 64, 65, 127, 700]), min_size=1, max_size=9
)


def both(bits, seed):
    return [each.Offsets(bits, np.random.default_rng(seed)) for each in (kernel, reference)]


def laid_out(offsets, points, low=0, high=0):
    """All of some points in order, with so many records at the ends that are not among them."""
    fine = np.full(points.size, -1)
    windows = np.array([[0], [low], [low + points.size], [0], [low + points.size + high]])
    offsets.points(points, *windows, fine)
    return fine


@given(st.integers(1, 32), SIZES, st.integers(0, 2**32))
def test_the_kernel_lays_out_what_the_reference_does(bits, sizes, seed):
    """All records, windows of them, and single ones."""
    made, plain = both(bits, seed)
    rng = np.random.default_rng(seed)
    ends, points = np.cumsum(sizes), np.repeat(3 * np.arange(len(sizes)), sizes)
    fine = laid_out(plain, points)
    assert laid_out(made, points).tolist() == fine.tolist()
    edges = np.unique(rng.integers(0, points.size + 1, 6))
    edges = edges[: edges.size // 2 * 2] if edges.size > 1 else np.array([0, points.size])
    start, stop = edges[0::2].copy(), edges[1::2].copy()
    run, last = (np.searchsorted(ends, place, side="right") for place in (start, stop - 1))
    inside = [np.arange(a, b) for a, b in zip(start.tolist(), stop.tolist(), strict=True)]
    inside = np.concatenate(inside)
    first = np.cumsum(stop - start) - (stop - start)
    found = np.empty(inside.size, dtype=np.int64)
    low = np.append(0, ends)[run]
    made.points(points[inside], first, start, stop, low, ends[last], found)
    assert found.tolist() == fine[inside].tolist()
    count = np.array(sizes)
    offset = rng.integers(-1, 2**bits + 2, count.size)
    assert made.below(count, offset).tolist() == plain.below(count, offset).tolist()
    place = np.sort(rng.integers(0, points.size, int(rng.integers(0, 150))))
    run = np.searchsorted(ends, place, side="right")
    # all runs, those alone that hold some, and one again for each
    for of in (np.arange(ends.size), np.unique(run), run):
        asked = place, points[ends[of] - 1], ends[of] - count[of], ends[of]
        assert made.at(*asked).tolist() == plain.at(*asked).tolist() == fine[place].tolist()


@pytest.mark.parametrize("bits", [1, 12, 32])
def test_records_of_huge_counts_are_found_again(bits):
    """Which of these is one, more than int32_t holds among them, next to others."""
    made, _ = both(bits, 7)
    rng, size = np.random.default_rng(bits), np.array([2**40, 5, 2**31, 2**31 - 1, 3, 2**20])
    ends = np.cumsum(size)
    for run, count in enumerate(size.tolist()):
        inside = np.unique(rng.integers(0, count, 70))
        place = ends[run] - count + inside
        offset = made.at(place, np.arange(ends.size), ends - size, ends) - run * 2**bits
        counts = np.full(inside.size, count)
        assert (made.below(counts, offset) <= inside).all()
        assert (inside < made.below(counts, offset + 1)).all()


def test_runs_of_records_are_checked():
    made = kernel.Offsets(4, np.random.default_rng(1))
    runs = [np.array(each) for each in ([3, 5, 9], [0, 2, 6], [2, 4, 7])]
    for place in ([-1, 0], [0, 4], [1, 5, 6], [7], [6, 3], [2, 1]):
        with pytest.raises(ValueError, match="records must be of runs, in order"):
            made.at(np.array(place), *runs)
    with pytest.raises(ValueError, match="each point needs what is below and up to it"):
        made.at(np.array([0]), *runs[:2], runs[2][:2])


@pytest.mark.parametrize("bits", [1, 2, 5, 24, 32])
def test_a_record_more_is_an_offset_more(bits):
    """So neighbors stay neighbors; more records than offsets, too."""
    made = kernel.Offsets(bits, np.random.default_rng(bits))
    before = Counter()
    for count in range(1, 100):
        now = Counter(laid_out(made, np.full(count, 5)).tolist())
        assert (now - before).total() == 1 and not before - now
        before = now


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 1_000])
def test_any_part_has_its_share_of_the_records(count):
    """Of each 2^-d of the cell, one more than the share rounded down at the most."""
    made = kernel.Offsets(24, np.random.default_rng(count))
    for depth in range(12):
        edges = np.arange(2**depth + 1) << (24 - depth)
        inside = np.diff(made.below(np.full(edges.size, count), edges))
        share = Fraction(count, 2**depth)
        assert inside.min() >= share.__floor__() and inside.max() <= share.__ceil__()


def test_huge_counts_are_shared_evenly():
    made = kernel.Offsets(24, np.random.default_rng(1))
    count = np.full(500, 2**40 + 2**23)
    offset = np.random.default_rng(2).integers(0, 2**24, 500)
    each = made.below(count, offset + 1) - made.below(count, offset)
    assert set((each - 2**16).tolist()) == {0, 1}
    assert made.below(count[:1], np.array([2**24])).tolist() == [2**40 + 2**23]


def test_each_offset_is_uniform():
    """One word is all that is drawn, and of it the lowest bits."""
    rng = np.random.default_rng(3)
    alone = [laid_out(kernel.Offsets(4, rng), np.zeros(1, dtype=np.int64)) for _ in range(20_000)]
    assert stats.chisquare(np.bincount(np.concatenate(alone), minlength=16)).pvalue > SMALLEST_P
    again = np.random.default_rng(3)
    again.bit_generator.random_raw(20_000)
    assert rng.bit_generator.state == again.bit_generator.state


def test_refusals():
    offsets = kernel.Offsets(8, np.random.default_rng(0))
    some = np.array([0, 3])
    for bits in (0, 33, -1):
        with pytest.raises(ValueError, match="cells have 1 to 32 bits"):
            kernel.Offsets(bits, np.random.default_rng(0))
    with pytest.raises(ValueError, match="each count needs an offset"):
        offsets.below(some, some[:1])
    one = [np.array([value]) for value in (0, 2, 4, 1, 5)]
    points, fine = np.arange(2), np.empty(2, dtype=np.int64)
    for place, value in ((0, -1), (0, 1), (1, 0), (1, 4), (2, 5), (2, 6), (3, 3), (4, 3)):
        wrong = [np.array([value]) if i == place else each for i, each in enumerate(one)]
        with pytest.raises(ValueError, match="windows must be inside of their blocks"):
            offsets.points(points, *wrong, fine)
    with pytest.raises(ValueError, match="must be of one length"):
        offsets.points(points, *one[:4], some, fine)
    with pytest.raises(ValueError, match="room for all records"):
        offsets.points(points, *one, fine[:1])
    offsets.points(points, *one, fine)
