"""The code on the front page and in the documentation: what it does, and what it prints.

``python tests/pages.py --write`` puts what each block prints into the block of text below it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [
    README,
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if not {"_build", "gallery", "generated"} & set(page.relative_to(ROOT).parts)
    ),
]
# What `.[test]` does not install.
ENGINES = {"dask", "ray", "spark", "sql"}
CODE = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<text>.*?)^```\n)?", re.DOTALL | re.MULTILINE
)
# What is not prose: blocks, code, targets of links, formulas, rows of tables and headings.
BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
TABLE = re.compile(r"^\|.*$", re.MULTILINE)
NO_PROSE = re.compile(r"`[^`]*`|\]\([^)]*\)|<!--.*?-->|\$[^$]*\$|^#.*?$", re.DOTALL | re.MULTILINE)
FIGURE = re.compile(r"(?<![\w.^-])\d[\d,]*(?:\.\d+)?(?![\w^])")
# Digits, but for zeros at the ends, from which on a figure is a result.
MANY_DIGITS = 3
# Tables that `bench/run.py` writes.
MEASURED = [README, *(ROOT / "docs" / f"{name}.md" for name in ("accuracy", "performance"))]


class Block(NamedTuple):
    """A block of Python.

    Attributes
    ----------
    code : str
        With as many empty lines before it as stand before it on the page.
    text : str or None
        What it prints, by the page.
    span : (int, int)
        Where the text stands.
    """

    code: str
    text: str | None
    span: tuple[int, int]


def blocks(document: str) -> Iterator[Block]:
    for found in CODE.finditer(document):
        lines = document.count("\n", 0, found.start("code"))
        yield Block("\n" * lines + found["code"], found["text"], found.span("text"))


def run(page: Path, namespace: dict[str, Any]) -> Iterator[tuple[Block, str]]:
    """Each block of a page and what it printed, in one namespace, one after the other."""
    for block in blocks(page.read_text("utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code, str(page), "exec"), namespace)
        lines = [line.rstrip() for line in printed.getvalue().splitlines()]
        yield block, "\n".join([*lines, ""]) if lines else ""


def figures(text: str) -> set[str]:
    """The numbers in a text, as they are without commas and zeros at the end."""
    plain = (found.replace(",", "").replace("_", "") for found in FIGURE.findall(text))
    return {each.rstrip("0").rstrip(".") if "." in each else each for each in plain}


def from_nowhere(page: Path) -> set[str]:
    """Figures of many digits in the prose of a page of no block there, and of no measured table."""
    document = page.read_text("utf-8")
    prose = NO_PROSE.sub("", TABLE.sub("", BLOCK.sub("", document)))
    known = figures("\n".join(BLOCK.findall(document)).replace("_", ""))
    for measured in MEASURED:
        known |= figures("\n".join(TABLE.findall(measured.read_text("utf-8"))))
    digits = {each: each.replace(".", "").strip("0") for each in figures(prose) - known}
    return {each for each, held in digits.items() if len(held) >= MANY_DIGITS}


def written(page: Path) -> str:
    """A page with what its blocks print now."""
    document = page.read_text("utf-8")
    found = [(block, text) for block, text in run(page, {}) if block.text is not None]
    for block, text in reversed(found):
        start, end = block.span
        document = document[:start] + text + document[end:]
    return document


def main() -> None:
    parser = argparse.ArgumentParser(description="What the blocks of pages print.")
    parser.add_argument("--write", action="store_true", required=True)
    parser.add_argument("names", nargs="*", help="parts of the pages' paths; all if there is none")
    names = parser.parse_args().names
    for page in PAGES:
        if page.stem in ENGINES or (names and not any(name in str(page) for name in names)):
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            page.write_text(written(page), "utf-8")
            os.chdir(ROOT)


if __name__ == "__main__":
    main()
