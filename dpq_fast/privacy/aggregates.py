r"""Counts, sums and means: discrete Laplace noise on integers, and a clip that is found first."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from dpq_fast._checks import (
    MAX_COUNT,
    check_choice,
    check_count,
    check_epsilon,
    check_max_contributions,
)
from dpq_fast.privacy import ind_exp, joint_exp, unbounded_quantile
from dpq_fast.privacy.above_threshold import check_fraction, counting_losses, threshold_fraction
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import pure_rho

if TYPE_CHECKING:
    from typing_extensions import Unpack

METHODS = ("unbounded", "joint_exp", "ind_exp")
Clip = joint_exp.Calibration | ind_exp.Calibration | unbounded_quantile.Calibration


class CountCalibration(NamedTuple):
    """What a call of `count` spends and guarantees.

    Attributes
    ----------
    scale : Fraction
        Of the noise.
    epsilon : float
        The budget, per person.
    relation : Relation
    """

    scale: Fraction
    epsilon: float
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """Laplace noise: pure, and nothing better is known of it than what that implies."""
        return Guarantee(self.epsilon, neighbors=self.relation.name)


def calibrate_count(
    *, epsilon: float, neighbors: str = "swap", max_contributions: int = 1
) -> CountCalibration:
    """The scale of a count's noise: k / epsilon, under both relations.

    Where a record may be left out, a replacement may change the number of records, too.
    """
    k = check_max_contributions(max_contributions)
    epsilon = check_epsilon(epsilon)
    return CountCalibration(laplace_scale(1, epsilon, k), epsilon, relation_of(neighbors))


class Calibration(NamedTuple):
    """What a call of `sum` or `mean` spends and guarantees.

    Attributes
    ----------
    epsilon : float
        The whole budget, per person.
    clip : Clip or None
        What the clip spends; None if it is public.
    noise_epsilon : float
        What is left for the noise. It depends on the clip that was released: adaptive basic
        composition.
    k : int
        Records per person.
    relation : Relation
    """

    epsilon: float
    clip: Clip | None
    noise_epsilon: float
    k: int
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """A clip, unless it is public, and then Laplace noise: epsilons add up, and rhos."""
        if self.clip is None:
            return Guarantee(self.epsilon, neighbors=self.relation.name)
        clip_rho = self.clip.guarantee.implied_rho
        assert clip_rho is not None  # it is pure
        rho = clip_rho + pure_rho(self.noise_epsilon)
        return Guarantee(self.epsilon, 0.0, rho, None, self.relation.name, "basic")

    def sum_scale(self, low: int, high: int, may_have_missing: bool) -> Fraction:
        """Scale of the noise of a sum of integers clamped to [low, high].

        Parameters
        ----------
        low, high : int
            The clip, in lattice points; 0 need not lie between them.
        may_have_missing : bool
            Whether records may be left out, so that a replacement may be an addition or a removal.

        Returns
        -------
        Fraction
            For a sensitivity of high - low to a replacement, and of max(abs(low), abs(high)) to one
            record more or less.
        """
        low, high = (
            check_count(name, end, -MAX_COUNT) for name, end in (("low", low), ("high", high))
        )
        sensitivity = self.relation.worst(
            one=max(abs(low), abs(high)), same=high - low, may_have_missing=may_have_missing
        )
        return laplace_scale(sensitivity, self.noise_epsilon, self.k)

    def mean_scales(self, width: int, may_have_missing: bool) -> tuple[Fraction, Fraction]:
        r"""Scales of the noise of the two integers that a mean is computed from.

        The records are integers in [low, high], of which n are kept.

        Parameters
        ----------
        width : int
            W = high - low, at least 1.
        may_have_missing : bool
            As for `sum_scale`.

        Returns
        -------
        (Fraction, Fraction)
            "add-remove": :math:`k W / \epsilon` twice, for :math:`A = \sum (x_i - low)` and
            :math:`B = \sum (high - x_i)`.
            "swap": :math:`2 k W / \epsilon` for :math:`C = \sum (2 x_i - low - high)`, and
            :math:`2 k / \epsilon` for n, 0 if n is public.

        Notes
        -----
        Independent Laplace noise of scales :math:`s_1, s_2` costs
        :math:`|\Delta_1| / s_1 + |\Delta_2| / s_2` where a record changes the integers by
        :math:`\Delta_1, \Delta_2`.

        - One record more or less adds x - low to A and high - x to B, or takes them away: W in
          total, wherever it lies. So each of them has the noise that it would have alone.
          n = (A + B)/W, and C = A - B.
        - A record replaced by another changes C by at most 2 W, and n not at all. One that is left
          out or comes in changes C by at most W, at half of `epsilon`; the other half is for n.
        """
        width = check_count("width", width)
        if not self.relation.n_is_public:
            scale = laplace_scale(width, self.noise_epsilon, self.k)
            return scale, scale
        number = laplace_scale(2, self.noise_epsilon, self.k) if may_have_missing else Fraction(0)
        return laplace_scale(2 * width, self.noise_epsilon, self.k), number


class _Person(TypedDict):
    """What a guarantee is about: how neighbors differ, and how many records are of one person."""

    neighbors: str
    max_contributions: int


def calibrate(
    *,
    epsilon: float,
    q: float | None = 0.99,
    lower: float | None = 0.0,
    upper: float | None = None,
    method: str = "unbounded",
    share: float = 0.5,
    split: float | None = None,
    noise: str = "exponential",
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Calibration:
    """The parts of `epsilon` for the clip and for the noise: `share` of it, and the rest.

    Parameters
    ----------
    epsilon : float
        Total budget, per person.
    q : float or None
        The level of the clip, away from the end that is known; None for a public clip.
    lower, upper : float, optional
        The known ends. Without both, the records on either side of zero have a clip each.
    method : {"unbounded", "joint_exp", "ind_exp"}
        How the clip is found.
    share : float, default 0.5
        Of the clip.
    split, noise
        Of the search, as in `unbounded_quantile`.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    Calibration
    """
    check_choice("method", method, METHODS)
    k, relation = check_max_contributions(max_contributions), relation_of(neighbors)
    epsilon = check_epsilon(epsilon)
    first = check_fraction(share, "share") * epsilon
    if q is None:
        return Calibration(epsilon, None, epsilon, k, relation)
    person = _Person(neighbors=neighbors, max_contributions=k)
    clip: Clip
    if method == "joint_exp":
        clip = joint_exp.calibrate(q, epsilon=first, **person)
    elif method == "ind_exp":
        clip = ind_exp.calibrate(q, epsilon=first, **person)
    elif lower is None and upper is None:
        clip = _two_sided(q, first, split, noise, **person)
    else:
        clip = unbounded_quantile.calibrate(
            1.0 - q if lower is None else q,
            epsilon=first,
            lower=lower,
            upper=upper,
            split=split,
            noise=noise,
            **person,
        )
    return Calibration(epsilon, clip, epsilon - first, k, relation)


def _two_sided(
    q: float, epsilon: float, split: float | None, noise: str, **person: Unpack[_Person]
) -> unbounded_quantile.Calibration:
    r"""Two searches, of the records on either side of zero, for `epsilon` in total.

    A record is on one side, so one more or less costs one search. A replacement inside a side
    costs :math:`\epsilon_1 + \epsilon_2` there; one that changes sides is a removal on one and an
    addition on the other, whose one-sided losses (`counting_losses`) add up.
    """
    relation = relation_of(person["neighbors"])
    one = unbounded_quantile.calibrate(q, epsilon=epsilon, split=split, noise=noise, **person)
    fraction = threshold_fraction(split, one.noise)
    cost = unbounded_quantile.costs_of(q, relation, one.way, fraction).epsilon
    worst = relation.worst(one=cost, same=cost, moved=float(sum(counting_losses(q, fraction))))
    ratio = worst / cost
    epsilons = [(first / ratio, second / ratio) for first, second in one.step_epsilons]
    return one._replace(
        step_epsilons=epsilons, promise=partial(Guarantee, epsilon, neighbors=relation.name)
    )


def laplace_scale(sensitivity: int, epsilon: float, max_contributions: int = 1) -> Fraction:
    """Scale of the discrete Laplace noise of an integer: sensitivity k / epsilon, not rounded.

    Parameters
    ----------
    sensitivity : int
        How much one record changes the integer, at most.
    epsilon : float
        Budget of the release, per person.
    max_contributions : int, default 1
        Up to k records per person.

    Returns
    -------
    Fraction
    """
    k = check_max_contributions(max_contributions)
    sensitivity = check_count("sensitivity", sensitivity, 0)
    return Fraction(sensitivity * k) / Fraction(check_epsilon(epsilon))
