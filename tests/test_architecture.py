"""Imports point down the wings of ARCHITECTURE.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpq_fast

PACKAGE = Path(dpq_fast.__file__).parent
# From top to bottom; what shares a line may import each other.
WINGS = (
    {"accessors", "cli", "compat"},
    {"plots"},
    {"audit", "reference", "planning"},
    {"mechanisms"},
    {"released"},
    {"_prepared"},
    {"metrics"},
    {"laws"},
    {"privacy"},
    {"engines"},
    {"orders"},
    {"data"},
    {"noise"},
    {"_kernels", "_checks"},
    {"_docs"},
    {"_arguments"},
)
HEIGHT = {wing: len(WINGS) - row for row, wings in enumerate(WINGS) for wing in wings}
# `privacy.guarantee` looks up the registry when it is called, `AggTree.of` makes a release, what
# can be drawn has a method for it, and a sample makes the order of its records. Kernels name types
# of their callers in stubs.
UPWARD = {
    ("data/sample.py", "orders"),
    ("privacy/__init__.py", "mechanisms"),
    ("released/agg_tree.py", "mechanisms"),
    ("released/cdf.py", "plots"),
    ("released/cdf.py", "mechanisms"),
    ("planning/plans.py", "plots"),
}


def imports() -> Iterator[tuple[Path, str]]:
    """Each file of a wing, and each wing that it imports."""
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE)
        if file.name == "__init__.py" and len(file.parts) == 1:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                package, _, rest = name.partition(".")
                if package == "dpq_fast" and rest.split(".")[0] in HEIGHT:
                    yield file, rest.split(".")[0]


def test_every_module_is_in_a_wing():
    found = {path.stem if path.is_file() else path.name for path in PACKAGE.iterdir()}
    assert {name for name in found if not name.startswith(("__", "py"))} == HEIGHT.keys()


def test_every_wing_says_who_may_live_there():
    for path in PACKAGE.glob("*/**/__init__.py"):
        words = ast.get_docstring(ast.parse(path.read_text()))
        assert words is not None and len(words.splitlines()) >= 4, path


def test_imports_point_down():
    for file, imported in imports():
        own = file.parts[0].removesuffix(".py")
        if HEIGHT[imported] > HEIGHT[own]:
            assert (file.as_posix(), imported) in UPWARD


def test_mechanisms_import_only_what_they_are_built_on():
    built_on = {
        "aggregates": {"clipping", "joint_exp", "ind_exp", "spread"},
        "aggregates_by": {"aggregates", "clipping", "grouping", "spread"},
        "approx_quantiles": {"intervals", "unbounded_quantile"},
        "clipping": {"joint_exp", "unbounded_quantile"},
        "cdf": {"agg_tree", "csmooth", "factorized", "two_stage"},
        "describe": {
            "aggregates",
            "aggregates_by",
            "extremes",
            "quantile",
            "quantile_by",
            "select_keys",
        },
        "extremes": {"aggregates_by", "quantile", "quantile_by"},
        "histogram": {"aggregates_by"},
        "ind_exp": {"intervals"},
        "joint_exp": {"intervals"},
        "quantile": {"registry", "unbounded_quantile"},
        "quantile_by": {"grouping", "ind_exp", "intervals", "quantile"},
        "spread": {"clipping"},
        "two_stage": {"agg_tree", "ind_exp", "intervals", "joint_exp"},
        "unbounded_quantile": {"intervals"},
    }
    for path in sorted((PACKAGE / "mechanisms").glob("*.py")):
        if path.stem in ("registry", "__init__", "_calls"):
            continue
        imported = {
            node.module.rsplit(".", 1)[1]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.startswith("dpq_fast.mechanisms.")
        }
        assert imported - {"_calls"} <= built_on.get(path.stem, set()), path.stem


@pytest.mark.parametrize("wing", ["data", "orders", "_kernels"])
def test_wings_that_know_no_epsilon_do_not_name_it(wing):
    for path in (PACKAGE / wing).glob("*.py"):
        names = {
            node.id if isinstance(node, ast.Name) else node.arg
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, (ast.Name, ast.arg))
        }
        assert not {"epsilon", "rho", "delta"} & names, path.name
