"""Counts, sums and means by group: exact integers, the noise of each, the promise over all."""

from __future__ import annotations

import importlib
import math
from datetime import date
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import assert_draws_follow
from scipy import stats

import dpq_fast as dpq
from dpq_fast import noise, privacy, reference
from dpq_fast._kernels.groups_scatter import CHUNK
from dpq_fast.privacy import Accountant, BudgetExceeded, guarantee
from dpq_fast.privacy.relations import relation_of

grouping = importlib.import_module("dpq_fast.mechanisms.grouping")

FUNCTIONS = ["count_by", "sum_by", "mean_by"]
CASES = [("swap", False), ("swap", True), ("add-remove", False), ("add-remove", True)]
# Budget and relation of each group's release, for an epsilon of 2.
EACH = {
    ("swap", False): dict(epsilon=1.0, neighbors="add-remove"),
    ("swap", True): dict(epsilon=2.0, neighbors="swap"),
    ("add-remove", False): dict(epsilon=2.0, neighbors="add-remove"),
    ("add-remove", True): dict(epsilon=2.0, neighbors="add-remove"),
}
PUBLIC = dict(q=None, lower=0, upper=4, resolution=1)
X = np.random.default_rng(2).normal(2.0, 1.0, size=400)
KEYS = np.random.default_rng(1).integers(0, 5, size=400)


def clip_of(name: str) -> dict:
    return {} if name == "count_by" else PUBLIC


def rows_of(sample: list, copies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of copies of a sample, each a group of its own."""
    return np.tile(sample, copies), np.repeat(np.arange(copies), len(sample)), np.arange(copies)


# The law of each group


@pytest.mark.parametrize(("neighbors", "public_by"), CASES)
def test_counts_and_sums_have_the_noise_of_their_relation(neighbors, public_by, implementation):
    copies = 20_000 if implementation is dpq else 400
    x, by, groups = rows_of([0, 1, 4, 9, math.nan], copies)
    form = dict(groups=groups, epsilon=2.0, neighbors=neighbors, public_by=public_by, rng=1)
    scale = Fraction(2 if (neighbors, public_by) == ("swap", False) else 1, 2)

    def law(total: int, width: int) -> dict:
        ks = range(total - 60 * width, total + 60 * width + 1)
        log_prob = noise.discrete_laplace_log_prob(np.array(ks) - total, scale * width)
        return {(k,): float(p) for k, p in zip(ks, log_prob, strict=True)}

    counted = implementation.count_by(x, by, **form).values
    assert_draws_follow(((int(k),) for k in counted), law(4, 1))
    # 0, 1, 4 and 4; clamped to 0 and 4
    added = implementation.sum_by(x, by, **PUBLIC, **form).values
    assert_draws_follow(((int(k),) for k in added), law(9, 4))


@pytest.mark.slow
@pytest.mark.parametrize("options", [PUBLIC, dict(q=0.7), dict(lower=None, expected_n=6)], ids=str)
@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize(("neighbors", "public_by"), CASES[:3])
def test_each_group_is_released_as_by_itself(neighbors, public_by, name, options):
    """Against the mechanism of one sample, under the relation and with the budget of a group."""
    sample, copies = [0.5, 1.0, 3.2, 3.3, 3.4, -2.0], 500 if "upper" not in options else 4_000
    x, by, groups = rows_of(sample, copies)
    form = dict(groups=groups, epsilon=2.0, neighbors=neighbors, public_by=public_by, rng=1)
    rng = np.random.default_rng(3)
    one = getattr(dpq, name)
    draws = 2_000 if "upper" in options else 800
    expected = [one(sample, rng=rng, **EACH[neighbors, public_by], **options) for _ in range(draws)]
    for side, number in ((dpq, copies), (reference, 80)):
        few = by < number
        given = form | dict(groups=groups[:number])
        out = getattr(side, f"{name}_by")(x[few], by[few], **given, **options)
        assert stats.ks_2samp(out.values, expected).pvalue > 1e-6


def test_sums_of_groups_are_exact():
    """Noise of a huge budget is none: what is left are sums of rounded integers."""
    rng, size = np.random.default_rng(0), 3 * CHUNK
    x = rng.normal(0.0, 2.0, 50_000)
    x[::97] = rng.choice([math.nan, math.inf, -math.inf], x[::97].size)
    by = rng.integers(0, size + 9, x.size)
    groups = rng.permutation(size)
    points = np.rint(np.clip(np.nan_to_num(x, nan=0.0, posinf=9, neginf=-9) * 4.0, -8, 8))
    kept = ~np.isnan(x)
    clip = dict(q=None, lower=-2, upper=2, resolution=0.25)
    form = dict(groups=groups, epsilon=1e6, rng=1, workers=2)
    sums = np.bincount(by, points, size + 9)[groups] / 4.0
    numbers = np.bincount(by, kept, size + 9)[groups]
    assert np.array_equal(dpq.sum_by(x, by, **clip, **form).values, sums)
    assert np.array_equal(dpq.count_by(x, by, **form).values, numbers)
    means = dpq.mean_by(x, by, **clip, **form).values
    assert np.allclose(means, sums / numbers, atol=1e-12)


def test_sums_of_weighted_groups_are_exact_beyond_64_bits():
    counts = np.array([2**52, 1, 2**51, 3])
    x, by = [2.0**30, 1.0, -(2.0**30), 5.0], [0, 0, 1, 1]
    form = dict(q=None, lower=-(2**30), upper=2**30, resolution=1, epsilon=1e12, rng=1)
    out = dpq.sum_by(x, by, groups=[0, 1, 2], counts=counts, **form)
    assert out.values.tolist() == [2.0**82 + 1.0, -(2.0**81) + 15.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_answers_do_not_depend_on_workers_and_counts_stand_for_rows(name, monkeypatch):
    monkeypatch.setattr(grouping, "BLOCK", 100)
    release, clip = getattr(dpq, name), clip_of(name)
    x, by = np.tile(X, 4), np.random.default_rng(3).integers(0, 2 * CHUNK, 4 * X.size)
    counts = np.random.default_rng(4).integers(0, 4, x.size)
    for options in (clip, {} if name == "count_by" else dict(q=0.9)):
        form = dict(groups=np.arange(2 * CHUNK), epsilon=1.0, rng=5, **options)
        one, two = (release(x, by, workers=workers, **form).values for workers in (1, 2))
        assert np.array_equal(one, two)
        assert not np.array_equal(release(x, by, **form | dict(rng=6)).values, one)
        weighted = release(x, by, counts=counts, **form).values
        repeated = release(np.repeat(x, counts), np.repeat(by, counts), **form).values
        assert np.array_equal(weighted, repeated)


@pytest.mark.parametrize("epsilon", [1e-20, 1e-10, 1.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_budget_has_its_noise(name, epsilon, implementation):
    release = getattr(implementation, name)
    out = release(X, KEYS, groups=[0, 1, 2], epsilon=epsilon, rng=1, **clip_of(name))
    assert len(set(map(float, out.values))) == 3 or name == "mean_by"


# Keys and answers


@pytest.mark.parametrize("name", FUNCTIONS)
def test_keys_are_those_of_quantile_by(name, implementation):
    release, clip = getattr(implementation, name), clip_of(name)
    towns = np.array(["a", "b", "c", "d", "e"])[KEYS]
    days = np.datetime64("2020-01-01") + KEYS
    expected = release(X, KEYS, groups=[3, 0, 9], epsilon=1.0, rng=1, **clip).values
    for by, groups in (
        (towns, ["d", "a", "x"]),
        (days, [date(2020, 1, 4), date(2020, 1, 1), date(2021, 1, 1)]),
        ([towns, days], [("d", date(2020, 1, 4)), ("a", date(2020, 1, 1)), ("a", date(2, 1, 1))]),
    ):
        out = release(X, by, groups=groups, epsilon=1.0, rng=1, **clip)
        assert np.array_equal(out.values, expected) and list(out) == groups


def test_answers_are_a_mapping_and_a_table():
    frame = pd.DataFrame(dict(town=KEYS, half=KEYS % 2 == 0))
    out = dpq.mean_by(
        X, frame, groups=[(0, True), (1, True)], epsilon=1.0, confidence=0.9, rng=1, **PUBLIC
    )
    value, low, high = out[0, True]
    assert low <= value <= high and (0, False) not in out and len(out) == 2
    assert out[0, True].covers == "sample" and out.confidence == 0.9
    table = out.to_pandas()
    assert list(table.columns) == ["value", "low", "high"]
    assert list(table.index.names) == ["town", "half"]
    plain = dpq.count_by(X, KEYS, groups=[1, 0], epsilon=1.0, rng=1)
    assert isinstance(plain[0], int) and list(plain.to_pandas().columns) == ["value"]
    assert dpq.count_by([], [], groups=[], epsilon=1.0).values.shape == (0,)
    assert dpq.mean_by([], [], groups=[], epsilon=1.0, confidence=0.5, **PUBLIC).low.shape == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("covers", ["sample", "population"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_intervals_cover(name, covers, implementation):
    if covers == "population" and name != "mean_by":
        with pytest.raises(ValueError, match="covers must be 'sample'"):
            getattr(implementation, name)(
                X, KEYS, groups=[0], epsilon=1.0, confidence=0.9, covers=covers, **clip_of(name)
            )
        return
    copies = 150 if implementation is dpq else 8
    sample = [0.0, 1.0, 1.0, 2.0, 4.0, 4.0, 4.0, 0.0]
    x, by, groups = rows_of(sample, copies)
    truth = dict(count_by=8.0, sum_by=16.0, mean_by=2.0)[name]
    out = getattr(implementation, name)(
        x, by, groups=groups, epsilon=2.0, confidence=0.8, covers=covers, rng=1, **clip_of(name)
    )
    hit = np.mean((out.low <= truth) & (truth <= out.high))
    assert hit > 0.8 - 5.0 * math.sqrt(0.16 / copies)
    assert (out.low <= out.values).all() and (out.values <= out.high).all()


# Privacy: integers of two groups, and the noise that each has


VALUES = (0, 1, 4)
ROWS = [*product(range(2), VALUES), None]


def integers_of(name: str, rows: tuple, n_is_public: bool) -> np.ndarray:
    """What noise is added to, group by group; records lie in a clip of 1 to 4."""
    out = []
    for group in range(2):
        points = [max(row[1], 1) for row in rows if row is not None and row[0] == group]
        total, number = sum(points), len(points)
        if name == "count_by":
            out.append((number,))
        elif name == "sum_by":
            out.append((total,))
        elif n_is_public:
            out.append((2 * total - 5 * number, number))
        else:
            out.append((total - number, 4 * number - total))
    return np.array(out)


def scales_of(name: str, calibration, missing: bool) -> tuple[float, ...]:
    each = calibration.each
    if name == "count_by":
        return (float(each.scale),)
    if name == "sum_by":
        return (float(each.sum_scale(1, 4, missing)),)
    return tuple(float(scale) or math.inf for scale in each.mean_scales(3, missing))


def calibrated(name: str, **form):
    if name == "count_by":
        return privacy.aggregates_by.calibrate_count(**form)
    return privacy.aggregates_by.calibrate(**form, **PUBLIC | dict(lower=1))


def largest_loss(name: str, calibration, neighbors: str, public_by: bool, missing: bool) -> float:
    """The largest log ratio over all small data sets and their neighbors."""
    relation = relation_of(neighbors)
    scales = scales_of(name, calibration, missing)
    possible = ROWS if missing else ROWS[:-1]
    n_is_public = calibration.each.relation.n_is_public
    worst = 0.0
    for n in range(4):
        for rows in combinations_with_replacement(sorted(possible, key=str), n):
            for taken, brought in relation.changes(rows, possible):
                if public_by and taken is not None and brought:
                    old, new = rows[taken], brought[0]
                    if old is not None and new is not None and old[0] != new[0]:
                        continue
                other = tuple(row for i, row in enumerate(rows) if i != taken) + brought
                pair = (integers_of(name, each, n_is_public) for each in (rows, other))
                moved = np.abs(np.subtract(*pair))
                worst = max(worst, float((moved / scales).sum()))
    return worst


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("neighbors", "public_by"), CASES[:3])
def test_noise_covers_every_change_of_a_record(neighbors, public_by, name, missing):
    form = dict(epsilon=1.5, neighbors=neighbors, public_by=public_by)
    loss = largest_loss(name, calibrated(name, **form), neighbors, public_by, missing)
    assert loss <= 1.5 + 1e-12
    if name != "count_by" or not public_by or missing:
        assert loss == pytest.approx(1.5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_noise_of_one_group_does_not_cover_a_move(name, monkeypatch):
    """The mutant that takes "swap" for "add-remove"."""
    monkeypatch.setattr(privacy.aggregates_by, "touched", lambda relation, public_by: 1)
    for own in ("swap", "add-remove"):
        broken = calibrated(name, epsilon=1.5, neighbors=own)
        assert largest_loss(name, broken, "swap", False, missing=True) > 1.5 + 1e-9


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("neighbors", "public_by"), CASES)
def test_rho_covers_every_person(name, neighbors, public_by):
    """Each integer by its own rho, for up to three records of a person in two groups."""
    epsilon = 1.5
    for k in (1, 3):
        form = dict(epsilon=epsilon, neighbors=neighbors, public_by=public_by, max_contributions=k)
        options = {} if name == "count_by" else PUBLIC
        promise = guarantee(name, **form, **options)
        parts = 2 if (neighbors, public_by) == ("swap", False) else 1
        for first in range(0, parts * k + 1):
            moved = [first, parts * k - first]
            one = privacy.aggregates.discrete_laplace_rho
            width = 1 if name == "count_by" else 4
            total = sum(one(epsilon * d / (parts * k), d * width) for d in moved if d)
            assert total <= promise.implied_rho * (1.0 + 1e-9)


def test_guarantees_are_those_of_all_groups():
    for name, (neighbors, public_by) in product(FUNCTIONS, CASES):
        for options in (clip_of(name), {} if name == "count_by" else dict(share=0.2)):
            promise = guarantee(
                name, epsilon=0.7, neighbors=neighbors, public_by=public_by, **options
            )
            assert (promise.epsilon, promise.delta, promise.bounded_range) == (0.7, 0.0, None)
            assert (promise.neighbors, promise.composition) == (neighbors, "parallel")
    with pytest.raises(TypeError, match="public_by must be True or False"):
        guarantee("count_by", epsilon=1.0, public_by=1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_refusals_come_before_the_charge(name, implementation):
    release, clip = getattr(implementation, name), clip_of(name)
    ledger = Accountant(1.0)
    good = dict(groups=[0, 1], epsilon=0.5, accountant=ledger, **clip)
    for change, error, message in (
        (dict(groups=[0, 0]), ValueError, "^groups must be distinct"),
        (dict(groups=["a"]), TypeError, "^groups must be integers as the column by is"),
        (dict(nan_policy="keep"), ValueError, "^nan_policy must be one of"),
        (dict(epsilon=0.0), ValueError, "^epsilon must be positive"),
        (dict(public_by=None), TypeError, "^public_by must be True or False"),
        (dict(confidence=1.0), ValueError, "^confidence must"),
        (dict(epsilon=2.0), BudgetExceeded, "^a release must fit"),
    ):
        with pytest.raises(error, match=message):
            release(X, KEYS, **good | change)
    if name != "count_by":
        for change, error, message in (
            (dict(upper=None), ValueError, "^lower and upper must be given for q=None"),
            (dict(beta=1.1), TypeError, "^beta must be left out for q=None"),
        ):
            with pytest.raises(error, match=message):
                release(X, KEYS, **good | change)
    assert ledger.history == ()
    with pytest.raises(ValueError, match="must not contain NaN"):
        release([math.nan], [0], nan_policy="raise", **good)
    assert len(ledger.history) == 1
    with pytest.raises(ValueError, match=r"^by must have one key for each row of x$"):
        release(pl.Series([1.0]), [0, 1], groups=[0], epsilon=1.0, **clip)


@pytest.mark.parametrize("name", ["sum_by", "mean_by"])
def test_bounds_are_a_public_clip_of_all_groups(implementation, name):
    rng, release = np.random.default_rng(6), getattr(implementation, name)
    x, by = rng.normal(3.0, 4.0, size=60), rng.integers(0, 3, size=60)
    common = dict(groups=[0, 1, 2], epsilon=1.0, rng=4)
    of_bounds = release(x, by, bounds=(-2, 8), **common)
    of_ends = release(x, by, q=None, lower=-2, upper=8, **common)
    np.testing.assert_array_equal(of_bounds.values, of_ends.values)
    selected = dict(common, groups=None, delta=0.01, epsilon=8.0)
    of_bounds = release(x, by, bounds=(-2, 8), **selected)
    of_ends = release(x, by, q=None, lower=-2, upper=8, **selected)
    np.testing.assert_array_equal(of_bounds.values, of_ends.values)
    with pytest.raises(ValueError, match=r"^bounds must be left out where q, lower or upper is"):
        release(x, by, bounds=(-2, 8), upper=8, **common)
