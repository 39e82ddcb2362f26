from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDEST: float

def cells(window: int, reach: int, rate: float, m: int) -> tuple[int, NDArray[np.int64]]: ...

class Strayed:
    log_weight: float

    def __init__(
        self,
        q: NDArray[np.float64],
        n: int,
        rate: float,
        inside: int,
        start: NDArray[np.int64],
    ) -> None: ...
    def add(
        self,
        levels: int,
        rank: NDArray[np.int64],
        width: NDArray[np.float64],
        left: NDArray[Any],
    ) -> None: ...
    def add_records(
        self,
        levels: int,
        first_rank: NDArray[np.int64],
        count: NDArray[np.int64],
        ends: tuple[float, float],
        record: NDArray[Any],
    ) -> None: ...
