"""Which mechanism is expected to miss the fewest ranks, by public facts alone."""

from __future__ import annotations

import math
from functools import lru_cache

from dpq_fast.privacy import agg_tree, intervals, two_stage
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import Relation

# Of a tree whose leaves are wider than points: how much worse records may fit its shape than the
# ones that the shape is made for; for more than `WEIGHT` records times epsilon, by their sixth root
# more, since what is lost inside leaves grows with n, and noise does not.
MISFIT, WEIGHT = 1.3, 1_000.0
# Errors are compared as if epsilon was at least that: below, squares of them are no numbers. And
# below that, trees may need noise of a larger scale than they can have.
LEAST_EPSILON, LEAST_OF_TREES = 1e-100, 1e-12
# And above that, numbers of records times epsilon are no numbers any more.
MOST = 1e300
# A level is near an end where so few records times epsilon lie beyond: an exponential mechanism
# does not tell it from what is far out. A pilot does, if there are at least so many in all; and
# with so many it takes next to nothing.
NEAR_AN_END, PILOT_TELLS, PILOT_IS_CHEAP = 15.0, 100.0, 2_000.0
# Where it is cheap, several levels are to have one: what many records share need not be a round
# number, and round numbers need not be shared. So much worse is "approx_quantiles" then, which has
# no pilot; and with rho so many levels are as good by a joint draw.
ASTRAY, FEW_LEVELS = 1.5, 9


@lru_cache(maxsize=256)  # public; a program asks the same again and again
def most_accurate(
    levels: Levels,
    relation: Relation,
    *,
    epsilon: float,
    n: int | None = None,
    max_contributions: int = 1,
    points: int | None = None,
    two_sided: bool = False,
    dithered: bool = False,
    rho: bool = False,
    in_groups: bool = False,
) -> str:
    """The mechanism for levels between bounds.

    Parameters
    ----------
    levels : Levels
    relation : Relation
    epsilon : float
        Budget for each record; for a budget in rho the range that it buys.
    n : int, optional
        About how many records there are. Default: those of 10,000 persons.
    max_contributions : int, default 1
        How many records a person has at most.
    points : int or None
        Number of lattice points; None without a lattice, which two stages need.
    two_sided : bool, default False
        Whether 0 lies inside the bounds.
    dithered : bool, default False
        Whether it has to be one that dithers.
    rho : bool, default False
        Whether the budget is a rho.
    in_groups : bool, default False
        Whether it is for each of many groups: then a pilot takes too long where it is not needed.

    Returns
    -------
    {"ind_exp", "joint_exp", "approx_quantiles", "agg_tree", "two_stage"}
        "two_stage" where a level is near an end; and where a pilot takes next to nothing, for one
        level between bounds on both sides of 0, and in place of "joint_exp" for several, if n is
        given: a pilot for too many records finds nothing. Else for one level "ind_exp", for several
        with rho, which adds up by depth, "approx_quantiles", and with epsilon the one of the least
        `expected_errors`.
    """
    q, m = levels.values, levels.m
    is_known = n is not None
    n = agg_tree.expected_records(n, max_contributions)
    weight = min(n * epsilon, MOST)
    may_pilot = points is not None and not dithered and weight >= PILOT_TELLS
    near_an_end = may_pilot and min(q[0], 1.0 - q[-1]) * weight < NEAR_AN_END
    is_cheap = may_pilot and weight >= PILOT_IS_CHEAP
    if m == 1:
        if near_an_end or (is_cheap and two_sided):
            return "two_stage"
        return "joint_exp" if dithered else "ind_exp"
    is_cheap = is_cheap and is_known and not in_groups
    if rho:
        by_pilot = near_an_end or (is_cheap and m <= FEW_LEVELS)
        return "two_stage" if by_pilot else "approx_quantiles"
    errors = expected_errors(m, relation, epsilon, n, points)
    if dithered or epsilon < LEAST_OF_TREES:
        errors = {name: errors[name] for name in ("joint_exp", "approx_quantiles")}
    if near_an_end:
        del errors["joint_exp"], errors["approx_quantiles"]
    elif is_cheap and "two_stage" in errors:
        errors["two_stage"] = min(errors["two_stage"], errors.pop("joint_exp"))
        errors["approx_quantiles"] *= ASTRAY
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
    - "two_stage": that of a tree of leaves where records are (`privacy.two_stage.expected_error`),
      a third more, since it goes astray where many records share numbers that a pilot misses.
    - "agg_tree": where each point has a leaf, what its shape is chosen by
      (`privacy.agg_tree.shape_of`), whatever m is; and without a lattice, where it takes the place
      of "two_stage", :math:`1.3 \max(1, n \epsilon / 1000)^{1/6}` times that, for records may lie
      closer together than the shape is made for.

    The constants were fitted to simulations: ``papers/run.py --only auto_rule`` and ``--only
    first_contact``.
    """
    epsilon = max(epsilon, LEAST_EPSILON)
    weight = n * epsilon
    tree, exact = agg_tree.least_error(points, n, relation.parts * math.sqrt(2.0) / epsilon)
    errors = {
        "joint_exp": two_stage.expected_of_joint(m, weight) / epsilon,
        "approx_quantiles": (
            2.6 * relation.parts * math.log1p(m) * (1.0 + 50.0 / weight) / epsilon
        ),
    }
    if points is not None:
        learned = two_stage.expected_error(weight, relation)
        errors["two_stage"] = learned / two_stage.SURE / epsilon
    if exact:
        errors["agg_tree"] = tree * n
    elif points is None:
        errors["agg_tree"] = tree * n * MISFIT * max(1.0, weight / WEIGHT) ** (1.0 / 6.0)
    return errors


def value_epsilon(
    epsilon: float | None,
    request: Request | None,
    levels: Levels,
    neighbors: str,
    max_contributions: int,
    expected_n: int | None,
) -> float | None:
    """What is left of an epsilon for the values, beside intervals."""
    if epsilon is None or request is None:
        return epsilon
    person = neighbors, max_contributions
    request = intervals.with_share(request, levels, epsilon, None, *person, expected_n)
    own: float = intervals.split(request, epsilon, 0.0, None, *person)[0]["epsilon"]
    return own
