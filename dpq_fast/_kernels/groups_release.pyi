from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.lattice import Lattice

def sort(point: NDArray[np.int64]) -> NDArray[np.int64]: ...

class Releases:
    def __init__(
        self,
        q: NDArray[np.float64],
        rate: float,
        bounds: tuple[float, float],
        lattice: Lattice | None,
        light: float = ...,
    ) -> None: ...
    def outputs(self, points: NDArray[Any]) -> NDArray[np.float64]: ...
    def one(
        self,
        value: NDArray[np.float64],
        log_volume: float,
        spare: float,
        held: int,
        rng: np.random.Generator,
    ) -> tuple[NDArray[Any], NDArray[Any] | None, tuple[int, float] | None]: ...
    def flip_one(
        self, value: NDArray[np.float64], rate: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]: ...
    def run(
        self,
        start: NDArray[np.int64],
        value: NDArray[np.float64],
        order: NDArray[np.int64],
        next: int,
        answers: NDArray[Any],
        rng: np.random.Generator,
    ) -> tuple[int, NDArray[Any] | None]: ...
    def flip(
        self,
        start: NDArray[np.int64],
        value: NDArray[np.float64],
        next: int,
        stop: int,
        answers: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> None: ...
