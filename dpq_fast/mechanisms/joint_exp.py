"""JointExp: m quantiles at once by one draw of the exponential mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._arguments import in_our_words
from dpq_fast._kernels.scan import Scan
from dpq_fast._prepared import Prepared, about_persons, releases
from dpq_fast.data.sample import Reader, Sample
from dpq_fast.data.units import DURATIONS, INSTANTS
from dpq_fast.laws.joint import choice, few, path
from dpq_fast.laws.joint.coarse import CoarseLaw
from dpq_fast.laws.joint.path import PathLaw
from dpq_fast.laws.joint.plan import PLAN
from dpq_fast.mechanisms._calls import OneRelease, SampleLaw, with_options
from dpq_fast.mechanisms.intervals import with_interval
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dpq_fast.mechanisms._calls import ColumnOptions

KERNELS = ("scan", "fft")


class JointExpLaw(SampleLaw):
    """The exact output law of `joint_exp` on one sample. Not a release: see `joint_exp_law`."""

    def __init__(self, sample: Sample, levels: Levels, paths: PathLaw | CoarseLaw) -> None:
        self.column = sample
        self._levels = levels
        self._paths = paths

    def log_prob(self, o: Any) -> float:
        """Log-probability of one output tuple; its log density without a lattice.

        Parameters
        ----------
        o : array_like of float, shape of q
            An output, in the unit of the sample.

        Returns
        -------
        float
            -inf for what is never released: off the lattice, outside the bounds, or decreasing.

        Notes
        -----
        An output that is more than 700 nats less likely than the likeliest one loses digits where
        there are 2^40 records or more.
        """
        outputs = self._levels.distinct(o)
        if outputs is None:
            return -math.inf
        points = self.column.locate(outputs)
        return -math.inf if points is None else self._paths.log_prob(points)

    def _draw(self, rng: np.random.Generator, rows: int) -> NDArray[Any]:
        return self._paths.draw(rng, rows)


@releases(INSTANTS, DURATIONS)
@with_options(Sample.reader)
def joint_exp(
    x: Any,
    q: Any,
    *,
    epsilon: float,
    neighbors: str = "swap",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    kernel: str = "scan",
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    expected_n: int | None = None,
    **column: Unpack[ColumnOptions],
) -> Prepared[Any]:
    r"""Release m quantiles at once with JointExp.

    One draw of the exponential mechanism over non-decreasing m-tuples in `bounds`, scored by how
    evenly they split the sample.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private sample, any order, n >= 0, in the unit of `bounds`: an array, a pandas, polars or
        pyarrow column, a sequence, or a `Sample`. Clamped to `bounds`; NaN is left out
        (`nan_policy`).
    q : float or array_like of float
        Levels in [0, 1], any order and shape, at least one; duplicates are released once. Public.
    epsilon : float
        Budget for the whole tuple, positive and finite. Public.
    bounds : (float, float)
        Finite low < high, chosen without looking at `x`. Public. Left out only for a `Sample`.
        With a `prior` that has quantiles an end may be infinite (`Sample.of`).
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record, n is public; "add-remove" adds or deletes one.
    resolution : float, optional
        Spacing of the public lattice of outputs, in the unit of `x`; 0 for the paper's continuous
        mechanism, which is not hardened against attacks on low-order bits. Default: a power of
        ten, about 10^-6 of the range of `bounds`, with a `prior` of where most of it is
        (`Sample.of`). Give 1 where values are whole: ties then cost nothing. Public.
    dither : bool, optional
        Spread the records of a lattice point evenly over its cell before the mechanism, so that
        ties do no harm. Default: wherever there is a lattice. Public.
    prior : "uniform", "log", "scale-free", distribution, functions or mixture, optional
        A guess at the distribution of the records, made without looking at `x`, for wide bounds
        and few records: "log" (log-uniform, for positive bounds), "scale-free" (where nothing is
        known but the bounds), a frozen `scipy.stats` distribution, functions (cdf, ppf), or a
        mixture of (weight, prior) pairs. Answers are drawn towards it only as far as records are
        too few to say better. Default: uniform; see `Sample.of`. Public.
    counts : array_like of int, shape (n,), optional
        How often each value of `x` occurs. Private, as `x` is.
    assume_sorted : bool, default False
        The caller's promise that `x` ascends, NaN last.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave NaN and null out record by record, or state that there are none.
    privacy_unit, contributions : optional
        Ids of persons, as in `quantile`: the guarantee is about whole persons.
    max_contributions : int, default 1
        Up to this many records per person: the guarantee is per person.
    accountant : Accountant, optional
        Charged with ``guarantee("joint_exp", ...)``; refuses before `x` is touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system. Anything
        else is given to `numpy.random.default_rng`, for tests and experiments.
    workers : int, default 1
        Threads for passes over a long `x`, as in `scipy.fft`; the answer does not depend on it.
    kernel : {"scan", "fft"}, default "scan"
        How the forward pass is computed; the law is the same. "fft" is the paper's way, slower.
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
    ind_exp : One mechanism per level.
    joint_exp_law : The law that this draws from.

    Notes
    -----
    **Mechanism.** Probability of the tuple o proportional to :math:`\exp(\epsilon\, u(x, o) / 2
    \Delta)` with :math:`u = -\sum_{j=1}^{m+1} |n(o_{j-1}, o_j) - (q_j - q_{j-1}) n|`, where
    :math:`n(a, b)` counts records :math:`a \le x_i < b`, :math:`q_0 = 0`, :math:`q_{m+1} = 1`;
    :math:`\Delta = 2` for "swap" and :math:`2 (1 - \min_j (q_j - q_{j-1}))` for "add-remove"
    [1]_. With a `prior` tuples have its mass for a base measure: each lattice point stands for as
    many as its mass says.

    **Privacy.** Pure `epsilon`-DP under `neighbors`; given the dither of range `epsilon`, hence
    zCDP of its `privacy.bounded_range_rho`. Weights are right to 1e-10 relative, none is rounded to
    zero. Not covered: running time and memory.

    **Cost.** Two passes over `x`, none if it is sorted, then O(m W) for windows of W ranks. W is
    about (2 / epsilon) min over 0 < s < 1 of (50 - m ln(1 - s^2)) / s: 200 ranks for 30 levels at
    an `epsilon` of 1, 1,000 for 1,000 levels; more where ties are not dithered.

    Where `epsilon` is small, or ties are wide, outputs are proposed by cells of ranks that are as
    wide as they may be, and accepted by their true ranks, which is the same law
    (`dpq_fast.laws.joint.coarse`): neither time nor memory grows with 1 / epsilon, and where blocks
    of records are as long as that, unsorted ones are counted, not collected.

    References
    ----------
    .. [1] J. Gillenwater, M. Joseph, A. Kulesza, "Differentially Private Quantiles", ICML 2021,
       PMLR 139:3713-3722. Section 3, Lemmas 3 and 10, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=1_000)
    >>> out = joint_exp(x, [0.25, 0.5, 0.75], epsilon=1.0, bounds=(-10, 10))
    >>> out.shape
    (3,)
    >>> bool((out[1:] >= out[:-1]).all())
    True
    """
    levels = Levels.of(q)
    epsilon = _checks.check_epsilon(epsilon)  # there is no `rho` to give in its place

    def value_of(*, epsilon: float, **_: Any) -> Any:
        calibration = privacy.joint_exp.calibrate(
            levels, epsilon=epsilon, neighbors=neighbors, max_contributions=max_contributions
        )
        rate = calibration.rate
        if request is not None or kernel != "scan":
            return calibration, _reader(x, levels, rate, kernel, column)
        read = Sample.reader(x, **column)
        return (
            calibration,
            lambda rng: (
                _few(read, levels, rate)
                or law_of(_sample(read, levels, rate), levels, rate, kernel, rng)
            ),
        )

    request = Request.of(confidence, covers, interval_share)
    return with_interval(
        value_of,
        levels,
        request,
        x=x,
        epsilon=epsilon,
        neighbors=neighbors,
        max_contributions=max_contributions,
        counts=column.get("counts"),
        expected_n=expected_n,
    )


@in_our_words
@about_persons()
@with_options(Sample.reader)
def joint_exp_law(
    x: Any,
    q: Any,
    *,
    epsilon: float,
    neighbors: str = "swap",
    max_contributions: int = 1,
    kernel: str = "scan",
    dither_rng: Any = None,
    **column: Unpack[ColumnOptions],
) -> JointExpLaw:
    """The exact output law of `joint_exp` on this sample. Not a release: for audits and research.

    Everything but `dither_rng` is as in `joint_exp`.

    Parameters
    ----------
    dither_rng : None, int, SeedSequence, BitGenerator or Generator, optional
        Source of the one dither that the law is conditional on.

    Returns
    -------
    JointExpLaw
        ``log_prob(o)`` and ``sample(rng, size)``.

    Examples
    --------
    >>> arguments = dict(epsilon=1.0, bounds=(0, 9), resolution=1, dither=False)
    >>> law = joint_exp_law([1, 2, 2, 5], 0.5, **arguments)
    >>> other = joint_exp_law([1, 2, 2, 9], 0.5, **arguments)  # of a neighbor
    >>> max(abs(law.log_prob(o) - other.log_prob(o)) for o in range(10)) <= 1.0 + 1e-9
    True
    >>> law.sample(size=5).shape
    (5,)
    """
    levels = Levels.of(q)
    calibration = privacy.joint_exp.calibrate(
        levels,
        epsilon=_checks.check_epsilon(epsilon),  # there is no `rho` to give in its place
        neighbors=neighbors,
        max_contributions=max_contributions,
    )
    return _reader(x, levels, calibration.rate, kernel, column)(dither_rng)


def _few(read: Reader, levels: Levels, rate: float) -> OneRelease | None:
    """What releases from few records; None for others."""
    values = read.few(lambda n: few.are_few_paths(n, levels.m, rate))
    if values is None:
        return None
    bounds, lattice = read.bounds, read.lattice
    return OneRelease(
        levels,
        lambda rng: few.draw_path(values, levels.values, rate, bounds, lattice, rng),
    )


def _reader(
    x: Any, levels: Levels, rate: float, kernel: str, column: ColumnOptions
) -> Callable[[Any], JointExpLaw]:
    """What reads the records and gives the law, by dither; all that is public is checked here."""
    check_kernel(kernel)
    read = Sample.reader(x, **column)
    return lambda dither_rng: law_of(_sample(read, levels, rate), levels, rate, kernel, dither_rng)


def _sample(read: Reader, levels: Levels, rate: float) -> Sample:
    """The sample; how much of it is likely to be read says how it is put in order."""
    return read(levels.values, lambda n: path.likely_reach(n, levels.m, rate))


def check_kernel(kernel: str) -> str:
    """Refuse a kernel that there is not, or whose library is not here, before anything is spent."""
    _checks.check_choice("kernel", kernel, KERNELS)
    if kernel == "fft":
        try:
            import pyfftw  # noqa: F401
        except ModuleNotFoundError:
            message = (
                'kernel="fft" needs pyfftw: pip install pyfftw; kernel="scan" has the same law'
            )
            raise ImportError(message) from None
    return kernel


def law_of(
    sample: Sample,
    levels: Levels,
    rate: float,
    kernel: str,
    dither_rng: Any,
) -> JointExpLaw:
    """The law of a sample, with one dither."""
    if kernel == "scan":
        forward: Callable[[Scan], None] = Scan.forward
    else:
        from dpq_fast.laws.joint.fft import FftForward  # FFTW is slow to load

        forward = FftForward()
    paths = choice.law_of(sample.order(dither_rng), levels.values, rate, forward, PLAN)
    return JointExpLaw(sample, levels, paths)
