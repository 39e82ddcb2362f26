"""Objects as bytes, equal on every platform: what `to_bytes` writes and `from_bytes` reads.

In this order: `MAGIC`, a byte for the kind of the object, a byte for the version of this layout,
the length of the text in 8 bytes, the text, the numbers of all arrays, and the CRC-32 of all that
in 4 bytes. Numbers are little-endian. The text is JSON, of ASCII characters alone: an object of the
parts by their names. A part that is text, a whole number, true, false or null is itself; any other
is a list of what it is (`_MAKERS`) and what it is made of, such as ["float", "0x1.8p+1"], whose
digits are exact, or ["array", "<f8", [3]], whose numbers follow in the order in which arrays are
named. So a version is described by this file alone, nothing in it is a program, and nothing that is
read takes more memory than a multiple of its bytes.

A change of the layout, or of the parts of an object, is a new version; all older ones are read.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import struct
import sys
import zlib
import zoneinfo
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast.data.keys import INTERVALS, PERIODS, TIMED, Instant, kind_of_pandas, objects
from dpq_fast.data.lattice import DITHER_BITS, Lattice
from dpq_fast.data.prior import TOTAL, Masses
from dpq_fast.data.units import DURATIONS, EPOCH, INSTANTS, LARGEST, TICKS, Unit
from dpq_fast.noise.counts import COUNT_NOISES, CountNoise

MAGIC, VERSION = b"\x89dpq", 1
_HEAD, _CHECKSUM = struct.Struct("<4sBBQ"), struct.Struct("<I")
# Arrays whose bytes are written as they are; of objects each is a part.
_DTYPES = re.compile(
    r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9]\d*|<[mM]8\[\d*(?:[YMWDhms]|ms|us|ns)\]"
)
# Integers of a greater noise are beyond 64 bits.
_LARGEST_SCALE = 2**63
_MICROSECOND = datetime.timedelta(microseconds=1)
# What bytes that `to_bytes` did not give may lead to.
_DAMAGE = (
    *(ArithmeticError, AttributeError, LookupError, NotImplementedError, OSError),
    *(RecursionError, TypeError, ValueError),
)

Made = TypeVar("Made", bound="Packed")


class Packed:
    """What can become bytes, and be made of them again; so it is copied and pickled, too.

    A subclass says which byte stands for it, as ``class Kind(Packed, byte=1)``. Unless it is a
    dataclass, it has `_parts` and `_of_parts`.
    """

    _byte: ClassVar[int]
    _kinds: ClassVar[dict[int, str]] = {}

    def __init_subclass__(cls, byte: int | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if byte is not None:
            cls._byte = byte
            Packed._kinds[byte] = cls.__name__

    def _parts(self) -> dict[str, Any]:
        """All that it is made of, by name."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]  # of a dataclass
        return {field.name: getattr(self, field.name) for field in fields}

    @classmethod
    def _of_parts(cls: type[Made], parts: dict[str, Any]) -> Made:
        """What is made of these; they may be any, and what does not fit raises an error."""
        return cls(**parts)

    def to_bytes(self) -> bytes:
        """The object as bytes, for files and other processes: equal on every platform.

        Returns
        -------
        bytes
            For `from_bytes` of the same class, of this version of the package or a later one.

        Raises
        ------
        TypeError
            If a part is of a type that bytes have no form for, such as a key or a name of a type of
            your own.

        Notes
        -----
        They hold what was released and public facts, and no private number: whoever may see the
        object may see them. Pickles and copies are made of them.
        """
        return packed(self._byte, self._parts())

    @classmethod
    def from_bytes(cls: type[Made], data: Any) -> Made:
        """The object that `to_bytes` was asked of.

        Parameters
        ----------
        data : bytes
            Of an object of this class, by this version of the package or an older one. Nothing in
            them is run. A checksum finds accidents; that nobody else wrote them is for you to
            know.

        Returns
        -------
        object
            Equal in all that it is made of, so that it answers alike.

        Raises
        ------
        TypeError
            If `data` are no bytes.
        ValueError
            If they are of another class or a newer version, cut off or damaged.
        ImportError
            If a part is of pandas, and pandas is not installed.
        """
        parts = unpacked(cls._byte, cls.__name__, Packed._kinds, data)
        try:
            return cls._of_parts(parts)
        except _DAMAGE as error:
            raise _damaged() from error

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self), self.to_bytes())


def _made(kind: type[Made], data: bytes) -> Made:
    return kind.from_bytes(data)


def packed(byte: int, parts: dict[str, Any]) -> bytes:
    """The bytes of the parts of an object."""
    arrays: list[bytes] = []
    written = {name: _written(part, arrays) for name, part in parts.items()}
    text = json.dumps(written, separators=(",", ":")).encode("ascii")
    body = b"".join((_HEAD.pack(MAGIC, byte, VERSION, len(text)), text, *arrays))
    return body + _CHECKSUM.pack(zlib.crc32(body))


def unpacked(byte: int, name: str, kinds: dict[int, str], data: Any) -> dict[str, Any]:
    """The parts back; they are of the types that the bytes say, whatever those are."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data must be bytes, got {type(data).__name__}")
    view = memoryview(data).cast("B")
    if len(view) < _HEAD.size or view[: len(MAGIC)] != MAGIC:
        raise ValueError("data must be bytes that `to_bytes` gave, got others")
    _, other, version, length = _HEAD.unpack_from(view)
    if version > VERSION:
        raise ValueError(
            f"data must be of version {VERSION} at most, got those of version {version}, of a "
            "newer dpq_fast"
        )
    if other != byte and other in kinds:
        raise ValueError(f"data must be those of {name}, got those of {kinds[other]}")
    start, end = _HEAD.size + length, len(view) - _CHECKSUM.size
    if other != byte or version < 1 or start > end:
        raise _damaged()
    if _CHECKSUM.unpack_from(view, end) != (zlib.crc32(view[:end]),):
        raise _damaged()
    reader = _Reader(view[start:end])
    try:
        written = json.loads(bytes(view[_HEAD.size : start]).decode("ascii"))
        parts = {part: reader.part(how) for part, how in written.items()}
    except _DAMAGE as error:
        raise _damaged() from error
    if len(reader.rest):
        raise _damaged()
    return parts


def _damaged() -> ValueError:
    return ValueError("data must be as `to_bytes` gave them, got bytes cut off or damaged")


# Parts, written


def _written(part: Any, arrays: list[bytes]) -> Any:
    """A part as JSON has it; the bytes of arrays are added to those before."""
    if isinstance(part, np.generic) and part.dtype.kind in "biufU":
        part = part.item()
    if part is None or isinstance(part, (bool, int)):
        return part
    if isinstance(part, str):
        return str(part)
    if isinstance(part, float):
        return ["float", part.hex()]
    if isinstance(part, np.ndarray):
        return _array_written(part, arrays)
    if hasattr(part, "as_py"):  # of Arrow
        return _written(part.as_py(), arrays)
    kind, *of = _taken_apart(part)
    return [kind, *(_written(each, arrays) for each in of)]


def _array_written(part: NDArray[Any], arrays: list[bytes]) -> list[Any]:
    shape = list(part.shape)
    if part.dtype == object:
        return ["array", "O", shape, *(_written(each, arrays) for each in part.ravel().tolist())]
    dtype = part.dtype.newbyteorder("<")
    if not _DTYPES.fullmatch(dtype.str):
        raise TypeError(
            f"arrays must hold numbers, texts or times to become bytes, got {part.dtype}"
        )
    arrays.append(part.astype(dtype).tobytes())
    return ["array", dtype.str, shape]


def _taken_apart(part: Any) -> tuple[Any, ...]:
    """What a part is, by its name in `_MAKERS`, and what it is made of."""
    if isinstance(part, Instant):
        return "instant", part.nanoseconds, part.kind
    if isinstance(part, (tuple, list)):
        return "tuple" if isinstance(part, tuple) else "list", *part
    if isinstance(part, Fraction):
        return "fraction", part.numerator, part.denominator
    if isinstance(part, CountNoise):
        return "noise", part.name, part.scale
    if isinstance(part, Lattice):
        masses = (None, None) if part.masses is None else (part.masses.firsts, part.masses.each)
        return "lattice", part.low, part.high, part.step, part.bits, *masses
    if isinstance(part, Unit):
        zone = _zone_written(part.zone)
        return "unit", part.kind, part.origin, part.step, zone, part.library, part.tick
    if type(part).__name__ == "NaTType":  # which is a datetime, too
        return ("no time",)
    if isinstance(part, (np.datetime64, np.timedelta64)):
        return "numpy", np.asarray(part)
    if hasattr(part, "asm8"):  # pandas, whose types are Python's, too
        return "pandas", np.asarray(part.asm8), _zone_written(getattr(part, "tzinfo", None))
    if isinstance(part, datetime.timedelta):
        return "length", part // _MICROSECOND
    if isinstance(part, datetime.datetime):
        since = part.replace(tzinfo=None) - EPOCH - (part.utcoffset() or datetime.timedelta(0))
        return "datetime", since // _MICROSECOND, _zone_written(part.tzinfo)
    if isinstance(part, datetime.date):
        return "date", part.toordinal()
    if isinstance(part, datetime.time) and part.tzinfo is None:
        return "clock", (datetime.datetime.combine(EPOCH, part) - EPOCH) // _MICROSECOND
    pandas = kind_of_pandas(type(part))
    if pandas == PERIODS:
        return "period", part.ordinal, part.freqstr
    if pandas == INTERVALS:
        return "interval", part.left, part.right, part.closed
    raise TypeError(
        "parts must be numbers, texts, times or keys of groups to become bytes, got "
        f"{type(part).__name__}"
    )


def _zone_written(zone: datetime.tzinfo | None) -> Any:
    """A zone by its name, or how far it is from UTC in microseconds."""
    if isinstance(zone, datetime.timezone):
        return zone.utcoffset(None) // _MICROSECOND
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)  # zoneinfo, pytz
    if zone is not None and not isinstance(name, str):
        raise TypeError(
            f"time zones must have a name or be fixed to become bytes, got {type(zone).__name__}"
        )
    return name


# Parts, read


def check_unit(unit: Any) -> Unit | None:
    """A part that is a unit, or none."""
    if not (unit is None or isinstance(unit, Unit)):
        raise TypeError(f"unit must be a Unit or None, got {type(unit).__name__}")
    return unit


class _Reader:
    """Parts from JSON and the bytes of arrays.

    Attributes
    ----------
    rest : memoryview
        Of arrays that were not read yet.
    """

    def __init__(self, arrays: memoryview) -> None:
        self.rest = arrays

    def part(self, written: Any) -> Any:
        """One part, and all that it is made of."""
        if written is None or isinstance(written, (bool, int, str)):
            return written
        kind, *of = written
        if kind == "array":
            return self._array(*of)
        return _MAKERS[kind](*map(self.part, of))

    def _array(self, dtype: str, shape: list[int], *items: Any) -> NDArray[Any]:
        if dtype == "O":
            return objects(map(self.part, items)).reshape(shape)
        if not _DTYPES.fullmatch(dtype) or items or min(shape, default=0) < 0:
            raise ValueError("arrays must be of types and shapes that are written")
        found: NDArray[Any] = np.ndarray(shape, dtype, self.rest)  # no larger than what there is
        self.rest = self.rest[found.nbytes :]
        if found.dtype.kind == "b":
            return found.view(np.uint8).astype(np.bool_)
        if found.dtype.kind == "U" and (found.ravel().view("<u4") > sys.maxunicode).any():
            raise ValueError("texts must be of Unicode")
        return found.astype(found.dtype.newbyteorder("="))


def _noise(name: str, scale: Any) -> CountNoise:
    if isinstance(scale, (int, float, Fraction)) and 0 < scale <= _LARGEST_SCALE:
        return COUNT_NOISES[name](scale)
    raise ValueError("scales must be positive")


def _lattice(low: float, high: float, step: float, bits: int, firsts: Any, each: Any) -> Lattice:
    lattice = Lattice.of(_checks.check_bounds((low, high)), step, False)
    if lattice is None or not 0 <= bits <= DITHER_BITS or lattice.points << bits > 2**62:
        raise ValueError("lattices must have a step, and fine points of 64 bits")
    if firsts is None:
        return dataclasses.replace(lattice, bits=bits)
    knots = np.append(firsts, lattice.points)
    widths = np.diff(knots)
    whole = knots.dtype == each.dtype == np.int64 and widths.shape == each.shape
    if not whole or knots[0] != 0 or min(widths.min(), each.min()) < 1:
        raise ValueError("masses must be those of all points")
    masses = Masses(knots, each)
    rounded = widths.astype(np.float64) @ each.astype(np.float64)  # where 64 bits overflow
    if max(rounded / 2.0, masses.total) > TOTAL:
        raise ValueError("masses must be at most 2^53 in all")
    return dataclasses.replace(lattice, bits=bits, masses=masses)


def _unit(kind: str, origin: int, step: int, zone: Any, library: str, tick: str) -> Unit:
    known = kind in (INSTANTS, DURATIONS) and library in ("numpy", "date", "datetime", "pandas")
    if not known or step < 1 or max(abs(origin), step) // TICKS[tick] > LARGEST:
        raise ValueError("units must be of times or durations of 64 bits")
    return Unit(kind, int(origin), int(step), _zone(zone), library, tick)


def _zone(written: Any) -> datetime.tzinfo | None:
    if isinstance(written, int):
        return datetime.timezone(written * _MICROSECOND)
    return None if written is None else zoneinfo.ZoneInfo(written)


def _datetime(microseconds: int, zone: Any) -> datetime.datetime:
    time = EPOCH + microseconds * _MICROSECOND
    if zone is None:
        return time
    return time.replace(tzinfo=datetime.timezone.utc).astimezone(_zone(zone))


def _pandas(time: Any, zone: Any) -> Any:
    pd = _checks.extra("pandas", "times of pandas", "pandas")
    if time.dtype.kind == "m":
        return pd.Timedelta(time[()])
    stamp = pd.Timestamp(time[()])
    return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(_zone(zone))


def _period(ordinal: int, frequency: str) -> Any:
    pd = _checks.extra("pandas", "periods", "pandas")
    return pd.Period(ordinal=ordinal, freq=frequency)


def _interval(left: Any, right: Any, closed: str) -> Any:
    pd = _checks.extra("pandas", "intervals", "pandas")
    return pd.Interval(left, right, closed)


def _instant(nanoseconds: int, kind: str) -> Instant:
    if kind not in TIMED:
        raise ValueError("moments must be dates or times of day")
    return Instant(int(nanoseconds), kind)


_MAKERS: dict[str, Callable[..., Any]] = {
    "float": float.fromhex,
    "tuple": lambda *of: of,
    "list": lambda *of: list(of),
    "fraction": Fraction,
    "noise": _noise,
    "lattice": _lattice,
    "unit": _unit,
    "instant": _instant,
    "numpy": lambda time: time[()],
    "no time": lambda: _checks.extra("pandas", "times of pandas", "pandas").NaT,
    "pandas": _pandas,
    "length": lambda microseconds: microseconds * _MICROSECOND,
    "datetime": _datetime,
    "date": datetime.date.fromordinal,
    "clock": lambda microseconds: (EPOCH + microseconds * _MICROSECOND).time(),
    "period": _period,
    "interval": _interval,
}
