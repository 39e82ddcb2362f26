"""Which rows JointExp is drawn from: of single ranks, or of cells. Both have the same law."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels import intervals as kernel
from dpq_fast._kernels.scan import Scan, targets
from dpq_fast.laws.joint import path
from dpq_fast.laws.joint.coarse import CoarseLaw
from dpq_fast.laws.joint.path import PathLaw
from dpq_fast.laws.joint.plan import PLAN, Plan
from dpq_fast.laws.joint.rows import Forward
from dpq_fast.laws.joint.widths import wide_of, widths_of
from dpq_fast.laws.joint.zones import zones_of
from dpq_fast.orders.order import WholeOrder

# What float64 can hold: what all levels may lose by cells, in nats; their extent without a lattice.
MOST_LOST, LARGEST_EXTENT = 1e11, 2.0**700


def law_of(
    order: WholeOrder,
    q: NDArray[np.float64],
    rate: float,
    forward: Forward = Scan.forward,
    plan: Plan = PLAN,
) -> PathLaw | CoarseLaw:
    """The law of JointExp, by cells of ranks where they save most of its rows."""
    n, m = order.n, q.size
    extreme = m * rate * n > MOST_LOST or (order.lattice is None and order.extent > LARGEST_EXTENT)
    if extreme or order.uneven or is_short(n + 1, m, plan):
        return PathLaw(order, q, rate, forward, plan=plan)
    guess = path.first_window(order, q, rate, plan)
    if is_short(2 * guess + 1, m, plan):
        return PathLaw(order, q, rate, forward, guess=guess, plan=plan)
    first, count = kernel.windows(q, n, guess)[2:]
    whole = targets(q, n)[0]
    narrow, ranks = path.first_narrow(q, n, rate, guess, plan), int(count.sum())
    widths = widths_of(n, q, rate, plan)
    are_single = widths.nats < rate * plan.least_ranks
    if (
        ranks > plan.most_records
        and zones_of(order, whole, whole, first, count, rate, plan)[0].most == 1
    ):
        are_single |= narrow <= plan.most_narrow
    tied = (are_single or not order.scans) and _is_tied(order, q, narrow, guess)
    if are_single and not tied:
        try:
            return PathLaw(order, q, rate, forward, guess=guess, most=plan.most_held, plan=plan)
        except path.TooWide:  # gaps draw paths far away
            pass
    wide = wide_of(n, q, rate, widths, plan) if tied else None
    return CoarseLaw(order, q, rate, forward, guess, widths=wide or widths, plan=plan)


def is_short(ranks: int, m: int, plan: Plan) -> bool:
    """Whether m rows of so many ranks are for `PathLaw`."""
    return m * ranks <= (plan.short_entries if ranks <= plan.short_row else plan.few_entries)


def _is_tied(order: WholeOrder, q: NDArray[np.float64], window: int, reach: int) -> bool:
    """Whether windows of `PathLaw` would have to be wider for a tie, and cells may do."""
    if window >= reach:
        return False
    places = kernel.probes(q, order.n, np.full(q.size, window))
    return bool((order.log_spans(places) == -math.inf).any())
