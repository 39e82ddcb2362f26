"""Every mechanism, one row each: its release, its law, and what it spends.

`quantile`, `privacy.guarantee`, the audits, the command line and the tests read these rows; nothing
else lists mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from dpq_fast import privacy
from dpq_fast._prepared import Prepared
from dpq_fast.mechanisms.above_threshold import above_threshold, above_threshold_law, sparse_vector
from dpq_fast.mechanisms.agg_tree import agg_tree
from dpq_fast.mechanisms.aggregates import count, mean, std, sum, var
from dpq_fast.mechanisms.aggregates_by import count_by, mean_by, std_by, sum_by, var_by
from dpq_fast.mechanisms.approx_quantiles import approx_quantiles, approx_quantiles_law
from dpq_fast.mechanisms.cdf import cdf
from dpq_fast.mechanisms.csmooth import csmooth
from dpq_fast.mechanisms.histogram import histogram
from dpq_fast.mechanisms.ind_exp import ind_exp, ind_exp_law
from dpq_fast.mechanisms.joint_exp import joint_exp, joint_exp_law
from dpq_fast.mechanisms.quantile_by import quantile_by
from dpq_fast.mechanisms.select_keys import select_keys
from dpq_fast.mechanisms.two_stage import two_stage, two_stage_law
from dpq_fast.mechanisms.unbounded_quantile import unbounded_quantile, unbounded_quantile_law
from dpq_fast.privacy.accounting import Calibrated
from dpq_fast.privacy.budgets import resolve_epsilon


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A public function that spends a budget.

    Attributes
    ----------
    release : callable
        The public function.
    calibrate : callable
        What its public arguments spend and guarantee, by the same names.
    budgets : tuple of str
        Which arguments say how much.
    reads : {"order", "records", "leaves", "groups", "keys", "queries"}
        What it makes of a column: its order statistics on a lattice, dithered or not; its records,
        to be counted or added up; its records by leaf; its groups; or it is given their keys, or
        queries.
    law : callable, optional
        The exact output law on a column.
    takes_levels : bool, default False
        Whether `quantile` can choose it.
    intervals : {"ends", "own", None}
        Whether it takes a `confidence`: for a value and, from a share of the budget, the ends of an
        interval, or because the law of its noise is known.
    """

    release: Callable[..., Any]
    calibrate: Callable[..., Calibrated]
    budgets: tuple[str, ...]
    reads: Literal["order", "records", "leaves", "groups", "keys", "queries"]
    law: Callable[..., Any] | None = None
    takes_levels: bool = False
    intervals: Literal["ends", "own"] | None = None

    @property
    def name(self) -> str:
        """That of the public function."""
        return self.release.__name__

    @property
    def prepared_of_numbers(self) -> Callable[..., Prepared[Any]]:
        """What prepares it, where times have become numbers."""
        body: Callable[..., Prepared[Any]] = self.release.__wrapped__  # type: ignore[attr-defined]
        return body

    def budget(
        self, epsilon: float | None, delta: float, rho: float | None
    ) -> dict[str, float | None]:
        """The budget of a call of `quantile`, as this mechanism takes it: epsilon or rho."""
        # two of them, or none, are refused here or by the mechanism that takes both
        if self.budgets == ("epsilon",):
            return {"epsilon": resolve_epsilon(epsilon, rho)}
        if self.budgets == ("rho",):
            resolve_epsilon(epsilon, rho)
            if rho is None:
                raise ValueError(
                    f"rho must be given in place of epsilon for method {self.name!r}, "
                    f"got epsilon={epsilon}"
                )
            if delta > 0.0:
                raise ValueError(f"delta must be 0 with rho, got {delta}")
        given = dict(epsilon=epsilon, delta=delta, rho=rho)
        return {name: given[name] for name in self.budgets}


_ROWS = (
    Mechanism(
        joint_exp,
        privacy.joint_exp.calibrate,
        ("epsilon",),
        "order",
        law=joint_exp_law,
        takes_levels=True,
        intervals="ends",
    ),
    Mechanism(
        ind_exp,
        privacy.ind_exp.calibrate,
        ("epsilon", "delta", "rho"),
        "order",
        law=ind_exp_law,
        takes_levels=True,
        intervals="ends",
    ),
    Mechanism(
        approx_quantiles,
        privacy.approx_quantiles.calibrate,
        ("epsilon", "rho"),
        "order",
        law=approx_quantiles_law,
        takes_levels=True,
        intervals="ends",
    ),
    Mechanism(
        two_stage,
        privacy.two_stage.calibrate,
        ("epsilon", "rho"),
        "order",
        law=two_stage_law,
        takes_levels=True,
        intervals="ends",
    ),
    Mechanism(
        unbounded_quantile,
        privacy.unbounded_quantile.calibrate,
        ("epsilon", "rho"),
        "records",
        law=unbounded_quantile_law,
        takes_levels=True,
        intervals="ends",
    ),
    Mechanism(
        agg_tree,
        privacy.agg_tree.calibrate,
        ("epsilon", "rho"),
        "leaves",
        takes_levels=True,
        intervals="own",
    ),
    Mechanism(csmooth, privacy.csmooth.calibrate, ("rho",), "order", takes_levels=True),
    Mechanism(quantile_by, privacy.quantile_by.calibrate, ("epsilon", "delta", "rho"), "groups"),
    *(
        Mechanism(release, calibrate, ("epsilon", "rho"), "groups", intervals="own")
        for release, calibrate in (
            (count_by, privacy.aggregates_by.calibrate_count),
            (sum_by, privacy.aggregates_by.calibrate),
            (mean_by, privacy.aggregates_by.calibrate),
            (var_by, privacy.aggregates_by.calibrate),
            (std_by, privacy.aggregates_by.calibrate),
        )
    ),
    Mechanism(histogram, privacy.aggregates_by.calibrate_histogram, ("epsilon", "rho"), "records"),
    Mechanism(select_keys, privacy.key_selection.calibrate, ("epsilon", "delta"), "keys"),
    Mechanism(cdf, privacy.cdf.calibrate, ("epsilon", "delta", "rho"), "leaves"),
    *(
        Mechanism(release, calibrate, ("epsilon", "rho"), "records", intervals="own")
        for release, calibrate in (
            (count, privacy.aggregates.calibrate_count),
            (sum, privacy.aggregates.calibrate),
            (mean, privacy.aggregates.calibrate),
            (var, privacy.aggregates.calibrate),
            (std, privacy.aggregates.calibrate),
        )
    ),
    Mechanism(
        above_threshold,
        privacy.above_threshold.calibrate,
        ("epsilon1", "epsilon2"),
        "queries",
        law=above_threshold_law,
    ),
    Mechanism(
        sparse_vector, privacy.above_threshold.calibrate_halts, ("epsilon1", "epsilon2"), "queries"
    ),
)
MECHANISMS: dict[str, Mechanism] = {row.name: row for row in _ROWS}
# What `quantile` takes for `method`.
METHODS = ("auto", *(name for name, row in MECHANISMS.items() if row.takes_levels))
