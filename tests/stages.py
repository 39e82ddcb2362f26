"""The exact law of both stages of `two_stage`, by brute force and from definitions."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

import enumeration
from dpq_fast import privacy
from dpq_fast.privacy.levels import Levels
from dpq_fast.reference import shares

# How the prior of answers of an exponential mechanism is made.
HOW = shares.Learning(base=0.005, answer=0.03, beside=0.2, reach=4.0, power=3.0)


def joint(
    records: list[int], points: int, q: list[float], scaled: float = 1.0, **options: Any
) -> enumeration.Law:
    """The law of the pilot's answers and of the release, without dither bits.

    Records are some of the points 0 .. points-1. Rates of both stages may be `scaled`.
    """
    spent = privacy.two_stage.calibrate(Levels(q), points=points, **options)
    levels = spent.design.levels.values.tolist()
    first = shares.masses_of(shares.scale_free(points, 0, True), points)
    base = shares.no_scale(points, 0)
    masses = [first.of(point) for point in range(points)]
    pilot = enumeration.joint_exp(records, points, levels, scaled * spent.pilot.rate, masses)
    table = {}
    for answers, log_p in pilot.items():
        # a fifth is at round numbers around the answers: of so few points at all of them
        half = (answers[-1] - answers[0]) // 2
        near = range(max(answers[0] - half, 0), min(answers[-1] + half, points - 1) + 1)
        prior = shares.learned(
            list(answers), levels, base, points, HOW, shares.only(list(near)), 0.2
        )
        made = shares.masses_of(prior, points)
        after = [made.of(point) for point in range(points)]
        if spent.design.main == "ind_exp":
            rates = (scaled * np.asarray(spent.main.rates)).tolist()
            law = enumeration.ind_exp(records, points, q, rates, spent.main.selection, prior=after)
        else:
            assert spent.design.main == "joint_exp"
            law = enumeration.joint_exp(records, points, q, scaled * spent.main.rate, after)
        table |= {(*answers, *o): log_p + log_q for o, log_q in law.items()}
    return table


def released(
    records: list[int], points: int, q: list[float], scaled: float = 1.0, **options: Any
) -> enumeration.Law:
    """The law of the release alone."""
    terms = defaultdict(list)
    for o, log_p in joint(records, points, q, scaled, **options).items():
        terms[o[-len(q) :]].append(log_p)
    return {o: enumeration.log_sum(logs) for o, logs in terms.items()}
