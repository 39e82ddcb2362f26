"""`dpq-fast quantile`, `dpq-fast median` and `dpq-fast cdf`."""

from __future__ import annotations

from typing import Any

import click

import dpq_fast as dpq
from dpq_fast._prepared import Prepared
from dpq_fast.cli import options
from dpq_fast.cli.calls import (
    Call,
    Release,
    cells,
    drawn_keys,
    drawn_values,
    interval_data,
    interval_words,
    listed,
    names_in_json,
    parts_of,
    plain,
    shown,
)
from dpq_fast.cli.options import Form, Grouping, Intervals, Origin, Privacy
from dpq_fast.cli.output import Answer
from dpq_fast.data.units import Time, in_unit, placed
from dpq_fast.mechanisms.quantile import choose_method
from dpq_fast.privacy.choice import value_epsilon
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels

UNBOUNDED = "unbounded_quantile"
MEDIAN = "median"
CDF_METHODS = (
    "auto",
    "two_stage",
    "agg_tree",
    "binary_tree",
    "histogram",
    "adaptive",
    "gaussian",
)
# Levels of the table of a distribution function.
STEPS = 20


def _quantiles(name: str, help_text: str) -> click.Command:
    """The command for quantiles, or for the median, which has no levels."""

    def unchanged(function: options.Function) -> options.Function:
        return function

    @click.command(name, cls=options.Command, epilog=options.TERMS, help=help_text)
    @options.with_origin
    @options.COLUMN
    @(unchanged if name == MEDIAN else options.LEVELS)
    @options.BOUNDS(
        help="Range of the answers, chosen without looking at the data. Only unbounded_quantile, "
        "which auto then takes, does without."
    )
    @options.LOWER
    @options.UPPER
    @options.RESOLUTION()
    @options.with_privacy
    @options.COUNT
    @options.option(
        options.MECHANISM,
        "--method",
        type=click.Choice(options.OFFERED),
        default="auto",
        show_default=True,
        metavar="NAME",
        help=f"One of {', '.join(options.OFFERED)}. auto chooses by public facts alone.",
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
    def command(levels: tuple[list[float], ...] = ([0.5],), **given: Any) -> None:
        _release(name, options.flat(levels), **given)

    return command


def _release(
    name: str,
    q: list[float],
    origin: Origin,
    column: str,
    bounds: tuple[Any, Any] | None,
    lower: Any,
    upper: Any,
    resolution: Any,
    privacy: Privacy,
    with_count: bool,
    method: str,
    dither: bool | None,
    prior: str | None,
    expected_n: int | None,
    intervals: Intervals,
    grouping: Grouping,
    form: Form,
) -> None:
    """Release quantiles, and print them."""
    ends = options.ends_of(lower, upper)
    if bounds is None and method in ("auto", UNBOUNDED):
        if not ends:
            ends = {"lower": 0.0, "upper": None}
        ends = {"lower": None if _are_times(ends) else 0.0, "upper": None} | ends
        method = UNBOUNDED
    elif ends:
        raise click.UsageError("--lower and --upper are for unbounded_quantile without --bounds")
    by_group = len(grouping.by) > 0
    why_plain = "groups and several levels" if by_group and len(q) > 1 else ""
    place = dict(bounds=bounds, resolution=resolution, dither=dither, prior=prior)
    command = Release(
        *(name, origin, {column: place | ends}, privacy, form, grouping, why_plain, with_count),
        takes_rho=True,
    )
    chosen = method

    def release(call: Call) -> Any:
        nonlocal chosen
        asked = call.public | call.budget | place | ends | intervals._asdict()
        x = call.table[column]
        if by_group:
            given = None if method == "auto" else method
            if expected_n is not None:
                asked["expected_n"] = expected_n
            asked |= call.grouped(privacy, grouping.public_by)
            made = Prepared.of(dpq.quantile_by, x, q=q, method=given, **asked)
            spent: Any = made.spent
            chosen = getattr(spent, "release", spent).method
            return made.run(asked["accountant"], asked["rng"])
        rows = call.rows if expected_n is None else expected_n
        if rows is not None:
            asked["expected_n"] = rows
        chosen = _chosen(q, method, place, call, intervals, rows, privacy.most)
        return dpq.quantile(x, q, method=method, delta=privacy.delta, **asked)

    answer, guarantee = command.release(release)
    parts = parts_of(answer)
    data: dict[str, Any] = {
        "method": chosen,
        **command.data(guarantee),
        "bounds": bounds and plain(bounds),
        **{end: plain(value) for end, value in ends.items()},
        "resolution": plain(resolution),
        **({} if prior is None else {"prior": prior}),
        "q": q,
    }
    if bounds is None:
        known = [f"{end} {shown(value)}" for end, value in ends.items()]
    else:
        known = [f"bounds [{shown(bounds[0])}, {shown(bounds[1])}]"]
    if prior is not None:
        known.append(f"prior {prior}")
    known += interval_words(intervals)
    if chosen != UNBOUNDED:
        known.append("resolution " + ("default" if resolution is None else shown(resolution)))
    keys: dict[str, list[Any]] = {}
    if by_group:
        found = answer.groups.tolist()
        groups = command.of_groups(found)
        keys = {key: [cell for cell in cells for _ in q] for key, cells in groups.items()}
        data |= {"by": command.groups.by, "groups": listed(groups)}
    data |= names_in_json(parts, "values") | interval_data(intervals)
    flat = {part: cells(numbers) for part, numbers in parts.items()}
    rows = len(flat["value"])
    columns = keys | {"q": q * (rows // len(q))} | flat
    ends_shown = [part for part in flat if part != "value"]
    counts = command.counts(rows)

    def draw(ax: Any) -> Any:
        if not by_group:
            return dpq.plots.quantiles(q, answer, ax)
        return dpq.plots.groups(drawn_keys(groups), drawn_values(answer), ax)

    table = columns | (counts if by_group else {})
    command.write(
        Answer(
            title=f"Private {'median' if name == MEDIAN else 'quantiles'} of {column}",
            headings=[*keys, "level", "private value", *ends_shown, *(counts if by_group else [])],
            rows=list(zip(*table.values(), strict=True)),
            notes=command.facts(guarantee, [f"method {chosen}", *known]),
            data=data,
            columns=columns | counts,
            draw=draw,
            texts=len(keys),
        )
    )


def _are_times(ends: dict[str, Any]) -> bool:
    """Whether ends that were given are times, among which 0 is none."""
    return any(Time.of(end) is not None for end in ends.values())


quantile = _quantiles(
    "quantile",
    """Private quantiles of one column of FILE.

    For example:
      dpq-fast quantile staff.csv --column age --q 0.25,0.5,0.75 \\
        --epsilon 1 --bounds 0 120 --resolution 1
      dpq-fast quantile staff.csv --column pay --q 0.5 --epsilon 1 \\
        --bounds 0 500000 --by town --groups Aston,Barnet --confidence 0.95

    FILE is .csv, .tsv, .parquet, .feather or .duckdb, a folder of one of them, or - for a pipe of
    CSV; .csv and .tsv may be compressed (.gz, .bz2, .zst, .zip). With --bounds that are times
    (2026-01-31, 2026-01-31T12:00) the column is one of times.

    The names of the columns are public. The first line of a CSV file that is not empty holds them.
    Every line after it is one record, whatever it holds: quotes may hide separators in a line, but
    never the end of it (a line feed, or carriage return and line feed). A record counts as missing,
    and is left out, if its field is no number or if it has not as many fields as there are names.
    Groups in CSV are texts as they are written, without the blanks around them.
    """,
)
median = _quantiles(
    MEDIAN,
    """A private median of one column of FILE.

    For example:
      dpq-fast median staff.csv --column age --epsilon 1 --bounds 0 120 \\
        --with-count
      dpq-fast median staff.csv --column pay --epsilon 1 --bounds 0 500000 \\
        --by town --groups Aston,Barnet

    The same as quantile with --q 0.5. FILE is as for quantile.
    """,
)


def _chosen(
    q: list[float],
    method: str,
    place: dict[str, Any],
    call: Call,
    intervals: Intervals,
    rows: int | None,
    most: int,
) -> str:
    """The method behind "auto"; a person has at most so many records, or parts of one."""
    person: dict[str, Any] = dict(neighbors=call.public["neighbors"], max_contributions=most)
    if rows is not None and "privacy_unit" in call.public:
        rows *= most
    request = Request.of(intervals.confidence, intervals.covers)
    epsilon, levels = call.budget["epsilon"], Levels.of(q)
    left = value_epsilon(epsilon, request, levels, expected_n=rows, **person)
    numbers = placed((), **place)[2]
    return choose_method(
        None,
        q,
        epsilon=left,
        rho=call.budget["rho"],
        method=method,
        expected_n=rows,
        **numbers,
        **person,
    )


@click.command(cls=options.Command, epilog=options.TERMS)
@options.with_origin
@options.COLUMN
@options.BOUNDS(required=True, help="Range of the answers, chosen without looking at the data.")
@options.RESOLUTION()
@options.with_privacy
@options.COUNT
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
    origin: Origin,
    column: str,
    bounds: tuple[Any, Any],
    resolution: Any,
    privacy: Privacy,
    with_count: bool,
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
    place = dict(bounds=bounds, resolution=resolution, prior=prior)
    command = Release(
        "cdf", origin, {column: place}, privacy, form, with_count=with_count, takes_rho=True
    )

    def release(call: Call) -> dpq.CDF:
        asked = call.public | call.budget | place
        rows = call.rows if expected_n is None else expected_n
        if rows is not None:
            asked["expected_n"] = rows
        return dpq.cdf(call.table[column], method=method, delta=privacy.delta, **asked)

    curve, guarantee = command.release(release)
    data = command.data(guarantee) | {
        "method": method,
        "bounds": plain(bounds),
        "resolution": plain(resolution),
        "total": curve.total,
    }
    known = [
        f"method {method}",
        f"bounds [{shown(bounds[0])}, {shown(bounds[1])}]",
        "resolution " + ("default" if resolution is None else shown(resolution)),
    ]
    notes = command.facts(guarantee, known)
    if method != "gaussian":
        within = curve.accuracy(0.05)
        data["accuracy"] = {"beta": 0.05, "records": within}
        notes += f"\nin 95% of releases the records in any interval are off by at most {within:g}"
    columns = {"x": cells(in_unit(curve.unit, curve.x)), "p": cells(curve.p)}
    levels = [j / STEPS for j in range(1, STEPS)]
    values = cells(curve.quantile(levels))
    command.write(
        Answer(
            title=f"Private distribution function of {column}",
            headings=["share", "private value"],
            rows=list(zip(levels, values, strict=True)),
            notes=notes,
            data=data | columns,
            columns=columns | command.counts(len(columns["x"])),
            draw=lambda ax: dpq.plots.cdf(curve, ax),
        )
    )
