"""The command and its parts."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import click

from dpq_fast.cli import audits, completion, forecasts, ledgers, payroll, quantiles, totals
from dpq_fast.cli.failures import BROKEN, CODES, Broken, Interrupted
from dpq_fast.cli.options import Group

EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code:<4} {what}" for code, what in CODES.items())


class Main(Group):
    """Commands whose every failure is a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """As of every group; nothing but click's own exceptions leaves it."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (KeyboardInterrupt, click.Abort):
            raise Interrupted("interrupted; what was charged, if anything, stays charged") from None
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise Broken("a file could not be read or written") from None
            # whoever read the output is gone: nothing is to be said, nor written at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(BROKEN)
        except Exception:
            raise Broken(
                "the command failed; what was charged, if anything, stays charged"
            ) from None


@click.group(
    cls=Main,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)
@click.version_option(package_name="dpq_fast")
def main() -> None:
    """Differentially private quantiles, sums, means and counts of columns of numbers.

    For example:
      dpq-fast demo
      dpq-fast plan --q 0.5 --n 10000 --bounds 0 120
      dpq-fast quantile staff.csv --column age --q 0.5 --epsilon 1 --bounds 0 120

    Files are .csv, .tsv, .parquet, .feather and .duckdb; - is a pipe of CSV. epsilon is the privacy
    budget of an answer: smaller is more private, and less accurate. bounds are a range that surely
    covers the values of interest, chosen without looking at the data. Look at the count first: what
    is not read as a number ($1,234) is missing, and an answer of missing records is noise.
    """


# In the list of commands.
SUMMARIES = {
    "quantile": "Medians and other quantiles.",
    "median": "A median.",
    "cdf": "A whole distribution function.",
    "sum": "A sum.",
    "mean": "A mean.",
    "count": "A number of records.",
    "describe": "Counts, means and quantiles of several columns.",
    "plan": "Errors to come, before any file is read.",
    "compare": "Errors of the methods on made-up records.",
    "audit": "Claimed against measured epsilon of a mechanism.",
    "budget": "Ledgers: what may be spent on a data set, and what was.",
    "demo": "Private deciles of a generated payroll.",
    "completion": "What a shell needs to complete the command.",
}

for command in (
    quantiles.quantile,
    quantiles.median,
    quantiles.cdf,
    totals.sum_,
    totals.mean,
    totals.count,
    totals.describe,
    forecasts.plan,
    forecasts.compare,
    audits.audit,
    ledgers.budget,
    payroll.demo,
    completion.completion,
):
    command.short_help = SUMMARIES[str(command.name)]
    main.add_command(command)
