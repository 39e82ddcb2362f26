"""Every block of Python on a page runs, and prints what stands below it; links are well formed."""

import gc
import re
import subprocess
import sys
from urllib.parse import urlsplit

import pages
import pytest

import dpq_fast as dpq
from dpq_fast.mechanisms.registry import MECHANISMS

EXAMPLES = sorted((pages.ROOT / "docs" / "examples").glob("plot_*.py"))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Pages write files: not here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # of the workers, else python3 of PATH


def page(path):
    """A page; with an engine, what runs only where the engines are."""
    engine = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]
    marks = engine if path.stem in pages.ENGINES else []
    return pytest.param(path, marks=marks, id=str(path.relative_to(pages.ROOT)))


@pytest.mark.parametrize("path", [page(path) for path in pages.PAGES])
def test_code_on_pages_runs_and_prints_what_they_say(path):
    for block, printed in pages.run(path, {}):
        assert block.text is None or printed == block.text
    gc.collect()


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
    for path in [*pages.PAGES, *EXAMPLES]:
        for link in re.findall(r"https?:[^\s)>\"'`\]]*", path.read_text("utf-8")):
            parts = urlsplit(link)
            assert parts.scheme == "https", link
            assert re.fullmatch(r"([a-z0-9-]+\.)+[a-z]+", parts.netloc), link


def test_links_that_lead_nowhere_are_found(tmp_path):
    script = pages.ROOT / "docs" / "_ext" / "links.py"
    (tmp_path / "other.html").write_text('<p id="here">', "utf-8")
    links = ["other.html#here", "#top", "other.html#there", "gone.html", "https://example.org"]
    body = "".join(f'<a href="{link}"></a>' for link in links)
    (tmp_path / "page.html").write_text(f'<body id="top">{body}</body>', "utf-8")
    ran = subprocess.run(
        [sys.executable, script, tmp_path], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert ran.stdout.splitlines() == ["page.html: other.html#there", "page.html: gone.html"]


def listed(page):
    """What an index lists, one a line."""
    return set(re.findall(r"^   ([\w.]+)$", (pages.ROOT / "docs" / page).read_text("utf-8"), re.M))


def test_reference_lists_all_public_names():
    names = listed("reference/index.rst")
    modules = {"noise", "plots", "privacy"}  # by their functions
    assert set(dpq.__all__) - modules - names == set()
    functions = {"charge", "compose", "guarantee", "one_sided_loss"}
    assert {f"privacy.{name}" for name in functions} <= names


def test_each_mechanism_has_a_page_with_its_proof_and_its_audits():
    documents = {path.stem: path.read_text("utf-8") for path in pages.PAGES}
    proofs = listed("proofs/index.rst")
    for name in MECHANISMS:
        found = [
            text
            for text in documents.values()
            if re.search(rf"^\| \*\*functions\*\* \|.*`dpq_fast\.{name}`", text, re.M)
        ]
        assert len(found) == 1, name
        (audits,) = re.findall(r"^```\{audits\} (.*)$", found[0], re.M)
        assert name in audits.split()
        (proof,) = re.findall(r"^\| \*\*proof\*\* \|(.*)$", found[0], re.M)
        assert set(re.findall(r"`(dpq_fast\.[\w.]+)`", proof)) <= proofs
