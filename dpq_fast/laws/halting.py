r"""The exact law of where a known stream of queries halts.

AboveThreshold [Dur23] adds noise :math:`\nu` of rate A to the threshold T, and noise
:math:`\nu_i` of rate B to each query; it halts at the first i with
:math:`f_i + \nu_i \ge T + \nu`. With F the distribution function of the queries' noise and p the
density of the threshold's, the probability to halt at k (counted from 0) is

.. math:: \int p(z) \Bigl(\prod_{i<k} F(z - d_i)\Bigr) (1 - F(z - d_k))\, dz, \quad d_i = f_i - T.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._kernels import halting
from dpq_fast.noise.threshold import IntegratedNoise, ThresholdNoise

# Gauss-Legendre points of a panel. See `_panels` for why so few are enough.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_DROP = 50.0  # e^-50 of an integral is left out
_SMALLEST = 750.0  # probabilities are to be right down to e^-700
_BLOCK = 2**20  # numbers in a table of the integration


class HaltingLaw:
    """Where a stream of queries halts, as a law: draws and exact log-probabilities.

    Parameters
    ----------
    gaps : ndarray of float64, shape (runs,)
        Query minus threshold, of each run of equal queries. inf halts for sure; -inf and NaN
        never.
    lengths : ndarray of int64, shape (runs,)
        Queries in each run, 0 to 2^53, in total below 2^63 (not checked).
    rate1, rate2 : float
        Rates of the noise of the threshold and of each query, positive.
    noise : ThresholdNoise
        Where it asks for equal rates, these are equal (not checked).
    """

    def __init__(
        self,
        gaps: NDArray[np.float64],
        lengths: NDArray[np.int64],
        rate1: float,
        rate2: float,
        noise: ThresholdNoise,
    ) -> None:
        self._gaps = np.ascontiguousarray(gaps)
        self._lengths = np.ascontiguousarray(lengths)
        self._rate1 = rate1
        self._rate2 = rate2
        self._noise = noise

    def draw(self, rng: np.random.Generator, size: int | None = None) -> Any:
        """Step of the halt, counted from 0, or -1 for never; with `size` an int64 array."""
        drawn = halting.draw(
            self._noise.name,
            self._rate1,
            self._rate2,
            self._gaps,
            self._lengths,
            _checks.check_size(size),
            rng,
        )
        return int(drawn[0]) if size is None else drawn

    def log_prob(self, k: int) -> float:
        """Log-probability to halt at step k >= 0; -inf beyond the end."""
        return float(self.log_probs(np.array([k]))[0])

    def log_never(self) -> float:
        """Log-probability to pass all queries."""
        return float(self._log_probs(np.array([self._lengths.size]), np.array([0]))[0])

    def log_probs(self, steps: Any) -> NDArray[np.float64]:
        """Log-probabilities to halt at each of `steps`, int64 of any shape.

        Right to 1e-9 down to e^-700; beyond, only that they are smaller.
        """
        steps = np.asarray(steps, dtype=np.int64)
        ends = np.cumsum(self._lengths)
        run = np.searchsorted(ends, steps.ravel(), side="right")
        found = np.full(steps.size, -np.inf)
        inside = (steps.ravel() >= 0) & (run < ends.size)
        run = run[inside]
        offset = steps.ravel()[inside] - (ends - self._lengths)[run]
        found[inside] = self._log_probs(run, offset)
        shaped: NDArray[np.float64] = found.reshape(steps.shape)
        return shaped

    @cached_property
    def _runs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gaps that are numbers, and lengths."""
        gaps = np.where(np.isnan(self._gaps), -np.inf, self._gaps)
        return gaps, self._lengths.astype(np.float64)

    @cached_property
    def _mesh(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return _mesh(*self._runs, self._rate1, self._rate2, self._noise)

    @np.errstate(under="ignore")  # of terms far below others
    def _log_probs(self, run: NDArray[np.int64], offset: NDArray[np.int64]) -> NDArray[np.float64]:
        """Log-probabilities to halt in `run` after passing `offset` queries of it.

        One run more than there are means never.
        """
        if run.size == 0:
            return np.empty(0)
        gaps, lengths = self._runs
        if not isinstance(self._noise, IntegratedNoise):
            return self._closed_form(gaps, lengths, run, offset)
        nodes, log_weights = self._mesh
        log_total = np.full(run.size, -np.inf)
        nodes_at_once = max(1, _BLOCK // max(gaps.size, 1))
        for start in range(0, nodes.size, nodes_at_once):
            z = nodes[start : start + nodes_at_once]
            log_p = self._noise.log_density(self._rate1, z) + log_weights[start : start + z.size]
            log_f, log_not_f = self._noise.log_distribution(self._rate2, z - gaps[:, None])
            passed = np.cumsum(_times(lengths[:, None], log_f), axis=0)
            passed = np.concatenate([np.zeros((1, z.size)), passed])
            # never: one run more, which halts for sure
            log_f = np.concatenate([log_f, np.zeros((1, z.size))])
            log_not_f = np.concatenate([log_not_f, np.zeros((1, z.size))])
            steps_at_once = max(1, _BLOCK // z.size)
            for first in range(0, run.size, steps_at_once):
                part = slice(first, first + steps_at_once)
                r = run[part]
                log_terms = passed[r] + _times(offset[part, None], log_f[r]) + log_not_f[r] + log_p
                log_total[part] = np.logaddexp(log_total[part], _log_sum(log_terms))
        return log_total

    def _closed_form(
        self,
        gaps: NDArray[np.float64],
        lengths: NDArray[np.float64],
        run: NDArray[np.int64],
        offset: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """[Dur23] Lemma 3.3: halts at k with probability w_k / ((1 + W_{k-1}) (1 + W_k)).

        w_i = exp(rate d_i), and W_k is their sum up to k: P[not halted by k] = 1/(1 + W_k).
        """
        log_w = self._rate2 * gaps
        through = np.logaddexp.accumulate(np.append(0.0, _log_times(lengths, log_w)))
        log_w = np.append(log_w, np.inf)[run]  # never: one run more, which halts for sure
        # ln(1 + W_{k-1}), and 1 + W_k = (1 + W_{k-1}) + w_k
        before = np.logaddexp(through[run], _log_times(offset, log_w))
        with np.errstate(invalid="ignore"):
            found = -before - np.logaddexp(before - log_w, 0.0)
        return np.where(before == np.inf, -np.inf, found)


def _mesh(
    gaps: NDArray[np.float64],
    lengths: NDArray[np.float64],
    A: float,
    B: float,
    noise: ThresholdNoise,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Nodes and log-weights that integrate the probability of every step.

    Every factor of an integrand is log-concave, so it has one mode and is steeper the farther from
    it. At a distance x to the right of all gaps the logarithms of the factors F rise by at most
    :math:`\sum L\, B / (e^{Bx} - 1)` per unit, L the lengths. So the mode is not beyond
    :math:`x_0 = \ln(1 + \sum L\, B/A) / B`, and what lies :math:`D/A + \sqrt{2D/(AB)}` farther
    is below :math:`e^{-D}` of the whole.

    Panels of width 2/(A + B) resolve what happens near a gap: each factor is analytic on a scale
    of 1/B, and no integrand is steeper than A + B around its mode. Farther off the widths double,
    up to the scale on which integrands bend there: 1/A where the factors F no longer rise, and
    :math:`1/\sqrt{B(A + B)}` where they do, for B < A.
    """
    x0 = math.log1p(lengths.sum() * (B / A)) / B
    end = x0 + _DROP / A + math.sqrt(2.0 * _DROP / A / B)
    near = _DROP / (A + B)
    if B >= A:
        near, widest = near + x0, 2.0 / A
    else:
        widest = 2.0 / math.sqrt(B) / math.sqrt(A + B)
    bends = gaps[np.isfinite(gaps) & (lengths > 0.0)]
    # rays: from where the panels go, and how far; to the left if negative
    if noise.one_sided:
        # F is 0 up to its gap: what counts of an integrand begins at the largest gap before it
        origins = np.unique(np.append(bends[bends > 0.0], 0.0))
        spans = np.minimum(np.diff(origins, append=np.inf), end)
    else:
        left = max(bends.min(initial=0.0), -_SMALLEST / A) - _DROP / A
        right = min(bends.max(initial=0.0), _SMALLEST / A) + end
        bends = np.unique(np.append(bends[(bends > left) & (bends < right)], 0.0))
        half = np.diff(bends) / 2.0
        origins = np.concatenate([bends, bends])
        spans = np.concatenate([half, [right - bends[-1]], [left - bends[0]], -half])
    edges, width = [0.0], 2.0 / (A + B)
    while edges[-1] < np.abs(spans).max():
        edges.append(edges[-1] + width)
        if edges[-1] > near:
            width = min(2.0 * width, widest)
    offsets = np.array(edges)
    nodes, weights = [], []
    for origin, span in zip(origins.tolist(), spans.tolist(), strict=True):
        cuts = np.append(offsets[offsets < abs(span)], abs(span))
        half = np.diff(cuts)[:, None] / 2.0
        nodes.append(origin + math.copysign(1.0, span) * (cuts[:-1, None] + half * (1.0 + _NODES)))
        weights.append(half * _WEIGHTS)
    return np.concatenate(nodes, axis=None), np.log(np.concatenate(weights, axis=None))


def _times(count: Any, log_f: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln of f to the power `count`; 0^0 is 1."""
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, count * log_f, 0.0)


def _log_times(count: Any, log_w: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln of w `count` times; none of infinity is nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(count > 0, np.log(count) + log_w, -np.inf)


def _log_sum(log_terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln of the sums of the rows; -inf for rows of -inf."""
    largest = log_terms.max(axis=1)
    largest[largest == -np.inf] = 0.0
    with np.errstate(divide="ignore"):
        sums: NDArray[np.float64] = largest + np.log(
            np.exp(log_terms - largest[:, None]).sum(axis=1)
        )
        return sums
