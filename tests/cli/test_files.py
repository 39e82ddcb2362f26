"""Parquet and DuckDB files, groups of all types, and what commands answer by them."""

import datetime
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from command_line import answered, run, said

import dpq_fast as dpq

TOWNS = ["Aston", "Barnet", "Corby"]
BOUNDS = ["--bounds", 0, 100, "--resolution", 1]


@pytest.fixture(scope="module")
def people() -> pa.Table:
    rng = np.random.default_rng(3)
    age, place = rng.integers(17, 91, size=600), rng.integers(0, 3, size=600)
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(j)) for j in place]
    return pa.table(
        {
            "age": age,
            "pay": pa.array(age * 1.5).cast(pa.float32()),
            "town": [TOWNS[j] for j in place],
            "number": place,
            "big": place == 2,
            "day": days,
            "note": ["Zebediah"] * 600,
            "shift": [datetime.time(8)] * 600,
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, people: pa.Table) -> dict[str, list]:
    """The same rows in each kind of file: what a command is given."""
    duckdb = pytest.importorskip("duckdb", reason="extra 'duckdb' is not installed")
    folder = tmp_path_factory.mktemp("files")
    pa.parquet.write_table(people, folder / "people.parquet", row_group_size=100)
    with duckdb.connect(folder / "people.duckdb") as connection:
        connection.register("arrow", people)
        connection.execute('CREATE TABLE people AS SELECT * FROM "arrow"')
        connection.execute('CREATE TABLE "odd ""name" AS SELECT * FROM people')
        connection.execute("CREATE VIEW broken AS SELECT note::INTEGER AS age FROM people")
        connection.execute("CREATE VIEW shown AS SELECT * FROM people WHERE age < 200")
        connection.execute("CREATE SCHEMA other")
        connection.execute("CREATE TABLE other.people AS SELECT age FROM people")
    rows = zip(people["age"].to_pylist(), people["town"].to_pylist(), strict=True)
    text = "\n".join(["age,town", *(f"{age},{town}" for age, town in rows)])
    (folder / "people.csv").write_text(text)
    return {
        "csv": [folder / "people.csv"],
        "parquet": [folder / "people.parquet"],
        "duckdb": [folder / "people.duckdb", "--table", "main.people"],
    }


def in_batches(x: np.ndarray, bounds: tuple[float, float], **options: float) -> dpq.Sample:
    """A sample as commands read it: few records of a column are drawn from in another way."""
    return dpq.Sample.from_batches(lambda: [x], bounds, **options)


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
@pytest.mark.parametrize(
    ("options", "call"),
    [
        (
            ["quantile", "--q", "0.25,0.9", *BOUNDS],
            lambda x: dpq.quantile(
                *(in_batches(x, (0, 100), resolution=1), [0.25, 0.9]),
                epsilon=1,
                rng=5,
                expected_n=600,
            ),
        ),
        (["sum"], lambda x: dpq.sum(x, epsilon=1, rng=5)),
        (
            ["sum", "--bounds", 0, 100],
            lambda x: dpq.sum(x, epsilon=1, rng=5, q=None, lower=0, upper=100),
        ),
        (
            ["mean", "--bounds", 0, 100, "--confidence", 0.9, "--covers", "population"],
            lambda x: dpq.mean(
                *(x,),
                epsilon=1,
                rng=5,
                q=None,
                lower=0,
                upper=100,
                confidence=0.9,
                covers="population",
            ),
        ),
        (["count"], lambda x: dpq.count(x, epsilon=1, rng=5)),
    ],
    ids=lambda each: "-".join(map(str, each)) if isinstance(each, list) else "",
)
def test_commands_answer_as_the_library_does(files, people, kind, options, call):
    command, *rest = options
    out = answered(command, *files[kind], "--column", "age", *rest, "--epsilon", 1, "--seed", 5)
    expected = call(people["age"].to_numpy().astype(float))
    given = out["values"] if "values" in out else out["value"]
    if isinstance(expected, dpq.Estimate):
        assert [given, out["low"], out["high"]] == list(expected)
    else:
        assert given == np.asarray(expected).tolist()


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
@pytest.mark.parametrize("command", ["quantile", "sum", "mean", "count"])
def test_commands_by_group_answer_as_the_library_does(files, people, kind, command):
    options = {"quantile": ["--q", 0.5, *BOUNDS], "count": []}.get(command, ["--bounds", 0, 100])
    arguments = ["--column", "age", *options, "--by", "town", "--groups", "Corby, Aston,Dover"]
    out = answered(command, *files[kind], *arguments, "--epsilon", 1e4)
    x, towns = people["age"].to_numpy(), np.array(people["town"].to_pylist())
    groups = ["Corby", "Aston", "Dover"]
    assert (out["by"], out["groups"]) == (["town"], groups)
    of = {"quantile": np.median, "sum": np.sum, "mean": np.mean, "count": np.size}[command]
    expected = [float(of(x[towns == town])) for town in groups[:2]]
    values = np.ravel(out["values"])[:2]
    # epsilon is so large that noise is none to speak of
    assert values == pytest.approx(expected, abs=1.0)


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_describe_by_group_has_a_row_for_each(files, kind):
    arguments = ["--column", "age:0:100:1", "--by", "town", "--groups", "Aston,Corby"]
    out = answered("describe", *files[kind], *arguments, "--epsilon", 1e4, "--q", 0.5)
    assert [(row["column"], row["town"]) for row in out["rows"]] == [
        ("age", "Aston"),
        ("age", "Corby"),
    ]
    assert all({"count", "mean", "50%"} < row.keys() for row in out["rows"])


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
@pytest.mark.parametrize(
    ("column", "groups", "keys"),
    [
        ("number", "2,0", [2, 0]),
        ("big", "true,False", [True, False]),
        ("day", "2024-01-03,2024-01-01", ["2024-01-03", "2024-01-01"]),
        ("town", "Corby,Aston", ["Corby", "Aston"]),
    ],
)
def test_groups_are_read_as_the_column_declares(files, people, kind, column, groups, keys):
    arguments = ["--column", "age", "--by", column, "--groups", groups, "--epsilon", 1e6]
    out = answered("count", *files[kind], *arguments)
    found = [str(each) for each in people[column].to_pylist()]
    assert out["groups"] == keys
    assert out["values"] == [found.count(str(key)) for key in keys]


@pytest.mark.parametrize(
    ("column", "groups", "rule"),
    [
        ("number", "1,x", "groups must be whole numbers, as number is declared, got 'x'"),
        ("big", "1", "groups must be true or false, as big is declared, got '1'"),
        ("day", "soon", "groups must be dates (2026-01-31), as day is declared, got 'soon'"),
        ("pay", "1.5", "groups must be whole numbers, as pay is declared, got '1.5'"),
        ("shift", "8h", "groups must be times of day (08:30), as shift is declared, got '8h'"),
        ("wage", "1", "--by must name exactly one of the columns (age, pay, town, number"),
        ("age", "1", "--by must name another column each time, got age twice"),
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_groups_are_refused_for_what_the_column_declares(files, kind, column, groups, rule):
    arguments = ["--column", "age", "--by", column, "--groups", groups, "--epsilon", 1]
    assert rule in said("count", *files[kind], *arguments)


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_groups_are_times_of_day(files, kind):
    arguments = ["--column", "age", "--by", "shift", "--groups", "08:00,09:30", "--epsilon", 1e6]
    assert answered("count", *files[kind], *arguments)["values"] == [600, 0]


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_groups_of_floats_are_whole_numbers(files, kind):
    arguments = ["--column", "age", "--by", "pay", "--groups", "1", "--epsilon", 1]
    assert answered("count", *files[kind], *arguments)["groups"] == [1]


def test_groups_of_several_columns_come_from_a_file(files, tmp_path, people):
    listed = tmp_path / "groups.csv"
    listed.write_text("Aston,0\nCorby,2\n\nCorby,1\n")
    by = ["--by", "town", "--by", "number", "--groups-file", listed]
    arguments = ["--column", "age", *by, "--epsilon", 1e6]
    out = answered("count", *files["parquet"], *arguments)
    towns = people["town"].to_pylist()
    assert out["groups"] == [["Aston", 0], ["Corby", 2], ["Corby", 1]]
    assert out["values"] == [towns.count("Aston"), towns.count("Corby"), 0]
    result = run("count", *files["parquet"], *arguments)
    assert "Corby" in result.stdout and "number" in result.stdout


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["--groups", "a"], "--groups, --groups-file and --public-by are for --by"),
        (["--public-by"], "--groups, --groups-file and --public-by are for --by"),
        (["--by", "town"], "--by needs --groups or --groups-file, or a --delta"),
        (["--by", "town", "--by", "town", "--groups", "a"], "--by must name another column each"),
        (["--by", "town", "--by", "note", "--groups", "a"], "--groups-file must list the groups"),
        (["--by", "town", "--groups", "a,a"], "groups must"),
        (["--delta", 1e-6], "--delta must be 0 without --by, got 1e-06"),
    ],
)
def test_groups_are_refused_by_what_is_wrong(files, options, rule):
    arguments = ["--column", "age", *options, "--epsilon", 1]
    assert rule in said("count", *files["parquet"], *arguments)


def test_groups_file_is_refused_where_a_line_has_other_fields(files, tmp_path):
    listed = tmp_path / "groups.csv"
    listed.write_text("Aston\nCorby,2\n")
    arguments = ["--column", "age", "--by", "town", "--groups-file", listed, "--epsilon", 1]
    message = said("count", *files["parquet"], *arguments)
    assert "--groups-file must have 1 fields on each line, one for each --by" in message
    message = said("count", *files["parquet"], *arguments, "--groups", "a")
    assert "--groups and --groups-file must not both be given" in message
    listed.write_bytes(b"\xff\xfe")
    assert "--groups-file must be a text in UTF-8" in said("count", *files["parquet"], *arguments)


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_columns_of_text_are_refused_where_they_are_declared(files, kind):
    arguments = ["--column", "note", "--q", 0.5, *BOUNDS, "--epsilon", 1]
    message = said("quantile", *files[kind], *arguments)
    assert "--column must name a column of numbers, as --bounds are; got note" in message
    counted = answered("count", *files[kind], "--column", "note", "--epsilon", 1e6)
    assert counted["value"] == 600
    arguments = ["--column", "day", "--q", 0.5, *BOUNDS, "--epsilon", 1]
    assert "got day, of type" in said("quantile", *files[kind], *arguments)
    out = answered("count", *files[kind], "--column", "day", "--epsilon", 1e6)
    assert out["value"] == 600


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        (None, "--table must name exactly one of the tables of people.duckdb: broken"),
        ("staff", "got staff"),
        ("people", "other.people"),
    ],
)
def test_duckdb_needs_the_name_of_one_table(files, table, rule):
    chosen = [] if table is None else ["--table", table]
    arguments = [*chosen, "--column", "age", "--epsilon", 1]
    assert rule in said("count", files["duckdb"][0], *arguments)


def test_duckdb_tables_may_have_any_name(files):
    arguments = ["--table", 'odd "name', "--column", "age", "--epsilon", 1e6]
    assert answered("count", files["duckdb"][0], *arguments)["value"] == 600


def test_duckdb_says_no_more_of_a_view_that_fails_on_a_record(files):
    arguments = ["--table", "broken", "--column", "age", "--epsilon", 1]
    message = said("count", files["duckdb"][0], *arguments, code=3)
    assert "people.duckdb could not be read to its end" in message
    assert "Zebediah" not in message


def test_duckdb_views_that_mix_records_are_refused(tmp_path):
    pytest.importorskip("sqlglot", reason="extra 'sql-check' is not installed")
    duckdb = pytest.importorskip("duckdb", reason="extra 'duckdb' is not installed")
    with duckdb.connect(tmp_path / "people.duckdb") as connection:
        connection.execute("CREATE TABLE people AS SELECT range AS age FROM range(9)")
        connection.execute("CREATE VIEW few AS SELECT age FROM people LIMIT 5")
    arguments = ["--table", "few", "--column", "age", "--epsilon", 1]
    message = said("count", tmp_path / "people.duckdb", *arguments)
    assert "source must be a query each row of which comes from one record, got limit" in message


def test_duckdb_refuses_other_files(tmp_path, files):
    file = tmp_path / "bad.duckdb"
    file.write_text("Zebediah" * 1_000)
    message = said("count", file, "--table", "t", "--column", "age", "--epsilon", 1)
    assert "bad.duckdb must be a readable DuckDB file" in message and "Zeb" not in message
    for kind in ("csv", "parquet"):
        arguments = ["--table", "t", "--column", "age", "--epsilon", 1]
        message = said("count", *files[kind], *arguments)
        assert f"--table must be left out for people.{kind}, got t" in message


def test_duckdb_names_its_extra(tmp_path, files):
    arguments = [*files["duckdb"], "--column", "age", "--epsilon", "1"]
    code = (
        "import sys; sys.modules['duckdb'] = None; from dpq_fast.cli import main; "
        f"main(['count', *{[str(each) for each in arguments]!r}])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "a DuckDB file needs duckdb: pip install 'dpq_fast[duckdb]'" in result.stderr


def test_parquet_that_breaks_off_says_no_more(tmp_path: Path, people: pa.Table):
    file = tmp_path / "broken.parquet"
    pa.parquet.write_table(people, file)
    content = bytearray(file.read_bytes())
    content[4:2_000] = b"Zebediah" * 249 + b"Zebe"
    file.write_bytes(content)
    arguments = ["--column", "age", "--epsilon", 1]
    message = said("count", file, *arguments, code=3)
    assert "broken.parquet could not be read to its end" in message and "Zeb" not in message


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_describe_does_without_pandas(files, kind, monkeypatch):
    monkeypatch.setattr("dpq_fast.mechanisms.describe.find_spec", lambda _: None)
    arguments = ["--column", "age:0:100:1", "--epsilon", 1, "--confidence", 0.9, "--seed", 1]
    out = answered("describe", *files[kind], *arguments)
    monkeypatch.undo()
    assert out == answered("describe", *files[kind], *arguments)


@pytest.mark.parametrize(
    "options, method",
    [
        (["--q", 0.99], "ind_exp"),
        (["--q", "0.2,0.7"], "joint_exp"),
        (["--q", 0.99, "--expected-n", 1_000], "two_stage"),
        (["--q", 0.99, "--method", "two_stage"], "two_stage"),
    ],
)
def test_groups_are_answered_by_the_method_that_is_said(files, options, method):
    arguments = ["--column", "age", "--bounds", 0, 1_000, "--by", "town", "--epsilon", 2]
    out = answered("quantile", *files["csv"], *arguments, "--groups", "Corby,Aston", *options)
    assert out["method"] == method


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
@pytest.mark.parametrize(
    "method", ["joint_exp", "ind_exp", "approx_quantiles", "agg_tree", "two_stage"]
)
def test_rows_of_a_file_are_the_number_that_the_library_goes_by(files, people, kind, method):
    """Under swap, where it is public; none of the kinds of files may differ."""
    options = ["--q", "0.2,0.9", *BOUNDS, "--method", method, "--confidence", 0.9, "--seed", 2]
    out = answered("quantile", *files[kind], "--column", "age", *options, "--epsilon", 1)
    expected = dpq.quantile(
        dpq.Table.of(people)["age"],
        [0.2, 0.9],
        epsilon=1,
        bounds=(0, 100),
        resolution=1,
        method=method,
        confidence=0.9,
        expected_n=600,
        rng=2,
    )
    assert [out["values"], out["low"], out["high"]] == [part.tolist() for part in expected]


def test_a_view_and_a_pipe_have_no_public_number_of_rows(files):
    """Which only --expected-n can say: how many rows a view has may follow from the records."""
    options = ["--column", "age", "--q", "0.1,0.5", *BOUNDS, "--epsilon", 1, "--seed", 1]
    content = files["csv"][0].read_bytes()
    of_a_table = answered("quantile", *files["csv"], *options)
    for source in (["-"], [files["duckdb"][0], "--table", "shown"]):
        known = answered("quantile", *source, *options, "--expected-n", 600, input=content)
        assert known == of_a_table
        few = ["--q", ",".join(f"{k / 20:g}" for k in range(1, 20)), "--epsilon", 0.1]
        methods = [
            answered("quantile", *given, *options, *few, input=content)["method"]
            for given in (files["csv"], source)
        ]
        assert methods == ["approx_quantiles", "agg_tree"]
