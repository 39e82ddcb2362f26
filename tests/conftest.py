"""What the tests share: both implementations, hypothesis strategies, laws of given points."""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from scipy import optimize, stats

import dpq_fast
import dpq_fast.reference
import enumeration
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.records import Records
from dpq_fast.data.sample import Sample
from dpq_fast.laws.depth import DepthLaw
from dpq_fast.laws.joint import few
from dpq_fast.laws.joint.path import PathLaw
from dpq_fast.laws.joint.plan import PLAN
from dpq_fast.mechanisms.ind_exp import IndExpLaw
from dpq_fast.mechanisms.joint_exp import JointExpLaw
from dpq_fast.orders.sorted import SortedOrder
from dpq_fast.privacy.levels import Levels
from dpq_fast.reference.lattice import Lattice as ReferenceLattice

# The same examples in every run: a failure in CI is the failure on the desk.
settings.register_profile("dpq", deadline=None, derandomize=True, database=None, max_examples=60)
# where each takes its time: tests/kernels/emulated/run
settings.register_profile("few", settings.get_profile("dpq"), max_examples=5)
settings.load_profile("dpq")

IMPLEMENTATIONS = {"fast": dpq_fast, "reference": dpq_fast.reference}
BOTH = ["swap", "add-remove"]
REAL_COLUMNS = Path(__file__).resolve().parents[2] / "shared" / "data"
SELECTIONS = ["permute-and-flip", "exponential"]
# A right sampler fails a chi-square test once in a million seeds; ours are fixed.
SMALLEST_P = 1e-6


def pytest_collection_finish() -> None:
    """Leave out of every later round of the collector of cycles what lives to the end anyway."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.fixture
def no_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """No array is released by one call of the kernel of few records, which makes no law."""
    monkeypatch.setattr(few, "PLAN", dataclasses.replace(PLAN, most_few=-1))


@pytest.fixture(scope="session", params=list(IMPLEMENTATIONS))
def implementation(request: pytest.FixtureRequest) -> Any:
    """Namespace with joint_exp, ind_exp, approx_quantiles, and their laws."""
    return IMPLEMENTATIONS[request.param]


@pytest.fixture(scope="session")
def real_columns() -> Path:
    """The folder of real columns beside the checkout; with DPQ_REAL_COLUMNS=1 it must be there."""
    if not REAL_COLUMNS.is_dir():
        if os.environ.get("DPQ_REAL_COLUMNS"):
            pytest.fail("DPQ_REAL_COLUMNS is set, and shared/data beside the checkout is missing")
        pytest.skip("the real columns (shared/data beside the checkout) are not here")
    return REAL_COLUMNS


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not REAL_COLUMNS.is_dir():
        terminalreporter.section("NOT TESTED: accuracy on real columns", red=True, bold=True)
        terminalreporter.line("shared/data beside the checkout is not here")


M_PERTURB = -6  # of glibc's mallopt


@pytest.fixture
def fill_memory() -> Iterator[Callable[[int], None]]:
    """Lets memory that nobody has set hold a byte from now on, where the C library is glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    fill = mallopt or (lambda option, byte: None)
    yield lambda byte: fill(M_PERTURB, byte ^ 0xFF)
    fill(M_PERTURB, 0)


class Untouchable:
    """A column that must not be looked at."""

    dtype = np.dtype(float)

    def __array__(self, dtype: Any = None, copy: Any = None) -> None:
        raise AssertionError("the data was touched")

    def __len__(self) -> int:
        raise AssertionError("the data was touched")

    def __iter__(self) -> Iterator[float]:
        raise AssertionError("the data was touched")


# Strategies


@st.composite
def lattice_samples(draw: st.DrawFn, most: int = 10, points: int = 6) -> tuple[list[int], int]:
    """Records on the points 0 .. points-1, with ties and records at both ends."""
    size = draw(st.integers(2, points))
    return draw(st.lists(st.integers(0, size - 1), max_size=most)), size


def level_sets(most: int = 3) -> st.SearchStrategy[list[float]]:
    """Distinct ascending levels, 0 and 1 and levels closer than a rank included."""
    level = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.floats(0.0, 1.0))
    return st.lists(level, min_size=1, max_size=most, unique=True).map(sorted)


# Laws


def lattice_of(points: int, bits: int = 0) -> Lattice:
    """The integers 0 .. points-1, with any number of dither bits."""
    lattice = Lattice.of((0.0, points - 1.0), 1.0, False)
    return dataclasses.replace(lattice, bits=bits)


def reference_lattice(lattice: Lattice) -> ReferenceLattice:
    """What the reference takes in place of a lattice."""
    public = (lattice.low, lattice.high, lattice.step, lattice.first, lattice.points)
    return ReferenceLattice(*public, lattice.bits)


def order_of(fine: Sequence[int], lattice: Lattice) -> SortedOrder:
    """The order of records given as fine points, dithered already."""
    points = np.sort(np.array(fine, dtype=np.int64))
    return SortedOrder(points, lattice, (lattice.low, lattice.high), fine=True)


def fast_joint_law(
    fine: Sequence[int], lattice: Lattice, q: Sequence[float], rate: float
) -> JointExpLaw:
    levels = Levels(q)
    paths = PathLaw(order_of(fine, lattice), levels.values, rate)
    return JointExpLaw(empty_sample(lattice), levels, paths)


def fast_ind_law(
    records: Sequence[int],
    lattice: Lattice,
    q: Sequence[float],
    rates: Sequence[float],
    selection: str = "permute-and-flip",
) -> IndExpLaw:
    levels = Levels(q)
    order = order_of(records, lattice)
    laws = [
        DepthLaw(order, level, float(rate), selection == "permute-and-flip")
        for level, rate in zip(levels.values.tolist(), rates, strict=True)
    ]
    return IndExpLaw(empty_sample(lattice), levels, laws, lattice)


def empty_sample(lattice: Lattice) -> Sample:
    """Enough of a sample to translate outputs."""
    bounds = (lattice.low, lattice.high)
    empty = SortedOrder(np.empty(0), lattice, bounds)
    return Sample(lambda lattice: empty, Records.of(np.empty(0)), lattice, bounds)


def tabulate(law: Any, points: int, m: int) -> enumeration.Law:
    """A law on the integers 0 .. points-1 as a table."""
    return {
        o: law.log_prob(np.array(o, dtype=float))
        for o in combinations_with_replacement(range(points), m)
    }


def assert_same_law(
    law: enumeration.Law, expected: enumeration.Law, tolerance: float, case: Any = None
) -> None:
    assert law.keys() == expected.keys(), case
    assert enumeration.max_log_ratio(law, expected) <= tolerance, case


def fit(observed: Iterable, log_prob: dict) -> float:
    """p-value of a chi-square test; categories expected less than 5 times are put together."""
    seen = Counter(observed)
    if not seen.keys() <= log_prob.keys():
        return 0.0
    total = seen.total()
    counts, means = [0.0], [0.0]
    for outcome, log_p in log_prob.items():
        mean = math.exp(log_p) * total
        if mean < 5.0:
            counts[0] += seen[outcome]
            means[0] += mean
        else:
            counts.append(seen[outcome])
            means.append(mean)
    assert sum(means) == pytest.approx(total)
    statistic = sum((c - e) ** 2 / e for c, e in zip(counts, means, strict=True) if e > 0.0)
    return float(stats.chi2.sf(statistic, max(len(counts) - 1 - (means[0] == 0.0), 1)))


def assert_draws_follow(observed: Iterable, log_prob: dict) -> None:
    """Draws fit a law, by `fit`."""
    assert fit(observed, log_prob) >= SMALLEST_P


def range_rho(eta: float) -> float:
    """KL divergence of the two coins of range eta that are furthest apart in it."""
    t = math.log(eta / -math.expm1(-eta))
    return math.exp(t) - 1.0 - t


def range_of(rho: float) -> float:
    """The range of that rho."""
    return float(optimize.brentq(lambda eta: range_rho(eta) - rho, 1e-3, 1e3, xtol=1e-14))


def pure_rho(epsilon: float) -> float:
    """KL divergence of two coins of opposite bias, whose ratios are exp(epsilon)."""
    p = 1.0 / (1.0 + math.exp(-epsilon))
    return (2.0 * p - 1.0) * epsilon


def discrete_rho(epsilon: float, units: int) -> float:
    """KL divergence of discrete Laplace noise on two integers that are `units` apart."""
    rate = epsilon / units
    k = np.arange(units + 1)
    mass = math.tanh(rate / 2.0) * np.exp(-rate * k)
    mass[[0, -1]] /= -math.expm1(-rate)  # with all that is beyond
    return float(mass @ (rate * (units - 2 * k)))


def neighbors_of(x: list[int], points: int, neighbors: str) -> Iterator[list[int]]:
    """All neighbors of a sample from which NaN is dropped.

    Under "swap" a record may become NaN, or the other way: an addition or a removal.
    """
    if neighbors == "swap":
        yield from enumeration.swap_neighbors(x, range(points))
    yield from enumeration.add_remove_neighbors(x, range(points))


def missing_neighbors(
    records: Sequence[int | None], points: int, neighbors: str
) -> Iterator[list[int | None]]:
    """All neighbors of records that may be missing (None)."""
    domain = [None, *range(points)]
    if neighbors == "swap":
        return enumeration.swap_neighbors(records, domain)
    return enumeration.add_remove_neighbors(records, domain)


# Trees


def levels_of(nodes: dict[tuple[int, int], float], height: int) -> list[np.ndarray]:
    """Arrays by level, of nodes in a dict."""
    return [
        np.array([count for (level, _), count in sorted(nodes.items()) if level == depth])
        for depth in range(1, height + 1)
    ]


# Privacy of two laws


VALUES = (0, 1, 2, None)  # None: a record that is left out, as NaN is


def neighbor_pairs(
    relation: str, sizes: Iterable[int], values: Sequence[Any]
) -> Iterator[tuple[list[Any], list[Any]]]:
    """All pairs of neighboring data sets (tuples of records) of the sizes given."""
    for n in sizes:
        for x in combinations_with_replacement(range(len(values)), n):
            if relation == "add-remove":
                for extra in range(len(values)):
                    yield [values[i] for i in x], [values[i] for i in (*x, extra)]
            else:
                for i, new in product(range(n), range(len(values))):
                    y = (*x[:i], new, *x[i + 1 :])
                    yield [values[i] for i in x], [values[i] for i in y]


def pair(each: float, t: float) -> tuple[np.ndarray, np.ndarray]:
    """The extreme pair of range `each`: log ratios t and t - each, in that order."""
    p = (math.exp(-t) - math.exp(-each)) / -math.expm1(-each)
    return np.array([p * math.exp(t), (1 - p) * math.exp(t - each)]), np.array([p, 1 - p])


def enumerated_delta(each: float, ts: Iterable[float], epsilon: float) -> float:
    """sum over all outputs of max(P - e^epsilon Q, 0) for the product of the pairs."""
    first, second = np.ones(1), np.ones(1)
    for t in ts:
        p, q = pair(each, t)
        first, second = np.outer(first, p).ravel(), np.outer(second, q).ravel()
    assert first.sum() == pytest.approx(1) and second.sum() == pytest.approx(1)
    return np.maximum(first - math.exp(epsilon) * second, 0).sum()


def log_mixture(log_weight: np.ndarray, rate: np.ndarray, z: np.ndarray) -> np.ndarray:
    """ln of a sum of exponentials, exp(log_weight - rate z), at each z."""
    found = []
    for part in np.array_split(z, 1 + z.size // 200):  # a block stays in cache
        terms = log_weight - np.outer(part, rate)
        highest = terms.max(axis=1)
        found.append(highest + np.log(np.exp(terms - highest[:, None]).sum(axis=1)))
    return np.concatenate(found)


def renyi(p: np.ndarray, q: np.ndarray, alpha: float) -> float:
    """The Rényi divergence of two laws, of an order other than 1."""
    return math.log(np.sum(p**alpha * q ** (1 - alpha))) / (alpha - 1)
