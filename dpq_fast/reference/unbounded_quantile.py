"""Unbounded quantiles, [Dur23] Algorithms 2 and 4 and B.1: candidate by candidate.

[Dur23] is Durfee, "Unbounded Differentially Private Quantile and Maximum Estimation".
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast.data.lattice import points_per_unit
from dpq_fast.mechanisms.unbounded_quantile import Search
from dpq_fast.noise.rng import default_rng
from dpq_fast.privacy.levels import Split, splits
from dpq_fast.reference.above_threshold import above_threshold, above_threshold_law
from dpq_fast.reference.histogram import geometric_thresholds, powers
from dpq_fast.reference.sample import check_records, kept_records


class Candidates(NamedTuple):
    """One search: what is tested, in this order.

    Attributes
    ----------
    sign : int
        -1 where everything is about -x.
    values : list of float
        Ascending candidates; the first one is tested only if both ways are searched.
    released : list of float, optional
        On a lattice, what is released in place of each; there `values` are the multiples, plus a
        half, that rounded records are compared with.
    """

    sign: int
    values: list[float]
    released: list[float] | None = None


def candidates_of(search: Search) -> list[Candidates]:
    """The candidates of each way."""
    plain = plain_candidates(search)
    if search.resolution is None:
        return plain
    return [rounded(way, search) for way in plain]


def rounded(way: Candidates, search: Search) -> Candidates:
    """The distinct lattice points nearest to candidates; of records, those up to each count."""
    step, per_unit = search.resolution, points_per_unit(search.resolution)
    low, high = sorted(way.sign * end for end in search.multiples)
    multiples = sorted({min(max(nearest(v, step), low), high) for v in way.values})
    near = [m for m in multiples if abs(m) < 2**53]
    points = [m / per_unit if per_unit else m * step for m in near]
    tested = [near[0] - 0.5] + [m + 0.5 for m in near]
    if multiples[-1] > near[-1]:  # as near to a multiple as float64 numbers are
        far = [v for v in way.values if v > (near[-1] + 1.0) * step]
        points += far
        tested += [math.nextafter(nearest(v, step), math.inf) for v in far]
    return Candidates(way.sign, tested, points[:1] + points)


def nearest(value: float, step: float) -> float:
    """The multiple of `step` nearest to a value, the even one at a tie; inf beyond float64."""
    per_unit = points_per_unit(step)
    position = value * per_unit if per_unit else value / step
    return float(round(position)) if math.isfinite(position) else position


def plain_candidates(search: Search) -> list[Candidates]:
    """The candidates of each way without a lattice."""
    beta, lower, upper = search.beta, search.lower, search.upper
    if lower is None and upper is None:
        thresholds = geometric_thresholds(beta, 0.0)
        return [Candidates(1, thresholds), Candidates(-1, thresholds)]
    if not search.invert:
        if lower is None:
            return [Candidates(-1, geometric_thresholds(beta, -upper))]
        return [Candidates(1, geometric_thresholds(beta, lower, upper))]
    # [Dur23] B.1: y = 1/(x - l + 1) < beta^i - 1  <=>  -x < -(1/(beta^i - 1) + l - 1)
    sign, bound = (-1, lower) if lower is not None else (1, -upper)
    values = []
    for power in islice(powers(beta), 1, None):
        values.append(-max(1.0 / (power - 1.0) + (bound - 1.0), bound))
        if power - 1.0 >= 1.0:  # y is at most 1
            break
    return [Candidates(sign, values[:1] + values)]


class UnboundedQuantileLaw:
    """The exact law of `unbounded_quantile` on some records."""

    def __init__(self, search: Search, records: list[float]) -> None:
        self.search = search
        if search.resolution is not None:
            records = [nearest(x, search.resolution) for x in records]
        self.ways = [(way, sorted(way.sign * x for x in records)) for way in candidates_of(search)]

    # A part is (ascending records, candidates' indices start and stop): what is left to search
    # are start + 1, ..., stop.

    def _queries(
        self, way: Candidates, part: tuple[list[float], int, int], level: float, number: int
    ) -> tuple[list[int], float]:
        """f_i of the candidates left, and the threshold: both less floor(level * records)."""
        records, start, stop = part
        target = Fraction(level) * len(records)
        whole = math.floor(target)
        queries = [bisect_left(records, way.values[i]) - whole for i in range(start + 1, stop + 1)]
        threshold = float(target - whole) + self.search.offset / sum(self.search.scales[number])
        return queries, threshold

    def _options(self, number: int) -> dict[str, Any]:
        first, second = self.search.scales[number]
        return dict(epsilon1=first, epsilon2=second, noise=self.search.noise)

    def _whole(self, way: Candidates, records: list[float]) -> tuple[list[float], int, int]:
        return records, -1 if len(self.ways) == 2 else 0, len(way.values) - 1

    @staticmethod
    def _cut(
        way: Candidates, part: tuple[list[float], int, int], index: int
    ) -> tuple[tuple[list[float], int, int], tuple[list[float], int, int]]:
        records, start, stop = part
        at = 0 if index == start else bisect_left(records, way.values[index])
        return (records[:at], start, index), (records[at:], index, stop)

    def _released(self, way: Candidates, index: int, rng: np.random.Generator | None) -> float:
        value = (way.released or way.values)[index]
        if rng is not None and self.search.uniform and index > 0:  # [Dur23] 5.2
            before = way.values[index - 1]
            value = before + (value - before) * rng.random()
        low = -math.inf if self.search.lower is None else self.search.lower
        high = math.inf if self.search.upper is None else self.search.upper
        return min(max(way.sign * value, low), high) + 0.0

    # Drawing

    def _halt(
        self,
        way: Candidates,
        part: tuple[list[float], int, int],
        level: float,
        number: int,
        rng: np.random.Generator,
    ) -> int:
        """The candidate at which the search halts; the last one if it does not."""
        _, start, stop = part
        if start == stop:
            return start
        step = above_threshold(
            *self._queries(way, part, level, number), **self._options(number), rng=rng
        )
        return stop if step is None else start + 1 + step

    def _draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        search = self.search
        outputs = np.zeros(search.levels.m)
        if len(self.ways) == 2:
            for j, level in enumerate(search.levels.values.tolist()):
                for (way, records), at in zip(self.ways, (level, 1.0 - level), strict=True):
                    index = self._halt(way, self._whole(way, records), at, j, rng)
                    if index > 0:
                        outputs[j] = self._released(way, index, rng)
                        break
            return np.sort(outputs)
        ((way, records),) = self.ways
        parts = {(0, search.levels.m): self._whole(way, records)}
        for number, step in enumerate(splits(search.searched)):
            part = parts[step.lower, step.upper]
            index = self._halt(way, part, step.local, number, rng)
            outputs[step.middle] = self._released(way, index, rng)
            parts[step.lower, step.middle], parts[step.middle + 1, step.upper] = self._cut(
                way, part, index
            )
        return np.sort(outputs)

    def sample(self, rng: Any = None, size: int | None = None) -> Any:
        """One output of q's shape, or with `size` an array of shape (size,) + q's."""
        rng = default_rng(rng)
        if size is None:
            return self.search.levels.restore(self._draw(rng))
        draws = np.array([self._draw(rng) for _ in range(size)])
        return self.search.levels.restore(draws.reshape(size, self.search.levels.m))

    # Probabilities

    def _log_halts(
        self, way: Candidates, part: tuple[list[float], int, int], level: float, number: int
    ) -> list[float]:
        """Log-probability of each candidate left; of the only one if there is nothing to search."""
        if part[1] == part[2]:
            return [0.0]
        queries, threshold = self._queries(way, part, level, number)
        law = above_threshold_law(queries, threshold, **self._options(number))
        log_halts = [law.log_prob(k) for k in range(len(queries))]
        log_halts[-1] = float(np.logaddexp(log_halts[-1], law.log_prob(None)))
        return log_halts

    def log_prob(self, o: Any) -> float:
        """Log-probability of one output of q's shape, for ``uniform=False``."""
        outputs = self.search.levels.distinct(o)
        if outputs is None:
            return -math.inf
        if len(self.ways) == 2:
            return self._log_prob_both(float(outputs[0]))
        ((way, records),) = self.ways
        if self.search.way == "down":
            outputs = outputs[::-1]
        steps = {(step.lower, step.upper): step for step in splits(self.search.searched)}
        return self._log_prob_part(
            way, outputs.tolist(), steps, (0, len(outputs)), self._whole(way, records)
        )

    def _log_prob_part(
        self,
        way: Candidates,
        outputs: list[float],
        steps: dict[tuple[int, int], Split],
        levels: tuple[int, int],
        part: tuple[list[float], int, int],
    ) -> float:
        lower, upper = levels
        if lower == upper:
            return 0.0
        step = steps[levels]
        number = list(steps).index(levels)
        first = part[1] if part[1] == part[2] else part[1] + 1
        total = -math.inf
        for index, log_halt in enumerate(self._log_halts(way, part, step.local, number), first):
            if self._released(way, index, None) != outputs[step.middle]:
                continue
            left, right = self._cut(way, part, index)
            inside = self._log_prob_part(way, outputs, steps, (lower, step.middle), left)
            inside += self._log_prob_part(way, outputs, steps, (step.middle + 1, upper), right)
            total = float(np.logaddexp(total, log_halt + inside))
        return total

    def _log_prob_both(self, output: float) -> float:
        (level,) = self.search.levels.values.tolist()
        up, down = [
            self._log_halts(way, self._whole(way, records), at, 0)
            for (way, records), at in zip(self.ways, (level, 1.0 - level), strict=True)
        ]
        terms = [up[0] + down[0]] if output == 0.0 else []
        for (way, _), log_halts, before in zip(self.ways, (up, down), (0.0, up[0]), strict=True):
            terms += [
                before + log_halt
                for index, log_halt in enumerate(log_halts)
                if index > 0 and self._released(way, index, None) == output
            ]
        return float(np.logaddexp.reduce(terms, initial=-np.inf))


def unbounded_quantile_law(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    lower: float | None = 0.0,
    upper: float | None = None,
    beta: float | None = None,
    noise: str = "exponential",
    invert: bool = False,
    uniform: bool = False,
    offset: float = 0.0,
    split: float | None = None,
    neighbors: str = "swap",
    counts: Any = None,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    resolution: float | None = None,
) -> UnboundedQuantileLaw:
    """The exact output law of `unbounded_quantile` on these records. Not a release.

    Parameters
    ----------
    x, q, epsilon, rho, lower, upper, beta, noise, invert, uniform, offset, split, neighbors, \
counts, nan_policy, max_contributions, resolution
        As in `unbounded_quantile`.

    Returns
    -------
    UnboundedQuantileLaw
    """
    search = Search(
        q,
        epsilon=epsilon,
        rho=rho,
        lower=lower,
        upper=upper,
        beta=beta,
        noise=noise,
        invert=invert,
        uniform=uniform,
        offset=offset,
        split=split,
        neighbors=neighbors,
        max_contributions=max_contributions,
        resolution=resolution,
    )
    return UnboundedQuantileLaw(search, kept_records(x, counts, nan_policy).tolist())


def unbounded_quantile(
    x: Any,
    q: Any,
    *,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    **options: Any,
) -> Any:
    """Release quantiles of data that are bounded on one side only, or not at all.

    Parameters
    ----------
    x : array_like of float or int, shape (N,)
        Private values in any order.
    q : float or array_like of float
        Levels in [0, 1], any shape. Public.
    accountant : Accountant, optional
        Charged with the release.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        See `default_rng`.
    **options
        As in `unbounded_quantile_law`; every rule is in full at `dpq_fast.unbounded_quantile`.

    Returns
    -------
    float or ndarray of float64
        In q's shape and the unit of `x`.
    """
    check_records(x, options.get("nan_policy", "omit"))
    search = unbounded_quantile_law([], q, **options | {"counts": None}).search  # all public
    rng = default_rng(rng)
    privacy.charge(accountant, "unbounded_quantile", **search.guarantee())
    return unbounded_quantile_law(x, q, **options).sample(rng)
