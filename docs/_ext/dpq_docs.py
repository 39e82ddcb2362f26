"""What this documentation adds to Sphinx.

Links that lead somewhere where the files are read as they lie, too; formulas as MathML, names
between single backticks of docstrings, papers' keys that link to rows of their table, and the
audits of one mechanism.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from latex2mathml.converter import convert
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
logger = logging.getLogger(__name__)


# --- Links between files --------------------------------------------------------------------------

# A link of Markdown to a file: what it says, the file, and the place on it.
LINK = re.compile(r"\[([^\[\]]+)\]\(([\w./-]+\.(?:md|py|rst))(#[\w-]+)?\)")
AUDITS = re.compile(r"^<!-- audits: ([\w ]+?)(?:; (\w+))? -->$", re.MULTILINE)


def _as_pages(app: Sphinx, page: str, content: list[str]) -> None:
    """What is written for readers of the files, for pages made of them.

    Files beside `docs` are pages of theirs, examples those of the gallery, and a link from a name
    to the source that documents it leads to its documentation. A comment names audits to be shown.
    """
    folder = (DOCS / page).parent

    def changed(link: re.Match[str]) -> str:
        text, target, place = link.groups()
        path = (folder / target).resolve()
        if path.parent == ROOT:
            return f"[{text}](/{path.stem.lower()}.md{place or ''})"
        if path.parent == DOCS / "examples":
            return f"[{text}](/gallery/{'index' if path.stem == 'README' else path.stem})"
        if ROOT / "dpq_fast" in path.parents:
            name = text.strip("`").removeprefix("dpq_fast.")
            return f"{{py:obj}}`{text.strip('`')} <dpq_fast.{name}>`"
        return link[0]

    def shown(audits: re.Match[str]) -> str:
        setting = f":setting: {audits[2]}\n" if audits[2] else ""
        return f"```{{audits}} {audits[1]}\n{setting}```"

    content[0] = AUDITS.sub(shown, LINK.sub(changed, content[0]))


# --- Formulas -------------------------------------------------------------------------------------


def _mathml(translator: Any, node: nodes.Element, display: str) -> None:
    """A formula as MathML, which browsers draw by themselves: nothing comes from elsewhere."""
    formula = node.astext()
    if display == "block" and r"\\" in formula:  # lines, aligned at their ampersands
        formula = rf"\begin{{split}}{formula}\end{{split}}"
    try:
        tree = convert(formula, display=display)
    except Exception as error:  # of any kind: it parses what it is given by hand
        logger.warning("formula %r: %s: %s", formula, type(error).__name__, error, location=node)
        tree = translator.encode(formula)
    translator.body.append(f'<div class="formula">{tree}</div>' if display == "block" else tree)
    raise nodes.SkipNode


def _inline(translator: Any, node: nodes.Element) -> None:
    _mathml(translator, node, "inline")


def _displayed(translator: Any, node: nodes.Element) -> None:
    _mathml(translator, node, "block")


# --- Names between single backticks ---------------------------------------------------------------

# Where names are looked up that are not found where they stand.
PREFIXES = ("dpq_fast.", "dpq_fast.privacy.")
LOOSE = "dpq_loose"


class Name(SphinxRole):
    """A link where the name is documented, else code: docstrings name arguments in the same way."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        code = nodes.literal(self.text, self.text, classes=["xref", "py", "py-obj"])
        where = dict(refdomain="py", reftype="obj", reftarget=self.text, refdoc=self.env.docname)
        reference = addnodes.pending_xref(self.rawtext, code, **where)
        reference[LOOSE] = True
        for scope in ("py:module", "py:class"):
            reference[scope] = self.env.ref_context.get(scope)
        return [reference], []


def _resolve_name(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, contnode: nodes.Element
) -> nodes.Node | None:
    """What is not found where it stands: the package's, or nothing but code."""
    if node.get("refdomain") != "py":
        return None
    domain = env.get_domain("py")
    for prefix in PREFIXES:
        found = domain.objects.get(prefix + node["reftarget"])
        if found is not None:
            uri = app.builder.get_relative_uri(node["refdoc"], found.docname)
            return nodes.reference("", "", contnode, internal=True, refuri=f"{uri}#{found.node_id}")
    return contnode if node.get(LOOSE) else None


# --- Long tables, and rows that can be linked to -------------------------------------------------

# Pages with such tables, and the title of their first column.
LONG_TABLES = {"papers": "key", "audits": "relation"}
# What is left as it is.
KEPT = (nodes.reference, nodes.literal, nodes.math, nodes.FixedTextElement)
KEY = re.compile(r"\[([A-Z][A-Za-z]*\+?\d\d)\]")


def row_name(key: str) -> str:
    return "paper-" + key.strip("[]").lower().replace("+", "-")


def _long_tables(app: Sphinx, document: nodes.document) -> None:
    """Smaller letters; each row of the papers gets a name."""
    page = app.env.docname
    labels = app.env.get_domain("std")
    for table in document.findall(nodes.table):
        rows = list(table.findall(nodes.row))
        if rows[0].children[0].astext() != LONG_TABLES.get(page):
            continue
        table["classes"].append("dense")
        for row in rows[1:] if page == "papers" else ():
            cell = row.children[0].astext()
            name = row_name(cell)
            row["ids"].append(name)
            document.ids[name] = row
            labels.anonlabels[name] = (page, name)
            labels.labels[name] = (page, name, cell)


def _link_keys(app: Sphinx, document: nodes.document, page: str) -> None:
    """Keys of papers, wherever they stand, link to the table of papers."""
    if page == "papers":
        return
    uri = app.builder.get_relative_uri(page, "papers")
    labels = app.env.get_domain("std").anonlabels
    for text in list(document.findall(nodes.Text)):
        inside = text.parent
        while inside is not None and not isinstance(inside, KEPT):
            inside = inside.parent
        parts = KEY.split(text.astext())
        if inside is not None or len(parts) == 1:
            continue
        found: list[nodes.Node] = [nodes.Text(parts[0])]
        for key, after in zip(parts[1::2], parts[2::2], strict=True):
            name = row_name(key)
            if name in labels:
                link = nodes.reference("", f"[{key}]", internal=True, refuri=f"{uri}#{name}")
                found.append(link)
            else:
                found.append(nodes.Text(f"[{key}]"))
            found.append(nodes.Text(after))
        text.parent.replace(text, found)


# --- The audits of a mechanism --------------------------------------------------------------------

# A table of docs/audits.md, and whose it is.
HEADED = re.compile(r"^### Audits of `(\w+)`\n\n((?:\|.*\n)+)", re.MULTILINE)


class Audits(SphinxDirective):
    """The rows of the tables in docs/audits.md that are of the functions given."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {"setting": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        source = DOCS / "audits.md"
        self.env.note_dependency(str(source))
        inside = source.read_text("utf-8").split("<!-- audit table: begin -->")[1]
        tables = dict(HEADED.findall(inside.split("<!-- audit table: end -->")[0]))
        names = self.arguments[0].split()
        setting = self.options.get("setting", "")
        kept: list[str] = []
        for name in names:
            head, rule, *rows = tables.get(name, "\n").strip().split("\n")
            own = [row for row in rows if setting in row.split("|")[2]]
            if not own:
                raise self.error(f"docs/audits.md has no such audit of {name}")
            if len(names) > 1:  # else it needs no column
                own = [f"| `{name}` {row}" for row in own]
            kept += own
        if len(names) > 1:
            head, rule = f"| mechanism {head}", f"|---{rule}"
        caught = [tuple(map(int, re.findall(r"\d+", row.split("|")[-2]))) for row in kept]
        found, planted = (sum(column) for column in zip(*caught, strict=True))
        sentence = (
            f"{len(kept)} audits, beside {planted} deliberately broken copies, of which "
            f"{found} were caught."
        )
        box = nodes.container(classes=["audits"])
        content = StringList([sentence, "", head, rule, *kept, ""], str(source))
        self.state.nested_parse(content, self.content_offset, box)
        return [box]


# --- Members --------------------------------------------------------------------------------------


def _skip_field(
    app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Fields of named tuples stand in the docstring of the class: "alias for field number 0"."""
    return True if type(member).__name__ == "_tuplegetter" else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_inline, None), (_displayed, None))
    app.add_role("name", Name())
    app.add_directive("audits", Audits)
    app.connect("source-read", _as_pages)
    app.connect("autodoc-skip-member", _skip_field)
    app.connect("missing-reference", _resolve_name)
    app.connect("doctree-read", _long_tables)
    app.connect("doctree-resolved", _link_keys)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
