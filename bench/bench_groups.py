"""Many small groups in one call, against a loop over single releases."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import peers
from bench_joint_exp import EPSILON
from columns import BOUNDS, gaussian, levels
from measure import Timing, alternately
from numpy.typing import NDArray

import dpq_fast as dpq

SIZE = 100
# Groups that loops are timed on; their time is scaled to all groups.
PART = 300


def column(groups: int, size: int = SIZE) -> tuple[NDArray, NDArray]:
    """Records of N(0, 5) in `groups` groups, and their keys, in no order."""
    keys = np.repeat(np.arange(groups), size)
    np.random.default_rng(1).shuffle(keys)
    return gaussian(keys.size), keys


class QuantileBy:
    """`groups` groups of 100 rows, m even levels, two threads."""

    params = ([1_000, 100_000], [1, 3, 9], ["float", "integer"])
    param_names = ("groups", "m", "type")
    timeout = 600

    def setup(self, groups: int, m: int, kind: str) -> None:
        self.x, self.by = column(groups)
        self.resolution = None
        if kind == "integer":
            self.x, self.resolution = np.rint(self.x).astype(np.int64), 1
        self.q = levels(m)
        self.groups = np.arange(groups)

    def quantile_by(self, by: object, **options: object) -> object:
        options = {"resolution": self.resolution, "bounds": BOUNDS, **options}
        return dpq.quantile_by(self.x, by, self.q, groups=self.groups, epsilon=EPSILON, **options)

    def time_one_thread(self, groups: int, m: int, kind: str) -> None:
        self.quantile_by(self.by)

    def time_two_threads(self, groups: int, m: int, kind: str) -> None:
        self.quantile_by(self.by, workers=2)

    def time_continuous(self, groups: int, m: int, kind: str) -> None:
        self.quantile_by(self.by, resolution=0)

    def peakmem_one_thread(self, groups: int, m: int, kind: str) -> None:
        self.quantile_by(self.by)


class Row(NamedTuple):
    """One line of the table: seconds for all groups, and over the first line's."""

    side: str
    seconds: float
    over_first: float
    scaled: bool


def rows(groups: int, seconds: float, m: int = 3) -> tuple[list[Row], dict[str, Timing]]:
    """`groups` groups of `SIZE` float rows at m levels: our call, and loops over a part of it."""
    x, by = column(groups)
    q, names = levels(m), np.arange(groups)
    ordered = gaussian(PART * SIZE).reshape(PART, SIZE)  # the loops get their groups for free

    def ours(**options: object) -> Callable[[], object]:
        return lambda: dpq.quantile_by(
            x, by, q, groups=names, epsilon=EPSILON, bounds=BOUNDS, **options
        )

    def loop(release: Callable[[NDArray], object]) -> Callable[[], object]:
        return lambda: [release(group) for group in ordered]

    timings = alternately(
        {
            "quantile_by, 2 threads": ours(workers=2),
            "quantile_by, 1 thread": ours(),
            "quantile_by, 2 threads, continuous": ours(workers=2, resolution=0),
        },
        seconds,
    )
    loops = {
        "loop over joint_exp": loop(
            lambda group: dpq.joint_exp(group, q, epsilon=EPSILON, bounds=BOUNDS)
        ),
        "loop over np.quantile": loop(lambda group: np.quantile(group, q)),
    }
    if peers.diffprivlib is not None:
        loops["loop over diffprivlib"] = loop(
            lambda group: peers.diffprivlib.quantile(group, q, epsilon=EPSILON, bounds=BOUNDS)
        )
    for side, timing in alternately(loops, seconds).items():
        scale = groups / PART
        timings[side] = Timing(
            timing.median * scale, timing.best * scale, [r * scale for r in timing.rounds]
        )
    first = timings["quantile_by, 2 threads"].median
    return [
        Row(side, timing.median, timing.median / first, side in loops)
        for side, timing in timings.items()
    ], timings
