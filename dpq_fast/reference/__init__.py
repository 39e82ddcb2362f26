"""The mechanisms in plain Python: direct formulas, written to be read next to the papers.

Same public names and arguments as the fast ones, but for those that steer speed alone. The two
share `privacy`, which says what may be spent, the checks of public arguments, and how docstrings
are spelled out; nothing that touches a record, a lattice or a random bit, so that each checks the
other. Meant for a few hundred records and a handful of levels.
"""

from dpq_fast._docs import spell_out
from dpq_fast.reference import noise, persons
from dpq_fast.reference.above_threshold import above_threshold, above_threshold_law, sparse_vector
from dpq_fast.reference.agg_tree import agg_tree
from dpq_fast.reference.aggregates import count, mean, std, sum, var
from dpq_fast.reference.aggregates_by import count_by, mean_by, std_by, sum_by, var_by
from dpq_fast.reference.approx_quantiles import approx_quantiles, approx_quantiles_law
from dpq_fast.reference.cdf import cdf
from dpq_fast.reference.csmooth import csmooth
from dpq_fast.reference.histogram import histogram
from dpq_fast.reference.ind_exp import ind_exp, ind_exp_law
from dpq_fast.reference.joint_exp import joint_exp, joint_exp_law
from dpq_fast.reference.key_selection import select_keys
from dpq_fast.reference.quantile_by import quantile_by
from dpq_fast.reference.two_stage import two_stage, two_stage_law
from dpq_fast.reference.unbounded_quantile import unbounded_quantile, unbounded_quantile_law

__all__ = [
    "above_threshold",
    "above_threshold_law",
    "agg_tree",
    "approx_quantiles",
    "approx_quantiles_law",
    "cdf",
    "count",
    "count_by",
    "csmooth",
    "histogram",
    "ind_exp",
    "ind_exp_law",
    "joint_exp",
    "joint_exp_law",
    "mean",
    "mean_by",
    "noise",
    "persons",
    "quantile_by",
    "select_keys",
    "sparse_vector",
    "std",
    "std_by",
    "sum",
    "sum_by",
    "two_stage",
    "two_stage_law",
    "unbounded_quantile",
    "unbounded_quantile_law",
    "var",
    "var_by",
]

spell_out({name: globals()[name] for name in __all__})
