"""Unbounded quantiles: AboveThreshold over ever larger candidates, on data without an upper bound.

[Dur23]: candidates t_1 < t_2 < ... are public, and the search halts at the first one below which
there are, with noise, enough records. One pass counts the records between candidates; the search
then goes through runs of candidates with equal counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast.halting import NOISES, HaltingLaw
from dpq_fast.histogram import Bins, geometric_threshold
from dpq_fast.levels import Levels, Split, splits
from dpq_fast.parts import Cut, recurse
from dpq_fast.rng import default_rng
from dpq_fast.sample import Records

# Ratio of candidates; inverted data lie in (0, 1], where 1.01 would leave 70 candidates.
BETA, BETA_INVERTED = 1.01, 1.001


class Ladder:
    """Public candidates, ascending, and the exact number of (mirrored) records below each.

    Parameters
    ----------
    sign : {1, -1}
        -1 if everything here is about the mirrored records, -x.
    value : callable
        Candidate by index, mirrored as the records are.
    last : int
        Largest index of a candidate.
    counts : ndarray of int64
        Records from candidate i up to i + 1, from 0 on (those below candidate 0 included there),
        as far as there are any.
    lowest : int
        Records below candidate 0.
    """

    def __init__(
        self,
        sign: int,
        value: Callable[[int], float],
        last: int,
        counts: NDArray[np.int64],
        lowest: int,
    ) -> None:
        self.sign = sign
        self.value = value
        self.last = last
        self.lowest = lowest
        self.total = int(counts.sum())
        # candidates of one count are a run, counted from the first one
        self._first = np.concatenate(([0], np.flatnonzero(counts[:last]) + 1))
        self._below = np.concatenate(([lowest], np.cumsum(counts)[self._first[1:] - 1]))

    def below(self, index: int) -> int:
        """Records below a candidate."""
        return int(self._below[np.searchsorted(self._first, index, side="right") - 1])

    def whole(self, start: int) -> tuple[Cut, Cut]:
        """The cuts around all records, for a search that begins after candidate `start`."""
        return Cut(start, 0), Cut(self.last, self.total)

    def halting(
        self,
        cuts: tuple[Cut, Cut],
        level: float,
        epsilons: tuple[float, float],
        noise: str,
        offset: float,
    ) -> HaltingLaw:
        """Where the search for a level of the records between two cuts halts.

        Counted from the candidate after the lower cut, up to that of the upper one.
        """
        below, above = cuts
        low = int(np.searchsorted(self._first, below.point + 1, side="right")) - 1
        high = int(np.searchsorted(self._first, above.point, side="right"))
        first = self._first[low:high].copy()
        first[0] = below.point + 1
        target = Fraction(level) * (above.rank - below.rank)  # rounded, it would move unevenly
        whole = math.floor(target)
        gaps = (self._below[low:high] - (below.rank + whole)) - float(target - whole)
        lengths = np.diff(first, append=above.point + 1)
        return HaltingLaw(gaps - offset / sum(epsilons), lengths, *epsilons, noise)


class Search:
    """The public side of a search: its candidates, budget and noise.

    Parameters
    ----------
    As of `unbounded_quantile`.
    """

    def __init__(
        self,
        q: Any,
        *,
        epsilon: float | None,
        rho: float | None,
        lower: float | None,
        upper: float | None,
        beta: float | None,
        noise: str,
        invert: bool,
        uniform: bool,
        offset: float,
        split: float | None,
        neighbors: str,
        max_contributions: int,
    ) -> None:
        self.levels = q if isinstance(q, Levels) else Levels(q)
        self.noise = _checks.check_choice("noise", noise, NOISES)
        self.invert = _checks.check_flag("invert", invert)
        self.uniform = _checks.check_flag("uniform", uniform)
        self.offset = _checks._real("offset", offset)
        if not math.isfinite(self.offset):
            raise ValueError(f"offset must be finite, got {self.offset}")
        self.lower, self.upper = _checked_ends(lower, upper)
        self.way = privacy.unbounded_search(self.lower, self.upper, self.invert)
        default = BETA_INVERTED if self.invert else BETA
        self.beta = default if beta is None else _checks._real("beta", beta)
        if not 1.0 < self.beta < math.inf:
            raise ValueError(f"beta must be finite and greater than 1, got {self.beta}")
        self.split = privacy.choose_split(split, noise)
        self._budget = dict(
            epsilon=epsilon, rho=rho, neighbors=neighbors, max_contributions=max_contributions
        )
        self.scales = self._scales()

    def guarantee(self) -> dict[str, Any]:
        """What the privacy of the call depends on."""
        return dict(
            q=self.levels,
            lower=self.lower,
            upper=self.upper,
            invert=self.invert,
            split=self.split,
            **self._budget,
        )

    def _scales(self) -> list[tuple[float, float]]:
        """The two epsilons of each level, or of each step if there are several."""
        levels, budget = self.levels, dict(self._budget)
        if self.way == "both" or levels.m == 1:
            for name in ("epsilon", "rho"):
                if budget[name] is not None:
                    budget[name] = getattr(_checks, f"check_{name}")(budget[name]) / levels.m
            return [
                privacy.unbounded_quantile_epsilons(
                    level, search=self.way, split=self.split, **budget
                )
                for level in levels.values.tolist()
            ]
        scales = privacy.approx_quantiles_scales(
            self.searched, base="unbounded", split=self.split, **budget
        )
        return [(self.split * scale, (1.0 - self.split) * scale) for scale in scales.tolist()]

    @property
    def searched(self) -> NDArray[np.float64]:
        """The levels of the records as they are searched: mirrored where those are."""
        return self.levels.mirrored().values if self.way == "down" else self.levels.values

    def ladders(self, records: Records) -> list[Ladder]:
        """Candidates and counts, of one search or of both ways."""
        if self.way == "both":
            return [self._geometric(records, 1, 0.0, None), self._geometric(records, -1, 0.0, None)]
        if self.invert:
            return [self._inverted(records)]
        if self.lower is None:
            return [self._geometric(records, -1, -self.upper, None)]
        return [self._geometric(records, 1, self.lower, self.upper)]

    def _geometric(self, records: Records, sign: int, lower: float, upper: float | None) -> Ladder:
        """[Dur23] Algorithm 2: beta^i + lower - 1."""
        return self._ladder(
            sign, lower, *records.geometric_counts(self.beta, lower, upper, negate=sign < 0)
        )

    def _ladder(
        self,
        sign: int,
        lower: float,
        values: NDArray[np.float64],
        counts: NDArray[np.int64],
        lowest: int,
        size: int,
    ) -> Ladder:
        def value(index: int) -> float:
            if index < values.size:
                return float(values[index])
            return geometric_threshold(self.beta, lower, index)

        return Ladder(sign, value, size - 1, counts, lowest)

    def sides(self, records: Records) -> tuple[Ladder, Ladder]:
        """The mirrored records below zero, and the others: each record on one side only."""
        _, counts_below, _, _ = below = records.geometric_counts(self.beta, 0.0, negate=True)
        _, counts_above, negative, _ = above = records.geometric_counts(self.beta, 0.0)
        # what does not belong to a side stands before its first candidate
        counts_above[0] -= negative
        counts_below[0] -= counts_above.sum()
        first, second = (
            self._ladder(1, 0.0, values, counts, 0, size)
            for values, counts, _, size in (below, above)
        )
        return first, second

    def _inverted(self, records: Records) -> Ladder:
        """[Dur23] B.1: candidates for y = 1 / (x - lower + 1), which ascend as x descends.

        y < beta^i - 1 if and only if x > lower - 1 + 1 / (beta^i - 1); y <= 1 ends them. The
        bounded side is `lower`, or the mirrored `upper`.
        """
        sign = -1 if self.lower is not None else 1
        base = self.lower if self.lower is not None else -self.upper
        powers = Bins.geometric(self.beta, 0.0, 1.0).edges[1:]  # beta^i - 1, up to 1 or beyond
        values = -np.maximum(1.0 / powers + (base - 1.0), base)
        counts = records.count(Bins.of(np.concatenate(([-np.inf], values, [np.inf]))), sign < 0)
        values = np.concatenate((values[:1], values))  # the search begins at index 1
        return Ladder(sign, lambda index: float(values[index]), values.size - 1, counts, 0)

    def decode(self, ladder: Ladder, index: int, rng: np.random.Generator | None) -> float:
        """The released number of one candidate, inside `lower` and `upper`."""
        value = ladder.value(index)
        if rng is not None and self.uniform and index > 0:  # [Dur23] 5.2
            before = ladder.value(index - 1)
            value = before + (value - before) * rng.random()
        return self._clipped(ladder.sign * value)

    def _clipped(self, value: float) -> float:
        if self.lower is not None:
            value = max(value, self.lower)
        if self.upper is not None:
            value = min(value, self.upper)
        return value + 0.0  # no -0.0


def clip_search(
    q: float,
    *,
    epsilon: float,
    lower: float | None,
    upper: float | None,
    neighbors: str,
    max_contributions: int,
    beta: float | None = None,
    noise: str = "exponential",
    uniform: bool = False,
    offset: float = 0.0,
    split: float | None = None,
) -> Search:
    """The search for the clip of a sum, at level q away from the end that is known.

    Without `lower` and `upper` it is for either side of zero (`Search.sides`), and `epsilon` for
    both together.
    """
    two_sided = lower is None and upper is None
    search = Search(
        1.0 - q if lower is None and not two_sided else q,
        epsilon=epsilon,
        rho=None,
        lower=0.0 if two_sided else lower,
        upper=upper,
        beta=beta,
        noise=noise,
        invert=False,
        uniform=uniform,
        offset=offset,
        split=split,
        neighbors=neighbors,
        max_contributions=max_contributions,
    )
    if two_sided:
        search.scales = [
            privacy.clip_epsilons(q, epsilon, neighbors, True, search.split, max_contributions)
        ]
    return search


def unbounded_ends(
    bounds: tuple[float, float] | None,
    resolution: float | None,
    dither: bool | None,
    assume_sorted: bool,
) -> dict[str, float]:
    """`lower` and `upper` for methods that are given `bounds`, if any."""
    if resolution is not None or dither is not None or assume_sorted:
        raise ValueError(
            "resolution, dither and assume_sorted must be left out for an unbounded search"
        )
    return (
        {}
        if bounds is None
        else dict(zip(("lower", "upper"), _checks.check_bounds(bounds), strict=True))
    )


def _checked_ends(lower: float | None, upper: float | None) -> tuple[float | None, float | None]:
    ends = []
    for name, end in (("lower", lower), ("upper", upper)):
        if end is not None:
            end = _checks._real(name, end)
            if not math.isfinite(end):
                raise ValueError(f"{name} must be finite or None, got {end}")
        ends.append(end)
    if None not in ends and not ends[0] < ends[1]:
        raise ValueError(f"lower must be below upper, got ({ends[0]}, {ends[1]})")
    return ends[0], ends[1]


class UnboundedQuantileLaw:
    """The exact output law of `unbounded_quantile`. Not a release: `unbounded_quantile_law`."""

    def __init__(self, search: Search, ladders: list[Ladder]) -> None:
        self._search = search
        self._ladders = ladders

    def _cuts(self, ladder: Ladder) -> tuple[Cut, Cut]:
        """Around all records. Both ways, candidate 0 is tested, too [Dur23, Algorithm 4]."""
        return ladder.whole(-1 if len(self._ladders) == 2 else 0)

    def _halting(self, ladder: Ladder, cuts: tuple[Cut, Cut], level: float, k: int) -> HaltingLaw:
        search = self._search
        return ladder.halting(cuts, level, search.scales[k], search.noise, search.offset)

    def _both(self, k: int) -> list[HaltingLaw]:
        """The laws of the two searches of [Dur23] Algorithm 4 for one level."""
        level = float(self._search.levels.values[k])
        return [
            self._halting(ladder, self._cuts(ladder), at, k)
            for ladder, at in zip(self._ladders, (level, 1.0 - level), strict=True)
        ]

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
        rows = 1 if size is None else _checks.check_count("size", size, 0)
        draw = self._draw_both if len(self._ladders) == 2 else self._draw_steps
        outputs = np.sort(draw(generator, rows), axis=1)
        return self._search.levels.restore(outputs[0] if size is None else outputs)

    def _draw_both(self, rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
        outputs = np.zeros((rows, self._search.levels.m))
        for k in range(self._search.levels.m):
            laws = self._both(k)
            for row in range(rows):
                for law, ladder in zip(laws, self._ladders, strict=True):
                    index = _index(law.draw(rng), self._cuts(ladder))
                    if index > 0:
                        outputs[row, k] = self._search.decode(ladder, index, rng)
                        break
        return outputs

    def _draw_steps(self, rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
        (ladder,) = self._ladders
        steps = splits(self._search.searched)
        low, high = self._cuts(ladder)
        root = self._halting(ladder, (low, high), steps[0].local, 0)

        def release(k: int, below: Cut, above: Cut) -> Cut:
            if below.point == above.point:
                return below  # no candidate lies between them
            cuts = below, above
            law = self._halting(ladder, cuts, steps[k].local, k) if k else root
            index = _index(law.draw(rng), cuts)
            return Cut(index, ladder.below(index))

        outputs = np.empty((rows, len(steps)))
        for row in range(rows):
            cuts = recurse(steps, low, high, release)
            outputs[row] = [self._search.decode(ladder, cut.point, rng) for cut in cuts]
        return outputs

    # Probabilities

    def candidates(self) -> list[float]:
        """Every number that a level is released as, ascending; public, but for ``uniform=True``."""
        return sorted(
            {
                self._search.decode(ladder, index, None)
                for ladder in self._ladders
                for index in range(ladder.last + 1)
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
        if levels.m > 1 and (len(self._ladders) == 2 or search.uniform):
            raise ValueError(
                "log_prob takes one level without lower and upper, or with uniform=True, "
                f"got {levels.m}"
            )
        if len(self._ladders) == 2:
            return self._log_prob_both(float(outputs[0]))
        (ladder,) = self._ladders
        if search.way == "down":
            outputs = outputs[::-1]
        steps = {
            (step.lower, step.upper): (k, step) for k, step in enumerate(splits(search.searched))
        }
        return self._log_prob_between(outputs, steps, (0, levels.m), self._cuts(ladder))

    def _log_prob_between(
        self,
        outputs: NDArray[np.float64],
        steps: dict[tuple[int, int], tuple[int, Split]],
        levels: tuple[int, int],
        cuts: tuple[Cut, Cut],
    ) -> float:
        """ln of the probability of the outputs of levels lower, ..., upper - 1 from one part."""
        lower, upper = levels
        if lower == upper:
            return 0.0
        (ladder,) = self._ladders
        below, above = cuts
        k, step = steps[levels]
        searched = below.point < above.point
        law = self._halting(ladder, cuts, step.local, k) if searched else None
        terms = []
        for index in self._indices(ladder, cuts, float(outputs[step.middle])):
            cut = Cut(index, ladder.below(index)) if searched else below
            terms.append(
                (0.0 if law is None else self._log_index(law, cuts, index, ladder))
                + self._log_prob_between(outputs, steps, (lower, step.middle), (below, cut))
                + self._log_prob_between(outputs, steps, (step.middle + 1, upper), (cut, above))
            )
        return float(np.logaddexp.reduce(terms, initial=-np.inf))

    def _log_prob_both(self, output: float) -> float:
        up, down = self._both(0)
        log_first = up.log_prob(0)
        if output == 0.0 and not self._search.uniform:
            return log_first + down.log_prob(0)
        ladder, law, before = (
            (self._ladders[0], up, 0.0) if output > 0.0 else (self._ladders[1], down, log_first)
        )
        cuts = self._cuts(ladder)
        terms = [
            before + self._log_index(law, cuts, index, ladder)
            for index in self._indices(ladder, cuts, output)
            if index > 0
        ]
        return float(np.logaddexp.reduce(terms, initial=-np.inf))

    def _log_index(
        self, law: HaltingLaw, cuts: tuple[Cut, Cut], index: int, ladder: Ladder
    ) -> float:
        """ln of the probability (density) that a part is cut at a candidate."""
        below, above = cuts
        log_prob = law.log_prob(index - below.point - 1)
        if index == above.point:
            log_prob = float(np.logaddexp(log_prob, law.log_never()))
        if self._search.uniform:
            log_prob -= math.log(ladder.value(index) - ladder.value(index - 1))
        return log_prob

    def _indices(self, ladder: Ladder, cuts: tuple[Cut, Cut], output: float) -> range:
        """The candidates of a part that are released as `output`: most often one, or none."""
        start, stop = (cut.point for cut in cuts)
        candidates = range(start if start == stop else start + 1, stop + 1)
        sign = ladder.sign

        def first(beyond: Callable[[float, float], bool]) -> int:
            """The first candidate whose released number is (not below, or above) the output."""
            low, high = candidates.start, candidates.stop
            while low < high:
                middle = (low + high) // 2
                released = sign * self._search.decode(ladder, middle, None)
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


def _index(halted: int, cuts: tuple[Cut, Cut]) -> int:
    """The candidate at which a search halted, or the last one."""
    below, above = cuts
    return above.point if halted < 0 else below.point + 1 + halted


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
    counts: Any = None,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    workers: int = 1,
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
        Threads for going through a long `x`; the answer does not depend on it.

    Returns
    -------
    float or ndarray of float64
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

    **Privacy.** Pure `epsilon`-DP under `neighbors`, or `rho`-zCDP, always the total of the call;
    epsilon1 and epsilon2 are solved for it. "swap": a search costs epsilon1 + epsilon2 (range
    epsilon1 + 2 epsilon2); "add-remove": max{(1-q) epsilon1, q epsilon1 + epsilon2} (Lemma B.1,
    at level 1 - q where the search goes down); both ways: epsilon1 + 2 epsilon2 under either. See
    `privacy.unbounded_quantile_epsilons` and, for several levels,
    `privacy.approx_quantiles_scales`. Not covered: running time and memory.

    **Error.** The search halts early by about ln(i) / epsilon2 ranks at candidate i, so a finer
    `beta` is not always better. Once all records are below the candidates, each further step
    halts with some probability that depends on the noise of the threshold; where that is large,
    the number of further steps has a tail :math:`k^{-\epsilon_1/\epsilon_2}`, and the answer
    grows by `beta` with each. So the error has no useful mean for small `epsilon` n (1 - q): at
    an even split, epsilon = 0.1 and 1,000 records, one release in some thousands is larger than
    10^20 times the data. The default split makes that tail :math:`k^{-2}`, at hardly more error
    otherwise; an `upper`, however loose, ends it.

    With several levels, records of one value go to one side of a split: where many records are
    tied, `joint_exp` with its dither is far more accurate.

    **Cost.** One pass over `x` (two for a `beta` below about 1.00002 times finer candidates than
    the pass keeps a table of), then time and memory in the number of candidates up to the largest
    record, log(max x) / log(beta). However long the search, it takes one random number for every
    stretch of rising counts.

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
    generator = default_rng(rng)
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
    )
    with privacy.charged(accountant, "unbounded_quantile", **search.guarantee()):
        records = Records.of(x, counts=counts, nan_policy=nan_policy, workers=workers)
        return UnboundedQuantileLaw(search, search.ladders(records)).sample(generator)


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
    workers: int = 1,
) -> UnboundedQuantileLaw:
    """The exact output law of `unbounded_quantile` on these records. Not a release: for audits.

    Parameters
    ----------
    x, q, epsilon, rho, lower, upper, beta, noise, invert, uniform, offset, split, neighbors, \
counts, nan_policy, max_contributions, workers
        As in `unbounded_quantile`.

    Returns
    -------
    UnboundedQuantileLaw
        ``log_prob(o)`` and ``sample(rng, size)``.
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
    )
    records = Records.of(x, counts=counts, nan_policy=nan_policy, workers=workers)
    return UnboundedQuantileLaw(search, search.ladders(records))
