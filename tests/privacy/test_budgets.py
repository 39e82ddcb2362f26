"""Budgets: one of epsilon and rho, the least and the largest, whatever the records."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.privacy.budgets import resolve_epsilon


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: resolve_epsilon(None, None),
            "^exactly one of epsilon and rho .* got neither$",
        ),
        (lambda: resolve_epsilon(1.0, 1.0), "^exactly one of epsilon and rho .* got both$"),
        (lambda: resolve_epsilon(1.0, None, 0), "^m must be at least 1, got 0$"),
    ],
)
def test_resolve_epsilon_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("name", ["approx_quantiles", "unbounded_quantile", "sum", "mean"])
def test_budgets_that_would_overflow_are_refused(name):
    options = dict(epsilon=1e-310)
    if name in ("approx_quantiles", "unbounded_quantile"):
        options |= dict(q=[0.2, 0.5])
    if name == "approx_quantiles":
        options |= dict(bounds=(0, 9))
    with pytest.raises(ValueError, match="epsilon or rho must leave at least 1e-305"):
        getattr(dpq, name)([1.0, 2.0], **options)


TINY = [
    dict(epsilon=5e-324),
    dict(epsilon=1e-320, max_contributions=2**53),
    dict(epsilon=1e-290, max_contributions=2**53),
    dict(epsilon=1e-305),
]


MIN_RELEASES = {
    "quantile": lambda x, **budget: dpq.quantile(x, 0.9, bounds=(0, 1000), **budget),
    "joint_exp": lambda x, **budget: dpq.joint_exp(x, [0.2, 0.5], bounds=(0, 1000), **budget),
    "ind_exp": lambda x, **budget: dpq.ind_exp(x, [0.2, 0.5], bounds=(0, 1000), **budget),
    "quantile_by": lambda x, **budget: dpq.quantile_by(
        x, np.zeros(x.size, dtype=int), [0.2, 0.5], groups=[0], bounds=(0, 1000), **budget
    ),
    "cdf": lambda x, **budget: dpq.cdf(
        x, bounds=(0, 1000), method="smooth_gaussian", delta=1e-6, **budget
    ),
    "sum": lambda x, **budget: dpq.sum(x, upper=1000, method="joint_exp", **budget),
    "mean": lambda x, **budget: dpq.mean(x, upper=1000, method="ind_exp", **budget),
}


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("budget", TINY, ids=str)
@pytest.mark.parametrize("release", MIN_RELEASES.values(), ids=MIN_RELEASES.keys())
def test_rates_that_underflow_are_refused_for_any_number_of_records(release, budget, neighbors):
    messages = set()
    for n in (0, 1, 511, 512, 5000):
        with pytest.raises(ValueError, match="epsilon") as refused:
            release(np.arange(n) * 1.0, neighbors=neighbors, **budget)
        messages.add(str(refused.value))
    assert len(messages) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kernel", ["scan", "fft"])
@pytest.mark.parametrize("resolution", [None, 0, 1.0])
def test_the_least_rates_are_enough_for_any_number_of_records(resolution, kernel):
    options = dict(bounds=(0, 1000), resolution=resolution)
    for n in (0, 1, 511, 512, 5000):
        for x in (np.arange(n) * 1.0, np.zeros(n)):
            for q in ([0.5], [0.1, 0.2, 0.9]):
                law = dpq.joint_exp_law(x, q, epsilon=4.1e-305, kernel=kernel, **options)
                assert math.isfinite(law.log_prob(law.sample()))
                law = dpq.ind_exp_law(x, q, epsilon=8.1e-305, **options)
                assert math.isfinite(law.log_prob(law.sample()))


@pytest.mark.parametrize("name", ["max_contributions", "halts"])
def test_numbers_beyond_float64_are_refused(name):
    options = (
        {"epsilon": 1.0} if name == "max_contributions" else {"epsilon1": 1.0, "epsilon2": 1.0}
    )
    method = "joint_exp" if name == "max_contributions" else "sparse_vector"
    with pytest.raises(ValueError, match=f"{name} must be at most 2\\*\\*53, got 1000"):
        privacy.guarantee(method, **options, **{name: 10**400})


def test_a_range_that_overflows_is_refused():
    form = dict(epsilon2=1.0, monotonic=True)
    huge = privacy.guarantee("above_threshold", epsilon1=1.79e308, **form)
    assert huge.rho == huge.bounded_range == 1.79e308
    form["epsilon2"] = 1e308
    with pytest.raises(ValueError, match=r"^bounded_range must be finite"):
        privacy.guarantee("above_threshold", epsilon1=1.0, **form)


@pytest.mark.parametrize("name", ["joint_exp", "ind_exp", "approx_quantiles"])
def test_rates_are_at_most_two_to_the_16(name):
    of = getattr(privacy, name).calibrate
    rates = [of(q=0.5, epsilon=epsilon)[0] for epsilon in (2.0**16, 2.0**20, 1e300)]
    assert 2.0**13 < np.max(rates[0]) < 2.0**16
    assert np.max(rates[1]) == np.max(rates[2]) == 2.0**16


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("module", [dpq, dpq.reference], ids=["fast", "reference"])
@pytest.mark.parametrize(
    "x", [[], [math.nan], np.arange(40.0) - 20.0, [0.0] * 100], ids=["none", "nan", "40", "tied"]
)
def test_huge_budgets_release_the_best_whatever_the_records(x, module, neighbors):
    """No error, and nothing that would be next to impossible at an epsilon of 10^4."""
    form = dict(q=[0.3, 0.6], bounds=(-10, 10), resolution=0.5, dither=False, neighbors=neighbors)
    for name in ("joint_exp", "ind_exp", "approx_quantiles"):
        law = getattr(dpq, f"{name}_law")(x, epsilon=1e4, **form)
        for epsilon in (1e6, 1e16, 1e20, 1.79e308):
            out = getattr(module, name)(x, epsilon=epsilon, rng=1, **form)
            assert law.log_prob(out) > -100.0
    law = dpq.joint_exp_law(x, epsilon=1e4, **form)
    for epsilon in (1e6, 1.79e308):
        out = module.quantile_by(x, [0] * len(x), groups=[0], epsilon=epsilon, rng=1, **form)
        assert law.log_prob(out.values[0]) > -100.0
    form["q"] = 0.3
    law = dpq.ind_exp_law(x, epsilon=1e4, **form)
    for epsilon in (1e6, 1.79e308):
        out = module.quantile_by(x, [0] * len(x), groups=[0], epsilon=epsilon, rng=1, **form)
        assert law.log_prob(out.values[0]) > -100.0
