"""The front door: private quantiles called like `np.quantile`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpq_fast import _checks, privacy
from dpq_fast.data.sample import Sample
from dpq_fast.mechanisms.registry import MECHANISMS, METHODS
from dpq_fast.mechanisms.unbounded_quantile import unbounded_ends
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of

# From how many levels on recursive splits miss fewer ranks than one joint draw: by how many parts
# of the data a change reaches (two under "swap"), and kind of budget. See the notes of `quantile`.
MANY_LEVELS = {
    (2, "epsilon"): 25,
    (1, "epsilon"): 15,
    (2, "rho"): 5,
    (1, "rho"): 3,
}
# Under swap, and with an epsilon, only if so few records times epsilon lie between two levels.
FEW_RECORDS = 20.0


def choose_method(
    method: str,
    m: int,
    neighbors: str,
    bounded: bool,
    epsilon: float | None = None,
    rows: int | None = None,
) -> str:
    """The mechanism behind a `method` of `quantile`, by public facts only.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    m : int
        Number of distinct levels.
    neighbors : {"swap", "add-remove"}
        The neighboring relation.
    bounded : bool
        Whether bounds are given.
    epsilon : float, optional
        None for a budget in rho.
    rows : int, optional
        Number of records, missing ones included; used under "swap" alone, where it is public.

    Returns
    -------
    str
        `method`; for "auto" the one of the table of `quantile`.
    """
    if _checks.check_choice("method", method, METHODS) != "auto":
        return method
    if not bounded:
        return "unbounded_quantile"
    budget = "rho" if epsilon is None else "epsilon"
    relation = relation_of(neighbors)
    many = m >= MANY_LEVELS[relation.parts, budget]
    if many and relation.n_is_public and epsilon is not None:
        many = rows is not None and rows * _checks.check_epsilon(epsilon) < FEW_RECORDS * (m + 1)
    return "approx_quantiles" if many else "joint_exp"


def quantile(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    method: str = "auto",
    neighbors: str = "swap",
    resolution: float | None = None,
    dither: bool | None = None,
    counts: Any = None,
    assume_sorted: bool = False,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    workers: int = 1,
    **method_options: Any,
) -> Any:
    """Release private quantiles of a numeric column.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private sample, any order: an array, a pandas, polars or pyarrow column, a sequence, or a
        `Sample`. Clamped to `bounds`; NaN and null are left out (`nan_policy`).
    q : float or array_like of float
        Levels in [0, 1], any order and shape. Public.
    epsilon : float
        Total budget of the call. Public. Exactly one of `epsilon` and `rho`.
    delta : float, default 0
        Allowed failure of the pure guarantee. "ind_exp" uses it; the others do not need it.
        Public.
    rho : float, optional
        Total zCDP budget instead of `epsilon`. "csmooth" takes nothing else; "agg_tree" takes it
        with ``noise="gaussian"``. Public.
    bounds : (float, float), optional
        Finite low < high, chosen without looking at `x`. Public. Left out for a `Sample`, which
        has its own, and for "unbounded_quantile", which can do without.
    method : str, default "auto"
        The mechanism: "joint_exp", "ind_exp", "approx_quantiles", "unbounded_quantile",
        "agg_tree", "csmooth", or "auto", which chooses by what is public (see Notes).
    neighbors : {"swap", "add-remove"}, default "swap"
        What the budget protects: one record replaced (n is public), or one added or deleted.
    resolution, dither, counts, assume_sorted, nan_policy
        As in `joint_exp`. "agg_tree" and "unbounded_quantile" have no dither and need no order; the
        latter has a lattice only where a `resolution` is given.
    max_contributions : int, default 1
        Up to this many records per person: the guarantee is per person.
    accountant : Accountant, optional
        Charged with the release; refuses before `x` is touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system.
    workers : int, default 1
        Threads for passes over a long `x`, as in `scipy.fft`; the answer does not depend on it.
    **method_options
        Further arguments of the method, such as ``kernel=`` of "joint_exp", ``lower=`` of
        "unbounded_quantile" or ``height=`` of "agg_tree".

    Returns
    -------
    float or ndarray of float64
        A float for a scalar `q`, else an array of its shape; non-decreasing in `q`, inside
        `bounds`, in the unit of `x`.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in the function of the method.

    See Also
    --------
    joint_exp, ind_exp, approx_quantiles, unbounded_quantile, agg_tree, csmooth : The mechanisms,
        with privacy guarantee and cost.
    dpq_fast.privacy.guarantee : What a call promises.

    Notes
    -----
    **Choice of "auto"**, by public facts alone, never by the data:

    ======  ==========  =======  ====================================  ====================
    bounds  neighbors   budget   levels                                method
    ======  ==========  =======  ====================================  ====================
    none    any         any      any                                   "unbounded_quantile"
    given   swap        epsilon  m < 25, or n epsilon >= 20 (m + 1)    "joint_exp"
    given   swap        epsilon  others                                "approx_quantiles"
    given   swap        rho      m < 5                                 "joint_exp"
    given   swap        rho      m >= 5                                "approx_quantiles"
    given   add-remove  epsilon  m < 15                                "joint_exp"
    given   add-remove  epsilon  m >= 15                               "approx_quantiles"
    given   add-remove  rho      m < 3                                 "joint_exp"
    given   add-remove  rho      m >= 3                                "approx_quantiles"
    ======  ==========  =======  ====================================  ====================

    n is the number of rows, missing ones included, which "swap" takes as public; a `Sample`, or a
    column with `counts`, is taken as large. One joint draw misses fewer ranks as long as there are
    enough records between two levels for its budget. Recursive splits gain where budgets add up by
    depth (rho), and where a record is in one part of each depth ("add-remove"), which costs half of
    what a replacement does, while the joint draw's sensitivity is nearly the same under both.
    ``papers/run.py --only auto_rule`` has the errors.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(18, 80, size=10_000)
    >>> out = quantile(ages, [0.25, 0.5, 0.75], epsilon=1.0, bounds=(0, 120))
    >>> out.shape
    (3,)
    """
    delta = _checks.check_delta(delta)
    bounded = bounds is not None or isinstance(x, Sample)
    m = Levels(q).m
    sized = method == "auto" and m >= MANY_LEVELS[2, "epsilon"] and counts is None
    rows = len(x) if sized and hasattr(x, "__len__") else None
    chosen = choose_method(method, m, neighbors, bounded, epsilon, rows)
    row = MECHANISMS[chosen]
    options = dict(
        neighbors=neighbors,
        counts=counts,
        nan_policy=nan_policy,
        max_contributions=max_contributions,
        accountant=accountant,
        rng=rng,
        workers=workers,
        **row.budget(epsilon, delta, rho),
        **method_options,
    )
    if row.reads == "records":
        options.update(unbounded_ends(bounds, resolution, dither, assume_sorted))
        return row.release(x, q, **options)
    options.update(bounds=bounds, resolution=resolution)
    if row.reads == "leaves":
        _checks.check_flag("assume_sorted", assume_sorted)
        if dither is not None and _checks.check_flag("dither", dither):
            raise ValueError(f"dither must be left out for method {chosen!r}, got True")
        return row.release(x, q, **options)
    return row.release(x, q, dither=dither, assume_sorted=assume_sorted, **options)


def percentile(x: Any, q: Any, **options: Any) -> Any:
    """Release private percentiles: `quantile` at ``q / 100``, with the same options.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private sample, as in `quantile`.
    q : float or array_like of float
        Percentages in [0, 100], any order and shape. Public.
    **options
        As in `quantile`, with the same guarantee.

    Returns
    -------
    float or ndarray of float64
        In the shape of `q`.
    """
    percentages = np.asarray(q)
    if percentages.dtype.kind not in "iuf":
        raise TypeError(f"q must be real numbers, got dtype {percentages.dtype}")
    if not ((percentages >= 0) & (percentages <= 100)).all():
        raise ValueError("q must lie in [0, 100]")
    return quantile(x, percentages / 100.0, **options)


def median(x: Any, **options: Any) -> float:
    """Release a private median: `quantile` at 0.5, with the same options.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private sample, as in `quantile`.
    **options
        As in `quantile`, with the same guarantee.

    Returns
    -------
    float
    """
    middle: float = quantile(x, 0.5, **options)
    return middle
