"""Values of every type that a column may have, and what holds them.

The least and the greatest ones of each type, and all that is strange: what is raised or warned may
not depend on which of them are there. `tests/test_data_independence.py` goes through all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

Make = Callable[[list[Any]], Any]

# A zone as far from UTC as any, to the microsecond.
ODD = timezone(timedelta(hours=23, minutes=59, seconds=59, microseconds=999_999))


class Kind(NamedTuple):
    """Values of one type.

    Attributes
    ----------
    usual : list
    hostile : list
        The least and the greatest ones of the type, and all that is strange.
    containers : dict
        What makes columns of such values, by name.
    bounds, resolution
        Of records of this type.
    """

    usual: list[Any]
    hostile: list[Any]
    containers: dict[str, Make]
    bounds: tuple[Any, Any] = (-10.0, 10.0)
    resolution: Any = 0.5


def of_numpy(dtype: Any) -> Make:
    return lambda values: np.array(values, dtype=dtype)


def of_pandas(dtype: Any) -> Make:
    return lambda values: pd.Series(values, dtype=dtype)


def of_polars(dtype: Any) -> Make:
    return lambda values: pl.Series(values, dtype=dtype)


def of_arrow(dtype: Any) -> Make:
    return lambda values: pa.array(values, type=dtype)


def in_pandas(make: Make) -> Make:
    """A column of Arrow in a series."""
    return lambda values: pd.Series(pd.arrays.ArrowExtensionArray(make(values)))


OBJECTS: dict[str, Make] = {
    "list": list,
    "NumPy, object": of_numpy(object),
    "pandas, object": of_pandas(object),
}


def encoded(make: Make) -> dict[str, Make]:
    """Dictionaries of Arrow and categories of pandas."""
    return {
        "Arrow, dictionary": lambda values: make(values).dictionary_encode(),
        "pandas, category": lambda values: pd.Series(values).astype("category"),
    }


def integers(bits: int, signed: bool) -> Kind:
    name = f"{'' if signed else 'u'}int{bits}"
    ends = [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] if signed else [0, 2**bits - 1]
    nullable = f"{'' if signed else 'U'}Int{bits}"
    polars = of_polars(getattr(pl, nullable))
    if bits > 64:
        return Kind([1, 2, 5, 3], [*ends, 2**63, 2**64], OBJECTS | {"polars": polars})
    return Kind(
        [1, 2, 5, 3],
        ends,
        OBJECTS
        | {
            "NumPy": of_numpy(name),
            "NumPy, swapped": of_numpy(np.dtype(name).newbyteorder()),
            "pandas": of_pandas(nullable),
            "pandas, Arrow": of_pandas(f"{name}[pyarrow]"),
            "polars": polars,
            "Arrow": of_arrow(getattr(pa, name)()),
        }
        | encoded(of_arrow(getattr(pa, name)())),
    )


def viewed(dtype: str) -> Make:
    return lambda values: np.array(values, dtype=np.int64).view(dtype)


def of_ticks(unit: str, zone: str | None = None) -> Kind:
    """Times in units since 1970."""
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    numbers = [day * 86_400 * second for day in (18_262, 18_263, 18_266, 18_264)]
    years = [day * 86_400 * second for day in (-719_529, 2_932_897, -2_500_000)]  # -1, 10000, -4875
    far = [2**63 - 1, -(2**63) + 1, *(number for number in years if abs(number) < 2**63)]
    plain = viewed(f"M8[{unit}]")
    arrow = lambda values: pa.array(values, type=pa.int64()).view(pa.timestamp(unit, zone))  # noqa: E731
    columns: dict[str, Make] = {
        "Arrow": arrow,
        "list of Arrow": lambda values: list(arrow(values)),
        "pandas, Arrow": in_pandas(arrow),
    }
    if zone is None:
        columns |= {
            "NumPy": plain,
            "NumPy, swapped": lambda values: plain(values).astype(f">M8[{unit}]"),
            "list of NumPy": lambda values: list(plain(values)),
            "pandas": lambda values: pd.Series(plain(values)),
        }
    elif not zone.startswith("+"):
        columns["pandas"] = lambda values: (
            pd.Series(plain(values)).dt.tz_localize("UTC").dt.tz_convert(zone)
        )
    if unit != "s" and not (zone or "").startswith("+"):
        columns["polars"] = lambda values: pl.Series(values, dtype=pl.Int64).cast(
            pl.Datetime(unit, zone)
        )
    start = datetime(2020, 1, 1, tzinfo=None if zone is None else timezone.utc)
    return Kind(numbers, far, columns, (start, start + timedelta(8)), timedelta(hours=1))


def of_days(numbers: list[Any], far: list[Any], columns: dict[str, Make]) -> Kind:
    return Kind(numbers, far, columns, (date(2020, 1, 1), date(2020, 1, 9)), timedelta(1))


def of_lengths(unit: str) -> Kind:
    """Durations."""
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    arrow = lambda values: pa.array(values, type=pa.int64()).view(pa.duration(unit))  # noqa: E731
    columns: dict[str, Make] = {
        "NumPy": viewed(f"m8[{unit}]"),
        "list of NumPy": lambda values: list(viewed(f"m8[{unit}]")(values)),
        "pandas": lambda values: pd.Series(viewed(f"m8[{unit}]")(values)),
        "Arrow": arrow,
        "list of Arrow": lambda values: list(arrow(values)),
        "pandas, Arrow": in_pandas(arrow),
    }
    if unit != "s":
        columns["polars"] = lambda values: pl.Series(values, dtype=pl.Int64).cast(pl.Duration(unit))
    numbers = [days * 86_400 * second for days in (1, 2, 5, 3)]
    ends = [2**63 - 1, -(2**63) + 1, 0]
    return Kind(numbers, ends, columns, (timedelta(0), timedelta(10)), timedelta(hours=1))


def strange_decimals(digits: int) -> list[Decimal]:
    return [Decimal("9" * digits), Decimal("-" + "9" * digits), Decimal(0)]


FLOATS = [math.inf, -math.inf, math.nan, 5e-324, -5e-324, 2.2e-308, 1.7976931348623157e308, -0.0]
FLOATS += [2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**64, 1e300]
DATES = [date(2020, 1, day) for day in (1, 2, 5, 3)]
MOMENTS = [datetime(2020, 1, day) for day in (1, 2, 5, 3)]
ZONES = (timezone.utc, ODD, -1 * timedelta(hours=23, minutes=59), "Asia/Kathmandu", "America/Lima")


def in_zone(moment: datetime, zone: Any) -> datetime:
    if isinstance(zone, timedelta):
        zone = timezone(zone)
    return moment.replace(tzinfo=ZoneInfo(zone) if isinstance(zone, str) else zone)


def without_surrogates(make: Make) -> Make:
    """Of strings that UTF-8 has."""
    return lambda values: make([value.replace("\ud800", "?") for value in values])


KINDS: dict[str, Kind] = {
    "floats": Kind(
        [1.0, 2.0, 5.5, 3.0],
        [*FLOATS, -1.7976931348623157e308],
        OBJECTS
        | {
            "NumPy": of_numpy(np.float64),
            "NumPy, longdouble": of_numpy(np.longdouble),
            "pandas": of_pandas(np.float64),
            "pandas, nullable": of_pandas("Float64"),
            "pandas, Arrow": of_pandas("double[pyarrow]"),
            "polars": of_polars(pl.Float64),
            "Arrow": of_arrow(pa.float64()),
        }
        | encoded(of_arrow(pa.float64())),
    ),
    "short floats": Kind(
        [1.0, 2.0, 5.5, 3.0],
        [math.inf, -math.inf, math.nan, 1e-45, -1e-45, -0.0, 3.4028235e38],
        {
            "NumPy": of_numpy(np.float32),
            "polars": of_polars(pl.Float32),
            "Arrow": of_arrow(pa.float32()),
        },
    ),
    **{
        f"{'' if signed else 'u'}int{bits}": integers(bits, signed)
        for bits in (8, 64, 128)
        for signed in (True, False)
    },
    "integers of any size": Kind([1, 2, 5, 3], [10**400, -(10**400)], OBJECTS),
    "fractions": Kind(
        [Fraction(1), Fraction(5, 2)],
        [Fraction(10**400), Fraction(1, 10**400), Fraction(-(10**400), 3)],
        OBJECTS,
    ),
    "decimals": Kind(
        [Decimal(1), Decimal(2), Decimal("5.5")],
        [
            *map(Decimal, ("NaN", "-sNaN", "Infinity", "-Infinity", "1E+400", "1E-400", "-0")),
            *map(Decimal, ("1E+999999", "1E-999999", "9" * 76)),
        ],
        OBJECTS,
    ),
    "decimals of 38 digits": Kind(
        [Decimal(1), Decimal(2), Decimal(5)],
        strange_decimals(38),
        {
            "polars": of_polars(pl.Decimal(38, 0)),
            "Arrow": of_arrow(pa.decimal128(38, 0)),
            "pandas, Arrow": in_pandas(of_arrow(pa.decimal128(38, 0))),
        },
    ),
    "decimals of 76 digits": Kind(
        [Decimal(1), Decimal(2), Decimal(5)],
        strange_decimals(76),
        {
            "Arrow": of_arrow(pa.decimal256(76, 0)),
            "pandas, Arrow": in_pandas(of_arrow(pa.decimal256(76, 0))),
        },
    ),
    "booleans": Kind(
        [True, True],
        [False],
        OBJECTS
        | {
            "NumPy": of_numpy(bool),
            "pandas": of_pandas("boolean"),
            "polars": of_polars(pl.Boolean),
            "Arrow": of_arrow(pa.bool_()),
        },
    ),
    "dates": of_days(
        DATES,
        [date.min, date.max],
        OBJECTS
        | {
            "NumPy": of_numpy("M8[D]"),
            "pandas": lambda values: pd.Series(np.array(values, dtype="M8[s]")),
            "polars": of_polars(pl.Date),
            "Arrow": of_arrow(pa.date32()),
            "Arrow, date64": of_arrow(pa.date64()),
        },
    ),
    "days since 1970": of_days(
        [18_262, 18_263, 18_266],
        [-(2**31), 2**31 - 1, -719_529, 2_932_897, -2_500_000],
        {
            "NumPy": viewed("M8[D]"),
            "polars": lambda values: pl.Series(values, dtype=pl.Int32).cast(pl.Date),
            "Arrow": lambda values: pa.array(values, type=pa.int32()).view(pa.date32()),
            "list of Arrow": lambda values: list(
                pa.array(values, type=pa.int32()).view(pa.date32())
            ),
            "pandas, Arrow": in_pandas(
                lambda values: pa.array(values, type=pa.int32()).view(pa.date32())
            ),
        },
    ),
    **{
        f"NumPy's {name}": of_days(
            numbers,
            [2**63 - 1, -(2**63) + 1, numbers[0] + 10_000 * per_year, -5_000 * per_year],
            {
                "NumPy": viewed(f"M8[{unit}]"),
                "list": lambda values, unit=unit: list(viewed(f"M8[{unit}]")(values)),
            },
        )
        for name, unit, per_year, numbers in (
            ("years", "Y", 1, [50, 50]),
            ("months", "M", 12, [600, 600]),
            ("weeks", "W", 53, [2_610, 2_609]),
            ("hours", "h", 8_766, [438_288, 438_312]),
        )
    },
    **{f"times in {unit}": of_ticks(unit) for unit in ("s", "ms", "us", "ns")},
    **{
        f"times in {unit} and a zone, {zone}": of_ticks(unit, zone)
        for unit, zone in (
            ("s", "Asia/Kathmandu"),
            ("us", "Asia/Kathmandu"),
            ("ns", "UTC"),
            ("ms", "+23:59"),
        )
    },
    **{f"durations in {unit}": of_lengths(unit) for unit in ("s", "ms", "us", "ns")},
    "times of day": Kind(
        [time(8), time(9, 30)],
        [time.min, time.max, time(8, 0, 0, 1)],
        OBJECTS
        | {
            "pandas, Arrow": of_pandas(pd.ArrowDtype(pa.time64("us"))),
            "polars": of_polars(pl.Time),
            "Arrow": of_arrow(pa.time64("us")),
        }
        | encoded(of_arrow(pa.time64("us"))),
    ),
    "nanoseconds since midnight": Kind(
        [8 * 3_600 * 10**9, 9 * 3_600 * 10**9],
        [1, 86_400 * 10**9, -1, 2**63 - 1, -(2**63)],
        {
            "Arrow": lambda values: pa.array(values, pa.int64()).view(pa.time64("ns")),
            "Arrow, dictionary": lambda values: (
                pa.array(values, pa.int64()).view(pa.time64("ns")).dictionary_encode()
            ),
        },
    ),
    "datetimes": Kind(
        MOMENTS,
        [datetime.min, datetime.max],
        OBJECTS | {"Arrow": of_arrow(pa.timestamp("us")), "polars": of_polars(pl.Datetime("us"))},
        (MOMENTS[0], datetime(2020, 1, 9)),
        timedelta(hours=1),
    ),
    "datetimes with zones": Kind(
        [in_zone(moment, timezone.utc) for moment in MOMENTS],
        [in_zone(end, zone) for zone in ZONES for end in (datetime.min, datetime.max)],
        OBJECTS,
        (in_zone(MOMENTS[0], timezone.utc), in_zone(datetime(2020, 1, 9), timezone.utc)),
        timedelta(hours=1),
    ),
    "timedeltas": Kind(
        [timedelta(days) for days in (1, 2, 5, 3)],
        [timedelta.min, timedelta.max, timedelta(0)],
        OBJECTS,
        (timedelta(0), timedelta(10)),
        timedelta(hours=1),
    ),
    "periods": Kind(
        [pd.Period(f"2020-0{month}", "M") for month in (1, 2, 5, 3)],
        [pd.Period(ordinal=end, freq="M") for end in (2**63 - 1, -(2**63) + 1, -60_000, 10**6)],
        OBJECTS
        | {
            "pandas": of_pandas("period[M]"),
            "pandas, category": lambda values: pd.Series(values).astype("category"),
            "pandas, index": pd.PeriodIndex,
        },
    ),
    "periods of any length": Kind(
        [pd.Period("2020-01", "M"), pd.Period("2020-05", "M")],
        [pd.Period(ordinal=2**62, freq=each) for each in ("Y", "Q-NOV", "2D", "h", "ns")],
        OBJECTS,
    ),
    "intervals": Kind(
        [pd.Interval(1.0, 2.0), pd.Interval(2.0, 5.0)],
        [
            pd.Interval(-math.inf, math.inf),
            pd.Interval(-0.0, 5e-324),
            pd.Interval(-1.7976931348623157e308, 1.7976931348623157e308),
        ],
        OBJECTS
        | {
            "pandas": of_pandas("interval[float64, right]"),
            "pandas, category": lambda values: pd.Series(values).astype("category"),
            "pandas, index": pd.IntervalIndex,
        },
    ),
    "intervals of anything": Kind(
        [pd.Interval(1, 2), pd.Interval(2, 5)],
        [
            pd.Interval(1, 2, closed="both"),
            pd.Interval(10**400, 10**401),
            pd.Interval(np.float32(1.0), np.longdouble(2.0)),
            pd.Interval(*(pd.Timestamp(day) for day in ("0001-01-01", "2020-01-01"))),
            pd.Interval(*(pd.Timestamp(day, tz="UTC") for day in ("0001-01-01", "2020-01-01"))),
            pd.Interval(*(pd.Timestamp(np.datetime64(year, "s")) for year in ("-5000", "20000"))),
            pd.Interval(pd.Timedelta(0), pd.Timedelta.max),
        ],
        OBJECTS,
    ),
    "strings": Kind(
        ["1", "2", "5", "3"],
        ["\0", "a\0b", "1\0", "", "\ud800", "\U0010ffff", "x" * 10**6],
        OBJECTS
        | {
            "NumPy": of_numpy(np.str_),
            "NumPy, variable": without_surrogates(of_numpy(np.dtypes.StringDType())),
            "pandas": of_pandas("string[python]"),
            "pandas, Arrow": without_surrogates(of_pandas("string[pyarrow]")),
            "polars": without_surrogates(of_polars(pl.String)),
            "polars, categories": without_surrogates(of_polars(pl.Categorical)),
            "Arrow": without_surrogates(of_arrow(pa.string())),
        }
        | {name: without_surrogates(make) for name, make in encoded(of_arrow(pa.string())).items()},
    ),
}
