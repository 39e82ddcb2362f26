"""Values in order at some places: the kernel against sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast._kernels.arrange import Arranging, below, ordered
from dpq_fast._kernels.select import Map, keys
from dpq_fast.data import arranged as arranged_module
from dpq_fast.data.arranged import arrange

BOUNDS = (-100.0, 100.0)
BUCKETS = 64
MAPS = {
    "linear": Map(*BOUNDS, BUCKETS, origin=-20.0, scale=BUCKETS / 40.0),
    "by key": Map(*BOUNDS, BUCKETS, base=int(keys(np.array(BOUNDS))[0]), shift=58),
    "one value each": Map(*BOUNDS, BUCKETS, base=int(keys(np.array([1.0]))[0]), shift=0),
}
COLUMNS = {
    "normal": lambda rng, n: rng.normal(0.0, 5.0, n),
    "whole numbers": lambda rng, n: np.round(rng.normal(0.0, 1.0, n)),
    "half tied": lambda rng, n: np.where(rng.random(n) < 0.5, 2.0, rng.normal(0.0, 5.0, n)),
    "far": lambda rng, n: rng.standard_cauchy(n) * 10.0 ** rng.integers(-9, 9, n),
    # all in one bin, however fine the bins are
    "last bits": lambda rng, n: 1.0 + rng.integers(0, 2**20, n) * 2.0**-52,
    "two clusters": lambda rng, n: np.where(rng.random(n) < 0.5, 3.0, 3.0 + rng.random(n) * 1e-12),
    "signs of zero": lambda rng, n: rng.choice([0.0, -0.0, 5e-324, -5e-324], n),
}
NO_PLACE = np.empty(0, dtype=np.int64)


def check(where, values, start, stop, pieces=1):
    """In order at its places, and everything else between them, if asked for; and ranks."""
    wanted = np.zeros(BUCKETS + 1, dtype=np.uint8)
    wanted[where.buckets(values)] = 1
    given = np.array_split(values, pieces)
    ordered, some = np.sort(values), start < stop
    seen = values[:1_000]
    asked = np.concatenate((seen, np.nextafter(seen, np.inf), [-np.inf, np.inf]))
    for everything, workers in ((True, 1), (False, 1), (True, 3), (False, 2)):
        arranged = arrange(where, wanted, given, start, stop, everything, workers)
        assert arranged.size == values.size
        for a, b in zip(start.tolist(), stop.tolist(), strict=True):
            np.testing.assert_array_equal(arranged[a:b], ordered[a:b])
            if everything:
                assert a == 0 or a == values.size or arranged[:a].max() <= ordered[a]
                assert b == 0 or b == values.size or arranged[b:].min() >= ordered[b - 1]
        if everything:
            np.testing.assert_array_equal(np.sort(arranged), ordered)
        found = below(arranged, start[some], stop[some], asked, None if everything else given)
        np.testing.assert_array_equal(found, np.searchsorted(ordered, asked))


@pytest.fixture(autouse=True)
def few_are_worth_a_thread(monkeypatch):
    monkeypatch.setattr(arranged_module, "MIN_SHARE", 100)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("where", MAPS)
@given(st.integers(0, 2**32), st.integers(1, 400), st.integers(0, 6), st.integers(1, 4))
def test_as_sorted_at_the_places_of_windows(name, where, seed, n, windows, pieces):
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, n + 1, 2 * windows))
    values = np.clip(COLUMNS[name](rng, n), *BOUNDS)
    check(MAPS[where], values, ends[::2].copy(), ends[1::2].copy(), pieces)


@pytest.mark.many
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("where", MAPS)
def test_bins_of_very_many_values(name, where):
    rng = np.random.default_rng(1)
    values = np.clip(COLUMNS[name](rng, 300_000), *BOUNDS)
    start = np.array([0, 70_000, 70_100, 150_000, 299_000])
    check(MAPS[where], values, start, start + np.array([10, 100, 5_000, 1, 1_000]), 3)


@pytest.mark.parametrize("everything", [True, False])
def test_no_values_and_no_windows(everything):
    wanted = np.ones(BUCKETS + 1, dtype=np.uint8)
    for pieces in ([], [np.empty(0)]):
        arranged = arrange(MAPS["linear"], wanted, pieces, NO_PLACE, NO_PLACE, everything)
        assert arranged.size == 0
    asked = NO_PLACE, NO_PLACE, np.array([2.0, 4.0])
    assert below(np.empty(0), *asked).tolist() == [0, 0]
    values = np.array([3.0, 1.0])
    assert below(values, *asked).tolist() == [1, 2]
    assert below(np.full(2, np.nan), *asked, [values]).tolist() == [1, 2]


def test_what_does_not_fit_is_refused():
    where, one = MAPS["linear"], np.zeros(1, dtype=np.int64)
    wanted = np.ones(BUCKETS + 1, dtype=np.uint8)
    with pytest.raises(ValueError, match="wanted must have one entry for each bucket"):
        arrange(where, wanted[1:], [], one, one, True)
    with pytest.raises(ValueError, match="start and stop must have one entry for each window"):
        arrange(where, wanted, [], one, NO_PLACE, True)
    with pytest.raises(ValueError, match="start and stop must have one entry for each window"):
        below(np.ones(1), one, NO_PLACE, np.ones(1))
    with pytest.raises(ValueError, match="contiguous arrays of its own dtype"):
        arrange(where, wanted, [np.ones(2, dtype=np.float32)], one, one, True)
    arranging = Arranging(where, wanted, 2, NO_PLACE, NO_PLACE)
    counts = arranging.count([np.ones(1)])
    with pytest.raises(ValueError, match="all values must be counted"):
        arranging.plan([counts], True)
    (place,) = arranging.plan([2 * counts], True)
    with pytest.raises(ValueError, match="place must have one entry for each bin"):
        arranging.move([np.ones(2)], place[1:])


@pytest.mark.parametrize("name", COLUMNS)
@given(st.integers(0, 2**32), st.integers(0, 3_000), st.booleans())
def test_numbers_of_which_nothing_is_known_are_sorted(name, seed, n, missing):
    rng = np.random.default_rng(seed)
    values = COLUMNS[name](rng, n)
    special = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308], n)
    values = np.where(missing & (rng.random(n) < 0.1), special, values)
    found = ordered(values)
    np.testing.assert_array_equal(found, np.sort(values))
    at_zero = found == 0.0  # -0 before 0, or in any order
    assert np.signbit(found[at_zero]).sum() == np.signbit(values[values == 0.0]).sum()


@pytest.mark.parametrize("n", [0, 1, 100, 2_000])
def test_the_map_that_spreads_most_evenly_is_chosen(n):
    """Of those linear in the value and in its key, with some of the values beyond their ends."""
    rng = np.random.default_rng(2)
    low, high, buckets = -1e3, 1e6, 2**10
    for values in (rng.normal(0.0, 5.0, n), rng.lognormal(0.0, 8.0, n), rng.integers(0, 3, n)):
        values = np.sort(np.clip(values.astype(float), low, high))
        ranges = [(low, high)]
        for tail in (n >> 10, n >> 6) if n else ():
            ranges.append((values[tail], values[n - 1 - tail]))
        maps = []
        for lo, hi in ranges:
            first, last = keys(np.array([lo, hi])).tolist()
            shift = max(0, (last - first).bit_length() - 10)
            maps.append(Map(low, high, buckets, base=first, shift=shift))
            if lo < hi:
                maps.append(Map(low, high, buckets, origin=lo, scale=buckets / (hi - lo)))

        def crowding(where, values=values):
            return np.square(np.bincount(where.buckets(values))).sum()

        chosen = Map.chosen(low, high, buckets, values)
        assert crowding(chosen) == min(map(crowding, maps))
