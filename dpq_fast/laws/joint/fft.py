"""The forward pass with Toeplitz products by FFT, certified entry by entry.

The paper's way to a level's sums ([GJK21] §3.3): with one index per rank, zero-width intervals
included, the matrix phi has constant diagonals, and its product with a row is a convolution. An
FFT gets it right to about 1e-16 of its *largest* entry; privacy lives in the others. So

* rows and kernel are taken over the potentials of csrc/scan.h, which removes the exponential decay
  on either side of the target: for v >= 0, dist(u, [0, v]) = max(-u, 0) + max(u - v, 0), a term of
  u and a term of v - u, since both are positive only for u < 0 <= v < u, which cannot be; and
  likewise for v < 0;
* every entry has an error bound, and where it does not certify the entry, both factors are tilted
  exponentially so as to minimize the bound there, as [WK16] does for convolutions of non-negative
  vectors;
* what no tilt certifies is computed again by the scan.
"""

from __future__ import annotations

import math
import threading

import numpy as np
import pyfftw
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from dpq_fast._kernels.scan import Scan

# Relative error that an entry is certified to, shared among the levels of one law.
TOLERANCE = 1e-9
# |error| of an FFT product of length N <= ERROR_CONSTANT u log2(N) ||a|| ||b||, u the unit
# roundoff: three transforms, each with a relative 2-norm error below 2 u log2(N) or so.
ERROR_CONSTANT = 8.0
UNIT_ROUNDOFF = 2.0**-53
# Transforms of phi that are kept; levels with equal gaps n_j share one.
MAX_SPECTRA = 8
# Products tried per level and side before the scan is asked.
MAX_TILTS = 6
# How closely the best tilt is searched, relative to the largest that makes sense.
TILT_TOLERANCE = 0.01

# Of a transform of phi: what it depends on, and the spectrum, its norm and its log-scale.
SpectrumKey = tuple[int, float, int, int, bool]
Spectrum = tuple[NDArray[np.complex128], float, float]


class _Plan:
    """Real FFT of one length and its inverse, with their arrays."""

    def __init__(self, length: int) -> None:
        self.values: NDArray[np.float64] = pyfftw.empty_aligned(length, dtype=np.float64)
        self.spectrum: NDArray[np.complex128] = pyfftw.empty_aligned(
            length // 2 + 1, dtype=np.complex128
        )
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


class _Plans(threading.local):
    """The plans of a thread by length: a plan owns its arrays, and is never shared."""

    def __init__(self) -> None:
        self.by_length: dict[int, _Plan] = {}


_plans = _Plans()


def _plan(length: int) -> _Plan:
    plans = _plans.by_length
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
        """Fill the rows of a scan, level by level."""
        spectra: dict[SpectrumKey, Spectrum] = {}
        scan.forward_by(lambda j, rows: self._sums(rows, j, spectra))

    def _sums(
        self, scan: Scan, j: int, spectra: dict[SpectrumKey, Spectrum]
    ) -> NDArray[np.float64]:
        """Sums of level j from row j - 1; see dpq_scan_sums."""
        sums = np.empty(int(scan.hi[j] - scan.lo[j]))
        certified = np.zeros(sums.size, dtype=bool)
        for above in (True, False):
            product = _Product(scan, j, above, spectra)
            wanted = np.flatnonzero((product.v >= 0.0) == above)
            tilt = 0.0
            for _ in range(MAX_TILTS):
                if not wanted.size:
                    break
                values, error, log_scale = product.tilted(tilt, wanted)
                good = values * (TOLERANCE / scan.whole.size) >= error
                sums[wanted[good]] = values[good] * np.exp(log_scale[good])
                certified[wanted[good]] = True
                wanted = wanted[~good]
                if wanted.size:
                    tilt = product.best_tilt(wanted[wanted.size // 2])
        self.entries += sums.size
        if not certified.all():
            sums[~certified] = scan.sums(j)[~certified]
            self.recomputed += int(sums.size - certified.sum())
        return sums


class _Product:
    """One level's Toeplitz product, for the targets on one side of v = 0.

    Its factors are kept as logarithms: a of the row, one entry per interval, and b of the kernel,
    one entry per rank difference.
    """

    def __init__(
        self, scan: Scan, j: int, above: bool, spectra: dict[SpectrumKey, Spectrum]
    ) -> None:
        source = scan.rank[scan.lo[j - 1] : scan.hi[j - 1]]
        target = scan.rank[scan.lo[j] : scan.hi[j]]
        self._u = (source - scan.whole[j - 1]) - scan.part[j - 1]
        self.v = (target - scan.whole[j]) - scan.part[j]
        decay = 2.0 * scan.rate
        side = 1.0 if above else -1.0
        with np.errstate(divide="ignore"):
            self._log_a = np.log(scan.row(j - 1)) - decay * np.maximum(-side * self._u, 0.0)
        nearest = int(target[0] - source[-1])  # smallest rank difference; below 1 counts nothing
        differences = int(target[-1] - source[0]) - nearest + 1
        n_whole = int(scan.whole[j] - scan.whole[j - 1])
        n_part = float(scan.part[j] - scan.part[j - 1])
        d = nearest + np.arange(differences)
        self._excess = (d - n_whole) - n_part  # v - u
        self._log_b = np.where(d >= 1, -decay * np.maximum(-side * self._excess, 0.0), -np.inf)
        self._dense = source - source[0]
        # Entry (source rank) + (rank difference) of the convolution. A circular convolution of
        # length `differences` wraps only onto entries before the first target's.
        self._place = (target - source[0]) - nearest
        self._plan = _plan(pyfftw.next_fast_len(differences))
        self._widest = decay
        self._spectra = spectra
        self._key = (n_whole - nearest, n_part, min(nearest, 1), differences, above)

    def tilted(
        self, tilt: float, wanted: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
        """Sums with a exp(-tilt u) and b exp(-tilt (v - u)) at the wanted targets.

        Returns the sums up to a factor, a bound on their absolute error, and ln of the factor.
        """
        a, log_scale_a = _scaled(self._log_a - tilt * self._u)
        spectrum, norm_b, log_scale_b = self._kernel(tilt)
        plan = self._plan
        dense = np.zeros(int(self._dense[-1]) + 1)
        dense[self._dense] = a
        plan.transform(dense)
        plan.spectrum *= spectrum
        plan.backward()
        length = plan.values.size
        error = ERROR_CONSTANT * UNIT_ROUNDOFF * math.log2(max(length, 2))
        error *= _norm(a) * norm_b
        log_scale = tilt * self.v[wanted] + (log_scale_a + log_scale_b)
        return plan.values[self._place[wanted]], error, log_scale

    def _kernel(self, tilt: float) -> Spectrum:
        """Spectrum, norm and log-scale of b; levels with equal gaps n_j share the untilted one."""
        if tilt == 0.0 and self._key in self._spectra:
            return self._spectra[self._key]
        b, log_scale = _scaled(self._log_b - tilt * self._excess)
        found = self._plan.transform(b).copy(), _norm(b), log_scale
        if tilt == 0.0:
            if len(self._spectra) >= MAX_SPECTRA:
                self._spectra.clear()
            self._spectra[self._key] = found
        return found

    def best_tilt(self, wanted: int) -> float:
        """The tilt that minimizes the error bound at one target."""

        def log_bound(tilt: float) -> float:
            a, log_scale_a = _scaled(self._log_a - tilt * self._u)
            b, log_scale_b = _scaled(self._log_b - tilt * self._excess)
            norms = math.log(_norm(a)) + math.log(_norm(b))
            return norms + log_scale_a + log_scale_b + tilt * float(self.v[wanted])

        edge = self._widest
        options = {"xatol": TILT_TOLERANCE * edge}
        return float(
            minimize_scalar(log_bound, bounds=(-edge, edge), method="bounded", options=options).x
        )


def _norm(values: NDArray[np.float64]) -> float:
    """2-norm; not by BLAS, whose threads would get in the way of many small calls."""
    return math.sqrt(float(np.square(values).sum()))


def _scaled(log_values: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """exp(log_values) over its largest, and the logarithm of that."""
    log_scale = float(log_values.max())
    if log_scale == -math.inf:
        return np.zeros(log_values.size), 0.0
    return np.exp(log_values - log_scale), log_scale
