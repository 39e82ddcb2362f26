import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels.select import Map

def arrange(
    where: Map,
    wanted: NDArray[np.uint8],
    values: list[NDArray[np.float64]],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    all: bool,
) -> NDArray[np.float64]: ...
def ordered(value: NDArray[np.float64]) -> NDArray[np.float64]: ...
def below(
    arranged: NDArray[np.float64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    value: NDArray[np.float64],
    given: list[NDArray[np.float64]] | None = None,
) -> NDArray[np.int64]: ...
