"""The mechanisms as an audit sees them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast._prepared import Prepared
from dpq_fast.audit.neighbors import column_of
from dpq_fast.audit.tables import (
    Table,
    by_candidates,
    by_group,
    by_key,
    halts,
    in_stages,
    integers,
    keys_of,
    on_lattice,
)
from dpq_fast.mechanisms.cdf import cdf
from dpq_fast.mechanisms.ind_exp import ind_exp
from dpq_fast.mechanisms.quantile import median, percentile, quantile
from dpq_fast.mechanisms.quantile_by import quantile_by
from dpq_fast.mechanisms.registry import MECHANISMS, Mechanism
from dpq_fast.mechanisms.select_keys import select_keys
from dpq_fast.mechanisms.two_stage import two_stage


def check_guarantee(guarantee: Any) -> None:
    """Refuse what is neither a guarantee nor None."""
    if not (guarantee is None or isinstance(guarantee, privacy.Guarantee)):
        raise TypeError(f"guarantee must be a Guarantee or None, got {type(guarantee).__name__}")


def promised(guarantee: privacy.Guarantee | None) -> privacy.Guarantee:
    """The guarantee to be tested, which a mechanism of the caller's comes with."""
    if guarantee is None:
        raise ValueError("guarantee must be given for a mechanism of your own, got None")
    return guarantee


def charged(method: _Method, kind: np.dtype, parameters: dict[str, Any]) -> privacy.Guarantee:
    """What a release charges, of however many records."""
    return method.prepared(column_of((), kind, method.paired), **parameters).guarantee


def _of_pairs(release: Callable[..., Any]) -> Callable[..., Prepared[Any]]:
    """A mechanism on records and their keys, as one on pairs."""

    def prepared(columns: tuple[NDArray[Any], list[Any]], **parameters: Any) -> Prepared[Any]:
        return Prepared.of(release, *columns, **parameters)

    return prepared


def _select_keys(column: NDArray[Any], **parameters: Any) -> Prepared[NDArray[Any]]:
    """A selection of keys, of records that are keys."""
    return Prepared.of(select_keys, keys_of(column), **parameters)


def _cdf(column: NDArray[Any], **parameters: Any) -> Prepared[NDArray[np.float64]]:
    """A distribution function as the numbers that it is made of."""
    prepared = Prepared.of(cdf, column, **parameters)
    return prepared.then(lambda released: np.concatenate((released.x, released.p)))


def _of_queries(release: Callable[..., Any]) -> Callable[..., Prepared[Any]]:
    """A mechanism on queries, as one on records."""

    def prepared(
        column: NDArray[Any], queries: Callable[[NDArray[Any]], Any], **parameters: Any
    ) -> Prepared[Any]:
        return Prepared.of(release, queries(column), **parameters)

    return prepared


class _Method(NamedTuple):
    """A mechanism as an audit sees it.

    Attributes
    ----------
    prepared : callable
        Of a column and parameters.
    tables : callable or None
        The laws on some columns, given the parameters and the outputs to look at, if any; None
        where no law is known.
    takes_delta : bool
        Whether `delta` is one of its parameters.
    paired : bool
        Whether records have keys.
    """

    prepared: Callable[..., Prepared[Any]]
    tables: Callable[..., list[Table]] | None = None
    takes_delta: bool = False
    paired: bool = False


def _of_row(row: Mechanism) -> _Method:
    """A row of the registry as an audit sees it."""
    release, tables = row.release, None
    prepared: Callable[..., Prepared[Any]] = partial(Prepared.of, release)
    if row.reads == "groups":
        prepared, tables = _of_pairs(release), by_group if release is quantile_by else None
    elif row.reads == "keys":
        prepared, tables = _select_keys, by_key
    elif row.reads == "queries":
        prepared = _of_queries(release)
        tables = partial(halts, single=row.law is not None)
    elif row.reads == "order" and row.law is not None:
        tables = partial(on_lattice, row.law, dithers=row.release is not ind_exp)
        if release is two_stage:
            tables = partial(in_stages, row.law)
    elif row.reads == "records":
        tables = partial(by_candidates, row.law) if row.law else partial(integers, name=row.name)
    elif row.release is cdf:
        prepared = _cdf
    return _Method(prepared, tables, "delta" in row.budgets, row.reads == "groups")


METHODS = {name: _of_row(row) for name, row in MECHANISMS.items()} | {
    front.__name__: _Method(partial(Prepared.of, front), takes_delta=True)
    for front in (quantile, median, percentile)
}
WITH_LAW = tuple(name for name, method in METHODS.items() if method.tables is not None)
