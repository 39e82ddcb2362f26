"""All neighbors of small data sets and all outputs: the largest privacy loss there is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast.audit.methods import METHODS, WITH_LAW, charged, check_guarantee, promised
from dpq_fast.audit.neighbors import (
    DataSet,
    column_of,
    neighboring_pairs,
    next_neighbors,
    order_of,
    place_of,
    record_of,
)
from dpq_fast.audit.tables import Mixture, Table, coupled, tables_of
from dpq_fast.privacy.relations import relation_of

# Laws are right to 1e-9: a mechanism that spends all of its epsilon may be found above it by that.
TOLERANCE = 1e-9
# Orders of the Renyi divergences that are looked at.
ALPHAS = (1.125, 1.5, 2.0, 4.0, 8.0, 32.0, 128.0)


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
        promise = promised(self.guarantee)
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
        The name of a public function: "joint_exp", "ind_exp", "approx_quantiles", "two_stage",
        "unbounded_quantile", "quantile_by", "select_keys", "above_threshold", "sparse_vector",
        "count", "sum", "mean", "var" or "std". Or a function of a column and of `parameters`,
        which returns the law on it: a mapping from output to log-probability, or an object with
        ``log_prob(output)``.
    x : sequence of records, or int
        A made-up data set, all of whose neighbors are looked at; or a number n: all pairs of
        neighbors with up to n records out of `domain`. A record is a number, for "select_keys" a
        whole one; for "quantile_by" a pair of a number and a key.
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
    "quantile_by" are independent laws of `joint_exp`. Of "two_stage" the answers of the pilot and
    the release are compared together, given one dither; `expected_n` must be given, and the second
    stage must not be a tree, whose noise is that of "agg_tree".

    With ``resolution=0`` or ``uniform=True`` outputs have densities, of which only the ratios are
    compared; `rho`, `delta` and `covered` mean nothing then.

    **Dither.** With dither, a law is summed over the two dithers of one bit; a release has up to
    2^31, too many to sum over. Whatever the bits, given its shift a dither takes neighbors to
    neighbors, which costs nothing. The range alone is a statement about the laws that are summed:
    it is compared for each dither of both neighbors.

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
    relation = relation_of(neighbors)
    check_guarantee(guarantee)
    tolerance = _checks.check_nonnegative("tolerance", tolerance)
    kind = np.dtype(dtype)
    if isinstance(mechanism, str):
        method = METHODS[_checks.check_choice("mechanism", mechanism, WITH_LAW)]
        name, paired = mechanism, method.paired
        parameters["neighbors"] = relation.name
        if guarantee is None:
            guarantee = charged(method, kind, parameters)
        assert method.tables is not None
        tables = method.tables
    else:
        name, paired = getattr(mechanism, "__name__", "law"), False
        tables = partial(tables_of, mechanism)
    values = [record_of(value) for value in domain]
    fixed_key = bool(parameters.get("public_by", False))
    if parameters.get("nan_policy", "omit") == "omit":
        # a private key of a record that is left out makes no difference
        keys = [key for _, key in values][: None if fixed_key else 1] if paired else []
        values += [(math.nan, key) for key in keys] if paired else [math.nan]
    values = sorted(set(values), key=place_of)
    step = partial(next_neighbors, values=values, relation=relation, fixed_key=fixed_key)
    reach = _checks.check_max_contributions(parameters.get("max_contributions", 1))
    pairs = neighboring_pairs(x, values, step, reach, 0 if relation.n_is_public else reach)
    data_sets = sorted({data_set for pair in pairs for data_set in pair}, key=order_of)
    columns = [column_of(data_set, kind, paired) for data_set in data_sets]
    found = tables(columns, parameters, None if outputs is None else list(outputs))
    return _compared(
        dict(zip(data_sets, found, strict=True)),
        pairs,
        parameters.get("resolution") == 0 or bool(parameters.get("uniform")),
        mechanism=name,
        neighbors=relation.name,
        guarantee=guarantee,
        tolerance=tolerance,
    )


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
    for pair in sorted(pairs, key=lambda pair: (order_of(pair[0]), order_of(pair[1]))):
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
        if isinstance(one, Mixture) and isinstance(other, Mixture):
            for keys in coupled(one, other):
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
    if not log_p.size:
        return -math.inf
    orders = np.array(ALPHAS)[:, None]
    terms = orders * log_p + (1.0 - orders) * log_r
    most = terms.max(axis=1, keepdims=True)
    sums = most + np.log(np.exp(terms - most).sum(axis=1, keepdims=True))
    return float((sums / (orders - 1.0) / orders).max())


def _delta(log_p: NDArray[np.float64], log_r: NDArray[np.float64], epsilon: float) -> float:
    """Delta at an epsilon: what one law has beyond e^epsilon times the other."""
    known = log_p > -np.inf
    with np.errstate(over="ignore"):  # e^-inf is 0: all of it counts
        beyond = np.exp(log_p[known]) * -np.expm1(
            np.minimum(epsilon + log_r[known] - log_p[known], 0.0)
        )
    return float(beyond.sum())
