from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDE: np.dtype

class Scan:
    A: NDArray[Any]
    H: NDArray[Any]
    exponent: NDArray[np.int64] | None
    rank: NDArray[np.int64]
    lo: NDArray[np.uintp]
    hi: NDArray[np.uintp]
    whole: NDArray[np.int64]
    part: NDArray[np.float64]
    rate: float
    log_total: float

    def __init__(
        self,
        rank: NDArray[np.int64],
        width: NDArray[np.float64],
        lattice: bool,
        q: NDArray[np.float64],
        n: int,
        lo: NDArray[np.uintp],
        hi: NDArray[np.uintp],
        rate: float,
    ) -> None: ...
    def forward(self) -> None: ...
    def forward_wide(self) -> None: ...
    def forward_by(self, product: Callable[[int, Scan], NDArray[np.float64]]) -> None: ...
    def sums(self, j: int) -> NDArray[np.float64]: ...
    def row(self, j: int) -> NDArray[np.float64]: ...
