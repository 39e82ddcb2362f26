"""JointExp in time and memory: scan, fft and reference against `np.quantile`, published, peers."""

from __future__ import annotations

import numpy as np
import peers
import published
from columns import BOUNDS, gaussian, levels

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.laws.fft import FftForward
from dpq_fast.laws.path import PathLaw

EPSILON = 1.0


class Grid:
    """A sorted and an unsorted column of N(0, 5), and m even levels."""

    params = ([10, 1_000, 30_000, 1_000_000], [1, 9, 30])
    param_names = ("n", "m")
    timeout = 600

    def setup(self, n: int, m: int) -> None:
        self.x = gaussian(n)
        self.x_sorted = np.sort(self.x)
        self.q = levels(m)
        self.rng = np.random.default_rng(1)

    def joint_exp(self, x: np.ndarray, **options: object) -> np.ndarray:
        return dpq.joint_exp(x, self.q, epsilon=EPSILON, bounds=BOUNDS, **options)


class JointExp(Grid):
    """The default kernel through the public API, with the default generator."""

    def time_sorted(self, n: int, m: int) -> None:
        self.joint_exp(self.x_sorted, assume_sorted=True)

    def time_unsorted(self, n: int, m: int) -> None:
        self.joint_exp(self.x)

    def time_add_remove(self, n: int, m: int) -> None:
        self.joint_exp(self.x_sorted, assume_sorted=True, neighbors="add-remove")

    def time_continuous(self, n: int, m: int) -> None:
        self.joint_exp(self.x_sorted, assume_sorted=True, resolution=0)

    def time_numpy_sorted(self, n: int, m: int) -> None:
        np.quantile(self.x_sorted, self.q)

    def time_numpy_unsorted(self, n: int, m: int) -> None:
        np.quantile(self.x, self.q)

    def peakmem_sorted(self, n: int, m: int) -> None:
        self.joint_exp(self.x_sorted, assume_sorted=True)


class Ties(Grid):
    """The column rounded to integers: at its middle one record in twelve ties with each point."""

    def setup(self, n: int, m: int) -> None:
        super().setup(n, m)
        self.x_integer = np.rint(self.x).astype(np.int64)

    def time_unsorted(self, n: int, m: int) -> None:
        self.joint_exp(self.x_integer, resolution=1)

    def time_undithered(self, n: int, m: int) -> None:
        self.joint_exp(self.x_integer, resolution=1, dither=False)


class Paths(Grid):
    """The law alone, without the call around it."""

    def setup(self, n: int, m: int) -> None:
        super().setup(n, m)
        self.order = dpq.Sample.of(self.x_sorted, BOUNDS, assume_sorted=True).order()
        self.rate = privacy.joint_exp_rate(self.q, EPSILON, "swap")


class Scan(Paths):
    """The scan in windows; and without: every interval at every level."""

    params = ([1_000, 30_000, 1_000_000], [1, 9, 30])

    def time_windows(self, n: int, m: int) -> None:
        PathLaw(self.order, self.q, self.rate)

    def time_no_windows(self, n: int, m: int) -> None:
        PathLaw(self.order, self.q, self.rate, window=n)

    def peakmem_no_windows(self, n: int, m: int) -> None:
        PathLaw(self.order, self.q, self.rate, window=n)


class Fft(Paths):
    """The same forward pass by FFT, in windows and without, and what of it the scan has to redo."""

    params = ([1_000, 30_000], [1, 9, 30])

    def time_windows(self, n: int, m: int) -> None:
        PathLaw(self.order, self.q, self.rate, FftForward())

    def time_no_windows(self, n: int, m: int) -> None:
        PathLaw(self.order, self.q, self.rate, FftForward(), window=n)

    def track_recomputed(self, n: int, m: int, window: int | None = None) -> float:
        forward = FftForward()
        PathLaw(self.order, self.q, self.rate, forward, window)
        return forward.recomputed / max(forward.entries, 1)

    def track_recomputed_no_windows(self, n: int, m: int) -> float:
        return self.track_recomputed(n, m, n)

    track_recomputed.unit = track_recomputed_no_windows.unit = "fraction"


class Reference(Grid):
    """The pure Python twin, O(m^2 T^2): small samples only."""

    params = ([10, 100, 300], [1, 9])

    def time_reference(self, n: int, m: int) -> None:
        dpq.reference.joint_exp(self.x_sorted, self.q, epsilon=EPSILON, bounds=BOUNDS, rng=self.rng)


class Published(Grid):
    """[GJK21] as published, see `published`."""

    params = ([10, 1_000, 30_000], [1, 9, 30])

    def time_sorted(self, n: int, m: int) -> None:
        published.joint_exp(self.x_sorted, self.q, EPSILON, BOUNDS, self.rng)

    def peakmem_sorted(self, n: int, m: int) -> None:
        published.joint_exp(self.x_sorted, self.q, EPSILON, BOUNDS, self.rng)


class Diffprivlib(Grid):
    """diffprivlib's exponential mechanism, one per level."""

    params = ([10, 1_000, 30_000], [1, 9])

    def setup(self, n: int, m: int) -> None:
        if peers.diffprivlib is None:
            raise NotImplementedError("diffprivlib is not installed")
        super().setup(n, m)
        self.release = peers.diffprivlib_quantile(self.x, self.q, EPSILON, BOUNDS)

    def time_unsorted(self, n: int, m: int) -> None:
        self.release()


class Opendp(Grid):
    """opendp's choice among candidates, one per level, composed."""

    def setup(self, n: int, m: int) -> None:
        if peers.opendp is None:
            raise NotImplementedError("opendp is not installed")
        super().setup(n, m)
        self.release = peers.opendp_quantile(self.x, self.q, EPSILON, BOUNDS)

    def time_unsorted(self, n: int, m: int) -> None:
        self.release()
