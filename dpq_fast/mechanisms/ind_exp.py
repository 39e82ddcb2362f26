"""IndExp: one private selection per level, composed, and sorted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._arguments import in_our_words
from dpq_fast._prepared import Prepared, about_persons, releases
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.sample import Reader, Sample
from dpq_fast.data.units import DURATIONS, INSTANTS
from dpq_fast.laws.depth import DepthLaw, window_of
from dpq_fast.laws.joint import few
from dpq_fast.laws.joint.path import PathLaw, first_windows, likely_reaches, prepare
from dpq_fast.mechanisms._calls import OneRelease, SampleLaw, with_options
from dpq_fast.mechanisms.intervals import with_interval
from dpq_fast.privacy.ind_exp import FLIP
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dpq_fast.mechanisms._calls import ColumnOptions

# log_prob sums over subsets of levels: 2^m of them.
MAX_LEVELS = 16


class IndExpLaw(SampleLaw):
    """The exact output law of `ind_exp` on one sample. Not a release: see `ind_exp_law`."""

    def __init__(
        self,
        sample: Sample,
        levels: Levels,
        laws: list[PathLaw] | list[DepthLaw],
        lattice: Lattice | None,
    ) -> None:
        self.column = sample
        self._lattice = lattice
        self._levels = levels
        self._laws = laws

    @property
    def lattice(self) -> Lattice | None:
        """The points of outputs, with the prior, which weighs them: the sample has none."""
        return self._lattice

    def log_prob(self, o: Any) -> float:
        """Log-probability of one released (sorted) tuple; its log density without a lattice.

        Parameters
        ----------
        o : array_like of float, shape of q
            An output, in the unit of the sample.

        Returns
        -------
        float
            -inf for what is never released: off the lattice, outside the bounds, or decreasing.

        Raises
        ------
        ValueError
            For more than 16 distinct levels: the sum over which level drew which output has 2^m
            terms.

        Notes
        -----
        An output that is more than 700 nats less likely than the likeliest one loses digits where
        there are 2^40 records or more.
        """
        m = self._levels.m
        if m > MAX_LEVELS:
            raise ValueError(f"log_prob takes at most {MAX_LEVELS} distinct levels, got {m}")
        outputs = self._levels.distinct(o)
        points = None if outputs is None else self.column.locate(outputs)
        if points is None or (points[1:] < points[:-1]).any():
            return -math.inf
        single = np.array(
            [[law.log_prob(points[i : i + 1]) for law in self._laws] for i in range(m)]
        )
        log_total = _log_permanent(single)
        if self.column.lattice is not None:
            # Exchanging equal outputs is no other event. (For a density it is: where two values
            # meet, the density of the sorted pair is the limit from both sides.)
            repeats = np.unique(points, return_counts=True)[1]
            log_total -= sum(math.lgamma(k + 1) for k in repeats.tolist())
        return float(log_total)

    def _draw(self, rng: np.random.Generator, rows: int) -> NDArray[Any]:
        draws = [law.draw(rng, rows) for law in self._laws]
        return np.sort(np.concatenate(draws, axis=1), axis=1)


@np.errstate(under="ignore")  # of terms far below others
def _log_permanent(log_entries: NDArray[np.float64]) -> float:
    """ln of the permanent of exp(log_entries), by additions only: over subsets of columns."""
    m = log_entries.shape[0]
    subsets = np.full(1 << m, -np.inf)
    subsets[0] = 0.0
    size = np.array([subset.bit_count() for subset in range(1 << m)])
    for row in range(m):  # subsets of row columns -> of row + 1 columns
        chosen = np.flatnonzero(size == row)
        for column in range(m):
            free = chosen[(chosen >> column) & 1 == 0]
            more = free | (1 << column)
            subsets[more] = np.logaddexp(subsets[more], subsets[free] + log_entries[row, column])
    return float(subsets[-1])


@releases(INSTANTS, DURATIONS)
@with_options(Sample.reader)
def ind_exp(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    selection: str | None = None,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    expected_n: int | None = None,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    **column: Unpack[ColumnOptions],
) -> Prepared[Any]:
    r"""Release quantiles with one private selection per level, and sort them.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private sample, as in `joint_exp`.
    q : float or array_like of float
        Levels in [0, 1], any order and shape, at least one; duplicates are released once. Public.
    epsilon : float
        Total budget of all levels, positive and finite. Public. Exactly one of `epsilon` and
        `rho`.
    delta : float, default 0
        0 for basic composition, `epsilon` / m for each of m distinct levels; above 0, the optimal
        composition of non-adaptive exponential mechanisms [2]_, solved exactly. Public.
    rho : float, optional
        Total zCDP budget instead of `epsilon`: each level gets the range that rho / m buys. Public.
    bounds, neighbors, resolution, prior, counts, assume_sorted, nan_policy
        As in `joint_exp`.
    dither : bool, optional
        Left out, or False: ties need no dither here. That of a `Sample` is not used.
    privacy_unit, contributions : optional
        Ids of persons, as in `quantile`: the guarantee is about whole persons.
    max_contributions : int, default 1
        Up to this many records per person: the guarantee is per person.
    selection : {"permute-and-flip", "exponential"}, optional
        Default: permute-and-flip for a pure `epsilon`, for which alone it is, and the exponential
        mechanism with `delta` or `rho`. The latter is less accurate, and costs less where several
        releases are composed by their rho or range. Public.
    accountant : Accountant, optional
        Charged with ``guarantee("ind_exp", q=q, ...)``; refuses before `x` is touched.
    rng, workers
        As in `joint_exp`.
    confidence, covers, interval_share, expected_n : optional
        For an interval, as in `quantile`. Public.

    Returns
    -------
    float, ndarray of float64 or Estimate
        In the shape of `q`, non-decreasing in `q`, on the lattice inside `bounds`, in the unit of
        `x`.

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
    joint_exp : All levels in one draw; more accurate for several levels without many ties.
    ind_exp_law : The law that this draws from.

    Notes
    -----
    **Mechanism.** With the target :math:`t = q_j n`, an output o has the utility

    .. math:: u(o) = \min(t - \#\{x < o\},\; \#\{x \le o\} - t),

    how far t lies inside the run of records at o, or minus how far outside. Permute-and-flip [4]_
    goes through the lattice points in random order, and releases the first that it accepts, o with
    probability :math:`\exp(c_j (u(o) - \max u))`; the exponential mechanism draws o with
    probability proportional to :math:`\exp(c_j u(o))`;
    :math:`c_j = \epsilon_j / 2 \Delta_j` with :math:`\Delta_j = 1` for "swap",
    :math:`\max(q_j, 1 - q_j)` for "add-remove". Without a lattice (``resolution=0``) both are the
    exponential mechanism of :math:`-|r(o) - t|`, where r counts the records below o [3]_. With a
    `prior` that gives o the mass w, :math:`c_j u(o) + \ln w` takes the place of :math:`c_j u(o)`.
    Sorting the draws is post-processing.

    **Privacy.** (`epsilon`, `delta`)-DP under `neighbors`, or `rho`-zCDP; proofs:
    `privacy.ind_exp`. Weights are right to 1e-10 relative, none is rounded to zero. Not covered:
    running time and memory.

    **Cost.** Two passes over `x`, none if it is sorted, then O(W) per level for windows of W
    ranks, W about (90 + 2 ln P) m / epsilon on a lattice of P points.

    References
    ----------
    .. [1] J. Gillenwater, M. Joseph, A. Kulesza, "Differentially Private Quantiles", ICML 2021,
       PMLR 139:3713-3722. Section 5.1, Appendix E, Lemma 12.
    .. [2] J. Dong, D. Durfee, R. Rogers, "Optimal Differential Privacy Composition for
       Exponential Mechanisms", ICML 2020. Theorem 3.
    .. [3] A. Smith, "Privacy-preserving statistical estimation with optimal convergence rates",
       STOC 2011. Algorithm 2.
    .. [4] R. McKenna, D. Sheldon, "Permute-and-Flip: A new mechanism for differentially private
       selection", NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=1_000)
    >>> low, high = ind_exp(x, [0.1, 0.9], epsilon=1.0, delta=1e-6, bounds=(-10, 10))
    >>> bool(-10 <= low <= high <= 10)
    True
    """
    levels = Levels.of(q)
    read = _reader(x, column)

    def value_of(*, epsilon: float | None, delta: float, rho: float | None) -> Any:
        calibration = privacy.ind_exp.calibrate(
            levels,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            neighbors=neighbors,
            max_contributions=max_contributions,
            selection=selection,
        )
        if request is None and read.lattice is not None and calibration.selection == FLIP:
            return (
                calibration,
                lambda _: (
                    _few(read, levels, calibration.rates)
                    or law_of(_sample(read, levels, calibration), levels, calibration)
                ),
            )
        return calibration, lambda _: law_of(
            _sample(read, levels, calibration), levels, calibration
        )

    request = Request.of(confidence, covers, interval_share)
    return with_interval(
        value_of,
        levels,
        request,
        x=x,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
        counts=column.get("counts"),
        expected_n=expected_n,
    )


@in_our_words
@about_persons()
@with_options(Sample.reader)
def ind_exp_law(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    selection: str | None = None,
    **column: Unpack[ColumnOptions],
) -> IndExpLaw:
    """The exact output law of `ind_exp` on this sample. Not a release: for audits and research.

    Parameters
    ----------
    x, q, epsilon, delta, rho, neighbors, max_contributions, selection
        As in `ind_exp`.
    bounds, resolution, dither, prior, counts, assume_sorted, nan_policy, workers
        As in `ind_exp`.
    privacy_unit, contributions : optional
        As in `ind_exp`.

    Returns
    -------
    IndExpLaw
        ``log_prob(o)`` and ``sample(rng, size)``.

    Examples
    --------
    >>> arguments = dict(epsilon=1.0, bounds=(0, 9), resolution=1)
    >>> law = ind_exp_law([1, 2, 2, 5], 0.5, **arguments)
    >>> other = ind_exp_law([1, 2, 2, 9], 0.5, **arguments)  # of a neighbor
    >>> max(abs(law.log_prob(o) - other.log_prob(o)) for o in range(10)) <= 1.0 + 1e-9
    True
    >>> law.sample(size=5).shape
    (5,)
    """
    levels = Levels.of(q)
    calibration = privacy.ind_exp.calibrate(
        levels,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
        selection=selection,
    )
    return law_of(_sample(_reader(x, column), levels, calibration), levels, calibration)


def _few(read: Reader, levels: Levels, rates: NDArray[np.float64]) -> OneRelease | None:
    """What releases from few records by permute-and-flip; None for others."""
    assert read.lattice is not None
    lattice, bounds = read.lattice.undithered, read.bounds
    most = few.most_of_flips(rates, lattice)
    values = read.few(lambda n: n <= most)
    if values is None:
        return None

    def draw(rng: np.random.Generator) -> NDArray[np.float64]:
        outputs = few.draw_flips(values, levels.values, rates, bounds, lattice, rng)
        if outputs.size > 1:
            outputs.sort()
        return outputs

    return OneRelease(levels, draw)


def _reader(x: Any, column: ColumnOptions) -> Reader:
    """What reads the records; all that is public about them is checked here."""
    no_dither(column.get("dither"))
    return Sample.reader(x, **column)


def _sample(read: Reader, levels: Levels, spent: privacy.ind_exp.Calibration) -> Sample:
    """The sample; how much of it is likely to be read says how it is put in order."""
    return read(levels.values, lambda n: likely_reaches(n, spent.rates))


def no_dither(dither: bool | None, name: str = "ind_exp") -> bool:
    """False, which is all that `dither` may say."""
    if dither is not None and _checks.check_flag("dither", dither):
        raise ValueError(f"dither must be left out for {name}, got True")
    return False


def law_of(sample: Sample, levels: Levels, spent: privacy.ind_exp.Calibration) -> IndExpLaw:
    """The law of a sample; a dither of its is not used."""
    sample = sample.undithered()
    lattice, sample = sample.lattice, sample.even()
    masses = None if lattice is None else lattice.masses
    order = sample.order()
    q, rates = levels.values, spent.rates
    laws: list[PathLaw] | list[DepthLaw]
    if sample.lattice is None:
        # A path of one level counts its rank twice, to it and from it: half the rate.
        windows = first_windows(order, q, rates / 2.0)
        if levels.m > 1:
            prepare(order, q, windows)
        laws = [
            PathLaw(order, q[j : j + 1], rate / 2.0, guess=window)
            for j, (rate, window) in enumerate(zip(rates.tolist(), windows.tolist(), strict=True))
        ]
    else:
        if levels.m > 1:
            windows = np.array([window_of(order, rate, masses) for rate in rates.tolist()])
            prepare(order, q, windows)
        flip = spent.selection == FLIP
        laws = [
            DepthLaw(order, level, rate, flip, masses=masses)
            for level, rate in zip(q.tolist(), rates.tolist(), strict=True)
        ]
    return IndExpLaw(sample, levels, laws, lattice)
