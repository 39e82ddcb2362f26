import numpy as np
from numpy.typing import NDArray

def target(q: float, n: int) -> tuple[int, float]: ...
def cells(
    rank: NDArray[np.int64],
    width: NDArray[np.float64],
    left: NDArray[np.int64],
    n: int,
    whole: int,
    part: float,
    below: int,
    through: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]: ...
def flip(
    points: NDArray[np.float64],
    loss: NDArray[np.float64],
    rate: float,
    best: int,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.uintp]: ...
def points(
    rank: NDArray[np.int64],
    width: NDArray[np.float64],
    left: NDArray[np.int64],
    n: int,
    whole: int,
    part: float,
    rate: float,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]: ...
