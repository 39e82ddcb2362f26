import numpy as np
from numpy.typing import NDArray

def encode(
    value: NDArray[np.float64],
    low: float,
    high: float,
    per_unit: float,
    step: float,
    first: int,
    points: int,
) -> NDArray[np.int64]: ...
def is_sorted(value: NDArray[np.float64]) -> bool: ...
