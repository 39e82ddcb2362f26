"""The law of unbounded quantiles: AboveThreshold over ever larger candidates.

[Dur23]: candidates t_1 < t_2 < ... are public, and the search halts at the first one below which
there are, with noise, enough records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast.data.histogram import geometric_size, geometric_thresholds
from dpq_fast.data.lattice import points_per_unit
from dpq_fast.data.records import Records
from dpq_fast.data.reprs import shown
from dpq_fast.laws.candidates import (
    CandidateCounts,
    Candidates,
    geometric_candidates,
    listed_candidates,
    rounded_candidates,
    rounded_geometric,
)
from dpq_fast.laws.halting import HaltingLaw
from dpq_fast.laws.splits import Boundary, recurse
from dpq_fast.noise.rng import default_rng
from dpq_fast.noise.threshold import ThresholdNoise
from dpq_fast.privacy.levels import Levels, Split, splits
from dpq_fast.privacy.unbounded_quantile import Calibration

# Ratio of candidates; inverted data lie in (0, 1], where 1.01 would leave 70 candidates.
BETA, BETA_INVERTED = 1.01, 1.001


class Search:
    """The public side of a search: its candidates and what it spends.

    Parameters
    ----------
    levels : Levels
    calibration : Calibration
        Of `privacy.unbounded_quantile`.
    lower, upper, beta, invert, uniform, offset, resolution
        As of `unbounded_quantile`.
    unit : float, default 1
        Candidates are those of records and ends in this unit, a power of two. Only with `lower` and
        without `invert` and `resolution`.
    """

    def __init__(
        self,
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
    ) -> None:
        self.levels = levels
        self.calibration = calibration
        self.way = calibration.way
        self.unit = unit
        self.invert = _checks.check_flag("invert", invert)
        self.uniform = _checks.check_flag("uniform", uniform)
        self.offset = _checks._real("offset", offset)
        if not math.isfinite(self.offset):
            raise ValueError(f"offset must be finite, got {self.offset}")
        self.lower, self.upper = _checked_ends(lower, upper)
        self.resolution = None
        if resolution is not None and _checks.check_nonnegative("resolution", resolution) > 0.0:
            if self.uniform:
                raise ValueError("uniform must be False with a resolution, got True")
            self.resolution = float(resolution)
            self.multiples = _multiples_inside(self.lower, self.upper, self.resolution)
        default = BETA_INVERTED if self.invert else BETA
        self.beta = default if beta is None else _checks._real("beta", beta)
        if not 1.0 < self.beta < math.inf:
            raise ValueError(f"beta must be finite and greater than 1, got {self.beta}")

    @property
    def searched(self) -> NDArray[np.float64]:
        """The levels of the records as they are searched: mirrored where those are."""
        return self.levels.mirrored().values if self.way == "down" else self.levels.values

    def count(self, records: Records) -> list[CandidateCounts]:
        """Candidates and counts, of one search or of both ways."""
        if self.way == "both":
            ways = [(sign, self._geometric(0.0, None)) for sign in (1, -1)]
        elif self.invert:
            ways = [(-1 if self.lower is not None else 1, self._inverted())]
        elif self.lower is None:
            ways = [(-1, self._geometric(self._base, None))]
        else:
            ways = [(1, self._geometric(self.lower, self.upper))]
        return [CandidateCounts(records, sign, candidates) for sign, candidates in ways]

    def sides(self, records: Records) -> tuple[CandidateCounts, CandidateCounts]:
        """The mirrored records below zero, and the others: each record on one side only.

        What is released are distances from zero.
        """
        candidates = self._geometric(0.0, None)
        negative, others = (CandidateCounts(records, sign, candidates) for sign in (-1, 1))
        negative.sign = 1
        others.skipped = others.below(0)
        negative.skipped = others.total - others.skipped
        return negative, others

    def _geometric(self, lower: float, upper: float | None) -> Candidates:
        if self.resolution is None:
            return geometric_candidates(self.beta, lower, upper, self.unit)
        ends = self._ends(self.lower is None)
        return rounded_geometric(self.beta, lower, upper, *ends, self.resolution)

    @property
    def _base(self) -> float:
        """Where the candidates begin: `lower`, or the mirrored `upper`."""
        if self.lower is not None:
            return self.lower
        assert self.upper is not None  # else both ways are searched
        return -self.upper

    def _inverted(self) -> Candidates:
        """[Dur23] B.1: candidates for y = 1 / (x - lower + 1), which ascend as x descends.

        y < beta^i - 1 if and only if x > lower - 1 + 1 / (beta^i - 1); y <= 1 ends them. The
        bounded side is `lower`, or the mirrored `upper`.
        """
        base = self._base
        size = geometric_size(self.beta, 0.0, 1.0)
        lowest = geometric_thresholds(self.beta, 0.0, 1, 2)  # the search begins at index 1

        def values(start: int, stop: int, step: int = 1) -> NDArray[np.float64]:
            powers = geometric_thresholds(self.beta, 0.0, start, stop, step)  # beta^i - 1
            return -np.maximum(1.0 / np.maximum(powers, lowest) + (base - 1.0), base)

        if self.resolution is not None:
            ends = self._ends(self.lower is not None)
            return rounded_candidates(values(0, size), *ends, self.resolution)
        return listed_candidates(values, size)

    def _ends(self, mirrored: bool) -> tuple[float, float]:
        """The lowest and the highest multiple that is released, mirrored as the records are."""
        low, high = self.multiples
        return (-high, -low) if mirrored else (low, high)

    def decode(
        self, counted: CandidateCounts, index: int, rng: np.random.Generator | None
    ) -> float:
        """The released number of one candidate, inside `lower` and `upper`.

        With a generator and ``uniform=True``, index > 0: a search does not release candidate 0.
        """
        value = counted.value(index)
        if rng is not None and self.uniform:  # [Dur23] 5.2
            before = counted.value(index - 1)
            value = before + (value - before) * rng.random()
        return self._clipped(counted.sign * value)

    def _clipped(self, value: float) -> float:
        if self.lower is not None:
            value = max(value, self.lower)
        if self.upper is not None:
            value = min(value, self.upper)
        return value + 0.0  # no -0.0


def _multiples_inside(lower: float | None, upper: float | None, step: float) -> tuple[float, float]:
    """The lowest and the highest multiple of `step` inside the ends; infinite without one."""
    per_unit = points_per_unit(step)
    for name, end in (("lower", lower), ("upper", upper)):
        if end is not None and step < math.ulp(end):
            raise ValueError(
                f"resolution must be at least the float64 spacing at {name}, {math.ulp(end)}, "
                f"got {step}"
            )

    def value(multiple: float) -> float:
        return multiple / per_unit if per_unit else multiple * step

    low, high = -math.inf, math.inf
    if lower is not None:  # the quotient is rounded: from below, or from above, to the first inside
        low = math.floor(lower / step) - 2.0
        while value(low) < lower:
            low += 1.0
    if upper is not None:
        high = math.ceil(upper / step) + 2.0
        while value(high) > upper:
            high -= 1.0
    if low > high:
        raise ValueError(
            "resolution must leave one of its multiples between lower and upper, "
            f"got {step} with ({lower}, {upper})"
        )
    return low, high


def _checked_ends(lower: float | None, upper: float | None) -> tuple[float | None, float | None]:
    ends = []
    for name, end in (("lower", lower), ("upper", upper)):
        if end is not None:
            end = _checks._real(name, end)
            if not math.isfinite(end):
                raise ValueError(f"{name} must be finite or None, got {end}")
        ends.append(end)
    low, high = ends
    if low is not None and high is not None and not low < high:
        raise ValueError(f"lower must be below upper, got ({low}, {high})")
    return low, high


class UnboundedQuantileLaw:
    """The exact output law of `unbounded_quantile`. Not a release: `unbounded_quantile_law`."""

    def __init__(self, search: Search, all_counted: list[CandidateCounts]) -> None:
        self._search = search
        self._counted = all_counted

    def __repr__(self) -> str:
        of = self._search
        ends = dict(lower=of.lower, upper=of.upper, beta=of.beta, resolution=of.resolution)
        return shown(self, q=of.levels.values.tolist(), **ends)

    @property
    def column(self) -> Records:
        """The records."""
        return self._counted[0].records

    @property
    def lattice(self) -> None:
        """None: no prior says where records lie."""
        return None

    def _cuts(self, counted: CandidateCounts) -> tuple[Boundary, Boundary]:
        """Around all records. Both ways, candidate 0 is tested, too [Dur23, Algorithm 4]."""
        return counted.whole(-1 if len(self._counted) == 2 else 0)

    def _options(self, k: int) -> tuple[tuple[float, float], ThresholdNoise, float]:
        """What else a search for level k, or of step k, depends on."""
        calibration = self._search.calibration
        return calibration.step_epsilons[k], calibration.noise, self._search.offset

    def _both(self, k: int) -> list[tuple[CandidateCounts, float]]:
        """The two searches of [Dur23] Algorithm 4 for one level."""
        level = float(self._search.levels.values[k])
        return list(zip(self._counted, (level, 1.0 - level), strict=True))

    # Drawing

    def sample(self, rng: Any = None, size: int | None = None) -> Any:
        """Draw outputs, independent given the records.

        Parameters
        ----------
        rng : None, int, SeedSequence, BitGenerator or Generator, optional
            As for `unbounded_quantile`.
        size : int, optional
            Number of outputs.

        Returns
        -------
        float or ndarray of float64
            One output of q's shape; with `size`, an array of shape (size,) + q's.
        """
        generator = default_rng(rng)
        rows = _checks.check_size(size)
        draw = self._draw_both if len(self._counted) == 2 else self._draw_steps
        outputs = np.sort(draw(generator, rows), axis=1)
        return self._search.levels.restore(outputs[0] if size is None else outputs)

    def _draw_both(self, rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
        outputs = np.zeros((rows, self._search.levels.m))
        for k in range(self._search.levels.m):
            searches = self._both(k)
            for row in range(rows):
                for counted, level in searches:
                    index = counted.search(self._cuts(counted), level, *self._options(k), rng)
                    if index > 0:
                        outputs[row, k] = self._search.decode(counted, index, rng)
                        break
        return outputs

    def _draw_steps(self, rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
        (counted,) = self._counted
        steps = splits(self._search.searched)
        low, high = self._cuts(counted)
        if len(steps) > 1:
            counted.refine_around(self._search.searched * counted.total)

        def release(k: int, below: Boundary, above: Boundary) -> Boundary:
            if below.point == above.point:
                return below  # no candidate lies between them
            index = counted.search((below, above), steps[k].local, *self._options(k), rng)
            return Boundary(index, counted.below(index))

        outputs = np.empty((rows, len(steps)))
        for row in range(rows):
            cuts = recurse(steps, low, high, release)
            outputs[row] = [self._search.decode(counted, cut.point, rng) for cut in cuts]
        return outputs

    # Probabilities

    def candidates(self) -> list[float]:
        """Every number that a level is released as, ascending; public, but for ``uniform=True``."""
        return sorted(
            {
                self._search.decode(counted, index, None)
                for counted in self._counted
                for index in range(counted.last + 1)
            }
        )

    def log_prob(self, o: Any) -> float:
        """Log-probability of one output tuple; its log density with ``uniform=True``.

        Parameters
        ----------
        o : array_like of float, shape of q
            An output, in the unit of the records.

        Returns
        -------
        float
            -inf for what is never released. Right to 1e-9 for each step of the search.

        Raises
        ------
        ValueError
            For several levels without `lower` and `upper`, or with ``uniform=True``: the outputs
            are sorted, and do not tell which level each belongs to.
        """
        levels, search = self._search.levels, self._search
        outputs = levels.distinct(o)
        if outputs is None:
            return -math.inf
        if levels.m > 1 and (len(self._counted) == 2 or search.uniform):
            raise ValueError(
                "log_prob takes one level without lower and upper, or with uniform=True, "
                f"got {levels.m}"
            )
        if len(self._counted) == 2:
            return self._log_prob_both(float(outputs[0]))
        (counted,) = self._counted
        if search.way == "down":
            outputs = outputs[::-1]
        steps = {
            (step.lower, step.upper): (k, step) for k, step in enumerate(splits(search.searched))
        }
        return self._log_prob_between(outputs, steps, (0, levels.m), self._cuts(counted))

    def _log_prob_between(
        self,
        outputs: NDArray[np.float64],
        steps: dict[tuple[int, int], tuple[int, Split]],
        levels: tuple[int, int],
        cuts: tuple[Boundary, Boundary],
    ) -> float:
        """ln of the probability of the outputs of levels lower, ..., upper - 1 from one part."""
        lower, upper = levels
        if lower == upper:
            return 0.0
        (counted,) = self._counted
        below, above = cuts
        k, step = steps[levels]
        searched = below.point < above.point
        law = counted.law(cuts, step.local, *self._options(k)) if searched else None
        terms = []
        for index in self._indices(counted, cuts, float(outputs[step.middle])):
            cut = Boundary(index, counted.below(index)) if searched else below
            terms.append(
                (0.0 if law is None else self._log_index(law, cuts, index, counted))
                + self._log_prob_between(outputs, steps, (lower, step.middle), (below, cut))
                + self._log_prob_between(outputs, steps, (step.middle + 1, upper), (cut, above))
            )
        return float(np.logaddexp.reduce(terms, initial=-np.inf))

    def _log_prob_both(self, output: float) -> float:
        up, down = (
            counted.law(self._cuts(counted), level, *self._options(0))
            for counted, level in self._both(0)
        )
        log_first = up.log_prob(0)
        terms = []
        if output == 0.0 and not self._search.uniform:
            terms.append(log_first + down.log_prob(0))
        ways = zip(self._counted, (up, down), (0.0, log_first), strict=True)
        for counted, law, before in ways:
            if counted.sign * output < 0.0 or (
                self._search.uniform and output == 0.0 and counted.sign > 0
            ):
                continue
            cuts = self._cuts(counted)
            terms += [
                before + self._log_index(law, cuts, index, counted)
                for index in self._indices(counted, cuts, output)
                if index > 0
            ]
        return float(np.logaddexp.reduce(terms, initial=-np.inf))

    def _log_index(
        self, law: HaltingLaw, cuts: tuple[Boundary, Boundary], index: int, counted: CandidateCounts
    ) -> float:
        """ln of the probability (density) that a part is cut at a candidate."""
        below, above = cuts
        log_prob = law.log_prob(index - below.point - 1)
        if index == above.point:
            with np.errstate(under="ignore"):
                log_prob = float(np.logaddexp(log_prob, law.log_never()))
        if self._search.uniform:
            log_prob -= math.log(counted.value(index) - counted.value(index - 1))
        return log_prob

    def _indices(
        self, counted: CandidateCounts, cuts: tuple[Boundary, Boundary], output: float
    ) -> range:
        """The candidates of a part that are released as `output`: most often one, or none."""
        start, stop = (cut.point for cut in cuts)
        candidates = range(start if start == stop else start + 1, stop + 1)
        sign = counted.sign

        def first(beyond: Callable[[float, float], bool]) -> int:
            """The first candidate whose released number is (not below, or above) the output."""
            low, high = candidates.start, candidates.stop
            while low < high:
                middle = (low + high) // 2
                released = sign * self._search.decode(counted, middle, None)
                if beyond(released, sign * output):
                    high = middle
                else:
                    low = middle + 1
            return low

        if self._search.uniform:  # the step from the candidate before
            at = first(lambda released, wanted: released > wanted)
            return range(at, min(at + 1, candidates.stop))
        return range(
            first(lambda released, wanted: released >= wanted),
            first(lambda released, wanted: released > wanted),
        )
