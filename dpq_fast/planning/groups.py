"""Groups of public sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dpq_fast import _checks

# Groups of more sizes than this are taken for ones of the nearest power of this ratio.
MANY_SIZES, SIZE_RATIO = 32, 10.0 ** (1.0 / 16.0)


def sizes_of(groups: Any, n: Any) -> tuple[list[Any], list[int]]:
    """Names and sizes of groups."""
    if n is not None:
        raise ValueError("n must be left out with groups, whose sizes it is the sum of")
    if isinstance(groups, Mapping):
        names, given = list(groups), list(groups.values())
    elif isinstance(groups, (str, bytes)) or not isinstance(groups, Iterable):
        raise TypeError(
            "groups must be sizes, a mapping or a sequence of integers, "
            f"got {type(groups).__name__}"
        )
    else:
        given = list(groups)
        names = list(range(len(given)))
    if not given:
        raise ValueError("groups must hold at least one size, got none")
    return names, [_checks.check_count("groups", size) for size in given]


def grid_of(sizes: list[int]) -> list[int]:
    """The sizes that are predicted for."""
    if len(set(sizes)) <= MANY_SIZES:
        return sizes
    powers = np.rint(np.log(sizes) / math.log(SIZE_RATIO))
    return [int(size) for size in np.rint(SIZE_RATIO**powers)]
