"""The options of commands, each declared once, and help that shows them by what they are about."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from dpq_fast.cli.parameters import NO_END, Contributions, End, Guess, Numbers, Place
from dpq_fast.data.persons import WEIGHT, WEIGHTS
from dpq_fast.engines.lines import Dialect
from dpq_fast.mechanisms.registry import MECHANISMS, METHODS
from dpq_fast.privacy.intervals import KINDS, SAMPLE
from dpq_fast.privacy.relations import RELATIONS

Function = TypeVar("Function", bound=Callable[..., Any])

# What options are about, in the order of the help.
RELEASE, TEXTS, PRIVACY, MECHANISM, INTERVALS, GROUPS, OUTPUT = (
    "What to release",
    "How CSV is written",
    "Privacy",
    "Mechanism",
    "Intervals",
    "Groups",
    "Output",
)
SECTIONS = (RELEASE, TEXTS, PRIVACY, MECHANISM, INTERVALS, GROUPS, OUTPUT)
TERMS = (
    "epsilon is the privacy budget: smaller is more private, and less accurate. bounds are a range "
    "that surely covers the values of interest; records outside count as the nearer end. Choose "
    "both, and all else, without looking at the records. Look at the count first: a record that is "
    "not read as a number is left out without a word, and a column of them is answered by noise."
)


class Option(click.Option):
    """An option and what it is about.

    Parameters
    ----------
    *declarations, **given
        As for `click.Option`.
    section : str
        One of `SECTIONS`.
    """

    def __init__(self, *declarations: Any, section: str = "", **given: Any) -> None:
        super().__init__(*declarations, **given)
        self.section = section


def with_examples(text: str | None) -> str | None:
    """A help whose examples keep their lines."""
    if text is None:
        return None
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join("\b\n" * each.startswith("For example:") + each for each in paragraphs)


class Group(click.Group):
    """Commands in the order of their use, and a help with examples."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.help = with_examples(self.help)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class Command(click.Command):
    """A command whose help has examples, and its options by section."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.help = with_examples(self.help)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in (*SECTIONS, ""):
            records = [
                parameter.get_help_record(ctx)
                for parameter in self.get_params(ctx)
                if isinstance(parameter, click.Option)
                and getattr(parameter, "section", "") == section
            ]
            shown = [record for record in records if record is not None]
            if shown:
                with formatter.section(section or "Options"):
                    formatter.write_dl(shown)


def option(section: str, *declarations: str, **given: Any) -> Callable[[Function], Function]:
    """An option of a section."""
    return click.option(*declarations, cls=Option, section=section, **given)


def packed(
    name: str, kind: Callable[..., Any], *options: Callable[[Any], Any]
) -> Callable[[Function], Function]:
    """Options that a command is given as one argument.

    Parameters
    ----------
    name : str
        Of the argument.
    kind : type of a named tuple
        With the names of the options.
    *options : decorators
    """

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def call(**given: Any) -> Any:
            own = {field: given.pop(field) for field in kind._fields}  # type: ignore[attr-defined]
            return function(**given, **{name: kind(**own)})

        for each in reversed(options):
            call = each(call)
        return call

    return decorate


# What to release


class Origin(NamedTuple):
    """Where records come from.

    Attributes
    ----------
    file : Path
    table : str or None
    workers : int or None
    delimiter, decimal, thousands, strip, encoding : str or None
    skip_lines : int or None
    """

    file: Path
    table: str | None
    workers: int | None
    delimiter: str | None
    decimal: str | None
    thousands: str | None
    strip: str | None
    encoding: str | None
    skip_lines: int | None

    @property
    def written(self) -> dict[str, Any]:
        """How a file of texts is written, as far as that was said."""
        given = {name: getattr(self, name) for name in Dialect._fields}
        return {name: value for name, value in given.items() if value is not None}


with_origin = packed(
    "origin",
    Origin,
    click.argument(
        "file", metavar="FILE", type=click.Path(exists=True, allow_dash=True, path_type=Path)
    ),
    option(RELEASE, "--table", metavar="NAME", help="Of a DuckDB file: which table or view."),
    option(
        OUTPUT,
        "--workers",
        type=int,
        metavar="N",
        help="Threads. The answer does not depend on them.  [default: 1; DuckDB's own]",
    ),
    option(
        TEXTS,
        "--delimiter",
        metavar="C",
        help="Between fields; \\t is a tab.  [default: a tab for .tsv, else a comma]",
    ),
    option(TEXTS, "--decimal", metavar="C", help="Before a fraction: 1,5.  [default: a point]"),
    option(
        TEXTS,
        "--thousands",
        metavar="C",
        help="Between groups of digits: 1,234. A number that has one counts as missing without "
        "this.  [default: none]",
    ),
    option(
        TEXTS,
        "--strip",
        metavar="CHARS",
        help="Left out of numbers, wherever they stand: '$' for $5. A number with other characters "
        "counts as missing.  [default: none]",
    ),
    option(TEXTS, "--encoding", metavar="NAME", help="cp1252, utf-16.  [default: utf-8]"),
    option(
        TEXTS,
        "--skip-lines",
        type=int,
        metavar="N",
        help="Lines before that of the names.  [default: 0]",
    ),
)
COLUMN = option(RELEASE, "--column", required=True, metavar="NAME", help="The column of numbers.")
LEVELS = option(
    RELEASE,
    "--q",
    "levels",
    type=Numbers("q"),
    multiple=True,
    required=True,
    help="Levels in [0, 1]; commas, repetition, or both. 0.5 is the median.",
)


def flat(levels: tuple[list[float], ...]) -> list[float]:
    """The levels of an option that may be repeated."""
    return [level for group in levels for level in group]


BOUNDS = functools.partial(option, RELEASE, "--bounds", type=Place(), nargs=2, metavar="LO HI")
LOWER = option(
    RELEASE,
    "--lower",
    type=End(),
    help="Without --bounds: where the search begins; none if it goes down from --upper, or both "
    "ways.  [default: 0]",
)
UPPER = option(
    RELEASE,
    "--upper",
    type=End(),
    help="Without --bounds: where the search ends.  [default: none]",
)


def ends_of(lower: Any, upper: Any) -> dict[str, Any]:
    """Those of --lower and --upper that were given; None for an end that there is not."""
    return {
        name: None if end == NO_END else end
        for name, end in (("lower", lower), ("upper", upper))
        if end is not None
    }


LATTICE = (
    "Answers are multiples of G: 1 for whole numbers{}. Default: a power of ten, about 10^-6 of "
    "the range of --bounds."
)
RESOLUTION = functools.partial(
    option,
    RELEASE,
    "--resolution",
    type=Place(),
    metavar="G",
    help=LATTICE.format(", 1D or 15min for times"),
)

# Privacy


class Privacy(NamedTuple):
    """What a release may spend, and what it protects.

    Attributes
    ----------
    epsilon, rho : float or None
        One of them.
    delta : float
    neighbors : str or None
        None for that of the budget, or "swap".
    max_contributions : int
    privacy_unit : tuple of str
        Columns of ids of persons, if any.
    contributions : str, int or None
        What of a person's records counts, with columns of ids; None for weights.
    budget : Path or None
    seed : int or None
    """

    epsilon: float | None
    rho: float | None
    delta: float
    neighbors: str | None
    max_contributions: int
    privacy_unit: tuple[str, ...]
    contributions: str | int | None
    budget: Path | None
    seed: int | None

    @property
    def person(self) -> dict[str, Any]:
        """The arguments about whose records there are."""
        if not self.privacy_unit:
            return {"max_contributions": self.max_contributions}
        return {
            "privacy_unit": list(self.privacy_unit),
            "contributions": WEIGHTS if self.contributions is None else self.contributions,
        }

    @property
    def shares(self) -> bool:
        """Whether the records of a person share one weight."""
        return bool(self.privacy_unit) and not isinstance(self.contributions, int)

    @property
    def most(self) -> int:
        """How many records, or parts of one, a person has at most."""
        if isinstance(self.contributions, int):
            return self.contributions
        return WEIGHT if self.shares else self.max_contributions


def check_person(has_ids: bool, contributions: str | int | None, max_contributions: int) -> None:
    """Refuse options about persons that do not go together."""
    if not has_ids and contributions is not None:
        raise click.UsageError(f"--contributions is for --privacy-unit, got {contributions}")
    if has_ids and max_contributions != 1:
        raise click.UsageError(
            f"--max-contributions must be left out with --privacy-unit, got {max_contributions}"
        )


NEIGHBORS = option(
    PRIVACY,
    "--neighbors",
    type=click.Choice(list(RELATIONS)),
    help="What one person can change: replace a record, or add or remove one.  [default: that of "
    "--budget, or swap]",
)
CONTRIBUTIONS = option(
    PRIVACY,
    "--max-contributions",
    type=int,
    default=1,
    show_default=True,
    metavar="K",
    help="Most records that one person has in the file: a promise, where there are no ids.",
)
SHARED = option(
    PRIVACY,
    "--contributions",
    type=Contributions(),
    help="With --privacy-unit: all records of a person share one weight, or up to K of each "
    "count.  [default: weights]",
)
EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)

with_privacy = packed(
    "privacy",
    Privacy,
    option(PRIVACY, "--epsilon", type=float, help="Budget of the whole call."),
    option(
        PRIVACY,
        "--rho",
        type=float,
        help="In its place a budget of zCDP, for quantile, median and cdf.",
    ),
    option(
        PRIVACY,
        "--delta",
        type=float,
        default=0.0,
        show_default=True,
        help="Allowed failure of the guarantee: for groups that are selected privately, and for "
        "some methods.",
    ),
    NEIGHBORS,
    CONTRIBUTIONS,
    option(
        PRIVACY,
        "--privacy-unit",
        multiple=True,
        metavar="NAME",
        help="Column of the ids of persons: the guarantee is about each of them, however many "
        "records they have. Repeat it for ids of several columns.",
    ),
    SHARED,
    option(
        PRIVACY,
        "--budget",
        type=EXISTING,
        metavar="LEDGER",
        help="Charge this ledger (dpq-fast budget new) before a record is read, or be refused.",
    ),
    option(PRIVACY, "--seed", type=int, help="Repeatable noise, for experiments: not private."),
)

COUNT = option(
    PRIVACY,
    "--with-count",
    is_flag=True,
    help="Beside the answer a noisy count of the records that it is of, for a tenth of the budget.",
)

# Mechanism

# Methods of releases for an epsilon.
OFFERED = [name for name in METHODS if name == "auto" or "epsilon" in MECHANISMS[name].budgets]
EXPECTED_N = option(
    MECHANISM,
    "--expected-n",
    type=int,
    metavar="N",
    help="A public guess at the number of records (with --privacy-unit: of persons), or at those "
    "of a group. Default: the lines or rows of a file under swap, which makes them public; else, "
    "and with --privacy-unit, 10,000.",
)
PRIOR = option(
    MECHANISM,
    "--prior",
    type=click.Choice(["uniform", "log", "scale-free"]),
    help="A public guess at the records between --bounds.  [default: uniform; scale-free where "
    "auto or two_stage release quantiles]",
)
GUESS = option(
    RELEASE,
    "--guess",
    type=Guess(),
    help="A public guess at the data: normal:MEAN,SD, lognormal:MU,SIGMA or uniform:LOW,HIGH.",
)

# Intervals


class Intervals(NamedTuple):
    """Whether there are intervals.

    Attributes
    ----------
    confidence : float or None
    covers : str
    """

    confidence: float | None
    covers: str


with_intervals = packed(
    "intervals",
    Intervals,
    option(
        INTERVALS,
        "--confidence",
        type=float,
        metavar="P",
        help="Add intervals that cover with this probability; the budget stays the same.",
    ),
    option(
        INTERVALS,
        "--covers",
        type=click.Choice(KINDS),
        default=SAMPLE,
        show_default=True,
        help="What intervals are for: these records, or the population they are drawn from.",
    ),
)

# Groups


class Grouping(NamedTuple):
    """Columns of keys, and their groups.

    Attributes
    ----------
    by : tuple of str
    groups : str or None
    groups_file : Path or None
    public_by : bool
    """

    by: tuple[str, ...]
    groups: str | None
    groups_file: Path | None
    public_by: bool


with_groups = packed(
    "grouping",
    Grouping,
    option(
        GROUPS,
        "--by",
        multiple=True,
        metavar="NAME",
        help="Column of keys: an answer for each group. Repeat it for keys of several columns.",
    ),
    option(
        GROUPS,
        "--groups",
        metavar="A,B,...",
        help="The groups, chosen without looking at the records; each gets an answer. Without them "
        "they are selected privately, for --delta and a quarter of epsilon.",
    ),
    option(
        GROUPS,
        "--groups-file",
        type=EXISTING,
        metavar="FILE",
        help="The same, one group on each line; with several columns, separated by commas.",
    ),
    option(
        GROUPS,
        "--public-by",
        is_flag=True,
        help="Promise that everybody's group is public: half of the noise under swap.",
    ),
)

# Output

FORMATS = ("table", "json", "csv")


class Form(NamedTuple):
    """Where an answer goes.

    Attributes
    ----------
    output : tuple of Path
    form : str or None
        One of `FORMATS`.
    as_json : bool
    """

    output: tuple[Path, ...]
    form: str | None
    as_json: bool


with_output = packed(
    "form",
    Form,
    option(
        OUTPUT,
        "--output",
        "-o",
        type=click.Path(dir_okay=False, path_type=Path),
        multiple=True,
        metavar="FILE",
        help="Write the same answer there, too: .json, .csv or .png. May be repeated.",
    ),
    option(
        OUTPUT,
        "--format",
        "form",
        type=click.Choice(FORMATS),
        help="What is printed.  [default: table]",
    ),
    option(OUTPUT, "--json", "as_json", is_flag=True, help="The same as --format json."),
)
