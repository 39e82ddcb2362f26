import numpy as np
from numpy.typing import NDArray

CHUNK: int

class Keys:
    @property
    def groups(self) -> int: ...
    @property
    def chunk(self) -> int: ...
    @property
    def chunks(self) -> int: ...
    def __init__(self, groups: int, lowest: int, table: NDArray[np.int32] | None) -> None: ...
    def count(self, key: NDArray[np.integer]) -> NDArray[np.int64]: ...
    def scatter(
        self,
        key: NDArray[np.integer],
        value: NDArray[np.float64],
        place: NDArray[np.int64],
        end: NDArray[np.int64],
        grouped: NDArray[np.float64],
        member: NDArray[np.uint16],
    ) -> int: ...

def order(
    value: NDArray[np.float64], member: NDArray[np.uint16], groups: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
