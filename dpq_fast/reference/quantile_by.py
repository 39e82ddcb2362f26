"""Quantiles by group: a loop over the groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast._checks import check_flag
from dpq_fast.privacy.ind_exp import FLIP
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.quantile_by import IND_EXP, JOINT_EXP
from dpq_fast.reference._calls import default_rng
from dpq_fast.reference.columns import declared_type, numbers, repeats
from dpq_fast.reference.ind_exp import IndExpLaw, no_dither
from dpq_fast.reference.joint_exp import JointExpLaw
from dpq_fast.reference.sample import check_form, kept_records, placed


@dataclass(frozen=True, eq=False)
class GroupQuantiles:
    """Quantiles by group, as `dpq_fast.GroupQuantiles`.

    Attributes
    ----------
    groups : ndarray, shape (G,)
    q : float or ndarray of float64
    values : ndarray of float64, shape (G,) + q's
    """

    groups: NDArray[Any]
    q: Any
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups.tolist())

    def __contains__(self, key: Any) -> bool:
        return key in self.groups.tolist()

    def __getitem__(self, key: Any) -> Any:
        answers = dict(zip(self.groups.tolist(), self.values, strict=True))
        answer = answers[key]
        return float(answer) if np.ndim(answer) == 0 else answer

    def to_pandas(self) -> Any:
        """A row for each group, and a column for each level."""
        import pandas

        return pandas.DataFrame(
            self.values.reshape(len(self), np.size(self.q)),
            index=pandas.Index(self.groups, name="group"),
            columns=pandas.Index(np.ravel(self.q), name="q"),
        )


def names_of(groups: Any) -> list[int] | list[str]:
    """The public keys, checked: distinct, and all of one kind."""
    if isinstance(groups, (str, bytes, Mapping, Set)) or not hasattr(groups, "__iter__"):
        raise TypeError(
            f"groups must be a sequence of integers or of strings, got {type(groups).__name__}"
        )
    if isinstance(groups, np.ndarray) and groups.ndim != 1:
        raise ValueError(f"groups must be one-dimensional, got {groups.ndim} dimensions")
    names = [None if isinstance(item, bool) else key_of(item) for item in groups]
    integers = [name for name in names if isinstance(name, int)]
    strings = [name for name in names if isinstance(name, str)]
    if len(names) not in (len(integers), len(strings)):
        raise TypeError("groups must hold integers or strings, all of one kind")
    if integers:
        low, high = min(integers), max(integers)
        if low < -(2**63) or high >= (2**63 if low < 0 else 2**64):
            raise ValueError("groups must be integers of 64 bits")
    for name, times in sorted(Counter(names).items()):
        if times > 1:
            raise ValueError(f"groups must be distinct, got {name} twice")
    return integers or strings


def key_of(item: Any) -> int | str | None:
    """A key as it is compared: an integer or a string; None for anything else."""
    if hasattr(item, "as_py"):  # pyarrow
        item = item.as_py()
    if isinstance(item, (int, np.integer)):
        return int(item)
    return str(item) if isinstance(item, str) else None


def check_keys(by: Any, names: list[int] | list[str]) -> None:
    """Refuse what is no column of keys, or of another kind than the names; reads no record."""
    if isinstance(by, (str, bytes, Mapping, Set)) or not hasattr(by, "__iter__"):
        raise TypeError(f"by must be a column of integers or of strings, got {type(by).__name__}")
    declared = declared_type(by)
    if declared is None:
        return
    if getattr(by, "ndim", 1) != 1:
        raise ValueError(f"by must be one-dimensional, got {by.ndim} dimensions")
    name = declared.kind if isinstance(declared, np.dtype) else str(declared).lower()
    name = name.removeprefix("dictionary<values=")  # pyarrow
    if name.startswith(("object", "null", "O")) or name == "category":  # which say nothing
        return
    strings = name.startswith(("str", "large_str", "categorical", "enum", "U", "T"))
    if not (strings or name.startswith(("int", "uint", "i", "u"))):
        raise TypeError(f"by must hold integers or strings, got dtype {declared}")
    if names and strings != isinstance(names[0], str):
        kinds = ("integers", "strings") if strings else ("strings", "integers")
        raise TypeError(f"groups must be {kinds[1]} as the column by is, got {kinds[0]}")


def quantile_by(
    x: Any,
    by: Any,
    q: Any,
    *,
    groups: Any,
    epsilon: float,
    bounds: tuple[float, float],
    neighbors: str = "swap",
    public_by: bool = False,
    method: str | None = None,
    resolution: float | None = None,
    dither: bool | None = None,
    counts: Any = None,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
) -> GroupQuantiles:
    """Release the quantiles of each public group by one release per group.

    The law is that of `dpq_fast.quantile_by`, whose docstring has every rule in full.

    Parameters
    ----------
    x, by : array_like, shape (n,)
        Private values, and the key of each: integers or strings.
    q : float or array_like of float
        Levels in [0, 1]. Public.
    groups : sequence of int or of str
        The keys to answer. Public.
    epsilon, bounds, neighbors, public_by, method, resolution, dither, counts, nan_policy, \
max_contributions, accountant, rng
        As in `dpq_fast.quantile_by`.

    Returns
    -------
    GroupQuantiles
    """
    levels = Levels(q)
    names = names_of(groups)
    composed = isinstance(accountant, privacy.Accountant) and accountant.composition == "zcdp"
    dithered = dither is not None and check_flag("dither", dither)
    if method is None and (dithered or composed):
        method = JOINT_EXP
    calibration = privacy.quantile_by.calibrate(
        levels,
        epsilon=epsilon,
        neighbors=neighbors,
        max_contributions=max_contributions,
        public_by=public_by,
        method=method,
    )
    rate, by_depth = calibration.rate, calibration.method == IND_EXP
    if by_depth:
        dither = no_dither(dither)
    bounds, lattice = check_form(x, bounds, resolution, dither, nan_policy)
    check_keys(by, names)
    rng = default_rng(rng)
    privacy.charge(accountant, calibration)
    values = numbers(x)
    keys = [key_of(key) for key in by]
    if len(keys) != values.size:
        raise ValueError("by must have one key for each row of x")
    weights = np.ones(values.size) if counts is None else repeats(counts, values.size)
    distinct = Levels(levels.values)
    answers = np.empty((len(names), levels.m))
    for answer, name in zip(answers, names, strict=True):
        inside = [i for i, key in enumerate(keys) if key == name]
        records = kept_records(values[inside], weights[inside], nan_policy)
        data = placed(records, bounds, lattice, rng).intervals()
        law = (
            IndExpLaw(data, distinct, rate, FLIP) if by_depth else JointExpLaw(data, distinct, rate)
        )
        answer[:] = law.sample(rng)
    asked = float(q) if np.ndim(q) == 0 else np.array(q, dtype=np.float64)
    return GroupQuantiles(array_of(names), asked, levels.restore(answers))


def array_of(names: list[int] | list[str]) -> NDArray[Any]:
    """Strings as objects, integers as int64, or as uint64 where one is too large for that."""
    if names and isinstance(names[0], str):
        return np.array(names, dtype=object)
    large = any(isinstance(name, int) and name >= 2**63 for name in names)
    return np.array(names, dtype=np.uint64 if large else np.int64)
