import numpy as np
from numpy.typing import NDArray

BLOCK: int
APART: float

def log_passing(
    target: NDArray[np.float64],
    rate: float,
    ranks: float,
    rest: float,
    rising: NDArray[np.float64],
    volume: NDArray[np.float64],
    falling: NDArray[np.float64],
    point: float,
    first: NDArray[np.uintp],
    end: NDArray[np.uintp],
    heavy: NDArray[np.uintp],
) -> tuple[float, NDArray[np.float32]]: ...
