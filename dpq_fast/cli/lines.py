"""CSV, line by line: a record is a line, whatever it holds.

Each line is parsed by itself, so that nobody's record decides what another one holds, how many
there are, or whether something is raised. Lines end where a line feed is, a carriage return before
it belongs to the end. What follows the last line feed counts as a line, although it may be empty:
so line feeds alone say how many records there are.

No types are inferred: who asks says whether a field is a number or a text. A type inferred from the
values would let one record choose it for all.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

# Bytes of a file that are parsed at a time.
BLOCK = 1 << 20
# What a field may hold to count as a number.
NUMBER = r"(?i)\A[ \t]*[-+]?(\d+\.?\d*(e[-+]?\d+)?|\.\d+(e[-+]?\d+)?|inf(inity)?)[ \t]*\z"


def header(content: BinaryIO) -> tuple[list[str], bool]:
    """Names in the first line that is not empty, if it has any, and whether a line feed ends it.

    Nothing else is decoded or looked at: further lines are records, which an open quote must not
    make a part of a name.
    """
    first = next((line for line in content if line.strip(b"\r\n")), b"")
    line = first.removesuffix(b"\n").removesuffix(b"\r")
    try:
        # Where lines end in carriage returns alone, records would be taken for names.
        text = "" if b"\r" in line or b"\0" in line else line.decode("utf-8-sig")
        names = next(csv.reader([text], strict=True), [])
    except (csv.Error, UnicodeDecodeError):
        names = []
    return names, first.endswith(b"\n")


def blocks(content: BinaryIO) -> Iterator[bytes]:
    """What follows a line feed, in pieces of whole lines; the last one is what ends without one."""
    more = True
    while more:
        block = content.read(BLOCK) + content.readline()
        more = block.endswith(b"\n")
        yield block


def line_feeds(content: BinaryIO) -> int:
    """How many line feeds follow."""
    return sum(block.count(b"\n") for block in iter(lambda: content.read(BLOCK), b""))


class Lines:
    """The lines of a block, with or without a line feed at its end, and where their fields are.

    Parameters
    ----------
    block : bytes
    columns : int
        How many fields a line has; one that has not as many has none.
    """

    def __init__(self, block: bytes, columns: int) -> None:
        block = block.replace(b"\r\n", b"\n").removesuffix(b"\n") + b"\n"
        self._block, self._columns = block, columns
        text = self._text = np.frombuffer(block, dtype=np.uint8)
        ends = self._ends = np.flatnonzero(text == ord("\n"))
        starts = self._starts = np.append(0, ends[:-1] + 1)
        commas = np.flatnonzero(text == ord(","))
        quotes = np.flatnonzero(text == ord('"'))
        # Every second quote of a line closes. Those that stand where CSV has none leave it odd.
        before = np.searchsorted(quotes, starts)
        line = np.searchsorted(ends, quotes)
        closes = (np.arange(quotes.size) - before[line]) % 2 == 1
        odd = np.diff(np.append(before, quotes.size)) % 2 == 1
        odd[line[~np.isin(text[quotes + np.where(closes, 1, -1)], list(b',\n"'))]] = True
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
                fields = next(csv.reader([line.decode("latin-1")]))
            except csv.Error:
                fields = []
            field = fields[wanted] if len(fields) == self._columns else ""
            yield i, field.encode("latin-1")

    def numbers(self, wanted: int) -> NDArray[np.float64]:
        """The number that a field of each line holds, NaN where it is none."""
        values = np.full(self._starts.size, np.nan)
        values[self._plain] = _numbers(_strings(self._text, *self._fields(wanted)))
        for i, field in self._odd_fields(wanted):
            values[i] = _numbers(pa.array([field], pa.large_binary()))[0]
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


def _numbers(fields: pa.Array) -> NDArray[np.float64]:
    """The numbers that fields hold, NaN for what is none."""
    fields = pa.compute.if_else(pa.compute.match_substring_regex(fields, NUMBER), fields, None)
    trimmed = pa.compute.ascii_trim(fields.cast(pa.large_string()), " \t")
    numbers: NDArray[np.float64] = trimmed.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def _texts(fields: pa.Array) -> pa.Array:
    """Fields as keys of groups; null for empty ones."""
    try:
        texts = fields.cast(pa.large_string())
    except pa.ArrowInvalid:  # what is no UTF-8; all others are what they would be without it
        decoded = [field.decode("utf-8", "replace") for field in fields.to_pylist()]
        texts = pa.array(decoded, pa.large_string())
    texts = pa.compute.utf8_trim(texts, " \t")
    return pa.compute.if_else(pa.compute.equal(texts, ""), None, texts)
