"""Draw an index from log-weights by racing, [GJK21] Appendix C after [MG20]."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def uniform(rng: np.random.Generator) -> float:
    """One draw from (0, 1), with 53 significant bits however close to 0 it falls.

    Every real number between two neighboring float64 counts toward the lower one: the number of
    leading zero bits of an endless random bit string is the exponent, 52 more bits the mantissa.
    Takes two 64-bit words; one more with probability 2^-64.
    """
    zeros = 0
    word = _word(rng)
    while word == 0:
        zeros += 64
        word = _word(rng)
    zeros += 64 - word.bit_length()
    mantissa = _word(rng) >> 12
    return math.ldexp(2**52 + mantissa, -53 - zeros)


def exponential(rng: np.random.Generator) -> float:
    """One draw from the exponential distribution of mean 1, with full relative precision at 0."""
    return -math.log1p(-uniform(rng))


def race(log_weight: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Index into the flattened `log_weight`, with probability proportional to its exp().

    At least one weight must be finite; -inf means "never" and takes no random bits.
    """
    # Differs from [GJK21] Lemma 11: ln(1/U) is drawn as an exponential E. The race is won by the
    # smallest E, and ln(1/U) of a 53-bit U has no value in (0, 2^-53): weights below 2^-53 of
    # the largest would never win.
    best, winner = math.inf, -1
    for k, log_p in enumerate(log_weight.ravel()):
        if log_p == -math.inf:
            continue
        arrival = math.log(exponential(rng)) - log_p
        if arrival < best:
            best, winner = arrival, k
    return winner


def _word(rng: np.random.Generator) -> int:
    """64 random bits."""
    return int(rng.integers(0, 2**64, dtype=np.uint64))
