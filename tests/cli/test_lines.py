"""CSV, line by line."""

import csv
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from command_line import read_column
from hypothesis import given, settings
from hypothesis import strategies as st

from dpq_fast.engines import lines as csv_lines


def naive_csv(text: bytes, columns: int, wanted: int) -> list[float]:
    """One line at a time, by the csv module."""
    values = []
    for line in text.split(b"\n"):
        try:
            fields = next(csv.reader([line.removesuffix(b"\r").decode("latin-1")]), [""])
        except csv.Error:
            fields = []
        field = fields[wanted] if len(fields) == columns else ""
        try:
            values.append(float(field.strip(" ")))
        except ValueError:
            values.append(math.nan)
    return values


FIELD = st.one_of(
    st.sampled_from([b"1", b"-2.5e3", b'"3"', b'"4,5"', b" 6 ", b'"say ""7"""', b"", b"NA"]),
    st.lists(st.sampled_from([b'"', b",", b"\n", b"\r\n", b"8", b"x", b"\xe9"]), max_size=5).map(
        b"".join
    ),
)
LINE = st.lists(FIELD, min_size=1, max_size=4).map(b",".join)


@pytest.fixture(scope="session")
def any_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to write over: hypothesis makes many examples of one test."""
    return tmp_path_factory.mktemp("csv") / "any.csv"


@pytest.mark.slow
@given(
    columns=st.integers(1, 3),
    lines=st.lists(LINE, max_size=12),
    end=st.sampled_from([b"\n", b"\r\n"]),
    closed=st.booleans(),
    block=st.integers(1, 40),
)
@settings(max_examples=200)
def test_read_column_has_one_record_for_each_line(any_file, columns, lines, end, closed, block):
    names = [f"c{k}" for k in range(columns)]
    text = end.join(lines) + end * closed
    any_file.write_bytes(",".join(names).encode() + end + text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_lines, "BLOCK", block)
        for k, name in enumerate(names):
            values = read_column(any_file, name)
            assert values.dtype == np.float64
            assert values.size == text.count(b"\n") + 1
            np.testing.assert_array_equal(values, naive_csv(text, columns, k))


@given(
    lines=st.lists(LINE, min_size=1, max_size=8),
    other=LINE.map(lambda line: line.replace(b"\n", b"")),
    data=st.data(),
)
def test_read_column_of_other_records_does_not_depend_on_one(any_file, lines, other, data):
    lines = b"\n".join(lines).split(b"\n")
    j = data.draw(st.integers(0, len(lines) - 1))
    values = []
    for line in (lines[j], other):
        any_file.write_bytes(b"\n".join([b"age,name", *lines[:j], line, *lines[j + 1 :]]))
        values.append(np.delete(read_column(any_file, "age"), j))
    assert values[0].size == len(lines) - 1
    np.testing.assert_array_equal(*values)


def test_quantile_loses_no_record_to_a_quote_in_another_column(tmp_path, ages):
    file = tmp_path / "quote.csv"
    rows = [f"{age},x" for age in ages]
    rows[20] = f'{ages[20]},"x'
    file.write_text("age,name\n" + "\n".join(rows))
    np.testing.assert_array_equal(read_column(file, "age"), ages)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('"1,5",2', math.nan),
        ('"1",2', 1.0),
        ('1,"a,b"', 1.0),
        ('1,"a ""b"", c"', 1.0),
        ("1,5'3\"", 1.0),  # stray quotes stay in their line, and in their field if they can
        ('1,"open', 1.0),
        ('"1,open', math.nan),
        ('1,"a"b', 1.0),
        ("1", math.nan),
        ("1,2,3", math.nan),
        ("", math.nan),
        (" +1 ,x", 1.0),
        ("\t.5e1\t,x", 5.0),
        ("1_0,x", math.nan),
        ("0x10,x", math.nan),
        ("١,x", math.nan),
        ("1e999,x", math.inf),
        ("-Infinity,x", -math.inf),
        ("1\r,x", math.nan),
        ("1,\rx", 1.0),
        ("1,\0", 1.0),
    ],
)
def test_read_column_of_a_line(tmp_path, line, value):
    file = tmp_path / "line.csv"
    file.write_bytes(b"age,name\n7,x\n" + line.encode() + b"\n8,y")
    np.testing.assert_array_equal(read_column(file, "age"), [7.0, value, 8.0])


ENDS = ["\n", "\r\n"]


@pytest.mark.parametrize("end", ENDS, ids=repr)
@pytest.mark.parametrize("last", [True, False])
def test_quantile_of_csv_with_one_column_keeps_rows_that_become_missing(tmp_path, end, last):
    """Whether and where records are missing must not change how many rows there are."""
    file = tmp_path / "one.csv"
    rows = ["age", "1", "2", "3", "4"]
    sizes = set()
    for missing in itertools.product([False, True], repeat=4):
        kept = ["age", *("" if gone else row for gone, row in zip(missing, rows[1:], strict=True))]
        file.write_bytes((end.join(kept) + end * last).encode())
        values = read_column(file, "age")
        expected = [np.nan if gone else j for j, gone in enumerate(missing, start=1)]
        np.testing.assert_array_equal(values[:4], expected)
        assert np.isnan(values[4:]).all()
        sizes.add(values.size)
    assert len(sizes) == 1


def test_quantile_of_csv_with_one_column_keeps_rows_at_the_ends_of_blocks(tmp_path):
    file = tmp_path / "long.csv"
    ages = np.random.default_rng(1).integers(0, 10**6, size=500_000)
    gone = np.random.default_rng(2).random(ages.size) < 0.5
    rows = np.where(gone, "", ages.astype(str))
    file.write_bytes(("age\r\n" + "\r\n".join(rows)).encode())
    assert file.stat().st_size > 2 * csv_lines.BLOCK
    expected = np.where(gone, np.nan, ages)
    np.testing.assert_array_equal(read_column(file, "age"), expected)


def test_read_column_takes_empty_lines_for_records_after_the_names(tmp_path):
    file = tmp_path / "two.csv"
    file.write_text("\n\nage,kind\n\n1,x\n\n,y\n3,z\n\n")
    gone = np.nan
    np.testing.assert_array_equal(
        read_column(file, "age"), [gone, 1.0, gone, gone, 3.0, gone, gone]
    )


def test_quantile_decodes_nothing_but_the_names_and_the_column(tmp_path):
    """Wherever other bytes are, near the names or far away."""
    file = tmp_path / "latin.csv"
    for row in (0, 5, 4_000):
        lines = [b"age,name", *[b"1,x"] * 5_000]
        lines[row + 1] = b"1,Jos\xe9"
        file.write_bytes(b"\n".join(lines))
        np.testing.assert_array_equal(read_column(file, "age"), np.ones(5_000))
