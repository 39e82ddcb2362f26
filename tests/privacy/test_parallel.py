"""Parts of a budget for releases by group: by hand, and against what they add up to."""

from __future__ import annotations

import math
from itertools import product

import pytest

from dpq_fast.privacy.parallel import Part, part_of


def test_part_of_known_values():
    assert part_of(epsilon=1.0) == Part("add-remove", 0.5, 0.0, None)
    assert part_of(epsilon=1.0, public_by=True) == Part("swap", 1.0, 0.0, None)
    for public_by in (False, True):
        part = part_of(epsilon=1.0, neighbors="add-remove", public_by=public_by)
        assert part == Part("add-remove", 1.0, 0.0, None)
    assert part_of(rho=1.0) == Part("add-remove", None, 0.0, 0.25)
    assert part_of(rho=1.0, max_contributions=2).rho == pytest.approx(1.0 / 16.0, rel=1e-12)
    assert part_of(epsilon=1.0, delta=1e-6, neighbors="add-remove").delta == 1e-6
    assert part_of(epsilon=2.0, delta=1e-6).given() == {
        "epsilon": 1.0,
        "delta": pytest.approx(1e-6 / (1.0 + math.e)),
    }


@pytest.mark.parametrize("epsilon", [1e-3, 0.7, 3.0, 60.0])
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_parts_add_up_to_no_more_than_the_budget(neighbors, k, epsilon):
    delta = 1e-5
    for public_by in (False, True):
        form = dict(neighbors=neighbors, public_by=public_by, max_contributions=k)
        part = part_of(epsilon=epsilon, delta=delta, **form)
        each, failure = part.epsilon, part.delta
        if part.neighbors != neighbors:  # two changes, in one group or in two
            failure = max(2.0 * failure, (1.0 + math.exp(each)) * failure)
            each *= 2.0
        assert k * each <= epsilon and k * each == pytest.approx(epsilon)
        # a chain of k people who differ by one record each
        chain = math.fsum(failure * math.exp(i * each) for i in range(k))
        assert chain <= delta and chain == pytest.approx(delta, rel=1e-6)
        rho = part_of(rho=0.3, **form).rho
        steps = 2 if part.neighbors != neighbors else 1
        assert rho * (k * steps) ** 2 <= 0.3 * (1.0 + 1e-15)


def test_part_of_rejects():
    with pytest.raises(TypeError, match="public_by must be True or False"):
        part_of(epsilon=1.0, public_by=1)
    for budget, message in (
        (dict(epsilon=0.0), "epsilon must be positive"),
        (dict(rho=-1.0), "rho must be positive"),
        (dict(epsilon=1.0, delta=1.0), "delta must lie in"),
    ):
        with pytest.raises(ValueError, match=message):
            part_of(**budget)


def test_tiny_and_huge_budgets_have_parts():
    for epsilon, k in product((1e-290, 1.0, 1e300), (1, 7)):
        part = part_of(epsilon=epsilon, delta=0.5, max_contributions=k)
        assert part.epsilon > 0.0 and 0.0 <= part.delta < 0.5
