"""AboveThreshold and the Sparse Vector Technique: the first queries that reach a threshold."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._arguments import in_our_words
from dpq_fast._checks import real_array
from dpq_fast._kernels.halting import Halting
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data.passes import pieces_of
from dpq_fast.data.reprs import shown
from dpq_fast.laws.halting import HaltingLaw
from dpq_fast.noise.rng import default_rng
from dpq_fast.privacy.above_threshold import Calibration


@releases()
def above_threshold(
    queries: Any,
    threshold: float,
    *,
    epsilon1: float,
    epsilon2: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    noise: str = "exponential",
    accountant: privacy.Accountant | None = None,
    neighbors: str = "swap",
    rng: Any = None,
) -> Prepared[int | None]:
    r"""Release the index of the first query that reaches a threshold, both with noise.

    Parameters
    ----------
    queries : array_like of real numbers, shape (n,), or iterator of real numbers
        Values of the queries on the private data. An iterator is read one query at a time, and
        not beyond the one that halts: it may be endless. inf halts for sure; -inf and NaN never.
    threshold : float
        Finite. Public.
    epsilon1, epsilon2 : float
        Budgets of the threshold's noise and of the queries' noise, positive and finite. Public.
    sensitivity : float, default 1.0
        Most by which one query differs between neighbors. Your promise. Public.
    monotonic : bool, default False
        Your promise that, for any two neighbors, either no query is larger on the first or none
        is larger on the second. It changes the guarantee, not the noise.
    noise : {"exponential", "laplace", "gumbel"}
        Law of both noises. "exponential" has the least variance; "gumbel" is for equal epsilons.
    accountant : Accountant, optional
        Charged with ``guarantee("above_threshold", ...)``; refuses before a query is read.
    neighbors : {"swap", "add-remove"}, default "swap"
        The relation for which `sensitivity` and `monotonic` hold.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        As for `joint_exp`.

    Returns
    -------
    int or None
        Index of the query that halts, counted from 0; None if the queries end before.

    Raises
    ------
    TypeError
        If an argument is not of the type its rule above asks for.
    ValueError
        If a public argument breaks its rule, or an array is not one-dimensional.
    BudgetExceeded
        If `accountant` has too little left.

    See Also
    --------
    sparse_vector : More than one halt.
    above_threshold_law : The law that this draws from.
    dpq_fast.privacy.one_sided_loss : A better guarantee for a family of queries.

    Notes
    -----
    **Mechanism.** Noise of scale :math:`\Delta/\epsilon_1` is added to the threshold once, and
    noise of scale :math:`\Delta/\epsilon_2` to each query; the first query not below the threshold
    halts [1]_. Equal queries are passed over at once: given the threshold's noise, how many pass
    is geometric.

    **Privacy.** :math:`(\epsilon_1 + 2 \epsilon_2)`-DP under `neighbors`. Monotonic:
    :math:`(\epsilon_1 + \epsilon_2)`-DP and :math:`(\epsilon_1/2 + \epsilon_2)^2/2`-zCDP. This
    holds for queries chosen one after another, knowing that the earlier ones did not halt. Only
    the index is released, and noise has full relative precision near 0 and in its tails; the
    probability of each index is right to 1e-9 relative. Query minus threshold is rounded to
    float64, so `sensitivity` must hold for the rounded differences; integers below 2^53 are exact.
    An iterator learns when it is no longer asked, which is the output: its own failure is charged
    like a release, as every failure is once a query was looked at. Not covered: running time.

    **Waiting time.** While the queries stay far below the threshold, the probability not to have
    halted after k of them falls only like a power of k, :math:`k^{-\epsilon_1/\epsilon_2}`: like
    1/k for equal epsilons, and then the mean is infinite. Let the queries rise, or end.

    **Cost.** 0.3 ns per query of an array, which is read up to the halt: 256 queries are passed
    together by the largest of them, and where that one might halt, each of them is asked (20 ns).
    Memory does not grow with the array. 1 µs per query of an iterator and what the iterator takes.

    References
    ----------
    .. [1] D. Durfee, "Unbounded Differentially Private Quantile and Maximum Estimation",
       NeurIPS 2023. Algorithm 1, Section 3, Appendix A.

    Examples
    --------
    >>> import itertools
    >>> k = above_threshold(itertools.count(), 500, epsilon1=1.0, epsilon2=1.0)
    >>> 300 < k < 700
    True
    """
    calibration = privacy.above_threshold.calibrate(
        epsilon1=epsilon1,
        epsilon2=epsilon2,
        sensitivity=sensitivity,
        monotonic=monotonic,
        noise=noise,
        neighbors=neighbors,
    )
    halting = _halting(queries, threshold, calibration, "above_threshold")
    return halting.then(lambda steps: next(steps, None))


@releases()
def sparse_vector(
    queries: Any,
    threshold: float,
    *,
    halts: int,
    epsilon1: float,
    epsilon2: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    noise: str = "exponential",
    accountant: privacy.Accountant | None = None,
    neighbors: str = "swap",
    rng: Any = None,
) -> Prepared[NDArray[np.int64]]:
    r"""Release the indices of the first several queries that reach a threshold.

    AboveThreshold again and again, each time from the query after the last halt, with fresh noise
    on the threshold.

    Parameters
    ----------
    queries, threshold
        As in `above_threshold`; an iterator is not read beyond the last halt.
    halts : int
        Most halts to release, at least 1. Public.
    epsilon1, epsilon2 : float
        Budgets of each halt, as in `above_threshold`. Public.
    sensitivity, monotonic, noise, neighbors, rng
        As in `above_threshold`.
    accountant : Accountant, optional
        Charged with ``guarantee("sparse_vector", ...)``, for all `halts`.

    Returns
    -------
    ndarray of int64, shape (at most halts,)
        Ascending; fewer than `halts` if the queries end before.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As `above_threshold`.

    Notes
    -----
    **Privacy.** `halts` times the epsilon, or the rho, of `above_threshold` ([1]_ Section 3.2).

    References
    ----------
    .. [1] D. Durfee, "Unbounded Differentially Private Quantile and Maximum Estimation",
       NeurIPS 2023.

    Examples
    --------
    >>> sparse_vector([0, 90, 0, 0, 99], 50, halts=3, epsilon1=2.0, epsilon2=2.0, rng=1)
    array([1, 4])
    """
    calibration = privacy.above_threshold.calibrate_halts(
        halts=halts,
        epsilon1=epsilon1,
        epsilon2=epsilon2,
        sensitivity=sensitivity,
        monotonic=monotonic,
        noise=noise,
        neighbors=neighbors,
    )
    halting = _halting(queries, threshold, calibration, "sparse_vector")
    return halting.then(lambda steps: np.fromiter(islice(steps, halts), dtype=np.int64))


class AboveThresholdLaw:
    """The exact output law of `above_threshold`. Not a release: see `above_threshold_law`."""

    def __init__(self, law: HaltingLaw) -> None:
        self._law = law

    def __repr__(self) -> str:
        return shown(self, noise=self._law._noise.name)

    def log_prob(self, k: int | None) -> float:
        """Log-probability to halt at query k, or with None, at none; -inf if there is no k."""
        if k is None:
            return self._law.log_never()
        try:
            query = operator.index(k)
        except TypeError:
            raise TypeError(f"k must be an integer or None, got {_checks._shown(k)}") from None
        # There are no queries beyond int64.
        return self._law.log_prob(query) if abs(query) < 2**63 else -math.inf

    def sample(self, rng: Any = None, size: int | None = None) -> Any:
        """Draw outputs, independent of each other.

        Parameters
        ----------
        rng : None, int, SeedSequence, BitGenerator or Generator, optional
            As for `above_threshold`.
        size : int, optional
            Number of outputs.

        Returns
        -------
        int or None, or ndarray of int64
            One output; with `size` an array of them, in which -1 stands for None.
        """
        drawn = self._law.draw(default_rng(rng), size)
        return None if size is None and drawn < 0 else drawn


@in_our_words
def above_threshold_law(
    queries: Any,
    threshold: float,
    *,
    epsilon1: float,
    epsilon2: float,
    sensitivity: float = 1.0,
    noise: str = "exponential",
) -> AboveThresholdLaw:
    """The exact output law of `above_threshold` on these queries. Not a release: for audits.

    Parameters
    ----------
    queries : array_like of real numbers, shape (n,)
        All queries; equal ones in a row cost as much as one.
    threshold, epsilon1, epsilon2, sensitivity, noise
        As in `above_threshold`.

    Returns
    -------
    AboveThresholdLaw
        ``log_prob(k)``, right to 1e-9 down to e^-700, and ``sample(rng, size)``.

    Examples
    --------
    >>> law = above_threshold_law([0, 1, 4], 3, epsilon1=1.0, epsilon2=1.0)
    >>> law.log_prob(2) > law.log_prob(0)  # the first index is 0
    True
    >>> law.sample(size=5).shape
    (5,)
    """
    calibration = privacy.above_threshold.calibrate(
        epsilon1=epsilon1, epsilon2=epsilon2, sensitivity=sensitivity, noise=noise
    )
    threshold = check_threshold(threshold)
    # Infinite: halts for sure, or never. A signaling NaN would make NumPy warn: of private values.
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = real_array("queries", values_of(queries)) - threshold
    first = np.flatnonzero(np.append(np.ones(min(gaps.size, 1), bool), gaps[1:] != gaps[:-1]))
    lengths = np.diff(first, append=gaps.size)
    return AboveThresholdLaw(
        HaltingLaw(gaps[first], lengths, *calibration.rates, calibration.noise)
    )


def check_threshold(threshold: Any) -> float:
    """The public threshold: a finite real number."""
    number = _checks._real("threshold", threshold)
    if not math.isfinite(number):
        raise ValueError(f"threshold must be finite, got {number}")
    return number


def values_of(queries: Any) -> NDArray[Any]:
    """An array of queries. Messages hold no value: the queries are private."""
    if isinstance(queries, (list, tuple)):  # of no type: NumPy would infer one from the values
        return np.array([number_of(query) for query in queries], dtype=np.float64)
    values = np.asarray(queries)
    check_queries(values)
    return values


def check_queries(queries: NDArray[Any]) -> None:
    """Refuse what is no column of real numbers, by its form alone."""
    if queries.ndim != 1:
        raise ValueError(
            f"queries must be one-dimensional or an iterator, got {queries.ndim} dimensions"
        )
    if queries.dtype.kind not in "iuf":
        raise TypeError(f"queries must be real numbers, got dtype {queries.dtype}")


def number_of(query: Any) -> float:
    """One query of a list or an iterator."""
    if type(query) is float:  # almost always, and much faster
        return query
    if isinstance(query, bool) or not isinstance(query, Real):
        raise TypeError(f"queries must be real numbers, got an item of {type(query).__name__}")
    return _checks._real("queries", query)


def _halting(
    queries: Any, threshold: float, calibration: Calibration, name: str
) -> Prepared[Iterator[int]]:
    """The halts of one release, to be read one by one."""
    threshold = check_threshold(threshold)
    if isinstance(queries, np.ndarray):
        check_queries(queries)

    def draw(rng: np.random.Generator) -> Iterator[int]:
        start = partial(Halting, calibration.noise.name, *calibration.rates, rng)
        if isinstance(queries, Iterator):
            return _halts_of_iterator(start, (number_of(query) - threshold for query in queries))
        return _halts_of_array(start, values_of(queries), threshold)

    return Prepared(calibration, draw, name)


def _halts_of_array(
    start: Callable[[], Halting], queries: NDArray[Any], threshold: float
) -> Iterator[int]:
    stream, begin = None, 0  # a stream goes on from piece to piece; begin: queries before it
    passed = 0  # queries before the piece
    for piece in pieces_of(queries, any_type=True):
        asked = 0  # of the piece, by streams that have halted
        while asked < piece.size:
            if stream is None:
                stream, begin = start(), passed + asked
            step = stream.ask(piece, threshold, asked)
            if step < 0:
                break
            yield begin + step
            stream, asked = None, begin + step + 1 - passed
        passed += piece.size


def _halts_of_iterator(start: Callable[[], Halting], gaps: Iterator[float]) -> Iterator[int]:
    stream = start()
    for k, gap in enumerate(gaps):
        if stream.halts_at(gap):
            yield k
            stream = start()
