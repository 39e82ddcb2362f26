"""IndExp, [GJK21] 5.1: one exponential mechanism per level, each on its own, then sorted.

[GJK21] is Gillenwater, Joseph, Kulesza, "Differentially Private Quantiles", PMLR 139.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast._checks import check_size
from dpq_fast.privacy.levels import Levels
from dpq_fast.reference._calls import default_rng, release
from dpq_fast.reference.race import race
from dpq_fast.reference.sample import Intervals, distances, reader


class IndExpLaw:
    """The exact law of the released, sorted tuple on one sample and, if there is one, one dither.

    Parameters
    ----------
    data : Intervals
        The sample, the same one for all levels.
    levels : Levels
    rates : array_like of float, shape (m,)
        epsilon_j / (2 sensitivity_j).

    Attributes
    ----------
    targets : list of Fraction, length m
        The exact products q_j n.
    log_weight : ndarray of float64, shape (m, T)
        Log-weight of each interval under each level.
    log_normalizer : ndarray of float64, shape (m,)
        Their sums, as logarithms.
    """

    def __init__(self, data: Intervals, levels: Levels, rates: Any) -> None:
        self.data = data
        self.levels = levels
        self.rates = np.broadcast_to(np.asarray(rates, dtype=np.float64), (levels.m,))
        self.targets = [Fraction(q) * data.n for q in levels.values.tolist()]
        # [GJK21] 5.1: score(X, I_j) = exp(-ε |j - qn| / 2) |I_j|, with Δ = 1.
        # Differs from [GJK21]: Δ as in `privacy.ind_exp`, lower under add-remove; and the
        # rank of o is #{x < o}, as in JointExp, not #{x <= o}.
        self.log_weight = np.array(
            [self._log_score(data.rank, j) + np.log(data.width) for j in range(levels.m)]
        )
        self.log_normalizer = np.logaddexp.reduce(self.log_weight, axis=1)

    def _log_score(self, ranks: Any, j: int) -> NDArray[np.float64]:
        """The exponent of level j (counted from 0) at `ranks`."""
        return -float(self.rates[j]) * distances(ranks, self.targets[j])

    def _level_log_prob(self, value: float, j: int) -> float:
        """Log density or log-probability that level j alone draws `value`."""
        terms = [
            float(self._log_score(rank, j)) + math.log(count)
            for rank, count in self.data.pieces(value)
        ]
        return float(np.logaddexp.reduce(terms) - self.log_normalizer[j])

    def log_prob(self, o: Any) -> float:
        """Log density (continuous) or log-probability (lattice) of one output of q's shape.

        -inf for outputs that can not occur: outside the bounds, off the lattice, or decreasing.
        """
        outputs = self.levels.distinct(o)
        if outputs is None or not (outputs[1:] >= outputs[:-1]).all():
            return -math.inf
        m = self.levels.m
        single = [[self._level_log_prob(value, j) for j in range(m)] for value in outputs.tolist()]
        # Which level drew which of the sorted outputs.
        log_total = np.logaddexp.reduce(
            [sum(single[i][j] for i, j in enumerate(order)) for order in permutations(range(m))]
        )
        if self.data.lattice is not None:
            # Permutations among equal outputs are one and the same event. (In a density they are
            # not: where two values meet, the density of the sorted pair is the limit of both.)
            _, repeats = np.unique(outputs, return_counts=True)
            log_total -= sum(math.log(math.factorial(k)) for k in repeats.tolist())
        return float(log_total)

    def _draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """One ascending output, shape (m,)."""
        outputs = [self.data.draw(race(weights, rng), 1, rng)[0] for weights in self.log_weight]
        return np.sort(outputs)

    def sample(self, rng: Any = None, size: int | None = None) -> Any:
        """Draw outputs, independently given this law.

        Parameters
        ----------
        rng : None, int, SeedSequence, BitGenerator or Generator, optional
            See `default_rng`.
        size : int, optional
            Number of outputs.

        Returns
        -------
        float or ndarray of float64
            One output of q's shape, or with `size` an array of shape (size,) + q's.
        """
        rng = default_rng(rng)
        if size is None:
            return self.levels.restore(self._draw(rng))
        draws = [self._draw(rng) for _ in range(check_size(size))]
        return self.levels.restore(np.array(draws).reshape(size, self.levels.m))


def ind_exp_law(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    neighbors: str = "swap",
    resolution: float | None = None,
    dither: bool | None = None,
    counts: Any = None,
    assume_sorted: bool = False,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    dither_rng: Any = None,
) -> IndExpLaw:
    """The exact output law of `ind_exp` on this sample. Not a release: for audits and tests.

    Parameters
    ----------
    x, q, epsilon, delta, rho, bounds, neighbors, resolution, dither, counts, assume_sorted, \
nan_policy, max_contributions
        As in `ind_exp`.
    dither_rng : None, int, SeedSequence, BitGenerator or Generator, optional
        Where the one dither that the law is conditional on comes from.

    Returns
    -------
    IndExpLaw
    """
    levels = Levels(q)
    calibration = privacy.ind_exp.calibrate(
        levels,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
    )
    read = reader(x, bounds, resolution, dither, counts, assume_sorted, nan_policy)
    return IndExpLaw(read(dither_rng).intervals(), levels, calibration.rates)


def ind_exp(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    neighbors: str = "swap",
    resolution: float | None = None,
    dither: bool | None = None,
    counts: Any = None,
    assume_sorted: bool = False,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: Any = None,
    rng: Any = None,
) -> Any:
    """Release m quantiles, each by its own exponential mechanism, and sort them.

    The law is that of `dpq_fast.ind_exp`, whose docstring has every rule in full.

    Parameters
    ----------
    x : array_like of float or int, shape (N,)
        Private values in any order, in the unit of `bounds`.
    q : float or array_like of float
        Levels in [0, 1], any shape. Public.
    epsilon, delta : float
        Budget for the whole tuple. Public.
    rho : float, optional
        Zero-concentrated budget instead of `epsilon`.
    bounds : (float, float)
        Finite low < high, chosen without looking at `x`. Public.
    neighbors : {"swap", "add-remove"}
        What the budget protects: one value replaced, or one added or deleted.
    resolution : float, optional
        Spacing of the lattice of outputs, in the unit of `x`; 0 for the continuous mechanism.
    dither : bool, optional
        Whether records on the lattice are spread at random over their cells, once for all levels.
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

    Returns
    -------
    float or ndarray of float64
        In q's shape and the unit of `x`, inside `bounds`, non-decreasing in `q`.
    """
    levels = Levels(q)
    calibration = privacy.ind_exp.calibrate(
        levels,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
    )
    read = reader(x, bounds, resolution, dither, counts, assume_sorted, nan_policy)

    def law_of(dither_rng: Any) -> IndExpLaw:
        return IndExpLaw(read(dither_rng).intervals(), levels, calibration.rates)

    return release(law_of, calibration, accountant, rng)
