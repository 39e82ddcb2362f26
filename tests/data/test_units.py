"""Times and durations: numbers of steps that are exact, and answers in the types of the bounds."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpq_fast as dpq
from dpq_fast.data.columns import as_column
from dpq_fast.data.units import Time, Timed, are_numbers, default_step, of_text, unit_of
from dpq_fast.reference.columns import steps

DAYS = np.datetime64("2020-01-01"), np.datetime64("2021-01-01")
SPANS = np.timedelta64(0, "s"), np.timedelta64(90, "m")
RECORDS = DAYS[0] + np.random.default_rng(0).integers(0, 366, 500)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize("kind", ["M8[D]", "M8[s]", "M8[7ms]", "M8[M]", "m8[s]"])
def test_times_of_the_other_byte_order_are_the_same_ones(kind):
    times = np.array([*range(18_000, 18_400), np.iinfo(np.int64).min]).view(kind)
    low = times[0].astype("M8[D]") if kind[0] == "M" else times[0]
    made = unit_of(dict(bounds=(low, low + np.timedelta64(1_000, "D"))))
    other = times.astype(times.dtype.newbyteorder())
    assert np.array_equal(made.numbers_of(other), made.numbers_of(times), equal_nan=True)
    assert np.isfinite(made.numbers_of(other[:-1])).all()
    swapped = times.byteswap().view(times.dtype.newbyteorder())  # the same times again
    assert np.array_equal(made.numbers_of(swapped), made.numbers_of(times), equal_nan=True)


@given(
    ticks=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5),
    unit=st.sampled_from(["W", "D", "h", "m", "s", "ms", "us", "ns", "25s"]),
    origin=st.integers(-(2**61), 2**61),
    step=st.integers(1, 10**15),
    kind=st.sampled_from(["M8", "m8"]),
)
def test_numbers_of_steps_are_those_of_exact_arithmetic(ticks, unit, origin, step, kind):
    times = np.array(ticks, dtype=np.int64).view(f"{kind}[{unit}]")
    low = np.int64(origin).view(f"{kind}[ns]")
    ends = (low, low + np.timedelta64(1, "D"))
    made = unit_of(dict(bounds=ends, resolution=np.timedelta64(step, "ns")))
    found = as_column(Timed(times, made))
    expected = steps(
        times, low if kind == "M8" else np.timedelta64(0, "ns"), np.timedelta64(step, "ns")
    )
    # two roundings, of the difference and of the quotient, and one more where steps are no ticks
    np.testing.assert_allclose(found, expected, rtol=2e-15, atol=0)
    exact = [Fraction(value) for value in expected]
    whole = [value.denominator == 1 and abs(value) < 2**50 for value in exact]
    tick = np.timedelta64(1, "ns") * step
    if kind == "m8" and tick % np.timedelta64(1, unit.lstrip("25")) == np.timedelta64(0, "ns"):
        assert found[whole].tolist() == expected[whole].tolist()


def test_beyond_64_bits_is_infinite():
    far = np.array([-(2**62) - 9, 2**62, -(2**63)], dtype=np.int64).view("M8[us]")
    unit = unit_of(dict(bounds=(np.datetime64(2**62, "us"), np.datetime64(2**62 + 10**9, "us"))))
    assert as_column(Timed(far, unit))[0] == -np.inf
    assert as_column(Timed(far, unit))[1] == 0.0
    assert np.isnan(as_column(Timed(far, unit))[2])  # the integer of NaT
    unit = unit_of(dict(bounds=(np.datetime64("2500-01-01"), np.datetime64("2501-01-01"))))
    nearly = np.array([2**63 - 1], dtype=np.int64).view("M8[ns]")  # in 2262
    assert as_column(Timed(nearly, unit))[0] < -86_000


ENDS = {
    "numpy days": (DAYS, np.datetime64),
    "numpy ns": (tuple(end.astype("M8[ns]") for end in DAYS), np.datetime64),
    "date": ((dt.date(2020, 1, 1), dt.date(2021, 1, 1)), dt.date),
    "datetime": ((dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)), dt.datetime),
    "pandas": ((pd.Timestamp("2020"), pd.Timestamp("2021")), pd.Timestamp),
}


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("resolution", [np.timedelta64(1, "D"), dt.timedelta(hours=36)], ids=str)
def test_answers_are_on_the_lattice_in_the_type_of_the_bounds(name, resolution):
    bounds, kind = ENDS[name]
    options = dict(epsilon=1.0, bounds=bounds, resolution=resolution, rng=1)
    answer = dpq.median(RECORDS, **options)
    if name == "date" and resolution == dt.timedelta(hours=36):
        kind = dt.datetime  # half a day is no date
    assert type(answer) is kind
    step = pd.Timedelta(resolution)
    assert (pd.Timestamp(answer) - pd.Timestamp("2020")) % step == pd.Timedelta(0)
    numbers = steps(RECORDS, DAYS[0], np.timedelta64(step.value, "ns"))
    last = float(steps([DAYS[1]], DAYS[0], np.timedelta64(step.value, "ns"))[0])
    plain = dpq.median(numbers, epsilon=1.0, bounds=(0.0, last), resolution=1.0, rng=1)
    assert pd.Timestamp(answer) == pd.Timestamp("2020") + int(plain) * step
    several = dpq.quantile(RECORDS, [[0.1, 0.5]], **options)
    assert several.dtype.kind == "M" and several.shape == (1, 2) and several[0, 0] < several[0, 1]


# Moments of a day on which clocks are put forward, of summer, of winter, and both hours of the day
# on which clocks are put back; the second of these is `fold=1`.
MOMENTS = [dt.datetime(2021, 3, 28, hour, 59, tzinfo=dt.timezone.utc) for hour in (0, 1)] + [
    dt.datetime(2021, month, day, hour, 30, tzinfo=dt.timezone.utc)
    for month, day, hour in [(1, 15, 12), (7, 15, 12), (10, 31, 0), (10, 31, 1), (10, 31, 2)]
]
UTC = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
ZONED = {
    "datetime": lambda moment: moment.astimezone(BERLIN),
    "pandas": lambda moment: pd.Timestamp(moment).tz_convert("Europe/Berlin"),
}
# A column of moments in a zone, in whatever holds such.
ZONED_COLUMNS = {
    "list": lambda moments: [moment.astimezone(BERLIN) for moment in moments],
    "list of pandas": lambda moments: list(map(ZONED["pandas"], moments)),
    "objects": lambda moments: np.array([m.astimezone(BERLIN) for m in moments], dtype=object),
    "pandas": lambda moments: pd.Series(pd.DatetimeIndex(moments).tz_convert("Europe/Berlin")),
    "polars": lambda moments: pl.Series(moments).dt.convert_time_zone("Europe/Berlin"),
    "arrow": lambda moments: pa.array(moments, pa.timestamp("us", "Europe/Berlin")),
    "another zone": lambda moments: [
        moment.astimezone(ZoneInfo("Asia/Tokyo")) for moment in moments
    ],
}


@pytest.mark.parametrize("library", ZONED)
@pytest.mark.parametrize("moment", MOMENTS, ids=str)
def test_bounds_with_a_zone_are_the_moments_that_their_clocks_show(moment, library):
    """In summer time, too, and in both of the hours that have one name."""
    value = ZONED[library](moment)
    since = (moment - UTC) // dt.timedelta(microseconds=1) * 1000
    assert Time.of(value).nanoseconds == since
    bounds = (value, ZONED[library](moment + dt.timedelta(days=200)))  # into another season
    unit = unit_of(dict(bounds=bounds, resolution=dt.timedelta(seconds=1)))
    assert (unit.origin, unit.end("high", bounds[1])) == (since, 200 * 86_400.0)
    assert unit.points("x", list(bounds)).tolist() == [0.0, 200 * 86_400.0]


@pytest.mark.parametrize("make", ZONED_COLUMNS.values(), ids=ZONED_COLUMNS)
def test_columns_with_a_zone_are_the_moments_that_their_clocks_show(make):
    bounds = (dt.datetime(2021, 7, 1, tzinfo=BERLIN), dt.datetime(2021, 12, 1, tzinfo=BERLIN))
    unit = unit_of(dict(bounds=bounds, resolution=dt.timedelta(seconds=1)))
    expected = [
        (moment - bounds[0].astimezone(dt.timezone.utc)).total_seconds() for moment in MOMENTS
    ]
    assert as_column(make(MOMENTS), unit).tolist() == expected


@pytest.mark.parametrize("library", ZONED)
@pytest.mark.parametrize("moment", MOMENTS, ids=str)
def test_answers_in_a_zone_are_the_moments_of_the_records(moment, library):
    """With the offset of that moment: of the first and of the second of two hours of one name."""
    around = moment - dt.timedelta(days=100), moment + dt.timedelta(days=100)
    bounds = tuple(map(ZONED[library], around))
    options = dict(epsilon=1e6, bounds=bounds, resolution=dt.timedelta(minutes=1), rng=1)
    records = ZONED_COLUMNS["pandas"]([moment] * 50)
    wanted = ZONED[library](moment)
    answers = [
        dpq.median(records, **options),
        dpq.quantile(records, [0.2, 0.5], **options)[1],
        dpq.AggTree.of(records, **options).quantile(0.5),
        dpq.median(records, confidence=0.9, **options).value,
        dpq.quantile_by(records, [1] * 50, 0.5, groups=[1], **options)[1],
    ]
    for answer in answers:
        assert answer.astimezone(dt.timezone.utc) == moment
        assert answer.utcoffset() == wanted.utcoffset()
        assert (answer.fold, str(answer)) == (wanted.fold, str(wanted))


def test_hours_of_one_name_are_two_moments():
    """Of which Python says that they are equal, where both have the same zone."""
    first, second = (ZONED["datetime"](moment) for moment in MOMENTS[4:6])
    assert first.replace(fold=0) == second.replace(fold=0) and (first.fold, second.fold) == (0, 1)
    assert Time.of(second).nanoseconds - Time.of(first).nanoseconds == 3_600 * 10**9


def test_zones_are_those_of_the_bounds():
    records = pd.Series(RECORDS).dt.tz_localize("Europe/Berlin")
    bounds = tuple(dt.datetime(year, 1, 1, tzinfo=BERLIN) for year in (2020, 2021))
    options = dict(epsilon=1.0, bounds=bounds, resolution=dt.timedelta(hours=1), rng=1)
    answer = dpq.median(records, **options)
    assert answer.tzinfo is BERLIN
    tokyo = records.dt.tz_convert("Asia/Tokyo")
    assert dpq.median(tokyo, **options) == answer
    assert dpq.median(pl.from_pandas(tokyo), **options) == answer
    stamps = tuple(map(pd.Timestamp, bounds))
    given = dpq.quantile(records, [0.5], **options | dict(bounds=stamps))
    assert given[0] == answer and given[0].tz is not None
    for x, b in (records, DAYS), (RECORDS, bounds):
        with pytest.raises(TypeError, match=r"x must hold times with(out)? a zone, got dtype"):
            dpq.median(x, epsilon=1.0, bounds=b)


@pytest.mark.parametrize("method", ["joint_exp", "ind_exp", "approx_quantiles", "agg_tree", "auto"])
def test_every_method_and_a_sample_give_times(method):
    options = dict(epsilon=2.0, method=method, rng=3)
    answer = dpq.quantile(RECORDS, [0.2, 0.9], bounds=DAYS, **options)
    assert answer.dtype == "M8[D]" and (answer >= DAYS[0]).all() and (answer <= DAYS[1]).all()
    sample = dpq.Sample.of(RECORDS, DAYS)
    assert dpq.quantile(sample, [0.2, 0.9], **options).dtype == "M8[D]"
    batches = dpq.Sample.from_batches(lambda: [RECORDS[:200], RECORDS[200:]], DAYS)
    if method in ("joint_exp", "ind_exp"):
        assert (dpq.quantile(sample, [0.2, 0.9], **options) == answer).all()
        assert (dpq.quantile(batches, [0.2, 0.9], **options) == answer).all()


def test_intervals_sums_and_means_of_times():
    estimate = dpq.median(RECORDS, epsilon=1.0, bounds=DAYS, rng=1, confidence=0.9)
    assert estimate.low <= estimate.value <= estimate.high
    assert re.fullmatch(
        r"2020-\d\d-\d\d \[20.*, 20.*\]  \(90% interval for the sample\)", str(estimate)
    )
    clip = dict(lower=DAYS[0], upper=DAYS[1], q=None)
    mean = dpq.mean(RECORDS, epsilon=50.0, rng=1, **clip)
    true = RECORDS.astype("M8[us]").view(np.int64).mean()
    assert abs(mean.astype(np.int64) - true) < 86_400e6
    spans = np.array([100, 200, 600], dtype="m8[s]").repeat(100)
    total = dpq.sum(spans, epsilon=50.0, upper=np.timedelta64(20, "m"), q=None, rng=1)
    assert total.dtype.kind == "m" and abs(total - spans.sum()) < np.timedelta64(5, "m")
    assert isinstance(
        dpq.mean(spans, epsilon=1.0, resolution=dt.timedelta(seconds=1)), dt.timedelta
    )
    with pytest.raises(TypeError, match="sum must be of numbers or durations, got times"):
        dpq.sum(RECORDS, epsilon=1.0, **clip)


def test_count_takes_whatever_is_there_or_missing():
    same = {
        dpq.count(column, epsilon=1.0, rng=1)
        for column in (
            RECORDS,
            RECORDS.astype(object),
            pd.Series([*RECORDS, pd.NaT]),
            pl.Series([*RECORDS.tolist(), None]),
            np.ones(RECORDS.size),
            [*(RECORDS - DAYS[0]).tolist(), None, float("nan")],
        )
    }
    assert len(same) == 1
    assert dpq.reference.count([*RECORDS, None], epsilon=1.0, rng=1) in same


def test_curves_and_trees_of_times():
    curve = dpq.cdf(RECORDS, epsilon=1.0, bounds=DAYS, rng=1)
    middle = curve.quantile(0.5)
    assert middle.dtype == "M8[D]" and curve.cdf(middle) >= 0.5 > curve.cdf(
        middle - np.timedelta64(1, "D")
    )
    assert curve.count(DAYS[0], middle) == pytest.approx(
        curve.total * curve.cdf(middle - np.timedelta64(1, "D"))
    )
    assert curve.to_frame()["x"].dtype.kind == "M"
    assert curve.ks(curve) == 0.0 and curve.ks(RECORDS) < 0.2
    with pytest.raises(ValueError, match="functions must have the same unit"):
        curve.ks(dpq.cdf(np.arange(366.0), epsilon=1.0, bounds=(0, 366), resolution=1))
    half = dict(bounds=DAYS, height=2, branching=20)
    parts = [dpq.PartialTree.of(part, **half) for part in (RECORDS[:99], RECORDS[99:])]
    tree = parts[0].merge(parts[1]).release(epsilon=1.0, rng=1)
    assert tree.quantile([0.5]).dtype == "M8[D]"
    low, high = tree.quantile_confint(0.5)
    assert low <= tree.quantile(0.5) <= high
    assert tree.count_confint(*DAYS)[0] <= tree.count(*DAYS) <= tree.count_confint(*DAYS)[1]
    assert dpq.AggTree.of(RECORDS, epsilon=1.0, bounds=DAYS, rng=1).first_passage(0.9) > middle
    with pytest.raises(ValueError, match="trees must have the same bounds, height, branching, lat"):
        parts[0].merge(
            dpq.PartialTree.of([1.0], bounds=(0, 366), resolution=1, height=2, branching=20)
        )
    with pytest.raises(TypeError, match="x must be one of times without a zone, as its peers, got"):
        curve.cdf(3.0)


SECOND = 10**9


@pytest.mark.parametrize(
    "extent, step",
    [
        (1, 1),
        (10**6, 1),
        (10**9, 10**3),
        (3 * SECOND, 10**3),
        (3600 * SECOND, 10**6),
        (366 * 86_400 * SECOND, 60 * SECOND),
        (100 * 366 * 86_400 * SECOND, 3600 * SECOND),
        # from half a million steps on
        *((k * SECOND * 500_000, k * SECOND) for k in (1, 10, 60, 600, 3_600, 36_000, 86_400)),
        (864_000 * SECOND * 500_000, 864_000 * SECOND),
        (36_000 * SECOND * 500_000 - 1, 3_600 * SECOND),
    ],
)
def test_default_steps_are_about_a_millionth_of_the_range(extent, step):
    assert default_step(extent) == step


def test_ends_of_a_clip_have_steps_of_a_second():
    """As they do by themselves; it is bounds that have a millionth of their range."""
    assert unit_of(dict(lower=pd.Timedelta(0), upper=pd.Timedelta(90, "D"))).step == SECOND
    assert unit_of(dict(bounds=(pd.Timedelta(0), pd.Timedelta(90, "D")))).step == 10 * SECOND


def test_public_times_are_numbers_one_by_one_or_together():
    days = unit_of(dict(bounds=DAYS, resolution=np.timedelta64(1, "D")))
    later = DAYS[0] + np.timedelta64(3, "D")
    one = days.points("lower", later)
    assert type(one) is float and one == 3.0
    assert days.points("lower", [DAYS[0], later]).tolist() == [0.0, 3.0]


def test_times_beyond_64_bits_are_none():
    late = unit_of(dict(bounds=(np.datetime64("2200-01-01", "ns"), np.datetime64("2200-01-02"))))
    late = dataclasses.replace(late, step=SECOND)
    year = 366.0 * 86_400
    assert np.isnat(late.restored(100 * year))
    assert late.restored(-100 * year) == np.datetime64("2099-10-17")


BAD = {
    "mixed kinds": (dict(bounds=(DAYS[0], SPANS[1])), TypeError, "bounds[1] must be one of times"),
    "a time and a number": (
        dict(bounds=(DAYS[0], 3.0)),
        TypeError,
        "bounds[1] must be one of times",
    ),
    "a number and a time": (
        dict(bounds=(0.0, SPANS[1])),
        TypeError,
        "bounds[0] must be one of dur",
    ),
    "zones": (
        dict(bounds=(DAYS[0], dt.datetime(2021, 1, 1, tzinfo=BERLIN))),
        TypeError,
        "bounds[1] must be one of times without a zone",
    ),
    "no time": (
        dict(bounds=(DAYS[0], np.datetime64("NaT", "ns"))),
        TypeError,
        "bounds[1] must be one of",
    ),
    "months": (
        dict(bounds=(DAYS[0], DAYS[1]), resolution=np.timedelta64(1, "M")),
        TypeError,
        "resolution must be a duration where bounds are times",
    ),
    "a number for a step": (
        dict(bounds=DAYS, resolution=1.0),
        TypeError,
        "resolution must be a dur",
    ),
    "a time for a step": (
        dict(bounds=DAYS, resolution=DAYS[0]),
        TypeError,
        "resolution must be a du",
    ),
    "no step": (
        dict(bounds=DAYS, resolution=np.timedelta64(0, "s")),
        ValueError,
        "resolution must be positive where records are times",
    ),
    "a span for numbers": (
        dict(bounds=(0, 1), resolution=SPANS[1]),
        TypeError,
        "bounds[0] must be",
    ),
    "a clip that is no span": (
        dict(lower=5, upper=SPANS[1]),
        TypeError,
        "lower must be one of durations",
    ),
    "falling": (dict(bounds=DAYS[::-1]), ValueError, "bounds must be finite with low < high"),
    "a prior": (dict(bounds=DAYS, prior="log"), TypeError, "prior must be 'uniform' where records"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("x", [RECORDS, [], [1.0]], ids=["times", "none", "numbers"])
def test_public_times_are_refused_whatever_the_records_are(name, x):
    options, error, message = BAD[name]
    with pytest.raises(error, match=r"^" + re.escape(message)):
        dpq.median(x, epsilon=1.0, **options)


@pytest.mark.parametrize(
    "x",
    [np.arange(3.0), [1, 2], ["a"], SPANS, np.array(SPANS), pd.Series([1, 2]), pl.Series(["a"])],
    ids=lambda x: f"{type(x).__module__}.{type(x).__name__}",
)
def test_columns_of_another_unit_are_refused(x):
    with pytest.raises(TypeError, match="x must hold times without a zone, got"):
        dpq.median(x, epsilon=1.0, bounds=DAYS)


def test_times_are_exact():
    stamp = pd.Timestamp("2020-07-01 12:00:00.123456789", tz="Asia/Tokyo")
    assert Time.of(stamp).nanoseconds == stamp.value
    assert Time.of(stamp.to_pydatetime(warn=False)).nanoseconds == stamp.value // 1000 * 1000
    assert Time.of(dt.date(1969, 12, 31)).nanoseconds == -86_400 * 10**9
    assert Time.of(np.timedelta64(3, "W")).nanoseconds == 21 * 86_400 * 10**9
    assert Time.of(np.datetime64("2020")).nanoseconds == Time.of(dt.date(2020, 1, 1)).nanoseconds
    assert Time.of(pd.Timedelta(5)).nanoseconds == 5
    assert Time.of(pa.MonthDayNano([0, 2, 5])).nanoseconds == 2 * 86_400 * 10**9 + 5
    assert Time.of(pa.MonthDayNano([1, 2, 5])) is None
    for value in (3.0, None, "2020", pd.NaT, np.datetime64("NaT", "ns"), np.timedelta64(1, "Y")):
        assert Time.of(value) is None


FAR = np.array(["9999999-01-01"] * 50, dtype="M8[s]")


@pytest.mark.parametrize(
    "lower",
    [
        dt.datetime(2020, 1, 1),
        dt.date(2020, 1, 1),
        dt.datetime(2020, 1, 1, tzinfo=ZoneInfo("Asia/Kathmandu")),
        pd.Timestamp("2020-01-01"),
        pd.Timestamp("2020-01-01", tz="Asia/Kathmandu"),
        np.datetime64("2020-01-01"),
        dt.timedelta(1),
        pd.Timedelta(1, "D"),
    ],
    ids=repr,
)
def test_answers_that_no_type_has_are_none(lower):
    """Where no upper bound is given, records decide how far an answer is."""
    x = pd.Series(FAR - np.datetime64(0, "s") if hasattr(lower, "days") else FAR)
    if getattr(lower, "tzinfo", None) is not None:
        x = x.dt.tz_localize("UTC")
    options = dict(epsilon=9.0, lower=lower, beta=1.5, rng=1)
    assert pd.isna(dpq.unbounded_quantile(x, 0.9, **options))
    assert pd.isna(dpq.unbounded_quantile(x, [0.5, 0.9], **options)).all()


@pytest.mark.parametrize("kind", ["M8[Y]", "M8[M]", "M8[7Y]"])
def test_years_and_months_of_any_size_are_in_their_order(kind):
    ends = [-(2**63) + 1, -(10**16), -5_000, 0, 50, 10**16, 2**63 - 1]
    times = np.array(ends).view(kind)
    made = unit_of(dict(bounds=DAYS))
    numbers = made.numbers_of(times)
    assert (np.diff(numbers) >= 0.0).all()
    assert (numbers[:3] < -(10.0**5)).all() and (numbers[-2:] > 10.0**13).all()
    exact = [made.number_of(Time.of(time)) for time in times]
    assert (np.diff(exact) > 0.0).all()
    assert exact[2:5] == numbers[2:5].tolist()
    near = np.array([-9_000, -1, 0, 7, 4_801]).view("M8[M]")
    assert [Time.of(time).nanoseconds // (86_400 * 10**9) for time in near] == near.astype(
        "M8[D]"
    ).astype(int).tolist()


@pytest.mark.parametrize("zone", [None, "Asia/Kathmandu"])
def test_scalars_of_arrow_are_times_of_any_year(zone):
    ticks = np.array([-(2**63) + 1, -62_167_305_600, 1_600_000_000, 253_402_300_800, 2**63 - 1])
    column = pa.array(ticks).view(pa.timestamp("s", zone))
    bounds = (dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1))
    if zone is not None:
        bounds = tuple(end.replace(tzinfo=dt.timezone.utc) for end in bounds)
    made = unit_of(dict(bounds=bounds))
    expected = as_column(Timed(column, made))
    items = as_column(Timed([*column, None], made))
    assert np.array_equal(np.clip(items[:-1], -1e16, 1e16), np.clip(expected, -1e16, 1e16))
    lengths = pa.array(ticks).view(pa.duration("s"))
    made = unit_of(dict(bounds=(dt.timedelta(0), dt.timedelta(9))))
    expected = as_column(Timed(lengths, made))
    assert np.array_equal(as_column(Timed(list(lengths), made)), expected)
    with pytest.raises(TypeError, match=r"^x must hold real numbers, got TimestampScalar: bounds"):
        as_column(list(column))


# Texts of public arguments, and what they stand for.
TEXTS = {
    "2024-02-29": np.datetime64("2024-02-29"),
    "0001-01-01": np.datetime64("0001-01-01"),
    "9999-12-31": np.datetime64("9999-12-31"),
    "2024-02-29T07:30": np.datetime64("2024-02-29T07:30"),
    "2024-02-29 07:30:05.25": np.datetime64("2024-02-29T07:30:05.250"),
    "2024-02-29T07:30:05.123456789": np.datetime64("2024-02-29T07:30:05.123456789"),
    "2024-02-29T07:30Z": dt.datetime(2024, 2, 29, 7, 30, tzinfo=dt.timezone.utc),
    "2024-02-29T07:30:01-0330": dt.datetime(
        2024, 2, 29, 7, 30, 1, tzinfo=dt.timezone(-dt.timedelta(hours=3, minutes=30))
    ),
    "1h": np.timedelta64(1, "h"),
    "15min": np.timedelta64(15, "m"),
    "1 day": np.timedelta64(1, "D"),
    "D": np.timedelta64(1, "D"),
    "2W": np.timedelta64(14, "D"),
    "1.5h": np.timedelta64(90, "m"),
    "250ms": np.timedelta64(250, "ms"),
    "3us": np.timedelta64(3, "us"),
    "7ns": np.timedelta64(7, "ns"),
    "-30s": np.timedelta64(-30, "s"),
    "0s": np.timedelta64(0, "D"),
    "PT15M": np.timedelta64(15, "m"),
    "P1DT12H": np.timedelta64(36, "h"),
    "-PT0.5S": np.timedelta64(-500, "ms"),
    "P2W": np.timedelta64(14, "D"),
}
NO_TIMES = (
    *("", " ", "5", "1e3", "nan", "NaT", "now", "today", "2024", "2024-01", "20240101", "24-01-01"),
    *("2024-02-30", "2024-13-01", "2024-01-01T25:00", "2024-01-01T10", "0000-01-01"),
    *("2024-01-01T10:00+25:00", "2024-01-01T10:00:00.000000001Z", " 2024-01-01", "2024-01-01\n"),
    *("1M", "1m", "1Y", "1 month", "1hh", "h1", "1.h", "1,5h", "0.1ns", "1e3s", "99999999999D"),
    *("P", "PT", "P1Y", "P1M", "P1DT", "PT1.5H", "\u0663h", "\u0662\u0660\u0662\u0664-01-01"),
)


@pytest.mark.parametrize("text", TEXTS)
def test_texts_of_times_and_durations(text):
    found, expected = of_text(text), TEXTS[text]
    assert found == expected and type(found) is type(expected)
    assert getattr(found, "tzinfo", None) == getattr(expected, "tzinfo", None)
    assert Time.of(found) == Time.of(expected)


@pytest.mark.parametrize("text", NO_TIMES)
def test_other_texts_are_no_times(text):
    assert of_text(text) is text
    with pytest.raises(TypeError, match=r"^bounds\[0\] must be "):
        dpq.median(RECORDS, epsilon=1.0, bounds=(text, "2024-01-01"))
    with pytest.raises(TypeError, match=r"^resolution must be a "):
        dpq.median(RECORDS, epsilon=1.0, bounds=DAYS, resolution=text)


SPANS_OF = RECORDS - RECORDS.min()
IN_WORDS = {
    "quantile": lambda x, **more: dpq.quantile(x, [0.2, 0.5], **more),
    "median, interval": lambda x, **more: dpq.median(x, confidence=0.9, **more),
    "percentile": lambda x, **more: dpq.percentile(x, 50, **more),
    "joint_exp": lambda x, **more: dpq.joint_exp(x, [0.2, 0.5], **more),
    "ind_exp": lambda x, **more: dpq.ind_exp(x, 0.5, **more),
    "approx_quantiles": lambda x, **more: dpq.approx_quantiles(x, [0.2, 0.5], **more),
    "two_stage": lambda x, **more: dpq.two_stage(x, [0.2, 0.5], **more),
    "agg_tree": lambda x, **more: dpq.agg_tree(x, [0.2, 0.5], **more),
    "AggTree": lambda x, **more: dpq.AggTree.of(x, **more).quantile(0.5),
    "cdf": lambda x, **more: dpq.cdf(x, **more).quantile([0.2, 0.5]),
    "mean": lambda x, **more: dpq.mean(x, **more),
    "quantile_by": lambda x, **more: (
        dpq.quantile_by(x, np.arange(x.size) % 2, 0.5, groups=[0, 1], **more).values
    ),
    "mean_by": lambda x, **more: (
        dpq.mean_by(x, np.arange(x.size) % 2, groups=[0, 1], **more).values
    ),
    "Sample": lambda x, bounds, resolution, **more: dpq.median(
        dpq.Sample.of(x, bounds, resolution=resolution), **more
    ),
    "batches": lambda x, bounds, resolution, **more: dpq.median(
        dpq.Sample.from_batches(lambda: [x], bounds, resolution=resolution), **more
    ),
    "describe": lambda x, bounds, **more: dpq.describe(
        {"x": x}, bounds={"x": bounds}, **more
    ).to_dict("list"),
}


@pytest.mark.parametrize("name", IN_WORDS)
@pytest.mark.parametrize(
    ("x", "bounds", "resolution"),
    [
        (RECORDS, ("2020-01-01", "2021-01-01"), "1h"),
        (RECORDS, ("2020-01-01T00:00", np.datetime64("2021-01-01")), "PT12H"),
        (SPANS_OF, ("0s", "400D"), "15min"),
    ],
)
def test_texts_are_taken_where_times_are(name, x, bounds, resolution):
    asked, common = IN_WORDS[name], dict(epsilon=1.0, rng=1)
    of_texts = asked(x, bounds=bounds, resolution=resolution, **common)
    ends = tuple(TEXTS.get(end, of_text(end)) for end in bounds)
    of_times = asked(x, bounds=ends, resolution=of_text(resolution), **common)
    if isinstance(of_times, dict):
        assert of_texts == of_times
    else:
        for one, other in zip(np.atleast_1d(of_texts), np.atleast_1d(of_times), strict=True):
            assert one == other and type(one) is type(other)


def test_ends_of_searches_and_clips_are_texts_too():
    common = dict(epsilon=1.0, rng=1)
    ends = dict(lower=DAYS[0], upper=DAYS[1])
    texts = dict(lower="2020-01-01", upper="2021-01-01")
    for function in (dpq.unbounded_quantile, lambda x, q, **more: dpq.mean(x, **more)):
        found = function(RECORDS, 0.5, resolution="1D", **texts, **common)
        assert found == function(RECORDS, 0.5, resolution=np.timedelta64(1, "D"), **ends, **common)
    total = dpq.sum(SPANS_OF, bounds=("0s", "400D"), **common)
    assert total == dpq.sum(
        SPANS_OF, bounds=(np.timedelta64(0, "D"), np.timedelta64(400, "D")), **common
    )
    released = dpq.cdf(RECORDS, bounds=DAYS, **common)
    assert released.cdf("2020-07-01") == released.cdf(np.datetime64("2020-07-01"))


def test_records_of_text_stay_refused():
    with pytest.raises(TypeError, match=r"^x must hold times without a zone, got str$"):
        dpq.median(["2020-03-01"], epsilon=1.0, bounds=("2020-01-01", "2021-01-01"))


def test_numbers_as_text_are_refused():
    for bounds in (("0", "9"), ("0", 9)):
        with pytest.raises(TypeError, match=r"^bounds\[0\] must be a real number, got '0'$"):
            dpq.median([1.0], epsilon=1.0, bounds=bounds)
    with pytest.raises(TypeError, match=r"^resolution must be a real number, got '1'$"):
        dpq.median([1.0], epsilon=1.0, bounds=(0, 9), resolution="1")
    with pytest.raises(TypeError, match=r"^bounds\[0\] must be one of durations, as its peers, g"):
        dpq.median([1.0], epsilon=1.0, bounds=(0, 9), resolution="1h")


def test_numbers_are_known_at_a_glance():
    x = np.ones(3)
    for numbers in ({}, dict(bounds=(0, 1.0)), dict(lower=None, upper=3, resolution=0.5)):
        assert are_numbers(x, numbers)
    assert not are_numbers([1.0], dict(bounds=(0, 1)))
    ends = DAYS[0], "2020-01-01", dt.date(2020, 1, 1), dt.timedelta(1), np.float64(1.0)
    for end in ends:
        for other in (
            dict(bounds=(end, 1)),
            dict(bounds=(1, end)),
            dict(lower=end),
            dict(upper=end),
            dict(resolution=end),
        ):
            assert not are_numbers(x, other)
    for bounds in ([0, 1], (0,), (0, 1, 2), DAYS[0]):
        assert not are_numbers(x, dict(bounds=bounds))


def test_what_is_no_column_of_times_is_refused_before_the_charge():
    accountant = dpq.privacy.Accountant(1.0)
    frame = pd.DataFrame(dict(a=RECORDS, b=RECORDS))
    for x, error in ((frame, ValueError), (RECORDS[:, None], ValueError), ("abc", TypeError)):
        for options in (dict(bounds=DAYS), dict(bounds=DAYS, method="joint_exp")):
            with pytest.raises(error, match=r"^x must be (a )?one"):
                dpq.quantile(x, 0.5, epsilon=0.1, accountant=accountant, **options)
        with pytest.raises(error, match=r"^x must be (a )?one"):
            dpq.count(x, epsilon=0.1, accountant=accountant)
    assert accountant.history == ()
