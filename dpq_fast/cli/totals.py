"""`dpq-fast sum`, `mean`, `count` and `describe`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

import dpq_fast as dpq
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
from dpq_fast.cli.output import Answer, spelled
from dpq_fast.cli.parameters import Bounded, BoundedColumn, Numbers

NO_CLIP = "one number without groups"
QUARTILES = ([0.25, 0.5, 0.75],)


def _released(
    command: Release,
    functions: tuple[Callable[..., Any], Callable[..., Any]],
    column: str,
    privacy: Privacy,
    grouping: Grouping,
    intervals: Intervals,
    given: dict[str, Any],
    known: list[str],
    facts: dict[str, Any],
) -> None:
    """Release one number, or one for each group, and print it."""
    whole, by_group = functions
    if privacy.delta and not command.groups.by:
        raise click.UsageError(f"--delta must be 0 without --by, got {spelled(privacy.delta)}")

    def release(call: Call) -> Any:
        asked = call.public | given | intervals._asdict()
        x = call.table[column]
        if call.by is None:
            return whole(x, **asked)
        return by_group(x, **call.grouped(privacy, grouping.public_by), **asked)

    answer, guarantee = command.release(release)
    parts = parts_of(answer)
    keys: dict[str, list[Any]] = {}
    data = command.data(guarantee) | facts
    if command.groups.by:
        keys = command.of_groups(answer.groups.tolist())
        data |= {"by": command.groups.by, "groups": listed(keys)}
    data |= names_in_json(parts, "values" if keys else "value") | interval_data(intervals)
    columns = keys | {name: cells(part) for name, part in parts.items()}
    ends = [name for name in parts if name != "value"]
    counts = command.counts(len(columns["value"]))
    table = columns | (counts if keys else {})

    command.write(
        Answer(
            title=f"Private {whole.__name__} of {column}",
            headings=[*keys, "private value", *ends, *(counts if keys else [])],
            rows=list(zip(*table.values(), strict=True)),
            notes=command.facts(guarantee, [*known, *interval_words(intervals)]),
            data=data,
            columns=columns | counts,
            draw=lambda ax: dpq.plots.groups(drawn_keys(keys), drawn_values(answer), ax),
            texts=len(keys),
        )
    )


def _clipped(name: str, help_text: str) -> click.Command:
    """The command for a sum or a mean."""

    @click.command(name, cls=options.Command, epilog=options.TERMS, help=help_text)
    @options.with_origin
    @options.COLUMN
    @options.BOUNDS(
        help="The range that records are clamped to, chosen without looking at them. Without it a "
        "part of epsilon goes into finding one."
    )
    @options.LOWER
    @options.UPPER
    @options.RESOLUTION(
        help="Records count as the nearest multiple of G. Default: a small power of two."
    )
    @options.with_privacy
    @options.COUNT
    @options.EXPECTED_N
    @options.with_intervals
    @options.with_groups
    @options.with_output
    def command(
        origin: Origin,
        column: str,
        bounds: tuple[Any, Any] | None,
        lower: Any,
        upper: Any,
        resolution: Any,
        privacy: Privacy,
        with_count: bool,
        expected_n: int | None,
        intervals: Intervals,
        grouping: Grouping,
        form: Form,
    ) -> None:
        ends = options.ends_of(lower, upper)
        if bounds is None:
            ends = {"lower": 0.0, "upper": None} | ends
            clip: dict[str, Any] = dict(ends)
            known = [f"clip private, {', '.join(f'{at} {shown(x)}' for at, x in ends.items())}"]
        elif ends:
            raise click.UsageError("--lower and --upper must be left out with --bounds")
        else:
            clip = dict(q=None, lower=bounds[0], upper=bounds[1])
            known = [f"bounds [{shown(bounds[0])}, {shown(bounds[1])}]"]
        without = "" if grouping.by else NO_CLIP
        place = clip | dict(resolution=resolution)
        run = Release(
            *(name, origin, {column: place}, privacy, form, grouping, without, with_count)
        )
        functions = {"sum": (dpq.sum, dpq.sum_by), "mean": (dpq.mean, dpq.mean_by)}[name]
        clip |= dict(resolution=resolution, expected_n=expected_n)
        facts = {
            "bounds": bounds and plain(bounds),
            **{end: plain(value) for end, value in ends.items()},
            "resolution": plain(resolution),
        }
        _released(run, functions, column, privacy, grouping, intervals, clip, known, facts)

    return command


sum_ = _clipped(
    "sum",
    """A private sum of one column of FILE.

    For example:
      dpq-fast sum staff.csv --column pay --epsilon 1 --bounds 0 500000
      dpq-fast sum staff.csv --column pay --epsilon 1 --by town \\
        --groups Aston,Barnet

    FILE is as for quantile. An interval is for the sum of the records as they are clamped.
    """,
)
mean = _clipped(
    "mean",
    """A private mean of one column of FILE.

    For example:
      dpq-fast mean staff.csv --column pay --epsilon 1 --bounds 0 500000 \\
        --confidence 0.95

    FILE is as for quantile. The mean is that of the records as they are clamped.
    """,
)


@click.command(cls=options.Command, epilog=options.TERMS)
@options.with_origin
@options.COLUMN
@options.with_privacy
@options.with_intervals
@options.with_groups
@options.with_output
def count(
    origin: Origin,
    column: str,
    privacy: Privacy,
    intervals: Intervals,
    grouping: Grouping,
    form: Form,
) -> None:
    """A private number of the records of FILE that have a number or a time in one column.

    For example:
      dpq-fast count staff.csv --column pay --epsilon 1
      dpq-fast count staff.csv --column pay --epsilon 1 --by town --delta 1e-6

    FILE is as for quantile. Of all files columns of times count, too: in CSV what is neither a
    number nor a time (2026-01-31) counts as missing.
    """
    without = "" if grouping.by else NO_CLIP
    run = Release("count", origin, {column: None}, privacy, form, grouping, without)
    functions = (dpq.count, dpq.count_by)
    _released(run, functions, column, privacy, grouping, intervals, {}, [], {})


@click.command(cls=options.Command, epilog=options.TERMS)
@options.with_origin
@options.option(
    options.RELEASE,
    "--column",
    "columns",
    type=BoundedColumn(),
    multiple=True,
    required=True,
    help="A column, its bounds and, if answers are to be multiples of G, its resolution. "
    "May be repeated.",
)
@options.option(
    options.RELEASE,
    "--q",
    "levels",
    type=Numbers("q"),
    multiple=True,
    help="Levels of the quantiles.  [default: 0.25,0.5,0.75]",
)
@options.with_privacy
@options.PRIOR
@options.EXPECTED_N
@options.with_intervals
@options.with_groups
@options.with_output
def describe(
    origin: Origin,
    columns: tuple[Bounded, ...],
    levels: tuple[list[float], ...],
    privacy: Privacy,
    prior: str | None,
    expected_n: int | None,
    intervals: Intervals,
    grouping: Grouping,
    form: Form,
) -> None:
    r"""Private count, mean and quantiles of several columns of FILE, under one budget.

    For example:
      dpq-fast describe staff.csv --column age:0:120:1 --column pay:0:500000 \
        --epsilon 2

    Each column has an equal part of epsilon. FILE is as for quantile.
    """
    q = options.flat(levels or QUARTILES)
    names = [each.name for each in columns]
    if len(set(names)) < len(names):
        raise click.UsageError(f"--column must name each column once, got {', '.join(names)}")
    places = {each.name: dict(bounds=each.bounds, resolution=each.resolution) for each in columns}
    run = Release("describe", origin, places, privacy, form, grouping, "a description")

    def release(call: Call) -> Any:
        rows = call.rows if expected_n is None and call.by is None else expected_n
        asked = call.public | intervals._asdict()
        if call.by is not None:
            asked |= dict(groups=call.groups, public_by=grouping.public_by)
        return dpq.describe(
            call.table,
            bounds={each.name: each.bounds for each in columns},
            resolution={each.name: each.resolution for each in columns},
            q=q,
            by=run.groups.by or None,
            delta=privacy.delta,
            prior=prior,
            expected_n=rows,
            **asked,
        )

    frame, guarantee = run.release(release)
    found = _cells(frame)
    known = [f"{each.name} in [{', '.join(map(shown, each.bounds))}]" for each in columns]
    run.write(
        Answer(
            title=f"Private description of {', '.join(names)}",
            headings=list(found),
            rows=list(zip(*found.values(), strict=True)),
            notes=run.facts(guarantee, [*known, *interval_words(intervals)]),
            data=run.data(guarantee)
            | {
                "bounds": {each.name: plain(each.bounds) for each in columns},
                "resolution": {each.name: plain(each.resolution) for each in columns},
                "q": q,
                **interval_data(intervals),
                "rows": [
                    dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)
                ],
            },
            columns=found,
            texts=1 + len(run.groups.by),
        )
    )


def _cells(frame: Any) -> dict[str, list[Any]]:
    """The columns of a frame of pandas or pyarrow."""
    columns = frame.to_dict("list") if hasattr(frame, "to_dict") else frame.to_pydict()
    return {name: [plain(cell) for cell in column] for name, column in columns.items()}
