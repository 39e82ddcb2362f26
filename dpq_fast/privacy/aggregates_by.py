r"""Counts, sums and means by group: `privacy.aggregates` in each, `privacy.parallel` over all.

A record is in one group. So it changes the count of one of them by 1, the sum by
:math:`\max(|a|, |c|)` of its clip [a, c], or the two integers of the mean by c - a in all; where it
moves from one group to another it does so in both. Each release is one under "add-remove" then, for
half of `epsilon`, else one under the relation of the call, for all of it. It has the noise of k
records per person, which divides its epsilon by k: the k records cost no more in many groups than
in one.

**rho.** Noise of a scale s on integers that a person moves by :math:`d_g` in group g costs
:math:`\sum_g \rho(d_g)`, and :math:`\rho` is convex and 0 at 0 (`discrete_laplace_rho`). So the
worst is one integer that moves by all of :math:`\sum_g d_g = \epsilon s`. With a private clip only
the rho of a pure `epsilon` is stated. Of a budget `rho` a group has all of it, or a half where two
change; Gaussian noise of k records' size costs a person with :math:`k_g` of them in group g no more
than :math:`\rho \sum_g (k_g / k)^2 \le \rho`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from dpq_fast._checks import check_delta, check_epsilon, check_max_contributions, check_rho
from dpq_fast.privacy import aggregates, kept_groups
from dpq_fast.privacy.aggregates import AUTO
from dpq_fast.privacy.budgets import resolve_epsilon
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.parallel import touched
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import discrete_laplace_rho


class Calibration(NamedTuple):
    """What a call of `count_by`, `sum_by` or `mean_by` spends and guarantees.

    Attributes
    ----------
    each : aggregates.CountCalibration or aggregates.Calibration
        Of the release in each group.
    own : dict
        The arguments of that release in place of those of the call.
    epsilon : float or None
        Of the call, per person.
    rho : float or None
        Of the call; None for that of a pure epsilon.
    relation : Relation
        Of the call.
    """

    each: Any
    own: dict[str, Any]
    epsilon: float | None
    rho: float | None
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """Independent releases, of which one record changes one or two."""
        if self.epsilon is None:
            return Guarantee(None, 0.0, self.rho, None, self.relation.name, "zcdp")
        return Guarantee(self.epsilon, 0.0, self.rho, None, self.relation.name, "parallel")


def _own(
    epsilon: float | None,
    rho: float | None,
    neighbors: str,
    max_contributions: int,
    public_by: bool,
) -> tuple[Relation, int, dict[str, Any]]:
    """The relation of the call, how many groups change, and the release of each."""
    resolve_epsilon(epsilon, rho)  # exactly one of them, and positive
    relation = relation_of(neighbors)
    k, parts = check_max_contributions(max_contributions), touched(relation, public_by)
    own: dict[str, Any] = dict(
        neighbors="add-remove" if parts > 1 else relation.name, max_contributions=k
    )
    if rho is None:
        own["epsilon"] = check_epsilon(epsilon) / parts
    else:
        own["rho"] = check_rho(rho) / parts
    return relation, parts, own


def _of_selected(
    release_of: Any, selection_share: float, rho: float | None, **call: Any
) -> kept_groups.Calibration:
    """With a selection of keys, which has no rho."""
    if rho is not None:
        raise ValueError(f"rho must be left out where groups are selected, got {rho}")
    return kept_groups.calibrate(release_of, selection_share, **call)


def _refuse_delta(delta: float) -> None:
    if check_delta(delta) > 0.0:
        raise ValueError(f"delta must be 0 where groups are given, got {delta}")


def calibrate_count(
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    public_by: bool = False,
    delta: float = 0.0,
    selection_share: float | None = None,
) -> Calibration | kept_groups.Calibration:
    """The noise of each count, for `epsilon` or `rho` in total.

    Parameters
    ----------
    epsilon, rho, neighbors, max_contributions, public_by
        As in `count_by`.
    delta, selection_share
        Of a selection of keys; left out where groups are given.

    Returns
    -------
    Calibration or kept_groups.Calibration
    """
    if selection_share is not None:
        return _of_selected(
            partial(calibrate_count, public_by=public_by),
            selection_share,
            rho,
            epsilon=epsilon,
            delta=delta,
            neighbors=neighbors,
            max_contributions=max_contributions,
        )
    _refuse_delta(delta)
    relation, parts, own = _own(epsilon, rho, neighbors, max_contributions, public_by)
    units = parts * own["max_contributions"]
    if epsilon is not None and units > 1:
        rho = discrete_laplace_rho(epsilon, units)
    return Calibration(aggregates.calibrate_count(**own), own, epsilon, rho, relation)


def calibrate_histogram(
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Calibration:
    """The noise of each bin of a histogram: that of counts by group.

    A record is in one bin, and what is replaced moves from one to another.

    Parameters
    ----------
    epsilon, rho, neighbors, max_contributions
        As in `histogram`.

    Returns
    -------
    Calibration
    """
    made = calibrate_count(
        epsilon=epsilon, rho=rho, neighbors=neighbors, max_contributions=max_contributions
    )
    assert isinstance(made, Calibration)  # nothing is selected
    return made


def calibrate(
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    q: float | str | None = AUTO,
    lower: float | None = 0.0,
    upper: float | None = None,
    method: str = "unbounded",
    share: float | None = None,
    split: float | None = None,
    noise: str = "exponential",
    expected_n: int | None = None,
    resolution: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    public_by: bool = False,
    delta: float = 0.0,
    selection_share: float | None = None,
) -> Calibration | kept_groups.Calibration:
    """The parts of `epsilon` or `rho` for the clip and for the noise in each group.

    Parameters
    ----------
    epsilon, rho, neighbors, max_contributions, public_by
        As in `sum_by`.
    delta, selection_share
        As in `calibrate_count`.
    bounds, q, lower, upper, method, share, split, noise, expected_n, resolution
        As in `privacy.aggregates.calibrate`; `expected_n` is for each group.

    Returns
    -------
    Calibration or kept_groups.Calibration
    """
    clip: dict[str, Any] = dict(
        bounds=bounds,
        q=q,
        lower=lower,
        upper=upper,
        method=method,
        share=share,
        split=split,
        noise=noise,
        expected_n=expected_n,
        resolution=resolution,
    )
    if selection_share is not None:
        return _of_selected(
            partial(calibrate, public_by=public_by, **clip),
            selection_share,
            rho,
            epsilon=epsilon,
            delta=delta,
            neighbors=neighbors,
            max_contributions=max_contributions,
        )
    _refuse_delta(delta)
    relation, parts, own = _own(epsilon, rho, neighbors, max_contributions, public_by)
    each = aggregates.calibrate(**clip, **own)
    if epsilon is not None and each.clip is None:
        rho = discrete_laplace_rho(epsilon, parts * each.k * each.least_units)
    return Calibration(each, own, epsilon, rho, relation)
