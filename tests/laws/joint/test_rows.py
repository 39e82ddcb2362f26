"""Rows some levels at a time: the same paths as of all rows, in less memory."""

import math
import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
from dpq_fast._kernels import intervals
from dpq_fast._kernels import path as path_kernel
from dpq_fast._kernels import scan as scan_kernel
from dpq_fast._kernels.scan import EACH_BLOCK, EACH_ENTRY, EACH_ROW, Scan
from dpq_fast.data.lattice import Lattice
from dpq_fast.laws.joint import path as path_law
from dpq_fast.laws.joint import rows as rows_law
from dpq_fast.laws.joint.path import PathLaw
from dpq_fast.laws.joint.plan import PLAN
from dpq_fast.laws.joint.rows import parts_of, rows_of
from dpq_fast.mechanisms import joint_exp
from dpq_fast.orders.sorted import SortedOrder

from .test_path import read_order

SMALLEST_P = 1e-6
BOUNDS = (0.0, 1000.0)
Q = np.arange(1, 41) / 41


def in_parts(part=1_400):
    return replace(PLAN, most_held=0, at_once=part)


def column(name, n):
    rng = np.random.default_rng(3)
    x = rng.normal(500.0, 90.0, n)
    if name == "ties":
        x = np.round(x / 5.0) * 5.0
    elif name == "an atom":
        x[: n // 3] = 480.0
    elif name == "far scales":
        x[: n // 2] = rng.uniform(1e-300, 2e-300, n // 2)
    return np.sort(np.clip(x, *BOUNDS))


def order_of(name, n, resolution):
    lattice = Lattice.of(BOUNDS, resolution, False)
    return SortedOrder(column(name, n), lattice, BOUNDS)


def rows_within(order, q, rate, window, plan=PLAN):
    ends = intervals.windows(q, order.n, window)[:2]
    return rows_of(order, q, rate, *ends, Scan.forward, plan=plan)


def both(order, q, rate, window):
    """All rows, and some at a time."""
    whole = rows_within(order, q, rate, window)
    parted = rows_within(order, q, rate, window, in_parts((2 * window + 1) * q.size // 8))
    assert len(parted._parts) > 2
    return whole, parted


@pytest.mark.parametrize("log_escape", [-math.inf, -0.7])
@pytest.mark.parametrize(
    ("name", "resolution", "rate", "window", "kind"),
    [
        ("even", 1e-4, 0.3, 80, EACH_ROW),
        ("even", 1e-4, 0.02, 150, EACH_ROW),
        ("even", 0.0, 0.3, 80, EACH_ROW),
        ("ties", 1.0, 0.3, 150, EACH_ROW),
        ("ties", 1.0, 0.01, 150, EACH_ROW),
        ("far scales", 0.0, 0.1, 100, EACH_BLOCK),
        ("far scales", 0.0, 0.1, 100, EACH_ENTRY),
    ],
)
def test_paths_are_the_same(name, resolution, rate, window, kind, log_escape, monkeypatch):
    for module in (scan_kernel, rows_law) if kind == EACH_ENTRY else ():
        monkeypatch.setattr(module, "KINDS", (EACH_ENTRY,))
    whole, parted = both(order_of(name, 4_000, resolution), Q, rate, window)
    assert parted.log_total == whole.log_total
    assert parted._kind == kind and (whole.scan.exponent is None) == (kind != EACH_ROW)
    escaped = runs = 0
    one, other = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(60):
        paths, intervals = parted.draw(log_escape, 1, one)
        expected, everything = whole.draw(log_escape, 1, other)
        if expected[0, 0] == everything.rank.size:
            escaped += 1
            assert (paths == intervals.rank.size).all()
            continue
        runs += int((np.diff(expected[0].view(np.intp)) == 0).sum())
        for drawn, known in zip(intervals, everything, strict=True):
            np.testing.assert_array_equal(drawn[paths[0]], known[expected[0]])
    assert one.bit_generator.state == other.bit_generator.state
    assert (escaped > 0) == (log_escape > -math.inf)
    assert runs > 0 or name != "ties" or rate > 0.1


def test_many_draws_at_once_have_the_law_of_all_rows():
    whole, parted = both(order_of("ties", 4_000, 1.0), Q, 0.01, 150)
    size, rng = 4_000, np.random.default_rng(2)
    ranks = []
    for rows in (parted, whole):
        paths, intervals = rows.draw(-math.inf, size, rng)
        ranks.append(intervals.rank[paths.view(np.intp)])
    # outputs at each level, and how many outputs come in runs
    for j in range(0, Q.size, 3):
        values = np.unique(np.concatenate(ranks)[:, j])
        table = [[(each[:, j] == value).sum() for value in values] for each in ranks]
        assert stats.chi2_contingency(table).pvalue > SMALLEST_P
    runs = [np.bincount((np.diff(each) == 0).sum(axis=1), minlength=Q.size) for each in ranks]
    often = runs[0] + runs[1] >= 10
    assert stats.chi2_contingency([each[often] for each in runs]).pvalue > SMALLEST_P


@pytest.mark.parametrize("parts_first", [False, True])
@pytest.mark.parametrize("way", ["single", "sorted", "selected"])
@pytest.mark.parametrize("name", ["even", "one huge gap", "an atom at each bound"])
def test_records_are_dithered_once(name, way, parts_first, monkeypatch):
    order, q = read_order(name, way, monkeypatch), np.arange(1, 41) / 41
    laws = {}
    for parts in (True, False) if parts_first else (False, True):
        plan = replace(in_parts(2_000) if parts else PLAN, worth=0)
        laws[parts] = PathLaw(order, q, 0.5, plan=plan)
    assert len(laws[True]._rows._parts) > 2
    assert laws[True].log_normalizer == laws[False].log_normalizer
    for seed in range(20):
        (points, ranks), (expected, of_them) = (
            laws[parts].draw_ranked(np.random.default_rng(seed), 1) for parts in (True, False)
        )
        np.testing.assert_array_equal(points, expected)
        np.testing.assert_array_equal(ranks, of_them)


@given(
    st.lists(st.integers(0, 500), min_size=1, max_size=40).map(sorted),
    st.integers(0, 60),
    st.integers(1, 400),
)
def test_parts_hold_all_that_steps_and_runs_need(first, window, part):
    first = np.array(first)
    last = first + window
    parts = parts_of(first, last, in_parts(part))
    assert parts[0].start == 0 and parts[-1].stop == first.size
    for before, after in pairwise(parts):
        last_done = before.stop - 1
        assert before.start < after.start <= last_done < after.stop - 1
        # what is left out ends before the first rank of that level
        assert (last[: after.start] < first[last_done]).all()
        assert last[after.start] >= first[last_done]
        given = (before.stop - after.start) * (window + 1)
        new = (after.stop - before.stop) * (window + 1)
        assert new <= max(part, given) + window
        assert new >= max(part, given) or after.stop == first.size
    sizes = [(each.stop - each.start) * (window + 1) for each in parts]
    assert len(parts) == 1 or 4 * max(sizes) <= first.size * (window + 1)


def test_few_rows_are_not_parted():
    first = np.arange(40) * 10
    plan = replace(PLAN, at_once=90, most_held=400)
    assert parts_of(first, first + 9, plan) == [slice(0, 40)]
    assert len(parts_of(first, first + 9, replace(plan, most_held=399))) > 3


def test_a_window_without_an_interval_has_no_rows():
    plan = in_parts()
    order = order_of("an atom", 4_000, 1.0)
    assert rows_within(order, Q, 0.3, 80, plan) is None
    law = PathLaw(order, Q, 0.3, plan=plan)
    assert law._rows is not None and law._log_escape <= -path_law.CERTIFICATE


def test_a_release_is_the_same_by_parts(monkeypatch):
    x = np.sort(np.random.default_rng(5).normal(500.0, 90.0, 200_000))
    q = np.arange(1, 101) / 101

    def release():
        return dpq.joint_exp(x, q, epsilon=10.0, bounds=BOUNDS, assume_sorted=True, rng=4)

    expected, made = release(), []
    monkeypatch.setattr(joint_exp, "PLAN", in_parts(1_500))
    draw = path_kernel.go_on
    monkeypatch.setattr(path_kernel, "go_on", lambda *of: made.append(of) or draw(*of))
    np.testing.assert_array_equal(release(), expected)
    assert len(made) > 1


def test_parts_take_less_memory():
    order, q = order_of("even", 200_000, 1e-4), np.arange(1, 401) / 401

    def peak(plan):
        tracemalloc.start()
        rows_within(order, q, 0.1, 200, plan).draw(-math.inf, 1, np.random.default_rng(1))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(in_parts(16_000)) < peak(PLAN) / 3


@pytest.mark.parametrize(
    ("left", "path", "message"),
    [
        ([3], [[0, 0]], "paths must be of intervals that there are"),
        ([1], [[0, 99]], "paths must be of intervals that there are"),
        ([2, 2], [[0, 0]], "paths must have all levels"),
        ([2], [[0, 0, 0]], "paths must have all levels"),
    ],
)
def test_paths_that_do_not_fit_are_refused(left, path, message):
    rows = rows_within(order_of("even", 50, 1.0), Q[[10, 20]], 0.1, 2)
    left, path = np.array(left, dtype=np.uintp), np.array(path, dtype=np.uintp)
    with pytest.raises(ValueError, match=message):
        path_kernel.go_on(rows.scan, 0, left, path, np.random.default_rng(1))
