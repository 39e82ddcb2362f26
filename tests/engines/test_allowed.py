"""What a query in SQL may do, and tables by their names."""

import sqlite3
import sys

import duckdb
import pytest

import dpq_fast as dpq
from dpq_fast.engines import allowed

PLACE = dict(epsilon=1e6, bounds=(0, 100), resolution=1)
ALLOWED = [
    "select * from staff where pay > 3 order by pay;",
    "from staff",
    "with more as (select pay + 1 as pay from staff) select * from more",
    "select case when pay > 3 then 1.5 else try_cast(town as double) end as pay from staff",
    "select staff.* from staff join towns on staff.town = towns.town and towns.size > 1",
    "select staff.* from staff left join towns using (town)",
    "select * from staff natural join towns",
    "select * from staff where town in (select town from towns)",
    "select * from staff where town is distinct from 'a'",
    "select pay from staff union all select size from towns",
    "select least(pay, 7) as pay, random as r from (select pay, 1 as random from staff)",
]
REFUSED = {
    "select * from staff limit 5": "limit",
    "select * from staff order by pay limit 5": "limit",
    "select * from staff offset 5": "offset",
    "select * from (select * from staff limit 5) as five": "limit",
    "select distinct pay from staff": "distinct",
    "select distinct on (town) pay from staff": "distinct",
    "select sum(pay) as pay from staff": "an aggregate",
    "select town from staff group by town": "group by",
    "select pay - avg(pay) over () as pay from staff": "(a window function|an aggregate)",
    "select pay, row_number() over (order by pay) as r from staff": "a window function",
    "select pay from staff qualify rank() over (order by pay) < 3": "(qualify|a window function)",
    "select pay from staff where pay > (select avg(pay) from staff)": "an aggregate",
    "select unnest([1, 2]) as pay from staff": "unnest",
    "select pay from staff, unnest([1, 2])": "(unnest|a join without an equality)",
    "select pay from staff, towns": "a join without an equality",
    "select pay from staff cross join towns": "a join without an equality",
    "select pay from staff join towns on pay < size": "a join without an equality",
    "select pay from staff join towns on true": "a join without an equality",
    "select a.pay from staff a join staff b using (town)": "staff 2 times",
    "select pay from staff union all select pay from staff": "staff 2 times",
    "with s as (select * from staff) select s.pay from s join s as t using (town)": "s 2 times",
    "select pay from staff where pay in (select pay from staff)": "staff 2 times",
    "select pay from staff union select size from towns": "union without all",
    "select pay from staff intersect select size from towns": "intersect",
    "select pay from staff except select size from towns": "except",
    "select pay + random() as pay from staff": "random numbers",
    "select pay from staff where now() > timestamp '2026-01-01'": "the current time",
    "select pay from staff where current_date > date '2026-01-01'": "the current time",
    "select nextval('s') as pay from staff": "a sequence",
    "select pay from staff using sample 10%": "a sample",
    "select pay from staff tablesample reservoir(5)": "a sample",
    "select pay from few": "limit in the view few",
    "select pay from fewer": "limit in the view few in the view fewer",
    "select all_staff.pay from all_staff join staff using (town)": "staff 2 times",
    "few": "limit in the view",
    "main.few": "limit in the view",
}


@pytest.fixture
def connection():
    with duckdb.connect() as made:
        made.execute(
            "create table staff as select (i % 90)::double as pay, 'a' as town from range(900) t(i)"
        )
        made.execute("create table towns as select 'a' as town, 3 as size")
        made.execute("create sequence s")
        made.execute("create view all_staff as select * from staff")
        made.execute("create view few (pay) as select pay from staff limit 5")
        made.execute("create view fewer as select * from few")
        made.execute('create table "odd ""name" as select 7 as pay')
        made.execute("create schema other")
        made.execute("create table other.more as select 8 as pay")
        made.execute("create temp table short as select 9 as pay")
        yield made


@pytest.fixture
def checked():
    pytest.importorskip("sqlglot", reason="extra 'sql-check' is not installed")


@pytest.mark.parametrize("text", ALLOWED)
def test_queries_of_one_record_a_row_are_allowed(connection, checked, text):
    table = dpq.Table.of(text, connection)
    assert dpq.count(table[table.columns[0]], epsilon=1e6) >= 0


@pytest.mark.parametrize("text", REFUSED)
def test_queries_of_several_records_a_row_are_refused(connection, checked, text):
    rule = rf"each row of which comes from one record, got {REFUSED[text]}"
    with pytest.raises(ValueError, match=rule):
        dpq.Table.of(text, connection)


def test_queries_that_are_not_understood_are_the_user_s(connection, checked):
    """The data base says what is wrong with them."""
    with pytest.raises(duckdb.Error):
        dpq.Table.of("select from from (((", connection)
    allowed.check_query("select pay from staff", "no such dialect", lambda _: None)


def test_the_larger_of_two_numbers_is_no_aggregate(checked):
    allowed.check_query("select max(pay, 0) as pay from staff", "sqlite", lambda _: None)
    with pytest.raises(ValueError, match="got an aggregate"):
        allowed.check_query("select max(pay) as pay from staff", "sqlite", lambda _: None)


def test_a_broken_rule_voids_the_guarantee(connection):
    """Why: one record more changes all rows of a window, and two of a limit."""
    for rows, changed in (
        ("select max(pay) over () - pay as pay from staff where pay < 10", 100),
        ("select pay from staff order by pay desc limit 5", 1),
    ):
        before = connection.sql(rows).fetchall()
        connection.execute("begin")
        connection.execute(f"insert into staff values ({9.5 if changed > 1 else 100}, 'a')")
        after = connection.sql(rows).fetchall()
        connection.execute("rollback")
        assert len(after) - sum(row in before for row in after) == changed


def test_a_view_may_have_the_name_of_the_table_that_it_shows(connection, checked):
    connection.execute("create view more as select pay + 1 as pay from other.more")
    for text in ("more", "select * from more", "select * from main.more where pay > 0"):
        assert dpq.count(dpq.Table.of(text, connection)["pay"], epsilon=1e6) == 1
    connection.execute("create or replace view more as select * from other.more limit 5")
    with pytest.raises(ValueError, match="got limit in the view more"):
        dpq.Table.of("select * from more", connection)


def test_without_sqlglot_nothing_is_checked(connection, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    table = dpq.Table.of("select * from staff limit 5", connection)
    assert dpq.count(table["pay"], epsilon=1e6) == 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("staff", 44),
        ("STAFF ", 44),
        ("main.staff", 44),
        ("all_staff", 44),
        ('"odd ""name"', 7),
        ("other.more", 8),
        ("more", 8),
        ("short", 9),
    ],
)
def test_tables_of_a_connection_have_names(connection, name, value):
    assert dpq.median(dpq.Table.of(name, connection)["pay"], **PLACE) == pytest.approx(value, abs=1)


def test_names_are_those_of_tables_alone(connection):
    """DuckDB would take a variable of Python, too, of whoever calls it."""
    source = staf = duckdb.sql("select 1 as pay")  # noqa: F841
    for name in ("staf", "source", "connection", "other.staff"):
        rule = "source must be a query, or the name of one of the tables of its connection"
        with pytest.raises(ValueError, match=rf"{rule} \(.*staff.*got '{name}'"):
            dpq.Table.of(name, connection)
    with pytest.raises(ValueError, match="did you mean 'staff'"):
        dpq.Table.of("staf", connection)


def test_names_and_queries_of_ibis(tmp_path, checked):
    ibis = pytest.importorskip("ibis", reason="ibis (extra `sql`) is missing")
    with sqlite3.connect(tmp_path / "staff.db") as made:
        made.execute("create table staff (pay real)")
        made.executemany("insert into staff values (?)", [(float(j % 90),) for j in range(900)])
        made.execute("create view few as select pay from staff limit 5")
    connection = ibis.sqlite.connect(tmp_path / "staff.db")
    for source in ("staff", "select pay from staff"):
        assert dpq.count(dpq.Table.of(source, connection)["pay"], epsilon=1e6) == 900
    for source in ("few", "select * from few", "select pay from staff limit 5"):
        with pytest.raises(ValueError, match="each row of which comes from one record, got limit"):
            dpq.Table.of(source, connection)
    with pytest.raises(ValueError, match=r"tables of its connection \(few, staff; did you mean"):
        dpq.Table.of("staf", connection)
