"""Reproduce tables and figures: ``python papers/run.py --out DIR [--quick] [--only NAME]``.

Tables are printed beside the papers' numbers, pictures saved. For speed there is `bench/run.py`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# Behind what is installed, as for `bench/run.py`.
sys.path.append(str(Path(__file__).parents[1]))

from papers import (
    auto_rule,
    default_lattice,
    distributions,
    first_contact,
    intervals,
    persons,
    plan_errors,
    quantiles,
    unbounded,
)
from papers.report import Report

FIGURES = {
    "sum_table": unbounded.sum_table,
    "uqe_vs_emq": unbounded.uqe_vs_emq,
    "pdf_bounds": unbounded.pdf_bounds,
    "tail": unbounded.tail,
    "quantile_errors": quantiles.quantile_errors,
    "quantile_times": quantiles.quantile_times,
    "cdf_methods": distributions.cdf_methods,
    "cdf_poster": distributions.cdf_poster,
    "auto_rule": auto_rule.auto_rule,
    "intervals": intervals.intervals,
    "plan": plan_errors.plan_errors,
    "first_contact": first_contact.first_contact,
    "persons": persons.persons,
    "lattice": default_lattice.default_lattice,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="The papers' tables and figures.")
    parser.add_argument("--quick", action="store_true", help="fewer samples and draws")
    parser.add_argument("--only", choices=FIGURES, action="append", metavar="NAME", help="a figure")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="for the pictures")
    options = parser.parse_args()
    report = Report(options.quick)
    for name in options.only or FIGURES:
        FIGURES[name](report, options.out)


if __name__ == "__main__":
    main()
