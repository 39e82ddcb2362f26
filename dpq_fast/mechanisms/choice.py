"""Which mechanism is expected to miss the fewest ranks, by public facts alone."""

from __future__ import annotations

import math
from functools import lru_cache

from dpq_fast import privacy
from dpq_fast.privacy.relations import Relation

# Of a tree whose leaves are wider than points: how much worse records may fit its shape than the
# ones that the shape is made for; for more than `WEIGHT` records times epsilon, by their sixth root
# more, since what is lost inside leaves grows with n, and noise does not.
MISFIT, WEIGHT = 1.3, 1_000.0
# Errors are compared as if epsilon was at least that: below, squares of them are no numbers. And
# below that, trees may need noise of a larger scale than they can have.
LEAST_EPSILON, LEAST_OF_TREES = 1e-100, 1e-12


@lru_cache(maxsize=256)  # public; a program asks the same again and again
def most_accurate(
    m: int,
    relation: Relation,
    *,
    epsilon: float | None,
    n: int | None = None,
    points: int | None = None,
    dithered: bool = False,
) -> str:
    """The mechanism for m levels between bounds.

    Parameters
    ----------
    m : int
        Number of distinct levels.
    relation : Relation
    epsilon : float or None
        Budget for each record; None for a budget in rho.
    n : int, optional
        About how many records there are. Default: 10,000.
    points : int or None
        Number of lattice points; None without a lattice.
    dithered : bool, default False
        Whether it has to be one that dithers.

    Returns
    -------
    {"ind_exp", "joint_exp", "approx_quantiles", "agg_tree"}
        "ind_exp" for one level. With rho, which adds up by depth, "approx_quantiles" for more. With
        epsilon the one of the least `expected_errors`.
    """
    if m == 1:
        return "joint_exp" if dithered else "ind_exp"
    if epsilon is None:
        return "approx_quantiles"
    errors = expected_errors(m, relation, epsilon, n or privacy.agg_tree.DEFAULT_N, points)
    if dithered or epsilon < LEAST_OF_TREES:
        del errors["agg_tree"]
    return min(errors, key=errors.__getitem__)


def expected_errors(
    m: int, relation: Relation, epsilon: float, n: int, points: int | None
) -> dict[str, float]:
    r"""Mean rank errors of quantiles at m evenly spaced levels, by mechanism; a public estimate.

    Parameters
    ----------
    m, relation, epsilon, n, points
        As for `most_accurate`.

    Returns
    -------
    dict
        Name of a mechanism to records.

    Notes
    -----
    With p the number of parts of the data that a change reaches ("swap": 2, "add-remove": 1):

    - "joint_exp": :math:`2 \sqrt{m}\,(1 + (20 m / n \epsilon)^2) / \epsilon`. The levels share the
      budget and a path of outputs, so the error grows like a random walk, as long as there are
      enough records between two levels for it to be told from others; then it falls apart.
    - "approx_quantiles": :math:`2.6\,p \ln(m + 1) (1 + 50 / n \epsilon) / \epsilon`, since the
      budget is shared by depths.
    - "agg_tree": what its shape is chosen by (`privacy.agg_tree.shape_of`), whatever m is; where
      its leaves are wider than points :math:`1.3 \max(1, n \epsilon / 1000)^{1/6}` times that, for
      records may lie closer together than the shape is made for.

    The constants were fitted to simulations: ``papers/run.py --only auto_rule``.
    """
    epsilon = max(epsilon, LEAST_EPSILON)
    weight = n * epsilon
    tree, exact = privacy.agg_tree.least_error(points, n, relation.parts * math.sqrt(2.0) / epsilon)
    return {
        "joint_exp": 2.0 * math.sqrt(m) * (1.0 + (20.0 * m / weight) ** 2) / epsilon,
        "approx_quantiles": (
            2.6 * relation.parts * math.log1p(m) * (1.0 + 50.0 / weight) / epsilon
        ),
        "agg_tree": tree
        * n
        * (1.0 if exact else MISFIT * max(1.0, weight / WEIGHT) ** (1.0 / 6.0)),
    }
