"""Selection from unsorted values equals sorting: every kind of data, any number of threads."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpq_fast as dpq
from dpq_fast._kernels.select import Map, keys, value_of
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.passes import Chunks
from dpq_fast.data.records import Records
from dpq_fast.data.sample import Sample
from dpq_fast.orders import buckets as buckets_module
from dpq_fast.orders import choice as choice_module
from dpq_fast.orders import dithered as dithered_module
from dpq_fast.orders import likely as likely_module
from dpq_fast.orders import selected as selected_module
from dpq_fast.orders.blocks import Zone, segments, stretch_of
from dpq_fast.orders.buckets import Buckets
from dpq_fast.orders.counted import CountedOrder
from dpq_fast.orders.likely import BUCKETS
from dpq_fast.orders.selected import UNKNOWN, CollectedWindows, SelectedOrder
from dpq_fast.orders.sorted import SortedOrder

BOUNDS = (-100.0, 100.0)
WIDE = (-1e301, 1e301)


def organ_pipe(n, rng):
    half = np.arange(n // 2, dtype=float)
    return np.concatenate((half, half[::-1]))


# Data that is hard on one method or another: functions of its size and a generator.
SHAPES = {
    "all equal": lambda n, rng: np.full(n, 3.5),
    "two values": lambda n, rng: rng.choice([-1.0, 2.0], n),
    "sorted": lambda n, rng: np.sort(rng.normal(size=n)),
    "reversed": lambda n, rng: np.sort(rng.normal(size=n))[::-1].copy(),
    "organ pipe": organ_pipe,
    "normal": lambda n, rng: rng.normal(0, 5, n),
    "narrow": lambda n, rng: 1000.0 + rng.random(n),
    "lognormal": lambda n, rng: rng.lognormal(0, 10, n),
    "cauchy": lambda n, rng: rng.standard_cauchy(n),
    "outlier": lambda n, rng: np.append(rng.normal(size=n - 1), 1e300),
    "denormals": lambda n, rng: rng.integers(0, 1000, n) * 5e-324,
    "zeros": lambda n, rng: rng.choice([0.0, -0.0, 1e-310], n),
    "three integers": lambda n, rng: rng.integers(0, 3, n).astype(float),
    "atom and rest": lambda n, rng: np.where(rng.random(n) < 0.8, 40.0, rng.normal(40, 10, n)),
    "two clusters": lambda n, rng: np.where(
        rng.random(n) < 0.5, rng.normal(0, 1, n), 1e6 + rng.random(n)
    ),
    "infinities": lambda n, rng: rng.choice([-np.inf, 0.0, 1.0, np.inf], n),
    "missing": lambda n, rng: np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
}


def selected(values, lattice, bounds, workers=1, probe=None):
    chunks = Chunks.of_array(values, workers)
    probe = values[:100] if probe is None else probe
    return SelectedOrder(chunks, Buckets(chunks, *bounds, probe, lattice), lattice, bounds)


def in_order(values, lattice, bounds):
    return SortedOrder(np.sort(values[~np.isnan(values)]), lattice, bounds)


def assert_same_intervals(order, expected, first, count):
    for mine, other in zip(
        order.intervals(first, count), expected.intervals(first, count), strict=True
    ):
        np.testing.assert_array_equal(mine, other)


def some_windows(n, rng):
    """Disjoint segments of ranks, the first and the last rank among them."""
    edges = np.sort(rng.choice(n + 2, min(n + 2, 12), replace=False))
    edges[0], edges[-1] = 0, n + 1
    first, stop = edges[:-1:2], edges[1::2]
    keep = stop > first
    return first[keep].astype(np.int64), (stop - first)[keep].astype(np.int64)


@pytest.mark.parametrize("bounds", [BOUNDS, WIDE, (0.0, 2.0)], ids=str)
@pytest.mark.parametrize("resolution", [None, 0])
@pytest.mark.parametrize("shape", SHAPES)
def test_selection_equals_sorting(shape, resolution, bounds, monkeypatch):
    monkeypatch.setattr(selected_module, "FULL", 20)  # so that small data has full buckets, too
    monkeypatch.setattr(buckets_module, "COLLECTED", 50)
    monkeypatch.setattr(buckets_module, "COMPARED", 500)
    rng = np.random.default_rng(1)
    lattice = Lattice.of(bounds, resolution, None)
    for n in (10, 1000):
        values = SHAPES[shape](n, rng)
        order, expected = selected(values, lattice, bounds), in_order(values, lattice, bounds)
        assert order.n == expected.n
        for _ in range(5):
            assert_same_intervals(order, expected, *some_windows(order.n, rng))
        everything = np.array([0]), np.array([order.n + 1])
        assert_same_intervals(order, expected, *everything)


@pytest.mark.parametrize("bounds", [BOUNDS, (0.0, 2.0)], ids=str)
@pytest.mark.parametrize("resolution", [None, 0])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_read_again_and_again_is_sorted(shape, resolution, bounds, monkeypatch):
    monkeypatch.setattr(buckets_module, "REREAD", 0)
    rng = np.random.default_rng(4)
    lattice = Lattice.of(bounds, resolution, None)
    values = SHAPES[shape](1_000, rng)
    expected = in_order(values, lattice, bounds)
    for most in (2**24, expected.n - 1):
        monkeypatch.setattr(buckets_module, "MOST_SORTED", most)
        order, passes, fold = selected(values, lattice, bounds), [], Chunks.fold
        monkeypatch.setattr(
            Chunks,
            "fold",
            lambda self, query, passes=passes, fold=fold: passes.append(query) or fold(self, query),
        )
        everything = np.array([0]), np.array([order.n + 1])
        outputs = np.sort(rng.integers(0, 10**6, 20))
        outputs = outputs if lattice else bounds[0] + outputs * 1e-6 * (bounds[1] - bounds[0])
        read = 0
        while read <= 3 * order.n:
            first, count = some_windows(order.n, rng)
            assert_same_intervals(order, expected, first, count)
            read += int(count.sum())
            passes.clear()
            order.prepare(first, count)
            np.testing.assert_array_equal(order.ranks_of(outputs), expected.ranks_of(outputs))
        assert_same_intervals(order, expected, *everything)
        around = [stretch_of(order.n, Zone(7, np.array([0]), np.array([order.n + 1])))]
        for mine, other in zip(order.cuts(around), expected.cuts(around), strict=True):
            np.testing.assert_array_equal(mine, other)
        assert bool(passes) == (most < order.n)
        monkeypatch.setattr(Chunks, "fold", fold)


@pytest.mark.parametrize("bounds", [BOUNDS, WIDE, (0.0, 2.0)], ids=str)
@pytest.mark.parametrize("resolution", [None, 0])
@pytest.mark.parametrize("shape", SHAPES)
def test_records_that_are_read_are_cut_as_sorted_ones(shape, resolution, bounds, monkeypatch):
    monkeypatch.setattr(selected_module, "FULL", 20)
    monkeypatch.setattr(buckets_module, "COLLECTED", 50)
    rng = np.random.default_rng(3)
    lattice = Lattice.of(bounds, resolution, None)
    for n, most in ((1, 2), (10, 2), (1000, 3), (1000, 40)):
        values = SHAPES[shape](n, rng)
        order, expected = selected(values, lattice, bounds), in_order(values, lattice, bounds)
        if not order.n:
            continue
        for _ in range(5):
            inner = segments(*np.sort(rng.integers(0, order.n + 1, (2, 3)), axis=0), order.n)
            whole = segments(*np.sort(rng.integers(0, order.n + 1, (2, 2)), axis=0), order.n)
            outer = segments(
                np.append(inner[0], whole[0]),
                np.append(inner[0] + inner[1], whole[0] + whole[1]) - 1,
                order.n,
            )
            zones = [Zone(most, *inner), Zone(2 * most, *outer)]
            around = [stretch_of(order.n, zone) for zone in zones]
            for mine, other in zip(order.cuts(around), expected.cuts(around), strict=True):
                np.testing.assert_array_equal(mine, other)


@given(
    st.lists(st.floats(), max_size=60),
    st.lists(st.floats(allow_nan=False), max_size=5),
    st.integers(0, 2**32),
)
def test_selection_equals_sorting_for_any_floats(values, probe, seed):
    values, bounds = np.array(values, dtype=float), (-1e150, 1e300)
    order = selected(values, None, bounds, probe=np.array(probe, dtype=float))
    expected = in_order(values, None, bounds)
    assert order.n == expected.n
    assert_same_intervals(order, expected, *some_windows(order.n, np.random.default_rng(seed)))


@given(
    st.lists(
        st.sampled_from([0, 1, 2, 3, 100, 511, 512, 513, 2**18, 2**18 + 100, 2**40])
        | st.integers(0, 2**20),
        min_size=20,
        max_size=200,
    ),
    st.sampled_from([-2.0, 0.0, 0.1, 1.5]),
)
def test_near_ties_are_told_apart(steps, value):
    # cells are counted by parts again until none has more than one record but tied ones
    first = int(keys(np.array([value]))[0])
    values = np.array([value_of(first + step) for step in steps])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selected_module, "FULL", 1)
        patch.setattr(buckets_module, "COLLECTED", 8)
        order = selected(values, None, BOUNDS)
        np.testing.assert_array_equal(order._points([(0, values.size)]), np.sort(values))
        middle = (values.size // 2 - 1, values.size // 2 + 2)
        np.testing.assert_array_equal(order._points([middle]), np.sort(values)[slice(*middle)])


@pytest.mark.parametrize("steps", [0, 1, 100, 511, 512, 2**18 + 100])
def test_one_record_close_to_a_tie_of_all_others_does_not_raise(steps):
    column = np.full(1_100_000, 0.1)
    column[7] = value_of(int(keys(column[:1])[0]) + steps)
    sample = Sample.from_batches(batches_of(column, (100_000,)), (0.0, 1.0))
    assert 0 <= dpq.median(column, epsilon=1, bounds=(0, 1)) <= 1
    assert 0 <= dpq.median(sample, epsilon=1) <= 1
    assert 0 <= dpq.joint_exp(sample, 0.5, epsilon=1) <= 1


def test_refining_leaves_out_the_other_cells_of_a_bucket():
    chosen = Map(0.0, 10.0, 1, origin=0.0, scale=0.1)
    first = int(keys(np.array([0.1]))[0])
    values = np.array([value_of(first + step) for step in (-1, 0, 1, 3, 4, 8, 9)])
    total = np.zeros((1, 512), dtype=np.int64)
    cell, lo, hi = np.array([0, -1], dtype=np.int32), np.array([first]), np.array([first + 4])
    chosen.refine(cell, lo, hi, np.array([0], dtype=np.int32), hi, values, total)
    assert total[0, :4].tolist() == [1, 1, 0, 1] and total.sum() == 3
    total[:], shift = 0, np.array([-1], dtype=np.int32)
    chosen.refine(cell, lo, hi, shift, np.array([first + 1]), values, total)
    assert total[0, :4].tolist() == [1, 1, 1, 0] and total.sum() == 3


@pytest.mark.parametrize("n", [0, 1, 2, 65_537, 300_000])
def test_samples_of_unsorted_arrays_have_the_law_of_sorted_ones(n):
    x = np.random.default_rng(n).normal(0, 5, n)
    arguments = dict(epsilon=1.0, bounds=BOUNDS, dither=False)
    law = dpq.joint_exp_law(x, [0.1, 0.5, 0.6], **arguments)
    expected = dpq.joint_exp_law(np.sort(x), [0.1, 0.5, 0.6], **arguments)
    for output in expected.sample(1, 3):
        assert law.log_prob(output) == pytest.approx(expected.log_prob(output), abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["normal", "lognormal", "atom and rest", "two clusters", "zeros"])
def test_selection_equals_sorting_of_ten_million(shape):
    values = SHAPES[shape](10_000_000, np.random.default_rng(3))
    lattice = Lattice.of(BOUNDS, None, None)
    first = np.array([0, 1_000_000, 4_999_000, 9_999_000])
    count = np.array([1500, 2000, 3000, 1001])
    order = selected(values, lattice, BOUNDS, workers=2)
    assert_same_intervals(order, in_order(values, lattice, BOUNDS), first, count)


@pytest.mark.parametrize("options", [{}, {"resolution": 0.5}, {"resolution": 1e-4}], ids=str)
def test_answers_do_not_depend_on_workers(options):
    x = np.random.default_rng(4).normal(0, 5, 200_000)
    answers = [
        dpq.joint_exp(x, [0.2, 0.7], epsilon=1, bounds=BOUNDS, rng=5, workers=workers, **options)
        for workers in (1, 2, 3, -1)
    ]
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])


@pytest.mark.parametrize("workers, error", [(0, ValueError), (1.5, TypeError), (True, TypeError)])
def test_workers_are_checked(workers, error):
    with pytest.raises(error, match="workers must"):
        dpq.joint_exp([1.0], 0.5, epsilon=1, bounds=BOUNDS, workers=workers)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.astype(np.float32),
        lambda x: x.astype(">f8"),
        lambda x: np.repeat(x, 2)[::2],
        lambda x: x[::-1],
        lambda x: np.frombuffer(x.tobytes()),  # read-only
        lambda x: x.astype(np.float16),
        lambda x: np.frombuffer(b"." + x.tobytes(), offset=1),
    ],
    ids=["float32", "big-endian", "strided", "reversed", "read-only", "float16", "not aligned"],
)
def test_arrays_of_any_layout_are_gone_through(change):
    x = change(np.random.default_rng(6).normal(0, 5, 100_000))
    before = x.copy()
    arguments = dict(epsilon=1, bounds=BOUNDS, dither=False)
    law = dpq.joint_exp_law(x, [0.25, 0.5], **arguments)
    expected = dpq.joint_exp_law(np.sort(x.astype(float)), [0.25, 0.5], **arguments)
    assert law._paths.log_normalizer == pytest.approx(expected._paths.log_normalizer, abs=1e-10)
    np.testing.assert_array_equal(x, before)


def test_threads_share_a_sample_that_has_to_be_refined(monkeypatch, no_few):
    monkeypatch.setattr(choice_module, "MANY_SORTED", 0)
    monkeypatch.setattr(selected_module, "FULL", 20)
    monkeypatch.setattr(buckets_module, "COLLECTED", 50)
    refined, refine = [], Buckets._refine
    monkeypatch.setattr(
        Buckets, "_refine", lambda self, cells: (refined.append(len(cells)), refine(self, cells))
    )
    x = SHAPES["atom and rest"](70_000, np.random.default_rng(24))
    q = [0.3, 0.5]  # inside the atom
    expected = dpq.joint_exp(x, q, epsilon=50, bounds=BOUNDS, resolution=0, rng=1)
    assert refined
    for _ in range(10):
        sample = Sample.of(x, BOUNDS, resolution=0)
        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(
                lambda _, shared=sample: dpq.joint_exp(shared, q, epsilon=50, rng=1), range(8)
            )
            for answer in answers:
                np.testing.assert_array_equal(answer, expected)


def test_memory_mapped_arrays_are_gone_through(tmp_path):
    x = np.random.default_rng(7).normal(0, 5, 100_000)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    answers = [dpq.joint_exp(v, 0.5, epsilon=1, bounds=BOUNDS, rng=1) for v in (x, mapped)]
    assert answers[0] == answers[1]


def test_several_levels_of_ind_exp_share_one_pass():
    x, passes = np.random.default_rng(23).normal(0, 5, 100_000), []

    def source():
        passes.append(None)
        return [x]

    sample = Sample.from_batches(source, BOUNDS, dither=False)
    before = len(passes)
    answers = dpq.ind_exp(sample, [0.1, 0.5, 0.9], epsilon=1, rng=1)
    assert len(passes) == before + 1
    law = dpq.ind_exp_law(np.sort(x), [0.1, 0.5, 0.9], epsilon=1, bounds=BOUNDS, dither=False)
    mine = dpq.ind_exp_law(sample, [0.1, 0.5, 0.9], epsilon=1)
    assert mine.log_prob(answers) == pytest.approx(law.log_prob(answers), abs=1e-10)


# --- what is collected


def assert_held_as_sorted(order, expected, windows):
    """What is held at some windows, and all parts of them, is what sorting gives."""
    held = CollectedWindows(order._counted, *np.array(windows).T)
    for start, stop in windows:
        for a in range(start, stop):
            for b in range(a + 1, stop + 1):
                np.testing.assert_array_equal(order._records(a, b, held), expected[a:b])
    return held


@pytest.mark.parametrize(
    "windows", [[(0, 3)], [(99, 102)], [(197, 200)], [(0, 3), (99, 102), (197, 200)], [(90, 112)]]
)
@pytest.mark.parametrize("at_edges", [False, True])
def test_comparing_collects_what_buckets_hold(at_edges, windows, monkeypatch):
    bounds, probe = (0.0, 4096.0), np.arange(4096.0)  # each bucket from an integer to the next
    x = np.random.default_rng(31).normal(2000.0, 2000.0, 200)
    if at_edges:
        x = np.concatenate((np.repeat(np.arange(60.0), 3), np.arange(1000.0, 1020.0)))
    x[:4] = -np.inf, np.inf, 1e300, -1e300
    expected = np.clip(np.sort(x), *bounds)
    sizes = []
    for compared in (10**9, 0):
        monkeypatch.setattr(buckets_module, "COMPARED", compared)
        held = assert_held_as_sorted(selected(x, None, bounds, probe=probe), expected, windows)
        sizes.append(held.collected.size)
    assert sizes[0] == sizes[1]


def test_plans_hold_the_buckets_of_their_windows_alone():
    x = np.delete(np.arange(0.5, 200.0), [20, 100, 150])  # where a bucket is empty
    buckets = Buckets(Chunks.of_array(x, 1), 0.0, 200.0, x, None)
    assert buckets.count.max() == 1
    start, stop = np.array([5, 19, 99, 190]), np.array([6, 21, 120, 197])
    plan = buckets.plan(start, stop)
    assert plan.start.tolist() == [5, 19, 20, *range(99, 120), *range(190, 197)]
    assert (plan.count == 1).all()
    np.testing.assert_array_equal(buckets.collect(plan), x[plan.start])


@pytest.mark.parametrize("windows", [[(0, 900)], [(10, 20), (880, 890)], [(299, 302)]])
def test_plans_collect_no_more_than_they_may(windows, monkeypatch):
    monkeypatch.setattr(selected_module, "FULL", 2)
    monkeypatch.setattr(buckets_module, "COLLECTED", 40)
    x = np.concatenate((0.1 + np.arange(300) * 1e-13, np.full(300, 0.2), np.arange(300.0)))
    order = selected(x, None, (0.0, 1e6), probe=np.array([0.0, 1e6]))
    start, stop = np.array(windows).T
    plan = order._counted.plan(start, stop)
    loose = plan.count[~plan.tied]
    assert loose.sum() <= 40 or loose.max() <= 10
    for cell_start, count, cell in zip(plan.start, plan.count, plan.cell, strict=True):
        if cell is not None:
            assert ((start < cell_start + count) & (cell_start < stop)).any()
    assert_held_as_sorted(order, np.sort(x), [(a, min(b, a + 30)) for a, b in windows])


def test_tied_records_are_not_collected(monkeypatch):
    monkeypatch.setattr(selected_module, "FULL", 2)
    monkeypatch.setattr(buckets_module, "COLLECTED", 4)
    # of one value; and of one lattice point, but not of one value
    for x, lattice in (
        (np.full(500, 0.5), None),
        (3.0 + np.arange(500) * 1e-9, Lattice.of(BOUNDS, 1.0, False)),
    ):
        order = selected(x, lattice, BOUNDS, probe=np.array(BOUNDS))
        plan = order._counted.plan(np.array([0]), np.array([500]))
        assert plan.tied.all() and plan.count.sum() == 500
        monkeypatch.setattr(order._counted, "_chunks", None)  # no other pass
        assert order._counted.collect(plan).size == 0
        assert order._points([(10, 20)]).tolist() == [0.5 if lattice is None else 103] * 10


@pytest.mark.parametrize("workers", [1, 3])
def test_buckets_that_are_rounded_to_one_point_are_not_collected(workers):
    """Counts are all that is asked of them, whether they are foreseen or not."""
    bounds, rng = (-1e6, 1e6), np.random.default_rng(21)
    lattice, values = Lattice.of(bounds, 1.0, False), rng.standard_cauchy(300_000)
    order, expected = (make(values, lattice, bounds) for make in (selected, in_order))
    start = np.arange(5_000, 300_000, 10_000)
    plan = order._counted.plan(start, start + 400)
    assert plan.tied.sum() > 500 and plan.count[~plan.tied].sum() < 20_000
    bucket = order._counted._map.buckets(values).astype(np.int64)
    points = lattice.encode(values)
    for tied, value in zip(plan.bucket[plan.tied].tolist(), plan.value[plan.tied], strict=True):
        assert (points[bucket == tied] == lattice.encode(np.array([value]))[0]).all()
    windows = [(int(place), int(place) + 400) for place in start]
    assert (order._points(windows) == expected._points(windows)).all()
    asked = np.arange(-30, 30) + lattice.points // 2
    assert (order.ranks_of(asked) == expected.ranks_of(asked)).all()
    likely = likely_module.Foreseen.of(
        values, *bounds, values[:100], np.linspace(0.1, 0.9, 9), 1e-3, workers, lattice
    ).likely
    assert likely is not None and likely.share < 0.1


@given(
    st.floats(-1e3, 1e3),
    st.floats(-6.0, 6.0),
    st.integers(3, 400),
    st.lists(st.floats(-1e3, 1e3), max_size=40),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_buckets_of_one_point_hold_no_other(low, width, points, probe, near, seed):
    """And all are found that lie between its least value and its greatest, but at its ends."""
    rng, high = np.random.default_rng(seed), low + 10.0**width
    lattice = Lattice.of((low, high), (high - low) / points, False)
    chosen = likely_module.choose_map(low, high, np.array(probe, dtype=float))
    buckets = np.arange(BUCKETS)
    are_one, value = likely_module.are_of_one_point(chosen, lattice, buckets)
    tried = np.clip(rng.uniform(low, high, 4_000), low, high)
    if near:  # the last values of points, and the first ones
        first = lattice.least(np.arange(1, lattice.points))
        tried = np.clip(np.concatenate((first, np.nextafter(first, -np.inf))), low, high)
    bucket, point = chosen.buckets(tried).astype(np.int64), lattice.encode(tried)
    held = are_one[bucket]
    assert (lattice.encode(value)[bucket[held]] == point[held]).all()
    least = np.full(BUCKETS, lattice.points)
    most = np.full(BUCKETS, -1)
    np.minimum.at(least, bucket, point)
    np.maximum.at(most, bucket, point)
    assert not (are_one & (least < most)).any()


def test_parts_of_windows_are_found_between_tied_records(monkeypatch):
    monkeypatch.setattr(selected_module, "FULL", 1)
    monkeypatch.setattr(buckets_module, "COLLECTED", 4)
    x = np.repeat([0.1, 0.2, 0.3, 0.4, 0.5], [6, 1, 1, 5, 2])
    x[6:8] += [1e-15, 2e-15]
    order = selected(x, None, (0.0, 1e6), probe=np.array([0.0, 1e6]))
    held = assert_held_as_sorted(order, x, [(0, 15)])
    assert held.plan.tied.any()
    assert_held_as_sorted(order, x, [(0, 7), (12, 15)])


def test_windows_are_collected_ahead_as_one_where_they_touch(monkeypatch):
    x, planned, plan = np.random.default_rng(32).normal(size=1000), [], Buckets.plan
    monkeypatch.setattr(
        Buckets,
        "plan",
        lambda self, start, stop: (
            planned.append(list(zip(start.tolist(), stop.tolist(), strict=True))),
            plan(self, start, stop),
        )[1],
    )
    order = selected(x, None, BOUNDS)
    first = np.array([500, 0, 101, 106, 104, 300, 990])
    count = np.array([7, 1, 2, 21, 1, 4, 11])
    order.prepare(first, count)
    windows = [(0, 1), (100, 127), (299, 304), (499, 507), (989, 1000)]
    assert planned == [windows]
    for one in range(first.size):
        expected = in_order(x, None, BOUNDS)
        assert_same_intervals(order, expected, first[one : one + 1], count[one : one + 1])
    assert planned == [windows]  # no other pass
    selected(np.array([np.nan]), None, BOUNDS).prepare(np.array([0, 0]), np.array([1, 1]))
    assert planned == [windows]


def test_ranks_inside_what_is_held_take_no_pass(monkeypatch):
    monkeypatch.setattr(selected_module, "FULL", 2)
    monkeypatch.setattr(buckets_module, "COLLECTED", 4)
    x = np.concatenate((0.1 + np.arange(40) * 1e-10, np.full(40, 0.2), np.arange(1.0, 21.0)))
    order = selected(x, None, (0.0, 1e6), probe=np.array([0.0, 1e6]))
    everything = [(0, x.size)]
    assert order._points(everything).tolist() == x.tolist()
    between = (x[1:] + x[:-1]) / 2.0
    outputs = np.concatenate((x, between, [-1.0, 0.0, 0.1 - 1e-15, 0.3, 1e6, 2e6]))
    monkeypatch.setattr(order, "_chunks", None)  # no other pass
    assert order.ranks_of(outputs).tolist() == np.searchsorted(x, outputs).tolist()


def test_ranks_outside_of_what_is_held_take_one_pass(monkeypatch):
    monkeypatch.setattr(selected_module, "FULL", 2)
    monkeypatch.setattr(buckets_module, "COLLECTED", 4)
    x = np.concatenate((0.1 + np.arange(40) * 1e-10, np.arange(1.0, 21.0)))
    outputs = np.concatenate((x, (x[1:] + x[:-1]) / 2.0))
    for windows in ([(3, 5)], [(45, 50)], [(0, 2), (38, 41)]):
        order = selected(x, None, (0.0, 1e6), probe=np.array([0.0, 1e6]))
        order._points(windows)
        assert order.ranks_of(outputs).tolist() == np.searchsorted(x, outputs).tolist()


def test_ranks_at_the_ends_of_cells_are_known_without_records(monkeypatch):
    monkeypatch.setattr(selected_module, "FULL", 2)
    monkeypatch.setattr(buckets_module, "COLLECTED", 4)
    x = np.concatenate(([0.0], 0.1 + np.arange(40) * 1e-10, np.arange(1.0, 21.0)))
    buckets = Buckets(Chunks.of_array(x, 1), 0.0, 1e6, np.array([0.0, 1e6]), None)
    assert buckets.ranks_of(np.array([0.1]), None).tolist() == [UNKNOWN]
    plan = buckets.plan(np.array([0]), np.array([x.size]))
    assert any(cell is not None for cell in plan.cell)
    for cell in plan.cell:
        if cell is not None:
            ends = np.array([value_of(cell.key_lo), value_of(cell.key_hi)])
            ranks = [cell.start, cell.start + cell.count]
            assert buckets.ranks_of(ends, None).tolist() == ranks


@pytest.mark.parametrize("resolution, unit", [(0, 1.0), (0.5, 0.5)])
def test_spread_known_values(resolution, unit, monkeypatch):
    monkeypatch.setattr(buckets_module, "BUCKETS", 4096)
    monkeypatch.setattr(likely_module, "BUCKETS", 4096)
    # bucket k holds the numbers from k to k + 1: so many records, evenly spread
    x = np.repeat(np.arange(4096) + 0.5, 1 + np.arange(4096) % 3)
    lattice = Lattice.of((0.0, 4096.0), resolution, None)
    order = selected(np.random.default_rng(0).permutation(x), lattice, (0.0, 4096.0), probe=x)
    places = np.arange(9)
    expected = np.array([1 / 2, 5 / 4, 7 / 4, 13 / 6, 15 / 6, 17 / 6, 7 / 2, 17 / 4, 19 / 4])
    np.testing.assert_allclose(order.spread(places), expected / unit)
    spans = np.log((expected[[2, 8]] - expected[[0, 1]]) / unit)
    np.testing.assert_allclose(order.log_spans(np.array([0, 1, 2, 8])), spans)


CROWDS = {
    "normal": lambda rng: rng.normal(0.0, 5.0, 20_000),
    "two outliers": lambda rng: np.append(rng.normal(size=19_998), [1e300, -1e300]),
    "many outliers": lambda rng: np.append(rng.normal(size=19_900), rng.normal(size=100) * 1e12),
    "lognormal": lambda rng: rng.lognormal(0.0, 10.0, 20_000),
    "narrow": lambda rng: 1000.0 + rng.random(20_000),
    "wide": lambda rng: rng.uniform(-8e307, 8e307, 20_000),
}


@pytest.mark.parametrize("shape", CROWDS)
def test_buckets_are_filled_about_evenly(shape):
    x = CROWDS[shape](np.random.default_rng(0))
    share = Buckets(Chunks.of_array(x, 1), -8e307, 8e307, x[::5], None).count / x.size
    # the chance that two records share a bucket; outliers may be clamped, as far as they are few
    assert np.square(share[1:-1]).sum() < 4.0 / BUCKETS
    assert share[[0, -1]].max() < 1.1 * 2.0**-6


# --- dithered columns


def test_integer_columns_are_counted_by_point():
    ages = np.random.default_rng(8).integers(17, 91, 100_000)
    values, counts = np.unique(ages, return_counts=True)
    for column in (ages, ages.astype(np.int8), ages.astype(np.int32)):
        answers = dpq.joint_exp(column, [0.1, 0.5], epsilon=1, bounds=(0, 120), rng=9)
        expected = dpq.joint_exp(
            values, [0.1, 0.5], epsilon=1, bounds=(0, 120), counts=counts, rng=9
        )
        np.testing.assert_array_equal(answers, expected)


def test_dithered_columns_are_gone_through(monkeypatch):
    # the same lattice, once counted by point, once sorted and once selected: one dither
    x = np.round(np.random.default_rng(10).normal(0, 5, 3000), 1)
    x += np.random.default_rng(11).uniform(-0.004, 0.004, 3000)  # of one cell, but not tied
    x[::10] = 2.0
    monkeypatch.setattr(dithered_module, "EAGER_RECORDS", 0)
    monkeypatch.setattr(choice_module, "FEW_POINTS", 10**6)
    counted = Sample.of(x, BOUNDS, resolution=0.01).order(11)
    monkeypatch.setattr(choice_module, "FEW_POINTS", 1)
    monkeypatch.setattr(choice_module, "MANY_POINTS", 1)
    windows = np.array([0, 1400, 2000]), np.array([100, 300, 1])
    orders = [Sample.of(np.append(x, np.nan), BOUNDS, resolution=0.01).order(11)]
    monkeypatch.setattr(choice_module, "SORTED_RECORDS", 1_000)
    orders.append(Sample.of(x, BOUNDS, resolution=0.01).order(11))
    kinds = [type(order._coarse) for order in (counted, *orders)]
    assert kinds == [CountedOrder, SortedOrder, SelectedOrder]
    for order in orders:
        assert_same_intervals(order, counted, *windows)
        for point in (0, 9_990, 10_010, 12_000):
            below, fine = order.cell(point)
            expected_below, expected = counted.cell(point)
            assert below.tolist() == expected_below.tolist() and fine.tolist() == expected.tolist()
            assert (fine >> order.lattice.bits == point).all()


def test_selected_ranks_are_counted_once(monkeypatch):
    x = np.random.default_rng(12).normal(0, 5, 3000)
    x[:5] = np.nan, -np.inf, np.inf, 1e300, -1e300
    for resolution in (0.0, 0.5, 1e-5):
        lattice = Lattice.of(BOUNDS, resolution, None)
        order, kept = selected(x, lattice, BOUNDS), np.sort(x[~np.isnan(x)])
        reference = SortedOrder(kept, lattice, BOUNDS)
        if lattice is None:
            outputs = np.array([BOUNDS[0], -3.0, 0.5, *kept[100:110], BOUNDS[1]])
        else:
            last = lattice.points
            outputs = np.array([0, 1, last // 2, *lattice.encode(kept[100:110]), last - 1, last])
        assert order.ranks_of(outputs).tolist() == reference.ranks_of(outputs).tolist()
        monkeypatch.setattr(order, "_chunks", None)  # no other pass
        assert order.ranks_of(outputs[::-1]).tolist() == reference.ranks_of(outputs[::-1]).tolist()
        assert [order.rank_of(output) for output in outputs[1:].tolist()] == [
            reference.rank_of(output) for output in outputs[1:].tolist()
        ]


# --- batches


# A lattice of so many points that they are not counted one by one: later passes are needed.
FINE = 1e-7


def batches_of(x, sizes=(1, 10, 1000)):
    def source():
        start = 0
        for size in itertools.cycle(sizes):
            if start >= x.size:
                return
            yield x[start : start + size]
            start += size

    return source


@pytest.mark.parametrize("options", [{}, {"resolution": 0}, {"resolution": 0.25}], ids=str)
@pytest.mark.parametrize("workers", [1, 3])
def test_batches_have_the_law_of_their_records(options, workers, no_few):
    x = np.random.default_rng(12).normal(0, 5, 20_000)
    x[::50] = np.nan
    sample = Sample.from_batches(batches_of(x), BOUNDS, workers=workers, **options)
    answers = dpq.joint_exp(sample, [0.1, 0.9], epsilon=1, rng=13)
    expected = dpq.joint_exp(x, [0.1, 0.9], epsilon=1, bounds=BOUNDS, rng=13, **options)
    np.testing.assert_array_equal(answers, expected)


def test_batches_of_integers_fall_on_the_lattice_of_all():
    ages = np.random.default_rng(14).integers(17, 91, 5000)
    for options in ({}, {"resolution": 1}):
        sample = Sample.from_batches(batches_of(ages), (0, 120), **options)
        assert sample.lattice == Sample.of(ages.astype(float), (0, 120), **options).lattice
        answers = dpq.ind_exp(sample, [0.1, 0.9], epsilon=1, rng=15)
        expected = dpq.ind_exp(ages, [0.1, 0.9], epsilon=1, bounds=(0, 120), rng=15, **options)
        np.testing.assert_array_equal(answers, expected)


def test_empty_batches_come_first_at_no_cost(monkeypatch):
    """The buckets are chosen by the first values that there are."""
    probes, choose = [], buckets_module.choose_map
    monkeypatch.setattr(
        buckets_module, "choose_map", lambda *given: probes.append(given[2]) or choose(*given)
    )
    x = np.random.default_rng(14).normal(0, 5, 5000)
    Sample.from_batches(lambda: [x], BOUNDS, resolution=FINE)
    Sample.from_batches(lambda: [np.empty(0), np.empty(0), x], BOUNDS, resolution=FINE)
    np.testing.assert_array_equal(*probes)
    assert probes[0].size


def test_no_batches_are_an_empty_sample():
    sample = Sample.from_batches(lambda: iter(()), (0.0, 4.0), resolution=1.0, dither=False)
    law = dpq.joint_exp_law(sample, 0.5, epsilon=1)
    assert [law.log_prob(float(k)) for k in range(5)] == pytest.approx([-np.log(5.0)] * 5)


def test_arrow_sources_give_their_column(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="extra 'cli' is not installed")
    import pyarrow.dataset
    import pyarrow.parquet

    x = np.random.default_rng(16).normal(0, 5, 5000)
    table = pa.table({"other": np.arange(5000), "x": x})
    pa.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=700)
    expected = dpq.joint_exp(x, 0.5, epsilon=1, bounds=BOUNDS, rng=17)
    thrifty = pyarrow.dataset.ParquetFileFormat(pre_buffer=False)
    datasets = [
        pyarrow.dataset.dataset(tmp_path / "a.parquet", format=given)
        for given in ("parquet", thrifty)
    ]
    with pa.parquet.ParquetFile(tmp_path / "a.parquet") as file:
        for source in (table, *datasets, file):
            sample = Sample.from_batches(source, BOUNDS, column="x")
            assert dpq.joint_exp(sample, 0.5, epsilon=1, rng=17) == expected


def test_batches_follow_nan_policy():
    x = np.array([1.0, np.nan, 2.0])
    for options in ({}, {"resolution": 0.5}):
        with pytest.raises(ValueError, match=r"x must not contain NaN with nan_policy='raise'"):
            Sample.from_batches(lambda: [x], BOUNDS, nan_policy="raise", **options)


def test_a_source_that_changes_is_refused():
    rng = np.random.default_rng(18)
    passes = iter([rng.normal(size=5000), rng.normal(size=5000), rng.normal(size=5001) * 3])
    sample = Sample.from_batches(lambda: [next(passes)], BOUNDS, resolution=FINE)
    with pytest.raises(ValueError, match="the source of batches must give the same records at ev"):
        dpq.joint_exp(sample, 0.5, epsilon=1)


def test_a_source_that_grows_writes_nowhere_else():
    sizes = iter([10, 10, 1_000_000])
    sample = Sample.from_batches(lambda: [np.full(next(sizes), 0.125)], BOUNDS, resolution=FINE)
    with pytest.raises(ValueError, match="the source of batches must give the same records at ev"):
        dpq.joint_exp(sample, 0.5, epsilon=1)


def test_a_source_that_fails_shows_its_own_error():
    def source():
        yield np.arange(10.0)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        Sample.from_batches(source, BOUNDS)


@pytest.mark.parametrize(
    "source, options, error, message",
    [
        (5, {}, TypeError, "source must be callable, or have to_batches or iter_batches, got int"),
        (lambda: [[1.0]], {"column": "x"}, ValueError, "column must be left out for a callable"),
        (lambda: [["a"]], {}, TypeError, "x must hold real numbers, got str"),
    ],
)
def test_from_batches_rejects(source, options, error, message):
    with pytest.raises(error, match=message):
        Sample.from_batches(source, BOUNDS, **options)


def test_progress_shows_the_first_pass_only(capsys):
    pytest.importorskip("tqdm", reason="extra 'progress' is not installed")
    x = np.random.default_rng(19).normal(size=100)
    sample = Sample.from_batches(lambda: [x, x], BOUNDS, progress=True)
    assert "first pass: 2 batches" in capsys.readouterr().err
    dpq.joint_exp(sample, 0.5, epsilon=1)
    for kind in (Sample.from_batches, Records.from_batches):
        given = (BOUNDS,) if kind == Sample.from_batches else ()
        kind(lambda: [x, x], *given, nan_policy="raise")
    assert capsys.readouterr().err == ""


# --- bucket counts


@pytest.mark.parametrize("workers", [1, 3])
def test_histogram_counts_clamped_records(workers):
    x = np.append(np.random.default_rng(21).normal(0, 60, 5000), [np.nan, np.inf, -np.inf])
    clamped = np.clip(x[~np.isnan(x)], *BOUNDS)
    for sample in (
        Sample.of(x, BOUNDS, workers=workers),
        Sample.of(x, BOUNDS, counts=np.ones(x.size, dtype=int)),
        Sample.from_batches(batches_of(x), BOUNDS, workers=workers),
    ):
        expected = np.histogram(clamped, 50, BOUNDS)[0]
        np.testing.assert_array_equal(sample.histogram(50), expected)
        edges = [-100.0, -3.0, 0.0, 2.5, 100.0]
        np.testing.assert_array_equal(sample.histogram(edges), np.histogram(clamped, edges)[0])
        assert sample.histogram([-1.0, 0.0, 1.0]).sum() == clamped.size


def test_histogram_counts_weights():
    sample = Sample.of([1.0, 2.0, 50.0], (0.0, 10.0), counts=[3, 4, 5])
    assert sample.histogram(10).tolist() == [0, 3, 4, 0, 0, 0, 0, 0, 0, 5]


@pytest.mark.parametrize("lower", [0.0, -100.0, 99.0])
def test_geometric_counts_give_the_queries(lower):
    x = np.random.default_rng(22).normal(0, 60, 5000)
    clamped = np.clip(x, *BOUNDS)
    thresholds, counts = Sample.of(x, BOUNDS).geometric_counts(1.01, lower)
    assert thresholds[0] == lower and counts.sum() == x.size
    for i in range(1, thresholds.size):
        assert counts[:i].sum() == np.count_nonzero(np.maximum(clamped, lower) < thresholds[i])


@pytest.mark.parametrize("lower, size", [(0.0, 8), (99.0, 2), (100.0, 1024), (1e9, 1024)])
def test_geometric_counts_end_at_the_bound_if_it_is_above(lower, size):
    x = [-7.0, 30.0, 100.0, 1e300]
    thresholds, counts = Sample.of(x, BOUNDS).geometric_counts(2.0, lower)
    assert thresholds.size == counts.size == size
    expected = np.searchsorted(thresholds, np.maximum(np.minimum(x, 100.0), lower), "right") - 1
    assert counts.tolist() == np.bincount(expected, minlength=size).tolist()


# --- the kernel


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_keys_order_numbers_and_come_back(values):
    found = keys(np.array(values))
    for (a, key_a), (b, key_b) in itertools.product(zip(values, found, strict=True), repeat=2):
        if a < b:
            assert key_a < key_b
    assert [value_of(key) for key in found.tolist()] == values


@pytest.mark.parametrize(
    "make",
    [
        lambda: Map(-5.0, 5.0, 100, origin=-1.0, scale=30.0),
        lambda: Map(-5.0, 5.0, 100, origin=-1e308, scale=1e308),
        lambda: Map(-5.0, 5.0, 100, base=int(keys(np.array([-1.0]))[0]), shift=50),
        lambda: Map(-5.0, 5.0, 100, base=-(2**63), shift=57),
        lambda: Map(-5.0, 5.0, 1, base=2**62, shift=0),
    ],
)
def test_buckets_never_decrease(make):
    values = np.sort(np.append(np.random.default_rng(20).normal(0, 3, 3000), [np.inf, -np.inf]))
    buckets = [make().bucket(value) for value in values.tolist()]
    assert buckets == sorted(buckets)
    assert min(buckets) >= 0


def test_count_counts_buckets_and_missing():
    chosen = Map(0.0, 10.0, 5, origin=0.0, scale=0.5)
    total = np.zeros(6, dtype=np.int64)
    chosen.count(np.array([-1.0, 0.0, 1.9, 2.0, 9.9, 10.0, 11.0, np.nan, np.inf]), total)
    assert total.tolist() == [3, 1, 0, 0, 4, 1]


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1023, 1024, 1025, 70_000, 140_001])
@pytest.mark.parametrize("value", [None, 2.5])
def test_count_and_collect_in_one_go(size, value):
    rng = np.random.default_rng(size)
    x = np.where(rng.random(size) < 0.1, np.nan, rng.normal(5.0, 4.0, size))
    x = x if value is None else np.full(size, value)  # 2^16 of one value in each place, and more
    chosen = Map(0.0, 10.0, 5, origin=0.0, scale=0.5)
    buckets = np.array([chosen.bucket(number) for number in x.tolist()], dtype=np.int64)
    counts = np.bincount(buckets, minlength=6)
    wanted = np.array([0, 1, 0, 2, 0, 1], dtype=np.uint8)
    expected = np.clip(x[wanted[buckets] > 0], 0.0, 10.0)
    for room in (size, expected.size, expected.size // 2, 0):
        total, out = np.ones(6, dtype=np.int64), np.full(room + 1, -7.0)
        assert chosen.count(x, total, wanted, out[:room]) == expected.size
        assert total.tolist() == (counts + 1).tolist()
        kept = min(room, expected.size)
        np.testing.assert_array_equal(out[:kept], expected[:kept])
        assert (out[kept:] == -7.0).all()


def test_collect_keeps_to_its_room():
    chosen = Map(0.0, 10.0, 5, origin=0.0, scale=0.5)
    wanted = np.array([0, 1, 0, 0, 2, 0], dtype=np.uint8)
    lo, hi = keys(np.array([9.0])), keys(np.array([9.5]))
    values = np.tile([0.5, 2.5, 9.25, 9.75, 3.5], 1000)
    found, total = chosen.collect(wanted, lo, hi, values, 10_000)
    assert total == 3000 and np.array_equal(found, np.tile([2.5, 9.25, 3.5], 1000))
    found, total = chosen.collect(wanted, lo, hi, values, 1001)
    assert total == 3000 and np.array_equal(found, np.tile([2.5, 9.25, 3.5], 1000)[:1001])


def test_between_takes_closed_ranges_and_clamps():
    chosen = Map(0.0, 10.0, 5, origin=0.0, scale=0.5)
    values = np.tile([-np.inf, -1.0, 0.5, 2.0, 3.0, np.nan, 11.0, np.inf], 300)
    lo, hi = np.array([-np.inf, 2.0, 9.0]), np.array([0.0, 2.0, np.inf])
    found, total = chosen.between(lo, hi, values, 10_000)
    assert total == found.size == 1500
    assert np.unique(found, return_counts=True)[1].tolist() == [600, 300, 600]
    assert set(found) == {0.0, 2.0, 10.0}
    found, total = chosen.between(lo, hi, values, 7)
    assert total == 1500 and found.size == 7
    with pytest.raises(ValueError, match="lo and hi must have one entry for each range"):
        chosen.between(lo, hi[:1], values, 7)


def test_kernel_rejects_sizes_that_do_not_fit():
    chosen = Map(0.0, 10.0, 5, origin=0.0, scale=0.5)
    none = np.empty(0, dtype=np.int64)
    with pytest.raises(ValueError, match="total must have one entry for each bucket, and one"):
        chosen.count(np.zeros(3), np.zeros(5, dtype=np.int64))
    with pytest.raises(ValueError, match="wanted must have one entry for each bucket, and one"):
        chosen.collect(np.zeros(5, dtype=np.uint8), none, none, np.zeros(3), 3)
    with pytest.raises(ValueError, match="cell must have one entry for each bucket, and one"):
        chosen.refine(
            np.zeros(5, dtype=np.int32),
            none,
            none,
            none.astype(np.int32),
            none,
            np.zeros(3),
            none[None, :],
        )
    with pytest.raises(ValueError, match=r"buckets must be 1 to 2\^13, got 0"):
        Map(0.0, 1.0, 0, base=0, shift=0)
    with pytest.raises(ValueError, match=r"buckets must be 1 to 2\^13, got 8193"):
        Map(0.0, 1.0, BUCKETS + 1, base=0, shift=0)
    wanted = np.zeros(6, dtype=np.uint8)
    with pytest.raises(ValueError, match="wanted must have one entry for each bucket, and one"):
        chosen.count(np.zeros(3), np.zeros(6, dtype=np.int64), wanted[:5], np.empty(3))
    with pytest.raises(ValueError, match="key_lo and key_hi must have one entry for each range"):
        chosen.collect(wanted, none, np.zeros(1, dtype=np.int64), np.zeros(3), 3)
    for column in (np.zeros(3, dtype=np.float16), np.zeros(3, dtype=complex)):
        with pytest.raises(ValueError, match="takes columns of integers, float32 or float64"):
            chosen.count(column, np.zeros(6, dtype=np.int64))
    for column in (np.zeros(6)[::2], np.zeros((3, 2)).T, np.zeros(3, dtype=">f8")):
        with pytest.raises(ValueError, match="takes contiguous arrays of its own dtype"):
            chosen.count(column, np.zeros(6, dtype=np.int64))
    for rows in (np.zeros((3, 2))[::-1], np.broadcast_to(np.zeros(2), (3, 2))):
        with pytest.raises(ValueError, match="rows must ascend in memory, by whole values, and"):
            chosen.count(rows, np.zeros(6, dtype=np.int64))


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
