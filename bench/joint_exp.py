"""JointExp, and all levels at once: sorted and unsorted columns of every size."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench import peers
from bench.case import Call, Case, Maker, Side
from bench.columns import BOUNDS, EPSILON, gaussian, levels, ordered
from bench.sides import ind_exp, joint_exp, np_quantile, np_sum, published_joint_exp, released
from dpq_fast import privacy
from dpq_fast._kernels.scan import Scan
from dpq_fast.laws.joint.fft import FftForward
from dpq_fast.laws.joint.path import PathLaw


def in_order(m: int, **options: Any) -> Maker:
    """`joint_exp` of a column that is sorted."""
    return joint_exp(m, assume_sorted=True, **options)


def ages(n: int) -> NDArray[np.int64]:
    return np.random.default_rng(3).integers(17, 91, n)


# Heavy tails, with bounds that hold nearly all records: what is clamped in large numbers is tied.
# The lognormal column spans forty orders of magnitude, more than a lattice does: continuous.
SHAPES: dict[str, tuple[Callable[[int], NDArray], dict[str, Any]]] = {
    "N(0, 5)": (gaussian, {}),
    "Cauchy": (
        lambda n: np.random.default_rng(2).standard_cauchy(n),
        {"bounds": (-1e6, 1e6)},
    ),
    "lognormal, σ = 10": (
        lambda n: np.random.default_rng(1).lognormal(0.0, 10.0, n),
        {"bounds": (0.0, 1e25), "resolution": 0},
    ),
}


def shapes(n: int) -> dict[str, NDArray]:
    return {name: draw(n) for name, (draw, _) in SHAPES.items()}


def of_shape(name: str) -> Maker:
    release = joint_exp(30, **SHAPES[name][1])
    return lambda columns: release(columns[name])


class Data(NamedTuple):
    """A column, and how many levels it is asked for."""

    x: NDArray
    m: int


def by_levels(make: Callable[[int], NDArray], n: int) -> Callable[[int], Data]:
    """Setup of cases whose size is the number of levels."""
    column = None

    def setup(m: int) -> Data:
        nonlocal column
        column = make(n) if column is None else column
        return Data(column, m)

    return setup


def at_levels(make: Callable[..., Maker], **options: Any) -> Maker:
    return lambda data: make(data.m, **options)(data.x)


def half_tied(n: int) -> NDArray[np.float64]:
    x = gaussian(n)
    x[: n // 2] = 0.0
    return np.sort(x)


class Forward:
    """The forward pass alone, on a sorted column."""

    def __init__(self, n: int, m: int = 30) -> None:
        self.order = dpq.Sample.of(ordered(n), BOUNDS, assume_sorted=True).order()
        self.q = levels(m)
        self.rate = privacy.joint_exp.calibrate(self.q, epsilon=EPSILON).rate
        self.all = n

    def run(self, forward: Any = Scan.forward, windows: bool = True) -> PathLaw:
        window = None if windows else self.all
        return PathLaw(self.order, self.q, self.rate, forward, window)

    def recomputed(self, windows: bool = True) -> str:
        """What the FFT's error bound did not certify."""
        forward = FftForward()
        self.run(forward, windows)
        return f"{forward.recomputed:,} of {forward.entries:,} entries are left to the scan"


def scan(windows: bool = True) -> Maker:
    return lambda data: lambda: data.run(windows=windows)


def fft(windows: bool = True) -> Maker:
    return lambda data: lambda: data.run(FftForward(), windows)


def np_sort(x: NDArray) -> Call:
    return lambda: np.sort(x)


CASES = (
    Case(
        "joint_exp/sorted",
        "`joint_exp`, sorted, n = {size}, m = 30",
        ordered,
        in_order(30),
        (10**6,),
        1_000,
        (
            Side("`np.quantile`, same sorted data", np_quantile(30)),
            Side(
                "published algorithm, re-stated in NumPy, extrapolated from n = 10⁴",
                published_joint_exp(30),
                part=10**4,
            ),
        ),
        shown=True,
        bar="keep 82,000 × faster than the authors' 84 s; 2 MB over their 8.4 GB",
    ),
    Case(
        "joint_exp/unsorted",
        "unsorted, n = {size}, m = 30",
        gaussian,
        joint_exp(30),
        (10**6,),
        1_000,
        (Side("`np.quantile`", np_quantile(30)), Side("`np.sort`", np_sort, shown=False)),
        shown=True,
        bar="keep 8.3 × faster than np.quantile; 17 ×",
    ),
    Case(
        "joint_exp/medium",
        "unsorted, n = {size}, m = 9",
        gaussian,
        joint_exp(9),
        (10**4, 10**5),
        1_000,
        (Side("`np.quantile`", np_quantile(9)), Side("`np.sort`", np_sort, shown=False)),
        shown=True,
    ),
    Case(
        "joint_exp/peers",
        "unsorted, n = {size}, m = 30, in another run",
        gaussian,
        joint_exp(30),
        (10**6,),
        300,
        (
            Side(
                f"opendp ({peers.CANDIDATES:,} candidates)",
                lambda x: peers.opendp_quantile(x, 30),
            ),
            Side(
                "diffprivlib, 30 times one level",
                lambda x: peers.diffprivlib_quantile(x, 1),
                repeats=30,
            ),
        ),
        shown=True,
    ),
    Case(
        "joint_exp/large",
        "unsorted, n = {size}, m = 30",
        gaussian,
        joint_exp(30),
        (10**8,),
        1_000,
        (Side("`np.quantile`", np_quantile(30)), Side("`x.sum()`", np_sum, shown=False)),
        shown=True,
        bar="25 × faster than np.quantile, 4 × x.sum(); 40 ×, 2.5 ×",
    ),
    Case(
        "joint_exp/small_budget",
        "unsorted, n = {size}, m = 30, ε = 0.1",
        gaussian,
        joint_exp(30, epsilon=0.1),
        (10**8,),
        1_000,
        (Side("`np.quantile`", np_quantile(30)),),
        shown=True,
    ),
    Case(
        "joint_exp/workers",
        "unsorted, n = {size}, m = 30, `workers=2`",
        gaussian,
        joint_exp(30, workers=2),
        (10**8,),
        1_000,
        (Side("`np.quantile`", np_quantile(30)), Side("one thread", joint_exp(30), shown=False)),
        shown=True,
        bar="1.85 × faster than one thread",
    ),
    Case(
        "ind_exp/large",
        "unsorted, n = {size}, m = 1 (`ind_exp`)",
        gaussian,
        ind_exp(1),
        (10**8,),
        1_000,
        (Side("`np.quantile`", np_quantile(1)),),
        shown=True,
    ),
    Case(
        "joint_exp/ages",
        "{size} integer ages, m = 9",
        ages,
        joint_exp(9, bounds=(0, 120)),
        (10**8,),
        1_000,
        (Side("`np.quantile`", np_quantile(9)),),
        shown=True,
    ),
    Case(
        "joint_exp/small",
        "sorted, n = {size}, m = 9",
        ordered,
        in_order(9),
        (1_000,),
        100,
        (
            Side("published algorithm, re-stated", published_joint_exp(9)),
            Side("`np.quantile`", np_quantile(9), shown=False),
            Side("`ind_exp`", ind_exp(9, assume_sorted=True), shown=False),
        ),
        shown=True,
        bar="50 µs; 30 µs; the authors' 4.7 ms",
    ),
    Case(
        "joint_exp/call",
        "n = {size}, m = 1",
        ordered,
        in_order(1),
        (10,),
        10,
        (Side("`np.quantile`", np_quantile(1)),),
        shown=True,
        bar="1.4 × faster than np.quantile; 2 ×",
    ),
    Case(
        "joint_exp/small_unsorted",
        "unsorted, n = {size}, m = 9",
        gaussian,
        joint_exp(9),
        (1_000,),
        100,
        (Side("`np.quantile`", np_quantile(9)),),
        bar="1.4 × faster than np.quantile",
    ),
    Case(
        "quantile/call",
        "`quantile`, n = {size}, m = 1",
        ordered,
        released(dpq.quantile, 0.5),
        (10,),
        10,
        (
            Side("`np.quantile`", np_quantile(1)),
            Side("`median`", released(dpq.median)),
            Side("`np.median`", lambda x: partial(np.median, x)),
        ),
        bar="1.4 × faster than np.quantile",
    ),
    Case(
        "joint_exp/options",
        "the default, sorted, n = {size}, m = 30",
        ordered,
        in_order(30),
        (1_000, 10**6),
        1_000,
        (
            Side("dither=False", in_order(30, dither=False)),
            Side("resolution=0", in_order(30, resolution=0)),
            Side("neighbors='add-remove'", in_order(30, neighbors="add-remove")),
            Side(
                "integers, resolution=1",
                lambda x: in_order(30, resolution=1)(np.rint(x).astype(np.int64)),
            ),
        ),
    ),
    Case(
        "joint_exp/shapes",
        "N(0, 5), unsorted, n = {size}, m = 30",
        shapes,
        of_shape("N(0, 5)"),
        (10**7,),
        1_000,
        tuple(Side(name, of_shape(name)) for name in list(SHAPES)[1:]),
        bar="the others 2 × slower at most",
    ),
    Case(
        "joint_exp/published",
        "sorted, n = {size}, m = 30",
        ordered,
        in_order(30),
        (1_000, 10_000, 100_000),
        300,
        (Side("published algorithm, re-stated", published_joint_exp(30)),),
    ),
    Case(
        "joint_exp/levels",
        "sorted, n = 10⁶, m = {size}",
        by_levels(ordered, 10**6),
        at_levels(in_order),
        (300, 1_000),
        10,
        (Side("`np.quantile`", at_levels(np_quantile)),),
        bar="30 ms at m = 300, 0.3 s and 100 MB at 1,000; 10 ms, 60 ms",
    ),
    Case(
        "joint_exp/dense",
        "sorted, n = 1,000, m = {size}",
        by_levels(ordered, 1_000),
        at_levels(in_order),
        (300,),
        10,
        bar="3 ms",
    ),
    Case(
        "joint_exp/tied",
        "half of 10⁶ records tied, sorted, m = {size}",
        by_levels(half_tied, 10**6),
        at_levels(in_order),
        (30, 100),
        3,
        bar="30 ms at m = 30, 0.3 s and 100 MB at 100",
    ),
    Case(
        "joint_exp/epsilon",
        "ε = 10⁻⁴, sorted, n = 10⁶, m = {size}",
        by_levels(ordered, 10**6),
        at_levels(in_order, epsilon=1e-4),
        (30, 100, 300),
        1,
        bar="50 ms at m = 30, 0.3 s at 100, 2 s and 200 MB at 300",
    ),
    Case(
        "joint_exp/windows",
        "forward pass in windows, n = {size}, m = 30",
        Forward,
        scan(),
        (10**6,),
        1_000,
        (Side("over all intervals", scan(windows=False)),),
        bar="1.5 s over all intervals",
    ),
    Case(
        "joint_exp/fft",
        "forward pass in windows, n = {size}, m = 30",
        Forward,
        scan(),
        (1_000, 10**6),
        1_000,
        (Side("kernel='fft'", fft()),),
        note=Forward.recomputed,
    ),
    Case(
        "joint_exp/fft_all",
        "forward pass over all intervals, n = {size}, m = 30",
        Forward,
        scan(windows=False),
        (3_000, 30_000),
        300,
        (Side("kernel='fft'", fft(windows=False)),),
        note=lambda data: data.recomputed(windows=False),
    ),
)
