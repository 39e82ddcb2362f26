"""The front door: one mechanism behind each call, with the same draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import Untouchable

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.mechanisms.quantile import METHODS, choose_method
from dpq_fast.privacy.choice import expected_errors
from dpq_fast.privacy.relations import relation_of


class Rows(Untouchable):
    """Only how many rows there are may be asked, which "swap" takes as public."""

    def __len__(self) -> int:
        return 400


X = np.random.default_rng(0).normal(size=400)
Q = [[0.9, 0.1], [0.5, 0.9]]
BOUNDS = (-5.0, 5.0)
FREE = {"prior": "scale-free"}


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
    free = {} if options.get("resolution") == 0 else FREE
    np.testing.assert_array_equal(
        dpq.quantile(X, Q, **arguments), dpq.joint_exp(X, Q, **arguments, **free)
    )
    np.testing.assert_array_equal(
        dpq.quantile(X, Q, method="joint_exp", **arguments), dpq.joint_exp(X, Q, **arguments)
    )
    np.testing.assert_array_equal(
        dpq.quantile(X, Q, method="ind_exp", **arguments), dpq.ind_exp(X, Q, **arguments)
    )


def test_quantile_hands_assume_sorted_on():
    arguments = {"epsilon": 0.5, "bounds": BOUNDS, "rng": 7, "assume_sorted": True}
    broken = X[::-1]
    np.testing.assert_array_equal(
        dpq.quantile(broken, Q, **arguments), dpq.joint_exp(broken, Q, **arguments, **FREE)
    )


def test_quantile_takes_rho():
    arguments = {"bounds": BOUNDS, "rng": 7}
    np.testing.assert_array_equal(
        dpq.quantile(X, Q, rho=0.125, method="joint_exp", **arguments),
        dpq.joint_exp(X, Q, epsilon=privacy.rho_bounded_range(0.125), **arguments),
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
    np.testing.assert_array_equal(dpq.quantile(X, Q, method="joint_exp", **arguments), pure)
    pure = dpq.joint_exp(X, Q, epsilon=1.0, bounds=BOUNDS, rng=7, **FREE)
    np.testing.assert_array_equal(dpq.quantile(X, Q, **arguments), pure)


@pytest.mark.parametrize("method", METHODS)
def test_quantile_rejects_delta(method):
    for delta in (-1e-6, 1.0, math.nan):
        with pytest.raises(ValueError, match=r"delta must lie in \[0, 1\)"):
            dpq.quantile(X, 0.5, epsilon=1.0, delta=delta, bounds=BOUNDS, method=method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "budget, came",
    [({"epsilon": None}, "neither"), ({"epsilon": 1.0, "rho": 0.1}, "both")],
    ids=str,
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
        "two_stage",
        "unbounded_quantile",
        "agg_tree",
        "csmooth",
    )
    for bounds in (None, BOUNDS):
        for neighbors in ("swap", "add-remove"):
            given = dict(epsilon=1.0, bounds=bounds, neighbors=neighbors)
            named = [choose_method(X, Q, method=method, **given) for method in METHODS[1:]]
            assert named == list(METHODS[1:])


def evenly(m: int) -> np.ndarray:
    return np.arange(1, m + 1) / (m + 1)


@pytest.mark.parametrize(
    "m, options, expected",
    [
        # between bounds on both sides of 0 a pilot is worth what it takes where there are many
        (1, {}, "two_stage"),
        (1, {"expected_n": 1_000}, "ind_exp"),
        (1, {"bounds": (0, 10)}, "ind_exp"),
        (1, {"dither": True}, "joint_exp"),
        (1, {"epsilon": None, "rho": 0.5, "bounds": (0, 10)}, "ind_exp"),
        (2, {"epsilon": None, "rho": 0.5, "expected_n": 9_000}, "two_stage"),
        (2, {"epsilon": None, "rho": 0.5, "expected_n": 900}, "approx_quantiles"),
        (10, {"epsilon": None, "rho": 0.5, "expected_n": 9_000}, "approx_quantiles"),
        (2, {"expected_n": 10_000}, "two_stage"),
        # nobody knows how many there are
        (2, {}, "joint_exp"),
        (29, {"neighbors": "add-remove"}, "approx_quantiles"),
        (100, {"bounds": None}, "unbounded_quantile"),
        # the levels share the budget until there are too few records for each
        (9, {"expected_n": 1_000}, "joint_exp"),
        (29, {"expected_n": 1_000}, "two_stage"),
        (19, {"expected_n": 1_900}, "joint_exp"),
        (29, {"expected_n": 2_000}, "two_stage"),
        (100, {"expected_n": 10_000}, "two_stage"),
        # what a tree misses inside leaves grows with the records
        (300, {"expected_n": 100_000}, "two_stage"),
        (700, {"expected_n": 100_000}, "approx_quantiles"),
        (9, {"expected_n": 1_000, "epsilon": 0.1}, "two_stage"),
        (9, {"expected_n": 10_000, "epsilon": 0.1}, "joint_exp"),
        (9, {"expected_n": 20_000, "epsilon": 0.1}, "two_stage"),
        (3, {"expected_n": 1_000, "epsilon": 0.1}, "joint_exp"),
        (9, {"expected_n": 50}, "approx_quantiles"),
        # each of few points is a leaf
        (29, {"expected_n": 1_000, "resolution": 0.1}, "agg_tree"),
        # a record is in one part of each depth, and in one leaf
        (30, {"neighbors": "add-remove", "expected_n": 100_000}, "two_stage"),
        (100, {"neighbors": "add-remove", "expected_n": 100_000}, "approx_quantiles"),
        # trees have no dither, and pilots a lattice
        (300, {"dither": True, "expected_n": 100_000}, "approx_quantiles"),
        (29, {"resolution": 0, "expected_n": 1_000}, "agg_tree"),
    ],
)
def test_auto_chooses_by_public_facts(m, options, expected):
    given = dict(epsilon=1.0, bounds=BOUNDS) | options
    assert choose_method(None, evenly(m), **given) == expected
    if "expected_n" in given and given["epsilon"]:
        # three records of a person are as good as a third of epsilon
        given["epsilon"] *= 3
        assert choose_method(None, evenly(m), max_contributions=3, **given) == expected


@pytest.mark.parametrize(
    "q, options, expected",
    [
        (0.99, {}, "two_stage"),
        (0.01, {}, "two_stage"),
        (1.0, {"expected_n": 10_000}, "two_stage"),
        ([0.5, 0.95, 0.99], {}, "two_stage"),
        ([0.5, 0.99], {"epsilon": None, "rho": 0.5, "expected_n": 500}, "two_stage"),
        # there are enough beyond, or too few in all for a pilot; or no lattice for one
        (0.98, {}, "ind_exp"),
        (0.99, {"expected_n": 10_000}, "ind_exp"),
        (0.99, {"expected_n": 50}, "ind_exp"),
        (0.99, {"resolution": 0}, "ind_exp"),
        (0.99, {"dither": True}, "joint_exp"),
    ],
    ids=str,
)
def test_levels_near_an_end_are_those_that_few_records_times_epsilon_are_beyond(
    q, options, expected
):
    given = dict(epsilon=1.0, bounds=(0, 10), expected_n=1_000) | options
    assert choose_method(None, q, **given) == expected


@pytest.mark.parametrize("epsilon", [1e-13, 1e-100, 1e-153, 1e-200, 1e-303])
def test_tiny_budgets_choose_a_mechanism_that_has_noise_for_them(epsilon):
    assert choose_method(X, [0.2, 0.5], epsilon=epsilon, bounds=BOUNDS) == "approx_quantiles"
    out = dpq.quantile(X, [0.2, 0.5], epsilon=epsilon, bounds=BOUNDS, rng=0)
    assert (np.abs(out) <= BOUNDS[1]).all()


def test_expected_errors_by_hand():
    """n epsilon = 1,000, nine levels; a tree of 10 points has the points as leaves."""
    swap = expected_errors(9, relation_of("swap"), 0.5, 2_000, 10)
    assert swap["joint_exp"] == pytest.approx(2.0 * 3.0 * (1.0 + 0.18**2) / 0.5)
    assert swap["approx_quantiles"] == pytest.approx(5.2 * math.log(10.0) * 1.05 / 0.5)
    other = expected_errors(9, relation_of("add-remove"), 0.5, 2_000, 10)
    assert other["joint_exp"] == swap["joint_exp"]
    assert other["approx_quantiles"] == pytest.approx(swap["approx_quantiles"] / 2.0)
    assert other["agg_tree"] == pytest.approx(swap["agg_tree"] / 2.0)
    # a third more than a tree of a learned prior is to miss, which has half the noise
    assert swap["two_stage"] == pytest.approx(7.5 * 31 / 30 / 0.75 / 0.5)
    assert other["two_stage"] == pytest.approx(7.5 / 2.0 * 2.0**0.15 * 32 / 30 / 0.75 / 0.5)
    fewer = expected_errors(9, relation_of("swap"), 0.5, 200, 10**6)
    assert fewer["two_stage"] == pytest.approx(7.5 * 10.0**0.8 * 301 / 300 / 0.75 / 0.5)
    assert "agg_tree" not in fewer
    none = expected_errors(9, relation_of("swap"), 0.5, 32_000, None)
    error, _ = privacy.agg_tree.least_error(None, 32_000, 2.0 * math.sqrt(2.0) / 0.5)
    assert none["agg_tree"] == pytest.approx(1.3 * 16.0 ** (1 / 6) * 32_000 * error)
    assert "two_stage" not in none


@pytest.mark.parametrize(
    "m, options, method, more",
    [
        (1, {"epsilon": 1.0}, "ind_exp", {}),
        (1, {"epsilon": 1.0, "delta": 1e-6}, "ind_exp", {}),
        (1, {"epsilon": 1.0, "bounds": (-5.0, 0.0)}, "ind_exp", FREE),
        (1, {"epsilon": 1.0, "bounds": (0.0, 5.0), "resolution": 0}, "ind_exp", {}),
        (1, {"epsilon": 1.0, "bounds": (0.0, 5.0), "prior": "uniform"}, "ind_exp", {}),
        (1, {"epsilon": 1.0, "dither": True}, "joint_exp", {"dither": True}),
        (3, {"epsilon": 4.0}, "joint_exp", FREE),
        (3, {"epsilon": 5.0}, "two_stage", {}),
        (3, {"epsilon": 5.0, "resolution": 2e-15}, "joint_exp", {}),  # too many points to weigh
        (3, {"rho": 0.5}, "approx_quantiles", FREE),
        (3, {"rho": 5.0}, "two_stage", {}),
        (60, {"epsilon": 1.0}, "two_stage", {"expected_n": X.size}),
        (60, {"epsilon": 1.0, "expected_n": 30}, "approx_quantiles", FREE),
        (60, {"epsilon": 1.0, "neighbors": "add-remove"}, "approx_quantiles", FREE),
        (60, {"epsilon": 1.0, "expected_n": 300, "resolution": 1}, "agg_tree", {}),
    ],
    ids=str,
)
def test_auto_is_the_mechanism_it_chooses(m, options, method, more):
    q, options = evenly(m), {"bounds": BOUNDS} | options
    left_out = ("delta",) if method in ("two_stage", "agg_tree") else ("delta", "expected_n")
    own = {name: value for name, value in options.items() if name not in left_out}
    expected = getattr(dpq, method)(X, q, rng=3, **(more | own))
    np.testing.assert_array_equal(dpq.quantile(X, q, rng=3, **options), expected)


def test_auto_takes_samples_and_no_bounds():
    arguments = {"epsilon": 4.0, "rng": 3}
    np.testing.assert_array_equal(
        dpq.quantile(X, evenly(60), lower=-10.0, **arguments),
        dpq.unbounded_quantile(X, evenly(60), lower=-10.0, **arguments),
    )
    sample = dpq.Sample.of(X, BOUNDS)
    few = dpq.quantile(sample, 0.5, expected_n=400, **arguments)
    assert few == dpq.ind_exp(sample, 0.5, **arguments)
    coarse = dpq.Sample.of(X, BOUNDS, resolution=1)
    arguments["epsilon"] = 0.01
    np.testing.assert_array_equal(
        dpq.quantile(coarse, evenly(9), **arguments),
        dpq.agg_tree(coarse, evenly(9), **arguments),
    )
    arguments["epsilon"] = 2.0  # a sample has the lattice that it was made with
    np.testing.assert_array_equal(
        dpq.quantile(sample, evenly(3), **arguments),
        dpq.joint_exp(sample, evenly(3), **arguments),
    )


def test_auto_draws_one_level_for_composition_by_the_exponential_mechanism():
    arguments = {"bounds": BOUNDS, "epsilon": 1.0, "rng": 3}
    by_rho = privacy.Accountant(10.0, 1e-6, composition="zcdp")
    by_epsilon = privacy.Accountant(10.0, 1e-6)
    for accountant, selection in ((by_rho, "exponential"), (by_epsilon, "permute-and-flip")):
        out = dpq.median(X, accountant=accountant, **arguments)
        assert out == dpq.ind_exp(X, 0.5, selection=selection, **arguments)
        expected = privacy.guarantee("ind_exp", q=0.5, epsilon=1.0, selection=selection)
        assert accountant.history == (expected,)
    out = dpq.median(X, accountant=by_rho, selection="permute-and-flip", **arguments)
    assert out == dpq.ind_exp(X, 0.5, **arguments)


@pytest.mark.parametrize("expected_n, error", [(0, ValueError), (-1, ValueError), (2.5, TypeError)])
def test_quantile_rejects_expected_n(expected_n, error):
    for method in ("auto", "agg_tree", "joint_exp"):
        with pytest.raises(error, match="expected_n must be"):
            dpq.quantile(
                Untouchable(), Q, epsilon=1.0, bounds=BOUNDS, method=method, expected_n=expected_n
            )


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
        dpq.joint_exp(X, Q, kernel="fft", **arguments, **FREE),
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
    named |= {"expected_n": X.size} if method == "two_stage" else {}
    budgets = {key: arguments[key] for key in ("epsilon", "rho") if key in arguments}
    promised = privacy.guarantee(function, q=Q, **budgets, **named)
    assert accountant.spent.rho == pytest.approx(promised.implied_rho)
    arguments |= {key: 9.0 for key in ("epsilon", "rho") if key in arguments}
    with pytest.raises(privacy.BudgetExceeded):
        dpq.quantile(
            Rows() if method in ("auto", "agg_tree", "two_stage") else Untouchable(), Q, **arguments
        )


@pytest.mark.parametrize("method", METHODS)
def test_quantile_hands_nan_policy_on(method):
    arguments = {"bounds": BOUNDS, "method": method, **budget(method, 0.5)}
    with pytest.raises(ValueError, match="x must not contain NaN with nan_policy='raise'"):
        dpq.quantile([0.0, math.nan], 0.5, nan_policy="raise", **arguments)


def test_quantile_is_not_run_on_bad_arguments():
    with pytest.raises(TypeError, match="assume_sorted must be True or False, got 'yes'"):
        dpq.quantile(
            Rows(), 0.5, epsilon=1.0, bounds=BOUNDS, method="agg_tree", assume_sorted="yes"
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
