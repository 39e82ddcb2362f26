"""Draws of every public release, on every path through it, against its law computed anew.

The laws come from brute force and from formulas of the papers, written here once more: rates,
noise and composition too, so that what lies between a formula and a release is tested with them.
Each case says which other law it would refuse, and how surely. At the end, releases that are
broken on purpose: each is caught by the case that its name stands beside.
"""

from __future__ import annotations

import contextlib
import importlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from itertools import pairwise, product
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from conftest import SMALLEST_P, fit, range_of
from scipy import stats
from scipy.special import ndtr

import dpq_fast as dpq
import enumeration
from dpq_fast.data import dither, lattice, order, prior, sample, selection
from dpq_fast.data import passes as chunks
from dpq_fast.data.selection import SelectedOrder
from dpq_fast.laws import choice, few
from dpq_fast.laws import coarse as coarse_law
from dpq_fast.laws import depth as depth_law
from dpq_fast.laws import path as path_law
from dpq_fast.laws import rows as rows_law
from dpq_fast.laws import widths as widths_law
from dpq_fast.laws import zones as zones_law
from dpq_fast.laws.depth import DepthLaw
from dpq_fast.laws.path import PathLaw
from dpq_fast.mechanisms.joint_exp import JointExpLaw

by_group = importlib.import_module("dpq_fast.mechanisms.quantile_by")
ind_exp = importlib.import_module("dpq_fast.mechanisms.ind_exp")

Law = dict[Hashable, float]
Draw = Callable[[np.random.Generator, int], Iterable[Hashable]]

# A case makes so many draws that twice the budget, and every other law it names, are refused with
# this probability; its epsilon is one at which few are enough.
POWER, MORE = 0.99, 2.0
SIZES = [2 * round(50 * 1.12**step) for step in range(40)]


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


@contextlib.contextmanager
def on_path(forced: Iterable[tuple[Any, str, Any]]) -> Iterator[None]:
    """With some constants changed; nothing that was made with them stays.

    A few records, which a kernel releases by itself, go by the laws then.
    """
    with contextlib.ExitStack() as changes:
        changes.callback(lattice.Lattice._of.cache_clear)
        if any(target is not lattice for target, _, _ in forced):
            changes.enter_context(mock.patch.object(few, "MOST", -1))
        for target, name, value in forced:
            changes.enter_context(mock.patch.object(target, name, value))
        lattice.Lattice._of.cache_clear()
        yield


def p_value(case: Case) -> float:
    """How well the draws of a case fit its law; they are enough to tell it from the others."""
    law = case.law(1.0)
    others = [case.law(MORE), *case.others]
    size = next(s for s in SIZES if all(power(law, other, s) > POWER for other in others))
    with on_path(case.forced):
        seen = Counter(case.draw(np.random.default_rng(20), size))
    assert seen.total() == size
    return fit(seen, law)


def power(law: Law, other: Law, draws: int) -> float:
    """Probability that draws from the other law are refused at `SMALLEST_P`."""
    means: dict[Hashable, float] = defaultdict(float)
    others: dict[Hashable, float] = defaultdict(float)
    for outcome in law.keys() | other.keys():
        mean = draws * math.exp(law.get(outcome, -math.inf))
        group = outcome if mean >= 5.0 else "few"  # as `fit` does
        means[group] += mean
        others[group] += draws * math.exp(other.get(outcome, -math.inf))
    if means["few"] == 0.0:
        del means["few"]
    shift = sum((others[key] - mean) ** 2 / mean for key, mean in means.items())
    degrees = max(len(means) - 1, 1)
    return float(stats.ncx2.sf(stats.chi2.isf(SMALLEST_P, degrees), degrees, shift))


# --- Exponential mechanisms

POINTS = 4
RECORDS = [1, 0, 3, 1, 1]  # not in order
LEVELS = {1: [0.5], 2: [0.25, 0.75], 3: [0.25, 0.5, 0.75]}
# By the number of levels, under "swap".
EPSILONS = {
    "joint_exp": {1: 2.0, 2: 2.0, 3: 3.0},
    "ind_exp": {1: 1.0, 2: 4.0, 3: 4.0},
    "approx_quantiles": {1: 2.0, 3: 6.0},
}
GRID = dict(bounds=(0, POINTS - 1), resolution=1, dither=False)


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


def tuples(outputs: Any) -> Iterator[tuple[int, ...]]:
    return map(tuple, np.asarray(outputs).astype(int).reshape(len(outputs), -1).tolist())


def repeated(release: Callable[..., Any], x: Any, **options: Any) -> Draw:
    """One call after the other; `x` may make the column anew."""

    def draw(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        column = x() if callable(x) else x
        return tuples([release(column, rng=rng, **options) for _ in range(size)])

    return draw


MECHANISMS: dict[str, tuple[Callable[..., Any], Callable[..., Law]]] = {
    "joint_exp": (
        dpq.joint_exp,
        lambda records, q, epsilon, neighbors: enumeration.joint_exp(
            records, POINTS, q, joint_rate(q, epsilon, neighbors)
        ),
    ),
    "ind_exp": (
        dpq.ind_exp,
        lambda records, q, epsilon, neighbors: enumeration.ind_exp(
            records, POINTS, q, ind_rates(q, epsilon / len(q), neighbors)
        ),
    ),
    "approx_quantiles": (
        dpq.approx_quantiles,
        lambda records, q, epsilon, neighbors: enumeration.approx_quantiles(
            records, POINTS, q, approx_rates(q, epsilon, neighbors)
        ),
    ),
}


def of_intervals(ranks: list[int], target: float, rate: float) -> Law:
    """One level of IndExp without a lattice, over intervals of one length."""
    scores = [-rate * abs(rank - target) for rank in ranks]
    return {(cell,): log_p for cell, log_p in enumerate(enumeration.exponential(scores))}


def halves() -> dpq.Sample:
    column = np.array(RECORDS, dtype=float)
    return dpq.Sample.from_batches(lambda: iter([column[:2], column[2:2], column[2:]]), **GRID)


WINDOWS = (
    (path_law, "first_window", lambda order, q, rate: 1),
    (ind_exp, "first_windows", lambda order, q, rates: np.ones(q.size, dtype=int)),
    (ind_exp, "window_of", lambda order, rate, masses: 1),
    (depth_law, "window_of", lambda order, rate, masses: 1),
    (path_law, "CERTIFICATE", 0.0),  # no window is widened: the rest is drawn from
)
SELECTION = ((sample, "SORTED_RECORDS", 0),)
CUT = ((selection, "READ", 0), (selection, "READ_SHARE", 0.0))  # by counts alone
THREADS = (*SELECTION, (chunks, "MIN_SHARE", 1))
RANKS = (  # blocks of few ranks, and cells of more
    (choice, "is_short", lambda ranks, m: False),
    (choice, "LEAST_RANKS", 0),
    (coarse_law, "LEAST_RANKS", 0),
    (zones_law, "BENDS", ((math.inf, 1.0),)),
    (zones_law, "MANY_RANKS", 0),
    (choice, "narrowest", lambda n, q, rate, loss=0.0: 3.0 * rate),
    (widths_law, "narrowest", lambda n, q, rate, loss=0.0: 3.0 * rate),
    (coarse_law, "growth_of", lambda n, q, rate: 9.0),
)
PARTS = (  # rows of all levels but the last, and then of that
    (path_law, "MOST_ENTRIES", -1),
    (rows_law, "parts_of", lambda first, last: [slice(0, first.size - 1), slice(0, first.size)]),
)
FLOATS = np.array(RECORDS, dtype=float)
# How the records come, what else is asked for, and what sends them that way.
WAYS: dict[str, tuple[Any, dict[str, Any], tuple]] = {
    "sorted": (FLOATS, GRID, ()),
    "promised": (np.sort(FLOATS), GRID | dict(assume_sorted=True), ()),
    "missing": (np.append(FLOATS, np.nan), GRID, ()),
    "list": ([None, *RECORDS], GRID, ()),
    "integers": (np.array(RECORDS), GRID, ()),
    "counts": ([3.0, 0.0, 1.0, 2.0], GRID | dict(counts=[1, 1, 3, 0]), ()),
    "batches": (halves, {}, ()),
    "windows": (FLOATS, GRID, WINDOWS),
    "selection": (FLOATS, GRID, SELECTION),
    "windows of a selection": (FLOATS, GRID, (*WINDOWS, *SELECTION)),
    "windows of counts": (
        [0.0, 1.0, 3.0],
        GRID | dict(counts=[1, 3, 1]),
        WINDOWS,
    ),
    "workers": (FLOATS, GRID | dict(workers=2), THREADS),
}


def way_cases() -> Iterator[tuple[str, Case]]:
    """Every mechanism by every way that records come, two levels or three."""
    for name, (release, law) in MECHANISMS.items():
        q = LEVELS[3 if name == "approx_quantiles" else 2]
        epsilon = {"joint_exp": 2.0, "ind_exp": 6.0, "approx_quantiles": 6.0}[name]
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
                    (thrice,) if "counts" in way else (),
                ),
            )


def block_cases() -> Iterator[tuple[str, Case]]:
    """JointExp by blocks of ranks, and each way to their borders."""
    release, law = MECHANISMS["joint_exp"]
    q, epsilon = LEVELS[2], 2.0
    for way, cut in (
        ("sorted", ()),
        ("counts", ()),
        ("windows of a selection", ()),
        ("windows of a selection", CUT),
    ):
        x, options, forced = WAYS[way]
        yield (
            f"joint_exp, blocks of ranks, {way}{', cut by counts' if cut else ''}",
            Case(
                repeated(release, x, q=q, epsilon=epsilon, **options),
                lambda factor: law(RECORDS, q, factor * epsilon, "swap"),
                (*forced, *RANKS, *cut),
            ),
        )


def part_cases() -> Iterator[tuple[str, Case]]:
    """JointExp by rows of some levels at a time, two levels or three, with and without windows."""
    release, law = MECHANISMS["joint_exp"]
    for m, epsilon in ((2, 2.0), (3, 3.0)):
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
            for neighbors, share in (("swap", 1.0), ("add-remove", 0.5)):
                epsilon = share * EPSILONS[name][m]

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
                        dpq.joint_exp, FLOATS, q=LEVELS[3], epsilon=3.0, kernel=kernel, **GRID
                    ),
                    lambda factor: MECHANISMS["joint_exp"][1](
                        RECORDS, LEVELS[3], factor * 3.0, "swap"
                    ),
                    forced,
                ),
            )
    rho, q = 0.5, LEVELS[2]
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
            ),
        ),
    )
    for forced in ((), WINDOWS):
        yield (
            f"ind_exp, densities{', windows' if forced else ''}",
            Case(
                repeated(dpq.ind_exp, FLOATS, q=[0.3], epsilon=2.0, **GRID | dict(resolution=0)),
                lambda factor: of_intervals([1, 4, 4], 1.5, factor),
                forced,
            ),
        )
    yield (
        "approx_quantiles, rho",
        Case(
            repeated(dpq.approx_quantiles, FLOATS, q=LEVELS[3], rho=rho, **GRID),
            # two depths; inside a part, a replaced record has range 2c
            lambda factor: enumeration.approx_quantiles(
                RECORDS, POINTS, LEVELS[3], [factor * range_of(rho / 2) / 2.0] * 3
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
                repeated(release, FLOATS, epsilon=1.0, **level, **GRID),
                lambda factor: MECHANISMS["ind_exp"][1](RECORDS, [0.5], factor, "swap"),
            ),
        )


# --- Priors

MASSES = [1, 2, 1, 3]
# On a line of 8 places: one for each point, and what is left, rounded down.
SHARES = np.array([0.0, 0.3, 0.0, 0.7])
PRIOR = (lambda x: np.interp(x, np.arange(POINTS + 1) - 0.5, np.append(0.0, SHARES.cumsum())), None)
EIGHT = ((prior, "TOTAL", 8),)
EAGER = ((dither, "EAGER_RECORDS", 0),)


def prior_cases() -> Iterator[tuple[str, Case]]:
    """Each mechanism on points with masses, and each way to its law; not that without a prior."""
    for name, m, epsilon in (
        ("joint_exp", 2, 2.0),
        ("ind_exp", 2, 4.0),
        ("approx_quantiles", 3, 5.0),
    ):
        release, plain = MECHANISMS[name]
        q = LEVELS[m]

        def of(
            factor: float,
            name: str = name,
            q: list[float] = q,
            epsilon: float = epsilon,
            bits: int = 0,
        ) -> Law:
            spent = factor * epsilon
            if name == "ind_exp":
                rates = ind_rates(q, spent / len(q), "swap")
                return enumeration.ind_exp(RECORDS, POINTS, q, rates, masses=MASSES)
            if name == "joint_exp":
                law, rate = enumeration.joint_exp, joint_rate(q, spent, "swap")
            else:
                law, rate = enumeration.approx_quantiles, approx_rates(q, spent, "swap")
            return enumeration.weighed(law, RECORDS, MASSES, q, rate, bits)

        even = plain(RECORDS, q, epsilon, "swap")
        options = dict(q=q, prior=PRIOR)
        for way in ("sorted", "counts", "batches", "windows", "windows of a selection"):
            x, form, forced = WAYS[way]
            if way == "batches":
                continue
            yield (
                f"{name}, prior, {way}",
                Case(
                    repeated(release, x, epsilon=epsilon, **options | form),
                    of,
                    (*EIGHT, *forced),
                    (even,),
                ),
            )
        sample = partial(dpq.Sample.of, FLOATS, prior=PRIOR, **GRID)
        given = dict(q=q, epsilon=epsilon)
        yield (
            f"{name}, prior, sample",
            Case(repeated(release, sample, **given), of, EIGHT, (even,)),
        )
        if name == "joint_exp":
            both = partial(of, epsilon=3.0)
            for drawn, forced in (
                ("at once", ()),
                ("asked for", EAGER),
                ("blocks of ranks", (*EAGER, *RANKS)),
            ):
                yield (
                    f"{name}, prior, dither, {drawn}",
                    Case(
                        repeated(
                            release, FLOATS, epsilon=3.0, **options | GRID | dict(dither=True)
                        ),
                        partial(both, bits=1),
                        (*EIGHT, (lattice, "DITHER_BITS", 1), *forced),
                        (both(1.0), plain(RECORDS, q, 3.0, "swap")),
                    ),
                )
    yield (
        "quantile_by, prior",
        Case(
            lambda rng, size: tuples(
                [
                    dpq.quantile_by(
                        FLOATS,
                        [1] * len(RECORDS),
                        LEVELS[2],
                        groups=[1],
                        epsilon=2.0,
                        public_by=True,
                        prior=PRIOR,
                        rng=rng,
                        **GRID,
                    ).values[0]
                    for _ in range(size)
                ]
            ),
            lambda factor: enumeration.weighed(
                enumeration.joint_exp,
                RECORDS,
                MASSES,
                LEVELS[2],
                joint_rate(LEVELS[2], factor * 2.0, "swap"),
            ),
            EIGHT,
            (MECHANISMS["joint_exp"][1](RECORDS, LEVELS[2], 2.0, "swap"),),
        ),
    )


# --- Dither

SPREAD = GRID | dict(bounds=(0, 2), dither=True)
ODD, EVEN = [1, 0, 1, 1, 2], [1, 0, 1, 1]
ONE_BIT = (lattice, "DITHER_BITS", 1)
MANY_POINTS = ((sample, "FEW_POINTS", 1), (sample, "MANY_POINTS", 1))
ASKED = ((dither, "EAGER_RECORDS", 0),)  # drawn where it is asked for
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
    epsilon, q = 2.0, LEVELS[2]
    for size, records in (("odd", ODD), ("even", EVEN)):

        def joint(factor: float, bits: int = 1, records: list[int] = records) -> Law:
            rate = joint_rate(q, factor * epsilon, "swap")
            return enumeration.joint_exp_dithered(records, 3, q, rate, bits)

        def single(factor: float, records: list[int] = records) -> Law:
            return enumeration.ind_exp(records, 3, q, ind_rates(q, factor * epsilon / 2.0, "swap"))

        column = np.array(records, dtype=float)
        options = dict(q=q, epsilon=epsilon, **SPREAD)
        for way, forced in (DITHERED | (RANKED if size == "odd" else {})).items():
            yield (
                f"joint_exp, dither, {way}, n {size}",
                Case(
                    repeated(dpq.joint_exp, column, **options),
                    joint,
                    (ONE_BIT, *forced),
                    (joint(1.0, 0),),
                ),
            )
            if way in RANKED:
                continue
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
        yield f"joint_exp, all bits of dither, n {size}", all_bits_case(records)


def all_bits_case(records: list[int]) -> Case:
    """A median with all its bits of dither: in one cell, spacings of uniform numbers."""
    n, epsilon = len(records), 6.0
    inside = [records.count(point) for point in range(3)]
    spacings = np.random.default_rng(0).dirichlet

    def law(factor: float) -> Law:
        rate, below, masses = factor * epsilon / 4.0, 0, []
        for tied in inside:
            # ranks below the cell's gaps; a single path counts its deviation twice
            ranks = below + np.arange(tied + 1)
            weights = np.exp(-2.0 * rate * np.abs(ranks - n / 2.0))
            gaps = spacings(np.ones(tied + 1), 200_000)
            masses.append(gaps @ weights)
            below += tied
        shares = np.mean(masses / np.sum(masses, axis=0), axis=1)
        return {(point,): math.log(share) for point, share in enumerate(shares.tolist())}

    rate = joint_rate([0.5], epsilon, "swap")
    plain = enumeration.joint_exp(records, 3, [0.5], rate)
    column = np.array(records, dtype=float)
    draw = repeated(dpq.joint_exp, column, q=[0.5], epsilon=epsilon, **SPREAD)
    return Case(draw, law, others=(plain,))


# --- Many records

MANY = 2**16 + 5
# On 6 points: almost all records at both ends, a few between them where the median is.
CROWD = [MANY // 2 - 2, 1, 1, 1, 1]
CROWD.append(MANY - sum(CROWD))


def of_ranks(counts: list[int], q: list[float], rate: float) -> Law:
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
    return enumeration.normalized({o: -rate * deviation(o) for o in outputs})


def of_depths(counts: list[int], level: float, rate: float) -> Law:
    """One level of IndExp, by permute-and-flip, where so many records lie at each point."""
    edges, target = np.cumsum([0, *counts]).tolist(), level * sum(counts)
    scores = [rate * min(target - below, upto - target) for below, upto in pairwise(edges)]
    return {(o,): log_p for o, log_p in enumerate(enumeration.permute_and_flip(scores))}


def many_cases() -> Iterator[tuple[str, Case]]:
    """More records than are sorted where they are not tied, and as they come."""
    selected = ((sample, "MANY_SORTED", 0),)
    column = np.random.default_rng(1).permutation(np.repeat(np.arange(6.0), CROWD))
    form = dict(bounds=(0, 5), resolution=1, dither=False)
    q = [(MANY // 2 - 1) / MANY, (MANY // 2 + 1) / MANY]
    for name, workers, forced in (
        ("selection of many, 1 workers", 1, selected),
        ("selection of many, 2 workers", 2, selected),
        ("ties of many", 1, ()),
    ):
        yield (
            f"joint_exp, {name}",
            Case(
                repeated(dpq.joint_exp, column, q=q, epsilon=2.0, workers=workers, **form),
                lambda factor: of_ranks(CROWD, q, joint_rate(q, factor * 2.0, "swap")),
                forced,
            ),
        )
    half = [0.5]
    yield (
        "approx_quantiles, selection of many",
        Case(
            repeated(dpq.approx_quantiles, column, q=half, epsilon=1.5, **form),
            lambda factor: of_ranks(CROWD, half, factor * 1.5 / 4.0),
            selected,
        ),
    )
    yield (
        "ind_exp, selection of many",
        Case(
            repeated(dpq.ind_exp, column, q=half, epsilon=1.5, **form),
            lambda factor: of_depths(CROWD, 0.5, factor * 1.5 / 2.0),
            selected,
        ),
    )
    batches = dpq.Sample.from_batches(lambda: iter(np.array_split(column, 3)), **form)
    yield (
        "joint_exp, batches of many",
        Case(
            repeated(dpq.joint_exp, batches, q=half, epsilon=1.5),
            lambda factor: of_ranks(CROWD, half, factor * 1.5 / 4.0),
        ),
    )


# --- Groups


def group_cases() -> Iterator[tuple[str, Case]]:
    """One call answers for many groups of the same records, among rows of other keys."""
    q, epsilon = LEVELS[2], 2.0
    for neighbors, public_by in product(("swap", "add-remove"), (False, True)):
        # a record that changes its key is a removal and an addition
        swap = neighbors == "swap"
        each = epsilon / 2.0 if swap and not public_by else epsilon
        relation = "swap" if swap and public_by else "add-remove"

        def law(factor: float, each: float = each, relation: str = relation) -> Law:
            rate = joint_rate(q, factor * each, relation)
            return enumeration.joint_exp(RECORDS, POINTS, q, rate)

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
                    (law(4.0),),
                ),
            )

        def single(factor: float, each: float = each, relation: str = relation) -> Law:
            rates = ind_rates([0.3], factor * each, relation)
            return enumeration.ind_exp(RECORDS, POINTS, [0.3], rates)

        for way, forced in (("", ()), (", one by one", ((by_group, "SMALL_ENTRIES", 0),))):
            options = dict(neighbors=neighbors, public_by=public_by, **GRID)
            yield (
                f"quantile_by, one level, {neighbors}, public keys {public_by}{way}",
                Case(grouped(RECORDS, False, False, [0.3], epsilon, options), single, forced),
            )
    for size, records in (("odd", ODD), ("even", EVEN)):
        for way, forced in (("", ()), (", one by one", ((by_group, "SMALL_ENTRIES", 0),))):

            def dithered(factor: float, bits: int = 1, records: list[int] = records) -> Law:
                rate = joint_rate(q, factor * epsilon, "add-remove")
                return enumeration.joint_exp_dithered(records, 3, q, rate, bits)

            yield (
                f"quantile_by, dither, n {size}{way}",
                Case(
                    grouped(
                        records, False, False, q, epsilon, SPREAD | dict(neighbors="add-remove")
                    ),
                    dithered,
                    (ONE_BIT, *forced),
                    (dithered(1.0, 0),),
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
        values, counts = np.array(records, dtype=float), None
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
        return tuples(out.values)

    return draw


# --- Noise on thresholds

QUERIES = [0.0, 1.0, 3.0, 2.0, 4.0]


def halting_law(gaps: list[float], first: float, second: float, noise: str) -> list[float]:
    """Probabilities to halt at each step, and never: an integral over the threshold's noise."""
    ends = (0.0, 60.0 / first) if noise == "exponential" else (-60.0 / first, 90.0 / first)
    # cut where the noise of a query begins: sums of middles are right to 1e-3
    z = np.linspace(*ends, 200_001)
    z = (z[1:] + z[:-1]) / 2.0
    families = {"exponential": stats.expon, "laplace": stats.laplace, "gumbel": stats.gumbel_r}
    left = families[noise].pdf(z, scale=1.0 / first) * (z[1] - z[0])
    found = []
    for gap in gaps:
        passed = families[noise].cdf(z - gap, scale=1.0 / second)
        found.append(float((left * (1.0 - passed)).sum()))
        left = left * passed
    return [*found, float(left.sum())]


def log_of(probabilities: dict[Hashable, float]) -> Law:
    total = math.fsum(probabilities.values())
    return {outcome: math.log(p / total) for outcome, p in probabilities.items() if p > 0.0}


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
CANDIDATES = [1.0, 3.0, 6.0]  # 2^i - 1, ended by `upper`


def unbounded_epsilons(q: float, epsilon: float, cost: float) -> tuple[float, float]:
    """Two thirds for the threshold."""
    return 2.0 * epsilon / cost / 3.0, epsilon / cost / 3.0


def searched(counts: list[int], target: float, epsilons: tuple[float, float]) -> list[float]:
    """Probability of each candidate, given how many records are below; the last one ends it."""
    *halts, last, never = halting_law(
        [count - target for count in counts], *epsilons, "exponential"
    )
    return [*halts, last + never]


def one_way(q: float, epsilon: float, neighbors: str, records: list[float]) -> Law:
    """Up through the candidates: [Dur23] Algorithm 2, with Lemma B.1 under add-remove."""
    cost = 1.0 if neighbors == "swap" else max((1.0 - q) * 2 / 3, q * 2 / 3 + 1 / 3)
    counts = [sum(x < candidate for x in records) for candidate in (1.0, 3.0, 7.0)]
    counts[-1] = sum(x < 6.0 for x in records)
    found = searched(counts, q * len(records), unbounded_epsilons(q, epsilon, cost))
    return log_of({(int(c),): p for c, p in zip(CANDIDATES, found, strict=True)})


def unbounded_cases() -> Iterator[tuple[str, Case]]:
    form = dict(upper=6.0, beta=2.0)
    for neighbors, q in product(("swap", "add-remove"), (0.5, 0.75)):
        options = dict(q=q, neighbors=neighbors, **form)

        def law(factor: float, q: float = q, neighbors: str = neighbors) -> Law:
            return one_way(q, factor * 3.0, neighbors, AMOUNTS)

        for way, x, more in (
            ("plain", AMOUNTS, {}),
            ("counts", [0.5, 2.25, 5.5], dict(counts=[1, 2, 1])),
            ("2 records", AMOUNTS, dict(max_contributions=2, epsilon=6.0)),
        ):
            given = dict(epsilon=3.0) | options | more
            yield (
                f"unbounded_quantile, {neighbors}, q = {q}, {way}",
                Case(repeated(dpq.unbounded_quantile, x, **given), law),
            )
    mirrored = [-x for x in AMOUNTS]
    down = dict(q=0.5, lower=None, upper=0.0, beta=3.0, epsilon=3.0)

    def downward(factor: float) -> Law:
        # the distances 3^i - 1, without an end
        counts = [sum(x < step for x in AMOUNTS) for step in (2.0, 8.0, 26.0, math.inf)]
        found = searched(counts, 2.0, unbounded_epsilons(0.5, factor * 3.0, 1.0))
        return log_of(dict(zip([-2, -8, -26, "beyond"], found, strict=True)))

    def draw_down(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        outputs = [dpq.unbounded_quantile(mirrored, rng=rng, **down) for _ in range(size)]
        return [int(o) if o >= -26.0 else "beyond" for o in outputs]

    yield "unbounded_quantile, down", Case(draw_down, downward)

    def both(factor: float) -> Law:
        # up and then down, from 0: together epsilon1 + 2 epsilon2, over 3 thirds 4
        epsilons = unbounded_epsilons(0.5, factor * 3.0, 4 / 3)
        records = [-4.0, 1.0, 4.0]
        up, down = (
            searched([sum(sign * x < s for x in records) for s in (0.0, 9.0, 99.0)], 1.5, epsilons)
            for sign in (1, -1)
        )
        return log_of(
            {
                "0": up[0] * down[0],
                "9": up[1],
                "up": up[2],
                "-9": up[0] * down[1],
                "down": up[0] * down[2],
            }
        )

    def draw_both(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        options = dict(q=0.5, lower=None, beta=10.0, epsilon=3.0, rng=rng)
        outputs = [dpq.unbounded_quantile([-4.0, 1.0, 4.0], **options) for _ in range(size)]
        names = {0.0: "0", 9.0: "9", -9.0: "-9"}
        return [names.get(o, "up" if o > 0.0 else "down") for o in outputs]

    yield "unbounded_quantile, both ways", Case(draw_both, both)


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
        yield f"mean, {neighbors}", mean_case(neighbors)
    yield "mean, swap, nothing missing", mean_case("swap", nan_policy="raise")
    yield from clipped_sum_cases()


def mean_case(neighbors: str, **said: str) -> Case:
    epsilon = 8.0

    def law(factor: float) -> Law:
        found: dict[Hashable, float] = defaultdict(float)
        if neighbors == "swap":
            # twice the distances from the middle change by 8; half as much if the number does
            noise = discrete_laplace(8.0 / (factor * epsilon))
            number = {0: 1.0} if said else discrete_laplace(2.0 / (factor * epsilon))
            pairs = [
                (2 * 7 - 5 * 2 + a, 5.0 + b, p * r)
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
    below = [sum(x < candidate for x in amounts.tolist()) for candidate in (1.0, 3.0, 6.0)]
    options = dict(upper=6.0, beta=2.0, epsilon=epsilon, resolution=1)
    # a level's number of records, or all; and half of 1 / (0.36 epsilon) less, or one
    for way, more, target, offset, share in (
        ("level", dict(q=0.5), 2.0, -0.5, 0.36),
        ("clip", {}, 4.0, -1.0, 0.36),
        ("clip for few", dict(expected_n=4), 4.0, -1.0, 0.6),
    ):

        def law(
            factor: float,
            target: float = target,
            offset: float = offset,
            share: float = share,
        ) -> Law:
            of_clip = factor * share * epsilon
            aim = target + offset / of_clip
            clips = searched(below, aim, (7 / 9 * of_clip, 2 / 9 * of_clip))
            found: dict[Hashable, float] = defaultdict(float)
            for clip, p in zip(CANDIDATES, clips, strict=True):
                noise = discrete_laplace(clip / (factor * (1.0 - share) * epsilon))
                for k, p_noise in noise.items():
                    found[int(np.minimum(amounts, clip).sum()) + k] += p * p_noise
            return log_of(found)

        yield f"sum, private {way}", Case(scalar(dpq.sum, amounts, **options, **more), law)


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
    yield from cdf_cases()


def total(**options: Any) -> Draw:
    def draw(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        for _ in range(size):
            yield round(float(dpq.cdf(COLUMN, bounds=(0, 3), rng=rng, **options).total))

    return draw


def total_of_two_depths(noise: dict[int, float]) -> dict[int, float]:
    """Error of the sum of two halves: each the mean of its own count, twice, and its halves'."""
    twice = {2 * k: p for k, p in noise.items()}
    found: dict[int, float] = defaultdict(float)
    for thrice, p in added(twice, noise, noise, twice, noise, noise).items():
        found[round(thrice / 3)] += p
    return found


def cdf_cases() -> Iterator[tuple[str, Case]]:
    grid = dict(neighbors="add-remove")
    yield (
        "cdf, histogram",
        Case(
            total(method="histogram", bins=2, epsilon=1.0, **grid),
            lambda f: moved(added(discrete_laplace(1.0 / f), discrete_laplace(1.0 / f)), 126),
        ),
    )
    yield (
        "cdf, binary_tree",
        Case(
            total(method="binary_tree", bins=2, epsilon=1.0, aggregate=False, **grid),
            lambda f: moved(added(discrete_laplace(1.0 / f), discrete_laplace(1.0 / f)), 126),
        ),
    )
    for way, budget, noise in (
        ("", dict(epsilon=4.0), lambda f: discrete_laplace(0.5 / f)),
        (", rho", dict(rho=4.0), lambda f: discrete_gaussian(0.5 / f)),
    ):
        yield (
            f"cdf, adaptive{way}",
            Case(
                total(method="adaptive", steps=3, bins=4, **budget, **grid),
                lambda f, noise=noise: moved(total_of_two_depths(noise(f)), 126),
            ),
        )
    yield (
        "cdf, gaussian, bins",
        Case(
            total(method="gaussian", bins=2, rho=0.125, **grid),
            lambda f: moved(added(rounded_normal(2.0 / f), rounded_normal(2.0 / f)), 126),
        ),
    )
    cells = np.linspace(0.0, 3.0, 13)[1:-1]

    def draw_median(rng: np.random.Generator, size: int) -> Iterable[Hashable]:
        options = dict(method="gaussian", levels=1, rho=2.0, bounds=(0, 3))
        column = COLUMN.astype(float)
        outputs = [float(dpq.cdf(column, rng=rng, **options).x[1]) for _ in range(size)]
        return np.searchsorted(cells, outputs).tolist()

    def median_law(factor: float) -> Law:
        # x is 2 there, and moves by 3 at most
        at = ndtr((cells - 2.0) * 2.0 * factor / 3.0)
        return log_of(dict(enumerate(np.diff(np.concatenate(([0.0], at, [1.0]))).tolist())))

    yield "cdf, gaussian, median", Case(draw_median, median_law)


# --- Smooth sensitivity

SMOOTH = [0, 2, 3, 3, 6]


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


def csmooth_law(t_of_epsilon: float, epsilon: float) -> Law:
    """Laplace log-normal noise on the third of five records, rounded and clamped to 0 .. 8."""
    t = t_of_epsilon * epsilon
    roots = np.roots([5.0 * epsilon / t, -5.0, 0.0, -1.0])
    (sigma,) = [root.real for root in roots if abs(root.imag) < 1e-9]
    scale = math.exp(-1.5 * sigma**2) * (epsilon - t / sigma)
    smooth = smooth_sensitivity(SMOOTH, 3, t, (0, 8)) / scale
    y = np.linspace(-9.0, 9.0, 4_001)
    weights = stats.norm.pdf(y) / stats.norm.pdf(y).sum()
    edges = np.arange(8) + 0.5 - 3.0
    with np.errstate(over="ignore"):
        below = stats.laplace.cdf(edges[:, None] / (smooth * np.exp(sigma * y))) @ weights
    return log_of(dict(enumerate(np.diff(np.concatenate(([0.0], below, [1.0]))).tolist())))


def csmooth_cases() -> Iterator[tuple[str, Case]]:
    form = dict(bounds=(0, 8), resolution=1, dither=False)
    for neighbors in ("swap", "add-remove"):
        for way, x, more in (
            ("plain", SMOOTH, {}),
            ("counts", [0, 2, 3, 6], dict(counts=[1, 1, 2, 1])),
            # twice the records of a person: a quarter of the rho
            ("2 records", SMOOTH, dict(max_contributions=2)),
        ):
            epsilon = 8.0
            rho = epsilon**2 / 2.0 * (4.0 if way == "2 records" else 1.0)
            options = dict(q=0.5, rho=rho, t=0.25 * epsilon, neighbors=neighbors)
            yield (
                f"csmooth, {neighbors}, {way}",
                Case(
                    scalar(dpq.csmooth, np.array(x, dtype=float), **options, **form, **more),
                    lambda factor: csmooth_law(0.25, 8.0 * factor),
                ),
            )


# --- All of them

CASES: dict[str, Case] = dict(
    case
    for family in (
        way_cases,
        block_cases,
        part_cases,
        form_cases,
        prior_cases,
        dither_cases,
        many_cases,
        group_cases,
        above_threshold_cases,
        unbounded_cases,
        aggregate_cases,
        tree_cases,
        csmooth_cases,
    )
    for case in family()
)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_releases_follow_their_law(name):
    assert p_value(CASES[name]) >= SMALLEST_P


# --- Releases that are broken on purpose


def at_twice_the_rate(self: JointExpLaw, *arguments: Any) -> Any:
    """What is drawn has twice the rate of the law that is shown."""
    paths = PathLaw(self._paths._order, self._paths._q, 2.0 * self._paths._rate)
    return DRAWN(JointExpLaw(self.column, self._levels, paths), *arguments)


def few_at_twice_the_rate(values: Any, q: Any, rate: float, *arguments: Any) -> Any:
    return FEW_DRAWN(values, q, 2.0 * rate, *arguments)


def few_flipped_at_twice_the_rate(values: Any, q: Any, rates: Any, *arguments: Any) -> Any:
    return FEW_FLIPPED(values, q, 2.0 * rates, *arguments)


def at_four_times_the_rate(self: Any, q: Any, spent: Any, *arguments: Any) -> None:
    RELEASED(self, q, spent._replace(rate=4.0 * spent.rate), *arguments)


def dithered_if_odd(coarse: order.CoarseOrder, rng: np.random.Generator) -> order.WholeOrder:
    if coarse.n % 2:
        return DITHERED_ORDER(coarse, rng)
    grid = coarse.lattice
    points = coarse._points([(0, coarse.n)]) << grid.bits
    return order.SortedOrder(points, grid, coarse.bounds, fine=True)


def tripled(counts: Any, size: int) -> Any:
    return 3 * COUNTED(counts, size)


def selected_by_depth_at_twice_the_rate(
    self: DepthLaw, ranks: Any, q: float, rate: float, *arguments: Any, **options: Any
) -> None:
    rate *= 2.0 if isinstance(ranks, SelectedOrder) else 1.0
    DEEP(self, ranks, q, rate, *arguments, **options)


def selected_at_twice_the_rate(
    self: PathLaw, ranks: Any, q: Any, rate: float, *arguments: Any, **options: Any
) -> None:
    coarse = ranks._coarse if isinstance(ranks, dither.DitheredOrder) else ranks
    rate *= 2.0 if isinstance(coarse, SelectedOrder) else 1.0
    RANKED(self, ranks, q, rate, *arguments, **options)


DRAWN, RELEASED, DITHERED_ORDER = JointExpLaw.sample, by_group._Release.__init__, dither.dithered
FEW_DRAWN, FEW_FLIPPED = few.draw_path, few.draw_flips
COUNTED, RANKED, DEEP = sample.check_counts, PathLaw.__init__, DepthLaw.__init__
# What is broken, and how; the cases that notice.
BROKEN: dict[str, tuple[Any, str, Callable, tuple[str, ...]]] = {
    "joint_exp draws at twice the rate": (
        JointExpLaw,
        "sample",
        at_twice_the_rate,
        ("joint_exp, sorted", "joint_exp, swap, m = 1", "quantile, joint_exp, swap"),
    ),
    "few records of joint_exp at twice the rate": (
        few,
        "draw_path",
        few_at_twice_the_rate,
        ("joint_exp, sorted", "joint_exp, swap, m = 1", "quantile, joint_exp, swap"),
    ),
    "few records of ind_exp at twice the rate": (
        few,
        "draw_flips",
        few_flipped_at_twice_the_rate,
        ("ind_exp, swap, m = 1", "quantile, ind_exp, swap"),
    ),
    "rate times 4 inside quantile_by": (
        by_group._Release,
        "__init__",
        at_four_times_the_rate,
        ("quantile_by, swap, private keys, plain", "quantile_by, add-remove, public keys, counts"),
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
    "counts tripled": (
        sample,
        "check_counts",
        tripled,
        ("joint_exp, counts", "ind_exp, counts", "approx_quantiles, windows of counts"),
    ),
    "selection by depth at twice the rate": (
        DepthLaw,
        "__init__",
        selected_by_depth_at_twice_the_rate,
        ("ind_exp, selection", "ind_exp, selection of many", "ind_exp, windows of a selection"),
    ),
    "selection at twice the rate": (
        PathLaw,
        "__init__",
        selected_at_twice_the_rate,
        (
            "joint_exp, selection of many, 1 workers",
            "joint_exp, selection",
            "joint_exp, dither, points selected, n odd",
        ),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_releases_that_are_broken_are_caught(name):
    target, attribute, fault, noticed_by = BROKEN[name]
    most = few.MOST if target is few else -1
    with mock.patch.object(target, attribute, fault), mock.patch.object(few, "MOST", most):
        for case in noticed_by:
            assert p_value(CASES[case]) < SMALLEST_P, case
