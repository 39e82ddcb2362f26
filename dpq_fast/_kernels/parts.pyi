import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels.dither import Offsets

class Parts:
    @property
    def leaves(self) -> int: ...
    @property
    def parts(self) -> int: ...
    @property
    def longest(self) -> int: ...
    def __init__(
        self,
        offsets: Offsets,
        first: NDArray[np.int64],
        each: NDArray[np.int64] | None,
        below: NDArray[np.int64],
        above: NDArray[np.int64],
        start: NDArray[np.int64],
        most: NDArray[np.int64],
        begin: NDArray[np.int64],
        ranks: NDArray[np.float64],
        rate: float,
        room: int,
    ) -> None: ...
    def take(
        self,
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.float64],
    ]: ...
    def of(
        self, rank: NDArray[np.int64]
    ) -> tuple[
        NDArray[np.uintp],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.float64],
        NDArray[np.int64],
    ]: ...
    def draw(
        self,
        least: NDArray[np.int64],
        most: NDArray[np.int64],
        width: NDArray[np.float64],
        bend: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]: ...
