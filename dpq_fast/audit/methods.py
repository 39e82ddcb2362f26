"""The mechanisms as an audit sees them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast.audit.neighbors import column_of
from dpq_fast.audit.tables import (
    Table,
    by_candidates,
    by_group,
    by_key,
    halts,
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


def check_guarantee(guarantee: Any) -> None:
    """Refuse what is neither a guarantee nor None."""
    if not (guarantee is None or isinstance(guarantee, privacy.Guarantee)):
        raise TypeError(f"guarantee must be a Guarantee or None, got {type(guarantee).__name__}")


def promised(guarantee: privacy.Guarantee | None) -> privacy.Guarantee:
    """The guarantee to be tested, which a mechanism of the caller's comes with."""
    if guarantee is None:
        raise ValueError("guarantee must be given for a mechanism of your own, got None")
    return guarantee


class _Recorder(privacy.Accountant):
    """An accountant that refuses nothing, and keeps what it is charged."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self.charged: privacy.Guarantee | None = None

    def charge(self, guarantee: privacy.Guarantee) -> None:
        self.charged = guarantee


def charged(method: _Method, kind: np.dtype, parameters: dict[str, Any]) -> privacy.Guarantee:
    """What a release without records charges."""
    recorder = _Recorder()
    method.release(column_of((), kind, method.paired), accountant=recorder, rng=0, **parameters)
    assert recorder.charged is not None
    return recorder.charged


def _of_pairs(release: Callable[..., Any]) -> Callable[..., Any]:
    """A mechanism on records and their keys, as one on pairs."""

    def released(columns: tuple[NDArray[Any], list[Any]], **parameters: Any) -> Any:
        return release(*columns, **parameters)

    return released


def _select_keys(column: NDArray[Any], **parameters: Any) -> NDArray[Any]:
    """A selection of keys, of records that are keys."""
    return select_keys(keys_of(column), **parameters)


def _cdf(column: NDArray[Any], **parameters: Any) -> NDArray[np.float64]:
    """A distribution function as the numbers that it is made of."""
    released = cdf(column, **parameters)
    return np.concatenate((released.x, released.p))


def _of_queries(release: Callable[..., Any]) -> Callable[..., Any]:
    """A mechanism on queries, as one on records."""

    def released(
        column: NDArray[Any], queries: Callable[[NDArray[Any]], Any], **parameters: Any
    ) -> Any:
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


def _of_row(row: Mechanism) -> _Method:
    """A row of the registry as an audit sees it."""
    release, tables = row.release, None
    if row.reads == "groups":
        release, tables = _of_pairs(release), by_group if release is quantile_by else None
    elif row.reads == "keys":
        release, tables = _select_keys, by_key
    elif row.reads == "queries":
        release = _of_queries(release)
        tables = partial(halts, single=row.law is not None)
    elif row.reads == "order" and row.law is not None:
        tables = partial(on_lattice, row.law, dithers=row.release is not ind_exp)
    elif row.reads == "records":
        tables = partial(by_candidates, row.law) if row.law else partial(integers, name=row.name)
    elif row.release is cdf:
        release = _cdf
    return _Method(release, tables, "delta" in row.budgets, row.reads == "groups")


METHODS = {name: _of_row(row) for name, row in MECHANISMS.items()} | {
    front.__name__: _Method(front, takes_delta=True) for front in (quantile, median, percentile)
}
WITH_LAW = tuple(name for name, method in METHODS.items() if method.tables is not None)
