from typing import Any

import numpy as np
from numpy.typing import NDArray

class Cells:
    @property
    def entries(self) -> int: ...
    @property
    def log_total(self) -> float: ...
    def __init__(
        self,
        offset: NDArray[np.uintp],
        least: NDArray[np.int64],
        most: NDArray[np.int64],
        rising: NDArray[np.float64],
        volume: NDArray[np.float64],
        falling: NDArray[np.float64],
        rough: bool,
        lattice: bool,
        whole: NDArray[np.int64],
        part: NDArray[np.float64],
        rate: float,
        first: NDArray[np.uintp],
        last: NDArray[np.uintp],
        below: NDArray[np.int64],
        above: NDArray[np.int64],
        width: float,
        growth: float,
        at_most: int,
    ) -> None: ...
    def forward(self) -> None: ...
    def paths(self, size: int, rng: np.random.Generator) -> NDArray[np.uintp]: ...
    def bends(self, path: NDArray[np.uintp]) -> NDArray[np.int64]: ...
    def points(
        self,
        path: NDArray[np.uintp],
        bend: NDArray[np.int64],
        start: NDArray[np.uintp],
        width: NDArray[np.float64],
        least: NDArray[np.int64],
        most: NDArray[np.int64],
        left: NDArray[Any],
        longest: int,
        rng: np.random.Generator,
    ) -> tuple[NDArray[Any], NDArray[np.uintp]]: ...
