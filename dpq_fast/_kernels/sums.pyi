from typing import Any

import numpy as np
from numpy.typing import NDArray

REACH: int
ASIDE: int

def plain(value: NDArray[Any], scale: float, first: int, last: int) -> tuple[int, int]: ...
def weighted(
    value: NDArray[np.float64],
    weight: NDArray[np.int64],
    scale: float,
    first: int,
    last: int,
) -> tuple[int, int]: ...
def squares(value: NDArray[Any], scale: float, first: int, last: int) -> tuple[int, int, int]: ...
def weighted_squares(
    value: NDArray[np.float64],
    weight: NDArray[np.int64],
    scale: float,
    first: int,
    last: int,
) -> tuple[int, int, int]: ...
def middle_of(first: int, last: int) -> int: ...
