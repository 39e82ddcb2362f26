r"""Which released quantiles stand for a min and a max, and intervals of a difference of quantiles.

**Level.** The smallest record is that of one person, so that no private release is close to it on
every data set. What can be released is the quantile at a level with enough records beyond it to be
found: a share

.. math:: \ell = \min\Bigl(\frac{R k}{\epsilon n}, \frac{1}{4}\Bigr), \qquad R = 24,

of n records, up to k of a person, has about :math:`R k / \epsilon` of them beyond it. It is made of
public facts alone. With a :math:`\rho` in place of :math:`\epsilon` it has :math:`\sqrt{2 \rho}`,
of which pure releases have that rho. Beside an interval :math:`\epsilon` is the part of the budget
that the value has: with all of it a third of the answers would be far outside.

*Why 24.* With fewer records beyond, answers are nearer to the true min or max by the median, and
more often far outside of all records. Released by "two_stage" for 300 to 10,000 records with
epsilon = 1, and 10,000 with 0.1, between bounds that are 1,000 times too wide (uniform, normal and
log-normal columns) or natural (ages and weekly hours of census records), 100 releases each:

====  ===================  ===================================================
R     median error / IQR,  share that is outside by more than half an IQR, in %
      mean of columns      (mean of columns, worst column)
====  ===================  ===================================================
10    0.75                 18.0, 68
14    0.79                 7.7, 45
17    0.86                 2.9, 17
20    0.98                 0.7, 4
24    1.10                 0.1, 1
30    1.23                 0.0, 0
====  ===================  ===================================================

With 100,000 records and epsilon = 1 it is 8% for a uniform column with 24, and with some 120 /
epsilon records, the fewest that have a pilot, 12% (worst 31%).

**Intervals of a difference.** Intervals of several quantiles of the records at hand cover all of
them at once (`privacy.intervals`), so that with the same probability
:math:`L_2 - H_1 \le x_2 - x_1 \le H_2 - L_1`. Those that cover each by itself, of a population, or
of a tree, miss one or the other with at most the sum of what each of the two misses: each is asked
for with half of what may be missed (`confidence_of_each`).
"""

from __future__ import annotations

import math
from typing import Any

from dpq_fast._checks import (
    check_epsilon,
    check_max_contributions,
    check_nonnegative,
    check_rho,
)
from dpq_fast.privacy.agg_tree import expected_records
from dpq_fast.privacy.budgets import resolve_epsilon
from dpq_fast.privacy.intervals import Request, split

# Records beyond the level, times epsilon, and the largest level that stands for an extreme.
RANKS, LARGEST_LEVEL = 24.0, 0.25
# The levels of an interquartile range.
OUTER = (0.25, 0.75)


def extreme_level(
    n: int | None = None,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
) -> float:
    r"""The level whose quantile stands for a min; that of a max is 1 less this.

    Parameters
    ----------
    n : int, optional
        About how many records there are. Public. Default: those of 10,000 persons.
    epsilon, rho : float
        Budget of the call, exactly one of the two.
    neighbors : {"swap", "add-remove"}, default "swap"
        As of the call; it matters to intervals alone.
    max_contributions : int, default 1
        Up to k records per person.
    confidence, covers, interval_share : optional
        Of an interval, as in `dpq_fast.quantile`: then the budget is what is left beside it.

    Returns
    -------
    float
        :math:`\min(24 k / (\epsilon n), 1/4)`, with :math:`\sqrt{2 \rho}` in place of
        :math:`\epsilon` where that is given.

    Examples
    --------
    >>> extreme_level(1_000, epsilon=1.0)
    0.024
    >>> extreme_level(20, epsilon=1.0)
    0.25
    """
    resolve_epsilon(epsilon, rho)  # refuses two of them, and none
    k = check_max_contributions(max_contributions)
    records = expected_records(n, k)
    request = Request.of(confidence, covers, interval_share)
    if request is not None:
        own, _ = split(request, epsilon, 0.0, rho, neighbors, k)
        epsilon, rho = own["epsilon"], own["rho"]
    each = check_epsilon(epsilon) if rho is None else math.sqrt(2.0 * check_rho(rho))
    return min(RANKS / each / (records / k), LARGEST_LEVEL)


def check_level(level: Any) -> float:
    """A level in the place of that of `extreme_level`."""
    share = check_nonnegative("level", level)
    if 0.0 < share <= 0.5:
        return share
    raise ValueError(f"level must lie in (0, 1/2], got {share}")


def box_levels(level: float) -> tuple[float, ...]:
    """The levels of a box plot, ascending, whose whiskers have `level` and 1 less it."""
    if level > LARGEST_LEVEL:
        raise ValueError(f"level must lie in (0, 1/4] for a box, got {level}")
    low, high = OUTER
    return (level, low, 0.5, high, 1.0 - level)


def confidence_of_each(request: Request) -> float:
    """What each of two intervals is to cover with, for both to do so as it was asked for."""
    return 1.0 - request.miss / 2.0
