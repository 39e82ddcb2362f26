"""Audits find what is promised to hold, and convict every mutant."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement
from pathlib import Path

import audit_table
import numpy as np
import pytest
from audit_table import CASES, honest, mutated

import dpq_fast as dpq
import enumeration
from dpq_fast import audit, privacy
from dpq_fast.audit import ExactAudit

AUDITS = Path(__file__).resolve().parents[2] / "docs" / "audits.md"
LATTICE = dict(bounds=(0, 2), resolution=1, dither=False)


def named(index: int) -> object:
    """Parameters of a test."""
    case = CASES[index]
    name = "-".join(filter(None, (case.mechanism, case.neighbors, case.setting)))
    return pytest.param(index, id=name)


@pytest.mark.slow
@pytest.mark.parametrize("index", [named(i) for i in range(len(CASES))])
def test_mechanism_keeps_its_promise_and_mutants_do_not(index):
    """One test for a case, whose audits are made once.

    Run ``python tests/audit_table.py --write docs/audits.md`` after a change.
    """
    found = honest(index)
    assert found.holds
    if isinstance(found, ExactAudit):
        assert found.covered == pytest.approx(1.0, abs=1e-9)
        # the audit sees a good part of what is spent, or it could not find a fault; the bound for
        # noise on smooth sensitivity adds up a shift and a scale, and is far from tight
        promise, seen = found.guarantee, CASES[index].part_seen
        if promise.epsilon is None:
            assert found.rho >= seen * promise.rho
        else:
            assert found.epsilon >= seen * promise.epsilon
    escaped = [name for name in CASES[index].mutants if mutated(index, name).holds]
    assert escaped == []
    assert audit_table.rows(AUDITS.read_text())[index] == audit_table.row(index)


def test_tables_have_no_other_rows_and_each_its_heading():
    document = AUDITS.read_text()
    assert audit_table.written(document, audit_table.rows(document)) == document


def test_every_public_mechanism_is_audited():
    mechanisms = {case.mechanism for case in CASES}
    others = {"Sample", "audit", "metrics", "noise", "plots", "privacy", "reference"}
    others |= {"AggTree", "PartialTree", "CDF"}  # what `agg_tree` and `cdf` are made of
    others |= {"Accountant", "BudgetExceeded", "Guarantee"}  # what is spent
    others |= {"median", "percentile"}  # `quantile` by other names
    made = ("min", "max", "iqr", "box")  # of quantiles
    others |= {*made, *(f"{name}_by" for name in made)}
    others |= {"var_by", "std_by", "histogram", "value_counts"}  # of variances and of `count_by`
    others |= {"describe", "together"}  # several of them
    others |= {"Box", "Estimate", "Plan", "plan", "plan_mean", "plan_sum", "Table"}  # no releases
    others |= {"GroupBoxes", "GroupQuantiles", "GroupValues", "Weights"}  # nor these
    public = {name for name in dpq.__all__ if not name.endswith("_law")}
    assert mechanisms == public - others
    for name in mechanisms:
        assert {c.neighbors for c in CASES if c.mechanism == name} == {"swap", "add-remove"}


# What `exact` looks at


def two_answers(column: np.ndarray) -> dict[str, float]:
    """The share of "yes" depends on how many records are 1."""
    yes = (1 + np.sum(column == 1)) / 8.0
    return {"yes": math.log(yes), "no": math.log(1.0 - yes)}


def test_exact_known_values():
    promise = privacy.Guarantee(math.log(2.0))
    found = audit.exact(two_answers, [1.0], domain=[0, 1], guarantee=promise)
    # [1] and [0], or the like of it, [NaN]; P(yes) 2/8 and 1/8
    assert (found.pairs, found.covered) == (2, pytest.approx(1.0))
    assert found.epsilon == pytest.approx(math.log(2.0))
    assert found.witness == ((1.0,), (0,), "yes")
    assert found.bounded_range == pytest.approx(math.log(2.0) + math.log(7.0 / 6.0))
    kl_like = math.log(0.25**2 / 0.125 + 0.75**2 / 0.875) / 2.0  # D_2 / 2
    assert kl_like < found.rho < found.epsilon
    assert found.delta == pytest.approx(0.0, abs=1e-15)
    assert found.holds
    weaker = privacy.Guarantee(0.5, 1e-9)
    found = audit.exact(two_answers, [1.0], domain=[0, 1], guarantee=weaker)
    assert found.delta == pytest.approx(0.25 - math.exp(0.5) * 0.125)
    assert not found.holds


@pytest.mark.parametrize(
    ("neighbors", "dtype", "options", "pairs"),
    [
        # multisets of up to 2 records of {0, 1}: 1 + 2 + 3, each pair once
        ("add-remove", int, {"nan_policy": "raise"}, 2 + 4),
        ("swap", int, {"nan_policy": "raise"}, 1 + 2),
        ("swap", float, {"nan_policy": "raise"}, 1 + 2),
        # of {0, 1, missing}: 1 + 3 + 6; no type says that none is missing
        ("add-remove", float, {}, 3 + 9),
        ("swap", float, {}, 3 + 9),
        ("add-remove", int, {}, 3 + 9),
        ("swap", int, {}, 3 + 9),
        ("swap", bool, {}, 3 + 9),
        ("swap", int, {"nan_policy": "raise", "max_contributions": 2}, 1 + 3),
    ],
)
def test_exact_goes_through_every_pair_of_neighbors_once(neighbors, dtype, options, pairs):
    found = audit.exact(
        "count", 2, domain=[0, 1], neighbors=neighbors, dtype=dtype, epsilon=1.0, **options
    )
    assert found.pairs == pairs


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
def test_exact_hands_over_the_type_that_a_reader_would(dtype):
    seen = {}

    def law(column):
        seen[tuple(np.isnan(column))] = column.dtype
        return {0: 0.0}

    audit.exact(law, [0, 1], domain=[0, 1], dtype=dtype)
    with_missing = np.float32 if dtype is np.float32 else np.float64
    assert seen == {(False, False): dtype, (False, True): with_missing}


def mixture_of(points: int, **options: object) -> Callable[[np.ndarray], dict[tuple, float]]:
    """The law of `joint_exp` with one bit of dither, summed over all dithers one by one."""
    fine = dict(bounds=(0, points - 0.5), resolution=0.5, dither=False)
    values = [k / 2.0 for k in range(2 * points)]

    pairs = list(combinations_with_replacement(values, 2))
    labels = [tuple(map(math.floor, pair)) for pair in pairs]

    @cache
    def given(dithered: tuple[float, ...]) -> np.ndarray:
        law = dpq.joint_exp_law(np.array(dithered), nan_policy="raise", **fine, **options)
        return np.exp([law.log_prob(pair) for pair in pairs])

    def mixed(column: np.ndarray, nan_policy: str) -> dict[tuple, float]:
        assert nan_policy == "raise"
        records = sorted(column.astype(int).tolist())
        both = [np.sort(fine) / 2.0 for fine in enumeration.dithers(records, 1)]
        shares: dict[tuple, float] = {}
        of_pairs = sum(given(tuple(dithered.tolist())) for dithered in both)
        for label, share in zip(labels, of_pairs / 2.0, strict=True):
            shares[label] = shares.get(label, 0.0) + share
        return {label: math.log(share) for label, share in shares.items()}

    return mixed


@pytest.mark.parametrize(
    ("records", "q", "epsilon", "points", "mixture"),
    [
        ((0, 0, 1, 2, 2), [0.2, 0.8], 4.0, 4, 4.262),
        ((0, 1, 1, 1, 2, 2, 2), [0.35, 1.0], 6.0, 5, 6.682),
    ],
)
def test_exact_compares_the_range_given_the_dither(records, q, epsilon, points, mixture):
    """That of the mixture over the dithers is more than is claimed; epsilon and rho are not."""
    levels = dict(q=q, epsilon=epsilon)
    options = dict(domain=range(points), nan_policy="raise")
    lattice = dict(bounds=(0, points - 1), resolution=1)
    found = audit.exact("joint_exp", records, **levels, **options, **lattice)
    assert found.holds
    assert 0.99 * epsilon < found.bounded_range <= epsilon + 1e-9
    mixed = mixture_of(points, **levels)
    whole = audit.exact(mixed, records, guarantee=found.guarantee, **options)
    assert whole.bounded_range == pytest.approx(mixture, abs=5e-4)
    assert (found.epsilon, found.rho, found.delta) == pytest.approx(
        (whole.epsilon, whole.rho, whole.delta), rel=1e-9, abs=1e-12
    )
    narrower = replace(found.guarantee, bounded_range=found.bounded_range - 1e-6)
    assert not audit.exact(
        "joint_exp", records, guarantee=narrower, **levels, **options, **lattice
    ).holds


def test_exact_of_one_data_set_looks_at_its_neighbors():
    options = dict(domain=[0.0, 1.0, 2.0], epsilon=1.0, neighbors="add-remove")
    assert audit.exact("count", [0.0, 0.0], **options).pairs == 4 + 1
    assert audit.exact("count", [], **options).pairs == 4


@pytest.mark.parametrize("key", ["a", "b"])
def test_exact_keeps_a_public_key(key):
    found = audit.exact(
        "quantile_by",
        [(0, key), (0, key)],
        q=0.9,
        groups=["a", "b"],
        epsilon=1.0,
        domain=[(0, "a"), (0, "b")],
        public_by=True,
        **LATTICE,
    )
    assert found.pairs == 1  # the key stays: only a missing value is another record of it
    assert {record[1] for record in found.witness.x} == {key}


def test_exact_of_some_outputs_is_a_lower_bound():
    options = dict(x=3, domain=range(3), q=[0.2, 0.7], epsilon=2.0, **LATTICE)
    whole = audit.exact("joint_exp", **options)
    part = audit.exact("joint_exp", outputs=[(0, 1), np.array([1.0, 2.0])], **options)
    assert part.covered < 0.9 < whole.covered
    assert 0.0 < part.epsilon <= whole.epsilon
    assert part.witness.output in {(0, 1), (1.0, 2.0)}
    dithered = audit.exact("joint_exp", outputs=[(0.0, 1.0)], **options | {"dither": True, "x": 2})
    assert dithered.holds and dithered.covered < 0.9


def test_exact_sums_over_no_dither_where_there_is_none():
    options = dict(x=3, domain=range(3), q=[0.2, 0.7], epsilon=2.0, bounds=(0, 2), resolution=1)
    found = audit.exact("ind_exp", **options)
    assert found.holds and found == audit.exact("ind_exp", dither=False, **options)
    with pytest.raises(ValueError, match="dither must be left out for ind_exp, got True"):
        audit.exact("ind_exp", dither=True, **options)


def test_exact_of_densities():
    found = audit.exact(
        "ind_exp",
        [0.2, 0.6],
        domain=[0.2, 0.6, 0.9],
        q=0.5,
        epsilon=1.0,
        bounds=(0, 1),
        resolution=0,
        outputs=[0.1, 0.4, 0.7, 0.95],
    )
    assert found.holds and found.epsilon > 0.1


def test_exact_sees_an_output_that_is_possible_on_one_side_only():
    def law(column):
        return {column.size: 0.0}

    found = audit.exact(law, 1, domain=[0], neighbors="add-remove")
    assert found.epsilon == found.rho == math.inf
    assert found.witness.output in (0, 1)
    with pytest.raises(ValueError, match="guarantee must be given for a mechanism of your own"):
        _ = found.holds


@pytest.mark.parametrize(
    ("mechanism", "options", "message"),
    [
        ("csmooth", {}, "mechanism must be one of"),
        ("joint_exp", {"neighbors": "both"}, "neighbors must be one of"),
        ("joint_exp", {"resolution": None}, "outputs must be given where there are more than"),
        ("joint_exp", {"resolution": 0, "dither": None}, "outputs must be given with resolution=0"),
        ("count", {"outputs": [1]}, "outputs must be left out for 'count'"),
        ("joint_exp", {"x": -1}, "x must be at least 0"),
    ],
)
def test_exact_says_what_it_takes(mechanism, options, message):
    arguments = dict(x=1, domain=[0, 1], epsilon=1.0)
    if mechanism != "count":
        arguments |= dict(q=0.5, **LATTICE)
    with pytest.raises(ValueError, match=message):
        audit.exact(mechanism, **arguments | options)


def test_exact_says_what_its_mechanisms_need():
    with pytest.raises(ValueError, match="outputs must be given for laws that are no mappings"):
        audit.exact(dpq.joint_exp_law, 1, domain=[0], q=0.5, epsilon=1.0, **LATTICE)
    sums = dict(x=2, domain=[0, 1], epsilon=1.0, lower=0, upper=1)
    with pytest.raises(ValueError, match="resolution must be coarser"):
        audit.exact("sum", q=None, **sums)
    with pytest.raises(ValueError, match="method must be 'unbounded' for an exact audit"):
        audit.exact("sum", method="joint_exp", resolution=1, **sums)
    with pytest.raises(ValueError, match="outputs must be given with uniform=True"):
        audit.exact("unbounded_quantile", 1, domain=[0], q=0.5, epsilon=1.0, uniform=True)
    rows = dict(x=1, domain=[(0, 0)], q=0.5, epsilon=1.0, groups=[0])
    with pytest.raises(ValueError, match="dither must be False for quantile_by"):
        audit.exact("quantile_by", **rows, **LATTICE | {"dither": True})


# What `estimate` counts


def test_estimate_of_given_events_bounds_the_probabilities():
    def coin(column, rng):
        return rng.random() < (0.75 if column.size else 0.25)

    events = [lambda output: output, lambda output: not output]
    found = audit.estimate(coin, [1.0], [], events=events, trials=5_000, rng=0)
    assert found.event in ("events[0]", "events[1]")
    assert 0.95 < found.epsilon < math.log(3.0)
    assert 3_500 < found.seen[0] < 4_000 and found.trials == 5_000
    at_delta = audit.estimate(coin, [1.0], [], events=events, trials=5_000, delta=0.5, rng=0)
    assert at_delta.epsilon == 0.0
    assert audit.estimate(coin, [1.0], [], trials=5_000, rng=0).epsilon > 0.9
    with pytest.raises(ValueError, match="events must hold at least one event"):
        audit.estimate(coin, [1.0], [], events=[])


def test_estimate_is_rarely_wrong():
    """At 90%, at most one in ten bounds may exceed the true epsilon, here ln 2."""

    def coin(column, rng):
        return rng.random() < (0.5 if column.size else 0.25)

    rng = np.random.default_rng(3)
    wrong = sum(
        audit.estimate(coin, [1.0], [], trials=100, confidence=0.9, rng=rng).epsilon > math.log(2.0)
        for _ in range(200)
    )
    assert wrong <= 45  # Binomial(200, 0.1): beyond 45 with probability below 1e-6


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ((None, 3), "output"),
        (((1, 2), (1,)), "output"),  # of different lengths
        ((0.5, 0.75), "output"),
    ],
)
def test_estimate_takes_outputs_of_any_kind(answers, words):
    found = audit.estimate(
        lambda column, rng: answers[column.size], [], [1.0], trials=200, confidence=0.999, rng=0
    )
    assert found.epsilon > 2.0
    assert words in found.event


def test_estimate_sees_the_last_digits():
    """All outputs differ, and lie everywhere: only on one side are they multiples of 2^-20."""

    def release(column, rng):
        drawn = rng.integers(-(2**20), 2**20) * 2.0**-20
        return drawn * 1000.0 + (column.size * 0.1)

    found = audit.estimate(release, [], [1.0], trials=2_000, rng=0)
    assert found.event.startswith("last binary digit") and found.epsilon > 4.0


def test_estimate_knows_what_is_claimed():
    options = dict(q=0.5, trials=50, rng=0, **LATTICE)
    pair = [0.0, 1.0], [0.0, 2.0]
    assert audit.estimate("joint_exp", *pair, epsilon=3.0, **options).claimed == 3.0
    found = audit.estimate("csmooth", *pair, rho=0.5, delta=1e-3, **options)
    assert found.claimed == privacy.zcdp_epsilon(0.5, 1e-3)
    assert audit.estimate("csmooth", *pair, rho=0.5, **options).claimed == math.inf
    found = audit.estimate("ind_exp", *pair, epsilon=0.2, delta=1e-3, **options)
    assert found.guarantee.delta == 1e-3 and found.claimed <= 0.2


@pytest.mark.parametrize(
    ("x", "other", "options"),
    [
        ([0.0], [1.0, 1.0], {}),
        ([0.0, 0.0], [1.0, 1.0], {}),
        ([0.0], [1.0], {"neighbors": "add-remove"}),
        ([0.0], [0.0, 1.0, 1.0], {"neighbors": "add-remove"}),
    ],
)
def test_estimate_refuses_what_are_no_neighbors(x, other, options):
    with pytest.raises(ValueError, match="x and x_neighbor must be neighbors"):
        audit.estimate("count", x, other, epsilon=1.0, **options)
    wider = options | {"max_contributions": 2}
    if len(x) == len(other) or "neighbors" in options:
        audit.estimate("count", x, other, epsilon=1.0, trials=2, rng=0, **wider)


def test_estimate_refuses_a_changed_public_key():
    arguments = dict(q=0.5, groups=[0, 1], epsilon=1.0, public_by=True, **LATTICE)
    with pytest.raises(ValueError, match="x and x_neighbor must be neighbors"):
        audit.estimate("quantile_by", [(0.0, 0)], [(0.0, 1)], **arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 1}, "trials must be at least 2"),
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1"),
        ({"delta": 1.0}, r"delta must lie in \[0, 1\)"),
    ],
)
def test_estimate_rejects(options, message):
    with pytest.raises(ValueError, match=message):
        audit.estimate("count", [], [], epsilon=1.0, **options)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(guarantee=1.0), TypeError, "guarantee must be a Guarantee or None, got float"),
        (dict(tolerance=-1.0), ValueError, "tolerance must be finite and not negative"),
        (dict(x=["a"]), TypeError, "a record must be a real number, got str"),
        (dict(x=[(1.0,)]), ValueError, "a record must be a number, or a pair .* got 1 things"),
        (dict(x=2**53), ValueError, "x, domain and max_contributions must make at most 65536"),
        (
            dict(x=[0.0], neighbors="add-remove", max_contributions=2**53),
            ValueError,
            "x, domain and max_contributions must make at most 65536 data sets",
        ),
    ],
)
def test_exact_refuses_what_it_cannot_go_through(arguments, error, message):
    usual = dict(mechanism="count", x=1, domain=[0.0, 1.0], epsilon=1.0)
    with pytest.raises(error, match=f"^{message}"):
        audit.exact(**usual | arguments)


def test_a_person_of_more_records_than_there_are_is_all_of_them():
    usual = dict(mechanism="count", x=[0.0, 0.0], domain=[0.0, 1.0], epsilon=1.0)
    found = [audit.exact(max_contributions=k, **usual).pairs for k in (2, 2**53)]
    assert found[0] == found[1] == 5  # of {0, 1, NaN}, two records


def test_a_budget_near_the_end_of_float64_has_no_rho():
    found = audit.exact("count", 1, domain=[0.0], epsilon=1e307)
    assert found.rho == math.inf and math.isfinite(found.epsilon)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(trials=2**40), ValueError, "trials must be at most 67108864, got 1099511627776"),
        (dict(guarantee=1.0), TypeError, "guarantee must be a Guarantee or None, got float"),
        (dict(x=[None]), TypeError, "a record must be a real number, got NoneType"),
    ],
)
def test_estimate_refuses_what_it_cannot_run(arguments, error, message):
    usual = dict(mechanism="count", x=[0.0], x_neighbor=[1.0], trials=4, epsilon=1.0)
    with pytest.raises(error, match=f"^{message}"):
        audit.estimate(**usual | arguments)


def test_estimate_refuses_records_that_no_float_can_hold():
    with pytest.raises(ValueError, match="records must be numbers that float64 can hold"):
        audit.estimate("count", [10**400], [1.0], trials=4, epsilon=1.0)
