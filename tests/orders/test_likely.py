"""What is collected with the first pass: it decides the passes, never the answer."""

import importlib
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import dpq_fast as dpq
from dpq_fast._kernels.select import Map
from dpq_fast.data import passes
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.passes import Chunks
from dpq_fast.data.sample import Sample
from dpq_fast.laws.joint import coarse
from dpq_fast.laws.joint.plan import PLAN
from dpq_fast.orders import buckets as buckets_module
from dpq_fast.orders import choice as choice_module
from dpq_fast.orders import likely as likely_module
from dpq_fast.orders import selected as selected_module
from dpq_fast.orders.buckets import Buckets
from dpq_fast.orders.counted import CountedOrder
from dpq_fast.orders.likely import (
    BUCKETS,
    Foreseen,
    Likely,
    Narrowing,
    SampledCounts,
    choose_map,
    noise_of,
    sampled,
)
from dpq_fast.orders.selected import SelectedOrder
from dpq_fast.orders.sorted import SortedOrder

from .test_selected import SHAPES, assert_same_intervals, in_order, some_windows

joint_exp = importlib.import_module("dpq_fast.mechanisms.joint_exp")

BOUNDS = (-100.0, 100.0)
Q = np.array([0.1, 0.5, 0.52, 0.9])

pytestmark = pytest.mark.usefixtures("no_few")  # whose kernel makes no passes

# Foresights that are wrong in one way or another: which buckets are collected.
WRONG = {
    "nothing": lambda wanted: 0 * wanted,
    "all": lambda wanted: 0 * wanted + 1,
    "the others": lambda wanted: 1 - wanted,
    "every other bucket": lambda wanted: (np.arange(BUCKETS + 1) % 2).astype(np.uint8),
    "no room": lambda wanted: wanted,
}


@pytest.fixture
def folds(monkeypatch):
    """The queries of all passes over records: a sample is none."""
    asked, fold = [], Chunks.fold

    def counted(self, query):
        if isinstance(query, SampledCounts):
            return fold(self, query)
        asked.append((type(query).__name__, sum(batch.size for batch in self._batches())))
        return fold(self, query)

    monkeypatch.setattr(Chunks, "fold", counted)
    return asked


@pytest.fixture
def eager(monkeypatch):
    """Short columns, too, are looked at, and much of them is collected."""
    monkeypatch.setattr(likely_module, "SAMPLED_SHARE", 2)
    monkeypatch.setattr(likely_module, "FORESEEN_SHARE", 0.25)


def foreseen_of(values, bounds, wanted):
    chosen = choose_map(*bounds, values[:100])
    return Foreseen(chosen, Likely(Q, 0.0, wanted.astype(np.uint8), 1.0))


@pytest.mark.parametrize("resolution", [None, 0, 3.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_order_statistics_do_not_depend_on_what_was_foreseen(shape, resolution, monkeypatch):
    monkeypatch.setattr(selected_module, "FULL", 20)  # so that small data has full buckets, too
    monkeypatch.setattr(buckets_module, "COLLECTED", 50)
    monkeypatch.setattr(buckets_module, "LEAST_ROOM", 0)
    monkeypatch.setattr(buckets_module, "ROOM_SLACK", 1.0)
    rng = np.random.default_rng(2)
    lattice = Lattice.of(BOUNDS, resolution, None)
    values = SHAPES[shape](400, rng)
    expected = in_order(values, lattice, BOUNDS)
    some = rng.random(BUCKETS + 1) < 0.5
    for wanted, spare in ((some, 0), (some, -393), (some | ~some, 0)):
        monkeypatch.setattr(buckets_module, "SPARE_ROOM", spare)  # or room for seven
        chunks = Chunks.of_array(values, 1)
        foreseen = foreseen_of(values, BOUNDS, wanted)
        buckets = Buckets(chunks, *BOUNDS, values[:100], lattice, foreseen)
        order = SelectedOrder(chunks, buckets, lattice, BOUNDS)
        assert order.n == expected.n
        assert_same_intervals(order, expected, *some_windows(order.n, rng))
        assert_same_intervals(order, expected, np.array([0]), np.array([order.n + 1]))


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("resolution", [None, 0])
def test_answers_do_not_depend_on_what_was_foreseen(wrong, workers, resolution, eager, monkeypatch):
    monkeypatch.setattr("dpq_fast.data.passes.MIN_SHARE", 1_000)
    x = np.random.default_rng(3).normal(0.0, 5.0, 70_000)

    def answer():
        return dpq.joint_exp(
            x, Q, epsilon=1, bounds=BOUNDS, resolution=resolution, rng=5, workers=workers
        )

    def wrong_one(likely):
        return likely._replace(wanted=WRONG[wrong](likely.wanted))

    expected, true = answer(), Foreseen.of
    used = []
    if wrong == "no room":
        monkeypatch.setattr(buckets_module, "LEAST_ROOM", 3)
        monkeypatch.setattr(buckets_module, "SPARE_ROOM", 0)
        monkeypatch.setattr(buckets_module, "ROOM_SLACK", 0.0)

    def foreseen(*arguments):
        found = true(*arguments)
        used.append(found._replace(likely=wrong_one(found.likely)))
        return used[-1]

    monkeypatch.setattr(Foreseen, "of", foreseen)
    np.testing.assert_array_equal(answer(), expected)
    assert len(used) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_foreseen_holds_the_levels(shape, eager):
    values = SHAPES[shape](50_000, np.random.default_rng(4))
    probe = values[::12]
    q = np.array([0.0, 0.25, 1.0])
    foreseen = Foreseen.of(values, *BOUNDS, probe, q)
    if foreseen.likely is None:  # to be counted, or collected by another pass
        assert shape not in ("normal", "narrow", "cauchy", "missing")
        return
    ordered = np.sort(np.clip(values[~np.isnan(values)], *BOUNDS))
    places = np.minimum((q * ordered.size).astype(int), ordered.size - 1)
    buckets = [foreseen.map.bucket(value) for value in ordered[places].tolist()]
    crowded = np.zeros(BUCKETS + 1, dtype=np.int64)
    foreseen.map.count(values, crowded)
    for bucket in buckets:
        assert foreseen.likely.wanted[bucket] or crowded[bucket] > values.size * 2.0**-8
    taken = crowded[foreseen.likely.wanted > 0].sum()
    assert taken <= 1.25 * foreseen.likely.share * values.size + 2**6
    assert foreseen.likely.wanted[-1] == 0


def test_nothing_is_foreseen_where_it_would_not_pay(eager):
    x = np.random.default_rng(5).normal(0.0, 5.0, 100_000)
    arguments = (*BOUNDS, x[::25])
    assert Foreseen.of(x, *arguments, np.array([0.5])).likely is not None
    assert Foreseen.of(x, *arguments, np.arange(1, 100) / 100).likely is None  # most of the records
    assert Foreseen.of(x[:31], *arguments, np.array([0.5])).likely is None  # too few for a sample
    assert Foreseen.of(x[::2], *arguments, np.array([0.5])).likely is None  # not as kernels read it
    assert Foreseen.of(np.full(100_000, np.nan), *arguments, np.array([0.5])).likely is None


# Columns that a sample of rows says much about, or little.
SPREAD = {
    "shuffled": lambda rng, n: rng.normal(0.0, 5.0, n),
    "sorted": lambda rng, n: np.sort(rng.normal(0.0, 5.0, n)),
    "trend": lambda rng, n: np.linspace(-20.0, 20.0, n) + rng.normal(0.0, 5.0, n),
    "by group": lambda rng, n: (
        np.repeat(rng.normal(0.0, 5.0, n // 500), 500) + rng.normal(0.0, 0.01, n)
    ),
    "missing": lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, rng.normal(0.0, 5.0, n)),
}


@pytest.fixture
def scattered(monkeypatch):
    """Short columns, too, are read by rows from everywhere."""
    monkeypatch.setattr(passes, "SCATTERED", 2**16)
    monkeypatch.setattr(passes, "ROW", 2**7)
    monkeypatch.setattr(passes, "MIN_SHARE", 2**10)
    monkeypatch.setattr(likely_module, "SCATTERED", 2**16)
    monkeypatch.setattr(likely_module, "FORESEEN_SHARE", 1.0)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", SPREAD)
def test_what_is_collected_narrows_down(name, workers, scattered, folds, monkeypatch):
    n = 400_000
    x = SPREAD[name](np.random.default_rng(12), n)[3:]  # a line of memory begins somewhere else
    tallies, fold = [], Chunks.fold

    def remembered(self, query):
        found = fold(self, query)
        if isinstance(query, buckets_module.BucketCounts):
            tallies.append(found)
        return found

    monkeypatch.setattr(Chunks, "fold", remembered)
    foreseen = Foreseen.of(x, *BOUNDS, x[::200], Q, 1e-3, workers)
    chunks = Chunks.of_array(x, workers)
    buckets = Buckets(chunks, *BOUNDS, x[::200], None, foreseen)
    (tally,) = tallies
    collected = sum(part.size for part in tally.values)
    wanted = tally.narrowing.wanted
    expected = np.zeros(BUCKETS + 1, dtype=np.int64)
    foreseen.map.count(x, expected)
    np.testing.assert_array_equal(tally.count, expected)
    # never more than was foreseen, and all records of what is still wanted
    assert (wanted <= foreseen.likely.wanted).all()
    held = np.bincount(foreseen.map.buckets(np.concatenate(tally.values)), minlength=BUCKETS + 1)
    np.testing.assert_array_equal(held[wanted > 0], expected[wanted > 0])
    if name == "by group":  # a sample of rows is one of 800 groups
        assert collected > 0.9 * expected[foreseen.likely.wanted > 0].sum()
    else:
        assert expected[wanted > 0].sum() < 0.6 * expected[foreseen.likely.wanted > 0].sum()
    order = SelectedOrder(chunks, buckets, None, BOUNDS)
    whole = in_order(x, None, BOUNDS)
    places = (Q * whole.n).astype(np.int64)
    folds.clear()
    assert_same_intervals(order, whole, places - 50, np.full(Q.size, 100))
    assert all(size == collected for _, size in folds)  # no other pass over the column


@pytest.mark.parametrize("size", [5_000, 5_003, 5_119, 131_072])
@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("first", [0, 1, 7])
def test_scattered_pieces_come_from_everywhere(size, parts, first, monkeypatch):
    monkeypatch.setattr(passes, "ROW", 16)
    x = np.arange(size + 8)[first:]
    lead = -x.ctypes.data % 64 // 8
    seen = []
    for part in range(parts):
        pieces = [*passes.scattered_pieces(x, part, parts)]
        seen += [piece.ravel() for piece in pieces]
        rows = [(piece[:, 0] - x[0] - lead) // 16 for piece in pieces if piece.ndim == 2]
        assert len(rows) == 16
        for some in (1, 2, 4, 8, 16):
            apart = np.diff(np.sort(np.concatenate(rows[:some])))
            assert (apart == 16 * parts // some).all()
        assert all(piece.ctypes.data % 64 == 0 for piece in pieces if piece.ndim == 2)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), x)


def test_samples_that_differ_more_than_independent_ones_are_seen():
    rng = np.random.default_rng(13)
    n, edges = 20_000, np.linspace(-20.0, 20.0, 101)[1:]

    def noise(one, other):
        some = np.searchsorted(np.sort(one), edges)
        return noise_of(some, some + np.searchsorted(np.sort(other), edges), np.array([0.3, 0.6]))

    independent = [noise(rng.normal(0, 5, n), rng.normal(0, 5, 3 * n)) for _ in range(200)]
    assert 0.7 < np.mean(independent) < 1.3
    runs = [
        noise(*(np.repeat(rng.normal(0, 5, n // 100), 100) for _ in range(2))) for _ in range(200)
    ]
    assert 70.0 < np.mean(runs) < 130.0


@pytest.mark.parametrize("alike", [1, 200])
def test_what_stays_much_is_not_collected(alike):
    """Once four pieces are counted, where records next to each other are alike, or are not."""
    rng = np.random.default_rng(14)
    n, buckets, q = 4_000, 100, np.array([0.2, 0.5, 0.8])
    wanted = np.append(np.ones(buckets), 0).astype(np.uint8)
    narrowing, counts = Narrowing(Likely(q, 0.0, wanted, 1.0)), np.zeros(buckets, dtype=np.int64)
    for piece in range(8):
        assert narrowing.wanted.any() or (alike > 1 and piece >= 4)
        groups = np.repeat(rng.integers(0, buckets, n // alike), alike)
        counts += np.bincount(groups, minlength=buckets)
        narrowing.narrow(counts)
    assert narrowing.wanted.sum() < 20
    assert narrowing.wanted[(q * buckets).astype(int)].all() == (alike == 1)


def test_one_thread_that_wants_nothing_is_enough():
    likely = Likely(np.array([0.5]), 0.0, np.ones(5, dtype=np.uint8), 0.5)
    query = buckets_module.BucketCounts(Map(0.0, 4.0, 4, origin=0.0, scale=1.0), 4, likely)
    one, other = query.start(), query.start()
    for state in (one, other):
        query.step(state, np.array([0.5, 1.5, 1.5]))
    assert [part.tolist() for part in one.values] == [[0.5, 1.5, 1.5]]
    other.narrowing.give_up()
    both = query.combine(one, other)
    assert both.count.tolist() == [2, 4, 0, 0, 0]
    assert both.values == [] and not both.narrowing.wanted.any()


@pytest.mark.parametrize("resolution", [None, 0, 1e-3])
def test_one_pass_does_for_a_release(resolution, eager, folds):
    x = np.random.default_rng(6).normal(0.0, 5.0, 100_000)
    for name in ("joint_exp", "ind_exp", "approx_quantiles"):
        folds.clear()
        getattr(dpq, name)(x, [0.3, 0.6], epsilon=1, bounds=BOUNDS, resolution=resolution, rng=1)
        assert [size for _, size in folds].count(x.size) == 1, name


@pytest.mark.parametrize("resolution", [None, 0])
def test_one_pass_does_for_small_budgets(resolution, folds, monkeypatch):
    """Cells of ranks are cut from what was collected; of more than some records, by counts."""
    monkeypatch.setattr(choice_module, "ALL_READ", 1)
    cells = replace(PLAN, short_entries=0, few_entries=0, least_ranks=0.0)
    monkeypatch.setattr(joint_exp, "PLAN", cells)
    monkeypatch.setattr(likely_module, "FORESEEN_SHARE", 1.0)
    x = np.random.default_rng(15).normal(0.0, 5.0, 200_000)
    law = dict(epsilon=0.2, bounds=BOUNDS, resolution=resolution)
    for most, names in ((2**22, {"TakenByKey", "TakenBetween"}), (0, {"BinCounts"})):
        monkeypatch.setattr(selected_module, "MOST_READ", most)
        folds.clear()
        dpq.joint_exp(x, [0.3, 0.6], rng=1, **law)
        assert folds[0] == ("BucketCounts", x.size)
        assert {name for name, _ in folds[1:]} <= names and len(folds) > 1
        assert most == 0 or all(size < x.size for _, size in folds[1:])
    assert isinstance(dpq.joint_exp_law(x, [0.3, 0.6], **law)._paths, coarse.CoarseLaw)


def test_what_is_all_asked_for_is_sorted(folds):
    x = np.random.default_rng(16).normal(0.0, 5.0, 100_000)
    for epsilon, passes_are_made in ((0.01, False), (5.0, True)):
        folds.clear()
        dpq.joint_exp(x, Q, epsilon=epsilon, bounds=BOUNDS, rng=1)
        assert bool(folds) == passes_are_made


@pytest.mark.parametrize("resolution", [0, 0.01])
def test_ties_without_dither_are_sorted(resolution, folds, monkeypatch):
    rng = np.random.default_rng(17)
    x = np.where(rng.random(150_000) < 0.5, 1.0, rng.normal(0.0, 5.0, 150_000))
    options = dict(epsilon=1, bounds=BOUNDS, resolution=resolution, dither=False)
    for most, large, kind in ((256, 16, SortedOrder), (256, 1, SortedOrder), (0, 1, None)):
        monkeypatch.setattr(choice_module, "MANY_SORTED", most)
        monkeypatch.setattr(choice_module, "ALL_READ", large)
        folds.clear()
        law = dpq.joint_exp_law(x, [0.2, 0.5], **options)
        assert isinstance(law._paths._order, kind or SelectedOrder)
        assert bool(folds) == (kind is None)
        assert law.sample(0).shape == (2,)
    tied = dpq.joint_exp_law(np.sort(x), [0.2, 0.5], assume_sorted=True, **options)
    for point in (0.5, 1.0, 1.01):
        pair = np.array([-1.0, point])
        assert law.log_prob(pair) == pytest.approx(tied.log_prob(pair), abs=1e-6)


@pytest.mark.parametrize("name", ["joint_exp", "ind_exp", "approx_quantiles"])
def test_points_are_counted_where_budgets_are_small(name, folds, monkeypatch):
    monkeypatch.setattr(choice_module, "ALL_READ", 1)
    x, q = np.random.default_rng(19).normal(0.0, 5.0, 150_000), np.arange(1, 10) / 10
    for epsilon, query in ((0.02, "PointCounts"), (50.0, "BucketCounts")):
        folds.clear()
        release = getattr(dpq, name)(x, q, epsilon=epsilon, bounds=BOUNDS, resolution=0.002, rng=1)
        assert folds[0] == (query, x.size)
        assert query != "PointCounts" or len(folds) == 1
        assert (np.diff(release) >= 0.0).all()


@pytest.mark.parametrize("dither", [True, False])
def test_what_is_mostly_asked_for_is_counted_or_sorted(dither, folds, monkeypatch):
    """Of columns that are not sorted whatever happens: by points, where these are few."""
    monkeypatch.setattr(choice_module, "ALL_READ", 1)
    x = np.random.default_rng(18).normal(0.0, 5.0, 150_000)
    options = dict(bounds=BOUNDS, resolution=0.002, dither=dither)  # 100,001 points
    for most, kind in ((256, SortedOrder), (0, SelectedOrder)):
        monkeypatch.setattr(choice_module, "MANY_SORTED", most)
        for epsilon, expected in ((0.01, kind), (5.0, SelectedOrder)):
            folds.clear()
            law = dpq.joint_exp_law(x, Q, epsilon=epsilon, **options)
            order = law._paths._order
            order = order._coarse if dither else order
            if dither and epsilon == 0.01:
                expected = CountedOrder
            assert isinstance(order, expected)
            assert (np.diff(law.sample(0)) >= 0.0).all()


def test_another_pass_is_made_where_the_sample_was_wrong(eager, folds):
    x = np.sort(np.random.default_rng(7).normal(0.0, 5.0, 100_000))
    apart = x.size // (x.size // 2 // 16)
    runs = np.arange(x.size) % apart < 16
    order = np.argsort(~runs, kind="stable")  # the sample sees the least records alone
    y = np.empty_like(x)
    y[order] = x
    answer = dpq.joint_exp(y, 0.5, epsilon=1, bounds=BOUNDS, rng=1)
    assert [size for _, size in folds] == [y.size, y.size]
    assert abs(np.searchsorted(x, answer) / x.size - 0.5) < 1e-3


def test_sorted_columns_are_not_counted(folds):
    x = np.sort(np.random.default_rng(8).normal(0.0, 5.0, 200_000))
    lattice_points = 2 * choice_module.NEAR_POINTS
    for options in (dict(assume_sorted=True), {}):
        bounds = (-lattice_points / 2.0, lattice_points / 2.0)
        Sample.of(np.rint(x), bounds, resolution=1, **options)
    assert folds == []


def test_lattices_of_many_points_are_counted_where_a_sample_is_shared(eager, folds, monkeypatch):
    monkeypatch.setattr(choice_module, "RECORDS_PER_POINT", 1)
    x = np.random.default_rng(9).normal(0.0, 5.0, 200_000)
    sample = Sample.of(x, BOUNDS, resolution=0.002)
    assert [name for name, _ in folds] == ["PointCounts"]
    dpq.joint_exp(sample, [0.3, 0.6], epsilon=1)
    assert len(folds) == 1
    dpq.joint_exp(x, [0.3, 0.6], epsilon=1, bounds=BOUNDS, resolution=0.002)
    assert [name for name, size in folds[1:] if size == x.size] == ["BucketCounts"]
    folds.clear()
    dpq.joint_exp(np.rint(x), [0.3, 0.6], epsilon=1, bounds=BOUNDS, resolution=0.002)  # tied
    assert [name for name, _ in folds] == ["PointCounts"]


def test_ranks_at_the_ends_of_windows_need_no_pass_of_their_own(folds):
    x = np.random.default_rng(10).normal(0.0, 5.0, 300_000)
    sample = Sample.of(x, BOUNDS, resolution=0.01)  # some 200 records of each point
    folds.clear()
    for seed in range(20):
        dpq.joint_exp(sample, [0.2, 0.5, 0.7], epsilon=1, rng=seed)
    assert {name for name, _ in folds} <= {"TakenByKey", "TakenBetween", "PartCounts"}


@pytest.mark.parametrize("skipped", [0, 3])
@pytest.mark.parametrize("run, runs", [(1, 1), (16, 10), (16, 129), (1024, 3), (700, 5), (7, 0)])
def test_samples_are_runs_equally_far_apart(run, runs, skipped):
    x = np.arange(4_000.0) if run < 1000 else np.arange(4_500.0)
    x = (x.astype("f4") if run == 16 else x)[skipped:]
    chosen, total = Map(0.0, 8_000.0, 8_000, origin=0.0, scale=1.0), np.ones(8_001, dtype=np.int64)
    chosen.sample(x, run, runs, total)
    apart, line = x.size // max(runs, 1), 64 // x.itemsize
    first = 0
    if apart >= run + line:  # with lines of memory
        first, apart = -x.ctypes.data % 64 // x.itemsize, apart // line * line
    starts = first + np.arange(runs) * apart
    expected = skipped + (starts[:, None] + np.arange(run)).ravel()
    np.testing.assert_array_equal(np.flatnonzero(total == 2), expected)
    assert total.max() <= 2


def test_samples_are_checked():
    chosen, total = Map(0.0, 8.0, 8, origin=0.0, scale=1.0), np.zeros(9, dtype=np.int64)
    for run, runs in ((0, 1), (1025, 1), (6, 2)):
        with pytest.raises(ValueError, match="run must be 1 to 1,024, and runs must not overlap"):
            chosen.sample(np.zeros(10), run, runs, total)
    with pytest.raises(ValueError, match="total must have one entry for each bucket, and one more"):
        chosen.sample(np.zeros(10), 2, 2, total[:-1])


# --- columns in their own types

TYPES = ["f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]


def column_of(dtype, size=70_000):
    rng = np.random.default_rng(11)
    if dtype == "f4":
        x = rng.normal(0.0, 5.0, size).astype("f4")
        x[:4] = np.nan, np.inf, -np.inf, -0.0
        return x
    info = (0, 2) if dtype == "?" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = rng.integers(max(info[0], -60), min(info[1], 60), size, endpoint=dtype != "?")
    x = x.astype(dtype)
    x[:2] = info
    return x


@pytest.mark.parametrize("dtype", TYPES)
def test_columns_of_all_types_answer_like_float64(dtype):
    x = column_of(dtype)
    plain = x.astype(float)
    common = dict(epsilon=1, rng=3)
    bounds = dict(bounds=(-50.0, 50.0))
    releases = (
        lambda x: dpq.joint_exp(x, Q, **bounds, **common),
        lambda x: dpq.joint_exp(x, Q, resolution=0.5, **bounds, **common),
        lambda x: dpq.joint_exp(x, Q, resolution=1, **bounds, **common),
        lambda x: dpq.ind_exp(x, Q, resolution=0, **bounds, **common),
        lambda x: dpq.agg_tree(x, Q, **bounds, **common),
        lambda x: dpq.unbounded_quantile(x, 0.5, **common),
        lambda x: dpq.sum(x, q=None, lower=-20.0, upper=20.0, **common),
        lambda x: dpq.count(x, **common),
    )
    for release in releases:
        np.testing.assert_array_equal(release(x), release(plain))


@pytest.mark.parametrize("dtype", [dtype for dtype in TYPES if dtype != "?"])
def test_kernels_read_columns_of_all_types(dtype):
    x = column_of(dtype, 5_000)
    plain = x.astype(float)
    chosen = Map(-40.0, 40.0, 100, origin=-40.0, scale=1.25)
    wanted = (np.arange(101) % 3 == 0).astype(np.uint8)
    found = []
    for column in (x, plain):
        total, out = np.zeros(101, dtype=np.int64), np.zeros(5_000)
        number = chosen.count(column, total, wanted, out)
        found.append((number, total.tolist(), out.tolist()))
    np.testing.assert_array_equal(found[0][2], found[1][2])
    assert found[0][:2] == found[1][:2]


@pytest.mark.parametrize("dtype", TYPES)
def test_columns_are_not_copied(dtype):
    x = np.tile(column_of(dtype, 2**16), 2**5)
    for release in (
        lambda: dpq.joint_exp(x, 0.5, epsilon=1, bounds=(0, 50)),
        lambda: dpq.sum(x, epsilon=1, q=None, lower=0, upper=50),
        lambda: dpq.agg_tree(x, 0.5, epsilon=1, bounds=(0, 50)),
    ):
        release()
        tracemalloc.start()
        try:
            release()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 2**21 * 8 / 2  # half of the column as float64


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int16])
def test_a_sample_is_one_of_so_many_whoever_looks(workers, kind):
    n = 2**20 + 7
    x = np.random.default_rng(4).normal(0.0, 20.0, n).astype(kind)
    chosen = choose_map(*BOUNDS, x[:100])
    counts = sampled(x, chosen, workers)
    looked_at = likely_module.SAMPLED_SHARE * int(counts.sum())
    assert counts.shape == (BUCKETS,)
    assert n - workers * likely_module.SAMPLED_SHARE * likely_module.SAMPLED_RUN < looked_at <= n
    whole = np.zeros(BUCKETS + 1, dtype=np.int64)
    chosen.count(x, whole)
    # shares of records up to each bucket, to within what a sample of 2^15 may be off by
    off = np.cumsum(counts) / counts.sum() - np.cumsum(whole[:-1]) / n
    assert np.abs(off).max() < 0.02


def test_a_column_that_has_to_be_converted_is_not_looked_at():
    x = np.random.default_rng(4).normal(size=2**18).astype(">f8")
    chosen = choose_map(*BOUNDS, x[:100])
    assert not sampled(x, chosen, 2).any()
