"""Unbounded quantiles: AboveThreshold over ever larger candidates, on data without an upper bound.

[Dur23]: candidates t_1 < t_2 < ... are public, and the search halts at the first one below which
there are, with noise, enough records. One pass counts the records between candidates, or between
blocks of them if they are very many; the search then scans runs of candidates with equal
counts, or bounds of them, and counts a block's candidates by another pass where it has to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._arguments import in_our_words
from dpq_fast._kernels.halting import Halting
from dpq_fast.data.histogram import KEPT_BINS, Bins, geometric_size, geometric_thresholds
from dpq_fast.data.lattice import MAX_POINTS, points_per_unit
from dpq_fast.data.leaves import rounding_edges
from dpq_fast.data.records import Records
from dpq_fast.data.reprs import shown
from dpq_fast.laws.halting import HaltingLaw
from dpq_fast.laws.splits import Boundary, recurse
from dpq_fast.mechanisms._calls import in_units, with_options
from dpq_fast.mechanisms.intervals import released
from dpq_fast.noise.rng import default_rng
from dpq_fast.noise.threshold import ThresholdNoise
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels, Split, splits
from dpq_fast.privacy.unbounded_quantile import Calibration

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dpq_fast.mechanisms._calls import RecordOptions


# Ratio of candidates; inverted data lie in (0, 1], where 1.01 would leave 70 candidates.
BETA, BETA_INVERTED = 1.01, 1.001
# Up to twice as many candidates are counted one by one, more in at most so many blocks: tables of
# more do not stay in a cache.
MAX_BLOCKS = 2**16
# Blocks up to this many are looked for in the records; more are counted with all there is.
FEW_BLOCKS = 16


class Candidates(NamedTuple):
    """Public candidates t_0 <= t_1 <= ... <= t_last, mirrored as the records are.

    Attributes
    ----------
    last : int
        Largest index of a candidate.
    step : int
        How many make a block: candidates ck + 1, ..., (c + 1)k are block c.
    bins : Bins
        What is below t_0, and from t_0 on between every step-th candidate.
    values : callable
        ``values(i, j)`` gives the candidates t_i, ..., t_{j-1}.
    points : ndarray of float64, optional
        On a lattice, what is released in place of each candidate.
    """

    last: int
    step: int
    bins: Bins
    values: Callable[[int, int], NDArray[np.float64]]
    points: NDArray[np.float64] | None = None


class CandidateCounts:
    r"""Candidates and the exact number of (mirrored) records below each, counted where needed.

    One pass counts the records between blocks of candidates, whose number is moderate. Runs of
    candidates, ascending, have one count each. If a block is empty, its candidates have the same
    count as the one before. In other blocks, if they are of more than one candidate, the count
    below the last one is a bound for all, and a `loose` run, until another pass refines the block.

    A search scans the bounds, and refines a block only where that makes it halt: by
    thinning, its law is that of a search through the exact counts. Proof: given the noise of the
    threshold, candidate i halts with a probability :math:`p(f_i)` of its own, whatever the others
    do, and p increases. So let candidate i be marked with probability :math:`p(u_i)`,
    :math:`u_i \ge f_i` its bound, independently, and a mark be confirmed with probability
    :math:`p(f_i) / p(u_i)`: then it halts with probability :math:`p(f_i)`, independently of the
    others, as it should. What happens at i does not depend on :math:`f_i` unless i is marked; and
    since what is decided so far tells nothing about later candidates, those may be asked with
    their exact counts once these are known.

    Parameters
    ----------
    records : Records
        One pass here, and another for every refinement.
    sign : {1, -1}
        -1 if everything here is about the mirrored records, -x.
    candidates : Candidates
        Public.

    Attributes
    ----------
    sign : {1, -1}
        What a candidate is released times.
    skipped : int
        Records below all candidates that are left out of the search.
    """

    def __init__(self, records: Records, sign: int, candidates: Candidates) -> None:
        self.sign = sign
        self.skipped = 0
        self._mirrored = sign < 0
        self.last = candidates.last
        self.records = records
        self._candidates = candidates
        counts = records.count(candidates.bins, self._mirrored)
        self.total = int(counts.sum())
        step = candidates.step
        occupied = np.flatnonzero(counts[1 : 1 - (-self.last // step)])  # with candidates, too
        below = np.cumsum(counts)[occupied + 1]
        # of each occupied block, its own run and one for what follows up to the next
        first = (occupied[:, None] * step + [1, step + 1]).ravel()
        self._set_runs(
            np.append(0, first),
            np.append(counts[0], np.repeat(below, 2)),
            np.append(False, np.tile([step > 1, False], occupied.size)),
        )

    def _set_runs(
        self, first: NDArray[np.int64], below: NDArray[np.int64], loose: NDArray[np.bool_]
    ) -> None:
        """Runs by their first candidate, ascending; of several with the same, the last counts."""
        kept = np.append(first[1:] > first[:-1], True)
        self._first, self._below, self._loose = first[kept], below[kept], loose[kept]

    def value(self, index: int) -> float:
        """What is released for one candidate, mirrored as the records are."""
        if self._candidates.points is not None:
            return float(self._candidates.points[index])
        return float(self._candidates.values(index, index + 1)[0])

    def below(self, index: int) -> int:
        """Records below a candidate."""
        if self._loose[self._run(index)]:
            self._refine(self._run(index))
        return int(self._below[self._run(index)])

    def whole(self, start: int) -> tuple[Boundary, Boundary]:
        """The cuts around all records, for a search that begins after candidate `start`."""
        return Boundary(start, self.skipped), Boundary(self.last, self.total)

    def refine_around(self, ranks: NDArray[np.float64]) -> None:
        """Refine, by one pass, the blocks in which the count reaches each of some ranks."""
        runs = np.unique(np.searchsorted(self._below, ranks))
        runs = runs[runs < self._loose.size]
        self._refine(runs[self._loose[runs]])

    def search(
        self,
        cuts: tuple[Boundary, Boundary],
        level: float,
        epsilons: tuple[float, float],
        noise: ThresholdNoise,
        offset: float,
        rng: np.random.Generator,
    ) -> int:
        """The candidate at which a search between two cuts halts, or that of the upper cut.

        The search is for a level of the records between them. It begins at the candidate after
        the lower cut.
        """
        below, above = cuts
        shift = offset / sum(epsilons)
        stream = Halting(noise.name, *epsilons, rng)
        start = below.point + 1
        while True:
            halted = stream.advance(*self._runs(cuts, level, shift, start))
            if halted < 0:
                last: int = above.point
                return last
            index: int = below.point + 1 + halted
            if not self._loose[self._run(index)]:
                return index
            self._refine(self._run(index))
            gaps, _ = self._runs(cuts, level, shift, index)
            if stream.confirm(gaps[0], halted):
                return index
            start = index + 1

    def law(
        self,
        cuts: tuple[Boundary, Boundary],
        level: float,
        epsilons: tuple[float, float],
        noise: ThresholdNoise,
        offset: float,
    ) -> HaltingLaw:
        """The law of `search`, counted from the candidate after the lower cut."""
        self._refine(np.flatnonzero(self._loose))
        runs = self._runs(cuts, level, offset / sum(epsilons), cuts[0].point + 1)
        return HaltingLaw(*runs, *epsilons, noise)

    def _run(self, index: int) -> np.intp:
        """The run of a candidate."""
        run: np.intp = np.searchsorted(self._first, index, side="right") - 1
        return run

    def _runs(
        self, cuts: tuple[Boundary, Boundary], level: float, shift: float, start: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Runs of a search from a candidate on: query (or its bound) minus threshold, and length.

        The threshold is a level of the records between the cuts, and `shift` records more.
        """
        below, above = cuts
        runs = slice(self._run(start), self._run(above.point) + 1)
        first = np.maximum(self._first[runs], start)
        target = Fraction(level) * (above.rank - below.rank)  # rounded, it would move unevenly
        whole = math.floor(target)
        gaps = (self._below[runs] - (below.rank + whole)) - float(target - whole)
        return gaps - shift, np.diff(first, append=above.point + 1)

    def _refine(self, runs: Any) -> None:
        """Replace loose runs by exact ones, by one pass for all of them."""
        runs = np.atleast_1d(runs)
        if runs.size == 0:
            return
        before = self._first[runs] - 1
        ends = np.minimum(before + self._candidates.step, self.last)
        blocks = [
            self._candidates.values(start, end + 1)
            for start, end in zip(before.tolist(), ends.tolist(), strict=True)
        ]
        few = np.array([(block[0], block[-1]) for block in blocks[:FEW_BLOCKS]]).T
        counts = self.records.count(
            Bins.of(np.concatenate([[-math.inf], *blocks, [math.inf]])),
            self._mirrored,
            within=(few[0], few[1]) if len(blocks) <= FEW_BLOCKS else None,
        )
        kept = np.ones(self._first.size, dtype=bool)
        kept[runs] = False
        first, below = [self._first[kept]], [self._below[kept]]
        bin_ = 1
        for run, block in zip(runs.tolist(), blocks, strict=True):
            inside = counts[bin_ : bin_ + block.size - 1]
            changes = np.append(0, np.flatnonzero(inside[1:]) + 1)
            first.append(self._first[run] + changes)
            # the run before gives the count below the candidate before
            below.append(self._below[run - 1] + np.cumsum(inside)[changes])
            bin_ += block.size
        merged = np.concatenate(first)
        loose = np.zeros(merged.size, dtype=bool)
        loose[: first[0].size] = self._loose[kept]
        order = np.argsort(merged)
        self._set_runs(merged[order], np.concatenate(below)[order], loose[order])


class Search:
    """The public side of a search: its candidates and what it spends.

    Parameters
    ----------
    levels : Levels
    calibration : Calibration
        Of `privacy.unbounded_quantile`.
    lower, upper, beta, invert, uniform, offset, resolution
        As of `unbounded_quantile`.
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
    ) -> None:
        self.levels = levels
        self.calibration = calibration
        self.way = calibration.way
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
        """[Dur23] Algorithm 2: beta^i + lower - 1."""
        size = geometric_size(self.beta, lower, upper)
        if self.resolution is not None:
            make = _kept_rounded if size <= KEPT_BINS else _rounded_geometric
            return make(self.beta, lower, size, *self._ends(self.lower is None), self.resolution)
        step = block_size(size)
        bins = Bins.geometric(self.beta, lower, upper, below=True, step=step)
        return Candidates(
            size - 1, step, bins, lambda i, j: geometric_thresholds(self.beta, lower, i, j)
        )

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
            return _rounded(values(0, size), *ends, self.resolution)
        return _listed(values, size)

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


def _listed(values: Callable[..., NDArray[np.float64]], size: int) -> Candidates:
    """So many candidates; ``values(i, j, step)`` gives every step-th of them."""
    step = block_size(size)
    edges = np.concatenate(([-np.inf], values(0, size, step), [np.inf]))
    return Candidates(size - 1, step, Bins.of(edges), values)


def _rounded(values: NDArray[np.float64], low: float, high: float, step: float) -> Candidates:
    """Candidates on the lattice of spacing `step`, from those that are not.

    Of the distinct multiples v_0 < v_1 < ... nearest to the candidates, from multiple `low` to
    `high`, v_{i-1} is released for candidate i. Counted for it are the records that round to
    v_{i-1} or less: x < t_i for the smallest float64 number t_i that rounds to more. So a value
    that many records have is released itself. Candidate 0 counts those below v_0.
    """
    per_unit = points_per_unit(step)
    with np.errstate(over="ignore"):
        multiples = np.rint(values * per_unit if per_unit else values / step)
    multiples = np.unique(np.clip(multiples, low, high))
    near = multiples[np.abs(multiples) < MAX_POINTS]
    # Float64 numbers of more than 2^53 steps are multiples, as near as there are any.
    far = values[values > (near[-1] + 1.0) * step] if multiples[-1] > near[-1] else near[:0]
    points = np.concatenate((near[:1], near))
    points = points / per_unit if per_unit else points * step
    edges = rounding_edges(np.concatenate((near[:1], near + 1.0)), step, per_unit)
    with np.errstate(over="ignore"):  # after the largest number
        edges = np.concatenate((edges, np.nextafter(far, math.inf)))
    listed = _listed(lambda i, j, step=1: edges[i:j:step], edges.size)
    return listed._replace(points=np.concatenate((points, far)))


def _rounded_geometric(
    beta: float, lower: float, size: int, low: float, high: float, step: float
) -> Candidates:
    return _rounded(geometric_thresholds(beta, lower, 0, size), low, high, step)


_kept_rounded = lru_cache(maxsize=4)(_rounded_geometric)  # public facts only


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


def block_size(candidates: int) -> int:
    """How many candidates are counted together at first; a public fact."""
    if candidates <= 2 * MAX_BLOCKS:
        return 1
    return 1 << ((candidates - 1) // MAX_BLOCKS).bit_length()


def clip_search(
    q: float,
    calibration: Calibration,
    *,
    lower: float | None,
    upper: float | None,
    **candidates: Any,
) -> Search:
    """The search for the clip of a sum, at level q away from the end that is known.

    Without `lower` and `upper` it is for either side of zero (`Search.sides`).
    """
    if lower is None and upper is None:
        return Search(Levels(q), calibration, lower=0.0, upper=None, **candidates)
    level = Levels(1.0 - q if lower is None else q)
    return Search(level, calibration, lower=lower, upper=upper, **candidates)


def unbounded_ends(
    bounds: tuple[float, float] | None,
    resolution: float | None,
    dither: bool | None,
    prior: Any,
    assume_sorted: bool,
) -> dict[str, Any]:
    """`lower`, `upper` and `resolution` for methods that are given `bounds`, if any."""
    if prior is not None:
        raise ValueError("prior must be left out for an unbounded search, which has no lattice")
    if dither is not None or assume_sorted:
        raise ValueError("dither and assume_sorted must be left out for an unbounded search")
    ends: dict[str, Any] = {} if resolution is None else {"resolution": resolution}
    if bounds is not None:
        ends |= zip(("lower", "upper"), _checks.check_bounds(bounds), strict=True)
    return ends


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


@in_units
@with_options(Records.reader)
def unbounded_quantile(
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
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    resolution: float | None = None,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    expected_n: int | None = None,
    **column: Unpack[RecordOptions],
) -> Any:
    r"""Release quantiles of data that are bounded on one side only, or not at all.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private records, any order: an array, a pandas, polars or pyarrow column, a sequence, or a
        `Sample` (then clamped to its bounds). n >= 0. NaN is left out (`nan_policy`); infinite
        records count as beyond all candidates.
    q : float or array_like of float
        Levels in [0, 1], any order and shape, at least one. Public. Several of them are released
        by recursive splits, as by `approx_quantiles`; without `lower` and `upper`, one by one.
    epsilon : float
        Total budget of the call, positive and finite. Public. Exactly one of `epsilon` and `rho`.
    rho : float, optional
        Total zCDP budget instead of `epsilon`. Public.
    lower : float or None, default 0
        Where the search begins; smaller records count as `lower`. None if only `upper` is known
        (the search is mirrored and goes down from there), or neither. Public, chosen without
        looking at `x`, as all that follow.
    upper : float, optional
        With `lower`, the search ends here, and so do the answers.
    beta : float, optional
        Ratio of two candidates' distances from ``lower - 1``; greater than 1. Default: 1.01;
        1.001 with `invert`.
    noise : {"exponential", "laplace", "gumbel"}, default "exponential"
        The noise of AboveThreshold. "exponential" is the most accurate.
    invert : bool, default False
        For low levels (high ones with `upper` alone): search the data 1 / (x - lower + 1), from
        above. Needs `lower` or `upper`.
    uniform : bool, default False
        Release a number drawn uniformly between the candidate and the one before, in place of the
        candidate.
    offset : float, default 0
        Aim at this many times 1 / (epsilon1 + epsilon2) records beyond q n; positive for a
        clip that should not fall below the largest records.
    split : float, optional
        epsilon1 / (epsilon1 + epsilon2), strictly between 0 and 1: epsilon1 is spent on the noise
        of the threshold, epsilon2 on that of the counts. Default: 2/3; for "gumbel" 1/2, nothing
        else.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record, n is public; "add-remove" adds or deletes one.
    counts : array_like of int, shape (n,), optional
        How many records each entry of `x` stands for.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave NaN and null out record by record, or state that there are none.
    max_contributions : int, default 1
        Up to this many records per person: the guarantee is per person.
    accountant : Accountant, optional
        Charged with ``guarantee("unbounded_quantile", q=q, ...)``; refuses before `x` is touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system.
    workers : int, default 1
        Threads for passes over a long `x`; the answer does not depend on it.
    resolution : float, optional
        Spacing of a public lattice, in the unit of `x`: the candidates are rounded to its points,
        the multiples of `resolution` inside `lower` and `upper`, and a record counts as the point
        that it rounds to. Not with `uniform`. Public. Default: none, as 0. With the step of your
        data (1 for whole numbers), a value that many records have is found exactly.
    confidence, covers, interval_share, expected_n : optional
        For an interval, as in `quantile`. Public.

    Returns
    -------
    float, ndarray of float64 or Estimate
        In the shape of `q`, non-decreasing in `q`, one of the public candidates (or a number drawn
        between two), inside `lower` and `upper` where given.

    Raises
    ------
    TypeError
        If `x` or an argument is not of the type its rule above asks for.
    ValueError
        If a public argument breaks its rule, or `x` or `counts` its form (`Sample.of`).
    BudgetExceeded
        If `accountant` has too little left.

    See Also
    --------
    joint_exp : More accurate where both bounds are known and not much wider than the data.
    above_threshold : The mechanism, on queries of your own.
    unbounded_quantile_law : The law that this draws from.

    Notes
    -----
    **Mechanism.** AboveThreshold [1]_ (Algorithm 2) over the counts
    :math:`f_i = \#\{x < \beta^i + \ell - 1\}`, i = 1, 2, ..., with threshold q n: release the
    candidate :math:`\beta^k + \ell - 1` at which it halts. Without `lower` and `upper`
    (Algorithm 4), up from 0 and then down from 0, each from i = 0: the first candidate other than
    0. With `invert` (B.1), down through :math:`\ell - 1 + 1 / (\beta^i - 1)`. Candidates end at
    `upper`, where float64 ends, or after 2^24 of them; a search that does not halt releases the
    last one.

    With `resolution`, the candidates are the distinct lattice points :math:`v_0 < v_1 < ...`
    nearest to these, v_0 among them, and :math:`f_i = \#\{x \text{ rounds to at most } v_{i-1}\}`
    is asked for i = 1, 2, ...: :math:`v_{k-1}` is released, the first point through which enough
    records are counted. *Proof* that it costs the same: rounding is monotone, so that
    :math:`f_i = \#\{x < t_i\}` for a public :math:`t_i`, the smallest number that rounds to more;
    these ascend, and nothing else about thresholds is used below. Both ways,
    :math:`f_0 = \#\{x \text{ rounds to less than } 0\}` is asked first.

    **Privacy.** Pure `epsilon`-DP under `neighbors`, or `rho`-zCDP, always the total of the call;
    epsilon1 and epsilon2 are solved for it. "swap": a search costs epsilon1 + epsilon2 (range
    epsilon1 + 2 epsilon2); "add-remove": max{(1-q) epsilon1, q epsilon1 + epsilon2} (Lemma B.1,
    at level 1 - q where the search goes down); both ways: epsilon1 + 2 epsilon2 under either. See
    `privacy.unbounded_quantile.costs_of` and, for several levels,
    `privacy.approx_quantiles.calibrate`. Not covered: running time and memory.

    **Error.** The search halts early by about ln(i) / epsilon2 ranks at candidate i, so a finer
    `beta` is not always better. Once all records are below the candidates, each further step
    halts with some probability that depends on the noise of the threshold; where that is large,
    the number of further steps has a tail :math:`k^{-\epsilon_1/\epsilon_2}`, and the answer
    grows by `beta` with each: whatever the split, the error has no mean. At an even split,
    epsilon = 0.1, level 0.99 and 1,000 records, one answer in a thousand is more than 100 times
    too large, and a few are beyond 10^20. The default split makes the tail :math:`k^{-2}`: one in
    a thousand is 1.3 times too large, at a median error of a clipped sum that is 2 to 13% higher.
    An `upper`, however loose, ends the tail (``papers/run.py --only tail``).

    With several levels, records of one value go to one side of a split: where many records are
    tied, `joint_exp` with its dither is far more accurate.

    **Cost.** One pass over `x`. Of more than 2^17 candidates, which is a `beta` below 1.005 or so,
    only every so many are counted by it, and others, by a cheap pass each, where the search may
    halt: most often once. Memory does not depend on the records. However long the search, it takes
    one random number for every stretch of rising counts.

    References
    ----------
    .. [1] D. Durfee, "Unbounded Differentially Private Quantile and Maximum Estimation",
       NeurIPS 2023. Sections 4 to 6, Appendix B.
    .. [2] H. Kaplan, S. Schnapp, U. Stemmer, "Differentially Private Approximate Quantiles",
       ICML 2022, for several levels.

    Examples
    --------
    >>> import numpy as np
    >>> pay = np.random.default_rng(0).lognormal(10.0, 1.0, size=10_000)
    >>> out = unbounded_quantile(pay, 0.9, epsilon=1.0)
    >>> bool(0 < out)
    True
    """
    levels = Levels.of(q)
    person = dict[str, Any](neighbors=neighbors, max_contributions=max_contributions)
    read = Records.reader(x, **column)

    def value_of(*, epsilon: float | None, rho: float | None, **_: Any) -> Any:
        search = _search(
            levels,
            dict(epsilon=epsilon, rho=rho, **person),
            lower=lower,
            upper=upper,
            beta=beta,
            noise=noise,
            invert=invert,
            uniform=uniform,
            offset=offset,
            split=split,
            resolution=resolution,
        )
        return search.calibration, lambda _: UnboundedQuantileLaw(search, search.count(read()))

    return released(
        value_of,
        levels,
        Request.of(confidence, covers, interval_share),
        x=x,
        epsilon=epsilon,
        rho=rho,
        accountant=accountant,
        rng=rng,
        expected_n=expected_n,
        limits=(-math.inf if lower is None else lower, math.inf if upper is None else upper),
        **person,
        **column,
    )


@in_our_words
@with_options(Records.reader)
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
    max_contributions: int = 1,
    resolution: float | None = None,
    **column: Unpack[RecordOptions],
) -> UnboundedQuantileLaw:
    """The exact output law of `unbounded_quantile` on these records. Not a release: for audits.

    Parameters
    ----------
    x, q, epsilon, rho, lower, upper, beta, noise, invert, uniform, offset, split, neighbors, \
counts, nan_policy, max_contributions, workers, resolution
        As in `unbounded_quantile`.

    Returns
    -------
    UnboundedQuantileLaw
        ``log_prob(o)`` and ``sample(rng, size)``.

    Examples
    --------
    >>> law = unbounded_quantile_law([1, 2, 2, 5], 0.5, epsilon=1.0, resolution=1)
    >>> other = unbounded_quantile_law([1, 2, 2, 9], 0.5, epsilon=1.0, resolution=1)  # a neighbor's
    >>> max(abs(law.log_prob(o) - other.log_prob(o)) for o in range(10)) <= 1.0 + 1e-9
    True
    >>> law.sample(size=5).shape
    (5,)
    """
    search = _search(
        q,
        dict(epsilon=epsilon, rho=rho, neighbors=neighbors, max_contributions=max_contributions),
        lower=lower,
        upper=upper,
        beta=beta,
        noise=noise,
        invert=invert,
        uniform=uniform,
        offset=offset,
        split=split,
        resolution=resolution,
    )
    return UnboundedQuantileLaw(search, search.count(Records.of(x, **column)))


def _search(
    q: Any,
    budget: dict[str, Any],
    *,
    lower: float | None,
    upper: float | None,
    invert: bool,
    noise: str,
    split: float | None,
    **candidates: Any,
) -> Search:
    """The search of a call, calibrated; all that is public about it is checked here."""
    levels = Levels.of(q)
    calibration = privacy.unbounded_quantile.calibrate(
        levels, lower=lower, upper=upper, invert=invert, noise=noise, split=split, **budget
    )
    return Search(levels, calibration, lower=lower, upper=upper, invert=invert, **candidates)
