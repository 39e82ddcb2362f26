"""Files by name: Parquet, Feather and CSV, compressed or not, several of them, folders and globs.

Each file is read as it declares itself: where one has integers and another one has floats, which
often follows from their records, nothing is cast, and so nothing fails.
"""

from __future__ import annotations

import glob
import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.dataset
from numpy.typing import NDArray

from dpq_fast.data.columns import AnyUnit, refuse, takes_numbers
from dpq_fast.data.units import INSTANTS, Presence
from dpq_fast.engines import batches, lines
from dpq_fast.engines.batches import Batches, empty_of_arrow, of_data_set
from dpq_fast.engines.lines import Dialect, Lines

# Forms of files by their suffixes; texts, with what separates their fields.
COLUMNAR = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather"}
TEXTS = {".csv": ",", ".tsv": "\t"}
TEXT = "text"
# What texts may be compressed by; a zip is a folder of one file.
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
ZIP = ".zip"
SUFFIXES = (*TEXTS, *COMPRESSED, ZIP, *COLUMNAR)
# Of a Mac, beside the file.
HIDDEN = "__MACOSX/"
# Bytes that are unpacked ahead: of the names not much more than their line.
AHEAD = 1 << 16


def opened(source: Any, workers: int, progress: bool) -> Batches | None:
    """The engine of a path, a folder, a glob, or a list of these; or of a place that has a URI."""
    if "://" in str(source):
        return batches.opened(pa.dataset.dataset(source), None, workers, progress)
    paths = found(source)
    form = form_of(paths)
    if form != TEXT:
        data_sets = [data_set(path, form) for path in paths]
        names = same_names(paths, [each.schema.names for each in data_sets])
        if len(data_sets) == 1:
            return batches.opened(data_sets[0], None, workers, progress)
        readers = [of_data_set(each) for each in data_sets]
        alike = all(each.schema.equals(data_sets[0].schema) for each in data_sets)
        return Batches(
            names,
            lambda wanted: chain.from_iterable(read(wanted) for read in readers),
            workers,
            progress,
            empty_of_arrow(data_sets[0].schema) if alike else None,
        )
    texts = [TextFile(path) for path in paths]
    names = same_names(paths, [each.names for each in texts])
    return Batches(
        names, lambda _: chain.from_iterable(each.batches() for each in texts), workers, progress
    )


def found(source: Any) -> list[Path]:
    """The files that a source names, in an order that does not depend on the machine."""
    given = source if isinstance(source, (list, tuple)) else [source]
    paths = list(chain.from_iterable(map(_found, given)))
    if not paths:
        raise ValueError(f"source must name at least one file, got {source!r}")
    return paths


def _found(source: str | Path) -> list[Path]:
    path = Path(source)
    if os.path.isdir(path):  # of a name that is too long `Path` would raise
        inside = (each for each in path.rglob("*") if each.is_file())
        # what engines write beside the rows
        return sorted(
            each
            for each in inside
            if not any(part.startswith(("_", ".")) for part in each.relative_to(path).parts)
        )
    if os.path.isfile(path):
        return [path]
    matching = sorted(map(Path, glob.glob(str(source), recursive=True)))
    if not matching:
        raise FileNotFoundError(
            "source must be a file, a folder or a glob of files that are there (a query is given "
            f"with its connection), got {str(source)!r}"
        )
    return [each for each in matching if each.is_file()]


def form_of(paths: Sequence[Path]) -> str:
    """The form of some files, which all have."""
    forms = [_form(path) for path in paths]
    for path, form in zip(paths, forms, strict=True):
        if form != forms[0]:
            raise ValueError(f"files must be of one kind, got {paths[0].name} and {path.name}")
    return forms[0]


def _form(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix in COLUMNAR:
        return COLUMNAR[suffix]
    inner = Path(inner_name(path)).suffix.lower()
    if inner not in TEXTS and (inner or inner == suffix):
        raise ValueError(f"a file must end in {', '.join(SUFFIXES)}, got {path.name}")
    return TEXT


def inner_name(path: Path) -> str:
    """The name of a file without what it is compressed by."""
    suffix = path.suffix.lower()
    if suffix == ZIP:
        return _member(path)
    return path.stem if suffix in COMPRESSED else path.name


def _member(path: Path) -> str:
    """The one file of a zip."""
    try:
        with zipfile.ZipFile(path) as packed:
            files = [each for each in packed.infolist() if not each.is_dir()]
    except (zipfile.BadZipFile, OSError):
        raise ValueError(f"{path.name} must be a readable zip file") from None
    files = [each for each in files if not each.filename.startswith(HIDDEN)]
    if len(files) != 1 or files[0].flag_bits & 1:
        raise ValueError(f"{path.name} must hold one file, without a password, got {len(files)}")
    return files[0].filename


def same_names(paths: Sequence[Path], names: Sequence[Sequence[str]]) -> list[str]:
    """The names of the columns of some files, which are those of each."""
    for path, own in zip(paths, names, strict=True):
        if sorted(own) != sorted(names[0]):
            raise ValueError(
                f"files must have columns of the same names, got {path.name} beside {paths[0].name}"
            )
    return list(names[0])


def data_set(path: Path, form: str) -> Any:
    """A file of columns that declares their types, not read."""
    try:
        return pa.dataset.dataset(path, format=form)
    except (pa.ArrowException, OSError):
        raise ValueError(f"{path.name} must be a readable {form.title()} file") from None


# A dialect whose delimiter follows from the name of a file.
BY_NAME = Dialect(delimiter="")


class TextFile:
    """A file of separated fields, whose first line are names.

    Parameters
    ----------
    path : Path
    dialect : Dialect, optional
        A delimiter of "" is that of the name: a tab for ``.tsv``.

    Attributes
    ----------
    names : list of str
        Of its columns. Public.
    """

    def __init__(self, path: Path, dialect: Dialect = BY_NAME) -> None:
        self._path = path
        if not dialect.delimiter:
            by_name = TEXTS.get(Path(inner_name(path)).suffix.lower(), ",")
            dialect = dialect._replace(delimiter=by_name)
        dialect.check()
        self._dialect = dialect
        try:
            with self._content() as content:
                start = lines.start(content, dialect)
        except Exception:  # of many libraries
            raise ValueError(f"{path.name} must be readable, as its name says") from None
        self.names, self._more, self._codec = start
        if not self.names:
            raise ValueError(
                f"{path.name} must begin with a line of column names in "
                f"{dialect.encoding.upper()}, ended by \\n or \\r\\n"
            )

    @contextmanager
    def _content(self) -> Iterator[BinaryIO]:
        suffix = self._path.suffix.lower()
        if suffix == ZIP:
            with zipfile.ZipFile(self._path) as packed, packed.open(_member(self._path)) as member:
                yield cast(BinaryIO, member)
        elif suffix in COMPRESSED:
            unpacked = pa.input_stream(str(self._path), compression=COMPRESSED[suffix])
            with unpacked, io.BufferedReader(unpacked, AHEAD) as content:
                yield cast(BinaryIO, content)
        else:
            with self._path.open("rb") as content:
                yield content

    @contextmanager
    def _records(self) -> Iterator[BinaryIO]:
        """What follows the names."""
        with self._content() as content:
            lines.start(content, self._dialect)
            yield content

    def rows(self) -> int | None:
        """How many lines there are after the names; None where nobody can count them."""
        if not self._more:
            return 0
        with self._records() as content:
            return lines.line_feeds(content, self._codec) + 1

    def batches(self) -> Iterator[Batch]:
        """All lines, some at a time."""
        if not self._more:
            return
        with self._records() as content:
            for block in lines.blocks(content, self._codec):
                yield Batch(block, self.names, self._dialect)


class Batch:
    """Some lines of a file: a column of each name, parsed where it is asked for.

    Parameters
    ----------
    block : bytes
    names : list of str
    dialect : Dialect
    """

    def __init__(self, block: bytes, names: list[str], dialect: Dialect) -> None:
        self._block, self._names, self._dialect = block, names, dialect
        self._fields: dict[str, Fields] = {}

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self._block, len(self._names), self._dialect)

    def column(self, name: str) -> Fields:
        """The fields of one column."""
        if name not in self._fields:
            self._fields[name] = Fields(self._lines, self._names.index(name))
        return self._fields[name]


class Fields:
    """A column of some lines, by what it is asked for: no type is inferred.

    Parameters
    ----------
    of : Lines
    place : int
        Of the column.
    """

    def __init__(self, of: Lines, place: int) -> None:
        self._of, self._place = of, place

    def records(self, unit: AnyUnit) -> NDArray[Any]:
        """Numbers, or times in a unit; to be counted, whatever is one of them."""
        if unit is None:
            return self._numbers
        if takes_numbers(unit):
            times = ~(np.isnat(self.times(False)) & np.isnat(self.times(True)))
            return np.where(times, 0.0, self._numbers)
        assert not isinstance(unit, Presence)
        if unit.kind != INSTANTS:
            refuse("texts", unit)
        return unit.numbers_of(self.times(unit.zone is not None))

    @cached_property
    def _numbers(self) -> NDArray[np.float64]:
        return self._of.numbers(self._place)

    def times(self, zoned: bool) -> NDArray[np.datetime64]:
        """Times with a zone, or without one."""
        return self._of.times(self._place, zoned)

    def keys(self) -> pa.Array:
        """As texts; null where a field is empty."""
        return self._of.texts(self._place)
