"""The front door: one mechanism behind each call, with the same draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import Untouchable

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.mechanisms.quantile import MANY_LEVELS, METHODS, choose_method

X = np.random.default_rng(0).normal(size=400)
Q = [[0.9, 0.1], [0.5, 0.9]]
BOUNDS = (-5.0, 5.0)


def budget(method: str, epsilon: float) -> dict[str, float]:
    """What the method takes for about this epsilon."""
    return {"rho": epsilon**2 / 2.0} if method == "csmooth" else {"epsilon": epsilon}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"neighbors": "add-remove"},
        {"resolution": 0.01},
        {"resolution": 0.01, "dither": False},
        {"resolution": 0},
        {"max_contributions": 3},
        {"counts": np.arange(400) % 3},
        {"nan_policy": "raise"},
    ],
    ids=str,
)
def test_quantile_equals_its_mechanism(options):
    arguments = {"epsilon": 0.5, "bounds": BOUNDS, "rng": 7, **options}
    joint = dpq.joint_exp(X, Q, **arguments)
    np.testing.assert_array_equal(dpq.quantile(X, Q, **arguments), joint)
    np.testing.assert_array_equal(dpq.quantile(X, Q, method="joint_exp", **arguments), joint)
    np.testing.assert_array_equal(
        dpq.quantile(X, Q, method="ind_exp", **arguments), dpq.ind_exp(X, Q, **arguments)
    )


def test_quantile_hands_assume_sorted_on():
    arguments = {"epsilon": 0.5, "bounds": BOUNDS, "rng": 7, "assume_sorted": True}
    broken = X[::-1]
    np.testing.assert_array_equal(
        dpq.quantile(broken, Q, **arguments), dpq.joint_exp(broken, Q, **arguments)
    )


def test_quantile_takes_rho():
    arguments = {"bounds": BOUNDS, "rng": 7}
    np.testing.assert_array_equal(
        dpq.quantile(X, Q, rho=0.125, **arguments), dpq.joint_exp(X, Q, epsilon=1.0, **arguments)
    )
    np.testing.assert_array_equal(
        dpq.quantile(X, Q, rho=0.125, method="ind_exp", **arguments),
        dpq.ind_exp(X, Q, rho=0.125, **arguments),
    )
    np.testing.assert_array_equal(
        dpq.quantile(X, Q, rho=0.125, method="approx_quantiles", **arguments),
        dpq.approx_quantiles(X, Q, rho=0.125, **arguments),
    )
    np.testing.assert_array_equal(
        dpq.quantile(X, Q, rho=0.125, method="unbounded_quantile", **arguments),
        dpq.unbounded_quantile(X, Q, rho=0.125, lower=BOUNDS[0], upper=BOUNDS[1], rng=7),
    )
    np.testing.assert_array_equal(
        dpq.quantile(X, Q, rho=0.125, method="csmooth", t=0.1, **arguments),
        dpq.csmooth(X, Q, rho=0.125, t=0.1, **arguments),
    )


def test_quantile_takes_rho_alone_for_csmooth():
    arguments = {"bounds": BOUNDS, "method": "csmooth"}
    with pytest.raises(ValueError, match="rho must be given in place of epsilon for method 'csm"):
        dpq.quantile(Untouchable(), Q, epsilon=1.0, **arguments)
    with pytest.raises(ValueError, match="delta must be 0 with rho, got 1e-06"):
        dpq.quantile(Untouchable(), Q, rho=0.5, delta=1e-6, **arguments)


def test_quantile_takes_delta():
    arguments = {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS, "rng": 7}
    np.testing.assert_array_equal(
        dpq.quantile(X, Q, method="ind_exp", **arguments), dpq.ind_exp(X, Q, **arguments)
    )
    pure = dpq.joint_exp(X, Q, epsilon=1.0, bounds=BOUNDS, rng=7)
    for method in ("auto", "joint_exp"):
        np.testing.assert_array_equal(dpq.quantile(X, Q, method=method, **arguments), pure)


@pytest.mark.parametrize("method", METHODS)
def test_quantile_rejects_delta(method):
    for delta in (-1e-6, 1.0, math.nan):
        with pytest.raises(ValueError, match=r"delta must lie in \[0, 1\)"):
            dpq.quantile(X, 0.5, epsilon=1.0, delta=delta, bounds=BOUNDS, method=method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "budget, came", [({}, "neither"), ({"epsilon": 1.0, "rho": 0.1}, "both")], ids=str
)
def test_quantile_rejects_two_budgets_or_none(method, budget, came):
    with pytest.raises(
        ValueError, match=f"exactly one of epsilon and rho must be given, got {came}"
    ):
        dpq.quantile(X, 0.5, bounds=BOUNDS, method=method, **budget)


def test_choose_method_knows_the_mechanisms():
    assert METHODS == (
        "auto",
        "joint_exp",
        "ind_exp",
        "approx_quantiles",
        "unbounded_quantile",
        "agg_tree",
        "csmooth",
    )
    for bounded in (True, False):
        for neighbors in ("swap", "add-remove"):
            named = [choose_method(method, 100, neighbors, bounded) for method in METHODS[1:]]
            assert named == list(METHODS[1:])


def test_auto_chooses_by_public_facts():
    """The table of `quantile`."""
    assert choose_method("auto", 1, "swap", False, 1.0, 10) == "unbounded_quantile"
    assert choose_method("auto", 100, "add-remove", False) == "unbounded_quantile"
    for (parts, kind), many in MANY_LEVELS.items():
        neighbors = {1: "add-remove", 2: "swap"}[parts]
        epsilon = 1.0 if kind == "epsilon" else None
        few_rows = choose_method("auto", many, neighbors, True, epsilon, 20 * (many + 1) - 1)
        assert few_rows == "approx_quantiles"
        assert choose_method("auto", many - 1, neighbors, True, epsilon, 1) == "joint_exp"
    for rows in (20 * 101, None):
        assert choose_method("auto", 100, "swap", True, 1.0, rows) == "joint_exp"
    assert choose_method("auto", 100, "swap", True, 0.1, 20 * 101) == "approx_quantiles"
    assert choose_method("auto", 100, "add-remove", True, 1.0, 10**9) == "approx_quantiles"


@pytest.mark.parametrize(
    "neighbors, epsilon, most",
    [
        ("swap", 1.0, 24),
        ("add-remove", 1.0, 14),
        ("swap", None, 4),
        ("add-remove", None, 2),
    ],
)
def test_auto_splits_from_so_many_levels_on(neighbors, epsilon, most):
    """The table of `quantile`, in its numbers; by rows only under swap with an epsilon."""
    assert choose_method("auto", most, neighbors, True, epsilon, 1) == "joint_exp"
    assert choose_method("auto", most + 1, neighbors, True, epsilon, 1) == "approx_quantiles"
    enough = choose_method("auto", most + 1, neighbors, True, epsilon, 20 * (most + 2))
    by_rows = (neighbors, epsilon) == ("swap", 1.0)
    assert enough == ("joint_exp" if by_rows else "approx_quantiles")


def test_auto_is_the_mechanism_it_chooses():
    many = np.arange(1, 20) / 20
    arguments = {"epsilon": 5.0, "rng": 3}
    np.testing.assert_array_equal(
        dpq.quantile(X, many, bounds=BOUNDS, neighbors="add-remove", **arguments),
        dpq.approx_quantiles(X, many, bounds=BOUNDS, neighbors="add-remove", **arguments),
    )
    np.testing.assert_array_equal(
        dpq.quantile(X, many, lower=-10.0, **arguments),
        dpq.unbounded_quantile(X, many, lower=-10.0, **arguments),
    )
    few = np.arange(1, 26) / 26
    arguments = {"epsilon": 1.0, "bounds": BOUNDS, "rng": 3}
    np.testing.assert_array_equal(  # 400 records are fewer than 20 for each of 26 gaps
        dpq.quantile(X, few, **arguments), dpq.approx_quantiles(X, few, **arguments)
    )
    arguments["counts"] = np.ones(400, dtype=int)
    np.testing.assert_array_equal(
        dpq.quantile(X, few, **arguments), dpq.joint_exp(X, few, **arguments)
    )
    arguments = {"epsilon": 5.0, "rng": 3}
    sample = dpq.Sample.of(X, BOUNDS)
    assert dpq.quantile(sample, 0.5, **arguments) == dpq.joint_exp(sample, 0.5, **arguments)


@pytest.mark.parametrize(
    "method, error", [("jointexp", ValueError), ("", ValueError), (None, TypeError)]
)
def test_quantile_rejects_unknown_methods(method, error):
    with pytest.raises(error, match="method must be one of 'auto', 'joint_exp', 'ind_exp', 'ap"):
        dpq.quantile(X, 0.5, epsilon=1.0, bounds=BOUNDS, method=method)


def test_quantile_hands_method_options_on():
    arguments = {"epsilon": 0.5, "bounds": BOUNDS, "rng": 7}
    np.testing.assert_array_equal(
        dpq.quantile(X, Q, kernel="fft", **arguments),
        dpq.joint_exp(X, Q, kernel="fft", **arguments),
    )
    with pytest.raises(ValueError, match="kernel must be one of"):
        dpq.quantile(X, Q, kernel="magic", **arguments)
    for method in METHODS:
        with pytest.raises(TypeError, match="colour"):
            dpq.quantile(X, Q, method=method, colour="red", bounds=BOUNDS, **budget(method, 0.5))
    with pytest.raises(TypeError, match="kernel"):
        dpq.quantile(X, Q, method="ind_exp", kernel="scan", **arguments)


@pytest.mark.parametrize("method", METHODS)
def test_quantile_charges_before_the_data_is_touched(method):
    accountant = privacy.Accountant(3.0, 1e-6, composition="zcdp")
    arguments = {"bounds": BOUNDS, "method": method, "accountant": accountant}
    arguments |= {"epsilon": 1.0} if method != "csmooth" else {"rho": 0.125}
    dpq.quantile(X, Q, rng=1, **arguments)
    function = "joint_exp" if method == "auto" else method
    named = {"lower": BOUNDS[0], "upper": BOUNDS[1]} if method == "unbounded_quantile" else {}
    budgets = {key: arguments[key] for key in ("epsilon", "rho") if key in arguments}
    promised = privacy.guarantee(function, q=Q, **budgets, **named)
    assert accountant.spent.rho == pytest.approx(promised.implied_rho)
    arguments |= {key: 9.0 for key in ("epsilon", "rho") if key in arguments}
    with pytest.raises(privacy.BudgetExceeded):
        dpq.quantile(Untouchable(), Q, **arguments)


@pytest.mark.parametrize("method", METHODS)
def test_quantile_hands_nan_policy_on(method):
    arguments = {"bounds": BOUNDS, "method": method, **budget(method, 0.5)}
    with pytest.raises(ValueError, match="x must not contain NaN with nan_policy='raise'"):
        dpq.quantile([0.0, math.nan], 0.5, nan_policy="raise", **arguments)


def test_quantile_is_not_run_on_bad_arguments():
    with pytest.raises(TypeError, match="assume_sorted must be True or False, got 'yes'"):
        dpq.quantile(
            Untouchable(), 0.5, epsilon=1.0, bounds=BOUNDS, method="agg_tree", assume_sorted="yes"
        )
    with pytest.raises(ValueError, match="method must be one of"):
        dpq.quantile(Untouchable(), 0.5, epsilon=1.0, bounds=BOUNDS, method="best")
    with pytest.raises(ValueError, match="q must lie in"):
        dpq.quantile(Untouchable(), 1.5, epsilon=1.0, bounds=BOUNDS)


@pytest.mark.parametrize("method", METHODS)
def test_percentile_is_quantile_of_a_hundredth(method):
    arguments = {"bounds": BOUNDS, "rng": 7, "method": method, **budget(method, 0.5)}
    expected = dpq.quantile(X, np.array([[90, 10], [50, 90]]) / 100.0, **arguments)
    for q in ([[90, 10], [50, 90]], [[90.0, 10.0], [50.0, 90.0]]):
        np.testing.assert_array_equal(dpq.percentile(X, q, **arguments), expected)
    assert isinstance(dpq.percentile(X, 50, **arguments), float)


@pytest.mark.parametrize(
    "q, error, message",
    [
        (100.5, ValueError, r"q must lie in \[0, 100\]"),
        ([50, -1], ValueError, r"q must lie in \[0, 100\]"),
        (math.nan, ValueError, r"q must lie in \[0, 100\]"),
        ([], ValueError, "q must hold at least one level"),
        ("50", TypeError, "q must be real numbers"),
        (True, TypeError, "q must be real numbers"),
    ],
)
def test_percentile_rejects(q, error, message):
    with pytest.raises(error, match=message):
        dpq.percentile(X, q, epsilon=1.0, bounds=BOUNDS)


def test_percentile_takes_its_ends():
    out = dpq.percentile(X, [0, 100], epsilon=1.0, bounds=BOUNDS, rng=1)
    assert BOUNDS[0] <= out[0] <= out[1] <= BOUNDS[1]


@pytest.mark.parametrize("method", METHODS)
def test_median_is_quantile_of_a_half(method):
    arguments = {"bounds": BOUNDS, "rng": 7, "method": method, **budget(method, 0.5)}
    out = dpq.median(X, **arguments)
    assert isinstance(out, float)
    assert out == dpq.quantile(X, 0.5, **arguments)


def test_quantile_is_near_the_truth():
    x = np.random.default_rng(1).normal(size=20_000)
    q = [0.1, 0.5, 0.9]
    for method in METHODS:
        out = dpq.quantile(x, q, bounds=BOUNDS, method=method, rng=3, **budget(method, 5.0))
        ranks = np.searchsorted(np.sort(x), out) / 20_000
        # candidates of the unbounded search are 1% of the distance from -5 apart
        assert np.abs(ranks - q).max() < (0.02 if method == "unbounded_quantile" else 0.005)
