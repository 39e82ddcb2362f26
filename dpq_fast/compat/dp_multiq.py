"""The functions of `dp_multiq`, the code published with JointExp [GJK21], by their signatures.

Replace ``from dp_multiq.joint_exp import joint_exp`` by ``from dpq_fast.compat.dp_multiq import
joint_exp``, and likewise `ind_exp`, `opt_comp_calculator`, `csmooth`, `tree` and `agg_tree`: names,
order and defaults of the arguments are the published ones. `resolution`, `accountant` and `rng` can
be given by name in addition. What is the same for all functions, and differs from that code:

- **Guarantees** hold for every data set, in floating point. Answers lie on a public lattice
  (`resolution`), and no output has the probability 0 on one data set and not on its neighbor.
- **Ties** cost nothing, or little: records are spread over their cell of the lattice before the
  mechanism, or scored by how many there are. Give ``resolution=1`` where values are whole.
- **Data** may come in any order, as any column that `dpq_fast` takes. It is clamped to the bounds;
  NaN is left out. No records, and all records equal, are fine.
- **Levels** may come in any order, with duplicates, which are released once; answers are in the
  order of `qs`, and do not cross. `qs` may be one number.
- **Noise** is cryptographic. ``np.random.seed`` has no effect; `rng` takes a seed, for tests.
- **Neighbors**: with ``swap=True`` one record is replaced, with ``swap=False`` one is added or
  removed.

`smooth` has no counterpart: `csmooth` is more accurate. Nor has `csmooth_tune_and_return_ts`, which
looks at the private data: `dpq_fast.mechanisms.csmooth.tune_t` does not.
"""

from __future__ import annotations

import math
from typing import Any

from dpq_fast import _checks, privacy
from dpq_fast._arguments import in_our_words
from dpq_fast._docs import spell_out
from dpq_fast.mechanisms.agg_tree import agg_tree as _agg_tree
from dpq_fast.mechanisms.csmooth import csmooth as _csmooth
from dpq_fast.mechanisms.ind_exp import ind_exp as _ind_exp
from dpq_fast.mechanisms.joint_exp import joint_exp as _joint_exp
from dpq_fast.privacy.levels import Levels

__all__ = ["agg_tree", "csmooth", "ind_exp", "joint_exp", "opt_comp_calculator", "tree"]


def _neighbors(swap: Any) -> str:
    return "swap" if _checks.check_flag("swap", swap) else "add-remove"


@in_our_words
def joint_exp(
    sorted_data: Any,
    data_low: float,
    data_high: float,
    qs: Any,
    eps: float,
    swap: bool,
    *,
    resolution: float | None = None,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
) -> Any:
    """Release quantiles at once by JointExp: `eps`-DP.

    Parameters
    ----------
    sorted_data : array_like of real numbers, shape (n,)
        Private records. They need not be sorted; it is faster if they are.
    data_low, data_high : float
        Finite bounds, low < high, chosen without looking at the data. Public.
    qs : float or array_like of float
        Levels in [0, 1]. Public.
    eps : float
        Budget of the whole call, positive and finite. Public.
    swap : bool
        Whether neighbors differ by a replaced record, and not by an added or removed one.
    resolution : float, optional
        Spacing of the lattice of answers, as in `dpq_fast.joint_exp`; 0 for the published,
        continuous law. Public.
    accountant : Accountant, optional
        Charged with the guarantee below; refuses before the data is touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system.

    Returns
    -------
    ndarray of float64
        An answer for each of `qs`; a float for one number.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `dpq_fast.joint_exp`.

    Notes
    -----
    **Guarantee.** Pure `eps`, which is also the range, under the relation of `swap`: that of
    ``dpq_fast.joint_exp(epsilon=eps)``, with the published sensitivities.

    **Differs.** The published convolutions clip at zero what an FFT returns as negative: half of
    the entries on 2,000 records, so that outputs which have a probability never come. With many
    ties only such entries are left, and one record decides between answers.

    Examples
    --------
    >>> joint_exp([1, 2, 3, 4], 0, 10, [0.25, 0.5, 0.75], 1.0, swap=True).shape
    (3,)
    """
    return _joint_exp(
        sorted_data,
        qs,
        epsilon=_checks.check_epsilon(eps, "eps"),
        bounds=(data_low, data_high),
        neighbors=_neighbors(swap),
        resolution=resolution,
        accountant=accountant,
        rng=rng,
    )


@in_our_words
def ind_exp(
    sorted_data: Any,
    data_low: float,
    data_high: float,
    qs: Any,
    divided_eps: float,
    swap: bool,
    *,
    resolution: float | None = None,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
) -> Any:
    """Release quantiles by one exponential mechanism each: each is `divided_eps`-DP.

    Parameters
    ----------
    sorted_data, data_low, data_high, qs, swap
        As in `joint_exp`.
    divided_eps : float
        Budget of each level, positive and finite: a total over the number of levels, or what
        `opt_comp_calculator` gives. Public.
    resolution, accountant, rng
        As in `joint_exp`.

    Returns
    -------
    ndarray of float64
        An answer for each of `qs`; a float for one number.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `dpq_fast.ind_exp`.

    Notes
    -----
    **Guarantee.** Of m distinct levels each has the range `divided_eps`. Together they are
    (m `divided_eps`)-DP, m times `bounded_range_rho(divided_eps)`-zCDP, and, with the
    `divided_eps` of ``opt_comp_calculator(eps, delta, m)``, (`eps`, `delta`)-DP. `accountant` is
    charged with the first two: for a charge of (`eps`, `delta`) call
    ``dpq_fast.ind_exp(epsilon=eps, delta=delta)``, which is the same release.

    **Differs.** The utility of an answer is how deep the target lies among the records that have
    its value, of the same sensitivity as the published one, which cannot choose a value that
    several records have. Permute-and-flip, the default of `dpq_fast.ind_exp` for a pure budget, is
    not used here: it has no range for `opt_comp_calculator` to compose.
    """
    levels = Levels(qs)
    each = _checks.check_epsilon(divided_eps, "divided_eps")
    total = levels.m * each
    while total / levels.m > each:  # the product was rounded up
        total = math.nextafter(total, 0.0)
    return _ind_exp(
        sorted_data,
        qs,
        epsilon=total,
        selection=privacy.ind_exp.EXPONENTIAL,
        bounds=(data_low, data_high),
        neighbors=_neighbors(swap),
        resolution=resolution,
        accountant=accountant,
        rng=rng,
    )


@in_our_words
def opt_comp_calculator(overall_eps: float, overall_delta: float, num_comps: int) -> float:
    """The largest budget of each of some exponential mechanisms for a total of (eps, delta).

    Parameters
    ----------
    overall_eps : float
        Total epsilon, positive and finite.
    overall_delta : float
        Total delta, in [0, 1).
    num_comps : int
        Number of mechanisms, from 1 to 2^15, none of which depends on the output of another.

    Returns
    -------
    float
        What `ind_exp` takes as `divided_eps`: `num_comps` mechanisms of this range are
        (`overall_eps`, `overall_delta`)-DP together.

    Notes
    -----
    That of `dpq_fast.privacy.bounded_range_epsilon_each`: the same theorem ([DDR20], Theorem 3),
    solved to 1e-13 and rounded down. The published search goes by steps of 0.01, and gives up to
    that much less. An `overall_delta` of 0 gives ``overall_eps / num_comps``.

    Examples
    --------
    >>> round(opt_comp_calculator(1.0, 1e-6, 10), 4)
    0.155
    """
    count = _checks.check_count("num_comps", num_comps)
    epsilon = _checks.check_epsilon(overall_eps, "overall_eps")
    return privacy.bounded_range_epsilon_each(count, epsilon, overall_delta)


@in_our_words
def csmooth(
    sorted_data: Any,
    data_low: float,
    data_high: float,
    qs: Any,
    divided_eps: float,
    ts: Any = None,
    *,
    swap: bool = True,
    resolution: float | None = None,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
) -> Any:
    r"""Release quantiles with noise scaled to their smooth sensitivity: each is eps^2/2-zCDP.

    Parameters
    ----------
    sorted_data, data_low, data_high, qs
        As in `joint_exp`.
    divided_eps : float
        :math:`\sqrt{2\rho}` of the rho of each level, positive and finite: a total over the square
        root of the number of levels. Public.
    ts : float or array_like of float, optional
        Smoothness, one for all levels or one for each, from 1e-100 to 10 times `divided_eps`.
        Public: never tuned on the data. Default: `dpq_fast.privacy.csmooth.default_smoothness`.
    swap : bool, default True
        Which relation the accountant has. The noise, and the guarantee, are the same for both; the
        published code is for ``swap=True`` alone.
    resolution, accountant, rng
        As in `joint_exp`. The accountant needs the composition "zcdp": no epsilon is stated.

    Returns
    -------
    ndarray of float64
        An answer for each of `qs`; a float for one number.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `dpq_fast.csmooth`.

    Notes
    -----
    **Guarantee.** zCDP of :math:`m \epsilon^2 / 2` for m distinct levels of `divided_eps`
    :math:`\epsilon`, under either relation: the published one. There is no epsilon without a delta;
    for one, `dpq_fast.privacy.zcdp_epsilon`.

    **Differs.** The scale of the noise is certified by Rényi divergences of all orders, with 2 to 5
    times less noise for the same rho (`dpq_fast.csmooth`).
    """
    levels = Levels(qs)
    each = _checks.check_epsilon(divided_eps, "divided_eps")
    return _csmooth(
        sorted_data,
        qs,
        rho=levels.m * (each * each / 2.0),
        t=ts,
        bounds=(data_low, data_high),
        neighbors=_neighbors(swap),
        resolution=resolution,
        accountant=accountant,
        rng=rng,
    )


@in_our_words
def tree(
    sampled_data: Any,
    data_low: float,
    data_high: float,
    qs: Any,
    eps: float,
    delta: float,
    swap: bool,
    tree_height: int = 4,
    branching_factor: int = 16,
    *,
    resolution: float | None = None,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
) -> Any:
    r"""Release a tree of noisy counts, and read quantiles off it: (`eps`, `delta`)-DP.

    Parameters
    ----------
    sampled_data : array_like of real numbers, shape (n,)
        Private records.
    data_low, data_high, qs, swap
        As in `joint_exp`.
    eps : float
        Budget of the whole tree, positive and finite. Public.
    delta : float
        In [0, 1). 0 for discrete Laplace noise, else discrete Gaussian noise. Public.
    tree_height, branching_factor : int
        Levels below the root, and children of a node: at most 2^26 leaves. Public.
    resolution, accountant, rng
        As in `joint_exp`.

    Returns
    -------
    ndarray of float64
        An answer for each of `qs`; a float for one number.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `dpq_fast.agg_tree`.

    See Also
    --------
    agg_tree : The counts of all levels combined, which is more accurate for the same budget.

    Notes
    -----
    **Guarantee.** With ``delta=0`` pure `eps`. Else zCDP of the largest rho that is (`eps`,
    `delta`)-DP, ``dpq_fast.privacy.zcdp_rho(eps, delta)``. It is this rho that an accountant is
    charged with, of the composition "zcdp".

    **Differs.** Noise is drawn exactly, on integers. That of `delta` has its standard deviation
    from the L2 sensitivity, :math:`\sqrt{2h}` for ``swap=True`` and :math:`\sqrt{h}` else, for
    height h, and holds for every `eps`; the published one has 2h and h, and a formula that is
    proved for `eps` below 1. Quantiles are read off the non-negative masses nearest to the counts,
    not by a descent that divides by noise. A tree has no more leaves than the lattice has points.
    """
    return _tree(
        sampled_data,
        qs,
        eps,
        delta,
        aggregate=False,
        bounds=(data_low, data_high),
        neighbors=_neighbors(swap),
        height=tree_height,
        branching=branching_factor,
        resolution=resolution,
        accountant=accountant,
        rng=rng,
    )


@in_our_words
def agg_tree(
    sampled_data: Any,
    data_low: float,
    data_high: float,
    qs: Any,
    eps: float,
    delta: float,
    swap: bool,
    tree_height: int,
    branching_factor: int,
    *,
    resolution: float | None = None,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
) -> Any:
    """Release a tree of noisy counts, combine them, and read quantiles off: (`eps`, `delta`)-DP.

    Parameters
    ----------
    sampled_data, data_low, data_high, qs, eps, delta, swap, tree_height, branching_factor, \
resolution, accountant, rng
        As in `tree`.

    Returns
    -------
    ndarray of float64
        An answer for each of `qs`; a float for one number.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `dpq_fast.agg_tree`.

    Notes
    -----
    **Guarantee.** That of `tree`.

    **Differs.** As `tree`. The counts are combined by least squares, as Honaker's estimates are
    meant to; in the published code the pass from above repeats numbers of nodes where their counts
    belong, and the root has no count for ``swap=False``.
    """
    return _tree(
        sampled_data,
        qs,
        eps,
        delta,
        aggregate=True,
        bounds=(data_low, data_high),
        neighbors=_neighbors(swap),
        height=tree_height,
        branching=branching_factor,
        resolution=resolution,
        accountant=accountant,
        rng=rng,
    )


def _tree(x: Any, qs: Any, eps: float, delta: float, **options: Any) -> Any:
    """A tree of Laplace noise, or of Gaussian noise where there is a delta."""
    eps, delta = _checks.check_epsilon(eps, "eps"), _checks.check_delta(delta)
    if delta == 0.0:
        return _agg_tree(x, qs, epsilon=eps, **options)
    return _agg_tree(x, qs, rho=privacy.zcdp_rho(eps, delta), noise="gaussian", **options)


spell_out({name: globals()[name] for name in __all__})
