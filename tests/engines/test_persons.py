"""Releases about persons whose ids are in tables, against those of arrays; what is seen of ids."""

from __future__ import annotations

import contextlib
import datetime
import functools
import uuid

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpq_fast as dpq
from dpq_fast.data.persons import Persons, stand_ins
from dpq_fast.data.table_persons import TablePersons
from dpq_fast.data.tasks import PersonsTask
from dpq_fast.engines.duckdb import DuckDB

N = 2_500
PARTS = 11


def rows():
    """Persons of 1 to many rows, some without an id or a value, in towns, none of them alike."""
    rng = np.random.default_rng(0)
    person = rng.geometric(0.02, N)
    ms = np.round(rng.normal(50, 20, N), 6) + person / 10
    ms[::50] = np.nan
    start = datetime.date(2024, 1, 1)
    towns = rng.choice(["Aarau", "Basel", "Chur", "Davos"], N, p=[0.5, 0.3, 0.19, 0.01])
    return pa.table(
        {
            "user": pa.array([f"person {v}" for v in person], mask=np.arange(N) % 37 == 0),
            "number": pa.array(person, mask=np.arange(N) % 41 == 0),
            "house": person % 7,
            "ms": pa.array(ms, mask=np.arange(N) % 61 == 3),
            "town": pa.array(towns.tolist(), mask=np.arange(N) % 53 == 0),
            "year": 2020 + person % 3,
            "day": [start + datetime.timedelta(days=int(k)) for k in rng.integers(0, 300, N)],
            "share": person / 8,
        }
    )


ROWS = rows()
# Those of each person are all over it.
SHUFFLED = ROWS.take(pa.array(np.random.default_rng(1).permutation(N)))

# Where they may lie: the fixture that it needs, if any, and how an engine gets them.


def of_duckdb(_, table):
    connection = duckdb.connect()
    connection.register("visits", table)
    return dpq.Table.of("select * from visits", connection)


SHARED = duckdb.connect()


def of_folder(folder, table):
    size = -(-N // PARTS)
    for part in range(PARTS):
        pq.write_table(table.slice(part * size, size), folder / f"{part}.parquet")
    return dpq.Table.of(folder)


def of_texts(folder, table):
    csv.write_csv(table, folder / "rows.csv")
    return dpq.Table.of(folder / "rows.csv")


def of_ibis(connection, table):
    """A table of SQLite or PostgreSQL."""
    cursor = connection.con.cursor()
    cursor.execute("DROP TABLE IF EXISTS visits")
    types = ["TEXT", "BIGINT", "BIGINT", "DOUBLE PRECISION", "TEXT", "BIGINT", "DATE"]
    names = [*table.column_names[:7], "share"]
    columns = zip(names, [*types, "DOUBLE PRECISION"], strict=True)
    declared = ", ".join(f'"{name}" {kind}' for name, kind in columns)
    cursor.execute(f"CREATE TABLE visits ({declared})")
    mark = "?" if connection.name == "sqlite" else "%s"
    text = f"INSERT INTO visits VALUES ({', '.join([mark] * len(names))})"
    found = [list(row.values()) for row in table.to_pylist()]
    if connection.name == "sqlite":
        found = [[*row[:6], row[6].isoformat(), row[7]] for row in found]
    cursor.executemany(text, found)
    connection.con.commit()
    return dpq.Table.of(connection.table("visits"))


def of_dask(_, table):
    import dask.dataframe

    frame = table.to_pandas().convert_dtypes()
    return dpq.Table.of(dask.dataframe.from_pandas(frame, npartitions=PARTS))


def of_spark(session, table):
    return dpq.Table.of(session.createDataFrame(table).repartition(3))


def of_ray(_, table):
    import ray.data

    size = -(-N // PARTS)
    slices = [table.slice(size * part, size) for part in range(PARTS)]
    return dpq.Table.of(ray.data.from_arrow(slices))


IN_BATCHES = pa.Table.from_batches(SHUFFLED.to_batches(max_chunksize=97))
PLACES = {
    "frame": (None, lambda _, table: dpq.Table.of(table)),
    "pandas": (None, lambda _, table: dpq.Table.of(table.to_pandas().convert_dtypes())),
    "mapping": (None, lambda _, table: dpq.Table.of({n: table[n] for n in table.column_names})),
    "data set": (None, lambda _, table: dpq.Table.of(ds.dataset(IN_BATCHES))),
    "threads": (None, lambda _, table: dpq.Table.of(ds.dataset(IN_BATCHES), workers=3)),
    "lazy frame": (None, lambda _, table: dpq.Table.of(pl.from_arrow(table).lazy())),
    "Parquet": ("tmp_path", of_folder),
    "CSV": ("tmp_path", of_texts),
    "DuckDB": (None, of_duckdb),
    "relation": (None, lambda _, table: dpq.Table.of(SHARED.from_arrow(table))),
    "SQLite": ("sqlite_ibis", of_ibis),
    "PostgreSQL": ("postgres_ibis", of_ibis),
    "Dask": ("dask_synchronous", of_dask),
    "Dask cluster": ("dask_cluster", of_dask),
    "Spark": ("spark", of_spark),
    "Ray": ("ray_cluster", of_ray),
}
TABLES = pytest.mark.parametrize(
    ("engine", "make"), [pytest.param(*place, id=name) for name, place in PLACES.items()]
)


@pytest.fixture
def table(request, engine, make):
    server = request.getfixturevalue(engine) if engine else None
    with server.as_current() if engine == "dask_cluster" else contextlib.nullcontext():
        yield make(server, SHUFFLED)


OPTIONS = dict(epsilon=1.0, rng=3)
LYING = OPTIONS | dict(bounds=(0, 100))
# What a default goes by where the number of rows is public, and known beforehand.
FREE = LYING | dict(neighbors="add-remove")
LISTED = dict(groups=["Basel", "Aarau", "Zug"])
SELECTED = dict(groups=None, delta=1e-3)
RELEASES = {
    "one level": lambda x, by, **p: dpq.ind_exp(x, 0.5, **LYING, **p),
    "several levels": lambda x, by, **p: dpq.joint_exp(x, [0.2, 0.5], **LYING, **p),
    "quantile": lambda x, by, **p: dpq.quantile(x, [0.2, 0.5, 0.9], **FREE, **p),
    "interval": lambda x, by, **p: dpq.median(x, confidence=0.9, **FREE, **p).low,
    "approx_quantiles": lambda x, by, **p: dpq.approx_quantiles(x, [0.2, 0.7], **LYING, **p),
    "two_stage": lambda x, by, **p: dpq.two_stage(x, [0.2, 0.7], **FREE, **p),
    "continuous": lambda x, by, **p: dpq.ind_exp(x, 0.5, resolution=0, **LYING, **p),
    "cdf": lambda x, by, **p: dpq.cdf(x, **FREE, **p).quantile([0.2, 0.5]),
    "tree": lambda x, by, **p: dpq.agg_tree(x, [0.2, 0.5], **FREE, **p),
    "unbounded": lambda x, by, **p: dpq.unbounded_quantile(x, 0.9, **OPTIONS, **p),
    "sum": lambda x, by, **p: dpq.sum(x, **OPTIONS, **p),
    "mean": lambda x, by, **p: dpq.mean(x, lower=0, upper=100, **OPTIONS, **p),
    "count": lambda x, by, **p: dpq.count(x, **OPTIONS, **p),
    "by group": lambda x, by, **p: dpq.quantile_by(x, by, 0.5, **LISTED, **FREE, **p).values,
    "by selected group": (
        lambda x, by, **p: dpq.quantile_by(x, by, [0.2, 0.5], **SELECTED, **FREE, **p).values
    ),
    "sum by group": lambda x, by, **p: dpq.sum_by(x, by, **LISTED, **LYING, **p).values,
    "mean by group": lambda x, by, **p: dpq.mean_by(x, by, **SELECTED, **LYING, **p).values,
    "count by group": lambda x, by, **p: dpq.count_by(x, by, **LISTED, **OPTIONS, **p).values,
}
SLOW = ("strings", "dates")  # of which the other ones have parts
UNITS = {"strings": "user", "integers": "number", "several": ("user", "house"), "dates": "day"}


@functools.cache
def expected(unit, contributions):
    """Of the rows in memory, in their own order."""
    ids = [ROWS[name] for name in unit] if isinstance(unit, tuple) else ROWS[unit]
    asked = dict(privacy_unit=ids, contributions=contributions)
    return {name: own(ROWS["ms"], ROWS["town"], **asked) for name, own in RELEASES.items()}


@TABLES
@pytest.mark.parametrize("contributions", ["weights", 2])
@pytest.mark.parametrize(
    "unit", [pytest.param(unit, marks=pytest.mark.slow) if unit in SLOW else unit for unit in UNITS]
)
def test_releases_of_tables_are_those_of_arrays(table, unit, contributions):
    asked = dict(privacy_unit=UNITS[unit], contributions=contributions)
    found = dpq.together(
        *(
            functools.partial(release, table["ms"], table["town"], **asked)
            for release in RELEASES.values()
        )
    )
    known = expected(UNITS[unit], contributions)
    for name, own in zip(RELEASES, found, strict=True):
        np.testing.assert_array_equal(own, known[name], err_msg=name)


@TABLES
def test_keys_of_persons_are_those_of_arrays(table):
    asked = dict(epsilon=1.0, delta=1e-3, rng=3)
    found = dpq.select_keys(table["town", "year"], privacy_unit="user", **asked)
    known = dpq.select_keys(ROWS.select(["town", "year"]), privacy_unit=ROWS["user"], **asked)
    assert 3 <= len(known) < 12  # as texts, if they are in a file of such
    assert [(town, int(year)) for town, year in found.tolist()] == known.tolist()


@TABLES
def test_which_of_equal_rows_stay_does_not_go_by_their_order(table):
    """A person has many rows of a year, in several towns: as keys, none of them has a value."""
    asked = dict(privacy_unit="house", contributions=3, epsilon=1e6, rng=1)
    found = dpq.count_by(table["year"], table["town"], **LISTED, **asked).values
    frame = dpq.Table.of(ROWS)
    known = dpq.count_by(frame["year"], frame["town"], **LISTED, **asked).values
    assert found.tolist() == known.tolist()


@pytest.mark.parametrize("place", ["frame", "lazy frame", "DuckDB"])
def test_samples_and_laws_of_tables_are_those_of_arrays(place):
    table = PLACES[place][1](None, SHUFFLED)
    known = dpq.Sample.of(ROWS["ms"], (0, 100), resolution=0.5, privacy_unit=ROWS["user"])
    for found in (
        dpq.Sample.of(table["ms"], (0, 100), resolution=0.5, privacy_unit=table["user"]),
        dpq.Sample.from_engine(table, (0, 100), column="ms", resolution=0.5, privacy_unit="user"),
    ):
        one, other = (dpq.quantile(each, [0.2, 0.5], **OPTIONS) for each in (found, known))
        assert one.tolist() == other.tolist()
        one, other = (
            dpq.joint_exp_law(each, 0.5, epsilon=1.0, dither_rng=1).log_prob(50.0)
            for each in (found, known)
        )
        assert one == other
    times = dict(bounds=("2024-01-01", "2025-01-01"), resolution="1D")
    answers = [
        dpq.ind_exp(day, 0.5, privacy_unit=own, **times, **OPTIONS)
        for day, own in ((table["day"], "user"), (ROWS["day"], ROWS["user"]))
    ]
    assert answers[0] == answers[1]
    sample = dpq.Sample.of(
        table["day"], times["bounds"], resolution=times["resolution"], privacy_unit="user"
    )
    assert dpq.ind_exp(sample, 0.5, **OPTIONS) == answers[0]


def test_what_an_engine_holds_may_be_given_itself():
    """All but the ids are the column, or those of keys."""
    lazy = pl.from_arrow(SHUFFLED).lazy()
    found = dpq.ind_exp(lazy.select("ms", "user"), 0.5, privacy_unit="user", **LYING)
    assert found == dpq.ind_exp(ROWS["ms"], 0.5, privacy_unit=ROWS["user"], **LYING)
    relation = SHARED.from_arrow(SHUFFLED.select(["user", "house", "ms"]))
    found = dpq.ind_exp(relation, 0.5, privacy_unit=["user", "house"], **LYING)
    ids = ROWS.select(["user", "house"])
    assert found == dpq.ind_exp(ROWS["ms"], 0.5, privacy_unit=ids, **LYING)
    sample = dpq.Sample.from_engine(lazy.select("ms", "user"), (0, 100), privacy_unit="user")
    assert dpq.ind_exp(sample, 0.5, **OPTIONS) == dpq.ind_exp(
        ROWS["ms"], 0.5, privacy_unit=ROWS["user"], **LYING
    )
    asked = dict(epsilon=1.0, delta=1e-3, rng=3)
    found = dpq.select_keys(lazy.select("town", "user"), privacy_unit="user", **asked)
    known = dpq.select_keys(by=ROWS["town"], privacy_unit=ROWS["user"], **asked)
    assert found.tolist() == known.tolist()
    with pytest.raises(ValueError, match="x must be one column, got a frame of 3"):
        dpq.median(lazy.select("ms", "user", "town", "year"), privacy_unit="user", **LYING)
    with pytest.raises(ValueError, match="x must have a column beside those of privacy_unit"):
        dpq.median(lazy.select("user"), privacy_unit="user", **LYING)


# What is seen of ids


def test_no_statement_holds_an_id_or_a_value(monkeypatch):
    texts, asked = [], DuckDB._asked

    def asking(self, text, tables, *rest):
        texts.append(text + repr({name: own.to_pydict() for name, own in tables.items()}))
        return asked(self, text, tables, *rest)

    monkeypatch.setattr(DuckDB, "_asked", asking)
    table = of_duckdb(None, SHUFFLED)
    for release in RELEASES.values():
        release(table["ms"], table["town"], privacy_unit=["user", "house"])
    assert texts and all('"user"' in text for text in texts)
    for text in texts:
        assert "person" not in text
        for value in (*ROWS["ms"].to_pylist()[5:9], *ROWS["town"].unique().to_pylist()):
            assert str(value) not in text.replace("None", "")


@TABLES
def test_no_id_is_in_what_an_engine_answers(table):
    for ids in (("user",), ("number",), ("user", "house")):
        task = PersonsTask("ms", None, ids, ("town",))
        (state,) = table.answer([task])
        numbers = np.concatenate([own.astype(np.uint64) for own in state.persons], axis=1)
        held = sum(all(row[name] is not None for name in ids) for row in ROWS.to_pylist())
        distinct = {tuple(row[name] for name in ids) for row in ROWS.to_pylist()}
        whole = {key for key in distinct if None not in key}
        assert numbers.shape[1] == held
        assert np.unique(numbers, axis=1).shape[1] == len(whole)
        assert sum(map(len, state.values)) == sum(map(len, state.places)) == held
        assert b"person" not in numbers.tobytes()
        if isinstance(table._engine, DuckDB) or len(numbers) == 1:
            continue  # which counts persons
        assert not np.isin(numbers[0], ROWS["number"].drop_null().to_numpy()).any()


def test_numbers_that_stand_for_ids_are_equal_where_ids_are():
    ids = [
        3,
        3.0,
        np.int8(3),
        True,
        1,
        np.True_,
        1.5,
        np.float64(1.5),
        datetime.date(2024, 1, 1),
        datetime.datetime(2024, 1, 1),
        "3",
        b"3",
        None,
        2**63,
        2**63,
        -1,
        2**64,
        [],
        uuid.UUID(int=3),
    ]
    secret = bytes(range(32))
    (first, second), present = stand_ins(ids, secret)
    assert present.tolist() == [item is not None and not isinstance(item, list) for item in ids]
    numbers = list(zip(first.tolist(), second.tolist(), strict=True))
    persons = Persons(ids)._codes
    for i, one in enumerate(numbers):
        for j, other in enumerate(numbers):
            if present[i] and present[j]:
                assert (one == other) == (persons[i] == persons[j]), (ids[i], ids[j])
    for alike in (
        np.array([3, 1], np.int16),
        pa.array([3.0, 1.0]),
        pl.Series([3, 1], dtype=pl.UInt8),
    ):
        found, _ = stand_ins(alike, secret)
        assert found.T.tolist() == [list(numbers[0]), list(numbers[4])]
    huge = np.array([2**63, 2**64 - 1], dtype=np.uint64)
    assert stand_ins(huge, secret)[0].T.tolist() == [
        list(numbers[13]),
        stand_ins([2**64 - 1], secret)[0].T[0].tolist(),
    ]
    assert stand_ins(np.array([-1]), secret)[0].T.tolist() == [list(numbers[15])]
    other, _ = stand_ins(ids, bytes(range(1, 33)))
    assert not (other[0][present] == first[present]).any()
    texts = ["a", "b", None, "a"]
    known = stand_ins(texts, secret)
    for alike in (
        pa.array(texts),
        pa.array(texts).dictionary_encode(),
        pl.Series(texts),
        pl.Series(texts, dtype=pl.Categorical),
        pl.Series(texts).to_pandas(),
        np.array(texts, dtype=object),
    ):
        found = stand_ins(alike, secret)
        assert found[1].tolist() == [True, True, False, True]
        np.testing.assert_array_equal(found[0][:, found[1]], known[0][:, known[1]])
    days = np.array(["2024-01-01", "NaT", "2024-01-02"], dtype="M8[D]")
    found, present = stand_ins(days, secret)
    assert present.tolist() == [True, False, True]
    np.testing.assert_array_equal(found[:, 0], stand_ins(days.astype("M8[us]"), secret)[0][:, 0])
    assert stand_ins(np.array([b"a", b"b"]), secret)[0].T.tolist() == (
        stand_ins([b"a", b"b"], secret)[0].T.tolist()
    )


# Rules


@TABLES
def test_what_is_no_column_of_ids_is_refused(table):
    with pytest.raises(
        ValueError, match=r"privacy_unit must be that of one column .*did you mean 'user'"
    ):
        dpq.median(table["ms"], privacy_unit="uses", **LYING)
    if "CSV" not in type(table._engine).__name__ and table._engine.__class__.__name__ != "Batches":
        with pytest.raises(TypeError, match="privacy_unit must hold integers, strings"):
            dpq.median(table["ms"], privacy_unit="share", **LYING)
    for ids in (ROWS["user"], [*ROWS["user"].to_pylist(), 7], np.arange(N), 3):
        with pytest.raises(
            ValueError,
            match="privacy_unit must name columns of the table that x is of, as 'user_id'",
        ):
            dpq.median(table["ms"], privacy_unit=ids, **LYING)
        with pytest.raises(ValueError, match="privacy_unit must name columns of the table"):
            dpq.quantile_by(table["ms"], table["town"], 0.5, privacy_unit=ids, **LISTED, **LYING)


@pytest.mark.parametrize("place", ["frame", "pandas", "mapping", "data set", "Parquet"])
def test_floats_are_no_ids(place, tmp_path):
    table = PLACES[place][1](tmp_path, SHUFFLED)
    with pytest.raises(TypeError, match=r"privacy_unit must hold integers.* got dtype"):
        dpq.median(table["ms"], privacy_unit="share", **LYING)


def test_columns_of_tables_and_arrays_do_not_mix():
    table, other = (dpq.Table.of(ROWS) for _ in range(2))
    with pytest.raises(ValueError, match="privacy_unit must be of the table that x is of"):
        dpq.median(table["ms"], privacy_unit=other["user"], **LYING)
    with pytest.raises(ValueError, match="privacy_unit must be a column beside x"):
        dpq.median(ROWS["ms"], privacy_unit=table["user"], **LYING)
    with pytest.raises(ValueError, match="counts must be left out with a privacy_unit"):
        dpq.median(table["ms"], privacy_unit="user", counts=np.ones(N), **LYING)
    with pytest.raises(ValueError, match="max_contributions must be left out"):
        dpq.median(table["ms"], privacy_unit="user", max_contributions=2, **LYING)
    with pytest.raises(ValueError, match="contributions must be 'weights' or a number"):
        dpq.median(table["ms"], privacy_unit="user", contributions="rows", **LYING)
    with pytest.raises(TypeError, match="privacy_unit must be a column of integers"):
        dpq.median(ROWS["ms"], privacy_unit="user", **LYING)


def test_missing_values_are_told_where_there_are_to_be_none():
    for place in ("frame", "DuckDB"):
        table = PLACES[place][1](None, SHUFFLED)
        for contributions in ("weights", 2):
            asked = dict(privacy_unit="user", contributions=contributions, nan_policy="raise")
            for name in ("sum", "mean", "count", "by group", "by selected group", "sum by group"):
                with pytest.raises(ValueError, match="x must not contain NaN"):
                    RELEASES[name](table["ms"], table["town"], **asked)
                RELEASES[name](table["share"], table["town"], **asked)


def test_nothing_is_read_before_the_charge(monkeypatch):
    table = dpq.Table.of(ROWS)
    monkeypatch.setattr(TablePersons, "rows", None)
    for release in RELEASES.values():
        accountant = dpq.Accountant(epsilon=0.5, delta=0.1, convert=True)
        with pytest.raises(dpq.BudgetExceeded):
            release(table["ms"], table["town"], privacy_unit="user", accountant=accountant)


def test_no_rows_and_no_ids_are_released():
    for table in (ROWS.slice(0, 0), ROWS.set_column(0, "user", pa.nulls(N, pa.string()))):
        for place in ("frame", "data set", "DuckDB", "lazy frame"):
            own = dpq.Table.of(ds.dataset(table)) if place == "data set" else None
            own = PLACES[place][1](None, table) if own is None else own
            for release in RELEASES.values():
                found = release(own["ms"], own["town"], privacy_unit="user")
                assert np.isfinite(np.asarray(found, dtype=float)).all()
