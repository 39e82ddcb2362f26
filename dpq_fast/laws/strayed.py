"""Windows for rows of cells of ranks: what leaves them, by what outputs weigh.

The paths that leave windows within reach weigh at most U, the sum over a chain whose outputs come
in any order (`csrc/stray.h`). `dpq_fast.laws.path` has it by records; here, ranks are taken by so
many as half a nat has, and it is known what these weigh together, or more (`csrc/parts.h`).

That makes U too large by half a nat for each level. But what the same sum says of the paths inside
is too large by as much: so the two of them show what windows will do before their rows are
computed. Then U is compared with what rows hold.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import stray
from dpq_fast.laws import path
from dpq_fast.laws.leaves import Counted
from dpq_fast.laws.path import CERTIFICATE, REST, SHARES, STEEPEST

# So many nats of ranks are taken together, and more where these would be too many, up to so many.
NATS, MOST_TAKEN, MOST_NATS = 0.5, 2**21, 1.0
# What is lost for each level, in nats, beyond what these say; and to spare.
EACH, SPARE = 0.025, 250.0
# Where gaps or ties draw paths away, windows may do that are wider by so many nats for each one
# that is missing, and by so many, if these are no more than the windows have.
WIDER, MORE, GUESSES = 2.0, 50.0, 2
# Windows are to be at most such a share of the reach, and of the records.
WORTH, WORTH_RECORDS = 0.5, 0.1
# Volumes are multiples of such a share of their sum.
UNIT = 2.0**-60


def taken(n: int, rate: float) -> int:
    """How many ranks are taken together; 0 if they would be too many to tell paths apart."""
    size = max(1, math.floor(min(NATS / rate, n + 1.0)), -(-(n + 1) // MOST_TAKEN))
    return size if rate <= STEEPEST and rate * (size - 1) <= MOST_NATS else 0


class Windows:
    """Windows around all targets, and what paths weigh at most that leave them within reach.

    Parameters
    ----------
    q : ndarray of float64, shape (m,)
        Distinct ascending levels.
    n : int
        Number of records.
    rate : float
        Decay rate, c.
    reach : int
        R: what is beyond is no matter of windows.
    counted : Counted
        What all outputs within reach weigh, and maybe others; its numbers change.
    """

    def __init__(
        self, q: NDArray[np.float64], n: int, rate: float, reach: int, counted: Counted
    ) -> None:
        self._q = q
        self._n = n
        self._rate = rate
        self._reach = reach
        self._size = counted.size
        unit = UNIT * float(counted.volume.sum())
        self._log_unit = math.log(unit)
        # integers, whose differences are exact; of each the one above, as no sum may be too small
        units = np.divide(counted.volume, unit, out=counted.volume)
        np.ceil(units, out=units)
        self._below = np.zeros(units.size + 1, dtype=np.int64)
        np.cumsum(units, dtype=np.int64, out=self._below[1:])
        self._more = counted.more

    def found(self) -> tuple[NDArray[np.int64], float, bool] | None:
        """Windows that will hold all but 2^-64, it seems, and ln U; None if there seem to be none.

        Windows are ranks on both sides of each target, shape (m,). And whether they are what a walk
        over even gaps takes: else others draw paths away.
        """
        m, rate = self._q.size, self._rate
        each = math.log1p(rate * (self._size - 1)) + math.log1p(self._more / (self._n + 1)) + EACH
        walk = path.walk_of(m, CERTIFICATE + SPARE + m * each)
        most = rate * min(WORTH * self._reach, WORTH_RECORDS * self._n)
        for guess in range(GUESSES):
            if walk.max() > most:
                return None
            window = np.ceil(walk / (rate * self._size)).astype(np.int64) * self._size
            log_strayed, log_inside = self.log_strayed(window)
            missing = CERTIFICATE + log_strayed - (log_inside - m * each)
            if missing <= 0.0:
                return window, log_strayed, guess == 0
            if not missing <= walk.max():
                return None
            walk += WIDER * missing + MORE
        return None

    def log_strayed(self, window: NDArray[np.int64]) -> tuple[float, float]:
        """ln U, and ln of what the paths inside weigh by the same sum."""
        m, size = self._q.size, self._size
        # a target is anywhere in what is taken together
        inside, reach = window // size - 1, self._reach // size + REST
        cells = stray.cells(int(inside.max()), reach, self._rate * size, m, SHARES[0])
        strayed = stray.Strayed(self._q, self._n, self._rate, *cells, inside, size)
        for _ in range(m):
            strayed.add_borders(self._below[strayed.ranks()])
        return strayed.log_weight + m * self._log_unit, strayed.log_inside + m * self._log_unit
