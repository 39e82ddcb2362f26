from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

class Halting:
    def __new__(cls, noise: str, rate1: float, rate2: float, rng: np.random.Generator) -> Self: ...
    def advance(
        self, value: NDArray[np.float64], length: NDArray[np.int64] | None = None
    ) -> int: ...
    def confirm(self, value: float, step: int) -> bool: ...
    def ask(self, queries: NDArray[Any], threshold: float, first: int = 0) -> int: ...
    def halts_at(self, value: float) -> bool: ...

def draw(
    noise: str,
    rate1: float,
    rate2: float,
    value: NDArray[np.float64],
    length: NDArray[np.int64],
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]: ...
