from typing import Any

import numpy as np
from numpy.typing import NDArray

def encode(
    value: NDArray[np.float64],
    low: float,
    high: float,
    per_unit: float,
    step: float,
    first: int,
    points: int,
) -> NDArray[np.int64]: ...
def least(
    point: NDArray[np.int64],
    low: float,
    high: float,
    per_unit: float,
    step: float,
    first: int,
    points: int,
) -> NDArray[np.float64]: ...
def decode(
    point: NDArray[np.int64], per_unit: float, step: float, first: int
) -> NDArray[np.float64]: ...
def is_sorted(value: NDArray[np.float64]) -> bool: ...
def has_missing(value: NDArray[np.float64]) -> bool: ...
def count(
    value: NDArray[Any],
    low: float,
    high: float,
    per_unit: float,
    step: float,
    first: int,
    points: int,
    total: NDArray[np.int64],
) -> None: ...
def count_integers(
    value: NDArray[Any], first: int, points: int, total: NDArray[np.int64]
) -> None: ...
def runs(
    value: NDArray[Any],
    low: float,
    high: float,
    per_unit: float,
    step: float,
    first: int,
    points: int,
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    size: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
def ties(
    value: NDArray[Any],
    low: float,
    high: float,
    per_unit: float,
    step: float,
    first: int,
    points: int,
    place: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
def bisect(
    value: NDArray[Any],
    low: float,
    high: float,
    per_unit: float,
    step: float,
    first: int,
    points: int,
    point: NDArray[np.int64],
    lo: NDArray[np.int64],
    hi: NDArray[np.int64],
) -> None: ...
