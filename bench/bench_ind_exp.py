"""IndExp in time and memory."""

from __future__ import annotations

import numpy as np
from bench_joint_exp import EPSILON, Grid
from columns import BOUNDS

import dpq_fast as dpq

DELTA = 1e-6


class IndExp(Grid):
    """One mechanism per level; `optimal` with the composition of [GJK21] Lemma 12."""

    def ind_exp(self, x: np.ndarray, **options: object) -> np.ndarray:
        return dpq.ind_exp(x, self.q, epsilon=EPSILON, bounds=BOUNDS, **options)

    def time_sorted(self, n: int, m: int) -> None:
        self.ind_exp(self.x_sorted, assume_sorted=True)

    def time_sorted_optimal(self, n: int, m: int) -> None:
        self.ind_exp(self.x_sorted, assume_sorted=True, delta=DELTA)

    def time_unsorted(self, n: int, m: int) -> None:
        self.ind_exp(self.x)

    def peakmem_sorted(self, n: int, m: int) -> None:
        self.ind_exp(self.x_sorted, assume_sorted=True)


class Reference(Grid):
    """The pure Python twin: small samples only."""

    params = ([10, 100, 300], [1, 9])

    def time_reference(self, n: int, m: int) -> None:
        dpq.reference.ind_exp(self.x_sorted, self.q, epsilon=EPSILON, bounds=BOUNDS, rng=self.rng)
