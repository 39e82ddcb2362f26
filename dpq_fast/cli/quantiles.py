"""`dpq-fast quantile` and `dpq-fast cdf`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import dpq_fast as dpq
from dpq_fast.cli import options
from dpq_fast.cli.calls import (
    Call,
    Release,
    drawn_keys,
    drawn_values,
    interval_data,
    interval_words,
    listed,
    names_in_json,
    parts_of,
)
from dpq_fast.cli.options import Form, Grouping, Intervals, Privacy
from dpq_fast.cli.output import Answer, spelled
from dpq_fast.mechanisms.quantile import choose_method, value_epsilon
from dpq_fast.mechanisms.quantile_by import method_of
from dpq_fast.mechanisms.registry import MECHANISMS, METHODS
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.quantile_by import IND_EXP, JOINT_EXP

UNBOUNDED = "unbounded_quantile"
CDF_METHODS = ("auto", "agg_tree", "binary_tree", "histogram", "adaptive", "gaussian")
# Levels of the table of a distribution function.
STEPS = 20


@click.command(cls=options.Command, epilog=options.TERMS)
@options.FILE
@options.TABLE
@options.COLUMN
@options.LEVELS
@options.BOUNDS(
    help="Range of the answers, chosen without looking at the data. Only unbounded_quantile, which "
    "auto then takes, does without."
)
@options.LOWER
@options.UPPER
@options.RESOLUTION
@options.with_privacy
@options.option(
    options.MECHANISM,
    "--method",
    type=click.Choice(
        [name for name in METHODS if name == "auto" or "epsilon" in MECHANISMS[name].budgets]
    ),
    default="auto",
    show_default=True,
    help="auto chooses by public facts alone.",
)
@options.option(
    options.MECHANISM,
    "--dither/--no-dither",
    default=None,
    help="Spread tied records before the release. Default: on.",
)
@options.PRIOR
@options.EXPECTED_N
@options.with_intervals
@options.with_groups
@options.with_output
def quantile(
    file: Path,
    table: str | None,
    column: str,
    levels: tuple[list[float], ...],
    bounds: tuple[float, float] | None,
    lower: float | str | None,
    upper: float | str | None,
    resolution: float | None,
    privacy: Privacy,
    method: str,
    dither: bool | None,
    prior: str | None,
    expected_n: int | None,
    intervals: Intervals,
    grouping: Grouping,
    form: Form,
) -> None:
    r"""Private quantiles of one column of FILE: .csv, .parquet, .duckdb, or - for a pipe of CSV.

    For example:
      dpq-fast quantile staff.csv --column age --q 0.25,0.5,0.75 \
        --epsilon 1 --bounds 0 120 --resolution 1
      dpq-fast quantile staff.csv --column pay --q 0.5 --epsilon 1 \
        --bounds 0 500000 --by town --groups Aston,Barnet --confidence 0.95

    The names of the columns are public. The first line of a CSV file that is not empty holds them.
    Every line after it is one record, whatever it holds: quotes may hide separators in a line, but
    never the end of it (a line feed, or carriage return and line feed). A record counts as missing,
    and is left out, if its field is no number or if it has not as many fields as there are names.
    Groups in CSV are texts as they are written, without the blanks around them.
    """
    q = options.flat(levels)
    ends = options.ends_of(lower, upper)
    if bounds is None and method in ("auto", UNBOUNDED):
        ends = {"lower": 0.0, "upper": None} | ends
        method = UNBOUNDED
    elif ends:
        raise click.UsageError("--lower and --upper are for unbounded_quantile without --bounds")
    by_group = len(grouping.by) > 0
    plain = "groups and several levels" if by_group and len(q) > 1 else ""
    command = Release("quantile", file, table, [column], privacy, form, grouping, plain)
    place = dict(bounds=bounds, resolution=resolution, dither=dither, prior=prior)
    chosen = method

    def release(call: Call) -> Any:
        nonlocal chosen
        asked = dict(**call.public, **place, **ends, **intervals._asdict())
        x = call.table[column]
        m = Levels(q).m
        if by_group:
            given = None if method == "auto" else method
            chosen = method_of(given, dither, call.public["accountant"]) or (
                IND_EXP if m == 1 else JOINT_EXP
            )
            if expected_n is not None:
                asked["expected_n"] = expected_n
            asked |= call.grouped(privacy, grouping.public_by)
            return dpq.quantile_by(x, q=q, method=given, **asked)
        rows = call.rows if expected_n is None else expected_n
        if rows is not None:
            asked["expected_n"] = rows
        chosen = _chosen(q, method, place, call.public, intervals, rows)
        return dpq.quantile(x, q, method=method, delta=privacy.delta, **asked)

    answer, guarantee = command.release(release)
    parts = parts_of(answer)
    data: dict[str, Any] = {
        "method": chosen,
        **command.data(guarantee),
        "bounds": bounds and list(bounds),
        **ends,
        "resolution": resolution,
        **({} if prior is None else {"prior": prior}),
        "q": q,
    }
    if bounds is None:
        known = [f"{name} {spelled(end)}" for name, end in ends.items()]
    else:
        known = [f"bounds [{spelled(bounds[0])}, {spelled(bounds[1])}]"]
    if prior is not None:
        known.append(f"prior {prior}")
    known += interval_words(intervals)
    if chosen != UNBOUNDED:
        known.append("resolution " + ("default" if resolution is None else spelled(resolution)))
    keys: dict[str, list[Any]] = {}
    if by_group:
        found = answer.groups.tolist()
        groups = command.of_groups(found)
        keys = {name: [cell for cell in cells for _ in q] for name, cells in groups.items()}
        data |= {"by": command.groups.by, "groups": listed(groups)}
    data |= names_in_json(parts, "values") | interval_data(intervals)
    flat = {name: part.ravel().tolist() for name, part in parts.items()}
    times = len(flat["value"]) // len(q)
    columns = keys | {"q": q * times} | flat
    ends_shown = [name for name in flat if name != "value"]

    def draw(ax: Any) -> Any:
        if not by_group:
            return dpq.plots.quantiles(q, answer, ax)
        return dpq.plots.groups(drawn_keys(groups), drawn_values(answer), ax)

    command.write(
        Answer(
            title=f"Private quantiles of {column}",
            headings=[*keys, "level", "private value", *ends_shown],
            rows=list(zip(*columns.values(), strict=True)),
            notes=command.facts(guarantee, [f"method {chosen}", *known]),
            data=data,
            columns=columns,
            draw=draw,
            texts=len(keys),
        )
    )


def _chosen(
    q: list[float],
    method: str,
    place: dict[str, Any],
    public: dict[str, Any],
    intervals: Intervals,
    rows: int | None,
) -> str:
    """The method behind "auto"."""
    person: dict[str, Any] = dict(
        neighbors=public["neighbors"], max_contributions=public["max_contributions"]
    )
    request = Request.of(intervals.confidence, intervals.covers)
    left = value_epsilon(public["epsilon"], request, Levels.of(q), expected_n=rows, **person)
    return choose_method(None, q, epsilon=left, method=method, expected_n=rows, **place, **person)


@click.command(cls=options.Command, epilog=options.TERMS)
@options.FILE
@options.TABLE
@options.COLUMN
@options.BOUNDS(required=True, help="Range of the answers, chosen without looking at the data.")
@options.RESOLUTION
@options.with_privacy
@options.option(
    options.MECHANISM,
    "--method",
    type=click.Choice(CDF_METHODS),
    default="auto",
    show_default=True,
    help="gaussian needs a --delta.",
)
@options.PRIOR
@options.EXPECTED_N
@options.with_output
def cdf(
    file: Path,
    table: str | None,
    column: str,
    bounds: tuple[float, float],
    resolution: float | None,
    privacy: Privacy,
    method: str,
    prior: str | None,
    expected_n: int | None,
    form: Form,
) -> None:
    r"""A private distribution function of one column of FILE, from which all shares can be read.

    For example:
      dpq-fast cdf staff.csv --column age --epsilon 1 --bounds 0 120 \
        --resolution 1 --output ages.png --output ages.csv

    The table shows a few of its quantiles; JSON and CSV hold all points: the share of the records
    that are at most x. FILE is as for quantile.
    """
    command = Release("cdf", file, table, [column], privacy, form)

    def release(call: Call) -> dpq.CDF:
        asked = dict(**call.public, bounds=bounds, resolution=resolution, prior=prior)
        rows = call.rows if expected_n is None else expected_n
        if rows is not None:
            asked["expected_n"] = rows
        return dpq.cdf(call.table[column], method=method, delta=privacy.delta, **asked)

    curve, guarantee = command.release(release)
    data = command.data(guarantee) | {
        "method": method,
        "bounds": list(bounds),
        "resolution": resolution,
        "total": curve.total,
    }
    known = [
        f"method {method}",
        f"bounds [{spelled(bounds[0])}, {spelled(bounds[1])}]",
        "resolution " + ("default" if resolution is None else spelled(resolution)),
    ]
    notes = command.facts(guarantee, known)
    if method != "gaussian":
        within = curve.accuracy(0.05)
        data["accuracy"] = {"beta": 0.05, "records": within}
        notes += f"\nin 95% of releases the records in any interval are off by at most {within:g}"
    columns = {"x": curve.x.tolist(), "p": curve.p.tolist()}
    levels = [j / STEPS for j in range(1, STEPS)]
    values = curve.quantile(levels).tolist()
    command.write(
        Answer(
            title=f"Private distribution function of {column}",
            headings=["share", "private value"],
            rows=list(zip(levels, values, strict=True)),
            notes=notes,
            data=data | columns,
            columns=columns,
            draw=lambda ax: dpq.plots.cdf(curve, ax),
        )
    )
