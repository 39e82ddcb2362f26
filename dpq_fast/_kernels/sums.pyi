from typing import Any

import numpy as np
from numpy.typing import NDArray

REACH: int

def plain(value: NDArray[Any], scale: float, first: int, last: int) -> tuple[int, int]: ...
def weighted(
    value: NDArray[np.float64],
    weight: NDArray[np.int64],
    scale: float,
    first: int,
    last: int,
) -> tuple[int, int]: ...
