r"""Every formula that touches epsilon: sensitivities, rates, composition, guarantees, budgets.

One file for each mechanism holds its sensitivity, what it spends for a budget, what that
guarantees, and the proof: `calibrate` gives all of it as one object, made from public arguments.

**Neighboring relations.** Each statement holds for one of two relations between data sets.

- ``"swap"``: one record is replaced by another; the number n of records is public. Records that
  are left out (NaN with ``nan_policy="omit"``) stay records: how many there are is private, so
  the number *kept* may change by one between neighbors.
- ``"add-remove"``: one record is added or removed; n is private.

With ``max_contributions=k`` the same relations hold for persons of up to k records, who come, go
or change all their records together.

**Bounded range.** A mechanism has range at most b if, for neighbors x and x', the log ratio
:math:`\ln P_x(o) - \ln P_{x'}(o)` over all outputs o stays in an interval of length b, that is in
[t - b, t] for some t in [0, b] [DDR20]. It is then b-DP, and zCDP of `bounded_range_rho`. The
exponential mechanism with weights :math:`\exp(c\,u(x, o))` has range :math:`2 c \Delta`: the
utility moves by at most :math:`\Delta` up or down, and the normalization shifts all outputs
alike. Hence the rate :math:`c = \epsilon / 2\Delta`.

**Dither.** On a lattice, a release may first lay out the records of each point inside its cell,
and then run its mechanism. The K records of point k become :math:`k 2^s + s_0, \dots, k 2^s +
s_{K - 1}`, with one sequence of offsets :math:`s_i` for all points, which has a random shift w and
depends on nothing about the records (`csrc/dither.h`). A record more at k is one more of these, and
changes no other; a record less is one less: given w, data sets that are neighbors become multisets
that are neighbors, under either relation. On x the release has the mixture :math:`P_x = E_w
P_{x,w}` of the mechanism's laws given w, which has the same law for both neighbors. What is proved
for the mechanism then holds for both laws of each pair that is mixed, and

- (epsilon, delta) holds for the mixtures: the hockey-stick divergence
  :math:`\sup_S P(S) - e^\epsilon P'(S)` is jointly convex, so that of the mixtures is at most the
  largest of those mixed;
- rho holds for them: so is :math:`e^{(\alpha - 1) D_\alpha} = E_{P'}[(P/P')^\alpha]`, the
  perspective of a convex function, for every :math:`\alpha > 1`;
- the range need not: one dither may raise the ratio of one output, and another dither lower that
  of another output. JointExp of epsilon 4 for the levels .2 and .8 of 0, 0, 1, 2, 2 has the range
  4.262 under "swap" with one bit of dither.

So a range is stated *given the dithers* (`Guarantee.bounded_range`). Nothing else is needed where
it is used: whatever follows from the ranges of some mechanisms and is an (epsilon, delta) or a rho
holds given the dithers of all of them, whether they share one or each has its own, and hence, by
the above, without. Ranges along a chain of neighbors add up given the dithers of all of them.

Ranges add up along a chain of neighbors, so k records of one person cost k times the range of one
record: dividing the rate by k makes every statement below a statement about persons.

**Persons by weights.** With a `privacy_unit` the records of a person share M = 2^20 parts, which
count as records of their values, and ``max_contributions=M``. What a person's records become is a
function of theirs alone, so that data sets that differ in one person differ in at most M parts: all
of them come or go under "add-remove", and under "swap" they are replaced, some of them by missing
ones where two persons do not have as many. That is the premise of what is proved for k = M records,
in whatever groups they are (`privacy.parallel`) and under whatever keys (`privacy.key_selection`).
It costs nothing to have so many where the loss is linear in what of a person changes: exponential
mechanisms, permute-and-flip, Laplace and geometric noise and AboveThreshold have a rate per part
that is an M-th of the one per person, and are then, of records that share no part, what they are
without; noise of a rho grows with M as the counts do. Where single records set the noise, as with
smooth sensitivity, it costs a factor of M, and weights are refused.

**Rounding.** What is solved numerically is rounded against the caller: the formula evaluated at
the answer always satisfies the bound that was asked for.

Keys ([GJK21], [DDR20], ...) are listed in docs/papers.md; [DDR20] Theorem 3 is quoted as
[GJK21] Lemma 12, [CKS20] is Canonne, Kamath and Steinke 2020.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dpq_fast._arguments import in_our_words, names_of, refuse_misfit
from dpq_fast._checks import check_choice
from dpq_fast.privacy import (
    above_threshold,
    agg_tree,
    aggregates,
    aggregates_by,
    approx_quantiles,
    cdf,
    csmooth,
    extremes,
    ind_exp,
    intervals,
    joint_exp,
    kept_groups,
    key_selection,
    parallel,
    quantile_by,
    two_stage,
    unbounded_quantile,
)
from dpq_fast.privacy.above_threshold import one_sided_loss
from dpq_fast.privacy.accounting import Accountant, BudgetExceeded, Entry, charge, compose
from dpq_fast.privacy.bounded_range import (
    bounded_range_delta,
    bounded_range_epsilon,
    bounded_range_epsilon_each,
)
from dpq_fast.privacy.gaussian import gaussian_delta, gaussian_sigma
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.zcdp import (
    bounded_range_rho,
    discrete_laplace_rho,
    laplace_rho,
    pure_rho,
    rho_bounded_range,
    zcdp_epsilon,
    zcdp_rho,
)

# What an interval around an answer is asked for by.
INTERVAL_OPTIONS = ("confidence", "covers", "interval_share")

__all__ = [
    "Accountant",
    "BudgetExceeded",
    "Entry",
    "Guarantee",
    "above_threshold",
    "agg_tree",
    "aggregates",
    "aggregates_by",
    "approx_quantiles",
    "bounded_range_delta",
    "bounded_range_epsilon",
    "bounded_range_epsilon_each",
    "bounded_range_rho",
    "cdf",
    "charge",
    "compose",
    "csmooth",
    "discrete_laplace_rho",
    "extremes",
    "gaussian_delta",
    "gaussian_sigma",
    "guarantee",
    "ind_exp",
    "intervals",
    "joint_exp",
    "kept_groups",
    "key_selection",
    "laplace_rho",
    "one_sided_loss",
    "parallel",
    "pure_rho",
    "quantile_by",
    "rho_bounded_range",
    "two_stage",
    "unbounded_quantile",
    "zcdp_epsilon",
    "zcdp_rho",
]


@in_our_words
def guarantee(method: str, /, **parameters: Any) -> Guarantee:
    r"""What a release by `method` with these public parameters promises; no data needed.

    Parameters
    ----------
    method : str
        Name of the mechanism's public function; or "quantile", "percentile", "median", "min",
        "max", "iqr" or "box", for what these choose.
    **parameters
        As given to that function: `q` (but for "joint_exp", "quantile_by"), exactly one of
        `epsilon` and `rho`, `delta`, `neighbors`, `max_contributions`, and what else the privacy
        of that function depends on. All statements are per person of up to `max_contributions`
        records.

    Returns
    -------
    Guarantee
        Its `mechanism` says which one it is for.

        "joint_exp": pure `epsilon`, which is also the range, and its `bounded_range_rho`. A given
        `rho` makes it the range that it buys (`rho_bounded_range`). A `delta` is not used.
        "ind_exp": (`epsilon`, `delta`) for m distinct levels of range e each (`privacy.ind_exp`);
        also m times the rho of e, and range m e, which is `epsilon` where ``delta=0``.
        "quantile_by": pure `epsilon` for all groups together, and its rho, for "swap" with private
        keys and `q` given as little as half of it; for method "joint_exp" `epsilon` is also the
        range, and permute-and-flip ("ind_exp", the default for one level) has none. By other
        methods, and with a `delta` or a `rho`, the budget itself. Takes `public_by`, `method` and
        `selection_share`, which stands for a selection of keys: then (`epsilon`, `delta`). And for
        the default method with an `expected_n` the most `points` of the groups, and whether bounds
        are `two_sided`; with an accountant of composition "zcdp" add ``composed=True``.
        "approx_quantiles": pure `epsilon` and the rho that its steps add up to, or the other way
        round (`privacy.approx_quantiles`). Takes `base` and `split`.
        "unbounded_quantile": the same, by one search, two, or a recursion of them
        (`privacy.unbounded_quantile`); with one, also the range. Takes `lower`, `upper`, `invert`
        and `split`.
        "two_stage": pure `epsilon`, and the rhos of its two parts, or `rho` alone. Takes
        `expected_n` and `points`, as "agg_tree".
        "above_threshold": pure :math:`\epsilon_1 + 2\epsilon_2`; with `monotonic`, pure
        :math:`\epsilon_1 + \epsilon_2`, and range :math:`\epsilon_1 + 2\epsilon_2`. Takes
        `epsilon1`, `epsilon2`, `sensitivity`, `monotonic`, `noise` and `neighbors`.
        "sparse_vector": the same, and `halts` times as much of epsilon and of rho; a range only for
        ``halts=1``.
        "csmooth": `rho` alone, which takes the place of `epsilon`.
        "agg_tree": pure `epsilon` and its rho, :math:`2h` ("swap") or h times the `pure_rho` of
        :math:`\epsilon / 2h` or :math:`\epsilon / h`; with noise "gaussian", `rho` alone. Takes
        `noise`, `height` and `branching`, and for a rho of what is left to be chosen `expected_n`
        and `points`, the number of lattice points inside the bounds: a tree has no more levels than
        it takes to give each point a leaf.
        "cdf": of counts, as "agg_tree" ("histogram" has h = 1, "adaptive" its depth); "gaussian"
        (`epsilon`, `delta`) and the rho of its noise, or `rho` alone; "smooth_gaussian" (`epsilon`,
        `delta`). Takes `method`, its options, `points` and `expected_n`, as "agg_tree".
        "count": pure `epsilon`, and the rho of its noise.
        "select_keys": (`epsilon`, `delta`) alone (`privacy.key_selection`).
        "sum", "mean", "var", "std": pure `epsilon`, and the rho that the clip and the noise add up
        to; or `rho` alone, as "count" takes it, too. They take `lower`, `upper`, `method`, `share`,
        `split`, `expected_n` and `resolution`; ``q=None`` for a public clip.
        "histogram": as "count_by".
        "count_by", "sum_by", "mean_by", "var_by", "std_by": the same for all groups together. They
        take `public_by`, and `delta` with a `selection_share`, too.

        "quantile", "percentile", "median", "min", "max", "iqr", "box": what that call charges,
        whatever its `method` is, which may be "auto". Takes all public arguments of the call, such
        as `bounds`, `resolution` and `confidence`; and `n`, the number of rows of the column, where
        that is public ("swap") and "auto" goes by it. For an accountant of composition "zcdp",
        where "auto" draws one level by the exponential mechanism, add ``selection="exponential"``.

        With a `confidence`, of all that take one, the interval is included; where it has a budget
        of its own (`interval_share`), no range is stated.

    Raises
    ------
    TypeError, ValueError
        If `method` is unknown or a parameter breaks its rule.

    Examples
    --------
    >>> round(guarantee("joint_exp", epsilon=2.0).rho, 4)
    0.4745
    >>> guarantee("median", epsilon=1.0, bounds=(0, 120)).mechanism
    'ind_exp'
    """
    # which are built on this package
    from dpq_fast.mechanisms.extremes import FRONT
    from dpq_fast.mechanisms.quantile import charged
    from dpq_fast.mechanisms.registry import MECHANISMS

    check_choice("method", method, (*MECHANISMS, *FRONT))
    if method in FRONT:
        return charged(FRONT[method], **parameters)
    row = MECHANISMS[method]
    further = () if row.intervals is None else INTERVAL_OPTIONS
    known = {*names_of(row.calibrate), *further}
    for name in names_of(row.release):
        if name in parameters and name not in known:
            raise TypeError(
                f"{name} must be left out for guarantee({method!r}), which does not depend on it"
            )
    try:
        found = _by_mechanism(row, parameters)
    except (TypeError, ValueError):
        refuse_misfit(row.calibrate, (), parameters, f"guarantee({method!r})", further)
        raise
    return dataclasses.replace(found, mechanism=method)


def _by_mechanism(row: Any, parameters: dict[str, Any]) -> Guarantee:
    """What a row of the registry promises."""
    if row.intervals is not None:
        asked = {name: parameters[name] for name in INTERVAL_OPTIONS if name in parameters}
        parameters = {name: parameters[name] for name in parameters if name not in asked}
        request = intervals.Request.of(**asked)
        if row.intervals == "ends" and request is not None:
            found: Guarantee = intervals.calibrate_call(
                row.calibrate, request, **parameters
            ).guarantee
            return found
    found = row.calibrate(**parameters).guarantee
    return found


# --- Composition ----------------------------------------------------------------------------------
