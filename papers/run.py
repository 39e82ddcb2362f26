"""Reproduce the papers' tables and figures: ``python bench/figures.py [--quick] --out DIR ...``.

Tables are printed beside the papers' numbers, pictures saved. For speed there is `run.py`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import figures_auto as auto
import figures_cdf as cdf
import figures_lattice as lattice
import figures_unbounded as unbounded
from run import Report

FIGURES = {
    "sum_table": unbounded.sum_table,
    "uqe_vs_emq": unbounded.uqe_vs_emq,
    "pdf_bounds": unbounded.pdf_bounds,
    "tail": unbounded.tail,
    "auto_rule": auto.auto_rule,
    "lattice": lattice.default_lattice,
    "cdf_methods": cdf.cdf_methods,
    "cdf_poster": cdf.cdf_poster,
    "quantile_errors": cdf.quantile_errors,
    "quantile_times": cdf.quantile_times,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="The papers' tables and figures.")
    parser.add_argument("--quick", action="store_true", help="fewer samples and draws")
    parser.add_argument("--only", choices=FIGURES, action="append", metavar="NAME", help="a figure")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="for the pictures")
    options = parser.parse_args()
    report = Report(options.quick, full=False)
    for name in options.only or FIGURES:
        FIGURES[name](report, options.out)


if __name__ == "__main__":
    main()
