import numpy as np
from numpy.typing import NDArray

def draw(log_weight: NDArray[np.float64], rng: np.random.Generator) -> int: ...
