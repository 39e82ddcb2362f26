"""Many runs of a mechanism on two neighbors: a lower bound on its privacy loss."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from dpq_fast import _checks, privacy
from dpq_fast.audit.methods import METHODS, charged, check_guarantee, promised
from dpq_fast.audit.neighbors import check_neighboring, column_of, record_of
from dpq_fast.audit.tables import hashable
from dpq_fast.noise.rng import default_rng

MAX_TRIALS = 2**26
# Thresholds for an event, of each number of an output.
THRESHOLDS = 64


@dataclass(frozen=True)
class EstimatedAudit:
    """What `estimate` found.

    Attributes
    ----------
    mechanism : str
    guarantee : Guarantee or None
        What is promised: what a call charges an accountant.
    epsilon : float
        A lower bound on epsilon at `delta`, at least 0; right with probability `confidence`.
    delta : float
    confidence : float
    event : str
        The event that it was found with, in words.
    seen : (int, int)
        How often the event happened on the two data sets, the likelier one first.
    trials : int
        Runs on each data set that `seen` is out of.
    """

    mechanism: str
    guarantee: privacy.Guarantee | None
    epsilon: float
    delta: float
    confidence: float
    event: str
    seen: tuple[int, int]
    trials: int

    @property
    def claimed(self) -> float:
        """The smallest epsilon that the guarantee implies at `delta`; inf if there is none."""
        promise = promised(self.guarantee)
        claims = [math.inf]
        if promise.epsilon is not None and promise.delta <= self.delta:
            claims.append(promise.epsilon)
        if promise.implied_rho is not None and self.delta > 0.0:
            claims.append(privacy.zcdp_epsilon(promise.implied_rho, self.delta))
        return min(claims)

    @property
    def holds(self) -> bool:
        """Whether the lower bound is no more than what is claimed."""
        return self.epsilon <= self.claimed


def estimate(
    mechanism: str | Callable[..., Any],
    x: Sequence[Any],
    x_neighbor: Sequence[Any],
    *,
    events: Sequence[Callable[[Any], bool]] | None = None,
    trials: int = 10_000,
    delta: float = 0.0,
    confidence: float = 0.99,
    dtype: Any = np.float64,
    guarantee: privacy.Guarantee | None = None,
    rng: Any = None,
    **parameters: Any,
) -> EstimatedAudit:
    r"""Find a lower bound on epsilon by running a mechanism many times. Not a release.

    Parameters
    ----------
    mechanism : str or callable
        The name of a public function; or any function of a column, `parameters` and a `rng`. The
        output of "cdf" is its `x` and then its `p`.
    x, x_neighbor : sequence of records
        Two made-up data sets that are neighbors under the mechanism's `neighbors`; for
        "quantile_by" of pairs of a number and a key.
    events : sequence of callable, optional
        Functions of an output that say whether an event happened. Default: one event is learned
        from the first half of the trials, and counted in the other half.
    trials : int, default 10_000
        Runs on each of the two data sets; at most 2^26.
    delta : float, default 0.0
        The delta that `epsilon` is for. Mechanisms that take a `delta` of their own, and no `rho`,
        are given it.
    confidence : float, default 0.99
        Probability that the bound is right.
    dtype : data-type, default float64
        Type of the column that the mechanism is given; of a column with NaN as in `exact`.
    guarantee : Guarantee, optional
        What is promised. Default: what a call of `mechanism` charges an accountant.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        What the mechanism draws from.
    **parameters
        As for the mechanism. For "above_threshold" and "sparse_vector", `queries` is a function
        from a column to the values of the queries on it.

    Returns
    -------
    EstimatedAudit

    Raises
    ------
    TypeError, ValueError
        If an argument breaks its rule, or the data sets are no neighbors.

    See Also
    --------
    exact : For mechanisms whose law is known: it finds all there is.

    Notes
    -----
    An event E with probabilities p on the one data set and p' on the other shows that epsilon is
    at least :math:`\ln((p - \delta)/p')`. Both are bounded by the method of Clopper and Pearson,
    with what is left of `confidence` shared equally among all bounds. The learned event is one of:
    an output, or the outputs that are likelier on one side by some factor; a number of the output
    below or above a threshold; the place of its last binary digit below or above one, which gives
    floating-point noise away.

    A lower bound above the promise convicts; one below it acquits nobody. With T trials, nothing
    above :math:`\ln T` is ever found.

    Examples
    --------
    >>> found = estimate("count", [1.0], [], neighbors="add-remove", epsilon=1.0, rng=0)
    >>> found.holds
    True
    >>> 0.7 < found.epsilon
    True
    """
    kind = np.dtype(dtype)
    trials = _checks.check_count("trials", trials, 2)
    if trials > MAX_TRIALS:
        raise ValueError(f"trials must be at most {MAX_TRIALS}, got {trials}")
    check_guarantee(guarantee)
    delta = _checks.check_delta(delta)
    if not 0.0 < _checks._real("confidence", confidence) < 1.0:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    one, other = (tuple(record_of(record) for record in data_set) for data_set in (x, x_neighbor))
    if isinstance(mechanism, str):
        name = _checks.check_choice("mechanism", mechanism, tuple(METHODS))
        paired, prepared = METHODS[name].paired, METHODS[name].prepared
        if METHODS[name].takes_delta and parameters.get("rho") is None:
            parameters["delta"] = delta
        check_neighboring(one, other, parameters)
        if guarantee is None:
            guarantee = charged(METHODS[name], kind, parameters)
    else:
        name, paired = getattr(mechanism, "__name__", "mechanism"), False
    generator, drawn = default_rng(rng), []
    for data_set in (one, other):
        column = column_of(data_set, kind, paired)
        # all that is public is checked once
        release = (
            prepared(column, **parameters).run
            if isinstance(mechanism, str)
            else partial(mechanism, column, **parameters)
        )
        drawn.append([hashable(release(rng=generator)) for _ in range(trials)])
    miss = 1.0 - confidence
    if events is not None:
        if not len(events):
            raise ValueError("events must hold at least one event, got none")
        known = [
            _Event(f"events[{i}]", np.array([[bool(event(o)) for o in outs] for outs in drawn]))
            for i, event in enumerate(events)
        ]
        found = _best(known, trials, delta, miss / (2 * len(known)))
    else:
        half = trials // 2
        likely = _best(_candidates(drawn, half), half, delta, miss)
        unseen = likely.event.happened[list(likely.order), half:]
        found = _Found(
            _lower_bound(unseen.sum(axis=1), trials - half, delta, miss), likely.event, likely.order
        )
        trials -= half
    seen = found.event.happened[list(found.order), -trials:].sum(axis=1).tolist()
    return EstimatedAudit(
        name, guarantee, found.epsilon, delta, confidence, found.event.text, tuple(seen), trials
    )


class _Event(NamedTuple):
    """Something that happens to an output, or not: in words, and for all outputs of both sides."""

    text: str
    happened: NDArray[np.bool_]


class _Found(NamedTuple):
    """A lower bound, and the event and order of the two data sets that give it."""

    epsilon: float
    event: _Event
    order: tuple[int, int]


def _best(events: Iterable[_Event], trials: int, delta: float, miss: float) -> _Found:
    """The event that shows most in the first trials; every bound misses with probability `miss`."""
    return max(
        (
            _Found(
                _lower_bound(event.happened[list(order), :trials].sum(axis=1), trials, delta, miss),
                event,
                order,
            )
            for event in events
            for order in ((0, 1), (1, 0))
        ),
        key=lambda found: found.epsilon,
    )


def _lower_bound(seen: NDArray[np.int64], trials: int, delta: float, miss: float) -> float:
    """A bound that an epsilon is below with probability `miss` at most, by Clopper and Pearson."""
    first, second = seen.tolist()
    least = betaincinv(first, trials - first + 1, miss / 2.0) if first else 0.0
    most = betaincinv(second + 1, trials - second, 1.0 - miss / 2.0) if second < trials else 1.0
    return math.log((least - delta) / most) if least - delta > most else 0.0


def _candidates(drawn: list[list[Any]], half: int) -> Iterator[_Event]:
    """Events that the first half of the outputs of each data set suggests.

    Yields
    ------
    _Event
    """
    seen = [Counter(outs[:half]) for outs in drawn]
    often = {output for output, times in (seen[0] + seen[1]).items() if times > 1}
    ratio = {o: (seen[0][o] + 1) / (seen[1][o] + 1) for o in often}
    ratios = np.array([[ratio.get(o, math.nan) for o in outs] for outs in drawn])
    for limit in sorted(set(ratio.values()))[:: max(1, len(set(ratio.values())) // THRESHOLDS)]:
        likelier = {o for o, r in ratio.items() if r >= limit}
        rarer = {o for o, r in ratio.items() if r <= limit}
        for words, chosen, happened in (
            ("more", likelier, ratios >= limit),
            ("less", rarer, ratios <= limit),
        ):
            text = f"an output {words} often seen on x, by {limit:.3g}"
            if len(chosen) == 1:
                text = f"output = {next(iter(chosen))!r}"
            yield _Event(text, happened)
    for name, numbers in _numbers(drawn):
        known = numbers[:, :half]
        levels = np.unique(known[~np.isnan(known)])
        for level in levels[:: max(1, levels.size // THRESHOLDS)].tolist():
            yield _Event(f"{name} <= {level!r}", numbers <= level)
            yield _Event(f"{name} > {level!r}", numbers > level)
    # outputs that are all distinct, and no numbers, suggest nothing else
    yield _Event("any output", np.ones((len(drawn), len(drawn[0])), dtype=bool))


def _numbers(drawn: list[list[Any]]) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The numbers that outputs consist of, and the places of their last binary digits."""
    try:
        table = np.array([[np.ravel(o) for o in outs] for outs in drawn], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # None, tuples, integers beyond float64
        return
    for i in range(table.shape[2]):
        numbers = table[:, :, i]
        yield f"output[{i}]", numbers
        finite = np.where(np.isfinite(numbers), numbers, 0.0)
        if (finite != np.rint(finite)).any():
            fraction, exponent = np.frexp(finite)
            digits = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
            last = np.log2(np.maximum(digits & -digits, 1).astype(np.float64))
            yield f"last binary digit of output[{i}]", exponent - 53 + last
