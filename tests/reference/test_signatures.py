"""One signature for what a mechanism is, and for its promise; and what references import."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpq_fast import noise, reference
from dpq_fast.mechanisms.registry import MECHANISMS
from dpq_fast.privacy.relations import RELATIONS, Relation

# The reference has one way to compute and one thread: it leaves out what steers speed alone.
SPEED = {"workers", "kernel"}
# A law is no release: it has no accountant and no interval, is the same under all relations where
# nothing is calibrated to them, and draws nothing but a dither.
RELEASE_ONLY = {"accountant", "rng", "confidence", "covers", "interval_share", "expected_n"}
LAW_ONLY = {"dither_rng"}
PROMISES = {"above_threshold_law": {"monotonic", "neighbors"}}
# Of two stages the law depends on how they are split.
TOLD = {"two_stage_law": {"expected_n"}}
# What is released in many steps, or as an object of many answers, has no law on either side.
WITHOUT_LAW = {
    "agg_tree",
    "cdf",
    "count",
    "count_by",
    "csmooth",
    "mean",
    "histogram",
    "mean_by",
    "var",
    "var_by",
    "std",
    "std_by",
    "quantile_by",
    "select_keys",
    "sparse_vector",
    "sum",
    "sum_by",
}
LAWS = {row.law.__name__: row for row in MECHANISMS.values() if row.law is not None}
FUNCTIONS = {row.name: row.release for row in MECHANISMS.values()}
FUNCTIONS |= {name: row.law for name, row in LAWS.items()}
NOISES = [name for name in noise.__all__ if hasattr(reference.noise, name)]

# What is counts and `max_contributions` to a reference: `reference.persons`.
PERSONS = {"privacy_unit", "contributions"}

# Of this package, and of others, what a reference may be made of.
SHARED = ("dpq_fast.privacy", "dpq_fast._checks", "dpq_fast._docs", "dpq_fast.reference")
LIBRARIES = {"numpy", "scipy", "randomgen", *sys.stdlib_module_names}
# Optional, and asked for by the caller.
OPTIONAL = {"quantile_by.py": {"pandas"}, "answers.py": {"pandas", "polars", "pyarrow"}}
SOURCES = sorted(Path(reference.__file__).parent.glob("*.py"))


def parameters(function: Callable[..., Any], without: set[str] = frozenset()) -> tuple[list, dict]:
    """Positional parameters in their order, and the others by name, with their defaults."""
    kept = [p for p in inspect.signature(function).parameters.values() if p.name not in without]
    keywords = {p.name: p.default for p in kept if p.kind is p.KEYWORD_ONLY}
    return [(p.name, p.kind, p.default) for p in kept if p.name not in keywords], keywords


@pytest.mark.parametrize("name", FUNCTIONS)
def test_references_have_the_signatures_of_their_fast_sides(name):
    fast = parameters(FUNCTIONS[name], SPEED | PERSONS)  # counts, to a reference
    assert parameters(getattr(reference, name)) == fast


@pytest.mark.parametrize("name", FUNCTIONS)
def test_references_refuse_by_their_own_names_what_they_do_not_take(name):
    with pytest.raises(TypeError, match=rf"^{name}\(\) "):
        getattr(reference, name)(no_such_argument=1)


@pytest.mark.parametrize("name", NOISES)
def test_reference_noise_has_the_signatures_of_its_fast_side(name):
    assert parameters(getattr(reference.noise, name)) == parameters(getattr(noise, name))


@pytest.mark.parametrize("name", LAWS)
def test_laws_have_the_signatures_of_their_releases(name):
    of_release = (RELEASE_ONLY | PROMISES.get(name, set())) - TOLD.get(name, set())
    assert parameters(LAWS[name].law, LAW_ONLY) == parameters(LAWS[name].release, of_release)


def test_defaults_of_promises_are_those_of_releases():
    """What is left out of a call means the same to the release and to its promise."""
    compared = set()
    for name, row in MECHANISMS.items():
        public = inspect.signature(row.release).parameters
        for argument in inspect.signature(row.calibrate).parameters.values():
            other = public.get(argument.name)
            if other is not None and other.default is not other.empty:
                assert argument.default == other.default, (name, argument.name)
                compared.add(name)
    assert compared == MECHANISMS.keys() - {"sparse_vector"}


@pytest.mark.parametrize("name", RELATIONS)
def test_relations_have_one_signature(name):
    for method in sorted(Relation.__abstractmethods__):
        assert parameters(getattr(type(RELATIONS[name]), method)) == parameters(
            getattr(Relation, method)
        )


def test_every_mechanism_has_a_reference_and_nothing_else_has():
    assert set(reference.__all__) == {*FUNCTIONS, "noise", "persons"}
    assert {row.name for row in MECHANISMS.values() if row.law is None} == WITHOUT_LAW
    assert not [name for name in WITHOUT_LAW if hasattr(reference, f"{name}_law")]


def imported(source: str) -> Iterator[str]:
    """Every module that is imported, and every name out of one, as a path with dots."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_shared(name: str) -> bool:
    return any(name == shared or name.startswith(f"{shared}.") for shared in SHARED)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_references_share_privacy_and_public_checks_alone(path):
    libraries = LIBRARIES | OPTIONAL.get(path.name, set())
    for name in imported(path.read_text("utf-8")):
        if name.split(".")[0] == "dpq_fast":
            assert is_shared(name), name
        else:
            assert name.split(".")[0] in libraries, name


def test_imports_are_seen_wherever_they_are():
    source = "import a.b\ndef f():\n    from dpq_fast import noise\n    from c.d import e, f\n"
    assert list(imported(source)) == ["a.b", "dpq_fast.noise", "c.d.e", "c.d.f"]
    assert not is_shared("dpq_fast.noise") and not is_shared("dpq_fast.referenced")
