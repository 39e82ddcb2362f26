"""What each choice of JointExp's plan buys: ``python bench/heuristics.py [--draws 30] [--quick]``.

One switch at a time is turned off, over columns, numbers of records and levels, and budgets that
users have: up to 300 levels, and epsilon times the records no less than the levels. Draws with and
without it are timed in turn. A choice stays in `dpq_fast/laws/joint/plan.py` if some case takes 20%
longer without it.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).parents[1]))

import dpq_fast as dpq
from bench.case import Call
from bench.columns import levels
from bench.measure import alternately
from dpq_fast import privacy
from dpq_fast.laws.joint import choice
from dpq_fast.laws.joint.plan import PLAN, Plan
from dpq_fast.noise.rng import default_rng

# What is turned off, and the plan without it.
SWITCHES: dict[str, dict[str, Any]] = {
    "single ranks where rows are few": dict(few_entries=0, short_entries=0),
    "single ranks where cells would be": dict(least_ranks=0.0, most_narrow=-1),
    "windows inside of the reach": dict(worth=2**62),
    "cells grow away from paths": dict(farther=0.0),
    "cells fit between targets": dict(aligned=(1.0, 1.0, 1)),
    "wider cells of crowded targets": dict(crowded=0.0),
    "room for cells of one rank more": dict(margin=1.0),
    "leaves of much that stay alone": dict(around=2.0**60),
    "wide cells where ties hold no outputs": dict(least_tied=math.inf),
    "blocks of several records": dict(bends=(0.0,)),
    "longer blocks farther away": dict(widest_block=0.0),
    "where a bridge is at no cost": dict(spread=0.0),
    "narrower cells": dict(rounds=0),
    "more proposals where ranks are read": dict(each_scan=PLAN.each),
}
RECORDS, LEVELS, EPSILONS = (10**3, 10**4, 10**5, 10**6), (9, 29, 100, 300), (1e-4, 1e-2, 1e-1, 1.0)
SLOWER = 1.2  # of a case that counts


class Case(NamedTuple):
    """A release."""

    name: str
    sample: dpq.Sample
    m: int
    epsilon: float


def columns(n: int) -> dict[str, tuple[NDArray[Any], dict[str, Any]]]:
    """Columns, and what is public of them."""
    rng = np.random.default_rng(0)
    normal, wide = rng.normal(0.0, 5.0, n), dict(bounds=(-100.0, 100.0))
    apart = np.where(rng.random(n) < 0.5, rng.normal(-50.0, 1.0, n), rng.normal(50.0, 1.0, n))
    money = dict(bounds=(0.0, 1000.0), resolution=0.01)
    return {
        "N(0, 5)": (normal, wide),
        "half tied": (np.where(np.arange(n) % 2, 0.0, normal), wide),
        "ten values": (rng.integers(0, 10, n), dict(bounds=(0, 100), resolution=1)),
        "two clusters": (apart, wide),
        "lognormal": (rng.lognormal(0.0, 2.0, n), dict(bounds=(0.0, 1000.0))),
        "ages": (rng.integers(17, 91, n), dict(bounds=(0, 120), resolution=1)),
        "zeros": (np.where(rng.random(n) < 0.8, 0.0, rng.lognormal(3.0, 1.0, n)), money),
    }


def cases(records: Sequence[int], quick: bool) -> Iterator[Case]:
    for n in records:
        for name, (x, public) in columns(n).items():
            for dither in (None, False):
                own = public if dither is None else dict(resolution=0) | public
                sample = dpq.Sample.of(x, dither=dither, **own)
                for m in LEVELS[:2] if quick else LEVELS:
                    for epsilon in EPSILONS:
                        if epsilon * n >= m:
                            ties = "" if dither is None else ", no dither"
                            label = f"{name}{ties}, n = {n:,}, m = {m}, ε = {epsilon:g}"
                            yield Case(label, sample, m, epsilon)


def releases(case: Case, plan: Plan) -> Call:
    """One release after another, by the same random numbers for each plan."""
    q, seeds = levels(case.m), itertools.count()
    rate = privacy.joint_exp.calibrate(epsilon=case.epsilon).rate

    def release() -> None:
        rng = default_rng(next(seeds))
        choice.law_of(case.sample.order(rng), q, rate, plan=plan).draw(rng, 1)

    return release


def ratio(case: Case, plan: Plan, draws: int) -> float:
    """How many times as long a release takes by a plan as by the default one."""
    sides = {"": releases(case, PLAN), "without": releases(case, plan)}
    timings = alternately(sides, 0.0, draws)
    return timings["without"].median / timings[""].median


def measured(draws: int, quick: bool = False, records: Sequence[int] = RECORDS) -> Iterator[str]:
    """Lines of the table: each switch, and what releases take without what it stands for."""
    chosen = list(cases(records[:1] if quick else records, quick))
    yield f"{date.today()}, {len(chosen)} cases, {draws} draws each"
    yield "| without | constants | 20% slower | geometric mean | the most it buys | and costs |"
    yield "|---|---|---|---|---|---|"
    for name, changes in SWITCHES.items():
        plan = replace(PLAN, **changes)
        found = {case.name: ratio(case, plan, draws) for case in chosen}
        best, worst = (pick(found, key=found.__getitem__) for pick in (max, min))
        slower = sum(each >= SLOWER for each in found.values())
        mean = geometric_mean(found.values())
        yield (
            f"| {name} | {', '.join(changes)} | {slower} | {mean:.2f} "
            f"| {found[best]:.2f}: {best} | {found[worst]:.2f}: {worst} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="a few cases, to see that all run")
    parser.add_argument("--records", type=int, nargs="+", default=RECORDS)
    given = parser.parse_args()
    for line in measured(1 if given.quick else given.draws, given.quick, given.records):
        print(line, flush=True)


if __name__ == "__main__":
    main()
