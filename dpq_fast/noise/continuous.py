"""Continuous noise for outputs on a lattice, with many more digits than the lattice has.

A float64 number of the size of 2^44 lattice points has a few bits left for what is between two of
them: the same few places for every record, so that the least likely points tell which record the
noise was added to. These variates have 40 decimal digits, and come from 128 random bits or more
after the leading one. Rounded to a lattice of up to 2^53 points, they have the law of real numbers
but for a relative error below 1e-20.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext

import numpy as np

# Bits of a variate after its leading one, at least.
BITS = 128
# A generator stuck at zero must not hang the caller.
MAX_ZERO_BITS = 65536
# Factors beyond exp(-FARTHEST) and exp(FARTHEST) are held there: nothing in float64 is so large.
FARTHEST = 2000
# Below this, -ln(1 - x) is x + x^2/2 but for 26 digits, which 1 - x would not keep.
SMALL = Decimal("1e-13")


@contextmanager
def digits() -> Iterator[None]:
    """40 digits and any exponent, whatever the caller's context is: for all that is below."""
    with localcontext(Context(prec=40, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX)):
        yield


def _bits(rng: np.random.Generator) -> int:
    return int.from_bytes(rng.bytes(BITS // 8), "little")


def _uniform(rng: np.random.Generator) -> Decimal:
    """Uniform on (0, 1), of full relative precision near 0."""
    word, length = _bits(rng), BITS
    while word < 1 << BITS and length < MAX_ZERO_BITS:
        word, length = word << BITS | _bits(rng), length + BITS
    return Decimal(word or 1) / (1 << length)


def laplace(rng: np.random.Generator) -> Decimal:
    """Laplace noise of scale 1, with 25 digits or more near 0 and in both tails."""
    signs = rng.bytes(1)[0]
    half = _uniform(rng) / 2
    # |X| = -ln U: U = V/2 in the one half, 1 - U = V/2 in the other
    if signs & 1:
        size = -half.ln()
    else:
        size = half * (1 + half / 2) if half < SMALL else -(1 - half).ln()
    return -size if signs & 2 else size


def normal(rng: np.random.Generator) -> Decimal:
    """Standard normal noise: the radius of Box and Muller, and a direction out of a disk."""
    radius = (-2 * _uniform(rng).ln()).sqrt()
    while True:
        # odd numbers: no coordinate is 0, and every sign has the same probability
        across, along = ((Decimal(2 * _bits(rng) + 1) / (1 << BITS)) - 1 for _ in range(2))
        square = across * across + along * along
        if square < 1:
            return radius * across / square.sqrt()


def exp(x: Decimal) -> Decimal:
    """exp(x), for x held within reach."""
    return min(max(x, Decimal(-FARTHEST)), Decimal(FARTHEST)).exp()


def nearest(x: Decimal) -> int:
    """The integer nearest to x; ties to the even one."""
    return int(x.to_integral_value())
