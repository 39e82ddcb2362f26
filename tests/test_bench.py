"""The rows of the benchmarks, and the tables that README makes of them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def bench():
    """The runner; behind what is installed, as when it runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(ROOT)])
        yield importlib.import_module("bench.run")


@pytest.fixture(scope="module")
def readme():
    return (ROOT / "README.md").read_text()


def test_names_of_cases_are_unique(bench):
    names = [case.name for case in (*bench.CASES, *bench.ERRORS)]
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
        assert not case.readme or tuple(case.sides) == bench.RANKS.titles[1:], case.name


def test_no_bar_in_what_readme_shows(bench):
    for case in bench.CASES:
        shown = [case.work, *(side.label for side in case.against)]
        assert not any("bar" in cell or "stretch" in cell for cell in shown), case.name


def test_readme_has_a_line_for_every_row_of_its_own_and_no_other(bench, readme):
    """Run ``python bench/run.py --only NAME --write README.md`` for a new row."""
    expected = []
    for case in bench.CASES:
        labels = [side.label for side in case.against if side.readme] or [""]
        for work in bench.works(case) if case.readme else ():
            expected += zip([work, *[""] * (len(labels) - 1)], labels, strict=True)
    assert [(row[0], row[2]) for row in bench.TIMES.rows(readme)] == expected
    assert len({work for work, _ in expected if work}) == sum(bool(work) for work, _ in expected)
    columns = [case.column for case in bench.ERRORS if case.readme]
    assert [row[0] for row in bench.RANKS.rows(readme)] == columns


def test_scaled_figures_say_so(bench):
    for case in bench.CASES:
        for side in case.against:
            if side.part is not None:
                assert "extrapolated" in side.label or "scaled" in side.label, case.name
            if side.repeats > 1:
                assert f"{side.repeats} times" in side.label, case.name


def test_written_tables_are_read_back(bench, readme):
    works = [row[0] for row in bench.TIMES.rows(readme) if row[0]]
    assert bench.TIMES.updated(readme, works, {}) == readme
    new = [("work", "1 s", "peer", "2 s", "2.0"), ("", "", "other", "3 s", "3.0")]
    document = bench.TIMES.updated(readme, ["work"], {"work": new})
    assert bench.TIMES.rows(document) == new
    assert bench.RANKS.rows(document) == bench.RANKS.rows(readme)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3.4e-5, "34 µs"), (1.48e-4, "0.15 ms"), (0.0088, "8.8 ms"), (0.17, "0.17 s"), (424, "420 s")],
)
def test_durations_have_two_digits(bench, seconds, text):
    measure = importlib.import_module("bench.measure")
    assert measure.duration(seconds) == text


def test_counts_are_powers_of_ten_or_in_full(bench):
    count = importlib.import_module("bench.measure").count
    assert [count(n) for n in (10, 1_000, 30_000, 10**8)] == ["10", "1,000", "30,000", "10⁸"]
