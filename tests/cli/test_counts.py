"""A count beside an answer, budgets of zCDP, the median, and times as records."""

import csv
import datetime
import io
import re
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from command_line import answered, run, said

import dpq_fast as dpq
from dpq_fast.cli.calls import Budget
from dpq_fast.cli.options import Privacy
from dpq_fast.cli.parameters import BoundedColumn
from dpq_fast.privacy import Accountant

BOUNDS = ["--bounds", 0, 100, "--resolution", 1]
TOWNS = ["--by", "town", "--groups", "Corby,Aston"]
COMMANDS = {
    "quantile": ["--q", "0.1,0.5", *BOUNDS],
    "median": BOUNDS,
    "cdf": BOUNDS,
    "sum": BOUNDS,
    "mean": ["--bounds", 0, 100, "--confidence", 0.9],
}
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=j % 100) for j in range(300)]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """300 records, of which 90 are not read as numbers: 30 in Aston, 60 in Corby."""
    file = tmp_path / "people.csv"
    rows = [
        f'{j},"1,0{j % 10}{j % 10}",{day},{day}T12:00:00+02:00,{("Aston", "Corby")[j % 3 > 0]}'
        if j < 90
        else f"{j},{j % 100},{day},{day}T12:00:00+02:00,{('Aston', 'Corby')[j % 3 > 0]}"
        for j, day in enumerate(DAYS)
    ]
    file.write_text("id,age,day,moment,town\n" + "\n".join(rows))
    return file


@pytest.mark.parametrize("command", COMMANDS)
def test_a_count_beside_an_answer_shows_what_is_missing(people, command, tmp_path):
    arguments = [people, "--column", "age", *COMMANDS[command], "--epsilon", 1e5, "--with-count"]
    out = answered(command, *arguments)
    assert (out["count"], out["epsilon"]) == (210, pytest.approx(1e5, rel=1e-12))
    # of numbers as they are written there are more
    assert answered(command, *arguments, "--thousands", ",")["count"] == 300
    text = run(command, *arguments, "--output", tmp_path / "out.csv").stdout
    assert "about 210 records that count (a tenth of the budget)" in " ".join(text.split())
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert {row["count"] for row in rows} == {"210"}
    assert "that count" not in run(command, *arguments[:-1]).stdout


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "cdf"])
def test_a_count_by_group_stands_in_each_row(people, command):
    arguments = [people, "--column", "age", *COMMANDS[command], *TOWNS, "--epsilon", 1e5]
    out = answered(command, *arguments, "--with-count")
    assert out["groups"] == ["Corby", "Aston"] and out["count"] == [140, 70]
    printed = run(command, *arguments, "--with-count", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert {(row["town"], row["count"]) for row in rows} == {("Corby", "140"), ("Aston", "70")}
    table = run(command, *arguments, "--with-count").stdout
    assert re.search(r"Corby.* 140 ", table) and re.search(r"Aston.* 70 ", table)
    selected = [*arguments[:-4], "--delta", 1e-6, "--by", "town", "--epsilon", 1e5]
    selected = [people, "--column", "age", *COMMANDS[command], "--by", "town", "--delta", 1e-6]
    out = answered(command, *selected, "--epsilon", 1e5, "--with-count")
    assert sorted(zip(out["groups"], out["count"], strict=True)) == [("Aston", 70), ("Corby", 140)]
    assert out["delta"] == 1e-6


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("by", [[], TOWNS, ["--by", "town", "--delta", 1e-6]], ids=len)
@pytest.mark.parametrize("epsilon", [1.0, 2 / 3])
def test_a_count_is_charged_with_the_answer_once_and_fits(people, tmp_path, neighbors, by, epsilon):
    """A budget of just so much pays for both; what is stated is what the parts add up to."""
    budget = tmp_path / "people.budget"
    delta = ["--delta", 1e-6] if "--delta" in by else []
    new = ["--epsilon", epsilon, *delta, "--neighbors", neighbors]
    assert run("budget", "new", budget, *new).exit_code == 0
    arguments = [people, "--column", "age", "--bounds", 0, 100, *by, "--epsilon", epsilon]
    out = answered("mean", *arguments, "--with-count", "--budget", budget)
    with Accountant.open(budget) as found:
        (entry,) = found.entries
    assert entry.guarantee.epsilon == out["epsilon"] <= epsilon
    assert out["epsilon"] == pytest.approx(epsilon, rel=1e-9)
    assert entry.what == f"mean of age{' by town' if by else ''}, people.csv"
    said("mean", *arguments, "--with-count", "--budget", budget, code=1)


def test_a_count_has_its_own_tenth_and_noise(people):
    """By the law: with the seed of the count and its epsilon, the library's count."""
    arguments = [people, "--column", "age", *BOUNDS, "--q", 0.5, "--epsilon", 0.2, "--seed", 6]
    out = answered("quantile", *arguments, "--with-count")
    x = np.array([float("nan")] * 90 + [float(j % 100) for j in range(90, 300)])
    rng = np.random.default_rng([6, 1])
    assert out["count"] == dpq.count(x, epsilon=0.02, rng=rng)
    value = answered("quantile", *arguments[:-3], 0.18, *arguments[-2:])["values"]
    assert out["values"] == value


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("public_by", [True, False])
def test_a_count_by_group_is_that_of_the_library(people, tmp_path, neighbors, public_by):
    """By the law and by the charge: both go by what a person can change, as those of the answer."""
    own = dict(epsilon=9.0, delta=1e-6, neighbors=neighbors, composition="zcdp")
    with Accountant.open(tmp_path / "people.budget", **own):
        pass
    person = ["--neighbors", neighbors, "--max-contributions", 3, *["--public-by"] * public_by]
    arguments = [people, "--column", "age", "--bounds", 0, 100, *TOWNS, *person, "--with-count"]
    arguments += ["--epsilon", 0.2, "--seed", 6, "--budget", tmp_path / "people.budget"]
    out = answered("sum", *arguments)
    x = np.array([float("nan")] * 90 + [float(j % 100) for j in range(90, 300)])
    by = np.array([("Aston", "Corby")[j % 3 > 0] for j in range(300)])
    asked = dict(groups=["Corby", "Aston"], neighbors=neighbors, public_by=public_by)
    asked |= dict(max_contributions=3, accountant=Accountant(**own))
    summed = dpq.sum_by(x, by, epsilon=0.18, q=None, upper=100, rng=6, **asked)
    counted = dpq.count_by(x, by, epsilon=0.02, rng=np.random.default_rng([6, 1]), **asked)
    assert (out["values"], out["count"]) == (summed.values.tolist(), counted.values.tolist())
    with Accountant.open(tmp_path / "people.budget") as found:
        assert found.spent.rho == pytest.approx(asked["accountant"].spent.rho, rel=1e-12)


def test_the_parts_of_a_budget_are_within_it():
    for total in np.random.default_rng(1).uniform(1e-3, 10, size=300).tolist():
        parts = Budget.of(Privacy(total, None, 0.0, None, 1, (), None, None, None), True, False)
        assert parts.epsilon + parts.counted <= total
        assert parts.counted == pytest.approx(total / 10)
        parts = Budget.of(Privacy(None, total, 0.0, None, 1, (), None, None, None), True, True)
        assert parts.rho + dpq.privacy.pure_rho(parts.counted) <= total
        assert parts.rho == pytest.approx(0.9 * total)


@pytest.mark.parametrize("command", ["quantile", "median", "cdf"])
@pytest.mark.parametrize("more", [[], ["--with-count"]])
def test_rho_is_a_budget(people, tmp_path, command, more):
    budget = tmp_path / "people.budget"
    with Accountant.open(budget, epsilon=1.0, delta=1e-6, composition="zcdp"):
        pass
    arguments = [people, "--column", "age", *COMMANDS[command], "--rho", 0.01, *more]
    out = answered(command, *arguments, "--budget", budget)
    with Accountant.open(budget) as found:
        (entry,) = found.entries
    assert out["rho"] == entry.guarantee.implied_rho <= 0.01 * (1 + 1e-12)
    assert entry.guarantee.implied_rho == pytest.approx(0.01, rel=0.05)
    assert "rho" in run(command, *arguments).stdout


def test_rho_is_that_of_the_library(people):
    arguments = [people, "--column", "age", *BOUNDS, "--q", "0.2,0.5", "--rho", 0.5, "--seed", 8]
    out = answered("quantile", *arguments)
    x = [float("nan")] * 90 + [float(j % 100) for j in range(90, 300)]
    place = dict(bounds=(0, 100), resolution=1, expected_n=300)
    expected = dpq.quantile(dpq.Table.of({"x": x})["x"], [0.2, 0.5], rho=0.5, rng=8, **place)
    assert out["values"] == expected.tolist()
    assert out["method"] == "approx_quantiles" and out["rho"] == pytest.approx(0.5)


def test_rho_and_epsilon_are_one_budget(people):
    arguments = [people, "--column", "age", *BOUNDS]
    rule = "exactly one of --epsilon and --rho must be given, got"
    assert f"{rule} both" in said("median", *arguments, "--rho", 1, "--epsilon", 1)
    assert f"{rule} neither" in said("median", *arguments)
    for command, more in (("count", []), ("sum", []), ("mean", [])):
        message = said(command, people, "--column", "age", *more, "--rho", 1)
        assert "--rho is for quantile, median and cdf, got 1" in message
    assert "rho must be positive and finite" in said("median", *arguments, "--rho", 0)
    assert "epsilon must be positive and finite" in said(
        "median", *arguments, "--epsilon", -1, "--with-count"
    )


def test_median_is_the_quantile_of_one_half(people):
    arguments = [people, "--column", "age", *BOUNDS, "--epsilon", 1, "--seed", 3]
    assert answered("median", *arguments) == answered("quantile", *arguments, "--q", 0.5)
    assert "Private median of age" in run("median", *arguments).stdout
    assert re.search("No such option:? '?--q", said("median", *arguments, "--q", 0.5))


def test_workers_change_no_answer(people):
    arguments = [people, "--column", "age", *BOUNDS, "--epsilon", 1, "--seed", 3]
    assert answered("median", *arguments, "--workers", 3) == answered("median", *arguments)
    assert "workers must not be 0" in said("median", *arguments, "--workers", 0)


@pytest.fixture
def files(people: Path, tmp_path: Path) -> dict[str, list]:
    """The same times in each kind of file."""
    duckdb = pytest.importorskip("duckdb", reason="extra 'duckdb' is not installed")
    zone = datetime.timezone(datetime.timedelta(hours=2))
    noon = [datetime.datetime.combine(day, datetime.time(12), zone) for day in DAYS]
    utc = [moment.astimezone(datetime.timezone.utc) for moment in noon]
    moments = pa.array(utc, pa.timestamp("us", "UTC"))
    towns = [("Aston", "Corby")[j % 3 > 0] for j in range(300)]
    table = pa.table({"day": DAYS, "moment": moments, "town": towns})
    pa.parquet.write_table(table, tmp_path / "people.parquet")
    with duckdb.connect(tmp_path / "people.duckdb") as connection:
        connection.register("arrow", table)
        connection.execute('CREATE TABLE people AS SELECT * FROM "arrow"')
    return {
        "csv": [people],
        "parquet": [tmp_path / "people.parquet"],
        "duckdb": [tmp_path / "people.duckdb", "--table", "people"],
    }


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_times_are_records(files, kind):
    day = ["--column", "day", "--bounds", "2023-01-01", "2025-01-01", "--epsilon", 1e5]
    out = answered("quantile", *files[kind], *day, "--q", "0.245,0.495", "--with-count")
    assert out["values"] == ["2024-01-25", "2024-02-19"]
    assert (out["count"], out["bounds"]) == (300, ["2023-01-01", "2025-01-01"])
    assert out["method"] != "unbounded_quantile"
    by = answered("median", *files[kind], *day, *TOWNS, "--resolution", "1D")
    assert [value[:8] for (value,) in by["values"]] == ["2024-02-", "2024-02-"]
    assert by["resolution"] == "1D"
    mean = answered("mean", *files[kind], *day)["value"]
    assert mean[:14] in ("2024-02-19T11:", "2024-02-19T12:")
    curve = answered("cdf", *files[kind], *day)
    assert curve["x"][0] >= "2022-12-31" and curve["total"] == pytest.approx(300, abs=1)
    assert answered("count", *files[kind], "--column", "day", "--epsilon", 1e5)["value"] == 300
    place = "day:2023-01-01:2025-01-01:1D"
    described = answered("describe", *files[kind], "--column", place, "--epsilon", 1e6)
    assert described["rows"][0]["50%"][:10] in ("2024-02-19", "2024-02-20")
    assert "2024-02-" in run("median", *files[kind], *day).stdout


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_times_with_a_zone_are_records(files, kind):
    ends = ["2023-01-01T00:00+02:00", "2025-01-01T00:00+02:00"]
    moment = ["--column", "moment", "--bounds", *ends, "--resolution", "1h", "--epsilon", 1e5]
    out = answered("quantile", *files[kind], *moment, "--q", 0.495, "--with-count")
    assert out["count"] == 300
    assert out["values"] == ["2024-02-19T12:00:00+02:00"]


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_groups_are_times_with_a_zone(files, kind):
    arguments = [*files[kind], "--column", "day", "--by", "moment", "--epsilon", 1e6]
    groups = "2024-01-01T12:00+02:00,2024-01-02T10:00Z,2024-01-02T10:00:00.000001+00:00"
    assert answered("count", *arguments, "--groups", groups)["values"] == [3, 3, 0]
    message = said("count", *arguments, "--groups", "2024-01-01T12:00")
    assert "groups must be dates with a zone (2026-01-31T00:00+00:00), as moment" in message


def test_times_without_bounds_have_one_end(people):
    day = ["--column", "day", "--epsilon", 1e5, "--lower", "2023-12-31"]
    out = answered("median", people, *day)
    assert out["values"][0].startswith("2024-02") and out["lower"] == "2023-12-31"


def test_times_of_another_form_or_kind_are_missing_or_refused(files):
    plain = ["--bounds", "2023-01-01", "2025-01-01", "--epsilon", 1e5, "--with-count"]
    zoned = ["--bounds", "2023-01-01T00:00Z", "2025-01-01T00:00Z", *plain[3:]]
    # CSV declares no types, so nothing is refused
    for column, bounds in (("moment", plain), ("day", zoned), ("age", plain)):
        assert answered("median", *files["csv"], "--column", column, *bounds)["count"] == 0
    for kind in ("parquet", "duckdb"):
        for column, bounds, words in (
            ("moment", plain, "times without a zone"),
            ("day", zoned, "times with a zone"),
            ("day", [*BOUNDS, "--epsilon", 1], "numbers"),
            ("town", plain, "times without a zone"),
        ):
            message = said("median", *files[kind], "--column", column, *bounds)
            assert f"--column must name a column of {words}, as --bounds are; got" in message
    message = said("median", *files["csv"], "--column", "day", "--bounds", "soon", "9")
    rule = "must be a number, a time (2026-01-31) or a length (1h), got"
    assert f"{rule} 'soon'" in message
    message = said("median", *files["csv"], "--column", "day", *BOUNDS[:3], "--resolution", "1x")
    assert f"{rule} '1x'" in message


def test_a_resolution_alone_says_that_records_are_durations(tmp_path):
    waits = [datetime.timedelta(hours=j) for j in range(100)]
    file = tmp_path / "waits.parquet"
    pa.parquet.write_table(pa.table({"wait": pa.array(waits, pa.duration("us"))}), file)
    arguments = [file, "--column", "wait", "--epsilon", 9, "--seed", 1]
    out = answered("mean", *arguments, "--resolution", "1h")
    expected = dpq.mean(np.array(waits, "m8[us]"), epsilon=9, resolution="1h", rng=1)
    assert out["value"] == f"{int(expected / np.timedelta64(1, 's'))}s"
    assert "--column must name a column of numbers" in said("mean", *arguments)


NOON = datetime.datetime(2024, 1, 2, 12, tzinfo=datetime.timezone.utc)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age:0:120", ("age", (0.0, 120.0), None)),
        ("age:0:120:1", ("age", (0.0, 120.0), 1.0)),
        ("a:b:0:1e5", ("a:b", (0.0, 1e5), None)),
        ("1:2:3:4:5", ("1:2", (3.0, 4.0), 5.0)),
        ("x:-5:.5:1e-3", ("x", (-5.0, 0.5), 1e-3)),
        (
            "day:2024-01-01:2025-01-01:1D",
            (
                "day",
                (np.datetime64("2024-01-01"), np.datetime64("2025-01-01")),
                np.timedelta64(1, "D"),
            ),
        ),
        (
            "t:2024-01-02T12:00Z:2024-01-02T13:00+01:00:15min",
            ("t", (NOON, NOON), np.timedelta64(15, "m")),
        ),
        *[(text, None) for text in ("x", "x:1", ":0:1", "x:a:b", "x:0:1:1x", "x:2024-02-30:0")],
    ],
)
def test_columns_have_bounds_of_numbers_or_times(text, expected):
    kind = BoundedColumn()
    if expected is None:
        with pytest.raises(click.BadParameter, match="column must be NAME:LOW:HIGH"):
            kind.convert(text, None, None)
    else:
        assert kind.convert(text, None, None) == expected
