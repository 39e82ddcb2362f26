"""What a release promises."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dpq_fast._arguments import in_our_words
from dpq_fast._checks import check_delta, check_nonnegative
from dpq_fast.privacy.relations import relation_of
from dpq_fast.privacy.zcdp import bounded_range_rho, pure_rho


def total(costs: Iterable[float]) -> float | None:
    """The sum of costs, rounded once; None if it is beyond float64, where it promises nothing."""
    try:
        sum_ = math.fsum(costs)
    except OverflowError:
        return None
    return sum_ if sum_ < math.inf else None


@in_our_words
@dataclass(frozen=True, slots=True)
class Guarantee:
    r"""What a release promises each person. Every field that is set is a true statement by itself.

    Parameters
    ----------
    epsilon : float or None
        The release is (`epsilon`, `delta`)-DP. None if no such statement is made: a zCDP release,
        for which `compose` or `zcdp_epsilon` finds an epsilon for a chosen delta.
    delta : float, default 0.0
        In [0, 1); belongs to `epsilon` alone, and is 0 without it.
    rho : float, optional
        The release is `rho`-zCDP [BS16].
    bounded_range : float, optional
        Given the dither, which is the same for two neighbors, the log ratio of their output laws
        stays in an interval of this length [DDR20], as that of an exponential mechanism of epsilon
        does in one of epsilon. Without dither the condition is empty. With it, the laws that are
        mixed over all dithers may have a larger range, but have every epsilon, delta and rho that
        follow from this one ("Dither" at the top of `dpq_fast.privacy`).
    neighbors : {"swap", "add-remove"}, default "swap"
        The relation of all statements.
    composition : str, default ""
        The theorem that gave them; empty for a single mechanism.
    mechanism : str, default ""
        What `privacy.guarantee` found it for. It is no part of the promise: guarantees that differ
        in it alone are equal.

    Raises
    ------
    TypeError, ValueError
        If an argument breaks its rule, or nothing is promised.

    Examples
    --------
    >>> Guarantee(1.0, 1e-6, neighbors="add-remove").epsilon
    1.0
    >>> Guarantee(None, rho=0.5).implied_rho
    0.5
    """

    epsilon: float | None
    delta: float = 0.0
    rho: float | None = None
    bounded_range: float | None = None
    neighbors: str = "swap"
    composition: str = ""
    mechanism: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        store = object.__setattr__  # frozen: keep the cleaned values
        store(self, "delta", check_delta(self.delta))
        if self.rho is not None:
            store(self, "rho", check_nonnegative("rho", self.rho))
        if self.bounded_range is not None:
            value = check_nonnegative("bounded_range", self.bounded_range)
            store(self, "bounded_range", value)
        if self.epsilon is not None:
            store(self, "epsilon", check_nonnegative("epsilon", self.epsilon))
        elif self.delta > 0.0:
            raise ValueError(f"delta must be 0 without epsilon, got {self.delta}")
        elif self.bounded_range is not None:
            # range b is b-DP, with dither, too, so there is always an epsilon to state
            raise ValueError("epsilon must be given with bounded_range, got None")
        elif self.rho is None:
            raise ValueError("a guarantee must state epsilon or rho, got neither")
        relation_of(self.neighbors)
        if not isinstance(self.composition, str):
            raise TypeError(f"composition must be a string, got {type(self.composition).__name__}")
        if not isinstance(self.mechanism, str):
            raise TypeError(f"mechanism must be a string, got {type(self.mechanism).__name__}")

    @property
    def implied_rho(self) -> float | None:
        r"""The smallest rho that the statements imply; None if (`epsilon`, `delta`) is all.

        Of a range it is `bounded_range_rho`, which a mixture over dithers keeps; of a pure epsilon
        `pure_rho`.
        """
        candidates = []
        if self.rho is not None:
            candidates.append(self.rho)
        if self.bounded_range is not None:
            candidates.append(bounded_range_rho(self.bounded_range))
        if self.epsilon is not None and self.delta == 0.0:
            candidates.append(pure_rho(self.epsilon))
        return min(candidates, default=None)

    def to(self, neighbors: str) -> Guarantee:
        r"""The same release under another relation, only where that follows.

        Parameters
        ----------
        neighbors : {"swap", "add-remove"}
            The relation wanted.

        Returns
        -------
        Guarantee
            From "add-remove" to "swap" by group privacy of two, since a replacement is a removal
            and an addition: epsilon and the range double, delta becomes
            :math:`\delta (1 + e^\epsilon)`, rho four times itself [BS16].

        Raises
        ------
        ValueError
            From "swap" to "add-remove", which does not follow, or if delta would reach 1 and no
            rho is left to state.
        """
        if neighbors == self.neighbors:
            return self
        own = relation_of(self.neighbors)
        k = own.steps_to(relation_of(neighbors))
        if k is None:
            public = (
                ", which takes the number of records as public and says nothing about data sets of "
                "different size"
            )
            raise ValueError(
                f"neighbors must stay {self.neighbors!r} for a guarantee under "
                f"{self.neighbors!r}{public if own.n_is_public else ''}, got {neighbors!r}"
            )
        rho = None if self.rho is None else k * k * self.rho
        epsilon, delta = self.epsilon, self.delta
        if epsilon is not None:
            if delta > 0.0:
                # e^epsilon beyond float64 is beyond 1/delta for every delta but the denormal ones
                chain = [i * epsilon for i in range(k)]
                delta = delta * sum(map(math.exp, chain)) if chain[-1] < 700.0 else math.inf
            epsilon *= k
        bounded_range = self.bounded_range
        if bounded_range is not None:
            bounded_range *= k
        if delta >= 1.0:  # says nothing; the other statements may
            if bounded_range is not None:
                epsilon, delta = bounded_range, 0.0
            elif rho is not None:
                epsilon, delta = None, 0.0
            else:
                raise ValueError(
                    "delta (1 + exp(epsilon)) must be below 1 to convert to 'swap', "
                    f"got epsilon {self.epsilon}, delta {self.delta}"
                )
        composition = f"{self.composition} + group-privacy".removeprefix(" + ")
        return Guarantee(epsilon, delta, rho, bounded_range, neighbors, composition)

    @property
    def dp_event(self) -> Any:
        """The release for Google's `dp_accounting`.

        Returns
        -------
        dp_accounting.DpEvent
            The first of these that applies; none of them says more than is guaranteed.

            - ``ZCDpEvent`` of `implied_rho`, where a rho or a range is stated. It is what is
              guaranteed, and of a range the least rho that follows; that of the accountants for an
              ``ExponentialMechanismDpEvent`` of newer versions is larger, an eighth of the square.
            - For pure epsilon alone under "swap", ``RandomizedResponseDpEvent`` with two buckets,
              of which every epsilon-DP mechanism is a post-processing [KOV15].
            - For pure epsilon alone under "add-remove", which `dp_accounting` does not take for
              that event, ``ZCDpEvent`` of `pure_rho`. Not ``ExponentialMechanismDpEvent``: that
              has a range of epsilon, and a mechanism that is epsilon-DP may have twice that.
            - For (epsilon, delta) alone, ``EpsilonDeltaDpEvent``, whose worst pair of laws is that
              of all mechanisms with this guarantee [KOV15]. Version 0.6.0 has no such event: then
              ``UnsupportedDpEvent``, so that an accountant refuses rather than undercounts.

        Raises
        ------
        ImportError
            If `dp_accounting` is not installed.

        Notes
        -----
        An event holds no relation: give the accountant that of `neighbors`. Accountants by privacy
        loss distributions take no ``ZCDpEvent``; `compose` has optimal composition of its own.
        """
        try:
            import dp_accounting
        except ImportError as error:
            raise ImportError(
                "dp_event must have dp_accounting: pip install 'dpq_fast[accounting]'"
            ) from error
        rho = self.implied_rho
        if rho is None:
            own = getattr(dp_accounting.dp_event, "EpsilonDeltaDpEvent", None)
            if own is None:
                return dp_accounting.UnsupportedDpEvent()
            return own(epsilon=self.epsilon, delta=self.delta)
        if (
            self.epsilon is not None
            and self.rho is None
            and self.bounded_range is None
            and relation_of(self.neighbors).n_is_public
        ):
            # It answers uniformly with probability p, so P[truth]/P[lie] = (2 - p)/p = e^epsilon.
            shrunk = math.exp(-self.epsilon)
            return dp_accounting.RandomizedResponseDpEvent(2.0 * shrunk / (1.0 + shrunk), 2)
        return dp_accounting.ZCDpEvent(rho)
