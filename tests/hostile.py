"""Hostile calls of every public function: any argument may be wrong, any column strange.

``python tests/hostile.py 1000000`` makes so many in one process, and reports what was raised and
how much the process grew. Whatever is given, a call answers, or raises TypeError or ValueError.
"""

from __future__ import annotations

import collections
import gc
import math
import os
import sys
import time
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dpq_fast as dpq

NUMBERS = (
    0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 5e-324, 1e300, 1.7976931348623157e308, math.inf, -math.inf,
    math.nan, 2**53, 2**63, 2**64, 10**400, -(10**400), Fraction(1, 3), True, None, "1", b"1", 1j,
    [], (), {}, object(), np.float32(0.1), np.int8(-3), np.bool_(True), np.datetime64("2020-01-01"),
)  # fmt: skip
STRINGS = ("swap", "add-remove", "omit", "raise", "", "auto", "both", "\x00", "gumbel", "laplace")
LATE = 0.3  # how often an argument is hostile


class Outcome(NamedTuple):
    """What came of the calls: answers, refusals, and all else by name."""

    answered: int
    refused: int
    other: dict[str, int]


def column(rng: np.random.Generator) -> Any:
    """A column, of any type and form."""
    size = int(rng.integers(0, 60))
    plain = rng.normal(0.0, 10.0, size=size)
    strange = rng.choice(
        np.array([math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 1.0]), size
    )
    kinds = (
        lambda: plain,
        lambda: strange,
        lambda: np.where(rng.random(size) < 0.5, plain, strange),
        lambda: rng.integers(-5, 5, size=size),
        lambda: rng.integers(-(2**63), 2**63 - 1, size=size),
        lambda: rng.integers(0, 2**64 - 1, size=size, dtype=np.uint64),
        lambda: plain.astype(np.float16),
        lambda: plain.astype(">f8"),
        lambda: np.repeat(plain, 3)[::3],
        lambda: plain[::-1],
        lambda: plain.tolist(),
        lambda: [None, *plain.tolist(), 10**400],
        lambda: [*plain.tolist(), "x"],
        lambda: plain.reshape(1, -1),
        lambda: np.array(["a"] * size),
        lambda: np.array([1.0, None, object()], dtype=object),
        lambda: np.ma.masked_invalid(strange),
        lambda: plain.view(np.uint8).view(np.float64)[:size],
        lambda: np.frombuffer(rng.bytes(8 * size), dtype=np.float64),  # any bits, signaling NaN
        lambda: iter(plain.tolist()),
        lambda: NUMBERS[rng.integers(len(NUMBERS))],
    )
    return kinds[rng.integers(len(kinds))]()


def argument(rng: np.random.Generator, usual: Any) -> Any:
    """The usual argument, or a hostile one."""
    if rng.random() > LATE:
        return usual
    kinds = (
        lambda: NUMBERS[rng.integers(len(NUMBERS))],
        lambda: STRINGS[rng.integers(len(STRINGS))],
        lambda: float(np.exp(rng.normal(0.0, 30.0))),
        lambda: -usual if isinstance(usual, (int, float)) else (usual, usual),
        lambda: rng.random(int(rng.integers(0, 4))),
        lambda: (float(rng.normal()), float(rng.normal())),
        lambda: column(rng),
    )
    return kinds[rng.integers(len(kinds))]()


COMMON = dict(neighbors="swap", max_contributions=1)
FORM = dict(nan_policy="omit", workers=1)
LATTICE = dict(bounds=(-10.0, 10.0), resolution=0.5, dither=True, assume_sorted=False)
SEARCH = dict(lower=0.0, upper=50.0, beta=1.5, noise="exponential", split=None, offset=0.0)
QUERIES = dict(threshold=2.0, epsilon1=1.0, epsilon2=1.0, sensitivity=1.0, monotonic=True)
ARGUMENTS: dict[str, dict[str, Any]] = {
    "joint_exp": dict(q=[0.2, 0.5], epsilon=1.0, kernel="scan", **LATTICE, **COMMON, **FORM),
    "ind_exp": dict(q=0.5, epsilon=1.0, delta=0.0, **LATTICE, **COMMON, **FORM),
    "approx_quantiles": dict(q=[0.2, 0.5, 0.9], epsilon=1.0, **LATTICE, **COMMON, **FORM),
    "csmooth": dict(q=0.5, rho=0.5, t=None, **LATTICE, **COMMON, **FORM),
    "quantile": dict(q=0.5, epsilon=1.0, method="auto", **LATTICE, **COMMON, **FORM),
    "unbounded_quantile": dict(q=0.5, epsilon=1.0, invert=False, **SEARCH, **COMMON, **FORM),
    "quantile_by": dict(
        by=[0, 1], q=0.5, groups=[0, 1], epsilon=1.0, bounds=(-10.0, 10.0), resolution=0.5,
        public_by=False, **COMMON, **FORM,
    ),
    "above_threshold": dict(noise="exponential", neighbors="swap", **QUERIES),
    "sparse_vector": dict(noise="exponential", neighbors="swap", halts=2, **QUERIES),
    "count": dict(epsilon=1.0, **COMMON, **FORM),
    "sum": dict(epsilon=1.0, q=0.9, share=0.5, **SEARCH, **COMMON, **FORM),
    "mean": dict(epsilon=1.0, q=None, lower=-4.0, upper=8.0, resolution=0.5, **COMMON, **FORM),
}  # fmt: skip


def resident() -> int:
    """Bytes of memory that the process holds."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def calls(number: int, seed: int) -> Outcome:
    """So many hostile calls; a warning counts as an error."""
    rng = np.random.default_rng(seed)
    noise = np.random.default_rng(seed)
    names = list(ARGUMENTS)
    answered = refused = 0
    other: collections.Counter[str] = collections.Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(number):
            name = names[rng.integers(len(names))]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what making the arguments says does not count
                x = column(rng)
                hostile = bool(rng.random() < 0.5)
                options = {
                    key: argument(rng, usual) if hostile else usual
                    for key, usual in ARGUMENTS[name].items()
                }
                if rng.random() < 0.1 and hasattr(x, "__len__"):
                    counts = rng.integers(-1 if hostile else 0, 2**10, size=len(x))
                    if name not in ("above_threshold", "sparse_vector"):
                        options["counts"] = counts
                if name == "quantile_by" and not hostile and hasattr(x, "__len__"):
                    options["by"] = rng.integers(0, 3, size=len(x))
            try:
                getattr(dpq, name)(x, rng=noise, **options)
                answered += 1
            except (TypeError, ValueError):
                refused += 1
            except BaseException as error:
                if isinstance(error, (KeyboardInterrupt, SystemExit)):
                    raise
                other[f"{name}: {type(error).__name__}: {error}"[:160]] += 1
    return Outcome(answered, refused, dict(other))


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print("warming up:", calls(20_000, seed=0))
    before, start, part = resident(), time.perf_counter(), 100_000
    for done in range(0, number, part):
        outcome = calls(min(part, number - done), seed=1 + done)
        grown = (resident() - before) / 2**20
        print(
            f"{done + part:>9} calls, {time.perf_counter() - start:6.1f} s, {grown:+.2f} MiB",
            outcome,
        )


if __name__ == "__main__":
    main()
