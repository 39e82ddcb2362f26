"""Releases by group, selections of keys and descriptions of tables, against those from memory."""

from __future__ import annotations

import datetime
import functools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
from dpq_fast.data.histogram import Bins
from dpq_fast.data.key_counts import count_keys
from dpq_fast.data.passes import Query, scan
from dpq_fast.data.public_keys import Groups
from dpq_fast.data.queries import AnyMissing, BinCounts, CellCounts, Sums
from dpq_fast.data.tables import GroupedColumn, GroupQuery, joined
from dpq_fast.data.tasks import EachGroupTask, GroupTask, KeyTask, MembersTask, by_group
from dpq_fast.data.units import Presence
from dpq_fast.mechanisms import describe as describe_module
from dpq_fast.mechanisms import grouping

N = 3_000
RNG = np.random.default_rng(0)
PAY = RNG.normal(50, 10, N).round(1)
PAY[::40] = np.nan
PAY[5:7] = np.inf, -np.inf
TOWNS = ["Aarau", "Basel", "Chur", "Davos", None]
TOWN = [TOWNS[k] for k in RNG.choice(5, N, p=[0.5, 0.3, 0.1945, 0.0005, 0.005])]
YEAR = RNG.integers(2020, 2023, N)
START = datetime.date(2020, 1, 1)
DAY = [START + datetime.timedelta(days=int(k)) for k in RNG.integers(0, 3, N)]
MEMORY = pa.table(
    {
        "pay": PAY,
        "spell": pa.array(RNG.integers(0, 9_999, N), pa.duration("s"), mask=np.isnan(PAY)),
        "normal": RNG.normal(50, 10, N),
        "age": RNG.integers(18, 70, N),
        "town": TOWN,
        "year": YEAR,
        "day": DAY,
        "left": YEAR == 2021,
    }
)
# Groups of many records, of some, of none.
KEYS = {
    "strings": (("town",), ["Basel", "Aarau", "Zug", "Davos"]),
    "integers": (("year",), [2022, 2020, 7, 2021]),
    "booleans": (("left",), [True, False]),
    "dates": (("day",), [START, START + datetime.timedelta(days=9)]),
    "several": (
        ("town", "year"),
        [("Basel", 2021), ("Zug", 2021), ("Chur", 2020), ("Davos", 2020)],
    ),
}
BOUNDS = dict(bounds=(0, 100), epsilon=1.0)
CLIP = dict(q=None, lower=0, upper=100, epsilon=1.0)
RELEASES = {
    "count": (dpq.count_by, dict(epsilon=1.0)),
    "count, interval": (dpq.count_by, dict(epsilon=1.0, confidence=0.9)),
    "sum": (dpq.sum_by, CLIP),
    "sum, swap": (dpq.sum_by, CLIP | dict(public_by=True, confidence=0.9)),
    "sum, search": (dpq.sum_by, dict(epsilon=1.0)),
    "mean": (dpq.mean_by, CLIP),
    "std": (dpq.std_by, CLIP),
    "mean, interval": (dpq.mean_by, CLIP | dict(confidence=0.9)),
    "mean, search": (dpq.mean_by, dict(epsilon=4.0, method="ind_exp", lower=0, upper=99)),
    "median": (dpq.quantile_by, dict(q=0.5, **BOUNDS)),
    "median, interval": (dpq.quantile_by, dict(q=0.5, confidence=0.9, **BOUNDS)),
    "joint_exp": (dpq.quantile_by, dict(q=[0.2, 0.7], **BOUNDS)),
    "continuous": (dpq.quantile_by, dict(q=[0.2, 0.7], resolution=0, **BOUNDS)),
    "prior": (dpq.quantile_by, dict(q=0.5, prior="log", bounds=(1, 100), epsilon=1.0)),
    "agg_tree": (dpq.quantile_by, dict(q=[0.2, 0.7], method="agg_tree", **BOUNDS)),
    "two_stage": (
        dpq.quantile_by,
        dict(q=[0.2, 0.7], method="two_stage", expected_n=50, **BOUNDS),
    ),
    "two_stage, interval": (
        dpq.quantile_by,
        dict(q=0.99, expected_n=500, confidence=0.9, **BOUNDS),
    ),
    "csmooth": (dpq.quantile_by, dict(q=0.5, method="csmooth", rho=0.5, bounds=(0, 100))),
    "unbounded": (dpq.quantile_by, dict(q=0.9, method="unbounded_quantile", epsilon=1.0)),
}


def tables():
    """The same rows, in many batches."""
    batches = pa.Table.from_batches(MEMORY.to_batches(max_chunksize=97))
    return {
        "data set": dpq.Table.of(ds.dataset(batches)),
        "lazy frame": dpq.Table.of(pl.from_arrow(MEMORY).lazy()),
        "frame": dpq.Table.of(MEMORY),
    }


@pytest.fixture(params=["data set", "lazy frame", "frame"])
def table(request):
    return tables()[request.param]


@pytest.fixture
def counted(monkeypatch):
    """A table, and how many tasks each of its rounds had."""
    table = tables()["data set"]
    rounds, answer = [], table._engine.answer

    def counting(tasks):
        rounds.append(len(tasks))
        return answer(tasks)

    monkeypatch.setattr(table._engine, "answer", counting)
    return table, rounds


def columns_of(by):
    return MEMORY[by[0]] if len(by) == 1 else MEMORY.select(by)


def assert_same(found, expected):
    assert found.groups.tolist() == expected.groups.tolist()
    for name in ("values", "low", "high"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert (found.confidence, found.covers) == (expected.confidence, expected.covers)


# Releases


@pytest.mark.slow
@pytest.mark.parametrize("keys", KEYS)
def test_group_releases_are_those_from_memory(keys, table):
    by, groups = KEYS[keys]
    for function, options in RELEASES.values():
        asked = dict(groups=groups, rng=7, **options)
        found = function(table["pay"], table[by], **asked)
        assert_same(found, function(MEMORY["pay"], columns_of(by), **asked))
        assert found.names == by


@pytest.mark.slow
@pytest.mark.parametrize("keys", ["strings", "several"])
def test_groups_that_nobody_listed_are_those_from_memory(keys, table):
    by, _ = KEYS[keys]
    for function, options in RELEASES.values():
        if "rho" in options:
            continue
        asked = dict(groups=None, delta=1e-3, rng=5, **options)
        found = function(table["pay"], table[by], **asked)
        assert 2 <= len(found) < 12
        assert_same(found, function(MEMORY["pay"], columns_of(by), **asked))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("held", [1, 700, 10**9])
def test_slices_of_groups_change_no_sum(held, threads, table, monkeypatch):
    monkeypatch.setattr(grouping, "HELD_RECORDS", held)
    asked = dict(groups=KEYS["several"][1], epsilon=1e9, workers=threads, rng=1)
    found = dpq.sum_by(table["pay"], table["town", "year"], lower=-50, **asked)
    expected = dpq.sum_by(MEMORY["pay"], MEMORY.select(["town", "year"]), lower=-50, **asked)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-6, atol=1e-3)
    middle = dict(q=[0.2, 0.7], bounds=(0, 100), resolution=0.1, **asked)
    found = dpq.quantile_by(table["pay"], table["town", "year"], **middle).values
    expected = dpq.quantile_by(MEMORY["pay"], MEMORY.select(["town", "year"]), **middle).values
    np.testing.assert_allclose(found[[0, 2]], expected[[0, 2]], atol=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
def test_a_large_group_is_released_as_a_column_is(name, monkeypatch):
    """Its passes give what its rows give, with hardly any noise."""
    table = tables()["frame"]
    function, options = RELEASES[name]
    budget = {"rho": 1e9} if "rho" in options else {"epsilon": 1e7}
    by, groups = KEYS["several"]
    asked = options | budget | dict(groups=groups[:1] + groups[2:3], rng=3, public_by=True)
    expected = function(MEMORY["pay"], columns_of(by), **asked)
    monkeypatch.setattr(grouping, "FEW_RECORDS", 0)
    for crowd in (1, 128):
        monkeypatch.setattr(grouping, "LARGE_GROUPS", crowd)
        found = function(table["pay"], table[by], **asked)
        np.testing.assert_allclose(found.values, expected.values, atol=0.2, rtol=1e-3)
        if found.low is not None:
            np.testing.assert_allclose(found.low, expected.low, atol=0.2, rtol=1e-3)
            np.testing.assert_allclose(found.high, expected.high, atol=0.2, rtol=1e-3)


@pytest.mark.parametrize("few", [0, 2**16])
def test_threads_make_no_difference(few, monkeypatch):
    monkeypatch.setattr(grouping, "FEW_RECORDS", few)
    batches = pa.Table.from_batches(MEMORY.to_batches(max_chunksize=97))
    alone, several = (dpq.Table.of(ds.dataset(batches), workers=k) for k in (1, 3))
    by, groups = KEYS["several"]
    for name in ("count", "sum, search", "mean", "median", "unbounded"):
        function, options = RELEASES[name]
        asked = dict(options, groups=groups, rng=8)
        expected = function(alone["pay"], alone[by], **asked)
        assert_same(function(several["pay"], several[by], **asked), expected)
    asked = dict(epsilon=0.5, delta=1e-4, rng=1)
    kept = dpq.select_keys(several[by], **asked).tolist()
    assert kept == dpq.select_keys(alone[by], **asked).tolist()


@pytest.mark.parametrize("prior", [None, "uniform"])
def test_a_large_group_draws_as_its_records_do(prior, table, monkeypatch):
    """One group, one level: what is drawn, and in which order, is what `ind_exp` draws."""
    monkeypatch.setattr(grouping, "FEW_RECORDS", 0)
    place = dict(bounds=(0, 100), resolution=0.5, prior=prior)
    own = np.array(PAY)[np.array(TOWN) == "Basel"]
    for seed in range(8):
        found = dpq.quantile_by(
            table["pay"], table["town"], 0.3, groups=["Basel"], epsilon=0.2, rng=seed, **place
        )
        alone = dpq.ind_exp(own, 0.3, epsilon=0.1, neighbors="add-remove", rng=seed, **place)
        assert found["Basel"] == alone


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 2**16])
def test_laws_of_groups_are_those_of_their_records(few, monkeypatch):
    """512 groups of the same four records: their answers are drawn from one law."""
    monkeypatch.setattr(grouping, "FEW_RECORDS", few)
    records, groups = [1.0, 2.0, 2.0, 9.0], 512
    rows = pa.table({"x": np.tile(records, groups), "g": np.repeat(np.arange(groups), 4)})
    table = dpq.Table.of(rows)
    place = dict(bounds=(0, 4), resolution=1)
    asked = dict(groups=np.arange(groups), epsilon=2.0, neighbors="add-remove", **place)
    drawn = np.concatenate(
        [dpq.quantile_by(table["x"], table["g"], 0.5, rng=k, **asked).values for k in range(4)]
    )
    law = dpq.ind_exp_law(records, 0.5, epsilon=2.0, neighbors="add-remove", **place)
    expected = np.exp([law.log_prob(point) for point in range(5)])
    seen = np.bincount(drawn.astype(int), minlength=5)
    assert stats.chisquare(seen, expected * drawn.size).pvalue > 1e-6
    asked, place = asked | dict(dither=False), place | dict(dither=False)
    pairs = dpq.quantile_by(table["x"], table["g"], [0.2, 0.8], rng=9, **asked).values
    joint = dpq.joint_exp_law(records, [0.2, 0.8], epsilon=2.0, neighbors="add-remove", **place)
    outputs = [(a, b) for a in range(5) for b in range(a, 5)]
    chance = np.exp([joint.log_prob(output) for output in outputs]) * groups
    seen = np.array([(pairs == output).all(axis=1).sum() for output in outputs], dtype=float)
    rare = chance < 5.0
    seen, chance = (np.append(part[~rare], part[rare].sum()) for part in (seen, chance))
    assert stats.chisquare(seen, chance * seen.sum() / chance.sum()).pvalue > 1e-6


def test_times_by_group(table):
    bounds = (datetime.date(2019, 1, 1), datetime.date(2024, 1, 1))
    asked = dict(groups=["Aarau", "Zug"], epsilon=1.0, rng=1)
    middle = dict(q=0.5, bounds=bounds, resolution=datetime.timedelta(days=1), **asked)
    found = dpq.quantile_by(table["day"], table["town"], **middle)
    assert_same(found, dpq.quantile_by(MEMORY["day"], MEMORY["town"], **middle))
    assert found.values.dtype.kind in "OM"
    number = dpq.count_by(table["day"], table["town"], **asked)
    assert_same(number, dpq.count_by(MEMORY["day"], MEMORY["town"], **asked))
    most = datetime.timedelta(hours=1)
    clip = dict(q=None, lower=datetime.timedelta(0), upper=most, **asked)
    total = dpq.sum_by(table["spell"], table["town"], **clip)
    assert_same(total, dpq.sum_by(MEMORY["spell"], MEMORY["town"], **clip))


def test_bounds_of_each_group(table):
    groups = KEYS["strings"][1]
    for bounds in ([(0, 10 + k) for k in range(4)], {key: (0, 40) for key in groups}):
        asked = dict(groups=groups, epsilon=1.0, bounds=bounds, rng=2)
        found = dpq.quantile_by(table["pay"], table["town"], 0.5, **asked)
        assert_same(found, dpq.quantile_by(MEMORY["pay"], MEMORY["town"], 0.5, **asked))


@pytest.mark.parametrize("width", [1, 2])
def test_no_groups_take_no_pass(width, counted):
    table, rounds = counted
    by = table["town", "year"] if width == 2 else table["town"]
    for function, options in RELEASES.values():
        assert len(function(table["pay"], by, groups=[], **options)) == 0
    assert not rounds


# Selection


@pytest.mark.parametrize("keys", KEYS)
def test_selected_keys_are_those_from_memory(keys, table):
    by, _ = KEYS[keys]
    for seed in range(5):
        asked = dict(epsilon=0.5, delta=1e-4, rng=seed)
        kept = dpq.select_keys(table[by], **asked)
        expected = dpq.select_keys(columns_of(by), **asked)
        assert kept.tolist() == expected.tolist() and kept.dtype == expected.dtype


def test_keys_of_what_an_engine_holds():
    lazy = pl.from_arrow(MEMORY).lazy().select("town", "year")
    asked = dict(epsilon=0.5, delta=1e-4, rng=1)
    expected = dpq.select_keys(MEMORY.select(["town", "year"]), **asked)
    assert dpq.select_keys(lazy, **asked).tolist() == expected.tolist()
    with pytest.raises(ValueError, match="counts must be left out for a column of a table"):
        dpq.select_keys(lazy, counts=[1], **asked)


# States


def rows_of(columns):
    return lambda name: columns[name]


NUMBERS = st.one_of(st.floats(-9, 9), st.sampled_from([np.nan, np.inf, -np.inf, 1e300]))
SOME_ROWS = st.lists(st.tuples(NUMBERS, st.integers(-1, 3), st.sampled_from("ab")), max_size=30)


def plain_of(state):
    """A state as lists, to be compared."""
    if isinstance(state, dict):
        return {key: plain_of(one) for key, one in sorted(state.items())}
    if hasattr(state, "least"):
        return [state.count.tolist(), state.least.tolist(), state.most.tolist()]
    if hasattr(state, "booleans"):
        return dict(state.numbers), state.booleans
    if hasattr(state, "groups"):
        parts = state.values, state.groups
        joined = [np.concatenate([*part, []]).tolist() for part in parts]
        return sorted(zip(*joined, strict=True))
    if isinstance(state, list):
        return [plain_of(one) for one in state]
    return np.asarray(state).tolist()


GROUPS = Groups([(0, "a"), (2, "b"), (1, "a")])
OF_GROUPS = "x", None
CELLS = CellCounts(-5.0, 5.0, np.array([-5.0, 1.0]), np.array([0.5, 5.0]), 3)
QUERIES = [Sums(4.0, -9, 30), AnyMissing(), BinCounts(Bins.of([-1.0, 0.0, 2.0])), CELLS]
TASKS = [
    *(GroupTask("x", None, query, ("g", "h"), GROUPS) for query in QUERIES),
    GroupTask("x", Presence(), Sums(1.0, 0, 0), ("g", "h"), GROUPS),
    EachGroupTask("x", None, ("g", "h"), GROUPS, ((2, CELLS), (0, QUERIES[2]), (2, QUERIES[2]))),
    MembersTask("x", None, ("g", "h"), GROUPS),
    KeyTask(("g", "h")),
    KeyTask(("g",)),
]


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
@given(rows=SOME_ROWS, data=st.data())
def test_states_combine_in_any_split(task, rows, data):
    def column(part, place, kind):
        return np.array([row[place] for row in part], dtype=kind)

    def stepped(part):
        state = task.start()
        columns = {"x": column(part, 0, float), "g": column(part, 1, int)}
        columns["h"] = pa.array([row[2] for row in part], pa.string())
        task.step(state, rows_of(columns))
        return state

    ends = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    parts = [rows[a:b] for a, b in zip([0, *ends], [*ends, len(rows)], strict=True)]
    states = data.draw(st.permutations([task.start(), *map(stepped, parts)]))
    while len(states) > 1:
        at = data.draw(st.integers(0, len(states) - 2))
        states[at : at + 2] = [task.combine(states[at], states[at + 1])]
    assert plain_of(states[0]) == plain_of(stepped(rows))


@pytest.mark.parametrize("query", QUERIES[:2], ids=lambda query: type(query).__name__)
@given(rows=SOME_ROWS)
def test_groups_at_once_have_the_states_of_each(query, rows):
    values = np.array([row[0] for row in rows], dtype=float)
    places = np.array([row[1] + 1 for row in rows], dtype=np.int64)
    found, expected = {}, {}
    for _ in range(2):
        query.step_groups(found, *by_group(values, places))
        Query.step_groups(query, expected, *by_group(values, places))
    assert plain_of(found) == plain_of(expected)
    for group, state in found.items():
        alone = query.start()
        for _ in range(2):
            scan(values[places == group], query, alone)
        assert plain_of(alone) == plain_of(state)


@given(places=st.lists(st.sampled_from([0, 1, 65_535, 65_536, 65_537, 2**20, 2**31])))
def test_records_are_put_together_in_their_order(places):
    places = np.array(places, dtype=np.int64)
    groups, ends, values = by_group(np.arange(places.size), places)
    assert groups == np.unique(places).tolist()
    parts = np.split(values, ends[:-1]) if groups else []
    for group, part in zip(groups, parts, strict=True):
        assert part.tolist() == np.flatnonzero(places == group).tolist()


def test_rows_that_are_grouped_already_count_as_often_as_they_say():
    task, state = KeyTask(("town", "left")), None
    whole = {"town": MEMORY["town"], "left": MEMORY["left"]}
    expected = task.start()
    task.step(expected, rows_of(whole))
    grouped = MEMORY.group_by(["town", "left"]).aggregate([([], "count_all")])
    state = task.start()
    task.step_counted(state, grouped.column, grouped["count_all"].to_numpy())
    assert plain_of(state) == plain_of(expected)
    ordered, memory = state.ordered(), count_keys(MEMORY.select(["town", "left"]))
    assert ordered.keys == memory.keys
    assert ordered.counts.tolist() == memory.counts.tolist()
    assert {type(key[1]) for key in ordered.keys} == {bool}


def test_nothing_private_is_shown():
    """Which groups are asked for, and what was found."""
    column = GroupedColumn(tables()["frame"]["age"], tables()["frame"]["year"], None, GROUPS)
    shown = [column.task_of([GroupQuery(column, 1, CELLS)]), *TASKS[5:7]]
    for each in [*shown, *(task.start() for task in shown[1:]), TASKS[7].start()]:
        assert repr(each).startswith("<dpq_fast") or repr(each).startswith("[<dpq_fast")


# Rounds


@pytest.mark.parametrize("few, search, tree", [(2**16, 2, 2), (0, 3, 2)])
def test_all_groups_share_their_rounds(few, search, tree, counted, monkeypatch):
    monkeypatch.setattr(grouping, "FEW_RECORDS", few)
    table, rounds = counted
    by, groups = KEYS["several"]
    for name, number in (
        *(("count", 1), ("mean", 1), ("median", search), ("joint_exp", search)),
        ("agg_tree", tree),
    ):
        rounds.clear()
        function, options = RELEASES[name]
        function(table["normal"], table[by], groups=groups, rng=1, **options)
        assert len(rounds) == number, name
        rounds.clear()
        function(table["normal"], table[by], groups=None, delta=1e-3, rng=1, **options)
        assert len(rounds) == (2 if name in ("count", "mean") else number), name
    rounds.clear()
    dpq.select_keys(table[by], epsilon=1.0, delta=1e-3)
    assert rounds == [1]


@pytest.mark.parametrize("held, slices", [(1, 3), (10**9, 1)])
def test_small_groups_take_a_round_for_so_many_records(held, slices, counted, monkeypatch):
    monkeypatch.setattr(grouping, "HELD_RECORDS", held)
    table, rounds = counted
    years = [2020, 7, 2021, 2022]  # of one none: it is read with another one
    dpq.quantile_by(table["normal"], table["year"], 0.5, groups=years, **BOUNDS)
    assert len(rounds) == 1 + slices


def test_descriptions_share_their_rounds(counted):
    table, rounds = counted
    bounds = {"pay": (0, 100), "normal": (0, 100), "left": (0, 1)}
    dpq.describe(table, epsilon=1.0, bounds=bounds)
    assert len(rounds) == 2 and rounds[0] == 9
    rounds.clear()
    dpq.describe(table, epsilon=1.0, bounds=bounds, by="town", groups=["Aarau", "Basel"])
    assert rounds == [9, 3]
    rounds.clear()
    dpq.describe(table, epsilon=1.0, bounds=bounds, by=["town", "year"], delta=1e-3)
    assert rounds == [1, 9, 3]
    rounds.clear()
    dpq.together(
        lambda: dpq.describe(table, epsilon=1.0, bounds=bounds, by="town", groups=["Aarau"]),
        lambda: dpq.quantile_by(table["age"], table["year"], 0.5, groups=[2020], **BOUNDS),
    )
    assert rounds == [10, 4]


# Descriptions


def down(exact):
    """The largest float that is not above."""
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, 0.0)


def parts_of(table, by, groups, rng):
    """A description's parts, made together."""
    calls, own = [], {} if by is None else dict(by=table[by], groups=groups)
    functions = dpq.count, dpq.mean, dpq.quantile
    if by is not None:
        functions = dpq.count_by, dpq.mean_by, dpq.quantile_by
    for name in ("pay", "age"):
        options = (
            dict(epsilon=down(Fraction(1, 5))),
            dict(epsilon=down(Fraction(4, 5)), q=None, lower=0, upper=100),
            dict(epsilon=1.0, q=[0.25, 0.5, 0.75], bounds=(0, 100)),
        )
        for function, each in zip(functions, options, strict=True):
            calls.append(functools.partial(function, table[name], rng=rng, **own, **each))
    return dpq.together(*calls)


@pytest.mark.parametrize("by", [None, "town"])
def test_a_description_is_its_parts(by, table):
    groups = None if by is None else ["Aarau", "Zug"]
    bounds = {"pay": (0, 100), "age": (0, 100)}
    out = dpq.describe(table, epsilon=4.0, bounds=bounds, by=by, groups=groups, rng=4)
    assert isinstance(out, pd.DataFrame)
    parts = parts_of(table, by, groups, np.random.default_rng(4))
    rows = []
    for number, mean, quartiles in (parts[:3], parts[3:]):
        if by is None:
            rows.append([number, mean, *quartiles])
        else:
            rows += [[number[key], mean[key], *quartiles[key]] for key in groups]
    assert out[["count", "mean", "25%", "50%", "75%"]].to_numpy().tolist() == rows
    if by is not None:
        assert out["town"].tolist() == groups * 2


def test_the_library_of_a_description(monkeypatch):
    asked = dict(epsilon=1.0, bounds={"age": (0, 100)}, rng=1)
    expected = dpq.describe(tables()["frame"], **asked)
    assert isinstance(expected, pd.DataFrame)
    lazy = pl.from_arrow(MEMORY).lazy()
    for source, kind in ((lazy, pl.DataFrame), (ds.dataset(MEMORY), pd.DataFrame)):
        out = dpq.describe(source, **asked)
        assert isinstance(out, kind)
        for name in expected.columns:
            assert list(out[name]) == list(expected[name])
    monkeypatch.setattr(describe_module, "find_spec", lambda name: None)
    out = dpq.describe(tables()["data set"], **asked)
    assert isinstance(out, pa.Table) and out.to_pylist() == expected.to_dict("records")


def test_lazy_frames_have_methods_for_groups():
    import dpq_fast.accessors  # noqa: F401

    lazy, eager = pl.from_arrow(MEMORY).lazy(), pl.from_arrow(MEMORY)
    asked = dict(groups=KEYS["several"][1], epsilon=1.0, rng=1)
    for frame in (lazy, eager):
        found = frame.dpq.count_by("pay", ["town", "year"], **asked)
        assert_same(found, dpq.count_by(eager["pay"], eager[["town", "year"]], **asked))


# What is refused


def test_columns_of_several_tables_are_refused(table):
    other = tables()["frame"]
    rule = r"x and by must be columns of one table, as table\['pay'\] and table\['town', 'year'\]"
    accountant = dpq.privacy.Accountant(1.0)
    for x, by in (
        (table["pay"], other["town"]),
        (MEMORY["pay"], table["town"]),
        (table["pay"], MEMORY["town"]),
        (table["pay"], [table["town"], table["year"]]),
    ):
        for function, options in (RELEASES[name] for name in ("count", "mean", "median")):
            for groups in (["Aarau"], None):
                own = dict(options, groups=groups, delta=0 if groups else 1e-6)
                with pytest.raises(ValueError, match=rule):
                    function(x, by, accountant=accountant, **own)
    assert accountant.spent.epsilon == 0.0


def test_public_arguments_are_refused_before_a_pass(counted):
    table, rounds = counted
    asked = dict(groups=["Aarau"], epsilon=1.0)
    poor = dpq.privacy.Accountant(0.5)
    for options, error, rule in (
        (dict(by=table["town"], counts=[1]), ValueError, "counts must be left out for a column"),
        (dict(by=table["town", "year"]), ValueError, "groups must be tuples of as many keys"),
        (dict(by=table["town"], groups=[("a", 1)]), ValueError, "groups must be as many keys"),
        (dict(by=table["town"], nan_policy="drop"), ValueError, "nan_policy must be one of"),
        (dict(by=table["town"], workers=0), ValueError, "workers"),
        (dict(by=table["town"], accountant=poor), dpq.privacy.BudgetExceeded, "budget"),
    ):
        for function, own in (RELEASES[name] for name in ("count", "sum", "median")):
            with pytest.raises(error, match=rule):
                function(table["pay"], **(own | asked | options))
    with pytest.raises(ValueError, match="x must be one column, got a frame of 2"):
        dpq.count_by(table["pay", "age"], table["town"], **asked)
    with pytest.raises(ValueError, match="columns must be some of the frame's, got 'nobody'"):
        dpq.describe(table, epsilon=1.0, bounds={"nobody": (0, 1)})
    assert not rounds


def test_what_columns_declare_is_refused_as_in_memory(table):
    asked = dict(groups=[1, 2], epsilon=1.0)
    for x, by in ((table["age"], table["town"]), (MEMORY["age"], MEMORY["town"])):
        with pytest.raises(TypeError, match="groups must be strings as the column by is, got int"):
            dpq.count_by(x, by, **asked)


@pytest.mark.parametrize("source", ["data set", "lazy frame"])
def test_what_an_engine_declares_is_refused_before_the_charge(source):
    table, accountant = tables()[source], dpq.privacy.Accountant(1.0)
    with pytest.raises(TypeError, match="groups must be strings as the column by is, got int"):
        dpq.count_by(table["age"], table["town"], groups=[1, 2], epsilon=0.1, accountant=accountant)
    assert accountant.history == ()


def test_no_groups_have_no_records(table):
    column = GroupedColumn(table["pay"], table["town"], None, Groups(["Aarau"]))
    values, members = column.collect(np.empty(0, dtype=np.intp))
    assert values.size == members.size == 0


def test_parts_are_joined_in_order_and_given_up():
    parts = [np.array(part, dtype=np.int32) for part in ([1, 2], [], [3])]
    whole = joined(parts, np.int32)
    assert whole.tolist() == [1, 2, 3] and whole.dtype == np.int32 and parts == []


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 2**16])
def test_missing_records_against_the_policy(few, table, monkeypatch):
    monkeypatch.setattr(grouping, "FEW_RECORDS", few)
    options = dict(nan_policy="raise", rng=1)
    for name in ("count", "mean", "sum, search", "median", "agg_tree"):
        function, own = RELEASES[name]
        for groups in (["Aarau"], None):
            asked = dict(own, groups=groups, delta=0 if groups else 1e-3, **options)
            with pytest.raises(ValueError, match="x must not contain NaN with nan_policy='raise'"):
                function(table["pay"], table["town"], **asked)
            function(table["age"], table["town"], **asked)
        # only those of groups count
        function(table["pay"], table["town"], groups=["Zug"], **own, **options)
