"""Groups: rates and guarantees by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from conftest import range_rho

from dpq_fast import privacy
from dpq_fast.privacy import guarantee


def test_quantile_by_rate_known_values():
    q = np.array([0.25, 0.5, 0.75])  # add-remove sensitivity 2 (1 - 1/4) = 3/2

    def rate(neighbors, **form):
        return privacy.quantile_by.calibrate(q, epsilon=3.0, neighbors=neighbors, **form).rate

    assert rate("add-remove") == 3.0 / (2 * 1.5)
    assert rate("add-remove", public_by=True) == 3.0 / (2 * 1.5)
    assert rate("swap") == 1.5 / (2 * 1.5)
    assert rate("swap", public_by=True) == 3.0 / (2 * 2)
    assert rate("swap", max_contributions=5) == pytest.approx(1.5 / (2 * 1.5 * 5), rel=1e-15)
    assert rate("swap", max_contributions=5, public_by=True) == 3.0 / (2 * 2 * 5)


def test_quantile_by_rate_by_depth_known_values():
    def rate(q, neighbors, **form):
        return privacy.quantile_by.calibrate(q, epsilon=3.0, neighbors=neighbors, **form).rate

    assert rate(0.75, "add-remove") == rate(0.25, "add-remove", public_by=True) == 3.0 / (2 * 0.75)
    assert rate(0.75, "swap") == 1.5 / (2 * 0.75)
    assert rate(0.75, "swap", public_by=True) == 3.0 / 2
    assert rate(0.75, "swap", max_contributions=4) == 1.5 / (2 * 0.75 * 4)
    # what a path loses, twice for each rank
    for q in (0.0, 0.3, 0.5):
        for neighbors in ("swap", "add-remove"):
            assert rate(q, neighbors) == 2.0 * rate(q, neighbors, method="joint_exp")
    # whatever the level is
    assert rate(None, "add-remove") == rate(1.0, "add-remove") == 3.0 / 2


def test_quantile_by_guarantee_known_values():
    for neighbors, public_by in product(("swap", "add-remove"), (False, True)):
        promise = guarantee(
            "quantile_by",
            epsilon=2.0,
            neighbors=neighbors,
            public_by=public_by,
            method="joint_exp",
        )
        assert (promise.epsilon, promise.delta, promise.bounded_range) == (2.0, 0.0, 2.0)
        assert (promise.rho, promise.neighbors) == (pytest.approx(range_rho(2.0)), neighbors)

    def rho(q, **options):
        return guarantee("quantile_by", q=q, epsilon=2.0, method="joint_exp", **options).rho

    # two groups of epsilon / 2 each, where that is the worst
    assert rho([0.25, 0.5, 0.75]) == rho([0.0, 0.5]) == pytest.approx(2.0 * range_rho(1.0))
    # sensitivity 1: a replacement within a group is the worst
    assert rho(0.5) == pytest.approx(range_rho(2.0))
    # sensitivity 1.25
    assert rho(0.375) == pytest.approx(range_rho(2.0 / 1.25))
    assert rho([0.25, 0.5], public_by=True) == pytest.approx(range_rho(2.0))
    assert guarantee("quantile_by", q=[0.25, 0.5], epsilon=2.0).bounded_range == 2.0
    with pytest.raises(TypeError, match="public_by must be True or False"):
        guarantee("quantile_by", epsilon=2.0, public_by=None)
    with pytest.raises(ValueError, match="epsilon must be positive"):
        guarantee("quantile_by", epsilon=0.0)


def test_quantile_by_guarantee_of_permute_and_flip_known_values():
    def pure(epsilon):
        return pytest.approx(epsilon * np.tanh(epsilon / 2.0), rel=1e-12)

    # without levels it holds for either mechanism
    for form in (dict(), dict(q=0.5, public_by=True), dict(q=0.5, neighbors="add-remove")):
        promise = guarantee("quantile_by", epsilon=2.0, **form)
        assert (promise.epsilon, promise.delta, promise.rho) == (2.0, 0.0, pure(2.0))
        assert (promise.bounded_range, promise.composition) == (None, "permute-and-flip + parallel")

    def rho(q, epsilon=2.0, **options):
        return guarantee("quantile_by", q=q, epsilon=epsilon, **options).rho

    # two groups of epsilon / 2 each, or a replacement within one, which at 1/2 costs all of it
    assert rho(0.0) == rho(1.0) == pytest.approx(2.0 * np.tanh(0.5), rel=1e-12)
    assert rho(0.5) == pure(2.0)
    assert rho(0.4) == pure(2.0 / 1.2)
    # of several records each bound is of squares, or of the whole call
    assert rho(0.0, max_contributions=3) == pytest.approx(1.0, rel=1e-12)
    assert rho(0.5, max_contributions=3) == pure(2.0)
    assert rho(0.0, epsilon=6.0, max_contributions=3) == pure(6.0)
    with pytest.raises(ValueError, match=r"^method must be"):
        guarantee("quantile_by", q=0.5, epsilon=1.0, method="auto")


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.5])
def test_quantile_by_rho_covers_any_share_of_the_records_of_a_person(q, epsilon):
    """Groups that two or three records change, by staying in them or moving between them."""
    stays = epsilon / (2.0 * max(q, 1.0 - q))
    for k in (1, 2, 3):
        changes = [
            [(0, stays)],
            [(1, stays)],
            *([(a, epsilon / 2.0), (b, epsilon / 2.0)] for a in range(4) for b in range(a)),
        ]
        promise = guarantee("quantile_by", q=q, epsilon=epsilon, max_contributions=k)
        for chain in product(changes, repeat=k):
            of_group = np.zeros(4)
            for group, cost in (change for record in chain for change in record):
                of_group[group] += cost / k
            assert sum(map(privacy.pure_rho, of_group)) <= promise.rho * (1.0 + 1e-12)


def test_quantile_by_of_other_methods_spends_parts_of_the_budget():
    """By `privacy.parallel`, and each is for the budget that its mechanism takes."""
    for neighbors, public_by in product(("swap", "add-remove"), (False, True)):
        form = dict(q=[0.2, 0.6], neighbors=neighbors, public_by=public_by, max_contributions=2)
        for method, budget in (
            ("approx_quantiles", dict(epsilon=0.7)),
            ("agg_tree", dict(rho=0.3)),
            ("csmooth", dict(rho=0.3)),
            ("unbounded_quantile", dict(epsilon=0.7)),
            ("ind_exp", dict(epsilon=0.7, delta=1e-6)),
            ("ind_exp", dict(rho=0.3)),
            (None, dict(rho=0.3)),
        ):
            spent = privacy.quantile_by.calibrate(method=method, **budget, **form)
            assert spent.method == (method or "approx_quantiles")
            person = {name: form[name] for name in ("neighbors", "public_by", "max_contributions")}
            assert spent.part == privacy.parallel.part_of(**budget, **person)
            promise = guarantee("quantile_by", method=method, **budget, **form)
            assert promise == spent.guarantee
            stated = (promise.epsilon, promise.delta, promise.rho)
            assert stated == tuple(
                budget.get(name, 0.0 if name == "delta" else None)
                for name in ("epsilon", "delta", "rho")
            )
            assert (promise.neighbors, promise.composition) == (neighbors, "parallel")


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (dict(epsilon=1.0, rho=1.0), "^exactly one of epsilon and rho must be given, got both"),
        (dict(epsilon=None), "^exactly one of epsilon and rho must be given, got neither"),
        (dict(rho=1.0, method="joint_exp"), "^epsilon must be given in place of rho for method"),
        (dict(epsilon=1.0, method="csmooth"), "^rho must be given in place of epsilon for method"),
        (dict(epsilon=1.0, delta=0.1, method="agg_tree"), "^delta must be 0 but for method"),
        (dict(epsilon=1.0, delta=0.1, method="joint_exp"), "^delta must be 0 but for method"),
        (dict(rho=1.0, delta=0.1), "^delta must be 0 but for method"),
        (dict(rho=1.0, method="csmooth", confidence=0.9), "^confidence must be left out for"),
        (
            dict(rho=1.0, method="ind_exp", expected_n=5),
            "^expected_n must be left out without",
        ),
        (dict(epsilon=1.0, method="quantile"), "^method must be one of"),
    ],
)
def test_quantile_by_refuses_budgets_that_a_method_does_not_take(form, message):
    with pytest.raises(ValueError, match=message):
        guarantee("quantile_by", q=0.5, **form)
