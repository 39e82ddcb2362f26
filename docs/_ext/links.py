"""Whether each link inside built pages leads somewhere: ``python docs/_ext/links.py FOLDER``."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, and what it can be linked by."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name in ("href", "src"):
                self.links.append(value)
            elif name == "id":
                self.names.add(value)


def broken(folder: Path) -> list[str]:
    """A line for each link to a page, a file or a place on a page that is not there."""
    # the theme keeps templates of its own in there
    files = [path.resolve() for path in folder.rglob("*.html") if "_static" not in path.parts]
    pages = {path: Page(path) for path in files}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            name = unquote(parts.fragment)
            there = target.exists()
            if there and name and target in pages:
                there = name in pages[target].names
            if not there:
                found.append(f"{path.relative_to(folder.resolve())}: {link}")
    return found


if __name__ == "__main__":
    lines = broken(Path(sys.argv[1]))
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(bool(lines))
