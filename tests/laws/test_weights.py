"""Survey weights: parts of the largest one, laws of small data sets and all their neighbors."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpq_fast as dpq
import enumeration
from dpq_fast import privacy
from dpq_fast.data.persons import WEIGHT
from dpq_fast.data.weights import Weights
from dpq_fast.reference.persons import parts_of_weights

VALUES = (0, 1, 2)
PLACE = dict(bounds=(0, 2), resolution=1)
EPSILON = 1.0
# A fraction, the largest, beyond it, below zero, missing.
HELD = (0.4, 1.5, 9.0, -2.0, math.nan)
RECORDS = list(product(VALUES, HELD))


@given(st.lists(st.floats(allow_subnormal=False), max_size=8), st.floats(1e-3, 1e9))
def test_weights_are_parts_as_in_the_reference(weights, largest):
    made = Weights(weights, max_weight=largest)
    values = np.zeros(len(weights))
    assert made.weights_beside(values).tolist() == parts_of_weights(weights, largest)
    assert made.weights_beside(np.full(len(weights), np.nan)).sum() == 0


@pytest.mark.parametrize(
    "column",
    [
        [1.5, 0.75, math.nan, 3.0],
        np.array([1.5, 0.75, math.nan, 3.0], dtype=np.float32),
        pd.Series([1.5, 0.75, None, 3.0]),
        pl.Series([1.5, 0.75, None, 3.0]),
    ],
)
def test_weights_of_every_library(column):
    made = Weights(column, max_weight=1.5)
    assert made.weights_beside(np.zeros(4)).tolist() == [WEIGHT, WEIGHT // 2, 0, WEIGHT]
    assert repr(made) == "Weights(max_weight=1.5)"


def law_of(data, relation, law=dpq.ind_exp_law, q=0.5, **options):
    values, weights = (np.array(part, dtype=np.float64) for part in zip(*data, strict=True))
    made = law(
        values,
        np.atleast_1d(q),
        epsilon=EPSILON,
        counts=Weights(weights, max_weight=1.5),
        neighbors=relation,
        **PLACE | options,
    )
    outputs = combinations_with_replacement(VALUES, np.size(q))
    return {o: made.log_prob(list(o)) for o in outputs}


def largest_loss(relation, **options):
    """Over data sets of one or two records and all that one record may become."""
    single = [(record,) for record in RECORDS]
    pairs = list(combinations_with_replacement(RECORDS, 2))
    laws = {data: law_of(data, relation, **options) for data in [*single, *pairs]}
    loss = 0.0
    for data in pairs:
        for kept in data:
            if relation == "add-remove":
                others = [(kept,)]
            else:
                others = [tuple(sorted((kept, other), key=RECORDS.index)) for other in RECORDS]
            for beside in others:
                one, two = laws[data], laws[beside]
                loss = max(loss, *(abs(one[o] - two[o]) for o in one))
    return loss


@pytest.mark.parametrize("relation", ["swap", "add-remove"])
@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(selection="exponential", q=[0.25, 0.5]),
        dict(law=dpq.joint_exp_law, q=[0.25, 0.5], dither=False),
    ],
    ids=["permute-and-flip", "exponential", "joint_exp"],
)
def test_a_record_of_any_weight_costs_no_more_than_epsilon(relation, options):
    loss = largest_loss(relation, **options)
    assert (0.9 if not options else 0.3) * EPSILON <= loss <= EPSILON * (1.0 + 1e-9)


def test_weights_that_are_not_cut_are_found(monkeypatch):
    def uncut(self, values, beside=None):
        share = np.nan_to_num(self._read() / self._largest)
        return np.floor(np.maximum(share, 0.0) * WEIGHT).astype(np.int64)

    monkeypatch.setattr(Weights, "weights_beside", uncut)
    assert largest_loss("add-remove") > 1.1 * EPSILON


def test_a_release_is_drawn_from_the_law_of_weights():
    values, weights = np.array([0.0, 1.0, 2.0]), np.array([0.3, 1.5, 0.9])
    spent = privacy.ind_exp.calibrate([0.5], epsilon=4.0)
    shares = np.floor(weights / 1.5 * WEIGHT) / WEIGHT
    below = np.concatenate(([0.0], shares.cumsum()))
    half = below[-1] / 2.0
    depths = [min(half - below[i], below[i + 1] - half) for i in range(3)]
    (law,) = [enumeration.permute_and_flip([spent.rates[0] * depth for depth in depths])]
    rng = np.random.Generator(np.random.PCG64(7))
    made = dict(counts=Weights(weights, max_weight=1.5), rng=rng, epsilon=4.0, **PLACE)
    drawn = [dpq.quantile(values, 0.5, method="ind_exp", **made) for _ in range(4_000)]
    for value, log_prob in zip(VALUES, law, strict=True):
        share = math.exp(log_prob)
        assert abs(np.mean(np.equal(drawn, value)) - share) < 5.0 * math.sqrt(share / 4_000)


RNG = np.random.default_rng(2)
X = RNG.normal(0.0, 2.0, 2_000).round(2)
BY = RNG.integers(0, 3, X.size)
HEAVY = np.where(X > 1.0, 4.0, 1.0)
RELEASES = {
    "quantile": (dpq.quantile, (X, 0.5), {}),
    "quantile, interval": (dpq.quantile, (X, 0.5), dict(confidence=0.9)),
    "joint_exp": (dpq.joint_exp, (X, [0.2, 0.5, 0.8]), {}),
    "approx_quantiles": (dpq.approx_quantiles, (X, [0.2, 0.5, 0.8]), {}),
    "two_stage": (dpq.two_stage, (X, 0.5), {}),
    "agg_tree": (dpq.agg_tree, (X, [0.2, 0.5, 0.8]), {}),
    "quantile_by": (dpq.quantile_by, (X, BY, 0.5), dict(groups=[0, 1, 2])),
    "select_keys": (dpq.select_keys, (BY,), dict(delta=1e-6)),
    "unbounded": (dpq.unbounded_quantile, (X, 0.5), dict(lower=None)),
}


@pytest.mark.parametrize("relation", ["swap", "add-remove"])
@pytest.mark.parametrize("name", RELEASES)
def test_every_release_takes_weights_and_hits_their_quantile(name, relation):
    release, columns, options = RELEASES[name]
    accountant = privacy.Accountant(5.0, 1e-6, neighbors=relation)
    place = {} if name in ("select_keys", "unbounded") else dict(bounds=(-10, 10), resolution=0.01)
    found = release(
        *columns,
        **dict(epsilon=3.0, counts=Weights(HEAVY, max_weight=4.0), neighbors=relation)
        | place
        | options,
        accountant=accountant,
        rng=5,
    )
    (charged,) = accountant.history
    assert charged.epsilon == pytest.approx(3.0)
    if name == "select_keys":
        assert found.tolist() == [0, 1, 2]
        return
    q = np.atleast_1d(columns[-1])
    order = np.argsort(X)
    mass = np.cumsum(HEAVY[order])
    values = (
        found.values if hasattr(found, "values") else np.atleast_1d(getattr(found, "value", found))
    )
    for value in np.reshape(values, (-1, q.size)):
        reached = mass[np.searchsorted(X[order], value, side="right") - 1] / mass[-1]
        assert np.abs(reached - q).max() < 0.05


REFUSED = {
    "sum": (lambda w: dpq.sum(X, counts=w, epsilon=1.0, bounds=(0, 1)), "counts must be whole"),
    "mean": (lambda w: dpq.mean(X, counts=w, epsilon=1.0, bounds=(0, 1)), "counts must be whole"),
    "count": (lambda w: dpq.count(X, counts=w, epsilon=1.0), "counts must be whole numbers for"),
    "sum_by": (
        lambda w: dpq.sum_by(X, BY, groups=[0], counts=w, epsilon=1.0, bounds=(0, 1)),
        r"counts must be whole .* a sum by weights is that of x \* weights",
    ),
    "csmooth": (
        lambda w: dpq.csmooth(X, 0.5, counts=w, rho=1.0, bounds=(0, 1)),
        r"counts must be whole numbers for method 'csmooth', .* got Weights\(max_weight=4.0\)",
    ),
    "max_contributions": (
        lambda w: dpq.median(X, counts=w, max_contributions=2, epsilon=1.0, bounds=(0, 1)),
        "max_contributions must be left out with Weights, got 2",
    ),
    "ids": (
        lambda w: dpq.median(X, counts=w, privacy_unit=BY, epsilon=1.0, bounds=(0, 1)),
        "counts must be left out with a privacy_unit",
    ),
    "a sample": (
        lambda w: dpq.sum(dpq.Sample.of(X, (0, 1), counts=w), epsilon=1.0),
        "x must be a column, beside Weights, for sum, got a Sample of persons",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_weights_are_not_for_is_refused(case):
    call, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        call(Weights(HEAVY, max_weight=4.0))


def test_weights_are_checked():
    with pytest.raises(TypeError, match=r"^weights must be a one-dimensional array or sequence"):
        Weights("heavy", max_weight=1.0)
    with pytest.raises(ValueError, match=r"^weights must be one-dimensional, got 2 dimensions"):
        Weights(np.ones((2, 2)), max_weight=1.0)
    for largest in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"^max_weight must be positive and finite"):
            Weights([1.0], max_weight=largest)
    with pytest.raises(TypeError, match=r"^Weights\(\) needs max_weight$"):
        Weights([1.0])
    with pytest.raises(TypeError, match=r"^weights must hold real numbers, got"):
        Weights(["a"], max_weight=1.0).weights_beside(np.zeros(1))
    with pytest.raises(ValueError, match=r"^counts must have one weight for each value of x$"):
        dpq.median([1.0, 2.0], counts=Weights([1.0], max_weight=1.0), epsilon=1.0, bounds=(0, 3))
    with pytest.raises(TypeError, match=r"use 'counts'.*Weights"):
        dpq.median([1.0], weights=[1.0], epsilon=1.0, bounds=(0, 3))


def test_weights_go_by_the_labels_of_rows():
    x = pd.Series(X)
    weights = pd.Series(HEAVY)
    shuffled = weights.sample(frac=1.0, random_state=1)
    options = dict(epsilon=1.0, bounds=(-10, 10), rng=3)
    found = [
        dpq.median(x, counts=Weights(each, max_weight=4.0), **options)
        for each in (weights, shuffled)
    ]
    assert found[0] == found[1]
