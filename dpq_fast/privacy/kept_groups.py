r"""Groups that nobody listed: their keys are selected, and then released as if they were public.

For any fixed set of keys K, a call with ``groups=K`` is :math:`\epsilon_2`-DP: rows of other keys
are ignored, whatever they are, and so no answer depends on a group outside of K. The selection is
(:math:`\epsilon_1`, :math:`\delta`)-DP (`privacy.key_selection`), and K is its answer. So the call
is an adaptive composition of the two, (:math:`\epsilon_1 + \epsilon_2`, :math:`\delta`)-DP, under
the same relation and for the same number of records per person.

*Share.* A key is kept from about :math:`\ln(1/\delta) / \epsilon_1` records on, and an answer
misses ranks in proportion to :math:`1/\epsilon_2`. A quarter of the budget makes answers a third
worse than all of it would, and asks for 4 times as many records. With half of it, all answers would
be twice as bad, for keys of twice as many records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from dpq_fast._checks import check_epsilon
from dpq_fast.privacy import key_selection
from dpq_fast.privacy.above_threshold import check_fraction
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.relations import Relation, relation_of

# Of epsilon, for the selection.
SHARE = 0.25


class Calibration(NamedTuple):
    """What a call spends that selects the keys of its groups, and guarantees.

    Attributes
    ----------
    selection : key_selection.Calibration
    release : Calibrated
        Of a call with public groups.
    epsilon, delta : float
        Of both together, per person.
    relation : Relation
    """

    selection: key_selection.Calibration
    release: Any
    epsilon: float
    delta: float
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """The selection, and then the release: basic composition."""
        return Guarantee(
            self.epsilon, self.delta, neighbors=self.relation.name, composition="basic"
        )


def calibrate(
    release_of: Callable[..., Any],
    selection_share: float,
    *,
    epsilon: float | None,
    delta: float,
    neighbors: str,
    max_contributions: int,
) -> Calibration:
    """The parts of a budget for a selection, and for releases of what is kept.

    Parameters
    ----------
    release_of : callable
        What the release spends, by its own `epsilon`, `neighbors` and `max_contributions`.
    selection_share : float
        Of the selection in `epsilon`, strictly between 0 and 1.
    epsilon, delta, neighbors, max_contributions
        As in `quantile_by`; all of `delta` is for the selection.

    Returns
    -------
    Calibration
    """
    share = check_fraction(selection_share, "selection_share")
    budget = check_epsilon(epsilon)
    first = share * budget
    person: dict[str, Any] = dict(neighbors=neighbors, max_contributions=max_contributions)
    selection = key_selection.calibrate(epsilon=first, delta=delta, **person)
    release = release_of(epsilon=math.nextafter(budget - first, 0.0), **person)
    return Calibration(selection, release, budget, selection.delta, relation_of(neighbors))


def share_of(groups: Any, selection_share: float | None) -> float | None:
    """The share of a selection, where there is one: where no groups are given."""
    if groups is not None:
        if selection_share is not None:
            raise ValueError("selection_share must be left out where groups are given, got one")
        return None
    return SHARE if selection_share is None else selection_share
