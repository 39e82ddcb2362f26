"""Records drawn one by one: the kernel against its reference, and both against their law."""

import numpy as np
import pytest
from conftest import SMALLEST_P
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpq_fast._kernels import dither as kernel
from dpq_fast.reference import dither as reference

# The sizes of blocks, from one record to more than are counted among each other, and what is asked.
SIZES = st.lists(
    st.integers(1, 9) | st.sampled_from([30, 64, 127, 128, 129, 700]), min_size=1, max_size=12
)
ASKED = st.lists(
    st.tuples(
        st.sampled_from(["points", "below", "read", "drawn", "expect"]), st.integers(0, 2**32)
    ),
    min_size=1,
    max_size=6,
)


def windows_of(rng, ends):
    """Some windows of places, apart and ascending, with the blocks at their ends."""
    n = int(ends[-1])
    edges = np.unique(rng.integers(0, n + 1, 2 * int(rng.integers(1, 4))))
    edges = edges[: edges.size // 2 * 2] if edges.size > 1 else np.array([0, n])
    start, stop = edges[0::2].copy(), edges[1::2].copy()
    starts = np.append(0, ends[:-1])
    low = starts[np.searchsorted(ends, start, side="right")]
    return start, stop, low, ends[np.searchsorted(ends, stop - 1, side="right")]


def answers(made, bits, sizes, asked):
    """What records in blocks of such sizes say, one answer after another."""
    ends = np.cumsum(sizes)
    points = np.repeat(3 * np.arange(len(sizes)), sizes)
    for what, seed in asked:
        rng = np.random.default_rng(seed)
        start, stop, low, high = windows_of(rng, ends)
        if what == "points":
            windows = zip(start.tolist(), stop.tolist(), strict=True)
            given_points = np.concatenate([points[a:b] for a, b in windows])
            first = np.cumsum(stop - start) - (stop - start)
            fine = np.full(given_points.size, -1)
            yield [made.points(given_points, first, start, stop, low, high, fine)]
            yield fine.tolist()
        elif what == "below":
            yield made.below(start, stop, rng.integers(-1, 2**bits + 2, start.size)).tolist()
        elif what == "expect":
            made.expect(int(rng.integers(9_000)))  # changes nothing that is said
        elif what == "read":
            yield made.read(int(start[0]), int(stop[0])).tolist()
        else:
            yield made.are_drawn(start, stop).tolist()


@given(st.integers(1, 32), SIZES, ASKED, st.integers(0, 10), st.sampled_from([0, 5, 64, 700]))
def test_the_kernel_draws_what_the_reference_does(bits, sizes, asked, stretch_bits, most):
    """Any question after any other, and all of the records at the end."""
    asked = [*asked, ("points", 1), ("read", 2), ("points", 3)]
    found = [
        list(answers(each.Offsets(bits, np.random.default_rng(7), stretch_bits, most), *what))
        for each, what in ((each, (bits, sizes, asked)) for each in (kernel, reference))
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("k", [2, 40, 128, 129, 3_000])
def test_blocks_of_few_offsets_are_in_order(k):
    """Offsets that are equal, in blocks of all sizes: as many of each as there were."""
    made = kernel.Offsets(2, np.random.default_rng(k), 9, 4_096)
    fine, offsets = np.empty(k, dtype=np.int64), made.read(0, k)
    windows = np.array([[0], [0], [k], [0], [k]])
    assert made.points(np.full(k, 5), *windows, fine)
    assert fine.tolist() == sorted((4 * 5 + offsets).tolist())


def test_offsets_are_uniform_and_independent():
    made = kernel.Offsets(4, np.random.default_rng(3), 9, 4_096)
    offsets = made.read(1_000, 101_000)
    pairs = np.bincount(16 * offsets[0::2] + offsets[1::2], minlength=256)
    assert stats.chisquare(pairs).pvalue > SMALLEST_P
    far = np.bincount(16 * offsets[:-512] + offsets[512:], minlength=256)
    assert stats.chisquare(far).pvalue > SMALLEST_P


def test_refusals():
    offsets = kernel.Offsets(8, np.random.default_rng(0), 9, 100)
    some = np.array([0, 3])
    for bits, stretch_bits, most in ((0, 9, 1), (33, 9, 1), (8, 21, 1), (8, 9, -1), (8, -1, 1)):
        with pytest.raises(ValueError, match="cells have 1 to 32 bits"):
            kernel.Offsets(bits, np.random.default_rng(0), stretch_bits, most)
    with pytest.raises(ValueError, match="some in each window"):
        offsets.read(3, 3)
    with pytest.raises(ValueError, match="some in each window"):
        offsets.below(some - 1, some + 1, some)
    for short in (offsets.below, lambda a, b, c: offsets.are_drawn(a, b)):
        with pytest.raises(ValueError, match="must be of one length"):
            short(some, some[:1], some[:1])
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
    assert offsets.points(points, *one, fine)
