"""`dpq-fast audit`: what a mechanism claims, and what is found on made-up records."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

import dpq_fast as dpq
from dpq_fast.cli import options
from dpq_fast.cli.failures import Found, refusals
from dpq_fast.cli.options import Form
from dpq_fast.cli.output import Answer, Printer, spelled, working
from dpq_fast.cli.parameters import Numbers
from dpq_fast.privacy.relations import RELATIONS

LEVELS = ([0.25, 0.75],)
TRIALS = 2_000
# Records beyond make more data sets than an audit takes.
MOST_POINTS = 6


class Setting(NamedTuple):
    """Made-up records that an audit looks at, and what is public about them.

    Attributes
    ----------
    takes_levels : bool
    has_law : bool
        Whether its law can be compared, without running it.
    public : dict
        Further arguments.
    """

    takes_levels: bool
    has_law: bool
    public: dict[str, Any]


def settings(points: int) -> dict[str, Setting]:
    """The mechanisms, on records that are the whole numbers below `points`."""
    top = points - 1
    on_lattice = dict(bounds=(0, top), resolution=1)
    clip = dict(q=None, lower=0, upper=top, resolution=1)
    return {
        "joint_exp": Setting(True, True, on_lattice | dict(dither=False)),
        "ind_exp": Setting(True, True, dict(on_lattice)),
        "approx_quantiles": Setting(True, True, on_lattice | dict(dither=False)),
        "two_stage": Setting(True, True, on_lattice | dict(expected_n=1_000)),
        "unbounded_quantile": Setting(True, True, dict(lower=0.0, upper=2.0 * top, beta=2.0)),
        "agg_tree": Setting(True, False, dict(bounds=(0, top), height=1, branching=points)),
        "count": Setting(False, True, {}),
        "sum": Setting(False, True, clip),
        "mean": Setting(False, True, clip),
    }


@click.command(cls=options.Command)
@click.argument("mechanism", type=click.Choice(list(settings(3))))
@options.option(
    options.RELEASE,
    "--q",
    "levels",
    type=Numbers("q"),
    multiple=True,
    help="Levels in [0, 1], for quantiles.  [default: 0.25,0.75]",
)
@options.option(
    options.RELEASE,
    "--records",
    type=click.IntRange(1, 6),
    default=3,
    show_default=True,
    help="Most records of a data set.",
)
@options.option(
    options.RELEASE,
    "--points",
    type=click.IntRange(2, MOST_POINTS),
    default=3,
    show_default=True,
    help="Records are the whole numbers from 0 to below it, or missing.",
)
@options.option(
    options.PRIVACY, "--epsilon", type=float, default=1.0, show_default=True, help="Budget."
)
@options.option(
    options.PRIVACY,
    "--neighbors",
    type=click.Choice(list(RELATIONS)),
    default="swap",
    show_default=True,
    help="What one person can change: replace a record, or add or remove one.",
)
@options.CONTRIBUTIONS
@options.option(
    options.MECHANISM,
    "--trials",
    type=int,
    help="Runs of the code that draws, on each of two neighbors, in place of comparing laws. "
    f"[default: {TRIALS} for agg_tree, which has no law to compare]",
)
@options.option(
    options.MECHANISM,
    "--confidence",
    type=float,
    default=0.99,
    show_default=True,
    help="With --trials: the probability that the bound is right.",
)
@options.option(options.MECHANISM, "--seed", type=int, help="With --trials: repeatable runs.")
@options.with_output
def audit(
    mechanism: str,
    levels: tuple[list[float], ...],
    records: int,
    points: int,
    epsilon: float,
    neighbors: str,
    max_contributions: int,
    trials: int | None,
    confidence: float,
    seed: int | None,
    form: Form,
) -> None:
    """How much privacy a MECHANISM loses on made-up records: claimed against measured epsilon.

    For example:
      dpq-fast audit joint_exp --epsilon 1
      dpq-fast audit count --epsilon 1 --trials 1000

    Without --trials the exact output laws are compared, for all pairs of neighbors there are and
    all outputs. With it the mechanism is run, and what is found is a lower bound. Ends with exit
    code 4 if more is found than is claimed.
    """
    printer = Printer(form, plain="an audit")
    setting = settings(points)[mechanism]
    if levels and not setting.takes_levels:
        raise click.UsageError(f"--q must be left out for {mechanism}")
    parameters = setting.public | dict(
        epsilon=epsilon, neighbors=neighbors, max_contributions=max_contributions
    )
    if setting.takes_levels:
        parameters["q"] = options.flat(levels or LEVELS)
    by_law = setting.has_law and trials is None
    with refusals(), working(f"auditing {mechanism}"):
        if by_law:
            domain = [float(point) for point in range(points)]
            found: Any = dpq.audit.exact(mechanism, records, domain=domain, **parameters)
            claimed = found.guarantee.epsilon
            how = f"exact laws, {found.pairs:,} pairs of neighbors of up to {records} records"
        else:
            common = [float(point % points) for point in range(records - 1)]
            moved = [0.0] * max_contributions, [float(points - 1)] * max_contributions
            pair = [*common, *moved[0]], [*common, *moved[1]]
            if neighbors == "add-remove":
                pair = pair[0], common
            number = TRIALS if trials is None else trials
            found = dpq.audit.estimate(
                mechanism, *pair, trials=number, confidence=confidence, rng=seed, **parameters
            )
            claimed = found.claimed
            how = (
                f"{number:,} runs on each of two neighbors; a lower bound, right with "
                f"probability {spelled(confidence)}"
            )
    verdict = "holds" if found.holds else "does not hold"
    columns = {
        "mechanism": [mechanism],
        "claimed epsilon": [claimed],
        "measured epsilon": [found.epsilon],
        "claim": [verdict],
    }
    printer.write(
        Answer(
            title="Claimed and measured privacy loss, on made-up records",
            headings=list(columns),
            rows=[(mechanism, spelled(claimed), f"{found.epsilon:.6g}", verdict)],
            notes=f"{how}\nepsilon {spelled(epsilon)}, neighbors {neighbors}, "
            f"max_contributions {max_contributions}",
            data={
                "mechanism": mechanism,
                "claimed": claimed,
                "measured": found.epsilon,
                "holds": bool(found.holds),
                "neighbors": neighbors,
                "max_contributions": max_contributions,
                "how": how,
            },
            columns=columns,
            texts=1,
        )
    )
    if not found.holds:
        raise Found(f"{mechanism} loses more privacy than it claims")
