import numpy as np
from numpy.typing import NDArray

from dpq_fast._kernels.scan import Scan

def draw(
    scan: Scan, log_escape: float, size: int, rng: np.random.Generator
) -> tuple[NDArray[np.uintp], int]: ...
def go_on(
    scan: Scan,
    first: int,
    left: NDArray[np.uintp],
    path: NDArray[np.uintp],
    rng: np.random.Generator,
) -> None: ...
def points_lattice(
    path: NDArray[np.uintp],
    left: NDArray[np.int64],
    width: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.int64]: ...
def points_continuous(
    path: NDArray[np.uintp],
    left: NDArray[np.float64],
    width: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]: ...
