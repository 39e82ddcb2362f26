"""The command `dpq-fast`: files and options in, a private answer out.

A thin coat over `dpq_fast.quantile` and `dpq_fast.plan`. Nothing printed depends on the data except
the values of the release; the one exception is `demo`, whose column is generated and holds nobody's
record.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

try:
    import click
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.parquet
    from rich.console import Console
    from rich.table import Table
except ModuleNotFoundError as missing:
    package = str(missing.name).partition(".")[0]
    print(f"dpq-fast needs {package}: pip install 'dpq_fast[cli]'", file=sys.stderr)
    raise SystemExit(2) from None

import dpq_fast as dpq
from dpq_fast.mechanisms.quantile import choose_method, expected_rows, value_epsilon
from dpq_fast.mechanisms.registry import MECHANISMS, METHODS
from dpq_fast.planning import METHODS as PLANNED
from dpq_fast.planning import SUMMARIES, UNITS
from dpq_fast.privacy.intervals import KINDS, SAMPLE, Request
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import RELATIONS

# The demo's column is public: one fixed seed, the same payroll on every machine.
PAYROLL_SEED = 20_240_131
PAYROLL_SIZE = 20_000
PAYROLL_BOUNDS = (0.0, 500_000.0)  # dollars a year
PAYROLL_RESOLUTION = 100.0  # dollars: the payroll is kept in hundreds
DECILES = [j / 10 for j in range(1, 10)]
# Cells of the demo's longest bar; with the other columns the table stays below 80.
BAR_CELLS = 30
# Bytes of a CSV file that are parsed at a time.
CSV_BLOCK = 1 << 20
# What a CSV field may hold to count as a number.
NUMBER = r"(?i)\A[ \t]*[-+]?(\d+\.?\d*(e[-+]?\d+)?|\.\d+(e[-+]?\d+)?|inf(inity)?)[ \t]*\z"


class Numbers(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.5
    """Numbers separated by commas."""

    name = "numbers"

    def __init__(self, what: str) -> None:
        self._what = what

    def get_metavar(self, *_: Any, **__: Any) -> str:
        letter = self._what[0].upper()
        return f"{letter}[,{letter}...]"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[float]:
        try:
            return [float(number) for number in value.split(",")]
        except ValueError:
            self.fail(
                f"{self._what} must be numbers separated by commas, got {value!r}", param, ctx
            )


class Guess(click.ParamType):  # type: ignore[type-arg]
    """A distribution: its name, and two numbers."""

    name = "guess"

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return "NAME:A,B"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        name, _, given = value.partition(":")
        try:
            first, second = map(float, given.split(","))
            return _distribution(name, first, second)
        except ValueError:
            self.fail(
                "guess must be normal:MEAN,SD, lognormal:MU,SIGMA or uniform:LOW,HIGH with a "
                f"positive SD or SIGMA, and LOW below HIGH, got {value!r}",
                param,
                ctx,
            )


def _distribution(name: str, first: float, second: float) -> Any:
    """A frozen distribution of `scipy.stats`, which is slow to load."""
    from scipy import stats

    scale = second - first if name == "uniform" else second
    if not (np.isfinite(first) and 0.0 < scale < np.inf):
        raise ValueError
    if name == "normal":
        return stats.norm(first, second)
    if name == "uniform":
        return stats.uniform(first, scale)
    if name == "lognormal":
        return stats.lognorm(second, scale=np.exp(first))
    raise ValueError


class End(click.ParamType):  # type: ignore[type-arg]
    """A number, or "none" (which stays a word: None is an option that was not given)."""

    name = "end"

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return "X|none"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        return value if value == "none" else click.FLOAT.convert(value, param, ctx)


LEVELS = click.option(
    "--q",
    "levels",
    type=Numbers("q"),
    multiple=True,
    required=True,
    help="Levels in [0, 1]; commas, repetition, or both.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dpq_fast")
def main() -> None:
    """Differentially private quantiles of one numeric column."""


@main.command()
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="Privacy budget.")
@click.option("--seed", type=int, help="Repeatable noise, for demonstrations only.")
def demo(epsilon: float, seed: int | None) -> None:
    """Private deciles of a generated payroll column, next to the true ones."""
    salaries = generated_payroll()
    private, _, _ = _released(
        salaries,
        DECILES,
        epsilon=epsilon,
        bounds=PAYROLL_BOUNDS,
        method="joint_exp",
        neighbors="swap",
        resolution=PAYROLL_RESOLUTION,
        rng=seed,
    )
    true = np.quantile(salaries, DECILES)
    error = dpq.metrics.rank_error(salaries, DECILES, private)

    console = _console()
    low, high = PAYROLL_BOUNDS
    console.print(f"Deciles of a generated payroll: {salaries.size:,} salaries, dollars a year")
    console.print(f"epsilon {epsilon:g}, delta 0, neighbors swap (one salary replaced)")
    console.print(
        f"mechanism joint_exp, bounds [{low:,.0f}, {high:,.0f}], resolution {PAYROLL_RESOLUTION:g}"
    )
    source = "fresh, cryptographic" if seed is None else f"repeatable, from seed {seed}"
    console.print(f"noise: {source}")
    both, only_true, only_private = "#'." if console.options.ascii_only else "█▀▄"
    table = Table()
    for heading in ("decile", "true", "private", "rank error"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(f"{only_true} true  {only_private} private", no_wrap=True)
    longest = max(true.max(), private.max())
    for j, level in enumerate(DECILES):
        cells = [round(BAR_CELLS * value / longest) for value in (true[j], private[j])]
        tail = only_true if cells[0] > cells[1] else only_private
        table.add_row(
            f"{level:.0%}",
            f"{true[j]:,.0f}",
            f"{private[j]:,.0f}",
            f"{error[j]:,.0f}",
            both * min(cells) + tail * (max(cells) - min(cells)),
        )
    console.print(table)
    console.print(
        f"Rank error: how many of the {salaries.size:,} records lie between the private value\n"
        "and its target rank. True values and rank errors are shown only because the\n"
        "column is generated; a release of real data prints neither."
    )


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--column", required=True, help="Name of the numeric column.")
@LEVELS
@click.option("--epsilon", type=float, required=True, help="Budget for all levels together.")
@click.option(
    "--bounds",
    type=float,
    nargs=2,
    metavar="LO HI",
    help="Range of the answers, chosen without looking at the data. Only unbounded_quantile, "
    "which auto then takes, does without.",
)
@click.option(
    "--lower",
    type=End(),
    help="Without --bounds: where the search begins; none if it goes down from --upper, or both "
    "ways.  [default: 0]",
)
@click.option(
    "--upper", type=End(), help="Without --bounds: where the search ends.  [default: none]"
)
@click.option("--delta", type=float, default=0.0, show_default=True)
@click.option(
    "--method",
    type=click.Choice(
        [name for name in METHODS if name == "auto" or "epsilon" in MECHANISMS[name].budgets]
    ),
    default="auto",
    show_default=True,
)
@click.option(
    "--neighbors",
    type=click.Choice(list(RELATIONS)),
    default="swap",
    show_default=True,
    help="What one person can change: replace a record, or add or remove one.",
)
@click.option(
    "--resolution",
    type=float,
    metavar="G",
    help="Answers are multiples of G: 1 for whole numbers. Default: a power of ten, about 10^-6 of "
    "the range of --bounds.",
)
@click.option(
    "--dither/--no-dither",
    default=None,
    help="Spread tied records before the release. Default: on.",
)
@click.option(
    "--max-contributions",
    type=int,
    default=1,
    show_default=True,
    metavar="K",
    help="Most records that one person has in the file.",
)
@click.option(
    "--prior",
    type=click.Choice(["uniform", "log"]),
    help="A public guess at the records between --bounds.  [default: uniform]",
)
@click.option(
    "--confidence",
    type=float,
    metavar="P",
    help="Add intervals that cover with this probability; the budget stays the same.",
)
@click.option(
    "--covers",
    type=click.Choice(KINDS),
    default=SAMPLE,
    show_default=True,
    help="What intervals are for: these records, or the population they are drawn from.",
)
@click.option("--seed", type=int, help="Repeatable noise, for experiments only: not private.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def quantile(
    file: Path,
    column: str,
    levels: tuple[list[float], ...],
    epsilon: float,
    bounds: tuple[float, float] | None,
    lower: float | str | None,
    upper: float | str | None,
    delta: float,
    method: str,
    neighbors: str,
    resolution: float | None,
    dither: bool | None,
    max_contributions: int,
    prior: str | None,
    confidence: float | None,
    covers: str,
    seed: int | None,
    as_json: bool,
) -> None:
    """Private quantiles of one column of FILE, a .csv or .parquet file.

    The names of the columns are public. The first line of a CSV file that is not empty holds
    them. Every line after it is one record, whatever it holds: quotes may hide separators in a
    line, but never the end of it (a line feed, or carriage return and line feed). The column is
    read as float64. A record counts as missing, and is left out, if its field is no number or if
    it has not as many fields as there are names.
    """
    q = [level for group in levels for level in group]
    ends: dict[str, float | None] = {
        name: None if isinstance(end, str) else end
        for name, end in (("lower", lower), ("upper", upper))
        if end is not None
    }
    if bounds is None and method in ("auto", "unbounded_quantile"):
        ends = {"lower": 0.0, "upper": None} | ends
    elif ends:
        raise click.UsageError("--lower and --upper are for unbounded_quantile without --bounds")
    answer, method, guarantee = _released(
        read_column(file, column),
        q,
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        method=method,
        neighbors=neighbors,
        resolution=resolution,
        dither=dither,
        max_contributions=max_contributions,
        prior=prior,
        confidence=confidence,
        covers=covers,
        rng=seed,
        **ends,
    )
    if seed is not None:
        click.echo("--seed makes the noise repeatable: for experiments only, not private", err=True)
    if as_json:
        release = {
            "method": method,
            "neighbors": neighbors,
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "max_contributions": max_contributions,
            "bounds": bounds and list(bounds),
            **ends,
            "resolution": resolution,
            **({} if prior is None else {"prior": prior}),
            "q": q,
        }
        if isinstance(answer, dpq.Estimate):
            value, low, high = (part.tolist() for part in answer)
            release |= {"values": value, "low": low, "high": high}
            release |= {"confidence": answer.confidence, "covers": answer.covers}
        else:
            release["values"] = answer.tolist()
        click.echo(json.dumps(release))
        return
    table = Table()
    headings = ["level", "private value"]
    if isinstance(answer, dpq.Estimate):
        headings += ["low", "high"]
    for heading in headings:
        table.add_column(heading, justify="right")
    for level, row in zip(q, np.asarray(answer).reshape(len(q), -1).tolist(), strict=True):
        table.add_row(_number(level), *map(_number, row))
    console = _console()
    console.print(f"Private quantiles of {column}")
    console.print(table)
    unit = (
        "one record" if max_contributions == 1 else f"one person, up to {max_contributions} records"
    )
    if bounds is None:
        known = [f"{name} {_number(end)}" for name, end in ends.items()]
    else:
        known = [f"bounds [{_number(bounds[0])}, {_number(bounds[1])}]"]
    if prior is not None:
        known.append(f"prior {prior}")
    if isinstance(answer, dpq.Estimate):
        known.append(f"{_number(100 * answer.confidence)}% intervals for the {answer.covers}")
    if method != "unbounded_quantile":
        known.append("resolution " + ("default" if resolution is None else _number(resolution)))
    console.print(
        f"epsilon {_number(guarantee.epsilon)}, delta {_number(guarantee.delta)}, "
        f"neighbors {neighbors} ({unit}), method {method}, " + ", ".join(known)
    )


@main.command()
@LEVELS
@click.option("--n", type=int, required=True, help="About how many records there are.")
@click.option(
    "--bounds",
    type=float,
    nargs=2,
    metavar="LO HI",
    required=True,
    help="Range of the answers, as for the release.",
)
@click.option(
    "--epsilon", type=Numbers("epsilon"), help="Budgets.  [default: nine from 0.01 to 10]"
)
@click.option(
    "--target",
    type=float,
    metavar="ERROR",
    help="Instead of --epsilon: the error that the smallest epsilon is looked for.",
)
@click.option(
    "--unit",
    type=click.Choice(UNITS),
    default="ranks",
    show_default=True,
    help="Of the target: records, a share of them, or the unit of the data.",
)
@click.option(
    "--over",
    type=click.Choice(SUMMARIES),
    default="mean",
    show_default=True,
    help="Whether the mean over levels or the worst of them is to reach the target.",
)
@click.option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    help="The share of releases whose error is predicted.",
)
@click.option(
    "--guess",
    type=Guess(),
    help="A public guess at the data: normal:MEAN,SD, lognormal:MU,SIGMA or uniform:LOW,HIGH.",
)
@click.option("--method", type=click.Choice(PLANNED), default="auto", show_default=True)
@click.option("--neighbors", type=click.Choice(list(RELATIONS)), default="swap", show_default=True)
@click.option("--resolution", type=float, metavar="G", help="As for the release.")
@click.option("--max-contributions", type=int, default=1, show_default=True, metavar="K")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def plan(
    levels: tuple[list[float], ...], epsilon: list[float] | None, as_json: bool, **arguments: Any
) -> None:
    """How far off private quantiles will be, before any file is read.

    The errors are predicted from public facts: the number of records, the bounds, and a guess at
    the data, if there is one.
    """
    q = [level for group in levels for level in group]
    try:
        made = dpq.plan(q, epsilon=epsilon, **arguments)
    except (TypeError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    if not as_json:
        click.echo(str(made))
        return
    columns = {name: column.tolist() for name, column in made.columns().items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    click.echo(json.dumps({"q": q, "level": made.level, "needed": made.needed, "rows": rows}))


def generated_payroll() -> NDArray[np.float64]:
    """Salaries in hundreds of dollars, full of ties: three lognormal groups, generated, public."""
    rng = np.random.default_rng(PAYROLL_SEED)
    median = np.array([38_000.0, 62_000.0, 125_000.0])  # staff, specialists, managers
    spread = np.array([0.18, 0.25, 0.35])
    group = rng.choice(3, size=PAYROLL_SIZE, p=[0.55, 0.35, 0.10])
    salaries = median[group] * np.exp(spread[group] * rng.standard_normal(PAYROLL_SIZE))
    return np.round(salaries, -2)


def read_column(file: Path, column: str) -> NDArray[np.float64] | pa.ChunkedArray:
    """One numeric column of a CSV or Parquet file; no message holds a value or a row of it."""
    suffix = file.suffix.lower()
    if suffix == ".csv":
        return _read_csv(file, column)
    if suffix in (".parquet", ".pq"):
        return _read_parquet(file, column)
    raise click.UsageError(f"FILE must end in .csv, .parquet or .pq, got {file.name}")


def _read_csv(file: Path, column: str) -> NDArray[np.float64]:
    """One float64 per record, NaN for those that hold no number in the column.

    A record is a line, and each line is parsed by itself, so that nobody's record decides what
    another one holds, how many there are, or whether something is raised. Lines end where a line
    feed is, a carriage return before it belongs to the end. What follows the last line feed
    counts as a line, although it may be empty: so line feeds alone say how many records there are.

    Never integers: CSV declares no types, and a type inferred from the values would let one
    record choose the lattice.
    """
    with file.open("rb") as content:
        names, more = _csv_header(file.name, content)
        _check_column(column, names)
        parts = [np.empty(0)]
        while more:
            block = content.read(CSV_BLOCK) + content.readline()
            more = block.endswith(b"\n")
            parts.append(_csv_numbers(block, len(names), names.index(column)))
    return np.concatenate(parts)


def _csv_header(name: str, content: BinaryIO) -> tuple[list[str], bool]:
    """Names in the first line that is not empty, and whether a line feed ends it.

    Nothing else is decoded or looked at: further lines are records, which an open quote must not
    make a part of a name.
    """
    first = next((line for line in content if line.strip(b"\r\n")), b"")
    line = first.removesuffix(b"\n").removesuffix(b"\r")
    try:
        # Where lines end in carriage returns alone, records would be taken for names.
        text = "" if b"\r" in line else line.decode("utf-8-sig")
        names = next(csv.reader([text], strict=True), [])
    except (csv.Error, UnicodeDecodeError):
        names = []
    if not names:
        raise click.UsageError(
            f"{name} must begin with a line of column names, ended by \\n or \\r\\n"
        )
    return names, first.endswith(b"\n")


def _csv_numbers(block: bytes, columns: int, wanted: int) -> NDArray[np.float64]:
    """Field `wanted` of each line of `block`, NaN where it is no number.

    The lines are those between line feeds, with or without one at the end of `block`; a line that
    has not as many fields as there are columns has no number.
    """
    block = block.replace(b"\r\n", b"\n").removesuffix(b"\n") + b"\n"
    text = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    starts = np.append(0, ends[:-1] + 1)
    commas = np.flatnonzero(text == ord(","))
    quotes = np.flatnonzero(text == ord('"'))
    # Every second quote of a line closes. Those that stand where CSV has none leave the line odd.
    before = np.searchsorted(quotes, starts)
    line = np.searchsorted(ends, quotes)
    closes = (np.arange(quotes.size) - before[line]) % 2 == 1
    odd = np.diff(np.append(before, quotes.size)) % 2 == 1
    odd[line[~np.isin(text[quotes + np.where(closes, 1, -1)], list(b',\n"'))]] = True
    inside = np.searchsorted(quotes, commas) - before[np.searchsorted(ends, commas)]
    commas = commas[inside % 2 == 0]

    first, last = np.searchsorted(commas, starts), np.searchsorted(commas, ends)
    plain = np.flatnonzero(~odd & (last - first == columns - 1))
    left = starts[plain] if wanted == 0 else commas[first[plain] + wanted - 1] + 1
    right = ends[plain] if wanted == columns - 1 else commas[first[plain] + wanted]
    quoted = text[left] == ord('"')
    left, right = left + quoted, right - quoted

    values = np.full(starts.size, np.nan)
    values[plain] = _numbers(text, left, right)
    for i in np.flatnonzero(odd):
        field = _odd_field(block[starts[i] : ends[i]], columns, wanted)
        values[i] = _numbers(field, np.zeros(1, dtype=np.int64), np.array([field.size]))[0]
    return values


def _odd_field(line: bytes, columns: int, wanted: int) -> NDArray[np.uint8]:
    """The field of one line with quotes where they do not belong, read as leniently as may be."""
    try:
        fields = next(csv.reader([line.decode("latin-1")]))
    except csv.Error:
        fields = []
    field = fields[wanted] if len(fields) == columns else ""
    return np.frombuffer(field.encode("latin-1"), dtype=np.uint8)


def _numbers(
    text: NDArray[np.uint8], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The numbers that `text` holds from `left` to `right`, NaN for what is none."""
    sizes = right - left
    offsets = np.append(0, np.cumsum(sizes))
    places = np.arange(offsets[-1]) + np.repeat(left - offsets[:-1], sizes)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text[places])]
    fields = pa.Array.from_buffers(pa.large_binary(), sizes.size, buffers)
    fields = pa.compute.if_else(pa.compute.match_substring_regex(fields, NUMBER), fields, None)
    trimmed = pa.compute.ascii_trim(fields.cast(pa.large_string()), " \t")
    numbers: NDArray[np.float64] = trimmed.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def _read_parquet(file: Path, column: str) -> pa.ChunkedArray:
    """The column as it is stored."""
    try:
        with pa.parquet.ParquetFile(file) as parquet:
            schema = parquet.schema_arrow
            _check_column(column, schema.names)
            # By name: "x.y" also reads the field y of a struct x, as another column.
            return parquet.read(columns=[column]).column(column)
    except (pa.ArrowException, OSError):
        raise click.UsageError(f"{file.name} must be a readable Parquet file") from None


def _check_column(column: str, names: list[str]) -> None:
    if names.count(column) != 1:
        raise click.UsageError(
            f"--column must name exactly one of the columns {', '.join(names)}; got {column}"
        )


def _released(
    x: Any,
    q: list[float],
    *,
    epsilon: float,
    delta: float = 0.0,
    bounds: tuple[float, float] | None = None,
    method: str,
    neighbors: str,
    **arguments: Any,
) -> tuple[Any, str, dpq.privacy.Guarantee]:
    """`dpq_fast.quantile`, the method behind "auto", and what was charged for it.

    Complaints about public arguments become usage errors.
    """
    try:
        public = ("resolution", "dither", "prior", "max_contributions")
        asked = {name: arguments[name] for name in ("confidence", "covers") if name in arguments}
        request = Request.of(**asked)
        rows = expected_rows(x, method, None, None, neighbors)
        k = arguments.get("max_contributions", 1)
        chosen = choose_method(
            x,
            q,
            epsilon=value_epsilon(epsilon, request, Levels.of(q), neighbors, k, rows),
            bounds=bounds,
            method=method,
            neighbors=neighbors,
            expected_n=rows,
            **{name: arguments[name] for name in public if name in arguments},
        )
        accountant = dpq.privacy.Accountant(epsilon, delta, neighbors)
        values = dpq.quantile(
            x,
            q,
            epsilon=epsilon,
            delta=delta,
            bounds=bounds,
            method=method,
            neighbors=neighbors,
            accountant=accountant,
            **arguments,
        )
    except (TypeError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    return values, chosen, accountant.history[0]


def _console() -> Console:
    """Standard output, plain: column names are text, never markup."""
    return Console(markup=False, emoji=False, highlight=False)


def _number(value: float | None) -> str:
    """Shortest text that reads back as `value`, without a trailing ``.0``; "none" for None."""
    return "none" if value is None else repr(value).removesuffix(".0")
