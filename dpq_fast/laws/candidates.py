"""Public candidates that ascend, and how many records lie below each.

One pass counts the records between candidates, or between blocks of them if they are very many. A
search then scans runs of candidates with equal counts, or bounds of them, and counts a block's
candidates by another pass where it has to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels.halting import Halting
from dpq_fast.data.histogram import KEPT_BINS, Bins, geometric_size, geometric_thresholds
from dpq_fast.data.lattice import MAX_POINTS, points_per_unit
from dpq_fast.data.leaves import rounding_edges
from dpq_fast.data.records import Records
from dpq_fast.laws.halting import HaltingLaw
from dpq_fast.laws.splits import Boundary
from dpq_fast.noise.threshold import ThresholdNoise

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


def listed_candidates(values: Callable[..., NDArray[np.float64]], size: int) -> Candidates:
    """So many candidates; ``values(i, j, step)`` gives every step-th of them."""
    step = block_size(size)
    edges = np.concatenate(([-np.inf], values(0, size, step), [np.inf]))
    return Candidates(size - 1, step, Bins.of(edges), values)


def rounded_candidates(
    values: NDArray[np.float64], low: float, high: float, step: float
) -> Candidates:
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
    listed = listed_candidates(lambda i, j, step=1: edges[i:j:step], edges.size)
    return listed._replace(points=np.concatenate((points, far)))


def geometric_candidates(
    beta: float, lower: float, upper: float | None, unit: float = 1.0
) -> Candidates:
    """[Dur23] Algorithm 2: beta^i + lower - 1, in a unit that is a power of two."""
    if unit != 1.0:
        lower = lower / unit
        size = geometric_size(beta, lower, None if upper is None else upper / unit)
        return listed_candidates(
            lambda i, j, step=1: unit * geometric_thresholds(beta, lower, i, j, step), size
        )
    size = geometric_size(beta, lower, upper)
    step = block_size(size)
    bins = Bins.geometric(beta, lower, upper, below=True, step=step)
    return Candidates(size - 1, step, bins, lambda i, j: geometric_thresholds(beta, lower, i, j))


def rounded_geometric(
    beta: float, lower: float, upper: float | None, low: float, high: float, step: float
) -> Candidates:
    """The same on a lattice, as `rounded_candidates`."""
    size = geometric_size(beta, lower, upper)
    make = _kept_rounded if size <= KEPT_BINS else _rounded_geometric
    return make(beta, lower, size, low, high, step)


def _rounded_geometric(
    beta: float, lower: float, size: int, low: float, high: float, step: float
) -> Candidates:
    return rounded_candidates(geometric_thresholds(beta, lower, 0, size), low, high, step)


_kept_rounded = lru_cache(maxsize=4)(_rounded_geometric)  # public facts only


def block_size(candidates: int) -> int:
    """How many candidates are counted together at first; a public fact."""
    if candidates <= 2 * MAX_BLOCKS:
        return 1
    return 1 << ((candidates - 1) // MAX_BLOCKS).bit_length()
