import numpy as np
from numpy.typing import NDArray

LIMIT: int

def bernoulli(
    whole: int, numerator: int, denominator: int, out: NDArray[np.uint8], rng: np.random.Generator
) -> None: ...
def laplace(
    numerator: int, denominator: int, out: NDArray[np.int64], rng: np.random.Generator
) -> None: ...
def gaussian(
    numerator: int, denominator: int, out: NDArray[np.int64], rng: np.random.Generator
) -> None: ...
