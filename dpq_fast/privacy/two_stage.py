r"""Two stages: a pilot asks where records lie, and the release goes by what it said.

**Neighbors, sensitivity, composition.** Both stages are mechanisms of their own, private for every
value of what they take as public, under the same relation. The pilot is JointExp on a lattice and a
prior that are public. What it releases is public from then on, and so is whatever is made of it: a
lattice and a prior (`dpq_fast.data.prior` says why these cost no privacy), which the second stage
takes. So for each outcome of the pilot the second stage has its guarantee, and this is adaptive
composition: epsilons add up [DR14, Theorem 3.16], and so do rhos [BS16, Lemma 2.3]. No range is
claimed: theorems that compose by ranges ask for mechanisms that are chosen beforehand. The pilot's
answers are paid for, and may be known.

Nothing about the records decides the split, the pilot's levels or the kind of the second stage.
They follow from the levels that are asked for, the budget, and the number of records as far as that
is public (`design_of`).

References
----------
- [DR14], [BS16]: docs/papers.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dpq_fast._checks import check_count, check_delta, check_max_contributions
from dpq_fast.privacy import agg_tree, ind_exp, joint_exp
from dpq_fast.privacy.accounting import Calibrated
from dpq_fast.privacy.budgets import resolve_epsilon
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import bounded_range_rho

# A pilot's levels: for one answer or few, for a tree, and for one of few records times epsilon.
QUARTILES, FIFTHS, THIRDS = (0.25, 0.75), (0.1, 0.3, 0.5, 0.7, 0.9), (0.2, 0.5, 0.8)
# A quartile is told from the bounds by so many nats, which a pilot gets; that of a tree gets a
# share that falls with the root of records times epsilon, from this one for 1,000. And shares are
# between these: less would not be felt by the rest, and take the pilot long.
LEAST_SHARE, MOST_SHARE = 0.01, 0.4
NATS, SHARE_OF_TREES = 37.5, 0.3
# Records times epsilon that a tree's pilot takes to answer five levels.
FEW = 300.0
# A tree is taken where it is expected to miss less than this part of what JointExp misses: it goes
# astray where many records share numbers that it does not know of.
SURE = 0.75
# Errors are compared as if there was at least so much: below, squares are no numbers.
LEAST_WEIGHT = 1e-100
# The spread of records as a share of what a learned prior spreads, for the shape of a tree. That is
# for up to so many records times epsilon, and falls with the root of more, down to a part of it, as
# leaves are to be where many share numbers that no pilot sees.
SPREAD, MANY, LEAST_SPREAD = 0.15, 10_000.0, 0.03


class Design(NamedTuple):
    """How a call is split, by public facts.

    Attributes
    ----------
    levels : Levels
        Of the pilot.
    share : float
        The part of the budget that the pilot gets; of rho, of its square root.
    main : {"ind_exp", "joint_exp", "agg_tree"}
        What the second stage is.
    """

    levels: Levels
    share: float
    main: str


class Calibration(NamedTuple):
    """What a call of `two_stage` spends and guarantees.

    Attributes
    ----------
    design : Design
    pilot : joint_exp.Calibration
    main : ind_exp.Calibration, joint_exp.Calibration or agg_tree.Calibration
        Of the second stage.
    epsilon, rho
        The budget as it was given.
    relation : Relation
    """

    design: Design
    pilot: joint_exp.Calibration
    main: Calibrated
    epsilon: float | None
    rho: float | None
    relation: Relation

    @property
    def leaves(self) -> int:
        """Of the tree that the second stage is; 0 where it is none."""
        return _leaves(self.main) if isinstance(self.main, agg_tree.Calibration) else 0

    @property
    def guarantee(self) -> Guarantee:
        """Two releases, the second of which goes by the first."""
        neighbors = self.relation.name
        if self.rho is not None:
            return Guarantee(None, 0.0, self.rho, None, neighbors, "zcdp")
        pilot, main = self.pilot.guarantee.implied_rho, self.main.guarantee.implied_rho
        assert pilot is not None and main is not None  # both are pure
        return Guarantee(self.epsilon, 0.0, pilot + main, None, neighbors, "basic")


def expected_error(weight: float, relation: Relation) -> float:
    r"""What a tree of a learned prior is expected to miss: records times epsilon, whatever m is.

    :math:`7.5 \max((w / 1000)^{.15}, (1000 / w)^{.8})\,(1 + w / 30{,}000)` for w records times
    epsilon under "swap"; under "add-remove" trees have half the noise. The last factor is for what
    a pilot does not see: records that share numbers, or lie in few places. They are spread over
    leaves, and what that misses grows with their number. Measured over the zoo: ``papers/run.py
    --only first_contact``.
    """
    halved = relation.parts / 2.0
    weight = max(weight, LEAST_WEIGHT) / halved / 1_000.0
    missed: float = 7.5 * halved * max(weight**0.15, weight**-0.8) * (1.0 + weight / 30.0)
    return missed


def expected_of_joint(m: int, weight: float) -> float:
    r"""What JointExp is expected to miss: :math:`2 \sqrt{m}\,(1 + (20 m / w)^2)`."""
    return 2.0 * math.sqrt(m) * (1.0 + (20.0 * m / max(weight, LEAST_WEIGHT)) ** 2)


def design_of(levels: Levels, weight: float, relation: Relation) -> Design:
    """How a call is split.

    Parameters
    ----------
    levels : Levels
        That are asked for.
    weight : float
        Number of records times epsilon for each of them.
    relation : Relation

    Returns
    -------
    Design
        One level is drawn by "ind_exp", of several those by "agg_tree" of which it is expected to
        miss clearly less than "joint_exp".
    """
    m, weight = levels.m, max(weight, LEAST_WEIGHT)
    if m > 1 and expected_error(weight, relation) < SURE * expected_of_joint(m, weight):
        return design_of_tree(weight)
    share = NATS / (QUARTILES[0] * weight)
    main = "ind_exp" if m == 1 else "joint_exp"
    return Design(Levels.of(QUARTILES), min(max(share, LEAST_SHARE), MOST_SHARE), main)


def design_of_tree(weight: float) -> Design:
    """How a call is split where a tree follows the pilot; `weight` as for `design_of`."""
    weight = max(weight, LEAST_WEIGHT)
    share = min(max(SHARE_OF_TREES * math.sqrt(1e3 / weight), LEAST_SHARE), MOST_SHARE)
    return Design(Levels.of(FIFTHS if weight >= FEW else THIRDS), share, "agg_tree")


def calibrate(
    q: Any = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    expected_n: int | None = None,
    points: int | None = None,
) -> Calibration:
    r"""The parts of a budget that a pilot and the release get.

    Parameters
    ----------
    q : float, array_like or Levels
        The levels.
    epsilon : float
        Total budget, per person.
    delta : float, default 0
        Allowed, not used: both stages are pure.
    rho : float, optional
        Total zCDP budget instead.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.
    expected_n : int, optional
        About how many records there are, by what is public. Default: 10,000.
    points : int, optional
        Number of lattice points, as far as it is public before the pilot: a tree has no more levels
        than it takes to give each a leaf.

    Returns
    -------
    Calibration

    Notes
    -----
    Of an epsilon the pilot gets the share s, of a rho the rho that the range s times that of all of
    it has, and the rest is what is left, rounded down.
    """
    if q is None:
        raise ValueError("q must be given for method 'two_stage', got None")
    levels = Levels.of(q)
    relation, weight = relation_of(neighbors), _weight(epsilon, rho, max_contributions, expected_n)
    design = design_of(levels, weight, relation)
    return _calibrated(
        design,
        levels,
        weight,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        relation=relation,
        max_contributions=max_contributions,
        expected_n=expected_n,
        points=points,
    )


def calibrate_tree(
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    expected_n: int | None = None,
    points: int | None = None,
) -> Calibration:
    """As `calibrate`, of a tree that answers whatever is asked."""
    weight = _weight(epsilon, rho, max_contributions, expected_n)
    design = design_of_tree(weight)
    return _calibrated(
        design,
        design.levels,
        weight,
        epsilon=epsilon,
        delta=0.0,
        rho=rho,
        relation=relation_of(neighbors),
        max_contributions=max_contributions,
        expected_n=expected_n,
        points=points,
    )


def _weight(
    epsilon: float | None, rho: float | None, max_contributions: int, expected_n: int | None
) -> float:
    """Number of records times epsilon for each of them."""
    k = check_max_contributions(max_contributions)
    if expected_n is not None:
        expected_n = check_count("expected_n", expected_n, 0)
    n = agg_tree.DEFAULT_N * k if expected_n is None else expected_n
    return n * resolve_epsilon(epsilon, rho) / k


def _leaves(tree: agg_tree.Calibration) -> int:
    leaves: int = tree.branching**tree.height
    return leaves


def _calibrated(
    design: Design,
    levels: Levels,
    weight: float,
    *,
    epsilon: float | None,
    delta: float,
    rho: float | None,
    relation: Relation,
    max_contributions: int,
    expected_n: int | None,
    points: int | None,
) -> Calibration:
    check_delta(delta)
    if points is not None:
        points = check_count("points", points, 2)
    each = resolve_epsilon(epsilon, rho)
    person = dict[str, Any](neighbors=relation.name, max_contributions=max_contributions)
    own = design.share * each
    pilot = joint_exp.calibrate(design.levels, epsilon=own, **person)
    rest: dict[str, Any]
    if rho is None:
        rest = dict(epsilon=math.nextafter(each - own, 0.0))
    else:
        rest = dict(rho=math.nextafter(rho - bounded_range_rho(own), 0.0))
    main: Calibrated
    if design.main == "ind_exp":
        main = ind_exp.calibrate(levels, **rest, **person)
    elif design.main == "joint_exp":
        main = joint_exp.calibrate(levels, **rest, **person)
    else:
        noise = "geometric" if rho is None else "gaussian"
        spread = SPREAD * max(math.sqrt(MANY / max(weight, MANY)), LEAST_SPREAD)
        tree = dict(**rest, **person, noise=noise, expected_n=expected_n, spread=spread)
        main = agg_tree.calibrate(**tree)
        if points is not None and _leaves(main) >= points:
            main = agg_tree.calibrate(**tree, points=points)
    return Calibration(design, pilot, main, epsilon, rho, relation)
