from typing import Any

import numpy as np
from numpy.typing import NDArray

def tree(
    least: NDArray[np.int64],
    most: NDArray[np.int64],
    rising: NDArray[np.float64],
    volume: NDArray[np.float64],
    falling: NDArray[np.float64],
    rate: float,
    near: int,
) -> tuple[
    NDArray[np.uintp],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
]: ...

class Cells:
    @property
    def start(self) -> NDArray[np.uintp]: ...
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
        lattice: bool,
        whole: NDArray[np.int64],
        part: NDArray[np.float64],
        rate: float,
        first: NDArray[np.uintp],
        last: NDArray[np.uintp],
        stretch: NDArray[np.uintp],
        until: NDArray[np.int64],
        span: NDArray[np.float64],
    ) -> None: ...
    @property
    def parts(self) -> int: ...
    def forward(self, whole: int = ..., kept: int = ..., each: int = ...) -> None: ...
    def paths(self, size: int, rng: np.random.Generator) -> NDArray[np.uintp]: ...
    def bends(self, path: NDArray[np.uintp]) -> NDArray[np.int64]: ...
    def leaves(
        self, path: NDArray[np.uintp], bend: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.uintp], NDArray[np.uint32]]: ...
    def points(
        self,
        path: NDArray[np.uintp],
        bend: NDArray[np.int64],
        leaf: NDArray[np.uintp],
        copied: NDArray[np.uint32],
        slot: NDArray[np.uintp],
        start: NDArray[np.uintp],
        least: NDArray[np.int64],
        most: NDArray[np.int64],
        width: NDArray[np.float64],
        left: NDArray[Any],
        longest: int,
        rng: np.random.Generator,
    ) -> tuple[NDArray[Any], NDArray[np.uintp]]: ...
