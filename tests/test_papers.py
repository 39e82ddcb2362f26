"""The papers' tables and figures: data, rows and verdicts, and the page that is made of them."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def papers():
    """The command; behind what is installed, as when it runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(ROOT)])
        yield importlib.import_module("papers.run")


@pytest.fixture
def columns(papers):
    papers.columns.read_columns.cache_clear()
    yield papers.columns
    papers.columns.read_columns.cache_clear()


# --- Data -----------------------------------------------------------------------------------------


def test_adult_is_in_the_repository(columns):
    age, hours = columns.REAL["age"].load(), columns.REAL["hours_per_week"].load()
    assert age.shape == hours.shape == (48_842,)
    assert age.dtype == hours.dtype == np.int64
    assert (age[0], hours[0], int(np.median(age)), int(np.median(hours))) == (39, 40, 37, 40)
    assert columns.FILES["adult"].stat().st_size < 300_000


def test_a_changed_number_is_refused(columns, tmp_path):
    text = gzip.decompress(columns.FILES["adult"].read_bytes()).decode()
    same, other = tmp_path / "same.csv", tmp_path / "other.csv"
    same.write_text(text, "utf-8")
    other.write_text(text.replace("39,40\n", "39,41\n", 1), "utf-8")
    assert columns.read_columns("adult", same)["age"][0] == 39
    with pytest.raises(ValueError, match="its numbers have another SHA-256"):
        columns.read_columns("adult", other)
    with pytest.raises(ValueError, match="it has other columns"):
        columns.read_columns("goodreads", same)


def test_goodreads_is_read_from_its_own_file(columns, tmp_path, monkeypatch):
    """Whose header has spaces, and whose authors may have a comma too many."""
    books = tmp_path / "books.csv"
    books.write_text(
        "bookID,title,authors,average_rating,isbn,  num_pages,publisher\n"
        '1,"A, B",C,4.57,x,652,P\n2,D,E, Jr.,3.58,x,236,Q\n',
        "utf-8",
    )
    digest = hashlib.sha256(b"average_rating,num_pages\n4.57,652\n3.58,236\n").hexdigest()
    monkeypatch.setitem(columns.SHA256, "goodreads", digest)
    found = columns.read_columns("goodreads", books)
    assert found["average_rating"].tolist() == [4.57, 3.58]
    assert found["num_pages"].tolist() == [652, 236]


def test_what_needs_a_file_is_skipped_by_name(columns, papers, monkeypatch, tmp_path):
    monkeypatch.setitem(columns.FILES, "goodreads", tmp_path / "none.csv")
    found = papers.ITEMS["joint_data"](papers.outcome.Effort(0.1))
    assert found.skipped == [
        f"{name}: needs the file of goodreads" for name in ("average_rating", "num_pages")
    ]
    assert [row.name.split(":")[0] for row in found.rows] == ["N(0, 5)", "U(-5, 5)"]


def test_checksums_stand_in_the_credits(columns):
    credits = (ROOT / "papers" / "data" / "README.md").read_text("utf-8")
    assert all(digest in credits for digest in columns.SHA256.values())
    assert "CC BY 4.0" in credits and "10.24432/C5XW20" in credits


# --- Rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(10.0, "reproduced"), (7.4, "better"), (12.6, "worse"), (11.9, "reproduced")],
)
def test_verdicts_go_by_standard_errors(papers, ours, verdict):
    row = papers.outcome.Row("x", ours, 0.3, 10.0, 0.7)
    assert row.verdict == verdict
    assert row.apart == pytest.approx((ours - 10.0) / np.hypot(0.3, 0.7))


@pytest.mark.parametrize(
    ("ours", "verdict"), [(1.0, "reproduced"), (0.0, "better"), (2.0, "worse")]
)
def test_verdicts_of_numbers_without_errors(papers, ours, verdict):
    """As of two trials that came out alike."""
    assert papers.outcome.Row("x", ours, paper=1.0).verdict == verdict


def test_a_row_that_leaves_its_error_is_found(papers):
    outcome = papers.outcome
    row = outcome.Row("x", 1.0, 0.1, 1.0)
    before = {"effort": {"full": False, "times": 1.0}, "rows": [row]}

    def others(ours, times=1.0, **more):
        again = dataclasses.replace(row, ours=ours, **more)
        return outcome.differences(before, [again], outcome.Effort(times))

    assert others(1.6) == []
    assert len(others(1.8)) == 1
    assert others(1.8, 0.1) == []  # a tenth of the trials has three times the error
    assert others(1.8, timed=True) == []


def test_a_check_of_other_results_fails(papers, tmp_path, monkeypatch):
    outcome = papers.outcome
    data = outcome.read(outcome.RESULTS, "joint_numbers")
    for row in data["rows"]:
        row.ours *= 1.01
    data["rows"] = [dataclasses.asdict(row) for row in data["rows"]]
    outcome.write(tmp_path, "joint_numbers", data)
    monkeypatch.setattr(sys, "argv", ["run.py", "--check", "--only", "joint_numbers"])
    papers.main()
    monkeypatch.setattr(outcome, "RESULTS", tmp_path)
    with pytest.raises(SystemExit, match="rows are others than those of papers/results"):
        papers.main()


# --- Index and page -------------------------------------------------------------------------------


def test_every_place_of_the_index_has_rows_with_verdicts(papers):
    from papers.printed import DOCUMENTS, INDEX

    assert {place.document for place in INDEX} == set(DOCUMENTS)
    assert {place.item for place in INDEX} == set(papers.ITEMS)
    for document, figures in (("[GJK21]", 6), ("[Dur23]", 3)):
        listed = {place.where for place in INDEX if place.document == document}
        assert {f"Figure {k + 1}" for k in range(figures)} <= listed
        assert "Table 1" in listed
    for item in papers.ITEMS:
        data = papers.outcome.read(papers.outcome.RESULTS, item)
        assert data is not None and data["rows"], item
        assert not [each for each in data["skipped"] if "needs the file" in each], item
        assert {"date", "machine", "commit", "seeds", "effort", "seconds"} <= set(data)
        names = [row.name for row in data["rows"]]
        assert len(set(names)) == len(names), item
        for row in data["rows"]:
            assert row.verdict in papers.outcome.VERDICTS, row.name
            if row.verdict in ("worse", "not possible"):
                assert row.why, row.name


def test_all_cells_of_the_table_of_sums_are_there(papers):
    data = papers.outcome.read(papers.outcome.RESULTS, "unbounded_sums")
    published = [row for row in data["rows"] if ", published" in row.name]
    assert len(published) == 36


def test_the_page_is_made_of_the_results(papers):
    """Run ``python papers/run.py --page`` after a change."""
    page = papers.page
    assert page.PAGE.read_text("utf-8") == page.made(papers.outcome.RESULTS)


def test_pictures_are_drawn(papers, tmp_path):
    papers.page.draw(tmp_path)
    drawn = {path.stem for path in tmp_path.glob("*.svg")}
    assert drawn == set(papers.page.PICTURES)
    page = papers.page.PAGE.read_text("utf-8")
    assert set(re.findall(r"_generated/reproduction/(\w+)\.svg", page)) == drawn


def test_numbers_of_the_papers_stand_in_one_place(papers):
    from papers import printed

    numbers = {
        f"{number:.2f}" for cells in printed.SUMS.values() for cell in cells for number in cell
    }
    distinct = {number for number in numbers if len(number) >= 6} | {str(printed.ALPHA)}
    assert len(distinct) > 30
    for folder in ("papers", "bench"):
        for path in (ROOT / folder).glob("*.py"):
            if path.name != "printed.py":
                held = set(re.findall(r"\d+\.\d\d\b", path.read_text("utf-8")))
                assert not held & distinct, path


def test_errata_name_tests_that_there_are(papers):
    text = papers.page.FOOT
    for path in re.findall(r"`(tests/[\w/]+\.py)`", text):
        assert (ROOT / path).exists(), path
    source = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in source, name


def test_the_published_tree_gives_back_counts_without_noise(papers):
    """In two levels; in three its fault shows."""
    published = importlib.import_module("bench.published")
    x, q = np.random.default_rng(0).beta(2.0, 20.0, 10**6), np.array([0.1, 0.5, 0.9])
    exact = np.quantile(x, q)
    for height, branching, near in ((2, 30, True), (3, 10, False)):
        rng = np.random.default_rng(1)
        found = published.agg_tree(x, q, 1e9, (0.0, 1.0), height, branching, rng)
        assert (np.abs(found - exact).max() < 2e-4) == near
