"""Draws of every public release, on every path through it, against its law computed anew.

The laws come from brute force and from formulas of the papers, written here once more: rates,
noise and composition too, so that what lies between a formula and a release is tested with them.
Each case refuses a tenth more of its budget, and every other law that it names, but for one time
in a thousand. At the end, releases that are broken on purpose, most of them by that tenth: each is
caught by the case that its name stands beside.

Draws tell two laws apart the sooner, the larger the budget and the longer the runs of lattice
points among which an output far from the target may lie: there the odds of near and far change as
the budget does, and both are likely. So the records of mechanisms that select lie at the ends of
runs, of which one is long, and their budgets are of its logarithm.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise, product
from typing import Any, NamedTuple
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import stages
from conftest import SMALLEST_P, fit, range_of
from scipy import optimize, stats
from scipy.special import ndtr

import dpq_fast as dpq
import enumeration
from dpq_fast._kernels.halting import Halting
from dpq_fast.data import lattice, prior, sample
from dpq_fast.data import passes as chunks
from dpq_fast.data.persons import Persons
from dpq_fast.laws import candidates
from dpq_fast.laws import depth as depth_law
from dpq_fast.laws import halting as halting_law_module
from dpq_fast.laws.depth import DepthLaw
from dpq_fast.laws.joint import coarse as coarse_law
from dpq_fast.laws.joint import few
from dpq_fast.laws.joint import path as path_law
from dpq_fast.laws.joint import rows as rows_law
from dpq_fast.laws.joint.coarse import CoarseLaw
from dpq_fast.laws.joint.path import PathLaw
from dpq_fast.laws.joint.plan import PLAN
from dpq_fast.laws.joint.widths import Widths
from dpq_fast.mechanisms.joint_exp import JointExpLaw
from dpq_fast.noise import counts
from dpq_fast.noise.discrete import discrete_laplace as discrete_laplace_of
from dpq_fast.orders import choice as choice_module
from dpq_fast.orders import dithered as dithered_module
from dpq_fast.orders import selected as selected_module
from dpq_fast.orders.order import CoarseOrder, WholeOrder
from dpq_fast.orders.selected import SelectedOrder
from dpq_fast.orders.sorted import SortedOrder

intervals = importlib.import_module("dpq_fast.mechanisms.intervals")
by_group = importlib.import_module("dpq_fast.mechanisms.quantile_by")
ind_exp = importlib.import_module("dpq_fast.mechanisms.ind_exp")
joint_exp = importlib.import_module("dpq_fast.mechanisms.joint_exp")
approx_quantiles = importlib.import_module("dpq_fast.mechanisms.approx_quantiles")
aggregates = importlib.import_module("dpq_fast.mechanisms.aggregates")
aggregates_by = importlib.import_module("dpq_fast.mechanisms.aggregates_by")
cdf_module = importlib.import_module("dpq_fast.mechanisms.cdf")
grouping = importlib.import_module("dpq_fast.mechanisms.grouping")
csmooth = importlib.import_module("dpq_fast.mechanisms.csmooth")

Law = dict[Hashable, float]
Draw = Callable[[np.random.Generator, int], Iterable[Hashable]]

# A case makes so many draws that this times the budget, and every other law that it names, is
# accepted at most so often. Where several clips hide what noise there is, that takes very many
# draws for a tenth more of noise alone: a fifth is noticed there.
MORE, MUCH_MORE, MISSED = 1.1, 1.2, 1e-3
# Enough for the shape of a law, by a chi-square test.
LEAST_DRAWS = 200


class Case(NamedTuple):
    """A release that is to follow a law.

    Attributes
    ----------
    draw : callable
        ``draw(rng, size)`` gives `size` outputs of the public function.
    law : callable
        ``law(factor)`` is the law at `factor` times the budget, by brute force.
    forced : tuple
        Constants that send small data down a path: (module, name, value).
    others : tuple
        More laws that must be told from it.
    """

    draw: Draw
    law: Callable[[float], Law]
    forced: tuple[tuple[Any, str, Any], ...] = ()
    others: tuple[Law, ...] = ()


NO_FEW = replace(PLAN, most_few=-1)


@contextlib.contextmanager
def on_path(forced: Iterable[tuple[Any, str, Any]]) -> Iterator[None]:
    """With some constants changed; nothing that was made with them stays.

    A few records, which a kernel releases by itself, go by the laws then.
    """
    with contextlib.ExitStack() as changes:
        changes.callback(lattice.Lattice._of.cache_clear)
        if any(target is not lattice for target, _, _ in forced):
            changes.enter_context(mock.patch.object(few, "PLAN", NO_FEW))
        for target, name, value in forced:
            changes.enter_context(mock.patch.object(target, name, value))
        lattice.Lattice._of.cache_clear()
        yield


class Verdict:
    """Which draws are refused: those that do not fit a law, or fit another one much better.

    Of N draws from P, the sum of the logarithms of R/P exceeds t at most with probability
    exp(N ln M(c) - c t), and of N from R it is less at most with exp(N ln M(c) + (1 - c) t), for
    M(c) the sum over all outcomes of P^(1-c) R^c and any c between 0 and 1 (Chernoff).
    """

    def __init__(self, law: Law, others: Iterable[Law]) -> None:
        self.law, self.others = law, list(others)
        accepted, missed = -math.log(SMALLEST_P), -math.log(MISSED)

        def draws(c: float, other: Law) -> float:
            return (c * missed + (1.0 - c) * accepted) / -log_moment(law, other, c)

        self.size = 2 * math.ceil(
            max(LEAST_DRAWS, *(least(partial(draws, other=other)) for other in self.others)) / 2.0
        )

        def most(c: float, other: Law) -> float:
            return (accepted + self.size * log_moment(law, other, c)) / c

        self._most = [least(partial(most, other=other)) for other in self.others]

    def refuses(self, drawn: Iterable[Hashable]) -> bool:
        seen = Counter(drawn)
        assert seen.total() == self.size
        if fit(seen, self.law) < SMALLEST_P:
            return True
        evidence = (
            sum(k * (other.get(o, -math.inf) - self.law[o]) for o, k in seen.items())
            for other in self.others
        )
        return any(e >= most for e, most in zip(evidence, self._most, strict=True))


def log_moment(law: Law, other: Law, c: float) -> float:
    """ln of the sum of P^(1-c) R^c."""
    return enumeration.log_sum((1.0 - c) * law[o] + c * other[o] for o in law.keys() & other.keys())


def least(of: Callable[[float], float]) -> float:
    return float(optimize.minimize_scalar(of, bounds=(1e-3, 1.0 - 1e-3), method="bounded").fun)


def verdict_of(case: Case) -> Verdict:
    return Verdict(case.law(1.0), [case.law(MORE), *case.others])


def is_refused(case: Case, verdict: Verdict) -> bool:
    """Whether the draws of a case are refused."""
    with on_path(case.forced):
        return verdict.refuses(case.draw(np.random.default_rng(20), verdict.size))


# --- Exponential mechanisms

POINTS = 4
RECORDS = [1, 0, 3, 1, 1]  # not in order
LEVELS = {1: [0.5], 2: [0.25, 0.75], 3: [0.25, 0.5, 0.75]}
# Below the lowest record there is a long run.
LONG = 2**30
MASSES = [LONG, 1, 1, 1]
LINE = np.cumsum(MASSES) - 1
# By relation and number of levels: those that need about the fewest draws.
EPSILONS: dict[tuple[str, str], dict[int, float]] = {
    ("joint_exp", "swap"): {1: 42.0, 2: 42.0, 3: 42.0},
    ("joint_exp", "add-remove"): {1: 19.0, 2: 29.0, 3: 27.0},
    ("ind_exp", "swap"): {1: 9.3, 2: 19.0, 3: 30.0},
    ("ind_exp", "add-remove"): {1: 4.6, 2: 38.0, 3: 15.0},
    ("approx_quantiles", "swap"): {1: 38.0, 3: 78.0},
    ("approx_quantiles", "add-remove"): {1: 19.0, 3: 38.0},
}
GRID = dict(bounds=(0, int(LINE[-1])), resolution=1, dither=False)


def joint_rate(q: list[float], epsilon: float, neighbors: str) -> float:
    """[GJK21] Lemmas 3 and 10: the utility changes by 2, or 2 (1 - the narrowest gap)."""
    gaps = [high - low for low, high in pairwise([0.0, *q, 1.0])]
    return epsilon / 4.0 if neighbors == "swap" else epsilon / (4.0 * (1.0 - min(gaps)))


def ind_rates(q: list[float], epsilon_each: float, neighbors: str) -> list[float]:
    """Ranks change by 1, or by max(q, 1 - q) as seen from a target that moves along."""
    if neighbors == "swap":
        return [epsilon_each / 2.0] * len(q)
    return [epsilon_each / (2.0 * max(level, 1.0 - level)) for level in q]


def approx_rates(q: list[float], epsilon: float, neighbors: str) -> list[float]:
    """For levels that halve each part: every step at half of epsilon by depth, or all of it."""
    assert q in ([0.5], [0.25, 0.5, 0.75])
    depths = 1 if len(q) == 1 else 2
    return [epsilon / depths / (2.0 if neighbors == "swap" else 1.0)] * len(q)


def runs_of(outputs: Any, line: Any) -> Iterator[tuple[int, ...]]:
    """The runs that outputs lie in, by where these end."""
    runs = np.searchsorted(line, np.asarray(outputs, dtype=float))
    return map(tuple, runs.reshape(len(outputs), -1).tolist())


def split_once(runs: Iterable[tuple[int, ...]], single: Container[int]) -> Iterator[Any]:
    """As laws of `approx_quantiles` are: what comes after a split inside a run is not told."""
    for o in runs:
        middle = o[len(o) // 2]
        yield o if middle in single else (middle,)


def repeated(
    release: Callable[..., Any],
    x: Any,
    line: Any = LINE,
    single: Container[int] = range(1, POINTS),
    **options: Any,
) -> Draw:
    """One call after the other; `x` may make the column anew. Some runs are single points."""
    method = options.get("method", release.__name__)

    def draw(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        column = x() if callable(x) else x
        runs = runs_of([release(column, rng=rng, **options) for _ in range(size)], line)
        return split_once(runs, single) if method == "approx_quantiles" else runs

    return draw


MECHANISMS: dict[str, tuple[Callable[..., Any], Callable[..., Law]]] = {
    "joint_exp": (
        dpq.joint_exp,
        lambda records, q, epsilon, neighbors: enumeration.joint_exp(
            records, POINTS, q, joint_rate(q, epsilon, neighbors), MASSES
        ),
    ),
    "ind_exp": (
        dpq.ind_exp,
        lambda records, q, epsilon, neighbors: enumeration.ind_exp(
            records, POINTS, q, ind_rates(q, epsilon / len(q), neighbors), masses=MASSES
        ),
    ),
    "approx_quantiles": (
        dpq.approx_quantiles,
        lambda records, q, epsilon, neighbors: enumeration.approx_quantiles(
            records, POINTS, q, approx_rates(q, epsilon, neighbors), masses=MASSES
        ),
    ),
}


def of_intervals(ranks: list[int], lengths: list[float], target: float, rate: float) -> Law:
    """One level of IndExp without a lattice."""
    scores = [
        math.log(length) - rate * abs(rank - target)
        for rank, length in zip(ranks, lengths, strict=True)
    ]
    return {(cell,): log_p for cell, log_p in enumerate(enumeration.exponential(scores))}


def halves() -> dpq.Sample:
    return dpq.Sample.from_batches(lambda: iter([FLOATS[:2], FLOATS[2:2], FLOATS[2:]]), **GRID)


WINDOWS = (
    (path_law, "first_window", lambda order, q, rate, plan: 1),
    (ind_exp, "first_windows", lambda order, q, rates: np.ones(q.size, dtype=int)),
    (ind_exp, "window_of", lambda order, rate, masses: 1),
    (depth_law, "window_of", lambda order, rate, masses: 1),
    (path_law, "CERTIFICATE", 0.0),  # no window is widened: the rest is drawn from
)
SELECTION = ((choice_module, "SORTED_RECORDS", 0),)
CUT = ((selected_module, "READ", 0), (selected_module, "READ_SHARE", 0.0))  # by counts alone
THREADS = (*SELECTION, (chunks, "MIN_SHARE", 1))
RANKS = (  # blocks of few ranks, and cells of more
    (
        joint_exp,
        "PLAN",
        replace(
            PLAN, short_entries=0, few_entries=0, least_ranks=0.0, bends=(math.inf,), most_read=0
        ),
    ),
    (coarse_law, "widths_of", lambda n, q, rate, plan: Widths(3.0 * rate, 9.0)),
)
PARTS = (  # rows of all levels but the last, and then of that
    (joint_exp, "PLAN", replace(PLAN, most_held=-1)),
    (rows_law, "parts_of", lambda first, *_: [slice(0, first.size - 1), slice(0, first.size)]),
)
FLOATS = LINE[RECORDS].astype(float)
VALUES = FLOATS[[2, 1, 0]]
HELD = [1, 3, 2, 1, 2]
# How the records come, what else is asked for, and what sends them that way.
WAYS: dict[str, tuple[Any, dict[str, Any], tuple]] = {
    "sorted": (FLOATS, GRID, ()),
    "promised": (np.sort(FLOATS), GRID | dict(assume_sorted=True), ()),
    "missing": (np.append(FLOATS, np.nan), GRID, ()),
    "list": ([None, *LINE[RECORDS].tolist()], GRID, ()),
    "integers": (LINE[RECORDS], GRID, ()),
    "counts": (LINE[[3, 0, 1, 2]].astype(float), GRID | dict(counts=[1, 1, 3, 0]), ()),
    # of five persons, who have one, two and three records
    "persons": (np.repeat(FLOATS, HELD), GRID | dict(privacy_unit=np.repeat(range(5), HELD)), ()),
    "batches": (halves, {}, ()),
    "windows": (FLOATS, GRID, WINDOWS),
    "selection": (FLOATS, GRID, SELECTION),
    "windows of a selection": (FLOATS, GRID, (*WINDOWS, *SELECTION)),
    "windows of counts": (
        VALUES,
        GRID | dict(counts=[1, 1, 3]),
        WINDOWS,
    ),
    "workers": (FLOATS, GRID | dict(workers=2), THREADS),
}


def way_cases() -> Iterator[tuple[str, Case]]:
    """Every mechanism by every way that records come, two levels or three."""
    for name, (release, law) in MECHANISMS.items():
        q = LEVELS[3 if name == "approx_quantiles" else 2]
        epsilon = EPSILONS[name, "swap"][len(q)]
        for way, (x, options, forced) in WAYS.items():
            thrice = law([record for record in RECORDS for _ in range(3)], q, epsilon, "swap")
            yield (
                f"{name}, {way}",
                Case(
                    repeated(release, x, q=q, epsilon=epsilon, **options),
                    lambda factor, q=q, epsilon=epsilon, law=law: law(
                        RECORDS, q, factor * epsilon, "swap"
                    ),
                    forced,
                    (thrice,) if way in ("counts", "windows of counts", "persons") else (),
                ),
            )


# Cells are for rates at which no run need be long; then a budget takes many draws to be told.
BLOCKS = dict(q=LEVELS[2], epsilon=2.0, bounds=(0, POINTS - 1), resolution=1)
POINTS_OF_RECORDS = np.array(RECORDS, dtype=float)


def of_blocks(factor: float) -> Law:
    rate = joint_rate(LEVELS[2], factor * 2.0, "swap")
    return enumeration.joint_exp(RECORDS, POINTS, LEVELS[2], rate)


def from_one_law(x: Any, **options: Any) -> Draw:
    """Many draws from the law that one release makes, instead of one."""

    def draw(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        def sample(law: JointExpLaw, given: Any) -> Any:
            laws.append(law)
            return DRAWN(law, given)

        laws: list[JointExpLaw] = []
        with mock.patch.object(JointExpLaw, "sample", sample):
            dpq.joint_exp(x, rng=rng, **options)
        (law,) = laws
        return runs_of(law.sample(rng, size), range(POINTS))

    return draw


def block_cases() -> Iterator[tuple[str, Case]]:
    """JointExp by blocks of ranks, and each way to their borders."""
    for way, x, more, forced in (
        ("sorted", POINTS_OF_RECORDS, {}, ()),
        ("counts", [3.0, 0.0, 1.0, 2.0], dict(counts=[1, 1, 3, 0]), ()),
        ("windows of a selection", POINTS_OF_RECORDS, {}, (*WINDOWS, *SELECTION)),
        ("cut by counts", POINTS_OF_RECORDS, {}, (*WINDOWS, *SELECTION, *CUT)),
    ):
        yield (
            f"joint_exp, blocks of ranks, {way}",
            Case(from_one_law(x, **BLOCKS, dither=False, **more), of_blocks, (*forced, *RANKS)),
        )


def part_cases() -> Iterator[tuple[str, Case]]:
    """JointExp by rows of some levels at a time, two levels or three, with and without windows."""
    release, law = MECHANISMS["joint_exp"]
    for m, epsilon in ((2, 42.0), (3, 42.0)):
        for way in ("windows", "windows of counts"):
            x, options, forced = WAYS[way]
            for windows in ((), forced):
                yield (
                    f"joint_exp, m = {m}, parts, {way if windows else 'all of ' + way}",
                    Case(
                        repeated(release, x, q=LEVELS[m], epsilon=epsilon, **options),
                        lambda factor, m=m, epsilon=epsilon: law(
                            RECORDS, LEVELS[m], factor * epsilon, "swap"
                        ),
                        (*windows, *PARTS),
                    ),
                )


def form_cases() -> Iterator[tuple[str, Case]]:
    """Every mechanism by relation, number of levels, and records per person; the front doors."""
    for name, (release, law) in MECHANISMS.items():
        for m, q in LEVELS.items():
            if (name, m) == ("approx_quantiles", 2):
                continue
            for neighbors in ("swap", "add-remove"):
                epsilon = EPSILONS[name, neighbors][m]

                def of(
                    factor: float,
                    q: list[float] = q,
                    neighbors: str = neighbors,
                    epsilon: float = epsilon,
                    law: Callable[..., Law] = law,
                ) -> Law:
                    return law(RECORDS, q, factor * epsilon, neighbors)

                options = dict(q=q, neighbors=neighbors, **GRID)
                yield (
                    f"{name}, {neighbors}, m = {m}",
                    Case(repeated(release, FLOATS, epsilon=epsilon, **options), of),
                )
                if m != 3:
                    continue
                person = dict(epsilon=2.0 * epsilon, max_contributions=2) | options
                yield (
                    f"{name}, {neighbors}, 2 records",
                    Case(repeated(release, FLOATS, **person), of),
                )
                front = dict(epsilon=epsilon, method=name) | options
                yield (
                    f"quantile, {name}, {neighbors}",
                    Case(repeated(dpq.quantile, FLOATS, **front), of),
                )
    for kernel in ("scan", "fft"):
        for forced in ((), WINDOWS):
            yield (
                f"joint_exp, {kernel}{', windows' if forced else ''}",
                Case(
                    repeated(
                        dpq.joint_exp, FLOATS, q=LEVELS[3], epsilon=42.0, kernel=kernel, **GRID
                    ),
                    lambda factor: MECHANISMS["joint_exp"][1](
                        RECORDS, LEVELS[3], factor * 42.0, "swap"
                    ),
                    forced,
                ),
            )
    rho, q = 45.0, LEVELS[2]
    yield (
        "ind_exp, rho",
        Case(
            repeated(dpq.ind_exp, FLOATS, q=q, rho=rho, **GRID),
            lambda factor: enumeration.ind_exp(
                RECORDS,
                POINTS,
                q,
                ind_rates(q, factor * range_of(rho / 2), "swap"),
                "exponential",
                masses=MASSES,
            ),
        ),
    )
    yield (
        "ind_exp, exponential",
        Case(
            repeated(dpq.ind_exp, FLOATS, q=q, epsilon=38.0, selection="exponential", **GRID),
            lambda factor: enumeration.ind_exp(
                RECORDS,
                POINTS,
                q,
                ind_rates(q, factor * 19.0, "swap"),
                "exponential",
                masses=MASSES,
            ),
        ),
    )
    # [DDR20] Theorem 3 for two releases; tests of `privacy` have the theorem
    each = dpq.privacy.bounded_range.bounded_range_epsilon_each(2, 38.0, 1e-3)
    assert each > 19.0
    yield (
        "ind_exp, delta",
        Case(
            repeated(dpq.ind_exp, FLOATS, q=q, epsilon=38.0, delta=1e-3, **GRID),
            lambda factor: enumeration.ind_exp(
                RECORDS,
                POINTS,
                q,
                ind_rates(q, factor * each, "swap"),
                "exponential",
                masses=MASSES,
            ),
        ),
    )
    densities = dict(bounds=(0, LONG + 3), resolution=0)
    for forced in ((), WINDOWS):
        yield (
            f"ind_exp, densities{', windows' if forced else ''}",
            Case(
                repeated(dpq.ind_exp, FLOATS + 1.0, LINE + 1.0, q=[0.3], epsilon=42.0, **densities),
                lambda factor: of_intervals(
                    [0, 1, 4, 4], [LONG, 1.0, 1.0, 1.0], 1.5, factor * 21.0
                ),
                forced,
            ),
        )
    yield (
        "approx_quantiles, rho",
        Case(
            repeated(dpq.approx_quantiles, FLOATS, q=LEVELS[3], rho=2.0 * rho, **GRID),
            # two depths; inside a part, a replaced record has range 2c
            lambda factor: enumeration.approx_quantiles(
                RECORDS,
                POINTS,
                LEVELS[3],
                [factor * range_of(rho) / 2.0] * 3,
                masses=MASSES,
            ),
        ),
    )
    for name, release, level in (
        ("quantile", dpq.quantile, dict(q=0.5)),
        ("median", dpq.median, {}),
        ("percentile", dpq.percentile, dict(q=50.0)),
    ):
        yield (
            f"{name}, auto",
            Case(
                repeated(release, FLOATS, epsilon=9.3, **level, **GRID),
                lambda factor: MECHANISMS["ind_exp"][1](RECORDS, [0.5], factor * 9.3, "swap"),
            ),
        )


# --- Priors

# On a line of so many places: one for each point, and what is left, rounded down.
PLACES = 2**32
SHARES = np.array([1.0 - 3.0 * 2.0**-29, *[2.0**-29] * 3])
WEIGHED = [1 + math.floor((PLACES - POINTS) * share) for share in SHARES.tolist()]
PRIOR = (lambda x: np.interp(x, np.arange(POINTS + 1) - 0.5, np.append(0.0, SHARES.cumsum())), None)
PRIOR_GRID = GRID | dict(bounds=(0, POINTS - 1))
ON_LINE = ((prior, "TOTAL", PLACES),)
NO_BITS = ((lattice, "DITHER_BITS", 0),)
EAGER = ((dithered_module, "EAGER_RECORDS", 0),)


def prior_cases() -> Iterator[tuple[str, Case]]:
    """Each mechanism on points with masses, and each way to its law; not that without a prior."""
    points = np.array(RECORDS, dtype=float)
    forms = {
        "counts": ([3.0, 0.0, 1.0, 2.0], dict(counts=[1, 1, 3, 0]), ()),
        "sorted": (points, {}, ()),
        "windows": (points, {}, WINDOWS),
        "windows of a selection": (points, {}, (*WINDOWS, *SELECTION)),
    }
    for name, m, epsilon in (
        ("joint_exp", 2, 39.0),
        ("ind_exp", 2, 25.0),
        ("approx_quantiles", 3, 72.0),
    ):
        release, _ = MECHANISMS[name]
        q = LEVELS[m]

        def of(
            factor: float,
            name: str = name,
            q: list[float] = q,
            epsilon: float = epsilon,
            masses: list[int] = WEIGHED,
        ) -> Law:
            spent = factor * epsilon
            if name == "ind_exp":
                rates = ind_rates(q, spent / len(q), "swap")
                return enumeration.ind_exp(RECORDS, POINTS, q, rates, prior=masses)
            if name == "joint_exp":
                rate = joint_rate(q, spent, "swap")
                return enumeration.joint_exp(RECORDS, POINTS, q, rate, masses)
            rates = approx_rates(q, spent, "swap")
            return enumeration.approx_quantiles(RECORDS, POINTS, q, rates, masses=masses)

        even = of(1.0, masses=[9] * POINTS)
        options = PRIOR_GRID | dict(
            q=q, epsilon=epsilon, prior=PRIOR, line=range(POINTS), single=()
        )
        for way, (x, form, forced) in forms.items():
            yield (
                f"{name}, prior, {way}",
                Case(repeated(release, x, **options | form), of, (*ON_LINE, *forced), (even,)),
            )
        sample = partial(dpq.Sample.of, points, prior=PRIOR, **PRIOR_GRID)
        given = dict(q=q, epsilon=epsilon, line=range(POINTS), single=())
        yield (
            f"{name}, prior, sample",
            Case(repeated(release, sample, **given), of, ON_LINE, (even,)),
        )
        if name == "joint_exp":

            def both(factor: float, q: list[float] = q) -> Law:
                """One bit of dither on the line: a record is in the middle of its run or last."""
                rate = joint_rate(q, factor * 16.0, "swap")
                masses = [half for mass in WEIGHED for half in (-(-mass // 2), mass // 2)]
                return enumeration.mixture(
                    enumeration.floored(enumeration.joint_exp(fine, 8, q, rate, masses), 1)
                    for fine in enumeration.dithers(RECORDS, 1)
                )

            for drawn, forced in (("at once", ()), ("asked for", EAGER)):
                yield (
                    f"{name}, prior, dither, {drawn}",
                    Case(
                        repeated(release, points, **options | dict(epsilon=16.0, dither=True)),
                        both,
                        (*ON_LINE, (lattice, "DITHER_BITS", 1), *forced),
                        (of(16.0 / epsilon),),
                    ),
                )
    yield (
        "quantile_by, prior",
        Case(
            lambda rng, size: runs_of(
                [
                    dpq.quantile_by(
                        points,
                        [1] * len(RECORDS),
                        LEVELS[2],
                        groups=[1],
                        epsilon=39.0,
                        public_by=True,
                        prior=PRIOR,
                        rng=rng,
                        **PRIOR_GRID,
                    ).values[0]
                    for _ in range(size)
                ],
                range(POINTS),
            ),
            lambda factor: enumeration.joint_exp(
                RECORDS, POINTS, LEVELS[2], joint_rate(LEVELS[2], factor * 39.0, "swap"), WEIGHED
            ),
            ON_LINE,
            (
                enumeration.joint_exp(
                    RECORDS, POINTS, LEVELS[2], joint_rate(LEVELS[2], 39.0, "swap")
                ),
            ),
        ),
    )


# --- Two stages


def two_stage_cases() -> Iterator[tuple[str, Case]]:
    """Of each kind of second stage; the pilot's answers are not told."""
    # at both ends, and budgets, as need about the fewest draws
    at, records = 8, [0, 7, 7, 0, 0, 7, 0, 7]
    points = np.array(records, dtype=float)
    grid = dict(bounds=(0, at - 1), resolution=1)
    for name, q, epsilon, neighbors in (
        ("one level", [0.75], 2.0, "add-remove"),
        ("two levels", [0.25, 0.75], 4.0, "swap"),
    ):
        public = dict(epsilon=epsilon, neighbors=neighbors, expected_n=len(records))

        def of(factor: float, q: list[float] = q, public: dict[str, Any] = public) -> Law:
            return stages.released(records, at, q, factor, **public)

        options = dict(q=q, line=range(at), single=(), **grid, **public)
        yield (
            f"two_stage, {name}",
            Case(repeated(dpq.two_stage, points, **options), of, NO_BITS),
        )

        # under "swap" a record may move to another group
        asked = public | grid | dict(epsilon=epsilon * (2.0 if neighbors == "swap" else 1.0), q=q)
        of_group = public | dict(neighbors="add-remove")

        def grouped(factor: float, q: list[float] = q, own: dict[str, Any] = of_group) -> Law:
            return stages.released(records, at, q, factor, **own)

        def draw(
            rng: np.random.Generator,
            size: int,
            asked: dict[str, Any] = asked,
        ) -> Iterable[Hashable]:
            x, by = np.tile(points, size), np.repeat(np.arange(size), points.size)
            answer = dpq.quantile_by(
                x, by, groups=range(size), method="two_stage", rng=rng, **asked
            )
            return runs_of(answer.values, range(at))

        yield f"quantile_by, two stages, {name}", Case(draw, grouped, NO_BITS)


# --- Dither

THREE = [LONG, 1, 1]
SPREAD = GRID | dict(bounds=(0, int(LINE[2])), dither=True)
ODD, EVEN = [1, 0, 1, 1, 2], [1, 0, 1, 1]
ONE_BIT = (lattice, "DITHER_BITS", 1)
MANY_POINTS = ((choice_module, "FEW_POINTS", 1), (choice_module, "MANY_POINTS", 1))
ASKED = ((dithered_module, "EAGER_RECORDS", 0),)  # drawn where it is asked for
DITHERED: dict[str, tuple] = {
    "at once": (),
    "asked for": ASKED,
    "asked for in windows": (*ASKED, *WINDOWS),
    "points sorted": MANY_POINTS,
    "points selected": (*MANY_POINTS, *SELECTION, *ASKED),
    "points selected, in windows": (*MANY_POINTS, *SELECTION, *ASKED, *WINDOWS),
}
RANKED: dict[str, tuple] = {
    "blocks of ranks": (*RANKS, *ASKED),
    "blocks of ranks, points selected": (*RANKS, *MANY_POINTS, *SELECTION, *ASKED),
    "blocks of ranks, cut by counts": (*RANKS, *MANY_POINTS, *SELECTION, *ASKED, *CUT),
}


def dither_cases() -> Iterator[tuple[str, Case]]:
    """One bit of dither, over all dithers that may come, for odd and even numbers of records."""
    epsilon, q = 18.0, LEVELS[2]
    for size, records in (("odd", ODD), ("even", EVEN)):

        def joint(factor: float, bits: int = 1, records: list[int] = records) -> Law:
            rate = joint_rate(q, factor * epsilon, "swap")
            return enumeration.joint_exp_dithered(records, 3, q, rate, bits, THREE)

        def single(factor: float, records: list[int] = records) -> Law:
            rates = ind_rates(q, factor * epsilon / 2.0, "swap")
            return enumeration.ind_exp(records, 3, q, rates, masses=THREE)

        column = LINE[records].astype(float)
        options = dict(q=q, epsilon=epsilon, **SPREAD)
        for way, forced in DITHERED.items():
            yield (
                f"joint_exp, dither, {way}, n {size}",
                Case(
                    repeated(dpq.joint_exp, column, **options),
                    joint,
                    (ONE_BIT, *forced),
                    (joint(1.0, 0),),
                ),
            )
            # a dither that a sample was made with is not used
            yield (
                f"ind_exp, sample with dither, {way}, n {size}",
                Case(
                    repeated(
                        dpq.ind_exp,
                        lambda column=column: dpq.Sample.of(column, **SPREAD),
                        q=q,
                        epsilon=epsilon,
                    ),
                    single,
                    (ONE_BIT, *forced),
                ),
            )
        values, counts = np.unique(column, return_counts=True)
        yield (
            f"joint_exp, dither, counts, n {size}",
            Case(
                repeated(dpq.joint_exp, values, counts=counts, **options),
                joint,
                (ONE_BIT,),
                (joint(1.0, 0),),
            ),
        )
        ids = [f"person {i}" for i in range(column.size)]
        yield (
            f"joint_exp, dither, persons, n {size}",
            Case(
                repeated(dpq.joint_exp, column, privacy_unit=ids, **options),
                joint,
                (ONE_BIT,),
                (joint(1.0, 0),),
            ),
        )
        yield f"joint_exp, all bits of dither, n {size}", all_bits_case(records)

    # cells are for rates at which no run need be long
    masses, budget = [1024, 1, 1], 6.0
    line = np.cumsum(masses) - 1

    def small(factor: float, bits: int = 1) -> Law:
        rate = joint_rate(q, factor * budget, "swap")
        return enumeration.joint_exp_dithered(ODD, 3, q, rate, bits, masses)

    form = dict(q=q, epsilon=budget, bounds=(0, int(line[-1])), resolution=1, dither=True)
    for way, forced in RANKED.items():
        yield (
            f"joint_exp, dither, {way}",
            Case(
                repeated(dpq.joint_exp, line[ODD].astype(float), line, **form),
                small,
                (ONE_BIT, *forced),
                (small(1.0, 0),),
            ),
        )


def all_bits_case(records: list[int]) -> Case:
    """A median with all its bits of dither: in one cell, spacings of uniform numbers."""
    n, epsilon = len(records), 21.0
    inside = [records.count(point) for point in range(3)]
    spacings = np.random.default_rng(0).dirichlet

    def law(factor: float) -> Law:
        rate, below, masses = factor * epsilon / 4.0, 0, []
        for tied, mass in zip(inside, THREE, strict=True):
            # ranks below the cell's gaps; a single path counts its deviation twice
            ranks = below + np.arange(tied + 1)
            weights = np.exp(-2.0 * rate * np.abs(ranks - n / 2.0))
            gaps = spacings(np.ones(tied + 1), 200_000)
            masses.append(gaps @ weights + (mass - 1) * weights[0])
            below += tied
        shares = np.mean(masses / np.sum(masses, axis=0), axis=1)
        return {(point,): math.log(share) for point, share in enumerate(shares.tolist())}

    rate = joint_rate([0.5], epsilon, "swap")
    plain = enumeration.joint_exp(records, 3, [0.5], rate, THREE)
    column = LINE[records].astype(float)
    draw = repeated(dpq.joint_exp, column, q=[0.5], epsilon=epsilon, **SPREAD)
    return Case(draw, law, others=(plain,))


# --- Many records

MANY = 2**16 + 5
# On 6 points: almost all records at both ends, a few between them where the median is.
CROWD = [MANY // 2 - 2, 1, 1, 1, 1]
CROWD.append(MANY - sum(CROWD))
BEFORE = [1, LONG, 1, 1, 1, 1]
ALONG = np.cumsum(BEFORE) - 1


def of_ranks(counts: list[int], masses: list[int], q: list[float], rate: float) -> Law:
    """JointExp where so many records lie at each point, by the deviation of every tuple."""
    below = np.cumsum([0, *counts[:-1]]).tolist()
    n, points = sum(counts), len(counts)
    levels = [0.0, *q, 1.0]

    def deviation(o: tuple[int, ...]) -> float:
        ranks = [0, *(below[point] for point in o), n]
        return sum(
            abs((high - low) - (last - first) * n)
            for (low, high), (first, last) in zip(pairwise(ranks), pairwise(levels), strict=True)
        )

    outputs = enumeration.combinations_with_replacement(range(points), len(q))
    return enumeration.normalized(
        {o: enumeration.log_ways(o, masses) - rate * deviation(o) for o in outputs}
    )


def of_depths(counts: list[int], level: float, rate: float) -> Law:
    """One level of IndExp, by permute-and-flip, where so many records lie at each point."""
    edges, target = np.cumsum([0, *counts]).tolist(), level * sum(counts)
    scores = [rate * min(target - below, upto - target) for below, upto in pairwise(edges)]
    before = [-rate * abs(target - below) for below in edges[:-1]]  # in front of a run's last point
    copies = [*([1] * len(counts)), *(mass - 1 for mass in BEFORE)]
    found = enumeration.flips_of_copies([*scores, *before], copies)
    pairs = zip(found[: len(counts)], found[len(counts) :], strict=True)
    return {(o,): enumeration.log_sum(pair) for o, pair in enumerate(pairs)}


def many_cases() -> Iterator[tuple[str, Case]]:
    """More records than are sorted where they are not tied, and as they come."""
    selected = ((choice_module, "MANY_SORTED", 0),)
    column = np.random.default_rng(1).permutation(np.repeat(ALONG.astype(float), CROWD))
    form = dict(bounds=(0, int(ALONG[-1])), resolution=1, dither=False)
    repeat = partial(repeated, line=ALONG)
    q = [(MANY // 2 - 1) / MANY, (MANY // 2 + 1) / MANY]
    for name, workers, forced in (
        ("selection of many, 1 workers", 1, selected),
        ("selection of many, 2 workers", 2, selected),
        ("ties of many", 1, ()),
    ):
        yield (
            f"joint_exp, {name}",
            Case(
                repeat(dpq.joint_exp, column, q=q, epsilon=42.0, workers=workers, **form),
                lambda factor: of_ranks(CROWD, BEFORE, q, joint_rate(q, factor * 42.0, "swap")),
                forced,
            ),
        )
    half = [0.5]
    yield (
        "approx_quantiles, selection of many",
        Case(
            repeat(dpq.approx_quantiles, column, q=half, epsilon=19.0, **form),
            lambda factor: of_ranks(CROWD, BEFORE, half, factor * 19.0 / 4.0),
            selected,
        ),
    )
    yield (
        "ind_exp, selection of many",
        Case(
            repeat(dpq.ind_exp, column, q=half, epsilon=13.0, **form),
            lambda factor: of_depths(CROWD, 0.5, factor * 13.0 / 2.0),
            selected,
        ),
    )
    batches = dpq.Sample.from_batches(lambda: iter(np.array_split(column, 3)), **form)
    yield (
        "joint_exp, batches of many",
        Case(
            repeat(dpq.joint_exp, batches, q=half, epsilon=19.0),
            lambda factor: of_ranks(CROWD, BEFORE, half, factor * 19.0 / 4.0),
        ),
    )


# --- Groups


def group_cases() -> Iterator[tuple[str, Case]]:
    """One call answers for many groups of the same records, among rows of other keys."""
    q = LEVELS[2]
    for neighbors, public_by in product(("swap", "add-remove"), (False, True)):
        # a record that changes its key is a removal and an addition
        swap = neighbors == "swap"
        share = 2.0 if swap and not public_by else 1.0
        relation = "swap" if swap and public_by else "add-remove"
        each = EPSILONS["joint_exp", relation][2]
        epsilon = share * each

        def law(factor: float, each: float = each, relation: str = relation) -> Law:
            rate = joint_rate(q, factor * each, relation)
            return enumeration.joint_exp(RECORDS, POINTS, q, rate, MASSES)

        for way in ("plain", "counts", "one by one", "workers", "strings"):
            options = dict(neighbors=neighbors, public_by=public_by, **GRID)
            forced = ((by_group, "SMALL_ENTRIES", 0),) if way == "one by one" else ()
            more = dict(workers=2) if way == "workers" else {}
            yield (
                f"quantile_by, {neighbors}, {'public' if public_by else 'private'} keys, {way}",
                Case(
                    grouped(RECORDS, way == "counts", way == "strings", q, epsilon, options | more),
                    law,
                    forced,
                ),
            )

        each = {"swap": 19.0, "add-remove": 13.0}[relation]
        epsilon = share * each

        def single(factor: float, each: float = each, relation: str = relation) -> Law:
            rates = ind_rates([0.3], factor * each, relation)
            return enumeration.ind_exp(RECORDS, POINTS, [0.3], rates, masses=MASSES)

        for way, forced in (("", ()), (", one by one", ((by_group, "SMALL_ENTRIES", 0),))):
            options = dict(neighbors=neighbors, public_by=public_by, **GRID)
            yield (
                f"quantile_by, one level, {neighbors}, public keys {public_by}{way}",
                Case(grouped(RECORDS, False, False, [0.3], epsilon, options), single, forced),
            )
    yield from own_group_cases()
    for size, records in (("odd", ODD), ("even", EVEN)):
        for way, forced in (("", ()), (", one by one", ((by_group, "SMALL_ENTRIES", 0),))):

            def dithered(factor: float, bits: int = 1, records: list[int] = records) -> Law:
                rate = joint_rate(q, factor * 13.0, "add-remove")
                return enumeration.joint_exp_dithered(records, 3, q, rate, bits, THREE)

            yield (
                f"quantile_by, dither, n {size}{way}",
                Case(
                    grouped(records, False, False, q, 13.0, SPREAD | dict(neighbors="add-remove")),
                    dithered,
                    (ONE_BIT, *forced),
                    (dithered(1.0, 0),),
                ),
            )


def own_group_cases() -> Iterator[tuple[str, Case]]:
    """Groups too large for the kernel of many, and those that are released as samples are."""
    large = ((by_group, "SMALL_ENTRIES", 0), (few, "PLAN", PLAN))
    q = LEVELS[2]
    yield (
        "quantile_by, few records of large groups",
        Case(
            grouped(RECORDS, False, False, q, 42.0, GRID | dict(public_by=True)),
            lambda factor: MECHANISMS["joint_exp"][1](RECORDS, q, factor * 42.0, "swap"),
            large,
        ),
    )
    ends = np.array(GRID["bounds"])
    for name, m in (("joint_exp", 2), ("ind_exp", 1), ("ind_exp", 2), ("approx_quantiles", 3)):
        own, law = LEVELS[m], MECHANISMS[name][1]
        for public_by, neighbors, cost in ((True, "swap", 1.0), (False, "add-remove", 2.0)):
            epsilon = EPSILONS[name, neighbors][m]

            spent = dict(method=name, public_by=public_by, epsilon=cost * epsilon, resolution=1)
            if name != "ind_exp":
                spent["dither"] = False

            def draw(
                rng: np.random.Generator,
                size: int,
                own: list[float] = own,
                spent: dict[str, Any] = spent,
            ) -> Iterable[Hashable]:
                answer = dpq.quantile_by(
                    np.tile(FLOATS, size),
                    np.repeat(np.arange(size), FLOATS.size),
                    own,
                    groups=range(size),
                    bounds=np.tile(ends, (size, 1)),
                    rng=rng,
                    **spent,
                )
                runs = runs_of(answer.values, LINE)
                if spent["method"] == "approx_quantiles":
                    return split_once(runs, range(1, POINTS))
                return runs

            yield (
                f"quantile_by, bounds by group, {name}, m = {m}, public keys {public_by}",
                Case(
                    draw,
                    lambda factor, law=law, own=own, neighbors=neighbors, epsilon=epsilon: law(
                        RECORDS, own, factor * epsilon, neighbors
                    ),
                ),
            )
    rho = 45.0

    def draw_rho(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        answer = dpq.quantile_by(
            np.tile(FLOATS, size),
            np.repeat(np.arange(size), FLOATS.size),
            LEVELS[3],
            groups=range(size),
            public_by=True,
            rho=2.0 * rho,
            rng=rng,
            **GRID,
        )
        return split_once(runs_of(answer.values, LINE), range(1, POINTS))

    yield (
        "quantile_by, rho",
        Case(
            draw_rho,
            lambda factor: enumeration.approx_quantiles(
                RECORDS, POINTS, LEVELS[3], [factor * range_of(rho) / 2.0] * 3, masses=MASSES
            ),
        ),
    )


def grouped(
    records: list[int],
    counted: bool,
    strings: bool,
    q: list[float],
    epsilon: float,
    options: dict[str, Any],
) -> Draw:
    def draw(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        values, counts = LINE[records].astype(float), None
        if counted:
            values, counts = np.unique(values, return_counts=True)
            counts = np.tile(counts, size + 1)
        # the last group is not asked for
        x, by = np.tile(values, size + 1), np.repeat(np.arange(size + 1), values.size)
        mixed = np.random.default_rng(2).permutation(x.size)
        counts = None if counts is None else counts[mixed]
        keys, names = by[mixed], range(size)
        if strings:
            keys, names = keys.astype(str), [str(name) for name in names]
        out = dpq.quantile_by(
            x[mixed], keys, q, groups=names, epsilon=epsilon, counts=counts, rng=rng, **options
        )
        return runs_of(out.values, LINE)

    return draw


# --- Noise on thresholds

QUERIES = [0.0, 1.0, 3.0, 2.0, 4.0]


def halting_law(
    gaps: list[float],
    first: float,
    second: float,
    noise: str,
    lengths: Iterable[float] | None = None,
    nodes: int = 200_001,
) -> list[float]:
    """Probabilities to halt at each step, or run of so many steps, and never.

    An integral over the threshold's noise.
    """
    ends = (0.0, 60.0 / first) if noise == "exponential" else (-60.0 / first, 90.0 / first)
    # cut where the noise of a query begins: sums of middles are right to 1e-3
    z = np.linspace(*ends, nodes)
    z = (z[1:] + z[:-1]) / 2.0
    families = {"exponential": stats.expon, "laplace": stats.laplace, "gumbel": stats.gumbel_r}
    left = families[noise].pdf(z, scale=1.0 / first) * (z[1] - z[0])
    found = []
    for gap, length in zip(gaps, lengths or [1.0] * len(gaps), strict=True):
        passed = families[noise].cdf(z - gap, scale=1.0 / second) ** length
        found.append(float((left * (1.0 - passed)).sum()))
        left = left * passed
    return [*found, float(left.sum())]


def log_of(probabilities: dict[Hashable, float]) -> Law:
    total = math.fsum(probabilities.values())
    return {outcome: math.log(p / total) for outcome, p in probabilities.items() if p > 0.0}


def of_cells(below: Any) -> Law:
    """The law of cells, by the probabilities of what is below their upper ends but the last."""
    return log_of(dict(enumerate(np.diff(np.concatenate(([0.0], below, [1.0]))).tolist())))


def above_threshold_cases() -> Iterator[tuple[str, Case]]:
    for noise in ("exponential", "laplace", "gumbel"):
        first, second = (0.9, 0.9) if noise == "gumbel" else (0.6, 1.2)
        budget = dict(epsilon1=2 * first, epsilon2=2 * second, sensitivity=2.0, noise=noise)

        def law(
            factor: float, first: float = first, second: float = second, noise: str = noise
        ) -> Law:
            gaps = [query - 2.5 for query in QUERIES]
            found = halting_law(gaps, factor * first, factor * second, noise)
            return log_of(dict(zip([*range(len(QUERIES)), None], found, strict=True)))

        for way, give in (("array", np.array), ("iterator", lambda queries: iter(list(queries)))):

            def draw(
                rng: np.random.Generator, size: int, give: Any = give, budget: dict = budget
            ) -> Iterable[Hashable]:
                return [
                    dpq.above_threshold(give(QUERIES), 2.5, rng=rng, **budget) for _ in range(size)
                ]

            yield f"above_threshold, {noise}, {way}", Case(draw, law)

            def draw_twice(
                rng: np.random.Generator, size: int, give: Any = give, budget: dict = budget
            ) -> Iterable[Hashable]:
                return [
                    tuple(
                        dpq.sparse_vector(give(QUERIES), 2.5, halts=2, rng=rng, **budget).tolist()
                    )
                    for _ in range(size)
                ]

            def law_twice(
                factor: float, first: float = first, second: float = second, noise: str = noise
            ) -> Law:
                found: dict[Hashable, float] = defaultdict(float)
                gaps = [query - 2.5 for query in QUERIES]
                rates = factor * first, factor * second, noise
                *halts, never = halting_law(gaps, *rates)
                found[()] = never
                for one, p in enumerate(halts):
                    *after, none = halting_law(gaps[one + 1 :], *rates)
                    found[(one,)] += p * none
                    for other, r in enumerate(after):
                        found[(one, one + 1 + other)] += p * r
                return log_of(found)

            yield f"sparse_vector, {noise}, {way}", Case(draw_twice, law_twice)


AMOUNTS = [0.5, 2.0, 2.5, 5.5]
BETA = 1.0 + 2.0**-16  # tens of thousands of candidates below any amount


def candidates_upto(amount: float) -> float:
    """How many of beta^i - 1, i >= 1, there are up to an amount."""
    return math.floor(math.log1p(amount) / math.log(BETA))


def runs_between(ends: Iterable[float]) -> list[float]:
    """Lengths of the runs of candidates between 0 and each end, the last one without an end."""
    upto = [0.0, *map(candidates_upto, ends)]
    return [*(b - a for a, b in pairwise(upto)), math.inf]


def unbounded_epsilons(q: float, epsilon: float, cost: float) -> tuple[float, float]:
    """Two thirds for the threshold."""
    return 2.0 * epsilon / cost / 3.0, epsilon / cost / 3.0


def searched(
    counts: list[int],
    lengths: list[float],
    target: float,
    epsilons: tuple[float, float],
    noise: str = "exponential",
    nodes: int = 200_001,
) -> list[float]:
    """Probability of each run, given how many records are below; the last one ends it."""
    gaps = [count - target for count in counts]
    *halts, last, never = halting_law(gaps, *epsilons, noise, lengths, nodes)
    return [*halts, last + never]


def one_way(q: float, epsilon: float, neighbors: str, records: list[float]) -> Law:
    """Up through the candidates: [Dur23] Algorithm 2, with Lemma B.1 under add-remove."""
    cost = 1.0 if neighbors == "swap" else max((1.0 - q) * 2 / 3, q * 2 / 3 + 1 / 3)
    counts, target = list(range(len(records) + 1)), q * len(records)
    epsilons = unbounded_epsilons(q, epsilon, cost)
    found = searched(counts, runs_between(records), target, epsilons)
    return log_of(dict(enumerate(found)))


def unbounded_cases() -> Iterator[tuple[str, Case]]:
    """Outputs by how many records are below, of which there are few; 0 after very many steps."""
    form = dict(upper=6.0, beta=BETA)

    def draws(x: Any, **options: Any) -> Draw:
        def draw(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
            outputs = [dpq.unbounded_quantile(x, rng=rng, **options) for _ in range(size)]
            return np.searchsorted(AMOUNTS, np.abs(outputs)).tolist()

        return draw

    for neighbors, q, epsilon in (
        ("swap", 0.5, 14.0),
        ("swap", 0.75, 9.4),
        ("add-remove", 0.5, 9.4),
        ("add-remove", 0.75, 7.8),
    ):
        options = dict(q=q, neighbors=neighbors, **form)

        def law(
            factor: float, q: float = q, neighbors: str = neighbors, epsilon: float = epsilon
        ) -> Law:
            return one_way(q, factor * epsilon, neighbors, AMOUNTS)

        for way, x, more in (
            ("plain", AMOUNTS, {}),
            ("counts", [5.5, 0.5, 2.0, 2.5], dict(counts=[1, 1, 1, 1])),
            ("2 records", AMOUNTS, dict(max_contributions=2, epsilon=2.0 * epsilon)),
        ):
            given = dict(epsilon=epsilon) | options | more
            yield (
                f"unbounded_quantile, {neighbors}, q = {q}, {way}",
                Case(draws(x, **given), law),
            )
    mirrored = [-x for x in AMOUNTS]
    down = dict(q=0.5, lower=None, upper=0.0, beta=BETA, epsilon=14.0)

    def downward(factor: float) -> Law:
        epsilons = unbounded_epsilons(0.5, factor * 14.0, 1.0)
        found = searched(list(range(5)), runs_between(AMOUNTS), 2.0, epsilons)
        return log_of(dict(enumerate(found)))

    yield "unbounded_quantile, down", Case(draws(mirrored, **down), downward)
    records, epsilon = [-4.0, 1.0, 4.0], 80.0

    def both(factor: float) -> Law:
        # up and then down, from 0: together epsilon1 + 2 epsilon2, over 3 thirds 4
        epsilons = unbounded_epsilons(0.5, factor * epsilon, 4 / 3)
        up = searched([1, 1, 2, 3], [1.0, *runs_between([1.0, 4.0])], 1.5, epsilons)
        down = searched([2, 2, 3], [1.0, *runs_between([4.0])], 1.5, epsilons)
        return log_of(
            {
                (0, 0): up[0] * down[0],
                **{(1, run): p for run, p in enumerate(up) if run},
                **{(-1, run): up[0] * p for run, p in enumerate(down) if run},
            }
        )

    def draw_both(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        options = dict(q=0.5, lower=None, beta=BETA, epsilon=epsilon, rng=rng)
        outputs = [dpq.unbounded_quantile(records, **options) for _ in range(size)]
        ends = {0: [0.0], 1: [0.0, 1.0, 4.0], -1: [0.0, 4.0]}
        signs = np.sign(outputs).astype(int).tolist()
        return [
            (sign, int(np.searchsorted(ends[sign], abs(o))))
            for sign, o in zip(signs, outputs, strict=True)
        ]

    yield "unbounded_quantile, both ways", Case(draw_both, both)
    yield from more_unbounded_cases(draws)


def more_unbounded_cases(draws: Callable[..., Draw]) -> Iterator[tuple[str, Case]]:
    """Each noise, each kind of candidate, a budget in rho, several levels."""

    def law(
        counts: list[int],
        lengths: list[float],
        target: float,
        epsilon: float = 14.0,
        noise: str = "exponential",
        fraction: float = 2.0 / 3.0,
    ) -> Callable[[float], Law]:
        def of(factor: float) -> Law:
            spent = factor * epsilon * fraction, factor * epsilon * (1.0 - fraction)
            found = searched(counts, lengths, target, spent, noise)
            return log_of(dict(enumerate(found)))

        return of

    form = dict(q=0.5, upper=6.0, beta=BETA, epsilon=14.0)
    plain = list(range(5)), runs_between(AMOUNTS), 2.0
    for noise, fraction in (("laplace", 2.0 / 3.0), ("gumbel", 0.5)):
        yield (
            f"unbounded_quantile, {noise}",
            Case(draws(AMOUNTS, noise=noise, **form), law(*plain, 14.0, noise, fraction)),
        )
    rho = 20.0
    # a replaced record has the range epsilon1 + 2 epsilon2
    yield (
        "unbounded_quantile, rho",
        Case(
            draws(AMOUNTS, **form | dict(epsilon=None, rho=rho)),
            law(*plain, range_of(rho) * 3.0 / 4.0),
        ),
    )
    finer = 1.0 + 2.0**-17  # so many candidates that blocks of them are counted
    upto = [0.0, *(math.floor(math.log1p(x) / math.log(finer)) for x in AMOUNTS)]
    lengths = [*(b - a for a, b in pairwise(upto)), math.inf]
    yield (
        "unbounded_quantile, blocks",
        Case(draws(AMOUNTS, **form | dict(beta=finer)), law(list(range(5)), lengths, 2.0)),
    )
    # every lattice point is a candidate, and counts the records up to it
    points = 2**12
    lengths = [points * (b - a) for a, b in pairwise([0.0, *AMOUNTS])]
    on_lattice = draws([x + 0.5 / points for x in AMOUNTS], **form, resolution=1.0 / points)
    yield "unbounded_quantile, lattice", Case(on_lattice, law(plain[0], [*lengths, math.inf], 2.0))

    inverse = [0.1, 0.35, 0.4, 0.9]  # 1 / (x + 1)
    records = [1.0 / y - 1.0 for y in inverse]

    def draw_inverted(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        options = dict(q=0.25, invert=True, beta=BETA, epsilon=14.0, rng=rng)
        outputs = [dpq.unbounded_quantile(records, **options) for _ in range(size)]
        return np.searchsorted(inverse, 1.0 / (np.array(outputs) + 1.0)).tolist()

    yield (
        "unbounded_quantile, inverted",
        Case(draw_inverted, law(list(range(5)), runs_between(inverse), 3.0)),
    )

    def draw_uniform(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        outputs = [
            dpq.unbounded_quantile(AMOUNTS, uniform=True, rng=rng, **form) for _ in range(size)
        ]
        # up to the candidate that it is drawn below
        indices = np.ceil(np.log1p(outputs) / math.log(BETA) - 1e-6)
        return np.searchsorted(AMOUNTS, np.expm1(indices * math.log(BETA))).tolist()

    yield "unbounded_quantile, uniform", Case(draw_uniform, law(*plain))
    yield "unbounded_quantile, several levels", several_searched()


def several_searched() -> Case:
    """The middle level first, and then each other one on its side, over points of a lattice."""
    q, records, points = LEVELS[3], [0, 1, 1, 2, 3, 3, 4], 6
    options = dict(upper=points - 1.0, resolution=1.0, beta=1.01, epsilon=24.0)
    through = [sum(x <= point for x in records) for point in range(points)]
    spent = dpq.privacy.unbounded_quantile.calibrate(q, epsilon=24.0, upper=points - 1.0)

    def law(factor: float) -> Law:
        @cache
        def search(step: int, level: float, low: int, high: int) -> dict[int, float]:
            """Where it ends, of the points after `low` and up to `high`."""
            if low == high:
                return {low: 1.0}
            below = through[low] if low >= 0 else 0
            inside = list(range(low + 1, high + 1))
            counts = [through[point] - below for point in inside]
            target = level * counts[-1]
            epsilons = tuple(factor * each for each in spent.step_epsilons[step])
            found = searched(counts, [1.0] * len(inside), target, epsilons, nodes=20_001)
            return dict(zip(inside, found, strict=True))

        found: dict[Hashable, float] = defaultdict(float)
        # steps are in the order in which they are searched: middle, left, right
        for middle, p in search(0, 0.5, -1, points - 1).items():
            left, right = search(1, 0.5, -1, middle), search(2, 0.5, middle, points - 1)
            for (one, p_one), (other, p_other) in product(left.items(), right.items()):
                found[(one, middle, other)] += p * p_one * p_other
        return log_of(found)

    def draw(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        outputs = [dpq.unbounded_quantile(records, q, rng=rng, **options) for _ in range(size)]
        return [tuple(map(int, each)) for each in outputs]

    return Case(draw, law)


# --- Noise on counts and sums

FAR = 60  # where the noise of these cases ends, for all that matters


def discrete_laplace(scale: float) -> dict[int, float]:
    ratio = math.exp(-1.0 / scale)
    return {
        k: (1.0 - ratio) / (1.0 + ratio) * ratio ** abs(k)
        for k in range(-int(FAR * scale), int(FAR * scale) + 1)
    }


def rounded_normal(sigma: float) -> dict[int, float]:
    reach = math.ceil(10.0 * sigma)
    return {
        k: float(ndtr((0.5 - abs(k)) / sigma) - ndtr((-0.5 - abs(k)) / sigma))
        for k in range(-reach, reach + 1)
    }


def discrete_gaussian(sigma: float) -> dict[int, float]:
    reach = math.ceil(12.0 * sigma)
    weights = {k: math.exp(-k * k / (2.0 * sigma**2)) for k in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def moved(noise: dict[int, float], center: int) -> Law:
    return log_of({center + k: p for k, p in noise.items()})


def added(*noises: dict[int, float]) -> dict[int, float]:
    """The law of a sum of independent numbers."""
    (first, *rest), found = noises, {}
    for one in rest:
        found = defaultdict(float)
        for (a, p), (b, r) in product(first.items(), one.items()):
            found[a + b] += p * r
        first = found
    return dict(first)


def scalar(release: Callable[..., float], x: Any, **options: Any) -> Draw:
    return lambda rng, size: [release(x, rng=rng, **options) for _ in range(size)]


WHOLE = np.array([1, 3, -1, 2, 2])


def aggregate_cases() -> Iterator[tuple[str, Case]]:
    for neighbors in ("swap", "add-remove"):
        form = dict(epsilon=0.5, neighbors=neighbors)
        for way, x, more, scale in (
            ("plain", WHOLE, {}, 2.0),
            ("missing", [1.0, None, 3.0, 2.0, 2.0, 1.0, np.nan], {}, 2.0),
            ("counts", [1.0, 2.0], dict(counts=[1, 4]), 2.0),
            ("2 records", WHOLE, dict(max_contributions=2), 4.0),
        ):
            yield (
                f"count, {neighbors}, {way}",
                Case(
                    scalar(dpq.count, x, **form, **more),
                    lambda factor, scale=scale: moved(discrete_laplace(scale / factor), 5),
                ),
            )
        # a sum changes by 3 at most for a record more or less, by 4 for one replaced
        public = dict(q=None, lower=-1, upper=3, resolution=1, **form)
        for way, x, more, each in (
            ("plain", WHOLE, {}, 1),
            ("clamped", [1.0, 9.0, -7.0, 2.0, 2.0], {}, 1),
            ("counts", [2, 3, -1, 1], dict(counts=[2, 1, 1, 1]), 1),
            ("2 records", WHOLE, dict(max_contributions=2), 2),
        ):
            scale = each * (4 if neighbors == "swap" else 3) / 0.5
            yield (
                f"sum, {neighbors}, {way}",
                Case(
                    scalar(dpq.sum, x, **public, **more),
                    lambda factor, scale=scale: moved(discrete_laplace(scale / factor), 7),
                ),
            )
        yield f"mean, {neighbors}", mean_case(neighbors, rows=WHOLE.size)
    yield "mean, swap, pilot", pilot_case()
    yield "mean, swap, nothing missing", mean_case("swap", nan_policy="raise")
    yield from clipped_sum_cases()


def pilot_case() -> Case:
    """So many records that a part of epsilon finds the point that their sum is taken about."""
    column, epsilon, width, cuts = np.tile(WHOLE, 26), 8.0, 4, np.linspace(1.37, 1.43, 41) + 1e-5
    share = 0.04 * (1_000.0 / (column.size * epsilon)) ** (2.0 / 3.0)
    # a part of the width, and four times as much of epsilon is for the number, or more
    blur = 1.0 / (share * column.size * epsilon)

    def noisy(about: int, spent: float, least: float) -> tuple[Any, Any]:
        """Means with the noise of a sum about half of that, from -2 to 6, and probabilities."""
        aside = abs(about - 2)
        for_number = max((width - aside) / (2.0 * width), least)
        sums = discrete_laplace((width + aside) / (1.0 - for_number) / spent)
        numbers = discrete_laplace(1.0 / for_number / spent)
        total = 2 * column.sum() - column.size * about + np.array(list(sums))
        number = np.clip(column.size + np.array(list(numbers)), 1, column.size)
        means = np.clip(about / 2.0 + total[:, None] / (2.0 * number), -1.0, 3.0)
        return means.ravel(), np.outer(list(sums.values()), list(numbers.values())).ravel()

    def law(factor: float) -> Law:
        rough, chance = noisy(2, share * factor * epsilon, 0.0)
        # twice the mean has noise of a scale of 0.2, as much as is left to the ends
        found = np.clip(np.rint(2.0 * rough), -1, 5).astype(int)
        below = np.zeros(cuts.size)
        for about in np.unique(found).tolist():
            means, p = noisy(about, (1.0 - share) * factor * epsilon, 4.0 * blur)
            order = np.argsort(means)
            reached = np.append(0.0, np.cumsum(p[order]))
            at = np.searchsorted(means[order], cuts, side="right")
            below += chance[found == about].sum() * reached[at]
        return of_cells(below)

    means = scalar(dpq.mean, column, bounds=(-1, 3), resolution=1, epsilon=epsilon)
    return Case(lambda rng, size: np.searchsorted(cuts, list(means(rng, size))).tolist(), law)


def mean_case(neighbors: str, rows: int | None = None, **said: str) -> Case:
    epsilon = 8.0

    def law(factor: float) -> Law:
        found: dict[Hashable, float] = defaultdict(float)
        if neighbors == "swap":
            # twice the distances from the middle change by 8; half as much if the number does
            noise = discrete_laplace(8.0 / (factor * epsilon))
            number = {0: 1.0} if said else discrete_laplace(2.0 / (factor * epsilon))
            pairs = [
                (2 * 7 - 5 * 2 + a, min(5.0 + b, rows or math.inf), p * r)
                for (a, p), (b, r) in product(noise.items(), number.items())
            ]
        else:
            # distances from both ends, 4 in all for each record
            noise = discrete_laplace(4.0 / (factor * epsilon))
            pairs = [
                (12 + a - 8 - b, (20 + a + b) / 4.0, p * r)
                for (a, p), (b, r) in product(noise.items(), noise.items())
            ]
        for centered, number, p in pairs:
            mean = min(max(1.0 + centered / (2.0 * max(number, 1.0)), -1.0), 3.0)
            found[round(mean, 9)] += p
        return log_of(found)

    options = dict(q=None, lower=-1, upper=3, resolution=1, epsilon=epsilon, neighbors=neighbors)
    release = scalar(dpq.mean, WHOLE, **options, **said)
    return Case(lambda rng, size: [round(o, 9) for o in release(rng, size)], law)


def clipped_sum_cases() -> Iterator[tuple[str, Case]]:
    """0.36 of epsilon finds the clip, 7/9 of that by the threshold; the rest hides the sum."""
    amounts, epsilon = np.array([0, 2, 2, 5]), 4.0
    ladder = [1.0, 3.0, 6.0]  # 2^i - 1, ended by `upper`
    below = [sum(x < candidate for x in amounts.tolist()) for candidate in ladder]
    options = dict(upper=6.0, beta=2.0, epsilon=epsilon, resolution=1)
    # a level's number of records, or all; and half of 1 / (0.36 epsilon) less, or one
    for way, more, target, offset, share in (
        ("level", dict(q=0.5), 2.0, -0.5, 0.36),
        ("clip", {}, 4.0, -1.0, 0.36),
        ("clip for few", dict(expected_n=4), 4.0, -1.0, 0.6),
    ):

        def law(
            factor: float,
            noise_factor: float | None = None,
            target: float = target,
            offset: float = offset,
            share: float = share,
        ) -> Law:
            noise_factor = factor if noise_factor is None else noise_factor
            of_clip = factor * share * epsilon
            aim = target + offset / of_clip
            clips = searched(below, [1.0] * 3, aim, (7 / 9 * of_clip, 2 / 9 * of_clip))
            found: dict[Hashable, float] = defaultdict(float)
            for clip, p in zip(ladder, clips, strict=True):
                noise = discrete_laplace(clip / (noise_factor * (1.0 - share) * epsilon))
                for k, p_noise in noise.items():
                    found[int(np.minimum(amounts, clip).sum()) + k] += p * p_noise
            return log_of(found)

        # a tenth more for one of the two alone, too
        others = {"level": (law(1.0, MORE),), "clip": (law(MORE, 1.0),)}.get(way, ())
        draw = scalar(dpq.sum, amounts, **options, **more)
        yield f"sum, private {way}", Case(draw, law, others=others)
    yield from more_clip_cases()


# Sums and means of private clips, in cells; what is beyond these is in the outer ones.
SUMS = np.linspace(-12.5, 24.5, 38)
MEANS = np.linspace(0.1, 4.9, 25)


def clips_of(epsilon: float, records: list[int], ladder: list[float]) -> list[float]:
    """Probabilities of the clips that a search for `epsilon` tries, the last one for all beyond."""
    below = [sum(x < candidate for x in records) for candidate in ladder]
    epsilons = 7 / 9 * epsilon, 2 / 9 * epsilon
    return searched(below, [1.0] * len(ladder), len(records) - 1.0 / epsilon, epsilons)


def sums_below(center: float, scale: float) -> Any:
    """Of a sum with Laplace noise, at the ends of its cells."""
    return stats.laplace.cdf(SUMS - center, scale=scale)


def means_below(
    records: Any,
    low: float,
    high: float,
    epsilon: float,
    neighbors: str,
    cells: Any = MEANS,
    rows: float = math.inf,
) -> Any:
    """Of a mean in a public clip with Laplace noise, at the ends of its cells."""
    middle, width, n = (low + high) / 2.0, high - low, len(records)
    cuts = cells[:, None] - middle
    if neighbors == "swap":  # twice the distances from the middle, and the number of records
        noise = discrete_laplace(2.0 / epsilon)
        number = np.minimum(n + np.array(list(noise)), rows)
        at = 2.0 * np.maximum(number, 1.0) * cuts - 2.0 * np.sum(records - middle)
        found = stats.laplace.cdf(at, scale=2.0 * width / epsilon) @ np.array(list(noise.values()))
    else:  # distances from both ends, whose sum is width times the number
        scale = width / epsilon
        steps = np.linspace(-40.0, 40.0, 8_001) * scale
        share = stats.laplace.pdf(steps, scale=scale)
        to_high = np.sum(high - records) + steps
        few = to_high + 2.0 * cuts  # where the number is at most 1
        slope = np.minimum(2.0 * cuts / width, 1.0 - 1e-12)
        most = np.where(few + to_high <= width, few, to_high * (1.0 + slope) / (1.0 - slope))
        at = most - np.sum(records - low)
        found = stats.laplace.cdf(at, scale=scale) @ (share / share.sum())
    return np.where(cells < low, 0.0, np.where(cells >= high, 1.0, found))


def clip_case(method: str, epsilon: float, clip_of: Callable[[float], Law]) -> Case:
    """A sum whose clip is in the long run below all records, or at these; half of it for each."""
    cells = np.linspace(-0.5, 7.0, 31)
    inside = (np.arange(2_000) + 0.5) / 2_000  # of the long run
    column = LINE[ODD].astype(float)

    def law(factor: float) -> Law:
        below = math.exp(clip_of(factor)[(0,)])
        scale = 1.0 / (factor * epsilon)
        at = stats.laplace.cdf((cells[:, None] - 5.0 * inside) / inside, scale=scale)
        beyond = stats.laplace.cdf(cells - 5.0, scale=scale)
        return of_cells(below * at.mean(axis=1) + (1.0 - below) * beyond)

    options = dict(q=0.5, lower=0.0, upper=float(LINE[2]), resolution=1, share=0.5)
    sums = scalar(dpq.sum, column, method=method, epsilon=2.0 * epsilon, **options)
    return Case(
        lambda rng, size: np.searchsorted(cells * LONG, list(sums(rng, size))).tolist(), law
    )


def two_clips_case() -> Case:
    """The clips on either side of zero, as they are handed on; by how many records are below."""
    epsilon, ends = 14.0, [*AMOUNTS, math.inf]
    column = [*AMOUNTS, *(-x for x in AMOUNTS)]

    def law(factor: float) -> Law:
        spent = factor * epsilon
        epsilons = 7 / 9 * spent, 2 / 9 * spent
        one = searched(list(range(5)), runs_between(AMOUNTS), 4.0 - 1.0 / spent, epsilons)
        return log_of({(a, b): one[a] * one[b] for a, b in product(range(5), repeat=2)})

    def draw(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        found: list[Hashable] = []

        def clip(self: Any, clips: Any) -> Any:
            found.append(tuple(np.searchsorted(ends, clips).tolist()))
            return CLIPPED(self, clips)

        options = dict(lower=None, beta=BETA, epsilon=epsilon / 0.36, neighbors="add-remove")
        with mock.patch.object(aggregates.Clipping, "clip", clip):
            for _ in range(size):
                dpq.sum(column, rng=rng, **options)
        return found

    return Case(draw, law)


def more_clip_cases() -> Iterator[tuple[str, Case]]:
    """Two clips, clips between bounds, means of private clips."""
    yield "sum, two private clips", two_clips_case()
    epsilon = 16.0
    amounts = np.array([0, 2, 2, 5])

    # (2^i - 1) / 2^8, ended by `upper`: of 6 the largest part of 2^-10 that is a power of two
    ladder = [min((2.0**i - 1.0) / 2.0**8, 6.0) for i in range(1, 12)]

    def mean_law(
        factor: float, neighbors: str, of_clips: float | None = None, rows: float = math.inf
    ) -> Law:
        clips = clips_of((of_clips or factor) * 0.36 * epsilon, amounts.tolist(), ladder)
        noise = factor * 0.64 * epsilon
        return of_cells(
            sum(
                p * means_below(np.minimum(amounts, clip), 0.0, clip, noise, neighbors, rows=rows)
                for clip, p in zip(ladder, clips, strict=True)
            )
        )

    for neighbors in ("swap", "add-remove"):
        means = scalar(dpq.mean, amounts, upper=6.0, beta=2.0, epsilon=epsilon, neighbors=neighbors)
        yield (
            f"mean, private clip, {neighbors}",
            Case(
                lambda rng, size, means=means: np.searchsorted(
                    MEANS, list(means(rng, size))
                ).tolist(),
                partial(mean_law, neighbors=neighbors, rows=amounts.size),
                others=(mean_law(MUCH_MORE, neighbors, 1.0, amounts.size),),
            ),
        )
    yield "sum, clip by joint_exp", clip_case("joint_exp", 21.0, all_bits_case(ODD).law)
    yield (
        "sum, clip by ind_exp",
        clip_case(
            "ind_exp",
            9.3,
            lambda factor: enumeration.ind_exp(
                ODD, 3, [0.5], ind_rates([0.5], factor * 9.3, "swap"), masses=THREE
            ),
        ),
    )
    # in each of as many groups as there are draws; a record that moves changes two of them
    for public_by, cost in ((True, 1.0), (False, 2.0)):
        keys = f"{'public' if public_by else 'private'} keys"
        relation = "swap" if public_by else "add-remove"

        def draw(
            rng: np.random.Generator,
            size: int,
            release: Callable[..., Any] = dpq.sum_by,
            public_by: bool = public_by,
            cost: float = cost,
        ) -> Iterable[Hashable]:
            answer = release(
                np.tile(amounts, size),
                np.repeat(np.arange(size), amounts.size),
                groups=range(size),
                upper=6.0,
                beta=2.0,
                epsilon=cost * epsilon,
                public_by=public_by,
                rng=rng,
            )
            cuts = SUMS if release is dpq.sum_by else MEANS
            return np.searchsorted(cuts, answer.values).tolist()

        def sum_law(factor: float, of_clips: float | None = None) -> Law:
            spent = (of_clips or factor) * 0.36 * epsilon
            clips = clips_of(spent, amounts.tolist(), ladder)
            return of_cells(
                sum(
                    p
                    * sums_below(np.minimum(amounts, clip).sum(), clip / (factor * 0.64 * epsilon))
                    for clip, p in zip(ladder, clips, strict=True)
                )
            )

        yield (
            f"sum_by, private clip, {keys}",
            Case(draw, sum_law, others=(sum_law(MUCH_MORE, 1.0),)),  # the noise alone
        )
        yield (
            f"mean_by, private clip, {keys}",
            Case(
                partial(draw, release=dpq.mean_by),
                partial(mean_law, neighbors=relation),
                others=(mean_law(MUCH_MORE, relation, 1.0),),
            ),
        )


# --- Noise of many groups, and which groups there are


def by_group_cases() -> Iterator[tuple[str, Case]]:
    """One call for as many groups as there are draws, of the records `WHOLE` each."""

    def grouped_noise(release: Callable[..., Any], exact: float, **options: Any) -> Draw:
        def draw(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
            keys = np.repeat(np.arange(size), WHOLE.size)
            answer = release(np.tile(WHOLE, size), keys, groups=range(size), rng=rng, **options)
            return np.rint(answer.values - exact).astype(int).tolist()

        return draw

    for neighbors, public_by, cost in (
        ("add-remove", False, 1.0),
        ("swap", False, 2.0),  # a record that changes its key
        ("swap", True, 1.0),
    ):
        form = dict(epsilon=0.5, neighbors=neighbors, public_by=public_by)
        way = f"{neighbors}, {'public' if public_by else 'private'} keys"
        if not public_by:
            yield (
                f"count_by, {way}",
                Case(
                    grouped_noise(dpq.count_by, 5.0, **form),
                    lambda f, cost=cost: moved(discrete_laplace(cost / 0.5 / f), 0),
                ),
            )
        # in its group a record more or less is 3, and another one instead of it is 4
        unit = 4.0 if public_by else 3.0 * cost
        clip = dict(q=None, lower=-1, upper=3, resolution=1)
        yield (
            f"sum_by, {way}",
            Case(
                grouped_noise(dpq.sum_by, 7.0, **clip, **form),
                lambda f, unit=unit: moved(discrete_laplace(unit / 0.5 / f), 0),
            ),
        )

    far = 2.0**60  # the scale is beyond what is drawn in bulk
    cuts = np.concatenate((-np.geomspace(1e20, 1e17, 20), np.geomspace(1e17, 1e20, 20)))

    def draw_far(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        options = dict(q=None, lower=0, upper=far, resolution=1, epsilon=0.5)
        answer = dpq.sum_by(
            [0.0], [0], groups=range(size), neighbors="add-remove", rng=rng, **options
        )
        return np.searchsorted(cuts, answer.values).tolist()

    def far_law(factor: float) -> Law:
        below = stats.laplace.cdf(cuts, scale=2.0 * far / factor)
        return of_cells(below)

    yield "sum_by, large scale", Case(draw_far, far_law)

    def draw_mean(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        options = dict(q=None, lower=-1, upper=3, resolution=1, epsilon=8.0)
        keys = np.repeat(np.arange(size), WHOLE.size)
        answer = dpq.mean_by(
            np.tile(WHOLE, size),
            keys,
            groups=range(size),
            neighbors="add-remove",
            rng=rng,
            **options,
        )
        return np.round(answer.values, 9).tolist()

    yield "mean_by", Case(draw_mean, mean_case("add-remove").law)

    def draw_keys(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        kept = dpq.select_keys(
            np.repeat(np.arange(size), 12),
            epsilon=1.0,
            delta=1e-6,
            neighbors="add-remove",
            rng=rng,
        )
        return np.isin(np.arange(size), kept).tolist()

    yield "select_keys", Case(draw_keys, lambda factor: kept_by(12, factor, 1e-6))


# --- Groups of selected keys, and descriptions


def kept_by(records: int, epsilon: float, delta: float) -> Law:
    """Whether a key of so many records is kept: [DVP20] Theorem 1, record by record."""
    kept, rise = 0.0, math.exp(epsilon)
    for _ in range(records):
        kept = min(rise * kept + delta, 1.0 - (1.0 - kept - delta) / rise, 1.0)
    return log_of({True: kept, False: 1.0 - kept})


def selected_cases() -> Iterator[tuple[str, Case]]:
    """A quarter of the budget selects the keys, and the rest is for each group of them."""
    form = dict(neighbors="add-remove", delta=1e-6, groups=None)

    def by_key(release: Callable[..., Any], column: Any, **options: Any) -> Callable[..., Any]:
        def answers(rng: np.random.Generator, size: int) -> Any:
            keys = np.repeat(np.arange(size), len(column))
            return release(np.tile(column, size), keys, rng=rng, **form | options)

        return answers

    def all_kept(release: Callable[..., Any], column: Any, **options: Any) -> Callable[..., Any]:
        answers = by_key(release, column, **options)

        def values(rng: np.random.Generator, size: int) -> Any:
            answer = answers(rng, size)
            assert len(answer) == size  # as good as certain
            return answer.values

        return values

    few = [1.0] * 12
    for name, release, options in (
        ("quantile_by", dpq.quantile_by, dict(q=0.5, bounds=(0, 3), resolution=1)),
        ("count_by", dpq.count_by, {}),
        ("sum_by", dpq.sum_by, dict(bounds=(0, 3))),
        ("mean_by", dpq.mean_by, dict(bounds=(0, 3))),
    ):
        answers = by_key(release, few, epsilon=4.0, **options)
        yield (
            f"{name}, selected keys",
            Case(
                lambda rng, size, answers=answers: np.isin(
                    np.arange(size), answers(rng, size).groups
                ).tolist(),
                lambda factor: kept_by(12, factor, 1e-6),
            ),
        )
    q, epsilon = LEVELS[2], 29.0
    quantiles = all_kept(dpq.quantile_by, FLOATS, q=q, epsilon=epsilon / 0.75, **GRID)
    yield (
        "quantile_by, groups of selected keys",
        Case(
            lambda rng, size: runs_of(quantiles(rng, size), LINE),
            lambda factor: enumeration.joint_exp(
                RECORDS, POINTS, q, joint_rate(q, factor * epsilon, "add-remove"), MASSES
            ),
        ),
    )
    many = np.tile([0.0, 2.0, 2.0, 5.0], 25)
    counts = all_kept(dpq.count_by, many, epsilon=2.0)
    yield (
        "count_by, groups of selected keys",
        Case(
            lambda rng, size: counts(rng, size).tolist(),
            lambda factor: moved(discrete_laplace(1.0 / (factor * 1.5)), 100),
        ),
    )
    sums = all_kept(dpq.sum_by, many, epsilon=2.0, q=None, lower=0, upper=6, resolution=1)
    yield (
        "sum_by, groups of selected keys",
        Case(
            lambda rng, size: np.rint(sums(rng, size)).astype(int).tolist(),
            lambda factor: moved(discrete_laplace(6.0 / (factor * 1.5)), 225),
        ),
    )
    cells = np.linspace(1.9, 2.6, 25)
    means = all_kept(dpq.mean_by, many, epsilon=2.0, bounds=(0, 6))
    yield (
        "mean_by, groups of selected keys",
        Case(
            lambda rng, size: np.searchsorted(cells, means(rng, size)).tolist(),
            lambda factor: of_cells(means_below(many, 0.0, 6.0, factor * 1.5, "add-remove", cells)),
        ),
    )


# Of what is left by a selection, a tenth is for the count, four for the mean, the rest for a level.
DESCRIBED = {
    "count": ("count", 0.1, 15.0),
    "mean": ("mean", 0.4, 15.0),
    "quantile": ("50%", 0.5, 0),
}


def describe_cases() -> Iterator[tuple[str, Case]]:
    """Each statistic of a frame, of groups, and of groups of selected keys."""
    for statistic, (label, own, some) in DESCRIBED.items():
        single = statistic == "quantile"
        column = FLOATS if single else np.array([0, 2, 2, 5])
        form = dict(bounds={"x": (0, int(LINE[-1]) if single else 6)}, resolution=1, q=0.5)

        def cells_of(found: Any, statistic: str = statistic) -> Iterable[Hashable]:
            if statistic == "count":
                return [int(each) for each in found]
            found = np.asarray(found, dtype=float)
            return (
                runs_of(found, LINE) if statistic == "quantile" else np.searchsorted(MEANS, found)
            )

        def law(
            factor: float,
            epsilon: float,
            neighbors: str,
            statistic: str = statistic,
            column: Any = column,
        ) -> Law:
            spent = factor * epsilon
            if statistic == "count":
                return moved(discrete_laplace(1.0 / spent), column.size)
            if statistic == "mean":
                rows = column.size if neighbors == "swap" else math.inf
                return of_cells(means_below(column, 0.0, 6.0, spent, neighbors, rows=rows))
            return MECHANISMS["ind_exp"][1](RECORDS, [0.5], spent, neighbors)

        def draw(
            rng: np.random.Generator,
            size: int,
            options: dict[str, Any],
            label: str = label,
            cells_of: Any = cells_of,
            column: Any = column,
        ) -> Iterable[Hashable]:
            outs = [dpq.describe({"x": column}, rng=rng, **options) for _ in range(size)]
            return cells_of([out[label][0] for out in outs])

        def draw_groups(
            rng: np.random.Generator,
            size: int,
            options: dict[str, Any],
            label: str = label,
            cells_of: Any = cells_of,
            column: Any = column,
        ) -> Iterable[Hashable]:
            frame = {"x": np.tile(column, size), "key": np.repeat(np.arange(size), column.size)}
            given = dict(groups=range(size)) | options
            out = dpq.describe(frame, by="key", rng=rng, **given)
            assert len(out) == size
            return cells_of(out[label])

        for neighbors in ("swap", "add-remove"):
            epsilon = own * some or EPSILONS["ind_exp", neighbors][1]
            person = form | dict(epsilon=epsilon / own, neighbors=neighbors)
            of = partial(law, epsilon=epsilon, neighbors=neighbors)
            alone = {} if single else dict(epsilon=epsilon, shares={statistic: 1})  # for time
            if neighbors == "swap":
                yield f"describe, {statistic}", Case(partial(draw, options=person | alone), of)
                shared = person | dict(public_by=True)
                if statistic == "count":  # which has no keys that are public
                    continue
                yield (
                    f"describe, public keys, {statistic}",
                    Case(partial(draw_groups, options=shared), of),
                )
                continue
            # a record that moves changes two groups
            moving = person | dict(epsilon=2.0 * epsilon / own, neighbors="swap")
            yield (
                f"describe, private keys, {statistic}",
                Case(partial(draw_groups, options=moving), of),
            )
            # with this delta, keys of two records are kept for sure
            selected = person | dict(epsilon=epsilon / own / 0.75, delta=0.5, groups=None)
            yield (
                f"describe, groups of selected keys, {statistic}",
                Case(partial(draw_groups, options=selected), of),
            )

    def draw_keys(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        keys = np.repeat(np.arange(size), 12)
        form = dict(bounds={"x": (0, 6)}, resolution=1, q=0.5)
        options = dict(epsilon=4.0, delta=1e-6, neighbors="add-remove", rng=rng, **form)
        out = dpq.describe({"x": np.ones(keys.size), "key": keys}, by="key", **options)
        return np.isin(np.arange(size), out["key"]).tolist()

    yield "describe, selected keys", Case(draw_keys, lambda factor: kept_by(12, factor, 1e-6))


# --- Tables


def in_duckdb(**columns: Any) -> dpq.Table:
    """A table of a data base in memory."""
    connection, given = duckdb.connect(), pa.table(columns)
    connection.register("given", given)
    connection.execute("CREATE TABLE rows AS SELECT * FROM given")
    return dpq.Table.of("SELECT * FROM rows", connection)


def table_cases() -> Iterator[tuple[str, Case]]:
    """Records in a data base, or in a frame that is read in passes."""

    def column_of(x: Any) -> Callable[[], Any]:
        return cache(lambda: in_duckdb(x=x)["x"])

    for name, (_, law) in MECHANISMS.items():
        q = LEVELS[3 if name == "approx_quantiles" else 2]
        epsilon = EPSILONS[name, "swap"][len(q)]
        yield (
            f"quantile, {name}, table",
            Case(
                repeated(
                    dpq.quantile, column_of(FLOATS), q=q, epsilon=epsilon, method=name, **GRID
                ),
                lambda factor, q=q, epsilon=epsilon, law=law: law(
                    RECORDS, q, factor * epsilon, "swap"
                ),
            ),
        )
    amounts = column_of(AMOUNTS)

    def draw_search(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        options = dict(q=0.5, upper=6.0, beta=BETA, epsilon=14.0, rng=rng)
        outputs = [dpq.unbounded_quantile(amounts(), **options) for _ in range(size)]
        return np.searchsorted(AMOUNTS, outputs).tolist()

    yield (
        "unbounded_quantile, table",
        Case(draw_search, lambda factor: one_way(0.5, factor * 14.0, "swap", AMOUNTS)),
    )
    # whole numbers in a frame, which takes less long
    held = dpq.Table.of({"x": WHOLE})["x"]
    yield (
        "count, table",
        Case(
            scalar(dpq.count, held, epsilon=0.5),
            lambda factor: moved(discrete_laplace(2.0 / factor), 5),
        ),
    )
    clip = dict(q=None, lower=-1, upper=3, resolution=1)
    yield (
        "sum, table",
        Case(
            scalar(dpq.sum, held, epsilon=0.5, **clip),
            lambda factor: moved(discrete_laplace(8.0 / factor), 7),
        ),
    )
    means = scalar(dpq.mean, held, epsilon=8.0, **clip)
    yield (
        "mean, table",
        Case(
            lambda rng, size: [round(o, 9) for o in means(rng, size)],
            mean_case("swap", rows=WHOLE.size).law,
        ),
    )

    def by_key(
        release: Callable[..., Any], column: Any, **options: Any
    ) -> Callable[[np.random.Generator, int], Any]:
        def answers(rng: np.random.Generator, size: int) -> Any:
            keys = np.repeat(np.arange(size), len(column))
            table = in_duckdb(x=np.tile(column, size), key=keys)
            options_of = dict(groups=range(size), neighbors="add-remove", rng=rng) | options
            return release(table["x"], table["key"], **options_of).values

        return answers

    counts = by_key(dpq.count_by, WHOLE, epsilon=0.5)
    sums = by_key(dpq.sum_by, WHOLE, epsilon=0.5, **clip)
    own = by_key(dpq.mean_by, WHOLE, epsilon=8.0, **clip)
    yield (
        "count_by, table",
        Case(
            lambda rng, size: counts(rng, size).tolist(),
            lambda factor: moved(discrete_laplace(2.0 / factor), 5),
        ),
    )
    yield (
        "sum_by, table",
        Case(
            lambda rng, size: np.rint(sums(rng, size)).astype(int).tolist(),
            lambda factor: moved(discrete_laplace(6.0 / factor), 7),
        ),
    )
    yield (
        "mean_by, table",
        Case(lambda rng, size: np.round(own(rng, size), 9).tolist(), mean_case("add-remove").law),
    )
    q = LEVELS[2]
    quantiles = by_key(dpq.quantile_by, FLOATS, q=q, epsilon=29.0, **GRID)
    for way, forced in (
        ("collected", ()),
        ("one by one", ((grouping, "FEW_RECORDS", 0),)),
    ):
        yield (
            f"quantile_by, table, {way}",
            Case(
                lambda rng, size: runs_of(quantiles(rng, size), LINE),
                lambda factor: enumeration.joint_exp(
                    RECORDS, POINTS, q, joint_rate(q, factor * 29.0, "add-remove"), MASSES
                ),
                forced,
            ),
        )

    def draw_keys(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        table = in_duckdb(key=np.repeat(np.arange(size), 12))
        options = dict(epsilon=1.0, delta=1e-6, neighbors="add-remove", rng=rng)
        return np.isin(np.arange(size), dpq.select_keys(table["key"], **options)).tolist()

    yield "select_keys, table", Case(draw_keys, lambda factor: kept_by(12, factor, 1e-6))


# --- Intervals


def interval_cases() -> Iterator[tuple[str, Case]]:
    """The ends around a value, of those releases whose value it is: where most records are tied."""
    spread, grid = np.arange(0.0, 1001.0, 2.0), dict(bounds=(0, 1000), resolution=1)

    def by_key(column: Any, **options: Any) -> Any:
        keys = np.zeros(column.size, dtype=int)
        return dpq.quantile_by(column, keys, groups=[0], public_by=True, **options)[0]

    # so many ties, and budgets, as need about the fewest draws
    middle = np.concatenate((spread, np.full(200, 500.0)))
    two = np.concatenate((spread, np.repeat([250.0, 750.0], 40)))
    for name, release, column, options in (
        ("one level", dpq.quantile, middle, dict(q=0.5, epsilon=0.3) | grid),
        (
            "joint_exp",
            dpq.quantile,
            two,
            dict(q=[0.25, 0.75], epsilon=2.0, method="joint_exp") | grid,
        ),
        ("by group", by_key, middle, dict(q=0.5, epsilon=0.3) | grid),
        ("without bounds", dpq.unbounded_quantile, middle, dict(q=0.5, epsilon=0.1, beta=1.5)),
    ):
        call = partial(release, column, confidence=0.9, **options)

        def draw(
            rng: np.random.Generator, size: int, call: Callable[..., Any] = call
        ) -> Iterable[Hashable]:
            value, ends = call(rng=1).value, []
            while len(ends) < size:
                answer = call(rng=rng)
                if np.array_equal(answer.value, value):
                    ends.append((*np.ravel(answer.low), *np.ravel(answer.high)))
            return ends

        yield f"interval, {name}", Case(draw, partial(ends_law, call))


def ends_law(call: Callable[..., Any], factor: float) -> Law:
    """By the candidates of one call, and the rates of what it is charged."""
    halted, charge = mock.Mock(wraps=intervals.halted), mock.Mock(wraps=dpq.privacy.charge)
    with contextlib.ExitStack() as spies:
        for module in (intervals, by_group):
            spies.enter_context(mock.patch.object(module, "halted", halted))
        spies.enter_context(mock.patch.object(dpq.privacy, "charge", charge))
        call(rng=1)
    spent = charge.call_args.args[1].search
    gaps = intervals.halting_law(halted.call_args.args[0], spent)._gaps.tolist()
    *halts, never = halting_law(
        gaps, *(factor * rate for rate in spent.rates), "exponential", nodes=20_001
    )
    found: dict[Hashable, float] = defaultdict(float)
    for step, p in enumerate([*halts[1:], never]):
        around = halted.call_args.args[0]
        found[(*around.low[:, step].tolist(), *around.high[:, step].tolist())] += p
    assert halts[0] == 0.0
    return log_of(found)


# --- Trees and distribution functions

COLUMN = np.repeat([0, 1, 2, 3], [30, 31, 32, 33])  # so many that no noise brings them together


def tree_cases() -> Iterator[tuple[str, Case]]:
    for neighbors in ("swap", "add-remove"):
        # each record is counted twice; a replaced one is in two places
        touched = 4.0 if neighbors == "swap" else 2.0
        shape = dict(height=2, branching=2, bounds=(0, 3), aggregate=False, neighbors=neighbors)
        for way, more, noise in (
            ("geometric", dict(epsilon=4.0), lambda f, t: discrete_laplace(t / (4.0 * f))),
            (
                "2 records",
                dict(epsilon=8.0, max_contributions=2),
                lambda f, t: discrete_laplace(t / (4.0 * f)),
            ),
            (
                "gaussian",
                dict(rho=1.0, noise="gaussian"),
                # rho grows as the square of the rate
                lambda f, t: discrete_gaussian(math.sqrt(t / 2.0) / f),
            ),
        ):

            def draw(
                rng: np.random.Generator, size: int, more: dict = more, shape: dict = shape
            ) -> Iterable[Hashable]:
                trees = (dpq.AggTree.of(COLUMN, rng=rng, **shape | more) for _ in range(size // 2))
                # two nodes of each: their noise is independent
                return [
                    int(node)
                    for tree in trees
                    for node in (tree.nodes[0][1] - 35, tree.nodes[1][0])
                ]

            yield (
                f"agg_tree, {neighbors}, {way}",
                Case(
                    draw,
                    lambda factor, noise=noise, touched=touched: moved(noise(factor, touched), 30),
                ),
            )
        laplace_cells = np.linspace(24.0, 36.0, 41)

        def draw_laplace(
            rng: np.random.Generator, size: int, shape: dict = shape, cells: Any = laplace_cells
        ) -> Iterable[Hashable]:
            partial_tree = dpq.PartialTree.of(COLUMN, height=2, branching=2, bounds=(0, 3))
            options = dict(epsilon=4.0, noise="laplace", neighbors=shape["neighbors"], rng=rng)
            trees = [partial_tree.release(aggregate=False, **options) for _ in range(size // 2)]
            nodes = [(tree.nodes[0][1] - 35, tree.nodes[1][0]) for tree in trees]
            return np.searchsorted(cells, np.ravel(nodes)).tolist()

        yield (
            f"agg_tree, {neighbors}, laplace, of parts",
            Case(
                draw_laplace,
                lambda factor, touched=touched, cells=laplace_cells: of_cells(
                    stats.laplace.cdf(cells, loc=30.0, scale=touched / (4.0 * factor))
                ),
            ),
        )
    yield from cdf_cases()


BINS = 1024
CROWDED = 1_000 + np.arange(BINS) % 7  # records in each bin


def counted(step: int = 1, **options: Any) -> Draw:
    """Noise of single bins, of as many answers as it takes."""

    def draw(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        grid = dict(bounds=(0, BINS - 1), resolution=1, counts=CROWDED)
        if options["method"] != "agg_tree":  # which has leaves
            grid["bins"] = BINS
        noise: list[int] = []
        while len(noise) < size:
            answer = dpq.cdf(np.arange(BINS), rng=rng, **grid, **options)
            at = answer.total * answer.cdf(np.arange(BINS))
            found = np.rint(np.diff(at, prepend=0.0) - CROWDED).astype(int)
            noise.extend(found[::step].tolist())
        return noise[:size]

    return draw


def halved(**options: Any) -> Draw:
    """Differences between neighboring bins, which least squares leave as they are counted."""

    def draw(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        differences: list[int] = []
        while len(differences) < size:
            noise = list(counted(**options)(rng, BINS))
            differences.extend(a - b for a, b in zip(noise[::2], noise[1::2], strict=True))
        return differences[:size]

    return draw


def cdf_cases() -> Iterator[tuple[str, Case]]:
    grid = dict(neighbors="add-remove")
    for way, options, noise in (
        ("histogram", dict(method="histogram", epsilon=0.5), lambda f: discrete_laplace(2.0 / f)),
        (
            "binary_tree",
            # every other sum ends with the node of one bin
            dict(method="binary_tree", epsilon=5.0, aggregate=False, step=2),
            lambda f: discrete_laplace(2.0 / f),  # a tenth for each of ten levels
        ),
        (
            "gaussian, bins",
            dict(method="gaussian", rho=0.125),
            lambda f: rounded_normal(2.0 / f),
        ),
        (
            "agg_tree",
            # a sum over the first of siblings has its noise alone
            dict(method="agg_tree", epsilon=1.0, height=2, branching=32, aggregate=False, step=32),
            lambda f: discrete_laplace(2.0 / f),  # a half for each of two levels
        ),
    ):
        yield (
            f"cdf, {way}",
            Case(counted(**options, **grid), lambda f, noise=noise: moved(noise(f), 0)),
        )
    for way, budget, noise in (
        ("", dict(epsilon=5.0), lambda f: discrete_laplace(2.0 / f)),
        (", rho", dict(rho=1.25), lambda f: discrete_gaussian(2.0 / f)),
    ):
        options = dict(method="adaptive", steps=BINS - 1, depth=10)
        yield (
            f"cdf, adaptive{way}",
            Case(
                halved(**options, **budget, **grid),
                lambda f, noise=noise: moved(added(noise(f), noise(f)), 0),
            ),
        )
    yield "cdf, factorized", weighted_case()
    yield "cdf, smooth_gaussian", smooth_case()
    cells = 2.0 + np.linspace(-0.9, 0.9, 41)

    def draw_median(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        options = dict(method="gaussian", levels=1, rho=50.0, bounds=(0, 3))
        column = COLUMN.astype(float)
        outputs = [float(dpq.cdf(column, rng=rng, **options).x[1]) for _ in range(size)]
        return np.searchsorted(cells, outputs).tolist()

    def median_law(factor: float) -> Law:
        # x is 2 there, and moves by 3 at most
        at = ndtr((cells - 2.0) * 10.0 * factor / 3.0)
        return of_cells(at)

    yield "cdf, gaussian, median", Case(draw_median, median_law)


def weighted_case() -> Case:
    """Numbers of records, weighted as before there was noise: the noise of the weighted sums."""
    factor_of = np.array(
        [round(512 * Fraction(math.comb(2 * k, k), 4**k)) for k in range(BINS)], dtype=float
    )
    # a record counts in all sums from its bin on, at most for all of these
    length = math.sqrt(float((factor_of**2).sum()))
    cells = length * 2.0 * np.linspace(-3.0, 3.0, 41)

    def draw(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        options = dict(method="factorized", rho=0.125, neighbors="add-remove")
        noise: list[int] = []
        while len(noise) < size:
            found = np.array(list(counted(**options)(rng, BINS)), dtype=float)
            sums = np.rint(np.convolve(found, factor_of)[:BINS])
            noise.extend(np.searchsorted(cells, sums).tolist())
        return noise[:size]

    return Case(draw, lambda factor: of_cells(ndtr(cells * factor / (2.0 * length))))


# --- Smooth sensitivity

SMOOTH = [0, 200, 300, 300, 600]
CUTS = 300.0 + np.concatenate((-np.geomspace(290.0, 0.5, 16), np.geomspace(0.5, 490.0, 16)))


def smooth_sensitivity(records: list[int], rank: int, t: float, bounds: tuple[int, int]) -> float:
    """[NRS07] Proposition 3.4, by all pairs; beyond the records, the bounds."""
    low, high = bounds
    x = [low, *sorted(records), high]

    def at(i: int) -> int:
        return x[min(max(i, 0), len(x) - 1)]

    return max(
        math.exp(-t * k) * max(at(rank + i) - at(rank + i - k - 1) for i in range(k + 2))
        for k in range(len(records) + 2)
    )


def noised_third(t: float, sigma: float, scale: float) -> Law:
    """Laplace log-normal noise on the third of five records, between cuts."""
    smooth = smooth_sensitivity(SMOOTH, 3, t, (0, 800)) / scale
    y = np.linspace(-9.0, 9.0, 4_001)
    weights = stats.norm.pdf(y) / stats.norm.pdf(y).sum()
    edges = np.floor(CUTS) + 0.5 - 300.0
    with np.errstate(over="ignore"):
        below = stats.laplace.cdf(edges[:, None] / (smooth * np.exp(sigma * y))) @ weights
    return of_cells(below)


def csmooth_law(t: float, epsilon: float, factor: float = 1.0, scaled: float = 1.0) -> Law:
    """[BS19] Proposition 3, with the least variance."""
    epsilon *= factor
    roots = np.roots([5.0 * epsilon / t, -5.0, 0.0, -1.0])
    (sigma,) = [root.real for root in roots if abs(root.imag) < 1e-9]
    return noised_third(t, sigma, scaled * math.exp(-1.5 * sigma**2) * (epsilon - t / sigma))


def certified_law(t: float, epsilon: float, factor: float) -> Law:
    """What `privacy.csmooth` has certified, whose own tests say that it suffices."""
    epsilon *= factor
    sigma, log_scale = dpq.privacy.csmooth.shape_of(t, epsilon)
    assert log_scale > math.log(epsilon) - 1.5 * sigma**2 + math.log1p(-t / epsilon / sigma)
    return noised_third(t, sigma, math.exp(log_scale))


def csmooth_cases() -> Iterator[tuple[str, Case]]:
    form = dict(bounds=(0, 800), resolution=1, dither=False)
    for neighbors, way, x, more, t, epsilon, law in (
        ("swap", "plain", SMOOTH, {}, 2.0, 8.0, csmooth_law),
        ("add-remove", "certified", SMOOTH, {}, 0.5, 4.0, certified_law),
        (
            "add-remove",
            "counts",
            [0, 200, 300, 600],
            dict(counts=[1, 1, 2, 1]),
            2.0,
            8.0,
            csmooth_law,
        ),
        # twice the records of a person: a quarter of the rho
        ("swap", "2 records", SMOOTH, dict(max_contributions=2), 2.0, 8.0, csmooth_law),
    ):
        rho = epsilon**2 / 2.0 * (4.0 if way == "2 records" else 1.0)
        options = dict(q=0.5, rho=rho, t=t, neighbors=neighbors)

        def draw(
            rng: np.random.Generator, size: int, x: Any = x, options: Any = options | form | more
        ) -> Iterable[Hashable]:
            column = np.array(x, dtype=float)
            outputs = [dpq.csmooth(column, rng=rng, **options) for _ in range(size)]
            return np.searchsorted(np.floor(CUTS), outputs).tolist()

        # t stays: it is the noise that spends a tenth more
        yield (
            f"csmooth, {neighbors}, {way}",
            Case(
                draw,
                partial(law, t, epsilon),
                others=(law(t, epsilon, scaled=MORE),) if way == "plain" else (),
            ),
        )


def smooth_case() -> Case:
    """One quantile of `cdf`, with the noise that `privacy.cdf` has certified."""
    epsilon, delta = 4.0, 0.1
    t, log_alpha = dpq.privacy.cdf.smooth_gaussian_scale(epsilon, delta)
    spread = smooth_sensitivity(SMOOTH, 3, t, (0, 800)) / math.exp(log_alpha)

    def draw(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        options = dict(method="smooth_gaussian", levels=1, epsilon=epsilon, delta=delta)
        column = np.array(SMOOTH, dtype=float)
        outputs = [dpq.cdf(column, bounds=(0, 800), rng=rng, **options).x[1] for _ in range(size)]
        return np.searchsorted(CUTS, outputs).tolist()

    return Case(draw, lambda factor: of_cells(ndtr((CUTS - 300.0) * factor / spread)))


def test_laws_of_runs_are_those_of_their_points():
    """Each law of `enumeration` over runs against the same law over all points of them."""
    masses, records, q = [3, 1, 2], [0, 1, 1, 2], [0.3, 0.6]
    line, owner = np.cumsum(masses) - 1, np.repeat(np.arange(3), masses).tolist()
    spread = line[records].tolist()

    def folded(law: Law, once: bool = False) -> Law:
        runs: dict[Hashable, list[float]] = defaultdict(list)
        for o, log_p in law.items():
            run = tuple(owner[place] for place in o)
            runs[run[1:2] if once and masses[run[1]] > 1 else run].append(log_p)
        return {run: enumeration.log_sum(logs) for run, logs in runs.items()}

    rates, three = [0.7, 0.9], ([0.25, 0.5, 0.75], [0.7] * 3)
    pairs = [
        (
            folded(enumeration.joint_exp(spread, 6, q, 0.7)),
            enumeration.joint_exp(records, 3, q, 0.7, masses),
        ),
        (
            folded(enumeration.joint_exp_dithered(spread, 6, q, 0.7, 1)),
            enumeration.joint_exp_dithered(records, 3, q, 0.7, 1, masses),
        ),
        (
            folded(enumeration.approx_quantiles(spread, 6, *three), once=True),
            enumeration.approx_quantiles(records, 3, *three, masses=masses),
        ),
        *(
            (
                folded(enumeration.ind_exp(spread, 6, q, rates, selection)),
                enumeration.ind_exp(records, 3, q, rates, selection, masses=masses),
            )
            for selection in ("permute-and-flip", "exponential")
        ),
    ]
    for expected, law in pairs:
        assert law.keys() == expected.keys()
        assert enumeration.max_log_ratio(law, expected) < 1e-12


# --- All of them

CASES: dict[str, Case] = dict(
    case
    for family in (
        way_cases,
        block_cases,
        part_cases,
        form_cases,
        prior_cases,
        two_stage_cases,
        dither_cases,
        many_cases,
        group_cases,
        above_threshold_cases,
        unbounded_cases,
        aggregate_cases,
        by_group_cases,
        selected_cases,
        describe_cases,
        table_cases,
        interval_cases,
        tree_cases,
        csmooth_cases,
    )
    for case in family()
)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_releases_follow_their_law(name):
    verdict = verdict_of(CASES[name])
    more = verdict.others[0]
    each = np.exp(np.array(list(more.values())))
    drawn = np.random.default_rng(1).choice(each.size, verdict.size, p=each / each.sum())
    outcomes = list(more)
    assert verdict.refuses([outcomes[k] for k in drawn.tolist()]), "a tenth more is not noticed"
    assert not is_refused(CASES[name], verdict)


# --- Releases that are broken on purpose


def faster(self: JointExpLaw, *arguments: Any) -> Any:
    """What is drawn has more of a rate than the law that is shown."""
    paths = PathLaw(self._paths._order, self._paths._q, MORE * self._paths._rate)
    return DRAWN(JointExpLaw(self.column, self._levels, paths), *arguments)


def few_faster(values: Any, q: Any, rate: float, *arguments: Any) -> Any:
    return FEW_DRAWN(values, q, MORE * rate, *arguments)


def few_flipped_faster(values: Any, q: Any, rates: Any, *arguments: Any) -> Any:
    return FEW_FLIPPED(values, q, MORE * rates, *arguments)


def groups_faster(self: Any, q: Any, spent: Any, *arguments: Any) -> None:
    RELEASED(self, q, spent._replace(rate=MORE * spent.rate), *arguments)


def cells_faster(self: CoarseLaw, order: Any, q: Any, rate: float, *arguments: Any, **more: Any):
    COARSE(self, order, q, MORE * rate, *arguments, **more)


def halts_faster(
    noise: str, first: float, second: float, gaps: Any, lengths: Any, *arguments: Any
) -> Any:
    return HALTED(noise, MORE * first, MORE * second, gaps, lengths, *arguments)


def searches_faster(noise: str, first: float, second: float, *arguments: Any) -> Any:
    return Halting(noise, MORE * first, MORE * second, *arguments)


def splits_faster(part: Any, q: Any, rate: float, **options: Any) -> PathLaw:
    return PathLaw(part, q, MORE * rate, **options)


def quieter(sigma: float, log_scale: float, rng: np.random.Generator) -> Any:
    return LOG_NORMAL(sigma, log_scale + math.log(MORE), rng)


def normal_quieter(sample: Any, q: Any, sigma: float, *arguments: Any) -> Any:
    return NORMAL(sample, q, sigma / MORE, *arguments)


def counts_quieter(self: Any, *arguments: Any) -> Any:
    return COUNT_NOISE(dataclasses.replace(self, scale=self.scale / Fraction(MORE)), *arguments)


def sums_quieter(scale: Any, *arguments: Any, **options: Any) -> Any:
    return discrete_laplace_of(scale / Fraction(MORE), *arguments, **options)


def dithered_if_odd(coarse: CoarseOrder, rng: np.random.Generator) -> WholeOrder:
    if coarse.n % 2:
        return DITHERED_ORDER(coarse, rng)
    grid = coarse.lattice
    points = coarse._points([(0, coarse.n)]) << grid.bits
    return SortedOrder(points, grid, coarse.bounds, fine=True)


def tripled(counts: Any, size: int) -> Any:
    return 3 * COUNTED(counts, size)


def weights_tripled(persons: Persons, values: Any) -> Any:
    return 3 * PERSONS_WEIGHTS(persons, values)


def selected_by_depth_faster(
    self: DepthLaw, ranks: Any, q: float, rate: float, *arguments: Any, **options: Any
) -> None:
    rate *= MORE if isinstance(ranks, SelectedOrder) else 1.0
    DEEP(self, ranks, q, rate, *arguments, **options)


def selected_faster(
    self: PathLaw, ranks: Any, q: Any, rate: float, *arguments: Any, **options: Any
) -> None:
    coarse = ranks._coarse if isinstance(ranks, dithered_module.DitheredOrder) else ranks
    rate *= MORE if isinstance(coarse, SelectedOrder) else 1.0
    RANKED_PATHS(self, ranks, q, rate, *arguments, **options)


DRAWN, RELEASED, DITHERED_ORDER = (
    JointExpLaw.sample,
    by_group._Release.__init__,
    dithered_module.dithered,
)
FEW_DRAWN, FEW_FLIPPED, COARSE = few.draw_path, few.draw_flips, CoarseLaw.__init__
PERSONS_WEIGHTS = Persons.weights
COUNTED, RANKED_PATHS, DEEP = sample.weights_of, PathLaw.__init__, DepthLaw.__init__
HALTED, LOG_NORMAL = halting_law_module.halting.draw, csmooth.laplace_log_normal
CLIPPED = aggregates.Clipping.clip
NORMAL, COUNT_NOISE, LAPLACE = (
    csmooth.gaussian_quantiles,
    counts.Geometric.draw,
    discrete_laplace_of,
)
# What is broken, most by a tenth, and how; the cases that notice.
BROKEN: dict[str, tuple[Any, str, Callable, tuple[str, ...]]] = {
    "joint_exp": (
        JointExpLaw,
        "sample",
        faster,
        ("joint_exp, sorted", "joint_exp, swap, m = 1", "quantile, joint_exp, swap"),
    ),
    "few records of joint_exp": (
        few,
        "draw_path",
        few_faster,
        ("joint_exp, sorted", "joint_exp, swap, m = 1", "quantile, joint_exp, swap"),
    ),
    "few records of ind_exp": (
        few,
        "draw_flips",
        few_flipped_faster,
        ("ind_exp, swap, m = 1", "quantile, ind_exp, swap"),
    ),
    "quantile_by": (
        by_group._Release,
        "__init__",
        groups_faster,
        (
            "quantile_by, swap, private keys, plain",
            "quantile_by, add-remove, public keys, counts",
            "quantile_by, swap, public keys, one by one",
            "quantile_by, one level, swap, public keys False, one by one",
        ),
    ),
    "dither for odd n only": (
        sample,
        "dithered",
        dithered_if_odd,
        (
            "joint_exp, dither, at once, n even",
            "joint_exp, all bits of dither, n even",
        ),
    ),
    "weights of persons tripled": (
        Persons,
        "weights",
        weights_tripled,
        ("joint_exp, persons", "ind_exp, persons", "approx_quantiles, persons"),
    ),
    "counts tripled": (
        sample,
        "weights_of",
        tripled,
        ("joint_exp, counts", "ind_exp, counts", "approx_quantiles, windows of counts"),
    ),
}
# Those that take long.
BROKEN_LONGER: dict[str, tuple[Any, str, Callable, tuple[str, ...]]] = {
    "selection by depth": (
        DepthLaw,
        "__init__",
        selected_by_depth_faster,
        ("ind_exp, selection", "ind_exp, selection of many", "ind_exp, windows of a selection"),
    ),
    "selection": (
        PathLaw,
        "__init__",
        selected_faster,
        (
            "joint_exp, selection of many, 1 workers",
            "joint_exp, selection",
            "joint_exp, dither, points selected, n odd",
        ),
    ),
    "approx_quantiles": (
        approx_quantiles,
        "PathLaw",
        splits_faster,
        ("approx_quantiles, sorted", "approx_quantiles, swap, m = 1", "approx_quantiles, rho"),
    ),
    "searches": (
        candidates,
        "Halting",
        searches_faster,
        ("unbounded_quantile, swap, q = 0.5, plain", "unbounded_quantile, both ways"),
    ),
    "joint_exp by cells": (
        CoarseLaw,
        "__init__",
        cells_faster,
        (
            "joint_exp, blocks of ranks, sorted",
            "joint_exp, blocks of ranks, counts",
        ),
    ),
    "clips": (candidates, "Halting", searches_faster, ("sum, private clip",)),
    "ends of intervals": (
        halting_law_module.halting,
        "draw",
        halts_faster,
        ("interval, one level", "interval, joint_exp", "interval, without bounds"),
    ),
    "csmooth": (csmooth, "laplace_log_normal", quieter, ("csmooth, swap, plain",)),
    "normal noise of quantiles": (
        cdf_module,
        "gaussian_quantiles",
        normal_quieter,
        ("cdf, gaussian, median",),
    ),
    "noise of counts": (
        counts.Geometric,
        "draw",
        counts_quieter,
        (
            "cdf, histogram",
            "cdf, binary_tree",
            "cdf, adaptive",
            "agg_tree, swap, geometric",
        ),
    ),
    "noise of sums": (
        aggregates,
        "discrete_laplace",
        sums_quieter,
        ("count, swap, plain", "sum, add-remove, clamped", "mean, swap", "sum, private level"),
    ),
    "noise of sums by group": (
        aggregates_by,
        "discrete_laplace",
        sums_quieter,
        (
            "count_by, add-remove, private keys",
            "sum_by, swap, public keys",
            "sum_by, large scale",
            "mean_by",
        ),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_releases_that_are_broken_are_caught(name):
    assert_is_caught(*BROKEN[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN_LONGER)
def test_more_releases_that_are_broken_are_caught(name):
    assert_is_caught(*BROKEN_LONGER[name])


def assert_is_caught(
    target: Any, attribute: str, fault: Callable[..., Any], noticed_by: tuple[str, ...]
) -> None:
    plan = PLAN if target is few else NO_FEW
    verdicts = {name: verdict_of(CASES[name]) for name in noticed_by}
    with mock.patch.object(target, attribute, fault), mock.patch.object(few, "PLAN", plan):
        for name, verdict in verdicts.items():
            assert is_refused(CASES[name], verdict), name
