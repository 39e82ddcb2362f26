"""How CSV is written: separators, characters, encodings, lines to skip, compression, folders."""

import bz2
import gzip
import io
import itertools
import math
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from command_line import answered, run, said
from hypothesis import given, settings
from hypothesis import strategies as st

from dpq_fast.engines import lines
from dpq_fast.engines.files import TextFile
from dpq_fast.engines.lines import Dialect, Lines

COUNT = ["--column", "age", "--epsilon", 1e6]
ROWS = [(str(20 + j % 50), ("Aston", "Zürich")[j % 2]) for j in range(200)]


def written(delimiter: str = ",") -> str:
    return "\n".join(delimiter.join(row) for row in [("age", "town"), *ROWS]) + "\n"


def numbers(fields: list[str], **given: str) -> list[float]:
    """What fields are read as that hold neither delimiters nor quotes."""
    dialect = Dialect(**given)
    dialect.check()
    text = "".join(f"x{dialect.delimiter}{field}\n" for field in fields)
    return Lines(text.encode(), 2, dialect).numbers(1).tolist()


@pytest.mark.parametrize(
    ("given", "fields", "values"),
    [
        ({}, ["1234", '"1,234"', "$5", "1.5", "5%"], [1234, None, None, 1.5, None]),
        ({"thousands": ","}, ['"1,234"', '"-1,234.5"', "1234", "7"], [1234, -1234.5, 1234, 7]),
        ({"thousands": ","}, ['"1,5"', '",123"', '"1,,234"', '"1234,5"'], [None] * 4),
        ({"thousands": ","}, ['"12,34,567"', '"1,234,567e1"'], [1234567, 12345670]),
        ({"thousands": " "}, ["1 234", " 1 234 ", "1 5"], [1234, 1234, None]),
        ({"thousands": "\u202f", "decimal": ","}, ['"1\u202f234,5"', "1.5"], [1234.5, None]),
        ({"delimiter": ";", "decimal": ","}, ["1,5", ",5", "1.5", "3"], [1.5, 0.5, None, 3]),
        ({"delimiter": ";", "decimal": ",", "thousands": "."}, ["1.234,5", "1.5"], [1234.5, None]),
        ({"strip": "$€%"}, ["$5", "-$5", "5 €", "45%", "$", "£5"], [5, -5, 5, 45, None, None]),
        ({"strip": "$", "thousands": ","}, ['"$1,234.50"', '"$1,5"'], [1234.5, None]),
        ({"delimiter": "\t"}, ["1", "1,5", '"2"'], [1, None, 2]),
        ({"delimiter": "|"}, ["1", '"2"', 'x"3'], [1, 2, None]),
    ],
)
def test_numbers_are_read_as_they_are_written(given, fields, values):
    expected = [math.nan if value is None else float(value) for value in values]
    np.testing.assert_array_equal(numbers(fields, **given), expected)


FIELD = st.text(st.sampled_from("0123456789.,'$ -+eE\u202f\u20acx\"\x02\x00;"), max_size=8)


@given(
    fields=st.lists(FIELD, min_size=1, max_size=6),
    decimal=st.sampled_from(".,"),
    thousands=st.sampled_from(["", "'", " ", "\u202f"]),
    strip=st.sampled_from(["", "$", "$\u20ac"]),
)
@settings(max_examples=50)
def test_every_field_is_read_by_itself_whatever_it_holds(fields, decimal, thousands, strip):
    dialect = Dialect(";", decimal, thousands, strip)
    dialect.check()
    text = [f"{field};1\n".encode() for field in fields]
    together = Lines(b"".join(text), 2, dialect).numbers(0)
    alone = [Lines(each, 2, dialect).numbers(0)[0] for each in text]
    np.testing.assert_array_equal(together, alone)
    for field, value in zip(fields, alone, strict=True):
        if '"' in field or ";" in field:
            continue
        for character in strip:
            field = field.replace(character, "")
        plain = field.strip(" ")
        if thousands and thousands in plain:
            continue  # above
        if decimal == ",":
            plain = plain.replace(".", "x").replace(",", ".")
        try:
            expected = float(plain) if plain.isascii() else math.nan
        except ValueError:
            expected = math.nan
        np.testing.assert_equal(value, expected)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"delimiter": "ab"}, "delimiter must be one ASCII character"),
        ({"delimiter": '"'}, "delimiter must be one ASCII character"),
        ({"delimiter": "7"}, "delimiter must be one ASCII character"),
        ({"delimiter": "§"}, "delimiter must be one ASCII character"),
        ({"decimal": ""}, "decimal and thousands must be one character each, got '' and ''"),
        ({"thousands": "''"}, "decimal and thousands must be one character each"),
        ({"thousands": "0"}, "thousands must hold no digit, sign or quote, got '0'"),
        ({"strip": "$-"}, "strip must hold no digit, sign or quote, got '$-'"),
        ({"decimal": "e"}, "decimal and thousands must be no letters, got 'e'"),
        ({"decimal": ",", "thousands": ","}, "decimal must be neither that of thousands nor in"),
        ({"strip": "$."}, "decimal must be neither that of thousands nor in strip, got '.'"),
        ({"skip_lines": -1}, "skip_lines must be at least 0, got -1"),
        ({"encoding": "rot13"}, "encoding must be one of texts that Python knows"),
        ({"encoding": "cp037"}, "encoding must be one of texts that Python knows"),
        ({"encoding": "latin-99"}, "encoding must be one of texts that Python knows"),
        ({"encoding": "unicode_escape"}, "encoding must be one of texts that Python knows"),
    ],
)
def test_how_no_file_is_written_is_refused(tmp_path, given, rule):
    file = tmp_path / "people.csv"
    file.write_text(written())
    options = itertools.chain.from_iterable(
        (f"--{name.replace('_', '-')}", value) for name, value in given.items()
    )
    assert rule in said("count", file, *COUNT, *options)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".duckdb"])
def test_how_csv_is_written_is_for_csv_alone(tmp_path, suffix):
    file = tmp_path / f"people{suffix}"
    table = pa.table({"age": [1, 2]})
    more = []
    if suffix == ".duckdb":
        duckdb = pytest.importorskip("duckdb", reason="extra 'duckdb' is not installed")
        with duckdb.connect(file) as connection:
            connection.execute("CREATE TABLE people AS SELECT 1 AS age")
        more = ["--table", "people"]
    elif suffix == ".parquet":
        pa.parquet.write_table(table, file)
    else:
        pa.feather.write_feather(table, file)
    message = said("count", file, *more, *COUNT, "--decimal", ",", "--skip-lines", 1)
    assert (
        f"--decimal, --skip-lines must be left out for people{suffix}, which is no CSV" in message
    )


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32"],
)
def test_encodings_are_those_that_are_named(tmp_path, encoding):
    file = tmp_path / "people.csv"
    end = "\n" if encoding in ("utf-8", "utf-16") else "\r\n"
    file.write_bytes(("Größen\n\n\n" + written(";")).replace("\n", end).encode(encoding))
    options = ["--delimiter", ";", "--encoding", encoding, "--skip-lines", 1]
    by = ["--by", "town", "--groups", "Aston,Zürich"]
    out = answered("count", file, *COUNT, *by, *options)
    assert out["values"] == [100, 100]
    piped = answered("count", "-", *COUNT, *by, *options, input=file.read_bytes())
    assert piped["values"] == [100, 100]
    assert TextFile(file, Dialect(";", encoding=encoding, skip_lines=1)).rows() == 201


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "shift_jis", "cp1252"])
@pytest.mark.parametrize("bad", [b"\xff", b"\xd8\x00", b"\x00\xd8\x00", b"\x81", b"\x0a\x0a\x0a"])
def test_bytes_of_no_encoding_stay_in_their_line(encoding, bad):
    """Odd ones, too, of which every character is two: no other record moves by them."""
    parts = [line.encode(encoding) for line in ("1,a", "2,b", "3,c")]
    end = "\n".encode(encoding)
    if len(end) == 1:
        bad = bad.replace(b"\n", b"\r")  # or there are more lines
    good = end.join(parts)
    broken = end.join([parts[0], parts[1] + bad, parts[2]])
    read = []
    for text in (good, broken):
        (block,) = lines.blocks(io.BytesIO(text), encoding)
        read.append(Lines(block, 2, Dialect()).numbers(0))
    assert read[0].tolist() == [1, 2, 3]
    assert read[1].size == 3 and read[1][[0, 2]].tolist() == [1, 3]


def test_lines_are_skipped_before_the_names_whatever_they_hold(tmp_path):
    file = tmp_path / "people.csv"
    file.write_bytes(b'Export of "2026\n\n\xff\xfe,,\n' + written().encode())
    assert answered("count", file, *COUNT, "--skip-lines", 3)["value"] == 200
    message = said("count", file, *COUNT)
    assert '--column must name exactly one of the columns (Export of "2026); got age' in message


def packed(path: Path, text: bytes) -> None:
    """A file, compressed as its name says."""
    suffix = path.suffix
    if suffix == ".gz":  # of two parts, as those that are appended to have
        path.write_bytes(gzip.compress(text[:500]) + gzip.compress(text[500:]))
    elif suffix == ".bz2":
        path.write_bytes(bz2.compress(text))
    elif suffix == ".zst":
        with pa.output_stream(str(path), compression="zstd") as stream:
            stream.write(text)
    elif suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as folder:
            folder.writestr("__MACOSX/._people.tsv", b"\0")
            folder.writestr("inside/people.tsv", text.replace(b",", b"\t"))
    else:
        path.write_bytes(text)


@pytest.mark.parametrize("name", ["p.csv.gz", "p.csv.bz2", "p.csv.zst", "p.zip", "p.gz", "p.CSV"])
def test_files_are_read_by_their_names(tmp_path, name, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK", 1_000)
    plain, file = tmp_path / "plain.csv", tmp_path / name
    plain.write_text(written(), "utf-8")
    packed(file, written().encode())
    arguments = ["--column", "age", "--epsilon", 1, "--bounds", 0, 100, "--q", "0.1,0.7"]
    arguments += ["--seed", 3, "--method", "joint_exp"]
    out = answered("quantile", file, *arguments, "--workers", 3)
    assert out == answered("quantile", plain, *arguments)
    by = ["--by", "town", "--groups", "Aston,Zürich"]
    assert answered("count", file, *COUNT, *by, "--workers", 2)["values"] == [100, 100]


def test_tabs_are_those_of_tsv_or_said(tmp_path):
    for name, more in (("p.tsv", []), ("p.csv", ["--delimiter", r"\t"])):
        (tmp_path / name).write_text(written("\t"), "utf-8")
        assert answered("count", tmp_path / name, *COUNT, *more)["value"] == 200


@pytest.mark.parametrize("write", ["parquet", "feather", "csv"])
def test_folders_are_all_of_their_files(tmp_path, write):
    folder = tmp_path / "people"
    (folder / "deep").mkdir(parents=True)
    (folder / "_SUCCESS").write_text("")
    (folder / ".part.crc").write_text("")
    ages = np.arange(90)
    # the types of the second file follow from its records
    tables = [
        pa.table({"age": ages[:50], "town": ["a"] * 50}),
        pa.table({"town": ["b"] * 41, "age": pa.array([*map(float, ages[50:]), None])}),
    ]
    for place, table in zip((folder, folder / "deep"), tables, strict=True):
        if write == "parquet":
            pa.parquet.write_table(table, place / "part.parquet")
        elif write == "feather":
            pa.feather.write_feather(table, place / "part.feather")
        else:
            pa.csv.write_csv(table, place / "part.csv")
    by = ["--by", "town", "--groups", "a,b,c"]
    assert answered("count", folder, *COUNT, *by)["values"] == [50, 40, 0]
    out = answered("mean", folder, *COUNT, "--bounds", 0, 100, "--workers", 2)
    assert out["value"] == pytest.approx(ages.mean(), abs=0.01)


def test_folders_of_several_kinds_or_names_are_refused(tmp_path):
    folder = tmp_path / "people"
    folder.mkdir()
    assert "source must name at least one file" in said("count", folder, *COUNT)
    (folder / "a.csv").write_text(written())
    (folder / "b.csv").write_text("age\n1\n")
    message = said("count", folder, *COUNT)
    assert "files must have columns of the same names, got b.csv beside a.csv" in message
    (folder / "c.tsv").write_text("age\ttown\n")
    pa.parquet.write_table(pa.table({"age": [1]}), folder / "d.parquet")
    assert "files must be of one kind, got a.csv and d.parquet" in said("count", folder, *COUNT)


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("p.csv.gz", b"Zebediah", "p.csv.gz must be readable, as its name says"),
        ("p.csv.zst", b"Zebediah", "p.csv.zst must be readable, as its name says"),
        ("p.zip", b"Zebediah", "p.zip must be a readable zip file"),
        ("p.feather", b"Zebediah", "p.feather must be a readable Feather file"),
        ("p.parquet.gz", b"Zebediah", "a file must end in .csv, .tsv"),
    ],
)
def test_files_that_are_not_what_their_names_say_are_refused(tmp_path, name, content, rule):
    (tmp_path / name).write_bytes(content)
    message = said("count", tmp_path / name, *COUNT)
    assert rule in message and "Zebediah" not in message


def test_zips_of_several_files_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as folder:
        folder.writestr("a.csv", written())
        folder.writestr("b.csv", written())
    message = said("count", tmp_path / "p.zip", *COUNT)
    assert "p.zip must hold one file, without a password, got 2" in message


def test_a_compressed_file_that_breaks_off_says_no_more(tmp_path):
    """It is a failure of the file; the charge stays."""
    file = tmp_path / "p.csv.gz"
    text = "age,town\n" + "\n".join(f"{j},Zebediah{j * 7919}" for j in range(20_000))
    file.write_bytes(gzip.compress(text.encode())[:-10_000])
    message = said("count", file, *COUNT, "--neighbors", "add-remove", code=3)
    assert "p.csv.gz could not be read to its end" in message and "Zebediah" not in message


@pytest.mark.parametrize(
    "command", ["quantile", "median", "cdf", "sum", "mean", "count", "describe"]
)
def test_help_says_to_look_at_the_count_first(command):
    text = " ".join(run(command, "--help").stdout.split())
    assert "Look at the count first" in text
    assert "How CSV is written:" in text
