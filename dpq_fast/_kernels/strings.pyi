from typing import Any

import numpy as np
from numpy.typing import NDArray

INT32: int
INT64: int
VIEWS: int
OTHER: int

class Table:
    def __init__(self, keys: list[bytes] | list[bytes | None] | list[str]) -> None: ...
    def find_arrow(
        self,
        layout: int,
        first: int,
        valid: NDArray[np.uint8] | None,
        entry: NDArray[np.uint8],
        buffers: list[NDArray[np.uint8]],
        place: NDArray[np.int32],
    ) -> None: ...
    def find_fixed(self, character: NDArray[np.uint32], place: NDArray[np.int32]) -> None: ...
    def find_objects(self, items: list[Any] | NDArray[Any], place: NDArray[np.int32]) -> None: ...
