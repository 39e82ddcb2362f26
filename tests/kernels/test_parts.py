"""Parts of a dithered column: the kernel against its reference."""

import numpy as np
import pytest
from conftest import assert_draws_follow
from hypothesis import example, given
from hypothesis import strategies as st

from dpq_fast._kernels import dither as kernel_dither
from dpq_fast._kernels import parts as kernel
from dpq_fast.reference import dither as reference_dither
from dpq_fast.reference import parts as reference

CELLS = st.lists(
    st.tuples(
        st.integers(0, 3) | st.integers(0, 2**20),  # points before it,
        st.integers(1, 5) | st.integers(1, 2**30),  # fine points,
        st.integers(0, 3),  # records before it
        st.integers(0, 4) | st.sampled_from([8, 9, 40, 300]),  # and in it
    ),
    min_size=1,
    max_size=6,
)
STRETCHES = st.lists(st.tuples(st.integers(1, 30), st.integers(-1, 6)), min_size=1, max_size=5)
WIDTHS = st.lists(st.tuples(st.integers(1, 30), st.floats(1.0, 20.0)), min_size=1, max_size=4)
BITS = st.integers(1, 7) | st.sampled_from([10, 16])
# All but the rate; offsets by a seed, and cells of 2^bits fine points, or not.
PROBLEM = CELLS, STRETCHES, WIDTHS, BITS, st.integers(0, 2**32), st.booleans()

KERNEL, REFERENCE = (kernel, kernel_dither), (reference, reference_dither)


def made(sides, cells, stretches, widths, bits, seed, has_masses, rate):
    """Parts by the kernel, by the reference, or by both."""
    gap, each, before, count = np.array(cells, dtype=np.int64).T.copy()
    width = each if has_masses else np.full(each.size, 2**bits)
    first = np.cumsum(gap + width) - width
    above = np.cumsum(before + count)
    length, most = np.array(stretches, dtype=np.int64).T.copy()
    start = np.append(0, np.cumsum(length))
    start[-1] = max(start[-1], above[-1] + 1)
    begin = np.cumsum([0, *(each for each, _ in widths[1:])])
    begin = np.append(begin[begin < start[-1]], start[-1])
    ranks = np.array([each for _, each in widths])[: begin.size - 1]
    given = first, width if has_masses else None, above - count, above, start, most, begin
    return tuple(
        parts.Parts(dither.Offsets(bits, np.random.default_rng(seed)), *given, ranks, rate, 1)
        for parts, dither in sides
    )


# cut at its only record; rank 1 is not asked for, and what is before the next cell is left out
@example([(0, 8, 0, 1), (9, 8, 0, 2)], [(1, 0), (2, -1), (1, 2)], [(1, 1.0)], 3, 2, False, 0.1)
@given(*PROBLEM, st.floats(0.0, 1.0))
def test_the_kernel_makes_the_parts_of_the_reference(
    cells, stretches, widths, bits, seed, has_masses, rate
):
    both = KERNEL, REFERENCE
    fast, plain = made(both, cells, stretches, widths, bits, seed, has_masses, rate)
    assert fast.parts == plain.parts and fast.longest == plain.longest
    least, *sums = fast.take()
    for found, expected in zip((least, *sums), plain.take(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert fast.leaves == plain.leaves == least.size
    assert (np.diff(least) > 0).all()  # that is what they are known by
    if least.size:  # in any order, some of them twice
        asked = np.random.default_rng(seed).choice(least, 2 * least.size)
        for found, expected in zip(fast.of(asked), plain.of(asked), strict=True):
            assert found.tolist() == expected.tolist()


@given(*PROBLEM, st.sampled_from([0.0, 0.1, 3.0]))
def test_drawn_parts_are_those_of_their_leaf(
    cells, stretches, widths, bits, seed, has_masses, rate
):
    (parts,) = made([KERNEL], cells, stretches, widths, bits, seed, has_masses, rate)
    least, most, _, width, _ = parts.take()
    if least.size:
        rng = np.random.default_rng(seed)
        start, *of_leaf = parts.of(least)
        leaf, bend = np.repeat(np.arange(least.size), 9), np.tile([-1, 0, 1], 3 * least.size)
        drawn = parts.draw(least[leaf], most[leaf], width[leaf], bend, rng)
        left, drawn_left = of_leaf[-1], drawn[-1]
        at = np.searchsorted(left, drawn_left)
        assert (start[leaf] <= at).all() and (at < start[leaf + 1]).all()
        for found, expected in zip(drawn, of_leaf, strict=True):
            assert found.tolist() == expected[at].tolist()


@pytest.mark.parametrize("has_masses", [False, True])
@pytest.mark.parametrize("bend", [-1, 0, 1])
# the last ones so steep that hardly an output is taken, and all parts are looked at
@pytest.mark.parametrize("rate", [0.0, 0.2, 1.0, 8.0])
def test_parts_are_drawn_by_width_and_bend(rate, bend, has_masses):
    cells = [(30, 40, 2, 9), (0, 5, 1, 3), (3, 90, 0, 0), (2, 200, 2, 6)]
    (parts,) = made([KERNEL], cells, [(40, 1)], [(40, 30.0)], 6, 5, has_masses, rate)
    least, most, _, width, _ = parts.take()
    assert least.size == 1
    _, low, high, wide, left = parts.of(least)
    away = {-1: most[0] - high, 0: 0.0 * low, 1: low - least[0]}[bend]
    n = 20_000
    repeated = (np.repeat(each, n) for each in (least, most, width))
    drawn = parts.draw(*repeated, np.full(n, bend), np.random.default_rng(7))
    log_weight = np.log(wide) - 2.0 * rate * away
    law = dict(zip(left.tolist(), log_weight - np.logaddexp.reduce(log_weight), strict=True))
    assert_draws_follow(drawn[-1].tolist(), law)


def test_a_tie_in_wide_cells_is_cut_as_far_as_it_can_be():
    """A cell of 2^24 offsets with 10^6 records: a block for each two of them at the most."""
    fast = kernel.Parts(
        kernel_dither.Offsets(24, np.random.default_rng(1)),
        np.array([0]),
        None,
        *(np.array([value]) for value in (7, 10**6 + 7)),
        np.array([0, 10**6 + 8]),
        np.array([2]),
        np.array([0, 10**6 + 8]),
        np.array([100.0]),
        0.01,
        1,
    )
    start, least, most, width, left = fast.of(fast.take()[0])
    assert (most - least <= 2).all() and (most >= least).all()
    assert (left[1:] == (left + width)[:-1]).all() and width.sum() == 2**24
    assert fast.parts == width.size < 10**6
    assert (least[0], most[-1]) == (7, 10**6 + 7)
    assert (np.diff(start) > 0).all() and np.diff(start).max() == fast.longest


def test_refusals():
    offsets = kernel_dither.Offsets(3, np.random.default_rng(0))
    cuts = [np.array([0, 8]), None, np.array([0, 2]), np.array([2, 5])]
    stretches = [np.array([0, 6]), np.array([1])]
    begin = stretches[0]
    rest = begin, np.array([2.0]), 0.1, 4
    kernel.Parts(offsets, *cuts, *stretches, *rest)
    for i, wrong in ((0, np.array([0])), (1, np.array([8])), (2, np.array([0]))):
        changed = [wrong if i == k else each for k, each in enumerate(cuts)]
        with pytest.raises(ValueError, match="each needs its numbers of records"):
            kernel.Parts(offsets, *changed, *stretches, *rest)
    nothing = np.empty(0, dtype=np.int64)
    with pytest.raises(ValueError, match="there must be a cut"):
        kernel.Parts(offsets, nothing, None, nothing, nothing, *stretches, *rest)
    with pytest.raises(ValueError, match="there must be a stretch, and a start more"):
        kernel.Parts(offsets, *cuts, stretches[0], np.array([1, 2]), *rest)
    with pytest.raises(ValueError, match="all ranks must be in a stretch"):
        kernel.Parts(offsets, *cuts, *[np.array([0, 5]), stretches[1]], np.array([0, 5]), *rest[1:])
    for ranks in (0.5, 2.0**63, np.nan):
        with pytest.raises(ValueError, match="leaves have ranks"):
            kernel.Parts(offsets, *cuts, *stretches, begin, np.array([ranks]), 0.1, 4)
    for wrong in ([0], [1, 6], [0, 5], [0, 3, 6]):
        with pytest.raises(ValueError, match="leaves must begin where stretches do"):
            kernel.Parts(offsets, *cuts, *stretches, np.array(wrong), *rest[1:])
    parts = kernel.Parts(offsets, *cuts, *stretches, *rest)
    rng, leaf, wide, bend = np.random.default_rng(0), np.array([0]), np.array([4.0]), np.array([1])
    for wrong in ((leaf, leaf, wide, begin), (leaf, leaf, np.ones(2), bend)):
        with pytest.raises(ValueError, match="each leaf needs all numbers"):
            parts.draw(*wrong, rng)
    for wrong in ((np.array([0.5]), bend), (np.array([np.nan]), bend), (wide, np.array([2]))):
        with pytest.raises(ValueError, match="leaves have a width, and a bend is -1, 0 or 1"):
            parts.draw(leaf, leaf, *wrong, rng)
    with pytest.raises(ValueError, match="contiguous arrays of its own dtype"):
        parts.of(np.array([0.0]))
    # of no leaf: what comes first from there on, or something
    assert parts.of(np.array([1, 99]))[0].size == 3
