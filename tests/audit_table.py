"""Every public mechanism under audit, each beside mutants that the audit has to catch.

``python tests/audit_table.py --write docs/audits.md`` writes the results between the marks there.
"""

from __future__ import annotations

import argparse
import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial, wraps
from itertools import combinations_with_replacement
from itertools import product as product_of
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from halts import log_halts
from scipy.special import ndtr

import dpq_fast as dpq
import enumeration
from dpq_fast import _checks, audit, privacy
from dpq_fast._kernels import scan
from dpq_fast.data.persons import WEIGHT, Persons
from dpq_fast.data.records import Records
from dpq_fast.data.sample import Sample
from dpq_fast.laws.candidates import CandidateCounts
from dpq_fast.laws.depth import DepthLaw
from dpq_fast.laws.joint.path import PathLaw
from dpq_fast.mechanisms import csmooth as smooth
from dpq_fast.mechanisms import intervals as ends
from dpq_fast.mechanisms.clipping import Mean
from dpq_fast.mechanisms.spread import Spread
from dpq_fast.noise.counts import CountNoise, Gaussian, Geometric
from dpq_fast.noise.discrete import (
    discrete_gaussian_log_prob,
    discrete_laplace,
    discrete_laplace_log_prob,
)
from dpq_fast.privacy.budgets import resolve_epsilon
from dpq_fast.privacy.levels import splits
from dpq_fast.privacy.relations import relation_of
from dpq_fast.released.agg_tree import AggTree

# `dpq_fast.cdf` is the function
cdf = importlib.import_module("dpq_fast.mechanisms.cdf")

BEGIN, END = "<!-- audit table: begin -->", "<!-- audit table: end -->"
# A bound that is wrong does not come up in a million runs; the seeds are fixed.
SURE = 1.0 - 1e-6
# Runs on each of two neighbors. What a few of them convict is not run more often.
FEW_TRIALS, TRIALS = 1_000, 4_000
# Below this share of the largest, a race of 53-bit uniform numbers never draws.
LOG_FLOOR = -53.0 * math.log(2.0)

Audit = audit.ExactAudit | audit.EstimatedAudit
Run = Callable[..., Audit]


class Case(NamedTuple):
    """A mechanism under one relation, and mutants of it.

    Attributes
    ----------
    mechanism, neighbors, setting : str
    run : callable
        The audit; takes a guarantee, by default the mechanism's own.
    mutants : dict
        For each mutant a callable of the honest guarantee: its audit.
    by_runs : bool
        Whether the audit runs the code that draws.
    part_seen : float
        The part of the promise that an audit by law has to find.
    """

    mechanism: str
    neighbors: str
    setting: str
    run: Run
    mutants: dict[str, Callable[[privacy.Guarantee], Audit]]
    by_runs: bool = False
    part_seen: float = 0.3


# --- How mutants are broken


@contextmanager
def replaced(target: Any, name: str, change: Callable[[Any], Any]) -> Iterator[None]:
    """A function changed for a while; nothing made with it stays in a cache."""
    caches = (
        (
            privacy.approx_quantiles._losses_by_depth,
            privacy.approx_quantiles._steps_for_rho,
            privacy.approx_quantiles._unit_steps,
            privacy.csmooth._certified_shape,
            privacy.csmooth._unit_shape,
            privacy.ind_exp._rates,
            privacy.cdf._certified_scale,
        )
        # made by functions of these modules, but by none of those
        if isinstance(target, ModuleType) and name not in ("calibrate", "shape_of")
        else ()
    )
    try:
        with mock.patch.object(target, name, change(getattr(target, name))):
            for kept in caches:
                kept.cache_clear()
            yield
    finally:
        for kept in caches:
            kept.cache_clear()


def times(factor: float) -> Callable[[Callable], Callable]:
    """The function with its answer, or the numbers in it, multiplied."""

    def change(function: Callable) -> Callable:
        def multiplied(*arguments: Any, **options: Any) -> Any:
            return product(function(*arguments, **options), factor)

        return multiplied

    return change


def product(numbers: Any, factor: float) -> Any:
    """A number multiplied, or all of them in a tuple, a list or an array, or the scale of noise."""
    if isinstance(numbers, (tuple, list)):
        return type(numbers)(product(number, factor) for number in numbers)
    if isinstance(numbers, CountNoise):
        return replace(numbers, scale=factor * numbers.scale)
    return factor * numbers


def spends(mechanism: str, field: str, factor: float) -> tuple[Any, str, Callable]:
    """A calibration of which one field is multiplied: what is spent is not what is promised."""

    def change(calibrate: Callable) -> Callable:
        def calibrated(*arguments: Any, **options: Any) -> Any:
            made = calibrate(*arguments, **options)
            return made._replace(**{field: product(getattr(made, field), factor)})

        return calibrated

    return getattr(privacy, mechanism), "calibrate", change


def spends_as(mechanism: str, **fields: Any) -> tuple[Any, str, Callable]:
    """A calibration of which some fields are others than is promised."""
    return (
        getattr(privacy, mechanism),
        "calibrate",
        lambda calibrate: (
            lambda *arguments, **options: calibrate(*arguments, **options)._replace(**fields)
        ),
    )


def always(answer: Any) -> Callable[[Any], Callable]:
    return lambda original: lambda *arguments, **options: answer


def clamped(log_prob: Callable) -> Callable:
    """What is too rare for 53-bit uniform numbers is never drawn."""

    def of(self: PathLaw | DepthLaw, outputs: Any) -> float:
        found = log_prob(self, outputs)
        return found if found > LOG_FLOOR else -math.inf

    return of


def broken(run: Run, target: Any, name: str, change: Callable[[Any], Any]) -> Run:
    """A mutant: the mechanism with one function replaced, held to the honest promise."""

    def mutant(guarantee: privacy.Guarantee) -> Audit:
        with replaced(target, name, change):
            return run(guarantee)

    return mutant


def exact(
    mechanism: Any,
    x: Any,
    promise: Callable[[], privacy.Guarantee | None] = lambda: None,
    **options: Any,
) -> Run:
    """The audit; of a mutant, with as few records as convict it: more of them only find more."""

    def run(guarantee: privacy.Guarantee | None = None) -> Audit:
        mutant = guarantee is not None
        of = partial(audit.exact, mechanism, guarantee=guarantee or promise(), **options)
        for few in range(1, x) if mutant and isinstance(x, int) else ():
            if not (found := of(few)).holds:
                return found
        return of(x)

    return run


def estimate(mechanism: str, x: Any, other: Any, **options: Any) -> Run:
    options = {"rng": 1, "confidence": SURE} | options

    def run(guarantee: privacy.Guarantee | None = None) -> Audit:
        of = partial(audit.estimate, mechanism, x, other, guarantee=guarantee, **options)
        mutant = guarantee is not None
        if mutant and not (found := of(trials=FEW_TRIALS)).holds:
            return found
        return of(trials=TRIALS)

    return run


# --- Mechanisms with a law on a lattice

POINTS = 3
Q = [0.25, 0.5, 0.75]
SHARES = [0.6, 0.3, 0.1]
PRIOR = (lambda x: np.interp(x, [-0.5, 0.5, 1.5, 2.5], np.cumsum([0.0, *SHARES])), None)


def lattice(neighbors: str) -> dict[str, Any]:
    return dict(
        neighbors=neighbors,
        bounds=(0, POINTS - 1),
        resolution=1,
        dither=False,
        domain=range(POINTS),
    )


def fitted(law_of: Callable[..., Any], q: list[float], **options: Any) -> Run:
    """A mutant whose prior is the histogram of the records, and a little everywhere."""
    domain = range(POINTS)
    form = {name: value for name, value in options.items() if name != "domain"}

    def law(column: Any) -> enumeration.Law:
        records = [value for value in column if value == value]
        weights = [1.0 + 99.0 * records.count(point) for point in domain]
        shares = np.cumsum([0.0, *weights]) / sum(weights)
        prior = (lambda x: np.interp(x, np.arange(POINTS + 1) - 0.5, shares), None)
        made = law_of(column, q, prior=prior, **form)
        outputs = combinations_with_replacement(map(float, domain), len(q))
        return {o: made.log_prob(list(o)) for o in outputs}

    return exact(law, 4, domain=domain, neighbors=options["neighbors"])


def half_the_range(run: Run) -> Run:
    """A mutant that states half of its range, and all else as it is."""
    return lambda guarantee: run(replace(guarantee, bounded_range=guarantee.bounded_range / 2.0))


def in_blocks(run: Run) -> Run:
    """Where rows would need more than float64 has for all of their entries."""

    def of(guarantee: privacy.Guarantee | None = None) -> Audit:
        with replaced(scan, "KINDS", lambda kinds: (scan.EACH_BLOCK,)):
            return run(guarantee)

    return of


def joint_exp_cases(neighbors: str) -> Iterator[Case]:
    form = lattice(neighbors)
    options = dict(q=[0.25, 0.75], epsilon=4.0)
    for kernel in ("scan", "fft"):
        run = exact("joint_exp", 4, kernel=kernel, **options, **form)
        yield Case(
            "joint_exp",
            neighbors,
            f"kernel {kernel}",
            run,
            {
                "twice the rate": broken(run, *spends("joint_exp", "rate", 2.0)),
                "half the sensitivity": broken(run, privacy.joint_exp, "sensitivity", times(0.5)),
            },
        )
    run = in_blocks(exact("joint_exp", 4, **options, **form))
    mutants = {
        "twice the rate": broken(run, *spends("joint_exp", "rate", 2.0)),
        "half the sensitivity": broken(run, privacy.joint_exp, "sensitivity", times(0.5)),
    }
    yield Case("joint_exp", neighbors, "an exponent for each block of a row", run, mutants)
    run = exact("joint_exp", 4, prior=PRIOR, **options, **form)
    mutants = {
        "twice the rate": broken(run, *spends("joint_exp", "rate", 2.0)),
        "a prior fitted to the records": fitted(dpq.joint_exp_law, **options, **form),
    }
    yield Case("joint_exp", neighbors, "prior", run, mutants)
    run = exact("joint_exp", 3, **options, **form | {"dither": True})
    mutants = {"twice the rate": broken(run, *spends("joint_exp", "rate", 2.0))}
    yield Case("joint_exp", neighbors, "one bit of dither", run, mutants)
    # where the range of the mixture over the dithers may be above that of what is mixed
    for name, records, points, levels in (
        ("5 records, one bit of dither", (0, 0, 1, 2, 2), 4, dict(q=[0.2, 0.8], epsilon=4.0)),
        (
            "7 records, one bit of dither",
            (0, 1, 1, 1, 2, 2, 2),
            4,
            dict(q=[0.35, 1.0], epsilon=6.0),
        ),
    ):
        public = form | dict(bounds=(0, points - 1), domain=range(points), dither=True)
        run = exact("joint_exp", records, **levels, **public)
        mutants = {
            "twice the rate": broken(run, *spends("joint_exp", "rate", 2.0)),
            "half the sensitivity": broken(run, privacy.joint_exp, "sensitivity", times(0.5)),
            "half the range claimed": half_the_range(run),
            "offsets that depend on how many there are": broken(
                run, audit.tables, "_dithered", moved_by_others
            ),
        }
        yield Case("joint_exp", neighbors, name, run, mutants)
    run = exact("joint_exp", 3, max_contributions=2, **options, **form)
    one_record = broken(run, privacy.joint_exp, "check_max_contributions", always(1))
    yield Case(
        "joint_exp", neighbors, "persons of 2 records", run, {"rate of 1 record": one_record}
    )
    run = exact("joint_exp", 4, **options | {"epsilon": 60.0}, **form)
    mutants = {"no tail below 2^-53": broken(run, PathLaw, "log_prob", clamped)}
    yield Case("joint_exp", neighbors, "large epsilon", run, mutants)


def moved_by_others(dithered: Callable[..., Any]) -> Callable[..., Any]:
    """A dither of one bit by which a record more moves the others: no neighbors any more."""

    def found(points: Mapping[int, int], shift: int) -> tuple[int, ...]:
        halves = {2 * point + (times + shift) % 2: times for point, times in points.items()}
        return tuple(sorted(place for place, times in halves.items() for _ in range(times)))

    return found


def depth_and_ties(epsilon: float, q: list[float], neighbors: str) -> Run:
    """`ind_exp` by brute force at the honest rates, by a utility of twice the sensitivity."""
    rates = privacy.ind_exp.calibrate(q, epsilon=epsilon, neighbors=neighbors).rates.tolist()

    def law(column: Any) -> enumeration.Law:
        records = [int(value) for value in column if value == value]

        def score(level: float, o: int) -> float:
            return float(enumeration.depth(records, level, o)) + records.count(o)

        return enumeration.sorted_tuples(
            [
                enumeration.permute_and_flip([rate * score(level, o) for o in range(POINTS)])
                for level, rate in zip(q, rates, strict=True)
            ]
        )

    return exact(law, 4, domain=range(POINTS), neighbors=neighbors)


def ind_exp_cases(neighbors: str) -> Iterator[Case]:
    form = lattice(neighbors)
    q = [0.25, 0.75]
    run = exact("ind_exp", 4, q=q, epsilon=4.0, **form)
    mutants = {
        "twice the rate": broken(run, *spends("ind_exp", "rates", 2.0)),
        "all of epsilon for each level": broken(
            run, privacy.ind_exp, "resolve_epsilon", always(4.0)
        ),
        "depth and ties counted": depth_and_ties(4.0, q, neighbors),
    }
    if neighbors == "add-remove":
        mutants["sensitivity min(q, 1-q)"] = broken(
            run,
            privacy.ind_exp,
            "sensitivities",
            lambda original: lambda q, relation: np.minimum(q, 1.0 - q),
        )
    yield Case("ind_exp", neighbors, "permute-and-flip", run, mutants)
    run = exact("ind_exp", 4, q=q, epsilon=4.0, selection="exponential", **form)
    mutants = {"twice the rate": broken(run, *spends("ind_exp", "rates", 2.0))}
    if neighbors == "swap":
        mutants["permute-and-flip, of no such range"] = broken(
            run, *spends_as("ind_exp", selection="permute-and-flip")
        )
    yield Case("ind_exp", neighbors, "exponential", run, mutants)
    run = exact("ind_exp", 4, q=q, epsilon=4.0, prior=PRIOR, **form)
    no_dither = {name: value for name, value in form.items() if name != "dither"}
    mutants = {
        "twice the rate": broken(run, *spends("ind_exp", "rates", 2.0)),
        "a prior fitted to the records": fitted(dpq.ind_exp_law, q=q, epsilon=4.0, **no_dither),
    }
    yield Case("ind_exp", neighbors, "prior", run, mutants)
    run = exact("ind_exp", 4, q=q, epsilon=1.0, delta=0.01, **form)
    mutants = {
        "twice the rate": broken(run, *spends("ind_exp", "rates", 2.0)),
    }
    yield Case("ind_exp", neighbors, "delta 0.01", run, mutants)
    run = exact("ind_exp", 4, q=q, rho=0.5, **form)
    mutants = {"twice the rate": broken(run, *spends("ind_exp", "rates", 2.0))}
    yield Case("ind_exp", neighbors, "rho 0.5", run, mutants)
    run = exact("ind_exp", 4, q=q, epsilon=60.0, **form)
    mutants = {"no tail below 2^-53": broken(run, DepthLaw, "log_prob", clamped)}
    yield Case("ind_exp", neighbors, "large epsilon", run, mutants)


def interval_law(q: list[float], neighbors: str, **request: Any) -> Callable[[Any], Any]:
    """The law of values of `ind_exp` and the intervals around them, by the code's own parts."""
    levels, asked = privacy.levels.Levels(q), privacy.intervals.Request.of(**request)
    form = dict(bounds=(0, POINTS - 1), resolution=1, dither=False, neighbors=neighbors)

    def law(column: Any) -> enumeration.Law:
        own, _ = privacy.intervals.split(asked, 4.0, 0.0, None, neighbors)
        values = dpq.ind_exp_law(column, q, epsilon=own["epsilon"], **form)
        made = privacy.ind_exp.calibrate(levels, epsilon=own["epsilon"], neighbors=neighbors)
        # of many records, so that all ends are searched for
        search = privacy.intervals.calibrate(
            made, levels, asked, epsilon=4.0, neighbors=neighbors, expected_n=10**6
        ).search
        order = Sample.of(column, form["bounds"], resolution=1, dither=False).coarse()
        found: dict[Any, list[float]] = {}
        for pair in combinations_with_replacement(range(POINTS), len(q)):
            around = ends.nested(order, np.array(pair, dtype=np.float64), search, order.lattice)
            halt = ends.halting_law(around, search)
            log_p = log_halts(halt)[1:].tolist()
            of_value = values.log_prob(np.array(pair, dtype=np.float64))
            for low, high, log_halt in zip(around.low.T, around.high.T, log_p, strict=True):
                key = (*pair, *low.tolist(), *high.tolist())
                found.setdefault(key, []).append(of_value + log_halt)
        return {key: enumeration.log_sum(terms) for key, terms in found.items()}

    return law


def with_search(change: Callable[[Any, Any], Any]) -> Callable[[Callable], Callable]:
    """Candidates of a search that is changed by the records."""
    return lambda original: (
        lambda order, values, spent, prior: original(order, values, change(order, spent), prior)
    )


def margin_by_records(original: Callable) -> Callable:
    """A margin that grows with the number of records."""
    return lambda around, spent: original(around, spent._replace(margin=4.0 * around.n))


def side_by_records(order: Any, spent: Any) -> Any:
    """The lower ends are searched for where most records are low."""
    return spent._replace(below=np.full(spent.q.size, order.rank_of(1) > order.n / 2))


def unsplit(original: Callable) -> Callable:
    """All of the budget for the values, and its part for the ends on top."""
    return lambda request, epsilon, delta, rho, *person: (
        dict(epsilon=epsilon, delta=delta, rho=rho),
        original(request, epsilon, delta, rho, *person)[1],
    )


def interval_cases(neighbors: str) -> Iterator[Case]:
    for name, q, covers in (
        ("with an interval", [0.25], "sample"),
        ("with intervals for a population", [0.25, 0.75], "population"),
    ):
        request = dict(confidence=0.8, covers=covers, interval_share=0.8)
        said = dict(q=q, epsilon=4.0, neighbors=neighbors, **request)
        promise = partial(privacy.guarantee, "ind_exp", **said)
        law = interval_law(q, neighbors, **request)
        run = exact(law, 3, promise, domain=range(POINTS), neighbors=neighbors)
        mutants = {
            "a tenth of the noise": broken(run, privacy.intervals, "check_steps", times(10.0)),
            "margin by the records": broken(run, ends, "halting_law", margin_by_records),
            "a side chosen by the records": broken(
                run, ends, "nested", with_search(side_by_records)
            ),
        }
        if covers == "sample":
            mutants["all of epsilon for the value, too"] = broken(
                run, privacy.intervals, "split", unsplit
            )
        yield Case("ind_exp", neighbors, name, run, mutants)


def recursive_mutant(epsilon: float, neighbors: str, **fault: bool) -> Run:
    """`approx_quantiles` by brute force, with a fault, at the honest rates."""
    calibration = privacy.approx_quantiles.calibrate(Q, epsilon=epsilon, neighbors=neighbors)
    rates = np.empty(len(Q))
    rates[[step.middle for step in splits(np.array(Q))]] = calibration.steps

    def law(column: Any) -> enumeration.Law:
        records = [int(value) for value in column if value == value]
        return enumeration.approx_quantiles(records, POINTS, Q, rates, **fault)

    return exact(law, 4, domain=range(POINTS), neighbors=neighbors)


def approx_quantiles_cases(neighbors: str) -> Iterator[Case]:
    form = lattice(neighbors)
    run = exact("approx_quantiles", 4, q=Q, epsilon=10.0, **form)
    mutants = {
        "one of two depths charged": broken(run, *spends("approx_quantiles", "steps", 2.0)),
    }
    if neighbors == "add-remove":
        mutants["fixed targets"] = recursive_mutant(10.0, neighbors, fixed=True)
        mutants["ties on both sides"] = recursive_mutant(10.0, neighbors, twice=True)
    yield Case("approx_quantiles", neighbors, "pure", run, mutants)
    run = exact("approx_quantiles", 4, q=[0.3], epsilon=2.0, prior=PRIOR, **form)
    mutants = {
        "twice the rate": broken(run, *spends("approx_quantiles", "steps", 2.0)),
        "a prior fitted to the records": fitted(
            dpq.approx_quantiles_law, q=[0.3], epsilon=2.0, **form
        ),
    }
    yield Case("approx_quantiles", neighbors, "prior", run, mutants)
    run = exact("approx_quantiles", 3, q=Q, rho=0.5, **form)
    mutants = {"twice the rate": broken(run, *spends("approx_quantiles", "steps", 2.0))}
    yield Case("approx_quantiles", neighbors, "rho 0.5", run, mutants)
    run = exact("approx_quantiles", 2, q=Q, epsilon=10.0, **form | {"dither": True})
    mutants = {"thrice the rate": broken(run, *spends("approx_quantiles", "steps", 3.0))}
    yield Case("approx_quantiles", neighbors, "one bit of dither", run, mutants)
    run = exact("approx_quantiles", 4, q=Q, epsilon=120.0, **form)
    mutants = {"no tail below 2^-53": broken(run, PathLaw, "log_prob", clamped)}
    yield Case("approx_quantiles", neighbors, "large epsilon", run, mutants)
    run = exact(
        "approx_quantiles",
        3,
        q=Q,
        epsilon=4.0,
        base="unbounded",
        bounds=(0.0, 6.0),
        beta=2.0,
        neighbors=neighbors,
        domain=[0.0, 0.5, 2.0, 5.0],
    )
    mutants = {
        "twice the epsilons": broken(run, *spends("unbounded_quantile", "step_epsilons", 2.0))
    }
    yield Case("approx_quantiles", neighbors, "base unbounded", run, mutants)


# Which way is searched, with few candidates, and records between them.
WAYS = {
    "up": (dict(lower=0.0, upper=6.0, beta=2.0), [0.0, 0.5, 2.0]),
    "down": (dict(lower=None, upper=0.0, beta=1e50), [-1e60, -1e10, 0.0]),
    "both ways": (dict(lower=None, beta=1e50), [-1e60, 0.5, 1e60]),
    "inverted": (dict(invert=True, beta=1.2), [0.0, 0.5, 2.0]),
}


def stages_of(**spent: Callable[..., Any]) -> Callable[[Callable], Callable]:
    """Two stages of which some spend what a function of the honest ones and of the call says."""

    def change(calibrate: Callable) -> Callable:
        def calibrated(*arguments: Any, **options: Any) -> Any:
            made = calibrate(*arguments, **options)
            given = options | {"q": arguments[0]}
            return made._replace(**{name: of(made, given) for name, of in spent.items()})

        return calibrated

    return change


def all_of(made: Any, options: dict[str, Any], stage: str) -> Any:
    """A stage with the budget of both."""
    person, budget = (
        {name: options.get(name, other) for name, other in defaults.items()}
        for defaults in (
            dict(neighbors="swap", max_contributions=1),
            dict(epsilon=None, rho=None),
        )
    )
    if stage == "pilot":
        epsilon = resolve_epsilon(**budget)
        return privacy.joint_exp.calibrate(made.design.levels, epsilon=epsilon, **person)
    return getattr(privacy, made.design.main).calibrate(options["q"], **budget, **person)


def learned_from_records(q: Any, options: dict[str, Any]) -> Run:
    """A mutant whose second stage goes by quantiles of the records, not by the pilot's."""
    domain = options["domain"]
    form = {name: value for name, value in options.items() if name not in ("domain", "dither")}

    def law(column: Any) -> enumeration.Law:
        made = dpq.two_stage_law(column, q, **form)
        levels = made.spent.design.levels.values
        kept = np.sort(column[~np.isnan(column)])
        own = (
            kept[np.maximum(np.ceil(levels * kept.size).astype(int) - 1, 0)] if kept.size else None
        )
        after = made.given([0.0] * levels.size if own is None else own)
        pilots = combinations_with_replacement(map(float, domain), levels.size)
        outputs = list(combinations_with_replacement(map(float, domain), len(q)))
        return {
            (*answers, *o): made.pilot.log_prob(answers) + after.log_prob(o)
            for answers in pilots
            for o in outputs
        }

    return exact(law, 4, domain=domain, neighbors=options["neighbors"])


def two_stage_cases(neighbors: str) -> Iterator[Case]:
    form = lattice(neighbors) | dict(expected_n=4)
    # of several levels both stages seldom lose most for the same neighbors
    faults = {
        "the pilot has all of the budget": ("pilot",),
        "a pilot that is not charged": ("main",),
        "each stage has all of the budget": ("pilot", "main"),
    }
    few = {name: faults[name] for name in list(faults)[2:]}
    for name, q, budget, made in (
        ("one level, epsilon 16", [0.5], dict(epsilon=16.0), faults),
        ("one level, rho 8", [0.5], dict(rho=8.0), few),
        ("two levels, epsilon 16", [0.25, 0.75], dict(epsilon=16.0), few),
    ):
        run = exact("two_stage", 4, q=q, **budget, **form)
        mutants = {
            fault: broken(
                run,
                privacy.two_stage,
                "calibrate",
                stages_of(**{stage: partial(all_of, stage=stage) for stage in stages}),
            )
            for fault, stages in made.items()
        }
        yield Case("two_stage", neighbors, name, run, mutants)
    for name, q, epsilon in (
        ("one level, epsilon 1", [0.5], 1.0),
        ("two levels, epsilon 4", [0.3, 0.9], 4.0),
    ):
        options = dict(epsilon=epsilon) | form
        mutants = {"a prior learned from the records": learned_from_records(q, options)}
        yield Case("two_stage", neighbors, name, exact("two_stage", 4, q=q, **options), mutants)
    run = exact("two_stage", 3, q=[0.5], epsilon=4.0, max_contributions=2, **form)
    one_record = with_arguments(max_contributions=1)
    mutants = {"rates of 1 record": broken(run, privacy.two_stage, "calibrate", one_record)}
    yield Case("two_stage", neighbors, "persons of 2 records", run, mutants)


def one_way(original: Callable) -> Callable:
    """The costs of a search both ways, as if it were one."""
    return lambda level, relation, way, fraction: original(level, relation, "up", fraction)


def unbounded_quantile_cases(neighbors: str) -> Iterator[Case]:
    for name, (way, domain) in WAYS.items():
        q = 0.2 if name == "up" else 0.5
        options = dict(q=q, epsilon=2.0, neighbors=neighbors, domain=domain)
        run = exact("unbounded_quantile", 3, **options, **way)
        mutants = {
            "twice the epsilons": broken(run, *spends("unbounded_quantile", "step_epsilons", 2.0))
        }
        if name == "both ways":
            mutants["one way not charged"] = broken(
                run,
                privacy.unbounded_quantile,
                "costs_of",
                one_way,
            )
        yield Case("unbounded_quantile", neighbors, name, run, mutants)


# --- Queries


def below(column: Any) -> list[int]:
    """Monotonic: how many records are below each point."""
    return [int((column < point).sum()) for point in range(1, POINTS + 1)]


def counted(column: Any) -> list[int]:
    """Not monotonic under "swap": how many records are at each point."""
    return [int((column == point).sum()) for point in range(POINTS)]


def counted_twice(column: Any) -> list[int]:
    """As many queries for each of two halts."""
    return 2 * counted(column)


def above_threshold_cases(neighbors: str) -> Iterator[Case]:
    budget = dict(threshold=1.5, epsilon1=1.0, epsilon2=1.0)
    form = dict(neighbors=neighbors, domain=range(POINTS))
    for noise in ("exponential", "laplace", "gumbel"):
        run = exact(
            "above_threshold", 4, queries=below, monotonic=True, noise=noise, **budget, **form
        )
        mutants = {"a quarter of the noise": broken(run, *spends("above_threshold", "rates", 4.0))}
        yield Case("above_threshold", neighbors, f"monotonic, {noise}", run, mutants)
    run = exact("above_threshold", 4, queries=counted, **budget, **form)
    mutants = {
        "half the noise": broken(run, *spends("above_threshold", "rates", 2.0)),
    }
    if neighbors == "swap":
        monotonic = privacy.guarantee(
            "above_threshold", epsilon1=1.0, epsilon2=1.0, monotonic=True, neighbors=neighbors
        )
        mutants["said to be monotonic"] = lambda guarantee: run(monotonic)
    yield Case("above_threshold", neighbors, "not monotonic", run, mutants)
    run = exact("sparse_vector", 3, queries=below, halts=2, monotonic=True, **budget, **form)
    mutants = {"a quarter of the noise": broken(run, *spends("above_threshold", "rates", 4.0))}
    yield Case("sparse_vector", neighbors, "monotonic, 2 halts", run, mutants)
    run = exact("sparse_vector", 3, queries=counted_twice, halts=2, **budget, **form)
    one = privacy.guarantee("above_threshold", epsilon1=1.0, epsilon2=1.0, neighbors=neighbors)
    mutants = {
        "half the noise": broken(run, *spends("above_threshold", "rates", 2.0)),
        "one halt charged": lambda guarantee: run(one),
    }
    yield Case("sparse_vector", neighbors, "not monotonic, 2 halts", run, mutants)


# --- Counts, sums and means


def coarse_noise(scale: Fraction) -> Callable[[Any], dict[int, float]]:
    """A count with the whole part of -scale ln(U) as noise, for a U of 53 bits."""
    reach = 40 * scale

    def log_prob(k: int) -> float:
        # how many of the 2^53 numbers give |k|; the sign is drawn
        more, most = (math.floor(2.0**53 * math.exp(-i / scale)) for i in (abs(k) + 1, abs(k)))
        share = (most - more) / 2.0**53 / (1.0 if k == 0 else 2.0)
        return math.log(share) if share else -math.inf

    def law(column: Any) -> dict[int, float]:
        center = int((column == column).sum())
        return {k: log_prob(k - center) for k in range(-math.ceil(reach), math.ceil(reach))}

    return law


def float_sum(column: Any) -> dict[float, float]:
    """A sum of floats as they are, with whole numbers as noise."""
    center = float(np.nansum(column))
    return {center + k: float(discrete_laplace_log_prob(k, 4)) for k in range(-40, 41)}


# Nothing is missing, says the column, whatever is in it.
BLIND = property(lambda self: True, lambda self, value: None)


def blind(run: Run) -> Run:
    return broken(run, Records, "n_is_public", lambda original: BLIND)


def known_by_type(original: Callable) -> Callable:
    """None are missing from a column of integers: but one missing record makes it floats."""

    def of(column: Any, **form: Any) -> Records:
        records = original(column, **form)
        records.n_is_public = column.dtype.kind == "i"
        return records

    return of


def of_sensitivity(sensitivity: int) -> tuple[Any, str, Callable]:
    """The scale of a sum for another sensitivity than its own."""

    def change(original: Callable) -> Callable:
        def scale(self: privacy.aggregates.Calibration, *clip: Any) -> Fraction:
            return privacy.aggregates.laplace_scale(sensitivity, self.noise_epsilon, self.k)

        return scale

    return privacy.aggregates.Calibration, "sum_scale", change


def of_twice_epsilon(original: Callable) -> Callable:
    """Half of twice the epsilon for the clip, and half of it for the noise."""
    return wraps(original)(lambda epsilon, **rest: original(epsilon=2.0 * epsilon, **rest))


def all_for_each(original: Callable) -> Callable:
    """A pilot, and what follows spends all of epsilon."""

    def steps(self: privacy.aggregates.Calibration, *known: Any) -> tuple[Any, ...]:
        *pilot, last = original(self, *known)
        return *pilot, last._replace(epsilon=self.noise_epsilon)

    return steps


def as_in_the_middle(original: Callable) -> Callable:
    """Scales of a mean that forget how far from the middle its sum is taken about."""

    def scales(self: Any, width: int, missing: bool, aside: int, step: Any) -> Any:
        return original(self, width, missing, 0, step)

    return scales


def least_for_nothing(original: Callable) -> Callable:
    """Scales of a mean whose sum does not pay for the least part of the number of records."""

    def scales(self: Any, width: int, missing: bool, aside: int, step: Any) -> Any:
        plain = privacy.aggregates.laplace_scale(2 * width, step.epsilon, self.k)
        return plain, original(self, width, missing, aside, step)[1]

    return scales


def about_an_end(original: Callable) -> Callable:
    """A sum about the lower end, with the noise of one about the middle."""

    def pair(self: Mean, total: int, number: int) -> Any:
        return original(replace(self, about=2 * self.clip.first), total, number)

    return pair


def half_for_n(original: Callable) -> Callable:
    """Scales of a mean with half the noise for the number of records."""

    def scales(*known: Any) -> Any:
        first, second = original(*known)
        return first, second / 2

    return scales


def of_rho(run: Run, rho: float) -> Callable[[privacy.Guarantee], Audit]:
    """The mechanism, held to another rho."""
    return lambda guarantee: run(replace(guarantee, rho=rho))


def of_the_middle(original: Callable) -> Callable:
    """Squares are thought to be no larger than those about the middle of a clip."""

    def squares(self: Spread, moments: Any, twice: int | None) -> tuple[Mean, int]:
        mean, total = original(self, moments, twice)
        largest = self.clip.width**2
        return replace(mean, clip=replace(mean.clip, last=largest), about=largest), total

    return squares


def all_for_both(original: Callable) -> Callable:
    """All of the budget is for a center, and again for the squares about it."""

    def parts(self: privacy.aggregates.Calibration, expected_n: int | None) -> Any:
        center, _ = original(self, expected_n)
        return (self.noise_epsilon if center else 0.0), self.noise_epsilon

    return parts


def of_the_records(original: Callable) -> Callable:
    """The aim is off by another number of records where one of them is high."""

    def runs(self: CandidateCounts, cuts: Any, level: float, shift: float, start: int) -> Any:
        high = self.total - int(self._below[0])
        return original(self, cuts, level, shift - 3.0 * high, start)

    return runs


def aggregate_cases(neighbors: str) -> Iterator[Case]:
    form = dict(neighbors=neighbors, epsilon=1.0)
    run = exact("count", 3, domain=[0.0, 1.0], **form)
    half = {
        "half the noise": broken(run, privacy.aggregates, "laplace_scale", times(Fraction(1, 2)))
    }
    coarse = exact(coarse_noise(Fraction(1)), 3, domain=[0.0, 1.0], neighbors=neighbors)
    mutants = half | {"noise of 53-bit uniforms": coarse}
    if neighbors == "swap":
        mutants["number said to be public"] = broken(
            run, privacy.aggregates, "laplace_scale", always(Fraction(0))
        )
    yield Case("count", neighbors, "", run, mutants)

    public = dict(q=None, resolution=1, **form)
    for name in ("sum", "mean"):
        run = exact(name, 3, domain=[-1.0, 1.0, 3.0], lower=-1, upper=3, **public)
        mutants = {
            "half the noise": broken(
                run, privacy.aggregates, "laplace_scale", times(Fraction(1, 2))
            )
        }
        if name == "sum":
            mutants["sum of floats"] = exact(
                float_sum, 3, domain=[0.1, 0.2, 0.7], neighbors=neighbors
            )
        if name == "sum" and neighbors == "swap":
            mutants["sensitivity of add-remove"] = broken(run, *of_sensitivity(3))
        if name == "mean" and neighbors == "swap":
            mutants["missing records ignored"] = blind(run)
            mutants["half the noise for n"] = broken(
                run, privacy.aggregates.Calibration, "mean_scales", half_for_n
            )
            mutants["a sum about an end"] = broken(run, Mean, "pair", about_an_end)
        yield Case(name, neighbors, "public clip", run, mutants)

    if neighbors == "swap":
        # so much that three rows have a pilot
        much = dict(q=None, lower=0, upper=6, resolution=1, neighbors=neighbors, epsilon=400.0)
        run = exact("mean", 3, domain=[0.0, 6.0], **much)
        changed = partial(broken, run, privacy.aggregates.Calibration)
        mutants = {
            "all of epsilon for each step": changed("mean_steps", all_for_each),
            "noise of the middle for n": changed("mean_scales", as_in_the_middle),
            "half the noise for n": changed("mean_scales", half_for_n),
            "n near an end for nothing": changed("mean_scales", least_for_nothing),
        }
        yield Case("mean", neighbors, "public clip, pilot", run, mutants)

    few = dict(lower=0, upper=3, expected_n=3, **public)
    for name in ("var", "std") if neighbors == "add-remove" else ("var",):
        run = exact(name, 3, domain=[0.0, 1.0, 3.0], **few)
        half = broken(run, privacy.aggregates, "laplace_scale", times(Fraction(1, 2)))
        middle = broken(run, Spread, "squares", of_the_middle)
        mutants = {"half the noise": half, "squares of the middle": middle}
        yield Case(name, neighbors, "public clip, about the mean", run, mutants)
    if neighbors == "swap":  # so much that two rows have a center
        much = dict(q=None, lower=0, upper=2, resolution=1, neighbors=neighbors, epsilon=16.0)
        run = exact("std", 2, domain=[0.0, 1.0, 2.0], ddof=1, **much)
        changed = partial(broken, run, privacy.aggregates.Calibration)
        mutants = {
            "all of epsilon for each part": changed("spread_parts", all_for_both),
            "squares of the middle": broken(run, Spread, "squares", of_the_middle),
            "half the noise for n": changed("mean_scales", half_for_n),
        }
        yield Case("std", neighbors, "public clip, about a center", run, mutants)

    run = exact("sum", 3, domain=[2.0, 3.0], lower=2, upper=3, **public)
    if neighbors == "swap":
        mutants = {"missing records ignored": blind(run)}
    else:
        mutants = {"sensitivity of swap": broken(run, *of_sensitivity(1))}
    yield Case("sum", neighbors, "clip above zero", run, mutants)
    for name in ("sum", "mean"):
        clip = dict(lower=1, upper=4)
        run = exact(name, 3, domain=[0.0, 2.0, 5.0], nan_policy="raise", **clip, **public)
        mutants = {
            "half the noise": broken(
                run, privacy.aggregates, "laplace_scale", times(Fraction(1, 2))
            )
        }
        if name == "sum" and neighbors == "add-remove":
            mutants["sensitivity of swap"] = broken(run, *of_sensitivity(3))
        yield Case(name, neighbors, "none missing", run, mutants)
        if neighbors == "swap":
            run = exact(name, 3, domain=[0, 2, 5], dtype=np.int64, **clip, **public)
            mutants = {"type says none missing": broken(run, Records, "of", known_by_type)}
            yield Case(name, neighbors, "integers, or floats with NaN", run, mutants)
        # a width of two, of which add-remove counts one as its sensitivity
        run = exact(name, 3, domain=[-1.0, 0.0, 1.0], lower=-1, upper=1, **public)
        mutants = {"rho of continuous noise": of_rho(run, privacy.laplace_rho(1.0))}
        yield Case(name, neighbors, "narrow clip", run, mutants)
        private = form | dict(upper=6.0, beta=2.0, resolution=1)
        for setting, aim in (("private clip", dict(q=0.9)), ("private clip, few above", {})):
            run = exact(name, 3, domain=[0.0, 2.0, 5.0], **private, **aim)
            mutants = {
                "all of epsilon for each step": broken(
                    run, privacy.aggregates, "calibrate", of_twice_epsilon
                ),
                "threshold of the records": broken(run, CandidateCounts, "_runs", of_the_records),
            }
            yield Case(name, neighbors, setting, run, mutants)


# --- Trees of counts


def tree_of(release: Callable[..., Any], column: Any, **options: Any) -> AggTree:
    """The tree that a release is read off, with zeros for noise: its exact counts.

    Of "adaptive", which halves all runs that it can, here on two levels.
    """
    halved = []
    combined = cdf._least_squares

    def nothing(self: CountNoise, size: int, rng: Any) -> np.ndarray:
        return np.zeros(size, dtype=np.int64)

    def kept(noisy_counts: list, split: list, total: int | None) -> list[float]:
        first, *others = np.reshape(noisy_counts[1:], (-1, 2))
        others = [half for _, half in sorted(zip(split[1:], others, strict=True))]
        halved.append(dict(nodes=[first, np.concatenate(others)], total=total))
        return combined(noisy_counts, split, total)

    with (
        mock.patch.object(Geometric, "draw", nothing),
        mock.patch.object(Gaussian, "draw", nothing),
        mock.patch.object(cdf, "_of_tree", lambda tree, **rest: tree),
        mock.patch.object(cdf, "_least_squares", kept),
    ):
        found = release(column, rng=0, **options)
    if halved:
        return AggTree(**halved[0], bounds=options["bounds"], noise=found._noise.noise)
    return found


def node_law(center: int, noise: CountNoise, most: int) -> np.ndarray:
    """Log-probabilities of one noisy count, for counts of 0, ..., `most` records.

    Of Laplace noise, all at or below 0 and all at or above `most` have one ratio: they are one
    output each. Of Gaussian noise, all that come up.
    """
    if isinstance(noise, Gaussian):
        reach = math.ceil(10 * noise.scale)
        return discrete_gaussian_log_prob(np.arange(-reach, most + reach + 1) - center, noise.scale)
    rate = float(1 / noise.scale)
    tails = [-distance * rate - math.log1p(math.exp(-rate)) for distance in (center, most - center)]
    inside = discrete_laplace_log_prob(np.arange(1, most) - center, noise.scale)
    return np.concatenate((tails[:1], inside, tails[1:]))


def tree_audit(
    release: Callable[..., Any],
    most: int,
    said: bool = False,
    points: int | None = None,
    **options: Any,
) -> Run:
    """Of all noisy counts together, and of the number of records where it is public.

    With `said` it is public although it must not be.
    """
    mechanism = "cdf" if release is cdf.cdf else "agg_tree"
    promised = {"epsilon", "rho", "method", "noise", "height", "branching", "bins", "neighbors"}
    public = {name: options[name] for name in promised & set(options)}
    promise = partial(privacy.guarantee, mechanism, points=points, **public)
    options["bounds"] = (0.0, 4.0)
    policy = {name: options[name] for name in {"nan_policy"} & set(options)}

    def law(column: Any, **parameters: Any) -> dict[tuple, float]:
        tree = tree_of(release, column, **options)
        log_prob = np.zeros(1)
        for center in np.concatenate(tree.nodes).tolist():
            one = node_law(int(center), tree.noise, most)
            log_prob = np.add.outer(log_prob, one).ravel()
        root = int(tree.nodes[0].sum()) if said or tree.total_known else None
        return {(root, i): value for i, value in enumerate(log_prob.tolist())}

    places = dict(domain=[0.5, 1.5, 2.5, 3.5], neighbors=options["neighbors"])
    return exact(law, most, promise, **places, **policy)


def a_level_less(original: Callable) -> Callable:
    """The sensitivity of a tree without its leaves."""
    return lambda height, *rest: original(height - 1, *rest)


def of_add_remove(original: Callable) -> Callable:
    return lambda height, relation, *rest: original(height, relation_of("add-remove"), *rest)


def by_number_kept(original: Callable) -> Callable:
    """A shape that follows a number of records which is private."""
    return lambda x, *rest: (1, 10**6)[np.count_nonzero(~np.isnan(np.asarray(x, float))) % 2]


def tree_cases(neighbors: str) -> Iterator[Case]:
    swap = neighbors == "swap"

    def case(mechanism: str, setting: str, levels: int, most: int, **options: Any) -> Case:
        release = cdf.cdf if mechanism == "cdf" else AggTree.of
        options["neighbors"] = neighbors
        run = tree_audit(release, most, **options)
        mutants = {"half the noise": broken(run, *spends(mechanism, "noise", Fraction(1, 2)))}
        if levels > 1:
            mutants["a level not charged"] = broken(
                run, privacy.agg_tree, "sensitivities", a_level_less
            )
        if swap:
            mutants["sensitivity of add-remove"] = broken(
                run, privacy.agg_tree, "sensitivities", of_add_remove
            )
        if swap and "nan_policy" not in options:
            mutants["missing records ignored"] = blind(run)
        if not swap:
            mutants["number said to be public"] = tree_audit(release, most, said=True, **options)
        return Case(mechanism, neighbors, setting, run, mutants)

    tree = dict(epsilon=1.0, height=2, branching=2)
    yield case("agg_tree", "2 levels", 2, 2, **tree)
    yield case("agg_tree", "none missing", 2, 2, nan_policy="raise", **tree)
    # of four points: a leaf for each
    by_rule = dict(epsilon=1.0, branching=2, resolution=4 / 3, points=4)
    chosen = case("agg_tree", "height by the rule", 2, 2, **by_rule)
    number = broken(chosen.run, _checks, "public_length", by_number_kept)
    yield chosen._replace(mutants=chosen.mutants | {"shape by a private number": number})
    gaussian = dict(rho=0.5, noise="gaussian", height=1, branching=2)
    yield case("agg_tree", "rho 0.5", 1, 2, **gaussian)
    yield case("cdf", "binary_tree", 2, 2, epsilon=1.0, method="binary_tree", bins=4)
    yield case("cdf", "histogram", 1, 3, epsilon=1.0, method="histogram", bins=4)
    yield case("cdf", "adaptive, all halves", 2, 2, epsilon=1.0, method="adaptive", bins=4)
    none_missing = dict(nan_policy="raise", method="adaptive", bins=4)
    yield case("cdf", "adaptive, none missing", 2, 2, epsilon=1.0, **none_missing)


# --- Weighted sums of counts

# In place of 512, 256 and 192: a law that can be written out.
SMALL_FACTOR = np.array([8, 4, 3])


def sums_audit(said: bool = False, **options: Any) -> Run:
    """Of all noisy weighted sums together, and of the number of records where it is public."""
    options |= dict(method="factorized", bins=SMALL_FACTOR.size)
    seen: dict[str, Any] = {}

    def nothing(self: CountNoise, size: int, rng: Any) -> np.ndarray:
        seen["noise"] = self
        return np.zeros(size, dtype=np.int64)

    def kept(leaves: Any, at: Any, below: np.ndarray, public: bool, error: Any) -> None:
        seen["n"] = int(below[-1]) if public else None

    def as_they_are(sums: np.ndarray) -> np.ndarray:
        seen["sums"] = sums.tolist()
        return sums

    def law(column: Any, **parameters: Any) -> dict[tuple, float]:
        with (
            mock.patch.object(privacy.cdf, "prefix_factor", lambda bins: SMALL_FACTOR),
            mock.patch.object(privacy.cdf, "_worst_change", privacy.cdf._worst_change.__wrapped__),
            mock.patch.object(Gaussian, "draw", nothing),
            mock.patch.object(cdf, "numbers_below", as_they_are),
            mock.patch.object(cdf, "_noise_of_sums", lambda *rest: None),
            mock.patch.object(cdf, "_of_counts", kept),
        ):
            cdf.cdf(column, rng=0, bounds=(0.0, 3.0), **options)
        log_prob = np.zeros(1)
        for center in seen["sums"]:
            one = node_law(center, seen["noise"], int(SMALL_FACTOR[0]))
            log_prob = np.add.outer(log_prob, one).ravel()
        n = np.size(column) if said else seen["n"]
        return {(n, i): value for i, value in enumerate(log_prob.tolist())}

    def run(guarantee: privacy.Guarantee | None = None) -> Audit:
        promised = guarantee or privacy.guarantee("cdf", **options)
        relation = dict(neighbors=options["neighbors"], guarantee=promised)
        return audit.exact(law, 1, domain=[0.5, 1.5, 2.5], **relation)

    return run


def sums_cases(neighbors: str) -> Iterator[Case]:
    options = dict(rho=52.5, neighbors=neighbors)
    run = sums_audit(**options)
    target = privacy.cdf, "factorized_squared"
    mutants = {
        "half the noise": broken(run, *spends("cdf", "noise", Fraction(1, 2))),
        "half the sensitivity": broken(
            run, *target, lambda original: lambda *shape: -(-original(*shape) // 4)
        ),
    }
    if neighbors == "swap":
        mutants["sensitivity of add-remove"] = broken(
            run,
            *target,
            lambda original: lambda bins, relation, k: original(bins, relation_of("add-remove"), k),
        )
        mutants["missing records ignored"] = blind(run)
    else:
        mutants["number said to be public"] = sums_audit(said=True, **options)
    yield Case("cdf", neighbors, "factorized", run, mutants)


# --- Quantiles and counts plus normal or log-normal noise

# Places of a standard normal variate for sums in its place: nothing is left out, and such sums of
# a smooth function are right to 1e-14.
NORMAL = np.arange(-12.0, 12.0, 0.03125)
NORMAL_WEIGHTS = np.exp(-(NORMAL**2) / 2.0) / np.exp(-(NORMAL**2) / 2.0).sum()

FINE = 16  # lattice points from one record to the next

Above = Callable[[np.ndarray], np.ndarray]


def log_normal_above(sigma: float) -> Above:
    """P[X exp(sigma Y) > z] for Laplace X and normal Y."""

    def above(z: np.ndarray) -> np.ndarray:
        laplace = np.exp(-np.abs(z)[..., None] * np.exp(-sigma * NORMAL)) @ NORMAL_WEIGHTS / 2.0
        return np.where(z < 0.0, 1.0 - laplace, laplace)

    return above


def normal_above(z: np.ndarray) -> np.ndarray:
    return ndtr(-z)


def rounded(center: float, scale: float, above: Above, first: int, last: int) -> np.ndarray:
    """Log-probabilities of the integers from first to last for center + scale Z, clamped."""
    with np.errstate(divide="ignore"):  # a mutant may have no noise
        edges = (np.arange(first, last) + 0.5 - center) / scale
    # differences of the smaller tails keep their digits
    lower, upper = above(-edges), above(edges)
    inside = np.where(edges[:-1] > 0.0, upper[:-1] - upper[1:], lower[1:] - lower[:-1])
    with np.errstate(divide="ignore"):
        return np.log(np.concatenate((lower[:1], inside, upper[-1:])))


def together(each: list[np.ndarray]) -> dict[int, float]:
    """The law of independent outputs."""
    log_prob = np.zeros(1)
    for one in each:
        log_prob = np.add.outer(log_prob, one).ravel()
    return dict(enumerate(log_prob.tolist()))


def order_of(column: np.ndarray) -> Any:
    form = dict(bounds=(0, POINTS - 1), resolution=1 / FINE, dither=False)
    return Sample.of(column, **form).order(np.random.default_rng(0))


def smooth_law(column: np.ndarray, q: list[float], t: float, noise: tuple) -> dict[int, float]:
    """Noise of smooth sensitivity on each level; before sorting, which loses nothing."""
    above, log_scale = noise
    order, each = order_of(column), []
    for level in q:
        found = smooth.smooth_sensitivity(order, level, np.array([t]))
        scale = math.exp(float(found.log_smooth[0]) - log_scale)
        each.append(rounded(found.center, scale, above, 0, FINE * (POINTS - 1)))
    return together(each)


def csmooth_law(column: np.ndarray, q: list[float], rho: float, share: float) -> dict[int, float]:
    epsilon = privacy.csmooth.epsilon_each(len(q), rho)
    sigma, log_scale = privacy.csmooth.shape_of(share * epsilon, epsilon)
    return smooth_law(column, q, share * epsilon, (log_normal_above(sigma), log_scale))


def smooth_gaussian_law(column: np.ndarray, epsilon: float, delta: float) -> dict[int, float]:
    budget = privacy.cdf.budget_of_level(1, epsilon, delta)
    beta, log_alpha = privacy.cdf.smooth_gaussian_scale(*budget)
    return smooth_law(column, [0.5], beta, (normal_above, log_alpha))


def gaussian_law(
    column: np.ndarray, neighbors: str, levels: int, bins: int | None, **budget: Any
) -> dict[int, float]:
    squared = privacy.cdf.gaussian_squared(levels, bins, relation_of(neighbors))
    sigma = privacy.gaussian_sigma(squared, **budget)
    if bins is None:
        # far beyond any smoothness that matters: the order statistics alone
        steep, order = np.array([smooth.STEEP]), order_of(column)
        quantiles = [(j + 1) / (levels + 1) for j in range(levels)]
        centers = [smooth.smooth_sensitivity(order, q, steep).center for q in quantiles]
        last = FINE * (POINTS - 1)
        return together([rounded(c, last * sigma, normal_above, 0, last) for c in centers])
    counts = np.histogram(column, bins=bins, range=(0, POINTS - 1))[0]
    reach = math.ceil(8.0 * sigma) + counts.size
    return together([rounded(c, sigma, normal_above, -reach, reach) for c in counts.tolist()])


def normal_cases(neighbors: str) -> Iterator[Case]:
    """Every noise on order statistics, and the normal noise on counts.

    Their laws are stated here anew from the rank, the smooth sensitivity and the scale that the
    package gives; what draws the noise has tests of its own.
    """
    relation = dict(neighbors=neighbors)

    def case(mechanism: str, setting: str, law: Any, said: dict, mutants: dict, **options: Any):
        promise = partial(privacy.guarantee, mechanism, **said, **relation)
        run = exact(law, 4, promise, domain=range(POINTS), **relation, **options)
        made = {name: broken(run, *fault) for name, fault in mutants.items()}
        seen = {smooth_gaussian_law: 0.2, csmooth_law: 0.9}.get(law, 0.3)
        return Case(mechanism, neighbors, setting, run, made, part_seen=seen)

    two_thirds = privacy.csmooth, "shape_of", less_noise(2.0 / 3.0)
    more = {"two thirds of the noise": two_thirds, "local sensitivity": LOCAL}
    for share in (0.2, 0.54):
        options = dict(q=[0.5], rho=0.5, share=share)
        said = dict(q=0.5, rho=0.5)
        yield case("csmooth", f"t = {share:.2f} ε", csmooth_law, said, more, **options)
    options = dict(q=[0.25, 0.75], rho=0.5, share=0.2)
    said = dict(q=[0.25, 0.75], rho=0.5)
    yield case("csmooth", "2 levels", csmooth_law, said, more, **options)

    budget = dict(epsilon=1.0, delta=1e-3)
    smooth = dict(method="smooth_gaussian", levels=1)
    louder = privacy.cdf, "smooth_gaussian_scale", less_noise(0.01)
    yield case(
        "cdf",
        "smooth_gaussian, δ = 0.001",
        smooth_gaussian_law,
        smooth | budget,
        {"a hundredth of the noise": louder, "local sensitivity": LOCAL},
        **budget,
    )
    half = {"half the noise": (privacy, "gaussian_sigma", times(0.5))}
    for form, size in ((dict(levels=2, bins=None), "2 levels"), (dict(levels=1, bins=2), "2 bins")):
        said = dict(method="gaussian") | {k: v for k, v in form.items() if v is not None}
        for name, budget in (
            ("δ = 0.001", dict(epsilon=1.0, delta=1e-3)),
            ("ρ = 0.5", dict(rho=0.5)),
        ):
            options = form | dict(epsilon=None, delta=0.0, rho=None) | budget
            setting = f"gaussian, {size}, {name}"
            yield case(
                "cdf",
                setting,
                partial(gaussian_law, **relation),
                said | budget,
                half,
                **options,
            )


# --- Groups


def all_of_group(part_of: Callable) -> Callable:
    """The part of a group, as if no record moved to another one."""

    def part(**given: Any) -> privacy.parallel.Part:
        own = part_of(**given | dict(neighbors="add-remove"))
        return own._replace(neighbors=part_of(**given).neighbors)

    return part


def quantile_by_cases(neighbors: str) -> Iterator[Case]:
    form = lattice(neighbors) | dict(
        bounds=(0, 1), domain=[(value, key) for value in (0, 1) for key in (0, 1)]
    )
    cases = [(False, "joint_exp"), (False, "ind_exp"), (True, "joint_exp"), (True, "ind_exp")]
    for public_by, method in cases:
        options = dict(q=0.5, epsilon=4.0, groups=[0, 1], public_by=public_by, method=method)
        run = exact("quantile_by", 4, **options, **form)
        mutants = {"thrice the rate": broken(run, *spends("quantile_by", "rate", 3.0))}
        if neighbors == "swap" and not public_by:
            mutants["one group charged"] = broken(run, *spends("quantile_by", "rate", 2.0))
        setting = "public keys" if public_by else "private keys"
        if method == "ind_exp":
            setting += ", permute-and-flip"
        yield Case("quantile_by", neighbors, setting, run, mutants)
    both = {stage: partial(all_of, stage=stage) for stage in ("pilot", "main")}
    settings = [(False, dict(epsilon=32.0)), (True, dict(epsilon=16.0)), (False, dict(rho=8.0))]
    for public_by, budget in settings if neighbors == "swap" else settings[:2]:
        options = dict(q=0.5, groups=[0, 1], method="two_stage", expected_n=4, **budget)
        run = exact("quantile_by", 4, public_by=public_by, **options, **form)
        mutants = {}
        if "epsilon" in budget:
            fault = broken(run, privacy.two_stage, "calibrate", stages_of(**both))
            mutants["each stage has all of the budget"] = fault
        if neighbors == "swap" and not public_by:
            mutants["one group charged"] = broken(run, privacy.quantile_by, "part_of", all_of_group)
        setting = f"{'public' if public_by else 'private'} keys, two stages"
        if "rho" in budget:
            setting += ", rho"
        yield Case("quantile_by", neighbors, setting, run, mutants)


# --- Runs of the code that draws


def estimated_cases(neighbors: str) -> Iterator[Case]:
    swap = neighbors == "swap"

    def pair(common: list, one: Any, other: Any) -> tuple[list, list]:
        return [*common, one], [*common, other] if swap else common

    # the records of the first data set that are smaller move beyond the median
    two = pair([0.0, 2.0, 4.0], 0.0, 4.0)
    relation = dict(neighbors=neighbors)
    places = relation | dict(bounds=(0, 4), resolution=1)
    for name, spent in (
        ("joint_exp", ("joint_exp", "rate")),
        ("ind_exp", ("ind_exp", "rates")),
        ("approx_quantiles", ("approx_quantiles", "steps")),
    ):
        run = estimate(name, *two, q=[0.25, 0.5], epsilon=2.0, **places)
        mutants = {"a tenth of the noise": broken(run, *spends(*spent, 10.0))}
        setting = "permute-and-flip" if name == "ind_exp" else "dither"
        yield Case(name, neighbors, setting, run, mutants, True)
    # so few records for two levels are a tree's
    run = estimate("quantile", *two, q=[0.25, 0.5], epsilon=2.0, **places)
    mutants = {"a tenth of the noise": broken(run, *spends("agg_tree", "noise", Fraction(1, 10)))}
    yield Case("quantile", neighbors, "auto", run, mutants, True)
    rows = pair([(0.0, 0), (2.0, 0), (4.0, 0)], (0.0, 0), (4.0, 1))
    for method, setting in (("joint_exp", "dither"), ("ind_exp", "permute-and-flip")):
        options = dict(q=0.5, epsilon=2.0, groups=[0, 1], method=method)
        run = estimate("quantile_by", *rows, **options, **places)
        mutants = {"a tenth of the noise": broken(run, *spends("quantile_by", "rate", 10.0))}
        yield Case("quantile_by", neighbors, setting, run, mutants, True)
    run = estimate("count_by", *rows, epsilon=2.0, groups=[0, 1], **relation)
    small = always(Fraction(1, 20))
    mutants = {"a tenth of the noise": broken(run, privacy.aggregates, "laplace_scale", small)}
    if swap:
        mutants["one group charged"] = broken(run, privacy.aggregates_by, "touched", always(1))
    yield Case("count_by", neighbors, "private keys", run, mutants, True)
    clip = dict(q=None, lower=0, upper=4)
    tenth = times(Fraction(1, 10))
    rows = pair([(0.0, 0), (2.0, 0), (4.0, 1)], (4.0, 0), (4.0, 1))
    for name in ("sum_by", "mean_by"):
        run = estimate(name, *rows, epsilon=2.0, groups=[0, 1], **clip, **relation)
        mutants = {"a tenth of the noise": broken(run, privacy.aggregates, "laplace_scale", tenth)}
        yield Case(name, neighbors, "private keys, public clip", run, mutants, True)
    options = dict(q=0.6, epsilon=2.0, upper=20.0, beta=1.2)
    run = estimate("unbounded_quantile", *pair([1.0, 9.0], 1.0, 9.0), **options, **relation)
    mutants = {
        "a tenth of the noise": broken(run, *spends("unbounded_quantile", "step_epsilons", 10.0))
    }
    yield Case("unbounded_quantile", neighbors, "up", run, mutants, True)
    budget = dict(threshold=2.5, epsilon1=0.5, epsilon2=0.5)
    for name, more in (("above_threshold", {}), ("sparse_vector", {"halts": 2})):
        run = estimate(
            name,
            *pair([0.0] * 3, 0.0, 4.0),
            queries=below,
            monotonic=True,
            **budget,
            **more,
            **relation,
        )
        mutants = {"a tenth of the noise": broken(run, *spends("above_threshold", "rates", 10.0))}
        yield Case(name, neighbors, "monotonic", run, mutants, True)
    scaled = times(Fraction(1, 10))
    few = pair([0.25] * 3, 4.0, math.nan)
    public, private = dict(q=None, lower=0, upper=4), dict(q=0.9, upper=20.0, beta=1.2)
    for name, setting, options in (
        ("count", "", {}),
        ("sum", "public clip", public),
        ("mean", "public clip", public),
        ("var", "public clip", public | dict(expected_n=3)),
        ("sum", "private clip", private),
    ):
        run = estimate(name, *few, epsilon=1.0, **options, **relation)
        mutants = {"a tenth of the noise": broken(run, privacy.aggregates, "laplace_scale", scaled)}
        if (name, options) == ("sum", public):
            mutants["sum of floats"] = float_release(pair([0.1, 0.2], 0.3, math.nan))
        yield Case(name, neighbors, setting, run, mutants, True)
    for setting, common, name, fault in (
        ("far apart", [0.0, 0.0, 4.0, 4.0], "a hundredth of the noise", LOUDER),
        ("tied", [0.0, 0.0, 0.0, 4.0], "local sensitivity", LOCAL),
    ):
        options = dict(q=0.5, rho=0.5, delta=1e-3, dither=False)
        run = estimate("csmooth", *pair(common, 4.0, 0.0), **options, **places)
        mutants = {name: broken(run, *fault)}
        yield Case("csmooth", neighbors, f"{setting}, δ = 0.001", run, mutants, True)
    bounds = relation | dict(bounds=(0, 4))
    options = dict(q=[0.25, 0.5], epsilon=2.0, height=1, branching=4)
    run = estimate("agg_tree", *two, **options, **bounds)
    mutants = {"a tenth of the noise": broken(run, *spends("agg_tree", "noise", Fraction(1, 10)))}
    yield Case("agg_tree", neighbors, "quantiles", run, mutants, True)
    run = estimate("cdf", *two, method="adaptive", steps=2, bins=4, epsilon=4.0, **bounds)
    mutants = {"a tenth of the noise": broken(run, *spends("cdf", "noise", Fraction(1, 10)))}
    yield Case("cdf", neighbors, "adaptive", run, mutants, True)
    options = dict(method="gaussian", bins=2, epsilon=3.0, delta=1e-3)
    run = estimate("cdf", *two, **options, **bounds)
    mutants = {"a tenth of the noise": broken(run, *spends("cdf", "sigma", 0.1))}
    yield Case("cdf", neighbors, "gaussian, δ = 0.001", run, mutants, True)


def float_release(pair: tuple[list, list]) -> Run:
    """A sum of floats with whole numbers as noise: its last digits know the records."""

    def released(column: Any, rng: np.random.Generator) -> float:
        return float(np.nansum(column)) + discrete_laplace(4, rng=rng)

    return estimate(released, *pair)


def less_noise(factor: float) -> Callable[[Callable], Callable]:
    """That much of the noise on smooth sensitivity."""

    def changed(original: Callable) -> Callable:
        def scale(*arguments: float) -> tuple[float, float]:
            shape, log_scale = original(*arguments)
            return shape, log_scale - math.log(factor)

        return scale

    return changed


def local(original: Callable) -> Callable:
    """Smooth sensitivity without what is farther than one rank away."""
    return lambda order, q, t: original(order, q, np.full_like(t, 1e9))


LOUDER = privacy.csmooth, "shape_of", less_noise(0.01)
LOCAL = smooth, "smooth_sensitivity", local


# --- Keys that nobody lists


def more_likely(extra: int) -> Callable[[Callable], Callable]:
    """Probabilities of so many records more."""
    return lambda original: lambda self, n: original(self, n + extra)


def with_fields(**fields: Any) -> Callable[[Callable], Callable]:
    """A calibration of which some fields are others than is promised."""
    return lambda original: lambda **public: replace(original(**public), **fields)


def with_arguments(**others: Any) -> Callable[[Callable], Callable]:
    """A function that gets some arguments in place of its own."""
    return lambda original: lambda *given, **options: original(*given, **options | others)


def select_keys_cases(neighbors: str) -> Iterator[Case]:
    kept = privacy.key_selection.Calibration, "probability"
    calibrated = privacy.key_selection, "calibrate"
    public = dict(domain=[1, 2], epsilon=2.0, delta=0.2, neighbors=neighbors)
    run = exact("select_keys", 6, **public)
    mutants = {
        "one record too many": broken(run, *kept, more_likely(1)),
        "twice delta": broken(run, *calibrated, with_arguments(delta=0.4)),
        "twice epsilon": broken(run, *calibrated, with_arguments(epsilon=4.0)),
    }
    if neighbors == "swap":
        other = with_arguments(neighbors="add-remove")
        mutants["rule of add-remove"] = broken(run, *calibrated, other)
        mutants["delta for what enters, too"] = broken(run, *calibrated, with_fields(tau=0.2))
    yield Case("select_keys", neighbors, "δ = 0.2", run, mutants)
    run = exact("select_keys", 4, max_contributions=2, **public)
    mutants = {
        "records of a person ignored": broken(
            run, *calibrated, with_arguments(max_contributions=1)
        ),
        "epsilon of one record": broken(run, *calibrated, with_fields(alpha=Fraction(2))),
        "twice delta": broken(run, *calibrated, with_arguments(delta=0.4)),
    }
    yield Case("select_keys", neighbors, "2 records per person, δ = 0.2", run, mutants)
    pair = ([1] * 2 + [2] * 2, [1] * 3 + [2]) if neighbors == "swap" else ([1] * 3, [1] * 2)
    run = estimate("select_keys", *pair, epsilon=0.5, delta=0.02, neighbors=neighbors)
    mutants = {
        "four records too many": broken(
            run,
            privacy.key_selection.Calibration,
            "bounds",
            lambda original: lambda self, n, bits: original(self, 9 * (n > 2), bits),
        )
    }
    yield Case("select_keys", neighbors, "δ = 0.02", run, mutants, True)


# --- Persons, each a record of the audit

# All that one may hold: up to three of the points, or of pairs of a point and a group.
HELD = [held for k in (1, 2, 3) for held in combinations_with_replacement(range(POINTS), k)]
HELD_IN_GROUPS = [
    held
    for k in (1, 2)
    for held in combinations_with_replacement(list(product_of([0, 1], [0, 1])), k)
]


def rows_of(held: list[tuple], column: Any) -> tuple[np.ndarray, np.ndarray]:
    """What the persons of these numbers hold, and whose it is."""
    records = [(record, i) for i, person in enumerate(column) for record in held[int(person)]]
    records = records[::2] + records[1::2]  # a person's are not side by side
    values = np.array([record for record, _ in records], dtype=np.float64)
    return values, np.array([i for _, i in records], dtype=np.int64)


def of_persons(law_of: Callable[..., Any], q: list[float], **options: Any) -> Callable[..., Any]:
    def law(column: Any, **_: Any) -> dict[Any, float]:
        values, ids = rows_of(HELD, column)
        made = law_of(values, q, epsilon=1.0, privacy_unit=ids, **options)
        outputs = combinations_with_replacement(range(POINTS), len(q))
        return {o: made.log_prob(list(o)) for o in outputs}

    return law


def medians_of_groups(neighbors: str, apart: bool = False) -> Callable[..., Any]:
    """Permute-and-flip in two groups; as a mutant, with weights of each group by itself."""

    def law(column: Any, **_: Any) -> dict[Any, float]:
        values, ids = rows_of(HELD_IN_GROUPS, column)
        values, by = values.reshape(-1, 2).T if values.size else np.zeros((2, 0))
        weights = Persons([ids, by.astype(int)] if apart else ids).weights(values)
        spent = privacy.quantile_by.calibrate(
            0.5, epsilon=1.0, neighbors=neighbors, max_contributions=WEIGHT
        )
        logs = []
        for group in (0, 1):
            zeros, ones = (
                int(weights[(by == group) & (values == value)].sum()) for value in (0, 1)
            )
            half = (zeros + ones) / 2.0
            depths = [min(half, zeros - half), min(half - zeros, half)]
            logs.append(enumeration.permute_and_flip([spent.rate * depth for depth in depths]))
        return {(a, b): logs[0][a] + logs[1][b] for a in (0, 1) for b in (0, 1)}

    return law


def weights_by_rows(original: Callable) -> Callable:
    return lambda persons, values: np.full(values.size, WEIGHT)


def all_stay(original: Callable) -> Callable:
    return lambda persons, values: np.ones(values.size, dtype=np.int64)


def by_place(original: Callable) -> Callable:
    """As many as ever, but the first ones of all rows: which stay depends on others."""

    def weights(persons: Persons, values: np.ndarray) -> np.ndarray:
        kept = int(original(persons, values).sum())
        return (np.arange(values.size) < kept).astype(np.int64)

    return weights


def persons_cases(neighbors: str) -> Iterator[Case]:
    promise = always(privacy.Guarantee(1.0, neighbors=neighbors))(None)
    form = dict(bounds=(0, POINTS - 1), resolution=1, neighbors=neighbors)
    public = dict(domain=range(len(HELD)), neighbors=neighbors, nan_policy="raise")
    for name, law_of, q, more in (
        ("ind_exp", dpq.ind_exp_law, [0.5], {}),
        ("joint_exp", dpq.joint_exp_law, [0.25, 0.5], dict(dither=False)),
        ("approx_quantiles", dpq.approx_quantiles_law, [0.5], dict(dither=False)),
    ):
        run = exact(of_persons(law_of, q, **form, **more), 3, promise, **public)
        mutants = {"weights by rows": broken(run, Persons, "weights", weights_by_rows)}
        yield Case(name, neighbors, "persons by weights", run, mutants)
    run = exact(of_persons(dpq.ind_exp_law, [0.5], contributions=2, **form), 3, promise, **public)
    mutants = {
        "all records stay": broken(run, Persons, "weights", all_stay),
        "the first rows stay": broken(run, Persons, "weights", by_place),
    }
    yield Case("ind_exp", neighbors, "2 records of each person", run, mutants)
    public["domain"] = range(len(HELD_IN_GROUPS))
    run = exact(medians_of_groups(neighbors), 2, promise, **public)
    apart = exact(medians_of_groups(neighbors, True), 2, promise, **public)
    yield Case(
        "quantile_by", neighbors, "persons by weights", run, {"weights of each group": apart}
    )


# --- The table


def all_cases() -> list[Case]:
    families = (
        joint_exp_cases,
        ind_exp_cases,
        interval_cases,
        approx_quantiles_cases,
        two_stage_cases,
        unbounded_quantile_cases,
        above_threshold_cases,
        aggregate_cases,
        tree_cases,
        sums_cases,
        normal_cases,
        quantile_by_cases,
        select_keys_cases,
        persons_cases,
        estimated_cases,
    )
    return [
        case
        for family in families
        for neighbors in ("swap", "add-remove")
        for case in family(neighbors)
    ]


def by_mechanism(cases: list[Case]) -> list[Case]:
    """Those of each mechanism together, in the order in which the mechanisms come."""
    order = list(dict.fromkeys(case.mechanism for case in cases))
    return sorted(cases, key=lambda case: order.index(case.mechanism))


CASES = by_mechanism(all_cases())


@cache
def honest(index: int) -> Audit:
    """The audit of a case, made once."""
    return CASES[index].run()


@cache
def mutated(index: int, name: str) -> Audit:
    """The audit of a mutant, made once."""
    return CASES[index].mutants[name](honest(index).guarantee)


def number(value: float | None) -> str:
    return "" if value is None else "∞" if value == math.inf else f"{value:.2f}"


def row(index: int) -> str:
    """One line of a mechanism's table."""
    case, found = CASES[index], honest(index)
    if isinstance(found, audit.ExactAudit):
        promise = found.guarantee
        claimed, pairs = promise.epsilon, f"{found.pairs}"
        spread = f"{number(found.bounded_range)} of {number(promise.bounded_range)}"
        spread = spread if promise.bounded_range is not None else ""
        renyi = f"{number(found.rho)} of {number(promise.rho)}" if promise.rho is not None else ""
        epsilon = number(found.epsilon) if claimed is not None else ""
        if promise.delta > 0.0 and found.epsilon > claimed:
            epsilon = f"δ {found.delta:.2g} of {promise.delta:g}"
    else:
        claimed, pairs, spread, renyi = found.claimed, "1", "", ""
        epsilon = f"≥ {number(found.epsilon)}"
    caught = sum(not mutated(index, name).holds for name in case.mutants)
    cells = (
        case.neighbors,
        case.setting,
        "runs" if case.by_runs else "law",
        number(claimed),
        epsilon,
        spread,
        renyi,
        pairs,
        f"{caught} of {len(case.mutants)}",
    )
    return f"| {' | '.join(cells)} |"


TITLES = (
    "relation",
    "setting",
    "by",
    "ε claimed",
    "ε found",
    "range",
    "ρ",
    "pairs",
    "mutants caught",
)
HEAD = f"| {' | '.join(TITLES)} |\n|{'---|' * len(TITLES)}"


def rows(document: str) -> list[str]:
    """The lines of all tables in a document, without the titles."""
    inside = document.split(BEGIN)[1].split(END)[0].replace(HEAD, "")
    return [line for line in inside.split("\n") if line.startswith("|")]


def written(document: str, lines: list[str]) -> str:
    """The document with these lines, those of each mechanism below a heading of their own."""
    tables: dict[str, list[str]] = {}
    for case, line in zip(CASES, lines, strict=True):
        tables.setdefault(case.mechanism, []).append(line)
    parts = [
        "\n".join([f"### Audits of `{mechanism}`", "", HEAD, *own])
        for mechanism, own in tables.items()
    ]
    before, rest = document.split(BEGIN)
    return "\n\n".join([before + BEGIN, *parts, END + rest.split(END)[1]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, required=True, help="document with the marks")
    path = parser.parse_args().write
    path.write_text(written(path.read_text(), [row(index) for index in range(len(CASES))]))


if __name__ == "__main__":
    main()
