"""Our measurements in OpenDP, used as its documentation says: contexts, odometers, chains."""

from __future__ import annotations

import inspect
import itertools
import math
import pickle
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from fractions import Fraction
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from opendp.mod import GLOBAL_FEATURES, OdometerQueryable, OpenDPException
from scipy import stats

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast._prepared import Prepared, releases
from dpq_fast.compat import opendp as ours
from dpq_fast.privacy import BudgetExceeded

FEATURES = "contrib", "honest-but-curious"
X = np.random.default_rng(0).normal(40.0, 15.0, size=300)
BOUNDS = (0, 100)
QS = [0.25, 0.5, 0.9]
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
METRICS = {
    "swap": (dp.change_one_distance(), dp.hamming_distance()),
    "add-remove": (dp.symmetric_distance(), dp.insert_delete_distance()),
}
# What is asked for beyond the budget: arguments of the constructor, and those of our function.
CLIP = dict(q=None, lower=0, upper=100)
CALLS = {
    "quantile": (dict(q=QS, bounds=BOUNDS), {}),
    "cdf": (dict(bounds=BOUNDS, resolution=1), {}),
    "sum": (dict(bounds=BOUNDS), CLIP),
    "mean": (dict(bounds=BOUNDS), CLIP),
    "count": ({}, {}),
}
MAKE = {name: getattr(ours, f"make_{name}") for name in CALLS}
THEN = {name: getattr(ours, f"then_{name}") for name in CALLS}


@pytest.fixture(autouse=True)
def features() -> Iterator[None]:
    """Features as users enable them; ours enables none."""
    dp.enable_features(*FEATURES)
    ours.register()
    yield
    dp.disable_features(*FEATURES)


def space(neighbors: str = "swap") -> tuple:
    return ours.column_domain(), METRICS[neighbors][0]


def made(name: str, budget: float = 1.0, neighbors: str = "swap", **more):
    return MAKE[name](*space(neighbors), budget=budget, **CALLS[name][0] | more)


def context(loss, neighbors: str = "swap", d_in: int = 1, data=X, **more):
    unit = dict(changes=d_in) if neighbors == "swap" else dict(contributions=d_in)
    return dp.Context.compositor(
        data=data,
        domain=ours.column_domain(),
        privacy_unit=dp.unit_of(**unit),
        privacy_loss=loss,
        **more,
    )


def asked(query, name: str, **more):
    """A query whose budget is left out: OpenDP then wants the levels by their place."""
    given = CALLS[name][0] | more
    levels = (given.pop("q"),) if "q" in given else ()
    return getattr(query, f"dpq_{name}")(*levels, **given)


def value(answer) -> np.ndarray:
    """Numbers of any answer."""
    if isinstance(answer, dpq.CDF):
        return answer.cdf(np.arange(0, 101, 5))
    return np.asarray(answer)


def test_documented_example_runs():
    page = Path(__file__).parents[2] / "docs" / "integrations" / "peers.md"
    (example,) = re.findall(r"```python\n(import opendp.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert len(example.strip().splitlines()) <= 9
    lines = example.rstrip().splitlines()
    lines[-1] = f"out = {lines[-1]}"
    names = {"ages": np.random.default_rng(0).integers(17, 91, size=50_000)}
    exec("\n".join(lines), names)
    assert names["out"].shape == (3,)
    assert (np.diff(names["out"]) > 0).all()


# Answers


@pytest.mark.parametrize("neighbors", METRICS)
@pytest.mark.parametrize("name", CALLS)
def test_pure_answers_are_those_of_our_function(name, neighbors):
    given, own = CALLS[name]
    for metric in METRICS[neighbors]:
        measurement = MAKE[name](ours.column_domain(), metric, budget=0.5, **given, rng=3)
        assert measurement.output_measure == PURE
        options = {key: part for key, part in given.items() if not own or key != "bounds"} | own
        expected = getattr(dpq, name)(X, epsilon=0.5, neighbors=neighbors, rng=3, **options)
        np.testing.assert_array_equal(value(measurement(X)), value(expected))


@pytest.mark.parametrize("neighbors", METRICS)
@pytest.mark.parametrize("name", ["quantile", "cdf"])
def test_zcdp_answers_are_those_of_our_function(name, neighbors):
    given, _ = CALLS[name]
    measurement = made(name, 0.5, neighbors, output_measure=ZCDP, rng=3)
    assert measurement.output_measure == ZCDP
    expected = getattr(dpq, name)(X, rho=0.5, neighbors=neighbors, rng=3, **given)
    np.testing.assert_array_equal(value(measurement(X)), value(expected))


@pytest.mark.parametrize("clip", ["public", "private"])
@pytest.mark.parametrize("neighbors", METRICS)
@pytest.mark.parametrize("name", ["sum", "mean", "count"])
def test_a_rho_is_that_of_the_release(name, neighbors, clip, monkeypatch):
    spent = []
    if clip == "private" and name != "count":
        given, own = dict(bounds=None, share=0.4), dict(share=0.4)
    else:
        given, own = {}, CALLS[name][1]
    charge = privacy.Accountant.charge
    monkeypatch.setattr(
        privacy.Accountant,
        "charge",
        lambda self, guarantee: (spent.append(guarantee), charge(self, guarantee)),
    )
    measurement = made(name, 0.125, neighbors, output_measure=ZCDP, rng=3, **given)
    answer = measurement(X)
    guarantee = spent[-1]
    assert guarantee.rho == 0.125 and guarantee.epsilon is None
    assert guarantee.neighbors == neighbors
    release = partial(getattr(dpq, name), X, neighbors=neighbors, rng=3, **own)
    assert answer == release(rho=0.125)


@pytest.mark.parametrize("name", CALLS)
def test_then_is_make_in_a_chain(name):
    given = CALLS[name][0]
    chained = space() >> THEN[name](budget=0.5, rng=1, **given)
    np.testing.assert_array_equal(value(chained(X)), value(made(name, 0.5, rng=1)(X)))
    assert chained.map(2) == 1.0
    doubled = space() >> THEN["count"](0.5, rng=1) >> (lambda n: 2 * n)
    assert doubled(X) == 2 * made("count", 0.5, rng=1)(X)


@pytest.mark.parametrize("T, dtype", [(float, np.float64), ("i64", np.int64), ("u32", np.uint32)])
def test_vector_domains_are_taken_and_so_are_transformations(T, dtype):
    x = X.clip(0, None).astype(dtype)
    domain = dp.vector_domain(dp.atom_domain(T=T))
    for name, (given, _) in CALLS.items():
        vector = MAKE[name](domain, dp.symmetric_distance(), budget=1.0, rng=5, **given)
        array = made(name, 1.0, "add-remove", rng=5)
        np.testing.assert_array_equal(value(vector(x.tolist())), value(array(x)))


def test_measurements_follow_transformations_of_opendp():
    bounded = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    chain = bounded >> dp.t.then_clamp((30.0, 60.0)) >> ours.then_mean(50.0, bounds=(0, 100))
    assert chain(X.tolist()) == pytest.approx(X.clip(30, 60).mean(), abs=1.0)
    assert chain.map(2) == 100.0
    query = dp.Context.compositor(
        data=[str(x) for x in X.tolist()],
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        domain=dp.vector_domain(dp.atom_domain(T=str)),
    ).query()
    assert 0 <= query.cast_default(float).dpq_quantile(0.5, bounds=BOUNDS).release() <= 100


def test_missing_records_are_left_out():
    x = np.concatenate((X, np.full(500, np.nan)))
    assert made("count", 20.0)(x) == pytest.approx(X.size, abs=5)
    lists = dp.vector_domain(dp.atom_domain(T=float))
    count = ours.make_count(lists, dp.symmetric_distance(), 20.0)
    assert count(x.tolist()) == pytest.approx(X.size, abs=5)
    assert made("quantile", 20.0)(np.full(9, np.nan)).shape == (3,)
    assert made("quantile", 20.0)(np.empty(0, dtype=np.int64)).shape == (3,)


def test_the_array_itself_is_handed_over(monkeypatch):
    seen = []

    @releases()
    def count(x: Any, **options: Any) -> Prepared[Any]:
        spent = Prepared.of(dpq.count, x, **options).spent
        return Prepared(spent, lambda rng: seen.append(x))

    monkeypatch.setattr(ours, "_count", count)
    ours.make_count(*space(), 1.0)(X)
    assert seen[-1] is X


def test_another_domain_of_arrays_may_be_used():
    domain = dp.user_domain("arrays of mine", lambda x: isinstance(x, np.ndarray))
    assert ours.make_count(domain, dp.change_one_distance(), 20.0)(X) == pytest.approx(300, abs=5)


def test_members_of_the_domain_are_known_by_their_type():
    domain = ours.column_domain()
    assert domain == ours.column_domain()
    for member in (X, X.astype(np.float32), np.arange(3), np.empty(0), np.full(2, np.nan)):
        assert domain.member(member)
    for other in (X.tolist(), X.reshape(2, -1), X.astype(str), X.astype(object), X > 0, None, 3.0):
        assert not domain.member(other)


def test_draws_follow_the_law_of_our_function():
    x = np.array([1, 2, 2, 3, 5])
    options = dict(bounds=(0, 6), resolution=1, method="ind_exp")
    rng = np.random.default_rng(11)
    draw = ours.make_quantile(*space(), 0.5, 2.0, rng=rng, **options)
    drawn = np.bincount([int(draw(x)) for _ in range(500)], minlength=7)
    del options["method"]
    law = dpq.ind_exp_law(x, 0.5, epsilon=2.0, **options)
    expected = np.exp([law.log_prob(point) for point in range(7)])
    assert expected.sum() == pytest.approx(1.0)
    assert stats.chisquare(drawn, 500 * expected).pvalue > 1e-6


@pytest.mark.parametrize("name", CALLS)
def test_real_releases_draw_anew(name):
    measurement = made(name, 0.01)
    assert len({value(measurement(X)).tobytes() for _ in range(8)}) > 1


def test_estimates_come_with_their_interval():
    for measure in (PURE, ZCDP):
        given = dict(output_measure=measure, confidence=0.95)
        low, high = made("quantile", 1.0, **given)(X).low, made("mean", 1.0, **given)(X).high
        assert (low <= np.quantile(X, QS) + 5.0).all() and high > 30.0


@pytest.mark.parametrize("given", [{}, dict(confidence=0.9)])
@pytest.mark.parametrize("name", CALLS)
def test_answers_hold_nothing_but_what_was_released(name, given):
    """OpenDP attaches to an answer how it was called: that holds the data."""
    if name == "cdf" and given:
        given = dict(method="binary_tree", method_options=dict(bins=64))
    x = np.random.default_rng(1).normal(40, 15, size=50_000)
    for answer in (
        made(name, 1.0, **given)(x),
        asked(context(dp.loss_of(epsilon=1.0), data=x).query(epsilon=0.5), name, **given).release(),
    ):
        assert not hasattr(answer, "__opendp_dict__")
        assert "__opendp_dict__" not in getattr(answer, "__dict__", {})
        with pytest.raises(AttributeError):
            answer.__opendp_dict__ = {"arg": x}
        if name == "cdf":
            assert isinstance(answer, dpq.CDF)
        else:
            assert len(pickle.dumps(answer)) < 1_000


# Privacy maps


@pytest.mark.parametrize("d_in", [0, 1, 2, 3, 7, 1000, 2**32 - 1])
@pytest.mark.parametrize("budget", [0.1, 1 / 3, 1.0, 1e-300, 1e300, 7e-17])
@pytest.mark.parametrize("neighbors", METRICS)
def test_maps_are_linear_and_quadratic_and_rounded_up(neighbors, budget, d_in):
    for measure, factor in ((PURE, d_in), (ZCDP, d_in * d_in)):
        loss = made("count", budget, neighbors, output_measure=measure).map(d_in)
        exact = Fraction(budget) * factor
        if loss == math.inf:
            assert exact > sys.float_info.max
            continue
        assert Fraction(loss) >= exact
        assert loss == 0.0 or Fraction(math.nextafter(loss, 0.0)) < exact


@pytest.mark.parametrize("name", CALLS)
def test_every_constructor_has_its_budget_at_a_distance_of_one(name):
    for measure, neighbors in itertools.product((PURE, ZCDP), METRICS):
        measurement = made(name, 0.3, neighbors, output_measure=measure)
        assert measurement.map(1) == 0.3
        assert measurement.check(1, 0.3) and not measurement.check(1, 0.3 * (1 - 1e-12))
        assert measurement.input_metric == METRICS[neighbors][0]


@pytest.mark.parametrize(
    "d_in, error, message",
    [
        (1.5, TypeError, "inferred type is f64, expected u32"),
        ("1", TypeError, "inferred type is String, expected u32"),
        (-1, ValueError, "-1 is not representable by u32"),
    ],
)
def test_distances_of_a_wrong_type_are_refused(d_in, error, message):
    with pytest.raises(error, match=message):
        made("quantile").map(d_in)


LATTICE = dict(bounds=(0, 4), resolution=1)
LAWS = {
    "ind_exp": partial(dpq.ind_exp_law, **LATTICE),
    "joint_exp": partial(dpq.joint_exp_law, **LATTICE, dither=False),
    "approx_quantiles": partial(dpq.approx_quantiles_law, **LATTICE, dither=False),
}
ORDERS = (1.0 + 1e-6, 1.5, 2.0, 4.0, 16.0, 256.0)


def log_probs(law, x, q, **budget) -> np.ndarray:
    of_x = law(np.asarray(x, dtype=float), q, **budget)
    points = itertools.combinations_with_replacement(range(5), len(q))
    return np.array([of_x.log_prob(np.array(point, dtype=float)) for point in points])


def neighbors_at(rng, neighbors: str, distance: int) -> tuple[list, list]:
    """Two data sets that are so many changes apart, with extreme records changed."""
    common = rng.integers(0, 5, size=3).tolist()
    if neighbors == "swap":
        ends = rng.permutation([0, 4]).tolist()
        return [*common, *[ends[0]] * distance], [*common, *[ends[1]] * distance]
    added = int(rng.integers(0, distance + 1))
    return [*common, *[0] * added], [*common, *[4] * (distance - added)]


@pytest.mark.parametrize("distance", [1, 2, 3])
@pytest.mark.parametrize("neighbors", METRICS)
@pytest.mark.parametrize("method", LAWS)
def test_maps_cover_the_exact_losses_of_groups(method, neighbors, distance):
    rng = np.random.default_rng(distance)
    q = [0.3, 0.7]
    given = dict(q=q, neighbors=neighbors, method=method, **LATTICE)
    given |= {} if method == "ind_exp" else dict(dither=False)
    pure = made("quantile", 0.8, **given).map(distance)
    zcdp = made("quantile", 0.2, output_measure=ZCDP, **given).map(distance)
    rho = dict(epsilon=privacy.rho_bounded_range(0.2)) if method == "joint_exp" else dict(rho=0.2)
    worst = 0.0
    for _ in range(8):
        pair = neighbors_at(rng, neighbors, distance)
        a, b = (log_probs(LAWS[method], x, q, epsilon=0.8, neighbors=neighbors) for x in pair)
        assert np.logaddexp.reduce(a) == pytest.approx(0.0, abs=1e-9)
        assert np.abs(a - b).max() <= pure * (1 + 1e-9)
        worst = max(worst, np.abs(a - b).max() / pure)
        a, b = (log_probs(LAWS[method], x, q, neighbors=neighbors, **rho) for x in pair)
        for order in ORDERS:
            divergence = np.logaddexp.reduce(order * a - (order - 1.0) * b) / (order - 1.0)
            assert divergence <= zcdp * order * (1 + 1e-6) + 1e-9
    assert worst > 0.2  # the bound is about what happens


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("neighbors", METRICS)
def test_maps_are_our_own_group_privacy(neighbors, k):
    """What `max_contributions=k` calibrates for the loss at a distance of k is no less private."""
    person = dict(neighbors=neighbors, max_contributions=k)
    one = dict(neighbors=neighbors)
    pure = made("quantile", 0.25, neighbors).map(k)
    zcdp = made("quantile", 0.25, neighbors, output_measure=ZCDP).map(k)
    tree = dict(height=2, branching=4)
    modules = privacy.ind_exp, privacy.joint_exp, privacy.agg_tree, privacy.aggregates
    ind, joint, trees, aggregates = modules

    np.testing.assert_allclose(
        ind.calibrate(QS, epsilon=pure, **person).rates,
        ind.calibrate(QS, epsilon=0.25, **one).rates,
        rtol=1e-15,
    )
    levels = privacy.levels.Levels(QS)
    assert joint.calibrate(levels, epsilon=pure, **person).rate == pytest.approx(
        joint.calibrate(levels, epsilon=0.25, **one).rate, rel=1e-15
    )
    scales = [
        trees.calibrate(epsilon=epsilon, **tree, **who).noise.scale
        for epsilon, who in ((pure, person), (0.25, one))
    ]
    assert scales[0] == scales[1]
    counts = [
        aggregates.calibrate_count(epsilon=epsilon, **who).scale
        for epsilon, who in ((pure, person), (0.25, one))
    ]
    assert counts[0] == counts[1]
    # of a rho, no more noise is needed than there is
    assert (
        ind.calibrate(QS, rho=zcdp, **person).rates >= ind.calibrate(QS, rho=0.25, **one).rates
    ).all()
    sigmas = [
        trees.calibrate(rho=rho, noise="gaussian", **tree, **who).noise.scale
        for rho, who in ((zcdp, person), (0.25, one))
    ]
    assert float(sigmas[0]) == pytest.approx(float(sigmas[1]), rel=1e-12)


def test_a_release_is_held_to_its_map(monkeypatch):
    """Whatever a function of ours spends: no more than what OpenDP is told."""
    asked = dict(method="joint_exp", confidence=0.9, interval_share=0.9, output_measure=ZCDP)
    made("quantile", 0.5, **asked)(X)

    @releases()
    @wraps(dpq.quantile)
    def generous(*arguments: Any, **options: Any) -> Prepared[Any]:
        return Prepared.of(dpq.quantile, *arguments, **options | {"rho": 2.0 * options["rho"]})

    monkeypatch.setattr(ours, "_quantile", generous)
    with pytest.raises(BudgetExceeded, match="a release must fit the budget of rho="):
        made("quantile", 0.5, **asked)


# In contexts


@pytest.mark.parametrize(
    "loss, neighbors",
    [(dp.loss_of(epsilon=1.0), "add-remove"), (dp.loss_of(rho=0.25), "swap")],
    ids=["pure", "zcdp"],
)
def test_queries_of_a_context_find_their_budget(loss, neighbors):
    parts = context(loss, neighbors, d_in=3, split_evenly_over=len(CALLS))
    for name in CALLS:
        measurement = asked(parts.query(), name, output_measure=loss[0]).resolve()
        factor = 3 if loss[0] == PURE else 9
        assert measurement.param == pytest.approx(loss[1] / len(CALLS) / factor, rel=1e-9)
        assert np.isfinite(value(parts(measurement))).all()
    assert sum(parts.current_privacy_loss()) == pytest.approx(loss[1])
    with pytest.raises(ValueError, match="Privacy allowance has been exhausted"):
        parts.query()


def test_a_budget_may_be_given_and_is_refused_where_it_does_not_fit():
    parts = context(dp.loss_of(epsilon=1.0), split_evenly_over=2)
    parts.query().dpq_quantile(QS, 0.5, bounds=BOUNDS).release()
    with pytest.raises(OpenDPException, match=r"insufficient budget for query: 0.6 > 0.5"):
        parts.query().dpq_quantile(QS, 0.6, bounds=BOUNDS).release()
    parts.query().dpq_count(budget=0.5).release()
    with pytest.raises(ValueError, match="exhausted"):
        parts.query()


@pytest.mark.parametrize(
    "loss, neighbors",
    [(dp.loss_of(epsilon=1.0), "add-remove"), (dp.loss_of(rho=0.25), "swap")],
    ids=["pure", "zcdp"],
)
def test_filters_take_what_fits_and_refuse_the_rest(loss, neighbors):
    measure, most = loss
    budget = "epsilon" if measure == PURE else "rho"
    filtered = context(loss, neighbors, d_in=2)
    for part in (0.5, 0.25):
        query = filtered.query(**{budget: part * most})
        query.dpq_quantile(QS, bounds=BOUNDS, output_measure=measure).release()
    assert filtered.current_privacy_loss() == pytest.approx(0.75 * most)
    assert filtered.remaining_privacy_loss() == pytest.approx(0.25 * most)
    query = filtered.query(**{budget: 0.5 * most}).dpq_mean(bounds=BOUNDS, output_measure=measure)
    with pytest.raises(OpenDPException, match="would exceed privacy budget"):
        query.release()


@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=str)
def test_odometers_add_up_and_know_all_distances(measure):
    odometer = context((measure, math.inf))
    assert isinstance(odometer.queryable, OdometerQueryable)
    for name, (given, _) in CALLS.items():
        query = getattr(odometer.query(), f"dpq_{name}")
        query(**given, budget=0.25, output_measure=measure).release()
    assert odometer.current_privacy_loss() == pytest.approx(0.25 * len(CALLS))
    factor = 3 if measure == PURE else 9
    assert odometer.queryable.privacy_loss(3) == pytest.approx(factor * 0.25 * len(CALLS))


def test_odometers_and_adaptive_compositors_without_a_context():
    odometer = dp.c.make_fully_adaptive_composition(*space(), PURE)(X)
    middle = odometer(made("quantile", 0.5, q=0.5))
    odometer(made("count", 0.25 if middle > 30.0 else 0.125))  # the next budget by the answer
    assert odometer.privacy_loss(1) in (0.75, 0.625)
    chosen = space() >> dp.c.then_adaptive_composition(PURE, d_in=2, d_mids=[0.5, 1.0])
    assert chosen.map(2) == 1.5
    queryable = chosen(X)
    queryable(made("quantile", 0.25))
    with pytest.raises(OpenDPException, match="insufficient budget"):
        queryable(made("quantile", 0.75))
    queryable(made("quantile", 0.5))
    with pytest.raises(OpenDPException, match="out of queries"):
        queryable(made("quantile", 0.5))
    with pytest.raises(OpenDPException, match="metrics don't match"):
        chosen(X)(made("quantile", 0.25, "add-remove"))
    composed = dp.c.make_composition([made("count", 0.5), made("mean", 0.25)])
    assert composed.map(1) == 0.75
    assert len(composed(X)) == 2


def test_contexts_inside_contexts():
    outer = context(dp.loss_of(epsilon=1.0), split_evenly_over=2)
    inner = outer.query().compositor(split_evenly_over=2).release()
    first = inner.query().dpq_quantile(0.5, bounds=BOUNDS)
    assert first.param() == pytest.approx(0.25)
    first.release()
    inner.query().dpq_mean(bounds=BOUNDS).release()
    outer.query().dpq_count().release()


def test_other_measures_come_from_ours_by_opendp():
    """(epsilon, delta) of a context; zCDP made for it needs less noise than a pure release cast."""
    approximate = context(dp.loss_of(epsilon=1.0, delta=1e-6), split_evenly_over=2)
    for measure in (PURE, ZCDP):
        query = approximate.query().dpq_quantile(0.5, bounds=BOUNDS, output_measure=measure)
        epsilon, delta = query.resolve().map(1)
        assert epsilon == pytest.approx(0.5)
        assert delta <= 5e-7
        assert 0 <= query.release() <= 100
    of_rho = context(dp.loss_of(rho=0.125), split_evenly_over=1)
    cast = of_rho.query().dpq_quantile(0.5, bounds=BOUNDS).resolve()
    assert cast.output_measure == ZCDP
    # cast, a pure epsilon of 0.5; made for zCDP, a range of 1
    assert cast.map(1) <= 0.125
    assert privacy.rho_bounded_range(0.125) == pytest.approx(1.0, rel=0.01)


def test_names_are_those_of_the_constructors_and_registered_once():
    ours.register()
    ours.register()
    query = context(dp.loss_of(epsilon=1.0)).query(epsilon=0.1)
    assert {f"dpq_{name}" for name in CALLS} <= set(dir(query))
    assert "sum" in dir(query)  # OpenDP's own stays
    with pytest.raises(ValueError, match=r"is missing 2 parameter\(s\)"):
        query.dpq_quantile()


# Refusals

WRONG = {
    "list": [1.0, 2.0],
    "ndarray of 2": np.zeros((3, 2)),
    "strings": np.array(["a", "b"]),
    "objects": np.array([1.0, None], dtype=object),
    "bool": np.array([True]),
    "None": None,
    "number": 3.0,
}


@pytest.mark.parametrize("kind", WRONG)
def test_data_of_a_wrong_type_is_refused_by_its_type_alone_and_costs_nothing(kind):
    data = WRONG[kind]
    shown = {
        "list": "list",
        "ndarray of 2": "2 dimensions",
        "strings": "dtype <U1",
        "objects": "dtype object",
        "bool": "dtype bool",
        "None": "NoneType",
        "number": "float",
    }[kind]
    message = f"data must be a one-dimensional NumPy array of real numbers, got {shown}"
    with pytest.raises(OpenDPException, match=re.escape(message)):
        made("count")(data)
    if data is None:
        return
    odometer = context(dp.loss_of(epsilon=1.0), data=data)
    with pytest.raises(OpenDPException, match=re.escape(message)):
        odometer.query().dpq_quantile(0.5, 0.5, bounds=BOUNDS).release()
    assert odometer.current_privacy_loss() == 0.0


def test_messages_about_data_do_not_depend_on_its_values():
    def refusal(data) -> str:
        with pytest.raises(OpenDPException) as caught:
            made("quantile")(data)
        return str(caught.value)

    secret = refusal([[123456.789, 2.0], [3.0, 4.0]])
    assert "123456" not in secret
    assert secret == refusal([])
    assert refusal(np.array(["secret"])) == refusal(np.array(["public"]))
    assert "secret" not in refusal(np.array(["secret"]))


METRIC_RULE = re.escape("input_metric must be change_one_distance() or hamming_distance()")
MEASURE_RULE = re.escape("output_measure must be max_divergence() or zero_concentrated_divergence")
DOMAIN_RULE = re.escape("input_domain must be column_domain(), a user domain of arrays, or a ")


@pytest.mark.parametrize(
    "change, error, message",
    [
        (
            dict(input_metric=dp.discrete_distance()),
            ValueError,
            rf"{METRIC_RULE}.*got DiscreteDistance\(\)",
        ),
        (dict(input_metric=dp.absolute_distance(T=float)), ValueError, METRIC_RULE),
        (dict(input_metric="swap"), ValueError, rf"{METRIC_RULE}.*got str$"),
        (dict(output_measure=dp.approximate(PURE)), ValueError, f"{MEASURE_RULE}.*got Approx"),
        (dict(output_measure=dp.smoothed_max_divergence()), ValueError, MEASURE_RULE),
        (dict(output_measure="rho"), ValueError, f"{MEASURE_RULE}.*got str$"),
        (dict(input_domain=dp.atom_domain(T=float)), ValueError, DOMAIN_RULE),
        (
            dict(input_domain=dp.vector_domain(dp.atom_domain(T=str))),
            ValueError,
            rf"{DOMAIN_RULE}.*got VectorDomain\(AtomDomain\(T=String\)\)",
        ),
        (dict(input_domain=dp.vector_domain(dp.atom_domain(T=bool))), ValueError, DOMAIN_RULE),
        (dict(input_domain=np.ndarray), ValueError, f"{DOMAIN_RULE}.*got type$"),
        (dict(budget=-1.0), ValueError, "^budget must be finite and not negative, got -1.0"),
        (dict(budget=math.nan), ValueError, "^budget must be finite and not negative, got nan"),
        (dict(budget="1"), TypeError, "^budget must be a real number, got '1'"),
        (dict(q=1.5), ValueError, r"^q must lie in \[0, 1\]"),
        (dict(bounds=(3, 1)), ValueError, r"^bounds must be finite with low < high"),
        (dict(method="best"), ValueError, "^method must be one of"),
        (dict(method="csmooth"), ValueError, "^rho must be given in place of epsilon for method"),
        (dict(resolution=-1), ValueError, "^resolution must be"),
        (dict(confidence=2.0), ValueError, "^confidence must"),
        (dict(workers=0), ValueError, "^workers must not be 0"),
        (dict(method_options=[1]), TypeError, "^method_options must be a dict, got list"),
        (dict(method_options=dict(nonsense=1)), TypeError, "nonsense"),
        *(
            (dict(method_options={name: 1}), ValueError, f"^method_options must not hold '{name}'")
            for name in ("accountant", "max_contributions", "neighbors", "epsilon", "counts", "q")
        ),
    ],
)
def test_arguments_that_break_their_rule_are_refused_when_it_is_made(change, error, message):
    domain, metric = space()
    given = dict(input_domain=domain, input_metric=metric, q=[0.25, 0.5], budget=1.0, bounds=BOUNDS)
    with pytest.raises(error, match=message):
        ours.make_quantile(**given | change)


def test_polars_frames_are_refused_by_name():
    frame = dp.lazyframe_domain([dp.series_domain("age", dp.atom_domain(T=float))])
    with pytest.raises(ValueError, match=f"{DOMAIN_RULE}.*got FrameDomain|LazyFrame"):
        ours.make_count(frame, dp.symmetric_distance(), 1.0)


@pytest.mark.parametrize("more", [dict(q=0.9), dict(lower=1.0), dict(upper=5.0), dict(q=None)])
def test_a_clip_is_public_or_private(more):
    for name in ("sum", "mean"):
        with pytest.raises(ValueError, match=r"^bounds must be left out where q, lower or upper"):
            made(name, 1.0, **more)
        made(name, 1.0, bounds=None, **dict(lower=0.0, upper=90.0) | more)(X)


def test_a_distribution_function_needs_bounds():
    with pytest.raises(TypeError, match=r"^bounds must be two real numbers"):
        ours.make_cdf(*space(), 1.0)


def test_a_budget_of_nothing_loses_nothing_and_releases_nothing():
    nothing = made("quantile", 0.0)
    assert nothing.map(5) == 0.0
    with pytest.raises(OpenDPException, match=r"budget must be positive and finite, got 0.0"):
        nothing(X)


@pytest.mark.parametrize("missing", FEATURES)
def test_features_are_asked_for_and_never_enabled(missing):
    domain = ours.column_domain()
    dp.disable_features(missing)
    with pytest.raises(OpenDPException, match=f'requires .*"{missing}".*but not enabled'):
        ours.make_count(domain, dp.change_one_distance(), 1.0)
    assert missing not in GLOBAL_FEATURES


def test_the_domain_needs_its_feature():
    dp.disable_features("honest-but-curious")
    with pytest.raises(OpenDPException, match='requires "honest-but-curious", but not enabled'):
        ours.column_domain()


def test_nothing_is_imported_or_enabled_by_the_module_itself():
    code = """
    import sys
    from dpq_fast.compat import opendp as ours
    print("opendp" in sys.modules)
    ours.register()
    from opendp.mod import GLOBAL_FEATURES
    print("opendp" in sys.modules, GLOBAL_FEATURES == set())
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["False", "True", "True"]


@pytest.mark.parametrize(
    "call, by",
    [
        (ours.column_domain, "column_domain"),
        (ours.register, "register"),
        (partial(ours.make_count, None, None, 1.0), "make_count"),
        (partial(ours.then_mean, 1.0), "make_mean"),
    ],
)
def test_the_extra_is_named_where_opendp_is_not_there(call, by, monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(ImportError, match=rf"^{by} needs opendp: pip install 'dpq_fast\[opendp\]'"):
        call()


# Signatures


@pytest.mark.parametrize("name", CALLS)
def test_constructors_take_what_our_functions_take(name):
    """By names of their own: a query counts what is not given, and would count **options."""
    parameters = inspect.signature(MAKE[name]).parameters
    assert list(parameters)[:2] == ["input_domain", "input_metric"]
    kinds = {parameter.kind for parameter in parameters.values()}
    assert kinds == {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    own = inspect.signature(getattr(dpq, name)).parameters
    left_out = {*ours.REFUSED, "covers"} if name == "count" else {*ours.REFUSED}
    ours_only = {"input_domain", "input_metric", "output_measure", "budget", "method_options"}
    assert parameters.keys() - ours_only == own.keys() - left_out - {"method_options"}
    for key in parameters.keys() - ours_only - {"q"}:
        assert parameters[key].default == own[key].default, key


@pytest.mark.parametrize("name", CALLS)
def test_constructors_hand_all_arguments_on(name, monkeypatch):
    monkeypatch.setattr(ours, "_measurement", lambda *asked: asked)
    given = {key: object() for key in inspect.signature(MAKE[name]).parameters}
    _, space, budget, options, own = MAKE[name](**given)
    first = ("input_domain", "input_metric", "output_measure")
    assert space == tuple(given.pop(key) for key in first)
    assert (budget, own) == (given.pop("budget"), given.pop("method_options", None))
    assert options == given


@pytest.mark.parametrize("name", CALLS)
def test_constructors_are_documented(name):
    for function in (MAKE[name], THEN[name]):
        text = inspect.getdoc(function)
        assert "Parameters\n" in text and "Returns\n" in text
        for key in inspect.signature(MAKE[name]).parameters:
            assert key in text or f"As in `make_{name}`" in text
    public = {f"{kind}_{name}" for kind in ("make", "then") for name in CALLS}
    assert sorted(public | {"column_domain", "register"}) == ours.__all__
