"""Min, max, interquartile range and boxes: one call of quantiles each, and what is made of it."""

from __future__ import annotations

import datetime as dt
import json
import math
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.privacy.extremes import box_levels, confidence_of_each, extreme_level
from dpq_fast.privacy.intervals import Request

RNG = np.random.default_rng(0)
X = RNG.normal(50.0, 10.0, size=2_000).round(2)
KEYS = RNG.integers(0, 3, size=X.size)
IDS = RNG.integers(0, 400, size=X.size)
PLACE = dict(bounds=(0, 1_000), resolution=0.01)
ONE = dict(epsilon=1.0, rng=3, **PLACE)
GROUPS = dict(groups=[0, 1, 2])
PILOT = dict(method="two_stage")
LEVEL = 24 / 2_000


# Levels


@pytest.mark.parametrize(
    ("n", "options", "expected"),
    [
        (1_000, dict(epsilon=1.0), 0.024),
        (1_000, dict(epsilon=0.5), 0.048),
        (1_000, dict(epsilon=1.0, max_contributions=3), 0.072),
        (1_000, dict(rho=0.5), 0.024),
        (1_000, dict(rho=2.0), 0.012),
        (None, dict(epsilon=1.0), 0.0024),
        (None, dict(epsilon=1.0, max_contributions=5), 0.0024),
        (96, dict(epsilon=1.0), 0.25),
        (1, dict(epsilon=1e-300), 0.25),
    ],
)
def test_levels_by_hand(n, options, expected):
    assert extreme_level(n, **options) == pytest.approx(expected, rel=1e-15)


def test_levels_go_by_what_an_interval_leaves_of_the_budget():
    share = dict(confidence=0.9, interval_share=0.75)
    assert extreme_level(1_000, epsilon=1.0, **share) == pytest.approx(0.096, rel=1e-12)
    assert extreme_level(1_000, rho=0.5, **share) == pytest.approx(0.096, rel=1e-12)
    for options in (dict(confidence=0.9), dict(confidence=0.9, covers="population")):
        level = extreme_level(X.size, epsilon=1.0, **options)
        assert 0.015 < level < 0.06
        expected = dpq.quantile(X, 1 - level, **PILOT, **options, **ONE)
        assert dpq.max(X, **options, **ONE) == expected
        found = dpq.max_by(X, KEYS, public_by=True, **options, **GROUPS, **ONE)
        assert found.q == 1 - extreme_level(666, epsilon=1.0, **options)


def test_levels_take_one_budget():
    for budget in ({}, dict(epsilon=1.0, rho=1.0)):
        with pytest.raises(ValueError, match="exactly one of epsilon and rho must be given"):
            extreme_level(10, **budget)


def test_levels_of_a_box_are_in_order():
    assert box_levels(0.25) == (0.25, 0.25, 0.5, 0.75, 0.75)
    assert box_levels(0.01) == (0.01, 0.25, 0.5, 0.75, 0.99)


@pytest.mark.parametrize(
    ("options", "n", "told"),
    [
        ({}, X.size, {}),
        (dict(expected_n=500), 500, dict(expected_n=500)),
        (dict(neighbors="add-remove"), 10_000, {}),
        (dict(neighbors="add-remove", expected_n=700), 700, dict(expected_n=700)),
        (dict(max_contributions=2), X.size / 2, {}),
    ],
)
def test_defaults_go_by_the_public_number_of_records(options, n, told):
    level = 24 / n
    expected = dpq.quantile(X, [level, 1 - level], **ONE | PILOT | options)
    found = [each(X, **ONE | options) for each in (dpq.min, dpq.max)]
    for at, q in enumerate((level, 1 - level)):
        assert found[at] == dpq.quantile(X, q, **ONE | PILOT | options), told
    assert np.shape(expected) == (2,)


# Equality with quantiles of the same seed


@pytest.mark.parametrize(
    "options",
    [
        {},
        dict(neighbors="add-remove"),
        dict(rho=0.5, epsilon=None),
        dict(confidence=0.9),
        dict(confidence=0.9, covers="population"),
        dict(method="ind_exp", delta=1e-6),
        dict(method="agg_tree", confidence=0.9),
        dict(method="unbounded_quantile", bounds=None, resolution=None),
        dict(method="joint_exp", dither=True),
        dict(method="csmooth", rho=0.5, epsilon=None),
    ],
)
@pytest.mark.parametrize("q", [0.03, 0.97])
def test_min_and_max_are_quantiles(q, options):
    release = dpq.min if q < 0.5 else dpq.max
    found = release(X, level=0.03, **ONE | options)
    assert found == dpq.quantile(X, q, **ONE | PILOT | options)


def test_without_a_pilot_auto_is_as_of_quantile():
    for options in (dict(resolution=0), dict(bounds=None, resolution=None), dict(dither=True)):
        found = dpq.min(X, level=0.03, **ONE | options)
        assert found == dpq.quantile(X, 0.03, **ONE | options)
    few = X[:50]  # too few for a pilot
    assert dpq.max(few, **ONE) == dpq.quantile(few, 0.75, **ONE)


@pytest.mark.parametrize("options", [{}, dict(neighbors="add-remove"), dict(rho=0.1, epsilon=None)])
def test_iqr_is_a_difference_of_quantiles(options):
    low, high = dpq.quantile(X, [0.25, 0.75], **ONE | options)
    assert dpq.iqr(X, **ONE | options) == high - low
    assert type(dpq.iqr(X, **ONE | options)) is float


@pytest.mark.parametrize(
    ("options", "each"),
    [
        (dict(confidence=0.9), 0.9),
        (dict(confidence=0.9, covers="population"), 0.95),
        (dict(confidence=0.9, method="agg_tree"), 0.95),
        (dict(confidence=0.9, interval_share=0.3), 0.9),
    ],
)
def test_interval_of_an_iqr_is_from_inner_ends_to_outer_ones(options, each):
    value, low, high = dpq.quantile(X, [0.25, 0.75], **ONE | options | dict(confidence=each))
    found = dpq.iqr(X, **ONE | options)
    assert found.value == value[1] - value[0]
    assert found.low == max(low[1] - high[0], 0.0)
    assert found.high == high[1] - low[0]
    assert (found.confidence, found.covers) == (0.9, options.get("covers", "sample"))
    out = dpq.iqr_by(X, KEYS, **GROUPS, **ONE | options)
    parts = dpq.quantile_by(
        X, KEYS, [0.25, 0.75], **GROUPS, **ONE | options | dict(confidence=each)
    )
    np.testing.assert_array_equal(out.values, parts.values[:, 1] - parts.values[:, 0])
    np.testing.assert_array_equal(out.low, np.maximum(parts.low[:, 1] - parts.high[:, 0], 0.0))
    np.testing.assert_array_equal(out.high, parts.high[:, 1] - parts.low[:, 0])
    assert (out.confidence, out[0].covers) == (0.9, options.get("covers", "sample"))


def test_each_of_two_misses_half():
    assert confidence_of_each(Request.of(0.9)) == pytest.approx(0.95, rel=1e-15)


@pytest.mark.parametrize("whisker", [0, 0.4, 1.5, 1e300])
def test_box_is_made_of_five_quantiles(whisker):
    least, q1, median, q3, most = dpq.quantile(X, box_levels(LEVEL), **ONE | PILOT)
    found = dpq.box(X, whisker=whisker, **ONE)
    reach = whisker * (q3 - q1)
    assert [*found] == [max(least, q1 - reach), q1, median, q3, min(most, q3 + reach)]
    assert found.level == pytest.approx(LEVEL, rel=1e-15)
    assert found == dpq.box(X, whisker, **ONE)


def test_a_box_of_the_widest_bounds_has_numbers():
    wide = 1.7e308
    box = dpq.Box.of([-wide, -wide, 0.0, wide, wide], 0.0, 0.1)
    assert [*box] == [-wide, -wide, 0.0, wide, wide]


# By group


@pytest.mark.parametrize(
    ("options", "level"),
    [
        (dict(public_by=True), 24 / 666),
        ({}, 48 / 666),
        (dict(expected_n=500), 48 / 500),
        (dict(neighbors="add-remove"), 24 / 10_000),
        (dict(groups=None, delta=1e-6), 48 / (0.75 * 10_000)),
        (dict(rho=0.5, epsilon=None, expected_n=500), 24 / (0.5 * 500)),
        (dict(level=0.1), 0.1),
        (dict(level=0.1, method="ind_exp"), 0.1),
        (dict(bounds={0: (0, 100), 1: (0, 90), 2: (-5, 100)}), 48 / 666),
    ],
)
def test_min_and_max_by_group_are_quantiles_by_group(options, level):
    asked = GROUPS | ONE | options
    if "neighbors" in options or "groups" in options:
        n = None
    else:
        n = options.get("expected_n", 666)
    told = {} if "method" in options else PILOT | dict(expected_n=n)
    plain = {name: value for name, value in asked.items() if name != "level"} | told
    for release, q in ((dpq.min_by, level), (dpq.max_by, 1 - level)):
        found = release(X, KEYS, **asked)
        assert found.q == pytest.approx(q, rel=1e-14)
        expected = dpq.quantile_by(X, KEYS, found.q, **plain)
        np.testing.assert_array_equal(found.values, expected.values)
        assert type(found) is type(expected)


def test_intervals_by_group_are_those_of_quantiles():
    found = dpq.max_by(X, KEYS, level=0.1, confidence=0.9, **GROUPS, **ONE)
    asked = dict(confidence=0.9, expected_n=666, **PILOT)
    expected = dpq.quantile_by(X, KEYS, 0.9, **asked, **GROUPS, **ONE)
    assert found[1] == expected[1] and isinstance(found[1], dpq.Estimate)


def test_a_delta_stays_that_of_one_level():
    options = GROUPS | ONE | dict(delta=1e-6)
    found = dpq.min_by(X, KEYS, level=0.1, **options)
    assert found.to_dict() == dpq.quantile_by(X, KEYS, 0.1, **options).to_dict()


def test_boxes_by_group():
    out = dpq.box_by(X, KEYS, **GROUPS, **ONE)
    asked = GROUPS | ONE | PILOT | dict(expected_n=666)
    expected = dpq.quantile_by(X, KEYS, box_levels(out.level), **asked)
    for key in out:
        five = expected[key]
        assert out[key] == dpq.Box.of(five, 1.5, out.level)
        assert [*out[key]][1:4] == five[1:4].tolist()
    names = ["low", "q1", "median", "q3", "high"]
    frame = out.to_pandas()
    assert frame.columns.tolist() == names and frame.index.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(frame.to_numpy(), out.values)
    assert out.to_dict()[1] == out[1].to_dict()
    rows = json.loads(out.to_json())
    assert rows[2] == {"group": 2} | dict(zip(names, out.values[2].tolist(), strict=True))
    assert out.to_polars().columns == ["group", *names]
    head, first, *_ = repr(out).splitlines()
    assert head == "GroupBoxes of 3 groups: low, q1, median, q3, high"
    assert first.split() == ["0", *(f"{number:.10g}" for number in out.values[0])]
    none = dpq.box_by([], [], groups=[], epsilon=1.0, **PLACE)
    assert none.values.shape == (0, 5) and none.to_json() == "[]"


def test_names_of_columns_of_keys_are_kept():
    frame = pd.DataFrame({"x": X, "team": KEYS})
    for release in (dpq.iqr_by, dpq.box_by, dpq.min_by):
        out = release(frame["x"], frame[["team"]], **GROUPS, **ONE)
        assert out.names == ("team",) and out.to_pandas().index.name == "team"


# Charges


@pytest.mark.parametrize("name", ["min", "max", "iqr", "box"])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_the_charge_is_that_of_the_quantiles(name, neighbors):
    accountant = privacy.Accountant(10.0, neighbors=neighbors)
    public = dict(epsilon=0.7, neighbors=neighbors, **PLACE)
    getattr(dpq, name)(X, accountant=accountant, rng=0, **public)
    (spent,) = accountant.history
    assert spent.epsilon == pytest.approx(0.7) and spent.neighbors == neighbors
    assert spent == privacy.guarantee(name, n=X.size, **public)
    method = privacy.guarantee(name, n=X.size, **public).mechanism
    assert method == ("joint_exp" if name == "iqr" and neighbors == "swap" else method)
    by_group = privacy.Accountant(10.0, neighbors=neighbors)
    getattr(dpq, f"{name}_by")(X, KEYS, accountant=by_group, rng=0, **GROUPS, **public)
    assert [each.epsilon for each in by_group.history] == [0.7]


def test_guarantees_refuse_as_the_calls_do():
    with pytest.raises(ValueError, match=r"level must lie in \(0, 1/2\], got 0.7"):
        privacy.guarantee("min", epsilon=1.0, level=0.7)
    with pytest.raises(TypeError, match="has no argument 'q'"):
        privacy.guarantee("iqr", epsilon=1.0, q=0.5)


# Coverage


@pytest.mark.parametrize("options", [{}, dict(method="agg_tree", resolution=1)])
def test_intervals_of_an_iqr_cover_that_of_the_records(options):
    confidence, releases, covered = 0.8, 250, 0
    x = np.sort(X[:400].round(0 if options else 2))
    truth = x[math.ceil(0.75 * x.size) - 1] - x[math.ceil(0.25 * x.size) - 1]
    for seed in range(releases):
        place = PLACE | dict(bounds=(0, 120)) | options
        _, low, high = dpq.iqr(x, epsilon=1.0, confidence=confidence, rng=seed, **place)
        covered += low <= truth <= high
    deviation = math.sqrt(confidence * (1 - confidence) / releases)
    assert covered / releases > confidence - 3 * deviation


def test_intervals_of_an_iqr_cover_that_of_the_population():
    confidence, releases, covered = 0.8, 250, 0
    rng = np.random.default_rng(1)
    truth = 2 * 10 * 0.6744897501960817
    options = dict(epsilon=1.0, covers="population", bounds=(0, 120), resolution=0.01)
    for seed in range(releases):
        x = rng.normal(50.0, 10.0, size=300)
        _, low, high = dpq.iqr(x, confidence=confidence, rng=seed, **options)
        covered += low <= truth <= high
    deviation = math.sqrt(confidence * (1 - confidence) / releases)
    assert covered / releases > confidence - 3 * deviation


def test_default_levels_are_found():
    """Between bounds that are 1,000 times too wide few answers are outside of all records."""
    rng, outside = np.random.default_rng(2), 0
    for seed in range(100):
        x = 5.0 + rng.random(1_000)
        options = dict(epsilon=1.0, bounds=(0.0, 1_000.0), rng=seed)
        outside += dpq.max(x, **options) > 6.25
        outside += dpq.min(x, **options) < 4.75
    assert outside <= 8


# Persons, times, tables


def test_persons():
    for contributions, most in (("weights", 1), (2, 2)):
        person = dict(privacy_unit=IDS, contributions=contributions)
        persons = np.unique(IDS).size
        level = extreme_level(persons, epsilon=1.0)
        assert dpq.min(X, **person, **ONE) == dpq.quantile(X, level, **person, **PILOT, **ONE), most
        assert dpq.box(X, **person, **ONE).level == pytest.approx(level, rel=1e-15)
        expected_n = dict(expected_n=300)
        level = extreme_level(300, epsilon=1.0)
        found = dpq.max(X, **person, **expected_n, **ONE)
        assert found == dpq.quantile(X, 1 - level, **person, **expected_n, **PILOT, **ONE)
        low, high = dpq.quantile(X, [0.25, 0.75], **person, **ONE)
        assert dpq.iqr(X, **person, **ONE) == high - low
        out = dpq.min_by(X, KEYS, **person, **GROUPS, **ONE)
        assert out.q == pytest.approx(min(2 * 24 / (persons / 3), 0.25), rel=0.01)


DAYS = np.datetime64("2020-01-01") + RNG.integers(0, 300, size=2_000)
BERLIN = ZoneInfo("Europe/Berlin")
TIMES = {
    "date": ((dt.date(2020, 1, 1), dt.date(2021, 1, 1)), dt.date, dt.timedelta),
    "text": (("2020-01-01", "2021-01-01"), np.datetime64, np.timedelta64),
    "datetime": ((dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)), dt.datetime, dt.timedelta),
    "zone": (
        (dt.datetime(2020, 1, 1, tzinfo=BERLIN), dt.datetime(2021, 1, 1, tzinfo=BERLIN)),
        dt.datetime,
        dt.timedelta,
    ),
    "pandas": (
        (pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")),
        pd.Timestamp,
        pd.Timedelta,
    ),
}


@pytest.mark.parametrize("name", TIMES)
def test_of_times_ranges_are_durations(name):
    bounds, instant, duration = TIMES[name]
    x = pd.Series(DAYS).dt.tz_localize("UTC") if name == "zone" else DAYS
    options = dict(epsilon=2.0, bounds=bounds, resolution="6h", rng=1)
    if name == "date":
        options["resolution"] = "1D"
    least, most = dpq.min(x, **options), dpq.max(x, **options)
    q1, q3 = (dpq.quantile(x, [0.25, 0.75], **options)[at] for at in (0, 1))
    iqr = dpq.iqr(x, **options)
    assert isinstance(least, instant) and isinstance(iqr, duration) and least < most
    if name == "zone":  # whose clocks are put forward in between
        q1, q3 = (each.astimezone(dt.timezone.utc) for each in (q1, q3))
        assert iqr == q3 - q1
    assert np.timedelta64(iqr) == np.timedelta64(q3 - q1)
    estimate = dpq.iqr(x, confidence=0.9, **options)
    assert estimate.low <= estimate.value <= estimate.high and isinstance(estimate.high, duration)
    box = dpq.box(x, **options)
    assert all(isinstance(each, instant) for each in box)
    assert sorted(box) == [*box]
    assert json.loads(box.to_json())["level"] == box.level
    keys = np.arange(2_000) % 2
    ranges = dpq.iqr_by(x, keys, groups=[0, 1], **options)
    assert all(dt.timedelta(0) < pd.Timedelta(each).to_pytimedelta() for each in ranges.values)
    boxes = dpq.box_by(x, keys, groups=[0, 1], **options)
    assert boxes.values.shape == (2, 5) and sorted(boxes[1]) == [*boxes[1]]


def test_of_durations_all_are_durations():
    waits = pd.to_timedelta(RNG.integers(0, 3_600, size=1_000), unit="s")
    options = dict(epsilon=2.0, bounds=(pd.Timedelta(0), pd.Timedelta("2h")), rng=1)
    sample = dpq.Sample.of(waits, options["bounds"])
    for release in (dpq.min, dpq.max, dpq.iqr):
        assert isinstance(release(waits, **options), pd.Timedelta)
        assert isinstance(release(sample, epsilon=2.0, rng=1), pd.Timedelta)
    assert all(isinstance(each, pd.Timedelta) for each in dpq.box(waits, **options))
    assert dpq.box(sample, epsilon=2.0, rng=1).q1 > pd.Timedelta(0)


def test_tables_answer_as_arrays_do():
    duckdb = pytest.importorskip("duckdb", reason="extra 'duckdb' not installed")
    frame = pd.DataFrame({"x": X, "team": KEYS})
    connection = duckdb.connect()
    table = dpq.Table.of(connection.from_df(frame))
    told = ONE | dict(expected_n=2_000)
    for release in (dpq.min, dpq.max, dpq.iqr, dpq.box):
        assert release(table["x"], **told) == release(X, **told)
    told = GROUPS | ONE | dict(expected_n=600)
    for release in (dpq.min_by, dpq.max_by, dpq.box_by):
        found = release(table["x"], table["team"], **told)
        assert found.to_dict() == release(X, KEYS, **told).to_dict()
    found = dpq.iqr_by(table["x"], table["team"], **GROUPS, **ONE)
    assert found.to_dict() == dpq.iqr_by(X, KEYS, **GROUPS, **ONE).to_dict()


def test_accessors():
    import dpq_fast.accessors  # noqa: F401

    frame = pd.DataFrame({"x": X, "team": KEYS})
    assert frame["x"].dpq.iqr(**ONE) == frame.dpq.iqr("x", **ONE) == dpq.iqr(X, **ONE)
    assert frame["x"].dpq.box(**ONE) == dpq.box(X, **ONE)
    out = frame.dpq.box_by("x", "team", **GROUPS, **ONE)
    assert out.to_dict() == dpq.box_by(X, KEYS, **GROUPS, **ONE).to_dict()


# The object


def test_a_box_says_what_it_is():
    box = dpq.Box(1.0, 2.0, 3.0, 4.5, 6.0, 0.024)
    assert repr(box) == "Box(low=1, q1=2, median=3, q3=4.5, high=6, level=0.024)"
    parts = dict(low=1.0, q1=2.0, median=3.0, q3=4.5, high=6.0)
    assert box.to_dict() == json.loads(box.to_json()) == parts | dict(level=0.024)
    assert [*box] == [*parts.values()]
    with pytest.raises(AttributeError):
        box.low = 0.0


@settings(max_examples=60, deadline=None)
@given(
    x=st.lists(st.floats(-1e6, 1e6), max_size=30),
    whisker=st.floats(0.0, 1e6),
    epsilon=st.floats(1e-3, 1e3),
    level=st.none() | st.floats(0.0, 0.25, exclude_min=True),
    seed=st.integers(0, 2**32),
)
def test_numbers_of_a_box_are_in_order(x, whisker, epsilon, level, seed):
    options = dict(epsilon=epsilon, bounds=(-1e6, 1e6), rng=seed)
    low, q1, median, q3, high = dpq.box(x, whisker, level=level, **options)
    assert -1e6 <= low <= q1 <= median <= q3 <= high <= 1e6
    assert dpq.iqr(x, **options) >= 0.0


# Refusals


@pytest.mark.parametrize("level", [0.0, -0.1, 0.6, math.nan, math.inf])
@pytest.mark.parametrize("name", ["min", "max", "box"])
def test_levels_beyond_a_half_are_refused(name, level):
    accountant = privacy.Accountant(10.0)
    rule = r"level must (lie in \(0, 1/2\]|be finite and not negative), got"
    with pytest.raises(ValueError, match=rule):
        getattr(dpq, name)(X, level=level, accountant=accountant, **ONE)
    with pytest.raises(ValueError, match=rule):
        getattr(dpq, f"{name}_by")(X, KEYS, level=level, accountant=accountant, **GROUPS, **ONE)
    assert not accountant.history


def test_what_does_not_fit_is_refused_by_name_before_the_charge():
    accountant = privacy.Accountant(10.0)
    asked = ONE | dict(accountant=accountant)
    for name in ("min", "max", "iqr", "box"):
        with pytest.raises(TypeError, match=rf"^{name}\(\) has no argument 'q'"):
            getattr(dpq, name)(X, q=0.5, **asked)
        with pytest.raises(TypeError, match=rf"^{name}_by\(\) has no argument 'q'"):
            getattr(dpq, f"{name}_by")(X, KEYS, q=0.5, **GROUPS, **asked)
        with pytest.raises(TypeError, match=rf"^{name}_by\(\) needs groups"):
            getattr(dpq, f"{name}_by")(X, KEYS, **asked)
    for option in (dict(confidence=0.9), dict(covers="sample"), dict(interval_share=0.5)):
        with pytest.raises(TypeError, match=rf"box\(\) has no argument '{next(iter(option))}'"):
            dpq.box(X, **option, **asked)
        with pytest.raises(TypeError, match=rf"box_by\(\) has no argument '{next(iter(option))}'"):
            dpq.box_by(X, KEYS, **option, **GROUPS, **asked)
    for whisker in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="whisker must be finite and not negative, got"):
            dpq.box(X, whisker, **asked)
    with pytest.raises(ValueError, match=r"level must lie in \(0, 1/4\] for a box, got 0.3"):
        dpq.box(X, level=0.3, **asked)
    with pytest.raises(TypeError, match="whisker must be a real number, got 'a'"):
        dpq.box_by(X, KEYS, "a", **GROUPS, **asked)
    assert not accountant.history
