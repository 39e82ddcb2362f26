"""The examples in docstrings run, and every public name has one docstring in numpydoc form."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import FunctionType

import pytest

import dpq_fast as dpq

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(dpq.__path__, "dpq_fast.")
    if "._kernels" not in module.name
)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", [name for name in dpq.__all__ if callable(getattr(dpq, name))])
def test_public_names_are_documented(name):
    function = getattr(dpq, name)
    assert "Examples\n" in function.__doc__
    if inspect.isclass(function):
        return
    for heading in ("Parameters\n", "Returns\n"):
        assert heading in function.__doc__
    undocumented = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in function.__doc__ and "as in `" not in function.__doc__
    ]
    assert undocumented == []


@pytest.mark.parametrize("name", MODULES)
def test_public_methods_are_documented(name):
    module = importlib.import_module(name)
    undocumented = [
        f"{kind.__name__}.{method}"
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__ == name
        for method, value in vars(kind).items()
        if not method.startswith("_")
        and isinstance(value, (FunctionType, classmethod, staticmethod, property))
        # an override has the docstring of what it overrides
        and not inspect.getdoc(getattr(kind, method))
    ]
    assert undocumented == []


def test_papers_cited_are_those_listed():
    root = Path(__file__).resolve().parents[1]
    key = r"\[([A-Z][A-Za-z]*\+?\d\d)\b"
    cited = {
        found
        for pattern in ("dpq_fast/**/*.py", "dpq_fast/**/*.pyx", "csrc/*.[ch]")
        for file in root.glob(pattern)
        for found in re.findall(key, file.read_text("utf-8"))
    }
    papers = (root / "docs" / "papers.md").read_text("utf-8")
    listed = re.findall(rf"^\| {key}\] \|", papers, re.MULTILINE)
    assert listed == sorted(cited)
    assert set(re.findall(key, papers)) == cited
    for page in [root / "README.md", *root.glob("docs/**/*.md")]:
        assert set(re.findall(key, page.read_text("utf-8"))) <= cited, page


def test_comments_of_kernels_name_what_there_is():
    """Files, functions, and whatever else stands in backticks, or begins with dpq_."""
    root = Path(__file__).resolve().parents[1]
    comment = {
        True: re.compile(r"/\*.*?\*/", re.DOTALL),
        False: re.compile(r'""".*?"""|#[^\n]*', re.DOTALL),
    }
    comments: dict[str, str] = {}
    code: set[str] = set()
    files: set[str] = set()
    for pattern in ("csrc/*.[ch]", "dpq_fast/_kernels/*.p[yx][xd]", "dpq_fast/**/*.py"):
        for file in root.glob(pattern):
            files.add(file.name)
            code.add(file.stem)
            text = file.read_text("utf-8")
            said = comment[file.suffix in (".c", ".h")]
            if file.suffix != ".py":
                comments[file.name] = "\n".join(said.findall(text))
                text = said.sub(" ", text)
            code.update(re.findall(r"\w+", text))
    assert len(comments) > 80
    for name, text in comments.items():
        assert set(re.findall(r"\w+\.(?:pyx|pxd|py|c|h)\b", text)) <= files, name
        named = re.findall(
            r"\b(\w+)\(\)|`([A-Za-z_][\w.]*)`|\b((?:dpq|DPQ)_\w*[A-Za-z0-9])\b", text
        )
        assert {word.split(".")[-1] for group in named for word in group if word} <= code, name
