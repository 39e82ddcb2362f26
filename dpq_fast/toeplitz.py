"""The forward pass with Toeplitz products by FFT, certified entry by entry.

The paper's way to a level's sums ([GJK21] §3.3): with one index per rank, zero-width intervals
included, the matrix phi has constant diagonals, and its product with a row is a convolution. An
FFT gets it right to about 1e-16 of its *largest* entry; privacy lives in the others. So

* the factors are tilted exponentially (as for accurate convolutions of non-negative vectors,
  Wilson and Keich 2016): once so that the product is flat above the target, once below. Over the
  potentials of csrc/scan.h this is exact, not a bound: for v >= 0
  dist(u, [0, v]) = max(-u, 0) + max(u - v, 0), which is a factor of u times a factor of v - u,
  since where both terms of the right side are positive u < 0 <= v < u, which cannot be;
* every entry has an error bound, and one that is not certified is computed again by the scan.
"""

from __future__ import annotations

import math
import threading

import numpy as np
import pyfftw
from numpy.typing import NDArray

from dpq_fast._kernels.scan import Scan

# Relative error that an entry is certified to, shared among the levels of one law.
TOLERANCE = 1e-9
# |error| of an FFT product of length N <= ERROR_CONSTANT u log2(N) ||a|| ||b||, u the unit
# roundoff: three transforms, each with a relative 2-norm error below 2 u log2(N) or so.
ERROR_CONSTANT = 8.0
UNIT_ROUNDOFF = 2.0**-53
# Transforms of phi that are kept; levels with equal gaps n_j share one.
MOST_SPECTRA = 8

# A plan owns its arrays: one per thread and length, never shared.
_plans = threading.local()


class _Plan:
    """Real FFT of one length and its inverse, with their arrays."""

    def __init__(self, length: int) -> None:
        self.values = pyfftw.empty_aligned(length, dtype=np.float64)
        self.spectrum = pyfftw.empty_aligned(length // 2 + 1, dtype=np.complex128)
        flags = ("FFTW_ESTIMATE", "FFTW_DESTROY_INPUT")
        self.forward = pyfftw.FFTW(self.values, self.spectrum, flags=flags)
        self.backward = pyfftw.FFTW(
            self.spectrum, self.values, direction="FFTW_BACKWARD", flags=flags
        )

    def transform(self, values: NDArray[np.float64]) -> NDArray[np.complex128]:
        """Spectrum of `values`, padded with zeros; the plan's own array, for now."""
        self.values[: values.size] = values
        self.values[values.size :] = 0.0
        self.forward()
        return self.spectrum


def _plan(length: int) -> _Plan:
    plans = _plans.__dict__
    if length not in plans:
        plans[length] = _Plan(length)
    return plans[length]


class FftForward:
    """Computes a `Scan`'s rows with FFT products.

    Attributes
    ----------
    entries, recomputed : int
        How many sums were computed so far, and how many of them by the scan. A function of the
        private data: for benchmarks, never for output.
    """

    def __init__(self) -> None:
        self.entries = 0
        self.recomputed = 0

    def __call__(self, scan: Scan) -> None:
        spectra: dict[tuple, tuple[NDArray[np.complex128], float]] = {}
        scan.forward_by(lambda j, rows: self._sums(rows, j, spectra))

    def _sums(self, scan: Scan, j: int, spectra: dict) -> NDArray[np.float64]:
        """Sums of level j from row j - 1; see dpq_scan_sums."""
        source = scan.rank[scan.lo[j - 1] : scan.hi[j - 1]]
        target = scan.rank[scan.lo[j] : scan.hi[j]]
        u = (source - scan.whole[j - 1]) - scan.part[j - 1]
        v = (target - scan.whole[j]) - scan.part[j]
        h = scan.row(j - 1)
        decay = 2.0 * scan.rate
        sums = np.empty(target.size)
        certified = np.empty(target.size, dtype=bool)
        for above in (True, False):
            side = v >= 0.0 if above else v < 0.0
            if side.any():
                outer = np.maximum(-u, 0.0) if above else np.maximum(u, 0.0)
                product, bound = self._product(
                    scan, j, h * np.exp(-decay * outer), source, target, above, spectra
                )
                sums[side] = product[side]
                certified[side] = product[side] * (TOLERANCE / scan.whole.size) >= bound
        self.entries += sums.size
        if not certified.all():
            sums[~certified] = scan.sums(j)[~certified]
            self.recomputed += int(sums.size - certified.sum())
        return sums

    def _product(
        self,
        scan: Scan,
        j: int,
        tilted: NDArray[np.float64],
        source: NDArray[np.int64],
        target: NDArray[np.int64],
        above: bool,
        spectra: dict,
    ) -> tuple[NDArray[np.float64], float]:
        """The tilted Toeplitz product at the target ranks, and a bound on its absolute error."""
        rows = int(source[-1] - source[0]) + 1
        nearest = int(target[0] - source[-1])  # smallest rank difference; below 1 counts nothing
        differences = int(target[-1] - source[0]) - nearest + 1
        length = pyfftw.next_fast_len(differences)
        plan = _plan(length)
        before = scan.whole[j - 1], scan.part[j - 1]
        n_whole, n_part = scan.whole[j] - before[0], scan.part[j] - before[1]
        key = (int(n_whole) - nearest, float(n_part), min(nearest, 1), differences, above)
        if key not in spectra:
            if len(spectra) >= MOST_SPECTRA:
                spectra.clear()
            d = nearest + np.arange(differences)
            excess = (d - n_whole) - n_part  # v - u
            outer = np.maximum(-excess, 0.0) if above else np.maximum(excess, 0.0)
            factor = np.where(d >= 1, np.exp(-2.0 * scan.rate * outer), 0.0)
            spectra[key] = plan.transform(factor).copy(), float(np.linalg.norm(factor))
        spectrum, factor_norm = spectra[key]
        dense = np.zeros(rows)
        dense[source - source[0]] = tilted
        plan.transform(dense)
        plan.spectrum *= spectrum
        plan.backward()
        # entry i + k of the linear convolution belongs to ranks source[0] + i and difference k;
        # shorter circular length only wraps onto entries below rows - 1, which no target uses
        product = plan.values[(target - source[0]) - nearest]
        bound = (
            ERROR_CONSTANT
            * UNIT_ROUNDOFF
            * math.log2(max(length, 2))
            * float(np.linalg.norm(tilted))
            * factor_norm
        )
        return product, bound
