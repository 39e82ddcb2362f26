import numpy as np
from numpy.typing import NDArray

def log_smooth(
    rank: NDArray[np.int64], value: NDArray[np.float64], target: int, t: NDArray[np.float64]
) -> NDArray[np.float64]: ...
