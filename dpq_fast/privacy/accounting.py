r"""Guarantees, their composition, and budgets."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Protocol

from dpq_fast._arguments import in_our_words
from dpq_fast._checks import (
    check_choice,
    check_delta,
    check_epsilon,
    check_flag,
)
from dpq_fast.privacy.bounded_range import COMPOSABLE, MAX_COMPOSED, bounded_range_epsilon
from dpq_fast.privacy.guarantees import Guarantee, total
from dpq_fast.privacy.optimal import optimal_epsilon
from dpq_fast.privacy.relations import RELATIONS, relation_of
from dpq_fast.privacy.zcdp import zcdp_epsilon, zcdp_rho

if TYPE_CHECKING:
    from dpq_fast.privacy.ledger import Ledger

# How an accountant adds up.
COMPOSITIONS = ("basic", "zcdp")
# Sums of float budgets: ten charges of 0.1 must fit a budget of 1.0.
SUM_TOLERANCE = 1e-12
# Optimal composition spends all of delta, and is rounded up: it has to save a hundredth.
WORTHWHILE = 0.99


@in_our_words
def compose(
    guarantees: Iterable[Guarantee],
    *,
    delta: float = 0.0,
    adaptive: bool = True,
    neighbors: str | None = None,
) -> Guarantee:
    r"""Guarantee of several releases together: the best of the theorems that apply.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        One per release, at least one. Their parameters must have been fixed before the first
        release; for budgets chosen along the way use `Accountant`.
    delta : float, default 0.0
        The total delta allowed. 0: basic composition only, with the sum of the deltas.
    adaptive : bool, default True
        Whether a release may depend on the outputs of earlier ones. False is your promise that
        none did, and lets the range bounds be composed.
    neighbors : {"swap", "add-remove"}, optional
        Relation to convert to (`Guarantee.to`); needed if the relations differ.

    Returns
    -------
    Guarantee
        The smallest epsilon found; `composition` names its theorem. rho is the sum where each
        release has or implies one; the range is the sum where each has one and ``adaptive=False``
        (adaptively, the ranges of a sequence do not add up).

    Raises
    ------
    TypeError, ValueError
        If an argument breaks its rule, relations are mixed, or no theorem applies.

    Notes
    -----
    - "basic": epsilons and deltas add up. A release that states only rho is first converted by
      `zcdp_epsilon`; these share equally what `delta` leaves beyond the other deltas.
    - "zcdp": each release has or implies a rho (`Guarantee.implied_rho`); the sum [BS16] is
      converted at `delta` [CKS20].
    - "bounded-range": ``adaptive=False`` and up to 2^15 equal ranges; [DDR20] Theorem 3, solved by
      `bounded_range_epsilon`. It holds given the dithers, hence without. The deltas of the parts
      do not count here or under "zcdp": rho and range are statements of their own.
    - "optimal": the least epsilon at `delta` that follows from the epsilons and deltas of releases
      that each state an epsilon [KOV15], [MV16], equal or not, adaptive or not
      (`dpq_fast.privacy.optimal`). It is better than "zcdp" for releases of which no better rho is
      known than that of their epsilon, and takes parts that are (epsilon, delta)-DP and no more.
      It is taken if it saves a hundredth: it spends all of `delta`, and is rounded up.

    With ``delta=0``, releases that state only rho give a guarantee that states only rho.
    """
    parts = list(guarantees)
    for part in parts:
        if not isinstance(part, Guarantee):
            raise TypeError(
                f"guarantees must hold Guarantee objects, got an item of type {type(part).__name__}"
            )
    if not parts:
        raise ValueError("guarantees must hold at least one guarantee, got none")
    delta = check_delta(delta)
    adaptive = check_flag("adaptive", adaptive)
    if neighbors is not None:
        parts = [part.to(neighbors) for part in parts]
    elif len(relations := {part.neighbors for part in parts}) > 1:
        came = " and ".join(repr(name) for name in RELATIONS if name in relations)
        raise ValueError(
            f"neighbors must be given to compose guarantees of different relations, got {came}"
        )
    neighbors = parts[0].neighbors

    rhos = [part.implied_rho for part in parts]
    rho = _total(rhos)
    ranges = [part.bounded_range for part in parts]
    bounded_range = None if adaptive else _total(ranges)
    own_delta = math.fsum(part.delta for part in parts)
    unstated = sum(part.epsilon is None for part in parts)

    if delta == 0.0 and unstated:
        if rho is None:
            raise ValueError(
                "delta must be positive to state an epsilon for guarantees of rho alone, got 0.0"
            )
        return Guarantee(None, 0.0, rho, None, neighbors, "zcdp")

    candidates: list[tuple[float, float, str]] = []
    share = (delta - own_delta) / unstated if unstated else 0.0
    within = delta == 0.0 or own_delta <= delta * (1.0 + SUM_TOLERANCE)
    if within and own_delta < 1.0 and (share > 0.0 or not unstated):
        epsilon = total(_stated_epsilon(part, share) for part in parts)
        if epsilon is None:
            raise ValueError("the sum of the epsilons must be finite, got inf")
        candidates.append((epsilon, delta if unstated else own_delta, "basic"))
    if delta > 0.0 and rho is not None:
        candidates.append((zcdp_epsilon(rho, delta), delta, "zcdp"))
    alike = len(set(ranges)) == 1 and len(parts) <= MAX_COMPOSED
    each = ranges[0] if bounded_range and alike else None
    if delta > 0.0 and each is not None and COMPOSABLE[0] <= each <= COMPOSABLE[1]:
        # Not sound for adaptive sequences: [DDR20] shows that the adversary gains by adapting.
        # Sound for ranges given the dithers, since (epsilon, delta) is kept by mixtures.
        epsilon = bounded_range_epsilon(len(parts), each, delta)
        candidates.append((epsilon, delta, "bounded-range"))
    if delta > 0.0 and not unstated:
        best = optimal_epsilon(((_known(part.epsilon), part.delta) for part in parts), delta)
        if best is not None and all(best < WORTHWHILE * other[0] for other in candidates):
            candidates.append((best, delta, "optimal"))
    if not candidates:
        if delta == 0.0:
            raise ValueError(f"the sum of the deltas must be below 1, got {own_delta}")
        raise ValueError(
            f"delta must be {'more than' if unstated else 'at least'} the sum of the deltas, "
            f"{own_delta}, got {delta}"
        )
    epsilon, total_delta, theorem = min(candidates)  # smallest epsilon, then smallest delta
    return Guarantee(epsilon, total_delta, rho, bounded_range, neighbors, theorem)


def _stated_epsilon(part: Guarantee, delta: float) -> float:
    """The epsilon of a guarantee; for one that states only rho, that of it at `delta`."""
    if part.epsilon is not None:
        return part.epsilon
    assert part.rho is not None  # a guarantee states one of them
    return zcdp_epsilon(part.rho, delta)


def _total(terms: Iterable[float | None]) -> float | None:
    """The sum; None if a term is None."""
    known = []
    for term in terms:
        if term is None:
            return None
        known.append(term)
    return total(known)


class BudgetExceeded(ValueError):
    """A release was refused because it would overdraw its `Accountant`; no data was touched.

    Examples
    --------
    >>> try:
    ...     Accountant(1.0).charge(Guarantee(2.0))
    ... except BudgetExceeded as refused:
    ...     print(str(refused)[:51])
    a release must fit the budget of epsilon=1.0, delta
    """


class Entry(NamedTuple):
    """A charge.

    Attributes
    ----------
    number : int
        1 for the first charge of the budget, and so on.
    when : datetime
        When it was charged, in UTC, by the clock of the machine.
    what : str
        What for: the text of `Accountant.noted`, or the name of the release.
    guarantee : Guarantee
        What was charged, in the relation of the budget.
    """

    number: int
    when: datetime
    what: str
    guarantee: Guarantee


# What charges are for: pairs of an accountant and a text, the innermost last.
_NOTES: ContextVar[tuple[tuple[Accountant, str], ...]] = ContextVar("notes", default=())

# Why there is one object for a budget, and the way to go, for messages.
_ONE_BUDGET = (
    "since each copy would have the whole budget (Accountant.open keeps one that processes share)"
)

# For each statement that is added up, floats whose exact sum is the total.
Totals = tuple[tuple[float, ...], ...]


def added(terms: tuple[float, ...], term: float) -> tuple[float, ...]:
    """`term` added to a sum without rounding: floats whose exact sum is the sum.

    (Shewchuk 1997, Theorem 10.) `math.fsum` of them is that of all terms, rounded once; but they
    are few, however many terms there were. A sum beyond float64 is infinite.
    """
    kept = []
    for part in terms:
        if abs(term) < abs(part):
            term, part = part, term
        high = term + part
        if math.isinf(high):
            return (math.inf,)
        low = part - (high - term)  # what was rounded off, exactly
        if low != 0.0:
            kept.append(low)
        term = high
    return (*kept, term) if term else tuple(kept)


@in_our_words
class Accountant:
    r"""A budget that refuses what would overdraw it, whatever order and size the releases have.

    Parameters
    ----------
    epsilon : float
        Total epsilon, per person.
    delta : float, default 0.0
        Total delta.
    neighbors : {"swap", "add-remove"}, default "swap"
        The relation of the budget.
    composition : {"basic", "zcdp"}, default "basic"
        "basic" adds up epsilon and delta. "zcdp" needs ``delta > 0``, keeps a budget of
        ``zcdp_rho(epsilon, delta)``, and takes releases that have or imply a rho.
    convert : bool, default False
        Whether to take guarantees of another relation by `Guarantee.to`.

    Raises
    ------
    TypeError, ValueError
        If an argument breaks its rule.

    See Also
    --------
    Accountant.open : A budget in a file, for several processes, and after they have ended.

    Notes
    -----
    The analyst may choose each release *and its budget* after seeing all outputs so far. Adding
    up against a bound fixed beforehand stays sound then: it is a privacy filter, for basic
    composition by Rogers, Roth, Ullman and Vadhan 2016, for zCDP by Feldman and Zrnic 2021. The
    theorem is chosen once, here. Going on as long as *either* of two theorems allows is not a
    filter: when to stop would then depend on outputs in a way that neither proof covers. For
    releases fixed in advance, `compose` may take the best theorem.

    Sums are correctly rounded, and a total may exceed the budget by 1e-12 of it, so that ten
    charges of 0.1 fit a budget of 1.0. Thread-safe.

    There is one budget, and one object that keeps it: a copy would have the whole budget a second
    time. So an accountant is not copied (`TypeError`) or pickled, and takes no charge in a forked
    child (`RuntimeError`). `Accountant.open` keeps a budget that processes share.

    Examples
    --------
    >>> accountant = Accountant(1.0)
    >>> accountant.charge(Guarantee(0.25))  # and then the release
    >>> accountant.remaining.epsilon
    0.75
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        neighbors: str = "swap",
        composition: str = "basic",
        *,
        convert: bool = False,
    ) -> None:
        self._epsilon = check_epsilon(epsilon)
        self._delta = check_delta(delta)
        self._neighbors = relation_of(neighbors).name
        self._composition = check_choice("composition", composition, COMPOSITIONS)
        self._convert = check_flag("convert", convert)
        self._rho: float | None = None
        if composition == "zcdp":
            if self._delta == 0.0:
                raise ValueError("delta must be positive for composition 'zcdp', got 0.0")
            self._rho = zcdp_rho(self._epsilon, self._delta)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._entries: list[Entry] = []
        self._totals = self._nothing()

    @staticmethod
    @in_our_words
    def open(
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        neighbors: str = "swap",
        composition: str = "basic",
        convert: bool = False,
    ) -> Ledger:
        r"""A budget in a file: processes share it, and it outlives them.

        Parameters
        ----------
        path : str or PathLike
            The file, an SQLite data base.
        epsilon : float, optional
            Total epsilon. Given: a new file is made if there is none, and the budget of an existing
            one must be this one. None: the file must exist, and says what its budget is. An empty
            file is no new one: it may be a ledger that lost what was in it.
        delta, neighbors, composition
            As of `Accountant`. With ``epsilon=None`` those that are not their defaults must agree
            with the file.
        convert : bool, default False
            Whether to take guarantees of another relation by `Guarantee.to`. It is no part of the
            budget: each who opens the file decides for their own charges.

        Returns
        -------
        Ledger
            An `Accountant` (`dpq_fast.privacy.ledger`), which also has `check`, `path` and `close`.

        Raises
        ------
        TypeError, ValueError
            If an argument breaks its rule, the file is no ledger or one of another version, or it
            holds another budget.
        OSError
            If the file cannot be opened.

        Examples
        --------
        >>> import os, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = os.path.join(folder.name, "payroll.budget")
        >>> with Accountant.open(path, epsilon=1.0) as accountant:
        ...     with accountant.noted("median of pay"):
        ...         accountant.charge(Guarantee(0.25))
        >>> Accountant.open(path).remaining.epsilon
        0.75
        >>> folder.cleanup()
        """
        from dpq_fast.privacy.ledger import Ledger  # which is built on this module, and on sqlite3

        return Ledger(
            path,
            epsilon=epsilon,
            delta=delta,
            neighbors=neighbors,
            composition=composition,
            convert=convert,
        )

    @property
    def epsilon(self) -> float:
        """The total epsilon of the budget."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """The total delta of the budget."""
        return self._delta

    @property
    def neighbors(self) -> str:
        """The relation of the budget."""
        return self._neighbors

    @property
    def composition(self) -> str:
        """How releases add up: "basic" or "zcdp"."""
        return self._composition

    def charge(self, guarantee: Guarantee) -> None:
        """Record the cost of a release, before the release looks at the first record.

        Parameters
        ----------
        guarantee : Guarantee
            What the release promises.

        Raises
        ------
        BudgetExceeded
            If the release does not fit into what is left beside all others.
        TypeError, ValueError
            If the guarantee's relation does not match, or it lacks the statement that the
            accountant adds up.
        RuntimeError
            In a forked child, if the budget is in memory.

        Notes
        -----
        There is no refund. Whether a release fails once it reads records (a NaN where there must
        be none, a source that breaks off, an interrupt, no memory) may depend on them, so a
        failure is an output, and could be asked for again and again. The library's releases check
        all that is public first: what they refuse for it is not charged.
        """
        charged = self._accepted(guarantee)
        notes = [text for accountant, text in _NOTES.get() if accountant is self]
        self._record(notes[-1] if notes else "charge", charged)

    @in_our_words
    @contextmanager
    def noted(self, what: str) -> Iterator[None]:
        """Say what the charges inside a ``with`` block are for (`Entry.what`).

        Parameters
        ----------
        what : str
            A text that is public, as the whole record of charges is.

        Raises
        ------
        TypeError, ValueError
            If `what` is no string, or one that is no Unicode text.

        Notes
        -----
        It holds for charges in this thread (or task) alone. Of two blocks the inner one counts.

        Examples
        --------
        >>> accountant = Accountant(1.0)
        >>> with accountant.noted("share of commuters"):
        ...     accountant.charge(Guarantee(0.25))
        >>> accountant.entries[0].what
        'share of commuters'
        """
        if not isinstance(what, str):
            raise TypeError(f"what must be a string, got {type(what).__name__}")
        if any("\ud800" <= letter <= "\udfff" for letter in what):
            raise ValueError("what must be Unicode text, got lone surrogates")
        token = _NOTES.set((*_NOTES.get(), (self, what)))
        try:
            yield
        finally:
            _NOTES.reset(token)

    def _accepted(self, guarantee: Guarantee) -> Guarantee:
        """`guarantee` in the budget's relation, with the statement that is added up."""
        if not isinstance(guarantee, Guarantee):
            raise TypeError(f"guarantee must be a Guarantee, got {type(guarantee).__name__}")
        if guarantee.neighbors != self._neighbors:
            if not self._convert:
                raise ValueError(
                    f"the guarantee must be under {self._neighbors!r}, the accountant's relation "
                    f"(or set convert=True), got {guarantee.neighbors!r}"
                )
            guarantee = guarantee.to(self._neighbors)
        if self._rho is not None:
            if guarantee.implied_rho is None:
                raise ValueError(
                    "a release must state rho for an accountant of composition 'zcdp', "
                    f"got {_describe(guarantee)}"
                )
        elif guarantee.epsilon is None:
            raise ValueError(
                "a release must state epsilon for an accountant of composition 'basic', "
                f"got {_describe(guarantee)}"
            )
        return guarantee

    def _record(self, what: str, charged: Guarantee) -> None:
        """Refuse what does not fit, or add an entry: both at once, whoever else does."""
        if os.getpid() != self._process:  # not under the lock, which a fork may leave taken
            raise RuntimeError(
                f"an accountant must be charged by the process that made it, {_ONE_BUDGET}, "
                "got a forked child"
            )
        with self._lock:
            totals = self._fitting(self._totals, charged)
            self._entries.append(Entry(len(self._entries) + 1, now(), what, charged))
            self._totals = totals

    def _state(self) -> tuple[int, Totals]:
        """How many entries there are, and the totals of them all."""
        with self._lock:
            return len(self._entries), self._totals

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The charges, in the order in which they were made."""
        with self._lock:
            return tuple(self._entries)

    def _nothing(self) -> Totals:
        """The totals before the first charge: of rho, or of epsilon and delta."""
        return ((),) if self._rho is not None else ((), ())

    def _costs(self, guarantee: Guarantee) -> tuple[float, ...]:
        """What is added up of a guarantee that was accepted: (rho,) or (epsilon, delta)."""
        costs = (
            (guarantee.implied_rho,)
            if self._rho is not None
            else (guarantee.epsilon, guarantee.delta)
        )
        return tuple(_known(cost) for cost in costs)

    def _with(self, totals: Totals, charged: Guarantee) -> Totals:
        """The totals with those of one more release."""
        return tuple(map(added, totals, self._costs(charged)))

    def _fits(self, totals: Totals) -> bool:
        """Whether totals are within the budget."""
        budget = (self._rho,) if self._rho is not None else (self._epsilon, self._delta)
        return all(
            sum_ <= bound * (1.0 + SUM_TOLERANCE) and math.isfinite(sum_)
            for sum_, bound in zip(map(math.fsum, totals), budget, strict=True)
        )

    def _fitting(self, before: Totals, charged: Guarantee) -> Totals:
        """The totals with `charged`; `BudgetExceeded` unless it fits."""
        totals = self._with(before, charged)
        if self._fits(totals):
            return totals
        spent = tuple(map(math.fsum, before))
        if self._rho is not None:
            raise BudgetExceeded(
                f"a release must fit the budget of rho={self._rho}, of which rho={spent[0]} is "
                f"spent, got rho={charged.implied_rho}"
            )
        raise BudgetExceeded(
            f"a release must fit the budget of epsilon={self._epsilon}, delta={self._delta}, of "
            f"which epsilon={spent[0]}, delta={spent[1]} is spent, got {_describe(charged)}"
        )

    @property
    def spent(self) -> Guarantee:
        """Guarantee of all releases charged so far.

        Under "zcdp" its epsilon is that of the rho spent, at the budget's delta.
        """
        return self._spent(self._state()[1])

    def _spent(self, totals: Totals) -> Guarantee:
        sums = tuple(map(math.fsum, totals))
        if self._rho is None:
            # The sum of deltas may pass a budget just below 1 by the tolerance.
            delta = min(sums[1], math.nextafter(1.0, 0.0))
            return Guarantee(sums[0], delta, neighbors=self._neighbors, composition="basic")
        (rho,) = sums
        epsilon = zcdp_epsilon(rho, self._delta)
        return Guarantee(epsilon, self._delta, rho, None, self._neighbors, "zcdp")

    @property
    def remaining(self) -> Guarantee:
        """The largest guarantee that `charge` still takes; of rho alone under "zcdp"."""
        return self._remaining(self._state()[1])

    def _remaining(self, totals: Totals) -> Guarantee:
        sums = tuple(map(math.fsum, totals))
        if self._rho is not None:
            return Guarantee(None, rho=max(0.0, self._rho - sums[0]), neighbors=self._neighbors)
        epsilon = max(0.0, self._epsilon - sums[0])
        return Guarantee(epsilon, max(0.0, self._delta - sums[1]), neighbors=self._neighbors)

    @property
    def history(self) -> tuple[Guarantee, ...]:
        """The recorded guarantees in the order in which they were charged."""
        return tuple(entry.guarantee for entry in self.entries)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"an accountant must not be copied or pickled, {_ONE_BUDGET}, got {type(self).__name__}"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._budget()}: {self._balance()}>"

    def _budget(self) -> str:
        """The budget, for `repr` and for messages."""
        return (
            f"epsilon={self._epsilon}, delta={self._delta}, neighbors={self._neighbors!r}, "
            f"composition={self._composition!r}"
        )

    def _balance(self) -> str:
        """The number of releases, what is spent and what is left."""
        number, totals = self._state()
        spent, left = self._spent(totals), self._remaining(totals)
        if self._rho is not None:
            amounts = f"rho={spent.rho} spent, rho={left.rho} left"
        elif self._delta == 0.0:
            amounts = f"epsilon={spent.epsilon} spent, epsilon={left.epsilon} left"
        else:
            amounts = f"{_describe(spent)} spent, {_describe(left)} left"
        return f"{number} release{'' if number == 1 else 's'}, {amounts}"


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(timezone.utc)


def _known(statement: float | None) -> float:
    """A statement of a guarantee that was accepted, which has it."""
    assert statement is not None
    return statement


def _describe(guarantee: Guarantee) -> str:
    """The statements that a budget is about, for a message."""
    if guarantee.epsilon is None:
        return f"rho={guarantee.rho} alone"
    return f"epsilon={guarantee.epsilon}, delta={guarantee.delta}"


class Calibrated(Protocol):
    """What a call spends and guarantees, made once from its public arguments."""

    @property
    def guarantee(self) -> Guarantee:
        """What the call promises, by what it spends."""


def mechanism_of(calibration: Calibrated) -> str:
    """The name of the mechanism whose file made a calibration."""
    return type(calibration).__module__.rpartition(".")[2]


def charge(
    accountant: Accountant | None, calibration: Calibrated, release: str | None = None
) -> None:
    """Charge a call to its accountant, if there is one.

    Every release calls it when all that is public has been checked, and no record been read.

    Parameters
    ----------
    accountant : Accountant or None
        Of the call.
    calibration : Calibrated
        What the call spends and guarantees.
    release : str, optional
        What the charge is for, where `Accountant.noted` says nothing. Default: the mechanism that
        the calibration belongs to.

    Raises
    ------
    BudgetExceeded
        If the call does not fit into the budget.
    TypeError, ValueError
        As of `Accountant.charge`.
    """
    if accountant is None:
        return
    if not isinstance(accountant, Accountant):
        raise TypeError(f"accountant must be an Accountant, got {type(accountant).__name__}")
    name = mechanism_of(calibration) if release is None else release
    token = _NOTES.set(((accountant, name), *_NOTES.get()))  # the outermost note
    try:
        accountant.charge(calibration.guarantee)
    finally:
        _NOTES.reset(token)
