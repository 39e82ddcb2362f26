"""Tables of files by their names, against the same columns in memory."""

import datetime
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import dpq_fast as dpq
from dpq_fast.data.units import unit_of
from dpq_fast.engines import lines
from dpq_fast.engines.files import TextFile

N = 2_000
RNG = np.random.default_rng(4)
PAY = RNG.integers(0, 90, N).astype(float)
TOWNS = np.array(["Aston", "Barnet", "Zürich"])[RNG.integers(0, 3, N)]
DAYS = np.datetime64("2024-01-01") + RNG.integers(0, 300, N)
PLACE = dict(bounds=(0, 100), resolution=1, epsilon=1.0)
ENDS = (datetime.date(2023, 1, 1), datetime.date(2026, 1, 1))
SOURCES = {
    "parquet": "p.parquet",
    "pq": "p.pq",
    "feather": "p.feather",
    "arrow": "p.arrow",
    "csv": "p.csv",
    "tsv": "p.tsv",
    "gz": "p.csv.gz",
    "folder of Parquet": "parquet",
    "folder of Feather": "feather",
    "folder of CSV": "csv",
    "glob": "parquet/*.parquet",
    "deep glob": "**/part-?.feather",
    "list": ["csv/a.csv", "csv/deep/b.csv"],
    "list of globs": ["parquet/part-0*", "parquet/deep/*"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("files")
    table = pa.table({"pay": PAY, "town": TOWNS.tolist(), "day": DAYS.tolist()})
    for name in ("p.parquet", "p.pq"):
        pq.write_table(table, made / name)
    for name in ("p.feather", "p.arrow"):
        pa.feather.write_feather(table, made / name)
    pa.csv.write_csv(table, made / "p.csv")
    pa.csv.write_csv(table, made / "p.tsv", pa.csv.WriteOptions(delimiter="\t"))
    (made / "p.csv.gz").write_bytes(gzip.compress((made / "p.csv").read_bytes()))
    # In the second file types are others, as records make them, and so is the order of columns.
    whole = pa.array(PAY[:1_200].astype(int))
    halves = [
        table.slice(0, 1_200).set_column(0, "pay", whole),
        table.slice(1_200).select(["day", "pay", "town"]),
    ]
    for kind in ("parquet", "feather", "csv"):
        (made / kind / "deep").mkdir(parents=True)
        (made / kind / "_SUCCESS").write_text("")
        (made / kind / ".hidden").write_text("")
    for at, half in zip(("", "deep/"), halves, strict=True):
        number = len(at) and 1
        pq.write_table(half, made / "parquet" / f"{at}part-{number}.parquet")
        pa.feather.write_feather(half, made / "feather" / f"{at}part-{number}.feather")
        pa.csv.write_csv(half, made / "csv" / f"{at}{'ab'[number]}.csv")
    return made


@pytest.fixture
def table_of(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(lines, "BLOCK", 20_000)
    return lambda name, **options: dpq.Table.of(SOURCES[name], **options)


def releases(table):
    """What a table releases of each kind, with seeds."""
    groups = dict(groups=["Zürich", "Aston", "Rome"], q=None, upper=100, epsilon=1.0, rng=1)
    found = dpq.together(
        lambda: dpq.quantile(table["pay"], [0.1, 0.5, 0.9], rng=1, **PLACE).tolist(),
        lambda: dpq.quantile(table["day"], [0.3], epsilon=1.0, bounds=ENDS, rng=1).tolist(),
        lambda: dpq.count(table["day"], epsilon=1.0, rng=1),
        lambda: dpq.sum_by(table["pay"], table["town"], **groups).values.tolist(),
    )
    return list(found)


@pytest.fixture(scope="module")
def expected():
    """By the number of records: all of them, or those of the first file of a folder."""
    return {
        n: releases(dpq.Table.of({"pay": PAY[:n], "town": TOWNS[:n], "day": DAYS[:n]}))
        for n in (N, 1_200)
    }


@pytest.mark.parametrize("name", SOURCES)
def test_tables_of_files_release_as_columns_in_memory(table_of, expected, name):
    table = table_of(name, workers=1 + 2 * (name in ("csv", "gz", "feather", "folder of Parquet")))
    assert sorted(table.columns) == sorted(table.names) == ["day", "pay", "town"]
    assert releases(table) == expected[1_200 if name == "glob" else N]


def test_columns_of_texts_are_what_is_asked_for(tmp_path):
    """Numbers, times with a zone and without, or whichever, to be counted; one column is all."""
    file = tmp_path / "mixed.csv"
    file.write_text("x\n1\n2024-01-01\n2024-01-01T00:00Z\nx\n\n-inf\n3")
    column = next(TextFile(file).batches()).column("x")
    nan = np.nan
    np.testing.assert_array_equal(column.records(None), [1, nan, nan, nan, nan, -np.inf, 3])
    plain = unit_of(dict(bounds=ENDS, resolution=datetime.timedelta(days=1)))
    np.testing.assert_array_equal(column.records(plain), [nan, 365, *[nan] * 5])
    table = dpq.Table.of(file)
    assert dpq.count(table["x"], epsilon=1e6) == 5
    assert dpq.count_by(table["x"], table["x"], groups=["3", "x"], epsilon=1e6).values.tolist() == [
        1,
        0,
    ]
    assert dpq.count(dpq.Table.of(file), epsilon=1e6) == 5


TIMES = [
    ("2024-02-29", "2024-02-29"),
    (" 2024-02-29 23:59 ", "2024-02-29T23:59"),
    ("2024-02-29T23:59:58.1234567", "2024-02-29T23:59:58.123456"),
    ("0001-01-01", "0001-01-01"),
    ("9999-12-31T23:59:59", "9999-12-31T23:59:59"),
    *[(text, "NaT") for text in ("2023-02-29", "2024-13-01", "2024-00-10", "0000-01-01", "")],
    *[(text, "NaT") for text in ("2024-01-32", "2024-01-01T24:00", "2024-01-01T00:60", "2024")],
    *[(text, "NaT") for text in ("10000-01-01", "2024-1-1", "2024-01-01T00:00:60", "x\0\xff")],
    *[(text, "NaT") for text in ("2024-01-01T00:00Z", "2024-01-01T00:00+01:00")],
]
ZONED = [
    ("2024-01-01T00:00Z", "2024-01-01T00:00"),
    ("2024-01-01T00:00:00.5+01:30", "2023-12-31T22:30:00.5"),
    ("2024-01-01T00:00-0130", "2024-01-01T01:30"),
    ("0001-01-01T00:00+23:59", "0000-12-31T00:01"),
    *[(text, "NaT") for text in ("2024-01-01", "2024-01-01T00:00", "2024-01-01T00:00+24:00")],
]


@pytest.mark.parametrize(("texts", "zoned"), [(TIMES, False), (ZONED, True)])
def test_times_are_those_of_iso_8601(texts, zoned):
    block = "".join(f'"{text}"\n{text}\n"{text}" \n' for text, _ in texts).encode("latin-1")
    found = lines.Lines(block, 1, lines.Dialect()).times(0, zoned)
    expected = np.array([time for _, time in texts], dtype="M8[us]")
    np.testing.assert_array_equal(found, np.repeat(expected, 3))


def test_one_record_decides_nothing_of_a_table_of_texts(tmp_path):
    """Of any column, for any release; where a reader infers types, it would of all."""
    file = tmp_path / "p.csv"
    for odd in (
        b"1",
        b"x",
        b"",
        b'"',
        b"1,2,3",
        b"\xff\xfe\0",
        b"2024-01-01",
        b"1e999",
        b"9" * 400,
    ):
        file.write_bytes(b"pay,town\n" + b"5,a\n" * 30 + odd + b"\n" + b"5,a\n" * 30)
        table = dpq.Table.of(file)
        assert dpq.median(table["pay"], rng=1, **PLACE | dict(epsilon=100)) == 5
        assert dpq.median(table["town"], rng=1, **PLACE) <= 100
        assert dpq.select_keys(table["town"], epsilon=10, delta=1e-6, rng=1) == ["a"]


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("none.csv", "source must be a file, a folder or a glob of files that are there"),
        ("select 1", "source must be a file, a folder or a glob of files that are there .a query"),
        ("*.none", "source must be a file, a folder or a glob of files that are there"),
        ("x" * 400, "source must be a file, a folder or a glob of files that are there"),
        ("p.txt", r"a file must end in \.csv, \.tsv, \.gz.*, got p\.txt"),
        ("empty", "source must name at least one file"),
        (["p.csv", "p.parquet"], r"files must be of one kind, got p\.csv and p\.parquet"),
        (
            ["p.csv", "q.csv"],
            r"files must have columns of the same names, got q\.csv beside p\.csv",
        ),
        ("broken.parquet", r"broken\.parquet must be a readable Parquet file"),
        ("broken.feather", r"broken\.feather must be a readable Feather file"),
        ("blank.csv", r"blank\.csv must begin with a line of column names in UTF-8"),
    ],
)
def test_files_are_refused_by_rules(tmp_path, folder, monkeypatch, source, rule):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for name in ("p.csv", "p.parquet"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    for name in ("p.txt", "q.csv", "broken.parquet", "broken.feather"):
        (tmp_path / name).write_text("pay,town\n")
    (tmp_path / "blank.csv").write_text("\n\n")
    with pytest.raises((ValueError, FileNotFoundError), match=rule):
        dpq.Table.of(source)


def test_unknown_columns_are_answered_with_those_there_are(table_of, tmp_path):
    table = table_of("csv")
    rule = r"one column of the table \(pay, town, day; did you mean 'town'\?\), got 'towns'"
    with pytest.raises(ValueError, match=rule):
        table["towns"]
    with pytest.raises(ValueError, match=r"one column of the table \(pay, town, day\), got 'q'"):
        table["pay", "q"]
    # a first line that is a record is shown to nobody
    (tmp_path / "bare.csv").write_text("Zebediah,4711\nJo,1\n")
    with pytest.raises(
        ValueError, match=r"^name must be that of one column of the table, got 'x'$"
    ):
        dpq.Table.of(tmp_path / "bare.csv")["x"]
