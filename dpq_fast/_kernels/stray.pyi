from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDEST: float

def cells(window: int, reach: int, rate: float, m: int) -> tuple[int, NDArray[np.int64]]: ...
def log_strayed(
    rank: NDArray[np.int64],
    width: NDArray[np.float64],
    left: NDArray[Any],
    q: NDArray[np.float64],
    n: int,
    rate: float,
    inside: int,
    start: NDArray[np.int64],
) -> float: ...
