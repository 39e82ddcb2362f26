"""Texts of separated fields (CSV), line by line: a record is a line, whatever it holds.

Each line is parsed by itself, so that nobody's record decides what another one holds, how many
there are, or whether something is raised. Lines end where a line feed is, a carriage return before
it belongs to the end. What follows the last line feed counts as a line, although it may be empty:
so line feeds alone say how many records there are.

No types are inferred: who asks says whether a field is a number or a text. A type inferred from the
values would let one record choose it for all.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from dpq_fast._checks import check_count

# Bytes of a file that are parsed at a time.
BLOCK = 1 << 20
UTF_8 = "utf-8"
# Bytes that stand for a mark between thousands, and for what is no part of a number.
MARK, JUNK = "\2", "\0"
# What a field may hold to count as a number, with a mark between thousands or without.
NUMBER = r"(?i)\A[ \t]*[-+]?(\d+\.?\d*(e[-+]?\d+)?|\.\d+(e[-+]?\d+)?|inf(inity)?)[ \t]*\z"
MARKED = NUMBER.replace(r"(\d+", r"((\d+|\d{1,3}(\x02\d{2,3})*\x02\d{3})", 1)
# A time of ISO 8601: a date, and a time of day with or without a zone.
TIME = (
    r"\A[ \t]*(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<part>\d{1,9}))?)?"
    r"(?P<zone>Z|[-+]\d\d:?\d\d)?)?[ \t]*\z"
)
# Encodings whose order of bytes is said by the first of a file.
MARKS = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}
# Codecs that warn of, or fail on, what they are given, whatever is asked of them.
NO_TEXTS = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}


class Dialect(NamedTuple):
    """How the fields of a file are written. Public.

    Attributes
    ----------
    delimiter : str, default ","
        Between fields: an ASCII character.
    decimal : str, default "."
        Before the digits of a fraction.
    thousands : str, default ""
        Between groups of digits; "" for none.
    strip : str, default ""
        Characters that are left out of numbers, wherever they stand: "$", "%".
    encoding : str, default "utf-8"
    skip_lines : int, default 0
        Lines before that of the names.
    """

    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""
    strip: str = ""
    encoding: str = UTF_8
    skip_lines: int = 0

    def check(self) -> None:
        """Refuse what no file is written by."""
        delimiter = self.delimiter
        plain = len(delimiter) == 1 and delimiter.isascii() and not delimiter.isalnum()
        if not plain or delimiter in '\r\n\0"+-':
            raise ValueError(
                "delimiter must be one ASCII character that is no letter, digit, quote or sign, "
                f"got {delimiter!r}"
            )
        taken = '"+-\r\n\0\2'
        if len(self.decimal) != 1 or len(self.thousands) > 1:
            raise ValueError(
                "decimal and thousands must be one character each, got "
                f"{self.decimal!r} and {self.thousands!r}"
            )
        for name in ("decimal", "thousands", "strip"):
            given = getattr(self, name)
            if any(each in taken or each.isdigit() for each in given):
                raise ValueError(f"{name} must hold no digit, sign or quote, got {given!r}")
        if self.decimal.isalpha() or self.thousands.isalpha():
            raise ValueError(
                f"decimal and thousands must be no letters, got {self.decimal + self.thousands!r}"
            )
        if self.decimal in self.thousands + self.strip:
            raise ValueError(
                f"decimal must be neither that of thousands nor in strip, got {self.decimal!r}"
            )
        check_count("skip_lines", self.skip_lines, 0)
        self.codec()

    def codec(self) -> str:
        """The encoding by its own name; one of UTF-8 with a mark is UTF-8."""
        try:
            found = codecs.lookup(self.encoding)
            known = found.name not in NO_TEXTS and b"\n" in "\n".encode(found.name)
        except (LookupError, UnicodeError, ValueError):
            known = False
        if not known:
            raise ValueError(
                f"encoding must be one of texts that Python knows, such as 'utf-8', 'cp1252' or "
                f"'utf-16', got {self.encoding!r}"
            )
        return UTF_8 if found.name == "utf-8-sig" else found.name


class Start(NamedTuple):
    """What the beginning of a file says.

    Attributes
    ----------
    names : list of str
        Of its columns; empty if there are none.
    more : bool
        Whether a line feed ends the names.
    codec : str
        With its order of bytes.
    """

    names: list[str]
    more: bool
    codec: str


def start(content: BinaryIO, dialect: Dialect) -> Start:
    """What the first line says that is not empty, after those that are skipped.

    Nothing else is decoded or looked at: further lines are records, which an open quote must not
    make a part of a name.
    """
    codec, first = dialect.codec(), b""
    if codec in MARKS:
        little, big = MARKS[codec]
        first = content.read(len(big))
        codec += "-be" if first == big else "-le"
        first = b"" if first in (little, big) else first
    end = "\n".encode(codec)
    empty = ("".encode(codec), "\r".encode(codec))
    skipped = dialect.skip_lines
    while True:
        line = _to_end(content, end, first)
        first = b""
        text = line.removesuffix(end)
        if not line or (skipped <= 0 and text not in empty):
            break
        skipped -= 1
    try:
        names = _names(text.decode(codec), dialect.delimiter)
    except UnicodeError:
        names = []
    return Start(names, line.endswith(end), codec)


def _names(line: str, delimiter: str) -> list[str]:
    line = line.removeprefix("\ufeff").removesuffix("\r")
    if "\r" in line or "\0" in line:
        return []  # where lines end in carriage returns alone, records would be taken for names
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []


def _to_end(content: BinaryIO, end: bytes, line: bytes = b"") -> bytes:
    """What is there of a line, and the rest of it."""
    last = range(end.index(b"\n") + 1, len(end))
    while not line.endswith(end):
        begun = any(line.endswith(end[:size]) for size in last)
        more = content.read(1) if begun else content.readline()
        if not more:
            break
        line += more
    return line


def _pieces(content: BinaryIO, end: bytes) -> Iterator[bytes]:
    """What follows a line feed, in pieces of whole lines; the last one is what ends without one."""
    more = True
    while more:
        piece = _to_end(content, end, content.read(BLOCK))
        more = piece.endswith(end)
        yield piece


def blocks(content: BinaryIO, codec: str = UTF_8) -> Iterator[bytes]:
    """The same in UTF-8.

    Each line is decoded by itself, whatever bytes the others hold, so a line ends where the bytes
    of a line feed are, between two others, too.
    """
    end = "\n".encode(codec)
    for piece in _pieces(content, end):
        if codec == UTF_8:
            yield piece
        else:
            yield b"\n".join(_recoded(line, codec) for line in piece.split(end))


def _recoded(line: bytes, codec: str) -> bytes:
    try:
        text = line.decode(codec, "replace")
    except UnicodeError:
        return b""
    return text.replace("\n", "\ufffd").encode("utf-8", "replace")


def line_feeds(content: BinaryIO, codec: str = UTF_8) -> int:
    """How many line feeds follow."""
    end = "\n".encode(codec)
    return sum(piece.count(end) for piece in _pieces(content, end))


class Lines:
    """The lines of a block, with or without a line feed at its end, and where their fields are.

    Parameters
    ----------
    block : bytes
    columns : int
        How many fields a line has; one that has not as many has none.
    dialect : Dialect
    """

    def __init__(self, block: bytes, columns: int, dialect: Dialect) -> None:
        block = block.replace(b"\r\n", b"\n").removesuffix(b"\n") + b"\n"
        self._block, self._columns, self._dialect = block, columns, dialect
        delimiter = ord(dialect.delimiter)
        text = self._text = np.frombuffer(block, dtype=np.uint8)
        ends = self._ends = np.flatnonzero(text == ord("\n"))
        starts = self._starts = np.append(0, ends[:-1] + 1)
        commas = np.flatnonzero(text == delimiter)
        quotes = np.flatnonzero(text == ord('"'))
        # Every second quote of a line closes. Those that stand where CSV has none leave it odd.
        before = np.searchsorted(quotes, starts)
        line = np.searchsorted(ends, quotes)
        closes = (np.arange(quotes.size) - before[line]) % 2 == 1
        odd = np.diff(np.append(before, quotes.size)) % 2 == 1
        odd[line[~np.isin(text[quotes + np.where(closes, 1, -1)], [delimiter, *b'\n"'])]] = True
        inside = np.searchsorted(quotes, commas) - before[np.searchsorted(ends, commas)]
        self._commas = commas[inside % 2 == 0]
        self._odd = np.flatnonzero(odd)
        self._first = np.searchsorted(self._commas, starts)
        last = np.searchsorted(self._commas, ends)
        self._plain = np.flatnonzero(~odd & (last - self._first == columns - 1))

    def _fields(self, wanted: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where a field of each plain line is, without the quotes around it."""
        plain, first = self._plain, self._first[self._plain]
        left = self._starts[plain] if wanted == 0 else self._commas[first + wanted - 1] + 1
        is_last = wanted == self._columns - 1
        right = self._ends[plain] if is_last else self._commas[first + wanted]
        quoted = self._text[left] == ord('"')
        return left + quoted, right - quoted

    def _odd_fields(self, wanted: int) -> Iterator[tuple[int, bytes]]:
        """That of each line with quotes where they do not belong, read as leniently as may be."""
        for i in self._odd.tolist():
            line = self._block[self._starts[i] : self._ends[i]]
            try:
                text = line.decode("latin-1")
                fields = next(csv.reader([text], delimiter=self._dialect.delimiter))
            except csv.Error:
                fields = []
            field = fields[wanted] if len(fields) == self._columns else ""
            yield i, field.encode("latin-1")

    def numbers(self, wanted: int) -> NDArray[np.float64]:
        """The number that a field of each line holds, NaN where it is none."""
        return self._values(wanted, lambda fields: _numbers(fields, self._dialect), np.nan)

    def times(self, wanted: int, zoned: bool) -> NDArray[np.datetime64]:
        """The time that a field of each line holds, in UTC; NaT where it is none.

        Parameters
        ----------
        wanted : int
        zoned : bool
            Whether it is to have a zone.
        """
        return self._values(
            wanted, lambda fields: _times(fields, zoned), np.datetime64("NaT", "us")
        )

    def _values(
        self, wanted: int, parse: Callable[[pa.Array], NDArray[Any]], missing: Any
    ) -> NDArray[Any]:
        """What a field of each line is parsed to."""
        values = np.full(self._starts.size, missing)
        values[self._plain] = parse(_strings(self._text, *self._fields(wanted)))
        for i, field in self._odd_fields(wanted):
            (values[i],) = parse(pa.array([field], pa.large_binary()))
        return values

    def texts(self, wanted: int) -> pa.Array:
        """What a field of each line holds, stripped; null where it is empty.

        What is no UTF-8 is decoded to replacement characters, in each field by itself.
        """
        odd = pa.array([field for _, field in self._odd_fields(wanted)], pa.large_binary())
        fields = pa.compute.replace_substring(
            _strings(self._text, *self._fields(wanted)), b'""', b'"'
        )
        found = _texts(pa.concat_arrays([fields, odd]))
        places = np.full(self._starts.size, -1)
        places[self._plain] = np.arange(self._plain.size)
        places[self._odd] = self._plain.size + np.arange(self._odd.size)
        return found.take(pa.array(places, mask=places < 0))


def _strings(
    text: NDArray[np.uint8], left: NDArray[np.int64], right: NDArray[np.int64]
) -> pa.Array:
    """Parts of `text`, each from `left` to `right`."""
    sizes = right - left
    offsets = np.append(0, np.cumsum(sizes))
    places = np.arange(offsets[-1]) + np.repeat(left - offsets[:-1], sizes)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text[places])]
    return pa.Array.from_buffers(pa.large_binary(), sizes.size, buffers)


def _numbers(fields: pa.Array, dialect: Dialect) -> NDArray[np.float64]:
    """The numbers that fields hold, NaN for what is none."""
    for character in dialect.strip:
        fields = _replaced(fields, character, "")
    if dialect.thousands:
        trimmed = pa.compute.replace_substring_regex(fields, r"\A[ \t]+|[ \t]+\z", "")
        fields = _replaced(trimmed, dialect.thousands, MARK)
    if dialect.decimal != ".":
        fields = _replaced(_replaced(fields, ".", JUNK), dialect.decimal, ".")
    form = MARKED if dialect.thousands else NUMBER
    fields = pa.compute.if_else(pa.compute.match_substring_regex(fields, form), fields, None)
    if dialect.thousands:
        fields = _replaced(fields, MARK, "")
    trimmed = pa.compute.ascii_trim(fields.cast(pa.large_string()), " \t")
    numbers: NDArray[np.float64] = trimmed.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def _replaced(fields: pa.Array, character: str, other: str) -> pa.Array:
    return pa.compute.replace_substring(fields, character.encode(), other.encode())


def _times(fields: pa.Array, zoned: bool) -> NDArray[np.datetime64]:
    """The times that fields hold, in UTC, NaT for what is none; a date is its midnight."""
    found = pa.compute.extract_regex(fields, TIME)
    parts = {
        name: pa.compute.struct_field(found, name).cast(pa.large_string())
        for name in ("year", "month", "day", "hour", "minute", "second", "part", "zone")
    }
    zone = parts.pop("zone")
    part = pa.compute.utf8_rpad(parts.pop("part"), 6, "0")
    parts["part"] = pa.compute.utf8_slice_codeunits(part, 0, 6)
    sign = pa.compute.utf8_slice_codeunits(zone, 0, 1)
    digits = pa.compute.replace_substring(zone, ":", "")
    for at, name in ((1, "hours"), (3, "minutes")):
        parts[name] = pa.compute.utf8_slice_codeunits(digits, at, at + 2)
    number = {name: _whole(each) for name, each in parts.items()}
    month = np.datetime64("1970-01", "M") + 12 * (number["year"] - 1970) + number["month"] - 1
    length = ((month + 1).astype("M8[D]") - month.astype("M8[D]")).astype(np.int64)
    has_zone = np.isin(_filled(sign), ["Z", "+", "-"])
    known = np.asarray(pa.compute.is_valid(parts["year"]))
    known &= (number["month"] >= 1) & (number["month"] <= 12) & (number["year"] >= 1)
    known &= (number["day"] >= 1) & (number["day"] <= length) & (has_zone == zoned)
    for name, most in (
        ("hour", 24),
        ("minute", 60),
        ("second", 60),
        ("hours", 24),
        ("minutes", 60),
    ):
        known &= number[name] < most
    east = np.where(_filled(sign) == "-", -1, 1) * (60 * number["hours"] + number["minutes"])
    seconds = 60 * (60 * number["hour"] + number["minute"] - east) + number["second"]
    days = month.astype("M8[D]") + (number["day"] - 1)
    times = days.astype("M8[us]") + (10**6 * seconds + number["part"])
    return np.where(known, times, np.datetime64("NaT", "us"))


def _filled(texts: pa.Array) -> NDArray[Any]:
    return np.asarray(pa.compute.fill_null(texts, "").to_numpy(zero_copy_only=False), dtype=str)


def _whole(texts: pa.Array) -> NDArray[np.int64]:
    """Digits as numbers, 0 where there are none."""
    digits = pa.compute.if_else(pa.compute.match_substring_regex(texts, r"\A\d+\z"), texts, "0")
    whole: NDArray[np.int64] = pa.compute.fill_null(digits, "0").cast(pa.int64()).to_numpy()
    return whole


def _texts(fields: pa.Array) -> pa.Array:
    """Fields as keys of groups; null for empty ones."""
    try:
        texts = fields.cast(pa.large_string())
    except pa.ArrowInvalid:  # what is no UTF-8; all others are what they would be without it
        decoded = [field.decode("utf-8", "replace") for field in fields.to_pylist()]
        texts = pa.array(decoded, pa.large_string())
    texts = pa.compute.utf8_trim(texts, " \t")
    return pa.compute.if_else(pa.compute.equal(texts, ""), None, texts)
