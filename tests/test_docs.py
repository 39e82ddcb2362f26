"""Every block of Python on a page runs, and prints what stands below it; links are well formed."""

import gc
import pathlib
import re
from urllib.parse import urlsplit

import numpy as np
import pages
import pandas as pd
import pytest

import dpq_fast as dpq

README = pages.ROOT / "README.md"
EXAMPLES = sorted((pages.ROOT / "docs" / "examples").glob("plot_*.py"))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Pages write files: not here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")


def page(path):
    """A page; with an engine, what runs only where the engines are."""
    engine = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]
    marks = engine if path.stem in pages.ENGINES else []
    return pytest.param(path, marks=marks, id=str(path.relative_to(pages.ROOT / "docs")))


@pytest.mark.parametrize("path", [page(path) for path in pages.PAGES])
def test_code_on_pages_runs_and_prints_what_they_say(path):
    for block, printed in pages.run(path, {}):
        assert block.text is None or printed == block.text
    gc.collect()


def test_code_in_the_readme_runs(tmp_path):
    """Its columns are the reader's: here they are made."""
    rng = np.random.default_rng(0)
    salary = np.round(rng.lognormal(10.7, 0.4, 2_000), -2)
    department = rng.choice(["hr", "it", "ops"], 2_000)
    (tmp_path / "salaries").mkdir()
    np.save(tmp_path / "salaries" / "2026.npy", salary)
    frame = pd.DataFrame({"salary": salary, "department": department})
    frame.to_parquet(tmp_path / "salaries.parquet")
    given = dict(
        np=np, dpq=dpq, salary=salary, department=department, grade=rng.integers(1, 5, 2_000)
    )
    ran = list(pages.run(README, {**given, "pathlib": pathlib}))
    assert ran


def test_a_page_that_says_something_else_is_found(tmp_path):
    """The check can fail."""
    wrong = tmp_path / "wrong.md"
    wrong.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n", "utf-8")
    ((block, printed),) = pages.run(wrong, {})
    assert (block.text, printed) == ("3\n", "2\n")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path):
    import matplotlib.pyplot as plt

    exec(compile(path.read_text("utf-8"), str(path), "exec"), {})
    assert plt.get_fignums()
    plt.close("all")


def test_links_to_elsewhere_are_well_formed():
    for path in [README, *pages.PAGES, *EXAMPLES]:
        for link in re.findall(r"https?:[^\s)>\"'`\]]*", path.read_text("utf-8")):
            parts = urlsplit(link)
            assert parts.scheme == "https", link
            assert re.fullmatch(r"([a-z0-9-]+\.)+[a-z]+", parts.netloc), link
