"""How wide cells are to be: what steps lose by them where paths are, and how much more elsewhere.

That decides what proposals cost (`dpq_fast.laws.joint.coarse`), and never the law.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.laws.joint.path import gap_of
from dpq_fast.laws.joint.plan import Plan

# What float64 can hold: growth is none below that. And so that spans fit into memory at any rate,
# they go up by so many steps at most.
TINY, MOST_STEPS = 1e-200, 512


class Widths(NamedTuple):
    """How wide cells and blocks are.

    Attributes
    ----------
    nats : float
        Of the narrowest cells: c B.
    growth : float
        How much wider cells are farther away: see `wider_at`.
    most : int, optional
        Outputs of a block have fewer ranks; by default as `dpq_fast.laws.joint.zones` has it.
    """

    nats: float
    growth: float
    most: int | None = None


class Spans(NamedTuple):
    """How many nats cells may have, by stretches of ranks of each level: see `csrc/coarse.h`."""

    stretch: NDArray[np.uintp]
    until: NDArray[np.int64]
    span: NDArray[np.float64]


def widths_of(n: int, q: NDArray[np.float64], rate: float, plan: Plan) -> Widths:
    """Cells by which all steps lose about `plan.loss` where paths are.

    A step between targets that are k + t cells apart, 0 <= t < 1, loses as much as a multiple of
    t^3 + (1 - t)^3: the most where they are whole cells apart, as levels evenly spaced may all be.
    """
    gap = gap_of(n, q, rate)
    loss = plan.loss * max(1.0, min(q.size / plan.few_levels, plan.more_lost))
    nats = math.sqrt(loss / (q.size * max(plan.apart, plan.crowded / gap)))
    widths = nats * np.linspace(*plan.aligned)
    part = np.diff(q) * n * rate / widths[:, np.newaxis] % 1.0
    nats = float(widths[(part**3 + (1.0 - part) ** 3).sum(axis=1).argmin()])
    return Widths(nats, min(plan.farther, plan.farther_each * gap))


def wide_of(
    n: int, q: NDArray[np.float64], rate: float, others: Widths, plan: Plan
) -> Widths | None:
    """Cells where ties that are not dithered hold several targets, and no outputs; if any will do.

    They are at least four times as wide as others.

    All ways past such targets deviate by as much, if only no step turns back, and so paths are
    anywhere. Signs of steps are hardly in doubt: a step past a gap is for one path in gap / B, with
    cells of B, and then it loses as much as a whole cell less what it goes up by: what is left over
    of the gap, but at least two blocks, of which cells are whole ones.
    """
    most = 1 if n <= plan.most_read else max(1, math.floor(plan.tied_block / rate))
    if q.size == 1 or n > plan.most_tied * most:
        return None
    gaps, nats = np.diff(q) * n * rate, plan.widest
    while nats >= max(plan.least_tied, 4.0 * others.nats):
        each = nats * np.linspace(plan.aligned[0], 1.0, 8 * plan.aligned[2])[:, np.newaxis]
        part = gaps / each % 1.0
        part[part * each < 2.0 * rate * most] = 1.0
        lost = np.log1p(each / (2.0 * gaps) * np.exp(part * each)).sum(axis=1)
        if lost.min() <= plan.tied_loss:
            return Widths(float(each[lost.argmin(), 0]), 0.0, most)
        nats /= 2.0
    return None


def wider_at(nats: Any, m: int, growth: float) -> Any:
    """How much wider cells may be so far from where paths are."""
    return np.sqrt(1.0 + growth * nats * nats / (m + nats))


def away_at(grown: NDArray[np.float64], m: int, growth: float) -> NDArray[np.float64]:
    """So far that the square of `wider_at` is above 1 by that."""
    root: NDArray[np.float64] = np.sqrt(grown * (grown + 4.0 * growth * m))
    return (grown + root) / (2.0 * max(growth, TINY))


def spans_around(
    near: tuple[NDArray[np.int64], NDArray[np.int64]], widths: Widths, rate: float, plan: Plan
) -> Spans:
    """Spans of some nats near paths, and wider by eighth roots of two farther away."""
    nats, growth, _ = widths
    nats *= plan.margin
    below, above = near
    m, steps = below.size, np.arange(0)
    if growth > TINY:
        most = 8.0 * math.log2(max(1.0, plan.widest / nats))
        steps = np.arange(1, min(math.ceil(most), MOST_STEPS) + 1)
    nats_away = away_at(np.exp2(steps / 4.0) - 1.0, m, growth)
    with np.errstate(over="ignore"):
        away = np.ceil(np.minimum(nats_away / rate, 2.0**61)).astype(np.int64)
    last = np.full((m, 1), np.iinfo(np.int64).max)
    until = np.hstack((below[:, np.newaxis] - away[::-1], above[:, np.newaxis] + away - 1, last))
    wider = np.exp2((steps + 0.5) / 8.0)  # as in the middle of a step
    wider = np.concatenate((wider[::-1], [1.0], wider))
    stretch = np.arange(0, until.size + 1, wider.size, dtype=np.uintp)
    return Spans(stretch, until.ravel(), np.tile(nats * wider, m))
