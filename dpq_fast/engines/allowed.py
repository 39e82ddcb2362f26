"""What a query in SQL may do: each of its rows depends on one record, and a record has one row.

Then neighbors stay neighbors. A text says a part of that: what it is seen to break is refused, by
sqlglot, where that is installed; the rest is the user's promise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

# A name of a table, of up to three parts, some of them in quotes.
NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
TABLE_NAME = re.compile(rf"\s*{NAME}(?:\.{NAME}){{0,2}}\s*")
RULE = "source must be a query each row of which comes from one record"
# What sqlglot calls clauses and functions that break the rule, and what is said of them. Not all of
# its versions have all of them.
CLAUSES = {
    "Limit": "limit",
    "Fetch": "fetch first",
    "Offset": "offset",
    "Distinct": "distinct",
    "Group": "group by",
    "Having": "having",
    "Window": "a window function",
    "Qualify": "qualify",
    "AggFunc": "an aggregate",
    "TableSample": "a sample",
    "Pivot": "pivot or unpivot",
    "Unnest": "unnest",
    "Explode": "unnest",
    "Posexplode": "unnest",
    "Lateral": "lateral",
    "ExplodingGenerateSeries": "a series",
    "Intersect": "intersect",
    "Except": "except",
    "Rand": "random numbers",
    "Randn": "random numbers",
    "Uuid": "random numbers",
    "CurrentTimestamp": "the current time",
    "CurrentTime": "the current time",
    "CurrentDate": "the current time",
    "CurrentDatetime": "the current time",
}
# Functions that are not the same in every pass.
VOLATILE = {
    **dict.fromkeys(
        ("random", "rand", "randn", "setseed", "random_normal", "gen_random_uuid", "uuid", "newid"),
        "random numbers",
    ),
    **dict.fromkeys(
        (
            *("now", "today", "clock_timestamp", "statement_timestamp", "transaction_timestamp"),
            *("timeofday", "get_current_timestamp", "get_current_time", "sysdate"),
        ),
        "the current time",
    ),
    **dict.fromkeys(("nextval", "currval", "lastval"), "a sequence"),
}


def is_table_name(text: str) -> bool:
    """Whether a text is the name of a table, and no query."""
    return TABLE_NAME.fullmatch(text) is not None


def parts_of(name: str) -> list[str]:
    """The parts of the name of a table, without quotes."""
    return [
        part[1:-1].replace('""', '"') if part.startswith('"') else part
        for part in re.findall(NAME, name)
    ]


def check_query(text: str, dialect: str, view_of: Callable[[str], str | None]) -> None:
    """Refuse a query that is seen to break the rule; without sqlglot nothing is seen.

    Parameters
    ----------
    text : str
    dialect : str
        What sqlglot calls the data base's SQL.
    view_of : callable
        The text of the view of a name; None for what is none, or has no text.
    """
    try:
        import sqlglot
    except ModuleNotFoundError:
        return
    seen: dict[str, int] = {}
    for what in _broken(sqlglot, text, dialect, view_of, seen, set()):
        raise ValueError(f"{RULE}, got {what}")
    for name, times in seen.items():
        if times > 1:
            raise ValueError(f"{RULE}, got {name} {times} times")


def _broken(
    sqlglot: Any,
    text: str,
    dialect: str,
    view_of: Callable[[str], str | None],
    seen: dict[str, int],
    views: set[str],
) -> Iterator[str]:
    """What breaks the rule in a query and in the views that it reads; counts its tables."""
    try:
        query = sqlglot.parse_one(text, dialect=dialect)
    except (sqlglot.errors.SqlglotError, ValueError, RecursionError):  # what it does not know
        return
    exp = sqlglot.exp
    if isinstance(query, exp.Create):
        query = query.expression
    kinds = {getattr(exp, kind): said for kind, said in CLAUSES.items() if hasattr(exp, kind)}
    own = {each.alias_or_name.lower() for each in query.find_all(exp.CTE)}
    for part in query.walk():
        of_a_row = isinstance(part, (exp.Max, exp.Min)) and part.expressions  # of SQLite
        for kind, said in kinds.items():
            if isinstance(part, kind) and not of_a_row:
                yield said
        if isinstance(part, exp.Anonymous) and part.name.lower() in VOLATILE:
            yield VOLATILE[part.name.lower()]
        if isinstance(part, exp.Union) and part.args.get("distinct"):
            yield "union without all"
        if isinstance(part, exp.With) and part.args.get("recursive"):
            yield "a recursive query"
        if isinstance(part, exp.Join) and not _is_lookup(exp, part):
            yield "a join without an equality"
        if isinstance(part, exp.Table):
            name = ".".join(each.name for each in part.parts) or part.sql(dialect)
            seen[name.lower()] = seen.get(name.lower(), 0) + 1
            view = None if name.lower() in own else view_of(part.name)
            # one of the name of a table in another schema, which it shows, is not within itself
            if view is not None and view not in views:
                yield from (
                    f"{said} in the view {name}"
                    for said in _broken(sqlglot, view, dialect, view_of, seen, views | {view})
                )


def _is_lookup(exp: Any, join: Any) -> bool:
    """Whether a join compares columns of both sides, as one with a table of unique keys does."""
    if join.args.get("using") or str(join.args.get("method")).upper() == "NATURAL":
        return True
    if str(join.args.get("method")).upper() == "ASOF":  # of a row at most one other
        return True
    on = join.args.get("on")
    conditions = [] if on is None else on.flatten() if isinstance(on, exp.And) else [on]
    return any(
        isinstance(each.unnest(), exp.EQ)
        and isinstance(each.unnest().left, exp.Column)
        and isinstance(each.unnest().right, exp.Column)
        for each in conditions
    )
