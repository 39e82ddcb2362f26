"""A few records, released by one call of a kernel: the draws of the laws, seed by seed.

But where there are so many that windows leave some of them out: then draws follow the law.
"""

import math
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
from conftest import assert_draws_follow, fit, lattice_of

import dpq_fast as dpq
import enumeration
from dpq_fast import reference
from dpq_fast._kernels.groups_release import Releases
from dpq_fast._kernels.scan import Scan
from dpq_fast.laws.joint import few
from dpq_fast.laws.joint.outside import Outside
from dpq_fast.laws.joint.path import PathLaw
from dpq_fast.laws.joint.plan import PLAN
from dpq_fast.laws.joint.rows import points_inside, rows_of
from dpq_fast.mechanisms.joint_exp import JointExpLaw
from dpq_fast.orders.order import log_volume
from dpq_fast.orders.sorted import SortedOrder

RNG = np.random.default_rng(11)
NORMAL = RNG.normal(0.0, 5.0, 100)
COLUMNS = {
    "none": np.empty(0),
    "one": np.array([3.25]),
    "two": np.array([7.0, -0.0]),
    "normal": NORMAL,
    "ordered": np.sort(NORMAL),
    "tied": np.round(NORMAL / 4.0) * 4.0,
    "all tied": np.full(50, 2.0),
    "zeros": np.array([0.0, -0.0, 0.0, -0.0]),
    "far out": np.array([np.inf, -np.inf, 1e300, -1e300, 100.0, -100.0]),
    "missing": np.where(np.arange(100) % 3 == 0, np.nan, NORMAL),
    "all missing": np.full(5, np.nan),
    "integers": np.round(NORMAL).astype(np.int8),
    "strided": np.repeat(NORMAL, 2)[::2],
    "gaps": np.array([1e-300, 1e-200, 0.5, 99.0]),
}
FORMS = [
    {},
    {"resolution": 0},
    {"resolution": 1},
    {"resolution": 1, "dither": False},
    {"bounds": (-3.0, 4.0)},
    {"resolution": 0, "bounds": (-1e307, 1e307)},
    {"epsilon": 1e5},
]
LEVELS = [0.5, 0.0, [0.2, 0.5, 0.9], [1.0, 0.1, 0.1]]


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("function", ["joint_exp", "ind_exp"])
def test_few_records_are_drawn_as_by_their_law(function, name, monkeypatch):
    release, law_of = getattr(dpq, function), getattr(dpq, f"{function}_law")
    for form in FORMS:
        options = dict(epsilon=1.0, bounds=(-100.0, 100.0)) | form
        if function == "ind_exp":
            options.pop("dither", None)
        for q in LEVELS:
            rng = np.random.default_rng(3)
            first = release(COLUMNS[name], q, rng=rng, **options)
            after = rng.bit_generator.state
            with monkeypatch.context() as changed:
                changed.setattr(few, "PLAN", replace(PLAN, most_few=-1))
                rng = np.random.default_rng(3)
                again = release(COLUMNS[name], q, rng=rng, **options)
            assert np.array_equal(first, again), (form, q)
            assert rng.bit_generator.state == after  # not one number more
            if function == "ind_exp" or options.get("dither") is False:
                law = law_of(COLUMNS[name], q, **options)
                assert np.array_equal(law.sample(np.random.default_rng(3)), first)


def test_few_records_make_no_law(monkeypatch):
    def refused(*_):
        raise AssertionError("a law was made")

    monkeypatch.setattr(JointExpLaw, "__init__", refused)
    options = dict(epsilon=1.0, bounds=(-100.0, 100.0))
    most = PLAN.most_few
    for n in (0, 1, most):
        dpq.joint_exp(NORMAL[np.arange(n) % 100], [0.2, 0.5, 0.9], **options)
    for column, form in (
        (np.zeros(most + 1), {}),
        (np.arange(most) % 100, {"epsilon": 1e-3}),
        (NORMAL, {"prior": "uniform", "confidence": 0.9}),
        (NORMAL[:5], {"counts": [1] * 5}),
        (dpq.Sample.of(NORMAL[:5], (-100.0, 100.0)), {}),
    ):
        with pytest.raises(AssertionError, match="a law was made"):
            dpq.joint_exp(column, [0.2, 0.5, 0.9], **options | form)


def test_columns_that_can_be_read_once_are_read_once():
    asked = []

    def column():
        asked.append(1)
        return NORMAL

    for n_is_few in (True, False):
        asked.clear()
        levels = 0.5 if n_is_few else [0.01 * j for j in range(1, 100)]
        dpq.joint_exp(column, levels, epsilon=1.0, bounds=(-100.0, 100.0), rng=0)
        assert len(asked) == 1


@pytest.mark.parametrize("function", ["joint_exp", "ind_exp", "quantile"])
def test_missing_records_of_a_few_are_refused_where_there_must_be_none(function):
    release = getattr(dpq, function)
    options = dict(epsilon=1.0, bounds=(-100.0, 100.0), nan_policy="raise")
    for column in ([np.nan], [1.0, np.nan], [np.nan, 1.0, 0.0]):
        with pytest.raises(ValueError, match="x must not contain NaN with nan_policy='raise'"):
            release(np.array(column), 0.5, **options)
    assert -100.0 <= release(np.array([1.0, 0.0]), 0.5, **options) <= 100.0


# Windows

DISTINCT = np.sort(np.random.default_rng(1).permutation(40)[:30]).astype(float)


def draws_inside(records, q, rate, lattice, spare, monkeypatch, size=6_000):
    """Outputs drawn inside of windows that leave out what weighs less by so many nats."""
    bounds = (0.0, float(lattice.points - 1))
    monkeypatch.setattr(few, "spare_of", lambda *_: spare)
    rng, q = np.random.default_rng(2), np.array(q)
    outputs = [few.draw_path(records, q, rate, bounds, lattice, rng) for _ in range(size)]
    return [tuple(output.astype(int).tolist()) for output in outputs]


@pytest.mark.parametrize("spare", [-2.0, 0.0, 3.0, 10.0])
@pytest.mark.parametrize(
    ("q", "rate", "records"),
    [
        ([0.5], 0.4, DISTINCT),
        ([0.25, 0.6], 0.8, DISTINCT[:20]),
        ([0.0, 1.0], 1.0, DISTINCT[:20]),
        ([0.25, 0.6], 0.8, np.repeat(DISTINCT[:10], 2)),
    ],
)
def test_draws_inside_of_windows_follow_the_law(q, rate, records, spare, monkeypatch):
    points = int(records[-1]) + 3
    draws = draws_inside(records, q, rate, lattice_of(points), spare, monkeypatch, 3_000)
    law = enumeration.joint_exp(records.astype(int).tolist(), points, q, rate)
    assert_draws_follow(draws, law)


def test_draws_inside_of_windows_follow_the_law_over_all_dithers(monkeypatch):
    records, q, rate, bits = [0, 1, 1, 3, 5, 5], [0.3, 0.6], 1.5, 1
    draws = draws_inside(
        np.array(records, dtype=float), q, rate, lattice_of(6, bits), -2.0, monkeypatch
    )
    assert_draws_follow(draws, enumeration.joint_exp_dithered(records, 6, q, rate, bits))


def test_draws_inside_of_windows_follow_the_density(monkeypatch):
    x, q = np.array([0.5, 1.0, 1.25, 2.0, 3.0, 3.5, 4.0]), [0.3, 0.7]
    monkeypatch.setattr(few, "spare_of", lambda *_: -2.0)
    rng = np.random.default_rng(4)
    draws = [few.draw_path(x, np.array(q), 1.0, (0.0, 5.0), None, rng) for _ in range(6_000)]
    law = reference.joint_exp_law(x, q, epsilon=4.0, bounds=(0.0, 5.0), resolution=0)
    # halves between records: one density each; k outputs in one have 1 / k! of its power
    middle = np.arange(10) / 2.0 + 0.25
    halves = combinations_with_replacement(range(10), 2)
    cells = {
        cell: law.log_prob(middle[list(cell)]) - 2.0 * math.log(2.0) - math.log(1 + (a == b))
        for cell in halves
        for a, b in [cell]
        if not {a, b} & {2}  # in which a record lies
    }
    rest = 1.0 - math.fsum(math.exp(p) for p in cells.values())
    cells["rest"] = math.log(rest)
    seen = (tuple(np.floor(2.0 * draw).astype(int).tolist()) for draw in draws)
    assert_draws_follow([cell if cell in cells else "rest" for cell in seen], cells)


class Inside(Outside):
    """Draws that do not leave the windows."""

    def __init__(self, *given):
        super().__init__(*given)
        self._rows = rows_of(*given, Scan.forward)

    def draw(self, _, rng):
        paths, (rank, width, left) = self._rows.draw(-math.inf, 1, rng)
        return points_inside(paths, left, width, rng), rank[paths]


class Always(Outside):
    """Draws that leave them, whatever the bound says."""

    def draw(self, _, rng):
        return super().draw(self.log_total, rng)


class Never(Outside):
    """No draws: as if nothing were outside."""

    def draw(self, *_):
        return None


@pytest.mark.parametrize(
    ("fault", "spare", "size"),
    [(Inside, -2.0, 3_000), (Always, 0.0, 3_000), (Never, 0.0, 24_000)],
)
def test_wrong_draws_outside_of_windows_are_caught(fault, spare, size, monkeypatch):
    q, rate = [0.5], 0.4
    monkeypatch.setattr(few, "Outside", fault)
    draws = draws_inside(DISTINCT, q, rate, lattice_of(40), spare, monkeypatch, size)
    assert fit(draws, enumeration.joint_exp(DISTINCT.astype(int).tolist(), 40, q, rate)) < 1e-6


SPREAD = np.random.default_rng(5)
WIDE_COLUMNS = {
    "normal": SPREAD.normal(500.0, 20.0, 700),
    "uniform": SPREAD.uniform(0.0, 999.0, 700),
    "gap": np.append(SPREAD.uniform(0.0, 1.0, 400), SPREAD.uniform(998.0, 999.0, 300)),
    "cluster": np.append(SPREAD.uniform(0.0, 999.0, 300), SPREAD.normal(123.0, 1e-3, 400)),
    "bounds": np.concatenate((np.zeros(250), SPREAD.uniform(0.0, 999.0, 300), np.full(250, 999.0))),
    "tied": np.round(SPREAD.normal(500.0, 3.0, 700)),
    "all tied": np.full(700, 500.0),
}


@pytest.mark.parametrize("bits", [None, 0, 20])
@pytest.mark.parametrize("name", WIDE_COLUMNS)
def test_what_windows_leave_out_is_bounded(name, bits):
    x, bounds = np.sort(WIDE_COLUMNS[name]), (0.0, 999.0)
    lattice = None if bits is None else lattice_of(1_000, bits)
    extent = 999.0 if lattice is None else float(lattice.fine_points)
    rng, left_out = np.random.default_rng(0), 0
    for q, rate in (
        ([0.5], 0.1),
        ([0.1, 0.2, 0.9], 0.25),
        (np.arange(1, 10) / 10, 0.5),
        ([0.0, 0.4, 1.0], 2.0),
        ([0.3, 0.31], 900.0),
    ):
        q = np.array(q)
        volume = log_volume(extent, q.size, lattice is not None)
        _, points, left = Releases(q, rate, bounds, lattice).one(x, volume, -30.0, x.size, rng)
        if left is None:
            continue  # ties leave nothing out, or float64 will not do
        reach, log_bound = left
        law = PathLaw(SortedOrder(points, lattice, bounds, fine=True), q, rate, window=reach)
        assert -math.inf < law._outside.log_total <= log_bound
        left_out += 1
    if bits == 20 or (bits is None and name in ("normal", "uniform", "gap", "cluster")):
        assert left_out >= 3


def held_columns():
    rng = np.random.default_rng(6)
    columns = {name: rng.permutation(column) for name, column in WIDE_COLUMNS.items()}
    columns["ordered"] = np.sort(columns["normal"])
    columns["skewed"] = np.minimum(rng.lognormal(0.0, 4.0, 900), 999.0)
    columns["integers"] = rng.integers(0, 50, 900).astype(float)
    columns["falling"] = np.arange(999.0, 0.0, -1.0)
    columns["beyond the bounds"] = rng.normal(0.0, 1e4, 900)
    return columns


HELD_COLUMNS = held_columns()


@pytest.mark.parametrize("bits", [None, 0, 20])
@pytest.mark.parametrize("name", HELD_COLUMNS)
def test_order_around_the_targets_alone_gives_the_same_draws(name, bits):
    """However few records are in order at first, seed by seed; where they do not do, all are."""
    x, bounds = HELD_COLUMNS[name], (0.0, 999.0)
    lattice = None if bits is None else lattice_of(1_000, bits)
    extent = 999.0 if lattice is None else float(lattice.fine_points)
    for q, rate, spare in (
        ([0.5], 0.5, 44.0),
        ([0.1, 0.2, 0.9], 0.5, 10.0),
        (np.arange(1, 10) / 10, 2.0, 10.0),
        ([0.0, 0.4, 1.0], 4.0, 30.0),
        ([0.3, 0.31], 900.0, 0.0),
        ([0.5], 0.5, -20.0),  # decided outside of windows
    ):
        q = np.array(q)
        volume = log_volume(extent, q.size, lattice is not None)
        releases = Releases(q, rate, bounds, lattice)
        for held in (x.size, 0, 1, 3, 20, 60, 150, x.size - 1):
            rng = np.random.default_rng(8)
            outputs, points, left = releases.one(x, volume, spare, held, rng)
            found = [None if part is None else part.tolist() for part in (outputs, points)], left
            if held == x.size:
                expected, after = found, rng.bit_generator.state
            assert found == expected
            assert rng.bit_generator.state == after


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("spacing", [3, 0.25])
def test_some_thousand_records_follow_the_law(spacing, ordered):
    """A release that looks at the records around its target alone, of distinct and tied records."""
    rng = np.random.default_rng(9)
    x = np.floor(spacing * np.arange(3_000))
    x = x if ordered else rng.permutation(x)
    options = dict(epsilon=0.5, bounds=(0.0, 9_000.0), resolution=1)
    law = dpq.joint_exp_law(x, 0.3, dither=False, **options)
    middle = int(spacing * 900)
    outputs = np.arange(middle - 200, middle + 200)
    expected = {int(o): law.log_prob(float(o)) for o in outputs}
    expected[-1] = math.log(max(1.0 - math.fsum(map(math.exp, expected.values())), 1e-12))
    drawn = [int(dpq.joint_exp(x, 0.3, dither=False, rng=rng, **options)) for _ in range(20_000)]
    assert_draws_follow([o if o in expected else -1 for o in drawn], expected)


def test_records_are_put_in_order_around_targets_where_they_are_many():
    assert 100 < few.held_of(20_000, 1, 0.25) < 200 < few.held_of(20_000, 9, 0.25) < 600
    assert few.held_of(2_000, 1, 1e-6) == 2_000
    assert few.are_few_paths(PLAN.most_few, 7, 0.25)
    assert not few.are_few_paths(PLAN.most_few + 1, 1, 0.25)
    assert few.are_few_paths(30_000, 30, 0.25) and not few.are_few_paths(40_000, 30, 0.25)
    assert not few.are_few_paths(5_000, 300, 0.25)


def test_draws_are_hardly_ever_decided_outside_of_windows(monkeypatch):
    escaped, draw = [], Outside.draw

    def noted(*arguments):
        escaped.append(arguments)
        return draw(*arguments)

    monkeypatch.setattr(Outside, "draw", noted)
    x, q = np.random.default_rng(0).normal(0.0, 5.0, 1_000), np.arange(1, 10) / 10
    x.sort()
    for seed in range(200):
        few.draw_path(x, q, 0.25, (0.0, 999.0), lattice_of(1_000, 20), np.random.default_rng(seed))
    assert len(escaped) <= 2
    monkeypatch.setattr(few, "spare_of", lambda *_: -5.0)
    for seed in range(5):  # a bound that is far too large is no trouble
        few.draw_path(x, q, 0.25, (0.0, 999.0), lattice_of(1_000, 20), np.random.default_rng(seed))
    assert escaped  # there are windows
