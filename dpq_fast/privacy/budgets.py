"""What a call may spend: one of epsilon and rho, and how little or much a step may get of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpq_fast._checks import check_count, check_epsilon, check_rho
from dpq_fast.privacy.zcdp import rho_bounded_range

# The least rate of a draw, and what a step of a search or of a recursion has to spend at least.
MIN_STEP = 1e-305
# Larger rates are held there, which costs nothing: e^-65536 for each rank already makes every
# answer but the best one impossible in practice, whatever the widths of the intervals. And a rate
# times a number of records stays so small that the kernels tell all losses apart, or the records
# would decide whether a huge epsilon works.
MAX_RATE = 2.0**16


def check_step(rate: float) -> float:
    """The rate or epsilon of a step, unless it is so small that what is divided by it overflows.

    Were it not refused here, by public arguments alone, how many records there are would decide
    whether something is divided by it.
    """
    if rate < MIN_STEP:
        raise ValueError(f"epsilon or rho must leave at least {MIN_STEP} for each step, got {rate}")
    return rate


def check_steps(rates: Any) -> Any:
    """`check_step` for some steps."""
    check_step(float(np.min(rates)))
    return rates


def resolve_epsilon(epsilon: float | None, rho: float | None, m: int = 1) -> float:
    r"""Range bound of each of m exponential mechanisms for a total of `epsilon` or of `rho`.

    Exactly one of the two must be given: :math:`\epsilon / m` by basic composition, or
    the range that :math:`\rho / m` buys, since rho adds up [BS16].
    """
    if (epsilon is None) == (rho is None):
        came = "neither" if rho is None else "both"
        raise ValueError(f"exactly one of epsilon and rho must be given, got {came}")
    if m != 1:  # most calls have one, and are to cost little
        m = check_count("m", m)
    if rho is None:
        return check_epsilon(epsilon) / m
    return rho_bounded_range(check_rho(rho) / m)
