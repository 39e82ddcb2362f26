"""`--privacy-unit` and `--contributions`: the answers of the library, about persons."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import answered, run, said

import dpq_fast as dpq
from dpq_fast._prepared import Prepared

ROWS = 600
PLACE = ["--bounds", 0, 1_000, "--resolution", 1]
KINDS = ("csv", "parquet", "duckdb")
WEIGHTS = ["--privacy-unit", "user"]
UNITS = {
    "weights": (WEIGHTS, ["user"], "weights"),
    "rows": ([*WEIGHTS, "--contributions", 2], ["user"], 2),
    "several": ([*WEIGHTS, "--privacy-unit", "device"], ["user", "device"], "weights"),
}


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    """Rows of persons, some without an id, some without a number."""
    rng = np.random.default_rng(7)
    user = [f"u{j}" if j % 11 else None for j in rng.geometric(0.03, ROWS)]
    ms = rng.integers(0, 1_000, ROWS).astype(float)
    ms[::17] = np.nan
    town = rng.choice(["a", "b"], ROWS)
    device = rng.integers(0, 2, ROWS)
    return pd.DataFrame(dict(user=user, device=device, ms=ms, town=town, score=rng.random(ROWS)))


@pytest.fixture(scope="module")
def files(visits, tmp_path_factory) -> dict[str, list[object]]:
    folder = tmp_path_factory.mktemp("visits")
    visits.to_csv(folder / "visits.csv", index=False)
    visits.to_parquet(folder / "visits.parquet")
    duckdb = pytest.importorskip("duckdb", reason="extra 'duckdb' is not installed")
    with duckdb.connect(folder / "visits.duckdb") as connection:
        connection.execute(
            f"CREATE TABLE visits AS FROM '{(folder / 'visits.parquet').as_posix()}'"
        )
    return {
        "csv": [folder / "visits.csv"],
        "parquet": [folder / "visits.parquet"],
        "duckdb": [folder / "visits.duckdb", "--table", "visits"],
    }


def asked(visits: pd.DataFrame, unit: str) -> dict:
    """The arguments of the functions."""
    _, names, contributions = UNITS[unit]
    return dict(privacy_unit=visits[names], contributions=contributions, epsilon=2.0, rng=5)


COMMANDS = {
    "quantile": (
        ["--q", "0.2,0.5", *PLACE],
        lambda x, **o: dpq.quantile(x, [0.2, 0.5], bounds=(0, 1_000), resolution=1, **o),
    ),
    "median": (PLACE, lambda x, **o: dpq.median(x, bounds=(0, 1_000), resolution=1, **o)),
    "cdf": (PLACE, lambda x, **o: dpq.cdf(x, bounds=(0, 1_000), resolution=1, **o).p),
    "sum": (PLACE[:3], lambda x, **o: dpq.sum(x, bounds=(0, 1_000), **o)),
    "mean": (PLACE[:3], lambda x, **o: dpq.mean(x, bounds=(0, 1_000), **o)),
    "count": ([], lambda x, **o: dpq.count(x, **o)),
}
NAMED = {"sum": "value", "mean": "value", "count": "value", "cdf": "p"}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_answers_are_those_of_the_functions(files, visits, command, kind, unit):
    arguments, function = COMMANDS[command]
    given, names, contributions = UNITS[unit]
    # what a release of rows elsewhere cannot know, it is told
    told, known = ([], {}) if command in ("sum", "count") else (["--expected-n", 30], {"n": 30})
    known = {f"expected_{name}": number for name, number in known.items()}
    column = ["--column", "ms", "--epsilon", 2, "--seed", 5]
    out = answered(command, *files[kind], *column, *arguments, *given, *told)
    expected = function(visits["ms"], **asked(visits, unit), **known)
    assert np.ravel(out[NAMED.get(command, "values")]).tolist() == np.ravel(expected).tolist()
    assert (out["privacy_unit"], out["contributions"]) == (names, contributions)
    assert "max_contributions" not in out


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", KINDS)
def test_answers_by_group_are_those_of_the_functions(files, visits, kind, unit):
    column = ["--column", "ms", "--epsilon", 2, "--seed", 5, "--by", "town"]
    person = asked(visits, unit)
    x, by = visits["ms"], visits["town"]
    listed = [*column, *UNITS[unit][0], "--groups", "b,c"]
    out = answered("median", *files[kind], *listed, *PLACE)
    place = dict(bounds=(0, 1_000), resolution=1)
    expected = dpq.quantile_by(x, by, [0.5], groups=["b", "c"], **place, **person)
    assert out["values"] == expected.values.tolist()
    out = answered("count", *files[kind], *listed)
    expected = dpq.count_by(x, by, groups=["b", "c"], **person)
    assert out["values"] == expected.values.tolist()
    out = answered("sum", *files[kind], *listed, "--bounds", 0, 1_000)
    expected = dpq.sum_by(x, by, groups=["b", "c"], bounds=(0, 1_000), **person)
    assert out["values"] == expected.values.tolist()
    selected = [*column, *UNITS[unit][0], "--delta", 0.01]
    out = answered("median", *files[kind], *selected, *PLACE)
    expected = dpq.quantile_by(x, by, [0.5], groups=None, delta=0.01, **place, **person)
    assert out["groups"] == expected.groups.tolist() and out["groups"]
    assert out["values"] == expected.values.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_descriptions_leave_the_ids_out(files, visits, kind):
    arguments = ["--column", "ms:0:1000:1", "--epsilon", 2, "--seed", 5, *WEIGHTS]
    out = answered("describe", *files[kind], *arguments)
    person = asked(visits, "weights") | dict(privacy_unit="user", resolution=1.0)
    expected = dpq.describe(visits, bounds={"ms": (0, 1_000)}, **person)
    assert out["rows"] == expected.to_dict("records")
    assert out["privacy_unit"] == ["user"]


def test_a_count_beside_an_answer_is_one_of_persons(files, visits):
    arguments = [*files["parquet"], "--column", "ms", *PLACE, "--epsilon", 1e5, "--with-count"]
    held = visits.dropna()
    text = " ".join(run("median", *arguments, *WEIGHTS).stdout.split())
    assert f"about {held['user'].nunique()} persons that count (a tenth of the budget)" in text
    assert "neighbors swap (one person of user, by weights)" in text
    out = answered("median", *arguments, *WEIGHTS)
    assert out["count"] == held["user"].nunique()
    assert out["epsilon"] == pytest.approx(1e5, rel=1e-12)
    one = [*WEIGHTS, "--contributions", 3]
    kept = int(held.groupby("user").size().clip(upper=3).sum())
    text = " ".join(run("median", *arguments, *one).stdout.split())
    assert f"about {kept} records that count (a tenth of the budget)" in text
    assert "neighbors swap (one person of user, up to 3 records)" in text
    by = answered("median", *arguments, *WEIGHTS, "--by", "town", "--groups", "a,b")
    assert len(by["values"]) == 2 and by["epsilon"] == pytest.approx(1e5, rel=1e-12)


def test_the_method_is_that_of_the_function(files, visits):
    for q in ("0.5", "0.001,0.5", ",".join(str(j / 20) for j in range(1, 20))):
        for told in ([], ["--expected-n", 30]):
            arguments = [*files["csv"], "--column", "ms", *PLACE, "--epsilon", 2, "--q", q]
            out = answered("quantile", *arguments, *WEIGHTS, *told)
            prepared = dpq.quantile.prepared(
                dpq.Table.of(visits)["ms"],
                out["q"],
                bounds=(0, 1_000),
                resolution=1,
                epsilon=2.0,
                privacy_unit="user",
                expected_n=30 if told else None,
            )
            assert out["method"] == prepared.mechanism


def test_a_budget_is_charged_once(files, tmp_path: Path):
    ledger = tmp_path / "b.budget"
    assert run("budget", "new", ledger, "--epsilon", 2).exit_code == 0
    arguments = [*files["csv"], "--column", "ms", *PLACE, "--epsilon", 1.5, *WEIGHTS]
    answered("median", *arguments, "--budget", ledger)
    assert "got epsilon=1.5" in said("median", *arguments, "--budget", ledger, code=1)


REFUSED = {
    "unknown": (["--privacy-unit", "who"], "--privacy-unit must name exactly one of the columns"),
    "the column": (
        ["--privacy-unit", "ms"],
        "--privacy-unit must name another column each time, got ms twice",
    ),
    "the keys": (
        [*WEIGHTS, "--privacy-unit", "town", "--by", "town", "--groups", "a"],
        "--privacy-unit must name another column each time, got town twice",
    ),
    "twice": (
        [*WEIGHTS, *WEIGHTS],
        "--privacy-unit must name another column each time, got user twice",
    ),
    "a promise": (
        [*WEIGHTS, "--max-contributions", 2],
        "--max-contributions must be left out with --privacy-unit, got 2",
    ),
    "no unit": (["--contributions", 2], "--contributions is for --privacy-unit, got 2"),
    "no unit, a word": (
        ["--contributions", "weights"],
        "--contributions is for --privacy-unit, got weights",
    ),
    "no number": (
        [*WEIGHTS, "--contributions", "rows"],
        "Invalid value for '--contributions': must be weights or a number from 1 on, got 'rows'",
    ),
    "none": (
        [*WEIGHTS, "--contributions", 0],
        "Invalid value for '--contributions': must be weights or a number from 1 on, got '0'",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", REFUSED)
def test_units_are_refused_by_the_rule(files, name, kind):
    given, message = REFUSED[name]
    arguments = [*files[kind], "--column", "ms", *PLACE, "--epsilon", 1, *given]
    assert message in said("median", *arguments)


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_columns_that_declare_that_they_are_no_ids_are_refused(files, kind):
    arguments = [*files[kind], "--column", "ms", *PLACE, "--epsilon", 1]
    text = said("median", *arguments, "--privacy-unit", "score")
    message = "--privacy-unit must name a column of integers, strings, bytes, UUIDs, dates or times"
    assert message in text and "got score, of type double" in text.lower()


def test_plans_take_a_guess_at_rows_per_person():
    arguments = ["--q", "0.5", "--n", 200, "--bounds", 0, 100, "--epsilon", 1, "--json"]
    for more, given in (
        (["--privacy-unit", 6.5], {}),
        (["--privacy-unit", 6.5, "--contributions", 2], {"contributions": 2}),
    ):
        out = json.loads(run("plan", *arguments, *more).stdout)
        expected = dpq.plan([0.5], n=200, bounds=(0, 100), epsilon=1.0, privacy_unit=6.5, **given)
        found = [row["expected ranks"] for row in out["rows"]]
        assert found == expected.ranks.expected.tolist()


def test_plans_refuse_options_by_the_rule():
    arguments = ["plan", "--q", "0.5", "--n", 200, "--bounds", 0, 100, "--epsilon", 1]
    message = "--contributions is for --privacy-unit, got 2"
    assert message in said(*arguments, "--contributions", 2)
    message = "--max-contributions must be left out with --privacy-unit, got 3"
    assert message in said(*arguments, "--privacy-unit", 2, "--max-contributions", 3)
    message = "privacy_unit must be at least 1 row for a plan"
    assert message in said(*arguments, "--privacy-unit", 0.5)


@pytest.mark.parametrize("by", [[], ["--by", "town", "--groups", "a,b"]], ids=["all", "by"])
@pytest.mark.parametrize("unit", UNITS)
def test_a_count_promises_what_the_function_does(files, visits, unit, by):
    arguments = [*files["parquet"], "--column", "ms", *PLACE, "--rho", 0.3, "--with-count"]
    out = answered("median", *arguments, *UNITS[unit][0], *by)
    _, names, contributions = UNITS[unit]
    person = dict(privacy_unit=visits[names], contributions=contributions)
    place = dict(bounds=(0, 1_000), resolution=1, rho=0.27)
    counted = dict(epsilon=np.sqrt(0.06))
    x, towns, groups = visits["ms"], visits["town"], dict(groups=["a", "b"])
    if by:
        first = Prepared.of(dpq.quantile_by, x, towns, [0.5], **groups, **place, **person)
        second = Prepared.of(dpq.count_by, x, towns, **groups, **counted, **person)
    else:
        first = Prepared.of(dpq.median, x, **place, **person)
        second = Prepared.of(dpq.count, x, **counted, **person)
    whole = dpq.privacy.compose([first.guarantee, second.guarantee])
    assert out["rho"] == pytest.approx(whole.implied_rho, rel=1e-12)


def test_as_many_records_as_there_are_parts_are_no_weights(files):
    many = [*WEIGHTS, "--contributions", 2**20]
    arguments = [*files["csv"], "--column", "ms", *PLACE, "--epsilon", 1, *many]
    text = " ".join(run("median", *arguments, "--with-count").stdout.split())
    assert "(one person of user, up to 1048576 records)" in text and "records that count" in text
