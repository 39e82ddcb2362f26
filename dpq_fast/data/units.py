"""Times and durations as numbers: whole steps since an origin, both public.

Mechanisms know numbers only. Where bounds are times, a column becomes numbers of steps as it is
read, and answers become times again. The map is public, increasing and made of public arguments
alone, so it changes neither neighbors nor guarantees.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks

# Lengths in nanoseconds, the finest that is told apart.
TICKS = {"D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9}
TICKS |= {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1, "W": 7 * TICKS["D"]}
# Ticks that answers may have, from the longest.
ANSWERED = ("D", "s", "ms", "us", "ns")
# Default steps beyond a second; below, they are powers of ten.
LONG_STEPS = [seconds * 10**9 for seconds in (1, 10, 60, 600, 3_600, 36_000, 86_400, 864_000)]
SECOND = 10**9
# Integers of 64 bits, but for the one that stands for "not a time".
LARGEST = 2**63 - 1

INSTANTS, DURATIONS = "times", "durations"
# What is in the unit of the records, of released objects.
ANSWERS = ("value", "values", "low", "q1", "median", "q3", "high")
EPOCH = datetime.datetime(1970, 1, 1)
# Times of Arrow by the beginning of their type's name: what they are, and their unit, if it says.
ARROW = {"date32": (INSTANTS, "D"), "date64": (INSTANTS, "ms"), "timestamp": (INSTANTS, None)}
ARROW |= {"duration": (DURATIONS, None)}
# The calendar repeats itself: after so many years or months, that is so many days.
CYCLES, DAYS = {"Y": 400, "M": 4_800}, 146_097
# So many of these cycles are further than int64 has seconds, and their days are within int64.
FARTHEST = 2**40


@dataclass(frozen=True)
class Time:
    """One time or duration, exactly.

    Attributes
    ----------
    kind : {"times", "durations"}
    nanoseconds : int
        Since the beginning of 1970 (of UTC, if there is a zone), or the length.
    tick : str
        Unit of NumPy that it is given in.
    zone : tzinfo or None
    library : {"numpy", "date", "datetime", "pandas"}
        Whose type it is of; "date" for days.
    """

    kind: str
    nanoseconds: int
    tick: str
    zone: datetime.tzinfo | None
    library: str

    @classmethod
    def of(cls, value: Any) -> Time | None:
        """A time of NumPy, pandas or Python; None for anything else, missing times included."""
        if type(value) in (float, int):  # what most are
            return None
        if hasattr(value, "as_py"):
            return cls._of_arrow(value)
        kind = DURATIONS if isinstance(value, (np.timedelta64, datetime.timedelta)) else INSTANTS
        if isinstance(value, (np.datetime64, np.timedelta64)):
            return cls._of_numpy(kind, value, None, "numpy")
        if getattr(value, "months", None) == 0:  # an interval of Arrow, as DuckDB has them
            length = value.days * TICKS["D"] + value.nanoseconds
            return cls(DURATIONS, length, "ns", None, "numpy")
        if not isinstance(value, (datetime.date, datetime.timedelta)):
            return None
        if hasattr(value, "asm8"):  # pandas, whose types are Python's, too
            zone = getattr(value, "tzinfo", None)
            return cls._of_numpy(kind, value.asm8, zone, "pandas")
        if isinstance(value, datetime.timedelta):
            return cls(kind, _microseconds(value) * 1000, "us", None, "datetime")
        if not isinstance(value, datetime.datetime):
            return cls(kind, (value - EPOCH.date()).days * TICKS["D"], "D", None, "date")
        zone, since = value.tzinfo, value.replace(tzinfo=None) - EPOCH
        if zone is not None:
            since -= value.utcoffset() or datetime.timedelta(0)
        return cls(kind, _microseconds(since) * 1000, "us", zone, "datetime")

    @classmethod
    def _of_arrow(cls, scalar: Any) -> Time | None:
        """One of pyarrow, whose times Python may not have."""
        name = str(scalar.type)
        declared = next((each for each in ARROW if name.startswith(each)), None)
        if declared is None:
            return None if name.startswith("dictionary") else cls.of(scalar.as_py())
        if not scalar.is_valid:
            return None
        kind, tick = ARROW[declared]
        tick = tick or scalar.type.unit
        zone = datetime.timezone.utc if getattr(scalar.type, "tz", None) else None
        return cls(kind, scalar.value * TICKS[tick], tick, zone, "numpy")

    @classmethod
    def _of_numpy(
        cls, kind: str, value: Any, zone: datetime.tzinfo | None, library: str
    ) -> Time | None:
        if np.isnat(value):
            return None
        tick, times = np.datetime_data(value.dtype)
        number = int(value.view(np.int64)) * times
        if kind == INSTANTS and tick in CYCLES:
            cycles, rest = divmod(number, CYCLES[tick])
            within = np.array(rest, dtype=f"M8[{tick}]").astype("M8[D]").astype(np.int64)
            number, tick = cycles * DAYS + int(within), "D"
        if tick not in TICKS:
            return None  # months have no fixed length, and "generic" has none at all
        return cls(kind, number * TICKS[tick], tick, zone, library)


# Times of ISO 8601, with a blank for the T if need be, and lengths: one number and its unit, as
# pandas has them, or those of ISO 8601 that are fixed.
_INSTANT = re.compile(
    r"((?!0000)\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)"
    r"(?:(Z)|([+-])(\d\d):?(\d\d))?)?",
    re.ASCII,
)
_LENGTH = re.compile(r"([+-]?)(\d+(?:\.\d+)?)? ?([A-Za-zµ]+)", re.ASCII)
_ISO_LENGTH = re.compile(
    r"([+-]?)P(?=.)(?:(\d+)W)?(?:(\d+)D)?"
    r"(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)
_ISO_TICKS = ("W", "D", "h", "m", "s")
_SPELLED = {
    "W": ("W", "w", "week", "weeks"),
    "D": ("D", "d", "day", "days"),
    "h": ("h", "H", "hour", "hours"),
    "m": ("min", "minute", "minutes"),
    "s": ("s", "S", "sec", "second", "seconds"),
    "ms": ("ms",),
    "us": ("us", "µs"),
    "ns": ("ns",),
}
_TICK_OF = {word: tick for tick, words in _SPELLED.items() for word in words}


def of_text(value: Any) -> Any:
    """A public time or duration that is given as text, as one of NumPy, or of Python with a zone.

    What is no text, or no text of a time, is returned as it is, to be refused as what it is:
    numbers are none.
    """
    if not isinstance(value, str):
        return value
    if found := _INSTANT.fullmatch(value):
        day, clock, utc, *offset = found.groups()
        try:
            time = np.datetime64(day if clock is None else f"{day}T{clock}")
        except ValueError:  # as a 30th of February
            return value
        if utc is None and offset[0] is None:
            return time
        sign, hours, minutes = offset
        east = datetime.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        if east >= datetime.timedelta(days=1) or time != time.astype("M8[us]"):
            return value  # beyond what Python has
        zone = datetime.timezone(-east if sign == "-" else east)
        return time.astype("M8[us]").item().replace(tzinfo=zone)
    if found := _LENGTH.fullmatch(value):
        sign, number, word = found.groups()
        if word not in _TICK_OF:
            return value
        length = Fraction(number or 1) * TICKS[_TICK_OF[word]]
    elif found := _ISO_LENGTH.fullmatch(value):
        sign, *numbers = found.groups()
        length = sum(
            (Fraction(n) * TICKS[t] for n, t in zip(numbers, _ISO_TICKS, strict=True) if n),
            Fraction(0),
        )
    else:
        return value
    if length.denominator != 1 or length > LARGEST:
        return value
    ticks = int(length)
    unit: Any = next(
        tick for tick in ("D", "h", "m", "s", "ms", "us", "ns") if not ticks % TICKS[tick]
    )
    return np.timedelta64(ticks // TICKS[unit] * (-1 if sign == "-" else 1), unit)


def ticks_of(times: NDArray[Any]) -> tuple[NDArray[np.int64], int] | None:
    """Times or durations of NumPy as numbers, and the nanoseconds of each; None without any."""
    unit, each = np.datetime_data(times.dtype)
    if unit not in TICKS:
        return None  # months have no fixed length, and "generic" has none at all
    native = np.asarray(times, dtype=times.dtype.newbyteorder("="))
    return native.view(np.int64), each * TICKS[unit]


def in_days(times: NDArray[Any]) -> NDArray[Any]:
    """Times of NumPy in years or months as days; of years that int64 has no days for, the last."""
    unit, each = np.datetime_data(times.dtype)
    if unit not in CYCLES:
        return times
    most = FARTHEST * CYCLES[unit] // each
    native = np.asarray(times, dtype=times.dtype.newbyteorder("="))
    near = np.clip(native.view(np.int64), -most, most).view(native.dtype).astype("M8[D]")
    return np.where(np.isnat(times), np.datetime64("NaT", "D"), near)


def _microseconds(length: datetime.timedelta) -> int:
    return length // datetime.timedelta(microseconds=1)


@dataclass(frozen=True)
class Unit:
    """What a number stands for: ``origin + number * step``.

    Attributes
    ----------
    kind : {"times", "durations"}
    origin, step : int
        In nanoseconds; the origin since the beginning of 1970, 0 for durations.
    zone : tzinfo or None
        Of answers. Times without a zone are apart from those with one.
    library : str
        Whose type answers are of: that of the bounds.
    tick : str
        Unit that answers are rounded to.
    """

    kind: str
    origin: int
    step: int
    zone: datetime.tzinfo | None
    library: str
    tick: str

    # Columns

    @property
    def words(self) -> str:
        """What a column of it holds, for a message."""
        if self.kind == DURATIONS:
            return DURATIONS
        return f"times {'without' if self.zone is None else 'with'} a zone"

    def numbers_of(self, times: NDArray[Any]) -> NDArray[np.float64]:
        """An array of datetime64 or timedelta64, times of zones as UTC, as numbers of steps.

        Exact where numbers are whole and below 2^53. What is no time is NaN.
        """
        times = in_days(times) if times.dtype.kind == "M" else times
        found = ticks_of(times)
        missing = np.isnat(times)
        if found is None:
            raise TypeError(f"x must hold {self.words} of fixed length, got dtype {times.dtype}")
        ticks, tick = np.ascontiguousarray(found[0]), found[1]
        whole, part = divmod(self.origin, tick)
        if abs(whole) > LARGEST:  # beyond all that the type has
            numbers = np.full(times.shape, -math.copysign(math.inf, whole))
        else:
            since = ticks - whole  # wraps around where it is beyond 64 bits
            wrapped = ((ticks ^ whole) & (ticks ^ since)) < 0
            offsets = since.astype(np.float64)
            if part:
                offsets = offsets * tick - part
                numbers = offsets / self.step
            elif self.step % tick == 0:
                numbers = offsets / (self.step // tick)
            else:
                numbers = offsets * tick / self.step
            numbers[wrapped] = np.where(ticks[wrapped] < 0, -math.inf, math.inf)
        numbers[missing] = math.nan
        return numbers

    def number_of(self, time: Time) -> float:
        """One time of this kind as a number of steps."""
        return float(Fraction(time.nanoseconds - self.origin, self.step))

    def takes(self, kind: str, zoned: bool) -> bool:
        """Whether times of a kind, with or without a zone, are of this unit."""
        return kind == self.kind and zoned == (self.zone is not None)

    # Public arguments

    def end(self, name: str, value: Any) -> float:
        """A public time as a number of steps."""
        time = Time.of(of_text(value))
        if time is None or not self.takes(time.kind, time.zone is not None):
            raise TypeError(f"{name} must be one of {self.words}, as its peers, got {value!r}")
        return self.number_of(time)

    def points(self, name: str, given: Any) -> Any:
        """Public times, one or an array of them, as numbers of steps."""
        if np.ndim(given) == 0 and not isinstance(given, np.ndarray):
            return self.end(name, given)
        array = np.asarray(given)
        if array.dtype.kind in "mM" and self.zone is None:
            if (array.dtype.kind == "m") == (self.kind == DURATIONS):
                return self.numbers_of(array)
        numbers = [self.end(name, value) for value in array.astype(object).ravel().tolist()]
        return np.array(numbers).reshape(array.shape)

    # Answers

    @property
    def of_lengths(self) -> Unit:
        """That of a difference of two of its times."""
        library = "datetime" if self.library == "date" else self.library
        return Unit(DURATIONS, 0, self.step, None, library, self.tick)

    def restored(self, answer: Any) -> Any:
        """An answer in the unit of the bounds: numbers, an estimate, or what knows its `unit`."""
        if hasattr(answer, "unit"):
            answer.unit = self
            return answer
        if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
            names = (name for name in ANSWERS if hasattr(answer, name))
            parts = {name: getattr(answer, name) for name in names}
            given = {name: part for name, part in parts.items() if part is not None}
            return dataclasses.replace(
                answer, **{name: self.restored(part) for name, part in given.items()}
            )
        if isinstance(answer, tuple):
            return tuple(map(self.restored, answer))
        times = self._rounded(np.asarray(answer, dtype=np.float64))
        if self.library == "numpy" or (self.zone is None and times.ndim):
            return times if times.ndim else times[()]
        objects = [self._object(time) for time in times.ravel()]
        if not times.ndim:
            return objects[0]
        together = np.empty(times.shape, dtype=object)
        together.ravel()[:] = objects
        return together

    def _rounded(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        """As datetime64 or timedelta64; NaT for what is none, or not one of 64 bits."""
        tick = TICKS[self.tick]
        with np.errstate(invalid="ignore", over="ignore"):
            whole = np.floor(numbers)
            part = np.rint((numbers - whole) * (self.step / tick))
            ticks = whole * (self.step / tick) + self.origin / tick
            held = np.abs(ticks) < LARGEST
            whole, part = (np.where(held, each, 0.0).astype(np.int64) for each in (whole, part))
        exact = whole * (self.step // tick) + self.origin // tick + part
        letter = "m8" if self.kind == DURATIONS else "M8"
        times = exact.view(f"{letter}[{self.tick}]")
        return np.where(held, times, np.array("NaT", dtype=times.dtype))

    def _object(self, time: Any) -> Any:
        """A time of Python or pandas; none where it has none, as of years beyond 9999."""
        try:
            return self._made(time)
        except (OverflowError, ValueError):
            return self._made(np.array("NaT", dtype=time.dtype)[()])

    def _made(self, time: Any) -> Any:
        if self.library == "pandas":
            pd = _checks.extra("pandas", "times of pandas", "pandas")
            if self.kind == DURATIONS or np.isnat(time):
                return pd.NaT if np.isnat(time) else pd.Timedelta(time)
            stamp = pd.Timestamp(time)
            return stamp if self.zone is None else stamp.tz_localize("UTC").tz_convert(self.zone)
        if np.isnat(time):
            return None
        found = time.astype("m8[us]" if self.kind == DURATIONS else "M8[us]").item()
        if isinstance(found, int):
            raise OverflowError("a time must be one of Python's")
        if self.kind == DURATIONS or self.zone is None:
            return found.date() if self.library == "date" and self.tick == "D" else found
        return found.replace(tzinfo=datetime.timezone.utc).astimezone(self.zone)


class Presence:
    """In place of a unit where records are only counted: 0 for each, NaN for those missing."""

    words = "real numbers, times, durations or text"

    def takes(self, _kind: str, _zoned: bool) -> bool:
        """All times."""
        return True

    def number_of(self, _time: Time) -> float:
        """As `Unit.number_of`."""
        return 0.0

    def numbers_of(self, times: NDArray[Any]) -> NDArray[np.float64]:
        """As `Unit.numbers_of`."""
        return np.where(np.isnat(times), np.nan, 0.0)


def in_unit(unit: Unit | None, answer: Any) -> Any:
    """An answer in the unit of the bounds: as it is where they are numbers."""
    return answer if unit is None else unit.restored(answer)


def real_points(name: str, x: Any, unit: Unit | None) -> NDArray[np.float64]:
    """Public points as numbers, none of them missing."""
    values = _checks.real_array(name, x if unit is None else unit.points(name, x))
    if np.isnan(values).any():
        raise ValueError(f"{name} must not be NaN")
    return values


class Timed:
    """A column of times, not read yet, and the unit that it is to be read in."""

    def __init__(self, column: Any, unit: Unit | Presence) -> None:
        from dpq_fast.data.tables import opened  # whose columns are read in units, too

        self.column = column
        _checks.check_column(opened(column))
        self.unit = unit

    def __len__(self) -> int:
        return len(self.column)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.column)


def untimed(x: Any) -> Any:
    """A column as it was given."""
    return x.column if isinstance(x, Timed) else x


def placed(x: Any, **options: Any) -> tuple[Any, Unit | None, dict[str, Any]]:
    """A column and its public arguments, as numbers.

    Parameters
    ----------
    x : object
        A column, or what knows its `unit`.
    **options
        Public arguments, `bounds`, `lower`, `upper`, `resolution` and `prior` among them, as given.

    Returns
    -------
    x : object
        To be read in the unit.
    unit : Unit or None
        None for numbers.
    options : dict
        For numbers.
    """
    if isinstance(x, Timed):  # by the function that this one is called by
        return x, None, options
    options = of_texts(options)
    own = x.unit if hasattr(type(x), "unit") else None
    if isinstance(own, Unit):
        resolution = options.get("resolution")  # has to be left out, as it has been given
        return x, own, in_numbers(own, options) | {"resolution": resolution}
    unit = unit_of(options)
    if unit is None:
        return x, None, options
    return Timed(x, unit), unit, in_numbers(unit, options)


# The arguments that say where a column lies.
ENDS = ("lower", "upper")


def of_texts(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same public arguments, of which those that say where a column lies are no texts."""
    bounds = options.get("bounds")
    given = {name: of_text(options[name]) for name in (*ENDS, "resolution") if name in options}
    if isinstance(bounds, (tuple, list, np.ndarray)) and len(bounds) == 2:
        if any(isinstance(end, str) for end in bounds):
            given["bounds"] = tuple(map(of_text, bounds))
    return {**options, **given}


# What is a number for sure, or nothing.
NUMBERS = frozenset({float, int, type(None)})


def are_numbers(x: Any, options: Mapping[str, Any]) -> bool:
    """Whether `placed` would change nothing, at a glance; False says that it has to look."""
    bounds = options.get("bounds")
    return (
        type(x) is np.ndarray
        and (
            bounds is None
            or (
                type(bounds) is tuple
                and len(bounds) == 2
                and type(bounds[0]) in NUMBERS
                and type(bounds[1]) in NUMBERS
            )
        )
        and type(options.get("resolution")) in NUMBERS
        and type(options.get("lower")) in NUMBERS
        and type(options.get("upper")) in NUMBERS
    )


def unit_of(options: Mapping[str, Any]) -> Unit | None:
    """The unit that public arguments are given in: `bounds`, or `lower`, `upper`; `resolution`.

    Returns
    -------
    Unit or None
        None for numbers.
    """
    bounds, resolution = options.get("bounds"), options.get("resolution")
    given: dict[str, Any] = {}
    if isinstance(bounds, (tuple, list, np.ndarray)) and len(bounds) == 2:
        given = {"bounds[0]": bounds[0], "bounds[1]": bounds[1]}
    given |= {name: options[name] for name in ENDS if options.get(name) is not None}
    found = {name: time for name, value in given.items() if (time := Time.of(value)) is not None}
    step = None if resolution is None else Time.of(resolution)
    if not found and step is None:
        return None
    if step is None and resolution is not None:
        raise TypeError(f"resolution must be a duration where bounds are times, got {resolution!r}")
    if step is not None and step.kind != DURATIONS:
        raise TypeError(f"resolution must be a duration, got {resolution!r}")
    if step is not None and step.nanoseconds <= 0:
        raise ValueError(f"resolution must be positive where records are times, got {resolution!r}")
    first = next(iter(found.values()), step)
    assert first is not None
    origin = 0 if first.kind == DURATIONS else first.nanoseconds
    unit = Unit(first.kind, origin, 1, first.zone, first.library, "ns")
    for name, value in given.items():
        nothing = type(value) in NUMBERS and value == 0  # is a duration, too
        if name != "lower" or name in found or first.kind != DURATIONS or not nothing:
            unit.end(name, value)
    own = _own_tick(found.values(), first)
    if step is not None:
        length = step.nanoseconds
    elif bounds is not None and len(found) == 2:
        low, high = (time.nanoseconds for time in found.values())
        length = max(default_step(high - low), TICKS[own] if own == "D" else 1)
    else:
        length = min(SECOND, TICKS[own]) if first.library == "numpy" else SECOND
    fine = own
    for tick in ANSWERED:
        fine = tick
        exact = origin % TICKS[tick] == 0 and length % TICKS[tick] == 0
        if exact and TICKS[tick] <= TICKS[own]:
            break
    if "bounds" not in options and step is None and TICKS[fine] > TICKS["us"]:
        fine = "us"  # answers need not be on any lattice
    largest = max((abs(time.nanoseconds) for time in found.values()), default=0)
    if largest // TICKS[fine] >= LARGEST:
        raise ValueError(f"bounds must be times of 64 bits in {fine}, got {list(given.values())!r}")
    return dataclasses.replace(unit, step=length, tick=fine)


def _own_tick(times: Iterable[Time], first: Time) -> str:
    """The shortest unit that the ends are given in."""
    return min((time.tick for time in (*times, first)), key=TICKS.__getitem__)


def default_step(extent: int) -> int:
    """Spacing of the lattice for a range in nanoseconds: about 10^-6 of it, and one of a clock."""
    steps = [10**power for power in range(9)] + LONG_STEPS
    return max((step for step in steps if step * 10**6 <= 2 * extent), default=1)


def in_numbers(unit: Unit, options: Mapping[str, Any]) -> dict[str, Any]:
    """The same public arguments for a column of numbers."""
    numbers = dict(options)
    bounds = options.get("bounds")
    if bounds is not None:
        ends = (unit.end(f"bounds[{place}]", end) for place, end in enumerate(bounds))
        numbers["bounds"] = tuple(ends)
    for name in ENDS:
        if options.get(name) is not None and Time.of(options[name]) is not None:
            numbers[name] = unit.end(name, options[name])
    if options.get("resolution") is not None or bounds is not None:
        numbers["resolution"] = 1.0
    if unit.kind == INSTANTS and bounds is None and "upper" in numbers:
        numbers.setdefault("lower", None)  # 0 is no time
    prior = options.get("prior")
    if not (prior is None or prior == "uniform" or (prior == "log" and unit.kind == DURATIONS)):
        raise TypeError(f"prior must be 'uniform' where records are {unit.kind}")
    return numbers
