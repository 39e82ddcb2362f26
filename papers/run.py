"""Make the papers' tables and figures again: ``python papers/run.py``.

A quick run of everything, a few minutes on one core; `--full` has the papers' own numbers of trials
and takes some hours. What comes out is compared with `papers/results`, which `docs/reproduction.md`
is made of (`--page`), and written to another folder; `--write` puts it there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

# Behind what is installed, as for `bench/run.py`.
sys.path.append(str(Path(__file__).parents[1]))

from bench import columns, peers
from papers import (
    auto_rule,
    default_lattice,
    distributions,
    first_contact,
    intervals,
    joint,
    outcome,
    page,
    persons,
    plan_errors,
    tail,
    unbounded,
)
from papers.report import Report, digits

ITEMS = joint.ITEMS | unbounded.ITEMS | distributions.ITEMS
# Of no paper: what chose our constants. They run by name, and draw into the folder.
STUDIES: dict[str, Callable[[Report, Path], None]] = {
    "tail": tail.tail,
    "auto_rule": auto_rule.auto_rule,
    "intervals": intervals.intervals,
    "plan": plan_errors.plan_errors,
    "first_contact": first_contact.first_contact,
    "persons": persons.persons,
    "lattice": default_lattice.default_lattice,
}
# Trials of a check over those of a quick run.
CHECK = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description="The papers' tables and figures.")
    parser.add_argument("--full", action="store_true", help="the papers' numbers of trials: hours")
    parser.add_argument(
        "--times", type=float, default=1.0, help="so many times a quick run's trials"
    )
    parser.add_argument(
        "--check", action="store_true", help="few trials; fail if results are others"
    )
    parser.add_argument(
        "--page", action="store_true", help="make docs/reproduction.md, run nothing"
    )
    parser.add_argument("--write", action="store_true", help="put results into papers/results")
    parser.add_argument(
        "--only",
        choices=ITEMS | STUDIES,
        action="append",
        metavar="NAME",
        help="an item or a study",
    )
    parser.add_argument("--goodreads", type=Path, metavar="PATH", help="see papers/data/README.md")
    parser.add_argument("--out", type=Path, default=Path("reproduced"), metavar="DIR")
    options = parser.parse_args()
    if options.goodreads:
        columns.FILES["goodreads"] = options.goodreads
        columns.read_columns("goodreads", options.goodreads)  # refused at once
    if options.page:
        page.PAGE.write_text(page.made(outcome.RESULTS), "utf-8")
        return
    effort = outcome.Effort(CHECK if options.check else options.times, options.full)
    off = 0
    for name in options.only or ITEMS:
        if name in STUDIES:
            try:
                STUDIES[name](Report(not options.full), options.out)
            except peers.Missing as missing:
                print(f"{name}, skipped: {missing}")
        elif not (options.check and name == "joint_times"):  # no two runs have the same
            off += _run(name, effort, options)
    if options.check and off:
        sys.exit(f"{off} rows are others than those of papers/results")


def _run(name: str, effort: outcome.Effort, options: argparse.Namespace) -> int:
    """One item; how many of its rows are others than the committed ones."""
    start = perf_counter()
    found = ITEMS[name](effort)
    seconds = perf_counter() - start
    print(f"\n{name} ({seconds:.0f} s): {found.trials}")
    for skipped in found.skipped:
        print(f"  skipped: {skipped}")
    if not options.check:
        for row in found.rows:
            ours = "" if row.ours is None else digits(row.ours)
            print(f"  {row.name}: {ours} (paper: {page.paper_of(row)}), {row.verdict}")
    before = outcome.read(outcome.RESULTS, name)
    others = [] if before is None else outcome.differences(before, found.rows, effort)
    for other in others:
        print(f"  not as in papers/results: {other}")
    if not options.check:
        folder = outcome.RESULTS if options.write else options.out
        outcome.write(folder, name, outcome.saved(name, found, effort, seconds))
    return len(others)


if __name__ == "__main__":
    main()
