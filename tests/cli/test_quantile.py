"""`dpq-fast quantile`: what it prints, what it reads, and what it must never print."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from command_line import ARGUMENTS, BOUNDS, read_column, refused, released, run

import dpq_fast as dpq
from dpq_fast.mechanisms.quantile import choose_method

ENDS = ["\n", "\r\n"]


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


def test_quantile_of_parquet_takes_the_column_with_a_dot_in_its_name(tmp_path):
    file = tmp_path / "dots.parquet"
    pa.parquet.write_table(pa.table({"x": [{"y": 1}, {"y": 2}], "x.y": [7, 8]}), file)
    arguments = ["--column", "x.y", "--epsilon", 1e6, "--bounds", 0, 9, "--q", "0,1"]
    assert released(file, *arguments, "--resolution", 1)["values"] == [7.0, 8.0]


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
        read_column(csv_file, "age"),
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


@pytest.mark.parametrize("prior", ["log", "scale-free"])
def test_quantile_with_a_prior_is_that_of_the_library(csv_file, prior):
    arguments = ["--column", "age", "--epsilon", 1, "--q", 0.5, "--bounds", 1, 1e9, "--seed", 4]
    out = released(csv_file, *arguments, "--prior", prior)
    column = read_column(csv_file, "age")
    place = dict(epsilon=1.0, bounds=(1, 1e9), rng=4)
    assert out["values"] == [dpq.quantile(column, 0.5, prior=prior, **place)]
    assert out["values"] != released(csv_file, *arguments, "--prior", "uniform")["values"]


def test_quantile_table_holds_values_and_guarantee(csv_file):
    arguments = [*ARGUMENTS, "--q", "0.5,0.25", "--seed", 4, "--resolution", 1, "--delta", "1e-6"]
    values = released(csv_file, *arguments)["values"]
    result = run("quantile", csv_file, *arguments, "--max-contributions", 1)
    rows = re.findall(r"│ +([\d.]+) │ +([\d.]+) │", result.stdout)
    assert [float(level) for level, _ in rows] == [0.5, 0.25]
    assert [float(value) for _, value in rows] == values
    text = " ".join(result.stdout.split())
    assert (
        "epsilon 1, delta 0, neighbors swap (one record), method two_stage, bounds [0, 100], "
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
    assert "FILE must end in .csv, .tsv, .gz, .bz2, .zst, .zip, .parquet, .pq, .feather" in message
    assert (
        "or .duckdb, be a folder of such files, or - for a pipe of CSV, got people.xlsx" in message
    )


def test_quantile_rejects_missing_column_and_lists_the_columns(csv_file, parquet_file):
    arguments = ["--column", "wage", "--epsilon", "1", "--bounds", "0", "9", "--q", "0.5"]
    rule = "--column must name exactly one of the columns"
    assert f"{rule} (id, age, name; did you mean 'age'?); got wage" in refused(csv_file, *arguments)
    assert f"{rule} (age, height, name, adult; did you mean 'age'?); got wage" in refused(
        parquet_file, *arguments
    )


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
    assert (
        "--column must name a column of numbers, as --bounds are; got name, of type string"
        in message
    )


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


@pytest.mark.parametrize(
    "method", ["joint_exp", "ind_exp", "approx_quantiles", "agg_tree", "two_stage"]
)
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
    rule = f"Missing option '{option}'"
    if option == "--epsilon":  # or --rho
        rule = "exactly one of --epsilon and --rho must be given, got neither"
    assert rule in refused(csv_file, *arguments)
