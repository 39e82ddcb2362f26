"""Intervals around a private quantile: ways to make them, and how often they cover.

Of no paper: ours. Compared are shifted levels (Drechsler et al. 2021), a second exponential
mechanism for the half-width (PostRI, arXiv 2604.07581), a tree's, and the search that is used
(`dpq_fast.privacy.intervals`), all with the same budget in total.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench.columns import BOUNDS, gaussian
from dpq_fast.mechanisms.intervals import RATIO
from papers.auto_rule import Data, datasets
from papers.report import Report, digits

CONFIDENCE = 0.95
# Of the budget, for the intervals of the other ways.
SHARE = 0.5
SIZES = (100, 1_000, 10_000, 100_000)
EPSILONS = (0.1, 1.0, 3.0)
LEVELS = (0.05, 0.5, 0.95)
RELATIONS = ("swap", "add-remove")
KINDS = ("sample", "population")


class Ends(NamedTuple):
    """What was released."""

    value: float
    low: float
    high: float


def intervals(report: Report, out: Path) -> None:
    """Ways compared, then coverage of the one that is used over all kinds of columns."""
    draws = 100 if report.quick else 2_000
    for q, epsilon in product((0.5, 0.95), (1.0, 0.1)):
        table = report.table(
            f"{CONFIDENCE:.0%} intervals of the quantile {q} of 1,000 records, swap, ε = {epsilon}",
            "way",
            *(f"{name}: {what}" for name in _columns() for what in ("coverage", "reach", "error")),
        )
        for way, release in WAYS.items():
            row = []
            for data in _columns().values():
                x = np.sort(data.draw(1_000, np.random.default_rng(1)))
                made = [
                    release(x, q, epsilon, data, np.random.default_rng([2, draw]))
                    for draw in range(draws)
                ]
                row += _summary(x, q, made)
            table.add_row(way, *row)
        report.print(table)
    for kind, relation in product(KINDS, RELATIONS):
        table = report.table(
            f"Coverage of {CONFIDENCE:.0%} intervals, {kind}, {relation}: least over levels "
            f"{LEVELS} and ε {EPSILONS}; in brackets the reach in ranks at the median, ε = 1",
            "data",
            *(f"n = {n:,}" for n in (SIZES[:2] if report.quick else SIZES)),
        )
        for name, data in (datasets() | _tied()).items():
            sizes = SIZES[:2] if report.quick else SIZES
            table.add_row(name, *(_coverage(data, n, kind, relation, report.quick) for n in sizes))
        report.print(table)


def _columns() -> dict[str, Data]:
    known = datasets()
    return {name: known[name] for name in ("N(0, 5)", "Cauchy", "age") if name in known}


def _tied() -> dict[str, Data]:
    """Columns with half of all records at one value, and with all of them there."""

    def half(n: int, rng: np.random.Generator) -> NDArray:
        return np.where(rng.random(n) < 0.5, 0.0, gaussian(n, rng))

    return {
        "half tied": Data(half, BOUNDS),
        "all tied": Data(lambda n, rng: np.zeros(n), BOUNDS),
    }


def _summary(x: NDArray, q: float, made: list[Ends]) -> list[str]:
    """Coverage, mean ranks that an interval reaches to a side, mean rank error of the value."""
    values, low, high = np.array(made).T
    exact = x[max(math.ceil(q * x.size), 1) - 1]
    covered = (low <= exact + NEAR) & (exact - NEAR <= high)
    reach = np.searchsorted(x, high, side="right") - np.searchsorted(x, low)
    missed = dpq.metrics.rank_error(x, np.array([q]), values[:, None])
    return [f"{covered.mean():.3f}", digits(float(reach.mean() / 2)), digits(float(missed.mean()))]


# Half of a lattice's spacing, that records are rounded by.
NEAR = 5e-4


def _coverage(data: Data, n: int, kind: str, relation: str, quick: bool) -> str:
    """The least coverage of a level and a budget, and the reach at the median."""
    least, reach = 1.0, math.nan
    for q, epsilon in product(LEVELS, EPSILONS):
        covered, reached = [], []
        exact = _of_law(data, q) if kind == "population" else math.nan
        if kind == "population" and math.isnan(exact):
            return "-"
        samples, draws = (20, 5) if kind == "population" else (4, 50)
        for seed in range(samples if quick else 10 * samples):
            x = np.sort(data.draw(n, np.random.default_rng([seed, n])))
            sample = dpq.Sample.of(x, data.bounds, resolution=data.resolution, assume_sorted=True)
            target = x[max(math.ceil(q * n), 1) - 1] if kind == "sample" else exact
            for draw in range(draws):
                made = dpq.ind_exp(
                    sample,
                    q,
                    epsilon=epsilon,
                    neighbors=relation,
                    confidence=CONFIDENCE,
                    covers=kind,
                    expected_n=n,
                    rng=np.random.default_rng([seed, draw]),
                )
                covered.append(made.low <= target + NEAR and target - NEAR <= made.high)
                inside = np.searchsorted(x, [made.low, made.high])
                reached.append(int(inside[1] - inside[0]) / 2)
        least = min(least, float(np.mean(covered)))
        if q == 0.5 and epsilon == 1.0:
            reach = float(np.median(reached))
    return f"{least:.4f} [{digits(reach)}]"


def _of_law(data: Data, q: float) -> float:
    """The quantile of what generated columns are drawn from, from 10^7 records; nan for others."""
    try:
        large = data.draw(10**7, np.random.default_rng(0))
    except ValueError:
        return math.nan
    low, high = data.bounds
    return float(np.clip(np.quantile(large, q), low, high))


def _search(x: NDArray, q: float, epsilon: float, data: Data, rng: np.random.Generator) -> Ends:
    """What `quantile` does for one level."""
    made = dpq.quantile(
        x,
        q,
        epsilon=epsilon,
        confidence=CONFIDENCE,
        bounds=data.bounds,
        resolution=data.resolution,
        rng=rng,
    )
    return Ends(*made)


def _tree(x: NDArray, q: float, epsilon: float, data: Data, rng: np.random.Generator) -> Ends:
    """A tree of as large a share."""
    options: dict[str, Any] = dict(bounds=data.bounds, resolution=data.resolution, rng=rng)
    value = dpq.ind_exp(x, q, epsilon=(1.0 - SHARE) * epsilon, assume_sorted=True, **options)
    tree = dpq.AggTree.of(x, epsilon=SHARE * epsilon, nan_policy="raise", **options)
    low, high = tree.quantile_confint(q, CONFIDENCE)
    return Ends(value, min(low, value), max(high, value))


def _second(x: NDArray, q: float, epsilon: float, data: Data, rng: np.random.Generator) -> Ends:
    """A half-width by the exponential mechanism, so that it covers every data set.

    Of J half-widths that shrink, j* is the first for which a side has fewer records than a margin
    c beyond q n: the score of j is minus the number of records that the margin would have to move
    for j to be the one. All that fail to cover are c records away, so that they have a probability
    of at most J exp(-c epsilon / 2).
    """
    options: dict[str, Any] = dict(bounds=data.bounds, resolution=data.resolution)
    value = dpq.ind_exp(
        x, q, epsilon=(1.0 - SHARE) * epsilon, assume_sorted=True, rng=rng, **options
    )
    sample = dpq.Sample.of(x, data.bounds, resolution=data.resolution, assume_sorted=True)
    lattice, rate = sample.lattice, SHARE * epsilon / 2.0
    assert lattice is not None
    point = lattice.locate(value)
    assert point is not None
    steps = math.ceil(math.log(lattice.points) / math.log(RATIO))
    widths = np.unique(np.append(0, np.ceil(RATIO ** np.arange(steps + 1.0))).astype(np.int64))
    widths = widths[::-1]
    low, high = np.maximum(point - widths, 0), np.minimum(point + widths, lattice.points - 1)
    order = sample.coarse()
    beside = np.minimum(
        np.where(low > 0, q * x.size - order.ranks_of(low), np.inf),
        np.where(high < lattice.points - 1, order.ranks_of(high + 1) - q * x.size, np.inf),
    )
    margin = math.log(widths.size / (1.0 - CONFIDENCE)) / rate
    beyond = np.append(beside[1:], -np.inf)  # of the next narrower one
    score = -np.maximum(np.maximum(margin - beside, beyond - margin), 0.0)
    chosen = int(np.argmax(rate * score + rng.gumbel(size=score.size)))
    return Ends(value, *lattice.decode(np.array([low[chosen], high[chosen]])).tolist())


def _shifted(guaranteed: bool) -> Callable[..., Ends]:
    """Three levels in one joint draw.

    Guaranteed: so far apart that no three outputs of P^3 could be so far off, whatever the records
    are. Else as far as on evenly spread records: 12 ranks over epsilon were found to cover 95%.
    """

    def release(x: NDArray, q: float, epsilon: float, data: Data, rng: np.random.Generator) -> Ends:
        sample = dpq.Sample.of(x, data.bounds, resolution=data.resolution, assume_sorted=True)
        lattice = sample.lattice
        assert lattice is not None
        shift = 12.0 / epsilon
        if guaranteed:
            shift = 2.0 * (3.0 * math.log(lattice.points) + math.log(2.0 / (1.0 - CONFIDENCE)))
            shift /= epsilon
        ends = q - shift / x.size, q + shift / x.size
        asked = sorted({min(max(each, 0.0), 1.0) for each in (*ends, q)})
        made = dict(zip(asked, dpq.joint_exp(sample, asked, epsilon=epsilon, rng=rng), strict=True))
        low = made[ends[0]] if ends[0] > 0.0 else data.bounds[0]
        high = made[ends[1]] if ends[1] < 1.0 else data.bounds[1]
        return Ends(made[q], low, high)

    return release


def _none(x: NDArray, q: float, epsilon: float, data: Data, rng: np.random.Generator) -> Ends:
    """The value alone."""
    value = dpq.ind_exp(
        x,
        q,
        epsilon=epsilon,
        bounds=data.bounds,
        resolution=data.resolution,
        assume_sorted=True,
        rng=rng,
    )
    return Ends(value, value, value)


WAYS: dict[str, Callable[..., Ends]] = {
    "none": _none,
    "search": _search,
    "tree": _tree,
    "second exponential mechanism": _second,
    "shifted levels, guaranteed": _shifted(True),
    "shifted levels, even records": _shifted(False),
}
