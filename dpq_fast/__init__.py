"""Differentially private quantiles with exact output laws."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpq_fast import metrics, noise, privacy
from dpq_fast._docs import spell_out
from dpq_fast.data.rounds import together
from dpq_fast.data.sample import Sample
from dpq_fast.data.tables import Table
from dpq_fast.data.weights import Weights
from dpq_fast.mechanisms.above_threshold import above_threshold, above_threshold_law, sparse_vector
from dpq_fast.mechanisms.agg_tree import PartialTree, agg_tree
from dpq_fast.mechanisms.aggregates import count, mean, std, sum, var
from dpq_fast.mechanisms.aggregates_by import (
    GroupValues,
    count_by,
    mean_by,
    std_by,
    sum_by,
    var_by,
)
from dpq_fast.mechanisms.approx_quantiles import approx_quantiles, approx_quantiles_law
from dpq_fast.mechanisms.cdf import cdf
from dpq_fast.mechanisms.csmooth import csmooth
from dpq_fast.mechanisms.describe import describe
from dpq_fast.mechanisms.extremes import (
    box,
    box_by,
    iqr,
    iqr_by,
    max,
    max_by,
    min,
    min_by,
)
from dpq_fast.mechanisms.histogram import histogram, value_counts
from dpq_fast.mechanisms.ind_exp import ind_exp, ind_exp_law
from dpq_fast.mechanisms.joint_exp import joint_exp, joint_exp_law
from dpq_fast.mechanisms.quantile import median, percentile, quantile
from dpq_fast.mechanisms.quantile_by import quantile_by
from dpq_fast.mechanisms.select_keys import select_keys
from dpq_fast.mechanisms.two_stage import two_stage, two_stage_law
from dpq_fast.mechanisms.unbounded_quantile import unbounded_quantile, unbounded_quantile_law
from dpq_fast.planning import Plan, plan, plan_mean, plan_sum
from dpq_fast.privacy import Accountant, BudgetExceeded, Guarantee
from dpq_fast.released.agg_tree import AggTree
from dpq_fast.released.box import Box
from dpq_fast.released.cdf import CDF
from dpq_fast.released.estimate import Estimate
from dpq_fast.released.groups import GroupBoxes, GroupQuantiles

if TYPE_CHECKING:
    from dpq_fast import audit, plots, reference

__all__ = [
    "CDF",
    "Accountant",
    "AggTree",
    "Box",
    "BudgetExceeded",
    "Estimate",
    "GroupBoxes",
    "GroupQuantiles",
    "GroupValues",
    "Guarantee",
    "PartialTree",
    "Plan",
    "Sample",
    "Table",
    "Weights",
    "above_threshold",
    "above_threshold_law",
    "agg_tree",
    "approx_quantiles",
    "approx_quantiles_law",
    "audit",
    "box",
    "box_by",
    "cdf",
    "count",
    "count_by",
    "csmooth",
    "describe",
    "histogram",
    "ind_exp",
    "ind_exp_law",
    "iqr",
    "iqr_by",
    "joint_exp",
    "joint_exp_law",
    "max",
    "max_by",
    "mean",
    "mean_by",
    "median",
    "metrics",
    "min",
    "min_by",
    "noise",
    "percentile",
    "plan",
    "plan_mean",
    "plan_sum",
    "plots",
    "privacy",
    "quantile",
    "quantile_by",
    "reference",
    "select_keys",
    "sparse_vector",
    "std",
    "std_by",
    "sum",
    "sum_by",
    "together",
    "two_stage",
    "two_stage_law",
    "unbounded_quantile",
    "unbounded_quantile_law",
    "value_counts",
    "var",
    "var_by",
]

spell_out({name: globals()[name] for name in __all__ if name in globals()})

# Modules that no release needs: loaded when they are first named.
_LATER = ("audit", "plots", "reference")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name in _LATER:
        return import_module(f"dpq_fast.{name}")
    raise AttributeError(f"module 'dpq_fast' has no attribute {name!r}")


def _version() -> str:
    """The version that is installed; pyproject.toml is where it is written."""
    from importlib import metadata  # slow, and rarely needed

    try:
        return metadata.version("dpq_fast")
    except metadata.PackageNotFoundError:
        raise AttributeError("dpq_fast is not installed: no version is known") from None


def __dir__() -> list[str]:
    return sorted(__all__)
