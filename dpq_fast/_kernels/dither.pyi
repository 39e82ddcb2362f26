import numpy as np
from numpy.typing import NDArray

class Offsets:
    def __init__(self, bits: int, rng: np.random.Generator) -> None: ...
    def below(self, count: NDArray[np.int64], offset: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def at(
        self,
        place: NDArray[np.int64],
        point: NDArray[np.int64],
        below: NDArray[np.int64],
        above: NDArray[np.int64],
    ) -> NDArray[np.int64]: ...
    def points(
        self,
        point: NDArray[np.int64],
        first: NDArray[np.int64],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
        low: NDArray[np.int64],
        high: NDArray[np.int64],
        fine: NDArray[np.int64],
    ) -> None: ...
