"""Releases about persons: what they are made of, what they charge and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import dpq_fast as dpq
from dpq_fast import privacy, reference
from dpq_fast.data.persons import WEIGHT, Persons

RNG = np.random.default_rng(5)
N_PERSONS = 300
HELD = np.minimum(RNG.geometric(0.2, N_PERSONS), 12)
IDS = np.repeat(np.arange(N_PERSONS), HELD)
X = np.round(RNG.normal(0.0, 2.0, N_PERSONS)[IDS] + RNG.normal(0.0, 1.0, IDS.size), 1)
BY = RNG.integers(0, 3, IDS.size)
WEIGHTS = Persons(IDS).weights(X)
PLACE = dict(bounds=(-10.0, 10.0), resolution=0.1)
LEVELS = [0.25, 0.5, 0.9]
# Where the number of persons is public a tree cuts at it, and that of counts is not.
CUT = dict(neighbors="add-remove")
# Releases without a dither: by weights they are those of as many records of one value.
SAME = {
    "quantile": (dpq.quantile, (X, 0.5), dict(method="ind_exp") | PLACE),
    "ind_exp": (dpq.ind_exp, (X, LEVELS), PLACE),
    "ind_exp, rho": (dpq.ind_exp, (X, LEVELS), dict(epsilon=None, rho=0.5) | PLACE),
    "ind_exp, interval": (dpq.ind_exp, (X, 0.5), dict(confidence=0.9) | PLACE),
    "approx_quantiles": (dpq.approx_quantiles, (X, LEVELS), dict(dither=False) | PLACE),
    "unbounded_quantile": (dpq.unbounded_quantile, (X, 0.7), dict(lower=None)),
    "agg_tree": (dpq.agg_tree, (X, LEVELS), dict(expected_n=N_PERSONS, **CUT) | PLACE),
    "agg_tree, rho": (
        dpq.agg_tree,
        (X, LEVELS),
        dict(epsilon=None, rho=0.5, noise="gaussian", expected_n=N_PERSONS, **CUT) | PLACE,
    ),
    "quantile_by": (dpq.quantile_by, (X, BY, 0.5), dict(groups=[0, 1, 2]) | PLACE),
    "quantile_by, selected": (
        dpq.quantile_by,
        (X, BY, 0.5),
        dict(groups=None, delta=1e-3, epsilon=3.0) | PLACE,
    ),
    "quantile_by, trees": (
        dpq.quantile_by,
        (X, BY, LEVELS),
        dict(groups=[0, 1, 2], method="agg_tree", expected_n=N_PERSONS) | PLACE,
    ),
    "mean_by": (dpq.mean_by, (X, BY), dict(groups=[0, 1, 2], bounds=(-10, 10))),
    "select_keys": (dpq.select_keys, (BY,), dict(delta=1e-3)),
}


def plain(answer):
    if hasattr(answer, "groups"):
        return answer.groups.tolist(), answer.values.tolist()
    return np.asarray(answer).tolist()


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("name", SAME)
def test_weights_are_counts_of_parts(name, neighbors):
    release, records, options = SAME[name]
    options = dict(epsilon=1.0, neighbors=neighbors, rng=3) | options
    by_parts = dict(counts=WEIGHTS, max_contributions=WEIGHT)
    if "expected_n" in options:
        by_parts["expected_n"] = N_PERSONS * WEIGHT
    found = release(*records, privacy_unit=IDS, **options)
    assert plain(found) == plain(release(*records, **options | by_parts))


@pytest.mark.parametrize("name", SAME)
def test_a_number_of_records_is_those_records(name):
    release, records, options = SAME[name]
    by_group = len(records) > 1 and records[1] is BY  # of equal records the first of these
    kept = Persons(IDS, 2).weights_beside(X, BY if by_group else None) > 0
    assert kept.sum() == np.minimum(HELD, 2).sum()
    options = dict(epsilon=1.0, rng=3) | options
    of_kept = options | dict(max_contributions=2)
    if name == "select_keys":  # which rows stay depends on values, of which there are none
        return
    if "expected_n" in options:
        of_kept["expected_n"] = N_PERSONS * 2
    found = release(*records, privacy_unit=IDS, contributions=2, **options)
    weights = kept.astype(np.int64)
    assert plain(found) == plain(release(*records, counts=weights, **of_kept))


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("name", ["quantile", "joint_exp", "quantile_by", "count", "sum", "mean"])
def test_a_call_by_ids_charges_what_it_says(name, neighbors):
    accountant = privacy.Accountant(1.0, 1e-6, neighbors=neighbors)
    options = dict(epsilon=0.5, privacy_unit=IDS, neighbors=neighbors, accountant=accountant)
    records = {"quantile": (X, 0.5), "joint_exp": (X, LEVELS), "quantile_by": (X, BY, LEVELS)}
    place = {"quantile_by": PLACE | dict(groups=[0, 1]), "count": {}}.get(name, PLACE)
    if name in ("sum", "mean"):
        place = dict(bounds=(-10, 10))
    getattr(dpq, name)(*records.get(name, (X,)), **place, **options)
    (entry,) = accountant.history
    assert entry.epsilon == pytest.approx(0.5) and entry.delta == 0.0
    assert entry.neighbors == neighbors


def test_persons_of_one_record_each_are_records():
    """The same law: no rank of theirs is told by parts."""
    values = np.unique(X)
    ids = np.arange(values.size)[::-1]
    for relation in ("swap", "add-remove"):
        options = dict(epsilon=1.0, neighbors=relation) | PLACE
        for q in (0.5, [0.2, 0.6]):
            one = dpq.ind_exp_law(values, q, privacy_unit=ids, **options)
            other = dpq.ind_exp_law(values, q, **options)
            for o in ([0.1, 1.0], [0.0, 0.0], [-3.0, 4.0]):
                o = o if np.ndim(q) else o[0]
                assert one.log_prob(o) == pytest.approx(other.log_prob(o), abs=1e-9)


def test_a_sample_of_persons_is_released_about_persons():
    sample = dpq.Sample.of(X, **PLACE, privacy_unit=IDS)
    for name in ("ind_exp", "joint_exp"):
        release = getattr(dpq, name)
        column = release(X, LEVELS, epsilon=1.0, privacy_unit=IDS, rng=1, **PLACE)
        assert release(sample, LEVELS, epsilon=1.0, rng=1).tolist() == column.tolist()
    for changed in (sample.undithered(), sample.even(), sample.on(None), sample.in_steps()):
        assert changed.persons is sample.persons
    with pytest.raises(
        ValueError, match=r"^max_contributions must be left out with a privacy_unit"
    ):
        dpq.quantile(sample, 0.5, epsilon=1.0, max_contributions=1)
    with pytest.raises(ValueError, match=r"^x must be a column, beside a privacy_unit, for mean"):
        dpq.mean(sample, epsilon=1.0, bounds=(-10, 10))
    with pytest.raises(ValueError, match=r"^privacy_unit belongs to Sample.of, and must be left"):
        dpq.quantile(sample, 0.5, epsilon=1.0, privacy_unit=IDS)


REFUSED = {
    "max_contributions": (
        dict(privacy_unit=IDS, max_contributions=3),
        r"^max_contributions must be left out with a privacy_unit, got 3$",
    ),
    "counts": (
        dict(privacy_unit=IDS, counts=np.ones(X.size)),
        r"^counts must be left out with a privacy_unit: each row is a record$",
    ),
    "no ids": (
        dict(contributions=3),
        r"^contributions must be left out without a privacy_unit, got 3$",
    ),
    "csmooth": (
        dict(privacy_unit=IDS, method="csmooth", epsilon=None, rho=0.5),
        r"^contributions must be a number of records with a privacy_unit for method 'csmooth', ",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_with_ids_is_refused_before_the_charge(case):
    options, message = REFUSED[case]
    accountant = privacy.Accountant(9.0, 1e-6)
    with pytest.raises(ValueError, match=message):
        dpq.quantile(X, 0.5, **dict(epsilon=1.0, accountant=accountant) | PLACE | options)
    assert accountant.history == ()


@pytest.mark.parametrize("name", ["mean", "mean_by"])
def test_means_of_several_records_of_each_have_no_population(name):
    more = dict(groups=[0, 1]) if name == "mean_by" else dict(contributions=2)
    columns = (X, BY) if name == "mean_by" else (X,)
    asked = dict(epsilon=1.0, bounds=(-10, 10), confidence=0.9, covers="population")
    with pytest.raises(ValueError, match=r"^covers must be 'sample' for a mean of several records"):
        getattr(dpq, name)(*columns, privacy_unit=IDS, **asked, **more)
    found = dpq.mean(X, privacy_unit=IDS, rng=3, **asked)  # of one record for each
    assert found.covers == "population" and found.low < 0.0 < found.high


@pytest.mark.parametrize("contributions", ["weights", 20])
@pytest.mark.parametrize("kind", ["quantile", "quantile_by", "tree"])
def test_intervals_are_about_persons_drawn_at_random(kind, contributions):
    """All records of a person are alike: as many as there are would say too much."""
    rng = np.random.Generator(np.random.PCG64(11))
    held = np.tile([1, 20], 60)
    ids = np.repeat(np.arange(held.size), held)
    missed = {True: 0, False: 0}
    for _ in range(60):
        x = rng.normal(0.0, 1.0, held.size)[ids]
        for told in missed:
            whose = dict(privacy_unit=ids, contributions=contributions) if told else {}
            options = dict(epsilon=400.0 if told else 20.0, bounds=(-8, 8), rng=rng, **whose)
            asked = dict(confidence=0.9, covers="population")
            if kind == "quantile":
                found = dpq.median(x, **asked, **options)
                low, high = found.low, found.high
            elif kind == "quantile_by":
                found = dpq.quantile_by(x, ids < 0, 0.5, groups=[False], **asked, **options)
                low, high = found.low[0], found.high[0]
            else:
                tree = dpq.AggTree.of(x, **options)
                low, high = tree.quantile_confint(0.5, 0.9, covers="population")
            missed[told] += not low <= 0.0 <= high
    assert missed[True] <= 12  # 1e-6 for a tenth of 60 is 18
    assert missed[False] >= 20


def test_distribution_functions_by_single_records_refuse_weights():
    for options in (
        dict(method="gaussian", delta=1e-6),
        dict(method="smooth_gaussian", delta=1e-6),
    ):
        with pytest.raises(ValueError, match=r"^contributions must be a number of records with a"):
            dpq.cdf(X, epsilon=1.0, privacy_unit=IDS, **options, **PLACE)


def test_ids_are_told_nowhere():
    ids = np.array([f"secret-{i}" for i in IDS])
    accountant = privacy.Accountant(9.0, 1e-6)
    options = dict(epsilon=1.0, privacy_unit=ids, accountant=accountant)
    told = [
        dpq.quantile(X, LEVELS, **options, **PLACE),
        dpq.quantile_by(X, BY, 0.5, groups=[0, 1], **options, **PLACE),
        dpq.Sample.of(X, **PLACE, privacy_unit=ids),
        dpq.ind_exp_law(X, 0.5, epsilon=1.0, privacy_unit=ids, **PLACE),
        dpq.cdf(X, **options, **PLACE),
        accountant.history,
    ]
    assert "secret" not in repr(told)
    with pytest.raises(ValueError, match="privacy_unit must have one id") as error:
        dpq.quantile(X[1:], 0.5, **options, **PLACE)
    assert "secret" not in str(error.value)


def shares_off(values, weights, outputs, q):
    """How far outputs are from levels, in shares of all weight."""
    order = np.argsort(values)
    below = np.append(0, np.cumsum(weights[order])) / weights.sum()
    low, high = (below[np.searchsorted(values[order], outputs, side)] for side in ("left", "right"))
    return np.maximum(np.maximum(low - q, q - high), 0.0)


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("q", [0.5, [0.1, 0.5, 0.9]])
def test_errors_are_those_of_so_many_persons(q, neighbors):
    rng = np.random.default_rng(1)
    persons = 2_000
    held = np.minimum(rng.geometric(1.0 / 6.7, persons), 50)
    ids = np.repeat(np.arange(persons), held)
    x = rng.normal(0.0, 2.0, persons)[ids] + rng.normal(0.0, 0.5, ids.size)
    weights = Persons(ids).weights(x)
    generator = np.random.Generator(np.random.PCG64(2))
    options = dict(epsilon=0.5, neighbors=neighbors, rng=generator, bounds=(-20, 20))
    off = [
        shares_off(x, weights, dpq.quantile(x, q, privacy_unit=ids, **options), q).mean()
        for _ in range(60)
    ]
    # 3 levels of 2,000 records, in the same way
    alone = [
        shares_off(x[:persons], np.ones(persons), dpq.quantile(x[:persons], q, **options), q).mean()
        for _ in range(60)
    ]
    assert np.mean(off) <= 1.6 * np.mean(alone)


def test_who_holds_many_records_of_counts_is_expected_to():
    """Without ids: 2,000 persons, whose number nobody told, with parts of 10^6 each."""
    rng = np.random.default_rng(1)
    x = rng.normal(0.0, 2.0, 2_000)
    weights = np.full(x.size, 10**6)
    generator = np.random.Generator(np.random.PCG64(2))
    options = dict(epsilon=1.0, neighbors="add-remove", bounds=(-20, 20), rng=generator)
    q = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    off = [
        shares_off(
            x, weights, dpq.quantile(x, q, counts=weights, max_contributions=10**6, **options), q
        )
        for _ in range(20)
    ]
    assert np.mean(off) <= 0.01


def test_release_of_a_frame_by_labels():
    frame = pd.DataFrame({"x": X, "id": IDS}).sample(frac=1.0, random_state=1)
    options = dict(epsilon=1.0, rng=4) | PLACE
    expected = dpq.median(X, privacy_unit=IDS, **options)
    assert dpq.median(frame["x"], privacy_unit=frame["id"], **options) == expected
    assert dpq.median(frame["x"], privacy_unit=frame[["id"]], **options) == expected
    assert (
        dpq.median(frame["x"].to_numpy(), privacy_unit=frame["id"].to_numpy(), **options)
        == expected
    )


def test_fast_and_reference_draw_alike_by_counts_of_persons():
    x, ids = X[:20].tolist(), IDS[:20].tolist()
    counts, most = reference.persons.counts_of(x, ids, 2)
    options = dict(epsilon=1.0, neighbors="add-remove") | PLACE
    held = dict(privacy_unit=np.array(ids), contributions=2)
    fast = dpq.ind_exp_law(np.array(x), LEVELS, **held, **options)
    slow = reference.ind_exp_law(x, LEVELS, counts=counts, max_contributions=most, **options)
    for o in ([-1.0, 0.0, 2.0], [-0.5, 0.3, 1.0], [0.0, 0.0, 0.0]):
        assert fast.log_prob(o) == pytest.approx(slow.log_prob(o), abs=1e-6)


def test_totals_of_persons_are_clipped_as_such():
    """The clip is one of what persons come to, as large as it is."""
    ids, x = np.repeat(np.arange(50), 4), np.full(200, 10.0)
    exact = dict(epsilon=1e9, privacy_unit=ids)
    assert dpq.sum(x, bounds=(0, 40), **exact) == pytest.approx(2_000.0, abs=1e-3)
    assert dpq.sum(x, bounds=(0, 10), **exact) == pytest.approx(500.0, abs=1e-3)
    assert dpq.sum(x, bounds=(0, 10), contributions=2, **exact) == pytest.approx(1_000.0, abs=1e-3)
    assert dpq.mean(x, bounds=(0, 40), **exact) == pytest.approx(10.0, abs=1e-3)
    by = np.tile([0, 0, 0, 1], 50)
    sums = dpq.sum_by(x, by, groups=[0, 1], bounds=(0, 40), **exact)
    assert sums.values.tolist() == pytest.approx([1_500.0, 500.0], rel=1e-4)
    sums = dpq.sum_by(x, by, groups=[0, 1], bounds=(0, 20), **exact)
    assert sums.values.tolist() == pytest.approx([750.0, 250.0], rel=1e-4)
    numbers = dpq.count_by(x, by, groups=[0, 1, 2], **exact)
    assert numbers.values.tolist() == pytest.approx([37.5, 12.5, 0.0], abs=1e-3)
    assert math.isclose(dpq.count(x, contributions=3, **exact), 150.0)


# Under "swap" a person may have fewer parts than another: it is not public how many there are.
NONE_MISSING = {
    "AggTree": lambda x, **more: dpq.AggTree.of(x, height=2, branching=8, **PLACE, **more).total,
    "cdf": lambda x, **more: dpq.cdf(x, method="histogram", bins=20, **PLACE, **more).p,
    "mean_by": lambda x, **more: (
        dpq.mean_by(x, BY, groups=[0, 1], bounds=(-10, 10), public_by=True, **more).values
    ),
    "mean_by, private clip": lambda x, **more: (
        dpq.mean_by(x, BY, groups=[0, 1], lower=None, public_by=True, **more).values
    ),
    "sum_by": lambda x, **more: (
        dpq.sum_by(x, BY, groups=[0, 1], bounds=(2, 10), public_by=True, **more).values
    ),
    "mean, records": lambda x, **more: dpq.mean(
        x, bounds=(-10, 10), **more | dict(contributions=2)
    ),
    "sum, records": lambda x, **more: dpq.sum(x, bounds=(2, 10), **more | dict(contributions=2)),
}


@pytest.mark.parametrize("contributions", ["weights", 2])
@pytest.mark.parametrize("name", NONE_MISSING)
def test_that_no_value_is_missing_says_nothing_about_parts(name, contributions):
    options = dict(epsilon=1.0, rng=6, privacy_unit=IDS, contributions=contributions)
    stated = NONE_MISSING[name](X, nan_policy="raise", **options)
    assert np.array_equal(stated, NONE_MISSING[name](X, nan_policy="omit", **options))
    with pytest.raises(ValueError, match=r"^x must not contain NaN with nan_policy='raise'$"):
        NONE_MISSING[name](np.where(X == X[0], np.nan, X), nan_policy="raise", **options)


@pytest.mark.parametrize("name", ["count", "sum", "mean"])
def test_of_one_record_each_a_missing_one_is_told(name):
    place = {} if name == "count" else dict(bounds=(-10, 10))
    options = dict(epsilon=1.0, nan_policy="raise", privacy_unit=IDS) | place
    getattr(dpq, name)(X, **options)
    with pytest.raises(ValueError, match=r"^x must not contain NaN with nan_policy='raise'$"):
        getattr(dpq, name)(np.where(np.arange(X.size) == 3, np.nan, X), **options)


@pytest.mark.parametrize("held", [False, True], ids=["column", "sample"])
def test_trees_and_distribution_functions_count_persons(held):
    options = dict(epsilon=1e6, neighbors="add-remove")
    if held:
        x, place = dpq.Sample.of(X, **PLACE, privacy_unit=IDS), {}
    else:
        x, place = X, PLACE | dict(privacy_unit=IDS)
    below = WEIGHTS[X < 0.0].sum() / WEIGHT
    tree = dpq.AggTree.of(x, height=3, branching=8, **options, **place)
    assert tree.total == pytest.approx(N_PERSONS, abs=0.1)
    assert tree.count(-10.0, 0.0) == pytest.approx(below, abs=0.1)
    low, high = tree.count_confint(-10.0, 0.0)
    assert low <= below <= high
    curve = dpq.cdf(x, method="histogram", bins=201, **options, **place)
    assert curve.total == pytest.approx(N_PERSONS, abs=0.1)
    assert curve.count(-10.0, 0.0) == pytest.approx(below, abs=0.1)
    assert 0.0 < curve.accuracy(0.05) < 1.0
    rows = dpq.AggTree.of(
        X, **PLACE, height=3, branching=8, privacy_unit=IDS, contributions=2, **options
    )
    assert rows.total == pytest.approx(np.minimum(HELD, 2).sum(), abs=0.1) and rows.parts == 1


@pytest.mark.parametrize("groups", [[2, 0, 1], None])
def test_which_of_equal_records_stay_goes_by_their_groups(groups):
    """And not by the order of rows."""
    x, by, ids = np.zeros(300), RNG.integers(0, 3, 300), RNG.integers(0, 40, 300)
    place = RNG.permutation(300)
    options = dict(groups=groups, epsilon=3.0, privacy_unit=ids, contributions=2, rng=1)
    options |= {} if groups else dict(delta=0.01)
    found = dpq.count_by(x, by, **options)
    again = dpq.count_by(x[place], by[place], **options | dict(privacy_unit=ids[place]))
    assert plain(found) == plain(again)


def test_no_part_of_a_weight_is_taken_for_a_record():
    """A tree of a part counts records: its noise is for one, and not for the 2^20 parts of one."""
    weights = dpq.Weights(np.ones(X.size), max_weight=2.0)
    with pytest.raises(
        ValueError, match=r"^counts must be whole numbers for a tree of a part, got"
    ):
        dpq.PartialTree.of(X, **PLACE, counts=weights, height=2, branching=8)


def test_no_part_of_a_person_is_taken_for_a_record():
    """What holds parts is released about persons, or not at all."""
    sample = dpq.Sample.of(X, **PLACE, privacy_unit=IDS)
    for held in (sample, sample.records):
        with pytest.raises(ValueError, match=r"^x must be of records for a tree of a part, got a "):
            dpq.PartialTree.of(held, **({} if held is sample else PLACE), height=2, branching=8)
        for release in (dpq.count, dpq.sum, dpq.mean):
            with pytest.raises(
                ValueError, match=r"^x must be a column, beside a privacy_unit, for "
            ):
                release(held, epsilon=1.0)
    by_records = dpq.unbounded_quantile(sample.records, 0.5, epsilon=1.0, lower=None, rng=1)
    column = dpq.unbounded_quantile(X, 0.5, epsilon=1.0, lower=None, rng=1, privacy_unit=IDS)
    assert by_records == column
    of_two = dpq.Sample.of(X, **PLACE, privacy_unit=IDS, contributions=2)
    found = dpq.count(of_two, epsilon=1.0, rng=1)
    assert found == dpq.count(X, epsilon=1.0, rng=1, privacy_unit=IDS, contributions=2)
    for changed in (sample.undithered(), sample.even(), sample.in_steps()):
        assert changed.records.persons is sample.persons
