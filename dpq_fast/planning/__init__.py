"""How far off releases will be, before any record is read: which epsilon, which method.

A plan reads the laws and noises that releases draw from, on public samples: records that are drawn
from a public guess at the data. It takes no records, spends nothing, and gives the same answer at
every call. A sample keeps the order statistics near the levels; the farther away, the more records
it has in one place. So it is small for any number of records.
"""

from __future__ import annotations

from dpq_fast.planning.plans import Errors, Plan
from dpq_fast.planning.quantiles import METHODS, plan
from dpq_fast.planning.requests import SUMMARIES, UNITS
from dpq_fast.planning.totals import plan_mean, plan_sum

__all__ = ["METHODS", "SUMMARIES", "UNITS", "Errors", "Plan", "plan", "plan_mean", "plan_sum"]
