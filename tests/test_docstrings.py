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
from dpq_fast._docs import spell_out
from dpq_fast.compat import diffprivlib, dp_multiq

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


def arguments_of(function):
    """What help says of each argument."""
    section = inspect.getdoc(function).partition("Parameters\n----------\n")[2]
    found = re.findall(r"^(\S.*)\n((?: .*\n|\n(?= ))*)", section.partition("\n\n")[0] + "\n", re.M)
    return {name: text for head, text in found[::-1] for name in head.split(" : ")[0].split(", ")}


def documented():
    """Public functions, and public methods of public classes."""
    for module in (dpq, diffprivlib, dp_multiq):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found):
                for method in vars(found):
                    if not method.startswith("_") and callable(getattr(found, method)):
                        yield f"{name}.{method}", getattr(found, method)
            elif callable(found):
                yield f"{module.__name__}.{name}", found


DOCUMENTED = dict(documented())


@pytest.mark.parametrize("name", DOCUMENTED)
def test_arguments_are_explained_where_they_stand(name):
    """No "As in `joint_exp`." in place of an explanation that our functions have."""
    for argument, text in arguments_of(DOCUMENTED[name]).items():
        assert not re.match(r" +(For an interval, as|As) in `[\w.]+`", text), argument
    doc = inspect.getdoc(DOCUMENTED[name])
    assert set(re.findall(r"\[\d+\]_", doc)) <= {
        f"[{n}]_" for n in re.findall(r"^\.\. \[(\d+)\]", doc, re.M)
    }


def test_help_explains_shared_arguments_by_one_text():
    shared = ("resolution", "dither", "prior", "counts", "assume_sorted", "nan_policy")
    texts = arguments_of(dpq.joint_exp)
    of_quantiles = dpq.median, dpq.percentile, dpq.min, dpq.iqr, dpq.box
    for function in (dpq.quantile, *of_quantiles, dpq.approx_quantiles):
        found = arguments_of(function)
        assert [found[name] for name in shared] == [texts[name] for name in shared]
    assert "Spacing of the public lattice" in texts["resolution"]
    assert "public clip" in arguments_of(dpq.mean_by)["bounds"]
    assert 'guarantee("mean_by", ...)' in arguments_of(dpq.mean_by)["accountant"]
    for name in ("median", "min", "iqr", "box", "max_by", "iqr_by", "box_by"):
        assert "q" not in arguments_of(getattr(dpq, name))
    assert "share of the records" in arguments_of(dpq.max)["level"]
    assert "confidence" not in arguments_of(dpq.box)
    assert "kernel" in arguments_of(dpq.median)["**method_options"]


def test_references_are_spelled_out_through_others_and_round_in_circles():
    def first(a, b, c):
        """One.

        Parameters
        ----------
        a : int
            What a is.

            And more.
        b, c
            As in `second`. But for c.

        Returns
        -------
        None
        """

    def second(b, c, a):
        """Two.

        Parameters
        ----------
        b : str
            For ``guarantee("second", ...)``.
        c
            As in `first`.
        a
            As in `first`; of two.
        """

    spell_out({"first": first, "second": second})
    assert inspect.getdoc(first) == (
        "One.\n\nParameters\n----------\na : int\n    What a is.\n\n    And more.\n"
        'b : str\n    For ``guarantee("first", ...)``.\n'
        "c\n    As in `second`. But for c.\n\nReturns\n-------\nNone"
    )
    assert inspect.getdoc(second) == (
        'Two.\n\nParameters\n----------\nb : str\n    For ``guarantee("second", ...)``.\nc\n'
        "    As in `first`.\na : int\n    What a is.\n\n    And more.\na\n    Of two."
    )
