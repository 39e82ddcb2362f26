"""Differentially private quantiles with exact output laws."""

from dpq_fast import metrics, noise, privacy, reference
from dpq_fast.agg_tree import AggTree, PartialTree, agg_tree
from dpq_fast.ind_exp import ind_exp, ind_exp_law
from dpq_fast.joint_exp import joint_exp, joint_exp_law
from dpq_fast.quantile import median, percentile, quantile
from dpq_fast.quantile_by import quantile_by
from dpq_fast.sample import Sample

__all__ = [
    "AggTree",
    "PartialTree",
    "Sample",
    "agg_tree",
    "ind_exp",
    "ind_exp_law",
    "joint_exp",
    "joint_exp_law",
    "median",
    "metrics",
    "noise",
    "percentile",
    "privacy",
    "quantile",
    "quantile_by",
    "reference",
]
