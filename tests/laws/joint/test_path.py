"""Windows made exact: the windowed law is the full law, the rare branch included."""

import math
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
from dpq_fast._kernels import intervals
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.passes import Chunks
from dpq_fast.data.sample import Sample
from dpq_fast.laws.joint import path as path_law
from dpq_fast.laws.joint.path import PathLaw
from dpq_fast.laws.joint.plan import PLAN
from dpq_fast.orders import choice as choice_module
from dpq_fast.orders.sorted import SortedOrder

SMALLEST_P = 1e-6


def small_order(records, points=6):
    lattice = Lattice.of((0.0, points - 1.0), 1.0, False)
    return SortedOrder(np.sort(np.array(records, dtype=np.int64)), lattice, (0.0, points - 1.0))


def all_log_probs(law, points, m):
    return {
        output: law.log_prob(np.array(output))
        for output in combinations_with_replacement(range(points), m)
    }


@given(
    st.lists(st.integers(0, 5), max_size=12),
    st.lists(st.floats(0, 1), min_size=1, max_size=3, unique=True).map(sorted),
    st.floats(0.01, 5.0),
    st.integers(0, 4),
)
def test_forced_windows_leave_the_law_unchanged(records, q, rate, window):
    order, q = small_order(records), np.array(q)
    full, forced = PathLaw(order, q, rate), PathLaw(order, q, rate, window=window)
    assert forced.log_normalizer == pytest.approx(full.log_normalizer, abs=1e-11)
    expected = all_log_probs(full, 6, q.size)
    assert np.logaddexp.reduce(list(expected.values())) == pytest.approx(0.0, abs=1e-11)
    for output, log_prob in all_log_probs(forced, 6, q.size).items():
        assert log_prob == pytest.approx(expected[output], abs=1e-11)


def test_windows_split_the_paths_without_overlap():
    order, q, rate = small_order([0, 0, 1, 3, 3, 3, 4, 5, 5]), np.array([0.2, 0.5, 0.9]), 0.2
    full = PathLaw(order, q, rate)
    for window in range(9):
        forced = PathLaw(order, q, rate, window=window)
        total = np.logaddexp(forced._log_inside, forced._outside.log_total)
        assert total == pytest.approx(full.log_normalizer, abs=1e-12)
        assert forced._outside.log_total <= forced._log_bound


@given(
    st.lists(st.integers(0, 5), max_size=12),
    st.lists(st.floats(0, 1), min_size=1, max_size=3, unique=True).map(sorted),
    st.floats(0.01, 5.0),
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
    st.integers(0, 9),
)
def test_windows_inside_of_the_reach_leave_the_law_unchanged(records, q, rate, windows, more):
    """Of each level its own."""
    order, q = small_order(records), np.array(q)
    full, window = PathLaw(order, q, rate), np.array(windows[: q.size])
    forced = PathLaw(order, q, rate, reach=int(window.max()) + more, window=window)
    assert forced._outside.log_total <= forced._log_bound + 1e-9
    assert np.logaddexp(forced._log_inside, forced._outside.log_total) == pytest.approx(
        full.log_normalizer, abs=1e-11
    )
    assert forced.log_normalizer == pytest.approx(full.log_normalizer, abs=1e-11)


def adversarial(name, n):
    rng = np.random.default_rng(5)
    x = rng.normal(0, 5, n)
    if name == "one huge gap":
        x[: n // 2] -= 60.0
    elif name == "a cluster":
        x[: n // 3] = rng.normal(0, 1e-3, n // 3)
    elif name == "an atom at each bound":
        x[: n // 50], x[n // 50 : n // 25] = -100.0, 100.0
    elif name == "heavy tails":
        x = np.exp(rng.normal(size=n))
    elif name == "geometric gaps":
        x = -100.0 + 200.0 * 0.99 ** np.arange(n)
    return np.sort(np.clip(x, -100.0, 100.0))


@pytest.mark.parametrize(
    "name",
    ["even", "one huge gap", "a cluster", "an atom at each bound", "heavy tails", "geometric gaps"],
)
@pytest.mark.parametrize(("m", "rate"), [(40, 0.25), (100, 1.0)])
def test_windows_inside_of_the_reach_are_certified(name, m, rate):
    lattice = Lattice.of((-100.0, 100.0), 1e-6, False)
    order = SortedOrder(adversarial(name, 20_000), lattice, (-100.0, 100.0))
    q = np.arange(1, m + 1) / (m + 1)
    law = PathLaw(order, q, rate)
    reach = path_law.first_window(order, q, rate)
    first, last, _, _ = intervals.windows(q, order.n, reach)
    entries = int((law._windows[1] - law._windows[0] + 1).sum())
    if name not in ("an atom at each bound", "geometric gaps"):  # ties wider than a window
        assert entries < 0.5 * int((last - first + 1).sum())
    assert law._log_escape <= math.log(2.0) - path_law.CERTIFICATE
    everything = PathLaw(order, q, rate, reach=reach, window=reach)
    assert law.log_normalizer == pytest.approx(everything._log_inside, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("window", [[0, 0], [1, 1], [0, 1]])
def test_draws_follow_the_law_where_paths_stray(window):
    order, q = small_order([0, 1, 1, 1, 2, 4, 4, 5]), np.array([0.25, 0.5])
    full = PathLaw(order, q, 0.05)
    forced = PathLaw(order, q, 0.05, reach=8, window=np.array(window))
    assert forced._log_beyond == -math.inf and forced._log_escape > math.log(0.2)
    expected = all_log_probs(full, 6, 2)
    counts = dict.fromkeys(expected, 0)
    for output in forced.draw(np.random.default_rng(1), 20_000).tolist():
        counts[tuple(output)] += 1
    weights = np.exp(list(expected.values()))
    found = stats.chisquare(list(counts.values()), 20_000 * weights / weights.sum())
    assert found.pvalue > SMALLEST_P


@pytest.mark.parametrize("window", [0, 1, 2])
@pytest.mark.parametrize("bits", [0, 2])
def test_draws_follow_the_law_through_the_rare_branch(window, bits):
    records = [0, 1, 1, 1, 2, 4, 4, 5]
    if bits:
        lattice = Lattice.of((0.0, 5.0), 1.0, True)
        lattice = Lattice(
            **{name: getattr(lattice, name) for name in lattice.__slots__} | {"bits": 2}
        )
        fine = np.sort(np.array(records) * 4 + np.arange(8) % 4)
        order = SortedOrder(fine, lattice, (0.0, 5.0), fine=True)
    else:
        order = small_order(records)
    q = np.array([0.25, 0.5])
    full, forced = PathLaw(order, q, 0.05), PathLaw(order, q, 0.05, window=window)
    assert forced._log_escape > math.log(0.2)  # the rare branch is not rare here
    drawn = forced.draw(np.random.default_rng(window), 8_000) >> bits
    expected = all_log_probs(full, 6, 2)
    counts = dict.fromkeys(expected, 0)
    for output in drawn.tolist():
        counts[tuple(output)] += 1
    law = np.exp(list(expected.values())) * len(drawn)
    observed = np.array(list(counts.values()))
    often = law >= 5
    wanted = np.append(law[often], law[~often].sum())
    found = np.append(observed[often], observed[~often].sum())
    keep = wanted > 0
    assert stats.chisquare(found[keep], wanted[keep]).pvalue > SMALLEST_P


@pytest.mark.parametrize("point", [0, 3, 5])
def test_windows_that_hold_no_interval_are_exact_too(point):
    # every record at one point: the windows around the targets hold nothing of positive width
    order, q = small_order([point] * 40), np.array([0.5])
    full, forced = PathLaw(order, q, 0.02), PathLaw(order, q, 0.02, window=2)
    assert forced._rows is None
    assert all_log_probs(forced, 6, 1) == pytest.approx(all_log_probs(full, 6, 1), abs=1e-12)
    counts = np.bincount(forced.draw(np.random.default_rng(0), 5_000)[:, 0], minlength=6)
    law = np.exp([full.log_prob(np.array([point])) for point in range(6)]) * 5_000
    assert stats.chisquare(counts, law).pvalue > SMALLEST_P


@pytest.mark.parametrize("m", [1, 5])
@pytest.mark.parametrize("rate", [0.05, 0.25, 2.0])
def test_windows_are_certified_and_small(m, rate):
    x = np.sort(np.random.default_rng(1).normal(0, 5, 50_000))
    lattice = Lattice.of((-100.0, 100.0), None, None)
    q = np.arange(1, m + 1) / (m + 1)
    law = PathLaw(SortedOrder(x, lattice, (-100.0, 100.0)), q, rate)
    assert law._log_escape <= -path_law.CERTIFICATE
    scan = law._rows.scan
    assert scan.hi[0] - scan.lo[0] < 5_000
    everything = PathLaw(SortedOrder(x, lattice, (-100.0, 100.0)), q, rate, window=x.size)
    assert everything._log_escape == -math.inf
    assert law.log_normalizer == pytest.approx(everything.log_normalizer, abs=1e-10)


@pytest.mark.parametrize("m, rate", [(9, 0.5), (64, 0.3), (99, 0.01), (300, 0.05), (1_000, 2.0)])
def test_windows_are_as_wide_as_the_best_slope_takes(m, rate):
    q = np.arange(1, m + 1) / (m + 1)
    window = path_law.first_narrow(q, 10**9, rate, math.ceil(5_000 / rate), PLAN)
    slopes, nats = np.linspace(0.01, 0.99, 197), path_law.CERTIFICATE + PLAN.spare
    best = ((nats - m * np.log1p(-slopes * slopes)) / (2.0 * slopes)).min()
    assert window * rate == pytest.approx(best, rel=1e-2, abs=rate)


def test_windows_of_other_levels_are_refused():
    with pytest.raises(ValueError, match="each level needs a window"):
        intervals.windows(np.array([0.3, 0.6]), 9, np.array([1]))


def test_windows_widen_where_the_first_guess_was_wrong(monkeypatch):
    x = np.sort(np.random.default_rng(2).normal(0, 5, 5_000))
    lattice = Lattice.of((-100.0, 100.0), None, False)
    order, q = SortedOrder(x, lattice, (-100.0, 100.0)), np.array([0.3, 0.6])
    expected = PathLaw(order, q, 0.25)
    windows, run = [], PathLaw._run
    monkeypatch.setattr(path_law, "first_window", lambda order, q, rate, plan: 1)
    monkeypatch.setattr(
        PathLaw, "_run", lambda self, window: (windows.append(window), run(self, window))
    )
    widened = PathLaw(order, q, 0.25)
    assert widened._log_escape <= -path_law.CERTIFICATE
    assert len(windows) == 2 and 126 <= windows[1] < 134  # 126 would do
    assert widened.log_normalizer == pytest.approx(expected.log_normalizer, abs=1e-11)


def read_order(name, way, monkeypatch):
    """An order of some records, by one of the ways to it: dithered in the last ones."""
    monkeypatch.setattr(choice_module, "SORTED_RECORDS", 0)
    x = adversarial(name, 20_000)
    if way == "selected":
        x = np.random.default_rng(8).permutation(x)
    options = dict(resolution=1e-3) if way != "single" else dict(resolution=1e-6, dither=False)
    return Sample.of(x, (-100.0, 100.0), **options).order(np.random.default_rng(7))


def refuse(law, strayed):
    """As if an order would read all records."""
    return False


def without_records(order, monkeypatch):
    """As if intervals took less than records do."""
    monkeypatch.setattr(type(order), "records", lambda *_: None)


@pytest.mark.parametrize("some_first", [False, True])
@pytest.mark.parametrize("way", ["single", "sorted", "selected"])
@pytest.mark.parametrize(
    "name", ["even", "one huge gap", "a cluster", "an atom at each bound", "heavy tails"]
)
def test_levels_read_some_after_another_have_the_same_law(name, way, some_first, monkeypatch):
    order, q = read_order(name, way, monkeypatch), np.arange(1, 41) / 41
    assert order.scans == (way == "selected")
    ways = {"at once": 2**19, "some": 1_500, "apart": 2**19, "by intervals": 1_500, "held": 2**19}
    laws, add_borders = {}, PathLaw._add_borders
    for each in reversed(ways) if some_first else ways:  # dither is drawn as asked for, and kept
        with monkeypatch.context() as patched:
            plan = replace(
                PLAN, worth=0, at_once=ways[each], most_held=2**20 if each == "held" else 0
            )
            patched.setattr(PathLaw, "_add_borders", add_borders if each == "apart" else refuse)
            if each == "apart" and way != "selected":  # whose windows are collected
                patched.setattr(
                    PathLaw, "_add_all", lambda law, strayed, _: add_borders(law, strayed)
                )
            if each == "by intervals":
                without_records(order, patched)
            laws[each] = PathLaw(order, q, 0.5, lambda scan: scan.forward(), plan=plan)  # all rows
    whole = laws["at once"]
    _, _, _, count = intervals.windows(q, order.n, path_law.first_window(order, q, 0.5))
    if way != "single" or name != "an atom at each bound":  # a tie wider than a window
        assert whole._rows.intervals.rank.size < 0.7 * count.sum()
    for law in laws.values():
        np.testing.assert_array_equal(law._windows, whole._windows)
        assert law._log_inside == whole._log_inside
        # cells at the border of what is within reach may be read as far as they go
        assert law._log_escape == pytest.approx(whole._log_escape, abs=1e-9)
        np.testing.assert_array_equal(
            law.draw(np.random.default_rng(1), 20), whole.draw(np.random.default_rng(1), 20)
        )


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30, unique=True).map(sorted),
    st.integers(1, 10**9),
    st.integers(0, 10**7),
    st.integers(1, 10**6),
)
def test_levels_are_read_each_once_and_few_ranks_at_a_time(q, n, reach, at_once):
    law = object.__new__(PathLaw)
    law._q, law._order = np.array(q), small_order([])
    law._order.n = n
    law._plan = replace(PLAN, at_once=at_once)
    some = list(law._some_at_once(reach))
    assert [j for levels in some for j in range(len(q))[levels]] == list(range(len(q)))
    for levels in some:
        _, _, _, count = intervals.windows(law._q[levels], n, reach)
        # what the first and the last target have within reach comes on top
        assert int(count.sum()) <= max(at_once, 4 * reach) + 4 * reach + 20


@pytest.mark.parametrize("window", [0, 3])
def test_windows_without_an_interval_are_bounded_by_what_is_within_reach(window, monkeypatch):
    order, q = small_order([0] * 7 + [1] * 11, points=2), np.array([0.776, 0.778])
    by_records = PathLaw(order, q, 2.0, reach=8, window=window)
    without_records(order, monkeypatch)
    by_intervals = PathLaw(order, q, 2.0, reach=8, window=window)
    assert by_records._log_bound == by_intervals._log_bound
    for law in (by_records, by_intervals):
        assert law._rows is None and law._outside.log_total <= law._log_bound


def test_levels_one_by_one_share_the_pass_that_was_made_for_all(monkeypatch):
    monkeypatch.setattr(choice_module, "SORTED_RECORDS", 0)
    x = np.random.default_rng(3).normal(0.0, 5.0, 200_000)
    passes, fold = [], Chunks.fold

    def counted(self, query):
        passes.append(sum(batch.size for batch in self._batches()))
        return fold(self, query)

    monkeypatch.setattr(Chunks, "fold", counted)
    dpq.approx_quantiles(x, np.arange(1, 8) / 8, epsilon=0.1, bounds=(-1e6, 1e6), rng=1)
    assert passes.count(x.size) <= 3  # a sample, counts and windows of all parts


def normal_order(n):
    x = np.sort(np.random.default_rng(3).normal(0.0, 5.0, n))
    return SortedOrder(x, Lattice.of((-100.0, 100.0), None, False), (-100.0, 100.0))


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("n, m", [(600, 1), (600, 3), (600, 9), (20_000, 1), (20_000, 9)])
def test_first_guess_at_a_window_is_enough_and_little_more(n, m, rate):
    order, q = normal_order(n), np.arange(1, m + 1) / (m + 1)
    guess = path_law.first_window(order, q, rate)
    log_mass = PathLaw(order, q, rate).log_normalizer
    # V exp(-2 rate W) is 2^-64 of the mass; to 3 nats per level
    excess = 64.0 * math.log(2.0) + order.log_volume(m) - log_mass
    assert min(excess, 2.0 * rate * n) <= 2.0 * rate * guess <= excess + 3.0 * m + 2.0 * rate


@pytest.mark.parametrize("n", [1, 510, 511, 512, 513, 5000])
def test_first_windows_are_those_of_each_level_alone(n):
    order = normal_order(n)
    q, rates = np.array([0.1, 0.5, 0.5, 0.99]), np.array([0.3, 0.5, 5.0, 0.4])
    windows = path_law.first_windows(order, q, rates)
    alone = [
        path_law.first_window(order, q[j : j + 1], rate) for j, rate in enumerate(rates.tolist())
    ]
    assert windows.tolist() == alone
    assert (windows < n).any() == (n >= 512)  # few records are worth no guess


def test_log_prob_of_a_density_integrates_to_one():
    order = SortedOrder(np.array([0.1, 0.4, 0.4, 0.7]), None, (0.0, 1.0))
    law = PathLaw(order, np.array([0.3, 0.6]), 0.8)
    cells = np.array([0.05, 0.25, 0.55, 0.85])  # one number inside each interval
    width = np.diff([0.0, 0.1, 0.4, 0.7, 1.0])
    total = sum(
        math.exp(law.log_prob(cells[[i, j]])) * width[i] * width[j] / (2 if i == j else 1)
        for i in range(4)
        for j in range(i, 4)
    )
    assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize(
    "x, options",
    [
        (np.empty(0), {}),
        (np.empty(0, dtype=int), {}),
        (np.full(3, np.nan), {}),
        (np.full(70_000, np.nan), {}),
        (np.ones(1), {"counts": [0]}),
        (np.empty(0), {"resolution": 0}),
        (np.ones(1), {}),
    ],
    ids=["empty", "no integers", "missing", "many missing", "no counts", "numbers", "one record"],
)
def test_many_levels_of_next_to_no_records_have_an_answer(x, options, neighbors):
    q = np.linspace(0.001, 0.999, 600)
    for release in (dpq.joint_exp, dpq.ind_exp, dpq.approx_quantiles):
        answers = release(x, q, epsilon=1.0, bounds=(0, 10), neighbors=neighbors, **options)
        assert answers.shape == q.shape and (0 <= answers).all() and (answers <= 10).all()


def test_many_levels_of_no_batches_have_an_answer():
    sample = Sample.from_batches(lambda: [], (0.0, 10.0))
    answers = dpq.joint_exp(sample, np.linspace(0.001, 0.999, 600), epsilon=1.0)
    assert (0 <= answers).all() and (answers <= 10).all()


def test_a_reach_of_all_that_counts_can_hold_has_no_cells():
    guess = path_law.first_narrow(np.array([0.25, 0.75]), 2**52, 1 / 3, 2**51, PLAN)
    assert guess == 2**51


@pytest.mark.parametrize("shape", ["normal", "cauchy", "narrow"])
def test_reaches_are_foreseen_before_any_record_is_seen(shape):
    """To within a factor that costs little, and hardly too short."""
    rng, n = np.random.default_rng(20), 300_000
    draw = {"normal": rng.normal, "cauchy": rng.standard_cauchy, "narrow": rng.normal}[shape]
    x = np.clip(draw(size=n) * (1e-3 if shape == "narrow" else 5.0), -100.0, 100.0)
    order = Sample.of(np.sort(x), (-100.0, 100.0), assume_sorted=True).order(0)
    for m in (1, 3, 30, 100):
        q = np.arange(1, m + 1) / (m + 1)
        for rate in (0.0025, 0.025, 0.25, 2.5):
            found = path_law.first_window(order, q, rate)
            assert found / 1.1 <= path_law.likely_reach(n, m, rate) <= max(4.0 * found, 100.0)
            rates = np.full(m, 2.0 * rate)
            rates[0] *= 3.0
            singles = path_law.first_windows(order, q, rates / 2.0)
            assert singles.max() <= path_law.likely_reaches(n, rates)


def test_windows_stay_narrow_where_gaps_nearly_pay_for_the_way_to_them(monkeypatch):
    """Each output in the widest gaps gains 11 nats, and pays 20 to be there."""
    n, m, rate = 8_000, 400, 0.5
    x = np.sort(np.random.default_rng(5).normal(0.0, 5.0, n))
    q, bounded, bound = np.arange(1, m + 1) / (m + 1), [], PathLaw._log_strayed
    monkeypatch.setattr(
        PathLaw,
        "_log_strayed",
        lambda law, *windows: bounded.append(windows) or bound(law, *windows),
    )
    law = PathLaw(SortedOrder(x, None, (-100.0, 100.0)), q, rate)
    first, last = law._windows
    assert (last - first).sum() < 0.25 * n * m
    assert len(bounded) > 1 and law._certified(law._log_bound - math.log(2.0))
    # rows are of the windows that the bound is for
    window, reach = bounded[-1]
    np.testing.assert_array_equal(law._windows, intervals.windows(q, n, window)[:2])
    assert law._log_bound >= bound(law, window, reach)


def test_windows_are_not_doubled_where_that_does_not_do(monkeypatch):
    """Many more records are tied than windows hold, and each bound takes longer than the last."""
    n, m, rate = 5_000, 300, 0.5
    x = np.sort(np.random.default_rng(5).binomial(80, 0.5, n)).astype(float)
    q, bounded, bound = np.arange(1, m + 1) / (m + 1), [], PathLaw._log_strayed
    monkeypatch.setattr(
        PathLaw,
        "_log_strayed",
        lambda law, *windows: bounded.append(windows) or bound(law, *windows),
    )
    order = SortedOrder(x, Lattice.of((0.0, 80.0), 1.0, False), (0.0, 80.0))
    law = PathLaw(order, q, rate, guess=n)
    assert len(bounded) == 1 and 4 * bounded[0][0].max() < n
    assert law._log_bound == -math.inf  # rows are of all ranks


@pytest.mark.parametrize("rate", [3e-9, 2e-7, 4e-6])
def test_ranks_may_be_billions_apart(rate):
    """Of what they lose there is a table up to 2^30, of several parts."""
    values, q, bounds = [3, 5, 6, 11, 13], np.array([0.2, 0.7]), (0, 15)
    counts = [2_000_000, 2_097_151, 700_000_001, 1, 3_000_000_000]
    options = dict(bounds=bounds, resolution=1, dither=False, counts=counts)
    law = dpq.joint_exp_law(values, q, epsilon=4.0 * rate, **options)
    n, points = sum(counts), range(16)
    below = [sum(c for v, c in zip(values, counts, strict=True) if v < o) for o in points]
    tuples = list(combinations_with_replacement(points, 2))
    log_weights = []
    for a, b in tuples:
        steps = [below[a] - 0.2 * n, below[b] - below[a] - (0.7 - 0.2) * n, 0.7 * n - below[b]]
        log_weights.append(-rate * math.fsum(map(abs, steps)))
    expected = np.array(log_weights) - np.logaddexp.reduce(log_weights)
    found = [law.log_prob(np.array(pair, dtype=float)) for pair in tuples]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * max(1.0, rate * n))
