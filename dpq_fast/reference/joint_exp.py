"""JointExp, [GJK21] Algorithm 1, as printed: direct sums, in logarithms.

[GJK21] is Gillenwater, Joseph, Kulesza, "Differentially Private Quantiles", PMLR 139.

Two generalizations. Intervals of zero width have zero weight, so the index set I holds only the
T intervals of positive width, and a difference of indices becomes a difference of ranks. And on a
lattice an interval has a number of points w in place of a length: k outputs in it are a multiset,
one of C(w+k-1, k), where the paper has the volume w^k / k!.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast._checks import check_epsilon
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels
from dpq_fast.reference._calls import Law, with_options
from dpq_fast.reference.intervals import released, undithered
from dpq_fast.reference.race import race
from dpq_fast.reference.sample import Intervals, distances, reader


class JointExpLaw(Law):
    """The exact output law of JointExp on one sample and, where there is one, one dither.

    Parameters
    ----------
    data : Intervals
        The sample.
    levels : Levels
    rate : float
        epsilon / (2 sensitivity).

    Attributes
    ----------
    n_j : list of Fraction, length m + 2
        ``n_j[j]`` is (q_j - q_{j-1}) n for j = 1..m+1, exact; entry 0 is not used.
    log_alpha : ndarray of float64, shape (m + 1, T, m + 1)
        ``log_alpha[j, t, k]`` is ln α(j, t, k) with the paper's j and k, from 1; the rest is
        -inf.
    log_normalizer : float
        Logarithm of the total weight of all outputs.
    """

    def __init__(self, data: Intervals, levels: Levels, rate: float) -> None:
        self.data = data
        self.levels = levels
        self.rate = rate
        # [GJK21] 3.1: n_j = (q_j - q_{j-1}) n, with q_0 = 0 and q_{m+1} = 1.
        q = [Fraction(0), *map(Fraction, levels.values.tolist()), Fraction(1)]
        self.n_j = [Fraction(0)] + [(above - below) * data.n for below, above in pairwise(q)]
        self.log_alpha = self._forward()
        self.log_normalizer = float(np.logaddexp.reduce(self._log_last(), axis=None))

    def log_phi(self, i: Any, i_next: Any, j: int) -> NDArray[np.float64]:
        """ln φ(i, i', j) for ranks i <= i' that broadcast."""
        # [GJK21] 3.3: φ(i, i', j) = exp(-ε / (2Δ) |(i' - i) - n_j|).
        return -self.rate * distances(np.subtract(i_next, i), self.n_j[j])

    def log_multiplicity(self, t: int, k: int) -> float:
        """Logarithm of the factor for the k-th output in interval t."""
        width = float(self.data.width[t])
        if self.data.lattice is None:
            return math.log(width) - math.log(k)  # w^k / k! over w^(k-1) / (k-1)!
        return math.log(width + (k - 1)) - math.log(k)  # C(w+k-1, k) over C(w+k-2, k-1)

    def _forward(self) -> NDArray[np.float64]:
        m, rank = self.levels.m, self.data.rank
        size = rank.size
        log_alpha = np.full((m + 1, size, m + 1), -np.inf)
        # [GJK21] Alg. 1 lines 4-6. Differs from [GJK21]: τ(i), where lines 5 and 6 have τ(1).
        for i in range(size):
            log_alpha[1, i, 1] = self.log_phi(0, rank[i], 1) + self.log_multiplicity(i, 1)
        for j in range(2, m + 1):  # [GJK21] Alg. 1 line 7
            # [GJK21] Alg. 1 lines 8-9
            log_alpha_hat = np.logaddexp.reduce(log_alpha[j - 1], axis=1)
            for i in range(size):
                # [GJK21] Alg. 1 line 10, a sum over i' < i
                log_alpha[j, i, 1] = self.log_multiplicity(i, 1) + np.logaddexp.reduce(
                    self.log_phi(rank[:i], rank[i], j) + log_alpha_hat[:i]
                )
                # [GJK21] Alg. 1 lines 11-12
                for k in range(2, j + 1):
                    log_alpha[j, i, k] = (
                        self.log_multiplicity(i, k)
                        + self.log_phi(rank[i], rank[i], j)
                        + log_alpha[j - 1, i, k - 1]
                    )
        return log_alpha

    def _log_last(self) -> NDArray[np.float64]:
        """ln α(m, i, k) φ(i, n, m+1), shape (T, m + 1)."""
        m, data = self.levels.m, self.data
        log_alpha: NDArray[np.float64] = self.log_alpha[m]
        return log_alpha + self.log_phi(data.rank, data.n, m + 1)[:, np.newaxis]

    def _log_score(self, ranks: list[int]) -> float:
        """ε u_{Q'} / (2Δ) of m ranks: the exponent of a path, without multiplicities."""
        # [GJK21] 3.2: u_{Q'}(X, s) = -Σ_j |(i_j - i_{j-1}) - n_j|, i_0 = 0 and i_{m+1} = n.
        i = [0, *ranks, self.data.n]
        deviation = sum(abs(i[j] - i[j - 1] - self.n_j[j]) for j in range(1, len(i)))
        return -self.rate * float(deviation)

    def path_log_prob(self, path: Any) -> float:
        """Log-probability that the m outputs fall into the intervals `path`.

        Parameters
        ----------
        path : sequence of int, length m
            Indices into the intervals of `data`; -inf unless non-decreasing.
        """
        path = list(path)
        if any(t > u for t, u in pairwise(path)):
            return -math.inf
        log_weight = self._log_score([int(self.data.rank[t]) for t in path])
        for t in set(path):
            for k in range(1, path.count(t) + 1):
                log_weight += self.log_multiplicity(t, k)
        return log_weight - self.log_normalizer

    def log_prob(self, o: Any) -> float:
        """Log density (continuous) or log-probability (lattice) of one output of q's shape.

        -inf for outputs that can not occur: outside the bounds, off the lattice, or decreasing.
        The density is the one that is continuous from below, and from above at the low bound.
        """
        outputs = self.levels.distinct(o)
        if outputs is None or not (outputs[1:] >= outputs[:-1]).all():
            return -math.inf
        outputs = outputs.tolist()
        m = self.levels.m
        # total[j]: ranks of the pieces of output j, and for each the log-weight of levels 1..j
        # with level j as the last one in that piece. Equal outputs share their pieces.
        total = [(np.zeros(1, dtype=np.int64), np.zeros(1))]
        for j in range(1, m + 1):
            pieces = self.data.pieces(outputs[j - 1])
            log_weight = np.full(len(pieces), -np.inf)
            for p, (rank, count) in enumerate(pieces):
                log_ways = 0.0
                for k in range(1, j + 1):  # levels j-k+1..j in this piece
                    if outputs[j - k] != outputs[j - 1]:
                        break
                    if k > 1:
                        log_ways += float(self.log_phi(rank, rank, j - k + 2))
                    before, log_before = total[j - k]
                    if j > k and outputs[j - k - 1] == outputs[j - k]:
                        log_before = np.where(before < rank, log_before, -np.inf)
                    log_sum = np.logaddexp.reduce(
                        log_before + self.log_phi(before, rank, j - k + 1)
                    )
                    log_weight[p] = np.logaddexp(
                        log_weight[p],
                        log_sum + log_ways + math.log(math.comb(count + k - 1, k)),
                    )
            total.append((np.array([rank for rank, _ in pieces], dtype=np.int64), log_weight))
        ranks, log_weight = total[m]
        log_weight = log_weight + self.log_phi(ranks, self.data.n, m + 1)
        return float(np.logaddexp.reduce(log_weight)) - self.log_normalizer

    def _draw_path(self, rng: np.random.Generator) -> list[tuple[int, int]]:
        """One path as runs (interval, length), in ascending order."""
        m, rank = self.levels.m, self.data.rank
        i, k = divmod(race(self._log_last(), rng), m + 1)  # [GJK21] Alg. 1 line 13
        runs = [(i, k)]  # [GJK21] Alg. 1 line 14
        j = m - k
        while j > 0:  # [GJK21] Alg. 1 line 15
            # [GJK21] Alg. 1 line 16; τ(i_{j+1}) is a constant here. Only i < i_{j+1}: k counts
            # all copies of i.
            log_phi = self.log_phi(rank[:i], rank[i], j + 1)
            i, k = divmod(race(self.log_alpha[j, :i] + log_phi[:, np.newaxis], rng), m + 1)
            runs.append((i, k))  # [GJK21] Alg. 1 line 17
            j -= k
        return runs[::-1]

    def _draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """One ascending output, shape (m,)."""
        # [GJK21] Alg. 1 line 18
        return np.concatenate([self.data.draw(i, k, rng) for i, k in self._draw_path(rng)])


@with_options(reader)
def joint_exp_law(
    x: Any,
    q: Any,
    *,
    epsilon: float,
    neighbors: str = "swap",
    max_contributions: int = 1,
    dither_rng: Any = None,
    **column: Any,
) -> JointExpLaw:
    """The exact output law of `joint_exp` on this sample. Not a release: for audits and tests.

    Parameters
    ----------
    x, q, epsilon, bounds, neighbors, resolution, dither, prior, counts, assume_sorted, \
nan_policy, max_contributions
        As in `joint_exp`.
    dither_rng : None, int, SeedSequence, BitGenerator or Generator, optional
        Where the one dither that the law is conditional on comes from.

    Returns
    -------
    JointExpLaw
    """
    levels = Levels(q)
    calibration = privacy.joint_exp.calibrate(
        levels,
        epsilon=check_epsilon(epsilon),  # there is no `rho` to give in its place
        neighbors=neighbors,
        max_contributions=max_contributions,
    )
    read = reader(x, **column)
    return JointExpLaw(read(dither_rng).intervals(), levels, calibration.rate)


@with_options(reader)
def joint_exp(
    x: Any,
    q: Any,
    *,
    epsilon: float,
    neighbors: str = "swap",
    max_contributions: int = 1,
    accountant: Any = None,
    rng: Any = None,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    expected_n: int | None = None,
    **column: Any,
) -> Any:
    """Release m quantiles at once with JointExp, in O(m^2 T^2) time.

    The law is that of `dpq_fast.joint_exp`, whose docstring has every rule in full.

    Parameters
    ----------
    x : array_like of float or int, shape (N,)
        Private values in any order, in the unit of `bounds`.
    q : float or array_like of float
        Levels in [0, 1], any shape. Public.
    epsilon : float
        Budget for the whole tuple. Public.
    bounds : (float, float)
        Finite low < high, chosen without looking at `x`. Public.
    neighbors : {"swap", "add-remove"}
        What the budget protects: one value replaced, or one added or deleted.
    resolution : float, optional
        Spacing of the lattice of outputs, in the unit of `x`; 0 for the continuous mechanism.
    dither : bool, optional
        Whether records on the lattice are spread over their cells.
    prior : optional
        A public guess at the distribution of the records; see `dpq_fast.Sample.of`.
    counts : array_like of int, shape (N,), optional
        How many records have each value.
    assume_sorted : bool
        A promise about `x`; not needed here.
    nan_policy : {"omit", "raise"}
        What to do with NaN.
    max_contributions : int
        Most records that one person has in `x`.
    accountant : Accountant, optional
        Charged with the release.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        See `default_rng`.
    confidence, covers, interval_share, expected_n : optional
        For an interval, as in `dpq_fast.quantile`.

    Returns
    -------
    float, ndarray of float64 or Estimate
        In q's shape and the unit of `x`, inside `bounds`, non-decreasing in `q`.
    """
    levels = Levels(q)
    epsilon = check_epsilon(epsilon)  # there is no `rho` to give in its place
    person = dict[str, Any](neighbors=neighbors, max_contributions=max_contributions)
    read = reader(x, **column)

    def value_of(*, epsilon: float, **_: Any) -> Any:
        calibration = privacy.joint_exp.calibrate(levels, epsilon=epsilon, **person)
        return calibration, lambda dither_rng: JointExpLaw(
            read(dither_rng).intervals(), levels, calibration.rate
        )

    return released(
        value_of,
        levels,
        Request.of(confidence, covers, interval_share),
        lambda: undithered(x, **column),
        x=x,
        counts=column.get("counts"),
        epsilon=epsilon,
        expected_n=expected_n,
        accountant=accountant,
        rng=rng,
        **person,
    )
