from typing import Any

import numpy as np
from numpy.typing import NDArray

LINE: int

class Map:
    @property
    def ends(self) -> tuple[float, float]: ...
    def __init__(
        self,
        low: float,
        high: float,
        buckets: int,
        *,
        origin: float | None = None,
        scale: float | None = None,
        base: int | None = None,
        shift: int | None = None,
    ) -> None: ...
    @staticmethod
    def chosen(low: float, high: float, buckets: int, value: NDArray[np.float64]) -> Map: ...
    def edges(self, bucket: NDArray[np.int64]) -> NDArray[np.float64]: ...
    def buckets(self, value: NDArray[np.float64]) -> NDArray[np.uint32]: ...
    def bucket(self, value: float) -> int: ...
    def count(
        self,
        value: NDArray[Any],
        total: NDArray[np.int64],
        wanted: NDArray[np.uint8] | None = None,
        out: NDArray[np.float64] | None = None,
    ) -> int: ...
    def sample(
        self, value: NDArray[Any], run: int, runs: int, total: NDArray[np.int64]
    ) -> None: ...
    def refine(
        self,
        cell: NDArray[np.int32],
        key_lo: NDArray[np.int64],
        key_hi: NDArray[np.int64],
        shift: NDArray[np.int32],
        pivot: NDArray[np.int64],
        value: NDArray[Any],
        total: NDArray[np.int64],
    ) -> None: ...
    def collect(
        self,
        wanted: NDArray[np.uint8],
        key_lo: NDArray[np.int64],
        key_hi: NDArray[np.int64],
        value: NDArray[Any],
        room: int,
    ) -> tuple[NDArray[np.float64], int]: ...
    def between(
        self,
        lo: NDArray[np.float64],
        hi: NDArray[np.float64],
        value: NDArray[Any],
        room: int,
    ) -> tuple[NDArray[np.float64], int]: ...

def cells(
    low: float,
    high: float,
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    scale: NDArray[np.float64],
    value: NDArray[Any],
    count: NDArray[np.int64],
    least: NDArray[np.float64],
    most: NDArray[np.float64],
) -> None: ...
def keys(value: NDArray[np.float64]) -> NDArray[np.int64]: ...
def value_of(key: int) -> float: ...
