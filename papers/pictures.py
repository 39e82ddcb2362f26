"""Pictures to be saved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")


@contextmanager
def picture(
    path: Path, title: str, rows: int = 1, columns: int = 1, size: tuple[float, float] = (7.0, 4.5)
) -> Iterator[Any]:
    """A grid of axes, shape (rows, columns), saved on leaving."""
    from matplotlib import pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    figure.suptitle(title)
    for each in axes.flat:
        each.grid(alpha=0.3)
    yield np.array(axes)
    figure.savefig(path, dpi=120)
    plt.close(figure)
