r"""Audits: how much privacy a mechanism loses, from its exact laws or from many runs of it.

`exact` goes through all neighbors of small data sets and all outputs, and finds the largest
privacy loss there is. `estimate` runs a mechanism many times on two neighbors, and finds a lower
bound on epsilon that is wrong with a probability of your choice.

Nothing here is a release: what an audit returns depends on the data without any noise. Audit
made-up data.
"""

from __future__ import annotations

import inspect
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement, product
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from dpq_fast import _checks, aggregates, privacy
from dpq_fast.above_threshold import above_threshold, above_threshold_law, sparse_vector
from dpq_fast.agg_tree import agg_tree
from dpq_fast.approx_quantiles import approx_quantiles, approx_quantiles_law
from dpq_fast.cdf import cdf
from dpq_fast.ind_exp import ind_exp, ind_exp_law
from dpq_fast.joint_exp import JointExpLaw, joint_exp, joint_exp_law
from dpq_fast.lattice import Lattice
from dpq_fast.levels import Levels
from dpq_fast.noise import discrete_laplace_log_prob
from dpq_fast.path_law import PathLaw
from dpq_fast.quantile import median, percentile, quantile
from dpq_fast.quantile_by import GroupQuantiles, quantile_by
from dpq_fast.rng import default_rng
from dpq_fast.sample import Records, Sample
from dpq_fast.smooth import csmooth
from dpq_fast.unbounded import UnboundedQuantileLaw, unbounded_quantile, unbounded_quantile_law

# Laws are right to 1e-9; a mechanism that spends all of its epsilon may be found so much above it.
TOLERANCE = 1e-9
# Tables of more outputs, or of more dithers, are refused.
MOST_OUTPUTS = 2**18
# More data sets are refused, too, and more runs: all that is drawn is kept.
MOST_DATA_SETS = 2**16
MOST_TRIALS = 2**26
# Orders of the Renyi divergences that are looked at.
ALPHAS = (1.125, 1.5, 2.0, 4.0, 8.0, 32.0, 128.0)
# Thresholds for an event, of each number of an output.
THRESHOLDS = 64

DataSet = tuple[Any, ...]
Table = Mapping[Any, float]


class Witness(NamedTuple):
    """Where the largest loss is: two neighbors, and the output that tells them apart best.

    Attributes
    ----------
    x, x_neighbor : tuple
        Two data sets; the output is at least as likely on the first.
    output : object
    """

    x: DataSet
    x_neighbor: DataSet
    output: Any


@dataclass(frozen=True)
class ExactAudit:
    r"""What `exact` found.

    Attributes
    ----------
    mechanism : str
    neighbors : {"swap", "add-remove"}
    guarantee : Guarantee or None
        What is promised: what a call charges an accountant.
    epsilon : float
        Largest log ratio of two neighbors' probabilities of an output; inf if one of them is 0.
    bounded_range : float
        Largest difference of two outputs' log ratios for one pair of neighbors; where records are
        dithered, given the dithers (`privacy.Guarantee.bounded_range`).
    rho : float
        Largest :math:`D_\alpha / \alpha` over the orders in `ALPHAS`.
    delta : float
        Largest delta at the promised epsilon.
    covered : float
        Least probability of all outputs together; below 1 where only some were given, and then
        every number here is a lower bound.
    witness : Witness or None
        Where `epsilon` is reached; None if it is 0.
    pairs : int
        How many pairs of neighbors were compared.
    tolerance : float
        By how much a promise may be exceeded, for rounding.
    """

    mechanism: str
    neighbors: str
    guarantee: privacy.Guarantee | None
    epsilon: float
    bounded_range: float
    rho: float
    delta: float
    covered: float
    witness: Witness | None
    pairs: int
    tolerance: float

    @property
    def holds(self) -> bool:
        """Whether every statement of the guarantee holds, but for `tolerance`."""
        promise = _promised(self.guarantee)
        statements = [(self.rho, promise.rho), (self.bounded_range, promise.bounded_range)]
        if promise.delta > 0.0:
            statements.append((self.delta, promise.delta))
        else:
            statements.append((self.epsilon, promise.epsilon))
        return all(
            found <= claimed + self.tolerance
            for found, claimed in statements
            if claimed is not None
        )


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
        promise = _promised(self.guarantee)
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


def _check_guarantee(guarantee: Any) -> None:
    if not (guarantee is None or isinstance(guarantee, privacy.Guarantee)):
        raise TypeError(f"guarantee must be a Guarantee or None, got {type(guarantee).__name__}")


def _promised(guarantee: privacy.Guarantee | None) -> privacy.Guarantee:
    if guarantee is None:
        raise ValueError("guarantee must be given for a mechanism of your own, got None")
    return guarantee


def exact(
    mechanism: str | Callable[..., Any],
    x: Any,
    *,
    domain: Iterable[Any],
    neighbors: str = "swap",
    outputs: Iterable[Any] | None = None,
    dtype: Any = np.float64,
    guarantee: privacy.Guarantee | None = None,
    tolerance: float = TOLERANCE,
    **parameters: Any,
) -> ExactAudit:
    r"""Find the largest privacy loss of a mechanism, from its exact laws. Not a release.

    Parameters
    ----------
    mechanism : str or callable
        The name of a public function: "joint_exp", "ind_exp", "approx_quantiles",
        "unbounded_quantile", "quantile_by", "above_threshold", "sparse_vector", "count", "sum" or
        "mean". Or a function of a column and of `parameters`, which returns the law on it: a
        mapping from output to log-probability, or an object with ``log_prob(output)``.
    x : sequence of records, or int
        A made-up data set, all of whose neighbors are looked at; or a number n: all pairs of
        neighbors with up to n records out of `domain`. A record is a number; for "quantile_by" a
        pair of a number and a key.
    domain : iterable of records
        The values that a record may take. NaN, a record that is left out, is one of them unless
        ``nan_policy="raise"`` is among the parameters, whatever `dtype` is; with
        ``public_by=True``, NaN of each key.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces each record by each value of `domain` (its key stays with
        ``public_by=True``); "add-remove" removes each record and adds each value. With
        ``max_contributions=k``, up to k times over.
    outputs : iterable, optional
        The outputs to look at. Default: all. They must be given for a law without a list of its
        outputs: ``resolution=0``, ``uniform=True``, an object with ``log_prob``.
    dtype : data-type, default float64
        Type of the column that the mechanism is given. Where a record is NaN and the type has
        none, the column is of float64: readers infer types in this way.
    guarantee : Guarantee, optional
        What is promised. Default: what a call of `mechanism` charges an accountant.
    tolerance : float, default 1e-9
        By how much the promise may be exceeded.
    **parameters
        As for the mechanism. For "above_threshold" and "sparse_vector", `queries` is a function
        from a column to the values of the queries on it.

    Returns
    -------
    ExactAudit

    Raises
    ------
    TypeError, ValueError
        If an argument breaks its rule, or there are more than 2^18 outputs or 2^16 data sets.

    See Also
    --------
    estimate : For mechanisms without a law, and for the code that draws.

    Notes
    -----
    A data set is a multiset: records are given in ascending order, NaN last.

    **What is compared.** The laws that the library draws from, or, for counts, sums and means, the
    integers that discrete Laplace noise is added to and its exact law; a mean is compared by the
    two noisy integers that it is computed from, and a sum with a private clip together with that
    clip. (What is computed from an output loses no more than the output.) Outputs beyond those
    integers of all data sets have equal ratios and are put together. The groups of
    "quantile_by" are independent laws of `joint_exp`.

    With ``resolution=0`` or ``uniform=True`` outputs have densities, of which only the ratios are
    compared; `rho`, `delta` and `covered` mean nothing then.

    **Dither.** With dither, a law is summed over all dithers of one bit per record; a release has
    up to 24 bits, too many to sum over. Whatever the bits, a dither is a randomization of single
    records, which costs nothing. The range alone is a statement about the laws that are summed: it
    is compared for all dithers of both neighbors that agree on the records in common.

    **Cost.** About the number of data sets times the number of outputs, 10 to 100 microseconds
    each; one or two dozen records and outputs are plenty.

    Examples
    --------
    >>> found = exact(
    ...     "joint_exp",
    ...     3,
    ...     domain=[0, 1, 2],
    ...     q=[0.25, 0.75],
    ...     epsilon=1.0,
    ...     bounds=(0, 2),
    ...     resolution=1,
    ...     dither=False,
    ... )
    >>> found.holds
    True
    >>> found.pairs
    90
    """
    relation = _checks.check_neighbors(neighbors)
    _check_guarantee(guarantee)
    tolerance = _checks.check_nonnegative("tolerance", tolerance)
    kind = np.dtype(dtype)
    if isinstance(mechanism, str):
        method = _METHODS[_checks.check_choice("mechanism", mechanism, _WITH_LAW)]
        name, paired = mechanism, method.paired
        parameters["neighbors"] = relation
        if guarantee is None:
            guarantee = _charged(method, kind, parameters)
        tables = method.tables
    else:
        name, paired = getattr(mechanism, "__name__", "law"), False
        tables = partial(_tables_of, mechanism)
    values = [_record(value) for value in domain]
    fixed_key = bool(parameters.get("public_by", False))
    if parameters.get("nan_policy", "omit") == "omit":
        # a private key of a record that is left out makes no difference
        keys = [key for _, key in values][: None if fixed_key else 1] if paired else []
        values += [(math.nan, key) for key in keys] if paired else [math.nan]
    values = sorted(set(values), key=_place)
    step = partial(_next, values=values, relation=relation, fixed_key=fixed_key)
    reach = _checks.check_max_contributions(parameters.get("max_contributions", 1))
    pairs = _pairs(x, values, step, reach, reach if relation == "add-remove" else 0)
    data_sets = sorted({data_set for pair in pairs for data_set in pair}, key=_order)
    columns = [_column(data_set, kind, paired) for data_set in data_sets]
    found = tables(columns, parameters, None if outputs is None else list(outputs))
    return _compared(
        dict(zip(data_sets, found, strict=True)),
        pairs,
        parameters.get("resolution") == 0 or bool(parameters.get("uniform")),
        mechanism=name,
        neighbors=relation,
        guarantee=guarantee,
        tolerance=tolerance,
    )


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
    if trials > MOST_TRIALS:
        raise ValueError(f"trials must be at most {MOST_TRIALS}, got {trials}")
    _check_guarantee(guarantee)
    delta = _checks.check_delta(delta)
    if not 0.0 < _checks._real("confidence", confidence) < 1.0:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    one, other = (tuple(_record(record) for record in data_set) for data_set in (x, x_neighbor))
    if isinstance(mechanism, str):
        name = _checks.check_choice("mechanism", mechanism, tuple(_METHODS))
        release, paired = _METHODS[name].release, _METHODS[name].paired
        if _METHODS[name].takes_delta and parameters.get("rho") is None:
            parameters["delta"] = delta
        _check_neighboring(one, other, parameters)
        if guarantee is None:
            guarantee = _charged(_METHODS[name], kind, parameters)
    else:
        name, release, paired = getattr(mechanism, "__name__", "mechanism"), mechanism, False
    generator = default_rng(rng)
    drawn = [
        [_frozen(release(column, rng=generator, **parameters)) for _ in range(trials)]
        for column in (_column(data_set, kind, paired) for data_set in (one, other))
    ]
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


# --- Neighbors ------------------------------------------------------------------------------------


def _record(value: Any) -> Any:
    """A record that equals all like it: every NaN is one object."""
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise ValueError(
                "a record must be a number, or a pair of a number and a key, got "
                f"{len(value)} things"
            )
        return _record(value[0]), value[1]
    if not isinstance(value, Real):
        raise TypeError(f"a record must be a real number, got {type(value).__name__}")
    return value if value == value else math.nan


def _place(record: Any) -> tuple:
    """Where a record stands in order: by key, NaN last, by value."""
    value, key = record if isinstance(record, tuple) else (record, "")
    return repr(key), value != value, value if value == value else 0.0


def _order(data_set: DataSet) -> tuple:
    return len(data_set), [_place(record) for record in data_set]


def _next(
    data_set: DataSet, values: Sequence[Any], relation: str, fixed_key: bool
) -> Iterator[DataSet]:
    """The neighbors of a data set by one record, as ordered tuples."""
    for i, record in enumerate(data_set):
        rest = data_set[:i] + data_set[i + 1 :]
        if relation == "add-remove":
            yield rest
            continue
        for value in values:
            if not fixed_key or value[1] == record[1]:
                yield _with(rest, value)
    if relation == "add-remove":
        for value in values:
            yield _with(data_set, value)


def _with(data_set: DataSet, record: Any) -> DataSet:
    """A data set with one more record, in order."""
    at = bisect_right(data_set, _place(record), key=_place)
    return (*data_set[:at], record, *data_set[at:])


def _pairs(
    x: Any,
    values: Sequence[Any],
    step: Callable[[DataSet], Iterator[DataSet]],
    reach: int,
    added: int,
) -> set[tuple[DataSet, DataSet]]:
    """All pairs of neighbors, each once: of one data set, or of all with up to x records.

    Neighbors are `reach` steps away, and have up to `added` records more.
    """
    try:
        most = _checks.check_count("x", x, 0)
    except TypeError:
        starts, most = [tuple(sorted((_record(record) for record in x), key=_place))], math.inf
    else:
        _check_data_sets(math.comb(len(values) + most, most))
        starts = [
            data_set
            for size in range(most + 1)
            for data_set in combinations_with_replacement(values, size)
        ]
    _check_data_sets(math.comb(len(values) + added, added))
    pairs = set()
    for start in starts:
        reached = frontier = {start}
        for _ in range(reach):
            found = set()
            for one in frontier:
                found.update(step(one))
                _check_data_sets(len(reached) + len(found))
            frontier = found - reached
            if not frontier:
                break
            reached = reached | frontier
        for other in reached - {start}:
            if len(other) <= most:
                pairs.add(tuple(sorted((start, other), key=_order)))
    return pairs


def _check_data_sets(number: int) -> None:
    if number > MOST_DATA_SETS:
        raise ValueError(
            f"x, domain and max_contributions must make at most {MOST_DATA_SETS} data sets"
        )


def _check_neighboring(one: DataSet, other: DataSet, parameters: Mapping[str, Any]) -> None:
    """Raise unless a promise under the relation is about these two data sets."""
    relation = parameters.get("neighbors", "swap")
    removed, added = ((Counter(a) - Counter(b)).total() for a, b in ((one, other), (other, one)))
    changed = max(removed, added) if relation == "swap" else removed + added
    allowed = parameters.get("max_contributions", 1)
    same_keys = not parameters.get("public_by", False) or Counter(
        record[1] for record in one
    ) == Counter(record[1] for record in other)
    if changed > allowed or (relation == "swap" and removed != added) or not same_keys:
        raise ValueError(
            f"x and x_neighbor must be neighbors under {relation!r}, got {removed} records "
            f"removed and {added} added"
        )


def _column(data_set: DataSet, kind: np.dtype, paired: bool) -> Any:
    """What a mechanism is given: a column, or columns of values and of keys."""
    values = [value for value, _ in data_set] if paired else data_set
    if kind.kind in "biu" and any(value != value for value in values):
        kind = np.dtype(np.float64)
    column = np.array(values, dtype=kind)
    return (column, [key for _, key in data_set]) if paired else column


# --- Exact laws -----------------------------------------------------------------------------------


class _Mixture(dict):
    """The law on records that are dithered, and what it is a mixture of.

    Attributes
    ----------
    points : Counter
        How many records are at each lattice point.
    given : dict
        The laws given the dithers, for each data set of dithered records.
    """

    def __init__(self, law: Table, points: Counter[int], given: Mapping[DataSet, Table]) -> None:
        super().__init__(law)
        self.points = points
        self.given = given


def _compared(
    tables: dict[DataSet, Table],
    pairs: set[tuple[DataSet, DataSet]],
    density: bool,
    **names: Any,
) -> ExactAudit:
    """The largest losses over all pairs; of densities, which do not add up, only ratios."""
    labels = {
        label: i for i, label in enumerate(dict.fromkeys(o for t in tables.values() for o in t))
    }
    laws = {data_set: _row(table, labels) for data_set, table in tables.items()}
    laws_given: dict[DataSet, NDArray[np.float64]] = {}

    def row_given(given: Mapping[DataSet, Table], dithered: DataSet) -> NDArray[np.float64]:
        if dithered not in laws_given:
            laws_given[dithered] = _row(given[dithered], labels)
        return laws_given[dithered]

    outputs = list(labels)
    guarantee = names["guarantee"]
    promised = None if guarantee is None else guarantee.epsilon
    epsilon = bounded_range = rho = delta = 0.0
    witness = None
    for pair in sorted(pairs, key=lambda pair: (_order(pair[0]), _order(pair[1]))):
        a, b = (laws[data_set] for data_set in pair)
        possible, ratio = _ratio(a, b)
        if not possible.any():
            continue
        at = int(np.abs(ratio).argmax())
        if abs(ratio[at]) > epsilon:
            epsilon = abs(float(ratio[at]))
            ordered = pair if ratio[at] > 0.0 else pair[::-1]
            witness = Witness(*ordered, outputs[at])
        one, other = (tables[data_set] for data_set in pair)
        if isinstance(one, _Mixture):
            for keys in _coupled(one, other):
                a_given, b_given = (row_given(one.given, key) for key in keys)
                bounded_range = max(bounded_range, _range(a_given, b_given))
        else:
            bounded_range = max(bounded_range, _range(a, b))
        for log_p, log_r in () if density else ((a, b), (b, a)):
            rho = max(rho, _rho(log_p, log_r))
            if promised is not None:
                delta = max(delta, _delta(log_p, log_r, promised))
    covered = min((float(np.exp(law).sum()) for law in laws.values()), default=1.0)
    return ExactAudit(
        epsilon=epsilon,
        bounded_range=bounded_range,
        rho=rho,
        delta=delta,
        covered=covered,
        witness=witness,
        pairs=len(pairs),
        **names,
    )


def _row(table: Table, labels: Mapping[Any, int]) -> NDArray[np.float64]:
    """The log-probabilities of all outputs, in one order."""
    row = np.full(len(labels), -np.inf)
    for label, log_prob in table.items():
        if label in labels:
            row[labels[label]] = log_prob
    return row


def _ratio(
    a: NDArray[np.float64], b: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which outputs are possible on either side, and their log ratios; 0 for the others."""
    possible = (a > -np.inf) | (b > -np.inf)
    with np.errstate(invalid="ignore"):  # never on either: not looked at
        return possible, np.where(possible, a - b, 0.0)


def _range(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Largest difference of two outputs' log ratios."""
    possible, ratio = _ratio(a, b)
    top, bottom = ratio[possible].max(initial=-np.inf), ratio[possible].min(initial=np.inf)
    return float(top - bottom) if top > bottom else 0.0


def _rho(log_p: NDArray[np.float64], log_r: NDArray[np.float64]) -> float:
    r"""Largest :math:`D_\alpha / \alpha` of one law from another over `ALPHAS`."""
    known = log_p > -np.inf
    log_p, log_r = log_p[known], log_r[known]
    if log_r.min(initial=0.0) < -1e300:  # -inf, or where a multiple would be
        return math.inf
    return max(
        float(np.logaddexp.reduce(alpha * log_p + (1.0 - alpha) * log_r)) / (alpha - 1.0) / alpha
        for alpha in ALPHAS
    )


def _delta(log_p: NDArray[np.float64], log_r: NDArray[np.float64], epsilon: float) -> float:
    """Delta at an epsilon: what one law has beyond e^epsilon times the other."""
    known = log_p > -np.inf
    with np.errstate(over="ignore"):  # e^-inf is 0: all of it counts
        beyond = np.exp(log_p[known]) * -np.expm1(
            np.minimum(epsilon + log_r[known] - log_p[known], 0.0)
        )
    return float(beyond.sum())


def _tables_of(
    law_of: Callable[..., Any],
    columns: list[Any],
    parameters: Mapping[str, Any],
    outputs: list[Any] | None,
) -> list[Table]:
    """Laws of the caller's: mappings, or objects with ``log_prob``."""
    tables = []
    for column in columns:
        law = law_of(column, **parameters)
        if isinstance(law, Mapping):
            tables.append(_only(law, outputs))
        elif outputs is None:
            raise ValueError("outputs must be given for laws that are no mappings, got None")
        else:
            tables.append({_frozen(output): law.log_prob(output) for output in outputs})
    return tables


def _only(table: Table, outputs: list[Any] | None) -> Table:
    if outputs is None:
        return table
    return {label: table.get(label, -math.inf) for label in map(_frozen, outputs)}


def _frozen(output: Any) -> Any:
    """An output that can be looked up: arrays, and what holds one, as flat tuples."""
    if isinstance(output, GroupQuantiles):
        output = output.values
    if isinstance(output, (np.ndarray, np.generic, list, tuple)):
        flat = np.ravel(output).tolist()
        return flat[0] if np.ndim(output) == 0 else tuple(flat)
    return output


def _tuples(points: Sequence[Any], m: int) -> Iterator[tuple]:
    """All ascending m-tuples, if they are not too many."""
    if math.comb(len(points) + m - 1, m) > MOST_OUTPUTS:
        raise ValueError(
            f"outputs must be given where there are more than {MOST_OUTPUTS}; or make them fewer, "
            "by a coarser resolution or beta"
        )
    return combinations_with_replacement(points, m)


def _lattice_of(parameters: Mapping[str, Any]) -> Lattice | None:
    return Lattice.of(
        _checks.check_bounds(parameters.get("bounds")),
        parameters.get("resolution"),
        parameters.get("dither"),
    )


def _points_of(lattice: Lattice | None) -> range:
    """The numbers of all points of a lattice."""
    if lattice is None:
        raise ValueError("outputs must be given with resolution=0, got None")
    return range(lattice.points)


def _on_lattice(
    law_of: Callable[..., Any],
    columns: list[Any],
    parameters: dict[str, Any],
    outputs: list[Any] | None,
) -> list[Table]:
    """Laws of mechanisms with bounds, and a dither or not."""
    if parameters.get("base") == "unbounded":
        return _by_candidates(law_of, columns, parameters, outputs)
    levels = Levels(parameters["q"])
    lattice = _lattice_of(parameters)
    if lattice is not None and lattice.bits:
        given: dict[DataSet, Table] = {}
        return [
            _without_dither(law_of, column, lattice, levels, parameters, outputs, given)
            for column in columns
        ]
    if outputs is None:
        outputs = [
            levels.restore(lattice.decode(np.array(points)))
            for points in _tuples(_points_of(lattice), levels.m)
        ]
    return _tables_of(law_of, columns, parameters, outputs)


def _without_dither(
    law_of: Callable[..., Any],
    column: NDArray,
    lattice: Lattice,
    levels: Levels,
    parameters: dict[str, Any],
    outputs: list[Any] | None,
    given: dict[DataSet, Table],
) -> _Mixture:
    """The law summed over all dithers of one bit: on a lattice of half the spacing, floored."""
    low, high = lattice.decode(np.array([0, lattice.points - 1])).tolist()
    step = lattice.step / 2.0
    public = dict(bounds=(low, high + step), resolution=step, dither=False)
    fine = Lattice.of(public["bounds"], step, False)
    kept = Counter(lattice.encode(column[~np.isnan(column)]).tolist())
    size = kept.total()
    if size > MOST_OUTPUTS.bit_length() - 1:
        raise ValueError(f"x must have few records with dither, got {size}")
    tuples = [np.array(points) for points in _tuples(range(2 * lattice.points), levels.m)]
    released = [levels.restore(fine.decode(points)) for points in tuples]
    labels = [_frozen(levels.restore(lattice.decode(points >> 1))) for points in tuples]

    def given_dither(dithered: DataSet) -> Table:
        law = law_of(fine.decode(np.array(dithered, dtype=np.int64)), **{**parameters, **public})
        terms: dict[Any, list[float]] = {}
        for label, output in zip(labels, released, strict=True):
            terms.setdefault(label, []).append(law.log_prob(output))
        return {label: float(np.logaddexp.reduce(logs)) for label, logs in terms.items()}

    mixed: dict[Any, list[float]] = {}
    for dithered, times in _dithers(kept):
        if dithered not in given:
            given[dithered] = given_dither(dithered)
        share = math.log(times / 2**size)
        for label, log_prob in given[dithered].items():
            mixed.setdefault(label, []).append(share + log_prob)
    whole = {label: float(np.logaddexp.reduce(logs)) for label, logs in mixed.items()}
    return _Mixture(_only(whole, outputs), kept, given)


def _dithers(points: Counter[int]) -> Iterator[tuple[DataSet, int]]:
    """All dithers of one bit of records at some points, as data sets, and how many are alike."""
    for upper in product(*(range(times + 1) for times in points.values())):
        moved = zip(points.items(), upper, strict=True)
        halves = {
            2 * point + bit: (times - up, up)[bit] for (point, times), up in moved for bit in (0, 1)
        }
        alike = math.prod(map(math.comb, points.values(), upper))
        yield tuple(sorted(Counter(halves).elements())), alike


def _coupled(one: _Mixture, other: _Mixture) -> Iterator[tuple[DataSet, DataSet]]:
    """All dithers of two data sets that agree on the records in common."""
    common = one.points & other.points
    alone = [[own for own, _ in _dithers(table.points - common)] for table in (one, other)]
    for shared, _ in _dithers(common):
        for pair in product(*alone):
            yield tuple(tuple(sorted(shared + own)) for own in pair)


def _by_candidates(
    law_of: Callable[..., Any],
    columns: list[Any],
    parameters: dict[str, Any],
    outputs: list[Any] | None,
) -> list[Table]:
    """Laws of searches."""
    if outputs is None:
        if parameters.get("uniform"):
            raise ValueError("outputs must be given with uniform=True, got None")
        levels = Levels(parameters["q"])
        candidates = law_of(columns[0], **parameters).candidates()
        outputs = [levels.restore(np.array(one)) for one in _tuples(candidates, levels.m)]
    return _tables_of(law_of, columns, parameters, outputs)


def _by_group(
    columns: list[Any], parameters: dict[str, Any], outputs: list[Any] | None
) -> list[Table]:
    """Laws of `quantile_by`: one of `joint_exp` for each group, independent."""
    levels, groups = Levels(parameters["q"]), list(parameters["groups"])
    rate = privacy.quantile_by_rate(
        levels.values,
        parameters["epsilon"],
        parameters["neighbors"],
        parameters.get("max_contributions", 1),
        parameters.get("public_by", False),
    )
    lattice = _lattice_of(parameters)
    if lattice is not None and lattice.bits:
        raise ValueError("dither must be False for quantile_by, whose groups are too many to sum")
    form = {name: parameters.get(name) for name in ("bounds", "resolution", "dither")}
    singles = [
        levels.restore(lattice.decode(np.array(points)))
        for points in _tuples(_points_of(lattice), levels.m)
    ]
    labels = [_frozen(o) for o in product(map(_frozen, singles), repeat=len(groups))]
    known: dict[tuple, NDArray[np.float64]] = {}

    def law_of(values: NDArray) -> NDArray[np.float64]:
        key = tuple(values.tolist())
        if key not in known:
            sample = Sample.of(values, **form)
            law = JointExpLaw(sample, levels, PathLaw(sample.order(), levels.values, rate))
            known[key] = np.array([law.log_prob(output) for output in singles])
        return known[key]

    tables = []
    for values, keys in columns:
        log_prob = np.zeros(1)
        for group in groups:
            inside = np.array([key == group for key in keys], dtype=bool)
            log_prob = np.add.outer(log_prob, law_of(values[inside])).ravel()
        tables.append(_only(dict(zip(labels, log_prob.tolist(), strict=True)), outputs))
    return tables


def _halts(
    columns: list[Any], parameters: dict[str, Any], outputs: list[Any] | None, single: bool
) -> list[Table]:
    """Laws of `sparse_vector`: AboveThreshold on what follows each halt; or of a single one."""
    public = {
        name: value
        for name, value in parameters.items()
        if name in ("threshold", "epsilon1", "epsilon2", "sensitivity", "noise")
    }
    most = 1 if single else _checks.check_count("halts", parameters["halts"])

    def halts(values: NDArray, start: int, left: int) -> Iterator[tuple[tuple[int, ...], float]]:
        if left == 0:
            yield (), 0.0
            return
        law = above_threshold_law(values[start:], **public)
        yield (), law.log_prob(None)
        for k in range(start, values.size):
            for rest, log_rest in halts(values, k + 1, left - 1):
                yield (k, *rest), law.log_prob(k - start) + log_rest

    tables = []
    for column in columns:
        values = np.asarray(parameters["queries"](column), dtype=np.float64)
        table = dict(halts(values, 0, most))
        if single:
            table = {label[0] if label else None: value for label, value in table.items()}
        tables.append(_only(table, outputs))
    return tables


def _integers(
    columns: list[Any], parameters: dict[str, Any], outputs: list[Any] | None, name: str
) -> list[Table]:
    """Laws of integers with discrete Laplace noise, and of the clip that they depend on."""
    if outputs is not None:
        raise ValueError(f"outputs must be left out for {name!r}")
    form = {"nan_policy": parameters.get("nan_policy", "omit")}
    rows = [Records.of(column, **form) for column in columns]
    if name == "count":
        k = parameters.get("max_contributions", 1)
        laws = [
            {(): (0.0, aggregates.count_parts(records, parameters["epsilon"], k))}
            for records in rows
        ]
    else:
        clipping = _clipping(parameters)
        parts_of = clipping.sum_parts if name == "sum" else clipping.mean_parts
        laws = [
            {
                ends: (log_prob, parts_of(records, clipping.clip(ends)))
                for ends, log_prob in _clips(clipping, records)
            }
            for records in rows
        ]
    spans: dict[tuple, list[tuple[int, int]]] = {}
    for ends in {ends for law in laws for ends in law}:
        centers = [[value for value, _ in law[ends][1]] for law in laws]
        spans[ends] = [(min(one), max(one)) for one in zip(*centers, strict=True)]
    size = sum(math.prod(high - low + 2 for low, high in span) for span in spans.values())
    if size > MOST_OUTPUTS:
        raise ValueError(f"resolution must be coarser: at most {MOST_OUTPUTS} outputs, got {size}")
    tables = []
    for law in laws:
        table: dict[Any, float] = {}
        for ends, (log_prob, parts) in law.items():
            noisy = [
                _laplace_table(value, scale, *span)
                for (value, scale), span in zip(parts, spans[ends], strict=True)
            ]
            for chosen in product(*(one.items() for one in noisy)):
                label = (*ends, *(label for label, _ in chosen))
                table[label] = log_prob + math.fsum(log_p for _, log_p in chosen)
        tables.append(table)
    return tables


def _laplace_table(center: int, scale: Any, low: int, high: int) -> dict[str | int, float]:
    """Discrete Laplace noise on one of the integers low, ..., high; what is beyond them as one."""
    if not scale:
        return {center: 0.0}
    rate = float(1 / scale)

    def log_tail(distance: int) -> float:
        return -distance * rate - math.log1p(math.exp(-rate))

    inside = range(low, high + 1)
    table = dict(
        zip(
            inside,
            discrete_laplace_log_prob(np.array(inside) - center, scale).tolist(),
            strict=True,
        )
    )
    return {
        **table,
        f"below {low}": log_tail(center - low + 1),
        f"above {high}": log_tail(high - center + 1),
    }


def _clipping(parameters: dict[str, Any]) -> aggregates.Clipping:
    """What a sum and a mean make of their arguments."""
    bound = inspect.signature(aggregates.sum).bind(None, **parameters)
    bound.apply_defaults()
    public = (
        "epsilon",
        "q",
        "lower",
        "upper",
        "method",
        "share",
        "resolution",
        "neighbors",
        "max_contributions",
    )
    options = bound.arguments["method_options"]
    return aggregates.Clipping(options, **{name: bound.arguments[name] for name in public})


def _clips(
    clipping: aggregates.Clipping, records: Records
) -> Iterator[tuple[tuple[float, ...], float]]:
    """The ends that may be released for a clip, with their log-probabilities."""
    if clipping.method not in (None, "unbounded"):
        raise ValueError(f"method must be 'unbounded' for an exact audit, got {clipping.method!r}")
    search = clipping.search
    if search is None:
        yield (), 0.0
        return
    find = search.sides if clipping.two_sided else search.ladders
    sides = []
    for ladder in find(records):
        law = UnboundedQuantileLaw(search, [ladder])
        sides.append([(end, law.log_prob(end)) for end in law.candidates()])
    for chosen in product(*sides):
        log_prob = math.fsum(log_p for _, log_p in chosen)
        if log_prob > -math.inf:
            yield tuple(end for end, _ in chosen), log_prob


# --- Estimates ------------------------------------------------------------------------------------


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
    """Events that the first half of the outputs of each data set suggests."""
    seen = [Counter(outs[:half]) for outs in drawn]
    often = {output for output, times in (seen[0] + seen[1]).items() if times > 1}
    ratio = {o: (seen[0][o] + 1) / (seen[1][o] + 1) for o in often}
    for limit in sorted(set(ratio.values()))[:: max(1, len(set(ratio.values())) // THRESHOLDS)]:
        likelier = {o for o, r in ratio.items() if r >= limit}
        rarer = {o for o, r in ratio.items() if r <= limit}
        for words, chosen in (("more", likelier), ("less", rarer)):
            happened = np.array([[o in chosen for o in outs] for outs in drawn])
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


def _numbers(drawn: list[list[Any]]) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The numbers that outputs consist of, and the places of their last binary digits."""
    try:
        table = np.array([[np.ravel(o) for o in outs] for outs in drawn], dtype=np.float64)
    except (TypeError, ValueError):  # None, or tuples of different lengths
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


# --- Mechanisms -----------------------------------------------------------------------------------


class _Recorder(privacy.Accountant):
    """An accountant that refuses nothing, and keeps what it is charged."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self.charged: privacy.Guarantee | None = None

    def charge(self, guarantee: privacy.Guarantee) -> None:
        self.charged = guarantee


def _charged(method: _Method, kind: np.dtype, parameters: dict[str, Any]) -> privacy.Guarantee:
    """What a release without records charges."""
    recorder = _Recorder()
    method.release(_column((), kind, method.paired), accountant=recorder, rng=0, **parameters)
    return recorder.charged


def _quantile_by(columns: tuple[NDArray, list[Any]], **parameters: Any) -> GroupQuantiles:
    return quantile_by(*columns, **parameters)


def _cdf(column: NDArray, **parameters: Any) -> NDArray[np.float64]:
    """A distribution function as the numbers that it is made of."""
    released = cdf(column, **parameters)
    return np.concatenate((released.x, released.p))


def _of_queries(release: Callable[..., Any]) -> Callable[..., Any]:
    """A mechanism on queries, as one on records."""

    def released(column: NDArray, queries: Callable[[NDArray], Any], **parameters: Any) -> Any:
        return release(queries(column), **parameters)

    return released


class _Method(NamedTuple):
    """A mechanism as an audit sees it.

    Attributes
    ----------
    release : callable
        Of a column, an `accountant`, a `rng` and parameters.
    tables : callable or None
        The laws on some columns, given the parameters and the outputs to look at, if any; None
        where no law is known.
    takes_delta : bool
        Whether `delta` is one of its parameters.
    paired : bool
        Whether records have keys.
    """

    release: Callable[..., Any]
    tables: Callable[..., list[Table]] | None = None
    takes_delta: bool = False
    paired: bool = False


_METHODS = {
    "joint_exp": _Method(joint_exp, partial(_on_lattice, joint_exp_law)),
    "ind_exp": _Method(ind_exp, partial(_on_lattice, ind_exp_law), takes_delta=True),
    "approx_quantiles": _Method(approx_quantiles, partial(_on_lattice, approx_quantiles_law)),
    "unbounded_quantile": _Method(
        unbounded_quantile, partial(_by_candidates, unbounded_quantile_law)
    ),
    "quantile_by": _Method(_quantile_by, _by_group, paired=True),
    "above_threshold": _Method(_of_queries(above_threshold), partial(_halts, single=True)),
    "sparse_vector": _Method(_of_queries(sparse_vector), partial(_halts, single=False)),
    "count": _Method(aggregates.count, partial(_integers, name="count")),
    "sum": _Method(aggregates.sum, partial(_integers, name="sum")),
    "mean": _Method(aggregates.mean, partial(_integers, name="mean")),
    "csmooth": _Method(csmooth),
    "agg_tree": _Method(agg_tree),
    "cdf": _Method(_cdf, takes_delta=True),
    "quantile": _Method(quantile, takes_delta=True),
    "median": _Method(median, takes_delta=True),
    "percentile": _Method(percentile, takes_delta=True),
}
_WITH_LAW = tuple(name for name, method in _METHODS.items() if method.tables is not None)
