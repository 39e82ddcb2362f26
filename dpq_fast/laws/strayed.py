"""Windows for rows of cells of ranks: what leaves them, by some of the records.

The paths that leave windows within reach weigh at most U, the sum over a chain whose outputs come
in any order (`csrc/stray.h`). `dpq_fast.laws.path` has it by single ranks; here, ranks are taken
together, some tenths of a nat, as rows of cells are for windows of many more nats. The records at
their ends say what the outputs between them weigh: no others are read, and no leaves are needed.

That makes U too large by as much for each level. But what the same sum says of the paths inside is
too large by as much: so the two of them show what windows will do before their rows are computed.
Then U is compared with what rows hold.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import stray
from dpq_fast.data.order import WholeOrder
from dpq_fast.laws import path
from dpq_fast.laws.path import CERTIFICATE, MOST_LEVELS, REST, SHARES, STEEPEST

# So many nats of ranks are taken together; fewer where levels are more than `MOST_LEVELS`, as each
# loses something by that. If these are no more than so many times, their ends are looked up once,
# for all levels.
NATS, MOST_TAKEN = 0.4, 2**21
# What is lost for each level, in nats, beyond what these say; and to spare, or less where targets
# are so many nats apart.
EACH, SPARE = 0.025, 250.0
FAR_APART, SPARE_APART = 100.0, 60.0
# Where gaps or ties draw paths away, windows may do that are wider by so many nats for each one
# that is missing, and by so many, if these are no more than the windows have.
WIDER, MORE, GUESSES = 2.0, 50.0, 2
# Windows are to be at most such a share of the reach, and of the records.
WORTH, WORTH_RECORDS = 0.5, 0.1


class Windows:
    """Windows around all targets, and what paths weigh at most that leave them within reach.

    Parameters
    ----------
    order : WholeOrder
        The sample in order; of at least one record.
    q : ndarray of float64, shape (m,)
        Distinct ascending levels.
    rate : float
        Decay rate, c.
    reach : int
        R: what is beyond is no matter of windows.
    """

    def __init__(self, order: WholeOrder, q: NDArray[np.float64], rate: float, reach: int) -> None:
        self._order = order
        self._q = q
        self._rate = rate
        self._reach = reach
        nats = NATS * min(1.0, MOST_LEVELS / q.size)
        self._size = max(1, math.floor(min(nats / rate, order.n + 1.0)))

    def found(self) -> tuple[NDArray[np.int64], float, bool] | None:
        """Windows that will hold all but 2^-64, it seems, and ln U; None if there seem to be none.

        Windows are ranks on both sides of each target, shape (m,). And whether they are what a walk
        over even gaps takes: else others draw paths away.
        """
        m, rate = self._q.size, self._rate
        if rate > STEEPEST:
            return None
        each = math.log1p(rate * (self._size - 1)) + EACH
        are_apart = path.gap_of(self._order.n, self._q, rate) >= FAR_APART
        spare = SPARE_APART if are_apart else SPARE
        walk = path.walk_of(m, CERTIFICATE + spare + m * each)
        most = rate * min(WORTH * self._reach, WORTH_RECORDS * self._order.n)
        for guess in range(GUESSES):
            if walk.max() > most:
                return None
            window = np.ceil(walk / (rate * self._size)).astype(np.int64) * self._size
            weights = self.weights(window)
            if weights is None:
                return None
            log_strayed, log_inside = weights
            missing = CERTIFICATE + log_strayed - (log_inside - m * each)
            if missing <= 0.0:
                return window, log_strayed, guess == 0
            if not missing <= walk.max():
                return None
            walk += WIDER * missing + MORE
        return None

    def weights(self, window: NDArray[np.int64]) -> tuple[float, float] | None:
        """ln U, and ln of what the paths inside weigh by the same sum.

        None if an order would read all records for that.
        """
        m, size = self._q.size, self._size
        # a target is anywhere in what is taken together
        inside, reach = window // size - 1, self._reach // size + REST
        cells = stray.cells(int(inside.max()), reach, self._rate * size, m, SHARES[0])
        strayed = stray.Strayed(self._q, self._order.n, self._rate, *cells, inside, size)
        for _ in range(m):
            records = self._ends(strayed.ranks())
            if records is None:
                return None
            strayed.add_borders(records)
        return strayed.log_weight, strayed.log_inside

    def _ends(self, taken: NDArray[np.int64]) -> NDArray[Any] | None:
        """The records before what is taken together, the first ones, the next ones, and so on."""
        size, n = self._size, self._order.n
        if n // size >= MOST_TAKEN:
            return self._looked_up(taken)
        return None if self._all_ends is None else self._all_ends[taken]

    @cached_property
    def _all_ends(self) -> NDArray[Any] | None:
        return self._looked_up(np.arange(self._order.n // self._size + 2))

    def _looked_up(self, taken: NDArray[np.int64]) -> NDArray[Any] | None:
        return self._order.records_at(np.minimum(taken * self._size, self._order.n + 1))
