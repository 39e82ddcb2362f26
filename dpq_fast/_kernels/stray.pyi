from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDEST: float

def cells(
    window: int, reach: int, rate: float, m: int, share: float
) -> tuple[int, NDArray[np.int64]]: ...

class Strayed:
    log_weight: float

    def __init__(
        self,
        q: NDArray[np.float64],
        n: int,
        rate: float,
        inside: int,
        start: NDArray[np.int64],
        window: NDArray[np.int64] | None = None,
    ) -> None: ...
    def add(
        self,
        levels: int,
        rank: NDArray[np.int64],
        width: NDArray[np.float64],
        left: NDArray[Any],
    ) -> None: ...
    def ranks(self) -> NDArray[np.int64]: ...
    def add_borders(self, border: NDArray[Any]) -> None: ...
