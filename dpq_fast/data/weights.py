r"""Weights of records, as surveys have them: in parts of the largest that one may have.

With M = `WEIGHT` parts for `max_weight`, a record of weight w has
:math:`\lfloor M \min(w, max\_weight) / max\_weight \rfloor`: so one record has at most M parts,
whatever its weight, and what is proved of persons by weights (`dpq_fast.data.persons`) is true of
records. A weight is a function of its own record, so that nobody else's changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._arguments import in_our_words
from dpq_fast.data.columns import as_column, as_float64, check_declared
from dpq_fast.data.persons import WEIGHT, Persons


@in_our_words
class Weights(Persons):
    """How much each record counts for, in the place of `counts`: survey weights.

    A quantile of level q has at least a share q of all *weight* at or below it. The guarantee is
    about records, each of which weighs up to `max_weight`.

    Parameters
    ----------
    weights : array_like of real numbers, shape (n,)
        Private. They are clipped to [0, `max_weight`], and rounded down to a millionth part of it
        (2**-20); missing ones are 0.
    max_weight : float
        The largest weight that a record may have, chosen without looking at the records: the
        noise goes by it. Positive and finite. Public.

    Raises
    ------
    TypeError
        If `weights` is no column of real numbers, or `max_weight` no number.
    ValueError
        If `max_weight` is not positive and finite.

    See Also
    --------
    quantile : Takes it as `counts`, as its methods, `cdf`, `quantile_by` and `select_keys` do.

    Notes
    -----
    **Privacy.** One record, replaced or removed, changes every weighted rank by at most
    `max_weight`, as it changes ranks by 1 without weights: ε, δ and ρ of a release are the same
    [1]_. How much all weights come to is private under either relation. What goes by single records
    (`csmooth`, ``cdf(method="gaussian")``) refuses weights. A number that is expected
    (`expected_n`), and numbers that a tree or a distribution releases, are in units of
    `max_weight`.

    **Sums.** A sum by weights is one of products, ``sum(x * weights)``, whose clip bounds them; a
    mean is the ratio of two.

    References
    ----------
    .. [1] J. Gillenwater, M. Joseph, A. Kulesza, "Differentially Private Quantiles", ICML 2021:
       the loss is linear in what one person changes of a rank.

    Examples
    --------
    >>> import numpy as np
    >>> import dpq_fast as dpq
    >>> rng = np.random.default_rng(0)
    >>> pay = np.arange(10_000.0)
    >>> weights = np.where(pay < 5_000, 3.0, 1.0)  # of whom few were asked
    >>> answer = dpq.median(
    ...     pay, epsilon=1.0, bounds=(0, 10_000), counts=dpq.Weights(weights, max_weight=3), rng=1
    ... )
    >>> abs(answer - 3_333) < 20
    True
    """

    __slots__ = ("_largest",)

    asked = "Weights"
    whole = "counts must be whole numbers"

    def __init__(self, weights: Any, *, max_weight: float) -> None:
        with _named():
            _checks.check_column(weights)
            check_declared(weights)
        self._largest = _checks.check_epsilon(max_weight, "max_weight")
        self._columns = [weights]
        self._numbers = self._of = self._k = None
        self.most = WEIGHT

    def __repr__(self) -> str:
        return f"Weights(max_weight={self._largest!r})"

    @property
    def shown(self) -> str:  # type: ignore[override]
        """As of `Persons`."""
        return repr(self)

    @property
    def named(self) -> list[tuple[str, Any]]:
        """As of `Persons`."""
        return [("counts", column) for column in self._columns]

    def rows_at_most(self) -> int:
        """As of `Persons`."""
        return max(self._read().size, 1) * self.most

    def weights_beside(
        self, values: NDArray[Any], beside: NDArray[Any] | None = None
    ) -> NDArray[np.int64]:
        """As of `Persons`."""
        weights = self._read()
        if weights.size != values.size:
            raise ValueError("counts must have one weight for each value of x")
        with np.errstate(all="ignore"):
            share = np.clip(weights / self._largest, 0.0, 1.0)
        gone = np.isnan(share)
        if values.dtype.kind == "f":
            gone |= np.isnan(values)
        parts = np.where(gone, 0.0, np.floor(share * WEIGHT))
        return parts.astype(np.int64)

    def _read(self) -> NDArray[np.float64]:
        with _named():
            return as_float64(as_column(self._columns[0]))

    def column(
        self,
        x: Any,
        of_each: Callable[[Persons, NDArray[Any]], NDArray[np.float64]],
        nan_policy: str,
    ) -> NoReturn:
        """No column of one record for each."""
        refuse_sums(self)


@contextmanager
def _named() -> Iterator[None]:
    """Errors about a column, as ones about weights."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("x must", "weights must", 1)) from None


def refuse_sums(counts: Any) -> NoReturn:
    """Say how a sum by weights is one without them."""
    raise ValueError(
        "counts must be whole numbers for counts, sums and means, got "
        f"{counts!r}; a sum by weights is that of x * weights"
    )
