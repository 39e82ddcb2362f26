"""Exact certificates hold, broken copies have none, and the page says what was found.

What is certified, and how, is in `papers/certificates.py`.
"""

from __future__ import annotations

import ast
import importlib
import json
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpq_fast import privacy

ROOT = Path(__file__).resolve().parents[2]
MECHANISMS = (
    "ind_exp",
    "joint_exp",
    "approx_quantiles",
    "count",
    "sum",
    "mean",
    "agg_tree",
    "above_threshold",
    "unbounded_quantile",
    "select_keys",
)


@pytest.fixture(scope="module")
def certificates():
    """Behind what is installed, as when it runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(ROOT)])
        yield importlib.import_module("papers.certificates")


@pytest.fixture(scope="module")
def results(certificates):
    return json.loads(certificates.RESULTS.read_text("utf-8"))


def of(certificates, mechanism, size):
    return [case for case in certificates.cases(*size) if case.mechanism == mechanism]


def one(certificates, setting, relation, size=None):
    """The case of a mechanism and a setting."""
    cases = certificates.cases(*(size or certificates.QUICK))
    return next(case for case in cases if case.name == f"{setting}, {relation}")


def check(certificates, mechanism, size, most_bits=2):
    """Both laws are those of the fractions, which keep the promise."""
    cases = [case for case in of(certificates, mechanism, size) if case.bits <= most_bits]
    for case in cases:
        found, laws = certificates.certify(case)
        assert found.holds(case), case.name
        library, reference = certificates.compared(case, laws)
        assert library <= certificates.TOLERANCE, case.name
        assert (reference or 0.0) <= certificates.TOLERANCE, case.name
    return cases


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_two_records_on_three_points(certificates, mechanism):
    assert check(certificates, mechanism, (3, 2), most_bits=1)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_quick_form(certificates, mechanism):
    """That of ``papers/certificates.py --quick``."""
    assert check(certificates, mechanism, certificates.QUICK)


def test_all_mechanisms_are_tested(certificates):
    found = {case.mechanism for case in certificates.cases(2, 1)}
    assert found == set(MECHANISMS)


# Broken copies

TENTH = [  # rates 1.1 times as large as they may be, at ten times the budget
    "ind_exp, exponential, q = 1/4",
    "ind_exp, permute-and-flip, q = 1/2",
    "joint_exp, q = 1/2",
    "joint_exp, q = 1/2, 1 bit of dither",
    "joint_exp, q = 1/2, 2 bits of dither",
    "count, records",
    "sum, from -2 to 1",
    "mean, from 0 to 3",
    "agg_tree, height 2, branching 2",
    "above_threshold, exponential noise",
    "above_threshold, gumbel noise",
]


@pytest.mark.parametrize("relation", ["swap", "add-remove"])
@pytest.mark.parametrize("setting", TENTH)
def test_a_rate_that_is_a_tenth_too_large_is_refused(certificates, setting, relation):
    case = one(certificates, setting, relation)
    for spent, holds in ((1, True), (Fraction(11, 10), False)):
        mutant = case.at(10, spent)
        assert certificates.certify(mutant)[0].holds(mutant) == holds


def rates(*values):
    return dict(rates=tuple(map(Fraction, values)))


MUTANTS = {
    "joint_exp: a sensitivity of 1": ("joint_exp, q = 1/4, 3/4", "swap", rates(4)),
    "joint_exp: that of add-remove": ("joint_exp, q = 1/2", "swap", rates(2)),
    "ind_exp: that of add-remove": ("ind_exp, exponential, q = 1/2", "swap", rates(4)),
    "ind_exp: all of epsilon for each level": (
        "ind_exp, exponential, q = 1/4, 1/2",
        "swap",
        rates(8, 8),
    ),
    "approx_quantiles: all of epsilon for each depth": (
        "approx_quantiles, q = 1/4, 1/2, 3/4",
        "add-remove",
        rates(4, 4, 4),
    ),
    "sum: the width where a record is left out": ("sum, from 1 to 4", "swap", dict(k=6)),
    "sum: the width under add-remove": ("sum, from 1 to 4", "add-remove", dict(k=6)),
    "mean: all of epsilon for each integer": ("mean, from 0 to 3", "swap", rates(2, 6)),
    "agg_tree: a level not charged": ("agg_tree, height 2, branching 2", "swap", dict(k=2)),
    "agg_tree: counts of add-remove": ("agg_tree, height 1, branching 4", "swap", dict(k=1)),
    "above_threshold: said to be monotonic": (
        "above_threshold, exponential noise",
        "swap",
        dict(k=3),
    ),
    "unbounded_quantile: the level of the other end": (
        "unbounded_quantile, up, exponential noise, q = 1/4",
        "add-remove",
        dict(k=5),
    ),
    "unbounded_quantile: two searches for one": (
        "unbounded_quantile, both, exponential noise, q = 1/2",
        "swap",
        dict(k=6),
    ),
    "select_keys: the rule of add-remove": ("select_keys, δ = 1/64", "swap", rates(5, 5)),
    "select_keys: half of delta": ("select_keys, δ = 1/64", "swap", dict(delta=Fraction(1, 128))),
    "select_keys: twice epsilon": ("select_keys, δ = 1/4096", "add-remove", rates(10, 10)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_forgotten_sensitivity_is_refused(certificates, name):
    setting, relation, fault = MUTANTS[name]
    if "k" in fault:
        fault = {"k": Fraction(fault["k"])}
    case = one(certificates, setting, relation)
    mutant = replace(case, **fault)
    assert certificates.certify(case)[0].holds(case)
    assert not certificates.certify(mutant)[0].holds(mutant)


def test_laws_of_the_library_at_another_rate_are_seen(certificates):
    case = one(certificates, "joint_exp, q = 1/4, 3/4", "swap", (3, 2))
    _, laws = certificates.certify(replace(case, rates=(case.rates[0] * 2,)))
    assert min(certificates.compared(case, laws)) > 0.1


# What is rational


def test_what_is_not_rational_is_refused(certificates):
    with pytest.raises(ValueError, match="2 to the power 1/2 is not rational"):
        certificates.power(Fraction(1, 2))
    gaps = [Fraction(1), Fraction(1)]
    with pytest.raises(ValueError, match="ln 2"):
        certificates.halts(gaps, (Fraction(2), Fraction(1)), "laplace")


def test_halting_by_hand(certificates):
    """One query at the threshold: it halts where its noise is the larger one."""
    for noise, expected in (("exponential", Fraction(2, 3)), ("gumbel", Fraction(1, 2))):
        pair = (Fraction(2), Fraction(1) if noise == "exponential" else Fraction(2))
        halts, never = certificates.halts([Fraction(0)], pair, noise)
        assert (halts, never) == (expected, 1 - expected)


def test_permute_and_flip_by_hand(certificates):
    """[MS20]: the best one comes first, or the other comes first and is rejected."""
    law = certificates.permute_and_flip({"a": Fraction(0), "b": Fraction(-2)})
    assert law == {"a": Fraction(7, 8), "b": Fraction(1, 8)}


def test_neighbors_are_all_and_each_once(certificates):
    for relation, left_out in (("swap", False), ("swap", True), ("add-remove", True)):
        sets = certificates.data_sets(3, 3)
        expected = set()
        for x in sets:
            for i in range(len(x)):
                rest = x[:i] + x[i + 1 :]
                if relation == "add-remove" or left_out:
                    expected.add(frozenset({x, rest}))
                if relation == "swap":
                    expected |= {frozenset({x, tuple(sorted((*rest, p)))}) for p in range(3)}
        expected = {pair for pair in expected if len(pair) == 2}
        found = [frozenset(pair) for pair in certificates.pairs(3, 3, relation, left_out)]
        assert len(found) == len(set(found)) and set(found) == expected


def test_trees_of_cdf_have_the_noise_of_agg_tree():
    """The page says so of two methods."""
    for method, bins, shape in (("histogram", 6, (1, 6)), ("binary_tree", 4, (2, 2))):
        for neighbors in ("swap", "add-remove"):
            public = dict(epsilon=1.0, neighbors=neighbors)
            height, branching = shape
            noise = privacy.cdf.calibrate(method=method, bins=bins, **public).noise
            tree = privacy.agg_tree.calibrate(height=height, branching=branching, **public)
            assert noise == tree.noise


def test_no_code_is_shared_with_the_library(certificates):
    """It is imported where laws are compared, and nowhere else."""
    tree = ast.parse(Path(certificates.__file__).read_text("utf-8"))
    (function,) = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "compared"
    )
    allowed = {id(node) for node in ast.walk(function)}
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    modules = {
        name.partition(".")[0]
        for node in imports
        if id(node) not in allowed
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert modules <= sys.stdlib_module_names


# The page


def test_page_is_made_from_the_results(certificates, results):
    """Run ``python papers/certificates.py --write`` after a change."""
    page = certificates.PAGE.read_text("utf-8")
    assert certificates.written(page, results) == page


def test_results_are_of_these_cases_and_tight_where_theory_says_so(certificates, results):
    size = results["points"], results["most"]
    assert size == certificates.FULL
    cases = certificates.cases(*size)
    for case, each in zip(cases, results["cases"], strict=True):
        form = dict(mechanism=case.mechanism, setting=case.setting, relation=case.relation)
        form |= dict(source=case.source, k=str(case.k), holds=True)
        assert each == each | form
        assert set(case.tight) <= set(each["attained"])
        assert max(each["library"], each["reference"] or 0.0) <= certificates.TOLERANCE
        pairs = certificates.pairs(*size, case.relation, case.left_out)
        assert each["pairs"] == sum(1 for _ in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["count", "select_keys"])
def test_results_are_found_again(certificates, results, mechanism):
    kept = [each for each in results["cases"] if each["mechanism"] == mechanism]
    for case, each in zip(of(certificates, mechanism, certificates.FULL), kept, strict=True):
        found, _ = certificates.certify(case)
        again = certificates.entry(case, found)
        exact = again.keys() - {"library", "reference", "attained"}
        assert {name: each[name] for name in exact} == {name: again[name] for name in exact}
