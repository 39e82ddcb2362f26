"""How wide cells are to be: what steps lose by them where paths are, and how much more elsewhere.

That decides what proposals cost (`dpq_fast.laws.coarse`), and never the law.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast.laws.passing import ALIGNED, best_aligned
from dpq_fast.laws.path import MOST_LEVELS, gap_of

# What all steps may lose, in nats; and more for each nat that a path pays to be farther away, but
# less where targets are so close that several outputs are likely to share a cell: by nats between.
LOSS, FARTHER, FARTHER_EACH = 2.5, 1.0, 0.12
# More where levels are many, whose rows are long, up to `MOST_LEVELS`; and cells grow as if it was
# more.
FEW_LEVELS, LEAST_LOSS = 256, 12.0
# What a step loses, per squared nat of a cell, as measured: where targets are apart, and where they
# are crowded.
APART, CROWDED = 0.16, 0.06
# Where bounds say what paths weigh that pass some ranks, cells are the narrowest where that is so
# many nats less than the most, or fewer. Elsewhere their squares grow by a share of each nat more:
# the second number over what all levels lose, the third for each of `FEW_LEVELS`.
LIKELY, PASSED, LOSS_PASSED = 3.0, 2.2, 3.0
# Where windows are of more nats than that for each level, over sqrt(m), ties let paths go elsewhere
# at all levels for what that costs once. What all of these lose is no more than that, then: else
# paths would be drawn there.
ELSEWHERE, PASSED_ELSEWHERE = 27.0, 1.0
# Cells of fewer ranks count as single ones; levels are very many from so many on.
LEAST_RANKS, VERY_MANY_LEVELS = 2.5, 512
# No cell of several leaves has so many nats.
WIDEST = 64.0
# Spans go up by so many steps at most, and only if growth is more than that.
MOST_STEPS, TINY = 512, 1e-200
# Where ties send paths anywhere, wide cells are of that many nats at most, and of so many at least,
# where signs in doubt would lose more nats than that; they are aligned by so many widths. They are
# leaves, no two of which make up a cell, and so many times as wide as the narrowest; there are none
# where all of these would be no more than that, nor where they would be more than that.
WIDEST_FREE, LEAST_FREE, FREE_LOSS, FREE_WIDTHS = 64.0, 8.0, 4.0, 512
LEAST_WIDE, FEW_CELLS, MOST_WIDE = 4.0, 2**18, 10 * 2**20
# Their blocks have so many nats, as few bends lose any, unless ranks are not many: so many may have
# blocks of a record each. Not more blocks than that.
FREE_BLOCK, MANY_RANKS, MOST_FREE_BLOCKS = 1.0, 2**20, 2**22


class Widths(NamedTuple):
    """How wide cells and blocks are.

    Attributes
    ----------
    nats : float
        Of the narrowest cells: c B.
    growth : float
        How much wider cells are farther away: see `csrc/coarse.h`.
    most : int, optional
        Outputs of a block have fewer ranks; by default as `dpq_fast.laws.zones` has it.
    """

    nats: float
    growth: float
    most: int | None = None


class Spans(NamedTuple):
    """How many nats cells may have, by stretches of ranks of each level: see `csrc/coarse.h`."""

    stretch: NDArray[np.uintp]
    until: NDArray[np.int64]
    span: NDArray[np.float64]


def narrowest(n: int, q: NDArray[np.float64], rate: float, loss: float = LOSS) -> float:
    """c B: how wide the narrowest cells are to be, in nats."""
    step = max(APART, CROWDED / gap_of(n, q, rate))
    return math.sqrt(loss_of(q.size, loss) / (q.size * step))


def aligned(n: int, q: NDArray[np.float64], rate: float, loss: float = LOSS) -> float:
    """`narrowest`, but about so that targets are some cells and a half apart, if they can be."""
    nats = narrowest(n, q, rate, loss)
    if q.size == 1:
        return nats
    return best_aligned(np.diff(q) * n * rate, nats * np.linspace(*ALIGNED))


def wide_of(n: int, q: NDArray[np.float64], rate: float, ranks: float) -> list[Widths]:
    """Widths where ties send paths anywhere, from the widest on.

    None if all rows together, of so many ranks, have few cells anyway, or too many. A step is in
    doubt for one path in gap / B, and then it loses as much as a whole cell less what it goes up
    by: what is left over of the gap, but at least two blocks, of which cells are whole ones.
    """
    nats, least, found = WIDEST_FREE, narrowest(n, q, rate), []
    most = 1 if n <= MANY_RANKS else max(1, math.floor(FREE_BLOCK / rate))
    if q.size == 1 or rate * ranks < FEW_CELLS * least or n > MOST_FREE_BLOCKS * most:
        return []
    least = max(LEAST_WIDE * least, rate * ranks / MOST_WIDE, LEAST_FREE)
    gaps = np.diff(q) * n * rate
    while nats >= least:
        widths = nats * np.linspace(ALIGNED[0], 1.0, FREE_WIDTHS)
        each = widths[:, np.newaxis]
        part = gaps / each % 1.0
        part[part * each < 2.0 * rate * most] = 1.0
        lost = np.log1p(each / (2.0 * gaps) * np.exp(part * each)).sum(axis=1)
        if lost.min() <= FREE_LOSS:
            found.append(Widths(float(widths[lost.argmin()]), 0.0, most))
        nats /= 2.0
    return found


def growth_of(n: int, q: NDArray[np.float64], rate: float) -> float:
    """How much wider cells may be farther away: see `csrc/coarse.h`."""
    return _farther(n, q, rate) / max(loss_of(q.size), LEAST_LOSS)


def loss_of(m: int, loss: float = LOSS) -> float:
    """What all steps may lose where paths are, in nats."""
    return loss * max(1.0, min(m, MOST_LEVELS) / FEW_LEVELS)


def wider_at(nats: Any, m: int, growth: float) -> Any:
    """How much wider cells may be so far from where paths are."""
    return np.sqrt(1.0 + growth * nats * nats / (m + nats))


def away_at(grown: NDArray[np.float64], m: int, growth: float) -> NDArray[np.float64]:
    """So far that the square of `wider_at` is above 1 by that."""
    root: NDArray[np.float64] = np.sqrt(grown * (grown + 4.0 * growth * m))
    return (grown + root) / (2.0 * max(growth, TINY))


def growth_by(n: int, q: NDArray[np.float64], rate: float, nats: float) -> float:
    """How much the square of `wider_by` grows with each nat lost.

    Windows of all levels have so many nats together.
    """
    m = q.size
    passed = PASSED if nats <= ELSEWHERE * m**1.5 else PASSED_ELSEWHERE
    return passed * _farther(n, q, rate) / loss_of(m, LOSS_PASSED)


def _farther(n: int, q: NDArray[np.float64], rate: float) -> float:
    """What all steps may lose more for each nat that a path pays to be farther away."""
    return min(FARTHER, FARTHER_EACH * gap_of(n, q, rate))


def wider_by(lost: NDArray[np.float64], growth: float) -> NDArray[np.float64]:
    """How much wider cells may be where paths weigh so many nats less."""
    wider: NDArray[np.float64] = np.sqrt(1.0 + growth * np.maximum(lost - LIKELY, 0.0))
    return wider


def spans_around(
    near: tuple[NDArray[np.int64], NDArray[np.int64]],
    nats: float,
    growth: float,
    rate: float,
    widest: float,
) -> Spans:
    """Spans of some nats near paths, and wider by eighth roots of two farther away."""
    below, above = near
    m, steps = below.size, np.arange(0)
    if growth > TINY:
        most = 8.0 * math.log2(max(1.0, min(widest, WIDEST) / nats))
        steps = np.arange(1, min(math.ceil(most), MOST_STEPS) + 1)
    nats_away = away_at(np.exp2(steps / 4.0) - 1.0, m, growth)
    with np.errstate(over="ignore"):
        away = np.ceil(np.minimum(nats_away / rate, 2.0**61)).astype(np.int64)
    last = np.full((m, 1), np.iinfo(np.int64).max)
    until = np.hstack((below[:, np.newaxis] - away[::-1], above[:, np.newaxis] + away - 1, last))
    wider = np.exp2((steps + 0.5) / 8.0)  # as in the middle of a step
    wider = np.concatenate((wider[::-1], [1.0], wider))
    stretch = np.arange(0, until.size + 1, wider.size, dtype=np.uintp)
    return Spans(stretch, until.ravel(), np.tile(np.minimum(nats * wider, widest), m))
