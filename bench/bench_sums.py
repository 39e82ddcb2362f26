"""Sums and means: the pass over the records is the whole price of a release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from columns import BOUNDS, gaussian
from numpy.typing import NDArray

import dpq_fast as dpq
from dpq_fast.data.records import Records
from dpq_fast.mechanisms.aggregates import Clip

EPSILON = 1.0


def exact_sum(x: NDArray, workers: int = 1) -> Callable[[], Any]:
    """The pass alone, on the lattice of the bounds."""
    clip = Clip.of(*BOUNDS, None)
    return lambda: Records.of(x, workers=workers).sums(clip.scale, clip.first, clip.last)


def bounded_sum(x: NDArray, **options: Any) -> Callable[[], Any]:
    low, high = BOUNDS
    return lambda: dpq.sum(x, epsilon=EPSILON, q=None, lower=low, upper=high, **options)


def clipped_sum(x: NDArray, **options: Any) -> Callable[[], Any]:
    """With a private clip on either side of zero: two more passes, that count."""
    return lambda: dpq.sum(x, epsilon=EPSILON, lower=None, **options)


class Sums:
    """Releases and NumPy's sum on N(0, 5)."""

    params = ([10**3, 10**6, 10**8],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        self.x = gaussian(n)
        self.exact, self.bounded, self.clipped = (
            side(self.x) for side in (exact_sum, bounded_sum, clipped_sum)
        )

    def time_np_sum(self, n: int) -> None:
        self.x.sum()

    def time_exact_sum(self, n: int) -> None:
        self.exact()

    def time_bounded_sum(self, n: int) -> None:
        self.bounded()

    def time_clipped_sum(self, n: int) -> None:
        self.clipped()

    def time_mean(self, n: int) -> None:
        dpq.mean(self.x, epsilon=EPSILON, lower=None)

    def time_count(self, n: int) -> None:
        dpq.count(self.x, epsilon=EPSILON)
