r"""Exact draws of `PathLaw` from a coarse one, at rates so small that near ranks hardly differ.

Weights are :math:`\exp(-c\,TV(r))` with :math:`TV(r) = \sum_{j=1}^{m+1} |r_j - r_{j-1} - n_j|`,
where r_j is the number of records below output j, r_0 = 0 and r_{m+1} = n. Outputs are put into
blocks (`Blocks`): all outputs of a block have a rank within D of the block's own one.

**Proposals** are tuples of outputs from `PathLaw` of the blocks: non-decreasing ones, with density
proportional to :math:`\exp(-c\,TV(\rho))`, rho_j the rank of the block that holds output j. Their
ranks r_j are then counted, and a proposal is **accepted** with probability

    exp(-c (TV(r) - TV(rho)) - 2 c m D).

A rank occurs in two of the terms of TV, each of which is 1-Lipschitz in it, so that
:math:`|TV(r) - TV(\rho)| \le 2 \sum_j |r_j - \rho_j| \le 2 m D`: that is a probability, and at
least exp(-4 c m D). Accepted tuples have density proportional to the product of both, which is
:math:`\exp(-c\,TV(r))` times a constant: the exact law, given the order (and so one dither).
Proposals are independent of each other, so it does not matter how many are drawn at a time.

**Cost.** With blocks of B ranks, D = B/2, about one of exp(c m B) proposals is accepted: B is
a constant over c m. There are about n c m blocks then, however small c is and whatever is tied; and
counts are all that is asked of the records.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import uniform
from dpq_fast._kernels.scan import Scan
from dpq_fast.data.blocks import Blocks
from dpq_fast.data.order import WholeOrder
from dpq_fast.laws import path
from dpq_fast.laws.path import Forward, PathLaw

# c m B. Proposals cost less than rows do: several for each draw are worth larger blocks, the
# more where rows are long: they are to have no more than so many entries.
LEAST_LOSS, MOST_LOSS = 1.5, 3.0
MANY_ENTRIES = 2**22
# Smaller blocks save too little, unless rows are long, and so do any where there are few entries.
ENOUGH_RANKS, LEAST_RANKS = 12, 3
FEW_ENTRIES = 2**17
# More blocks than this are for values that have counts of their own: their intervals are few.
MOST_BLOCKS = 2**22
# Proposals at once, of those that a draw is expected to take; where their ranks take a pass over
# the records, so many that one pass will mostly do. And most outputs of them all.
SHARE, SHARE_OF_SCANS = 0.5, 2.0
MOST_OUTPUTS = 2**18


class CoarseLaw:
    """The law of m ascending outputs, drawn from blocks of ranks.

    Parameters
    ----------
    order : WholeOrder
        The sample in order.
    q : ndarray of float64, shape (m,)
        Distinct ascending levels.
    rate : float
        Decay rate: log-weight lost per rank, c > 0.
    most : int
        B: a block holds fewer ranks than that; at least 2.
    forward : callable
        As for `PathLaw`.
    guess : int, optional
        As for `PathLaw`.
    """

    def __init__(
        self,
        order: WholeOrder,
        q: NDArray[np.float64],
        rate: float,
        most: int,
        forward: Forward = Scan.forward,
        guess: int | None = None,
    ) -> None:
        self._order = order
        self._q = q
        self._rate = rate
        self._forward = forward
        blocks = Blocks(order, most)
        self._slack = blocks.slack
        self._proposals = PathLaw(blocks, q, rate, forward, guess=guess)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """As `PathLaw.draw`."""
        accepted: list[NDArray[Any]] = []
        missing, m = size, self._q.size
        share = SHARE_OF_SCANS if self._order.scans else SHARE
        share *= math.exp(min(2.0 * self._rate * m * self._slack, 100.0))
        while missing:
            tried = max(1, math.ceil(min(missing * share, MOST_OUTPUTS / m)))
            points, rho = self._proposals.draw_ranked(rng, tried)
            kept = points[self._accepts(points, rho, rng)][:missing]
            accepted.append(kept)
            missing -= len(kept)
        if not accepted:
            return self._proposals.draw(rng, 0)
        return accepted[0] if len(accepted) == 1 else np.concatenate(accepted)

    def _accepts(
        self, points: NDArray[Any], rho: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.bool_]:
        """Which proposals are accepted."""
        ranks = self._order.fine_ranks(points.ravel()).reshape(points.shape)
        # A number may have been rounded to the border of its block.
        ranks = np.clip(ranks, rho - self._slack, rho + self._slack)
        added = (self._proposals.deviations(ranks) - self._proposals.deviations(rho)).sum(axis=1)
        log_accept = -self._rate * (added + 2.0 * self._q.size * self._slack)
        accepts: NDArray[np.bool_] = uniform.log_uniforms(len(points), rng) < log_accept
        return accepts

    def log_prob(self, outputs: NDArray[Any]) -> float:
        """As `PathLaw.log_prob`."""
        return self._exact.log_prob(outputs)

    @cached_property
    def _exact(self) -> PathLaw:
        return PathLaw(self._order, self._q, self._rate, self._forward)


def law_of(
    order: WholeOrder, q: NDArray[np.float64], rate: float, forward: Forward = Scan.forward
) -> PathLaw | CoarseLaw:
    """The law of JointExp, by blocks of ranks where they save most of its rows."""
    n, m = order.n, q.size
    if rate * m * LEAST_RANKS > MOST_LOSS or (n + 1) * m <= FEW_ENTRIES:
        return PathLaw(order, q, rate, forward)
    guess = path.first_window(order, q, rate)
    most = block_size(n, m, rate, m * min(n + 1, 2 * guess + 1))
    if most is None:
        return PathLaw(order, q, rate, forward, guess=guess)
    return CoarseLaw(order, q, rate, most, forward, guess)


def block_size(n: int, m: int, rate: float, entries: int) -> int | None:
    """B, where rows would have so many entries: the larger, the more; None if blocks do not pay."""
    loss = min(max(LEAST_LOSS, entries * rate * m / MANY_ENTRIES), MOST_LOSS)
    most = math.floor(min(loss / (rate * m), n + 2.0))
    least = ENOUGH_RANKS if entries <= MANY_ENTRIES else LEAST_RANKS
    if entries <= FEW_ENTRIES or most < least or entries / m / most > MOST_BLOCKS:
        return None
    return most if most % 2 else most - 1  # ranks of an odd number have one in the middle
