r"""Audits: how much privacy a mechanism loses, from its exact laws or from many runs of it.

`exact` enumerates all neighbors of small data sets and all outputs, and finds the largest
privacy loss there is. `estimate` runs a mechanism many times on two neighbors, and finds a lower
bound on epsilon that is wrong with a probability of your choice.

Nothing here is a release: what an audit returns depends on the data without any noise. Audit
made-up data.
"""

from dpq_fast.audit.exhaustive import ExactAudit, Witness, exact
from dpq_fast.audit.runs import EstimatedAudit, estimate

__all__ = ["EstimatedAudit", "ExactAudit", "Witness", "estimate", "exact"]
