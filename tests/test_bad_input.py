"""One table of bad input: every public function says the same of the same argument."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import dpq_fast as dpq
from dpq_fast.mechanisms.registry import MECHANISMS

X = [1.0, 2.0, 3.0]
# Good arguments of each function, beside the column: what one bad one is put into.
GOOD: dict[str, dict[str, Any]] = {
    "joint_exp": dict(q=[0.25, 0.5], epsilon=1.0, bounds=(0, 9)),
    "ind_exp": dict(q=[0.25, 0.5], epsilon=1.0, bounds=(0, 9)),
    "approx_quantiles": dict(q=[0.25, 0.5], epsilon=1.0, bounds=(0, 9)),
    "two_stage": dict(q=[0.25, 0.5], epsilon=1.0, bounds=(0, 9)),
    "unbounded_quantile": dict(q=[0.25, 0.5], epsilon=1.0),
    "agg_tree": dict(q=[0.25, 0.5], epsilon=1.0, bounds=(0, 9)),
    "csmooth": dict(q=[0.25, 0.5], rho=1.0, bounds=(0, 9)),
    "quantile_by": dict(by=[1, 1, 2], q=[0.25, 0.5], groups=[1, 2], epsilon=1.0, bounds=(0, 9)),
    "cdf": dict(epsilon=1.0, bounds=(0, 9), method="histogram", bins=8),
    "count": dict(epsilon=1.0),
    "count_by": dict(by=[1, 1, 2], groups=[1, 2], epsilon=1.0),
    "sum_by": dict(by=[1, 1, 2], groups=[1, 2], epsilon=1.0),
    "mean_by": dict(by=[1, 1, 2], groups=[1, 2], epsilon=1.0),
    "var_by": dict(by=[1, 1, 2], groups=[1, 2], epsilon=1.0),
    "std_by": dict(by=[1, 1, 2], groups=[1, 2], epsilon=1.0),
    "select_keys": dict(epsilon=1.0, delta=1e-6),
    "sum": dict(epsilon=1.0),
    "mean": dict(epsilon=1.0),
    "var": dict(epsilon=1.0),
    "std": dict(epsilon=1.0),
    "histogram": dict(bins=4, epsilon=1.0, bounds=(0, 9)),
    "above_threshold": dict(threshold=2.0, epsilon1=1.0, epsilon2=1.0),
    "sparse_vector": dict(threshold=2.0, epsilon1=1.0, epsilon2=1.0, halts=2),
}
# By argument: what it is given, what is raised, and how the message begins.
POSITIVE = (
    (0, ValueError, "{} must be positive and finite, got 0.0"),
    (-1.0, ValueError, "{} must be positive and finite, got -1.0"),
    (np.nan, ValueError, "{} must be positive and finite, got nan"),
    (np.inf, ValueError, "{} must be positive and finite, got inf"),
    (-np.inf, ValueError, "{} must be positive and finite, got -inf"),
    ("1", TypeError, "{} must be a real number, got '1'"),
    (True, TypeError, "{} must be a real number, got True"),
    (1j, TypeError, "{} must be a real number, got 1j"),
    ([1.0], TypeError, "{} must be a real number, got list"),
)
BAD: dict[str, tuple[tuple[Any, type[Exception], str], ...]] = {
    "epsilon": POSITIVE,
    "rho": POSITIVE,
    "epsilon1": POSITIVE,
    "epsilon2": POSITIVE,
    "sensitivity": POSITIVE,
    "delta": (
        (-0.1, ValueError, "delta must lie in [0, 1), got -0.1"),
        (1.0, ValueError, "delta must lie in [0, 1), got 1.0"),
        (np.nan, ValueError, "delta must lie in [0, 1), got nan"),
        ("0", TypeError, "delta must be a real number, got '0'"),
    ),
    "q": (
        ([], ValueError, "q must hold at least one level, got none"),
        (
            np.broadcast_to(0.5, 10**9),
            ValueError,
            "q must hold at most 2^20 levels, got 1000000000",
        ),
        ([0.5, 1.5], ValueError, "q must lie in [0, 1], got q[1] = 1.5"),
        (-0.5, ValueError, "q must lie in [0, 1], got -0.5"),
        ([np.nan], ValueError, "q must lie in [0, 1], got q[0] = nan"),
        (np.inf, ValueError, "q must lie in [0, 1], got inf"),
        ([True], TypeError, "q must be real numbers, got dtype"),
        ("0.5", TypeError, "q must be real numbers, got dtype"),
        (["a"], TypeError, "q must be real numbers, got dtype"),
    ),
    "bounds": (
        ((1, 1), ValueError, "bounds must be finite with low < high, got (1.0, 1.0)"),
        ((2, 1), ValueError, "bounds must be finite with low < high, got (2.0, 1.0)"),
        ((np.nan, 1), ValueError, "bounds must be finite with low < high, got (nan, 1.0)"),
        ((-np.inf, 0), ValueError, "bounds must be finite with low < high, got (-inf, 0.0)"),
        (None, TypeError, "bounds must be two real numbers (low, high), got None"),
        ((0, np.inf), ValueError, "bounds must be finite with low < high, got (0.0, inf)"),
        ((-1.7e308, 1.7e308), ValueError, "bounds must have a finite difference"),
        ((0, 1, 2), ValueError, "bounds must be two real numbers (low, high), got tuple"),
        (("0", 1), TypeError, "bounds[0] must be a real number, got '0'"),
        (7, TypeError, "bounds must be two real numbers (low, high), got 7"),
    ),
    "neighbors": (
        ("replace", ValueError, "neighbors must be one of 'swap', 'add-remove', got 'replace'"),
        (None, TypeError, "neighbors must be one of 'swap', 'add-remove', got None"),
    ),
    "resolution": (
        (-1.0, ValueError, "resolution must be finite and not negative, got -1.0"),
        (np.nan, ValueError, "resolution must be finite and not negative, got nan"),
        (np.inf, ValueError, "resolution must be finite and not negative, got inf"),
        ("1", TypeError, "resolution must be a real number, got '1'"),
    ),
    "prior": (
        (7, TypeError, "prior must be None, 'uniform', 'log', 'scale-free', a frozen distributio"),
        (
            "normal",
            ValueError,
            "prior must be 'uniform', 'log' or 'scale-free' where it is a string, g",
        ),
        ("log", ValueError, "bounds must be positive with prior 'log', got (0.0, 9.0)"),
        ([], ValueError, "prior must be one or more (weight, prior) pairs where it is a sequence"),
        ([(0, None)], ValueError, "a weight of the prior must be positive and finite, got 0.0"),
    ),
    "selection": (
        ("gumbel", ValueError, "selection must be one of 'permute-and-flip', 'exponential', got "),
        (1, TypeError, "selection must be one of 'permute-and-flip', 'exponential', got 1"),
    ),
    "dither": (
        ("yes", TypeError, "dither must be True or False, got 'yes'"),
        (1, TypeError, "dither must be True or False, got 1"),
    ),
    "assume_sorted": ((1, TypeError, "assume_sorted must be True or False, got 1"),),
    "nan_policy": (
        ("propagate", ValueError, "nan_policy must be one of 'omit', 'raise', got 'propagate'"),
        (None, TypeError, "nan_policy must be one of 'omit', 'raise', got None"),
    ),
    "max_contributions": (
        (0, ValueError, "max_contributions must be at least 1, got 0"),
        (1.5, TypeError, "max_contributions must be an integer, got 1.5"),
        (True, TypeError, "max_contributions must be an integer, got True"),
        (2**60, ValueError, "max_contributions must be at most 2**53"),
    ),
    "counts": (
        ([1, 2], ValueError, "counts must have one entry for each value of x"),
        ([1, 2, -1], ValueError, "counts must not be negative"),
        ([1, 2, 0.5], ValueError, "counts must be integers, got a fractional"),
        (["a", "b", "c"], TypeError, "counts must be integers, got dtype"),
        ([True, False, True], TypeError, "counts must be integers, got dtype"),
        ([[1, 2, 3]], ValueError, "counts must have one entry for each value of x"),
    ),
    "workers": (
        (0, ValueError, "workers must not be 0"),
        ("2", TypeError, "workers must be an integer, got '2'"),
    ),
    "accountant": ((1.0, TypeError, "accountant must be an Accountant, got float"),),
    "x": (
        (5, TypeError, "x must be a one-dimensional array or sequence, got int"),
        ("123", TypeError, "x must be a one-dimensional array or sequence, got str"),
        ({1.0}, TypeError, "x must be a one-dimensional array or sequence, got set"),
        ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], ValueError, "x must be one-dimensional"),
        (np.ones((3, 2)), ValueError, "x must be one-dimensional, got 2 dimensions"),
        (["a", "b", "c"], TypeError, "x must hold real numbers, got"),
        ([1.0, 2.0, 2j], TypeError, "x must hold real numbers, got"),
        (np.array([1.0, "2", 3.0], dtype=object), TypeError, "x must hold real numbers, got"),
        (np.array(["2020"] * 3, dtype="M8[Y]"), TypeError, "x must hold real numbers, got"),
        (np.array(1.0), ValueError, "x must be one-dimensional, got 0 dimensions"),
    ),
    "threshold": (
        (np.inf, ValueError, "threshold must be finite, got inf"),
        ("2", TypeError, "threshold must be a real number, got '2'"),
    ),
    "monotonic": ((1, TypeError, "monotonic must be True or False, got 1"),),
    "noise": (
        (7, TypeError, "noise must be one of"),
        ("cauchy", ValueError, "noise must be one of"),
    ),
    "halts": (
        (0, ValueError, "halts must be at least 1, got 0"),
        (2.0, TypeError, "halts must be an integer, got 2.0"),
    ),
}
# The same for what only several arguments together make bad, where order statistics are read.
TOGETHER: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
    (dict(resolution=9.5), ValueError, "resolution must leave at least two of its multiples"),
    (dict(resolution=1e-17), ValueError, "resolution must be at least the float64 spacing"),
    (
        dict(resolution=1.0, bounds=(-(2.0**53) + 1, 2.0**53 - 1)),
        ValueError,
        "resolution must make at most 2^53 points inside bounds",
    ),
    (dict(resolution=0, dither=True), ValueError, "dither needs a lattice"),
    (dict(x=[1.0, np.nan], nan_policy="raise"), ValueError, "x must not contain NaN"),
)
# Where an argument means something else: the level of a clip is one number, None for a public one,
# and its lattice must be there; the counts of a selection are those of its keys.
CLIPPED = ("sum", "mean", "var", "std")
ELSEWHERE = {
    (name, argument)
    for name in (*CLIPPED, *(f"{name}_by" for name in CLIPPED))
    for argument in ("q", "resolution")
}
ELSEWHERE |= {("select_keys", "counts")}


def cases() -> list[Any]:
    made = []
    for name, row in MECHANISMS.items():
        for argument in inspect.signature(row.release).parameters:
            if argument not in BAD or (name, argument) in ELSEWHERE:
                continue
            made.append(pytest.param(name, argument))
    return made


def test_every_mechanism_has_good_arguments():
    assert GOOD.keys() == MECHANISMS.keys()


@pytest.mark.parametrize("name", GOOD)
def test_good_arguments_are_taken(name, implementation):
    getattr(implementation, name)(X, **GOOD[name], rng=1)


def assert_refuses(function: Any, given: dict[str, Any], error: Any, message: str) -> None:
    others = {key: value for key, value in given.items() if key != "x"}
    with pytest.raises(error, match="^" + re.escape(message)):
        function(given["x"], **others)


def holds_times_or_text(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "MUO"


@pytest.mark.parametrize(("name", "argument"), cases())
def test_bad_input_is_refused_by_its_rule(name, argument, implementation):
    function = getattr(implementation, name)
    law = getattr(implementation, f"{name}_law", None)
    if argument not in inspect.signature(function).parameters:
        assert argument == "workers"  # a reference has no threads
        return
    of_law = law is not None and argument in inspect.signature(law).parameters
    for value, error, message in BAD[argument]:
        if name.startswith("count") and argument == "x" and holds_times_or_text(value):
            continue  # which takes them
        if argument == "bounds" and value is None and name.startswith((*CLIPPED, "histogram")):
            continue  # whose clip is found then, or whose bins may be edges
        given = {"x": X} | GOOD[name] | {argument: value}
        if argument == "rho":
            given.pop("epsilon", None)
        assert_refuses(function, given | {"rng": 1}, error, message.format(argument))
        if of_law:
            assert_refuses(law, given, error, message.format(argument))


@pytest.mark.parametrize("given, error, message", TOGETHER, ids=str)
@pytest.mark.parametrize("name", [name for name, row in MECHANISMS.items() if row.reads == "order"])
def test_bad_combinations_are_refused(name, given, error, message, implementation):
    arguments = {"x": X} | GOOD[name] | given
    if name in ("ind_exp", "two_stage") and "dither" in given:  # which they have none of
        message = f"dither must be left out for {name}, got True"
    if name == "two_stage":  # which has a prior
        message = message.replace("at most 2^53 points inside bounds", "at most 2^50 points")
    for function in (name, f"{name}_law"):
        if hasattr(implementation, function):
            assert_refuses(getattr(implementation, function), arguments, error, message)


@pytest.mark.parametrize("name", ["quantile", "median", "percentile"])
@pytest.mark.parametrize(
    "argument", ["epsilon", "delta", "bounds", "neighbors", "max_contributions"]
)
def test_front_doors_hand_bad_input_on(name, argument):
    levels = {"quantile": (0.5,), "median": (), "percentile": (50,)}[name]
    given = dict(epsilon=1.0, bounds=(0, 9))
    for value, error, message in BAD[argument]:
        if value is None and argument == "bounds":  # a search needs none
            continue
        with pytest.raises(error, match="^" + re.escape(message.format(argument))):
            getattr(dpq, name)(X, *levels, **given | {argument: value})
