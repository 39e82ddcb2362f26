"""The command `dpq-fast`: what it prints, what it reads, and what it must never print."""

import csv
import itertools
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.stats
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

import dpq_fast as dpq
from dpq_fast import cli
from dpq_fast.mechanisms.quantile import choose_method

BOUNDS = (0.0, 100.0)
ARGUMENTS = ["--column", "age", "--epsilon", "1", "--bounds", "0", "100"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def released(*arguments: object) -> dict:
    """The JSON object of a release that succeeds."""
    result = run("quantile", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments: object) -> str:
    """What a refused release prints, on one line: exit code 2, no traceback, nothing released."""
    result = run("quantile", *arguments)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    return " ".join(result.stderr.split())


@pytest.fixture
def ages() -> np.ndarray:
    return np.random.default_rng(5).integers(17, 91, size=2_000)


@pytest.fixture
def csv_file(tmp_path: Path, ages: np.ndarray) -> Path:
    file = tmp_path / "people.csv"
    rows = [f'{j},{age},"Doe, {j}"' for j, age in enumerate(ages)]
    file.write_text("id,age,name\n" + "\n".join(rows) + "\n")
    return file


@pytest.fixture
def parquet_file(tmp_path: Path, ages: np.ndarray) -> Path:
    file = tmp_path / "people.parquet"
    names = [f"Doe, {j}" for j in range(ages.size)]
    table = pa.table({"age": ages, "height": ages * 1.5, "name": names, "adult": ages > 17})
    pa.parquet.write_table(table, file)
    return file


# demo


def test_demo_states_the_release_and_shows_nine_deciles():
    result = run("demo")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    for fact in (
        "generated payroll",
        "epsilon 1, delta 0, neighbors swap",
        "bounds [0, 500,000]",
        "mechanism joint_exp",
        "resolution 100",
        "noise: fresh, cryptographic",
        "True values and rank errors are shown only because the column is generated",
    ):
        assert fact in text
    rows = re.findall(r"(\d0)% +│ +([\d,]+) +│ +([\d,]+) +│ +([\d,]+) +│ (\S+)", result.stdout)
    assert [row[0] for row in rows] == [f"{j}0" for j in range(1, 10)]
    numbers = np.array([[cell.replace(",", "") for cell in row[1:4]] for row in rows], dtype=float)
    true, private, error = numbers.T
    np.testing.assert_array_equal(true, np.quantile(cli.generated_payroll(), cli.DECILES))
    assert (np.diff(private) >= 0).all()
    assert (private % cli.PAYROLL_RESOLUTION == 0).all()
    # JointExp misses by about 7 records here; 500 would need probabilities below exp(-100).
    assert error.max() < 500


def test_demo_fits_80_columns():
    assert max(len(line) for line in run("demo", "--epsilon", "0.001").stdout.splitlines()) <= 80


def test_demo_draws_fresh_noise_unless_seeded():
    outputs = {run("demo", "--epsilon", "0.1").stdout for _ in range(3)}
    assert len(outputs) == 3
    seeded = [run("demo", "--seed", "3").stdout for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert "noise: repeatable, from seed 3" in seeded[0]


def test_demo_rejects_epsilon_of_zero():
    result = run("demo", "--epsilon", "0")
    assert result.exit_code == 2
    assert "epsilon must be positive and finite, got 0.0" in result.stderr


def test_generated_payroll_is_public_and_full_of_ties():
    salaries = cli.generated_payroll()
    np.testing.assert_array_equal(salaries, cli.generated_payroll())
    assert (salaries % 100 == 0).all()
    assert np.unique(salaries).size < salaries.size / 5
    low, high = cli.PAYROLL_BOUNDS
    assert low < salaries.min() and salaries.max() < high


# quantile


@pytest.mark.parametrize("levels", [["--q", "0.1,0.5,0.9"], ["--q", "0.1", "--q", "0.5,0.9"]])
def test_quantile_of_csv_equals_library(csv_file, ages, levels):
    out = released(csv_file, *ARGUMENTS, *levels, "--seed", 7, "--method", "joint_exp")
    expected = dpq.quantile(
        ages.astype(float), [0.1, 0.5, 0.9], epsilon=1, bounds=BOUNDS, method="joint_exp", rng=7
    )
    assert out["q"] == [0.1, 0.5, 0.9]
    assert out["values"] == expected.tolist()


def test_quantile_of_parquet_equals_library(parquet_file, ages):
    arguments = ["--neighbors", "add-remove", "--method", "ind_exp", "--delta", 1e-6]
    arguments += ["--resolution", 0.5, "--no-dither", "--max-contributions", 2, "--seed", 7]
    out = released(parquet_file, *ARGUMENTS, "--q", "0.9,0.5", *arguments)
    expected = dpq.quantile(
        ages,
        [0.9, 0.5],
        epsilon=1,
        delta=1e-6,
        bounds=BOUNDS,
        method="ind_exp",
        neighbors="add-remove",
        resolution=0.5,
        dither=False,
        max_contributions=2,
        rng=7,
    )
    assert out["values"] == expected.tolist()


def test_quantile_reads_pq_and_upper_case_extensions(tmp_path, csv_file, parquet_file):
    for file, suffix in ((csv_file, ".CSV"), (parquet_file, ".pq")):
        copy = tmp_path / f"copy{suffix}"
        copy.write_bytes(file.read_bytes())
        arguments = [*ARGUMENTS, "--q", "0.5", "--seed", 1]
        assert released(copy, *arguments) == released(file, *arguments)


def test_quantile_answers_alike_for_integers_of_parquet_and_numbers_of_csv(
    csv_file, parquet_file, ages
):
    arguments = [*ARGUMENTS, "--q", "0.25,0.5,0.75", "--seed", 11]
    for more, options in ((["--resolution", "1"], {"resolution": 1}), ([], {})):
        declared = released(parquet_file, *arguments, *more)["values"]
        assert declared == released(csv_file, *arguments, *more)["values"]
        expected = dpq.quantile(
            ages, [0.25, 0.5, 0.75], epsilon=1, bounds=BOUNDS, rng=11, **options
        )
        assert declared == expected.tolist()


def test_quantile_of_parquet_omits_missing_values(tmp_path, ages):
    file = tmp_path / "missing.parquet"
    pa.parquet.write_table(pa.table({"age": pa.array([*ages.tolist(), None], pa.int64())}), file)
    values = released(file, *ARGUMENTS, "--q", "0.1,0.5,0.9", "--seed", 2)["values"]
    assert values == dpq.quantile(ages, [0.1, 0.5, 0.9], epsilon=1, bounds=BOUNDS, rng=2).tolist()


def test_quantile_omits_missing_values_of_csv(tmp_path, ages):
    file = tmp_path / "missing.csv"
    rows = [f"{age},x" for age in ages]
    rows[10:10] = [",x", "NA,x", "nan,x", "NaN,x", "null,x", "N/A,x"]
    file.write_text("age,kind\n" + "\n".join(rows))
    values = released(file, *ARGUMENTS, "--q", "0.1,0.5,0.9", "--seed", 2)["values"]
    with_nan = np.insert(ages.astype(float), [10] * 6, np.nan)
    expected = dpq.quantile(with_nan, [0.1, 0.5, 0.9], epsilon=1, bounds=BOUNDS, rng=2)
    assert values == expected.tolist()


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


@given(
    columns=st.integers(1, 3),
    lines=st.lists(LINE, max_size=12),
    end=st.sampled_from([b"\n", b"\r\n"]),
    closed=st.booleans(),
    block=st.integers(1, 40),
)
@settings(max_examples=500)
def test_read_column_has_one_record_for_each_line(any_file, columns, lines, end, closed, block):
    names = [f"c{k}" for k in range(columns)]
    text = end.join(lines) + end * closed
    any_file.write_bytes(",".join(names).encode() + end + text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "CSV_BLOCK", block)
        for k, name in enumerate(names):
            values = cli.read_column(any_file, name)
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
        values.append(np.delete(cli.read_column(any_file, "age"), j))
    assert values[0].size == len(lines) - 1
    np.testing.assert_array_equal(*values)


def test_quantile_loses_no_record_to_a_quote_in_another_column(tmp_path, ages):
    file = tmp_path / "quote.csv"
    rows = [f"{age},x" for age in ages]
    rows[20] = f'{ages[20]},"x'
    file.write_text("age,name\n" + "\n".join(rows))
    np.testing.assert_array_equal(cli.read_column(file, "age"), ages)


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
    np.testing.assert_array_equal(cli.read_column(file, "age"), [7.0, value, 8.0])


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
        values = cli.read_column(file, "age")
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
    assert file.stat().st_size > 2 * cli.CSV_BLOCK
    expected = np.where(gone, np.nan, ages)
    np.testing.assert_array_equal(cli.read_column(file, "age"), expected)


def test_quantile_chooses_the_method_whatever_is_missing(tmp_path):
    """By the number of rows, just enough for JointExp; it is public under swap."""
    levels = [j / 10 for j in range(1, 10)]
    public = dict(epsilon=1.0, bounds=(0.0, 100.0))
    rows = next(
        n
        for n in range(100, 1_000)
        if choose_method(None, levels, expected_n=n, **public) == "joint_exp"
    )
    file, methods = tmp_path / "one.csv", set()
    for gone in ([], [7], [rows - 1], range(rows)):
        ages = ["" if j in gone else "50" for j in range(rows)]
        file.write_text("\n".join(["age", *ages]))
        methods.add(released(file, *ARGUMENTS, "--q", ",".join(map(str, levels)))["method"])
    assert methods == {"joint_exp"}


def test_read_column_takes_empty_lines_for_records_after_the_names(tmp_path):
    file = tmp_path / "two.csv"
    file.write_text("\n\nage,kind\n\n1,x\n\n,y\n3,z\n\n")
    gone = np.nan
    np.testing.assert_array_equal(
        cli.read_column(file, "age"), [gone, 1.0, gone, gone, 3.0, gone, gone]
    )


def test_quantile_decodes_nothing_but_the_names_and_the_column(tmp_path):
    """Wherever other bytes are, near the names or far away."""
    file = tmp_path / "latin.csv"
    for row in (0, 5, 4_000):
        lines = [b"age,name", *[b"1,x"] * 5_000]
        lines[row + 1] = b"1,Jos\xe9"
        file.write_bytes(b"\n".join(lines))
        np.testing.assert_array_equal(cli.read_column(file, "age"), np.ones(5_000))


def test_quantile_of_parquet_takes_the_column_with_a_dot_in_its_name(tmp_path):
    file = tmp_path / "dots.parquet"
    pa.parquet.write_table(pa.table({"x": [{"y": 1}, {"y": 2}], "x.y": [7, 8]}), file)
    assert cli.read_column(file, "x.y").to_pylist() == [7, 8]


@pytest.mark.parametrize("names", ["age", "age,name", '"age"'])
@pytest.mark.parametrize("end", ["", *ENDS], ids=repr)
def test_quantile_of_file_without_records_answers(tmp_path, names, end):
    file = tmp_path / "empty.csv"
    file.write_bytes((names + end).encode())
    values = released(file, *ARGUMENTS, "--q", "0.5")["values"]
    assert 0.0 <= values[0] <= 100.0


def test_quantile_json_holds_public_arguments_and_values_only(csv_file):
    out = released(csv_file, *ARGUMENTS, "--q", "0.5", "--method", "joint_exp", "--resolution", 1)
    values = out.pop("values")
    assert len(values) == 1 and 0.0 <= values[0] <= 100.0
    assert out == {
        "method": "joint_exp",
        "neighbors": "swap",
        "epsilon": 1.0,
        "delta": 0.0,
        "max_contributions": 1,
        "bounds": [0.0, 100.0],
        "resolution": 1.0,
        "q": [0.5],
    }


def test_quantile_with_a_confidence_holds_intervals(csv_file):
    arguments = [*ARGUMENTS, "--q", "0.5,0.25", "--resolution", 1, "--seed", 4]
    arguments += ["--confidence", 0.9, "--covers", "population", "--prior", "uniform"]
    out = released(csv_file, *arguments)
    expected = dpq.quantile(
        cli.read_column(csv_file, "age"),
        [0.5, 0.25],
        epsilon=1.0,
        bounds=(0, 100),
        resolution=1,
        confidence=0.9,
        covers="population",
        rng=4,
    )
    assert [out["values"], out["low"], out["high"]] == [part.tolist() for part in expected]
    assert (out["confidence"], out["covers"], out["prior"]) == (0.9, "population", "uniform")
    assert out["epsilon"] == 1.0
    text = run("quantile", csv_file, *arguments).stdout
    rows = re.findall(r"│ +([\d.]+) │ +([\d.]+) │ +([\d.]+) │ +([\d.]+) │", text)
    ends = np.asarray(expected).tolist()
    assert [list(map(float, row)) for row in rows] == [[0.5, *ends[0]], [0.25, *ends[1]]]
    assert "prior uniform, 90% intervals for the population" in " ".join(text.split())


def test_quantile_with_a_prior_is_that_of_the_library(csv_file):
    arguments = ["--column", "age", "--epsilon", 1, "--q", 0.5, "--bounds", 1, 1e9, "--seed", 4]
    out = released(csv_file, *arguments, "--prior", "log")
    column = cli.read_column(csv_file, "age")
    place = dict(epsilon=1.0, bounds=(1, 1e9), rng=4)
    assert out["values"] == [dpq.quantile(column, 0.5, prior="log", **place)]
    assert out["values"] != released(csv_file, *arguments)["values"]


def test_quantile_table_holds_values_and_guarantee(csv_file):
    arguments = [*ARGUMENTS, "--q", "0.5,0.25", "--seed", 4, "--resolution", 1, "--delta", "1e-6"]
    values = released(csv_file, *arguments)["values"]
    result = run("quantile", csv_file, *arguments, "--max-contributions", 1)
    rows = re.findall(r"│ +([\d.]+) │ +([\d.]+) │", result.stdout)
    assert [float(level) for level, _ in rows] == [0.5, 0.25]
    assert [float(value) for _, value in rows] == values
    text = " ".join(result.stdout.split())
    assert (
        "epsilon 1, delta 0, neighbors swap (one record), method joint_exp, bounds [0, 100], "
        "resolution 1"
    ) in text
    assert "experiments only" in result.stderr


def test_quantile_prints_column_names_as_plain_text(tmp_path):
    file = tmp_path / "markup.csv"
    file.write_text("[red]age[/blue]\n1\n2\n")
    result = run(
        "quantile",
        file,
        "--column",
        "[red]age[/blue]",
        "--epsilon",
        1,
        "--bounds",
        0,
        9,
        "--q",
        0.5,
    )
    assert result.exit_code == 0, result.output
    assert "[red]age[/blue]" in " ".join(result.stdout.split())


# errors


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_quantile_rejects_missing_file(tmp_path, suffix):
    assert "does not exist" in refused(tmp_path / f"none{suffix}", *ARGUMENTS, "--q", "0.5")


def test_quantile_rejects_other_extensions(tmp_path):
    file = tmp_path / "people.xlsx"
    file.write_text("age\n1\n")
    message = refused(file, *ARGUMENTS, "--q", "0.5")
    assert "FILE must end in .csv, .parquet or .pq, got people.xlsx" in message


def test_quantile_rejects_missing_column_and_lists_the_columns(csv_file, parquet_file):
    arguments = ["--column", "wage", "--epsilon", "1", "--bounds", "0", "9", "--q", "0.5"]
    rule = "--column must name exactly one of the columns"
    assert f"{rule} id, age, name; got wage" in refused(csv_file, *arguments)
    assert f"{rule} age, height, name, adult; got wage" in refused(parquet_file, *arguments)


def test_quantile_rejects_column_named_twice(tmp_path):
    file = tmp_path / "twice.csv"
    file.write_text("age,age\n1,2\n")
    assert "must name exactly one" in refused(file, *ARGUMENTS, "--q", "0.5")


@pytest.mark.parametrize("row", ["secret-4711,x", "true,x", "3,x,secret-4711", "secret-4711", '"'])
def test_quantile_answers_whatever_one_record_holds(tmp_path, row):
    """A record decides no error and no warning, and is left out if it holds no number."""
    outputs = []
    for line in (row, ",x"):
        file = tmp_path / "people.csv"
        file.write_text("age,name\n" + "1,a\n" * 40 + line + "\n" + "1,a\n" * 9)
        result = run("quantile", file, *ARGUMENTS, "--q", "0.5", "--seed", 1)
        assert result.exit_code == 0
        outputs.append((result.stdout, result.stderr))
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", b"\xff\xfe\x00age\n1\n", b"\xef\xbb\xbf", b'"a"b,age\n1,2\n', b"age\r1\r2\n"],
)
def test_quantile_rejects_csv_without_header(tmp_path, content):
    file = tmp_path / "bad.csv"
    file.write_bytes(content)
    message = refused(file, *ARGUMENTS, "--q", "0.5")
    assert "bad.csv must begin with a line of column names" in message


@pytest.mark.parametrize("end", [*ENDS, "\r"], ids=repr)
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("column", ["age", "wage"])
def test_quantile_takes_no_records_for_names(tmp_path, end, closed, column):
    """An open quote in the first line takes in what follows, or all of the file."""
    file = tmp_path / "open.csv"
    lines = ['id,"age', "17,secret-1", '18,"secret-2' if closed else "18,secret-2", ""]
    file.write_bytes(end.join(lines).encode())
    message = refused(file, "--column", column, *ARGUMENTS[2:], "--q", "0.5")
    assert "open.csv must begin with a line of column names" in message
    assert not any(secret in message for secret in ("secret", "17", "18"))


def test_quantile_rejects_broken_parquet(tmp_path):
    file = tmp_path / "bad.parquet"
    file.write_text("secret-4711")
    message = refused(file, *ARGUMENTS, "--q", "0.5")
    assert "bad.parquet must be a readable Parquet file" in message
    assert "secret" not in message


def test_quantile_rejects_parquet_types_other_than_numbers(parquet_file):
    arguments = ["--column", "name", "--epsilon", "1", "--bounds", "0", "9", "--q", "0.5"]
    message = refused(parquet_file, *arguments)
    assert "x must hold real numbers, got dtype string" in message


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--epsilon", "0"], "epsilon must be positive and finite, got 0.0"),
        (["--epsilon", "nan"], "epsilon must be positive and finite, got nan"),
        (["--bounds", "9", "-9"], "bounds must be finite with low < high, got (9.0, -9.0)"),
        (["--q", "1.5"], "q must lie in [0, 1], got q["),
        (["--q", "half"], "q must be numbers separated by commas, got 'half'"),
        (["--resolution", "-1"], "resolution must be finite and not negative, got -1.0"),
        (["--max-contributions", "0"], "max_contributions must be at least 1, got 0"),
        (["--method", "guess"], "'guess' is not one of 'auto', 'joint_exp', 'ind_exp', 'ap"),
        (["--neighbors", "near"], "'near' is not one of 'swap', 'add-remove'"),
    ],
)
def test_quantile_rejects_public_arguments_by_the_library_message(csv_file, arguments, rule):
    # The later of two equal options counts; --q adds up.
    assert rule in refused(csv_file, *ARGUMENTS, "--q", "0.5", *arguments)


@pytest.mark.parametrize(
    ("options", "call"),
    [
        ([], {}),
        (["--method", "unbounded_quantile", "--upper", 100], {"upper": 100.0}),
        (["--lower", "none", "--upper", 100], {"lower": None, "upper": 100.0}),
        (["--lower", 10], {"lower": 10.0}),
        (["--lower", "none"], {"lower": None}),
    ],
)
def test_quantile_without_bounds_equals_library(csv_file, ages, options, call):
    arguments = ["--column", "age", "--q", "0.5,0.9", "--epsilon", 1, "--seed", 3, *options]
    out = released(csv_file, *arguments)
    expected = dpq.unbounded_quantile(ages.astype(float), [0.5, 0.9], epsilon=1, rng=3, **call)
    assert out.pop("values") == expected.tolist()
    assert (out["method"], out["bounds"]) == ("unbounded_quantile", None)
    call = {"lower": 0.0, "upper": None} | call
    assert {name: out[name] for name in call} == call
    text = " ".join(run("quantile", csv_file, *arguments).stdout.split())
    ends = (f"{name} {'none' if end is None else f'{end:g}'}" for name, end in call.items())
    assert "method unbounded_quantile, " + ", ".join(ends) in text
    assert "resolution" not in text


@pytest.mark.parametrize("method", ["joint_exp", "ind_exp", "approx_quantiles", "agg_tree"])
def test_quantile_without_bounds_rejects_methods_that_need_them(csv_file, method):
    arguments = ["--column", "age", "--q", 0.5, "--epsilon", 1, "--method", method]
    assert "bounds must be two real numbers (low, high), got None" in refused(csv_file, *arguments)


@pytest.mark.parametrize(
    "options",
    [["--bounds", 0, 9], ["--method", "joint_exp"], ["--method", "joint_exp", "--bounds", 0, 9]],
)
@pytest.mark.parametrize("end", [["--lower", 1], ["--upper", "none"]])
def test_quantile_rejects_ends_beside_bounds(csv_file, options, end):
    arguments = ["--column", "age", "--q", 0.5, "--epsilon", 1, *options, *end]
    rule = "--lower and --upper are for unbounded_quantile without --bounds"
    assert rule in refused(csv_file, *arguments)


@pytest.mark.parametrize("option", ["--column", "--epsilon", "--q"])
def test_quantile_requires_its_options(csv_file, option):
    words = {"--column": ["age"], "--epsilon": [1], "--bounds": [0, 9], "--q": [0.5]}
    del words[option]
    arguments = [word for name, values in words.items() for word in (name, *values)]
    assert f"Missing option '{option}'" in refused(csv_file, *arguments)


# plan

PLAN = ["--q", "0.25,0.5,0.75", "--n", 1_000, "--bounds", 0, 120]


def planned(*arguments: object) -> Result:
    result = run("plan", *PLAN, *arguments)
    assert result.exit_code == 0, result.output
    return result


def test_plan_prints_what_the_library_does():
    expected = dpq.plan([0.25, 0.5, 0.75], n=1_000, bounds=(0, 120), epsilon=[0.1, 1])
    assert planned("--epsilon", "0.1,1").stdout == f"{expected}\n"


def test_plan_json_holds_the_table():
    arguments = ["--guess", "normal:45,15", "--neighbors", "add-remove", "--resolution", 1]
    arguments += ["--max-contributions", 2, "--level", 0.9, "--method", "all", "--json"]
    out = json.loads(planned("--epsilon", 2, *arguments).stdout)
    expected = dpq.plan(
        [0.25, 0.5, 0.75],
        n=1_000,
        bounds=(0, 120),
        epsilon=2.0,
        guess=scipy.stats.norm(45, 15),
        neighbors="add-remove",
        resolution=1,
        max_contributions=2,
        level=0.9,
        method="all",
    )
    assert out["q"] == [0.25, 0.5, 0.75]
    assert out["level"] == 0.9
    assert out["needed"] is None
    assert [row["method"] for row in out["rows"]] == expected.method.tolist()
    assert [row["worst value"] for row in out["rows"]] == expected.values.worst.tolist()


def test_plan_finds_the_epsilon_for_a_target():
    options = ["--target", 0.5, "--unit", "value", "--over", "worst"]
    text = planned(*options, "--guess", "uniform:0,100").stdout
    expected = dpq.plan(
        [0.25, 0.5, 0.75],
        n=1_000,
        bounds=(0, 120),
        target=0.5,
        unit="value",
        over="worst",
        guess=scipy.stats.uniform(0, 100),
    )
    assert f"Smallest epsilon for the target: {expected.needed:.3g}" in text


def test_plan_takes_lognormal_guesses():
    distribution = cli.Guess().convert("lognormal:10.5,0.8", None, None)
    assert distribution.median() == pytest.approx(math.exp(10.5))
    assert distribution.std() == pytest.approx(scipy.stats.lognorm(0.8, scale=math.exp(10.5)).std())


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--n", 0], "n must be at least 1, got 0"),
        (["--epsilon", "0"], "epsilon must be positive and finite, got 0.0"),
        (["--epsilon", "a"], "epsilon must be numbers separated by commas, got 'a'"),
        (["--epsilon", "1", "--target", 1], "epsilon must be left out with a target"),
        (["--target", 1e-9, "--level", 0.999], "target must be an error that some epsilon up to"),
        (["--target", 1, "--unit", "value"], "guess or prior must be given for unit='value'"),
        (["--guess", "normal:500,1"], "guess must have mass between bounds"),
        (["--bounds", 1, 1], "bounds must be finite with low < high"),
        *(
            (["--guess", guess], f"with a positive SD or SIGMA, and LOW below HIGH, got '{guess}'")
            for guess in (
                "normal",
                "normal:1",
                "normal:1,0",
                "gamma:1,2",
                "uniform:2,1",
                "normal:a,b",
            )
        ),
    ],
)
def test_plan_rejects_by_the_library_message(arguments, rule):
    result = run("plan", *PLAN, *arguments)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert rule in " ".join(result.stderr.split())


@pytest.mark.parametrize("option", ["--q", "--n", "--bounds"])
def test_plan_requires_its_options(option):
    given = {"--q": [0.5], "--n": [10], "--bounds": [0, 1]}
    rest = [part for name, values in given.items() if name != option for part in (name, *values)]
    result = run("plan", *rest)
    assert result.exit_code == 2
    assert f"Missing option '{option}'" in result.stderr


@pytest.mark.parametrize("module", ["click", "rich", "pyarrow"])
def test_cli_without_its_extra_names_the_extra(tmp_path, module):
    code = f"import sys; sys.modules[{module!r}] = None; import dpq_fast.cli"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert result.stderr.splitlines() == [f"dpq-fast needs {module}: pip install 'dpq_fast[cli]'"]
