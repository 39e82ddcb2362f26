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


@pytest.fixture(scope="module", autouse=True)
def apart():
    """What was there before is no matter of the collections that follow pages."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Pages write files: not here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # of the workers, else python3 of PATH


def page(path):
    """A page; with an engine, what runs only where the engines are."""
    engine = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]
    slow = [pytest.mark.slow] if path.stem in {"method", "tour", "epsilon"} else []
    marks = engine if path.stem in pages.ENGINES else slow
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


# Figures that no page prints: a step of a search, shares of groups, computed beside them.
STATED = {
    "unbounded_quantile.md": {"1.01"},
    "groups.md": {"99.9"},
    "reproduction.md": {"48842", "262144"},  # records of Adult, leaves of a tree
}


@pytest.mark.parametrize("path", pages.PAGES, ids=lambda path: str(path.relative_to(pages.ROOT)))
def test_figures_in_sentences_are_those_that_the_page_prints(path):
    if any(block.text for block in pages.blocks(path.read_text("utf-8"))):
        assert pages.from_nowhere(path) == STATED.get(path.name, set())


def test_figures_that_a_page_does_not_print_are_found(tmp_path):
    wrong = tmp_path / "wrong.md"
    text = "Half are below 45,800 (44,100 to 49,600), by `1234`.\n\n```text\n44100 [49_600]\n```\n"
    wrong.write_text(text, "utf-8")
    assert pages.from_nowhere(wrong) == {"45800"}


@pytest.mark.slow
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


LINK = re.compile(r"\[[^\[\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def links(path):
    """Files that a page links to, each with the heading, or ""."""
    for target, place in LINK.findall(path.read_text("utf-8")):
        yield (path.parent / target).resolve() if target else path, place


def headings(path):
    """What the headings of a file are called in links, by those who host files."""
    lines = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S).splitlines()
    words = [line.lstrip("#").strip().lower() for line in lines if re.match("#+ ", line)]
    return {re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in words}


def lead_nowhere(path):
    return [
        (target.name, place)
        for target, place in links(path)
        if not target.exists() or (place and place not in headings(target))
    ]


def test_links_between_files_lead_to_files_and_their_headings():
    """So they work where files are read as they lie; in built pages `links.py` follows them."""
    for path in [*pages.PAGES, *pages.ROOT.glob("*.md")]:
        assert not lead_nowhere(path), path


def test_links_between_files_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "other.md").write_text("# Here `it_is`\n\n```\n# no heading\n```\n", "utf-8")
    page = tmp_path / "page.md"
    page.write_text("[a](other.md#here-it_is) [b](other.md#no-heading) [c](gone.md)", "utf-8")
    assert lead_nowhere(page) == [("other.md", "no-heading"), ("gone.md", "")]


def test_front_page_is_short():
    assert len(pages.README.read_text("utf-8").splitlines()) <= 150


def listed(page):
    """What an index lists, one a line."""
    return set(re.findall(r"^   ([\w.]+)$", (pages.ROOT / "docs" / page).read_text("utf-8"), re.M))


def test_reference_lists_all_public_names():
    names = listed("reference/index.rst")
    modules = {"noise", "plots", "privacy"}  # by their functions
    names |= {name.removeprefix("privacy.") for name in names}  # some are at the top, too
    assert set(dpq.__all__) - modules - names == set()
    functions = {"charge", "compose", "guarantee", "one_sided_loss"}
    assert {f"privacy.{name}" for name in functions} <= names


def row(title, document):
    """What the table at the top of a mechanism's page has beside a title."""
    (cell,) = re.findall(rf"^\| \*\*{title}\*\* \|(.*)\|$", document, re.M)
    return cell


# What has the law of another one, in each group or bin.
LIKE = {"var_by": "sum_by", "std_by": "sum_by", "histogram": "count"}


@pytest.mark.parametrize("name", MECHANISMS)
def test_guarantee_proof_and_audits_are_two_links_from_the_front_page(name):
    """The page of the mechanism is one, and from there its proof, and its audits, another."""
    table = pages.README.read_text("utf-8").partition("## Mechanisms")[2].partition("\n## ")[0]
    (target,) = re.findall(rf"^\|.*`{name}`.*\]\((docs/mechanisms/\w+\.md)\)", table, re.M)
    page = pages.ROOT / target
    document = page.read_text("utf-8")
    assert f"`dpq_fast.{name}`" in row("functions", document)
    assert row("guarantee", document).strip()
    proofs = re.findall(r"\[`(dpq_fast\.[\w.]+)`\]\(([\w./]+)\)", row("proof", document))
    assert proofs
    for proof, source in proofs:
        # in built pages, a page made of the docstrings
        assert proof in listed("proofs/index.rst")
        assert (page.parent / source).resolve() == pages.ROOT / f"{proof.replace('.', '/')}.py"
    (audits,) = re.findall(r"^<!-- audits: ([\w ]+) -->$", document, re.M)
    audited = LIKE.get(name, name)
    assert audited in audits.split()
    assert (pages.ROOT / "docs" / "audits.md", f"audits-of-{audited}") in set(links(page))
