r"""Groups: what the release in each may spend, and what the releases in all of them guarantee.

Groups share no record, and their releases draw independently of each other. A missing key is one
like any other where the public keys name it; where they do not, its records are in no group. So the
log ratio of a call is the sum of those of the groups that a change of the records touches.

- *One* record added or removed touches one group ("add-remove"; and under "swap" a record without a
  key, or that gets one). Each release may spend all of the budget.
- *Same*: a replaced record that stays in its group is a replacement there. Where keys are public
  there is no other kind under "swap", and each release may spend all of the budget, under "swap".
- *Moved*: a replaced record that leaves a group and comes into another one touches two groups: a
  removal in one, an addition in the other. So each release is one under "add-remove", for a part of
  the budget that two such changes add up to, be they in two groups or, for a record that stays, one
  after the other in one group:

  - :math:`\epsilon / 2`, which adds up either way;
  - :math:`\delta / (1 + e^{\epsilon/2})`: in two groups the deltas add up to less than
    :math:`\delta`, and in one, from x over z to y,

    .. math:: P_x \le e^{\epsilon/2} P_z + \delta' \le e^{\epsilon} P_y + (1 + e^{\epsilon/2})\,
              \delta';

  - :math:`\rho / 4`: two steps in one group cost 4 times as much as one [BS16, Prop. 27], in two
    groups twice.

A person with k records is a chain of k such changes, each of a k-th of epsilon. Rho grows with the
square of their number, so that each has :math:`\rho / k^2`. And :math:`(\epsilon/k, \delta_1)` is
:math:`(\epsilon, \delta)` for k of them with

.. math:: \delta_1 = \delta\, \frac{e^{\epsilon/k} - 1}{e^{\epsilon} - 1},

by the sum of a geometric series of :math:`\delta_1 e^{i \epsilon/k}`.

All of it knows nothing about a release but its guarantee.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dpq_fast._checks import (
    check_delta,
    check_epsilon,
    check_flag,
    check_max_contributions,
    check_rho,
)
from dpq_fast.privacy.relations import Relation, relation_of


class Part(NamedTuple):
    """What the release in one group may spend on one record.

    Attributes
    ----------
    neighbors : {"swap", "add-remove"}
        The relation of the release.
    epsilon : float or None
    delta : float
    rho : float or None
    """

    neighbors: str
    epsilon: float | None
    delta: float
    rho: float | None

    def given(self) -> dict[str, Any]:
        """The budget as arguments, without what is nothing."""
        budget = dict(epsilon=self.epsilon, delta=self.delta, rho=self.rho)
        return {name: value for name, value in budget.items() if value}


def touched(relation: Relation, public_by: Any) -> int:
    """How many groups a change of one record touches at most."""
    return 1 if check_flag("public_by", public_by) else relation.parts


def part_of(
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    public_by: bool = False,
) -> Part:
    """The part of the budget of a call that the release in each group has for one record.

    Parameters
    ----------
    epsilon, delta, rho
        Of the call, per person: one of epsilon and rho, and a delta with the former.
    neighbors, max_contributions, public_by
        As in `quantile_by`.

    Returns
    -------
    Part
    """
    k, relation = check_max_contributions(max_contributions), relation_of(neighbors)
    delta = check_delta(delta)
    moves = touched(relation, public_by) > 1
    own = "add-remove" if moves else relation.name
    if epsilon is None:
        each = check_rho(rho)
        if k > 1:
            each = math.nextafter(each / k / k, 0.0)
        return Part(own, None, 0.0, each / 4.0 if moves else each)
    whole = check_epsilon(epsilon)
    each = whole if k == 1 else math.nextafter(whole / k, 0.0)
    if delta > 0.0 and k > 1:
        # (e^(epsilon/k) - 1) / (e^epsilon - 1), without what overflows
        ratio = math.expm1(-each) / math.expm1(-whole) * math.exp(each - whole)
        delta *= ratio * (1.0 - 1e-9)
    if moves:
        each /= 2.0
        delta = delta / (1.0 + math.exp(min(each, 700.0))) * (1.0 - 1e-9)
    return Part(own, each, delta, None)
