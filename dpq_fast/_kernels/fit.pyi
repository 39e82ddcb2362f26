import numpy as np
from numpy.typing import NDArray

def masses(
    leaf_count: NDArray[np.float64],
    node_count: NDArray[np.float64],
    first: NDArray[np.uintp],
    stop: NDArray[np.uintp],
    total: float,
) -> NDArray[np.float64]: ...
