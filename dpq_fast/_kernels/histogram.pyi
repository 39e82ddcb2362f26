from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

class Table:
    @property
    def most(self) -> int: ...
    def __new__(
        cls,
        edge: NDArray[np.float64],
        low: float,
        base: float,
        scale: float,
        logarithmic: bool,
        shift: int,
        last: int,
    ) -> Self: ...
    def count(
        self,
        value: NDArray[Any],
        negate: bool,
        weight: NDArray[np.int64] | None,
        count: NDArray[np.int64],
    ) -> None: ...

def thresholds(
    base: float, lower: float, skip: int, size: int, step: int = 1
) -> NDArray[np.float64]: ...
def reach(base: float, lower: float, upper: float, size: int) -> int: ...
