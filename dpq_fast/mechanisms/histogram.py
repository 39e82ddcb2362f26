"""Histograms: numbers of records in bins, and of categories, which are bins with names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data.histogram import Bins
from dpq_fast.data.persons import WEIGHTS, parts_of
from dpq_fast.data.records import Records
from dpq_fast.data.units import placed, unit_of
from dpq_fast.data.weights import Weights, refuse_sums
from dpq_fast.mechanisms.aggregates_by import GroupValues, count_by, noisy_integers

MOST_BINS = 2**20


@releases()
def histogram(
    x: Any,
    bins: Any = 10,
    bounds: tuple[Any, Any] | None = None,
    *,
    density: bool = False,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    counts: Any = None,
    privacy_unit: Any = None,
    contributions: Any = WEIGHTS,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    workers: int = 1,
) -> Prepared[tuple[NDArray[Any], NDArray[Any]]]:
    r"""Release how many records are in each bin, as `numpy.histogram` gives them.

    Parameters
    ----------
    x : array_like of real numbers, times or durations, shape (n,)
        Private records, as in `count`; also a `Sample`, or a column of a `Table`.
    bins : int or sequence, default 10
        A number of bins of one width between `bounds`, or their edges, which ascend. Chosen without
        looking at `x`. Public, as all that follow but `counts`.
    bounds : (low, high), optional
        For a number of bins: the outermost edges. Left out where edges are given.
    density : bool, default False
        Give shares of all that was counted per unit of width, whose integral is 1.
    epsilon : float
        Total budget, positive and finite. Exactly one of `epsilon` and `rho`.
    rho : float, optional
        Total zCDP budget instead of `epsilon`: discrete Gaussian noise, where that is less.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record; "add-remove" adds or deletes one.
    counts : array_like of int, shape (n,), optional
        How many records each entry of `x` stands for.
    privacy_unit, contributions : optional
        Ids of persons, as in `count_by`: by weights a person counts once, in parts.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave NaN and null out record by record, or state that there are none: then under "swap"
        the number of records is public, and answers add up to it.
    max_contributions : int, default 1
        Up to this many records per person: the guarantee is per person.
    accountant : Accountant, optional
        Charged with ``guarantee("histogram", ...)``; refuses before `x` is touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system.
    workers : int, default 1
        Threads for passes over a long `x`; the answer does not depend on it.

    Returns
    -------
    hist : ndarray of int64, shape (k,)
        Whole numbers, not negative; of a `density`, and of persons by weights, float64.
    edges : ndarray, shape (k + 1,)
        As `numpy.histogram` has them; of times where `bounds` or `bins` are.

    Raises
    ------
    TypeError
        If `x` or an argument is not of the type its rule above asks for.
    ValueError
        If a public argument breaks its rule, or `x` or `counts` its form (`Sample.of`).
    BudgetExceeded
        If `accountant` has too little left.

    See Also
    --------
    value_counts : Of categories.
    cdf : Of which any range of values has a small error, not bins alone.

    Notes
    -----
    **Mechanism.** Bins are half-open but for the last one, and records outside of them are in none
    (as in `numpy.histogram`), but counted: below and above there is a bin more, which is not shown.
    Each number gets discrete noise. Numbers are made no less than 0; where the number of records
    is public, they become the nearest ones that are not negative and add up to it, with the bins
    that are not shown, which there are none of where the edges are infinite.

    **Privacy.** That of `count_by` with the bins for groups: pure `epsilon`-DP, or `rho`-zCDP. One
    record is in one bin, and a replaced one in another: noise of scale `max_contributions` /
    `epsilon` under "add-remove", twice that under "swap" (for `rho` the root of 2 times).

    **Cost.** One pass over `x`, and a draw for each bin.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).integers(17, 91, size=10_000)
    >>> hist, edges = histogram(ages, 4, (10, 90), epsilon=1.0, nan_policy="raise")
    >>> edges.tolist(), bool((abs(hist - np.histogram(ages, edges)[0]) < 40).all())
    ([10.0, 30.0, 50.0, 70.0, 90.0], True)
    """
    calibration = privacy.aggregates_by.calibrate_histogram(
        epsilon=epsilon, rho=rho, neighbors=neighbors, max_contributions=max_contributions
    )
    _checks.check_flag("density", density)
    if isinstance(counts, Weights):
        refuse_sums(counts)
    if not isinstance(bins, (int, np.integer)) or isinstance(bins, bool):
        if bounds is not None:
            raise ValueError("bounds must be left out where bins are edges")
        given = _edges(bins)
        bounds = (given[0], given[-1])
    elif bounds is None:
        raise ValueError("bounds must be given for a number of bins, got None")
    else:
        _check_few(_checks.check_count("bins", bins))
        given = None
    if given is not None and unit_of({"bounds": bounds}) is None:
        column, unit, ends = x, None, (float(given[0]), float(given[-1]))
    else:
        column, unit, options = placed(x, bounds=bounds)
        ends = _checks.check_bounds(options["bounds"])
    if given is None:
        low, high = ends
        with np.errstate(over="ignore"):  # of the last one, beyond all numbers
            edges = 2.0 * np.linspace(low / 2.0, high / 2.0, int(bins) + 1)
        edges[0], edges[-1] = ends
        shown: Any = edges if unit is None else unit.restored(edges)
    else:
        edges = given.astype(np.float64) if unit is None else unit.points("bins", given)
        shown = given if unit is not None else edges
    if not (edges[1:] > edges[:-1]).all():
        raise ValueError(f"bins must ascend, got {shown[:8].tolist()}")
    _check_few(edges.size - 1)
    form = dict[str, Any](counts=counts, nan_policy=nan_policy, workers=workers)
    read = Records.reader(column, **form)
    parts = parts_of(x, counts)
    n_is_public = calibration.relation.n_is_public
    each = calibration.each
    # what lies outside is in a bin of its own
    below, above = bool(edges[0] > -np.inf), bool(edges[-1] < np.inf)
    cut = np.concatenate((edges[:-1], [math.nextafter(edges[-1], math.inf)]))
    all_bins = Bins.of(np.concatenate(([-np.inf] * below, cut, [np.inf] * above)))

    def draw(rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        records = read()
        numbers = records.count(all_bins)
        total = int(numbers.sum()) if n_is_public and records.n_is_public else None
        noisy = noisy_integers(numbers, each.scale, rng, each.gaussian)
        counted = whole_numbers(noisy, total)
        hist: NDArray[Any] = counted[int(below) : counted.size - int(above)]
        if parts > 1:
            hist = hist / parts
        if density:
            with np.errstate(over="ignore"):  # of a bin as wide as all numbers
                widths, all_of_them = np.diff(edges), hist.sum()
            hist = hist / widths / all_of_them if all_of_them else np.zeros(hist.size)
        return hist, shown

    return Prepared(calibration, draw, "histogram")


def _check_few(bins: int) -> None:
    """Refuse numbers of bins that would take the memory of a column."""
    if bins > MOST_BINS:
        raise ValueError(f"bins must be at most 2^20, got {bins}")


def _edges(bins: Any) -> NDArray[Any]:
    """Edges as they were given, for their form."""
    edges = np.asarray(bins)
    if edges.ndim != 1 or edges.size < 2:
        raise ValueError(f"bins must be a number, or two edges or more, got {bins!r}")
    if edges.dtype == object:  # of decimals, dates and times of Python
        return edges
    if edges.dtype.kind not in "iufmM":
        raise TypeError(f"bins must be numbers or times, got dtype {edges.dtype}")
    return edges


def whole_numbers(noisy: NDArray[Any], total: int | None) -> NDArray[np.int64]:
    """The nearest whole numbers that are not negative, and add up to `total`; post-processing.

    By least squares first: all are moved by the same, and none below 0. Then what is left of units
    goes to the largest fractions.
    """
    if total is None:
        free: NDArray[np.int64] = np.clip(noisy, 0, 2**53).astype(np.int64)
        return free
    # as far below the largest one as the total, there is nothing: exact, however large they are
    numbers = np.maximum(noisy - noisy.max(), -total - 1).astype(np.float64)
    falling = np.sort(numbers)[::-1]
    moves = (np.cumsum(falling) - total) / np.arange(1, numbers.size + 1)
    move = moves[np.flatnonzero(falling > moves)[-1]] if total else 0.0
    near = np.maximum(numbers - move, 0.0)
    found: NDArray[np.int64] = np.floor(near).astype(np.int64)
    order = np.argsort(found - near, kind="stable")
    left = total - int(found.sum())
    found[order[: max(left, 0)]] += 1
    for _ in range(-left):  # of rounding alone
        found[np.argmax(found)] -= 1
    return found


@releases()
def value_counts(
    x: Any,
    *,
    categories: Any,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    counts: Any = None,
    privacy_unit: Any = None,
    contributions: Any = WEIGHTS,
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    workers: int = 1,
    delta: float = 0.0,
    selection_share: float | None = None,
) -> Prepared[GroupValues]:
    """Release how many records each category has.

    Parameters
    ----------
    x : array_like of text, whole numbers, booleans, dates or tuples of them, shape (n,)
        Private records, as the keys of `count_by`.
    categories : sequence, or None
        The categories, chosen without looking at `x`: each gets an answer, and records of others
        are in none. None for those that `select_keys` keeps, for a share of `epsilon` and `delta`.
        Public, as all that follow but `counts`.
    epsilon, rho, neighbors, counts, max_contributions, accountant, rng, workers
        As in `count_by`, whose charge this is.
    privacy_unit, contributions, delta, selection_share
        As in `count_by`.

    Returns
    -------
    GroupValues
        As of `count_by`, of whole numbers that are not negative; of persons by weights of numbers.

    Raises
    ------
    TypeError, ValueError, BudgetExceeded
        As in `count_by`.

    See Also
    --------
    count_by : Of which this is the numbers, none below 0.
    histogram : Of bins of numbers.

    Notes
    -----
    **Privacy.** That of `count_by`, with the records as their own keys: all else is
    post-processing.

    **Cost.** As of `count_by`.

    Examples
    --------
    >>> towns = ["Aarau"] * 200 + ["Basel"] * 3_000
    >>> found = value_counts(towns, categories=["Aarau", "Basel", "Chur"], epsilon=1.0)
    >>> bool((abs(found.values - [200, 3_000, 0]) < 60).all())
    True
    """
    prepared = Prepared.of(
        count_by,
        x,
        x,
        groups=categories,
        epsilon=epsilon,
        rho=rho,
        neighbors=neighbors,
        counts=counts,
        max_contributions=max_contributions,
        workers=workers,
        delta=delta,
        selection_share=selection_share,
    )
    parts = parts_of(x, counts)

    def shown(found: GroupValues) -> GroupValues:
        values = found.values
        values = np.maximum(values, 0.0) if parts > 1 else whole_numbers(values, None)
        return GroupValues(found.groups, values, names=found.names)

    return prepared.then(shown)
