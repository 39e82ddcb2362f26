import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels.select import Map

class Arranging:
    values: NDArray[np.float64]
    def __init__(
        self,
        where: Map,
        wanted: NDArray[np.uint8],
        n: int,
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
    ) -> None: ...
    def count(self, values: list[NDArray[np.float64]]) -> NDArray[np.uintp]: ...
    def plan(self, counts: list[NDArray[np.uintp]], all: bool) -> list[NDArray[np.uintp]]: ...
    def move(self, values: list[NDArray[np.float64]], place: NDArray[np.uintp]) -> None: ...
    def finish(self, part: int, parts: int) -> None: ...

def ordered(value: NDArray[np.float64]) -> NDArray[np.float64]: ...
def below(
    arranged: NDArray[np.float64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    value: NDArray[np.float64],
    given: list[NDArray[np.float64]] | None = None,
) -> NDArray[np.int64]: ...
