"""Run the benchmarks: ``python bench/run.py [--only NAME] [--quick] [--write]``.

The sides of a case are timed in turn in one run (A B A B ...): times are medians over the rounds,
ratios medians over the rounds' ratios, with their quartiles. Memory is what a call allocates.
``--quick`` makes sure that every case runs, at small sizes: it measures nothing. All cases at full
size need some 8 GB of temporary files (streams/parquet) and of memory (n = 10^8 in several copies).
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

# Behind what is installed: what is measured need not be the package beside this folder.
sys.path.append(str(Path(__file__).parents[1]))

from bench import (
    alternatives,
    compat,
    costs,
    counts,
    engines,
    errors,
    joint_exp,
    losses,
    persons,
    programs,
    quantiles,
    readme,
    totals,
)
from bench.case import Call, Case, CostCase, ErrorCase, LossCase, TotalCase
from bench.measure import alternately, digits, duration, machine, peak_memory, size_of
from bench.peers import Missing
from bench.tables import COSTS, LOSSES, RANKS, TIMES, Row, works

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 4.0  # for one comparison
CASES: tuple[Case, ...] = (
    *joint_exp.CASES,
    *programs.CASES,
    *compat.CASES,
    *quantiles.CASES,
    *counts.CASES,
    *engines.CASES,
    *alternatives.CASES,
    *persons.CASES,
)
ERRORS: tuple[ErrorCase, ...] = errors.CASES
TOLD: tuple[LossCase, ...] = losses.CASES
SPENT: tuple[CostCase, ...] = costs.CASES
ALL = (*CASES, *SPENT, *ERRORS, *totals.CASES, *TOLD)


def time_case(case: Case, quick: bool) -> dict[str, list[Row]]:
    """Time a case, print all of it, and return the table's rows where no side was missing."""
    complete = {}
    budget = (0.0, 1) if quick else (SECONDS,)
    for work, size in zip(works(case), (case.quick,) if quick else case.sizes, strict=False):
        data = case.setup(size)
        calls, parts, rows, missing = {"": case.ours(data)}, {}, [], False
        for side in case.against:
            part = min(side.part or size, size)
            parts[side.label] = side.repeats, size / part
            try:
                calls[side.label] = side.make(data if part == size else case.setup(part))
            except Missing as reason:
                print(f"  skipped: {side.label}: {reason}")
                missing = missing or side.shown
        timings = alternately(calls, *budget)
        ours = timings.pop("")
        cells = work, duration(ours.median)
        print(f"  {f'size {size}' if quick else work}: {cells[1]}, {memory(calls[''])}")
        shown = {side.label for side in case.against if side.shown}
        for label, timing in timings.items():
            repeats, whole = parts[label]
            theirs = timing.scaled(repeats * whole)
            low, ratio, high = map(digits, theirs.over(ours))
            time, space = duration(theirs.median), memory(calls[label], whole)
            print(f"    {label}: {time}, × {ratio} ({low} to {high}), {space}")
            if label in shown:
                rows.append((*cells, label, time, ratio))
                cells = "", ""
        if case.note is not None:
            print(f"    {case.note(data)}")
        if not missing:
            complete[work] = rows or [(*cells, "", "", "")]
    return complete


def memory(call: Call, factor: float = 1.0) -> str:
    return size_of(peak_memory(call) * factor)


def rank_case(case: ErrorCase, quick: bool) -> dict[str, list[Row]]:
    """The same for errors."""
    draw = case.setup()
    levels, draws = (case.levels[:1], 2) if quick else (case.levels, errors.DRAWS)
    cells = [case.column]
    print(f"  {case.column}, m = {' / '.join(map(str, levels))}")
    for label, release in case.sides.items():
        found = [errors.mean_error(draw, release, m, draws) for m in levels]
        cells.append(" / ".join(f"{mean:.2f}" if mean < 10 else f"{mean:.3g}" for mean, _ in found))
        print(f"    {label}: {' / '.join('{:.2f} ± {:.2f}'.format(*pair) for pair in found)}")
    return {case.column: [tuple(cells)]}


def loss_case(case: LossCase, quick: bool) -> dict[str, list[Row]]:
    """The same for what one record changes."""
    trials = losses.QUICK_TRIALS if quick else losses.TRIALS
    cells = [case.change]
    for label, release in case.sides.items():
        cells.append(f"≥ {losses.lower_bound(release, *case.pair(), trials):.2f}")
        print(f"    {label}: epsilon {cells[-1]}, of {losses.EPSILON} claimed")
    return {case.change: [tuple(cells)]}


def cost_case(case: CostCase, quick: bool) -> dict[str, list[Row]]:
    """What JointExp costs."""
    cells = costs.costs(case, 1_000, (0.5,)) if quick else costs.costs(case, case.n, costs.TIED)
    print(f"  {case.work}: {'; '.join(cells)}")
    return {case.work: [(case.work, *cells)]}


def total_case(case: TotalCase, quick: bool) -> dict[str, list[Row]]:
    """The same for errors of sums and means."""
    print(f"  {case.work}")
    for label, (mean, deviation) in case.errors(totals.QUICK_DRAWS if quick else totals.DRAWS):
        print(f"    {label}: {mean:.2f} ± {deviation:.2f}")
    return {}


def run(
    case: Case | CostCase | ErrorCase | LossCase | TotalCase, quick: bool
) -> dict[str, list[Row]]:
    """A case of any kind."""
    if isinstance(case, TotalCase):
        return total_case(case, quick)
    if isinstance(case, Case):
        return time_case(case, quick)
    if isinstance(case, CostCase):
        return cost_case(case, quick)
    return rank_case(case, quick) if isinstance(case, ErrorCase) else loss_case(case, quick)


def write(root: Path, measured: dict[str, list[Row]]) -> None:
    """Put what was measured into the tables below a folder; other rows keep their figures."""
    for page, table, cases in (
        (readme.PERFORMANCE, TIMES, CASES),
        (readme.PERFORMANCE, COSTS, SPENT),
        (readme.ACCURACY, RANKS, ERRORS),
        (readme.PEERS, LOSSES, TOLD),
    ):
        order = [work for case in cases if case.shown for work in works(case)]
        path = root / page
        path.write_text(table.updated(path.read_text("utf-8"), order, measured), "utf-8")
    readme.write(root)


def main() -> None:
    parser = argparse.ArgumentParser(description="Benchmarks of dpq_fast.")
    parser.add_argument("--quick", action="store_true", help="run every case once, at small sizes")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="cases whose names begin like this"
    )
    parser.add_argument(
        "--write", action="store_true", help="put it into the tables of docs/ and README.md"
    )
    options = parser.parse_args()
    cases = [case for case in ALL if case.name.startswith(tuple(options.only or [""]))]
    if not cases:
        parser.error(f"no such case; there are {', '.join(case.name for case in ALL)}")
    if options.write and options.quick:
        parser.error("--quick measures nothing that could be written")
    if not options.quick:
        print(machine())
    measured: dict[str, list[Row]] = {}
    failed = []
    for case in cases:
        bar = f" (bar: {case.bar})" if case.bar and not options.quick else ""
        print(f"{case.name}{bar}", flush=True)
        try:
            rows = run(case, options.quick)
        except Missing as reason:
            print(f"  skipped: {reason}")
        except Exception:
            traceback.print_exc()
            failed.append(case.name)
        else:
            measured |= rows if case.shown else {}
    if options.write:
        write(ROOT, measured)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
