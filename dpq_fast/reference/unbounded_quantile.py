"""Unbounded quantiles, [Dur23] Algorithms 2 and 4 and B.1: candidate by candidate.

[Dur23] is Durfee, "Unbounded Differentially Private Quantile and Maximum Estimation".
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels, Split, splits
from dpq_fast.privacy.unbounded_quantile import Calibration
from dpq_fast.reference._calls import Law, with_options
from dpq_fast.reference.above_threshold import AboveThresholdLaw, halts_of
from dpq_fast.reference.bins import geometric_thresholds, powers
from dpq_fast.reference.intervals import Column, released
from dpq_fast.reference.lattice import (
    first_multiple,
    last_multiple,
    multiple_value,
    nearest_multiple,
)
from dpq_fast.reference.sample import check_records, kept_records

# Ratio of candidates; inverted data lie in (0, 1].
BETA, BETA_INVERTED = 1.01, 1.001


@dataclass(frozen=True)
class Search:
    """The public side of a search, by the arguments of `unbounded_quantile`.

    Attributes
    ----------
    levels : Levels
    calibration : Calibration
    lower, upper : float or None
    beta, offset : float
    invert, uniform : bool
    resolution : float or None
        None without a lattice.
    unit : float
        Of the candidates.
    """

    levels: Levels
    calibration: Calibration
    lower: float | None
    upper: float | None
    beta: float
    offset: float
    invert: bool
    uniform: bool
    resolution: float | None
    unit: float

    @classmethod
    def of(
        cls,
        levels: Levels,
        calibration: Calibration,
        *,
        lower: float | None,
        upper: float | None,
        beta: float | None = None,
        invert: bool = False,
        uniform: bool = False,
        offset: float = 0.0,
        resolution: float | None = None,
        unit: float = 1.0,
    ) -> Search:
        """The search, once its arguments are checked."""
        invert = _checks.check_flag("invert", invert)
        uniform = _checks.check_flag("uniform", uniform)
        offset = _checks._real("offset", offset)
        if not math.isfinite(offset):
            raise ValueError(f"offset must be finite, got {offset}")
        lower, upper = checked_end("lower", lower), checked_end("upper", upper)
        if lower is not None and upper is not None and not lower < upper:
            raise ValueError(f"lower must be below upper, got ({lower}, {upper})")
        if resolution is not None:
            resolution = _checks.check_nonnegative("resolution", resolution) or None
        if resolution is not None:
            if uniform:
                raise ValueError("uniform must be False with a resolution, got True")
            check_resolution(resolution, lower, upper)
        default = BETA_INVERTED if invert else BETA
        beta = default if beta is None else _checks._real("beta", beta)
        if not 1.0 < beta < math.inf:
            raise ValueError(f"beta must be finite and greater than 1, got {beta}")
        public = lower, upper, beta, offset, invert, uniform, resolution, unit
        return cls(levels, calibration, *public)

    @property
    def searched(self) -> NDArray[np.float64]:
        """The levels of the records as they are searched: mirrored where those are."""
        mirrored = self.calibration.way == "down"
        return self.levels.mirrored().values if mirrored else self.levels.values


def checked_end(name: str, end: Any) -> float | None:
    """A known end of the data."""
    if end is None:
        return None
    number = _checks._real(name, end)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite or None, got {number}")
    return number


def check_resolution(step: float, lower: float | None, upper: float | None) -> None:
    """A lattice has a multiple between the ends, and no finer ones than float64."""
    for name, end in (("lower", lower), ("upper", upper)):
        if end is not None and step < math.ulp(end):
            raise ValueError(
                f"resolution must be at least the float64 spacing at {name}, {math.ulp(end)}, "
                f"got {step}"
            )
    low, high = multiples_between(step, lower, upper)
    if low > high:
        raise ValueError(
            "resolution must leave one of its multiples between lower and upper, "
            f"got {step} with ({lower}, {upper})"
        )


def multiples_between(step: float, lower: float | None, upper: float | None) -> tuple[float, float]:
    """The lowest and the highest multiple between the ends; infinite without one."""
    low = -math.inf if lower is None else first_multiple(lower, step)
    high = math.inf if upper is None else last_multiple(upper, step)
    return low, high


class Ends(TypedDict, total=False):
    """What an unbounded search takes from the arguments of a method with `bounds`."""

    lower: float
    upper: float
    resolution: float


def unbounded_ends(
    bounds: Any, resolution: float | None, dither: bool | None, prior: Any, assume_sorted: bool
) -> Ends:
    """`lower`, `upper` and `resolution` for methods that are given `bounds`, if any."""
    if prior is not None:
        raise ValueError("prior must be left out for an unbounded search, which has no lattice")
    if dither is not None or assume_sorted:
        raise ValueError("dither and assume_sorted must be left out for an unbounded search")
    ends: Ends = {} if resolution is None else {"resolution": resolution}
    if bounds is not None:
        ends["lower"], ends["upper"] = _checks.check_bounds(bounds)
    return ends


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
    ends = multiples_between(search.resolution, search.lower, search.upper)
    return [rounded(way, search.resolution, ends) for way in plain]


def rounded(way: Candidates, step: float, ends: tuple[float, float]) -> Candidates:
    """The distinct lattice points nearest to candidates; of records, those up to each count."""
    low, high = sorted(way.sign * end for end in ends)
    multiples = sorted({min(max(nearest_multiple(v, step), low), high) for v in way.values})
    near = [m for m in multiples if abs(m) < 2**53]
    points = [multiple_value(m, step) for m in near]
    tested = [near[0] - 0.5] + [m + 0.5 for m in near]
    if multiples[-1] > near[-1]:  # as near to a multiple as float64 numbers are
        far = [v for v in way.values if v > (near[-1] + 1.0) * step]
        points += far
        tested += [math.nextafter(nearest_multiple(v, step), math.inf) for v in far]
    return Candidates(way.sign, tested, points[:1] + points)


def plain_candidates(search: Search) -> list[Candidates]:
    """The candidates of each way without a lattice."""
    beta, lower, upper = search.beta, search.lower, search.upper
    if lower is not None:
        sign, bound, last = 1, lower, upper
    elif upper is not None:
        sign, bound, last = -1, -upper, None
    else:
        thresholds = geometric_thresholds(beta, 0.0)
        return [Candidates(1, thresholds), Candidates(-1, thresholds)]
    if not search.invert:
        unit = search.unit
        ends = bound / unit, None if last is None else last / unit
        return [Candidates(sign, [unit * t for t in geometric_thresholds(beta, *ends)])]
    # [Dur23] B.1: y = 1/(x - l + 1) < beta^i - 1  <=>  -x < -(1/(beta^i - 1) + l - 1)
    values = []
    for power in islice(powers(beta), 1, None):
        values.append(-max(1.0 / (power - 1.0) + (bound - 1.0), bound))
        if power - 1.0 >= 1.0:  # y is at most 1
            break
    return [Candidates(-sign, values[:1] + values)]


class UnboundedQuantileLaw(Law):
    """The exact law of `unbounded_quantile` on some records."""

    def __init__(self, search: Search, records: list[float]) -> None:
        self.search = search
        self.levels = search.levels
        if search.resolution is not None:
            records = [nearest_multiple(x, search.resolution) for x in records]
        self.ways = [(way, sorted(way.sign * x for x in records)) for way in candidates_of(search)]

    # A part is (ascending records, candidates' indices start and stop): what is left to search
    # are start + 1, ..., stop.

    def _gaps(
        self, way: Candidates, part: tuple[list[float], int, int], level: float, number: int
    ) -> list[float]:
        """f_i of the candidates left, less the threshold: level * records + offset / epsilons."""
        records, start, stop = part
        target = Fraction(level) * len(records)
        whole = math.floor(target)
        shift = self.search.offset / sum(self.search.calibration.step_epsilons[number])
        threshold = float(target - whole) + shift
        below = [bisect_left(records, way.values[i]) for i in range(start + 1, stop + 1)]
        return [float(count - whole) - threshold for count in below]

    def _noise(self, number: int) -> tuple[float, float, str]:
        """Both epsilons of a search, whose queries have the sensitivity 1, and its noise."""
        calibration = self.search.calibration
        return *calibration.step_epsilons[number], calibration.noise.name

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
        steps = halts_of(self._gaps(way, part, level, number), *self._noise(number), rng)
        step = next(steps, None)
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

    # Probabilities

    def _log_halts(
        self, way: Candidates, part: tuple[list[float], int, int], level: float, number: int
    ) -> list[float]:
        """Log-probability of each candidate left; of the only one if there is nothing to search."""
        if part[1] == part[2]:
            return [0.0]
        gaps = self._gaps(way, part, level, number)
        law = AboveThresholdLaw(gaps, *self._noise(number))
        log_halts = [law.log_prob(k) for k in range(len(gaps))]
        log_halts[-1] = float(np.logaddexp(log_halts[-1], law.log_prob(None)))
        return log_halts

    def log_prob(self, o: Any) -> float:
        """Log-probability of one output of q's shape, for ``uniform=False``."""
        outputs = self.levels.distinct(o)
        if outputs is None:
            return -math.inf
        if len(self.ways) == 2:
            return self._log_prob_both(float(outputs[0]))
        ((way, records),) = self.ways
        if self.search.calibration.way == "down":
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
        (level,) = self.levels.values.tolist()
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


def _search(
    q: Any,
    /,
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
    max_contributions: int = 1,
    resolution: float | None = None,
) -> Search:
    """The search of a call, calibrated; all that is public about it is checked here."""
    levels = Levels.of(q)
    calibration = privacy.unbounded_quantile.calibrate(
        levels,
        lower=lower,
        upper=upper,
        invert=invert,
        noise=noise,
        split=split,
        epsilon=epsilon,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
    )
    return Search.of(
        levels,
        calibration,
        lower=lower,
        upper=upper,
        beta=beta,
        invert=invert,
        uniform=uniform,
        offset=offset,
        resolution=resolution,
    )


@with_options(_search)
def unbounded_quantile_law(
    x: Any, q: Any, *, counts: Any = None, nan_policy: str = "omit", **search: Any
) -> UnboundedQuantileLaw:
    """The exact output law of `unbounded_quantile` on these records. Not a release.

    Parameters
    ----------
    x, q, epsilon, rho, lower, upper, beta, noise, invert, uniform, offset, split, neighbors, \
max_contributions, resolution, counts, nan_policy
        As in `unbounded_quantile`.

    Returns
    -------
    UnboundedQuantileLaw
    """
    return UnboundedQuantileLaw(_search(q, **search), kept_records(x, counts, nan_policy).tolist())


@with_options(_search)
def unbounded_quantile(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    lower: float | None = 0.0,
    upper: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    counts: Any = None,
    nan_policy: str = "omit",
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    expected_n: int | None = None,
    **search: Any,
) -> Any:
    """Release quantiles of data that are bounded on one side only, or not at all.

    The law is that of `dpq_fast.unbounded_quantile`, whose docstring has every rule in full.

    Parameters
    ----------
    x : array_like of float or int, shape (N,)
        Private values in any order.
    q : float or array_like of float
        Levels in [0, 1], any shape. Public.
    epsilon, rho : float
        Budget for the whole tuple: exactly one. Public.
    lower, upper : float or None
        The known ends of the data.
    beta : float, optional
        Ratio of the candidates.
    noise : {"exponential", "laplace", "gumbel"}
        Of AboveThreshold.
    invert, uniform : bool
        Whether the search begins far away; whether answers are drawn between candidates.
    offset : float
        What is added to the threshold, in units of the noise.
    split : float, optional
        The share of the threshold in the budget.
    neighbors, max_contributions, accountant, rng
        As in `joint_exp`.
    resolution : float, optional
        Spacing of the lattice of outputs.
    counts, nan_policy
        As in `joint_exp`.
    confidence, covers, interval_share, expected_n : optional
        For an interval, as in `dpq_fast.quantile`.

    Returns
    -------
    float, ndarray of float64 or Estimate
        In q's shape and the unit of `x`.
    """
    levels = Levels.of(q)
    person = dict[str, Any](neighbors=neighbors, max_contributions=max_contributions)
    check_records(x, nan_policy, counts)

    def value_of(*, epsilon: float | None, rho: float | None, **_: Any) -> Any:
        found = _search(
            levels, epsilon=epsilon, rho=rho, lower=lower, upper=upper, **person, **search
        )
        return found.calibration, lambda _: UnboundedQuantileLaw(
            found, kept_records(x, counts, nan_policy).tolist()
        )

    limits = -math.inf if lower is None else lower, math.inf if upper is None else upper
    return released(
        value_of,
        levels,
        Request.of(confidence, covers, interval_share),
        lambda: Column(kept_records(x, counts, nan_policy).tolist(), limits, None, False),
        x=x,
        counts=counts,
        epsilon=epsilon,
        rho=rho,
        expected_n=expected_n,
        accountant=accountant,
        rng=rng,
        **person,
    )
