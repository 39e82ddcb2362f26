"""AboveThreshold, [Dur23] Algorithm 1: query after query, each with its own noise.

[Dur23] is D. Durfee, "Unbounded Differentially Private Quantile and Maximum Estimation".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad

from dpq_fast import _checks, privacy
from dpq_fast.privacy.above_threshold import Calibration
from dpq_fast.reference._calls import default_rng, with_options
from dpq_fast.reference.race import uniform

# Beyond, `quad` could miss what is left of a power.
MOST_POWER = 8.0


def draw_noise(noise: str, rate: float, rng: np.random.Generator) -> float:
    """One draw of Noise(1/rate), with full relative precision near 0 and in the tails."""
    # The half of the exponential variate first: beyond the median it starts anew.
    if rng.integers(2):
        drawn = math.log(2.0) - math.log(uniform(rng))
    else:
        drawn = -math.log1p(-uniform(rng) / 2.0)
    if noise == "gumbel":
        drawn = -math.log(drawn)
    elif noise == "laplace" and rng.integers(2):
        drawn = -drawn
    return drawn / rate


def distribution(noise: str, rate: float, z: float) -> tuple[float, float]:
    """P[Noise(1/rate) < z] and the rest to 1, of exponential or Laplace noise."""
    x = rate * z
    if noise == "exponential":
        return (-math.expm1(-x), math.exp(-x)) if x > 0.0 else (0.0, 1.0)
    half = math.exp(-abs(x)) / 2.0
    return (half, 1.0 - half) if x < 0.0 else (1.0 - half, half)


class AboveThresholdLaw:
    """The exact law of the halt.

    Parameters
    ----------
    gaps : list of float
        Queries minus threshold.
    rate1, rate2 : float
        Rates of the noise of the threshold and of each query.
    noise : {"exponential", "laplace", "gumbel"}
    """

    def __init__(self, gaps: list[float], rate1: float, rate2: float, noise: str) -> None:
        self.gaps = [-math.inf if math.isnan(gap) else gap for gap in gaps]
        self.rate1 = rate1
        self.rate2 = rate2
        self.noise = noise

    def log_prob(self, k: int | None) -> float:
        """Log-probability to halt at query k, counted from 0; None for at none."""
        if k is not None and not 0 <= k < len(self.gaps):
            return -math.inf
        if self.noise == "gumbel":
            return self._lemma(k)
        prob = self._integral(k)
        return math.log(prob) if prob > 0.0 else -math.inf

    def _lemma(self, k: int | None) -> float:
        """[Dur23] Lemma 3.3, with numerators and denominators divided by exp(eps T / Delta)."""
        log_w = [self.rate2 * gap for gap in self.gaps]
        # ln of 1 + sum of w_i: over all, over i <= k, over i < k
        if k is None:
            return -float(np.logaddexp.reduce([0.0, *log_w]))
        if log_w[k] == -math.inf or math.inf in log_w[:k]:
            return -math.inf
        to_k, before_k = (np.logaddexp.reduce([0.0, *log_w[:end]]) for end in (k + 1, k))
        return float((0.0 if log_w[k] == math.inf else log_w[k] - to_k) - before_k)

    def _integral(self, k: int | None) -> float:
        """Probability to halt at k, over the threshold's noise z.

        The integral over z > 0 in terms of v = exp(-rate1 z), uniform on (0, 1); for Laplace half
        of it, and half of that over z < 0.
        """
        signs = (1.0,) if self.noise == "exponential" else (1.0, -1.0)
        total = 0.0
        for sign in signs:
            bends = {math.exp(-max(0.0, sign * self.rate1 * gap)) for gap in self.gaps}
            ends = sorted({0.0, 1.0} | bends)
            for low, high in pairwise(ends):
                total += self._between(low, high, sign, k)
        return total / len(signs)

    def _between(self, low: float, high: float, sign: float, k: int | None) -> float:
        """The part of the integral that lies between two bends.

        In terms of a root of v, of which the probabilities of queries are polynomials: `quad` loses
        digits to roots at 0.
        """
        power = min(max(1.0, self.rate1 / self.rate2), MOST_POWER)

        def given(root: float) -> float:
            z = -sign * power * math.log(root) / self.rate1
            inside: float = power * root ** (power - 1.0) * self._given(z, k)
            return inside

        low, high = low ** (1.0 / power), high ** (1.0 / power)
        if high - low < 1e-9 * high:  # too short for `quad`, and straight
            return (high - low) * given((low + high) / 2.0)
        integral: float = quad(given, low, high, epsabs=0.0, epsrel=1e-12, limit=500)[0]
        return integral

    def _given(self, z: float, k: int | None) -> float:
        """Probability to halt at k, given the threshold's noise z."""
        prob = 1.0
        for gap in self.gaps[:k]:
            prob *= distribution(self.noise, self.rate2, z - gap)[0]
        if k is not None:
            prob *= distribution(self.noise, self.rate2, z - self.gaps[k])[1]
        return prob

    def sample(self, rng: Any = None, size: int | None = None) -> Any:
        """Draw outputs: an int or None, or with `size` an array of int64, in which -1 is None."""
        rng = default_rng(rng)
        draws = [
            next(halts_of(self.gaps, self.rate1, self.rate2, self.noise, rng), None)
            for _ in range(_checks.check_size(size))
        ]
        if size is None:
            return draws[0]
        return np.array([-1 if k is None else k for k in draws], dtype=np.int64)


def above_threshold_law(
    queries: Any,
    threshold: float,
    *,
    epsilon1: float,
    epsilon2: float,
    sensitivity: float = 1.0,
    noise: str = "exponential",
) -> AboveThresholdLaw:
    """The exact output law of `above_threshold` on these queries. Not a release: for audits.

    Parameters
    ----------
    queries, threshold, epsilon1, epsilon2, sensitivity, noise
        As in `above_threshold`; no iterator.

    Returns
    -------
    AboveThresholdLaw
    """
    calibration = privacy.above_threshold.calibrate(
        epsilon1=epsilon1, epsilon2=epsilon2, sensitivity=sensitivity, noise=noise
    )
    gaps = gaps_of(queries, check_threshold(threshold))
    return AboveThresholdLaw(gaps, *calibration.rates, noise)


@with_options(privacy.above_threshold.calibrate)
def above_threshold(
    queries: Any,
    threshold: float,
    *,
    accountant: Any = None,
    rng: Any = None,
    **promise: Any,
) -> int | None:
    """Release the index of the first query that reaches a threshold, both with noise.

    The law is that of `dpq_fast.above_threshold`, whose docstring has every rule in full.

    Parameters
    ----------
    queries : array_like of real numbers, shape (n,), or iterator of real numbers
        Private values.
    threshold : float
        Public.
    epsilon1, epsilon2 : float
        Budgets of the threshold's noise and of the queries' noise.
    sensitivity : float
        Most by which one query differs between neighbors.
    monotonic : bool
        A promise about the queries; the noise does not depend on it.
    noise : {"exponential", "laplace", "gumbel"}
        Law of both noises.
    accountant : Accountant, optional
        Charged with the release.
    neighbors : {"swap", "add-remove"}
        The relation of the promises.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        See `default_rng`.

    Returns
    -------
    int or None
        Index of the query that halts, counted from 0; None if the queries end before.
    """
    calibration = privacy.above_threshold.calibrate(**promise)
    return next(_release(queries, threshold, calibration, accountant, rng, "above_threshold"), None)


@with_options(privacy.above_threshold.calibrate)
def sparse_vector(
    queries: Any,
    threshold: float,
    *,
    halts: int,
    accountant: Any = None,
    rng: Any = None,
    **promise: Any,
) -> NDArray[np.int64]:
    """Release the indices of the first several queries that reach a threshold.

    Parameters
    ----------
    halts : int
        Most halts to release.
    queries, threshold, epsilon1, epsilon2, sensitivity, monotonic, noise, accountant, neighbors, \
rng
        As in `above_threshold`.

    Returns
    -------
    ndarray of int64
        Ascending.
    """
    calibration = privacy.above_threshold.calibrate_halts(halts=halts, **promise)
    steps = _release(queries, threshold, calibration, accountant, rng, "sparse_vector")
    return np.fromiter(islice(steps, halts), dtype=np.int64)


def check_threshold(threshold: Any) -> float:
    """The public threshold: a finite real number."""
    number = _checks._real("threshold", threshold)
    if not math.isfinite(number):
        raise ValueError(f"threshold must be finite, got {number}")
    return number


def check_queries(queries: NDArray[Any]) -> None:
    """Refuse an array that is no column of real numbers, by its form alone."""
    if queries.ndim != 1:
        raise ValueError(
            f"queries must be one-dimensional or an iterator, got {queries.ndim} dimensions"
        )
    if queries.dtype.kind not in "iuf":
        raise TypeError(f"queries must be real numbers, got dtype {queries.dtype}")


def gaps_of(queries: Any, threshold: float) -> list[float]:
    """All queries minus the threshold."""
    if not isinstance(queries, (list, tuple)):
        queries = np.asarray(queries)
        check_queries(queries)
        queries = _checks.real_array("queries", queries).tolist()
    return [gap_of(query, threshold) for query in queries]


def gap_of(query: Any, threshold: float) -> float:
    """One query minus the threshold. No message holds its value, which is private."""
    if isinstance(query, bool) or not isinstance(query, Real):
        raise TypeError(f"queries must be real numbers, got an item of {type(query).__name__}")
    return _checks._real("queries", query) - threshold


def _release(
    queries: Any, threshold: Any, calibration: Calibration, accountant: Any, rng: Any, name: str
) -> Iterator[int]:
    """The halts of one release, checked and charged, to be read one by one."""
    threshold = check_threshold(threshold)
    if isinstance(queries, np.ndarray):
        check_queries(queries)
    rng = default_rng(rng)
    privacy.charge(accountant, calibration, name)
    gaps: Iterable[float]
    if isinstance(queries, Iterator):
        gaps = (gap_of(query, threshold) for query in queries)
    else:
        gaps = gaps_of(queries, threshold)
    return halts_of(gaps, *calibration.rates, calibration.noise.name, rng)


def halts_of(
    gaps: Iterable[float], rate1: float, rate2: float, noise: str, rng: np.random.Generator
) -> Iterator[int]:
    """[Dur23] Algorithm 1, again and again from the query after the last halt."""
    noisy_threshold = draw_noise(noise, rate1, rng)
    for k, gap in enumerate(gaps):
        if gap + draw_noise(noise, rate2, rng) >= noisy_threshold:
            yield k
            noisy_threshold = draw_noise(noise, rate1, rng)
