"""Guarantees: what the class takes, conversions, and what each mechanism promises."""

from __future__ import annotations

import builtins
import importlib
import inspect
import math
import pkgutil
from fractions import Fraction

import numpy as np
import pytest
from conftest import BOTH, pure_rho, range_rho, renyi
from releases import NEEDED, PUBLIC

from dpq_fast import privacy
from dpq_fast.mechanisms.registry import MECHANISMS
from dpq_fast.privacy import (
    Accountant,
    Guarantee,
    guarantee,
)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": -1.0}, ValueError, "^epsilon must be finite and not negative, got -1.0$"),
        ({"epsilon": math.inf}, ValueError, "^epsilon must be finite"),
        ({"epsilon": "1"}, TypeError, "^epsilon must be a real number"),
        ({"epsilon": 1.0, "delta": 1.0}, ValueError, "^delta must lie in"),
        ({"epsilon": 1.0, "rho": -1.0}, ValueError, "^rho must be finite and not negative"),
        ({"epsilon": 1.0, "bounded_range": math.nan}, ValueError, "^bounded_range must be finite"),
        ({"epsilon": 1.0, "neighbors": "x"}, ValueError, "^neighbors must be one of"),
        (
            {"epsilon": 1.0, "composition": None},
            TypeError,
            "^composition must be a string, got None",
        ),
        ({"epsilon": None}, ValueError, "^a guarantee must state epsilon or rho, got neither$"),
        (
            {"epsilon": None, "rho": 1.0, "delta": 0.1},
            ValueError,
            "^delta must be 0 without epsilon, got 0.1$",
        ),
        (
            {"epsilon": None, "rho": 1.0, "bounded_range": 1.0},
            ValueError,
            "^epsilon must be given with bounded_range",
        ),
    ],
)
def test_guarantee_class_rejects(arguments, error, message):
    with pytest.raises(error, match=message):
        Guarantee(**arguments)


def test_guarantee_is_frozen_and_clean():
    made = Guarantee(1, rho=2)
    assert made == Guarantee(1.0, 0.0, 2.0, None, "swap", "")
    assert type(made.epsilon) is float
    with pytest.raises(AttributeError):
        made.epsilon = 0.1


@pytest.mark.parametrize(
    ("arguments", "rho"),
    [
        ({"epsilon": 2.0}, pure_rho(2.0)),
        ({"epsilon": 2.0, "bounded_range": 2.0}, range_rho(2.0)),
        ({"epsilon": 2.0, "bounded_range": 2.0, "rho": 0.25}, 0.25),
        ({"epsilon": 2.0, "delta": 0.1}, None),
        ({"epsilon": None, "rho": 3.0}, 3.0),
    ],
)
def test_implied_rho_is_the_smallest(arguments, rho):
    assert Guarantee(**arguments).implied_rho == (None if rho is None else pytest.approx(rho))


def test_to_swap_is_group_privacy_of_two():
    start = Guarantee(0.5, 1e-6, 0.25, 2.0, "add-remove", "basic")
    end = start.to("swap")
    # two steps: P <= e^eps (e^eps R + delta) + delta
    expected = Guarantee(1.0, 1e-6 * (1 + math.exp(0.5)), 1.0, 4.0, "swap", "basic + group-privacy")
    assert end == expected
    assert start.to("add-remove") is start
    assert Guarantee(None, rho=1.0, neighbors="add-remove").to("swap").rho == 4.0
    assert Guarantee(1.0, neighbors="add-remove").to("swap").composition == "group-privacy"


@pytest.mark.parametrize("rate", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.5])
def test_to_swap_holds_for_an_enumerated_path(rate, epsilon):
    # Data sets x + a, x, x + b: each next one is an addition or a removal away, the ends a swap.
    weights = [np.exp(-rate * np.abs(np.arange(4) - centre)) for centre in (0.5, 1.2, 2.0)]
    laws = [w / w.sum() for w in weights]
    orders = np.array([1.01, 1.5, 2.0, 5.0, 20.0])

    def statements(pairs, at):
        both = [*pairs, *((q, p) for p, q in pairs)]
        delta = max(np.maximum(p - math.exp(at) * q, 0).sum() for p, q in both)
        rho = max(renyi(p, q, alpha) / alpha for p, q in both for alpha in orders)
        return delta, rho, max(np.ptp(np.log(p / q)) for p, q in both)

    delta, rho, span = statements([laws[:2], laws[1:]], epsilon)
    swap = Guarantee(epsilon, delta, rho, neighbors="add-remove").to("swap")
    span = Guarantee(span, bounded_range=span, neighbors="add-remove").to("swap").bounded_range
    whole = statements([(laws[0], laws[2])], swap.epsilon or 0.0)
    assert whole[1] <= swap.rho
    assert whole[2] <= span * (1 + 1e-12)
    if swap.epsilon is not None:  # else delta (1 + exp(epsilon)) reached 1
        assert whole[0] <= swap.delta


def test_to_swap_drops_a_delta_that_says_nothing():
    assert Guarantee(800.0, 0.1, 1.0, neighbors="add-remove").to("swap").epsilon is None
    kept = Guarantee(5.0, 0.5, 1.0, 6.0, "add-remove").to("swap")
    assert (kept.epsilon, kept.delta) == (12.0, 0.0)  # twice the range, which is pure
    with pytest.raises(ValueError, match=r"^delta \(1 \+ exp.* must be below 1"):
        Guarantee(1.0, 0.5, neighbors="add-remove").to("swap")


def test_to_add_remove_is_refused():
    with pytest.raises(ValueError, match=r"takes the number of records as public"):
        Guarantee(1.0).to("add-remove")
    with pytest.raises(ValueError, match=r"^neighbors must be one of"):
        Guarantee(1.0).to("both")


def test_dp_event_classes():
    dp_accounting = pytest.importorskip("dp_accounting", reason="extra 'accounting' not installed")
    own = guarantee("joint_exp", epsilon=2.0)
    assert own.dp_event == dp_accounting.ZCDpEvent(own.rho)
    assert Guarantee(None, rho=0.25).dp_event == dp_accounting.ZCDpEvent(0.25)
    pure = Guarantee(1.5).dp_event
    assert isinstance(pure, dp_accounting.RandomizedResponseDpEvent)
    assert pure.num_buckets == 2
    p = pure.noise_parameter
    assert (1 - p + p / 2) / (p / 2) == pytest.approx(math.exp(1.5), rel=1e-14)
    moved = Guarantee(2.0, neighbors="add-remove").dp_event
    assert moved == dp_accounting.ZCDpEvent(privacy.pure_rho(2.0))
    if not hasattr(dp_accounting.dp_event, "EpsilonDeltaDpEvent"):  # as of 0.6.0
        assert isinstance(Guarantee(1.0, 1e-6).dp_event, dp_accounting.UnsupportedDpEvent)


def test_dp_event_of_newer_versions(monkeypatch):
    """An event of (epsilon, delta) for what is just that; no event that claims a range."""
    dp_accounting = pytest.importorskip("dp_accounting", reason="extra 'accounting' not installed")
    made = []

    class EpsilonDeltaDpEvent(dp_accounting.DpEvent):
        def __init__(self, epsilon, delta):
            made.append((epsilon, delta))

    module = dp_accounting.dp_event
    monkeypatch.setattr(module, "EpsilonDeltaDpEvent", EpsilonDeltaDpEvent, raising=False)
    monkeypatch.setattr(module, "ExponentialMechanismDpEvent", None, raising=False)
    assert isinstance(Guarantee(1.0, 1e-6).dp_event, EpsilonDeltaDpEvent)
    assert made == [(1.0, 1e-6)]
    assert isinstance(Guarantee(1.0).dp_event, dp_accounting.RandomizedResponseDpEvent)
    for rho in (
        Guarantee(1.0, neighbors="add-remove"),
        Guarantee(1.0, 1e-6, rho=0.5),
        Guarantee(1.0, bounded_range=1.0),
    ):
        assert rho.dp_event == dp_accounting.ZCDpEvent(rho.implied_rho)


def test_dp_event_of_pure_epsilon_is_its_worst_mechanism():
    """In the accountant by loss distributions: all of epsilon, and what two of them compose to."""
    pld = pytest.importorskip("dp_accounting.pld", reason="extra 'accounting' not installed")
    import dp_accounting

    accountant = pld.PLDAccountant(
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE
    )
    accountant.compose(Guarantee(0.5).dp_event)
    assert accountant.get_epsilon(1e-12) == pytest.approx(0.5, abs=2e-4)
    accountant.compose(Guarantee(1.0).dp_event)
    ours = privacy.compose([Guarantee(0.5), Guarantee(1.0)], delta=0.05)
    assert ours.composition == "optimal"
    assert accountant.get_epsilon(0.05) == pytest.approx(ours.epsilon, abs=3e-4)


def test_dp_event_composes_to_our_zcdp_conversion():
    rdp = pytest.importorskip("dp_accounting.rdp", reason="extra 'accounting' not installed")
    import dp_accounting

    accountant = rdp.RdpAccountant(
        orders=list(np.linspace(1.5, 40, 2000)),
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE,
    )
    accountant.compose(guarantee("joint_exp", epsilon=1.0).dp_event, 10)
    ours = privacy.zcdp_epsilon(10 * range_rho(1.0), 1e-6)
    assert accountant.get_epsilon(1e-6) == pytest.approx(ours, rel=1e-4)


def test_dp_event_names_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "dp_accounting":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'dpq_fast\[accounting\]'"):
        _ = Guarantee(1.0).dp_event


@pytest.mark.parametrize("value", [1, np.float64(0.5), Fraction(1, 2)])
def test_guarantee_class_stores_floats(value):
    small = value / 4
    made = Guarantee(value, small, value, value)
    stored = (made.epsilon, made.delta, made.rho, made.bounded_range)
    assert {type(field) for field in stored} <= {float, np.float64}
    assert stored == (value, small, value, value)


def test_to_swap_at_the_ends():
    pure = Guarantee(800.0, neighbors="add-remove")
    assert pure.to("swap") == Guarantee(1600.0, composition="group-privacy")
    # twice a delta of 1/2 is 1, which says nothing
    nothing = Guarantee(0.0, 0.5, 1.0, neighbors="add-remove").to("swap")
    assert (nothing.epsilon, nothing.delta, nothing.rho) == (None, 0.0, 4.0)
    # exp(699) is still a float64
    kept = Guarantee(699.0, 1e-310, neighbors="add-remove").to("swap")
    assert kept.delta == pytest.approx(1e-310 * math.exp(699.0), rel=1e-9)


@pytest.mark.parametrize(
    ("method", "parameters", "message"),
    [
        ("nope", {}, "^method must be one of 'joint_exp', 'ind_exp'.*, got 'nope'$"),
        ("joint_exp", {}, r"^guarantee\('joint_exp'\) needs epsilon or rho$"),
        ("joint_exp", {"epsilon": 1.0, "rho": 1.0}, "got both$"),
        ("joint_exp", {"epsilon": 1.0, "delta": 2.0}, "^delta must lie in"),
        ("joint_exp", {"epsilon": 1.0, "max_contributions": 0}, "^max_contributions must be at"),
        ("joint_exp", {"rho": -1.0}, "^rho must be positive"),
        ("ind_exp", {"epsilon": 1.0}, "^q must be given for method 'ind_exp', got None$"),
        ("ind_exp", {"epsilon": 1.0, "q": 2.0}, "^q must lie in"),
        ("ind_exp", {"rho": 1.0, "delta": 0.1, "q": 0.5}, "^delta must be 0 with rho"),
        ("ind_exp", {"epsilon": 1.0, "q": 0.5, "neighbors": "x"}, "^neighbors must be one of"),
        ("ind_exp", {"epsilon": 1.0, "q": 0.5, "max_contributions": 0}, "^max_contributions"),
    ],
)
def test_guarantee_rejects(method, parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        guarantee(method, **parameters)


# One call for each method, and what its guarantee takes.
CALLS = {
    "joint_exp": dict(epsilon=1.0),
    "ind_exp": dict(epsilon=1.0, q=0.5),
    "quantile_by": dict(epsilon=1.0),
    "unbounded_quantile": dict(epsilon=1.0, q=0.5),
    "approx_quantiles": dict(epsilon=1.0, q=0.5),
    "two_stage": dict(epsilon=1.0, q=0.5),
    "agg_tree": dict(epsilon=1.0, height=2, branching=4),
    "cdf": dict(epsilon=1.0, bins=4),
    "csmooth": dict(rho=1.0),
    "count": dict(epsilon=1.0),
    "select_keys": dict(epsilon=1.0, delta=1e-6),
    "sum": dict(epsilon=1.0),
    "mean": dict(epsilon=1.0),
    "var": dict(epsilon=1.0),
    "std": dict(epsilon=1.0),
    "histogram": dict(epsilon=1.0),
    "count_by": dict(epsilon=1.0),
    "sum_by": dict(epsilon=1.0),
    "mean_by": dict(epsilon=1.0),
    "var_by": dict(epsilon=1.0),
    "std_by": dict(epsilon=1.0),
}


@pytest.mark.parametrize(
    ("method", "wrong", "message"),
    [
        *((name, dict(max_contributions=0), "^max_contributions must be at") for name in CALLS),
        *((name, dict(neighbors="x"), "^neighbors must be one of") for name in CALLS),
        *((name, dict(delta=1.0), "^delta must lie in") for name in ("joint_exp", "agg_tree")),
        *(
            (name, dict(epsilon=0.0), "^epsilon must be positive")
            for name in CALLS
            if name != "csmooth"
        ),
        ("sum", dict(epsilon=0.0, q=None), "^epsilon must be positive"),
        ("count", dict(epsilon=math.inf), "^epsilon must be positive"),
        ("csmooth", dict(rho=0.0), "^rho must be positive"),
    ],
)
def test_guarantee_checks_what_it_does_not_need(method, wrong, message):
    assert guarantee(method, **CALLS[method]).neighbors == "swap"
    with pytest.raises(ValueError, match=message):
        guarantee(method, **CALLS[method] | wrong)


# What is left out of a call, wherever it may be.
DEFAULTS = dict(
    max_contributions=(1,),
    delta=(0.0,),
    neighbors=("swap", None),
    sensitivity=(1.0,),
    share=(None,),
    split=(2.0 / 3.0, None),
    monotonic=(False,),
    public_by=(False,),
    invert=(False,),
    lower=(0.0,),
    adaptive=(True,),
    convert=(False,),
)


def test_defaults_of_all_formulas():
    modules = [
        importlib.import_module(f"{privacy.__name__}.{module.name}")
        for module in pkgutil.iter_modules(privacy.__path__)
    ]
    functions = [
        function
        for owner in (*modules, Accountant, Guarantee, privacy.aggregates.Calibration)
        for function in vars(owner).values()
        if inspect.isfunction(function) and function.__module__.startswith(privacy.__name__)
    ]
    seen = set()
    for function in functions:
        for argument in inspect.signature(function).parameters.values():
            if argument.name in DEFAULTS and argument.default is not argument.empty:
                assert argument.default in DEFAULTS[argument.name], (function, argument)
                seen.add(argument.name)
    assert seen == DEFAULTS.keys()


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("name", MECHANISMS)
def test_an_accountant_is_charged_the_guarantee(name, neighbors):
    """Of every mechanism that there is."""
    public = PUBLIC[name] | dict(neighbors=neighbors)
    promise = guarantee(name, **public)
    composition = "zcdp" if promise.epsilon is None else "basic"
    accountant = Accountant(100.0, 0.5, neighbors, composition)
    options = NEEDED.get(name, {}) | public
    MECHANISMS[name].release([0.5, 1.0, 2.0], rng=1, accountant=accountant, **options)
    assert accountant.history == (promise,)
