"""The rows of the benchmarks, the tables made of them, and README's comparison made of those."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from pathlib import Path

import audit_table
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def bench():
    """The runner; behind what is installed, as when it runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(ROOT)])
        yield importlib.import_module("bench.run")


@pytest.fixture(scope="module")
def times(bench):
    return (ROOT / bench.readme.PERFORMANCE).read_text("utf-8")


@pytest.fixture(scope="module")
def ranks(bench):
    return (ROOT / bench.readme.ACCURACY).read_text("utf-8")


def test_names_of_cases_are_unique(bench):
    names = [case.name for case in bench.ALL]
    assert len(set(names)) == len(names)
    assert all(len(name.split("/")) == 2 for name in names)


def test_cases_are_well_formed(bench):
    for case in bench.CASES:
        labels = [side.label for side in case.against]
        assert len(set(labels)) == len(labels), case.name
        assert "" not in labels, case.name
        assert case.sizes == tuple(sorted(set(case.sizes))), case.name
        assert 1 <= case.quick <= case.sizes[0], case.name
        assert len(set(bench.works(case))) == len(case.sizes), case.name
        for side in case.against:
            assert side.part is None or 1 <= side.part < case.sizes[0], case.name
            assert side.repeats >= 1, case.name


def test_errors_are_well_formed(bench):
    for case in bench.ERRORS:
        assert case.levels == tuple(sorted(set(case.levels))), case.name
        assert not case.shown or tuple(case.sides) == bench.RANKS.titles[1:], case.name


def test_losses_are_well_formed(bench):
    for case in bench.TOLD:
        x, neighbor = case.pair()
        assert len(x) == len(neighbor), case.name
        changed = [a for a, b in zip(x, neighbor, strict=True) if repr(a) != repr(b)]
        assert len(changed) == 1, case.name
        assert not case.shown or tuple(case.sides) == bench.LOSSES.titles[1:], case.name


def test_a_release_that_tells_of_a_record_is_found(bench):
    """Quickly; with more runs the bound grows."""
    (case,) = bench.TOLD
    x, neighbor = case.pair()
    told = bench.losses.lower_bound(lambda x, rng: float(np.isnan(x).any()), x, neighbor, 2_000)
    assert told > 4.0
    assert bench.losses.lower_bound(bench.losses.median, x, neighbor, 500) <= 1.0


def test_no_bar_in_what_tables_show(bench):
    for case in bench.CASES:
        shown = [case.work, *(side.label for side in case.against)]
        assert not any("bar" in cell or "stretch" in cell for cell in shown), case.name


def test_tables_have_a_line_for_every_row_they_show_and_no_other(bench, times, ranks):
    """Run ``python bench/run.py --only NAME --write`` for a new row."""
    expected = []
    for case in bench.CASES:
        labels = [side.label for side in case.against if side.shown] or [""]
        for work in bench.works(case) if case.shown else ():
            expected += zip([work, *[""] * (len(labels) - 1)], labels, strict=True)
    assert [(row[0], row[2]) for row in bench.TIMES.rows(times)] == expected
    assert len({work for work, _ in expected if work}) == sum(bool(work) for work, _ in expected)
    columns = [case.column for case in bench.ERRORS if case.shown]
    assert [row[0] for row in bench.RANKS.rows(ranks)] == columns
    works = [case.work for case in bench.SPENT if case.shown]
    assert [row[0] for row in bench.COSTS.rows(times)] == works
    changes = [case.change for case in bench.TOLD if case.shown]
    peers = (ROOT / bench.readme.PEERS).read_text("utf-8")
    assert [row[0] for row in bench.LOSSES.rows(peers)] == changes


def test_scaled_figures_say_so(bench):
    for case in bench.CASES:
        for side in case.against:
            if side.part is not None:
                assert "extrapolated" in side.label or "scaled" in side.label, case.name
            if side.repeats > 1:
                assert f"{side.repeats} times" in side.label, case.name


def test_written_tables_are_read_back(bench, times):
    works = [row[0] for row in bench.TIMES.rows(times) if row[0]]
    assert bench.TIMES.updated(times, works, {}) == times
    new = [("work", "1 s", "peer", "2 s", "2.0"), ("", "", "other", "3 s", "3.0")]
    document = bench.TIMES.updated(times, ["work"], {"work": new})
    assert bench.TIMES.rows(document) == new


def test_readme_compares_by_what_the_tables_hold(bench):
    """Run ``python bench/run.py --only NAME --write`` after a change."""
    readme = (ROOT / "README.md").read_text("utf-8")
    assert bench.readme.COMPARISON.rows(readme) == bench.readme.rows(ROOT)


def test_what_is_measured_comes_into_the_tables_and_from_there_into_readme(bench, tmp_path):
    tables = ("performance.md", "accuracy.md", "audits.md", "integrations/peers.md")
    names = ("README.md", *(f"docs/{name}" for name in tables))
    (tmp_path / "docs" / "integrations").mkdir(parents=True)
    for name in names:
        shutil.copy(ROOT / name, tmp_path / name)
    bench.write(tmp_path, {})
    for name in names:
        assert (tmp_path / name).read_bytes() == (ROOT / name).read_bytes(), name
    work, column = "unsorted, n = 10⁸, m = 30", "age"
    change = "a record of 100 becomes missing"
    bench.write(
        tmp_path,
        {
            work: [(work, "3 s", "`np.quantile`", "1 s", "0.33")],
            column: [(column, "1 / 5.5 / 9", "1 / 4.5 / 9", "1 / 3.5 / 9")],
            change: [(change, "≥ 0.50", "≥ 0.60")],
        },
    )
    old, new = (
        bench.readme.COMPARISON.rows((folder / "README.md").read_text("utf-8"))
        for folder in (ROOT, tmp_path)
    )
    assert [row for row in new if row not in old] == [
        ("30 quantiles of 10⁸ unsorted records", "3 s", "`np.quantile` 1 s (× 0.33)"),
        ("ranks off: age, 5 levels", "5.5", "published algorithm 4.5; diffprivlib 3.5"),
        (f"ε found where 1 is claimed: {change}", "≥ 0.50", "diffprivlib ≥ 0.60"),
    ]
    assert len(new) == len(old)


def test_readme_counts_the_audits(bench):
    *_, (at, ours, _) = bench.readme.rows(ROOT)
    caught, planted = map(int, re.findall(r"(\d+) of (\d+)", ours)[0])
    assert at == "guarantee"
    assert caught == planted == sum(len(case.mutants) for case in audit_table.CASES)
    assert ours.startswith(f"{len(audit_table.CASES)} audits")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3.4e-5, "34 µs"),
        (1.48e-4, "0.15 ms"),
        (0.0088, "8.8 ms"),
        (0.00999, "10 ms"),
        (0.17, "0.17 s"),
        (424, "420 s"),
    ],
)
def test_durations_have_two_digits(bench, seconds, text):
    measure = importlib.import_module("bench.measure")
    assert measure.duration(seconds) == text


def test_counts_are_powers_of_ten_or_in_full(bench):
    count = importlib.import_module("bench.measure").count
    assert [count(n) for n in (10, 1_000, 30_000, 10**8)] == ["10", "1,000", "30,000", "10⁸"]


@pytest.mark.slow
def test_each_choice_of_the_plan_has_a_row(bench):
    heuristics = importlib.import_module("bench.heuristics")
    _, titles, _, *rows = heuristics.measured(1, quick=True)
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in heuristics.SWITCHES]
    assert all(row.count("|") == titles.count("|") for row in rows)
    few = next(row for row in rows if "few_entries" in row)
    assert int(few.split(" | ")[2]) > 30  # cells for ten records and nine levels take their time


@pytest.fixture(scope="module")
def first_contact():
    """A table of `papers`; behind what is installed, as when it runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(ROOT)])
        yield importlib.import_module("papers.first_contact")


def test_columns_of_first_contact_lie_on_their_lattices(first_contact):
    """Beyond bounds a few: records are moved to them; a third is left out, always the same."""
    columns = first_contact.zoo()
    for name, column in columns.items():
        x = column.draw(1_000, np.random.default_rng(1))
        assert x.shape == (1_000,), name
        assert np.mean((x >= column.bounds[0]) & (x <= column.bounds[1])) > 0.95, name
        if column.resolution is not None:
            steps = x / column.resolution
            assert np.abs(steps - np.rint(steps)).max() < 1e-6, name
    left_out = first_contact.left_out(columns)
    assert len(left_out) == round(len(columns) / 3)
    assert left_out == first_contact.left_out(columns) < set(columns)


@pytest.mark.slow
def test_first_contact_runs_quickly(first_contact, tmp_path, monkeypatch):
    """A few columns, and a few cells of the map."""
    from papers.report import Report

    columns = dict(list(first_contact.zoo().items())[5:8])
    monkeypatch.setattr(first_contact, "zoo", lambda: columns)
    monkeypatch.setattr(first_contact, "TAILS", first_contact.TAILS[:2])
    report = Report(quick=True)
    with report.console.capture() as printed:
        first_contact.first_contact(report, tmp_path)
    assert "latencies" in printed.get() and "geometric mean" in printed.get()
    assert (tmp_path / "auto_regret.png").exists()


@pytest.fixture(scope="module")
def ways():
    """The table of what guarantees about persons cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(ROOT)])
        yield importlib.import_module("papers.persons")


def test_shares_of_the_weight_are_those_between_answer_and_target(ways):
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0])
    found = ways.shares_off(values, weights, 0.5, np.array([0.0, 1.0, 1.5, 2.5, 9.0]))
    assert found.tolist() == [0.5, 0.0, 0.0, 0.25, 0.5]
    table = ways.rows(np.random.default_rng(0))
    each = np.bincount(table.person, ways.of_random_persons(table))
    np.testing.assert_allclose(each, 1.0)


def test_the_usual_way_keeps_so_many_groups_of_each(ways, monkeypatch):
    table = ways.rows(np.random.default_rng(0)).shuffled(np.random.default_rng(1))
    for most in (1, 3, 10):
        pairs, spent = [], []

        def release(x, q, *, privacy_unit, epsilon, rng, into=(pairs, spent)):
            into[0].append(np.unique(privacy_unit))
            into[1].append(epsilon)

        monkeypatch.setattr(ways.dpq, "quantile", release)
        ways._split_by(most)(table, 1.0, np.random.default_rng(2))
        held = np.bincount(np.concatenate(pairs), minlength=ways.PERSONS)
        there = [np.unique(table.group[table.person == j]).size for j in range(ways.PERSONS)]
        assert held.tolist() == np.minimum(there, most).tolist()
        assert spent == [1.0 / most] * ways.GROUPS


@pytest.mark.slow
def test_ways_to_protect_persons_run_quickly(ways, tmp_path, monkeypatch):
    from papers.report import Report

    monkeypatch.setattr(ways, "PERSONS", 100)
    report = Report(quick=True)
    with report.console.capture() as printed:
        ways.persons(report, tmp_path)
    assert all(way in printed.get() for way in (*ways.WAYS, "L = 10"))
