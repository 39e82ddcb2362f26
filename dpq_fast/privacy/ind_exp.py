r"""IndExp: one private selection for each of m levels, by how deep the target lies at an output.

**Utility.** For a level q, n records and an output o, with the exact target :math:`t = q n`,

.. math:: u(o) = \min(t - \#\{x < o\},\; \#\{x \le o\} - t).

At a value with ties this is how far t lies inside the run of records that have it, or minus how
far outside. Where no record lies, both counts are the rank r of o, and u is :math:`-|r - t|`
[S11]; so it is everywhere without a lattice. A value that many records have beats what is next to
it by its depth, without dither.

**Sensitivity.** A replaced record leaves t where it is and moves each count by at most 1. One
record x more moves :math:`t - \#\{x < o\}` by :math:`q - [x < o]` and
:math:`\#\{x \le o\} - t` by :math:`[x \le o] - q`, at most :math:`\max(q, 1-q)` each; one less
moves them back. The minimum of two numbers moves by no more than the one that moves more. So
:math:`\Delta` is 1 for "swap", :math:`\max(q, 1-q)` for "add-remove", and k times that for a person
of k records. A record that was left out and comes in, or the other way, is one more or less.

Each level gets e of the budget, and the rate :math:`c = e / (2 k \Delta)`: between neighbors,
:math:`c\,u(o)` moves by at most e/2 for each o.

**Exponential mechanism** [MT07]. :math:`P(o) \propto e^{c\,u(o)}`. Its log-normalizer moves by one
number for all outputs, so the log ratio of the two laws stays in an interval of length e: range e,
and hence e-DP ("Bounded range" at the top of `dpq_fast.privacy`).

**Permute-and-flip** [MS20]. The outputs come in random order, each is accepted with probability
:math:`p_o = e^{c\,(u(o) - \max u)}`, and the first one accepted is released; the best ones always
are. Let the order be that of independent uniform times. While o comes at time v, another output j
has come before and been accepted with probability :math:`v\,p_j`, each independently, so

.. math:: P(o) = \int_0^1 p_o \prod_{j \ne o} (1 - v\,p_j)\,dv.

So it is also the law of the argmax of :math:`c\,u(o) + E_o` with independent standard exponentials
:math:`E_o` [DKS+21]: with the height of the argmax written as :math:`c \max u - \ln v`, output o
has it with density :math:`p_o` in v up to :math:`1/p_o`, and each other output stays below it with
probability :math:`\max(1 - v\,p_j, 0)`, which is 0 for the best ones from v = 1 on.

It is e-DP. Given the noise of all outputs but o, let M be the largest of :math:`c\,u(j) + E_j`
among them. Then o is released with probability

.. math:: P(E_o > M - c\,u(o)) = \min(1, e^{c\,u(o) - M}).

Between neighbors, and for the same noise, :math:`c\,u(o)` moves by at most e/2, and so does M, as
the maximum of numbers that do. The exponent moves by at most e, so that the probability, and its
mean over the noise of the others, changes by a factor of at most :math:`\exp(e)`.

Its range may be larger than e. Where two outputs of utilities :math:`\pm\Delta/2` change places,
each has the probability :math:`a = e^{-e/2}/2` on one side and 1 - a on the other: a range of
:math:`2 \ln(2 e^{e/2} - 1)`, above e, and close to 2e for a small e. Every e-DP law has a range of
at most 2e, so none is stated, and rho is that of any pure mechanism (`pure_rho`). Where ranges or
rhos are composed, that is with a `delta` or a `rho`, the exponential mechanism is used. With a pure
epsilon permute-and-flip is: its expected utility is never less [MS20]. Without a lattice, where no
single output has any weight, both are the exponential mechanism.

**Prior.** A public :math:`b(o)` that is added to :math:`c\,u(o)` in either mechanism, such as the
logarithm of a mass, changes none of this: what is used of :math:`c\,u(o)` is that it moves by at
most e/2 between neighbors, and :math:`c\,u(o) + b(o)` moves as much. The exponential mechanism then
draws o in proportion to :math:`e^{b(o)} e^{c\,u(o)}`. Permute-and-flip, with scores
:math:`c\,u(o) + b(o)`, is no worse than that in their mean, as it is without b. To give o as many
candidates as its mass says would be private, too, but many candidates of one score make an
exponential mechanism of permute-and-flip.

**Composition.** Given the records the levels are drawn independently, and to sort them is
post-processing. m releases, each e-DP, are (m e)-DP by basic composition, and their rhos add up
[BS16]. Exponential mechanisms with a `delta` compose by their ranges [DDR20].

References
----------
- [MS20] R. McKenna, D. Sheldon, "Permute-and-Flip: A new mechanism for differentially private
  selection", NeurIPS 2020.
- [DKS+21] Z. Ding, D. Kifer, S. M. Saghaian N. E., T. Steinke, Y. Wang, Y. Xiao, D. Zhang, "The
  Permute-and-Flip Mechanism is Identical to Report-Noisy-Max with Exponential Noise",
  arXiv:2105.07260.
- [S11], [MT07], [BS16], [DDR20]: docs/papers.md.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast._checks import check_choice, check_delta, check_max_contributions
from dpq_fast.privacy.bounded_range import bounded_range_epsilon_each
from dpq_fast.privacy.budgets import MAX_RATE, check_steps, resolve_epsilon
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import Relation, relation_of
from dpq_fast.privacy.zcdp import bounded_range_rho, pure_rho

FLIP, EXPONENTIAL = SELECTIONS = ("permute-and-flip", "exponential")


class Calibration(NamedTuple):
    r"""What a call of `ind_exp` spends and guarantees.

    Attributes
    ----------
    rates : ndarray of float64, shape (m,)
        c of each level's :math:`c\,u`.
    each : float
        Epsilon of each release, per person; of an exponential mechanism it is the range.
    epsilon, delta, rho
        The budget as it was given.
    selection : {"permute-and-flip", "exponential"}
        How an output is drawn from its utilities.
    relation : Relation
    """

    rates: NDArray[np.float64]
    each: float
    epsilon: float | None
    delta: float
    rho: float | None
    selection: str
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """m independent selections from the same records."""
        m, each, neighbors = self.rates.size, self.each, self.relation.name
        if self.selection == FLIP:
            composition = f"{FLIP} + basic" if m > 1 else FLIP
            return Guarantee(self.epsilon, 0.0, m * pure_rho(each), None, neighbors, composition)
        if self.epsilon is None:
            # the log ratio is a sum of m, so the ranges add up
            composition = "zcdp" if m > 1 else ""
            return Guarantee(m * each, 0.0, self.rho, m * each, neighbors, composition)
        composition = "bounded-range" if self.delta > 0.0 else "basic" if m > 1 else ""
        bounded_range = m * each if self.delta > 0.0 else self.epsilon
        rho = m * bounded_range_rho(each)
        return Guarantee(self.epsilon, self.delta, rho, bounded_range, neighbors, composition)


def sensitivities(q: NDArray[np.float64], relation: Relation) -> NDArray[np.float64]:
    r"""Sensitivities of the utilities of levels.

    Those of :math:`-|r - q_j n|`, r the rank of o, are the same.

    Parameters
    ----------
    q : ndarray of float64, shape (m,)
        Levels in [0, 1].
    relation : Relation

    Returns
    -------
    ndarray of float64, shape (m,)
        1 for "swap": the counts move by at most one, the target stays.
        max(q, 1-q) for "add-remove": the target moves by q, a count by 0 or 1 in the same
        direction.
    """
    return relation.worst(one=np.maximum(q, 1.0 - q), same=np.ones(q.size))


def calibrate(
    q: Any = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    selection: str | None = None,
) -> Calibration:
    r"""The rates :math:`c_j = e / (2 \Delta_j k)`, at most 2^16, of m releases of epsilon e.

    Parameters
    ----------
    q : float, array_like or Levels
        The levels.
    epsilon, delta : float
        Total budget, per person. With ``delta=0``, e is `epsilon` / m by basic composition; else
        that of the optimal non-adaptive composition of [DDR20], which is never less.
    rho : float, optional
        Total zCDP budget instead: e is the range that rho / m buys.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person.
    selection : {"permute-and-flip", "exponential"}, optional
        By default the former for a pure `epsilon`, for which alone it is, and the latter with
        `delta` or `rho`.

    Returns
    -------
    Calibration

    Notes
    -----
    An exponential mechanism has range e/k per record, so at most e per person, and Lemma 12 is
    applied to persons. This is never worse than group privacy on the result, which allows per
    record only :math:`(\epsilon/k, \delta')` with
    :math:`\delta' = \delta\,(e^{\epsilon/k} - 1)/(e^{\epsilon} - 1)`: the range bound is reached
    by k records along a chain, so whatever is sound for the chain passes Lemma 12.
    """
    if q is None:
        raise ValueError("q must be given for method 'ind_exp', got None")
    levels = Levels.of(q)
    k = check_max_contributions(max_contributions)
    each = resolve_epsilon(epsilon, rho, levels.m)
    delta = check_delta(delta)
    pure = rho is None and delta == 0.0
    if selection is None:
        selection = FLIP if pure else EXPONENTIAL
    elif check_choice("selection", selection, SELECTIONS) == FLIP and not pure:
        raise ValueError(f"selection must be {EXPONENTIAL!r} with delta or rho, got {FLIP!r}")
    if delta > 0.0:
        if epsilon is None:
            raise ValueError(f"delta must be 0 with rho, got {delta}")
        each = bounded_range_epsilon_each(levels.m, epsilon, delta)
    relation = relation_of(neighbors)
    rates = _rates(levels, each, k, relation)
    return Calibration(rates, each, epsilon, delta, rho, selection, relation)


@lru_cache(maxsize=256)  # public; a program asks for few of them, again and again
def _rates(levels: Levels, each: float, k: int, relation: Relation) -> NDArray[np.float64]:
    """The rates of levels, not to be written to."""
    rates = each / (2.0 * k * sensitivities(levels.values, relation))
    rates = np.asarray(check_steps(np.minimum(rates, MAX_RATE)))
    rates.setflags(write=False)
    return rates
