"""Public samples of a guess: order statistics near the levels, others in lumps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast.planning.guesses import Guess

# Public samples of the guess, at least, and releases of all of them together.
SAMPLES, RELEASES, MOST_RELEASES = 100, 1_000, 1_000_000
# Public samples of each shape, where there is no guess: what is said is the most over all shapes.
SAMPLES_OF_SHAPE = 25
# Releases of each sample, where all samples together have at most `MOST_ENTRIES` entries.
DRAWS, MOST_ENTRIES = 10, 3_000_000
# A sample has each record within `NEAR` ranks of a level. Beyond, those in one place are at most
# the share `COARSE` of their distance from it.
NEAR, COARSE = 32, 1.0 / 32.0


class PublicSample:
    """A public sample of n records: those at some ranks, and others in lumps between them.

    Order statistics of uniform variables are partial sums of exponential ones, divided by all of
    them: so those at some ranks are drawn without the others, by gamma variables. Where the guess
    is public records, the fewer are taken to be some of the more: shares of both differ by as much
    less, and as many records as there are public ones are these.

    Parameters
    ----------
    guess : Guess
    n : int
    places : ndarray of int64
        The ranks, ascending from 1 to n.
    rng : Generator

    Attributes
    ----------
    values : ndarray of float64
        Ascending.
    weights : ndarray of int64
        Records in each place.
    """

    def __init__(
        self, guess: Guess, n: int, places: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        steps = np.diff(places, prepend=0)
        sums = np.cumsum(rng.standard_gamma(steps.astype(np.float64)))
        u = sums / (sums[-1] + rng.standard_exponential())
        if guess.records is not None:
            apart = math.sqrt(1.0 - min(n, guess.records) / max(n, guess.records))
            u = apart * u + (1.0 - apart) * places / (n + 1.0)
        self._u = np.clip(u, 2.0**-1000, 1.0 - 2.0**-53)
        self._places = places
        lumps = np.flatnonzero(steps > 1)
        middle = (self._u[lumps - 1] + self._u[lumps]) / 2.0
        self.values = guess.values(np.insert(self._u, lumps, middle))
        self.weights = np.insert(np.ones_like(places), lumps, steps[lumps] - 1)
        self.n = n

    def counts_below(self, share: NDArray[np.float64]) -> NDArray[np.int64]:
        """Number of records below the guess's quantiles at these levels."""
        at = np.searchsorted(self._u, share)
        below = np.concatenate(([0], self._places))[at]
        upper = np.append(self._u, 1.0)[at]
        lower = np.concatenate(([0.0], self._u))[at]
        lump = np.append(self._places, self.n + 1)[at] - 1 - below
        inside = (share - lower) / np.maximum(upper - lower, 1e-300)
        found: NDArray[np.int64] = below + np.rint(np.clip(inside, 0.0, 1.0) * lump).astype(
            np.int64
        )
        return found


def places_of(n: int, targets: NDArray[np.float64]) -> NDArray[np.int64]:
    """The ranks that a sample has one by one: those around each target, up to halfway to others."""
    growth = math.log1p(COARSE)
    far = NEAR * np.exp(growth * np.arange(1.0, 2.0 + math.log(max(n / NEAR, 1.0)) / growth))
    away = np.concatenate((np.arange(NEAR), np.minimum(np.ceil(far), n))).astype(np.int64)
    at = np.clip(np.rint(targets).astype(np.int64), 1, n)
    middle = at[:-1] + np.diff(at) // 2
    low, high = np.append(1, middle)[:, None], np.append(middle, n)[:, None]
    around = at[:, None] + np.concatenate((-away[:0:-1], away))
    places: NDArray[np.int64] = np.unique(np.clip(around, low, high))
    return places


def ordered_shares(
    values: NDArray[Any], weights: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Uniform numbers below 1, ascending among equal values: order statistics in each run.

    Of several records in one place, the middle of what they reach over.
    """
    steps = rng.standard_gamma(weights.astype(np.float64))
    sums = np.cumsum(steps)
    (first,) = np.nonzero(np.append(True, values[1:] != values[:-1]))
    entries = np.diff(first, append=values.size)
    before = sums[first] - steps[first]
    extent = np.add.reduceat(steps, first) + rng.standard_exponential(first.size)
    reached = sums - steps * np.where(weights > 1, 0.5, 0.0) - np.repeat(before, entries)
    return np.clip(reached / np.repeat(extent, entries), 0.0, 1.0 - 2.0**-53)


def numbers_of(releases: int, entries: int, guesses: int = 1) -> tuple[int, int]:
    """Number of samples of each guess, and of releases of each sample of `entries` entries."""
    samples = SAMPLES_OF_SHAPE
    if guesses == 1:
        samples = max(SAMPLES, min(releases // DRAWS, MOST_ENTRIES // entries))
    return samples, -(-releases // samples)


def public_rng(*seed: int) -> np.random.Generator:
    """A generator for public samples and simulated noise, none of which is released."""
    return np.random.Generator(np.random.PCG64([20_261_122, *seed]))
