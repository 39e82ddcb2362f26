r"""Keys that nobody lists beforehand: which of them are released, by how many records each has.

Each key of the records is kept or dropped by itself, with a probability :math:`p_n` that depends on
its number n of records alone, :math:`p_0 = 0`. [DVGM22] finds the largest such probabilities for
one record per person under "add-remove". Here is the same rule for both relations and for k records
per person, in any keys.

**Rule.** With rates :math:`\alpha, \beta > 0` and failure probabilities :math:`\delta_1, \tau_1`
of a record,

.. math:: p_{n+1} = \min\left(e^\alpha p_n + \delta_1,\;
    1 - e^{-\beta} (1 - p_n - \tau_1),\; 1\right).

Both functions of :math:`p_n` are at least :math:`p_n`, so the probabilities do not fall. One record
more in a key, and one less, cost then

- :math:`p_{n+1} \le e^\alpha p_n + \delta_1`, so that what is kept tells of a record that was
  there: the law on n + 1 records is :math:`(\alpha, \delta_1)`-close to that on n. (The event of
  dropping the key is less likely with more records.)
- :math:`1 - p_n \le e^\beta (1 - p_{n+1}) + \tau_1`: the law on n is :math:`(\beta,
  \tau_1)`-close to that on n + 1.

**One key, c records.** Closeness adds up along a chain: the law on n + c records is
:math:`(c\alpha, \delta_1 S_\alpha(c))`-close to that on n, with
:math:`S_\alpha(c) = 1 + e^\alpha + \dots + e^{(c-1)\alpha} = (e^{c\alpha} - 1)/(e^\alpha - 1)`, and
the other way round the same with :math:`\beta` and :math:`\tau_1`.

**Several keys** are decided independently. Let the law :math:`P_i` of key i be
:math:`(\epsilon_i, \delta_i)`-close to :math:`Q_i`. What :math:`P_i` has below
:math:`e^{\epsilon_i} Q_i`, their minimum, has mass :math:`1 - \delta_i` or more. The product of
these minima is at most :math:`e^{\sum \epsilon_i} \prod Q_i`, and has mass
:math:`\prod (1 - \delta_i)` or more. So :math:`\prod P_i` is
:math:`(\sum \epsilon_i, 1 - \prod (1 - \delta_i))`-close to :math:`\prod Q_i`.

**A person's records** in one direction, all gone or all new, at most k of them, spread over keys as
:math:`c_1 + c_2 + \dots \le k`: the epsilons add up to :math:`k \alpha` at most. Since
:math:`S(a + b) \ge S(a) + S(b)`,
:math:`(1 - \delta_1 S(a))(1 - \delta_1 S(b)) \ge 1 - \delta_1 S(a + b)`: the worst is that all are
in one key, :math:`\delta_1 S_\alpha(k)`.

- "add-remove": all records of a person are of one direction. So :math:`\alpha = \beta = \epsilon/k`
  and :math:`\delta_1 = \tau_1 = \delta / S_{\epsilon/k}(k)`. For k = 1 this is the rule of
  [DVGM22].
- "swap": up to k records leave some keys, and up to k enter others. (The numbers that count are the
  net changes of the keys. Missing records, which are in no key, make one side smaller.) The two
  sides are different keys, hence independent: :math:`k\alpha + k\beta = \epsilon`, and a share of
  3/5 goes to :math:`\alpha`. All of :math:`\delta` goes to what leaves,
  :math:`\delta_1 = \delta / S_\alpha(k)`; nothing to what enters, :math:`\tau_1 = 0`, which costs
  no more than that no key is kept for sure.

**How good it is.** Nothing else that is (:math:`\epsilon, \delta`)-DP keeps a key of one person's k
records more often than with probability :math:`\delta`: without that person the key is not there
at all. That is :math:`p_k` here, unless the second term of the rule is the smaller one already.
Under "add-remove" the k steps from :math:`p_n` to :math:`p_{n+k}` are one step of the rule for
:math:`\epsilon` and :math:`\delta`, wherever all k are of one term: at the multiples of k, the
probabilities are those of the optimum for whole persons, but for the one step where the terms
change.

The shares of "swap" are chosen for few records. With 3/5, keys of 0.99 need fewer records than with
halves of both :math:`\epsilon` and :math:`\delta`, by 4 to 13% for :math:`\delta` from 1e-5 to
1e-12, those of 1/2 by 17 to 22%, and those of 0.999 no more.

**Closed form.** The first term is the smaller one up to where the two are equal, at

.. math:: p^* = \frac{1 - \delta_1 - e^{-\beta}(1 - \tau_1)}{e^\alpha - e^{-\beta}},

and the second one from there on, since the first grows faster. With
:math:`\delta = \delta_1 S_\alpha(k)`, :math:`\tau = \tau_1 S_\beta(k)`, and c the least n with
:math:`p_n > p^*`,

.. math::

    p_n &= \delta\, \frac{e^{n\alpha} - 1}{e^{k\alpha} - 1}
        && \text{for } n \le c, \\
    1 - p_{c+j} &= e^{-j\beta} (1 - p_c) - \tau\, \frac{1 - e^{-j\beta}}{e^{k\beta} - 1}
        && \text{while positive, else 0.}

**Exactness.** These numbers are never rounded. A decision compares random bits with bounds of
:math:`p_n`, computed in decimals that are rounded outwards, of as many digits as it takes
(`Calibration.bounds`). So the law is that of the rule itself. Whether :math:`p_n > p^*` is found in
the same way: the two are never equal, since that would make a power of e of a rational exponent an
algebraic number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dpq_fast._checks import MAX_COUNT, check_delta, check_epsilon, check_max_contributions
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.relations import Relation, relation_of

# Of epsilon under "swap": what goes to the records that leave a key.
LEAVING = Fraction(3, 5)
# A larger epsilon is spent as this one: a key of two persons' records is kept but for e^-1600,
# whatever delta is, and decimals have exponents for it.
MAX_EPSILON = 4096.0
# Decimal digits to begin with: those of 64 bits, and some for what cancels.
DIGITS = 32
ZERO, ONE = Decimal(0), Decimal(1)


class _Between:
    """A real number, by two decimals that it lies between; all that is computed rounds outwards.

    Factors and divisors are not negative.
    """

    def __init__(self, low: Decimal, high: Decimal, down: Context, up: Context) -> None:
        self.low, self.high = low, high
        self._down, self._up = down, up

    def _new(self, low: Decimal, high: Decimal) -> _Between:
        return _Between(low, high, self._down, self._up)

    def __add__(self, other: _Between) -> _Between:
        return self._new(self._down.add(self.low, other.low), self._up.add(self.high, other.high))

    def __sub__(self, other: _Between) -> _Between:
        low = self._down.subtract(self.low, other.high)
        # rounded down, nothing is -0, and what is divided by it has the wrong sign
        return self._new(low or ZERO, self._up.subtract(self.high, other.low))

    def __mul__(self, other: _Between) -> _Between:
        return self._new(
            self._down.multiply(self.low, other.low), self._up.multiply(self.high, other.high)
        )

    def __truediv__(self, other: _Between) -> _Between:
        return self._new(
            self._down.divide(self.low, other.high), self._up.divide(self.high, other.low)
        )

    def exp_minus(self) -> _Between:
        """exp(-x) for x >= 0: decimals round it to nearest, so that the next one is beyond it."""
        low = self._down.next_minus(self._down.exp(self.high.copy_negate()))
        high = self._up.next_plus(self._up.exp(self.low.copy_negate()))
        return self._new(max(low, ZERO), min(high, ONE))

    def at_most_one(self) -> _Between:
        """The same of a number that is not above 1."""
        return self._new(min(self.low, ONE), min(self.high, ONE))

    def scaled(self, bits: int) -> tuple[int, int]:
        """Integers that 2^bits times the number lies between."""
        unit = Decimal(2**bits)
        return (
            math.floor(self._down.multiply(self.low, unit)),
            math.ceil(self._up.multiply(self.high, unit)),
        )


class _Curve:
    """The closed form, in `digits` digits."""

    def __init__(self, calibration: Calibration, digits: int) -> None:
        self._down, self._up = (
            Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
            for rounding in (ROUND_FLOOR, ROUND_CEILING)
        )
        self._alpha, self._beta, self._k = calibration.alpha, calibration.beta, calibration.k
        self._one = self._of(1)
        self._delta, self._tau = self._of(calibration.delta), self._of(calibration.tau)
        self._sure = calibration.tau > 0.0
        self._decay = lru_cache(maxsize=8)(self._decay_of)  # a few, again and again

    def _of(self, value: float | Fraction) -> _Between:
        numerator, denominator = (Decimal(term) for term in value.as_integer_ratio())
        return _Between(
            self._down.divide(numerator, denominator),
            self._up.divide(numerator, denominator),
            self._down,
            self._up,
        )

    def _decay_of(self, rate: Fraction, n: int) -> _Between:
        """exp(-n rate)."""
        return self._of(n * rate).exp_minus()

    def _share(self, rate: Fraction, n: int) -> _Between:
        """(1 - exp(-n rate)) / (1 - exp(-k rate))."""
        return (self._one - self._decay(rate, n)) / (self._one - self._decay(rate, self._k))

    def rising(self, n: int) -> _Between:
        """What n records have by the first term alone."""
        share = self._delta * self._share(self._alpha, n)
        if n < self._k:
            return share * self._decay(self._alpha, self._k - n)
        return share / self._decay(self._alpha, n - self._k)

    def changed(self, n: int) -> bool | None:
        """Whether the second term is the smaller one from n records on; None if unknown.

        Multiplied by exp(-alpha) and the denominator of p*, without what is negative.
        """
        r, s = self._decay(self._alpha, 1), self._decay(self._beta, 1)
        left = self.rising(n) * (self._one - r * s) + r * (self.rising(1) + s)
        right = r
        if self._sure:
            tau = self._tau * self._share(self._beta, 1) * self._decay(self._beta, self._k - 1)
            right = r + r * s * tau
        if left.low > right.high:
            return True
        return False if left.high < right.low else None

    def after(self, change: int, n: int) -> _Between:
        """What n records have if the second term is the smaller one from `change` records on."""
        if n <= change:
            return self.rising(n).at_most_one()
        dropped = self._decay(self._beta, n - change) * (
            self._one - self.rising(change).at_most_one()
        )
        if self._sure:
            spent = self._tau * self._share(self._beta, n - change)
            dropped = dropped - spent * self._decay(self._beta, self._k)
        return (self._one - dropped).at_most_one()


@lru_cache(maxsize=16)
def _curve(calibration: Calibration, digits: int) -> _Curve:
    return _Curve(calibration, digits)


@dataclass(frozen=True)
class Calibration:
    """What a call of `select_keys` spends and guarantees.

    Attributes
    ----------
    alpha, beta : Fraction
        The rates of the two terms, for one record.
    delta, tau : float
        The failure probabilities of all of a person's records, as they leave and as they enter.
    epsilon : float
        Of the whole call, per person.
    k : int
        Records per person.
    relation : Relation
    """

    alpha: Fraction
    beta: Fraction
    delta: float
    tau: float
    epsilon: float
    k: int
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """Independent decisions, of which a person changes those of up to k keys, or twice k."""
        return Guarantee(
            self.epsilon, self.delta, neighbors=self.relation.name, composition="parallel"
        )

    @cached_property
    def change(self) -> int:
        """From how many records on the second term is the smaller one, if that is not too many."""
        at, least, most = 0, 0, 0
        while not self._changed(most):
            if most >= MAX_COUNT:
                return MAX_COUNT
            least, most = most + 1, min(2 * most + 1, MAX_COUNT)
        while least < most:
            at = (least + most) // 2
            if self._changed(at):
                most = at
            else:
                least = at + 1
        return most

    def _changed(self, n: int) -> bool:
        digits, changed = DIGITS, None
        while changed is None:
            changed, digits = _curve(self, digits).changed(n), 2 * digits
        return changed

    def bounds(self, n: int, bits: int) -> tuple[int, int]:
        """Integers at most 2 apart that 2^bits times the probability lies between.

        Parameters
        ----------
        n : int
            Number of records of a key, 0 to 2^53.
        bits : int
            How many bits a decision has drawn so far.

        Returns
        -------
        (int, int)
            From 0 to 2^bits.
        """
        digits = DIGITS + bits // 3
        while True:
            low, high = _curve(self, digits).after(self.change, n).scaled(bits)
            if high - low <= 2:
                return low, high
            digits *= 2

    def probability(self, n: int) -> float:
        """How likely it is that a key of n records is kept: the next float64 number or the one."""
        digits = DIGITS
        while True:
            found = _curve(self, digits).after(self.change, n)
            low, high = float(found.low), float(found.high)
            if high <= math.nextafter(low, math.inf):
                return low
            digits *= 2


def calibrate(
    *, epsilon: float, delta: float, neighbors: str = "swap", max_contributions: int = 1
) -> Calibration:
    r"""The rates of the rule, for `epsilon` and `delta` in total.

    Parameters
    ----------
    epsilon, delta : float
        Budget, per person; both positive.
    neighbors : {"swap", "add-remove"}, default "swap"
        The neighboring relation.
    max_contributions : int, default 1
        Up to k records per person, in any keys.

    Returns
    -------
    Calibration
        For "add-remove" :math:`k\alpha = k\beta = \epsilon` and :math:`\tau = \delta`; for "swap"
        :math:`k\alpha = 3\epsilon/5`, :math:`k\beta = 2\epsilon/5` and :math:`\tau = 0`.
    """
    k = check_max_contributions(max_contributions)
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    relation = relation_of(neighbors)
    if delta == 0.0:
        raise ValueError("delta must be positive: without it no key is ever kept, got 0.0")
    return _calibrated(epsilon, delta, k, relation)


@lru_cache(maxsize=16)
def _calibrated(epsilon: float, delta: float, k: int, relation: Relation) -> Calibration:
    """One object for calls of the same public arguments, which finds once where terms change."""
    each = Fraction(min(epsilon, MAX_EPSILON)) / k
    if relation.parts == 1:
        return Calibration(each, each, delta, delta, epsilon, k, relation)
    return Calibration(LEAVING * each, (1 - LEAVING) * each, delta, 0.0, epsilon, k, relation)


def keep_probability(
    records: Any,
    *,
    epsilon: float,
    delta: float,
    neighbors: str = "swap",
    max_contributions: int = 1,
) -> Any:
    """How likely it is that `select_keys` keeps a key, by its number of records.

    Parameters
    ----------
    records : int or array_like of int
        Public numbers of records of a key, from 0 to 2^53.
    epsilon, delta, neighbors, max_contributions
        As in `select_keys`.

    Returns
    -------
    float or ndarray of float64
        Of the shape of `records`.

    Examples
    --------
    >>> keep_probability([1, 10, 20], epsilon=1.0, delta=1e-6, neighbors="add-remove").round(4)
    array([0.    , 0.0128, 0.9993])
    """
    calibration = calibrate(
        epsilon=epsilon, delta=delta, neighbors=neighbors, max_contributions=max_contributions
    )
    given = np.asarray(records)
    if given.dtype.kind not in "iu":
        raise TypeError(f"records must be integers, got dtype {given.dtype}")
    if given.size and not (given.min() >= 0 and given.max() <= MAX_COUNT):
        raise ValueError("records must lie in [0, 2^53]")
    numbers, places = np.unique(given, return_inverse=True)
    probabilities = np.array([calibration.probability(n) for n in numbers.tolist()], dtype=float)
    return probabilities[places].reshape(given.shape)[()]
