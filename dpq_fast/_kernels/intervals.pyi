import numpy as np
from numpy.typing import NDArray

def compress_lattice(
    first_rank: NDArray[np.int64],
    count: NDArray[np.int64],
    n: int,
    before: int,
    after: int,
    point: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]: ...
def compress_continuous(
    first_rank: NDArray[np.int64],
    count: NDArray[np.int64],
    n: int,
    before: float,
    after: float,
    point: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]: ...
def windows(
    q: NDArray[np.float64], n: int, window: int | NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
def windows_of_each(
    q: NDArray[np.float64], n: int, window: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def records(
    first_rank: NDArray[np.int64], count: NDArray[np.int64], n: int, skipped: int
) -> list[tuple[int, int]]: ...
def ranges(
    first: NDArray[np.int64], last: NDArray[np.int64], rank: NDArray[np.int64]
) -> tuple[NDArray[np.uintp], NDArray[np.uintp]] | None: ...
def probes(q: NDArray[np.float64], n: int, reach: NDArray[np.int64]) -> NDArray[np.int64]: ...
def log_spans(
    value: NDArray[np.float64], low: float, high: float, unit: float
) -> NDArray[np.float64]: ...
