"""Docstrings that explain each argument where it stands: "As in `joint_exp`." is spelled out.

An argument that several functions take is explained once, in the source of one of them. What help
shows of the others has the same paragraph in place of the reference.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dpq_fast._arguments import names_of

_HEADING = "\nParameters\n----------\n"
_NEXT = re.compile(r"\n\n\w[\w ]+\n---")
_FOOTNOTE = re.compile(r" \[\d+\]_")
_REFERENCE = re.compile(r"(?:For an interval, as|As) in `([\w.]+)`[.,:;]?\s*(.*)", re.DOTALL)


class Entry(NamedTuple):
    """An argument, or several that share a text.

    Attributes
    ----------
    names : list of str
    kind : str
        What follows the names on their line.
    text : str
        Indented.
    """

    names: list[str]
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{', '.join(self.names)}{self.kind}\n{self.text}"


def spell_out(functions: Mapping[str, Any]) -> None:
    """Spell out the references in the docstrings of these, which are to others of them.

    Parameters
    ----------
    functions : mapping of str to callable
        By the names that references have. The methods of classes are added.
    """
    functions = dict(functions)
    for name, kind in list(functions.items()):
        if isinstance(kind, type):
            methods = [each for each in vars(kind) if not each.startswith("_")]
            functions |= {f"{name}.{each}": getattr(kind, each) for each in methods}
    functions = {name: each for name, each in functions.items() if callable(each)}
    docs = {name: inspect.cleandoc(each.__doc__ or "") for name, each in functions.items()}
    sections = {name: _section(doc) for name, doc in docs.items()}
    written = {name: list(_entries(docs[name][slice(*at)])) for name, at in sections.items()}
    own = {
        name: {each: e for e in entries for each in e.names} for name, entries in written.items()
    }

    def explained(name: str, argument: str, *asked: str) -> Entry | None:
        """What a function says of an argument, itself or by reference; None if none says it."""
        if name in asked:
            return None
        entry = own.get(name, {}).get(argument)
        reference = None if entry is None else _reference(entry)
        if entry is None or reference is None:
            return entry
        of = _named(name, reference[0], functions)
        found = explained(of, argument, name, *asked)
        if found is None:
            return None
        text = _FOOTNOTE.sub("", found.text)  # whose list is that of the other one
        if "." not in name:
            text = text.replace(f'guarantee("{of}"', f'guarantee("{name}"')
        return Entry([argument], found.kind, text)

    def all_options(name: str, of: str) -> list[Entry]:
        """What another function says of all that this one hands to it by ``**options``."""
        taken = [each for each in names_of(functions[name]) if each not in own[name]]
        options = [each for each in own.get(of, {}) if each in taken or each.startswith("**")]
        return [entry for each in options if (entry := explained(of, each)) is not None]

    for name, entries in written.items():
        spelled: list[Entry] = []
        for entry in entries:
            reference = _reference(entry)
            found = [explained(name, argument) for argument in entry.names]
            if reference and found == [None] and entry.names[0].startswith("**"):
                found = list(all_options(name, reference[0])) or found
            if reference is None or found == [entry]:
                spelled.append(entry)
                continue
            spelled += [each for each in found if each is not None]
            unknown = [n for n, each in zip(entry.names, found, strict=False) if each is None]
            if unknown:
                spelled.append(Entry(unknown, entry.kind, entry.text))
            elif rest := reference[1].removeprefix("Public."):
                rest = f"    {rest[0].upper()}{rest[1:]}".replace("\n", "\n    ")
                spelled.append(Entry(entry.names, "", rest))
        if spelled != entries:
            function = getattr(functions[name], "__func__", functions[name])
            start, end = sections[name]
            whole = "\n".join(map(str, spelled))
            function.__doc__ = f"{docs[name][:start]}{whole}{docs[name][end:]}\n"


def _named(name: str, of: str, functions: Mapping[str, Any]) -> str:
    """What a reference in the docstring of a function is to: a method of its class, if need be."""
    method = f"{name.rpartition('.')[0]}.{of}"
    return method if method in functions else of


def _reference(entry: Entry) -> tuple[str, str] | None:
    """The function that an entry refers to, and what it says beyond that."""
    found = _REFERENCE.fullmatch(inspect.cleandoc(entry.text))
    return None if found is None else (found[1], found[2])


def _section(doc: str) -> tuple[int, int]:
    """Where the arguments are explained in a docstring; nowhere if they are not."""
    _, heading, rest = doc.partition(_HEADING)
    start = len(doc) - len(rest)
    end = _NEXT.search(rest)
    return (start, start + end.start() if end and heading else len(doc) if heading else start)


def _entries(section: str) -> Iterator[Entry]:
    """The arguments of a section of a docstring."""
    head, text = "", list[str]()
    for line in [*section.splitlines(), "."]:
        if line[:1] in ("", " "):
            text.append(line)
            continue
        if head:
            names, colon, kind = head.partition(" : ")
            yield Entry(names.split(", "), colon + kind, "\n".join(text))
        head, text = line, []
