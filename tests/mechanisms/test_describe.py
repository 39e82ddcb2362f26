"""Frames at a glance: one budget, and each part as if it had been released by itself."""

from __future__ import annotations

import importlib
import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpq_fast as dpq

RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 70, 400),
        "pay": [None, *RNG.normal(3e3, 500, 399)],
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, 400), "D"),
        "left": RNG.random(400) < 0.3,
        "note": "x",
    }
)
BOUNDS = {
    "age": (0, 100),
    "pay": (0.0, 1e4),
    "since": (pd.Timestamp("2019-01-01"), pd.Timestamp("2024-01-01")),
    "left": (0, 1),
}
NUMBERS = {name: BOUNDS[name] for name in ("age", "pay", "left")}
STATISTICS = ("count", "mean", "25%", "50%", "75%")
STEPS = {"age": 1.0, "left": 1.0, "since": pd.Timedelta(1, "D")}


def down(exact: Fraction) -> float:
    """The largest float that is not above."""
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, 0.0)


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("confidence", [None, 0.9])
def test_parts_are_those_of_the_functions_in_one_budget(neighbors, confidence):
    accountant = dpq.privacy.Accountant(2.0, neighbors=neighbors)
    common = dict(neighbors=neighbors, confidence=confidence)
    out = dpq.describe(
        FRAME, epsilon=2.0, bounds=BOUNDS, resolution=STEPS, rng=5, accountant=accountant, **common
    )
    assert len(accountant.history) == 1
    each = dpq.privacy.Accountant(2.0, neighbors=neighbors)
    generator = np.random.default_rng(5)
    rows = []
    for name, (low, high) in BOUNDS.items():
        x, part = FRAME[name], Fraction(2, len(BOUNDS))
        options = dict(rng=generator, accountant=each, **common)
        number = dpq.count(x, epsilon=down(part / 10), **options)
        mean = dpq.mean(x, epsilon=down(part * 4 / 10), lower=low, upper=high, q=None, **options)
        place = dict(bounds=(low, high), resolution=STEPS.get(name))
        quartiles = dpq.quantile(x, [0.25, 0.5, 0.75], epsilon=down(part / 2), **place, **options)
        if confidence is None:
            rows.append([name, number, mean, *quartiles])
        else:
            row = [name, *number, *mean]
            for trio in zip(*quartiles, strict=True):
                row += trio
            rows.append(row)
    assert out.to_numpy().tolist() == pd.DataFrame(rows).to_numpy().tolist()
    ends = [""] if confidence is None else ["", " low", " high"]
    assert list(out.columns) == ["column", *(f"{name}{end}" for name in STATISTICS for end in ends)]
    assert each.spent.epsilon == pytest.approx(accountant.spent.epsilon, rel=1e-15)
    assert accountant.spent.epsilon <= 2.0


ALL = {"count": 1.0, "mean": 3.0, "std": 3.0, "quantile": 3.0}


@pytest.mark.parametrize("budget", ["epsilon", "rho"])
@pytest.mark.parametrize("confidence", [None, 0.9])
def test_deviations_and_rho_on_request(budget, confidence):
    """A column of points in time has no deviation: its others share the budget."""
    accountant = dpq.privacy.Accountant(
        90.0, 1e-6, composition="zcdp" if budget == "rho" else "basic"
    )
    out = dpq.describe(
        FRAME,
        **{budget: 2.0},
        bounds=BOUNDS,
        resolution=STEPS,
        shares=ALL,
        confidence=confidence,
        rng=5,
        accountant=accountant,
    )
    (entry,) = accountant.history
    assert getattr(entry, budget) == pytest.approx(2.0) and getattr(entry, budget) <= 2.0
    labels = [label for label in out.columns if not label.endswith(("low", "high"))]
    assert labels == ["column", "count", "mean", "std", "25%", "50%", "75%"]
    generator = np.random.default_rng(5)
    for row, (name, (low, high)) in zip(out.to_dict("records"), BOUNDS.items(), strict=True):
        options, part = dict(rng=generator, confidence=confidence), Fraction(2, len(BOUNDS))
        whole = 7 if name == "since" else 10
        for function in (dpq.count, dpq.mean, dpq.std):
            if function is dpq.std and name == "since":
                assert row["std"] is None or pd.isna(row["std"])
                continue
            ratio = Fraction(int(ALL[function.__name__]), whole)
            clip = {} if function is dpq.count else dict(lower=low, upper=high, q=None)
            found = function(FRAME[name], **{budget: down(part * ratio)}, **clip, **options)
            found = found if confidence is None else found.value
            assert row[function.__name__] == found
        place = dict(bounds=(low, high), resolution=STEPS.get(name))
        spend = {budget: down(part * Fraction(3, whole))}
        quartiles = dpq.quantile(FRAME[name], [0.25, 0.5, 0.75], **spend, **place, **options)
        assert row["50%"] == (quartiles[1] if confidence is None else quartiles[1].value)


@pytest.mark.parametrize("ids", [{}, dict(privacy_unit="user")], ids=["rows", "persons"])
@pytest.mark.parametrize("keys", [{}, dict(by="region", groups=["north"])], ids=["all", "by"])
def test_extremes_are_those_of_boxes_in_the_same_draw(keys, ids):
    frame = KEYED.assign(user=np.arange(len(KEYED)) // 4)
    place = dict(resolution=1.0, rng=5, epsilon=2.0)
    out = dpq.describe(
        frame,
        extremes=True,
        shares={"quantile": 1},
        bounds={"age": (0, 100)},
        **place,
        **keys,
        **ids,
    )
    labels = ["min", "25%", "50%", "75%", "max"]
    assert list(out.columns) == ["column", *(["region"] if keys else []), *labels]
    whose = {name: frame[column] for name, column in ids.items()}
    options = dict(whisker=1e9, bounds=(0, 100), **place, **whose)
    if keys:
        found = dpq.box_by(frame["age"], frame["region"], groups=["north"], **options)["north"]
    else:
        found = dpq.box(frame["age"], **options)
    assert out[labels].to_numpy().tolist() == [[*found]]
    persons = len(KEYED) // (4 if ids else 1)
    part = 1.0 if keys else 2.0  # a replaced record may change two groups
    assert found.level == pytest.approx(min(24.0 / (part * persons), 0.25))


def test_deviations_of_groups():
    out = dpq.describe(
        KEYED,
        epsilon=50.0,
        bounds=NUMBERS,
        by="region",
        groups=["north", "south"],
        shares={"std": 1.0},
        rng=1,
    )
    assert list(out.columns) == ["column", "region", "std"]
    north = KEYED[KEYED["region"] == "north"]
    (row,) = out[(out["column"] == "age") & (out["region"] == "north")].to_dict("records")
    assert row["std"] == pytest.approx(north["age"].std(), rel=0.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(shares={"std": 1}, bounds={"since": BOUNDS["since"]}), "^shares must have more than"),
        (dict(shares={"var": 1}), "^shares must be a mapping from some of count, mean, std, quan"),
        (dict(epsilon=None, rho=1.0, by="region", delta=1e-6), "^rho must be left out where group"),
        (dict(bounds=dict.fromkeys(NUMBERS, 3)), "^bounds must be two ends"),
        (dict(rho=1.0), "^exactly one of epsilon and rho must be given, got both"),
    ],
)
def test_what_can_not_be_described_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        dpq.describe(KEYED, **dict(epsilon=1.0, bounds=NUMBERS) | given)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 1 / 3, Fraction(1, 7), 2.5e-3])
@pytest.mark.parametrize("columns", range(1, 12))
def test_parts_never_add_up_to_more(epsilon, columns):
    accountant = dpq.privacy.Accountant(float(epsilon) * 2)
    names = [str(k) for k in range(columns)]
    shares = {"count": 0.7, "quantile": 0.1}
    frame = {name: [1.0] for name in names}
    dpq.describe(
        frame,
        epsilon=epsilon,
        bounds=dict.fromkeys(names, (0, 3)),
        resolution=1.0,
        q=0.5,
        shares=shares,
        accountant=accountant,
        rng=1,
    )
    assert accountant.spent.epsilon <= float(epsilon)
    assert accountant.spent.epsilon == pytest.approx(float(epsilon), rel=1e-12)


KEYED = FRAME.assign(
    region=RNG.choice(["north", "south", "east"], 400, p=[0.6, 0.39, 0.01]),
    shift=RNG.integers(0, 2, 400),
)
PAIRS = [("north", 0), ("south", 1), ("west", 0)]


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize(
    "by, groups", [("region", ["north", "west"]), (["region", "shift"], PAIRS)], ids=["one", "two"]
)
def test_groups_are_described_by_the_functions_for_groups(neighbors, by, groups):
    accountant = dpq.privacy.Accountant(2.0, neighbors=neighbors)
    common = dict(neighbors=neighbors, groups=groups)
    out = dpq.describe(
        KEYED, epsilon=2.0, bounds=BOUNDS, by=by, rng=5, accountant=accountant, q=0.5, **common
    )
    assert len(accountant.history) == 1 and accountant.spent.epsilon <= 2.0
    generator, keys = np.random.default_rng(5), KEYED[by]
    rows = {}
    for name, (low, high) in BOUNDS.items():
        x, part = KEYED[name], Fraction(2, len(BOUNDS))
        options = dict(common, rng=generator)
        number = dpq.count_by(x, keys, epsilon=down(part / 10), **options)
        clip = dict(lower=low, upper=high, q=None)
        mean = dpq.mean_by(x, keys, epsilon=down(part * 4 / 10), **clip, **options)
        middle = dpq.quantile_by(
            x, keys, 0.5, epsilon=down(part / 2), bounds=(low, high), **options
        )
        rows |= {(name, group): (number[group], mean[group], middle[group]) for group in groups}
    names = [by] if isinstance(by, str) else by
    assert list(out.columns) == ["column", *names, "count", "mean", "50%"]
    for row in out.to_dict("records"):
        group = row[by] if isinstance(by, str) else tuple(row[name] for name in by)
        assert (row["count"], row["mean"], row["50%"]) == rows.pop((row["column"], group))
    assert not rows


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_rows_without_a_key_are_described_on_request(make):
    frame = make(dict(town=["a", None, "a"], age=[1.0, 5.0, 3.0]))
    options = dict(bounds={"age": (0, 9)}, q=0.5, shares=dict(count=1.0), epsilon=900.0, rng=1)
    out = dpq.describe(frame, by="town", groups=["a", None], **options)
    towns, counts = (pd.Series(np.asarray(out[name])) for name in ("town", "count"))
    assert counts.tolist() == [2, 1] and towns.fillna("none").tolist() == ["a", "none"]


def test_groups_of_a_frame_are_its_rows():
    options = dict(by=["region", "shift"], epsilon=2.0, bounds=BOUNDS, rng=5)
    frames = [
        dpq.describe(KEYED, groups=groups, **options)
        for groups in (PAIRS, pd.DataFrame(PAIRS, columns=["region", "shift"]))
    ]
    pd.testing.assert_frame_equal(*frames)


def test_groups_that_nobody_listed_are_selected_first():
    accountant = dpq.privacy.Accountant(9.0, 1e-6)
    options = dict(bounds=NUMBERS, by=["region", "shift"], confidence=0.9)
    for frame in KEYED, pl.from_pandas(KEYED).lazy():
        out = dpq.describe(frame, epsilon=8.0, delta=1e-6, rng=1, accountant=accountant, **options)
        found = {name: list(out[name]) for name in ("column", "region", "shift")}
        generator = np.random.default_rng(1)
        kept = dpq.select_keys(
            KEYED[["region", "shift"]], epsilon=2.0, delta=1e-6, rng=generator
        ).tolist()
        assert 0 < len(kept) < 6
        assert found["column"] == [name for name in NUMBERS for _ in kept]
        assert list(zip(found["region"], found["shift"], strict=True)) == kept * len(NUMBERS)
        assert accountant.spent.delta == 1e-6 and accountant.spent.epsilon <= 8.0
        accountant = dpq.privacy.Accountant(9.0, 1e-6)
    nobody = dpq.describe(
        {"age": [1.0], "town": ["x"]}, epsilon=1.0, delta=1e-9, bounds={"age": (0, 9)}, by="town"
    )
    assert list(nobody.columns) == ["column", "town", "count", "mean", "25%", "50%", "75%"]
    assert len(nobody) == 0


def test_every_library_gets_its_own_frame():
    expected = dpq.describe(FRAME, epsilon=2.0, bounds=NUMBERS, rng=1)
    rows = expected.to_dict("list")
    polars = pl.from_pandas(FRAME)
    for frame, kind in (
        (polars, pl.DataFrame),
        (polars.to_arrow(), pa.Table),
        (dict(FRAME.items()), pd.DataFrame),
    ):
        out = dpq.describe(frame, epsilon=2.0, bounds=NUMBERS, rng=1)
        assert isinstance(out, kind)
        found = (
            out.to_dict(as_series=False)
            if kind is pl.DataFrame
            else dict(out.items())
            if kind is pd.DataFrame
            else out.to_pydict()
        )
        assert {name: list(column) for name, column in found.items()} == rows
    mixed = dpq.describe(polars, epsilon=2.0, bounds=BOUNDS, rng=1)
    assert mixed["mean"].dtype == pl.String and mixed["count"].dtype == pl.Int64
    times = dpq.describe(polars, epsilon=2.0, bounds=BOUNDS, columns=["since"], rng=1)
    assert times["50%"].dtype.is_temporal()


REAL = {"age": ((0, 100), 1), "hours_per_week": ((0, 100), 1)}
REAL |= {"average_rating": ((0.0, 10.0), 0.01), "num_pages": ((0, 10_000), 1)}


def test_the_papers_columns_under_one_epsilon(real_columns):
    files = [pd.read_csv(real_columns / f"{name}.csv") for name in ("adult", "goodreads_books")]
    columns = {name: file[name][:2_000] for file in files for name in file.columns}
    bounds, steps = ({name: REAL[name][part] for name in columns} for part in (0, 1))
    out = dpq.describe(columns, epsilon=40.0, bounds=bounds, resolution=steps, rng=2)
    assert list(out["column"]) == list(REAL)
    for row in out.to_dict("records"):
        x = columns[row["column"]].clip(*bounds[row["column"]])
        assert abs(row["count"] - x.size) < 60
        assert row["mean"] == pytest.approx(x.mean(), rel=0.05)
        assert dpq.metrics.rank_error(x, 0.5, row["50%"]) < 20


BAD = {
    "no mapping": (dict(bounds=(0, 1)), TypeError, "bounds must be a mapping from columns"),
    "no bounds": (dict(columns=["note"]), ValueError, "bounds must have each of the columns, got"),
    "no column": (
        dict(bounds={"q": (0, 1)}),
        ValueError,
        "columns must be some of the frame's, got",
    ),
    "twice": (
        dict(columns=["age", "age"]),
        ValueError,
        "columns must be one or more distinct names",
    ),
    "none": (dict(bounds={}), ValueError, "columns must be one or more distinct names, got []"),
    "a string": (dict(columns="age"), TypeError, "columns must be a sequence of names, got 'age'"),
    "one end": (dict(bounds={"age": (0,)}), ValueError, "bounds must be two ends (low, high) for"),
    "turned": (dict(bounds={"age": (1, 0)}), ValueError, "bounds must be finite with low < high"),
    "levels": (dict(q=[[0.5]]), ValueError, "q must have at most one dimension, got 2"),
    "shares": (dict(shares={"sum": 1}), ValueError, "shares must be a mapping from some of"),
    "share": (
        dict(shares={"mean": 0}),
        ValueError,
        "the share of mean must be positive and finite",
    ),
    "epsilon": (dict(epsilon=0), ValueError, "epsilon must be positive and finite, got 0.0"),
}


@pytest.mark.parametrize("keys", [{}, dict(by="region", groups=["north"])], ids=["all", "by"])
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_before_the_charge(name, keys):
    options, error, message = BAD[name]
    accountant = dpq.privacy.Accountant(1.0)
    call = dict(epsilon=1.0, bounds=NUMBERS, accountant=accountant) | keys | options
    with pytest.raises(error, match="^" + re.escape(message)):
        dpq.describe(KEYED, **call)
    assert accountant.history == ()
    for frame in ([1.0], np.zeros(3), "x"):
        with pytest.raises(TypeError, match="frame must be a data frame or a mapping of columns"):
            dpq.describe(frame, epsilon=1.0, bounds=NUMBERS)


def test_accessors_are_the_functions():
    importlib.import_module("dpq_fast.accessors")
    options = dict(epsilon=1.0, bounds=(0, 100), rng=1)
    expected = dpq.median(FRAME["age"], **options)
    polars = pl.from_pandas(FRAME)
    for frame in (FRAME, polars, polars.lazy()):
        assert frame.dpq.median("age", **options) == expected
        assert frame.dpq.quantile("age", 0.5, **options) == expected
        whole = frame.dpq.describe(epsilon=1.0, bounds=NUMBERS, rng=1)
        assert len(whole) == len(NUMBERS)
    assert FRAME["age"].dpq.median(**options) == polars["age"].dpq.median(**options) == expected
    for frame in (KEYED, pl.from_pandas(KEYED)):
        asked = dict(groups=["north", "south"], **options)
        middle = frame.dpq.quantile_by("age", "region", 0.5, **asked)
        assert (
            middle["north"] == dpq.quantile_by(KEYED["age"], KEYED["region"], 0.5, **asked)["north"]
        )
        asked = dict(groups=PAIRS, epsilon=1.0, rng=1)
        numbers = frame.dpq.count_by("age", ["region", "shift"], **asked)
        assert numbers.values.tolist() == (
            dpq.count_by(KEYED["age"], KEYED[["region", "shift"]], **asked).values.tolist()
        )
    assert FRAME["age"].dpq.count(epsilon=1.0, rng=1) == dpq.count(FRAME["age"], epsilon=1.0, rng=1)
    assert "Release count, mean, spread and quantiles" in FRAME.dpq.describe.__doc__


def test_levels_that_print_alike_have_columns_of_their_own():
    q = [0.1, 0.5, 0.5 + 2.0**-53]
    out = dpq.describe({"a": [1.0, 2.0]}, epsilon=1.0, bounds={"a": (0, 9)}, q=q, rng=0)
    assert [name for name in out.columns if "%" in name] == [
        "10%",
        "50%",
        "50.00000000000001%",
    ]


# Persons of one to some twenty rows, and rows of nobody.
PERSONS = KEYED.assign(
    user=pd.array(np.where(RNG.random(400) < 0.02, pd.NA, RNG.geometric(0.02, 400)), "Int64"),
    device=RNG.integers(0, 2, 400),
)
MAPPING = {name: PERSONS[name] for name in PERSONS}
WHOLE = [PERSONS, pl.from_pandas(PERSONS), pl.from_pandas(PERSONS).to_arrow(), MAPPING]
UNITS = {
    "a name": ("user", PERSONS["user"]),
    "names": (["user", "device"], PERSONS[["user", "device"]]),
    "a column": (PERSONS["user"], PERSONS["user"]),
    "columns": ([PERSONS["user"], PERSONS["device"]], PERSONS[["user", "device"]]),
}


@pytest.mark.parametrize("contributions", ["weights", 2])
@pytest.mark.parametrize("unit", UNITS)
def test_parts_are_about_persons(unit, contributions):
    given, ids = UNITS[unit]
    person = dict(contributions=contributions)
    generator, rows = np.random.default_rng(5), []
    for name, (low, high) in NUMBERS.items():
        x, part = PERSONS[name], Fraction(2, len(NUMBERS))
        options = dict(privacy_unit=ids, rng=generator, **person)
        number = dpq.count(x, epsilon=down(part / 10), **options)
        mean = dpq.mean(x, epsilon=down(part * 4 / 10), lower=low, upper=high, q=None, **options)
        place = dict(bounds=(low, high), epsilon=down(part / 2))
        rows.append([name, number, mean, *dpq.quantile(x, [0.25, 0.5, 0.75], **place, **options)])
    for frame in WHOLE:
        accountant = dpq.privacy.Accountant(2.0)
        out = dpq.describe(
            frame,
            epsilon=2.0,
            bounds=NUMBERS,
            rng=5,
            privacy_unit=given,
            accountant=accountant,
            **person,
        )
        found = [np.asarray(out[name]).tolist() for name in ("column", *STATISTICS)]
        assert found == [list(column) for column in zip(*rows, strict=True)]
        assert len(accountant.history) == 1 and accountant.spent.epsilon <= 2.0


@pytest.mark.parametrize("contributions", ["weights", 3])
def test_groups_of_persons_are_described_and_selected(contributions):
    person = dict(privacy_unit="user", contributions=contributions)
    options = dict(epsilon=8.0, bounds={"age": (0, 100)}, by="region", q=0.5, **person)
    accountant = dpq.privacy.Accountant(8.0, 1e-6)
    out = dpq.describe(PERSONS, delta=1e-6, rng=1, accountant=accountant, **options)
    person["privacy_unit"] = PERSONS["user"]
    generator = np.random.default_rng(1)
    kept = dpq.select_keys(PERSONS["region"], epsilon=2.0, delta=1e-6, rng=generator, **person)
    assert 0 < len(kept) < 3
    assert list(out["region"]) == list(kept)
    number = dpq.count_by(
        *(PERSONS["age"], PERSONS["region"]), groups=kept, epsilon=0.6, rng=generator, **person
    )
    assert list(out["count"]) == number.values.tolist()
    assert accountant.spent.delta == 1e-6 and accountant.spent.epsilon <= 8.0
    listed = dpq.describe(PERSONS, groups=["east"], rng=1, **options)
    assert list(listed["region"]) == ["east"]


BAD_UNITS = {
    "no column": (dict(privacy_unit="who"), "privacy_unit must be some of the frame's, got 'who'"),
    # which may be ids, and are not shown
    "no columns": (
        dict(privacy_unit=["user", "ann"]),
        "privacy_unit must be an array of ids, or name the frame's columns of ids, where there are "
        "'age', 'pay', 'since', 'left', 'note', 'region', 'shift', 'user', 'device'",
    ),
    "twice": (
        dict(privacy_unit=["user", "user"]),
        "privacy_unit must be an array of ids, or name the frame's",
    ),
    "ids": (
        dict(privacy_unit=["user", "device"] * 200),
        "privacy_unit must be an array of ids, or name the frame's",
    ),
    "none": (dict(privacy_unit=[]), "privacy_unit must be an array of ids, or name the frame's"),
    "described": (
        dict(privacy_unit=["device", "age"]),
        "columns must leave out those of the privacy_unit, got 'age'",
    ),
    "a promise": (
        dict(privacy_unit="user", max_contributions=2),
        "max_contributions must be left out with a privacy_unit, got 2",
    ),
    "no unit": (
        dict(contributions=2),
        "contributions must be left out without a privacy_unit, got 2",
    ),
    "contributions": (
        dict(privacy_unit="user", contributions="rows"),
        "contributions must be 'weights' or a number of records, got 'rows'",
    ),
    "population": (
        dict(privacy_unit="user", contributions=2, confidence=0.9, covers="population"),
        "covers must be 'sample' for a mean of several records of each person",
    ),
}


@pytest.mark.parametrize("keys", [{}, dict(by="region", delta=1e-6)], ids=["all", "by"])
@pytest.mark.parametrize("name", BAD_UNITS)
def test_bad_units_are_refused_before_the_charge(name, keys):
    options, message = BAD_UNITS[name]
    accountant = dpq.privacy.Accountant(1.0, 1e-6)
    for frame in WHOLE:
        call = dict(epsilon=1.0, bounds=NUMBERS, accountant=accountant) | keys | options
        with pytest.raises(ValueError, match="^" + re.escape(message)):
            dpq.describe(frame, **call)
    assert accountant.history == ()


def test_units_of_another_frame_go_by_labels():
    options = dict(epsilon=1.0, bounds={"age": (0, 9)}, rng=1)
    own = {"age": pd.Series([1.0, 2.0, 3.0])}
    ids = pd.Series([7, 7, 8])
    expected = dpq.describe(own, privacy_unit=ids, **options)
    pd.testing.assert_frame_equal(dpq.describe(own, privacy_unit=ids[::-1], **options), expected)
    accountant = dpq.privacy.Accountant(1.0)
    with pytest.raises(ValueError, match="index"):
        dpq.describe(own, privacy_unit=ids[1:], accountant=accountant, **options)
    assert accountant.history == ()


@pytest.mark.parametrize(
    "contributions, keys",
    [("weights", {}), ("weights", dict(by="region", groups=["north", "south"])), (2, {})],
    ids=["weights", "by", "rows"],
)
@pytest.mark.parametrize("unit", ["user", ["user", "device"]], ids=["one", "two"])
def test_tables_know_their_columns_of_ids(unit, contributions, keys):
    importlib.import_module("dpq_fast.accessors")
    person = dict(privacy_unit=unit, contributions=contributions, epsilon=1.0, rng=1)
    # which a release of a table does not know
    options = dict(bounds=NUMBERS, expected_n=40, **keys, **person)
    expected = dpq.describe(PERSONS, **options).to_dict("list")
    lazy = pl.from_pandas(PERSONS).lazy()
    table = dpq.Table.of(PERSONS.drop(columns=["since", "note"]))
    for frame in (table, lazy):
        out = dpq.describe(frame, **options)
        assert {name: list(out[name]) for name in out.columns} == expected
    own = dpq.describe(table, **options | dict(privacy_unit=table[unit]))
    assert own.to_dict("list") == expected
    place = dict(bounds=(0, 100), expected_n=40)
    assert lazy.dpq.median("age", **place, **person) == PERSONS.dpq.median("age", **place, **person)
    refused = [
        (dict(privacy_unit="age"), "columns must leave out those of the privacy_unit, got 'age'"),
        (dict(privacy_unit=table["age"]), "columns must leave out those of the privacy_unit"),
        (dict(privacy_unit=PERSONS["user"]), "privacy_unit must name columns of the table"),
        (dict(privacy_unit="who"), "privacy_unit must be some of the frame's, got 'who'"),
    ]
    accountant = dpq.privacy.Accountant(1.0)
    for given, message in refused:
        with pytest.raises(ValueError, match=re.escape(message)):
            dpq.describe(table, **options | given, accountant=accountant)
    assert accountant.history == ()


def test_accessors_take_names_of_columns_of_ids():
    importlib.import_module("dpq_fast.accessors")
    options = dict(epsilon=1.0, bounds=(0, 100), rng=1)
    groups = dict(groups=["north", "south"], **options)
    for name, (given, ids) in UNITS.items():
        own = dict(privacy_unit=ids, contributions=2, **options)
        expected = dpq.median(PERSONS["age"], **own), dpq.count(PERSONS["age"], **_counted(own))
        by = dpq.quantile_by(
            PERSONS["age"], PERSONS["region"], 0.5, privacy_unit=ids, **groups
        ).values.tolist()
        for frame in (PERSONS, pl.from_pandas(PERSONS)):
            own["privacy_unit"] = given
            found = frame.dpq.median("age", **own), frame.dpq.count("age", **_counted(own))
            assert found == expected, name
            found_by = frame.dpq.quantile_by("age", "region", 0.5, privacy_unit=given, **groups)
            assert found_by.values.tolist() == by
            whole = frame.dpq.describe(epsilon=1.0, bounds=NUMBERS, rng=1, privacy_unit=given)
            assert len(whole) == len(NUMBERS)
    with pytest.raises(ValueError, match=r"^privacy_unit must be some of the frame's, got 'who' "):
        PERSONS.dpq.median("age", privacy_unit="who", **options)
    with pytest.raises(ValueError, match=r"^privacy_unit must be an array of ids") as refused:
        PERSONS.dpq.quantile_by("age", "region", 0.5, privacy_unit=["ann", "user"], **groups)
    assert "ann" not in str(refused.value)


def _counted(options: dict) -> dict:
    return {name: given for name, given in options.items() if name != "bounds"}
