"""Calls that do not fit: every public function refuses them by its own name, before its charge."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from test_bad_input import GOOD, X

import dpq_fast as dpq
import dpq_fast.accessors
from dpq_fast._arguments import names_of
from dpq_fast.compat import diffprivlib, dp_multiq
from dpq_fast.mechanisms._calls import with_options
from dpq_fast.mechanisms.registry import MECHANISMS
from dpq_fast.reference import _calls as reference_calls

SERIES, FRAME = pd.Series([1.0, 2.0]).dpq, pd.DataFrame({"x": [1.0], "g": [1]}).dpq


def public() -> dict[str, Callable[..., Any]]:
    """Every public callable with arguments of its own, by the name that it refuses by."""
    own = {name: getattr(dpq, name) for name in dpq.__all__}
    found = {name: each for name, each in own.items() if callable(each)}
    del found["BudgetExceeded"]  # which is raised, and takes a message
    found["compose"] = dpq.privacy.compose
    for kind in (dpq.Sample, dpq.Table, dpq.AggTree, dpq.PartialTree, dpq.privacy.Accountant):
        for name in ("of", "from_batches", "from_engine", "tune", "open"):
            if hasattr(kind, name):
                found[f"{kind.__name__}.{name}"] = getattr(kind, name)
    return found


PUBLIC = public()
# Under the name of the function that they stand for.
METHODS = [
    getattr(kind, name)
    for kind in (SERIES, FRAME)
    for name in dir(kind)
    if not name.startswith("_")
]
COMPAT = [getattr(dp_multiq, name) for name in dp_multiq.__all__] + [diffprivlib.count_nonzero]
BY_NAME = [
    *PUBLIC.items(),
    *((method.__name__, method) for method in METHODS),
    *((function.__name__, function) for function in COMPAT),
]


@pytest.mark.parametrize(("name", "function"), BY_NAME, ids=[name for name, _ in BY_NAME])
def test_an_unknown_argument_is_refused_by_the_name_of_the_function(name, function):
    with pytest.raises(TypeError, match=rf"^{re.escape(name)}\(\) has no argument 'zzz'$"):
        function(zzz=1)


@pytest.mark.parametrize(("name", "function"), BY_NAME, ids=[name for name, _ in BY_NAME])
def test_the_nearest_argument_is_named(name, function):
    known = [n for n in names_of(function) if n != "self"]
    for argument in known:
        wrong = f"{argument}_"
        with pytest.raises(
            TypeError, match=rf"^{re.escape(name)}\(\) has no argument '{wrong}'"
        ) as e:
            function(**{wrong: 1})
        assert str(e.value).endswith(f"; did you mean {argument!r}?")


@pytest.mark.parametrize("name", GOOD)
def test_what_does_not_fit_is_refused_before_the_charge(name):
    function, first = (
        getattr(dpq, name),
        next(iter(inspect.signature(getattr(dpq, name)).parameters)),
    )
    accountant = dpq.privacy.Accountant(1e6, 0.5)
    good = {first: X} | GOOD[name]
    for wrong in ({"resoluton": 1}, {"axis": 0}, {"zzz": 1}):
        with pytest.raises(TypeError, match=rf"^{name}\(\) has no argument"):
            function(**good, **wrong, accountant=accountant)
    needed = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    for argument in needed:
        left = {key: value for key, value in good.items() if key != argument}
        with pytest.raises(TypeError, match=rf"^{name}\(\) needs {argument}$"):
            function(**left, accountant=accountant)
    if "rho" in good or "rho" in names_of(function):
        left = {key: value for key, value in good.items() if key not in ("epsilon", "rho")}
        with pytest.raises(TypeError, match=rf"^{name}\(\) needs (epsilon or )?rho$"):
            function(**left, accountant=accountant)
    with pytest.raises(
        TypeError, match=rf"^{name}\(\) takes .* alone by position, got 9 arguments$"
    ):
        function(*[X] * 9, accountant=accountant)
    with pytest.raises(TypeError, match=rf"^{name}\(\) takes {first} once, got it twice$"):
        function(X, **good)
    assert accountant.spent.epsilon == 0.0
    assert not accountant.entries


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda **k: dpq.quantile(X, 0.5, method="ind_exp", kernel="fft", **k),
            "kernel must be left out for method 'ind_exp': it is for 'joint_exp'",
        ),
        (
            lambda **k: dpq.median(X, kernel="fft", **k),
            "kernel must be left out for method 'ind_exp', which 'auto' chose: it is for "
            "'joint_exp'",
        ),
        (
            lambda **k: dpq.quantile_by(
                X, [1, 1, 2], 0.5, groups=[1], method="agg_tree", kernel="fft", **k
            ),
            "kernel must be left out for method 'agg_tree': it is for 'joint_exp'",
        ),
        (
            lambda **k: dpq.cdf(X, method="histogram", levels=3, **k),
            "method 'histogram' must have no options but bins, got 'levels'",
        ),
    ],
)
def test_an_option_of_another_method_is_refused_by_method(call, message):
    accountant = dpq.privacy.Accountant(1.0)
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        call(epsilon=1.0, bounds=(0, 9), accountant=accountant)
    assert not accountant.entries


@pytest.mark.parametrize("method", ["unbounded", "ind_exp", "joint_exp"])
@pytest.mark.parametrize("option", ["beta", "kernel"])
def test_an_option_of_another_clip_is_refused_by_method(method, option):
    for function in (dpq.sum, dpq.mean):
        if (method, option) in (("unbounded", "beta"), ("joint_exp", "kernel")):
            continue
        with pytest.raises(TypeError, match=f"^{option} must be left out for method='{method}'$"):
            function(X, epsilon=1.0, method=method, upper=9, **{option: 2})


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            "axis",
            "median() has no argument 'axis': a column has one dimension; call once for each ",
        ),
        (
            "weights",
            "median() has no argument 'weights'; use 'counts', how often each value occurs",
        ),
        ("seed", "median() has no argument 'seed'; use 'rng', a seed for tests alone"),
        ("random_state", "median() has no argument 'random_state'; use 'rng'"),
        ("candidates", "median() has no argument 'candidates'; use 'resolution', the spacing"),
        ("interpolation", "median() has no argument 'interpolation'; use 'resolution'"),
        ("skipna", "median() has no argument 'skipna'; use 'nan_policy'"),
        ("dropna", "median() has no argument 'dropna'; use 'nan_policy'"),
        ("alpha", "median() has no argument 'alpha'; use 'confidence', how likely"),
        ("privacy_id", "median() has no argument 'privacy_id'; use 'privacy_unit', the ids"),
    ],
)
def test_words_of_other_libraries_are_answered(word, message):
    with pytest.raises(TypeError, match=f"^{re.escape(message)}"):
        dpq.median(X, epsilon=1.0, bounds=(0, 9), **{word: 1})


def test_words_of_other_libraries_are_answered_where_we_have_the_argument():
    with pytest.raises(TypeError, match=r"^describe\(\) has no argument 'percentiles'; use 'q'"):
        dpq.describe({"x": X}, epsilon=1.0, bounds={"x": (0, 9)}, percentiles=[0.5])
    with pytest.raises(TypeError, match=r"^count\(\) has no argument 'candidates'$"):
        dpq.count(X, epsilon=1.0, candidates=[1])


@pytest.mark.parametrize("name", MECHANISMS)
def test_guarantees_refuse_by_their_method(name):
    message = rf"^guarantee\('{name}'\) has no argument 'epsilom'(; did you mean 'epsilon\d?'\?)?$"
    with pytest.raises(TypeError, match=message):
        dpq.privacy.guarantee(name, epsilom=1.0)


def test_guarantees_say_what_they_do_not_depend_on():
    message = r"^bounds must be left out for guarantee\('joint_exp'\), which does not depend on it$"
    with pytest.raises(TypeError, match=message):
        dpq.privacy.guarantee("joint_exp", epsilon=1.0, bounds=(0, 9))


def test_a_call_that_fits_keeps_its_own_error():
    with pytest.raises(ValueError, match=r"^epsilon must be positive"):
        dpq.median(X, epsilon=-1.0, bounds=(0, 9))
    with pytest.raises(ValueError, match=r"exactly one of epsilon and rho .* got neither$"):
        dpq.median(X, epsilon=None, bounds=(0, 9))


def test_guarantees_need_a_method():
    with pytest.raises(TypeError, match=r"^guarantee\(\) needs method$"):
        dpq.privacy.guarantee(epsilon=1.0)


def taker(own, /, x, y=1, *, z=2, **further):
    """What gets the arguments of others."""


def test_arguments_that_are_handed_on_are_shown_in_their_place():
    @with_options(taker)
    def by_place(first, *arguments, last=3, **options):
        pass

    assert str(inspect.signature(by_place)) == "(first, x, y=1, *, z=2, last=3, **further)"


@pytest.mark.parametrize("shows", [with_options, reference_calls.with_options])
def test_options_that_are_handed_on_are_shown_by_name(shows):
    @shows(taker)
    def by_name(x, *, first, **options):
        return options

    assert str(inspect.signature(by_name)) == "(x, *, first, y=1, z=2, **further)"
    assert by_name(0, first=1, y=5) == {"y": 5}
